"""The value of a special chunk, from what users write to the bytes of one item; and whether the chunk stands for data.

A chunk that was written as data and holds one value is stored as a repeated value, like those that `fill_special`
makes. The meta of its first filter slot, which no reader of special chunks uses, is 1 then. So programs that follow a
writer by `iterchunks_info` tell data from what an array was made with.

Source: docs/format/chunk.md, "Special values".
"""

from __future__ import annotations

import struct
import sys
from typing import TYPE_CHECKING, Final

from superchunk.params import SpecialValue

if TYPE_CHECKING:
    from typing import SupportsFloat, SupportsIndex, TypeAlias

    from superchunk._engine import ChunkInfo

    FillValue: TypeAlias = bytes | SupportsIndex | SupportsFloat

__all__ = ["is_marked_as_data", "marked_as_data", "special_item"]

_FLOATS: Final = {2: "e", 4: "f", 8: "d"}
_INT_SIZES: Final = (1, 2, 4, 8)
_FIRST_META: Final = 24
"""The byte of a chunk's header that has the meta of the first filter slot."""


def marked_as_data(chunk: bytes) -> bytes:
    """Return a repeated-value chunk with the mark that it was written as data."""
    return chunk[:_FIRST_META] + b"\x01" + chunk[_FIRST_META + 1 :]


def is_marked_as_data(info: ChunkInfo) -> bool:
    """Return whether a chunk is a repeated-value chunk that was written as data."""
    return info.special == SpecialValue.VALUE.value and info.filters_meta[0] == 1


def special_item(kind: object, value: FillValue | None, typesize: int) -> tuple[int, bytes | None]:
    """Return the number of a special value, and the item of a repeated one.

    Parameters
    ----------
    kind
        A `SpecialValue` other than NOT_SPECIAL.
    value
        What to repeat: bytes of an item, or a number that is widened or narrowed to
        `typesize`. Given with another kind than VALUE, it wins.
    typesize
        Bytes of an item.

    Raises
    ------
    TypeError
        `kind` is not such a member.
    ValueError
        VALUE without a value, a value that does not fit, or NaN for items that are
        no floats of 4 or 8 bytes.

    """
    if not isinstance(kind, SpecialValue) or kind is SpecialValue.NOT_SPECIAL:
        msg = f"special_value: expected a SpecialValue other than NOT_SPECIAL, got {kind!r}"
        raise TypeError(msg)
    if value is not None:
        return SpecialValue.VALUE.value, _item_of(value, typesize)
    if kind is SpecialValue.VALUE:
        msg = "value: SpecialValue.VALUE needs one"
        raise ValueError(msg)
    if kind is SpecialValue.NAN and typesize not in (4, 8):
        msg = f"special_value: NaN needs items of 4 or 8 bytes, got typesize {typesize}"
        raise ValueError(msg)
    return kind.value, None


def _item_of(value: FillValue, typesize: int) -> bytes:
    if hasattr(value, "tobytes"):  # a NumPy scalar knows its bytes
        raw = value.tobytes()
        if len(raw) == typesize:
            return bytes(raw)
    if isinstance(value, (bytes, bytearray, memoryview)):
        if len(value) != typesize:
            msg = f"value: expected {typesize} bytes, one item, got {len(value)}"
            raise ValueError(msg)
        return bytes(value)
    if hasattr(value, "__index__"):
        return _int_item(value.__index__(), typesize)
    if typesize not in _FLOATS:
        msg = f"value: a float needs items of 2, 4 or 8 bytes, got typesize {typesize}; give bytes"
        raise ValueError(msg)
    try:
        return struct.pack(f"={_FLOATS[typesize]}", float(value))
    except OverflowError:
        msg = f"value: {value!r} does not fit a float of {typesize} bytes"
        raise ValueError(msg) from None


def _int_item(value: int, typesize: int) -> bytes:
    if typesize not in _INT_SIZES:
        msg = f"value: an integer needs items of 1, 2, 4 or 8 bytes, got typesize {typesize}; give bytes"
        raise ValueError(msg)
    try:
        return value.to_bytes(typesize, sys.byteorder, signed=value < 0)
    except OverflowError:
        msg = f"value: {value} does not fit {typesize} bytes"
        raise ValueError(msg) from None
