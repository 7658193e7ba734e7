"""What the property tests draw: contents, and ways to compress them.

::

    @examples(100)                                  # times SUPERCHUNK_EXAMPLES
    @given(contents(), params())
    def test_any_content_comes_back(content: bytes, ways: Params) -> None: ...

Contents are made from a kind, a size and a seed rather than byte by byte, so that they are as
large and as compressible as real ones and still shrink. Draws only; the promises are in the tests.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator

FACTOR = float(os.environ.get("SUPERCHUNK_EXAMPLES", "1"))
"""How many times more examples than in an ordinary run."""

SHUFFLE, BITSHUFFLE, DELTA, TRUNC_PREC, BYTEDELTA, INT_TRUNC = 1, 2, 3, 4, 35, 36
BLOSCLZ, LZ4, LZ4HC, ZLIB, ZSTD = CODECS = (0, 1, 2, 4, 5)
DICT_CODECS = (LZ4, LZ4HC, ZSTD)
ALWAYS_SPLIT, NEVER_SPLIT, AUTO_SPLIT = 1, 2, 3

TYPESIZES = (1, 2, 3, 4, 7, 8, 12, 16, 17, 32, 100, 255)
WIDE_TYPESIZES = (256, 257, 300, 1000, 5000)


def examples(n: int) -> settings:
    """Return settings for `n` examples in an ordinary run, without a time limit for one of them."""
    return settings(
        max_examples=max(1, round(n * FACTOR)),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def _random(rng: Generator, nbytes: int) -> bytes:
    """Nothing compresses it."""
    return rng.bytes(nbytes)


def _zeros(_rng: Generator, nbytes: int) -> bytes:
    """All of it one special chunk."""
    return bytes(nbytes)


def _run(rng: Generator, nbytes: int) -> bytes:
    """One byte over and over."""
    return bytes([int(rng.integers(1, 256))]) * nbytes


def _ramp(rng: Generator, nbytes: int) -> bytes:
    """Integers that count."""
    first = int(rng.integers(0, 2**20))
    return np.arange(first, first + nbytes // 4 + 1, dtype="<i4").tobytes()[:nbytes]


def _walk(rng: Generator, nbytes: int) -> bytes:
    """Doubles that wander by quarters."""
    steps = rng.integers(-9, 10, nbytes // 8 + 1).cumsum()
    return (steps * 0.25).astype("<f8").tobytes()[:nbytes]


def _text(rng: Generator, nbytes: int) -> bytes:
    """Words."""
    words = [b"chunk ", b"block ", b"frame ", b"stream ", b"filter\n", b"codec, "]
    return b"".join(words[i] for i in rng.integers(0, len(words), nbytes // 6 + 1))[:nbytes]


def _planes(rng: Generator, nbytes: int) -> bytes:
    """Items whose low byte is noise and whose other bytes hardly change."""
    return np.cumsum(rng.integers(0, 300, nbytes // 4 + 1)).astype("<u4").tobytes()[:nbytes]


def _blocky(rng: Generator, nbytes: int) -> bytes:
    """Zeros, runs, noise and order by turns: every kind of stream in one chunk."""
    kinds = [bytes(512), bytes([7]) * 512, rng.bytes(512), bytes(range(256)) * 2]
    return b"".join(kinds[i] for i in rng.integers(0, 4, nbytes // 512 + 1))[:nbytes]


def _sparse(rng: Generator, nbytes: int) -> bytes:
    """Zeros with something now and then."""
    sparse = np.zeros(nbytes, "u1")
    where = rng.integers(0, max(nbytes, 1), nbytes // 50)
    sparse[where] = rng.integers(1, 256, where.size)
    return sparse.tobytes()


MAKERS = {
    "random": _random,
    "zeros": _zeros,
    "run": _run,
    "ramp": _ramp,
    "walk": _walk,
    "text": _text,
    "planes": _planes,
    "blocky": _blocky,
    "sparse": _sparse,
}


def content(kind: str, nbytes: int, seed: int) -> bytes:
    """Return `nbytes` bytes of a kind."""
    return MAKERS[kind](np.random.default_rng(seed), nbytes)


def sizes(most: int) -> st.SearchStrategy[int]:
    """Return byte counts around the limits of the format, and any others up to `most`."""
    edges = [0, 1, 15, 16, 31, 32, 33, 127, 128, 4095, 4096, 32767, 32768, 65536, 65537, 131073]
    return st.one_of(
        st.integers(0, min(300, most)),
        st.sampled_from([edge for edge in edges if edge <= most]),
        st.integers(0, most),
    )


def contents(most: int = 200_000) -> st.SearchStrategy[bytes]:
    """Return contents of every kind with up to `most` bytes, or just any bytes."""
    made = st.builds(content, st.sampled_from(sorted(MAKERS)), sizes(most), st.integers(0, 2**20))
    return st.one_of(st.binary(max_size=200), made, made, made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """A way to compress, in the words of `EncodeParams`."""

    codec: int = ZSTD
    clevel: int = 5
    typesize: int = 8
    blocksize: int = 0
    splitmode: int = AUTO_SPLIT
    pipeline: tuple[tuple[int, int], ...] = ((SHUFFLE, 0),)
    """Filters and their metas, in the order in which they run."""
    first_slot: int = 0
    use_dict: bool = False
    nthreads: int = 1

    def slots(self, which: int) -> bytes:
        """Return six slots of filters (0) or metas (1)."""
        listed = [pair[which] & 255 for pair in self.pipeline]
        start = min(self.first_slot, 6 - len(listed))
        return bytes([0] * start + listed + [0] * (6 - start - len(listed)))

    def for_engine(self) -> dict[str, Any]:
        """Return the keywords of `EncodeParams`."""
        return {
            "codec": self.codec,
            "clevel": self.clevel,
            "typesize": self.typesize,
            "blocksize": self.blocksize,
            "splitmode": self.splitmode,
            "filters": self.slots(0),
            "filters_meta": self.slots(1),
            "use_dict": self.use_dict,
            "nthreads": self.nthreads,
        }

    @property
    def filters(self) -> tuple[int, ...]:
        """The filters in use."""
        return tuple(pair[0] for pair in self.pipeline)

    def __repr__(self) -> str:
        """Name only what differs from the defaults, so that a failure reads well."""
        plain = Params.__dataclass_fields__
        said = [
            f"{name}={getattr(self, name)!r}" for name, field in plain.items() if getattr(self, name) != field.default
        ]
        return f"Params({', '.join(said)})"


def pipelines(typesize: int, most: int) -> st.SearchStrategy[tuple[tuple[int, int], ...]]:
    """Return lossless filter pipelines of up to `most` filters, DELTA at most once and first."""
    stored = typesize if typesize < 256 else 1  # the largest that a header records
    metas = st.sampled_from(sorted({0, 1, 2, 4, stored, 255}))
    shuffles = st.tuples(st.just(SHUFFLE), metas)
    bytedeltas = st.tuples(st.just(BYTEDELTA), st.sampled_from(sorted({1, 2, 3, stored})))
    usual = st.one_of(shuffles, shuffles, st.just((BITSHUFFLE, 0)), bytedeltas)
    rest = st.lists(usual, max_size=most).map(tuple)
    with_delta = st.lists(usual, max_size=max(0, most - 1)).map(lambda others: ((DELTA, 0), *others))
    return st.one_of(rest, rest, rest, with_delta)


@st.composite
def params(
    draw: st.DrawFn,
    *,
    typesizes: Sequence[int] = TYPESIZES + WIDE_TYPESIZES,
    most_filters: int = 6,
    threads: Sequence[int] = (1, 2, 3),
) -> Params:
    """Draw a lossless way to compress."""
    codec = draw(st.sampled_from(CODECS))
    typesize = draw(st.one_of(st.sampled_from(typesizes), st.integers(1, 255)))
    blocksize = draw(
        st.one_of(
            st.just(0),
            st.just(0),
            st.integers(1, 200).map(lambda n: n * typesize),
            st.integers(1, 40_000),
        )
    )
    return Params(
        codec=codec,
        clevel=draw(st.integers(0, 9)),
        typesize=typesize,
        blocksize=blocksize,
        splitmode=draw(st.integers(1, 4)),
        pipeline=draw(pipelines(typesize, most_filters)),
        first_slot=draw(st.integers(0, 5)),
        use_dict=codec in DICT_CODECS and draw(st.integers(0, 4)) == 0,
        nthreads=draw(st.sampled_from(threads)),
    )


def for_oracle(way: Params, nbytes: int) -> Params:
    """Return `way` without what the oracle is known to do wrong for `nbytes` bytes.

    Block sizes that are no multiple of the item, blocks shorter than the streams they are split
    into, DELTA with threads or with a tail, BYTEDELTA of items that no header can record, and
    dictionaries for less than 32 bytes, which it compresses and then marks as stored plain.
    """
    typesize = way.typesize
    if nbytes < 32:  # the least that is compressed
        way = replace(way, use_dict=False)
    if way.blocksize:
        whole = max(way.blocksize // typesize, 1) * typesize
        # It writes the smaller of the two sizes into the header, and it has to be whole items.
        way = replace(way, blocksize=whole if whole < nbytes or nbytes % typesize == 0 else 0)
    if way.splitmode == ALWAYS_SPLIT and nbytes < typesize:
        way = replace(way, splitmode=NEVER_SPLIT)
    if DELTA in way.filters:
        way = replace(way, nthreads=1)
        if nbytes % typesize or typesize not in {1, 2, 4, 8}:
            way = replace(way, pipeline=way.pipeline[1:])
    if BYTEDELTA in way.filters and (typesize == 1 or typesize > 255):
        kept = tuple(pair for pair in way.pipeline if pair[0] != BYTEDELTA)
        way = replace(way, pipeline=kept)
    return way
