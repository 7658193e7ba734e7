"""Frames beside another one that are not it: what killed writers left, and what snapshots needed.

::

    .<name of the frame>.<12 hex digits>.new     a whole or partial frame that was to get the name
    .<name of the frame>.<12 hex digits>.old     a frame that had the name
    .<name of the frame>.<12 hex digits>.kept    the same, a directory that snapshots go by, or went by

A writer locks its new frame as long as it lives; so what is not locked, and not from a moment ago, can go. What
had the name can go while something else has it. Knows nothing about what is in a frame.

Source: docs/format/cframe.md, "Commits".
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from typing import Final

from superchunk.exceptions import SuperchunkError
from superchunk.storage.file import FileBytes, remove_file
from superchunk.storage.folder import give_up, is_folder, open_folder, remove_frame_folder
from superchunk.storage.locks import WriterLock

__all__ = ["aside_of", "remove_strays"]

_MIN_AGE: Final = 60.0
"""Seconds; a writer that has just made its file may not have locked it yet."""
_MAX_BASE: Final = 200
_STRAY: Final = r"[0-9a-f]{12}\.(?:new|old|kept)"


def aside_of(path: str) -> str:
    """Return a name in the directory of `path` for a file that will replace it."""
    folder, base = os.path.split(path)
    return os.path.join(folder, f".{base[:_MAX_BASE]}.{os.urandom(6).hex()}.new")  # noqa: PTH118 - a str all the way


def remove_strays(path: str) -> None:
    """Remove what killed writers of the frame `path`, which is there, left; what cannot be removed stays."""
    folder, base = os.path.split(path)
    prefix = f".{base[:_MAX_BASE]}."
    try:
        names = [name for name in os.listdir(folder or os.curdir) if name.startswith(prefix)]  # noqa: PTH208 - a str
    except OSError:
        return
    for name in names:
        if not re.fullmatch(_STRAY, name[len(prefix) :]):
            continue
        with suppress(OSError, SuperchunkError):
            _remove_if_stray(os.path.join(folder, name))  # noqa: PTH118 - a str all the way


def _remove_if_stray(path: str) -> None:
    if not path.endswith(".new"):
        give_up(path)
        return
    file = FileBytes(path, open_folder(path)) if is_folder(path) else FileBytes.open(path, follow=False)
    lock = WriterLock()
    try:
        if time.time() - file.size_and_time()[1] > _MIN_AGE:
            lock.acquire(file.read_fd, path)
            remove_frame_folder(path) if is_folder(path) else remove_file(path)
    finally:
        lock.release()
        file.close()
