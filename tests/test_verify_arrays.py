"""`verify` and `repair` know that a frame holds an array: its layer, its codecs, its number of chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from oracle import blosc2

import superchunk
from superchunk import NDArray
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from pathlib import Path

    from superchunk._integrity.report import PartReport, VerifyReport

ITEMS = np.random.default_rng(5).integers(1, 5, (20, 30)).astype("<f4")
NDCELL, ZFP_RATE = 32, 35
both_kinds = pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])


def make(path: Path, **how: Any) -> None:
    """Write an array of 2 x 2 chunks, with some history."""
    with superchunk.asarray(ITEMS[:10], chunks=(10, 16), blocks=(5, 8), urlpath=path, mode="w", **how) as array:
        array.append(ITEMS[10:])
        array.resize((25, 30))
        array.resize((20, 30))
        array.flush()


def theirs(path: Path, **cparams: Any) -> None:
    """Have the peer write the same array, which has no seals then."""
    blosc2.asarray(ITEMS, chunks=(10, 16), blocks=(5, 8), urlpath=str(path), mode="w", cparams=cparams)


def index_file(path: Path) -> Path:
    """Return the file with the header."""
    return path / "chunks.b2frame" if path.is_dir() else path


def layer(report: VerifyReport) -> PartReport:
    """Return what a report says of the array's layer."""
    return next(part for part in report.parts if part.name == "metalayer 'b2nd'")


def change_layer(path: Path, at: int, new: bytes) -> None:
    """Overwrite bytes of the array's layer."""
    file = index_file(path)
    raw = bytearray(file.read_bytes())
    start = raw.find(b"\x97\0\x02\x92\xd3")
    raw[start + at : start + at + len(new)] = new
    file.write_bytes(raw)


def damage_chunk(path: Path, number: int) -> None:
    """Overwrite some bytes of a chunk in a file."""
    raw = bytearray(path.read_bytes())
    with superchunk.open(path) as array:
        start = raw.find(array.get_chunk(number))
    raw[start + 60 : start + 80] = bytes(20)
    path.write_bytes(raw)


@both_kinds
def test_an_array_is_sound(tmp_path: Path, *, contiguous: bool) -> None:
    make(tmp_path / "a", contiguous=contiguous)
    report = superchunk.verify(tmp_path / "a", decode=True)
    assert (report.status, layer(report).status) == ("sound", "sound"), report


@pytest.mark.parametrize(
    "cparams",
    [
        {"filters": [NDCELL], "filters_meta": [4]},
        {"filters": [NDCELL, 1], "filters_meta": [4, 0], "codec": blosc2.Codec.LZ4},
        {"codec": ZFP_RATE, "codec_meta": 40, "filters": [0]},
    ],
    ids=["cells", "cells and shuffle", "zfp"],
)
def test_chunks_that_need_the_layer_are_decoded(cparams: dict[str, Any], tmp_path: Path) -> None:
    if cparams.get("codec") == ZFP_RATE:
        pytest.importorskip("zfpy")
    path = tmp_path / "a.b2nd"
    theirs(path, **cparams)
    assert superchunk.verify(path, decode=True).status == "not sealed"
    with superchunk.open(path) as array:
        chunk = array.get_chunk(1)
    raw = path.read_bytes()
    start = raw.find(chunk)
    first = int.from_bytes(chunk[32:36], "little")
    path.write_bytes(raw[: start + first] + b"\xff\xff\xff\x7f" + raw[start + first + 4 :])  # bytes of its first stream
    assert superchunk.verify(path).status == "not sealed"
    report = superchunk.verify(path, decode=True)
    assert [one.nchunk for one in report.damaged_chunks] == [1], report
    assert "cannot be decoded" in report.damaged_chunks[0].reason


@pytest.mark.parametrize(
    "cparams", [{"filters": [NDCELL], "filters_meta": [4]}, {"codec": ZFP_RATE, "codec_meta": 40, "filters": [0]}]
)
def test_such_chunks_are_found_without_the_index(cparams: dict[str, Any], tmp_path: Path) -> None:
    if cparams.get("codec") == ZFP_RATE:
        pytest.importorskip("zfpy")
    path, mended = tmp_path / "a.b2nd", tmp_path / "b.b2nd"
    theirs(path, **cparams)
    with superchunk.open(path) as array:
        items = array[()]
        last = array.get_chunk(array.nchunks - 1)
    raw = path.read_bytes()
    path.write_bytes(raw[: raw.rfind(last) + len(last)])  # neither index nor trailer
    superchunk.repair(path, mended)
    with superchunk.open(mended) as array:
        assert isinstance(array, NDArray)
        assert (array[()] == items).all()


CONTRADICTIONS = {
    "more rows than chunks": (5, (2000).to_bytes(8, "big"), "number of chunks"),
    "negative": (5, b"\xff" * 8, "shape"),
    "no blocks": (35, bytes(4), "blocks"),
    "another chunk shape": (24, (11).to_bytes(4, "big"), "chunk bytes"),
    "dimensions": (2, b"\x11", "dimensions"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
@both_kinds
def test_a_layer_that_contradicts_the_frame_is_named_and_mended(name: str, tmp_path: Path, *, contiguous: bool) -> None:
    at, new, told = CONTRADICTIONS[name]
    path, mended = tmp_path / "a", tmp_path / "b"
    make(path, contiguous=contiguous)
    change_layer(path, at, new)
    with pytest.raises(FormatError, match="b2nd"):
        superchunk.open(path)
    report = superchunk.verify(path)
    assert (report.status, layer(report).status) == ("damaged", "damaged")
    assert told in layer(report).message
    assert superchunk.repair(path, mended).chunks["lost"] == 0
    with superchunk.open(mended) as array:
        assert isinstance(array, NDArray)
        assert array.shape == ITEMS.shape
        assert (array[()] == ITEMS).all()


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_layer_of_which_no_other_copy_is_known_is_left_out(name: str, tmp_path: Path) -> None:
    at, new, told = CONTRADICTIONS[name]
    path, mended = tmp_path / "a.b2nd", tmp_path / "b.b2nd"
    theirs(path)
    change_layer(path, at, new)
    report = superchunk.verify(path)
    assert (report.status, layer(report).status) == ("damaged", "damaged")
    assert told in layer(report).message
    repaired = superchunk.repair(path, mended)
    assert any("'b2nd' is left out" in note and told in note for note in repaired.notes)
    with superchunk.open(mended) as schunk:
        assert schunk.nchunks == 4
        assert len(schunk[:]) == 4 * 10 * 16 * 4


def test_a_shape_that_another_writer_changed_is_no_damage(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.b2nd", tmp_path / "b.b2nd"
    make(path)
    blosc2.open(str(path), mode="a").resize((19, 29))
    report = superchunk.verify(path, decode=True)
    assert layer(report).status == "changed"
    assert report.status == "not sealed"
    damage_chunk(path, 3)
    superchunk.repair(path, copy)
    with superchunk.open(copy) as array:
        assert array.shape == (19, 29)
        assert (array[:10] == ITEMS[:10, :29]).all()


@both_kinds
def test_an_array_of_which_chunks_are_lost_stays_an_array(tmp_path: Path, *, contiguous: bool) -> None:
    path, mended = tmp_path / "a", tmp_path / "b"
    make(path, contiguous=contiguous)
    if contiguous:
        damage_chunk(path, 1)
    else:
        sorted(path.glob("*.chunk"))[1].unlink()
    report = superchunk.repair(path, mended)
    assert (report.chunks["whole"], report.nchunks) == (3, 4)
    with superchunk.open(mended) as array:
        assert array.shape == ITEMS.shape
        found = array[()]
    kept = found == ITEMS
    assert kept.all(axis=1).sum() >= 10
    assert kept[:, :16].all() or kept[:, 16:].all()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("peer", [True, False], ids=["theirs", "ours"])
def test_an_array_file_that_was_cut_off_stays_an_array(share: float, tmp_path: Path, *, peer: bool) -> None:
    path, mended = tmp_path / "a.b2nd", tmp_path / "b.b2nd"
    if peer:
        theirs(path)
    else:
        superchunk.asarray(ITEMS, chunks=(10, 16), blocks=(5, 8), urlpath=path).close()
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * share)])
    assert superchunk.verify(path).status == "damaged"
    superchunk.repair(path, mended)
    with superchunk.open(mended) as array:
        assert isinstance(array, NDArray)
        assert array.shape == ITEMS.shape
        found = array[()]
    assert ((found == ITEMS) | (found == 0)).all()
    assert (found[:10, :16] == ITEMS[:10, :16]).all() or share < 0.5
