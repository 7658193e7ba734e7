"""What a SChunk and its metadata share: the store, and what the handle may do.

It exists so that `schunk.vlmeta` can outlive the SChunk without a cycle that only
the garbage collector would break.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from superchunk.exceptions import ClosedError, ReadOnlyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk.params import DeserializeMode
    from superchunk.storage.base import ChunkStore

__all__ = ["Deserialize", "Handle", "of_one_state"]

P = ParamSpec("P")
R = TypeVar("R")

Deserialize: TypeAlias = "Literal['safe', 'full'] | DeserializeMode"
"""Which extension values metadata may hold."""


class _HasHandle(Protocol):
    @property
    def _handle(self) -> Handle: ...


S = TypeVar("S", bound=_HasHandle)


def of_one_state(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Let a method that reads chunks see one committed state, though their files may go meanwhile.

    It may be called several times for one call, so that it must change nothing but what
    it is given to fill.
    """

    @wraps(method)
    def steadily(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        store = self._handle.store
        if store is None or not store.shifting:
            return method(self, *args, **kwargs)
        return store.steadily(method, self, *args, **kwargs)

    return steadily


class Handle:
    """One user's view of a store.

    Parameters
    ----------
    store
        Where the chunks are.
    mode
        ``"r"``, ``"a"`` or ``"w"``.
    urlpath
        The file, None in memory.
    contiguous
        Whether the chunks stand in a frame.
    mmap_mode, initial_mapping_size
        As the user gave them.
    locking
        Whether it takes part in C-Blosc2's lock protocol.
    verify
        ``"read"``: chunks that are read whole are compared with their seals.
    compact_above
        Compact when closing, if more than this share of the bytes is dead.
    deserialize
        Which extension values metadata may hold.
    offset
        Where the frame starts in its file, in bytes.
    snapshot, recover
        As it was opened.

    """

    __slots__ = (
        "compact_above",
        "contiguous",
        "deserialize",
        "initial_mapping_size",
        "locking",
        "mmap_mode",
        "mode",
        "offset",
        "recover",
        "snapshot",
        "store",
        "urlpath",
        "verify",
    )

    def __init__(
        self,
        store: ChunkStore,
        *,
        mode: str = "a",
        urlpath: str | None = None,
        contiguous: bool = False,
        mmap_mode: str | None = None,
        initial_mapping_size: int | None = None,
        deserialize: Deserialize = "safe",
        locking: bool = False,
        verify: str | None = None,
        compact_above: float | None = None,
        offset: int = 0,
        snapshot: bool = False,
        recover: bool = False,
    ) -> None:
        self.store: ChunkStore | None = store
        self.mode = mode
        self.urlpath = urlpath
        self.contiguous = contiguous
        self.mmap_mode = mmap_mode
        self.initial_mapping_size = initial_mapping_size
        self.deserialize = deserialize
        self.locking = locking
        self.verify = verify
        self.compact_above = compact_above
        self.offset = offset
        self.snapshot = snapshot
        self.recover = recover

    def opened(self) -> ChunkStore:
        """Return the store.

        Raises
        ------
        ClosedError
            The handle was closed.

        """
        if self.store is None:
            msg = f"the handle on {self.urlpath or 'this SChunk'} is closed"
            raise ClosedError(msg)
        return self.store

    def fresh(self) -> ChunkStore:
        """Return the store, after a look whether somebody else changed it."""
        store = self.opened()
        store.refresh()
        return store

    def writing(self) -> ChunkStore:
        """Return the store for a change.

        Raises
        ------
        ReadOnlyError
            The handle was opened with mode "r".
        ClosedError
            The handle was closed.

        """
        store = self.opened()
        if self.mode == "r":
            msg = f"{self.urlpath}: opened in reading mode (mode 'r'), which allows no changes"
            raise ReadOnlyError(msg)
        store.refresh()
        return store

    def close(self) -> None:
        """Write what is pending and let go of the file; a second time does nothing.

        Raises
        ------
        StorageError
            Writing failed; the handle stays open and keeps what is pending.

        """
        store = self.store
        if store is not None:
            if self.compact_above is not None and store.writable:
                dead = store.dead_bytes
                if dead > self.compact_above * (dead + store.cbytes):
                    store.compact()
            store.close()
            self.store = None
