"""Functions on arrays beside the class: `take`, `reshape`, `permute_dims`, `squeeze`, `save` and their like.

Source: the names that users of python-blosc2 know, see docs/differences.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from superchunk._array.asarray import asarray
from superchunk._array.axes import checked_axes
from superchunk._array.ndarray import NDArray
from superchunk._array.reshaping import permuted
from superchunk._array.slice_planner import checked_indices, select_taken_along
from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Unpack

    from numpy.typing import ArrayLike

    from superchunk._array.axes import Axes
    from superchunk._array.creation_plan import ArrayKeywords

__all__ = [
    "expand_dims",
    "matrix_transpose",
    "permute_dims",
    "reshape",
    "save",
    "squeeze",
    "take",
    "take_along_axis",
    "transpose",
]


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
    return x.take(indices, axis=axis)


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
    places = checked_indices(indices)
    at = checked_axes(axis, x.ndim)[0]
    if places.ndim != x.ndim:
        msg = f"indices: expected {x.ndim} dimensions, got {places.ndim}"
        raise ValueError(msg)
    return x._selected_array(lambda shape: select_taken_along(places, at, shape))


def squeeze(x: NDArray, axis: Axes) -> NDArray:
    """Return a view of `x` without axes of length 1.

    Parameters
    ----------
    x
        The array.
    axis
        Which axes to leave out.

    Raises
    ------
    ArgumentError
        One is not of length 1, named twice, or there is none such; a ValueError and a RuntimeError.

    """
    _check_array("x", x)
    return x.squeeze(axis)


def expand_dims(array: NDArray, axis: Axes = 0) -> NDArray:
    """Return a view of `array` with new axes of length 1.

    Parameters
    ----------
    array
        The array.
    axis
        Where the new axes are in the view.

    Raises
    ------
    ArgumentError
        There would be more than 16 dimensions, or a place is named twice or impossible; a ValueError.

    """
    _check_array("array", array)
    return array.expand_dims(axis)


def _check_array(name: str, array: object) -> None:
    if not isinstance(array, NDArray):
        msg = f"{name}: expected an NDArray, of which a view can be made, got {type(array).__name__}"
        raise TypeError(msg)


def reshape(
    src: NDArray,
    shape: Sequence[int] | int,
    c_order: bool = True,
    **kwargs: Any,
) -> NDArray:
    """Return a one-dimensional array's items as a new array of another shape; see `NDArray.reshape`."""
    return src.reshape(shape, c_order, **kwargs)


def permute_dims(
    arr: object,
    axes: Sequence[SupportsIndex] | None = None,
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return an array's items with its dimensions in another order, as `numpy.permute_dims` has them.

    The result is a copy, made chunk by chunk, so that memory stays bounded. An NDArray of fewer than two dimensions is
    returned itself if nothing else is asked for.

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
    if ndim < 2:  # nothing to turn
        return asarray(given, **kwargs)
    return NDArray(permuted(given, order, kwargs))


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
    contiguous: bool = True,
    **kwargs: Any,
) -> None:
    """Write a copy of `array` to a file, or with `contiguous` False to a directory; see `NDArray.save`."""
    array.save(urlpath, contiguous, **kwargs)
