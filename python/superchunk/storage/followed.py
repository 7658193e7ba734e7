"""A contiguous frame in a file as it was read, following what other writers commit.

Whoever wants to see the present frame reads its first bytes again, and loads header,
trailer and index anew if they differ. Chunks are ranges of the file. Changes and commits
are in `state`.

Source: docs/format/cframe.md, "Commits" and "Concurrency".
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from superchunk.exceptions import FormatError, StorageError
from superchunk.frame.header import FIXED_LEN
from superchunk.frame.index import ENTRY_LEN
from superchunk.storage.base import Snapshot
from superchunk.storage.changes import MutableChunkTable
from superchunk.storage.loading import parse_frame, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from superchunk._engine import Source
    from superchunk.storage.file import FileBytes
    from superchunk.storage.loading import Loaded

__all__ = ["FollowedFrame"]

_CHUNK_MIN = 32
# Pauses, in seconds, while a writer may be between two of its writes.
_RETRIES = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)


class FollowedFrame(MutableChunkTable):
    """Chunks of a frame in a file, and what its header and trailer say."""

    def __init__(self, file: FileBytes, start: int, loaded: Loaded, size: int) -> None:
        """Take over `file`, whose frame at byte `start` says `loaded`; see `load`."""
        self.file = file
        self.start = start
        self.users = 0
        self.lock = threading.RLock()
        self.unpublished: str | None = None
        """The name that the file gets with its first commit, if it waits for that."""
        self._loads = 0
        super().__init__(
            settings_of(loaded.header),
            loaded.index,
            nbytes=loaded.header.nbytes,
            chunksize=loaded.header.chunksize,
            vlblocks=None,
            vlmeta=loaded.trailer.vlmeta,
        )
        self._adopt(loaded, size)

    def _adopt(self, loaded: Loaded, size: int) -> None:
        """Become the committed state that `loaded` describes."""
        header = loaded.header
        self.settings = settings_of(header)
        self.fixed_size = header.chunksize
        self.vlmeta = loaded.trailer.vlmeta
        self._vlblocks = None if header.nbytes else header.vlblocks
        self._raw_header = loaded.raw_header
        self._layers = loaded.layers
        self._meta: dict[str, bytes] | None = None
        self._base = self.start + header.header_len
        self._room = header.cbytes if header.nbytes else 0
        self._end = header.frame_len
        self.nbytes = header.nbytes
        self.index = loaded.index
        self._index_len = loaded.index_len
        self._index_of = len(loaded.index)
        self._trailer_len = loaded.trailer_len
        self.frame_len = header.frame_len
        self._behind = size - header.frame_len
        self._stray = self._behind > 0
        self._written = 0
        self._probe = loaded.probe
        self._live = None if len(loaded.index) else (0, 0)
        self._sizes = self._starts = None
        self._specials.clear()
        self._remember()
        self._loads += 1
        self.version += 1

    def _remember(self) -> None:
        """Take the present state for the committed one."""
        self._committed_header = self._raw_header
        self._committed_vlmeta = self.vlmeta
        self._index_changed = False
        self._dirty = False
        self._written = 0

    @classmethod
    def load(cls, file: FileBytes, start: int) -> Self:
        """Read the frame at byte `start` of `file`.

        A writer may be at work: while reading fails and the header keeps changing, read
        again.

        Raises
        ------
        FormatError, UnsupportedError
            There is no frame, a damaged one, or one that this library does not read.
        StorageError
            The file cannot be read.

        """
        for _ in range(len(_RETRIES)):
            before = file.pread(FIXED_LEN, start)
            try:
                return cls(file, start, *_read(file, start))
            except FormatError:
                if file.pread(FIXED_LEN, start) == before:
                    raise
        return cls(file, start, *_read(file, start))

    # Reading.

    def place(self, entry: int, nchunk: int) -> Source:
        """Return the range of the file that begins with chunk `nchunk`."""
        room = self._room - entry
        if room < _CHUNK_MIN:
            raise _misplaced(entry, nchunk, self._room)
        return (self.file.read_fd, self._base + entry, room)

    def snapshot(self) -> Snapshot:
        """Return the chunks as they are now; they stay where they are in the file."""
        fd, base, room = self.file.read_fd, self._base, self._room

        def place(entry: int, nchunk: int) -> Source:
            if room - entry < _CHUNK_MIN:
                raise _misplaced(entry, nchunk, room)
            return (fd, base + entry, room - entry)

        return Snapshot(self.index.copy(), place, self.fixed_size)

    @property
    def meta(self) -> Mapping[str, bytes]:
        """The fixed metalayers, raw."""
        meta = self._meta
        if meta is None:
            raw = self._raw_header
            meta = {name: raw[at : at + n] for name, (at, n) in self._layers.items()}
            self._meta = meta
        return meta

    @property
    def dead_bytes(self) -> int:
        """Bytes of the committed frame and of what waits that nothing refers to."""
        used = len(self._raw_header) + self._index_len + self._trailer_len + self.live[0]
        return max(self._end - used, 0)

    def refresh(self) -> bool:
        """Follow another process's commit; return whether there was one.

        Raises
        ------
        StorageError
            There was one although changes of this process waited; they are lost.
        FormatError
            The frame is damaged now.

        """
        probe = self._probe
        if self.file.pread(len(probe), self.start) == probe:
            return False
        with self.lock:
            probe = self._probe
            if self.file.pread(len(probe), self.start) == probe:
                return False
            waiting = self._dirty or self._depth > 0
            self._reload()
        if waiting:
            raise StorageError(
                f"{self.file.path}: changed by another process while changes made here waited"
                " for their commit; those are lost"
            )
        return True

    def _reload(self) -> None:
        for pause in (*_RETRIES, None):
            before = self.file.pread(FIXED_LEN, self.start)
            try:
                loaded, size = _read(self.file, self.start)
            except FormatError:
                if pause is None:
                    raise
                time.sleep(pause)  # a writer may be between two of its writes
                continue
            if loaded.raw_header[:FIXED_LEN] == before or pause is None:
                self._adopt(loaded, size)
                return


def _misplaced(entry: int, nchunk: int, room: int) -> FormatError:
    return FormatError(
        f"index entry {nchunk}",
        at=ENTRY_LEN * nchunk,
        expected=f"at most {room - _CHUNK_MIN}",
        found=entry,
    )


def _read(file: FileBytes, start: int) -> tuple[Loaded, int]:
    """Return what the frame at byte `start` says, and the bytes from there to the end."""
    size = max(file.size() - start, 0)
    loaded = parse_frame(
        lambda nbytes, at: file.pread(nbytes, start + at),
        size,
        lambda at, limit: (file.read_fd, start + at, limit),
    )
    return loaded, size
