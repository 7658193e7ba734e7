"""What can be put together of the directory of a sparse frame: by its index, by the settled one, or by names.

In this order: the present index file, if all that it names is whole; the settled one, if there
is one and it is whole, and what was written since; what the present index still names; an index
chunk in a file whose header does not fit it, as a killed C-Blosc2 leaves it; the names of chunk files.

Source: docs/format/sparse.md, "Settled index" and "How C-Blosc2 changes a frame".
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from superchunk import _engine
from superchunk._chunkplaces import FolderPlaces
from superchunk._index_file import opened_index, settled_place
from superchunk._pieces import Piece
from superchunk._repair_plan import (
    MIN_HEADER_LEN,
    UNSEALED_REASON,
    Classifier,
    fits,
    infer,
    is_array,
    make_plan,
)
from superchunk._walk import Budget
from superchunk.exceptions import FormatError, SuperchunkError
from superchunk.frame.index import ENTRY_LEN, special_kind
from superchunk.storage.folder import list_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from superchunk._anatomy import Bytes
    from superchunk._repair_plan import Plan

__all__ = ["plan_folder"]

_MOST_INDEX: Final = 2**27
_GUESS: Final = "its place is a guess, from the name of its file"
_SINCE: Final = "written after the settled index; its place, and whether it was deleted or replaced, is a guess"


def plan_folder(folder: str, progress: Callable[[int, int], object] | None = None) -> Plan:
    """Return what can be put together of the sparse frame in a directory.

    Parameters
    ----------
    folder
        The directory.
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
    with opened_index(folder) as (place, problem):
        present = make_plan(place, folder, progress)
        if problem:
            present.notes.insert(0, problem)
        if present.without_index:
            _look_around(present, place, folder)
        elif all(piece.grade == "whole" for piece in present.pieces):
            return present
    with settled_place(folder) as settled:
        if settled is not None:
            older = make_plan(settled, folder, progress)
            older.notes[:0] = [*present.notes, "the settled index instead"]
            _add_newer(older, folder)
            return older
    if present.without_index and not present.pieces:
        raise FormatError("frame", at=0, expected="an index file, or chunk files", found="nothing that can be read")
    if not present.without_index and not present.proven and any(piece.grade == "lost" for piece in present.pieces):
        _add_unnamed(present, folder)
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
        plan.pieces = [
            next(stored)
            if entry >= 0
            else Piece(None, special_kind(entry, 0), plan.chunksize or -1, "whole", entry, "", "")
            for entry in entries
        ]
        return
    plan.notes.append("the names of the chunk files; special chunks, which have none, are lost")
    plan.pieces = [piece._replace(grade="doubtful", reason=_GUESS) for piece in found if piece.grade != "lost"]


def _unfitting_index(place: Bytes, at: int, idents: set[int]) -> array[int] | None:
    """Return the entries of the index chunk at byte `at`, if it names existing chunk files, each once."""
    entries = array("q")
    try:
        source = place.source(at, max(place.size - at, 0))
        info = _engine.describe(source)
        if info.typesize != ENTRY_LEN or info.nbytes % ENTRY_LEN or not 0 < info.nbytes <= _MOST_INDEX:
            return None
        entries.frombytes(_engine.decompress(source, itemsize=ENTRY_LEN))
        for number, entry in enumerate(entries):
            if entry < 0:
                special_kind(entry, number)
    except SuperchunkError:
        return None
    stored = [entry for entry in entries if entry >= 0]
    return entries if len(set(stored)) == len(stored) and idents.issuperset(stored) else None


def _pieces(plan: Plan, folder: str, idents: Iterable[int]) -> list[Piece]:
    """Return what becomes of chunk files, whatever their sizes."""
    places = FolderPlaces(folder)
    classifier = Classifier(places, 0, (0, 0), Budget.of(places.room))
    pieces = [classifier.piece(number, ident) for number, ident in enumerate(idents)]
    if plan.sealed or classifier.sealed:
        for number in classifier.unsealed:
            pieces[number] = pieces[number]._replace(grade="doubtful", reason=UNSEALED_REASON)
    return pieces


def _unnamed(plan: Plan, folder: str, reason: str) -> list[Piece]:
    """Return the chunks in files that the plan does not name and that can be the frame's."""
    known = {piece.position for piece in plan.pieces if piece.source is not None}
    found = _pieces(plan, folder, sorted(list_folder(folder).chunks.keys() - known))
    return [
        piece._replace(grade="doubtful", reason=reason)
        for piece in found
        if piece.source is not None and fits(plan, _engine.describe(piece.source))
    ]


def _add_newer(plan: Plan, folder: str) -> None:
    """Add the chunks that were written after the settled index."""
    if not is_array(plan) and plan.fill is None:  # an array has as many chunks as its shape says
        plan.pieces += _unnamed(plan, folder, _SINCE)


def _add_unnamed(plan: Plan, folder: str) -> None:
    """Add the chunks that a damaged index should have named: where some are missing, if they are as many."""
    lost = [number for number, piece in enumerate(plan.pieces) if piece.grade == "lost"]
    found = _unnamed(plan, folder, _GUESS)
    if len(found) == len(lost):
        for number, piece in zip(lost, found, strict=True):
            plan.pieces[number] = piece
    elif not is_array(plan):
        plan.pieces += found
