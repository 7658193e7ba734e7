"""What users put into metalayers."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superchunk._format.metalayer_values import MAX_DEPTH, pack, unpack
from superchunk.exceptions import FormatError, MetalayerValueError

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.binary(max_size=8)
    | st.complex_numbers(allow_nan=False)
)
keys = st.text(max_size=4) | st.binary(max_size=4) | st.integers(-5, 5) | st.none()
values = st.recursive(
    scalars | st.sets(st.integers(-9, 9), max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4).filter(lambda items: items[:1] != ["__tuple__"])
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_what_goes_in_comes_out(value: object) -> None:
    again = unpack(pack(value))
    assert again == value
    assert type(again) is type(value)


def test_known_bytes() -> None:
    assert pack(()).hex() == "91a95f5f7475706c655f5f"
    assert pack("hello") == b"\xa5hello"
    assert pack(b"hello") == b"\xc4\x05hello"
    assert pack(1 + 2j) == b"\xd8\x2c" + struct.pack(">dd", 1, 2)
    assert pack({1, 2}) in (b"\xc7\x03\x2d\x92\x01\x02", b"\xc7\x03\x2d\x92\x02\x01")
    assert pack(np.arange(3, dtype=">i2").reshape(1, 3)) == (
        b"\xc7&.\x83\xa5dtype\x81\xa3str\xa3>i2\xa5shape\x92\x01\x03\xa4data\xc4\x06\0\0\0\1\0\2"
    )


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype="<f8").reshape(2, 3),
        np.zeros((), dtype="i4"),
        np.zeros((0, 5), dtype="u1"),
        np.array([(1, 2.5)], dtype=[("a", "<i4"), ("b", "<f8", (2,))]),
        np.array(["ab", "c"]),
        np.array(["2020-01-01"], dtype="M8[D]"),
    ],
)
def test_arrays_keep_dtype_and_shape(array: np.ndarray[Any, np.dtype[Any]]) -> None:
    again = unpack(pack({"x": [array]}))["x"][0]
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.tobytes() == array.tobytes()
    assert again.flags.writeable


def test_numpy_scalars_become_python_ones() -> None:
    raw = pack([np.float64(1.5), np.int16(-3), np.bool_(1), np.str_("x"), {np.int8(1): np.float32(2)}])
    assert unpack(raw) == [1.5, -3, True, "x", {1: 2.0}]


def test_integers_beyond_64_bits_are_refused() -> None:
    for value in (2**64, -(2**63) - 1, [2**70]):
        with pytest.raises(OverflowError):
            pack(value)


@pytest.mark.parametrize("value", [object(), {(1, 2): 3}, np.array([object()]), {"x": {1: {object()}}}])
def test_other_objects_are_refused(value: object) -> None:
    with pytest.raises(TypeError):
        pack(value)


def test_a_list_that_would_come_back_as_a_tuple_is_refused() -> None:
    with pytest.raises(MetalayerValueError, match="__tuple__"):
        pack([1, ["__tuple__", 2]])


def test_fixed_metalayers_take_no_extensions() -> None:
    for value in (1j, {1}, np.zeros(3)):
        with pytest.raises(TypeError):
            pack(value, extensions=False)
        with pytest.raises(MetalayerValueError, match="extension"):
            unpack(pack(value), extensions=False)


@pytest.mark.parametrize("code", [0, 41, 42, 43, 47, 127])
def test_foreign_extensions_need_a_hook(code: int) -> None:
    raw = msgpack.packb([msgpack.ExtType(code, b"payload")])
    with pytest.raises(MetalayerValueError, match=f"extension of code {code}"):
        unpack(raw)
    assert unpack(raw, hook=lambda number, payload: (number, payload)) == [(code, b"payload")]


def test_objects_of_others_are_packed_by_a_hook() -> None:
    raw = pack({"a": [Exception]}, default=lambda value: (42, b"frame") if value is Exception else None)
    assert unpack(raw, hook=lambda code, payload: (code, payload)) == {"a": [(42, b"frame")]}


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth_is_limited_both_ways() -> None:
    assert unpack(pack(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(MetalayerValueError, match="levels"):
        pack(nested(MAX_DEPTH + 1))
    for opener in (b"\x91", b"\x81\x01", b"\xdc\0\1", b"\xdd\0\0\0\1", b"\xde\0\1\x01"):
        with pytest.raises(FormatError, match="deeper"):
            unpack(opener * (MAX_DEPTH + 1) + b"\1")
        with pytest.raises(FormatError):
            unpack(opener * 100_000)


def test_nested_extensions_are_limited() -> None:
    raw = b"\x01"
    for _ in range(400):
        raw = msgpack.packb(msgpack.ExtType(45, b"\x91" + raw))
    with pytest.raises(FormatError):
        unpack(raw)


def test_wide_values_are_not_taken_for_deep_ones() -> None:
    wide = [[n] for n in range(1000)]
    assert unpack(pack(wide)) == wide


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xc1",
        b"\x92\x01",
        b"\x01\x02",
        b"\xdd\xff\xff\xff\xff",
        b"\xc6\x7f\xff\xff\xff",
        b"\x81\x90\x01",
        b"\xd4\x2c\x00",
        b"\xd4\x2d\x01",
        b"\xd4\x2e\x80",
        b"\xa2\xff",
    ],
)
def test_malformed_values_are_our_errors(raw: bytes) -> None:
    with pytest.raises(FormatError, match="metalayer value"):
        unpack(raw)


@pytest.mark.parametrize(
    "content",
    [
        {"dtype": {"str": "|O"}, "shape": [1], "data": bytes(8)},
        {"dtype": {"str": "nonsense"}, "shape": [1], "data": bytes(8)},
        {"dtype": {}, "shape": [1], "data": bytes(8)},
        {"dtype": {"str": "<f8"}, "shape": [2], "data": bytes(8)},
        {"dtype": {"str": "<f8"}, "shape": [-1], "data": bytes(8)},
        {"dtype": {"str": "<f8"}, "shape": [2**62, 4], "data": b""},
        {"dtype": {"str": "<f8"}, "shape": ["a"], "data": b""},
        {"dtype": {"descr": [("a", "|O")]}, "shape": [1], "data": bytes(8)},
    ],
)
def test_malformed_arrays_are_our_errors(content: object) -> None:
    raw = msgpack.packb(msgpack.ExtType(46, msgpack.packb(content)))
    with pytest.raises(FormatError, match="metalayer value"):
        unpack(raw)


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_our_error(raw: bytes) -> None:
    try:
        unpack(raw)
    except (FormatError, MetalayerValueError):
        return


def test_claims_do_not_take_memory() -> None:
    raw = b"\xdd\x00\x10\x00\x00" * 100 + bytes(2000)
    tracemalloc.start()
    with pytest.raises(FormatError):
        unpack(raw)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
