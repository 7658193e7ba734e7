"""Opening, copying, pickling and closing arrays; and what C-Blosc2 makes of our files."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from typing import TYPE_CHECKING, Any

import bare_arrays
import numpy as np
import pytest
from oracle import blosc2

import superchunk
from superchunk import SChunk
from superchunk._array.ndarray import NDArray
from superchunk._format.b2nd import ArrayLayout

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import DTypeLike

PLAIN = np.arange(70, dtype="<i4").reshape(7, 10)


@pytest.fixture
def path(tmp_path: Path) -> str:
    where = str(tmp_path / "a.b2nd")
    with bare_arrays.array_over(PLAIN, (4, 5), (3, 2), urlpath=where, meta=None) as a:
        a.vlmeta["unit"] = "K"
    return where


def test_everything_that_opens_gives_the_array(path: str) -> None:
    cframe = superchunk.open(path).to_cframe()
    for a in (
        superchunk.open(path),
        superchunk.open(path, mode="a"),
        superchunk.open(path, mmap_mode="c"),
        superchunk.load(path),
        superchunk.from_cframe(cframe),
        superchunk.ndarray_from_cframe(cframe),
        NDArray(superchunk.schunk_from_cframe(cframe)),
    ):
        assert isinstance(a, NDArray)
        assert (a[()] == PLAIN).all()
        assert a.vlmeta["unit"] == "K"
    assert superchunk.load(path).urlpath is None
    assert (superchunk.open(path, mode="w")[()] == PLAIN).all()


def test_a_super_chunk_is_no_array(tmp_path: Path, path: str) -> None:
    bare = SChunk(data=b"1234", urlpath=tmp_path / "s")
    with pytest.raises(ValueError, match="b2nd"):
        NDArray(bare)
    with pytest.raises(RuntimeError, match="b2nd"):
        superchunk.ndarray_from_cframe(bare.to_cframe())
    for mode in ("r", "a"):
        with pytest.raises(ValueError, match="Cannot open an NDArray as a SChunk"):
            SChunk(urlpath=path, mode=mode)


def test_the_older_layer_is_read(tmp_path: Path) -> None:
    a = bare_arrays.array_over(PLAIN, (4, 5), (3, 2), layer="caterva", urlpath=tmp_path / "c")
    a.resize((9, 10))
    a.close()
    with superchunk.open(tmp_path / "c") as again:
        assert (again[:7] == PLAIN).all()


def test_of_both_layers_that_of_today_counts(tmp_path: Path) -> None:
    older = ArrayLayout((2, 2), (1, 1), (1, 1)).to_bytes()
    bare_arrays.array_over(PLAIN, (4, 5), (3, 2), more={"caterva": older}, urlpath=tmp_path / "both").close()
    with superchunk.open(tmp_path / "both", mode="a") as a:
        assert isinstance(a, superchunk.NDArray)
        assert set(a.meta) == {"caterva", "b2nd"}
        assert (a[:] == PLAIN).all()
        a.resize((9, 10))
    with superchunk.open(tmp_path / "both") as again:
        assert again.shape == (9, 10)
        assert (again[:7] == PLAIN).all()
        assert again.schunk._handle.store.meta["caterva"] == older


def test_a_layer_that_contradicts_the_chunks_is_refused(path: str) -> None:
    with superchunk.open(path, mode="a") as a:
        layer = a.schunk._handle.store.meta["b2nd"]
        wrong = layer[:5] + (9).to_bytes(8, "big") + layer[13:]
        a.schunk._handle.store.set_meta("b2nd", wrong)
        with pytest.raises(superchunk.FormatError, match="number of chunks"):
            _ = a[0]
    with pytest.raises(superchunk.FormatError, match="number of chunks"):
        superchunk.open(path)


def test_copies_take_chunks_as_they_are(path: str, tmp_path: Path) -> None:
    with superchunk.open(path) as a:
        for place in ({}, {"urlpath": tmp_path / "b"}, {"urlpath": tmp_path / "s", "contiguous": False}):
            with a.copy(**place) as b:
                assert (b.chunks, b.blocks, b.dtype) == (a.chunks, a.blocks, a.dtype)
                assert [b.get_chunk(n) for n in range(b.nchunks)] == [a.get_chunk(n) for n in range(a.nchunks)]
                assert b.vlmeta["unit"] == "K"
                assert (b[()] == PLAIN).all()
        with pytest.raises(ValueError, match="meta"):
            a.copy(meta={"x": 1})
        with pytest.raises(RuntimeError, match=r"mode='w'"):
            a.save(tmp_path / "b")
        a.save(tmp_path / "b", mode="w")
        assert (superchunk.open(tmp_path / "b")[()] == PLAIN).all()


def test_copies_of_another_kind(path: str) -> None:
    with superchunk.open(path) as a:
        cast = a.copy("<f8")
        assert cast.dtype == np.dtype("<f8")
        assert (cast[()] == PLAIN).all()
        assert (cast.chunks, cast.blocks) == (a.chunks, a.blocks)
        other = a.copy(chunks=(7, 3), blocks=(2, 3), cparams={"codec": superchunk.Codec.LZ4})
        assert (other.chunks, other.blocks) == ((7, 3), (2, 3))
        assert other.cparams.codec is superchunk.Codec.LZ4
        assert (other[()] == PLAIN).all()
        assert other.vlmeta["unit"] == "K"
        assert a.astype("<i4", copy=False) is a
        with pytest.raises(TypeError, match="Cannot cast"):
            a.astype("<i2", casting="safe")
        view = a.expand_dims(1)
        assert (view.copy()[()] == PLAIN[:, None]).all()
        assert superchunk.from_cframe(view.to_cframe()).shape == (7, 1, 10)
        assert (a.T[()] == PLAIN.T).all()
        for key in (
            slice(5, 1, -2),
            (slice(None), 3),
            (None, slice(1, 4), slice(None, None, 3)),
            [4, 4, 0],
            PLAIN % 2 == 0,
        ):
            part = a.slice(key)
            assert (part[()] == PLAIN[key]).all()
            assert part.cparams.codec is a.cparams.codec
        line = a.take(np.arange(70))
        for shape in ((70,), (7, 10), (2, 5, 7), [10, 7]):
            for c_order in (True, False):
                assert line.reshape(shape, c_order=c_order).shape == tuple(shape)
            assert (line.reshape(shape)[()] == PLAIN.reshape(shape)).all()
        for shape in ((69,), (7, 11)):
            with pytest.raises(ValueError, match="expected 70 items"):
                line.reshape(shape)
        with pytest.raises(ValueError, match="1 dimension"):
            a.reshape((70,))


def test_take_and_take_along_axis(path: str) -> None:
    a = superchunk.open(path)
    for indices, axis in (([3, -1, 3], 0), ([[0, 9], [5, 5]], 1), ([2], -1), ([69, -70, 5], None), ([], 0)):
        assert (superchunk.take(a, indices, axis)[()] == np.take(PLAIN, np.asarray(indices, int), axis)).all()
    order = np.argsort(-PLAIN, axis=1)
    assert (superchunk.take_along_axis(a, order)[()] == np.take_along_axis(PLAIN, order, 1)).all()
    assert (superchunk.take_along_axis(a, order[:1], 1)[()] == np.take_along_axis(PLAIN, order[:1], 1)).all()
    for call, error in (
        (lambda: a.take([0.5]), TypeError),
        (lambda: a.take([0], axis=2), ValueError),
        (lambda: a.take([7], axis=0), IndexError),
        (lambda: a.take([70]), IndexError),
        (lambda: superchunk.take_along_axis(a, [0]), ValueError),
        (lambda: superchunk.take_along_axis(a, [["a"]]), TypeError),
    ):
        with pytest.raises(error):
            call()


def test_squeeze_and_expand_dims_check_their_axes() -> None:
    a = bare_arrays.array_over(np.zeros((1, 3, 1)), (2, 2, 1), (1, 1, 1))
    assert superchunk.squeeze(a, (0, -1)).shape == (3,)
    assert superchunk.expand_dims(a, (0, 4)).shape == (1, 1, 3, 1, 1)
    for axis in (1, (0, 0), 3):
        with pytest.raises(ValueError, match="axis"):
            a.squeeze(axis)
    with pytest.raises(ValueError, match="axis"):
        a.expand_dims([0, 0])
    with pytest.raises(ValueError, match="16 dimensions"):
        a.expand_dims(tuple(range(14)))
    flat = a.squeeze(0)
    a.resize((2, 3, 1))
    with pytest.raises(ValueError, match="the view leaves it out"):
        _ = flat[0]


def test_what_views_and_fields_need_lives_on() -> None:
    a = bare_arrays.array_over(PLAIN, (4, 5), (3, 2))
    schunk, view = a.schunk, a.expand_dims(0).expand_dims(0)
    gone = weakref.ref(a)
    gc.disable()
    try:
        del a
        assert gone() is not None  # the view of a view keeps the array itself
        assert (view[0, 0] == PLAIN).all()
        del view
        assert gone() is None
    finally:
        gc.enable()
    assert len(schunk) == 2 * 2 * 6 * 6


def test_arrays_on_the_disk_can_be_pickled(path: str) -> None:
    with superchunk.open(path, mode="a") as a:
        again = pickle.loads(pickle.dumps(a))  # noqa: S301  (our own)
        assert isinstance(again, NDArray)
        assert again.schunk.mode == "r"
        assert (again[()] == PLAIN).all()
        view = pickle.loads(pickle.dumps(a.expand_dims(1)))  # noqa: S301  (our own)
        assert (view[:, 0] == PLAIN).all()
    with pytest.raises(TypeError, match="memory"):
        pickle.dumps(superchunk.load(path))


def give_up(a: NDArray) -> None:
    """Begin a transaction, and let an error end it."""
    with a.transaction():
        a[0] = 0
        a.resize((2, 2))
        raise ZeroDivisionError


def test_life(path: str) -> None:
    with superchunk.open(path, mode="a") as a:
        with pytest.raises(ZeroDivisionError):
            give_up(a)
        assert (a[()] == PLAIN).all()
        with a.transaction():
            a[0] = 0
            a.resize((2, 10))
        with a.holding_lock() as held:
            assert held is a
        a.flush()
        assert a.verify(decode=True).status == "sound"
        assert a.refresh() is False
        a.compact()
        assert a[1, 9] == 19
    with pytest.raises(superchunk.ClosedError):
        _ = a[0]
    assert repr(a).endswith(", closed)")


def test_threads_read_one_array(path: str) -> None:
    a = superchunk.open(path)
    wrong: list[Any] = []

    def read(column: int) -> None:
        wrong.extend(column for _ in range(50) if (a[:, column] != PLAIN[:, column]).any())

    threads = [threading.Thread(target=read, args=(column,)) for column in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_another_array_in_the_place_of_an_open_one_is_not_mistaken_for_it(path: str) -> None:
    with superchunk.open(path) as a:
        bare_arrays.array_over(PLAIN.astype("<f8"), (4, 5), (3, 2), urlpath=path, mode="w").close()
        with pytest.raises(superchunk.FormatError, match="open it again"):
            _ = a[0]


@pytest.mark.parametrize("dtype", ["<f8", ">i2", "S5", "<U3", "M8[ns]", [("a", "<i4"), ("b", "<f8", (2,))]])
def test_c_blosc2_reads_what_we_write(dtype: DTypeLike, tmp_path: Path) -> None:
    plain = np.zeros((7, 10), dtype)
    if plain.dtype.names is None:
        plain[2:, 3:8] = PLAIN[2:, 3:8].astype(plain.dtype if plain.dtype.kind != "M" else "i8").astype(dtype)
    else:
        plain["a"] = PLAIN
    with bare_arrays.array_over(plain, (4, 5), (3, 2), urlpath=tmp_path / "a.b2nd") as a:
        a[3] = plain[2]
    plain[3] = plain[2]
    theirs = blosc2.open(str(tmp_path / "a.b2nd"))
    assert theirs.dtype == plain.dtype
    assert theirs[:].tobytes() == plain.tobytes()
