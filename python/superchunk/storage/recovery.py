"""Finding the newest intact commit in a file whose header no longer leads to one.

Every commit leaves a record in front of its trailer, with a copy of the header that it
wrote, and nothing that it names is overwritten later.

Source: docs/format/integrity.md, "Recovery".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk.exceptions import SuperchunkError
from superchunk.frame.header import FIXED_LEN
from superchunk.frame.integrity import RECORD_MAGIC, CommitRecord, record_len
from superchunk.storage.loading import check_fingerprint, parse_frame
from superchunk.storage.seals import SEALED, UNSEALED, stored_entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from superchunk.storage.file import FileBytes
    from superchunk.storage.loading import Loaded

__all__ = ["newest_intact"]

_WINDOW = 2**20
_HEADER_LEN_AT = 16
_MAX_HEADER_LEN = 2**24
# A hostile file may hold as many records as it likes.
_MAX_CANDIDATES = 4096
_MAX_COMMITS = 64
_GLANCE = 64 * 2**20


def newest_intact(file: FileBytes, start: int, *, glance: bool = False) -> Loaded | None:
    """Return what the newest commit says about itself that is whole, chunks included.

    Parameters
    ----------
    file
        The file.
    start
        The frame's first byte in it.
    glance
        Look at the file's last 64 MiB only, and at no more than four commits.

    Raises
    ------
    StorageError
        The file cannot be read.

    """
    size = max(file.size() - start, 0)
    commits = 0
    for at in _candidates(file, start, size, _GLANCE if glance else size):
        loaded = _commit_at(file, start, size, at)
        if loaded is None:
            continue
        if _chunks_are_whole(file, start, loaded):
            return loaded
        commits += 1
        if commits >= (4 if glance else _MAX_COMMITS):
            break
    return None


def _candidates(file: FileBytes, start: int, size: int, within: int) -> Iterator[int]:
    """Yield where a record may begin, last first."""
    found = 0
    overlap = len(RECORD_MAGIC) - 1
    end = size
    while end > max(size - within, 0):
        begin = max(end - _WINDOW, 0)
        raw = file.pread(min(end + overlap, size) - begin, start + begin)
        at = raw.rfind(RECORD_MAGIC)
        while at >= 0:
            found += 1
            if found > _MAX_CANDIDATES:
                return
            yield begin + at
            at = raw.rfind(RECORD_MAGIC, 0, at + overlap)
        end = begin


def _commit_at(file: FileBytes, start: int, size: int, at: int) -> Loaded | None:
    """Return the commit whose record stands at byte `at`, if its metadata is whole."""
    head = file.pread(_HEADER_LEN_AT + 4, start + at)
    header_len = int.from_bytes(head[_HEADER_LEN_AT:], "little")
    length = record_len(header_len)
    if not FIXED_LEN < header_len <= min(_MAX_HEADER_LEN, at + header_len):
        return None
    record = CommitRecord.from_bytes(file.pread(length, start + at))
    if record is None:
        return None
    header = record.header

    def read(nbytes: int, position: int) -> bytes:
        raw = file.pread(nbytes, start + position)
        if position >= header_len:
            return raw
        return header[position : position + nbytes] + raw[header_len - position :]

    try:
        loaded = parse_frame(read, size, lambda where, limit: (file.read_fd, start + where, limit))
        if loaded.sealed is None:
            check_fingerprint(loaded)
            loaded = replace(loaded, sealed=True)
    except SuperchunkError:
        return None
    return loaded if loaded.sealed and loaded.record == record else None


def _chunks_are_whole(file: FileBytes, start: int, loaded: Loaded) -> bool:
    """Return whether no chunk of a commit is known to be damaged."""
    header = loaded.header
    base = start + header.header_len
    for slab in stored_entries(loaded.index):
        sources = [(file.read_fd, base + entry, max(header.cbytes - entry, 0)) for _, entry in slab]
        if any(status not in (SEALED, UNSEALED) for status, _ in _engine.check_seals(sources)):
            return False
    return True
