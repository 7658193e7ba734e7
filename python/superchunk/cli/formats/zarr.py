"""Zarr arrays of format 2 and 3 in a directory, through the package zarr."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk.cli.errors import Failure
from superchunk.cli.formats.attributes import DIMENSIONS, as_json, dimensions_in
from superchunk.cli.formats.base import FOREIGN, Source, Target, blosc_shuffle, fill_bytes, require, sensible_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from superchunk.cli.formats.base import Box, Plan

__all__ = ["ZarrSource", "ZarrTarget", "create", "open_source"]


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Leave out what the package warns of: that other readers may not know a dtype, for the most part."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class ZarrSource(Source):
    """An array in a directory."""

    def __init__(self, path: str) -> None:
        zarr = require("zarr", "zarr", f"{path}: Zarr")
        try:
            with _quietly():
                found = zarr.open(path, mode="r")
        except FOREIGN as error:  # what is missing in its JSON is a KeyError of one word
            raise Failure(f"{path}: Zarr cannot open it, {type(error).__name__}: {error}") from error
        if isinstance(found, zarr.Group):
            names = ", ".join(sorted(f"{path.rstrip('/')}/{name}" for name in found.array_keys())) or "none"
            raise Failure(f"{path}: is a Zarr group; expected one of its arrays: {names}")
        self._array: Any = found
        self._path = path
        dtype = np.dtype(found.dtype)
        if dtype.hasobject or dtype.kind == "T":
            raise Failure(f"{path}: items of dtype {dtype} do not have one size")
        self.shape, self.dtype = tuple(found.shape), dtype
        self.chunks = tuple(max(int(part), 1) for part in found.chunks)
        self._fill = fill_bytes(found.fill_value, dtype)
        self.fill = self._fill if self._fill is not None and any(self._fill) else None
        self.attributes = dict(found.attrs.asdict())
        ndim = len(self.shape)
        self.dimensions = dimensions_in(getattr(found.metadata, "dimension_names", None), ndim)
        if self.dimensions is None:  # format 2 says them in an attribute, as xarray does
            self.dimensions = dimensions_in(self.attributes.get(DIMENSIONS), ndim)
            if self.dimensions is not None:
                del self.attributes[DIMENSIONS]

    def read(self, box: Box) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the items of a box, of its shape."""
        with _quietly():
            return np.asarray(self._array[box], self.dtype)

    def visit_written(self, visit: Callable[[tuple[int, ...]], object]) -> bool:
        """Tell the first item of each chunk, or of each shard, that has a file."""
        if self._fill is None:
            return False
        sides = self._array.shards or self._array.chunks
        for folder, _, names in os.walk(self._path):
            for name in names:
                key = Path(folder, name).relative_to(self._path).as_posix()
                place = tuple(map(int, re.findall(r"\d+", key)))
                if len(place) == len(self.shape) and self._array.metadata.encode_chunk_key(place) == key:
                    visit(tuple(at * side for at, side in zip(place, sides, strict=True)))
        return True

    def close(self) -> None:
        """Do nothing: no file stays open."""


@dataclass(slots=True, kw_only=True)
class ZarrTarget(Target):
    """A new array in a directory."""

    array: Any
    attributes: dict[str, object]

    def write(self, box: Box, values: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Write the items of a box."""
        with _quietly():
            self.array[box] = values

    def set_attribute(self, name: str, value: object) -> None:
        """Keep a value for `finish`."""
        self.attributes[name] = as_json(value)

    def finish(self) -> None:
        """Write the attributes, all at once."""
        if self.attributes:
            self.array.attrs.update(self.attributes)

    def close(self) -> None:
        """Wait for what is still being written: after an error the package goes on with the other chunks."""
        sync = require("zarr.core.sync", "zarr", "Zarr")
        sync.sync(_others_end())


async def _others_end() -> None:
    """Wait until nothing else runs in this loop, however it ends."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


def open_source(place: str) -> ZarrSource:
    """Open the array at `place`."""
    return ZarrSource(place)


def create(place: Path, plan: Plan) -> ZarrTarget:
    """Make an array at `place`, which must not exist."""
    zarr = require("zarr", "zarr", f"{place.name}: Zarr")
    chunks = sensible_chunks(plan)
    version = _version(plan)
    fill = None if plan.fill is None else np.frombuffer(plan.fill, plan.dtype)[0]
    with _quietly():
        array = zarr.create_array(
            store=str(place),
            shape=plan.shape,
            dtype=plan.dtype,
            chunks=chunks,
            compressors=_compressor(plan, version),
            fill_value=zarr.core.array.DEFAULT_FILL_VALUE if fill is None else fill,
            zarr_format=version,
            dimension_names=_names(plan) if version == 3 else None,
        )
    if np.dtype(array.dtype) != plan.dtype:
        raise Failure(f"Zarr format {version} changes the dtype {plan.dtype} to {array.dtype}")
    target = ZarrTarget(chunks=chunks, begins_filled=True, array=array, attributes={})
    target.resolved = {"chunks": list(chunks), "zarr_format": version}
    if version == 2 and plan.dimensions is not None:
        if all(plan.dimensions):
            target.attributes[DIMENSIONS] = list(plan.dimensions)
        else:
            target.without_dimensions = "Zarr format 2 requires names for all dimensions or for none"
    return target


def _names(plan: Plan) -> list[str | None] | None:
    return None if plan.dimensions is None else [name or None for name in plan.dimensions]


def _version(plan: Plan) -> int:
    """Return the version of the format, 2 or 3. The dtypes of format 3 have no byte order, only its codecs."""
    foreign = plan.dtype.newbyteorder("=") != plan.dtype
    if foreign and plan.zarr_format == 3:
        raise Failure(f"Zarr format 3 does not keep the byte order of the dtype {plan.dtype}; --zarr-format 2 does")
    return plan.zarr_format or (2 if foreign else 3)


def _compressor(plan: Plan, version: int) -> Any:
    """Return Blosc's codec, which every Zarr library has, with the parameters that were asked for."""
    codec = (plan.codec or "zstd").lower()
    level = 5 if plan.level is None else plan.level
    shuffle = blosc_shuffle(plan, "Zarr's codec blosc")
    if version == 2:
        numcodecs = require("numcodecs", "zarr", "Zarr")
        return numcodecs.Blosc(cname=codec, clevel=level, shuffle=("noshuffle", "shuffle", "bitshuffle").index(shuffle))
    codecs = require("zarr.codecs", "zarr", "Zarr")
    return codecs.BloscCodec(cname=codec, clevel=level, shuffle=shuffle, typesize=min(plan.itemsize, 255))
