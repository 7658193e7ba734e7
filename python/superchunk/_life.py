"""A SChunk's life: opened, shared with others, checked, pickled, closed.

What a handle does as a whole, whatever its chunks hold. Which bytes go where is the
business of its store.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from superchunk._managed import Managed
from superchunk._pickling import reduced
from superchunk._staged import StagedCalls
from superchunk.storage.frames import FrameStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from superchunk._integrity.report import VerifyReport

__all__ = ["LifeCalls"]


class LifeCalls(StagedCalls, Managed):
    """What can be done with a handle as a whole."""

    __slots__ = ()

    def close(self) -> None:
        """Write what is pending and close the file. Further use raises ClosedError.

        Raises
        ------
        StorageError
            Writing failed, on a full disk for instance. The SChunk stays open and keeps what
            is pending: make room and close it again, or `copy` it to another place.

        """
        self._handle.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as the path, to be opened there again for reading.

        Raises
        ------
        TypeError
            It is in memory, or has changes or functions that another process would miss.

        """
        return reduced(self._handle, self._dparams, filtered=self._postfilter is not None)

    def __dask_tokenize__(self) -> tuple[object, ...]:
        """Return what Dask names results by: another one after each change, the same in every process otherwise.

        For a file its path, its times and the hash of its metadata; in memory the hash of all chunks. What waits
        is committed first. With a postfilter it is another one each time.

        Raises
        ------
        ClosedError, StorageError
            It is closed, or its file cannot be read.

        """
        from superchunk._tokens import token_of  # noqa: PLC0415  (few programs use Dask)

        unlike_any = () if self._postfilter is None else (os.urandom(16).hex(),)
        return ("superchunk.SChunk", *token_of(self._handle), *unlike_any)

    def flush(self) -> None:
        """Commit all changes, down to the disk.

        Raises
        ------
        StorageError
            Writing failed, or waiting for the disk did; the changes stay, and the next call
            writes and waits again.

        """
        self._handle.opened().flush()

    def refresh(self) -> bool:
        """Follow changes that others made, a snapshot too; return whether there were any.

        Every access follows changes by itself, a snapshot's excepted. This compares all of header, index and trailer,
        and so sees also what was written through a shared mapping without moving the file's times.
        """
        return self._handle.opened().advance()

    @contextmanager
    def holding_lock(self) -> Iterator[Self]:
        """Hold the lock that other processes wait for over several operations.

        For handles opened with ``locking=True`` (or ``BLOSC_LOCKING``): inside the block nobody
        else reads or writes with locking, and what others did before is seen. Blocks may stand
        in each other, those of an array and of its SChunk as well. Without locking it does
        nothing.

        Raises
        ------
        StorageError
            The lock file cannot be made, locked or written.

        Examples
        --------
        >>> from superchunk import SChunk
        >>> s = SChunk(chunksize=4)
        >>> with s.holding_lock():
        ...     n = s.append_data(b"abcd")

        """
        with self._handle.opened().holding():
            yield self

    def transaction(self) -> AbstractContextManager[object]:
        """Make all changes inside one commit, which is on the disk when the block ends.

        An exception drops them all, in the file and in this object. Other threads that
        want to write wait until the end. Who reads through this object sees the changes before that; other
        handles, of this process and of others, see them afterwards.

        Raises
        ------
        ReadOnlyError
            The handle may only read.
        StorageError
            A transaction is under way already, or the commit failed. Then nothing
            has changed, unless it was the last wait for the disk that failed: then the
            new state is in force (docs/durability.md).

        Examples
        --------
        >>> from superchunk import SChunk
        >>> s = SChunk(chunksize=4)
        >>> with s.transaction():
        ...     n = s.append_data(b"abcd")
        ...     s.vlmeta["day"] = 1
        >>> len(s), s.vlmeta["day"]
        (4, 1)

        """
        return self._handle.writing().transaction()

    def compact(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Give the dead bytes of the file back to the disk.

        A new file is written beside the old one and takes its name, so nothing can be lost on
        the way, and handles that read, here or in other processes, go on undisturbed.

        Parameters
        ----------
        progress
            Called with the bytes of chunks done and those in all.

        Raises
        ------
        ReadOnlyError
            The handle may only read.
        StorageError
            Within a transaction, for a frame inside a larger file, or if the system
            refuses; the file is as it was.

        """
        self._handle.writing().compact(progress)

    def verify(
        self,
        *,
        decode: bool = False,
        nthreads: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> VerifyReport:
        """Check every part of what is on the disk; see `superchunk.verify`.

        What waits for its commit is committed first. In memory, and with mmap mode "c", the chunks are looked at
        as this handle has them: those that a frame sealed are compared with their seals.

        Raises
        ------
        StorageError
            The file cannot be read, or not be written.

        """
        from superchunk._integrity.verify import verify, verify_held  # noqa: PLC0415  (seldom asked for, and much to load)

        store = self._handle.fresh()
        if not isinstance(store, FrameStore) or store.path is None:
            return verify_held(
                store, self._handle.urlpath or "<bytes>", decode=decode, nthreads=nthreads, progress=progress
            )
        if store.writable:
            store.publish()
        return verify(store.path, offset=store.start, decode=decode, nthreads=nthreads, progress=progress)

    def to_cframe(self) -> bytes:
        """Return all of it, metalayers included, as one contiguous frame.

        Raises
        ------
        MetalayerValueError
            There are over 16 vlmetalayers, more than a frame can hold.
        FormatError
            A chunk is damaged, or not what was sealed.

        """
        from superchunk.storage.cframe import write_cframe  # noqa: PLC0415  (few handles come here)

        store = self._handle.fresh()
        with store.steady():
            return write_cframe(store)
