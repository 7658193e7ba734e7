"""What can be put together of the directory of a sparse frame: by its index, by the last synced one, or by names.

The sources, in this order, are the present index file; the last synced index file, if it is whole, with the chunks
written since; an index chunk whose file's header does not fit, as a killed C-Blosc2 leaves it; and the names of chunk
files. Whoever asks for the last synced state gets that first.

Source: docs/format/sparse.md, "Last synced index" and "How C-Blosc2 changes a frame".
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

from superchunk import _engine
from superchunk._format.b2nd import LAYERS
from superchunk._format.frame_index import ENTRY_LEN, special_kind
from superchunk._integrity.array_layer import layout_in
from superchunk._integrity.budget import Budget, most_entries
from superchunk._integrity.chunk_locations import FolderPlaces
from superchunk._integrity.index_file import last_synced_place, opened_index
from superchunk._integrity.inspect_frame import MIN_HEADER_LEN, examine
from superchunk._integrity.recovered_chunks import LOST, RecoveredChunks
from superchunk._integrity.repair_plan import (
    UNSEALED_REASON,
    Classifier,
    fits,
    infer,
    make_plan,
    place_found,
    settle_sizes,
    special_piece,
    stated_of_last,
)
from superchunk._store.chunk_folder import list_folder
from superchunk.exceptions import FormatError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from superchunk._integrity.inspect_frame import Bytes
    from superchunk._integrity.recovered_chunks import RecoveredChunk
    from superchunk._integrity.repair_plan import Plan

__all__ = ["plan_folder"]

_GUESS: Final = "its place is a guess, from the name of its file"
_SINCE: Final = "written after the last synced index; its place, and whether it was deleted or replaced, is a guess"


def plan_folder(folder: str, progress: Callable[[int, int], object] | None = None, *, recover: bool = False) -> Plan:
    """Return what can be put together of the sparse frame in a directory.

    Parameters
    ----------
    folder
        The directory.
    recover
        Take the last synced state, if it is whole, and nothing that was written since.
    progress
        Called with the number of chunks done and that of all, while that is known.

    Raises
    ------
    FileNotFoundError
        There is nothing of a frame in it.
    FormatError
        Nothing of a frame was found.
    StorageError
        It cannot be read.

    """
    if recover:
        with last_synced_place(folder) as synced:
            if synced is None:
                raise FormatError(
                    "last synced index", at=0, expected="one that is whole, with all its chunks", found="none"
                )
            older = make_plan(synced, folder, progress)
            older.notes.insert(0, "the last synced index, as was asked")
            return older
    with opened_index(folder) as (place, problem):
        present = make_plan(place, folder, progress)
        if problem:
            present.notes.insert(0, problem)
        if present.without_index:
            _look_around(present, place, folder)
    if present.without_index:
        with last_synced_place(folder) as synced:
            if synced is not None:
                older = make_plan(synced, folder, progress)
                older.notes[:0] = [*present.notes, "the last synced index instead"]
                older.meta |= {name: held for name, held in present.meta.items() if name in older.meta.keys() - LAYERS}
                older.vlmeta = present.vlmeta if present.has_trailer else {**older.vlmeta, **present.vlmeta}
                _add_newer(older, folder)
                return older
    if present.without_index and not present.pieces and not present.header_len:
        raise FormatError("frame", at=0, expected="an index file, or chunk files", found="nothing that can be read")
    if not present.without_index and not present.proven:
        _settle_last(present, folder)
        if (present.pieces.grades == LOST).any():
            _add_unnamed(present, folder)
    settle_sizes(present)
    return present


def _look_around(plan: Plan, place: Bytes, folder: str) -> None:
    """Add the chunks that an index chunk names although the header does not fit it, or all that there are."""
    idents = sorted(list_folder(folder).chunks)
    entries = _unfitting_index(place, plan.header_len or MIN_HEADER_LEN, set(idents))
    found = _pieces(plan, folder, idents if entries is None else [entry for entry in entries if entry >= 0])
    if not plan.header_len:
        infer(plan, place, [_engine.describe(piece.source) for piece in found if piece.source is not None], place.size)
    if entries is not None:
        plan.notes.append("an index chunk that the header does not fit")
        stored = iter(found)
        plan.pieces = RecoveredChunks(
            next(stored) if entry >= 0 else special_piece(entry, number) for number, entry in enumerate(entries)
        )
        return
    plan.notes.append("the names of the chunk files; special chunks, which have none, are lost")
    plan.pieces = RecoveredChunks(
        piece._replace(grade="doubtful", reason=_GUESS) for piece in found if piece.grade != "lost"
    )


def _unfitting_index(place: Bytes, at: int, idents: set[int]) -> array[int] | None:
    """Return the entries of the index chunk at byte `at`, if it names existing chunk files, each once."""
    entries = array("q")
    try:
        source = place.source(at, max(place.size - at, 0))
        info = _engine.describe(source)
        most = ENTRY_LEN * most_entries(info.cbytes)
        if info.typesize != ENTRY_LEN or info.nbytes % ENTRY_LEN or not 0 < info.nbytes <= most:
            return None
        entries.frombytes(_engine.decompress(source, itemsize=ENTRY_LEN))
        for number, entry in enumerate(entries):
            if entry < 0:
                special_kind(entry, number)
    except SuperchunkError:
        return None
    stored = [entry for entry in entries if entry >= 0]
    return entries if len(set(stored)) == len(stored) and idents.issuperset(stored) else None


def _pieces(plan: Plan, folder: str, idents: Iterable[int]) -> list[RecoveredChunk]:
    """Return what becomes of chunk files, whatever their sizes."""
    places = FolderPlaces(folder)
    classifier = Classifier(places, Budget.of(places.data_len), layout=layout_in(plan.meta))
    pieces = [classifier.piece(number, ident) for number, ident in enumerate(idents)]
    if plan.sealed or classifier.sealed:
        for number in classifier.unsealed:
            pieces[number] = pieces[number]._replace(grade="doubtful", reason=UNSEALED_REASON)
    return pieces


def _unnamed(plan: Plan, folder: str, reason: str) -> list[RecoveredChunk]:
    """Return the chunks in files that the plan does not name and that can be the frame's."""
    known = {piece.position for piece in plan.pieces if piece.source is not None}
    found = _pieces(plan, folder, sorted(list_folder(folder).chunks.keys() - known))
    return [
        piece._replace(grade="doubtful", reason=reason)
        for piece in found
        if piece.source is not None and fits(plan, _engine.describe(piece.source))
    ]


def _add_newer(plan: Plan, folder: str) -> None:
    """Add the chunks that were written after the last synced index."""
    if plan.fill is None:
        place_found(plan, (), _unnamed(plan, folder, _SINCE), ())
        settle_sizes(plan)


def _settle_last(plan: Plan, folder: str) -> None:
    """Take the one unnamed chunk that has the bytes which the header leaves for the last, if the last has others."""
    stated = stated_of_last(plan)
    fitting = [piece for piece in _unnamed(plan, folder, _GUESS) if piece.nbytes == stated] if stated else []
    if len(fitting) == 1:
        plan.pieces[len(plan.pieces) - 1] = fitting[0]


def _add_unnamed(plan: Plan, folder: str) -> None:
    """Add the chunks that a damaged index should have named: one that names files that are not there."""
    files = list_folder(folder).chunks
    lost = np.flatnonzero(plan.pieces.grades == LOST).tolist()
    lost = [number for number in lost if number in plan.twins or plan.pieces[number].position not in files]
    if not lost:
        return
    older: dict[int, int] = {}
    with last_synced_place(folder) as synced:
        index = None if synced is None else examine(synced).index
        if index is not None:
            older = {entry: number for number, entry in enumerate(index.slice(0, len(index))) if entry >= 0}
    place_found(plan, lost, _unnamed(plan, folder, _GUESS), [older])
