"""Changing the shape of an array: chunks come and go, the metalayer follows, all in one commit.

::

    grid 2 x 2  a b      growing along axis 1    a b .     shrinking to one column    a
                c d                              c d .                                c

Chunk and block shapes stay. Inside chunks that stay, everything outside the smaller of the two shapes
is set to zero: C-Blosc2 leaves old items there, which would show when the array grows again.

Source: docs/format/b2nd.md, "Changing".
"""

from __future__ import annotations

import struct
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk import _engine
from superchunk._array.array_view import ArrayView, is_ndarray, memory_view
from superchunk._array.chunk_geometry import strides_of
from superchunk._array.slice_planner import box_selection
from superchunk._array.writing import ChunkWriter, write_selection
from superchunk._codec.encoder import insert_repeated
from superchunk._format.b2nd import ArrayLayout
from superchunk._format.frame_index import MAX_CHUNKS
from superchunk.exceptions import ArgumentError
from superchunk.params import MAX_HEADER_TYPESIZE, SpecialValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from superchunk._array.array_view import NDArrayLike
    from superchunk._array.chunk_geometry import ArrayGeometry
    from superchunk._codec.encoder import Encoder
    from superchunk._store.store_interface import ChunkStore

__all__ = ["append_items", "resize_array"]

_FEW = 8192
"""Chunks of zeros that are put behind the others one by one; for more of them the list is made anew, at once."""


def resize_array(view: ArrayView[ChunkStore], encoder: Encoder, layer: str, shape: tuple[int, ...]) -> ArrayGeometry:
    """Give an array another shape, inside a batch of the store; new items are zeros.

    Raises
    ------
    ValueError
        Another number of dimensions, a length below 0, or chunks of length 0.
    FormatError, StorageError
        A chunk that has to be cleared is damaged; writing failed.

    """
    new = _reshaped(view.geometry, shape)
    if new is view.geometry:
        return new
    _move_chunks(view.chunks, view.geometry, new)
    view.chunks.set_meta(layer, new.meta_bytes)
    _clear(ArrayView(view.decoder, view.chunks, new), encoder, view.geometry)
    return new


def append_items(
    view: ArrayView[ChunkStore], encoder: Encoder, layer: str, values: ArrayLike | NDArrayLike, axis: int
) -> ArrayGeometry:
    """Make an array grow along an axis by `values`, inside a batch of the store.

    Nothing has to be cleared, because all items that appear are written.
    """
    geometry = view.geometry
    given, added = _to_append(values, geometry, axis)
    old = geometry.layout.shape
    shape = (*old[:axis], old[axis] + added, *old[axis + 1 :])
    new = _reshaped(geometry, shape)
    if new.size == geometry.size:
        if new.layout.shape != old:
            return resize_array(view, encoder, layer, shape)
        return geometry
    _move_chunks(view.chunks, geometry, new)
    view.chunks.set_meta(layer, new.meta_bytes, at_once=False)
    region = tuple(slice(old[at] if at == axis else 0, size) for at, size in enumerate(shape))
    write_selection(ArrayView(view.decoder, view.chunks, new), encoder, box_selection(region, shape), given)
    return new


def _to_append(values: ArrayLike | NDArrayLike, geometry: ArrayGeometry, axis: int) -> tuple[object, int]:
    """Return what is appended, of the right shape, and its length along `axis`."""
    given: Any
    if is_ndarray(values):
        given = memory_view(values)  # the array may be appended to itself
        shape = given.geometry.shape
    else:
        given = np.asarray(values) if hasattr(values, "dtype") else np.asarray(values, geometry.dtype)
        shape = given.shape
    if geometry.ndim == 1 and len(shape) != 1:
        flat = (np.asarray(values) if is_ndarray(values) else given).reshape(-1)
        return flat, len(flat)
    expected = tuple(-1 if at == axis else length for at, length in enumerate(geometry.shape))
    if len(shape) != geometry.ndim or any(n not in (-1, m) for n, m in zip(expected, shape, strict=True)):
        wanted = tuple("any" if length < 0 else length for length in expected)
        msg = f"values: expected shape {wanted} to append along axis {axis}, got {shape}"
        raise ArgumentError(msg)
    return given, shape[axis]


def _reshaped(geometry: ArrayGeometry, shape: tuple[int, ...]) -> ArrayGeometry:
    """Return the geometry of another shape, with the metalayer's bytes as they were otherwise."""
    layout = geometry.layout
    if len(shape) != layout.ndim:
        msg = f"newshape: expected {layout.ndim} dimensions, got {len(shape)}"
        raise ArgumentError(msg)
    if 0 in layout.chunks and shape != layout.shape:
        msg = f"newshape: an array with chunks {layout.chunks} cannot be resized; make it with chunks of 1 or more"
        raise ArgumentError(msg)
    if shape == layout.shape:
        return geometry
    changed = ArrayLayout(shape, layout.chunks, layout.blocks, layout.dtype_text)
    if changed.nchunks > MAX_CHUNKS:
        msg = f"newshape: expected at most {MAX_CHUNKS} chunks, got {changed.nchunks} of {layout.chunks}"
        raise ArgumentError(msg)
    numbers = b"".join(struct.pack(">Bq", 0xD3, size) for size in shape)
    raw = geometry.meta_bytes[:4] + numbers + geometry.meta_bytes[4 + len(numbers) :]
    return geometry.reshaped(raw, changed)


def _move_chunks(store: ChunkStore, geometry: ArrayGeometry, new: ArrayGeometry) -> None:
    """Take chunks away, and put chunks of zeros in, so that the list fits the new grid."""
    old_grid, grid = geometry.layout.grid, new.layout.grid
    if old_grid == grid:
        return
    before = prod(old_grid)
    few = prod(grid) - before <= _FEW
    if before and few and grid[0] >= old_grid[0] and grid[1:] == old_grid[1:]:
        _append_zeros(store, new, prod(grid) - before)
    elif not before:
        store.fill_special(SpecialValue.ZERO.value, prod(grid) * new.chunk_nbytes, None)
    else:
        numbers = np.full(grid, -1, np.int64)
        common = tuple(slice(0, min(sizes)) for sizes in zip(old_grid, grid, strict=True))
        numbers[common] = np.arange(before).reshape(old_grid)[common]
        store.rearrange(numbers.reshape(-1).tolist())


def _append_zeros(store: ChunkStore, geometry: ArrayGeometry, count: int) -> None:
    typesize = geometry.itemsize if geometry.itemsize <= MAX_HEADER_TYPESIZE else 1
    chunk = _engine.special_chunk(
        SpecialValue.ZERO.value, geometry.chunk_nbytes, typesize, None, geometry.layout.block_items * geometry.itemsize
    )
    insert_repeated(store, chunk, count)


def _clear(view: ArrayView[ChunkStore], encoder: Encoder, old: ArrayGeometry) -> None:
    """Set to zero what chunks hold outside the smaller shape where that edge was, or is, inside a chunk."""
    writer = ChunkWriter(view, encoder)
    new = view.geometry
    small = tuple(map(min, old.layout.shape, new.layout.shape))
    strides = strides_of(new.layout.grid)
    for coords in _edge_chunks(old.layout, new.layout, small):
        number = sum(at * stride for at, stride in zip(coords, strides, strict=True))
        if writer.is_zero(number):
            continue
        starts = [at * chunk for at, chunk in zip(coords, new.layout.chunks, strict=True)]
        box = [(start, start + chunk, 1) for start, chunk in zip(starts, new.layout.chunks, strict=True)]
        items = writer.read(number, box)
        kept = tuple(slice(0, max(size - start, 0)) for size, start in zip(small, starts, strict=True))
        inside = items[kept].copy()
        items[kept] = np.zeros((), items.dtype)
        if new.buffer_of(items).reshape(-1).view(np.uint8).any():
            view.chunks.replace(number, writer.pack(inside, number))


def _edge_chunks(old: ArrayLayout, new: ArrayLayout, small: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the chunks, kept in both shapes, that an edge that moves cuts through; each once."""
    grid = tuple(map(min, old.grid, new.grid))
    cut: list[int | None] = [
        size // chunk if before != after and size % chunk else None
        for before, after, size, chunk in zip(old.shape, new.shape, small, new.chunks, strict=True)
    ]
    for axis, edge in enumerate(cut):
        if edge is None:
            continue
        lines = [
            range(edge, edge + 1) if at == axis else [n for n in range(grid[at]) if at > axis or n != cut[at]]
            for at in range(len(grid))
        ]
        yield from product(*lines)
