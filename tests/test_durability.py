"""What survives what: transactions, sync levels, seals, recovery, compaction, snapshots."""

from __future__ import annotations

import os
import random
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from storage_tools import failing_after, look

import superchunk
from superchunk import SChunk
from superchunk._format.integrity import SEAL_MAGIC, record_len
from superchunk._store import os_file as storage_file
from superchunk._store.frame_store import FrameStore
from superchunk._store.os_file import after_power_loss
from superchunk._store.store_interface import FrameSettings
from superchunk.exceptions import DamagedFrameError, FormatError, ReadOnlyError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Buffer

NOISE = random.Random(7).randbytes(40_000)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "data.b2frame")


class Watched(storage_file.System):
    """Notes what is done, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def pwrite(self, fd: int, buffers: Sequence[Buffer], at: int) -> None:
        super().pwrite(fd, buffers, at)
        self.done.append("header" if at == 0 else "data")

    def sync(self, fd: int) -> None:
        super().sync(fd)
        self.done.append("sync")

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        self.done.append("rename")

    def rename_new(self, old: str, new: str) -> None:
        super().rename_new(old, new)
        self.done.append("rename")

    def exchange(self, one: str, other: str) -> None:
        super().exchange(one, other)
        self.done.append("rename")

    def sync_folder(self, path: str) -> None:
        super().sync_folder(path)
        self.done.append("folder")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    watcher = Watched()
    monkeypatch.setattr(storage_file, "system", watcher)
    return watcher


def grown(path: str, **how: Any) -> SChunk:
    """Return a writable SChunk of two chunks."""
    s = SChunk(chunksize=4000, urlpath=path, mode="w", cparams={"typesize": 4, "nthreads": 1}, **how)
    s.append_data(NOISE[:4000])
    s.append_data(NOISE[4000:8000])
    return s


def flip(path: str, at: int, bit: int = 0) -> None:
    raw = bytearray(Path(path).read_bytes())
    raw[at] ^= 1 << bit
    Path(path).write_bytes(raw)


# Transactions.


@pytest.mark.parametrize("stored", [False, True])
def test_a_transaction_happens_whole_or_not_at_all(path: str, *, stored: bool) -> None:
    s = SChunk(chunksize=4000, urlpath=path if stored else None, mode="w" if stored else "a", cparams={"typesize": 4})
    s.append_data(NOISE[:4000])
    s.vlmeta["a"] = 1
    before = look(s._handle.store)
    with pytest.raises(KeyError), s.transaction():  # noqa: PT012 - the block is the point
        s.append_data(NOISE[4000:8000])
        s.vlmeta["a"] = 2
        s.vlmeta["b"] = 3
        s.update_data(0, NOISE[8000:12000], copy=False)
        s[10:20] = bytes(40)
        s.delete_chunk(1)
        raise KeyError
    assert look(s._handle.store) == before
    with s.transaction():
        s.append_data(NOISE[4000:8000])
        s.vlmeta["a"] = 2
        s[0:1000] = bytes(4000)
    assert s[:] == bytes(4000) + NOISE[4000:8000]
    if stored:
        with superchunk.open(path) as other:
            assert other[:] == s[:]
            assert other.vlmeta["a"] == 2


def test_a_transaction_is_one_commit_and_on_the_disk(path: str, watched: Watched) -> None:
    s = grown(path)
    watched.done.clear()
    with s.transaction():
        for _ in range(5):
            s.append_data(NOISE[:4000])
        s.vlmeta["n"] = 5
    # Five chunks, then index and trailer, on the disk before the header names them.
    assert watched.done == ["data"] * 6 + ["sync", "header", "sync", "folder"]
    watched.done.clear()
    with s.transaction():
        pass
    assert watched.done == []


def test_a_transaction_inside_another_is_refused(path: str) -> None:
    s = grown(path)
    with s.transaction():
        with pytest.raises(StorageError, match="one cannot begin inside another"), s.transaction():
            pass
        s.vlmeta["still"] = "works"
        with pytest.raises(StorageError, match="compact within a transaction"):
            s.compact()
    assert s.vlmeta["still"] == "works"
    with superchunk.open(path) as reader, pytest.raises(ReadOnlyError), reader.transaction():
        pass


def test_a_transaction_that_cannot_be_written_leaves_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    s = grown(path)
    s.flush()
    before, raw = look(s._handle.store), Path(path).read_bytes()
    for writes in range(3):
        with failing_after(writes, monkeypatch), pytest.raises(StorageError), s.transaction():  # noqa: PT012
            s.append_data(NOISE[:4000])
            s.vlmeta["a"] = 1
        assert look(s._handle.store) == before
        assert Path(path).read_bytes()[: len(raw)] == raw


# When the disk is waited for.


@pytest.mark.parametrize(
    ("sync", "appends", "flushes"),
    [("never", 0, 0), ("explicit", 0, 2), ("commit", 2, 1)],
)
def test_sync_levels(path: str, watched: Watched, sync: Any, appends: int, flushes: int) -> None:
    s = grown(path, sync=sync)
    watched.done.clear()
    s.append_data(NOISE[:4000])
    assert watched.done.count("sync") == appends
    if sync == "commit":
        assert watched.done == ["data", "data", "sync", "header", "sync"]
    s.append_data(bytes(4000))  # waits
    watched.done.clear()
    s.flush()
    assert watched.done.count("sync") == (flushes if sync != "commit" else 2)
    watched.done.clear()
    s.flush()
    assert watched.done.count("sync") == (0 if sync == "never" else 1)


def test_replacing_a_frame_waits_for_the_disk_before_the_old_one_goes(path: str, watched: Watched) -> None:
    grown(path).close()
    watched.done.clear()
    grown(path).close()
    assert "sync" in watched.done[: watched.done.index("rename")]
    watched.done.clear()
    grown(path, sync="never").close()
    assert "sync" not in watched.done


def test_an_unknown_level_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="sync: expected one of"):
        SChunk(urlpath=path, sync="always")  # type: ignore[arg-type]


# Seals.


def test_chunks_are_sealed_unless_that_is_switched_off(path: str) -> None:
    grown(path).close()
    raw = Path(path).read_bytes()
    assert raw.count(SEAL_MAGIC) == 2
    assert raw[-17] == 3
    grown(path, seal=False).close()
    plain = Path(path).read_bytes()
    assert SEAL_MAGIC not in plain
    assert plain[-17:] == bytes(17)
    assert len(plain) < len(raw)


def test_reading_can_compare_chunks_with_their_seals(path: str) -> None:
    grown(path).close()
    place = Path(path).read_bytes().index(NOISE[4000:4400])  # noise is stored as it is
    flip(path, place + 5)
    with superchunk.open(path) as plain:
        assert plain[1000:2000] != NOISE[4000:8000]
    with superchunk.open(path, verify="read") as s:
        reads: list[Callable[[], object]] = [
            lambda: s[:],
            lambda: s[1000:2000],
            lambda: s.decompress_chunk(1),
            lambda: s.get_chunk(1),
        ]
        for read in reads:
            with pytest.raises(FormatError, match=r"chunk 1 .*the chunk is damaged"):
                read()
        assert s[:1000] == NOISE[:4000]
    with pytest.raises(ValueError, match="verify: expected None or 'read'"):
        superchunk.open(path, verify="all")


def test_a_damaged_header_index_or_trailer_does_not_open(path: str) -> None:
    grown(path).close()
    raw = Path(path).read_bytes()
    index_at = len(raw) - 35 - record_len(97) - 10
    for at in (0x1E + 7, 0x27 + 7, index_at, index_at + 50, len(raw) - 80, len(raw) - 30, len(raw) - 1):
        flip(path, at)
        with pytest.raises(FormatError):
            superchunk.open(path)
        flip(path, at)
    superchunk.open(path).close()


@pytest.mark.parametrize("lost", [17, 18, 40])
def test_a_trailer_without_its_last_bytes_is_damaged_and_not_unsealed(path: str, lost: int) -> None:
    s = grown(path)
    s.flush()
    s.append_data(NOISE[8000:12000])
    s.close()
    raw = Path(path).read_bytes()
    Path(path).write_bytes(raw[:-lost] + bytes(lost))  # as a sector that did not reach the disk
    with pytest.raises(DamagedFrameError):
        superchunk.open(path)
    with superchunk.open(path, recover=True) as old:
        assert old[:] == NOISE[:8000]


# Recovery.


def test_an_earlier_commit_is_offered_and_read(path: str) -> None:
    s = grown(path)
    s.flush()
    with s.transaction():
        s.append_data(NOISE[8000:12000])
    s.close()
    flip(path, os.path.getsize(path) - 20)  # noqa: PTH202 - in the last trailer
    with pytest.raises(
        DamagedFrameError, match=r"intact commit of 2 chunks, 8000 bytes: open\(\.\.\., recover=True\)"
    ) as e:
        superchunk.open(path)
    assert (e.value.nchunks, e.value.nbytes) == (2, 8000)
    with superchunk.open(path, recover=True) as old:
        assert old[:] == NOISE[:8000]
        with pytest.raises(ReadOnlyError):
            old.append_data(b"")
    for mode in ("a", "w"):
        with pytest.raises(ValueError, match="snapshot and recover are for reading"):
            superchunk.open(path, mode, recover=True)
    Path(path).write_bytes(Path(path).read_bytes()[200:])
    with pytest.raises(FormatError) as gone:
        superchunk.open(path)
    assert not isinstance(gone.value, DamagedFrameError)


def test_recovering_a_sound_frame_is_opening_it(path: str) -> None:
    grown(path).close()
    with superchunk.open(path, recover=True) as s:
        assert s[:] == NOISE[:8000]


def test_a_chunk_that_did_not_reach_the_disk_is_noticed(path: str) -> None:
    s = grown(path)
    s.flush()
    s.append_data(NOISE[8000:12000])
    s.close()
    place = Path(path).read_bytes().index(NOISE[8000:8400])
    raw = bytearray(Path(path).read_bytes())
    raw[place + 512 : place + 1024] = bytes(512)
    Path(path).write_bytes(raw)
    superchunk.open(path).close()  # no power was lost since
    start = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    os.utime(path, (start - 1, start - 1))
    with pytest.raises(DamagedFrameError, match=r"chunk 2 .*did not reach the disk.*intact commit of 2 chunks"):
        superchunk.open(path)
    with superchunk.open(path, recover=True) as old:
        assert old[:] == NOISE[:8000]


def test_only_the_hour_before_the_machine_started_is_suspicious() -> None:
    start = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    assert after_power_loss(start - 1)
    assert after_power_loss(start - 3500)
    assert not after_power_loss(start - 4000)
    assert not after_power_loss(time.time() + 61)


# A header longer than a sector.


def test_a_long_header_changes_whole_or_not_at_all(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = b"o" * 3000, b"n" * 3000
    for writes in range(6):
        store = FrameStore.create(path, FrameSettings(typesize=4), 400, {"long": old})
        store.insert(0, [superchunk.compress2(NOISE[:400], typesize=4)])
        store.flush()
        with failing_after(writes, monkeypatch):
            try:
                store.set_meta("long", new)
            except StorageError:
                done = False
            else:
                done = True
        with superchunk.open(path, snapshot=True) as found:  # as another process finds it
            seen = found._handle.store.meta["long"]
            assert seen in ((new,) if done else (old, new))
            assert found[:] == NOISE[:400]
        if seen == new:
            store.set_meta("long", old)
            store.flush()
            assert Path(path).read_bytes().count(b"o" * 3000) >= 1
        store.close()
        with superchunk.open(path) as found:
            assert found._handle.store.meta["long"] == old
        assert b"o" * 3000 in Path(path).read_bytes()[:4000]


# Compaction.


def test_compaction_gives_dead_bytes_back(path: str) -> None:
    s = grown(path)
    s.vlmeta["a"] = 1
    for n in range(20):
        s.update_data(n % 2, NOISE[4000 * n % 36000 :][:4000], copy=False)
    s.append_data(bytes(4000))
    expected = s[:]
    Path(path).chmod(0o640)
    link = Path(path).with_name("link")
    link.symlink_to(path)
    with superchunk.open(link) as reader, superchunk.open(path, snapshot=True) as pinned:
        told: list[tuple[int, int]] = []
        assert s.dead_bytes > 40_000
        s.compact(lambda done, total: told.append((done, total)))
        assert told[-1][0] == told[-1][1] > 8000
        assert s.dead_bytes == 0
        assert s[:] == reader[:] == pinned[:] == expected
        assert os.path.getsize(path) < 9000  # noqa: PTH202
        s.append_data(NOISE[:4000])
        assert s[:] == expected + NOISE[:4000]
        assert pinned[:] == expected
        assert reader[:] == s[:]
        assert pinned[:] == expected
        assert pinned.refresh()
        assert pinned[:] == s[:]
        assert not pinned.refresh()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640  # noqa: PTH116
    assert link.is_symlink()
    s.close()
    with superchunk.open(path) as again:
        assert again[:] == expected + NOISE[:4000]
        assert again.vlmeta["a"] == 1
    assert [one.name for one in Path(path).parent.iterdir() if one.name.endswith(".new")] == []


@pytest.mark.parametrize("contiguous", [True, False])
def test_compaction_is_automatic_only_if_asked_for(path: str, *, contiguous: bool) -> None:
    s = grown(path, contiguous=contiguous, compact_above=0.5)
    s.update_data(0, NOISE[8000:12000], copy=False)
    s.close()  # a third is dead
    with superchunk.open(path) as s:
        assert (s.dead_bytes > 4000) is contiguous  # files that no commit names go at once
    with superchunk.open(path, "a", compact_above=0.1) as s:
        s.append_data(NOISE[:4000])
    with superchunk.open(path) as s:
        assert s.dead_bytes == 0
        assert s[:] == NOISE[8000:12000] + NOISE[4000:8000] + NOISE[:4000]
    with pytest.raises(ValueError, match="compact_above: expected None or a share"):
        superchunk.open(path, compact_above=1.5)


def test_a_compaction_that_fails_changes_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    s = grown(path)
    s.update_data(0, NOISE[:4000], copy=False)
    s.flush()
    expected, raw = s[:], Path(path).read_bytes()
    with failing_after(0, monkeypatch), pytest.raises(StorageError, match=path):
        s.compact()
    assert s[:] == expected
    assert Path(path).read_bytes() == raw
    assert [one.name for one in Path(path).parent.iterdir()] == ["data.b2frame"]
    s.compact()
    assert s[:] == expected


def test_a_compaction_keeps_the_evidence_of_damage(path: str) -> None:
    s = grown(path)
    s.update_data(0, NOISE[8000:12000], copy=False)
    s.flush()
    flip(path, Path(path).read_bytes().index(NOISE[4000:4400]))
    s.compact()
    s.close()
    with superchunk.open(path, verify="read") as found, pytest.raises(FormatError, match=r"chunk 1 .*damaged"):
        found.decompress_chunk(1)


def test_emptying_a_frame_leaves_readers_of_the_old_state_alone(path: str) -> None:
    s = grown(path)
    s.vlmeta["a"] = 1
    with superchunk.open(path, snapshot=True) as pinned:
        s.delete_chunk(0)
        s.delete_chunk(0)
        s.vlmeta["b"] = 2
        assert pinned[:] == NOISE[:8000]
        assert pinned.refresh()
        assert pinned[:] == b""
        assert dict(pinned.vlmeta[:]) == {"a": 1, "b": 2}
    s.append_data(NOISE[:4000])
    s.close()
    with superchunk.open(path) as again:
        assert again[:] == NOISE[:4000]
