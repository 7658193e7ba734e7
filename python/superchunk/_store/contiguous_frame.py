"""A frame in one file: where its parts are, how a commit puts them there, and how others' commits are followed.

::

    header | chunks  dead  chunks | index chunk | trailer                          committed
    header | chunks  dead  chunks | dead          dead | new chunks                waiting
    header | chunks  dead  chunks | dead          dead | new chunks | index chunk | trailer

New chunks go behind the frame's end, each with its seal, where nobody sees them. A commit writes index chunk and
trailer behind them, and then switches to the new state by one write of the header. What the old header points to is
never overwritten, so a reader sees one state or the other, and needs no lock. The trailer of a frame without data has
to follow the header directly. Such a frame is written as a new file that takes the old one's name, and so is a
compacted frame.

To follow the frame, a handle reads its first bytes again, and loads header, trailer and index anew if they differ. If
another file has the name, the handle opens that file. Chunks are ranges of the file.

Source: docs/format/cframe.md, "Commits", "Frames without data" and "Concurrency";
docs/format/integrity.md.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from superchunk import _engine
from superchunk._format.frame_header import FIXED_LEN, MAGIC
from superchunk._format.frame_index import CHUNK_MIN, Index, check_entry
from superchunk._format.integrity import SEAL_LEN
from superchunk._store import open_frames as registry
from superchunk._store.chunk_folder import is_folder, open_folder
from superchunk._store.copy_chunks import copy_chunks, renew_seals
from superchunk._store.frame_commit import CommittedFrame, FrameMark, empty_frame
from superchunk._store.frame_loading import FIRST_READ, PROBE_LEN, about, parse_bytes, parse_frame, proof_of
from superchunk._store.frame_names import aside_of, take_name
from superchunk._store.locks import WriterLock, leads_to, separate
from superchunk._store.older_commits import newest_intact
from superchunk._store.orphans import remove_orphans
from superchunk._store.os_file import FileBytes, after_power_loss, storage_error, sync_folder
from superchunk._store.path_target import ReplaceRule
from superchunk._store.seals import ENTRIES_END, check_tail
from superchunk.exceptions import (
    DamagedFrameError,
    FormatError,
    NewerFormatError,
    ReadOnlyError,
    StorageError,
    SuperchunkError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from typing_extensions import Buffer

    from superchunk._engine import Box, Source
    from superchunk._store.frame_loading import Loaded, Proof
    from superchunk._store.open_frames import Use
    from superchunk._store.store_interface import FrameSettings
    from superchunk.params import SyncLevel

__all__ = ["ContiguousState", "about", "refuse_if_written"]

_SECTOR = 512
"""Bytes that a disk writes at once."""
# Pauses, in seconds, while a writer may be between two of its writes.
_RETRIES = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)


def refuse_if_written(final: str, path: str) -> None:
    """Raise LockedError if another process is writing the frame `final`, a file or a directory."""
    try:
        file = FileBytes(final, open_folder(final)) if is_folder(final) else FileBytes.open(final)
    except (OSError, SuperchunkError):
        return
    lock = WriterLock()
    try:
        ours = registry.state_of((*file.identity, 0))
        if ours is None or not ours.writing:  # a lock of ours would look like another process's
            lock.acquire(file.read_fd, path)
    finally:
        lock.release()
        file.close()


class FileMark(FrameMark):
    """What a frame in one file was."""

    __slots__ = ()

    file: FileBytes
    _base: int
    _room: int
    _end: int
    _sealed_from: int

    @property
    def seals(self) -> range | None:
        """The entries whose chunks have seals; None: no seal proves anything."""
        return None if self._stale_seals else range(max(self._sealed_from - len(self._raw_header), 0), ENTRIES_END)

    def place(self, entry: int, nchunk: int) -> Source:
        """Return the range of the file that begins with chunk `nchunk`."""
        return range_in(self.file, self._base, self._room, entry, nchunk)


@dataclass(slots=True, kw_only=True, eq=False)
class Switch:
    """A commit whose index and trailer are written: what is true as soon as one more call has switched to it.

    Whether it has is known from the file alone, and asked again where that call was interrupted.
    """

    file: FileBytes
    """Where the frame is then: the same file as before, or one that takes its name."""
    lock: WriterLock | None
    """The lock on a file that takes the name."""
    head: bytes
    """What is at the frame's start then."""
    before: bytes
    """What stood there, if it is the same file."""
    header: bytes
    probe: bytes
    proof: Proof
    frame_len: int
    trailer_len: int
    index_len: int
    nindexed: int
    room: int
    last_synced: int
    sealed_from: int
    pending: bool = False
    """Whether the header is only there in part, and its copy in the record counts."""
    entries: Sequence[int] | None = None
    """Where chunks are in a file that takes the name; None: where they were."""


class ContiguousState(CommittedFrame):
    """A contiguous frame in a file, and the lock that writers take on it; shared by the handles of this process."""

    mark_type = FileMark
    switch: Switch | None

    # Opening.

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
        rule: ReplaceRule,
    ) -> Use:
        """Make an empty frame that takes the name `path`, an absolute one, with its first commit; return a use of it.

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
        file = FileBytes.create(aside_of(final), display_path=path)
        try:
            file.pwrite(raw, 0)
            state = cls(path, file, parse_bytes(raw))
            state.unpublished, state.rule = final, rule
            state.sync_level, state.sealing = sync, seal
            state.fresh = not there
            state._lock_writing(file.write_fd)
        except BaseException:
            file.remove()
            file.close()
            raise
        return registry.enter((*file.identity, 0), state)

    @classmethod
    def opened(cls, path: str, start: int, *, private: bool = False, recover: bool = False) -> Use | None:
        """Return a use of the state of a frame; None if there is no such file, or a directory.

        Parameters
        ----------
        path, start
            The file, its path absolute, and the frame's first byte in it.
        private
            Not to be shared with others: it will stay as it is.
        recover
            Take the newest intact commit if the present one is damaged.

        Raises
        ------
        DamagedFrameError
            It is damaged, and there is an intact commit in it.
        FormatError, UnsupportedError
            There is no frame, a damaged one, or one that this library does not read.
        StorageError
            The system refuses.

        """
        try:
            file = FileBytes.open(path)
        except FileNotFoundError:
            return None
        except StorageError:
            if is_folder(path):
                return None
            raise
        try:
            key = (*file.identity, start)
            use = None if private else registry.find(key)
            if use is None:
                head = file.pread(FIRST_READ, start)
                try:
                    loaded = _read(file, start, head)
                except FormatError as error:
                    loaded = _read_again(file, start, head, error, recover=recover)
                state = cls(path, file, loaded, start)
                use = registry.join(state) if private else registry.enter(key, state)
        except SuperchunkError as error:
            file.close()
            raise about(error, path) from error
        except BaseException:
            file.close()
            raise
        if not isinstance(use.state, cls) or use.state.file is not file:
            file.close()
        return use

    def _adopt(self, loaded: Loaded) -> None:
        header = loaded.header
        self._base = self.start + header.header_len
        self._room = header.cbytes if header.nbytes else 0
        self._end = header.frame_len
        self._orphaned_tail = True  # for all that is known
        if loaded.record is not None and loaded.sealed is not False:
            self._last_synced, self._sealed_from = loaded.record.last_synced, loaded.record.sealed_from
        else:  # what others wrote has no seals, and cannot be compared
            self._last_synced = self._sealed_from = header.frame_len
        self._pending = loaded.record is not None and loaded.record.pending
        super()._adopt(loaded)

    @property
    def seals(self) -> range | None:
        """The entries whose chunks have seals; None: no seal proves anything."""
        return FileMark(self).seals

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
            return not self._is_same(_read_steadily(self.file, self.start))
        try:
            return self._watch.differs()
        except OSError as error:
            raise storage_error(error, self.file.display_path) from error

    def _has_heir(self) -> bool:
        """Return whether another file has the name of this one."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) != self.file.identity

    def _reload(self) -> None:
        if self._has_heir():
            self._move(FileBytes.open(self.path))
            return
        loaded = _read_steadily(self.file, self.start)
        with self._moved():
            self._adopt(loaded)

    def _move(self, file: FileBytes) -> None:
        """Go on with the file that has taken this one's name."""
        try:
            other = registry.state_of((*file.identity, self.start))
            if other is not None and registry.shares(self):  # this process made it, or found it first
                file.close()
                self.changes.clear()
                self._dirty = False
                self.successor = other
                return
            loaded = _read_steadily(file, self.start)
            if self.writing:
                file.enable_writing()
                self._unlock_writing()
                self._lock_writing(file.write_fd)
        except BaseException:
            file.close()
            raise
        with self._moved():
            self._replace_file(file)
            self._adopt(loaded)

    def _replace_file(self, file: FileBytes) -> None:
        """Take `file` for this frame's; readers may be busy in the old one."""
        old, self.file = self.file, file
        registry.move(self, (*file.identity, self.start))
        self._retire(old)

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
            if self.writing:
                return
            self._check_behind()
            self.file.enable_writing()
            self._takes_lock_turns = takes_lock_turns
            self._lock_writing(self.file.write_fd)
            try:
                self.follow()  # what the last writer did until it let go
                self.prove()
                self._check_behind()
            except BaseException:
                self._unlock_writing()
                raise

    def _check_behind(self) -> None:
        end = self.start + self.frame_len
        behind = self.file.size() - end
        if behind <= 0:
            return
        what = f"{behind} bytes follow"
        if self.file.pread(len(MAGIC), end) == MAGIC:
            what = "another frame follows"
        elif not self.start:
            return
        raise ReadOnlyError(
            f"{self.path}: the frame at byte {self.start} ends at byte {end} and {what};"
            " only the last thing in a file can be changed"
        )

    def disable_writing(self) -> None:
        """Let other processes write."""
        self._unlock_writing()

    # Changing.

    def _undo(self, mark: Any) -> None:
        """Come back to the chunks of `mark`; what was written behind them is an orphaned tail."""
        self._orphaned_tail = True
        self._room, self._end = mark._room, mark._end

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
        if self._orphaned_tail:
            self._trim(self._end)
        self._orphaned_tail = True  # until it is known that all was written
        self.file.pwrite(parts, self.start + self._end)
        self._orphaned_tail = False
        self._written += end - self._end
        if not self.sealing:
            self._sealed_from = end
        self._end = end
        self._room = end - len(self._raw_header)

    # Committing.

    def _write(self, index_chunk: bytes | None, *, sync: bool) -> None:
        if self.writing and not self.unpublished and not self.start:
            self._check_name()
        if self.index.length:
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
        last_synced = frame_len if sync else self._last_synced
        trailer = self._next_trailer(
            header, source, last_synced=last_synced, sealed_from=self._sealed_from, pending=pending
        )
        if self._orphaned_tail:
            self._trim(end)
        self._orphaned_tail = True
        self.file.pwrite([chunk, trailer], self.start + end)
        if sync:
            self.file.sync()
        old = self._committed_header
        changed = len(header)
        if pending:
            changed = _SECTOR - self.start % _SECTOR
        elif old[FIXED_LEN:] == header[FIXED_LEN:]:
            changed = FIXED_LEN
        self._make(
            Switch(
                file=self.file,
                lock=None,
                head=header[:changed],
                before=old[:changed],
                header=header,
                probe=header[:PROBE_LEN],
                proof=proof_of(trailer, source),
                frame_len=frame_len,
                trailer_len=len(trailer),
                index_len=self._index_len,
                nindexed=self._index_of,
                room=room,
                last_synced=last_synced,
                sealed_from=self._sealed_from,
                pending=pending,
            )
        )
        self._orphaned_tail = False
        if sync and not pending:
            self._sync()

    # The switch, after which nothing is undone.

    def _make(self, switch: Switch, rule: ReplaceRule | None = None) -> None:
        """Make a switch, perhaps to a file that takes the name by `rule`, and take it for the committed state."""
        self.switch = switch
        try:
            if rule is None:
                self.file.pwrite(switch.head, self.start)
            else:
                take_name(switch.file.path, os.path.realpath(self.path), rule)
        except SuperchunkError:
            self._call_off(switch)
            raise
        self._land(switch)

    def _settle(self) -> None:
        """If a switch was interrupted, find out whether it was made, and go on from there."""
        switch = self.switch
        if switch is None:
            return
        if switch.lock is None:
            made = self.file.pread(len(switch.head), self.start) == switch.head
        else:
            made = switch.file is self.file or leads_to(os.path.realpath(self.path), switch.file.read_fd)
        if made:
            self._land(switch)
        else:
            self._call_off(switch)

    def _land(self, switch: Switch) -> None:
        """Take what a switch has led to for the committed state; doing it twice does no harm."""
        if switch.lock is not None:
            self.replacing = True
            self.version += 1
            switch.file.path = os.path.realpath(self.path)
            if self._writer is not switch.lock:
                self._unlock_writing()
                self._writer = switch.lock
            if self.file is not switch.file:
                self._retire(self.file)
                self.file = switch.file
            registry.move(self, (*switch.file.identity, self.start))
            if switch.entries is not None:
                self.index.assign(switch.entries)
            self._base = self.start + len(switch.header)
            self._new_name = True
            self._stale_seals = self._stale_seals and switch.entries is not None and not self.sealing
            self.version += 1
            self.replacing = False
        self._raw_header = switch.header
        self._end = self.frame_len = switch.frame_len
        self._trailer_len, self._room = switch.trailer_len, switch.room
        self._index_len, self._index_of = switch.index_len, switch.nindexed
        self._last_synced, self._sealed_from = switch.last_synced, switch.sealed_from
        self._pending = switch.pending or (self._pending and not self.sealing)
        self._orphaned_tail = True  # for all that is known
        self._remember(self.index.length, switch.probe, switch.proof)
        self.index.forget()
        self.switch = None

    def _call_off(self, switch: Switch) -> None:
        """Leave nothing of a switch that was not made."""
        if switch.lock is None:
            with suppress(StorageError):
                if self.file.pread(len(switch.before), self.start) != switch.before:  # a part of it was written
                    self.file.pwrite(switch.before, self.start)
        else:
            switch.lock.release()
            switch.file.remove()
            switch.file.close()
        self.switch = None

    def _write_empty(self, *, sync: bool) -> None:
        """Write header and trailer, which must stand together, in one go."""
        raw, trailer = self._empty_parts()
        before = self.file.pread(len(raw) + len(trailer), self.start)
        self._make(self._empty_switch(self.file, None, raw, trailer, before))
        self._tidy()
        if sync:
            self._sync()

    def _empty_switch(
        self, file: FileBytes, lock: WriterLock | None, raw: bytes, trailer: bytes, before: bytes
    ) -> Switch:
        """Return the switch to a frame without data."""
        return Switch(
            file=file,
            lock=lock,
            head=raw + trailer,
            before=before,
            header=raw,
            probe=(raw + trailer)[:PROBE_LEN],
            proof=proof_of(trailer, b""),
            frame_len=len(raw) + len(trailer),
            trailer_len=len(trailer),
            index_len=0,
            nindexed=0,
            room=0,
            last_synced=len(raw) + len(trailer),
            sealed_from=0,
        )

    def _empty_parts(self) -> tuple[bytes, bytes]:
        frame_len = len(self._raw_header) + self._next_trailer_len()
        raw = self._header(frame_len=frame_len, cbytes=0)
        last_synced = frame_len if self._durable and not self.start else 0
        return raw, self._next_trailer(raw, None, last_synced=last_synced, sealed_from=0)

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
            The system refuses, or the frame is inside a larger file. The frame is as
            it was.

        """
        if self.start:
            raise StorageError(f"{self.path}: cannot compact a frame inside a larger file, at byte {self.start}")
        self.commit()
        remove_orphans(os.path.realpath(self.path))
        self._rewrite(lambda file, end: copy_chunks(self, file, end, progress), sync=False)
        if self.sync_level != "never":
            with suppress(StorageError):  # the next flush tries again; old file and new one say the same
                self._sync()

    def _rewrite(self, fill: Callable[[FileBytes, int], tuple[int, Sequence[int]]], *, sync: bool) -> None:
        """Put a new file in the place of this one; `fill` writes chunks and tells entries."""
        final = os.path.realpath(self.path)
        rule = ReplaceRule(path=self.path, identity=self.file.identity)
        rule.check(final)
        file, lock = FileBytes.create(aside_of(final), like=self.file, display_path=self.path), WriterLock()
        try:
            lock.acquire(file.write_fd, self.path, shared=self._takes_lock_turns)
            end, entries = fill(file, len(self._raw_header))
            switch = self._write_whole(file, lock, end, entries)
            if self._durable:
                file.sync()
            rule.check(final)  # that took its time
        except BaseException:
            lock.release()
            file.remove()
            file.close()
            raise
        self._make(switch, rule)
        self._orphaned_tail = False
        if sync and self.sync_level != "never":
            self._sync()

    @property
    def _durable(self) -> bool:
        """Whether a new file has to be on the disk before it takes the old one's place."""
        return self.sync_level != "never" and not self.fresh

    def _write_whole(self, file: FileBytes, lock: WriterLock, end: int, entries: Sequence[int]) -> Switch:
        """Write all but the chunks of a frame into a new file; return the switch to it."""
        if not entries:
            header, trailer = self._empty_parts()
            file.pwrite([header, trailer], 0)
            return self._empty_switch(file, lock, header, trailer, b"")
        chunk = Index(entries).to_chunk()
        frame_len = end + len(chunk) + self._next_trailer_len()
        header = self._header(frame_len=frame_len, cbytes=end - len(self._raw_header))
        last_synced = frame_len if self._durable else 0
        sealed_from = 0 if self.sealing else frame_len
        trailer = self._next_trailer(header, chunk, last_synced=last_synced, sealed_from=sealed_from)
        file.pwrite([chunk, trailer], end)
        file.pwrite(header, 0)
        return Switch(
            file=file,
            lock=lock,
            head=header,
            before=b"",
            header=header,
            probe=header[:PROBE_LEN],
            proof=proof_of(trailer, chunk),
            frame_len=frame_len,
            trailer_len=len(trailer),
            index_len=len(chunk),
            nindexed=len(entries),
            room=end - len(header),
            last_synced=last_synced,
            sealed_from=sealed_from,
            entries=entries,
        )

    def _publish(self, name: str) -> None:
        """Give the file its name, in place of what had it."""
        if os.path.lexists(name):
            refuse_if_written(name, self.path)
            if self.sync_level != "never":
                self.file.sync()
                self.fresh = False
        if not self.file.has_name(name) and take_name(self.file.path, name, self.rule):
            remove_orphans(name)
        self.file.path = name
        self.unpublished = None
        self._new_name = True

    def _sync(self) -> None:
        self.file.sync()
        if self._new_name and self.unpublished is None:
            folder = os.path.dirname(os.path.realpath(self.path))
            sync_folder(folder, display_path=self.path)
            self._new_name = False
        self.fresh = False

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
        self._orphaned_tail = False

    # Life.

    def discard(self) -> None:
        """Remove a file that has not got its name yet."""
        if self.unpublished is None:
            raise StorageError(f"{self.path}: the frame has its name already")
        self._dirty = False
        if self.file.has_name(self.unpublished):
            self.unpublished = None  # it has got it, and an interrupt came before that was noted
        else:
            self.file.remove()

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
        if self._writer is not None:
            self._writer.release()
        self.file.close()
        if self._retired is not None:
            self._retired.close()


def range_in(file: FileBytes, base: int, room: int, entry: int, nchunk: int) -> Source:
    """Return the range of `file` that begins with chunk `nchunk`; chunks take `room` bytes from byte `base` on."""
    return (file.read_fd, base + entry, check_entry(entry, nchunk, room))


def _read(file: FileBytes, start: int, head: bytes) -> Loaded:
    """Return what the frame at byte `start` says, which begins with `head`."""
    size, changed_at = file.size_and_time()  # of then or later, so that a commit meanwhile does not look cut off
    loaded = parse_frame(
        lambda nbytes, at: file.pread(nbytes, start + at),
        max(size - start, 0),
        lambda at, limit: (file.read_fd, start + at, limit),
        head=head,
    )
    if loaded.sealed is not False and after_power_loss(changed_at):
        check_tail(file.read_fd, start, loaded)
    return loaded


def _read_again(file: FileBytes, start: int, head: bytes, error: FormatError, *, recover: bool) -> Loaded:
    """Return the same, after `error`: the frame as others write it meanwhile, or its newest intact commit.

    Raises
    ------
    DamagedFrameError
        It is damaged, there is an intact commit in it, and nobody asks to `recover` that.
    FormatError, UnsupportedError
        There is no frame, a damaged one, or one that this library does not read.

    """
    for _ in range(len(_RETRIES)):
        before, head = head, file.pread(FIRST_READ, start)
        if head[:FIXED_LEN] == before[:FIXED_LEN]:
            break
        try:
            return _read(file, start, head)
        except FormatError as other:
            error = other
    if isinstance(error, NewerFormatError):
        raise error
    loaded = newest_intact(file, start, glance=not recover)
    if loaded is None:
        raise error
    if not recover:
        raise DamagedFrameError(error, nchunks=len(loaded.index), nbytes=loaded.header.nbytes) from error
    return loaded


def _read_steadily(file: FileBytes, start: int) -> Loaded:
    """Return the same, of a frame that was there: read again while a writer may be between two of its writes."""
    for pause in _RETRIES:
        before = file.pread(FIXED_LEN, start)
        try:
            loaded = _read(file, start, file.pread(FIRST_READ, start))
        except FormatError:
            time.sleep(pause)
            continue
        if loaded.raw_header[:FIXED_LEN] == before:
            return loaded
    return _read(file, start, file.pread(FIRST_READ, start))
