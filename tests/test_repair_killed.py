"""`repair` of frames that C-Blosc2 left when it was killed between two of its writes.

It writes in place, one after the other (seen with strace, 3.3.5): in one file the chunks behind a changed one to
where they go, the chunk, the index chunk, the header with the old frame_len, the trailer and the cut, frame_len; in a
directory the chunk file, emptied first, or removed, and then the same in the index file. What a file holds in
between is put together here from a frame before and after.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

import superchunk
from superchunk import _engine
from superchunk._store.frame_loading import parse_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from superchunk._store.frame_loading import Loaded

blosc2 = pytest.importorskip("blosc2", reason="the other writer")

ITEMS = 100
CHANGED = 1
FRAME_LEN = slice(0x10, 0x18)

Write = tuple[int, bytes]


def numbers(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 5000, ITEMS, dtype=np.int32)


LARGER = np.random.default_rng(3).integers(0, 2**31 - 1, ITEMS, dtype=np.int32)
SMALLER = np.arange(ITEMS, dtype=np.int32)

OPERATIONS: dict[str, Callable[[Any], object]] = {
    "append": lambda s: s.append_data(numbers(9)),
    "insert": lambda s: s.insert_data(2, numbers(9), copy=True),
    "larger": lambda s: s.update_data(CHANGED, LARGER, copy=True),
    "smaller": lambda s: s.update_data(CHANGED, SMALLER, copy=True),
    "delete": lambda s: s.delete_chunk(CHANGED),
    "vlmeta": lambda s: s.vlmeta.__setitem__("w", "x" * 300),
}


def load(raw: bytes, *, sparse: bool = False) -> Loaded:
    return parse_frame(lambda n, at: raw[at : at + n], len(raw), lambda at, n: raw[at : at + n], sparse=sparse)


def write(path: Path, *, contiguous: bool) -> None:
    s = blosc2.SChunk(4 * ITEMS, urlpath=str(path), mode="w", contiguous=contiguous, cparams={"typesize": 4})
    for n in range(5):
        s.append_data(numbers(n))
    s.vlmeta["v"] = "text"


def change(path: Path, operation: str) -> None:
    s = blosc2.open(str(path), mode="a")
    OPERATIONS[operation](s)


def contents(path: Path | str) -> list[bytes]:
    with superchunk.open(path) as s:
        return [s.decompress_chunk(n) or b"" for n in range(s.nchunks)]


def metadata_writes(before: bytes, after: bytes, index_at: int, *, with_index: bool, sparse: bool) -> list[Write]:
    """Return the writes of index chunk, header, trailer, frame_len."""
    new = load(after, sparse=sparse)
    header = bytearray(after[: new.header.header_len])
    header[FRAME_LEN] = before[FRAME_LEN]
    trailer_at = new.header.frame_len - new.trailer_len
    writes = [(index_at, after[index_at : index_at + new.index_len])] if with_index else []
    return [*writes, (0, bytes(header)), (trailer_at, after[trailer_at:]), (FRAME_LEN.start, after[FRAME_LEN])]


def apply(state: bytes, at: int, content: bytes, *, cut: bool) -> bytes:
    state = state.ljust(at, b"\0")
    return state[:at] + content + (b"" if cut else state[at + len(content) :])


def states_of_file(before: bytes, after: bytes, operation: str) -> list[bytes]:
    """Return what one file holds before each write, the first excepted, and after the last."""
    new, old = load(after), load(before)
    base = new.header.header_len
    index_at = base + new.header.cbytes
    writes: list[Write] = []
    if operation in ("append", "insert"):
        chunk_at = base + old.header.cbytes
        writes.append((chunk_at, after[chunk_at:index_at]))
    elif operation in ("larger", "smaller"):
        chunk_at = base + new.index[CHANGED]
        end = chunk_at + _engine.describe(after[chunk_at:]).cbytes
        writes += [(end, after[end:index_at]), (chunk_at, after[chunk_at:end])]
    writes += metadata_writes(before, after, index_at, with_index=operation != "vlmeta", sparse=False)
    states, state = [], before
    for number, (at, content) in enumerate(writes):
        state = apply(state, at, content, cut=number == len(writes) - 2)
        states.append(state)
    assert states[-1] == after
    return states


def chunks_in(state: bytes, *frames: bytes) -> set[bytes]:
    """Return the contents of the chunks of `frames` whose bytes are still somewhere in `state`."""
    found = set()
    for frame in frames:
        loaded = load(frame)
        for number in range(len(loaded.index)):
            at = loaded.header.header_len + loaded.index[number]
            chunk = frame[at : at + _engine.describe(frame[at:]).cbytes]
            if chunk in state:
                found.add(bytes(superchunk.decompress2(chunk)))
    return found


@pytest.mark.parametrize("operation", OPERATIONS)
def test_one_file(tmp_path: Path, operation: str) -> None:
    path = tmp_path / "x.b2frame"
    write(path, contiguous=True)
    before, old = path.read_bytes(), contents(path)
    change(path, operation)
    after, new = path.read_bytes(), contents(path)
    for number, state in enumerate(states_of_file(before, after, operation)):
        path.write_bytes(state)
        result = path.with_suffix(f".{number}")
        if superchunk.verify(path, decode=True).status != "damaged":
            assert contents(path) in (old, new), number
            continue
        report = superchunk.repair(path, result)
        got = contents(result)
        assert superchunk.verify(result).status == "sound"
        # What a delete had removed from its new index already stays removed.
        assert got == new or chunks_in(state, before, after) <= set(got), (number, str(report))
        whole = [n for n in range(len(got)) if report.class_of(n) == "whole"]
        assert any(all(got[n] == side[n] for n in whole if n < len(side)) for side in (old, new)), str(report)
        assert all(got[n] in {*old, *new} for n in range(len(got)) if report.class_of(n) != "lost"), str(report)
        with superchunk.open(result) as s:
            assert s.typesize == 4
            assert dict(s.vlmeta).get("v", "text") == "text"


State = dict[str, bytes]


def files_of(folder: Path) -> State:
    return {one.name: one.read_bytes() for one in folder.iterdir()}


def states_of_folder(before: State, after: State, operation: str) -> list[State]:
    """Return what the directory holds before each write, the first excepted, and after the last."""
    states, state = [], dict(before)
    for name in sorted(before.keys() | after.keys()):
        if name == "chunks.b2frame" or before.get(name) == after.get(name):
            continue
        if name in after:
            states.append(state := state | {name: b""})
            states.append(state := state | {name: after[name]})
        else:
            state = {each: content for each, content in state.items() if each != name}
            states.append(state)
    index = before["chunks.b2frame"]
    at = load(after["chunks.b2frame"], sparse=True).header.header_len
    writes = metadata_writes(index, after["chunks.b2frame"], at, with_index=operation != "vlmeta", sparse=True)
    for number, (position, content) in enumerate(writes):
        index = apply(index, position, content, cut=number == len(writes) - 2)
        states.append(state := state | {"chunks.b2frame": index})
    assert states[-1] == after
    return states


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_directory(tmp_path: Path, operation: str) -> None:
    path = tmp_path / "x.b2frame"
    write(path, contiguous=False)
    before, old = files_of(path), contents(path)
    change(path, operation)
    after, new = files_of(path), contents(path)
    for number, state in enumerate(states_of_folder(before, after, operation)):
        shutil.rmtree(path)
        path.mkdir()
        for name, content in state.items():
            (path / name).write_bytes(content)
        result = path.with_suffix(f".{number}")
        if superchunk.verify(path, decode=True).status != "damaged":
            assert contents(path) in (old, new, [*old[:CHANGED], new[CHANGED], *old[CHANGED + 1 :]]), number
            continue
        report = superchunk.repair(path, result)
        got = contents(result)
        assert superchunk.verify(result).status == "sound"
        there = {bytes(superchunk.decompress2(raw)) for name, raw in state.items() if name.endswith(".chunk") and raw}
        stray = there - set(old) if number <= 1 else set()  # no index has named it yet
        assert there - stray <= set(got), (number, str(report))
        whole = [n for n in range(len(got)) if report.class_of(n) == "whole"]
        assert any(all(got[n] == side[n] for n in whole if n < len(side)) for side in (old, new)), str(report)
        assert all(got[n] in {*old, *new} for n in range(len(got)) if report.class_of(n) != "lost"), str(report)
        if operation in ("append", "insert") and number > 1:
            assert report.chunks == {"whole": 6, "doubtful": 0, "lost": 0}, (number, str(report))
