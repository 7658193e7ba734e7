"""The body of a chunk: block table, dictionary, and the streams of each block.

::

    regular          header | bstarts: nblocks x i32 | [dsize: i32 | dictionary] | blocks
    block            stream | stream | ...            nstreams of them, equally long
    stream           csize: i32 | payload

    variable-length  header | bstarts: nblocks x i32 | [dsize: i32 | dictionary] | blocks
    block            nbytes: i32 | payload

`bstarts` count from the start of the chunk, and stand in any order. Turns a block
into filtered bytes; undoing the filters is not done here.

Source: docs/format/chunk.md, sections "Blocks and streams", "Block size",
"Dictionaries", "Variable-length blocks" and "Blosc1 chunks".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reference.codecs import decode_stream
from reference.header import (
    FIELDS,
    MAX_TYPESIZE,
    SHORT_HEADER,
    VERSION_BLOSC1,
)
from superchunk.exceptions import FormatError, TruncatedError

if TYPE_CHECKING:
    from reference.header import Header

INT32: Final = 4
MAX_DICT: Final = 32_768
"""The largest dictionary, in bytes."""
LONGEST_RUN_VALUE: Final = 255
RUN_TOKEN: Final = 0x01
BLOSC1_MAX_SPLITS: Final = 16
BLOSC1_MIN_STREAM: Final = 128
"""Items of the shortest block that Blosc1 splits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """How a chunk is cut, as far as all its blocks have it in common."""

    chunk: bytes
    """The chunk, exactly `cbytes` bytes of it."""
    header: Header
    blocksize: int
    """Bytes of every block but perhaps the last; 0 for variable-length blocks."""
    nblocks: int
    nstreams: int
    """Streams of a block of full size."""
    data_start: int
    """Where blocks may begin: behind table and dictionary, in bytes from the start."""
    dictionary: bytes

    def block_nbytes(self, nblock: int) -> int:
        """Return the decoded bytes of block `nblock`."""
        if self.header.vlblocks:
            return vlblock_span(self, nblock)[2]
        return min(self.blocksize, self.header.nbytes - nblock * self.blocksize)


def read_body(chunk: bytes, header: Header, itemsize: int | None) -> Body:
    """Find out how the body of a regular chunk, or of one with variable-length blocks, is cut.

    Parameters
    ----------
    chunk
        The chunk; bytes behind its `cbytes` are ignored.
    header
        Its header: neither special nor memcpyed, and `nbytes` not 0.
    itemsize
        The container's item size in bytes, if known.

    Raises
    ------
    TruncatedError
        The chunk is shorter than its block table and dictionary.
    FormatError
        The dictionary's size is wrong, or a block cannot be cut into its streams.

    """
    chunk = chunk[: header.cbytes]
    blocksize = 0 if header.vlblocks else effective_blocksize(header, itemsize)
    nblocks = header.blocksize if header.vlblocks else -(-header.nbytes // blocksize)
    table_end = header.header_len + INT32 * nblocks
    if table_end > header.cbytes:
        raise TruncatedError("bstarts", at=header.header_len, needed=INT32 * nblocks, got=_left(chunk, header))
    dictionary, data_start = _read_dictionary(chunk, header, table_end)
    nstreams = 1 if header.vlblocks else _count_streams(chunk, header, blocksize, nblocks)
    if not header.vlblocks and (blocksize % nstreams or blocksize < nstreams):
        raise FormatError(
            "blocksize",
            at=FIELDS["blocksize"][0],
            expected=f"a multiple of {nstreams}, to be cut into so many streams",
            found=blocksize,
        )
    body = Body(
        chunk=chunk,
        header=header,
        blocksize=blocksize,
        nblocks=nblocks,
        nstreams=nstreams,
        data_start=data_start,
        dictionary=dictionary,
    )
    if header.vlblocks:
        _check_vlblocks(body)
    return body


def effective_blocksize(header: Header, itemsize: int | None) -> int:
    """Return the size by which the content was cut, in bytes.

    Writers cut by whole items. C-Blosc2 3.0 to 3.3.5 does, too, but may state the size
    before it was rounded. On all other chunks this changes nothing.

    Parameters
    ----------
    header
        The chunk's header.
    itemsize
        The container's item size in bytes, if known. It counts only where the header
        cannot state it: above 255, when the stored typesize is 1.

    """
    item = header.typesize
    if item == 1 and itemsize is not None and itemsize > MAX_TYPESIZE:
        item = itemsize
    if header.instrumented:
        return header.blocksize  # blocks of records, not of items
    if header.nbytes < item:
        return 1
    if header.blocksize > item:
        return header.blocksize - header.blocksize % item
    return header.blocksize


def _left(chunk: bytes, header: Header) -> int:
    """Return the bytes behind the header."""
    return len(chunk) - header.header_len


def _read_dictionary(chunk: bytes, header: Header, table_end: int) -> tuple[bytes, int]:
    """Return the dictionary, if there is one, and where the blocks may begin."""
    if not header.use_dict:
        return b"", table_end
    start = table_end + INT32
    if start > len(chunk):
        raise TruncatedError("dsize", at=table_end, needed=INT32, got=len(chunk) - table_end)
    dsize = _int32(chunk, table_end)
    if not 1 <= dsize <= MAX_DICT:
        raise FormatError("dsize", at=table_end, expected=f"1 to {MAX_DICT}", found=dsize)
    if start + dsize > len(chunk):
        raise TruncatedError("dictionary", at=start, needed=dsize, got=len(chunk) - start)
    return chunk[start : start + dsize], start + dsize


def _int32(chunk: bytes, at: int) -> int:
    """Return the little-endian signed integer at `at`."""
    return int.from_bytes(chunk[at : at + INT32], "little", signed=True)


# Splitting a block into streams.


def _count_streams(chunk: bytes, header: Header, blocksize: int, nblocks: int) -> int:
    """Return into how many streams a block of full size was cut."""
    typesize = header.typesize
    if header.dont_split:
        return 1
    if header.version > VERSION_BLOSC1:
        return typesize
    # Before Blosc 1.11 there was no such flag and geometry alone decided; since 1.14
    # geometry or, by request, the flag. Geometry wins unless only the other one fits.
    geometric = typesize <= BLOSC1_MAX_SPLITS and blocksize // typesize >= BLOSC1_MIN_STREAM
    first, second = (typesize, 1) if geometric else (1, typesize)
    starts = [_int32(chunk, header.header_len + INT32 * j) for j in range(nblocks)]
    end = min(end for end in (*starts, header.cbytes) if end > starts[0] or end == header.cbytes)
    if _walk_streams(chunk, starts[0], first, blocksize) == end:
        return first
    return second if _walk_streams(chunk, starts[0], second, blocksize) == end else first


def _walk_streams(chunk: bytes, at: int, nstreams: int, blocksize: int) -> int:
    """Return where a block of `nstreams` streams from `at` on ends, -1 if it cannot be one."""
    if blocksize % nstreams:
        return -1
    for _ in range(nstreams):
        if not SHORT_HEADER <= at <= len(chunk) - INT32:
            return -1
        csize = _int32(chunk, at)
        if not -LONGEST_RUN_VALUE <= csize <= blocksize // nstreams:
            return -1
        at += INT32 + (csize if csize >= 0 else 1)
    return at


# Regular blocks.


def decode_block(body: Body, nblock: int) -> bytes:
    """Return block `nblock` of a chunk, with its filters still applied.

    Raises
    ------
    TruncatedError
        A stream reaches behind the end of the chunk.
    FormatError
        A start, a length or a stream breaks the format.
    UnsupportedError
        The codec is not available.

    """
    if body.header.vlblocks:
        return _decode_vlblock(body, nblock)
    chunk = body.chunk
    at = _block_start(body, nblock)
    block_nbytes = body.block_nbytes(nblock)
    nstreams = body.nstreams if block_nbytes == body.blocksize else 1
    size = block_nbytes // nstreams
    streams = []
    for _ in range(nstreams):
        if at + INT32 > len(chunk):
            raise TruncatedError("csize", at=at, needed=INT32, got=max(0, len(chunk) - at))
        csize = _int32(chunk, at)
        at += INT32
        if csize < -LONGEST_RUN_VALUE:
            raise FormatError("csize", at=at - INT32, expected=">= -255", found=csize)
        payload_len = csize if csize >= 0 else 1
        if at + payload_len > len(chunk):
            raise TruncatedError("stream", at=at, needed=payload_len, got=len(chunk) - at)
        payload = chunk[at : at + payload_len]
        if csize == 0:
            streams.append(bytes(size))
        elif csize < 0:
            if payload[0] != RUN_TOKEN:
                raise FormatError("token of a run", at=at, expected=RUN_TOKEN, found=payload[0])
            streams.append(bytes([-csize]) * size)
        else:
            streams.append(_stream(body, payload, size, at))
        at += payload_len
    return b"".join(streams)


def _block_start(body: Body, nblock: int) -> int:
    """Return where block `nblock` begins, in bytes from the start of the chunk."""
    field_at = body.header.header_len + INT32 * nblock
    start = _int32(body.chunk, field_at)
    if not body.data_start <= start <= len(body.chunk) - INT32:
        raise FormatError(
            f"bstarts[{nblock}]",
            at=field_at,
            expected=f"{body.data_start} to {len(body.chunk) - INT32}",
            found=start,
        )
    return start


def _stream(body: Body, payload: bytes, size: int, at: int) -> bytes:
    """Return the `size` bytes of a payload: itself if it is that long, else the codec's work."""
    if len(payload) == size:
        return payload
    return decode_stream(
        payload,
        size,
        codec_format=body.header.codec_format,
        dictionary=body.dictionary,
        at=at,
    )


# Blocks of variable length.


def vlblock_span(body: Body, nblock: int) -> tuple[int, int, int]:
    """Return where the payload of a block begins and ends, and what it decodes to, in bytes."""
    table = body.header.header_len
    start = _int32(body.chunk, table + INT32 * nblock)
    last = nblock == body.nblocks - 1
    end = len(body.chunk) if last else _int32(body.chunk, table + INT32 * (nblock + 1))
    return start + INT32, end, _int32(body.chunk, start)


def _check_vlblocks(body: Body) -> None:
    """Check the block table, and that the blocks add up to the content."""
    floor = body.data_start
    for nblock in range(body.nblocks):
        field_at = body.header.header_len + INT32 * nblock
        start = _int32(body.chunk, field_at)
        # At least four bytes of length and one of payload come before the next block.
        if not floor <= start < len(body.chunk) - INT32:
            raise FormatError(
                f"bstarts[{nblock}]",
                at=field_at,
                expected=f"{floor} to {len(body.chunk) - INT32 - 1}",
                found=start,
            )
        floor = start + INT32 + 1
    total = 0
    for nblock in range(body.nblocks):
        begin, _end, nbytes = vlblock_span(body, nblock)
        if not 1 <= nbytes <= body.header.nbytes - total:
            raise FormatError(
                f"length of block {nblock}",
                at=begin - INT32,
                expected=f"1 to {body.header.nbytes - total}",
                found=nbytes,
            )
        total += nbytes
    if total != body.header.nbytes:
        raise FormatError(
            "nbytes",
            at=FIELDS["nbytes"][0],
            expected=f"{total}, the sum of the blocks",
            found=body.header.nbytes,
        )


def _decode_vlblock(body: Body, nblock: int) -> bytes:
    """Return block `nblock` of a chunk with variable-length blocks."""
    begin, end, nbytes = vlblock_span(body, nblock)
    return _stream(body, body.chunk[begin:end], nbytes, begin)
