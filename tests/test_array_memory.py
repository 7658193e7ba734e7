"""Making arrays that are larger than the memory it takes, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from peak_memory import PEAK

if TYPE_CHECKING:
    from pathlib import Path

NBYTES = 2**28
ALLOWED = 2**26
"""A quarter of the array: far from all of it, and enough for some chunks."""

SCRIPT = """
import sys
import numpy as np
import superchunk

superchunk.asarray(np.arange(2**20), chunks=2**17)  # threads and scratch are there
before = peak_bytes()
{make}
print(peak_bytes() - before, a.nbytes)
"""

MAKERS = {
    "asarray of a mapped file": "a = superchunk.asarray(np.load(npy, mmap_mode='r'), urlpath=path)",
    "asarray of a mapped file, cast": "a = superchunk.asarray(np.load(npy, mmap_mode='r'), dtype='>i8', urlpath=path)",
    "copy to other chunks": (
        "first = superchunk.asarray(np.load(npy, mmap_mode='r'), urlpath=path + '1')\n"
        "a = superchunk.copy(first, chunks=(1000, 1000), urlpath=path)"
    ),
    "copy as it is": (
        "first = superchunk.asarray(np.load(npy, mmap_mode='r'), urlpath=path + '1')\n"
        "a = superchunk.copy(first, urlpath=path)"
    ),
    "arange": "a = superchunk.arange(2**25, shape=(2**12, 2**13), urlpath=path)",
    "linspace": "a = superchunk.linspace(0, 1, 2**25, urlpath=path)",
    "from_pieces": (
        "a = superchunk.from_pieces((np.full((64, 2**13), i) for i in range(64)), (2**12, 2**13), urlpath=path)"
    ),
    "from_pieces with places": (
        "a = superchunk.from_pieces(((slice(64 * i, 64 * i + 64), np.full((64, 2**13), i)) for i in range(64)),"
        " (2**12, 2**13), 'i8', urlpath=path)"
    ),
    "permute_dims": (
        "first = superchunk.asarray(np.load(npy, mmap_mode='r'), urlpath=path + '1')\n"
        "a = superchunk.permute_dims(first, urlpath=path)"
    ),
    "permute_dims to other chunks": (
        "first = superchunk.asarray(np.load(npy, mmap_mode='r'), urlpath=path + '1')\n"
        "a = superchunk.permute_dims(first, chunks=(1000, 1000), urlpath=path)"
    ),
    "concat": (
        "first = superchunk.asarray(np.load(npy, mmap_mode='r')[:2**11], urlpath=path + '1')\n"
        "a = superchunk.concat([first, first], urlpath=path)"
    ),
}


def grown(make: str, tmp_path: Path) -> tuple[int, int]:
    """Return by how many bytes a process grew, and the bytes of the array that it made."""
    head = f"npy, path = {str(tmp_path / 'a.npy')!r}, {str(tmp_path / 'a.b2nd')!r}\n"
    script = PEAK + SCRIPT.format(make=head + make)
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    grew, nbytes = done.stdout.split()
    return int(grew), int(nbytes)


@pytest.mark.parametrize("name", MAKERS)
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    if "npy" in MAKERS[name]:
        mapped = np.lib.format.open_memmap(tmp_path / "a.npy", "w+", "i8", (2**12, 2**13))
        for row in range(0, 2**12, 64):
            mapped[row : row + 64] = np.arange(row * 2**13, (row + 64) * 2**13).reshape(64, -1)
        del mapped
    grew, nbytes = grown(MAKERS[name], tmp_path)
    assert nbytes == NBYTES
    assert grew < ALLOWED


def test_memory_of_fromiter_is_bounded(tmp_path: Path) -> None:
    make = "a = superchunk.fromiter(range(2**23), (2**10, 2**13), 'i8', chunks=(32, 2**11), urlpath=path)"
    grew, nbytes = grown(make, tmp_path)
    assert nbytes == 2**26
    assert grew < 2**24
