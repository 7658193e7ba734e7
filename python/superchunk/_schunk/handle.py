"""What a SChunk and its metadata share: the store, and what the handle may do.

It exists so that `schunk.vlmeta` can outlive the SChunk without a cycle that only
the garbage collector would break.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superchunk._store.options import OpenOptions
from superchunk.exceptions import ClosedError, ReadOnlyError

if TYPE_CHECKING:
    from superchunk._store.store_interface import ChunkStore

__all__ = ["Handle"]


class Handle:
    """One user's view of a store.

    Parameters
    ----------
    store
        Where the chunks are.
    options
        How it was opened; None: as a container in memory is.
    urlpath
        The file as the user named it, None in memory.
    path
        The same from the root, so that the working directory does not matter; None in memory.
    contiguous
        Whether the chunks stand in a frame.

    """

    __slots__ = ("contiguous", "options", "path", "store_if_open", "urlpath")

    def __init__(
        self,
        store: ChunkStore,
        options: OpenOptions | None = None,
        *,
        urlpath: str | None = None,
        path: str | None = None,
        contiguous: bool = False,
    ) -> None:
        self.store_if_open: ChunkStore | None = store
        self.options = options or OpenOptions()
        self.urlpath = urlpath
        self.path = path
        self.contiguous = contiguous

    @property
    def store(self) -> ChunkStore:
        """The store.

        Raises
        ------
        ClosedError
            The handle was closed.

        """
        if self.store_if_open is None:
            msg = f"the handle on {self.urlpath or 'this SChunk'} is closed"
            raise ClosedError(msg)
        return self.store_if_open

    def refreshed_store(self) -> ChunkStore:
        """Return the store, after a look whether somebody else changed it."""
        store = self.store
        store.refresh()
        return store

    def writable_store(self) -> ChunkStore:
        """Return the store for a change.

        Raises
        ------
        ReadOnlyError
            The handle was opened with mode "r".
        ClosedError
            The handle was closed.

        """
        store = self.store_if_open
        if store is None:
            store = self.store
        if self.options.mode == "r":
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
        store = self.store_if_open
        if store is not None:
            most = self.options.compact_above
            if most is not None and store.writable:
                dead = store.dead_bytes
                if dead > most * (dead + store.cbytes):
                    store.compact()
            store.close()
            self.store_if_open = None
