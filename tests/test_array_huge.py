"""Arrays much larger than memory: resizing, assigning, and copying from file to file, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from peak_memory import PEAK

if TYPE_CHECKING:
    from pathlib import Path

MB = 2**20
HEAD = f"""
{PEAK}
import json, sys, time
import numpy as np
import superchunk

path = sys.argv[1]
start = time.process_time()

def report(**found):
    print(json.dumps({{"peak": peak_bytes(), "seconds": time.process_time() - start, **found}}))
"""
GROW = """
with superchunk.zeros({first}, dtype="f8", chunks={chunks}, urlpath=path, contiguous={contiguous}) as a:
    first, last = (0,) * a.ndim, (-1,) * a.ndim
    a[first] = 1
    start = time.process_time()
    a.resize({shape})
    a[last] = 2
    report(nchunks=a.nchunks, items=float(a[last] + a[first]))
"""
COPY = """
row = np.arange(2**17)
a = superchunk.zeros((1024, 2**17), dtype="i8", urlpath=path + "1")
with a.transaction():
    for start in range(0, 1024, 64):
        a[start : start + 64] = row
b = a.copy(urlpath=path, contiguous={contiguous}, {how})
report(nbytes=b.nbytes, same=bool((b[500] == row).all()))
"""
ASSIGN = """
with superchunk.zeros((10**6, 10**4), dtype="f8", urlpath=path, contiguous={contiguous}) as a:
    a[10**5 : 10**5 + 100, 17:4000:7] = 3
    a[-1] = np.arange(10**4)
    report(nbytes=a.nbytes, same=bool((a[10**5 + 99, 17:4000:7] == 3).all() and (a[-1] == np.arange(10**4)).all()))
"""
both_kinds = pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])


def run(script: str, path: Path) -> dict[str, Any]:
    """Return what a process reports."""
    command = [sys.executable, "-c", HEAD + script, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@both_kinds
@pytest.mark.parametrize(
    ("first", "chunks", "shape"),
    [((10,), (10**6,), (10**12,)), ((5, 5), (1000, 1000), (10**6, 10**6))],
    ids=["line", "square"],
)
def test_a_million_chunks_of_zeros_come_at_once(
    tmp_path: Path, first: tuple[int, ...], chunks: tuple[int, ...], shape: tuple[int, ...], *, contiguous: bool
) -> None:
    found = run(GROW.format(first=first, chunks=chunks, shape=shape, contiguous=contiguous), tmp_path / "a")
    assert (found["nchunks"], found["items"]) == (10**6, 3)
    assert found["seconds"] < 3
    assert found["peak"] < 200 * MB


@pytest.mark.parametrize(
    ("how", "contiguous"),
    [("", True), ("", False), ("chunks=(64, 2**15)", True)],
    ids=["as it is", "as it is, to a folder", "to other chunks"],
)
def test_copying_a_gigabyte_takes_little_memory(tmp_path: Path, *, how: str, contiguous: bool) -> None:
    found = run(COPY.format(how=how, contiguous=contiguous), tmp_path / "a")
    assert (found["nbytes"], found["same"]) == (2**30, True)
    assert found["peak"] < 200 * MB


@both_kinds
def test_assigning_to_a_part_of_a_huge_array_takes_little_memory(tmp_path: Path, *, contiguous: bool) -> None:
    found = run(ASSIGN.format(contiguous=contiguous), tmp_path / "a")
    assert (found["nbytes"], found["same"]) == (8 * 10**10, True)
    assert found["peak"] < 200 * MB
