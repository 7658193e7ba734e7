"""Importing the package is quick: it loads what every program needs and no more."""

from __future__ import annotations

import subprocess
import sys

import superchunk

SELDOM = {
    "_card": "notebooks",
    "_chunkmap": "pictures",
    "_verify": "verify()",
    "_repair": "repair()",
    "_walk": "repair()",
    "packed.frames": "save_array()",
    "packed.pickles": "unpack_array()",
    "cli": "the command",
    "testing": "the crash laboratory",
}
FOREIGN = {
    "click",
    "rich",
    "json",
    "html",
    "secrets",
    "ast",
    "inspect",
    "hashlib",
    "asyncio",
    "pathlib",
    "urllib.parse",
}


def modules_besides_numpy(code: str) -> set[str]:
    script = f"import sys, numpy\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_nothing_that_is_seldom_needed() -> None:
    loaded = modules_besides_numpy("import superchunk")
    assert "superchunk.schunk" in loaded
    assert "superchunk.arrays.ndarray" in loaded
    assert not loaded & {f"superchunk.{name}" for name in SELDOM}
    assert not loaded & FOREIGN


def test_names_that_load_later_are_there() -> None:
    assert set(superchunk.__all__) <= set(dir(superchunk))
    loaded = modules_besides_numpy("from superchunk import *\nassert callable(verify) and callable(pack_array2)")
    assert "superchunk._verify" in loaded
