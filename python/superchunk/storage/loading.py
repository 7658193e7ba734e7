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

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from superchunk import _engine
from superchunk.exceptions import FormatError, TruncatedError
from superchunk.frame.header import FIXED_LEN, MIN_TRAILER_LEN, FrameHeader
from superchunk.frame.index import Index, located
from superchunk.frame.integrity import FINGERPRINT_LEN, FINGERPRINT_TYPE, CommitRecord, fingerprint, record_len
from superchunk.frame.metalayers import read_metalayers
from superchunk.frame.trailer import TAIL_LEN, Trailer, trailer_len
from superchunk.storage.base import FrameSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk._engine import Source

__all__ = ["PROBE_LEN", "Loaded", "check_fingerprint", "parse_frame", "settings_of"]

PROBE_LEN = 1024
"""Most bytes that are read again to see whether a frame has changed."""

_FIRST_READ = 4096
_KEEP_INDEX = 32 * 1024
_CHECK_AT_ONCE = 2**20


class Loaded(NamedTuple):
    """What a frame says about itself, before any chunk is looked at."""

    header: FrameHeader
    raw_header: bytes
    """All `header_len` bytes."""
    layers: dict[str, tuple[int, int]]
    """Position and length of each fixed metalayer's content."""
    trailer: Trailer
    trailer_len: int
    """Bytes of the trailer."""
    index: Index  # type: ignore[assignment]  # in place of tuple's, which nobody asks for
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
    """Bytes at the frame's start that change whenever the frame does: the header, and
    without data the trailer too, up to 1024 in all."""


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
    head = read(min(size, _FIRST_READ), 0)
    header = FrameHeader.from_bytes(head, sparse=sparse)
    frame_len = header.frame_len
    if frame_len > size:
        raise TruncatedError("frame", at=0, needed=frame_len, got=size)
    tail_at = max(frame_len - _FIRST_READ, 0)
    tail = head[:frame_len] if frame_len <= len(head) else read(frame_len - tail_at, tail_at)

    def part(at: int, nbytes: int) -> bytes:
        if at + nbytes <= len(head):
            return head[at : at + nbytes]
        if at >= tail_at:
            return tail[at - tail_at : at - tail_at + nbytes]
        return read(nbytes, at)

    raw_header = part(0, header.header_len)
    if len(raw_header) < header.header_len:
        raise TruncatedError("frame header", at=0, needed=header.header_len, got=len(raw_header))
    layers = read_metalayers(raw_header)
    index_pos = header.header_len + (header.cbytes if header.nbytes and not sparse else 0)
    length = trailer_len(tail[-TAIL_LEN:], at=frame_len - TAIL_LEN, most=frame_len - index_pos)
    trailer_at = frame_len - length
    raw_trailer = part(trailer_at, length)
    _check_trailer(header, raw_trailer, length)
    trailer = Trailer.from_bytes(raw_trailer, at=trailer_at)
    index, index_len = Index(), 0
    source: Source = b""
    if header.nbytes:
        room = trailer_at - index_pos
        source = part(index_pos, room) if room <= _KEEP_INDEX else index_at(index_pos, room)
        index, index_len = _parse_index(header, source, index_pos)
    probe = head[: min(PROBE_LEN, header.header_len if header.nbytes else frame_len)]
    record = CommitRecord.of_trailer(raw_trailer, header.header_len)
    if record is not None and record.pending and record.header[:FIXED_LEN] == raw_header[:FIXED_LEN]:
        raw_header = record.header
    loaded = Loaded(
        header=header,
        raw_header=raw_header,
        layers=layers,
        trailer=trailer,
        trailer_len=length,
        index=index,
        index_len=index_len,
        raw_trailer=raw_trailer,
        index_source=source,
        sealed=False,
        record=record,
        probe=probe,
    )
    return loaded._replace(sealed=_judged(loaded))


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
    index_chunk: list[Source] = []
    if loaded.index_len:
        source, length = loaded.index_source, loaded.index_len
        if isinstance(source, tuple):
            index_chunk.append((source[0], source[1], length))  # type: ignore[arg-type]
        else:
            index_chunk.append(memoryview(source).cast("B")[:length])
    found = fingerprint(loaded.raw_header, loaded.layers, index_chunk, loaded.raw_trailer)
    expected = loaded.trailer.fingerprint
    if found != expected:
        raise FormatError(
            "frame fingerprint, over header, index and trailer",
            at=loaded.header.frame_len - FINGERPRINT_LEN,
            expected=expected.hex(),
            found=found.hex(),
        )


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
    """Return the index whose chunk stands at byte `at`, and that chunk's size."""
    try:
        info = _engine.describe(source)
    except FormatError as error:
        raise located(error, "index chunk", at) from error
    nchunks = -(-header.nbytes // header.chunksize) if header.chunksize else -1
    index = Index.from_chunk(source, info, nchunks=nchunks, at=at)
    if len(index) == 0:
        raise FormatError("index chunk nbytes", at=at + 4, expected="at least 8", found=0)
    return index, info.cbytes
