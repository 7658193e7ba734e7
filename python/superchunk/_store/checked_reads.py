"""Reading whole chunks, as they are stored, to put them somewhere else: proven by their seals.

A chunk gets a new seal where it is written. So damage that was not noticed before would look
sound from then on; whoever copies compares first, the very bytes that are copied.

Source: docs/format/integrity.md, "What a reader concludes".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._format.integrity import SEAL_LEN
from superchunk._store.chunk_sources import read_range
from superchunk._store.seals import SEALED, UNSEALED
from superchunk.exceptions import FormatError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from superchunk._engine import Source

__all__ = ["check_chunks", "read_chunks"]


def read_chunks(
    chunks: Sequence[tuple[int, int]], sources: Sequence[Source], sizes: Sequence[int], seals: range | None
) -> list[bytes]:
    """Return the bytes of chunks, exactly.

    Parameters
    ----------
    chunks
        Number and index entry of each; an entry below 0 for one that is not stored.
    sources
        Where they are.
    sizes
        Their `cbytes`.
    seals
        As `Snapshot.seals`.

    Raises
    ------
    FormatError
        One is not what was sealed.
    TruncatedError
        A file ends within one.
    StorageError
        A file cannot be read.

    """
    more = 0 if seals is None else SEAL_LEN
    found: list[bytes | memoryview] = []
    for source, cbytes in zip(sources, sizes, strict=True):
        if not isinstance(source, tuple):
            found.append(source if isinstance(source, bytes) else memoryview(source).cast("B")[: cbytes + more])
            continue
        raw = read_range(source, min(cbytes + more, source[2]))
        if len(raw) < cbytes:
            raise TruncatedError("chunk", at=source[1], needed=cbytes, got=len(raw))
        found.append(raw)
    check_chunks(chunks, found, seals)
    return [
        raw if isinstance(raw, bytes) and len(raw) == cbytes else bytes(memoryview(raw)[:cbytes])
        for raw, cbytes in zip(found, sizes, strict=True)
    ]


def check_chunks(chunks: Sequence[tuple[int, int]], sources: Sequence[Source], seals: range | None) -> None:
    """Compare chunks with their seals.

    Parameters
    ----------
    chunks, sources, seals
        As for `read_chunks`.

    Raises
    ------
    FormatError
        One is not what was sealed.

    """
    if seals is None:
        return
    for (nchunk, entry), (status, cbytes) in zip(chunks, _engine.check_seals(sources), strict=True):
        if status == SEALED or entry < 0 or (status == UNSEALED and entry not in seals):
            continue
        raise FormatError(
            f"chunk {nchunk}",
            at=cbytes,
            expected="the seal of the chunk's bytes behind them",
            found=("none" if status == UNSEALED else "another seal")
            + ": the chunk is damaged; repair() makes a frame of the others",
        )
