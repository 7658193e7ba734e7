"""The lock sidecar: bytes, turns, threads, forks, and what stands in its way."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from other_process import PATIENCE, Other, in_child

from superchunk._schunk.opening import environment_locking
from superchunk._store import lock_file as sidecar
from superchunk._store.lock_file import LockSidecar, sidecar_path
from superchunk.exceptions import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

SETUP = """
import os
from superchunk._store.lock_file import LockSidecar
def enter(block):
    global inside
    inside = block
    return block.__enter__()
"""


def count(number: int) -> bytes:
    return bytes(8) + number.to_bytes(8, sys.byteorder)


def is_free(path: Path, operation: int = fcntl.LOCK_EX) -> bool:
    """Return whether somebody else could lock the sidecar now."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.fixture(params=[False, True], ids=["file", "directory"])
def sparse(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def frame(tmp_path: Path, *, sparse: bool) -> str:
    path = tmp_path / "frame.b2frame"
    if sparse:
        path.mkdir()
    else:
        path.write_bytes(b"anything")
    return str(path)


@pytest.fixture
def lock(frame: str, *, sparse: bool) -> Iterator[LockSidecar]:
    lock = LockSidecar(frame, sparse=sparse)
    yield lock
    lock.close()


@pytest.fixture
def path(lock: LockSidecar) -> Path:
    return Path(lock.path)


def again(lock: LockSidecar) -> LockSidecar:
    """Return another handle's sidecar for the same frame."""
    return LockSidecar(str(Path(lock.path).parent), sparse=True) if lock.path.endswith("/.b2lock") else plain(lock)


def plain(lock: LockSidecar) -> LockSidecar:
    return LockSidecar(lock.path.removesuffix(".b2lock"), sparse=False)


@pytest.fixture
def other(lock: LockSidecar, frame: str, *, sparse: bool) -> Iterator[Other]:
    del lock
    with Other(f"{SETUP}\nlock = LockSidecar({frame!r}, sparse={sparse})") as other:
        yield other


def test_the_sidecar_stands_beside_a_file_and_inside_a_directory() -> None:
    assert sidecar_path("a/b.b2frame", sparse=False) == "a/b.b2frame.b2lock"
    assert sidecar_path("a/b", sparse=True) == "a/b/.b2lock"
    assert sidecar_path("a/b/", sparse=True) == "a/b/.b2lock"


@pytest.mark.parametrize(("value", "wanted"), [(None, 0), ("", 0), ("0", 0), ("1", 1), ("no", 1), ("00", 1)])
def test_the_environment_asks_for_locking(value: str | None, wanted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BLOSC_LOCKING", raising=False)
    if value is not None:
        monkeypatch.setenv("BLOSC_LOCKING", value)
    assert environment_locking() == bool(wanted)


def test_a_reader_makes_it_empty_at_its_first_block(lock: LockSidecar, path: Path) -> None:
    assert not path.exists()
    mask = os.umask(0o027)
    try:
        with lock.shared():
            assert path.read_bytes() == b""
            assert path.stat().st_mode & 0o777 == 0o640
            assert fcntl.fcntl(lock._fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    finally:
        os.umask(mask)
    assert path.read_bytes() == b""


def test_a_writer_counts_before_it_begins_and_once(lock: LockSidecar, path: Path) -> None:
    with lock.exclusive():
        assert path.read_bytes() == count(1)
        with lock.exclusive(), lock.shared():
            assert path.read_bytes() == count(1)
    assert path.read_bytes() == count(1)
    with lock.exclusive():
        assert path.read_bytes() == count(2)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", count(1)),
        (b"ABC", b"ABC" + count(1)[3:]),
        (b"ABCDEFGH1234567", b"ABCDEFGH" + count(1)[8:]),
        (b"ABCDEFGH" + count(77)[8:] + b"more", b"ABCDEFGH" + count(78)[8:] + b"more"),
        (b"ABCDEFGH" + b"\xff" * 8, b"ABCDEFGH" + bytes(8)),
    ],
)
def test_the_counter_is_eight_bytes_at_eight_and_the_rest_is_kept(
    lock: LockSidecar, path: Path, before: bytes, after: bytes
) -> None:
    path.write_bytes(before)
    with lock.exclusive():
        pass
    assert path.read_bytes() == after


def test_changed_means_that_the_counter_differs_from_what_was_seen(lock: LockSidecar, path: Path) -> None:
    second = again(lock)
    with lock.shared() as changed:
        assert changed, "nothing was seen yet"
    with lock.shared() as changed:
        assert not changed
    with lock.exclusive() as changed:
        assert not changed
    with lock.shared() as changed:
        assert not changed, "the change was its own"
    with second.exclusive():
        pass
    with lock.exclusive() as changed:
        assert changed
        with lock.shared() as inner:
            assert not inner
    for smaller in (count(1), b""):
        path.write_bytes(smaller)
        with lock.shared() as changed:
            assert changed, "the counter is compared, not ordered"
    lock.forget()
    with lock.shared() as changed:
        assert changed
    second.close()


def test_a_block_that_fails_to_read_again_leaves_it_changed(lock: LockSidecar) -> None:
    seen = []

    def fail() -> None:
        with lock.shared() as changed:
            seen.append(changed)
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fail()
    with lock.shared() as changed:
        assert changed
    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen == [True, True, False]
    with lock.shared() as changed:
        assert not changed, "nothing was to be read again in the block that failed"


def test_blocks_in_blocks_lock_until_the_outermost_ends(lock: LockSidecar, path: Path) -> None:
    with lock.exclusive():
        with lock.shared():
            assert lock.locked
            assert not is_free(path, fcntl.LOCK_SH)
        assert not is_free(path, fcntl.LOCK_SH)
    assert not lock.locked
    assert is_free(path)
    with lock.shared():
        with lock.shared():
            pass
        assert not is_free(path)
        assert is_free(path, fcntl.LOCK_SH)
    assert is_free(path)


def test_writing_inside_a_reading_block_is_refused(lock: LockSidecar, path: Path) -> None:
    with lock.shared():
        with pytest.raises(StorageError, match="inside a block that only reads") as caught, lock.exclusive():
            pass
        assert caught.value.errno == errno.EDEADLK
        assert not is_free(path)
    assert is_free(path)
    assert path.read_bytes() == b""


def test_threads_of_one_handle_take_turns(lock: LockSidecar) -> None:
    entered, rest = threading.Event(), threading.Event()

    def work() -> None:
        with lock.exclusive():
            entered.set()
            rest.wait(PATIENCE)

    thread = threading.Thread(target=work)
    with lock.exclusive():
        thread.start()
        assert not entered.wait(0.2)
    assert entered.wait(PATIENCE)
    rest.set()
    thread.join()


def test_a_writer_waits_for_readers_and_readers_for_a_writer(lock: LockSidecar, path: Path, other: Other) -> None:
    with lock.shared():
        assert other("enter(lock.shared())")
        other("inside.__exit__(None, None, None)")
        other.start("enter(lock.exclusive())")
        other.waits_for(path)
        assert path.read_bytes() == b"", "it counted before it had the lock"
    assert other.answer() is False
    assert path.read_bytes() == count(1)
    other("inside.__exit__(None, None, None)")
    with lock.exclusive() as changed:
        assert changed
        other.start("enter(lock.shared())")
        other.waits_for(path)
    assert other.answer()


needs_records = pytest.mark.skipif(
    not hasattr(fcntl, "F_OFD_GETLK"), reason="a waiting writer cannot say so on this system"
)


@needs_records
def test_a_reader_gives_way_to_a_writer_that_waits(
    lock: LockSidecar, path: Path, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidecar, "_GIVING_WAY", [0.001] * int(1000 * PATIENCE))
    found: list[bytes] = []
    second = again(lock)
    waiting = threading.Event()

    def pause(seconds: float) -> None:
        waiting.set()
        time.sleep(seconds)

    def read() -> None:
        with second.shared():
            found.append(path.read_bytes())

    with lock.shared():
        other.start("with lock.exclusive(): pass")
        other.waits_for(path)
        monkeypatch.setattr(sidecar, "time", SimpleNamespace(sleep=pause))
        thread = threading.Thread(target=read)
        thread.start()
        assert waiting.wait(PATIENCE), "it did not look whether a writer waits"
        assert is_free(path, fcntl.LOCK_SH), "others, who know nothing of this, are let in"
        assert path.read_bytes() == b""
    thread.join(PATIENCE)
    other.answer()
    assert found == [count(1)], "the reader came first"
    second.close()


@needs_records
def test_a_reader_that_has_a_turn_elsewhere_gives_way_only_for_some_time(
    lock: LockSidecar, path: Path, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidecar, "_GIVING_WAY", [0.001] * 5)
    second = again(lock)
    with lock.shared():
        other.start("enter(lock.exclusive())")
        other.waits_for(path)
        with second.shared():
            assert not is_free(path)
    assert other.answer()
    second.close()


@needs_records
def test_a_writer_that_gives_up_waits_no_more(lock: LockSidecar, monkeypatch: pytest.MonkeyPatch) -> None:
    second = again(lock)
    asked = []

    def interrupted(fd: int, operation: int) -> None:
        asked.append(operation)
        if operation == fcntl.LOCK_EX:
            assert sidecar._somebody_waits(lock._fd)
            raise KeyboardInterrupt
        fcntl.flock(fd, operation)

    with lock.shared():
        monkeypatch.setattr(sidecar, "flock", interrupted)
        with pytest.raises(KeyboardInterrupt), second.exclusive():
            pytest.fail("it has no turn")
        monkeypatch.undo()
        assert asked[:2] == [fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX]
        assert not sidecar._somebody_waits(lock._fd)
    with second.exclusive():
        assert not sidecar._somebody_waits(second._fd), "who has the turn does not wait"
    second.close()


def test_whether_there_are_news_is_told_without_a_lock(lock: LockSidecar, path: Path) -> None:
    assert lock.has_news(), "it has not looked yet"
    with lock.shared():
        assert lock.has_news(), "a thread is in there"
    assert not lock.has_news()
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not lock.has_news(), "a lock alone is no change"
        file.write(count(5))
        file.flush()
        assert lock.has_news()
    with lock.shared() as changed:
        assert changed
    assert not lock.has_news()
    path.unlink()
    assert lock.has_news(), "others count in another file by now"
    lock.close()
    assert lock.has_news()


def test_no_turn_is_lost_between_two_writing_processes(lock: LockSidecar, path: Path, other: Other) -> None:
    numbers = path.parent / "numbers"
    numbers.write_text("0")
    other.start(
        "for _ in range(300):\n"
        "    with lock.exclusive():\n"
        f"        with open({str(numbers)!r}, 'r+') as f:\n"
        "            n = int(f.read()) + 1; f.seek(0); f.write(str(n))"
    )
    for _ in range(300):
        with lock.exclusive():
            numbers.write_text(str(int(numbers.read_text()) + 1))
    other.answer()
    assert numbers.read_text() == "600"
    assert path.read_bytes() == count(600)


def test_the_lock_of_a_killed_process_is_free_and_its_count_stays(lock: LockSidecar, path: Path, other: Other) -> None:
    with lock.shared():
        pass
    other("enter(lock.exclusive())")
    assert not is_free(path, fcntl.LOCK_SH)
    other.kill()
    with lock.shared() as changed:
        assert changed
    assert path.read_bytes() == count(1)


def test_a_sidecar_deleted_while_open_is_made_again(lock: LockSidecar, path: Path) -> None:
    with lock.exclusive():
        pass
    path.unlink()
    second = again(lock)
    with second.exclusive():
        assert path.read_bytes() == count(1), "the same number as before, after another's change"
    with lock.shared() as changed:
        assert changed
        assert not is_free(path), "the lock is on a file that nobody finds"
    second.close()


def test_who_waits_for_a_deleted_sidecar_locks_the_new_one(lock: LockSidecar, path: Path, other: Other) -> None:
    with lock.exclusive():
        other.start("enter(lock.exclusive())")
        other.waits_for(path)
        path.unlink()
    assert other.answer()
    assert other("os.fstat(lock._fd).st_ino") == path.stat().st_ino
    assert not is_free(path, fcntl.LOCK_SH)


def test_a_sidecar_that_always_vanishes_is_an_error(lock: LockSidecar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sidecar, "leads_to", lambda _path, _fd: False)
    with pytest.raises(StorageError, match="removed or replaced") as caught, lock.shared():
        pass
    assert (caught.value.errno, caught.value.filename) == (errno.ESTALE, lock.path)
    assert lock._fd == -1


def test_a_link_is_not_followed(lock: LockSidecar, path: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_bytes(bytes(range(32)))
    path.symlink_to(target)
    for block in (lock.shared, lock.exclusive):
        with pytest.raises(StorageError, match="symbolic link") as caught, block():
            pass
        assert caught.value.filename == lock.path
    assert target.read_bytes() == bytes(range(32))
    target.unlink()
    with pytest.raises(StorageError, match="symbolic link"), lock.exclusive():
        pass
    assert not target.exists()


def test_a_pipe_or_a_directory_is_refused_at_once(lock: LockSidecar, path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(StorageError, match="expected a regular file"), lock.shared():
        pass
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageError) as caught, lock.shared():
        pass
    assert caught.value.errno == errno.EISDIR


def test_a_missing_directory_is_an_error_with_the_sidecars_name(tmp_path: Path) -> None:
    lock = LockSidecar(str(tmp_path / "none"), sparse=True)
    with pytest.raises(StorageError) as caught, lock.shared():
        pass
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(tmp_path / "none" / ".b2lock"))


def test_in_a_directory_that_may_not_be_written_readers_need_it_made(*, sparse: bool) -> None:
    # Not below tmp_path, which only its owner may enter: the other process gives up being root.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        frame = Path(folder) / "frame"
        frame.mkdir() if sparse else frame.write_bytes(b"anything")
        path = Path(sidecar_path(str(frame), sparse=sparse))
        path.parent.chmod(0o555)
        script = f"""
{SETUP}
if not os.geteuid():
    os.setgid(65534); os.setuid(65534)
lock = LockSidecar({str(frame)!r}, sparse={sparse})
def attempt(block):
    try:
        with block as changed:
            return [changed]
    except OSError as error:
        return [type(error).__name__, error.errno, error.filename, str(error)]
"""
        with Other(script) as other:
            name, code, filename, message = other("attempt(lock.shared())")
            assert (name, code, filename) == ("NoPermissionError", errno.EACCES, str(path))
            assert "locking needs this file, for reading too" in message
            path.parent.chmod(0o755)
            path.write_bytes(count(5))
            path.chmod(0o444)
            path.parent.chmod(0o555)
            assert other("attempt(lock.shared())") == [True]
            assert other("attempt(lock.shared())") == [False]
            assert other("attempt(lock.exclusive())")[:3] == ["NoPermissionError", errno.EACCES, str(path)]
            other("enter(lock.shared())")
            assert not is_free(path)
        assert path.read_bytes() == count(5)
        path.parent.chmod(0o755)
        if sparse:
            shutil.rmtree(frame)


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS])
def test_a_file_system_without_locks_is_named_as_the_reason(
    lock: LockSidecar, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_fd: int, _operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(sidecar, "flock", refuse)
    with pytest.raises(StorageError, match="file system cannot lock") as caught, lock.shared():
        pass
    assert (caught.value.errno, caught.value.filename) == (code, lock.path)


def test_a_count_that_cannot_be_written_lets_go_of_the_lock(
    lock: LockSidecar, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:

        def full(_fd: int, _data: bytes, _at: int) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patched.setattr(os, "pwrite", full)
        with pytest.raises(StorageError) as caught, lock.exclusive():
            pass
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, lock.path)
        patched.setattr(os, "pwrite", lambda _fd, _data, _at: 3)
        with pytest.raises(StorageError, match="No space"), lock.exclusive():
            pass
    assert is_free(path)
    with lock.exclusive() as changed:
        assert changed


def test_a_child_forked_in_a_block_starts_anew_and_leaves_the_parents_lock(lock: LockSidecar, path: Path) -> None:
    def work() -> list[bool]:
        seen = [lock.locked, lock._fd >= 0]
        lock.close()
        return seen

    with lock.exclusive():
        assert in_child(work) == [False, False]
        assert not is_free(path, fcntl.LOCK_SH)
        assert lock.locked
    assert is_free(path)


def test_the_end_of_an_inherited_block_does_not_unlock_in_the_child(lock: LockSidecar, path: Path) -> None:
    block = lock.exclusive()
    block.__enter__()

    def work() -> bool:
        block.__exit__(None, None, None)
        return not is_free(path, fcntl.LOCK_SH)

    assert in_child(work), "the child let go of its parent's lock"
    assert not is_free(path, fcntl.LOCK_SH)
    block.__exit__(None, None, None)
    assert is_free(path)

    def read() -> list[bool]:
        with lock.shared() as changed:
            return [changed, lock.locked]

    assert in_child(read) == [True, True]


def test_a_child_that_lives_on_does_not_keep_its_killed_parents_lock(
    lock: LockSidecar, path: Path, other: Other
) -> None:
    other("enter(lock.exclusive())")
    other("import signal; pid = os.fork(); pid or signal.pause()")
    grandchild = other("pid")
    try:
        assert not is_free(path)
        other.kill()
        # Whether the hook of the child has run by now is not known; waiting for the lock is the hand-shake.
        with lock.exclusive():
            pass
    finally:
        os.kill(grandchild, 9)


def test_a_fork_beside_a_thread_that_is_in_a_block_does_not_hang_the_child(lock: LockSidecar) -> None:
    entered, rest = threading.Event(), threading.Event()

    def work() -> None:
        with lock.shared():
            entered.set()
            rest.wait(PATIENCE)

    def child() -> bool:
        with lock.shared() as changed:
            return changed

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(PATIENCE)
    try:
        assert in_child(child)
    finally:
        rest.set()
        thread.join()


def test_closing_ends_blocks_and_a_later_block_opens_again(lock: LockSidecar, path: Path) -> None:
    with lock.exclusive():
        lock.close()
        assert is_free(path)
    lock.close()
    assert lock._fd == -1
    with lock.shared() as changed:
        assert changed
    fd = lock._fd
    second = again(lock)
    with second.shared():
        fd = second._fd
    del second
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_relative_path_keeps_its_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    lock = LockSidecar("frame", sparse=False)
    monkeypatch.chdir(tmp_path / "below")
    with lock.shared():
        pass
    assert (tmp_path / "frame.b2lock").exists()
    lock.close()
