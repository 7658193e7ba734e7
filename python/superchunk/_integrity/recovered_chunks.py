"""The chunks of a frame that is put together again: a list that takes some 30 bytes for each.

An ordinary chunk is in the damaged file, or in a file of its own in the directory; or it has no bytes. Sources of
any other kind, which are few, are kept as they are.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from superchunk._store.chunk_folder import chunk_name, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from superchunk._engine import Source

__all__ = ["LOST", "ChunkClass", "RecoveredChunk", "RecoveredChunks"]

ChunkClass = Literal["whole", "doubtful", "lost"]
"""What became of a chunk."""

_GRADES: Final[tuple[ChunkClass, ...]] = ("whole", "doubtful", "lost")
LOST: Final = _GRADES.index("lost")
"""How `RecoveredChunks.grades` has a lost chunk."""

_NOTHING, _RANGE, _FILE, _OTHER = range(4)
_MOST_REASONS: Final = 4096


class RecoveredChunk(NamedTuple):
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
    """Where it is, or should."""
    reason: str = ""
    """Why it is doubtful or lost; empty for a whole one."""
    file: str = ""
    """The name of its file, in a sparse frame."""
    vlblocks: bool = False
    """Whether it has blocks of variable length."""

    def lost(self, reason: str) -> RecoveredChunk:
        """Return the same without bytes."""
        return RecoveredChunk(None, 0, -1, "lost", self.position, reason, self.file)


class RecoveredChunks:
    """RecoveredChunks, in the order of the result; none can be put between others or removed."""

    def __init__(self, pieces: Iterable[RecoveredChunk] = ()) -> None:
        """Take the first ones."""
        self._kinds, self._specials, self._grades, self._vlblocks = bytearray(), bytearray(), bytearray(), bytearray()
        self._positions, self._limits, self._nbytes = array("q"), array("q"), array("q")
        self._reasons = array("H")
        self._texts: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}
        self._others: dict[int, tuple[Source, str]] = {}
        self._named = bytearray()
        self._fd, self._shift = -1, 0
        """The file, and what a place in it is more than a position in the frame."""
        self._folder = ""
        for piece in pieces:
            self.append(piece)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._kinds)

    def __iter__(self) -> Iterator[RecoveredChunk]:
        """Yield them all."""
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, at: int) -> RecoveredChunk:
        """Return the piece at place `at`, 0 or more."""
        kind, position = self._kinds[at], self._positions[at]
        name = chunk_name(position) if self._named[at] else ""
        source: Source | None = None
        if kind == _RANGE:
            source = (self._fd, position + self._shift, self._limits[at])
        elif kind == _FILE:
            source = (joined(self._folder, name), 0, self._limits[at])
        elif kind == _OTHER:
            source, name = self._others[at]
        return RecoveredChunk(
            source,
            self._specials[at],
            self._nbytes[at],
            _GRADES[self._grades[at]],
            position,
            self._texts[self._reasons[at]],
            name,
            bool(self._vlblocks[at]),
        )

    def __setitem__(self, at: int, piece: RecoveredChunk) -> None:
        """Put a piece in the place of another one."""
        self._others.pop(at, None)
        kind, named = self._kind(piece)
        if kind == _OTHER and piece.source is not None:
            self._others[at] = piece.source, piece.file
        self._kinds[at], self._named[at] = kind, named
        self._specials[at], self._vlblocks[at] = piece.special, piece.vlblocks
        self._grades[at] = _GRADES.index(piece.grade)
        self._positions[at], self._nbytes[at] = piece.position, piece.nbytes
        self._limits[at] = piece.source[2] if isinstance(piece.source, tuple) else 0
        self._reasons[at] = self._number(piece.reason)

    def append(self, piece: RecoveredChunk) -> None:
        """Add a piece at the end."""
        self.extend(piece._replace(source=None), 1)
        self[len(self) - 1] = piece

    def extend(self, piece: RecoveredChunk, count: int) -> None:
        """Add a piece without bytes at the end, `count` times."""
        for column, value in (
            (self._kinds, _NOTHING),
            (self._specials, piece.special),
            (self._grades, _GRADES.index(piece.grade)),
            (self._vlblocks, piece.vlblocks),
            (self._named, bool(piece.file)),
        ):
            column.extend(bytes((value,)) * count)
        self._positions.extend(array("q", (piece.position,)) * count)
        self._limits.extend(array("q", (0,)) * count)
        self._nbytes.extend(array("q", (piece.nbytes,)) * count)
        self._reasons.extend(array("H", (self._number(piece.reason),)) * count)

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield where chunks without bytes begin that are the same, and how many those are; others one by one."""
        kinds, sizes = np.frombuffer(self._kinds, dtype=np.uint8), self.sizes
        specials = self.specials
        alone = (kinds[1:] != _NOTHING) | (kinds[:-1] != _NOTHING)
        alone |= (sizes[1:] != sizes[:-1]) | (specials[1:] != specials[:-1])
        starts = [0, *(np.flatnonzero(alone) + 1).tolist()] if len(self) else []
        del kinds, sizes, specials
        yield from zip(starts, np.diff([*starts, len(self)]).tolist(), strict=True)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Uncompressed bytes of each, -1 where that is not known; may be changed, must not be kept."""
        return np.frombuffer(self._nbytes, dtype=np.int64)

    @property
    def grades(self) -> NDArray[np.uint8]:
        """What became of each, as a number; `LOST` is one. Must not be kept."""
        return np.frombuffer(self._grades, dtype=np.uint8)

    @property
    def stored(self) -> NDArray[np.bool_]:
        """Whether each has bytes."""
        return np.not_equal(np.frombuffer(self._kinds, dtype=np.uint8), _NOTHING)

    @property
    def specials(self) -> NDArray[np.uint8]:
        """The special value of each, 0 for others. Must not be kept."""
        return np.frombuffer(self._specials, dtype=np.uint8)

    @property
    def vlblocks(self) -> NDArray[np.bool_]:
        """Whether each has blocks of variable length."""
        return np.frombuffer(self._vlblocks, dtype=np.bool_)

    def _number(self, reason: str) -> int:
        """Return the number of a reason; after some thousand different ones, that of all others."""
        if reason not in self._numbers and len(self._texts) >= _MOST_REASONS:
            reason = "one of more reasons than are distinguished"
        if reason not in self._numbers:
            self._numbers[reason] = len(self._texts)
            self._texts.append(reason)
        return self._numbers[reason]

    def _kind(self, piece: RecoveredChunk) -> tuple[int, bool]:
        """Return how the source is kept, and whether the file has the chunk's name."""
        source = piece.source
        named = bool(piece.file) and 0 <= piece.position < 2**32 and piece.file == chunk_name(piece.position)
        if source is None:
            return _NOTHING, named
        if not isinstance(source, tuple) or isinstance(source[0], tuple):
            return _OTHER, named
        file, at, _ = source
        if isinstance(file, int):
            if self._fd < 0:
                self._fd, self._shift = file, at - piece.position
            return _RANGE if (file, at - piece.position, named) == (self._fd, self._shift, False) else _OTHER, named
        self._folder = self._folder or file.removesuffix(piece.file).rstrip("/")
        return _FILE if named and (joined(self._folder, piece.file), 0) == (file, at) else _OTHER, named
