"""A list of chunks in memory, also over the chunks of another store.

The chunks are any sources: bytes of this process, slices of a buffer, or ranges of an open file. For a file, changes
stay in memory (copy-on-write).

Source: docs/format/cframe.md, "Frames elsewhere".
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar, cast

from superchunk import _engine
from superchunk._format.frame_index import Index
from superchunk._format.metalayers import write_metalayers
from superchunk._format.trailer import MAX_VLMETALAYERS_READ
from superchunk._store import open_frames as registry
from superchunk._store.changes_and_undo import Change, Mark, MutableChunkTable, check_same_length
from superchunk._store.chunk_list_view import TableView
from superchunk._store.store_interface import Snapshot
from superchunk.exceptions import ClosedError, FormatError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from superchunk._engine import Source
    from superchunk._store.changes_and_undo import PastTable
    from superchunk._store.store_interface import ChunkList, ChunkStore, FrameSettings

__all__ = ["MemoryStore"]

P = ParamSpec("P")
T = TypeVar("T")

_LOOKS = 20
"""How often a question is asked before other threads have to wait for the answer."""


class _MemoryMark(Mark):
    """What a table in memory was."""

    __slots__ = ()

    base_place: Callable[[int, int], Source]
    base_seals: range | None
    blobs: dict[int, Source]
    following: int

    @property
    def seals(self) -> range | None:
        return self.base_seals

    def place(self, entry: int, nchunk: int) -> Source:
        blob = self.blobs.get(entry)
        return self.base_place(entry, nchunk) if blob is None else blob


class _MemoryTable(MutableChunkTable):
    """Chunks of a base, with the base's entries, and own ones by theirs.

    Own entries count from a number that no file can guess, so that a damaged entry of
    the base is never taken for one.
    """

    mark_type = _MemoryMark
    base_most = 0
    """How many chunks can be stored in the base."""
    base_seals: range | None = None
    """The entries of the base whose chunks have seals; None: no seal proves anything."""

    def __init__(
        self,
        settings: FrameSettings,
        index: Index,
        place: Callable[[int, int], Source],
        *,
        nbytes: int,
        chunksize: int,
        vlblocks: bool | None,
        meta: Mapping[str, bytes],
        vlmeta: Mapping[str, bytes],
    ) -> None:
        self.lock = threading.RLock()
        self.changes = []
        self.settings, self.index = settings, index
        self.nbytes, self.fixed_size = nbytes, chunksize
        self.meta, self.vlmeta = meta, vlmeta
        self._vlblocks = vlblocks
        self._live = None if nbytes else (0, 0)
        self._specials = {}
        self.version = self.epoch = self._edits = 0
        self._urgent = self._dirty = self._index_changed = False
        self.base_place = place
        self.blobs: dict[int, Source] = {}
        """Own chunks by their entries, which are never given twice."""
        self.following = 2**61 + int.from_bytes(os.urandom(7), "little")
        """The next entry of an own chunk."""

    @property
    def seals(self) -> range | None:
        return self.base_seals

    def place(self, entry: int, nchunk: int) -> Source:
        blob = self.blobs.get(entry)
        return self.base_place(entry, nchunk) if blob is None else blob

    def places(self, numbered: Iterable[tuple[int, int]]) -> list[Source]:
        blobs, base_place, special = self.blobs, self.base_place, self._special
        found: list[Source] = []
        for nchunk, entry in numbered:
            blob = blobs.get(entry)
            if blob is None:
                blob = base_place(entry, nchunk) if entry >= 0 else special(entry, nchunk)
            found.append(blob)
        return found

    def put(self, chunks: Sequence[bytes]) -> Sequence[int]:
        entries = range(self.following, self.following + len(chunks))
        self.following = entries.stop
        self.blobs.update(zip(entries, chunks, strict=True))
        return entries

    def most_stored(self) -> int:
        return self.base_most + len(self.blobs)

    def undo(self, mark: Mark) -> None:
        if mark.epoch != self.epoch:
            return
        super().undo(mark)
        for entry in range(cast("_MemoryMark", mark).following, self.following):
            self.blobs.pop(entry, None)

    def set_meta(self, name: str, content: bytes) -> None:
        """Change a fixed metalayer."""
        check_same_length(self.meta.get(name), name, content)
        self.meta = {**self.meta, name: bytes(content)}
        self._edited()

    def assign_settings(self, settings: FrameSettings) -> None:
        """Note other settings for new chunks."""
        self.settings = settings
        self._specials.clear()
        self._edited()

    def after_fork(self) -> None:
        """Take back what another thread of the parent was at, with a lock of its own."""
        self.lock = threading.RLock()
        if self.changes and self.changes[0].thread != get_ident():
            for change in self.changes:
                change.left = True
            self.heal()

    def finish(self, change: Change) -> None:
        if self._edits == change.mark._edits or self.changes[0] is not change:
            return
        self.epoch += 1
        self._urgent = False
        self.index.forget()
        # Replaced and deleted chunks go when they are most.
        if len(self.blobs) > 2 * self.index.length + 64:
            for entry in self.blobs.keys() - set(self.index.slice(0, len(self.index))):
                del self.blobs[entry]


def _place_of(blobs: Mapping[int, Source], base_place: Callable[[int, int], Source], entry: int, nchunk: int) -> Source:
    """Return where the chunk of an entry is, one of `blobs` or of the base."""
    blob = blobs.get(entry)
    return base_place(entry, nchunk) if blob is None else blob


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
    is_mutable = True  # by other threads

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
        table = _MemoryTable(
            settings, Index(), _nowhere, nbytes=0, chunksize=chunksize, vlblocks=vlblocks, meta=layers, vlmeta={}
        )
        self._setup(table, None)

    def _setup(self, table: _MemoryTable, owner: object) -> None:
        self._table: _MemoryTable | None = table
        self._owner = owner
        registry.forked.add(self)

    @property
    def lock(self) -> threading.RLock:
        """What changes hold."""
        return self._present.lock if self._table is not None else threading.RLock()

    def after_fork(self, *, torn: bool) -> None:
        """Start anew in a child process, without what threads were at that are not there."""
        del torn
        if self._table is not None:
            self._table.after_fork()

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
            snapshot.place,
            nbytes=nbytes,
            chunksize=snapshot.chunksize,
            vlblocks=vlblocks,
            meta=dict(meta),
            vlmeta=vlmeta,
        )
        store._setup(table, owner)
        table.base_seals = snapshot.seals
        table.base_most = snapshot.most_stored
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
    def _present(self) -> _MemoryTable:
        table = self._table
        if table is None:
            raise ClosedError("store in memory: it is closed")
        return table

    @property
    def _open(self) -> _MemoryTable | PastTable:
        table = self._table or self._present
        return self._whole(table) if table.changes else table

    def _whole(self, table: _MemoryTable) -> _MemoryTable | PastTable:
        """Return the table for reading while it is changed: as it was, but to the thread that changes it."""
        while changes := table.changes[:]:
            if changes[-1].left:
                with table.lock:
                    table.heal()
                continue
            hiding = table.whole_before(changes)
            if hiding is None or hiding.thread == get_ident():
                break
            past = table.past_of(hiding)
            if past is not None:
                return past
            time.sleep(0)  # it is over in a moment
        return table

    def read_consistent(self, read: Callable[Concatenate[ChunkList, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `read` returns, given the list of chunks, of one state though other threads change it."""
        for _ in range(_LOOKS):
            table = self._open
            version = table.version
            try:
                answer = read(table, *args, **kwargs)
            except SuperchunkError:
                if self._open is table and table.version == version:
                    raise
            else:
                if self._open is table and table.version == version:
                    return answer
            time.sleep(0)
        with self._present.lock:
            return read(self._open, *args, **kwargs)

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep other threads from changing the chunks while the block reads."""
        with self._present.lock:
            yield

    def _changing(self, *, transaction: bool = False) -> _engine.Section[_MemoryTable]:
        """Return the block of a change."""
        return _engine.Section(Change(self._present, self, transaction=transaction))

    @property
    def settings(self) -> FrameSettings:
        """What is recorded for new chunks."""
        return self._open.settings

    @settings.setter
    def settings(self, settings: FrameSettings) -> None:
        with self._changing() as table:
            table.assign_settings(settings)

    @property
    def meta(self) -> Mapping[str, bytes]:
        """The fixed metalayers, raw."""
        table = self._table
        if table is None or table.meta:
            return self._open.meta
        return table.meta  # none is ever added

    @property
    def seals(self) -> range | None:
        """The entries whose chunks have seals, of those that it began with; None: no seal proves anything."""
        return self._open.seals

    def snapshot(self) -> Snapshot:
        """Return the chunks as they are now."""
        with self._present.lock:
            table = self._present
            place = partial(_place_of, table.blobs.copy(), table.base_place)
            return Snapshot(table.index.copy(), place, table.fixed_size, table.seals, table.most_stored())

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

    def append(self, chunks: Sequence[bytes]) -> int:
        """Put `chunks` behind all others; return the number of chunks."""
        with self._changing() as table:
            return table.insert(None, chunks)

    def insert(self, nchunk: int, chunks: Sequence[bytes]) -> int:
        """Put `chunks` before chunk `nchunk`; the number of chunks appends. Return that number afterwards."""
        with self._changing() as table:
            return table.insert(nchunk, chunks)

    def replace(self, nchunk: int, chunk: bytes) -> None:
        """Put `chunk` in the place of chunk `nchunk`."""
        with self._changing() as table:
            table.replace(nchunk, chunk)

    def delete(self, nchunk: int) -> int:
        """Remove chunk `nchunk`; return the number of chunks left."""
        with self._changing() as table:
            return table.delete(nchunk)

    def reorder(self, order: Sequence[int]) -> None:
        """Put chunk ``order[i]`` at place i."""
        with self._changing() as table:
            table.reorder(order)

    def fill_special(self, kind: int, nbytes: int, value: bytes | None) -> None:
        """Fill an empty store with `nbytes` of special value `kind`."""
        with self._changing() as table:
            table.fill_special(kind, nbytes, value)

    def rearrange(self, order: Sequence[int]) -> None:
        """Make chunk ``order[i]`` of now chunk i, and a chunk of zeros where that is negative; the others go."""
        with self._changing() as table:
            table.rearrange(order)

    def set_meta(self, name: str, content: bytes, *, at_once: bool = True) -> None:
        """Change a fixed metalayer; its length must stay."""
        del at_once  # nobody but this process can see it
        with self._changing() as table:
            table.set_meta(name, content)

    def set_vlmeta(self, name: str, chunk: bytes) -> None:
        """Add or change a vlmetalayer; at most 8192, of which a frame can take 16."""
        with self._changing() as table:
            table.set_vlmeta(name, chunk, most=MAX_VLMETALAYERS_READ)

    def del_vlmeta(self, name: str) -> None:
        """Remove a vlmetalayer."""
        with self._changing() as table:
            table.del_vlmeta(name)

    def batch(self) -> AbstractContextManager[object]:
        """Make several changes one: all happen, or by an exception none."""
        return self._changing()

    def transaction(self) -> AbstractContextManager[object]:
        """Make several changes one: all happen, or by an exception none.

        Raises
        ------
        StorageError
            One is under way already.

        """
        return self._changing(transaction=True)

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
