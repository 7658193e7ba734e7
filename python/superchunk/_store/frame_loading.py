"""Finding header, index chunk and trailer of a frame, wherever its bytes are.

::

    0             header_len         header_len + cbytes         frame_len
    |  header     |  chunks          |  index chunk |  slack     |  trailer  |

Reads the header, the trailer, and of the index chunk its header, or all of it while
it is small; chunks are not touched. Reads bytes through a function, so that files and
buffers take the same way.

Source: docs/format/cframe.md, "Layout", "Index chunk", "Trailer" and "Reading safely";
docs/format/integrity.md, "Frame fingerprint".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from superchunk import _engine
from superchunk._format.frame_header import FIXED_LEN, MIN_TRAILER_LEN, FrameHeader
from superchunk._format.frame_index import Index, located
from superchunk._format.integrity import FINGERPRINT_LEN, FINGERPRINT_TYPE, CommitRecord, fingerprint, record_len
from superchunk._format.metalayers import read_metalayers
from superchunk._format.trailer import TAIL_LEN, Trailer, trailer_len
from superchunk._store.store_interface import FrameSettings
from superchunk.exceptions import FormatError, TruncatedError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk._engine import Source
    from superchunk.exceptions import SuperchunkError

__all__ = [
    "FIRST_READ",
    "PROBE_LEN",
    "Loaded",
    "Proof",
    "about",
    "check_fingerprint",
    "parse_bytes",
    "parse_frame",
    "proof_of",
    "settings_of",
]

PROBE_LEN = 1024
"""Most bytes that are read again to see whether a frame has changed."""

FIRST_READ = 4096
"""Bytes at a frame's start that are read at once, and so many at its end."""
_KEEP_INDEX = 32 * 1024
_CHECK_AT_ONCE = 2**20


def about(error: SuperchunkError, path: str) -> SuperchunkError:
    """Return `error` with the path in front of its message."""
    if isinstance(error, (FormatError, UnsupportedError)):
        error.args = (f"{path}: {error.args[0]}", *error.args[1:])
    return error


class Proof(NamedTuple):
    """Sixteen bytes that differ whenever index chunk or trailer do."""

    digest: bytes
    stored: bool
    """Whether it is the fingerprint, with which the trailer ends; else the XXH3-128 of index chunk and trailer."""


def proof_of(trailer: bytes, index_chunk: Source) -> Proof:
    """Return the proof of an index chunk, exactly its bytes, empty without data, and a trailer.

    A fingerprint is of the index chunk, too, and whoever changes a frame without knowing of it drops it.
    """
    if trailer[-FINGERPRINT_LEN - 1] == FINGERPRINT_TYPE:
        return Proof(trailer[-FINGERPRINT_LEN:], stored=True)
    return Proof(_engine.hash128([index_chunk, trailer]), stored=False)


@dataclass(slots=True, eq=False)
class Loaded:
    """What a frame says about itself, before any chunk is read."""

    header: FrameHeader
    raw_header: bytes
    """All `header_len` bytes."""
    layers: dict[str, tuple[int, int]]
    """Position and length of each fixed metalayer's content."""
    trailer: Trailer
    trailer_len: int
    """Bytes of the trailer."""
    index: Index
    """The entries; perhaps those of others who opened the same frame: whoever changes them takes a copy."""
    nchunks: int
    """How many there are."""
    index_len: int
    """Bytes of the index chunk, 0 without one."""
    raw_trailer: bytes
    """The whole trailer."""
    index_source: Source
    """Where the index chunk is, of which there are `index_len` bytes."""
    sealed: bool | None
    """Whether the fingerprint fits; False: there is none; None: not compared yet."""
    record: CommitRecord | None
    """What the last commit said about itself."""
    probe: bytes
    """Bytes at the frame's start that change with nearly every change of the frame: the header, and
    without data the trailer too, up to 1024 in all."""
    proof: Proof
    """What differs whenever the rest does."""


@lru_cache(maxsize=64)
def settings_of(header: FrameHeader) -> FrameSettings:
    """Return the parameters for new chunks that `header` records."""
    return FrameSettings(
        typesize=header.typesize,
        blocksize=max(header.blocksize, 0),
        codec=header.codec,
        codec_meta=header.codec_meta,
        clevel=header.clevel,
        filters=header.filters,
        filters_meta=header.filters_meta,
        splitmode=header.splitmode,
        use_dict=header.use_dict,
        nthreads_comp=header.nthreads_comp,
        nthreads_decomp=header.nthreads_decomp,
    )


def parse_frame(
    read: Callable[[int, int], bytes],
    size: int,
    index_at: Callable[[int, int], Source],
    *,
    sparse: bool = False,
    head: bytes | None = None,
) -> Loaded:
    """Read what a frame says about itself.

    Parameters
    ----------
    read
        Called with a number of bytes and a position; returns those bytes.
    size
        Bytes that there are from the frame's first one on.
    index_at
        Called with position and limit of a large index chunk; returns its source.
    sparse
        These are the bytes of a sparse frame's index file.
    head
        The first `FIRST_READ` bytes, or all that there are, if they have been read.

    Raises
    ------
    TruncatedError
        There are fewer bytes than the frame needs.
    FormatError
        It is no frame, or a damaged one; while index and trailer have up to 1 MiB, also
        one that its fingerprint does not fit.
    NewerFormatError, UnsupportedError
        It is a frame that this library does not read.

    """
    if head is None:
        head = read(min(size, FIRST_READ), 0)
    header = _header_of(head[:FIXED_LEN], sparse)
    header_len, frame_len = header.header_len, header.frame_len
    if frame_len > size:
        raise TruncatedError("frame", at=0, needed=frame_len, got=size)
    raw_header = head[:header_len] if header_len <= len(head) else read(header_len, 0)
    if len(raw_header) < header_len:
        raise TruncatedError("frame header", at=0, needed=header_len, got=len(raw_header))
    index_pos = header_len + (header.cbytes if header.nbytes and not sparse else 0)
    room = frame_len - index_pos
    if room <= FIRST_READ:
        rest = head[index_pos:frame_len] if frame_len <= len(head) else read(room, index_pos)
        if len(rest) < room:
            raise TruncatedError("trailer", at=index_pos, needed=room, got=len(rest))
        if header_len <= PROBE_LEN:
            return _kept_parts(raw_header, rest, sparse)
        return _parts(raw_header, rest, sparse)
    tail = read(FIRST_READ, frame_len - FIRST_READ)
    length = trailer_len(tail[-TAIL_LEN:], at=frame_len - TAIL_LEN, most=room)
    raw_trailer = tail[-length:] if length <= len(tail) else read(length, frame_len - length)
    room -= length
    source = read(room, index_pos) if room <= _KEEP_INDEX else index_at(index_pos, room)
    return _put_together(header, raw_header, source, raw_trailer, length)


def parse_bytes(raw: bytes) -> Loaded:
    """Return what the frame `raw`, which is all there, says about itself.

    Raises
    ------
    FormatError, UnsupportedError
        As `parse_frame`.

    """
    return parse_frame(lambda nbytes, at: raw[at : at + nbytes], len(raw), lambda at, _limit: raw[at:], head=raw)


@lru_cache(maxsize=64)
def _header_of(fixed: bytes, sparse: bool) -> FrameHeader:
    return FrameHeader.from_bytes(fixed, sparse=sparse)


def _parts(raw_header: bytes, rest: bytes, sparse: bool) -> Loaded:
    """Return what a frame says whose bytes from the index chunk on are at hand."""
    header = _header_of(raw_header[:FIXED_LEN], sparse)
    length = trailer_len(rest[-TAIL_LEN:], at=header.frame_len - TAIL_LEN, most=len(rest))
    room = len(rest) - length
    return _put_together(header, raw_header, rest[:room], rest[room:], length)


_kept_parts = lru_cache(maxsize=32)(_parts)
"""The same; who opens a frame again that is as it was need not take it apart again. Short ones only."""


def _put_together(header: FrameHeader, raw_header: bytes, source: Source, raw_trailer: bytes, length: int) -> Loaded:
    """Return what header, index chunk and trailer say; there are `length` bytes of the trailer or fewer."""
    header_len, trailer_at = header.header_len, header.frame_len - length
    layers = read_metalayers(raw_header)
    _check_trailer(header, raw_trailer, length)
    trailer = Trailer.from_bytes(raw_trailer, at=trailer_at)
    if header.nbytes:
        index, index_len = _parse_index(header, source, header_len + (0 if header.sparse else header.cbytes))
        probe = raw_header[:PROBE_LEN]
    else:
        index, index_len, source = Index(), 0, b""
        probe = (raw_header + raw_trailer)[:PROBE_LEN]
    record = CommitRecord.of_trailer(raw_trailer, header_len)
    if record is not None and record.pending and record.header[:FIXED_LEN] == raw_header[:FIXED_LEN]:
        raw_header = record.header
    loaded = Loaded(
        header=header,
        raw_header=raw_header,
        layers=layers,
        trailer=trailer,
        trailer_len=length,
        index=index,
        nchunks=len(index),
        index_len=index_len,
        raw_trailer=raw_trailer,
        index_source=source,
        sealed=False,
        record=record,
        probe=probe,
        proof=proof_of(raw_trailer, _exactly(source, index_len)),
    )
    loaded.sealed = _judged(loaded)
    return loaded


def _judged(loaded: Loaded) -> bool | None:
    """Return what `sealed` is to be, after comparing the fingerprint if there is one and that is cheap."""
    if loaded.trailer.fingerprint_type != FINGERPRINT_TYPE:
        _check_type(loaded)
        return False
    if loaded.index_len + loaded.trailer_len > _CHECK_AT_ONCE:
        return None
    check_fingerprint(loaded)
    return True


def _check_type(loaded: Loaded) -> None:
    """Refuse a trailer with room for a commit record and without the fingerprint that goes with it.

    Who changes a frame without knowing of both drops both.
    """
    header_len = loaded.header.header_len
    if loaded.record is None:
        if loaded.trailer_len == MIN_TRAILER_LEN:
            return
        spare = loaded.trailer_len - len(Trailer(vlmeta=loaded.trailer.vlmeta).to_bytes())
        if spare != record_len(header_len):
            return
    raise FormatError(
        "fingerprint type of a trailer with a commit record",
        at=loaded.header.frame_len - FINGERPRINT_LEN - 1,
        expected=FINGERPRINT_TYPE,
        found=loaded.trailer.fingerprint_type,
    )


def check_fingerprint(loaded: Loaded) -> None:
    """Compare a frame's fingerprint, which is of type 3, with the frame.

    Raises
    ------
    FormatError
        They differ: header, index or trailer are damaged, or not all of a commit reached
        the disk.

    """
    index_chunk = [_exactly(loaded.index_source, loaded.index_len)] if loaded.index_len else []
    found = fingerprint(loaded.raw_header, loaded.layers, index_chunk, loaded.raw_trailer)
    expected = loaded.trailer.fingerprint
    if found != expected:
        raise FormatError(
            "frame fingerprint, over header, index and trailer",
            at=loaded.header.frame_len - FINGERPRINT_LEN,
            expected=expected.hex(),
            found=found.hex(),
        )


def _exactly(source: Source, length: int) -> Source:
    """Return the first `length` bytes of `source`, a buffer or a range of an open file."""
    if isinstance(source, tuple):
        return (source[0], source[1], length)  # type: ignore[return-value]
    return memoryview(source).cast("B")[:length]


def _check_trailer(header: FrameHeader, raw: bytes, length: int) -> None:
    """Check that the trailer is all there, and where it has to be."""
    at = header.frame_len - length
    if header.nbytes == 0 and at != header.header_len:
        raise FormatError(
            "trailer length of a frame without data",
            at=header.frame_len - TAIL_LEN + 1,
            expected=header.frame_len - header.header_len,
            found=length,
        )
    if len(raw) < length:
        raise TruncatedError("trailer", at=at, needed=length, got=len(raw))


def _parse_index(header: FrameHeader, source: Source, at: int) -> tuple[Index, int]:
    """Return the index whose chunk is at byte `at`, and that chunk's size."""
    try:
        info = _engine.describe(source)
    except FormatError as error:
        raise located(error, "index chunk", at) from error
    nchunks = -(-header.nbytes // header.chunksize) if header.chunksize else -1
    index = Index.from_chunk(source, info, nchunks=nchunks, at=at)
    if len(index) == 0:
        raise FormatError("index chunk nbytes", at=at + 4, expected="at least 8", found=0)
    return index, info.cbytes
