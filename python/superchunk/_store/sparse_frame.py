"""A frame in a directory: its files, how a commit switches to them, and how others' commits are followed.

::

    chunks.b2frame   0 1 2          00000000.chunk 00000001.chunk 00000002.chunk                  committed
    chunks.b2frame   0 1 2          00000000.chunk 00000001.chunk 00000002.chunk 00000003.chunk   waiting
    chunks.b2frame   0 3 2          00000000.chunk 00000001.chunk 00000002.chunk 00000003.chunk   committed
                                    00000000.chunk                00000002.chunk 00000003.chunk   tidied up

A chunk file is written once, with its seal, under an id that no index names. A commit writes a new index file aside and
gives it the old one's name. A file is pending until a commit names it. It is garbage once the index that names it is
replaced, unless a retained index names it too: the last synced one, or one that a snapshot references. What cannot be
removed waits for the next commit.

Chunk files are opened when they are read, and a commit may remove some afterwards. So a reader must ask `changed_since`
whether the chunks may belong to several commits, and then read again. Or it reads within `pinned`, which keeps writers
from removing anything.

Source: docs/format/sparse.md; docs/format/integrity.md.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from superchunk import _engine
from superchunk._format.frame_index import Index, count_special
from superchunk._format.integrity import SEAL_LEN
from superchunk._store import open_frames as registry
from superchunk._store.changes_and_undo import PastTable
from superchunk._store.chunk_folder import (
    INDEX_NAME,
    LAST_SYNCED_NAME,
    aside_in,
    chunk_name,
    joined,
    list_folder,
    open_folder,
    pin_name,
    place_in,
    remove_frame_folder,
)
from superchunk._store.chunk_ids import ChunkIds
from superchunk._store.contiguous_frame import refuse_if_written
from superchunk._store.frame_commit import CommittedFrame, FrameMark, empty_frame
from superchunk._store.frame_loading import PROBE_LEN, about, proof_of
from superchunk._store.frame_names import aside_of, take_name
from superchunk._store.locks import leads_to, separate
from superchunk._store.orphans import remove_orphans
from superchunk._store.os_file import (
    FileBytes,
    link_file,
    make_folder,
    remove_file,
    remove_folder,
    replace_file,
    storage_error,
    sync_files,
    sync_folder,
)
from superchunk._store.retained_indexes import RetainedIndex, load_index
from superchunk._store.seals import ENTRIES_END
from superchunk._store.snapshot_locks import is_share_locked, lock_shared, unlock_shared
from superchunk._store.sparse_frame_loading import absolute, is_present, last_synced_frame, read_present
from superchunk._store.staged_files import PlacedChunk, read_staged
from superchunk.exceptions import (
    ArgumentError,
    DamagedFrameError,
    FormatError,
    NewerFormatError,
    StorageError,
    SuperchunkError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from superchunk._engine import Source
    from superchunk._store.changes_and_undo import MutableChunkTable
    from superchunk._store.frame_loading import Loaded
    from superchunk._store.open_frames import Use
    from superchunk._store.path_target import ReplaceRule
    from superchunk._store.staged_files import StagedChunk
    from superchunk._store.store_interface import FrameSettings
    from superchunk.params import SyncLevel

__all__ = ["SparseState"]

_BELOW_CBYTES = 32
"""How far below the bytes of all chunks C-Blosc2 wants every id."""
_MOST_MOVES = 1000


class FolderMark(FrameMark):
    """What a frame in a directory was."""

    __slots__ = ("lengths",)

    folder: FileBytes
    file: FileBytes
    """The index file, which entries may still have to be read from."""
    _all_sealed: bool

    def __init__(self, table: MutableChunkTable) -> None:
        """Note down what the frame is now, and how long its lists are."""
        super().__init__(table)
        state = cast("SparseState", table)
        self.lengths = len(state._pending), len(state._placed), len(state._dropped)
        """How many ids were pending, placed and dropped: these lists grow where they are."""

    @property
    def seals(self) -> range | None:
        """The entries whose chunks have seals; None: no seal proves anything."""
        return None if self._stale_seals else range(0 if self._all_sealed else ENTRIES_END, ENTRIES_END)

    def place(self, entry: int, nchunk: int) -> Source:
        """Return the file of chunk `nchunk`."""
        return place_in(self.folder, entry, nchunk)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A commit whose index file is written and waits for its name."""

    file: FileBytes
    parts: list[bytes]
    """Header, index chunk and trailer."""
    synced: bool
    """Whether all that it names is on the disk."""


class SparseState(CommittedFrame):
    """A sparse frame in a directory, and the lock that writers take on it; shared by the handles of this process."""

    sparse = True
    mark_type = FolderMark
    switch: Switch | None

    def __init__(self, folder: FileBytes, file: FileBytes, loaded: Loaded, *, private: bool = False) -> None:
        """Take over the open directory and the open index file, which says `loaded`."""
        self._ids = ChunkIds()
        self._forget_files()
        self.folder = folder
        """The directory; its path is absolute."""
        self.private = private
        """Whether it is for one handle that stays at a state, and pinned."""
        self._watched_name = (folder.read_fd, INDEX_NAME)
        super().__init__(folder.path, file, loaded)

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
        raw = empty_frame(settings, chunksize, meta, vlblocks=vlblocks, seal=seal, sparse=True)
        final = absolute(path)
        refuse_if_written(final, path)
        aside = aside_of(final)
        try:
            make_folder(aside)
        except StorageError as error:  # of the other name, which says nothing to the caller
            raise StorageError(error.errno, error.strerror, path) from error
        folder = file = None
        try:
            folder = FileBytes(aside, open_folder(aside))
            file = FileBytes.create(joined(aside, INDEX_NAME))
            file.pwrite(raw, 0)
            file.close()
            file, loaded = read_present(folder)
            state = cls(folder, file, loaded)
            state.path, state.unpublished, state.rule = path, final, rule
            state.sync_level, state.sealing = sync, seal
            state.fresh = not os.path.lexists(final)
            state._lock_writing(folder.read_fd)
            state._learn_files()
        except BaseException as error:
            for opened in (file, folder):
                if opened is not None:
                    opened.close()
            with suppress(StorageError):
                remove_file(joined(aside, INDEX_NAME))
                remove_folder(aside)
            if isinstance(error, StorageError) and str(error.filename).startswith(aside):
                raise StorageError(error.errno, error.strerror, path) from error
            raise
        return registry.enter((*folder.identity, 0), state)

    @classmethod
    def opened(cls, path: str, *, private: bool = False, recover: bool = False, place: str | None = None) -> Use:
        """Return a use of the state of a frame.

        Parameters
        ----------
        path
            The directory, its path absolute.
        private
            Not to be shared with others: it will stay as it is.
        recover
            Take the last synced state if the present one is damaged.
        place
            The name that the directory has while another one is about to take its own.

        Raises
        ------
        FileNotFoundError
            There is no such directory.
        DamagedFrameError
            It is damaged, and the last synced state is whole.
        FormatError, UnsupportedError
            There is no frame, a damaged one, or one that this library does not read.
        StorageError
            The system refuses.

        """
        final = absolute(path)
        folder = FileBytes(final, open_folder(place or final))
        try:
            key = (*folder.identity, 0)
            use = None if private else registry.find(key)
            if use is None:
                state = cls._loaded(folder, private=private, recover=recover)
                state.path = path
                use = registry.join(state) if private else registry.enter(key, state)
        except SuperchunkError as error:
            folder.close()
            raise about(error, path) from error
        except BaseException:
            folder.close()
            raise
        if not isinstance(use.state, cls) or use.state.folder is not folder:
            folder.close()
        return use

    @classmethod
    def _loaded(cls, folder: FileBytes, *, private: bool, recover: bool) -> CommittedFrame:
        try:
            file, loaded = read_present(folder, pinned=private)
        except NewerFormatError:
            raise
        except (FormatError, FileNotFoundError) as error:
            if isinstance(error, FileNotFoundError) and not leads_to(folder.path, folder.read_fd):
                raise  # it was replaced meanwhile, and is being removed
            damage = error if isinstance(error, FormatError) else _no_index()
            last_synced = last_synced_frame(folder)
            if last_synced is None:
                raise damage from error
            file, loaded = last_synced
            if not recover:
                file.close()
                if loaded.sealed is False:
                    raise damage from error  # nothing proves that the older state can be read
                raise DamagedFrameError(damage, nchunks=len(loaded.index), nbytes=loaded.header.nbytes) from error
        return cls(folder, file, loaded, private=private)

    def _adopt(self, loaded: Loaded) -> None:
        record = loaded.record
        self._was_synced = bool(record is not None and record.last_synced and loaded.sealed is not False)
        # C-Blosc2 writes no seals, and takes away those of chunks that it changes.
        self._all_sealed = not loaded.nchunks or bool(
            record is not None and loaded.sealed is not False and not record.sealed_from
        )
        self._header_cbytes = loaded.header.cbytes
        super()._adopt(loaded)
        if self.writing:
            self._learn_files()

    @property
    def seals(self) -> range | None:
        """The entries whose chunks have seals; None: no seal proves anything."""
        return FolderMark(self).seals

    # Reading.

    def place(self, entry: int, nchunk: int) -> Source:
        """Return the file of chunk `nchunk`."""
        return place_in(self.folder, entry, nchunk)

    def places(self, numbered: Iterable[tuple[int, int]]) -> list[Source]:
        """Return the files of chunks given by number and entry; special chunks whole."""
        folder, special = self.folder, self._special
        return [place_in(folder, entry, nchunk) if entry >= 0 else special(entry, nchunk) for nchunk, entry in numbered]

    @property
    def live(self) -> tuple[int, int]:
        """Compressed bytes of the stored chunks, as the header has it, and how many are not stored."""
        live = self._live
        if live is None:
            index = self.index
            specials = 0
            if index.repeated_entry is not None:
                specials = len(index) if index.repeated_entry < 0 else 0
            else:
                specials = sum(count_special(entries) for _, entries in index.slabs())
            live = self._live = (self._header_cbytes, specials)
        return live

    @property
    def dead_bytes(self) -> int:
        """Bytes of chunk files that the present state does not name."""
        with self.lock:
            named = self._named()
            chunks = list_folder(self.folder.path, sizes=True).chunks
            return sum(size for ident, size in chunks.items() if ident not in named)

    def _named(self) -> set[int]:
        """Return the ids that the present state names."""
        index = self.index
        if index.repeated_entry is not None:
            return {index.repeated_entry} if index.repeated_entry >= 0 else set()
        return {entry for entry in index.slice(0, len(index)) if entry >= 0}

    # Following.

    def refresh(self, *, force: bool = False, whole: bool = False) -> bool:
        """Follow another process's commit; return whether there was one."""
        try:
            if not (force or whole or self._watch.changed()):  # every access asks
                return False
        except OSError as error:
            raise storage_error(error, self.file.path) from error
        if self._still:  # somebody, who may hold the lock for long, reads this state
            return False
        with self.lock:
            if self.unpublished is not None or not (force or self.is_changed() or (whole and self._is_other())):
                return False
            waiting = self.waiting
            try:
                if not self._reload():
                    return False  # it was removed, and nothing has its name
            except SuperchunkError as error:
                raise about(error, self.path) from error
        if waiting:
            raise StorageError(
                f"{self.path}: changed by another process while changes made here waited"
                " for their commit; those are lost"
            )
        return True

    def _is_other(self) -> bool:
        """Return whether our index file, read as a whole, says anything else than it did."""
        try:
            return not self._is_same(load_index(self.file))
        except FormatError:  # C-Blosc2 may be in the middle of changing it: loading waits for the end
            return True

    def changed_since(self, version: int) -> bool:
        """Return whether what was read since `version` may be of more than one commit."""
        still = self._still  # before the version: who is in there now may have loaded another state first
        if super().changed_since(version):
            return True
        return not still and (self.is_changed() or super().changed_since(version))

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep the present state, and the files it names, while the block reads; writers elsewhere go on."""
        with self.lock:
            pinned = not (self._still or self.private or self.writing) and self._lock_present()
            try:
                with super().pinned():
                    yield
            finally:
                if pinned:
                    unlock_shared(self.file)

    def _lock_present(self) -> bool:
        """Pin the present index file, after following to it; return False if there is none any more."""
        for _ in range(_MOST_MOVES):
            file = self.file
            lock_shared(file)
            if is_present(file, self.folder):
                self.refresh()  # for C-Blosc2 changes it where it is
                if self.file is file:
                    return True
            unlock_shared(file)
            if not self._reload():
                return False
        return False

    def _reload(self) -> bool:
        """Load what has the frame's name now; return False if nothing has."""
        if leads_to(self.folder.path, self.folder.read_fd):
            try:
                file, loaded = read_present(self.folder, patient=True, pinned=self.private)
            except FileNotFoundError:
                return False
            with self._moved():
                self._replace_file(file)
                self._adopt(loaded)
            return True
        try:
            fd = open_folder(self.folder.path)
        except FileNotFoundError:
            return False
        self._move(FileBytes(self.folder.path, fd))
        return True

    def _move(self, folder: FileBytes) -> None:
        """Go on with the directory that has taken this one's name."""
        try:
            key = (*folder.identity, 0)
            other = None if self.private else registry.state_of(key)
            if other is not None:  # this process made it, or found it first
                folder.close()
                self.changes.clear()
                self._dirty = False
                self.successor = other
                return
            file, loaded = read_present(folder, patient=True, pinned=self.private)
            if self.writing:
                self._unlock_writing()
                self._lock_writing(folder.read_fd)
        except BaseException:
            folder.close()
            raise
        with self._moved():
            old, self.folder = self.folder, folder
            self._watched_name = (folder.read_fd, INDEX_NAME)
            self._retire(old)
            registry.move(self, key)
            self._replace_file(file)
            self._adopt(loaded)

    def _replace_file(self, file: FileBytes) -> None:
        """Take `file` for the index file; readers may be busy in the old one."""
        old, self.file = self.file, file
        if self.private:
            unlock_shared(old)
        self._retire(old)

    # Writing, by one process at a time.

    def enable_writing(self, *, takes_lock_turns: bool = False) -> None:
        """Make sure that the frame can be changed, by this process alone.

        Files that no index names are removed; they are what a killed writer left.

        Raises
        ------
        LockedError
            Another process has it open for writing.
        FormatError
            The fingerprint does not fit.
        StorageError
            The system refuses.

        """
        with self.lock:
            if self.writing:
                return
            if not os.access(self.folder.path, os.W_OK | os.X_OK):
                raise StorageError(errno.EACCES, os.strerror(errno.EACCES), self.folder.path)
            self._takes_lock_turns = takes_lock_turns
            self._lock_writing(self.folder.read_fd)
            try:
                if not leads_to(self.folder.path, self.folder.read_fd):
                    self._reload()
                self.follow()  # what the last writer did until it let go
                self.prove()
                self._learn_files(tidy=not takes_lock_turns)
            except BaseException:
                self._unlock_writing()
                raise

    def disable_writing(self) -> None:
        """Let other processes write."""
        self._unlock_writing()
        self._close_retained()
        self._forget_files()

    def _forget_files(self) -> None:
        """Know nothing of files beyond what the index says."""
        self._pending: list[int] = []
        """Ids of the files written since the last commit."""
        self._placed: list[int] = []
        """Ids of files by other writers taken up since the last commit."""
        self._dropped: list[int] = []
        """Ids that left the index since the last commit."""
        self._garbage: set[int] = set()
        """Ids that no commit names, whose files are to be removed."""
        self._held: set[int] = set()
        """Ids that only an index that is retained may name."""
        self._last_synced: RetainedIndex | None = None
        self._pins: list[RetainedIndex] = []
        self._unsynced: list[int] | None = None
        """Ids of committed files that may not be on the disk; None: all of them."""
        self._synced = False
        """Whether all of the committed state is on the disk."""
        self._shared = False
        """Whether two entries name one file, as a damaged or hostile index may."""

    def _learn_files(self, *, tidy: bool = False) -> None:
        """Find out which files there are, and who references them."""
        reserved = self._ids.reserved
        self._close_retained()
        self._forget_files()
        if self.index.repeated_entry is None:  # an index that is read from its file would lose that
            self.index, self._index_is_shared = Index(self.index.slice(0, len(self.index))), False
        named = self._named()
        self._shared = len(named) + self.live[1] != len(self.index)
        listing = list_folder(self.folder.path, display_path=self.path)
        self._ids = ChunkIds(max((*named, *listing.chunks, *reserved), default=-1) + 1)
        self._ids.reserved = reserved
        if listing.last_synced:
            self._last_synced = RetainedIndex(joined(self.folder.path, LAST_SYNCED_NAME))
        self._pins = [RetainedIndex(joined(self.folder.path, name)) for name in listing.pinned]
        self._synced = self._was_synced
        self._unsynced = [] if self._synced else None
        if tidy:
            self._garbage = listing.chunks.keys() - named - reserved
            for name in listing.unfinished:
                try_to_remove(joined(self.folder.path, name))
            self._committed()

    # Changing.

    def _undo(self, mark: Any) -> None:
        """Come back to the chunk files of `mark`; files written since are removed."""
        pending, placed, dropped = mark.lengths
        for ident in self._pending[pending:]:
            if not try_to_remove(self._path_of(ident)):
                self._garbage.add(ident)
        self._ids.reserved.update(self._placed[placed:])
        del self._pending[pending:], self._placed[placed:], self._dropped[dropped:]

    def committed(self) -> CommittedFrame | PastTable | None:
        """Return the committed state; what its chunks take is in the header."""
        past = super().committed()
        if isinstance(past, PastTable) and past._live is None:
            index = past.index
            specials = sum(entry < 0 for entry in index.slice(0, len(index)))
            past._live = (self._header_cbytes, specials)
        return past

    def put(self, chunks: Sequence[bytes]) -> Sequence[int]:
        """Write each of `chunks` into a file of its own."""
        self._check_name()
        return [self._take_up(chunk) if isinstance(chunk, PlacedChunk) else self._write_file(chunk) for chunk in chunks]

    def _check_name(self) -> None:
        """Make sure that nothing is written into a directory that has taken this one's name."""
        if not leads_to(self.folder.path, self.folder.read_fd):
            raise StorageError(
                f"{self.path}: the directory was removed or replaced while it was open; nothing was written"
            )

    def _write_file(self, chunk: bytes) -> int:
        most = (self._live or self.live)[0] - _BELOW_CBYTES
        while True:
            ident = self._ids.take(most, self._taken)
            name = chunk_name(ident)
            try:
                file = FileBytes.create(
                    f"{self.folder.path}/{name}", like=self.file, display_path=f"{self.path}/{name}"
                )
            except StorageError as error:
                if error.errno == errno.EEXIST:
                    continue
                raise
            break
        self._garbage.discard(ident)
        self._held.discard(ident)
        self._pending.append(ident)
        parts = [chunk, _engine.seal(chunk)] if self.sealing else [chunk]
        self._all_sealed = self._all_sealed and self.sealing
        try:
            file.pwrite(parts, 0)
        finally:
            file.close()
        self._written += sum(map(len, parts))
        return ident

    def _take_up(self, chunk: PlacedChunk) -> int:
        """Name a chunk file that another writer has put there."""
        self._placed.append(chunk.ident)
        self._ids.reserved.discard(chunk.ident)
        self._written += len(chunk) + SEAL_LEN
        return chunk.ident

    def reserve(self, count: int) -> range:
        """Set `count` ids aside for chunk files that other writers place."""
        return self._ids.reserve(count)

    def staged(self, staged: StagedChunk) -> bytes:
        """Return a staged chunk, checked; see `FrameStore.staged`."""
        if staged.chunk_id not in self._ids.reserved:
            raise ArgumentError(
                f"chunk_id: expected one that reserve_chunk_ids gave and that is not in use yet, got {staged.chunk_id}"
            )
        return read_staged(self.folder.path, staged)

    def _path_of(self, ident: int) -> str:
        return f"{self.folder.path}/{chunk_name(ident)}"

    def _taken(self) -> set[int]:
        """Return the ids that a new file cannot have."""
        return self._named() | list_folder(self.folder.path, display_path=self.path).chunks.keys() | self._ids.reserved

    def _count_out(self, nchunk: int) -> None:
        entry = self.index[nchunk]
        stored, specials = self.live
        if entry < 0:
            self._live = (stored, specials - 1)
            return
        try:
            cbytes = _engine.sizes([self.place(entry, nchunk)])[0][1]
        except SuperchunkError:
            cbytes = 0  # it can be removed all the same
        self._live = (max(stored - cbytes, 0), specials)
        self._dropped.append(entry)

    # Committing.

    def commit(self, index_chunk: bytes | None = None, *, sync: bool = False) -> None:
        """Write what waits, and switch to it; see `CommittedFrame.commit`."""
        super().commit(index_chunk, sync=sync)
        if self._too_large():  # files that had small ids are gone by now
            self._index_changed = self._dirty = True
            super().commit(sync=sync)

    def _write(self, index_chunk: bytes | None, *, sync: bool) -> None:
        self._check_name()
        if self._renumber():
            index_chunk = None
        parts = self._index_file(index_chunk, last_synced=sync)
        folder = self.folder.path
        file = FileBytes.create(aside_in(folder), like=self.file, display_path=self.path)
        try:
            file.pwrite(parts, 0)
            if sync:
                self._sync_chunks()
                file.sync()
                sync_folder(folder, display_path=self.path)
            elif not (self.fresh or self.sync_level == "never"):
                self._retain_last_synced()
            self._keep_pinned()
        except BaseException:
            unlock_shared(self.file)
            file.close()
            try_to_remove(file.path)
            raise
        self.switch = switch = Switch(file=file, parts=parts, synced=sync)
        try:
            replace_file(file.path, joined(folder, INDEX_NAME), display_path=self.path)
        except SuperchunkError:
            self._call_off(switch)
            raise
        self._land(switch)
        if sync:
            sync_folder(folder, display_path=self.path)
            self._synced = True
            self._name_synced()

    def _settle(self) -> None:
        """If a switch was interrupted, find out whether it was made, and go on from there."""
        switch = self.switch
        if switch is None:
            return
        if switch.file is self.file or leads_to(joined(self.folder.path, INDEX_NAME), switch.file.read_fd):
            self._land(switch)
        else:
            self._call_off(switch)

    def _call_off(self, switch: Switch) -> None:
        """Leave nothing of a switch that was not made."""
        unlock_shared(self.file)
        switch.file.close()
        try_to_remove(switch.file.path)
        self.switch = None

    def _index_file(self, index_chunk: bytes | None, *, last_synced: bool) -> list[bytes]:
        """Return header, index chunk and trailer of the index file of the present state."""
        chunk = b""
        if len(self.index):
            if self._index_changed or not self._index_len:
                chunk = self._index_chunk(index_chunk)
            else:
                chunk = self.file.pread(self._index_len, len(self._raw_header))
        frame_len = len(self._raw_header) + len(chunk) + self._next_trailer_len()
        header = self._header(frame_len=frame_len, cbytes=self.live[0])
        all_sealed = self._all_sealed or not len(self.index)
        trailer = self._next_trailer(
            header, chunk or None, last_synced=int(last_synced), sealed_from=int(not all_sealed)
        )
        return [header, chunk, trailer]

    def _land(self, switch: Switch) -> None:
        """Take the index file that a switch leads to for the committed one; doing it twice does no harm.

        Nothing can be undone from here on.
        """
        header, chunk, trailer = switch.parts
        switch.file.path = joined(self.folder.path, INDEX_NAME)
        if self.file is not switch.file:
            unlock_shared(self.file)
            self._replace_file(switch.file)
        self._raw_header = header
        self._trailer_len = len(trailer)
        self.frame_len = sum(map(len, switch.parts))
        if not chunk:
            self._index_len = self._index_of = 0
            self._all_sealed = True
        probe = header[:PROBE_LEN] if chunk else (header + trailer)[:PROBE_LEN]
        self._stale_seals = self._stale_seals and not self.sealing
        self._header_cbytes = self.live[0]
        if switch.synced:
            self._unsynced = []
        elif self._unsynced is not None:
            self._unsynced += self._pending + self._placed
        self._synced = False  # the new name of the index file is not on the disk, and waiting for that may fail
        self._garbage.update(self._dropped)
        self.epoch += 1
        self._pending, self._placed, self._dropped = [], [], []
        self._remember(len(self.index), probe, proof_of(trailer, chunk))
        self.index.forget()
        self.switch = None

    def _too_large(self) -> bool:
        """Return whether an id is so large that C-Blosc2 would not open the frame, and a smaller one is free."""
        most = self.live[0] - _BELOW_CBYTES
        if self._ids.following - 1 <= most or self._dirty or not self.writing:
            return False
        named = self._named()
        if max(named, default=-1) <= most:
            return False
        taken = self._taken()
        return any(ident not in taken for ident in range(max(most + 1, 0)))

    def _renumber(self) -> bool:
        """Give files with ids that C-Blosc2 would not open smaller ones; return whether any got one."""
        most = self.live[0] - _BELOW_CBYTES
        repeated = self.index.repeated_entry
        if self._ids.following - 1 <= most or (repeated is not None and repeated < 0):
            return False
        entries = self.index.slice(0, len(self.index))
        large = [(nchunk, ident) for nchunk, ident in enumerate(entries) if ident > most]
        if not large:
            return False
        taken = self._taken()
        free = (ident for ident in range(max(most + 1, 0)) if ident not in taken)
        done = False
        for (nchunk, ident), new in zip(large, free, strict=False):
            link_file(self._path_of(ident), self._path_of(new))
            self._garbage.discard(new)
            self._held.discard(new)
            self._pending.append(new)
            self._dropped.append(ident)
            self.index.replace(nchunk, new)
            self._index_changed = done = True
        return done

    # Files that are needed no more.

    def _retain_last_synced(self) -> None:
        """Before a commit that may get lost: keep the present index file, if none is retained."""
        if self._last_synced is not None and self._last_synced.exists():
            return
        folder = self.folder.path
        path = joined(folder, LAST_SYNCED_NAME)
        try:
            link_file(joined(folder, INDEX_NAME), path, display_path=self.path)
        except StorageError as error:
            if error.errno != errno.EEXIST:
                raise
        sync_folder(folder, display_path=self.path)
        self._last_synced = RetainedIndex(path)

    def _keep_pinned(self) -> None:
        """Before the present index file is replaced: give it another name if a snapshot references it."""
        if is_share_locked(self.file):
            folder = self.folder.path
            path = joined(folder, pin_name())
            link_file(joined(folder, INDEX_NAME), path, display_path=self.path)
            self._pins.append(RetainedIndex(path))

    def _committed(self) -> None:
        """Remove the files that nothing references any more; what cannot be removed waits."""
        try:
            self._drop_unreferenced()
            self._remove_garbage()
        except SuperchunkError:
            return

    def _drop_unreferenced(self) -> None:
        gone: list[RetainedIndex] = []
        if self._last_synced is not None and self._synced:
            gone.append(self._last_synced)
        gone += [retained for retained in self._pins if not retained.in_use()]
        for retained in gone:
            retained.remove()
            if retained is self._last_synced:
                self._last_synced = None
            else:
                self._pins.remove(retained)
        if gone:
            self._garbage |= self._held
            self._held = set()
            self._ids.look_again()

    def _remove_garbage(self) -> None:
        if not self._garbage:
            return
        retained = [*self._pins] if self._last_synced is None else [self._last_synced, *self._pins]
        named = self._named() if self._shared else set()
        for ident in list(self._garbage):
            if any(ident in index.ids for index in retained):
                self._held.add(ident)
            elif ident not in named and not try_to_remove(self._path_of(ident)):
                continue
            self._garbage.discard(ident)

    def _sync_chunks(self) -> None:
        """Wait until the chunk files of the present state are on the disk."""
        idents = self._named() if self._unsynced is None else {*self._unsynced, *self._pending, *self._placed}
        sync_files(self.folder.path, [chunk_name(ident) for ident in sorted(idents)], display_path=self.path)

    def _close_retained(self) -> None:
        for retained in self._pins:
            retained.close()
        if self._last_synced is not None:
            self._last_synced.close()

    # The disk.

    def _sync(self) -> None:
        if not self._synced:
            self._sync_chunks()
            sync_files(self.folder.path, [INDEX_NAME], display_path=self.path)
            sync_folder(self.folder.path, display_path=self.path)
            self._unsynced = []
            self._synced = True
        self._name_synced()
        self._committed()

    def _name_synced(self) -> None:
        if self._new_name and self.unpublished is None:
            sync_folder(os.path.dirname(self.folder.path), display_path=self.path)
            self._new_name = False
        self.fresh = False

    def _publish(self, name: str) -> None:
        """Give the directory its name, in place of what had it."""
        refuse_if_written(name, self.path)
        if os.path.lexists(name) and self.sync_level != "never":
            self._sync()
        if take_name(self.folder.path, name, self.rule):
            remove_orphans(name)
        self.folder.path = name
        self.file.path = joined(name, INDEX_NAME)
        for kept in [*self._pins, *([self._last_synced] if self._last_synced else [])]:
            kept.path = joined(name, os.path.basename(kept.path))
        self.unpublished = None
        self._new_name = True
        self.version += 1

    def compact(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Commit down to the disk, and remove every file that nothing references.

        Parameters
        ----------
        progress
            Called with the files read and those in all.

        Raises
        ------
        StorageError
            The system refuses; the frame is as it was.

        """
        self.commit(sync=True)
        remove_orphans(self.folder.path)
        listing = list_folder(self.folder.path, display_path=self.path)
        if self.sync_level == "never" and self._last_synced is not None:
            self._sync()
        self._garbage = listing.chunks.keys() - self._named() - self._ids.reserved
        self._held = set()
        self._committed()
        if progress is not None:
            progress(len(listing.chunks), len(listing.chunks))

    # Life.

    def after_fork(self, *, torn: bool) -> None:
        """Start anew in a child process, which holds no lock."""
        if self.file.read_fd < 0:
            return  # it is closed, and only waits to be collected
        waiting = torn or self.waiting
        super().after_fork(torn=torn)
        self.unpublished = None
        self._close_retained()
        self._forget_files()
        self._ids = ChunkIds()
        try:
            separate(self.folder.read_fd, self.folder.path)
        except SuperchunkError:
            return  # it can be read, and not be written
        finally:
            if waiting:
                self._reload()

    def discard(self) -> None:
        """Remove a directory that has not got its name yet."""
        if self.unpublished is None:
            raise StorageError(f"{self.path}: the frame has its name already")
        self._dirty = False
        if self.folder.has_name(self.unpublished):
            self.unpublished = None  # it has got it, and an interrupt came before that was noted
        elif self.folder.has_name(self.folder.path):
            remove_frame_folder(self.folder.path)

    def close(self) -> None:
        """Close the files."""
        self._close_retained()
        if self._writer is not None:
            self._writer.release()
        self.file.close()
        self.folder.close()
        if self._retired is not None:
            self._retired.close()


def _no_index() -> FormatError:
    return FormatError("sparse frame", at=0, expected=f"a file {INDEX_NAME} in the directory", found="none")


def try_to_remove(path: str) -> bool:
    """Remove a file; return whether it is gone."""
    try:
        remove_file(path)
    except StorageError:
        return False
    return True
