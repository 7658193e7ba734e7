"""Dask's names of arrays: another one after each change, by whomever, and the same in every process otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from oracle import blosc2

import superchunk
from superchunk import SChunk

dask_array = pytest.importorskip("dask.array", reason="Dask is not installed")
tokenize = pytest.importorskip("dask.base").tokenize

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from superchunk import NDArray

ITEMS = np.random.default_rng(7).integers(0, 2**60, (40, 100))
"""They do not compress, so that a chunk keeps its size when it gets other ones."""
KINDS = pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])


def made(path: Path, *, contiguous: bool = True) -> str:
    """Make an array on the disk, and return its path."""
    superchunk.asarray(
        ITEMS, chunks=(10, 100), blocks=(10, 100), urlpath=str(path), contiguous=contiguous
    ).schunk.close()
    return str(path)


def elsewhere(path: str) -> str:
    """Return the token that another process gives the array at a path."""
    code = f"import superchunk, dask.base\nprint(dask.base.tokenize(superchunk.open({path!r})))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def sum_of(array: Any) -> int:
    return int(dask_array.from_array(array, chunks=(10, 100)).sum().compute())


@KINDS
def test_the_same_state_has_the_same_name_in_every_process(tmp_path: Path, *, contiguous: bool) -> None:
    path = made(tmp_path / "a.b2nd", contiguous=contiguous)
    array = superchunk.open(path)
    assert tokenize(array) == tokenize(array) == tokenize(superchunk.open(path)) == elsewhere(path)
    assert dask_array.from_array(array).name == dask_array.from_array(superchunk.open(path)).name
    with superchunk.open(path, mode="a") as writer:  # which changes nothing
        assert tokenize(writer) == tokenize(array)
    assert tokenize(superchunk.open(path)) == elsewhere(path)


CHANGES: dict[str, Callable[[NDArray], object]] = {
    "an item": lambda a: a.__setitem__((3, 5), 1),
    "a chunk of the same size": lambda a: a.__setitem__(slice(0, 10), ITEMS[10:20]),
    "rows": lambda a: a.resize((50, 100)),
    "metadata": lambda a: a.vlmeta.__setitem__("unit", "K"),
    "a column": lambda a: a.__setitem__((slice(None), 0), 5),
}


@KINDS
@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_ours_gives_a_new_name(tmp_path: Path, change: str, *, contiguous: bool) -> None:
    path = made(tmp_path / "a.b2nd", contiguous=contiguous)
    reader, writer = superchunk.open(path), superchunk.open(path, mode="a")
    before = tokenize(reader)
    CHANGES[change](writer)
    after = tokenize(writer)
    assert after != before
    assert tokenize(reader) == after == elsewhere(path)
    assert sum_of(reader) == sum_of(writer) == int(writer[...].sum())


def by_blosc2(path: str, change: str) -> None:
    array = blosc2.open(path, mode="a")
    schunk = array.schunk
    if change == "the same bytes long":
        schunk.update_data(0, np.ascontiguousarray(ITEMS[10:20]), copy=True)
    elif change == "reordered":
        schunk.reorder_offsets([1, 0, 2, 3])
    elif change == "an item":
        array[0, 0] = 5
    elif change == "metadata of one length":
        schunk.vlmeta["unit"] = "m"


@KINDS
@pytest.mark.parametrize("change", ["the same bytes long", "reordered", "an item", "metadata of one length"])
def test_each_change_of_c_blosc2_gives_a_new_name(tmp_path: Path, change: str, *, contiguous: bool) -> None:
    path = str(tmp_path / "a.b2nd")
    array = blosc2.asarray(
        ITEMS, chunks=(10, 100), blocks=(10, 100), urlpath=path, contiguous=contiguous, cparams={"nthreads": 1}
    )
    array.schunk.vlmeta["unit"] = "K"
    del array
    before = tokenize(superchunk.open(path))
    by_blosc2(path, change)
    after = tokenize(superchunk.open(path))
    assert after != before
    assert after == elsewhere(path)


def test_from_array_does_not_serve_cached_results_of_the_old_state(tmp_path: Path) -> None:
    path = made(tmp_path / "a.b2nd")
    cache: dict[str, int] = {}

    def cached_sum() -> int:
        array = superchunk.open(path)
        name = dask_array.from_array(array, chunks=(10, 100)).sum().name
        return cache.setdefault(name, sum_of(array))

    assert cached_sum() == int(ITEMS.sum())
    with superchunk.open(path, mode="a") as writer:
        writer[0] = 0
    assert cached_sum() == int(ITEMS[1:].sum())


def test_path_offset_view_field_and_kind_tell_apart(tmp_path: Path) -> None:
    record = np.zeros(20, [("a", "i4"), ("b", "i4")])
    frame = superchunk.asarray(record).to_cframe()
    (tmp_path / "two").write_bytes(frame + frame)
    first, second = (superchunk.open(tmp_path / "two", offset=at) for at in (0, len(frame)))
    path = made(tmp_path / "a.b2nd")
    array = superchunk.open(path)
    tokens = [
        first,
        second,
        first.schunk,
        first["a"],
        first["b"],
        second["a"],
        array,
        array.schunk,
        superchunk.expand_dims(array, 0),
        superchunk.expand_dims(array, 1),
        superchunk.open(made(tmp_path / "b.b2nd")),
    ]
    assert len({tokenize(one) for one in tokens}) == len(tokens)
    assert tokenize(first["a"]) == tokenize(superchunk.open(tmp_path / "two")["a"])


def test_what_is_in_memory_is_named_by_its_content() -> None:
    array, same, other = superchunk.asarray(ITEMS), superchunk.asarray(ITEMS), superchunk.asarray(ITEMS + 1)
    assert tokenize(array) == tokenize(same) != tokenize(other)
    before = tokenize(array)
    array[0, 0] += 1
    assert tokenize(array) != before
    array[0, 0] -= 1
    np.testing.assert_array_equal(array[...], same[...])
    zeros = [superchunk.zeros(shape) for shape in ((10**6,), (10**6 + 1,), (10**3, 10**3))]
    assert len({tokenize(one) for one in zeros}) == len(zeros)
    s = SChunk(data=b"abc")
    before = tokenize(s)
    s.vlmeta["a"] = 1
    assert tokenize(s) != before


def test_what_is_not_committed_has_a_name_of_its_own(tmp_path: Path) -> None:
    path = made(tmp_path / "a.b2nd")
    committed = tokenize(superchunk.open(path))
    with superchunk.open(path, mode="a") as writer:
        names = []
        with suppress(RuntimeError), writer.schunk.transaction():
            for number in range(3):
                writer[0] = number
                names.append(tokenize(writer))
            raise RuntimeError
        assert len({committed, *names}) == 4
        assert tokenize(writer) == elsewhere(path)
        writer.schunk.vlmeta["a"] = 1
        assert tokenize(writer) not in {*names, committed}
    cow = superchunk.open(path, mmap_mode="c")
    before = tokenize(cow)
    cow[0] = 9
    assert tokenize(cow) not in {before, tokenize(superchunk.open(path))}


@KINDS
def test_a_snapshot_keeps_its_name(tmp_path: Path, *, contiguous: bool) -> None:
    path = made(tmp_path / "a.b2nd", contiguous=contiguous)
    snapshot = superchunk.open(path, snapshot=True)
    before = tokenize(snapshot)
    with superchunk.open(path, mode="a") as writer:
        writer[0] = 0
        assert tokenize(snapshot) == before
        later = superchunk.open(path, snapshot=True)
        assert tokenize(later) != before
    snapshot.schunk.refresh()
    assert tokenize(snapshot) == tokenize(later)


def test_a_removed_file_that_is_still_open_has_a_name(tmp_path: Path) -> None:
    path = made(tmp_path / "a.b2nd")
    array = superchunk.open(path)
    os.unlink(path)  # noqa: PTH108
    assert tokenize(array) == tokenize(array)
    assert array.__dask_tokenize__()[-2] == "content"


def test_a_postfilter_is_never_taken_for_another() -> None:
    s = SChunk(data=np.arange(10), cparams={"typesize": 8}, dparams={"nthreads": 1})

    @s.postfilter(np.int64)
    def twice(source: Any, target: Any, offset: int) -> None:  # noqa: ARG001
        target[:] = source * 2

    assert tokenize(s) != tokenize(s)


def test_tokens_need_no_dask_to_be_loaded() -> None:
    code = (
        "import sys, superchunk\nsuperchunk.zeros(3).__dask_tokenize__()\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'dask']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
