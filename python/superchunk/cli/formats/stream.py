"""An array whose items stand one after the other: what ``.npy`` files and streams in frames have in common.

Boxes become runs of items, which are read into one buffer. An array in Fortran order is the transposed one in C order.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk.cli.formats.base import Source
from superchunk.cli.formats.boxes import box_shape, runs

if TYPE_CHECKING:
    from superchunk.cli.formats.base import Box

__all__ = ["StreamSource", "flat_bytes"]


def flat_bytes(values: np.ndarray[Any, np.dtype[Any]]) -> memoryview:
    """Return the bytes of an array in C order; of one that is in that order without a copy."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return memoryview(flat.view(np.uint8))


class StreamSource(Source):
    """Items in a row, in C or Fortran order."""

    fortran_order: bool = False

    @abstractmethod
    def read_into(self, at: int, out: memoryview) -> None:
        """Fill `out` with the bytes from byte `at` of the items on."""

    def read(self, box: Box) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the items of a box, of its shape."""
        if self.fortran_order:
            return self._read(self.shape[::-1], box[::-1]).T
        return self._read(self.shape, box)

    def _read(self, shape: tuple[int, ...], box: Box) -> np.ndarray[Any, np.dtype[Any]]:
        itemsize = self.dtype.itemsize
        extents = box_shape(box)
        flat = np.empty(math.prod(extents) * itemsize, np.uint8)
        out, filled = memoryview(flat), 0
        for first, count in runs(shape, box):
            self.read_into(first * itemsize, out[filled : filled + count * itemsize])
            filled += count * itemsize
        return flat.view(self.dtype).reshape(extents)
