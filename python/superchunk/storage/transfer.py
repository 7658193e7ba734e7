"""Copying all chunks and metalayers of one store into another, as they are and in bounded memory.

Between any two kinds: in memory, contiguous, sparse. Chunks are not decoded, entries without
stored bytes stay entries, and the sizes of chunks, and of their blocks, stay as they are.

Source: docs/format/sparse.md, "Conversion".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk.exceptions import TruncatedError
from superchunk.frame.index import special_kind
from superchunk.storage.sources import read_range

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk._engine import Source
    from superchunk.storage.base import ChunkStore

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
    FormatError, StorageError
        A chunk is damaged, or reading or writing failed.

    """
    if target.nchunks:
        raise ValueError(f"target: expected an empty store, got {target.nchunks} chunks")
    with source.steady(), target.batch():
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
        sources = source.sources(start, min(start + _GROUP_NCHUNKS, nchunks))
        group: list[bytes] = []
        held = 0
        for place, (_, cbytes) in zip(sources, _engine.sizes(sources), strict=True):
            if group and held + cbytes > _GROUP_CBYTES:
                break
            group.append(_chunk(place, cbytes))
            held += cbytes
        target.insert(target.nchunks, group)
        start += len(group)
        if progress is not None:
            progress(start, nchunks)


def _chunk(source: Source, cbytes: int) -> bytes:
    """Return a chunk, exactly."""
    if not isinstance(source, tuple):
        return bytes(memoryview(source).cast("B")[:cbytes])
    raw = read_range(source, cbytes)
    if len(raw) < cbytes:
        raise TruncatedError("chunk", at=source[1], needed=cbytes, got=len(raw))
    return raw
