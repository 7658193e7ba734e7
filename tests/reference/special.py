"""Chunks that say one value instead of holding data.

::

    id  name    body              decodes to
    1   ZERO    -                 zero bytes
    2   NAN     -                 quiet NaNs, 4 or 8 bytes each
    3   VALUE   one item          that item, over and over
    4   UNINIT  -                 anything; here, as everywhere in superchunk, zeros

Source: docs/format/chunk.md, section "Special values".
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from reference.header import (
    FIELDS,
    MAX_ITEM,
    SPECIAL_NAN,
    SPECIAL_VALUE,
)
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reference.header import Header

NAN: Final[Mapping[int, bytes]] = MappingProxyType({4: bytes.fromhex("0000C07F"), 8: bytes.fromhex("000000000000F87F")})
"""The one bit pattern of NaN by item size in bytes: positive and quiet."""


def decode_special(chunk: bytes, header: Header, start: int, stop: int) -> bytes:
    """Return bytes `start` to `stop` of the content of a special chunk.

    Parameters
    ----------
    chunk
        The whole chunk.
    header
        Its header, with `special` not 0.
    start, stop
        Range in bytes, ``0 <= start <= stop <= header.nbytes``.

    Raises
    ------
    FormatError
        The item does not fit the chunk: its width, or `nbytes` as a multiple of it.

    """
    item = _item(chunk, header)
    phase = start % len(item)
    repeats = -(-(phase + stop - start) // len(item))
    return (item * repeats)[phase : phase + stop - start]


def _item(chunk: bytes, header: Header) -> bytes:
    """Return the bytes that the chunk repeats."""
    if header.special == SPECIAL_VALUE:
        # The width is what the chunk has room for: typesize is 1 for wide items.
        width = header.cbytes - header.header_len
        if not 1 <= width <= min(header.nbytes, MAX_ITEM):
            raise FormatError(
                "repeated value",
                at=header.header_len,
                expected=f"1 to {min(header.nbytes, MAX_ITEM)} bytes",
                found=f"{width} bytes",
            )
        _check_multiple(header, width)
        return chunk[header.header_len : header.cbytes]
    if header.special == SPECIAL_NAN:
        if header.typesize not in NAN:
            raise FormatError(
                "typesize of a NaN chunk",
                at=FIELDS["typesize"][0],
                expected="4 or 8",
                found=header.typesize,
            )
        _check_multiple(header, header.typesize)
        return NAN[header.typesize]
    return b"\0"


def _check_multiple(header: Header, width: int) -> None:
    """Refuse content that is no whole number of items of `width` bytes."""
    if header.nbytes % width:
        raise FormatError(
            "nbytes of a special chunk",
            at=FIELDS["nbytes"][0],
            expected=f"a multiple of {width}",
            found=header.nbytes,
        )
