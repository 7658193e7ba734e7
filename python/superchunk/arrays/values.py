"""What is assigned to a part of an array, laid out like that part, piece by piece.

A value that is an `NDArray` is read as it was when the change began, so that an array may be assigned to
another part of itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from superchunk._handle import Handle
from superchunk.arrays.base import ArrayBase
from superchunk.arrays.reading import read_selection
from superchunk.arrays.selection import Cross, select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray as NumpyArray

    from superchunk.arrays.selection import Points

__all__ = ["ArrayValues", "snapshot_of", "values_for"]

_PLAIN_BYTES = "SVU"


class Values(Protocol):
    """Items for a selection."""

    def part(self, given: Sequence[slice | NumpyArray[np.int64]]) -> NumpyArray[Any]:
        """Return the items for some of a `Cross`'s positions in each dimension."""
        ...

    def all(self) -> NumpyArray[Any]:
        """Return them all, in the selection's shape."""
        ...


def values_for(value: object, dtype: np.dtype[Any], selection: Cross | Points) -> Values:
    """Return `value`, broadcast to a selection.

    Parameters
    ----------
    value
        A scalar, array, buffer or NDArray.
    dtype
        What it will be cast to, with the shape of a sub-array if it has one.
    selection
        Of all dimensions.

    Raises
    ------
    ValueError, TypeError
        It does not broadcast, or is nothing that can be cast.

    """
    base, inner = dtype.base, dtype.shape
    if isinstance(value, ArrayBase):
        if isinstance(selection, Cross) and _in_order(selection) and not inner:
            return _Compressed(value, selection)
        still = snapshot_of(value)
        value = _read(still, select((), still.shape))
    items = _as_array(value, base, selection, inner)
    wanted = (*selection.shape, *inner)
    while items.ndim > len(wanted) and items.shape[0] == 1:
        items = items[0]
    try:
        laid = np.broadcast_to(items, wanted)
    except ValueError:
        msg = f"could not broadcast input array from shape {items.shape} into shape {wanted}"
        raise ValueError(msg) from None
    return ArrayValues(laid, selection, len(inner), lone=items.size == 1)


def _as_array(
    value: object, dtype: np.dtype[Any], selection: Cross | Points, inner: tuple[int, ...]
) -> NumpyArray[Any]:
    """Return any value as an array; bytes are the items themselves, unless items are bytes."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, bytes | bytearray | memoryview) and dtype.kind not in _PLAIN_BYTES:
        view = memoryview(value)
        if view.format in ("B", "b", "c") and dtype.kind != "b" and dtype.itemsize > 1:
            return np.frombuffer(view, dtype).reshape((*selection.shape, *inner))
        return np.frombuffer(value, dtype) if isinstance(value, bytes) else np.asarray(value)
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
        return np.asarray(value)
    return np.asarray(value, dtype)


class ArrayValues:
    """Items in a NumPy array.

    Parameters
    ----------
    laid
        They, in the selection's shape, and behind it that of a sub-array.
    selection
        Where they go.
    ninner
        Dimensions of the sub-array.
    lone
        Whether they are all one item.

    """

    def __init__(self, laid: NumpyArray[Any], selection: Cross | Points, ninner: int, *, lone: bool) -> None:
        self.lone = lone
        self._laid = laid
        self._crossed = laid
        if isinstance(selection, Cross):
            self._crossed = selection.disarranged(laid, ninner)

    def part(self, given: Sequence[slice | NumpyArray[np.int64]]) -> NumpyArray[Any]:
        """Return the items for some of the positions in each dimension."""
        # The ellipsis keeps an array of what would be a scalar otherwise, in native byte order.
        ranges: list[Any] = [part if isinstance(part, slice) else slice(None) for part in given]
        items: NumpyArray[Any] = self._crossed[(*ranges, ...)]
        for axis, part in enumerate(given):
            if not isinstance(part, slice):
                items = items.take(part, axis=axis)
        return items

    def all(self) -> NumpyArray[Any]:
        """Return them all."""
        return self._laid


def _in_order(cross: Cross) -> bool:
    """Return whether the result has the dimensions of the combinations, but for some of length 1."""
    found, combined = ([length for length in lengths if length != 1] for lengths in (cross.shape, cross.counts))
    return cross.order is None and found == combined


class _Compressed:
    """Items of an NDArray, decoded as they are needed."""

    def __init__(self, value: ArrayBase, cross: Cross) -> None:
        array = snapshot_of(value)
        shape = array._form.shape
        while len(shape) > len(cross.shape) and shape[0] == 1:
            shape = shape[1:]
        if len(shape) > len(cross.shape) or any(
            size not in (1, wanted) for size, wanted in zip(shape[::-1], cross.shape[::-1], strict=False)
        ):
            msg = f"could not broadcast input array from shape {array._form.shape} into shape {cross.shape}"
            raise ValueError(msg)
        self._array = array
        self._cross = cross
        # A dimension of length 1 may be missing on either side; the others come in the same order.
        counts = cross.counts
        self._axes: list[int | None] = [None] * array.ndim
        result = len(cross.shape)
        axis = len(counts)
        for at in range(array.ndim - 1, -1, -1):
            result -= 1
            if result < 0 or cross.shape[result] == 1:
                continue
            axis -= 1
            while counts[axis] == 1:
                axis -= 1
            if array.shape[at] != 1:
                self._axes[at] = axis

    def part(self, given: Sequence[slice | NumpyArray[np.int64]]) -> NumpyArray[Any]:
        """Return the items for some of the positions in each dimension."""
        key = tuple(slice(None) if axis is None else given[axis] for axis in self._axes)
        selection = _crossed(key, self._array.shape)
        found = _read(self._array, selection)
        varying = {axis: found.shape[at] for at, axis in enumerate(self._axes) if axis is not None}
        counts = self._cross.counts
        lengths = [
            len(range(*part.indices(count))) if isinstance(part, slice) else len(part)
            for part, count in zip(given, counts, strict=True)
        ]
        return np.broadcast_to(found.reshape([varying.get(axis, 1) for axis in range(len(counts))]), lengths)

    def all(self) -> NumpyArray[Any]:
        """Return them all."""
        return np.broadcast_to(_read(self._array, select((), self._array.shape)), self._cross.shape)


def _crossed(key: Sequence[slice | NumpyArray[np.int64]], shape: tuple[int, ...]) -> Cross:
    axes = tuple(
        range(*part.indices(size)) if isinstance(part, slice) else part for part, size in zip(key, shape, strict=True)
    )
    return Cross(axes, tuple(map(len, axes)))


def _read(array: ArrayBase, selection: Cross | Points) -> NumpyArray[Any]:
    return read_selection(array.schunk, array._handle.opened(), array._form, selection)


def snapshot_of(array: ArrayBase) -> ArrayBase:
    """Return an array of the same items that no later change reaches."""
    from superchunk.schunk import SChunk  # noqa: PLC0415  (made here only)
    from superchunk.storage.memory import MemoryStore  # noqa: PLC0415  (as above)

    handle = array._handle
    schunk = SChunk._of_handle(Handle(MemoryStore.over(handle.fresh())), None, array.dparams)
    schunk._postfilter = array.schunk._postfilter
    still = ArrayBase(schunk)
    return still if array._base is None else ArrayBase._view_of(still, array._axes)
