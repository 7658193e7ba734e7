"""A list of chunks in memory, also over the chunks of another store.

The chunks are any sources: bytes of this process, slices of a buffer, or ranges of an
open file (copy-on-write: changes stay in memory, the file is left alone).

Source: docs/format/cframe.md, "Frames elsewhere".
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, cast

from superchunk.exceptions import ClosedError, FormatError
from superchunk.frame.index import Index
from superchunk.frame.metalayers import write_metalayers
from superchunk.frame.trailer import MAX_VLMETALAYERS_READ
from superchunk.storage.base import Snapshot
from superchunk.storage.changes import MutableChunkTable, check_same_length
from superchunk.storage.view import TableView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from superchunk._engine import Source
    from superchunk.storage.base import ChunkStore, FrameSettings
    from superchunk.storage.changes import Mark

__all__ = ["MemoryStore"]


class _MemoryTable(MutableChunkTable):
    """Chunks of a base, with the base's entries, and own ones in a list.

    Own entries count from a number that no file can guess, so that a damaged entry of
    the base is never taken for one.
    """

    blobs: list[Source]
    meta: dict[str, bytes]
    own: int
    base_place: Callable[[int, int], Source]

    def place(self, entry: int, nchunk: int) -> Source:
        number = entry - self.own
        if 0 <= number < len(self.blobs):
            return self.blobs[number]
        return self.base_place(entry, nchunk)

    def put(self, chunks: Sequence[bytes]) -> Sequence[int]:
        first = self.own + len(self.blobs)
        self.blobs.extend(chunks)
        return range(first, first + len(chunks))

    def begin(self) -> Mark:
        return (*super().begin(), len(self.blobs), dict(self.meta))

    def undo(self, mark: Mark) -> None:
        super().undo(mark)
        del self.blobs[cast("int", mark[-2]) :]
        self.meta = cast("dict[str, bytes]", mark[-1])

    def done(self, *, at_once: bool) -> None:
        super().done(at_once=at_once)
        # Replaced and deleted chunks leave unused places; renumber when they are most.
        if len(self.blobs) > 2 * len(self.index) + 64:
            used: list[Source] = []
            entries = self.index.slice(0, len(self.index))
            for nchunk, entry in enumerate(entries):
                if 0 <= entry - self.own < len(self.blobs):
                    entries[nchunk] = self.own + len(used)
                    used.append(self.blobs[entry - self.own])
            self.index = Index(entries)
            self.blobs = used

    def settled_place(self) -> Callable[[int, int], Source]:
        """Return `place` for the chunks as they are, whatever is changed later."""
        own, base_place, blobs = self.own, self.base_place, self.blobs[:]

        def place(entry: int, nchunk: int) -> Source:
            number = entry - own
            return blobs[number] if 0 <= number < len(blobs) else base_place(entry, nchunk)

        return place


def _nowhere(entry: int, nchunk: int) -> Source:
    """Refuse an entry of a store without a base."""
    raise FormatError(f"index entry {nchunk}", at=8 * nchunk, expected="a chunk in memory", found=entry)


class MemoryStore(TableView):
    """A `ChunkStore` whose chunks are sources in a list."""

    path: str | None = None
    writable = True
    change_tick = 0
    dead_bytes = 0
    frame_len = 0
    sealed = False
    _seals: range | None = None

    def __init__(
        self,
        settings: FrameSettings,
        chunksize: int,
        meta: Mapping[str, bytes] | None = None,
        *,
        vlblocks: bool = False,
    ) -> None:
        """Make an empty store.

        Parameters
        ----------
        settings
            What to record for new chunks.
        chunksize
            Bytes of a full chunk; 0: sizes vary; -1: as the first chunk's.
        meta
            The fixed metalayers.
        vlblocks
            Chunks will have variable-length blocks.

        Raises
        ------
        MetalayerValueError
            More than 16 metalayers, or a name over 31 bytes.

        """
        layers = {name: bytes(content) for name, content in (meta or {}).items()}
        write_metalayers(layers)
        table = _MemoryTable(settings, Index(), nbytes=0, chunksize=chunksize, vlblocks=vlblocks, vlmeta={})
        self._setup(table, _nowhere, layers, None)

    def _setup(
        self,
        table: _MemoryTable,
        place: Callable[[int, int], Source],
        meta: dict[str, bytes],
        owner: object,
    ) -> None:
        table.blobs, table.meta, table.base_place = [], meta, place
        table.own = 2**61 + int.from_bytes(os.urandom(7), "little")
        self._table: _MemoryTable | None = table
        self._lock = threading.RLock()
        self._owner = owner

    @classmethod
    def of_snapshot(
        cls,
        snapshot: Snapshot,
        settings: FrameSettings,
        *,
        nbytes: int,
        vlblocks: bool | None,
        meta: Mapping[str, bytes],
        vlmeta: Mapping[str, bytes],
        owner: object = None,
    ) -> Self:
        """Return a store that begins with chunks that exist elsewhere.

        Parameters
        ----------
        snapshot
            Those chunks; its index becomes the store's own.
        settings, nbytes, vlblocks, meta, vlmeta
            What a frame says about itself; `vlblocks` None asks the first chunk.
        owner
            What has to live as long as the chunks are in use; closed with the store
            if it can be closed.

        """
        store = cls.__new__(cls)
        table = _MemoryTable(
            settings,
            snapshot.index,
            nbytes=nbytes,
            chunksize=snapshot.chunksize,
            vlblocks=vlblocks,
            vlmeta=vlmeta,
        )
        store._setup(table, snapshot.place, dict(meta), owner)  # noqa: SLF001 - its own
        store._seals = snapshot.seals  # noqa: SLF001 - the same
        return store

    @classmethod
    def over(cls, base: ChunkStore) -> Self:
        """Return a store that begins as `base` and keeps its changes to itself.

        Chunks stay where `base` has them; closing this store closes `base`.
        """
        return cls.of_snapshot(
            base.snapshot(),
            base.settings,
            nbytes=base.nbytes,
            vlblocks=None if base.nchunks else base.vlblocks,
            meta=base.meta,
            vlmeta=base.vlmeta,
            owner=base,
        )

    @property
    def _open(self) -> _MemoryTable:
        table = self._table
        if table is None:
            raise ClosedError("store in memory: it is closed")
        return table

    @property
    def settings(self) -> FrameSettings:
        """What is recorded for new chunks."""
        return self._open.settings

    @settings.setter
    def settings(self, settings: FrameSettings) -> None:
        self._open.settings = settings

    @property
    def meta(self) -> Mapping[str, bytes]:
        """The fixed metalayers, raw."""
        return self._open.meta

    @property
    def seals(self) -> range | None:
        """The entries whose chunks have seals, of those that it began with; None: no seal proves anything."""
        return self._seals

    def snapshot(self) -> Snapshot:
        """Return the chunks as they are now."""
        table = self._open
        return Snapshot(table.index.copy(), table.settled_place(), table.fixed_size, self._seals)

    def prove(self) -> None:
        """Compare the frame that the chunks are of with its fingerprint, if that was put off."""
        prove = getattr(self._owner, "prove", None)
        if prove is not None:
            prove()

    def refresh(self) -> bool:
        """Return False: nobody else can change a store in memory."""
        return False

    def advance(self) -> bool:
        """Return False: nobody else can change a store in memory."""
        return False

    def insert(self, nchunk: int, chunks: Sequence[bytes]) -> None:
        """Put `chunks` before chunk `nchunk`; the number of chunks appends."""
        with self._lock:
            self._open.insert(nchunk, chunks)

    def replace(self, nchunk: int, chunk: bytes) -> None:
        """Put `chunk` in the place of chunk `nchunk`."""
        with self._lock:
            self._open.replace(nchunk, chunk)

    def delete(self, nchunk: int) -> None:
        """Remove chunk `nchunk`."""
        with self._lock:
            self._open.delete(nchunk)

    def reorder(self, order: Sequence[int]) -> None:
        """Put chunk ``order[i]`` at place i."""
        with self._lock:
            self._open.reorder(order)

    def fill_special(self, kind: int, nbytes: int, value: bytes | None) -> None:
        """Fill an empty store with `nbytes` of special value `kind`."""
        with self._lock:
            self._open.fill_special(kind, nbytes, value)

    def rearrange(self, order: Sequence[int]) -> None:
        """Make chunk ``order[i]`` of now chunk i, and a chunk of zeros where that is negative; the others go."""
        with self._lock:
            self._open.rearrange(order)

    def set_meta(self, name: str, content: bytes, *, at_once: bool = True) -> None:
        """Change a fixed metalayer; its length must stay."""
        del at_once  # nobody but this process can see it
        with self._lock:
            meta = self._open.meta
            check_same_length(meta.get(name), name, content)
            meta[name] = bytes(content)

    def set_vlmeta(self, name: str, chunk: bytes) -> None:
        """Add or change a vlmetalayer; at most 8192, of which a frame can take 16."""
        with self._lock:
            self._open.set_vlmeta(name, chunk, most=MAX_VLMETALAYERS_READ)

    def del_vlmeta(self, name: str) -> None:
        """Remove a vlmetalayer."""
        with self._lock:
            self._open.del_vlmeta(name)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Make several changes one: all happen, or by an exception none."""
        with self._lock, self._open.batch():
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make several changes one: all happen, or by an exception none.

        Raises
        ------
        StorageError
            One is under way already.

        """
        with self._lock, self._open.transaction():
            yield

    def flush(self) -> None:
        """Do nothing: there is no disk to write to."""

    def compact(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Do nothing: there are no dead bytes."""

    def close(self) -> None:
        """Let go of the chunks; closing twice is fine."""
        owner, self._owner, self._table = self._owner, None, None
        close = getattr(owner, "close", None)
        if close is not None:
            close()
