"""Copying the chunks of a contiguous frame into another file, as they are, with their seals; renewing seals.

A seal that does not fit its chunk is copied too: it is the evidence of damage. Unless somebody
else has changed the frame, and may have left it there: then seals are made anew.

Source: docs/format/integrity.md, "Chunk seal".
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._format.frame_index import SLAB
from superchunk._format.integrity import SEAL_LEN, SEAL_MAGIC
from superchunk._store.seals import STALE, stored_entries
from superchunk.exceptions import TruncatedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from superchunk._store.contiguous_frame import ContiguousState
    from superchunk._store.os_file import FileBytes

__all__ = ["copy_chunks", "renew_seals"]

_PIECE = 4 * 2**20
_GROUP = 1024
"""Chunks whose sizes are asked together."""


def copy_chunks(
    state: ContiguousState, file: FileBytes, end: int, progress: Callable[[int, int], object] | None = None
) -> tuple[int, Sequence[int]]:
    """Write the chunks of `state`, in index order, from byte `end` of `file` on.

    Memory stays below some 8 MiB.

    Parameters
    ----------
    state
        The frame.
    file
        The new file.
    end
        Bytes of the header there.
    progress
        Called with the bytes of chunks done and those in all.

    Returns
    -------
    tuple
        Where the chunks end in `file`, and the entries for an index.

    Raises
    ------
    FormatError
        A chunk does not tell its size.
    StorageError
        Reading or writing failed.

    """
    out = _Output(file, end)
    entries = array("q")
    header_len, done = end, 0
    base = state.start + len(state.header_bytes)
    total = state.live[0]
    for start, held in state.index.slabs(_GROUP):
        stored = [(n, entry) for n, entry in enumerate(held, start) if entry >= 0]
        sizes = iter(_engine.sizes([state.place(entry, n) for n, entry in stored]))
        for entry in held:
            if entry < 0:
                entries.append(entry)
                continue
            entries.append(out.end - header_len)
            cbytes = next(sizes)[1]
            _copy_chunk(state.file, base + entry, cbytes, out, sealing=state.sealing, renew=not state.sealed)
            done += cbytes
            if progress is not None:
                progress(done, total)
    out.flush()
    return out.end, entries


def _copy_chunk(source: FileBytes, at: int, cbytes: int, out: _Output, *, sealing: bool, renew: bool) -> None:
    """Copy one chunk and its seal, or one that is made; always, to `renew` them."""
    seal = b""
    for offset in range(0, cbytes, _PIECE):
        wanted = min(_PIECE, cbytes - offset)
        last = offset + wanted == cbytes
        raw = source.pread(wanted + (SEAL_LEN if last else 0), at + offset)
        if len(raw) < wanted:
            raise TruncatedError("chunk", at=at, needed=cbytes, got=offset + len(raw))
        out.write(raw[:wanted] if last else raw)
        seal = raw[wanted:]
    if seal.startswith(SEAL_MAGIC) and len(seal) == SEAL_LEN and not (renew and sealing):
        out.write(seal)
    elif sealing:
        digest = _engine.hash64([(source.read_fd, at, cbytes)])
        out.write(SEAL_MAGIC + digest.to_bytes(8, "little"))


class _Output:
    """Writes gathered into larger ones."""

    def __init__(self, file: FileBytes, end: int) -> None:
        self.file, self.end = file, end
        self._parts: list[bytes] = []
        self._held = 0

    def write(self, data: bytes) -> None:
        """Put `data` at the end."""
        self._parts.append(data)
        self._held += len(data)
        self.end += len(data)
        if self._held >= _PIECE:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        if self._parts:
            self.file.pwrite(self._parts, self.end - self._held)
            self._parts, self._held = [], 0


def renew_seals(state: ContiguousState) -> None:
    """Bring seals up to date that another writer left behind a chunk that it changed.

    Raises
    ------
    StorageError
        The file cannot be read or written.

    """
    base = state.start + len(state.header_bytes)
    places = sorted(entry for slab in stored_entries(state.index) for _, entry in slab)
    for first in range(0, len(places), SLAB):
        slab_places = places[first : first + SLAB]
        sources = [state.place(entry, 0) for entry in slab_places]
        found = _engine.check_seals(sources)
        for n, (status, cbytes) in enumerate(found):
            entry = slab_places[n]
            end = entry + cbytes
            following = places[first + n + 1] if first + n + 1 < len(places) else end + SEAL_LEN
            if status == STALE and following >= end + SEAL_LEN:
                seal = _engine.seal(state.file.pread(cbytes, base + entry))
                state.file.pwrite(seal, base + end)
