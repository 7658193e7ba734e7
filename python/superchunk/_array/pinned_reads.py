"""Arrays that stay as they are while several reads of them make one result.

::

    one read             sees one committed state by itself
    a result of many     pinned from the first read to the last, whatever other processes commit meanwhile

Several arrays are pinned in the order of their paths, also while another one is changed: nobody waits in a circle.
Arrays in memory, and snapshots, do not change under a reader.

Source: docs/format/cframe.md, "Concurrency".
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from superchunk._array.array_view import is_ndarray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from superchunk._store.store_interface import ChunkStore

__all__ = ["changing", "pinned"]


@contextmanager
def pinned(values: Iterable[object]) -> Iterator[None]:
    """Keep the arrays among `values` as they are while the block reads."""
    with ExitStack() as stack:
        for _, enter in sorted(_pins_of(values).items()):
            stack.enter_context(enter())
        yield


def changing(store: ChunkStore, value: object) -> AbstractContextManager[object]:
    """Make the changes in the block one, and keep `value` as it is if it is an array in another store."""
    if not is_ndarray(value):  # the usual case, without a list of arrays to pin
        return store.batch()
    return _changing_beside(store, value)


@contextmanager
def _changing_beside(store: ChunkStore, value: object) -> Iterator[None]:
    entries = _pins_of((value,))
    entries[store.path or ""] = store.batch
    with ExitStack() as stack:
        for _, enter in sorted(entries.items()):
            stack.enter_context(enter())
        yield


def _pins_of(values: Iterable[object]) -> dict[str, Callable[[], AbstractContextManager[object]]]:
    """Return what keeps the arrays among `values` as they are, by path."""
    stores = (value._handle.store for value in values if is_ndarray(value))
    return {store.path: store.pinned for store in stores if store.is_mutable and store.path is not None}
