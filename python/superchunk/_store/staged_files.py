"""Chunk files that several processes write at once, and one coordinator commits.

The coordinator, which has the sparse frame open for writing, reserves ids. Any process compresses data into the file of
such an id, without a lock. The coordinator checks what comes back and puts it into its list::

    coordinator   ids = s.reserve_chunk_ids(3)            s.append_staged(staged)
    others                  stage_chunk(path, ids[i], data) -> StagedChunk

The index never names a file before that. Files of ids that are never put into the list are orphaned files,
which the next opening for writing removes.

Source: docs/format/sparse.md, "Several writers".
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Self

from superchunk import _engine
from superchunk._format.integrity import SEAL_LEN
from superchunk._store.chunk_folder import MAX_ID, chunk_name, joined, staging_name
from superchunk._store.chunk_sources import read_range
from superchunk._store.os_file import FileBytes, link_file, remove_file
from superchunk.exceptions import ArgumentError, FormatError, StorageError

__all__ = ["PlacedChunk", "StagedChunk", "place_chunk", "read_staged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedChunk:
    """A chunk that waits for the coordinator, in a file or, of one value, in here; can be pickled."""

    chunk_id: int
    """The id of its file."""
    nbytes: int
    """Uncompressed bytes."""
    cbytes: int
    """Bytes of the chunk."""
    special: bytes = b""
    """The chunk itself if all its items are one value; there is no file then."""


class PlacedChunk(bytes):
    """A chunk whose file is in the directory already, under the id `ident`."""

    ident: int

    @classmethod
    def of(cls, chunk: bytes, ident: int) -> Self:
        """Return `chunk`, known to be in the file of id `ident`."""
        placed = cls(chunk)
        placed.ident = ident
        return placed


def place_chunk(folder: str, ident: int, chunk: bytes) -> StagedChunk:
    """Write a chunk and its seal into the file of an id, on the disk when this returns.

    Parameters
    ----------
    folder
        The sparse frame's directory.
    ident
        The id, which has no file yet.
    chunk
        The chunk, exactly.

    Raises
    ------
    ArgumentError
        The id is none that a file name can have.
    StorageError
        There is such a file already (errno EEXIST), or the system refuses.

    """
    if not 0 <= ident <= MAX_ID:
        raise ArgumentError(f"chunk_id: expected 0 to {MAX_ID}, got {ident}")
    info = _engine.describe(chunk)
    if info.special:
        return StagedChunk(chunk_id=ident, nbytes=info.nbytes, cbytes=info.cbytes, special=bytes(chunk))
    name, temporary = chunk_name(ident), staging_name(ident)
    file = FileBytes.create(joined(folder, temporary), display_path=joined(folder, name))
    try:
        try:
            file.pwrite([chunk, _engine.seal(chunk)], 0)
            file.sync()
        finally:
            file.close()
        try:
            link_file(file.path, joined(folder, name))  # unlike a rename, it never replaces
        except StorageError as error:
            if error.errno == errno.EEXIST:
                raise StorageError(
                    errno.EEXIST, "there is a chunk file of that id already", joined(folder, name)
                ) from error
            raise
    finally:
        remove_file(file.path)
    return StagedChunk(chunk_id=ident, nbytes=info.nbytes, cbytes=info.cbytes)


def read_staged(folder: str, staged: StagedChunk) -> bytes:
    """Return a staged chunk after checking it: as `PlacedChunk` if it is in a file.

    Raises
    ------
    FormatError
        The file is not what `staged` says, or its seal does not fit.
    StorageError
        It cannot be read.

    """
    if staged.special:
        return staged.special
    name = chunk_name(staged.chunk_id)
    path = joined(folder, name)
    raw = read_range((path, 0, staged.cbytes + SEAL_LEN), staged.cbytes + SEAL_LEN)
    chunk = raw[: staged.cbytes]
    if len(raw) != staged.cbytes + SEAL_LEN or raw[staged.cbytes :] != _engine.seal(chunk):
        raise FormatError(
            f"staged chunk {path}", at=0, expected=f"{staged.cbytes} bytes and their seal", found="others"
        )
    info = _engine.describe(chunk)
    if (info.nbytes, info.cbytes) != (staged.nbytes, staged.cbytes):
        raise FormatError(
            f"staged chunk {path}",
            at=4,
            expected=f"a chunk of {staged.nbytes} bytes in {staged.cbytes}",
            found=f"one of {info.nbytes} in {info.cbytes}",
        )
    return PlacedChunk.of(chunk, staged.chunk_id)
