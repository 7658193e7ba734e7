"""The memory that a NumPy array lies in, whatever its strides, for the engine to read from; whether all is one item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray as NumpyArray

__all__ = ["Memory", "lone_value", "memory_of"]

_PROBE = 4096
"""Bytes that are compared first."""


class Memory(NamedTuple):
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


def memory_of(items: NumpyArray[Any]) -> Memory:
    """Return the memory of an array of at least one item, without a copy."""
    before = behind = 0
    for length, stride in zip(items.shape, items.strides, strict=True):
        reach = (length - 1) * stride
        if stride < 0:
            before -= reach
        else:
            behind += reach
    address = items.__array_interface__["data"][0]
    span = _Span(items, address - before, before + behind + items.itemsize)
    return Memory(np.asarray(span), before)


def lone_value(items: NumpyArray[Any]) -> bytes | None:
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
