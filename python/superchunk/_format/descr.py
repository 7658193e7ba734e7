"""NumPy dtypes as metadata holds them: a short text, or a list of fields.

::

    "<f8"  "|S3"  "<M8[ns]"  "bfloat16"                       one kind of item
    [("a", "|i1"), ("", "|V7"), ("b", "<f8", (2,))]           structured; fields without
                                                              a name are padding

Nothing is evaluated, Python objects are refused, and size and depth have limits, because
the lists come out of files. Where such a list stands is for others to know.

Source: NumPy's `dtype.str` and `dtype.descr`; docs/format/metalayers.md, "Values".
"""

from __future__ import annotations

import importlib
import re
from typing import Any, Final, TypeAlias

import numpy as np

__all__ = ["DTypeSpec", "dtype_of_spec", "spec_of_dtype"]

AnyDType: TypeAlias = "np.dtype[Any]"
DTypeSpec: TypeAlias = "str | list[tuple[Any, ...]]"

MAX_FIELDS: Final = 10_000
"""Fields of a dtype, those of fields within fields counted."""
MAX_DEPTH: Final = 32
"""Deepest nesting of fields within fields."""

# No commas and no parentheses: NumPy would take such a text apart by itself.
_TEXT: Final = r"[<>|=]?[A-Za-z?]\w{0,31}(\[\w{0,24}\])?"
_EXTRA: Final = r"(bfloat16|u?int[124]|float[468]_\w{2,12})"
_PAIR, _TRIPLE = 2, 3


def spec_of_dtype(dtype: AnyDType) -> DTypeSpec:
    """Return what to write for `dtype`.

    Raises
    ------
    TypeError
        Its items are Python objects, or its fields overlap or stand in another order
        than their bytes.

    """
    if dtype.hasobject or dtype.kind in "OT":
        raise TypeError(f"dtype: expected items of plain bytes, got {dtype}, whose items are Python objects")
    if dtype.names is None:
        return dtype.str if np.dtype(dtype.str) == dtype else dtype.name
    try:
        return list(dtype.descr)
    except ValueError:
        raise TypeError(f"dtype: fields that overlap or are out of order cannot be recorded, got {dtype}") from None


def dtype_of_spec(spec: object) -> AnyDType:
    """Return the dtype that was written as `spec`.

    Raises
    ------
    ValueError
        It is none, one of Python objects, or beyond the limits.

    """
    return _Reader().dtype(spec, 0)


class _Reader:
    """Counts the fields on the way."""

    def __init__(self) -> None:
        self.nfields = 0

    def dtype(self, spec: object, depth: int) -> AnyDType:
        if isinstance(spec, str):
            return _of_text(spec)
        if not isinstance(spec, list) or depth >= MAX_DEPTH:
            raise ValueError(f"dtype: expected a text or a list of fields, at most {MAX_DEPTH} deep")
        names: list[str] = []
        titles: list[Any] = []
        formats: list[AnyDType] = []
        offsets: list[int] = []
        end = 0
        for entry in spec:
            name, title, dtype = self._field(entry, depth)
            if name:
                names.append(name)
                titles.append(title)
                formats.append(dtype)
                offsets.append(end)
            elif len(spec) == 1:
                return dtype
            end += dtype.itemsize
        described = {"names": names, "formats": formats, "offsets": offsets, "itemsize": end}
        if any(titles):
            described["titles"] = titles
        try:
            return np.dtype(described)  # type: ignore[call-overload, no-any-return]  # a dict of lists
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"dtype: {error}") from None

    def _field(self, entry: object, depth: int) -> tuple[str, Any, AnyDType]:
        """Return name, title or None, and dtype of a field."""
        self.nfields += 1
        if self.nfields > MAX_FIELDS:
            raise ValueError(f"dtype: expected at most {MAX_FIELDS} fields")
        if not isinstance(entry, (tuple, list)) or len(entry) not in (_PAIR, _TRIPLE):
            raise ValueError("dtype: expected fields of a name, a dtype and perhaps a shape")
        name, title = entry[0], None
        if isinstance(name, (tuple, list)) and len(name) == _PAIR:
            title, name = name
        if not isinstance(name, str) or not isinstance(title, (str, type(None))):
            raise ValueError(f"dtype: expected a field's name to be str, got {type(name).__name__}")  # noqa: TRY004  (all of it comes from a file)
        dtype = self.dtype(entry[1], depth + 1)
        if len(entry) == _TRIPLE:
            dtype = subarray(dtype, entry[2])
        return name, title, dtype


def subarray(dtype: AnyDType, shape: object) -> AnyDType:
    """Return the dtype of a field that holds an array of `shape`.

    Raises
    ------
    ValueError
        `shape` is no shape, or the field gets too large.

    """
    extents = (shape,) if isinstance(shape, int) else shape
    if not isinstance(extents, (tuple, list)) or not all(type(n) is int and n >= 0 for n in extents):
        raise ValueError("dtype: expected the shape of a field to be a tuple of integers")
    try:
        return np.dtype((dtype, tuple(extents)))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"dtype: {error}") from None


def _of_text(text: str) -> AnyDType:
    if not re.fullmatch(_TEXT, text, re.ASCII):
        raise ValueError(f"dtype: expected a text such as '<f8', got {text[:80]!r}")
    try:
        dtype = _extra(text) if re.fullmatch(_EXTRA, text, re.ASCII) else np.dtype(text)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"dtype: {error}") from None
    if dtype.hasobject or dtype.kind in "OT":
        raise ValueError(f"dtype: expected items of plain bytes, got {text!r}, whose items are Python objects")
    return dtype


def _extra(name: str) -> AnyDType:
    """Return a dtype that the package ml_dtypes adds to NumPy."""
    try:
        module = importlib.import_module("ml_dtypes")
    except ImportError:
        raise ValueError(f"{name!r} needs the package ml_dtypes: pip install ml_dtypes") from None
    return np.dtype(getattr(module, name, name))
