"""Items into the chunks of a new array, one chunk after the other.

::

    this thread    produce k+2   store k     produce k+3   store k+1
    helper         compress k        compress k+2
    helper         compress k+1          compress k+3

The engine compresses straight out of the memory in which the items are, whatever its strides. Each helper has its own
chunk, which costs less than sharing one. Where the chunks would take more than 32 MiB, there are fewer helpers, and
threads of the engine share a chunk. Meanwhile this thread puts finished chunks into the store and gets the items of the
next one. User codecs and filters run on this thread alone.

Source: docs/format/b2nd.md, "Geometry".
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from superchunk import _engine
from superchunk._array.compress_items import pack_items
from superchunk._array.creation_plan import begin_array
from superchunk._codec.block_shape import ZFP_IDS
from superchunk._codec.encoder import insert_groups, insert_repeated
from superchunk.params import MAX_HEADER_TYPESIZE, SpecialValue, number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    import numpy as np

    from superchunk._array.creation_plan import ArrayPlan
    from superchunk._format.b2nd import ArrayLayout
    from superchunk._store.store_interface import ChunkStore
    from superchunk.schunk import SChunk

__all__ = [
    "Box",
    "ChunkRow",
    "Produce",
    "Ready",
    "boxes_of",
    "build_array",
    "build_special",
    "packed",
    "put_boxes",
    "put_special",
]

Box: TypeAlias = tuple[slice, ...]
"""Where a chunk's items are in the array: ``start:stop`` in each dimension, inside the shape."""

Ready: TypeAlias = "Callable[[Box], bytes | None]"
"""Returns the compressed chunk of a box that needs no work, None if there is none."""

Produce: TypeAlias = "Callable[[Box], np.ndarray[Any, Any]]"
"""Returns the items of a box, of the array's dtype; they must not change while the array is made."""

_GROUP_CBYTES: Final = 2**20
"""Compressed bytes that are held before they go to the store."""
_ALONE_NBYTES: Final = 2**20
"""Below this many bytes in all a helper thread costs more than it saves."""
_AHEAD_NBYTES: Final = 2**25
"""Uncompressed bytes that helpers work on at a time, if a chunk is no larger."""


def build_array(
    plan: ArrayPlan, produce: Produce, boxes: Iterable[Box] | None = None, ready: Ready | None = None
) -> SChunk:
    """Make the super-chunk of an array and fill it, in one commit.

    Parameters
    ----------
    plan
        What to make.
    produce
        Called for each chunk, in order, with its box.
    boxes
        The boxes in the order of the chunks, if `produce` has to be called with others than those that
        `boxes_of` gives; shapes have to be the same.
    ready
        Asked for each box first.

    Raises
    ------
    ArgumentError, StorageError
        As `begin_array`; whatever `produce` raises, too. No file is left behind.

    """
    with begin_array(plan) as schunk:
        put_boxes(schunk, plan, produce, boxes_of(plan.layout) if boxes is None else boxes, ready)
    return schunk


def build_special(plan: ArrayPlan, kind: SpecialValue, value: bytes | None = None) -> SChunk:
    """Make the super-chunk of an array of one value, whose chunks take almost no space.

    Parameters
    ----------
    plan
        What to make.
    kind
        ZERO, NAN, UNINIT, or VALUE with:
    value
        The bytes of an item.

    """
    with begin_array(plan) as schunk:
        put_special(schunk, plan, kind, value)
    return schunk


def boxes_of(layout: ArrayLayout) -> Iterator[Box]:
    """Yield the box of each chunk, cut at the array's edges, in the order of the chunks."""
    edges = [
        [slice(start, min(start + chunk, size)) for start in range(0, size, chunk)] if size else []
        for size, chunk in zip(layout.shape, layout.chunks, strict=True)
    ]
    return product(*edges)


def put_boxes(
    schunk: SChunk, plan: ArrayPlan, produce: Produce, boxes: Iterable[Box], ready: Ready | None = None
) -> None:
    """Append a chunk for each box."""
    insert_groups(schunk._handle.store, packed(schunk, plan, produce, boxes, ready), held=_GROUP_CBYTES)


def packed(
    schunk: SChunk, plan: ArrayPlan, produce: Produce, boxes: Iterable[Box], ready: Ready | None = None
) -> Iterator[bytes]:
    """Yield the compressed chunk of each box; see the top of this page."""
    layout, itemsize = plan.layout, plan.dtype.itemsize
    encoder = schunk._encoder
    geometry = _engine.Geometry(layout.chunks, layout.blocks, itemsize)
    in_python = encoder.hooks is not None or number_of(encoder.cparams.codec) in ZFP_IDS
    alone = layout.nchunks * geometry.chunk_nbytes < _ALONE_NBYTES or in_python
    nhelpers = 0 if alone else min(encoder.cparams.nthreads, max(_AHEAD_NBYTES // geometry.chunk_nbytes, 1))
    params = encoder.params
    if nhelpers > 1:
        params = encoder.params_of(replace(encoder.cparams, nthreads=-(-encoder.cparams.nthreads // nhelpers)))

    def pack(items: np.ndarray[Any, Any]) -> bytes:
        return pack_items(geometry, params, items, whole=items.shape == layout.chunks)

    if not nhelpers or layout.nchunks == 1:
        for box in boxes:
            chunk = None if ready is None else ready(box)
            yield pack(_checked(produce(box), box, plan)) if chunk is None else chunk
        return
    from concurrent.futures import ThreadPoolExecutor  # large arrays only

    with ThreadPoolExecutor(nhelpers, "superchunk-pack") as helpers:
        waiting: deque[Future[bytes] | bytes] = deque()
        for box in boxes:
            chunk = None if ready is None else ready(box)
            waiting.append(helpers.submit(pack, _checked(produce(box), box, plan)) if chunk is None else chunk)
            if len(waiting) > nhelpers:
                yield _done(waiting.popleft())
        while waiting:
            yield _done(waiting.popleft())


def _done(chunk: Future[bytes] | bytes) -> bytes:
    return chunk if isinstance(chunk, bytes) else chunk.result()


def _checked(items: np.ndarray[Any, Any], box: Box, plan: ArrayPlan) -> np.ndarray[Any, Any]:
    """Return what was produced, if it is what was asked for."""
    wanted = tuple(edge.stop - edge.start for edge in box)
    if items.shape != wanted or items.dtype != plan.dtype:
        msg = (
            f"items {_shown(box)}: expected shape {wanted} and dtype {plan.dtype}, got {items.shape} and {items.dtype}"
        )
        raise ValueError(msg)
    return items


def _shown(box: Box) -> str:
    return f"[{', '.join(f'{edge.start}:{edge.stop}' for edge in box)}]"


class ChunkRow:
    """One row of chunks in memory, those that share their place along the first dimension, to be cut into boxes.

    Parameters
    ----------
    take
        Returns the items from one index of the first dimension to another, in all other dimensions whole; it is
        called for one row after the other.

    """

    def __init__(self, take: Callable[[int, int], np.ndarray[Any, Any]]) -> None:
        self._take = take
        self._start = -1
        self._items: np.ndarray[Any, Any] | None = None

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """Return the items of a box, taking the next row of chunks if the box begins one."""
        start, stop = box[0].start, box[0].stop
        items = self._items
        if items is None or start != self._start:
            items = self._items = None  # not two rows at a time
            items = self._items = self._take(start, stop)
            self._start = start
        return items[(slice(None), *box[1:])]


def put_special(schunk: SChunk, plan: ArrayPlan, kind: SpecialValue, value: bytes | None) -> None:
    """Fill an empty container with one value."""
    store = schunk._handle.store
    layout, itemsize = plan.layout, plan.dtype.itemsize
    nchunks = layout.nchunks
    if not nchunks:
        return
    if kind is SpecialValue.VALUE and value is not None and itemsize > MAX_HEADER_TYPESIZE and any(value):
        _put_long_value(store, schunk, plan, value)
        return
    store.fill_special(kind.value, nchunks * layout.chunk_items * itemsize, value)


def _put_long_value(store: ChunkStore, schunk: SChunk, plan: ArrayPlan, value: bytes) -> None:
    """Fill an empty container with an item that is too long for a special chunk."""
    layout = plan.layout
    geometry = _engine.Geometry(layout.chunks, layout.blocks, len(value))
    strides = (0,) * layout.ndim
    chunk = _engine.pack(geometry, schunk._encoder.params, value, 0, strides, layout.chunks)
    insert_repeated(store, chunk, layout.nchunks)
