"""The trailer of betas: the user's bytes, its own length, an unused fingerprint.

::

    at        bytes   content
    0         2       0x94, version 1; in the first beta 0x0D, 0
    2         1 + 4   0xC6, u32 length, may be 0
    7         ...     one chunk with the user's bytes
    end - 23  1 + 4   0xCE, u32 trailer length
    end - 18  1 + 17  0xD8, fingerprint; not read

There are no names. The chunk is carried along as it is, damaged or not.

Source: docs/format/legacy.md, "Trailer".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from superchunk._format.legacy_header import MIN_TRAILER_LEN
from superchunk._format.trailer import TAIL_LEN
from superchunk.exceptions import FormatError, TruncatedError

if TYPE_CHECKING:
    from superchunk._format.legacy_header import ByteOrder

__all__ = ["USERMETA", "LegacyTrailer"]

USERMETA: Final = "usermeta"
"""The vlmetalayer that stands for the user metadata, which had no name."""

_TAIL = {"big": struct.Struct(">BIB"), "little": struct.Struct("<BIB")}
_BLOB = {"big": struct.Struct(">BI"), "little": struct.Struct("<BI")}
_BLOB_AT = 2
_MAX_TRAILER_LEN = 2**31 - 1
_STARTS = (b"\x94\x01", b"\x0d\x00")


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyTrailer:
    """What the trailer of a beta holds."""

    version: int
    """0 in the first beta, 1 later."""
    usermeta: bytes
    """One chunk with the user's bytes, nothing if there are none; may be damaged."""

    @staticmethod
    def length(tail: bytes, order: ByteOrder, *, at: int, most: int) -> int:
        """Return a trailer's length, in bytes, from its last 23 bytes.

        Parameters
        ----------
        tail
            Those bytes.
        order
            How integers are written.
        at
            Their position in the frame, for messages.
        most
            Bytes that there are for the trailer.

        Raises
        ------
        TruncatedError
            `tail` is short.
        FormatError
            A marker is missing, or the length is not from 30 to `most`.

        """
        if len(tail) < TAIL_LEN:
            raise TruncatedError("trailer length", at=at, needed=TAIL_LEN, got=len(tail))
        marker, length, extension = _TAIL[order].unpack_from(tail)
        for name, place, expected, found in (
            ("trailer length marker", at, 0xCE, marker),
            ("fingerprint marker", at + 5, 0xD8, extension),
        ):
            if found != expected:
                raise FormatError(name, at=place, expected=f"0x{expected:02X}", found=f"0x{found:02X}")
        most = min(most, _MAX_TRAILER_LEN)
        if not MIN_TRAILER_LEN <= length <= most:
            raise FormatError("trailer length", at=at + 1, expected=f"{MIN_TRAILER_LEN} to {most}", found=length)
        return int(length)

    @classmethod
    def from_bytes(cls, raw: bytes, order: ByteOrder, *, at: int = 0) -> Self:
        """Read a trailer.

        Parameters
        ----------
        raw
            The whole trailer.
        order
            How integers are written.
        at
            Its position in the frame, for messages.

        Raises
        ------
        TruncatedError
            `raw` is shorter than 30 bytes.
        FormatError
            A marker is missing, or the lengths contradict each other.

        """
        size = len(raw)
        if size < MIN_TRAILER_LEN:
            raise TruncatedError("trailer", at=at, needed=MIN_TRAILER_LEN, got=size)
        if raw[:2] not in _STARTS:
            raise FormatError("trailer start", at=at, expected="94 01 or 0D 00", found=raw[:2].hex(" ").upper())
        marker, length = _BLOB[order].unpack_from(raw, _BLOB_AT)
        if marker != 0xC6:  # msgpack's bin 32
            raise FormatError("user metadata marker", at=at + _BLOB_AT, expected="0xC6", found=f"0x{marker:02X}")
        if length != size - MIN_TRAILER_LEN:
            raise FormatError(
                "user metadata length",
                at=at + _BLOB_AT + 1,
                expected=f"{size - MIN_TRAILER_LEN}, as the trailer can hold",
                found=length,
            )
        begin = _BLOB_AT + 5
        return cls(version=raw[1], usermeta=raw[begin : begin + length])
