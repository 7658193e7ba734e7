"""`verify` of directories: every flipped bit of every file is found, and the file named."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cli_runner import run
from flips import flipped, live_ranges, named

import superchunk
from superchunk._format.integrity import SEAL_LEN
from superchunk._integrity.inspect_frame import examine
from superchunk._store.os_file import FileBytes
from superchunk._store.sparse_frame_loading import whole_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from superchunk._integrity.inspect_frame import Bytes, FrameInspection
    from superchunk._store.frame_loading import Loaded

ITEMS = 40
LAYERS: dict[str | bytes, object] = {"m": b"abc", "k": {"x": 1}}


def numbers(seed: int, count: int = ITEMS) -> np.ndarray:
    return (np.arange(count, dtype=np.int32) * (seed + 3)) % 1009


def everything(path: Path) -> None:
    with superchunk.SChunk(
        4 * ITEMS, urlpath=path, mode="w", contiguous=False, meta=LAYERS, cparams={"typesize": 4}
    ) as s:
        for seed in range(4):
            s.append_data(numbers(seed))
        s.append_data(np.zeros(ITEMS, np.int32))
        s.append_data(np.full(ITEMS, 7, np.int32))
        s.vlmeta["v"] = list(range(50))
        s.delete_chunk(1)
        s.update_data(0, numbers(9), copy=True)
        s.flush()


def varying(path: Path) -> None:
    with superchunk.SChunk(-1, urlpath=path, mode="w", contiguous=False) as s:
        for count in (10, 40, 3):
            s.append_data(numbers(count, count))
        s.flush()


def empty(path: Path) -> None:
    with superchunk.SChunk(400, urlpath=path, mode="w", contiguous=False, meta=LAYERS) as s:
        s.vlmeta["v"] = 1
        s.flush()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.b2frame"


@pytest.fixture
def frame(path: Path) -> Path:
    everything(path)
    return path


def chunk_files(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.name.endswith(".chunk"))


def bits(ranges: range) -> Iterator[tuple[int, int]]:
    return ((at, bit) for at in ranges for bit in range(8))


@pytest.mark.parametrize("make", [everything, varying, empty])
def test_every_flip_in_the_index_file_is_found_and_named(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    assert superchunk.verify(path).status == "sound"
    index = path / "chunks.b2frame"
    raw = bytearray(index.read_bytes())
    for part in live_ranges(bytes(raw), sparse=True):
        for at, bit in bits(range(part.start, part.stop)):
            with flipped(raw, index, at, bit):
                report = superchunk.verify(path, nthreads=1)
            assert report.status != "sound", (at, bit)
            assert part.names & named(report), (at, bit, part.names, str(report))
    assert superchunk.verify(path).status == "sound"


@pytest.mark.parametrize("make", [everything, varying])
def test_every_flip_in_a_chunk_file_is_found_and_its_file_named(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    for file in chunk_files(path):
        raw = bytearray(file.read_bytes())
        for at, bit in bits(range(len(raw))):
            with flipped(raw, file, at, bit):
                report = superchunk.verify(path, nthreads=1)
            assert report.status == "damaged", (file.name, at, bit)
            assert [one.file for one in report.damaged_chunks] == [file.name], (at, bit, str(report))
            assert named(report) == {f"chunk {report.damaged_chunks[0].nchunk}"}
            assert f"in {file.name}" in str(report)
    assert superchunk.verify(path).status == "sound"


def only_damaged(path: Path, decode: bool = False) -> superchunk.ChunkReport:  # noqa: FBT001, FBT002
    report = superchunk.verify(path, decode=decode)
    assert report.status == "damaged"
    assert len(report.damaged_chunks) == 1, str(report)
    return report.damaged_chunks[0]


def test_a_missing_chunk_file(frame: Path) -> None:
    victim = chunk_files(frame)[1]
    victim.unlink()
    found = only_damaged(frame, decode=True)
    assert (found.file, found.reason) == (victim.name, "there is no such file")
    result = run("verify", frame)
    assert result.code == 1
    assert f"in {victim.name}: damaged, there is no such file" in result.text


@pytest.mark.parametrize("kept", [0, 5, 31, -SEAL_LEN - 1, -SEAL_LEN, -1])
def test_a_chunk_file_that_is_too_short(frame: Path, kept: int) -> None:
    victim = chunk_files(frame)[1]
    victim.write_bytes(victim.read_bytes()[:kept])
    assert only_damaged(frame).file == victim.name


def test_what_stands_behind_chunk_and_seal_is_dead(frame: Path) -> None:
    before = superchunk.verify(frame).dead_bytes
    victim = chunk_files(frame)[1]
    victim.write_bytes(victim.read_bytes() + b"x" * 100)
    report = superchunk.verify(frame)
    assert (report.status, report.dead_bytes) == ("sound", before + 100)


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_a_chunk_file_that_is_none(frame: Path, tmp_path: Path, kind: str) -> None:
    victim = chunk_files(frame)[1]
    victim.rename(tmp_path / "elsewhere")
    if kind == "link":
        victim.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        victim.mkdir()
    else:
        os.mkfifo(victim)
    found = only_damaged(frame)
    assert found.file == victim.name
    assert ("symbolic link" if kind == "link" else "no regular file") in found.reason


def test_files_that_are_not_the_frames_are_dead_or_nobodys(frame: Path) -> None:
    before = superchunk.verify(frame)
    stray = frame / "000000FF.chunk"
    stray.write_bytes(chunk_files(frame)[0].read_bytes())
    (frame / ".chunks.b2frame.0123456789ab.new").write_bytes(b"half")
    (frame / "notes.txt").write_text("not mine")
    (frame / "0000000a.chunk").mkdir()
    report = superchunk.verify(frame)
    assert report.status == "sound"
    assert report.dead_bytes == before.dead_bytes + stray.stat().st_size


def test_files_kept_for_the_settled_index_and_for_snapshots(frame: Path) -> None:
    with superchunk.open(frame, snapshot=True) as pinned:
        before = pinned.nchunks
        with superchunk.open(frame, mode="a") as s:
            s.update_data(0, numbers(21), copy=True)
            s.delete_chunk(1)
        names = {one.name for one in frame.iterdir()}
        assert ".settled.b2frame" in names
        assert any(name.startswith(".pinned-") for name in names)
        report = superchunk.verify(frame)
        assert report.status == "sound"
        assert (report.nchunks, report.dead_bytes > 0) == (before - 1, True)
    (settled,) = [part for part in report.parts if part.name == "last synced index"]
    assert (settled.status, f"{before} chunks" in settled.message) == ("sound", True)


def test_a_damaged_settled_index_is_told_and_makes_no_damaged_frame(frame: Path) -> None:
    with superchunk.open(frame, mode="a") as s:
        s.append_data(numbers(30))
    settled = frame / ".settled.b2frame"
    raw = bytearray(settled.read_bytes())
    raw[30] ^= 1
    settled.write_bytes(raw)
    report = superchunk.verify(frame)
    assert report.status == "sound"
    (part,) = [part for part in report.parts if part.name == "last synced index"]
    assert (part.status, "gone back to" in part.message) == ("in doubt", True)


def test_a_damaged_index_and_a_whole_settled_one(frame: Path) -> None:
    with superchunk.open(frame, mode="a") as s:
        s.append_data(numbers(30))
    index = frame / "chunks.b2frame"
    index.write_bytes(index.read_bytes()[:30])
    report = superchunk.verify(frame)
    assert report.status == "damaged"
    assert report.parts[0].name == "header"
    assert "whole, with 5 chunks" in str(report)
    assert "recover=True" in str(report)
    with superchunk.open(frame, recover=True) as s:
        assert s.nchunks == 5


@pytest.mark.parametrize("kind", ["missing", "link", "folder"])
def test_no_index_file(frame: Path, tmp_path: Path, kind: str) -> None:
    index = frame / "chunks.b2frame"
    index.rename(tmp_path / "elsewhere")
    if kind == "link":
        index.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        index.mkdir()
    report = superchunk.verify(frame)
    assert report.status == "damaged"
    assert "index file" in report.parts[0].message
    (files,) = [part for part in report.parts if part.name == "chunk files"]
    assert files.message.startswith("4 ")


def test_an_empty_directory_is_no_frame(path: Path) -> None:
    path.mkdir()
    with pytest.raises(FileNotFoundError):
        superchunk.verify(path)


def test_two_chunk_files_that_changed_names(frame: Path, path: Path, tmp_path: Path) -> None:
    # A seal proves the bytes of a chunk, not where they belong: only a size that does not fit gives it away.
    one, other = chunk_files(frame)[:2]
    one.rename(tmp_path / "a")
    other.rename(one)
    (tmp_path / "a").rename(other)
    assert superchunk.verify(path).status == "sound"
    with superchunk.SChunk(4 * ITEMS, urlpath=tmp_path / "y", mode="w", contiguous=False, cparams={"typesize": 4}) as s:
        for seed in range(3):
            s.append_data(numbers(seed))
        s.append_data(numbers(3, ITEMS // 2))
        s.flush()
    one, *_, last = chunk_files(tmp_path / "y")
    one.rename(tmp_path / "a")
    last.rename(one)
    (tmp_path / "a").rename(last)
    report = superchunk.verify(tmp_path / "y")
    assert {chunk.nchunk for chunk in report.damaged_chunks} == {0, 3}


def test_a_chunk_put_in_the_place_of_another_by_its_name_twice(frame: Path) -> None:
    one, other = chunk_files(frame)[:2]
    other.unlink()
    os.link(one, other)
    assert superchunk.verify(frame).status == "sound"  # as above


def test_a_frame_whose_name_is_being_taken_is_found(frame: Path) -> None:
    frame.rename(frame.with_name(f".{frame.name}.0123456789ab.old"))
    frame.with_name(f".{frame.name}.b2taking").write_text("0123456789ab")
    assert superchunk.verify(frame).status == "sound"


def test_offset_is_for_files(frame: Path) -> None:
    with pytest.raises(ValueError, match="offset"):
        superchunk.verify(frame, offset=3)


def test_verify_while_another_handle_writes_sees_one_state(frame: Path) -> None:
    choice = random.Random(1)
    with superchunk.open(frame, mode="a") as s:

        def change(_done: int, _total: int) -> None:
            s.update_data(choice.randrange(3), numbers(choice.randrange(99)), copy=True)
            s.flush()

        for _ in range(10):
            report = superchunk.verify(frame, decode=True, progress=change)
            assert report.status == "sound", str(report)


def test_files_that_a_writer_removes_meanwhile_are_no_error(frame: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stray = frame / "000000FF.chunk"
    settled = frame / ".settled.b2frame"
    listing = os.scandir

    class Vanishing:
        """An entry of a file that is removed between being listed and being asked for its size."""

        def __init__(self, entry: os.DirEntry[str]) -> None:
            self._entry, self.name = entry, entry.name

        def is_file(self, *, follow_symlinks: bool) -> bool:
            return self._entry.is_file(follow_symlinks=follow_symlinks)

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            if self.name == stray.name:
                stray.unlink()
            return self._entry.stat(follow_symlinks=follow_symlinks)

    @contextmanager
    def scandir(folder: str) -> Iterator[Iterator[Vanishing]]:
        with listing(folder) as entries:
            yield map(Vanishing, entries)

    shutil.copy(chunk_files(frame)[0], stray)
    monkeypatch.setattr("superchunk._integrity.chunk_locations.os", SimpleNamespace(scandir=scandir, lstat=os.lstat))
    assert superchunk.verify(frame).status == "sound"
    assert not stray.exists()
    monkeypatch.undo()

    shutil.copy(frame / "chunks.b2frame", settled)
    opened = FileBytes.open

    def gone(path: str, **options: Any) -> FileBytes:
        settled.unlink(missing_ok=True)
        return opened(path, **options)

    monkeypatch.setattr("superchunk._integrity.index_file.FileBytes.open", gone)
    report = superchunk.verify(frame)
    assert report.status == "sound"
    assert all(part.name != "last synced index" for part in report.parts)


def test_a_settled_index_that_is_replaced_meanwhile_is_not_in_doubt(
    frame: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled, index = frame / ".settled.b2frame", frame / "chunks.b2frame"
    shutil.copy(index, settled)
    asked = []

    def checked(folder: FileBytes, loaded: Loaded, *, besides: set[int]) -> None:
        asked.append(loaded)
        if len(asked) == 1:  # a writer settles another one, and removes what this one names
            shutil.copy(index, frame / "other")
            (frame / "other").replace(settled)
            raise superchunk.FormatError("chunk 0", at=0, expected="one", found="none")
        whole_chunks(folder, loaded, besides=besides)

    monkeypatch.setattr("superchunk._integrity.index_file.whole_chunks", checked)
    parts = {part.name: part.status for part in superchunk.verify(frame).parts}
    assert (parts["last synced index"], len(asked)) == ("sound", 2)


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "directory"])
def test_a_frame_that_c_blosc2_changes_meanwhile_is_looked_at_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, contiguous: bool
) -> None:
    blosc2 = pytest.importorskip("blosc2")
    theirs = blosc2.SChunk(chunksize=4000, urlpath=str(path), mode="w", contiguous=contiguous)
    for seed in range(3):
        theirs.append_data(random.Random(seed).randbytes(4000))
    looks = []

    def looked(place: Bytes) -> FrameInspection:
        found = examine(place)
        looks.append(found)
        if len(looks) == 1:
            if contiguous:  # chunks move forward
                for number in range(3):
                    theirs.update_data(number, bytes(range(250)) * 16, copy=True)
            else:
                theirs.delete_chunk(0)
        return found

    monkeypatch.setattr("superchunk._integrity.verify.examine", looked)
    report = superchunk.verify(path, decode=True)
    assert (report.status, report.nchunks, len(looks)) == ("not sealed", 3 if contiguous else 2, 2)
    index = path if contiguous else path / "chunks.b2frame"
    raw = bytearray(index.read_bytes())
    raw[-40] ^= 0xFF
    index.write_bytes(raw)
    looks[:] = [looks[0]]
    superchunk.verify(path)
    assert len(looks) == 2, "what nobody changes is looked at once"
