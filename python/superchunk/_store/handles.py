"""A handle on the state of a frame that handles of this process share: what it sees, and when it lets go.

::

    handle ── use ── state ── file or directory       several handles may use one state
    handle ── use ──┘   └── successor                 of the file that replaced ours, which the next access goes over to

A handle sees whole states. What waits for its commit is seen by the handles that have a part in it; when another
handle looks, it is committed. While a change is under way, the thread that makes it sees it; other threads that have
the same handle see what was before, and other handles the committed state.

It follows other handles and other processes, keeps a state steady for those who read it, and has lock turns with
those who write. What a frame holds is the business of the state; how one is found or made, of `frames`.

Source: docs/format/cframe.md, "Commits" and "Concurrency".
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from superchunk import _engine
from superchunk._store import registry
from superchunk._store.changes import Change
from superchunk._store.view import TableView
from superchunk.exceptions import ClosedError, ReadOnlyError, StorageError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Buffer

    from superchunk._engine import Box
    from superchunk._store.changes import PastTable
    from superchunk._store.committed import CommittedFrame
    from superchunk._store.options import OpenOptions
    from superchunk._store.protocol import ChunkList
    from superchunk._store.registry import Use
    from superchunk._store.sidecar import LockSidecar

__all__ = ["StateHandle"]

P = ParamSpec("P")
T = TypeVar("T")

_MANY_LOOKS = 1000
# Before a call is made again, whose frame was changed meanwhile, seconds.
_PAUSES = (0.0, 0.0, 0.001, 0.004)


class _HandleChange(Change):
    """A change made through a handle, which comes to terms first with what others did."""

    __slots__ = ("_seen", "handle")

    handle: StateHandle

    def begin(self) -> CommittedFrame | None:
        """Begin, as the process that may write."""
        handle, state = self.handle, cast("CommittedFrame", self.table)
        if state.changes or state.switch is not None:
            state.heal()
        if not state.writing:  # after a fork, or with another file in place of ours
            state.enable_writing(takes_lock_turns=handle._sidecar is not None)  # noqa: SLF001
        state.sync_level, state.sealing = handle._writes_with  # noqa: SLF001
        state.follow()
        self._seen = state.version
        begun: CommittedFrame | None = super().begin()
        return begun

    def end(self, kind: type[BaseException] | None) -> None:
        """End; what was changed here is nothing new for the handle."""
        handle, state = self.handle, self.table
        try:
            super().end(kind)
        finally:
            if handle._seen == self._seen:  # noqa: SLF001 - of this file
                handle._seen = state.version  # noqa: SLF001


class StateHandle(TableView):
    """One use of a frame's state.

    A handle that is dropped is closed; if the commit fails then, nobody is left to try again,
    and a RuntimeWarning tells what is lost.
    """

    def __init__(
        self,
        use: Use,
        path: str,
        *,
        writable: bool,
        options: OpenOptions,
        pinned: bool = False,
        sidecar: LockSidecar | None = None,
    ) -> None:
        """Take over a use of a state."""
        self._token = object()
        self.path: str | None = path
        self.writable = writable
        self.is_snapshot = pinned
        self.change_tick = 0
        self._writes_with = (options.sync, options.seal)
        self.sparse = use.state.sparse
        """Whether the frame is a directory, and not one file."""
        self._sidecar = sidecar
        self._seen = use.state.version
        self.is_mutable = not pinned or sidecar is not None
        if writable:
            use.writable = True
        self._use: Use | None = use
        self._state: CommittedFrame | None = use.state  # last: from here on there is something to close

    def __del__(self) -> None:
        """Close a handle that was dropped; a frame that nobody has given its name to is no more."""
        state = getattr(self, "_state", None)
        if state is None:
            return
        if state.unpublished is not None and state.writers == 1:
            self.discard()
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
    def _frame(self) -> CommittedFrame:
        """The state, in whose file chunks are put."""
        state = self._state
        if state is None:
            raise ClosedError(f"{self.path}: the handle is closed")
        return state if state.successor is None else self._go_on(state)

    @property
    def _open(self) -> CommittedFrame | PastTable:
        """The list of chunks that this handle sees now."""
        state = self._state
        if state is None or state.successor is not None:
            state = self._frame
        return self._whole(state) if state.changes or state.authors else state

    def _whole(self, state: CommittedFrame) -> CommittedFrame | PastTable:
        """Return what this handle sees of a state that is being changed, or has changes that wait."""
        looks = 0
        while True:
            changes = state.changes[:]
            if changes and changes[-1].left:
                with state.lock:
                    state.heal()
                continue
            if self._token in state.authors or any(change.owner is self._token for change in changes):
                table = self._own(state, changes)
            elif changes or not self._commit_of_others(state):
                table = state.committed()
            else:
                table = state
            if table is not None:
                return table
            time.sleep(0)  # it is being committed, or over, in a moment
            looks += 1
            if looks > _MANY_LOOKS and not changes:  # an interrupt came while another process's commit was loaded
                state.refresh(force=True)

    def _own(self, state: CommittedFrame, changes: list[Change]) -> CommittedFrame | PastTable | None:
        """Return what this handle sees, which has a part in what waits or is under way; None: look again."""
        if not changes or changes[0].thread == get_ident():
            return state
        hiding = state.whole_before(changes) if changes[0].owner is self._token else changes[0]
        if hiding is None or hiding.mark.epoch != state.epoch:  # it hides nothing, or is done
            return state
        return state.past_of(hiding)

    def _commit_of_others(self, state: CommittedFrame) -> bool:
        """Commit what other handles have made; return whether that was possible now."""
        try:
            state.commit_if_idle()
        except StorageError:
            if not state.waiting:  # what waited is lost, and somebody must be told
                raise
        return not state.authors  # else whoever made it gets the error

    def _go_on(self, old: CommittedFrame) -> CommittedFrame:
        """Use the state that this process has of the file that replaced ours."""
        while (new := old.successor) is not None:
            while new.successor is not None:
                new = new.successor
            use = registry.rejoin(new)
            if use is not None:
                break
            old.successor = None  # its last user has closed it: find out what has the name now
            old.refresh(force=True)
        else:
            return old
        use.writable = self.writable
        before, self._use = self._use, use
        self._state = new
        self.sparse = new.sparse
        self._seen = -1
        if before is not None:
            before.leave()
        return new

    @property
    def _lock_turns(self) -> LockSidecar | None:
        """The lock file; None without one, and where nobody can come in between.

        That is while the directory that it belongs in has no name yet, as nobody knows of that frame, and inside a
        change of this thread, perhaps by another handle, which has the turn.
        """
        if self._sidecar is None:
            return None
        state = self._frame
        if (state.sparse and state.unpublished is not None) or any(
            change.thread == get_ident() for change in state.changes
        ):
            return None
        return self._sidecar

    @contextmanager
    def _reading(self, lock_turns: LockSidecar, *, whole: bool = False) -> Iterator[None]:
        """Have the turn to read, after others' changes were seen."""
        looked = lock_turns.looked
        with lock_turns.shared() as changed:
            # Of what happened before the first look there is nothing to forget, if the frame says the same.
            self._frame.refresh(force=changed and looked, whole=changed or whole)
            yield

    def _changing(self, *, transaction: bool = False) -> _engine.Section[CommittedFrame]:
        """Return the block of a change through this handle."""
        if not self.writable:
            raise ReadOnlyError(f"{self.path}: cannot change it in reading mode")
        lock_turns = None if self._sidecar is None else self._lock_turns
        change = _HandleChange(self._frame, self._token, transaction=transaction, at_once=lock_turns is not None)
        change.handle = self
        return _engine.Section(change, None if lock_turns is None else self._turn(lock_turns))

    @contextmanager
    def _turn(self, lock_turns: LockSidecar) -> Iterator[None]:
        """Have the turn to write, after others' changes were seen."""
        with lock_turns.exclusive() as changed:
            if changed:
                self._frame.refresh(force=True)
            yield

    def _committing(self) -> _engine.Section[CommittedFrame]:
        """Return the block of a commit of what waits, which changes nothing."""
        return _engine.Section(Change(self._frame, self._token, idle=True))

    def refresh(self) -> bool:
        """Follow changes made elsewhere, unless pinned; return whether there were any.

        Raises
        ------
        StorageError
            Another process changed the frame while changes made here waited.
        FormatError
            The frame is damaged now.

        """
        before = self.change_tick
        self._refreshed()
        return self.change_tick != before

    def _refreshed(self) -> CommittedFrame | PastTable:
        """Follow changes made elsewhere, unless pinned; return the list of chunks that this handle sees then."""
        if self.is_snapshot:
            return self._open
        state = self._state
        if (
            self._sidecar is None
            and state is not None
            and state.successor is None
            and state.version == self._seen
            and not state.changes
        ):
            # The usual case, since every access asks, without the calls in between.
            if not state.refresh() and state.version == self._seen:
                return self._whole(state) if state.changes or state.authors else state
            return self._noticed()
        _ = self._open  # what an interrupt has left is dealt with first
        frame = self._frame
        lock_turns = self._lock_turns
        if lock_turns is None:
            frame.refresh()
        elif lock_turns.has_news() or frame.is_changed():
            with self._reading(lock_turns):
                pass
        return self._noticed()

    def read_small(
        self,
        start: int,
        stop: int,
        itemsize: int,
        out: Buffer | None = None,
        box: Box | None = None,
        layer: tuple[str, bytes] | None = None,
    ) -> bytes | None:
        """Return bytes ``start:stop``, or ``b""`` and put them into `out`, if one call can do it; else None.

        See `ChunkSource.read_small`. As there is no turn to take and no chunk of several, the answer is of one state
        if that is still the same afterwards.
        """
        state = self._state
        if state is None or state.sparse or state.replacing or state.changes or state.successor is not None:
            return None
        version = state.version
        if version != self._seen or self.is_snapshot or self._sidecar is not None:
            return None
        if layer is not None and state.meta.get(layer[0]) != layer[1]:
            return None
        answer = state.read_small(start, stop, itemsize, out, box)
        if self._state is not state or state.changes or state.changed_since(version):
            return None
        return answer

    def advance(self) -> bool:
        """Follow changes made elsewhere, pinned or not; return whether there were any.

        Unlike `refresh`, compare all that the frame says about itself, whatever the file's times are.

        Raises
        ------
        StorageError, FormatError
            As for `refresh`.

        """
        before = self.change_tick
        _ = self._open  # what an interrupt has left is dealt with first
        state = self._frame
        lock_turns = self._lock_turns
        if lock_turns is None:
            state.refresh(whole=True)
        else:
            with self._reading(lock_turns, whole=True):
                pass
        self._noticed()
        return self.change_tick != before

    def _noticed(self) -> CommittedFrame | PastTable:
        """Return the list of chunks that this handle sees, and count a change if it was another one before."""
        table = self._open
        version = table.version
        if version != self._seen:
            self._seen = version
            self.change_tick += 1
        return table

    def read_consistent(self, read: Callable[Concatenate[ChunkList, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `read` returns, given the newest list of chunks, of one state even where chunks may go meanwhile.

        It is called again if the frame was changed meanwhile; if that keeps happening, with the
        state held as it is.
        """
        if not self.is_mutable:
            return read(self._open, *args, **kwargs)
        lock_turns = None if self._sidecar is None else self._lock_turns
        if lock_turns is not None:  # writers wait for readers, and then change chunks where they are
            with self._reading(lock_turns):
                return read(self._noticed(), *args, **kwargs)
        for pause in _PAUSES:
            seen = self.change_tick
            table = self._refreshed()
            if self.change_tick != seen:
                continue  # another commit may have come while this one was loaded
            version = table.version
            try:
                answer = read(table, *args, **kwargs)
            except SuperchunkError:
                if self._open is table and not table.changed_since(version):
                    raise
            else:
                if self._open is table and not table.changed_since(version):
                    return answer
            time.sleep(pause)
        with self.pinned():
            return read(self._open, *args, **kwargs)

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep the state as it is, and its chunks where they are, while the block reads."""
        if not self.is_mutable:
            yield
            return
        lock_turns = self._lock_turns
        if lock_turns is not None:
            with self._reading(lock_turns):
                yield
            return
        self.refresh()
        with self._frame.pinned():
            yield

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Keep others who take lock turns from the frame while the block runs; see their changes first.

        Raises
        ------
        StorageError
            The lock file cannot be made, locked or written.

        """
        lock_turns = self._lock_turns
        if lock_turns is None:
            yield
            return
        with lock_turns.exclusive() as changed:
            self._frame.refresh(force=changed)
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
        if self._state is not None and self.writable:
            with self._committing() as state:
                inside = len(state.changes) > 1
                if inside and state.writers == 1:
                    raise StorageError(f"{self.path}: cannot close it in the middle of a change or a transaction")
                if not inside:
                    state.commit()
        self._let_go()

    def publish(self) -> None:
        """Commit what waits; a frame made with ``publish=False`` has its name then.

        Raises
        ------
        StorageError
            Writing failed.

        """
        with self._committing() as state:
            if len(state.changes) == 1:
                state.commit()

    def discard(self) -> None:
        """Close a frame made with ``publish=False`` as if it had never been; one that has its name stays."""
        state = self._frame
        try:
            if state.unpublished is not None:
                state.discard()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        use = self._use
        self._state = None
        if self._sidecar is not None:
            self._sidecar.close()
        if use is not None:
            use.leave()
        self._use = None
