"""Frames that python-blosc2 must be able to open, read and go on with: repeated items, and numbers of filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import oracle
import pytest

import superchunk
from superchunk import CParams, Filter, SChunk, SpecialValue, _engine
from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

blosc2 = oracle.blosc2


def noise(nbytes: int) -> bytes:
    return np.random.default_rng(5).integers(0, 256, nbytes, dtype="u1").tobytes()


FIRST: dict[str, Callable[[SChunk, int], object]] = {
    "zeros appended": lambda s, size: (s.append_data(bytes(10 * size)), s.append_data(noise(2 * size))),
    "zeros that are no whole items": lambda s, size: (
        s.append_data(bytes(10 * size + size // 2)),
        s.append_data(noise(2 * size)),
    ),
    "a few zeros": lambda s, size: (s.append_data(bytes(3)), s.append_data(noise(2 * size))),
    "zeros in the second place": lambda s, size: (s.append_data(noise(2 * size)), s.append_data(bytes(10 * size))),
    "zeros after a delete": lambda s, size: (
        s.append_data(noise(2 * size)),
        s.append_data(bytes(10 * size)),
        s.append_data(noise(size)),
        s.delete_chunk(0),
    ),
    "update_special": lambda s, size: (
        s.append_data(noise(10 * size)),
        s.append_data(noise(2 * size)),
        s.update_special(0, SpecialValue.ZERO),
    ),
    "uninitialised": lambda s, size: (
        s.append_data(noise(10 * size)),
        s.append_data(noise(2 * size)),
        s.update_special(0, SpecialValue.UNINIT),
    ),
    "a repeated item": lambda s, size: (
        s.append_data(noise(10 * size)),
        s.append_data(noise(2 * size)),
        s.update_special(0, SpecialValue.VALUE, noise(size)),
    ),
    "a repeated byte from outside": lambda s, size: (
        s.append_chunk(_engine.special_chunk(3, 10 * size, 1, b"a")),
        s.append_data(noise(2 * size)),
    ),
    "a wide repeated item from outside": lambda s, size: (
        s.append_chunk(_engine.special_chunk(3, 40 * size, 4 * size, noise(4 * size))),
        s.append_data(noise(2 * size)),
    ),
    "NaN of another size": lambda s, size: (
        s.append_chunk(_engine.special_chunk(2, 16 * size, 4)),
        s.append_data(noise(2 * size)),
    ),
}


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("chunksize", ["any", "ten items"])
@pytest.mark.parametrize("typesize", [1, 8, 255, 256, 300])
@pytest.mark.parametrize("first", FIRST)
def test_a_repeated_item_anywhere_is_opened_by_python_blosc2(
    tmp_path: Path, first: str, typesize: int, chunksize: str, *, contiguous: bool
) -> None:
    path = str(tmp_path / "a.b2frame")
    size = -1 if chunksize == "any" else 10 * typesize
    with SChunk(chunksize=size, urlpath=path, contiguous=contiguous, cparams=CParams(typesize=typesize)) as s:
        FIRST[first](s, typesize)
        want = [s.decompress_chunk(n) for n in range(s.nchunks)]
        cframe = s.to_cframe()
    for peer in (blosc2.open(path), blosc2.schunk_from_cframe(cframe)):
        if first != "uninitialised":  # of which it returns whatever the memory held
            assert [peer.decompress_chunk(n) for n in range(peer.nchunks)] == want
        assert all(peer.get_lazychunk(n) for n in range(peer.nchunks))
    peer = blosc2.open(path, mode="a")
    peer.append_data(noise(3 * typesize))
    del peer
    with superchunk.open(path) as s:
        assert [s.decompress_chunk(n) for n in range(s.nchunks)] == [*want, noise(3 * typesize)]
        assert s.copy(cparams=CParams(typesize=typesize, clevel=1))[:] == s[:]


@pytest.mark.parametrize("nbytes", [1, 7, 8, 40, 100, 2**15, 2**20 + 1, 2**25])
def test_zeros_in_blocks_are_zeros_to_everybody(nbytes: int) -> None:
    chunk = _engine.zeros_in_blocks(nbytes, 4)
    assert _engine.describe(chunk).special == 0
    assert len(chunk) <= 32 + min(nbytes, max(8, nbytes // 100))
    assert _engine.decompress(chunk) == bytes(nbytes) == oracle.decompress(chunk)


METAS: dict[str, tuple[int, Filter, int]] = {
    "bytedelta, 128 bytes": (128, Filter.BYTEDELTA, 0),
    "bytedelta, 200 bytes": (200, Filter.BYTEDELTA, 200),
    "bytedelta, a prime": (251, Filter.BYTEDELTA, 0),
    "bytedelta, 255 bytes": (255, Filter.BYTEDELTA, 0),
    "bytedelta, wider": (300, Filter.BYTEDELTA, 0),
    "shuffle by the typesize": (200, Filter.SHUFFLE, 200),
    "bits of a float dropped": (4, Filter.TRUNC_PREC, -5),
    "bits of a double dropped": (8, Filter.TRUNC_PREC, 256 - 30),
    "bits of an integer dropped": (8, Filter.INT_TRUNC, -60),
    "bits of a byte dropped": (1, Filter.INT_TRUNC, -2),
}


@pytest.mark.parametrize("name", METAS)
def test_every_number_of_a_filter_that_is_recorded_is_opened_by_python_blosc2(tmp_path: Path, name: str) -> None:
    typesize, choice, meta = METAS[name]
    path, copied = str(tmp_path / "a.b2frame"), str(tmp_path / "b.b2frame")
    filters, metas = [choice], [meta]
    if choice is Filter.BYTEDELTA:
        filters, metas = [Filter.SHUFFLE, choice], [0, meta]
    way = CParams(typesize=typesize, filters=filters, filters_meta=metas)
    data = np.cumsum(np.random.default_rng(1).integers(0, 3, 10 * typesize)).astype("f4").tobytes()
    with SChunk(chunksize=20 * typesize, urlpath=path, cparams=way) as s:
        s.append_data(data[: 20 * typesize])
        want = s.decompress_chunk(0)
        s.copy(urlpath=copied).close()
        assert max(s.cparams.filters_meta) < 128
    for where in (path, copied):
        peer = blosc2.open(where, mode="a")
        assert peer.decompress_chunk(0) == want
        peer.append_data(data[20 * typesize : 40 * typesize])
        del peer
        with superchunk.open(where) as s:
            assert s.nchunks == 2
            if not name.startswith("bits"):
                assert s.decompress_chunk(1) == data[20 * typesize : 40 * typesize]


def test_dropped_bits_are_those_that_were_asked_for() -> None:
    numbers = np.random.default_rng(2).normal(size=1000).astype("f4")
    s = SChunk(data=numbers, cparams=CParams(typesize=4, filters=[Filter.TRUNC_PREC], filters_meta=[-5]))
    assert s[:] == (numbers.view("u4") & np.uint32(~31 & 0xFFFFFFFF)).tobytes()


def test_arrays_of_wide_items_are_opened_by_python_blosc2(tmp_path: Path) -> None:
    records = np.zeros(50, [("a", "S160"), ("b", "f8")])
    records["b"] = np.arange(50)
    way: Any = {"filters": [Filter.SHUFFLE, Filter.BYTEDELTA]}
    superchunk.asarray(records, urlpath=str(tmp_path / "a.b2nd"), cparams=way).close()
    assert np.array_equal(blosc2.open(str(tmp_path / "a.b2nd"))[:], records)


def test_a_frame_of_before_with_a_larger_number_is_read_and_its_copy_opened(tmp_path: Path) -> None:
    path, copied = tmp_path / "a.b2frame", str(tmp_path / "b.b2frame")
    way = CParams(typesize=200, filters=[Filter.SHUFFLE, Filter.BYTEDELTA])
    with SChunk(chunksize=2000, urlpath=str(path), cparams=way, seal=False) as s:
        s.append_data(bytes(range(250)) * 8)
        want = s[:]
    raw = bytearray(path.read_bytes())
    assert raw[0x4F + 1] == 100
    raw[0x4F + 1] = 200  # as it was written until now
    path.write_bytes(raw)
    with pytest.raises(OverflowError):
        _ = blosc2.open(str(path))
    with superchunk.open(path) as s:
        assert s[:] == want
        s.copy(urlpath=copied).close()
    assert blosc2.open(copied).decompress_chunk(0) == want


def test_other_numbers_over_127_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.b2frame"
    with pytest.raises(ArgumentError, match=r"filters_meta\[0\].*python-blosc2"):
        SChunk(urlpath=path, cparams=CParams(typesize=4, filters=[Filter.SHUFFLE], filters_meta=[200]))
    assert not path.exists()


def test_a_chunk_size_over_what_a_chunk_holds_is_refused(tmp_path: Path) -> None:
    largest = superchunk.MAX_BUFFERSIZE
    for wrong in (2**31, 2**31 - 1, largest + 1, 0, -2):
        with pytest.raises(ArgumentError, match="chunksize"):
            SChunk(chunksize=wrong, urlpath=tmp_path / "a.b2frame")
    for other in (1.5, "x"):
        with pytest.raises(TypeError, match="chunksize"):
            SChunk(chunksize=other)  # type: ignore[arg-type]
    with SChunk(chunksize=largest, urlpath=tmp_path / "a.b2frame") as s:
        s.fill_special(2**31 + 5, SpecialValue.ZERO)
    peer = blosc2.open(str(tmp_path / "a.b2frame"))
    assert (peer.nbytes, peer[2**31 : 2**31 + 2]) == (2**31 + 5, b"\0\0")
