"""Who sees which state: other handles the committed one, who writes its own, threads whole calls; and order is kept."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import blosc2
import numpy as np
import pytest

import superchunk
from superchunk import SChunk, SpecialValue
from superchunk.exceptions import ChunkIndexError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KINDS = ["memory", "file", "folder"]
ON_DISK = pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])
CHUNK = 400


def made(kind: str, path: Path, **how: Any) -> SChunk:
    place: dict[str, Any] = {} if kind == "memory" else {"urlpath": path, "contiguous": kind == "file", "mode": "w"}
    return SChunk(CHUNK, cparams={"typesize": 4, "nthreads": 1}, **place, **how)


def piece(number: int) -> bytes:
    return np.full(CHUNK // 4, number, "i4").tobytes()


def numbers(s: SChunk) -> list[int]:
    """Return the number of each chunk, which all of its items must have."""
    chunks = list(s.iterchunks(np.dtype("i4")))
    assert all((chunk == chunk[0]).all() for chunk in chunks)
    return [int(chunk[0]) for chunk in chunks]


def full_disk(*_: object) -> bytes:
    raise superchunk.exceptions.StorageError(errno.ENOSPC, "No space left on device")


def at_once(*calls: Callable[[], None]) -> None:
    """Make the calls in threads that begin together; raise what one of them raised."""
    barrier = threading.Barrier(len(calls))
    errors: list[BaseException] = []

    def run(call: Callable[[], None]) -> None:
        barrier.wait()
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


# Order: position, change and commit under one lock.


def add(s: SChunk, number: int, how: str) -> None:
    if how == "chunk":
        s.append_chunk(superchunk.compress2(piece(number), typesize=4))
    elif how == "items":
        with s.transaction():
            s[len(s) : len(s) + CHUNK // 4] = piece(number)
    elif how == "insert":
        s.insert_data(0, piece(-number), copy=True)
    else:
        s.append_data(piece(number))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["data", "chunk", "items", "insert", "prefiltered"])
def test_threads_that_append_through_one_handle_keep_their_order(tmp_path: Path, kind: str, how: str) -> None:
    s = made(kind, tmp_path / "frame")
    if how == "prefiltered":

        @s.prefilter(np.dtype("i4"), np.dtype("i4"))
        def same(source: Any, output: Any, offset: int) -> None:  # noqa: ARG001 - as prefilters are
            output[:] = source

    def many(who: int) -> Callable[[], None]:
        def write() -> None:
            for n in range(30):
                add(s, 1000 * who + n, how)

        return write

    at_once(many(1), many(2), many(3))
    found = [-n for n in reversed(numbers(s))] if how == "insert" else numbers(s)
    for who in (1, 2, 3):
        assert [n for n in found if n // 1000 == who] == [1000 * who + n for n in range(30)]
    s.close()


@pytest.mark.parametrize("kind", KINDS)
def test_threads_get_every_number_of_chunks_once(tmp_path: Path, kind: str) -> None:
    s = made(kind, tmp_path / "frame")
    told: list[int] = []

    def many() -> None:
        told.extend(s.append_data(piece(n)) for n in range(40))

    at_once(many, many, many)
    assert sorted(told) == list(range(1, 121))
    s.close()


@pytest.mark.parametrize("kind", KINDS)
def test_threads_that_change_parts_of_one_chunk_lose_nothing(tmp_path: Path, kind: str) -> None:
    s = made(kind, tmp_path / "frame")
    s.fill_special(CHUNK // 4, SpecialValue.ZERO)

    def many(first: int) -> Callable[[], None]:
        def write() -> None:
            for at in range(first, CHUNK // 4, 3):
                s[at] = np.int32(at).tobytes()

        return write

    at_once(many(0), many(1), many(2))
    assert np.frombuffer(s[:], "i4").tolist() == list(range(CHUNK // 4))
    s.close()


@pytest.mark.parametrize("kind", KINDS)
def test_threads_that_append_rows_lose_none_and_mix_none(tmp_path: Path, kind: str) -> None:
    place: dict[str, Any] = {} if kind == "memory" else {"urlpath": tmp_path / "a", "contiguous": kind == "file"}
    a = superchunk.zeros((0, 6), dtype="i4", chunks=(3, 4), blocks=(3, 4), **place)

    def many(who: int) -> Callable[[], None]:
        def write() -> None:
            for n in range(25):
                a.append(np.full((1, 6), 1000 * who + n, "i4"))

        return write

    at_once(many(1), many(2), many(3))
    rows = a[...]
    assert (rows == rows[:, :1]).all()
    for who in (1, 2, 3):
        assert [n for n in rows[:, 0].tolist() if n // 1000 == who] == [1000 * who + n for n in range(25)]
    a.close()


@ON_DISK
def test_processes_that_take_turns_keep_their_order(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "frame"
    SChunk(CHUNK, cparams={"typesize": 4}, urlpath=path, contiguous=contiguous, mode="w").close()
    code = (
        "import sys, numpy as np, superchunk\n"
        f"with superchunk.open({str(path)!r}, mode='a', locking=True) as s:\n"
        " told = [s.append_data(np.full(100, 1000 * int(sys.argv[1]) + n, 'i4')) for n in range(60)]\n"
        "print(*told)"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code, str(who)], stdout=subprocess.PIPE, text=True) for who in (1, 2)
    ]
    told = [list(map(int, one.communicate()[0].split())) for one in both]
    with superchunk.open(path) as s:
        found = numbers(s)
    for who in (1, 2):
        mine = [n for n in found if n // 1000 == who]
        assert mine == [1000 * who + n for n in range(60)]
        assert [found[count - 1] for count in told[who - 1]] == mine  # each was where its call said


# Committed states.


@ON_DISK
def test_other_handles_see_a_transaction_when_it_is_over(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "frame"
    s = made("file" if contiguous else "folder", path)
    for n in range(3):
        s.append_data(piece(n))
    s.flush()
    with superchunk.open(path) as reader, superchunk.open(path, "a") as other:
        with s.transaction():
            s.append_data(piece(3))
            s.delete_chunk(0)
            s.vlmeta["a"] = 1
            assert numbers(s) == [1, 2, 3]
            for handle in (reader, other):
                assert numbers(handle) == [0, 1, 2]
                assert len(handle) == 3 * CHUNK // 4
                assert handle[5:7] == piece(0)[:8]
                assert "a" not in handle.vlmeta
                assert handle.copy()[:] == handle[:]
                assert superchunk.schunk_from_cframe(handle.to_cframe())[:] == handle[:]
            with superchunk.open(path) as late:
                assert numbers(late) == [0, 1, 2]
        assert numbers(reader) == numbers(other) == [1, 2, 3]
        assert reader.vlmeta["a"] == 1
        with suppress(ChunkIndexError), s.transaction():
            s.reorder_offsets([2, 1, 0])
            assert numbers(reader) == [1, 2, 3]
            s.delete_chunk(3)
        assert numbers(s) == numbers(reader) == [1, 2, 3]
    s.close()


@ON_DISK
def test_handles_that_take_turns_see_committed_states_inside_a_transaction_of_their_thread(
    tmp_path: Path, *, contiguous: bool
) -> None:
    path = tmp_path / "frame"
    s = made("file" if contiguous else "folder", path, locking=True)
    s.append_data(piece(0))
    with superchunk.open(path, locking=True) as reader:
        with s.transaction():
            s.append_data(piece(1))
            assert numbers(s) == [0, 1]
            assert numbers(reader) == [0]
        assert numbers(reader) == [0, 1]
    s.close()


@ON_DISK
def test_all_names_and_values_are_of_one_state(tmp_path: Path, *, contiguous: bool) -> None:
    s = made("file" if contiguous else "folder", tmp_path / "frame")
    over = threading.Event()

    def write() -> None:
        try:
            for n in range(60):
                with s.transaction():
                    s.vlmeta[f"at {n}"] = n
                    if n:
                        del s.vlmeta[f"at {n - 1}"]
        finally:
            over.set()

    def read() -> None:
        with superchunk.open(tmp_path / "frame") as reader:
            while not over.is_set():
                assert len(reader.vlmeta[:]) <= 1
                assert len(s.vlmeta[:]) <= 2

    at_once(write, read)
    assert s.vlmeta[:] == {"at 59": 59}
    s.close()


@ON_DISK
def test_what_waits_is_committed_when_another_handle_looks(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "frame"
    s = made("file" if contiguous else "folder", path)
    for n in range(20):
        s.append_data(piece(n))
    s.flush()
    with superchunk.open(path) as reader, superchunk.open(path, "a") as other:
        s.append_data(piece(20))
        s.update_data(4, piece(-4), copy=True)
        expected = [0, 1, 2, 3, -4, *range(5, 21)]
        assert numbers(s) == expected
        assert blosc2.open(str(path)).nchunks == 20
        assert reader.refresh()
        assert numbers(reader) == numbers(other) == expected
        assert blosc2.open(str(path)).nchunks == 21
        other.delete_chunk(0)
        assert numbers(reader) == numbers(s) == numbers(other) == expected[1:]
        assert not reader.refresh()
    s.close()


@ON_DISK
def test_what_cannot_be_committed_now_is_not_seen_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, contiguous: bool
) -> None:
    path = tmp_path / "frame"
    s = made("file" if contiguous else "folder", path)
    for n in range(20):
        s.append_data(piece(n))
    s.flush()
    with superchunk.open(path) as reader:
        s.append_data(piece(20))
        with monkeypatch.context() as patched:
            patched.setattr("superchunk._store.frame_commit.CommittedFrame._index_chunk", full_disk)
            assert numbers(reader) == list(range(20))
            assert numbers(s) == list(range(21))
            with pytest.raises(superchunk.exceptions.StorageError, match="No space"):
                s.flush()
        assert numbers(reader) == list(range(21))
    s.close()


@ON_DISK
def test_who_reads_while_a_commit_tidies_up_sees_what_was_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, contiguous: bool
) -> None:
    """The chunk files of the state before are gone then."""
    chunks = np.random.default_rng(5).integers(0, 256, (6, 100_000), "u1")
    how: dict[str, Any] = {"chunksize": 100_000, "contiguous": contiguous, "sync": "never"}
    s = SChunk(data=chunks[:5], urlpath=tmp_path / "frame", **how)
    state = s._handle.store._frame  # type: ignore[attr-defined]
    write, tidy = state._write, state._committed
    found: list[bytes] = []

    def look() -> None:
        found.append(s[:])

    def look_and_write(*args: Any, **kwargs: Any) -> None:
        at_once(look)
        write(*args, **kwargs)

    def tidy_and_look() -> None:
        tidy()
        at_once(look)

    monkeypatch.setattr(state, "_write", look_and_write)
    monkeypatch.setattr(state, "_committed", tidy_and_look)
    s.update_data(3, chunks[5], copy=True)
    monkeypatch.undo()
    assert found == [chunks[:5].tobytes(), chunks[[0, 1, 2, 5, 4]].tobytes()]
    s.close()


@ON_DISK
def test_another_handle_of_an_array_sees_rows_when_they_are_committed(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "a"
    a = superchunk.asarray(np.ones((8, 10)), chunks=(4, 10), urlpath=path, contiguous=contiguous)
    with superchunk.open(path) as reader:
        with a.transaction():
            a.resize((9, 10))
            a[0] = 5
            assert a[0, :2].tolist() == [5, 5]
            assert reader.shape == (8, 10)
            assert (reader[...] == 1).all()
        assert reader.shape == (9, 10)
        assert reader[0, 0] == 5
    a.close()


@pytest.mark.parametrize("shared", [True, False], ids=["one handle", "two handles"])
@pytest.mark.parametrize("kind", KINDS)
def test_threads_that_read_get_whole_calls(tmp_path: Path, kind: str, *, shared: bool) -> None:
    path = tmp_path / "a"
    place: dict[str, Any] = {} if kind == "memory" else {"urlpath": path, "contiguous": kind == "file"}
    a = superchunk.zeros((0, 6), dtype="i4", chunks=(3, 4), blocks=(3, 4), **place)
    reader = a if shared or kind == "memory" else superchunk.open(path)
    over = threading.Event()

    def write() -> None:
        try:
            for n in range(60):
                a.append(np.full((2, 6), n + 1, "i4"))
        finally:
            over.set()

    def read() -> None:
        last = 0
        while not over.is_set():
            rows = reader[...]
            assert rows[:, 0].tolist() == [n // 2 + 1 for n in range(len(rows))]
            assert (rows == rows[:, :1]).all()
            assert len(rows) >= last
            last = len(rows)

    at_once(write, read, read)
    assert a.shape == (120, 6)
    a.close()
    reader.close()


@ON_DISK
def test_a_reader_does_not_wait_for_a_transaction_of_another_thread(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "frame"
    s = made("file" if contiguous else "folder", path)
    s.append_data(piece(1))
    s.flush()
    reader = superchunk.open(path)
    begun, seen = threading.Event(), threading.Event()
    found: list[list[int]] = []

    def write() -> None:
        with s.transaction():
            s.append_data(piece(2))
            begun.set()
            assert seen.wait(60)

    def read() -> None:
        assert begun.wait(60)
        found.append(numbers(reader))
        with superchunk.open(path) as late:
            found.append(numbers(late))
        found.append(numbers(s))  # through the handle that writes: whole calls
        seen.set()

    at_once(write, read)
    assert found == [[1], [1], [1, 2]]
    assert numbers(reader) == [1, 2]
    s.close()
    reader.close()


def test_many_small_changes_that_wait_keep_no_more_than_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = made("file", tmp_path / "frame")
    for n in range(400):
        s.append_data(piece(n))
    s.flush()
    with superchunk.open(tmp_path / "frame") as reader:
        for n in range(200):
            s.reorder_offsets([*range(1, 400), 0])
            if n % 50 == 0:
                with monkeypatch.context() as patched:
                    patched.setattr("superchunk._store.frame_commit.CommittedFrame._index_chunk", full_disk)
                    assert numbers(reader) == list(range(400))
        index = s._handle.store._frame.index  # type: ignore[attr-defined]
        assert len(index._journal) <= 2
        assert numbers(s) == [*range(200, 400), *range(200)]
        s.flush()
        assert numbers(reader) == numbers(s)
    s.close()


@ON_DISK
def test_frames_of_the_same_bytes_do_not_change_one_another(tmp_path: Path, *, contiguous: bool) -> None:
    """Index and trailer that were parsed for one are taken for the other, too, until one of them changes."""
    kind = "file" if contiguous else "folder"
    paths = [tmp_path / "one", tmp_path / "other"]
    for path in paths:
        with made(kind, path) as s:
            s.append_data(piece(0))
            s.append_data(piece(1))
    superchunk.open(paths[0]).close()
    with superchunk.open(paths[0], mode="a") as one, superchunk.open(paths[1]) as other:
        fixed = superchunk.open(paths[0], snapshot=True)
        one.append_data(piece(2))
        one.delete_chunk(0)
        assert (numbers(one), numbers(other), numbers(fixed)) == ([1, 2], [0, 1], [0, 1])
        fixed.close()
    with superchunk.open(paths[1], mode="a") as other:
        other.append_data(piece(3))
    assert [numbers(superchunk.open(path)) for path in paths] == [[1, 2], [0, 1, 3]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_mark_has_what_was_and_nothing_else(tmp_path: Path, kind: str) -> None:
    with made(kind, tmp_path / "x") as s:
        s.append_data(piece(0))
        with s._handle.store.batch() as table:
            mark = table.changes[0].mark  # type: ignore[attr-defined]
            s.append_data(piece(1))
            assert (mark.nbytes, table.nbytes) == (CHUNK, 2 * CHUNK)  # type: ignore[attr-defined]
            names = {name for one in type(mark).__mro__ for name in getattr(one, "__annotations__", {})}
            fields = {name for name in names if name not in {"_offsets", "_values_of"}}
            assert {"version", "epoch", "nbytes", "meta", "vlmeta", "settings", "_live", "_edits"} < fields
            assert all(hasattr(mark, name) for name in fields)
            assert not hasattr(mark, "lock")
        assert numbers(s) == [0, 1]
