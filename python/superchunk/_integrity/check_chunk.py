"""Comparing all chunks of a frame with their seals, some thousand at a time.

The engine hashes, in parallel; Python sees arrays of numbers, and single chunks only if
something is wrong with them. Chunks that lie in a row are read and checked together; others,
and those that something is wrong with, as sources of their own. An index may be hostile: chunks that overlap are not
hashed again and again, and nothing is kept but five bytes for each chunk.

Source: docs/format/integrity.md, "What a reader concludes"; docs/format/cframe.md,
"Reading safely".
"""

from __future__ import annotations

import operator
from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

from superchunk import _engine
from superchunk._format.frame_index import CHUNK_MIN, ENTRY_LEN, count_special, special_kind
from superchunk._format.integrity import SEAL_LEN, SEAL_MAGIC
from superchunk._integrity.array_layer import decode_chunk
from superchunk._integrity.report import ChunkReport
from superchunk.exceptions import FormatError, SuperchunkError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from superchunk._format.b2nd import ArrayLayout
    from superchunk._format.frame_index import Index
    from superchunk._integrity.budget import Budget
    from superchunk._integrity.chunk_locations import ChunkPlaces
    from superchunk._integrity.report import PartStatus

__all__ = ["MOST_LISTED", "ChunkCheck"]

MOST_LISTED: Final = 1000
"""Chunks of which a report says what is wrong with them."""

_CBYTES_AT: Final = 12
_MOST_NBYTES: Final = 2**31 - 33
_SLAB_BYTES: Final = 64 * 2**20
_SLAB: Final = 64 * 1024
_PART: Final = 4096
_ROW_PART: Final = 256
_SEARCHED: Final = 16 * 2**20
_SPECIAL, _SOUND, _UNSEALED, _DAMAGED, _DOUBT = range(5)
_NAMES: Final[dict[int, PartStatus]] = {
    _SOUND: "sound",
    _UNSEALED: "not sealed",
    _DAMAGED: "damaged",
    _DOUBT: "in doubt",
}
# What `_engine.check_seals` answers.
_FITS, _NONE, _DIFFERS, _HEADER, _BEYOND = range(5)


class ChunkCheck:
    """The check of all chunks of one frame."""

    def __init__(
        self,
        index: Index,
        places: ChunkPlaces,
        *,
        chunksize: int,
        nbytes: int,
        sealed: bool,
        sealed_from: int | None,
        doubtful: bool,
        decode: bool,
        nthreads: int,
        itemsize: int,
        progress: Callable[[int, int], object] | None,
        layout: ArrayLayout | None = None,
        budget: Budget | None = None,
    ) -> None:
        """Take what the frame says.

        Parameters
        ----------
        index, places
            Its entries, and where they lead.
        chunksize, nbytes
            As in its header.
        sealed
            It has a fingerprint, so a seal that differs is damage.
        sealed_from
            Chunks with this entry or a larger one have a seal; None: no more is known.
        doubtful
            It is not known whether it has one.
        decode
            Decode the chunks, too.
        nthreads, itemsize
            For the engine.
        progress
            Called with the bytes of chunks done and those in all, about.
        layout
            Of the array that the frame holds, to decode chunks that go by the shape of blocks.
        budget
            What may be decoded; None: everything.

        """
        self._layout, self._budget = layout, budget
        self._index, self._places = index, places
        self._chunksize, self._nbytes = chunksize, nbytes
        self._sealed, self._doubtful, self._decode = sealed, doubtful, decode
        self._sealed_from = sealed_from
        self._nthreads, self._itemsize, self._progress = nthreads, itemsize, progress
        self.counts = [0] * 5
        self.index_problem = ""
        """What is wrong with the index, as its chunks show."""
        self.damaged: list[ChunkReport] = []
        self.unsealed: list[ChunkReport] = []
        self.stored = 0
        """Bytes of the chunks and their seals."""
        self._lengths = array("I")
        self._statuses = bytearray()
        self._total = 0
        self._end = 0
        self._ordered = True
        self._done = self._searched = 0

    def run(self) -> None:
        """Check them all.

        Raises
        ------
        StorageError
            The file cannot be read.

        """
        repeated = self._index.repeated_entry
        nchunks = len(self._index)
        if repeated is not None and (repeated < 0 or nchunks > 1):
            self._all_the_same(repeated, nchunks)
            return
        stored = 0
        step = max(
            min(_SLAB_BYTES * nchunks // max(self._places.data_len, 1), _PART if self._places.apart else _SLAB), 16
        )
        for start in range(0, nchunks, step):
            try:
                entries = self._index.slice(start, min(start + step, nchunks))
            except SuperchunkError as error:
                self._index_is_bad(str(error), nchunks - start)
                return
            stored += len(entries) - count_special(entries)
            if not self._places.apart and stored > self._places.data_len // CHUNK_MIN:
                self._index_is_bad("it names more stored chunks than fit", nchunks - start)
                return
            if self._done > 4 * self._places.data_len + _SLAB_BYTES:
                self._index_is_bad("its chunks overlap, so that not all were read", nchunks - start)
                return
            self._slab(start, entries)
            if self._progress is not None:
                self._progress(min(self._done, self._places.data_len), self._places.data_len)
        if self._chunksize == 0 and self.counts[_SPECIAL]:
            self._check_special_sizes()
        if self._chunksize == 0 and self._total != self._nbytes and not self.counts[_DAMAGED]:
            self.index_problem = f"the chunks hold {self._total} bytes, and the header says {self._nbytes}"
        if not self._ordered:
            self._find_overlaps()

    @property
    def data_len(self) -> int:
        """Bytes of all chunks together, and of what is between them."""
        return self._places.data_len

    def by_name(self) -> dict[str, int]:
        """Return how many chunks have which status."""
        return {"special": self.counts[_SPECIAL]} | {name: self.counts[n] for n, name in _NAMES.items()}

    def _index_is_bad(self, why: str, rest: int) -> None:
        self.index_problem = why
        self.counts[_DOUBT] += rest

    def _all_the_same(self, entry: int, nchunks: int) -> None:
        """Look at an index that is one entry, repeated."""
        if entry >= 0:
            self._index_is_bad(f"all {nchunks} chunks are at one place, {entry}", nchunks)
            return
        try:
            special_kind(entry, 0)
        except FormatError as error:
            self._index_is_bad(str(error), nchunks)
            return
        self.counts[_SPECIAL] = nchunks
        if self._chunksize == 0:
            self._check_special_sizes()

    def _check_special_sizes(self) -> None:
        """Give a special entry among chunks of any size what the others leave, as readers do; more have no size."""
        count = self.counts[_SPECIAL]
        rest = self._nbytes - self._total
        if count == 1 and (0 < rest <= _MOST_NBYTES or self.counts[_DAMAGED]):
            self._total = self._nbytes
            return
        self.index_problem = f"{count} special entries, whose sizes nothing tells, since the sizes of chunks vary"
        self.counts[_SPECIAL], self.counts[_DAMAGED] = 0, self.counts[_DAMAGED] + count
        for start in range(0, len(self._index), _SLAB):
            if len(self.damaged) >= MOST_LISTED:
                break
            for number, entry in enumerate(self._index.slice(start, min(start + _SLAB, len(self._index))), start):
                if entry < 0:
                    self._bad(number, entry, "a special entry, whose size nothing tells, since sizes vary")

    def _slab(self, start: int, entries: array[int]) -> None:
        """Check the chunks of some entries."""
        if self._in_a_row(start, np.frombuffer(entries, dtype=np.int64)):
            return
        for at in range(0, len(entries), _PART):
            part = entries[at : at + _PART].tolist()
            numbers: Sequence[int] = range(start + at, start + at + len(part))
            if min(part) < 0 or max(part) > self._places.most:
                numbers, part = self._without_specials(start + at, part)
            if part:
                self._each(numbers, part, self._ask(part))

    def _in_a_row(self, start: int, entries: NDArray[np.int64]) -> bool:
        """Check chunks that follow each other in one file; return False if these do not."""
        numbers = np.arange(start, start + len(entries))
        special = entries < 0
        if special.any():
            if not _all_special(entries[special]):
                return False
            numbers, entries = numbers[~special], entries[~special]
        if not len(entries) or entries[-1] > self._places.most or not (entries[:-1] < entries[1:]).all():
            return False
        found = self._places.check_run(entries, self._nthreads)
        if found is None:
            return False
        self.counts[_SPECIAL] += len(special) - len(entries)
        statuses = np.frombuffer(found[0], dtype=np.uint8)
        cbytes, nbytes = (np.frombuffer(one, dtype=np.uint32) for one in found[1:])
        good = statuses == _FITS
        if self._decode:
            good[:] = False
        elif self._chunksize:
            good &= nbytes == self._chunksize
            last = len(self._index) - 1
            if numbers[-1] == last:
                good[-1] = statuses[-1] == _FITS and int(nbytes[-1]) == self._nbytes - last * self._chunksize
        step = len(entries) if good.all() else _ROW_PART
        for at in range(0, len(entries), step):
            part = slice(at, at + step)
            if good[part].all():
                self._all_sound(entries[part], cbytes[part], nbytes[part])
            else:
                answers = list(zip(statuses[part].tolist(), cbytes[part].tolist(), strict=True))
                self._each(numbers[part].tolist(), entries[part].tolist(), answers)
        return True

    def _all_sound(self, entries: NDArray[np.int64], cbytes: NDArray[np.uint32], nbytes: NDArray[np.uint32]) -> None:
        """Take note of chunks in a row that are all as they should be."""
        stored = int(cbytes.sum(dtype=np.int64))
        self._done += stored
        self.stored += stored + SEAL_LEN * len(entries)
        self._total += int(nbytes.sum(dtype=np.int64))
        self._lengths.frombytes(cbytes.tobytes())
        self._statuses += bytes((_SOUND,)) * len(entries)
        self.counts[_SOUND] += len(entries)
        self._ordered = self._ordered and int(entries[0]) >= self._end
        self._end = int(entries[-1]) + int(cbytes[-1])

    def _each(self, numbers: Sequence[int], entries: list[int], found: list[tuple[int, int]]) -> None:
        """Judge chunks of which the engine has said `found`."""
        found = self._with_all_room(entries, found)
        statuses = [status for status, _ in found]
        lengths = [cbytes for _, cbytes in found]
        if statuses.count(_FITS) == len(statuses):
            states = [_SOUND] * len(statuses)
        else:
            states = list(map(self._judge, numbers, entries, found))
        self._check_sizes(numbers, entries, statuses, states)
        if self._decode:
            self._decode_all(numbers, entries, states)
        self._lengths.extend(lengths)
        self._statuses += bytes(states)
        for state in set(states):
            self.counts[state] += states.count(state)
        sealed = statuses.count(_FITS) + statuses.count(_DIFFERS)
        self.stored += sum(lengths) + SEAL_LEN * sealed
        ends = [entry + 1 for entry in entries] if self._places.apart else list(map(operator.add, entries, lengths))
        self._ordered = self._ordered and entries[0] >= self._end and all(map(operator.le, ends, entries[1:]))
        self._end = ends[-1]

    def _ask(self, entries: list[int]) -> list[tuple[int, int]]:
        """Return what the engine says of the chunks' seals."""
        source = self._places.source
        if self._places.apart:
            return _engine.check_seals([source(entry, None) for entry in entries], self._nthreads)
        return _engine.check_seals(list(map(source, entries, self._limits(entries))), self._nthreads)

    def _with_all_room(self, entries: list[int], found: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return `found`, after another look at chunks that do not end before the next one."""
        self._done += sum(cbytes for status, cbytes in found if status < _HEADER)
        if self._places.apart:
            return found
        for n, (status, _) in enumerate(found):
            if status >= _HEADER and self._done <= 4 * self._places.data_len:
                found[n] = again = _engine.check_seals([self._places.source(entries[n], None)])[0]
                self._done += again[1] if again[0] < _HEADER else 0
        return found

    def _without_specials(self, start: int, entries: list[int]) -> tuple[list[int], list[int]]:
        """Return numbers and entries of the stored chunks, after a look at the others."""
        numbers, stored = [], []
        for number, entry in enumerate(entries, start):
            state = _SPECIAL
            if 0 <= entry <= self._places.most:
                numbers.append(number)
                stored.append(entry)
                continue
            if entry > self._places.most:
                state = _DAMAGED
                self._bad(number, entry, f"its index entry leads beyond the data section, to {entry}")
            else:
                try:
                    special_kind(entry, number)
                except FormatError as error:
                    state = _DAMAGED
                    self._bad(number, entry, str(error))
            self.counts[state] += 1
        return numbers, stored

    def _limits(self, entries: list[int]) -> list[int]:
        """Return how far each chunk can reach: to the next one, or to the end."""
        data_len = self._places.data_len
        if all(map(operator.lt, entries, entries[1:])):
            return [*map(operator.sub, entries[1:], entries), data_len - entries[-1]]
        order = sorted(set(entries))
        after = dict(zip(order, [*order[1:], data_len], strict=True))
        return [after[entry] - entry for entry in entries]

    def _judge(self, number: int, entry: int, answer: tuple[int, int]) -> int:
        """Return the state of one chunk."""
        status, cbytes = answer
        state, reason = _UNSEALED, ""
        if status == _FITS:
            state = _SOUND
        elif status == _HEADER:
            why = self._places.problem(entry)
            state, reason = _DAMAGED, why or "its header breaks the format, or there are no bytes to read"
        elif status == _BEYOND:
            state, reason = _DAMAGED, f"its header says {cbytes} bytes, which reach beyond the data"
        elif status == _DIFFERS and self._sealed:
            state, reason = _DAMAGED, "its bytes are not those that were sealed"
        elif status == _DIFFERS and self._doubtful:
            state, reason = _DOUBT, "its seal is of other bytes, and the trailer cannot be read"
        elif status == _NONE and self._sealed:
            known = len(self.unsealed) >= MOST_LISTED or len(self.damaged) >= MOST_LISTED
            reason = "" if known else self._damage_behind_no_seal(entry, cbytes)
            if not reason and self._sealed_from is not None and entry >= self._sealed_from:
                reason = f"it has no seal behind its {cbytes} bytes, and was written with one"
            state = _DAMAGED if reason else _UNSEALED
            if not reason and len(self.unsealed) < MOST_LISTED:
                self.unsealed.append(self._report(number, entry, _UNSEALED, "no seal behind it"))
        if reason:
            self._bad(number, entry, reason, state)
        return state

    def _damage_behind_no_seal(self, entry: int, cbytes: int) -> str:
        """Return why a chunk without a seal is damaged, if its seal can be found after all."""
        if self._searched > 4 * self._places.data_len + _SLAB_BYTES:
            return ""
        whole = self._places.read(entry, _SEARCHED)
        self._searched += len(whole)
        seal = whole[cbytes : cbytes + SEAL_LEN]
        if len(seal) == SEAL_LEN and seal[8:] == _engine.hash64([whole[:cbytes]]).to_bytes(8, "little"):
            return "the mark of its seal is damaged"
        at = whole.find(SEAL_MAGIC, CHUNK_MIN)
        for _ in range(8):
            if at < 0:
                break
            size = at.to_bytes(4, "little")
            digest = _engine.hash64([whole[:_CBYTES_AT], size, whole[_CBYTES_AT + 4 : at]])
            if whole[at + 8 : at + SEAL_LEN] == digest.to_bytes(8, "little"):
                return f"its header says {cbytes} bytes, and its seal is behind {at}"
            at = whole.find(SEAL_MAGIC, at + 1)
        return ""

    def _check_sizes(self, numbers: Sequence[int], entries: list[int], statuses: list[int], states: list[int]) -> None:
        """Compare the uncompressed sizes of chunks with what the frame says."""
        readable = [n for n, status in enumerate(statuses) if status < _HEADER]
        sizes = _engine.sizes([self._places.source(entries[n], None) for n in readable])
        if self._chunksize == 0:
            self._total += sum(nbytes for nbytes, _ in sizes)
            return
        if {nbytes for nbytes, _ in sizes} == {self._chunksize} and numbers[-1] < len(self._index) - 1:
            return
        last = len(self._index) - 1
        for n, (nbytes, _) in zip(readable, sizes, strict=True):
            wanted = self._chunksize if numbers[n] < last else self._nbytes - last * self._chunksize
            if nbytes != wanted and states[n] != _DAMAGED:
                states[n] = _DAMAGED
                self._bad(numbers[n], entries[n], f"its header says {nbytes} bytes of data, and the frame {wanted}")

    def _decode_all(self, numbers: Sequence[int], entries: list[int], states: list[int]) -> None:
        for n, state in enumerate(states):
            if state == _DAMAGED:
                continue
            try:
                source = self._places.source(entries[n], None)
                decode_chunk(
                    source, self._layout, nthreads=self._nthreads, itemsize=self._itemsize, budget=self._budget
                )
            except UnsupportedError:
                continue
            except SuperchunkError as error:
                states[n] = _DAMAGED
                self._bad(numbers[n], entries[n], f"it cannot be decoded: {error}")

    def _find_overlaps(self) -> None:
        """Name chunks that share bytes."""
        if self._places.apart:
            lengths = np.ones(len(self._lengths), dtype=np.int64)
        else:
            lengths = np.frombuffer(self._lengths, dtype=np.uint32).astype(np.int64)
        entries = np.frombuffer(self._index.slice(0, len(self._index)), dtype=np.int64)
        numbers = np.flatnonzero((entries >= 0) & (entries <= self._places.most))
        whole = np.frombuffer(self._statuses, dtype=np.uint8) != _DAMAGED  # the size of others may be wrong
        numbers, lengths, places = numbers[whole], lengths[whole], np.flatnonzero(whole)
        starts = entries[numbers]
        order = np.argsort(starts, kind="stable")
        ends = np.maximum.accumulate((starts + lengths)[order])
        late = np.flatnonzero(starts[order][1:] < ends[:-1])
        for at in late.tolist():
            for one in (order[at], order[at + 1]):
                self._overlaps(int(places[one]), int(numbers[one]), int(starts[one]))
        if len(late):
            first = int(numbers[order[late[0] + 1]])
            self.index_problem = f"{len(late)} chunks share bytes with others, the first is chunk {first}"

    def _overlaps(self, at: int, number: int, entry: int) -> None:
        state = self._statuses[at]
        if state in (_DAMAGED, _DOUBT):
            return
        self._statuses[at] = _DOUBT
        self.counts[state] -= 1
        self.counts[_DOUBT] += 1
        self._bad(number, entry, "it shares its bytes with another one", _DOUBT)

    def _bad(self, number: int, entry: int, reason: str, state: int = _DAMAGED) -> None:
        if len(self.damaged) < MOST_LISTED:
            self.damaged.append(self._report(number, entry, state, reason))

    def _report(self, number: int, entry: int, state: int, reason: str) -> ChunkReport:
        position = self._places.position(entry) if entry >= 0 else ENTRY_LEN * number
        file = self._places.file(entry) if 0 <= entry <= self._places.most else ""
        return ChunkReport(nchunk=number, status=_NAMES[state], position=position, reason=reason, file=file)


def _all_special(entries: NDArray[np.int64]) -> bool:
    """Return whether negative entries all stand for a special value."""
    try:
        for code in np.unique(entries >> 56).tolist():
            special_kind(code << 56, 0)
    except FormatError:
        return False
    return True
