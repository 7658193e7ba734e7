"""How a new frame takes a name: killed at any step, refused by the system, two at a time, and in a full directory."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

import superchunk
from superchunk import SChunk
from superchunk._store import os_file as storage_file
from superchunk._store.frame_names import find_name
from superchunk.exceptions import LockedError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from typing_extensions import Buffer

OLD, NEW = b"old" * 1000, b"new" * 1000
KILLED = 9
"""How a process says that it ended in the middle."""
KINDS = pytest.mark.parametrize(("old", "contiguous"), [(False, False), (False, True), (True, False)])
"""Whether the old frame and the new one are files; a file over a file takes one step."""
STEPS = pytest.mark.parametrize("exchanging", [True, False])
"""Whether the system can exchange two names; else a directory gives its name away first."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.b2frame"


def make(path: Path, content: bytes, *, contiguous: bool) -> None:
    SChunk(data=content, urlpath=path, contiguous=contiguous, mode="w").close()


def content(path: Path, mode: str = "r") -> bytes:
    with superchunk.open(path, mode=mode) as s:
        read: bytes = s[:]
        return read


def beside(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir())


class Ending(storage_file.System):
    """Ends the process before a change of the disk, or refuses it."""

    def __init__(self, after: int, number: int = 0, *, exchanging: bool = True) -> None:
        self.after = after
        self.number = number
        self.exchanging = exchanging
        self.refused = ""

    def _step(self, what: str, path: object = "") -> None:
        self.after -= 1
        if self.after == -1 and self.number:
            self.refused = f"{what} {path}"
            raise OSError(self.number, os.strerror(self.number))
        if self.after < 0 and not self.number:
            os._exit(KILLED)

    def open_new(self, path: str, mode: int = 0o666) -> int:
        self._step("open_new", path)
        return super().open_new(path, mode)

    def pwrite(self, fd: int, buffers: Sequence[Buffer], at: int) -> None:
        self._step("pwrite")
        super().pwrite(fd, buffers, at)

    def sync(self, fd: int) -> None:
        self._step("sync")
        super().sync(fd)

    def rename(self, old: str, new: str) -> None:
        self._step("rename", new)
        super().rename(old, new)

    def rename_new(self, old: str, new: str) -> None:
        self._step("rename_new", new)
        super().rename_new(old, new)

    def exchange(self, one: str, other: str) -> None:
        self._step("exchange", other)
        if not self.exchanging:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        super().exchange(one, other)

    def unlink(self, path: str) -> None:
        self._step("unlink", path)
        super().unlink(path)

    def mkdir(self, path: str) -> None:
        self._step("mkdir", path)
        super().mkdir(path)

    def rmdir(self, path: str) -> None:
        self._step("rmdir", path)
        super().rmdir(path)

    def sync_folder(self, path: str) -> None:
        self._step("sync_folder", path)
        super().sync_folder(path)


@contextlib.contextmanager
def system(monkeypatch: pytest.MonkeyPatch, made: storage_file.System) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(storage_file, "system", made)
        yield


def killed(made: storage_file.System, path: Path, *, contiguous: bool) -> bool:
    """Replace the frame in a process of its own; return whether that was killed."""
    child = os.fork()
    if not child:
        try:
            storage_file.system = made
            make(path, NEW, contiguous=contiguous)
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, KILLED)
    return status == KILLED


def refused_elsewhere(path: Path) -> bool:
    """Return whether another process is refused that wants to replace the frame, and leaves nothing behind."""
    before = beside(path)
    child = os.fork()
    if not child:
        try:
            storage_file.system = storage_file.System()
            with pytest.raises(LockedError, match=r"x\.b2frame"):
                make(path, OLD + NEW, contiguous=False)
            gc.collect()
            if beside(path) == before:
                os._exit(KILLED)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED


@STEPS
@KINDS
def test_a_writer_killed_at_any_step_leaves_one_of_both(
    path: Path, *, old: bool, contiguous: bool, exchanging: bool
) -> None:
    found, moved, ended = [], 0, True
    for after in range(200):
        make(path, OLD, contiguous=old)
        ended = killed(Ending(after, exchanging=exchanging), path, contiguous=contiguous)
        read = content(path)
        assert read in (OLD, NEW), after
        found.append(read)
        moved += not path.exists()
        assert superchunk.verify(path).status == "sound"
        assert content(path, "a") == read
        assert path.exists()
        superchunk.open(path, mode="a").compact()
        assert content(path) == read
        assert not [name for name in beside(path) if name.endswith((".old", ".b2taking"))]
        superchunk.remove_urlpath(path)
        assert find_name(str(path)) is None
        if not ended:
            break
    assert not ended
    assert found == sorted(found, reverse=True)  # once new, it stays new
    assert bool(moved) != exchanging


@STEPS
@KINDS
def test_a_killed_writer_is_followed_by_another_one(
    path: Path, *, old: bool, contiguous: bool, exchanging: bool
) -> None:
    """Who is killed too; whatever the steps were at which that happened."""
    ended = True
    for first in range(200):
        make(path, OLD, contiguous=old)
        ended = killed(Ending(first, exchanging=exchanging), path, contiguous=contiguous)
        for after in (first, first // 2 + 7):
            killed(Ending(after, exchanging=exchanging), path, contiguous=contiguous)
            assert content(path) in (OLD, NEW), (first, after)
        make(path, OLD + NEW, contiguous=contiguous)
        assert content(path) == OLD + NEW
        superchunk.open(path, mode="a").compact()
        superchunk.remove_urlpath(path)
        assert not path.exists()
        assert find_name(str(path)) is None
        if not ended:
            break
    assert not ended


@STEPS
@KINDS
def test_a_refused_step_leaves_one_of_both_under_the_name(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, old: bool, contiguous: bool, exchanging: bool
) -> None:
    refused = set()
    for after in range(200):
        make(path, OLD, contiguous=old)
        failing = Ending(after, errno.EIO, exchanging=exchanging)
        with system(monkeypatch, failing):
            try:
                make(path, NEW, contiguous=contiguous)
            except StorageError as error:
                assert str(path) in str(error)  # noqa: PT017 - not every step is needed
                assert error.errno == errno.EIO  # noqa: PT017 - as above
                assert ".b2taking" not in str(error)  # noqa: PT017 - as above
                assert content(path) in (OLD, NEW)
            else:
                assert content(path) == NEW, failing.refused
        assert path.exists()
        make(path, OLD + NEW, contiguous=contiguous)
        superchunk.open(path, mode="a").compact()
        superchunk.remove_urlpath(path)
        assert not path.exists()
        refused.add(failing.refused)
        if not failing.refused:
            break
    assert not failing.refused
    assert f"open_new {path.with_name(f'.{path.name}.b2taking')}" in refused


def test_a_name_that_cannot_be_marked_stays_with_its_frame(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(storage_file.System):
        def open_new(self, path: str, mode: int = 0o666) -> int:
            if path.endswith(".b2taking"):
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().open_new(path, mode)

    make(path, OLD, contiguous=False)
    with system(monkeypatch, Full()), pytest.raises(StorageError, match=r"No space left on device.*x\.b2frame"):
        make(path, NEW, contiguous=False)
    assert content(path) == OLD
    assert path.exists()


def test_two_at_a_time_are_refused_and_the_first_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Between(storage_file.System):
        """Lets another writer try between the steps."""

        tries = 0

        def exchange(self, one: str, other: str) -> None:
            self.tries += 1
            if self.tries == 1:
                assert refused_elsewhere(path)
            super().exchange(one, other)

    make(path, OLD, contiguous=False)
    between = Between()
    with system(monkeypatch, between):
        make(path, NEW, contiguous=False)
    assert between.tries == 1
    assert content(path) == NEW
    assert beside(path) == [path.name]


def test_while_the_writer_lives_nobody_else_gives_the_name_back(path: Path) -> None:
    make(path, OLD, contiguous=False)
    old = path.rename(path.with_name(f".{path.name}.0123456789ab.old"))
    mark = path.with_name(f".{path.name}.b2taking")
    mark.write_text("0123456789ab")
    with mark.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert find_name(str(path), mend=True) == str(old)
        assert not path.exists()
    assert find_name(str(path)) == str(old)
    assert not path.exists()
    assert find_name(str(path), mend=True) == str(path)
    assert beside(path) == [path.name]


@pytest.mark.parametrize("text", ["", "0123456789", "../../../etc", "0123456789AB", "\x80\x81\x82\x83\x84\x85"])
def test_a_mark_that_names_nothing_finds_nothing(path: Path, text: str) -> None:
    path.with_name(f".{path.name}.b2taking").write_text(text, "latin-1")
    assert find_name(str(path)) is None
    make(path, OLD, contiguous=False)
    make(path, NEW, contiguous=False)
    assert content(path) == NEW
    assert beside(path) == [path.name]


def test_only_the_frame_that_lost_the_name_last_is_found(path: Path) -> None:
    """An older one may be there, of a writer that was killed before it had removed it."""
    for digits in ("000000000000", "0123456789ab", "ffffffffffff"):
        make(path, digits.encode(), contiguous=False)
        path.rename(path.with_name(f".{path.name}.{digits}.old"))
    assert find_name(str(path)) is None
    path.with_name(f".{path.name}.b2taking").write_text("0123456789ab")
    assert content(path) == b"0123456789ab"


def test_what_a_snapshot_needed_goes_with_a_later_replacement(path: Path) -> None:
    make(path, OLD, contiguous=False)
    snapshot = superchunk.open(path, snapshot=True)
    for _ in range(3):
        make(path, NEW, contiguous=False)
        assert [name.rpartition(".")[2] for name in beside(path)].count("kept") == 1
    assert snapshot[:] == OLD
    snapshot.close()
    make(path, NEW, contiguous=False)
    assert beside(path) == [path.name]


def test_what_was_removed_does_not_come_back(path: Path) -> None:
    """Although the frame before it is still there, for its writer was killed."""
    make(path, OLD, contiguous=False)

    class Dying(storage_file.System):
        def sync_folder(self, folder: str) -> None:
            if any(name.endswith(".old") for name in beside(path)):
                os._exit(KILLED)
            super().sync_folder(folder)

    assert killed(Dying(), path, contiguous=False)
    assert path.exists()
    assert len([name for name in beside(path) if name.endswith(".old")]) == 1
    superchunk.remove_urlpath(path)
    with pytest.raises(FileNotFoundError):
        superchunk.open(path)


@pytest.mark.parametrize("contiguous", [True, False])
def test_the_directory_around_a_frame_is_not_listed(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, contiguous: bool
) -> None:
    """It may hold thousands of files; neither when a frame is made nor when it is opened, changed, or removed."""
    listdir, scandir = os.listdir, os.scandir

    def check(folder: object) -> None:
        if os.path.realpath(str(folder)) == str(path.parent):
            pytest.fail("the directory was listed")

    def listed(folder: str = ".") -> list[str]:
        check(folder)
        return listdir(folder)

    def scanned(folder: str = ".") -> object:
        check(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "listdir", listed)
    monkeypatch.setattr(os, "scandir", scanned)
    array = np.arange(1000)
    for _ in range(3):
        made = superchunk.asarray(array, urlpath=str(path), mode="w", contiguous=contiguous)
        assert made.shape == (1000,)
        del made
    with superchunk.open(path, mode="a") as opened:
        opened[:3] = 5
    assert superchunk.open(path)[2] == 5
    other = path.with_name("y")
    with SChunk(data=OLD, urlpath=other, contiguous=contiguous) as s:
        s.append_data(NEW)
        s.flush()
    for each in (path, other, path.with_name("none")):
        superchunk.remove_urlpath(each)
    with pytest.raises(FileNotFoundError):
        superchunk.open(path)
    with SChunk(data=OLD, urlpath=other, contiguous=contiguous, mode="a"):
        pass
    assert content(other) == OLD


@KINDS
@pytest.mark.parametrize("letter", ["x", "é", "字"], ids=["1 byte", "2 bytes", "3 bytes"])
def test_a_name_may_be_as_long_as_the_system_takes(tmp_path: Path, letter: str, *, old: bool, contiguous: bool) -> None:
    longest = os.pathconf(tmp_path, "PC_NAME_MAX")
    path = tmp_path / (letter * (longest // len(letter.encode())))
    make(path, OLD, contiguous=old)
    make(path, NEW, contiguous=contiguous)
    assert content(path) == NEW
    assert beside(path) == [path.name]


@KINDS
def test_long_names_with_one_beginning_do_not_answer_for_each_other(
    tmp_path: Path, *, old: bool, contiguous: bool
) -> None:
    path, other = (tmp_path / (210 * "x" + ending) for ending in ("1", "2"))
    moved, ended = 0, True
    for after in range(200):
        make(path, OLD, contiguous=old)
        ended = killed(Ending(after, exchanging=False), path, contiguous=contiguous)
        moved += not path.exists()
        assert find_name(str(other)) is None
        make(other, OLD + NEW, contiguous=False)
        superchunk.open(other, mode="a").compact()
        assert content(other) == OLD + NEW
        superchunk.remove_urlpath(other)
        assert content(path) in (OLD, NEW)
        superchunk.remove_urlpath(path)
        if not ended:
            break
    assert not ended
    assert moved
