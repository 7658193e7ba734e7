"""The filters, undone: one block of bytes in, one block of the same length out.

::

    id  name        undone by
    0   none
    1   SHUFFLE     bytes of items gathered from byte planes
    2   BITSHUFFLE  bits of items gathered from bit planes
    3   DELTA       running XOR in block 0, XOR with block 0 elsewhere
    4   TRUNC_PREC  nothing: the bits are gone
    34  BYTEDELTA   running sum in each byte plane, restarting before its odd end
    35  BYTEDELTA   running sum in each byte plane
    36  INT_TRUNC   nothing

Slots are undone from 5 down to 0. Every filter copies the bytes that make up no whole
item at the end of a block. NDCELL and NDMEAN need an array's block shape, which a
chunk does not know, and are not here.

Source: docs/format/filters.md.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from reference.header import VERSION_BLOSC1
from superchunk.exceptions import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reference.header import Header

FILTER_IDS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "none": 0,
        "shuffle": 1,
        "bitshuffle": 2,
        "delta": 3,
        "trunc_prec": 4,
        "ndcell": 32,
        "ndmean": 33,
        "bytedelta_v1": 34,
        "bytedelta": 35,
        "int_trunc": 36,
    }
)
"""Filter name to its id."""

SIMD_WIDTH: Final = 16
"""Bytes after whose last multiple the old BYTEDELTA starts anew."""


def check_filters(header: Header) -> None:
    """Refuse a pipeline with a filter that cannot be undone here and has to be.

    Raises
    ------
    UnsupportedError
        A slot holds an unknown filter, or one that needs an array's block shape.

    """
    names = {ident: name for name, ident in FILTER_IDS.items()}
    for ident in () if header.instrumented else header.filters:
        if ident not in names or names[ident] in ("ndcell", "ndmean"):
            raise UnsupportedError("filter", ident, names.get(ident, "unknown"))


def undo_filters(block: bytes, header: Header, reference: bytes | None, itemsize: int | None) -> bytes:
    """Return the plain bytes of a filtered block.

    Parameters
    ----------
    block
        The block as its streams decode to.
    header
        The chunk's header; its filters have been checked.
    reference
        Block 0 with all filters undone; None for block 0 itself and for blocks of
        variable length. Only DELTA looks at it.
    itemsize
        The container's item size in bytes, if known. Only BYTEDELTA looks at it.

    """
    for slot in reversed(range(len(header.filters))):
        meta = header.filters_meta[slot]
        match header.filters[slot]:
            case 1:
                block = unshuffle(block, meta or header.typesize)
            case 2 if header.version == VERSION_BLOSC1:
                block = unbitshuffle_blosc1(block, header.typesize)
            case 2:
                block = unbitshuffle(block, header.typesize)
            case 3:
                block = undelta(block, header.typesize, reference)
            case 34:
                planes = meta or itemsize or header.typesize
                block = unbytedelta_v1(block, planes)
            case 35:
                block = unbytedelta(block, meta or itemsize or header.typesize)
            case _:  # none, TRUNC_PREC, INT_TRUNC
                pass
    return block


def unshuffle(block: bytes, width: int) -> bytes:
    """Gather items of `width` bytes from `width` planes of one byte each.

    Examples
    --------
    >>> unshuffle(bytes.fromhex("00040105020603070809"), 4).hex(" ")
    '00 01 02 03 04 05 06 07 08 09'

    """
    nitems = len(block) // width
    whole = nitems * width
    planes = np.frombuffer(block[:whole], np.uint8).reshape(width, nitems)
    return planes.T.tobytes() + block[whole:]


def unbitshuffle(block: bytes, typesize: int) -> bytes:
    """Gather the bits of items from ``8 * typesize`` bit planes.

    Only a multiple of eight items takes part. Bit k of byte m of plane p is bit
    ``p % 8`` of byte ``p // 8`` of item ``8 * m + k``; bits count from the lowest.

    Examples
    --------
    >>> unbitshuffle(bytes.fromhex("00AACCF000000000FFAACCF000000000"), 2).hex(" ")
    '00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f'

    """
    nitems = len(block) // typesize // 8 * 8
    whole = nitems * typesize
    planes = np.frombuffer(block[:whole], np.uint8).reshape(typesize * 8, nitems // 8)
    bits = np.unpackbits(planes, axis=1, bitorder="little")  # plane x item
    items = bits.reshape(typesize, 8, nitems).transpose(2, 0, 1)  # item x byte x bit
    return np.packbits(items, axis=2, bitorder="little").tobytes() + block[whole:]


def unbitshuffle_blosc1(block: bytes, typesize: int) -> bytes:
    """Do the same for chunks of version 2: all whole items take part, or none do."""
    return block if len(block) // typesize % 8 else unbitshuffle(block, typesize)


def undelta(block: bytes, typesize: int, reference: bytes | None) -> bytes:
    """XOR with block 0, or, in block 0 itself, each word with the word before it.

    Examples
    --------
    >>> undelta(bytes([7, 1, 0, 2]), 1, None).hex(" ")
    '07 06 06 04'

    """
    word = delta_width(typesize)
    nwords = len(block) // word
    whole = nwords * word
    words = np.frombuffer(block[:whole], np.uint8).reshape(nwords, word)
    if reference is None:
        plain = np.bitwise_xor.accumulate(words, axis=0)
    else:
        plain = words ^ np.frombuffer(reference[:whole], np.uint8).reshape(nwords, word)
    return plain.tobytes() + block[whole:]


def delta_width(typesize: int) -> int:
    """Return the bytes of the words that DELTA works on."""
    if typesize in (1, 2, 4, 8):
        return typesize
    return 8 if typesize % 8 == 0 else 1


def unbytedelta(block: bytes, planes: int) -> bytes:
    """Sum up each of `planes` byte planes, modulo 256.

    Examples
    --------
    >>> unbytedelta(bytes.fromhex("010203040500FF00"), 2).hex(" ")
    '01 03 06 0a 05 05 04 04'

    """
    length = len(block) // planes
    whole = length * planes
    deltas = np.frombuffer(block[:whole], np.uint8).reshape(planes, length)
    return np.add.accumulate(deltas, axis=1, dtype=np.uint8).tobytes() + block[whole:]


def unbytedelta_v1(block: bytes, planes: int) -> bytes:
    """Do the same, starting anew after the last full 16 bytes of each plane."""
    length = len(block) // planes
    whole = length * planes
    restart = length // SIMD_WIDTH * SIMD_WIDTH
    deltas = np.frombuffer(block[:whole], np.uint8).reshape(planes, length)
    front = np.add.accumulate(deltas[:, :restart], axis=1, dtype=np.uint8)
    back = np.add.accumulate(deltas[:, restart:], axis=1, dtype=np.uint8)
    return np.concatenate([front, back], axis=1).tobytes() + block[whole:]
