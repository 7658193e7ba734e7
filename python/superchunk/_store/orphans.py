"""Frames beside another one that are not it: what killed writers left, and what snapshots needed.

::

    .<name of the frame>.<12 hex digits>.new     a whole or partial frame that was to get the name
    .<name of the frame>.<12 hex digits>.old     a frame that had the name
    .<name of the frame>.<12 hex digits>.kept    the same, a directory that snapshots reference, or referenced
    .<name of the frame>.b2taking                the mark that the name was being taken

A writer locks its new frame as long as it lives; so what is not locked, and not from a moment ago, can go. What
had the name can go while something else has it. Knows nothing about what is in a frame.

Source: docs/format/cframe.md, "Commits"; docs/format/sparse.md, "Replacing a frame".
"""

from __future__ import annotations

import os
import re
import time
from typing import Final

from superchunk._store.chunk_folder import is_folder, joined, open_folder, remove_frame_folder
from superchunk._store.frame_names import Mark, give_up, prefix_beside
from superchunk._store.locks import WriterLock
from superchunk._store.os_file import FileBytes, remove_file
from superchunk.exceptions import StorageError, SuperchunkError

__all__ = ["remove_orphans"]

_MIN_AGE: Final = 60.0
"""Seconds; a writer that has just made its file may not have locked it yet."""
_ORPHAN: Final = r"[0-9a-f]{12}\.(?:new|old|kept)"


def remove_orphans(path: str) -> None:
    """Remove what killed writers of the frame `path`, which is there, left; what cannot be removed stays."""
    try:
        mark = Mark.left(path)
    except StorageError:
        return  # somebody takes the name just now
    if mark is None:
        _remove_all(path)
        return
    try:
        if os.path.lexists(path):
            mark.sync()  # before that, what had the name might be all that a loss of power leaves
            if _remove_all(path):
                mark.remove()
    except StorageError:
        return
    finally:
        mark.close()


def _remove_all(path: str) -> bool:
    """Remove what can be removed; return whether nothing is left that had the name."""
    folder, prefix = os.path.dirname(path), prefix_beside(path)
    try:
        names = [name for name in os.listdir(folder or os.curdir) if name.startswith(prefix)]
    except OSError:
        return False
    gone = True
    for name in names:
        if not re.fullmatch(_ORPHAN, name[len(prefix) :]):
            continue
        try:
            gone = _remove_if_orphaned(joined(folder, name)) and gone
        except (OSError, SuperchunkError):
            gone = gone and name.endswith(".new")
    return gone


def _remove_if_orphaned(path: str) -> bool:
    """Remove it if it can go; return whether it is gone, or never had the name."""
    if not path.endswith(".new"):
        return give_up(path)
    file = FileBytes(path, open_folder(path)) if is_folder(path) else FileBytes.open(path, follow=False)
    lock = WriterLock()
    try:
        if time.time() - file.size_and_time()[1] > _MIN_AGE:
            lock.acquire(file.read_fd, path)
            remove_frame_folder(path) if is_folder(path) else remove_file(path)
    finally:
        lock.release()
        file.close()
    return True
