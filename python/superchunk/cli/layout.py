"""The dtype, shape and order of a frame's items, recorded in vlmetalayers.

::

    vlmetalayer             content
    superchunk.npy_header   bytes: the header of the .npy file, unchanged
    superchunk.dtype        str: the dtype of raw input given by --dtype, such as "<f8"
    __pack_tensor__         ("numpy", shape, dtype): read by blosc2.load_array;
                            only in C order, because it cannot express another

Frames of blosc2.save_array have only the last one. N-dimensional arrays have the metalayer
"b2nd" or "caterva". This module reads dtype and shape from each of them.

Source: docs/cli.md, section "What compress records".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

import superchunk
from superchunk.cli.npy import NpyHeader
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from superchunk import SChunk

__all__ = ["ArrayOfBlocks", "Layout"]

NPY_HEADER = "superchunk.npy_header"
RAW_DTYPE = "superchunk.dtype"
PACKED = "__pack_tensor__"
ARRAYS = ("b2nd", "caterva")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What is recorded about the items of a frame."""

    dtype: np.dtype[Any] | None = None
    """None when nobody said."""
    header: NpyHeader | None = None
    """The ``.npy`` header that goes before the items; None for raw bytes."""

    @classmethod
    def of(cls, schunk: SChunk) -> Self:
        """Return what a frame says about its items.

        Raises
        ------
        FormatError
            What it says cannot be: it contradicts the typesize or the number of bytes.

        """
        vlmeta = schunk.vlmeta
        if NPY_HEADER in vlmeta:
            raw = vlmeta[NPY_HEADER]
            if not isinstance(raw, bytes):
                raise _contradiction(NPY_HEADER, "bytes", type(raw).__name__)
            header = NpyHeader.from_bytes(raw)
        elif PACKED in vlmeta:
            header = _header_from_packed(vlmeta[PACKED])
        elif RAW_DTYPE in vlmeta:
            dtype = _dtype_from(RAW_DTYPE, vlmeta[RAW_DTYPE])
            if dtype.itemsize != schunk.typesize:
                raise _contradiction(RAW_DTYPE, f"a dtype of {schunk.typesize} bytes, the typesize", dtype)
            return cls(dtype=dtype)
        else:
            return cls()
        if header.nbytes != schunk.nbytes:
            raise _contradiction(
                "recorded shape", f"{schunk.nbytes} bytes, the size of the stream", f"{header.nbytes} bytes"
            )
        return cls(dtype=header.dtype, header=header)

    def record(self, schunk: SChunk) -> None:
        """Write it into the vlmetalayers of a frame."""
        if self.header is not None:
            schunk.vlmeta[NPY_HEADER] = self.header.raw
            if not self.header.fortran_order:
                descr = np.lib.format.dtype_to_descr(self.header.dtype)
                schunk.vlmeta[PACKED] = ("numpy", self.header.shape, descr)
        elif self.dtype is not None:
            schunk.vlmeta[RAW_DTYPE] = self.dtype.str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOfBlocks:
    """What the metalayer ``b2nd`` says: an array whose chunks are boxes, stored padded."""

    shape: tuple[int, ...]
    chunkshape: tuple[int, ...]
    blockshape: tuple[int, ...]
    dtype: str
    """As the layer says it."""
    read_as: str | None = None
    """What the items are read as, where that text cannot be meant."""

    @property
    def grid(self) -> tuple[int, ...]:
        """Chunks along each dimension."""
        return tuple(-(-n // part) if part else 0 for n, part in zip(self.shape, self.chunkshape, strict=True))

    @classmethod
    def of(cls, schunk: SChunk) -> Self | None:
        """Return the array's description, None for a frame without one.

        Raises
        ------
        FormatError
            The layer is damaged, or contradicts the frame.

        """
        layer = next((name for name in ARRAYS if name in schunk.meta), None)
        if layer is None:
            return None
        array = superchunk.NDArray(schunk)
        said = schunk.meta[layer]
        text = said[6] if len(said) > 6 else None  # the first layers had no dtype
        strange = array.dtype.kind == "V" and array.dtype.names is None and "V" not in str(text)
        return cls(
            shape=array.shape,
            chunkshape=array.chunks,
            blockshape=array.blocks,
            dtype=str(array.dtype) if text is None else str(text),
            read_as=array.dtype.str if strange else None,
        )


def _header_from_packed(found: object) -> NpyHeader:
    """Return the ``.npy`` header for what `blosc2.save_array` recorded."""
    if not isinstance(found, list | tuple) or len(found) != 3:  # as drawn on top
        raise _contradiction(PACKED, "kind, shape and dtype", found)
    kind, shape, descr = found
    if kind != "numpy":
        raise _contradiction(PACKED, "the kind numpy", kind)
    if not isinstance(shape, list | tuple) or any(not isinstance(extent, int) or extent < 0 for extent in shape):
        raise _contradiction(PACKED, "a shape", shape)
    dtype = _dtype_from(PACKED, descr)
    if math.prod(shape) * dtype.itemsize >= 2**63:
        raise _contradiction(PACKED, "a shape of less than 2**63 bytes", shape)
    return NpyHeader.make(dtype, tuple(shape))


def _dtype_from(field: str, descr: object) -> np.dtype[Any]:
    try:
        dtype = np.lib.format.descr_to_dtype(_tuples(descr))
    except (TypeError, ValueError, KeyError, IndexError, SyntaxError) as error:
        raise _contradiction(field, "a dtype", descr) from error
    if dtype.hasobject:
        raise _contradiction(field, "a dtype without Python objects", dtype)
    return dtype


def _tuples(descr: Any) -> Any:
    """Give the fields of a dtype back as the tuples that NumPy wants."""
    if isinstance(descr, list):
        return [tuple(map(_tuples, part)) if isinstance(part, list | tuple) else part for part in descr]
    return descr


def _contradiction(field: str, expected: object, found: object) -> FormatError:
    return FormatError(field, at=0, expected=expected, found=found)
