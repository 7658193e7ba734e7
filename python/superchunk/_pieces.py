"""The chunks of a frame that is put together again: a list that takes some 25 bytes for each ordinary one.

An ordinary chunk is whole and in the damaged file, or in a file of its own in the directory; or it has no bytes, and
is whole. Others, which are few, are kept as they are.
"""

from __future__ import annotations

from array import array
from collections.abc import MutableSequence
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

from superchunk.storage.folder import chunk_name, joined

if TYPE_CHECKING:
    from collections.abc import Iterable

    from superchunk._engine import Source

__all__ = ["ChunkClass", "Piece", "Pieces"]

ChunkClass = Literal["whole", "doubtful", "lost"]
"""What became of a chunk."""

_OTHER, _RANGE, _FILE, _SPECIAL = 0, 1, 2, 16


class Piece(NamedTuple):
    """One chunk of the result."""

    source: Source | None
    """Its bytes; None for a special or a lost one."""
    special: int
    """Its special value if it has no bytes, else 0."""
    nbytes: int
    """Its uncompressed bytes, -1 if that is not known."""
    grade: ChunkClass
    """What became of it."""
    position: int
    """Where it stands, or should."""
    reason: str
    """Why it is doubtful or lost; empty for a whole one."""
    file: str
    """The name of its file, in a sparse frame."""


class Pieces(MutableSequence[Piece]):
    """Pieces, in the order of the result; none can be put between others or removed."""

    def __init__(self) -> None:
        self._kinds = bytearray()
        self._positions, self._limits, self._nbytes = array("q"), array("q"), array("q")
        self._others: dict[int, Piece] = {}
        self._fd, self._shift = -1, 0
        """The file, and what a place in it is more than a position in the frame."""
        self._folder = ""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._kinds)

    @overload
    def __getitem__(self, at: int) -> Piece: ...
    @overload
    def __getitem__(self, at: slice) -> MutableSequence[Piece]: ...
    def __getitem__(self, at: int | slice) -> Piece | MutableSequence[Piece]:
        """Return the piece at place `at`."""
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        kind, position, limit = self._kinds[at], self._positions[at], self._limits[at]
        if kind == _OTHER:
            return self._others[at]
        source: Source | None = None
        name = ""
        if kind == _RANGE:
            source = (self._fd, position + self._shift, limit)
        elif kind == _FILE:
            name = chunk_name(position)
            source = (joined(self._folder, name), 0, limit)
        return Piece(source, max(kind - _SPECIAL, 0), self._nbytes[at], "whole", position, "", name)

    @overload
    def __setitem__(self, at: int, value: Piece) -> None: ...
    @overload
    def __setitem__(self, at: slice, value: Iterable[Piece]) -> None: ...
    def __setitem__(self, at: int | slice, value: Piece | Iterable[Piece]) -> None:
        """Put a piece in the place of another one."""
        if isinstance(at, slice) or not isinstance(value, Piece):
            raise TypeError("one piece at a time")
        at = range(len(self))[at]
        self._kinds[at] = _OTHER
        self._others[at] = value

    def __delitem__(self, at: int | slice) -> None:
        """Refuse."""
        raise TypeError("pieces stay")

    def insert(self, index: int, value: Piece) -> None:
        """Add a piece at the end; no other place is possible."""
        if index != len(self):
            raise TypeError("only at the end")
        kind = self._kind(value)
        limit = value.source[2] if isinstance(value.source, tuple) else 0
        if kind == _OTHER:
            self._others[len(self)] = value
        self._kinds.append(kind)
        self._positions.append(value.position)
        self._limits.append(limit)
        self._nbytes.append(value.nbytes)

    def _kind(self, piece: Piece) -> int:
        source = piece.source
        if piece.grade != "whole" or piece.reason:
            return _OTHER
        if source is None:
            return _OTHER if piece.file else _SPECIAL + piece.special
        if not isinstance(source, tuple) or piece.special:
            return _OTHER
        file, at, _ = source
        if isinstance(file, int):
            if self._fd < 0:
                self._fd, self._shift = file, at - piece.position
            ours = (file, at - piece.position, piece.file) == (self._fd, self._shift, "")
            return _RANGE if ours else _OTHER
        if isinstance(file, tuple):
            return _OTHER
        self._folder = self._folder or file.removesuffix(piece.file).rstrip("/")
        ours = piece.file == chunk_name(piece.position) and (joined(self._folder, piece.file), 0) == (file, at)
        return _FILE if ours else _OTHER
