"""verify, repair and compact on the command line: exit codes, tables, JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cli_runner import fail, run, succeed

import superchunk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def frame(tmp_path: Path) -> Path:
    path = tmp_path / "x.b2frame"
    with superchunk.SChunk(4000, np.arange(5000, dtype=np.int64), urlpath=path, mode="w") as s:
        s.vlmeta["name"] = "numbers"
    return path


def damage(path: Path, at: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


def test_exit_codes_tell_sound_damaged_and_not_sealed(frame: Path, tmp_path: Path) -> None:
    assert "sound" in succeed("verify", frame).text
    foreign = tmp_path / "plain.b2frame"
    foreign.write_bytes(superchunk.SChunk(data=b"0123456789" * 100).to_cframe())
    assert run("verify", foreign).code == 3
    broken = tmp_path / "broken.b2frame"
    broken.write_bytes(frame.read_bytes())
    damage(broken, 300)
    result = run("verify", foreign, broken, frame)
    assert result.code == 1
    assert "chunk 0 at byte" in result.text
    assert run("verify", frame, foreign).code == 3
    assert run("verify").code == 2


def test_a_missing_file_is_told_and_the_others_are_checked(frame: Path, tmp_path: Path) -> None:
    result = run("verify", tmp_path / "none", frame)
    assert result.code == 1
    assert "none" in result.stderr
    assert "sound" in result.text


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.npy", b"\x93NUMPY\x01\x00" + bytes(200), "it is a .npy file"),
        ("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(200), "it is an HDF5 file"),
        ("a.bin", bytes(range(256)), "is not a Blosc2 frame"),
        ("a.b2frame", b"", "it is empty"),
    ],
)
def test_another_file_is_no_damaged_frame(frame: Path, tmp_path: Path, name: str, content: bytes, what: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert what in fail(4, "verify", tmp_path / name)
    assert run("verify", frame, tmp_path / name).code == 4
    (report,) = json.loads(run("verify", "--json", tmp_path / name).text)
    assert (report["is_frame"], report["status"]) == (False, "damaged")
    damage(frame, 300)
    assert run("verify", frame, tmp_path / name).code == 1


def test_a_directory_without_a_frame_is_no_damaged_frame(tmp_path: Path) -> None:
    assert "is not a Blosc2 frame" in fail(4, "verify", tmp_path)
    (tmp_path / "zarr.json").write_text("{}")
    assert "it is a Zarr array or group" in fail(4, "verify", tmp_path)
    superchunk.SChunk(data=b"0123", urlpath=tmp_path / "x", contiguous=False).close()
    (tmp_path / "x" / "chunks.b2frame").write_bytes(b"something else")
    assert run("verify", tmp_path / "x").code == 1


@pytest.mark.parametrize("sealed", [True, False])
def test_a_frame_that_lost_one_of_its_ends_is_damaged(tmp_path: Path, *, sealed: bool) -> None:
    raw = superchunk.SChunk(4000, np.arange(5000), urlpath=tmp_path / "x", mode="w", seal=sealed)
    raw.close()
    content = (tmp_path / "x").read_bytes()
    lost = {
        "beginning": bytes(1000) + content[1000:],
        "end": content[:-1000],
        "most": content[:20],
        "three bytes": b"abc" + content[3:-30],
    }
    for what, left in lost.items():
        (tmp_path / "x").write_bytes(left)
        assert superchunk.verify(tmp_path / "x").is_frame, what
        assert run("verify", tmp_path / "x").code == 1, what


def test_json_holds_all_reports(frame: Path) -> None:
    reports = json.loads(succeed("verify", "--json", "--decode", "--threads", "2", frame, frame).text)
    assert [report["status"] for report in reports] == ["sound", "sound"]
    assert reports[0]["decoded"]


def test_repair_beside_in_place_and_not_over_anything(frame: Path, tmp_path: Path) -> None:
    assert "nothing to do" in succeed("repair", frame).text
    with superchunk.open(frame) as s:
        whole = s[:]
    damage(frame, 20)
    assert "repaired" in succeed("repair", frame).text
    beside = tmp_path / "x.repaired.b2frame"
    with superchunk.open(beside) as s:
        assert s[:] == whole
    assert "exists already" in fail(1, "repair", frame)
    report = json.loads(succeed("repair", "--json", frame, "-o", tmp_path / "other").text)
    assert report["chunks"] == {"whole": 10, "doubtful": 0, "lost": 0}
    assert run("repair", "--in-place", "-o", "x", frame).code == 2
    succeed("repair", "--in-place", frame)
    assert run("verify", frame).code == 0


def test_compact_gives_dead_bytes_back(frame: Path) -> None:
    with superchunk.open(frame, mode="a") as s:
        s.delete_chunk(3)
        whole = s[:]
        assert s.dead_bytes > 0
    before = frame.stat().st_size
    assert "bytes removed" in succeed("compact", frame).text
    assert frame.stat().st_size < before
    with superchunk.open(frame) as s:
        assert s[:] == whole
        assert s.dead_bytes == 0


@pytest.mark.parametrize("contiguous", [True, False])
def test_compact_takes_arrays_too(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "x"
    with superchunk.asarray(np.arange(5000), chunks=(500,), urlpath=path, contiguous=contiguous) as array:
        array[:] = np.arange(5000)[::-1]
        dead = array.dead_bytes
        assert dead == array.schunk.dead_bytes
    assert "bytes removed" in succeed("compact", path).text
    with superchunk.open(path) as array:
        assert array.dead_bytes <= dead
        assert array[:].tolist() == list(range(5000))[::-1]
