"""Handles in pickles: the path and how to open it, never the data.

A container on the disk is opened again, for reading, by the process that unpickles it. A pool of processes can share
one file in this way. One in memory has no path and is refused, for its bytes belong into a frame (`to_cframe`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from superchunk._store.frame_store import FrameStore

if TYPE_CHECKING:
    from superchunk._schunk.handle import Handle
    from superchunk.params import DParams

__all__ = ["reduced", "reopened"]


def reduced(handle: Handle, dparams: DParams, *, filtered: bool = False, array: bool = False) -> tuple[Any, ...]:
    """Return what `__reduce__` is to return.

    What waits for its commit is committed, so that whoever opens the path sees it; a
    transaction is seen when it has ended.

    Parameters
    ----------
    handle
        What is to be opened again.
    dparams
        How it decompresses there as well.
    filtered
        It has a postfilter.
    array
        An array is to be returned, if it holds one, and not its SChunk.

    Raises
    ------
    TypeError
        There is no path; or the handle has a postfilter, or copy-on-write changes,
        which the path does not lead to.
    ClosedError
        The handle is closed.

    """
    store, options = handle.store, handle.options
    if handle.path is None:
        raise TypeError("a container in memory cannot be pickled; use to_cframe() and from_cframe()")
    if options.mmap_mode == "c":
        raise TypeError("mmap_mode 'c': its changes are in this process only, so it cannot be pickled")
    if filtered:
        raise TypeError("a SChunk with a postfilter cannot be pickled: another process would read other data")
    if isinstance(store, FrameStore) and store.writable:
        store.publish()
    how: dict[str, Any] = {
        "offset": options.offset,
        "mmap_mode": None if options.mmap_mode is None else "r",
        "locking": options.locking,
        "snapshot": options.snapshot,
        "recover": options.recover,
        "verify": options.verify,
        "deserialize": options.deserialize,
        "dparams": dparams,
    }
    return reopened, (handle.path, how, array)


def reopened(path: str, options: dict[str, Any], array: bool) -> Any:
    """Return what is at `path`, opened for reading.

    Raises
    ------
    FileNotFoundError, FormatError, StorageError
        As `superchunk.open`.

    """
    import superchunk  # the entry points are above this layer

    opened = superchunk.open(path, **options)
    return opened if array else getattr(opened, "schunk", opened)
