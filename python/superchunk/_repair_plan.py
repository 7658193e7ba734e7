"""What can be put together again of a damaged frame: a list of chunks, and the metadata.

In this order: the index that the header leads to, with the header's copy in the commit
record if need be; the index of the newest older commit, and what was written behind it;
an index chunk met on the way; the chunks as they stand in the file. Does not write.

Source: docs/format/integrity.md, "Recovery".
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from superchunk import _engine
from superchunk._anatomy import examine, vlmeta_problem
from superchunk._array_layer import layer_name, layout_in, true_layout
from superchunk._chunkplaces import FilePlaces, FolderPlaces
from superchunk._pieces import Piece, Pieces
from superchunk._repair_array import older_layers
from superchunk._walk import Budget, find_vlmeta, is_whole, walk
from superchunk.exceptions import FormatError, SuperchunkError
from superchunk.frame.header import FIXED_LEN
from superchunk.frame.index import special_kind
from superchunk.frame.metalayers import read_metalayers
from superchunk.storage.base import FrameSettings
from superchunk.storage.loading import settings_of
from superchunk.storage.recovery import commits

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, MutableSequence, Sequence

    from superchunk._anatomy import Anatomy, Bytes
    from superchunk._chunkplaces import ChunkPlaces
    from superchunk._walk import FoundChunk
    from superchunk.frame.b2nd import ArrayLayout
    from superchunk.frame.index import Index

__all__ = [
    "MIN_HEADER_LEN",
    "UNSEALED_REASON",
    "Classifier",
    "Plan",
    "fits",
    "infer",
    "is_array",
    "make_plan",
]

MIN_HEADER_LEN: Final = FIXED_LEN + 10
"""Bytes of a header without fixed metalayers."""
UNSEALED_REASON: Final = "it decodes, but has no seal, although the frame has some"
"""Why a chunk without a seal is doubtful."""

_SLAB: Final = 4096
_MOST_SPECIAL: Final = 10_000_000
_MOST_COMMITS: Final = 64
# What `_engine.check_seals` answers.
_FITS, _NO_SEAL, _OTHER_SEAL = range(3)


@dataclass(slots=True, kw_only=True)
class Plan:
    """The frame to write."""

    settings: FrameSettings
    chunksize: int
    meta: dict[str, bytes]
    vlmeta: dict[str, bytes]
    pieces: MutableSequence[Piece] = field(default_factory=Pieces)
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
    older_layers: list[bytes] = field(default_factory=list)
    """The layer of an array as older commits had it, newest first, if there is something wrong with the present one."""
    without_index: bool = False
    """Whether no index could be read, so that there are no chunks yet; of a sparse frame."""


class Classifier:
    """From entries to pieces."""

    def __init__(
        self,
        places: ChunkPlaces,
        chunksize: int,
        last: tuple[int, int],
        budget: Budget,
        shared: Collection[int] | None = None,
        layout: ArrayLayout | None = None,
    ) -> None:
        """Take where chunks are.

        Parameters
        ----------
        places
            From entries to sources.
        chunksize, last
            Bytes of a chunk, and number and size of the last one; 0 if sizes vary.
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
        self._chunksize, self._last = chunksize, last
        self._known: dict[int, int] = {}
        self.sealed = 0
        """How many chunks have a seal that fits."""
        self.unsealed = array("q")
        """Those that have none."""

    def expected(self, number: int) -> int:
        """Return the uncompressed bytes of chunk `number`, -1 if any will do."""
        if self._chunksize <= 0:
            return -1
        return self._last[1] if number == self._last[0] else self._chunksize

    def piece(self, number: int, entry: int) -> Piece:
        """Return what becomes of the chunk that an index names."""
        nbytes = self.expected(number)
        if entry < 0:
            try:
                return Piece(
                    None, special_kind(entry, number), nbytes, "whole" if nbytes >= 0 else "lost", entry, "", ""
                )
            except FormatError as error:
                return self._lost(nbytes, -1, str(error))
        if entry in self._known:
            return self._lost(nbytes, entry, f"chunk {self._known[entry]} is at the same place")
        if entry > self._places.most:
            return self._lost(nbytes, entry, "its index entry leads beyond the data")
        found = self._stored(number, entry, nbytes)
        if found.grade != "lost" and (self._shared is None or entry in self._shared):
            self._known[entry] = number
        return found

    def _stored(self, number: int, entry: int, nbytes: int) -> Piece:
        """Return what becomes of a chunk with bytes of its own."""
        position, file = self._places.position(entry), self._places.file(entry)
        source = self._places.source(entry, None)
        try:
            info = _engine.describe(source)
            status = _engine.check_seals([source])[0][0]
        except SuperchunkError as error:
            return self._lost(nbytes, position, self._places.problem(entry) or str(error), file)
        if nbytes >= 0 and info.nbytes != nbytes:
            return self._lost(nbytes, position, f"what is there holds {info.nbytes} bytes instead of {nbytes}", file)
        whole = self._budget.take(info.cbytes) and is_whole(source, info, status, self._budget, self._layout)
        if whole is None and status == _OTHER_SEAL and self._places.apart:
            whole = False  # in a file of its own no seal is stale
        if whole is False:
            return self._lost(nbytes, position, "its bytes are damaged", file)
        self.sealed += status == _FITS
        if status == _NO_SEAL:
            self.unsealed.append(number)
        if status == _OTHER_SEAL or whole is None:
            reason = "it cannot be decoded here" if whole is None else "it decodes, but its seal is of other bytes"
            return Piece(source, 0, info.nbytes, "doubtful", position, reason, file)
        return Piece(source, 0, info.nbytes, "whole", position, "", file)

    @staticmethod
    def _lost(nbytes: int, position: int, reason: str, file: str = "") -> Piece:
        return Piece(None, 0, nbytes, "lost", position, reason, file)


def make_plan(place: Bytes, folder: str | None, progress: Callable[[int, int], object] | None = None) -> Plan:
    """Return what can be put together of the frame at `place`.

    Parameters
    ----------
    place
        The frame, or the index file of a sparse one.
    folder
        The directory of a sparse frame.
    progress
        Called with the number of chunks done and that of all, while that is known.

    Raises
    ------
    FormatError
        Nothing of a frame was found in a file.
    StorageError
        It cannot be read.

    """
    found = examine(place)
    budget = Budget.of(place.size if folder is None else FolderPlaces(folder).room)
    plan = _metadata(place, found)
    plan.sealed, plan.proven = found.fingerprinted, found.proven
    header, index = found.header, found.index
    sound_index = header is not None and index is not None
    if header is not None and index is not None:
        plan.notes.append("the index of an older commit" if found.index_is_old else "the index chunk")
        repeated = index.repeated_entry
        if repeated is not None and repeated < 0 and len(index) > 1 and header.chunksize > 0:
            plan.fill = (special_kind(repeated, 0), header.nbytes)
            return plan
        sound_index = _by_index(plan, found, place, folder, budget, progress) and not found.index_is_old
    if folder is not None:
        plan.without_index = header is None or (index is None and header.nbytes > 0)
        _settle(plan)
        return plan
    if _must_walk(plan, found, complete=sound_index):
        _by_walking(plan, found, place, budget)
    if not plan.pieces and header is None:
        raise FormatError("frame", at=0, expected="a header, a commit record, or chunks", found="none of them")
    _settle(plan)
    return plan


def _metadata(place: Bytes, found: Anatomy) -> Plan:
    """Return a plan without chunks."""
    header = found.header
    notes = [f"{part.name}: {part.status}, {part.message}" for part in found.parts if part.status == "damaged"]
    vlmeta = None if found.trailer is None else _whole_layers(place, found.trailer.vlmeta, notes)
    if vlmeta is None:
        vlmeta = find_vlmeta(place)
        notes.append("no trailer can be read" if vlmeta is None else "vlmetalayers of the last trailer in the file")
    if header is None:
        return Plan(settings=FrameSettings(), chunksize=0, meta={}, vlmeta=vlmeta or {}, notes=notes)
    raw = found.raw_header
    meta = {name: raw[at : at + length] for name, (at, length) in found.layers.items()}
    return Plan(
        settings=settings_of(header),
        chunksize=header.chunksize,
        nbytes=header.nbytes,
        meta=meta,
        older_layers=older_layers(place, meta) if _is_suspect(meta, found) else [],
        vlmeta=vlmeta or {},
        notes=notes,
        header_len=header.header_len,
    )


def _is_suspect(meta: dict[str, bytes], found: Anatomy) -> bool:
    """Return whether the layer of an array cannot be true."""
    name, header = layer_name(meta), found.header
    if name is None or header is None:
        return False
    count = 0 if not header.nbytes else None if found.index is None else len(found.index)
    try:
        true_layout(meta[name], typesize=header.typesize, chunksize=header.chunksize, nchunks=count)
    except FormatError:
        return True
    return False


def _whole_layers(place: Bytes, layers: Mapping[str, bytes], notes: list[str]) -> dict[str, bytes]:
    """Return the vlmetalayers, those that are damaged as an older commit had them."""
    whole = {}
    for name, content in layers.items():
        if not vlmeta_problem(content):
            whole[name] = content
            continue
        older = zip(range(_MOST_COMMITS), commits(place.read, place.size, place.source), strict=False)
        found = (commit.trailer.vlmeta.get(name, b"") for _, commit in older)
        usable = next((content for content in found if content and not vlmeta_problem(content)), None)
        notes.append(f"vlmetalayer {name!r} is {'lost' if usable is None else 'as an older commit had it'}")
        if usable is not None:
            whole[name] = usable
    return whole


def _by_index(
    plan: Plan,
    found: Anatomy,
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
    if nchunks > max(_MOST_SPECIAL, place.size // 32):
        raise FormatError("number of chunks", at=0x1E, expected=f"at most {_MOST_SPECIAL}", found=nchunks)
    last = (nchunks - 1, header.nbytes - (nchunks - 1) * header.chunksize)
    classifier = Classifier(places, header.chunksize, last, budget, _shared(index), layout_in(plan.meta))
    complete = True
    try:
        for number, entry in _entries(index):
            plan.pieces.append(classifier.piece(number, entry))
            if progress is not None and number % 256 == 255:  # noqa: PLR2004 - often enough
                progress(number + 1, nchunks)
    except SuperchunkError as error:
        plan.notes.append(f"the index chunk ends early: {error}")
        complete = False
    if classifier.sealed or found.fingerprinted:
        for number in classifier.unsealed:
            plan.pieces[number] = plan.pieces[number]._replace(grade="doubtful", reason=UNSEALED_REASON)
    return complete


def _shared(index: Index) -> set[int] | None:
    """Return the entries that an index has more than once; None if not all can be read."""
    try:
        entries = np.sort(np.frombuffer(index.slice(0, len(index)), dtype=np.int64))
    except SuperchunkError:
        return None
    return set(entries[1:][entries[1:] == entries[:-1]].tolist())


def _entries(index: Index) -> Iterator[tuple[int, int]]:
    for start in range(0, len(index), _SLAB):
        yield from enumerate(index.slice(start, min(start + _SLAB, len(index))), start)


def _must_walk(plan: Plan, found: Anatomy, *, complete: bool) -> bool:
    """Return whether chunks may be where no index leads."""
    if found.header is not None and not found.header.nbytes:
        return found.trailer is None or found.index_is_old
    return not complete or (not found.proven and any(piece.grade == "lost" for piece in plan.pieces))


def _by_walking(plan: Plan, found: Anatomy, place: Bytes, budget: Budget) -> None:
    """Add the chunks that are found without the index."""
    header = found.header
    start = MIN_HEADER_LEN if header is None else header.header_len
    met = walk(place, start, budget, exact=header is not None, layout=layout_in(plan.meta))
    if header is None:
        infer(plan, place, [chunk.info for chunk in met.chunks], met.base)
    if not plan.pieces and met.indexes:
        plan.notes.append("an index chunk found in the file")
        entries = met.indexes[-1]
        by_place = {chunk.position - met.base: chunk for chunk in met.chunks}
        plan.pieces = [_named(plan, place, entry, by_place) for entry in entries]
        return
    plan.notes.append("chunks as they stand in the file")
    taken = {piece.position for piece in plan.pieces if piece.source is not None}
    extras = [chunk for chunk in met.chunks if chunk.position not in taken and fits(plan, chunk.info)]
    others_sealed = any(chunk.sealed for chunk in met.chunks)

    def guess(chunk: FoundChunk) -> Piece:
        return _guess(place, chunk, others_sealed=others_sealed)

    if not plan.pieces:
        plan.pieces = [guess(chunk) for chunk in extras]
        return
    older = _older_commits(place)
    known = set().union(*older)
    lost = [] if found.index_is_old else [n for n, piece in enumerate(plan.pieces) if piece.grade == "lost"]
    guessing = bool(lost)
    if guessing:
        _fill_from(plan, lost, {chunk.position: chunk for chunk in extras}, older, guess)
        taken = {piece.position for piece in plan.pieces if piece.source is not None}
        extras = [chunk for chunk in extras if chunk.position not in taken]
        lost = [number for number in lost if plan.pieces[number].grade == "lost"]
    new = [chunk for chunk in extras if chunk.position not in known]
    if lost and len(lost) == len(new):
        for number, chunk in zip(lost, new, strict=True):
            plan.pieces[number] = guess(chunk)
    elif not is_array(plan):  # an array has as many chunks as its shape says
        plan.pieces += [guess(chunk) for chunk in (extras if guessing else new)]


def _older_commits(place: Bytes) -> list[dict[int, int]]:
    """Return the chunk numbers by position of the commits that can be read, newest first."""
    found = []
    for _, older in zip(range(_MOST_COMMITS), commits(place.read, place.size, place.source), strict=False):
        base = older.header.header_len
        if older.header.nbytes and older.index.repeated_entry is None and len(older.index) <= place.size:
            found.append({base + entry: number for number, entry in _entries(older.index) if entry >= 0})
    return found


def _fill_from(
    plan: Plan,
    lost: list[int],
    extras: dict[int, FoundChunk],
    older: list[dict[int, int]],
    guess: Callable[[FoundChunk], Piece],
) -> None:
    """Put chunks that an older commit had at the same number in the places of lost ones."""
    for commit in older:
        places = {number: position for position, number in commit.items()}
        for number in lost:
            position = places.get(number, -1)
            if plan.pieces[number].grade == "lost" and position in extras:
                plan.pieces[number] = guess(extras.pop(position))


def _named(plan: Plan, place: Bytes, entry: int, by_place: dict[int, FoundChunk]) -> Piece:
    """Return what an index chunk that was found says of a chunk."""
    if entry < 0:
        return Piece(None, special_kind(entry, 0), plan.chunksize or -1, "whole", entry, "", "")
    chunk = by_place[entry]
    source = place.source(chunk.position, chunk.info.cbytes)
    if not chunk.sealed and any(other.sealed for other in by_place.values()):
        return Piece(source, 0, chunk.info.nbytes, "doubtful", chunk.position, UNSEALED_REASON, "")
    return Piece(source, 0, chunk.info.nbytes, "whole", chunk.position, "", "")


def _guess(place: Bytes, chunk: FoundChunk, *, others_sealed: bool) -> Piece:
    reason = "its place, and whether it was deleted or replaced, is a guess"
    if others_sealed and not chunk.sealed:
        reason += "; so is its content, for it has no seal, and others have"
    source = place.source(chunk.position, chunk.info.cbytes)
    return Piece(source, 0, chunk.info.nbytes, "doubtful", chunk.position, reason, "")


def is_array(plan: Plan) -> bool:
    """Return whether the frame holds an array, which has as many chunks as its shape says."""
    return layer_name(plan.meta) is not None


def fits(plan: Plan, info: _engine.ChunkInfo) -> bool:
    """Return whether a chunk can be one of the frame's."""
    if plan.chunksize > 0 and info.nbytes > plan.chunksize:
        return False
    return info.typesize in (plan.settings.typesize, 1) or plan.settings.typesize <= 1


def infer(plan: Plan, place: Bytes, infos: Sequence[_engine.ChunkInfo], base: int) -> None:
    """Make settings from the chunks themselves, and from what is left of the header, at most `base` bytes."""
    if not infos:
        return
    plan.notes.append("typesize and chunksize from the chunks")
    first = infos[0]
    typesize = Counter(info.typesize for info in infos).most_common(1)[0][0]
    sizes = Counter(info.nbytes for info in infos)
    common = sizes.most_common(1)[0][0]
    regular = all(info.nbytes == common for info in infos[:-1]) and infos[-1].nbytes <= common
    plan.chunksize = common if regular else 0
    plan.settings = FrameSettings(typesize=typesize, codec=first.codec, filters=bytes(first.filters))
    try:
        raw = place.read(base, 0)
        plan.meta = {name: raw[at : at + length] for name, (at, length) in read_metalayers(raw).items()}
    except FormatError:
        plan.notes.append("the fixed metalayers are lost")


def _settle(plan: Plan) -> None:
    """Give the chunks without bytes a size."""
    size = plan.chunksize if plan.chunksize > 0 else plan.settings.typesize
    for number, piece in enumerate(plan.pieces):
        if piece.source is None and piece.nbytes <= 0:
            plan.pieces[number] = piece._replace(nbytes=size)
