"""Index files that somebody still references although newer ones are there, and the chunk files they name.

There are two kinds. One is the newest index file that is known to be on the disk (`LAST_SYNCED_NAME`), while a loss of
power may lose the present one. The others are those of open snapshots, here or in other processes, which hold a shared
lock on the index file. The files that they name stay.

Source: docs/format/sparse.md, "Last synced index" and "Snapshots".
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from superchunk._store.frame_loading import check_fingerprint, parse_frame
from superchunk._store.os_file import FileBytes, remove_file
from superchunk._store.snapshot_locks import is_share_locked
from superchunk.exceptions import StorageError, SuperchunkError

if TYPE_CHECKING:
    from superchunk._store.frame_loading import Loaded

__all__ = ["RetainedIndex", "load_index", "stored_ids"]


def load_index(file: FileBytes) -> Loaded:
    """Return what the index file of a sparse frame says.

    Raises
    ------
    FormatError, UnsupportedError
        It is none, a damaged one, or one that this library does not read.
    StorageError
        It cannot be read.

    """
    return parse_frame(
        file.pread,
        file.size(),
        lambda at, limit: (file.read_fd, at, limit),
        sparse=True,
    )


def stored_ids(loaded: Loaded) -> set[int]:
    """Return the ids that an index names."""
    index = loaded.index
    if index.repeated_entry is not None and index.repeated_entry < 0:
        return set()
    idents: set[int] = set()
    for _, entries in index.slabs():
        idents.update(entry for entry in entries if entry >= 0)
    return idents


class RetainedIndex:
    """An index file under another name than the present one's.

    Parameters
    ----------
    path
        Its path.
    within
        The open directory that it is in, if that may have lost its name.

    """

    def __init__(self, path: str, *, within: FileBytes | None = None) -> None:
        self.path = path
        self._within = within
        self._file: FileBytes | None = None
        self._read = False
        self._loaded: Loaded | None = None
        self._ids: set[int] | None = None

    def _opened(self) -> FileBytes | None:
        if self._file is None:
            try:
                self._file = FileBytes.open(self.path, follow=False, within=self._within)
            except (OSError, SuperchunkError):
                return None
        return self._file

    @property
    def loaded(self) -> Loaded | None:
        """What it says; None if it is damaged, for nobody can read it."""
        if not self._read:
            self._loaded = self._load()
            self._read = True
        return self._loaded

    def _load(self) -> Loaded | None:
        file = self._opened()
        if file is None:
            return None
        try:
            loaded = load_index(file)
            if loaded.sealed is None:
                check_fingerprint(loaded)
        except StorageError:
            raise
        except SuperchunkError:
            return None
        return loaded

    @property
    def ids(self) -> set[int]:
        """The ids that it names."""
        if self._ids is None:
            self._ids = set() if self.loaded is None else stored_ids(self.loaded)
        return self._ids

    @property
    def on_disk(self) -> bool:
        """Whether all that it names was on the disk when it was committed; unknown of others' counts as yes."""
        loaded = self.loaded
        return loaded is not None and (loaded.sealed is False or loaded.record is None or loaded.record.last_synced > 0)

    def in_use(self) -> bool:
        """Return whether a snapshot references it.

        Raises
        ------
        StorageError
            The system refuses.

        """
        file = self._opened()
        return file is not None and is_share_locked(file)

    def remove(self) -> None:
        """Remove the file.

        Raises
        ------
        StorageError
            The system refuses.

        """
        remove_file(self.path)
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def exists(self) -> bool:
        """Return whether the file is there."""
        return os.path.lexists(self.path)
