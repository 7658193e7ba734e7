"""Whole chunks and parts of them: the order in which a reader decides what it has.

::

    special value?  ->  special.py
    memcpyed?       ->  the body is the content
    nbytes == 0?    ->  nothing
    otherwise       ->  blocks.py, then filters.py, block by block

Source: docs/format/chunk.md, sections "Header", "Partial reads" and "Validation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference.blocks import decode_block, read_body
from reference.codecs import check_codec
from reference.filters import check_filters, undo_filters
from reference.header import FIELDS, FILTER_DELTA, Header
from reference.special import decode_special
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reference.blocks import Body


def decode(chunk: bytes, itemsize: int | None = None) -> bytes:
    """Return the whole content of a chunk.

    A tiny chunk may stand for 2 GiB: look at ``Header.from_bytes(chunk).nbytes`` first
    where that matters.

    Parameters
    ----------
    chunk
        The chunk; bytes behind its `cbytes` are ignored.
    itemsize
        The container's item size in bytes, if known.

    Returns
    -------
    bytes
        The content, `nbytes` long; timing records for an instrumented chunk.

    Raises
    ------
    TruncatedError
        The chunk ends before something it announces.
    FormatError
        It breaks the format otherwise.
    UnsupportedError
        It needs a codec or filter that is not here.

    """
    header = Header.from_bytes(chunk)
    return _decode_span(chunk, header, 0, header.nbytes, itemsize)


def decode_range(chunk: bytes, start: int, stop: int, itemsize: int | None = None) -> bytes:
    """Return bytes `start` to `stop` of a chunk's content.

    Only the blocks that the range meets are decoded, and block 0 where DELTA needs it.

    Parameters
    ----------
    chunk
        The chunk; bytes behind its `cbytes` are ignored.
    start, stop
        The range in bytes, ``0 <= start <= stop <= nbytes``.
    itemsize
        The container's item size in bytes, if known.

    Raises
    ------
    ValueError
        The range does not lie within the content.
    TruncatedError, FormatError, UnsupportedError
        As for `decode`, for the blocks that are decoded.

    """
    header = Header.from_bytes(chunk)
    if not 0 <= start <= stop <= header.nbytes:
        raise ValueError(f"start, stop: expected 0 <= start <= stop <= {header.nbytes}, got {start}, {stop}")
    return _decode_span(chunk, header, start, stop, itemsize)


def decode_vlblocks(chunk: bytes) -> list[bytes]:
    """Return the blocks of a chunk with variable-length blocks.

    Raises
    ------
    FormatError
        The chunk has blocks of one length, or breaks the format.
    TruncatedError, UnsupportedError
        As for `decode`.

    """
    header = Header.from_bytes(chunk)
    if not header.vlblocks:
        raise FormatError(
            "blosc2_flags2",
            at=FIELDS["blosc2_flags2"][0],
            expected="variable-length blocks (0x01)",
            found="blocks of one length",
        )
    check_codec(header.codec_format, header.udcodec)
    check_filters(header)
    if header.nbytes == 0:
        return []
    body = read_body(chunk, header, None)
    return [plain for _at, plain in _plain_blocks(body, 0, header.nbytes, None)]


def _decode_span(chunk: bytes, header: Header, start: int, stop: int, itemsize: int | None) -> bytes:
    """Return bytes `start` to `stop` of the content, known to lie within it."""
    if header.special:
        return decode_special(chunk, header, start, stop)
    if header.memcpyed:
        if header.cbytes != header.nbytes + header.header_len:
            raise FormatError(
                "cbytes of a memcpyed chunk",
                at=FIELDS["cbytes"][0],
                expected=header.nbytes + header.header_len,
                found=header.cbytes,
            )
        return chunk[header.header_len + start : header.header_len + stop]
    if header.nbytes == 0:
        return b""
    check_codec(header.codec_format, header.udcodec)
    check_filters(header)
    body = read_body(chunk, header, itemsize)
    return b"".join(
        plain[max(0, start - at) : max(0, stop - at)] for at, plain in _plain_blocks(body, start, stop, itemsize)
    )


def _plain_blocks(body: Body, start: int, stop: int, itemsize: int | None) -> Iterator[tuple[int, bytes]]:
    """Yield the blocks that meet bytes `start` to `stop`, each with the byte it begins at."""
    header = body.header
    reference: bytes | None = None
    at = 0
    for nblock in range(body.nblocks):
        nbytes = body.block_nbytes(nblock)
        wanted = at < stop and start < at + nbytes
        is_reference = nblock == 0 and FILTER_DELTA in header.filters and start < stop
        if wanted or is_reference:
            plain = decode_block(body, nblock)
            if not header.instrumented:
                plain = undo_filters(plain, header, reference, itemsize)
            if is_reference and not header.vlblocks:
                reference = plain
            if wanted:
                yield at, plain
        at += nbytes
