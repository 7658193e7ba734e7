"""The super-chunk of an array: whole-chunk calls change its chunks, and never what makes it an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import bare_arrays
import numpy as np
import pytest

import superchunk
from superchunk import NDArray, SChunk, SpecialValue, compress2, stage_chunk
from superchunk._codec.parameters import settings_of
from superchunk._schunk.opening import create_handle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WHOLE = np.arange(8.0)
"""A chunk, padding included."""


def array_of_four(**place: Any) -> tuple[NDArray, np.ndarray[Any, Any]]:
    plain = np.arange(12.0).reshape(3, 4)
    return superchunk.asarray(plain, chunks=(2, 3), blocks=(1, 2), **place), plain


@pytest.mark.parametrize("layer", ["b2nd", "caterva"])
@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.append_data(WHOLE),
        lambda s: s.insert_data(0, WHOLE, copy=True),
        lambda s: s.update_data(0, WHOLE[:7], copy=True),
        lambda s: s.append_chunk(compress2(WHOLE)),
        lambda s: s.insert_chunk(1, compress2(WHOLE)),
        lambda s: s.update_chunk(1, compress2(np.arange(9.0))),
        lambda s: s.delete_chunk(3),
        lambda s: s.append_vlblocks([b"12345678"]),
        lambda s: s.set_slice(WHOLE, start=30, stop=38),
    ],
)
def test_what_would_break_the_array_is_refused(change: Callable[[SChunk], object], layer: str) -> None:
    plain = np.arange(12.0).reshape(3, 4)
    array = bare_arrays.array_over(plain, (2, 3), (1, 2), layer)
    with pytest.raises(ValueError, match=r"of the array|array instead"):
        change(array.schunk)
    assert (array[...] == plain).all()


def test_chunks_that_fit_are_taken() -> None:
    array, _ = array_of_four()
    schunk = array.schunk
    assert schunk.update_data(0, WHOLE, copy=True) == 4
    assert schunk.update_chunk(1, compress2(WHOLE, typesize=8, blocksize=16)) == 4
    assert schunk.update_special(2, SpecialValue.ZERO) == 4
    schunk.reorder_offsets([2, 3, 0, 1])
    schunk[0:2] = np.array([5.0, 6.0])
    assert array[...].tolist() == [[5, 6, 0, 11], [0, 0, 0, 0], [0, 1, 2, 0]]


def test_an_array_may_be_filled_chunk_by_chunk() -> None:
    array, plain = array_of_four()
    empty = SChunk(chunksize=64, cparams={"typesize": 8, "blocksize": 16}, meta={"b2nd": None})
    empty.append_data(WHOLE[:3])  # that layer says nothing
    handle = create_handle(
        superchunk.Storage(), settings_of(array.cparams, 1), 64, {"b2nd": array.meta.raw("b2nd")}, publish=True
    )
    schunk = SChunk.__new__(SChunk)
    schunk._attach(handle, array.cparams, array.dparams)
    with pytest.raises(ValueError, match="expected 64 bytes"):
        schunk.append_data(WHOLE[:7])
    for nchunk in range(4):
        schunk.append_chunk(array.get_chunk(nchunk))
    assert (NDArray(schunk)[...] == plain).all()


def test_staged_chunks_are_held_to_it_as_well(tmp_path: Path) -> None:
    array, plain = array_of_four(urlpath=tmp_path / "a.b2nd", contiguous=False)
    schunk, path = array.schunk, str(tmp_path / "a.b2nd")
    one, two = schunk.reserve_chunk_ids(2)
    with pytest.raises(ValueError, match="the array's resize"):
        schunk.append_staged([stage_chunk(path, one, WHOLE)])
    with pytest.raises(ValueError, match="expected 64 bytes"):
        schunk.replace_staged(0, stage_chunk(path, two, WHOLE[:2]))
    assert (array[...] == plain).all()


def test_chunks_that_a_slice_of_a_field_touches() -> None:
    items = np.zeros((25, 7), [("x", "i4"), ("v", "f4", (2, 3))])
    a = superchunk.asarray(items, chunks=(10, 4), blocks=(5, 4))
    keys: tuple[Any, ...] = (slice(None), 3, (slice(12, 21), 5), (..., 6), (slice(3, 3), 0))
    for key in keys:
        want = superchunk.get_slice_nchunks(a, key).tolist()
        assert superchunk.get_slice_nchunks(a["x"], key).tolist() == want
    pairs: tuple[tuple[Any, Any], ...] = (
        (slice(None), slice(None)),
        ((slice(12, 21), 5), (slice(12, 21), 5)),
        ((slice(12, 21), 5, 1, 2), (slice(12, 21), 5)),
        ((..., slice(1, 2)), ...),
        ((slice(0, 3), slice(0, 3), slice(0, 1)), (slice(0, 3), slice(0, 3))),
    )
    for key, outer in pairs:
        want = superchunk.get_slice_nchunks(a, outer).tolist()
        assert superchunk.get_slice_nchunks(a["v"], key).tolist() == want
    assert not superchunk.get_slice_nchunks(a["v"], (slice(0, 3), 0, slice(1, 1))).size
    with pytest.raises(IndexError):
        superchunk.get_slice_nchunks(a["v"], (0, 0, 2))
