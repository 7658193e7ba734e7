"""A sparse frame in a directory as it was read, following what other writers commit.

Chunks are files that are named in the index by number and opened when they are read. A commit
puts another index file in the place of the old one, and may remove chunk files afterwards. So
whoever read chunks has to ask `changed_since` whether what was read may belong to several commits,
and then read again; or read within `pinned`, which keeps writers from removing anything.
How the frame is changed is in `sparse`.

Source: docs/format/sparse.md, "Index file", "Commits" and "Readers".
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._format.header import FIXED_LEN
from superchunk._format.index import ENTRY_LEN, count_special, special_kind
from superchunk._store import registry
from superchunk._store.committed import CommittedFrame
from superchunk._store.file import FileBytes, RetiredFiles, storage_error
from superchunk._store.folder import (
    INDEX_NAME,
    LAST_SYNCED_NAME,
    MAX_ID,
    chunk_name,
    joined,
    list_folder,
    open_folder,
)
from superchunk._store.loading import about, check_fingerprint
from superchunk._store.locks import WriterLock, leads_to
from superchunk._store.retained import RetainedIndex, load_index, stored_ids
from superchunk._store.seals import SEALED, UNSEALED, after_power_loss, stored_entries
from superchunk._store.shared_locks import lock_shared, unlock_shared
from superchunk.exceptions import FormatError, StorageError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from superchunk._engine import Source
    from superchunk._store.loading import Loaded

__all__ = ["FollowedFolder", "checked_chunks", "place_in", "read_present"]

CHUNK_LIMIT = 2**31 + 64
"""Bytes that are looked at in a chunk file: the largest chunk and its seal."""

# Pauses, in seconds, while C-Blosc2 may be between two of its writes.
_RETRIES = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)
_MOST_MOVES = 1000


class FollowedFolder(CommittedFrame):
    """A sparse frame in a directory, and the lock that writers take on that."""

    sparse = True

    def __init__(self, folder: FileBytes, file: FileBytes, loaded: Loaded, *, private: bool = False) -> None:
        """Take over the open directory and the open index file, which says `loaded`."""
        self.folder = folder
        """The directory; its path is absolute."""
        self.file = file
        """The index file."""
        self.private = private
        """Whether it is for one handle that stays at a state, and pinned."""
        self.unpublished: str | None = None
        """The name that the directory gets with its first commit, if it waits for that."""
        self.fresh = False
        """Whether nothing of the frame can be on the disk yet, so that nothing can be lost."""
        self._retired = RetiredFiles()
        self._writer = WriterLock()
        self._takes_lock_turns = False
        self._new_name = True  # for all that is known, as in `followed`
        super().__init__(folder.path, loaded)

    def _adopt(self, loaded: Loaded) -> None:
        self._header_cbytes = loaded.header.cbytes
        super()._adopt(loaded)

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

    def _watch_for(self, probe: bytes) -> _engine.Watch:
        return _engine.Watch(self.file.read_fd, 0, probe, (self.folder.read_fd, INDEX_NAME), self._proven)

    @property
    def _committed_range(self) -> tuple[int, int]:
        return len(self._raw_header), self.frame_len

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
            pinned = not (self._still or self.private or self._writer.held) and self._lock_present()
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
            if _is_present(file, self.folder):
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
            key = (*folder.identity(), 0)
            other = None if self.private else registry.state_of(key)
            if other is not None:  # this process made it, or found it first
                folder.close()
                self.changes.clear()
                self._dirty = False
                self.successor = other
                return
            file, loaded = read_present(folder, patient=True, pinned=self.private)
            if self._writer.held:
                self._writer.release()
                self._writer.acquire(folder.read_fd, self.path, shared=self._takes_lock_turns)
        except BaseException:
            folder.close()
            raise
        with self._moved():
            old, self.folder = self.folder, folder
            self._retired.add(old)
            registry.move(self, key)
            self._replace_file(file)
            self._adopt(loaded)

    def _replace_file(self, file: FileBytes) -> None:
        """Take `file` for the index file; readers may be busy in the old one."""
        old, self.file = self.file, file
        if self.private:
            unlock_shared(old)
        self._retired.add(old)

    # Writing, by one process at a time.

    @property
    def writing(self) -> bool:
        """Whether this process has the frame for writing."""
        return self._writer.held

    def disable_writing(self) -> None:
        """Let other processes write."""
        self._writer.release()

    def close(self) -> None:
        """Close the files."""
        self._writer.release()
        self.file.close()
        self.folder.close()
        if self._retired.files:
            self._retired.close()


def place_in(folder: FileBytes, entry: int, nchunk: int) -> Source:
    """Return a chunk's file in an open directory, though another one may have its name by now."""
    if entry > MAX_ID:
        raise FormatError(f"index entry {nchunk}", at=ENTRY_LEN * nchunk, expected=f"at most {MAX_ID}", found=entry)
    return ((folder.read_fd, f"{folder.path}/{chunk_name(entry)}"), 0, CHUNK_LIMIT)


def _is_present(file: FileBytes, folder: FileBytes) -> bool:
    """Return whether `file` is what the directory has for an index file."""
    return not _engine.Watch(file.read_fd, 0, b"", (folder.read_fd, INDEX_NAME)).changed()


def read_present(folder: FileBytes, *, patient: bool = False, pinned: bool = False) -> tuple[FileBytes, Loaded]:
    """Open the index file in `folder`, and return it and what it says.

    Parameters
    ----------
    folder
        The open directory.
    patient
        There was a frame, so that C-Blosc2 may be in the middle of changing it: try for
        some time.
    pinned
        Keep writers from removing what it names, until the file is closed.

    Raises
    ------
    FileNotFoundError
        There is no index file.
    FormatError, UnsupportedError
        There is no frame, a damaged one, or one that this library does not read.
    StorageError
        The system refuses.

    """
    tries = 0
    for _ in range(_MOST_MOVES):
        file = FileBytes.open(joined(folder.path, INDEX_NAME), follow=False, within=folder)
        try:
            if pinned:
                lock_shared(file)
            before = file.pread(FIXED_LEN, 0)
            try:
                loaded = load_index(file)
                checked_chunks(folder, loaded, file.size_and_time()[1])
            except FormatError:
                moved = file.changed(0, before)
                tries += 1
                if tries > len(_RETRIES) or not (moved or patient):
                    raise
                if not moved:
                    time.sleep(_RETRIES[tries - 1])
            else:
                same = loaded.raw_header[: len(before)] == before
                if same and (not pinned or _is_present(file, folder)):
                    return file, loaded
        except BaseException:
            file.close()
            raise
        file.close()
    raise StorageError(f"{folder.path}: the frame is changed faster than it can be opened")


def checked_chunks(folder: FileBytes, loaded: Loaded, changed_at: float) -> None:
    """Compare the chunks that may not have reached the disk with their seals.

    Parameters
    ----------
    folder, loaded
        The open directory, and what the index file in it says.
    changed_at
        When the index file was changed last, seconds since 1970.

    Raises
    ------
    FormatError
        A chunk of a commit that was never synced is not as it was written.

    """
    record, header = loaded.record, loaded.header
    if loaded.sealed is False or record is None or record.last_synced or not header.nbytes:
        return
    if not after_power_loss(changed_at):
        return
    if loaded.sealed is None:
        check_fingerprint(loaded)
    if loaded.raw_header != record.header:  # the fingerprint leaves out what C-Blosc2 may change
        raise FormatError(
            "frame header", at=0, expected="the one that its commit record tells", found="another: it was not synced"
        )
    retained = RetainedIndex(joined(folder.path, LAST_SYNCED_NAME), within=folder)
    try:
        last_synced = retained.ids if retained.on_disk else set()
    finally:
        retained.close()
    whole_chunks(folder, loaded, besides=last_synced)


def whole_chunks(folder: FileBytes, loaded: Loaded, *, besides: set[int]) -> None:
    """Compare chunks with their seals.

    Parameters
    ----------
    folder, loaded
        The open directory, and what an index file in it says.
    besides
        Ids that are not looked at.

    Raises
    ------
    FormatError
        One is not as it was sealed, or not there.

    """
    proven = (SEALED, UNSEALED) if loaded.record is None or loaded.record.sealed_from else (SEALED,)
    for slab in stored_entries(loaded.index):
        doubtful = [(nchunk, entry) for nchunk, entry in slab if entry not in besides]
        sources = [place_in(folder, entry, nchunk) for nchunk, entry in doubtful]
        for (nchunk, entry), (status, _) in zip(doubtful, _engine.check_seals(sources), strict=True):
            if status not in proven:
                raise FormatError(
                    f"chunk {nchunk}, file {chunk_name(entry)}",
                    at=0,
                    expected="the bytes that its seal tells",
                    found="others: a commit that was not synced did not reach the disk",
                )


def last_synced_frame(folder: FileBytes) -> tuple[FileBytes, Loaded] | None:
    """Return the last synced index file in `folder` and what it says, if that and its chunks are whole.

    Raises
    ------
    StorageError
        The system refuses.

    """
    try:
        file = FileBytes.open(joined(folder.path, LAST_SYNCED_NAME), follow=False, within=folder)
    except (OSError, SuperchunkError):
        return None
    try:
        loaded = load_index(file)
        if loaded.sealed is None:
            check_fingerprint(loaded)
        if loaded.sealed is not False:
            whole_chunks(folder, loaded, besides=set())
        else:
            _engine.sizes([place_in(folder, entry, 0) for entry in sorted(stored_ids(loaded))])
            _check_specials(loaded)
    except SuperchunkError:
        file.close()
        return None
    return file, loaded


def _check_specials(loaded: Loaded) -> None:
    """Look at the special entries of an index that no fingerprint proves."""
    index = loaded.index
    for start, entries in index.slabs():
        for number, entry in enumerate(entries, start):
            if entry < 0:
                special_kind(entry, number)
        if index.repeated_entry is not None:
            return


def absolute(path: str) -> str:
    """Return where `path` leads, whatever the current directory will be."""
    return os.path.realpath(path)
