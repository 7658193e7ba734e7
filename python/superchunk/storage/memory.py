"""A list of chunks in memory, also over the chunks of another store.

The chunks are any sources: bytes of this process, slices of a buffer, or ranges of an
open file (copy-on-write: changes stay in memory, the file is left alone).

Source: docs/format/frame.md, section 12.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, cast

from superchunk.exceptions import ClosedError
from superchunk.frame.index import Index
from superchunk.frame.metalayers import write_metalayers
from superchunk.frame.trailer import MAX_VLMETALAYERS_READ
from superchunk.storage.base import Snapshot
from superchunk.storage.table import ChunkTable, check_same_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from superchunk._engine import Source
    from superchunk.storage.base import ChunkStore, FrameSettings
    from superchunk.storage.table import Mark

__all__ = ["MemoryStore"]


class _MemoryTable(ChunkTable):
    """Chunks of a base, whose entries are below `limit`, and chunks in a list behind."""

    blobs: list[Source]
    meta: dict[str, bytes]
    limit: int
    base_place: Callable[[int, int], Source]

    def place(self, entry: int, nchunk: int) -> Source:
        if entry < self.limit:
            return self.base_place(entry, nchunk)
        return self.blobs[entry - self.limit]

    def put(self, chunks: Sequence[bytes]) -> Sequence[int]:
        first = self.limit + len(self.blobs)
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
            limit = self.limit
            entries = self.index.slice(0, len(self.index))
            blobs = [self.blobs[entry - limit] for entry in entries if entry >= limit]
            numbers = iter(range(limit, limit + len(blobs)))
            self.index = Index(next(numbers) if entry >= limit else entry for entry in entries)
            self.blobs = blobs

    def settled_place(self) -> Callable[[int, int], Source]:
        """Return `place` for the chunks as they are, whatever is changed later."""
        limit, base_place, blobs = self.limit, self.base_place, self.blobs[:]

        def place(entry: int, nchunk: int) -> Source:
            return base_place(entry, nchunk) if entry < limit else blobs[entry - limit]

        return place


class MemoryStore:
    """A `ChunkStore` whose chunks are sources in a list."""

    path: str | None = None
    writable = True
    change_tick = 0
    dead_bytes = 0
    frame_len = 0

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
        table.limit, table.base_place = 0, table.place
        self._setup(table, layers, None)

    def _setup(self, table: _MemoryTable, meta: dict[str, bytes], owner: object) -> None:
        table.blobs, table.meta = [], meta
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
        table.limit, table.base_place = snapshot.limit, snapshot.place
        store._setup(table, dict(meta), owner)  # noqa: SLF001 - its own
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
    def nchunks(self) -> int:
        """Number of chunks."""
        return len(self._open.index)

    @property
    def nbytes(self) -> int:
        """Sum of the chunks' uncompressed sizes, bytes."""
        return self._open.nbytes

    @property
    def cbytes(self) -> int:
        """Sum of the chunks' compressed sizes, bytes; 32 for a special entry."""
        stored, specials = self._open.live
        return stored + 32 * specials

    @property
    def chunksize(self) -> int:
        """Bytes of a full chunk; 0: sizes vary, or no chunk has set it yet."""
        return max(self._open.fixed_size, 0)

    @property
    def vlblocks(self) -> bool:
        """Whether the chunks have variable-length blocks."""
        return self._open.vlblocks

    @property
    def meta(self) -> Mapping[str, bytes]:
        """The fixed metalayers, raw."""
        return self._open.meta

    @property
    def vlmeta(self) -> Mapping[str, bytes]:
        """The vlmetalayers, each one chunk."""
        return self._open.vlmeta

    def snapshot(self) -> Snapshot:
        """Return the chunks as they are now."""
        table = self._open
        return Snapshot(
            table.index.copy(),
            table.limit + len(table.blobs),
            table.settled_place(),
            table.fixed_size,
        )

    def refresh(self) -> bool:
        """Return False: nobody else can change a store in memory."""
        return False

    def source(self, nchunk: int) -> Source:
        """Return where chunk `nchunk` is."""
        return self._open.source(nchunk)

    def sources(self, start: int, stop: int) -> list[Source]:
        """Return where the chunks from `start` to below `stop` are."""
        return self._open.sources(start, stop)

    def chunk_nbytes(self, nchunk: int) -> int:
        """Return the uncompressed size of chunk `nchunk`, bytes."""
        return self._open.chunk_nbytes(nchunk)

    def starts(self) -> Sequence[int]:
        """Return the n + 1 prefix sums of the chunks' sizes, bytes."""
        return self._open.starts()

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

    def set_meta(self, name: str, content: bytes) -> None:
        """Change a fixed metalayer; its length must stay."""
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

    def flush(self) -> None:
        """Do nothing: there is no disk to write to."""

    def close(self) -> None:
        """Let go of the chunks; closing twice is fine."""
        owner, self._owner, self._table = self._owner, None, None
        close = getattr(owner, "close", None)
        if close is not None:
            close()
