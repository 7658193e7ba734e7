"""Opening a frame for a command, and reading its items piece by piece, in C order.

Source: docs/cli.md, section "Frames with arrays in them".
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import superchunk
from superchunk import DParams
from superchunk.cli.errors import EXPECTED, about, describe
from superchunk.cli.formats.boxes import boxes_between
from superchunk.cli.formats.npy import header_for
from superchunk.cli.layout import ArrayOfBlocks, Layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from superchunk import NDArray, SChunk
    from superchunk.cli.npy import NpyHeader

__all__ = ["Items", "as_schunk", "open_chunks", "open_frame"]

PIECE = 2**20
"""Bytes to read at once, about."""


def as_schunk(opened: Any) -> SChunk:
    """Return what was opened as a list of chunks, also if it is an array."""
    schunk: SChunk = getattr(opened, "schunk", opened)
    return schunk


@contextlib.contextmanager
def open_frame(path: str, *, threads: int | None = None) -> Iterator[SChunk]:
    """Open the frame at `path` for reading its data.

    Raises
    ------
    Failure
        There is no frame, or it is damaged, or its chunks are not its data; the message begins with the path.

    """
    try:
        dparams = DParams() if threads is None else DParams(nthreads=threads)
        opened = as_schunk(superchunk.open(path, dparams=dparams))
    except EXPECTED as error:
        raise about(path, error) from error
    with _closing(path, opened) as frame:
        yield frame


@contextlib.contextmanager
def open_chunks(path: str) -> Iterator[tuple[SChunk, str | None]]:
    """Open the frame at `path` for looking at its chunks, and say what it stands for if they are not its data.

    Raises
    ------
    Failure
        There is no frame, or it is damaged; the message begins with the path.

    """
    instead = None
    try:
        opened = as_schunk(superchunk.open(path))
    except superchunk.UnsafeDeserializationError as error:
        instead = describe(error).removeprefix(f"{path}: ").partition("; ")[0]
        opened = superchunk.SChunk(urlpath=path, mode="r")
    except EXPECTED as error:
        raise about(path, error) from error
    with _closing(path, opened) as frame:
        yield frame, instead


@contextlib.contextmanager
def _closing(path: str, opened: SChunk) -> Iterator[SChunk]:
    """Close a frame in the end; errors of it get the path in front."""
    with opened as frame:
        try:
            yield frame
        except superchunk.SuperchunkError as error:
            raise about(path, error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """The items of a frame as bytes: of an array in C order, of a stream as they stand."""

    nbytes: int
    typesize: int
    _frame: SChunk
    _array: NDArray | None

    @classmethod
    def of(cls, frame: SChunk, *, storage_order: bool) -> Self:
        """Return the items of a frame; with `storage_order` the chunks of an array as they are, padding included."""
        if storage_order or ArrayOfBlocks.of(frame) is None:
            return cls(nbytes=frame.nbytes, typesize=frame.typesize, _frame=frame, _array=None)
        array = superchunk.NDArray(frame)
        return cls(nbytes=array.nbytes, typesize=array.dtype.itemsize, _frame=frame, _array=array)

    def dtype(self) -> np.dtype[Any] | None:
        """Return what they are, None when nobody said."""
        return Layout.of(self._frame).dtype if self._array is None else self._array.dtype

    def header(self) -> NpyHeader | None:
        """Return the ``.npy`` header that goes before them, None for raw bytes.

        Raises
        ------
        FormatError
            What the frame says about its items cannot be.
        Failure
            ``.npy`` has no words for the array's dtype.

        """
        if self._array is None:
            return Layout.of(self._frame).header
        return header_for(self._array.dtype, tuple(self._array.shape))

    def all(self) -> Iterator[bytes]:
        """Yield all of them: of a stream a chunk at a time."""
        if self._array is not None:
            yield from self.pieces(0, self.nbytes)
            return
        for nchunk in range(self._frame.nchunks):
            yield self._frame.decompress_chunk(nchunk) or b""

    def pieces(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield bytes ``start:stop`` of the items, a megabyte or a few at a time.

        `stop` is at most the bytes of all whole items.
        """
        at = start // self.typesize * self.typesize
        for data in self._whole_items(at // self.typesize, -(-stop // self.typesize)):
            yield data[max(start - at, 0) : stop - at]
            at += len(data)

    def _whole_items(self, first: int, stop: int) -> Iterator[bytes]:
        if self._array is None:
            step = max(PIECE // self.typesize, 1)
            for at in range(first, stop, step):
                yield self._frame[at : min(at + step, stop)]
            return
        blocks = tuple(max(side, 1) for side in self._array.blocks)
        for box in boxes_between(tuple(self._array.shape), self.typesize, first, stop, blocks, PIECE):
            yield self._array[box].tobytes()
