"""The laboratory of turns: a writer that waits gets its turn beside readers without a pause; a mapped writer is seen.

::

    reader A  |==== reads ====|         |==== reads ====|
    reader B             |==== reads ====|          |=== …       somebody is always reading
    writer             waits …… its turn?                        within a number of turns of readers, not of seconds

`handed_over` makes that hand to hand: a reader is held inside its read by a postfilter, and the other begins before it
may go on. `tight` lets readers run freely and counts how many reads end while the writer waits. `mapped` changes bytes
of a chunk through a shared mapping, which leaves the times of the file as they are, and asks readers for them.

Run by hand: ``python -m labs.turns --rounds 20 --appends 60`` in ``tests``.
"""

from __future__ import annotations

import argparse
import mmap
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

import superchunk

__all__ = ["handed_over", "mapped", "tight"]

MOST_TURNS: Final = 5
"""Turns of readers that a waiting writer may see pass, hand to hand."""
MOST_READS: Final = 5000
"""Reads of all readers together that may end during one append; they take their share of the processor, too."""
_BLOCKED: Final = 0.3
"""Seconds after which who has not begun is taken to wait; a slow machine makes the test easier and not harder."""
_PATIENCE: Final = 60.0

_READER: Final = """
import sys, superchunk
s = superchunk.open(sys.argv[1], locking=True, dparams=superchunk.DParams(nthreads=1))
@s.postfilter('u1')
def held(input, output, offset):
    output[:] = input
    if offset == 0:
        print('inside', flush=True)
        sys.stdin.readline()
print('ready', flush=True)
for line in sys.stdin:
    s.decompress_chunk(0)
    print('done', flush=True)
"""
_WRITER: Final = """
import sys, superchunk
s = superchunk.open(sys.argv[1], mode='a', locking=True)
print('ready', flush=True)
for line in sys.stdin:
    s.append_data(bytes(64))
    print('done', flush=True)
"""
_TIGHT: Final = """
import sys, mmap, superchunk
s = superchunk.open(sys.argv[1], locking=True)
with open(sys.argv[2], 'r+b') as file:
    counts = memoryview(mmap.mmap(file.fileno(), 0)).cast('q')
me = int(sys.argv[3])
while not counts[0]:
    s[:16]
    counts[me] += 1
"""


class _Other:
    """A process that answers in lines, and may take its time."""

    def __init__(self, code: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._heard = b""
        assert self.says("ready", _PATIENCE)

    def tell(self) -> None:
        """Let it begin, or go on."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def says(self, word: str, patience: float) -> bool:
        """Return whether it says `word` within `patience` seconds."""
        assert self._process.stdout is not None
        end = time.monotonic() + patience
        while True:
            self._heard += self._process.stdout.read() or b""
            line, found, rest = self._heard.partition(b"\n")
            if found:
                self._heard = rest
                assert line.decode() == word, line
                return True
            if time.monotonic() >= end:
                return False
            assert self._process.poll() is None, "the other process is gone"
            time.sleep(0.001)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def handed_over(folder: Path, *, contiguous: bool, rounds: int) -> str | None:
    """Keep a frame read hand to hand while a writer waits; return what is wrong.

    Parameters
    ----------
    folder
        Where to make the frame.
    contiguous
        One file, or a directory.
    rounds
        Appends.

    """
    path = str(folder / f"turns-{contiguous}")
    with superchunk.SChunk(64, data=bytes(range(64)), urlpath=path, contiguous=contiguous, mode="w", locking=True):
        pass
    writer, *readers = (_Other(_WRITER, path), _Other(_READER, path), _Other(_READER, path))
    try:
        inside, other = readers
        for _ in range(rounds):
            inside.tell()
            assert inside.says("inside", _PATIENCE)
            writer.tell()
            written = writer.says("done", _BLOCKED)
            for turns in range(MOST_TURNS + 1):
                other.tell()
                admitted = not written and other.says("inside", _BLOCKED)
                inside.tell()
                assert inside.says("done", _PATIENCE)
                inside, other = other, inside
                if not admitted:
                    break
                if turns == MOST_TURNS:
                    return f"contiguous={contiguous}: {turns} readers came before a writer that waited already"
            if not written and not writer.says("done", _PATIENCE):
                return f"contiguous={contiguous}: the writer has no turn, and nobody else has it"
            assert admitted or inside.says("inside", _PATIENCE)
            inside.tell()
            assert inside.says("done", _PATIENCE)
        with superchunk.open(path) as s:
            if s.nchunks != rounds + 1:
                return f"contiguous={contiguous}: {s.nchunks} chunks, expected {rounds + 1}"
    finally:
        for one in (writer, *readers):
            one.end()
    return None


def tight(folder: Path, *, contiguous: bool, readers: int, appends: int) -> tuple[int, str | None]:
    """Append beside readers without a pause; return the most reads that ended during an append, and what is wrong."""
    path = str(folder / f"tight-{contiguous}")
    with superchunk.SChunk(64, data=bytes(range(64)), urlpath=path, contiguous=contiguous, mode="w", locking=True):
        pass
    board = folder / f"counts-{contiguous}"
    board.write_bytes(bytes(8 * (readers + 1)))
    others = [
        subprocess.Popen([sys.executable, "-c", _TIGHT, path, str(board), str(number + 1)]) for number in range(readers)
    ]
    passed = []
    with board.open("r+b") as file, mmap.mmap(file.fileno(), 0) as shared:
        view = memoryview(shared)
        counts = view.cast("q")
        try:
            end = time.monotonic() + _PATIENCE
            while min(counts[1:]) < 10:
                assert time.monotonic() < end, "the readers do not begin"
                time.sleep(0.01)
            with superchunk.open(path, "a", locking=True) as s:
                for _ in range(appends):
                    before = sum(counts[1:])
                    s.append_data(bytes(64))
                    passed.append(sum(counts[1:]) - before)
        finally:
            counts[0] = 1
            for one in others:
                one.wait()
            counts.release()
            view.release()
    most = max(passed)
    return most, f"contiguous={contiguous}: {most} reads end while an append waits" if most > MOST_READS else None


def mapped(folder: Path, *, contiguous: bool, pause: float = 0.2) -> str | None:
    """Change a stored chunk through a shared mapping; return whether a reader does not see it.

    The page is dirty before, so that the second change leaves the times of the file as they are.
    """
    path = folder / f"mapped-{contiguous}"
    items = np.random.default_rng(1).integers(0, 1 << 16, 1 << 14).astype("i4")
    cparams = superchunk.CParams(codec=superchunk.Codec.LZ4, clevel=5, typesize=4, filters=[superchunk.Filter.SHUFFLE])
    place: dict[str, Any] = {"urlpath": str(path), "mode": "w", "contiguous": contiguous, "seal": False}
    with superchunk.SChunk(items.nbytes, data=items, cparams=cparams, **place):
        pass
    stored = path if contiguous else next(path.glob("*.chunk"))
    planes = (items & 255).astype("u1").tobytes()
    with superchunk.open(path) as reader, stored.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        at = view.find(planes[96:120])
        assert at > 0, "the lowest bytes are not stored plain"
        for change in (0xFF, 0x0F, 0x3C):
            view[at + 4] ^= change
            items[100] ^= change
            for _ in range(4):  # so that what is kept is kept
                found = int.from_bytes(reader[100:101], "little")
                if found != items[100]:
                    return f"contiguous={contiguous}: item 100 is {items[100]} in the file, and read as {found}"
                time.sleep(pause / 4)
    return None


def main(arguments: list[str] | None = None) -> int:
    """Run the laboratory by hand; return 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="appends hand to hand")
    parser.add_argument("--appends", type=int, default=60, help="appends beside readers that run freely")
    parser.add_argument("--readers", type=int, default=4)
    told = parser.parse_args(arguments)
    failures = []
    with tempfile.TemporaryDirectory(prefix="superchunk-lab-") as place:
        for contiguous in (True, False):
            failures.append(handed_over(Path(place), contiguous=contiguous, rounds=told.rounds))
            failures.append(mapped(Path(place), contiguous=contiguous))
            most, wrong = tight(Path(place), contiguous=contiguous, readers=told.readers, appends=told.appends)
            print(f"contiguous={contiguous}: at most {most} reads of {told.readers} readers end during an append")  # noqa: T201
            failures.append(wrong)
    found = [one for one in failures if one]
    print("\n".join([f"{len(found)} failures", *found]))  # noqa: T201  (a script prints)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
