"""Chunks in files that are only named, and what the engine asks of files beyond their bytes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_engine_seals import BOUNDLESS, PACKED, PLAIN, content, sealed

from superchunk import _engine
from superchunk._codec.stored_chunks import chunk_bytes
from superchunk._store.chunk_sources import read_range
from superchunk.exceptions import MissingFileError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk._engine import Source


# ---- chunks in named files ----


@pytest.mark.parametrize("nthreads", [1, 2, 4])
def test_a_named_file_is_read_like_an_open_one(tmp_path: Path, nthreads: int) -> None:
    data = content(300_000)
    chunk = _engine.compress(data, PACKED)
    path = tmp_path / "chunk"
    path.write_bytes(b"front" + chunk + b"behind")
    source = (str(path), 5, len(chunk))
    assert _engine.decompress(source, nthreads=nthreads) == data
    assert _engine.read([(source, len(data), 1000, 299_000, 0)], nthreads=nthreads) == data[1000:299_000]
    info, expected = _engine.describe(source), _engine.describe(chunk)
    assert (info.nbytes, info.cbytes, info.filters) == (expected.nbytes, expected.cbytes, expected.filters)
    assert _engine.sizes([source, chunk]) == [(len(data), len(chunk))] * 2
    assert _engine.lazy_chunk(source, 3, 9) == _engine.lazy_chunk(chunk, 3, 9)
    blocks = [b"one", b"other" * 1000]
    path.write_bytes(_engine.compress_vlblocks(blocks, PACKED))
    assert _engine.read_vlblocks((str(path), 0, BOUNDLESS), nthreads=nthreads) == blocks
    path.write_bytes(_engine.special_chunk(3, 400, 4, b"abcd"))
    assert _engine.describe((str(path), 0, BOUNDLESS)).repeated_value == b"abcd"


def test_reading_names_the_request_that_failed(tmp_path: Path) -> None:
    chunk = _engine.compress(content(100_000), PACKED)
    (tmp_path / "chunk").write_bytes(chunk)
    good = (str(tmp_path / "chunk"), 0, BOUNDLESS)
    bad = (str(tmp_path / "missing"), 0, BOUNDLESS)
    requests = [(good if n != 70 else bad, 100_000, 0, 100_000, n * 100_000) for n in range(80)]
    for nthreads in (1, 2, 100):
        with pytest.raises(MissingFileError) as caught:
            _engine.read(requests, nthreads=nthreads)
        assert caught.value.nrequest == 70  # type: ignore[attr-defined]


def test_chunks_in_named_files_come_undecoded(tmp_path: Path) -> None:
    chunk = _engine.compress(content(1000), PACKED)
    path = tmp_path / "chunk"
    path.write_bytes(b"front" + chunk + b"behind")
    with path.open("rb") as file:
        sources: list[Source] = [(str(path), 5, BOUNDLESS), (file.fileno(), 5, BOUNDLESS), chunk + b"behind"]
        assert [chunk_bytes(source) for source in sources] == [chunk] * 3
    assert read_range((str(path), 5, BOUNDLESS), 10**6) == chunk + b"behind"
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(StorageError) as caught:
        read_range((str(tmp_path / "link"), 0, BOUNDLESS), 1)
    assert (caught.value.errno, caught.value.filename) == (errno.ELOOP, str(tmp_path / "link"))


CALLS: list[Callable[[Source], object]] = [
    _engine.describe,
    _engine.decompress,
    _engine.read_vlblocks,
    lambda source: _engine.sizes([source]),
    lambda source: _engine.lazy_chunk(source, 0, 0),
    lambda source: _engine.read([(source, -1, 0, 1, 0)]),
    lambda source: _engine.read([(source, -1, 0, 1_000_000, 0)], nthreads=2),
    lambda source: _engine.hash64([source]),
    lambda source: _engine.hash128([b"", source]),
]


@pytest.mark.parametrize("call", CALLS)
def test_only_regular_files_are_opened(tmp_path: Path, call: Callable[[Source], object]) -> None:
    target = tmp_path / "chunk"
    target.write_bytes(sealed(100)[0])
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    expected = {"missing": errno.ENOENT, "link": errno.ELOOP, "pipe": errno.EINVAL, ".": errno.EISDIR}
    for name, number in expected.items():
        path = f"{tmp_path}/{name}"
        with pytest.raises(StorageError) as caught:
            call((path, 0, 100))
        assert (caught.value.errno, caught.value.filename) == (number, path)
        assert isinstance(caught.value, FileNotFoundError) is (name == "missing")


def test_a_name_that_no_file_can_have_is_an_error() -> None:
    with pytest.raises(StorageError) as caught:
        _engine.describe(("a\0b", 0, 100))
    assert caught.value.errno == errno.EINVAL


def test_a_name_that_is_not_utf8_is_found(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    Path(path).write_bytes(sealed(100)[0])
    assert _engine.decompress((path, 0, BOUNDLESS)) == content(100)
    with pytest.raises(MissingFileError) as caught:
        _engine.decompress((path + "x", 0, BOUNDLESS))
    assert caught.value.filename == path + "x"


@pytest.mark.parametrize("source", [("chunk", -1, 5), ("chunk", 0, -5), (b"chunk", 0, 5), ("chunk", 0), (-1, 0, 5)])
def test_what_is_no_source_is_refused(source: tuple[object, ...]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        _engine.describe(source)  # type: ignore[arg-type]


FEW_DESCRIPTORS = """
import os, resource, sys
from superchunk import _engine

folder, count, nbytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
sources = [(f"{folder}/{n % 10}", 0, 1 << 40) for n in range(count)]
before = os.listdir("/proc/self/fd")
for nthreads in (1, 2, count):
    assert _engine.check_seals(sources, nthreads) == [(0, nbytes + 32)] * count
    requests = [(source, nbytes, 0, nbytes, n * nbytes) for n, source in enumerate(sources)]
    content = _engine.read(requests, nthreads=nthreads)
    assert all(content[n * nbytes] == content[(n + 1) * nbytes - 1] == n % 10 for n in range(count))
assert _engine.sizes(sources) == [(nbytes, nbytes + 32)] * count
assert _engine.hash64([(path, 0, nbytes) for path, _, _ in sources]) != _engine.hash64([])
assert os.listdir("/proc/self/fd") == before
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_many_named_files_need_few_descriptors(tmp_path: Path) -> None:
    nbytes = 500
    for n in range(10):
        chunk = _engine.compress(bytes([n]) * nbytes, PLAIN)
        (tmp_path / str(n)).write_bytes(chunk + _engine.seal(chunk))
    command = [sys.executable, "-c", FEW_DESCRIPTORS, str(tmp_path), "3000", str(nbytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---- files ----


def test_a_probe_notices_every_change(tmp_path: Path) -> None:
    path = tmp_path / "frame"
    data = content(2000)
    path.write_bytes(data)
    with path.open("rb") as file:
        fd = file.fileno()
        assert not _engine.Watch(fd, 0, data).changed()
        assert not _engine.Watch(fd, 100, data[100:187]).changed()
        assert not _engine.Watch(fd, 0, b"").changed()
        assert _engine.Watch(fd, 0, data[:86] + b"\xff").changed()
        assert _engine.Watch(fd, 0, data[:-1] + b"\xff").changed()
        assert _engine.Watch(fd, 1999, data[1999:] + b"x").changed()
        assert _engine.Watch(fd, 2**40, b"x").changed()
        with path.open("r+b") as other:
            other.seek(150)
            other.write(b"\xff\xfe")
        assert _engine.Watch(fd, 100, data[100:187]).changed()
        assert not _engine.Watch(fd, 0, data[:100]).changed()


@pytest.mark.parametrize("how", ["unlink", "rename over"])
def test_a_probe_notices_that_the_file_lost_its_name(tmp_path: Path, how: str) -> None:
    path, other = tmp_path / "frame", tmp_path / "other"
    path.write_bytes(b"content")
    other.write_bytes(b"content")
    with path.open("rb") as file:
        assert not _engine.Watch(file.fileno(), 0, b"content").changed()
        if how == "unlink":
            path.unlink()
        else:
            other.replace(path)
        assert _engine.Watch(file.fileno(), 0, b"content").changed()


def test_a_watch_on_a_name_notices_another_file_there(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_bytes(b"content")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with path.open("rb") as file:
            watch = _engine.Watch(file.fileno(), 0, b"content", (folder, "index"))
            assert not watch.changed()
            assert watch.probe == b"content"
            (tmp_path / "kept").hardlink_to(path)  # the old index keeps a name
            assert not watch.changed()
            other = tmp_path / "other"
            other.write_bytes(b"content")
            other.replace(path)
            assert watch.changed()
            path.unlink()
            assert watch.changed()
            (tmp_path / "kept").replace(path)
            assert not watch.changed()
            path.write_bytes(b"CONTENT")
            assert watch.changed()
            with pytest.raises(ValueError, match="name"):
                _engine.Watch(file.fileno(), 0, b"", (folder, "a\0b"))
    finally:
        os.close(folder)


def test_a_probe_of_a_closed_file_is_an_error(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    os.close(fd)
    with pytest.raises(StorageError) as caught:
        _engine.Watch(fd, 0, b"x").changed()
    assert caught.value.errno == errno.EBADF
    with pytest.raises(ValueError, match="fd"):
        _engine.Watch(-1, 0, b"x").changed()


def test_a_file_system_is_synced_or_says_that_it_cannot_be(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        if sys.platform == "linux":
            _engine.sync_filesystem(fd)
        else:
            with pytest.raises(StorageError) as caught:
                _engine.sync_filesystem(fd)
            assert caught.value.errno == errno.ENOTSUP
    finally:
        os.close(fd)
    with pytest.raises(StorageError):
        _engine.sync_filesystem(fd)
