"""Importing the package is quick: it loads nothing yet, and each door loads what it needs and no more."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import superchunk

SELDOM = {
    "_display.notebook_card": "notebooks",
    "_display.chunk_map": "pictures",
    "_integrity.verify": "verify()",
    "_integrity.repair": "repair()",
    "_integrity.scan": "repair()",
    "_packed.frames": "save_array()",
    "_packed.pickles": "unpack_array()",
    "_store.legacy_frame": "frames of old writers",
    "_format.legacy_header": "frames of old writers",
    "_store.sparse_frame": "directories",
    "_store.staged_files": "directories",
    "_store.frame_bytes": "frames in memory",
    "cli": "the command",
    "testing": "the crash laboratory",
}
"""Modules and what they are for: no array or SChunk in a file needs them."""
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


def modules_besides_numpy(code: str, *arguments: str) -> set[str]:
    script = f"import sys, numpy\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def ours(names: set[str]) -> set[str]:
    return {f"superchunk.{name}" for name in names}


def test_import_loads_nothing() -> None:
    assert modules_besides_numpy("import superchunk") == {"superchunk", "__future__"}


def test_looking_for_a_name_in_vain_loads_little() -> None:
    loaded = modules_besides_numpy("import superchunk\nassert not hasattr(superchunk, '_no_such_name')")
    assert loaded == {"superchunk", "__future__"}


def test_a_chunk_needs_no_frames() -> None:
    loaded = modules_besides_numpy("import superchunk\nsuperchunk.decompress2(superchunk.compress2(b'abc' * 100))")
    assert {"superchunk.core", "superchunk.params"} <= loaded
    assert not loaded & ours({"storage.frames", "schunk", "arrays", "meta"})


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Return a frame and an array."""
    frame, array = str(tmp_path / "data.b2frame"), str(tmp_path / "array.b2nd")
    superchunk.SChunk(data=b"0123456789", urlpath=frame).close()
    superchunk.asarray(np.arange(10), urlpath=array).schunk.close()
    return frame, array


def test_a_frame_needs_no_arrays_and_nothing_seldom(files: tuple[str, str]) -> None:
    loaded = modules_besides_numpy("import superchunk\nsuperchunk.open(sys.argv[1])[2:4]", files[0])
    assert "superchunk.schunk" in loaded
    assert not loaded & ours({"arrays", "meta", "frame.values", "frame.dtypes", "storage.memory", *SELDOM})
    assert not loaded & {"msgpack", *FOREIGN}


def test_an_array_needs_nothing_seldom(files: tuple[str, str]) -> None:
    loaded = modules_besides_numpy("import superchunk\nsuperchunk.open(sys.argv[1])[2:4]", files[1])
    assert "superchunk._array.ndarray" in loaded
    assert not loaded & ours({"meta", "frame.values", "storage.memory", *SELDOM})
    assert not loaded & {"msgpack", *FOREIGN}


def test_names_that_load_later_are_there() -> None:
    assert set(superchunk.__all__) <= set(dir(superchunk))
    loaded = modules_besides_numpy("from superchunk import *\nassert callable(verify) and callable(pack_array2)")
    assert "superchunk._integrity.verify" in loaded


def test_dir_shows_public_names_only() -> None:
    assert set(dir(superchunk)) == {*superchunk.__all__, *superchunk._MODULES}
    assert [name for name in dir(superchunk) if name.startswith("_")] == ["__version__"]
    assert all(hasattr(superchunk, name) for name in dir(superchunk))


def test_the_table_of_names_is_what_type_checkers_see() -> None:
    """Each name is loaded from where the imports for type checkers say, and all of them are public."""
    tree = ast.parse(Path(superchunk.__file__).read_text(encoding="utf-8"))
    checking = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: (node.module or "").removeprefix("superchunk.")
        for node in checking.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == superchunk._PLACE_OF
    assert set(superchunk.__all__) == {*seen, "IS_WASM", "cpu_info", "nthreads"}


def test_modules_are_attributes() -> None:
    loaded = modules_besides_numpy("import superchunk\nsuperchunk.exceptions.DamagedFrameError")
    assert "superchunk.exceptions" in loaded
    assert "superchunk.params" not in loaded
