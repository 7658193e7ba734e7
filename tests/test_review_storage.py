"""Rare meetings of handles, paths and other writers, each of which went wrong once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from other_process import Other

import superchunk
from superchunk import SChunk
from superchunk._store import os_file as storage_file
from superchunk._store.copy_store import transfer
from superchunk._store.os_file import System
from superchunk.exceptions import LockedError, StorageError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from typing_extensions import Buffer

_CHUNK = 4000
KINDS = pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])


def _filled(path: Path, nchunks: int = 3, *, contiguous: bool = True, **how: object) -> SChunk:
    """Return a handle on a new frame of chunks that do not compress."""
    made = SChunk(chunksize=_CHUNK, urlpath=os.fspath(path), contiguous=contiguous, mode="w", **how)  # type: ignore[arg-type]
    for _ in range(nchunks):
        made.append_data(os.urandom(_CHUNK))
    return made


@KINDS
def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, contiguous: bool
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    frame = _filled(Path("frame"), contiguous=contiguous)
    frame.delete_chunk(0)
    monkeypatch.chdir(there)
    frame.compact()
    frame.append_data(b"x" * _CHUNK)
    frame.close()
    assert list(there.iterdir()) == []
    assert list(here.iterdir()) == [here / "frame"]
    with superchunk.open(here / "frame") as again:
        assert again.nchunks == 3


@pytest.mark.parametrize("taken", [True, False])
def test_compacting_a_frame_that_was_renamed_touches_nothing_else(tmp_path: Path, *, taken: bool) -> None:
    name, moved = tmp_path / "frame", tmp_path / "moved"
    frame = _filled(name)
    frame.delete_chunk(0)
    name.rename(moved)
    if taken:
        _filled(name, 1).close()
    held = name.read_bytes() if taken else b""
    with pytest.raises(StorageError, match="another file"):
        frame.compact()
    assert frame.nchunks == 2
    frame.close()
    assert sorted(tmp_path.iterdir()) == [name, moved][not taken :]
    assert not taken or name.read_bytes() == held
    with superchunk.open(moved) as again:
        assert again.nchunks == 2


@KINDS
def test_what_another_process_writes_is_not_replaced_because_it_is_read_here(
    tmp_path: Path, *, contiguous: bool
) -> None:
    path = tmp_path / "frame"
    _filled(path, contiguous=contiguous).close()
    with Other("import superchunk") as other, superchunk.open(path, "r") as reader:
        other(f"s = superchunk.open({os.fspath(path)!r}, 'a')")
        with pytest.raises(LockedError):
            _filled(path, 1, contiguous=contiguous)
        other("s.close()")
        assert reader.nchunks == 3
        _filled(path, 1, contiguous=contiguous).close()
        assert reader.nchunks == 1


@KINDS
def test_handles_on_a_replaced_frame_outlive_the_one_that_replaced_it(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "frame"
    _filled(path, contiguous=contiguous).close()
    first, second, third = (superchunk.open(path, mode) for mode in ("r", "r", "a"))
    new = _filled(path, 1, contiguous=contiguous)
    content = new[:]
    assert first[:] == content
    first.close()
    new.close()
    assert second[:] == content
    third.append_data(b"x" * _CHUNK)
    assert third[:] == content + b"x" * _CHUNK
    third.flush()
    assert second[:] == content + b"x" * _CHUNK
    third.close()
    second.close()
    with superchunk.open(path) as again:
        assert again[:] == content + b"x" * _CHUNK


@KINDS
def test_a_replaced_frame_that_was_replaced_again_is_followed(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "frame"
    _filled(path, contiguous=contiguous).close()
    first, second = (superchunk.open(path, "r") for _ in range(2))
    new = _filled(path, 1, contiguous=contiguous)
    assert first.nchunks == 1
    first.close()
    new.close()
    _filled(path, 2, contiguous=contiguous).close()
    assert second.nchunks == 2
    second.close()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@KINDS
def test_a_frame_that_is_closed_and_not_collected_does_not_keep_others_from_a_child(
    tmp_path: Path, *, contiguous: bool
) -> None:
    states = []
    for name in ("a", "b", "c"):
        closed = _filled(tmp_path / name, contiguous=contiguous)
        states.append(closed._handle.store_if_open._state)  # type: ignore[union-attr]
        closed.close()
    frame = _filled(tmp_path / "frame", contiguous=contiguous)
    inherited = frame._handle.store_if_open._state  # type: ignore[union-attr]
    before = inherited.lock
    child = os.fork()
    if not child:
        os._exit(0 if inherited.lock is not before and not inherited.writing and frame.nchunks == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(states) == 3


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@KINDS
def test_a_child_forked_in_a_transaction_leaves_it_to_the_parent(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "frame"
    frame = _filled(path, contiguous=contiguous)
    frame.flush()
    child, status = -1, 1
    try:
        with frame.transaction():
            frame.append_data(b"x" * _CHUNK)
            child = os.fork()
            if child:
                assert os.waitpid(child, 0)[1] == 0
        if not child and frame.nchunks == 3 and superchunk.open(path).nchunks == 3:
            state = frame._handle.store_if_open._state  # type: ignore[union-attr]
            status = 2 if state.busy or state.waiting else 0
    finally:
        if not child:
            os._exit(status)
    assert frame.nchunks == 4
    frame.close()
    with superchunk.open(path) as again:
        assert again.nchunks == 4


@KINDS
def test_closing_inside_a_transaction_is_refused(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "frame"
    frame = _filled(path, contiguous=contiguous)
    with frame.transaction():
        frame.append_data(b"x" * _CHUNK)
        with pytest.raises(StorageError, match="transaction"):
            frame.close()
        with superchunk.open(path, "a") as another:
            another.append_data(b"y" * _CHUNK)
    assert frame.nchunks == 5
    frame.close()
    with superchunk.open(path) as again:
        assert again[3 * _CHUNK :] == b"x" * _CHUNK + b"y" * _CHUNK


class _Interrupted(System):
    """Calls a signal handler of a kind in the middle of each write."""

    handler: Callable[[], object] | None = None

    def pwrite(self, fd: int, buffers: Sequence[Buffer], at: int) -> None:
        """Write, with something else before and after."""
        handler, self.handler = self.handler, None
        if handler is not None:
            handler()
        super().pwrite(fd, buffers, at)
        if handler is not None:
            handler()
            self.handler = handler


@pytest.mark.parametrize("call", ["flush", "close", "other"])
@KINDS
def test_a_signal_handler_may_flush_in_the_middle_of_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, *, contiguous: bool
) -> None:
    path = tmp_path / "frame"
    interrupted = _Interrupted()
    monkeypatch.setattr(storage_file, "system", interrupted)
    frame = SChunk(chunksize=40, urlpath=os.fspath(path), contiguous=contiguous, mode="w")
    other = superchunk.open(path, "a")

    def handler() -> None:
        if call == "flush":
            frame.flush()
        elif call == "close":
            with suppress(StorageError):
                frame.close() if other._handle.store_if_open is None else other.close()
        else:
            superchunk.open(path, "a").close()

    content = b""
    interrupted.handler = handler
    for number in range(40):
        piece = bytes([number + 1, *range(39)])
        frame.append_chunk(superchunk.compress2(piece))
        content += piece
        assert frame[:] == content
        with superchunk.open(path, snapshot=True) as committed:
            assert content.startswith(committed[:])
    interrupted.handler = None
    frame.close()
    with superchunk.open(path) as again:
        assert again[:] == content
    assert superchunk.verify(path).status == "sound"


_COMPACTING = """
import os, superchunk
s = superchunk.open({path!r}, "a")
for turn in range({turns}):
    for i in range(3):
        s.update_chunk(i, superchunk.compress2(bytes([i]) * 390 + os.urandom(10)))
    s.compact()
"""


@pytest.fixture
def _hasty() -> Iterator[None]:
    """Let threads take turns after some instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["thread", "process"])
@KINDS
def test_threads_read_what_is_compacted(tmp_path: Path, *, contiguous: bool, elsewhere: bool) -> None:
    path = os.fspath(tmp_path / "frame")
    with SChunk(chunksize=400, urlpath=path, contiguous=contiguous, mode="w") as frame:
        for number in range(20):
            frame.append_data(bytes([number]) * 390 + os.urandom(10))
    wrong: list[object] = []
    ended = threading.Event()

    def read(reader: SChunk) -> None:
        while not ended.is_set():
            for number in range(20):
                try:
                    if reader.decompress_chunk(number)[:390] != bytes([number]) * 390:  # type: ignore[index]
                        wrong.append(number)
                    if reader[400 * number : 400 * number + 8] != bytes([number]) * 8:
                        wrong.append(number)
                except SuperchunkError as error:
                    wrong.append(error)

    code = _COMPACTING.format(path=path, turns=150)
    with superchunk.open(path, "r") as reader, ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            pool.submit(read, reader)
        try:
            if elsewhere:
                subprocess.run([sys.executable, "-c", code], check=True)
            else:
                exec(code, {})  # noqa: S102 - the very same
        finally:
            ended.set()
    assert not wrong


def test_a_copy_is_of_one_state_while_others_write(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "frame")
    frame = SChunk(chunksize=400, urlpath=path, mode="w")
    for _ in range(1200):
        frame.append_data(os.urandom(400))
    frame.flush()
    content = frame[:]
    done: list[bool] = []

    def change() -> None:
        frame.delete_chunk(0)
        frame.compact()
        done.append(True)

    with superchunk.open(path, "r") as reader:
        store = reader._handle.store
        target = SChunk(chunksize=400)
        thread = threading.Thread(target=change)

        def progress(_done: int, _all: int) -> None:
            if not thread.is_alive() and not done:
                thread.start()
                thread.join(0.2)

        transfer(store, target._handle.store, progress)
        thread.join()
        assert target[:] == content
        assert reader[:] == content[400:]
    frame.close()


class _Stopped(System):
    """Is interrupted right after one of its calls has done its work."""

    left = -1

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

    def pwrite(self, fd: int, buffers: Sequence[Buffer], at: int) -> None:
        """Write, and perhaps be interrupted."""
        super().pwrite(fd, buffers, at)
        self._count()

    def rename(self, old: str, new: str) -> None:
        """Rename, and perhaps be interrupted."""
        super().rename(old, new)
        self._count()


@pytest.mark.parametrize("waiting", [0, 2])
@pytest.mark.parametrize("calls", range(1, 5))
@KINDS
def test_an_interrupt_after_a_call_has_worked_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int, waiting: int, *, contiguous: bool
) -> None:
    path = tmp_path / "frame"
    stopped = _Stopped()
    monkeypatch.setattr(storage_file, "system", stopped)
    frame = _filled(path, contiguous=contiguous)
    frame.flush()
    for number in range(waiting):
        frame.append_data(bytes([number + 1]) * _CHUNK)
    before = frame[:]
    new = os.urandom(_CHUNK)
    stopped.left = calls
    with suppress(KeyboardInterrupt), frame.transaction():
        frame.append_data(new)
    stopped.left = -1
    content = frame[:]
    assert content in (before, before + new)
    frame.append_data(b"x" * _CHUNK)
    frame.close()
    with superchunk.open(path) as again:
        assert again[:] == content + b"x" * _CHUNK
    assert superchunk.verify(path).status == "sound"


@pytest.mark.parametrize("calls", range(1, 4))
@KINDS
def test_what_waits_survives_an_interrupted_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int, *, contiguous: bool
) -> None:
    path = tmp_path / "frame"
    stopped = _Stopped()
    monkeypatch.setattr(storage_file, "system", stopped)
    frame = SChunk(chunksize=440, urlpath=os.fspath(path), contiguous=contiguous, mode="w")
    frame.append_data(os.urandom(440))
    frame.flush()
    content = frame[:]
    for _ in range(3):
        content += (new := os.urandom(440))
        frame.append_data(new)
    stopped.left = calls
    with suppress(KeyboardInterrupt):
        frame.vlmeta["k"] = 1
    stopped.left = -1
    frame.append_data(b"x" * 440)
    frame.close()
    with superchunk.open(path) as again:
        assert again[:] == content + b"x" * 440


@KINDS
def test_many_commits_do_not_hold_descriptors(tmp_path: Path, *, contiguous: bool) -> None:
    with _filled(tmp_path / "frame", 1, contiguous=contiguous) as frame:
        before = len(list(Path("/proc/self/fd").iterdir()))
        for number in range(100):
            frame.vlmeta["n"] = number
            frame.compact()
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 70
