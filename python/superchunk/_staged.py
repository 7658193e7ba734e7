"""Several processes write chunks of one sparse frame, and one of them commits.

The coordinator has the frame open for writing and hands out chunk ids; workers compress into
the files of those ids with `stage_chunk`, needing nothing but the path; what they return goes back to
the coordinator, which checks it and puts it into the list. This is the coordinator's side.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._array_guard import check_change
from superchunk._functions import FunctionCalls
from superchunk.exceptions import ArgumentError
from superchunk.storage.frames import FrameStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from superchunk.storage.base import ChunkStore
    from superchunk.storage.staging import StagedChunk

__all__ = ["StagedCalls"]


class StagedCalls(FunctionCalls):
    """What the coordinator of several writers does."""

    __slots__ = ()

    def reserve_chunk_ids(self, n: int) -> range:
        """Set ids aside for chunks that other processes will write with `stage_chunk`.

        They are good as long as this handle, or another one for writing in this
        process, is open; files of ids that were not used are removed by whoever opens
        the frame for writing next.

        Parameters
        ----------
        n
            How many.

        Raises
        ------
        ArgumentError
            This is no sparse frame, or `n` is negative.
        ReadOnlyError, StorageError
            The handle may only read, or there are not so many ids left.

        Examples
        --------
        Workers compress, and this process commits what they made, in order:

        >>> import tempfile
        >>> from concurrent.futures import ProcessPoolExecutor
        >>> from superchunk import SChunk, stage_chunk
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = folder.name + "/data.b2frame"
        >>> s = SChunk(chunksize=1000, urlpath=path, contiguous=False)
        >>> ids = s.reserve_chunk_ids(4)
        >>> parts = [bytes([n, 1, 2, 3]) * 250 for n in range(4)]
        >>> with ProcessPoolExecutor(2) as workers:
        ...     staged = list(workers.map(stage_chunk, [path] * 4, ids, parts))
        >>> s.append_staged(staged)
        4
        >>> s[:] == b"".join(parts)
        True
        >>> s.close()
        >>> folder.cleanup()

        """
        return _frame(self._handle.writing()).reserve(operator.index(n))

    def append_staged(self, staged: Iterable[StagedChunk]) -> int:
        """Add chunks that other processes wrote, in this order, and return the new number of chunks.

        Each file is read and compared with its seal. All are added, or after an
        exception none; their files stay then, and may be given again.

        Raises
        ------
        ArgumentError
            This is no sparse frame, or an id was not reserved here or is in use already.
        FormatError
            A file is not what was staged.
        ReadOnlyError, StorageError
            The handle may only read, or reading or writing failed.

        """
        store = _frame(self._handle.writing())
        with store.batch():
            for one in staged:
                chunk = store.staged(one)
                check_change(store, added=1, nbytes=_engine.describe(chunk).nbytes)
                store.append([chunk])
            return store.nchunks

    def replace_staged(self, nchunk: int, staged: StagedChunk) -> int:
        """Put a chunk that another process wrote in the place of chunk `nchunk`; return the number of chunks.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        ArgumentError, FormatError, ReadOnlyError, StorageError
            As `append_staged`.

        """
        store = _frame(self._handle.writing())
        with store.batch():
            number, chunk = self._checked_nchunk(store, nchunk), store.staged(staged)
            check_change(store, nbytes=_engine.describe(chunk).nbytes)
            store.replace(number, chunk)
            return store.nchunks


def _frame(store: ChunkStore) -> FrameStore:
    if not isinstance(store, FrameStore):
        msg = "only a sparse frame (urlpath and contiguous=False) takes chunks that others write"
        raise ArgumentError(msg)
    return store
