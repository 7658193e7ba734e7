"""Packed arrays and tensors: both packages read each other's, and no pickle is ever run."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import blosc2

import superchunk
from superchunk import FormatError, SChunk
from superchunk.frame.descr import dtype_of_spec, spec_of_dtype

PADDED = np.dtype({"names": ["a", "b"], "formats": ["i1", "<i8"], "offsets": [0, 8], "itemsize": 24})
NESTED = np.dtype([("a", "i4"), ("b", [("x", ">f8"), ("y", "S3", (2, 2))])])
ARRAYS: dict[str, Any] = {
    "int64": np.arange(10),
    "Fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "strided": np.arange(20)[::-3],
    "empty": np.zeros((0, 3)),
    "0-d": np.array(3.5),
    "fields": np.ones(4, [("a", "i4"), ("b", "f8", (2,))]),
    "nested fields": np.zeros(3, NESTED),
    "padded fields": np.zeros(3, PADDED),
    "titles": np.zeros(2, [(("the title", "a"), "i4")]),
    "dates": np.array(["2020-01-01", "NaT"], "M8[ns]"),
    "25 seconds": np.array([1, 2], "m8[25s]"),
    "generic times": np.array([1, 2], "m8"),
    "text": np.array(["abc", "de\u03c0"]),
    "byte strings": np.array([b"abc", b"de"]),
    "void": np.array([b"1234567"] * 3, "V7"),
    "big endian": np.arange(3, dtype=">i4"),
    "bool": np.array([True, False]),
    "complex": np.array([1 + 2j]),
    "float16": np.array([1.5], np.float16),
    "wide items": np.array([b"x" * 300, b"y"]),
    "read-only": np.frombuffer(b"12345678", np.int16),
    "many dimensions": np.zeros((1,) * 20 + (3,)),
}
each_array = pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())


def equal(one: Any, other: Any) -> bool:  # noqa: ANN401
    return bool(
        type(one) is type(other)
        and one.dtype == other.dtype
        and one.shape == other.shape
        and one.tobytes() == other.tobytes()
    )


# Pickles.


@each_array
def test_a_packed_array_comes_back_from_either_package(array: np.ndarray[Any, Any]) -> None:
    ours = superchunk.pack_array(array)
    theirs = blosc2.pack_array(array)
    for got in (superchunk.unpack_array(ours), superchunk.unpack_array(theirs), blosc2.unpack_array(ours)):
        assert equal(got, array)
    assert superchunk.unpack(ours).flags.writeable
    assert superchunk.unpack(ours).flags.f_contiguous == pickle.loads(pickle.dumps(array, 5)).flags.f_contiguous  # noqa: S301
    assert superchunk.get_cbuffer_sizes(ours)[0] == superchunk.get_cbuffer_sizes(theirs)[0]


@each_array
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_that_numpy_writes_is_read(array: np.ndarray[Any, Any], protocol: int) -> None:
    chunk = superchunk.compress2(pickle.dumps(array, protocol))
    assert equal(superchunk.unpack(chunk), array)
    if array.size:
        item = array.reshape(-1)[0]
        got = superchunk.unpack(superchunk.compress2(pickle.dumps(item, protocol)))
        assert equal(got, item)


def test_arrays_pickled_by_numpy_1_and_by_python_2_are_read() -> None:
    array = np.arange(3, dtype=np.int32)
    old = pickle.dumps(array, 4).replace(b"\x16numpy._core.multiarray", b"\x15numpy.core.multiarray")
    old = old[:2] + old[11:]  # the frame says another length now
    assert equal(superchunk.unpack(superchunk.compress2(old)), array)
    python_2 = (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq\x03"
        b"(K\x01K\x02\x85cnumpy\ndtype\nq\x04U\x02i4K\x00K\x01\x87Rq\x05(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
        b"K\x00tb\x89U\x08\x01\x00\x00\x00\xfe\xff\xff\xfftb."
    )
    assert superchunk.unpack(superchunk.compress2(python_2), encoding="latin1").tolist() == [1, -2]


def test_numpy_scalars_records_and_what_converts_are_packed() -> None:
    for scalar in (np.float64(2.5), np.str_("abc"), np.bytes_(b"x"), np.datetime64("2020-01-01"), np.bool_(True)):  # noqa: FBT003
        packed = superchunk.pack(scalar)
        assert equal(superchunk.unpack(packed), scalar)
        assert blosc2.unpack(packed) == scalar
    records = np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    assert superchunk.unpack(superchunk.pack(records)).dtype == records.dtype


def test_dtypes_of_ml_dtypes_are_packed() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    assert equal(superchunk.unpack_array(superchunk.pack_array(array)), array)
    frame = superchunk.pack_array2(array)
    assert equal(superchunk.unpack_array2(frame), array)
    assert equal(blosc2.unpack_array2(frame), array)


def test_object_arrays_of_plain_values_are_packed_and_others_refused() -> None:
    array = np.array(["a", None, b"x", 2.5, 3, True], object).reshape(2, 3)
    for packed in (superchunk.pack_array(array), blosc2.pack_array(array)):
        assert superchunk.unpack_array(packed).tolist() == array.tolist()
    for wrong in (np.array([{}]), np.array([object()]), np.zeros(1, [("a", object)]), np.array([2**70, []], object)):
        with pytest.raises(TypeError, match="objects"):
            superchunk.pack_array(wrong)
    with pytest.raises(TypeError, match="mask"):
        superchunk.pack_array(np.ma.masked_array([1, 2], [True, False]))


def test_byte_strings_become_text_when_asked_for() -> None:
    for array in (np.array([b"a", b"bc"]), np.array([b"a", b"bc"], object)):
        packed = superchunk.pack_array(array)
        assert superchunk.unpack_array(packed, encoding="bytes").tolist() == ["a", "bc"]
        assert blosc2.unpack_array(packed, encoding="bytes").tolist() == ["a", "bc"]
        assert superchunk.unpack(packed, encoding="bytes").tolist() == [b"a", b"bc"]
    with pytest.raises(TypeError, match="enc0ding"):
        superchunk.unpack(packed, enc0ding="bytes")


def test_wrong_arguments_of_pack_are_refused_as_users_know() -> None:
    with pytest.raises(AttributeError, match="itemsize"):
        superchunk.pack([1, 2])
    for clevel in (10, -1):
        with pytest.raises(ValueError, match="clevel"):
            superchunk.pack(np.arange(3), clevel=clevel)
    with pytest.raises(TypeError, match="filter"):
        superchunk.pack(np.arange(3), filter=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="codec"):
        superchunk.pack_array(np.arange(3), codec="zstd")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="16 bytes"):
        superchunk.unpack(b"x")
    with pytest.raises(TypeError):
        superchunk.unpack("text")  # type: ignore[arg-type]
    assert superchunk.get_clib(superchunk.pack(np.arange(3))) == "BloscLZ"


# Pickles of strangers.


class Evil:
    """Calls something when it is unpickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:  # noqa: ANN401
        self.how = (function, arguments)

    def __reduce__(self) -> Any:  # noqa: ANN401
        return self.how


def refuse(pickled: bytes) -> FormatError:
    with pytest.raises(FormatError) as caught:
        superchunk.unpack(superchunk.compress2(pickled))
    return caught.value


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_nothing_that_a_pickle_names_is_ever_called(protocol: int, tmp_path: Path) -> None:
    target = tmp_path / "touched"
    for evil in (
        Evil(os.system, f"touch {target}"),
        Evil(eval, f"open({str(target)!r}, 'w')"),
        Evil(Path.touch, target),
        np.array([Evil(os.system, f"touch {target}")], object),
        [np.arange(3), Evil(os.system, f"touch {target}")],
        Evil(np.load, str(target)),
        Evil(np.dtype, "i4"),
        Evil(getattr, target, "touch"),
    ):
        refuse(pickle.dumps(evil, protocol))
    assert not target.exists()


def test_a_scalar_of_object_dtype_does_not_unpickle_what_it_holds(tmp_path: Path) -> None:
    target = tmp_path / "touched"
    inner = pickle.dumps(Evil(os.system, f"touch {target}"))
    scalar = np.float64(1).__reduce__()[0]
    evil = pickle.dumps(Evil(scalar, np.dtype(object), inner), 5)
    assert "a list" in str(refuse(evil))
    assert not target.exists()


def test_values_that_are_no_arrays_are_refused() -> None:
    for value in ([1, 2], {"a": 1}, "text", 5, None, np.dtype("i4"), np.ndarray, (np.arange(3),)):
        refuse(pickle.dumps(value, 5))
    assert "mareconstruct" in str(refuse(pickle.dumps(np.ma.masked_array([1], [False]), 5)))


def test_sizes_are_compared_with_the_bytes_there_are() -> None:
    plain = pickle.dumps(np.arange(3, dtype=np.int64), 5)
    assert "24 bytes" in str(refuse(plain.replace(b"K\x03\x85", b"K\x04\x85")))
    assert "12 bytes" in str(refuse(pickle.dumps(np.arange(3, dtype=np.int32), 5).replace(b"i4", b"i8")))
    huge = plain.replace(b"K\x03\x85", b"J\xff\xff\xff\x7f\x85")
    refuse(huge)
    refuse(plain.replace(b"K\x03\x85", b"J\xff\xff\xff\xff\x85"))
    no_items = pickle.dumps(np.zeros((3, 0)), 5)
    got = superchunk.unpack(superchunk.compress2(no_items.replace(b"K\x03K\x00\x86", b"J\xff\xff\xff\x7fK\x00\x86")))
    assert got.shape == (2**31 - 1, 0)
    nothing = np.ndarray((3,), "V0", buffer=bytearray(1))
    no_bytes = pickle.dumps(nothing, 5).replace(b"K\x03\x85", b"J\xff\xff\xff\x7f\x85")
    assert superchunk.unpack(superchunk.compress2(no_bytes)).nbytes == 0


def test_a_chunk_that_claims_to_be_huge_is_looked_at_first() -> None:
    s = SChunk(2**31 - 2**20, cparams={"typesize": 8})
    s.fill_special((2**31 - 2**20) // 8, superchunk.SpecialValue.ZERO)
    with pytest.raises(FormatError, match="pickle"):
        superchunk.unpack(s.get_chunk(0))


def test_dtypes_within_dtypes_cannot_explode_or_go_in_circles() -> None:
    def short(text: bytes) -> bytes:
        return b"\x8c" + bytes([len(text)]) + text

    def dtype(code: bytes, state: bytes) -> bytes:
        return b"cnumpy\ndtype\n" + short(code) + b"\x89\x88\x87R(K\x03" + state + b"tb"

    def doubled(level: int) -> bytes:
        """Return a dtype of two fields, both the same dtype of two fields, and so on."""
        if not level:
            return dtype(b"i4", short(b"<") + b"NNNK\x04K\x04K\x00")
        twice = doubled(level - 1) + b"q" + bytes([level]) + b"K\x00\x86"
        fields = b"}(" + short(b"a") + twice + short(b"b") + b"h" + bytes([level]) + b"K\x00\x86u"
        return dtype(b"V4", short(b"|") + b"N" + short(b"a") + short(b"b") + b"\x86" + fields + b"K\x04K\x01K\x10")

    head, tail = b"\x80\x04cnumpy._core.numeric\n_frombuffer\n(C\x00", b"K\x00\x85" + short(b"C") + b"tR."
    superchunk.unpack(superchunk.compress2(head + doubled(3) + tail))
    bomb = head + doubled(25) + tail
    assert "10000 fields" in str(refuse(bomb))
    circle = b"\x80\x02cnumpy._core.numeric\n_frombuffer\n(C\x00cnumpy\ndtype\nX\x02\x00\x00\x00V8\x89\x88\x87Rq\x01"
    circle += b"(K\x03X\x01\x00\x00\x00|h\x01K\x02\x85\x86NNK\x08K\x01K\x10tb" + b"K\x00\x85X\x01\x00\x00\x00CtR."
    assert "levels" in str(refuse(circle))


def test_deep_nesting_and_endless_memos_are_harmless() -> None:
    refuse(b"\x80\x04" + b"N" + b"\x85" * 200_000 + b".")
    refuse(b"\x80\x04" + b"]" + b"\x94" * 200_000 + b".")
    refuse(b"\x80\x04" + b"(" * 200_000 + b".")
    refuse(b"\x80\x04N" + b"\x94h\x00\x86" * 100_000 + b".")


def test_every_opcode_that_arrays_do_not_need_is_refused() -> None:
    known = {ord(c) for c in "NJKMGXCBUT)qrhjc(t]}aesuRb."} | {
        0x80, 0x88, 0x89, 0x8C, 0x8D, 0x8E, 0x96, 0x85, 0x86, 0x87, 0x8A, 0x93, 0x94, 0x95,
    }  # fmt: skip
    for opcode in pickletools.opcodes:
        code = ord(opcode.code)
        if code not in known:
            assert f"{code:#04x}" in str(refuse(b"\x80\x05K\x00" + bytes([code]) + bytes(20)))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_pickles_give_an_array_or_our_error(data: st.DataObject) -> None:
    array = data.draw(st.sampled_from(list(ARRAYS.values())))
    raw = bytearray(pickle.dumps(array, data.draw(st.integers(2, 5))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        how = data.draw(st.sampled_from(["flip", "cut", "repeat"]))
        if how == "flip":
            raw[at] = data.draw(st.integers(0, 255))
        elif how == "cut" and len(raw) > 10:
            del raw[at : at + data.draw(st.integers(1, 8))]
        else:
            raw[at:at] = raw[at : at + 12]
    try:
        got = superchunk.unpack(superchunk.compress2(bytes(raw)))
    except FormatError:
        return
    assert isinstance(got, (np.ndarray, np.generic))
    repr(got.dtype)
    assert got.nbytes <= len(raw)


# Frames.


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


def test_struct_of_the_memo_is_followed() -> None:
    raw = io.BytesIO()
    pickle.Pickler(raw, 4).dump(np.arange(3))
    far = raw.getvalue().replace(b"h\x00", b"j" + struct.pack("<I", 0))
    assert equal(superchunk.unpack(superchunk.compress2(far)), np.arange(3))
