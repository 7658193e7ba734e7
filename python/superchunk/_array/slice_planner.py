"""The planner of keys: from an index expression to the items that it selects, by NumPy's rules. No I/O.

::

    key ──> ArrayGeometry.plan_box   integers, slices of step 1, `...`   a box and its chunks, the usual case
        └─> select                   everything else                     OrthogonalSelection or PointSelection

Every dimension of the array is named in the result:

- `OrthogonalSelection`: each dimension has its own positions, a `range` or an array of them, and all combinations are
  selected. Integers, slices, `oindex`, and integer arrays that do not go together item by item.
- `PointSelection`: each dimension has an array of coordinates, and these broadcast together to the result's
  shape. Masks of several dimensions, and integer arrays that go together item by item.

Which chunks hold the items is worked out in `geometry`.

Source: NumPy's user guide, "Indexing on ndarrays".
"""

from __future__ import annotations

import operator
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Positions: TypeAlias = range | NDArray[np.int64]

__all__ = [
    "OrthogonalSelection",
    "PointSelection",
    "box_selection",
    "checked_indices",
    "expanded",
    "out_of_bounds",
    "select",
    "select_orthogonal",
    "select_taken",
    "select_taken_along",
]

_WHOLE = slice(None)
_KINDS = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
    "indices"
)


class OrthogonalSelection(NamedTuple):
    """All combinations of the positions in each dimension."""

    axes: tuple[Positions, ...]
    """Positions in each dimension of the array: a range of any step, or int64 in any order, repeated or not."""
    shape: tuple[int, ...]
    """Of the result."""
    order: tuple[int, ...] | None = None
    """How to transpose the combinations before they are given that shape; None: not at all."""

    @property
    def counts(self) -> tuple[int, ...]:
        """How many positions there are in each dimension."""
        return tuple(len(axis) for axis in self.axes)

    def to_result(self, items: NDArray[Any]) -> NDArray[Any]:
        """Return the combinations, of shape `counts`, as the result."""
        if self.order is not None:
            items = items.transpose(self.order)
        return items if items.shape == self.shape else items.reshape(self.shape)

    def from_result(self, items: NDArray[Any], ninner: int = 0) -> NDArray[Any]:
        """Return what has the result's shape, and `ninner` more dimensions, as combinations again."""
        counts = self.counts
        inner = items.shape[items.ndim - ninner :]
        if self.order is None:
            return items.reshape((*counts, *inner))
        moved = items.reshape([*(counts[axis] for axis in self.order), *inner])
        return moved.transpose([*np.argsort(self.order), *range(len(counts), len(counts) + ninner)])


class PointSelection(NamedTuple):
    """Items one by one."""

    coords: tuple[NDArray[np.int64], ...]
    """For each dimension of the array its coordinates, as an array that broadcasts to `shape`."""
    shape: tuple[int, ...]
    """Of the result."""


class _Fancy:
    """One advanced index: the dimension it is in, or none for a scalar bool, and its positions."""

    __slots__ = ("axis", "positions")

    def __init__(self, axis: int | None, positions: NDArray[np.int64]) -> None:
        self.axis = axis
        self.positions = positions


class _Gap(NamedTuple):
    """What is between advanced indices and keeps them apart."""

    axis: int | None
    """The dimension of a slice; None: a new axis, or an ellipsis."""
    positions: range
    """Those of the slice."""
    shown: bool = True
    """Whether it makes a dimension of the result; an ellipsis does not, the slices that it stands for do."""


_Part: TypeAlias = "_Gap | _Fancy | int"
"""A slice, a new axis or an ellipsis; an advanced index; the dimension of an integer."""


def select(key: object, shape: Sequence[int]) -> OrthogonalSelection | PointSelection:
    """Return what ``array[key]`` means for an array of `shape`.

    Raises
    ------
    IndexError
        A position is outside the array, there are too many indices, a mask has another shape, integer arrays
        do not broadcast together, or something is no index.

    """
    axes: list[Positions] = [range(0)] * len(shape)
    parts: list[_Part] = []
    fancy = False
    at = 0
    for entry in expanded(key, len(shape)):
        if entry is None or entry is Ellipsis:
            parts.append(_Gap(None, range(1), entry is None))
        elif isinstance(entry, slice):
            axes[at] = axis = range(*entry.indices(shape[at]))
            parts.append(_Gap(at, axis))
            at += 1
        elif isinstance(entry, np.ndarray):
            fancy = True
            if entry.dtype == bool:
                found = _of_mask(entry, shape, at)
                parts += found
                at += entry.ndim
            else:
                parts.append(_Fancy(at, _checked(entry, at, shape[at])))
                at += 1
        else:
            axes[at] = _single(entry, at, shape[at])
            parts.append(at)
            at += 1
    if not fancy:
        return OrthogonalSelection(tuple(axes), tuple(len(gap.positions) for gap in _shown(parts)))
    return _advanced(parts, axes)


def select_orthogonal(key: object, shape: Sequence[int]) -> OrthogonalSelection:
    """Return what ``array.oindex[key]`` means: one list of positions for each dimension, crossed.

    Raises
    ------
    IndexError
        As `select`, or an entry has more than one dimension.

    """
    axes: list[Positions] = []
    result: list[int] = []
    if isinstance(key, list) and any(isinstance(entry, list | tuple | slice | np.ndarray) for entry in key):
        key = tuple(key)  # one entry for each dimension, as python-blosc2 takes them
    for entry in expanded(key, len(shape)):
        if entry is Ellipsis:
            continue
        if entry is None:
            msg = "oindex takes no new axes"
            raise IndexError(msg)
        at = len(axes)
        size = shape[at]
        if isinstance(entry, slice):
            axes.append(range(*entry.indices(size)))
        elif isinstance(entry, np.ndarray):
            if entry.ndim != 1:
                msg = f"oindex: expected one-dimensional arrays, got one of {entry.ndim} dimensions for axis {at}"
                raise IndexError(msg)
            if entry.dtype == bool:
                axes += [part.positions for part in _of_mask(entry, shape, at)]
            else:
                axes.append(_checked(entry, at, size))
        else:
            axes.append(_single(entry, at, size))
            continue
        result.append(len(axes[-1]))
    return OrthogonalSelection(tuple(axes), tuple(result))


def checked_indices(indices: ArrayLike) -> NDArray[Any]:
    """Return the positions that `take` is given.

    Raises
    ------
    TypeError
        They are no integers.

    """
    places = np.asarray(indices)
    if places.dtype.kind not in "iu" and (places.size or isinstance(indices, np.ndarray)):
        msg = f"indices: expected integers, got {places.dtype}"
        raise TypeError(msg)
    return places if places.dtype.kind in "iu" else places.astype(np.int64)


def select_taken(
    indices: NDArray[Any], axis: int | None, shape: tuple[int, ...]
) -> OrthogonalSelection | PointSelection:
    """Return what `numpy.take` takes of an array of `shape`: along an axis, or of the flattened array.

    Raises
    ------
    IndexError
        A position is outside the array.

    """
    if axis is not None:
        return select((*(_WHOLE,) * axis, indices), shape)
    size = prod(shape)
    flat = indices.astype(np.int64)
    outside = (flat < -size) | (flat >= size)
    if outside.any():
        raise out_of_bounds(int(flat[outside][0]), 0, size)
    coords = np.unravel_index(np.where(flat < 0, flat + size, flat), shape) if shape else ()
    return PointSelection(tuple(at.astype(np.int64, copy=False) for at in coords), indices.shape)


def select_taken_along(
    indices: NDArray[Any], axis: int, shape: tuple[int, ...]
) -> OrthogonalSelection | PointSelection:
    """Return what `numpy.take_along_axis` takes of an array of `shape`.

    Raises
    ------
    IndexError
        A position is outside the array, or shapes do not go together.

    """
    others = np.ix_(*(np.arange(1 if own == axis else size) for own, size in enumerate(shape)))
    return select(tuple(indices if own == axis else line for own, line in enumerate(others)), shape)


def box_selection(parts: Sequence[slice | NDArray[np.int64]], shape: Sequence[int]) -> OrthogonalSelection:
    """Return the selection of one slice, or one list of positions, for each dimension."""
    axes = tuple(
        range(*part.indices(size)) if isinstance(part, slice) else part for part, size in zip(parts, shape, strict=True)
    )
    return OrthogonalSelection(axes, tuple(map(len, axes)))


def expanded(key: object, ndim: int) -> list[Any]:
    """Return the entries of an expression, checked for their kind, with slices for what it leaves out.

    An entry is None, an ellipsis before the slices that it stands for, a slice, an int, or an array of bool
    or integers.
    """
    given = key if isinstance(key, tuple) else (key,)
    entries: list[Any] = []
    used, dots = 0, -1
    for one in given:
        if one is Ellipsis:
            if dots >= 0:
                msg = "an index can only have a single ellipsis ('...')"
                raise IndexError(msg)
            dots = len(entries)
            continue
        entry = _entry(one)
        entries.append(entry)
        if isinstance(entry, np.ndarray) and entry.dtype == bool:
            used += entry.ndim
        elif entry is not None:
            used += 1
    if used > ndim:
        msg = f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed"
        raise IndexError(msg)
    missing = [slice(None)] * (ndim - used)
    if dots < 0:
        return entries + missing
    return [*entries[:dots], Ellipsis, *missing, *entries[dots:]]


def _entry(one: object) -> Any:
    """Return one entry of an expression as None, slice, int, or an array of bool or intp."""
    if one is None or type(one) is int or isinstance(one, slice):
        return one
    if isinstance(one, bool | np.bool_):
        return np.asarray(one, bool)
    try:
        return operator.index(one)  # type: ignore[arg-type]  # that is the question
    except TypeError:
        pass
    if isinstance(one, str | bytes | float | complex | np.floating):
        raise IndexError(_KINDS)
    array = np.asarray(one)
    if array.dtype == bool:
        return array
    if array.dtype.kind in "iu":
        return operator.index(array[()]) if array.ndim == 0 else array
    if array.size == 0 and not isinstance(one, np.ndarray):
        return array.astype(np.intp)  # an empty list
    if array.ndim == 0 or array.dtype == object:
        raise IndexError(_KINDS)
    msg = "arrays used as indices must be of integer (or boolean) type"
    raise IndexError(msg)


def _single(number: int, axis: int, size: int) -> range:
    at = number + size if number < 0 else number
    if not 0 <= at < size:
        raise out_of_bounds(number, axis, size)
    return range(at, at + 1)


def out_of_bounds(number: int, axis: int, size: int) -> IndexError:
    """Return the error for a position outside the array, in NumPy's words."""
    return IndexError(f"index {number} is out of bounds for axis {axis} with size {size}")


def _checked(given: NDArray[Any], axis: int, size: int) -> NDArray[np.int64]:
    """Return the positions of an integer array, counted from the start."""
    if given.dtype.kind == "u" and given.size and int(given.max()) >= size:
        raise out_of_bounds(int(given.max()), axis, size)
    positions = given.astype(np.int64, copy=False)
    if not positions.size:
        return positions
    least, most = int(positions.min()), int(positions.max())
    if least < -size or most >= size:
        raise out_of_bounds(least if least < -size else most, axis, size)
    return np.where(positions < 0, positions + size, positions) if least < 0 else positions


def _of_mask(mask: NDArray[np.bool_], shape: Sequence[int], at: int) -> list[_Fancy]:
    """Return the places that a mask over the dimensions from `at` on lets through."""
    if mask.ndim == 0:
        return [_Fancy(None, np.zeros(int(mask), np.int64))]
    for axis, (size, found) in enumerate(zip(shape[at:], mask.shape, strict=False), at):
        if size != found:
            msg = (
                f"boolean index did not match indexed array along axis {axis}; size of axis is {size} but size of "
                f"corresponding boolean axis is {found}"
            )
            raise IndexError(msg)
    return [_Fancy(axis, found.astype(np.int64, copy=False)) for axis, found in enumerate(mask.nonzero(), at)]


def _advanced(parts: list[_Part], axes: list[Positions]) -> OrthogonalSelection | PointSelection:
    """Put integer arrays and all else together, as NumPy does.

    Integers count as arrays here. If all arrays are next to each other, the dimensions that they make
    stand where they are, else in front.
    """
    places = [i for i, part in enumerate(parts) if isinstance(part, _Fancy | int)]
    arrays = [part.positions for part in parts if isinstance(part, _Fancy)]
    try:
        together = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        shapes = " ".join(str(array.shape) for array in arrays)
        msg = f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        raise IndexError(msg) from None
    adjacent = places[-1] - places[0] == len(places) - 1
    before = len(_shown(parts[: places[0]])) if adjacent else 0
    gaps = _shown(parts)
    lengths = [len(gap.positions) for gap in gaps]
    shape = (*lengths[:before], *together, *lengths[before:])
    owners = _owners(parts, len(together))
    fancy_axes = [part.axis for part in parts if isinstance(part, _Fancy)]
    if owners is not None and None not in fancy_axes:
        for part in parts:
            if isinstance(part, _Fancy) and part.axis is not None:
                axes[part.axis] = np.ascontiguousarray(part.positions.reshape(-1))
        ahead, behind = ([gap.axis for gap in some if gap.axis is not None] for some in (gaps[:before], gaps[before:]))
        shown = [*ahead, *owners, *behind]
        rest = [part for part in parts if isinstance(part, int)]
        order = (*rest, *shown)
        return OrthogonalSelection(tuple(axes), shape, None if list(order) == sorted(order) else order)
    return _points(parts, axes, before, together, shape)


def _shown(parts: list[_Part]) -> list[_Gap]:
    """Return the slices and new axes among `parts`."""
    return [part for part in parts if isinstance(part, _Gap) and part.shown]


def _owners(parts: list[_Part], ndim: int) -> list[int] | None:
    """Return the dimensions whose arrays make the common shape, in its order, if no two make the same part of it."""
    owned: list[tuple[int, int]] = []
    taken: set[int] = set()
    for part in parts:
        if not isinstance(part, _Fancy) or part.axis is None:
            continue
        shape = part.positions.shape
        mine = [ndim - len(shape) + i for i, size in enumerate(shape) if size != 1]
        if taken.intersection(mine) or (mine and mine[-1] - mine[0] >= len(mine)):
            return None
        taken.update(mine)
        owned.append((mine[0] if mine else -1, part.axis))
    return [axis for _, axis in sorted(owned)]


def _points(
    parts: list[_Part], axes: list[Positions], before: int, together: tuple[int, ...], shape: tuple[int, ...]
) -> PointSelection:
    """Return the coordinates of every item of the result, each dimension's as small as it can be."""
    coords: list[NDArray[np.int64]] = [np.zeros(0, np.int64)] * len(axes)
    ndim, width = len(shape), len(together)
    at = 0
    for part in parts:
        if isinstance(part, int):
            coords[part] = np.full((1,) * ndim, axes[part][0], np.int64)
        elif isinstance(part, _Fancy):
            if part.axis is not None:
                found = part.positions
                lead = before + width - found.ndim
                coords[part.axis] = found.reshape((1,) * lead + found.shape + (1,) * (ndim - before - width))
        elif part.shown:
            if part.axis is not None:
                place = at if at < before else at + width
                axis = part.positions
                line = np.arange(axis.start, axis.stop, axis.step, dtype=np.int64)
                coords[part.axis] = line.reshape((1,) * place + (-1,) + (1,) * (ndim - place - 1))
            at += 1
    return PointSelection(tuple(coords), shape)
