"""Fresh arrays for what is read.

Small ones are NumPy's. Of large ones most of the price is that the system clears each page, so their memory is
kept when they are no longer needed (`io/src/memory/buffer_pool.rs`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from superchunk import _engine

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["fresh"]

_LARGE: Final = 4 * 1024 * 1024
"""Bytes from which on memory is kept: below, the C library keeps it."""


def fresh(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array with anything in it, for a dtype without objects."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes >= _LARGE:
        try:
            memory = _engine.Memory(nbytes)
        except MemoryError:
            pass  # NumPy says what is wrong, if anything is
        else:
            return np.ndarray(shape, dtype, memory)
    return np.empty(shape, dtype)
