"""A sparse frame as its files say: the present index file and the last synced one, and the chunk files they name.

A chunk file is named in the index by its number. How the frame is followed and changed is in `sparse_frame`.

Source: docs/format/sparse.md, "Index file", "Commits" and "Readers".
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._format.frame_header import FIXED_LEN
from superchunk._format.frame_index import special_kind
from superchunk._store.chunk_folder import INDEX_NAME, LAST_SYNCED_NAME, chunk_name, joined, place_in
from superchunk._store.frame_loading import check_fingerprint
from superchunk._store.os_file import FileBytes, after_power_loss
from superchunk._store.retained_indexes import RetainedIndex, load_index, stored_ids
from superchunk._store.seals import SEALED, UNSEALED, stored_entries
from superchunk._store.snapshot_locks import lock_shared
from superchunk.exceptions import FormatError, StorageError, SuperchunkError

if TYPE_CHECKING:
    from superchunk._store.frame_loading import Loaded

__all__ = [
    "absolute",
    "checked_chunks",
    "is_present",
    "last_synced_frame",
    "read_present",
    "whole_chunks",
]

# Pauses, in seconds, while C-Blosc2 may be between two of its writes.
_RETRIES = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)
_MOST_MOVES = 1000


def is_present(file: FileBytes, folder: FileBytes) -> bool:
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
                if same and (not pinned or is_present(file, folder)):
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
        Ids that are not read.

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
