"""Whole-chunk calls on the super-chunk of an array: it keeps as many chunks as its shape says, all of one size.

A super-chunk with the layer that is filled by hand may grow until the array is complete. A layer that does not
go together with the frame binds nobody: there is no array to be lost.

Source: docs/format/b2nd.md, "Rules for a safe reader".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from superchunk._codec.block_shape import layout_of
from superchunk._format.b2nd import LAYERS
from superchunk.exceptions import ArgumentError, FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from superchunk._format.b2nd import ArrayLayout
    from superchunk._store.store_interface import ChunkStore

__all__ = ["check_change"]

_LAYERS: Final = frozenset(LAYERS)


def check_change(store: ChunkStore, *, added: int = 0, nbytes: int | None = None) -> None:
    """Refuse a change after which an array could not be read.

    Parameters
    ----------
    store
        Whose chunks change.
    added
        How many chunks more there will be; below 0: fewer.
    nbytes
        Uncompressed bytes of each chunk that is new; None: there is none.

    Raises
    ------
    ArgumentError
        There is an array, and it has no such chunk, or needs those that there are; a ValueError.

    """
    meta = store.meta
    layout = None if _LAYERS.isdisjoint(meta) else _binding(store, meta)
    if layout is None:
        return
    if nbytes is not None and nbytes != store.chunksize:
        msg = f"data: expected {store.chunksize} bytes, a whole chunk of the array, padding included, got {nbytes}"
        raise ArgumentError(msg)
    count = store.nchunks
    if (added > 0 and count + added > layout.nchunks) or (added < 0 and count == layout.nchunks):
        msg = (
            f"nchunks: expected {layout.nchunks}, those of the array of shape {layout.shape}, "
            f"got {count + added}; the array's resize() changes its shape, update_chunk(nchunk, chunk) replaces a chunk"
        )
        raise ArgumentError(msg)


def _binding(store: ChunkStore, meta: Mapping[str, bytes]) -> ArrayLayout | None:
    """Return the array's layer, None if there is none or it cannot be true."""
    try:
        layout = layout_of(meta)
    except FormatError:
        return None
    fits = layout is not None and 0 < store.chunksize == layout.chunk_items * store.settings.typesize
    return layout if fits else None
