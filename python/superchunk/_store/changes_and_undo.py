"""Changes to the list of chunks that both stores share.

Every change happens whole or not at all. A `Change` is one of them. When the change begins, a `Mark` records the table.
When the change fails, `undo` restores the mark. When the change ends and is not part of another change, `done` lets the
store commit.

An interrupt may come between any two bytecodes, in the middle of these steps too. So nothing is counted up and down:
`changes` has the changes under way. Each change says by itself whether its block was left. The next caller undoes
changes that were left unfinished (`heal`). Every step of `undo` may be done twice.

A chunk of zeros, NaN or uninitialised items becomes an entry without stored bytes, as readers of a frame demand. Where
sizes vary it becomes a repeated-value chunk, because entries have no size.

Source: docs/format/cframe.md, "Special entries" and "Variable chunk sizes".
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from array import array
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from superchunk import _engine
from superchunk._format.frame_index import MAX_CHUNKS, SLAB, special_entry, special_kind
from superchunk._format.metalayers import check_name
from superchunk._store.chunk_list import ChunkTable
from superchunk.exceptions import (
    ArgumentError,
    ChunkIndexError,
    FormatError,
    MetalayerKeyError,
    MetalayerValueError,
    StorageError,
    SuperchunkError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from superchunk._engine import ChunkInfo, Source
    from superchunk._format.frame_index import Index, JournalMark
    from superchunk._store.store_interface import FrameSettings

__all__ = ["NAN_ITEMS", "Change", "Mark", "MutableChunkTable", "PastTable", "check_same_length", "repeated_chunk"]

_ZERO, _NAN, _VALUE = 1, 2, 3
_MAX_STORED_TYPESIZE = 255
NAN_ITEMS: Final = {4: b"\0\0\xc0\x7f", 8: b"\0\0\0\0\0\0\xf8\x7f"}
"""Bytes of an item -> a NaN of so many."""


class Mark(ABC):
    """What a table was at one moment: what `undo` comes back to, and what those see who must not see a change.

    The annotated names are attributes of the table; a mark has what they were. Each change begins with one, so all
    are taken in one step: one by one, as a dataclass does it, that took 3 us.
    """

    __slots__ = ("_edits", "_noted", "journal", "version")

    _offsets: ClassVar[dict[str, int]]
    _values_of: ClassVar[attrgetter[tuple[Any, ...]]]

    def __init_subclass__(cls) -> None:
        """Collect the annotated names, those of the classes above first."""
        names: list[str] = []
        for kind in reversed(cls.__mro__):
            if issubclass(kind, Mark):
                noted = kind.__annotations__.items()
                names += [n for n, what in noted if n not in Mark.__slots__ and not str(what).startswith("ClassVar")]
        cls._offsets = {name: at for at, name in enumerate(names)}
        cls._values_of = attrgetter(*names)

    def __init__(self, table: MutableChunkTable) -> None:
        """Note down what `table` is now."""
        self._noted = self._values_of(table)
        self.journal: JournalMark = table.index.mark()
        """Records of the index's journal."""
        self.version, self._edits = table.version, table._edits  # which the end of each change compares

    if not TYPE_CHECKING:  # a name without annotation is none

        def __getattr__(self, name: str) -> Any:
            """Return what the table's attribute `name` was."""
            try:
                return self._noted[self._offsets[name]]
            except KeyError:
                raise AttributeError(f"{type(self).__name__}: {name} is not noted down") from None

    version: int
    epoch: int
    nbytes: int
    fixed_size: int
    vlmeta: Mapping[str, bytes]
    meta: Mapping[str, bytes]
    settings: FrameSettings
    _edits: int
    _vlblocks: bool | None
    _live: tuple[int, int] | None
    _urgent: bool

    @property
    def sealed(self) -> bool:
        """Whether seals behind chunks proved something then."""
        return False

    @property
    @abstractmethod
    def seals(self) -> range | None:
        """The entries whose chunks have seals; None: no seal proves anything."""

    @abstractmethod
    def place(self, entry: int, nchunk: int) -> Source:
        """Return where the stored chunk `nchunk` with entry `entry` is."""


class PastTable(ChunkTable):
    """A list of chunks as it was at a `Mark`; nothing changes it."""

    def __init__(self, mark: Mark, index: Index) -> None:
        """Take what was noted, and the index as it was then."""
        self.mark = mark
        self.index = index
        self.settings, self.version = mark.settings, mark.version
        self.nbytes, self.fixed_size = mark.nbytes, mark.fixed_size
        self.meta, self.vlmeta = mark.meta, mark.vlmeta
        self._vlblocks, self._live = mark._vlblocks, mark._live
        self._specials = {}
        self.seals = mark.seals
        """The entries whose chunks have seals; None: no seal proves anything."""
        self.place = mark.place  # type: ignore[method-assign]

    @property
    def sealed(self) -> bool:
        """Whether seals behind chunks proved something then."""
        return self.mark.sealed

    def changed_since(self, version: int) -> bool:
        """Return False: nothing changes it."""
        del version
        return False


class Change:
    """A change of a table under way, for `_engine.Section`, whose block it is.

    Parameters
    ----------
    table
        What is changed.
    owner
        Whose change it is: a handle, that sees it before it is committed.
    transaction
        It is committed when it ends, down to the disk.
    at_once
        It is committed when it ends.
    idle
        Nothing is changed; what waits is committed inside, perhaps.

    """

    __slots__ = ("at_once", "idle", "left", "lock", "mark", "owner", "past", "table", "thread", "transaction", "undone")

    mark: Mark
    """The table when it began."""
    thread: int
    """The thread that makes it."""

    def __init__(
        self,
        table: MutableChunkTable,
        owner: object,
        *,
        transaction: bool = False,
        at_once: bool = False,
        idle: bool = False,
    ) -> None:
        self.table = table
        self.owner = owner
        self.transaction = transaction
        self.at_once = at_once
        self.idle = idle
        self.lock = table.lock
        self.left = False
        """Whether its block was left; set by `_engine.Section`, which no interrupt keeps from that."""
        self.undone = False
        """Whether it is being taken back."""
        self.past: PastTable | None = None
        """The table when it began, for other threads, once one has asked."""

    def begin(self) -> Any:
        """Begin, holding the lock.

        Raises
        ------
        StorageError
            A transaction would begin inside another.

        """
        table = self.table
        if table.changes or table.switch is not None:
            table.heal()
        if self.transaction and table.in_transaction:
            raise StorageError("a transaction is under way already; one cannot begin inside another")
        self.mark = table.mark_type(table)
        table.noted(self.mark)
        self.thread = threading.get_ident()
        table.changes.append(self)
        return None if self.transaction else table

    def end(self, kind: type[BaseException] | None) -> None:
        """End, holding the lock: whole, or after an exception of `kind` not at all."""
        table = self.table
        if self not in table.changes:
            return  # in a child process, or with another frame in this one's place
        while table.changes[-1] is not self:
            table.take_back()
        if kind is not None:
            table.take_back()
            return
        try:
            table.finish(self)
        except BaseException:
            table.take_back()
            raise
        table.changes.remove(self)


def repeated_chunk(kind: int, nbytes: int, typesize: int, item: bytes | None = None) -> bytes:
    """Return `nbytes` of special value `kind` as a chunk that a frame can store.

    C-Blosc2 reads a repeated item only if the item is as long as the items of the frame, and no longer than a chunk
    header can name. Where that cannot be, the items become an ordinary chunk.

    Parameters
    ----------
    kind
        The special value.
    nbytes
        Bytes of the content.
    typesize
        Bytes of an item of the frame.
    item
        What is repeated, of any length that divides `nbytes`; None: an item of `kind`.

    """
    if item is None:
        item = _item_of(kind, nbytes, typesize)
    width = len(item)
    if typesize <= _MAX_STORED_TYPESIZE and nbytes % typesize == 0 and typesize % width == 0:
        return _engine.special_chunk(_VALUE, nbytes, typesize, item * (typesize // width))
    if not any(item):
        return _engine.zeros_in_blocks(nbytes, typesize)
    return _engine.compress(item * (nbytes // width), _engine.EncodeParams(codec=5, clevel=5, typesize=typesize))


def _item_of(kind: int, nbytes: int, typesize: int) -> bytes:
    """Return the item that a special value other than VALUE repeats."""
    if kind != _NAN:
        return b"\0"
    if typesize not in NAN_ITEMS or nbytes % typesize:
        raise FormatError("typesize of NaN", at=3, expected="4 or 8", found=typesize)
    return NAN_ITEMS[typesize]


def check_same_length(old: bytes | None, name: str, content: bytes) -> None:
    """Refuse to change a fixed metalayer that is not there, or in length."""
    if old is None:
        raise MetalayerKeyError(f"metalayer {name!r}: there is none of that name")
    if len(content) != len(old):
        raise MetalayerValueError(
            f"metalayer {name!r}: expected {len(old)} bytes, as when it was made, got {len(content)}"
        )


class MutableChunkTable(ChunkTable, ABC):
    """A `ChunkTable` that can be changed, by one thread at a time."""

    mark_type: ClassVar[type[Mark]]
    """What notes down how it is."""
    lock: threading.RLock
    """Held by whoever changes the table."""
    changes: list[Change]
    """The changes under way, each inside the one before."""
    switch: object = None
    """The commit whose switch is being made, until its outcome is known."""
    epoch: int
    """How often what was noted before has lost its meaning: nothing that was done is undone."""
    _edits: int
    """How often anything was changed that has to be committed."""
    _urgent: bool
    """Whether that has to be committed when the change ends."""
    _dirty: bool
    """Whether anything waits for a commit."""
    _index_changed: bool
    """Whether the list of chunks does."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is under way."""
        return any(change.transaction for change in self.changes)

    def put(self, chunks: Sequence[bytes]) -> Sequence[int]:
        """Store `chunks` and return their entries."""
        raise SuperchunkError(f"no place for {len(chunks)} chunks")

    def put_repeated(self, chunk: bytes, count: int) -> Sequence[int]:
        """Store a chunk `count` times and return the entries."""
        return self.put([chunk] * count)

    # Changes as wholes.

    def noted(self, mark: Mark) -> None:
        """Learn that a change begins at `mark`."""

    @abstractmethod
    def finish(self, change: Change) -> None:
        """End a change: if it is not part of another one, commit it, at once or when it pays.

        It is done when `epoch` grows, and may be undone until then.
        """

    @property
    @abstractmethod
    def seals(self) -> range | None:
        """The entries whose chunks have seals; None: no seal proves anything."""

    def undo(self, mark: Mark) -> None:
        """Come back to the state of `mark`, of the present epoch; doing it twice does no harm."""
        self.version += 1
        self.index.rollback(mark.journal)
        self.nbytes, self.fixed_size = mark.nbytes, mark.fixed_size
        self._vlblocks, self._live = mark._vlblocks, mark._live
        self.meta, self.vlmeta, self.settings = mark.meta, mark.vlmeta, mark.settings
        self._urgent, self._edits = mark._urgent, mark._edits
        self._sizes = self._starts = None
        self._specials.clear()
        self.version += 1

    def take_back(self) -> None:
        """Undo the innermost change, and be done with it."""
        change = self.changes[-1]
        change.undone = True
        self.undo(change.mark)
        del self.changes[-1]

    def heal(self) -> None:
        """Take back what an interrupt has left unfinished; whoever asks holds the lock."""
        while self.changes and self.changes[-1].left:
            self.take_back()

    def whole_before(self, changes: Sequence[Change]) -> Change | None:
        """Return which of `changes` under way hides what it does from other threads; None: none does.

        A transaction is many calls, and hides nothing until it is taken back.
        """
        outermost = changes[0]
        if not outermost.transaction or outermost.undone:
            return outermost
        return changes[1] if len(changes) > 1 else None

    def past_of(self, change: Change) -> PastTable | None:
        """Return the table as it was when `change` began, for other threads; None if that is over, or soon will be."""
        if change.past is None:
            index = self.index.as_of(change.mark.journal)
            if index is None or change not in self.changes or self.epoch != change.mark.epoch:
                return None
            change.past = PastTable(change.mark, index)
        return change.past

    # Changing, inside a change.

    def insert(self, nchunk: int | None, chunks: Sequence[bytes]) -> int:
        """Put `chunks` before chunk `nchunk`, None behind all others; return the number of chunks afterwards."""
        index = self.index
        nchunks = index.length
        if nchunk is None:
            nchunk = nchunks
        elif not 0 <= nchunk <= nchunks:
            raise ChunkIndexError(nchunk, nchunks + 1)
        if not chunks:
            return nchunks
        if nchunks + len(chunks) > MAX_CHUNKS:
            raise ValueError(f"nchunks: expected at most {MAX_CHUNKS}, got {nchunks + len(chunks)}")
        if len(chunks) == 1:  # the usual case
            infos = [self._checked(chunks[0])]
            sizes = [infos[0].nbytes]
        else:
            infos = [self._checked(chunk) for chunk in chunks]
            sizes = [info.nbytes for info in infos]
        self._set_kind(infos, nchunks)
        if self.fixed_size > 0 and not self._fits(nchunk, nchunks, sizes):
            self._switch_to_variable()
        entries = self._entries(chunks, infos)
        index.insert(nchunk, entries)
        self.nbytes += sum(sizes)
        if self._sizes is not None:
            self._sizes[nchunk:nchunk] = array("q", sizes)
        self._changed()
        return nchunks + len(chunks)

    def replace(self, nchunk: int, chunk: bytes) -> None:
        """Put `chunk` in the place of chunk `nchunk`."""
        nchunks = len(self.index)
        if not 0 <= nchunk < nchunks:
            raise ChunkIndexError(nchunk, nchunks)
        info = self._checked(chunk)
        if nchunks > 1:
            self._set_kind([info], nchunks)
        else:
            self._vlblocks = info.vlblocks
        old = self.chunk_nbytes(nchunk)
        if self.fixed_size > 0 and info.nbytes != old:
            is_last = nchunk == nchunks - 1
            if not is_last or info.nbytes > self.fixed_size:
                self._switch_to_variable()
        self._count_out(nchunk)
        self.index.replace(nchunk, self._entries([chunk], [info])[0])
        self.nbytes += info.nbytes - old
        if self._sizes is not None:
            self._sizes[nchunk] = info.nbytes
        self._changed()

    def delete(self, nchunk: int) -> int:
        """Remove chunk `nchunk`; return the number of chunks left."""
        self.nbytes -= self.chunk_nbytes(nchunk)
        self._count_out(nchunk)
        self.index.delete(nchunk)
        if not len(self.index):
            self._live = (0, 0)
        if self._sizes is not None:
            del self._sizes[nchunk]
        self._changed()
        return len(self.index)

    def reorder(self, order: Sequence[int]) -> None:
        """Put chunk ``order[i]`` at place i.

        Raises
        ------
        ValueError
            `order` is no permutation of all chunk numbers.

        """
        nchunks = len(self.index)
        wanted = [int(nchunk) for nchunk in order]
        if len(wanted) != nchunks or sorted(wanted) != list(range(nchunks)):
            raise ValueError(f"order: expected each of 0 to {nchunks - 1} once, got {len(wanted)} numbers")
        if not nchunks or wanted == list(range(nchunks)):
            return
        short = self.fixed_size > 0 and self._last_size() != self.fixed_size
        if short and wanted[-1] != nchunks - 1:
            self._switch_to_variable()
        entries = self.index.slice(0, nchunks)
        self.index.assign(entries[nchunk] for nchunk in wanted)
        if self._sizes is not None:
            self._sizes = array("q", (self._sizes[nchunk] for nchunk in wanted))
        self._changed()

    def rearrange(self, order: Sequence[int]) -> None:
        """Make chunk ``order[i]`` of now chunk i, and a chunk of zeros where that is negative; the others go.

        All chunks must have, and will have, the same size.

        Raises
        ------
        ValueError
            Sizes vary, the last chunk is shorter, there is no such chunk, one is wanted twice, or there would be
            too many.

        """
        nchunks = len(self.index)
        if self.fixed_size <= 0 or self.nbytes != nchunks * self.fixed_size:
            raise ValueError(f"nbytes: expected {nchunks} full chunks of one size, got {self.nbytes} bytes")
        if len(order) > MAX_CHUNKS:
            raise ValueError(f"nchunks: expected at most {MAX_CHUNKS}, got {len(order)}")
        kept = bytearray(nchunks)
        for nchunk in order:
            if nchunk >= nchunks or (nchunk >= 0 and kept[nchunk]):
                raise ValueError(f"order: expected each of 0 to {nchunks - 1} once at most, got {nchunk}")
            if nchunk >= 0:
                kept[nchunk] = 1
        entries = self.index.slice(0, nchunks)
        self._count_all_out([nchunk for nchunk, stays in enumerate(kept) if not stays])
        zeros = special_entry(_ZERO)
        self.index.assign(entries[nchunk] if nchunk >= 0 else zeros for nchunk in order)
        if self._live is not None:
            stored, specials = self._live
            self._live = (stored, specials + sum(nchunk < 0 for nchunk in order))
        self.nbytes = len(order) * self.fixed_size
        self._sizes = None
        self._changed()

    def _count_all_out(self, nchunks: Sequence[int]) -> None:
        """Take chunks out of the sums over live chunks, if they are known."""
        if self._live is None or not nchunks:
            return
        stored, specials = self._live
        entries = [(self.index[nchunk], nchunk) for nchunk in nchunks]
        places = [self.place(entry, nchunk) for entry, nchunk in entries if entry >= 0]
        try:
            gone = sum(cbytes for _, cbytes in _engine.sizes(places))
        except SuperchunkError:
            self._live = None  # they can be removed all the same
        else:
            self._live = (stored - gone, specials - len(entries) + len(places))

    def fill_special(self, kind: int, nbytes: int, value: bytes | None) -> None:
        """Fill an empty list with `nbytes` of special value `kind`."""
        chunksize = self.fixed_size
        if len(self.index):
            raise SuperchunkError(f"nchunks: expected 0 to fill, got {len(self.index)}")
        if chunksize <= 0:
            raise ValueError("chunksize: expected a fixed size to fill, got none")
        if kind == _VALUE and value is not None and not any(value):
            kind = _ZERO
        nchunks = -(-nbytes // chunksize)
        if nbytes < 0 or nchunks > MAX_CHUNKS:
            raise ValueError(f"nbytes: expected 0 to {MAX_CHUNKS * chunksize}, got {nbytes}")
        if not nbytes:
            return
        if kind == _NAN and self.settings.typesize not in NAN_ITEMS:
            raise ValueError(f"typesize: expected 4 or 8 for NaN, got {self.settings.typesize}")
        last = nbytes - (nchunks - 1) * chunksize
        self._vlblocks = False
        if kind == _VALUE:
            self._fill_value(nchunks, last, value)
        else:
            self.index.assign_repeated(special_entry(kind), nchunks)
            self._live = (0, nchunks)
        self.nbytes = nbytes
        self._changed()

    def set_vlmeta(self, name: str, chunk: bytes, *, most: int) -> None:
        """Add or change a vlmetalayer; there may be `most`."""
        check_name(name)
        if name not in self.vlmeta and len(self.vlmeta) >= most:
            raise MetalayerValueError(f"vlmetalayers: expected at most {most}, got {len(self.vlmeta)} and {name!r}")
        self.vlmeta = {**self.vlmeta, name: bytes(chunk)}
        self._edited(at_once=True)

    def del_vlmeta(self, name: str) -> None:
        """Remove a vlmetalayer."""
        if name not in self.vlmeta:
            raise MetalayerKeyError(f"vlmetalayer {name!r}: there is none of that name")
        self.vlmeta = {key: held for key, held in self.vlmeta.items() if key != name}
        self._edited(at_once=True)

    def _checked(self, chunk: bytes) -> ChunkInfo:
        info = _engine.describe(chunk)
        if not info.nbytes:
            raise ArgumentError("chunk: expected at least 1 byte of content, got 0")
        return info

    def _set_kind(self, infos: Sequence[ChunkInfo], nchunks: int) -> None:
        """Let the first of `nchunks` chunks decide sizes and kind of blocks; refuse a mixture."""
        if not nchunks:
            self._vlblocks = infos[0].vlblocks
            if self.fixed_size < 0:
                self.fixed_size = infos[0].nbytes
        expected = self._vlblocks
        if expected is None:
            expected = self.vlblocks
        for info in infos:
            if info.vlblocks != expected:
                kinds = ("ordinary blocks", "variable-length blocks")
                raise ArgumentError(f"chunk: expected {kinds[expected]} like the others, got {kinds[not expected]}")

    def _fits(self, nchunk: int, nchunks: int, sizes: Sequence[int]) -> bool:
        """Return whether chunks of `sizes` before chunk `nchunk` of `nchunks` keep the fixed size."""
        full = self.fixed_size
        if len(sizes) > 1 and any(size != full for size in sizes[:-1]):
            return False
        if nchunk < nchunks:
            return sizes[-1] == full
        return sizes[-1] <= full and self.nbytes == nchunks * full

    def _entries(self, chunks: Sequence[bytes], infos: Sequence[ChunkInfo]) -> Sequence[int]:
        """Store chunks, as entries alone where that is possible; return the entries."""
        if len(chunks) == 1 and not infos[0].special:  # the usual case, without lists
            info = infos[0]
            if self._live is not None:
                self._live = (self._live[0] + info.cbytes, self._live[1])
            return self.put(chunks if len(chunks[0]) == info.cbytes else [chunks[0][: info.cbytes]])
        entries: list[int | None] = []
        stored: list[bytes] = []
        typesize = self.settings.typesize
        for chunk, info in zip(chunks, infos, strict=True):
            kind = info.special
            item = NAN_ITEMS.get(info.typesize) if kind == _NAN else info.repeated_value
            if not kind or (kind == _VALUE and item is not None and len(item) == typesize <= _MAX_STORED_TYPESIZE):
                entries.append(None)
                stored.append(chunk if len(chunk) == info.cbytes else chunk[: info.cbytes])
            elif self.fixed_size > 0 and kind != _VALUE and (kind != _NAN or info.typesize == typesize):
                entries.append(special_entry(kind))
            else:
                entries.append(None)
                stored.append(repeated_chunk(kind, info.nbytes, typesize, item))
        if self._live is not None:
            total, specials = self._live
            self._live = (total + sum(map(len, stored)), specials + len(entries) - len(stored))
        if not stored:
            return [entry for entry in entries if entry is not None]
        places = self.put(stored)
        if len(stored) == len(entries):
            return places
        following = iter(places)
        return [next(following) if entry is None else entry for entry in entries]

    def _fill_value(self, nchunks: int, last: int, value: bytes | None) -> None:
        width = len(value) if value is not None else 0
        typesize = width if width <= _MAX_STORED_TYPESIZE else 1
        blocksize = self.settings.blocksize  # readers of arrays look for it here as well
        full = _engine.special_chunk(_VALUE, self.fixed_size, typesize, value, min(blocksize, self.fixed_size))
        final = _engine.special_chunk(_VALUE, last, typesize, value, min(blocksize, last))
        self._live = (0, 0)
        total = 0
        for start in range(0, nchunks - 1, SLAB):
            count = min(start + SLAB, nchunks - 1) - start
            self.index.insert(start, self.put_repeated(full, count))
            total += len(full) * count
        self.index.insert(nchunks - 1, self.put([final]))
        self._live = (total + len(final), 0)

    def _switch_to_variable(self) -> None:
        """Let sizes vary: special entries lose theirs, so they become stored chunks."""
        nchunks = len(self.index)
        sizes = array("q", (self.fixed_size,)) * nchunks
        if nchunks:
            sizes[-1] = self._last_size()
        live = self._live
        stored, specials = live if live is not None else (0, 0)
        typesize = self.settings.typesize
        entries = self.index.slice(0, nchunks)
        special = [nchunk for nchunk, entry in enumerate(entries) if entry < 0]
        for start in range(0, len(special), SLAB):
            slab = special[start : start + SLAB]
            chunks = [repeated_chunk(special_kind(entries[nchunk], nchunk), sizes[nchunk], typesize) for nchunk in slab]
            stored += sum(map(len, chunks))
            specials -= len(chunks)
            for nchunk, entry in zip(slab, self.put(chunks), strict=True):
                entries[nchunk] = entry
        if special:
            self.index.assign(entries)
        if live is not None:
            self._live = (stored, specials)
        self.fixed_size = 0
        self._sizes = sizes

    def _count_out(self, nchunk: int) -> None:
        """Take chunk `nchunk` out of the sums over live chunks, if they are known."""
        if self._live is None:
            return
        stored, specials = self._live
        entry = self.index[nchunk]
        if entry < 0:
            self._live = (stored, specials - 1)
            return
        try:
            cbytes = _engine.sizes([self.place(entry, nchunk)])[0][1]
        except SuperchunkError:
            self._live = None  # it can be removed all the same
        else:
            self._live = (stored - cbytes, specials)

    def _changed(self) -> None:
        """Note that chunks were changed."""
        self._starts = None
        if self._specials:
            self._specials.clear()
        self._edits += 1
        self.version += 1
        self._dirty = self._index_changed = True

    def _edited(self, *, at_once: bool = False) -> None:
        """Note that something was changed, which has to be committed, perhaps at once."""
        self._edits += 1
        self._urgent = self._urgent or at_once
        self.version += 1
