"""A child of a fork reads and writes at once, whatever the threads of its parent were in the middle of."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Self

import pytest
from other_process import PATIENCE, in_child

import superchunk
from superchunk._store import forks as _forks
from superchunk._store.contiguous_frame import ContiguousState
from superchunk._store.memory_store import MemoryStore
from superchunk._store.sparse_frame import SparseState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")

CHUNK = 4000

# A thread is in the middle of importing a module of ours, held there until the fork begins.
IMPORTING = """
import os, sys, signal, threading
from importlib.abc import MetaPathFinder

inside, go_on = threading.Event(), threading.Event()

class Slow(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            inside.set()
            go_on.wait()
        return None

import superchunk
{first}
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=lambda: superchunk.compress2(b"x" * 1000))
thread.start()
inside.wait()
os.register_at_fork(before=go_on.set)
pid = os.fork()
if not pid:
    signal.alarm(20)
    superchunk.compress2(b"x" * 1000)
    os._exit(0)
status = os.waitpid(pid, 0)[1]
thread.join()
sys.exit(status != 0)
"""


@pytest.mark.parametrize(
    ("module", "first"), [("superchunk.core", ""), ("superchunk._codec.parameters", "import numpy")]
)
def test_a_fork_waits_for_imports_of_other_threads(module: str, first: str) -> None:
    code = IMPORTING.format(module=module, first=first)
    done = subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_import_that_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def importing() -> bool:
        looks.append(1)
        return True

    monkeypatch.setattr(_forks, "_is_importing", importing)
    monkeypatch.setattr(_forks, "_PAUSE", 0)
    monkeypatch.setattr(_forks, "_MOST_PAUSES", 7)
    _forks.finish_imports()
    assert len(looks) == 7


class Busy:
    """A thread that does `work` and stays in the middle of it until it is let go."""

    def __init__(self, work: Callable[[Busy], object]) -> None:
        self._inside, self._go_on = threading.Event(), threading.Event()
        self.failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(work,))

    def _run(self, work: Callable[[Busy], object]) -> None:
        try:
            work(self)
        except BaseException as error:  # noqa: BLE001 - told at the end
            self.failures.append(error)
            self._inside.set()

    def stay(self) -> None:
        """Be in the middle; a child comes here no more."""
        if threading.current_thread() is self._thread:
            self._inside.set()
            assert self._go_on.wait(PATIENCE)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._inside.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._go_on.set()
        self._thread.join()
        assert not self.failures


@pytest.fixture(params=[True, False], ids=["file", "directory"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    name = str(tmp_path / "frame")
    with superchunk.SChunk(CHUNK, urlpath=name, mode="w", contiguous=request.param) as s:
        for number in range(3):
            s.append_data(bytes([number]) * CHUNK)
    return name


def first_bytes(s: superchunk.SChunk) -> list[int]:
    return [(s.decompress_chunk(number) or b"?")[0] for number in range(s.nchunks)]


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_child_reads_beside_a_thread_that_holds_the_state(path: str, *, snapshot: bool) -> None:
    with superchunk.open(path, snapshot=snapshot) as s:

        def read(busy: Busy) -> None:
            with s._handle.store._open.lock:
                busy.stay()

        def child() -> list[int]:
            s.refresh()
            with superchunk.open(path) as again:
                return first_bytes(s) + first_bytes(again)

        with Busy(read):
            assert in_child(child) == [0, 1, 2, 0, 1, 2]
        assert first_bytes(s) == [0, 1, 2]


def test_a_child_reads_beside_a_transaction_of_another_thread(path: str) -> None:
    with superchunk.open(path, mode="a") as s:

        def write(busy: Busy) -> None:
            with s.transaction():
                s.append_data(bytes([3]) * CHUNK)
                busy.stay()

        def child() -> list[int]:
            return first_bytes(s)

        with Busy(write):
            assert in_child(child) == [0, 1, 2]
        assert first_bytes(s) == [0, 1, 2, 3]


def test_a_child_loads_what_a_thread_was_in_the_middle_of_taking_over(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = ContiguousState if os.path.isfile(path) else SparseState  # noqa: PTH113
    adopted = layout._adopt
    changed = (
        f"import superchunk; s = superchunk.open({path!r}, mode='a'); s.append_data(bytes([3]) * {CHUNK}); s.close()"
    )
    with superchunk.open(path) as s:
        assert first_bytes(s) == [0, 1, 2]
        subprocess.run([sys.executable, "-c", changed], check=True)

        def follow(busy: Busy) -> None:
            def half(state: ContiguousState, loaded: object) -> None:
                if threading.current_thread() is not threading.main_thread():
                    state.nbytes = 1  # the rest is still that of before
                    busy.stay()
                adopted(state, loaded)  # type: ignore[arg-type]

            monkeypatch.setattr(layout, "_adopt", half)
            assert first_bytes(s) == [0, 1, 2, 3]

        with Busy(follow):
            assert in_child(lambda: [first_bytes(s), s.nbytes]) == [[0, 1, 2, 3], 4 * CHUNK]
        assert first_bytes(s) == [0, 1, 2, 3]


def test_a_child_changes_its_copy_of_a_store_in_memory() -> None:
    s = superchunk.SChunk(CHUNK)
    s.append_data(bytes(CHUNK))

    def write(busy: Busy) -> None:
        with s._handle.store.lock:  # type: ignore[attr-defined]
            busy.stay()

    def child() -> int:
        s.append_data(bytes([1]) * CHUNK)
        return s.nchunks

    with Busy(write):
        assert in_child(child) == 2
    assert s.nchunks == 1


def test_a_fork_beside_a_closed_store_in_memory_lets_go_of_everything(path: str) -> None:
    closed = superchunk.SChunk(CHUNK)
    store = closed._handle.store
    assert isinstance(store, MemoryStore)
    closed.close()
    with superchunk.open(path, mode="a") as s:
        assert in_child(lambda: first_bytes(s)[:3]) == [0, 1, 2]  # an error of the hook would be unraisable
        taken: list[bool] = []

        def take() -> None:
            taken.append(s._handle.store._open.lock.acquire(blocking=False))
            if taken[0]:
                s._handle.store._open.lock.release()

        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        assert taken == [True]
    assert store.lock is not None


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superchunk._store.open_frames._PATIENCE", 0)


@pytest.mark.usefixtures("impatient")
def test_forks_in_two_threads_at_a_time_let_go_of_everything(path: str) -> None:
    with superchunk.open(path, mode="a") as s:
        failures: list[BaseException] = []

        def fork() -> None:
            try:
                for _ in range(20):
                    assert in_child(lambda: first_bytes(s)[:3]) == [0, 1, 2]
            except BaseException as error:  # noqa: BLE001 - told at the end
                failures.append(error)

        threads = [threading.Thread(target=fork) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        s.append_data(bytes([3]) * CHUNK)
        assert s._handle.store._open.lock.acquire(blocking=False)
        s._handle.store._open.lock.release()
