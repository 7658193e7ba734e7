"""Write seeds for the fuzz targets: real chunks, so that the fuzzer need not invent the format.

::

    python fuzz/seeds.py fuzz/corpus    ->    one folder for each target, one file for each seed

    chunk_decode, header   a chunk
    range_decode           start and length (u32 each), then a chunk
    boxes                  16 bytes that choose shapes and a box, then a chunk
    seals                  the number of a bit (u32), then a chunk
    roundtrip              16 bytes that choose the parameters, then contents
    shaped                 16 bytes that choose shape and parameters, then contents
    ndlz                   rows, columns and the side of a cell, then a stream
    blosclz                length of the result (u16), then a stream

Chunks come from tests/golden and from the interoperability corpus, if that lies beside the
checkout. Reads bytes by the format's pages and nothing of superchunk.
"""

from __future__ import annotations

import hashlib
import random
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "tests" / "golden", ROOT.parent / "shared" / "corpus")
LARGEST = 16_000
"""Bytes; larger seeds make the fuzzer slow."""
BLOCKS_OF_NO_INTEREST = 0x02
"""The flag of a chunk that is stored plain."""


def chunks() -> Iterator[bytes]:
    """Yield every small chunk there is, sound or not."""
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".chunk", ".cdata"} and path.stat().st_size <= LARGEST:
                yield path.read_bytes()


def first_stream(chunk: bytes) -> tuple[int, bytes] | None:
    """Return length and bytes of the first BloscLZ stream of a chunk, if it begins with one."""
    header_len = 32 if chunk[2] & 5 == 5 else 16  # noqa: PLR2004 - both shuffle bits: extended
    if chunk[2] >> 5 or chunk[2] & BLOCKS_OF_NO_INTEREST or len(chunk) < header_len + 8:
        return None
    nbytes, blocksize = struct.unpack_from("<ii", chunk, 4)
    start = struct.unpack_from("<i", chunk, header_len)[0]
    if not 0 <= start <= len(chunk) - 4:
        return None
    csize = struct.unpack_from("<i", chunk, start)[0]
    length = min(nbytes, blocksize)
    if not chunk[2] & 0x10 and chunk[3] and nbytes >= blocksize:
        length //= chunk[3]
    if not 0 < csize < length < 1 << 16:
        return None
    return length, chunk[start + 4 : start + 4 + csize]


def seeds() -> Iterator[tuple[str, bytes]]:
    """Yield target and seed."""
    rng = random.Random(1)  # noqa: S311 - no secrets here
    for chunk in chunks():
        yield "chunk_decode", chunk
        yield "header", chunk[:64]
        yield "boxes", rng.randbytes(16) + chunk
        yield "seals", rng.randbytes(4) + chunk
        nbytes = struct.unpack_from("<I", chunk.ljust(16, b"\0"), 4)[0] or 1
        start = rng.randrange(nbytes)
        length = rng.randrange(1 + min(nbytes - start, 100_000))
        yield "range_decode", struct.pack("<II", start, length) + chunk
        if len(chunk) < LARGEST // 4:
            yield "roundtrip", rng.randbytes(16) + chunk
        if len(chunk) >= 16 and (stream := first_stream(chunk)):  # noqa: PLR2004
            yield "blosclz", struct.pack("<H", stream[0]) + stream[1]
    for n in range(64):
        ramp = b"".join(struct.pack("<i", i * (n + 1) // 3) for i in range(20 * n))
        yield "roundtrip", rng.randbytes(16) + ramp
        yield "blosclz", struct.pack("<H", 50 * n) + bytes([0x20]) + bytes(n)
        yield "shaped", rng.randbytes(16) + ramp
        cells = bytes([0]) + rng.randbytes(16) + bytes([0xC0, 17, 0, 0x28, 20, 0, 12, 0, 0x40, n])
        yield "ndlz", bytes([3, 15, 4]) + struct.pack("<Bii", 2, 4, 16) + cells


def main() -> None:
    """Write all seeds below the folder that the command line names."""
    into = Path(sys.argv[1])
    for target, seed in seeds():
        folder = into / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"seed-{hashlib.sha256(seed).hexdigest()[:16]}").write_bytes(seed)


if __name__ == "__main__":
    main()
