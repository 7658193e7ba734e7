"""Dividing an array into boxes that fit into memory, and boxes into runs of items.

::

    chunks of the target      +---+---+---+---+
                              |   |   |   |   |      a box is some whole chunks, as many along the last dimensions
                              +---+---+---+---+      as fit into the memory that it may take: a row of chunks,
                              |   |   |   |   |      some rows, or a single chunk
                              +---+---+---+---+

Pure arithmetic, no I/O.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from superchunk.cli.formats.base import Box

__all__ = ["BUDGET", "Tiling", "aligned_boxes", "box_shape", "boxes_between", "runs", "sequential_boxes"]

BUDGET: Final = 2**25
"""Bytes that a box may have. A single chunk of the target is a box whatever its size."""
_SLACK: Final = 4
"""How many times the budget a box may have so that no chunk of the source is decoded twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """An array cut into boxes of one size, but for those at its ends; numbered in C order.

    Examples
    --------
    >>> tiling = Tiling(shape=(5, 4), step=(2, 4))
    >>> [tuple((s.start, s.stop) for s in box) for box in tiling]
    [((0, 2), (0, 4)), ((2, 4), (0, 4)), ((4, 5), (0, 4))]
    >>> tiling.box(2), sorted(tiling.meeting((1, 0), (2, 2)))
    ((slice(4, 5, None), slice(0, 4, None)), [0, 1])

    """

    shape: tuple[int, ...]
    step: tuple[int, ...]
    """Items of a box along each dimension, 1 or more each."""

    @property
    def grid(self) -> tuple[int, ...]:
        """Boxes along each dimension."""
        return tuple(-(-extent // part) for extent, part in zip(self.shape, self.step, strict=True))

    @property
    def count(self) -> int:
        """Boxes in all."""
        return math.prod(self.grid)

    def __iter__(self) -> Iterator[Box]:
        """Yield all boxes."""
        for place in itertools.product(*map(range, self.grid)):
            yield self._at(place)

    def box(self, number: int) -> Box:
        """Return the box of that number."""
        place = []
        for extent in reversed(self.grid):
            number, index = divmod(number, extent)
            place.append(index)
        return self._at(tuple(reversed(place)))

    def meeting(self, start: tuple[int, ...], extents: tuple[int, ...]) -> Iterator[int]:
        """Yield the numbers of the boxes that share items with another box, which begins at `start`."""
        grid = self.grid
        ranges = [
            range(at // part, min(-(-(at + extent) // part), most))
            for at, extent, part, most in zip(start, extents, self.step, grid, strict=True)
        ]
        for place in itertools.product(*ranges):
            number = 0
            for index, most in zip(place, grid, strict=True):
                number = number * most + index
            yield number

    def _at(self, place: tuple[int, ...]) -> Box:
        return tuple(
            slice(index * part, min((index + 1) * part, extent))
            for index, part, extent in zip(place, self.step, self.shape, strict=True)
        )


def aligned_boxes(
    shape: tuple[int, ...],
    itemsize: int,
    chunks: tuple[int, ...],
    source: tuple[int, ...] | None = None,
    budget: int = BUDGET,
) -> Tiling:
    """Return boxes of whole chunks that cover an array.

    Parameters
    ----------
    shape
        Items of the array along each dimension.
    itemsize
        Bytes of an item.
    chunks
        Items of a chunk of the target along each dimension, 1 or more each.
    source
        The same of the source, None if it is read in any portions.
    budget
        Bytes of a box, at most, unless one chunk is larger.

    Examples
    --------
    >>> [tuple((s.start, s.stop) for s in box) for box in aligned_boxes((5, 4), 1, (2, 2), budget=8)]
    [((0, 2), (0, 4)), ((2, 4), (0, 4)), ((4, 5), (0, 4))]

    """
    step = list(chunks)
    if source is not None:
        wide = [-(-max(there, here) // here) * here for here, there in zip(chunks, source, strict=True)]
        if _nbytes(wide, shape, itemsize) <= _SLACK * budget:
            step = wide
    for axis in reversed(range(len(shape))):
        room = budget // max(_nbytes(step, shape, itemsize), 1)
        if room < 2:  # one more does not fit
            break
        step[axis] *= room
        if step[axis] < shape[axis]:
            break
    return Tiling(shape=shape, step=tuple(max(part, 1) for part in step))


def sequential_boxes(
    shape: tuple[int, ...], itemsize: int, source: tuple[int, ...] | None = None, budget: int = BUDGET
) -> Tiling:
    """Return boxes that are runs of items, one after the other in C order.

    Examples
    --------
    >>> [tuple((s.start, s.stop) for s in box) for box in sequential_boxes((2, 3, 4), 1, budget=8)]
    [((0, 1), (0, 2), (0, 4)), ((0, 1), (2, 3), (0, 4)), ((1, 2), (0, 2), (0, 4)), ((1, 2), (2, 3), (0, 4))]

    """
    return Tiling(shape=shape, step=_sequential_step(shape, itemsize, source, budget))


def boxes_between(
    shape: tuple[int, ...],
    itemsize: int,
    first: int,
    stop: int,
    source: tuple[int, ...] | None = None,
    budget: int = BUDGET,
) -> Iterator[Box]:
    """Yield boxes with the items `first` to below `stop` of an array in C order, runs of items one after the other.

    They end where those of `sequential_boxes` do, so that no chunk is decoded for two of them if that can be helped.

    Examples
    --------
    >>> [tuple((s.start, s.stop) for s in box) for box in boxes_between((3, 4), 1, 3, 9)]
    [((0, 1), (3, 4)), ((1, 2), (0, 4)), ((2, 3), (0, 1))]

    """
    step = _sequential_step(shape, itemsize, source, budget)
    axis = max((n for n, (part, extent) in enumerate(zip(step, shape, strict=True)) if part < extent), default=0)
    row, span = math.prod(shape[axis:]), math.prod(step[axis:])
    while first < stop:
        behind = first % row
        end = min(stop, first - behind + min(row, (behind // span + 1) * span))
        yield from _runs_as_boxes(shape, first, end)
        first = end


def _runs_as_boxes(shape: tuple[int, ...], first: int, stop: int) -> Iterator[Box]:
    """Yield boxes with items `first` to below `stop`, as few as there are: rows that are cut, and what lies between."""
    if first >= stop:
        return
    if not shape:
        yield ()
        return
    whole = tuple(slice(0, extent) for extent in shape[1:])
    inner = math.prod(shape[1:])
    (row, before), (end, behind) = divmod(first, inner), divmod(stop, inner)
    if before:
        cut = behind if row == end else inner
        yield from ((slice(row, row + 1), *box) for box in _runs_as_boxes(shape[1:], before, cut))
        row += 1
    if row < end:
        yield (slice(row, end), *whole)
    if behind and row <= end:
        yield from ((slice(end, end + 1), *box) for box in _runs_as_boxes(shape[1:], 0, behind))


def runs(shape: tuple[int, ...], box: Box) -> Iterator[tuple[int, int]]:
    """Yield first item and number of items of each run of a box, in a stream in C order.

    Examples
    --------
    >>> list(runs((4, 5), (slice(1, 3), slice(2, 4)))), list(runs((4, 5), (slice(1, 3), slice(0, 5))))
    ([(7, 2), (12, 2)], [(5, 10)])

    """
    extents = box_shape(box)
    if 0 in extents:
        return
    axis = len(shape) - 1
    while axis > 0 and extents[axis] == shape[axis]:
        axis -= 1
    inner = math.prod(shape[axis + 1 :])
    strides = [math.prod(shape[n + 1 :]) for n in range(axis)]
    first = box[axis].start * inner if shape else 0
    count = extents[axis] * inner if shape else 1
    for index in itertools.product(*(range(part.start, part.stop) for part in box[: max(axis, 0)])):
        yield first + sum(place * stride for place, stride in zip(index, strides, strict=True)), count


def box_shape(box: Box) -> tuple[int, ...]:
    """Return the items of a box along each dimension."""
    return tuple(part.stop - part.start for part in box)


def _sequential_step(
    shape: tuple[int, ...], itemsize: int, source: tuple[int, ...] | None, budget: int
) -> tuple[int, ...]:
    """Return the items along each dimension of a box that is a run: 1, some, and then whole sides."""
    step = [1] * len(shape)
    for axis in reversed(range(len(shape))):
        row = math.prod(step) * itemsize
        if row * shape[axis] <= budget:
            step[axis] = max(shape[axis], 1)
            continue
        rows = max(budget // max(row, 1), 1)
        part = 1 if source is None else max(source[axis], 1)
        if rows >= part:
            rows -= rows % part
        elif row * part <= _SLACK * budget:
            rows = part
        step[axis] = min(rows, shape[axis])
        break
    return tuple(step)


def _nbytes(step: list[int], shape: tuple[int, ...], itemsize: int) -> int:
    return math.prod(min(part, extent) for part, extent in zip(step, shape, strict=True)) * itemsize
