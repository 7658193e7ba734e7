"""Before a fork: let other threads finish importing modules of this package.

An import holds a lock for each module that it is at. A child of a fork has one thread, the one that forked. A lock of
another thread stays held there for ever, and the first call that needs the same module would not return. Names of
this package are imported when they are first used, so that this can happen in any program with threads.
"""

from __future__ import annotations

import sys
import time
from _thread import get_ident
from typing import Final

__all__ = ["finish_imports"]

_OURS: Final = ("superchunk", "numpy")
"""Packages whose modules are waited for: our own, and the one that they import."""
_PAUSE: Final = 0.001
_MOST_PAUSES: Final = 10_000
"""An import that takes longer is not waited for: it may be waiting for the thread that forks."""


def finish_imports() -> None:
    """Wait until no other thread is in the middle of importing a module of ours."""
    for _ in range(_MOST_PAUSES):
        if not _is_importing():
            return
        time.sleep(_PAUSE)


def _is_importing() -> bool:
    """Return whether another thread holds the import lock of a module of ours."""
    me = get_ident()
    # The import system has no public word for that. It drops a lock when the import is done.
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    for name, reference in list(locks.items()):
        if name.partition(".")[0] in _OURS:
            lock = reference()
            if lock is not None and getattr(lock, "owner", None) not in (None, me):
                return True
    return False
