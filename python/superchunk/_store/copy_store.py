"""Copying all chunks and metalayers of one store into another, as they are and in bounded memory.

Between any two kinds: in memory, contiguous, sparse. Chunks are not decoded, entries without
stored bytes stay entries, and the sizes of chunks, and of their blocks, stay as they are.

Source: docs/format/sparse.md, "Conversion".
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._format.frame_index import special_kind
from superchunk._store.checked_reads import read_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk._store.store_interface import ChunkStore

__all__ = ["transfer"]

_GROUP_NCHUNKS = 512
_GROUP_CBYTES = 8 * 2**20


def transfer(source: ChunkStore, target: ChunkStore, progress: Callable[[int, int], object] | None = None) -> None:
    """Copy the content of `source` into `target`: all of it, or after an exception none.

    Memory stays below some 16 MiB, or two chunks if those are larger, besides the index.

    Parameters
    ----------
    source
        The store to read; writers elsewhere may go on meanwhile.
    target
        An empty store, made with the settings, the chunk size (that of
        ``source.snapshot()``) and the fixed metalayers of `source`.
    progress
        Called with the chunks done and those in all.

    Raises
    ------
    ValueError
        `target` is not empty.
    MetalayerValueError
        There are more vlmetalayers than `target` can hold.
    FormatError
        A chunk differs from its seal, or is damaged so that its size is unknown, or the frame's fingerprint does not
        fit. Damage is not copied, because the copy would have a new seal.
    StorageError
        Reading or writing failed.

    """
    if target.nchunks:
        raise ValueError(f"target: expected an empty store, got {target.nchunks} chunks")
    with source.pinned(), target.batch():
        source.prove()
        _copy_chunks(source, target, progress)
        for name, chunk in source.vlmeta.items():
            target.set_vlmeta(name, chunk)


def _copy_chunks(source: ChunkStore, target: ChunkStore, progress: Callable[[int, int], object] | None) -> None:
    nchunks = source.nchunks
    snapshot = source.snapshot()
    repeated = snapshot.index.repeated_entry
    if repeated is not None and repeated < 0 and snapshot.chunksize > 0:
        target.fill_special(special_kind(repeated, 0), source.nbytes, None)
        if progress is not None:
            progress(nchunks, nchunks)
        return
    start = 0
    while start < nchunks:
        stop = min(start + _GROUP_NCHUNKS, nchunks)
        sources = source.sources(start, stop)
        sizes = [cbytes for _, cbytes in _engine.sizes(sources)]
        taken = max(bisect_right(list(accumulate(sizes)), _GROUP_CBYTES), 1)
        chunks = list(enumerate(snapshot.index.slice(start, start + taken), start))
        target.append(read_chunks(chunks, sources[:taken], sizes[:taken], snapshot.seals))
        start += taken
        if progress is not None:
            progress(start, nchunks)
