"""Layers and dtype texts against those of the peer, byte for byte."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st
from oracle import blosc2
from test_dtypes import NESTED_ALIGNED, TEXTS, any_dtype

import superchunk
from superchunk._format.b2nd import ArrayLayout
from superchunk._format.dtypes import dtype_text
from superchunk._format.metalayers import read_metalayers
from superchunk._store.frame_bytes import write_cframe
from superchunk._store.memory_store import MemoryStore
from superchunk._store.store_interface import FrameSettings

ZEROS = 1


def layer_of(array: Any) -> bytes:
    """Return the layer `b2nd` of one of the peer's arrays."""
    frame = array.to_cframe()
    header = frame[: struct.unpack_from(">i", frame, 0x0C)[0]]
    at, length = read_metalayers(header)["b2nd"]
    return bytes(header[at : at + length])


@st.composite
def partitions(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    shape, chunks, blocks, room = [], [], [], 4096
    for _ in range(draw(st.integers(0, 16))):
        chunk = draw(st.integers(1, max(min(room, 20), 1)))
        room //= 2 * chunk
        shape.append(draw(st.integers(0, 2 * chunk)) if room else 1)
        chunks.append(chunk)
        blocks.append(draw(st.integers(1, chunk)))
    return tuple(shape), tuple(chunks), tuple(blocks)


@examples(60)
@given(partitions(), st.sampled_from(["<i4", ">f8", "|S5", "<M8[ns]", "|b1"]))
def test_layers_are_those_of_the_peer(
    lengths: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], text: str
) -> None:
    shape, chunks, blocks = lengths
    array = blosc2.zeros(shape, dtype=np.dtype(text), chunks=chunks, blocks=blocks)
    content = layer_of(array)
    layout = ArrayLayout.from_bytes(content)
    assert layout == ArrayLayout(shape, chunks, blocks, text)
    assert layout.to_bytes() == content
    assert layout.extended == array.ext_chunks or 0 in shape
    schunk = array.schunk
    layout.check(typesize=schunk.typesize, chunksize=schunk.chunksize, nchunks=schunk.nchunks)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (3, 0, 4), ()])
def test_degenerate_shapes_are_those_of_the_peer(shape: tuple[int, ...]) -> None:
    array = blosc2.zeros(shape, dtype="<f4")
    assert layer_of(array) == ArrayLayout(shape, shape, shape, "<f4").to_bytes()


@pytest.mark.parametrize(("dtype", "text"), TEXTS, ids=str)
def test_texts_are_those_of_the_peer(dtype: Any, text: str) -> None:
    assert ArrayLayout.from_bytes(layer_of(blosc2.zeros((3,), dtype=np.dtype(dtype)))).dtype_text == text


@examples(60)
@given(any_dtype())
def test_the_peer_reads_any_dtype_of_ours(dtype: np.dtype[Any]) -> None:
    if dtype.itemsize == 0 or dtype.subdtype is not None:
        return
    layer = ArrayLayout((2,), (2,), (2,), dtype_text(dtype)).to_bytes()
    nbytes = 2 * dtype.itemsize
    store = MemoryStore(FrameSettings(typesize=dtype.itemsize, blocksize=nbytes), nbytes, {"b2nd": layer})
    store.fill_special(ZEROS, nbytes, None)
    read = blosc2.ndarray_from_cframe(write_cframe(store))
    assert read.dtype == dtype
    assert read[:].tobytes() == bytes(nbytes)
    assert layer_of(read) == layer


def test_the_peer_loses_the_offsets_of_an_aligned_record_in_a_record() -> None:
    lost = layer_of(blosc2.zeros((3,), dtype=NESTED_ALIGNED))
    assert ArrayLayout.from_bytes(lost).dtype_text == "[('a', [('p', 'u1'), ('q', '<i8')]), ('b', '<i2')]"
    assert dtype_text(NESTED_ALIGNED) != ArrayLayout.from_bytes(lost).dtype_text


def test_the_peer_writes_the_name_of_a_type_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(ml_dtypes.bfloat16)
    written = ArrayLayout.from_bytes(layer_of(blosc2.zeros((3,), dtype=dtype))).dtype_text
    assert written == dtype_text(dtype) == "bfloat16"


@examples(200)
@given(partitions(), st.lists(st.integers(1, 3), min_size=16, max_size=16))
def test_aligned_and_behaved_are_what_the_peer_says(
    lengths: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], times: list[int]
) -> None:
    shape, chunks, blocks = lengths
    fitting = tuple(n * chunk for n, chunk in zip(times, chunks, strict=False))
    for whole in (shape, fitting, (*fitting[:-1], *chunks[-1:])):
        if 0 in whole or not whole:
            continue
        for inner in (blocks, chunks, (1,) * len(chunks), (1, *chunks[1:])):
            ask = (whole, chunks, inner)
            assert superchunk.are_partitions_aligned(*ask) == blosc2.are_partitions_aligned(*ask)
            assert superchunk.are_partitions_behaved(*ask) == blosc2.are_partitions_behaved(*ask)
