"""`repair`: from a damaged frame to one that can be read, and a report on every chunk.

::

    verify ── sound: nothing to do
       └──── damaged ── plan (`repair_plan`) ── a new frame, written aside and renamed

The damaged file stays as it is, unless the new one is to take its name.

Source: docs/format/integrity.md, "Recovery".
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from superchunk import _engine
from superchunk._codec.stored_chunks import chunk_bytes
from superchunk._integrity.index_file import bytes_of_file, chunk_files
from superchunk._integrity.inspect_frame import begins_like_a_frame
from superchunk._integrity.recovered_chunks import LOST
from superchunk._integrity.repair_array import settle_array
from superchunk._integrity.repair_folder import plan_folder
from superchunk._integrity.repair_plan import make_plan, plan_recovery
from superchunk._integrity.report import place_of
from superchunk._integrity.verify import verify, verify_within_budget
from superchunk._store.changes_and_undo import repeated_chunk
from superchunk._store.chunk_folder import INDEX_NAME, is_folder, joined
from superchunk._store.frame_names import find_name
from superchunk._store.frame_store import FrameStore
from superchunk._store.os_file import FileBytes, storage_error
from superchunk._store.path_target import ReplaceRule, check_target, identify, missing
from superchunk.exceptions import ArgumentError
from superchunk.params import absolute_path, local_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from superchunk._integrity.recovered_chunks import ChunkClass, RecoveredChunk
    from superchunk._integrity.repair_plan import Plan
    from superchunk._integrity.report import VerifyReport

__all__ = ["RepairReport", "RepairedChunk", "repair"]

_UNINIT: Final = 4
_ZERO: Final = 1
_BATCH: Final = 8 * 2**20
_BATCH_NCHUNKS: Final = 2048
_MOST_LISTED: Final = 1000
_MOST_VLMETA: Final = 16
_MOST_PLAIN: Final = 64 * 2**20
"""Bytes of zeros that are laid out for a lost chunk of variable-length blocks, beyond those of the file."""
_SHOWN: Final = 20
_LETTERS: Final = {"whole": "w", "doubtful": "d", "lost": "l"}
_LETTERS_OF: Final = b"wdl".ljust(256, b"?")
_CLASSES: Final[dict[str, ChunkClass]] = {"w": "whole", "d": "doubtful", "l": "lost"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairedChunk:
    """One chunk of the result that is not whole."""

    nchunk: int
    """Its number in the result."""
    status: ChunkClass
    """``doubtful`` or ``lost``."""
    position: int
    """Where it stood in the damaged frame, or should have; of a sparse one the number of its file."""
    reason: str
    """Why."""
    file: str = ""
    """In a sparse frame the name of its file."""

    @property
    def place(self) -> str:
        """Where it was, in words."""
        return place_of(self.position, self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """What `superchunk.repair` did.

    A chunk is *whole* if its seal fits or it decodes completely, and an index names it; *doubtful* if it decodes, but
    its place, its being live or its content is a guess; *lost* if an index names it and its bytes are not there. The
    result has uninitialised items instead, which read as zeros, so that the other chunks keep their numbers.
    """

    path: str
    """The damaged frame."""
    output: str | None
    """The new frame; None if there was nothing to do."""
    status: Literal["nothing to do", "repaired"]
    """Whether a new frame was written."""
    nchunks: int = 0
    """Number of chunks in the result."""
    chunks: Mapping[str, int] = field(default_factory=dict)
    """How many of them are ``whole``, ``doubtful`` and ``lost``."""
    classes: str = ""
    """A letter for each chunk: ``w``, ``d`` or ``l``; empty if all are whole."""
    listed: tuple[RepairedChunk, ...] = ()
    """Those that are not whole, at most the first thousand."""
    notes: tuple[str, ...] = ()
    """What was damaged, what was used instead, and what is lost besides chunks."""

    def class_of(self, nchunk: int) -> ChunkClass:
        """Return what became of chunk `nchunk` of the result."""
        return _CLASSES[self.classes[nchunk]] if self.classes else "whole"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return asdict(self)

    def to_json(self) -> str:
        """Return everything as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        """Return a table for people."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.path}: {self.status}" + (f", see {self.output}" if self.output is not None else "")
        for note in self.notes:
            yield f"  {note}"
        if self.output is None:
            return
        counts = ", ".join(f"{count:,} {status}" for status, count in self.chunks.items() if count)
        yield f"  chunks: {self.nchunks:,}{f' ({counts})' if counts else ''}"
        for chunk in self.listed[:_SHOWN]:
            yield f"  chunk {chunk.nchunk}, {chunk.place}: {chunk.status}, {chunk.reason}"
        if len(self.listed) > _SHOWN:
            yield f"  ... and {len(self.listed) - _SHOWN} more"


def repair(
    urlpath: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    offset: int = 0,
    contiguous: bool | None = None,
    in_place: bool = False,
    recover: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> RepairReport:
    """Write a frame that can be read from what is left of a damaged one.

    Repair works on frames of any writer, as far as their bytes allow. The report says for every chunk of the result
    whether it is whole, doubtful or lost. A frame that is not damaged is left alone. The result is of the same kind,
    one file or a directory, unless asked otherwise. Every chunk in the result has a seal; only the report says which
    chunks were doubtful.

    Parameters
    ----------
    urlpath
        The damaged frame: a file, or the directory of a sparse frame.
    output
        The new frame, which must not exist; None: ``NAME.repaired.SUFFIX`` beside the
        old one.
    offset
        The damaged frame's first byte in its file.
    contiguous
        The new frame is one file, or else a directory; None: as the damaged one.
    in_place
        Let the new frame, once it is complete, take the damaged one's name. The damaged frame is gone then.
    recover
        Go back to the state that ``open(..., recover=True)`` reads: the newest commit that is whole, chunks
        included. Otherwise the result is the present state, with what is damaged of it missing.
    progress
        Called with the number of chunks written and that of all.

    Returns
    -------
    RepairReport
        What was done.

    Raises
    ------
    FileNotFoundError
        There is nothing at that path.
    FormatError
        Nothing of a frame was found there; with `recover`, no commit that is whole.
    ArgumentError
        `output` and `in_place` are both given, or `offset` in place or for a directory; what is to be replaced is no
        frame, or holds something else.
    LockedError
        Another process is writing the frame that is to be replaced.
    StorageError
        `output` exists, or the system refuses; then nothing has changed.

    """
    path = local_path(urlpath)
    if path is None:
        raise TypeError("urlpath: expected a path, got None")
    final = absolute_path(path)
    there = find_name(final, mend=in_place)
    if there is None:
        raise missing(final)
    folder = there if is_folder(there) else None
    if in_place and (output is not None or offset):
        raise ArgumentError(f"{path}: in_place goes without output and offset")
    if offset < 0 or (offset and folder is not None):
        raise ArgumentError(f"{path}: offset: expected 0, or more within a file, got {offset}")
    contiguous = folder is None if contiguous is None else contiguous
    target = final if in_place else (local_path(output) or _beside(final))
    rule = _rule(target, there if in_place else None)
    check_target(absolute_path(target), rule)
    report = _checked(final, offset)
    if report.status != "damaged":
        return RepairReport(path=path, output=None, status="nothing to do", notes=("the frame is not damaged",))
    if folder is not None:
        if in_place and identify(joined(folder, INDEX_NAME)).name == "frame" and not chunk_files(folder):
            raise ArgumentError(f"{path}: its {INDEX_NAME} is a frame of one file, so the directory is not replaced")
        plan = plan_folder(folder, progress, recover=recover)
        settle_array(plan)
        _write(plan, target, progress, contiguous=contiguous, rule=rule)
        return _report(plan, path, target)
    file = FileBytes.open(there)
    try:
        if in_place and not begins_like_a_frame(bytes_of_file(file, 0)):
            raise ArgumentError(
                f"{path}: does not begin like a frame, so it is not replaced; without in_place, what is found in it "
                "goes into another file"
            )
        place = bytes_of_file(file, offset)
        plan = plan_recovery(place, file, offset, progress) if recover else make_plan(place, None, progress)
        settle_array(plan)
        _write(plan, target, progress, contiguous=contiguous, rule=rule)
    finally:
        file.close()
    return _report(plan, path, target)


def _beside(path: str) -> str:
    """Return the default name of the result."""
    given = Path(path)
    if not given.name:
        raise ArgumentError(f"{path}: the root directory, which is no frame")
    return str(given.with_name(f"{given.stem}.repaired{given.suffix}"))


def _rule(target: str, there: str | None) -> ReplaceRule:
    """Return the rule that lets the result replace the damaged frame `there`; None: nothing."""
    if there is None:
        return ReplaceRule(path=target)
    try:
        status = os.stat(there)
    except OSError as error:
        raise storage_error(error, target) from error
    return ReplaceRule(path=target, identity=(status.st_dev, status.st_ino))


def _checked(path: str, offset: int) -> VerifyReport:
    """Return what `verify` says; without seals, chunks have to be decoded."""
    report = verify(path, offset=offset)
    return verify_within_budget(path, offset) if report.status == "not sealed" else report


def _write(
    plan: Plan,
    target: str,
    progress: Callable[[int, int], object] | None,
    *,
    contiguous: bool,
    rule: ReplaceRule,
) -> None:
    """Write the frame that is planned; nothing has the name until all is written."""
    chunksize = plan.chunksize
    if plan.vlblocks and chunksize > _MOST_PLAIN + plan.size and (plan.pieces.grades == LOST).any():
        chunksize = 0
    store = FrameStore.create(
        target,
        plan.settings,
        chunksize,
        plan.meta,
        vlblocks=plan.vlblocks,
        publish=False,
        contiguous=contiguous,
        rule=rule,
    )
    try:
        with store.batch():
            if plan.fill is not None:
                store.fill_special(*plan.fill, None)
            for done, chunks in _batches(plan, variable=chunksize <= 0):
                store.append(chunks)
                if progress is not None:
                    progress(done, len(plan.pieces))
            for name, content in list(plan.vlmeta.items())[:_MOST_VLMETA]:
                store.set_vlmeta(name, content)
        store.flush()
    except BaseException:
        store.discard()
        raise
    store.close()


def _batches(plan: Plan, *, variable: bool) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the chunks, some MiB at a time."""
    held: list[bytes] = []
    size = done = 0
    for start, count in plan.pieces.runs():
        piece = plan.pieces[start]
        chunk = chunk_bytes(piece.source) if piece.source is not None else _chunk_of(plan, piece, variable=variable)
        left = count
        while left:
            taken = min(left, _BATCH_NCHUNKS - len(held))
            held += [chunk] * taken
            left, done, size = left - taken, done + taken, size + len(chunk) * taken
            if size >= _BATCH or len(held) >= _BATCH_NCHUNKS or done == len(plan.pieces):
                yield done, held
                held, size = [], 0


def _chunk_of(plan: Plan, piece: RecoveredChunk, *, variable: bool) -> bytes:
    """Return the bytes of a chunk of the result that has none in the damaged frame."""
    typesize = plan.settings.typesize
    if plan.vlblocks:
        nbytes = typesize if piece.nbytes > _MOST_PLAIN + plan.size else piece.nbytes
        return _engine.compress_vlblocks([bytes(nbytes)], _engine.EncodeParams(typesize=1))
    kind = piece.special or (_ZERO if variable else _UNINIT)
    if variable:
        return repeated_chunk(kind, piece.nbytes, typesize)
    if typesize > 255 or piece.nbytes % typesize:  # what a chunk can record
        typesize = 1
    return _engine.special_chunk(kind, piece.nbytes, typesize)


def _listed(number: int, piece: RecoveredChunk) -> RepairedChunk:
    return RepairedChunk(
        nchunk=number, status=piece.grade, position=piece.position, reason=piece.reason, file=piece.file
    )


def _report(plan: Plan, path: str, target: str) -> RepairReport:
    grades = plan.pieces.grades
    classes = grades.tobytes().translate(_LETTERS_OF).decode()
    listed = [_listed(number, plan.pieces[number]) for number in np.flatnonzero(grades)[:_MOST_LISTED].tolist()]
    nchunks = len(plan.pieces)
    if plan.fill is not None:
        nchunks = -(-plan.fill[1] // plan.chunksize)
    counts = {name: classes.count(letter) for name, letter in _LETTERS.items()}
    if plan.fill is not None:
        counts["whole"] = nchunks
    return RepairReport(
        path=path,
        output=target,
        status="repaired",
        nchunks=nchunks,
        chunks=counts,
        classes="" if counts["whole"] == nchunks else classes,
        listed=tuple(listed),
        notes=tuple(plan.notes),
    )
