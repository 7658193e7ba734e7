"""Arrays from pieces that come one by one, with bounded memory.

::

    pieces in order    [ 3 rows ][ 10 rows ][ 1 row ] ...      any numbers of rows
    chunks             [   8 rows   ][   8 rows   ] ...        a row of chunks is held until it is full

Pieces with a place, ``(where, items)``, are written where they belong as they come.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from superchunk._array.array_sources import source_of
from superchunk._array.creation_plan import begin_array, plan_array
from superchunk._array.filling import ChunkRow, boxes_of, put_boxes, put_special
from superchunk._array.ndarray import NDArray
from superchunk.exceptions import ArgumentError
from superchunk.params import SpecialValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Unpack

    from numpy.typing import DTypeLike

    from superchunk._array.array_sources import Source
    from superchunk._array.creation_plan import ArrayKeywords, ArrayPlan
    from superchunk._array.partition import Lengths

    Place: TypeAlias = "slice | int | tuple[slice | int, ...]"
    """An index of slices and integers."""

__all__ = ["from_pieces"]


def from_pieces(
    pieces: Iterable[object],
    shape: Lengths,
    dtype: DTypeLike | None = None,
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return an array of pieces that an iterable gives, in one commit.

    Parameters
    ----------
    pieces
        Either arrays that follow each other along the first dimension, of any length there and of
        `shape` in the others; in memory there are two rows of chunks, those that share their place
        along the first dimension, and a piece. Or tuples ``(where, items)``, `where` an index of
        slices and integers, in any order; items that no piece names are zeros, the last one wins, and
        in memory there are the chunks that a piece meets. That is fast where pieces are whole chunks;
        others are compressed several times, and in a file the bytes of the earlier times are dead. The
        first piece tells which: a tuple of two that could be both, as ``(1, 2)``, is refused.
    shape
        Items in each dimension; at least one dimension.
    dtype
        Of an item; None: that of the first piece.
    **kwargs
        As for `zeros`.

    Raises
    ------
    ValueError
        Pieces have other shapes, or are too few or too many; no file is left behind. Or as `zeros`.
    IndexError
        A piece belongs outside the shape.
    StorageError
        Something is at the path and `mode` is not "w", or writing failed.

    Examples
    --------
    >>> from_pieces(([i] * i for i in range(4)), 6, dtype="i4")[:].tolist()
    [1, 2, 2, 3, 3, 3]
    >>> from_pieces([(slice(3, None), [7, 8]), (0, 1)], 5, dtype="i4")[:].tolist()
    [1, 0, 0, 7, 8]

    """
    coming = iter(pieces)
    first = next(coming, None)
    placed = _has_a_place(first)
    if dtype is None:
        if first is None:
            msg = "dtype: expected one, for there is no piece to take it from"
            raise ArgumentError(msg)
        dtype = source_of(first[1] if placed and isinstance(first, tuple) else first).dtype
    plan = plan_array(shape, dtype, kwargs)
    if not plan.layout.ndim:
        msg = "shape: expected at least one dimension, got ()"
        raise ArgumentError(msg)
    every = coming if first is None else chain((first,), coming)
    if placed:
        return _placed(plan, every)
    in_order = _PiecesInOrder(every, plan)
    with begin_array(plan) as schunk:
        put_boxes(schunk, plan, ChunkRow(in_order.take).read, boxes_of(plan.layout))
        in_order.check_end()
    return NDArray(schunk)


def _has_a_place(first: object) -> bool:
    """Return whether the first piece is a pair of a place and items, and not items alone.

    Raises
    ------
    ArgumentError
        It could be either.

    """
    if not isinstance(first, tuple) or len(first) != 2:  # place and items
        return False
    where, items = first
    parts = where if isinstance(where, tuple) else (where,)
    if not all(isinstance(part, slice) or part is Ellipsis or hasattr(part, "__index__") for part in parts):
        return False
    if any(isinstance(part, slice) or part is Ellipsis for part in parts) or isinstance(items, NDArray):
        return True
    try:
        same = np.shape(items) == np.shape(where)
    except ValueError:  # lists of several lengths
        return True
    if same:
        msg = (
            f"pieces[0]: {first!r} can be a place and what belongs there, or items that follow each other; "
            "write a place as a slice, (slice(i, i + 1), item), and items as a list or an array"
        )
        raise ArgumentError(msg)
    return True


def _placed(plan: ArrayPlan, pieces: Iterator[Any]) -> NDArray:
    """Return an array of pieces with places."""
    with begin_array(plan) as schunk:
        put_special(schunk, plan, SpecialValue.ZERO, None)
        array = NDArray(schunk)
        for number, piece in enumerate(pieces):
            if not isinstance(piece, tuple) or len(piece) != 2:  # place and items
                msg = f"pieces[{number}]: expected (where, items) like the first, got {type(piece).__name__}"
                raise ArgumentError(msg)
            array[piece[0]] = piece[1]
    return array


class _PiecesInOrder:
    """Pieces that follow each other along the first dimension, taken as rows are needed."""

    def __init__(self, pieces: Iterator[Any], plan: ArrayPlan) -> None:
        self._pieces = pieces
        self._shape = plan.layout.shape
        self._dtype = plan.dtype
        self._piece: Source | None = None
        self._used = 0
        self._number = -1

    def check_end(self) -> None:
        """Raise an error when there are more rows than the array has."""
        while (piece := self._left()) is not None:
            rows = piece.shape[0] - self._used
            if rows:
                msg = f"pieces[{self._number}]: expected {self._shape[0]} rows in all, got {rows} more"
                raise ArgumentError(msg)
            self._piece = None

    def _left(self) -> Source | None:
        """Return the piece that is being used, the next one if there is none; None at the end."""
        if self._piece is None:
            given = next(self._pieces, None)
            if given is None:
                return None
            self._number += 1
            piece = source_of(given, self._dtype)
            if len(piece.shape) != len(self._shape) or piece.shape[1:] != self._shape[1:]:
                expected = f"shape (any, {', '.join(map(str, self._shape[1:]))})"
                msg = f"pieces[{self._number}]: expected {expected}, got {piece.shape}"
                raise ArgumentError(msg)
            self._piece, self._used = piece, 0
        return self._piece

    def take(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """Return the rows from `start` to `stop`."""
        row = np.empty((stop - start, *self._shape[1:]), self._dtype)
        across = tuple(slice(0, length) for length in self._shape[1:])
        filled = 0
        while filled < len(row):
            piece = self._left()
            if piece is None:
                msg = f"pieces: expected {self._shape[0]} rows in all, got {start + filled}"
                raise ArgumentError(msg)
            count = min(piece.shape[0] - self._used, len(row) - filled)
            row[filled : filled + count] = piece.read((slice(self._used, self._used + count), *across))
            filled += count
            self._used += count
            if self._used == piece.shape[0]:
                self._piece = None
        return row
