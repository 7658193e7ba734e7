"""Fuzz what Python parses: frames, their index and their metalayers.

::

    python fuzz/frames.py --seconds 60 [--seed 1]

Takes sound frames from tests/golden and from the interoperability corpus, damages them where it
hurts, and reads all of them from memory and from a file. Only errors of ours may come out, in
bounded time and memory. An input that breaks this is written to fuzz/artifacts/frames, and the
exit status is 1. The same seed tries the same inputs in the same order.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import superchunk
from superchunk import _engine
from superchunk._format import metalayer_values as values
from superchunk._format.frame_header import FrameHeader
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "tests" / "golden", ROOT.parent / "shared" / "corpus")
ARTIFACTS = ROOT / "fuzz" / "artifacts" / "frames"
SUFFIXES = {".b2frame", ".b2nd"}
LARGEST = 20_000
"""Bytes; larger frames are slow to fuzz and hold nothing else."""
MOST_SECONDS = 5.0
MOST_MEMORY = 256 * 1024 * 1024
LARGEST_WHOLE = 1 << 22
MOST_CHUNKS = 12
EDGES = (0, 1, 2, 7, 31, 32, 87, 127, 128, 255, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
MARKERS = bytes([0x9E, 0xA8, 0xD2, 0xCF, 0xA4, 0xD3, 0xD1, 0xC3, 0xD8, 0x93, 0xCD, 0xDE, 0xDC, 0xC6])
SPECIALS = (0x80, 0x81, 0x82, 0x84, 0x87, 0xFF)
ALLOWED = (SuperchunkError, MemoryError)


def sound_frames() -> list[bytes]:
    """Return small frames, sound or made to harm, from wherever there are some."""
    return [
        path.read_bytes()
        for folder in FOLDERS
        for path in sorted(folder.rglob("*"))
        if path.suffix in SUFFIXES and path.is_file() and path.stat().st_size <= LARGEST
    ]


class Mutator:
    """Damages frames in ways that get past the first check."""

    def __init__(self, seed: int, pool: list[bytes]) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no secrets here
        self.pool = pool
        self.ways: list[Callable[[bytearray], None]] = [
            self.flip,
            self.edge,
            self.edge,
            self.marker,
            self.cut,
            self.insert,
            self.copy,
            self.splice,
            self.entry,
            self.trailer_length,
        ]

    def frame(self) -> bytes:
        """Return the next damaged frame."""
        frame = bytearray(self.random.choice(self.pool))
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 6))):
            if frame:
                self.random.choice(self.ways)(frame)
        if self.random.random() < 0.5:  # noqa: PLR2004 - half of them
            self.agree(frame)
        return bytes(frame)

    def place(self, frame: bytearray) -> int:
        """Return a byte: often in the header, often near the end, where trailer and index are."""
        where = self.random.random()
        if where < 0.4:  # noqa: PLR2004 - shares
            return self.random.randrange(min(len(frame), 140))
        if where < 0.7:  # noqa: PLR2004
            return len(frame) - 1 - self.random.randrange(min(len(frame), 120))
        return self.random.randrange(len(frame))

    def flip(self, frame: bytearray) -> None:
        """Flip a bit."""
        frame[self.place(frame)] ^= 1 << self.random.randrange(8)

    def edge(self, frame: bytearray) -> None:
        """Write an edge of an integer type, in either order of bytes."""
        at, size = self.place(frame), self.random.choice((1, 2, 4, 8))
        value = self.random.choice(EDGES) * self.random.choice((1, 1, -1))
        raw = (value % (1 << 8 * size)).to_bytes(size, "big")
        frame[at : at + size] = raw if self.random.random() < 0.5 else raw[::-1]  # noqa: PLR2004

    def marker(self, frame: bytearray) -> None:
        """Write a MessagePack marker."""
        frame[self.place(frame)] = self.random.choice(MARKERS)

    def cut(self, frame: bytearray) -> None:
        """Take some bytes away."""
        at = self.place(frame)
        del frame[at : at + self.random.choice((1, 4, 32, 100, len(frame)))]

    def insert(self, frame: bytearray) -> None:
        """Put some bytes in."""
        at = self.place(frame)
        frame[at:at] = self.random.randbytes(self.random.choice((1, 4, 35)))

    def copy(self, frame: bytearray) -> None:
        """Write some of the frame elsewhere into it."""
        source, at = self.place(frame), self.place(frame)
        length = self.random.choice((4, 8, 32, 60))
        frame[at : at + length] = frame[source : source + length]

    def splice(self, frame: bytearray) -> None:
        """Go on as another frame."""
        other = self.random.choice(self.pool)
        at = self.place(frame)
        frame[at:] = other[min(at, len(other)) :]

    def entry(self, frame: bytearray) -> None:
        """Write an index entry: an offset, or a special value."""
        if len(frame) < 97:  # noqa: PLR2004 - the smallest header
            return
        at = len(frame) - 1 - self.random.randrange(min(len(frame), 200))
        if self.random.random() < 0.5:  # noqa: PLR2004
            raw = struct.pack("<q", self.random.choice(EDGES) % len(frame))
        else:
            raw = bytes(7) + bytes([self.random.choice(SPECIALS)])
        frame[at : at + 8] = raw

    def trailer_length(self, frame: bytearray) -> None:
        """Write another length of the trailer."""
        if len(frame) > 35:  # noqa: PLR2004 - the smallest trailer
            value = self.random.choice((*EDGES, len(frame), len(frame) - 87))
            frame[-22:-18] = (value % 2**32).to_bytes(4, "big")

    def agree(self, frame: bytearray) -> None:
        """Make `frame_len` agree with the length, so that the reader looks further."""
        if len(frame) >= 0x18:  # noqa: PLR2004
            frame[0x10:0x18] = len(frame).to_bytes(8, "big")


def read(schunk: superchunk.SChunk) -> None:
    """Read what there is, no more than some chunks of it."""
    numbers = range(schunk.nchunks)
    for nchunk in numbers if len(numbers) <= MOST_CHUNKS else (0, 1, len(numbers) - 1):
        try:
            info = _engine.describe(schunk.get_chunk(nchunk))
            if info.nbytes <= LARGEST_WHOLE:
                plain = schunk.decompress_chunk(nchunk)
                if plain is not None and len(plain) != info.nbytes:
                    raise AssertionError(f"chunk {nchunk}: {len(plain)} bytes, not {info.nbytes}")
            schunk.get_lazychunk(nchunk)
        except ALLOWED:
            continue
    for mapping in (schunk.meta, schunk.vlmeta):
        for name in mapping:
            try:
                mapping.get(name)
                mapping.raw(name)
            except ALLOWED:
                continue
    if schunk.nbytes <= LARGEST_WHOLE:
        items = schunk[:]
        if len(items) != len(schunk) * schunk.typesize:
            raise AssertionError(f"{len(items)} bytes for {len(schunk)} items")
    schunk.get_slice(len(schunk) - 1, len(schunk))
    schunk.to_cframe() if schunk.nbytes <= LARGEST_WHOLE else None


def change(schunk: superchunk.SChunk) -> None:
    """Change a damaged frame; what could be read before must not get lost."""
    if schunk.nchunks > MOST_CHUNKS or schunk.nbytes > LARGEST_WHOLE or schunk.typesize > LARGEST:
        return
    before = [schunk.decompress_chunk(nchunk) for nchunk in range(schunk.nchunks)]
    schunk.vlmeta["fuzz"] = 1
    schunk.insert_data(0, bytes(range(64)) * schunk.typesize, copy=True)
    after = [schunk.decompress_chunk(nchunk) for nchunk in range(1, schunk.nchunks)]
    if before != after:
        raise AssertionError("inserting a chunk changed others")


def from_memory(frame: bytes) -> None:
    """Read a frame from bytes, and its parts alone."""
    for call in (
        lambda: FrameHeader.from_bytes(frame),
        lambda: values.unpack(frame[:300]),
        lambda: values.unpack(frame[87:400]),
    ):
        try:
            call()
        except ALLOWED:
            continue
    with superchunk.schunk_from_cframe(frame) as schunk:
        read(schunk)
    with superchunk.schunk_from_cframe(frame, copy=True) as schunk:
        change(schunk)


def from_file(path: Path, frame: bytes) -> None:
    """Read a frame from a file, and change it there."""
    path.write_bytes(frame)
    with superchunk.open(path) as opened:
        read(getattr(opened, "schunk", opened))
    with superchunk.open(path, mode="a") as opened:
        change(getattr(opened, "schunk", opened))


def peak() -> int:
    """Return the most memory that the process had so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def keep(frame: bytes, why: str) -> None:
    """Write an input that breaks a promise where it can be found."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    path = ARTIFACTS / f"crash-{hashlib.sha256(frame).hexdigest()[:16]}"
    path.write_bytes(frame)
    print(f"{path}: {why}", file=sys.stderr)


def verdict(reader: Callable[[bytes], None], frame: bytes) -> str:
    """Read a frame; return what promise that broke, or nothing."""
    before, started = peak(), time.monotonic()
    try:
        reader(frame)
    except ALLOWED:
        pass
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the engine is one
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {where.filename}:{where.lineno}"
    if time.monotonic() - started > MOST_SECONDS:
        return f"over {MOST_SECONDS} s"
    if peak() - before > MOST_MEMORY:
        return f"over {MOST_MEMORY >> 20} MiB"
    return ""


def main() -> int:
    """Fuzz for as long as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=1, help="which inputs to try")
    chosen = parser.parse_args()
    pool = sound_frames()
    mutator = Mutator(chosen.seed, pool)
    end = time.monotonic() + chosen.seconds
    tried = 0
    broken: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frame.b2frame"
        while time.monotonic() < end:
            frame = mutator.frame()
            tried += 1
            for reader in (from_memory, lambda raw: from_file(path, raw)):
                why = verdict(reader, frame)
                if why and why not in broken:
                    broken.add(why)
                    keep(frame, why)
    print(f"{tried} damaged frames made of {len(pool)}, {len(broken)} promises broken")
    return 1 if broken or not pool else 0


if __name__ == "__main__":
    sys.exit(main())
