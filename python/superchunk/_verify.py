"""`verify`: finding out whether every byte of a frame is as it was written.

Every part is looked at for itself; nothing that is damaged ends the search. See
`_anatomy` for the parts, `_chunkcheck` for the chunks, `_report` for the answer.

Source: docs/format/integrity.md.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._anatomy import Bytes, decode_in_pieces, examine, looks_like_a_frame
from superchunk._array_layer import layer_name, layout_in, true_layout
from superchunk._chunkcheck import MOST_LISTED, ChunkCheck
from superchunk._chunkplaces import FilePlaces, FolderPlaces
from superchunk._index_file import bytes_of_file, chunk_files, opened_index, settled_part
from superchunk._report import ChunkReport, PartReport, VerifyReport
from superchunk.exceptions import FormatError
from superchunk.frame.legacy import HEAD_LEN, is_legacy
from superchunk.params import default_nthreads, local_path
from superchunk.storage.file import FileBytes
from superchunk.storage.folder import is_folder
from superchunk.storage.legacy import open_legacy, read_legacy
from superchunk.storage.names import find_name

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from superchunk._anatomy import Anatomy
    from superchunk._chunkplaces import ChunkPlaces
    from superchunk._report import FrameStatus

__all__ = ["bytes_of_buffer", "verify"]


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
    it is the structure that is checked.

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
    threads = default_nthreads() if nthreads is None else operator.index(nthreads)
    if threads < 1 or offset < 0:
        raise ValueError(f"nthreads, offset: expected at least 1 and 0, got {threads} and {offset}")
    if isinstance(urlpath, (bytes, bytearray, memoryview)):
        place = bytes_of_buffer(memoryview(urlpath).cast("B")[offset:])
        return _verify(place, "<bytes>", offset, None, decode=decode, nthreads=threads, progress=progress)
    path = local_path(urlpath) or ""
    there = find_name(path) or path
    if is_folder(there):
        if offset:
            raise ValueError(f"offset: expected 0 for the directory of a sparse frame, got {offset}")
        with opened_index(there) as (place, problem):
            report = _verify(place, path, 0, there, decode=decode, nthreads=threads, progress=progress)
            return _with_folder(report, there, problem)
    file = FileBytes.open(there)
    try:
        place = bytes_of_file(file, offset)
        return _verify(place, path, offset, None, decode=decode, nthreads=threads, progress=progress)
    finally:
        file.close()


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
) -> VerifyReport:
    """Return the report about the frame at `place`."""
    found = examine(place)
    if found.header is None and is_legacy(place.read(HEAD_LEN, 0)):
        return _legacy(place, path, offset, decode=decode)
    header, index = found.header, found.index
    check = None
    if header is not None and index is not None:
        places: ChunkPlaces
        if folder is None:
            places = FilePlaces(place, header.header_len, max(min(found.room, place.size - header.header_len), 0))
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
        held = check.room if folder is not None else frame_len - found.overhead
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
        room, count = FolderPlaces(folder).room, chunk_files(folder)
        message = f"{count} of them, named by nothing that can be read; repair() goes by what there is"
        parts.append(PartReport(name="chunk files", status="in doubt", position=0, length=room, message=message))
    settled = settled_part(folder)
    if settled is not None:
        parts.append(settled)
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


def _blame_index(found: Anatomy, why: str) -> None:
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


def _contents(found: Anatomy) -> dict[str, bytes]:
    """Return the fixed metalayers."""
    return {name: found.raw_header[at : at + length] for name, (at, length) in found.layers.items()}


def _blame_layer(found: Anatomy, nchunks: int | None) -> None:
    """Note whether the layer of an array can be true."""
    meta, header = _contents(found), found.header
    name = layer_name(meta)
    if name is None or header is None:
        return
    try:
        true_layout(meta[name], typesize=header.typesize, chunksize=header.chunksize, nchunks=nchunks)
    except FormatError as error:
        for n, part in enumerate(found.parts):
            if part.name == f"metalayer {name!r}":
                message = "; ".join(filter(None, (str(error), part.message)))
                found.parts[n] = replace(part, status="damaged", message=message)


def _overall(found: Anatomy, check: ChunkCheck | None) -> FrameStatus:
    """Return the worst of all."""
    statuses = {part.status for part in found.parts}
    if check is not None:
        statuses |= {report.status for report in check.damaged}
        if check.by_name()["not sealed"]:
            statuses.add("not sealed")
    if statuses & {"damaged", "in doubt"}:
        return "damaged"
    return "not sealed" if statuses & {"not sealed", "changed"} else "sound"
