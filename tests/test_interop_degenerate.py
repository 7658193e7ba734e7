"""Arrays of odd shapes between both packages: of no items, in chunks larger than they are, of the older layer.

Each side makes them, and the other changes their shape; what we grow is zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import bare_arrays
import numpy as np
import pytest
from oracle import blosc2

import superchunk
from superchunk import NDArray
from superchunk._codec.parameters import settings_of
from superchunk._format.b2nd import ArrayLayout
from superchunk._schunk.opening import create_handle

if TYPE_CHECKING:
    from pathlib import Path

ODD = [
    ((0,), (5,), (2,), (7,)),
    ((0,), (5,), (5,), (0,)),
    ((3,), (10,), (4,), (12,)),
    ((3,), (10,), (4,), (0,)),
    ((0, 4), (2, 3), (1, 3), (3, 4)),
    ((3, 0, 2), (2, 4, 5), (2, 1, 5), (3, 5, 2)),
    ((2, 3), (7, 9), (3, 4), (1, 14)),
    ((1, 1), (1, 1), (1, 1), (3, 2)),
    ((5, 4), (2, 3), (2, 2), (0, 4)),
]
"""Shape, chunks, blocks, and the shape that it is given."""


def resized(plain: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    new = np.zeros(shape, plain.dtype)
    common = tuple(slice(0, min(pair)) for pair in zip(plain.shape, shape, strict=True))
    new[common] = plain[common]
    return new


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])
@pytest.mark.parametrize(("shape", "chunks", "blocks", "wanted"), ODD, ids=str)
def test_each_side_resizes_what_the_other_made(
    tmp_path: Path,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    blocks: tuple[int, ...],
    wanted: tuple[int, ...],
    *,
    contiguous: bool,
) -> None:
    plain = np.arange(np.prod(shape), dtype="<i4").reshape(shape) + 1
    place = {"chunks": chunks, "blocks": blocks, "mode": "w", "contiguous": contiguous}
    ours, theirs = str(tmp_path / "ours.b2nd"), str(tmp_path / "theirs.b2nd")
    superchunk.asarray(plain, urlpath=ours, **place).close()  # type: ignore[arg-type]
    made = blosc2.asarray(plain, urlpath=theirs, **place)
    assert made.shape == shape
    del made

    peer = blosc2.open(ours, mode="a")
    peer.resize(wanted)
    assert (peer[...] == resized(plain, wanted)).all()
    del peer
    for path in (ours, theirs):
        with superchunk.open(path, mode="a") as array:
            assert isinstance(array, NDArray)
            if path == theirs:
                array.resize(wanted)
            assert (array.shape, array.chunks, array.blocks) == (wanted, chunks, blocks)
            assert (array[...] == resized(plain, wanted)).all()
            array[...] = 9
            array.resize(shape)
        peer = blosc2.open(path, mode="r")
        expected = resized(np.full(wanted, 9, "<i4"), shape)
        assert (peer.shape, peer.chunks, peer.blocks) == (shape, chunks, blocks)
        assert (peer[...] == expected).all()
        del peer
        assert superchunk.verify(path, decode=True).status != "damaged"


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])
def test_an_array_of_the_older_layer_changes_as_any_other(tmp_path: Path, *, contiguous: bool) -> None:
    plain = np.arange(60.0).reshape(6, 10)
    path = tmp_path / "old.b2nd"
    bare_arrays.array_over(plain, (4, 4), (2, 3), "caterva", urlpath=path, contiguous=contiguous).close()
    with superchunk.open(path, mode="a") as array:
        assert isinstance(array, NDArray)
        array.append(plain[:2])
        array[1, ::3] = -1
        array.resize((9, 7))
        array.vlmeta["note"] = "old"
    wanted = np.concatenate([plain, plain[:2]])
    wanted[1, ::3] = -1
    wanted = resized(wanted, (9, 7))
    with superchunk.open(path) as array:
        assert list(array.meta) == ["caterva"]
        assert (array[...] == wanted).all()
        assert (array.copy()[...] == wanted).all()
        assert (superchunk.from_cframe(array.to_cframe())[...] == wanted).all()
    assert superchunk.verify(path, decode=True).status != "damaged"
    peer = blosc2.open(str(path), mode="r")
    assert b"".join(peer.decompress_chunk(n) for n in range(peer.nchunks)) == superchunk.open(path).schunk[:]


def test_the_first_layers_have_no_dtype(tmp_path: Path) -> None:
    layout = ArrayLayout((4, 5), (2, 3), (1, 2))
    params = superchunk.CParams(typesize=8, blocksize=16)
    place = superchunk.Storage(urlpath=tmp_path / "old.b2nd")
    store = create_handle(place, settings_of(params, 1), 64, {"caterva": layout.to_bytes()}, publish=True).store
    store.fill_special(1, 4 * 64, None)
    store.close()
    array = superchunk.open(tmp_path / "old.b2nd", mode="a")
    assert isinstance(array, NDArray)
    assert array.dtype == np.dtype("S8")
    array[1] = b"text"
    assert array[1].tolist() == [b"text"] * 5
    assert array.copy().meta["b2nd"][6] is not None
    array.close()
