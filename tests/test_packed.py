"""Arrays packed as pickles: both packages read each other's, and no pickle is ever run."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import blosc2
from packed_arrays import ARRAYS, each_array, equal

import superchunk
from superchunk import FormatError, SChunk


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
        superchunk.pack_array(np.arange(3), codec=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="16 bytes"):
        superchunk.unpack(b"x")
    with pytest.raises(TypeError):
        superchunk.unpack("text")  # type: ignore[arg-type]
    assert superchunk.get_clib(superchunk.pack(np.arange(3))) == "BloscLZ"


# Pickles of strangers.


class Evil:
    """Calls something when it is unpickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.how = (function, arguments)

    def __reduce__(self) -> Any:
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


def test_struct_of_the_memo_is_followed() -> None:
    raw = io.BytesIO()
    pickle.Pickler(raw, 4).dump(np.arange(3))
    far = raw.getvalue().replace(b"h\x00", b"j" + struct.pack("<I", 0))
    assert equal(superchunk.unpack(superchunk.compress2(far)), np.arange(3))
