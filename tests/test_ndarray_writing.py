"""Writing items of arrays: what NumPy would hold afterwards, on every storage, all of it or nothing."""

from __future__ import annotations

import errno
import random
from typing import TYPE_CHECKING, Any

import bare_arrays
import numpy as np
import pytest

import superchunk
from superchunk import SpecialValue
from superchunk._array.ndarray import NDArray
from superchunk._store import os_file as file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from typing_extensions import Buffer


class FullDisk(file.System):
    """A disk that takes a number of writes and then no more."""

    def __init__(self, after: int) -> None:
        self.left = after

    def pwrite(self, fd: int, buffers: Sequence[Buffer], at: int) -> None:
        """Write, or refuse."""
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().pwrite(fd, buffers, at)


def value_for(rng: random.Random, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return what broadcasts to `shape`."""
    kind = rng.random()
    if kind < 0.3:
        shape = ()
    elif kind < 0.5 and shape:
        shape = (1, *shape[1:])
    elif kind < 0.6:
        shape = shape[1:]
    elif kind < 0.7:
        shape = (1, 1, *shape)
    value = bare_arrays.letters(rng, shape, dtype)
    return value[::-1].copy()[::-1] if shape and rng.random() < 0.3 else value


@pytest.mark.parametrize("seed", range(60))
def test_any_index_writes_as_numpy_does(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    place: dict[str, Any] = rng.choice(
        ({}, {"urlpath": tmp_path / "a"}, {"urlpath": tmp_path / "a", "contiguous": False})
    )
    for _ in range(3):
        shape = bare_arrays.some_shape(rng)
        plain = bare_arrays.letters(rng, shape, rng.choice(bare_arrays.DTYPES))
        a = bare_arrays.array_over(plain, *bare_arrays.partition(rng, shape), mode="w", **place)
        for _ in range(5):
            key = bare_arrays.some_key(rng, shape)
            try:
                value = value_for(rng, np.shape(plain[key]), plain.dtype)
                plain[key] = value
            except (IndexError, TypeError, ValueError):  # no index, or no value for NumPy either
                continue
            as_array = rng.random() < 0.3
            a[key] = bare_arrays.array_over(value, (2,) * value.ndim, (1,) * value.ndim) if as_array else value
            assert a.tobytes() == plain.tobytes(), (shape, a.chunks, a.blocks, key, value.shape, as_array)
        a.close()


def test_values_are_broadcast_and_cast() -> None:
    plain = np.zeros((6, 5), "<i2")
    a = bare_arrays.array_over(plain, (4, 3), (2, 2))
    values: list[tuple[Any, Any]] = [
        ((slice(0, 2),), np.arange(5)),
        (([0, 2],), 7),
        (([5, 5], [1, 1]), [3, 4]),  # the last one counts
        ((2,), [1.9, 2.9, -3.9, 4, 5]),
        ((slice(None), 4), range(6)),
        ((3, 3), np.float64(8.5)),
        ((4, ...), np.arange(5, dtype=">i8")),
    ]
    for key, value in values:
        plain[key] = value
        a[key] = value
        assert (a[()] == plain).all(), key
    a[5] = np.arange(5, dtype="<i2").tobytes()  # bytes are items
    assert (a[5] == np.arange(5)).all()
    for key, value in (((slice(0, 2),), [1, 2]), ((0,), np.zeros(6)), ((0, 0), [1, 2]), (([0, 1],), np.zeros((3, 5)))):
        with pytest.raises(ValueError, match=r"broadcast|sequence"):
            a[key] = value
    with pytest.raises(IndexError):
        a[6] = 1


def test_oindex_and_fields_are_assignable() -> None:
    plain = np.zeros((6, 5), [("x", "<i4"), ("v", "<f8", (2,))])
    a = bare_arrays.array_over(plain, (4, 3), (2, 2))
    a["x"] = 3
    a.fields["x"][1::2, [0, 4]] = np.arange(6).reshape(3, 2)
    a["v"][:2] = [5, 6]
    a.oindex[[4, 2], [0, 3]] = (9, (1.5, 2.5))
    plain["x"] = 3
    plain["x"][1::2, [0, 4]] = np.arange(6).reshape(3, 2)
    plain["v"][:2] = [5, 6]
    plain[np.ix_([4, 2], [0, 3])] = (9, (1.5, 2.5))
    assert a.tobytes() == plain.tobytes()
    a[0, 0] = (1, (2, 3))
    assert (a["x"][0, 0], a["v"][0, 0].tolist()) == (1, [2.0, 3.0])


def test_parts_of_sub_arrays_are_assignable() -> None:
    plain = np.zeros((6, 5), [("x", "<i4"), ("v", ">f8", (2, 3))])
    a = bare_arrays.array_over(plain, (4, 3), (2, 2))
    line = superchunk.asarray(np.arange(3.0))
    mask = np.arange(180).reshape(6, 5, 2, 3) % 7 == 0
    writes: tuple[tuple[Any, Any], ...] = (
        ((..., 0), 5), ((1, 2, 1, 2), 7), ((slice(None, None, -2), 1, 0), np.arange(9).reshape(3, 3)), ((4, 4), line),
        (([5, 0, 5], slice(None), [1, 0, 1]), np.arange(45).reshape(3, 5, 3)), (mask, np.arange(26)), ((False, ...), 1),
        ((..., [2, 0, 2]), [1, 2, 3]), (slice(3), 4),
    )  # fmt: skip
    for key, value in writes:
        plain["v"][key] = np.asarray(value)
        a["v"][key] = value
        assert a.tobytes() == plain.tobytes(), key
    with pytest.raises(ValueError, match="broadcast"):
        a["v"][..., :2] = [1, 2, 3]
    a.expand_dims(0)["v"][0, 0, ..., 1] = 8
    plain["v"][0, ..., 1] = 8
    assert a.tobytes() == plain.tobytes()


def test_an_array_may_be_assigned_to_another_part_of_itself(tmp_path: Path) -> None:
    for place in ({}, {"urlpath": tmp_path / "a"}, {"urlpath": tmp_path / "s", "contiguous": False}):
        plain = np.arange(120, dtype="<i4").reshape(12, 10)
        a = bare_arrays.array_over(plain, (5, 4), (2, 2), **place)
        a[:, :] = a.squeeze([])[::-1]
        plain[:, :] = plain[::-1].copy()
        whole = a.expand_dims(0)
        a[...] = whole
        assert (a[()] == plain).all()
        a[::-1, ::-1] = a
        assert (a[()] == plain[::-1, ::-1]).all()


def test_views_write_into_the_array_they_are_of() -> None:
    a = bare_arrays.array_over(np.zeros((4, 1, 3), "<i4"), (3, 2, 2), (2, 1, 2))
    flat = a.squeeze(1)
    flat[1:3] = [[1, 2, 3], [4, 5, 6]]
    assert a[1:3, 0].tolist() == [[1, 2, 3], [4, 5, 6]]
    flat.expand_dims([0, 3])[0, 0, :, 0] = 9
    assert flat[0].tolist() == [9, 9, 9]
    with pytest.raises(ValueError, match="a view keeps its shape"):
        flat.resize((5, 3))
    with pytest.raises(ValueError, match="a view keeps its shape"):
        flat.append(np.zeros((1, 3)))
    del a
    assert flat[2].tolist() == [4, 5, 6]


def test_chunks_of_one_value_are_special() -> None:
    rng = np.random.default_rng(1)
    a = bare_arrays.array_over(rng.integers(0, 99, (40, 40)), (20, 20), (10, 10))
    a[:20] = 0
    a[20:, :20] = 5
    infos = list(a.iterchunks_info())
    assert [info.special for info in infos] == [*[SpecialValue.ZERO] * 2, *[SpecialValue.NOT_SPECIAL] * 2]
    assert [info.repeated_value for info in infos[2:]] == [5, None]
    assert len(a.get_chunk(2)) == 32 + 8
    a[25, 30:] = a[25, 30]
    assert a[0, 0] == 0
    assert a[39, 19] == 5


def test_a_failed_assignment_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = np.arange(400, dtype="<i4").reshape(20, 20)
    path = tmp_path / "a.b2nd"
    a = bare_arrays.array_over(plain, (5, 5), (2, 3), urlpath=path)
    a.flush()
    with monkeypatch.context() as full:
        full.setattr(file, "system", FullDisk(after=5))
        with pytest.raises(superchunk.StorageError, match="No space"):
            a[1:19, 1:19] = 7
    assert (a[()] == plain).all()
    with superchunk.open(path) as other:
        assert (other[()] == plain).all()


def test_reading_mode_refuses_every_change(tmp_path: Path) -> None:
    path = tmp_path / "a.b2nd"
    bare_arrays.array_over(np.zeros(9, [("x", "<i4")]), (4,), (2,), urlpath=path).close()
    with superchunk.open(path) as a:
        calls: list[Callable[[], object]] = [
            lambda: a.__setitem__(0, (1,)),
            lambda: a.__setitem__("x", 1),
            lambda: a.oindex.__setitem__([0], (1,)),
            lambda: a.resize((10,)),
            lambda: a.append([(1,)]),
        ]
        for call in calls:
            with pytest.raises(ValueError, match="reading mode"):
                call()


def test_one_assignment_is_one_commit(tmp_path: Path) -> None:
    path = tmp_path / "a.b2nd"
    a = bare_arrays.array_over(np.zeros((30, 30)), (5, 5), (5, 5), urlpath=path)
    with superchunk.open(path) as reader:
        before = reader.schunk.change_tick
        a[()] = np.random.default_rng(2).random((30, 30))
        a.flush()
        assert (reader[()] == a[()]).all()
        assert reader.schunk.change_tick == before + 1


def test_a_prefilter_runs_on_what_is_written() -> None:
    a = bare_arrays.array_over(np.zeros((6, 6), "<i4"), (4, 4), (2, 2), cparams={"nthreads": 1})

    @a.schunk.prefilter(np.dtype("<i4"))
    def double(given: Any, output: Any, offset: int) -> None:  # noqa: ARG001  (as filters are)
        output[:] = 2 * given

    a[:4, :4] = 3
    a.schunk.remove_prefilter("double")
    assert (a[:4, :4] == 6).all()
    assert isinstance(a, NDArray)
