"""Small reads of a frame in a file: one call, a cache of decoded blocks, and always what the general way reads."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

import superchunk
from superchunk import SChunk, _engine
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from superchunk.params import CParamsDict

ITEMS = (np.arange(200_000) // 3 * 7919 % 100_003).astype("i4")
STILL = 0.06
"""Seconds after which blocks of a file that nobody writes are kept."""


@pytest.fixture(params=["cache", "no cache"])
def _limit(request: pytest.FixtureRequest) -> Iterator[None]:
    before = _engine.set_cache_limit(2**22 if request.param == "cache" else 0)
    yield
    _engine.set_cache_limit(before)


def saved(path: Path, cparams: CParamsDict | None = None) -> str:
    """Return the path of a frame of some chunks of several blocks."""
    with SChunk(data=ITEMS, chunksize=200_000, urlpath=path, cparams={"blocksize": 32_768, **(cparams or {})}):
        return str(path)


@pytest.mark.usefixtures("_limit")
@pytest.mark.parametrize("kind", [superchunk.Filter.SHUFFLE, superchunk.Filter.NOFILTER, superchunk.Filter.DELTA])
def test_they_agree_with_the_array_wherever_they_are(tmp_path: Path, kind: superchunk.Filter) -> None:
    places = np.random.default_rng(1).integers(0, ITEMS.size, 300).tolist()
    with superchunk.open(saved(tmp_path / "f", {"filters": [kind]}), mode="r") as s:
        s[0]
        time.sleep(STILL)
        for start in places:
            for low in (start, start, start + 1):
                for length in (1, 10, 1000, 20_000):
                    assert s[low : low + length] == ITEMS[low : low + length].tobytes()
            assert s[start] == s[start - ITEMS.size] == ITEMS[start].tobytes()


@pytest.mark.usefixtures("_limit")
def test_commits_of_others_are_seen_at_once(tmp_path: Path) -> None:
    path = saved(tmp_path / "f")
    with superchunk.open(path, mode="r") as reader, superchunk.open(path, mode="a") as writer:
        for value in range(5):
            for _ in range(3):
                reader[1000:1010]
            time.sleep(STILL)
            for _ in range(3):
                reader[1000:1010]
            new = np.full(10, value, "i4").tobytes()
            writer[1000:1010] = new
            assert reader[1000:1010] == new
            writer.flush()
            assert reader[1000:1010] == new
            assert reader[1010:1020] == ITEMS[1010:1020].tobytes()


def test_a_file_that_is_changed_in_place_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "f"
    saved(path, {"clevel": 0})
    content = bytearray(path.read_bytes())
    at = content.index(ITEMS[1000:1010].tobytes())
    with superchunk.open(str(path), mode="r") as s:
        for _ in range(3):
            s[1000:1010]
        time.sleep(STILL)
        for _ in range(3):
            assert s[1000:1010] == ITEMS[1000:1010].tobytes()
        with path.open("r+b") as file:  # as C-Blosc2 does with a chunk that gets no larger
            file.seek(at)
            file.write(bytes(40))
        assert s[1000:1010] == bytes(40)


def test_a_frame_that_takes_the_name_is_read(tmp_path: Path) -> None:
    path = saved(tmp_path / "f")
    with superchunk.open(path, mode="r") as s:
        s[5]
        time.sleep(STILL)
        for _ in range(3):
            assert s[5] == ITEMS[5].tobytes()
        SChunk(data=ITEMS[::-1].copy(), urlpath=tmp_path / "g").close()
        (tmp_path / "g").replace(path)
        assert s[5] == ITEMS[-6].tobytes()


@pytest.mark.usefixtures("_limit")
def test_damage_is_told_as_by_the_general_way(tmp_path: Path) -> None:
    path = tmp_path / "f"
    saved(path)
    content = bytearray(path.read_bytes())
    with superchunk.open(str(path), mode="r") as s:
        start = s._handle.store.source(0)[1]
    content[start + 32 : start + 36] = b"\xff\xff\xff\x7f"
    path.write_bytes(content)
    with superchunk.open(str(path), mode="r") as s, pytest.raises(FormatError, match="bstarts"):
        s[0:10]


@pytest.mark.usefixtures("_limit")
def test_many_threads_read_one_handle(tmp_path: Path) -> None:
    wrong: list[int] = []
    with superchunk.open(saved(tmp_path / "f"), mode="r") as s:
        s[0]
        time.sleep(STILL)

        def work(seed: int) -> None:
            places = np.random.default_rng(seed).integers(0, ITEMS.size - 50, 500).tolist()
            wrong.extend(at for at in places if s[at : at + 50] != ITEMS[at : at + 50].tobytes())

        crew = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for one in crew:
            one.start()
        for one in crew:
            one.join()
    assert not wrong


@pytest.mark.usefixtures("_limit")
def test_lone_items_of_an_array_follow_its_changes(tmp_path: Path) -> None:
    data = ITEMS.reshape(400, 500)
    superchunk.asarray(data, urlpath=str(tmp_path / "a"), chunks=(100, 200), blocks=(30, 40)).schunk.close()
    reader, writer = (superchunk.open(str(tmp_path / "a"), mode=mode) for mode in "ra")
    places = np.random.default_rng(2).integers(0, (400, 500), (200, 2)).tolist()
    time.sleep(STILL)
    for i, j in places * 3:
        assert reader[i, j] == data[i, j]
        assert type(reader[i, j]) is np.ndarray
    assert reader[-1, 3] == data[-1, 3]
    with pytest.raises(IndexError):
        reader[400, 0]
    writer.resize((450, 700))
    writer[400, 600] = 17
    writer.schunk.flush()  # what waits is the writer's alone
    assert (reader[400, 600], reader[401, 600], reader[399, 499]) == (17, 0, data[399, 499])
    writer.resize((10, 10))
    with pytest.raises(IndexError):
        reader[10, 0]


@pytest.mark.usefixtures("_limit")
def test_small_boxes_of_an_array_follow_its_changes(tmp_path: Path) -> None:
    data = ITEMS.reshape(400, 500)
    superchunk.asarray(data, urlpath=str(tmp_path / "a"), chunks=(100, 200), blocks=(30, 40)).schunk.close()
    reader, writer = (superchunk.open(str(tmp_path / "a"), mode=mode) for mode in "ra")
    rng = np.random.default_rng(2)
    time.sleep(STILL)
    for i, j, high, wide in rng.integers((0, 0, 1, 1), (390, 490, 40, 60), (300, 4)).tolist():
        for key in (
            np.s_[i : i + high, j : j + wide],
            np.s_[i : i + high, j],
            np.s_[i, j : j + wide],
            np.s_[i - 400 : i + high, j - 500 : 500],
        ):
            found = reader[key]
            np.testing.assert_array_equal(found, data[key])
            assert found.flags.writeable
    assert reader[5:5, 3:8].shape == (0, 5)
    assert reader[390:410, 3:1000].shape == (10, 497)
    writer[10:12, 10:12] = 17
    np.testing.assert_array_equal(reader[10:12, 10:13], [[17, 17, data[10, 12]], [17, 17, data[11, 12]]])
    writer.resize((11, 700))
    assert reader[10:12, 10:12].tolist() == [[17, 17]]
    assert reader[:4, 600:].tolist() == [[0] * 100] * 4


@pytest.mark.usefixtures("_limit")
def test_damage_in_a_small_box_is_told_as_by_the_general_way(tmp_path: Path) -> None:
    path = tmp_path / "a"
    superchunk.asarray(ITEMS.reshape(400, 500), urlpath=str(path)).schunk.close()
    content = bytearray(path.read_bytes())
    with superchunk.open(str(path), mode="r").schunk as s:
        start = s._handle.store.source(0)[1]
    content[start + 32 : start + 36] = b"\xff\xff\xff\x7f"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="bstarts"):
        superchunk.open(str(path), mode="r")[0:10, 0:10]


def test_the_limit_can_be_set_and_taken_back() -> None:
    before = superchunk.set_block_cache(0)
    try:
        assert superchunk.set_block_cache(before) == 0
        with pytest.raises(ValueError, match="nbytes"):
            superchunk.set_block_cache(-1)
        with pytest.raises(TypeError):
            superchunk.set_block_cache("4")  # type: ignore[arg-type]
    finally:
        superchunk.set_block_cache(before)


def kept_blocksize(data: np.ndarray, blocksize: int = 0) -> int:
    made = SChunk(data=data, cparams={"typesize": data.itemsize, "nthreads": 2, "blocksize": blocksize})
    assert bytes(made[1000:1010]) == data[1000:1010].tobytes()
    return made.blocksize


def test_blocks_are_small_where_that_costs_next_to_nothing() -> None:
    rng = np.random.default_rng(4)
    noise = rng.integers(0, 2**20, 2**23, np.int32)
    assert kept_blocksize(noise) == 2**16
    row = rng.integers(0, 2**31, 2**14, np.int32)
    assert kept_blocksize(np.tile(row, 2**9)) == 0, "repetitions of 64 KiB would be lost"
    assert kept_blocksize(noise, blocksize=2**18) == 2**18
    assert kept_blocksize(noise[: 2**22]) == 0, "the trial would take long"
    assert kept_blocksize(noise.view(np.uint8)) == 0, "they are small as it is"
