"""What users may ask about chunks and blocks: which would be chosen, why, and how they lie.

Answers only; the choice is made in `partition`.

Source: docs/partitions.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk._array.partition import BLOCK_NBYTES, CHUNK_NBYTES, choose_partition, lengths, padding
from superchunk._display.info import in_unit
from superchunk.exceptions import ArgumentError
from superchunk.params import CParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import DTypeLike

    from superchunk._array.partition import Lengths

__all__ = [
    "PartitionReport",
    "are_partitions_aligned",
    "are_partitions_behaved",
    "compute_chunks_blocks",
    "explain_partition",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """Chunks and blocks for an array, and what they mean for it; `str` says it in words."""

    shape: tuple[int, ...]
    """Items of the array in each dimension."""
    itemsize: int
    """Bytes of an item."""
    chunks: tuple[int, ...]
    """Items of a chunk in each dimension."""
    blocks: tuple[int, ...]
    """Items of a block in each dimension."""
    given: tuple[str, ...]
    """Which of ``"chunks"`` and ``"blocks"`` the caller gave."""

    @property
    def chunk_nbytes(self) -> int:
        """Bytes of a chunk, in whole blocks."""
        return prod(map(_round_up, self.chunks, self.blocks)) * self.itemsize

    @property
    def block_nbytes(self) -> int:
        """Bytes of a block."""
        return prod(self.blocks) * self.itemsize

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        return prod(map(_pieces, self.shape, self.chunks))

    @property
    def padding(self) -> float:
        """Items that chunks hold beyond the array's, as a fraction of those."""
        return padding(self.shape, self.chunks, self.blocks)

    @property
    def hyperplane_nbytes(self) -> tuple[int, ...]:
        """Bytes that are decoded for one index of each dimension, and everything of the others."""
        whole = [_pieces(size, block) * block for size, block in zip(self.shape, self.blocks, strict=True)]
        return tuple(
            prod(block if i == axis else length for i, length in enumerate(whole)) * self.itemsize
            for axis, block in enumerate(self.blocks)
        )

    def __str__(self) -> str:
        """Return the reasons, line by line."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Return what the text is made of."""
        yield f"array   {_by(self.shape)} items of {self.itemsize} bytes"
        yield f"chunks  {_by(self.chunks)}: {_bytes(self.chunk_nbytes)}, {self._why('chunks', CHUNK_NBYTES)}"
        yield f"blocks  {_by(self.blocks)}: {_bytes(self.block_nbytes)}, {self._why('blocks', BLOCK_NBYTES)}"
        yield f"there are {self.nchunks} chunks, {self.padding:.1%} of padding; one item decodes a block"
        planes = self.hyperplane_nbytes
        for axis, (size, chunk, block) in enumerate(zip(self.shape, self.chunks, self.blocks, strict=True)):
            yield (
                f"axis {axis}: {size} in {_pieces(size, chunk)} chunks of {_pieces(chunk, block)} blocks of {block} "
                f"({self._edge(axis)}); one index of it decodes {_bytes(planes[axis])}"
            )

    def _why(self, name: str, aim: int) -> str:
        """Return why chunks or blocks have the size they have."""
        if name in self.given:
            return "as given"
        if 0 in self.shape and not self.given:
            return "the shape itself, for there are no items"
        if name == "blocks":
            return f"chosen near {_bytes(aim)}: small enough to decode for one item, large enough to compress"
        return f"chosen near {_bytes(aim)}: as many blocks in each direction as fit"

    def _edge(self, axis: int) -> str:
        """Return why a block is as long as it is in a dimension."""
        size, block = self.shape[axis], self.blocks[axis]
        if "blocks" in self.given:
            return "given"
        if block >= size:
            return "whole"
        longest = all(block >= other for other in self.blocks[axis:])
        cut = [i for i, (one, all_) in enumerate(zip(self.blocks, self.shape, strict=True)) if one < all_]
        if len(cut) > 1 and axis == cut[-1] and longest:
            return "longer, for its items lie side by side"
        return "cut as evenly as the shape allows"


def explain_partition(
    shape: Lengths, dtype: DTypeLike = np.uint8, chunks: Lengths | None = None, blocks: Lengths | None = None
) -> PartitionReport:
    """Return which chunks and blocks an array would have, and why.

    Parameters
    ----------
    shape
        Items in each dimension.
    dtype
        Of the items.
    chunks, blocks
        What a caller would give, in items.

    Returns
    -------
    PartitionReport
        With the numbers as attributes; printed, it is a text.

    Raises
    ------
    TypeError, ArgumentError
        As by the constructors of arrays.

    Examples
    --------
    >>> print(explain_partition((4096, 8192), "i8"))
    array   4096 x 8192 items of 8 bytes
    chunks  128 x 2048: 2 MiB, chosen near 2 MiB: as many blocks in each direction as fit
    blocks  16 x 512: 64 KiB, chosen near 64 KiB: small enough to decode for one item, large enough to compress
    there are 128 chunks, 0.0% of padding; one item decodes a block
    axis 0: 4096 in 32 chunks of 8 blocks of 16 (cut as evenly as the shape allows); one index of it decodes 1 MiB
    axis 1: 8192 in 4 chunks of 4 blocks of 512 (longer, for its items lie side by side); one index of it decodes 16 MiB

    """
    itemsize = np.dtype(dtype).itemsize
    chosen = choose_partition(shape, itemsize, chunks, blocks)
    given = tuple(name for name, value in (("chunks", chunks), ("blocks", blocks)) if value is not None)
    return PartitionReport(
        shape=lengths("shape", shape), itemsize=itemsize, chunks=chosen[0], blocks=chosen[1], given=given
    )


def compute_chunks_blocks(
    shape: Lengths,
    chunks: Lengths | None = None,
    blocks: Lengths | None = None,
    dtype: DTypeLike = np.uint8,
    **kwargs: Any,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the chunk and block shape that constructors choose.

    Parameters
    ----------
    shape
        Items in each dimension.
    chunks, blocks
        Kept if given, in items; blocks alone are cut to the shape.
    dtype
        Of the items.
    **kwargs
        ``cparams=`` (a `CParams`, a dict or None), or fields of it. They are checked; the choice does not depend
        on them.

    Raises
    ------
    TypeError
        Lengths that are no integers, or an unknown keyword.
    ArgumentError
        Lengths that cannot be; ``cparams`` together with its fields; chunks or blocks inside it.

    Examples
    --------
    >>> compute_chunks_blocks((1080, 1920, 3))
    ((270, 1920, 3), (27, 960, 3))

    """
    cparams = kwargs.pop("cparams", None)
    if cparams is not None and kwargs:
        raise ArgumentError(f"cparams: expected it or its fields, got both: {', '.join(kwargs)}")
    fields = kwargs if cparams is None else cparams
    if isinstance(fields, dict):
        inside = sorted({"chunks", "blocks"} & fields.keys())
        if inside:
            raise ArgumentError(f"cparams: expected no {' and '.join(inside)} in it; they are arguments of their own")
        CParams(**fields)
    elif not isinstance(fields, CParams):
        raise TypeError(f"cparams: expected CParams, a dict or None, got {type(fields).__name__}")
    if chunks is None and blocks is not None:
        whole, wanted = lengths("shape", shape), lengths("blocks", blocks)
        if len(whole) == len(wanted):
            blocks = tuple(min(block, max(size, 1)) for block, size in zip(wanted, whole, strict=True))
    return choose_partition(shape, np.dtype(dtype).itemsize, chunks, blocks)


def are_partitions_aligned(shape: Lengths, chunks: Lengths, blocks: Lengths) -> bool:
    """Return whether chunks divide the shape, and blocks the chunks, so that nothing is padded.

    Raises
    ------
    TypeError, ArgumentError
        Lengths that cannot be.

    """
    shape, chunks, blocks = _three(shape, chunks, blocks)
    return all(
        _round_up(size, chunk) == size and _round_up(chunk, block) == chunk
        for size, chunk, block in zip(shape, chunks, blocks, strict=True)
    )


def are_partitions_behaved(shape: Lengths, chunks: Lengths, blocks: Lengths) -> bool:
    """Return whether blocks are contiguous runs of their chunk, and chunks whole rows of the array.

    A block is one run if its lengths are 1, then one that divides the chunk's, then the chunk's. The chunk's
    last length must be the array's, and the others divide those of the array.

    Raises
    ------
    TypeError, ArgumentError
        Lengths that cannot be.

    """
    shape, chunks, blocks = _three(shape, chunks, blocks)
    if any(_round_up(size, chunk) != size for size, chunk in zip(shape, chunks, strict=True)):
        return False
    if shape and chunks[-1] != shape[-1]:
        return False
    first = next((i for i, block in enumerate(blocks) if block != 1), len(blocks))
    return (first == len(blocks) or _round_up(chunks[first], blocks[first]) == chunks[first]) and (
        blocks[first + 1 :] == chunks[first + 1 :]
    )


def _three(
    shape: Lengths, chunks: Lengths, blocks: Lengths
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return three shapes of as many dimensions."""
    found = lengths("shape", shape), lengths("chunks", chunks), lengths("blocks", blocks)
    for name, numbers in zip(("chunks", "blocks"), found[1:], strict=True):
        if len(numbers) != len(found[0]):
            raise ArgumentError(f"{name}: expected {len(found[0])} lengths, one for each dimension, got {numbers}")
    return found


def _pieces(size: int, piece: int) -> int:
    """Return how many pieces cover a length; none of an empty one."""
    return -(-size // piece) if piece else 0


def _round_up(size: int, piece: int) -> int:
    """Return a length rounded up to whole pieces."""
    return _pieces(size, piece) * piece


def _by(numbers: tuple[int, ...]) -> str:
    """Return lengths as people write them."""
    return " x ".join(map(str, numbers)) or "one"


def _bytes(nbytes: float) -> str:
    """Return a number of bytes in four digits."""
    scaled, unit = in_unit(nbytes)
    return f"{scaled:.4g} {'bytes' if unit == 'B' else unit}"
