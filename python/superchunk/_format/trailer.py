"""The trailer that ends a frame: vlmetalayers, its own length, a fingerprint.

::

    at        bytes   content
    0         3       0x94, version 1, 0x93
    3         ...     0xCD, u16 6 + m, then the table of `metalayers`, whose
                      positions count from the trailer's start; each content is
                      one complete chunk
    ...       ...     what only its writer understands: our commit record
    end - 23  1 + 4   0xCE, u32 trailer length
    end - 18  1 + 1   0xD8, fingerprint type: 0 none, 1 = 32, 2 = 64, 3 = 128 bit
    end - 16  16      fingerprint

Contents are carried along as they are, chunk or not. Big endian.

Source: docs/format/cframe.md, "Trailer"; docs/format/metalayers.md, "Variable metalayers".
"""

from __future__ import annotations

import struct
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Self

from superchunk._format.frame_header import MIN_TRAILER_LEN
from superchunk._format.metalayers import read_table, write_table
from superchunk.exceptions import FormatError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MAX_VLMETALAYERS_READ", "TAIL_LEN", "Trailer", "trailer_len"]

TAIL_LEN = 23
"""Bytes at the end of a trailer that have fixed places."""

MAX_VLMETALAYERS_READ = 8192
"""Most vlmetalayers that a trailer may hold; writers stop at 16."""

_TAIL = struct.Struct(">BIBB16s")
_MAX_TRAILER_LEN = 2**31 - 1


def trailer_len(tail: bytes, *, at: int, most: int) -> int:
    """Return a trailer's length, in bytes, from its last 23 bytes.

    Parameters
    ----------
    tail
        Those bytes.
    at
        Their position in the frame, for messages.
    most
        Bytes that there are for the trailer.

    Raises
    ------
    TruncatedError
        `tail` is short.
    FormatError
        The marker is missing, or the length is not from 35 to `most`.

    """
    if len(tail) < TAIL_LEN:
        raise TruncatedError("trailer length", at=at, needed=TAIL_LEN, got=len(tail))
    marker, length = _TAIL.unpack_from(tail)[:2]
    if marker != 0xCE:  # msgpack's uint 32
        raise FormatError("trailer length marker", at=at, expected="0xCE", found=f"0x{marker:02X}")
    most = min(most, _MAX_TRAILER_LEN)
    if not MIN_TRAILER_LEN <= length <= most:
        raise FormatError("trailer length", at=at + 1, expected=f"{MIN_TRAILER_LEN} to {most}", found=length)
    return int(length)


class Trailer(NamedTuple):
    """What a trailer holds."""

    vlmeta: Mapping[str, bytes] = MappingProxyType({})
    """Names and contents, in the order of the file; the first of equal names."""
    fingerprint_type: int = 0
    """0 none; 1, 2 and 3 for 32, 64 and 128 bits; others are possible in a file."""
    fingerprint: bytes = bytes(16)
    """Sixteen bytes, the value at the left."""

    @classmethod
    def from_bytes(cls, raw: bytes, *, at: int = 0) -> Self:
        """Read a trailer.

        Parameters
        ----------
        raw
            The whole trailer.
        at
            Its position in the frame, for messages.

        Raises
        ------
        FormatError
            A marker is missing, or a count, position or length is out of bounds.

        """
        size = len(raw)
        if size < MIN_TRAILER_LEN:
            raise TruncatedError("trailer", at=at, needed=MIN_TRAILER_LEN, got=size)
        trailer_len(raw[-TAIL_LEN:], at=at + size - TAIL_LEN, most=size)
        spans = read_table(raw[:-TAIL_LEN], 6, at, "vlmetalayer", MAX_VLMETALAYERS_READ)
        kind, fingerprint = _TAIL.unpack_from(raw, size - TAIL_LEN)[3:]
        return cls(
            vlmeta={name: raw[begin : begin + n] for name, (begin, n) in spans.items()},
            fingerprint_type=kind,
            fingerprint=fingerprint,
        )

    def to_bytes(self) -> bytes:
        """Return the trailer in canonical form.

        A frame that came with more than 16 vlmetalayers keeps them; who adds one
        looks at the limit.

        Raises
        ------
        MetalayerValueError
            A name over 31 bytes, or contents of 2 GiB.

        """
        body = b"\x94\x01\x93" + write_table(self.vlmeta, start=0, head=3, extra=6)
        length = len(body) + TAIL_LEN
        return body + _TAIL.pack(0xCE, length, 0xD8, self.fingerprint_type, self.fingerprint)
