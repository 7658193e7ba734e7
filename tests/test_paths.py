"""What lies at a path: what is not ours is never touched, and every error says what is there."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import stat
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from crashlab.disk import ROOT, Create, Exchange, Tree
from crashlab.losses import PowerLoss, killed
from crashlab.recorder import Recorder, recording
from legacy_frames import Legacy, content, old_chunk

import superchunk
from superchunk import SChunk, exceptions
from superchunk._store import os_file as storage_file
from superchunk._store.frame_names import take_name
from superchunk._store.path_target import ReplaceRule
from superchunk.exceptions import (
    ArgumentError,
    ExistingFileError,
    FormatError,
    IsFolderError,
    MissingFileError,
    NewerFormatError,
    NoPermissionError,
    NotFolderError,
    StorageError,
    SuperchunkError,
)
from superchunk.params import absolute_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DATA = b"abcd" * 500
TEXT_WITH_MAGIC = b"\x9e\xa8b2frame\0 is how a frame begins, says this note. " * 20
MAKERS: dict[str, Callable[[Any, str], object]] = {
    "SChunk": lambda path, mode: SChunk(urlpath=path, mode=mode).close(),
    "data": lambda path, mode: SChunk(data=DATA, urlpath=path, mode=mode).close(),
    "sparse": lambda path, mode: SChunk(data=DATA, urlpath=path, mode=mode, contiguous=False).close(),
    "zeros": lambda path, mode: superchunk.zeros(9, urlpath=path, mode=mode),
    "asarray": lambda path, mode: superchunk.asarray(np.arange(9), urlpath=path, mode=mode),
    "copy": lambda path, mode: SChunk(data=DATA).copy(urlpath=path, mode=mode).close(),
    "save_array": lambda path, mode: superchunk.save_array(np.arange(9), path, mode=mode),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory with a file in it, inside another one."""
    folder = tmp_path / "outer" / "work"
    folder.mkdir(parents=True)
    (folder / "thesis.txt").write_text("precious")
    monkeypatch.chdir(folder)
    return folder


def everything(root: Path) -> list[tuple[object, ...]]:
    """Return names, kinds, inodes and bytes of all that is below `root`."""
    return sorted(
        (str(place), os.lstat(place)[:2], place.read_bytes() if place.is_file() else b"") for place in root.rglob("*")
    )


def frame_at(path: Path, data: bytes = DATA, **how: Any) -> Path:
    SChunk(data=data, urlpath=path, mode="w", chunksize=400, **how).close()
    return path


# Paths that are none.


@makers
@pytest.mark.parametrize("mode", ["a", "w"])
@pytest.mark.parametrize(
    ("urlpath", "why"),
    [
        ("", "an empty one"),
        (b"", "an empty one"),
        ("file://", "an empty one"),
        ("file://data.b2nd", "names the host 'data.b2nd'"),
        ("file://host/data.b2nd", "names the host 'host'"),
        ("file:///data.b2nd?version=3", "a query"),
        ("file:///data.b2nd#part", "a fragment"),
        ("file:///a%00b", "NUL"),
        ("a\0b.b2nd", "NUL"),
        ("a\ud800.b2nd", "encode"),
    ],
)
def test_what_is_no_path_is_refused_and_nothing_moves(
    work: Path, make: Callable[[Any, str], object], mode: str, urlpath: str | bytes, why: str
) -> None:
    for empty in (False, True):
        if empty:
            (work / "thesis.txt").unlink()
        before = everything(work.parent)
        with pytest.raises(ArgumentError, match=why) as caught:
            make(urlpath, mode)
        assert isinstance(caught.value, ValueError)
        assert everything(work.parent) == before


@pytest.mark.parametrize("urlpath", ["", "a\0b", "a\ud800", "file://host/x"])
def test_every_call_refuses_what_is_no_path(work: Path, urlpath: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: superchunk.open(urlpath),
        lambda: superchunk.load(urlpath),
        lambda: superchunk.load_array(urlpath),
        lambda: superchunk.verify(urlpath),
        lambda: superchunk.repair(urlpath),
        lambda: superchunk.repair(frame_at(work / "x"), urlpath),
        lambda: superchunk.remove_urlpath(urlpath),
        lambda: superchunk.stage_chunk(urlpath, 0, b"x"),
        lambda: superchunk.identify(urlpath),
        lambda: superchunk.Storage(urlpath=urlpath),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match="urlpath: "):
            call()
    assert sorted(each.name for each in work.iterdir()) == ["thesis.txt", "x"]


def test_a_url_of_this_machine_is_a_path(tmp_path: Path) -> None:
    frame_at(tmp_path / "a b?")
    for url in (f"file://{tmp_path}/a%20b%3F", f"file://localhost{tmp_path}/a%20b%3F"):
        assert superchunk.open(url)[:] == DATA


# What is replaced, and what is not.


def put_device(place: Path) -> None:
    try:
        os.mknod(place, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes device nodes")


@makers
@pytest.mark.parametrize("linked", [False, True], ids=["itself", "by a link"])
@pytest.mark.parametrize(
    ("build", "what"),
    [
        (os.mkfifo, "a FIFO"),
        (put_device, "a character device"),
        (lambda place: place.write_bytes(TEXT_WITH_MAGIC), "a file of another format"),
        (lambda place: place.write_text("dear diary"), "a text file"),
        (lambda place: place.mkdir(), "it has no chunks.b2frame"),
        (lambda place: (place.mkdir(), (place / "mine").touch()), "it holds 'mine'"),
    ],
    ids=["FIFO", "device", "magic", "text", "empty folder", "folder"],
)
def test_only_frames_and_empty_files_are_replaced(
    tmp_path: Path, make: Callable[[Any, str], object], build: Callable[[Path], object], what: str, *, linked: bool
) -> None:
    place = tmp_path / "thing"
    build(tmp_path / "target" if linked else place)
    if linked:
        place.symlink_to("target")
    before = everything(tmp_path)
    with pytest.raises(ArgumentError, match=what):
        make(place, "w")
    with pytest.raises(SuperchunkError):
        make(place, "a")
    with pytest.raises(ArgumentError):
        superchunk.remove_urlpath(place)
    assert everything(tmp_path) == before


@makers
def test_frames_of_every_kind_and_empty_files_are_replaced(tmp_path: Path, make: Callable[[Any, str], object]) -> None:
    place = tmp_path / "thing"
    for build in (
        place.touch,
        lambda: frame_at(place),
        lambda: frame_at(place, contiguous=False),
        lambda: place.write_bytes(Legacy(chunks=[old_chunk(content(1))]).to_bytes()),
        lambda: place.write_bytes(SChunk(data=DATA).to_cframe()[:-9]),
    ):
        build()
        make(place, "w")
        assert superchunk.verify(place).status == "sound"
        assert os.listdir(tmp_path) == ["thing"]  # noqa: PTH208
        superchunk.remove_urlpath(place)
        assert os.listdir(tmp_path) == []  # noqa: PTH208


@makers
@pytest.mark.parametrize("mode", ["a", "w"])
def test_links_that_lead_nowhere_are_errors_of_the_family(
    tmp_path: Path, make: Callable[[Any, str], object], mode: str
) -> None:
    (tmp_path / "dangling").symlink_to("gone")
    (tmp_path / "loop").symlink_to("loop")
    before = everything(tmp_path)
    with pytest.raises(MissingFileError):
        make(tmp_path / "dangling", mode)
    with pytest.raises(StorageError) as caught:
        make(tmp_path / "loop", mode)
    assert caught.value.errno == errno.ELOOP
    for name in ("dangling", "loop"):
        for call in (superchunk.open, superchunk.verify, superchunk.repair):
            with pytest.raises(StorageError):
                call(tmp_path / name)
    assert everything(tmp_path) == before


def test_a_link_stays_and_the_frame_it_leads_to_is_replaced(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target")
    frame_at(tmp_path / "target")
    frame_at(link, b"new")
    assert link.is_symlink()
    assert superchunk.open(tmp_path / "target")[:] == b"new"
    with pytest.raises(ArgumentError, match="it is a link"):
        superchunk.remove_urlpath(link)
    assert superchunk.open(link)[:] == b"new"


@makers
@pytest.mark.parametrize("name", ["new", "chunks.b2frame", "00000000.chunk"])
def test_nothing_is_made_inside_a_sparse_frame(tmp_path: Path, make: Callable[[Any, str], object], name: str) -> None:
    sparse = frame_at(tmp_path / "sparse", contiguous=False)
    before = everything(tmp_path)
    with pytest.raises(ArgumentError, match="is the directory of a sparse frame"):
        make(sparse / name, "w")
    assert everything(tmp_path) == before
    assert superchunk.open(sparse)[:] == DATA


def test_a_file_with_another_frame_behind_the_first_is_not_replaced(tmp_path: Path) -> None:
    place = tmp_path / "two"
    raw = SChunk(data=DATA).to_cframe()
    place.write_bytes(raw + raw)
    for call in (lambda: frame_at(place), lambda: superchunk.remove_urlpath(place)):
        with pytest.raises(ArgumentError, match=f"another frame follows at byte {len(raw)}"):
            call()
    assert place.read_bytes() == raw + raw


def test_a_directory_like_a_chunk_is_not_removed_with_a_sparse_frame(tmp_path: Path) -> None:
    sparse = frame_at(tmp_path / "sparse", contiguous=False)
    (sparse / "0000ABCD.chunk").mkdir()
    (sparse / "0000ABCD.chunk" / "thesis").write_text("mine")
    before = everything(tmp_path)
    for call in (lambda: frame_at(sparse), lambda: superchunk.remove_urlpath(sparse)):
        with pytest.raises(ArgumentError, match=r"it holds '0000ABCD\.chunk'"):
            call()
    assert everything(tmp_path) == before


def test_what_only_has_the_name_of_a_lock_file_stays_when_the_frame_goes(tmp_path: Path) -> None:
    place = frame_at(tmp_path / "x")
    (tmp_path / "x.b2lock").write_text("a thesis on locks, longer than sixteen bytes")
    superchunk.remove_urlpath(place)
    assert os.listdir(tmp_path) == ["x.b2lock"]  # noqa: PTH208


def test_repair_in_place_replaces_only_what_begins_like_a_frame(tmp_path: Path) -> None:
    place = tmp_path / "archive"
    place.write_bytes(b"a header of another format".ljust(512) + SChunk(data=DATA, chunksize=400).to_cframe())
    before = place.read_bytes()
    with pytest.raises(ArgumentError, match="does not begin like a frame"):
        superchunk.repair(place, in_place=True)
    assert place.read_bytes() == before
    sparse = frame_at(tmp_path / "sparse", contiguous=False)
    (sparse / "00000001.chunk").unlink()
    (sparse / "notes").write_text("mine")
    before_all = everything(sparse)
    with pytest.raises(ArgumentError, match="it holds 'notes'"):
        superchunk.repair(sparse, in_place=True)
    assert everything(sparse) == before_all
    alike = tmp_path / "alike"
    alike.mkdir()
    frame_at(alike / "chunks.b2frame.x").rename(alike / "chunks.b2frame")  # a frame of one file, and no index file
    before_all = everything(alike)
    with pytest.raises(ArgumentError, match=r"its chunks\.b2frame is a frame of one file"):
        superchunk.repair(alike, in_place=True)
    assert everything(alike) == before_all


# What appears meanwhile.


@pytest.mark.parametrize("mode", ["a", "w"])
@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize(
    "build",
    [
        lambda place: place.write_text("mine"),
        lambda place: place.mkdir(),
        lambda place: (place.mkdir(), (place / "notes.txt").write_text("mine")),
        os.mkfifo,
    ],
    ids=["text", "empty folder", "folder", "FIFO"],
)
def test_what_appears_while_an_array_is_made_keeps_its_name(
    tmp_path: Path, build: Callable[[Path], object], mode: str, *, contiguous: bool
) -> None:
    place = tmp_path / "out.b2nd"
    before = []

    def pieces() -> Iterator[np.ndarray[Any, Any]]:
        yield np.arange(5)
        build(place)
        before.extend(everything(tmp_path / "."))
        yield np.arange(5)

    with pytest.raises((ArgumentError, StorageError)):
        superchunk.from_pieces(pieces(), 10, dtype="i8", urlpath=place, mode=mode, contiguous=contiguous)
    hidden = [one for one in before if ".new" not in str(one[0])]
    assert everything(tmp_path) == hidden


@pytest.mark.parametrize("new", ["file", "folder"])
@pytest.mark.parametrize("old", ["nothing", "file", "folder"])
@pytest.mark.parametrize("exchanging", [True, False])
def test_what_appears_in_the_moment_of_the_rename_gets_its_name_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, *, exchanging: bool
) -> None:
    """Another program replaces what was checked by a file of its own, and moves the frame elsewhere."""
    if not exchanging and old == "file" == new:
        pytest.skip("one step, checked just before it")
    place, moved = tmp_path / "x", tmp_path / "moved"

    class Intruding(storage_file.System):
        done = False

        def _intrude(self) -> None:
            if not self.done:
                self.done = True
                if place.exists():
                    place.rename(moved)
                place.write_text("mine")

        def rename_new(self, one: str, other: str) -> None:
            if str(place) in (one, other):
                self._intrude()
            super().rename_new(one, other)

        def exchange(self, one: str, other: str) -> None:
            if not exchanging:
                raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
            self._intrude()
            super().exchange(one, other)

    there = old != "nothing"
    if there:
        frame_at(place, contiguous=old == "file")
    with monkeypatch.context() as patch:
        patch.setattr(storage_file, "system", Intruding())
        with pytest.raises((ArgumentError, StorageError)):
            frame_at(place, b"new", contiguous=new == "file")
    assert place.read_text() == "mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["moved"] * there + ["x"]
    assert not there or superchunk.open(moved)[:] == DATA


def test_compaction_gives_back_the_name_that_another_file_took_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = frame_at(tmp_path / "x")

    class Intruding(storage_file.System):
        done = False

        def exchange(self, one: str, other: str) -> None:
            if not self.done:
                self.done = True
                place.rename(tmp_path / "moved")
                place.write_text("mine")
            super().exchange(one, other)

    with superchunk.open(place, mode="a") as s:
        s.delete_chunk(0)
        with monkeypatch.context() as patch:
            patch.setattr(storage_file, "system", Intruding())
            with pytest.raises(StorageError, match="leads to another file"):
                s.compact()
    assert place.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["moved", "x"]  # noqa: PTH208


def test_a_constructor_that_cannot_take_its_name_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(storage_file.System):
        def rename_new(self, old: str, new: str) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO), old, None, new)

    with monkeypatch.context() as patch:
        patch.setattr(storage_file, "system", Refusing())
        for contiguous in (True, False):
            with pytest.raises(StorageError) as caught:
                frame_at(tmp_path / "x", contiguous=contiguous)
            assert os.listdir(tmp_path) == []  # noqa: PTH208 - while the error, and all it knows, is alive
            assert caught.value.errno == errno.EIO


@pytest.mark.parametrize("contiguous", [True, False])
def test_a_name_that_the_system_does_not_take_leaves_nothing(tmp_path: Path, *, contiguous: bool) -> None:
    with pytest.raises(StorageError) as caught:
        frame_at(tmp_path / ("x" * 256), contiguous=contiguous)
    assert caught.value.errno == errno.ENAMETOOLONG
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - while the error, and all it knows, is alive


def test_a_system_without_these_calls_refuses_what_is_there_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = storage_file.System()
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("1")
    other.write_text("2")

    class Without:
        def rename_new(self, *_: str) -> None:
            raise OSError(errno.ENOTSUP, "no such call")

    with monkeypatch.context() as patch:
        patch.setattr(storage_file, "_engine", Without())
        with pytest.raises(FileExistsError):
            old.rename_new(str(one), str(other))
        old.rename_new(str(one), str(tmp_path / "third"))
        (tmp_path / "folder").mkdir()
        with pytest.raises(FileExistsError):
            old.rename_new(str(tmp_path / "folder"), str(other))
        old.rename_new(str(tmp_path / "folder"), str(tmp_path / "fourth"))
    assert sorted(os.listdir(tmp_path)) == ["fourth", "other", "third"]  # noqa: PTH208


def test_the_crash_laboratory_knows_exchanges(tmp_path: Path) -> None:
    tree = Tree()
    for number, name in ((1, "a"), (2, "b")):
        tree.apply(Create(number, ROOT, name))
    tree.apply(Exchange(ROOT, "a", ROOT, "b"))
    assert tree.folders[ROOT] == {"a": 2, "b": 1}
    tree.apply(Exchange(ROOT, "a", ROOT, "c"))  # of what a loss took away
    assert tree.folders[ROOT] == {"a": 2, "b": 1}

    recorder = Recorder(str(tmp_path))
    with recording(recorder):
        for contiguous in (True, False):
            frame_at(tmp_path / "x", contiguous=contiguous)
    assert any(isinstance(op, Exchange) for op in recorder.ops)
    names = [{path.split("/")[0] for path, _ in image.names} for _, _, image in killed(recorder.ops)]
    first = next(number for number, found in enumerate(names) if "x" in found)
    assert all("x" in found for found in names[first:])  # never is there none
    power = PowerLoss()
    for op in recorder.ops:
        power.step(op)


def test_take_name_needs_a_rule_that_allows_what_is_there(tmp_path: Path) -> None:
    name, new = tmp_path / "x", tmp_path / ".x.0123456789ab.new"
    name.write_text("mine")
    new.write_bytes(SChunk().to_cframe())
    for rule, error in (
        (ReplaceRule(path=str(name)), ExistingFileError),
        (ReplaceRule(path=str(name), frames=True), ArgumentError),
        (ReplaceRule(path=str(name), identity=(0, 0)), StorageError),
    ):
        with pytest.raises(error):
            take_name(str(new), str(name), rule)
    status = name.stat()
    assert not take_name(str(new), str(name), ReplaceRule(path=str(name), identity=(status.st_dev, status.st_ino)))
    assert name.read_bytes() == SChunk().to_cframe()


# Where a relative path leads.


@pytest.mark.parametrize("contiguous", [True, False])
def test_a_handle_stays_with_its_file_when_the_working_directory_changes(
    work: Path, monkeypatch: pytest.MonkeyPatch, *, contiguous: bool
) -> None:
    s = SChunk(data=DATA, chunksize=400, urlpath="x.b2frame", contiguous=contiguous)
    a = superchunk.asarray(np.arange(100), urlpath="a.b2nd", contiguous=contiguous)
    opened = superchunk.open("x.b2frame")
    (work / "sub").mkdir()
    frame_at(work / "sub" / "x.b2frame", b"other" * 900, contiguous=contiguous)
    superchunk.asarray(np.zeros(7), urlpath=work / "sub" / "a.b2nd", contiguous=contiguous)
    others = everything(work / "sub")
    monkeypatch.chdir(work / "sub")
    for handle in (s, opened):
        assert handle.verify().nbytes == len(DATA)
        assert pickle.loads(pickle.dumps(handle))[:] == DATA  # noqa: S301
        assert handle.urlpath == "x.b2frame"
    assert pickle.loads(pickle.dumps(a)).shape == (100,)  # noqa: S301
    s.append_data(b"wxyz" * 100)
    s.vlmeta["a"] = 1
    s.delete_chunk(0)
    s.flush()
    s.compact()
    a.resize((200,))
    a.schunk.close()
    s.close()
    assert everything(work / "sub") == others
    assert superchunk.open(work / "x.b2frame").vlmeta["a"] == 1
    assert superchunk.open(work / "a.b2nd").shape == (200,)
    with pytest.raises(StorageError):
        superchunk.open("gone/x.b2frame")


def test_an_emptied_schunk_stays_where_it_is_when_the_working_directory_changes(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame_at(work / "x")
    s = superchunk.open("x", mode="w")
    (work / "sub").mkdir()
    monkeypatch.chdir(work / "sub")
    s.append_data(b"wxyz" * 100)
    s.close()
    assert os.listdir(work / "sub") == []  # noqa: PTH208
    assert superchunk.open(work / "x")[:] == b"wxyz" * 100


def test_a_path_through_a_link_and_back_leads_where_the_system_goes(work: Path) -> None:
    (work.parent / "far" / "inner").mkdir(parents=True)
    (work / "link").symlink_to(work.parent / "far" / "inner")
    frame_at(work / "link" / ".." / "x")
    assert (work.parent / "far" / "x").is_file()
    assert not (work / "x").exists()
    assert superchunk.open("link/../x")[:] == DATA
    assert absolute_path("link/../x") == str(work.parent / "far" / "x")
    assert absolute_path("./link//y/.") == str(work / "link" / "y")


def test_a_working_directory_that_is_gone_is_an_error_of_the_family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    for call in (lambda: superchunk.open("x"), lambda: SChunk(urlpath="x"), lambda: superchunk.verify("x")):
        with pytest.raises(MissingFileError, match="the working directory is gone"):
            call()


# Errors.


@pytest.mark.parametrize(
    ("number", "ours", "pythons"),
    [
        (errno.ENOENT, MissingFileError, FileNotFoundError),
        (errno.EEXIST, ExistingFileError, FileExistsError),
        (errno.EACCES, NoPermissionError, PermissionError),
        (errno.EPERM, NoPermissionError, PermissionError),
        (errno.EISDIR, IsFolderError, IsADirectoryError),
        (errno.ENOTDIR, NotFolderError, NotADirectoryError),
        (errno.EIO, StorageError, OSError),
    ],
)
def test_an_error_of_the_system_is_also_pythons_own(
    number: int, ours: type[StorageError], pythons: type[OSError]
) -> None:
    error = StorageError(number, os.strerror(number), "x")
    for one in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert type(one) is ours
        assert isinstance(one, (pythons, SuperchunkError))
        assert isinstance(one, pythons)
        assert (one.errno, one.strerror, one.filename) == (number, os.strerror(number), "x")
    assert type(StorageError("a message alone")) is StorageError
    assert ours.__name__ in exceptions.__all__


def test_errors_of_the_system_can_be_caught_as_such(tmp_path: Path) -> None:
    place = frame_at(tmp_path / "x")
    (tmp_path / "text").write_text("mine")
    missing = tmp_path / "no" / "such" / "x"
    for call in (
        lambda: superchunk.open(missing),
        lambda: superchunk.verify(missing),
        lambda: superchunk.repair(missing),
        lambda: SChunk(data=DATA, urlpath=missing),
        lambda: SChunk(data=DATA, urlpath=missing, contiguous=False),
        lambda: superchunk.zeros(3, urlpath=missing),
        lambda: superchunk.save_array(np.arange(3), missing),
        lambda: SChunk(data=DATA).copy(urlpath=missing),
    ):
        with pytest.raises(FileNotFoundError, match=f"there is no directory {tmp_path / 'no'}") as caught:
            call()
        assert isinstance(caught.value, StorageError)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(missing))
    with pytest.raises(FileNotFoundError, match="No such file"):
        superchunk.open(tmp_path / "none")
    for make in (superchunk.zeros, superchunk.ones):
        with pytest.raises(FileExistsError, match="exists; use mode='w'"):
            make(3, urlpath=place)
    for again in (
        lambda: superchunk.repair(place, place),
        lambda: SChunk(data=DATA, urlpath=place),
        lambda: SChunk(data=DATA).copy(urlpath=place),
        lambda: superchunk.save_array(np.arange(3), place),
    ):
        with pytest.raises(FileExistsError, match="exists"):
            again()
    with pytest.raises(NotADirectoryError):
        SChunk(data=DATA, urlpath=tmp_path / "text" / "x")
    with pytest.raises(IsADirectoryError):
        storage_file.FileBytes.open(str(tmp_path))


def kinds_of_files(folder: Path) -> dict[str, tuple[str, str]]:
    """Make files of others, and return what each is and what reads it."""
    np.save(folder / "x.npy", np.arange(9))
    np.savez(folder / "x.npz", a=np.arange(9))
    (folder / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    (folder / "x.zarr").mkdir()
    (folder / "x.zarr" / "zarr.json").write_text("{}")
    (folder / "x.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    (folder / "x.txt").write_text("naïve text\n")
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    return {
        "x.npy": ("npy", "a .npy file, which superchunk convert makes a frame of and numpy.load reads"),
        "x.npz": ("npz", "a .npz file, which numpy.load reads"),
        "x.h5": ("hdf5", "an HDF5 file, which superchunk convert makes a frame of and h5py reads"),
        "x.zarr": ("zarr", "a Zarr array or group, which superchunk convert makes a frame of and zarr.open reads"),
        "x.zip": ("zip", "a ZIP archive, which zipfile reads"),
        "x.txt": ("text", "a text file, which the built-in open reads"),
        "folder": ("folder", "a directory without a frame's index file"),
        "empty": ("empty", "empty"),
    }


def test_opening_something_else_says_what_it_is_and_what_reads_it(tmp_path: Path) -> None:
    for name, (kind, said) in kinds_of_files(tmp_path).items():
        for call in (superchunk.open, superchunk.load, superchunk.load_array):
            with pytest.raises(FormatError) as caught:
                call(tmp_path / name)
            assert str(tmp_path / name) in str(caught.value)
            assert f"; it is {said}" in str(caught.value)
        found = superchunk.identify(tmp_path / name)
        assert (found.name, found.is_frame) == (kind, False)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(StorageError, match="found a FIFO"):
        superchunk.open(tmp_path / "fifo")


def test_identify_knows_frames_and_nothing(tmp_path: Path) -> None:
    frame_at(tmp_path / "file")
    frame_at(tmp_path / "sparse", contiguous=False)
    (tmp_path / "old").write_bytes(Legacy(chunks=[old_chunk(content(1))]).to_bytes())
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("gone")
    (tmp_path / "noise").write_bytes(b"\xff\x00\x81" * 30)
    names = {"file": "frame", "sparse": "sparse", "old": "old frame", "link": "frame", "dangling": "link"}
    for name, kind in {**names, "noise": "file", "none": "nothing", "none/none": "nothing"}.items():
        found = superchunk.identify(tmp_path / name)
        assert found.name == kind
        assert found.is_frame == (kind in {"frame", "sparse", "old frame"})
    with pytest.raises(TypeError, match="got None"):
        superchunk.identify(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "garbage",
    [
        b"this is text, not a chunk" * 3,
        b"\n\nthis is text as well" * 3,
        b"\x89HDF\r\n\x1a\n" * 9,
        b"\xff" * 64,
        b"\x93NUMPY\1\0v\0" * 9,
    ],
)
def test_garbage_is_not_called_a_newer_format(garbage: bytes) -> None:
    for call in (superchunk.decompress2, superchunk.decompress, superchunk.get_cbuffer_sizes):
        with pytest.raises(FormatError, match=r"chunk version, its first byte, at byte 0: expected 1 to 6") as caught:
            call(garbage)
        assert not isinstance(caught.value, NewerFormatError)
    chunk = bytearray(superchunk.compress2(DATA))
    chunk[0] = 7
    with pytest.raises(NewerFormatError, match="chunk version at byte 0: expected 1 to 6, found 7"):
        superchunk.decompress2(bytes(chunk))
