"""What tests of arrays share: NumPy arrays to compare with, index expressions, arrays over bare super-chunks.

An index expression is drawn so that NumPy decides whether it is one; tests compare results and errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import superchunk
from superchunk import SChunk
from superchunk._array.ndarray import NDArray
from superchunk._codec.parameters import settings_of
from superchunk._format.b2nd import ArrayLayout
from superchunk._format.dtypes import dtype_text
from superchunk._schunk.opening import create_handle

if TYPE_CHECKING:
    import random

    from numpy.typing import NDArray as NumpyArray

DTYPES = ("<i4", ">f8", "u1", "M8[s]", "S3", "<c16", [("a", "<i4"), ("b", "u1", (2,))])


def array_over(
    items: Any,
    chunks: tuple[int, ...],
    blocks: tuple[int, ...],
    layer: str = "b2nd",
    cparams: dict[str, Any] | None = None,
    more: dict[str, bytes] | None = None,
    **place: Any,
) -> NDArray:
    """Return an array of zeros over a super-chunk made by hand, filled by assignment."""
    plain = np.asarray(items)
    itemsize = plain.dtype.itemsize
    layout = ArrayLayout(plain.shape, chunks, blocks, dtype_text(plain.dtype))
    params = superchunk.CParams(**{**(cparams or {}), "typesize": itemsize, "blocksize": layout.block_items * itemsize})
    handle = create_handle(
        superchunk.Storage(**place),
        settings_of(params, 1),
        layout.chunk_items * itemsize,
        {**(more or {}), layer: layout.to_bytes()},
        publish=True,
    )
    schunk = SChunk.__new__(SChunk)
    schunk._attach(handle, params, superchunk.DParams())
    if layout.nchunks:
        handle.store.fill_special(1, layout.nchunks * layout.chunk_items * itemsize, None)
    array = NDArray(schunk)
    if plain.size:
        array[...] = plain
    return array


def letters(rng: random.Random, shape: tuple[int, ...], dtype: Any) -> NumpyArray[Any]:
    """Return items made of bytes that are letters, which are values of every dtype."""
    wanted = np.dtype(dtype)
    raw = bytes(rng.choices(range(65, 90), k=int(np.prod(shape)) * wanted.itemsize))
    return np.frombuffer(raw, wanted).reshape(shape).copy()


def partition(rng: random.Random, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return chunk and block shape that need not fit anything."""
    chunks = tuple(rng.randint(1, 6) for _ in shape)
    return chunks, tuple(rng.randint(1, chunk) for chunk in chunks)


def some_shape(rng: random.Random, most: int = 4) -> tuple[int, ...]:
    """Return a shape, of zero-size dimensions now and then."""
    sizes = (0, 1, 2, 3, 5, 7, 9) if rng.random() < 0.1 else (1, 2, 3, 5, 7, 9)
    return tuple(rng.choice(sizes) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, most))))


def some_slice(rng: random.Random, size: int) -> slice:
    """Return a slice that may reach beyond both ends."""
    ends = (None, *range(-size - 2, size + 3))
    return slice(rng.choice(ends), rng.choice(ends), rng.choice((None, 1, 2, 3, -1, -2, 5)))


def some_entry(rng: random.Random, size: int) -> Any:
    """Return an index for one dimension."""
    chance = rng.random()
    if chance >= 0.8 and size:
        count = rng.choice((0, 1, 2, 5))
        places = np.array([rng.randrange(-size, size) for _ in range(count)], np.int64)
        return places.reshape(rng.choice(((count,), (count,), (count, 1), (1, count))))
    if chance < 0.3 and size:
        return rng.randrange(-size, size)
    return some_slice(rng, size)


def some_key(rng: random.Random, shape: tuple[int, ...]) -> Any:
    """Return an index expression for an array of `shape`, not always one that can be."""
    ndim = len(shape)
    kind = rng.random()
    if kind < 0.2 and ndim:
        held = rng.randint(1, ndim)
        mask = np.array(rng.choices((True, False, False), k=int(np.prod(shape[:held])))).reshape(shape[:held])
        return (mask, *(some_slice(rng, size) for size in shape[held:]))
    if kind < 0.25:
        return rng.choice((True, False, (True, ...), (None, True)))
    count = rng.randint(0, ndim)
    key = [some_entry(rng, size) for size in shape[:count]]
    if rng.random() < 0.4:
        ahead = rng.randint(0, count)
        key = [some_entry(rng, size) for size in shape[:ahead]]
        key.append(...)
        key += [some_entry(rng, size) for size in shape[ndim - (count - ahead) :]] if count > ahead else []
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        key.insert(rng.randint(0, len(key)), None)
    return tuple(key)
