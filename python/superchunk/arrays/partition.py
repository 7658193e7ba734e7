"""How an array is cut: chunks, which are written as one, and blocks in them, which are read as one.

A block is what a read decodes at least, so its edges decide what a slice costs in each direction. A
chunk is what a write compresses, and what the index knows. Edges are as equal as the shape
allows, in items for blocks and in blocks for chunks; thin dimensions are one piece; and every edge is moved
to where least is padded. The sizes aimed at are those that measured best, and do not
depend on the machine.

Plans only: reads and writes nothing.

Source: docs/partitions.md, which has the measurements.
"""

from __future__ import annotations

from math import prod
from operator import index
from typing import TYPE_CHECKING, Final, TypeAlias

from superchunk.exceptions import ArgumentError
from superchunk.params import MAX_BLOCKSIZE, MAX_BUFFERSIZE, MAX_DIM

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BLOCK_NBYTES", "CHUNK_NBYTES", "Lengths", "choose_partition"]

BLOCK_NBYTES: Final = 1 << 15
"""Bytes that a block is meant to have."""

CHUNK_NBYTES: Final = 1 << 21
"""Bytes that a chunk is meant to have."""

LINE_NBYTES: Final = 64
"""Bytes that a block's last edge is meant to have at least: what a processor fetches at once."""

Lengths: TypeAlias = "int | Sequence[int]"
"""Numbers of items, one for each dimension; one number for one dimension."""

_MAX_EDGE = 2**31 - 1
_MAX_TRIED = 64


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
    chosen_blocks = given_blocks or _choose_blocks(given_chunks or shape, itemsize)
    chosen_chunks = given_chunks or _choose_chunks(shape, chosen_blocks, itemsize)
    if (
        given_chunks is not None
        and given_blocks is None
        and _nbytes(given_chunks, chosen_blocks, itemsize) > MAX_BUFFERSIZE
    ):
        chosen_blocks = _dividing(given_chunks, chosen_blocks)
    _check(chosen_chunks, chosen_blocks, itemsize)
    return chosen_chunks, chosen_blocks


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


def _choose_blocks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the block shape for what is cut into blocks."""
    room = max(BLOCK_NBYTES // itemsize, 1)
    least = [1] * len(shape)
    if shape:
        least[-1] = -(-LINE_NBYTES // itemsize)
    return _equal_edges(shape, room, least)


def _choose_chunks(shape: tuple[int, ...], blocks: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the chunk shape for given blocks."""
    block_nbytes = max(prod(blocks), 1) * itemsize
    room = max(CHUNK_NBYTES // block_nbytes, 1)
    # A dimension of 0 with blocks in it is there to grow.
    many = tuple(
        (-(-size // block) if size else _MAX_EDGE // block) if block else 0
        for size, block in zip(shape, blocks, strict=True)
    )
    counts = _equal_edges(many, room, [1] * len(shape))
    chunks = tuple(count * block for count, block in zip(counts, blocks, strict=True))
    return tuple(
        max(block, min(size, chunk)) if size else chunk
        for size, chunk, block in zip(shape, chunks, blocks, strict=True)
    )


def _equal_edges(sizes: tuple[int, ...], room: int, least: Sequence[int]) -> tuple[int, ...]:
    """Return edges that are as equal as the sizes allow, with a product of about `room`.

    The thinnest dimensions come first, so that what they leave is shared by the others; of equal
    ones the last, where items lie side by side.
    """
    edges = [0] * len(sizes)
    order = sorted((i for i, size in enumerate(sizes) if size), key=lambda i: (sizes[i], -i))
    if order and least[-1] > 1 and sizes[-1] > 1:
        order.remove(len(sizes) - 1)
        order.insert(0, len(sizes) - 1)
    for done, i in enumerate(order):
        equal = room ** (1 / (len(order) - done))
        edges[i] = _fit(sizes[i], min(max(equal, least[i]), room))
        room = max(room // edges[i], 1)
    return tuple(edges)


def _fit(size: int, wanted: float) -> int:
    """Return an edge near the wanted one that leaves little padding behind the last piece."""
    if size <= wanted:
        return size
    power = 1 << max(round(wanted).bit_length() - 1, 0)
    return min(_candidates(size, wanted, power), key=lambda edge: _cost(size, edge, wanted))


def _candidates(size: int, wanted: float, power: int) -> set[int]:
    """Return edges worth a thought: powers of two, and the size in equal pieces."""
    edges = {power, 2 * power, max(power // 2, 1)}
    low, high = max(wanted / 2, 1), wanted * 2
    fewest = max(int(size / high), 1)
    for pieces in range(fewest, fewest + _MAX_TRIED):
        edge = -(-size // pieces)
        if edge < low:
            break
        edges |= {edge, -(-edge // 8) * 8}
    return {edge for edge in edges if low <= edge <= min(high, size)} or {max(min(power, size), 1)}


def _cost(size: int, edge: int, wanted: float) -> tuple[float, int]:
    """Return how bad an edge is: what it pads, and how far it is from the wanted one."""
    padded = -(-size // edge) * edge / size - 1
    ratio = edge / wanted
    return (4 * padded + (max(ratio, 1 / ratio) - 1) + (0 if edge % 8 == 0 else 0.02), -edge)


def _dividing(chunks: tuple[int, ...], blocks: tuple[int, ...]) -> tuple[int, ...]:
    """Return blocks that divide chunks so large that nothing may be padded."""
    return tuple(
        max((n for n in range(1, block + 1) if chunk % n == 0), default=0)
        for chunk, block in zip(chunks, blocks, strict=True)
    )
