"""The reference decoder on every chunk of the frames and arrays of the corpus.

Finds the chunks with the fewest lines that do; what a frame reader must check is
not checked here.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import corpus
import pytest
from reference import decode

from superchunk.exceptions import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

PLUGINS = {
    "filter:ndcell": "filter 32 (ndcell)",
    "filter:ndmean": "filter 33 (ndmean)",
    "codec:ud32": "codec 32 (ndlz)",
    "codec:ud33": "codec 33 (zfp_acc)",
    "codec:ud34": "codec 34 (zfp_prec)",
    "codec:ud35": "codec 35 (zfp_rate)",
}
"""What needs an array's block shape, by feature."""

SPECIALS = {0x81: 0x10, 0x82: 0x20, 0x84: 0x40}
"""Top byte of a special entry to byte 31 of the chunk that it stands for."""


def plain_chunks(entry: corpus.Entry) -> Iterator[bytes]:
    """Yield the content of each chunk of a frame or array."""
    frame = (entry.path / "chunks.b2frame").read_bytes() if entry.is_folder else entry.read()
    (header_len,) = struct.unpack_from(">i", frame, 0x0B)
    (nbytes,) = struct.unpack_from(">q", frame, 0x1E)
    (cbytes,) = struct.unpack_from(">q", frame, 0x27)
    (typesize,) = struct.unpack_from(">i", frame, 0x30)
    (chunksize,) = struct.unpack_from(">i", frame, 0x3A)
    if nbytes == 0:
        return
    index = decode(frame[header_len + (0 if entry.is_folder else cbytes) :], itemsize=8)
    for nchunk, (offset,) in enumerate(struct.iter_unpack("<q", index)):
        if offset < 0:
            size = min(chunksize, nbytes - nchunk * chunksize)
            front = struct.pack("<BBBBiii", 5, 1, 5, min(typesize, 255), size, size, 32)
            chunk = front + bytes(15) + bytes([SPECIALS[(offset >> 56) & 0xFF]])
        elif entry.is_folder:
            chunk = (entry.path / f"{offset:08X}.chunk").read_bytes()
        else:
            chunk = frame[header_len + offset :]
        yield decode(chunk, itemsize=typesize)


@corpus.parametrize("cframe", "sframe", "b2nd")
def test_chunks_of_a_frame_of_the_corpus_decode_to_their_hashes(entry: corpus.Entry) -> None:
    for feature, message in PLUGINS.items():
        if feature in entry.features:
            with pytest.raises(UnsupportedError) as caught:
                list(plain_chunks(entry))
            assert str(caught.value) == f"{message} is not available"
            return
    chunks = list(plain_chunks(entry))
    plain = b"".join(chunks)
    assert len(plain) == entry.nbytes
    assert entry.sha256 in (corpus.sha256(plain), None)
    if entry.chunk_nbytes is not None:
        assert tuple(len(chunk) for chunk in chunks) == entry.chunk_nbytes
    for nchunk, expected in enumerate(entry.chunk_sha256 or ()):
        if nchunk not in entry.undefined_chunks:
            assert corpus.sha256(chunks[nchunk]) == expected
