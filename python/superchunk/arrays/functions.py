"""Functions on arrays beside the class: `take`, `take_along_axis`, `reshape`, `permute_dims` and its like, `save`.

Source: the names that users of python-blosc2 know, see docs/differences.md.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from superchunk.arrays.selection import Points, out_of_bounds, select
from superchunk.arrays.views import checked_axes
from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from numpy.typing import ArrayLike
    from numpy.typing import NDArray as NumpyArray

    from superchunk.arrays.making import ArrayKeywords
    from superchunk.arrays.ndarray import NDArray
    from superchunk.arrays.selection import Cross
    from superchunk.storage.base import ChunkStore

__all__ = ["matrix_transpose", "permute_dims", "reshape", "save", "take", "take_along_axis", "transpose"]


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
    if axis is not None:
        at = checked_axes(axis, x.ndim)[0]
        return _array_of(x, lambda shape: select((*(slice(None),) * at, places), shape))

    def flattened(shape: tuple[int, ...]) -> Points:
        flat = _within(places, prod(shape), 0)
        coords = np.unravel_index(flat, shape) if shape else ()
        return Points(tuple(at.astype(np.int64, copy=False) for at in coords), places.shape)

    return _array_of(x, flattened)


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
    at = checked_axes(axis, x.ndim)[0]
    if places.ndim != x.ndim:
        msg = f"indices: expected {x.ndim} dimensions, got {places.ndim}"
        raise ValueError(msg)

    def lines(shape: tuple[int, ...]) -> Cross | Points:
        others = np.ix_(*(np.arange(1 if own == at else size) for own, size in enumerate(shape)))
        return select(tuple(places if own == at else line for own, line in enumerate(others)), shape)

    return _array_of(x, lines)


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


def _array_of(x: NDArray, chosen: Callable[[tuple[int, ...]], Cross | Points]) -> NDArray:
    """Return the items that `chosen`, told the shape, selects as an array in memory."""
    from superchunk.arrays.converting import asarray  # noqa: PLC0415  (a constructor, which may build on this)

    def ask(store: ChunkStore) -> NumpyArray[Any]:
        store.refresh()
        form = x._now(store)
        selection = chosen(form.shape)
        return np.ascontiguousarray(x._selected(store, form, selection)).reshape(selection.shape)

    return asarray(x._steadily(ask), cparams=x.cparams)


def reshape(
    src: NDArray,
    shape: Sequence[int] | int,
    c_order: bool = True,  # noqa: FBT001, FBT002  (positional for users of python-blosc2)
    **kwargs: Any,  # noqa: ANN401  (those of the constructors)
) -> NDArray:
    """Return a one-dimensional array's items as a new array of another shape; see `NDArray.reshape`."""
    return src.reshape(shape, c_order, **kwargs)


def permute_dims(
    arr: object,
    axes: Sequence[SupportsIndex] | None = None,
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return an array's items with its dimensions in another order, as `numpy.permute_dims` has them.

    It is a copy, made chunk by chunk, so that memory stays bounded; of fewer than two dimensions the array itself
    if it is an NDArray and nothing else is asked for.

    Parameters
    ----------
    arr
        What `asarray` takes.
    axes
        For each dimension of the result which one of `arr` it is; None: all in reverse order.
    **kwargs
        As for `zeros`; chunks, blocks, cparams and dparams are those of an NDArray if not given, turned with it.

    Raises
    ------
    ArgumentError
        `axes` does not name each dimension once; a ValueError.
    ValueError, StorageError
        As `zeros`.

    Examples
    --------
    >>> import numpy as np, superchunk
    >>> a = superchunk.asarray(np.arange(24).reshape(2, 3, 4))
    >>> b = permute_dims(a, (1, 2, 0))
    >>> b.shape, int(b[2, 3, 1]) == int(a[1, 2, 3])
    ((3, 4, 2), True)

    """
    given = arr if hasattr(arr, "ndim") else np.asarray(arr)
    ndim = given.ndim
    order = list(range(ndim))[::-1] if axes is None else checked_axes(axes, ndim)
    if len(order) != ndim:
        msg = f"axes: expected each of {ndim} dimensions once, got {axes}"
        raise ArgumentError(msg)
    if ndim < 2:  # noqa: PLR2004  (nothing to turn)
        from superchunk.arrays.converting import asarray  # noqa: PLC0415  (a constructor, which may build on this)

        return asarray(given, **kwargs)
    from superchunk.arrays.reshaping import permuted  # noqa: PLC0415  (likewise)

    return permuted(given, order, kwargs)


def matrix_transpose(arr: object, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
    """Return an array's items with the last two dimensions in reverse order; see `permute_dims`."""
    given = arr if hasattr(arr, "ndim") else np.asarray(arr)
    axes = list(range(given.ndim))
    axes[-2:] = axes[-2:][::-1]
    return permute_dims(given, axes, **kwargs)


def transpose(x: object, axes: Sequence[SupportsIndex] | None = None, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
    """Return `permute_dims` by the name that NumPy has for it."""
    return permute_dims(x, axes, **kwargs)


def save(
    array: NDArray,
    urlpath: str | os.PathLike[str],
    contiguous: bool = True,  # noqa: FBT001, FBT002  (as in python-blosc2)
    **kwargs: Any,  # noqa: ANN401  (those of the constructors)
) -> None:
    """Write a copy of `array` to a file, or with `contiguous` False to a directory; see `NDArray.save`."""
    array.save(urlpath, contiguous, **kwargs)
