"""Golden files, written once and only read ever after, hold what they held when they were made."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import reference

import superchunk
from superchunk import _engine

GOLDEN = Path(__file__).parent / "golden"
ENTRIES: list[dict[str, Any]] = json.loads((GOLDEN / "manifest.json").read_text())
LARGEST_STORED_TYPESIZE = 255


def entries(*kinds: str) -> pytest.MarkDecorator:
    """Run a test once for each entry of some kinds."""
    found = [entry for entry in ENTRIES if entry["kind"] in kinds]
    return pytest.mark.parametrize("entry", found, ids=[entry["file"] for entry in found])


def sha256(data: bytes | None) -> str:
    """Return the hash of `data`."""
    assert data is not None
    return hashlib.sha256(data).hexdigest()


def test_golden_set_is_complete() -> None:
    files = {path.name for path in GOLDEN.iterdir() if path.suffix in {".chunk", ".b2frame"}}
    assert files == {entry["file"] for entry in ENTRIES}
    assert len([entry for entry in ENTRIES if entry["kind"] == "chunk"]) >= 30
    assert len([entry for entry in ENTRIES if entry["kind"] == "frame"]) >= 15
    assert len([entry for entry in ENTRIES if entry["kind"] == "legacy"]) >= 3
    assert sum((GOLDEN / name).stat().st_size for name in files) < 300_000


def test_golden_files_are_never_rewritten() -> None:
    for entry in ENTRIES:
        assert sha256((GOLDEN / entry["file"]).read_bytes()) == entry["file_sha256"], entry["file"]


@entries("chunk")
def test_golden_chunk_holds_what_went_in(entry: dict[str, Any]) -> None:
    chunk = (GOLDEN / entry["file"]).read_bytes()
    wide = entry["typesize"] if entry["typesize"] > LARGEST_STORED_TYPESIZE else 0
    for nthreads in (1, 2):
        plain = _engine.decompress(chunk, nthreads=nthreads, itemsize=wide)
        assert (len(plain), sha256(plain)) == (entry["nbytes"], entry["sha256"])
    assert sha256(reference.decode(chunk, wide or None)) == entry["sha256"]
    middle = (chunk, entry["nbytes"], len(plain) // 3, len(plain) // 2, 0)
    assert _engine.read([middle], itemsize=wide) == plain[len(plain) // 3 : len(plain) // 2]
    if "blocks" in entry:
        assert [sha256(block) for block in _engine.read_vlblocks(chunk)] == entry["blocks"]


@entries("frame", "legacy")
def test_golden_frame_holds_what_went_in(entry: dict[str, Any]) -> None:
    path = GOLDEN / entry["file"]
    for schunk in (superchunk.open(path), superchunk.schunk_from_cframe(path.read_bytes())):
        with schunk:
            assert (schunk.nbytes, schunk.typesize) == (entry["nbytes"], entry["typesize"])
            numbers = range(schunk.nchunks)
            assert [sha256(schunk.decompress_chunk(n)) for n in numbers] == entry["chunks"]
            assert sha256(schunk[:]) == entry["sha256"]
            for layers, listed in ((schunk.meta, "meta"), (schunk.vlmeta, "vlmeta")):
                found = {name: bytes(layers.raw(name)).hex() for name in layers}
                assert found == entry.get(listed, {})


@entries("frame")
def test_golden_frame_can_still_be_changed(entry: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    path.write_bytes((GOLDEN / entry["file"]).read_bytes())
    with superchunk.open(path, mode="a") as schunk:
        schunk.insert_data(0, b"item" * 200, copy=True)
        schunk.vlmeta["added"] = entry["file"]
    with superchunk.open(path) as schunk:
        numbers = range(1, schunk.nchunks)
        assert schunk.decompress_chunk(0) == b"item" * 200
        assert [sha256(schunk.decompress_chunk(n)) for n in numbers] == entry["chunks"]
        assert schunk.vlmeta["added"] == entry["file"]


@entries("legacy")
def test_golden_frame_of_an_old_writer_stays_as_it_is(entry: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    path.write_bytes((GOLDEN / entry["file"]).read_bytes())
    with pytest.raises(superchunk.ReadOnlyError, match="old writer"):
        superchunk.open(path, mode="a")
    assert sha256(path.read_bytes()) == entry["file_sha256"]
    with superchunk.open(path) as old, superchunk.schunk_from_cframe(old.to_cframe()) as schunk:
        schunk.append_data(b"item" * 1000)
        assert [sha256(schunk.decompress_chunk(n)) for n in range(schunk.nchunks - 1)] == entry["chunks"]
        assert list(schunk.vlmeta) == list(entry.get("vlmeta", {}))
