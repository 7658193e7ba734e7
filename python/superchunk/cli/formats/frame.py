"""Blosc2 frames: a stream of items, as ``superchunk compress`` makes it of a ``.npy`` file.

dtype and shape are recorded as `superchunk.cli.layout` says. Of a frame that says nothing about its items they are
bytes, or void of the frame's typesize, in one dimension.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import superchunk
from superchunk.cli.formats.base import Target
from superchunk.cli.formats.blosc2_attributes import (
    attributes_of,
    cparams_for,
    read_dimensions,
    read_fill,
    record,
    record_dimensions,
    record_fill,
)
from superchunk.cli.formats.npy import header_for
from superchunk.cli.formats.stream import StreamSource, flat_bytes
from superchunk.cli.layout import Layout

if TYPE_CHECKING:
    from pathlib import Path

    from superchunk import SChunk
    from superchunk.cli.formats.base import Box, Plan

__all__ = ["FrameSource", "FrameTarget", "create"]

_CHUNKSIZE = 2**22
"""Bytes of a chunk, unless others are asked for: those of ``superchunk compress``."""


class FrameSource(StreamSource):
    """A frame of items."""

    def __init__(self, schunk: SChunk) -> None:
        self._schunk = schunk
        layout = Layout.of(schunk)
        typesize = schunk.typesize
        if layout.header is not None:
            header = layout.header
            self.shape, self.dtype, self.fortran_order = header.shape, header.dtype, header.fortran_order
        else:
            plain = np.dtype(np.uint8) if typesize == 1 else np.dtype(f"V{typesize}")
            self.dtype = plain if layout.dtype is None else layout.dtype
            self.shape = (schunk.nbytes // self.dtype.itemsize,)
        self.fill = read_fill(schunk, self.dtype)
        self.dimensions = read_dimensions(schunk, len(self.shape))
        self.attributes = attributes_of(schunk, self.dimensions)

    def read_into(self, at: int, out: memoryview) -> None:
        """Fill `out` from byte `at` of the items on."""
        typesize = self._schunk.typesize
        first, skipped = divmod(at, typesize)
        stop = -(-(at + len(out)) // typesize)
        if not skipped and stop * typesize == at + len(out):
            self._schunk.get_slice(first, stop, out)
            return
        out[:] = self._schunk[first:stop][skipped : skipped + len(out)]

    def close(self) -> None:
        """Close the frame."""
        self._schunk.close()


@dataclass(slots=True, kw_only=True)
class FrameTarget(Target):
    """A frame of items, filled from its beginning to its end."""

    schunk: SChunk
    plan: Plan
    pending: bytearray = field(default_factory=bytearray)
    """Items that do not fill a chunk yet."""

    def write(self, box: Box, values: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Append the items of a box, which continues the one before."""
        del box
        content = flat_bytes(values)
        size = self.schunk.chunksize
        if self.pending:
            missing = min(size - len(self.pending), len(content))
            self.pending += content[:missing]
            content = content[missing:]
            if len(self.pending) < size:
                return
            self.schunk.append_data(self.pending)
            self.pending = bytearray()
        whole = len(content) - len(content) % size
        for at in range(0, whole, size):
            self.schunk.append_data(content[at : at + size])
        self.pending += content[whole:]

    def set_attribute(self, name: str, value: object) -> None:
        """Keep a value in a vlmetalayer."""
        record(self.schunk, name, value)

    def finish(self) -> None:
        """Write the rest, and what the items are."""
        if self.pending:
            self.schunk.append_data(self.pending)
        Layout(header=header_for(self.plan.dtype, self.plan.shape)).record(self.schunk)

    def close(self) -> None:
        """Close the frame."""
        self.schunk.close()


def create(place: Path, plan: Plan) -> FrameTarget:
    """Make a frame at `place`, which must not exist."""
    header_for(plan.dtype, plan.shape)
    size = max((plan.chunksize or _CHUNKSIZE) // plan.itemsize, 1) * plan.itemsize
    schunk = superchunk.SChunk(
        chunksize=size, cparams=cparams_for(plan), urlpath=str(place), mode="w", contiguous=plan.contiguous
    )
    record_fill(schunk, plan.fill)
    record_dimensions(schunk, plan.dimensions)
    target = FrameTarget(chunks=None, sequential=True, schunk=schunk, plan=plan)
    target.resolved = {"chunksize": size}
    return target
