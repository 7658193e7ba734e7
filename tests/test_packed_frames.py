"""Arrays and tensors packed as frames: both packages read each other's, and entries of strangers are checked."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from oracle import blosc2
from packed_arrays import ARRAYS, each_array, equal

import superchunk
from superchunk import FormatError, SChunk
from superchunk._format.descr import dtype_of_spec, spec_of_dtype

if TYPE_CHECKING:
    from pathlib import Path


@each_array
@pytest.mark.parametrize("chunksize", [None, 40])
def test_frames_and_files_of_arrays_are_read_by_either_package(
    array: np.ndarray[Any, Any], chunksize: int | None, tmp_path: Path
) -> None:
    path, theirs = tmp_path / "ours.b2frame", str(tmp_path / "theirs.b2frame")
    frame = superchunk.pack_array2(array, chunksize=chunksize)
    size = superchunk.save_array(array, path, chunksize=chunksize)
    assert size == path.stat().st_size
    contiguous = np.asarray(array, order="C")
    blosc2.save_array(contiguous, theirs, mode="w")
    for got in (
        superchunk.unpack_array2(frame),
        superchunk.unpack_tensor(frame),
        superchunk.load_array(path),
        superchunk.load_tensor(str(path), dparams={"nthreads": 1}),
        superchunk.load_array(theirs),
        superchunk.unpack_array2(blosc2.pack_array2(contiguous)),
        blosc2.unpack_array2(frame),
        blosc2.load_array(str(path)),
    ):
        assert equal(got, array)
    assert superchunk.load_array(path).flags.writeable
    entry = superchunk.open(path).vlmeta["__pack_tensor__"]
    if array.dtype.kind != "V" or array.dtype.names:
        peer = blosc2.open(theirs)
        assert entry == peer.vlmeta["__pack_tensor__"]


def test_sparse_frames_of_arrays_give_the_bytes_of_all_files(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    noise = np.random.default_rng(1).random(1000)
    size = superchunk.save_array(noise, path, chunksize=800, contiguous=False)
    assert size == sum(file.stat().st_size for file in path.iterdir()) > noise.nbytes
    assert equal(superchunk.load_array(path), noise)
    assert equal(blosc2.load_array(str(path)), noise)


def test_keywords_are_those_of_schunk(tmp_path: Path) -> None:
    path = tmp_path / "a.b2frame"
    array = np.arange(1000)
    assert superchunk.pack_array2(array, urlpath=path, cparams={"clevel": 9}) == path.stat().st_size
    assert (superchunk.open(path).typesize, superchunk.open(path).cparams.clevel) == (8, 9)
    before = path.read_bytes()
    places: list[Any] = [{"urlpath": path}, {"urlpath": path, "mode": "a"}, {"storage": {"urlpath": path}}]
    for place in places:
        with pytest.raises(RuntimeError, match="exists"):
            superchunk.pack_array2(array, **place)
    with pytest.raises(ValueError, match="foo"):
        superchunk.pack_tensor(array, foo=1)
    with pytest.raises(TypeError, match="objects"):
        superchunk.save_array(np.array([None]), path, mode="w")
    with pytest.raises(TypeError, match="clevle"):
        superchunk.save_array(array, path, mode="w", cparams={"clevle": 1})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    superchunk.save_array(array[:5], path, mode="w", cparams=superchunk.CParams(clevel=1))
    assert equal(superchunk.load_array(path), array[:5])
    odd = np.arange(5, dtype=np.uint8)
    assert equal(superchunk.unpack_array2(superchunk.pack_array2(odd, cparams=superchunk.CParams())), odd)
    assert equal(superchunk.unpack_array2(superchunk.pack_array2([[1, 2], [3, 4]])), np.array([[1, 2], [3, 4]]))


def test_a_tensor_is_told_by_its_type_not_by_its_text() -> None:
    for array in (np.array(["a tensor", "b"]), np.float32(2), [1.5, 2.5], np.arange(10)[::3]):
        frame = superchunk.pack_tensor(array)
        assert isinstance(frame, bytes)
        assert superchunk.schunk_from_cframe(frame).vlmeta["__pack_tensor__"][0] == "numpy"
        assert equal(superchunk.unpack_tensor(frame), np.asarray(array))


@pytest.mark.parametrize("kind", ["torch", "tensorflow"])
def test_tensors_come_back_as_what_they_were(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor:
        """As much of a tensor as is asked of one."""

        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.array = array

        def numpy(self, **how: bool) -> np.ndarray[Any, Any]:
            assert how == ({"force": True} if kind == "torch" else {})
            return self.array

    Tensor.__module__ = f"{kind}.framework"
    frame = superchunk.pack_tensor(Tensor(np.arange(6.0).reshape(2, 3)))
    assert isinstance(frame, bytes)
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(ImportError, match=f"pip install {kind}"):
        superchunk.unpack_tensor(frame)
    assert superchunk.unpack_array2(frame).tolist() == [[0, 1, 2], [3, 4, 5]]
    library: Any = types.ModuleType(kind)
    library.from_numpy = library.constant = Tensor
    monkeypatch.setitem(sys.modules, kind, library)
    again = superchunk.unpack_tensor(frame)
    assert isinstance(again, Tensor)
    assert again.array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert superchunk.schunk_from_cframe(frame).vlmeta["__pack_tensor__"] == (kind, (2, 3), "<f8")


@pytest.mark.parametrize(
    "entry",
    [
        ("numpy", (4,), "<i8"),
        ("numpy", (2**62, 4), "<i8"),
        ("numpy", (-3, -1), "<i8"),
        ("numpy", (3.0,), "<i8"),
        ("numpy", (3,) + (1,) * 100, "<i8"),
        ("numpy", "3", "<i8"),
        ("other", (3,), "<i8"),
        ("os", (3,), "<i8"),
        (["numpy"], (3,), "<i8"),
        ("numpy", (3,), "O"),
        ("numpy", (3,), "object"),
        ("numpy", (3,), [("a", "O")]),
        ("numpy", (3,), "i4,i4"),
        ("numpy", (3,), "(2,)i4"),
        ("numpy", (3,), "__import__('os')"),
        ("numpy", (3,), 8),
        ("numpy", (3,), [("a", "<i4", (-1,))]),
        ("numpy", (3,), [["a"]]),
        ("numpy", (3,), [(5, "<i8")]),
        ("numpy", (3,), [("a", "<i4"), ("a", "<i4")]),
        ("numpy", (3,)),
        5,
    ],
)
def test_entries_that_do_not_fit_are_refused(entry: object) -> None:
    s = SChunk(data=np.arange(3))
    s.vlmeta["__pack_tensor__"] = entry
    with pytest.raises(FormatError, match="__pack_tensor__"):
        superchunk.unpack_array2(s.to_cframe())


def test_frames_without_an_entry_and_what_is_no_frame() -> None:
    with pytest.raises(KeyError, match="__pack_tensor__"):
        superchunk.unpack_array2(SChunk(data=b"x").to_cframe())
    with pytest.raises(RuntimeError):
        superchunk.unpack_array2(b"no frame" * 20)
    with pytest.raises(FileNotFoundError):
        superchunk.load_array("no such file")


def test_dtypes_in_metadata_come_back_as_they_were() -> None:
    for array in ARRAYS.values():
        spec = spec_of_dtype(array.dtype)
        assert dtype_of_spec(spec) == array.dtype
        s = SChunk()
        s.vlmeta["array"] = array
        assert equal(s.vlmeta["array"], array)
    deep: Any = "<i4"
    for _ in range(40):
        deep = [("a", deep)]
    for wrong in (
        deep,
        [("", deep)],
        [(f"f{i}", "|i1") for i in range(10_001)],
        "x" * 40,
        "",
        None,
        [("a", "<i4", 2, 3)],
    ):
        with pytest.raises(ValueError, match="dtype"):
            dtype_of_spec(wrong)
    overlapping = np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]})
    with pytest.raises(TypeError, match="overlap"):
        superchunk.pack_array2(np.zeros(3, overlapping))
    assert equal(superchunk.unpack(superchunk.pack(np.zeros(3, overlapping))), np.zeros(3, overlapping))
