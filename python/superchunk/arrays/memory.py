"""The memory that a NumPy array lies in, whatever its strides, for the engine to read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray as NumpyArray

__all__ = ["Memory", "memory_of"]


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
