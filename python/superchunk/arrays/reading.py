"""Reading items of an array: a plan, sources from the store, and one call of the engine.

::

    key ──> Cross ──> a box: ascending positions in each dimension ──> read_box ──> turned as the key wants
        └─> Points ─> chunk and place in it of every item ───────────> read_points

Integers and plain slices, the usual keys, have a way of their own that makes no object besides the result.

Source: docs/format/b2nd.md, "Geometry" and "Reading a box".
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk import _engine
from superchunk._checking import check_source
from superchunk._chunk_reads import chunk_bytes
from superchunk._shaped import with_shape
from superchunk._user import hooks_for, ucodecs_registry, ufilters_registry
from superchunk.arrays.selection import Points, cross_of, out_of_bounds, select
from superchunk.exceptions import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray as NumpyArray

    from superchunk.arrays.form import Form
    from superchunk.arrays.selection import Cross
    from superchunk.schunk import SChunk
    from superchunk.storage.base import ChunkStore

__all__ = ["read_cross", "read_item", "read_key", "read_selection"]

_MOST_POINTS = 2**22
"""Points for which chunk and place are worked out at a time: 64 MB of numbers."""
_SMALL = 2**16
"""Bytes of a box that may be read in one call."""
_SPARSE = 64
"""Of how many items a mask must let one through for all of them to be read: in each block there is one then."""
_SLAB = 2**23
"""Bytes that are read at a time for a mask, or those of one row of chunks."""
_MOST_MASKED = 2**26
"""Bytes of a row of chunks, up to which that is done."""


def read_item(schunk: SChunk, store: ChunkStore, form: Form, raw: bytes, key: object) -> NumpyArray[Any] | None:
    """Return the one item or the small box that `key` means, if the store can give it in one call; None otherwise.

    Parameters
    ----------
    schunk, store
        Where it is.
    form
        Of the array, as it was when it was used last.
    raw
        The metalayer as it is now.
    key
        Any index.

    """
    entries = key if type(key) is tuple else (key,)
    if (
        raw is not form.raw
        or len(entries) != form.ndim
        or form.shown is not None
        or store.nchunks != form.nchunks
        or schunk._postfilter is not None
        or schunk._handle.options.verify is not None
    ):
        return None
    place = 0
    for at, (size, chunk, step, block, between, within) in zip(entries, form.places, strict=False):
        if type(at) is not int or not 0 <= at < size:
            return _read_box(store, form, entries) if type(at) is slice else None
        first, inner = divmod(at, chunk)
        place += first * step * form.chunk_items + inner // block * between + inner % block * within
    place *= form.itemsize
    item, buffer = form.empty(())
    found = store.read_small(place, place + form.itemsize, form.itemsize, buffer)
    return None if found is None else item


def _read_box(store: ChunkStore, form: Form, entries: tuple[Any, ...]) -> NumpyArray[Any] | None:
    """Return the items of integers and slices of step 1 within one chunk, if they are few; None otherwise."""
    number, nbytes = 0, form.itemsize
    box: list[tuple[int, int, int]] = []
    shape: list[int] = []
    for entry, (size, chunk, step, _, _, _) in zip(entries, form.places, strict=False):
        if type(entry) is slice:
            start, stop, stride = entry.indices(size)
            if stride != 1:
                return None
            shape.append(stop - start)
            nbytes *= stop - start
        elif type(entry) is int and 0 <= entry < size:
            start, stop = entry, entry + 1
        else:
            return None
        first = start // chunk
        if start >= stop or (stop - 1) // chunk != first:
            return None
        number += first * step
        box.append((start, stop, 1))
    if nbytes > _SMALL:
        return None
    items, buffer = form.empty(tuple(shape))
    at = number * form.chunk_nbytes
    found = store.read_small(at, at + 1, form.itemsize, buffer, (form.geometry, box))
    return None if found is None else items


def read_key(schunk: SChunk, store: ChunkStore, form: Form, key: object) -> NumpyArray[Any]:
    """Return the items that `key` means, as a new array."""
    entries = key if type(key) is tuple else (key,)
    if form.shown is None and len(entries) <= form.ndim and form.chunk_nbytes:
        quick = _read_quickly(schunk, store, form, entries)
        if quick is not None:
            return quick
    if type(key) is np.ndarray and key.dtype == bool and key.shape == form.shape and _row_nbytes(form) <= _MOST_MASKED:
        count = int(np.count_nonzero(key))
        if count * _SPARSE >= key.size:
            return _read_masked(schunk, store, form, key, count)
    return read_selection(schunk, store, form, select(key, form.shape))


def _row_nbytes(form: Form) -> int:
    """Return the bytes of one row of chunks; more than any bound for an array without rows or items."""
    if not form.size or not form.ndim:
        return _MOST_MASKED + 1
    return form.chunks[0] * prod(form.shape[1:]) * form.itemsize


def _read_masked(
    schunk: SChunk, store: ChunkStore, form: Form, mask: NumpyArray[np.bool_], count: int
) -> NumpyArray[Any]:
    """Return the `count` items that a mask of the array's shape lets through: some rows of chunks at a time."""
    found, _ = form.empty((count,))
    rows = form.chunks[0] * max(_SLAB // _row_nbytes(form), 1)
    slab, _ = form.empty((min(rows, form.shape[0]), *form.shape[1:]))
    done = 0
    for low in range(0, form.shape[0], rows):
        part = mask[low : low + rows]
        taken = int(np.count_nonzero(part))
        if taken:
            region = (slice(low, low + len(part)), *form.tail[1:])
            items = read_selection(schunk, store, form, cross_of(region, form.shape), slab[: len(part)])
            found[done : done + taken] = items[part]
            done += taken
    return found


def _read_quickly(schunk: SChunk, store: ChunkStore, form: Form, entries: tuple[Any, ...]) -> NumpyArray[Any] | None:  # noqa: C901, PLR0912  (one pass without calls: the hottest path)
    """Return the items of integers and slices of step 1; None for any other key."""
    if schunk._postfilter is not None or schunk._handle.options.verify is not None:
        return None
    if len(entries) < form.ndim:
        entries += form.tail[len(entries) :]
    number = place = 0
    box: list[tuple[int, int, int]] = []
    shape: list[int] = []
    spans: list[tuple[int, int, int]] = []
    several = False
    for entry, (size, chunk, step, block, between, within) in zip(entries, form.places, strict=True):
        if type(entry) is slice:
            start, stop, stride = entry.indices(size)
            if stride != 1 or start >= stop:
                return None
            shape.append(stop - start)
            box.append((start, stop, 1))
            first, last = start // chunk, (stop - 1) // chunk
            number += first * step
            spans.append((first * step, last * step + 1, step))
            several = several or first != last
        else:
            if type(entry) is not int:
                if not isinstance(entry, np.integer):
                    return None
                entry = int(entry)  # noqa: PLW2901  (the same number)
            at = entry + size if entry < 0 else entry
            if not 0 <= at < size:
                raise out_of_bounds(entry, len(box), size)
            first = at // chunk
            box.append((at, at + 1, 1))
            number += first * step
            spans.append((first * step, first * step + 1, 1))
            at -= first * chunk
            place += at // block * between + at % block * within
    items, buffer = form.empty(tuple(shape))
    hooks = hooks_for(schunk._user) if ucodecs_registry or ufilters_registry else None
    try:
        if not shape:
            at = place * form.itemsize
            request = (store.source(number), form.chunk_nbytes, at, at + form.itemsize, 0)
            _engine.read([request], buffer, itemsize=form.itemsize, hooks=hooks)
            return items
        if several:
            numbers = [0]
            for span in spans:
                numbers = [n + m for n in numbers for m in range(*span)]
            sources = store.picked(numbers)
        else:
            sources = [store.source(number)]
        _engine.read_box(form.geometry, sources, box, buffer, nthreads=schunk._nthreads, hooks=hooks)
    except UnsupportedError:
        return None  # what goes by the shape of blocks, or is not there: the general way finds out
    return items


def read_selection(
    schunk: SChunk, store: ChunkStore, form: Form, selection: Cross | Points, out: NumpyArray[Any] | None = None
) -> NumpyArray[Any]:
    """Return the items of a selection, in `out` if that is given.

    Parameters
    ----------
    schunk, store
        Where they are.
    form
        Of the array.
    selection
        Of what the user sees of it.
    out
        An array of the result's shape, of any dtype that the items can be cast to.

    """
    fits = out is not None and out.shape == selection.shape and out.dtype == form.dtype and out.flags.c_contiguous
    chosen = form.physical(selection)
    if isinstance(chosen, Points):
        target = out if fits and out is not None else form.empty(chosen.shape)[0]
        if target.size:
            _read_points(schunk, store, form, chosen, target)
    else:
        target = read_cross(schunk, store, form, chosen, out if fits else None)
    if out is not None and target is not out:
        out[...] = target
        return out
    return target


def read_cross(
    schunk: SChunk, store: ChunkStore, form: Form, cross: Cross, out: NumpyArray[Any] | None = None
) -> NumpyArray[Any]:
    """Return the items of a selection of all dimensions, crossed; in `out` where that needs no second array."""
    counts = cross.counts
    if 0 in counts:
        return np.empty(cross.shape, form.dtype)
    box, turns = _box_of(cross)
    sizes = tuple(len(range(*part)) if isinstance(part, tuple) else len(part) for part in box)
    plain = all(isinstance(turn, slice) and turn.step is None for turn in turns)
    if out is not None and plain and cross.order is None:
        items, buffer = out, form.buffer_of(out)
    else:
        items, buffer = form.empty(sizes)
    sources = _prepared(schunk, store, form, _numbers_met(box, form))
    with_shape(
        store.meta,
        schunk._user,
        form.itemsize,
        lambda hooks, _: _engine.read_box(form.geometry, sources, box, buffer, nthreads=schunk._nthreads, hooks=hooks),
    )
    if items is out:
        return items
    if not plain:
        items = items[tuple(turn if isinstance(turn, slice) else slice(None) for turn in turns)]
        for dimension, turn in enumerate(turns):
            if not isinstance(turn, slice):
                items = items.take(turn, axis=dimension)
    return cross.arranged(items)


def _box_of(cross: Cross) -> tuple[list[Any], list[Any]]:
    """Return ascending positions for the engine, and how to turn what it reads in each dimension."""
    box: list[Any] = []
    turns: list[Any] = []
    for axis in cross.axes:
        if isinstance(axis, range):
            backwards = axis.step < 0
            turns.append(slice(None, None, -1) if backwards and len(axis) > 1 else slice(None))
            ahead = axis[::-1] if backwards else axis
            box.append((ahead[0], ahead[-1] + 1, ahead.step))
        elif len(axis) < 2 or bool((axis[1:] > axis[:-1]).all()):  # noqa: PLR2004  (a pair)
            turns.append(slice(None))
            box.append(np.ascontiguousarray(axis))
        else:
            distinct, back = np.unique(axis, return_inverse=True)
            turns.append(back)
            box.append(distinct)
    return box, turns


def _numbers_met(box: Sequence[Any], form: Form) -> list[int]:
    """Return the numbers of the chunks that a box meets, ascending."""
    numbers = [0]
    for line in _lines_met(box, form):
        numbers = [n + m for n in numbers for m in line]
    return numbers


def _lines_met(box: Sequence[Any], form: Form) -> list[Sequence[int]]:
    """Return for each dimension what its chunks that a box meets add to the chunk number, ascending."""
    lists: list[Sequence[int]] = []
    for part, (_, chunk, step, *_) in zip(box, form.places, strict=True):
        if not isinstance(part, tuple):
            lists.append((np.unique(part // chunk) * step).tolist())
            continue
        start, stop, stride = part
        if stride <= chunk:
            lists.append([at * step for at in range(start // chunk, (stop - 1) // chunk + 1)])
        else:
            lists.append([at // chunk * step for at in range(start, stop, stride)])
    return lists


def _prepared(schunk: SChunk, store: ChunkStore, form: Form, numbers: Sequence[int]) -> list[Any]:
    """Return the sources of chunks, compared with their seals or through the postfilter if that is asked for."""
    sources = store.picked(numbers)
    handle = schunk._handle
    if handle.options.verify is not None:
        for number, source in zip(numbers, sources, strict=True):
            check_source(handle, number, source)
    if schunk._postfilter is None:
        return sources
    params = _engine.EncodeParams(clevel=0, typesize=1, blocksize=form.layout.block_items * form.itemsize)
    plain = [schunk.decompress_chunk(number) or chunk_bytes(store.source(number)) for number in numbers]
    return [_engine.compress(content, params) for content in plain]


def _read_points(schunk: SChunk, store: ChunkStore, form: Form, points: Points, items: NumpyArray[Any]) -> None:
    """Fill `items`, which is C-contiguous and of the points' shape."""
    shape = points.shape
    total = prod(shape)
    if total > _MOST_POINTS and shape[0] > 1:
        rows = max(_MOST_POINTS // (total // shape[0]), 1)
        for low in range(0, shape[0], rows):
            high = min(low + rows, shape[0])
            coords = tuple(axis[low:high] if axis.shape[0] > 1 else axis for axis in points.coords)
            _read_points(schunk, store, form, Points(coords, (high - low, *shape[1:])), items[low:high])
        return
    number: Any = np.zeros((1,) * len(shape), np.int64)
    place: Any = number
    for axis, (_, chunk, step, block, between, within) in zip(points.coords, form.places, strict=True):
        nchunk = axis // chunk
        inner = axis - nchunk * chunk
        number = number + nchunk * step
        place = place + inner // block * between + inner % block * within
    numbers, nsource = _distinct(np.broadcast_to(number, shape).reshape(-1), store.nchunks)
    places = np.ascontiguousarray(np.broadcast_to(place, shape).reshape(-1))
    sources = _prepared(schunk, store, form, numbers.tolist())
    buffer, nthreads = form.buffer_of(items), schunk._nthreads
    with_shape(
        store.meta,
        schunk._user,
        form.itemsize,
        lambda hooks, _: _engine.read_points(
            form.geometry, sources, nsource, places, buffer, nthreads=nthreads, hooks=hooks
        ),
    )


def _distinct(numbers: NumpyArray[np.int64], nchunks: int) -> tuple[NumpyArray[np.int64], NumpyArray[np.int64]]:
    """Return the distinct chunk numbers, ascending, and which of them each is."""
    if nchunks > 4 * len(numbers) + 1024:
        distinct, back = np.unique(numbers, return_inverse=True)
        return distinct, np.ascontiguousarray(back, np.int64)
    used = np.zeros(nchunks, bool)
    used[numbers] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[numbers]
