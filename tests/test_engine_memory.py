"""Memory at the boundary of the engine: overlapping buffers, results of less than the room, cycles through filters."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk
from superchunk import _engine

if TYPE_CHECKING:
    from numpy.typing import NDArray as NumpyArray

RNG = np.random.default_rng(5)
PLAIN = RNG.integers(0, 40, 300_000, dtype="u2").tobytes()


@pytest.mark.parametrize("codec", [0, 1, 4, 5])
@pytest.mark.parametrize("shift", [0, 1, 5000, 200_000])
def test_a_chunk_within_its_own_destination_decodes_as_elsewhere(codec: int, shift: int) -> None:
    chunk = _engine.compress(PLAIN, _engine.EncodeParams(codec=codec, typesize=2, clevel=5))
    room = bytearray(max(len(PLAIN), shift + len(chunk)))
    room[shift : shift + len(chunk)] = chunk
    view = memoryview(room)
    superchunk.decompress2(view[shift : shift + len(chunk)], dst=view[: len(PLAIN)])
    assert room[: len(PLAIN)] == PLAIN


def test_a_chunk_of_stored_bytes_within_its_own_destination_decodes_as_elsewhere() -> None:
    plain = RNG.bytes(5000)
    chunk = _engine.compress(plain, _engine.EncodeParams(clevel=0))
    room = bytearray(chunk)
    view = memoryview(room)
    _engine.read([(view, -1, 0, len(plain), 0)], view[: len(plain)])
    assert room[: len(plain)] == plain


def test_boxes_and_points_are_read_from_chunks_within_their_destination() -> None:
    items = RNG.integers(0, 99, (64, 64), dtype="u2")
    geometry = _engine.Geometry([64, 64], [16, 64], 2)
    params = _engine.EncodeParams(typesize=2, blocksize=2048)
    chunk = _engine.pack(geometry, params, items, 0, items.strides, items.shape)
    for shift in (0, 100, items.nbytes - len(chunk)):
        room = bytearray(items.nbytes)
        room[shift : shift + len(chunk)] = chunk
        view = memoryview(room)
        _engine.read_box(geometry, [view[shift:]], [(0, 64, 1), (0, 64, 1)], view)
        assert room == items.tobytes()
        room[shift : shift + len(chunk)] = chunk
        positions = np.arange(64 * 64)[::-1].copy()
        _engine.read_points(geometry, [view[shift:]], np.zeros(64 * 64, dtype=np.int64), positions, view)
        assert room == items.ravel()[::-1].tobytes()


@pytest.mark.parametrize("nbytes", [0, 1, 31, 32, 1000, 1 << 20])
@pytest.mark.parametrize("blosc1", [False, True])
def test_a_chunk_has_the_bytes_that_it_says_and_no_more(nbytes: int, blosc1: bool) -> None:  # noqa: FBT001
    for plain in (bytes(nbytes), RNG.bytes(nbytes), PLAIN[:nbytes]):
        for clevel in (0, 1, 5):
            chunk = _engine.compress(plain, _engine.EncodeParams(clevel=clevel, blosc1=blosc1))
            assert type(chunk) is bytes
            assert len(chunk) == _engine.describe(chunk).cbytes
            assert len(chunk) <= len(plain) + (16 if blosc1 else 32)
            assert _engine.decompress(chunk) == plain


class Both:
    """A codec and a filter that hold what holds them."""

    def __init__(self) -> None:
        self.held: Any = None

    def __call__(self, src: memoryview, dst: memoryview, _meta: int) -> int:
        dst[: len(src)] = src
        return 0


def test_a_cycle_through_codecs_and_filters_of_the_user_is_collected() -> None:
    for kind in ("codecs", "filters"):
        both = Both()
        pairs: dict[int, tuple[Any, Any]] = {200: (both, both)}
        hooks = _engine.Hooks(pairs, {}) if kind == "codecs" else _engine.Hooks({}, pairs)
        both.held = _engine.EncodeParams(codec=200 if kind == "codecs" else 1, hooks=hooks)
        gone = weakref.ref(both)
        assert gc.is_tracked(hooks)
        assert gc.is_tracked(both.held)
        del both, pairs, hooks
        gc.collect()
        assert gone() is None, kind


@pytest.mark.parametrize("kind", ["prefilter", "postfilter"])
def test_a_cycle_through_a_filter_of_a_super_chunk_is_collected(kind: str) -> None:
    schunk: Any = superchunk.SChunk(data=bytes(8000), chunksize=4000, cparams=superchunk.CParams(nthreads=1))
    schunk.dparams = superchunk.DParams(nthreads=1)

    def function(source: NumpyArray[Any], target: NumpyArray[Any], _offset: int) -> None:
        target[:] = source

    vars(function)["held"] = schunk
    getattr(schunk, kind)(np.dtype("u1"))(function)
    gone = weakref.ref(schunk)
    del schunk, function
    gc.collect()
    assert gone() is None
