"""Names of dimensions in HDF5 files: dimension scales, which NetCDF's dimensions are, and labels.

::

    /temperature      DIMENSION_LIST ──> scales of its dimensions
    /time             CLASS = DIMENSION_SCALE: a coordinate, the values along the dimension
    /x                the same, NAME = "This is a netCDF dimension but not a netCDF variable": a name and no values

A dimension has the name of the first scale that is attached to it, else its label. A new dataset gets scales. A scale
is made without values if the group has none of the name. Where another object has the name, the dimension gets a label.

Source: the dimension scale specification of HDF5, and NetCDF-4's use of it.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

__all__ = ["dimensions_of", "is_bare_dimension", "is_bookkeeping", "name_dimensions"]

_BARE: Final = b"This is a netCDF dimension but not a netCDF variable"
"""How the NAME of a scale begins that has no values."""
_OF_ALL: Final = frozenset({"DIMENSION_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid", "_Netcdf4Coordinates"})
_OF_SCALES: Final = frozenset({"CLASS", "NAME", "REFERENCE_LIST"})


def is_bookkeeping(dataset: Any, name: str) -> bool:
    """Return whether an attribute only says which dimensions there are."""
    return name in _OF_ALL or (name in _OF_SCALES and _is_scale(dataset))


def is_bare_dimension(dataset: Any) -> bool:
    """Return whether a dataset is the name of a dimension and has no values."""
    h5ds = importlib.import_module("h5py.h5ds")
    return _is_scale(dataset) and (h5ds.get_scale_name(dataset.id) or b"").startswith(_BARE)


def _is_scale(dataset: Any) -> bool:
    found: bool = importlib.import_module("h5py.h5ds").is_scale(dataset.id)
    return found


def _base(dataset: Any) -> str:
    """Return the last part of a dataset's name."""
    return str(dataset.name or "").rpartition("/")[2]


def dimensions_of(dataset: Any) -> tuple[str, ...] | None:
    """Return the name of each dimension, empty for one without; None if none has a name."""
    names = []
    for dimension in dataset.dims:
        scales = dimension.values() if len(dimension) else []
        names.append(next(iter(map(_base, scales)), "") or dimension.label)
    if len(names) == 1 and not names[0] and _is_scale(dataset):
        names = [_base(dataset)]  # a coordinate is its own dimension
    return tuple(names) if any(names) else None


def name_dimensions(dataset: Any, dimensions: tuple[str, ...] | None) -> None:
    """Give the dimensions of a new dataset their names."""
    h5py = importlib.import_module("h5py")
    group = dataset.parent
    for axis, name in enumerate(dimensions or ()):
        length = dataset.shape[axis]
        if not name:
            continue
        if name == _base(dataset) and dataset.ndim == 1:
            dataset.make_scale(name)
            continue
        if name not in group and "/" not in name and name != ".":
            scale = group.create_dataset(name, (length,), ">f4")
            scale.make_scale(f"{_BARE.decode()}.{length:10d}")
        scale = group.get(name)
        if isinstance(scale, h5py.Dataset) and scale != dataset and _is_scale(scale) and scale.shape == (length,):
            dataset.dims[axis].attach_scale(scale)
        else:
            dataset.dims[axis].label = name
