"""Contiguous frames in files, as stores: a handle each, on a state that they share.

A `FrameStore` knows whether it may write and what it has seen; chunks, metalayers and
commits are the business of the shared `state`.

Source: docs/format/cframe.md, "Commits" and "Concurrency".
"""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from superchunk.exceptions import (
    ClosedError,
    FormatError,
    ReadOnlyError,
    StorageError,
    SuperchunkError,
    UnsupportedError,
)
from superchunk.frame.metalayers import MAX_METALAYERS
from superchunk.storage import registry
from superchunk.storage.file import FileBytes, remove_file
from superchunk.storage.state import FrameState
from superchunk.storage.view import TableView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from superchunk.storage.base import FrameSettings, Snapshot

__all__ = ["FrameStore"]

_MAX_CHUNKSIZE = 2**31 - 1


class FrameStore(TableView):
    """A `ChunkStore` in a contiguous frame; made by `create` and `open`.

    A handle that is dropped is closed.
    """

    def __init__(self, state: FrameState, key: registry.Key, path: str, *, writable: bool) -> None:
        """Take over one use of `state`, counted by the registry."""
        self._state: FrameState | None = state
        self._key = key
        self.path: str | None = path
        self.writable = writable
        self.change_tick = 0
        self._seen = state.version

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
    ) -> Self:
        """Make an empty frame, in place of whatever file was at `path`.

        It is written aside and then renamed, so that a failure leaves the old file.

        Parameters
        ----------
        path
            The file.
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

        Raises
        ------
        ValueError
            `chunksize` is out of range.
        MetalayerValueError
            More than 16 metalayers, or a name over 31 bytes.
        StorageError
            The system refuses.

        """
        if not -1 <= chunksize <= _MAX_CHUNKSIZE:
            raise ValueError(f"chunksize: expected -1 to {_MAX_CHUNKSIZE}, got {chunksize}")
        raw = FrameState.empty_frame(settings, chunksize, meta, vlblocks=vlblocks)
        name = os.fspath(path)
        final = os.path.realpath(name)
        folder, base = os.path.split(final)
        aside = os.path.join(folder, f".{base[:200]}.{secrets.token_hex(6)}.new")  # noqa: PTH118
        try:
            file = FileBytes.create(aside)
        except StorageError as error:  # of the other name, which says nothing to the caller
            raise StorageError(error.errno, error.strerror, name) from error
        try:
            file.pwrite(raw, 0)
            state = FrameState.load(file, 0)
            state.unpublished = final
            if publish:
                state.commit()
        except BaseException:
            file.close()
            remove_file(aside)
            raise
        key = (*file.identity(), 0)
        return cls(registry.enter(key, state), key, name, writable=True)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, offset: int = 0, writable: bool = False) -> Self:
        """Open the frame that begins at byte `offset` of a file.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        FormatError
            There is no frame, or a damaged one.
        UnsupportedError
            It is a sparse frame.
        ReadOnlyError
            To be changed, although something follows it in the file.
        StorageError
            The system refuses.

        """
        name = os.fspath(path)
        if offset < 0:
            raise ValueError(f"offset: expected at least 0, got {offset}")
        file = FileBytes.open(name)
        try:
            key = (*file.identity(), offset)
            state = registry.find(key)
            if state is None:
                fresh = FrameState.load(file, offset)
                state = registry.enter(key, fresh)
        except SuperchunkError as error:
            file.close()
            raise _about(error, name) from error
        except BaseException:
            file.close()
            raise
        if state.file is not file:
            file.close()
        store = cls(state, key, name, writable=writable)
        try:
            with state.lock:
                if not state.busy:
                    state.commit() if state.waiting else state.refresh()
                if writable:
                    state.enable_writing()
            store._seen = state.version
        except BaseException:
            store._let_go()
            raise
        return store

    def __del__(self) -> None:
        """Close a handle that was dropped."""
        if getattr(self, "_state", None) is not None:
            self.close()

    @property
    def _open(self) -> FrameState:
        state = self._state
        if state is None:
            raise ClosedError(f"{self.path}: the handle is closed")
        return state

    @contextmanager
    def _changing(self) -> Iterator[FrameState]:
        """Hold the frame for a change through this handle."""
        state = self._open
        if not self.writable:
            raise ReadOnlyError(f"{self.path}: cannot change it in reading mode")
        with state.lock:
            state.follow()
            before = state.version
            try:
                yield state
            finally:
                if self._seen == before:
                    self._seen = state.version

    @property
    def settings(self) -> FrameSettings:
        """What is recorded for new chunks; assigning records it with the next commit."""
        return self._open.settings

    @settings.setter
    def settings(self, settings: FrameSettings) -> None:
        with self._changing() as state:
            state.assign_settings(settings)

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

    def snapshot(self) -> Snapshot:
        """Return the chunks as they are now."""
        state = self._open
        with state.lock:
            return state.snapshot()

    def refresh(self) -> bool:
        """Follow changes made elsewhere; return whether there were any.

        Raises
        ------
        StorageError
            Another process changed the frame while changes made here waited.
        FormatError
            The frame is damaged now.

        """
        state = self._open
        state.refresh()
        if state.version == self._seen:
            return False
        self._seen = state.version
        self.change_tick += 1
        return True

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

    def set_meta(self, name: str, content: bytes) -> None:
        """Change a fixed metalayer, on the disk on return; its length must stay."""
        with self._changing() as state:
            state.set_meta(name, content)

    def set_vlmeta(self, name: str, chunk: bytes) -> None:
        """Add or change a vlmetalayer, on the disk on return; at most 16."""
        with self._changing() as state:
            state.set_vlmeta(name, chunk, most=MAX_METALAYERS)

    def del_vlmeta(self, name: str) -> None:
        """Remove a vlmetalayer, on the disk on return."""
        with self._changing() as state:
            state.del_vlmeta(name)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Make several changes one: all happen, or by an exception none.

        Other threads wait until it ends.
        """
        with self._changing() as state, state.batch():
            yield

    def flush(self) -> None:
        """Commit everything, down to the disk; within a batch, its end does."""
        state = self._open
        with state.lock:
            if self.writable and not state.busy:
                state.commit(sync=True)

    def close(self) -> None:
        """Commit what waits and let go; closing twice is fine.

        Raises
        ------
        StorageError
            The commit failed; the handle is closed all the same.

        """
        state = self._state
        if state is None:
            return
        try:
            with state.lock:
                if self.writable and not state.busy:
                    state.commit()
        finally:
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
        if state.unpublished is None:
            raise StorageError(f"{self.path}: the frame has its name already")
        self._let_go()
        remove_file(state.file.path)

    def _let_go(self) -> None:
        state, self._state = self._state, None
        if state is not None and registry.leave(self._key, state):
            state.file.close()


def _about(error: SuperchunkError, path: str) -> SuperchunkError:
    """Return `error` with the path in front of its message."""
    if isinstance(error, (FormatError, UnsupportedError)):
        error.args = (f"{path}: {error.args[0]}", *error.args[1:])
    return error
