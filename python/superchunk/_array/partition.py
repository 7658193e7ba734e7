"""How an array is cut: chunks, which are written as one, and blocks in them, which are read as one.

A block is what a read decodes at least, so its edges decide what a slice costs in each direction. A chunk is what a
write compresses, and what the index knows. Thin dimensions are one piece. In the others a block has equal edges, and a
longer last one, along which values change least from item to item. Such blocks compress well. A chunk has as many
blocks in each direction. Every edge is moved to where least is padded. The sizes aimed at are those that measured best,
and do not depend on the machine.

Plans only: reads and writes nothing. What users call is in `partition_report`.

Source: docs/partitions.md, which has the measurements.
"""

from __future__ import annotations

from math import prod
from operator import index
from typing import TYPE_CHECKING, Final, TypeAlias

from superchunk._array._edges import choose_edges
from superchunk.exceptions import ArgumentError
from superchunk.params import MAX_BLOCKSIZE, MAX_BUFFERSIZE, MAX_DIM

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BLOCK_NBYTES", "CHUNK_NBYTES", "MOST_PADDING", "Lengths", "choose_partition", "lengths", "padding"]

BLOCK_NBYTES: Final = 1 << 16
"""Bytes that a block is meant to have."""

CHUNK_NBYTES: Final = 1 << 21
"""Bytes that a chunk is meant to have."""

STRETCH: Final = 32.0
"""How many times longer a block's last edge is than its other one, in two dimensions."""

MOST_PADDING: Final = 0.12
"""Items beyond the array's that chunks may hold, as a fraction, before blocks of other sizes are tried."""

Lengths: TypeAlias = "int | Sequence[int]"
"""Numbers of items, one for each dimension; one number for one dimension."""

_MAX_EDGE = 2**31 - 1
_CARES = (20.0, 60.0, 1000.0)


def choose_partition(
    shape: Lengths, itemsize: int, chunks: Lengths | None = None, blocks: Lengths | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return chunk and block shape for an array; those given are kept.

    Parameters
    ----------
    shape
        Items in each dimension, at most 16 dimensions.
    itemsize
        Bytes of an item.
    chunks, blocks
        What the caller wants. Chunks may exceed the shape, blocks not the chunks.

    Returns
    -------
    chunks, blocks
        Items in each dimension. A shape with a 0 and neither given is its own chunk and block.

    Raises
    ------
    TypeError
        A length is no integer.
    ArgumentError
        Too many dimensions, another number of lengths than dimensions, a length of 0 in a
        dimension that is not 0, a block larger than its chunk, a block over `MAX_BLOCKSIZE`
        or a chunk over `MAX_BUFFERSIZE` bytes.

    """
    shape = lengths("shape", shape)
    if len(shape) > MAX_DIM:
        raise ArgumentError(f"shape: expected at most {MAX_DIM} dimensions, got {len(shape)}")
    if not 0 < itemsize <= MAX_BLOCKSIZE:
        raise ArgumentError(f"itemsize: expected 1 to {MAX_BLOCKSIZE} bytes, got {itemsize}")
    given_chunks = None if chunks is None else _given("chunks", chunks, shape)
    given_blocks = None if blocks is None else _given("blocks", blocks, shape)
    if given_chunks is None and given_blocks is None and 0 in shape:
        edges = tuple(min(size, _MAX_EDGE) for size in shape)
        return edges, edges
    if given_chunks is not None and given_blocks is not None:
        chosen = given_chunks, given_blocks
    elif given_chunks is not None:
        chosen = given_chunks, _blocks_for(given_chunks, itemsize)
    elif given_blocks is not None:
        chosen = _choose_chunks(shape, given_blocks, itemsize), given_blocks
    else:
        chosen = _choose_both(shape, itemsize)
    _check(*chosen, itemsize)
    return chosen


def lengths(name: str, given: Lengths) -> tuple[int, ...]:
    """Return what a caller gave as a tuple of lengths.

    Raises
    ------
    TypeError
        It is neither an integer nor a sequence of integers.
    ArgumentError
        A length is negative or has more than 63 bits.

    """
    try:
        found = (index(given),) if hasattr(given, "__index__") else tuple(map(index, given))
    except TypeError:
        raise TypeError(f"{name}: expected an integer or a sequence of integers, got {given!r}") from None
    if not all(0 <= size < 2**63 for size in found):
        raise ArgumentError(f"{name}: expected lengths from 0 to 2**63 - 1, got {found}")
    return found


def _given(name: str, given: Lengths, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the caller's chunk or block shape, if it fits the shape."""
    found = lengths(name, given)
    if len(found) != len(shape):
        raise ArgumentError(f"{name}: expected {len(shape)} lengths, one for each dimension, got {found}")
    for i, (length, size) in enumerate(zip(found, shape, strict=True)):
        if not (0 if size == 0 else 1) <= length <= _MAX_EDGE:
            raise ArgumentError(f"{name}[{i}]: expected {0 if size == 0 else 1} to 2**31 - 1, got {length}")
    return found


def _check(chunks: tuple[int, ...], blocks: tuple[int, ...], itemsize: int) -> None:
    """Refuse partitions that cannot be."""
    for i, (chunk, block) in enumerate(zip(chunks, blocks, strict=True)):
        if block > chunk or (block == 0 < chunk):
            raise ArgumentError(f"blocks[{i}]: expected 1 to {chunk}, the chunk's length, got {block}")
    block_nbytes = prod(blocks) * itemsize
    if block_nbytes > MAX_BLOCKSIZE:
        raise ArgumentError(f"blocks: expected at most {MAX_BLOCKSIZE} bytes, got {block_nbytes}: {blocks}")
    chunk_nbytes = _nbytes(chunks, blocks, itemsize)
    if max(chunk_nbytes, prod(chunks) * itemsize) > MAX_BUFFERSIZE:
        raise ArgumentError(
            f"chunks: expected at most {MAX_BUFFERSIZE} bytes in whole blocks, got {chunk_nbytes}: {chunks}"
        )


def _nbytes(chunks: tuple[int, ...], blocks: tuple[int, ...], itemsize: int) -> int:
    """Return the bytes of a chunk in whole blocks."""
    return prod(-(-chunk // block) * block for chunk, block in zip(chunks, blocks, strict=True) if block) * itemsize


def _blocks_for(chunks: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the block shape for given chunks, in which rounding up to blocks must leave space."""
    for care in _CARES:
        blocks = _choose_blocks(chunks, itemsize, care)
        if padding(chunks, chunks, blocks) <= MOST_PADDING:
            break
    return _dividing(chunks, blocks) if _nbytes(chunks, blocks, itemsize) > MAX_BUFFERSIZE else blocks


def _choose_both(shape: tuple[int, ...], itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return chunks and blocks; with more care for padding until there is little."""
    best: tuple[float, tuple[int, ...], tuple[int, ...]] | None = None
    for care in _CARES:
        blocks = _choose_blocks(shape, itemsize, care)
        chunks = _choose_chunks(shape, blocks, itemsize, care)
        padded = padding(shape, chunks, blocks)
        if best is None or padded < best[0]:
            best = (padded, chunks, blocks)
        if padded <= MOST_PADDING:
            break
    return best[1:] if best else ((), ())


def _choose_blocks(shape: tuple[int, ...], itemsize: int, care: float) -> tuple[int, ...]:
    """Return the block shape for what is cut into blocks."""
    return choose_edges(shape, max(BLOCK_NBYTES / itemsize, 1.0), STRETCH, care)


def _choose_chunks(
    shape: tuple[int, ...], blocks: tuple[int, ...], itemsize: int, care: float = _CARES[0]
) -> tuple[int, ...]:
    """Return the chunk shape for given blocks: equal numbers of them in each direction."""
    target = max(CHUNK_NBYTES / max(prod(blocks) * itemsize, 1), 1.0)
    # A dimension of 0 with blocks in it is there to grow.
    counts = tuple(
        (-(-size // block) if size else _MAX_EDGE // block) if block else 0
        for size, block in zip(shape, blocks, strict=True)
    )
    counts = choose_edges(counts, target, 1.0, care)
    return tuple(
        max(block, min(size, count * block)) if size else count * block
        for size, count, block in zip(shape, counts, blocks, strict=True)
    )


def padding(shape: tuple[int, ...], chunks: tuple[int, ...], blocks: tuple[int, ...]) -> float:
    """Return how many items chunks hold beyond the array's, as a fraction of those; 0 without items."""
    held, there = 1, 1
    for size, chunk, block in zip(shape, chunks, blocks, strict=True):
        if size:
            held *= -(-size // chunk) * -(-chunk // block) * block
            there *= size
    return 0.0 if 0 in shape else held / there - 1


def _dividing(chunks: tuple[int, ...], blocks: tuple[int, ...]) -> tuple[int, ...]:
    """Return blocks that divide chunks so large that nothing may be padded."""
    return tuple(
        max((n for n in range(1, block + 1) if chunk % n == 0), default=0)
        for chunk, block in zip(chunks, blocks, strict=True)
    )
