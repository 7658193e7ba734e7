"""The fixed metalayers in a frame's header: names and raw contents.

::

    at        bytes  content
    0x57      1      0x93
    0x58      1 + 2  0xCD, u16   7 + m
    0x5B      1 + 2  0xDE, u16   n, number of metalayers
    0x5E      m      per layer: 0xA0 + len, name, 0xD2, i32 position of its content
                     marker, from the frame's first byte
    0x5E + m  1 + 2  0xDC, u16   n
    0x61 + m  ...    per layer: 0xC6, u32 length, content

The vlmetalayers of the trailer have a table of the same form; `read_table` and
`write_table` serve both. Does not know what contents mean.

Source: docs/format/metalayers.md, "Fixed metalayers" and "Reading safely".
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal

from superchunk._format.frame_header import FIXED_LEN
from superchunk.exceptions import FormatError, MetalayerValueError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "MAX_METALAYERS",
    "MAX_NAME_LEN",
    "PLACEHOLDERS",
    "check_name",
    "header_len_for",
    "read_metalayers",
    "read_table",
    "without_cache_layers",
    "write_metalayers",
    "write_table",
]

MAX_METALAYERS = 16
"""Most layers of either kind that every reader and writer can handle."""

MAX_NAME_LEN = 31
"""Bytes of the longest name, as UTF-8."""

PLACEHOLDERS = frozenset(("LazyArray", "b2o", "proxy-source"))
"""Fixed layers of frames whose chunks are not their data; see `superchunk._integrity.placeholders`."""

_MAX_CONTENT = 2**31 - 1
_FIXSTR, _BIN32, _INT32, _MAP16 = 0xA0, 0xC6, 0xD2, 0xDE  # msgpack markers
_U16 = struct.Struct(">H")
_I32 = struct.Struct(">i")
_BLOB = struct.Struct(">BI")
_NUMBERS = {
    "big": (_U16, _I32, _BLOB),
    "little": (struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<BI")),
}


def without_cache_layers(meta: Mapping[str, bytes], layers: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return those of `layers`, of either kind, that go with a copy of the items of a frame with the fixed ones `meta`.

    What a cache of another array notes about itself, ``proxy-source`` and its like, is not true of a copy.
    """
    cache = "proxy-source" in meta
    return {name: content for name, content in layers.items() if not (cache and name.startswith("proxy-"))}


def check_name(name: str) -> bytes:
    """Return `name` as it is stored.

    Raises
    ------
    MetalayerValueError
        It takes more than 31 bytes, or is no text that UTF-8 can hold.

    """
    try:
        raw = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise MetalayerValueError(f"metalayer name {name!r}: expected UTF-8 text, {error}") from None
    if len(raw) > MAX_NAME_LEN:
        raise MetalayerValueError(f"metalayer name {name!r}: expected at most {MAX_NAME_LEN} bytes, got {len(raw)}")
    return raw


def read_metalayers(header: bytes) -> dict[str, tuple[int, int]]:
    """Return where each fixed metalayer's content lies.

    Parameters
    ----------
    header
        The whole header, all `header_len` bytes.

    Returns
    -------
    dict
        Name to ``(position, length)`` in bytes, in the order of the file. Of equal
        names the first counts; names that are no UTF-8 are decoded with
        ``surrogateescape``.

    Raises
    ------
    FormatError
        The block is damaged or reaches beyond the header.

    """
    return read_table(header, FIXED_LEN + 4, 0, "metalayer", MAX_METALAYERS)


def write_metalayers(layers: Mapping[str, bytes]) -> bytes:
    """Return the block for the fixed metalayers `layers`, which begins at byte 0x57.

    Raises
    ------
    MetalayerValueError
        More than 16, a name or a content that is too long.

    """
    if len(layers) > MAX_METALAYERS:
        raise MetalayerValueError(f"metalayers: expected at most {MAX_METALAYERS}, got {len(layers)}")
    return b"\x93" + write_table(layers, start=FIXED_LEN, head=1, extra=7)


def header_len_for(layers: Mapping[str, bytes]) -> int:
    """Return the bytes of a header with the metalayers `layers`."""
    return FIXED_LEN + len(write_metalayers(layers))


def read_table(
    raw: bytes,
    at: int,
    base: int,
    what: str,
    most: int,
    order: Literal["big", "little"] = "big",
    *,
    lenient: bool = False,
) -> dict[str, tuple[int, int]]:
    """Return where the contents of a table of layers lie.

    Parameters
    ----------
    raw
        Header or trailer, whole; positions in the table count from its first byte.
    at
        Where the table's map marker 0xDE stands.
    base
        What to add to a position in error messages, bytes.
    what
        ``"metalayer"`` or ``"vlmetalayer"``, for messages.
    most
        Largest number of layers.
    order
        How integers are written; some frames of betas have them little endian.
    lenient
        Leave contents out that are not where the table says, instead of raising.

    Raises
    ------
    FormatError
        A marker is missing, or a count, position or length is out of bounds.

    """
    size = len(raw)
    u16, i32, blob = _NUMBERS[order]
    names, at = _read_names(raw, at, base, what, most, u16)
    layers: dict[str, tuple[int, int]] = {}
    total = 0
    for name, place in names:
        position = i32.unpack_from(raw, place)[0]
        if lenient and not _is_content(raw, position, at + 3, blob):
            continue
        if not at + 3 <= position <= size - 5:
            raise FormatError(
                f"{what} {name!r} position",
                at=base + place,
                expected=f"{at + 3} to {size - 5}",
                found=position,
            )
        marker, length = blob.unpack_from(raw, position)
        if marker != _BIN32:
            raise _marker(f"{what} {name!r} content", base + position, _BIN32, marker)
        if length > size - position - 5:
            raise FormatError(
                f"{what} {name!r} length",
                at=base + position + 1,
                expected=f"at most {size - position - 5}",
                found=length,
            )
        total += length
        if total > size:
            raise FormatError(
                f"{what} contents",
                at=base + position,
                expected=f"at most {size} bytes together",
                found=total,
            )
        layers.setdefault(name, (position + 5, length))
    return layers


def _is_content(raw: bytes, position: int, least: int, blob: struct.Struct) -> bool:
    """Return whether there is a content at a position of a table, and all of it."""
    if not least <= position <= len(raw) - blob.size:
        return False
    marker, length = blob.unpack_from(raw, position)
    return bool(marker == _BIN32 and length <= len(raw) - position - blob.size)


def _read_names(
    raw: bytes, at: int, base: int, what: str, most: int, u16: struct.Struct
) -> tuple[list[tuple[str, int]], int]:
    """Return names, where their positions stand, and where the names end."""
    size = len(raw)
    if at + 6 > size:
        raise TruncatedError(f"{what} count", at=base + at, needed=6, got=max(size - at, 0))
    if raw[at] != _MAP16:
        raise _marker(f"{what} count", base + at, _MAP16, raw[at])
    count = u16.unpack_from(raw, at + 1)[0]
    if count > most:
        raise FormatError(f"{what} count", at=base + at + 1, expected=f"at most {most}", found=count)
    at += 3
    names = []
    for _ in range(count):
        if at >= size or raw[at] & 0xE0 != _FIXSTR:
            raise _marker(f"{what} name", base + at, _FIXSTR, raw[at] if at < size else None)
        end = at + 1 + (raw[at] & 0x1F)
        if end + 5 > size:
            raise TruncatedError(f"{what} name", at=base + at, needed=end + 5 - at, got=size - at)
        if raw[end] != _INT32:
            raise _marker(f"{what} position", base + end, _INT32, raw[end])
        names.append((raw[at + 1 : end].decode("utf-8", "surrogateescape"), end + 1))
        at = end + 5
    return names, at


def write_table(layers: Mapping[str, bytes], *, start: int, head: int, extra: int) -> bytes:
    """Return a table of layers and their contents, from the 0xCD marker on.

    Parameters
    ----------
    layers
        Names and contents, in the order to write them.
    start, head
        The table's 0xCD marker stands `start` + `head` bytes behind the byte that
        positions count from.
    extra
        What the map size counts besides the names.

    Raises
    ------
    MetalayerValueError
        A name over 31 bytes, or contents of 2 GiB.

    """
    names = [check_name(name) for name in layers]
    table_len = sum(len(name) + 6 for name in names)
    position = start + head + 9 + table_len
    count = _U16.pack(len(names))
    table = [b"\xcd", _U16.pack(min(extra + table_len, 0xFFFF)), b"\xde", count]
    contents = [b"\xdc", count]
    for name, content in zip(names, layers.values(), strict=True):
        if position + len(content) > _MAX_CONTENT:
            raise MetalayerValueError(
                f"metalayer {name!r}: expected contents of less than 2 GiB together, got {len(content)} bytes"
            )
        table += (bytes((0xA0 + len(name),)), name, b"\xd2", _I32.pack(position))
        contents += (_BLOB.pack(0xC6, len(content)), content)
        position += 5 + len(content)
    return b"".join(table + contents)


def _marker(field: str, at: int, expected: int, found: int | None) -> FormatError:
    """Return the error for a msgpack marker that is not there."""
    return FormatError(
        f"{field} marker",
        at=at,
        expected=f"0x{expected:02X}",
        found="the end" if found is None else f"0x{found:02X}",
    )
