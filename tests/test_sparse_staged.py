"""Several writers of one sparse frame: ids handed out, files placed, one commit."""

from __future__ import annotations

import errno
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk
from superchunk import SChunk, stage_chunk
from superchunk.exceptions import ArgumentError, ChunkIndexError, FormatError, ReadOnlyError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from superchunk import StagedChunk

CHUNK = 4000


def part(seed: int) -> bytes:
    """Return the content of a chunk; every fifth is of one value."""
    if seed % 5 == 0:
        return bytes(CHUNK)
    return b"".join((seed * 7919 + n * n % 251).to_bytes(4, "little") for n in range(CHUNK // 4))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.b2frame"


@pytest.fixture
def coordinator(path: Path) -> Iterator[SChunk]:
    with SChunk(chunksize=CHUNK, urlpath=path, contiguous=False, cparams={"typesize": 4, "clevel": 3}) as s:
        yield s


def parts(schunk: SChunk) -> list[bytes]:
    """Return the content of each chunk."""
    return [schunk.decompress_chunk(n) or b"" for n in range(schunk.nchunks)]


def work(path: str, chunk_id: int, seed: int) -> StagedChunk:
    """Do what one process of many does."""
    return stage_chunk(path, chunk_id, part(seed))


def test_processes_write_and_one_commits(path: Path, coordinator: SChunk) -> None:
    ids = coordinator.reserve_chunk_ids(20)
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawning) as workers:
        staged = list(workers.map(work, [str(path)] * 20, ids, range(20)))
    with superchunk.open(path) as reader:
        assert reader.nchunks == 0
        coordinator.append_data(part(99))  # meanwhile it may write chunks of its own
        assert coordinator.append_staged(staged) == 21
        coordinator.flush()
        assert parts(reader) == [part(99)] + [part(n) for n in range(20)]
    assert len(list(path.glob("*.chunk"))) == 17  # no file for one value
    assert not list(path.glob(".*"))


def test_staged_chunks_are_small_and_can_be_pickled(path: Path, coordinator: SChunk) -> None:
    (ident,) = coordinator.reserve_chunk_ids(1)
    staged = stage_chunk(path, ident, part(1), cparams={"clevel": 9})
    assert pickle.loads(pickle.dumps(staged)) == staged  # noqa: S301 - our own
    assert (staged.chunk_id, staged.nbytes, staged.special) == (ident, CHUNK, b"")
    assert staged.cbytes == (path / f"{ident:08X}.chunk").stat().st_size - 16


def test_replacing_a_chunk(path: Path, coordinator: SChunk) -> None:
    for seed in range(3):
        coordinator.append_data(part(seed + 1))
    first, second = coordinator.reserve_chunk_ids(2)
    assert coordinator.replace_staged(1, stage_chunk(path, first, part(8))) == 3
    assert coordinator.replace_staged(2, stage_chunk(path, second, part(10))) == 3
    coordinator.flush()
    assert parts(coordinator) == [part(1), part(8), part(10)]
    assert {file.name for file in path.glob("*.chunk")} == {"00000000.chunk", f"{first:08X}.chunk"}
    with pytest.raises(ChunkIndexError):
        coordinator.replace_staged(3, stage_chunk(path, second, part(10)))


def test_an_id_that_has_a_file_is_refused(path: Path, coordinator: SChunk) -> None:
    (ident,) = coordinator.reserve_chunk_ids(1)
    staged = stage_chunk(path, ident, part(1))
    before = (path / f"{ident:08X}.chunk").read_bytes()
    with pytest.raises(StorageError, match="a chunk file of that id already") as caught:
        stage_chunk(path, ident, part(2))
    assert caught.value.errno == errno.EEXIST
    assert (path / f"{ident:08X}.chunk").read_bytes() == before
    assert not list(path.glob(".*"))
    coordinator.append_staged([staged])


def test_ids_must_be_reserved_here_and_are_used_once(path: Path, coordinator: SChunk) -> None:
    with pytest.raises(ArgumentError, match="chunk_id"):
        coordinator.append_staged([stage_chunk(path, 77, part(1))])
    (ident,) = coordinator.reserve_chunk_ids(1)
    staged = stage_chunk(path, ident, part(1))
    coordinator.append_staged([staged])
    with pytest.raises(ArgumentError, match="not in use yet"):
        coordinator.append_staged([staged])
    assert parts(coordinator) == [part(1)]
    for wrong in (-1, 2**32):
        with pytest.raises(ArgumentError, match="chunk_id"):
            stage_chunk(path, wrong, part(1))


@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "other"])
def test_a_file_that_is_not_what_was_staged_is_refused_and_nothing_added(
    path: Path, coordinator: SChunk, damage: str
) -> None:
    ids = coordinator.reserve_chunk_ids(2)
    staged = [stage_chunk(path, ident, part(1 + n)) for n, ident in enumerate(ids)]
    file = path / f"{ids[1]:08X}.chunk"
    good = file.read_bytes()
    bad = bytearray(good)
    bad[50] ^= 4
    file.unlink()
    if damage != "gone":
        other = superchunk.compress2(part(3), typesize=4)
        file.write_bytes({"flip": bytes(bad), "cut": good[:-1], "other": other}[damage])
    with pytest.raises((FormatError, StorageError), match=file.name):
        coordinator.append_staged(staged)
    assert coordinator.nchunks == 0
    file.write_bytes(good)
    assert coordinator.append_staged(staged) == 2
    coordinator.flush()
    assert parts(coordinator) == [part(1), part(2)]


def test_reserved_ids_are_not_given_to_others(path: Path, coordinator: SChunk) -> None:
    ids = coordinator.reserve_chunk_ids(3)
    for seed in range(1, 200):
        coordinator.append_data(part(seed)) if seed < 4 else coordinator.update_data(seed % 3, part(seed), copy=True)
        assert not any((path / f"{ident:08X}.chunk").exists() for ident in ids)
    coordinator.append_staged([stage_chunk(path, ident, part(1)) for ident in ids])
    assert coordinator.nchunks == 6


def test_what_was_never_added_goes_when_the_next_writer_opens(path: Path, coordinator: SChunk) -> None:
    (ident,) = coordinator.reserve_chunk_ids(1)
    staged = stage_chunk(path, ident, part(1))
    coordinator.close()
    with superchunk.open(path, mode="a") as s:
        assert not list(path.glob("*.chunk"))
        with pytest.raises(ArgumentError, match="reserve_chunk_ids"):
            s.append_staged([staged])


def test_only_sparse_frames_take_them(tmp_path: Path, path: Path, coordinator: SChunk) -> None:
    with pytest.raises(ArgumentError, match="contiguous=False"):
        SChunk().reserve_chunk_ids(1)
    with SChunk(urlpath=tmp_path / "file") as s, pytest.raises(ArgumentError, match="contiguous=False"):
        s.reserve_chunk_ids(1)
    with pytest.raises(ArgumentError, match="directory of a sparse frame"):
        stage_chunk(tmp_path / "file", 0, b"abc")
    with superchunk.open(path) as reader, pytest.raises(ReadOnlyError):
        reader.reserve_chunk_ids(1)
    with pytest.raises(ArgumentError, match="n: expected 0 or more"):
        coordinator.reserve_chunk_ids(-1)
    with pytest.raises(ValueError, match="at least 1 byte"):
        stage_chunk(path, 0, b"")


@pytest.mark.parametrize(
    ("codec", "filters", "dtype"),
    [("NDLZ", [0], "u1"), ("ZFP_RATE", [0], "f4"), ("ZSTD", [32], "i4"), ("ZSTD", [33], "f4")],
)
def test_chunks_that_go_by_the_shape_of_blocks_are_staged(
    path: Path, codec: str, filters: list[int], dtype: str
) -> None:
    if codec.startswith("ZFP"):
        pytest.importorskip("zfpy")
    items = np.add.outer(np.arange(8), np.arange(8)).astype(dtype)
    meta = {"NDLZ": 4, "ZFP_RATE": 50}.get(codec, 0)
    way: Any = {
        "codec": superchunk.Codec[codec],
        "codec_meta": meta,
        "filters": filters,
        "filters_meta": [4],
        "nthreads": 1,
    }
    with superchunk.zeros(
        (16, 16), dtype, chunks=(8, 8), blocks=(8, 8), urlpath=path, contiguous=False, cparams=way
    ) as a:
        (chunk_id,) = a.schunk.reserve_chunk_ids(1)
        a.schunk.replace_staged(2, stage_chunk(path, chunk_id, np.ascontiguousarray(items)))
        whole = superchunk.asarray(items, blocks=(8, 8), chunks=(8, 8), cparams=way)
        assert a.schunk.get_chunk(2) == whole.schunk.get_chunk(0)
        assert np.array_equal(a[8:, :8], whole[:])


def test_a_codec_in_python_compresses_what_is_staged(path: Path) -> None:
    seen: list[object] = []

    def encode(block: Any, output: Any, _: int, schunk: object) -> int:
        seen.append(schunk)
        output[: len(block) // 2] = block[: len(block) // 2]
        return len(block) // 2

    def decode(block: Any, output: Any, _: int, schunk: object) -> int:
        del schunk
        output[:] = np.tile(block, 2)
        return len(output)

    superchunk.register_codec("halves", 201, encode, decode)
    try:
        way: Any = {"typesize": 1, "codec": 201, "nthreads": 1, "blocksize": CHUNK, "filters": [0]}
        half = part(1)[: CHUNK // 2]
        with SChunk(chunksize=CHUNK, urlpath=path, contiguous=False, cparams=way, dparams={"nthreads": 1}) as s:
            (chunk_id,) = s.reserve_chunk_ids(1)
            s.append_staged([stage_chunk(path, chunk_id, half * 2)])
            assert s.decompress_chunk(0) == half * 2
        assert seen == [None]
    finally:
        del superchunk.ucodecs_registry[201]
