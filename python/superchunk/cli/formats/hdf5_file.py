"""The file beneath a new HDF5 file.

HDF5 keeps part of a file in memory and writes it when the file is closed. If that write fails on a full disk, HDF5
never releases the file, and the program ends with a segmentation fault. So HDF5 writes through this file object, which
never fails: after the first error it discards all writes, and `check` raises the error.

Signals wait meanwhile (`signals.undisturbed`), because the exception of a signal would be such a failure.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Buffer
    from pathlib import Path

__all__ = ["FileThatGivesUp"]


class FileThatGivesUp(io.RawIOBase):
    """A file for reading and writing, made if it is not there."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        self._at = 0
        self._error: OSError | None = None

    def check(self) -> None:
        """Raise what went wrong, if anything did."""
        if self._error is not None:
            raise self._error

    def readable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a place, and return it."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence)
        self._at = offset + (os.fstat(self._fd).st_size if start is None else start)
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill a buffer, and return the bytes that there were."""
        got = 0
        try:
            got = os.preadv(self._fd, [buffer], self._at)
        except OSError as error:
            self._error = self._error or error
        self._at += got
        return got

    def write(self, data: Buffer, /) -> int:
        """Write all of `data`; after an error do as if."""
        left = memoryview(data).cast("B")
        nbytes = len(left)
        try:
            while left and self._error is None:
                done = os.pwrite(self._fd, left, self._at)
                self._at, left = self._at + done, left[done:]
        except OSError as error:
            self._error = error
        self._at += len(left)
        return nbytes

    def truncate(self, size: int | None = None, /) -> int:
        """Give the file a size; after an error do as if."""
        size = self._at if size is None else size
        try:
            if self._error is None:
                os.ftruncate(self._fd, size)
        except OSError as error:
            self._error = error
        return size

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            os.close(self._fd)
        super().close()
