"""Arrays that stay as they are while several reads of them make one result.

::

    one read             sees one committed state by itself
    a result of many     held still from the first read to the last, whatever other processes commit meanwhile

Who holds several takes them in the order of their paths, and so does who holds some while changing another:
nobody waits in a circle. Arrays in memory, and snapshots, stay anyway.

Source: docs/format/cframe.md, "Concurrency".
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from superchunk.arrays.base import ArrayBase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from superchunk.storage.base import ChunkStore

__all__ = ["changing", "held_still"]


@contextmanager
def held_still(values: Iterable[object]) -> Iterator[None]:
    """Keep the arrays among `values` as they are while the block reads."""
    with ExitStack() as stack:
        for _, enter in sorted(_steady(values).items()):
            stack.enter_context(enter())
        yield


def changing(store: ChunkStore, value: object) -> AbstractContextManager[object]:
    """Make the changes in the block one, and keep `value` as it is if it is an array kept elsewhere."""
    if not isinstance(value, ArrayBase):  # the usual case, without a list of what is held
        return store.batch()
    return _changing_beside(store, value)


@contextmanager
def _changing_beside(store: ChunkStore, value: ArrayBase) -> Iterator[None]:
    entries = _steady((value,))
    entries[store.path or ""] = store.batch
    with ExitStack() as stack:
        for _, enter in sorted(entries.items()):
            stack.enter_context(enter())
        yield


def _steady(values: Iterable[object]) -> dict[str, Callable[[], AbstractContextManager[object]]]:
    """Return what keeps the arrays among `values` as they are, by path."""
    stores = (value._handle.opened() for value in values if isinstance(value, ArrayBase))
    return {store.path: store.steady for store in stores if store.shifting and store.path is not None}
