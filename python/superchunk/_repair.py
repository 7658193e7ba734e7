"""`repair`: from a damaged frame to one that can be read, and a report on every chunk.

::

    verify ── sound: nothing to do
       └──── damaged ── plan (`_repair_plan`) ── a new frame, written aside and renamed

The damaged file stays as it is, unless the new one is to take its name.

Source: docs/format/integrity.md, "Recovery".
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from superchunk import _engine
from superchunk._chunk_reads import chunk_bytes
from superchunk._index_file import bytes_of_file
from superchunk._repair_array import settle_array
from superchunk._repair_folder import plan_folder
from superchunk._repair_plan import make_plan
from superchunk._report import place_of
from superchunk._verify import verify
from superchunk.exceptions import ArgumentError, StorageError
from superchunk.params import local_path
from superchunk.storage.changes import repeated_chunk
from superchunk.storage.file import FileBytes
from superchunk.storage.folder import is_folder
from superchunk.storage.frames import FrameStore
from superchunk.storage.names import find_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from superchunk._pieces import ChunkClass, Piece
    from superchunk._repair_plan import Plan

__all__ = ["RepairReport", "RepairedChunk", "repair"]

_UNINIT: Final = 4
_ZERO: Final = 1
_BATCH: Final = 8 * 2**20
_BATCH_NCHUNKS: Final = 2048
_MOST_LISTED: Final = 1000
_MOST_VLMETA: Final = 16
_SHOWN: Final = 20
_LETTERS: Final = {"whole": "w", "doubtful": "d", "lost": "l"}
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

    A chunk is *whole* if its seal fits or it decodes completely, and an index names it;
    *doubtful* if it decodes, but its place, its being live or its content is a guess;
    *lost* if an index names it and its bytes are not there: the result has uninitialised
    items in its place, which read as zeros, so that the others keep their places.
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
    progress: Callable[[int, int], object] | None = None,
) -> RepairReport:
    """Write a frame that can be read from what is left of a damaged one.

    Works on frames of any writer, as far as their bytes allow; the report says for every
    chunk of the result whether it is whole, doubtful or lost. A frame that is not damaged is
    left alone. The result is of the same kind, one file or a directory, unless asked otherwise,
    and every chunk in it has a seal: who wants to know which ones were doubtful keeps the report.

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
        Let the new frame, once it is complete, take the damaged one's name. What was damaged is
        gone then.
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
        Nothing of a frame was found there.
    ArgumentError
        `output` and `in_place` are both given, or `offset` in place or for a directory.
    LockedError
        Another process is writing the frame that is to be replaced.
    StorageError
        `output` exists, or the system refuses; then nothing has changed.

    """
    path = local_path(urlpath) or ""
    there = find_name(path, mend=in_place) or path
    folder = there if is_folder(there) else None
    if in_place and (output is not None or offset):
        raise ArgumentError(f"{path}: in_place goes without output and offset")
    if offset < 0 or (offset and folder is not None):
        raise ArgumentError(f"{path}: offset: expected 0, or more within a file, got {offset}")
    contiguous = folder is None if contiguous is None else contiguous
    target = path if in_place else os.fspath(output) if output is not None else _beside(path)
    if not in_place and os.path.lexists(target):
        raise StorageError(errno.EEXIST, "exists already, and is not replaced", target)
    if not _damaged(path, offset):
        return RepairReport(path=path, output=None, status="nothing to do", notes=("the frame is not damaged",))
    if folder is not None:
        plan = plan_folder(folder, progress)
        settle_array(plan)
        _write(plan, target, progress, contiguous=contiguous)
        return _report(plan, path, target)
    file = FileBytes.open(there)
    try:
        plan = make_plan(bytes_of_file(file, offset), None, progress)
        settle_array(plan)
        _write(plan, target, progress, contiguous=contiguous)
    finally:
        file.close()
    return _report(plan, path, target)


def _beside(path: str) -> str:
    """Return the default name of the result."""
    given = Path(os.path.abspath(path))  # noqa: PTH100 - no links resolved
    return str(given.with_name(f"{given.stem}.repaired{given.suffix}"))


def _damaged(path: str, offset: int) -> bool:
    """Return whether there is anything to repair; without seals, chunks have to be decoded."""
    report = verify(path, offset=offset)
    if report.status == "not sealed":
        report = verify(path, offset=offset, decode=True)
    return report.status == "damaged"


def _write(plan: Plan, target: str, progress: Callable[[int, int], object] | None, *, contiguous: bool) -> None:
    """Write the frame that is planned; nothing has the name until all is written."""
    chunksize = plan.chunksize
    if chunksize > 0 and any(piece.nbytes != chunksize for piece in islice(plan.pieces, max(len(plan.pieces) - 1, 0))):
        chunksize = 0
    store = FrameStore.create(target, plan.settings, chunksize, plan.meta, publish=False, contiguous=contiguous)
    try:
        with store.batch():
            if plan.fill is not None:
                store.fill_special(*plan.fill, None)
            for done, chunks in _batches(plan, variable=chunksize <= 0):
                store.insert(store.nchunks, chunks)
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
    size = 0
    for number, piece in enumerate(plan.pieces, 1):
        chunk = _chunk_of(plan, piece, variable=variable)
        held.append(chunk)
        size += len(chunk)
        if size >= _BATCH or len(held) >= _BATCH_NCHUNKS or number == len(plan.pieces):
            yield number, held
            held, size = [], 0


def _chunk_of(plan: Plan, piece: Piece, *, variable: bool) -> bytes:
    """Return the bytes of a chunk of the result."""
    if piece.source is not None:
        return chunk_bytes(piece.source)
    typesize = plan.settings.typesize
    kind = piece.special or (_ZERO if variable else _UNINIT)
    if variable:
        return repeated_chunk(kind, piece.nbytes, typesize)
    if typesize > 255 or piece.nbytes % typesize:  # noqa: PLR2004 - what a chunk can record
        typesize = 1
    return _engine.special_chunk(kind, piece.nbytes, typesize)


def _report(plan: Plan, path: str, target: str) -> RepairReport:
    classes = "".join(_LETTERS[piece.grade] for piece in plan.pieces)
    listed: list[RepairedChunk] = []
    for number, piece in enumerate(plan.pieces):
        if piece.grade != "whole" and len(listed) < _MOST_LISTED:
            listed.append(
                RepairedChunk(
                    nchunk=number, status=piece.grade, position=piece.position, reason=piece.reason, file=piece.file
                )
            )
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
