"""What can be put together again of a damaged frame: a list of chunks, and the metadata.

The sources, in this order, are the index that the header names, with the header's copy in the commit record if needed;
the index of the newest older commit, with the chunks written behind it; an index chunk found by the scan; and the
chunks in file order. Does not write.

Source: docs/format/integrity.md, "Recovery".
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from superchunk import _engine
from superchunk._format.frame_header import FrameHeader
from superchunk._format.frame_index import CHUNK_MIN, count_special, special_kind
from superchunk._format.metalayers import read_metalayers
from superchunk._format.trailer import TAIL_LEN, trailer_len
from superchunk._integrity.array_layer import layer_name, layout_in, true_layout
from superchunk._integrity.budget import Budget, most_entries
from superchunk._integrity.chunk_locations import FilePlaces, FolderPlaces
from superchunk._integrity.inspect_frame import MIN_HEADER_LEN, correct_index, examine, of_commit, vlmeta_problem
from superchunk._integrity.recovered_chunks import LOST, RecoveredChunk, RecoveredChunks
from superchunk._integrity.repair_array import older_layers
from superchunk._integrity.scan import NO_CODEC, NOT_DECODED, find_vlmeta, judge, scan
from superchunk._store.frame_loading import settings_of
from superchunk._store.older_commits import commits, newest_intact
from superchunk._store.store_interface import FrameSettings
from superchunk.exceptions import FormatError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from superchunk._format.b2nd import ArrayLayout
    from superchunk._format.frame_index import Index
    from superchunk._integrity.chunk_locations import ChunkPlaces
    from superchunk._integrity.inspect_frame import Bytes, FrameInspection
    from superchunk._integrity.recovered_chunks import ChunkClass
    from superchunk._integrity.scan import FoundChunk, Judgement
    from superchunk._store.os_file import FileBytes

__all__ = [
    "UNSEALED_REASON",
    "Classifier",
    "Plan",
    "fits",
    "infer",
    "is_array",
    "make_plan",
    "place_found",
    "plan_recovery",
    "settle_sizes",
    "special_piece",
    "stated_of_last",
]

UNSEALED_REASON: Final = "it decodes, but has no seal, although the frame has some"
"""Why a chunk without a seal is doubtful."""

_MOST_NBYTES: Final = 2**31 - 33
_MOST_COMMITS: Final = 64
_MOST_BESIDE: Final = 64
_MOST_RECORDED: Final = 255
"""Bytes of the largest item that a chunk records."""
_TRAILER: Final = b"\x94\x01\x93\xcd"
_FIRST_FIELDS: Final = 8
_ALIKE: Final = (slice(0, 1), slice(1, 2), slice(3, 4), slice(4, 8))
"""Versions, typesize and uncompressed bytes at the start of a chunk, which most chunks of a frame have alike."""
_NAN: Final = 2
_NAN_SIZES: Final = (4, 8)
# What `_engine.check_seals` answers.
_FITS, _NO_SEAL, _OTHER_SEAL = range(3)


@dataclass(slots=True, kw_only=True)
class Plan:
    """The frame to write."""

    settings: FrameSettings
    chunksize: int
    meta: dict[str, bytes]
    vlmeta: dict[str, bytes]
    pieces: RecoveredChunks = field(default_factory=RecoveredChunks)
    notes: list[str] = field(default_factory=list)
    """What was used, and what is lost besides chunks."""
    fill: tuple[int, int] | None = None
    """Special value and bytes, if that is all there is."""
    header_len: int = 0
    """Bytes of the header, 0 if there is none."""
    sealed: bool = False
    """Whether the frame has a fingerprint."""
    proven: bool = False
    """Whether header, index and trailer are as they were written."""
    nbytes: int = 0
    """Uncompressed bytes that the header says."""
    twins: dict[int, int] = field(default_factory=dict)
    """Lost chunks to the ones that the index has at the same place."""
    typesizes: set[int] = field(default_factory=set)
    """Sizes of items that chunks have which the index names; the header's may be damaged."""
    has_trailer: bool = False
    """Whether the trailer can be read, so that the vlmetalayers are those of the present state."""
    size: int = 0
    """Bytes that there are of the damaged frame."""
    varchunks: bool = False
    """Whether the header has the flag for chunks of any size."""
    vlblocks: bool = False
    """Whether blocks have variable length; the header's flag, until the chunks show it."""
    older_layers: list[bytes] = field(default_factory=list)
    """The layer of an array as older commits had it, newest first, if there is something wrong with the present one."""
    without_index: bool = False
    """Whether no index could be read, so that there are no chunks yet; of a sparse frame."""


class Classifier:
    """From entries to pieces; whether their sizes fit together is the matter of `settle_sizes`."""

    def __init__(
        self,
        places: ChunkPlaces,
        budget: Budget,
        shared: Collection[int] | None = None,
        layout: ArrayLayout | None = None,
    ) -> None:
        """Take where chunks are.

        Parameters
        ----------
        places
            From entries to sources.
        budget
            What may be done.
        shared
            The entries that there are more than once; None: unknown.
        layout
            Of the array that the frame holds.

        """
        self._layout = layout
        self._shared = shared
        self._places, self._budget = places, budget
        self._known: dict[int, int] = {}
        self.twins: dict[int, int] = {}
        """Chunks whose entry another one has, too, and that one."""
        self.sealed = 0
        """How many chunks have a seal that fits."""
        self.unsealed = array("q")
        """Those that have none."""
        self.typesizes: set[int] = set()
        """Sizes of items that chunks have which are not lost."""

    def piece(self, number: int, entry: int) -> RecoveredChunk:
        """Return what becomes of the stored chunk that an index names."""
        if entry in self._known:
            self.twins[number] = self._known[entry]
            return _lost(entry, f"chunk {self._known[entry]} is at the same place")
        if entry > self._places.most:
            return _lost(entry, "its index entry leads beyond the data")
        found = self._stored(number, entry)
        if self._shared is None or entry in self._shared:
            self._known[entry] = number
        return found

    def _stored(self, number: int, entry: int) -> RecoveredChunk:
        """Return what becomes of a chunk with bytes of its own."""
        position, file = self._places.position(entry), self._places.file(entry)
        source = self._places.source(entry, None)
        try:
            info = _engine.describe(source)
        except SuperchunkError as error:
            return _lost(position, self._places.problem(entry) or str(error), file)
        if info.cbytes > self._places.reach(entry):
            return _lost(position, f"its header says {info.cbytes} bytes, which reach beyond the data", file)
        if not info.nbytes:
            return _lost(position, "its header says that it holds nothing", file)
        if info.special == _NAN and info.typesize not in _NAN_SIZES:
            return _lost(position, f"it is of NaN, and its items have {info.typesize} bytes", file)
        status = _NO_SEAL
        judgement: Judgement = "not decoded"
        if self._budget.may_read(info.cbytes):
            status = _engine.check_seals([source])[0][0]
            judgement = judge(source, info, status, self._budget, self._layout)
        if judgement != "whole" and status == _OTHER_SEAL and self._places.apart:
            judgement = "damaged"  # in a file of its own no seal is stale
        if judgement == "damaged":
            return _lost(position, "its bytes are damaged", file)
        self.sealed += status == _FITS
        self.typesizes.add(info.typesize)
        if status == _NO_SEAL:
            self.unsealed.append(number)
        reason = "it decodes, but its seal is of other bytes" if status == _OTHER_SEAL else ""
        if judgement != "whole":
            reason = NO_CODEC if judgement == "no codec" else NOT_DECODED
        grade: ChunkClass = "doubtful" if reason else "whole"
        return RecoveredChunk(source, 0, info.nbytes, grade, position, reason, file, info.vlblocks)


def _lost(position: int, reason: str, file: str = "") -> RecoveredChunk:
    return RecoveredChunk(None, 0, -1, "lost", position, reason, file)


def special_piece(entry: int, number: int) -> RecoveredChunk:
    """Return the chunk that a negative entry stands for, lost if there is no such special value."""
    try:
        return RecoveredChunk(None, special_kind(entry, number), -1, "whole", entry)
    except FormatError as error:
        return _lost(-1, str(error))


def plan_recovery(
    place: Bytes, file: FileBytes, start: int, progress: Callable[[int, int], object] | None = None
) -> Plan:
    """Return the newest commit that is whole, chunks included, of the frame at `place`, byte `start` of `file`.

    Raises
    ------
    FormatError
        There is none.
    StorageError
        The file cannot be read.

    """
    commit = newest_intact(file, start)
    if commit is None:
        raise FormatError("commit", at=0, expected="one that is whole, with all its chunks", found="none")
    plan = make_plan(place, None, progress, found=of_commit(place, commit, Budget.of(place.size)))
    plan.notes.insert(0, f"the newest commit that is whole, of {len(commit.index)} chunks, as was asked")
    return plan


def make_plan(
    place: Bytes,
    folder: str | None,
    progress: Callable[[int, int], object] | None = None,
    *,
    found: FrameInspection | None = None,
) -> Plan:
    """Return what can be put together of the frame at `place`.

    Parameters
    ----------
    place
        The frame, or the index file of a sparse one.
    folder
        The directory of a sparse frame.
    progress
        Called with the number of chunks done and that of all, while that is known.
    found
        What is there, if that is known.

    Raises
    ------
    FormatError
        Nothing of a frame was found in a file.
    StorageError
        It cannot be read.

    """
    size = place.size if folder is None else place.size + FolderPlaces(folder).data_len
    budget = Budget.of(size)
    found = found or examine(place, budget)
    corrected = correct_index(place, found)
    plan = _metadata(place, found, budget)
    if corrected:
        plan.notes.append("one byte of the index chunk was damaged: the fingerprint tells which, and what it was")
    plan.size, plan.sealed, plan.proven = size, found.fingerprinted, found.proven and not found.index_is_old
    header, index = found.header, found.index
    complete = False
    if header is not None and index is not None:
        plan.notes.append("the index of an older commit" if found.index_is_old else "the index chunk")
        repeated = index.repeated_entry
        if repeated is not None and repeated < 0 and _may_fill(plan, header, len(index), repeated):
            plan.fill = (special_kind(repeated, 0), header.nbytes)
            return plan
        complete = _by_index(plan, found, place, folder, budget, progress) and not found.index_is_old
        settle_sizes(plan)
        _settle_typesize(plan)
    if folder is not None:
        plan.without_index = not plan.pieces and found.lost
        return plan
    if _must_scan(plan, found, place, complete=complete):
        _by_scanning(plan, found, place, budget, complete=complete)
        settle_sizes(plan)
        _settle_typesize(plan)
    if not plan.pieces and header is None:
        raise FormatError("frame", at=0, expected="a header, a commit record, or chunks", found="none of them")
    return plan


def _may_fill(plan: Plan, header: FrameHeader, nchunks: int, entry: int) -> bool:
    """Return whether the frame is `nchunks` times the same special value, and its header can be true."""
    if header.chunksize <= 0 or -(-header.nbytes // header.chunksize) != nchunks:
        return False
    try:
        return special_kind(entry, 0) != _NAN or plan.settings.typesize in _NAN_SIZES
    except FormatError:
        return False


def _metadata(place: Bytes, found: FrameInspection, budget: Budget) -> Plan:
    """Return a plan without chunks."""
    header = found.header
    notes = [f"{part.name}: {part.status}, {part.message}" for part in found.parts if part.status == "damaged"]
    vlmeta = None if found.trailer is None else _whole_layers(place, found.trailer.vlmeta, notes, budget)
    if vlmeta is not None and found.index_is_old:
        vlmeta |= find_vlmeta(place, budget) or {}  # a newer trailer may be left
    if vlmeta is None:
        vlmeta = find_vlmeta(place, budget)
        notes.append("no trailer can be read" if vlmeta is None else "vlmetalayers of the last trailer in the file")
    if header is None:
        return Plan(settings=FrameSettings(), chunksize=-1, meta={}, vlmeta=vlmeta or {}, notes=notes)
    meta = _contents(found.raw_header, found.layers)
    count = None if found.index is None else len(found.index)
    suspect = _is_suspect(meta, header, count)
    if suspect and found.recorded:
        recorded, layers = _recorded(found.recorded, sparse=place.sparse)
        if recorded is not None and not _is_suspect(layers, recorded, count):
            header, meta, suspect = recorded, layers, False
            notes.append("the header as the commit record has it")
    return Plan(
        settings=settings_of(header),
        chunksize=header.chunksize,
        nbytes=header.nbytes,
        has_trailer=found.trailer is not None,
        varchunks=header.varchunks,
        vlblocks=header.vlblocks,
        meta=meta,
        older_layers=older_layers(place, meta) if suspect else [],
        vlmeta=vlmeta or {},
        notes=notes,
        header_len=header.header_len,
    )


def _contents(raw: bytes, layers: Mapping[str, tuple[int, int]]) -> dict[str, bytes]:
    return {name: raw[at : at + length] for name, (at, length) in layers.items()}


def _recorded(raw: bytes, *, sparse: bool) -> tuple[FrameHeader | None, dict[str, bytes]]:
    """Return what a commit record has of the header, None if it cannot be read."""
    try:
        return FrameHeader.from_bytes(raw, sparse=sparse), _contents(raw, read_metalayers(raw))
    except FormatError:
        return None, {}


def _is_suspect(meta: dict[str, bytes], header: FrameHeader, count: int | None) -> bool:
    """Return whether the layer of an array cannot be true."""
    name = layer_name(meta)
    if name is None:
        return False
    try:
        nchunks = count if header.nbytes else 0
        true_layout(meta[name], typesize=header.typesize, chunksize=header.chunksize, nchunks=nchunks)
    except FormatError:
        return True
    return False


def _settle_typesize(plan: Plan) -> None:
    """Take the size of items from the layer of an array, if with that all fits, and not with what the header says."""
    name = layer_name(plan.meta)
    layout = layout_in(plan.meta)
    if name is None or layout is None or plan.chunksize <= 0:
        return

    def goes(typesize: int) -> bool:
        try:
            true_layout(plan.meta[name], typesize=typesize, chunksize=plan.chunksize, nchunks=None)
        except FormatError:
            return False
        return True

    typesize = plan.chunksize // max(prod(layout.chunks), 1)
    if typesize > 0 and not goes(plan.settings.typesize) and goes(typesize):
        plan.notes.append(f"typesize {typesize} from the array, where the header says {plan.settings.typesize}")
        plan.settings = plan.settings._replace(typesize=typesize)


def _whole_layers(place: Bytes, layers: Mapping[str, bytes], notes: list[str], budget: Budget) -> dict[str, bytes]:
    """Return the vlmetalayers, those that are damaged as an older commit had them."""
    whole = {}
    for name, content in layers.items():
        if not vlmeta_problem(content, budget):
            whole[name] = content
            continue
        records = commits(place.read, place.size, place.source, sparse=place.sparse)
        older = zip(range(_MOST_COMMITS), records, strict=False)
        found = (commit.trailer.vlmeta.get(name, b"") for _, commit in older)
        usable = next((content for content in found if content and not vlmeta_problem(content, budget)), None)
        notes.append(f"vlmetalayer {name!r} is {'lost' if usable is None else 'as an older commit had it'}")
        if usable is not None:
            whole[name] = usable
    return whole


def _by_index(
    plan: Plan,
    found: FrameInspection,
    place: Bytes,
    folder: str | None,
    budget: Budget,
    progress: Callable[[int, int], object] | None,
) -> bool:
    """Add the chunks that the index names; return whether all of it could be read."""
    header, index = found.header, found.index
    if header is None or index is None:
        return False
    places: ChunkPlaces = FilePlaces(place, header.header_len, max(min(place.size - header.header_len, 2**62), 0))
    if folder is not None:
        places = FolderPlaces(folder)
    nchunks = len(index)
    if nchunks > most_entries(place.size) and index.repeated_entry is None:
        text = f"it has {nchunks} entries, and a file of {place.size} bytes may have {most_entries(place.size)}"
        plan.notes.append(f"the index chunk cannot be true: {text}")
        return False
    classifier = Classifier(places, budget, _shared(index), layout_in(plan.meta))
    complete = True
    stored = 0
    try:
        for start, entries in index.slabs():
            stored += len(entries) - count_special(entries)
            if stored > most_stored(places, place.size):
                text = f"it names {stored} stored chunks or more, and at most {most_stored(places, place.size)}"
                plan.notes.append(f"the index chunk cannot be true: {text}")
                plan.pieces = RecoveredChunks()
                return False
            _add_entries(plan.pieces, classifier, start, entries)
            if progress is not None:
                progress(start + len(entries), nchunks)
    except SuperchunkError as error:
        plan.notes.append(f"the index chunk ends early: {error}")
        complete = False
    plan.twins, plan.typesizes = classifier.twins, classifier.typesizes
    if classifier.sealed or found.fingerprinted:
        for number in classifier.unsealed:
            plan.pieces[number] = plan.pieces[number]._replace(grade="doubtful", reason=UNSEALED_REASON)
    return complete


def most_stored(places: ChunkPlaces, size: int) -> int:
    """Return how many stored chunks an index may name: what fits, or what its file of `size` can tell."""
    return most_entries(size) if places.apart else places.data_len // CHUNK_MIN


def _add_entries(pieces: RecoveredChunks, classifier: Classifier, start: int, entries: array[int]) -> None:
    """Add the chunks of some entries, those of one special value in a row together."""
    values = np.frombuffer(entries, dtype=np.int64)
    ends = np.flatnonzero((values[1:] != values[:-1]) | (values[1:] >= 0)) + 1
    first = 0
    for last in [*ends.tolist(), len(values)]:
        entry, number = int(values[first]), start + first
        if entry >= 0:
            pieces.append(classifier.piece(number, entry))
        else:
            pieces.extend(special_piece(entry, number), last - first)
        first = last


def _shared(index: Index) -> set[int] | None:
    """Return the entries that an index has more than once; None if not all can be read."""
    if index.repeated_entry is not None:
        return {index.repeated_entry}
    try:
        entries = np.sort(np.frombuffer(index.slice(0, len(index)), dtype=np.int64))
    except SuperchunkError:
        return None
    twice = np.unique(entries[1:][entries[1:] == entries[:-1]])
    return set(twice[twice >= 0].tolist())


def _entries(index: Index) -> Iterator[tuple[int, int]]:
    for start, entries in index.slabs():
        yield from enumerate(entries, start)


def _must_scan(plan: Plan, found: FrameInspection, place: Bytes, *, complete: bool) -> bool:
    """Return whether chunks may be where no index leads."""
    header = found.header
    if header is not None and not header.nbytes:
        if not found.index_is_old and _is_empty(place, found, header):
            return False
        if not found.lost:
            return found.trailer is None or found.index_is_old
    if not complete or found.proven:
        return not complete
    return bool((plan.pieces.grades == LOST).any()) or bool(stated_of_last(plan))


def _is_empty(place: Bytes, found: FrameInspection, header: FrameHeader) -> bool:
    """Return whether the trailer is where the first chunk would, and is not one that an older commit left there."""
    stated = max((at + length for at, length in found.layers.values()), default=MIN_HEADER_LEN)
    stands_there = int.from_bytes(place.read(4, 0x0B), "big")
    for at in {header.header_len, stated, min(stands_there, place.size)}:
        start = place.read(len(_TRAILER), at)
        if sum(map(int.__eq__, start, _TRAILER)) >= len(_TRAILER) - 1:
            break
    else:
        return False
    try:
        length = trailer_len(
            place.read(TAIL_LEN, max(place.size - TAIL_LEN, 0)), at=place.size - TAIL_LEN, most=place.size
        )
    except FormatError:
        return True
    return place.size - length <= at or place.read(len(_TRAILER), place.size - length) != _TRAILER


def _by_scanning(plan: Plan, found: FrameInspection, place: Bytes, budget: Budget, *, complete: bool) -> None:
    """Add the chunks that are found without the index."""
    header = found.header
    start = MIN_HEADER_LEN if header is None else header.header_len
    scanned = scan(place, start, budget, exact=header is not None, layout=layout_in(plan.meta))
    if header is None:
        infer(plan, place, [chunk.info for chunk in scanned.chunks], scanned.base)
    others_sealed = any(chunk.sealed for chunk in scanned.chunks)
    newer = not found.index_is_old or header is None or (scanned.indexes and scanned.indexes[-1][0] >= header.frame_len)
    if scanned.indexes and newer and (found.index_is_old or not plan.pieces):
        plan.notes.append("an index chunk found in the file")
        index_at, entries = scanned.indexes[-1]
        by_place = {chunk.position - scanned.base: chunk for chunk in scanned.chunks}
        plan.pieces = RecoveredChunks(
            special_piece(entry, number)
            if entry < 0
            else _named(place, by_place[entry], others_sealed=others_sealed)
            if entry in by_place
            else _lost(scanned.base + entry, "its bytes are damaged")
            for number, entry in enumerate(entries)
        )
        settle_sizes(plan)
        named = {scanned.base + entry for entry in entries}
        lost = _misled(plan, scanned.due, place)
        front = [one for one in scanned.chunks if one.position < index_at and one.position not in named]
        if lost:
            guesses = [_guess(place, one, others_sealed=others_sealed) for one in front if fits(plan, one.info)]
            place_found(plan, lost, guesses, _older_commits(place))
        behind = [one for one in scanned.chunks if one.position > index_at and one.position not in named]
        _add(plan, [_guess(place, chunk, others_sealed=others_sealed) for chunk in behind if fits(plan, chunk.info)])
        return
    plan.notes.append("chunks as they stand in the file")
    taken = {piece.position for piece in plan.pieces if piece.source is not None}
    extras = [chunk for chunk in scanned.chunks if chunk.position not in taken and fits(plan, chunk.info)]

    def guess(chunk: FoundChunk) -> RecoveredChunk:
        return _guess(place, chunk, others_sealed=others_sealed)

    if not plan.pieces:
        plan.pieces = RecoveredChunks(map(guess, extras))
        return
    fitting = [chunk for chunk in extras if chunk.info.nbytes == stated_of_last(plan)]
    if len(fitting) == 1 and not found.index_is_old:
        plan.pieces[len(plan.pieces) - 1] = guess(fitting[0])
        extras.remove(fitting[0])
    older = _older_commits(place)
    older += [
        {scanned.base + entry: number for number, entry in enumerate(entries) if entry >= 0}
        for _, entries in scanned.indexes[::-1]
    ]
    lost = [] if found.index_is_old else _misled(plan, scanned.due, place)
    if complete and not lost and not found.index_is_old:
        return  # the index is right, and what it does not name was removed
    place_found(plan, lost, list(map(guess, extras)), older)


def place_found(
    plan: Plan, lost: Sequence[int], found: Sequence[RecoveredChunk], older: Sequence[Mapping[int, int]]
) -> None:
    """Put chunks that no index names where they may belong: in the places of lost ones, or at the end.

    Parameters
    ----------
    plan
        What there is; its sizes are known.
    lost
        Chunks whose entries lead nowhere; none if the index is an older one, so that only newer chunks are missing.
    found
        Chunks by their positions.
    older
        The chunk numbers by position of older commits, newest first.

    """
    pieces = plan.pieces
    left = {piece.position: piece for piece in found}
    known = set().union(*older)
    if len(lost) != len(left.keys() - known):  # else those that no older commit names are the missing ones
        for commit in older:
            places = {number: position for position, number in commit.items()}
            for number in lost:
                position = places.get(number, -1)
                if pieces[number].grade == "lost" and position in left:
                    pieces[number] = left.pop(position)
    still = [number for number in lost if pieces[number].grade == "lost"]
    rest = _fill_between(plan, still, [piece for at, piece in left.items() if at not in known])
    for number in still:
        _swap_twins(plan, number)
    _add(plan, [*rest, *(piece for at, piece in left.items() if at in known)] if lost else rest)


def _swap_twins(plan: Plan, number: int) -> None:
    """Let the first of two chunks that an index had at one place have what was found, if it is further in front."""
    first = plan.twins.get(number, number)
    earlier, later = plan.pieces[first], plan.pieces[number]
    if first < number and later.grade == "doubtful" and later.position < earlier.position:
        plan.pieces[first] = later
        grade: ChunkClass = "lost" if earlier.grade == "lost" else "doubtful"
        plan.pieces[number] = earlier._replace(grade=grade, reason=earlier.reason or later.reason)


def _misled(plan: Plan, due: Collection[int], place: Bytes) -> list[int]:
    """Return the lost chunks whose entries lead to where no chunk begins, or to another one's place."""
    pieces = plan.pieces
    stored = np.flatnonzero(pieces.stored & (pieces.grades != LOST))
    like = place.read(_FIRST_FIELDS, pieces[int(stored[0])].position) if len(stored) else b""
    return [
        number
        for number in np.flatnonzero(pieces.grades == LOST).tolist()
        if number in plan.twins or not (pieces[number].position in due or _begins(place, pieces[number].position, like))
    ]


def _begins(place: Bytes, at: int, like: bytes) -> bool:
    """Return whether a damaged chunk begins at byte `at`: three of four fields of its header are as in another one."""
    if not like or not 0 <= at <= place.size - CHUNK_MIN:
        return False
    here = place.read(_FIRST_FIELDS, at)
    return sum(here[part] == like[part] for part in _ALIKE) >= len(_ALIKE) - 1


def _fill_between(plan: Plan, lost: Sequence[int], found: Sequence[RecoveredChunk]) -> list[RecoveredChunk]:
    """Put chunks that were found in the places of lost ones, and return those that go nowhere.

    If there are as many, in their order. Otherwise where a single one is between its neighbours.
    """
    pieces = plan.pieces
    if lost and len(lost) == len(found):
        for number, piece in zip(lost, found, strict=True):
            pieces[number] = piece
        return []
    left = {piece.position: piece for piece in found}
    for number in lost:
        before, after = _beside(plan, number, -1), _beside(plan, number, 1)
        between = [at for at in left if before < at < after]
        if len(between) == 1:
            pieces[number] = left.pop(between[0])
    return list(left.values())


def _beside(plan: Plan, number: int, step: int) -> float:
    """Return where the chunk before or behind a chunk is, skipping those without bytes."""
    pieces = plan.pieces
    at = number + step
    while 0 <= at < len(pieces) and abs(at - number) <= _MOST_BESIDE:
        piece = pieces[at]
        if piece.source is not None:
            return piece.position
        at += step
    return float("inf") * step


def _add(plan: Plan, found: Sequence[RecoveredChunk]) -> None:
    """Add chunks whose numbers nobody knows at the end, unless that would be no array any more."""
    if not found:
        return
    if is_array(plan):
        why = "an array has as many as its shape says"
        plan.notes.append(f"{len(found)} chunks whose places nothing tells are left out: {why}")
        return
    plan.proven = False
    pieces = plan.pieces
    before = [*([pieces[len(pieces) - 1]] if len(pieces) else []), *found[:-1]]
    if plan.chunksize > 0 and any(piece.nbytes < plan.chunksize for piece in before):
        plan.chunksize, plan.varchunks = 0, True
    for piece in found:
        pieces.append(piece)


def _older_commits(place: Bytes) -> list[dict[int, int]]:
    """Return the chunk numbers by position of the commits that can be read, newest first."""
    found = []
    for _, older in zip(range(_MOST_COMMITS), commits(place.read, place.size, place.source), strict=False):
        base = older.header.header_len
        if older.header.nbytes and older.index.repeated_entry is None and len(older.index) <= place.size:
            found.append({base + entry: number for number, entry in _entries(older.index) if entry >= 0})
    return found


def _named(place: Bytes, chunk: FoundChunk, *, others_sealed: bool) -> RecoveredChunk:
    """Return a chunk that an index chunk names which was found."""
    reason = {"not decoded": NOT_DECODED, "no codec": NO_CODEC}.get(chunk.judgement, "")
    if not chunk.sealed and others_sealed:
        reason = UNSEALED_REASON
    return _as_piece(place, chunk, reason)


def _guess(place: Bytes, chunk: FoundChunk, *, others_sealed: bool) -> RecoveredChunk:
    reason = "its place, and whether it was deleted or replaced, is a guess"
    if others_sealed and not chunk.sealed:
        reason += "; so is its content, for it has no seal, and others have"
    return _as_piece(place, chunk, reason)


def _as_piece(place: Bytes, chunk: FoundChunk, reason: str) -> RecoveredChunk:
    """Return a chunk that was found, whole if there is no `reason` against it."""
    source = place.source(chunk.position, chunk.info.cbytes)
    grade: ChunkClass = "doubtful" if reason else "whole"
    return RecoveredChunk(source, 0, chunk.info.nbytes, grade, chunk.position, reason, "", chunk.info.vlblocks)


def is_array(plan: Plan) -> bool:
    """Return whether the frame holds an array, which has as many chunks as its shape says."""
    return layer_name(plan.meta) is not None


def fits(plan: Plan, info: _engine.ChunkInfo) -> bool:
    """Return whether a chunk can be one of the frame's."""
    confirmed = plan.proven or bool((plan.pieces.stored & (plan.pieces.grades != LOST)).any())
    if confirmed and plan.chunksize > 0 and info.nbytes > plan.chunksize:
        return False
    typesize = plan.settings.typesize
    return info.typesize in {typesize, 1, *plan.typesizes} or not 1 < typesize <= _MOST_RECORDED


def infer(plan: Plan, place: Bytes, infos: Sequence[_engine.ChunkInfo], base: int) -> None:
    """Make settings from the chunks themselves, and from what is left of the header, at most `base` bytes."""
    if not infos:
        return
    plan.notes.append("typesize and chunksize from the chunks")
    first = infos[0]
    typesize = Counter(info.typesize for info in infos).most_common(1)[0][0]
    plan.chunksize = -1
    plan.settings = FrameSettings(typesize=typesize, codec=first.codec, filters=bytes(first.filters))
    try:
        raw = place.read(base, 0)
        plan.meta = {name: raw[at : at + length] for name, (at, length) in read_metalayers(raw).items()}
    except FormatError:
        plan.notes.append("the fixed metalayers are lost")


def settle_sizes(plan: Plan) -> None:
    """Decide what size and kind chunks have, give one to those without bytes, and drop those that do not fit."""
    pieces = plan.pieces
    if not len(pieces):
        return
    _settle_kind(plan)
    known = pieces.stored & (pieces.grades != LOST)
    sizes = pieces.sizes[known]
    last_is_known = bool(known[-1])
    if not plan.proven:
        chunksize = _likely_chunksize(plan, sizes, last_is_known=last_is_known)
        if chunksize != plan.chunksize and len(sizes):
            if plan.header_len:
                plan.notes.append(f"chunksize {chunksize} from the chunks, where the header says {plan.chunksize}")
            plan.chunksize = chunksize
    if plan.chunksize > 0:
        _settle_fixed(plan)
    else:
        _settle_varying(plan)
    _settle_nan(plan)


def _settle_kind(plan: Plan) -> None:
    """Let most chunks tell whether blocks have variable length; the others are lost."""
    pieces = plan.pieces
    known = pieces.stored & (pieces.grades != LOST)
    count = int((known & pieces.vlblocks).sum())
    both = int(known.sum())
    plan.vlblocks = 2 * count > both or (2 * count == both and plan.vlblocks)
    kinds = ("ordinary blocks", "variable-length blocks")
    for number in np.flatnonzero(known & (pieces.vlblocks != plan.vlblocks)).tolist():
        reason = f"it has {kinds[not plan.vlblocks]}, and the others have {kinds[plan.vlblocks]}"
        pieces[number] = pieces[number].lost(reason)


def _likely_chunksize(plan: Plan, sizes: NDArray[np.int64], *, last_is_known: bool) -> int:
    """Return what chunks that are there say the size of a chunk is, 0 if sizes vary."""
    inner = sizes[:-1] if last_is_known and len(sizes) > 1 else sizes
    if not len(inner):
        return plan.chunksize
    values, counts = np.unique(inner, return_counts=True)
    common = int(values[counts.argmax()])
    if plan.chunksize > 0 and 2 * int((inner == plan.chunksize).sum()) >= len(inner):
        return plan.chunksize
    alone = len(plan.pieces) == 1 and common < plan.chunksize
    twice = len(inner) == 1 and plan.nbytes == len(plan.pieces) * plan.chunksize != len(plan.pieces) * common
    if plan.chunksize > 0 and (alone or twice):
        return plan.chunksize
    may_vary = plan.varchunks and (plan.chunksize <= 0 or len(values) > 1)
    if is_array(plan) or (not may_vary and len(values) == 1 and int(sizes[-1]) <= common):
        return common
    return 0 if may_vary or 2 * int(counts.max()) <= len(inner) else common


def _settle_fixed(plan: Plan) -> None:
    pieces, full = plan.pieces, plan.chunksize
    last = len(pieces) - 1
    stated = plan.nbytes - last * full
    if not 0 < stated <= full or is_array(plan):
        stated = full
    known = pieces.stored & (pieces.grades != LOST)
    sizes = pieces.sizes
    wrong = known & (sizes != full)
    if known[last]:
        found = int(sizes[last])
        wrong[last] = found != stated if plan.proven else found > full
    without = np.flatnonzero(~known)
    sizes[without] = full
    if not known[last]:
        sizes[last] = stated
    del sizes  # or the column could not grow
    for number in np.flatnonzero(wrong).tolist():
        piece = pieces[number]
        wanted = stated if number == last else full
        text = f"what is there holds {piece.nbytes} bytes instead of {wanted}"
        pieces[number] = piece.lost(text)._replace(nbytes=wanted)


def stated_of_last(plan: Plan) -> int:
    """Return the bytes that the header leaves for the last chunk, if the one that the index names has others; else 0.

    One of the two is damaged: the index, if there is another chunk that has so many.
    """
    if plan.chunksize <= 0 or not plan.pieces or is_array(plan):
        return 0
    last = plan.pieces[len(plan.pieces) - 1]
    stated = plan.nbytes - (len(plan.pieces) - 1) * plan.chunksize
    return stated if last.source is not None and 0 < stated <= plan.chunksize and stated != last.nbytes else 0


def _settle_varying(plan: Plan) -> None:
    pieces = plan.pieces
    known = pieces.stored & (pieces.grades != LOST)
    unknown = np.flatnonzero(~known & (pieces.sizes <= 0))
    if not len(unknown):
        return
    rest = plan.nbytes - int(pieces.sizes[pieces.sizes > 0].sum())
    stated = len(unknown) == 1 and 0 < rest <= _MOST_NBYTES
    pieces.sizes[unknown] = rest if stated else plan.settings.typesize
    if stated:
        return
    for number in unknown[pieces.specials[unknown] > 0].tolist():
        piece = pieces[number]
        pieces[number] = piece.lost("a special entry does not tell its size, and sizes vary")._replace(
            nbytes=piece.nbytes
        )


def _settle_nan(plan: Plan) -> None:
    """Drop chunks of NaN that no items can be."""
    pieces, typesize = plan.pieces, plan.settings.typesize
    of_nan = pieces.specials == _NAN
    if typesize in _NAN_SIZES:
        of_nan &= pieces.sizes % typesize != 0
    for number in np.flatnonzero(of_nan).tolist():
        piece = pieces[number]
        lost = piece.lost(f"it is of NaN, and items have {typesize} bytes")
        pieces[number] = lost._replace(nbytes=piece.nbytes)
