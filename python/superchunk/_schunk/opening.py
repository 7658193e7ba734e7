"""What a path, a mode and an mmap mode mean: from `Storage` to a `Handle`.

===========  ===============================  =========================
mode         the path exists                  it does not
===========  ===============================  =========================
``"r"``      opened for reading               an error
``"a"``      opened for reading and writing   made
``"w"``      replaced, if it is a frame       made
===========  ===============================  =========================

A path becomes absolute here, so that a handle does not depend on the working directory. Whether
something may be replaced is said by `_store.path_target`.

Nothing is mapped into memory: every mmap mode reads with positioned reads, which
cannot fault when a file shrinks. ``"c"`` keeps its changes in memory. A new frame is
written aside and takes its name with its first commit, so the old one stays whole
until then.
"""

from __future__ import annotations

import errno
import operator
import os
import stat
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn, SupportsIndex, cast

from superchunk._schunk.handle import Handle
from superchunk._store.chunk_folder import is_folder
from superchunk._store.frame_names import find_name
from superchunk._store.frame_store import FrameStore
from superchunk._store.options import OpenOptions
from superchunk._store.path_target import ReplaceRule, explained, missing, remove_frame
from superchunk.exceptions import ArgumentError, FormatError, ReadOnlyError, StorageError
from superchunk.params import MMAP_MODES, Storage, absolute_path, as_flag, local_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Unpack

    from superchunk._store.options import Deserialize, OpenKeywords
    from superchunk._store.store_interface import ChunkStore, FrameSettings

__all__ = [
    "LOCKING_VARIABLE",
    "check_deserialize",
    "check_storage",
    "create_handle",
    "environment_locking",
    "exists",
    "is_array",
    "mode_of",
    "open_handle",
    "open_options",
    "options_of",
    "pack_layers",
    "publishing",
    "remove_urlpath",
    "reset_handle",
]

LOCKING_VARIABLE: Final = "BLOSC_LOCKING"
_ARRAY_LAYERS: Final = frozenset(("b2nd", "caterva"))


def check_deserialize(deserialize: object) -> Deserialize:
    """Return "safe" or "full".

    Raises
    ------
    TypeError
        It is not a str.
    ValueError
        It is another one.

    """
    if not isinstance(deserialize, str):
        msg = f"deserialize: expected 'safe' or 'full', got {deserialize!r}"
        raise TypeError(msg)
    if deserialize == "safe":
        return "safe"
    if deserialize == "full":
        return "full"
    msg = f"deserialize: expected 'safe' or 'full', got {deserialize!r}"
    raise ValueError(msg)


def check_storage(storage: Storage) -> Storage:
    """Return `storage` after checking that its fields go together.

    Raises
    ------
    ValueError
        They do not.

    """
    path = storage.urlpath
    mode = MMAP_MODES[storage.mmap_mode] if storage.mmap_mode else storage.mode
    if storage.mmap_mode is not None:
        _check_mmap(storage)
    elif storage.initial_mapping_size is not None:
        msg = "initial_mapping_size: expected with mmap_mode only"
        raise ValueError(msg)
    if storage.locking and path is None:
        msg = "locking: expected with a urlpath only"
        raise ValueError(msg)
    if mode == "r" and path is None:
        msg = "mode 'r': cannot open for reading, because you did not specify a urlpath"
        raise ValueError(msg)
    return storage


def pack_layers(storage: Storage) -> dict[str, bytes]:
    """Return the fixed metalayers that `storage` asks for, as a header takes them.

    Raises
    ------
    MetalayerValueError
        There are over 16, or a name is too long.
    TypeError
        A value cannot be packed.

    """
    if not storage.meta:
        return {}
    from superchunk.meta import pack_meta  # brings msgpack, which containers without do not need

    return pack_meta(storage.meta)


def environment_locking() -> bool:
    """Return whether the environment variable asks for lock files: set, not empty, not "0"."""
    return os.environ.get(LOCKING_VARIABLE, "") not in {"", "0"}


def mode_of(place: Storage) -> str:
    """Return the mode in force: an mmap mode overrules it."""
    return place.mode if place.mmap_mode is None else MMAP_MODES[place.mmap_mode]


def _check_mmap(storage: Storage) -> None:
    if storage.urlpath is None:
        which = "for reading, " if storage.mmap_mode == "r" else ""
        msg = f"mmap_mode {storage.mmap_mode!r}: cannot open {which}because you did not specify a urlpath"
        raise ValueError(msg)
    if not storage.contiguous:
        msg = "mmap_mode: expected with a contiguous frame only"
        raise ValueError(msg)
    if storage.locking:
        msg = "mmap_mode: not together with locking"
        raise ValueError(msg)
    if storage.initial_mapping_size is not None and storage.mmap_mode == "r":
        msg = "initial_mapping_size: not with mmap_mode 'r'"
        raise ValueError(msg)


def exists(path: str) -> bool:
    """Return whether there is anything at `path`, also if a writer was killed while replacing it.

    A symbolic link that leads to nothing is nothing.
    """
    place = find_name(path)
    return place is not None and os.path.exists(place)


def is_array(store: ChunkStore) -> bool:
    """Return whether the frame holds an n-dimensional array."""
    meta = store.meta
    return bool(meta) and not _ARRAY_LAYERS.isdisjoint(meta)


def open_options(urlpath: object, mode: str, **how: Unpack[OpenKeywords]) -> OpenOptions:
    """Return how a frame is opened, after checking that everything goes together.

    Raises
    ------
    TypeError, ValueError
        An option is not one of those that there are, or does not go together with another.

    """
    wanted = check_deserialize(how.get("deserialize", "safe"))
    snapshot, recover = as_flag("snapshot", how.get("snapshot", False)), as_flag("recover", how.get("recover", False))
    verify = how.get("verify")
    if verify not in (None, "read"):
        msg = f"verify: expected None or 'read', got {verify!r}"
        raise ValueError(msg)
    storage = check_storage(
        Storage(
            urlpath=cast("str", urlpath),
            mode=mode,
            mmap_mode=how.get("mmap_mode"),
            initial_mapping_size=how.get("initial_mapping_size"),
            locking=how.get("locking", False),
            sync=how.get("sync", "explicit"),
            seal=how.get("seal", True),
            compact_above=how.get("compact_above"),
        )
    )
    options = options_of(storage, wanted, is_pinned=snapshot or recover)
    if options.mode != "r" and (snapshot or recover):
        msg = f"mode {storage.mode!r}: snapshot and recover are for reading, with mode 'r'"
        raise ArgumentError(msg)
    offset = _checked_offset(how.get("offset", 0))
    return replace(options, offset=offset, snapshot=snapshot or options.snapshot, recover=recover, verify=verify)


def options_of(storage: Storage, deserialize: Deserialize, *, is_pinned: bool = False) -> OpenOptions:
    """Return how a container at a checked `storage` is opened or made; who `is_pinned` takes part in no lock turns."""
    return OpenOptions(
        mode=mode_of(storage),
        mmap_mode=storage.mmap_mode,
        initial_mapping_size=storage.initial_mapping_size,
        locking=storage.locking or (storage.urlpath is not None and not is_pinned and environment_locking()),
        sync=storage.sync,
        seal=storage.seal,
        snapshot=storage.mmap_mode == "c",  # what is kept in memory goes with the state that was found
        compact_above=storage.compact_above,
        deserialize=deserialize,
    )


def open_handle(urlpath: str | os.PathLike[str] | None, options: OpenOptions) -> Handle:
    """Return a handle on a frame that exists, open as `options` say.

    Raises
    ------
    FileNotFoundError
        There is nothing at that path.
    FormatError
        What is there is no frame, or a damaged one.
    ArgumentError
        It is a sparse frame, to be mapped or at an offset.
    ReadOnlyError
        It is the frame of an old writer, to be changed.
    StorageError
        It cannot be read, or not be opened for writing.

    """
    given = local_path(urlpath)
    if given is None:
        msg = "urlpath: expected a path, got None"
        raise TypeError(msg)
    path = absolute_path(given)
    mmap_mode, offset = options.mmap_mode, options.offset
    if (mmap_mode is not None or offset) and _is_folder(path):
        _refuse_folder(path, mmap_mode, offset)
    writable = options.mode != "r" and mmap_mode != "c"
    store: ChunkStore
    try:
        store = FrameStore.open_at(path, options, writable=writable)
    except (FileNotFoundError, FormatError) as error:
        store = _open_otherwise(path, offset, error, writable=writable)
    contiguous = not (isinstance(store, FrameStore) and store.sparse)
    if mmap_mode == "c":
        from superchunk._store.memory_store import MemoryStore  # few handles keep changes in memory

        store = MemoryStore.over(store)
    return Handle(store, options, urlpath=given, path=path, contiguous=contiguous)


def _checked_offset(offset: object) -> int:
    """Return where a frame starts in its file."""
    if not isinstance(offset, SupportsIndex):
        msg = f"offset: expected a number of bytes, got {offset!r}"
        raise TypeError(msg)
    number = operator.index(offset)
    if number < 0:
        msg = f"offset: expected 0 or more bytes, got {offset}"
        raise ArgumentError(msg)
    return number


def _refuse_folder(path: str, mmap_mode: str | None, offset: int) -> NoReturn:
    if mmap_mode is not None:
        msg = f"mmap_mode {mmap_mode!r}: {path} is a directory, a sparse frame, which cannot be mapped; use mode"
        raise ArgumentError(msg)
    msg = f"offset: expected 0 for {path}, a directory, got {offset}"
    raise ArgumentError(msg)


def _is_folder(path: str) -> bool:
    """Return whether the frame of the name `path` is a directory.

    Raises
    ------
    FileNotFoundError
        There is none.

    """
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return is_folder(_place(path))


def _place(path: str) -> str:
    """Return where the frame of the name `path` is.

    Raises
    ------
    FileNotFoundError
        There is none.

    """
    place = find_name(path)
    if place is not None and not os.path.lexists(place):
        place = find_name(path)  # it has got its name back, or lost it for good
    if place is None or not os.path.exists(place):
        raise missing(path)
    return place


def _open_otherwise(path: str, offset: int, error: FileNotFoundError | FormatError, *, writable: bool) -> ChunkStore:
    """Open the frame of an old writer where there is none of today, as `error` says; say what is there instead."""
    if isinstance(error, FormatError):
        try:
            return _open_old(path, offset, error, writable=writable)
        except FormatError as other:
            raise explained(other, path)  # noqa: B904 - the same one
    if isinstance(error, StorageError):
        raise error
    _place(path)  # says so better
    raise missing(path) from error


def _open_old(path: str, offset: int, error: FormatError, *, writable: bool) -> ChunkStore:
    """Open the frame of an old writer, or raise `error` where there is none."""
    from superchunk._store.legacy_frame import open_legacy  # few files are that old

    legacy = open_legacy(path, offset=offset) if os.path.isfile(path) else None
    if legacy is None:
        raise error
    if writable:
        legacy.close()
        msg = (
            f"{path}: the frame of an old writer (Blosc2 before 2.0), which is read and never changed; "
            "convert it with `superchunk convert OLD NEW`"
        )
        raise ReadOnlyError(msg)
    return legacy


def create_handle(
    storage: Storage,
    settings: FrameSettings,
    chunksize: int,
    meta: Mapping[str, bytes],
    *,
    publish: bool,
    deserialize: Deserialize = "safe",
) -> Handle:
    """Return a handle on a new container; without `publish` its file has no name yet.

    Raises
    ------
    ArgumentError
        There is something at the path that is not a frame.
    StorageError
        There is a frame at the path and the mode is not "w", or the file cannot be made.

    """
    given = local_path(storage.urlpath)
    path = None if given is None else absolute_path(given)
    options = options_of(storage, deserialize)
    store: ChunkStore
    if path is None:
        from superchunk._store.memory_store import MemoryStore  # files need none

        store = MemoryStore(settings, chunksize, meta)
    else:
        store = FrameStore.create(
            path,
            settings,
            chunksize,
            meta,
            publish=publish,
            contiguous=bool(storage.contiguous),
            options=options,
            rule=ReplaceRule(path=path, frames=options.mode == "w"),
        )
    return Handle(store, options, urlpath=given, path=path, contiguous=bool(storage.contiguous))


@contextmanager
def publishing(handle: Handle) -> Iterator[None]:
    """Give a new file its name once its first content is in it; on an error, of that too, drop it."""
    store = handle.store
    try:
        yield
        if isinstance(store, FrameStore):
            store.publish()
    except BaseException:
        handle.store_if_open = None
        if isinstance(store, FrameStore):
            store.discard()
        raise


def reset_handle(handle: Handle) -> None:
    """Empty a container, which keeps its chunk size, parameters and fixed metalayers.

    Raises
    ------
    ArgumentError
        The frame does not begin at byte 0 of its file.

    """
    offset = handle.options.offset
    if offset:
        msg = f"mode 'w': cannot empty a frame inside a larger file, at offset {offset}"
        raise ArgumentError(msg)
    store = handle.store
    path = handle.path
    if path is None:
        return
    settings, chunksize, meta = store.settings, store.snapshot().chunksize, dict(store.meta)
    store.close()
    handle.store_if_open = FrameStore.create(
        path, settings, chunksize, meta, contiguous=handle.contiguous, options=handle.options
    )


def remove_urlpath(path: str | os.PathLike[str] | None) -> None:
    """Remove a frame file, or the directory of a sparse frame, with its lock file.

    None, and a path where there is nothing, do nothing. A symbolic link is not removed.

    Parameters
    ----------
    path
        What to remove.

    Raises
    ------
    ArgumentError
        It is not a frame, or a directory that holds anything besides; nothing was
        removed.
    StorageError
        The system refused.

    """
    given = local_path(path)
    if given is not None:
        remove_frame(absolute_path(given))


def existing_data_error(path: str) -> StorageError:
    """Return the error for data that would have to go into a container that has some."""
    why = (
        "exists and holds data, so the data given is neither appended nor written over it; "
        "use mode='w' to replace it, or open() and append_data() or s[a:b] = data to add"
    )
    return StorageError(errno.EEXIST, why, path)
