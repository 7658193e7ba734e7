"""Views: the same super-chunk with axes of length 1 put in or left out.

Source: docs/format/b2nd.md, "Rules for a safe reader".
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

from superchunk.arrays.base import ArrayBase
from superchunk.exceptions import ArgumentError
from superchunk.params import MAX_DIM

if TYPE_CHECKING:
    from superchunk.arrays.ndarray import NDArray

__all__ = ["Axes", "checked_axes", "expand_dims", "squeeze"]

Axes: TypeAlias = "SupportsIndex | Sequence[SupportsIndex]"


def checked_axes(axis: Axes, ndim: int) -> list[int]:
    """Return axes as numbers from 0, in the order given.

    Raises
    ------
    ArgumentError
        There is no such axis, or one is named twice.

    """
    given = axis if isinstance(axis, Sequence) else [axis]
    axes = []
    for one in map(operator.index, given):
        at = one + ndim if one < 0 else one
        if not 0 <= at < ndim:
            msg = f"axis: expected {-ndim} to {ndim - 1}, got {one}"
            raise ArgumentError(msg)
        axes.append(at)
    if len(set(axes)) < len(axes):
        msg = f"axis: expected each axis once, got {axis}"
        raise ArgumentError(msg)
    return axes


def _check_array(name: str, array: object) -> None:
    if not isinstance(array, ArrayBase):
        msg = f"{name}: expected an NDArray, of which a view can be made, got {type(array).__name__}"
        raise TypeError(msg)


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
    shape = x.shape
    axes = checked_axes(axis, len(shape))
    for at in axes:
        if shape[at] != 1:
            msg = f"axis {at}: expected length 1, got {shape[at]}"
            raise ArgumentError(msg)
    return type(x)._view_of(x, tuple(at for at in range(len(shape)) if at not in axes))


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
    count = len(axis) if isinstance(axis, Sequence) else 1
    ndim = array.ndim + count
    if ndim > MAX_DIM:
        msg = f"axis: expected at most {MAX_DIM} dimensions, got {ndim}"
        raise ArgumentError(msg)
    new = checked_axes(axis, ndim)
    old = iter(range(array.ndim))
    return type(array)._view_of(array, tuple(None if at in new else next(old) for at in range(ndim)))
