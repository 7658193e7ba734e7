"""A handle on the state of a frame that handles of this process share: what it has seen, and when it lets go.

::

    handle ── state ── file or directory       several handles may use one state
    handle ─┘   └── successor                  of the file that replaced ours, which the next access goes over to

It follows other handles and other processes, keeps a state steady for those who read it, and has turns with
those who write. What a frame holds is the business of the state; how one is found or made, of `frames`.

Source: docs/format/cframe.md, "Commits" and "Concurrency".
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from superchunk.exceptions import ClosedError, ReadOnlyError, StorageError, SuperchunkError
from superchunk.storage import registry
from superchunk.storage.view import TableView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from typing_extensions import Buffer

    from superchunk._engine import Box
    from superchunk.params import SyncLevel
    from superchunk.storage.committed import CommittedFrame
    from superchunk.storage.sidecar import LockSidecar

__all__ = ["StateHandle"]

P = ParamSpec("P")
T = TypeVar("T")

# Before a call is made again, whose frame was changed meanwhile, seconds.
_PAUSES = (0.0, 0.0, 0.001, 0.004)


class StateHandle(TableView):
    """One use of a frame's state.

    A handle that is dropped is closed; if the commit fails then, nobody is left to try again,
    and a RuntimeWarning tells what is lost.
    """

    def __init__(
        self,
        state: CommittedFrame,
        path: str,
        *,
        writable: bool,
        sync: SyncLevel = "explicit",
        seal: bool = True,
        pinned: bool = False,
        sidecar: LockSidecar | None = None,
    ) -> None:
        """Take over one use of `state`, counted by the registry."""
        self._state: CommittedFrame | None = state
        self.path: str | None = path
        self.writable = writable
        self.pinned = pinned
        self.change_tick = 0
        self._sync: SyncLevel = sync
        self._seal = seal
        self._sidecar = sidecar
        self._seen = state.version
        self.shifting = not pinned or sidecar is not None
        if writable:
            state.writers += 1

    def __del__(self) -> None:
        """Close a handle that was dropped."""
        state = getattr(self, "_state", None)
        if state is None:
            return
        try:
            self.close()
        except SuperchunkError as error:
            try:
                if state.writers == 1:
                    state.give_up(error)
            finally:
                self._let_go()

    @property
    def _open(self) -> CommittedFrame:
        state = self._state
        if state is None:
            raise ClosedError(f"{self.path}: the handle is closed")
        return state if state.successor is None else self._go_on(state)

    def _go_on(self, old: CommittedFrame) -> CommittedFrame:
        """Use the state that this process has of the file that replaced ours."""
        while (new := old.successor) is not None:
            while new.successor is not None:
                new = new.successor
            if registry.rejoin(new):
                break
            old.successor = None  # its last user has closed it: find out what has the name now
            old.refresh(force=True)
        else:
            return old
        self._state = new
        if self.writable:
            old.writers -= 1
            new.writers += 1
        self._seen = -1
        if registry.leave(old):
            old.close()
        return new

    @property
    def _turns(self) -> LockSidecar | None:
        """The lock file; None without one, and while the directory that it belongs in has no name yet.

        Nobody else knows of that frame.
        """
        if self._sidecar is None:
            return None
        state = self._open
        return None if state.sparse and state.unpublished is not None else self._sidecar

    def _changing(self) -> AbstractContextManager[CommittedFrame]:
        """Return what holds the frame for a change through this handle."""
        turns = self._turns
        return self._holding() if turns is None else self._taking(turns)

    @contextmanager
    def _taking(self, turns: LockSidecar) -> Iterator[CommittedFrame]:
        """Hold the frame, and the turn, for a change."""
        if not self.writable:
            raise ReadOnlyError(f"{self.path}: cannot change it in reading mode")
        with turns.exclusive() as changed:
            if changed:
                self._open.refresh(force=True)
            with self._holding() as state:
                yield state
                if not state.in_batch:  # whoever has the next turn must see it
                    state.commit()

    @contextmanager
    def _holding(self) -> Iterator[CommittedFrame]:
        """Keep other threads from the frame while it is changed."""
        state = self._open
        if not self.writable:
            raise ReadOnlyError(f"{self.path}: cannot change it in reading mode")
        with state.lock:
            if not state.writing:  # after a fork, or with another file in place of ours
                state.enable_writing(taking_turns=self._sidecar is not None)
            state.sync_level, state.sealing = self._sync, self._seal
            state.follow()
            before = state.version
            inside = state.changing = state.changing + 1
            try:
                yield state
            finally:
                if state.changing == inside:  # not so in a child process that was made meanwhile
                    state.changing -= 1
                if self._seen == before:
                    self._seen = state.version

    def refresh(self) -> bool:
        """Follow changes made elsewhere, unless pinned; return whether there were any.

        Raises
        ------
        StorageError
            Another process changed the frame while changes made here waited.
        FormatError
            The frame is damaged now.

        """
        if self.pinned:
            return False
        state = self._state
        if self._sidecar is None and state is not None and state.successor is None and state.version == self._seen:
            # The usual case, since every access asks, without the calls in between.
            if not state.refresh() and state.version == self._seen:
                return False
            return self._noticed()
        return self.advance()

    def read_small(
        self, start: int, stop: int, itemsize: int, out: Buffer | None = None, box: Box | None = None
    ) -> bytes | None:
        """Return bytes ``start:stop``, or ``b""`` and put them into `out`, if one call can do it; else None.

        That call also finds out that nobody has changed anything. As there is no turn to take and no chunk
        of several, the answer is of one state if that is still the same afterwards. With `box`, that box of the
        chunk that has ``start:stop`` is put into `out`.
        """
        state = self._state
        if state is None or state.sparse or state.moving or state.successor is not None:
            return None
        version = state.version
        if version != self._seen or self.pinned or self._sidecar is not None or stop > state.nbytes:
            return None
        try:
            request = state.lone(start, stop)
        except SuperchunkError:
            return None
        if request is None or type(request[0]) is not tuple:
            return None
        answer = state.read_unchanged(request, itemsize, out, box)
        if self._state is not state or state.shaken(version):
            return None
        return answer

    def advance(self) -> bool:
        """Follow changes made elsewhere, pinned or not; return whether there were any.

        Raises
        ------
        StorageError, FormatError
            As for `refresh`.

        """
        state = self._open
        turns = self._turns
        if turns is None:
            state.refresh()
        else:
            with turns.shared() as changed:
                state.refresh(force=changed)
        return self._noticed()

    def _noticed(self) -> bool:
        """Return whether the state is another than this handle has seen, which it has now."""
        state = self._open
        if state.version == self._seen:
            return False
        self._seen = state.version
        self.change_tick += 1
        return True

    def steadily(self, ask: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `ask` returns for these arguments, of one committed state even where chunks may go meanwhile.

        It is asked again if the frame was changed meanwhile; if that keeps happening, with the
        state held as it is.
        """
        if not self.shifting:
            return ask(*args, **kwargs)
        turns = self._turns
        if turns is not None:  # writers wait for readers, and then change chunks where they are
            with turns.shared() as changed:
                self._open.refresh(force=changed)
                return ask(*args, **kwargs)
        for pause in _PAUSES:
            state = self._state
            if state is None or state.successor is not None:
                state = self._open
            version = state.version
            try:
                answer = ask(*args, **kwargs)
            except SuperchunkError:
                if self._state is state and not state.shaken(version):
                    raise
            else:
                if self._state is state and not state.shaken(version):
                    return answer
            time.sleep(pause)
        with self.steady():
            return ask(*args, **kwargs)

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Keep the state as it is, and its chunks where they are, while the block reads."""
        if not self.shifting:
            yield
            return
        turns = self._turns
        if turns is not None:
            with turns.shared() as changed:
                self._open.refresh(force=changed)
                yield
            return
        self.refresh()
        with self._open.steady():
            yield

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Keep others who take turns from the frame while the block runs; see their changes first.

        Raises
        ------
        StorageError
            The lock file cannot be made, locked or written.

        """
        turns = self._turns
        if turns is None:
            yield
            return
        with turns.exclusive() as changed:
            self._open.refresh(force=changed)
            self._noticed()
            yield

    def close(self) -> None:
        """Commit what waits and let go; closing twice is fine.

        Raises
        ------
        StorageError
            A transaction is under way here, or the commit failed. The handle stays open and keeps
            what waits, so that one can make room and close it again, or copy it to another place.

        """
        if self._state is None:
            return
        if self.writable:
            state = self._open
            with state.lock:
                if state.busy and state.writers == 1:
                    raise StorageError(f"{self.path}: cannot close it in the middle of a change or a transaction")
                if not state.busy:
                    state.commit()
        self._let_go()

    def publish(self) -> None:
        """Commit what waits; a frame made with ``publish=False`` has its name then.

        Raises
        ------
        StorageError
            Writing failed.

        """
        state = self._open
        with state.lock:
            if not state.busy:
                state.commit()

    def discard(self) -> None:
        """Close a frame made with ``publish=False`` as if it had never been."""
        state = self._open
        state.discard()
        self._let_go()

    def _let_go(self) -> None:
        state, self._state = self._state, None
        if state is None:
            return
        if self._sidecar is not None:
            self._sidecar.close()
        if self.writable:
            state.writers -= 1
            if state.writers == 0:
                state.disable_writing()
        if registry.leave(state):
            state.close()
