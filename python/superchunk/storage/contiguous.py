"""A frame in one file: where its parts are, and how a commit puts them there.

::

    header | chunks  dead  chunks | index chunk | trailer                          committed
    header | chunks  dead  chunks | dead          dead | new chunks                waiting
    header | chunks  dead  chunks | dead          dead | new chunks | index chunk | trailer

New chunks go behind the frame's end, each with its seal, where nobody sees them; a commit
writes index chunk and trailer behind them, and then switches to the new state by
one write of the header. What the old header points to is never overwritten, so a
reader sees one state or the other, and needs no lock. A frame without data, whose trailer
has to stand right behind the header, is written as a new file that takes the old one's name;
so is one that is compacted.

Source: docs/format/cframe.md, "Commits", "Frames without data" and "Concurrency";
docs/format/integrity.md.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Self, cast

from superchunk import _engine
from superchunk.exceptions import (
    DamagedFrameError,
    FormatError,
    NewerFormatError,
    StorageError,
    SuperchunkError,
    UnsupportedError,
)
from superchunk.frame.header import FIXED_LEN
from superchunk.frame.integrity import SEAL_LEN
from superchunk.storage import registry
from superchunk.storage.committed import empty_frame
from superchunk.storage.copying import copy_chunks
from superchunk.storage.file import FileBytes, remove_file, replace_file, sync_folder
from superchunk.storage.folder import is_folder, open_folder
from superchunk.storage.followed import FollowedFile
from superchunk.storage.loading import PROBE_LEN, parse_bytes
from superchunk.storage.locks import WriterLock, leads_to
from superchunk.storage.names import aside_of, take_name
from superchunk.storage.recovery import newest_intact
from superchunk.storage.seals import renew_seals
from superchunk.storage.strays import remove_strays

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from superchunk._engine import Source
    from superchunk.params import SyncLevel
    from superchunk.storage.base import FrameSettings
    from superchunk.storage.changes import Mark
    from superchunk.storage.committed import CommittedFrame

__all__ = ["ContiguousState", "about", "refuse_if_written"]
_SECTOR = 512
"""Bytes that a disk writes at once."""


def refuse_if_written(final: str, path: str) -> None:
    """Raise LockedError if another process is writing the frame `final`, a file or a directory."""
    try:
        file = FileBytes(final, open_folder(final)) if is_folder(final) else FileBytes.open(final)
    except (OSError, SuperchunkError):
        return
    lock = WriterLock()
    try:
        ours = registry.state_of((*file.identity(), 0))
        if ours is None or not ours.writing:  # a lock of ours would look like another process's
            lock.acquire(file.read_fd, path)
    finally:
        lock.release()
        file.close()


def about(error: SuperchunkError, path: str) -> SuperchunkError:
    """Return `error` with the path in front of its message."""
    if isinstance(error, (FormatError, UnsupportedError)):
        error.args = (f"{path}: {error.args[0]}", *error.args[1:])
    return error


class ContiguousState(FollowedFile):
    """A contiguous frame that can be changed; shared by the handles of this process."""

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
        raw = empty_frame(settings, chunksize, meta, vlblocks=vlblocks, seal=seal)
        final = os.path.realpath(path)
        there = os.path.lexists(final)
        if there:
            refuse_if_written(final, path)
        file = FileBytes.create(aside_of(final), told_as=path)
        try:
            file.pwrite(raw, 0)
            state = cls(file, 0, parse_bytes(raw), len(raw))
            state.path, state.unpublished = os.path.abspath(path), final  # noqa: PTH100 - a str all the way
            state.sync_level, state.sealing = sync, seal
            state.fresh = not there
            state._writer.acquire(file.write_fd, path)
        except BaseException:
            file.close()
            remove_file(file.path)
            raise
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

    # Changing.

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
        self._write_behind(parts, at)
        return entries

    def put_repeated(self, chunk: bytes, count: int) -> Sequence[int]:
        """Write a chunk many times, behind the frame's end."""
        piece = chunk + _engine.seal(chunk) if self.sealing else chunk
        first = self._end - len(self._raw_header)
        self._write_behind([piece * count], self._end + len(piece) * count)
        return range(first, first + len(piece) * count, len(piece))

    def _write_behind(self, parts: Sequence[bytes], end: int) -> None:
        """Write chunks and seals behind the frame's end, which is at byte `end` then."""
        if self._stray:
            self._trim(self._end)
        self._stray = True  # until it is known that all was written
        self.file.pwrite(parts, self.start + self._end)
        self._stray = False
        self._written += end - self._end
        if not self.sealing:
            self._sealed_from = end
        self._end = end
        self._room = end - len(self._raw_header)

    # Committing.

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

    def _check_place(self, final: str) -> None:
        """Refuse to replace anything but this very frame."""
        if not leads_to(final, self.file.read_fd):
            raise StorageError(
                f"{self.path}: leads to another file since it was opened, or to none; nothing was written"
            )

    def _write_chunks(self, index_chunk: bytes | None, *, sync: bool) -> None:
        """Write what changed, in one commit or, with a long header, in two."""
        if self._stale_seals and self.sealing:
            renew_seals(self)
            self._stale_seals = False
        first = _SECTOR - self.start % _SECTOR
        old = self._committed_header
        if not self.sealing or (self._raw_header[first:] == old[first:] and not self._pending):
            self._write_commit(index_chunk, sync=sync)
            return
        # A disk writes one sector at once, and not two. Until the header is all there, the record's copy
        # of it counts; so each step must have reached the disk before the next one.
        self._write_commit(index_chunk, sync=sync, pending=True)
        durable = self.sync_level != "never"
        if durable:
            self.file.sync()
        self.file.pwrite(self._raw_header[first:], self.start + first)
        if durable:
            self.file.sync()
        self._write_commit(None, sync=sync)
        self._pending = False

    def _write_commit(self, index_chunk: bytes | None, *, sync: bool, pending: bool = False) -> None:
        """Write index chunk and trailer, and then the header; its first sector, while it is `pending`."""
        header_len = len(self._raw_header)
        end, room = self._end, self._room
        chunk = b""
        source: Source
        if self._index_changed:
            chunk = self._index_chunk(index_chunk)
            source, room = chunk, end - header_len
        else:  # it stays where it is, and what stood behind it becomes slack
            source = (self.file.read_fd, self._base + room, self._index_len)
        frame_len = end + len(chunk) + self._next_trailer_len()
        header = self._header(frame_len=frame_len, cbytes=room)
        settled = frame_len if sync else self._settled
        trailer = self._next_trailer(header, source, settled=settled, sealed_from=self._sealed_from, pending=pending)
        if self._stray:
            self._trim(end)
        self._stray = True
        self.file.pwrite([chunk, trailer], self.start + end)
        if sync:
            self.file.sync()
        old = self._committed_header
        if pending:
            first = _SECTOR - self.start % _SECTOR
            self._pending = True
            self._switch(header[:first], old[:first])
        elif old[FIXED_LEN:] == header[FIXED_LEN:]:
            self._switch(header[:FIXED_LEN], old[:FIXED_LEN])
        else:
            self._switch(header, old)
        self._stray = False
        self._settled = settled
        self._became(header, frame_len, len(trailer))
        self._room = room
        self._watch = self._watch_for(header[:PROBE_LEN])
        self._done_with(sync=sync and not pending)

    def _done_with(self, *, sync: bool) -> None:
        """Take the present state for the committed one, and wait for the disk if there is to be a `sync`.

        That may fail, and a caller who undoes what he did must not undo what is on the disk.
        """
        self._remember()
        self._loads += 1
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
        self._done_with(sync=sync)

    def _empty_parts(self) -> tuple[bytes, bytes]:
        frame_len = len(self._raw_header) + self._next_trailer_len()
        raw = self._header(frame_len=frame_len, cbytes=0)
        settled = frame_len if self._durable and not self.start else 0
        return raw, self._next_trailer(raw, None, settled=settled, sealed_from=0)

    def _became_empty(self, raw: bytes, trailer: bytes) -> None:
        self._became(raw, len(raw) + len(trailer), len(trailer))
        self._watch = self._watch_for((raw + trailer)[:PROBE_LEN])
        self._room = self._index_len = self._index_of = self._sealed_from = 0
        self._settled = len(raw) + len(trailer)

    def compact(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Write the frame anew without its dead bytes, in place of the old file.

        What killed writers left beside it goes, too.

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
        remove_strays(os.path.realpath(self.path))
        self._rewrite(lambda file, end: copy_chunks(self, file, end, progress), sync=False)
        if self.sync_level != "never":
            with suppress(StorageError):  # the next flush tries again; old file and new one say the same
                self._sync()

    def _rewrite(self, fill: Callable[[FileBytes, int], tuple[int, Sequence[int]]], *, sync: bool) -> None:
        """Put a new file in the place of this one; `fill` writes chunks and tells entries."""
        final = os.path.realpath(self.path)
        self._check_place(final)
        file, lock = FileBytes.create(aside_of(final), like=self.file, told_as=self.path), WriterLock()
        try:
            lock.acquire(file.write_fd, self.path, shared=self._taking_turns)
            end, entries = fill(file, len(self._raw_header))
            header, chunk, trailer = self._write_whole(file, end, entries)
            if self._durable:
                file.sync()
            self._check_place(final)  # that took its time
            replace_file(file.path, final)
        except BaseException:
            lock.release()
            file.close()
            remove_file(file.path)
            raise
        file.path = final
        self._writer.release()
        self._writer = lock
        with self._moved():
            self._replace_file(file)
            if entries:
                self.index.assign(entries)
                self.index.forget()
                self._index_len, self._index_of = len(chunk), len(entries)
                frame_len = end + len(chunk) + len(trailer)
                self._became(header, frame_len, len(trailer))
                self._room = end - len(header)
                self._watch = self._watch_for(header[:PROBE_LEN])
                self._settled = frame_len if self._durable else 0
                self._sealed_from = 0 if self.sealing else frame_len
            else:
                self._became_empty(header, trailer)
            self._base = len(header)
        self._stray, self._behind, self._new_name = False, 0, True
        self._stale_seals = self._stale_seals and bool(entries) and not self.sealing  # else they were made anew
        self._done_with(sync=sync and self.sync_level != "never")

    @property
    def _durable(self) -> bool:
        """Whether a new file has to be on the disk before it takes the old one's place."""
        return self.sync_level != "never" and not self.fresh

    def _write_whole(self, file: FileBytes, end: int, entries: Sequence[int]) -> tuple[bytes, bytes, bytes]:
        """Write all but the chunks of a frame; return header, index chunk and trailer."""
        if not entries:
            header, trailer = self._empty_parts()
            file.pwrite([header, trailer], 0)
            return header, b"", trailer
        index = self.index.copy()
        index.assign(entries)
        chunk = index.to_chunk()
        frame_len = end + len(chunk) + self._next_trailer_len()
        header = self._header(frame_len=frame_len, cbytes=end - len(self._raw_header))
        settled = frame_len if self._durable else 0
        trailer = self._next_trailer(header, chunk, settled=settled, sealed_from=0 if self.sealing else frame_len)
        file.pwrite([chunk, trailer], end)
        file.pwrite(header, 0)
        return header, chunk, trailer

    def _switch(self, head: bytes, before: bytes) -> None:
        """Write `head` at the frame's start, the commit point; `before` stood there."""
        try:
            self.file.pwrite(head, self.start)
        except BaseException:  # a keyboard interrupt may come when all is written, and what is undone then must not be
            self._restore(before)
            raise

    def _publish(self, name: str) -> None:
        """Give the file its name, in place of what had it."""
        if os.path.lexists(name):
            refuse_if_written(name, self.path)
            if self.sync_level != "never":
                self.file.sync()
                self.fresh = False
        if take_name(self.file.path, name):
            remove_strays(name)
        self.file.path = name
        self.unpublished = None
        self._new_name = True

    def _sync(self) -> None:
        self.file.sync()
        if self._new_name and self.unpublished is None:
            folder = os.path.dirname(os.path.realpath(self.path))  # noqa: PTH120 - a str all the way
            sync_folder(folder, told_as=self.path)
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

    def discard(self) -> None:
        """Remove a file that has not got its name yet."""
        if self.unpublished is None:
            raise StorageError(f"{self.path}: the frame has its name already")
        self._dirty = False
        remove_file(self.file.path)
