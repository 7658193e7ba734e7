"""The mark on an index file of a sparse frame that snapshots reference it.

A shared lock on the open file, gone when the process is. Writers ask for it before they take the
file's name away, and remove nothing that such a file names. Knows nothing about what is in it.

Source: docs/format/sparse.md, "Snapshots".
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from superchunk._store.locks import CANNOT_LOCK, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock
from superchunk._store.os_file import storage_error

if TYPE_CHECKING:
    from superchunk._store.os_file import FileBytes

__all__ = ["is_share_locked", "lock_shared", "unlock_shared"]


def lock_shared(file: FileBytes) -> None:
    """Tell writers to leave what an index file names; it must be asked afterwards whether it is the present one.

    Where the file system cannot lock, nothing is known.

    Raises
    ------
    StorageError
        The system refuses.

    """
    _lock(file, LOCK_SH)


def unlock_shared(file: FileBytes) -> None:
    """Take back what `lock_shared` said."""
    _lock(file, LOCK_UN)


def is_share_locked(file: FileBytes) -> bool:
    """Return whether a snapshot references an index file; if not, none begins before `unlock_shared` or closing.

    Raises
    ------
    StorageError
        The system refuses.

    """
    try:
        flock(file.read_fd, LOCK_EX | LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            return True
        if error.errno not in CANNOT_LOCK:
            raise storage_error(error, file.path) from error
    return False


def _lock(file: FileBytes, operation: int) -> None:
    try:
        flock(file.read_fd, operation)
    except OSError as error:
        if error.errno not in CANNOT_LOCK:
            raise storage_error(error, file.path) from error
