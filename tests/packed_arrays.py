"""What tests of packed arrays share: arrays of every kind, and when two are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


def equal(one: Any, other: Any) -> bool:
    return bool(
        type(one) is type(other)
        and one.dtype == other.dtype
        and one.shape == other.shape
        and one.tobytes() == other.tobytes()
    )
