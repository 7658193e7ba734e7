"""Seals of the chunks in one file, compared after a loss of power; `copy_chunks` renews them after other writers.

Source: docs/format/integrity.md, "What a reader concludes" and "Recovery".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._store.frame_loading import check_fingerprint
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from superchunk._format.frame_index import Index
    from superchunk._format.integrity import CommitRecord
    from superchunk._store.frame_loading import Loaded

__all__ = [
    "ENTRIES_END",
    "SEALED",
    "STALE",
    "UNSEALED",
    "check_tail",
    "stored_entries",
]

SEALED, UNSEALED, STALE = 0, 1, 2
"""What `_engine.check_seals` says of a chunk that is there whole."""

ENTRIES_END = 2**61
"""Above every entry that a frame can have."""

_SECTOR = 512


def stored_entries(index: Index) -> Iterator[list[tuple[int, int]]]:
    """Yield the chunk numbers and entries of stored chunks, some thousand at a time."""
    repeated = index.repeated_entry
    if repeated is not None and repeated < 0:
        return
    for start, entries in index.slabs():
        yield [(nchunk, entry) for nchunk, entry in enumerate(entries, start) if entry >= 0]


def check_tail(fd: int, start: int, loaded: Loaded) -> None:
    """After a loss of power: compare the chunks that may not have reached the disk with their seals.

    Parameters
    ----------
    fd, start
        The file, and the frame's first byte in it.
    loaded
        What the frame says about itself; others did not write it.

    Raises
    ------
    FormatError
        A chunk of a commit that was never synced is not as it was written.

    """
    record, header = loaded.record, loaded.header
    if loaded.sealed is None:
        check_fingerprint(loaded)
    if record is None or record.last_synced >= header.frame_len:
        return
    _check_header(loaded, record)
    last_synced = max(record.last_synced, record.sealed_from) - header.header_len
    for slab in stored_entries(loaded.index):
        tail = [(nchunk, entry) for nchunk, entry in slab if entry >= last_synced]
        sources = [(fd, start + header.header_len + entry, max(header.cbytes - entry, 0)) for _, entry in tail]
        for (nchunk, entry), (status, _) in zip(tail, _engine.check_seals(sources), strict=True):
            if status != SEALED:
                raise FormatError(
                    f"chunk {nchunk}",
                    at=header.header_len + entry,
                    expected="the bytes that its seal tells",
                    found="others: a commit that was not synced did not reach the disk",
                )


def _check_header(loaded: Loaded, record: CommitRecord) -> None:
    """Compare what a disk does not write together with the fixed part: the rest of a long header."""
    found = loaded.raw_header
    for at in range(_SECTOR, len(found), _SECTOR):
        if found[at : at + _SECTOR] != record.header[at : at + _SECTOR]:
            raise FormatError(
                "frame header",
                at=at,
                expected="the bytes that the commit record tells",
                found="others: a commit that was not synced did not reach the disk",
            )
