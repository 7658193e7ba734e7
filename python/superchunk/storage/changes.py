"""Changes to the list of chunks that both stores share.

Every change happens whole or not at all: `begin` notes the state, `undo` comes back to
it, and `done` lets the store commit. Inside a batch, `done` comes at its end.

A chunk of zeros, NaN or uninitialised items becomes an entry without stored bytes, as
readers of a frame demand; where sizes vary it becomes a repeated-value chunk, since
entries do not tell a size.

Source: docs/format/cframe.md, "Special entries" and "Variable chunk sizes".
"""

from __future__ import annotations

from array import array
from contextlib import contextmanager
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk.exceptions import (
    ChunkIndexError,
    FormatError,
    MetalayerKeyError,
    MetalayerValueError,
    StorageError,
    SuperchunkError,
)
from superchunk.frame.index import MAX_CHUNKS, special_entry, special_kind
from superchunk.frame.metalayers import check_name
from superchunk.storage.table import ChunkTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from superchunk._engine import ChunkInfo

__all__ = ["Mark", "MutableChunkTable", "check_same_length", "repeated_chunk"]

_ZERO, _NAN, _VALUE = 1, 2, 3
_SLAB = 8192
_MAX_STORED_TYPESIZE = 255
_NAN_ITEMS = {4: b"\0\0\xc0\x7f", 8: b"\0\0\0\0\0\0\xf8\x7f"}

Mark = tuple[object, ...]
"""What `begin` returns for `undo`."""


def repeated_chunk(kind: int, nbytes: int, typesize: int) -> bytes:
    """Return `nbytes` of special value `kind` as a repeated-value chunk."""
    if typesize > _MAX_STORED_TYPESIZE or nbytes % typesize:
        typesize = 1
    value = bytes(typesize)
    if kind == _NAN:
        if typesize not in _NAN_ITEMS:
            raise FormatError("typesize of NaN", at=3, expected="4 or 8", found=typesize)
        value = _NAN_ITEMS[typesize]
    return _engine.special_chunk(_VALUE, nbytes, typesize, value)


def check_same_length(old: bytes | None, name: str, content: bytes) -> None:
    """Refuse to change a fixed metalayer that is not there, or in length."""
    if old is None:
        raise MetalayerKeyError(f"metalayer {name!r}: there is none of that name")
    if len(content) != len(old):
        raise MetalayerValueError(
            f"metalayer {name!r}: expected {len(old)} bytes, as when it was made, got {len(content)}"
        )


class MutableChunkTable(ChunkTable):
    """A `ChunkTable` that can be changed, by one thread at a time."""

    in_transaction = False
    """Whether a transaction is under way."""
    _must_sync = False

    def put(self, chunks: Sequence[bytes]) -> Sequence[int]:
        """Store `chunks` and return their entries."""
        raise SuperchunkError(f"no place for {len(chunks)} chunks")

    def put_repeated(self, chunk: bytes, count: int) -> Sequence[int]:
        """Store a chunk `count` times and return the entries."""
        return self.put([chunk] * count)

    def begin(self) -> Mark:
        """Return what `undo` needs to come back to this state."""
        return (
            self.index.mark(),
            self.nbytes,
            self.fixed_size,
            self._vlblocks,
            self._live,
            self.vlmeta,
            self.settings,
            self._urgent,
        )

    def undo(self, mark: Mark) -> None:
        """Come back to the state of `mark`."""
        (journal, nbytes, fixed_size, vlblocks, live, vlmeta, settings, urgent) = mark[:8]
        self.index.rollback(journal)  # type: ignore[arg-type]
        self.nbytes, self.fixed_size = nbytes, fixed_size  # type: ignore[assignment]
        self._vlblocks, self._live = vlblocks, live  # type: ignore[assignment]
        self.vlmeta, self.settings = vlmeta, settings  # type: ignore[assignment]
        self._urgent = urgent  # type: ignore[assignment]
        self._sizes = self._starts = None
        self._specials.clear()
        self.version += 1

    def done(self, *, at_once: bool) -> None:
        """End a change that stands on its own: commit it, `at_once` or when it pays."""
        del at_once
        self.index.forget()

    # Changing.

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Make the changes inside one change."""
        mark = self.begin()
        before = self.version
        outside = self._depth
        inside = self._depth = outside + 1
        abandoned = False
        try:
            try:
                yield
            finally:
                abandoned = self._depth != inside  # in a child process, or with another frame in this one's place
                if not abandoned:
                    self._depth = outside
            if self.version != before and not abandoned:
                self._finish()
        except BaseException:
            self.undo(mark)
            raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make the changes inside one change, on the disk when it ends.

        Raises
        ------
        StorageError
            One is under way already.

        """
        if self.in_transaction:
            raise StorageError("a transaction is under way already; one cannot begin inside another")
        self.in_transaction = True
        try:
            with self.batch():
                yield
                self._urgent = self._must_sync = True
        finally:
            self.in_transaction = self._must_sync = False

    def insert(self, nchunk: int, chunks: Sequence[bytes]) -> None:
        """Put `chunks` before chunk `nchunk`; the number of chunks appends."""
        index = self.index
        nchunks = len(index)
        if not 0 <= nchunk <= nchunks:
            raise ChunkIndexError(nchunk, nchunks + 1)
        if not chunks:
            return
        if nchunks + len(chunks) > MAX_CHUNKS:
            raise ValueError(f"nchunks: expected at most {MAX_CHUNKS}, got {nchunks + len(chunks)}")
        infos = [self._checked(chunk) for chunk in chunks]
        mark = self.begin()
        try:
            self._set_kind(infos)
            sizes = [info.nbytes for info in infos]
            if self.fixed_size > 0 and not self._fits(nchunk, sizes):
                self._switch_to_variable()
            entries = self._entries(chunks, infos)
            index.insert(nchunk, entries)
            self.nbytes += sum(sizes)
            if self._sizes is not None:
                self._sizes[nchunk:nchunk] = array("q", sizes)
            self._changed()
            self._finish()
        except BaseException:
            self.undo(mark)
            raise

    def replace(self, nchunk: int, chunk: bytes) -> None:
        """Put `chunk` in the place of chunk `nchunk`."""
        nchunks = len(self.index)
        if not 0 <= nchunk < nchunks:
            raise ChunkIndexError(nchunk, nchunks)
        info = self._checked(chunk)
        mark = self.begin()
        try:
            if nchunks > 1:
                self._set_kind([info])
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
            self._finish()
        except BaseException:
            self.undo(mark)
            raise

    def delete(self, nchunk: int) -> None:
        """Remove chunk `nchunk`."""
        mark = self.begin()
        try:
            self.nbytes -= self.chunk_nbytes(nchunk)
            self._count_out(nchunk)
            self.index.delete(nchunk)
            if not len(self.index):
                self._live = (0, 0)
            if self._sizes is not None:
                del self._sizes[nchunk]
            self._changed()
            self._finish()
        except BaseException:
            self.undo(mark)
            raise

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
        mark = self.begin()
        try:
            short = self.fixed_size > 0 and self._last_size() != self.fixed_size
            if short and wanted[-1] != nchunks - 1:
                self._switch_to_variable()
            entries = self.index.slice(0, nchunks)
            self.index.assign(entries[nchunk] for nchunk in wanted)
            if self._sizes is not None:
                self._sizes = array("q", (self._sizes[nchunk] for nchunk in wanted))
            self._changed()
            self._finish()
        except BaseException:
            self.undo(mark)
            raise

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
        mark = self.begin()
        try:
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
            self._finish()
        except BaseException:
            self.undo(mark)
            raise

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
        if kind == _NAN and self.settings.typesize not in _NAN_ITEMS:
            raise ValueError(f"typesize: expected 4 or 8 for NaN, got {self.settings.typesize}")
        last = nbytes - (nchunks - 1) * chunksize
        mark = self.begin()
        try:
            self._vlblocks = False
            if kind == _VALUE:
                self._fill_value(nchunks, last, value)
            else:
                self.index.assign_repeated(special_entry(kind), nchunks)
                self._live = (0, nchunks)
            self.nbytes = nbytes
            self._changed()
            self._finish()
        except BaseException:
            self.undo(mark)
            raise

    def set_vlmeta(self, name: str, chunk: bytes, *, most: int) -> None:
        """Add or change a vlmetalayer; there may be `most`."""
        check_name(name)
        if name not in self.vlmeta and len(self.vlmeta) >= most:
            raise MetalayerValueError(f"vlmetalayers: expected at most {most}, got {len(self.vlmeta)} and {name!r}")
        mark = self.begin()
        try:
            self.vlmeta = {**self.vlmeta, name: bytes(chunk)}
            self.version += 1
            self._finish(at_once=True)
        except BaseException:
            self.undo(mark)
            raise

    def del_vlmeta(self, name: str) -> None:
        """Remove a vlmetalayer."""
        if name not in self.vlmeta:
            raise MetalayerKeyError(f"vlmetalayer {name!r}: there is none of that name")
        mark = self.begin()
        try:
            self.vlmeta = {key: held for key, held in self.vlmeta.items() if key != name}
            self.version += 1
            self._finish(at_once=True)
        except BaseException:
            self.undo(mark)
            raise

    def _finish(self, *, at_once: bool = False) -> None:
        """End a change, or leave that to the batch around it."""
        self._urgent = self._urgent or at_once
        if self._depth == 0:
            self.done(at_once=self._urgent)
            self._urgent = False

    def _checked(self, chunk: bytes) -> ChunkInfo:
        info = _engine.describe(chunk)
        if not info.nbytes:
            raise ValueError("chunk: expected at least 1 byte of content, got 0")
        return info

    def _set_kind(self, infos: Sequence[ChunkInfo]) -> None:
        """Let the first chunk decide sizes and kind of blocks; refuse a mixture."""
        if not len(self.index):
            self._vlblocks = infos[0].vlblocks
            if self.fixed_size < 0:
                self.fixed_size = infos[0].nbytes
        expected = self.vlblocks
        for info in infos:
            if info.vlblocks != expected:
                kinds = ("ordinary blocks", "variable-length blocks")
                raise ValueError(f"chunk: expected {kinds[expected]} like the others, got {kinds[not expected]}")

    def _fits(self, nchunk: int, sizes: Sequence[int]) -> bool:
        """Return whether chunks of `sizes` before chunk `nchunk` keep the fixed size."""
        full = self.fixed_size
        nchunks = len(self.index)
        if len(sizes) > 1 and any(size != full for size in sizes[:-1]):
            return False
        if nchunk < nchunks:
            return sizes[-1] == full
        return sizes[-1] <= full and (not nchunks or self._last_size() == full)

    def _entries(self, chunks: Sequence[bytes], infos: Sequence[ChunkInfo]) -> Sequence[int]:
        """Store chunks, as entries alone where that is possible; return the entries."""
        if len(chunks) == 1 and infos[0].special in (0, _VALUE):  # the usual case, without lists
            info = infos[0]
            if self._live is not None:
                self._live = (self._live[0] + info.cbytes, self._live[1])
            return self.put(chunks if len(chunks[0]) == info.cbytes else [chunks[0][: info.cbytes]])
        entries: list[int | None] = []
        stored: list[bytes] = []
        typesize = self.settings.typesize
        for chunk, info in zip(chunks, infos, strict=True):
            kind = info.special
            if kind in (0, _VALUE):
                entries.append(None)
                stored.append(chunk if len(chunk) == info.cbytes else chunk[: info.cbytes])
            elif self.fixed_size > 0 and (kind != _NAN or info.typesize == typesize):
                entries.append(special_entry(kind))
            else:
                entries.append(None)
                stored.append(repeated_chunk(kind, info.nbytes, info.typesize))
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
        for start in range(0, nchunks - 1, _SLAB):
            count = min(start + _SLAB, nchunks - 1) - start
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
        for start in range(0, len(special), _SLAB):
            slab = special[start : start + _SLAB]
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
        self._starts = None
        if self._specials:
            self._specials.clear()
        self.version += 1
