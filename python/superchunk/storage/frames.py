"""Frames on the disk, as stores: found or made, read and changed.

A `FrameStore` is a handle (`handles`) on a state that handles share; chunks, metalayers and
commits are the business of that state, in one file or in a directory.

Source: docs/format/cframe.md, "Commits" and "Concurrency".
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypedDict

from superchunk.exceptions import ArgumentError, ReadOnlyError, StorageError
from superchunk.frame.metalayers import MAX_METALAYERS
from superchunk.storage.base import Snapshot
from superchunk.storage.contiguous import ContiguousState
from superchunk.storage.folder import is_folder
from superchunk.storage.handles import StateHandle
from superchunk.storage.names import find_name
from superchunk.storage.sidecar import LockSidecar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from superchunk.params import SyncLevel
    from superchunk.storage.base import FrameSettings
    from superchunk.storage.committed import CommittedFrame
    from superchunk.storage.sparse import SparseState
    from superchunk.storage.staging import StagedChunk

__all__ = ["FrameStore", "OpenOptions"]

_MAX_CHUNKSIZE = 2**31 - 1
_MOST_MOVES = 20


class OpenOptions(TypedDict, total=False):
    """What `FrameStore.open` can be asked besides; see there."""

    sync: SyncLevel
    seal: bool
    snapshot: bool
    recover: bool
    locking: bool


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
        sync: SyncLevel = "explicit",
        seal: bool = True,
        contiguous: bool = True,
        locking: bool = False,
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
        sync
            When to wait for the disk.
        seal
            Write seals, fingerprint and commit records.
        contiguous
            One file; otherwise a directory, with a file for each chunk.
        locking
            Take part in the lock protocol of C-Blosc2.

        Raises
        ------
        ValueError
            `chunksize` is out of range.
        MetalayerValueError
            More than 16 metalayers, or a name over 31 bytes.
        LockedError
            Another process is writing the frame that is there.
        StorageError
            The system refuses.

        """
        if not -1 <= chunksize <= _MAX_CHUNKSIZE:
            raise ValueError(f"chunksize: expected -1 to {_MAX_CHUNKSIZE}, got {chunksize}")
        name = os.fspath(path)
        layout: type[ContiguousState | SparseState] = ContiguousState if contiguous else _sparse_state()
        state = layout.created(name, settings, chunksize, meta, vlblocks=vlblocks, sync=sync, seal=seal)
        sidecar = LockSidecar(name, sparse=not contiguous) if locking else None
        store = cls(state, name, writable=True, sync=sync, seal=seal, sidecar=sidecar)
        try:
            if locking:  # nobody knows of the frame yet, so that nobody can come in between
                state.disable_writing()
                state.enable_writing(taking_turns=True)
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
        offset: int = 0,
        writable: bool = False,
        sync: SyncLevel = "explicit",
        seal: bool = True,
        snapshot: bool = False,
        recover: bool = False,
        locking: bool = False,
    ) -> Self:
        """Open the frame that begins at byte `offset` of a file, or is a directory.

        Parameters
        ----------
        path
            The file, or the directory of a sparse frame.
        offset
            Bytes before the frame in its file.
        writable
            It will be changed, by this process alone.
        sync, seal, locking
            As for `create`.
        snapshot
            Stay at the state that is found, until `advance`.
        recover
            If the present state is damaged, take the newest intact commit in the file
            instead; for reading only.

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
        name = os.fspath(path)
        if offset < 0:
            raise ValueError(f"offset: expected at least 0, got {offset}")
        if writable and (snapshot or recover):
            raise ReadOnlyError(f"{name}: snapshot and recover are for reading")
        pinned = snapshot or recover
        state = _state_at(name, offset, mend=writable, private=pinned, recover=recover)
        store = cls(state, name, writable=False, sync=sync, seal=seal, pinned=pinned)
        try:
            if locking and not pinned:
                store._sidecar = _sidecar(name)
                store.shifting = True
            with state.lock:
                if writable:
                    state.enable_writing(taking_turns=locking)
                    state.writers += 1
                    store.writable = True
                    state.sync_level, state.sealing = sync, seal
                found = state.users > 1  # one that was loaded just now has nothing to catch up with
                if found and not state.busy and not store.pinned:
                    store._come_to_terms(state)
            store._seen = state.version
        except BaseException:
            store._let_go()
            raise
        return store

    def _come_to_terms(self, state: CommittedFrame) -> None:
        """Commit what other handles of this process hold back, or follow what another process did."""
        if not state.waiting:
            state.refresh()
            return
        try:
            state.commit()
        except StorageError:
            if self.writable:
                raise
            # Whoever only reads sees what waits in memory; the writer gets this error from its own commit.

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
        state = self._open
        return state.start if isinstance(state, ContiguousState) else 0

    @property
    def sparse(self) -> bool:
        """Whether it is a directory, and not one file."""
        return self._open.sparse

    @property
    def meta(self) -> Mapping[str, bytes]:
        """The fixed metalayers, raw."""
        return self._open.meta

    @property
    def dead_bytes(self) -> int:
        """Bytes of the frame that nothing refers to."""
        return self._open.dead_bytes

    @property
    def frame_len(self) -> int:
        """Bytes of the committed frame."""
        return self._open.frame_len

    @property
    def sealed(self) -> bool:
        """Whether seals behind chunks prove something: nobody else changed the frame."""
        return self._open.sealed

    @property
    def seals(self) -> range | None:
        """The entries whose chunks have seals; None: no seal proves anything."""
        return self._open.seals

    def snapshot(self) -> Snapshot:
        """Return the chunks as they are now."""
        state = self._open
        with state.lock:
            return Snapshot(state.index.copy(), state.settled_place(), state.fixed_size, state.seals)

    def prove(self) -> None:
        """Compare index and metadata with the frame's fingerprint, if that was put off.

        Raises
        ------
        FormatError
            They are damaged.
        StorageError
            The file cannot be read.

        """
        state = self._open
        with state.lock:
            state.prove()

    def insert(self, nchunk: int, chunks: Sequence[bytes]) -> None:
        """Put `chunks` before chunk `nchunk`; the number of chunks appends."""
        with self._changing() as state:
            state.insert(nchunk, chunks)

    def replace(self, nchunk: int, chunk: bytes) -> None:
        """Put `chunk` in the place of chunk `nchunk`."""
        with self._changing() as state:
            state.replace(nchunk, chunk)

    def delete(self, nchunk: int) -> None:
        """Remove chunk `nchunk`."""
        with self._changing() as state:
            state.delete(nchunk)

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
        """Set chunk ids aside for files that other processes place; see `storage.staging`.

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
        return _sparse(self._open).staged(staged)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Make several changes one: all happen, or by an exception none.

        Other threads wait until it ends.
        """
        with self._changing() as state, state.batch():
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make several changes one, on the disk when it ends.

        Raises
        ------
        StorageError
            One is under way already, or the commit failed; then nothing has changed.

        """
        with self._changing() as state, state.transaction():
            yield

    def flush(self) -> None:
        """Commit everything, down to the disk; within a batch, its end does."""
        state = self._open
        with state.lock:
            if self.writable and not state.busy:
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
            if state.in_batch:
                raise StorageError(f"{self.path}: cannot compact within a transaction")
            state.compact(progress)


def _state_at(name: str, offset: int, *, mend: bool, private: bool, recover: bool) -> CommittedFrame:
    """Return the state of the frame of that name, with one user more, though it may be replaced just now."""
    for _ in range(_MOST_MOVES):
        try:
            return _state_now(name, offset, mend=mend, private=private, recover=recover)
        except FileNotFoundError:
            if find_name(name) is None:
                raise
    return _state_now(name, offset, mend=mend, private=private, recover=recover)


def _state_now(name: str, offset: int, *, mend: bool, private: bool, recover: bool) -> CommittedFrame:
    try:
        return ContiguousState.opened(name, offset, private=private, recover=recover)  # as most are
    except FileNotFoundError:
        pass
    except StorageError:
        if not is_folder(name):
            raise
    place = find_name(name, mend=mend) or name
    if not is_folder(place):
        return ContiguousState.opened(place, offset, private=private, recover=recover)
    if offset:
        raise ValueError(f"offset: expected 0 for the directory of a sparse frame, got {offset}")
    return _sparse_state().opened(name, private=private, recover=recover, place=place)


def _sparse_state() -> type[SparseState]:
    from superchunk.storage.sparse import SparseState  # noqa: PLC0415 - most frames are files

    return SparseState


def _sparse(state: CommittedFrame) -> SparseState:
    if not isinstance(state, _sparse_state()):
        raise ArgumentError(f"{state.path}: only a sparse frame (contiguous=False) takes chunks that others place")
    return state


def _sidecar(path: str) -> LockSidecar:
    """Return the lock file that belongs to the frame at `path`."""
    return LockSidecar(path, sparse=os.path.isdir(path))  # noqa: PTH112 - a str all the way
