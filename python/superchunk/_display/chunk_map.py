"""How well the chunks of a super-chunk are compressed, as a strip of a few cells.

::

    chunks   0 1 2 3 4 5 6 7 8 9 ...            any number of them
    cells    [  0  ][  1  ][  2  ]              at most as many as asked for
    looked     ^       ^       ^                some chunks of each: the header, nothing more

The cost is bounded whatever the number of chunks: at most `SAMPLES` headers are read. A cell says how many of its
chunks were read. Nothing is decompressed. `notebook_card` draws for notebooks, `superchunk.cli` for terminals and
pictures.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from superchunk import _engine
from superchunk._display.info import bytes_text
from superchunk._schunk.handle import Handle
from superchunk.exceptions import FormatError, StorageError
from superchunk.params import SpecialValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from superchunk._store.store_interface import ChunkList

__all__ = ["BEST_RATIO", "DAMAGED", "SAMPLES", "MapCell", "chunk_map", "colour"]

SAMPLES: Final = 512
"""Chunks that are read, at most, unless there are more cells than that."""
BEST_RATIO: Final = 100.0
"""What `MapCell.level` takes for the best there is."""
PALETTE: Final = ("#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725")
"""Colours for ratios from 1 to `BEST_RATIO`: those of matplotlib's "viridis", without its darkest."""
DAMAGED: Final = "#d62728"
_SPECIAL: Final = "#808080"


def colour(level: float) -> str:
    """Return the colour for a level from 0 to 1, as ``#rrggbb``.

    Examples
    --------
    >>> colour(0.0), colour(1.0)
    ('#46327e', '#fde725')

    """
    place = min(max(level, 0.0), 1.0) * (len(PALETTE) - 1)
    left = min(int(place), len(PALETTE) - 2)
    share = place - left
    channels = (
        round(int(PALETTE[left][at : at + 2], 16) * (1 - share) + int(PALETTE[left + 1][at : at + 2], 16) * share)
        for at in (1, 3, 5)
    )
    return "#" + "".join(f"{channel:02x}" for channel in channels)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCell:
    """Some neighbouring chunks, or one."""

    first: int
    """Place of the first one: its number, or its place in the list that was asked about."""
    stop: int
    """Place behind the last one."""
    looked: int
    """How many of them were read."""
    nbytes: int
    """Bytes of those, uncompressed."""
    cbytes: int
    """Bytes of those, compressed."""
    special: SpecialValue | None
    """What all of those are, if they are special chunks of one kind; None otherwise."""
    damaged: int
    """How many of those have a header that cannot be read."""

    @property
    def ratio(self) -> float:
        """Uncompressed by compressed bytes, 0.0 if nothing could be read."""
        return self.nbytes / self.cbytes if self.cbytes else 0.0

    @property
    def level(self) -> float:
        """The ratio on a scale from 0 (not compressed) to 1 (a hundred times smaller), logarithmic."""
        return min(max(math.log(self.ratio) / math.log(BEST_RATIO), 0.0), 1.0) if self.ratio else 0.0

    @property
    def colour(self) -> str:
        """A colour for the ratio, ``#rrggbb``: grey for special chunks, red for damaged ones."""
        if self.damaged:
            return DAMAGED
        return _SPECIAL if self.special is not None else colour(self.level)

    def text(self, chunks: int) -> str:
        """Return it in words; `chunks` is the number of all chunks."""
        which = (
            f"chunk {self.first:,}" if self.stop - self.first == 1 else f"chunks {self.first:,} to {self.stop - 1:,}"
        )
        if self.looked < self.stop - self.first:
            which += f" ({self.looked} of {self.stop - self.first:,} read)"
        which += f" of {chunks:,}"
        if self.damaged:
            return f"{which}: {self.damaged} damaged"
        if self.special is not None:
            return f"{which}: special, {self.special.name.lower()}"
        return f"{which}: {bytes_text(self.nbytes)} in {bytes_text(self.cbytes)}, {self.ratio:.2f}x"


def chunk_map(schunk: object, cells: int = 64, *, among: Sequence[int] | None = None) -> list[MapCell]:
    """Return how well chunks are compressed, neighbours taken together.

    Parameters
    ----------
    schunk
        A `SChunk` or `NDArray`.
    cells
        How many cells there may be, 1 or more; there are never more than chunks.
    among
        Numbers of chunks, in any order, to look at instead of all.

    Returns
    -------
    list of MapCell
        In order, about the same number of chunks in each. Of many chunks, a sample of evenly spaced ones in each cell
        is read. The sample has at most `SAMPLES` chunks in all, or one for each cell.

    Raises
    ------
    ValueError
        `cells` is less than 1.
    TypeError
        `schunk` is something else.
    ClosedError
        It was closed.

    Examples
    --------
    >>> import superchunk
    >>> s = superchunk.SChunk(data=bytes(4000), chunksize=1000)
    >>> [(cell.first, cell.stop, cell.special.name) for cell in superchunk.chunk_map(s, cells=2)]
    [(0, 2, 'ZERO'), (2, 4, 'ZERO')]

    """
    limit = operator.index(cells)
    if limit < 1:
        raise ValueError(f"cells: expected 1 or more, got {limit}")
    chunks = getattr(schunk, "schunk", schunk)
    handle = getattr(chunks, "_handle", None) if hasattr(chunks, "get_lazychunk") else None
    if not isinstance(handle, Handle):
        raise TypeError(f"schunk: expected a SChunk or an NDArray, got {type(schunk).__name__}")
    return handle.store.read_consistent(_look, limit, among)


def _look(chunks: ChunkList, limit: int, among: Sequence[int] | None) -> list[MapCell]:
    numbers = range(chunks.nchunks) if among is None else among
    count = min(limit, len(numbers))
    if not count:
        return []
    samples = max(SAMPLES // count, 1)
    edges = [len(numbers) * n // count for n in range(count + 1)]
    return [_cell(chunks, numbers, edges[n], edges[n + 1], samples) for n in range(count)]


def _cell(chunks: ChunkList, numbers: Sequence[int], first: int, stop: int, samples: int) -> MapCell:
    width = stop - first
    looked = min(width, samples)
    nbytes = cbytes = damaged = 0
    kinds = set()
    for n in range(looked):
        # The middle of each of `looked` equal parts.
        number = numbers[first + (2 * n + 1) * width // (2 * looked)]
        try:
            info = _engine.describe(chunks.source(number))
        except (FormatError, StorageError):
            damaged += 1
            continue
        nbytes += info.nbytes
        cbytes += info.cbytes
        kinds.add(info.special)
    kind = SpecialValue(kinds.pop()) if len(kinds) == 1 and not damaged else SpecialValue.NOT_SPECIAL
    return MapCell(
        first=first,
        stop=stop,
        looked=looked,
        nbytes=nbytes,
        cbytes=cbytes,
        special=None if kind is SpecialValue.NOT_SPECIAL else kind,
        damaged=damaged,
    )
