"""How many functions of the package, in how many of its files, a slice and an append of a super-chunk take.

Counted with `sys.setprofile` after a warm-up, as in `test_walks_storage`; no time is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from test_walks_storage import walk

from superchunk import SChunk

if TYPE_CHECKING:
    from pathlib import Path

CHUNK = bytes(range(250)) * 400
"""Of 25000 items: a slice of 49990 items meets two chunks."""


@pytest.mark.parametrize(
    ("place", "most", "files"),
    [
        pytest.param({}, 11, 5, id="memory"),
        pytest.param({"urlpath": "data.b2frame"}, 14, 6, id="file"),
        pytest.param({"urlpath": "data.b2frame", "contiguous": False}, 23, 8, id="directory"),
    ],
)
def test_a_slice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: dict[str, Any], most: int, files: int) -> None:
    monkeypatch.chdir(tmp_path)
    with SChunk(chunksize=len(CHUNK), data=CHUNK * 3, cparams={"typesize": 4}, **place) as schunk:
        assert schunk[10:50000] == (CHUNK * 3)[40:200000]
        calls, met = walk(lambda: schunk[10:50000])
    assert calls <= most
    assert met <= files


@pytest.mark.parametrize(
    ("place", "most", "files"),
    [
        pytest.param({}, 27, 7, id="memory"),
        pytest.param({"urlpath": "data.b2frame"}, 35, 10, id="file"),
        pytest.param({"urlpath": "data.b2frame", "contiguous": False}, 50, 13, id="directory"),
    ],
)
def test_an_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: dict[str, Any], most: int, files: int
) -> None:
    monkeypatch.chdir(tmp_path)
    with SChunk(chunksize=len(CHUNK), cparams={"typesize": 4}, **place) as schunk:
        calls, met = walk(lambda: schunk.append_data(CHUNK))
        assert schunk[: len(CHUNK) // 4] == CHUNK
    assert calls <= most
    assert met <= files
