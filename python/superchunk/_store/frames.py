"""Frames on the disk, as stores: found or made, read and changed.

A `FrameStore` is a handle (`handles`) on a state that handles share; chunks, metalayers and
commits are the business of that state, in one file or in a directory.

Source: docs/format/cframe.md, "Commits" and "Concurrency".
"""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self

from superchunk._format.metalayers import MAX_METALAYERS
from superchunk._store.contiguous import ContiguousState
from superchunk._store.folder import is_folder
from superchunk._store.handles import StateHandle
from superchunk._store.names import find_name
from superchunk._store.options import OpenOptions
from superchunk._store.protocol import Snapshot
from superchunk._store.sidecar import LockSidecar
from superchunk._store.target import ReplaceRule, absolute_path, check_target
from superchunk.exceptions import ArgumentError, ReadOnlyError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Unpack

    from superchunk._store.committed import CommittedFrame
    from superchunk._store.options import OpenKeywords
    from superchunk._store.protocol import FrameSettings
    from superchunk._store.registry import Use
    from superchunk._store.sparse import SparseState
    from superchunk._store.staging import StagedChunk

__all__ = ["FrameStore"]

_MAX_CHUNKSIZE = 2**31 - 1
_MOST_MOVES = 20
_USUAL: Final = OpenOptions()


class FrameStore(StateHandle):
    """A `ChunkStore` in a frame; made by `create` and `open`."""

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
                use = _use_of(name, chosen.offset, mend=writable, private=pinned, recover=chosen.recover)
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
        return self._frame.file.identity()

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
            return Snapshot(state.index.copy(), state.mark().place, state.fixed_size, state.seals, state.most_stored())

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
        """Set chunk ids aside for files that other processes place; see `_store.staging`.

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


def _use_of(name: str, offset: int, *, mend: bool, private: bool, recover: bool) -> Use:
    """Return a use of the state of the frame of that name, though it may be replaced just now."""
    for left in range(_MOST_MOVES, -1, -1):
        try:
            return ContiguousState.opened(name, offset, private=private, recover=recover)  # as most are
        except FileNotFoundError:
            pass
        except StorageError:
            if not is_folder(name):
                raise
        try:
            return _use_elsewhere(name, offset, mend=mend, private=private, recover=recover)
        except FileNotFoundError:
            if not left or find_name(name) is None:
                raise
    raise AssertionError


def _use_elsewhere(name: str, offset: int, *, mend: bool, private: bool, recover: bool) -> Use:
    """Return a use of the state of a directory, or of a frame that has another name while it is replaced."""
    place = find_name(name, mend=mend) or name
    if not is_folder(place):
        return ContiguousState.opened(place, offset, private=private, recover=recover)
    if offset:
        raise ValueError(f"offset: expected 0 for the directory of a sparse frame, got {offset}")
    return _sparse_state().opened(name, private=private, recover=recover, place=place)


def _sparse_state() -> type[SparseState]:
    from superchunk._store.sparse import SparseState  # most frames are files

    return SparseState


def _sparse(state: CommittedFrame) -> SparseState:
    if not isinstance(state, _sparse_state()):
        raise ArgumentError(f"{state.path}: only a sparse frame (contiguous=False) takes chunks that others place")
    return state


def _sidecar(path: str) -> LockSidecar:
    """Return the lock file that belongs to the frame at `path`."""
    return LockSidecar(path, sparse=os.path.isdir(path))  # noqa: PTH112 - a str all the way
