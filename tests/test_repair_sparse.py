"""`repair` of directories: by the index, by the settled one, by names; beside and in place."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk
from superchunk._format.integrity import SEAL_LEN
from superchunk._store import os_file as storage_file
from superchunk.exceptions import ArgumentError, FormatError, LockedError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = 100


def data(seed: int) -> bytes:
    return np.random.default_rng(seed).integers(0, 5000, ITEMS, dtype=np.int32).tobytes()


def chunks_of(path: str | Path | None) -> list[bytes]:
    assert path is not None
    with superchunk.open(path) as s:
        return [s.decompress_chunk(n) or b"" for n in range(s.nchunks)]


def make(folder: Path, nchunks: int = 6) -> list[bytes]:
    """Write a directory; return the chunks' contents."""
    layers: dict[str | bytes, object] = {"m": b"abc"}
    with superchunk.SChunk(
        4 * ITEMS, urlpath=folder, mode="w", contiguous=False, meta=layers, cparams={"typesize": 4}
    ) as s:
        for n in range(nchunks):
            s.append_data(data(n))
        s.vlmeta["v"] = list(range(20))
        s.flush()
    return [data(n) for n in range(nchunks)]


def repaired(path: Path, **options: Any) -> superchunk.RepairReport:
    before = snapshot(path)
    report = superchunk.repair(path, path.with_suffix(".out"), **options)
    assert report.output is not None
    assert superchunk.verify(report.output).status == "sound"
    assert snapshot(path) == before
    return report


def snapshot(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.b2frame"


def test_the_result_is_a_directory_with_the_same_chunk_files(path: Path) -> None:
    wanted = make(path)
    (path / "00000002.chunk").unlink()
    report = superchunk.repair(path)
    assert report.output == str(path.with_name("x.repaired.b2frame"))
    beside = path.with_name("x.repaired.b2frame")
    assert beside.is_dir()
    kept = [one for one in snapshot(path) if one.endswith(".chunk")]
    others = {content for name, content in snapshot(beside).items() if name.endswith(".chunk")}
    assert {snapshot(path)[name] for name in kept} == others
    assert [report.class_of(n) for n in range(6)] == ["whole", "whole", "lost", "whole", "whole", "whole"]
    assert report.listed[0].file == "00000002.chunk"
    assert "no such file" in str(report)
    got = chunks_of(report.output)
    assert got[:2] + got[3:] == wanted[:2] + wanted[3:]
    with superchunk.open(beside) as s:
        assert s.vlmeta["v"] == list(range(20))
        assert s.meta["m"] == b"abc"


@pytest.mark.parametrize("contiguous", [True, False])
def test_the_kind_can_be_chosen(path: Path, contiguous: bool) -> None:  # noqa: FBT001
    make(path)
    (path / "00000002.chunk").unlink()
    report = repaired(path, contiguous=contiguous)
    assert path.with_suffix(".out").is_file() is contiguous
    assert report.chunks == {"whole": 5, "doubtful": 0, "lost": 1}


def test_a_file_becomes_a_directory_if_asked(path: Path) -> None:
    with superchunk.SChunk(4 * ITEMS, urlpath=path, mode="w", cparams={"typesize": 4}) as s:
        for n in range(3):
            s.append_data(data(n))
    path.write_bytes(path.read_bytes()[:-3])
    report = superchunk.repair(path, contiguous=False)
    assert path.with_name("x.repaired.b2frame").is_dir()
    assert chunks_of(report.output) == [data(n) for n in range(3)]


def test_in_place_takes_the_name_when_all_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = make(path)
    (path / "00000002.chunk").unlink()
    before = snapshot(path)

    class Full(storage_file.System):
        def exchange(self, one: str, other: str) -> None:
            if other == str(path):
                raise OSError(28, "No space left on device")
            super().exchange(one, other)

    with monkeypatch.context() as patched:
        patched.setattr(storage_file, "system", Full())
        with pytest.raises(StorageError):
            superchunk.repair(path, in_place=True)
    assert superchunk.verify(path).status == "damaged"
    old = path if path.exists() else next(path.parent.glob(".x.b2frame.*.old"))
    assert snapshot(old) == before
    report = superchunk.repair(path, in_place=True)
    assert (report.output, report.chunks) == (str(path), {"whole": 5, "doubtful": 0, "lost": 1})
    assert superchunk.verify(path).status == "sound"
    assert chunks_of(path)[:2] == wanted[:2]
    assert [one.name for one in path.parent.iterdir()] == [path.name]


WRITER = """
import sys, superchunk
with superchunk.open(sys.argv[1], mode="a") as s:
    print("open", flush=True)
    sys.stdin.read()
"""


def test_in_place_is_refused_while_another_process_writes(path: Path) -> None:
    make(path)
    (path / "00000002.chunk").unlink()
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(LockedError):
            superchunk.repair(path, in_place=True)
        other.communicate(b"")
    assert superchunk.repair(path, in_place=True).status == "repaired"


def unsynced(path: Path) -> tuple[list[bytes], list[bytes]]:
    """Write a directory whose newest commits were never synced; return both states."""
    old = make(path)
    with superchunk.open(path, mode="a") as s:
        s.update_data(1, data(50), copy=True)
        s.append_data(data(51))
    new = [*old[:1], data(50), *old[2:], data(51)]
    assert (path / ".settled.b2frame").exists()
    assert chunks_of(path) == new
    return old, new


@pytest.mark.parametrize("damage", ["empty", "missing", "zeros"])
def test_the_settled_index_is_used_when_the_present_one_is_damaged(path: Path, damage: str) -> None:
    old, new = unsynced(path)
    index = path / "chunks.b2frame"
    if damage == "missing":
        index.unlink()
    else:
        index.write_bytes(b"" if damage == "empty" else bytes(index.stat().st_size))
    found = superchunk.verify(path)
    assert found.status == "damaged"
    settled = next(part for part in found.parts if part.name == "settled index")
    assert (settled.status, "6 chunks" in settled.message) == ("sound", True)
    report = repaired(path)
    got = chunks_of(report.output)
    assert got[:6] == old
    assert set(got[6:]) == {data(50), data(51)}
    assert report.chunks == {"whole": 6, "doubtful": len(got) - 6, "lost": 0}
    assert any("settled" in note for note in report.notes)
    assert set(new) - {data(51)} <= set(got)


@pytest.mark.parametrize("damage", ["empty", "bit", "gone"])
def test_one_damaged_chunk_file_does_not_bring_the_settled_state_back(path: Path, damage: str) -> None:
    old, new = unsynced(path)
    with superchunk.open(path, mode="a") as s:
        s.delete_chunk(0)
        s.vlmeta["v"] = "newer"
    new = new[1:]
    newest = max(one for one in path.iterdir() if one.name.endswith(".chunk"))
    raw = bytearray(newest.read_bytes())
    raw[12] ^= 1
    newest.unlink() if damage == "gone" else newest.write_bytes(b"" if damage == "empty" else raw)
    report = repaired(path)
    assert report.chunks == {"whole": 5, "doubtful": 0, "lost": 1}
    assert chunks_of(report.output)[:5] == new[:5]
    with superchunk.open(str(report.output)) as s:
        assert s.vlmeta["v"] == "newer"
    shutil.rmtree(str(report.output))
    report = repaired(path, recover=True)
    assert chunks_of(report.output) == old
    assert report.chunks == {"whole": 6, "doubtful": 0, "lost": 0}


def test_recover_is_refused_where_no_commit_is_whole(path: Path) -> None:
    make(path)
    (path / "00000002.chunk").unlink()
    with pytest.raises(FormatError, match="whole"):
        superchunk.repair(path, recover=True)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_the_settled_index_is_not_used_while_the_present_one_is_whole(path: Path) -> None:
    _, new = unsynced(path)
    raw = bytearray((path / "chunks.b2frame").read_bytes())
    raw[0x20] ^= 1  # the header has a copy
    (path / "chunks.b2frame").write_bytes(raw)
    report = repaired(path)
    assert report.chunks == {"whole": 7, "doubtful": 0, "lost": 0}
    assert chunks_of(report.output) == new


@pytest.mark.parametrize("lost", ["missing", "cut", "link"])
def test_without_any_index_the_names_tell(path: Path, tmp_path: Path, lost: str) -> None:
    wanted = make(path)
    index = path / "chunks.b2frame"
    if lost == "missing":
        index.unlink()
    elif lost == "cut":
        index.write_bytes(index.read_bytes()[:40])
    else:
        index.rename(tmp_path / "elsewhere")
        index.symlink_to(tmp_path / "elsewhere")
    assert superchunk.verify(path).status == "damaged"
    report = repaired(path)
    assert report.chunks == {"whole": 0, "doubtful": 6, "lost": 0}
    assert chunks_of(report.output) == wanted
    with superchunk.open(str(report.output)) as s:
        assert (s.typesize, s.chunksize) == (4, 4 * ITEMS)


def test_a_damaged_chunk_file_among_those_found_by_name_is_left_out(path: Path) -> None:
    wanted = make(path)
    (path / "chunks.b2frame").unlink()
    chunk = path / "00000003.chunk"
    raw = bytearray(chunk.read_bytes())
    raw[-SEAL_LEN - 3] ^= 1
    chunk.write_bytes(raw[:-SEAL_LEN] + bytes(SEAL_LEN))
    (path / "00000004.chunk").write_bytes(b"no chunk")
    report = repaired(path)
    got = chunks_of(report.output)
    assert got[:3] == wanted[:3]
    assert wanted[4] not in got
    assert wanted[5] in got


def test_a_directory_without_anything_of_a_frame(path: Path) -> None:
    path.mkdir()
    with pytest.raises(FileNotFoundError):
        superchunk.repair(path)
    (path / "00000000.chunk").write_bytes(b"nothing")
    with pytest.raises(FormatError):
        superchunk.repair(path)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_frame_inside_a_larger_file(path: Path) -> None:
    with superchunk.SChunk(4 * ITEMS, urlpath=path, mode="w", cparams={"typesize": 4}) as s:
        for n in range(5):
            s.append_data(data(n))
        s.vlmeta["v"] = "text"
    raw = bytearray(path.read_bytes())
    raw[0x1F] ^= 8
    path.write_bytes(b"before" * 20 + raw + b"behind")
    assert superchunk.verify(path, offset=120).status == "damaged"
    report = superchunk.repair(path, path.with_suffix(".out"), offset=120)
    assert report.chunks == {"whole": 5, "doubtful": 0, "lost": 0}
    assert chunks_of(report.output) == [data(n) for n in range(5)]
    for options in ({"offset": 120, "in_place": True}, {"offset": -1}):
        with pytest.raises(ArgumentError):
            superchunk.repair(path, **options)  # type: ignore[arg-type]


def spoil(victim: Path, choice: random.Random) -> None:
    """Damage a file, or remove it."""
    raw = bytearray(victim.read_bytes())
    kind = choice.randrange(4)
    at = choice.randrange(len(raw)) if raw else 0
    if kind == 0:
        victim.unlink()
        return
    if kind == 1:
        raw = raw[:at]
    elif kind == 2 and raw:
        raw[at] ^= 1 << choice.randrange(8)
    else:
        raw[at : at + 200] = bytes(len(raw[at : at + 200]))
    victim.write_bytes(raw)


@pytest.mark.parametrize("seed", range(80))
def test_every_chunk_file_that_is_still_whole_comes_back(path: Path, seed: int) -> None:
    choice = random.Random(seed)
    old = wanted = make(path)
    if choice.randrange(2):
        old, wanted = unsynced(path)
        if choice.randrange(2):
            (path / ".settled.b2frame").unlink()
    whole = {one.name for one in path.iterdir()}
    for victim in choice.sample(sorted(whole), choice.randrange(1, 3)):
        spoil(path / victim, choice)
        whole.discard(victim)
    if superchunk.verify(path).status != "damaged":
        return
    report = repaired(path)
    got = chunks_of(report.output)
    for name in whole:
        content = superchunk.decompress2((path / name).read_bytes()) if name.endswith(".chunk") else b""
        assert not content or content in got or content not in wanted, (name, str(report))
    states = [
        [report.class_of(n) != "whole" or got[n] == state[n] for n in range(min(len(state), len(got)))]
        for state in (old, wanted)
    ]
    assert all(states[0]) or all(states[1]), str(report)


# Directories of C-Blosc2.


def foreign(folder: Path) -> list[bytes]:
    blosc2 = pytest.importorskip("blosc2", reason="the other writer")
    s = blosc2.SChunk(4 * ITEMS, urlpath=str(folder), mode="w", contiguous=False, cparams={"typesize": 4})
    for n in range(6):
        s.append_data(np.frombuffer(data(n), np.int32))
    return [s.decompress_chunk(n) for n in range(6)]


def test_a_directory_of_c_blosc2_with_a_missing_chunk(path: Path) -> None:
    wanted = foreign(path)
    (path / "00000002.chunk").unlink()
    report = repaired(path)
    assert [report.class_of(n) for n in range(6)] == ["whole", "whole", "lost", "whole", "whole", "whole"]
    got = chunks_of(report.output)
    assert got[:2] + got[3:] == wanted[:2] + wanted[3:]


def test_a_directory_of_c_blosc2_without_its_index(path: Path) -> None:
    wanted = foreign(path)
    (path / "chunks.b2frame").unlink()
    report = repaired(path)
    assert report.chunks == {"whole": 0, "doubtful": 6, "lost": 0}
    assert chunks_of(report.output) == wanted
    shutil.rmtree(str(report.output))
