"""Opening a frame for a command, and reading it piece by piece.

Source: docs/cli.md, section "Frames with arrays in them".
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import superchunk
from superchunk import DParams
from superchunk.cli.errors import EXPECTED, Failure, about
from superchunk.cli.layout import ArrayOfBlocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from superchunk import SChunk

__all__ = ["as_schunk", "in_reading_order", "open_frame", "pieces"]

PIECE = 2**20
"""Bytes to read at once, about."""


def as_schunk(opened: Any) -> SChunk:  # noqa: ANN401  (a SChunk or an NDArray)
    """Return what was opened as a list of chunks, also if it is an array."""
    schunk: SChunk = getattr(opened, "schunk", opened)
    return schunk


@contextlib.contextmanager
def open_frame(path: str, *, threads: int | None = None) -> Iterator[SChunk]:
    """Open the frame at `path` for reading.

    Raises
    ------
    Failure
        There is no frame, or it is damaged; the message begins with the path.

    """
    try:
        dparams = DParams() if threads is None else DParams(nthreads=threads)
        opened = as_schunk(superchunk.open(path, dparams=dparams))
    except EXPECTED as error:
        raise about(path, error) from error
    with opened as frame:
        try:
            yield frame
        except superchunk.SuperchunkError as error:
            raise about(path, error) from error


def in_reading_order(path: str, frame: SChunk, *, storage_order: bool) -> None:
    """Raise if the items of a frame do not stand in the order of the array they are.

    The chunks of an n-dimensional array are boxes, padded to whole blocks: read one after the
    other they give its items in no order that a reader would expect.
    """
    array = ArrayOfBlocks.of(frame)
    if array is not None and not storage_order:
        raise Failure(
            f"{path}: holds an array of shape {array.shape} in boxes of {array.chunkshape}; "
            "--storage-order reads its items as they are stored, padding included"
        )


def pieces(frame: SChunk, start: int, stop: int) -> Iterator[bytes]:
    """Yield bytes ``start:stop`` of a frame's items, about a megabyte at a time.

    `stop` is at most the bytes of all whole items.
    """
    typesize = frame.typesize
    step = max(PIECE // typesize, 1) * typesize
    at = start
    while at < stop:
        first = at // typesize
        end = min(stop, first * typesize + step)
        data = frame[first : -(-end // typesize)]
        skipped = at - first * typesize
        yield data[skipped : skipped + end - at]
        at = end
