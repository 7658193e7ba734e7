"""Frames on the disk, as stores: found or made, read, changed, and let go.

::

    handle ── use ── state ── file or directory       several handles may use one state
    handle ── use ──┘   └── successor                 of the file that replaced ours, which the next access goes over to

A `FrameStore` is a handle on the one state that the handles of this process share. That state owns chunks, metalayers
and commits, in one file (`contiguous_frame`) or in a directory (`sparse_frame`).

A handle sees whole states. What waits for its commit is seen by the handles that have a part in it; when another handle
looks, it is committed. While a change is under way, the thread that makes it sees the change. Other threads with the
same handle see the state before it, and other handles the committed state.

It follows other handles and other processes, keeps a state steady for those who read it, and has lock turns with
those who write.

Source: docs/format/cframe.md, "Commits" and "Concurrency".
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import get_ident
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, Self, TypeVar, cast

from superchunk import _engine
from superchunk._format.metalayers import MAX_METALAYERS
from superchunk._store import open_frames as registry
from superchunk._store.changes_and_undo import Change
from superchunk._store.chunk_folder import is_folder
from superchunk._store.chunk_list_view import TableView
from superchunk._store.contiguous_frame import ContiguousState
from superchunk._store.frame_names import find_name
from superchunk._store.lock_file import LockSidecar
from superchunk._store.options import OpenOptions
from superchunk._store.path_target import ReplaceRule, check_target
from superchunk._store.store_interface import Snapshot
from superchunk.exceptions import ArgumentError, ClosedError, ReadOnlyError, StorageError, SuperchunkError
from superchunk.params import absolute_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Unpack

    from typing_extensions import Buffer

    from superchunk._engine import Box
    from superchunk._store.changes_and_undo import PastTable
    from superchunk._store.frame_commit import CommittedFrame
    from superchunk._store.open_frames import Use
    from superchunk._store.options import OpenKeywords
    from superchunk._store.sparse_frame import SparseState
    from superchunk._store.staged_files import StagedChunk
    from superchunk._store.store_interface import ChunkList, FrameSettings

__all__ = ["FrameStore"]

P = ParamSpec("P")
T = TypeVar("T")

_MAX_CHUNKSIZE = 2**31 - 1
_MOST_MOVES = 20
_USUAL: Final = OpenOptions()
_MANY_LOOKS = 1000
# Before a call is made again, whose frame was changed meanwhile, seconds.
_PAUSES = (0.0, 0.0, 0.001, 0.004)


class _HandleChange(Change):
    """A change made through a handle, which comes to terms first with what others did."""

    __slots__ = ("_seen", "handle")

    handle: FrameStore

    def begin(self) -> CommittedFrame | None:
        """Begin, as the process that may write."""
        handle, state = self.handle, cast("CommittedFrame", self.table)
        if state.changes or state.switch is not None:
            state.heal()
        if not state.writing:  # after a fork, or with another file in place of ours
            state.enable_writing(takes_lock_turns=handle._sidecar is not None)
        state.sync_level, state.sealing = handle._writes_with
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
            if handle._seen == self._seen:
                handle._seen = state.version


class FrameStore(TableView):
    """A `ChunkStore` in a frame; made by `create` and `open`.

    A handle that is dropped is closed; if the commit fails then, nobody is left to try again,
    and a RuntimeWarning tells what is lost.
    """

    # Opening.

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

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        settings: FrameSettings,
        chunksize: int,
        meta: Mapping[str, bytes],
        *,
        vlblocks: bool = False,
        publish: bool = True,
        contiguous: bool = True,
        rule: ReplaceRule | None = None,
        options: OpenOptions = _USUAL,
        **how: Unpack[OpenKeywords],
    ) -> Self:
        """Make an empty frame, in place of whatever frame was at `path`.

        It is written aside and then renamed, so that a failure leaves the old file.

        Parameters
        ----------
        path
            The file, or the directory of a sparse frame.
        settings
            What to record for new chunks.
        chunksize
            Bytes of a full chunk; 0: sizes vary; -1: as the first chunk's.
        meta
            The fixed metalayers; there can be no others later.
        vlblocks
            Chunks will have variable-length blocks.
        publish
            Rename at once. Otherwise the old file stays until the first commit:
            until enough chunks are written, a metalayer is changed, or `flush` or
            `close` is called; `discard` gives up instead.
        contiguous
            One file; otherwise a directory, with a file for each chunk.
        rule
            What may be replaced; None: any frame, and an empty file.
        options
            How it is open: `sync`, `seal` and `locking` count here.
        **how
            Fields of `options` that are to be others.

        Raises
        ------
        ValueError
            `chunksize` is out of range.
        ArgumentError
            What is at the path may not be replaced.
        MetalayerValueError
            More than 16 metalayers, or a name over 31 bytes.
        LockedError
            Another process is writing the frame that is there.
        StorageError
            The system refuses.

        """
        if not -1 <= chunksize <= _MAX_CHUNKSIZE:
            raise ValueError(f"chunksize: expected -1 to {_MAX_CHUNKSIZE}, got {chunksize}")
        name = absolute_path(os.fspath(path))
        chosen = replace(options, **how) if how else options
        locking = chosen.locking
        rule = rule or ReplaceRule(path=name, frames=True)
        check_target(name, rule)
        layout: type[ContiguousState | SparseState] = ContiguousState if contiguous else _sparse_state()
        use = layout.created(
            name, settings, chunksize, meta, vlblocks=vlblocks, sync=chosen.sync, seal=chosen.seal, rule=rule
        )
        sidecar = LockSidecar(name, sparse=not contiguous) if locking else None
        store = cls(use, name, writable=True, options=chosen, sidecar=sidecar)
        try:
            if locking:  # nobody knows of the frame yet, so that nobody can come in between
                use.state.disable_writing()
                use.state.enable_writing(takes_lock_turns=True)
            if publish:
                store.publish()
        except BaseException:
            store.discard()
            raise
        return store

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        writable: bool = False,
        options: OpenOptions = _USUAL,
        **how: Unpack[OpenKeywords],
    ) -> Self:
        """Open the frame in a file, or a directory.

        Parameters
        ----------
        path
            The file, or the directory of a sparse frame.
        writable
            It will be changed, by this process alone.
        options
            How it is open: `offset`, `sync`, `seal`, `locking`, `snapshot` and `recover` count here. A snapshot
            stays at the state that is found, until `advance`; it and what is recovered are for reading only.
        **how
            Fields of `options` that are to be others.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        FormatError
            There is no frame, or a damaged one.
        LockedError
            To be changed, while another process does.
        ReadOnlyError
            To be changed, although something follows it in the file.
        StorageError
            The system refuses.

        """
        return cls.open_at(
            absolute_path(os.fspath(path)), replace(options, **how) if how else options, writable=writable
        )

    @classmethod
    def open_at(cls, name: str, chosen: OpenOptions, *, writable: bool) -> Self:
        """Open the frame at the absolute path `name` as `chosen`; see `open`."""
        if chosen.offset < 0:
            raise ValueError(f"offset: expected at least 0, got {chosen.offset}")
        pinned = chosen.snapshot or chosen.recover
        if writable and pinned:
            raise ReadOnlyError(f"{name}: snapshot and recover are for reading")
        for left in range(_MOST_MOVES, -1, -1):
            store = None
            try:
                use = ContiguousState.opened(name, chosen.offset, private=pinned, recover=chosen.recover)  # as most are
                if use is None:
                    use = _use_elsewhere(name, chosen.offset, mend=writable, private=pinned, recover=chosen.recover)
                store = cls(use, name, writable=False, options=chosen, pinned=pinned)
                # One that was loaded just now has nothing to catch up with.
                if writable or chosen.locking or len(use.state.uses) > 1:
                    store._join(chosen, writable=writable)
            except BaseException as error:
                if store is not None:
                    store._let_go()
                # Another process, which takes lock turns with this one, may just have replaced the frame by a
                # compacted one.
                if not left or not isinstance(error, StorageError) or error.errno != errno.ESTALE:
                    raise
            else:
                return store
        raise AssertionError

    def _join(self, chosen: OpenOptions, *, writable: bool) -> None:
        """Come to terms with other handles and processes, and begin to write; errno is ESTALE if it was replaced."""
        state = self._frame
        if chosen.locking and not self.is_snapshot:
            self._sidecar = _sidecar(str(self.path))
            self.is_mutable = True
        if writable and self._use is not None:
            self.writable = self._use.writable = True
            with state.lock:
                state.heal()
                state.enable_writing(takes_lock_turns=chosen.locking)
                state.sync_level, state.sealing = chosen.sync, chosen.seal
        # Who reads does not wait for a transaction.
        if state.users > 1 and not self.is_snapshot and (writable or not state.in_transaction):
            self._come_to_terms()
        self._seen = self._open.version

    def _come_to_terms(self) -> None:
        """Commit what other handles of this process hold back, or follow what another process did."""
        with self._committing() as state:
            if len(state.changes) > 1:
                return
            if not state.waiting:
                state.refresh(whole=True)
                return
            try:
                state.commit()
            except StorageError:
                if self.writable:
                    raise
                # Whoever only reads sees the committed state; the writer gets this error from its own commit.

    # What this handle sees.

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
            if not state.waiting:  # what waited is lost, and somebody must know
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

    # Turns and changes.

    @property
    def _lock_turns(self) -> LockSidecar | None:
        """The lock file; None without one, and where nobody can come in between.

        This is so while the directory of the chunk has no name yet, because nobody knows that frame. It is also so
        inside a change of this thread, perhaps by another handle, which holds the lock turn.
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
        state = self._state
        if state is None or state.successor is not None:
            state = self._frame
        change = _HandleChange(state, self._token, transaction=transaction, at_once=lock_turns is not None)
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

    # Following.

    def refresh(self) -> bool:
        """Follow changes made elsewhere, unless pinned; return whether there were any.

        Raises
        ------
        StorageError
            Another process changed the frame while changes made here waited.
        FormatError
            The frame is damaged now.

        """
        if self.is_snapshot:
            return False
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
                return False
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
        _ = self._open  # what an interrupt has left is dealt with first
        state = self._frame
        lock_turns = self._lock_turns
        if lock_turns is None:
            state.refresh(whole=True)
        else:
            with self._reading(lock_turns, whole=True):
                pass
        return self._noticed()

    def _noticed(self) -> bool:
        """Return whether what this handle sees is something else than before, which it has seen now."""
        version = self._open.version
        if version == self._seen:
            return False
        self._seen = version
        self.change_tick += 1
        return True

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
                self._noticed()
                return read(self._open, *args, **kwargs)
        for pause in _PAUSES:
            if self.refresh():
                continue  # another commit may have come while that one was loaded
            table = self._open
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

    # What the frame says.

    @property
    def settings(self) -> FrameSettings:
        """What is recorded for new chunks; assigning records it with the next commit."""
        return self._open.settings

    @settings.setter
    def settings(self, settings: FrameSettings) -> None:
        with self._changing() as state:
            state.assign_settings(settings)

    @property
    def start(self) -> int:
        """The frame's first byte in its file."""
        state = self._frame
        return state.start if isinstance(state, ContiguousState) else 0

    @property
    def is_committed(self) -> bool:
        """Whether nothing of what is seen here waits for its commit."""
        state = self._frame
        return self._open is not state or not (state.waiting or state.busy)

    @property
    def header_bytes(self) -> bytes:
        """The committed header, fixed metalayers included."""
        return self._frame.header_bytes

    def identity(self) -> tuple[int, int]:
        """Return device and inode of the file that the frame, or the index of a directory, is in."""
        return self._frame.file.identity

    @property
    def meta(self) -> Mapping[str, bytes]:
        """The fixed metalayers, raw."""
        state = self._state
        if state is None or state.successor is not None or state.meta:
            return self._open.meta
        return state.meta  # a frame that has none never gets one

    @property
    def dead_bytes(self) -> int:
        """Bytes of the frame that nothing refers to."""
        return self._frame.dead_bytes

    @property
    def frame_len(self) -> int:
        """Bytes of the committed frame."""
        return self._frame.frame_len

    @property
    def sealed(self) -> bool:
        """Whether seals behind chunks prove something: nobody else changed the frame."""
        return self._frame.sealed

    @property
    def seals(self) -> range | None:
        """The entries whose chunks have seals; None: no seal proves anything."""
        return self._open.seals

    def snapshot(self) -> Snapshot:
        """Return the chunks as they are now."""
        state = self._frame
        table = self._open
        if table is not state:
            return Snapshot(table.index.copy(), table.place, table.fixed_size, table.seals, state.most_stored())
        with state.lock:
            return Snapshot(
                state.index.copy(), state.mark_type(state).place, state.fixed_size, state.seals, state.most_stored()
            )

    def prove(self) -> None:
        """Compare index and metadata with the frame's fingerprint, if that was put off.

        Raises
        ------
        FormatError
            They are damaged.
        StorageError
            The file cannot be read.

        """
        state = self._frame
        with state.lock:
            state.prove()

    # Changing.

    def append(self, chunks: Sequence[bytes]) -> int:
        """Put `chunks` behind all others; return the number of chunks."""
        with self._changing() as state:
            return state.insert(None, chunks)

    def insert(self, nchunk: int, chunks: Sequence[bytes]) -> int:
        """Put `chunks` before chunk `nchunk`; the number of chunks appends. Return that number afterwards."""
        with self._changing() as state:
            return state.insert(nchunk, chunks)

    def replace(self, nchunk: int, chunk: bytes) -> None:
        """Put `chunk` in the place of chunk `nchunk`."""
        with self._changing() as state:
            state.replace(nchunk, chunk)

    def delete(self, nchunk: int) -> int:
        """Remove chunk `nchunk`; return the number of chunks left."""
        with self._changing() as state:
            return state.delete(nchunk)

    def reorder(self, order: Sequence[int]) -> None:
        """Put chunk ``order[i]`` at place i."""
        with self._changing() as state:
            state.reorder(order)

    def fill_special(self, kind: int, nbytes: int, value: bytes | None) -> None:
        """Fill an empty store with `nbytes` of special value `kind`."""
        with self._changing() as state:
            state.fill_special(kind, nbytes, value)

    def rearrange(self, order: Sequence[int]) -> None:
        """Make chunk ``order[i]`` of now chunk i, and a chunk of zeros where that is negative; the others go."""
        with self._changing() as state:
            state.rearrange(order)

    def set_meta(self, name: str, content: bytes, *, at_once: bool = True) -> None:
        """Change a fixed metalayer, at once for every reader or when the chunks are; its length must stay."""
        with self._changing() as state:
            state.set_meta(name, content, at_once=at_once)

    def set_vlmeta(self, name: str, chunk: bytes) -> None:
        """Add or change a vlmetalayer, at once for every reader; at most 16."""
        with self._changing() as state:
            state.set_vlmeta(name, chunk, most=MAX_METALAYERS)

    def del_vlmeta(self, name: str) -> None:
        """Remove a vlmetalayer, at once for every reader."""
        with self._changing() as state:
            state.del_vlmeta(name)

    def reserve(self, count: int) -> range:
        """Set chunk ids aside for files that other processes place; see `_store.staged_files`.

        Raises
        ------
        ArgumentError
            It is no sparse frame, or `count` is negative.
        StorageError
            There are not so many ids.

        """
        with self._changing() as state:
            if count < 0:
                raise ArgumentError(f"n: expected 0 or more, got {count}")
            return _sparse(state).reserve(count)

    def staged(self, staged: StagedChunk) -> bytes:
        """Return a staged chunk, checked, for `insert` or `replace`.

        Raises
        ------
        ArgumentError
            It is no sparse frame, or the id was not set aside here, or is in use already.
        FormatError
            The file is not what was staged.
        StorageError
            It cannot be read.

        """
        return _sparse(self._frame).staged(staged)

    def batch(self) -> AbstractContextManager[object]:
        """Make several changes one: all happen, or by an exception none.

        Other threads wait until it ends.
        """
        return self._changing()

    def transaction(self) -> AbstractContextManager[object]:
        """Make several changes one, on the disk when it ends.

        Raises
        ------
        StorageError
            One is under way already, or the commit failed; then nothing has changed, unless only the
            last wait for the disk failed.

        """
        return self._changing(transaction=True)

    def flush(self) -> None:
        """Commit everything, down to the disk; within a batch, its end does."""
        if not self.writable:
            return
        with self._committing() as state:
            if len(state.changes) == 1:
                state.commit(sync=True)

    def compact(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Give back the frame's dead bytes to the disk.

        Parameters
        ----------
        progress
            Called with the bytes of chunks done and those in all.

        Raises
        ------
        StorageError
            A batch is under way, or the system refuses; the frame is as it was.

        """
        with self._changing() as state:
            if len(state.changes) > 1:
                raise StorageError(f"{self.path}: cannot compact within a transaction")
            state.compact(progress)

    # Life.

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
        use = self._use
        self._state = None
        if self._sidecar is not None:
            self._sidecar.close()
        if use is not None:
            use.leave()
        self._use = None

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
        """Close the handle without a commit."""
        self.writable = False
        self.close()

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


def _use_elsewhere(name: str, offset: int, *, mend: bool, private: bool, recover: bool) -> Use:
    """Return a use of the state of a directory, or of a frame that has another name while it is replaced."""
    for left in range(_MOST_MOVES, -1, -1):
        place = find_name(name, mend=mend) or name
        if is_folder(place):
            if offset:
                raise ValueError(f"offset: expected 0 for the directory of a sparse frame, got {offset}")
            with suppress(FileNotFoundError):
                return _sparse_state().opened(name, private=private, recover=recover, place=place)
        else:
            use = ContiguousState.opened(place, offset, private=private, recover=recover)
            if use is not None:
                return use
        if not left or find_name(name) is None:
            break
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _sparse_state() -> type[SparseState]:
    from superchunk._store.sparse_frame import SparseState  # most frames are files

    return SparseState


def _sparse(state: CommittedFrame) -> SparseState:
    if not isinstance(state, _sparse_state()):
        raise ArgumentError(f"{state.path}: only a sparse frame (contiguous=False) takes chunks that others place")
    return state


def _sidecar(path: str) -> LockSidecar:
    """Return the lock file that belongs to the frame at `path`."""
    return LockSidecar(path, sparse=os.path.isdir(path))
