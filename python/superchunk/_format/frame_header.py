"""The fixed part of the header that opens a frame.

::

    at    bytes  field          type
    0x00  1      0x9E           array of 14
    0x01  9      magic          0xA8, "b2frame", 0
    0x0B  4      header_len     i32   bytes, metalayers included
    0x10  8      frame_len      u64   bytes, the whole frame
    0x19  1      general_flags  version | 0x10 | 0x40 sizes vary | 0x80 VL blocks
    0x1A  1      frame_type     0 contiguous, 1 sparse
    0x1B  1      codec_flags    codec (6: see udcodec) | level << 4
    0x1C  1      other_flags    split mode less 1
    0x1E  8      nbytes         i64   sum over all chunks
    0x27  8      cbytes         i64   bytes between header and index chunk
    0x30  4      typesize       i32
    0x35  4      blocksize      i32   as requested, 0 automatic
    0x3A  4      chunksize      i32   0 sizes vary, -1 not known yet
    0x3F  2 + 3  threads        i16   for compression, for decompression at 0x42
    0x44  1      has_vlmeta     0xC3 or 0xC2
    0x46  1      slots          6
    0x47  6      filters
    0x4D  1      udcodec        codec id
    0x4E  1      codec_meta
    0x4F  6      filters_meta
    0x55  1      other_flags2   bit 0 dictionaries
    0x57         metalayers     see `metalayers`

msgpack markers fill the gaps, so integers are big endian. Markers are written and
not read, as in the reference: only the first ten bytes prove a frame.

Source: docs/format/cframe.md, "Header" and "Reading safely"; docs/format/legacy.md, "Release candidates".
"""

from __future__ import annotations

import struct
from typing import NamedTuple, Self

from superchunk.exceptions import (
    FormatError,
    NewerFormatError,
    TruncatedError,
)

__all__ = [
    "FIXED_LEN",
    "MAGIC",
    "MAX_CHUNKS_READ",
    "MIN_TRAILER_LEN",
    "FrameHeader",
    "has_header_markers",
    "with_sizes",
]

FIXED_LEN = 0x57
"""Bytes of the fixed part; every field that a commit changes lies inside."""

MAGIC = b"\x9e\xa8b2frame\0"
"""How a frame begins."""

MAX_CHUNKS_READ = 268_435_455
"""Most chunks that a frame may claim to hold."""

MIN_TRAILER_LEN = 35
"""Bytes of a trailer without vlmetalayers."""

_MIN_HEADER_LEN = FIXED_LEN + 10
_LAYOUT = struct.Struct(">10sBiBQB4BBqBqBiBiBiBhBhBBB6sBB6sBB")
_MAX_VERSION = 3
_OFFSETS_64 = 0x10
_VARIABLE = 0x40
_VLBLOCKS = 0x80
_UDCODEC = 6
_SLOTS = 6
_MAX_INT64 = 2**63 - 1
_BETA_MARKERS = (0x9B, 0x9C, 0x9D)
_MARKERS = {0x0A: 0xD2, 0x0F: 0xCF, 0x18: 0xA4, 0x1D: 0xD3, 0x26: 0xD3, 0x2F: 0xD2, 0x34: 0xD2, 0x39: 0xD2, 0x3E: 0xD1}
"""MessagePack markers between the fields, by position; readers do not need them."""


def has_header_markers(raw: bytes) -> bool:
    """Return whether `raw` begins with the magic and has the markers between the fields where they belong.

    Text that follows a magic has not. `FrameHeader.from_bytes` says whether the fields make sense.
    """
    return raw.startswith(MAGIC) and len(raw) >= FIXED_LEN and all(raw[at] == marker for at, marker in _MARKERS.items())


def with_sizes(fixed: bytes, *, frame_len: int, nbytes: int, cbytes: int) -> bytes:
    """Return the fixed part `fixed` of a header with other sizes: what most commits change of it."""
    return b"".join(
        (
            fixed[:0x10],
            frame_len.to_bytes(8, "big"),
            fixed[0x18:0x1E],
            nbytes.to_bytes(8, "big"),
            fixed[0x26:0x27],
            cbytes.to_bytes(8, "big"),
            fixed[0x2F:],
        )
    )


class FrameHeader(NamedTuple):
    """What the fixed part says, checked as far as it can be by itself."""

    header_len: int
    """Bytes of the header, metalayers included."""
    frame_len: int
    """Bytes of the frame, header to trailer."""
    nbytes: int
    """Uncompressed bytes of all chunks."""
    cbytes: int
    """Bytes between the header and the index chunk, dead ones included."""
    chunksize: int
    """Bytes of a full chunk; 0 if sizes vary, -1 before the first chunk."""
    typesize: int
    """Bytes of an item."""
    blocksize: int
    """Bytes of a block as requested for new chunks, 0 automatic; may be nonsense."""
    codec: int
    """Codec id for new chunks."""
    codec_meta: int
    """The codec's parameter for new chunks."""
    clevel: int
    """Compression level for new chunks."""
    filters: bytes
    """Six filter ids, slot 0 first."""
    filters_meta: bytes
    """Their six parameters."""
    splitmode: int
    """1 always, 2 never, 3 auto, 4 forward compatible."""
    use_dict: bool
    """Whether new chunks get a dictionary."""
    nthreads_comp: int
    """Threads for compression, for the record."""
    nthreads_decomp: int
    """Threads for decompression, for the record."""
    has_vlmeta: bool
    """Whether the trailer has vlmetalayers; a hint."""
    varchunks: bool
    """The flag for chunks of any size; a hint, `chunksize` decides."""
    vlblocks: bool
    """The flag for variable-length blocks; a hint, the first chunk decides."""
    sparse: bool = False
    """Whether it heads the index file of a sparse frame, where `cbytes` is only a sum."""

    @classmethod
    def from_bytes(cls, raw: bytes | memoryview, *, sparse: bool = False) -> Self:
        """Read the fixed part at the start of `raw`.

        Parameters
        ----------
        raw
            The frame, or at least its first 87 bytes.
        sparse
            It must be a sparse frame's; otherwise it must not.

        Raises
        ------
        TruncatedError
            `raw` is shorter than 87 bytes.
        NewerFormatError
            The version is above 3.
        FormatError
            It is no frame, of the other kind, or a field has an impossible value.

        """
        if len(raw) < FIXED_LEN:
            raise TruncatedError("frame header", at=0, needed=FIXED_LEN, got=len(raw))
        fields = _LAYOUT.unpack_from(raw)
        (magic, _, header_len, _, frame_len, _, general, frame_type, codec_flags, other, _, nbytes, _) = fields[:13]
        (cbytes, _, typesize, _, blocksize, _, chunksize, _, comp, _, decomp, has_vlmeta) = fields[13:25]
        (_, slots, filters, udcodec, codec_meta, filters_meta, other2, _) = fields[25:]
        if magic != MAGIC:
            _explain_magic(magic)
        if general & 0x0F > _MAX_VERSION:
            raise NewerFormatError("frame version", at=0x19, expected=f"0 to {_MAX_VERSION}", found=general & 0x0F)
        _check_frame_type(frame_type, sparse=sparse)
        if slots > _SLOTS:
            raise FormatError("filter slots", at=0x46, expected="at most 6", found=slots)
        codec = codec_flags & 0x0F
        if udcodec == 0 < codec == min(codec_meta, _UDCODEC):
            # 2.0.0-rc1 and -rc2 wrote codec and parameter one byte further, over the first filter's.
            udcodec, codec_meta, filters_meta = codec_meta, filters_meta[0], b"\0" + filters_meta[1:]
        header = cls(
            header_len=header_len,
            frame_len=frame_len,
            nbytes=nbytes,
            cbytes=cbytes,
            chunksize=chunksize,
            typesize=typesize,
            blocksize=blocksize,
            codec=udcodec if codec == _UDCODEC else codec,
            codec_meta=codec_meta,
            clevel=codec_flags >> 4,
            filters=filters[:slots].ljust(_SLOTS, b"\0"),
            filters_meta=filters_meta[:slots].ljust(_SLOTS, b"\0"),
            splitmode=(other & 3) + 1,
            use_dict=bool(other2 & 1),
            nthreads_comp=comp,
            nthreads_decomp=decomp,
            has_vlmeta=has_vlmeta == 0xC3,  # msgpack's true
            varchunks=bool(general & _VARIABLE),
            vlblocks=bool(general & _VLBLOCKS),
            sparse=sparse,
        )
        header._check()
        return header

    def to_bytes(self) -> bytes:
        """Return the 87 bytes in canonical form, reserved bits zero."""
        flags = (_VARIABLE if self.varchunks else 0) | (_VLBLOCKS if self.vlblocks else 0)
        return _LAYOUT.pack(
            MAGIC,
            0xD2,
            self.header_len,
            0xCF,
            self.frame_len,
            0xA4,
            flags | _OFFSETS_64 | (3 if flags else 2),
            int(self.sparse),
            min(self.codec, _UDCODEC) | (self.clevel & 0x0F) << 4,
            (self.splitmode - 1) & 3,
            0xD3,
            self.nbytes,
            0xD3,
            self.cbytes,
            0xD2,
            self.typesize,
            0xD2,
            self.blocksize,
            0xD2,
            self.chunksize,
            0xD1,
            min(max(self.nthreads_comp, 1), 0x7FFF),
            0xD1,
            min(max(self.nthreads_decomp, 1), 0x7FFF),
            0xC3 if self.has_vlmeta else 0xC2,
            0xD8,
            _SLOTS,
            self.filters,
            self.codec,
            self.codec_meta,
            self.filters_meta,
            int(self.use_dict),
            0,
        )

    def _check(self) -> None:
        if not MIN_TRAILER_LEN < self.frame_len <= _MAX_INT64:
            raise FormatError("frame_len", at=0x10, expected="132 to 2**63 - 1", found=self.frame_len)
        most = self.frame_len - MIN_TRAILER_LEN
        if not _MIN_HEADER_LEN <= self.header_len <= most:
            raise FormatError("header_len", at=0x0B, expected=f"{_MIN_HEADER_LEN} to {most}", found=self.header_len)
        if self.nbytes < 0:
            raise FormatError("nbytes", at=0x1E, expected="at least 0", found=self.nbytes)
        if self.cbytes < 0:
            raise FormatError("cbytes", at=0x27, expected="at least 0", found=self.cbytes)
        if self.typesize <= 0:
            raise FormatError("typesize", at=0x30, expected="at least 1", found=self.typesize)
        if self.chunksize < (-1 if self.nbytes == 0 else 0):
            expected = "at least 0, or -1 without data" if self.nbytes == 0 else "at least 0"
            raise FormatError("chunksize", at=0x3A, expected=expected, found=self.chunksize)
        if self.nbytes == 0:
            return
        if not self.sparse and self.header_len + self.cbytes > most:
            raise FormatError("cbytes", at=0x27, expected=f"at most {most - self.header_len}", found=self.cbytes)
        if self.chunksize > 0 and -(-self.nbytes // self.chunksize) > MAX_CHUNKS_READ:
            raise FormatError(
                "nbytes",
                at=0x1E,
                expected=f"at most {MAX_CHUNKS_READ} chunks of {self.chunksize} bytes",
                found=self.nbytes,
            )


def _check_frame_type(frame_type: int, *, sparse: bool) -> None:
    """Refuse the other kind of frame, and unknown ones."""
    if frame_type == int(sparse):
        return
    kinds = {0: "0, a contiguous frame", 1: "1, the index file of a sparse frame: open its directory"}
    raise FormatError(
        "frame_type",
        at=0x1A,
        expected="1, sparse" if sparse else "0, contiguous",
        found=kinds.get(frame_type, frame_type),
    )


def _explain_magic(magic: bytes) -> None:
    """Say what is where a frame should begin."""
    if magic[1:] == MAGIC[1:]:
        found = (
            f"0x{magic[0]:02X}, a frame of an early Blosc2 beta" if magic[0] in _BETA_MARKERS else f"0x{magic[0]:02X}"
        )
        raise FormatError("frame marker", at=0, expected="0x9E", found=found)
    raise FormatError("frame magic", at=1, expected=repr(MAGIC[1:]), found=repr(magic[1:]))
