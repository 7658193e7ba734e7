"""`verify`: what it says about sound, foreign, damaged and hostile frames."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk
from superchunk import _engine
from superchunk._format.frame_index import Index
from superchunk._store.frame_loading import parse_frame
from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    from superchunk._store.frame_loading import Loaded

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
GOLDEN = Path(__file__).parent / "golden"


def frame(path: Path, nchunks: int = 6) -> bytes:
    with superchunk.SChunk(400, urlpath=path, mode="w", meta={"m": b"abc"}, cparams={"typesize": 4}) as s:
        for n in range(nchunks):
            s.append_data(np.arange(100, dtype=np.int32) * (n + 1))
        s.vlmeta["v"] = [1, 2, 3]
    return path.read_bytes()


def load(raw: bytes) -> Loaded:
    return parse_frame(lambda n, at: raw[at : at + n], len(raw), lambda at, limit: raw[at : at + limit])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.b2frame"


def status_of(report: superchunk.VerifyReport, name: str) -> str:
    return next(part.status for part in report.parts if part.name == name)


def test_a_new_frame_is_sound_and_the_report_is_a_value(path: Path) -> None:
    frame(path)
    report = superchunk.verify(path, decode=True)
    assert report.status == "sound"
    assert report.chunks == {"special": 0, "sound": 6, "not sealed": 0, "damaged": 0, "in doubt": 0}
    assert pickle.loads(pickle.dumps(report)) == report  # noqa: S301 - our own bytes
    assert json.loads(report.to_json())["nchunks"] == 6
    assert "fingerprint" in str(report)
    with superchunk.open(path) as s:
        assert report.dead_bytes == s.dead_bytes
        assert s.verify() == superchunk.verify(path)


def test_what_waits_is_committed_and_memory_can_be_decoded(path: Path) -> None:
    with superchunk.SChunk(400, urlpath=path, mode="w") as s:
        for n in range(50):
            s.append_data(np.arange(50, dtype=np.int64) * n)
        assert s.verify().nchunks == 50
    memory = superchunk.SChunk(data=np.arange(1000), chunksize=800)
    assert memory.verify(decode=True).nchunks == 10


def test_a_frame_inside_a_file_and_bytes_behind(path: Path) -> None:
    raw = frame(path)
    path.write_bytes(b"x" * 77 + raw + b"yyy")
    report = superchunk.verify(path, offset=77)
    assert (report.status, report.offset, report.bytes_behind) == ("sound", 77, 3)
    assert superchunk.verify(raw).status == "sound"


def test_frames_without_seals_are_not_sealed() -> None:
    frames = sorted(GOLDEN.rglob("*.b2frame")) or sorted(GOLDEN.rglob("*.b2nd"))
    assert frames
    for one in frames:
        report = superchunk.verify(one, decode=True)
        assert report.status in ("not sealed", "sound"), str(report)


def test_several_things_damaged_at_once_are_all_named(path: Path) -> None:
    raw = bytearray(frame(path))
    loaded = load(bytes(raw))
    base = loaded.header.header_len
    for number in (1, 4):
        raw[base + loaded.index[number] + 50] ^= 1
    raw[0x2B] ^= 4  # cbytes
    path.write_bytes(raw)
    report = superchunk.verify(path)
    assert [chunk.nchunk for chunk in report.damaged_chunks] == [1, 4]
    assert status_of(report, "header") == "damaged"
    assert "cbytes" in report.parts[0].message
    assert report.chunks["sound"] == 4


def test_a_lost_header_does_not_end_the_search(path: Path) -> None:
    raw = frame(path)
    path.write_bytes(bytes(90) + raw[90:])
    report = superchunk.verify(path)
    assert status_of(report, "header") == "damaged"
    assert (report.status, report.chunks["sound"], report.nchunks) == ("damaged", 6, 6)


def test_a_lost_tail_is_told_with_the_newest_commit(path: Path) -> None:
    frame(path)
    with superchunk.open(path, mode="a") as s:
        s.append_data(np.arange(100, dtype=np.int32))
        s.flush()
    raw = path.read_bytes()
    path.write_bytes(raw[:-5])
    report = superchunk.verify(path)
    assert report.status == "damaged"
    assert status_of(report, "trailer") == "damaged"
    assert "6 chunks" in next(part.message for part in report.parts if part.name == "trailer")


def test_a_chunk_whose_size_is_not_what_the_frame_says(path: Path) -> None:
    raw = bytearray(frame(path))
    loaded = load(bytes(raw))
    start = loaded.header.header_len + loaded.index[2]
    other = _engine.compress(bytes(100) + b"data" * 25, _engine.EncodeParams(typesize=4))
    old = _engine.describe(bytes(raw[start:])).cbytes
    assert len(other) <= old
    raw[start : start + len(other) + 16] = other + _engine.seal(other)
    path.write_bytes(raw)
    report = superchunk.verify(path)
    assert [(chunk.nchunk, chunk.status) for chunk in report.damaged_chunks] == [(2, "damaged")]
    assert "200 bytes" in report.damaged_chunks[0].reason


def with_index(raw: bytes, entries: list[int]) -> bytes:
    """Return the frame with another index, not sealed."""
    loaded = load(raw)
    chunk = Index(entries).to_chunk()
    assert len(chunk) == loaded.index_len
    at = loaded.header.header_len + loaded.header.cbytes
    return raw[:at] + chunk + raw[at + len(chunk) : -17] + bytes(17)


def test_chunks_at_one_place_and_entries_out_of_bounds(path: Path) -> None:
    raw = frame(path)
    entries = list(load(raw).index.slice(0, 6))
    path.write_bytes(with_index(raw, [*entries[:5], entries[0]]))
    report = superchunk.verify(path)
    assert {chunk.nchunk for chunk in report.damaged_chunks} == {0, 5}
    path.write_bytes(with_index(raw, [*entries[:3], 10**12, -1, entries[5]]))
    report = superchunk.verify(path)
    assert [chunk.nchunk for chunk in report.damaged_chunks] == [3, 4]
    assert report.status == "damaged"


def test_progress_and_threads_change_nothing(path: Path) -> None:
    frame(path, 300)
    told: list[tuple[int, int]] = []
    one = superchunk.verify(path, nthreads=1, progress=lambda done, total: told.append((done, total)))
    assert one == superchunk.verify(path, nthreads=3)
    assert told
    assert all(0 <= done <= total for done, total in told)


@pytest.mark.parametrize("cut", range(0, 600, 7))
def test_truncated_anywhere_is_damaged(path: Path, cut: int) -> None:
    raw = frame(path)
    path.write_bytes(raw[: max(len(raw) - 1 - cut * 4, 0)])
    assert superchunk.verify(path).status == "damaged"


def test_wrong_arguments(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        superchunk.verify(path)
    frame(path)
    with pytest.raises(ValueError, match="nthreads"):
        superchunk.verify(path, nthreads=0)
    with pytest.raises(ValueError, match="offset"):
        superchunk.verify(path, offset=-1)


def test_an_index_that_repeats_one_chunk_is_not_hashed_again_and_again(path: Path) -> None:
    with superchunk.SChunk(2**20, urlpath=path, mode="w", cparams={"clevel": 0}) as s:
        for n in range(3):
            s.append_data(bytes((n, 1)) * 2**19)
    raw = path.read_bytes()
    loaded = load(raw)
    header = loaded.header
    count = 10**8
    chunk = _engine.special_chunk(3, 8 * count, 8, (0).to_bytes(8, "little"))
    head = bytearray(raw[: header.header_len])
    head[0x1E:0x26] = (count * 2**20).to_bytes(8, "big")
    trailer = raw[-loaded.trailer_len : -17] + bytes(17)
    at = header.header_len + header.cbytes
    head[0x10:0x18] = (at + len(chunk) + len(trailer)).to_bytes(8, "big")
    path.write_bytes(bytes(head) + raw[header.header_len : at] + chunk + trailer)
    report = superchunk.verify(path)
    assert (report.status, report.nchunks) == ("damaged", count)


def test_the_directory_of_a_sparse_frame(tmp_path: Path) -> None:
    blosc2 = pytest.importorskip("blosc2", reason="it writes directories")
    folder = tmp_path / "x.b2frame"
    s = blosc2.SChunk(400, urlpath=str(folder), mode="w", contiguous=False, cparams={"typesize": 4})
    for n in range(5):
        s.append_data(np.arange(100, dtype=np.int32) * (n + 1))
    s.append_data(np.zeros(100, np.int32))
    s.vlmeta["v"] = 1
    del s
    report = superchunk.verify(folder, decode=True)
    assert (report.status, report.kind) == ("not sealed", "sparse")
    assert report.chunks == {"special": 1, "sound": 0, "not sealed": 5, "damaged": 0, "in doubt": 0}
    (folder / "00000002.chunk").unlink()
    broken = folder / "00000004.chunk"
    broken.write_bytes(broken.read_bytes()[:40])
    report = superchunk.verify(folder)
    assert [(chunk.nchunk, chunk.position) for chunk in report.damaged_chunks] == [(2, 2), (4, 4)]


@pytest.mark.parametrize("kind", ["SChunk", "NDArray"])
def test_damage_of_what_is_in_memory_is_reported_and_not_raised(tmp_path: Path, kind: str) -> None:
    path, rng = tmp_path / "a.b2frame", np.random.default_rng(0)
    made: Any
    if kind == "SChunk":
        made = superchunk.SChunk(chunksize=1000, data=rng.bytes(5000), urlpath=path)
    else:
        made = superchunk.asarray(rng.integers(0, 256, 5000, "u1"), chunks=(1000,), blocks=(1000,), urlpath=path)
    with made:
        middle = len(made.schunk.to_cframe() if kind == "NDArray" else made.to_cframe()) // 2
    raw = bytearray(path.read_bytes())
    for opened in (superchunk.open(path, mmap_mode="c"), superchunk.from_cframe(bytes(raw))):
        found = opened.verify(decode=True)
        assert (found.status, found.nchunks, found.chunks["sound"], found.chunks["damaged"]) == ("not sealed", 5, 5, 0)
        opened.close()
    raw[middle] ^= 1
    path.write_bytes(raw)
    for opened in (superchunk.open(path, mmap_mode="c"), superchunk.from_cframe(bytes(raw)), superchunk.open(path)):
        found = opened.verify(decode=True)
        assert (found.status, found.nchunks, found.chunks["sound"], found.chunks["damaged"]) == ("damaged", 5, 4, 1)
        assert found.damaged_chunks[0].nchunk == 2
        assert "chunk 2" in str(found)
        opened.close()
    changed: Any = superchunk.open(path, mmap_mode="c")
    store = changed.schunk if kind == "NDArray" else changed
    store.update_data(2, b"x" * 1000, copy=True)
    found = store.verify()
    assert (found.status, found.chunks["sound"], found.chunks["not sealed"]) == ("not sealed", 4, 1)
    assert superchunk.verify(path).status == "damaged"


def test_verify_refuses_numbers_that_cannot_be(tmp_path: Path) -> None:
    made = superchunk.SChunk(data=b"abc", urlpath=tmp_path / "a")
    for each in (made, superchunk.SChunk(data=b"abc")):
        with pytest.raises(ArgumentError, match="nthreads"):
            each.verify(nthreads=0)
    with pytest.raises(ArgumentError, match="offset"):
        superchunk.verify(tmp_path / "a", offset=-1)
