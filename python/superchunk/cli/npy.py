"""The header of a ``.npy`` file from an untrusted source.

::

    offset  bytes   field       type
    0       6       magic       0x93 "NUMPY"
    6       2       version     major, minor: 1.0, 2.0 or 3.0
    8       2 or 4  header_len  u16 (1.0) or u32, little endian
    10, 12  ...     header      the text of a dict: descr, fortran_order, shape

This module reads only the header, with NumPy's own parser where NumPy has one, and never
loads a pickle. It keeps the bytes of the header, so that a file can be restored bit for bit.

Source: the module `numpy.lib.format`, "Format Version 1.0" to "3.0".
"""

from __future__ import annotations

import ast
import io
import math
import tokenize
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from superchunk.exceptions import FormatError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NpyHeader"]

_PARSER_ERRORS = (ValueError, TypeError, SyntaxError, KeyError, RecursionError, MemoryError, tokenize.TokenError)
"""What Python's and NumPy's parsers raise on a text that is no description of an array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NpyHeader:
    """What stands before the items of a ``.npy`` file."""

    MAGIC: ClassVar[bytes] = b"\x93NUMPY"
    MAX_LEN: ClassVar[int] = 10_000
    """Bytes of the longest header text; NumPy's own limit for files that are not trusted."""

    raw: bytes
    """The header as it is in the file, from the magic to the newline before the items."""
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    """Items in each dimension."""
    fortran_order: bool
    """Whether the first dimension varies fastest in the file."""

    @property
    def nbytes(self) -> int:
        """Bytes of the items."""
        return math.prod(self.shape) * self.dtype.itemsize

    @classmethod
    def read(cls, read: Callable[[int], bytes]) -> Self:
        """Read the header at the start of a file.

        Parameters
        ----------
        read
            Returns the next n bytes of the file, fewer only at its end.

        Raises
        ------
        TruncatedError
            The file ends within the header.
        FormatError
            The magic, the version or the text is not what NumPy writes, or the dtype holds Python
            objects, which only a pickle could give back.

        """
        start = _exactly(read, 8, at=0, field="npy magic and version")
        if not start.startswith(cls.MAGIC):
            raise FormatError("npy magic", at=0, expected=cls.MAGIC, found=start[:6])
        version = (start[6], start[7])
        if version not in {(1, 0), (2, 0), (3, 0)}:
            raise FormatError("npy version", at=6, expected="1.0, 2.0 or 3.0", found=f"{version[0]}.{version[1]}")
        width = 2 if version == (1, 0) else 4
        length = _exactly(read, width, at=8, field="npy header_len")
        header_len = int.from_bytes(length, "little")
        if header_len > cls.MAX_LEN:
            raise FormatError("npy header_len", at=8, expected=f"at most {cls.MAX_LEN} bytes", found=header_len)
        text = _exactly(read, header_len, at=8 + width, field="npy header")
        shape, fortran_order, dtype = _parse(version, length + text, at=8 + width)
        if dtype.hasobject:
            raise FormatError(
                "npy header's descr",
                at=8 + width,
                expected="a dtype without Python objects",
                found=f"{dtype}, whose Python objects only a pickle can store",
            )
        if any(extent < 0 for extent in shape):
            raise FormatError("npy header's shape", at=8 + width, expected="no negative length", found=shape)
        return cls(raw=start + length + text, dtype=dtype, shape=shape, fortran_order=fortran_order)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Read a header that was kept, and must fill `raw` to its end."""
        stream = io.BytesIO(raw)
        header = cls.read(stream.read)
        if stream.tell() != len(raw):
            raise FormatError("npy header", at=stream.tell(), expected="the end", found=f"{len(raw)} bytes in all")
        return header

    @classmethod
    def make(cls, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Self:
        """Return the header that NumPy writes for an array in C order."""
        stream = io.BytesIO()
        np.lib.format.write_array_header_2_0(
            stream,
            {
                "descr": np.lib.format.dtype_to_descr(dtype),
                "fortran_order": False,
                "shape": shape,
            },
        )
        return cls.from_bytes(stream.getvalue())


def _exactly(read: Callable[[int], bytes], nbytes: int, *, at: int, field: str) -> bytes:
    data = read(nbytes)
    if len(data) < nbytes:
        raise TruncatedError(field, at=at, needed=nbytes, got=len(data))
    return data


def _parse(version: tuple[int, int], raw: bytes, *, at: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and dtype; `raw` is header_len and text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 2 wrote lengths as 10L; NumPy says so aloud
            if version == (1, 0):
                return np.lib.format.read_array_header_1_0(io.BytesIO(raw), NpyHeader.MAX_LEN)
            if version == (2, 0):
                return np.lib.format.read_array_header_2_0(io.BytesIO(raw), NpyHeader.MAX_LEN)
            return _parse_utf8(raw[4:])
    except _PARSER_ERRORS as error:
        raise FormatError("npy header", at=at, expected="descr, fortran_order and shape", found=error) from error


def _parse_utf8(text: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read a header of version 3.0, whose field names may be any Unicode."""
    header = ast.literal_eval(text.decode("utf-8"))
    if not isinstance(header, dict) or header.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("other keys")
    shape, fortran_order = header["shape"], header["fortran_order"]
    if not isinstance(shape, tuple) or any(type(extent) is not int for extent in shape):
        raise ValueError(f"shape {shape!r}")
    if not isinstance(fortran_order, bool):
        raise TypeError(f"fortran_order {fortran_order!r}")
    return shape, fortran_order, np.lib.format.descr_to_dtype(header["descr"])
