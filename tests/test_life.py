"""A handle as a whole: pickled, copied, and locked over several operations."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk
from superchunk import DParams, SChunk

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = np.arange(1000)


def again(schunk: SChunk) -> SChunk:
    got = pickle.loads(pickle.dumps(schunk))  # noqa: S301  (our own)
    assert isinstance(got, SChunk)
    return got


def append_and_fail(schunk: SChunk) -> None:
    with schunk.holding_lock():
        schunk.append_data(b"12345678")
        schunk.append_data(b"")


def total(schunk: SChunk, start: int) -> int:
    return int(np.frombuffer(schunk[start : start + 100], np.int64).sum())


# Pickles of handles.


@pytest.mark.parametrize("contiguous", [True, False])
def test_a_schunk_on_the_disk_is_pickled_as_its_path_and_opened_for_reading(
    tmp_path: Path, *, contiguous: bool
) -> None:
    path = tmp_path / "s.b2frame"
    with SChunk(800, ITEMS, urlpath=path, contiguous=contiguous, dparams={"nthreads": 1}) as s:
        assert len(pickle.dumps(s)) < 1000
        got = again(s)
        assert (got[:], got.mode, got.urlpath, got.dparams) == (s[:], "r", str(path), DParams(nthreads=1))
        with pytest.raises(ValueError, match="reading mode"):
            got.append_data(b"x" * 8)


def test_what_waits_for_its_commit_is_seen_by_who_unpickles(tmp_path: Path) -> None:
    with SChunk(8, urlpath=tmp_path / "s.b2frame", cparams={"typesize": 8}) as s:
        s.append_data(ITEMS[:1])
        s.append_data(ITEMS[1:2])
        raw = pickle.dumps(s)
        code = f"import pickle; print(len(pickle.loads({raw!r})))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "2\n"


def test_processes_share_one_file_that_they_read(tmp_path: Path) -> None:
    with SChunk(800, ITEMS, urlpath=tmp_path / "s.b2frame") as s:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            sums = list(pool.map(total, [s] * 4, range(0, 400, 100)))
        assert sums == [int(ITEMS[i : i + 100].sum()) for i in range(0, 400, 100)]


def test_options_of_opening_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    frame = SChunk(800, ITEMS, contiguous=True).to_cframe()
    path.write_bytes(b"before" + frame)
    with superchunk.open(path, offset=6, deserialize="full", snapshot=True, verify="read", mmap_mode="r") as s:
        got = again(s)
        assert got[:] == ITEMS.tobytes()
        assert (
            got.mmap_mode,
            got._handle.options.deserialize,
            got._handle.options.snapshot,
            got._handle.options.verify,
        ) == (
            "r",
            "full",
            True,
            "read",
        )
        assert again(got)[:] == got[:]


def test_a_relative_path_is_found_from_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SChunk(800, ITEMS, urlpath="s.b2frame") as s:
        raw = pickle.dumps(s)
        monkeypatch.chdir(tmp_path.parent)
        assert len(pickle.loads(raw)) == 1000  # noqa: S301  (our own)


def test_handles_that_a_path_does_not_lead_to_are_not_pickled(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    SChunk(800, ITEMS, urlpath=path).close()
    with pytest.raises(TypeError, match="to_cframe"):
        pickle.dumps(SChunk(data=ITEMS))
    with superchunk.open(path, mmap_mode="c") as s, pytest.raises(TypeError, match="'c'"):
        pickle.dumps(s)
    with superchunk.open(path, dparams={"nthreads": 1}) as s:
        s.postfilter(np.int64)(lambda source, output, _: np.copyto(output, source + 1))
        with pytest.raises(TypeError, match="postfilter"):
            pickle.dumps(s)
    with pytest.raises(superchunk.ClosedError):
        pickle.dumps(s)
    with superchunk.open(path) as s:
        raw = pickle.dumps(s)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(raw)  # noqa: S301  (our own)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_copies_are_in_memory_and_apart(make: type, tmp_path: Path) -> None:
    with SChunk(800, ITEMS, urlpath=tmp_path / "s.b2frame", meta={"m": 1}) as s:
        s.vlmeta["v"] = [1]
        for original in (s, SChunk(800, ITEMS)):
            twin = make(original)
            assert isinstance(twin, SChunk)
            assert (twin[:], twin.urlpath, twin.contiguous) == (original[:], None, original.contiguous)
            assert (twin.meta[:], twin.vlmeta[:]) == (original.meta[:], original.vlmeta[:])
            twin[0:1] = ITEMS[5:6]
            assert original[0] == ITEMS[0].tobytes()


# Locks over several operations.


@pytest.mark.parametrize("contiguous", [True, False])
def test_both_packages_add_under_a_lock_and_lose_nothing(tmp_path: Path, *, contiguous: bool) -> None:
    path = str(tmp_path / "s.b2frame")
    with SChunk(8, urlpath=path, contiguous=contiguous, locking=True, cparams={"typesize": 8}) as s:
        s.append_data(np.zeros(1, np.int64))
    code = (
        "import {0}, struct\n"
        f"s = {{0}}.open({path!r}, mode='a', locking=True)\n"
        "for _ in range(15):\n"
        " with s.holding_lock():\n"
        "  n = struct.unpack('q', s[0:1])[0]\n"
        "  s[0:1] = struct.pack('q', n + 1)\n"
        "  s.append_data(struct.pack('q', n + 1))\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code.format(name)]) for name in ("superchunk", "blosc2")]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0]
    numbers = np.frombuffer(superchunk.open(path, locking=True)[:], np.int64)
    assert numbers.tolist() == [30, *range(1, 31)]


def test_others_wait_while_the_lock_is_held_and_it_nests(tmp_path: Path) -> None:
    path = str(tmp_path / "s.b2frame")
    with SChunk(8, urlpath=path, locking=True, cparams={"typesize": 8}) as s:
        code = (
            f"import superchunk, time; s = superchunk.open({path!r}, locking=True); print('open', flush=True);"
            "input(); begin = time.monotonic(); s.refresh(); print(time.monotonic() - begin, len(s))"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "open\n"
            with s.holding_lock() as same, s.holding_lock(), s.transaction():
                assert same is s
                s.append_data(b"12345678")
                print(file=other.stdin, flush=True)
                time.sleep(0.3)
                s.append_data(b"12345678")
            waited, nitems = other.communicate(timeout=30)[0].split()
        assert (float(waited) > 0.2, nitems) == (True, "2")
        tick = s.change_tick
        with s.holding_lock():
            assert (s.nchunks, s.change_tick) == (2, tick)


def test_a_lock_is_nothing_where_nobody_takes_turns(tmp_path: Path) -> None:
    for s in (SChunk(), SChunk(urlpath=tmp_path / "s.b2frame")):
        with s, s.holding_lock() as held:
            held.append_data(b"x")
    assert not (tmp_path / "s.b2frame.b2lock").exists()
    with pytest.raises(superchunk.ClosedError), s.holding_lock():
        pass


def test_an_error_under_the_lock_lets_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    with SChunk(8, urlpath=path, locking=True) as s, superchunk.open(path, locking=True) as other:
        with pytest.raises(ValueError, match="1 byte"):
            append_and_fail(s)
        assert other.refresh()
        assert other.nchunks == 1
        with other.holding_lock():
            assert other[:] == b"12345678"


# Arrays.


def test_an_array_on_the_disk_is_pickled_as_its_path_and_its_view_as_well(tmp_path: Path) -> None:
    path = tmp_path / "a.b2nd"
    plain = np.arange(24).reshape(4, 6)
    a = superchunk.asarray(plain, urlpath=path, chunks=(2, 3))
    got = pickle.loads(pickle.dumps(a))  # noqa: S301  (our own)
    assert (type(got), got.shape, got.schunk.mode) == (superchunk.NDArray, (4, 6), "r")
    assert np.array_equal(got[:], plain)
    view = pickle.loads(pickle.dumps(superchunk.expand_dims(a)))  # noqa: S301
    assert (view.shape, view[0].tolist()) == ((1, 4, 6), plain.tolist())
    schunk = pickle.loads(pickle.dumps(a.schunk))  # noqa: S301
    assert (type(schunk), schunk.nchunks) == (SChunk, 4)
    with pytest.raises(TypeError, match="to_cframe"):
        pickle.dumps(superchunk.zeros(3))


def test_copies_of_arrays_are_apart() -> None:
    a = superchunk.asarray(np.arange(10))
    for twin in (copy.copy(a), copy.deepcopy(a)):
        twin[0] = 5
        assert (a[:2].tolist(), twin[:2].tolist()) == ([0, 1], [5, 1])


def test_the_lock_of_an_array_and_of_its_schunk_nest(tmp_path: Path) -> None:
    a = superchunk.asarray(np.arange(10), urlpath=tmp_path / "a.b2nd", locking=True)
    with a.holding_lock() as same, a.schunk.holding_lock(), a.holding_lock():
        assert same is a
        a[0] = 7
        a.resize((12,))
    again: Any = superchunk.open(tmp_path / "a.b2nd", locking=True)
    assert again[:].tolist() == [7, *range(1, 10), 0, 0]
    with superchunk.zeros(3).holding_lock() as b:
        b[0] = 1


def test_containers_in_metadata_come_back_as_what_they_are() -> None:
    outer = SChunk(contiguous=True)
    outer.vlmeta["array"] = superchunk.asarray(np.arange(6).reshape(2, 3))
    outer.vlmeta["items"] = SChunk(data=b"inner")
    with pytest.raises(superchunk.UnsafeDeserializationError, match="42"):
        outer.vlmeta["array"]
    full = superchunk.from_cframe(outer.to_cframe(), deserialize="full")
    assert isinstance(full.vlmeta["array"], superchunk.NDArray)
    assert full.vlmeta["array"][:].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert full.vlmeta["items"][:] == b"inner"
