"""Items of a field of sub-arrays: an index counts the array's dimensions, and behind them the sub-arrays'.

An index that leaves sub-arrays whole is one of the array. Any other is two selections: which items of the array are
met, each once, and where in those sub-arrays the index goes; NumPy does the second.

Source: NumPy's user guide, "Structured arrays".
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superchunk._array.slice_planner import OrthogonalSelection, PointSelection, expanded, select

if TYPE_CHECKING:
    from numpy.typing import NDArray as NumpyArray

__all__ = ["Inner", "inner_selection"]


class Inner(NamedTuple):
    """An index into the dimensions of an array and of its sub-arrays."""

    items: OrthogonalSelection | PointSelection
    """Which items of the array are met."""
    within: tuple[NumpyArray[np.int64], ...]
    """Where in the sub-arrays of those: an index for NumPy, of the same order as `whole`."""
    whole: OrthogonalSelection | PointSelection
    """What is meant, as a selection of all dimensions."""

    def taken(self, found: NumpyArray[Any]) -> NumpyArray[Any]:
        """Return what is meant, of the sub-arrays that `items` selects."""
        chosen: NumpyArray[Any] = found[self.within]
        return self.whole.to_result(chosen) if isinstance(self.whole, OrthogonalSelection) else chosen

    def put(self, found: NumpyArray[Any], values: NumpyArray[Any]) -> None:
        """Put values, laid out like the result, into the sub-arrays that `items` selects."""
        found[self.within] = self.whole.from_result(values) if isinstance(self.whole, OrthogonalSelection) else values


def inner_selection(
    key: object, shape: tuple[int, ...], inner: tuple[int, ...]
) -> OrthogonalSelection | PointSelection | Inner:
    """Return what ``array["field"][key]`` means.

    Parameters
    ----------
    key
        Any index.
    shape, inner
        Those of the array, and of each sub-array.

    Returns
    -------
    OrthogonalSelection, PointSelection or Inner
        A selection of the array's items if their sub-arrays are meant as a whole.

    Raises
    ------
    IndexError
        As `select`.

    """
    outer = _outer_key(expanded(key, len(shape) + len(inner)), len(shape), inner)
    if outer is not None:
        return select(outer, shape)
    whole = select(key, (*shape, *inner))
    return _crossed(whole, len(shape)) if isinstance(whole, OrthogonalSelection) else _pointed(whole, shape)


def _outer_key(entries: list[Any], ndim: int, inner: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Return the entries for the array's own dimensions, if the others are slices of everything."""
    at = 0
    for i, entry in enumerate(entries):
        if at == ndim and entry is not Ellipsis:
            rest = [one for one in entries[i:] if one is not Ellipsis]
            plain = all(isinstance(one, slice) for one in rest) and all(
                range(*one.indices(n)) == range(n) for one, n in zip(rest, inner, strict=True)
            )
            return tuple(entries[:i]) if plain else None
        if isinstance(entry, np.ndarray) and entry.dtype == bool:
            at += entry.ndim
        elif entry is not None and entry is not Ellipsis:
            at += 1
        if at > ndim:
            return None
    return None


def _crossed(whole: OrthogonalSelection, ndim: int) -> Inner:
    lines: list[Any] = []
    places: list[Any] = []
    for axis in whole.axes[:ndim]:
        if isinstance(axis, range):
            lines.append(axis)
            places.append(np.arange(len(axis)))
        else:
            distinct, back = np.unique(axis, return_inverse=True)
            lines.append(distinct)
            places.append(back)
    places += [np.asarray(axis, np.int64) for axis in whole.axes[ndim:]]
    items = OrthogonalSelection(tuple(lines), tuple(map(len, lines)))
    return Inner(items, np.ix_(*places), whole)


def _pointed(whole: PointSelection, shape: tuple[int, ...]) -> Inner:
    ndim = len(shape)
    flat: Any = np.zeros((1,) * len(whole.shape), np.int64)
    for at, line in enumerate(whole.coords[:ndim]):
        flat = flat + line * prod(shape[at + 1 :])
    distinct, back = np.unique(flat, return_inverse=True)
    coords = tuple(np.asarray(line, np.int64) for line in np.unravel_index(distinct, shape)) if shape else ()
    within = (back.reshape(flat.shape), *whole.coords[ndim:])
    return Inner(
        PointSelection(coords, distinct.shape), tuple(np.broadcast_to(one, whole.shape) for one in within), whole
    )
