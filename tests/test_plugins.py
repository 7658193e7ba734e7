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
from superchunk._array.ndarray import NDArray
from superchunk._codec import zfp as _zfp
from superchunk._format.b2nd import ArrayLayout
from superchunk.exceptions import FormatError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray as NumpyArray

blosc2 = oracle.blosc2

CELLS, MEANS = int(Filter.NDCELL.value), int(Filter.NDMEAN.value)
NDLZ = int(Codec.NDLZ.value)
ACCURACY, PRECISION, RATE = 33, 34, 35


def blocks_of(array: NumpyArray[Any], blocks: tuple[int, ...]) -> Iterator[NumpyArray[Any]]:
    """Yield the blocks of an array of one chunk, padded with zeros."""
    counts = [-(-size // side) for size, side in zip(array.shape, blocks, strict=True)]
    padded = np.zeros([count * side for count, side in zip(counts, blocks, strict=True)], array.dtype)
    padded[tuple(map(slice, array.shape))] = array
    for place in itertools.product(*map(range, counts)):
        yield padded[tuple(slice(n * side, (n + 1) * side) for n, side in zip(place, blocks, strict=True))]


def content_of(array: NumpyArray[Any], blocks: tuple[int, ...]) -> bytes:
    """Return an array as its only chunk holds it."""
    return b"".join(block.tobytes() for block in blocks_of(array, blocks))


def cells_of(block: NumpyArray[Any], side: int) -> Iterator[tuple[slice, ...]]:
    """Yield where the cells of a block are, in the order in which NDCELL writes them."""
    for place in itertools.product(*(range(0, size, side) for size in block.shape)):
        yield tuple(slice(n, n + side) for n in place)


def levelled(block: NumpyArray[Any], side: int) -> NumpyArray[Any]:
    """Return a block as NDMEAN leaves it."""
    result = np.empty_like(block)
    for cell in cells_of(block, side):
        total = block.dtype.type(0)
        for item in block[cell].ravel():
            total += item
        result[cell] = total / block.dtype.type(block[cell].size)
    return result


def theirs(  # noqa: ANN401, RUF100
    array: NumpyArray[Any],
    blocks: tuple[int, ...],
    *,
    codec: int = 5,
    meta: int = 0,
    **cparams: Any,
) -> Any:
    """Return an array of one chunk that the peer writes."""
    filters = cparams.pop("filters", [(0, 0)])
    return blosc2.asarray(
        array,
        chunks=array.shape,
        blocks=blocks,
        cparams={
            "codec": blosc2.Codec(codec),
            "codec_meta": meta,
            "filters": [blosc2.Filter(ident) for ident, _ in filters],
            "filters_meta": [filter_meta for _, filter_meta in filters],
            "nthreads": 1,
            **cparams,
        },
    )


def opened(peer: Any) -> superchunk.SChunk:
    """Return an array of the peer as ours sees its super-chunk."""
    found = superchunk.from_cframe(peer.to_cframe(), copy=True)
    schunk = getattr(found, "schunk", found)
    assert isinstance(schunk, superchunk.SChunk)
    return schunk


def ours(
    array: NumpyArray[Any],
    blocks: tuple[int, ...],
    *,
    codec: int = 5,
    meta: int = 0,
    filters: list[tuple[int, int]] | None = None,
    splitmode: SplitMode = SplitMode.AUTO_SPLIT,
) -> superchunk.SChunk:
    """Return an array of one chunk that ours writes, into the frame of an empty one."""
    schunk = opened(theirs(np.zeros_like(array), blocks))
    slots = filters or [(0, 0)]
    schunk.cparams = superchunk.CParams(
        codec=Codec(codec),
        codec_meta=meta,
        typesize=array.itemsize,
        splitmode=splitmode,
        filters=[Filter(ident) for ident, _ in slots],
        filters_meta=[slot_meta for _, slot_meta in slots],
    )
    schunk.update_data(0, content_of(array, blocks), copy=True)
    return schunk


def read_back(schunk: superchunk.SChunk) -> NumpyArray[Any]:
    """Return what the peer reads of our array."""
    result: NumpyArray[Any] = blosc2.ndarray_from_cframe(schunk.to_cframe())[...]
    return result


def steps(shape: tuple[int, ...], dtype: str) -> NumpyArray[Any]:
    """Return a smooth array with some repetition."""
    ramp = np.arange(np.prod(shape)).reshape(shape)
    return (np.sin(ramp / 50) * 20 + ramp % 7).astype(dtype)


ARRAYS = [((40,), (16,)), ((24, 19), (8, 8)), ((9, 13, 8), (5, 6, 8)), ((6, 5, 9, 7), (4, 5, 6, 4))]


# Both ways.


@pytest.mark.parametrize("dtype", ["|u1", "<i2", "<f4", "<f8", "|S11"])
@pytest.mark.parametrize(("shape", "blocks"), ARRAYS, ids=repr)
def test_cells_are_interchangeable(shape: tuple[int, ...], blocks: tuple[int, ...], dtype: str) -> None:
    array = steps(shape, dtype)
    filters = [(CELLS, 3), (1, 0)]
    there = theirs(array, blocks, filters=filters)
    assert opened(there)[:] == content_of(array, blocks)
    here = ours(array, blocks, filters=filters)
    assert np.array_equal(read_back(here), array)
    assert here[:] == content_of(array, blocks)
    assert here.get_slice(3, 11) == content_of(array, blocks)[3 * array.itemsize : 11 * array.itemsize]


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
@pytest.mark.parametrize(("shape", "blocks"), ARRAYS, ids=repr)
def test_means_are_the_same_to_the_bit(shape: tuple[int, ...], blocks: tuple[int, ...], dtype: str) -> None:
    array = steps(shape, dtype) / 3
    array = array.astype(dtype)
    expected = b"".join(levelled(block, 3).tobytes() for block in blocks_of(array, blocks))
    there = theirs(array, blocks, filters=[(MEANS, 3)])
    assert opened(there)[:] == expected
    here = ours(array, blocks, filters=[(MEANS, 3)])
    assert here[:] == expected
    assert np.array_equal(read_back(here), there[...])


@pytest.mark.parametrize("side", [4, 8])
@pytest.mark.parametrize("shape", [(64, 48), (50, 37), (9, 100), (8, 8)], ids=repr)
@pytest.mark.parametrize("values", [2, 3, 6, 256])
def test_ndlz_is_interchangeable(side: int, shape: tuple[int, int], values: int) -> None:
    rng = np.random.default_rng(values)
    array = rng.integers(0, values, shape).astype("|u1")
    array[:, :20] = array[:, :1]
    array[::3] = array[:1]
    there = theirs(array, shape, codec=NDLZ, meta=side)
    assert opened(there)[:] == array.tobytes()
    here = ours(array, shape, codec=NDLZ, meta=side)
    assert np.array_equal(read_back(here), array)
    assert here[:] == array.tobytes()
    assert here.cbytes <= there.schunk.cbytes


@pytest.mark.parametrize("dtype", ["<i2", "<f4", "<f8"])
def test_ndlz_of_wider_items_is_split(dtype: str) -> None:
    array = steps((32, 24), dtype)
    here = ours(array, (16, 16), codec=NDLZ, meta=4, filters=[(1, 0)])
    assert not _engine.describe(here.get_chunk(0)).dont_split
    assert _engine.describe(here.get_chunk(0)).codec == NDLZ
    assert np.array_equal(read_back(here), array)
    there = theirs(array, (16, 16), codec=NDLZ, meta=4, filters=[(1, 0)], splitmode=blosc2.SplitMode.ALWAYS_SPLIT)
    assert opened(there)[:] == content_of(array, (16, 16))


def test_a_chunk_of_ndlz_needs_no_layer_to_be_read() -> None:
    array = steps((40, 40), "|u1")
    chunk = ours(array, (40, 40), codec=NDLZ, meta=4).get_chunk(0)
    assert superchunk.decompress2(chunk) == array.tobytes()
    assert blosc2.decompress2(chunk) == array.tobytes()


@pytest.mark.parametrize(("codec", "meta"), [(ACCURACY, 0), (ACCURACY, 253), (PRECISION, 9), (RATE, 0), (RATE, 40)])
@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
@pytest.mark.parametrize(("shape", "blocks"), ARRAYS, ids=repr)
def test_zfp_is_interchangeable(
    shape: tuple[int, ...], blocks: tuple[int, ...], dtype: str, codec: int, meta: int
) -> None:
    pytest.importorskip("zfpy")
    array = steps(shape, dtype)
    there = theirs(array, blocks, codec=codec, meta=meta)
    assert opened(there)[:] == content_of(there[...], blocks) or np.prod(blocks) != np.prod(shape)
    here = ours(array, blocks, codec=codec, meta=meta)
    assert here.get_chunk(0) == there.schunk.get_chunk(0)
    assert np.array_equal(read_back(here), there[...])
    got = np.frombuffer(here[:], dtype)
    if codec == ACCURACY:
        wanted = np.frombuffer(content_of(array, blocks), dtype)
        assert np.abs(got - wanted).max() <= 10.0 ** (meta - 256 if meta > 127 else meta)
    assert here.get_slice(2, 9) == got[2:9].tobytes()
    assert here.decompress_chunk(0) == got.tobytes()


def test_zfp_stores_plain_what_it_cannot_promise() -> None:
    pytest.importorskip("zfpy")
    array = steps((16, 32), "<f8")
    array[3, 4], array[2, 20] = np.nan, np.inf
    here = ours(array, (16, 16), codec=ACCURACY, meta=0)
    assert here[:] == content_of(array, (16, 16))
    assert np.array_equal(read_back(here), array, equal_nan=True)


# Other ways in and out of a SChunk.


@pytest.mark.parametrize("way", [{"filters": [(CELLS, 4)]}, {"codec": NDLZ, "meta": 4}], ids=repr)
def test_all_ways_to_read_and_write_know_the_layer(way: dict[str, Any]) -> None:
    array = steps((32, 32), "|u1")
    schunk = ours(array, (16, 16), **way)
    plain = bytearray(content_of(array, (16, 16)))
    out = bytearray(len(plain))
    schunk.decompress_chunk(0, out)
    assert out == plain
    schunk[5:9] = b"abcd"
    plain[5:9] = b"abcd"
    assert schunk[:] == plain
    copied = schunk.copy()
    assert copied[:] == plain
    copied = schunk.copy(cparams=superchunk.CParams(typesize=1, codec=Codec.LZ4))
    assert copied[:] == plain
    with superchunk.schunk_from_cframe(schunk.to_cframe(), copy=True) as again:
        assert bytes(getattr(again, "schunk", again)[:]) == plain


def peers_array(array: NumpyArray[Any], way: dict[str, Any]) -> Any:
    """Return an array of several chunks of (20, 30) in blocks of (8, 8), written by the peer."""
    filters = way.get("filters", [(0, 0)])
    return blosc2.asarray(
        array,
        chunks=(20, 30),
        blocks=(8, 8),
        cparams={
            "codec": blosc2.Codec(way.get("codec", 5)),
            "codec_meta": way.get("meta", 0),
            "filters": [blosc2.Filter(ident) for ident, _ in filters],
            "filters_meta": [filter_meta for _, filter_meta in filters],
        },
    )


@pytest.mark.parametrize(
    ("dtype", "way", "loss"),
    [
        ("<f4", {"filters": [(CELLS, 3)]}, 0),
        ("<f8", {"filters": [(MEANS, 3)]}, 40),
        ("|u1", {"codec": NDLZ, "meta": 4}, 0),
        ("<f8", {"codec": ACCURACY, "meta": 254}, 0.02),
        ("<f8", {"codec": RATE, "meta": 40}, 0.01),
    ],
    ids=repr,
)
def test_boxes_and_points_of_arrays_are_read_and_written(dtype: str, way: dict[str, Any], loss: float) -> None:
    pytest.importorskip("zfpy")
    peer = peers_array(steps((50, 70), dtype), way)
    expected = peer[...]
    array = NDArray(opened(peer))
    assert np.array_equal(array[...], expected)
    assert np.array_equal(array[3:41:3, 5:60], expected[3:41:3, 5:60])
    assert array[7, 8] == expected[7, 8]
    assert np.array_equal(array[[1, 44, 7], [3, 69, 3]], expected[[1, 44, 7], [3, 69, 3]])
    array[10:20, 5:66] = expected[20:30, 1:62]
    expected[10:20, 5:66] = expected[20:30, 1:62].copy()
    found = array[...]
    assert np.abs(found.astype("f8") - expected).max() <= loss
    assert np.array_equal(read_back(array.schunk), found)


def test_parameters_for_other_blocks_do_not_pack() -> None:
    geometry = _engine.Geometry((8, 8), (4, 4), 4)
    cells = {"filters": bytes([CELLS, 0, 0, 0, 0, 0]), "filters_meta": bytes([2, 0, 0, 0, 0, 0])}
    sound = _engine.EncodeParams(typesize=4, blocksize=64, blockshape=(4, 4), **cells)  # type: ignore[arg-type]
    other = _engine.EncodeParams(typesize=4, blocksize=64, blockshape=(2, 8), **cells)  # type: ignore[arg-type]
    items = np.arange(64, dtype="<i4").reshape(8, 8)
    chunk = _engine.pack(geometry, sound, items, 0, items.strides, items.shape)
    out = np.zeros((3, 4), "<i4")
    _engine.read_box(geometry, [chunk], [(2, 5, 1), (3, 7, 1)], out)
    assert np.array_equal(out, items[2:5, 3:7])
    with pytest.raises(ValueError, match=r"blockshape.*\(2, 8\)"):
        _engine.pack(geometry, other, items, 0, items.strides, items.shape)


# Without what they need.


@pytest.mark.parametrize(
    "keywords",
    [
        {"filters": [Filter.NDCELL], "filters_meta": [4]},
        {"filters": [Filter.NDMEAN], "filters_meta": [4]},
        {"codec": Codec.NDLZ, "codec_meta": 4, "filters": [], "filters_meta": []},
        {"codec": Codec.ZFP_ACC, "filters": [], "filters_meta": []},
    ],
    ids=repr,
)
def test_writing_without_the_layer_names_it(keywords: dict[str, Any]) -> None:
    data = bytes(range(256)) * 16
    with pytest.raises(ValueError, match="b2nd"):
        superchunk.compress2(data, typesize=4, **keywords)
    with pytest.raises(ValueError, match="b2nd"):
        superchunk.SChunk(chunksize=4096, data=data, cparams=superchunk.CParams(typesize=4, **keywords))


@pytest.mark.parametrize("choice", list(Filter))
def test_the_one_filter_of_compress_has_nothing_to_act_on(choice: Filter) -> None:
    data = np.arange(3000, dtype="<f4")
    chunk = superchunk.compress(data, filter=choice)
    assert superchunk.decompress(chunk) == data.tobytes() == blosc2.decompress(chunk)


@pytest.mark.parametrize(
    ("way", "field", "at"),
    [
        ({"filters": [(CELLS, 4)]}, "filters", 16),
        ({"filters": [(1, 0), (MEANS, 4)]}, "filters", 17),
        ({"codec": RATE, "meta": 30}, "udcodec", 22),
    ],
    ids=repr,
)
def test_reading_without_the_layer_names_field_and_layer(way: dict[str, Any], field: str, at: int) -> None:
    array = theirs(steps((16, 16), "<f4"), (16, 16), **way)
    chunk = array.schunk.get_chunk(0)
    for read in (superchunk.decompress2, superchunk.decompress, _engine.decompress):
        with pytest.raises(UnsupportedError, match=f"{field} at byte {at}.*b2nd"):
            read(chunk)


def test_zfp_without_its_package_says_how_to_get_it(tmp_path: Path) -> None:
    path = tmp_path / "a.b2nd"
    path.write_bytes(theirs(steps((16, 16), "<f4"), (16, 16), codec=RATE, meta=30).to_cframe())
    script = (
        "import sys; sys.modules['zfpy'] = None\n"
        "import superchunk\n"
        "found = superchunk.open(sys.argv[1])\n"
        "schunk = getattr(found, 'schunk', found)\n"
        "try: schunk[:]\n"
        "except superchunk.UnsupportedError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    assert 'pip install "superchunk[zfp]"' in done.stdout


def test_zfpy_is_not_imported_before_a_chunk_needs_it() -> None:
    script = "import sys, superchunk; superchunk.SChunk(data=b'abc' * 99)[:]; print('zfpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# What cannot be, when writing.


@pytest.mark.parametrize(
    ("dtype", "blocks", "way", "named"),
    [
        ("<f4", (2, 64), {"filters": [(MEANS, 4)]}, "shortest side"),
        ("<f4", (2, 64), {"filters": [(CELLS, 12)]}, "cells of at most"),
        ("<f4", (16, 16), {"filters": [(CELLS, 0)]}, "1 to 255"),
        ("<f4", (16, 16), {"filters": [(MEANS, -1)]}, "1 to 127"),
        ("<i4", (16, 16), {"filters": [(MEANS, 4)]}, "float32"),
        ("<i2", (16, 16), {"filters": [(MEANS, 4)]}, "4 or 8 bytes|float32"),
        ("|u1", (16, 16), {"codec": NDLZ, "meta": 5}, "codec_meta"),
        ("|u1", (256,), {"codec": NDLZ, "meta": 4}, "2 dimensions"),
        ("|u1", (8, 8, 4), {"codec": NDLZ, "meta": 4}, "2 dimensions"),
        ("<f4", (16, 16), {"codec": NDLZ, "meta": 4}, "typesize"),
        (
            "<f4",
            (16, 16),
            {"codec": NDLZ, "meta": 4, "filters": [(1, 0)], "splitmode": SplitMode.NEVER_SPLIT},
            "typesize",
        ),
        ("<f4", (2, 64), {"codec": ACCURACY}, "at least 4"),
        ("<f4", (4, 4, 4, 4, 4), {"codec": ACCURACY}, "1 to 4 dimensions"),
        ("<i4", (16, 16), {"codec": ACCURACY}, "float32"),
        (">f4", (16, 16), {"codec": ACCURACY}, "float32"),
        ("<i2", (16, 16), {"codec": ACCURACY}, "typesize"),
        ("<f4", (16, 16), {"codec": ACCURACY, "filters": [(1, 0)]}, "SHUFFLE"),
    ],
    ids=repr,
)
def test_what_others_could_not_read_is_refused(
    dtype: str, blocks: tuple[int, ...], way: dict[str, Any], named: str
) -> None:
    pytest.importorskip("zfpy")
    with pytest.raises(ValueError, match=named):
        ours(np.zeros(blocks, dtype), blocks, **way)


# Hostile layers, headers and streams.


def shaped_chunk() -> bytes:
    """Return a chunk of blocks of (16, 16) items of 4 bytes in cells."""
    array = theirs(steps((32, 32), "<f4"), (16, 16), filters=[(CELLS, 4)])
    chunk: bytes = array.schunk.get_chunk(0)
    return chunk


@pytest.mark.parametrize(
    "shape", [(16, 15), (16, 32), (16, 16, 2), (255,), (), (1,) * 9, (65536, 16384), (1 << 20, 1)], ids=repr
)
def test_a_shape_that_is_not_the_blocks_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises((FormatError, ValueError), match=r"blocksize at byte 8|filters_meta at byte 24|blockshape"):
        _engine.decompress(shaped_chunk(), itemsize=4, blockshape=shape)


@pytest.mark.parametrize("shape", [(16, 0), (2**32, 2**32), (65536, 65536), (1,) * 17], ids=repr)
def test_a_shape_that_cannot_be_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="blockshape"):
        _engine.decompress(shaped_chunk(), itemsize=4, blockshape=shape)
    with pytest.raises(ValueError, match="blockshape"):
        _engine.EncodeParams(blockshape=shape)


@pytest.mark.parametrize(("filters", "meta"), [(CELLS, 0), (MEANS, 0), (MEANS, 128), (MEANS, 255)])
def test_a_meta_that_cannot_be_is_refused(filters: int, meta: int) -> None:
    chunk = bytearray(shaped_chunk())
    chunk[16], chunk[24] = filters, meta
    with pytest.raises(FormatError, match="filters_meta at byte 24"):
        _engine.decompress(chunk, itemsize=4, blockshape=(16, 16))


def ndlz_chunk(stream: bytes, nbytes: int, side: int = 4) -> bytes:
    """Return a chunk of one block with one stream of NDLZ."""
    cbytes = 40 + len(stream)
    front = struct.pack("<BBBBiii", 5, 1, 0xD5, 1, nbytes, nbytes, cbytes)
    return front + bytes([0] * 6 + [NDLZ, side] + [0] * 8) + struct.pack("<ii", 36, len(stream)) + stream


@pytest.mark.parametrize(
    ("rows", "cols", "cells"),
    [
        (-8, -8, b"\x40\x07"),
        (2**31 - 1, 2**31 - 1, b"\x40\x07"),
        (65536, 65536, b"\x40\x07"),
        (8, 8, b""),
        (8, 8, b"\x40\x07"),
        (8, 8, b"\xc0\x0a\x00" + b"\x40\x07" * 3),
        (8, 8, b"\xc0\xff\xff" + b"\x40\x07" * 3),
        (8, 8, b"\x40\x07" * 3 + b"\x28\x09\x00\xff\xff"),
        (8, 8, b"\x40\x07" * 5),
        (8, 8, b"\x40\x07" * 3 + b"\x60\x07"),
    ],
)
def test_hostile_streams_of_ndlz_are_refused(rows: int, cols: int, cells: bytes) -> None:
    sound = ndlz_chunk(struct.pack("<Bii", 2, 8, 8) + b"\x40\x07" * 4, 64)
    assert _engine.decompress(sound) == b"\x07" * 64
    with pytest.raises(FormatError, match="ndlz stream of block 0"):
        _engine.decompress(ndlz_chunk(struct.pack("<Bii", 2, rows, cols) + cells, 64))


@pytest.mark.parametrize("codec", [ACCURACY, PRECISION, RATE])
@settings(max_examples=40, deadline=None)
@given(
    stream=st.binary(max_size=400), meta=st.integers(0, 255), shape=st.lists(st.integers(1, 9), min_size=1, max_size=4)
)
def test_hostile_streams_of_zfp_give_numbers_or_an_error(
    codec: int, stream: bytes, meta: int, shape: list[int]
) -> None:
    pytest.importorskip("zfpy")
    for typesize in (4, 8):
        _, decode = _zfp.codecs(tuple(shape), typesize)[codec]
        results = []
        for _ in range(2):
            out = bytearray(int(np.prod(shape)) * typesize)
            try:
                decode(memoryview(stream), memoryview(out), meta)
            except FormatError:
                assert len(stream) % 8
            results.append(out)
        assert results[0] == results[1], "memory behind the stream was read"
        with pytest.raises(FormatError, match="whole block"):
            decode(memoryview(bytes(8)), memoryview(bytearray(3)), meta)


# Round trips against the model.


@st.composite
def blocks(draw: st.DrawFn) -> tuple[tuple[int, ...], int, int]:
    """Draw a shape of blocks, a number of them and the size of items."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    return shape, draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 3, 4, 8, 300]))


def params_or_none(**keywords: Any) -> _engine.EncodeParams | None:
    """Return parameters, None if the engine refuses them."""
    try:
        return _engine.EncodeParams(**keywords)
    except ValueError:
        return None


@settings(max_examples=150, deadline=None)
@given(drawn=blocks(), side=st.integers(1, 6), data=st.data())
def test_cells_are_those_of_the_model(drawn: tuple[tuple[int, ...], int, int], side: int, data: st.DataObject) -> None:
    shape, nblocks, itemsize = drawn
    items = int(np.prod(shape))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    plain = rng.integers(0, 3, nblocks * items * itemsize).astype("|u1").tobytes()
    keywords: dict[str, Any] = {"typesize": itemsize, "blocksize": items * itemsize, "splitmode": 2}
    params = params_or_none(
        filters=bytes([CELLS, 0, 0, 0, 0, 0]), filters_meta=bytes([side, 0, 0, 0, 0, 0]), blockshape=shape, **keywords
    )
    assert (params is None) == (side ** len(shape) > items)
    if params is None:
        return
    chunk = _engine.compress(plain, params)
    for nthreads in (1, 2):
        assert _engine.decompress(chunk, itemsize=itemsize, blockshape=shape, nthreads=nthreads) == plain
    half = len(plain) // 2
    piece = _engine.read([(chunk, len(plain), half, len(plain), 0)], itemsize=itemsize, blockshape=shape)
    assert piece == plain[half:]
    if _engine.describe(chunk).memcpyed or _engine.describe(chunk).special:
        return
    bare = bytearray(chunk)
    bare[16] = 0
    model = b"".join(
        block[cell].tobytes()
        for block in np.frombuffer(plain, f"V{itemsize}").reshape(nblocks, *shape)
        for cell in cells_of(block, side)
    )
    assert _engine.decompress(bare) == model


@settings(max_examples=150, deadline=None)
@given(
    rows=st.integers(1, 40),
    cols=st.integers(1, 40),
    side=st.sampled_from([4, 8]),
    values=st.integers(1, 5),
    seed=st.integers(0, 10_000),
    itemsize=st.sampled_from([1, 2, 4]),
)
def test_ndlz_round_trips_here_and_there(
    rows: int, cols: int, side: int, values: int, seed: int, itemsize: int
) -> None:
    rng = np.random.default_rng(seed)
    plain = rng.integers(0, values, 2 * rows * cols * itemsize).astype("|u1").tobytes()
    params = _engine.EncodeParams(
        codec=NDLZ, codec_meta=side, typesize=itemsize, blocksize=rows * cols * itemsize, blockshape=(rows, cols)
    )
    chunk = _engine.compress(plain, params)
    assert _engine.decompress(chunk) == plain
    assert blosc2.decompress2(chunk) == plain


def test_filled_blocks_only() -> None:
    params = _engine.EncodeParams(
        typesize=4,
        blocksize=64,
        filters=bytes([CELLS, 0, 0, 0, 0, 0]),
        filters_meta=bytes([2] + [0] * 5),
        blockshape=(4, 4),
    )
    with pytest.raises(ValueError, match="whole blocks of 64 bytes"):
        _engine.compress(bytes(range(100)), params)


def test_the_layout_of_the_helper_is_the_layer_of_the_frame() -> None:
    schunk = opened(theirs(np.zeros((5, 7), "<f4"), (2, 3)))
    layout = ArrayLayout((5, 7), (5, 7), (2, 3), "<f4")
    assert schunk.nbytes == layout.chunk_items * 4
    assert len(content_of(np.zeros((5, 7), "<f4"), (2, 3))) == schunk.nbytes


@pytest.mark.parametrize("codec", [Codec.ZFP_ACC, Codec.ZFP_PREC, Codec.ZFP_RATE])
def test_zfp_needs_no_word_about_filters(codec: Codec) -> None:
    plain = steps((40, 30), "f8")
    meta = {Codec.ZFP_ACC: -3, Codec.ZFP_PREC: 40, Codec.ZFP_RATE: 60}[codec]
    both: list[Any] = [{"codec": codec, "codec_meta": meta}, superchunk.CParams(codec=codec, codec_meta=meta)]
    for cparams in both:
        array = superchunk.asarray(plain, chunks=(20, 16), blocks=(8, 8), cparams=cparams)
        assert not any(one.value for one in array.cparams.filters if isinstance(one, Filter))
        np.testing.assert_allclose(array[...], plain, atol=1e-3)
        np.testing.assert_allclose(blosc2.from_cframe(array.to_cframe())[...], array[...], rtol=0, atol=0)
    with pytest.raises(ValueError, match="mixes bytes"):
        superchunk.asarray(plain, cparams={"codec": codec, "filters": [Filter.SHUFFLE]})
