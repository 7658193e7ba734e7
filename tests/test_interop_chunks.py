"""Chunks between the two implementations: what one writes the other reads, in any combination.

The known defects of the peer are avoided, and each is shown once: we read what it writes and
cannot read itself.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import oracle
import pytest
import reference
from drawn import (
    ALWAYS_SPLIT,
    BITSHUFFLE,
    BYTEDELTA,
    CODECS,
    DELTA,
    INT_TRUNC,
    LZ4,
    LZ4HC,
    NEVER_SPLIT,
    SHUFFLE,
    TRUNC_PREC,
    TYPESIZES,
    WIDE_TYPESIZES,
    ZLIB,
    ZSTD,
    Params,
    content,
    contents,
    examples,
    for_oracle,
    params,
)
from hypothesis import assume, given
from hypothesis import strategies as st

import superchunk
from superchunk import _engine
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Iterator

non_empty = contents().filter(len)


def compress(data: bytes | bytearray, way: Params) -> bytes:
    """Return the chunk that we write."""
    return _engine.compress(data, _engine.EncodeParams(**way.for_engine()))


def check_ranges(chunk: bytes, data: bytes, typesize: int, draw: st.DataObject) -> None:
    """Compare some ranges with the slices that they are, by engine and reference decoder."""
    for nthreads in (1, 2):
        start = draw.draw(st.integers(0, len(data)))
        stop = draw.draw(st.integers(start, len(data)))
        request = (chunk, len(data), start, stop, 0)
        part = _engine.read([request], nthreads=nthreads, itemsize=typesize)
        assert part == data[start:stop]
        if len(data) < 20_000:
            assert reference.decode_range(chunk, start, stop, typesize) == part


@examples(250)
@given(non_empty, params())
def test_peer_reads_what_we_write(data: bytes, way: Params) -> None:
    chunk = compress(data, way)
    # Its DELTA decoder has races and its unfiltering of a short block, unread memory.
    nthreads = 1 if DELTA in way.filters else way.nthreads
    assert oracle.decompress(chunk, nthreads) == data


@examples(250)
@given(non_empty, params(most_filters=2), st.data())
def test_we_read_what_the_peer_writes(data: bytes, way: Params, draw: st.DataObject) -> None:
    way = for_oracle(way, len(data))
    chunk = oracle.compress(data, way)
    for nthreads in (1, 2):
        plain = _engine.decompress(chunk, nthreads=nthreads, itemsize=way.typesize)
        assert plain == data
    if len(data) < 20_000:
        assert reference.decode(chunk, way.typesize) == data
    check_ranges(chunk, data, way.typesize, draw)


@examples(100)
@given(non_empty, params(most_filters=2, threads=(1,)))
def test_both_lay_a_chunk_out_alike(data: bytes, way: Params) -> None:
    way = for_oracle(replace(way, use_dict=False), len(data))
    ours, theirs = _engine.describe(compress(data, way)), _engine.describe(oracle.compress(data, way))
    assert ours.blocksize == theirs.blocksize
    assert ours.typesize == theirs.typesize
    assert (ours.filters, ours.filters_meta) == (theirs.filters, theirs.filters_meta)
    assert (ours.codec, ours.version) == (theirs.codec, theirs.version)
    if not (ours.memcpyed or theirs.memcpyed):
        # We split shuffled blocks for LZ4HC and zlib as well, which every reader reads.
        may_differ = ours.typesize == 1 or way.codec in {LZ4HC, ZLIB}
        assert ours.dont_split == theirs.dont_split or may_differ
        assert ours.special == theirs.special


@examples(100)
@given(non_empty, params(typesizes=TYPESIZES, most_filters=1, threads=(1,)))
def test_peer_reads_our_chunks_of_blosc1(data: bytes, way: Params) -> None:
    pipeline = tuple((ident, 0) for ident, _ in way.pipeline if ident in {SHUFFLE, BITSHUFFLE})
    way = replace(way, pipeline=pipeline, first_slot=5, use_dict=False)
    if BITSHUFFLE in way.filters:  # it loses the tails of blocks that are not whole items
        way = replace(way, blocksize=way.blocksize // way.typesize * way.typesize)
        data = data[: len(data) // way.typesize * way.typesize]
    assume(data)
    chunk = _engine.compress(data, _engine.EncodeParams(**way.for_engine(), blosc1=True))
    assert oracle.blosc2.decompress(chunk) == data


def combinations() -> Iterator[Params]:
    """Yield the common ways to compress, all of them."""
    pipelines = (
        (),
        ((SHUFFLE, 0),),
        ((BITSHUFFLE, 0),),
        ((DELTA, 0), (SHUFFLE, 0)),
        ((SHUFFLE, 0), (BYTEDELTA, 4)),
    )
    for codec in CODECS:
        for clevel in (0, 1, 5, 9):
            for typesize in (1, 4, 8, 16, 255):
                for pipeline in pipelines:
                    yield Params(codec=codec, clevel=clevel, typesize=typesize, pipeline=pipeline)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", ["planes", "walk", "text", "blocky"])
def test_common_parameters_work_both_ways(codec: int, kind: str) -> None:
    data = content(kind, 255 * 16 * 9, 1)
    for way in combinations():
        if way.codec == codec:
            theirs = oracle.compress(data, for_oracle(way, len(data)))
            assert _engine.decompress(theirs) == data, way
            assert oracle.decompress(compress(data, way)) == data, way


@pytest.mark.parametrize("typesize", TYPESIZES + WIDE_TYPESIZES)
@pytest.mark.parametrize("splitmode", [1, 2, 3, 4])
def test_items_of_any_size_work_both_ways(typesize: int, splitmode: int) -> None:
    for nbytes in (typesize, 3 * typesize, 100 * typesize, 100 * typesize + typesize // 2):
        data = content("planes", nbytes, typesize)
        for codec in (0, LZ4, ZSTD):
            way = Params(codec=codec, typesize=typesize, splitmode=splitmode)
            assert oracle.decompress(compress(data, way)) == data
            theirs = oracle.compress(data, for_oracle(way, nbytes))
            assert _engine.decompress(theirs, itemsize=typesize) == data


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
@pytest.mark.parametrize("meta", [5, 20, -3, -20])
def test_truncated_precision_is_the_same_on_both_sides(dtype: str, meta: int) -> None:
    data = np.cumsum(np.random.default_rng(1).normal(size=4000)).astype(dtype).tobytes()
    typesize = int(dtype[-1])
    way = Params(typesize=typesize, pipeline=((TRUNC_PREC, meta), (SHUFFLE, 0)))
    ours, theirs = compress(data, way), oracle.compress(data, way)
    expected = _engine.decompress(ours)
    assert expected != data
    assert oracle.decompress(ours) == expected
    assert _engine.decompress(theirs) == expected


@pytest.mark.parametrize("typesize", [2, 4, 8])
@pytest.mark.parametrize("meta", [9, -3, -7])
def test_truncated_integers_are_the_same_on_both_sides(typesize: int, meta: int) -> None:
    rng = np.random.default_rng(1)
    data = np.cumsum(rng.integers(0, 99, 4000)).astype(f"<u{typesize}").tobytes()
    way = Params(typesize=typesize, pipeline=((INT_TRUNC, meta), (SHUFFLE, 0)))
    ours, theirs = compress(data, way), oracle.compress(data, way)
    expected = _engine.decompress(ours)
    assert expected != data
    assert oracle.decompress(ours) == expected
    assert _engine.decompress(theirs) == expected


@examples(60)
@given(contents(60_000).filter(len), params(most_filters=2))
def test_both_read_dictionaries(data: bytes, way: Params) -> None:
    assume(way.codec in {1, 2, 5})
    way = for_oracle(replace(way, use_dict=True, clevel=max(way.clevel, 1)), len(data))
    ours = compress(data, way)
    assert oracle.decompress(ours) == data
    theirs = oracle.compress(data, way)
    assert _engine.decompress(theirs, itemsize=way.typesize, nthreads=2) == data
    if len(data) < 20_000:
        assert reference.decode(theirs, way.typesize) == data


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_peer_reads_our_special_chunks(kind: int) -> None:
    value = b"abcdefgh" if kind == 3 else None
    chunk = _engine.special_chunk(kind, 8000, 8, value)
    schunk = oracle.blosc2.SChunk(chunksize=8000, cparams={"typesize": 8})
    schunk.append_chunk(chunk)
    if kind != 4:  # it hands out any old memory for that one
        assert schunk.decompress_chunk(0) == _engine.decompress(chunk)
    assert schunk[10:12] == _engine.decompress(chunk)[80:96] or kind == 4


def test_we_read_empty_chunks_of_the_peer() -> None:
    for codec in CODECS:
        theirs = oracle.blosc2.compress(b"", codec=oracle.blosc2.Codec(codec))
        assert _engine.decompress(theirs) == b""
        assert oracle.blosc2.get_cbuffer_sizes(compress(b"", Params(codec=codec)))[0] == 0


@pytest.mark.parametrize("codec", CODECS)
def test_first_generation_calls_of_the_peer_agree_with_us(codec: int) -> None:
    data = content("planes", 100_000, 4)
    for shuffle in (0, 1, 2):
        theirs = oracle.blosc2.compress(
            data,
            typesize=4,
            clevel=7,
            filter=oracle.blosc2.Filter(shuffle),
            codec=oracle.blosc2.Codec(codec),
        )
        assert _engine.decompress(theirs) == data
        way = Params(codec=codec, clevel=7, typesize=4, pipeline=((shuffle, 0),), first_slot=5)
        assert oracle.blosc2.decompress(compress(data, way)) == data


# What the peer writes and cannot read itself


@examples(60)
@given(
    st.integers(2, 255),
    st.integers(100, 5000),
    st.integers(1, 40_000),
    st.sampled_from([ALWAYS_SPLIT, NEVER_SPLIT]),
)
def test_we_read_chunks_with_a_block_size_that_is_not_whole_items(
    typesize: int, nitems: int, blocksize: int, splitmode: int
) -> None:
    data = content("planes", nitems * typesize, nitems)
    way = Params(
        codec=LZ4,
        typesize=typesize,
        blocksize=max(blocksize, typesize),
        splitmode=splitmode,
    )
    theirs = oracle.compress(data, way)
    assert _engine.decompress(theirs) == data
    assert _engine.decompress(theirs, itemsize=typesize, nthreads=2) == data


def test_we_read_noise_that_the_peer_stored_with_a_dictionary_flag() -> None:
    data = content("random", 50_000, 1)
    for codec in (1, 2, 5):
        theirs = oracle.compress(data, Params(codec=codec, typesize=1, use_dict=True))
        if theirs[31] & 1 and theirs[2] & 2:
            with pytest.raises((RuntimeError, ValueError)):
                oracle.decompress(theirs)
        assert _engine.decompress(theirs) == data


def test_we_keep_the_input_where_the_peer_overwrites_it() -> None:
    mine = bytearray(content("planes", 40_000, 1))
    before = bytes(mine)
    pipeline = ((DELTA, 0), (SHUFFLE, 0), (BYTEDELTA, 4), (SHUFFLE, 4))
    way = Params(codec=LZ4, typesize=4, blocksize=4000, pipeline=pipeline)
    chunk = compress(mine, way)
    assert mine == before
    assert _engine.decompress(chunk) == before
    assert oracle.decompress(chunk) == before


@examples(40)
@given(st.integers(0, 2**20), st.lists(st.integers(0, 2**16), min_size=1, max_size=8))
def test_peer_and_we_agree_on_which_damaged_chunks_still_decode(seed: int, positions: list[int]) -> None:
    """Where both give a result it is the same; damage inside a stream alone is tried."""
    data = content("text", 3000, seed)
    chunk = bytearray(compress(data, Params(codec=0, typesize=1, pipeline=())))
    for position in positions:
        at = 40 + position % (len(chunk) - 40)
        chunk[at] ^= 1 << (position % 8)
    try:
        ours = _engine.decompress(chunk)
    except (SuperchunkError, ValueError):
        return
    try:
        theirs = oracle.decompress(bytes(chunk))
    except (RuntimeError, ValueError):
        return
    assert theirs == ours


def test_a_match_of_lz4_at_distance_zero_is_zeros_for_every_reader() -> None:
    # One literal, 219 bytes from 0 bytes back, 5 literals: the format forbids it, liblz4 does not see it.
    stream = bytes([0x1F, 65, 0, 0, 200, 0x50, 1, 2, 3, 4, 5])
    plain = b"A" + bytes(219) + bytes([1, 2, 3, 4, 5])
    header = struct.pack("<BBBBiii", 5, 1, 0x35, 1, len(plain), len(plain), 36 + 4 + len(stream))
    chunk = header + bytes(6) + b"\x01" + bytes(9) + struct.pack("<ii", 36, len(stream)) + stream
    assert superchunk.decompress2(chunk) == plain
    assert oracle.blosc2.decompress2(chunk) == plain
    for start, stop in [(0, 1), (0, 100), (1, 2), (100, 222), (219, 225)]:
        assert _engine.read([(chunk, -1, start, stop, 0)]) == plain[start:stop]
    frame = superchunk.SChunk(chunksize=len(plain))
    frame.insert_chunk(0, chunk)
    assert frame[:] == plain
