"""Which chunks a slice intersects.

Reads nothing, and decodes nothing; how items lie in the chunks of an array is
docs/format/b2nd.md.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk._array.slice_planner import OrthogonalSelection, expanded
from superchunk._codec.chunks_of_range import chunks_of
from superchunk.exceptions import ArgumentError
from superchunk.schunk import SChunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["get_slice_nchunks"]


def get_slice_nchunks(schunk: Any, key: Any) -> NDArray[np.int64]:
    """Return the numbers of the chunks that a slice intersects.

    Parameters
    ----------
    schunk
        A `SChunk`, an `NDArray` or a field of one.
    key
        For a SChunk items: an integer, a slice, or the two ends as a tuple. For an array an
        integer, a slice, `...`, or a tuple of these. Steps are 1.

    Returns
    -------
    ndarray
        Chunk numbers, ascending, int64; none for an empty slice.

    Raises
    ------
    IndexError
        There is no such item, there are more indices than dimensions, or a step other
        than 1.
    TypeError
        `key` is something else.

    Examples
    --------
    >>> s = SChunk(data=bytes(range(100)), chunksize=10)
    >>> get_slice_nchunks(s, (5, 25))
    array([0, 1, 2])

    """
    if isinstance(schunk, SChunk):
        return _of_items(schunk, key)
    if not hasattr(schunk, "schunk"):
        msg = f"schunk: expected a SChunk or an NDArray, got {type(schunk).__name__}"
        raise TypeError(msg)
    return _of_array(schunk, key)


def _of_items(schunk: SChunk, key: Any) -> NDArray[np.int64]:
    """Return the chunks of a list of items."""
    if isinstance(key, (tuple, list)):
        if len(key) != 2:
            msg = f"key: expected the two ends of a slice, got {len(key)} values"
            raise ArgumentError(msg)
        key = slice(*key)
    span = _span(key, len(schunk))
    if not span:
        return np.empty(0, dtype=np.int64)
    store = schunk._handle.store
    typesize = schunk.typesize
    span_of = chunks_of(store, span.start * typesize, span.stop * typesize)
    return np.arange(span_of.start, span_of.stop, dtype=np.int64)


def _of_array(array: Any, key: Any) -> NDArray[np.int64]:
    """Return the chunks of an array, or of a field with the dimensions of a sub-array behind the array's."""
    given = [
        part if part is None or part is Ellipsis or isinstance(part, slice) else operator.index(part)
        for part in (key if isinstance(key, tuple) else (key,))
    ]
    shape, geometry = array.shape, getattr(array, "ndarr", array)._refreshed()
    parts = [part for part in expanded(tuple(given), len(shape)) if part is not None and part is not Ellipsis]
    spans = [_span(part, size) for part, size in zip(parts, shape, strict=True)]
    if not all(spans):
        return np.empty(0, dtype=np.int64)
    own = OrthogonalSelection(tuple(spans[: geometry.ndim]), ())
    box = [(span.start, span.stop, 1) for span in geometry.physical(own).axes]
    return np.array(geometry.chunk_numbers(box), dtype=np.int64)


def _span(key: Any, size: int) -> range:
    """Return the positions that an integer or a slice means along `size` items."""
    if not isinstance(key, slice):
        number = operator.index(key)
        if not -size <= number < size:
            msg = f"index {number}: expected {-size} to {size - 1}"
            raise IndexError(msg)
        number %= size
        return range(number, number + 1)
    start, stop, step = key.indices(size)
    if step != 1:
        msg = f"step: expected 1, got {step}"
        raise IndexError(msg)
    return range(start, stop)
