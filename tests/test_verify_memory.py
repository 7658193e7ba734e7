"""What `verify` and `repair` take of memory for very many chunks, measured in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from peak_memory import PEAK

import superchunk
from superchunk._integrity.recovered_chunks import RecoveredChunk, RecoveredChunks
from superchunk._store.frame_store import FrameStore
from superchunk._store.store_interface import FrameSettings

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("resource", reason="it tells how much memory a process had")

MEASURE = """
import sys
import superchunk

with superchunk.open(sys.argv[3]) as small:
    small.verify(nthreads=2)
before = peak_bytes()
if sys.argv[1] == "verify":
    report = superchunk.verify(sys.argv[2], nthreads=2)
else:
    report = superchunk.repair(sys.argv[2], sys.argv[2] + ".out")
print(report.nchunks, report.status, peak_bytes() - before)
"""


def make(path: Path, nchunks: int) -> None:
    chunk = superchunk.compress2(bytes(range(16)), typesize=4)
    store = FrameStore.create(path, FrameSettings(typesize=4), 16, {}, publish=False)
    with store.batch():
        for start in range(0, nchunks, 8192):
            store.insert(start, [chunk] * min(8192, nchunks - start))
    store.close()


def measured(tmp_path: Path, what: str, path: Path) -> tuple[int, str, int]:
    small = tmp_path / "small.b2frame"
    make(small, 100)
    command = [sys.executable, "-c", PEAK + MEASURE, what, str(path), str(small)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    nchunks, *status, used = run.stdout.split()
    return int(nchunks), " ".join(status), int(used)


def test_verify_of_a_million_chunks(tmp_path: Path) -> None:
    path = tmp_path / "x.b2frame"
    make(path, 10**6)
    nchunks, status, used = measured(tmp_path, "verify", path)
    assert (nchunks, status) == (10**6, "sound")
    assert used < 48 * 2**20


def test_repair_of_very_many_chunks(tmp_path: Path) -> None:
    path = tmp_path / "x.b2frame"
    count = 150_000
    make(path, count)
    raw = bytearray(path.read_bytes())
    raw[-30] ^= 1
    path.write_bytes(raw)
    nchunks, status, used = measured(tmp_path, "repair", path)
    assert (nchunks, status) == (count, "repaired")
    assert used < 24 * 2**20 + 160 * count  # with a tuple for each chunk it is 500 bytes each


PIECES = [
    RecoveredChunk((5, 100, 50), 0, 16, "whole", 90, "", ""),
    RecoveredChunk((5, 180, 40), 0, 16, "whole", 170, "", ""),
    RecoveredChunk((6, 180, 40), 0, 16, "whole", 170, "", ""),
    RecoveredChunk((5, 180, 40), 0, 16, "whole", 171, "", ""),
    RecoveredChunk(("/d/0000000A.chunk", 0, 99), 0, 16, "whole", 10, "", "0000000A.chunk"),
    RecoveredChunk(("/e/0000000A.chunk", 0, 99), 0, 16, "whole", 10, "", "0000000A.chunk"),
    RecoveredChunk(("/d/0000000B.chunk", 0, 98), 0, 16, "doubtful", 11, "who knows", "0000000B.chunk"),
    RecoveredChunk(None, 1, 16, "whole", -1, "", ""),
    RecoveredChunk(None, 0, 16, "lost", 3, "gone", ""),
    RecoveredChunk(b"chunk", 0, 16, "whole", 3, "", ""),
]


def test_pieces_are_what_was_put_in() -> None:
    pieces = RecoveredChunks(PIECES)
    assert list(pieces) == PIECES
    pieces[1] = PIECES[6]
    assert pieces[1] == PIECES[6]
    pieces.extend(PIECES[7], 3)
    assert [pieces[len(PIECES) + n] for n in range(3)] == [PIECES[7]] * 3
