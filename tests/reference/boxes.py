"""Where the items of an array lie in its chunks, as an executable form of the format page; slow and plain.

::

    chunk 3 x 4, blocks 2 x 3      content: blocks in C order, in each its items in C order
    a a a b . .                    a a a a a a  b . . b . .  c c c . . .  d . . . . .
    a a a b . .                    (a dot is padding)
    c c c d . .
    . . . . . .

Source: docs/format/b2nd.md, "Geometry".
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["chunk_content", "chunk_items", "read_box"]


def chunk_items(content: bytes, chunks: Sequence[int], blocks: Sequence[int], itemsize: int) -> NDArray[Any]:
    """Return the items of a chunk as an array of `chunks` of `V`, padding left out.

    Parameters
    ----------
    content
        The decoded chunk.
    chunks, blocks
        Items in each dimension.
    itemsize
        Bytes of an item.

    """
    ndim = len(chunks)
    grid = [-(-chunk // block) for chunk, block in zip(chunks, blocks, strict=True)]
    plain = np.frombuffer(content, f"V{itemsize}").reshape([*grid, *blocks])
    order = [axis for pair in zip(range(ndim), range(ndim, 2 * ndim), strict=True) for axis in pair]
    whole = plain.transpose(order).reshape([n * block for n, block in zip(grid, blocks, strict=True)])
    return whole[tuple(slice(chunk) for chunk in chunks)]


def chunk_content(items: NDArray[Any], chunks: Sequence[int], blocks: Sequence[int]) -> bytes:
    """Return what a chunk decodes to whose first items in each dimension are `items`; all others are zero."""
    ndim = len(chunks)
    grid = [-(-chunk // block) for chunk, block in zip(chunks, blocks, strict=True)]
    whole = np.zeros([n * block for n, block in zip(grid, blocks, strict=True)], f"V{items.itemsize}")
    whole[tuple(slice(length) for length in items.shape)] = (
        np.ascontiguousarray(items).view(whole.dtype).reshape(items.shape)
    )
    split = whole.reshape([edge for pair in zip(grid, blocks, strict=True) for edge in pair])
    order = [*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)]
    return split.transpose(order).tobytes()


def read_box(
    content: Callable[[int], bytes],
    chunks: Sequence[int],
    blocks: Sequence[int],
    itemsize: int,
    shape: Sequence[int],
    box: Sequence[Sequence[int]],
) -> bytes:
    """Return the items where the positions of `box`, one list for each dimension, cross; in C order.

    Parameters
    ----------
    content
        Called with a chunk number; returns the decoded chunk.
    chunks, blocks, shape
        Items in each dimension, of a chunk, a block, and the array.
    itemsize
        Bytes of an item.
    box
        Positions in each dimension, in any order.

    """
    grid = [-(-size // chunk) for size, chunk in zip(shape, chunks, strict=True)]
    known: dict[int, NDArray[Any]] = {}
    found = bytearray()
    for position in product(*box):
        number = 0
        for at, chunk, count in zip(position, chunks, grid, strict=True):
            number = number * count + at // chunk
        if number not in known:
            known[number] = chunk_items(content(number), chunks, blocks, itemsize)
        found += known[number][tuple(at % chunk for at, chunk in zip(position, chunks, strict=True))].tobytes()
    if len(found) != itemsize * prod(map(len, box)):
        msg = "box: expected positions of as many dimensions as the array has"
        raise ValueError(msg)
    return bytes(found)
