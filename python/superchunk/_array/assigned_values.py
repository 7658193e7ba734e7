"""What is assigned to a part of an array, laid out like that part, piece by piece.

A value that is an `NDArray` is read as it was when the change began. An array may therefore be assigned to another part
of itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from superchunk._array.array_view import ArrayView, is_ndarray, memory_view
from superchunk._array.reading import read_selection
from superchunk._array.slice_planner import OrthogonalSelection, box_selection, select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray as NumpyArray

    from superchunk._array.slice_planner import PointSelection
    from superchunk._store.store_interface import ChunkList

__all__ = ["ArrayValues", "values_for"]

_PLAIN_BYTES = "SVU"


class Values(Protocol):
    """Items for a selection."""

    def part(self, given: Sequence[slice | NumpyArray[np.int64]]) -> NumpyArray[Any]:
        """Return the items for some of a `OrthogonalSelection`'s positions in each dimension."""
        ...

    def all(self) -> NumpyArray[Any]:
        """Return them all, in the selection's shape."""
        ...


def values_for(value: object, dtype: np.dtype[Any], selection: OrthogonalSelection | PointSelection) -> Values:
    """Return `value`, broadcast to a selection.

    Parameters
    ----------
    value
        A scalar, array, buffer, NDArray, or the view of one that does not change.
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
    if isinstance(value, ArrayView) or is_ndarray(value):
        view = value if isinstance(value, ArrayView) else memory_view(value)
        if isinstance(selection, OrthogonalSelection) and _in_order(selection) and not inner:
            return _Compressed(view, selection)
        value = _all_of(view)
    items = _as_array(value, base, selection, inner)
    wanted = (*selection.shape, *inner)
    while items.ndim > len(wanted) and items.shape[0] == 1:
        items = items[0]
    try:
        laid = np.broadcast_to(items, wanted)
    except ValueError:
        msg = f"could not broadcast input array from shape {items.shape} into shape {wanted}"
        raise ValueError(msg) from None
    return ArrayValues(laid, selection, len(inner), uniform=items.size == 1)


def _as_array(
    value: object, dtype: np.dtype[Any], selection: OrthogonalSelection | PointSelection, inner: tuple[int, ...]
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
    uniform
        Whether they are all one item.

    """

    def __init__(
        self, laid: NumpyArray[Any], selection: OrthogonalSelection | PointSelection, ninner: int, *, uniform: bool
    ) -> None:
        self.uniform = uniform
        self._laid = laid
        self._crossed = laid
        if isinstance(selection, OrthogonalSelection):
            self._crossed = selection.from_result(laid, ninner)

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


def _in_order(selection: OrthogonalSelection) -> bool:
    """Return whether the result has the dimensions of the combinations, but for some of length 1."""
    found, combined = ([length for length in lengths if length != 1] for lengths in (selection.shape, selection.counts))
    return selection.order is None and found == combined


class _Compressed:
    """Items of an NDArray, decoded as they are needed."""

    def __init__(self, view: ArrayView[ChunkList], selection: OrthogonalSelection) -> None:
        full = shape = view.geometry.shape
        while len(shape) > len(selection.shape) and shape[0] == 1:
            shape = shape[1:]
        if len(shape) > len(selection.shape) or any(
            size not in (1, wanted) for size, wanted in zip(shape[::-1], selection.shape[::-1], strict=False)
        ):
            msg = f"could not broadcast input array from shape {full} into shape {selection.shape}"
            raise ValueError(msg)
        self._view = view
        self._selection = selection
        # A dimension of length 1 may be missing on either side; the others come in the same order.
        counts = selection.counts
        self._axes: list[int | None] = [None] * len(full)
        result = len(selection.shape)
        axis = len(counts)
        for at in range(len(full) - 1, -1, -1):
            result -= 1
            if result < 0 or selection.shape[result] == 1:
                continue
            axis -= 1
            while counts[axis] == 1:
                axis -= 1
            if full[at] != 1:
                self._axes[at] = axis

    def part(self, given: Sequence[slice | NumpyArray[np.int64]]) -> NumpyArray[Any]:
        """Return the items for some of the positions in each dimension."""
        key = tuple(slice(None) if axis is None else given[axis] for axis in self._axes)
        found = read_selection(self._view, box_selection(key, self._view.geometry.shape))
        varying = {axis: found.shape[at] for at, axis in enumerate(self._axes) if axis is not None}
        counts = self._selection.counts
        lengths = [
            len(range(*part.indices(count))) if isinstance(part, slice) else len(part)
            for part, count in zip(given, counts, strict=True)
        ]
        return np.broadcast_to(found.reshape([varying.get(axis, 1) for axis in range(len(counts))]), lengths)

    def all(self) -> NumpyArray[Any]:
        """Return them all."""
        return np.broadcast_to(_all_of(self._view), self._selection.shape)


def _all_of(view: ArrayView[ChunkList]) -> NumpyArray[Any]:
    return read_selection(view, select((), view.geometry.shape))
