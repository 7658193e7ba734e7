"""Axes of arrays, and of views: the same super-chunk with axes of length 1 added or left out.

Source: docs/format/b2nd.md, "Rules for a safe reader".
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias

from superchunk.exceptions import ArgumentError
from superchunk.params import MAX_DIM

__all__ = ["Axes", "axes_added", "axes_left", "checked_axes"]

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


def axes_left(shape: tuple[int, ...], axis: Axes) -> tuple[int, ...]:
    """Return the axes of an array of `shape` that a view without `axis` shows.

    Raises
    ------
    ArgumentError
        One is not of length 1, named twice, or there is none such; a ValueError and a RuntimeError.

    """
    axes = checked_axes(axis, len(shape))
    for at in axes:
        if shape[at] != 1:
            msg = f"axis {at}: expected length 1, got {shape[at]}"
            raise ArgumentError(msg)
    return tuple(at for at in range(len(shape)) if at not in axes)


def axes_added(ndim: int, axis: Axes) -> tuple[int | None, ...]:
    """Return the axes of an array of `ndim` dimensions that a view with new ones at `axis` shows, None for those.

    Raises
    ------
    ArgumentError
        There would be more than 16 dimensions, or a place is named twice or impossible; a ValueError.

    """
    total = ndim + (len(axis) if isinstance(axis, Sequence) else 1)
    if total > MAX_DIM:
        msg = f"axis: expected at most {MAX_DIM} dimensions, got {total}"
        raise ArgumentError(msg)
    new = checked_axes(axis, total)
    old = iter(range(ndim))
    return tuple(None if at in new else next(old) for at in range(total))
