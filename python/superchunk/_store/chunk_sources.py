"""The bytes of chunks as they lie in files, for those who want them undecoded.

Files are read by position. A file that is only named is open while it is read, and never through a symbolic link,
because names come from containers that anybody may have written.

Source: _engine.pyi, `Source`.
"""

from __future__ import annotations

import os
from typing import Final

from superchunk._store.os_file import storage_error

__all__ = ["read_range"]

_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)


def read_range(
    source: tuple[int, int, int] | tuple[str, int, int] | tuple[tuple[int, str], int, int], length: int
) -> bytes:
    """Return the first bytes of a source that is in a file.

    Parameters
    ----------
    source
        ``(fd, offset, limit)``, ``(path, offset, limit)``, or ``((folder, path), offset, limit)``.
    length
        How many, in bytes. Fewer come only where the file ends.

    Raises
    ------
    StorageError
        The file cannot be opened or read.

    """
    file, offset, _ = source
    folder = None
    if isinstance(file, tuple):
        folder, file = file
    try:
        if isinstance(file, int):
            return _read(file, offset, length)
        name = file if folder is None else os.path.basename(file)
        descriptor = os.open(name, _FLAGS, dir_fd=folder)
        try:
            return _read(descriptor, offset, length)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_error(error, f"descriptor {file}" if isinstance(file, int) else file) from error


def _read(descriptor: int, offset: int, length: int) -> bytes:
    content = os.pread(descriptor, length, offset)
    while len(content) < length and (more := os.pread(descriptor, length - len(content), offset + len(content))):
        content += more
    return content
