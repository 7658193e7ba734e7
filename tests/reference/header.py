"""The header that opens every chunk.

::

    offset  bytes  field         type
    0x00    1      version       u8
    0x01    1      versionlz     u8
    0x02    1      flags         u8    bits
    0x03    1      typesize      u8    bytes
    0x04    4      nbytes        i32   bytes
    0x08    4      blocksize     i32   bytes, or a number of blocks
    0x0C    4      cbytes        i32   bytes, header included
    0x10    6      filters       u8 x 6        from here on only if
    0x16    1      udcodec       u8            flags & 0x05 == 0x05
    0x17    1      codec_meta    u8
    0x18    6      filters_meta  u8 x 6
    0x1E    1      blosc2_flags2 u8    bits
    0x1F    1      blosc2_flags  u8    bits

Integers are little endian. Checks what can be said without the body; the body is
the work of the other modules.

Source: docs/format/chunk.md, section "Header".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self

from superchunk.exceptions import FormatError, NewerFormatError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "version": (0, 1),
        "versionlz": (1, 1),
        "flags": (2, 1),
        "typesize": (3, 1),
        "nbytes": (4, 4),
        "blocksize": (8, 4),
        "cbytes": (12, 4),
        "filters": (16, 6),
        "udcodec": (22, 1),
        "codec_meta": (23, 1),
        "filters_meta": (24, 6),
        "blosc2_flags2": (30, 1),
        "blosc2_flags": (31, 1),
    }
)
"""Field name to offset and size, both in bytes."""

SHORT_HEADER: Final = 16
EXTENDED_HEADER: Final = 32
FILTER_SLOTS: Final = 6

MAX_NBYTES: Final = 2**31 - 1 - EXTENDED_HEADER
MAX_BLOCKSIZE: Final = 536_866_816
MAX_TYPESIZE: Final = 255
MAX_ITEM: Final = 536_866_816

VERSION_BLOSC1: Final = 2
VERSION_ALPHA: Final = 3
VERSION_STABLE: Final = 5
VERSION_VLBLOCKS: Final = 6
NEWEST_THINKABLE: Final = 15
"""The highest first byte that is taken for the version of a newer chunk."""

FLAG_SHUFFLE: Final = 0x01
FLAG_MEMCPYED: Final = 0x02
FLAG_BITSHUFFLE: Final = 0x04
FLAG_DELTA: Final = 0x08
FLAG_DONT_SPLIT: Final = 0x10
FLAGS_EXTENDED: Final = FLAG_SHUFFLE | FLAG_BITSHUFFLE
CODEC_FORMAT_SHIFT: Final = 5

FLAG_USEDICT: Final = 0x01
FLAG_BIGENDIAN: Final = 0x02
FLAG_LAZY: Final = 0x08
FLAG_INSTRUMENTED: Final = 0x80
SPECIAL_SHIFT: Final = 4
SPECIAL_MASK: Final = 7

FLAG2_VLBLOCKS: Final = 0x01

SPECIAL_ZERO: Final = 1
SPECIAL_NAN: Final = 2
SPECIAL_VALUE: Final = 3
SPECIAL_UNINIT: Final = 4

FILTER_NONE: Final = 0
FILTER_SHUFFLE: Final = 1
FILTER_BITSHUFFLE: Final = 2
FILTER_DELTA: Final = 3


def _offset(field: str) -> int:
    """Return where `field` stands, in bytes from the start of the chunk."""
    return FIELDS[field][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the header of one chunk says, checked.

    The filters of a 16-byte header are made up from its flags, so that the rest of
    the decoder meets one kind of header only.
    """

    header_len: int
    """Bytes of the header, 16 or 32."""
    version: int
    flags: int
    typesize: int
    """Bytes of an item as stored, 1 to 255."""
    nbytes: int
    """Bytes of the decoded content."""
    blocksize: int
    """Bytes of a block as stated, at most `nbytes`; a number of blocks if `vlblocks`."""
    cbytes: int
    """Bytes of the chunk, header included."""
    filters: tuple[int, ...]
    udcodec: int
    codec_meta: int
    filters_meta: tuple[int, ...]
    blosc2_flags: int
    vlblocks: bool
    """Whether the blocks have lengths of their own."""

    @property
    def memcpyed(self) -> bool:
        """Whether the body is the content itself."""
        return bool(self.flags & FLAG_MEMCPYED)

    @property
    def dont_split(self) -> bool:
        """Whether each block is a single stream."""
        return bool(self.flags & FLAG_DONT_SPLIT)

    @property
    def codec_format(self) -> int:
        """The codec's number in the flags, 0 to 7."""
        return self.flags >> CODEC_FORMAT_SHIFT

    @property
    def special(self) -> int:
        """The special-value id, or 0."""
        return (self.blosc2_flags >> SPECIAL_SHIFT) & SPECIAL_MASK

    @property
    def use_dict(self) -> bool:
        """Whether a dictionary follows the block table."""
        return bool(self.blosc2_flags & FLAG_USEDICT)

    @property
    def instrumented(self) -> bool:
        """Whether the streams hold timing records instead of data."""
        return bool(self.blosc2_flags & FLAG_INSTRUMENTED)

    @classmethod
    def from_bytes(cls, chunk: bytes) -> Self:
        """Read and check the header of `chunk`.

        Parameters
        ----------
        chunk
            The whole chunk; bytes behind its `cbytes` are ignored.

        Raises
        ------
        TruncatedError
            `chunk` is shorter than its header, or than its `cbytes`.
        NewerFormatError
            The version is above 6.
        FormatError
            A field holds what the format forbids.

        """
        if len(chunk) < SHORT_HEADER:
            raise TruncatedError("chunk header", at=0, needed=SHORT_HEADER, got=len(chunk))
        version, _versionlz, flags, typesize, nbytes, blocksize, cbytes = struct.unpack_from("<BBBBiii", chunk)
        if flags & FLAGS_EXTENDED == FLAGS_EXTENDED:
            if len(chunk) < EXTENDED_HEADER:
                raise TruncatedError("chunk header", at=0, needed=EXTENDED_HEADER, got=len(chunk))
            header_len = EXTENDED_HEADER
            filters = tuple(chunk[16:22])
            udcodec, codec_meta = chunk[22], chunk[23]
            filters_meta = tuple(chunk[24:30])
            flags2, blosc2_flags = chunk[30], chunk[31]
            if version == VERSION_ALPHA:  # its writers had five slots
                filters = (*filters[:5], FILTER_NONE)
                filters_meta = (*filters_meta[:5], 0)
        else:
            header_len = SHORT_HEADER
            filters = _filters_of_short_header(flags)
            udcodec, codec_meta, flags2, blosc2_flags = 0, 0, 0, 0
            filters_meta = (0,) * FILTER_SLOTS
        if version < VERSION_STABLE:  # its writers had no such byte
            flags2 = 0
        header = cls(
            header_len=header_len,
            version=version,
            flags=flags,
            typesize=typesize,
            nbytes=nbytes,
            blocksize=blocksize,
            cbytes=cbytes,
            filters=filters,
            udcodec=udcodec,
            codec_meta=codec_meta,
            filters_meta=filters_meta,
            blosc2_flags=blosc2_flags,
            vlblocks=bool(flags2 & FLAG2_VLBLOCKS),
        )
        header._check_version(len(chunk))
        header._check_flags(flags2)
        header._check_sizes(len(chunk))
        if 0 < nbytes < blocksize and not header.vlblocks:
            return replace(header, blocksize=nbytes)
        return header

    def _check_version(self, available: int) -> None:
        """Refuse versions that nobody has described, and what Blosc1 never had."""
        if not 1 <= self.version <= VERSION_VLBLOCKS:
            at, expected, found = _offset("version"), f"1 to {VERSION_VLBLOCKS}", self.version
            if not self.version:
                raise FormatError("chunk version", at=at, expected=expected, found=found)
            # Something else than a chunk begins with any byte; a newer chunk has its sizes where they are today.
            sizes = self.nbytes >= 0 and self.blocksize > 0 and SHORT_HEADER <= self.cbytes <= available
            if self.version > NEWEST_THINKABLE or not sizes:
                expected += ", as all chunks begin"
                raise FormatError("chunk version, its first byte,", at=at, expected=expected, found=found)
            raise NewerFormatError("chunk version", at=at, expected=expected, found=found)
        blosc1 = self.header_len == SHORT_HEADER and self.version <= VERSION_BLOSC1
        if blosc1 and self.flags & FLAG_DELTA:
            raise FormatError(
                "flags",
                at=_offset("flags"),
                expected="no delta (0x08) in a chunk of Blosc1",
                found=f"0x{self.flags:02X}",
            )

    def _check_flags(self, flags2: int) -> None:
        """Refuse flags that exclude each other, or that nobody has given a meaning."""
        unknown = flags2 & ~FLAG2_VLBLOCKS
        if unknown:
            raise FormatError(
                "blosc2_flags2",
                at=_offset("blosc2_flags2"),
                expected="no bit but 0x01",
                found=f"0x{flags2:02X}",
            )
        if self.blosc2_flags & FLAG_LAZY:
            raise FormatError(
                "blosc2_flags",
                at=_offset("blosc2_flags"),
                expected="no lazy mark (0x08) outside the writer's memory",
                found=f"0x{self.blosc2_flags:02X}",
            )
        if self.special > SPECIAL_UNINIT:
            raise FormatError(
                "special-value id",
                at=_offset("blosc2_flags"),
                expected="0 to 4",
                found=self.special,
            )
        if self.vlblocks and (self.special or self.memcpyed):
            raise FormatError(
                "blosc2_flags2",
                at=_offset("blosc2_flags2"),
                expected="no variable-length blocks in a special or memcpyed chunk",
                found=f"0x{flags2:02X}",
            )

    def _check_sizes(self, available: int) -> None:
        """Check typesize, nbytes, blocksize and cbytes; `available` bytes are there."""
        if self.typesize == 0:
            raise FormatError("typesize", at=_offset("typesize"), expected="1 to 255", found=0)
        if not 0 <= self.nbytes <= MAX_NBYTES:
            raise FormatError("nbytes", at=_offset("nbytes"), expected=f"0 to {MAX_NBYTES}", found=self.nbytes)
        if not 1 <= self.blocksize <= MAX_BLOCKSIZE:
            raise FormatError(
                "blocksize",
                at=_offset("blocksize"),
                expected=f"1 to {MAX_BLOCKSIZE}",
                found=self.blocksize,
            )
        if self.cbytes < self.header_len:
            raise FormatError(
                "cbytes",
                at=_offset("cbytes"),
                expected=f">= {self.header_len}",
                found=self.cbytes,
            )
        if self.cbytes > available:
            raise TruncatedError("chunk", at=0, needed=self.cbytes, got=available)


def _filters_of_short_header(flags: int) -> tuple[int, ...]:
    """Return the six filter slots that the flags of a 16-byte header stand for."""
    slots = [FILTER_NONE] * FILTER_SLOTS
    if flags & FLAG_SHUFFLE:
        slots[5] = FILTER_SHUFFLE
    if flags & FLAG_BITSHUFFLE:
        slots[5] = FILTER_BITSHUFFLE
    if flags & FLAG_DELTA:
        slots[4] = FILTER_DELTA
    return tuple(slots)
