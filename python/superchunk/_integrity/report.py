"""What `verify` found: part by part, chunk by chunk, overall.

::

    status of a part     means
    sound                as it was written: a fingerprint, a seal or a record proves it
    not sealed           nothing is wrong with it, and nothing proves it
    changed              readable, but not as our last commit left it
    in doubt             it may be damaged: what would prove it is damaged itself
    damaged              not as it was written, or it breaks the format

Plain values: they can be pickled, compared, and put into JSON. Does not look at files.

Source: docs/format/integrity.md, "What a reader concludes".
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["ChunkReport", "PartReport", "PartStatus", "VerifyReport", "place_of"]

PartStatus = Literal["sound", "not sealed", "changed", "in doubt", "damaged"]
"""What is known about a part."""

FrameStatus = Literal["sound", "not sealed", "damaged"]
"""What is known about a frame."""

_SHOWN: Final = 20


def place_of(position: int, file: str) -> str:
    """Return in words where a chunk is."""
    return f"in {file}" if file else f"at byte {position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """One part of a frame that is not a chunk."""

    name: str
    """``header``, ``metalayer 'x'``, ``commit record``, ``index chunk``, ``trailer``,
    ``vlmetalayer 'x'``, ``fingerprint``; of a sparse frame, whose parts are those of its
    index file, also ``last synced index``, which counts for nothing in the overall status."""
    status: PartStatus
    """What is known about it."""
    position: int
    """Its first byte, counted from the frame's."""
    length: int
    """Its bytes; 0 if that is not known."""
    message: str = ""
    """What is wrong, or what to know; empty if there is nothing to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkReport:
    """One chunk that is not as it should be."""

    nchunk: int
    """Its number."""
    status: PartStatus
    """What is known about it."""
    position: int
    """Its first byte, counted from the frame's; in a sparse frame the number of its file."""
    reason: str
    """What is wrong."""
    file: str = ""
    """In a sparse frame the name of its file."""

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return place_of(self.position, self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What `superchunk.verify` found.

    Examples
    --------
    >>> VerifyReport(path="a.b2frame", status="sound", chunks={"sound": 3}, nchunks=3).status
    'sound'

    """

    path: str
    """The file, or ``<bytes>``."""
    offset: int = 0
    """The frame's first byte in it."""
    kind: Literal["contiguous", "sparse"] = "contiguous"
    """One file, or a directory."""
    status: FrameStatus
    """``damaged`` if any part or chunk is; ``sound`` if all is proven; else ``not sealed``."""
    is_frame: bool = True
    """Whether anything tells of a Blosc2 frame. Another file, or one whose both ends are lost, has the
    status ``damaged`` as well."""
    parts: tuple[PartReport, ...] = ()
    """Everything but the chunks, in the order of the frame."""
    nchunks: int = 0
    """Number of chunks that the index names."""
    chunks: Mapping[str, int] = field(default_factory=dict)
    """How many chunks have which status; ``special`` are those that are only an entry."""
    damaged_chunks: tuple[ChunkReport, ...] = ()
    """The chunks that are damaged or in doubt, at most the first thousand."""
    unsealed_chunks: tuple[ChunkReport, ...] = ()
    """Chunks without a seal in a frame with a fingerprint, at most the first thousand."""
    nbytes: int = 0
    """Uncompressed bytes that the frame claims."""
    frame_len: int = 0
    """Bytes of the frame."""
    dead_bytes: int = 0
    """Bytes in it that nothing refers to; nobody reads them. In a sparse frame those of
    chunk files that its index does not name, and what is behind chunk and seal."""
    bytes_behind: int = 0
    """Bytes of the file behind the frame."""
    decoded: bool = False
    """Whether the chunks were decoded, too."""

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
        place = f" at byte {self.offset}" if self.offset else ""
        yield f"{self.path}{place}: {self.status}"
        width = max((len(part.name) for part in self.parts), default=0)
        for part in self.parts:
            line = (
                f"  {part.name:<{width}}  {part.status:<10}  {part.position:>12,}  {part.length:>12,}  {part.message}"
            )
            yield line.rstrip()
        counts = ", ".join(f"{count:,} {status}" for status, count in self.chunks.items() if count)
        yield f"  chunks: {self.nchunks:,}{f' ({counts})' if counts else ''}"
        listed = self.damaged_chunks + self.unsealed_chunks
        for chunk in listed[:_SHOWN]:
            yield f"  chunk {chunk.nchunk} {chunk.place}: {chunk.status}, {chunk.reason}"
        if len(listed) > _SHOWN:
            yield f"  ... and {len(listed) - _SHOWN} more"
        yield f"  dead bytes: {self.dead_bytes:,}; behind the frame: {self.bytes_behind:,}"
