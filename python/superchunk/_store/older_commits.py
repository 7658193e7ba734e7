"""Finding commits in a file by their records, when its header no longer leads to one.

Every commit leaves a record in its trailer, with a copy of the header that it wrote, and
nothing that it names is overwritten later.

Source: docs/format/integrity.md, "Recovery".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._format.b2nd import LAYERS, ArrayLayout
from superchunk._format.frame_header import FIXED_LEN
from superchunk._format.integrity import HEADER_LEN_AT, RECORD_MAGIC, CommitRecord, record_len
from superchunk._store.frame_loading import check_fingerprint, parse_frame
from superchunk._store.seals import SEALED, UNSEALED, stored_entries
from superchunk.exceptions import FormatError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from superchunk._engine import Source
    from superchunk._store.frame_loading import Loaded
    from superchunk._store.os_file import FileBytes

__all__ = ["commits", "newest_intact"]

_WINDOW = 2**20
_MAX_HEADER_LEN = 2**24
# A hostile file may hold as many records as it likes.
_MAX_CANDIDATES = 4096
_MAX_COMMITS = 64
_GLANCE = 64 * 2**20


def newest_intact(file: FileBytes, start: int, *, glance: bool = False) -> Loaded | None:
    """Return what the newest commit says about itself that is whole, chunks included, and can be opened.

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
    found = commits(
        lambda nbytes, at: file.pread(nbytes, start + at),
        size,
        lambda at, limit: (file.read_fd, start + at, limit),
        within=_GLANCE if glance else size,
    )
    for tried, loaded in enumerate(found):
        if tried >= (4 if glance else _MAX_COMMITS):
            break
        if _chunks_are_whole(file, start, loaded) and _can_be_an_array(loaded):
            return loaded
    return None


def commits(
    read: Callable[[int, int], bytes],
    size: int,
    index_at: Callable[[int, int], Source],
    *,
    within: int | None = None,
    sparse: bool = False,
) -> Iterator[Loaded]:
    """Yield what commits say about themselves whose metadata is whole, newest first.

    Their chunks are not read.

    Parameters
    ----------
    read, size, index_at, sparse
        As for `loading.parse_frame`.
    within
        How many of the last bytes to search, all if None.

    """
    # What a hostile file can make us read, bytes.
    budget = 4 * size + 64 * _WINDOW
    for at in _candidates(read, size, size if within is None else within):
        head = read(HEADER_LEN_AT + 4, at)
        header_len = int.from_bytes(head[HEADER_LEN_AT:], "little")
        if not FIXED_LEN < header_len <= min(_MAX_HEADER_LEN, at + header_len):
            continue
        budget -= header_len
        if budget < 0:
            return
        record = CommitRecord.from_bytes(read(record_len(header_len), at))
        if record is None:
            continue
        loaded = _commit_of(record, read, size, index_at, sparse=sparse)
        if loaded is not None:
            budget -= loaded.index_len + loaded.trailer_len
            yield loaded


def _candidates(read: Callable[[int, int], bytes], size: int, within: int) -> Iterator[int]:
    """Yield where a record may begin, last first."""
    found = 0
    overlap = len(RECORD_MAGIC) - 1
    end = size
    while end > max(size - within, 0):
        begin = max(end - _WINDOW, 0)
        raw = read(min(end + overlap, size) - begin, begin)
        at = raw.rfind(RECORD_MAGIC)
        while at >= 0:
            found += 1
            if found > _MAX_CANDIDATES:
                return
            yield begin + at
            at = raw.rfind(RECORD_MAGIC, 0, at + overlap)
        end = begin


def _commit_of(
    record: CommitRecord,
    read: Callable[[int, int], bytes],
    size: int,
    index_at: Callable[[int, int], Source],
    *,
    sparse: bool,
) -> Loaded | None:
    """Return the commit that `record` describes, if its metadata is whole."""
    header = record.header

    def under_header(nbytes: int, position: int) -> bytes:
        raw = read(nbytes, position)
        if position >= len(header):
            return raw
        return header[position : position + nbytes] + raw[len(header) - position :]

    try:
        loaded = parse_frame(under_header, size, index_at, sparse=sparse)
        if loaded.sealed is None:
            check_fingerprint(loaded)
            loaded.sealed = True
    except SuperchunkError:
        return None
    return loaded if loaded.sealed and loaded.record == record else None


def _can_be_an_array(loaded: Loaded) -> bool:
    """Return whether the layer of an array goes together with the chunks, or there is none.

    The first commit of an array has its shape, and not yet its chunks: nobody could open that.
    """
    name = next((one for one in LAYERS if one in loaded.layers), None)
    if name is None:
        return True
    at, length = loaded.layers[name]
    try:
        layout = ArrayLayout.from_bytes(loaded.raw_header[at : at + length])
        chunksize = loaded.header.chunksize if len(loaded.index) else 0
        layout.check(typesize=loaded.header.typesize, chunksize=chunksize, nchunks=len(loaded.index))
    except FormatError:
        return False
    return True


def _chunks_are_whole(file: FileBytes, start: int, loaded: Loaded) -> bool:
    """Return whether all chunks of a commit are as they were sealed, or never were."""
    header = loaded.header
    base = start + header.header_len
    sealed_from = loaded.record.sealed_from - header.header_len if loaded.record else 0
    for slab in stored_entries(loaded.index):
        sources = [(file.read_fd, base + entry, max(header.cbytes - entry, 0)) for _, entry in slab]
        for (_, entry), (status, _) in zip(slab, _engine.check_seals(sources), strict=True):
            if status != SEALED and (status != UNSEALED or entry >= sealed_from):
                return False
    return True
