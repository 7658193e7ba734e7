"""Names of dtypes that python-blosc2 has beside its storage: NumPy's own, and what it takes where none is given.

Source: docs/differences.md, "NDArray".
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy import (
    bool_,
    bytes_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    object_,
    str_,
    uint8,
    uint16,
    uint32,
    uint64,
)

__all__ = [
    "DEFAULT_COMPLEX",
    "DEFAULT_FLOAT",
    "DEFAULT_INDEX",
    "DEFAULT_INT",
    "bool_",
    "bytes_",
    "complex64",
    "complex128",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "object_",
    "str_",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

DEFAULT_COMPLEX: Final = np.complex128
"""The dtype of complex numbers where none is given."""
DEFAULT_FLOAT: Final = np.float64
"""The dtype of arrays where none is given."""
DEFAULT_INDEX: Final = np.int64
"""The dtype of positions."""
DEFAULT_INT: Final = np.int64
"""The dtype of whole numbers where none is given."""
