"""Resizing and appending: NumPy's items, zeros where there were none, one commit, and C-Blosc2 follows."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING, Any

import bare_arrays
import numpy as np
import pytest
from oracle import blosc2

import superchunk
from superchunk._array.array_view import read_geometry
from superchunk._array.chunk_geometry import ArrayGeometry
from superchunk._format.b2nd import ArrayLayout

if TYPE_CHECKING:
    from pathlib import Path

    from superchunk._array.ndarray import NDArray


def resized(plain: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return what resizing is to make of `plain`."""
    grown = np.zeros(shape, plain.dtype)
    common = tuple(slice(min(sizes)) for sizes in zip(shape, plain.shape, strict=True))
    grown[common] = plain[common]
    return grown


def check(a: NDArray, plain: np.ndarray[Any, Any]) -> None:
    """Compare shape, items, and the padding, which nothing must hide in."""
    assert a.shape == plain.shape
    assert a.tobytes() == plain.tobytes()
    total = sum(np.frombuffer(a.schunk.decompress_chunk(n) or b"", "u1").sum() for n in range(a.nchunks))
    assert total == plain.reshape(-1).view("u1").sum()


@pytest.mark.parametrize("seed", range(40))
def test_any_change_of_shape(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    place: dict[str, Any] = rng.choice(
        ({}, {"urlpath": tmp_path / "a"}, {"urlpath": tmp_path / "a", "contiguous": False})
    )
    shape = bare_arrays.some_shape(rng) or (4,)
    plain = bare_arrays.letters(rng, shape, "<i4")
    a = bare_arrays.array_over(plain, *bare_arrays.partition(rng, shape), **place)
    for _ in range(6):
        shape = tuple(rng.choice((n, max(0, n + rng.randint(-4, 4)), rng.randint(0, 12))) for n in plain.shape)
        a.resize(shape)
        plain = resized(plain, shape)
        check(a, plain)
        axis = rng.randrange(len(shape))
        more = bare_arrays.letters(rng, (*shape[:axis], rng.randint(0, 7), *shape[axis + 1 :]), "<i4")
        assert a.append(more, axis=axis - len(shape)) == shape[axis] + more.shape[axis]
        plain = np.concatenate([plain, more], axis)
        check(a, plain)
    if place:
        a.close()
        with superchunk.open(place["urlpath"]) as again:
            check(again, plain)


def test_old_items_do_not_come_back() -> None:
    a = bare_arrays.array_over(np.ones((8, 10), "<i4"), (3, 4), (2, 2))
    a.resize((4, 4))
    a.resize((5, 10))
    assert (a[4] == 0).all()
    assert (a[:4, 4:] == 0).all()
    full = bare_arrays.array_over(np.full((16, 16), 7, "<i4"), (32, 32), (8, 8))
    full.resize((32, 20))
    assert full[16:].sum() == 0
    assert full[:, 16:].sum() == 0


def test_chunks_that_stay_are_not_written_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    a = bare_arrays.array_over(rng.random((8, 8)), (4, 4), (2, 2), urlpath=tmp_path / "a")
    before = [a.get_chunk(n) for n in range(4)]
    a.resize((12, 16))
    assert [a.get_chunk(n) for n in (0, 1, 4, 5)] == before
    assert a.schunk.dead_bytes < 2000


def test_a_resize_is_one_commit(tmp_path: Path) -> None:
    path = tmp_path / "a.b2nd"
    a = bare_arrays.array_over(np.ones((6, 6)), (4, 4), (2, 2), urlpath=path)
    a.flush()
    with superchunk.open(path) as reader, superchunk.open(path, snapshot=True) as still:
        tick = reader.schunk.change_tick
        a.resize((9, 3))
        assert reader.shape == (9, 3)
        assert reader.schunk.change_tick == tick + 1
        assert (reader[6:] == 0).all()
        assert still.shape == (6, 6)
        assert (still[()] == 1).all()
        still.refresh()
        assert still.shape == (9, 3)


def test_what_cannot_be_resized() -> None:
    a = bare_arrays.array_over(np.zeros((3, 3)), (2, 2), (1, 1))
    for shape in ((3,), (3, 3, 3), (-1, 3), (2**62, 2**62)):
        with pytest.raises(ValueError, match=r"newshape|shape"):
            a.resize(shape)
    empty = bare_arrays.array_over(np.zeros((0, 3)), (0, 3), (0, 3))
    with pytest.raises(ValueError, match="cannot be resized"):
        empty.resize((1, 3))
    empty.resize([0, 3])
    for values, axis in ((np.zeros((2, 4)), 0), (np.zeros(3), 0), (np.zeros((3, 3)), 2)):
        with pytest.raises(ValueError, match=r"values|axis"):
            a.append(values, axis=axis)
    with pytest.raises(ValueError, match="at least one dimension"):
        bare_arrays.array_over(np.array(1), (), ()).append(2)
    assert (a.shape, a.nchunks) == ((3, 3), 4)


def test_appending_to_a_line_flattens_and_casts() -> None:
    a = bare_arrays.array_over(np.arange(5, dtype="<i4"), (4,), (2,))
    assert a.append([[5.9, 6.0], [7.0, 8.0]]) == 9
    assert a.append(9) == 10
    assert a.append(bare_arrays.array_over(np.arange(10, 13), (2,), (1,))) == 13
    assert a.append(a) == 26
    assert a[()].tolist() == [*range(13), *range(13)]


def test_c_blosc2_reads_and_resizes_ours_and_we_its(tmp_path: Path) -> None:
    path = str(tmp_path / "a.b2nd")
    plain = np.arange(77, dtype="<i4").reshape(7, 11)
    with bare_arrays.array_over(plain, (4, 5), (3, 2), urlpath=path) as a:
        a.resize((9, 8))
        a.append(np.full((9, 4), 6), axis=1)
        plain = np.concatenate([resized(plain, (9, 8)), np.full((9, 4), 6, "<i4")], 1)
    theirs = blosc2.open(path, mode="a")
    assert (theirs[:] == plain).all()
    theirs.resize((5, 14))
    theirs[3:5, 12:] = 8
    plain = resized(plain, (5, 14))
    plain[3:5, 12:] = 8
    del theirs
    with superchunk.open(path, mode="a") as a:
        assert (a[()] == plain).all()
        a.resize((10, 14))  # where C-Blosc2 has left old items
        plain = resized(plain, (10, 14))
        assert (a[()] == plain).all()
    assert (blosc2.open(path)[:] == plain).all()


def test_an_open_array_follows_the_shapes_that_c_blosc2_gives(tmp_path: Path) -> None:
    path = str(tmp_path / "a.b2nd")
    theirs = blosc2.asarray(np.arange(20.0).reshape(4, 5), chunks=(3, 2), blocks=(2, 2), urlpath=path, mode="w")
    with superchunk.open(path) as a:
        view = a.expand_dims(0)
        line = a[2]
        for shape in ((6, 5), (6, 9), (2, 3), (2, 4)):
            theirs.resize(shape)
            theirs[:, -1] = shape[0]
            assert a.shape == shape
            assert (a[()] == theirs[:]).all()
            assert (view[0, 1] == theirs[1]).all()
        assert line.tolist() == [10, 11, 12, 13, 14]


@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (12, 3), (0, 9)])
def test_the_geometry_of_another_shape_is_the_one_that_its_metalayer_gives(shape: tuple[int, int]) -> None:
    array = superchunk.zeros((4, 6), chunks=(3, 4), blocks=(2, 2), dtype=[("a", "i4"), ("b", "S3")])
    array.resize(shape)
    kept = array._geometry
    fresh = ArrayGeometry(kept.meta_bytes, ArrayLayout.from_bytes(kept.meta_bytes), kept.itemsize)
    assert array.shape == shape
    for name in set(ArrayGeometry.__slots__) - {"native"}:
        assert getattr(kept, name) == getattr(fresh, name), name


def test_what_appends_leave_behind_is_what_a_new_handle_finds(tmp_path: Path) -> None:
    path = tmp_path / "a.b2nd"
    array = superchunk.zeros((0,), chunks=(10,), blocks=(4,), dtype="i4", urlpath=path, mode="w")
    for n in range(1, 30):
        array.append(np.full(n % 7, n))
        assert array._geometry.meta_bytes == read_geometry(array._handle.store, "b2nd").meta_bytes
    wanted = array[:]
    with contextlib.suppress(InterruptedError), array.schunk.transaction():
        array.append([1, 2, 3])
        raise InterruptedError
    assert array.shape == wanted.shape
    array.close()
    assert superchunk.open(path)[:].tolist() == wanted.tolist()
