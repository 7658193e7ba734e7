"""The list of chunks that both stores share: what chunks are where, and their sizes.

In memory and in a frame, a chunk is an entry of an `Index`. A negative entry is a chunk of one value without stored
bytes. Other entries are numbers that the store turns into sources.

All chunks but the last have `chunksize` bytes, and the last has at most as many. The first change that breaks this
switches the list to variable sizes, permanently. Every chunk then has its own size, and chunks of one value are stored
as repeated values. Changes are in `changes_and_undo`.

Source: docs/format/cframe.md, "Special entries" and "Variable chunk sizes".
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._format.frame_index import CHUNK_MIN, MAX_CHUNKS, count_special, special_kind
from superchunk.exceptions import (
    ChunkIndexError,
    FormatError,
    SuperchunkError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from superchunk._engine import Request, Source
    from superchunk._format.frame_index import Index
    from superchunk._store.store_interface import FrameSettings

__all__ = ["ChunkTable"]

_UNINIT = 4
_NEAR = 8192
"""Chunk numbers within so many are looked up together."""
_MAX_CHUNK_NBYTES = 2**31 - 33
_SPREAD = 64
"""Chunk numbers that far apart, on average, are looked up one by one."""
_MAX_STORED_TYPESIZE = 255


def _special_chunk(kind: int, nbytes: int, typesize: int, blocksize: int) -> bytes:
    """Return the chunk that an entry of special value `kind` stands for.

    Raises
    ------
    FormatError
        There is no such chunk: NaN of an item size other than 4 and 8.

    """
    if typesize > _MAX_STORED_TYPESIZE or (kind == _UNINIT and nbytes % typesize):
        typesize = 1
    try:
        return _engine.special_chunk(kind, nbytes, typesize, None, blocksize)
    except ValueError as error:
        raise FormatError(
            f"index entry of special value {kind}",
            at=0,
            expected="a chunk that can be",
            found=f"{nbytes} bytes of typesize {typesize}: {error}",
        ) from error


class ChunkTable:
    """Chunks as entries, a `ChunkList`; a store adds where the bytes of an entry are.

    Reading may go on in several threads while one makes changes. Who makes a table fills the fields without a value.
    """

    settings: FrameSettings
    index: Index
    nbytes: int
    """Bytes of all chunks."""
    fixed_size: int
    """Bytes of a full chunk, 0 if sizes vary, -1 before the first chunk."""
    vlmeta: Mapping[str, bytes]
    meta: Mapping[str, bytes]
    """The fixed metalayers, raw. Nothing adds or removes one."""
    version: int
    """Grows with every change."""
    replacing = False
    """Whether what the entries refer to is being exchanged, so that both do not go together for a moment."""
    _vlblocks: bool | None
    """Whether chunks have variable-length blocks; None: the first chunk has to be asked."""
    _specials: dict[tuple[int, int], bytes]
    """Chunks that entries without stored bytes stand for."""
    _sizes: array[int] | None = None
    _starts: array[int] | None = None
    _live: tuple[int, int] | None
    """What `live` says, once it is known."""

    # What a store adds.

    def most_stored(self) -> int:
        """Return how many chunks can be stored in the bytes that there are."""
        return MAX_CHUNKS

    def place(self, entry: int, nchunk: int) -> Source:
        """Return where the stored chunk `nchunk` with entry `entry` is."""
        raise SuperchunkError(f"chunk {nchunk}: no place for entry {entry}")

    def places(self, numbered: Iterable[tuple[int, int]]) -> list[Source]:
        """Return where the chunks are that are given by number and entry, special ones too."""
        place, special = self.place, self._special
        return [place(entry, nchunk) if entry >= 0 else special(entry, nchunk) for nchunk, entry in numbered]

    def changed_since(self, version: int) -> bool:
        """Return whether chunks read since `version` may be of more than one state."""
        # In this order: what began in the middle of a move ends in it, or with another version.
        return self.replacing or self.version != version

    # Reading.

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        return self.index.length

    @property
    def cbytes(self) -> int:
        """Sum of the chunks' compressed sizes, bytes; 32 for a special entry."""
        stored, specials = self.live
        return stored + 32 * specials

    @property
    def chunksize(self) -> int:
        """Bytes of a full chunk; 0: sizes vary, or no chunk has set it yet."""
        return max(self.fixed_size, 0)

    @property
    def sealed(self) -> bool:
        """Whether seals behind chunks prove something: nobody else changed the frame."""
        return False

    @property
    def vlblocks(self) -> bool:
        """Whether chunks have variable-length blocks; the first chunk decides."""
        known = self._vlblocks
        if known is None:
            if not len(self.index):
                return False
            known = self.index[0] >= 0 and _engine.describe(self.source(0)).vlblocks
            self._vlblocks = known
        return known

    def source(self, nchunk: int) -> Source:
        """Return where chunk `nchunk` is."""
        index = self.index
        if not 0 <= nchunk < len(index):
            raise ChunkIndexError(nchunk, len(index))
        entry = index[nchunk]
        return self.place(entry, nchunk) if entry >= 0 else self._special(entry, nchunk)

    def requests(self, start: int, stop: int) -> list[Request]:
        """Return the requests that read bytes ``start:stop``, of which there is one or more, in order of the chunks.

        ::

            bytes of the container   |<----------------- start:stop ----------------->|
            chunks                 [ 3         ][ 4         ][ 5         ][ 6         ]
            requests               (s3, n3, a, n3, 0) (s4, n4, 0, n4, ..) ... (s6, n6, 0, z, ..)
        """
        size, nbytes = self.fixed_size, self.nbytes
        found: list[Request] = []
        if size > 0:
            first, last = start // size, (stop - 1) // size
            base = first * size
            for source in self.sources(first, last + 1):
                length = min(size, nbytes - base)
                low, high = max(start - base, 0), min(stop - base, length)
                found.append((source, length, low, high, base + low - start))
                base += size
            return found
        starts = self.starts()
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, stop - 1) - 1
        for nchunk, source in enumerate(self.sources(first, last + 1), first):
            base, end = starts[nchunk], starts[nchunk + 1]
            low, high = max(start, base), min(stop, end)
            if low < high:
                found.append((source, end - base, low - base, high - base, low - start))
        return found

    def sources(self, start: int, stop: int) -> list[Source]:
        """Return where the chunks from `start` to below `stop` are."""
        index = self.index
        if not 0 <= start <= stop <= index.length:
            raise ChunkIndexError(start if not 0 <= start <= index.length else stop - 1, index.length)
        return self.places(enumerate(index.slice(start, stop), start))

    def sources_for(self, nchunks: Sequence[int]) -> list[Source]:
        """Return where the chunks of these ascending numbers are."""
        index = self.index
        if not nchunks:
            return []
        first, last = nchunks[0], nchunks[-1]
        if not 0 <= first <= last < index.length:
            raise ChunkIndexError(first if first < 0 else last, index.length)
        held = index.entries
        if held is not None:
            entries = [held[nchunk] for nchunk in nchunks]
        elif last - first < _NEAR or last - first < _SPREAD * len(nchunks):
            near = index.slice(first, last + 1)
            entries = [near[nchunk - first] for nchunk in nchunks]
        else:
            entries = [index[nchunk] for nchunk in nchunks]
        return self.places(zip(nchunks, entries, strict=True))

    def chunk_nbytes(self, nchunk: int) -> int:
        """Return the uncompressed size of chunk `nchunk`, bytes."""
        nchunks = len(self.index)
        if not 0 <= nchunk < nchunks:
            raise ChunkIndexError(nchunk, nchunks)
        if self.fixed_size <= 0:
            return self._variable_sizes()[nchunk]
        return self.fixed_size if nchunk < nchunks - 1 else self._last_size()

    def starts(self) -> array[int]:
        """Return the n + 1 prefix sums of the chunks' sizes, bytes; do not change it."""
        starts = self._starts
        if starts is None:
            if self.fixed_size > 0:
                sizes = array("q", range(0, self.nbytes, self.fixed_size))
                sizes.append(self.nbytes)
                starts = sizes
            else:
                starts = array("q", accumulate(self._variable_sizes(), initial=0))
            self._starts = starts
        return starts

    @property
    def live(self) -> tuple[int, int]:
        """Compressed bytes of the stored chunks, and how many chunks are not stored."""
        live = self._live
        if live is None:
            stored = specials = 0
            index = self.index
            if index.repeated_entry is not None and index.repeated_entry < 0:
                specials = len(index)
            else:
                for start, entries in index.slabs():
                    without = count_special(entries)
                    specials += without
                    self._check_stored(start + len(entries) - specials)
                    if without < len(entries):
                        places = [self.place(entry, n) for n, entry in enumerate(entries, start) if entry >= 0]
                        stored += sum(cbytes for _, cbytes in _engine.sizes(places))
            live = self._live = (stored, specials)
        return live

    def _check_stored(self, count: int) -> None:
        """Refuse an index that names more stored chunks than there is room for, before all of them are read."""
        most = self.most_stored()
        if count > most:
            raise FormatError(
                "index chunk, entries of stored chunks",
                at=0,
                expected=f"at most {most}, of {CHUNK_MIN} bytes or more each",
                found=f"{count} or more",
            )

    def _special(self, entry: int, nchunk: int) -> bytes:
        nbytes = self.chunk_nbytes(nchunk)
        key = (entry >> 56, nbytes)
        chunk = self._specials.get(key)
        if chunk is None:
            settings = self.settings
            chunk = self._specials[key] = _special_chunk(
                special_kind(entry, nchunk), nbytes, settings.typesize, settings.blocksize
            )
        return chunk

    def _last_size(self) -> int:
        return self.nbytes - self.fixed_size * (len(self.index) - 1)

    def _variable_sizes(self) -> array[int]:
        """Return each chunk's size where sizes vary, from the chunks' headers."""
        sizes = self._sizes
        if sizes is not None:
            return sizes
        sizes = array("q")
        unknown: list[int] = []
        index = self.index
        for start, entries in index.slabs():
            unknown += [nchunk for nchunk, entry in enumerate(entries, start) if entry < 0]
            self._check_stored(start + len(entries) - len(unknown))
            if len(unknown) > 1:
                raise FormatError(
                    f"index entry {unknown[0]}",
                    at=8 * unknown[0],
                    expected="a stored chunk, since chunk sizes vary",
                    found="special entries, which do not tell their size",
                )
            places = [
                self.place(entry, nchunk) if entry >= 0 else bytes(0) for nchunk, entry in enumerate(entries, start)
            ]
            measured = iter(_engine.sizes([place for place in places if place != b""]))
            sizes.extend(next(measured)[0] if place != b"" else 0 for place in places)
        total = sum(sizes)
        if unknown and 0 < self.nbytes - total <= _MAX_CHUNK_NBYTES:
            # The one chunk without a size has what the others leave.
            sizes[unknown[0]] = self.nbytes - total
        elif unknown or total != self.nbytes:
            expected = f"more than {total}" if unknown else f"{total}"
            raise FormatError("nbytes", at=0x1E, expected=f"{expected}, as the chunks hold", found=self.nbytes)
        self._sizes = sizes
        return sizes
