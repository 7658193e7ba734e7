"""Chunk and block shapes: what is kept, what holds for any choice, and why it is explained."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn import examples
from hypothesis import assume, example, given
from hypothesis import strategies as st

import superchunk
from superchunk._array.partition import BLOCK_NBYTES, CHUNK_NBYTES, MOST_PADDING, choose_partition, padding
from superchunk._format.b2nd import ArrayLayout
from superchunk.exceptions import ArgumentError


def lengths(most: float) -> st.SearchStrategy[int]:
    """Draw lengths as often between 10 and 100 as between 1000 and 10,000."""
    return st.floats(0, math.log(most)).map(lambda power: int(math.exp(power)))


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    most = draw(st.sampled_from([3, 8, 50, 400, 5000, 10**6]))
    return tuple(draw(st.lists(lengths(most), max_size=16)))


ITEMSIZES = st.sampled_from([1, 2, 3, 4, 8, 16, 28, 300]) | st.integers(1, 10_000)


def fits(shape: tuple[int, ...]) -> bool:
    return prod(shape) < 2**63


# What is chosen


@examples(200)
@given(shapes().filter(fits), ITEMSIZES)
@example((22, 7, 22, 2, 28), 8)
@example((7,) * 10, 8)
@example((3,) * 16, 1)
@example((2**40,), 1)
@example((1, 2**31, 1), 7)
def test_any_choice_keeps_the_limits(shape: tuple[int, ...], itemsize: int) -> None:
    assume(prod(shape) * itemsize < 2**63)  # no frame can hold more
    chunks, blocks = choose_partition(shape, itemsize)
    assert (chunks, blocks) == choose_partition(shape, itemsize)
    assert all(1 <= b <= c <= s for s, c, b in zip(shape, chunks, blocks, strict=True))
    assert prod(blocks) * itemsize <= max(8 * BLOCK_NBYTES, itemsize)
    layout = ArrayLayout(shape, chunks, blocks, f"|V{itemsize}")
    chunk_nbytes = layout.chunk_items * itemsize
    assert chunk_nbytes <= max(8 * CHUNK_NBYTES, itemsize)
    layout.check(typesize=itemsize, chunksize=chunk_nbytes, nchunks=layout.nchunks)
    assert padding(shape, chunks, blocks) <= MOST_PADDING + 0.08


@examples(120)
@given(st.lists(lengths(3000), min_size=1, max_size=4).map(tuple), st.sampled_from([1, 2, 4, 8]))
def test_arrays_of_up_to_four_dimensions_pad_at_most_an_eighth(shape: tuple[int, ...], itemsize: int) -> None:
    assert padding(shape, *choose_partition(shape, itemsize)) <= MOST_PADDING


@examples(120)
@given(st.lists(st.integers(100, 3000), min_size=1, max_size=5).map(tuple), st.sampled_from([1, 2, 4, 8]))
def test_large_arrays_have_blocks_and_chunks_near_the_aims(shape: tuple[int, ...], itemsize: int) -> None:
    chunks, blocks = choose_partition(shape, itemsize)
    nbytes = prod(shape) * itemsize
    assert min(nbytes, BLOCK_NBYTES) / 4 <= prod(blocks) * itemsize <= 4 * BLOCK_NBYTES
    assert min(nbytes, CHUNK_NBYTES) / 8 <= prod(chunks) * itemsize <= 4 * CHUNK_NBYTES


@pytest.mark.parametrize(
    ("shape", "itemsize", "chunks", "blocks"),
    [
        ((), 8, (), ()),
        ((1,), 8, (1,), (1,)),
        ((1000,), 8, (1000,), (1000,)),
        ((10**8,), 8, (262144,), (8192,)),
        ((4096, 8192), 8, (128, 2048), (16, 512)),
        ((1024, 32768), 8, (128, 2048), (16, 512)),
        ((64, 64, 64, 64), 4, (16, 32, 16, 64), (8, 8, 8, 32)),
        ((1080, 1920, 3), 1, (270, 1920, 3), (27, 960, 3)),
        ((100, 100, 100, 100), 4, (20, 20, 20, 100), (10, 10, 10, 20)),
        ((1000, 3), 8, (1000, 3), (1000, 3)),
        ((100, 100), 100_000, (4, 5), (1, 1)),
        ((0, 5), 8, (0, 5), (0, 5)),
    ],
)
def test_choices_that_files_show(
    shape: tuple[int, ...], itemsize: int, chunks: tuple[int, ...], blocks: tuple[int, ...]
) -> None:
    """Nothing breaks if these change, but they are measured and documented."""
    assert choose_partition(shape, itemsize) == (chunks, blocks)


def test_thin_dimensions_are_one_piece() -> None:
    for shape in ((3, 1_000_000), (1_000_000, 3), (1080, 1920, 3), (60_000, 28, 28)):
        for chunk, block, size in zip(*choose_partition(shape, 4), shape, strict=True):
            if size <= 28:
                assert chunk == block == size


def test_no_index_of_any_axis_decodes_the_whole_array() -> None:
    for shape in ((4096, 8192), (1024, 32768), (300, 300, 300), (64, 64, 64, 64), (100, 50, 200, 40)):
        report = superchunk.explain_partition(shape, "f4")
        assert max(report.hyperplane_nbytes) <= prod(shape) * 4 / 2


def test_the_choice_does_not_depend_on_the_machine() -> None:
    script = "import superchunk; print(superchunk.compute_chunks_blocks((365, 721, 1440), dtype='f4'))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert found.strip() == str(superchunk.compute_chunks_blocks((365, 721, 1440), dtype="f4"))


# What is given


@examples(120)
@given(shapes().filter(lambda s: len(s) < 6), ITEMSIZES, st.data())
def test_given_blocks_are_kept(shape: tuple[int, ...], itemsize: int, data: st.DataObject) -> None:
    blocks = tuple(data.draw(st.integers(1, 6)) for _ in shape)
    chunks, kept = choose_partition(shape, itemsize, blocks=blocks)
    assert kept == blocks
    assert all(b <= c <= max(s, b) for s, c, b in zip(shape, chunks, blocks, strict=True))


@examples(120)
@given(shapes().filter(lambda s: len(s) < 6), st.sampled_from([1, 8, 300]), st.data())
def test_given_chunks_are_kept(shape: tuple[int, ...], itemsize: int, data: st.DataObject) -> None:
    chunks = tuple(data.draw(st.integers(1, 30)) for _ in shape)
    if prod(chunks) * itemsize > superchunk.MAX_BUFFERSIZE:
        return
    kept, blocks = choose_partition(shape, itemsize, chunks=chunks)
    assert kept == chunks
    assert all(1 <= b <= c for c, b in zip(chunks, blocks, strict=True))


def test_chunks_near_the_limit_get_blocks_that_divide_them() -> None:
    chunks = (superchunk.MAX_BUFFERSIZE,)
    kept, blocks = choose_partition((2**40,), 1, chunks=chunks)
    assert kept == chunks
    assert chunks[0] % blocks[0] == 0


def test_both_are_kept() -> None:
    assert choose_partition((5, 7), 4, (30, 40), (7, 9)) == ((30, 40), (7, 9))
    assert choose_partition(10, 4, 5, 2) == ((5,), (2,))
    assert choose_partition([10], 4, [np.int64(5)], (2,)) == ((5,), (2,))  # type: ignore[list-item]


def test_an_array_that_shall_grow() -> None:
    assert choose_partition((0, 10), 8, chunks=(100, 10))[0] == (100, 10)
    chunks, blocks = choose_partition((0, 10), 8, blocks=(7, 10))
    assert blocks == (7, 10)
    assert chunks[0] % 7 == 0 < chunks[0]
    assert choose_partition((0,), 8, chunks=(0,)) == ((0,), (0,))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((3,) * 17, 1), ArgumentError, "shape: expected at most 16 dimensions, got 17"),
        (((3,), 0), ArgumentError, "itemsize: expected 1 to"),
        (((3,), 2**30), ArgumentError, "itemsize: expected 1 to"),
        (((-3,), 1), ArgumentError, "shape: expected lengths from 0"),
        (("abc", 1), TypeError, "shape: expected an integer or a sequence"),
        (((3.5,), 1), TypeError, "shape: expected an integer or a sequence"),
        (((3, 3), 1, (3,)), ArgumentError, "chunks: expected 2 lengths"),
        (((3, 3), 1, None, 3), ArgumentError, "blocks: expected 2 lengths"),
        (((3,), 1, (0,)), ArgumentError, r"chunks\[0\]: expected 1 to"),
        (((3,), 1, (3,), (0,)), ArgumentError, r"blocks\[0\]: expected 1 to"),
        (((3,), 1, (3,), (4,)), ArgumentError, r"blocks\[0\]: expected 1 to 3, the chunk's length, got 4"),
        (((3,), 1, (2**31,)), ArgumentError, r"chunks\[0\]: expected 1 to"),
        (((2**40,), 1, None, (2**30,)), ArgumentError, "blocks: expected at most 536866816 bytes"),
        (((2**40,), 8, (2**29,)), ArgumentError, "chunks: expected at most 2147483615 bytes"),
        (((2**40,), 8, (2**28 - 5,), (2**25 + 1,)), ArgumentError, "chunks: expected at most 2147483615 bytes"),
    ],
)
def test_lengths_that_cannot_be_are_named(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        choose_partition(*arguments)
    if error is ArgumentError:
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, RuntimeError)


# What users ask


def test_compute_chunks_blocks_takes_compression_parameters() -> None:
    expected = choose_partition((1000, 1000), 8)
    ask = superchunk.compute_chunks_blocks
    assert ask((1000, 1000), dtype=np.int64) == expected
    assert ask((1000, 1000), dtype="f8", clevel=9, codec=superchunk.Codec.LZ4) == expected
    assert ask((1000, 1000), dtype="f8", cparams={"clevel": 1}) == expected
    assert ask((1000, 1000), dtype="f8", cparams=superchunk.CParams(clevel=1)) == expected
    assert ask(1000, 10, 3) == ((10,), (3,))
    with pytest.raises(TypeError, match="clevle"):
        ask((1000,), clevle=9)
    with pytest.raises(ValueError, match="chunks"):
        ask((1000,), cparams={"chunks": (3,)})
    with pytest.raises(ValueError, match="both"):
        ask((1000,), cparams={}, clevel=5)
    with pytest.raises(TypeError, match="cparams"):
        ask((1000,), cparams=5)


@pytest.mark.parametrize(
    ("shape", "chunks", "blocks", "expected"),
    [
        ((20, 20), (10, 10), (5, 5), "aligned"),
        ((20, 20), (10, 20), (5, 20), "aligned, behaved"),
        ((20, 20), (10, 20), (1, 5), "aligned, behaved"),
        ((20, 20), (10, 20), (3, 20), ""),
        ((20, 20), (7, 20), (7, 20), ""),
        ((20, 20), (10, 20), (1, 1), "aligned, behaved"),
        ((20, 20, 20), (10, 5, 20), (1, 5, 20), "aligned, behaved"),
        ((), (), (), "aligned, behaved"),
    ],
)
def test_aligned_and_behaved_partitions(
    shape: tuple[int, ...], chunks: tuple[int, ...], blocks: tuple[int, ...], expected: str
) -> None:
    assert superchunk.are_partitions_aligned(shape, chunks, blocks) is ("aligned" in expected)
    assert superchunk.are_partitions_behaved(shape, chunks, blocks) is ("behaved" in expected)


def test_partitions_of_other_dimensions_are_refused() -> None:
    with pytest.raises(ArgumentError, match="chunks"):
        superchunk.are_partitions_aligned((3, 3), (3,), (3, 3))
    with pytest.raises(ArgumentError, match="blocks"):
        superchunk.are_partitions_behaved((3, 3), (3, 3), (3,))


@examples(100)
@given(shapes().filter(fits), st.sampled_from(["u1", "f4", "i8", "S300"]))
def test_any_partition_is_explained(shape: tuple[int, ...], dtype: str) -> None:
    report = superchunk.explain_partition(shape, dtype)
    text = str(report)
    assert f"axis {len(shape) - 1}: " in text or not shape
    assert len(text.splitlines()) == 4 + len(shape)
    layout = ArrayLayout(shape, report.chunks, report.blocks)
    assert report.nchunks == layout.nchunks
    assert report.chunk_nbytes == layout.chunk_items * report.itemsize
    assert report.block_nbytes == layout.block_items * report.itemsize


def test_given_lengths_are_explained_as_given() -> None:
    text = str(superchunk.explain_partition((100, 100), "f8", blocks=(10, 10)))
    assert "blocks  10 x 10: 800 bytes, as given" in text
    assert "100 in 1 chunks of 10 blocks of 10 (given)" in text
    assert "no items" in str(superchunk.explain_partition((0, 5)))


def test_the_page_about_partitions_shows_what_is_chosen() -> None:
    page = (Path(__file__).parent.parent / "docs" / "partitions.md").read_text("utf-8")
    shape_of_it = r"^>>> print\((superchunk\.explain_partition\(.*\))\)\n(.*?)^```"
    ((call, shown),) = re.findall(shape_of_it, page, re.MULTILINE | re.DOTALL)
    assert str(eval(call, {"superchunk": superchunk})).strip() == shown.strip()  # noqa: S307 - our own page
