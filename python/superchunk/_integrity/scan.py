"""Finding chunks without an index: one behind the other, and again after damage.

::

    | chunk | seal | chunk | seal | damage ... | chunk | seal | index chunk | record | trailer

A chunk's header has its size, which gives the offset of the next chunk. Where no chunk begins, the search continues at
the next bytes that can be a chunk's header. A chunk counts if its seal fits, or if it decodes completely. Chunks that
are the contents of vlmetalayers, and index chunks, are distinguished. Bytes may be hostile: the work is bounded by the
file's size.

Source: docs/format/chunk.md, "Header"; docs/format/integrity.md, "Chunk seal".
"""

from __future__ import annotations

import re
import struct
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from superchunk import _engine
from superchunk._format.frame_index import CHUNK_MIN, ENTRY_LEN, special_kind
from superchunk._format.integrity import SEAL_LEN
from superchunk._format.metalayers import read_table
from superchunk._format.trailer import MAX_VLMETALAYERS_READ, TAIL_LEN
from superchunk._integrity.array_layer import decode_chunk
from superchunk._integrity.budget import most_entries
from superchunk._integrity.inspect_frame import MIN_HEADER_LEN, vlmeta_problem
from superchunk.exceptions import SuperchunkError, UnsupportedError

if TYPE_CHECKING:
    from superchunk._engine import ChunkInfo, Source
    from superchunk._format.b2nd import ArrayLayout
    from superchunk._integrity.budget import Budget
    from superchunk._integrity.inspect_frame import Bytes

__all__ = ["NOT_DECODED", "NO_CODEC", "FoundChunk", "Judgement", "Scan", "find_vlmeta", "judge", "scan"]

NOT_DECODED: Final = "it has no seal, and was not decoded: that would exceed the work budget of a file of this size"
"""Why a chunk that is where it should is doubtful."""
NO_CODEC: Final = "it cannot be decoded here"
"""The same."""

_WINDOW: Final = 2**20
_HEADER: Final = re.compile(rb"[\x02-\x06][\x00-\x03].[\x01-\xff]", re.DOTALL)
_TRAILER: Final = b"\x94\x01\x93\xcd"
_VLMETA_CONTENT: Final = struct.Struct(">BI")
_BIN32: Final = 0xC6
_UINT32: Final = b"\xce"
_MOST_TRAILERS: Final = 256
_MOST_BASES: Final = 64


Judgement = Literal["whole", "damaged", "not decoded", "no codec"]
"""What is known of a chunk: its seal fits or it decodes; neither; nobody tried; nobody here can."""


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk that is somewhere in a file."""

    position: int
    """Its first byte, counted from the frame's."""
    info: ChunkInfo
    """What its header says."""
    sealed: bool
    """Whether its seal fits."""
    judgement: Judgement
    """What is known of it; it is not ``damaged``."""


@dataclass(slots=True)
class Scan:
    """What a scan has found, in the order of the file."""

    chunks: list[FoundChunk] = field(default_factory=list)
    """Chunks of data."""
    indexes: list[tuple[int, array[int]]] = field(default_factory=list)
    """Where index chunks begin that name chunks of this scan, and their entries, counted from `base`."""
    base: int = 0
    """Where the first chunk begins, or where the header ends."""
    due: set[int] = field(default_factory=set)
    """Where one has to begin, for another one ends there."""


def judge(source: Source, info: ChunkInfo, status: int, budget: Budget, layout: ArrayLayout | None = None) -> Judgement:
    """Return what is known of a chunk of which `check_seals` said `status`."""
    if status == 0:
        return "whole"
    if status > 2:  # no seal, or another one's
        return "damaged"
    try:
        return "whole" if decode_chunk(source, layout, itemsize=info.typesize, budget=budget) else "not decoded"
    except UnsupportedError:
        return "no codec"
    except SuperchunkError:
        return "damaged"


def scan(
    place: Bytes,
    start: int,
    budget: Budget,
    *,
    stop: int | None = None,
    exact: bool = True,
    layout: ArrayLayout | None = None,
) -> Scan:
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
    found = Scan(base=start)
    end = place.size if stop is None else min(stop, place.size)
    starts: set[int] = set()
    at = min(start, MIN_HEADER_LEN)  # the length of the header may be damaged
    found.due.update((at, start))
    while 0 <= at <= end - CHUNK_MIN:
        chunk = _chunk_at(place, at, end, budget, layout, expected=at in found.due)
        if chunk is None:
            length = _trailer_len(place, at, end) if at in found.due else 0
            if length:
                found.due.discard(at)
                at += length
                found.due.add(at)
            else:
                following = _resume(place, at + 1, end)
                at = start if at < start and not 0 <= following < start else following
            continue
        if not starts and not exact:
            found.base = at
        found.due.discard(at)
        entries = None if chunk.sealed else _entries_of(place, chunk, found, starts, budget)
        if entries is not None:
            found.indexes.append((at, entries))
        elif not _is_vlmeta(place, chunk, found):
            found.chunks.append(chunk)
            starts.add(at)
        behind = at + chunk.info.cbytes + (SEAL_LEN if chunk.sealed else 0)
        found.due.add(behind)
        # Where nothing follows, its length may be damaged, and others stand in what it claims.
        at = behind if chunk.sealed or _goes_on(place, behind, end) else _resume(place, at + CHUNK_MIN, end)
    return found


def _goes_on(place: Bytes, at: int, end: int) -> bool:
    """Return whether at byte `at` there is what may stand behind a chunk: another one, a trailer, or the end."""
    if at > end - CHUNK_MIN or place.read(len(_TRAILER), at) == _TRAILER:
        return True
    try:
        _engine.describe(place.source(at, end - at))
    except SuperchunkError:
        return False
    return True


def _chunk_at(
    place: Bytes, at: int, end: int, budget: Budget, layout: ArrayLayout | None, *, expected: bool
) -> FoundChunk | None:
    """Return the chunk at byte `at`, if there is one; where one is `expected`, one that nobody may decode counts."""
    source = place.source(at, end - at)
    try:
        info = _engine.describe(source)
    except SuperchunkError:
        return None
    if info.cbytes < CHUNK_MIN or info.nbytes <= 0 or info.cbytes > end - at or not budget.may_read(info.cbytes):
        return None
    if info.special not in (0, 3):  # no writer stores these
        return None
    status = _engine.check_seals([source])[0][0]
    judgement = judge(source, info, status, budget, layout)
    if judgement == "damaged" or (judgement != "whole" and not expected):
        return None
    return FoundChunk(at, info, status == 0, judgement)


def _trailer_len(place: Bytes, at: int, end: int) -> int:
    """Return the bytes of the trailer at byte `at`, which an older commit left there; 0 if there is none."""
    raw = place.read(min(_WINDOW, end - at), at) if place.read(len(_TRAILER), at) == _TRAILER else b""
    tail = raw.find(_UINT32)
    while tail >= 0:
        length = int.from_bytes(raw[tail + 1 : tail + 5], "big")
        if length == tail + TAIL_LEN:
            return length
        tail = raw.find(_UINT32, tail + 1)
    return 0


def _resume(place: Bytes, at: int, end: int) -> int:
    """Return where the next chunk may begin, -1 if nowhere."""
    overlap = 3
    while at <= end - CHUNK_MIN:
        raw = place.read(min(_WINDOW, end - at), at)
        match = _HEADER.search(raw)
        if match is not None:
            return at + match.start()
        at += max(len(raw) - overlap, 1)
    return -1


def _entries_of(place: Bytes, chunk: FoundChunk, found: Scan, starts: set[int], budget: Budget) -> array[int] | None:
    """Return the entries if the chunk is an index of chunks, half of which the scan has found."""
    info = chunk.info
    if info.typesize != ENTRY_LEN or info.nbytes % ENTRY_LEN or info.vlblocks:
        return None
    if info.nbytes > ENTRY_LEN * most_entries(info.cbytes) or not budget.may_decode(info.nbytes):
        return None
    entries = array("q")
    try:
        entries.frombytes(_engine.decompress(place.source(chunk.position, info.cbytes), itemsize=ENTRY_LEN))
        for number, entry in enumerate(entries):
            if entry < 0:
                special_kind(entry, number)
    except SuperchunkError:
        return None
    stored = [entry for entry in entries if entry >= 0]
    if len(set(stored)) < len(stored):
        return None
    first = min(stored, default=0)
    for base in dict.fromkeys((found.base, *(at - first for at in sorted(starts)[:_MOST_BASES]))):
        matching = sum(base + entry in starts for entry in stored)
        if 2 * matching >= len(stored) and max(stored, default=-1) < chunk.position - base:
            found.base = base
            return entries
    return None


def _is_vlmeta(place: Bytes, chunk: FoundChunk, found: Scan) -> bool:
    """Return whether the chunk is the content of a vlmetalayer."""
    if chunk.sealed or chunk.position < _VLMETA_CONTENT.size:
        return False
    before = place.read(_VLMETA_CONTENT.size, chunk.position - _VLMETA_CONTENT.size)
    same = sum(map(int.__eq__, before, _VLMETA_CONTENT.pack(_BIN32, chunk.info.cbytes)))
    if same < len(before) - 1:
        return False
    if same == len(before):
        return True
    # One byte before it is damaged: then no chunk is between it and the start of a trailer.
    begin = max(chunk.position - _WINDOW, 0)
    trailer = place.read(chunk.position - begin, begin).rfind(_TRAILER)
    last = found.chunks[-1] if found.chunks else None
    return trailer >= 0 and (last is None or last.position + last.info.cbytes <= begin + trailer)


def find_vlmeta(place: Bytes, budget: Budget) -> dict[str, bytes] | None:
    """Return those vlmetalayers that are whole of the last trailer whose table can be read, wherever it is.

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
            layers = _vlmeta_at(place, begin + at, budget)
            if layers is not None:
                return layers
            at = raw.rfind(_TRAILER, 0, at + len(_TRAILER) - 1)
        end = begin
    return None


def _vlmeta_at(place: Bytes, at: int, budget: Budget) -> dict[str, bytes] | None:
    """Return the vlmetalayers of the trailer that may begin at byte `at`."""
    raw = place.read(min(place.size - at, 64 * _WINDOW), at)
    if not budget.may_read(len(raw)):
        return None
    try:
        spans = read_table(raw, 6, at, "vlmetalayer", MAX_VLMETALAYERS_READ, lenient=True)
    except SuperchunkError:
        return None
    layers = {name: raw[begin : begin + length] for name, (begin, length) in spans.items()}
    return {name: content for name, content in layers.items() if not vlmeta_problem(content, budget)}
