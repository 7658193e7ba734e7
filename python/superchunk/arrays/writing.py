"""Writing items of an array: chunk by chunk, all of it one change.

::

    covered whole    the value's own memory ── pack ──> chunk
    in part          chunk ── read_box ──> items, changed ── pack ──> chunk

The engine compresses straight out of the memory that holds the value, whatever its strides; a value of another
dtype, and the items of an `NDArray`, are made ready for one chunk at a time. Padding that may come to light is zero
in whatever is written here. A chunk of one value becomes a special chunk.

Source: docs/format/b2nd.md, "Geometry" and "Changing".
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superchunk import _engine
from superchunk._shaped import with_shape
from superchunk._writing import with_typesize
from superchunk.arrays.form import strides_of
from superchunk.arrays.memory import pack_items
from superchunk.arrays.selection import Cross, Points
from superchunk.arrays.values import ArrayValues, values_for
from superchunk.params import SpecialValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray as NumpyArray

    from superchunk.arrays.form import Form
    from superchunk.arrays.selection import Positions
    from superchunk.schunk import SChunk
    from superchunk.storage.base import ChunkStore

__all__ = ["ChunkWriter", "write_selection"]

_ZEROS = (SpecialValue.ZERO.value, SpecialValue.UNINIT.value)
"""Special values that read as zeros."""


class _Piece(NamedTuple):
    """What one chunk coordinate of one dimension takes of a selection."""

    step: int
    """What it adds to the chunk number."""
    start: int
    """First coordinate of the chunk in this dimension."""
    length: int
    """Coordinates of the chunk that are inside the array."""
    local: slice | NumpyArray[np.int64]
    """Which of them are written."""
    given: slice | NumpyArray[np.int64]
    """Which positions of the selection are for them."""
    whole: bool
    """Whether all of them are, in order."""


class ChunkWriter:
    """Reads and compresses single chunks of an array for a change.

    Parameters
    ----------
    schunk, store
        Where the chunks are.
    form
        Of the array.

    """

    def __init__(self, schunk: SChunk, store: ChunkStore, form: Form) -> None:
        self._store = store
        self._form = form
        self._encoder = encoder = schunk._encoder
        self._owner = schunk._user
        self._nthreads = 1 if encoder.hooks else schunk._nthreads
        block_nbytes = form.layout.block_items * form.itemsize
        if encoder.cparams.blocksize == block_nbytes and encoder.cparams.typesize == form.itemsize:
            self._params = encoder.params
        else:  # the frame does not say it, or the handle was given other parameters
            self._params = encoder.params_of(with_typesize(encoder.cparams, form.itemsize, block_nbytes))

    def read(self, number: int, box: Sequence[tuple[int, int, int]]) -> NumpyArray[Any]:
        """Return the items of a box inside chunk `number`, which is compared with its seal."""
        self._store.check(number)  # what stays of it is sealed anew
        items, buffer = self._form.empty(tuple(stop - start for start, stop, _ in box))
        sources = [self._store.source(number)]
        with_shape(
            self._store.meta,
            self._owner,
            self._form.itemsize,
            lambda hooks, _: _engine.read_box(
                self._form.geometry, sources, box, buffer, nthreads=self._nthreads, hooks=hooks
            ),
        )
        return items

    def is_zero(self, number: int) -> bool:
        """Return whether chunk `number` is known to hold zeros only."""
        return _engine.describe(self._store.source(number)).special in _ZEROS

    def pack(self, items: NumpyArray[Any], number: int) -> bytes:
        """Return a chunk whose first items in each dimension are `items`, all others zero."""
        form = self._form
        if items.dtype != form.dtype:
            items = items.astype(form.dtype)
        whole = items.shape == form.layout.chunks and self._encoder.prefilter is None
        chunk = pack_items(form.geometry, self._params, items, whole=whole)
        if self._encoder.prefilter is None:
            return chunk
        content = with_shape(
            self._store.meta,
            self._owner,
            form.itemsize,
            lambda hooks, blocks: _engine.decompress(chunk, itemsize=form.itemsize, hooks=hooks, blockshape=blocks),
        )
        return self._encoder.chunk(memoryview(content), number * form.chunk_nbytes)


def write_selection(
    schunk: SChunk, store: ChunkStore, form: Form, selection: Cross | Points, value: object, field: str | None
) -> None:
    """Put `value` where a selection of what the user sees says; inside a batch of the store.

    Parameters
    ----------
    schunk, store, form
        The array.
    selection
        Of what the user sees of it.
    value
        A scalar, array, buffer or NDArray, which broadcasts to the selection's shape.
    field
        The field to change; None: the items.

    Raises
    ------
    ValueError
        The value does not broadcast, or cannot be cast.
    FormatError, StorageError
        A chunk of which something stays is damaged; writing failed.

    """
    dtype = form.dtype if field is None else form.dtype[field]
    chosen = form.physical(selection)
    values = values_for(value, dtype, chosen)
    if 0 in selection.shape or (isinstance(chosen, Cross) and 0 in chosen.counts):
        return
    writer = ChunkWriter(schunk, store, form)
    if isinstance(chosen, Points):
        _write_points(writer, store, form, chosen, values.all(), field)
        return
    dimensions = [
        _pieces(axis, size, chunk, step) for axis, (size, chunk, step, *_) in zip(chosen.axes, form.places, strict=True)
    ]
    known: dict[tuple[int, ...], bytes] = {}
    lone = isinstance(values, ArrayValues) and values.lone and schunk._encoder.prefilter is None
    for pieces in product(*dimensions):
        number = sum(piece.step for piece in pieces)
        extent = tuple(piece.length for piece in pieces)
        if field is None and all(piece.whole for piece in pieces):
            chunk = known.get(extent)
            if chunk is None:
                chunk = writer.pack(values.part([piece.given for piece in pieces]), number)
                if lone:
                    known[extent] = chunk
            store.replace(number, chunk)
            continue
        given = values.part([piece.given for piece in pieces])
        items = writer.read(number, [(piece.start, piece.start + piece.length, 1) for piece in pieces])
        target = items if field is None else items[field]
        locals_ = [piece.local for piece in pieces]
        if all(isinstance(local, slice) for local in locals_):
            target[tuple(locals_)] = given
        else:
            target[_crossed(locals_, extent)] = given
        store.replace(number, writer.pack(items, number))


def _crossed(positions: Sequence[slice | NumpyArray[np.int64]], extent: tuple[int, ...]) -> Any:  # noqa: ANN401  (for NumPy)
    """Return an index of all combinations of positions."""
    return np.ix_(
        *(
            np.arange(*part.indices(size)) if isinstance(part, slice) else part
            for part, size in zip(positions, extent, strict=True)
        )
    )


def _pieces(axis: Positions, size: int, chunk: int, step: int) -> list[_Piece]:
    """Return which chunk coordinates of a dimension a selection meets, and what they take of it."""
    if not isinstance(axis, range):
        return _listed_pieces(axis, size, chunk, step)
    count = len(axis)
    backwards = axis.step < 0
    ahead = axis[::-1] if backwards else axis
    stride = ahead.step if count > 1 else 1
    first = ahead[0]
    pieces = []
    done = 0
    while done < count:
        at = first + done * stride
        nchunk = at // chunk
        start = nchunk * chunk
        length = min(chunk, size - start)
        taken = min((start + length - 1 - at) // stride + 1, count - done)
        local = slice(at - start, at - start + (taken - 1) * stride + 1, stride)
        if backwards:
            stop = count - done - taken - 1
            given = slice(count - done - 1, stop if stop >= 0 else None, -1)
        else:
            given = slice(done, done + taken)
        pieces.append(_Piece(nchunk * step, start, length, local, given, taken == length))
        done += taken
    return pieces


def _listed_pieces(axis: NumpyArray[np.int64], size: int, chunk: int, step: int) -> list[_Piece]:
    """Return the pieces of a list of positions; of equal ones the last counts."""
    order = np.argsort(axis, kind="stable")
    positions = axis[order]
    if len(positions) > 1:
        last = np.append(positions[1:] != positions[:-1], True)
        order, positions = order[last], positions[last]
    nchunks = positions // chunk
    edges = np.flatnonzero(np.append(True, nchunks[1:] != nchunks[:-1])).tolist()
    pieces = []
    for low, high in zip(edges, [*edges[1:], len(positions)], strict=True):
        start = int(nchunks[low]) * chunk
        length = min(chunk, size - start)
        local = positions[low:high] - start
        pieces.append(_Piece(start // chunk * step, start, length, local, order[low:high], high - low == length))
    return pieces


def _write_points(
    writer: ChunkWriter, store: ChunkStore, form: Form, points: Points, given: NumpyArray[Any], field: str | None
) -> None:
    """Put items one by one; of several for one place the last counts."""
    shape = points.shape
    nitems = prod(shape)
    strides = strides_of(form.layout.shape)
    number: Any = 0
    flat: Any = 0
    for axis, stride, (_, chunk, step, *_) in zip(points.coords, strides, form.places, strict=True):
        number = number + axis // chunk * step
        flat = flat + axis * stride
    numbers = np.broadcast_to(number, shape).reshape(-1)
    flat = np.broadcast_to(flat, shape).reshape(-1)
    given = given.reshape((nitems, *given.shape[len(shape) :]))
    order = np.argsort(numbers, kind="stable")
    sorted_ = numbers[order]
    edges = np.flatnonzero(np.append(True, sorted_[1:] != sorted_[:-1])).tolist()
    for low, high in zip(edges, [*edges[1:], nitems], strict=True):
        mine = order[low:high]
        nchunk = int(sorted_[low])
        starts = [
            int(at) * chunk
            for at, chunk in zip(np.unravel_index(nchunk, form.layout.grid), form.layout.chunks, strict=True)
        ]
        box = [
            (start, min(start + chunk, size), 1)
            for start, chunk, size in zip(starts, form.layout.chunks, form.layout.shape, strict=True)
        ]
        items = writer.read(nchunk, box)
        target = items if field is None else items[field]
        if starts:
            coords = np.unravel_index(flat[mine], form.layout.shape)
            target[tuple(at - start for at, start in zip(coords, starts, strict=True))] = given[mine]
        else:  # a 0-d array, indexed by a scalar bool
            target[()] = given[mine[-1]]
        store.replace(nchunk, writer.pack(items, nchunk))
