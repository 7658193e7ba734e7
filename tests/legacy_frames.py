"""Frames as betas wrote them, put together from docs/format/legacy.md.

::

    frame = Legacy(order="little", chunks=[...], usermeta=b"...").to_bytes()

Written from the page and not with the code under test; chunks are the engine's, with the version
byte that chunks had then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from superchunk import _engine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Order = Literal["big", "little"]

ZEROS = 0x81
NAN = 0x82
SHUFFLE = 1
DELTA = 3
LZ4 = 1
TYPESIZE = 4
CHUNKSIZE = 400


def content(seed: int, nbytes: int = CHUNKSIZE) -> bytes:
    """Return `nbytes` that depend on `seed` and compress a little."""
    return b"".join((seed * 7919 + n * n % 251).to_bytes(4, "little") for n in range(-(-nbytes // 4)))[:nbytes]


def old_chunk(data: bytes, *, codec: int = LZ4, clevel: int = 5, typesize: int = TYPESIZE) -> bytes:
    """Return a chunk of version 4."""
    made = _engine.compress(data, _engine.EncodeParams(codec=codec, clevel=clevel, typesize=typesize))
    return b"\4" + made[1:]


@dataclass(frozen=True, kw_only=True)
class Legacy:
    """What goes into a frame. Chunks are bytes, or the top byte of a special entry."""

    order: Order = "big"
    chunks: Sequence[bytes | int] = ()
    nbytes: int | None = None
    """None: full chunks."""
    meta: Mapping[str, bytes] = field(default_factory=dict)
    usermeta: bytes | None = None
    """The user's bytes, None: an empty field."""
    codec: int = LZ4
    clevel: int = 5
    filters: Sequence[tuple[int, int]] = ((SHUFFLE, 0),)
    typesize: int = TYPESIZE
    chunksize: int = CHUNKSIZE
    trailer_start: bytes = b"\x94\x01"
    index_level: int = 5
    """At which the index chunk is compressed."""

    def number(self, value: int, size: int) -> bytes:
        """Return an integer in this frame's order."""
        return value.to_bytes(size, self.order, signed=value < 0)

    def metalayers(self) -> bytes:
        """Return the block behind byte 0x52, marker included."""
        names = sum(len(name.encode()) + 6 for name in self.meta)
        position = 0x59 + names + 3
        table, contents = b"", b""
        for name, layer in self.meta.items():
            raw = name.encode()
            table += bytes([0xA0 + len(raw)]) + raw + b"\xd2" + self.number(position + len(contents), 4)
            contents += b"\xc6" + self.number(len(layer), 4) + layer
        count = self.number(len(self.meta), 2)
        return b"\x93\xcd" + self.number(7 + names, 2) + b"\xde" + count + table + b"\xdc" + count + contents

    def trailer(self) -> bytes:
        """Return the trailer."""
        chunk = b"" if self.usermeta is None else old_chunk(self.usermeta, typesize=1)
        body = self.trailer_start + b"\xc6" + self.number(len(chunk), 4) + chunk
        return body + b"\xce" + self.number(len(body) + 23, 4) + b"\xd8" + bytes(17)

    def index(self) -> bytes:
        """Return the index chunk, nothing without chunks."""
        entries, at = b"", 0
        for chunk in self.chunks:
            if isinstance(chunk, int):
                entries += bytes(7) + bytes([chunk])
            else:
                entries += at.to_bytes(8, "little")
                at += len(chunk)
        return old_chunk(entries, codec=0, clevel=self.index_level, typesize=8) if entries else b""

    def to_bytes(self) -> bytes:
        """Return the frame."""
        data = b"".join(chunk for chunk in self.chunks if isinstance(chunk, bytes))
        nbytes = len(self.chunks) * self.chunksize if self.nbytes is None else self.nbytes
        block, behind = self.metalayers(), self.index() + self.trailer()
        header_len = 0x52 + len(block)
        number = self.number
        ids = bytes(kind for kind, _ in self.filters)
        metas = bytes(meta for _, meta in self.filters)
        head = b"\x9d\xa8b2frame\0"
        head += b"\xd2" + number(header_len, 4) + b"\xcf" + number(header_len + len(data) + len(behind), 8)
        head += b"\xa4" + bytes([0x12 if self.order == "little" else 0x21, 0, self.codec | self.clevel << 4, 0])
        head += b"\xd3" + number(nbytes, 8) + b"\xd3" + number(len(data), 8)
        head += b"\xd2" + number(self.typesize, 4) + b"\xd2" + number(self.chunksize, 4)
        head += b"\xd1" + number(1, 2) + b"\xd1" + number(2, 2) + b"\xc2"
        head += b"\xd8" + bytes([len(ids)]) + ids.ljust(8, b"\0") + metas.ljust(8, b"\0")
        assert len(head) == 0x52
        return head + block + data + behind
