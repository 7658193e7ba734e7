"""Several processes write chunks of one sparse frame, and one of them commits.

The coordinator has the frame open for writing and hands out chunk ids; workers compress into
the files of those ids, needing nothing but the path; what they return goes back to
the coordinator, which checks it and puts it into the list.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._array_guard import check_change
from superchunk._buffers import byte_view, check_buffersize
from superchunk._encoding import cparams_of, encode_params
from superchunk._functions import FunctionCalls
from superchunk._writing import with_typesize
from superchunk.exceptions import ArgumentError
from superchunk.params import as_cparams, local_path
from superchunk.storage.file import FileBytes
from superchunk.storage.folder import is_folder, open_folder
from superchunk.storage.followed_folder import absolute, read_present
from superchunk.storage.frames import FrameStore
from superchunk.storage.loading import settings_of
from superchunk.storage.staging import StagedChunk, place_chunk

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from superchunk._buffers import AnyBuffer
    from superchunk.params import CParams, CParamsDict
    from superchunk.storage.base import ChunkStore, FrameSettings

__all__ = ["StagedCalls", "StagedChunk", "stage_chunk"]


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
                store.insert(store.nchunks, [chunk])
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
        number, chunk = self._checked_nchunk(store, nchunk), store.staged(staged)
        check_change(store, nbytes=_engine.describe(chunk).nbytes)
        store.replace(number, chunk)
        return store.nchunks


def stage_chunk(
    urlpath: str | os.PathLike[str],
    chunk_id: int,
    data: AnyBuffer,
    cparams: CParams | CParamsDict | None = None,
) -> StagedChunk:
    """Compress `data` into the chunk file of an id of a sparse frame; in any process, without a lock.

    The chunk is on the disk when this returns, and no part of the frame until the
    coordinator calls `SChunk.append_staged` or `SChunk.replace_staged`.

    Parameters
    ----------
    urlpath
        The directory of the sparse frame.
    chunk_id
        An id from `SChunk.reserve_chunk_ids`.
    data
        A C-contiguous buffer of 1 to `MAX_BUFFERSIZE` bytes.
    cparams
        How to compress; None: as the frame records, with one thread. The typesize is
        the frame's.

    Returns
    -------
    StagedChunk
        What the coordinator needs to know. Data of one value gets no file: it is in here.

    Raises
    ------
    ArgumentError
        `urlpath` is no directory, or `chunk_id` no possible id.
    ValueError
        `data` is empty, too large or not contiguous.
    FormatError
        There is no sparse frame, or a damaged one.
    StorageError
        That id has a file already (errno EEXIST), or the system refuses.

    """
    path = local_path(urlpath)
    if path is None or not is_folder(path):
        msg = f"urlpath: expected the directory of a sparse frame, got {path!r}"
        raise ArgumentError(msg)
    view = byte_view(data)
    check_buffersize(view.nbytes, "data")
    if not view.nbytes:
        msg = "data: expected at least 1 byte, a chunk cannot be empty"
        raise ValueError(msg)
    folder = absolute(path)
    params = encode_params(_chosen(_recorded(folder), cparams))
    return place_chunk(folder, operator.index(chunk_id), _engine.compress(view, params))


def _recorded(folder: str) -> FrameSettings:
    """Return what a sparse frame records for new chunks."""
    opened = FileBytes(folder, open_folder(folder))
    try:
        file, loaded = read_present(opened, patient=True)
        file.close()
    finally:
        opened.close()
    return settings_of(loaded.header)


def _chosen(settings: FrameSettings, cparams: CParams | CParamsDict | None) -> CParams:
    recorded = cparams_of(settings, 1)
    if cparams is None:
        return recorded
    return with_typesize(as_cparams(cparams, recorded.typesize), recorded.typesize)


def _frame(store: ChunkStore) -> FrameStore:
    if not isinstance(store, FrameStore):
        msg = "only a sparse frame (urlpath and contiguous=False) takes chunks that others write"
        raise ArgumentError(msg)
    return store
