"""The directory of a sparse frame: which names there are in it.

::

    NAME/chunks.b2frame                 the index file
    NAME/XXXXXXXX.chunk                 a chunk, by its id in upper-case hexadecimal digits
    NAME/.b2lock                        C-Blosc2's lock file
    NAME/.settled.b2frame               the newest index file known to be on the disk, while it is not the present one
    NAME/.pinned-XXXXXXXXXXXX.b2frame   an index file that a snapshot references
    NAME/.chunks.b2frame.XXXXXXXXXXXX.new, NAME/.XXXXXXXX.chunk.XXXXXXXXXXXX.new    being written

A path is never built from anything but such a name. Nothing else in the directory is ever
touched, and no symbolic link followed. Knows nothing about what is in the files.

Source: docs/format/sparse.md, "Files".
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from superchunk._format.frame_index import ENTRY_LEN
from superchunk._store.os_file import remove_file, remove_folder, storage_error
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from superchunk._engine import Source
    from superchunk._store.os_file import FileBytes

__all__ = [
    "INDEX_NAME",
    "LAST_SYNCED_NAME",
    "MAX_ID",
    "Listing",
    "aside_in",
    "belongs",
    "chunk_id",
    "chunk_name",
    "is_folder",
    "joined",
    "list_folder",
    "open_folder",
    "pin_name",
    "place_in",
    "remove_frame_folder",
    "staging_name",
]

INDEX_NAME: Final = "chunks.b2frame"
LAST_SYNCED_NAME: Final = ".settled.b2frame"
MAX_ID: Final = 2**32 - 1
"""The largest id that a file name can have."""

_CHUNK_LIMIT = 2**31 + 64
"""Bytes that are read in a chunk file: the largest chunk and its seal."""

_LOCK_NAME = ".b2lock"
_HEX = 16
# Patterns are compiled when they are first used: opening a file needs none.
_CHUNK = r"[0-9A-F]{8}\.chunk"
_PINNED = r"\.pinned-[0-9a-f]{12}\.b2frame"
_UNFINISHED = r"\.(?:chunks\.b2frame|[0-9A-F]{8}\.chunk)\.[0-9a-f]{12}\.new"
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def joined(folder: str, name: str) -> str:
    """Return the path of `name` in `folder`."""
    return os.path.join(folder, name)


def chunk_name(ident: int) -> str:
    """Return the name of the file of chunk id `ident`, 0 to 2**32 - 1."""
    return f"{ident:08X}.chunk"


def chunk_id(path: str) -> int:
    """Return the id of the chunk file `path`."""
    return int(path[-len("00000000.chunk") : -len(".chunk")], _HEX)


def staging_name(ident: int) -> str:
    """Return a name for that file while it is being written."""
    return f".{chunk_name(ident)}.{os.urandom(6).hex()}.new"


def pin_name() -> str:
    """Return a name for an index file that a snapshot references."""
    return f".pinned-{os.urandom(6).hex()}.b2frame"


def aside_in(folder: str) -> str:
    """Return the path of a new index file while it is being written."""
    return joined(folder, f".{INDEX_NAME}.{os.urandom(6).hex()}.new")


def belongs(name: str) -> bool:
    """Return whether a file of that name belongs to a sparse frame."""
    return (
        name in (INDEX_NAME, LAST_SYNCED_NAME, _LOCK_NAME)
        or re.fullmatch(_CHUNK, name.upper().replace(".CHUNK", ".chunk")) is not None
        or re.fullmatch(_PINNED, name) is not None
        or re.fullmatch(_UNFINISHED, name) is not None
    )


def is_folder(path: str) -> bool:
    """Return whether there is a directory at `path`."""
    return os.path.isdir(path)


def open_folder(path: str) -> int:
    """Return a descriptor of the directory `path`.

    Raises
    ------
    FileNotFoundError
        There is none.
    StorageError
        The system refuses.

    """
    try:
        return os.open(path, _FOLDER_FLAGS)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, path) from error


def place_in(folder: FileBytes, entry: int, nchunk: int) -> Source:
    """Return a chunk's file in an open directory, though another one may have its name by now."""
    if entry > MAX_ID:
        raise FormatError(f"index entry {nchunk}", at=ENTRY_LEN * nchunk, expected=f"at most {MAX_ID}", found=entry)
    return ((folder.read_fd, f"{folder.path}/{chunk_name(entry)}"), 0, _CHUNK_LIMIT)


class Listing:
    """The regular files in a sparse frame's directory that belong to it."""

    __slots__ = ("chunks", "last_synced", "pinned", "unfinished")

    def __init__(self) -> None:
        """Begin without any."""
        self.chunks: dict[int, int] = {}
        """Each chunk file's id and size, bytes; without sizes -1."""
        self.pinned: list[str] = []
        """Names of index files that snapshots reference, or referenced."""
        self.unfinished: list[str] = []
        """Names of files that were being written."""
        self.last_synced = False
        """Whether a last synced index file is there."""


def list_folder(folder: str, *, sizes: bool = False, display_path: str | None = None) -> Listing:
    """Return the regular files in `folder` that belong to a sparse frame.

    Raises
    ------
    StorageError
        The system refuses; it is about `display_path`, or `folder`.

    """
    found = Listing()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if not belongs(name) or not entry.is_file(follow_symlinks=False):
                    continue
                if re.fullmatch(_CHUNK, name):
                    size = entry.stat(follow_symlinks=False).st_size if sizes else -1
                    found.chunks[int(name[:8], _HEX)] = size
                elif re.fullmatch(_PINNED, name):
                    found.pinned.append(name)
                elif re.fullmatch(_UNFINISHED, name):
                    found.unfinished.append(name)
                elif name == LAST_SYNCED_NAME:
                    found.last_synced = True
    except OSError as error:
        raise storage_error(error, display_path or folder) from error
    return found


def remove_frame_folder(folder: str) -> None:
    """Remove a sparse frame's directory, the index file first; what is foreign in it, and so itself, stays.

    Raises
    ------
    StorageError
        The system refuses, or something foreign is in it.

    """
    remove_file(joined(folder, INDEX_NAME))
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise storage_error(error, folder) from error
    for name in sorted(names):
        if belongs(name):
            remove_file(joined(folder, name))
    remove_folder(folder)
