"""A frame in a directory: how its files change, and how a commit switches to them.

::

    chunks.b2frame   0 1 2          00000000.chunk 00000001.chunk 00000002.chunk                  committed
    chunks.b2frame   0 1 2          00000000.chunk 00000001.chunk 00000002.chunk 00000003.chunk   waiting
    chunks.b2frame   0 3 2          00000000.chunk 00000001.chunk 00000002.chunk 00000003.chunk   committed
                                    00000000.chunk                00000002.chunk 00000003.chunk   tidied up

A chunk file is written once, with its seal, under an id that no index names; a commit writes
a new index file aside and gives it the old one's name. Files that no index names any
more are removed after that. What is on the disk for sure, and what snapshots go by, stays: see `kept`.

Source: docs/format/sparse.md, "Commits"; docs/format/integrity.md.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from superchunk._store import registry
from superchunk._store.chunk_files import BELOW_CBYTES, ChunkFiles, try_to_remove
from superchunk._store.chunk_ids import ChunkIds
from superchunk._store.committed import empty_frame
from superchunk._store.contiguous import about, refuse_if_written
from superchunk._store.file import (
    FileBytes,
    link_file,
    make_folder,
    remove_file,
    remove_folder,
    replace_file,
    sync_files,
    sync_folder,
)
from superchunk._store.folder import (
    INDEX_NAME,
    aside_in,
    joined,
    list_folder,
    open_folder,
    remove_frame_folder,
)
from superchunk._store.followed_folder import absolute, last_synced_frame, read_present
from superchunk._store.loading import PROBE_LEN, proof_of
from superchunk._store.locks import leads_to, separate
from superchunk._store.names import aside_of, take_name
from superchunk._store.orphans import remove_orphans
from superchunk._store.shared_locks import unlock_shared
from superchunk.exceptions import (
    DamagedFrameError,
    FormatError,
    NewerFormatError,
    StorageError,
    SuperchunkError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from superchunk._store.committed import CommittedFrame
    from superchunk._store.protocol import FrameSettings
    from superchunk._store.registry import Use
    from superchunk._store.target import ReplaceRule
    from superchunk.params import SyncLevel

__all__ = ["SparseState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A commit whose index file is written and waits for its name."""

    file: FileBytes
    parts: list[bytes]
    """Header, index chunk and trailer."""
    synced: bool
    """Whether all that it names is on the disk."""


class SparseState(ChunkFiles):
    """A sparse frame that can be changed; shared by the handles of this process."""

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
            state._writer.acquire(folder.read_fd, path)
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
        return registry.enter((*folder.identity(), 0), state)

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
            key = (*folder.identity(), 0)
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
            if self._writer.held:
                return
            if not os.access(self.folder.path, os.W_OK | os.X_OK):
                raise StorageError(errno.EACCES, os.strerror(errno.EACCES), self.folder.path)
            self._takes_lock_turns = takes_lock_turns
            self._writer.acquire(self.folder.read_fd, self.path, shared=takes_lock_turns)
            try:
                if not leads_to(self.folder.path, self.folder.read_fd):
                    self._reload()
                self.follow()  # what the last writer did until it let go
                self.prove()
                self._learn_files(tidy=not takes_lock_turns)
            except BaseException:
                self._writer.release()
                raise

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
        self._watch_anew(probe, proof_of(trailer, chunk))
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
        self._remember(len(self.index))
        self.index.forget()
        self.switch = None

    def _too_large(self) -> bool:
        """Return whether an id is so large that C-Blosc2 would not open the frame, and a smaller one is free."""
        most = self.live[0] - BELOW_CBYTES
        if self._ids.following - 1 <= most or self._dirty or not self._writer.held:
            return False
        named = self._named()
        if max(named, default=-1) <= most:
            return False
        taken = self._taken()
        return any(ident not in taken for ident in range(max(most + 1, 0)))

    def _renumber(self) -> bool:
        """Give files with ids that C-Blosc2 would not open smaller ones; return whether any got one."""
        most = self.live[0] - BELOW_CBYTES
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
            Called with the files looked at and those in all.

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

    def disable_writing(self) -> None:
        """Let other processes write."""
        super().disable_writing()
        self._close_retained()
        self._forget_files()

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
        super().close()


def _no_index() -> FormatError:
    return FormatError("sparse frame", at=0, expected=f"a file {INDEX_NAME} in the directory", found="none")
