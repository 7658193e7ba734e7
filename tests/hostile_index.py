"""Frames of a few hundred bytes whose index claims any number of chunks."""

from __future__ import annotations

import os
from typing import Final

from superchunk import _engine
from superchunk._format.frame_header import FIXED_LEN, FrameHeader
from superchunk._format.metalayers import write_metalayers
from superchunk._format.trailer import Trailer
from superchunk._store.store_interface import FrameSettings

CHUNKSIZE: Final = 400
ZEROS: Final = b"\0\0\0\0\0\0\0\x81"


def chunk() -> bytes:
    """Return a chunk of 400 bytes."""
    return _engine.compress(os.urandom(300) + bytes(100), _engine.EncodeParams(typesize=4))


def index_of(nchunks: int, kind: str) -> bytes:
    """Return an index chunk of so many entries, all or all but one of them alike."""
    if kind == "one chunk":
        return _engine.special_chunk(3, 8 * nchunks, 8, bytes(8))
    if kind == "uninitialised":
        return _engine.special_chunk(4, 8 * nchunks, 8)
    params = _engine.EncodeParams(typesize=8, codec=5, clevel=5)
    if kind == "one chunk and a special":
        return _engine.compress(bytes(8 * nchunks - 8) + ZEROS, params)
    return _engine.compress(ZEROS * (nchunks - 1) + bytes(8), params)


def frame(nchunks: int, index_chunk: bytes, stored: bytes, *, nbytes: int, chunksize: int = CHUNKSIZE) -> bytes:
    """Return a contiguous frame around one chunk and an index."""
    block, trailer = write_metalayers({}), Trailer().to_bytes()
    header_len = FIXED_LEN + len(block)
    header = FrameHeader(
        header_len=header_len,
        frame_len=header_len + len(stored) + len(index_chunk) + len(trailer),
        nbytes=nbytes,
        cbytes=len(stored),
        chunksize=chunksize,
        has_vlmeta=False,
        varchunks=chunksize == 0,
        vlblocks=False,
        **FrameSettings(typesize=4)._asdict(),
    )
    assert nchunks == _engine.describe(index_chunk).nbytes // 8
    return b"".join((header.to_bytes(), block, stored, index_chunk, trailer))
