"""The frames of betas: their header of 13 elements.

::

    at    bytes  field          type
    0x00  1      0x9D           array of 13
    0x01  9      magic          0xA8, "b2frame", 0
    0x0B  4      header_len     i32   bytes, metalayers included
    0x10  8      frame_len      u64   bytes, the whole frame
    0x19  1      general_flags  version, 1 or 2, and the width of offsets
    0x1A  1      frame_type     0
    0x1B  1      codec_flags    codec | level << 4
    0x1E  8      nbytes         i64   sum over all chunks
    0x27  8      cbytes         i64   bytes between header and index chunk
    0x30  4      typesize       i32
    0x35  4      chunksize      i32   0 or -1 without data
    0x3A  2 + 3  threads        i16   for compression, for decompression at 0x3D
    0x41  1      nfilters       active ones
    0x42  8      filters        their ids, at the front
    0x4A  8      filters_meta
    0x52         metalayers     as today

Integers are all big endian or all little endian. Nobody writes such frames any more, so
every marker is checked. Earlier frames are recognised by their first byte and refused.
Never writes any of it; where the bytes are is the business of `_store.legacy`.

Source: docs/format/legacy.md, "Header of 13 elements" and "Recognising a frame".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, Literal, Self

from superchunk._format.frame_header import MAGIC, MAX_CHUNKS_READ
from superchunk._format.metalayers import MAX_METALAYERS, read_table
from superchunk.exceptions import FormatError, NewerFormatError, TruncatedError, UnsupportedError

__all__ = [
    "HEAD_LEN",
    "MIN_TRAILER_LEN",
    "ByteOrder",
    "LegacyHeader",
    "byte_order",
    "is_legacy",
    "read_legacy_metalayers",
]

ByteOrder = Literal["big", "little"]
"""How all integers of a frame are written."""

HEAD_LEN: Final = 87
"""Bytes to look at before a file is taken for a frame."""

MIN_TRAILER_LEN: Final = 30
"""Bytes of a trailer without user metadata."""

_MARKER = 0x9D
_ALPHA_MARKERS = (0x9B, 0x9C)
_FIXED_LEN = 0x52
_MIN_HEADER_LEN = _FIXED_LEN + 10
_SIZES_AT = 0x0A
_LAYOUT = "BiBQB4BBqBqBiBiBhBhBBB8s8s"
_LAYOUTS = {"big": struct.Struct(f">{_LAYOUT}"), "little": struct.Struct(f"<{_LAYOUT}")}
_MARKERS = {
    0x0A: 0xD2,
    0x0F: 0xCF,
    0x18: 0xA4,
    0x1D: 0xD3,
    0x26: 0xD3,
    0x2F: 0xD2,
    0x34: 0xD2,
    0x39: 0xD1,
    0x3C: 0xD1,
    0x40: 0xD8,
    0x52: 0x93,
    0x53: 0xCD,
    0x56: 0xDE,
}
_FLAGS_AT = 0x19
_VERSIONS = (1, 2)
_LITTLE_VERSION = 2
_SLOTS = 6
_MAX_INT64 = 2**63 - 1
_LITTLE_ENDIAN_SPECIALS = (0x81, 0x82)


def is_legacy(head: bytes | memoryview) -> bool:
    """Return whether `head`, the first bytes of a frame, are those of an alpha's or a beta's."""
    return bytes(head[1:10]) == MAGIC[1:] and head[0] in (_MARKER, *_ALPHA_MARKERS)


def byte_order(head: bytes, size: int) -> ByteOrder:
    """Return the byte order in which the two lengths of a header make sense.

    Lengths that read well in both directions take gigabytes; then the version decides.

    Parameters
    ----------
    head
        The frame, or at least its first 87 bytes.
    size
        Bytes that there are from the frame's first one on.

    Raises
    ------
    UnsupportedError
        The frame is of an alpha, or of the first beta.
    TruncatedError
        `head` is shorter than 87 bytes.
    FormatError
        It is no frame of a beta, or in neither order the header fits the frame, and the
        frame what there is.

    """
    if len(head) < HEAD_LEN:
        raise TruncatedError("frame header", at=0, needed=HEAD_LEN, got=len(head))
    if not is_legacy(head):
        raise FormatError("frame marker and magic", at=0, expected="0x9D and b2frame", found=repr(head[:10]))
    if head[0] in _ALPHA_MARKERS:
        error = UnsupportedError("frame marker", head[0], "Blosc2 before 2.0.0-beta.2")
        why = "a frame of Blosc2 2.0.0-alpha to -beta.1 (2019), which cannot be read"
        error.args = (f"frame marker at byte 0: expected 0x9D or 0x9E, found 0x{head[0]:02X}: {why}",)
        raise error
    lengths: dict[ByteOrder, tuple[int, int]] = {
        "big": struct.unpack_from(">ixQ", head, _SIZES_AT + 1),
        "little": struct.unpack_from("<ixQ", head, _SIZES_AT + 1),
    }
    found = [
        order
        for order, (header_len, frame_len) in lengths.items()
        if _MIN_HEADER_LEN <= header_len <= frame_len - MIN_TRAILER_LEN and frame_len <= size
    ]
    if not found:
        raise FormatError(
            "header_len and frame_len",
            at=_SIZES_AT + 1,
            expected=f"{_MIN_HEADER_LEN} <= header_len <= frame_len - {MIN_TRAILER_LEN} and frame_len <= {size}",
            found=" or ".join(f"{lengths[order]} ({order} endian)" for order in lengths),
        )
    return found[-1 if head[_FLAGS_AT] & 0x0F == _LITTLE_VERSION else 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyHeader:
    """What the 13 elements say, checked as far as they can be by themselves."""

    order: ByteOrder
    """How integers are written."""
    header_len: int
    """Bytes of the header, metalayers included."""
    frame_len: int
    """Bytes of the frame, header to trailer."""
    nbytes: int
    """Uncompressed bytes of all chunks."""
    cbytes: int
    """Bytes between the header and the index chunk."""
    chunksize: int
    """Bytes of a full chunk; -1, not known yet, where a frame without data says 0."""
    typesize: int
    """Bytes of an item."""
    codec: int
    """Codec id: as today, and 3 for snappy, 6 for lizard."""
    clevel: int
    """Compression level."""
    filters: bytes
    """Six filter ids, the last one in slot 5, where writers of today put it."""
    filters_meta: bytes
    """Their six parameters."""
    nthreads_comp: int
    """Threads for compression, for the record."""
    nthreads_decomp: int
    """Threads for decompression, for the record."""

    @classmethod
    def from_bytes(cls, raw: bytes, order: ByteOrder) -> Self:
        """Read the header at the start of `raw`.

        Parameters
        ----------
        raw
            The frame, or at least its first 92 bytes.
        order
            What `byte_order` found.

        Raises
        ------
        TruncatedError
            `raw` is shorter than 92 bytes.
        NewerFormatError
            The version is above 2.
        UnsupportedError
            The header belongs to a sparse frame.
        FormatError
            A marker is missing, or a field has an impossible value.

        """
        if len(raw) < _MIN_HEADER_LEN:
            raise TruncatedError("frame header", at=0, needed=_MIN_HEADER_LEN, got=len(raw))
        for at, marker in _MARKERS.items():
            if raw[at] != marker:
                raise FormatError("frame header marker", at=at, expected=f"0x{marker:02X}", found=f"0x{raw[at]:02X}")
        fields = _LAYOUTS[order].unpack_from(raw, _SIZES_AT)
        (_, header_len, _, frame_len, _, general, frame_type, codec_flags, _, _, nbytes, _, cbytes) = fields[:13]
        (_, typesize, _, chunksize, _, comp, _, decomp, _, _, nfilters, ids, metas) = fields[13:26]
        _check_kind(general & 0x0F, frame_type)
        if nfilters > _SLOTS:
            raise FormatError("number of filters", at=0x41, expected="at most 6", found=nfilters)
        header = cls(
            order=order,
            header_len=header_len,
            frame_len=frame_len,
            nbytes=nbytes,
            cbytes=cbytes,
            chunksize=-1 if nbytes == chunksize == 0 else chunksize,
            typesize=typesize,
            codec=codec_flags & 0x0F,
            clevel=codec_flags >> 4,
            filters=ids[:nfilters].rjust(_SLOTS, b"\0"),
            filters_meta=metas[:nfilters].rjust(_SLOTS, b"\0"),
            nthreads_comp=comp,
            nthreads_decomp=decomp,
        )
        header._check()
        return header

    @property
    def index_at(self) -> int:
        """Where the index chunk is, or without data the trailer: bytes."""
        return self.header_len + (self.cbytes if self.nbytes else 0)

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        return -(-self.nbytes // self.chunksize) if self.nbytes else 0

    @property
    def special_codes(self) -> tuple[int, ...]:
        """Top bytes of index entries that stand for whole chunks; none in the first betas."""
        return _LITTLE_ENDIAN_SPECIALS if self.order == "little" else ()

    def _check(self) -> None:
        if not _MIN_HEADER_LEN + MIN_TRAILER_LEN <= self.frame_len <= _MAX_INT64:
            raise FormatError("frame_len", at=0x10, expected="122 to 2**63 - 1", found=self.frame_len)
        most = self.frame_len - MIN_TRAILER_LEN
        if not _MIN_HEADER_LEN <= self.header_len <= most:
            raise FormatError("header_len", at=0x0B, expected=f"{_MIN_HEADER_LEN} to {most}", found=self.header_len)
        if self.nbytes < 0:
            raise FormatError("nbytes", at=0x1E, expected="at least 0", found=self.nbytes)
        if self.cbytes < 0:
            raise FormatError("cbytes", at=0x27, expected="at least 0", found=self.cbytes)
        if self.typesize <= 0:
            raise FormatError("typesize", at=0x30, expected="at least 1", found=self.typesize)
        if self.chunksize < (1 if self.nbytes else -1):
            expected = "at least 1" if self.nbytes else "at least -1 without data"
            raise FormatError("chunksize", at=0x35, expected=expected, found=self.chunksize)
        if self.nbytes == 0:
            return
        if self.header_len + self.cbytes > most:
            raise FormatError("cbytes", at=0x27, expected=f"at most {most - self.header_len}", found=self.cbytes)
        if self.nchunks > MAX_CHUNKS_READ:
            raise FormatError(
                "nbytes",
                at=0x1E,
                expected=f"at most {MAX_CHUNKS_READ} chunks of {self.chunksize} bytes",
                found=self.nbytes,
            )


def _check_kind(version: int, frame_type: int) -> None:
    """Refuse versions and frame types that no frame with this header has."""
    if version not in _VERSIONS:
        kind = NewerFormatError if version else FormatError
        raise kind("frame version", at=0x19, expected="1 or 2 in a header of 13 elements", found=version)
    if frame_type == 1:
        error = UnsupportedError("frame type", 1, "sparse")
        error.args = ("frame_type at byte 26: expected 0 (contiguous), found 1: a sparse frame of a beta",)
        raise error
    if frame_type:
        raise FormatError("frame_type", at=0x1A, expected="0", found=frame_type)


def read_legacy_metalayers(header: bytes, order: ByteOrder) -> dict[str, tuple[int, int]]:
    """Return position and length, in bytes, of each fixed metalayer's content.

    Parameters
    ----------
    header
        The whole header, all `header_len` bytes.
    order
        How integers are written.

    Raises
    ------
    FormatError
        The block is damaged or reaches beyond the header.

    """
    return read_table(header, _FIXED_LEN + 4, 0, "metalayer", MAX_METALAYERS, order)
