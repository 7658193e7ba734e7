"""Opening frames: by path, or from bytes in memory.

Which files and modes there are is `opening`'s knowledge. What is opened is a `SChunk`, or
an `NDArray` where the frame has the metalayer of an array; what it holds is theirs.

Source: docs/format/cframe.md.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from superchunk._codec.buffers import byte_view
from superchunk._format.metalayers import PLACEHOLDERS
from superchunk._schunk.handle import Handle
from superchunk._schunk.opening import (
    LOCKING_VARIABLE,
    check_deserialize,
    is_array,
    open_handle,
    open_options,
    reset_handle,
)
from superchunk._store.contiguous_frame import about
from superchunk._store.options import OpenOptions
from superchunk.exceptions import SuperchunkError
from superchunk.params import as_dparams
from superchunk.schunk import SChunk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from superchunk._array.ndarray import NDArray
    from superchunk._codec.buffers import AnyBuffer
    from superchunk._store.options import Deserialize
    from superchunk.params import CParams, CParamsDict, DParams, DParamsDict, SyncLevel

__all__ = ["from_cframe", "load", "ndarray_from_cframe", "open", "schunk_from_cframe"]

_USUAL: Final = (False, False, True, None, "r", None, None, "explicit", None, None, "safe")
"""A path, and the defaults of what is asked for, the environment included; with them nothing needs a check."""
_FOR_READING: Final = OpenOptions(mode="r")
"""What they mean."""

_OF_OTHERS: Final[dict[str, tuple[object, ...]]] = {
    "dataset": (None,),
    "hdf5_index": (None,),
    "lazy": (None, False, True),
    "path": (None,),
    "shared_cache": (False,),
    "storage_options": (None,),
}
"""How python-blosc2 opens what is remote or no frame: keywords, and their values that say nothing of a local frame."""


def open(
    urlpath: str | os.PathLike[str],
    mode: str | None = "r",
    offset: int = 0,
    *,
    mmap_mode: str | None = None,
    initial_mapping_size: int | None = None,
    locking: bool = False,
    sync: SyncLevel = "explicit",
    seal: bool = True,
    snapshot: bool = False,
    recover: bool = False,
    verify: str | None = None,
    compact_above: float | None = None,
    cparams: CParams | CParamsDict | None = None,
    dparams: DParams | DParamsDict | None = None,
    deserialize: Deserialize = "safe",
    **kwargs: object,
) -> Any:
    """Open a frame.

    Parameters
    ----------
    urlpath
        The file, or the directory of a sparse frame.
    mode
        ``"r"`` for reading, ``"a"`` for reading and writing. ``"w"`` as well, and it
        empties a SChunk, which keeps its chunk size, parameters and fixed
        metalayers; an array is left as it is.
    offset
        Where the frame starts in the file, in bytes.
    mmap_mode
        ``"r"``, ``"r+"`` or ``"c"``; overrules `mode`, see `SChunk`.
    initial_mapping_size
        Taken for compatibility, with ``"r+"`` and ``"c"``.
    locking
        Take part in C-Blosc2's lock protocol (a ``.b2lock`` file beside the frame), so
        that several processes, of either library, may take turns in writing. Without it
        one process at a time may write.
    sync
        When to wait for the disk: ``"explicit"``, for `SChunk.flush` and
        `SChunk.transaction`; ``"commit"``, for each commit; ``"never"``.
    seal
        Write checksums with what is written: chunk seals, fingerprint, commit records.
    snapshot
        Stay at the state that is found, until `SChunk.refresh`, whatever others commit.
    recover
        If the frame is damaged, read the newest intact commit in the file instead.
    verify
        ``"read"``: compare each chunk that is read whole with its seal.
    compact_above
        Compact when closing, if more than this share of the bytes on the disk is dead.
    cparams, dparams
        How this handle compresses and decompresses; typesize and block size stay
        those of the file.
    deserialize
        ``"safe"``: extension values of metadata that hold a whole container are not
        read; ``"full"``: they are.
    **kwargs
        What python-blosc2 knows for remote and other containers, if it asks for nothing: `dataset`,
        `hdf5_index`, `path` and `storage_options` of None, `shared_cache` of False, any `lazy`.

    Returns
    -------
    SChunk or NDArray
        An NDArray where the frame has the metalayer of an array, whatever the file is called.

    Raises
    ------
    FileNotFoundError
        There is nothing at that path.
    FormatError
        What is there is no frame, or a damaged one; a RuntimeError. DamagedFrameError
        if an intact commit is in the file, for `recover`.
    LockedError
        For writing, and another process is writing it.
    ReadOnlyError
        It is the frame of an old writer, which is read and never changed.
    UnsupportedError
        It is older than those that can be read.
    ValueError
        An argument that is not allowed, or not known.
    StorageError
        It cannot be read, or not be opened for writing.

    """
    if kwargs:
        _check_others(kwargs)
    if mmap_mode == "w+":
        msg = "mmap_mode 'w+': makes a new file, open() only opens; use SChunk()"
        raise ValueError(msg)
    mode = "r" if mode is None else mode
    flags = (urlpath is None, locking, seal, os.environ.get(LOCKING_VARIABLE))
    asked = (*flags, mode, mmap_mode, initial_mapping_size, sync, compact_above, verify, deserialize)
    flagged = snapshot is not False or recover is not False or type(offset) is not int or offset
    if asked == _USUAL and not flagged:
        options = _FOR_READING
    else:
        options = open_options(
            urlpath,
            mode,
            offset=offset,
            mmap_mode=mmap_mode,
            initial_mapping_size=initial_mapping_size,
            deserialize=deserialize,
            locking=locking,
            sync=sync,
            seal=seal,
            snapshot=snapshot,
            recover=recover,
            verify=verify,
            compact_above=compact_above,
        )
    decompress = as_dparams(dparams)
    handle = open_handle(urlpath, options)
    try:
        if handle.options.mode == "w" and not is_array(handle.store):
            reset_handle(handle)
        schunk = SChunk._of_handle(handle, cparams, decompress)
        return _fitting(schunk) if handle.store.meta else schunk
    except SuperchunkError as error:  # the layer of an array knows of no file
        handle.close()
        raise about(error, os.fspath(urlpath)) from None
    except BaseException:
        handle.close()
        raise


def _check_others(keywords: Mapping[str, object]) -> None:
    """Refuse keywords that ask for what is remote or no frame."""
    for name, value in keywords.items():
        if name not in _OF_OTHERS:
            msg = f"{name} is not supported as keyword argument"
            raise ValueError(msg)
        if not any(value is nothing for nothing in _OF_OTHERS[name]):
            msg = f"{name}={value!r} is not supported as keyword argument: only frames on local paths are opened"
            raise ValueError(msg)


def load(urlpath: str | os.PathLike[str], offset: int = 0, **kwargs: Any) -> Any:
    """Open a frame and return a copy of it in memory.

    Parameters
    ----------
    urlpath
        The file.
    offset
        Where the frame starts in it, in bytes.
    **kwargs
        Those of `open`, except that nothing is written.

    Raises
    ------
    FileNotFoundError, FormatError, ValueError, StorageError
        As `open`.

    """
    if kwargs.get("mode") == "w":
        msg = "mode 'w': load() does not write"
        raise ValueError(msg)
    with open(urlpath, offset=offset, **kwargs) as opened:
        return opened.copy(contiguous=True)


def schunk_from_cframe(cframe: AnyBuffer, copy: bool = False, deserialize: Deserialize = "safe") -> SChunk:
    """Return a SChunk on a contiguous frame in memory.

    Parameters
    ----------
    cframe
        The frame. Without copying the SChunk works on these bytes and keeps them
        alive; they must not change. Its own changes stay with it.
    copy
        Work on a copy.
    deserialize
        As for `open`.

    Raises
    ------
    FormatError
        The bytes are no frame, or a damaged one; a RuntimeError and a ValueError.
    TypeError, ValueError
        `deserialize` is not "safe" or "full".

    """
    from superchunk._store.frame_bytes import read_cframe  # files do not come here
    from superchunk._store.legacy_frame import read_legacy

    wanted = check_deserialize(deserialize)
    view = byte_view(cframe, "cframe")
    content = bytes(view) if copy else view
    legacy = read_legacy(content)
    store = read_cframe(content) if legacy is None else legacy
    return SChunk._of_handle(Handle(store, OpenOptions(deserialize=wanted), contiguous=True))


def ndarray_from_cframe(cframe: AnyBuffer, copy: bool = False, deserialize: Deserialize = "safe") -> NDArray:
    """Return an NDArray on a contiguous frame in memory; see `schunk_from_cframe`.

    Raises
    ------
    ArgumentError
        There is no array in it; a RuntimeError and a ValueError.
    FormatError, TypeError, ValueError
        As `schunk_from_cframe`.

    """
    from superchunk._array.ndarray import NDArray  # needs NumPy, which frames do not

    return NDArray(schunk_from_cframe(cframe, copy, deserialize))


def from_cframe(cframe: AnyBuffer, copy: bool = True, deserialize: Deserialize = "safe") -> Any:
    """Return what a contiguous frame in memory holds, a SChunk or an NDArray; see `schunk_from_cframe`.

    Raises
    ------
    FormatError, TypeError, ValueError
        As `schunk_from_cframe`.

    """
    return _fitting(schunk_from_cframe(cframe, copy, deserialize))


def _fitting(schunk: SChunk) -> SChunk | NDArray:
    """Return the array that a SChunk holds, or the SChunk."""
    handle = schunk._handle
    meta = handle.store.meta
    if not meta:
        return schunk
    if not is_array(handle.store):
        if not PLACEHOLDERS.isdisjoint(meta):
            from superchunk._integrity.placeholders import check_holds_data  # few frames are placeholders

            check_holds_data(handle)
        return schunk
    from superchunk._array.ndarray import NDArray  # needs NumPy, which frames do not

    return NDArray(schunk)
