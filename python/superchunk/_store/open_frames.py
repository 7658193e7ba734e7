"""The frames that this process has open, so that its handles on one frame share it.

A frame is known by device, inode and position, however many names lead to it. Its state
is loaded once; each handle has a `Use` of it, and the last one to leave closes it. A use is an
object and no count, so that one whose making was interrupted is gone when nobody holds it any more. At
exit and before a fork, changes that still wait are committed; if that fails at exit, a
warning tells what is lost.

A fork waits a little for threads that are in the middle of a change, so that the child gets it whole. A child starts
with fresh locks; a frame that a thread was still busy with is loaded anew there.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet, ref

from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from superchunk._store.frame_commit import CommittedFrame

__all__ = ["Key", "Use", "enter", "find", "forked", "join", "move", "rejoin", "shares", "state_of"]

Key = tuple[int, int, int]
"""Device, inode, position of the frame in the file."""

_frames: dict[Key, CommittedFrame] = {}
_lock = threading.RLock()

_PATIENCE = 0.1
"""Seconds that a fork waits for threads that have locks."""


class _Forked(Protocol):
    """What a child of a fork has to start anew: the state of a frame, or a store in memory."""

    @property
    def lock(self) -> threading.RLock:
        """What changes hold."""
        ...

    def after_fork(self, *, torn: bool) -> None:
        """Start anew in a child process; `torn`: a thread that is not there was in the middle of something."""


forked: WeakSet[_Forked] = WeakSet()
"""What starts anew in children of this process."""


class _Holding(threading.local):
    """What a thread that forks holds meanwhile, and what it could not get."""

    def __init__(self) -> None:
        """Begin without anything."""
        self.all: list[tuple[_Forked, threading.RLock | None]] = []


_holding = _Holding()


class Use:
    """The use that one handle makes of the state of a frame; one that is dropped has left."""

    __slots__ = ("__weakref__", "state", "writable")

    def __init__(self, state: CommittedFrame) -> None:
        """Begin to use `state`."""
        self.state = state
        self.writable = False
        """Whether it may change it."""
        state.uses.append(ref(self, partial(_dropped, state)))

    def leave(self) -> None:
        """Let go of the state, as those did that are gone; leaving twice is fine."""
        state = self.state
        with _lock:
            for each in state.uses[:]:
                if each() in (self, None):
                    state.uses.remove(each)
            last = not state.uses
            if last and state.key is not None and _frames.get(state.key) is state:
                del _frames[state.key]
        if last:
            state.close()
        elif state.writing and not state.writers:
            state.disable_writing()


def _dropped(state: CommittedFrame, _: ref[Use]) -> None:
    """See to a use that nobody holds any more, and that has not left."""
    Use(state).leave()


def state_of(key: Key) -> CommittedFrame | None:
    """Return the open frame of `key`, or None."""
    return _frames.get(key)


def shares(state: CommittedFrame) -> bool:
    """Return whether `state` is known here, and not that of a snapshot."""
    return state.key is not None and _frames.get(state.key) is state


def find(key: Key) -> Use | None:
    """Return a use of the open frame of `key`, or None."""
    with _lock:
        state = _frames.get(key)
        return None if state is None else Use(state)


def enter(key: Key, state: CommittedFrame) -> Use:
    """Return a use of the open frame of `key`: of `state` if it is the first."""
    with _lock:
        state.key = key
        use = Use(state)
        held = _frames.setdefault(key, state)
        return use if held is state else Use(held)


def join(state: CommittedFrame) -> Use:
    """Return a use of a state that is open."""
    return Use(state)


def rejoin(state: CommittedFrame) -> Use | None:
    """Return a use of a state that is known here, None if it has been closed."""
    with _lock:
        return Use(state) if shares(state) else None


def move(state: CommittedFrame, key: Key) -> None:
    """Know `state`, if it is known, by another key: its frame is in another file now."""
    with _lock:
        if not shares(state):
            return
        _frames[key] = state  # first, so that it is known at every moment
        state.key = key
        for old in [other for other, held in _frames.items() if held is state and other != key]:
            del _frames[old]


def _commit_waiting() -> None:
    for state in list(_frames.values()):
        try:
            state.commit_if_idle()
        except SuperchunkError:
            # Whoever uses the frame gets the same error from its own flush.
            continue


def _commit_last() -> None:
    for state in list(_frames.values()):
        try:
            state.commit_if_idle()
        except SuperchunkError as error:
            state.give_up(error)


def _before_fork() -> None:
    """Commit what waits, and take all locks, so that no thread is in the middle of a change."""
    _commit_waiting()
    until = time.monotonic() + _PATIENCE
    for one in list(forked):
        lock = one.lock  # kept, for a store that is closed meanwhile has another
        held = lock.acquire(timeout=max(until - time.monotonic(), 0))
        _holding.all.append((one, lock if held else None))


def _after_fork_in_parent() -> None:
    while _holding.all:
        _, lock = _holding.all.pop()
        if lock is not None:
            lock.release()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - the old one may be held by a thread that is not here
    _lock = threading.RLock()
    while _holding.all:
        one, lock = _holding.all.pop()
        with suppress(Exception):  # of one that is closed, or whose file is gone: others have to start anew, too
            one.after_fork(torn=lock is None)


atexit.register(_commit_last)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
