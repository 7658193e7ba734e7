"""A contiguous frame in a file as it was read, following what other writers commit.

Whoever wants to see the present frame reads its first bytes again, and loads header,
trailer and index anew if they differ; or the file itself, if another one has got its
name. Chunks are ranges of the file. How the frame is changed is in `contiguous`.

Source: docs/format/cframe.md, "Commits" and "Concurrency".
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Self

from superchunk import _engine
from superchunk._format.header import FIXED_LEN, MAGIC
from superchunk._format.index import CHUNK_MIN, check_entry
from superchunk._format.integrity import SEAL_LEN
from superchunk._store import registry
from superchunk._store.committed import CommittedFrame
from superchunk._store.file import FileBytes, RetiredFiles, storage_error
from superchunk._store.loading import FIRST_READ, about, parse_frame
from superchunk._store.locks import WriterLock, separate
from superchunk._store.seals import checked_tail
from superchunk.exceptions import FormatError, ReadOnlyError, StorageError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Buffer

    from superchunk._engine import Box, Source
    from superchunk._store.loading import Loaded

__all__ = ["FollowedFile", "range_in"]

# Pauses, in seconds, while a writer may be between two of its writes.
_RETRIES = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)


class FollowedFile(CommittedFrame):
    """A contiguous frame in a file, and the lock that writers take on it."""

    def __init__(self, file: FileBytes, start: int, loaded: Loaded, size: int) -> None:
        """Take over `file`, whose frame at byte `start` says `loaded`; see `load`."""
        self.file = file
        self.start = start
        self.unpublished: str | None = None
        """The name that the file gets with its first commit, if it waits for that."""
        self.fresh = False
        """Whether nothing of the frame can be on the disk yet, so that nothing can be lost."""
        self._size = size
        self._retired = RetiredFiles()
        self._writer = WriterLock()
        self._takes_lock_turns = False
        self._new_name = True  # for all that is known; whoever made the file may not have synced the directory
        super().__init__(file.path, loaded)

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
            head = file.pread(FIRST_READ, start)
            try:
                return cls(file, start, *_read(file, start, head))
            except FormatError:
                if file.pread(FIXED_LEN, start) == head[:FIXED_LEN]:
                    raise
        return cls(file, start, *_read(file, start))

    def _adopt(self, loaded: Loaded) -> None:
        header = loaded.header
        self._base = self.start + header.header_len
        self._room = header.cbytes if header.nbytes else 0
        self._end = header.frame_len
        self._behind = self._size - header.frame_len
        self._orphaned_tail = self._behind > 0
        if loaded.record is not None and loaded.sealed is not False:
            self._last_synced, self._sealed_from = loaded.record.last_synced, loaded.record.sealed_from
        else:  # what others wrote has no seals, and cannot be compared
            self._last_synced = self._sealed_from = header.frame_len
        self._pending = loaded.record is not None and loaded.record.pending
        super()._adopt(loaded)

    def _first_sealed(self) -> int:
        return max(self._sealed_from - len(self._raw_header), 0)

    # Reading.

    def place(self, entry: int, nchunk: int) -> Source:
        """Return the range of the file that begins with chunk `nchunk`."""
        left = self._room - entry
        if left < CHUNK_MIN:
            check_entry(entry, nchunk, self._room)
        return (self.file.read_fd, self._base + entry, left)

    def places(self, numbered: Iterable[tuple[int, int]]) -> list[Source]:
        """Return the ranges of the file that begin with chunks given by number and entry; special chunks whole."""
        fd, base, room, special = self.file.read_fd, self._base, self._room, self._special
        found: list[Source] = []
        for nchunk, entry in numbered:
            if entry < 0:
                found.append(special(entry, nchunk))
                continue
            left = room - entry
            if left < CHUNK_MIN:
                check_entry(entry, nchunk, room)
            found.append((fd, base + entry, left))
        return found

    def read_small(self, start: int, stop: int, itemsize: int, out: Buffer | None, box: Box | None) -> bytes | None:
        """Return bytes ``start:stop`` of one chunk if one call of the engine can do it; None otherwise.

        That call also finds out that the file has not changed. See `ChunkSource.read_small`.
        """
        size, nbytes = self.fixed_size, self.nbytes
        if size <= 0 or stop > nbytes:
            return None
        nchunk, low = divmod(start, size)
        high = low + stop - start
        try:
            entry = self.index[nchunk]
        except (IndexError, SuperchunkError):
            return None
        left = self._room - entry
        if entry < 0 or high > size or left < CHUNK_MIN:
            return None
        source = (self.file.read_fd, self._base + entry, left)
        return self._watch.read((source, min(size, nbytes - nchunk * size), low, high, 0), itemsize, out, box)

    def most_stored(self) -> int:
        """Return how many chunks the data section has room for."""
        return self._room // CHUNK_MIN

    @property
    def dead_bytes(self) -> int:
        """Bytes of the committed frame and of what waits that nothing refers to."""
        stored, specials = self.live
        used = len(self._raw_header) + self._index_len + self._trailer_len + stored
        if self.sealing and not self._stale_seals:
            used += SEAL_LEN * (len(self.index) - specials)
        return max(self._end - used, 0)

    def refresh(self, *, force: bool = False, whole: bool = False) -> bool:
        """Follow another process's commit or compaction; return whether there was one."""
        if self.unpublished is not None:
            return False  # nobody else knows of it
        try:
            if not (force or whole or self._watch.changed()):
                return False
        except OSError as error:
            raise storage_error(error, self.file.display_path) from error
        if self._still and not force:  # somebody, who may hold the lock for long, reads this state
            return False
        with self.lock:
            try:
                # Another thread may have been first; or the file was removed, and nothing has its name.
                if not (force or self._has_heir() or self._is_other(whole=whole)):
                    return False
                waiting = self.waiting
                self._reload()
            except SuperchunkError as error:
                raise about(error, self.path) from error
        if waiting:
            raise StorageError(
                f"{self.path}: changed by another process while changes made here waited"
                " for their commit; those are lost"
            )
        return True

    def _is_other(self, *, whole: bool) -> bool:
        """Return whether the file says anything else than it did."""
        if whole:
            return not self._is_same(_read_steadily(self.file, self.start)[0])
        try:
            return self._watch.differs()
        except OSError as error:
            raise storage_error(error, self.file.display_path) from error

    def _watch_for(self, probe: bytes) -> _engine.Watch:
        return _engine.Watch(self.file.read_fd, self.start, probe, None, self._proven)

    @property
    def _committed_range(self) -> tuple[int, int]:
        return self._base + self._room, self.start + self.frame_len

    def _has_heir(self) -> bool:
        """Return whether another file has the name of this one."""
        try:
            status = os.stat(self.path)  # noqa: PTH116 - a str all the way
        except OSError:
            return False
        return (status.st_dev, status.st_ino) != self.file.identity()

    def _reload(self) -> None:
        if self._has_heir():
            self._move(FileBytes.open(self.path))
            return
        loaded, size = _read_steadily(self.file, self.start)
        with self._moved():
            self._size = size
            self._adopt(loaded)

    def _move(self, file: FileBytes) -> None:
        """Go on with the file that has taken this one's name."""
        try:
            other = registry.state_of((*file.identity(), self.start))
            if other is not None and registry.shares(self):  # this process made it, or found it first
                file.close()
                self.changes.clear()
                self._dirty = False
                self.successor = other
                return
            loaded, size = _read_steadily(file, self.start)
            if self._writer.held:
                file.enable_writing()
                self._writer.release()
                self._writer.acquire(file.write_fd, self.path, shared=self._takes_lock_turns)
        except BaseException:
            file.close()
            raise
        with self._moved():
            self._replace_file(file)
            self._size = size
            self._adopt(loaded)

    def _replace_file(self, file: FileBytes) -> None:
        """Take `file` for this frame's; readers may be busy in the old one."""
        old, self.file = self.file, file
        registry.move(self, (*file.identity(), self.start))
        self._retired.add(old)

    # Writing, by one process at a time.

    def enable_writing(self, *, takes_lock_turns: bool = False) -> None:
        """Make sure that the frame can be changed, by this process alone.

        Those that are `takes_lock_turns` let each other in, but nobody else.

        Raises
        ------
        LockedError
            Another process has it open for writing.
        ReadOnlyError
            Something else follows the frame in its file.
        FormatError
            The fingerprint does not fit.
        StorageError
            The system refuses.

        """
        with self.lock:
            if self._writer.held:
                return
            self._check_behind()
            self.file.enable_writing()
            self._takes_lock_turns = takes_lock_turns
            self._writer.acquire(self.file.write_fd, self.path, shared=takes_lock_turns)
            try:
                self.follow()  # what the last writer did until it let go
                self.prove()
                self._check_behind()
            except BaseException:
                self._writer.release()
                raise

    def _check_behind(self) -> None:
        if self._behind <= 0:
            return
        what = f"{self._behind} bytes follow"
        end = self.start + self.frame_len
        if self.file.pread(len(MAGIC), end) == MAGIC:
            what = "another frame follows"
        elif not self.start:
            return
        raise ReadOnlyError(
            f"{self.path}: the frame at byte {self.start} ends at byte {end} and {what};"
            " only the last thing in a file can be changed"
        )

    @property
    def writing(self) -> bool:
        """Whether this process has the frame for writing."""
        return self._writer.held

    def disable_writing(self) -> None:
        """Let other processes write."""
        self._writer.release()

    # Life.

    def after_fork(self, *, torn: bool) -> None:
        """Start anew in a child process, which holds no lock."""
        if self.file.read_fd < 0:
            return  # it is closed, and only waits to be collected
        waiting = torn or self.waiting
        super().after_fork(torn=torn)
        self.unpublished = None
        try:
            if self.file.write_fd >= 0 and self.file.write_fd != self.file.read_fd:
                self.file.close_writing()
            elif self.file.write_fd >= 0:
                separate(self.file.read_fd, self.file.path)
        except SuperchunkError:
            self.file.write_fd = -1  # it can be read, and not be written
        if waiting:
            self._reload()

    def close(self) -> None:
        """Close the files."""
        self._writer.release()
        self.file.close()
        if self._retired.files:
            self._retired.close()


def range_in(file: FileBytes, base: int, room: int, entry: int, nchunk: int) -> Source:
    """Return the range of `file` that begins with chunk `nchunk`; chunks take `room` bytes from byte `base` on."""
    return (file.read_fd, base + entry, check_entry(entry, nchunk, room))


def _read(file: FileBytes, start: int, head: bytes | None = None) -> tuple[Loaded, int]:
    """Return what the frame at byte `start` says, which may begin with `head`, and the bytes from there to the end."""
    if head is None:
        head = file.pread(FIRST_READ, start)
    size, changed_at = file.size_and_time()  # of then or later, so that a commit meanwhile does not look cut off
    size = max(size - start, 0)
    loaded = parse_frame(
        lambda nbytes, at: file.pread(nbytes, start + at),
        size,
        lambda at, limit: (file.read_fd, start + at, limit),
        head=head,
    )
    checked_tail(file.read_fd, start, loaded, changed_at)
    return loaded, size


def _read_steadily(file: FileBytes, start: int) -> tuple[Loaded, int]:
    """Return the same, read again while a writer may be between two of its writes."""
    for pause in _RETRIES:
        before = file.pread(FIXED_LEN, start)
        try:
            loaded, size = _read(file, start)
        except FormatError:
            time.sleep(pause)
            continue
        if loaded.raw_header[:FIXED_LEN] == before:
            return loaded, size
    return _read(file, start)
