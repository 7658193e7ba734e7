"""What a user finds in a frame: all that can be read, as one value that can be compared."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, NamedTuple

import superchunk
from superchunk._array.ndarray import NDArray
from superchunk._schunk.handle import Handle
from superchunk._store.frame_store import FrameStore
from superchunk._store.options import OpenOptions
from superchunk.schunk import SChunk

if TYPE_CHECKING:
    from superchunk._store.store_interface import FrameSettings

__all__ = ["ArrayContent", "Content", "content_of", "observe"]

_FRONT_DOOR_RECOVERS = "recover" in inspect.signature(superchunk.open).parameters
_ONE_THREAD = superchunk.DParams(nthreads=1)


class Content(NamedTuple):
    """Everything in a frame."""

    chunks: tuple[bytes, ...]
    """The content of each chunk."""
    vlmeta: tuple[tuple[str, bytes], ...]
    """The variable metalayers by name."""
    meta: tuple[tuple[str, bytes], ...]
    """The fixed metalayers by name."""
    nbytes: int
    chunksize: int
    settings: FrameSettings
    """What is recorded for new chunks."""


class ArrayContent(NamedTuple):
    """Everything in a frame that holds an array; shape and items as the array's own reader finds them."""

    shape: tuple[int, ...]
    dtype: str
    items: bytes
    """All of them, in C order."""
    schunk: Content
    """Of the super-chunk: padding and the array's metalayer are in it."""


def content_of(opened: SChunk | NDArray) -> Content | ArrayContent:
    """Return what is in an open super-chunk, or an open array."""
    if isinstance(opened, NDArray):
        items = opened[()]
        return ArrayContent(items.shape, opened.dtype.str, items.tobytes(), _content_of(opened.schunk))
    return _content_of(opened)


def _content_of(schunk: SChunk) -> Content:
    vlmeta, meta = schunk.vlmeta, schunk.meta
    return Content(
        tuple(schunk.decompress_chunk(nchunk) or b"" for nchunk in range(schunk.nchunks)),
        tuple((name, vlmeta.raw(name)) for name in sorted(vlmeta)),
        tuple((name, meta.raw(name)) for name in sorted(meta)),
        schunk.nbytes,
        schunk.chunksize,
        schunk._handle.store.settings,
    )


def observe(path: str, *, recover: bool = False) -> Content | ArrayContent | None:
    """Return what is in the frame at `path`, None if nothing is there.

    Parameters
    ----------
    path
        A file, or the directory of a sparse frame.
    recover
        Take the newest intact commit if the present state is damaged.

    Raises
    ------
    SuperchunkError
        It cannot be read; everything else is a fault of the library.

    """
    if not recover:
        try:
            schunk = superchunk.open(path, dparams=_ONE_THREAD)
        except FileNotFoundError:
            if os.path.lexists(path):  # a part of it is missing
                raise
            return None
    elif _FRONT_DOOR_RECOVERS:
        schunk = superchunk.open(path, dparams=_ONE_THREAD, recover=True)
    else:
        handle = Handle(FrameStore.open(path, recover=True), OpenOptions(mode="r"), urlpath=path, contiguous=True)
        schunk = SChunk._of_handle(handle, None, _ONE_THREAD)
    with schunk:
        return content_of(schunk)
