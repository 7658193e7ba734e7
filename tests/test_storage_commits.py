"""How a frame in a file changes: commits, failures, handles, other processes."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from storage_tools import CHUNKSIZE, TYPESIZE, chunk, content, everything, failing_after, look, special

from superchunk import _engine
from superchunk._format.frame_header import FrameHeader
from superchunk._format.integrity import record_len
from superchunk._store.contiguous_frame import ContiguousState
from superchunk._store.frame_bytes import write_cframe
from superchunk._store.frame_store import FrameStore
from superchunk._store.memory_store import MemoryStore
from superchunk._store.os_file import FileBytes
from superchunk._store.store_interface import FrameSettings
from superchunk.exceptions import (
    FormatError,
    MetalayerValueError,
    ReadOnlyError,
    StorageError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = FrameSettings(typesize=TYPESIZE)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "data.b2frame")


def new(path: str, chunksize: int = CHUNKSIZE, **more: Any) -> FrameStore:
    return FrameStore.create(path, SETTINGS, chunksize, more.pop("meta", {}), **more)


def on_disk(path: str) -> bytes:
    """Return what a process that opens `path` now would read."""
    with FileBytes_open(path) as state:
        return b"".join(_engine.decompress(state.source(n)) for n in range(len(state.index)))


class FileBytes_open:  # noqa: N801 - reads as a call
    """A second state of a file, beside the registry, as another process has it."""

    def __init__(self, path: str) -> None:
        use = ContiguousState.opened(path, 0, private=True)
        assert use is not None
        self.use = use

    def __enter__(self) -> ContiguousState:
        assert isinstance(self.use.state, ContiguousState)
        return self.use.state

    def __exit__(self, *_: object) -> None:
        self.use.leave()


def other_process(path: str, code: str) -> None:
    """Run `code` on a writable store `s` of `path` in a process of its own."""
    here = str(Path(__file__).parent)
    script = (
        f"import sys; sys.path.insert(0, {here!r})\n"
        "from storage_tools import *\n"
        "from superchunk._store.frame_store import FrameStore\n"
        "from superchunk._store.locks import WriterLock\n"
        # As C-Blosc2 does: it knows nothing of our lock.
        "WriterLock.acquire = lambda self, fd, path, **_: setattr(self, '_fd', fd)\n"
        f"s = FrameStore.open({path!r}, writable=True)\n{code}\ns.close()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_empty_frame_is_on_disk_after_create(path: str) -> None:
    store = new(path)
    raw = Path(path).read_bytes()
    assert len(raw) == 132 + record_len(97)
    header = FrameHeader.from_bytes(raw)
    assert (header.chunksize, header.typesize, raw[0x19], raw[0x1C]) == (CHUNKSIZE, TYPESIZE, 0x12, 2)
    assert [one.name for one in Path(path).parent.iterdir()] == ["data.b2frame"]
    assert store.frame_len == len(raw)


def test_the_old_file_stays_until_the_first_commit(path: str) -> None:
    new(path).close()
    old = Path(path).read_bytes()
    store = new(path, publish=False)
    store.insert(0, [chunk(0, 40)])
    assert Path(path).read_bytes() == old
    store.flush()
    assert on_disk(path) == content(0, 40)
    dropped = new(path, publish=False)
    dropped.insert(0, [chunk(1, 40)])
    dropped.discard()
    assert on_disk(path) == content(0, 40)
    assert [one.name for one in Path(path).parent.iterdir()] == ["data.b2frame"]
    store.discard()  # it has its name already
    assert on_disk(path) == content(0, 40)
    del dropped
    forgotten = new(path, publish=False)
    forgotten.insert(0, [chunk(1, 40)])
    del forgotten
    assert on_disk(path) == content(0, 40)
    assert [one.name for one in Path(path).parent.iterdir()] == ["data.b2frame"]


def test_a_failed_creation_leaves_the_old_file(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new(path)
    store.insert(0, [chunk(0)])
    store.close()
    with failing_after(0, monkeypatch), pytest.raises(StorageError):
        new(path)
    with pytest.raises(MetalayerValueError):
        new(path, meta={"x" * 32: b""})
    assert on_disk(path) == content(0)
    assert [one.name for one in Path(path).parent.iterdir()] == ["data.b2frame"]


def test_a_large_chunk_is_on_disk_when_the_call_returns(path: str) -> None:
    store = new(path, 40_000)
    raw = os.urandom(40_000)
    store.insert(0, [_engine.compress(raw, _engine.EncodeParams(typesize=4))])
    assert on_disk(path) == raw


def test_small_chunks_wait_for_each_other_and_for_flush(path: str) -> None:
    store = new(path)
    store.insert(0, [special(1)])
    assert on_disk(path) == b""
    assert everything(store) == bytes(CHUNKSIZE)
    store.flush()
    assert on_disk(path) == bytes(CHUNKSIZE)


@pytest.mark.parametrize("how", ["flush", "close", "drop", "open", "vlmeta", "exit", "fork"])
def test_what_waits_is_committed_by(path: str, how: str) -> None:
    store: FrameStore | None = new(path)
    assert store is not None
    if how == "exit":
        other_process(path, "s.insert(0, [chunk(0, 40)])\nimport sys; sys.exit()")
        assert on_disk(path) == content(0, 40)
        return
    store.insert(0, [chunk(0, 40)])
    assert on_disk(path) == b""
    if how == "drop":
        store = None
        gc.collect()
    elif how == "open":
        FrameStore.open(path)
    elif how == "vlmeta":
        store.set_vlmeta("a", chunk(1))
    elif how == "fork":
        child = os.fork()
        if not child:
            os._exit(0 if everything(store) == content(0, 40) else 1)
        assert os.waitpid(child, 0)[1] == 0
    else:
        getattr(store, how)()
    assert on_disk(path) == content(0, 40)


def test_vlmeta_and_meta_are_on_disk_when_the_assignment_returns(path: str) -> None:
    store = new(path, meta={"m": b"1"})
    store.set_vlmeta("a", chunk(1))
    with FileBytes_open(path) as state:
        assert dict(state.vlmeta) == {"a": chunk(1)}
    store.insert(0, [chunk(0)])
    for name in ("b", "c"):
        store.set_vlmeta(name, chunk(2))
        with FileBytes_open(path) as state:
            assert state.vlmeta[name] == chunk(2)
    store.del_vlmeta("a")
    store.set_meta("m", b"2")
    with FileBytes_open(path) as state:
        assert (list(state.vlmeta), dict(state.meta)) == (["b", "c"], {"m": b"2"})
    assert on_disk(path) == content(0)


def test_a_seventeenth_vlmetalayer_is_refused(path: str) -> None:
    store = new(path)
    for n in range(16):
        store.set_vlmeta(str(n), chunk(n, 8))
    with pytest.raises(MetalayerValueError, match="at most 16, got 16 and 'more'"):
        store.set_vlmeta("more", chunk(1, 8))
    store.set_vlmeta("3", chunk(99, 8))
    assert len(store.vlmeta) == 16
    memory = MemoryStore(SETTINGS, CHUNKSIZE)
    for n in range(30):
        memory.set_vlmeta(str(n), chunk(n, 8))
    with pytest.raises(MetalayerValueError, match="at most 16 for a frame, got 30"):
        write_cframe(memory)


def test_without_data_the_trailer_stands_right_behind_the_header(path: str) -> None:
    store = new(path)
    for step in range(3):
        store.set_vlmeta("a", chunk(step, 80))
        raw = Path(path).read_bytes()
        assert raw[97:99] == b"\x94\x01"
        assert len(raw) == FrameHeader.from_bytes(raw).frame_len
        store.insert(0, [chunk(0), chunk(1)])
        store.flush()
        store.delete(0)
        store.delete(0)
    raw = Path(path).read_bytes()
    header = FrameHeader.from_bytes(raw)
    assert (header.nbytes, header.cbytes, header.frame_len) == (0, 0, len(raw))
    with FileBytes_open(path) as state:
        assert dict(state.vlmeta) == {"a": chunk(2, 80)}


def test_write_amplification_stays_under_an_eighth(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0
    pwrite = FileBytes.pwrite

    def counted(self: FileBytes, data: bytes | list[bytes], at: int) -> None:
        nonlocal written
        written += len(data) if isinstance(data, bytes) else sum(map(len, data))
        pwrite(self, data, at)

    monkeypatch.setattr(FileBytes, "pwrite", counted)
    chunks = [_engine.compress(os.urandom(CHUNKSIZE), _engine.EncodeParams(typesize=4)) for _ in range(50)]
    for count in (100, 10_000):
        written = 0
        store = new(path)
        for n in range(count):
            store.insert(n, [chunks[n % 50]])
        store.close()
        payload = sum(len(chunks[n % 50]) for n in range(count))
        assert written < 1.125 * payload
        assert Path(path).stat().st_size < 1.125 * payload


def test_the_bytes_that_small_appends_write_do_not_grow(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new(path)
    one = chunk(1)
    written = 0
    pwrite = FileBytes.pwrite

    def counted(self: FileBytes, data: bytes | list[bytes], at: int) -> None:
        nonlocal written
        written += len(data) if isinstance(data, bytes) else sum(map(len, data))
        pwrite(self, data, at)

    monkeypatch.setattr(FileBytes, "pwrite", counted)
    costs = []
    for _ in range(5):
        before = written
        for _ in range(4000):
            store.insert(store.nchunks, [one])
        costs.append(written - before)
    assert max(costs) < 1.125 * 4000 * (len(one) + 16)  # with the seal
    assert store.nchunks == 20_000


def test_nothing_that_the_header_points_to_is_overwritten(path: str) -> None:
    """A reader that opened an old state goes on reading it, whole."""
    store = new(path)
    store.insert(0, [chunk(n) for n in range(5)])
    store.flush()
    with FileBytes_open(path) as old:
        before = [old.source(n) for n in range(5)]
        store.replace(0, chunk(9))
        store.delete(3)
        store.insert(1, [chunk(7), special(1)])
        store.set_vlmeta("a", chunk(1))
        store.flush()
        assert [_engine.decompress(source) for source in before] == [content(n) for n in range(5)]


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("writes", range(4))
def test_a_full_disk_leaves_everything_as_it_was(
    path: str, monkeypatch: pytest.MonkeyPatch, writes: int, *, partial: bool
) -> None:
    store = new(path, meta={"m": b"1"})
    store.insert(0, [chunk(0), special(1), chunk(2, 100)])
    store.set_vlmeta("a", chunk(1))

    def delete_all() -> None:
        for _ in range(3):
            store.delete(0)

    changes: list[Callable[[], object]] = [
        lambda: store.insert(3, [chunk(3)]),
        lambda: store.insert(0, [chunk(n) for n in range(30)]),
        lambda: store.replace(1, chunk(4)),
        lambda: store.replace(0, _engine.compress(os.urandom(40_000), _engine.EncodeParams(typesize=4))),
        lambda: store.reorder([2, 0, 1]),
        lambda: store.set_vlmeta("b", chunk(1)),
        lambda: store.del_vlmeta("a"),
        lambda: store.set_meta("m", b"2"),
        delete_all,
    ]
    seen: list[object] = []
    for number, change in enumerate(changes):
        before, committed = look(store), on_disk(path)
        try:
            with failing_after(writes, monkeypatch, partial=partial), store.batch():
                change()
        except StorageError as error:
            seen.append((isinstance(error, OSError), error.errno, path in str(error)))
            assert look(store) == before, number
            assert on_disk(path) == committed, number
        else:
            store.flush()
            # Start over from the same state.
            store.close()
            store = new(path, meta={"m": b"1"})
            store.insert(0, [chunk(0), special(1), chunk(2, 100)])
            store.set_vlmeta("a", chunk(1))
    assert set(seen) == {(True, errno.ENOSPC, True)}
    assert len(seen) >= (6, 4, 1, 1)[writes]
    store.insert(store.nchunks, [chunk(50)])
    store.flush()
    assert on_disk(path) == everything(store)


def test_a_flush_that_fails_can_be_repeated(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new(path)
    store.insert(0, [special(1), chunk(1, 40)])
    for writes in (0, 1):
        with failing_after(writes, monkeypatch), pytest.raises(StorageError):
            store.flush()
        assert everything(store) == bytes(400) + content(1, 40)
        assert on_disk(path) == b""
    store.flush()
    assert on_disk(path) == bytes(400) + content(1, 40)


def test_a_real_system_error_keeps_its_number(path: str) -> None:
    store = new(path)
    file = cast("ContiguousState", store._open).file
    os.close(file.write_fd)
    file.write_fd = os.open("/dev/full", os.O_WRONLY) if Path("/dev/full").exists() else -2
    with pytest.raises(StorageError) as caught:
        store.set_vlmeta("a", chunk(0))
    assert caught.value.errno in (errno.ENOSPC, errno.EBADF, errno.ESPIPE)
    assert caught.value.filename == path
    assert dict(store.vlmeta) == {}


def test_bytes_of_a_crashed_writer_are_ignored_and_trimmed(path: str) -> None:
    store = new(path)
    store.insert(0, [chunk(0)])
    store.close()
    with Path(path).open("ab") as file:
        file.write(b"half a chunk" * 100)
    store = FrameStore.open(path, writable=True)
    assert everything(store) == content(0)
    store.insert(1, [chunk(1)])
    store.flush()
    assert Path(path).stat().st_size == store.frame_len
    assert on_disk(path) == content(0) + content(1)


def test_handles_of_a_process_share_one_state(path: str, tmp_path: Path) -> None:
    writer = new(path)
    os.link(path, tmp_path / "other-name")
    reader = FrameStore.open(tmp_path / "other-name")
    assert not reader.refresh()
    writer.insert(0, [chunk(0)])
    assert reader.refresh()  # which commits what waits
    assert reader.nchunks == 1
    assert writer.is_committed
    assert (reader.change_tick, writer.change_tick) == (1, 0)
    assert not reader.refresh()
    assert not writer.refresh()
    assert everything(reader) == content(0)
    with pytest.raises(ReadOnlyError, match="reading mode"):
        reader.insert(0, [chunk(0)])
    with pytest.raises(ReadOnlyError, match="reading mode"):
        reader.settings = SETTINGS
    writer.close()
    assert everything(reader) == content(0)
    second = FrameStore.open(path, writable=True)
    second.delete(0)
    assert reader.refresh()
    assert second.is_committed
    assert reader.nchunks == 0


def test_another_process_is_followed(path: str) -> None:
    store = new(path, meta={"m": b"1"})
    store.insert(0, [chunk(0)])
    store.flush()
    other_process(path, "s.insert(1, [chunk(1)])")
    assert store.refresh()
    assert everything(store) == content(0) + content(1)
    other_process(path, "s.set_meta('m', b'2')")
    assert store.refresh()
    assert store.meta["m"] == b"2"
    other_process(path, "s.set_vlmeta('a', chunk(3))")
    store.insert(2, [chunk(2)])
    assert list(store.vlmeta) == ["a"]
    assert everything(store) == content(0) + content(1) + content(2)
    assert store.change_tick >= 2


def test_a_vlmeta_change_of_the_same_size_without_data_is_noticed(path: str) -> None:
    store = new(path)
    store.set_vlmeta("a", chunk(1, 8))
    other_process(path, "s.set_vlmeta('a', chunk(2, 8))")
    assert store.refresh()
    assert store.vlmeta["a"] == chunk(2, 8)


def test_a_conflict_with_another_process_is_told(path: str) -> None:
    store = new(path)
    store.insert(0, [special(1)])
    other_process(path, "s.insert(0, [chunk(1)])")
    with pytest.raises(StorageError, match="changed by another process while changes made here waited"):
        store.flush()
    assert everything(store) == content(1)
    store.insert(1, [chunk(2)])
    store.flush()
    assert on_disk(path) == content(1) + content(2)


def test_a_frame_that_is_damaged_while_open_raises(path: str) -> None:
    store = new(path)
    store.insert(0, [chunk(0)])
    store.flush()
    os.truncate(path, 200)
    with Path(path).open("r+b") as file:
        file.seek(0x10)
        file.write(b"\0\0\0\0\0\0\x10\0")
    with pytest.raises(FormatError, match="frame"):
        store.refresh()


def test_threads_read_while_one_writes(path: str) -> None:
    store = new(path)
    store.insert(0, [chunk(0)])
    errors: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        try:
            reader = FrameStore.open(path)
            while not stop.is_set():
                reader.refresh()
                nchunks = reader.nchunks
                for n in range(max(nchunks - 3, 0), nchunks):
                    assert _engine.decompress(reader.source(n)) == content(n)
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(1, 400):
        store.insert(n, [chunk(n)])
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors


def test_settings_are_recorded_with_the_next_commit(path: str) -> None:
    store = new(path)
    store.insert(0, [chunk(0)])
    changed = FrameSettings(typesize=4, codec=33, clevel=9, splitmode=1, use_dict=True)
    store.settings = changed
    store.flush()
    raw = Path(path).read_bytes()
    header = FrameHeader.from_bytes(raw)
    assert (header.codec, header.clevel, header.splitmode, header.use_dict) == (33, 9, 1, True)
    assert (raw[0x1B], raw[0x4D]) == (0x96, 33)
    with FileBytes_open(path) as state:
        assert state.settings == changed


def test_settings_that_no_header_can_hold_are_refused() -> None:
    for bad in ({"typesize": 0}, {"clevel": 16}, {"codec": 256}, {"filters": b""}, {"splitmode": 0}):
        with pytest.raises(ValueError, match=r"expected \d+ to \d+, got"):
            FrameSettings(**bad)


def test_a_frame_inside_another_file(path: str) -> None:
    store = new(path)
    store.insert(0, [chunk(0), chunk(1)])
    one = write_cframe(store)
    store.close()
    with Path(path).open("wb") as file:
        file.write(b"prefix" + one + one)
    first = FrameStore.open(path, offset=6)
    last = FrameStore.open(path, offset=6 + len(one), writable=True)
    assert everything(first) == everything(last) == content(0) + content(1)
    with pytest.raises(ReadOnlyError, match="another frame follows"):
        FrameStore.open(path, offset=6, writable=True)
    last.insert(2, [chunk(2)])
    last.set_vlmeta("a", chunk(1))
    last.replace(0, chunk(5))
    last.flush()
    assert everything(last) == content(5) + content(1) + content(2)
    assert everything(first) == content(0) + content(1)
    assert Path(path).read_bytes()[: 6 + len(one)] == b"prefix" + one
    last.close()
    with Path(path).open("ab") as file:
        file.write(b"something")
    with pytest.raises(ReadOnlyError, match="9 bytes follow"):
        FrameStore.open(path, offset=6 + len(one), writable=True)
    with pytest.raises(FormatError, match=r"data\.b2frame: frame magic"):
        FrameStore.open(path, offset=5)
    with pytest.raises(FormatError, match="frame header at byte 0: need 87 bytes, got 0"):
        FrameStore.open(path, offset=10**6)


def test_a_frame_before_another_one_is_not_written_over(path: str) -> None:
    new(path).close()
    raw = Path(path).read_bytes()
    with Path(path).open("ab") as file:
        file.write(raw)
    with pytest.raises(ReadOnlyError, match="another frame follows"):
        FrameStore.open(path, writable=True)
    assert FrameStore.open(path).nchunks == 0


def test_what_cannot_be_opened_is_explained(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FrameStore.open(tmp_path / "none")
    with pytest.raises(FormatError, match=r"sparse frame at byte 0: expected a file chunks\.b2frame"):
        FrameStore.open(tmp_path)
    (tmp_path / "text").write_text("hello" * 100)
    with pytest.raises(FormatError, match=r"text: frame magic at byte 1: expected .*b2frame"):
        FrameStore.open(tmp_path / "text")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="expected a regular file"):
        FrameStore.open(tmp_path / "pipe")
    with pytest.raises(ValueError, match="offset"):
        FrameStore.open(tmp_path / "text", offset=-1)
    with pytest.raises(ValueError, match="chunksize"):
        new(str(tmp_path / "x"), 2**31)


def test_a_copy_on_write_store_leaves_the_file_alone(path: str) -> None:
    store = new(path)
    store.insert(0, [chunk(n) for n in range(3)])
    store.close()
    raw = Path(path).read_bytes()
    copy = MemoryStore.over(FrameStore.open(path))
    copy.replace(0, chunk(9))
    copy.insert(3, [special(1)])
    copy.set_vlmeta("a", chunk(1))
    assert everything(copy) == content(9) + content(1) + content(2) + bytes(400)
    copy.close()
    assert Path(path).read_bytes() == raw


def test_descriptors_are_given_back(path: str) -> None:
    new(path).close()
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(FormatError):
            FrameStore.open(path, offset=1)
        handles = [FrameStore.open(path, writable=n % 2 == 0) for n in range(4)]
        for handle in handles:
            handle.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
