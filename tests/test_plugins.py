"""Filters and codecs that go by the shape of an array's blocks: NDCELL, NDMEAN, NDLZ, ZFP.

Ours are read by the other implementation and the other way round; both are compared with a model in
NumPy, which writes cells as docs/format/filters.md has them. Layers, parameters and streams that
cannot be are refused by name.
"""

from __future__ import annotations

import itertools
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import oracle
import pytest
from hypothesis import given, settings

import superchunk
from superchunk import Codec, Filter, SplitMode, _engine
from superchunk.exceptions import FormatError, UnsupportedError
from superchunk.frame.b2nd import ArrayLayout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

blosc2 = oracle.blosc2

FLOATS = ["<f4", "<f8"]
ZFP = [Codec.ZFP_ACC, Codec.ZFP_PREC, Codec.ZFP_RATE]


def blocks_of(array: NDArray[Any], blocks: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    """Yield the blocks of an array of one chunk, padded with zeros."""
    counts = [-(-size // side) for size, side in zip(array.shape, blocks, strict=True)]
    padded = np.zeros([count * side for count, side in zip(counts, blocks, strict=True)], array.dtype)
    padded[tuple(map(slice, array.shape))] = array
    for place in itertools.product(*map(range, counts)):
        yield padded[tuple(slice(n * side, (n + 1) * side) for n, side in zip(place, blocks, strict=True))]


def cells_of(block: NDArray[Any], side: int) -> Iterator[NDArray[Any]]:
    """Yield the cells of a block in the order in which NDCELL writes them."""
    for place in itertools.product(*(range(0, size, side) for size in block.shape)):
        yield block[tuple(slice(n, n + side) for n in place)]


def levelled(block: NDArray[Any], side: int) -> NDArray[Any]:
    """Return a block as NDMEAN leaves it."""
    result = np.empty_like(block)
    for place in itertools.product(*(range(0, size, side) for size in block.shape)):
        cell = tuple(slice(n, n + side) for n in place)
        total = block.dtype.type(0)
        for item in block[cell].ravel():
            total += item
        result[cell] = total / block.dtype.type(block[cell].size)
    return result


def schunk_of(array: NDArray[Any], blocks: tuple[int, ...], **cparams: Any) -> superchunk.SChunk:
    """Return an array of one chunk, written by ours through its SChunk."""
    cparams.setdefault("filters", [Filter.NOFILTER])
    cparams.setdefault("filters_meta", [0] * len(cparams["filters"]))
    layout = ArrayLayout(array.shape, array.shape, blocks, array.dtype.str)
    plain = b"".join(block.tobytes() for block in blocks_of(array, blocks))
    empty = blosc2.empty(array.shape, dtype=array.dtype, chunks=array.shape, blocks=blocks)
    assert bytes(empty.schunk.meta.get_raw("b2nd") if hasattr(empty.schunk.meta, "get_raw") else layout.to_bytes())
    store = superchunk.schunk_from_cframe(empty.to_cframe()) if not plain else None
    assert store is None
    frame = superchunk.schunk_from_cframe(empty.to_cframe(), copy=True)
    schunk = frame.schunk if hasattr(frame, "schunk") else frame
    schunk.cparams = superchunk.CParams(
        typesize=array.itemsize, blocksize=layout.block_items * array.itemsize, **cparams
    )
    schunk.update_data(0, plain, copy=True)
    return schunk
