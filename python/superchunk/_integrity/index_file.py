"""The index file of a sparse frame that may be damaged: found, kept, and what else there is.

::

    NAME/chunks.b2frame       the present index; pinned, so that no writer removes what it names
    NAME/.settled.b2frame     the newest one known to be on the disk, if that is another one

Source: docs/format/sparse.md, "Last synced index" and "Snapshots".
"""

from __future__ import annotations

import errno
import os
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from superchunk._integrity.inspect_frame import Bytes
from superchunk._integrity.report import PartReport
from superchunk._store.chunk_folder import INDEX_NAME, LAST_SYNCED_NAME, joined, open_folder
from superchunk._store.frame_loading import check_fingerprint
from superchunk._store.locks import leads_to
from superchunk._store.os_file import FileBytes
from superchunk._store.retained_indexes import load_index
from superchunk._store.snapshot_locks import lock_shared
from superchunk._store.sparse_frame_loading import last_synced_frame, whole_chunks
from superchunk.exceptions import StorageError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from superchunk._store.frame_loading import Loaded

__all__ = ["IndexFile", "bytes_of_file", "chunk_files", "last_synced_part", "last_synced_place", "opened_index"]

_MOST_MOVES: Final = 1000
_EMPTY: Final = Bytes(lambda _nbytes, _at: b"", 0, lambda _at, _limit: b"", sparse=True)


class IndexFile(NamedTuple):
    """An index file, or why there is none."""

    place: Bytes
    """Its bytes, none without a file."""
    problem: str
    """Why it cannot be read; empty if it can."""


def bytes_of_file(file: FileBytes, start: int, *, sparse: bool = False) -> Bytes:
    """Return the frame at byte `start` of a file."""
    return Bytes(
        lambda nbytes, at: file.pread(nbytes, start + at),
        max(file.size() - start, 0),
        lambda at, limit: (file.read_fd, start + at, limit),
        sparse,
    )


@contextmanager
def opened_index(folder: str) -> Iterator[IndexFile]:
    """Open the index file in the directory `folder`; as long as the block runs, what it names stays.

    Raises
    ------
    FileNotFoundError
        There is neither an index file nor anything else of a frame.
    StorageError
        The system refuses.

    """
    path = joined(folder, INDEX_NAME)
    if not os.path.lexists(path):
        if not _has_remains(folder):
            raise StorageError(errno.ENOENT, "no index file, and no chunk files", path)
        yield IndexFile(_EMPTY, "there is no index file")
        return
    if os.path.islink(path) or not os.path.isfile(path):
        yield IndexFile(_EMPTY, "the index file is no regular file, or a symbolic link, which nobody follows")
        return
    file = _pinned(path)
    try:
        yield IndexFile(bytes_of_file(file, 0, sparse=True), "")
    finally:
        file.close()


def _pinned(path: str) -> FileBytes:
    for _ in range(_MOST_MOVES):
        file = FileBytes.open(path, follow=False)
        try:
            lock_shared(file)
            if leads_to(path, file.read_fd):
                return file
        except BaseException:
            file.close()
            raise
        file.close()
    raise StorageError(f"{path}: replaced faster than it can be opened")


def _has_remains(folder: str) -> bool:
    """Return whether there are chunk files or a last synced index."""
    with os.scandir(folder) as names:
        return any(one.name == LAST_SYNCED_NAME or one.name.endswith(".chunk") for one in names)


def chunk_files(folder: str) -> int:
    """Return how many chunk files there are in the directory `folder`."""
    with os.scandir(folder) as names:
        return sum(one.name.endswith(".chunk") and one.is_file(follow_symlinks=False) for one in names)


@contextmanager
def last_synced_place(folder: str) -> Iterator[Bytes | None]:
    """Open the last synced index file, if it and all that it names are whole; else None."""
    with closing(FileBytes(folder, open_folder(folder))) as opened:
        found = last_synced_frame(opened)
    if found is None:
        yield None
        return
    with closing(found[0]) as file:
        yield bytes_of_file(file, 0, sparse=True)


def last_synced_part(folder: str) -> PartReport | None:
    """Return what is known of the last synced index file, None if there is none; never what makes a frame damaged.

    Raises
    ------
    StorageError
        It cannot be read.

    """
    path = joined(folder, LAST_SYNCED_NAME)
    name = "last synced index"
    for _ in range(_MOST_MOVES):
        try:
            file = FileBytes.open(path, follow=False)
        except FileNotFoundError:
            return None
        except StorageError as error:
            return PartReport(name=name, status="in doubt", position=0, length=0, message=str(error))
        with closing(file):
            try:
                loaded = load_index(file)
                if loaded.sealed is None:
                    check_fingerprint(loaded)
                with closing(FileBytes(folder, open_folder(folder))) as opened:
                    whole_chunks(opened, loaded, besides=set())
            except SuperchunkError as error:
                if not leads_to(path, file.read_fd):
                    continue  # a writer has synced another one, and removed what only this one named
                message = f"cannot be gone back to: {error}"
                return PartReport(name=name, status="in doubt", position=0, length=file.size(), message=message)
        length = loaded.header.frame_len
        return PartReport(name=name, status="sound", position=0, length=length, message=_says(loaded))
    raise StorageError(f"{path}: replaced faster than it can be read")


def _says(loaded: Loaded) -> str:
    going_back = "open(..., recover=True) and repair(..., recover=True) go back to"
    return f"whole, with {len(loaded.index)} chunks: the state that {going_back}"
