"""What the array laboratory draws: dtypes, shapes, partitions, contents, index expressions, places to store them.

::

    @share(0.1)                                   # of SUPERCHUNK_ARRAY_EXAMPLES
    @given(arrays("memory"), st.data())
    def test_any_index_reads_what_numpy_reads(drawn: Drawn, data: st.DataObject) -> None: ...

Contents are made from a kind and a seed, so that arrays are of any size and still shrink. What NumPy says about
an index expression is the expectation, its exceptions included: `outcome` asks it. `laid_out` is the layout of
docs/format/b2nd.md in plain NumPy. Draws and comparisons only; the promises are in the tests.
"""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import superchunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Shape: TypeAlias = tuple[int, ...]

TOTAL = int(os.environ.get("SUPERCHUNK_ARRAY_EXAMPLES", "2000"))
"""Examples of all tests of the laboratory together; a step of a state machine is no example of its own."""

FIELDS = np.dtype([("id", "<i4"), ("place", "<f8", (2,)), ("name", "S3")])
PADDED = np.dtype({"names": ["a", "b"], "formats": ["u1", "<f4"], "offsets": [1, 8], "itemsize": 16})
NESTED = np.dtype([("pair", [("x", ">i2"), ("y", "<c8")]), ("ok", "?")])
DTYPES = tuple(
    np.dtype(one)
    for one in (
        *("?", "i1", "u1", "<i2", ">u2", "<i4", ">i8", "<u8", "<f2", "<f4", ">f4", "<f8", "<c8", ">c16"),
        *("<M8[ns]", "<m8[D]", ">M8[s]", "S5", "<U3", "V3", FIELDS, PADDED, NESTED),
    )
)
KINDS = ("random", "count", "zeros", "constant", "patches")


def share(fraction: float) -> settings:
    """Return settings for a fraction of all examples, without a time limit for one of them."""
    return settings(
        max_examples=max(1, round(TOTAL * fraction)),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[phase for phase in Phase if phase is not Phase.explain],  # which takes minutes
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """An array and how to keep it."""

    content: Array
    chunks: Shape | None
    blocks: Shape | None
    cparams: dict[str, Any]

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of a constructor."""
        return {"chunks": self.chunks, "blocks": self.blocks, "cparams": self.cparams}


# Contents.


def content(dtype: np.dtype[Any], shape: Shape, kind: str, seed: int) -> Array:
    """Return items of a kind; every item is one that NumPy itself could have made."""
    if kind == "zeros":
        return np.zeros(shape, dtype)
    if kind == "constant":
        return np.full(shape, content(dtype, (1,), "random", seed)[0], dtype)
    if kind == "patches":  # zeros and a little else
        array = content(dtype, shape, "random", seed)
        array[np.random.default_rng(seed).random(shape) < 0.9] = np.zeros((), dtype)
        return array
    if dtype.names:
        whole = np.zeros(shape, dtype)
        for n, name in enumerate(dtype.names):
            inner = dtype[name]
            whole[name] = content(inner.base, (*shape, *inner.shape), kind, seed + n)
        return whole
    return _plain(dtype, shape, kind, np.random.default_rng(seed))


def _plain(dtype: np.dtype[Any], shape: Shape, kind: str, rng: np.random.Generator) -> Array:
    """Return random or counting items of a dtype without fields."""
    nitems = math.prod(shape)
    if dtype.kind == "U":
        letters = rng.integers(32, 0x3000, (nitems, dtype.itemsize // 4))
        return np.array(["".join(map(chr, row)) for row in letters.tolist()], dtype).reshape(shape)
    if kind == "count" and dtype.kind in "iufc":
        return (np.arange(nitems) % 120).astype(dtype).reshape(shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    return np.frombuffer(rng.bytes(nitems * dtype.itemsize), dtype).reshape(shape).copy()


def same(found: object, wanted: Array) -> bool:
    """Return whether `found` is that array: dtype, shape and every bit of every item, padding left out."""
    if not isinstance(found, np.ndarray) or found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    if wanted.dtype.names:
        return all(same(found[name], wanted[name]) for name in wanted.dtype.names)
    return found.tobytes() == wanted.tobytes()


# Shapes and partitions.

MOST_PADDED: Final = 2**20
"""Items of a chunk padded to whole blocks, about."""


@st.composite
def shapes(draw: st.DrawFn, *, least_dims: int = 0, least_side: int = 0) -> Shape:
    """Draw a shape, mostly of some hundred items, sometimes of many dimensions or of none."""
    ndim = draw(st.sampled_from([n for n in (1, 1, 2, 2, 2, 3, 3, 4, 0, 5, 8, 16) if n >= least_dims]))
    most = {0: 1, 1: 300, 2: 40, 3: 13, 4: 7, 5: 5}.get(ndim, 1)
    if ndim > 5:
        sides = [1] * ndim
        for at in draw(st.lists(st.integers(0, ndim - 1), max_size=5)):
            sides[at] = draw(st.integers(1, 3))
        return tuple(sides)
    side = st.one_of(st.integers(max(1, least_side), most), st.integers(least_side, 4))
    return tuple(draw(side) for _ in range(ndim))


@st.composite
def partitions(draw: st.DrawFn, shape: Shape) -> tuple[Shape | None, Shape | None]:
    """Draw chunk and block shapes, each of them possibly left to the package."""
    if draw(st.integers(0, 5)) == 0:
        return None, None
    chunks = tuple(draw(st.one_of(st.integers(1, max(1, n)), st.integers(1, n + 3))) for n in shape)
    if math.prod(2 * c for c in chunks if c > 1) > MOST_PADDED:
        chunks = tuple(min(c, max(1, n)) for c, n in zip(chunks, shape, strict=True))
    chunks = _bounded(shape, chunks)
    if draw(st.integers(0, 7)) == 0:
        return chunks, None
    blocks = tuple(draw(st.integers(1, n)) for n in chunks)
    if draw(st.integers(0, 7)) == 0:
        return None, tuple(min(b, max(n, 1)) for b, n in zip(blocks, shape, strict=True)) if all(shape) else None
    return chunks, blocks


def _bounded(shape: Shape, chunks: Shape) -> Shape:
    """Return chunks that are no more than some hundred."""
    chunks = tuple(chunks)
    while math.prod(-(-n // c) for n, c in zip(shape, chunks, strict=True)) > 200:
        chunks = tuple(min(2 * c, n + 3) for n, c in zip(shape, chunks, strict=True))
    return chunks


@st.composite
def compressions(draw: st.DrawFn, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Draw lossless compression parameters."""
    codec = draw(st.sampled_from(["BLOSCLZ", "LZ4", "ZSTD", "ZLIB"]))
    filters = draw(st.sampled_from([["NOFILTER"], ["SHUFFLE"], ["BITSHUFFLE"], ["SHUFFLE", "BYTEDELTA"]]))
    if not 1 < dtype.itemsize < 256:
        filters = [one for one in filters if one != "BYTEDELTA"]
    return {
        "codec": superchunk.Codec[codec],
        "clevel": draw(st.sampled_from([0, 1, 5, 9])),
        "filters": [superchunk.Filter[one] for one in filters],
        "nthreads": draw(st.sampled_from([1, 1, 2])),
    }


@st.composite
def arrays(
    draw: st.DrawFn, *, dtypes: Sequence[np.dtype[Any]] = DTYPES, least_dims: int = 0, least_side: int = 0
) -> Drawn:
    """Draw an array and how it is cut up and compressed."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(shapes(least_dims=least_dims, least_side=least_side))
    chunks, blocks = draw(partitions(shape))
    array = content(dtype, shape, draw(st.sampled_from(KINDS)), draw(st.integers(0, 1000)))
    return Drawn(content=array, chunks=chunks, blocks=blocks, cparams=draw(compressions(dtype)))


# Index expressions.


def basic_keys(shape: Shape) -> st.SearchStrategy[Any]:
    """Draw integers, slices of any step, Ellipsis and newaxis, alone or in a tuple."""
    return hnp.basic_indices(shape, max_dims=len(shape) + 3, allow_newaxis=True, allow_ellipsis=True)


@st.composite
def positions(draw: st.DrawFn, side: int, shape: Shape | None = None) -> Array:
    """Draw places along a dimension: any order, doubled, negative, rarely one too far."""
    if shape is None:
        shape = draw(st.sampled_from([(), (1,), (3,), (5,), (0,), (2, 3)]))
    if not side:
        shape = (0,)
    far = 1 if draw(st.integers(0, 25)) == 0 else 0
    values = draw(
        st.lists(st.integers(-side - far, max(side - 1 + far, 0)), min_size=math.prod(shape), max_size=math.prod(shape))
    )
    dtype = draw(st.sampled_from(["i8", "i4", "i2"]))
    return np.array(values, dtype).reshape(shape)


@st.composite
def masks(draw: st.DrawFn, shape: Shape) -> Array:
    """Draw a boolean array, full, empty or in between."""
    odds = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    seed = draw(st.integers(0, 1000))
    return np.array(np.random.default_rng(seed).random(shape) < odds)


@st.composite
def fancy_keys(draw: st.DrawFn, shape: Shape) -> Any:
    """Draw an expression with arrays of integers or booleans in it, side by side or anywhere."""
    ndim = len(shape)
    if ndim == 0 or draw(st.integers(0, 12)) == 0:
        return draw(st.sampled_from([True, False, (None, True), np.True_, np.zeros((), bool)]))
    if draw(st.integers(0, 2)) == 0:  # a mask over some dimensions that follow each other
        first = draw(st.integers(0, ndim - 1))
        last = draw(st.integers(first + 1, ndim))
        mask = draw(masks(shape[first:last]))
        before = [draw(st.slices(side)) for side in shape[:first]]
        after = [draw(st.slices(side)) for side in shape[last:]][: draw(st.integers(0, ndim))]
        return (*before, mask, *after) if before or after else mask
    if draw(st.integers(0, 2)) == 0:
        return draw(_scattered_keys(shape))
    first = draw(st.integers(0, ndim - 1))
    last = draw(st.integers(first + 1, ndim))
    common = draw(st.sampled_from([(1,), (3,), (6,), (2, 3), ()]))
    middle = [draw(positions(side, common)) for side in shape[first:last]]
    if draw(st.booleans()) and middle[0].size:
        middle[0] = middle[0].tolist() if middle[0].ndim == 1 else middle[0]
    before = [draw(st.one_of(st.slices(side), st.just(slice(None)))) for side in shape[:first]]
    after = [draw(st.slices(side)) for side in shape[last:]][: draw(st.integers(0, ndim))]
    between = [...] if draw(st.integers(0, 4)) == 0 else []
    first_of_all = [None] if draw(st.integers(0, 6)) == 0 else []
    key = (*first_of_all, *before, *middle, *between, *after)
    return key[0] if len(key) == 1 else key


@st.composite
def _scattered_keys(draw: st.DrawFn, shape: Shape) -> Any:
    """Draw for each dimension an integer, a slice or an array, with newaxis between them now and then."""
    common = draw(st.sampled_from([(1,), (4,), (2, 3), ()]))
    parts: list[Any] = []
    for side in shape:
        if draw(st.integers(0, 9)) == 0 and len(parts) < 14:
            parts.append(None)
        kind = draw(st.sampled_from(["array", "array", "slice", "integer", "narrow"]))
        if kind == "slice":
            parts.append(draw(st.slices(side)))
        elif kind == "integer" and side:
            parts.append(draw(st.integers(-side, side - 1)))
        else:
            parts.append(draw(positions(side, common if kind == "array" else (1,))))
    return tuple(parts)


def keys(shape: Shape) -> st.SearchStrategy[Any]:
    """Draw any index expression, mostly one that is valid."""
    wrong = st.integers(-4, 400) if shape else st.just((0,))
    return st.one_of(basic_keys(shape), basic_keys(shape), fancy_keys(shape), fancy_keys(shape), wrong)


@st.composite
def orthogonal_keys(draw: st.DrawFn, shape: Shape) -> tuple[Any, ...]:
    """Draw a selection for each dimension, to be crossed: lists, masks, slices, integers."""
    selection: list[Any] = []
    for side in shape:
        kind = draw(st.sampled_from(["positions", "positions", "mask", "slice", "integer"]))
        if kind == "positions" or (kind == "integer" and not side):
            selection.append(draw(positions(side, draw(st.sampled_from([(1,), (3,), (5,)])))))
        elif kind == "mask":
            selection.append(draw(masks((side,))))
        elif kind == "slice":
            selection.append(draw(st.slices(side)))
        else:
            selection.append(draw(st.integers(-side, side - 1)))
    return tuple(selection)


def crossed(array: Array, selection: Sequence[Any]) -> tuple[tuple[Array, ...], Shape]:
    """Return what `np.ix_` makes of a selection, and the shape that is left of it: integers drop their dimension."""
    places, shape = [], []
    for side, one in zip(array.shape, selection, strict=True):
        chosen = np.arange(side)[one]
        if chosen.ndim:
            shape.append(chosen.size)
        places.append(np.atleast_1d(chosen).astype(np.intp))
    return np.ix_(*places), tuple(shape)


@st.composite
def values_for(draw: st.DrawFn, dtype: np.dtype[Any], shape: Shape) -> Array:
    """Draw what may be assigned to a selection of that shape: all of it, or something that is broadcast."""
    kind = draw(st.sampled_from(["whole", "whole", "one", "narrow"]))
    if kind == "one":
        shape = ()
    elif kind == "narrow":
        shape = tuple(1 if draw(st.booleans()) else n for n in shape)
        shape = shape[draw(st.integers(0, len(shape))) :] if shape else shape
    return content(dtype, shape, draw(st.sampled_from(KINDS)), draw(st.integers(0, 1000)))


# Expectations.


def outcome(call: Callable[[], Any]) -> tuple[Any, type[Exception] | None]:
    """Return what a call returns, or the class of what it raises."""
    try:
        return call(), None
    except (IndexError, ValueError, TypeError) as error:
        return None, type(error)


def laid_out(array: Array, chunks: Shape, blocks: Shape) -> Iterator[bytes]:
    """Return the content of each chunk, as docs/format/b2nd.md has it: blocks in C order, padding zero."""
    grid = [-(-n // c) for n, c in zip(array.shape, chunks, strict=True)]
    extended = [-(-c // b) * b for c, b in zip(chunks, blocks, strict=True)]
    for place in itertools.product(*map(range, grid)):
        chunk = np.zeros(extended, array.dtype)
        part = array[_box([at * c for at, c in zip(place, chunks, strict=True)], chunks)]
        chunk[_box([0] * len(chunks), part.shape)] = part
        starts = itertools.product(*(range(0, e, b) for e, b in zip(extended, blocks, strict=True)))
        yield b"".join(np.ascontiguousarray(chunk[_box(start, blocks)]).tobytes() for start in starts)


def _box(starts: Sequence[int], lengths: Sequence[int]) -> Any:
    """Return the index of a box; with an Ellipsis, so that without dimensions it is an array all the same."""
    return (..., *(slice(at, at + length) for at, length in zip(starts, lengths, strict=True)))
