"""The reference decoder on what C-Blosc2 writes, whatever it is asked to write.

Keeps away from what C-Blosc2 is known to get wrong (docs/format/chunk.md, "Faults of
C-Blosc2"): three filters and more, block sizes that are no multiple of the item size
unless that is the point, dictionaries on data that does not compress.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Header, decode, decode_range, decode_vlblocks

blosc2 = pytest.importorskip("blosc2", reason="the peer to compare with is not installed")

CODECS = {"blosclz": 0, "lz4": 1, "lz4hc": 2, "zlib": 4, "zstd": 5}

PIPELINES: list[tuple[list[int], list[int]]] = [
    ([0], [0]),
    ([1], [0]),
    ([1], [2]),
    ([1], [5]),
    ([2], [0]),
    ([3], [0]),
    ([3, 1], [0, 0]),
    ([3, 2], [0, 0]),
    ([1, 3], [0, 0]),
    ([1, 35], [0, 4]),
    ([2, 35], [0, 8]),
]
"""Filter ids and their metas, slot 0 first."""


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """Draw bytes that compress in one way or another, or not at all."""
    nbytes = draw(st.one_of(st.integers(0, 300), st.integers(300, 20_000)))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    match draw(st.sampled_from(["noise", "steps", "walk", "few", "zeros", "patches"])):
        case "noise":
            plain = random.bytes(nbytes)
        case "steps":
            plain = np.arange(nbytes // 4 + 1, dtype="<u4").tobytes()
        case "walk":
            plain = random.integers(-3, 4, nbytes // 8 + 1).cumsum().astype("<i8").tobytes()
        case "few":
            plain = random.choice(np.array([1.5, 2.5, -7.0]), nbytes // 8 + 1).tobytes()
        case "zeros":
            plain = bytes(nbytes)
        case _:
            levels = random.integers(0, 9, nbytes // 200 + 1, dtype=np.uint8)
            plain = np.repeat(levels, 200).tobytes()[:-64] + random.bytes(64)
    return plain[:nbytes]


@given(
    plain=contents(),
    codec=st.sampled_from(sorted(CODECS)),
    clevel=st.integers(0, 9),
    typesize=st.sampled_from([1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 40, 255]),
    pipeline=st.sampled_from(PIPELINES),
    splitmode=st.integers(1, 4),
    items=st.one_of(st.just(0), st.integers(1, 600)),
    span=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
@settings(max_examples=400, deadline=None)
def test_chunk_of_the_peer_decodes_to_what_went_in(
    plain: bytes,
    codec: str,
    clevel: int,
    typesize: int,
    pipeline: tuple[list[int], list[int]],
    splitmode: int,
    items: int,
    span: tuple[float, float],
) -> None:
    plain = plain[: len(plain) // typesize * typesize]
    chunk = blosc2.compress2(
        plain,
        codec=blosc2.Codec(CODECS[codec]),
        clevel=clevel,
        typesize=typesize,
        filters=[blosc2.Filter(ident) for ident in pipeline[0]],
        filters_meta=pipeline[1],
        splitmode=blosc2.SplitMode(splitmode),
        blocksize=items * typesize,
        nthreads=1,
    )
    header = Header.from_bytes(chunk)
    assert (header.nbytes, header.cbytes) == (len(plain), len(chunk))
    assert decode(chunk) == plain
    start, stop = sorted(int(part * len(plain)) for part in span)
    assert decode_range(chunk, start, stop) == plain[start:stop]


@given(
    plain=contents(),
    codec=st.sampled_from(sorted(CODECS)),
    typesize=st.integers(2, 300),
    blocksize=st.integers(32, 3000),
)
@settings(max_examples=200, deadline=None)
def test_chunk_with_an_unrounded_block_size_is_recovered(
    plain: bytes, codec: str, typesize: int, blocksize: int
) -> None:
    chunk = blosc2.compress2(
        plain,
        codec=blosc2.Codec(CODECS[codec]),
        typesize=typesize,
        splitmode=blosc2.SplitMode.NEVER_SPLIT,
        filters=[blosc2.Filter.SHUFFLE],
        filters_meta=[0],
        blocksize=blocksize,
        nthreads=1,
    )
    assert decode(chunk, itemsize=typesize) == plain


@given(plain=contents(), codec=st.sampled_from(["lz4", "lz4hc", "zstd"]), shuffle=st.booleans())
@settings(max_examples=60, deadline=None)
def test_chunk_with_a_dictionary_decodes_to_what_went_in(
    plain: bytes,
    codec: str,
    shuffle: bool,  # noqa: FBT001 - hypothesis names its arguments
) -> None:
    plain = (plain * 40)[: 8 * 3000] if plain else b""
    chunk = blosc2.compress2(
        plain,
        codec=blosc2.Codec(CODECS[codec]),
        typesize=8,
        use_dict=True,
        filters=[blosc2.Filter.SHUFFLE if shuffle else blosc2.Filter.NOFILTER],
        filters_meta=[0],
        blocksize=800,
        nthreads=1,
    )
    assert decode(chunk) == plain
    start, stop = len(plain) // 3, len(plain) // 2
    assert decode_range(chunk, start, stop) == plain[start:stop]


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_dictionary_is_there_where_it_was_asked_for(codec: str) -> None:
    lines = b"".join(b"%d apples and %d pears, " % (i, i * 7) for i in range(4000))
    chunk = blosc2.compress2(
        lines,
        codec=blosc2.Codec(CODECS[codec]),
        typesize=1,
        use_dict=True,
        filters=[blosc2.Filter.NOFILTER],
        filters_meta=[0],
        blocksize=4096,
        nthreads=1,
    )
    assert Header.from_bytes(chunk).use_dict
    assert decode(chunk) == lines


@given(
    blocks=st.lists(contents().filter(len), min_size=1, max_size=6),
    codec=st.sampled_from(["lz4", "zlib", "zstd"]),
    typesize=st.sampled_from([1, 4, 7]),
)
@settings(max_examples=60, deadline=None)
def test_variable_length_blocks_of_the_peer_come_out_one_by_one(blocks: list[bytes], codec: str, typesize: int) -> None:
    chunk = blosc2.blosc2_ext.vlcompress(
        blocks,
        codec=blosc2.Codec(CODECS[codec]),
        clevel=5,
        typesize=typesize,
        filters=[blosc2.Filter.SHUFFLE],
        filters_meta=[0],
        nthreads=1,
    )
    assert decode_vlblocks(chunk) == blocks
