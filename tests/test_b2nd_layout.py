"""The metalayer of arrays: rules of docs/format/b2nd.md, "Rules for a safe reader", one by one."""

from __future__ import annotations

import struct
from math import prod
from typing import Any

import corpus
import pytest
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st

from superchunk._format.b2nd import MAX_CHUNK_NBYTES, ArrayLayout
from superchunk.exceptions import ArgumentError, FormatError, TruncatedError

EXAMPLE = bytes.fromhex(
    "97 00 02 92 D3 0000000000000003 D3 0000000000000004 92 D2 00000003 D2 00000004"
    "92 D2 00000003 D2 00000004 00 DB 00000003 3C6934"
)


def layer(shape: list[int], chunks: list[int], blocks: list[int], tail: bytes = b"") -> bytes:
    """Return a layer that says anything, without any check."""
    parts = [bytes((0x97, 0, len(shape) & 0xFF, 0x90 + len(shape) & 0xFF))]
    parts += [b"\xd3" + (n % 2**64).to_bytes(8, "big") for n in shape]
    for numbers in (chunks, blocks):
        parts.append(bytes((0x90 + len(shape) & 0xFF,)))
        parts += [b"\xd2" + (n % 2**32).to_bytes(4, "big") for n in numbers]
    return b"".join(parts) + tail


def dtype_part(text: bytes, kind: int = 0, marker: int = 0xDB, length: int | None = None) -> bytes:
    return struct.pack(">BBI", kind, marker, len(text) if length is None else length) + text


def refused(content: bytes, field: str, at: int) -> FormatError:
    """Read what must be refused for this field at this byte."""
    with pytest.raises(FormatError) as caught:
        ArrayLayout.from_bytes(content)
    assert (caught.value.field, caught.value.at) == (field, at)
    return caught.value


@st.composite
def layouts(draw: st.DrawFn) -> ArrayLayout:
    """Draw layouts of 0 to 16 dimensions, empty ones too."""
    shape, chunks, blocks = [], [], []
    room = 2**20
    for _ in range(draw(st.integers(0, 16))):
        chunk = draw(st.integers(0, max(min(room, 40), 1)))
        block = draw(st.integers(1, chunk)) if chunk else 0
        room //= max(2 * chunk, 1)
        shape.append(draw(st.integers(0, 9)) if chunk else 0)
        chunks.append(chunk)
        blocks.append(block)
    return ArrayLayout(tuple(shape), tuple(chunks), tuple(blocks), draw(st.none() | st.text(max_size=9)))


# The bytes


def test_the_example_of_the_format_page() -> None:
    layout = ArrayLayout((3, 4), (3, 4), (3, 4), "<i4")
    assert layout.to_bytes() == EXAMPLE
    assert ArrayLayout.from_bytes(EXAMPLE) == layout


@examples(200)
@given(layouts())
def test_any_layout_comes_back(layout: ArrayLayout) -> None:
    content = layout.to_bytes()
    text = 0 if layout.dtype_text is None else 6 + len(layout.dtype_text.encode())
    assert len(content) == 6 + 19 * layout.ndim + text
    assert ArrayLayout.from_bytes(content) == layout


def test_sixteen_dimensions_have_the_marker_a0() -> None:
    layout = ArrayLayout((2,) * 16, (2,) * 16, (1,) * 16, "|u1")
    content = layout.to_bytes()
    assert [content[at] for at in (3, 4 + 144, 5 + 224)] == [0xA0] * 3
    assert ArrayLayout.from_bytes(content) == layout


def test_a_layer_of_old_has_no_dtype_and_keeps_none() -> None:
    old = b"\x95" + EXAMPLE[1:44]
    layout = ArrayLayout.from_bytes(old)
    assert layout.dtype_text is None
    assert layout.to_bytes() == old


def test_markers_version_and_what_lies_behind_are_not_read() -> None:
    content = bytearray(EXAMPLE + b"behind")
    for at in (0, 1, 3, 4, 13, 22, 23, 28, 33, 34, 39):
        content[at] = 0x77
    assert ArrayLayout.from_bytes(bytes(content)).to_bytes() == EXAMPLE


def test_a_new_shape_keeps_the_length() -> None:
    layout = ArrayLayout.from_bytes(EXAMPLE)
    grown = layout._replace(shape=(2**40, 4))
    assert len(grown.to_bytes()) == len(EXAMPLE)
    assert ArrayLayout.from_bytes(grown.to_bytes()).shape == (2**40, 4)


@corpus.parametrize("b2nd")
def test_arrays_of_other_writers(entry: corpus.Entry) -> None:
    content = bytes.fromhex(entry.fields["meta"]["b2nd"]["hex"])
    layout = ArrayLayout.from_bytes(content)
    assert layout.shape == tuple(entry.fields["shape"])
    assert layout.chunks == tuple(entry.fields["chunks"])
    assert layout.blocks == tuple(entry.fields["blocks"])
    assert layout.dtype_text == entry.fields["dtype"]
    assert layout.to_bytes() == content
    layout.check(typesize=entry.typesize, chunksize=entry.fields["chunksize"], nchunks=entry.fields["nchunks"])


# Geometry


def test_geometry_of_the_format_page() -> None:
    layout = ArrayLayout((5, 7), (3, 4), (2, 3), "<i4")
    assert layout.ndim == 2
    assert layout.extended == (4, 6)
    assert layout.grid == (2, 2)
    assert (layout.nchunks, layout.chunk_items, layout.block_items) == (4, 24, 6)
    layout.check(typesize=4, chunksize=96, nchunks=4)


def test_an_array_without_dimensions_is_one_chunk_of_one_item() -> None:
    layout = ArrayLayout((), (), (), "<i8")
    assert len(layout.to_bytes()) == 15
    assert (layout.nchunks, layout.chunk_items, layout.block_items) == (1, 1, 1)
    layout.check(typesize=8, chunksize=8, nchunks=1)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (3, 0, 4)])
def test_an_array_without_items_has_no_chunk(shape: tuple[int, ...]) -> None:
    layout = ArrayLayout(shape, shape, shape, "<f4")
    assert layout.nchunks == 0
    layout.check(typesize=4, chunksize=0, nchunks=0)
    growing = ArrayLayout(shape, (5,) * len(shape), (5,) * len(shape), "<f4")
    growing.check(typesize=4, chunksize=4 * 5 ** len(shape), nchunks=0)


@examples(100)
@given(layouts())
def test_geometry_covers_the_shape_once(layout: ArrayLayout) -> None:
    for size, chunk, block, extended, many in zip(
        layout.shape, layout.chunks, layout.blocks, layout.extended, layout.grid, strict=True
    ):
        assert size <= many * chunk < size + max(chunk, 1)
        assert chunk <= extended < chunk + max(block, 1)
        assert extended == 0 == block or extended % block == 0
    assert layout.nchunks == prod(layout.grid)


# Rule 1: each field lies inside the layer


@pytest.mark.parametrize("length", [n for n in range(len(EXAMPLE)) if n != 44])
def test_a_layer_cut_anywhere_is_refused(length: int) -> None:
    with pytest.raises(FormatError) as caught:
        ArrayLayout.from_bytes(EXAMPLE[:length])
    if length < 50:
        assert isinstance(caught.value, TruncatedError)
        assert caught.value.got < caught.value.needed
    else:
        assert caught.value.field == "b2nd dtype length"


# Rule 2: 0 to 16 dimensions


@pytest.mark.parametrize("ndim", [17, 127, 128, 255])
def test_a_number_of_dimensions_out_of_range_is_refused(ndim: int) -> None:
    error = refused(EXAMPLE[:2] + bytes((ndim,)) + bytes(5000), "b2nd dimensions", 2)
    assert error.found == (ndim if ndim < 128 else ndim - 256)


# Rule 3: lengths that contradict each other


@pytest.mark.parametrize(
    ("shape", "chunks", "blocks", "field", "at"),
    [
        ([-1, 4], [3, 4], [3, 4], "b2nd shape[0]", 5),
        ([3, -(2**63)], [3, 4], [3, 4], "b2nd shape[1]", 14),
        ([3, 4], [-3, 4], [3, 4], "b2nd chunks[0]", 24),
        ([3, 4], [3, 0], [3, 0], "b2nd chunks[1]", 29),
        ([3, 4], [3, 4], [3, -1], "b2nd blocks[1]", 40),
        ([3, 4], [3, 4], [0, 4], "b2nd blocks[0]", 35),
        ([0, 4], [3, 4], [0, 4], "b2nd blocks[0]", 35),
        ([0, 4], [0, 4], [1, 4], "b2nd blocks[0]", 35),
        ([3, 4], [3, 4], [3, 5], "b2nd blocks[1]", 40),
    ],
)
def test_lengths_that_contradict_each_other_are_refused(
    shape: list[int], chunks: list[int], blocks: list[int], field: str, at: int
) -> None:
    refused(layer(shape, chunks, blocks, dtype_part(b"<i4")), field, at)


def test_chunks_may_exceed_the_shape() -> None:
    assert ArrayLayout.from_bytes(layer([5, 4], [10, 10], [3, 3], dtype_part(b"<f8"))).grid == (1, 1)


# Rule 4: products that overflow


@pytest.mark.parametrize(
    ("shape", "chunks", "blocks", "field"),
    [
        ([2**31, 2**33], [1, 1], [1, 1], "b2nd shape"),
        ([2**32, 2**32], [1, 1], [1, 1], "b2nd shape"),
        ([2**62, 2], [1, 1], [1, 1], "b2nd shape"),
        ([0, 2**62, 2], [1, 1, 1], [1, 1, 1], "b2nd shape"),
        ([2**16, 2**16], [2**16, 2**16], [2**16, 2**16], "b2nd blocks"),
        ([2**16, 2**16], [2**16, 2**16], [1, 1], "b2nd chunks"),
        ([2**16, 2**16], [2**16 - 1, 2**15 + 1], [2**15, 2**15], "b2nd chunks"),
        ([2**63 - 1], [2**31 - 1], [1], "b2nd shape[0]"),
        ([2**63 - 1], [2], [1], "b2nd shape[0]"),
    ],
)
def test_products_that_overflow_are_refused(shape: list[int], chunks: list[int], blocks: list[int], field: str) -> None:
    with pytest.raises(FormatError) as caught:
        ArrayLayout.from_bytes(layer(shape, chunks, blocks, dtype_part(b"|u1")))
    assert caught.value.field == field


def test_the_largest_shape_is_read() -> None:
    layout = ArrayLayout.from_bytes(layer([2**63 - 1], [1], [1], dtype_part(b"|u1")))
    assert layout.nchunks == 2**63 - 1


# Rules 5 to 7: what the frame says


def test_chunks_of_too_many_bytes_are_refused() -> None:
    layout = ArrayLayout((2**30,), (2**28,), (2**20,), "<f8")
    with pytest.raises(FormatError, match="2147483615") as caught:
        layout.check(typesize=8, chunksize=2**31 - 1, nchunks=4)
    assert caught.value.field == "b2nd chunk bytes"
    with pytest.raises(FormatError):
        layout.check(typesize=2**31 - 1, chunksize=0, nchunks=4)
    ArrayLayout((2,), (2**20,), (1,), "|u1").check(typesize=MAX_CHUNK_NBYTES >> 20, chunksize=0, nchunks=1)


@pytest.mark.parametrize("shape", [(2**60,), (0, 2**60)])
def test_arrays_of_too_many_bytes_are_refused(shape: tuple[int, ...]) -> None:
    ones = (1,) * len(shape)
    layout = ArrayLayout(shape, ones, ones, "<f8")
    with pytest.raises(FormatError, match="less than 2"):
        layout.check(typesize=8, chunksize=8, nchunks=layout.nchunks)


@pytest.mark.parametrize("nchunks", [0, 3, 5])
def test_another_number_of_chunks_is_refused(nchunks: int) -> None:
    layout = ArrayLayout((5, 7), (3, 4), (2, 3), "<i4")
    with pytest.raises(FormatError, match=rf"expected {nchunks}, as in the frame, found 4") as caught:
        layout.check(typesize=4, chunksize=96, nchunks=nchunks)
    assert caught.value.field == "b2nd number of chunks"


@pytest.mark.parametrize("chunksize", [48, 95, 192])
def test_another_chunksize_is_refused(chunksize: int) -> None:
    with pytest.raises(FormatError, match=rf"expected {chunksize}, the frame's chunksize, found 96"):
        ArrayLayout((5, 7), (3, 4), (2, 3), "<i4").check(typesize=4, chunksize=chunksize, nchunks=4)


def test_the_typesize_counts_and_not_the_dtype_text() -> None:
    layout = ArrayLayout((5,), (5,), (5,), "|u1")
    layout.check(typesize=4, chunksize=20, nchunks=1)
    with pytest.raises(FormatError):
        layout.check(typesize=1, chunksize=20, nchunks=1)


# Rule 8: the dtype text


def test_a_dtype_format_other_than_0_is_refused() -> None:
    refused(layer([3], [3], [3], dtype_part(b"<i4", kind=1)), "b2nd dtype format", 25)


def test_a_dtype_without_its_marker_is_refused() -> None:
    refused(layer([3], [3], [3], dtype_part(b"<i4", marker=0xDA)), "b2nd dtype marker", 26)


@pytest.mark.parametrize("length", [4, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_dtype_text_longer_than_the_layer_is_refused(length: int) -> None:
    refused(layer([3], [3], [3], dtype_part(b"<i4", length=length)), "b2nd dtype length", 27)


def test_a_dtype_text_that_is_not_utf8_is_refused() -> None:
    refused(layer([3], [3], [3], dtype_part(b"<i\xff")), "b2nd dtype text", 33)


# What a caller says


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((3,), (3, 3), (3,)), r"chunks: expected 1 numbers, one for each dimension, got 2"),
        (((3,), (3,), ()), r"blocks: expected 1 numbers, one for each dimension, got 0"),
        (((1,) * 17, (1,) * 17, (1,) * 17), r"shape: expected at most 16 dimensions, got 17"),
        (((3,), (3,), (4,)), r"blocks\[0\]: expected 1 to 3, the chunk's, got 4"),
        (((3,), (3,), (3,), "<i4", 1), r"dtype_format: expected 0, got 1"),
        (((3,), (3,), (3,), "\ud800"), r"dtype_text: expected text that UTF-8 can hold"),
        (((2**63,), (3,), (3,)), r"shape\[0\]: expected 0 to 2\*\*63 - 1"),
    ],
)
def test_a_wrong_argument_is_named(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ArrayLayout(*arguments)


def test_lengths_must_be_integers() -> None:
    with pytest.raises(TypeError):
        ArrayLayout((3.0,), (3,), (3,))  # type: ignore[arg-type]


@examples(500)
@given(layouts(), st.data())
def test_damage_gives_a_layout_or_a_format_error(layout: ArrayLayout, data: st.DataObject) -> None:
    content = bytearray(layout.to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = ArrayLayout.from_bytes(bytes(content))
    except FormatError:
        return
    assert ArrayLayout.from_bytes(read.to_bytes()) == read
    assert len(read.to_bytes()) <= len(content)
