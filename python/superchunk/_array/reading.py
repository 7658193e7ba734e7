"""Reading items of an array: a planned key, sources of chunks from the store, and one call of the engine.

::

    box ────────────────────> within one chunk, and small ─────────────────> one call of the store
     └──────────────────────> chunks that it intersects ───────────────────> read_box
    OrthogonalSelection ────> ascending positions in each dimension ───────> read_box, and in the key's order
    PointSelection ─────────> chunk and place in it of every item ─────────> read_points

`chunk_geometry` plans boxes and knows which chunks hold the items; `slice_planner` plans all other keys.

Source: docs/format/b2nd.md, "Geometry" and "Reading a box".
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk import _engine
from superchunk._array.chunk_geometry import SLAB_NBYTES
from superchunk._array.slice_planner import PointSelection, box_selection, select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray as NumpyArray

    from superchunk._array.array_view import ArrayView
    from superchunk._array.chunk_geometry import ArrayGeometry, BoxPlan
    from superchunk._array.slice_planner import OrthogonalSelection
    from superchunk._store.store_interface import ChunkList, ChunkSource

__all__ = ["read_box", "read_into", "read_item", "read_key", "read_selection", "read_small"]

_MOST_POINTS = 2**22
"""Points for which chunk and place are worked out at a time: 64 MB of numbers."""
_SMALL = 2**16
"""Bytes of a box that may be read in one call."""
_SPARSE = 64
"""Of how many items a mask must let one through for all of them to be read: in each block there is one then."""
_MOST_MASKED = 2**26
"""Bytes of a row of chunks, up to which all items are read for a mask, some rows of chunks at a time."""


def read_item(store: ChunkSource, layer: str, geometry: ArrayGeometry, place: int) -> NumpyArray[Any] | None:
    """Return one item if the store can give it in one call; None otherwise.

    Parameters
    ----------
    store, layer, geometry
        As for `read_small`.
    place
        Where the item is, in items from the first chunk's first.

    """
    itemsize = geometry.itemsize
    item, buffer = geometry.empty(())
    start = place * itemsize
    found = store.read_small(start, start + itemsize, itemsize, buffer, None, (layer, geometry.meta_bytes))
    return None if found is None else item


def read_small(store: ChunkSource, layer: str, geometry: ArrayGeometry, planned: BoxPlan) -> NumpyArray[Any] | None:
    """Return one item or a small box within one chunk, if the store can give it in one call; None otherwise.

    Parameters
    ----------
    store
        Holds the chunks.
    layer
        The name of the array's metalayer.
    geometry
        Of the array, as it was last; the result is None if the metalayer has changed.
    planned
        Which items.

    """
    box, shape, numbers = planned
    itemsize = geometry.itemsize
    if not shape:
        number, place = geometry.locate([start for start, _, _ in box])
        return read_item(store, layer, geometry, number * geometry.chunk_items + place)
    if len(numbers) > 1 or prod(shape) * itemsize > _SMALL:
        return None
    items, buffer = geometry.empty(shape)
    at = numbers[0] * geometry.chunk_nbytes
    found = store.read_small(at, at + 1, itemsize, buffer, (geometry.native, box), (layer, geometry.meta_bytes))
    return None if found is None else items


def read_box(view: ArrayView[ChunkList], planned: BoxPlan) -> NumpyArray[Any]:
    """Return the items of a box as a new array.

    Parameters
    ----------
    view
        The array; all its dimensions are shown.
    planned
        Which items.

    """
    box, shape, numbers = planned
    geometry = view.geometry
    items, buffer = geometry.empty(shape)
    if shape:
        sources = _sources_of(view, numbers)
        view.decoder.read_box(view.chunks, geometry.native, sources, box, buffer)
        return items
    _, place = geometry.locate([start for start, _, _ in box])
    at = place * geometry.itemsize
    request = (_sources_of(view, numbers)[0], geometry.chunk_nbytes, at, at + geometry.itemsize, 0)
    view.decoder.read(view.chunks, [request], buffer)
    return items


def read_key(view: ArrayView[ChunkList], key: object) -> NumpyArray[Any]:
    """Return the items that a key, which is no box, means as a new array."""
    geometry = view.geometry
    if type(key) is np.ndarray and key.dtype == bool and key.shape == geometry.shape:
        row_nbytes = _row_nbytes(geometry)
        count = int(np.count_nonzero(key)) if row_nbytes <= _MOST_MASKED else 0
        if row_nbytes <= _MOST_MASKED and count * _SPARSE >= key.size:
            return _read_masked(view, key, count)
    return read_selection(view, select(key, geometry.shape))


def _row_nbytes(geometry: ArrayGeometry) -> int:
    """Return the bytes of one row of chunks; more than any bound for an array without rows or items."""
    if not geometry.size or not geometry.ndim:
        return _MOST_MASKED + 1
    return geometry.chunks[0] * prod(geometry.shape[1:]) * geometry.itemsize


def _read_masked(view: ArrayView[ChunkList], mask: NumpyArray[np.bool_], count: int) -> NumpyArray[Any]:
    """Return the `count` items that a mask of the array's shape lets through: some rows of chunks at a time."""
    geometry = view.geometry
    found, _ = geometry.empty((count,))
    rows = geometry.chunks[0] * max(SLAB_NBYTES // _row_nbytes(geometry), 1)
    slab, _ = geometry.empty((min(rows, geometry.shape[0]), *geometry.shape[1:]))
    done = 0
    for low in range(0, geometry.shape[0], rows):
        part = mask[low : low + rows]
        taken = int(np.count_nonzero(part))
        if taken:
            region = (slice(low, low + len(part)), *(slice(None),) * (geometry.ndim - 1))
            items = read_selection(view, box_selection(region, geometry.shape), slab[: len(part)])
            found[done : done + taken] = items[part]
            done += taken
    return found


def read_into(
    view: ArrayView[ChunkList], selection: OrthogonalSelection | PointSelection, out: NumpyArray[Any] | None
) -> NumpyArray[Any]:
    """Return the items of a selection, in the array that a user gave for them if that is not None.

    Raises
    ------
    TypeError
        `out` is no NumPy array.
    ValueError
        `out` has another shape, or is read-only.

    """
    if out is not None and not isinstance(out, np.ndarray):
        msg = f"out: expected a NumPy array, got {type(out).__name__}"
        raise TypeError(msg)
    if out is not None and out.shape != selection.shape:
        msg = f"out: expected shape {selection.shape}, got {out.shape}"
        raise ValueError(msg)
    if out is not None and not out.flags.writeable:
        msg = "out: expected a writable array, got a read-only one"
        raise ValueError(msg)
    return read_selection(view, selection, out)


def read_selection(
    view: ArrayView[ChunkList], selection: OrthogonalSelection | PointSelection, out: NumpyArray[Any] | None = None
) -> NumpyArray[Any]:
    """Return the items of a selection, in `out` if that is given.

    Parameters
    ----------
    view
        The array.
    selection
        Of the dimensions that the user sees.
    out
        An array of the result's shape, of any dtype that the items can be cast to.

    """
    geometry = view.geometry
    fits = out is not None and out.shape == selection.shape and out.dtype == geometry.dtype and out.flags.c_contiguous
    chosen = geometry.physical(selection)
    if isinstance(chosen, PointSelection):
        target = out if fits and out is not None else geometry.empty(chosen.shape)[0]
        if target.size:
            _read_points(view, chosen, target)
    else:
        target = _read_orthogonal(view, chosen, out if fits else None)
    if out is not None and target is not out:
        out[...] = target
        return out
    return target


def _read_orthogonal(
    view: ArrayView[ChunkList], selection: OrthogonalSelection, out: NumpyArray[Any] | None
) -> NumpyArray[Any]:
    """Return the items of a selection of all dimensions; in `out` where that needs no second array."""
    geometry = view.geometry
    if 0 in selection.counts:
        return np.empty(selection.shape, geometry.dtype)
    box, turns = _box_of(selection)
    sizes = tuple(len(range(*part)) if isinstance(part, tuple) else len(part) for part in box)
    plain = all(isinstance(turn, slice) and turn.step is None for turn in turns)
    if out is not None and plain and selection.order is None:
        items, buffer = out, geometry.buffer_of(out)
    else:
        items, buffer = geometry.empty(sizes)
    sources = _sources_of(view, geometry.chunk_numbers(box))
    view.decoder.read_box(view.chunks, geometry.native, sources, box, buffer)
    if items is out:
        return items
    if not plain:
        items = items[tuple(turn if isinstance(turn, slice) else slice(None) for turn in turns)]
        for dimension, turn in enumerate(turns):
            if not isinstance(turn, slice):
                items = items.take(turn, axis=dimension)
    return selection.to_result(items)


def _box_of(selection: OrthogonalSelection) -> tuple[list[Any], list[Any]]:
    """Return ascending positions for the engine, and how to turn what it reads in each dimension."""
    box: list[Any] = []
    turns: list[Any] = []
    for axis in selection.axes:
        if isinstance(axis, range):
            backwards = axis.step < 0
            turns.append(slice(None, None, -1) if backwards and len(axis) > 1 else slice(None))
            ahead = axis[::-1] if backwards else axis
            box.append((ahead[0], ahead[-1] + 1, ahead.step))
        elif len(axis) < 2 or bool((axis[1:] > axis[:-1]).all()):  # a pair
            turns.append(slice(None))
            box.append(np.ascontiguousarray(axis))
        else:
            distinct, back = np.unique(axis, return_inverse=True)
            turns.append(back)
            box.append(distinct)
    return box, turns


def _sources_of(view: ArrayView[ChunkList], numbers: Sequence[int]) -> list[Any]:
    """Return the sources of chunks, compared with their seals or through the postfilter if that is asked for."""
    chunks, decoder = view.chunks, view.decoder
    sources = chunks.sources_for(numbers) if len(numbers) > 1 else [chunks.source(numbers[0])]
    if decoder.verified:
        for number, source in zip(numbers, sources, strict=True):
            decoder.check(chunks, number, source)
    if decoder.postfilter is None:
        return sources
    geometry = view.geometry
    params = _engine.EncodeParams(clevel=0, typesize=1, blocksize=geometry.layout.block_items * geometry.itemsize)
    filtered = [memoryview(bytearray(geometry.chunk_nbytes)) for _ in numbers]
    for number, content in zip(numbers, filtered, strict=True):
        decoder.read_chunk(chunks, number, geometry.chunk_nbytes, content)
    return [_engine.compress(content, params) for content in filtered]


def _read_points(view: ArrayView[ChunkList], points: PointSelection, items: NumpyArray[Any]) -> None:
    """Fill `items`, which is C-contiguous and of the points' shape."""
    shape = points.shape
    total = prod(shape)
    if total > _MOST_POINTS and shape[0] > 1:
        rows = max(_MOST_POINTS // (total // shape[0]), 1)
        for low in range(0, shape[0], rows):
            high = min(low + rows, shape[0])
            coords = tuple(axis[low:high] if axis.shape[0] > 1 else axis for axis in points.coords)
            _read_points(view, PointSelection(coords, (high - low, *shape[1:])), items[low:high])
        return
    geometry, chunks = view.geometry, view.chunks
    number, place = geometry.locate(points.coords)
    numbers, nsource = _distinct(np.broadcast_to(np.asarray(number, np.int64), shape).reshape(-1), chunks.nchunks)
    places = np.ascontiguousarray(np.broadcast_to(np.asarray(place, np.int64), shape).reshape(-1))
    sources = _sources_of(view, numbers.tolist())
    view.decoder.read_points(chunks, geometry.native, sources, nsource, places, geometry.buffer_of(items))


def _distinct(numbers: NumpyArray[np.int64], nchunks: int) -> tuple[NumpyArray[np.int64], NumpyArray[np.int64]]:
    """Return the distinct chunk numbers, ascending, and which of them each is."""
    if nchunks > 4 * len(numbers) + 1024:
        distinct, back = np.unique(numbers, return_inverse=True)
        return distinct, np.ascontiguousarray(back, np.int64)
    used = np.zeros(nchunks, bool)
    used[numbers] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[numbers]
