"""Environment variables of python-blosc2: what a script asks for is what it gets (docs/migrating.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from superchunk.params import nthreads_for

ROOT = Path(__file__).parents[1]
SCRIPT = """
import hashlib, sys
import numpy as np
import superchunk

values = np.arange(20000) * 7 % 1000
schunk = superchunk.SChunk(data=values, cparams={"typesize": 8})
array = superchunk.asarray(values, chunks=(20000,), blocks=(4000,))
made = [
    superchunk.compress(values), superchunk.compress2(values), schunk.to_cframe(), array.to_cframe(),
    superchunk.pack_tensor(values), repr((array.blocks, schunk.typesize, len(schunk))).encode(),
]
print(*(hashlib.sha256(one).hexdigest() for one in made), superchunk.nthreads)
"""


def said(**variables: str) -> tuple[list[str], str, str]:
    """Return what the script makes with these variables, its number of threads, and what it complains of."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BLOSC_")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment | variables, capture_output=True, text=True, check=True
    )
    *made, threads = done.stdout.split()
    return made, threads, done.stderr


OTHERS = {
    "BLOSC_CLEVEL": "9",
    "BLOSC_COMPRESSOR": "lz4",
    "BLOSC_SHUFFLE": "BITSHUFFLE",
    "BLOSC_DELTA": "1",
    "BLOSC_TYPESIZE": "4",
    "BLOSC_SPLITMODE": "NEVER",
    "BLOSC_BLOCKSIZE": "4096",
    "BLOSC_BLOSC1_COMPAT": "1",
    "BLOSC_NOLOCK": "1",
    "BLOSC_MAX_CACHED_READERS": "1",
    "BLOSC_INFO": "1",
    "BLOSC_TRACE": "1",
    "BTUNE_TRADEOFF": "0.5",
    "BLOSC_LOW_MEM": "1",
}


def test_no_variable_changes_what_is_written_or_says_something() -> None:
    plain = said()
    assert plain[2] == ""
    assert said(**OTHERS) == plain
    assert said(BLOSC_LOCKING="1") == plain


def test_the_default_number_of_threads_is_asked_for_by_a_variable() -> None:
    chunks, threads, _ = said(BLOSC_NTHREADS="3")
    assert threads == "3"
    assert chunks[:2] == said()[0][:2]  # the header of a frame records the number of threads, a chunk does not


@pytest.mark.parametrize("nonsense", ["", "0", "-2", "many", "1.5", "9" * 12, " 2"])
def test_a_number_of_threads_that_is_none_is_passed_over(nonsense: str) -> None:
    assert nthreads_for(4, nonsense) == nthreads_for(4)
    assert nthreads_for(4, "5") == 5


def test_the_page_names_every_variable() -> None:
    page = (ROOT / "docs" / "migrating.md").read_text()
    assert [name for name in (*OTHERS, "BLOSC_NTHREADS", "BLOSC_LOCKING") if f"`{name}`" not in page] == []
