"""Numbers for new chunk files: upwards, and small ones again before they grow too large.

C-Blosc2 opens a sparse frame only if every id is at most ``cbytes - 32``, where `cbytes` are
the bytes of the stored chunks. Ids below the number of stored chunks always are, since
none has fewer than 33 bytes. Does not look into directories.

Source: docs/format/sparse.md, "Ids".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superchunk._store.chunk_folder import MAX_ID
from superchunk.exceptions import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

__all__ = ["ChunkIds"]


class ChunkIds:
    """Which id the next chunk file gets.

    Parameters
    ----------
    following
        The first id above all that are known.

    """

    __slots__ = ("_gaps", "_patience", "following", "reserved")

    def __init__(self, following: int = 0) -> None:
        self.following = following
        """No id in use is this large or larger."""
        self.reserved: set[int] = set()
        """Ids that were handed out for files that others write."""
        self._gaps: Iterator[int] | None = None
        self._patience = 0

    def take(self, most: int, taken: Callable[[], Container[int]]) -> int:
        """Return an id for a new file.

        Parameters
        ----------
        most
            What it should not exceed.
        taken
            Called for the ids that are in use, when it would.

        Raises
        ------
        StorageError
            No id is left that a file name can have.

        """
        if self.following > most:
            gap = self._gap(most, taken)
            if gap is not None:
                return gap
        if self.following > MAX_ID:
            raise StorageError(f"chunk id: expected at most {MAX_ID}, and all small ones are in use")
        self.following += 1
        return self.following - 1

    def _gap(self, most: int, taken: Callable[[], Container[int]]) -> int | None:
        """Return a free id up to `most` among those that were used once, if there is one."""
        gap = self._next_gap(most)
        if gap is None and self._patience > 0:  # there was none a moment ago, and to look is not cheap
            self._patience -= 1
        elif gap is None:
            used = taken()
            self._gaps = (ident for ident in range(self.following) if ident not in used)
            gap = self._next_gap(most)
            self._patience = 0 if gap is not None else most // 64
        return gap

    def _next_gap(self, most: int) -> int | None:
        for ident in self._gaps or ():
            if ident > most:
                break
            if ident not in self.reserved:
                return ident
        self._gaps = None
        return None

    def look_again(self) -> None:
        """Note that ids may have become free."""
        self._patience = 0

    def reserve(self, count: int) -> range:
        """Set `count` ids aside, none of them in use.

        Raises
        ------
        StorageError
            There are not so many left that a file name can have.

        """
        if self.following + count > MAX_ID + 1:
            raise StorageError(f"chunk ids: expected at most {MAX_ID}, got {count} more after {self.following}")
        idents = range(self.following, self.following + count)
        self.following = idents.stop
        self.reserved.update(idents)
        return idents
