"""One writing process at a time, any number of readers; handles, forks, snapshots."""

from __future__ import annotations

import errno
import multiprocessing
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from other_process import Other, in_child

import superchunk
from superchunk import SChunk
from superchunk._store.os_file import FileBytes
from superchunk.exceptions import LockedError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK = 400
CONTIGUOUS = [True, False]
# Newer Pythons warn of forking beside threads; the engine's own know what to do in a child.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "data.b2frame")


@pytest.fixture
def other(path: str) -> Iterator[Other]:
    """Another process, which knows the path and has nothing open."""
    setup = (
        "import superchunk\n"
        f"path, piece = {path!r}, lambda n: bytes([n]) * {CHUNK}\n"
        "def refused(call):\n"
        "    try:\n        call()\n"
        "    except superchunk.exceptions.LockedError as error:\n"
        "        return [error.errno, error.filename, str(error)]\n"
    )
    with Other(setup) as process:
        yield process


def piece(number: int) -> bytes:
    return bytes([number]) * CHUNK


def pieces(*numbers: int) -> bytes:
    return b"".join(map(piece, numbers))


def new(path: str, *numbers: int, **how: Any) -> SChunk:
    s = SChunk(CHUNK, urlpath=path, mode="w", cparams={"nthreads": 1}, **how)
    for number in numbers:
        s.append_data(piece(number))
    s.flush()
    return s


# One writer.


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
@pytest.mark.parametrize(
    "way",
    [
        "superchunk.open(path, mode='a')",
        "superchunk.SChunk(urlpath=path, mode='a', contiguous={contiguous})",
        "superchunk.SChunk(urlpath=path, mode='w', contiguous={contiguous})",
        "superchunk.open(path, mode='w')",
    ],
)
def test_a_second_writing_process_is_refused_at_once(path: str, other: Other, way: str, *, contiguous: bool) -> None:
    s = new(path, 1, contiguous=contiguous)
    before = _bytes_of(path)
    number, name, text = other(f"refused(lambda: {way.format(contiguous=contiguous)})")
    assert (number, name) == (errno.EAGAIN, path)
    assert text.startswith(f"{path}: another process has it open for writing")
    assert _bytes_of(path) == before
    # Reading is free, and the writer undisturbed.
    assert other("superchunk.open(path)[:].hex()") == piece(1).hex()
    s.append_data(piece(2))
    s.close()
    assert other(f"refused(lambda: {way.format(contiguous=contiguous)}.close())") is None


def _bytes_of(path: str) -> dict[str, bytes]:
    place = Path(path)
    files = sorted(place.iterdir()) if place.is_dir() else [place]
    return {file.name: file.read_bytes() for file in files}


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
def test_the_lock_of_a_killed_writer_is_gone_and_its_commits_are_there(
    path: str, other: Other, *, contiguous: bool
) -> None:
    new(path, 1, contiguous=contiguous).close()
    other("s = superchunk.open(path, mode='a'); s.append_data(piece(2)); s.flush(); s.append_data(piece(0))")
    with pytest.raises(LockedError, match="another process has it open for writing"):
        superchunk.open(path, mode="a")
    other.kill()
    with superchunk.open(path, mode="a") as s:
        assert s[:] == pieces(1, 2)
        s.append_data(piece(3))
    with superchunk.open(path) as s:
        assert s[:] == pieces(1, 2, 3)


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
def test_the_lock_goes_with_the_last_writing_handle(path: str, other: Other, *, contiguous: bool) -> None:
    first = new(path, 1, contiguous=contiguous)
    second = superchunk.open(path, mode="a")
    reader = superchunk.open(path)
    try_it = "refused(lambda: superchunk.open(path, mode='a').close())"
    assert other(try_it)
    first.close()
    assert other(try_it)
    second.close()
    assert other(try_it) is None
    other("s = superchunk.open(path, mode='a'); s.append_data(piece(2)); s.flush()")
    assert reader[:] == pieces(1, 2)
    with pytest.raises(LockedError):
        superchunk.open(path, mode="a")
    other("s.close()")
    superchunk.open(path, mode="a").close()


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
def test_compaction_and_emptying_do_not_let_another_writer_in(path: str, other: Other, *, contiguous: bool) -> None:
    """Both put a new file in the place of the one that is locked."""
    s = new(path, 1, 2, contiguous=contiguous)
    try_it = "refused(lambda: superchunk.open(path, mode='a'))"
    s.compact()
    assert other(try_it)
    s.delete_chunk(0)
    s.delete_chunk(0)
    assert other(try_it)
    s.append_data(piece(3))
    s.close()
    assert other("refused(lambda: superchunk.open(path, mode='a').close())") is None
    with superchunk.open(path) as again:
        assert again[:] == piece(3)


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
def test_handles_of_one_process_share_the_frame(path: str, *, contiguous: bool) -> None:
    first = new(path, 1, contiguous=contiguous)
    second, reader = superchunk.open(path, mode="a"), superchunk.open(path)
    first.append_data(piece(0))  # waits, until another handle looks
    assert second[:] == reader[:] == pieces(1, 0)
    second.append_data(piece(3))
    assert first[:] == second[:] == reader[:] == pieces(1, 0, 3)
    first.close()
    assert reader[:] == pieces(1, 0, 3)
    second.vlmeta["a"] = 1
    assert reader.vlmeta["a"] == 1
    second.close()
    assert reader[:] == pieces(1, 0, 3)


# Forks and workers.


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
def test_a_forked_child_reads_and_does_not_write_while_its_parent_does(path: str, *, contiguous: bool) -> None:
    s = new(path, 1, contiguous=contiguous)
    s.append_data(piece(0))  # waits, and is committed before the fork

    def child() -> list[object]:
        seen: list[object] = [bytes(s[:] or b"").hex()]
        for change in (lambda: s.append_data(piece(9)), lambda: s.vlmeta.__setitem__("child", 1)):
            try:
                change()
            except LockedError as error:
                seen.append(path in str(error))
            else:
                seen.append("written")
        s.close()
        return seen

    assert in_child(child) == [pieces(1, 0).hex(), True, True]
    s.append_data(piece(2))
    s.close()
    with superchunk.open(path) as again:
        assert again[:] == pieces(1, 0, 2)
        assert again.vlmeta.getall() == {}


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
def test_a_closed_frame_that_is_still_known_keeps_no_other_from_starting_anew_in_a_child(
    path: str, *, contiguous: bool
) -> None:
    closed = [new(f"{path}{n}", n, contiguous=False) for n in range(8)]
    states = [s._handle.store._frame for s in closed]  # type: ignore[attr-defined]
    for s in closed:
        s.close()
    s = new(path, 1, contiguous=contiguous)
    with s.transaction():
        s.append_data(piece(2))
        assert _start_child(lambda: str(s.nchunks))() == "1"
    assert all(state.users == 0 for state in states)
    s.close()


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
def test_what_waits_in_a_transaction_is_not_committed_by_a_child(path: str, *, contiguous: bool) -> None:
    s = new(path, 1, contiguous=contiguous)

    def child() -> str:
        found = bytes(s[:] or b"").hex()
        s.close()
        return found

    with s.transaction():
        s.append_data(piece(2))
        s.vlmeta["a"] = 1
        assert in_child(child) == piece(1).hex()
        with superchunk.open(path, snapshot=True) as there:
            assert there[:] == piece(1)
        s.append_data(piece(3))
    s.close()
    with superchunk.open(path) as again:
        assert again[:] == pieces(1, 2, 3)
        assert again.vlmeta.getall() == {"a": 1}


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
def test_a_child_writes_once_its_parent_has_closed(path: str, *, contiguous: bool) -> None:
    s = new(path, 1, contiguous=contiguous)
    inner, outer = os.pipe()

    def child() -> str:
        os.close(outer)
        os.read(inner, 1)  # until the parent has closed
        s.append_data(piece(2))
        s.flush()
        return bytes(s[:] or b"").hex()

    answer = _start_child(child)
    os.close(inner)
    s.close()
    os.close(outer)
    assert answer() == pieces(1, 2).hex()
    with superchunk.open(path) as again:
        assert again[:] == pieces(1, 2)


def _start_child(work: Callable[[], str]) -> Callable[[], str]:
    """Start `work` in a forked child; return what waits for its answer."""
    inner, outer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(outer, work().encode())
        finally:
            os._exit(0)
    os.close(outer)

    def answer() -> str:
        with os.fdopen(inner, "rb") as pipe:
            raw = pipe.read()
        os.waitpid(pid, 0)
        return raw.decode()

    return answer


def _read_part(job: tuple[str, int]) -> bytes:
    path, nchunk = job
    with superchunk.open(path) as s:
        return bytes(s.decompress_chunk(nchunk) or b"")


def _try_to_write(path: str) -> str:
    try:
        superchunk.open(path, mode="a").close()
    except LockedError as error:
        return str(error)
    return "written"


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_read_while_the_parent_writes(path: str, method: str, *, contiguous: bool) -> None:
    s = new(path, *range(8), contiguous=contiguous)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_read_part, [(path, n) for n in range(8)]) == [piece(n) for n in range(8)]
        assert path in pool.apply(_try_to_write, (path,))
        s.append_data(piece(8))
        s.flush()
        assert pool.apply(_read_part, ((path, 8),)) == piece(8)
        s.close()
        assert pool.apply(_try_to_write, (path,)) == "written"


# Snapshots, and following.

CHANGES = {
    "append": ("s.append_data(piece(7)); s.flush()", pieces(1, 2, 3, 7)),
    "update": ("s.update_data(0, piece(7), copy=False); s.flush()", pieces(7, 2, 3)),
    "delete": ("s.delete_chunk(1); s.flush()", pieces(1, 3)),
    "compaction": ("s.delete_chunk(1); s.compact()", pieces(1, 3)),
    "emptying": ("[s.delete_chunk(0) for _ in range(3)]; s.flush()", b""),
    "emptying and more": ("[s.delete_chunk(0) for _ in range(3)]; s.append_data(piece(7)); s.flush()", piece(7)),
    "replacement": (
        "s.close(); s = superchunk.SChunk(400, piece(7), urlpath=path, mode='w', contiguous={contiguous})",
        piece(7),
    ),
    "all at once": (
        "s.append_data(piece(7)); s.compact(); s.update_data(0, piece(8), copy=False); s.compact(); s.compact()",
        pieces(8, 2, 3, 7),
    ),
}


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
@pytest.mark.parametrize("what", CHANGES)
def test_a_snapshot_stays_and_other_readers_follow(path: str, other: Other, what: str, *, contiguous: bool) -> None:
    new(path, 1, 2, 3, contiguous=contiguous).close()
    code, after = CHANGES[what]
    pinned, follower = superchunk.open(path, snapshot=True), superchunk.open(path)
    assert pinned[:] == follower[:] == pieces(1, 2, 3)
    assert not pinned.refresh()
    assert not follower.refresh()
    other("s = superchunk.open(path, mode='a')")
    for line in code.format(contiguous=contiguous).split("; "):
        other(line)
        assert pinned[:] == pieces(1, 2, 3)
        assert (pinned.nchunks, pinned.nbytes) == (3, 3 * CHUNK)
    assert follower[:] == after
    assert follower.nchunks * CHUNK == len(after)
    tick = pinned.change_tick
    assert pinned.refresh()
    assert pinned.change_tick > tick
    assert not pinned.refresh()
    assert pinned[:] == after
    other("s.vlmeta['more'] = 1")
    assert follower.refresh()
    assert not follower.refresh()
    assert pinned.vlmeta.getall() == {}
    assert pinned.refresh()
    assert pinned.vlmeta.getall() == follower.vlmeta.getall() == {"more": 1}


def test_a_commit_while_the_new_file_is_looked_at_does_no_harm(
    path: str, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size of the file is from before the commit then, and its header from after it."""
    new(path, 1, 2).close()
    follower = superchunk.open(path)
    other("s = superchunk.open(path, mode='a'); s.delete_chunk(0); s.compact()")
    look, looks = FileBytes.size_and_time, []

    def interrupted(self: FileBytes) -> tuple[int, float]:
        seen = look(self)
        looks.append(seen)
        if len(looks) == 1:
            other("[s.append_data(piece(n)) for n in range(3, 8)]; s.flush()")
        return seen

    monkeypatch.setattr(FileBytes, "size_and_time", interrupted)
    assert follower[:] == pieces(2, *range(3, 8))
    assert len(looks) > 1


@pytest.mark.parametrize("contiguous", CONTIGUOUS)
def test_readers_of_a_removed_frame_keep_what_they_have(path: str, other: Other, *, contiguous: bool) -> None:
    new(path, 1, 2, contiguous=contiguous).close()
    follower = superchunk.open(path)
    assert follower[:] == pieces(1, 2)
    other("superchunk.remove_urlpath(path)")
    if contiguous:
        assert follower[:] == pieces(1, 2)
    else:
        with pytest.raises(StorageError, match=path):
            follower[:]
    other("superchunk.SChunk(400, piece(7), urlpath=path, mode='w').close()")
    if contiguous:
        assert follower[:] == piece(7)
