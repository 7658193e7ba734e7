"""The mark of a writer on the frame itself: who is let in, and what becomes of it after a fork."""

from __future__ import annotations

import errno
import fcntl
import os
import pickle
import signal
from typing import TYPE_CHECKING

import pytest
from other_process import Other, in_child

from superchunk._store import locks
from superchunk._store.locks import WriterLock, leads_to, separate
from superchunk.exceptions import LockedError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PIPES = (("down[1]", os.O_WRONLY), ("up[0]", os.O_RDONLY))
SETUP = """
import os
from superchunk.exceptions import LockedError
from superchunk._store.locks import WriterLock
def take(path, **how):
    global fd, lock
    fd, lock = os.open(path, os.O_RDONLY), WriterLock()
    try:
        lock.acquire(fd, path, **how)
    except LockedError:
        return False
    return True
"""


@pytest.fixture(params=["file", "directory"])
def frame(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / "frame.b2frame"
    if request.param == "file":
        path.write_bytes(b"anything")
    else:
        path.mkdir()
    return str(path)


@pytest.fixture
def fd(frame: str) -> Iterator[int]:
    fd = os.open(frame, os.O_RDONLY)
    yield fd
    os.close(fd)


def test_a_second_process_is_refused_and_told_why(frame: str, fd: int) -> None:
    with Other(SETUP) as other:
        assert other(f"take({frame!r})")
        lock = WriterLock()
        with pytest.raises(LockedError) as caught:
            lock.acquire(fd, frame)
        assert not lock.held
    assert str(caught.value).startswith(f"{frame}: another process has it open for writing")
    assert caught.value.errno == errno.EAGAIN
    assert caught.value.filename == frame
    assert isinstance(caught.value, BlockingIOError)
    assert isinstance(caught.value, StorageError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - just made


def test_what_is_released_can_be_taken(frame: str, fd: int) -> None:
    lock = WriterLock()
    assert not lock.held
    lock.acquire(fd, frame)
    lock.acquire(fd, frame)
    assert lock.held
    with Other(SETUP) as other:
        assert not other(f"take({frame!r})")
        lock.release()
        lock.release()
        assert not lock.held
        assert other(f"take({frame!r})")
        other("lock.release()")
        lock.acquire(fd, frame)
        assert not other(f"take({frame!r})")
    lock.release()


def test_the_lock_of_a_killed_process_is_free(frame: str, fd: int) -> None:
    lock = WriterLock()
    with Other(SETUP) as other:
        assert other(f"take({frame!r})")
        with pytest.raises(LockedError):
            lock.acquire(fd, frame)
        other.kill()
        lock.acquire(fd, frame)
    lock.release()


def test_another_open_file_of_the_same_process_is_refused(frame: str, fd: int) -> None:
    lock, second = WriterLock(), os.open(frame, os.O_RDONLY)
    lock.acquire(fd, frame)
    with pytest.raises(LockedError):
        WriterLock().acquire(second, frame)
    os.close(second)
    lock.release()


def test_writers_that_take_turns_let_each_other_in_and_nobody_else(frame: str, fd: int) -> None:
    lock = WriterLock()
    lock.acquire(fd, frame, shared=True)
    with Other(SETUP) as other:
        assert not other(f"take({frame!r})")
        assert other(f"take({frame!r}, shared=True)")
        lock.release()
        with pytest.raises(LockedError):
            lock.acquire(fd, frame)


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_where_nothing_can_be_locked_it_goes_on_without(
    frame: str, fd: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_fd: int, _operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(locks, "flock", refuse)
    lock = WriterLock()
    lock.acquire(fd, frame)
    assert lock.held
    lock.release()
    assert not lock.held


def test_any_other_refusal_is_an_error_with_the_path(frame: str, fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int, _operation: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(locks, "flock", refuse)
    lock = WriterLock()
    with pytest.raises(StorageError) as caught:
        lock.acquire(fd, frame)
    assert not isinstance(caught.value, LockedError)
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, frame)
    assert not lock.held


def test_a_forked_child_neither_holds_nor_releases_nor_takes_the_lock(frame: str, fd: int) -> None:
    lock = WriterLock()
    lock.acquire(fd, frame)

    def work() -> list[bool]:
        held = lock.held
        lock.release()
        try:
            lock.acquire(fd, frame)
        except LockedError:
            return [held, lock.held]
        return [held, True]

    assert in_child(work) == [False, False]
    assert lock.held
    with Other(SETUP) as other:
        assert not other(f"take({frame!r})"), "the child let go of its parent's lock"
    lock.release()


def test_a_child_takes_the_lock_once_its_parent_let_go(frame: str, fd: int) -> None:
    lock = WriterLock()
    lock.acquire(fd, frame)
    told, tell = os.pipe()
    answer, reply = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.read(told, 1)
            lock.acquire(fd, frame)
            os.write(reply, b"+" if lock.held else b"-")
            os.read(told, 1)
        finally:
            os._exit(0)
    lock.release()
    os.write(tell, b".")
    assert os.read(answer, 1) == b"+"
    with pytest.raises(LockedError):
        lock.acquire(fd, frame)
    os.write(tell, b".")
    os.waitpid(pid, 0)
    lock.acquire(fd, frame)
    lock.release()
    for pipe in (told, tell, answer, reply):
        os.close(pipe)


def test_a_child_that_separates_its_copy_does_not_keep_a_dead_parents_lock(frame: str, fd: int) -> None:
    script = f"""
import signal
from superchunk._store.locks import separate
assert take({frame!r})
down, up = os.pipe(), os.pipe()
if not os.fork():
    os.read(down[0], 1)
    separate(fd, {frame!r})
    os.write(up[1], b".")
    signal.pause()
"""
    lock = WriterLock()
    with Other(SETUP) as other:
        # The grandchild is reached through descriptors that outlive its parent.
        grandchild = other(script) or other("int(open('/proc/self/task/%d/children' % os.getpid()).read())")
        try:
            pipes = [os.open(f"/proc/{grandchild}/fd/{other(name)}", mode) for name, mode in PIPES]
            other.kill()
            with pytest.raises(LockedError):
                lock.acquire(fd, frame)
            os.write(pipes[0], b".")
            assert os.read(pipes[1], 1) == b"."
            lock.acquire(fd, frame)
            lock.release()
        finally:
            os.kill(grandchild, signal.SIGKILL)
    for pipe in pipes:
        os.close(pipe)


def test_separating_keeps_number_access_and_file(frame: str, fd: int, tmp_path: Path) -> None:
    fcntl.flock(fd, fcntl.LOCK_EX)
    copy = os.dup(fd)
    fcntl.flock(copy, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one open file: no conflict
    os.rename(frame, tmp_path / "moved")  # noqa: PTH104 - as the file system sees it
    separate(copy, str(tmp_path / "moved"))
    assert os.path.sameopenfile(copy, fd)
    assert fcntl.fcntl(copy, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    assert fcntl.fcntl(copy, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    with pytest.raises(BlockingIOError):
        fcntl.flock(copy, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(copy)


def test_separating_by_name_refuses_another_file(frame: str, fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = os.open

    def without_proc(path: str, flags: int) -> int:
        if path.startswith("/proc"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return plain(path, flags)

    monkeypatch.setattr(os, "open", without_proc)
    separate(fd, frame)
    os.rename(frame, f"{frame}.old")  # noqa: PTH104
    with pytest.raises(StorageError, match="No such file"):
        separate(fd, frame)
    os.close(plain(frame, os.O_CREAT | os.O_RDONLY))
    with pytest.raises(StorageError, match="replaced by another file"):
        separate(fd, frame)


def test_a_replaced_or_missing_file_is_not_what_was_opened(frame: str, fd: int) -> None:
    assert leads_to(frame, fd)
    os.rename(frame, f"{frame}.old")  # noqa: PTH104
    assert not leads_to(frame, fd)
    assert leads_to(f"{frame}.old", fd)
    os.mkdir(frame)  # noqa: PTH102
    assert not leads_to(frame, fd)
    assert not leads_to(f"{frame}/below/it", fd)
    with pytest.raises(StorageError):
        leads_to("x" * 5000, fd)
