"""Positioned reads and writes on one file, and how their failures are told.

Everything goes through descriptors with ``pread`` and ``pwrite``: no position to
share between threads or after a fork, no mapping that could fault. Reading and
writing have a descriptor each, so that a handle for reading asks for no more.
Knows nothing about frames.
"""

from __future__ import annotations

import os
import stat
from typing import Self

from superchunk.exceptions import StorageError, UnsupportedError

__all__ = ["FileBytes", "storage_error"]


def storage_error(error: OSError, path: str) -> StorageError:
    """Return `error` as a `StorageError` about `path`, errno kept."""
    return StorageError(error.errno or 0, error.strerror or str(error), path)


class FileBytes:
    """The bytes of one open file; all positions count from its first byte.

    Every method raises `StorageError` when the system refuses.
    """

    __slots__ = ("path", "read_fd", "write_fd")

    def __init__(self, path: str, read_fd: int, write_fd: int = -1) -> None:
        """Take over open descriptors; `write_fd` may equal `read_fd`, -1 is none."""
        self.path = path
        self.read_fd = read_fd
        self.write_fd = write_fd

    @classmethod
    def open(cls, path: str) -> Self:
        """Open the regular file `path` for reading.

        Raises
        ------
        FileNotFoundError
            There is none.
        UnsupportedError
            It is a directory: a sparse frame, if a frame at all.
        StorageError
            The system refuses, or it is no regular file.

        """
        try:
            # Without O_NONBLOCK, opening a named pipe would wait for a writer.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise storage_error(error, path) from error
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode):
            return cls(path, fd)
        os.close(fd)
        if stat.S_ISDIR(mode):
            refusal = UnsupportedError("frame type", 1, "sparse")
            refusal.args = (
                f"{path}: expected a file, found a directory: sparse frames are not supported by this version",
            )
            raise refusal
        raise StorageError(f"{path}: expected a regular file")

    @classmethod
    def create(cls, path: str) -> Self:
        """Create the new file `path` for reading and writing; it must not exist."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise storage_error(error, path) from error
        return cls(path, fd, fd)

    def identity(self) -> tuple[int, int]:
        """Return device and inode."""
        status = os.fstat(self.read_fd)
        return status.st_dev, status.st_ino

    def enable_writing(self) -> None:
        """Open the file for writing too, if it is not yet."""
        if self.write_fd >= 0:
            return
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise storage_error(error, self.path) from error
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != self.identity():
            os.close(fd)
            raise StorageError(f"{self.path}: replaced by another file since it was opened")
        self.write_fd = fd

    def size(self) -> int:
        """Return the file's size, bytes."""
        try:
            return os.fstat(self.read_fd).st_size
        except OSError as error:
            raise storage_error(error, self.path) from error

    def pread(self, nbytes: int, at: int) -> bytes:
        """Return `nbytes` from byte `at`, fewer where the file ends."""
        try:
            raw = os.pread(self.read_fd, nbytes, at)
            while len(raw) < nbytes:  # signals, and reads over 2 GiB, come in parts
                more = os.pread(self.read_fd, nbytes - len(raw), at + len(raw))
                if not more:
                    break
                raw += more
        except OSError as error:
            raise storage_error(error, self.path) from error
        return raw

    def pwrite(self, data: bytes, at: int) -> None:
        """Write all of `data` at byte `at`."""
        try:
            done = os.pwrite(self.write_fd, data, at)
            while done < len(data):
                done += os.pwrite(self.write_fd, memoryview(data)[done:], at + done)
        except OSError as error:
            raise storage_error(error, self.path) from error

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        try:
            os.ftruncate(self.write_fd, size)
        except OSError as error:
            raise storage_error(error, self.path) from error

    def sync(self) -> None:
        """Wait until what was written is on the disk."""
        try:
            os.fsync(self.write_fd)
        except OSError as error:
            raise storage_error(error, self.path) from error

    def close(self) -> None:
        """Close the descriptors; closing twice is fine."""
        for fd in {self.read_fd, self.write_fd} - {-1}:
            os.close(fd)
        self.read_fd = self.write_fd = -1
