"""Found by reading arrays with fresh eyes: results of many reads, values of other layouts, views of shaped chunks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from other_process import Other

import superchunk
from superchunk import NDArray, _engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from superchunk._store.store_interface import ChunkList, ChunkStore

LETTERS = np.arange(48, dtype="<i4").reshape(6, 8)


@pytest.mark.parametrize("shape", [(2, 3, 8), (3, 8), (8,), (1, 8), (2, 1, 1), (1, 2, 3, 8), ()])
@pytest.mark.parametrize("rows", [[[1, 1, 1], [0, 5, 2]], [[4, 0, 3], [1, 5, 2]]])
def test_an_array_is_assigned_where_positions_have_several_dimensions(rows: list[list[int]], shape: Any) -> None:
    key: Any = (np.array(rows), slice(None))
    value = np.arange(int(np.prod(shape)), dtype="<i4").reshape(shape) + 100
    array = superchunk.asarray(LETTERS, chunks=(4, 3), blocks=(2, 2))
    plain = LETTERS.copy()
    plain[key] = value
    array[key] = superchunk.asarray(value)
    assert np.array_equal(array[...], plain)


def test_an_array_that_does_not_fit_there_is_refused() -> None:
    array = superchunk.asarray(LETTERS, chunks=(4, 3), blocks=(2, 2))
    with pytest.raises(ValueError, match="could not broadcast"):
        array[np.array([[1, 1, 1], [0, 5, 2]]), :] = superchunk.asarray(np.zeros((6, 8), "<i4"))
    assert np.array_equal(array[...], LETTERS)


@pytest.fixture
def other() -> Iterator[Other]:
    with Other("import superchunk") as process:
        yield process


def one_by_one(array: NDArray) -> np.ndarray[Any, Any]:
    """Return the items by way of an assignment to another array."""
    copy = superchunk.zeros((48, 48), dtype="<i4", chunks=(9, 9), blocks=(5, 5))
    copy[...] = array
    found: np.ndarray[Any, Any] = copy[...]
    return found


def appended(array: NDArray) -> np.ndarray[Any, Any]:
    """Return the items by way of appending to another array."""
    copy = superchunk.zeros((0, 48), dtype="<i4", chunks=(9, 9), blocks=(5, 5))
    copy.append(array)
    found: np.ndarray[Any, Any] = copy[...]
    return found


MANY_READS: dict[str, Callable[[NDArray], Any]] = {
    "slice": lambda array: array.slice((slice(None, None, 2), slice(3, None))),
    "T": lambda array: array.T,
    "concat": lambda array: superchunk.concat([array, array], axis=1),
    "stack": lambda array: superchunk.stack(iter([array, array])),  # type: ignore[arg-type]
    "copy": lambda array: array.copy(chunks=(7, 9), blocks=(3, 4)),
    "take": lambda array: superchunk.take(array, np.arange(40 * 48, 46 * 48)),
    "take along": lambda array: superchunk.take_along_axis(array, np.full((48, 2), 47), axis=1),
    "assign": one_by_one,
    "append": appended,
}


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])
@pytest.mark.parametrize("made", MANY_READS.values(), ids=MANY_READS.keys())
def test_what_many_reads_make_is_of_one_state(
    tmp_path: Path, other: Other, made: Callable[[NDArray], Any], *, contiguous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.b2nd")
    ones = np.ones((48, 48), "<i4")
    place: Any = {"urlpath": path, "contiguous": contiguous, "chunks": (8, 8), "blocks": (4, 4)}
    superchunk.asarray(ones, cparams={"clevel": 0}, **place).close()
    with superchunk.open(path) as array:
        assert isinstance(array, NDArray)
        expected = np.asarray(made(array))
        left = [3]

        def after_some(ask: Callable[..., Any], *args: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                other(
                    f"a = superchunk.open({path!r}, mode='a'); a.resize((20, 70)); a[...] = 2; a.compact(); a.close()"
                )
            return ask(*args)

        from superchunk._array import ndarray, reading

        monkeypatch.setattr(NDArray, "_geometry_in", _through(NDArray._geometry_in, after_some))
        monkeypatch.setattr(reading, "_sources_of", partial(after_some, reading._sources_of))
        monkeypatch.setattr(ndarray, "read_small", partial(after_some, reading.read_small))
        found = np.asarray(made(array))
        monkeypatch.undo()
        assert left[0] <= 0
        assert np.array_equal(found, expected)
        assert np.array_equal(array[...], np.full((20, 70), 2))


def _through(method: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    def instead(self: NDArray, chunks: ChunkList, store: ChunkStore) -> Any:
        return call(method, self, chunks, store)

    return instead


def test_arrays_assigned_to_each_other_do_not_wait_for_each_other(tmp_path: Path) -> None:
    from threading import Thread

    items = np.ones((30, 30), "<i4")
    one, two = (
        superchunk.asarray(items, urlpath=str(tmp_path / name), chunks=(5, 5), blocks=(5, 5)) for name in ("1", "2")
    )

    def assign(to: NDArray, given: NDArray) -> None:
        for _ in range(20):
            to[...] = given
            superchunk.concat([to, given])

    threads = [Thread(target=assign, args=pair, daemon=True) for pair in ((one, two), (two, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert np.array_equal(one[...], items)
    one.close()
    two.close()


@pytest.mark.parametrize("out", [[], bytearray(192), memoryview(bytearray(192))], ids=lambda out: type(out).__name__)
def test_out_has_to_be_an_array(out: Any) -> None:
    array = superchunk.asarray(LETTERS, chunks=(4, 3), blocks=(2, 2))
    with pytest.raises(TypeError, match="out: expected a NumPy array"):
        array.get(out=out)


def test_chunks_of_tiny_blocks_are_told_about(tmp_path: Path) -> None:
    items = np.arange(11, dtype="u1")
    array = superchunk.asarray(items, chunks=(11,), blocks=(1,), cparams={"clevel": 0}, urlpath=str(tmp_path / "a"))
    (info,) = array.iterchunks_info()
    assert info.lazychunk == array.get_chunk(0)[:32]
    array.close()


def shaped(name: str) -> tuple[NDArray, np.ndarray[Any, Any]]:
    """Return an array whose chunks go by the shape of blocks, and its items."""
    cparams: Any = {"filters": [superchunk.Filter.NDCELL], "filters_meta": [4]}
    plain = LETTERS.repeat(4, 0).repeat(4, 1)
    if name == "NDLZ":
        cparams = {"codec": superchunk.Codec.NDLZ, "codec_meta": 4, "filters": [superchunk.Filter.NOFILTER]}
        plain = plain.astype("u1")
    return superchunk.asarray(plain, chunks=(16, 16), blocks=(8, 8), cparams=cparams), plain.copy()


@pytest.mark.parametrize("axes", [0, 1, 2, (0, 1), tuple(range(14))], ids=str)
@pytest.mark.parametrize("name", ["NDCELL", "NDLZ"])
def test_views_of_chunks_that_go_by_the_shape_of_blocks_are_read_and_written(name: str, axes: Any) -> None:
    array, plain = shaped(name)
    view, seen = superchunk.expand_dims(array, axes), np.expand_dims(plain, axes)
    assert np.array_equal(view[...], seen)
    part = tuple(slice(None) if size == 1 else slice(3, 14) for size in seen.shape)
    view[part] = 7
    seen[part] = 7
    assert np.array_equal(array[...], plain)
    assert np.array_equal(view[...], seen)
    assert np.array_equal(superchunk.from_cframe(array.to_cframe())[...], plain)


def test_a_view_without_an_axis_is_written_by_the_shape_of_the_blocks() -> None:
    plain = np.arange(24 * 32, dtype="<i4").reshape(1, 24, 32)
    cparams: Any = {"filters": [superchunk.Filter.NDCELL], "filters_meta": [2]}
    array = superchunk.asarray(plain, chunks=(1, 16, 16), blocks=(1, 8, 8), cparams=cparams)
    view = array.squeeze(0)
    view[3:20, 5:30] = -1
    plain[0, 3:20, 5:30] = -1
    assert np.array_equal(view[...], plain[0])
    assert np.array_equal(array[...], plain)


def test_blocks_of_a_view_have_as_many_items_as_those_of_the_array() -> None:
    for wrong in ([5], [], [0, 4], [1] * 17):
        with pytest.raises(ValueError, match="blockshape"):
            _engine.Geometry([1, 8], [1, 4], 4, wrong)
    assert _engine.Geometry([1, 8], [1, 4], 4, [4]).block_nbytes == 16
    assert _engine.Geometry([0], [0], 4, [4]).block_nbytes == 0
