"""Memory of large results that is kept for the next one."""

from __future__ import annotations

import gc
import itertools
import random
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

import superchunk
from superchunk import _engine
from superchunk._array.chunk_geometry import fresh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import DTypeLike

MIB = 2**20
USUAL = 256 * MIB
linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is kept")


@pytest.fixture(autouse=True)
def usual_limit() -> Iterator[None]:
    superchunk.set_kept_memory(USUAL)
    superchunk.free_resources()
    yield
    superchunk.set_kept_memory(USUAL)
    superchunk.free_resources()


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


@linux
def test_the_next_result_comes_where_the_last_one_was() -> None:
    a = superchunk.arange(MIB, dtype="i8")
    first = a[:]
    place = address(first)
    assert place % 4096 == 0
    del first
    second = a[1:]
    assert address(second) == place
    assert np.array_equal(second, np.arange(1, MIB))
    assert address(a[:]) != place


@linux
def test_nothing_is_kept_with_a_limit_of_nothing_or_after_free_resources() -> None:
    kept = _kept_by(lambda: None)
    assert kept
    assert not _kept_by(superchunk.free_resources)
    assert superchunk.set_kept_memory(0) == USUAL
    assert not _kept_by(lambda: None)
    assert superchunk.set_kept_memory(USUAL) == 0


def _kept_by(between: Callable[[], None]) -> bool:
    """Return whether the content of a dropped array is still there after `between`, as large as it is."""
    memory = fresh((16 * MIB,), np.dtype("u1"))
    memory[:] = 7
    del memory
    between()
    found = fresh((16 * MIB,), np.dtype("u1"))
    return bool(found[::4096].any())


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"nbytes: expected at least 0, got -1"):
        superchunk.set_kept_memory(-1)
    with pytest.raises(TypeError):
        superchunk.set_kept_memory("4")  # type: ignore[arg-type]
    with pytest.raises(MemoryError):
        _engine.Memory(2**62)
    with pytest.raises(MemoryError):
        fresh((2**62,), np.dtype("u1"))
    with pytest.raises(OverflowError):
        _engine.Memory(-1)


def test_results_that_are_needed_are_left_alone(tmp_path: Path) -> None:
    data = np.arange(3 * MIB).reshape(-1, 1024)
    a = superchunk.asarray(data, urlpath=tmp_path / "a.b2nd")
    drawn = random.Random(5)
    held: list[tuple[slice, np.ndarray]] = []
    for _ in range(60):
        start = drawn.randrange(2000)
        rows = slice(start, start + drawn.randrange(400, 3000))
        held.append((rows, a[rows]))
        if len(held) > drawn.randrange(5):
            held.pop(drawn.randrange(len(held)))
        for rows, found in held:
            assert np.array_equal(found, data[rows])
        places = sorted((address(found), found.nbytes) for _, found in held)
        assert all(at + nbytes <= after for (at, nbytes), (after, _) in itertools.pairwise(places))


@pytest.mark.parametrize("dtype", ["f8", ">i4", "S7", "M8[ns]", [("a", "i2"), ("b", "f8", (2,))]])
def test_a_large_result_is_an_array_like_any_other(dtype: DTypeLike) -> None:
    kind = np.dtype(dtype)
    raw = np.random.default_rng(3).integers(0, 60, 8 * MIB, np.uint8)[: 8 * MIB // kind.itemsize * kind.itemsize]
    data = raw.view(kind)
    found = superchunk.asarray(data)[:]
    assert found.dtype == kind
    assert found.tobytes() == data.tobytes()
    assert found.flags.writeable
    assert found.flags.aligned
    found[5] = found[6]
    view = found[10:20]
    del found
    gc.collect()
    assert view.tobytes() == data[10:20].tobytes()


def test_views_keep_the_memory() -> None:
    a = superchunk.arange(4 * MIB, dtype="i8")
    middle = memoryview(a[:])[1000:2000]
    others = [a[::-1] for _ in range(3)]
    assert np.array_equal(np.asarray(middle), np.arange(1000, 2000))
    assert all(other[0] == 4 * MIB - 1 for other in others)


def test_packed_arrays_are_read_into_it_too(tmp_path: Path) -> None:
    data = np.random.default_rng(1).normal(size=MIB)
    superchunk.save_array(data, str(tmp_path / "a.b2frame"))
    for _ in range(3):
        found = superchunk.load_array(str(tmp_path / "a.b2frame"))
        assert np.array_equal(found, data)
        found[:] = 0
