"""`repair`: what is still in a damaged file comes back, and is called what it is."""

from __future__ import annotations

import json
import pickle
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from flips import live_ranges
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import superchunk
from superchunk._store.frame_loading import parse_frame
from superchunk.exceptions import ArgumentError, FormatError, StorageError, SuperchunkError

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = 100


def data(seed: int, count: int = ITEMS) -> bytes:
    return (np.random.default_rng(seed).integers(0, 5000, count, dtype=np.int32)).tobytes()


def make(path: Path, seed: int = 0) -> bytes:
    """Write a frame with some history; return its bytes."""
    choice = random.Random(seed)
    path.unlink(missing_ok=True)
    layers: dict[str | bytes, object] = {"m": b"abc"}
    with superchunk.SChunk(4 * ITEMS, urlpath=path, mode="w", meta=layers, cparams={"typesize": 4}) as s:
        for n in range(choice.randrange(3, 9)):
            s.append_data(data(seed * 1000 + n))
        s.append_data(bytes(4 * ITEMS))
        s.vlmeta["v"] = list(range(20))
        s.flush()
        for n in range(choice.randrange(6)):
            what = choice.randrange(4)
            if what == 0:
                s.delete_chunk(choice.randrange(s.nchunks))
            elif what == 1:
                s.update_data(choice.randrange(s.nchunks), data(seed * 1000 + 100 + n), copy=True)
            elif what == 2:
                s.append_data(data(seed * 1000 + 200 + n))
            else:
                s.vlmeta["w"] = "x" * choice.randrange(30)
            if choice.randrange(2):
                s.flush()
    return path.read_bytes()


def chunks_of(path: str | Path) -> list[bytes]:
    with superchunk.open(path) as s:
        return [s.decompress_chunk(n) or b"" for n in range(s.nchunks)]


def repaired(path: Path, **options: Any) -> superchunk.RepairReport:
    report = superchunk.repair(path, path.with_suffix(".out"), **options)
    assert report.output is not None
    assert superchunk.verify(report.output).status in ("sound", "not sealed")
    return report


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.b2frame"


def test_a_sound_frame_is_left_alone(path: Path) -> None:
    make(path)
    report = superchunk.repair(path)
    assert (report.status, report.output) == ("nothing to do", None)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_lost_header_comes_back_from_the_record(path: Path) -> None:
    raw = make(path)
    wanted = chunks_of(path)
    path.write_bytes(bytes(90) + raw[90:])
    report = repaired(path)
    assert report.chunks == {"whole": len(wanted), "doubtful": 0, "lost": 0}
    assert chunks_of(str(report.output)) == wanted
    with superchunk.open(str(report.output)) as s:
        assert s.vlmeta["v"] == list(range(20))
        assert s.meta["m"] == b"abc"
    assert path.read_bytes() == bytes(90) + raw[90:]
    assert pickle.loads(pickle.dumps(report)) == report  # noqa: S301 - our own bytes
    assert json.loads(report.to_json())["status"] == "repaired"


def test_a_damaged_chunk_is_lost_and_the_others_keep_their_places(path: Path) -> None:
    raw = bytearray(make(path))
    wanted = chunks_of(path)
    live = next(part for part in live_ranges(bytes(raw)) if "chunk 1" in part.names)
    raw[live.start : live.start + 20] = bytes(20)
    path.write_bytes(raw)
    report = repaired(path)
    got = chunks_of(str(report.output))
    assert report.class_of(1) == "lost"
    assert report.listed[0].nchunk == 1
    assert got[:1] + got[2:] == wanted[:1] + wanted[2:]
    assert got[1] == bytes(4 * ITEMS)
    assert "chunk 1" in str(report)


def test_output_in_place_and_refusals(path: Path) -> None:
    raw = make(path)
    wanted = chunks_of(path)
    path.write_bytes(raw[:-4])
    report = superchunk.repair(path)
    assert report.output == str(path.with_name("x.repaired.b2frame"))
    with pytest.raises(StorageError, match="exists already"):
        superchunk.repair(path)
    with pytest.raises(ArgumentError):
        superchunk.repair(path, "other", in_place=True)
    superchunk.repair(path, in_place=True)
    assert chunks_of(path) == wanted
    path.write_bytes(b"nothing of a frame" * 100)
    with pytest.raises(FormatError):
        superchunk.repair(path, path.with_suffix(".no"))
    assert not path.with_suffix(".no").exists()
    with pytest.raises(FileNotFoundError):
        superchunk.repair(path.with_suffix(".none"))


def damaged(raw: bytes, choice: random.Random) -> tuple[bytes, set[int]]:
    """Return `raw` with one kind of damage, and the bytes that are not as they were."""
    kind = choice.randrange(4)
    ranges = live_ranges(raw)
    out = bytearray(raw)
    if kind == 0:
        cut = choice.randrange(120, len(raw))
        return raw[:cut], set(range(cut, len(raw)))
    if kind == 1:
        start = choice.randrange(len(raw))
        stop = min(start + choice.randrange(1, 400), len(raw))
    else:
        names = ("header", "index chunk", "trailer", "fingerprint", "commit record")
        part = choice.choice([part for part in ranges if part.names & set(names)])
        start, stop = part.start, part.stop
        if kind == 2:
            at = choice.randrange(start, stop)
            out[at] ^= 1 << choice.randrange(8)
            return bytes(out), {at}
    out[start:stop] = bytes(stop - start)
    return bytes(out), {at for at in range(start, stop) if raw[at]}


@pytest.mark.parametrize("seed", range(150))
def test_every_chunk_that_is_still_there_comes_back(path: Path, seed: int) -> None:
    raw = make(path, seed % 12)
    wanted = chunks_of(path)
    base = {int(name.split()[1]): part for part in live_ranges(raw) for name in part.names if name.startswith("chunk ")}
    broken, gone = damaged(raw, random.Random(seed))
    path.write_bytes(broken)
    if superchunk.verify(path).status != "damaged":
        return
    report = repaired(path)
    got = chunks_of(str(report.output))
    for number, content in enumerate(wanted):
        part = base.get(number)
        if part is None or gone & set(range(part.start, part.stop - 16)):
            continue
        assert content in got, (number, str(report))
    proven = {number for number, part in base.items() if not gone & set(range(part.start, part.stop))}
    named = parse_frame_or_none(raw, broken)
    for number, content in enumerate(got):
        if report.class_of(number) == "whole" and named:
            assert content == wanted[number], (number, str(report))
    assert len(proven) <= len(got)


def parse_frame_or_none(raw: bytes, broken: bytes) -> bool:
    """Return whether the index and what leads to it are as they were."""
    loaded = parse_frame(lambda n, at: raw[at : at + n], len(raw), lambda at, limit: raw[at : at + limit])
    start = loaded.header.header_len + loaded.header.cbytes
    return broken[: loaded.header.header_len] == raw[: loaded.header.header_len] and (
        broken[start : start + loaded.index_len] == raw[start : start + loaded.index_len]
    )


# Frames of C-Blosc2, killed between its writes: states after the first n of them.


def states_of_append(before: bytes, after: bytes, *, header_len: int, cbytes: int, chunk_len: int) -> list[bytes]:
    """Return what the file holds before each write of an append, the first excepted."""
    loaded = parse_frame(lambda n, at: after[at : at + n], len(after), lambda at, limit: after[at : at + limit])
    start = header_len + cbytes
    index_at = header_len + loaded.header.cbytes
    assert index_at == start + chunk_len
    writes = [
        (start, after[start : start + chunk_len]),
        (index_at, after[index_at : index_at + loaded.index_len]),
        (0, after[:header_len]),
        (index_at + loaded.index_len, after[index_at + loaded.index_len :]),
    ]
    states, file = [], bytearray(before)
    for at, content in writes:
        file[len(file) :] = bytes(max(at + len(content) - len(file), 0))
        file[at : at + len(content)] = content
        states.append(bytes(file))
    return states


def test_c_blosc2_killed_while_it_appends(path: Path) -> None:
    blosc2 = pytest.importorskip("blosc2", reason="the other writer")
    s = blosc2.SChunk(4 * ITEMS, urlpath=str(path), mode="w", contiguous=True, cparams={"typesize": 4})
    for n in range(5):
        s.append_data(np.frombuffer(data(n), np.int32))
    s.vlmeta["v"] = "text"
    del s
    before = path.read_bytes()
    old = chunks_of(path)
    loaded = parse_frame(lambda n, at: before[at : at + n], len(before), lambda at, limit: before[at : at + limit])
    s = blosc2.open(str(path), mode="a")
    s.append_data(np.frombuffer(data(9), np.int32))
    chunk_len = len(s.get_chunk(5))
    del s
    after = path.read_bytes()
    header = loaded.header
    states = states_of_append(before, after, header_len=header.header_len, cbytes=header.cbytes, chunk_len=chunk_len)
    for number, state in enumerate(states[:-1]):
        path.write_bytes(state)
        path.with_suffix(".out").unlink(missing_ok=True)
        report = repaired(path)
        got = chunks_of(str(report.output))
        assert got[:5] == old, (number, str(report))
        assert got[5:] in ([], [data(9)]), number
        if number:
            assert report.chunks["whole"] == 6
    path.write_bytes(states[-1])
    assert superchunk.verify(path, decode=True).status == "not sealed"


@pytest.mark.parametrize("kept", [0.3, 0.5, 0.7, 0.9, 0.97, 0.999])
def test_c_blosc2_cut_anywhere(path: Path, kept: float) -> None:
    blosc2 = pytest.importorskip("blosc2", reason="the other writer")
    s = blosc2.SChunk(4 * ITEMS, urlpath=str(path), mode="w", contiguous=True, cparams={"typesize": 4})
    ends = []
    for n in range(20):
        s.append_data(np.frombuffer(data(n), np.int32))
        ends.append(len(s.get_chunk(n)))
    del s
    raw = path.read_bytes()
    cut = int(len(raw) * kept)
    path.write_bytes(raw[:cut])
    at, there = 97, 0
    for length in ends:
        at += length
        there += at <= cut
    report = repaired(path)
    assert chunks_of(str(report.output))[:there] == [data(n) for n in range(there)]
    assert report.chunks["whole"] + report.chunks["doubtful"] == there


def test_header_and_records_lost_the_index_is_found_by_walking(path: Path) -> None:
    blosc2 = pytest.importorskip("blosc2", reason="the other writer")
    s = blosc2.SChunk(4 * ITEMS, urlpath=str(path), mode="w", contiguous=True, cparams={"typesize": 4})
    for n in range(6):
        s.append_data(np.frombuffer(data(n), np.int32) if n != 3 else np.zeros(ITEMS, np.int32))
    s.insert_data(1, np.frombuffer(data(77), np.int32), copy=True)
    s.vlmeta["v"] = "text"
    wanted = [s.decompress_chunk(n) for n in range(7)]
    del s
    raw = path.read_bytes()
    path.write_bytes(bytes(90) + raw[90:])
    report = repaired(path)
    assert chunks_of(str(report.output)) == wanted
    with superchunk.open(str(report.output)) as found:
        assert found.typesize == 4
        assert found.vlmeta["v"] == "text"


def test_a_file_full_of_special_chunks(path: Path) -> None:
    with superchunk.SChunk(4000, urlpath=path, mode="w", cparams={"typesize": 4}) as s:
        s.fill_special(10**9, superchunk.SpecialValue.ZERO)
    raw = path.read_bytes()
    path.write_bytes(bytes(20) + raw[20:])
    report = repaired(path)
    assert report.nchunks == 10**6
    with superchunk.open(str(report.output)) as s:
        assert s.nbytes == 4 * 10**9


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_hostile_bytes_end_in_a_report_or_in_our_error(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "h.b2frame"
    raw = bytearray(make(path, 3))
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, len(raw) - 9))
        raw[at : at + 8] = data.draw(st.binary(min_size=8, max_size=8))
    path.write_bytes(raw)
    output = path.with_suffix(".out")
    output.unlink(missing_ok=True)
    try:
        report = superchunk.repair(path, output)
    except SuperchunkError:
        assert not output.exists()
        return
    if report.output is not None:
        with superchunk.open(output) as s:
            assert len([s.get_chunk(n) for n in range(s.nchunks)]) == report.nchunks


@given(st.binary(max_size=3000))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_behind_a_frame_marker(tmp_path: Path, noise: bytes) -> None:
    path = tmp_path / "h.b2frame"
    path.write_bytes(b"\x9e\xa8b2frame\0" + noise)
    output = path.with_suffix(".out")
    output.unlink(missing_ok=True)
    assert superchunk.verify(path).status == "damaged"
    try:
        superchunk.repair(path, output)
    except SuperchunkError:
        assert not output.exists()
