"""Items of a NumPy array, whatever its strides, compressed into one chunk.

The engine reads the items from the memory that holds them. A whole chunk of one repeated item is detected first and
becomes a special chunk, which stores no items; padding does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superchunk import _engine
from superchunk._codec.special_values import marked_as_data
from superchunk.params import MAX_HEADER_TYPESIZE, SpecialValue

if TYPE_CHECKING:
    from numpy.typing import NDArray as NumpyArray

__all__ = ["memory_of", "pack_items", "single_value"]

_PROBE = 4096
"""Bytes that are compared first."""


def pack_items(
    geometry: _engine.Geometry, params: _engine.EncodeParams, items: NumpyArray[Any], *, whole: bool
) -> bytes:
    """Return a chunk whose first items in each dimension are `items`, all others zero.

    Parameters
    ----------
    geometry, params
        Of the chunk.
    items
        At least one, of the array's dtype.
    whole
        They are all that the chunk has, and are stored as they are: a chunk of one value becomes a special chunk.

    """
    if whole and items.itemsize <= MAX_HEADER_TYPESIZE:
        value = single_value(items)
        if value is not None:
            kind, item = (SpecialValue.VALUE, value) if any(value) else (SpecialValue.ZERO, None)
            chunk = _engine.special_chunk(
                kind.value, geometry.chunk_nbytes, items.itemsize, item, geometry.block_nbytes
            )
            return chunk if item is None else marked_as_data(chunk)
    memory = memory_of(items)
    return _engine.pack(geometry, params, memory.bytes, memory.offset, items.strides, items.shape)


class _Memory(NamedTuple):
    """Memory that an array lies in."""

    bytes: NumpyArray[np.uint8]
    """All of it, from the first to the last byte of any item."""
    offset: int
    """At which byte the first item begins."""


class _Span:
    """A range of addresses, which keeps the array alive that they belong to."""

    __slots__ = ("__array_interface__", "array")

    def __init__(self, array: NumpyArray[Any], address: int, nbytes: int) -> None:
        self.array = array
        self.__array_interface__ = {"data": (address, True), "shape": (nbytes,), "typestr": "|u1", "version": 3}


def memory_of(items: NumpyArray[Any]) -> _Memory:
    """Return the memory of an array of at least one item, without a copy."""
    if items.flags.c_contiguous:
        return _Memory(items.reshape(-1).view(np.uint8), 0)
    before = behind = 0
    for length, stride in zip(items.shape, items.strides, strict=True):
        reach = (length - 1) * stride
        if stride < 0:
            before -= reach
        else:
            behind += reach
    address = items.__array_interface__["data"][0]
    span = _Span(items, address - before, before + behind + items.itemsize)
    return _Memory(np.asarray(span), before)


def single_value(items: NumpyArray[Any]) -> bytes | None:
    """Return the bytes of the item that all of `items`, at least one, are; None if they are several."""
    if not any(items.strides):
        return items.reshape(-1)[:1].tobytes()
    first, last = (items[(*(at,) * items.ndim, ...)].tobytes() for at in (0, -1))
    if first != last:
        return None
    width = items.itemsize
    row = items[(0,) * (items.ndim - 1)] if items.ndim else items.reshape(1)
    if row[: max(_PROBE // width, 1)].tobytes() != first * min(len(row), max(_PROBE // width, 1)):
        return None  # nearly always the first few items tell
    raw = np.ascontiguousarray(items).reshape(-1).view(np.uint8)
    return first if np.array_equal(raw[width:], raw[:-width]) else None
