"""Walks over an array part by part: rows, chunks and blocks with their items, and what is known of each chunk.

Every part is read by an index of its own, so that a walk follows changes as single reads do.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superchunk._array.chunk_geometry import SLAB_NBYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray as NumpyArray

    from superchunk._array.array_view import NDArrayLike
    from superchunk._array.chunk_geometry import ArrayGeometry
    from superchunk.params import SpecialValue

__all__ = ["ChunkInfoNDArray", "Part", "blocks_of", "chunk_infos", "chunks_of", "rows_of"]


class ChunkInfoNDArray(NamedTuple):
    """What `NDArray.iterchunks_info` says about a chunk."""

    nchunk: int
    """Its number."""
    coords: tuple[int, ...]
    """Its place in the grid of chunks."""
    cratio: float
    """Uncompressed by compressed bytes, padding included."""
    special: SpecialValue
    """Whether all its items are one value."""
    repeated_value: Any
    """That item, for `SpecialValue.VALUE`."""
    lazychunk: bytes
    """See `SChunk.get_lazychunk`."""


class Part(NamedTuple):
    """A chunk or a block of an array, as `NDArray.iterchunks` and `NDArray.iterblocks` yield it."""

    coords: tuple[int, ...]
    """Which chunk, or which block of the array, in each dimension."""
    region: tuple[slice, ...]
    """Where its items are: ``array[region]`` is `items`."""
    items: NumpyArray[Any]
    """They themselves, without padding; a new array."""


def rows_of(array: NDArrayLike) -> Iterator[Any]:
    """Yield what each index of the first dimension means; several rows are decoded at a time.

    Raises
    ------
    TypeError
        The array has no dimensions.

    """
    if not array.ndim:
        msg = "iteration over a 0-d array"
        raise TypeError(msg)
    at = 0
    while at < len(array):
        row = array.nbytes // max(len(array), 1)
        rows = max(min(array.chunks[0] or 1, SLAB_NBYTES // max(row, 1)), 1)
        slab = array[at : at + rows - at % rows]
        yield from slab
        at += len(slab)


def chunks_of(array: NDArrayLike) -> Iterator[Part]:
    """Yield each chunk."""
    shape, chunks = array.shape, array.chunks
    if 0 in shape:
        return
    for coords in np.ndindex(*(-(-size // n) for size, n in zip(shape, chunks, strict=True))):
        region = tuple(slice(at * n, min(at * n + n, size)) for at, n, size in zip(coords, chunks, shape, strict=True))
        yield Part(coords, region, array[region])


def blocks_of(array: NDArrayLike) -> Iterator[Part]:
    """Yield each block, chunk by chunk; those at the edges of chunks are cut short."""
    blocks = array.blocks
    per_chunk = tuple(-(-c // b) if b else 0 for c, b in zip(array.chunks, blocks, strict=True))
    for part in chunks_of(array):
        for inner in np.ndindex(*(-(-n // b) for n, b in zip(part.items.shape, blocks, strict=True))):
            local = tuple(
                slice(i * b, min(i * b + b, n)) for i, b, n in zip(inner, blocks, part.items.shape, strict=True)
            )
            region = tuple(
                slice(where.start + own.start, where.start + own.stop)
                for where, own in zip(part.region, local, strict=True)
            )
            coords = tuple(c * n + i for c, n, i in zip(part.coords, per_chunk, inner, strict=True))
            yield Part(coords, region, part.items[local].copy())


def chunk_infos(array: NDArrayLike, geometry: ArrayGeometry) -> Iterator[ChunkInfoNDArray]:
    """Yield what is known of each chunk without reading its data."""
    coords = product(*map(range, geometry.layout.grid))
    for at, info in zip(coords, array.schunk.iterchunks_info(), strict=False):
        item: Any = info.repeated_value
        if item is not None and len(item) == geometry.itemsize:
            item = np.frombuffer(item, geometry.dtype)[0]
        yield ChunkInfoNDArray(info.nchunk, geometry.only_shown(at), info.cratio, info.special, item, info.lazychunk)
