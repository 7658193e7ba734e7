"""The mark that a frame is being written, on the frame itself: one writer at a time.

An advisory lock on the file, or on the directory of a sparse frame, which is gone when the process is. Who comes second
is refused at once; readers do not look at it. Writers that want to take turns instead use `_store.lock_file`.

A lock of this kind (``flock``) belongs to the *open file*, which a forked child shares with its parent. Releasing the
lock in the child would take it from the parent. A copy kept open in the child keeps the lock alive when the parent
dies. So in a child a `WriterLock` forgets what it held without unlocking, and the owner of the descriptor calls
`separate` or closes it. Knows nothing about what is in a frame.

Source: docs/format/locks.md.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Final
from weakref import WeakSet

from superchunk._store.os_file import storage_error
from superchunk.exceptions import LockedError, StorageError

if sys.platform == "win32":
    LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN = 1, 2, 4, 8

    def flock(fd: int, operation: int) -> None:
        """Refuse: there is no such lock on Windows."""
        del fd, operation
        raise OSError(errno.ENOTSUP, "flock is not there on Windows")

else:
    from fcntl import F_GETFL, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, fcntl, flock

__all__ = ["CANNOT_LOCK", "LOCK_EX", "LOCK_NB", "LOCK_SH", "LOCK_UN", "WriterLock", "flock", "leads_to", "separate"]

CANNOT_LOCK: Final = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS})
"""What a file system answers that has no such locks."""

_ALREADY_WRITTEN: Final = (
    "another process has it open for writing; open it for reading, or wait until that process closes it, "
    "or open it with locking=True in both"
)

_forks = 0
"""How many forks there were between the first process and this one."""


def leads_to(path: str, fd: int) -> bool:
    """Return whether `path` still names the open file or directory `fd`.

    Call this after a lock was taken. Between opening and locking the file may have been replaced; the lock is then on a
    file that nobody else will open.

    Raises
    ------
    StorageError
        The system does not tell.

    """
    try:
        there = os.stat(path)
        ours = os.fstat(fd)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise storage_error(error, path) from error
    return os.path.samestat(there, ours)


def separate(fd: int, path: str) -> None:
    """Make the descriptor `fd`, inherited by a fork, an open file of this process alone; its number stays.

    Until then it shares the parent's locks, and keeps them alive when the parent dies.

    Parameters
    ----------
    fd
        A descriptor of a regular file or a directory.
    path
        Its name, for systems where only the name leads to it, and for errors.

    Raises
    ------
    StorageError
        It cannot be opened again, or `path` leads elsewhere by now. `fd` is as before; the caller should close it.

    """
    access = fcntl(fd, F_GETFL) & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
    flags = access | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        try:
            # On Linux this opens the very file, whatever became of its name.
            fresh = os.open(f"/proc/self/fd/{fd}", flags)
        except FileNotFoundError:
            fresh = os.open(path, flags)
    except OSError as error:
        raise storage_error(error, path) from error
    try:
        if not os.path.sameopenfile(fresh, fd):
            raise StorageError(errno.ESTALE, "replaced by another file since it was opened", path)
        os.dup2(fresh, fd, inheritable=False)
    finally:
        os.close(fresh)


class WriterLock:
    """The mark that a frame is being written, on an open descriptor of it.

    After a fork the child does not hold it: `held` is False there, `release` does nothing, and `acquire` tries anew. It
    separates the descriptor first, because on the inherited one the parent's lock would pass for the child's own. As
    long as the child keeps the inherited descriptor, though, the lock outlives a parent that dies; `separate` or close
    it.
    """

    __slots__ = ("__weakref__", "_fd", "_forks", "_inherited", "_marked", "held")

    def __init__(self, *, inherited: bool = False) -> None:
        """Make a lock that holds nothing; its descriptor may be `inherited` from before a fork."""
        self.held = False
        """Whether this process took the lock and has not let go of it; True as well where nothing can be locked."""
        self._fd = -1
        self._marked = False
        self._inherited = inherited
        self._forks = _forks

    def acquire(self, fd: int, path: str, *, shared: bool = False) -> None:
        """Take the lock, or fail at once. Holding it already is fine.

        Where the file system cannot lock, go on without: then nothing keeps two writers apart.

        Parameters
        ----------
        fd
            The frame's file, or the directory of a sparse frame. Remains the caller's, who must keep it open, and
            asks `leads_to` afterwards if the frame may be replaced by renaming.
        path
            Its name, for errors.
        shared
            For writers that take turns by a sidecar: they let each other in, but nobody who does not.

        Raises
        ------
        LockedError
            Another process, or another open file in this one, holds it; errno is EAGAIN.
        StorageError
            The system refuses for another reason.

        """
        if self.held:
            return
        if self._forks != _forks:
            self._forget()
        _taken.add(self)
        if self._inherited:
            separate(fd, path)
            self._inherited = False
        try:
            try:
                flock(fd, (LOCK_SH if shared else LOCK_EX) | LOCK_NB)
                self._marked = True
            except OSError as error:
                if error.errno in {errno.EAGAIN, errno.EACCES}:
                    raise LockedError(errno.EAGAIN, _ALREADY_WRITTEN, path) from error
                if error.errno not in CANNOT_LOCK:
                    raise storage_error(error, path) from error
            self._fd = fd
            self.held = True
        except BaseException:  # an interrupt, too, which may come when it is locked already
            self.held = False
            self._fd, self._marked = -1, False
            with suppress(OSError):
                flock(fd, LOCK_UN)
            raise

    def release(self) -> None:
        """Let go of the lock, before the descriptor is closed; nothing happens if it is not held.

        Closing alone would not do while a forked child has a copy of the descriptor.
        """
        if self._forks != _forks:
            self._forget()
        if self._marked and self._fd >= 0:
            flock(self._fd, LOCK_UN)
        self._marked = False  # now, so that an interrupt leaves something to be done again
        self.held = False
        self._fd = -1

    def _forget(self) -> None:
        """Forget the lock without unlocking it, in a child process: it is the parent's."""
        self._forks = _forks
        self.held = False
        self._fd = -1
        self._marked = False
        self._inherited = True


_taken: WeakSet[WriterLock] = WeakSet()
"""Locks that this process has taken; in a child they are the parent's."""


def _after_fork() -> None:
    global _forks  # noqa: PLW0603 - a child counts on from its parent
    _forks += 1
    for lock in list(_taken):
        lock._forget()
    _taken.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
