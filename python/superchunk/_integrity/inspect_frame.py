r"""Finding the parts of a frame of which any may be damaged, and which of them are.

::

    header | chunks | index chunk | slack | trailer with the commit record
       \________________________ copy ________________________/   |
       \_______________________ fingerprint _____________________/

`loading.parse_frame` gives up at the first thing that is wrong, as who reads data should. No damage ends the search. A
header that does not fit is replaced by its copy in the commit record, if the fingerprint fits with the copy. The
fingerprint then shows which of the two is damaged. Chunks are the work of `check_chunk`.

Source: docs/format/integrity.md; docs/format/cframe.md, "Layout".
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from superchunk import _engine
from superchunk._format.frame_header import FIXED_LEN, MAGIC, MIN_TRAILER_LEN, FrameHeader
from superchunk._format.frame_index import ENTRY_LEN, Index, located
from superchunk._format.integrity import (
    FINGERPRINT_LEN,
    FINGERPRINT_TYPE,
    CommitRecord,
    fingerprint,
    masked_header,
    record_len,
)
from superchunk._format.legacy_header import HEAD_LEN, is_legacy
from superchunk._format.metalayers import MAX_METALAYERS, PLACEHOLDERS, read_metalayers
from superchunk._format.trailer import TAIL_LEN, Trailer, trailer_len
from superchunk._integrity.budget import Budget
from superchunk._integrity.report import PartReport
from superchunk._store.older_commits import commits
from superchunk.exceptions import FormatError, SuperchunkError, TruncatedError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from superchunk._engine import Source
    from superchunk._integrity.report import PartStatus
    from superchunk._store.frame_loading import Loaded

__all__ = [
    "MIN_HEADER_LEN",
    "Bytes",
    "FrameInspection",
    "begins_like_a_frame",
    "correct_index",
    "decode_in_pieces",
    "examine",
    "looks_like_a_frame",
    "of_commit",
    "vlmeta_problem",
]

MIN_HEADER_LEN: Final = FIXED_LEN + 10
"""Bytes of a header without fixed metalayers."""

_HEAD: Final = 4096
_KEEP_INDEX: Final = 32 * 1024
_PIECE: Final = 2**23
_HASH_LEN: Final = 8
_TYPE_AT: Final = FINGERPRINT_LEN + 1
# The header's fields, markers included, by their first bytes.
_FIELDS: Final = (
    (0x00, "magic"),
    (0x0A, "header_len"),
    (0x0F, "frame_len"),
    (0x18, "marker of flags"),
    (0x19, "general_flags"),
    (0x1A, "frame_type"),
    (0x1B, "codec_flags"),
    (0x1C, "other_flags"),
    (0x1D, "nbytes"),
    (0x26, "cbytes"),
    (0x2F, "typesize"),
    (0x34, "blocksize"),
    (0x39, "chunksize"),
    (0x3E, "threads"),
    (0x44, "has_vlmeta"),
    (0x45, "filter slots"),
    (0x47, "filters"),
    (0x4D, "udcodec"),
    (0x4E, "codec_meta"),
    (0x4F, "filters_meta"),
    (0x55, "other_flags2"),
    (0x56, "reserved"),
)
_MARKERS: Final = (
    (0x0A, 0xD2), (0x0F, 0xCF), (0x18, 0xA4), (0x1D, 0xD3), (0x26, 0xD3), (0x2F, 0xD2),
    (0x34, 0xD2), (0x39, 0xD2), (0x3E, 0xD1), (0x41, 0xD1), (0x45, 0xD8),
)  # fmt: skip
_BIG: Final = 2**20
_INDEX_CHUNK: Final = re.compile(rb"[\x02-\x06][\x00-\x03].\x08", re.DOTALL)
"""How a chunk of items of 8 bytes begins."""
_CHUNK_HEADER_LEN: Final = 32
_TRAILER: Final = b"\x94\x01\x93\xcd"
_VERSIONS: Final = range(2, 7)
_MOST_LZ_VERSION: Final = 3
_MOST_TRIED: Final = 16
_MOST_TRIED_BYTES: Final = 2**20
"""Bytes of an index chunk times those under the fingerprint, for which it is looked which byte of it is damaged."""
_READABLE: Final = 7
"""What index and trailer are worth that can both be read."""
_SAYING_NOTHING: Final = {
    0x1E: bytes(8),  # nbytes
    0x27: bytes(8),  # cbytes
    0x30: b"\0\0\0\1",  # typesize
    0x3A: bytes(4),  # chunksize
    0x46: b"\6",  # filter slots
}
"""What is put in the place of numbers in a header that cannot be."""
_SAME_IN_ALL: Final = dict(enumerate(b"\x9e\xa8b2frame\x00\xd2")) | {0x0F: 0xCF, 0x18: 0xA4}
"""Bytes of a header that are the same in every frame."""
_TAIL_TYPE_AT: Final = TAIL_LEN - FINGERPRINT_LEN - 2
_TAIL_TYPE_MARKER: Final = 0xD8


class Bytes(NamedTuple):
    """Where a frame is, or the index file of a sparse one; byte 0 is its first."""

    read: Callable[[int, int], bytes]
    """Called with a number of bytes and a position."""
    size: int
    """Bytes that there are."""
    source: Callable[[int, int], Source]
    """Called with a position and a limit."""
    sparse: bool = False
    """Whether this is the index file of a sparse frame."""


@dataclass(slots=True, kw_only=True)
class _Head:
    """A header that can be read."""

    fields: FrameHeader
    raw: bytes
    layers: dict[str, tuple[int, int]]


@dataclass(slots=True, kw_only=True)
class _Rest:
    """What a header leads to."""

    trailer: Trailer | None = None
    raw_trailer: bytes = b""
    trailer_at: int = 0
    trailer_error: str = ""
    index: Index | None = None
    index_at: int = 0
    index_len: int = 0
    index_error: str = ""
    record: CommitRecord | None = None
    record_is_damaged: bool = False
    """Whether `record` is made anew from the header, and all fits with that."""
    type_is_lost: bool = False
    """Whether there is a commit record, or space for one, and no fingerprint of type 3 that goes with it."""
    found: bytes = b""
    """The fingerprint as it should be, of type 3."""

    @property
    def fits(self) -> bool:
        """Whether all bytes are as a commit wrote them."""
        return self.says_fingerprint and self.trailer is not None and self.found == self.trailer.fingerprint

    @property
    def worth(self) -> int:
        """How much of it can be read."""
        return 4 * (not self.index_error) + 2 * (self.index is not None) + (not self.trailer_error)

    @property
    def says_fingerprint(self) -> bool:
        """Whether there is a fingerprint to compare with."""
        return self.trailer is not None and self.trailer.fingerprint_type == FINGERPRINT_TYPE

    @property
    def type_is_damaged(self) -> bool:
        """Whether the fingerprint fits, once its type is 3 again."""
        return (
            self.trailer is not None
            and not self.says_fingerprint
            and bool(self.found)
            and self.found == self.trailer.fingerprint
        )


def _has_record_space(trailer: Trailer, length: int, header_len: int) -> bool:
    """Whether a trailer of `length` bytes has exactly the space of a commit record: writers drop both or none."""
    return length != MIN_TRAILER_LEN and length - len(trailer.to_bytes()) == record_len(header_len)


@dataclass(slots=True, kw_only=True)
class FrameInspection:
    """What a frame consists of, as far as it could be found out."""

    parts: list[PartReport] = field(default_factory=list)
    """Everything but the chunks, in the order of the frame."""
    header: FrameHeader | None = None
    """The header, or what it must have been."""
    raw_header: bytes = b""
    """All of it."""
    layers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Where the contents of fixed metalayers are."""
    index: Index | None = None
    """The index, or that of an older commit."""
    index_is_old: bool = False
    """Whether it is that of an older commit, or may be."""
    trailer: Trailer | None = None
    """The trailer."""
    data_len: int = 0
    """Bytes of the data section."""
    overhead: int = 0
    """Bytes of all that is neither chunk nor seal nor dead."""
    lost: bool = False
    """Whether header, index and trailer do not lead to each other, so that chunks may be where no index leads."""
    recorded: bytes = b""
    """The header as the commit record has it, if there is one."""
    sealed_from: int | None = None
    """Chunks with this entry or a larger one were written with a seal, if that is known."""
    fingerprinted: bool = False
    """Whether the frame has a fingerprint, so that its seals count."""
    proven: bool = False
    """Whether header, index and trailer are as they were written."""


def examine(place: Bytes, budget: Budget | None = None) -> FrameInspection:
    """Return what the frame at `place` consists of, and what is wrong with it.

    Parameters
    ----------
    place
        The frame, or the index file of a sparse one.
    budget
        What may be done for its vlmetalayers; None: the budget of its size.

    Raises
    ------
    StorageError
        It cannot be read.

    """
    budget = budget or Budget.of(place.size)
    own, error = _read_head(place, place.read(min(place.size, _HEAD), 0))
    rest = None if own is None else _rest(place, own)
    if own is not None and rest is not None:
        if rest.fits or rest.type_is_damaged or _only_foreign(rest):
            return _report(place, own, rest, own.raw, budget)
        if rest.record is not None and rest.record.header != own.raw:
            copy, _ = _read_head(place, rest.record.header)
            copy_rest = None if copy is None else _rest(place, copy)
            if copy is not None and copy_rest is not None and copy_rest.fits:
                raw = copy.raw if _is_pending(rest.record, own.raw) else own.raw
                return _report(place, copy, copy_rest, raw, budget)
    newest = next(commits(place.read, place.size, place.source, sparse=place.sparse), None)
    copied = own is not None and rest is not None and rest.record is not None and rest.record.header == own.raw
    if newest is not None and not copied and (own is None or _same_commit(own.raw, newest.raw_header)):
        found = _Head(fields=newest.header, raw=newest.raw_header, layers=newest.layers)
        raw = place.read(len(found.raw), 0)
        report = _report(place, found, _rest(place, found), raw, budget, error)
        report.index_is_old = own is None and newest.header.frame_len < place.size
        return report
    mended = _mended(place, -1 if rest is None else rest.worth, least=0 if newest is None else _READABLE)
    if mended is not None:
        found, of_found = mended
        raw = place.read(min(len(found.raw), place.size), 0)
        return _report(place, found, of_found, raw, budget, error)
    if own is None or rest is None:
        return FrameInspection(parts=[_part("header", "damaged", 0, 0, error)], lost=True)
    older = newest if newest is not None and newest.header.nbytes else None
    return _report(place, own, rest, own.raw, budget, older=older)


def of_commit(place: Bytes, commit: Loaded, budget: Budget) -> FrameInspection:
    """Return what the frame at `place` consisted of with an older commit that is whole."""
    head = _Head(fields=commit.header, raw=commit.raw_header, layers=commit.layers)
    return _report(place, head, _rest(place, head), head.raw, budget)


def correct_index(place: Bytes, found: FrameInspection) -> bool:
    """Put that byte of a small index chunk right with which the fingerprint fits; return whether there is one.

    No other change of one byte fits: the fingerprint has 128 bits.
    """
    if found.header is None or found.proven or found.index_is_old or not found.fingerprinted:
        return False
    head = _Head(fields=found.header, raw=found.raw_header, layers=found.layers)
    rest = _rest(place, head)
    if rest.trailer is None or rest.index is None or rest.index_error or not rest.says_fingerprint:
        return False
    start = len(head.raw)
    whole = bytearray(masked_header(head.raw, head.layers))
    whole += place.read(rest.index_len, rest.index_at) + rest.raw_trailer[:-FINGERPRINT_LEN]
    if rest.index_len * len(whole) > _MOST_TRIED_BYTES:
        return False
    for at in range(start, start + rest.index_len):
        was = whole[at]
        for value in range(256):
            whole[at] = value
            if _engine.hash128([whole]) != rest.trailer.fingerprint:
                continue
            chunk = bytes(whole[start : start + rest.index_len])
            found.index = Index.from_chunk(chunk, _engine.describe(chunk), nchunks=-1, at=rest.index_at)
            found.proven = True
            return True
        whole[at] = was
    return False


def _mended(place: Bytes, worth: int, *, least: int) -> tuple[_Head, _Rest] | None:
    """Return a header of which what cannot be is put right, and what it leads to, if that is worth more and enough.

    What is in a header more than once, or elsewhere, tells: its constant bytes, its length, the frame's length, and
    where an index chunk is. A number that cannot be becomes one that says nothing, so that the chunks tell.
    """
    raw = place.read(min(place.size, _BIG), 0)
    if len(raw) < FIXED_LEN or 2 * sum(byte == raw[at] for at, byte in _SAME_IN_ALL.items()) < len(_SAME_IN_ALL):
        return None
    if is_legacy(raw[:HEAD_LEN]) and sum(raw[at] != marker for at, marker in _MARKERS) > 1:
        return None
    best: tuple[_Head, _Rest] | None = None
    most: tuple[int, ...] = (worth, 1, MAX_METALAYERS)
    for frame_len in dict.fromkeys((int.from_bytes(raw[0x10:0x18], "big"), place.size)):
        stand_there = list(_lengths_there(raw))
        for lengths in dict.fromkeys((*stand_there, *_lengths_by_index(place, raw, frame_len))):
            head = _sane(place, raw, frame_len, *lengths)
            if head is None:
                continue
            rest = _rest(place, head)
            rank = (rest.worth, _leads_to_chunks(place, head, rest), len(head.layers))
            needed = least if lengths in stand_there else _READABLE
            if lengths not in stand_there and _is_older(place, rest):
                continue
            if rank > most and rest.worth >= needed:
                best, most = (head, rest), rank
    return best


def _lengths_there(raw: bytes) -> Iterator[tuple[int, int]]:
    """Yield the lengths of the header, as it is there and as its metalayers give it, with that of the data."""
    cbytes = int.from_bytes(raw[0x27:0x2F], "big")
    yield int.from_bytes(raw[0x0B:0x0F], "big"), cbytes
    stated = _stated_len(raw)
    if stated:
        yield stated, cbytes


def _lengths_by_index(place: Bytes, raw: bytes, frame_len: int) -> Iterator[tuple[int, int]]:
    """Yield the lengths of the header and of the data with which something that looks like an index chunk is one."""
    (header_len, cbytes), stated = next(_lengths_there(raw)), _stated_len(raw)
    before = 0 if place.sparse else cbytes
    at = header_len + before
    if header_len == stated and at + _CHUNK_HEADER_LEN <= place.size and _was_index(place.read(_CHUNK_HEADER_LEN, at)):
        return
    for at in _like_indexes(place, frame_len):
        if not place.sparse:
            yield stated or header_len, at - (stated or header_len)
        if header_len != stated:
            yield at - before, cbytes


def _was_index(raw: bytes) -> bool:
    """Return whether these bytes are the header of an index chunk, of which one may be damaged."""
    fields = raw[0] in _VERSIONS, raw[1] <= _MOST_LZ_VERSION, raw[3] == ENTRY_LEN, raw[4] % ENTRY_LEN == 0
    return sum(fields) >= len(fields) - 1


def _like_indexes(place: Bytes, frame_len: int) -> Iterator[int]:
    """Yield where something stands that looks like an index chunk, the last first."""
    end = min(frame_len, place.size)
    begin = max(end - _BIG, MIN_HEADER_LEN)
    for match in list(_INDEX_CHUNK.finditer(place.read(max(end - begin, 0), begin)))[: -_MOST_TRIED - 1 : -1]:
        at = begin + match.start()
        with suppress(SuperchunkError):
            info = _engine.describe(place.source(at, end - at))
            if info.nbytes > 0 and info.nbytes % ENTRY_LEN == 0 and at + info.cbytes < end:
                yield at


def _is_older(place: Bytes, rest: _Rest) -> bool:
    """Return whether the trailer of an older commit is between an index and the trailer."""
    begin = rest.index_at + rest.index_len
    between = place.read(max(min(rest.trailer_at - begin, _BIG), 0), begin)
    return _TRAILER in between


def _leads_to_chunks(place: Bytes, head: _Head, rest: _Rest) -> bool:
    """Return whether chunks begin at half or more of the first places that an index names."""
    if rest.index is None or place.sparse:
        return rest.index is not None
    entries = [entry for entry in rest.index.slice(0, min(len(rest.index), _MOST_TRIED)) if entry >= 0]
    matching = 0
    for entry in entries:
        at = head.fields.header_len + entry
        with suppress(SuperchunkError):
            _engine.describe(place.source(at, max(place.size - at, 0)))
            matching += 1
    return 2 * matching >= len(entries)


def _stated_len(raw: bytes) -> int:
    """Return the length of a header as its metalayers give it, 0 if they do not."""
    try:
        return max([at + length for at, length in read_metalayers(raw).values()], default=MIN_HEADER_LEN)
    except FormatError:
        return 0


def _sane(place: Bytes, raw: bytes, frame_len: int, header_len: int, cbytes: int) -> _Head | None:
    """Return the header at the start of `raw`, with these lengths, without what cannot be; None if nothing helps."""
    head = bytearray(raw)
    head[: len(MAGIC)] = MAGIC
    for at, marker in _MARKERS:
        head[at] = marker
    head[0x0B:0x0F] = (header_len & 0xFFFFFFFF).to_bytes(4, "big")
    head[0x10:0x18] = (frame_len & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "big")
    head[0x27:0x2F] = (cbytes & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "big")
    head[0x19] &= 0xF3
    head[0x1A] = place.sparse
    for _ in range(len(_FIELDS)):
        try:
            fields = FrameHeader.from_bytes(bytes(head), sparse=place.sparse)
            whole = bytes(head[: fields.header_len])
            if len(whole) < fields.header_len:
                return None
            return _Head(fields=fields, raw=whole, layers=_layers_of(whole))
        except FormatError as error:
            says_nothing = _SAYING_NOTHING.get(error.at)
            if says_nothing is None:
                return None
            head[error.at : error.at + len(says_nothing)] = says_nothing
    return None


def _layers_of(raw: bytes) -> dict[str, tuple[int, int]]:
    """Return where the fixed metalayers are, none if their table is damaged."""
    try:
        return read_metalayers(raw)
    except FormatError:
        return {}


def looks_like_a_frame(place: Bytes) -> bool:
    """Return whether a frame may have been there: of the bytes that begin every frame half are left, or its tail is.

    A header that can be read, or a commit record, says more; this is for when there is neither.
    """
    if begins_like_a_frame(place):
        return True
    if place.size < TAIL_LEN:
        return False
    tail = place.read(TAIL_LEN, place.size - TAIL_LEN)
    try:
        trailer_len(tail, at=place.size - TAIL_LEN, most=place.size)
    except FormatError:
        return False
    return tail[_TAIL_TYPE_AT] == _TAIL_TYPE_MARKER


def begins_like_a_frame(place: Bytes) -> bool:
    """Return whether at least half are left of the bytes that begin every frame."""
    head = place.read(min(place.size, max(_SAME_IN_ALL) + 1), 0)
    left = sum(byte == head[at] for at, byte in _SAME_IN_ALL.items() if at < len(head))
    return 2 * left >= sum(at < len(head) for at in _SAME_IN_ALL) > 0


def _is_pending(record: CommitRecord, raw: bytes) -> bool:
    """Return whether the copy counts behind the header's first sector, as a commit in two steps leaves it."""
    return record.pending and record.header[:FIXED_LEN] == raw[:FIXED_LEN]


def _only_foreign(rest: _Rest) -> bool:
    """Return whether all can be read and nothing was ever proven."""
    return not (rest.trailer_error or rest.index_error or rest.says_fingerprint or rest.type_is_lost)


def _same_commit(raw: bytes, other: bytes) -> bool:
    """Return whether two headers differ so little that one is the other, damaged."""
    frame_len = slice(0x0F, 0x18)
    if raw[frame_len] == other[frame_len]:
        return True
    together = min(len(raw), len(other))
    different = int.from_bytes(raw[:together], "big") ^ int.from_bytes(other[:together], "big")
    return different.bit_count() == 1


def _read_head(place: Bytes, head: bytes) -> tuple[_Head | None, str]:
    """Return the header at the start of `head`, and what is wrong with it if it cannot be read."""
    try:
        fields = FrameHeader.from_bytes(head, sparse=place.sparse)
        raw = head[: fields.header_len]
        if len(raw) < fields.header_len:
            raw = place.read(min(fields.header_len, place.size), 0)
        layers = read_metalayers(raw)
    except FormatError as error:
        return None, str(error)
    if len(raw) < fields.header_len:
        return None, str(TruncatedError("frame header", at=0, needed=fields.header_len, got=len(raw)))
    return _Head(fields=fields, raw=raw, layers=layers), ""


def _rest(place: Bytes, head: _Head) -> _Rest:
    """Return trailer, index and record as `head` leads to them."""
    rest = _Rest()
    header = head.fields
    end = header.frame_len
    if end > place.size:
        rest.trailer_error = f"the frame has {end} bytes, and there are {place.size}"
    else:
        _read_trailer(place, head, rest)
    has_data = header.nbytes > 0 or rest.trailer_at > header.header_len  # or nbytes is damaged
    has_data = has_data or (rest.trailer is None and header.cbytes > 0)
    rest.index_at = header.header_len + (header.cbytes if has_data and not place.sparse else 0)
    if has_data:
        available = (rest.trailer_at or min(end, place.size)) - rest.index_at
        try:
            _read_index(place, header, rest, available)
        except SuperchunkError as error:
            rest.index_error = str(error)
    if rest.trailer is None or rest.index_error:
        return rest
    rest.record = CommitRecord.of_trailer(rest.raw_trailer, header.header_len)
    if not rest.says_fingerprint:
        available = _has_record_space(rest.trailer, len(rest.raw_trailer), header.header_len)
        rest.type_is_lost = available or rest.record is not None
    chunk: list[Source] = [place.source(rest.index_at, rest.index_len)] if has_data else []
    trailer = rest.raw_trailer
    typed = trailer[:-_TYPE_AT] + bytes((FINGERPRINT_TYPE,)) + trailer[1 - _TYPE_AT :]
    rest.found = fingerprint(head.raw, head.layers, chunk, typed)
    if rest.record is None and rest.says_fingerprint and not rest.fits:
        _renew_record(head, rest, chunk)
    return rest


def _renew_record(head: _Head, rest: _Rest, chunk: list[Source]) -> None:
    """Put the header in the place of its copy, and see whether all fits then."""
    trailer = rest.raw_trailer
    at = len(trailer) - TAIL_LEN - record_len(len(head.raw))
    if at < 0:
        return
    copy_at = at + record_len(0) - _HASH_LEN
    body = trailer[at:copy_at] + head.raw
    record = body + _engine.hash64([body]).to_bytes(_HASH_LEN, "little")
    found = fingerprint(head.raw, head.layers, chunk, trailer[:at] + record + trailer[at + len(record) :])
    if found == trailer[-FINGERPRINT_LEN:]:
        rest.record, rest.record_is_damaged, rest.found = CommitRecord.from_bytes(record), True, found


def _read_trailer(place: Bytes, head: _Head, rest: _Rest) -> None:
    header = head.fields
    end = header.frame_len
    try:
        tail = place.read(TAIL_LEN, end - TAIL_LEN)
        length = trailer_len(tail, at=end - TAIL_LEN, most=end - header.header_len)
        at = end - length
        if header.nbytes == 0 and at != header.header_len:
            rest.trailer_error = f"without data it begins behind the header, at {header.header_len}, and not at {at}"
        raw = place.read(length, at)
        rest.trailer = Trailer.from_bytes(raw, at=at)
        rest.raw_trailer, rest.trailer_at = raw, at
    except FormatError as error:
        rest.trailer_error = str(error)


def _read_index(place: Bytes, header: FrameHeader, rest: _Rest, available: int) -> None:
    """Read the index chunk; raise FormatError if that cannot be."""
    at = rest.index_at
    if available < 0 or at > place.size:
        raise TruncatedError("index chunk", at=at, needed=ENTRY_LEN, got=max(place.size - at, 0))
    source = place.read(available, at) if available <= _KEEP_INDEX else place.source(at, available)
    try:
        info = _engine.describe(source)
    except FormatError as error:
        raise located(error, "index chunk", at) from error
    nchunks = -(-header.nbytes // header.chunksize) if header.chunksize > 0 else -1
    for count in (nchunks, -1):
        try:
            index = Index.from_chunk(source, info, nchunks=count, at=at)
        except FormatError as error:
            if count < 0:
                raise
            rest.index_error = str(error)  # of the header, if there is an index all the same
            continue
        break
    if not len(index):
        raise FormatError("index chunk nbytes", at=at + 4, expected="at least 8", found=0)
    index.slice(0, 1)
    index.slice(len(index) - 1, len(index))
    rest.index, rest.index_len = index, info.cbytes


def _report(
    place: Bytes,
    head: _Head,
    rest: _Rest,
    raw: bytes,
    budget: Budget,
    error: str = "",
    *,
    older: Loaded | None = None,
) -> FrameInspection:
    """Return the findings about a frame whose header is `head` and is there as `raw`."""
    sealed = rest.says_fingerprint or rest.type_is_damaged or rest.type_is_lost
    proven = rest.fits or rest.type_is_damaged
    found = FrameInspection(
        header=head.fields,
        raw_header=head.raw,
        layers=head.layers,
        index=rest.index,
        trailer=rest.trailer,
        fingerprinted=sealed,
        proven=proven,
        lost=bool(rest.index_error or (rest.trailer_error and not head.fields.nbytes)),
        recorded=rest.record.header if rest.record is not None else b"",
        sealed_from=_sealed_from(place, head, rest.record) if proven else None,
        data_len=min(rest.index_at, place.size) - head.fields.header_len if rest.index_at else 0,
    )
    found.parts += _header_parts(head, rest, raw, error, proven=proven)
    note = _index_parts(found, rest, older)
    found.parts += _trailer_parts(found, rest, note, budget)
    found.overhead = len(head.raw) + rest.index_len + len(rest.raw_trailer)
    return found


def _sealed_from(place: Bytes, head: _Head, record: CommitRecord | None) -> int | None:
    """Return the first entry whose chunk must have a seal."""
    if record is None:
        return None
    if place.sparse:
        return 0 if record.sealed_from == 0 else None
    return max(record.sealed_from - len(head.raw), 0)


def _part(name: str, status: PartStatus, at: int, length: int, message: str = "") -> PartReport:
    return PartReport(name=name, status=status, position=at, length=length, message=message)


def _header_parts(head: _Head, rest: _Rest, raw: bytes, error: str, *, proven: bool) -> list[PartReport]:
    """Return the findings about the header and the fixed metalayers."""
    record = rest.record
    if raw != head.raw:
        truth = head.raw
    elif (
        record is not None and rest.says_fingerprint and (proven or _masked(head, record.header) == _masked(head, raw))
    ):
        truth = record.header
    else:
        truth = raw
    fields, layers = _differences(head, raw, truth)
    broken = raw != head.raw and _masked(head, raw) != _masked(head, head.raw)
    status: PartStatus
    message = error
    if broken or error:
        status = "damaged"
        message = error or f"not as its commit wrote it: {', '.join(fields)}"
        if error and fields:
            message += f"; not as its commit wrote it: {', '.join(fields)}"
    elif fields:
        status = "changed"
        message = f"changed since its commit, by another writer or by damage: {', '.join(fields)}"
    elif not rest.says_fingerprint and not rest.type_is_damaged:
        status = "not sealed" if not rest.trailer_error else "in doubt"
    else:
        status = "sound" if proven or record is not None else "in doubt"
    parts = [_part("header", status, 0, len(head.raw), message)]
    for name, (at, length) in head.layers.items():
        if name in layers:
            text = "changed since its commit, by another writer or by damage"
            parts.append(_part(f"metalayer {name!r}", "changed", at, length, text))
        else:
            of_layer: PartStatus = "sound" if status in ("changed", "damaged") and proven else status
            what = _placeholder_note(head, raw, name) if name in PLACEHOLDERS else ""
            parts.append(_part(f"metalayer {name!r}", of_layer, at, length, what))
    return parts


def _placeholder_note(head: _Head, raw: bytes, name: str) -> str:
    """Return what a frame with this fixed metalayer stands for."""
    from superchunk._integrity.placeholders import placeholder_text  # few frames are placeholders

    at, length = head.layers[name]
    found = placeholder_text({name: raw[at : at + length]})
    return "" if found is None else f"the frame is {found[1]}"


def _masked(head: _Head, raw: bytes) -> bytes:
    if len(raw) != len(head.raw):
        return raw
    return masked_header(raw, head.layers)


def _differences(head: _Head, raw: bytes, truth: bytes) -> tuple[list[str], set[str]]:
    """Return the fields, and the metalayers, in which two headers differ."""
    if raw == truth:
        return [], set()
    if len(raw) != len(truth):
        return ["header_len"], set()
    layers = {name for name, (at, n) in head.layers.items() if raw[at : at + n] != truth[at : at + n]}
    ends = [start for start, _ in _FIELDS[1:]] + [FIXED_LEN]
    fields = [name for (start, name), end in zip(_FIELDS, ends, strict=True) if raw[start:end] != truth[start:end]]
    names, other = bytearray(raw[FIXED_LEN:]), bytearray(truth[FIXED_LEN:])
    for at, n in head.layers.values():
        names[at - FIXED_LEN : at - FIXED_LEN + n] = other[at - FIXED_LEN : at - FIXED_LEN + n] = bytes(n)
    if names != other:
        fields.append("table of metalayers")
    return fields, layers


def _index_parts(found: FrameInspection, rest: _Rest, older: Loaded | None) -> str:
    """Add the findings about the index, and about what to look at instead of it."""
    note = ""
    if older is not None:
        note = (
            f"the newest commit that is whole, but for its chunks, has {len(older.index)} chunks"
            f" and ends at byte {older.header.frame_len}"
        )
    if found.header is None or not (found.header.nbytes or rest.index_error):
        return note
    status: PartStatus
    if rest.index_error:
        status, message = "damaged", f"{rest.index_error}; {note}".removesuffix("; ")
        if older is not None and rest.index is None:
            found.index, found.index_is_old, found.header = older.index, True, older.header
            found.raw_header, found.layers = older.raw_header, older.layers
            found.data_len = older.header.cbytes
            found.fingerprinted = True
        length = 0
    else:
        status, message, length = _status_of(found, rest), "", rest.index_len
    found.parts.append(_part("index chunk", status, rest.index_at, length, message))
    return note


def _status_of(found: FrameInspection, rest: _Rest) -> PartStatus:
    """Return what is known of index and trailer that can be read."""
    if found.proven:
        return "sound"
    if found.fingerprinted or rest.trailer_error:
        return "in doubt"
    return "not sealed"


def _trailer_parts(found: FrameInspection, rest: _Rest, note: str, budget: Budget) -> list[PartReport]:
    """Return the findings about commit record, trailer, vlmetalayers and fingerprint."""
    parts = []
    header = found.header
    if header is not None and rest.trailer is not None and rest.says_fingerprint:
        length = record_len(len(found.raw_header))
        at = rest.trailer_at + len(rest.raw_trailer) - TAIL_LEN - length
        if rest.record is None or rest.record_is_damaged:
            parts.append(_part("commit record", "damaged", at, length, "a frame with a fingerprint has one here"))
        else:
            parts.append(_part("commit record", "sound", at, length))
    trailer = rest.trailer
    if trailer is None:
        parts.append(_part("trailer", "damaged", 0, 0, f"{rest.trailer_error}; {note}".removesuffix("; ")))
        return parts
    status = _status_of(found, rest)
    parts.append(_part("trailer", status, rest.trailer_at, len(rest.raw_trailer), rest.trailer_error))
    for name, content in trailer.vlmeta.items():
        problem = vlmeta_problem(content, budget)
        at = rest.trailer_at + rest.raw_trailer.find(content)
        parts.append(_part(f"vlmetalayer {name!r}", "damaged" if problem else status, at, len(content), problem))
    at = rest.trailer_at + len(rest.raw_trailer) - _TYPE_AT
    message = ""
    of_print: PartStatus = status
    if rest.type_is_damaged:
        of_print, message = "damaged", f"type {trailer.fingerprint_type}, although it fits as one of type 3"
    elif rest.type_is_lost:
        of_print, message = (
            "damaged",
            f"type {trailer.fingerprint_type}, where there is a commit record, or its available",
        )
    elif rest.says_fingerprint and not found.proven:
        of_print, message = "damaged", "does not fit header, index chunk and trailer: one of them is damaged"
    parts.append(_part("fingerprint", of_print, at, _TYPE_AT, message))
    return parts


def vlmeta_problem(content: bytes, budget: Budget) -> str:
    """Return what is wrong with the chunk of a vlmetalayer, as far as `budget` lets it be decoded."""
    try:
        decode_in_pieces(content, budget=budget)
    except UnsupportedError:
        return ""
    except SuperchunkError as error:
        return f"its chunk cannot be decoded: {error}"
    return ""


def decode_in_pieces(
    source: Source,
    *,
    nthreads: int = 1,
    itemsize: int = 0,
    blockshape: tuple[int, ...] | None = None,
    hooks: _engine.Hooks | None = None,
    budget: Budget | None = None,
) -> bool:
    """Decode a whole chunk, some MiB at a time, and drop the result; return whether `budget` had enough for it.

    Parameters
    ----------
    source
        The chunk.
    nthreads, itemsize, blockshape, hooks
        For the engine.
    budget
        What may be done; None: everything.

    Raises
    ------
    FormatError
        It is damaged.
    UnsupportedError
        It needs a codec or filter that is not built in.

    """
    budget = budget or Budget.unlimited()
    info = _engine.describe(source)
    if info.special:
        return True
    if (info.nbytes if info.vlblocks else info.blocksize) > budget.unit:
        return False
    if info.vlblocks:
        if not budget.may_decode(info.nbytes):
            return False
        _engine.read_vlblocks(source, nthreads=nthreads, itemsize=itemsize, hooks=hooks)
        return True
    nbytes, step = info.nbytes, max(_PIECE // max(info.blocksize, 1), 1) * max(info.blocksize, 1)
    for start in range(0, nbytes, step):
        stop = min(start + step, nbytes)
        if not budget.may_decode(stop - start):
            return False
        request = (source, nbytes, start, stop, 0)
        _engine.read([request], nthreads=nthreads, itemsize=itemsize, hooks=hooks, blockshape=blockshape)
    return True
