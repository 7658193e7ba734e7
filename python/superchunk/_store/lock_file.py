"""Taking turns with other processes as C-Blosc2 does: a file beside the frame that each operation locks.

::

    offset  bytes  sidecar (P.b2lock beside the file P, D/.b2lock in the directory D)
    0       8      nothing: never read, kept as it is
    8       8      counter, u64 in the machine's byte order; missing or short: 0

Who reads locks it shared, who writes locks it exclusive and moves the counter on first; both wait for their turn. A
counter that differs from the one seen last tells a handle to read everything again. Knows nothing about what is
in a frame, and does not decide who has to take turns.

The lock belongs to the open file, which a forked child shares with its parent. So a child closes what it inherited
before anything else, without unlocking it, and opens the sidecar again when it needs it.

A system grants shared locks while a writer waits for the exclusive one. Readers without a pause would therefore keep
writers out. So a waiting writer of superchunk holds another lock, and readers of superchunk check that lock before they
ask for theirs. The lock is on a byte far behind the end, of a kind that `flock` and C-Blosc2 do not see.

Source: docs/format/locks.md, "The sidecar", "Lock turns" and "Fairness".
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from superchunk._store.locks import CANNOT_LOCK, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock, leads_to
from superchunk._store.os_file import storage_error
from superchunk.exceptions import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

__all__ = ["LockSidecar", "sidecar_path"]

_NOT_WRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_COUNTER_AT: Final = 8
_COUNTER_LEN: Final = 8
# How often a sidecar may vanish between opening and locking it: then somebody removes it on purpose.
_ATTEMPTS: Final = 100
_CANNOT_SHARE: Final = (
    "{}: the file system cannot lock files (network file systems often cannot), so locking=True is not possible here"
)
_CANNOT_MAKE: Final = (
    "{}: locking needs this file, for reading too; "
    "make it once as somebody who may write there, or open without locking"
)

_WAITING_AT: Final = 2**62
"""The byte that a waiting writer has locked."""
# Pauses, in seconds, of a reader that gives way. It does not wait for longer, for the writer may be waiting for a turn
# that this thread has through another handle.
_GIVING_WAY: Final = (0.0002, 0.0005, 0.001, 0.002, *[0.004] * 250)

if sys.platform == "linux" and struct.calcsize("P") == struct.calcsize("q"):
    from fcntl import F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_RDLCK, F_UNLCK, F_WRLCK, fcntl

    def _record(kind: int) -> bytes:
        """Return a ``struct flock`` for the byte of waiting writers."""
        return struct.pack("hhqqi4x", kind, os.SEEK_SET, _WAITING_AT, 1, 0)

    _READ, _WRITE, _NONE = map(_record, (F_RDLCK, F_WRLCK, F_UNLCK))

    def _somebody_waits(fd: int) -> bool:
        """Return whether a writer waits for its turn; False where that is unknown."""
        try:
            found = fcntl(fd, F_OFD_GETLK, _READ)
        except OSError:
            return False
        return found[:2] != _NONE[:2]

    def _announce(fd: int) -> None:
        """Let readers know that a writer waits, after those who wait already; nothing where that is unknown."""
        with suppress(OSError):
            fcntl(fd, F_OFD_SETLKW, _WRITE)

    def _withdraw(fd: int) -> None:
        """Wait no more."""
        with suppress(OSError):
            fcntl(fd, F_OFD_SETLK, _NONE)

else:

    def _somebody_waits(fd: int) -> bool:
        """Return False: there are no such locks here."""
        del fd
        return False

    def _announce(fd: int) -> None:
        """Do nothing: there are no such locks here."""

    def _withdraw(fd: int) -> None:
        """Do nothing: there are no such locks here."""


_sidecars: WeakSet[LockSidecar] = WeakSet()


def sidecar_path(path: str, *, sparse: bool) -> str:
    """Return where the sidecar of the frame `path` is.

    Parameters
    ----------
    path
        The file, as the user names it (each name that a file has gets a sidecar of its own), also for a frame that
        starts inside it; or the directory of a sparse frame.
    sparse
        Whether it is a directory.

    """
    return os.path.join(path, ".b2lock") if sparse else f"{path}.b2lock"


class LockSidecar:
    """One handle's part in the protocol: ``with sidecar.shared() as changed:``, or ``exclusive()`` to write.

    `changed` is true if somebody else wrote since this handle last read the counter, or if this handle never read it.
    Everything that the handle keeps in memory must then be read again. It stays changed if the block fails.

    The threads of a process take turns, readers too. Blocks may stand in each other; only the outermost locks, counts
    and may say `changed`. After a fork the child starts anew, with `changed`, even if it was inside a block.

    Parameters
    ----------
    path
        The frame, see `sidecar_path`. A relative path is taken from the working directory of this moment.
    sparse
        Whether it is a directory.

    """

    __slots__ = (
        "__weakref__",
        "_depth",
        "_epoch",
        "_exclusive",
        "_fd",
        "_seen",
        "_turn",
        "_writable",
        "looked",
        "path",
    )

    path: str
    """Where the sidecar is."""
    looked: bool
    """Whether a block was entered since it was opened: else a block says `changed` whatever happened."""

    def __init__(self, path: str, *, sparse: bool) -> None:
        """Only remember where it is; the file is opened, and made, by the first block."""
        if not os.path.isabs(path):
            path = os.path.join(os.getcwd(), path)
        self.path = sidecar_path(path, sparse=sparse)
        self._fd = -1
        self._writable = False
        self._depth = 0
        self._exclusive = False
        self._seen: int | None = None
        self.looked = False
        self._epoch = 0
        self._turn = threading.RLock()
        _sidecars.add(self)

    def shared(self) -> AbstractContextManager[bool]:
        """Return a block that reads: it waits while somebody writes, and holds up those who want to.

        Raises
        ------
        StorageError
            On entering: the sidecar cannot be opened, made or locked. Readers make it as well; where they must not,
            somebody who may write there has to make it once, or they read without locking.

        """
        return self._block(exclusive=False)

    def exclusive(self) -> AbstractContextManager[bool]:
        """Return a block that writes: it waits until nobody else reads or writes, and counts before it begins.

        Raises
        ------
        StorageError
            On entering: the sidecar cannot be opened, made, locked or written; or this is inside a block
            that only reads, whose lock would be lost while waiting (errno is EDEADLK).

        """
        return self._block(exclusive=True)

    @property
    def locked(self) -> bool:
        """Whether a block is open in this process."""
        return self._depth > 0

    def has_news(self) -> bool:
        """Return whether a block would say `changed`, or whether that is unknown without one.

        No lock is needed for that: the counter moves before the first byte of a change.
        """
        fd, seen = self._fd, self._seen
        if self._depth or fd < 0 or seen is None:
            return True
        try:
            raw = os.pread(fd, _COUNTER_LEN, _COUNTER_AT)
            return _counter_in(raw) != seen or not leads_to(self.path, fd)
        except (OSError, StorageError):  # another thread closed it
            return True

    def forget(self) -> None:
        """Take what is kept in memory for out of date: the next outermost block says `changed`."""
        self._seen = None

    def close(self) -> None:
        """Close the sidecar; closing twice is fine, and a block opened later opens it again, with `changed`."""
        with self._turn:
            self._drop()

    def __del__(self) -> None:
        """Close the sidecar."""
        if self._fd >= 0:
            os.close(self._fd)

    @contextmanager
    def _block(self, *, exclusive: bool) -> Iterator[bool]:
        with self._turn:
            changed = self._enter(exclusive=exclusive)
            epoch = self._epoch  # only now: entering may open the file anew
            try:
                yield changed
            except BaseException:
                if changed:
                    self._seen = None
                raise
            finally:
                if epoch == self._epoch:  # else closed, or in a child: nothing of this block is left
                    self._leave()

    def _enter(self, *, exclusive: bool) -> bool:
        if self._depth:
            if exclusive and not self._exclusive:
                msg = "writing inside a block that only reads: the lock would be lost while waiting for the other"
                raise StorageError(errno.EDEADLK, msg, self.path)
            self._depth += 1
            return False
        try:
            self._lock(exclusive=exclusive)
            changed = self._count(exclusive=exclusive)
        except BaseException:
            with suppress(OSError, ValueError):  # what went wrong first counts, and there may be no file
                flock(self._fd, LOCK_UN)
            raise
        self._depth = 1
        self._exclusive = exclusive
        return changed

    def _leave(self) -> None:
        self._depth -= 1
        if not self._depth:
            flock(self._fd, LOCK_UN)

    def _lock(self, *, exclusive: bool) -> None:
        """Wait for the lock on the file that `path` names once it is held."""
        for _ in range(_ATTEMPTS):
            if exclusive and self._fd >= 0 and not self._writable:
                self._drop()
            if self._fd < 0:
                self._open(exclusive=exclusive)
            try:
                self._wait_in_turn(exclusive=exclusive)
            except OSError as error:
                if error.errno in CANNOT_LOCK:
                    msg = _CANNOT_SHARE.format(error.strerror)
                    raise StorageError(error.errno, msg, self.path) from error
                raise storage_error(error, self.path) from error
            if leads_to(self.path, self._fd):
                return
            # Removed meanwhile: others lock another file by now, or will. Its counter says nothing about ours.
            self._drop()
        raise StorageError(errno.ESTALE, "removed or replaced whenever it was opened", self.path)

    def _wait_in_turn(self, *, exclusive: bool) -> None:
        """Lock the file: a writer says that it waits, a reader gives way to one that does."""
        fd = self._fd
        if not exclusive:
            for pause in _GIVING_WAY:
                if not _somebody_waits(fd):
                    break
                time.sleep(pause)
            flock(fd, LOCK_SH)
            return
        try:
            flock(fd, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            _announce(fd)
            try:
                flock(fd, LOCK_EX)
            finally:
                _withdraw(fd)

    def _count(self, *, exclusive: bool) -> bool:
        """Compare the counter with what was seen last and, to write, move it on; return whether it differs."""
        try:
            raw = os.pread(self._fd, _COUNTER_LEN, _COUNTER_AT)
            counter = _counter_in(raw)
            changed = counter != self._seen
            written = _COUNTER_LEN
            if exclusive:
                counter = (counter + 1) % (1 << 8 * _COUNTER_LEN)
                written = os.pwrite(self._fd, counter.to_bytes(_COUNTER_LEN, sys.byteorder), _COUNTER_AT)
        except OSError as error:
            raise storage_error(error, self.path) from error
        if written != _COUNTER_LEN:
            raise StorageError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        self._seen = counter
        self.looked = True
        return changed

    def _open(self, *, exclusive: bool) -> None:
        """Open the sidecar, made if there is none; only for reading if that is all that is allowed and needed."""
        try:
            fd, writable = self._descriptor(exclusive=exclusive)
        except OSError as error:
            if error.errno in _NOT_WRITABLE:
                raise StorageError(error.errno, _CANNOT_MAKE.format(error.strerror), self.path) from error
            if error.errno == errno.ELOOP:
                msg = "expected a regular file, found a symbolic link, which is not followed"
                raise StorageError(error.errno, msg, self.path) from error
            raise storage_error(error, self.path) from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise StorageError(errno.EINVAL, "expected a regular file", self.path)
        self._fd = fd
        self._writable = writable

    def _descriptor(self, *, exclusive: bool) -> tuple[int, bool]:
        # A link would let whoever made the frame choose which file is written to; a pipe would wait for its other end.
        flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
        try:
            try:
                return os.open(self.path, os.O_RDWR | flags), True
            except FileNotFoundError:
                return os.open(self.path, os.O_RDWR | os.O_CREAT | flags, 0o666), True
        except OSError as error:
            if exclusive or error.errno not in _NOT_WRITABLE:
                raise
            try:
                return os.open(self.path, os.O_RDONLY | flags), False
            except OSError:
                raise error from None

    def _drop(self) -> None:
        """Close the file, and with it end every block."""
        fd, inside = self._fd, self._depth > 0
        self._start_anew()
        if fd >= 0:
            if inside:
                flock(fd, LOCK_UN)
            os.close(fd)

    def _start_anew(self) -> None:
        self._fd = -1
        self._writable = False
        self._depth = 0
        self._exclusive = False
        self._seen = None
        self.looked = False
        self._epoch += 1

    def _after_fork(self) -> None:
        """Close what was inherited, without unlocking it: the lock is the parent's."""
        fd = self._fd
        self._turn = threading.RLock()  # the old one may be held by a thread that is not here
        self._start_anew()
        if fd >= 0:
            os.close(fd)


def _counter_in(raw: bytes) -> int:
    return int.from_bytes(raw, sys.byteorder) if len(raw) == _COUNTER_LEN else 0


def _after_fork() -> None:
    for sidecar in list(_sidecars):
        sidecar._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
