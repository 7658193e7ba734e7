"""Compressed chunks where they are: their bytes, and what their headers say.

Source: docs/format/chunk.md, "Lazy chunks"; docs/format/sparse.md.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from superchunk import _engine
from superchunk._codec.special_values import is_marked_as_data
from superchunk._store.chunk_folder import chunk_id
from superchunk._store.chunk_sources import read_range
from superchunk.exceptions import StorageError
from superchunk.params import SpecialValue

__all__ = ["ChunkInfo", "chunk_bytes", "chunk_info", "lazy_chunk"]

_SPECIAL_VALUES: Final = tuple(SpecialValue)
_LAZY_NUMBERS: Final = 2**31
"""Chunk numbers that a lazy chunk can store."""


class ChunkInfo(NamedTuple):
    """What `SChunk.iterchunks_info` says about a chunk."""

    nchunk: int
    """Its number."""
    cratio: float
    """Uncompressed by compressed bytes."""
    special: SpecialValue
    """Whether all its items are one value."""
    repeated_value: bytes | None
    """That item, for `SpecialValue.VALUE`."""
    lazychunk: bytes
    """See `SChunk.get_lazychunk`."""


def chunk_info(source: _engine.Source, number: int) -> ChunkInfo:
    """Return what is known of chunk `number` without reading its data."""
    info = _engine.describe(source)
    special = SpecialValue.NOT_SPECIAL if is_marked_as_data(info) else _SPECIAL_VALUES[info.special]
    lazy = lazy_chunk(source, info, number)
    return ChunkInfo(number, info.nbytes / info.cbytes, special, info.repeated_value, lazy)


def lazy_chunk(source: _engine.Source, info: _engine.ChunkInfo, number: int) -> bytes:
    """Return what `get_lazychunk` says of chunk `number`, whose header says `info`."""
    if info.special:
        return chunk_bytes(source)
    if info.memcpyed and 4 * info.nblocks > info.cbytes:
        return chunk_bytes(source)[: info.header_len]
    if isinstance(source, tuple):
        file, at, _ = source
        if isinstance(file, tuple):  # of a sparse frame: both fields hold the file's number
            at = chunk_id(file[1])
            number = at if at < _LAZY_NUMBERS else number
        return _engine.lazy_chunk(source, number, at)
    return bytes(memoryview(source)[: info.header_len])


def chunk_bytes(source: _engine.Source) -> bytes:
    """Return a chunk, compressed, from where it is.

    Raises
    ------
    FormatError
        Its header is damaged.
    StorageError
        The file cannot be read, or ends too early.

    """
    cbytes = _engine.describe(source).cbytes
    if not isinstance(source, tuple):
        return bytes(memoryview(source)[:cbytes])
    chunk = read_range(source, cbytes)
    if len(chunk) < cbytes:
        msg = f"chunk at byte {source[1]} of the file: need {cbytes} bytes, got {len(chunk)}"
        raise StorageError(msg)
    return chunk
