"""Copies of an `NDArray`, and super-chunks of items that are in memory.

A copy takes chunks as they are where they would decode to the same bytes. Other chunks are read and compressed one at a
time.

Source: docs/format/b2nd.md, "Arrays without items, and of one".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from superchunk._array.array_sources import source_of
from superchunk._array.creation_plan import begin_array, plan_array, storage_field
from superchunk._array.filling import boxes_of, build_array, put_boxes, put_special
from superchunk._format.b2nd import LAYERS, ArrayLayout
from superchunk._format.frame_index import special_kind
from superchunk._format.metalayers import without_cache_layers
from superchunk._store.copy_store import transfer
from superchunk.exceptions import ArgumentError
from superchunk.params import SpecialValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import DTypeLike

    from superchunk._array.array_sources import Casting, Source
    from superchunk._array.array_view import NDArrayLike
    from superchunk._array.creation_plan import ArrayPlan
    from superchunk._store.store_interface import ChunkStore
    from superchunk.schunk import SChunk

__all__ = ["copied", "packed_items"]


def packed_items(items: object, keywords: Mapping[str, Any]) -> SChunk:
    """Return the super-chunk of an array of the items of anything that has some."""
    source = source_of(items)
    return build_array(plan_array(source.shape, source.dtype, keywords), source.read)


def copied(array: NDArrayLike, dtype: DTypeLike | None, casting: Casting, keywords: Mapping[str, Any]) -> SChunk:
    """Return the super-chunk of a copy of an NDArray; see `NDArray.copy`."""
    given = {name: value for name, value in keywords.items() if value is not None}
    if storage_field(given, "meta") is not None:
        msg = "meta: a copy has the metalayers of its original"
        raise ArgumentError(msg)
    store = array.schunk._handle.refreshed_store()
    with store.pinned():
        source = source_of(array, dtype, casting)
        anew = "cparams" in given
        if "chunks" not in given:
            given["chunks"] = array.chunks
            given.setdefault("blocks", array.blocks)
        if not anew and (source.dtype.kind != "U" or array.dtype.kind == "U"):  # else shuffled as text is by default
            given["cparams"] = array.schunk.cparams
        given.setdefault("dparams", array.schunk.dparams)
        layers = without_cache_layers(store.meta, store.meta)
        plan = plan_array(source.shape, source.dtype, given, layers=layers)
        plan = replace(plan, deserialize=array.schunk._handle.options.deserialize)
        plain = source.dtype == array.dtype and array.schunk._decoder.postfilter is None
        same = plain and not anew and _same_chunks(store, plan)
        return _filled(store, source, plan, same=same, fill=_special_entry(store) if plain else 0)


def _filled(store: ChunkStore, source: Source, plan: ArrayPlan, *, same: bool, fill: int) -> SChunk:
    """Return a super-chunk of a store's chunks if they are the `same`, of one value, or of a source's items."""
    with begin_array(plan) as schunk:
        target = schunk._handle.store
        kept = without_cache_layers(store.meta, store.vlmeta)
        if same:
            transfer(store, target)
            for name in set(target.vlmeta) - set(kept):
                target.del_vlmeta(name)
            return schunk
        if fill:
            put_special(schunk, plan, SpecialValue(fill), None)
        else:
            put_boxes(schunk, plan, source.read, boxes_of(plan.layout))
        for name, chunk in kept.items():
            target.set_vlmeta(name, chunk)
    return schunk


def _same_chunks(store: ChunkStore, plan: ArrayPlan) -> bool:
    """Return whether the chunks of a copy decode to the bytes that those of the original do."""
    held = ArrayLayout.from_bytes(next(store.meta[name] for name in LAYERS if name in store.meta))
    new = plan.layout
    return (held.shape, held.chunks, held.blocks) == (new.shape, new.chunks, new.blocks)


def _special_entry(store: ChunkStore) -> int:
    """Return which special value without stored bytes all chunks are, 0 if they are not."""
    snapshot = store.snapshot()
    entry = snapshot.index.repeated_entry
    return special_kind(entry, 0) if entry is not None and entry < 0 and snapshot.chunksize > 0 else 0
