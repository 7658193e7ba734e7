"""What goes into the engine comes out again, whatever the way, the place and the number of threads."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import reference
from drawn import (
    BITSHUFFLE,
    BYTEDELTA,
    CODECS,
    DELTA,
    INT_TRUNC,
    LZ4,
    SHUFFLE,
    TRUNC_PREC,
    ZSTD,
    Params,
    content,
    contents,
    examples,
    params,
    sizes,
)
from hypothesis import given
from hypothesis import strategies as st

from superchunk import _engine
from superchunk.exceptions import FormatError, SuperchunkError, TruncatedError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAX_BUFFERSIZE = 2**31 - 1 - 32
ZERO, NAN, VALUE, UNINIT = 1, 2, 3, 4


def compress(data: Any, way: Params) -> bytes:
    """Compress in a way."""
    return _engine.compress(data, _engine.EncodeParams(**way.for_engine()))


def decompress(chunk: Any, way: Params, nthreads: int = 1) -> bytes:
    """Decompress, with the item size that the way was given."""
    return _engine.decompress(chunk, nthreads=nthreads, itemsize=way.typesize)


# Whole chunks


@examples(200)
@given(contents(), params())
def test_any_content_comes_back(data: bytes, way: Params) -> None:
    chunk = compress(data, way)
    assert decompress(chunk, way) == data
    assert decompress(chunk, way, nthreads=3) == data
    assert len(chunk) <= len(data) + 32


@examples(100)
@given(contents(), params())
def test_header_says_what_was_asked_for(data: bytes, way: Params) -> None:
    chunk = compress(data, way)
    info = _engine.describe(chunk)
    assert info.nbytes == len(data)
    assert info.cbytes == len(chunk)
    assert info.typesize == (way.typesize if way.typesize < 256 else 1)
    assert info.codec == way.codec
    assert bytes(info.filters) == way.slots(0)
    assert (info.version, info.header_len, info.vlblocks) == (5, 32, False)
    assert not (info.use_dict and (info.memcpyed or info.special))
    if data and not info.special:
        assert info.blocksize == _engine.EncodeParams(**way.for_engine()).blocksize_for(len(data))


@examples(60)
@given(contents(2_000_000), params())
def test_bytes_of_a_chunk_do_not_depend_on_the_number_of_threads(data: bytes, way: Params) -> None:
    chunks = {compress(data, replace(way, nthreads=nthreads)) for nthreads in (1, 2, 3, 8)}
    assert len(chunks) == 1


@examples(60)
@given(contents(100_000), params())
def test_chunk_does_not_depend_on_what_was_compressed_before(data: bytes, way: Params) -> None:
    chunk = compress(data, way)
    compress(content("random", 70_000, 3), replace(way, clevel=9, use_dict=False))
    compress(content("text", 40_000, 4), way)
    assert compress(data, way) == chunk


@examples(100)
@given(contents(), params())
def test_input_is_never_changed(data: bytes, way: Params) -> None:
    mine = bytearray(data)
    chunk = bytearray(compress(mine, way))
    assert mine == data
    before = bytes(chunk)
    decompress(chunk, way, nthreads=2)
    assert chunk == before


@examples(100)
@given(contents(60_000), params(), st.data())
def test_range_of_a_chunk_is_the_slice_of_its_content(data: bytes, way: Params, draw: st.DataObject) -> None:
    chunk = compress(data, way)
    for _ in range(4):
        start = draw.draw(st.integers(0, len(data)))
        stop = draw.draw(st.integers(start, len(data)))
        request = (chunk, len(data), start, stop, 0)
        assert _engine.read([request], itemsize=way.typesize) == data[start:stop]
        assert _engine.read([request], nthreads=2, itemsize=way.typesize) == data[start:stop]


@examples(60)
@given(contents(20_000), params(threads=(1,)), st.data())
def test_engine_and_reference_decoder_agree(data: bytes, way: Params, draw: st.DataObject) -> None:
    chunk = compress(data, way)
    assert reference.decode(chunk, way.typesize) == data
    start = draw.draw(st.integers(0, len(data)))
    stop = draw.draw(st.integers(start, len(data)))
    assert reference.decode_range(chunk, start, stop, way.typesize) == data[start:stop]


@examples(60)
@given(contents(50_000), params(), st.binary(max_size=40))
def test_bytes_behind_a_chunk_are_ignored(data: bytes, way: Params, behind: bytes) -> None:
    assert decompress(compress(data, way) + behind, way) == data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("clevel", range(10))
def test_each_codec_and_level_makes_text_shorter(codec: int, clevel: int) -> None:
    data = content("text", 100_000, 1)
    way = Params(codec=codec, clevel=clevel, typesize=1, pipeline=())
    chunk = compress(data, way)
    assert decompress(chunk, way) == data
    assert len(chunk) == len(data) + 32 if clevel == 0 else len(chunk) < len(data) // 2


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 255, 256, 257, 999, 1000, 1001, 65_537])
@pytest.mark.parametrize("typesize", [1, 3, 8, 255, 256, 1000, 70_000])
def test_length_need_not_be_a_multiple_of_the_item(length: int, typesize: int) -> None:
    data = content("planes", length, 5)
    for splitmode in (1, 2, 3, 4):
        way = Params(typesize=typesize, splitmode=splitmode, codec=LZ4)
        assert decompress(compress(data, way), way) == data


@pytest.mark.parametrize("blocksize", [1, 2, 3, 7, 8, 9, 100, 1000, 4096, 5000, 70_000])
def test_any_block_size_can_be_asked_for(blocksize: int) -> None:
    data = content("planes", 5000, 6)
    for typesize in (1, 4, 7, 300):
        way = Params(typesize=typesize, blocksize=blocksize, codec=LZ4)
        chunk = compress(data, way)
        assert decompress(chunk, way) == data
        assert reference.decode(chunk, typesize) == data


def test_empty_content_is_a_chunk_of_32_bytes() -> None:
    for codec in CODECS:
        way = Params(codec=codec)
        chunk = compress(b"", way)
        assert len(chunk) == 32
        assert decompress(chunk, way) == b""
        assert _engine.read([(chunk, 0, 0, 0, 0)]) == b""


def test_zeros_become_a_special_chunk() -> None:
    chunk = compress(bytes(1_000_000), Params())
    assert len(chunk) == 32
    assert _engine.describe(chunk).special == ZERO
    assert _engine.decompress(chunk, nthreads=2) == bytes(1_000_000)


def test_noise_is_stored_with_no_more_than_a_header() -> None:
    data = content("random", 300_000, 8)
    for codec in CODECS:
        for use_dict in (False, True) if codec in (1, 2, 5) else (False,):
            chunk = compress(data, Params(codec=codec, use_dict=use_dict))
            assert len(chunk) <= len(data) + 32
            assert _engine.decompress(chunk) == data


@pytest.mark.parametrize("codec", [1, 2, 5])
def test_dictionary_is_used_where_blocks_are_alike(codec: int) -> None:
    records = b"".join(b'{"station": "N%05d", "wind": %d, "state": "measured"}' % (i, i * i % 97) for i in range(4000))
    way = Params(codec=codec, typesize=1, pipeline=(), blocksize=1024, use_dict=True)
    chunk = compress(records, way)
    assert _engine.describe(chunk).use_dict
    assert decompress(chunk, way) == records
    assert decompress(chunk, way, nthreads=3) == records
    assert _engine.read([(chunk, -1, 5000, 5100, 0)]) == records[5000:5100]
    assert reference.decode(chunk) == records
    # Zstandard works at its level 1 whenever it has a dictionary.
    alone = replace(way, use_dict=False, clevel=1 if codec == ZSTD else way.clevel)
    assert len(chunk) < len(compress(records, alone))


@pytest.mark.parametrize("typesize", [1, 2, 4, 8, 3, 16, 24])
def test_delta_survives_partial_reads_with_threads(typesize: int) -> None:
    data = content("walk", 200_003, 9)
    way = Params(codec=LZ4, typesize=typesize, blocksize=4800, pipeline=((DELTA, 0), (SHUFFLE, 0)))
    chunk = compress(data, way)
    for nthreads in (1, 4):
        assert decompress(chunk, way, nthreads) == data
        part = _engine.read([(chunk, -1, 100_001, 190_000, 0)], nthreads=nthreads)
        assert part == data[100_001:190_000]
    assert reference.decode(chunk) == data


@pytest.mark.parametrize(("dtype", "mantissa"), [("<f4", 23), ("<f8", 52)])
@pytest.mark.parametrize("meta", [1, 10, 23, -1, -5, -22])
def test_truncated_precision_clears_the_low_bits_only(dtype: str, mantissa: int, meta: int) -> None:
    items = np.cumsum(np.random.default_rng(1).normal(size=3001)).astype(dtype)
    way = Params(typesize=items.itemsize, pipeline=((TRUNC_PREC, meta), (SHUFFLE, 0)))
    chunk = compress(items, way)
    bits = items.view(f"<u{items.itemsize}")
    zeroed = mantissa - meta if meta > 0 else -meta
    kept = bits & ~np.array((1 << zeroed) - 1, dtype=bits.dtype)
    assert decompress(chunk, way) == kept.tobytes()
    assert reference.decode(chunk) == kept.tobytes()


@pytest.mark.parametrize("typesize", [1, 2, 4, 8])
def test_truncated_integers_keep_their_high_bits(typesize: int) -> None:
    items = np.cumsum(np.random.default_rng(2).integers(0, 50, 2001)).astype(f"<u{typesize}")
    for zeroed in range(1, 8 * typesize):
        way = Params(typesize=typesize, pipeline=((INT_TRUNC, -zeroed), (SHUFFLE, 0)))
        kept = items & ~np.array((1 << zeroed) - 1, dtype=items.dtype)
        chunk = compress(items, way)
        if not _engine.describe(chunk).memcpyed:  # then nothing was truncated
            assert decompress(chunk, way) == kept.tobytes()


def test_six_filters_at_once_come_back() -> None:
    data = content("planes", 40_001, 3)
    pipeline = (
        (DELTA, 0),
        (SHUFFLE, 0),
        (BYTEDELTA, 4),
        (BITSHUFFLE, 0),
        (SHUFFLE, 2),
        (BYTEDELTA, 2),
    )
    way = Params(codec=LZ4, typesize=4, blocksize=4096, pipeline=pipeline)
    chunk = compress(data, way)
    assert not _engine.describe(chunk).memcpyed
    assert decompress(chunk, way, 2) == data
    assert reference.decode(chunk) == data


@examples(100)
@given(
    contents(),
    params(most_filters=1).filter(lambda way: not {DELTA, BYTEDELTA} & {*way.filters}),
)
def test_any_content_comes_back_from_a_chunk_of_blosc1(data: bytes, way: Params) -> None:
    pipeline = tuple((ident, 0) for ident, _ in way.pipeline)
    way = replace(way, pipeline=pipeline, first_slot=5, use_dict=False)
    chunk = _engine.compress(data, _engine.EncodeParams(**way.for_engine(), blosc1=True))
    assert decompress(chunk, way) == data
    assert decompress(chunk, way, nthreads=3) == data
    assert reference.decode(chunk, way.typesize) == data
    info = _engine.describe(chunk)
    assert (info.version, info.header_len, info.special) == (2, 16, 0)
    assert len(chunk) <= len(data) + 32


# Parameters


@pytest.mark.parametrize(
    "wrong",
    [
        {"clevel": 10},
        {"clevel": -1},
        {"typesize": 0},
        {"typesize": 536_866_817},
        {"blocksize": -1},
        {"blocksize": 536_866_817},
        {"splitmode": 0},
        {"splitmode": 5},
        {"filters": bytes(5)},
        {"filters": bytes(7)},
        {"filters_meta": bytes(5)},
        {"codec": 0, "use_dict": True},
        {"codec": 4, "use_dict": True},
        {"nthreads": -1},
        {"codec": 256},
        {"codec": -1},
    ],
    ids=repr,
)
def test_parameters_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, OverflowError)):
        _engine.EncodeParams(**wrong)


@pytest.mark.parametrize("codec", [3, 6, 31, 33, 38, 40, 100, 160, 255])
def test_codec_that_is_not_built_in_is_refused_by_number(codec: int) -> None:
    with pytest.raises(UnsupportedError) as caught:
        _engine.EncodeParams(codec=codec)
    assert caught.value.what == "codec"
    assert caught.value.ident == codec


@pytest.mark.parametrize("ident", [5, 31, 32, 33, 34, 37, 160, 255])
def test_filter_that_is_not_built_in_is_refused_by_number(ident: int) -> None:
    with pytest.raises(ValueError, match=str(ident)):
        _engine.EncodeParams(filters=bytes([0, 0, 0, 0, 0, ident]))


# Many requests, files, destinations


@examples(60)
@given(st.lists(contents(9000), min_size=1, max_size=12), params(), st.data())
def test_many_requests_fill_one_destination(all_data: list[bytes], way: Params, draw: st.DataObject) -> None:
    chunks = [compress(data, way) for data in all_data]
    requests, expected = [], bytearray()
    for chunk, data in zip(chunks, all_data, strict=True):
        expected += bytes([0xEE]) * draw.draw(st.integers(0, 3))
        start = draw.draw(st.integers(0, len(data)))
        stop = draw.draw(st.integers(start, len(data)))
        requests.append((chunk, len(data), start, stop, len(expected)))
        expected += data[start:stop]
    for nthreads in (1, 2, 5):
        dst = bytearray(b"\xee" * (len(expected) + 2))
        assert _engine.read(requests, dst, nthreads=nthreads, itemsize=way.typesize) is None
        assert dst == expected + b"\xee\xee", "bytes that no request names stay as they are"


def test_gaps_between_requests_are_zero_in_new_bytes() -> None:
    chunk = compress(b"superchunk" * 10, Params(typesize=1))
    read = _engine.read([(chunk, 100, 0, 5, 3), (chunk, 100, 5, 10, 12)])
    assert read == b"\0\0\0super\0\0\0\0chunk"


def test_one_chunk_can_be_asked_for_a_thousand_times() -> None:
    data = content("planes", 50_000, 2)
    chunk = compress(data, Params(typesize=4, blocksize=4000))
    requests = [(chunk, 50_000, 40 * n, 40 * n + 40, 40 * n) for n in range(1000)]
    assert _engine.read(requests, nthreads=2) == data[:40_000]


@examples(40)
@given(contents(120_000), params(), st.integers(0, 5000))
def test_chunk_in_a_file_reads_like_one_in_memory(data: bytes, way: Params, at: int) -> None:
    chunk = compress(data, way)
    fd = os.memfd_create("chunk")
    try:
        os.write(fd, b"\xaa" * at + chunk + b"\xbb" * 100)
        for limit in (len(chunk), len(chunk) + 100):
            source = (fd, at, limit)
            assert _engine.decompress(source, itemsize=way.typesize) == data
            third = len(data) // 3
            read = _engine.read([(source, -1, third, 2 * third, 0)], nthreads=2, itemsize=way.typesize)
            assert read == data[third : 2 * third]
            assert _engine.sizes([source, source]) == [(len(data), len(chunk))] * 2
        with pytest.raises(SuperchunkError):
            _engine.decompress((fd, at, len(chunk) - 1))
        assert os.lseek(fd, 0, os.SEEK_CUR) == at + len(chunk) + 100, "reads are positioned"
    finally:
        os.close(fd)


def test_file_that_ends_too_early_gives_an_error(tmp_path: Path) -> None:
    chunk = compress(content("planes", 100_000, 1), Params(typesize=4, blocksize=8192))
    path = tmp_path / "cut"
    for kept in (0, 10, 31, 40, 100, len(chunk) // 2, len(chunk) - 1):
        path.write_bytes(chunk[:kept])
        with path.open("rb") as file, pytest.raises(TruncatedError):
            _engine.decompress((file.fileno(), 0, len(chunk)))


def test_closed_and_negative_descriptors_give_an_error(tmp_path: Path) -> None:
    path = tmp_path / "chunk"
    path.write_bytes(compress(b"x" * 100, Params(typesize=1)))
    fd = os.open(path, os.O_RDONLY)
    os.close(fd)
    with pytest.raises((OSError, ValueError)):
        _engine.decompress((fd, 0, 100))
    with pytest.raises((OSError, ValueError)):
        _engine.decompress((-1, 0, 100))


@pytest.mark.parametrize(
    "make",
    [bytearray, lambda n: memoryview(bytearray(n)), lambda n: np.empty(n, "u1")],
    ids=["bytearray", "memoryview", "array"],
)
def test_any_writable_buffer_can_be_filled(make: Callable[[int], Any]) -> None:
    data = content("ramp", 10_000, 1)
    dst = make(10_000)
    _engine.read([(compress(data, Params(typesize=4)), 10_000, 0, 10_000, 0)], dst)
    assert bytes(dst) == data


def test_arrays_of_any_dtype_go_in_and_come_out() -> None:
    items: Any = np.arange(3000, dtype="<f4").reshape(30, 100)
    dst: Any = np.empty_like(items)
    chunk = compress(items, Params(typesize=4))
    _engine.read([(chunk, items.nbytes, 0, items.nbytes, 0)], dst)
    assert (dst == items).all()


def test_read_only_destination_is_refused_and_stays_as_it_is() -> None:
    chunk = compress(b"new content of 24 bytes!" * 4, Params())
    array: Any = np.full(96, 7, "u1")
    array.flags.writeable = False
    for dst in (b"\7" * 96, memoryview(b"\7" * 96), array):
        with pytest.raises((TypeError, ValueError, BufferError)):
            _engine.read([(chunk, 96, 0, 96, 0)], dst)
        assert bytes(dst) == b"\7" * 96


@pytest.mark.parametrize("size", [0, 1, 95])
def test_destination_that_is_too_small_is_refused(size: int) -> None:
    chunk = compress(b"new content of 24 bytes!" * 4, Params())
    dst = bytearray(size)
    with pytest.raises((ValueError, SuperchunkError)):
        _engine.read([(chunk, 96, 0, 96, 0)], dst)
    assert dst == bytes(size)


def test_strided_buffers_are_refused() -> None:
    chunk = compress(bytes(range(100)), Params(typesize=1))
    every_other: Any = np.zeros(200, "u1")[::2]
    with pytest.raises((ValueError, BufferError)):
        _engine.compress(every_other, _engine.EncodeParams())
    with pytest.raises((ValueError, BufferError)):
        _engine.read([(chunk, 100, 0, 100, 0)], every_other)


@pytest.mark.parametrize(
    ("start", "stop", "at"),
    [
        (0, 101, 0),
        (101, 101, 0),
        (60, 50, 0),
        (-1, 10, 0),
        (0, 10, -1),
        (0, 10, 195),
        (0, 2**63, 0),
        (0, 2**64 - 1, 1),
        (2**64 - 1, 2**64 - 1, 0),
        (0, 10, 2**64 - 1),
        (0, 10, 2**64),
    ],
)
def test_request_outside_chunk_or_destination_is_refused(start: int, stop: int, at: int) -> None:
    chunk = compress(bytes(range(100)), Params(typesize=1))
    with pytest.raises((ValueError, OverflowError, SuperchunkError)):
        _engine.read([(chunk, 100, start, stop, at)], bytearray(200))


@pytest.mark.parametrize("stop", [101, 2**31, 2**62, 2**63, 2**64 - 1])
def test_request_beyond_a_chunk_gets_no_memory(stop: int) -> None:
    chunk = compress(bytes(range(100)), Params(typesize=1))
    with pytest.raises((ValueError, OverflowError, SuperchunkError)):
        _engine.read([(chunk, -1, 0, stop, 0)])


def test_requests_that_overlap_or_go_back_are_refused() -> None:
    chunk = compress(bytes(range(100)), Params(typesize=1))
    for second in (0, 9):
        with pytest.raises(ValueError, match="at"):
            _engine.read([(chunk, 100, 0, 10, 0), (chunk, 100, 0, 10, second)], bytearray(40))


def test_chunk_of_another_size_than_the_container_says_is_refused() -> None:
    chunk = compress(bytes(range(100)), Params(typesize=1))
    for nbytes in (99, 101, 0):
        with pytest.raises(FormatError) as caught:
            _engine.read([(chunk, nbytes, 0, 0, 0)])
        assert caught.value.found == 100


def test_error_says_which_request_failed() -> None:
    good = compress(content("text", 5000, 1), Params(codec=LZ4, typesize=1))
    bad = bytearray(good)
    bad[32:36] = b"\xff\xff\xff\x7f"
    for nthreads in (1, 2):
        requests = [(good, -1, 0, 5000, 5000 * n) for n in range(20)]
        requests[13] = (bytes(bad), -1, 0, 5000, 5000 * 13)
        with pytest.raises(FormatError) as caught:
            _engine.read(requests, nthreads=nthreads)
        assert caught.value.nrequest == 13  # type: ignore[attr-defined]


# Special values


@examples(80)
@given(
    st.sampled_from([ZERO, NAN, VALUE, UNINIT]),
    st.sampled_from([1, 3, 4, 8, 16, 255, 256, 1000]),
    st.integers(1, 3000),
    st.data(),
)
def test_special_chunk_reads_as_its_value_everywhere(
    kind: int, typesize: int, nitems: int, draw: st.DataObject
) -> None:
    if kind == NAN:
        typesize = 4 if typesize < 8 else 8
    value = draw.draw(st.binary(min_size=typesize, max_size=typesize)) if kind == VALUE else None
    nbytes = nitems * typesize
    chunk = _engine.special_chunk(kind, nbytes, typesize, value)
    nan = np.full(nitems, np.nan, f"<f{typesize}").tobytes() if kind == NAN else b""
    expected = nan or (value or b"\0") * (nitems if kind == VALUE else nbytes)
    assert len(chunk) == 32 + len(value or b"")
    assert _engine.decompress(chunk, nthreads=2) == expected
    assert reference.decode(chunk) == expected
    start = draw.draw(st.integers(0, nbytes))
    stop = draw.draw(st.integers(start, nbytes))
    assert _engine.read([(chunk, nbytes, start, stop, 0)]) == expected[start:stop]
    info = _engine.describe(chunk)
    assert (info.special, info.repeated_value) == (kind, value)


@pytest.mark.parametrize(
    ("kind", "nbytes", "typesize", "value"),
    [
        (0, 8, 8, None),
        (5, 8, 8, None),
        (NAN, 8, 2, None),
        (NAN, 9, 8, None),
        (VALUE, 8, 8, None),
        (VALUE, 8, 8, b"seven b"),
        (VALUE, 12, 8, bytes(8)),
        (VALUE, 0, 8, bytes(8)),
        (ZERO, MAX_BUFFERSIZE + 1, 1, None),
        (ZERO, -1, 1, None),
        (ZERO, 8, 0, None),
    ],
)
def test_special_chunk_that_no_reader_accepts_is_not_made(
    kind: int, nbytes: int, typesize: int, value: bytes | None
) -> None:
    with pytest.raises((ValueError, OverflowError)):
        _engine.special_chunk(kind, nbytes, typesize, value)


def test_ends_of_a_chunk_of_two_gibibytes_are_read_without_its_middle() -> None:
    typesize = 5
    nbytes = MAX_BUFFERSIZE // typesize * typesize
    chunk = _engine.special_chunk(VALUE, nbytes, typesize, b"abcde")
    requests = [
        (chunk, nbytes, 0, 7, 0),
        (chunk, nbytes, 2**30 + 1, 2**30 + 9, 7),
        (chunk, nbytes, nbytes - 6, nbytes, 15),
    ]
    endless = b"abcde" * 10
    phase = (2**30 + 1) % 5
    assert _engine.read(requests) == endless[:7] + endless[phase : phase + 8] + b"eabcde"
    zeros = _engine.special_chunk(ZERO, MAX_BUFFERSIZE, 1)
    last = (zeros, MAX_BUFFERSIZE, MAX_BUFFERSIZE - 3, MAX_BUFFERSIZE, 0)
    assert _engine.read([last]) == bytes(3)


# Variable-length blocks


@examples(60)
@given(st.lists(contents(3000).filter(len), min_size=1, max_size=20), params())
def test_blocks_of_variable_length_come_back(blocks: list[bytes], way: Params) -> None:
    if DELTA in way.filters:
        way = replace(way, pipeline=way.pipeline[1:])
    chunk = _engine.compress_vlblocks(blocks, _engine.EncodeParams(**way.for_engine()))
    whole = b"".join(blocks)
    for nthreads in (1, 2):
        assert _engine.read_vlblocks(chunk, nthreads=nthreads) == blocks
        assert _engine.decompress(chunk, nthreads=nthreads, itemsize=way.typesize) == whole
    assert reference.decode(chunk) == whole
    assert reference.decode_vlblocks(chunk) == blocks
    info = _engine.describe(chunk)
    assert (info.vlblocks, info.version, info.nblocks) == (True, 6, len(blocks))
    assert _engine.read([(chunk, -1, len(whole) // 3, len(whole), 0)]) == whole[len(whole) // 3 :]


def test_blocks_of_variable_length_must_not_be_empty() -> None:
    ways = _engine.EncodeParams()
    for blocks in ([], [b""], [b"a", b"", b"b"]):
        with pytest.raises(ValueError, match="block"):
            _engine.compress_vlblocks(blocks, ways)


# Lazy chunks


def test_lazy_chunk_has_header_table_and_sizes_but_no_data(tmp_path: Path) -> None:
    data = content("planes", 100_000, 1)
    chunk = compress(data, Params(codec=LZ4, typesize=4, blocksize=8192))
    path = tmp_path / "frame"
    path.write_bytes(b"?" * 50 + chunk)
    nblocks = _engine.describe(chunk).nblocks
    with path.open("rb") as file:
        lazy = _engine.lazy_chunk((file.fileno(), 50, len(chunk)), 9, 50)
    assert len(lazy) == 32 + 4 * nblocks + 12 + 4 * nblocks
    assert lazy[31] == chunk[31] | 0x08
    assert lazy[:31] == chunk[:31]
    assert lazy[32 : 32 + 4 * nblocks] == chunk[32 : 32 + 4 * nblocks]
    behind = lazy[32 + 4 * nblocks :]
    assert int.from_bytes(behind[:4], "little") == 9
    assert int.from_bytes(behind[4:12], "little") == 50
    assert 32 + 4 * nblocks + np.frombuffer(behind[12:], "<i4").sum() == len(chunk)


def test_lazy_chunk_is_never_decoded() -> None:
    lazy = _engine.lazy_chunk(compress(content("text", 9000, 1), Params(typesize=1)), 0, 0)
    with pytest.raises(FormatError, match="lazy"):
        _engine.decompress(lazy)


# Processes and threads


def run_in_child(work: Callable[[], bool]) -> int:
    """Run `work` in a forked process; return 0 if it was true there."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_process_has_threads_of_its_own() -> None:
    data = content("planes", 3_000_000, 1)
    way = Params(codec=LZ4, typesize=4, nthreads=3)
    chunk = compress(data, way)  # the pool is running now
    assert decompress(chunk, way, nthreads=3) == data

    def work() -> bool:
        again = compress(data, way)
        return again == chunk and decompress(again, way, nthreads=3) == data

    assert run_in_child(work) == 0
    assert run_in_child(lambda: run_in_child(work) == 0) == 0, "a child's child"
    assert work(), "the parent's own threads still work"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_process_forked_while_threads_work_is_not_stuck() -> None:
    data = content("planes", 2_000_000, 1)
    way = Params(codec=LZ4, typesize=4, nthreads=2)
    chunk = compress(data, way)
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            decompress(chunk, way, nthreads=2)

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:
        for _ in range(10):
            assert run_in_child(lambda: decompress(chunk, way, nthreads=2) == data) == 0
    finally:
        stop.set()
        busy.join()


def test_many_threads_share_the_engine() -> None:
    ways = [
        Params(codec=codec, typesize=4, blocksize=blocksize, nthreads=nthreads, clevel=clevel)
        for codec in (0, LZ4, ZSTD)
        for blocksize, nthreads, clevel in ((0, 1, 5), (4096, 3, 1), (20_000, 2, 9))
    ]
    data = content("planes", 200_000, 1)
    expected = [compress(data, way) for way in ways]
    failures: list[str] = []

    def work(first: int) -> None:
        for turn in range(12):
            n = (first + turn) % len(ways)
            if compress(data, ways[n]) != expected[n]:
                failures.append(f"compressing with {ways[n]}")
            if decompress(expected[n], ways[n], nthreads=1 + turn % 3) != data:
                failures.append(f"decompressing with {ways[n]}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_interpreter_lock_is_released_while_the_engine_works() -> None:
    chunk = compress(content("text", 8_000_000, 1), Params(codec=ZSTD, typesize=1, pipeline=()))
    dst = bytearray(8_000_000)
    counted = 0
    done = threading.Event()

    def work() -> None:
        for _ in range(8):
            _engine.read([(chunk, -1, 0, 8_000_000, 0)], dst)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.0005):
        counted += 1
    thread.join()
    assert counted > 3


# Functions of the user


def test_codec_and_filter_of_the_user_run_on_every_block() -> None:
    seen = {"encode": 0, "decode": 0, "forward": 0, "backward": 0}

    def encode(src: memoryview, dst: memoryview, meta: int) -> int:
        seen["encode"] += 1
        half = bytes(src[::2])
        if bytes(src[1::2]) != half or len(half) > len(dst):
            return 0
        dst[: len(half)] = half
        return len(half) if meta == 3 else 0

    def decode(src: memoryview, dst: memoryview, meta: int) -> int:
        seen["decode"] += meta == 3
        dst[::2] = bytes(src)
        dst[1::2] = bytes(src)
        return len(dst)

    def flip(name: str) -> Callable[[memoryview, memoryview, int], None]:
        def run(src: memoryview, dst: memoryview, meta: int) -> None:
            seen[name] += 1
            dst[:] = bytes(byte ^ meta for byte in src)

        return run

    hooks = _engine.Hooks({200: (encode, decode)}, {210: (flip("forward"), flip("backward"))})
    data = np.repeat(np.frombuffer(content("random", 5000, 1), "u1"), 2).tobytes()
    ways = _engine.EncodeParams(
        codec=200,
        codec_meta=3,
        typesize=1,
        blocksize=1000,
        filters=bytes([210, 0, 0, 0, 0, 0]),
        filters_meta=bytes([0x5A, 0, 0, 0, 0, 0]),
        hooks=hooks,
    )
    chunk = _engine.compress(data, ways)
    assert len(chunk) < 6000
    assert _engine.decompress(chunk, hooks=hooks) == data
    assert seen == {"encode": 10, "decode": 10, "forward": 10, "backward": 10}
    with pytest.raises(UnsupportedError):
        _engine.decompress(chunk)


def test_exception_in_a_function_of_the_user_comes_through() -> None:
    def fail(_src: memoryview, _dst: memoryview, _meta: int) -> int:
        raise ZeroDivisionError("on purpose")

    hooks = _engine.Hooks({200: (fail, fail)}, {})
    ways = _engine.EncodeParams(codec=200, filters=bytes(6), hooks=hooks)
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        _engine.compress(content("text", 5000, 1), ways)


# What the engine says of itself


def test_every_codec_names_its_library() -> None:
    names = [_engine.codec_version(codec)[0] for codec in CODECS]
    assert names == ["BloscLZ", "LZ4", "LZ4", "Zlib", "Zstd"]
    assert all(_engine.codec_version(codec)[1] for codec in CODECS)
    assert _engine.instruction_sets()


@examples(60)
@given(sizes(5_000_000), params())
def test_block_size_is_whole_items_and_no_more_than_the_chunk(nbytes: int, way: Params) -> None:
    blocksize = _engine.EncodeParams(**way.for_engine()).blocksize_for(nbytes)
    assert 1 <= blocksize <= max(nbytes, 1)
    if blocksize > way.typesize:
        assert blocksize % way.typesize == 0


# What a review found


def test_large_blocks_of_variable_length_come_back() -> None:
    chunk = _engine.compress_vlblocks([bytes(70 << 20), b"end"], _engine.EncodeParams(codec=5, clevel=1))
    assert len(chunk) < 20_000
    assert [len(block) for block in _engine.read_vlblocks(chunk, nthreads=2)] == [70 << 20, 3]


def test_blocks_of_variable_length_know_the_containers_item_size() -> None:
    params = _engine.EncodeParams(codec=5, typesize=300, filters=bytes([0, 0, 0, 0, 1, 35]))
    block = bytes(n % 251 for n in range(3000))
    chunk = _engine.compress_vlblocks([block], params)
    assert _engine.read_vlblocks(chunk, itemsize=300) == [block]


def test_blosc1_has_no_blocks_of_variable_length() -> None:
    with pytest.raises(ValueError, match="blosc1"):
        _engine.compress_vlblocks([bytes(1000)], _engine.EncodeParams(blosc1=True))


def test_a_lazy_chunk_shows_nothing_behind_the_chunk() -> None:
    chunk = _engine.compress(b"12345678", _engine.EncodeParams(clevel=0))
    assert b"SECRET" not in _engine.lazy_chunk(chunk + b"SECRET" * 10, 0, 0)


def test_a_lazy_chunk_of_countless_blocks_is_refused(tmp_path: Path) -> None:
    nbytes = 2_147_483_000
    sizes = b"".join(n.to_bytes(4, "little") for n in (nbytes, 1, nbytes + 32))
    file = tmp_path / "chunk"
    file.write_bytes(bytes([5, 1, 7, 1]) + sizes + bytes(16))
    with file.open("rb") as opened, pytest.raises(FormatError, match="blocksize"):
        _engine.lazy_chunk((opened.fileno(), 0, nbytes + 32), 0, 0)


def test_more_threads_than_cores_are_not_made_by_the_thousand() -> None:
    data = bytes(range(256)) * 4000
    params = _engine.EncodeParams(codec=1, blocksize=4096, nthreads=100_000)
    assert _engine.decompress(_engine.compress(data, params), nthreads=100_000) == data


def test_a_decoder_of_the_user_that_fails_is_an_error() -> None:
    def store(src: memoryview, dst: memoryview, _meta: int) -> int:
        dst[: len(src) // 2] = src[: len(src) // 2]
        return len(src) // 2

    for answer in (-1, "nonsense", 3):
        hooks = _engine.Hooks({200: (store, lambda _src, _dst, _meta, answer=answer: answer)}, {})
        chunk = _engine.compress(bytes(range(200)) * 5, _engine.EncodeParams(codec=200, typesize=1, hooks=hooks))
        with pytest.raises((OverflowError, RuntimeError, TypeError)):
            _engine.decompress(chunk, hooks=hooks)
