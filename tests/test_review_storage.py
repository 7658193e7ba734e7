"""Rare meetings of handles, paths and other writers, each of which went wrong once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import superchunk
from superchunk import SChunk

_CHUNK = 4000
KINDS = pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])


def _filled(path: Path, nchunks: int = 3, *, contiguous: bool = True, **how: object) -> SChunk:
    """Return a handle on a new frame of chunks that do not compress."""
    made = SChunk(chunksize=_CHUNK, urlpath=os.fspath(path), contiguous=contiguous, mode="w", **how)  # type: ignore[arg-type]
    for _ in range(nchunks):
        made.append_data(os.urandom(_CHUNK))
    return made


@KINDS
def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, contiguous: bool
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    frame = _filled(Path("frame"), contiguous=contiguous)
    frame.delete_chunk(0)
    monkeypatch.chdir(there)
    frame.compact()
    frame.append_data(b"x" * _CHUNK)
    frame.close()
    assert list(there.iterdir()) == []
    assert list(here.iterdir()) == [here / "frame"]
    with superchunk.open(here / "frame") as again:
        assert again.nchunks == 3
