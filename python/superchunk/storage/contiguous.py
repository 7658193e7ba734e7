"""A frame in one file: where its parts are, and how a commit puts them there.

::

    header | chunks  dead  chunks | index chunk | record | trailer      committed
    header | chunks  dead  chunks | dead                  dead | new chunks            waiting
    header | chunks  dead  chunks | dead                  dead | new chunks | index chunk | record | trailer

New chunks go behind the frame's end, each with its seal, where nobody sees them; a commit
writes index chunk, record and trailer behind them, and then switches to the new state by
one write of the header. What the old header points to is never overwritten, so a
reader sees one state or the other, and needs no lock. A frame without data, whose trailer
has to stand right behind the header, is written as a new file that takes the old one's name;
so is one that is compacted.

Source: docs/format/cframe.md, "Commits", "Frames without data" and "Concurrency";
docs/format/integrity.md.
"""

from __future__ import annotations

import os
import secrets
import time
from typing import TYPE_CHECKING, Self, cast

from superchunk import _engine
from superchunk.exceptions import (
    DamagedFrameError,
    FormatError,
    NewerFormatError,
    ReadOnlyError,
    StorageError,
    SuperchunkError,
    UnsupportedError,
)
from superchunk.frame.header import FIXED_LEN, MAGIC
from superchunk.frame.index import ENTRY_LEN
from superchunk.frame.integrity import SEAL_LEN
from superchunk.storage import registry
from superchunk.storage.committed import CommittedFrame, empty_frame
from superchunk.storage.copying import copy_chunks
from superchunk.storage.file import FileBytes, remove_file, replace_file, sync_folder
from superchunk.storage.loading import PROBE_LEN, check_fingerprint, parse_frame
from superchunk.storage.locks import WriterLock, separate
from superchunk.storage.recovery import newest_intact
from superchunk.storage.seals import checked_tail, renew_seals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from superchunk._engine import Source
    from superchunk.storage.base import FrameSettings
    from superchunk.storage.changes import Mark
    from superchunk.storage.committed import SyncLevel
    from superchunk.storage.loading import Loaded

__all__ = ["ContiguousState", "about", "aside_of", "refuse_if_written"]

_CHUNK_MIN = 32
_MAX_RETIRED = 64
# Pauses, in seconds, while a writer may be between two of its writes.
_RETRIES = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)


def aside_of(path: str) -> str:
    """Return a name in the directory of `path` for a file that will replace it."""
    folder, base = os.path.split(path)
    return os.path.join(folder, f".{base[:200]}.{secrets.token_hex(6)}.new")  # noqa: PTH118 - a str all the way


class ContiguousState(CommittedFrame):
    """A contiguous frame in a file; shared by the handles of this process."""

    def __init__(self, file: FileBytes, start: int, loaded: Loaded, size: int) -> None:
        """Take over `file`, whose frame at byte `start` says `loaded`; see `load`."""
        self.file = file
        self.start = start
        self.unpublished: str | None = None
        """The name that the file gets with its first commit, if it waits for that."""
        self.fresh = False
        """Whether nothing of the frame can be on the disk yet, so that nothing can be lost."""
        self._size = size
        self._retired: list[FileBytes] = []
        self._writer = WriterLock()
        self._new_name = False
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
            before = file.pread(FIXED_LEN, start)
            try:
                return cls(file, start, *_read(file, start))
            except FormatError:
                if file.pread(FIXED_LEN, start) == before:
                    raise
        return cls(file, start, *_read(file, start))

    @classmethod
    def created(
        cls,
        path: str,
        settings: FrameSettings,
        chunksize: int,
        meta: Mapping[str, bytes],
        *,
        vlblocks: bool,
        sync: SyncLevel,
        seal: bool,
    ) -> Self:
        """Make an empty frame that takes the name `path` with its first commit.

        Raises
        ------
        MetalayerValueError
            More than 16 metalayers, or a name over 31 bytes.
        LockedError
            Another process is writing the frame that has the name now.
        StorageError
            The system refuses.

        """
        raw = empty_frame(settings, chunksize, meta, vlblocks=vlblocks)
        final = os.path.realpath(path)
        refuse_if_written(final, path)
        try:
            file = FileBytes.create(aside_of(final))
        except StorageError as error:  # of the other name, which says nothing to the caller
            raise StorageError(error.errno, error.strerror, path) from error
        try:
            file.pwrite(raw, 0)
            state = cls.load(file, 0)
            state.path, state.unpublished = path, final
            state.sync_level, state.sealing = sync, seal
            state.fresh = not os.path.lexists(final)  # noqa: PTH110 - a str all the way
            state._writer.acquire(file.write_fd, path)  # noqa: SLF001 - its own
        except BaseException:
            file.close()
            remove_file(file.path)
            raise
        state._dirty = seal  # so that the first commit adds the fingerprint
        registry.enter((*file.identity(), 0), state)
        return state

    @classmethod
    def opened(cls, path: str, start: int, *, private: bool = False, recover: bool = False) -> CommittedFrame:
        """Return the state of a frame, with one user more.

        Parameters
        ----------
        path, start
            The file, and the frame's first byte in it.
        private
            Not to be shared with others: it will stay as it is.
        recover
            Take the newest intact commit if the present one is damaged.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        DamagedFrameError
            It is damaged, and there is an intact commit in it.
        FormatError, UnsupportedError
            There is no frame, a damaged one, or one that this library does not read.
        StorageError
            The system refuses.

        """
        file = FileBytes.open(path)
        try:
            key = (*file.identity(), start)
            state = None if private else registry.find(key)
            if state is None:
                state = cls._loaded(file, start, path, recover=recover)
                if private:
                    registry.join(state)
                else:
                    state = registry.enter(key, state)
        except SuperchunkError as error:
            file.close()
            raise about(error, path) from error
        except BaseException:
            file.close()
            raise
        if not isinstance(state, cls) or state.file is not file:
            file.close()
        return state

    @classmethod
    def _loaded(cls, file: FileBytes, start: int, path: str, *, recover: bool) -> Self:
        try:
            state = cls.load(file, start)
        except NewerFormatError:
            raise
        except FormatError as error:
            loaded = newest_intact(file, start, glance=not recover)
            if loaded is None:
                raise
            if not recover:
                raise DamagedFrameError(error, nchunks=len(loaded.index), nbytes=loaded.header.nbytes) from error
            state = cls(file, start, loaded, file.size() - start)
        state.path = os.path.abspath(path)  # noqa: PTH100 - a str all the way
        return state

    def _adopt(self, loaded: Loaded) -> None:
        header = loaded.header
        self._base = self.start + header.header_len
        self._room = header.cbytes if header.nbytes else 0
        self._end = header.frame_len
        self._behind = self._size - header.frame_len
        self._stray = self._behind > 0
        # What others wrote cannot be checked, so it counts as settled.
        self._settled = loaded.record.settled if loaded.record and loaded.sealed is not False else header.frame_len
        super()._adopt(loaded)

    # Reading.

    def place(self, entry: int, nchunk: int) -> Source:
        """Return the range of the file that begins with chunk `nchunk`."""
        room = self._room - entry
        if room < _CHUNK_MIN:
            raise _misplaced(entry, nchunk, self._room)
        return (self.file.read_fd, self._base + entry, room)

    def settled_place(self) -> Callable[[int, int], Source]:
        """Return `place` for the chunks as they are, whatever is changed later."""
        fd, base, room = self.file.read_fd, self._base, self._room

        def place(entry: int, nchunk: int) -> Source:
            if room - entry < _CHUNK_MIN:
                raise _misplaced(entry, nchunk, room)
            return (fd, base + entry, room - entry)

        return place

    @property
    def dead_bytes(self) -> int:
        """Bytes of the committed frame and of what waits that nothing refers to."""
        stored, specials = self.live
        used = len(self._raw_header) + self._index_len + self._trailer_len + stored
        if self.sealing and not self._stale_seals:
            used += SEAL_LEN * (len(self.index) - specials) + self._record_len() * bool(self.nbytes)
        return max(self._end - used, 0)

    def refresh(self) -> bool:
        """Follow another process's commit or compaction; return whether there was one."""
        if not _engine.probe_changed(self.file.read_fd, self.start, self._probe):
            return False
        with self.lock:
            fd = self.file.read_fd
            if self.unpublished is not None or not _engine.probe_changed(fd, self.start, self._probe):
                return False
            if self.file.pread(len(self._probe), self.start) == self._probe and not self._has_heir():
                return False  # the file was removed, and nothing has its name
            waiting = self._dirty or self._depth > 0
            self._reload()
        if waiting:
            raise StorageError(
                f"{self.path}: changed by another process while changes made here waited"
                " for their commit; those are lost"
            )
        return True

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
                self._size = size
                self._adopt(loaded)
                return

    def _move(self, file: FileBytes) -> None:
        """Go on with the file that has taken this one's name."""
        try:
            other = registry.state_of((*file.identity(), self.start))
            if other is not None:  # this process made it, or found it first
                file.close()
                self._depth = 0
                self._dirty = False
                self.successor = other
                return
            loaded, size = _read(file, self.start)
            if self._writer.held:
                file.enable_writing()
                self._writer.release()
                self._writer.acquire(file.write_fd, self.path)
        except BaseException:
            file.close()
            raise
        self._replace_file(file)
        self._size = size
        self._adopt(loaded)

    def _replace_file(self, file: FileBytes) -> None:
        """Take `file` for this frame's; readers may be busy in the old one."""
        old, self.file = self.file, file
        registry.move(self, (*file.identity(), self.start))
        self._retired.append(old)
        if len(self._retired) > _MAX_RETIRED:
            self._retired.pop(0).close()

    # Changing.

    def enable_writing(self) -> None:
        """Make sure that the frame can be changed, by this process alone.

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
            self.file.enable_writing()
            self._writer.acquire(self.file.write_fd, self.path)
            try:
                self.follow()  # what the last writer did until it let go
                if self._unproven is not None:
                    check_fingerprint(self._unproven)
                    self._unproven = None
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

    def begin(self) -> Mark:
        """Return what `undo` needs to come back to this state."""
        return (*super().begin(), self._room, self._end)

    def undo(self, mark: Mark) -> None:
        """Come back to the state of `mark`; what was written behind it is stray."""
        loads = self._loads
        super().undo(mark)
        if loads == mark[8]:
            self._room, self._end = cast("int", mark[-2]), cast("int", mark[-1])
            self._stray = True

    def put(self, chunks: Sequence[bytes]) -> Sequence[int]:
        """Write `chunks` behind the frame's end."""
        at = self._end
        if self._stray:
            self._trim(at)
        header_len = len(self._raw_header)
        entries = []
        parts: list[bytes] = []
        for chunk in chunks:
            entries.append(at - header_len)
            parts.append(chunk)
            at += len(chunk)
            if self.sealing:
                parts.append(_engine.seal(chunk))
                at += SEAL_LEN
        self._stray = True  # until it is known that all was written
        self.file.pwrite(parts, self.start + self._end)
        self._stray = False
        self._written += at - self._end
        self._end = at
        self._room = at - header_len
        return entries

    # Committing.

    def commit(self, index_chunk: bytes | None = None, *, sync: bool = False) -> None:
        """Write what waits, and switch to it; see `CommittedFrame.commit`."""
        super().commit(index_chunk, sync=sync)
        if self.unpublished is not None:
            self._publish(self.unpublished)
            if sync and self.sync_level != "never" or self.sync_level == "commit":
                self._sync()

    def commit_if_idle(self) -> None:
        """Commit what waits, unless somebody is changing the frame right now."""
        if self.unpublished is None:
            super().commit_if_idle()

    def _write(self, index_chunk: bytes | None, *, sync: bool) -> None:
        if self._writer.held and not self.unpublished and not self.start:
            self._check_name()
        if len(self.index):
            self._write_chunks(index_chunk, sync=sync)
        elif self.start or self.unpublished:
            self._write_empty(sync=sync)
        else:
            self._rewrite(lambda _file, end: (end, []), sync=sync)

    def _check_name(self) -> None:
        """Refuse to commit to a file that nobody can find any more."""
        if os.fstat(self.file.read_fd).st_nlink == 0:
            raise StorageError(f"{self.path}: the file was removed or replaced while it was open; nothing was written")

    def _write_chunks(self, index_chunk: bytes | None, *, sync: bool) -> None:
        """Write index chunk, record and trailer, and then the header."""
        if self._stale_seals and self.sealing:
            self._stale_seals = False
            renew_seals(self)
        header_len = len(self._raw_header)
        end, room = self._end, self._room
        chunk = b""
        source: Source
        if self._index_changed:
            chunk = self._index_chunk(index_chunk)
            source, room = chunk, end - header_len
        else:  # it stays where it is, and what stood behind it becomes slack
            source = (self.file.read_fd, self._base + room, self._index_len)
        trailer = self._trailer()
        frame_len = end + len(chunk) + self._record_len() + len(trailer)
        header = self._header(frame_len=frame_len, cbytes=room)
        settled = frame_len if sync else self._settled
        record = self._record(header, settled)
        trailer = self._sealed(header, source, trailer)
        if self._stray:
            self._trim(end)
        self._stray = True
        self.file.pwrite([chunk, record, trailer], self.start + end)
        if sync:
            self.file.sync()
        old = self._committed_header
        if old[FIXED_LEN:] == header[FIXED_LEN:]:
            self._switch(header[:FIXED_LEN], old[:FIXED_LEN])
        else:
            self._switch(header, old)
        self._stray = False
        self._settled = settled
        self._became(header, frame_len, len(trailer))
        self._room = room
        self._probe = header[:PROBE_LEN]
        if sync:
            self._sync()

    def _became(self, header: bytes, frame_len: int, trailer_len: int) -> None:
        self._raw_header = header
        self._end = self.frame_len = frame_len
        self._trailer_len = trailer_len

    def _write_empty(self, *, sync: bool) -> None:
        """Write header and trailer, which must stand together, in one go."""
        raw, trailer = self._empty_parts()
        before = self.file.pread(len(raw) + len(trailer), self.start)
        self._switch(raw + trailer, before)
        self._became_empty(raw, trailer)
        self._stray = True
        self._tidy()
        if sync:
            self._sync()

    def _empty_parts(self) -> tuple[bytes, bytes]:
        trailer = self._trailer()
        raw = self._header(frame_len=len(self._raw_header) + len(trailer), cbytes=0)
        return raw, self._sealed(raw, None, trailer)

    def _became_empty(self, raw: bytes, trailer: bytes) -> None:
        self._became(raw, len(raw) + len(trailer), len(trailer))
        self._probe = (raw + trailer)[:PROBE_LEN]
        self._room = self._index_len = self._index_of = self._settled = 0

    def compact(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Write the frame anew without its dead bytes, in place of the old file.

        Parameters
        ----------
        progress
            Called with the bytes of chunks done and those in all.

        Raises
        ------
        StorageError
            The system refuses, or the frame stands inside a larger file. The frame is as
            it was.

        """
        if self.start:
            raise StorageError(f"{self.path}: cannot compact a frame inside a larger file, at byte {self.start}")
        self.commit()
        self._rewrite(lambda file, end: copy_chunks(self, file, end, progress), sync=True)
        self._remember()
        self._loads += 1

    def _rewrite(self, fill: Callable[[FileBytes, int], tuple[int, Sequence[int]]], *, sync: bool) -> None:
        """Put a new file in the place of this one; `fill` writes chunks and tells entries."""
        final = os.path.realpath(self.path)
        file = FileBytes.create(aside_of(final), like=self.file)
        lock = WriterLock()
        try:
            lock.acquire(file.write_fd, self.path)
            header_len = len(self._raw_header)
            end, entries = fill(file, header_len)
            if entries:
                index = self.index.copy()
                index.assign(entries)
                chunk = index.to_chunk()
                trailer = self._trailer()
                frame_len = end + len(chunk) + self._record_len() + len(trailer)
                header = self._header(frame_len=frame_len, cbytes=end - header_len)
                trailer = self._sealed(header, chunk, trailer)
                file.pwrite([chunk, self._record(header, frame_len), trailer], end)
                file.pwrite(header, 0)
            else:
                header, trailer = self._empty_parts()
                file.pwrite([header, trailer], 0)
            if self.sync_level != "never" and not self.fresh:
                file.sync()
            replace_file(file.path, final)
        except BaseException:
            lock.release()
            file.close()
            remove_file(file.path)
            raise
        file.path = final
        self._writer.release()
        self._writer = lock
        self._replace_file(file)
        if entries:
            self.index.assign(entries)
            self.index.forget()
            self._index_len, self._index_of = len(chunk), len(entries)
            self._became(header, frame_len, len(trailer))
            self._room, self._probe, self._settled = end - header_len, header[:PROBE_LEN], frame_len
        else:
            self._became_empty(header, trailer)
        self._base = len(header)
        self._stray, self._behind, self._new_name = False, 0, True
        self._stale_seals = False
        if sync and self.sync_level != "never":
            self._sync()

    def _switch(self, head: bytes, before: bytes) -> None:
        """Write `head` at the frame's start, the commit point; `before` stood there."""
        try:
            self.file.pwrite(head, self.start)
        except StorageError:
            self._restore(before)
            raise

    def _publish(self, name: str) -> None:
        """Give the file its name, in place of what had it."""
        refuse_if_written(name, self.path)
        if os.path.lexists(name) and self.sync_level != "never":  # noqa: PTH110 - a str all the way
            self.file.sync()
            self.fresh = False
        replace_file(self.file.path, name)
        self.file.path = name
        self.unpublished = None
        self._new_name = True

    def _sync(self) -> None:
        self.file.sync()
        if self._new_name and self.unpublished is None:
            sync_folder(os.path.dirname(os.path.realpath(self.path)))  # noqa: PTH120 - a str all the way
            self._new_name = False
        self.fresh = False

    def _restore(self, before: bytes) -> None:
        """Put back what a failed write of the header may have changed in part."""
        try:
            self.file.pwrite(before, self.start)
        except StorageError:
            return

    def _tidy(self) -> None:
        """Cut the file at the frame's end; if that fails, the next change tries again."""
        try:
            self._trim(self.frame_len)
        except StorageError:
            return

    def _trim(self, end: int) -> None:
        """Cut off what a writer left behind byte `end` of the frame."""
        if self.file.size() > self.start + end:
            self.file.truncate(self.start + end)
        self._stray = False

    # Life.

    def after_fork(self) -> None:
        """Start anew in a child process, which holds no lock."""
        waiting = self._dirty or self._depth > 0
        super().after_fork()
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

    def discard(self) -> None:
        """Remove a file that has not got its name yet."""
        if self.unpublished is None:
            raise StorageError(f"{self.path}: the frame has its name already")
        self._dirty = False
        remove_file(self.file.path)

    def close(self) -> None:
        """Close the files."""
        self._writer.release()
        for file in (self.file, *self._retired):
            file.close()


def refuse_if_written(final: str, path: str) -> None:
    """Raise LockedError if another process is writing the frame file `final`."""
    try:
        file = FileBytes.open(final)
    except (OSError, SuperchunkError):
        return
    lock = WriterLock()
    try:
        if registry.state_of((*file.identity(), 0)) is None:
            lock.acquire(file.read_fd, path)
    finally:
        lock.release()
        file.close()


def about(error: SuperchunkError, path: str) -> SuperchunkError:
    """Return `error` with the path in front of its message."""
    if isinstance(error, (FormatError, UnsupportedError)):
        error.args = (f"{path}: {error.args[0]}", *error.args[1:])
    return error


def _misplaced(entry: int, nchunk: int, room: int) -> FormatError:
    return FormatError(
        f"index entry {nchunk}",
        at=ENTRY_LEN * nchunk,
        expected=f"at most {room - _CHUNK_MIN}",
        found=entry,
    )


def _read(file: FileBytes, start: int) -> tuple[Loaded, int]:
    """Return what the frame at byte `start` says, and the bytes from there to the end."""
    size, changed_at = file.size_and_time()
    size = max(size - start, 0)
    loaded = parse_frame(
        lambda nbytes, at: file.pread(nbytes, start + at),
        size,
        lambda at, limit: (file.read_fd, start + at, limit),
    )
    checked_tail(file.read_fd, start, loaded, changed_at)
    return loaded, size
