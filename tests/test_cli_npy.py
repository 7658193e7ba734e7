"""The header of a .npy file, from NumPy and from strangers."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superchunk.cli.npy import NpyHeader
from superchunk.exceptions import FormatError, TruncatedError

ARRAYS: dict[str, np.ndarray[Any, np.dtype[Any]]] = {
    "float64": np.zeros((3, 4)),
    "big endian": np.zeros(5, ">i4"),
    "0-d": np.array(1.5, "f4"),
    "empty": np.zeros((0, 3)),
    "fortran": np.asfortranarray(np.zeros((3, 4))),
    "structured": np.zeros(2, [("a", "f4"), ("b", "S3", (2,))]),
    "padded": np.zeros(2, np.dtype([("a", "i1"), ("b", "f8")], align=True)),
    "unicode names": np.zeros(2, [("größe€", "f4")]),
    "dates": np.zeros(2, "M8[us]"),
    "text": np.array(["a", "bcd"]),
}


def saved(array: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of version 3.0, which old NumPy cannot read
        np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("name", ARRAYS)
def test_what_numpy_writes_is_understood_and_kept_bit_for_bit(name: str) -> None:
    array = ARRAYS[name]
    raw = saved(array)
    header = NpyHeader.read(io.BytesIO(raw).read)
    assert (header.dtype, header.shape, header.nbytes) == (array.dtype, array.shape, array.nbytes)
    assert header.fortran_order == (array.flags.f_contiguous and not array.flags.c_contiguous)
    assert header.raw == raw[: len(raw) - array.nbytes]
    assert NpyHeader.from_bytes(header.raw) == header


def test_a_header_made_here_is_understood_by_numpy() -> None:
    header = NpyHeader.make(np.dtype("<i2"), (2, 3))
    array = np.load(io.BytesIO(header.raw + bytes(range(12))), allow_pickle=False)
    assert (array.shape, array.dtype) == ((2, 3), np.dtype("<i2"))


def test_objects_are_refused_because_only_a_pickle_holds_them() -> None:
    with pytest.raises(FormatError, match="pickle"):
        NpyHeader.from_bytes(saved(np.zeros(4)).replace(b"'<f8'", b"'|O' ")[:128])


@pytest.mark.parametrize("size", range(128))
def test_a_header_cut_anywhere_is_truncated(size: int) -> None:
    with pytest.raises(TruncatedError):
        NpyHeader.from_bytes(saved(np.zeros(4))[:size])


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f8', 'fortran_order': False}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        "{'descr': '<f8', 'fortran_order': 1, 'shape': (3,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': [3]}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ('a',)}",
        "{'descr': 'f99', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (3,)}",
        "(" * 900,
        "",
        "\0",
    ],
)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_header_that_numpy_would_not_write_is_rejected(text: str, version: int) -> None:
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    with pytest.raises(FormatError, match="npy header"):
        NpyHeader.from_bytes(b"\x93NUMPY" + bytes([version, 0]) + length + text.encode())


def test_a_header_longer_than_trust_is_not_even_read() -> None:
    stream = io.BytesIO(b"\x93NUMPY\2\0" + (2**31).to_bytes(4, "little"))
    asked: list[int] = []

    def read(nbytes: int) -> bytes:
        asked.append(nbytes)
        return stream.read(nbytes)

    with pytest.raises(FormatError, match="at most 10000 bytes"):
        NpyHeader.read(read)
    assert sum(asked) == 12


@given(st.binary(max_size=60), st.integers(0, 127))
def test_damage_raises_only_our_errors(noise: bytes, at: int) -> None:
    raw = bytearray(saved(np.zeros(4))[:128])
    raw[at : at + len(noise)] = noise
    with contextlib.suppress(FormatError):
        header = NpyHeader.from_bytes(bytes(raw))
        assert header.raw == bytes(raw)
