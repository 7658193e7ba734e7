"""Which chunks hold which bytes of a container.

Plain integers, no objects per item. The requests for a range are planned by the chunks, which knows its chunks.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from superchunk._store.store_interface import ChunkList

__all__ = ["chunk_start", "chunks_of"]


def chunk_start(chunks: ChunkList, nchunk: int) -> int:
    """Return where a chunk begins in the container, in bytes; `nchunks` gives the end."""
    if nchunk == chunks.nchunks:
        return chunks.nbytes
    return nchunk * chunks.chunksize if chunks.chunksize else chunks.starts()[nchunk]


def chunks_of(chunks: ChunkList, start: int, stop: int) -> range:
    """Return the numbers of the chunks that bytes ``start:stop`` touch, ``start < stop``."""
    chunksize = chunks.chunksize
    if chunksize:
        return range(start // chunksize, (stop - 1) // chunksize + 1)
    starts = chunks.starts()
    return range(bisect_right(starts, start) - 1, bisect_right(starts, stop - 1))
