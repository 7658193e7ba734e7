"""A KeyboardInterrupt anywhere in a call: the old or the new state, and a handle that goes on working."""

from __future__ import annotations

import gc
import shutil
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pytest
from labs.interrupts import with_exits

import superchunk
from superchunk import SChunk
from superchunk._store import open_frames as registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    State = tuple[object, ...]

PACKAGE = str(Path(superchunk.__file__).parent)
# Python swallows what is raised in a `__del__`, an interrupt too, and tells so.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

KINDS = ["memory", "file", "folder", "array"]
ITEM = np.arange(100, dtype="i4").tobytes()
POINTS = 25
"""Interrupts that are tried in each operation; a prime step between them finds others in each."""


@pytest.fixture(autouse=True)
def _registry_is_free() -> Iterator[None]:
    """Check that no interrupt leaves a lock held that every thread needs which opens a frame."""
    yield
    found: list[bool] = []

    def take() -> None:
        found.append(registry._lock.acquire(timeout=5))
        if found[0]:
            registry._lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert found == [True]


class Interrupt:
    """Raises KeyboardInterrupt at the `at`-th line of the package that the block executes; 0: never, and counts."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.lines = 0

    def __enter__(self) -> Self:
        sys.settrace(self._entered)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _entered(self, frame: FrameType, event: str, arg: object) -> Any:
        return self._line(frame, event, arg) if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _line(self, frame: FrameType, event: str, _arg: object) -> Any:
        if event == "line" and frame.f_lasti not in with_exits(frame.f_code):
            self.lines += 1
            if self.lines == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._line


def made(kind: str, path: Path) -> Any:
    if kind == "array":
        values = np.arange(60, dtype="i4").reshape(10, 6)
        s: Any = superchunk.asarray(values, chunks=(4, 4), blocks=(2, 2), urlpath=path, mode="w")
    else:
        place: dict[str, Any] = {} if kind == "memory" else {"urlpath": path, "contiguous": kind == "file", "mode": "w"}
        s = SChunk(len(ITEM), cparams={"typesize": 4, "nthreads": 1}, **place)
        for n in range(4):
            s.append_data(np.arange(n, n + 100, dtype="i4"))
    s.vlmeta["x"] = 0
    s.flush()
    return s


def state_of(s: Any) -> State:
    named = tuple(s.vlmeta[:].items())
    if isinstance(s, SChunk):
        return tuple(s.decompress_chunk(n) for n in range(s.nchunks)), named
    return s.shape, s[...].tobytes(), named


def on_disk(path: Path) -> State:
    """Return what a process would find that opens the frame now."""
    there = path.with_name("copy")
    (shutil.copytree if path.is_dir() else shutil.copy)(path, there)
    assert superchunk.verify(there).status == "sound"
    with superchunk.open(there) as s:
        found = state_of(s)
    superchunk.remove_urlpath(there)
    return found


def _transaction(s: Any) -> None:
    with s.transaction():
        if isinstance(s, SChunk):
            s.append_data(ITEM)
            s.delete_chunk(0)
            s.update_data(0, ITEM, copy=True)
        else:
            s[0:5] = 9
            s.resize((11, 7))
        s.vlmeta["x"] = 1


def _changed(s: Any) -> None:
    if isinstance(s, SChunk):
        s[150:320] = np.full(170, 5, "i4")
    else:
        s[3:9, 1:5] = 5


def _grown(s: Any) -> None:
    if isinstance(s, SChunk):
        s.append_data(ITEM)
    else:
        s.append(np.full((3, s.shape[1]), 8, "i4"))


def _named(s: Any) -> None:
    s.vlmeta["x"] = 1


def _compacted(s: Any) -> None:
    s.compact()


OPERATIONS: dict[str, Callable[[Any], None]] = {
    "transaction": _transaction,
    "change": _changed,
    "grow": _grown,
    "name": _named,
    "compact": _compacted,
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_at_any_line_leaves_the_old_or_the_new_state(tmp_path: Path, kind: str, operation: str) -> None:
    path = tmp_path / "frame"
    call = OPERATIONS[operation]
    s = made(kind, path)
    old = state_of(s)
    with Interrupt() as counted:
        call(s)
    new = state_of(s)
    s.close()
    step = max(counted.lines // POINTS, 1) | 1
    for at in range(1 + (len(operation) + len(kind)) % step, counted.lines, step):
        s = made(kind, path)
        with suppress(KeyboardInterrupt), Interrupt(at):
            call(s)
        found = state_of(s)
        assert found in (old, new), at
        assert kind == "memory" or on_disk(path) in (old, new), at
        s.vlmeta["y"] = at
        _grown(s)
        s.flush()  # what comes later reaches the disk
        later = state_of(s)
        assert later[-1] == (*found[-1], ("y", at)), at  # type: ignore[misc]
        assert kind == "memory" or on_disk(path) == later, at
        s.close()
        if kind != "memory":
            with superchunk.open(path, "a") as again:
                assert state_of(again) == later, at


@pytest.mark.parametrize("kind", KINDS[1:])
def test_an_interrupted_reopen_leaves_a_path_that_can_be_written(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "frame"

    def reopen(s: Any) -> Any:
        s.close()
        return superchunk.open(path, "a")

    s = made(kind, path)
    old = state_of(s)
    with Interrupt() as counted:
        s = reopen(s)
    s.close()
    for at in range(3, counted.lines, counted.lines // (2 * POINTS) | 1):
        s = made(kind, path)
        with suppress(KeyboardInterrupt), Interrupt(at):
            s = reopen(s)
        s.close()
        del s
        gc.collect()
        with superchunk.open(path, "a") as again:
            assert state_of(again) == old, at
            _grown(again)
        assert not registry._frames, at


def test_a_change_that_was_left_without_its_end_is_taken_back_by_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "frame"
    s = made("file", path)
    old = state_of(s)
    block = s.transaction()
    block.__enter__()
    s.append_data(ITEM)
    del block
    assert state_of(s) == old
    s.vlmeta["y"] = 1
    assert on_disk(path) == state_of(s)
    s.close()
    assert not registry._frames


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_inside_a_transaction_that_is_caught_there_takes_back_its_own_call_only(
    tmp_path: Path, kind: str
) -> None:
    s = made(kind, tmp_path / "frame")
    with s.transaction():
        s.vlmeta["a"] = 1
        with pytest.raises(ValueError, match="expected"):
            s.resize((1,)) if kind == "array" else s.append_data(b"")
        s.vlmeta["b"] = 2
    assert list(s.vlmeta) == ["x", "a", "b"]
    s.close()
