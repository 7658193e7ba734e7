"""Frames whose chunks are not their data: stored expressions and objects, and caches of another array.

python-blosc2 marks them with a fixed metalayer beside that of the array:

=================  ==========================================  =============================
fixed metalayer    what the frame is                           its chunks
=================  ==========================================  =============================
``b2o``            a lazy expression, a function of the user   zeros
                   or a reference to a remote array
``LazyArray``      an older form of the same                   zeros
``proxy-source``   a cache of another array or super-chunk     those fetched; the others are
                                                               zeros or not initialised
=================  ==========================================  =============================

Whoever reads them as data gets zeros. So every entry point that returns data refuses them; a cache that says that all
of it was fetched is read, with a warning. `SChunk` and `schunk_from_cframe` give the chunks as they are.

Source: docs/format/metalayers.md, "Frames that represent other objects".
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Final, Protocol

from superchunk import _engine
from superchunk._format import metalayer_values as values
from superchunk._format.metalayers import PLACEHOLDERS
from superchunk.exceptions import SuperchunkError, UnsafeDeserializationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from superchunk._store.options import OpenOptions
    from superchunk._store.store_interface import ChunkStore

__all__ = ["check_holds_data", "placeholder_text"]

_CACHE: Final = "proxy-source"
_ROOM: Final = 16
"""Bytes that MessagePack may take around a map of bits, at most."""


def placeholder_text(meta: Mapping[str, bytes]) -> tuple[str, str] | None:
    """Return the fixed metalayer by which a frame stands for something else, and what that is; None for data."""
    if PLACEHOLDERS.isdisjoint(meta):
        return None
    if _CACHE in meta:
        return _CACHE, "a cache of another array, whose chunks are zeros until they are fetched"
    if "b2o" in meta:
        said = _unpacked(meta["b2o"])
        kind = said.get("kind") if isinstance(said, dict) else None
        return "b2o", f"a stored object of kind {kind!r}, whose chunks are zeros and no data"
    return "LazyArray", "a stored lazy expression, whose chunks are zeros and no data"


class _OpenFrame(Protocol):
    """A handle: a store, and where it is."""

    @property
    def store(self) -> ChunkStore: ...

    urlpath: str | None
    options: OpenOptions


def check_holds_data(handle: _OpenFrame) -> None:
    """Refuse a frame whose chunks are not its data; warn of a cache that says that it holds everything.

    Raises
    ------
    UnsafeDeserializationError
        It stands for something else, or is a cache that is not complete.

    """
    store = handle.store
    meta = store.meta
    found = placeholder_text(meta)
    if found is None:
        return
    name, what = found
    where = handle.urlpath or "frame"
    if name == _CACHE and "b2o" not in meta and "LazyArray" not in meta and _is_complete(store):
        warnings.warn(
            f"{where}: a cache of another array (metalayer {name!r}) that says that it holds all of it; it is read as "
            "it is and not compared with that array",
            stacklevel=_stacklevel(),
        )
        return
    chunks = (
        f"superchunk.SChunk(urlpath={handle.urlpath!r}, mode='r')"
        if handle.urlpath is not None and not handle.options.offset
        else "superchunk.schunk_from_cframe() of the frame's bytes"
    )
    msg = f"{where}: {what} (metalayer {name!r}); python-blosc2 opens it, {chunks} gives the chunks as they are"
    raise UnsafeDeserializationError(msg)


def _is_complete(store: ChunkStore) -> bool:
    """Return whether a cache says of all its chunks that they were fetched."""
    kept = store.vlmeta
    nchunks = store.nchunks
    if "proxy-dirty" in kept:  # a process died while changing it
        return False
    if "proxy-fetched-blocks" in kept:
        per_chunk = _bookkeeping(store, "proxy-fetched-bpc", 0)
        if not isinstance(per_chunk, int) or per_chunk < 1:
            return False
        return _all_set(_bookkeeping(store, "proxy-fetched-blocks", nchunks * per_chunk), nchunks * per_chunk)
    if "proxy-fetched" in kept:
        return _all_set(_bookkeeping(store, "proxy-fetched", nchunks), nchunks)
    return not any(_special(store, range(nchunks)))  # the first caches had no such map


def _bookkeeping(store: ChunkStore, name: str, count: int) -> object:
    """Return a value that takes at most `count` bits, None if there is none, or a damaged or a longer one."""
    chunk = store.vlmeta.get(name)
    try:
        if chunk is None or _engine.describe(chunk).nbytes > -(-count // 8) + _ROOM:
            return None
        return _unpacked(_engine.decompress(chunk))
    except SuperchunkError:
        return None


def _all_set(bits: object, count: int) -> bool:
    """Return whether a map of bits, the lowest of a byte first, has the first `count` set."""
    if not isinstance(bits, bytes) or len(bits) != -(-count // 8):
        return False
    whole = (1 << count) - 1
    return int.from_bytes(bits, "little") & whole == whole


def _special(store: ChunkStore, numbers: Iterable[int]) -> Iterable[bool]:
    return (_engine.describe(store.source(number)).special != 0 for number in numbers)


def _unpacked(content: bytes) -> object:
    """Return a value, None if it cannot be read."""
    try:
        return values.unpack(content)
    except SuperchunkError:
        return None


def _stacklevel() -> int:
    """Return how far above the caller the first function is that is not of this package."""
    package = os.path.dirname(os.path.dirname(__file__)) + os.sep
    level, frame = 1, sys._getframe(1)  # noqa: SLF001  (what warnings.warn counts)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    return level
