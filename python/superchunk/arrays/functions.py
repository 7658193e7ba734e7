"""Functions on arrays beside the class: `take`, `take_along_axis`, `reshape`, `save`.

Source: the names that users of python-blosc2 know, see docs/differences.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk.arrays.selection import Points, out_of_bounds, select
from superchunk.arrays.views import checked_axes

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import ArrayLike
    from numpy.typing import NDArray as NumpyArray

    from superchunk.arrays.ndarray import NDArray
    from superchunk.arrays.selection import Cross
    from superchunk.storage.base import ChunkStore

__all__ = ["reshape", "save", "take", "take_along_axis"]


def take(x: NDArray, indices: ArrayLike, axis: int | None = None) -> NDArray:
    """Return the items at positions along an axis, as `numpy.take` does, as an NDArray in memory.

    Parameters
    ----------
    x
        The array.
    indices
        Integers of any shape.
    axis
        Which axis; None: positions in the flattened array.

    Raises
    ------
    TypeError
        `indices` are no integers.
    ArgumentError
        There is no such axis; a ValueError.
    IndexError
        A position is outside the array.

    """
    places = _integers(indices)
    shape = x.shape
    if axis is None:
        flat = _within(places, x.size, 0)
        coords = np.unravel_index(flat, shape) if shape else ()
        return _array_of(x, Points(tuple(at.astype(np.int64, copy=False) for at in coords), places.shape))
    at = checked_axes(axis, len(shape))[0]
    return _array_of(x, select((*(slice(None),) * at, places), shape))


def take_along_axis(x: NDArray, indices: ArrayLike, axis: int = -1) -> NDArray:
    """Return for each line along an axis the items at its own positions, as `numpy.take_along_axis` does.

    Parameters
    ----------
    x
        The array.
    indices
        Integers, in as many dimensions as `x`, which broadcast against it but along `axis`.
    axis
        Which axis.

    Raises
    ------
    TypeError
        `indices` are no integers.
    ArgumentError
        There is no such axis; a ValueError.
    ValueError
        Another number of dimensions.
    IndexError
        A position is outside the array, or shapes do not go together.

    """
    places = _integers(indices)
    shape = x.shape
    at = checked_axes(axis, len(shape))[0]
    if places.ndim != len(shape):
        msg = f"indices: expected {len(shape)} dimensions, got {places.ndim}"
        raise ValueError(msg)
    lines = np.ix_(*(np.arange(1 if own == at else size) for own, size in enumerate(shape)))
    key = tuple(places if own == at else line for own, line in enumerate(lines))
    return _array_of(x, select(key, shape))


def _integers(indices: ArrayLike) -> NumpyArray[Any]:
    places = np.asarray(indices)
    if places.dtype.kind not in "iu" and (places.size or isinstance(indices, np.ndarray)):
        msg = f"indices: expected integers, got {places.dtype}"
        raise TypeError(msg)
    return places if places.dtype.kind in "iu" else places.astype(np.int64)


def _within(places: NumpyArray[Any], size: int, axis: int) -> NumpyArray[np.int64]:
    """Return positions counted from the start."""
    flat = places.astype(np.int64)
    outside = (flat < -size) | (flat >= size)
    if outside.any():
        raise out_of_bounds(int(flat[outside][0]), axis, size)
    return np.where(flat < 0, flat + size, flat)


def _array_of(x: NDArray, selection: Cross | Points) -> NDArray:
    """Return the items of a selection as an array in memory."""
    from superchunk.arrays.converting import asarray  # noqa: PLC0415  (a constructor, which may build on this)

    def ask(store: ChunkStore) -> NumpyArray[Any]:
        store.refresh()
        x._now(store)
        return x._selected(store, selection)

    found: NDArray = asarray(np.ascontiguousarray(x._steadily(ask)).reshape(selection.shape), cparams=x.cparams)
    return found


def reshape(
    src: NDArray,
    shape: Sequence[int] | int,
    c_order: bool = True,  # noqa: FBT001, FBT002  (positional for users of python-blosc2)
    **kwargs: Any,  # noqa: ANN401  (those of the constructors)
) -> NDArray:
    """Return a one-dimensional array's items as a new array of another shape; see `NDArray.reshape`."""
    return src.reshape(shape, c_order, **kwargs)


def save(
    array: NDArray,
    urlpath: str | os.PathLike[str],
    contiguous: bool = True,  # noqa: FBT001, FBT002  (as in python-blosc2)
    **kwargs: Any,  # noqa: ANN401  (those of the constructors)
) -> None:
    """Write a copy of `array` to a file, or with `contiguous` False to a directory; see `NDArray.save`."""
    array.save(urlpath, contiguous, **kwargs)
