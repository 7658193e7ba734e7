"""Constructors of arrays against NumPy, the format's model, and the reference as a reader."""

from __future__ import annotations

import array as pyarray
import time
from itertools import count
from typing import TYPE_CHECKING, Any

import blosc2
import ml_dtypes
import numpy as np
import pytest
from array_model import check_layout, opened
from hypothesis import given, settings
from hypothesis import strategies as st

import superchunk
from superchunk import SpecialValue
from superchunk._store.changes_and_undo import MutableChunkTable
from superchunk._store.contiguous_frame import ContiguousState
from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import DTypeLike
    from numpy.typing import NDArray as NumpyArray

DTYPES = [
    "i1", "u2", "<i4", ">i4", "i8", "u8", "f2", "f4", ">f8", "c8", "c16", "g", "?", "M8[ns]", "m8[D]", ">M8[s]",
    "S5", "U7", ">U3", "V3", "S300",
    [("a", "i4"), ("b", ">f8", (2, 3)), ("c", [("d", "S3")])],
    {"names": ["a", "b"], "formats": ["u1", "f8"], "offsets": [2, 8], "itemsize": 24},
    np.dtype([("a", "u1"), ("b", "f8")], align=True),
]  # fmt: skip


def random_items(shape: tuple[int, ...], dtype: DTypeLike, seed: int = 0) -> NumpyArray[Any]:
    """Return items of random bytes; for text and booleans of bytes that they can have."""
    kind = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if kind.kind == "U":
        flat = np.array(["".join(chr(c) for c in rng.integers(33, 999, kind.itemsize // 4)) for _ in range(64)], kind)
        return rng.choice(flat, shape)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(kind)
    raw = rng.integers(0, 256, (*shape, kind.itemsize), np.uint8)
    return np.frombuffer(raw.tobytes(), kind).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_asarray_keeps_items_dtype_and_layout(dtype: DTypeLike, tmp_path: Path) -> None:
    items = random_items((5, 7), dtype)
    a = superchunk.asarray(items, chunks=(3, 4), blocks=(2, 3), urlpath=tmp_path / "a.b2nd")
    assert a.shape == (5, 7)
    assert a.dtype == items.dtype
    check_layout(a, items)
    assert a[:].tobytes() == items.tobytes()
    again = opened(tmp_path / "a.b2nd")
    assert again.dtype == items.dtype
    assert again[:].tobytes() == items.tobytes()
    theirs = blosc2.open(str(tmp_path / "a.b2nd"), mode="r")
    assert theirs[:].tobytes() == items.tobytes()
    assert theirs.dtype == items.dtype


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_dtypes_of_ml_dtypes_are_taken(dtype: str, tmp_path: Path) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype))
    items = (np.arange(40) % 7).astype(kind).reshape(8, 5)
    a = superchunk.asarray(items, chunks=(3, 3), blocks=(2, 2), urlpath=tmp_path / "a.b2nd")
    assert a.dtype == kind
    check_layout(a, items)
    assert opened(tmp_path / "a.b2nd").dtype == kind
    assert superchunk.full((3, 3), 1.5 if "float" in dtype else 1, dtype=kind)[0, 0] == (1.5 if "float" in dtype else 1)
    assert superchunk.zeros((3,), kind).dtype == kind


@pytest.mark.parametrize("dtype", [object, [("a", "i4"), ("b", "O")], np.dtypes.StringDType()])
def test_items_that_are_objects_are_refused(dtype: DTypeLike, tmp_path: Path) -> None:
    path = tmp_path / "a.b2nd"
    for make in (superchunk.zeros, superchunk.empty, superchunk.uninit):
        with pytest.raises(TypeError):
            make((3,), dtype=dtype, urlpath=path)
    with pytest.raises(TypeError):
        superchunk.asarray(np.zeros(3, dtype), urlpath=path)
    assert not path.exists()


shapes = st.lists(st.integers(0, 5), max_size=5).map(tuple)


@st.composite
def geometries(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    shape = draw(shapes)
    chunks = tuple(draw(st.integers(1, max(size, 1) + 2)) for size in shape)
    return shape, chunks, tuple(draw(st.integers(1, c)) for c in chunks)


@settings(max_examples=150, deadline=None)
@given(geometries(), st.sampled_from(["i4", "u1", "f8", "S3"]), st.data())
def test_asarray_of_any_strides_has_the_layout_of_the_model(
    geometry: tuple[tuple[int, ...], ...], dtype: str, data: st.DataObject
) -> None:
    shape, chunks, blocks = geometry
    order = data.draw(st.permutations(range(len(shape))))
    steps = [data.draw(st.sampled_from([1, -1, 2, -3])) for _ in shape]
    big = random_items(tuple((shape[i] or 1) * abs(steps[i]) for i in order), dtype)
    whole = np.asarray(big).transpose(np.argsort(order))
    strided: Any = (*(slice(None, None, step) for step in steps), ...)
    cut: Any = (*(slice(0, size) for size in shape), ...)
    items = whole[strided][cut]
    assert items.shape == shape
    check_layout(superchunk.asarray(items, chunks=chunks, blocks=blocks), items)


@pytest.mark.parametrize("ndim", range(17))
def test_0_to_16_dimensions(ndim: int, tmp_path: Path) -> None:
    shape = (2,) * min(ndim, 10) + (1,) * (ndim - 10)
    items = np.arange(2 ** min(ndim, 10), dtype="i4").reshape(shape)
    a = superchunk.asarray(items, chunks=shape, blocks=(1,) * ndim, urlpath=tmp_path / "a")
    check_layout(a, items)
    assert blosc2.open(str(tmp_path / "a"), mode="r")[()].tolist() == items.tolist()


@pytest.mark.parametrize("shape", [(), 0, (0,), (3, 0), (0, 2**40), (0, 0, 0)])
@pytest.mark.parametrize("maker", ["zeros", "empty", "uninit", "nans", "ones"])
def test_shapes_without_extent(shape: int | tuple[int, ...], maker: str, tmp_path: Path) -> None:
    a = getattr(superchunk, maker)(shape, dtype="f4", urlpath=tmp_path / "a")
    assert a.shape == ((shape,) if isinstance(shape, int) else shape)
    assert a.schunk.nchunks == (0 if a.shape else 1)
    theirs = blosc2.open(str(tmp_path / "a"), mode="r")
    assert theirs.shape == a.shape
    b = opened(tmp_path / "a")
    assert b.shape == a.shape
    assert b[()].shape == a.shape


def test_zero_size_frames_are_those_of_the_reference(tmp_path: Path) -> None:
    superchunk.zeros((0, 4), dtype="i4", urlpath=tmp_path / "ours")
    blosc2.zeros((0, 4), dtype="i4", urlpath=str(tmp_path / "theirs"))
    ours, theirs = (tmp_path / "ours").read_bytes(), (tmp_path / "theirs").read_bytes()
    assert ours[0x1A - 1] == theirs[0x1A - 1] == 0x53  # general flags
    assert opened(tmp_path / "theirs").schunk.meta == opened(tmp_path / "ours").schunk.meta


def test_metalayer_of_the_page(tmp_path: Path) -> None:
    superchunk.zeros((3, 4), dtype="<i4", chunks=(3, 4), blocks=(3, 4), urlpath=tmp_path / "a")
    layer = (
        "97 00 02 92 D3 0000000000000003 D3 0000000000000004 92 D2 00000003 D2 00000004"
        "92 D2 00000003 D2 00000004 00 DB 00000003 3C6934"
    )
    assert bytes.fromhex(layer) in (tmp_path / "a").read_bytes()


@pytest.mark.parametrize("seal", [True, False])
def test_a_value_in_many_chunks_is_stored_as_if_one_by_one(
    *, seal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make: dict[str, Any] = {"shape": 30_001, "fill_value": 7, "chunks": 2, "blocks": 1, "seal": seal}
    with superchunk.full(**make, urlpath=tmp_path / "a") as a:
        assert a[::1000].tolist() == [7] * 31
    monkeypatch.setattr(ContiguousState, "put_repeated", MutableChunkTable.put_repeated)
    superchunk.full(**make, urlpath=tmp_path / "b").close()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert superchunk.verify(tmp_path / "a").status == ("sound" if seal else "not sealed")


@pytest.mark.parametrize("path", [None, "a.b2nd"])
@pytest.mark.parametrize(
    ("maker", "special"),
    [("zeros", SpecialValue.ZERO), ("nans", SpecialValue.NAN), ("uninit", SpecialValue.UNINIT)],
)
def test_huge_arrays_of_one_value_are_made_at_once(
    maker: str, special: SpecialValue, path: str | None, tmp_path: Path
) -> None:
    start = time.perf_counter()
    a = getattr(superchunk, maker)((10**6, 10**6), urlpath=path and tmp_path / path)
    assert time.perf_counter() - start < 2
    assert next(a.schunk.iterchunks_info()).special is special
    expected = np.nan if maker == "nans" else 0
    np.testing.assert_array_equal(a[999_998:, 5:7], np.full((2, 2), expected))
    if path:
        assert (tmp_path / path).stat().st_size < 2000


def test_special_values_are_read_by_the_reference(tmp_path: Path) -> None:
    superchunk.zeros((7, 9), dtype="i2", chunks=(3, 4), urlpath=tmp_path / "zeros")
    superchunk.nans((7, 9), dtype="f4", chunks=(3, 4), urlpath=tmp_path / "nans")
    superchunk.full((7, 9), 1.5, chunks=(3, 4), urlpath=tmp_path / "full")
    superchunk.full((7, 9), b"x" * 300, chunks=(3, 4), urlpath=tmp_path / "long")
    superchunk.full((7, 9), (1, 2.5), dtype=[("a", "u1"), ("b", ">f8")], chunks=(3, 4), urlpath=tmp_path / "record")
    expected = {
        "zeros": np.zeros((7, 9), "i2"),
        "nans": np.full((7, 9), np.nan, "f4"),
        "full": np.full((7, 9), 1.5),
        "long": np.full((7, 9), b"x" * 300),
        "record": np.full((7, 9), np.array((1, 2.5), [("a", "u1"), ("b", ">f8")])),
    }
    for name, items in expected.items():
        assert blosc2.open(str(tmp_path / name), mode="r")[:].tobytes() == items.tobytes()
        assert opened(tmp_path / name)[:].tobytes() == items.tobytes()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", ">f8", "g", "c8", "c16", ml_dtypes.bfloat16])
def test_nans_are_nan_in_every_dtype_that_has_them(dtype: DTypeLike) -> None:
    a = superchunk.nans((5, 3), dtype=dtype, chunks=(2, 2))
    assert np.isnan(a[:].astype(np.complex128)).all()
    assert a.dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["i4", "u8", "?", "S3", "U3", [("a", "f8")]])
def test_nans_of_items_that_cannot_be_nan_are_refused(dtype: DTypeLike, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="NaN"):
        superchunk.nans((5,), dtype=dtype, urlpath=tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (0, "i4"), (7, "i4"), (7, ">i4"), (-1.5, None), (3, None), (True, None), (1 + 2j, None), (b"abc", None),
        ("öäü", None), ("öä", "U5"), (b"a" * 300, None), (np.datetime64("2020-01-01"), None), (np.float32(2), None),
        (-0.0, "f8"), (b"abc", "S7"),
    ],
)  # fmt: skip
def test_full(value: object, dtype: DTypeLike) -> None:
    a = superchunk.full((5, 3), value, dtype=dtype, chunks=(2, 2))
    kind = None if isinstance(value, bytes) else dtype
    expected = np.full((5, 3), value, kind)
    assert a.dtype == expected.dtype
    assert a[:].tobytes() == expected.tobytes()
    item = np.full((), value, kind)
    info = next(a.schunk.iterchunks_info())
    if not any(item.tobytes()):
        assert info.special is SpecialValue.ZERO
    elif item.itemsize <= 255:
        assert info.special is SpecialValue.VALUE
        assert a.schunk.cbytes == a.schunk.nchunks * (32 + item.itemsize)


def test_full_refuses_what_is_no_item() -> None:
    with pytest.raises(ValueError, match=r"array|shape|broadcast"):
        superchunk.full((3,), [1, 2, 3])
    with pytest.raises(OverflowError):
        superchunk.full((3,), 300, dtype="u1")


def test_ones_and_likes() -> None:
    assert superchunk.ones(3).dtype == np.float64
    assert superchunk.ones((3, 2), dtype=">i2")[:].tolist() == [[1, 1]] * 3
    x = np.zeros((3, 4), "i2")
    for given_ in (x, superchunk.asarray(x)):
        assert superchunk.empty_like(given_)[:].tolist() == x.tolist()
        assert superchunk.zeros_like(given_).dtype == x.dtype
        assert superchunk.zeros_like(given_, dtype="f4").dtype == np.float32
        assert superchunk.ones_like(given_)[:].tolist() == np.ones_like(x).tolist()
        assert superchunk.full_like(given_, 5)[:].tolist() == np.full_like(x, 5).tolist()
        assert superchunk.full_like(given_, 2.5, dtype="f8")[0, 0] == 2.5


@pytest.mark.parametrize(
    "arguments",
    [
        (10,), (2, 10), (2, 10, 3), (10, 2, -3), (0,), (5, 2), (0.5, 3), (0, 1, 0.1), (0, 300_000), (0, 300_000, 0.1),
        (7, -500_000, -3), (np.datetime64("2020-01-01"), np.datetime64("2020-03-01")),
        (np.datetime64("1000-01-01"), np.datetime64("2020-03-01"), 2),
        (np.float32(0), np.float32(3e5), np.float32(0.7)),
    ],
)  # fmt: skip
def test_arange_is_that_of_numpy(arguments: tuple[Any, ...]) -> None:
    expected = np.arange(*arguments)
    a = superchunk.arange(*arguments)
    assert a.dtype == expected.dtype
    assert a.shape == expected.shape
    assert a[:].tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "dtype", ["i1", "u4", "f2", "f4", "f8", "g", "c8", "c16", ">f4", ">i8", "m8[s]", ml_dtypes.bfloat16]
)
def test_long_ranges_are_those_of_numpy_in_every_dtype(dtype: DTypeLike) -> None:
    n = 1_200_000
    with np.errstate(all="ignore"):
        native = np.dtype(dtype).newbyteorder("=")
        expected = np.arange(0, n, 1, native).astype(dtype)  # type: ignore[call-overload]  # of any dtype
        a = superchunk.arange(0, n, 1, dtype, chunks=100_000)
        np.testing.assert_array_equal(a[:], expected, strict=True)


def test_arange_with_a_shape() -> None:
    assert superchunk.arange(24, shape=(4, 6), chunks=(3, 4))[:].tolist() == np.arange(24).reshape(4, 6).tolist()
    a = superchunk.arange(12, shape=(2, 6), chunks=(2, 3), c_order=False)
    assert a[:].tolist() == [[0, 1, 2, 6, 7, 8], [3, 4, 5, 9, 10, 11]]
    with pytest.raises(ValueError, match="24 items"):
        superchunk.arange(24, shape=(5, 5))
    with pytest.raises(ZeroDivisionError):
        superchunk.arange(0, 5, 0)


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("dtype", [None, "f4", "i4", ">f8", "c16"])
@pytest.mark.parametrize("num", [0, 1, 2, 50, 200_000])
def test_linspace_is_that_of_numpy(num: int, dtype: DTypeLike, endpoint: bool) -> None:  # noqa: FBT001
    expected = np.linspace(-3.7, 11.9, num, endpoint=endpoint, dtype=dtype)
    a = superchunk.linspace(-3.7, 11.9, num, dtype, endpoint, chunks=70_000 if num else None)
    assert a.dtype == expected.dtype
    assert a[:].tobytes() == expected.tobytes()


def test_linspace_with_a_shape_and_its_errors() -> None:
    expected = np.linspace(0, 1, 12).reshape(3, 4)
    assert superchunk.linspace(0, 1, shape=(3, 4), chunks=(2, 3))[:].tobytes() == expected.tobytes()
    assert superchunk.linspace(5, 5, 4)[:].tolist() == [5.0] * 4
    assert superchunk.linspace(0, 5e-324, 4)[:].tobytes() == np.linspace(0, 5e-324, 4).tobytes()
    for arguments in ({}, {"num": 5, "shape": (2, 3)}):
        with pytest.raises(ValueError, match="num"):
            superchunk.linspace(0, 1, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(5, None), (5, 9), (9, 5), (0, 3), (1, 1)])
@pytest.mark.parametrize("k", [0, 2, -3, 100])
def test_eye_is_that_of_numpy(shape: tuple[int, int | None], k: int, tmp_path: Path) -> None:
    options = {"chunks": (2, 3)} if shape[0] > 1 else {}
    a = superchunk.eye(*shape, k=k, dtype="i4", urlpath=tmp_path / "a", **options)  # type: ignore[arg-type]
    assert a[:].tolist() == np.eye(*shape, k=k).tolist()
    assert opened(tmp_path / "a")[:].tolist() == np.eye(*shape, k=k).tolist()


def test_a_huge_eye_takes_its_diagonal_only() -> None:
    a = superchunk.eye(50_000, dtype="u1", chunks=(1500, 1500), cparams={"clevel": 1})
    assert a[7_777, 7_776:7_779].tolist() == [0, 1, 0]
    special = [info.special is SpecialValue.ZERO for info in a.schunk.iterchunks_info()]
    assert special.count(False) < sum(-(-50_000 // chunk) for chunk in a.chunks)


def test_frombuffer() -> None:
    raw = bytes(range(24))
    for buffer in (raw, bytearray(raw), memoryview(raw), pyarray.array("B", raw)):
        a = superchunk.frombuffer(buffer, (2, 3), "<i4", chunks=(1, 2))
        assert a[:].tobytes() == raw
    assert superchunk.frombuffer(raw, (5,))[:].tolist() == [0, 1, 2, 3, 4]
    assert superchunk.frombuffer(b"", (0, 3)).shape == (0, 3)
    with pytest.raises(RuntimeError, match="24"):
        superchunk.frombuffer(raw, (25,))


@pytest.mark.parametrize("shape", [(), (7,), (4, 5), (3, 0, 2), (5, 3, 4)])
@pytest.mark.parametrize("c_order", [True, False])
def test_fromiter_takes_what_it_needs(shape: tuple[int, ...], c_order: bool) -> None:  # noqa: FBT001
    need = int(np.prod(shape))
    values = count()
    options = {} if 0 in shape else {"chunks": tuple(min(2, n) for n in shape)}
    a = superchunk.fromiter(values, shape, "i4", c_order, **options)  # type: ignore[arg-type]
    assert next(values) == need
    assert sorted(a[()].reshape(-1).tolist()) == list(range(need))
    if c_order:
        assert a[()].tolist() == np.arange(need).reshape(shape).tolist()


def test_fromiter_of_too_few_values_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"")
    for c_order in (True, False):
        with pytest.raises(ValueError, match="expected at least 100 values, one for each item, got 99"):
            superchunk.fromiter(iter(range(99)), (10, 10), "i4", c_order, chunks=(3, 3), urlpath=tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]

    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("of the iterable")

    with pytest.raises(ValueError, match="of the iterable"):
        superchunk.fromiter(failing(), (10,), "i4")


def test_fromiter_of_arrays_records_and_text() -> None:
    items = np.arange(12.0).reshape(3, 4)
    assert superchunk.fromiter(items, (3, 4), "f8")[:].tolist() == items.tolist()
    assert superchunk.fromiter(items, (2, 5), "i2")[:].tolist() == np.arange(10).reshape(2, 5).tolist()
    record = superchunk.fromiter([(1, 2.5), (3, 4.5)], (2,), [("a", "i4"), ("b", "f8")])
    assert record[:].tolist() == [(1, 2.5), (3, 4.5)]
    assert superchunk.fromiter(["a", "bc"], (2,), "U3")[:].tolist() == ["a", "bc"]


class Rows:
    """A data set as h5py and Zarr have them: shape, dtype, slicing; it counts what is read at once."""

    def __init__(self, items: NumpyArray[Any]) -> None:
        self.items, self.shape, self.dtype = items, items.shape, items.dtype
        self.largest = 0

    def __getitem__(self, key: tuple[slice, ...]) -> NumpyArray[Any]:
        found = self.items[key].copy()
        self.largest = max(self.largest, found.size)
        return found


class Interface:
    """NumPy's array interface and nothing else."""

    def __init__(self, items: NumpyArray[Any]) -> None:
        self.items = items
        self.__array_interface__ = items.__array_interface__


class DLPack:
    """DLPack and nothing else."""

    def __init__(self, items: NumpyArray[Any], device: int = 1) -> None:
        self.items, self.device = items, device

    def __dlpack__(self, **options: object) -> object:
        return self.items.__dlpack__(**options)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class Converted:
    """An ``__array__`` method and nothing else."""

    def __init__(self, items: NumpyArray[Any]) -> None:
        self.items = items

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NumpyArray[Any]:  # noqa: FBT001
        del copy
        return self.items if dtype is None else self.items.astype(dtype)


@pytest.mark.parametrize("kind", [memoryview, Rows, Interface, DLPack, Converted, np.ndarray.tolist, np.ma.asarray])
def test_asarray_takes_everything_that_holds_items(kind: Callable[[NumpyArray[Any]], object]) -> None:
    items = np.arange(60, dtype="i8").reshape(6, 10)
    a = superchunk.asarray(kind(items), chunks=(4, 4))
    check_layout(a, items)
    b = superchunk.asarray(kind(items), dtype="f4", chunks=(4, 4))
    check_layout(b, items.astype("f4"))


def test_chunks_of_one_value_are_stored_as_that_value() -> None:
    items = np.arange(100)
    items[30:70] = 7
    for given_ in (items, items[::-1].copy()[::-1], np.stack([items, items], axis=1)[:, 0]):
        a = superchunk.asarray(given_, chunks=(20,), blocks=(5,))
        values = [info.repeated_value for info in a.iterchunks_info()]
        assert values == [None, None, 7, None, None]
        assert {info.special for info in a.iterchunks_info()} == {SpecialValue.NOT_SPECIAL}, "all are data"
        assert len(a.get_chunk(2)) == 32 + 8
        assert a[:].tolist() == items.tolist()


def test_data_sets_are_read_chunk_by_chunk() -> None:
    rows = Rows(np.arange(60).reshape(6, 10))
    superchunk.asarray(rows, chunks=(2, 5))
    assert rows.largest == 10


def test_data_sets_of_hdf5_and_zarr(tmp_path: Path) -> None:
    items = np.arange(600.0).reshape(20, 30)
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        check_layout(superchunk.asarray(file.create_dataset("a", data=items), chunks=(7, 9)), items)
    zarr = pytest.importorskip("zarr")
    check_layout(superchunk.asarray(zarr.array(items, chunks=(6, 6)), chunks=(7, 9)), items)


def test_memory_of_a_device_is_refused() -> None:
    with pytest.raises(TypeError, match="CPU"):
        superchunk.asarray(DLPack(np.arange(3), device=2))


def test_numbers_text_and_nested_lists() -> None:
    assert superchunk.asarray(5)[()] == 5
    assert superchunk.asarray([[1, 2], [3, 4]], dtype="u1")[:].tolist() == [[1, 2], [3, 4]]
    assert superchunk.asarray(["a", "bcd"]).dtype == np.dtype("U3")
    assert superchunk.asarray(b"abc")[()] == b"abc"
    assert superchunk.asarray([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])[:].tolist() == [(1, 2.0)]
    with pytest.raises(ValueError, match="inhomogeneous"):
        superchunk.asarray([[1], [2, 3]])
    with pytest.raises(TypeError):
        superchunk.asarray([object()])


def test_asarray_casts_as_it_is_told() -> None:
    items = np.arange(12.5).reshape(13)
    assert superchunk.asarray(items, dtype="i4", chunks=5)[:].tolist() == list(range(13))
    with pytest.raises(TypeError, match="safe"):
        superchunk.asarray(items, dtype="i4", casting="safe")
    assert superchunk.astype(items, "f4").dtype == np.float32
    a = superchunk.asarray(items, chunks=5)
    assert superchunk.astype(a, "f8", copy=False) is a
    b = superchunk.astype(a, "i2")
    assert (b.dtype, b.chunks, b[:].tolist()) == (np.dtype("i2"), (5,), list(range(13)))


def test_an_ndarray_comes_back_itself_unless_something_changes(tmp_path: Path) -> None:
    a = superchunk.asarray(np.arange(100), chunks=30, blocks=7)
    unchanged: list[dict[str, Any]] = [
        {}, {"dtype": "i8"}, {"chunks": (30,)}, {"blocks": 7}, {"copy": False}, {"cparams": a.cparams},
        {"cparams": {}}, {"dparams": {}}, {"contiguous": False}, {"storage": {}},
    ]  # fmt: skip
    for same in unchanged:
        assert superchunk.asarray(a, **same) is a, same
    changed: list[dict[str, Any]] = [
        {"dtype": "i4"}, {"chunks": (20,)}, {"blocks": (5,)}, {"copy": True}, {"cparams": {"clevel": 1}},
        {"urlpath": tmp_path / "a"}, {"contiguous": True}, {"storage": {"urlpath": tmp_path / "b"}},
    ]  # fmt: skip
    for other in changed:
        b = superchunk.asarray(a, **other)
        assert b is not a, other
        assert b[:].tolist() == a[:].tolist()
        if "copy" not in other:
            for path in ("a", "b"):
                (tmp_path / path).unlink(missing_ok=True)
            with pytest.raises(ValueError, match="copy"):
                superchunk.asarray(a, copy=False, **other)
    with pytest.raises(ValueError, match="copy"):
        superchunk.asarray(np.arange(3), copy=False)
    assert superchunk.array(a) is not a
    with pytest.raises(KeyError):
        superchunk.asarray(a, chunk=(3,))  # type: ignore[call-arg]


def test_copies_keep_what_is_not_changed(tmp_path: Path) -> None:
    a = superchunk.asarray(
        np.arange(100), chunks=30, blocks=7, cparams={"codec": 1, "filters": [2]}, meta={"mine": [1, 2]}
    )
    a.schunk.vlmeta["more"] = "text"
    copies = [
        superchunk.copy(a),
        superchunk.copy(a, dtype="f4"),
        superchunk.copy(a, urlpath=tmp_path / "a"),
        superchunk.copy(a, chunks=(50,)),
        superchunk.copy(a, cparams={"clevel": 9}),
        superchunk.copy(a, contiguous=False, urlpath=tmp_path / "b"),
    ]
    for b in copies:
        assert b[:].tolist() == list(range(100))
        assert b.schunk.meta["mine"] == [1, 2]
        assert b.schunk.vlmeta["more"] == "text"
        check_layout(b, np.arange(100).astype(b.dtype))
    assert [b.chunks for b in copies] == [(30,)] * 3 + [(50,)] + [(30,)] * 2
    assert [b.blocks[0] for b in copies if b.chunks == (30,)] == [7] * 5
    assert [b.cparams.codec for b in copies[:4]] == [superchunk.Codec.LZ4] * 4
    assert copies[4].cparams.clevel == 9
    assert copies[1].cparams.typesize == 4
    with pytest.raises(ValueError, match="meta"):
        superchunk.copy(a, meta={"other": 1})


def test_copies_of_huge_arrays_of_one_value_stay_small(tmp_path: Path) -> None:
    a = superchunk.zeros((10**6, 10**6))
    assert superchunk.copy(a, urlpath=tmp_path / "a").schunk.cbytes == a.schunk.cbytes
    b = superchunk.copy(a, chunks=(5000, 2000), blocks=(50, 100))
    assert (b.chunks, b.blocks) == ((5000, 2000), (50, 100))


@pytest.mark.parametrize("place", [{}, {"contiguous": True}, {"contiguous": False}], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_chunks_of_the_same_place_are_joined_as_they_are(tmp_path: Path, axis: int, place: dict[str, bool]) -> None:
    keywords: Any = {"chunks": (4, 3), "blocks": (2, 3), "cparams": {"codec": superchunk.Codec.LZ4, "clevel": 1}}
    if place:
        keywords.update(place, mode="w")
    parts = [
        np.arange(8 * 6).reshape(8, 6),
        np.zeros((8, 6), np.int64),
        np.full((7, 5), 3),
        np.arange(35).reshape(7, 5),
    ]
    parts = [part[:7] if axis == 1 else part[:, :5] for part in parts]
    paths: list[Any] = [{"urlpath": tmp_path / f"{n}"} if place else {} for n in range(4)]
    arrays = [superchunk.asarray(part, **keywords, **path) for part, path in zip(parts, paths, strict=True)]
    joined = superchunk.concat(arrays, axis=axis)
    assert (joined[...] == np.concatenate(parts, axis)).all()
    assert (joined.chunks, joined.blocks, joined.cparams.codec) == ((4, 3), (2, 3), superchunk.Codec.LZ4)
    taken = {one.schunk.get_chunk(n) for one in arrays for n in range(one.nchunks)}
    assert sum(joined.get_chunk(n) in taken for n in range(joined.nchunks)) >= 8
    grown = superchunk.concat([superchunk.asarray(np.arange(8), chunks=(4,), blocks=(4,)), np.arange(3), arrays[0][0]])
    assert (grown[...] == np.concatenate([np.arange(8), np.arange(3), arrays[0][0]])).all()
    tight = superchunk.concat(arrays, axis=axis, cparams={"clevel": 9})
    assert tight.cparams.clevel == 9
    assert (tight[...] == joined[...]).all()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_chunks_that_are_stacked_are_taken_as_they_are(axis: int) -> None:
    keywords: Any = {"chunks": (80, 120), "blocks": (16, 60), "dtype": "f8"}
    parts = [np.arange(90.0 * 250).reshape(90, 250) * n for n in range(3)]  # zeros among them
    arrays = [superchunk.asarray(part, **keywords) for part in parts]
    stacked = superchunk.stack(arrays, axis=axis)
    assert (stacked[...] == np.stack(parts, axis)).all()
    for lengths, given_ in ((stacked.chunks, (80, 120)), (stacked.blocks, (16, 60))):
        assert lengths == (*given_[:axis], 1, *given_[axis:])
    taken = {one.schunk.get_chunk(n) for one in arrays for n in range(one.nchunks)}
    assert all(stacked.get_chunk(n) in taken for n in range(stacked.nchunks))
    with_cells: Any = {"filters": [superchunk.Filter.NDCELL], "filters_meta": [4]}
    for part in (superchunk.stack(arrays[:2], axis, cparams=with_cells), superchunk.stack([*arrays[:2]], axis)):
        assert (part[...] == np.stack(parts[:2], axis)).all()
    shaped = [superchunk.asarray(part, **keywords, cparams=with_cells) for part in parts]
    assert (superchunk.stack(shaped, axis)[...] == np.stack(parts, axis)).all()
    small = [superchunk.asarray(part, chunks=(9, 25)) for part in parts]
    assert superchunk.stack(small, axis).chunks == superchunk.compute_chunks_blocks(stacked.shape, dtype="f8")[0]


def test_joining_does_not_seal_damage_anew(tmp_path: Path) -> None:
    superchunk.asarray(np.arange(4000), chunks=(1000,), blocks=(500,), urlpath=tmp_path / "a").close()
    raw = bytearray((tmp_path / "a").read_bytes())
    array = superchunk.open(tmp_path / "a")
    at = bytes(raw).index(array.schunk.get_chunk(1)) + 200
    array.close()
    raw[at] ^= 1
    (tmp_path / "a").write_bytes(raw)
    with superchunk.open(tmp_path / "a") as damaged, pytest.raises(superchunk.FormatError):
        superchunk.concat([damaged, damaged], urlpath=tmp_path / "b")
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_and_stack_are_those_of_numpy(axis: int, tmp_path: Path) -> None:
    x, y, z = (np.arange(n * n, dtype=dtype).reshape(n, n) for n, dtype in ((6, "i2"), (6, "f4"), (6, "u1")))
    given_ = [superchunk.asarray(x, chunks=(4, 5), blocks=(2, 5)), y, z.tolist()]
    a = superchunk.concat(given_, axis=axis, urlpath=tmp_path / "a")
    expected = np.concatenate([x, y, np.asarray(z.tolist())], axis=axis)
    assert a.dtype == expected.dtype
    assert (a.chunks, a.blocks) == ((4, 5), (2, 5))
    check_layout(a, expected)
    b = superchunk.stack(given_, axis=axis, chunks=(2, 2, 2))
    check_layout(b, np.stack([x, y, np.asarray(z.tolist())], axis=axis))
    shorter = x[:2] if axis == 0 else x[:, :2]
    check_layout(
        superchunk.concat([x, shorter, x[:0] if axis == 0 else x[:, :0]], axis), np.concatenate([x, shorter], axis)
    )


@st.composite
def permutations(draw: st.DrawFn) -> tuple[NumpyArray[Any], dict[str, Any], list[int] | None]:
    """Draw items, how their array is cut, and an order of its dimensions."""
    shape = tuple(draw(st.lists(st.integers(0, 7), max_size=5)))
    cut = {} if draw(st.booleans()) else {"chunks": [draw(st.integers(1, 4)) for _ in shape]}
    order = draw(st.none() | st.permutations(range(len(shape))))
    if order is not None:
        order = [axis - draw(st.sampled_from([0, len(shape)])) for axis in order]
    dtype: Any = draw(st.sampled_from(DTYPES))
    return random_items(shape, dtype), cut, order


@given(drawn=permutations(), of_an_array=st.booleans())
@settings(max_examples=150, deadline=None)
def test_permute_dims_is_that_of_numpy(
    drawn: tuple[NumpyArray[Any], dict[str, Any], list[int] | None],
    *,
    of_an_array: bool,
) -> None:
    items, cut, order = drawn
    a = superchunk.asarray(items, **cut)
    plain = items.view(f"V{items.itemsize}")  # with the bytes between fields
    expected = plain.transpose(order)
    for function in (superchunk.permute_dims, superchunk.transpose):
        b = function(a if of_an_array else items, order)
        assert (b.shape, b.dtype, b[...].tobytes()) == (expected.shape, items.dtype, expected.tobytes())
        if items.size:
            check_layout(b, expected)
        if of_an_array:
            assert b.chunks == tuple(a.chunks[axis] for axis in order or range(a.ndim)[::-1])
    if items.ndim > 1:
        c = superchunk.matrix_transpose(a if of_an_array else items)
        assert c[...].tobytes() == np.matrix_transpose(plain).tobytes()


def test_permuted_copies_keep_parameters_and_take_keywords(tmp_path: Path) -> None:
    items = random_items((30, 40, 5), "f4")
    a = superchunk.asarray(items, chunks=(20, 30, 5), cparams={"codec": superchunk.Codec.LZ4, "clevel": 9})
    b = superchunk.permute_dims(a, (2, 0, 1), urlpath=tmp_path / "b", chunks=(5, 7, 11), blocks=(2, 3, 4))
    assert (b.chunks, b.blocks, b.urlpath) == ((5, 7, 11), (2, 3, 4), str(tmp_path / "b"))
    assert (b.cparams.codec, b.cparams.clevel) == (superchunk.Codec.LZ4, 9)
    check_layout(b, items.transpose(2, 0, 1))
    their = blosc2.permute_dims(blosc2.asarray(items), (2, 0, 1))
    assert their[:].tobytes() == blosc2.open(str(tmp_path / "b"), mode="r")[:].tobytes()
    assert superchunk.permute_dims(a, blocks=(1, 2, 3)).blocks == (1, 2, 3)
    assert superchunk.permute_dims(a, cparams={"clevel": 1}).cparams.codec == superchunk.Codec.ZSTD
    line = superchunk.arange(10)
    assert superchunk.permute_dims(line) is line
    assert superchunk.matrix_transpose(line) is line
    assert superchunk.permute_dims(line, urlpath=tmp_path / "line").urlpath == str(tmp_path / "line")
    assert superchunk.permute_dims([[1, 2], [3, 4]])[:].tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize("axes", [(0,), (0, 1, 2), (0, 0), (0, 2), (-3, 0), ()])
def test_axes_that_are_no_order_are_refused(axes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"ax[ei]s"):
        superchunk.permute_dims(superchunk.zeros((2, 3)), axes)


def test_joining_refuses_what_does_not_fit() -> None:
    x = np.zeros((3, 4))
    calls: list[Callable[[], object]] = [
        lambda: superchunk.concat([]),
        lambda: superchunk.concat([x, x[:, :2]]),
        lambda: superchunk.concat([x, x], axis=2),
        lambda: superchunk.concat([np.float64(1)]),
        lambda: superchunk.stack([x, x[:2]]),
        lambda: superchunk.stack([np.zeros((1,) * 16)]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"arrays|axis"):
            call()
    with pytest.raises(TypeError, match="same_kind"):
        superchunk.concat([x, x], dtype="i4")


def test_from_pieces_in_order(tmp_path: Path) -> None:
    items = np.arange(70).reshape(10, 7)
    cuts = [(0, 1), (1, 5), (5, 5), (5, 9), (9, 10)]
    a = superchunk.from_pieces((items[i:j] for i, j in cuts), (10, 7), chunks=(4, 3), urlpath=tmp_path / "a")
    check_layout(a, items)
    with pytest.raises(ValueError, match="expected 11 rows in all, got 10"):
        superchunk.from_pieces([items], (11, 7), urlpath=tmp_path / "b")
    with pytest.raises(ValueError, match="expected 9 rows in all, got 1 more"):
        superchunk.from_pieces([items], (9, 7), urlpath=tmp_path / "b")
    with pytest.raises(ValueError, match=r"pieces\[1\]"):
        superchunk.from_pieces([items[:2], items[2:, :3]], (10, 7), urlpath=tmp_path / "b")
    assert superchunk.from_pieces([], (0, 3), dtype="i4").shape == (0, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_from_pieces_with_places(tmp_path: Path) -> None:
    items = np.arange(70).reshape(10, 7)
    places = [(slice(r, r + 4), slice(c, c + 3)) for r in (8, 0, 4) for c in (3, 6, 0)]
    a = superchunk.from_pieces(((p, items[p]) for p in places), (10, 7), chunks=(4, 3), urlpath=tmp_path / "a")
    check_layout(a, items)
    sparse = superchunk.from_pieces([((2, slice(1, 3)), 5), (3, np.arange(7))], (10, 7), dtype="i4")
    expected = np.zeros((10, 7), "i4")
    expected[2, 1:3], expected[3] = 5, np.arange(7)
    assert sparse[:].tolist() == expected.tolist()
    with pytest.raises(IndexError):
        superchunk.from_pieces([((10, 0), 5)], (10, 7), dtype="i4", urlpath=tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_pieces_that_could_be_places_or_items_are_refused(tmp_path: Path) -> None:
    for pieces in (
        [(1, 2), (3, 4)],
        [(np.int64(1), 2)],
        [((0, 1), (2, 3))],
        [((0, 1), np.array([2, 3]))],
    ):
        with pytest.raises(ArgumentError, match="place"):
            superchunk.from_pieces(pieces, 5, dtype="i4", urlpath=tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_the_first_piece_tells_whether_there_are_places() -> None:
    make = superchunk.from_pieces
    assert make([[1, 2], [3, 4], [5]], 5)[:].tolist() == [1, 2, 3, 4, 5]
    assert make([(1, 2, 3), (4, 5)], 5, "i4")[:].tolist() == [1, 2, 3, 4, 5]
    assert make([(1.5, 2.5), (3.5,)], 3)[:].tolist() == [1.5, 2.5, 3.5]
    assert make([(slice(1, 2), 2), (3, 4)], 5, "i4")[:].tolist() == [0, 2, 0, 4, 0]
    assert make([(0, [1, 2]), (2, 7)], (3, 2), "i4")[:].tolist() == [[1, 2], [0, 0], [7, 7]]
    assert make([((0, 1), 5)], (2, 2), "i4")[:].tolist() == [[0, 5], [0, 0]]
    assert make([(..., 5)], (2, 2), "i4")[:].tolist() == [[5, 5], [5, 5]]
    assert make([(1, superchunk.arange(2))], (2, 2), "i4")[:].tolist() == [[0, 0], [0, 1]]
