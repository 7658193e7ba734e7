"""Arrays in Blosc2 frames: `superchunk.NDArray`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import superchunk
from superchunk.cli.formats.base import Source, Target
from superchunk.cli.formats.blosc2_attributes import (
    attributes_of,
    cparams_for,
    read_dimensions,
    read_fill,
    record,
    record_dimensions,
    record_fill,
)
from superchunk.cli.formats.frame import FrameSource

if TYPE_CHECKING:
    from pathlib import Path

    from superchunk import NDArray
    from superchunk.cli.formats.base import Box, Plan

__all__ = ["ArraySource", "ArrayTarget", "create", "open_source"]


class ArraySource(Source):
    """An array in a frame."""

    def __init__(self, array: NDArray) -> None:
        self._array = array
        self.shape, self.dtype = tuple(array.shape), array.dtype
        self.chunks = tuple(max(part, 1) for part in array.chunks)
        self.fill = read_fill(array.schunk, self.dtype)
        self.dimensions = read_dimensions(array.schunk, len(self.shape))
        self.attributes = attributes_of(array.schunk, self.dimensions)

    def read(self, box: Box) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the items of a box, of its shape."""
        values: np.ndarray[Any, np.dtype[Any]] = self._array[box]
        return values

    def pick(self, key: tuple[slice | int, ...]) -> np.ndarray[Any, np.dtype[Any]]:
        """Return ``array[key]``, steps included."""
        values: np.ndarray[Any, np.dtype[Any]] = self._array[key]
        return values

    def close(self) -> None:
        """Close the frame."""
        self._array.schunk.close()


@dataclass(slots=True, kw_only=True)
class ArrayTarget(Target):
    """A new array."""

    array: NDArray

    def write(self, box: Box, values: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Write the items of a box."""
        self.array[box] = values

    def set_attribute(self, name: str, value: object) -> None:
        """Keep a value in a vlmetalayer."""
        record(self.array.schunk, name, value)

    def close(self) -> None:
        """Close the frame."""
        self.array.schunk.close()


def open_source(place: str) -> Source:
    """Open the array at `place`, or the stream of items that is there instead."""
    opened: Any = superchunk.open(place, snapshot=True)
    try:
        return FrameSource(opened) if isinstance(opened, superchunk.SChunk) else ArraySource(opened)
    except BaseException:
        getattr(opened, "schunk", opened).close()
        raise


def create(place: Path, plan: Plan) -> ArrayTarget:
    """Make an array at `place`, which must not exist."""
    fill: Any = 0 if plan.fill is None else np.frombuffer(plan.fill, plan.dtype)[0]
    repeated = plan.fill is not None and plan.dtype.kind in "biufc"  # of other kinds it is written like all items
    array = (partial(superchunk.full, fill_value=fill) if repeated else superchunk.zeros)(
        plan.shape,
        dtype=plan.dtype,
        chunks=plan.chunks,
        blocks=plan.blocks,
        cparams=cparams_for(plan),
        urlpath=str(place),
        mode="w",
        contiguous=plan.contiguous,
    )
    record_fill(array.schunk, plan.fill)
    record_dimensions(array.schunk, plan.dimensions)
    target = ArrayTarget(
        chunks=tuple(max(part, 1) for part in array.chunks), begins_filled=repeated or plan.fill is None, array=array
    )
    target.resolved = {"chunks": list(array.chunks), "blocks": list(array.blocks)}
    return target
