"""A container, or a chunk of it, filled with one value that takes no room.

Where a special chunk cannot name the value, its chunks are compressed, each content once.

Source: docs/format/chunk.md, "Special values".
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._codec.array_guard import check_change
from superchunk._codec.encoder import insert_groups
from superchunk.exceptions import ArgumentError
from superchunk.params import MAX_HEADER_TYPESIZE, SpecialValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from superchunk._codec.encoder import Encoder
    from superchunk._store.store_interface import ChunkStore

__all__ = ["fill_store", "special_chunk"]


def fill_store(store: ChunkStore, encoder: Encoder, nitems: int, kind: int, item: bytes | None) -> None:
    """Fill an empty store with one value, inside a batch of it.

    Parameters
    ----------
    store, encoder
        What is filled, and how chunks of it are compressed.
    nitems
        How many items.
    kind, item
        Number of the special value, and the item of a repeated one.

    Raises
    ------
    ArgumentError
        The store is not empty or has no chunk size, or the items do not fit its chunks.

    """
    typesize = encoder.cparams.typesize
    if store.nchunks:
        msg = f"fill_special: expected an empty SChunk, got {store.nchunks} chunks"
        raise ArgumentError(msg)
    nbytes = operator.index(nitems) * typesize
    if nbytes < 0:
        msg = f"nitems: expected 0 or more, got {nitems}"
        raise ArgumentError(msg)
    if nbytes and not store.chunksize:
        msg = "fill_special: expected a SChunk with a chunk size, got one of chunks of any size"
        raise ArgumentError(msg)
    if nbytes:
        check_change(store, added=-(-nbytes // store.chunksize), nbytes=nbytes % store.chunksize or store.chunksize)
    straddling = nbytes > 0 and store.chunksize % typesize != 0
    if straddling and kind == SpecialValue.NAN.value:
        msg = f"fill_special: NaN needs a chunksize of whole items, got {store.chunksize} bytes"
        raise ArgumentError(msg)
    if item is not None and nbytes and (straddling or typesize > MAX_HEADER_TYPESIZE):
        _fill_plainly(store, encoder, item, nbytes)
    else:
        store.fill_special(kind, nbytes, item)


def _fill_plainly(store: ChunkStore, encoder: Encoder, item: bytes, nbytes: int) -> None:
    """Fill an empty store with an item that a special chunk cannot name, inside a batch of it."""
    step, typesize = store.chunksize, len(item)
    tiled = memoryview(item * (step // typesize + 2))
    compressed: dict[tuple[int, int], bytes] = {}

    def chunks() -> Iterator[bytes]:
        for low in range(0, nbytes, step):
            key = low % typesize, min(step, nbytes - low)
            if key not in compressed:
                content = tiled[key[0] : key[0] + key[1]]
                compressed[key] = _engine.compress(content, encoder.params)
            yield compressed[key]

    insert_groups(store, chunks())


def special_chunk(encoder: Encoder, nbytes: int, kind: int, item: bytes | None) -> bytes:
    """Return a chunk of `nbytes` bytes of one value: number of the special value, and the item of a repeated one."""
    params, typesize = encoder.params, encoder.cparams.typesize
    if typesize > MAX_HEADER_TYPESIZE and item is not None:  # a chunk header cannot name such an item
        return _engine.compress(item * (nbytes // typesize), params)
    named = typesize if typesize <= MAX_HEADER_TYPESIZE else 1
    return _engine.special_chunk(kind, nbytes, named, item, params.blocksize_for(nbytes))
