"""`verify`: finding out whether every byte of a frame is as it was written.

Every part is read for itself; nothing that is damaged ends the search. See
`inspect_frame` for the parts, `check_chunk` for the chunks, `report` for the answer.

Source: docs/format/integrity.md.
"""

from __future__ import annotations

import operator
import os
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from superchunk import _engine
from superchunk._format.legacy_header import HEAD_LEN, is_legacy
from superchunk._integrity.array_layer import decode_chunk, layer_name, layout_in, true_layout
from superchunk._integrity.budget import Budget
from superchunk._integrity.check_chunk import MOST_LISTED, ChunkCheck
from superchunk._integrity.chunk_locations import FilePlaces, FolderPlaces
from superchunk._integrity.index_file import bytes_of_file, chunk_files, last_synced_part, opened_index
from superchunk._integrity.inspect_frame import Bytes, decode_in_pieces, examine, looks_like_a_frame
from superchunk._integrity.report import ChunkReport, PartReport, VerifyReport
from superchunk._store.chunk_folder import INDEX_NAME, is_folder, joined
from superchunk._store.frame_names import find_name
from superchunk._store.legacy_frame import open_legacy, read_legacy
from superchunk._store.os_file import FileBytes
from superchunk._store.path_target import missing
from superchunk.exceptions import ArgumentError, FormatError, StorageError, UnsupportedError
from superchunk.params import absolute_path, default_nthreads, local_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk._integrity.chunk_locations import ChunkPlaces
    from superchunk._integrity.inspect_frame import FrameInspection
    from superchunk._integrity.report import FrameStatus
    from superchunk._store.store_interface import ChunkStore

__all__ = ["bytes_of_buffer", "verify", "verify_held", "verify_within_budget"]

_MOST_LOOKS: Final = 20
"""How often a frame is read that is changed while it is."""


def verify(
    urlpath: str | os.PathLike[str] | bytes | bytearray | memoryview,
    *,
    offset: int = 0,
    decode: bool = False,
    nthreads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> VerifyReport:
    """Check every part of a frame, and every chunk, against what proves it.

    Nothing is decoded but index and vlmetalayers, unless `decode` is set. What is damaged
    is listed, and the search goes on. Frames of other writers have no seals: for them
    it is the structure that is checked. The report is of one committed state: if the frame is changed
    meanwhile, and what was found does not fit together, the search begins again.

    Parameters
    ----------
    urlpath
        A file, the directory of a sparse frame, or a whole frame as bytes.
    offset
        The frame's first byte; 0 for a directory.
    decode
        Decode each chunk as well, some MiB at a time.
    nthreads
        Threads for hashing and decoding; None: as by default.
    progress
        Called with the bytes of chunks done and those in all, about.

    Returns
    -------
    VerifyReport
        What was found; its `status` is ``"sound"``, ``"not sealed"`` or ``"damaged"``.

    Raises
    ------
    FileNotFoundError
        There is nothing at that path.
    StorageError
        It cannot be read.
    ValueError
        `offset` or `nthreads` is out of range.

    Examples
    --------
    >>> import superchunk
    >>> raw = superchunk.SChunk(data=b"0123456789" * 100).to_cframe()
    >>> superchunk.verify(raw).chunks["damaged"]
    0

    """
    threads = _threads(nthreads)
    if offset < 0:
        raise ArgumentError(f"offset: expected 0 or more bytes, got {offset}")
    if isinstance(urlpath, (bytes, bytearray, memoryview)):
        place = bytes_of_buffer(memoryview(urlpath).cast("B")[offset:])
        return _verify(place, "<bytes>", offset, None, decode=decode, nthreads=threads, progress=progress)
    path = local_path(urlpath)
    if path is None:
        raise TypeError("urlpath: expected a path or bytes, got None")
    final = absolute_path(path)
    how = _How(decode, threads, progress)
    for last in (*[False] * (_MOST_LOOKS - 1), True):
        there = find_name(final)
        if there is None:
            raise missing(final)
        before = _stamp(there)
        try:
            report = _verify_at(there, path, offset, how)
        except (FileNotFoundError, StorageError):
            if last or _stamp(there) == before:
                raise
        else:
            if last or report.status != "damaged" or _stamp(there) == before:
                break
    return report


class _How(NamedTuple):
    """How a frame is verified, see `verify`."""

    decode: bool
    nthreads: int
    progress: Callable[[int, int], object] | None
    limited: bool = False


def _verify_at(there: str, path: str, offset: int, how: _How) -> VerifyReport:
    """Return the report about the frame that is at `there` now; it calls it `path`."""
    if is_folder(there):
        if offset:
            raise ValueError(f"offset: expected 0 for the directory of a sparse frame, got {offset}")
        with opened_index(there) as (place, problem):
            report = _verify(place, path, 0, there, **how._asdict())
            return _with_folder(report, there, problem)
    try:
        file = FileBytes.open(there)
    except FileNotFoundError as error:
        raise missing(there) from error
    with closing(file):
        return _verify(bytes_of_file(file, offset), path, offset, None, **how._asdict())


def _stamp(path: str) -> tuple[int, ...] | None:
    """Return what tells the committed states of a frame apart: file, length and times; None if there is none."""
    try:
        found = os.stat(joined(path, INDEX_NAME) if is_folder(path) else path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def verify_held(
    store: ChunkStore,
    path: str,
    *,
    decode: bool = False,
    nthreads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> VerifyReport:
    """Check the chunks that a store in memory has, against their seals where a frame sealed them.

    Parameters
    ----------
    store
        The chunks: of a frame as bytes, of a file whose changes stay in memory, or made here.
    path
        What the report is about.
    decode, nthreads, progress
        As for `verify`.

    """
    threads = _threads(nthreads)
    counts = {"special": 0, "sound": 0, "not sealed": 0, "damaged": 0, "in doubt": 0}
    damaged: list[ChunkReport] = []
    parts = [PartReport(name="header", status="not sealed", position=0, length=0, message="in memory")]
    try:
        store.prove()
    except FormatError as error:
        parts.append(PartReport(name="fingerprint", status="damaged", position=0, length=0, message=str(error)))
    held, total, done = store.snapshot(), store.cbytes, 0
    layout, itemsize = layout_in(store.meta), store.settings.typesize
    for number in range(store.nchunks):
        try:
            source = store.source(number)
            done += _engine.describe(source).cbytes
            _check_held(store, number, source)
            if decode:
                with suppress(UnsupportedError):
                    decode_chunk(source, layout, nthreads=threads, itemsize=itemsize)
            entry = held.index[number]
            sealed = held.seals is not None and entry in held.seals
            counts["special" if entry < 0 else "sound" if sealed else "not sealed"] += 1
        except FormatError as error:
            counts["damaged"] += 1
            if counts["damaged"] <= MOST_LISTED:
                damaged.append(ChunkReport(nchunk=number, status="damaged", position=0, reason=str(error)))
        if progress is not None:
            progress(min(done, total), total)
    return VerifyReport(
        path=path,
        status="damaged" if damaged or parts[-1].status == "damaged" else "not sealed",
        parts=tuple(parts),
        nchunks=store.nchunks,
        chunks=counts,
        damaged_chunks=tuple(damaged),
        nbytes=store.nbytes,
        decoded=decode,
    )


def _check_held(store: ChunkStore, number: int, source: _engine.Source) -> None:
    """Compare a chunk in memory with its seal, and with the size that the store counts with."""
    store.check(number)
    wanted, found = store.chunk_nbytes(number), _engine.describe(source).nbytes
    if found != wanted:
        raise FormatError(f"chunk {number}", at=4, expected=wanted, found=found)


def _threads(nthreads: int | None) -> int:
    """Return how many threads hash and decode."""
    threads = default_nthreads() if nthreads is None else operator.index(nthreads)
    if threads < 1:
        raise ArgumentError(f"nthreads: expected at least 1, got {threads}")
    return threads


def verify_within_budget(path: str, offset: int) -> VerifyReport:
    """Verify a frame and decode as many chunks as the budget of its size allows; others keep their status."""
    how = _How(decode=True, nthreads=default_nthreads(), progress=None, limited=True)
    return _verify_at(find_name(path) or path, path, offset, how)


def bytes_of_buffer(raw: memoryview) -> Bytes:
    """Return the frame in a buffer."""
    return Bytes(
        lambda nbytes, at: bytes(raw[at : at + nbytes]),
        len(raw),
        lambda at, limit: raw[at : at + limit],
    )


def _verify(
    place: Bytes,
    path: str,
    offset: int,
    folder: str | None,
    *,
    decode: bool,
    nthreads: int,
    progress: Callable[[int, int], object] | None,
    limited: bool = False,
) -> VerifyReport:
    """Return the report about the frame at `place`; `limited` decodes only what the budget of its size allows."""
    found = examine(place)
    if found.header is None and not place.sparse and is_legacy(place.read(HEAD_LEN, 0)):
        return _legacy(place, path, offset, decode=decode)
    header, index = found.header, found.index
    check = None
    if header is not None and index is not None:
        places: ChunkPlaces
        if folder is None:
            places = FilePlaces(place, header.header_len, max(min(found.data_len, place.size - header.header_len), 0))
        else:
            places = FolderPlaces(folder)
        check = ChunkCheck(
            index,
            places,
            chunksize=header.chunksize,
            nbytes=header.nbytes,
            sealed=found.fingerprinted,
            sealed_from=found.sealed_from,
            doubtful=found.trailer is None,
            decode=decode,
            nthreads=nthreads,
            itemsize=header.typesize,
            progress=progress,
            layout=layout_in(_contents(found)),
            budget=Budget.of(place.size + places.data_len) if limited else None,
        )
        check.run()
        if check.index_problem:
            _blame_index(found, check.index_problem)
    if header is not None:
        _blame_layer(found, 0 if not header.nbytes else None if index is None else len(index))
    frame_len = 0 if header is None else header.frame_len
    dead = 0
    if check is not None and not found.index_is_old:
        # In a directory, the bytes of chunk files beyond what the index names.
        held = check.data_len if folder is not None else frame_len - found.overhead
        dead = max(held - check.stored, 0)
    return VerifyReport(
        path=path,
        offset=offset,
        kind="contiguous" if folder is None else "sparse",
        status=_overall(found, check),
        is_frame=header is not None or folder is not None or looks_like_a_frame(place),
        parts=tuple(found.parts),
        nchunks=0 if index is None else len(index),
        chunks={} if check is None else check.by_name(),
        damaged_chunks=() if check is None else tuple(sorted(check.damaged, key=operator.attrgetter("nchunk"))),
        unsealed_chunks=() if check is None else tuple(check.unsealed),
        nbytes=0 if header is None else header.nbytes,
        frame_len=frame_len,
        dead_bytes=dead,
        bytes_behind=max(place.size - frame_len, 0) if header is not None else 0,
        decoded=decode,
    )


def _with_folder(report: VerifyReport, folder: str, problem: str) -> VerifyReport:
    """Return the report with what is in the directory besides the index file."""
    parts = list(report.parts)
    if problem:
        parts = [PartReport(name="header", status="damaged", position=0, length=0, message=problem)]
    if not report.chunks and report.status == "damaged":
        data_len, count = FolderPlaces(folder).data_len, chunk_files(folder)
        message = f"{count} of them, named by nothing that can be read; repair() uses what there is"
        parts.append(PartReport(name="chunk files", status="in doubt", position=0, length=data_len, message=message))
    synced = last_synced_part(folder)
    if synced is not None:
        parts.append(synced)
    return replace(report, parts=tuple(parts))


def _legacy(place: Bytes, path: str, offset: int, *, decode: bool) -> VerifyReport:
    """Return the report about a frame of an old writer: whether it can be read."""
    damaged: list[ChunkReport] = []
    parts = [PartReport(name="header", status="not sealed", position=0, length=0, message="a frame of an old writer")]
    counts = {"not sealed": 0, "damaged": 0}
    nbytes = 0
    try:
        store = open_legacy(path, offset=offset) if path != "<bytes>" else read_legacy(place.read(place.size, 0))
        for number in range(0 if store is None else store.nchunks):
            try:
                source = store.source(number)  # type: ignore[union-attr]
                nbytes += _engine.describe(source).nbytes
                if decode:
                    decode_in_pieces(source)
                counts["not sealed"] += 1
            except FormatError as error:
                counts["damaged"] += 1
                if counts["damaged"] <= MOST_LISTED:
                    damaged.append(ChunkReport(nchunk=number, status="damaged", position=0, reason=str(error)))
    except FormatError as error:
        parts = [PartReport(name="header", status="damaged", position=0, length=0, message=str(error))]
    return VerifyReport(
        path=path,
        offset=offset,
        status="damaged" if damaged or parts[0].status == "damaged" else "not sealed",
        parts=tuple(parts),
        nchunks=sum(counts.values()),
        chunks=counts,
        damaged_chunks=tuple(damaged),
        nbytes=nbytes,
        decoded=decode,
    )


def _blame_index(found: FrameInspection, why: str) -> None:
    """Note what the chunks show about the index."""
    for n, part in enumerate(found.parts):
        if part.name == "index chunk":
            found.parts[n] = PartReport(
                name=part.name,
                status="damaged",
                position=part.position,
                length=part.length,
                message="; ".join(filter(None, (part.message, why))),
            )


def _contents(found: FrameInspection) -> dict[str, bytes]:
    """Return the fixed metalayers."""
    return {name: found.raw_header[at : at + length] for name, (at, length) in found.layers.items()}


def _blame_layer(found: FrameInspection, nchunks: int | None) -> None:
    """Note whether the layer of an array can be true."""
    meta, header = _contents(found), found.header
    name = layer_name(meta)
    if name is None or header is None:
        return
    try:
        layout = true_layout(meta[name], typesize=header.typesize, chunksize=header.chunksize, nchunks=nchunks)
    except FormatError as error:
        problem = str(error)
    else:
        wanted = layout.nchunks * layout.chunk_items * header.typesize
        if header.nbytes == wanted:
            return
        problem = f"the array has {wanted} bytes, and the header says {header.nbytes}"
    for n, part in enumerate(found.parts):
        if part.name == f"metalayer {name!r}":
            found.parts[n] = replace(part, status="damaged", message="; ".join(filter(None, (problem, part.message))))


def _overall(found: FrameInspection, check: ChunkCheck | None) -> FrameStatus:
    """Return the worst of all."""
    statuses = {part.status for part in found.parts}
    if check is not None:
        statuses |= {report.status for report in check.damaged}
        if check.by_name()["not sealed"]:
            statuses.add("not sealed")
    if statuses & {"damaged", "in doubt"}:
        return "damaged"
    return "not sealed" if statuses & {"not sealed", "changed"} else "sound"
