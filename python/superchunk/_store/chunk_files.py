"""The chunk files of a sparse frame: written, taken up, dropped, and removed when nothing references them.

A file is written once and never changed. It is pending until a commit names it, and garbage once
the index that names it is replaced, unless an index that is retained names it too: the last synced
one, or one that a snapshot references. What cannot be removed waits for the next commit.

Source: docs/format/sparse.md, "Chunk files", "Settled index" and "Snapshots".
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from superchunk import _engine
from superchunk._format.index import Index
from superchunk._format.integrity import SEAL_LEN
from superchunk._store.changes import PastTable
from superchunk._store.chunk_ids import ChunkIds
from superchunk._store.committed import FrameMark
from superchunk._store.file import FileBytes, link_file, remove_file, sync_files, sync_folder
from superchunk._store.folder import INDEX_NAME, LAST_SYNCED_NAME, chunk_name, joined, list_folder, pin_name
from superchunk._store.followed_folder import FollowedFolder, place_in
from superchunk._store.locks import leads_to
from superchunk._store.retained import RetainedIndex
from superchunk._store.seals import ENTRIES_END
from superchunk._store.shared_locks import is_share_locked
from superchunk._store.staging import PlacedChunk, read_staged
from superchunk.exceptions import ArgumentError, StorageError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from superchunk._engine import Source
    from superchunk._store.committed import CommittedFrame
    from superchunk._store.loading import Loaded
    from superchunk._store.staging import StagedChunk

__all__ = ["BELOW_CBYTES", "ChunkFiles", "try_to_remove"]

BELOW_CBYTES = 32
"""How far below the bytes of all chunks C-Blosc2 wants every id."""


@dataclass(frozen=True, init=False)
class FolderMark(FrameMark):
    """What a frame in a directory was."""

    folder: FileBytes
    file: FileBytes
    """The index file, which entries may still have to be read from."""
    pending: int
    placed: int
    dropped: int

    def place(self, entry: int, nchunk: int) -> Source:
        """Return the file of chunk `nchunk`."""
        return place_in(self.folder, entry, nchunk)


class ChunkFiles(FollowedFolder):
    """A sparse frame whose chunk files can be added and dropped."""

    def __init__(self, folder: FileBytes, file: FileBytes, loaded: Loaded, *, private: bool = False) -> None:
        """Take over the open directory and the open index file, which says `loaded`."""
        self._ids = ChunkIds()
        self._forget_files()
        super().__init__(folder, file, loaded, private=private)

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
            self.index = Index(self.index.slice(0, len(self.index)))
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

    def _adopt(self, loaded: Loaded) -> None:
        record = loaded.record
        self._was_synced = bool(record is not None and record.last_synced and loaded.sealed is not False)
        # C-Blosc2 writes no seals, and takes away those of chunks that it changes.
        self._all_sealed = not len(loaded.index) or bool(
            record is not None and loaded.sealed is not False and not record.sealed_from
        )
        super()._adopt(loaded)
        if self._writer.held:
            self._learn_files()

    def _first_sealed(self) -> int:
        return 0 if self._all_sealed else ENTRIES_END

    # Changing.

    def mark(self) -> FolderMark:
        """Return what the frame is now."""
        noted = self._noted()
        noted["folder"], noted["file"] = self.folder, self.file
        noted["pending"], noted["placed"] = len(self._pending), len(self._placed)
        noted["dropped"] = len(self._dropped)
        return FolderMark(noted)

    def _undo(self, mark: Any) -> None:
        """Come back to the chunk files of `mark`; files written since are removed."""
        for ident in self._pending[mark.pending :]:
            if not try_to_remove(self._path_of(ident)):
                self._garbage.add(ident)
        self._ids.reserved.update(self._placed[mark.placed :])
        del self._pending[mark.pending :], self._placed[mark.placed :], self._dropped[mark.dropped :]

    def committed(self) -> CommittedFrame | PastTable | None:
        """Return the committed state; what its chunks take stands in the header."""
        past = super().committed()
        if isinstance(past, PastTable) and past._live is None:  # noqa: SLF001 - of one package
            index = past.index
            specials = sum(entry < 0 for entry in index.slice(0, len(index)))
            past._live = (self._header_cbytes, specials)  # noqa: SLF001 - as above
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
        most = self.live[0] - BELOW_CBYTES
        while True:
            ident = self._ids.take(most, self._taken)
            try:
                file = FileBytes.create(
                    self._path_of(ident), like=self.file, display_path=joined(self.path, chunk_name(ident))
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


def try_to_remove(path: str) -> bool:
    """Remove a file; return whether it is gone."""
    try:
        remove_file(path)
    except StorageError:
        return False
    return True
