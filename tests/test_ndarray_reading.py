"""Reading items of arrays: every index expression means what it means to NumPy, and the corpus reads as it should."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import bare_arrays
import corpus
import numpy as np
import pytest
from reference.boxes import chunk_content, chunk_items, read_box

import superchunk
from superchunk._array import reading
from superchunk._array.ndarray import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call gives: an array, or its error."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001  (NumPy's, to compare with)
        return error


def agree(found: Any, expected: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether two outcomes are the same."""
    if isinstance(expected, Exception):
        return isinstance(found, type(expected))
    wanted = np.asarray(expected, dtype)
    return bool(found.shape == wanted.shape and found.dtype == dtype and found.tobytes() == wanted.tobytes())


@pytest.mark.parametrize("seed", range(40))
def test_any_index_reads_as_numpy_does(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(6):
        shape = bare_arrays.some_shape(rng)
        plain = bare_arrays.letters(rng, shape, rng.choice(bare_arrays.DTYPES))
        a = bare_arrays.array_over(plain, *bare_arrays.partition(rng, shape))
        for _ in range(8):
            key = bare_arrays.some_key(rng, shape)
            found, expected = outcome(lambda: a[key]), outcome(lambda: plain[key])  # noqa: B023  (called at once)
            assert agree(found, expected, plain.dtype), (shape, a.chunks, a.blocks, key, found, expected)


@pytest.mark.parametrize("seed", range(10))
def test_views_read_as_those_of_numpy(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(8):
        shape = (*bare_arrays.some_shape(rng, 2), 1)
        plain = bare_arrays.letters(rng, shape, "<i4")
        a = bare_arrays.array_over(plain, *bare_arrays.partition(rng, shape))
        at = rng.randint(0, len(shape))
        for view, same in (
            (a.squeeze(-1), plain.squeeze(-1)),
            (a.expand_dims(at), np.expand_dims(plain, at)),
            (a.expand_dims(at).squeeze(at), plain),
            (a.squeeze(-1).expand_dims(0), np.expand_dims(plain.squeeze(-1), 0)),
        ):
            assert view.shape == same.shape
            for _ in range(4):
                key = bare_arrays.some_key(rng, same.shape)
                found, expected = outcome(lambda: view[key]), outcome(lambda: same[key])  # noqa: B023
                assert agree(found, expected, plain.dtype), (shape, a.chunks, key)


def arrays_of(entry: corpus.Entry) -> NDArray:
    """Return the array of an entry of the corpus."""
    opened = superchunk.open(entry.path)
    assert isinstance(opened, NDArray)
    return opened


@corpus.parametrize("b2nd")
def test_arrays_of_the_corpus_read_as_the_manifest_says(entry: corpus.Entry) -> None:
    if corpus.stands_for_something_else(entry):
        with pytest.raises(superchunk.UnsafeDeserializationError, match="a stored lazy expression"):
            superchunk.open(entry.path)
        return
    with arrays_of(entry) as a:
        fields = entry.fields
        assert a.shape == tuple(fields["shape"])
        assert (a.chunks, a.blocks) == (tuple(fields["chunks"]), tuple(fields["blocks"]))
        if fields.get("array_sha256") is not None:
            assert corpus.sha256(a.tobytes()) == fields["array_sha256"]
        for part in entry.slices:
            key = tuple(map(slice, part.start, part.stop))
            assert corpus.sha256(a[key].tobytes()) == part.sha256


@pytest.fixture
def pair() -> tuple[NDArray, np.ndarray[Any, Any]]:
    plain = np.arange(13 * 11, dtype="<i4").reshape(13, 11)
    return bare_arrays.array_over(plain, (5, 4), (2, 3)), plain


def test_a_read_into_a_given_array(pair: tuple[NDArray, np.ndarray[Any, Any]]) -> None:
    a, plain = pair
    for key in ((), (slice(2, 9), slice(1, 7)), ([3, 3, 1],), (slice(None, None, -2),), (plain % 3 == 0,)):
        for dtype in ("<i4", "<f8"):
            out = np.full(plain[key].shape, -1, dtype)
            assert a.get(key, out=out) is out
            assert (out == plain[key]).all()
    strided = np.zeros((26, 22), "<i4")[::2, ::2]
    assert (a.get(out=strided) == plain).all()
    with pytest.raises(ValueError, match=r"shape \(13, 11\), got \(11, 13\)"):
        a.get(out=np.zeros((11, 13), "<i4"))
    strided.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        a.get(out=strided)


def test_oindex_crosses_positions(pair: tuple[NDArray, np.ndarray[Any, Any]]) -> None:
    a, plain = pair
    rows, columns = np.array([7, 0, 7, -1]), np.array([2, 9])
    assert (a.oindex[rows, columns] == plain[np.ix_(rows, columns)]).all()
    assert (a.oindex[rows] == plain[rows]).all()
    assert (a.oindex[..., [1, 0]] == plain[:, [1, 0]]).all()
    assert (a.oindex[plain[:, 0] > 30, 3] == plain[plain[:, 0] > 30, 3]).all()
    assert (a.oindex[1:9:3, columns] == plain[1:9:3][:, columns]).all()
    for key, why in (((None, 1), "new axes"), (([[1]],), "one-dimensional"), (([13],), "out of bounds")):
        with pytest.raises(IndexError, match=why):
            _ = a.oindex[key]


def test_errors_are_those_of_numpy(pair: tuple[NDArray, np.ndarray[Any, Any]]) -> None:
    a, plain = pair
    keys: list[Any] = [13, -14, (0, 11), (1, 2, 3), 1.5, "x", [0.5], np.zeros(13), (..., ...), ([1, 2], [1, 2, 3])]
    keys += [np.zeros((13, 10), bool), [13], {}, object()]
    for key in keys:
        expected, found = outcome(lambda: plain[key]), outcome(lambda: a[key])  # noqa: B023
        kind = ValueError if isinstance(key, str) else type(expected)
        assert isinstance(found, kind), (key, expected, found)


def test_numpy_functions_take_arrays(pair: tuple[NDArray, np.ndarray[Any, Any]]) -> None:
    a, plain = pair
    assert np.sum(a) == plain.sum()
    assert (np.asarray(a, "f8") == plain).all()
    assert (np.add(a, 1) == plain + 1).all()
    assert np.asarray(a).dtype == plain.dtype
    with pytest.raises(ValueError, match=r"copy=False"):
        np.asarray(a, copy=False)
    assert a.tobytes() == plain.tobytes()
    assert a.tolist() == plain.tolist()


def test_iteration_goes_over_the_first_dimension(pair: tuple[NDArray, np.ndarray[Any, Any]]) -> None:
    a, plain = pair
    assert len(a) == 13
    assert all((row == same).all() for row, same in zip(a, plain, strict=True))
    line = bare_arrays.array_over(np.arange(10), (3,), (2,))
    assert list(line) == list(range(10))
    assert list(bare_arrays.array_over(np.zeros((0, 3)), (2, 2), (1, 1))) == []
    lone = bare_arrays.array_over(np.zeros(()), (), ())
    with pytest.raises(TypeError):
        len(lone)
    with pytest.raises(TypeError):
        next(iter(lone))


def test_chunks_and_blocks_cover_the_array_once(pair: tuple[NDArray, np.ndarray[Any, Any]]) -> None:
    a, plain = pair
    for parts, pieces in ((a.iterchunks(), 9), (a.iterblocks(), None)):
        seen = np.zeros(plain.shape, int)
        coords = []
        for part in parts:
            assert (plain[part.region] == part.items).all()
            seen[part.region] += 1
            coords.append(part.coords)
        assert (seen == 1).all()
        assert len(set(coords)) == len(coords) == (pieces or len(coords))
        assert coords[0] == (0, 0)


def test_one_item_becomes_a_python_value() -> None:
    lone = bare_arrays.array_over(np.array(7), (), ())
    assert (int(lone), float(lone), complex(lone), bool(lone), lone.item(), [1] * lone.__index__()) == (
        7,
        7.0,
        7 + 0j,
        True,
        7,
        [1] * 7,
    )
    line = bare_arrays.array_over(np.arange(3), (2,), (1,))
    assert line.item(2) == 2
    for call, error in ((int, TypeError), (float, TypeError), (bool, ValueError), (NDArray.item, ValueError)):
        with pytest.raises(error):
            call(line)
    with pytest.raises(TypeError, match="unhashable"):
        hash(line)


def test_fields_read_one_column() -> None:
    plain = np.zeros((4, 3), [("x", "<i4"), ("v", "<f8", (2,))])
    plain["x"] = np.arange(12).reshape(4, 3)
    plain["v"] = np.arange(24).reshape(4, 3, 2)
    a = bare_arrays.array_over(plain, (3, 2), (2, 1))
    assert list(a.fields) == ["x", "v"]
    assert len(a.fields) == 2
    assert (a["x"][1:, ::2] == plain["x"][1:, ::2]).all()
    assert (np.asarray(a.fields["v"]) == plain["v"]).all()
    assert (a["v"].shape, a["v"].dtype) == ((4, 3, 2), np.dtype("<f8"))
    assert (a[["x"]] == plain[["x"]]).all()
    assert [row.tolist() for row in a["x"]] == plain["x"].tolist()
    assert (bare_arrays.array_over(plain, (3, 2), (2, 1)).fields["x"][0] == plain["x"][0]).all()  # of a temporary array
    with pytest.raises(ValueError, match=r"no field of name 'y'"):
        _ = a["y"]
    with pytest.raises(KeyError):
        _ = a.fields["y"]
    with pytest.raises(TypeError):
        a.fields["x"] = 1


def test_a_field_of_sub_arrays_has_their_dimensions_as_well() -> None:
    plain = np.zeros((4, 3), [("x", "<i4"), ("v", ">f8", (2, 5))])
    plain["v"] = np.arange(120).reshape(4, 3, 2, 5)
    a = bare_arrays.array_over(plain, (3, 2), (2, 1))
    mask = np.arange(30).reshape(3, 2, 5) % 4 == 0
    keys: tuple[Any, ...] = (
        ..., (..., 0), (1, 2, 1, 3), (1, 2, 1), (slice(None), -1, ..., slice(None, None, -2)), (None, 1, ..., None),
        ([3, 0, 3], 1), ([3, 0, 3], slice(None), [1, 0, 0]), ([[1], [0]], 1, slice(1, 0), [2, 4]), (0, mask), (True, 2),
        (slice(0), ..., 3), (..., [4, 4, 1]), plain["v"] > 70, (2, [], 1), (False, ..., 0), (slice(None),) * 4,
    )  # fmt: skip
    for key in keys:
        wanted = plain["v"][key]
        found = a["v"][key]
        assert (found.dtype, found.shape) == (plain["v"].dtype, np.shape(wanted)), key
        assert (found == wanted).all(), key
    for wrong in ((0, 0, 0, 0, 0), (0, 0, 2), (..., [5]), (..., 0, ...), "x", ["x"], (0, mask[:2])):
        with pytest.raises(IndexError):
            _ = a["v"][wrong]
    lone = bare_arrays.array_over(plain[1, 1], (), ())
    assert (len(lone["v"]), [row.tolist() for row in lone["v"]]) == (2, plain["v"][1, 1].tolist())
    assert lone["v"][1, [3, 0]].tolist() == plain["v"][1, 1, 1, [3, 0]].tolist()
    with pytest.raises(TypeError, match="unsized"):
        len(lone["x"])


def test_properties_say_what_the_format_says(pair: tuple[NDArray, np.ndarray[Any, Any]]) -> None:
    a, plain = pair
    assert (a.shape, a.chunks, a.blocks, a.ndim, a.size) == ((13, 11), (5, 4), (2, 3), 2, 143)
    assert (a.ext_shape, a.ext_chunks) == ((15, 12), (6, 6))
    assert (a.nbytes, a.itemsize, a.chunksize, a.blocksize) == (plain.nbytes, 4, 80, 24)
    assert (a.schunk.chunksize, a.schunk.typesize, a.nchunks) == (144, 4, 9)
    assert a.dtype == plain.dtype
    assert a.cratio == a.schunk.cratio
    assert a.cbytes == a.schunk.cbytes
    assert a.attrs is a.vlmeta
    assert repr(a) == "NDArray(shape=(13, 11), dtype=int32, chunks=(5, 4), blocks=(2, 3))"
    assert [name for name, _ in a.info_items] == [
        *("type", "shape", "chunks", "blocks", "dtype", "nbytes", "cbytes", "cratio", "cparams", "dparams"),
    ]
    infos = list(a.iterchunks_info())
    assert [info.coords for info in infos] == [(i, j) for i in range(3) for j in range(3)]
    assert a.get_chunk(4) == a.schunk.get_chunk(4)
    a[:5, :4] = 6
    first = next(a.iterchunks_info())
    assert (first.special, first.repeated_value) == (superchunk.SpecialValue.NOT_SPECIAL, 6)
    b = bare_arrays.array_over(np.full((16, 16), 6, "<i4"), (8, 8), (4, 4))
    assert next(b.iterchunks_info()).repeated_value == 6


def test_the_plain_model_of_the_format_agrees() -> None:
    plain = np.arange(35, dtype="<u2").reshape(5, 7)
    a = bare_arrays.array_over(plain, (3, 4), (2, 3))
    decoded = [a.schunk.decompress_chunk(n) or b"" for n in range(4)]
    assert (chunk_items(decoded[0], (3, 4), (2, 3), 2).view("<u2") == plain[:3, :4]).all()
    assert [chunk_content(plain[i : i + 3, j : j + 4], (3, 4), (2, 3)) for i in (0, 3) for j in (0, 4)] == decoded
    box = ([4, 0, 3], [6, 1, 1, 5])
    assert read_box(lambda n: decoded[n], (3, 4), (2, 3), 2, (5, 7), box) == plain[np.ix_(*box)].tobytes()


def test_a_postfilter_and_seals_are_heeded(tmp_path: Path) -> None:
    plain = np.arange(60, dtype="<i4").reshape(6, 10)
    path = tmp_path / "a.b2nd"
    bare_arrays.array_over(plain, (4, 4), (2, 2), urlpath=path).close()
    with superchunk.open(path, verify="read", dparams={"nthreads": 1}) as a:
        assert (a[1:, 2] == plain[1:, 2]).all()

        @a.schunk.postfilter(np.dtype("<i4"))  # type: ignore[untyped-decorator]
        def negate(given: Any, output: Any, offset: int) -> None:  # noqa: ARG001  (as filters are)
            output[:] = -given

        assert (a[1:, 2:9] == -plain[1:, 2:9]).all()
        assert a[5, 9] == -59
        a.schunk.remove_postfilter("negate")
        assert a[5, 9] == 59


@pytest.mark.parametrize("shape", [(1000,), (70, 90), (13, 17, 11), (3, 0, 2)], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
def test_a_mask_takes_the_same_items_whichever_way_they_are_read(
    shape: tuple[int, ...], share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    for dtype in ("i4", "M8[s]", [("a", "i2"), ("b", "S3")]):
        plain = np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape)
        array = superchunk.asarray(plain, chunks=tuple(max(n // 3, 1) for n in shape) if all(shape) else None)
        mask = rng.random(shape) < share
        for slab in (1, 2**24):
            monkeypatch.setattr(reading, "SLAB_NBYTES", slab)
            for sparse in (0, 2**40):  # by places; whole rows of chunks
                monkeypatch.setattr(reading, "_SPARSE", sparse)
                assert array[mask].tobytes() == plain[mask].tobytes()
        monkeypatch.undo()
        assert array.T[mask.T].tobytes() == plain.T[mask.T].tobytes()
        if all(shape):
            assert array.expand_dims(0)[mask[None]].tobytes() == plain[mask].tobytes()
