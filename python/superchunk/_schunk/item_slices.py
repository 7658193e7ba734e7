"""Which items a key of a super-chunk means, and overwriting them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NoReturn

from superchunk._codec.array_guard import check_change
from superchunk._codec.encoder import overwrite

if TYPE_CHECKING:
    from typing import SupportsIndex

    from superchunk._codec.encoder import Encoder
    from superchunk._store.store_interface import ChunkStore

__all__ = ["item_number", "overwrite_items", "refuse_step"]


def item_number(key: SupportsIndex, nitems: int) -> int:
    """Return the number of an item, counted from the start."""
    number = operator.index(key)
    if number < 0:
        number += nitems
    if not 0 <= number < nitems:
        msg = f"item: expected {-nitems} to {nitems - 1}, got {key}"
        raise IndexError(msg)
    return number


def _item_range(start: SupportsIndex | None, stop: SupportsIndex | None, nitems: int) -> tuple[int, int]:
    """Return the numbers of the first item of a slice to be overwritten and of the one behind its last."""
    first = 0 if start is None else operator.index(start)
    last = nitems if stop is None else operator.index(stop)
    first = max(first + nitems, 0) if first < 0 else first
    last = last + nitems if last < 0 else last
    if first > nitems:
        msg = f"start: expected at most the {nitems} items there are, got {first}"
        raise ValueError(msg)
    if first >= last:
        msg = f"stop: expected more than start, which is item {first}, got {last}"
        raise ValueError(msg)
    return first, last


def refuse_step(step: object) -> NoReturn:
    """Raise IndexError: slices have a step of 1."""
    msg = f"step: expected 1, got {step}"
    raise IndexError(msg)


def overwrite_items(
    store: ChunkStore,
    encoder: Encoder,
    start: SupportsIndex | None,
    stop: SupportsIndex | None,
    view: memoryview,
    *,
    single: bool = False,
) -> None:
    """Overwrite items ``start:stop``, or the `single` item `start`, inside a batch of the store.

    Raises
    ------
    IndexError
        There is no such single item.
    ValueError
        Too little data, or a slice that is empty or begins past the end.

    """
    typesize = encoder.cparams.typesize
    nitems = store.nbytes // typesize
    if single:
        first = item_number(0 if start is None else start, nitems)
        last = first + 1
    else:
        first, last = _item_range(start, stop, nitems)
    needed = (last - first) * typesize
    if view.nbytes < needed:
        msg = f"value: expected {needed} bytes for {last - first} items, got {view.nbytes}"
        raise ValueError(msg)
    stop_byte, chunksize = last * typesize, store.chunksize
    if stop_byte > store.nbytes and chunksize:
        added = -(-stop_byte // chunksize) - store.nchunks
        check_change(store, added=added, nbytes=stop_byte % chunksize or chunksize)
    overwrite(store, encoder, first * typesize, view[:needed])
