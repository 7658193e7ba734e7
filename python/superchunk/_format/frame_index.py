"""The index of a frame: one 64-bit entry for each chunk.

::

    entry >= 0   the chunk begins at this byte, counted from the end of the header
    entry <  0   a chunk of one value without stored bytes; only the top byte counts:
                 0x81 zeros, 0x82 NaN, 0x84 uninitialised

In a file the entries are the content of an ordinary chunk, little endian, typesize 8. An `Index` reads single entries
through that chunk until a change or a bulk request makes an array of them. An index whose entries are all equal stays
one number. Every change is recorded in a journal before it is made. The journal allows to undo the change after an
interrupt, and to see the index as it was before. Does not know where chunks lie.

Source: docs/format/cframe.md, "Index chunk" and "Special entries".
"""

from __future__ import annotations

import sys
import time
from array import array
from typing import TYPE_CHECKING, Final, Self

from superchunk import _engine
from superchunk.exceptions import FormatError, NewerFormatError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from superchunk._engine import ChunkInfo, Source

__all__ = [
    "CHUNK_MIN",
    "ENTRY_LEN",
    "MAX_CHUNKS",
    "SLAB",
    "Index",
    "JournalMark",
    "check_entry",
    "count_special",
    "located",
    "special_entry",
    "special_kind",
]

ENTRY_LEN = 8
"""Bytes of an entry."""

CHUNK_MIN: Final = 32
"""Bytes of the smallest chunk, which is only a header."""

SLAB: Final = 16384
"""Entries that are read together: those of the largest blocks that writers take, 128 KiB."""

MAX_CHUNKS = 268_435_451
"""Most entries that fit into one index chunk."""

JournalMark = int
"""A place in the journal: how many records it has."""

_KIND_OF_CODE = {0x81: 1, 0x82: 2, 0x84: 4}
_CODE_OF_KIND = {kind: code for code, kind in _KIND_OF_CODE.items()}
_MAX_BLOCK = 4 * 2**20
"""Largest block of an index chunk, bytes; writers take 16 KiB to 128 KiB. Each look at an entry decodes a block."""
_DECODE_WHOLE = 4096
_WINDOW = 2048
_STORE_PLAIN = 512
_VALUE = 3
_NAN = 2
_UNINIT = 4
_NO_ENTRIES = (_NAN, _UNINIT)
_IS_SPECIAL = bytes(128) + b"\1" * 128
_PLAIN = {"typesize": ENTRY_LEN, "clevel": 0, "splitmode": 2}
_PACKED = {"typesize": ENTRY_LEN, "clevel": 5, "codec": 1, "splitmode": 2}

# Journal records: what to do to take a change back, if it was made at all; the number of entries before tells that.
_CUT, _PUT, _SET, _ALL = range(4)
_LOOKS = 100
"""How often another thread's change may come in between while the index is read."""


def special_entry(kind: int) -> int:
    """Return the entry for a whole chunk of special value `kind` (1, 2 or 4)."""
    return (_CODE_OF_KIND[kind] << 56) - 2**64


def special_kind(entry: int, nchunk: int) -> int:
    """Return the special value (1, 2 or 4) that the negative `entry` stands for.

    Raises
    ------
    FormatError
        Its top byte is none of 0x81, 0x82 and 0x84.

    """
    code = (entry >> 56) & 0xFF
    kind = _KIND_OF_CODE.get(code)
    if kind is None:
        raise FormatError(
            f"index entry {nchunk}, top byte",
            at=ENTRY_LEN * nchunk + 7,
            expected="0x81, 0x82 or 0x84",
            found=f"0x{code:02X}",
        )
    return kind


def check_entry(entry: int, nchunk: int, data_len: int) -> int:
    """Return the bytes from `entry` to the end of a data section of `data_len` bytes.

    Raises
    ------
    FormatError
        A chunk does not fit into them.

    """
    left = data_len - entry
    if left < CHUNK_MIN:
        raise FormatError(
            f"index entry {nchunk}", at=ENTRY_LEN * nchunk, expected=f"at most {data_len - CHUNK_MIN}", found=entry
        )
    return left


def count_special(entries: array[int]) -> int:
    """Return how many of `entries` are negative; some 10^8 of them a second."""
    top = memoryview(entries).cast("B")[ENTRY_LEN - 1 if sys.byteorder == "little" else 0 :: ENTRY_LEN]
    return top.tobytes().translate(_IS_SPECIAL).count(1)


_NO_WINDOW: Final = (0, array("q"))


def located(error: FormatError, what: str, at: int) -> FormatError:
    """Return `error`, about a chunk, as one about byte `at` of the frame onwards."""
    if isinstance(error, TruncatedError):
        return TruncatedError(f"{what}: {error.field}", at=at + error.at, needed=error.needed, got=error.got)
    kind = NewerFormatError if isinstance(error, NewerFormatError) else FormatError
    return kind(
        f"{what}: {error.field}",
        at=at + error.at,
        expected=error.expected,
        found=error.found,
    )


class Index:
    """The entries, as an array, as one repeated value, or in their chunk.

    Not safe for several writers; readers may run beside one writer.
    """

    __slots__ = ("_at", "_journal", "_repeated", "_source", "_tick", "_window", "entries", "length")

    def __init__(self, entries: Iterable[int] = (), *, kept: tuple[Source | None, int, int] | None = None) -> None:
        """Make an index of `entries` (64-bit integers), or of those `kept` in a chunk: source, number, position."""
        self.entries: array[int] | None = array("q", entries) if kept is None else None
        """The entries, for reading; None while they are one repeated value, or in their chunk."""
        self._source: Source | None
        self._source, self.length, self._at = (None, len(self.entries or ()), 0) if kept is None else kept
        """How many entries there are."""
        self._repeated: int | None = None
        self._window: tuple[int, array[int]] = _NO_WINDOW
        self._journal: list[tuple[int, int, object, int]] = []
        self._tick = 0  # odd while a change is being made

    @classmethod
    def repeated(cls, entry: int, nchunks: int) -> Self:
        """Return an index of `nchunks` equal entries, in constant memory."""
        index = cls()
        if nchunks:
            index.entries, index.length, index._repeated = None, nchunks, entry
        return index

    @classmethod
    def from_chunk(cls, source: Source, info: ChunkInfo, *, nchunks: int, at: int) -> Self:
        """Return an index that reads its entries from an index chunk.

        Parameters
        ----------
        source
            The chunk; must stay readable and unchanged.
        info
            What its header says.
        nchunks
            How many entries it must hold, -1: as many as there are.
        at
            The chunk's position in the frame, for messages.

        Raises
        ------
        FormatError
            The typesize is not 8, the size does not fit, its blocks are too large to be read one by one, or it has no
            content: uninitialised values, or NaN.

        """
        if info.special in _NO_ENTRIES:
            raise FormatError(
                "index chunk special value",
                at=at + 31,
                expected="entries",
                found="NaN" if info.special == _NAN else "uninitialised values, which mean no offsets",
            )
        if info.blocksize > _MAX_BLOCK:
            raise FormatError(
                "index chunk blocksize", at=at + 8, expected=f"at most {_MAX_BLOCK}", found=info.blocksize
            )
        if info.typesize != ENTRY_LEN:
            raise FormatError("index chunk typesize", at=at + 3, expected=ENTRY_LEN, found=info.typesize)
        if nchunks < 0:
            nchunks, rest = divmod(info.nbytes, ENTRY_LEN)
            if rest:
                raise FormatError("index chunk nbytes", at=at + 4, expected="a multiple of 8", found=info.nbytes)
        elif info.nbytes != ENTRY_LEN * nchunks:
            raise FormatError(
                "index chunk nbytes",
                at=at + 4,
                expected=f"{ENTRY_LEN * nchunks}, for {nchunks} chunks",
                found=info.nbytes,
            )
        value = info.repeated_value if info.special == _VALUE else bytes(ENTRY_LEN)
        if info.special and value is not None and len(value) == ENTRY_LEN:
            return cls.repeated(int.from_bytes(value, "little", signed=True), nchunks)
        return cls(kept=(source, nchunks, at))

    def __len__(self) -> int:
        """Return the number of entries."""
        return self.length

    def __getitem__(self, nchunk: int) -> int:
        """Return one entry; `nchunk` from 0 to below the length."""
        entries = self.entries
        if entries is not None:
            return entries[nchunk]
        if self._repeated is not None:
            return self._repeated
        return self._through_window(nchunk)

    @property
    def repeated_entry(self) -> int | None:
        """The entry that all chunks share, if that is how they are kept."""
        return self._repeated

    def slice(self, start: int, stop: int) -> array[int]:
        """Return the entries from `start` to below `stop`, ``0 <= start <= stop <= len``."""
        entries = self.entries
        if entries is not None:
            return entries[start:stop]
        if self._repeated is not None:
            return array("q", (self._repeated,)) * (stop - start)
        source = self._source
        if source is None or self.length <= _DECODE_WHOLE:
            return self._near(start)[1][start:stop]
        return self._decode(source, start, stop)

    def slabs(self, length: int = SLAB) -> Iterator[tuple[int, array[int]]]:
        """Yield all entries, `length` at a time, each time with the number of the first one."""
        for start in range(0, self.length, length):
            yield start, self.slice(start, min(start + length, self.length))

    def copy(self) -> Index:
        """Return an index of its own with the same entries, as lazy as this one."""
        entries = self.entries
        if entries is not None:
            return Index(entries)
        index = Index(kept=(self._source, self.length, self._at))
        index._repeated = self._repeated
        return index

    def mark(self) -> JournalMark:
        """Return the present place in the journal, for `rollback`."""
        return len(self._journal)

    def forget(self) -> None:
        """Empty the journal: what was done stays."""
        self._journal.clear()

    def rollback(self, mark: JournalMark) -> None:
        """Take back every change since `mark`, newest first; doing it twice does no harm."""
        journal = self._journal
        self._tick |= 1
        while len(journal) > mark:
            what, at, old, count = journal[-1]
            if what == _ALL:
                self.entries, self.length, self._repeated, self._source = old  # type: ignore[misc]
            else:
                entries = self._materialise()
                extra = len(entries) - count
                if what == _CUT and extra > 0:
                    del entries[at : at + extra]
                elif what == _PUT and extra < 0:
                    entries.insert(at, old)  # type: ignore[arg-type]
                elif what == _SET:
                    entries[at] = old  # type: ignore[call-overload]
                self.length = len(entries)
            del journal[-1]
        self._tick += 1

    def tidy(self) -> None:
        """Keep the journal short while nobody may ask for a mark but that of the beginning."""
        journal = self._journal
        while len(journal) > 1:
            (before, start, _, held), (what, at, _, count) = journal[-2:]
            if not (before == what == _CUT and start == held and at == count):
                break
            del journal[-1]  # of two additions at the end, the first one's record takes back both
        if len(journal) > 1 and (len(journal) > self.length + _DECODE_WHOLE or journal[-1][0] == _ALL):
            first = self.as_of(0)
            if first is not None:
                journal[:] = [(_ALL, 0, first._content, 0)]  # noqa: SLF001  - of this class

    def as_of(self, mark: JournalMark) -> Index | None:
        """Return the index as it was at `mark`, also while another thread changes it; None if that never stops."""
        for _ in range(_LOOKS):
            tick = self._tick
            past, journal = self.copy(), self._journal[mark:]
            if not tick & 1 and self._tick == tick:
                past._take_back(journal)  # noqa: SLF001  - as above
                return past
            time.sleep(0)
        return None

    def _take_back(self, journal: list[tuple[int, int, object, int]]) -> None:
        """Take back what `journal` tells, which another index goes on to use."""
        for n, (what, _, old, _) in enumerate(journal):
            if what == _ALL:  # all that came later is of no account
                self.entries, self.length, self._repeated, self._source = old  # type: ignore[misc]
                if self.entries is not None:
                    self.entries = self.entries[:]  # for what follows may change it
                del journal[n:]
                break
        self._journal = journal
        self.rollback(0)

    @property
    def _content(self) -> tuple[array[int] | None, int, int | None, Source | None]:
        return self.entries, self.length, self._repeated, self._source

    def insert(self, nchunk: int, entries: Sequence[int]) -> None:
        """Put `entries` before entry `nchunk`; the length appends."""
        held = self.entries
        if held is None:
            held = self._materialise()
        self._tick |= 1
        self._journal.append((_CUT, nchunk, None, len(held)))
        if nchunk == self.length:
            held.extend(entries)
        else:
            held[nchunk:nchunk] = array("q", entries)
        self.length = len(held)
        self._tick += 1

    def replace(self, nchunk: int, entry: int) -> None:
        """Put `entry` in the place of entry `nchunk`."""
        held = self._materialise()
        self._tick |= 1
        self._journal.append((_SET, nchunk, held[nchunk], 0))
        held[nchunk] = entry
        self._tick += 1

    def delete(self, nchunk: int) -> None:
        """Remove entry `nchunk`."""
        held = self._materialise()
        self._tick |= 1
        self._journal.append((_PUT, nchunk, held[nchunk], len(held)))
        del held[nchunk]
        self.length = len(held)
        self._tick += 1

    def assign(self, entries: Iterable[int]) -> None:
        """Put `entries` in the place of all."""
        self._become(Index(entries))

    def assign_repeated(self, entry: int, nchunks: int) -> None:
        """Put `nchunks` times `entry` in the place of all."""
        self._become(Index.repeated(entry, nchunks))

    def to_chunk(self) -> bytes:
        """Return the index chunk: stored plain while small, else LZ4 and shuffle.

        Raises
        ------
        ValueError
            More than 268,435,451 entries.

        """
        if self.length > MAX_CHUNKS:
            raise ValueError(f"nchunks: expected at most {MAX_CHUNKS}, got {self.length}")
        if self._repeated is not None and self.length > 1:
            value = self._repeated.to_bytes(ENTRY_LEN, "little", signed=True)
            return _engine.special_chunk(_VALUE, ENTRY_LEN * self.length, ENTRY_LEN, value)
        entries = self._materialise()
        if sys.byteorder == "big":
            entries = entries[:]
            entries.byteswap()
        small = ENTRY_LEN * self.length <= _STORE_PLAIN
        return _engine.compress(entries, _params(small=small))

    def _become(self, other: Index) -> None:
        self._tick |= 1
        self._journal.append((_ALL, 0, self._content, 0))
        self.entries, self.length = other.entries, other.length
        self._repeated, self._source = other._repeated, other._source
        self._tick += 1

    def _materialise(self) -> array[int]:
        """Make the array, for a change."""
        if self.entries is None:
            if self._repeated is not None:
                held = array("q", (self._repeated,)) * self.length
            else:
                held = array("q") if self._source is None else self._decode(self._source, 0, self.length)
            self.entries = held
            self._repeated = self._source = None
        return self.entries

    def _through_window(self, nchunk: int) -> int:
        start, window = self._near(nchunk)
        return window[nchunk - start]

    def _near(self, nchunk: int) -> tuple[int, array[int]]:
        """Return entries out of the chunk, and the number of the first: those around entry `nchunk`, or all if few.

        They are kept beside the array and never in its place: who reads may be overtaken by who changes it.
        """
        source = self._source
        if source is None:  # another thread made the array meanwhile
            return 0, self._materialise()
        start, window = self._window
        if not start <= nchunk < start + len(window):
            width = self.length if self.length <= _DECODE_WHOLE else _WINDOW
            start = nchunk // width * width
            window = self._decode(source, start, min(start + width, self.length))
            self._window = (start, window)
        return start, window

    def _decode(self, source: Source, start: int, stop: int) -> array[int]:
        entries = array("q")
        wanted = (source, ENTRY_LEN * self.length, ENTRY_LEN * start, ENTRY_LEN * stop, 0)
        try:
            raw = _engine.read([wanted], itemsize=ENTRY_LEN)
        except FormatError as error:
            raise located(error, "index chunk", self._at) from error
        entries.frombytes(raw or b"")
        if sys.byteorder == "big":
            entries.byteswap()
        return entries


_PARAMS: Final[dict[bool, _engine.EncodeParams]] = {}


def _params(*, small: bool) -> _engine.EncodeParams:
    """Return how the index chunk is compressed; never split, as readers expect."""
    params = _PARAMS.get(small)
    if params is None:
        params = _PARAMS[small] = _engine.EncodeParams(**(_PLAIN if small else _PACKED))  # type: ignore[arg-type]
    return params
