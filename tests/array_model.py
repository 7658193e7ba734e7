"""The items of an array in its chunks, as the format's page says, in plain NumPy."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import superchunk
from superchunk import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def model_chunks(items: np.ndarray[Any, Any], chunks: tuple[int, ...], blocks: tuple[int, ...]) -> Iterator[bytes]:
    """Yield the decoded bytes of each chunk, padding zero (docs/format/b2nd.md, "Geometry")."""
    items = items.view(f"V{items.itemsize}")  # padding of records is part of the bytes
    extended = tuple(-(-c // b) * b for c, b in zip(chunks, blocks, strict=True))
    ndim = items.ndim
    for corner in product(*(range(0, size, c) for size, c in zip(items.shape, chunks, strict=True))):
        chunk = np.zeros(extended, items.dtype)
        where: Any = (*(slice(at, at + c) for at, c in zip(corner, chunks, strict=True)), ...)
        part = items[where]
        inside: Any = (*(slice(0, length) for length in part.shape), ...)
        chunk[inside] = part
        split = chunk.reshape([n for e, b in zip(extended, blocks, strict=True) for n in (e // b, b)])
        yield split.transpose([*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)]).tobytes()


def check_layout(array: NDArray, items: np.ndarray[Any, Any]) -> None:
    """Compare every chunk of an array with the model."""
    schunk = array.schunk
    found = [schunk.decompress_chunk(number) for number in range(schunk.nchunks)]
    assert found == list(model_chunks(items, array.chunks, array.blocks))


def opened(path: Path) -> NDArray:
    """Return the array in a file."""
    found = superchunk.open(path)
    return found if isinstance(found, NDArray) else NDArray(found)
