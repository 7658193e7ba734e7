"""Where the chunks of a frame are, for who checks them: from index entries to sources.

A contiguous frame has them in one file or buffer, behind its header; a sparse one in files of
their own. Reads nothing by itself.

Source: docs/format/cframe.md, "Layout"; docs/format/sparse.md.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from superchunk import _engine
from superchunk._format.frame_index import CHUNK_MIN
from superchunk._store.chunk_folder import chunk_name, joined
from superchunk._store.chunk_sources import read_range
from superchunk.exceptions import StorageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from superchunk._engine import Source
    from superchunk._integrity.inspect_frame import Bytes

__all__ = ["ChunkPlaces", "FilePlaces", "FolderPlaces"]


class ChunkPlaces(Protocol):
    """From entries to sources."""

    apart: bool
    """Whether chunks stand in files of their own."""
    most: int
    """The largest entry."""
    data_len: int
    """Bytes of all chunks together, about."""

    def source(self, entry: int, limit: int | None) -> Source:
        """Return where the chunk with `entry` is, of at most `limit` bytes."""
        ...

    def check_run(self, entries: NDArray[np.int64], nthreads: int) -> tuple[bytes, bytes, bytes] | None:
        """Return what `_engine.check_run` says of entries that ascend from 0 to `most`; None: it cannot be asked."""
        ...

    def read(self, entry: int, nbytes: int) -> bytes:
        """Return the first bytes of a chunk and of what follows it."""
        ...

    def reach(self, entry: int) -> int:
        """Return the bytes that there are from a chunk's first one on."""
        ...

    def position(self, entry: int) -> int:
        """Return what a report calls the chunk's position."""
        ...

    def file(self, entry: int) -> str:
        """Return the name of the chunk's file, if it has one of its own."""
        ...

    def problem(self, entry: int) -> str:
        """Return why the chunk cannot be read, if that is known."""
        ...


class FilePlaces:
    """The chunks of a contiguous frame."""

    apart = False

    def __init__(self, place: Bytes, header_len: int, data_len: int) -> None:
        """Take where the frame is, and the bytes of its header and its data section."""
        self._source, self._read, self._base = place.source, place.read, header_len
        self.data_len, self.most = data_len, data_len - CHUNK_MIN
        self._start = place.source(header_len, data_len)

    def source(self, entry: int, limit: int | None) -> Source:
        """Return where the chunk with `entry` is."""
        data_len = self.data_len - entry
        return self._source(self._base + entry, data_len if limit is None else min(limit, data_len))

    def check_run(self, entries: NDArray[np.int64], nthreads: int) -> tuple[bytes, bytes, bytes] | None:
        """Compare the chunks with their seals, unless they are in memory."""
        start = self._start
        if isinstance(start, tuple) and isinstance(start[0], int):
            return _engine.check_run(start[0], start[1], entries, self.data_len, nthreads)
        return None

    def read(self, entry: int, nbytes: int) -> bytes:
        """Return the first bytes of a chunk and of what follows it."""
        return self._read(min(nbytes, self.data_len - entry), self._base + entry)

    def reach(self, entry: int) -> int:
        """Return the bytes from a chunk's first one to the end of the data section."""
        return self.data_len - entry

    def position(self, entry: int) -> int:
        """Return the chunk's first byte, counted from the frame's."""
        return self._base + entry

    def file(self, entry: int) -> str:
        """Return nothing: chunks have no files."""
        del entry
        return ""

    problem = file


class FolderPlaces:
    """The chunks of a sparse frame, one file each."""

    apart = True
    most = 2**32 - 1

    def __init__(self, folder: str) -> None:
        """Take the directory."""
        self._folder = folder
        self.data_len = 0
        with os.scandir(folder) as names:
            for name in names:
                if name.name.endswith(".chunk") and name.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):  # a writer has removed it meanwhile: no present state names it
                        self.data_len += name.stat(follow_symlinks=False).st_size

    def source(self, entry: int, limit: int | None) -> Source:
        """Return where the chunk with `entry` is."""
        del limit
        return (joined(self._folder, chunk_name(entry)), 0, 2**63 - 1)

    def check_run(self, entries: NDArray[np.int64], nthreads: int) -> None:
        """Say that files of their own are in no row."""

    def read(self, entry: int, nbytes: int) -> bytes:
        """Return the first bytes of the chunk's file, none if it is gone."""
        try:
            return read_range((joined(self._folder, chunk_name(entry)), 0, nbytes), nbytes)
        except StorageError:
            return b""

    def reach(self, entry: int) -> int:
        """Return the bytes of the chunk's file, 0 if it is gone."""
        try:
            return os.lstat(joined(self._folder, chunk_name(entry))).st_size
        except OSError:
            return 0

    def position(self, entry: int) -> int:
        """Return the number of the chunk's file."""
        return entry

    def file(self, entry: int) -> str:
        """Return the name of the chunk's file."""
        return chunk_name(entry)

    def problem(self, entry: int) -> str:
        """Return why the chunk's file cannot be read, if that is known."""
        try:
            mode = os.lstat(joined(self._folder, chunk_name(entry))).st_mode
        except OSError:
            return "there is no such file"
        if stat.S_ISLNK(mode):
            return "it is a symbolic link, which nobody follows"
        return "" if stat.S_ISREG(mode) else "it is no regular file"
