"""NumPy's ``.npy`` files. Positioned reads and writes; nothing is mapped, no pickle is read."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np

from superchunk.cli.errors import Failure
from superchunk.cli.formats.base import Target
from superchunk.cli.formats.boxes import runs
from superchunk.cli.formats.stream import StreamSource, flat_bytes
from superchunk.cli.npy import NpyHeader
from superchunk.exceptions import FormatError, TruncatedError

if TYPE_CHECKING:
    from superchunk.cli.formats.base import Box, Plan

__all__ = ["NpySource", "NpyTarget", "create", "header_for", "open_source"]

_PIECE = 2**24
"""Bytes of one read or write, so that an interrupt does not wait long."""


def _check_length(header: NpyHeader, start: int, found: int) -> None:
    """Raise unless the file has the bytes that its header promises."""
    if found < header.nbytes:
        raise TruncatedError("npy items", at=start, needed=header.nbytes, got=found)
    if found > header.nbytes:
        raise FormatError("npy items", at=start, expected=f"{header.nbytes} bytes", found=f"{found} bytes")


class NpySource(StreamSource):
    """A ``.npy`` file."""

    def __init__(self, path: str) -> None:
        self._stream: BinaryIO = Path(path).open("rb")  # noqa: SIM115  - closed by `close`
        try:
            header = NpyHeader.read(self._stream.read)
            self._start = len(header.raw)
            _check_length(header, self._start, os.fstat(self._stream.fileno()).st_size - self._start)
        except BaseException:
            self._stream.close()
            raise
        self.shape, self.dtype, self.fortran_order = header.shape, header.dtype, header.fortran_order
        self.attributes = {}

    def read_into(self, at: int, out: memoryview) -> None:
        """Fill `out` from byte `at` of the items on."""
        done = 0
        while done < len(out):
            got = os.preadv(self._stream.fileno(), [out[done : done + _PIECE]], self._start + at + done)
            if not got:
                raise TruncatedError("npy items", at=self._start + at, needed=len(out), got=done)
            done += got

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def header_for(dtype: np.dtype[Any], shape: tuple[int, ...]) -> NpyHeader:
    """Return the header of an array in C order.

    Raises
    ------
    Failure
        The format has no words for the dtype.

    """
    descr = np.lib.format.dtype_to_descr(dtype) if dtype.isbuiltin != 2 else None  # of another package
    if descr is None or np.lib.format.descr_to_dtype(descr) != dtype:
        raise Failure(f".npy files cannot describe the dtype {dtype}")
    stream = io.BytesIO()
    try:
        # Version 1.0, which NumPy itself writes where it can.
        np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    except ValueError:
        return NpyHeader.make(dtype, shape)
    return NpyHeader.from_bytes(stream.getvalue())


@dataclass(slots=True, kw_only=True)
class NpyTarget(Target):
    """A ``.npy`` file in C order."""

    stream: BinaryIO
    start: int
    shape: tuple[int, ...]
    itemsize: int

    @classmethod
    def make(cls, path: Path, plan: Plan) -> Self:
        """Write the header, and make room for the items."""
        header = header_for(plan.dtype, plan.shape)
        stream = path.open("xb")
        try:
            stream.write(header.raw)
            stream.flush()
            stream.truncate(len(header.raw) + header.nbytes)
        except BaseException:
            stream.close()
            raise
        return cls(
            chunks=None,
            begins_filled=plan.fill is None,
            without_dimensions=".npy files cannot store them",
            stream=stream,
            start=len(header.raw),
            shape=plan.shape,
            itemsize=plan.itemsize,
        )

    def write(self, box: Box, values: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Write the items of a box, run by run."""
        content, done = flat_bytes(values), 0
        for first, count in runs(self.shape, box):
            stop = done + count * self.itemsize
            at = self.start + first * self.itemsize - done
            while done < stop:
                done += os.pwrite(self.stream.fileno(), content[done : min(stop, done + _PIECE)], at + done)

    def set_attribute(self, name: str, value: object) -> None:
        """Refuse: there is no place for them."""
        del name, value
        raise ValueError(".npy files cannot store attributes")

    def close(self) -> None:
        """Close the file."""
        self.stream.close()


def open_source(place: str) -> NpySource:
    """Open the file at `place`."""
    return NpySource(place)


def create(place: Path, plan: Plan) -> NpyTarget:
    """Make a file at `place`, which must not exist."""
    return NpyTarget.make(place, plan)
