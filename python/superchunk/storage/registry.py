"""The frames that this process has open, so that its handles on one frame share it.

A frame is known by device, inode and position, however many names lead to it. Its state
is loaded once; each handle counts as a user, and the last one to leave closes it. At
exit and before a fork, changes that still wait are committed, and a child process starts
with fresh locks.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING

from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk.storage.state import FrameState

__all__ = ["Key", "enter", "find", "leave"]

Key = tuple[int, int, int]
"""Device, inode, position of the frame in the file."""

_frames: dict[Key, FrameState] = {}
_lock = threading.RLock()


def find(key: Key) -> FrameState | None:
    """Return the open frame of `key` with one more user, or None."""
    with _lock:
        state = _frames.get(key)
        if state is not None:
            state.users += 1
        return state


def enter(key: Key, state: FrameState) -> FrameState:
    """Return the open frame of `key` with one more user: `state` if it is the first."""
    with _lock:
        held = _frames.setdefault(key, state)
        held.users += 1
        return held


def leave(key: Key, state: FrameState) -> bool:
    """Count one user less; return whether it was the last."""
    with _lock:
        state.users -= 1
        if state.users > 0:
            return False
        if _frames.get(key) is state:
            del _frames[key]
        return True


def _each(do: Callable[[FrameState], None]) -> None:
    for state in list(_frames.values()):
        try:
            do(state)
        except SuperchunkError:
            # Whoever uses the frame gets the same error from its own flush.
            continue


def _commit_waiting() -> None:
    _each(lambda state: state.commit_if_idle())


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - the old one may be held by a thread that is not here
    _lock = threading.RLock()
    _each(lambda state: state.after_fork())


atexit.register(_commit_waiting)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_commit_waiting, after_in_child=_after_fork)
