"""Which bytes of which chunks a read needs, and where they go.

::

    bytes of the container   |<----------------- start:stop ----------------->|
    chunks                 [ 3         ][ 4         ][ 5         ][ 6         ]
    requests               (s3, n3, a, n3, 0) (s4, n4, 0, n4, ..) ... (s6, n6, 0, z, ..)

Plain integers, no objects per item. Reads nothing: the requests go to the engine
in one call.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from superchunk._engine import Request
    from superchunk.storage.protocol import ChunkStore

__all__ = ["chunk_start", "chunks_of", "plan_read"]


def plan_read(store: ChunkStore, start: int, stop: int) -> list[Request]:
    """Return the requests that read bytes ``start:stop`` of a container.

    Parameters
    ----------
    store
        The container's chunks.
    start, stop
        Bytes of the decoded content, ``0 <= start < stop <= store.nbytes``.

    """
    lone = store.single_chunk_request(start, stop)
    if lone is not None:
        return [lone]
    chunksize = store.chunksize
    if chunksize:
        first = start // chunksize
        base = first * chunksize
        nbytes = store.nbytes
        last = (stop - 1) // chunksize
        requests: list[Request] = []
        for source in store.sources(first, last + 1):
            size = min(chunksize, nbytes - base)
            low, high = max(start - base, 0), min(stop - base, size)
            requests.append((source, size, low, high, base + low - start))
            base += chunksize
        return requests
    starts = store.starts()
    first, last = bisect_right(starts, start) - 1, bisect_right(starts, stop - 1) - 1
    requests = []
    for nchunk, source in enumerate(store.sources(first, last + 1), first):
        base, end = starts[nchunk], starts[nchunk + 1]
        low, high = max(start, base), min(stop, end)
        if low < high:
            requests.append((source, end - base, low - base, high - base, low - start))
    return requests


def chunk_start(store: ChunkStore, nchunk: int) -> int:
    """Return where a chunk begins in the container, in bytes; `nchunks` gives the end."""
    if nchunk == store.nchunks:
        return store.nbytes
    return nchunk * store.chunksize if store.chunksize else store.starts()[nchunk]


def chunks_of(store: ChunkStore, start: int, stop: int) -> range:
    """Return the numbers of the chunks that bytes ``start:stop`` touch, ``start < stop``."""
    chunksize = store.chunksize
    if chunksize:
        return range(start // chunksize, (stop - 1) // chunksize + 1)
    starts = store.starts()
    return range(bisect_right(starts, start) - 1, bisect_right(starts, stop - 1))
