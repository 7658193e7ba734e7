"""Bytes in and out: any C-contiguous buffer as a flat view of its bytes.

Source: the buffer protocol; NumPy dates and structured items have formats that
`memoryview.cast` does not take, so they go through a view of their bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from superchunk.exceptions import ArgumentError
from superchunk.params import MAX_BUFFERSIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

AnyBuffer: TypeAlias = "Buffer | NDArray[Any]"
"""An object with the buffer protocol; NumPy says so of its arrays from Python 3.12 only."""

__all__ = ["AnyBuffer", "byte_view", "check_buffersize", "writable_view"]

_FIELD_NAME: Final = ":[^:]*:"
"""A name in a buffer format such as ``T{i:a:O:b:}``."""


def byte_view(data: AnyBuffer, name: str = "data") -> memoryview:
    """Return the bytes of `data`, without a copy.

    Raises
    ------
    TypeError
        `data` has no buffer, or its items are Python objects.
    ValueError
        `data` is not C-contiguous.

    """
    try:
        view = memoryview(data)
    except ValueError:  # a NumPy dtype without a buffer format, such as dates
        return _bytes_of_array(data, name)
    if "O" in view.format:
        _refuse_objects(view, name)
    if not view.c_contiguous:
        msg = f"{name}: expected a C-contiguous buffer, got strides {view.strides} for shape {view.shape}"
        raise ValueError(msg)
    if view.ndim == 1 and view.format == "B":
        return view
    try:
        return view.cast("B")
    except (TypeError, ValueError):  # items with a format of several parts, or no items at all
        return _bytes_of_array(data, name)


def _refuse_objects(view: memoryview, name: str) -> None:
    """Raise TypeError when items hold Python objects, whose bytes are addresses in this process."""
    if "O" in re.sub(_FIELD_NAME, "", view.format):
        msg = f"{name}: expected items of plain bytes, got Python objects (format {view.format!r})"
        raise TypeError(msg)


def _bytes_of_array(data: AnyBuffer, name: str) -> memoryview:
    import numpy as np  # only odd buffers come here

    try:
        return np.frombuffer(cast("bytes", data), dtype=np.uint8).data
    except ValueError as error:
        msg = f"{name}: expected a C-contiguous buffer: {error}"
        raise ValueError(msg) from None


def writable_view(data: AnyBuffer, name: str) -> memoryview:
    """Return the bytes of `data` to write into.

    Raises
    ------
    TypeError
        `data` has no buffer.
    ValueError
        `data` is read-only or not C-contiguous.

    """
    view = byte_view(data, name)
    if view.readonly:
        msg = f"{name}: expected a writable buffer, got a read-only {type(data).__name__}"
        raise ValueError(msg)
    return view


def check_buffersize(nbytes: int, name: str) -> None:
    """Raise ArgumentError when `nbytes` is more than one chunk can hold."""
    if nbytes > MAX_BUFFERSIZE:
        msg = f"{name}: expected at most {MAX_BUFFERSIZE} bytes for one chunk, got {nbytes}"
        raise ArgumentError(msg)
