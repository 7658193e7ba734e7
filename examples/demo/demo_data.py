"""Real measurements and model fields for the demonstration.

NetCDF files that the package iris-sample-data ships: sea surface temperatures of an ocean model
and of the OSTIA analysis, a climate scenario over North America, the levels of an atmosphere
model, the corners of an ocean grid, a satellite picture. Reads the arrays as they are stored,
fill values included, and interprets nothing.

Source: the package's own folder ``sample_data``; who measured and computed what stands in each
file's attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["PACKAGES", "PICTURED", "Field", "read_fields"]

PACKAGES = ("blosc2", "h5netcdf", "iris_sample_data", "matplotlib")
"""What the demonstration imports, beyond the library's own needs."""
PICTURED = "sea surface temperature"
"""The name of the field that is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variable:
    """Where an array comes from."""

    name: str
    variable: str
    files: tuple[str, ...]
    """One file, or one for each time step, relative to the package's folder."""
    chunk_items: int
    """Items of one chunk: some rows, maps or levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One array of the demonstration."""

    name: str
    values: NDArray[Any]
    """In C order."""
    chunk_items: int
    units: str
    fill_value: float | None
    """What stands where there is no value, such as on land; None if nothing does."""

    @property
    def chunksize(self) -> int:
        """Bytes of one chunk."""
        return self.chunk_items * self.values.dtype.itemsize


_MONTHS = (("01", "02"), ("02", "03"), ("03", "04"))
_VARIABLES = (
    _Variable(
        name=PICTURED,
        variable="tos",
        files=tuple(f"NEMO/nemo_1m_2015{first}01-2015{last}01_grid-T.nc" for first, last in _MONTHS),
        chunk_items=15 * 360,
    ),
    _Variable(
        name="monthly surface temperature",
        variable="surface_temperature",
        files=("ostia_monthly.nc",),
        chunk_items=6 * 18 * 432,
    ),
    _Variable(
        name="yearly air temperature",
        variable="air_temperature",
        files=("A1B_north_america.nc",),
        chunk_items=30 * 37 * 49,
    ),
    _Variable(
        name="potential temperature",
        variable="air_potential_temperature",
        files=("hybrid_height.nc",),
        chunk_items=3 * 100 * 100,
    ),
    _Variable(
        name="ocean grid corners",
        variable="nav_lon_bnds",
        files=("orca2_votemper.nc",),
        chunk_items=37 * 180 * 4,
    ),
    _Variable(
        name="satellite brightness",
        variable="data",
        files=("toa_brightness_stereographic.nc",),
        chunk_items=40 * 256,
    ),
)


def read_fields() -> Iterator[Field]:
    """Read the arrays, one after the other."""
    import h5netcdf  # of the extra "demo"
    import iris_sample_data

    folder = Path(iris_sample_data.path)
    for where in _VARIABLES:
        parts = []
        attributes: dict[str, Any] = {}
        for name in where.files:
            with h5netcdf.File(folder / name, "r") as file:
                variable = file[where.variable]
                parts.append(np.ascontiguousarray(variable[...]))
                attributes = dict(variable.attrs)
        units = attributes.get("units", "1")
        fill_value = attributes.get("_FillValue")
        yield Field(
            name=where.name,
            values=parts[0] if len(parts) == 1 else np.concatenate(parts),
            chunk_items=where.chunk_items,
            units=units.decode() if isinstance(units, bytes) else str(units),
            fill_value=None if fill_value is None else float(fill_value),
        )
