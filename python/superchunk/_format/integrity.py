r"""Seals, fingerprint and commit record: what tells a damaged frame from a sound one.

::

    chunk    | SCSEAL1\0 | XXH3-64 of the chunk |
    trailer  ... | SCCOMIT1 | last_synced u64 | sealed_from u64 | header_len u32 | flags u32 | header | XXH3-64 |
             0xCE ... | 0xD8 | 3 | XXH3-128 of header, index chunk and trailer |

The fingerprint excludes the header bytes that C-Blosc2 may change without rewriting the trailer. The record's copy of
the header covers these bytes. All of it is where other readers see dead bytes. No I/O here.

Source: docs/format/integrity.md.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Self

from superchunk import _engine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from superchunk._engine import Source

__all__ = [
    "FINGERPRINT_LEN",
    "FINGERPRINT_TYPE",
    "HEADER_LEN_AT",
    "RECORD_MAGIC",
    "SEAL_LEN",
    "SEAL_MAGIC",
    "CommitRecord",
    "fingerprint",
    "header_mask",
    "masked_header",
    "record_len",
]

SEAL_MAGIC = b"SCSEAL1\0"
"""The first half of a seal."""

SEAL_LEN = 16
"""Bytes of a seal."""

RECORD_MAGIC = b"SCCOMIT1"
"""The first bytes of a commit record."""

HEADER_LEN_AT = 24
"""Where a record tells the length of the header in it, a little-endian u32."""

FINGERPRINT_TYPE = 3
"""The trailer's type byte for a fingerprint of 128 bits."""

FINGERPRINT_LEN = 16
"""Bytes of the fingerprint, the last ones of the trailer."""

_HEAD = struct.Struct("<8sQQII")
_HASH = struct.Struct("<Q")
_PENDING = 1
_TAIL_LEN = 23
_SHORT = 1024
# What C-Blosc2 may change in a header without touching the trailer, besides contents.
_MASKED = ((0x19, 0x1A), (0x1B, 0x1D), (0x30, 0x39), (0x3F, 0x45), (0x46, 0x57))
_FIXED_MASK = bytes(0 if any(start <= at < stop for start, stop in _MASKED) else 0xFF for at in range(0x57))


def record_len(header_len: int) -> int:
    """Return the bytes of the commit record of a frame with such a header."""
    return _HEAD.size + header_len + _HASH.size


class CommitRecord(NamedTuple):
    """One commit, as it described itself."""

    header: bytes
    """The whole header that it wrote."""
    last_synced: int
    """Bytes of a contiguous frame that were on the disk before the header named them;
    1 or 0 in a sparse one."""
    sealed_from: int = 0
    """Chunks that begin at this byte of the frame or behind it have seals; in a sparse
    frame 0 if all have."""
    pending: bool = False
    """Whether the header in the frame may have old bytes behind its first sector; then
    the copy here counts."""

    @classmethod
    def of_trailer(cls, trailer: bytes, header_len: int) -> Self | None:
        """Return the record in a whole trailer; None if there is none, or no sound one.

        Parameters
        ----------
        trailer
            The trailer's bytes.
        header_len
            Bytes of the header of its frame.

        """
        at = len(trailer) - _TAIL_LEN - record_len(header_len)
        return None if at < 0 else cls.from_bytes(trailer[at:])

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self | None:
        """Return the record that `raw` begins with; None if there is none, or no sound one."""
        if len(raw) < _HEAD.size:
            return None
        magic, last_synced, sealed_from, header_len, flags = _HEAD.unpack_from(raw)
        length = record_len(header_len)
        if magic != RECORD_MAGIC or len(raw) < length:
            return None
        body = raw[: length - _HASH.size]
        if _HASH.unpack_from(raw, len(body))[0] != _engine.hash64([body]):
            return None
        return cls(body[_HEAD.size :], last_synced, sealed_from, bool(flags & _PENDING))


def masked_header(header: bytes, layers: Mapping[str, tuple[int, int]]) -> bytes:
    """Return `header` with zeros for what may change without a new fingerprint.

    Parameters
    ----------
    header
        All `header_len` bytes.
    layers
        Position and length of the contents of the fixed metalayers.

    """
    mask = _mask_of(len(header), tuple(layers.values()))
    return (int.from_bytes(header, "little") & mask).to_bytes(len(header), "little")


def header_mask(header_len: int, layers: Mapping[str, tuple[int, int]]) -> bytes:
    """Return 0xFF for each byte of a header that counts for the fingerprint, and 0 for the others.

    Parameters
    ----------
    header_len
        Bytes of the header.
    layers
        As for `masked_header`.

    """
    return _mask_of(header_len, tuple(layers.values())).to_bytes(header_len, "little")


def _mask_of(header_len: int, spans: tuple[tuple[int, int], ...]) -> int:
    """Return the mask as a little-endian number; those of short headers are kept, for many frames have the same."""
    return (_kept_mask if header_len <= _SHORT else _mask)(header_len, spans)


def _mask(header_len: int, spans: tuple[tuple[int, int], ...]) -> int:
    mask = bytearray(_FIXED_MASK.ljust(header_len, b"\xff"))
    for at, length in spans:
        mask[at : at + length] = bytes(length)
    return int.from_bytes(mask, "little")


_kept_mask = lru_cache(maxsize=16)(_mask)


def fingerprint(
    header: bytes, layers: Mapping[str, tuple[int, int]], index_chunk: Sequence[Source], trailer: bytes
) -> bytes:
    """Return the fingerprint of a frame.

    Parameters
    ----------
    header
        All `header_len` bytes.
    layers
        Position and length of the contents of the fixed metalayers.
    index_chunk
        The index chunk in one or more parts, exactly its `cbytes` bytes; empty without data.
    trailer
        The whole trailer; its last 16 bytes do not matter.

    """
    return _engine.hash128([masked_header(header, layers), *index_chunk, trailer[:-FINGERPRINT_LEN]])
