"""An array handle as a whole: its lock, and how it is pickled and copied.

As for a SChunk, see `superchunk._life` and `superchunk._pickling`; only views are something else.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from superchunk._pickling import reduced
from superchunk.arrays.base import ArrayBase

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SharedArray"]


class SharedArray(ArrayBase):
    """An array that others may open as well."""

    __slots__ = ()

    @contextmanager
    def holding_lock(self) -> Iterator[Self]:
        """Hold the lock that other processes wait for over several operations.

        As `SChunk.holding_lock`; blocks of both may stand in each other.

        Raises
        ------
        StorageError
            The lock file cannot be made, locked or written.

        """
        with self.schunk.holding_lock():
            self._now(self._handle.opened())
            yield self

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as the path, to be opened there again for reading; a view as what it was made from.

        Raises
        ------
        TypeError
            It is in memory, or has changes that another process would miss.

        """
        if self._base is not None:
            return _viewed, (self._base, self._axes)
        schunk = self.schunk
        return reduced(self._handle, schunk.dparams, filtered=schunk._postfilter is not None, array=True)

    def __dask_tokenize__(self) -> tuple[object, ...]:
        """Return what Dask names results by, as `SChunk.__dask_tokenize__`; of a view with the axes that it shows.

        Raises
        ------
        ClosedError, StorageError
            It is closed, or its file cannot be read.

        """
        return ("superchunk.NDArray", self._axes, self._base is not None, *self.schunk.__dask_tokenize__())

    def __copy__(self) -> Any:  # noqa: ANN401  (an NDArray)
        """Return a copy in memory, as `copy` does: no change of one is seen by the other."""
        return self.copy()  # type: ignore[attr-defined]  # NDArray is the only subclass made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:  # noqa: ANN401  (an NDArray)
        """Return the same as ``copy.copy``: a shallow copy shares nothing already."""
        return self.__copy__()


def _viewed(base: ArrayBase, axes: tuple[int | None, ...]) -> ArrayBase:
    """Return a view of an array that was opened again."""
    return base._view_of(base, axes)
