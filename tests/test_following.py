"""A handle notices what C-Blosc2 does to a frame that leaves the header's bytes as they are."""

from __future__ import annotations

import mmap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import superchunk

if TYPE_CHECKING:
    from collections.abc import Callable

blosc2 = pytest.importorskip("blosc2")

CHUNK = 20_000
HEADER = 87
INDEX_NAME = "chunks.b2frame"


def content(seed: int) -> bytes:
    """Return a chunk of which the first bytes cannot be compressed, of some seeds more than of others."""
    noise = 5000 + 1000 * (seed % 3)
    return np.random.default_rng(seed).integers(0, 256, noise, dtype="u1").tobytes().ljust(CHUNK, b"\0")


def index_file(path: str) -> Path:
    """Return the file with header, index and trailer."""
    return Path(path) / INDEX_NAME if Path(path).is_dir() else Path(path)


def chunks_of(handle: superchunk.SChunk) -> list[bytes]:
    return [handle.decompress_chunk(n) or b"" for n in range(handle.nchunks)]


def by_c_blosc2(path: str) -> list[bytes]:
    handle = blosc2.open(path, mode="r")
    return [handle.decompress_chunk(n) for n in range(handle.nchunks)]


def reorder(path: str) -> None:
    blosc2.open(path, mode="a").reorder_offsets([2, 0, 1])


def delete_and_append(path: str) -> None:
    handle = blosc2.open(path, mode="a")
    handle.delete_chunk(0)
    handle.append_data(content(9))


def two_updates(path: str) -> None:
    handle = blosc2.open(path, mode="a")
    handle.update_data(0, content(1), copy=True)
    handle.update_data(1, content(0), copy=True)


def make(path: str, *, contiguous: bool, vlmeta: bool = False) -> None:
    superchunk.remove_urlpath(path)
    handle = blosc2.SChunk(
        chunksize=CHUNK, urlpath=path, contiguous=contiguous, mode="w", cparams=blosc2.CParams(typesize=1)
    )
    for seed in range(3):
        handle.append_data(content(seed))
    if vlmeta:
        handle.vlmeta["who"] = "them"


def set_vlmeta(path: str) -> None:
    handle = blosc2.open(path, mode="a")
    handle.vlmeta["who"] = "they"


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "directory"])
@pytest.mark.parametrize("change", [reorder, delete_and_append, two_updates, set_vlmeta])
def test_changes_that_leave_the_header_as_it_is_are_seen_by_every_handle(
    tmp_path: Path, change: Callable[[str], None], *, contiguous: bool
) -> None:
    path = str(tmp_path / "frame")
    make(path, contiguous=contiguous, vlmeta=change is set_vlmeta)
    with superchunk.open(path) as early, superchunk.open(path, mode="a") as writer:
        assert chunks_of(early) == [content(seed) for seed in range(3)]
        header = index_file(path).read_bytes()[:HEADER]
        change(path)
        if change is not delete_and_append or not contiguous:
            assert index_file(path).read_bytes()[:HEADER] == header, "this change does not test anything"
        expected = by_c_blosc2(path)
        theirs = blosc2.open(path, mode="r")
        layers = theirs.vlmeta.getall()
        for handle in (early, writer):
            assert chunks_of(handle) == expected
            assert handle.vlmeta.getall() == layers
        with superchunk.open(path) as late:
            assert chunks_of(late) == expected
        assert not early.refresh()
        assert chunks_of(early) == expected


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "directory"])
def test_a_change_is_one_change_however_long_it_is_looked_at(tmp_path: Path, *, contiguous: bool) -> None:
    path = str(tmp_path / "frame")
    make(path, contiguous=contiguous)
    with superchunk.open(path) as handle:
        tick = handle._handle.store.change_tick
        for _ in range(3):
            assert not handle.refresh()
            assert handle.nchunks == 3
        reorder(path)
        expected = by_c_blosc2(path)
        for _ in range(50):
            assert chunks_of(handle) == expected
        assert handle._handle.store.change_tick == tick + 1


def written_through_a_mapping(path: Path, raw: bytes) -> None:
    """Give a file other bytes by a page that is dirty already, which leaves its times as they are."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[:] = mapping[:]
        before = path.stat()
        mapping[:] = raw
        after = path.stat()
    if (before.st_mtime_ns, before.st_ctime_ns) != (after.st_mtime_ns, after.st_ctime_ns):
        pytest.skip("this system moves the times of mappings")


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "directory"])
@pytest.mark.parametrize("by", ["refresh", "open"])
def test_refresh_and_a_new_handle_see_what_leaves_the_times_as_they_are(
    tmp_path: Path, by: str, *, contiguous: bool
) -> None:
    path, other = str(tmp_path / "frame"), str(tmp_path / "other")
    for one in (path, other):
        make(one, contiguous=contiguous)
    reorder(other)
    raw = index_file(other).read_bytes()
    assert len(raw) == index_file(path).stat().st_size
    with superchunk.open(path) as handle:
        assert chunks_of(handle) == [content(seed) for seed in range(3)]
        written_through_a_mapping(index_file(path), raw)
        if by == "refresh":
            assert handle.refresh()
        else:
            with superchunk.open(path) as late:
                assert chunks_of(late) == by_c_blosc2(other)
        assert chunks_of(handle) == by_c_blosc2(other)
        assert not handle.refresh()


def test_changes_that_wait_here_are_no_change_of_others(tmp_path: Path) -> None:
    path = str(tmp_path / "frame")
    for seal in (True, False):
        superchunk.SChunk(chunksize=CHUNK, urlpath=path, mode="w", seal=seal).close()
        with superchunk.open(path, mode="a", seal=seal) as writer, superchunk.open(path) as reader:
            for seed in range(40):
                writer.append_data(bytes([seed]) * CHUNK)
                assert not writer.refresh()
                assert writer.nchunks == seed + 1
                assert reader.nchunks <= seed + 1
                if seed % 5 == 0:
                    with superchunk.open(path) as late:  # which commits what waits
                        assert late.nchunks == reader.nchunks == seed + 1
            writer.vlmeta["a"] = 1
            assert chunks_of(reader) == [bytes([seed]) * CHUNK for seed in range(40)]


def test_items_that_were_kept_are_not_those_of_a_page_written_through_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "frame"
    data = np.random.default_rng(1).integers(0, 1 << 16, 1 << 16).astype("<i4")
    cparams = superchunk.CParams(codec=superchunk.Codec.LZ4, typesize=4, filters=[superchunk.Filter.SHUFFLE])
    superchunk.SChunk(data=data, chunksize=data.nbytes, urlpath=str(path), mode="w", cparams=cparams).close()
    plane = (data & 255).astype("u1")[96:120].tobytes()
    at = path.read_bytes().index(plane) + 4
    with (
        superchunk.open(str(path)) as handle,
        path.open("r+b") as file,
        mmap.mmap(file.fileno(), 0) as mapping,
    ):
        expected = int(data[100])
        for change in (0, 0xFF, 0x0F, 0x3C):
            mapping[at] ^= change
            expected ^= change
            for pause in (0, 0, 0, 0.1, 0, 0):  # blocks are kept only when a file has stood still
                time.sleep(pause)
                assert int.from_bytes(handle[100:101], "little") == expected


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "directory"])
def test_sizes_that_vary_are_those_of_the_chunks_that_are_there(tmp_path: Path, *, contiguous: bool) -> None:
    path = str(tmp_path / "frame")
    noise = np.random.default_rng(1).integers(0, 256, 9000, dtype="u1").tobytes()
    with superchunk.SChunk(-1, urlpath=path, contiguous=contiguous, mode="w", seal=False) as ours:
        for data in (noise[:9000], noise[:5000], noise[:4000]):
            ours.append_data(data)

    def update(*lengths: int) -> None:
        theirs = blosc2.open(path, mode="a")
        for number, length in enumerate(lengths, 1):
            theirs.update_data(number, noise[:length], copy=True)

    update(6000, 3000)
    with superchunk.open(path) as handle:
        assert handle[:] == b"".join(by_c_blosc2(path))
        before = index_file(path).read_bytes()[:HEADER]
        update(3000, 6000)
        assert index_file(path).read_bytes()[:HEADER] == before, "this change does not test anything"
        chunks = by_c_blosc2(path)
        assert chunks_of(handle) == chunks
        assert handle[:] == b"".join(chunks)
        assert handle[9000:12_000] == chunks[1]


def test_a_handle_that_has_just_been_opened_with_locking_has_no_news(tmp_path: Path) -> None:
    path = str(tmp_path / "a.b2nd")
    writer = superchunk.zeros((10, 10), chunks=(10, 10), urlpath=path, locking=True)
    reader = superchunk.open(path, locking=True)
    assert not reader.refresh()
    writer.resize((8, 10))
    assert reader.refresh()
    assert reader.shape == (8, 10)
    assert not reader.refresh()
    writer.close()
    reader.close()
