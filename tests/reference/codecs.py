"""One stream: from what the codec wrote to the bytes of the stream.

::

    format  codec          stream
    0       BloscLZ        blosclz.py
    1       LZ4, LZ4HC     a bare LZ4 block
    3       zlib           RFC 1950, with its header and checksum
    4       Zstandard      one or more frames
    6       by udcodec     registered codecs, none of them built in

The work is done by the packages ``lz4``, ``zlib`` and ``zstandard``; here is what the
format asks of them: exactly so many bytes, and what may stand behind.

Source: docs/format/codecs.md.
"""

from __future__ import annotations

import zlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import lz4.block
import zstandard

from reference import blosclz
from superchunk.exceptions import FormatError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FORMAT_BLOSCLZ: Final = 0
FORMAT_LZ4: Final = 1
FORMAT_SNAPPY: Final = 2
FORMAT_ZLIB: Final = 3
FORMAT_ZSTD: Final = 4
FORMAT_LIZARD: Final = 5
FORMAT_REGISTERED: Final = 6

CODEC_IDS: Final[Mapping[str, int]] = MappingProxyType(
    {"blosclz": 0, "lz4": 1, "lz4hc": 2, "snappy": 3, "zlib": 4, "zstd": 5}
)
"""Codec name to its id, as in parameters and in the header's udcodec."""

CODEC_FORMATS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "blosclz": FORMAT_BLOSCLZ,
        "lz4": FORMAT_LZ4,
        "lz4hc": FORMAT_LZ4,
        "snappy": FORMAT_SNAPPY,
        "zlib": FORMAT_ZLIB,
        "zstd": FORMAT_ZSTD,
    }
)
"""Codec name to its number in the header's flags."""

REGISTERED: Final[Mapping[int, str]] = MappingProxyType(
    {
        32: "ndlz",
        33: "zfp_acc",
        34: "zfp_prec",
        35: "zfp_rate",
        36: "openhtj2k",
        37: "grok",
        38: "openzl",
        39: "j2k",
        40: "htj2k",
    }
)
"""Registered codec id to name, all behind format 6."""

ZSTD_MAGIC: Final = bytes.fromhex("28B52FFD")
ZSTD_SKIPPABLE: Final = bytes.fromhex("2A4D18")
"""Bytes 1 to 3 of a skippable frame; the first is 0x50 to 0x5F."""
ZSTD_RLE: Final = 1
ZSTD_RESERVED: Final = 3


class StreamError(ValueError):
    """A stream that its codec cannot decode to the length asked for."""


def check_codec(codec_format: int, udcodec: int) -> None:
    """Refuse a codec that cannot be decoded here.

    Parameters
    ----------
    codec_format
        The codec's number in the chunk's flags.
    udcodec
        The codec id, looked at only for format 6.

    Raises
    ------
    UnsupportedError
        The codec is registered, or not even that, but not here.

    """
    if codec_format == FORMAT_REGISTERED:
        raise UnsupportedError("codec", udcodec, REGISTERED.get(udcodec, "unknown"))
    if codec_format not in DECODERS:
        known = {FORMAT_SNAPPY: "snappy", FORMAT_LIZARD: "lizard"}.get(codec_format, "unknown")
        raise UnsupportedError("codec format", codec_format, known)


def decode_stream(src: bytes, size: int, *, codec_format: int, dictionary: bytes, at: int) -> bytes:
    """Return the `size` bytes of one stream.

    Parameters
    ----------
    src
        What the codec wrote, exactly.
    size
        Bytes that it must decode to, at least 1.
    codec_format
        The codec's number in the chunk's flags, one that `check_codec` accepts.
    dictionary
        The chunk's dictionary, or nothing.
    at
        Where `src` begins in the chunk, in bytes; for messages only.

    Raises
    ------
    FormatError
        The stream is damaged, or decodes to another length.

    """
    name, decoder = DECODERS[codec_format]
    try:
        plain = decoder(src, size, dictionary)
    except StreamError as error:
        raise FormatError(f"{name} stream", at=at, expected=f"{size} bytes", found=error) from error
    if len(plain) != size:
        raise FormatError(f"{name} stream", at=at, expected=f"{size} bytes", found=f"{len(plain)} bytes")
    return plain


def _blosclz(src: bytes, size: int, _dictionary: bytes, /) -> bytes:
    """Decode a BloscLZ stream."""
    try:
        return blosclz.decompress(src, size)
    except blosclz.BlosclzError as error:
        raise StreamError(str(error)) from error


def _lz4(src: bytes, size: int, dictionary: bytes, /) -> bytes:
    """Decode a bare LZ4 block; the dictionary is what seems to stand before the output."""
    try:
        return bytes(lz4.block.decompress(src, uncompressed_size=size, dict=dictionary))
    except lz4.block.LZ4BlockError as error:
        raise StreamError(str(error)) from error


def _zlib(src: bytes, size: int, _dictionary: bytes, /) -> bytes:
    """Decode a zlib stream; bytes behind its end are tolerated, a missing checksum is not."""
    decoder = zlib.decompressobj(wbits=zlib.MAX_WBITS)
    try:
        plain = decoder.decompress(src, size + 1)
    except zlib.error as error:
        raise StreamError(str(error)) from error
    if len(plain) <= size and not decoder.eof:
        raise StreamError(f"an end after {len(plain)} bytes, without the checksum")
    return plain


def _zstd(src: bytes, size: int, dictionary: bytes, /) -> bytes:
    """Decode all frames of a Zstandard stream, skippable ones included."""
    plain = b""
    at = 0
    try:
        shared = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        decoder = zstandard.ZstdDecompressor(dict_data=shared)
        while at < len(src):
            if src[at + 1 : at + 4] == ZSTD_SKIPPABLE and src[at] >> 4 == 5:
                at += 8 + int.from_bytes(src[at + 4 : at + 8], "little")
                if at > len(src):
                    raise StreamError("a skippable frame that is cut")
                continue
            end = _zstd_frame_end(src, at)
            plain += _zstd_frame(decoder, src[at:end], size - len(plain))
            at = end
    except zstandard.ZstdError as error:
        raise StreamError(str(error)) from error
    return plain


def _zstd_frame(decoder: zstandard.ZstdDecompressor, frame: bytes, room: int) -> bytes:
    """Decode one frame of at most `room` bytes; memory is taken for no more than that."""
    stated = zstandard.frame_content_size(frame)
    if stated > room:
        raise StreamError(f"a frame of {stated} bytes: room for {room}")
    # Without a stated size (-1) the limit decides; 0 would mean "no limit" there.
    return decoder.decompress(frame, max_output_size=max(room, 1))


def _zstd_frame_end(src: bytes, at: int) -> int:
    """Return where the frame at `at` ends, by walking its blocks (RFC 8878, section 3.1.1)."""
    if src[at : at + 4] != ZSTD_MAGIC:
        raise StreamError(f"bytes behind the last frame, from byte {at} of the stream")
    parameters = zstandard.get_frame_parameters(src[at:])
    at += zstandard.frame_header_size(src[at:])
    last = False
    while not last:
        block = int.from_bytes(src[at : at + 3], "little")
        if at + 3 > len(src) or (block >> 1) & 3 == ZSTD_RESERVED:
            raise StreamError("a frame that is cut, or has a reserved block")
        last = bool(block & 1)
        at += 3 + (1 if (block >> 1) & 3 == ZSTD_RLE else block >> 3)
    at += 4 if parameters.has_checksum else 0
    if at > len(src):
        raise StreamError("a frame that is cut")
    return at


DECODERS: Final[Mapping[int, tuple[str, Callable[[bytes, int, bytes], bytes]]]] = MappingProxyType(
    {
        FORMAT_BLOSCLZ: ("blosclz", _blosclz),
        FORMAT_LZ4: ("lz4", _lz4),
        FORMAT_ZLIB: ("zlib", _zlib),
        FORMAT_ZSTD: ("zstd", _zstd),
    }
)
"""Codec format to name and decoder: (stream, decoded bytes, dictionary) to plain bytes."""
