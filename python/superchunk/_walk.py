"""Finding chunks without an index: one behind the other, and again after damage.

::

    | chunk | seal | chunk | seal | damage ... | chunk | seal | index chunk | record | trailer

A chunk tells its own size, so the next one is known; where none begins, the search
goes on at the next bytes that look like a chunk's header. A chunk counts if its seal
fits, or if it decodes completely. Chunks that are the contents of vlmetalayers, and index
chunks, are told apart. Bytes may be hostile: the work is bounded by the file's size.

Source: docs/format/chunk.md, "Header"; docs/format/integrity.md, "Chunk seal".
"""

from __future__ import annotations

import re
import struct
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from superchunk import _engine
from superchunk._anatomy import decode_in_pieces
from superchunk._array_layer import decode_chunk
from superchunk.exceptions import SuperchunkError, UnsupportedError
from superchunk.frame.index import ENTRY_LEN, MAX_CHUNKS, special_kind
from superchunk.frame.integrity import SEAL_LEN
from superchunk.frame.metalayers import read_table
from superchunk.frame.trailer import MAX_VLMETALAYERS_READ

if TYPE_CHECKING:
    from superchunk._anatomy import Bytes
    from superchunk._engine import ChunkInfo, Source
    from superchunk.frame.b2nd import ArrayLayout

__all__ = ["Budget", "FoundChunk", "Walk", "find_vlmeta", "is_whole", "walk"]

_CHUNK_MIN: Final = 32
_WINDOW: Final = 2**20
_HEADER: Final = re.compile(rb"[\x02-\x06][\x00-\x03].[\x01-\xff]", re.DOTALL)
_TRAILER: Final = b"\x94\x01\x93\xcd"
_VLMETA_CONTENT: Final = struct.Struct(">BI")
_BIN32: Final = 0xC6
_MOST_TRAILERS: Final = 256


@dataclass(slots=True)
class Budget:
    """What may still be done for a file, bytes to hash or to decode."""

    left: int

    @classmethod
    def of(cls, size: int) -> Budget:
        """Return what a file of `size` bytes has earned."""
        return cls(256 * size + 2**30)

    def take(self, nbytes: int) -> bool:
        """Return whether `nbytes` more may be worked on, and count them."""
        self.left -= nbytes
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk that stands somewhere in a file."""

    position: int
    """Its first byte, counted from the frame's."""
    info: ChunkInfo
    """What its header says."""
    sealed: bool
    """Whether its seal fits."""


@dataclass(slots=True)
class Walk:
    """What a walk has met, in the order of the file."""

    chunks: list[FoundChunk] = field(default_factory=list)
    """Chunks of data."""
    indexes: list[array[int]] = field(default_factory=list)
    """The entries of index chunks that name chunks of this walk, counted from `base`."""
    base: int = 0
    """Where the first chunk begins, or where the header ends."""


def is_whole(
    source: Source, info: ChunkInfo, status: int, budget: Budget, layout: ArrayLayout | None = None
) -> bool | None:
    """Return whether a chunk is one, of which `check_seals` said `status`; None: who knows.

    It is, if its seal fits or if it decodes; only somebody with its codec can know that.
    """
    if status == 0:
        return True
    if status > 2 or not budget.take(info.nbytes):  # noqa: PLR2004 - no seal, or another one's
        return False
    try:
        decode_chunk(source, layout, itemsize=info.typesize)
    except UnsupportedError:
        return None
    except SuperchunkError:
        return False
    return True


def walk(
    place: Bytes,
    start: int,
    budget: Budget,
    *,
    stop: int | None = None,
    exact: bool = True,
    layout: ArrayLayout | None = None,
) -> Walk:
    """Return the chunks from byte `start` on.

    Parameters
    ----------
    place
        Where the frame is.
    start
        Where the first chunk should begin.
    budget
        What may be done.
    stop
        Where to end, the file's end if None.
    exact
        Positions in an index count from `start`; otherwise from the first chunk.
    layout
        Of the array that the chunks are of: some codecs and filters go by the shape of its blocks.

    Raises
    ------
    StorageError
        The file cannot be read.

    """
    found = Walk(base=start)
    end = place.size if stop is None else min(stop, place.size)
    starts: set[int] = set()
    at = start
    while 0 <= at <= end - _CHUNK_MIN:
        chunk = _chunk_at(place, at, end, budget, layout)
        if budget.left < 0:
            break
        if chunk is None:
            at = _resume(place, at + 1, end)
            continue
        if not starts and not exact:
            found.base = at
        entries = None if chunk.sealed else _entries_of(place, chunk, found.base, starts)
        if entries is not None:
            found.indexes.append(entries)
        elif not _is_vlmeta(place, chunk):
            found.chunks.append(chunk)
            starts.add(at)
        at += chunk.info.cbytes + (SEAL_LEN if chunk.sealed else 0)
    return found


def _chunk_at(place: Bytes, at: int, end: int, budget: Budget, layout: ArrayLayout | None) -> FoundChunk | None:
    """Return the chunk at byte `at`, if there is one."""
    source = place.source(at, end - at)
    try:
        info = _engine.describe(source)
    except SuperchunkError:
        return None
    if info.cbytes < _CHUNK_MIN or info.nbytes <= 0 or info.cbytes > end - at or not budget.take(info.cbytes):
        return None
    status = _engine.check_seals([source])[0][0]
    if info.special not in (0, 3):  # no writer stores these
        return None
    return FoundChunk(at, info, status == 0) if is_whole(source, info, status, budget, layout) else None


def _resume(place: Bytes, at: int, end: int) -> int:
    """Return where the next chunk may begin, -1 if nowhere."""
    overlap = 3
    while at <= end - _CHUNK_MIN:
        raw = place.read(min(_WINDOW, end - at), at)
        match = _HEADER.search(raw)
        if match is not None:
            return at + match.start()
        at += max(len(raw) - overlap, 1)
    return -1


def _entries_of(place: Bytes, chunk: FoundChunk, base: int, starts: set[int]) -> array[int] | None:
    """Return the entries if the chunk is an index of chunks that the walk has met."""
    info = chunk.info
    if info.typesize != ENTRY_LEN or info.nbytes % ENTRY_LEN or info.nbytes > ENTRY_LEN * min(MAX_CHUNKS, 2**24):
        return None
    entries = array("q")
    try:
        entries.frombytes(_engine.decompress(place.source(chunk.position, info.cbytes), itemsize=ENTRY_LEN))
        for number, entry in enumerate(entries):
            if entry < 0:
                special_kind(entry, number)
            elif base + entry not in starts:
                return None
    except SuperchunkError:
        return None
    return entries


def _is_vlmeta(place: Bytes, chunk: FoundChunk) -> bool:
    """Return whether the chunk is the content of a vlmetalayer."""
    if chunk.sealed or chunk.position < _VLMETA_CONTENT.size:
        return False
    before = place.read(_VLMETA_CONTENT.size, chunk.position - _VLMETA_CONTENT.size)
    return _VLMETA_CONTENT.unpack(before) == (_BIN32, chunk.info.cbytes)


def find_vlmeta(place: Bytes) -> dict[str, bytes] | None:
    """Return the vlmetalayers of the last trailer whose table can be read, wherever it is.

    Raises
    ------
    StorageError
        The file cannot be read.

    """
    end, tried = place.size, 0
    while end > 0 and tried < _MOST_TRAILERS:
        begin = max(end - _WINDOW, 0)
        raw = place.read(min(end + len(_TRAILER) - 1, place.size) - begin, begin)
        at = raw.rfind(_TRAILER)
        while at >= 0 and tried < _MOST_TRAILERS:
            tried += 1
            layers = _vlmeta_at(place, begin + at)
            if layers is not None:
                return layers
            at = raw.rfind(_TRAILER, 0, at + len(_TRAILER) - 1)
        end = begin
    return None


def _vlmeta_at(place: Bytes, at: int) -> dict[str, bytes] | None:
    """Return the vlmetalayers of the trailer that may begin at byte `at`."""
    raw = place.read(min(place.size - at, 64 * _WINDOW), at)
    try:
        spans = read_table(raw, 6, at, "vlmetalayer", MAX_VLMETALAYERS_READ)
        layers = {name: raw[begin : begin + length] for name, (begin, length) in spans.items()}
        for content in layers.values():
            decode_in_pieces(content)
    except UnsupportedError:
        return layers
    except SuperchunkError:
        return None
    return layers
