"""Sparse frames: which files a directory holds, when they go, and who may still read them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import superchunk
from superchunk import SChunk
from superchunk._store import contiguous_frame as contiguous
from superchunk._store import os_file as storage_file
from superchunk._store import sparse_frame_loading as sparse_loading
from superchunk._store.frame_store import FrameStore
from superchunk.exceptions import (
    ArgumentError,
    DamagedFrameError,
    FormatError,
    StorageError,
    SuperchunkError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 400


def part(seed: int, nbytes: int = CHUNK) -> bytes:
    """Return the content of a chunk."""
    return b"".join((seed * 7919 + n * n % 251).to_bytes(4, "little") for n in range(nbytes // 4))


def new(path: Path, nchunks: int = 0) -> SChunk:
    """Return a new sparse frame with so many chunks."""
    schunk = SChunk(chunksize=CHUNK, urlpath=path, contiguous=False, cparams={"typesize": 4}, mode="w")
    for seed in range(nchunks):
        schunk.append_data(part(seed))
    return schunk


def store_of(schunk: SChunk) -> Any:
    """Return what has the chunks."""
    return schunk._handle.store


def files(path: Path) -> set[str]:
    """Return the names of the chunk files."""
    return {each.name for each in path.iterdir() if each.name.endswith(".chunk")}


def hidden(path: Path) -> set[str]:
    """Return the other names, but for the index file."""
    return {each.name for each in path.iterdir()} - files(path) - {"chunks.b2frame"}


def parts(schunk: SChunk) -> list[bytes]:
    """Return the content of each chunk."""
    return [schunk.decompress_chunk(n) or b"" for n in range(schunk.nchunks)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.b2frame"


def elsewhere(code: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Run code in another process; ``sys.argv`` has the arguments."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=60, check=False
    )


# Files.


def test_each_stored_chunk_has_a_file_with_its_seal(path: Path) -> None:
    with new(path, 3) as s:
        s.append_data(bytes(CHUNK))
        s.flush()
        assert files(path) == {"00000000.chunk", "00000001.chunk", "00000002.chunk"}
        for n in range(3):
            chunk = s.get_chunk(n)
            raw = (path / f"{n:08X}.chunk").read_bytes()
            assert raw[: len(chunk)] == chunk
            assert raw[len(chunk) :].startswith(b"SCSEAL1\0")
            assert len(raw) == len(chunk) + 16
        assert (s.contiguous, s.dead_bytes) == (False, 0)
    assert not hidden(path)


def test_without_seals_a_file_is_the_chunk(path: Path) -> None:
    store = FrameStore.create(path, superchunk.SChunk()._handle.store.settings, CHUNK, {}, seal=False, contiguous=False)
    chunk = superchunk.compress2(part(1), typesize=1)
    store.insert(0, [chunk])
    store.flush()
    assert (path / "00000000.chunk").read_bytes() == chunk
    assert b"SCCOMIT1" not in (path / "chunks.b2frame").read_bytes()
    store.close()


def test_a_change_never_touches_a_committed_file(path: Path) -> None:
    with new(path, 4) as s:
        s.flush()
        before = {name: (path / name).read_bytes() for name in files(path)}
        for nchunk in range(3):
            s.update_data(nchunk, part(9), copy=True)
            if not nchunk:
                s.insert_data(0, part(8), copy=True)
            for name in files(path) & set(before):
                assert (path / name).read_bytes() == before[name]
        s.flush()
        assert len(files(path)) == s.nchunks == 5


def test_a_failed_change_leaves_no_file(path: Path) -> None:
    with new(path, 2) as s:
        s.flush()
        kept = files(path)
        with pytest.raises(KeyError), store_of(s).batch():  # noqa: PT012 - the batch is the point
            s.append_data(part(5))
            s.update_data(0, part(6), copy=True)
            assert files(path) > kept
            raise KeyError
        assert files(path) == kept
        assert parts(s) == [part(0), part(1)]


def test_files_of_removed_chunks_go_with_the_commit(path: Path) -> None:
    with new(path, 4) as s:
        s.flush()
        s.delete_chunk(1)
        s.update_data(0, bytes(CHUNK), copy=True)
        s.flush()
        assert files(path) == {"00000002.chunk", "00000003.chunk"}


def test_what_cannot_be_removed_goes_with_a_later_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(storage_file.System):
        def unlink(self, path: str) -> None:
            if path.endswith(".chunk"):
                raise PermissionError(1, "no", path)
            super().unlink(path)

    with new(path, 3) as s:
        s.flush()
        with monkeypatch.context() as patch:
            patch.setattr(storage_file, "system", Stubborn())
            s.delete_chunk(0)
            s.flush()
            assert len(files(path)) == 3
        s.delete_chunk(0)
        s.flush()
        assert files(path) == {"00000002.chunk"}


def test_stray_files_go_when_a_writer_opens_and_foreign_ones_stay(path: Path) -> None:
    new(path, 2).close()
    strays = ["00000007.chunk", ".chunks.b2frame.0123456789ab.new", ".00000009.chunk.0123456789ab.new"]
    foreign = ["notes.txt", "0000000a.chunk", ".x.new", "00000001.chunk.bak", ".pinned-x.b2frame", ".b2lock"]
    for name in strays + foreign:
        (path / name).write_bytes(b"x")
    (path / "00000008.chunk").symlink_to(path / "notes.txt")
    (path / "00000006.chunk").mkdir()
    superchunk.open(path).close()
    assert (path / strays[0]).exists()
    superchunk.open(path, mode="a").close()
    there = {each.name for each in path.iterdir()}
    assert not there & set(strays)
    assert set(foreign) | {"00000008.chunk", "00000006.chunk"} <= there
    with superchunk.open(path, mode="a") as s:
        for n in range(8):
            s.append_data(part(2 + n))
        assert parts(s) == [part(n) for n in range(10)]
    assert (path / "notes.txt").read_bytes() == b"x"


def test_no_stray_is_removed_beside_a_damaged_index(path: Path) -> None:
    new(path, 2).close()
    (path / "00000007.chunk").write_bytes(b"x")
    index = path / "chunks.b2frame"
    index.write_bytes(index.read_bytes()[:-1])
    with pytest.raises(FormatError):
        superchunk.open(path, mode="a")
    assert (path / "00000007.chunk").exists()


# Ids.


def test_ids_are_used_again_before_they_get_too_large(path: Path) -> None:
    with new(path, 3) as s:
        most = 0
        for n in range(3000):
            s.update_data(n % 3, part(n), copy=True)
            if n % 50 == 0:
                s.flush()
                most = max(int(name[:8], 16) for name in files(path))
                assert most <= s.cbytes - 32
        s.flush()
        assert len(files(path)) == 3


def test_files_are_renumbered_when_the_rest_is_small(path: Path) -> None:
    with new(path, 600) as s:
        for _ in range(599):
            s.delete_chunk(0)
        s.flush()
        assert parts(s) == [part(599)]
        (name,) = files(path)
        assert int(name[:8], 16) <= s.cbytes - 32


def test_one_transaction_that_removes_nearly_all_renumbers_too(path: Path) -> None:
    with new(path, 600) as s:
        s.flush()
        with store_of(s).transaction():
            for _ in range(599):
                s.delete_chunk(0)
        s.flush()
        (name,) = files(path)
        assert int(name[:8], 16) <= s.cbytes - 32
        assert parts(s) == [part(599)]


# The settled index.


def test_unsynced_commits_keep_the_last_synced_state(path: Path) -> None:
    s = new(path, 3)
    s.flush()
    assert not hidden(path)
    s.update_data(0, part(7), copy=True)
    store_of(s).publish()
    assert hidden(path) == {".settled.b2frame"}
    assert "00000000.chunk" in files(path)
    s.delete_chunk(1)
    store_of(s).publish()
    assert {"00000000.chunk", "00000001.chunk"} <= files(path)
    s.flush()
    assert not hidden(path)
    assert len(files(path)) == 2
    s.close()


def unsynced(path: Path) -> list[bytes]:
    """Leave a frame whose last commit was not synced; return what the one before held."""
    s = new(path, 3)
    s.flush()
    before = parts(s)
    s.update_data(0, part(7), copy=True)
    s.append_data(part(8))
    s.close()
    assert hidden(path) == {".settled.b2frame"}
    return before


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "gone"])
def test_a_lost_index_file_is_told_and_the_settled_state_can_be_read(path: Path, damage: str) -> None:
    before = unsynced(path)
    index = path / "chunks.b2frame"
    raw = bytearray(index.read_bytes())
    if damage == "gone":
        index.unlink()
    else:
        raw[40] ^= 1
        index.write_bytes({"cut": index.read_bytes()[:-5], "empty": b"", "flipped": bytes(raw)}[damage])
    with pytest.raises(DamagedFrameError, match="recover=True") as caught:
        FrameStore.open(path)
    assert (caught.value.nchunks, caught.value.nbytes) == (3, 3 * CHUNK)
    with pytest.raises(DamagedFrameError):
        FrameStore.open(path, writable=True)
    with closing(FrameStore.open(path, recover=True)) as store:
        assert [superchunk.decompress2(_bytes(store, n)) for n in range(store.nchunks)] == before


@pytest.mark.parametrize("loss", ["cut", "zeros", "gone"])
def test_a_chunk_lost_with_the_power_is_noticed(path: Path, loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = unsynced(path)
    file = path / "00000003.chunk"
    if loss == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:20] if loss == "cut" else bytes(file.stat().st_size))
    FrameStore.open(path).close()  # the machine did not start again, so nothing was lost
    for module in (contiguous, sparse_loading):
        monkeypatch.setattr(module, "after_power_loss", lambda _: True)
    with pytest.raises(DamagedFrameError, match=r"chunk 0, file 00000003\.chunk"):
        FrameStore.open(path)
    with closing(FrameStore.open(path, recover=True)) as store:
        assert [superchunk.decompress2(_bytes(store, n)) for n in range(store.nchunks)] == before


def _bytes(store: FrameStore, nchunk: int) -> bytes:
    source = store.source(nchunk)
    assert isinstance(source, tuple)
    assert isinstance(source[0], tuple)
    return Path(source[0][1]).read_bytes()


def test_a_frame_that_was_never_synced_and_level_never_keep_none(path: Path, tmp_path: Path) -> None:
    s = new(path, 50)
    s.delete_chunk(0)
    s.close()
    assert not hidden(path)
    store = FrameStore.open(path, writable=True, sync="never")
    store.delete(0)
    store.close()
    assert not hidden(path)
    assert len(files(path)) == 48
    del tmp_path


def test_compact_leaves_only_what_is_named(path: Path) -> None:
    unsynced(path)
    store = FrameStore.open(path, writable=True)
    told: list[tuple[int, int]] = []
    store.compact(lambda done, total: told.append((done, total)))
    assert not hidden(path)
    assert len(files(path)) == store.nchunks == 4
    assert told
    store.close()


# Snapshots.

_PINNING = """
import sys, superchunk
from superchunk._store.frame_store import FrameStore
from superchunk import _engine
store = FrameStore.open(sys.argv[1], snapshot=True)
print("open", flush=True)
sys.stdin.readline()
assert not store.refresh()
print(b"".join(_engine.decompress(store.source(n)) for n in range(store.nchunks)).hex(), flush=True)
sys.stdin.readline()
"""


def test_snapshots_keep_their_files_until_they_are_closed(path: Path) -> None:
    s = new(path, 3)
    s.flush()
    before = b"".join(parts(s))
    snapshot = FrameStore.open(path, snapshot=True)
    s.append_data(part(3))
    s.flush()
    for n in range(3):
        s.update_data(n, part(10 + n), copy=True)
        s.flush()
    assert any(name.startswith(".pinned-") for name in hidden(path))
    assert b"".join(superchunk.decompress2(_bytes(snapshot, n)) for n in range(3)) == before
    assert snapshot.advance()
    assert snapshot.nchunks == 4
    s.append_data(part(20))
    s.flush()
    snapshot.close()
    s.append_data(part(21))
    s.flush()
    assert not hidden(path)
    assert len(files(path)) == s.nchunks == 6
    s.close()


def test_a_later_writer_respects_and_then_forgets_a_snapshot_of_another_process(path: Path) -> None:
    with new(path, 3) as s:
        s.flush()
        before = b"".join(parts(s))
    with subprocess.Popen(
        [sys.executable, "-c", _PINNING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdin is not None
        assert reader.stdout.readline() == "open\n"
        for n in range(3):
            with superchunk.open(path, mode="a") as s:
                s.update_data(n, part(30 + n), copy=True)
                s.flush()
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert bytes.fromhex(reader.stdout.readline()) == before
        reader.kill()
    with superchunk.open(path, mode="a") as s:
        assert not hidden(path)
        assert len(files(path)) == 3
        assert parts(s) == [part(30 + n) for n in range(3)]


# Readers.

_WRITING = """
import sys, superchunk
s = superchunk.open(sys.argv[1], mode="a")
for n in range(int(sys.argv[2])):
    plain = bytes([n % 251]) * 200 + bytes(range(200))
    with s._handle.store.batch():
        for nchunk in range(s.nchunks):
            s.update_data(nchunk, plain, True)
    s._handle.store.publish()
s.close()
"""


def test_every_call_sees_one_state_while_another_process_commits(path: Path) -> None:
    with new(path) as s:
        for _ in range(8):
            s.append_data(bytes([0]) * 200 + bytes(range(200)))
        s.flush()
    reader = superchunk.open(path)
    with subprocess.Popen([sys.executable, "-c", _WRITING, str(path), "400"]) as writer:
        seen = set()
        while writer.poll() is None:
            whole = reader[:]
            assert {whole[n * CHUNK : (n + 1) * CHUNK] for n in range(8)} == {whole[:CHUNK]}
            seen.add(whole[0])
            copy = superchunk.schunk_from_cframe(reader.to_cframe())
            assert len({copy.decompress_chunk(n) for n in range(8)}) == 1
        assert writer.returncode == 0
    assert reader[:1] == bytes([399 % 251] * 4)
    assert len(seen) > 5
    assert reader.change_tick > 5
    reader.close()


def test_readers_follow_although_the_old_index_keeps_a_name(path: Path) -> None:
    with new(path, 2) as s:
        s.flush()
    reader, snapshot = superchunk.open(path), FrameStore.open(path, snapshot=True)
    done = elsewhere(_WRITING, path, 1)
    assert done.returncode == 0, done.stderr
    assert len(hidden(path)) == 2
    assert reader[:50] == bytes(200)
    assert snapshot.advance()
    reader.close()
    snapshot.close()


def test_a_handle_sees_what_another_one_of_the_process_has_made(path: Path) -> None:
    with new(path, 2) as s, superchunk.open(path) as other:
        s.append_data(part(2))
        assert parts(s) == [part(0), part(1), part(2)]
        assert parts(other) == [part(0), part(1), part(2)]


# One writer; replacing; forks.


def test_a_second_writing_process_is_refused_at_once(path: Path) -> None:
    opening = "import sys, superchunk; superchunk.open(sys.argv[1], mode='a')"
    with new(path, 1):
        done = elsewhere(opening, path)
        assert done.returncode == 1
        assert f"LockedError: {path}" in done.stderr
        replaced = elsewhere("import sys, superchunk; superchunk.SChunk(urlpath=sys.argv[1], mode='w')", path)
        assert "LockedError" in replaced.stderr
    assert elsewhere(opening, path).returncode == 0


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("contiguous", [True, False])
def test_mode_w_replaces_either_kind_by_either_kind(path: Path, *, old: bool, contiguous: bool) -> None:
    SChunk(data=part(1), urlpath=path, contiguous=old).close()
    reader = superchunk.open(path)
    with SChunk(data=part(2), urlpath=path, contiguous=contiguous, mode="w") as s:
        assert s.contiguous is contiguous
        assert path.is_dir() is not contiguous
        if old == contiguous:
            assert reader[:] == part(2)
    reader.close()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with superchunk.open(path) as s:
        assert (s[:], s.contiguous) == (part(2), contiguous)


def test_a_failed_replacement_leaves_the_old_frame(path: Path) -> None:
    new(path, 2).close()
    with pytest.raises(SuperchunkError):
        SChunk(data=part(2), urlpath=path, contiguous=False, mode="w", cparams={"filters": [200], "filters_meta": [0]})
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    with superchunk.open(path) as s:
        assert parts(s) == [part(0), part(1)]


def test_a_directory_with_other_things_is_not_replaced(path: Path) -> None:
    new(path, 1).close()
    (path / "mine.txt").write_text("x")
    with pytest.raises(ArgumentError, match="mine"):
        new(path)
    with pytest.raises(ArgumentError, match="mine"):
        superchunk.remove_urlpath(path)
    assert (path / "mine.txt").exists()
    (path / "mine.txt").unlink()
    superchunk.remove_urlpath(path)
    assert not path.exists()


def test_a_writer_killed_while_replacing_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    class Dying(storage_file.System):
        def exchange(self, one: str, other: str) -> None:
            raise OSError(errno.ENOTSUP, "a system that cannot exchange names", one, None, other)

        def rename_new(self, old: str, new: str) -> None:
            if old.endswith((".new", ".old")):  # nor is anything put back then
                raise Killed
            super().rename_new(old, new)

    new(path, 2).close()
    with monkeypatch.context() as patch:
        patch.setattr(storage_file, "system", Dying())
        with pytest.raises(Killed):
            new(path)
    assert not path.exists()
    with superchunk.open(path) as s:  # which changes nothing
        assert parts(s) == [part(0), part(1)]
        assert s.contiguous is False
    assert not path.exists()
    with superchunk.open(path, mode="a") as s:
        s.append_data(part(2))
    assert path.exists()
    with superchunk.open(path) as s:
        assert parts(s) == [part(0), part(1), part(2)]


def test_removing_takes_all_files_of_ours(path: Path) -> None:
    unsynced(path)
    snapshot = FrameStore.open(path, snapshot=True)
    with superchunk.open(path, mode="a") as s:
        s.delete_chunk(0)
    assert len(hidden(path)) == 2
    snapshot.close()
    superchunk.remove_urlpath(path)
    assert not path.exists()


def test_a_forked_child_reads_and_cannot_write(path: Path) -> None:
    code = """
import os, sys, superchunk
s = superchunk.open(sys.argv[1], mode="a")
s.append_data(bytes(range(200)) * 2)
pid = os.fork()
if not pid:
    code = 1
    try:
        assert s.decompress_chunk(0) is not None
        try:
            s.append_data(bytes(range(200)) * 2)
        except superchunk.exceptions.LockedError:
            code = 0
    finally:
        os._exit(code)
assert os.waitpid(pid, 0)[1] == 0
s.append_data(bytes(range(100)) * 4)
s.flush()
assert s.nchunks == 4
s.close()
s = superchunk.open(sys.argv[1])
assert [len(s.decompress_chunk(n)) for n in range(4)] == [400] * 4
"""
    new(path, 2).close()
    done = elsewhere(code, path)
    assert done.returncode == 0, done.stderr


# What a directory may hold.


def _become_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "make",
    [
        lambda file: file.unlink(),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:20]),
        lambda file: (file.rename(file.with_suffix(".x")), file.symlink_to(file.with_suffix(".x"))),
        lambda file: (file.unlink(), file.mkdir()),
        _become_pipe,
    ],
    ids=["missing", "empty", "short", "symlink", "directory", "pipe"],
)
def test_a_bad_chunk_file_is_an_error_of_that_chunk(path: Path, make: Callable[[Path], object]) -> None:
    new(path, 3).close()
    make(path / "00000001.chunk")
    with superchunk.open(path) as s:
        assert s.nbytes == 3 * CHUNK
        assert s.decompress_chunk(0) == part(0)
        assert s.decompress_chunk(2) == part(2)
        with pytest.raises((FormatError, StorageError)):
            s.decompress_chunk(1)
    with superchunk.open(path, mode="a") as s:
        s.delete_chunk(1)
        assert parts(s) == [part(0), part(2)]


def test_the_index_file_is_not_reached_through_a_symbolic_link(path: Path) -> None:
    new(path, 1).close()
    index = path / "chunks.b2frame"
    index.rename(path.parent / "moved")
    index.symlink_to(path.parent / "moved")
    with pytest.raises(StorageError):
        superchunk.open(path)


def test_entries_that_share_a_file_can_be_changed_apart(path: Path) -> None:
    with new(path, 2) as s:
        state = store_of(s)._open
        state.index.assign([0, 0])
        state._changed()
        s.flush()
    with superchunk.open(path, mode="a") as s:
        assert parts(s) == [part(0), part(0)]
        s.update_data(0, part(5), copy=True)
        s.flush()
        assert parts(s) == [part(5), part(0)]
        s.delete_chunk(0)
        s.flush()
        assert parts(s) == [part(0)]


def test_an_id_that_no_name_can_have_is_refused(path: Path) -> None:
    with new(path, 2) as s:
        state = store_of(s)._open
        state.index.assign([0, 2**32])
        with pytest.raises(FormatError, match="index entry 1 at byte 8: expected at most 4294967295"):
            s.decompress_chunk(1)
        state.index.assign([0, 1])


def test_modes_that_cannot_be_are_refused(path: Path) -> None:
    new(path, 1).close()
    for mode in ("r", "r+", "c"):
        with pytest.raises(ArgumentError, match="sparse frame, which cannot be mapped"):
            superchunk.open(path, mmap_mode=mode)
    with pytest.raises(ValueError, match="mmap_mode"):
        SChunk(urlpath=path, contiguous=False, mmap_mode="w+")
    with pytest.raises(ArgumentError, match="offset"):
        superchunk.open(path, offset=1)


def test_opening_looks_at_no_chunk_file(path: Path) -> None:
    new(path, 20).close()
    for file in path.glob("*.chunk"):
        file.unlink()
    with superchunk.open(path) as s:
        assert (s.nchunks, s.nbytes) == (20, 20 * CHUNK)
        assert s.cbytes > 0


# Copies and conversion.


@pytest.mark.parametrize("source", ["memory", "file", "folder"])
@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("shape", ["fixed", "varying", "vlblocks", "zeros", "empty"])
def test_copies_keep_chunks_as_they_are(tmp_path: Path, source: str, shape: str, *, contiguous: bool) -> None:
    place: dict[str, Any] = {} if source == "memory" else {"urlpath": tmp_path / "a", "contiguous": source == "file"}
    s = SChunk(
        chunksize=-1 if shape in ("varying", "vlblocks") else CHUNK,
        cparams={"typesize": 4, "clevel": 7, "blocksize": 128},
        meta={"m": [1, 2]},
        **place,
    )
    if shape == "vlblocks":
        s.append_vlblocks([b"abc", b"defgh" * 30])
    elif shape == "zeros":
        s.fill_special(1050, superchunk.SpecialValue.ZERO)
    elif shape != "empty":
        for seed, data in enumerate([part(1), bytes(CHUNK), b"\1\2\3\4" * 100, part(2, 200)]):
            s.append_data(data if shape == "fixed" else data + part(seed, 4 * seed))
    s.vlmeta["v"] = {"x": 1}
    t = s.copy(urlpath=tmp_path / "b", contiguous=contiguous)
    assert (t.contiguous, t.chunksize, t.nbytes, t.cbytes) == (contiguous, s.chunksize, s.nbytes, s.cbytes)
    assert [t.get_chunk(n) for n in range(t.nchunks)] == [s.get_chunk(n) for n in range(s.nchunks)]
    assert (t.meta[:], t.vlmeta[:], t.cparams) == (s.meta[:], s.vlmeta[:], s.cparams)
    t.close()
    with superchunk.open(tmp_path / "b") as t:
        assert t.nbytes == s.nbytes
        assert t.blocksize == 128
        if shape == "vlblocks":
            assert t.get_vlblocks(0) == [b"abc", b"defgh" * 30]
    s.close()
