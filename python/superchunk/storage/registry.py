"""The frames that this process has open, so that its handles on one frame share it.

A frame is known by device, inode and position, however many names lead to it. Its state
is loaded once; each handle counts as a user, and the last one to leave closes it. At
exit and before a fork, changes that still wait are committed; if that fails at exit, a
warning tells what is lost. A child process starts with fresh locks.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING

from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk.storage.committed import CommittedFrame

__all__ = ["Key", "enter", "find", "join", "leave", "move", "rejoin", "shares", "state_of"]

Key = tuple[int, int, int]
"""Device, inode, position of the frame in the file."""

_frames: dict[Key, CommittedFrame] = {}
_keys: dict[int, Key] = {}
_lock = threading.RLock()


def state_of(key: Key) -> CommittedFrame | None:
    """Return the open frame of `key`, or None."""
    return _frames.get(key)


def shares(state: CommittedFrame) -> bool:
    """Return whether `state` is known here, and not that of a snapshot."""
    return id(state) in _keys


def find(key: Key) -> CommittedFrame | None:
    """Return the open frame of `key` with one more user, or None."""
    with _lock:
        state = _frames.get(key)
        if state is not None:
            state.users += 1
        return state


def enter(key: Key, state: CommittedFrame) -> CommittedFrame:
    """Return the open frame of `key` with one more user: `state` if it is the first."""
    with _lock:
        held = _frames.setdefault(key, state)
        held.users += 1
        if held is state:
            _keys[id(state)] = key
        return held


def join(state: CommittedFrame) -> None:
    """Count one more user of a state that is open."""
    with _lock:
        state.users += 1


def rejoin(state: CommittedFrame) -> bool:
    """Count one more user of a state that is known here; return False if it has been closed."""
    with _lock:
        if id(state) not in _keys:
            return False
        state.users += 1
        return True


def move(state: CommittedFrame, key: Key) -> None:
    """Know `state`, if it is known, by another key: its frame is in another file now."""
    with _lock:
        old = _keys.get(id(state))
        if old is None:
            return
        if _frames.get(old) is state:
            del _frames[old]
        _keys[id(state)] = key
        _frames[key] = state


def leave(state: CommittedFrame) -> bool:
    """Count one user less; return whether it was the last."""
    with _lock:
        state.users -= 1
        if state.users > 0:
            return False
        key = _keys.pop(id(state), None)
        if key is not None and _frames.get(key) is state:
            del _frames[key]
        return True


def _each(do: Callable[[CommittedFrame], None]) -> None:
    for state in list(_frames.values()):
        try:
            do(state)
        except SuperchunkError:
            # Whoever uses the frame gets the same error from its own flush.
            continue


def _commit_waiting() -> None:
    _each(lambda state: state.commit_if_idle())


def _commit_last() -> None:
    for state in list(_frames.values()):
        try:
            state.commit_if_idle()
        except SuperchunkError as error:
            state.give_up(error)


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - the old one may be held by a thread that is not here
    _lock = threading.RLock()
    _each(lambda state: state.after_fork())


atexit.register(_commit_last)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_commit_waiting, after_in_child=_after_fork)
