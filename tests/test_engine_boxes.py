"""Selections of n-dimensional arrays through the engine, against NumPy."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superchunk import _engine
from superchunk.exceptions import FormatError, MissingFileError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from superchunk._engine import Source

    Positions = tuple[int, int, int] | np.ndarray[Any, np.dtype[np.int64]]

DTYPES = ["u1", "<i2", "<f4", "<i8", "<c16", "S5", "V300"]


def params(geometry: _engine.Geometry, itemsize: int, **keywords: Any) -> _engine.EncodeParams:
    return _engine.EncodeParams(typesize=itemsize, blocksize=geometry.block_nbytes, **keywords)


def chunks_of(
    array: np.ndarray[Any, Any], chunks: Sequence[int], geometry: _engine.Geometry, how: _engine.EncodeParams
) -> dict[tuple[int, ...], bytes]:
    """Pack every chunk of an array straight from its memory, by chunk coordinate."""
    lowest = sum(min(0, (n - 1) * step) for n, step in zip(array.shape, array.strides, strict=True))
    packed = {}
    for at in product(*(range(-(-n // c)) for n, c in zip(array.shape, chunks, strict=True))):
        start = [x * c for x, c in zip(at, chunks, strict=True)]
        extent = [min(c, n - s) for c, n, s in zip(chunks, array.shape, start, strict=True)]
        offset = -lowest + sum(s * step for s, step in zip(start, array.strides, strict=True))
        packed[at] = _engine.pack(geometry, how, array, offset, array.strides, extent)
    return packed


def positions(pick: Positions) -> list[int]:
    return list(range(*pick)) if isinstance(pick, tuple) else [int(n) for n in pick]


def selected(
    packed: Mapping[tuple[int, ...], Source],
    chunks: Sequence[int],
    geometry: _engine.Geometry,
    box: Sequence[Positions],
    dtype: np.dtype[Any],
    **keywords: Any,
) -> np.ndarray[Any, Any]:
    wanted = [positions(pick) for pick in box]
    out = np.empty([len(one) for one in wanted], dtype)
    met = [sorted({x // c for x in one}) for one, c in zip(wanted, chunks, strict=True)]
    _engine.read_box(geometry, [packed[at] for at in product(*met)], box, out, **keywords)
    return out


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], list[int], list[int], list[Positions]]:
    ndim = draw(st.integers(0, 4))
    most = (1, 500, 40, 12, 7)[ndim]
    shape = [draw(st.integers(1, most)) for _ in range(ndim)]
    chunks = [draw(st.integers(1, most)) for _ in range(ndim)]
    blocks = [draw(st.integers(1, c)) for c in chunks]
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    noise = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 9, (math.prod(shape), dtype.itemsize), np.uint8)
    array = noise.view(dtype).reshape(shape)
    if ndim and draw(st.booleans()):
        array = np.asfortranarray(array)
    if ndim and draw(st.booleans()):
        array = array[::-1]
    if ndim and draw(st.booleans()):
        array = np.repeat(array, 3, axis=-1)[..., ::3]
    box: list[Positions] = []
    for n in shape:
        if draw(st.booleans()):
            box.append((draw(st.integers(0, n)), draw(st.integers(0, n)), draw(st.integers(1, n + 1))))
        else:
            box.append(np.array(sorted(draw(st.lists(st.integers(0, n - 1), max_size=6))), np.int64))
    return array, chunks, blocks, box


@settings(max_examples=150, deadline=None)
@given(case=cases(), nthreads=st.integers(1, 3), codec=st.sampled_from([0, 1, 4, 5]), clevel=st.sampled_from([0, 1, 5]))
def test_any_selection_is_numpys(
    case: tuple[np.ndarray[Any, Any], list[int], list[int], list[Positions]], nthreads: int, codec: int, clevel: int
) -> None:
    array, chunks, blocks, box = case
    geometry = _engine.Geometry(chunks, blocks, array.itemsize)
    how = params(geometry, array.itemsize, codec=codec, clevel=clevel, nthreads=nthreads)
    packed = chunks_of(array, chunks, geometry, how)
    found = selected(packed, chunks, geometry, box, array.dtype, nthreads=nthreads)
    expected = array[np.ix_(*[positions(pick) for pick in box])] if box else array
    assert found.tobytes() == expected.tobytes()


def model(itemsize: int = 8) -> tuple[np.ndarray[Any, Any], _engine.Geometry, dict[tuple[int, ...], bytes]]:
    array = np.arange(100 * 90, dtype=f"<i{itemsize}").reshape(100, 90)
    geometry = _engine.Geometry([40, 50], [16, 32], itemsize)
    return array, geometry, chunks_of(array, (40, 50), geometry, params(geometry, itemsize))


@pytest.mark.parametrize("nthreads", [1, 2, 4])
def test_files_are_read_like_memory(tmp_path: Path, nthreads: int) -> None:
    array, geometry, packed = model()
    path = tmp_path / "chunks"
    offsets = {}
    content = b"front"
    for at, chunk in packed.items():
        offsets[at] = (len(content), len(chunk))
        content += chunk
    path.write_bytes(content)
    box = [(3, 99, 7), (0, 90, 1)]
    with path.open("rb") as file:
        opened = {at: (file.fileno(), *where) for at, where in offsets.items()}
        found = selected(opened, (40, 50), geometry, box, array.dtype, nthreads=nthreads)
        assert np.array_equal(found, array[3:99:7])
        lone = selected(opened, (40, 50), geometry, [(77, 78, 1), (88, 89, 1)], array.dtype, nthreads=nthreads)
        assert lone[0, 0] == array[77, 88]
    named = {at: (str(path), *where) for at, where in offsets.items()}
    assert np.array_equal(selected(named, (40, 50), geometry, box, array.dtype, nthreads=nthreads), array[3:99:7])


def test_work_for_several_threads_is_read_like_that_for_one() -> None:
    array = np.arange(1100 * 700).reshape(1100, 700) ** 2
    for chunks, blocks in (((512, 512), (64, 64)), ((1000, 700), (10, 700)), ((64, 64), (64, 16)), ((1100, 3), (1, 3))):
        geometry = _engine.Geometry(chunks, blocks, 8)
        packed = chunks_of(array, chunks, geometry, params(geometry, 8, codec=1, nthreads=2))
        for nthreads in (1, 2, 5):
            for rows, columns in ((slice(0, 1100, 1), slice(0, 700, 1)), (slice(3, 1099, 2), slice(5, 700, 3))):
                box = [(rows.start, rows.stop, rows.step), (columns.start, columns.stop, columns.step)]
                found = selected(packed, chunks, geometry, box, array.dtype, nthreads=nthreads)
                assert np.array_equal(found, array[rows, columns])


def test_padding_of_a_packed_chunk_is_zero() -> None:
    geometry = _engine.Geometry([3, 4], [2, 3], 4)
    ones = np.ones((3, 4), "<i4")
    chunk = _engine.pack(geometry, params(geometry, 4), ones, 0, ones.strides, [3, 4])
    content = np.frombuffer(_engine.decompress(chunk), "<i4").reshape(2, 2, 2, 3)
    assert content.transpose(0, 2, 1, 3).reshape(4, 6).tolist() == [[1, 1, 1, 1, 0, 0]] * 3 + [[0] * 6]
    part = _engine.pack(geometry, params(geometry, 4), ones, 0, ones.strides, [2, 1])
    content = np.frombuffer(_engine.decompress(part), "<i4").reshape(2, 2, 2, 3)
    assert content.transpose(0, 2, 1, 3).reshape(4, 6).tolist() == [[1, 0, 0, 0, 0, 0]] * 2 + [[0] * 6] * 2


def test_a_chunk_of_zeros_is_a_special_one() -> None:
    geometry = _engine.Geometry([64, 64], [16, 16], 8)
    zeros = np.zeros((64, 64))
    chunk = _engine.pack(geometry, params(geometry, 8), zeros, 0, zeros.strides, [60, 64])
    assert (_engine.describe(chunk).special, len(chunk)) == (1, 32)
    assert _engine.pack(geometry, params(geometry, 8), b"", 0, [0, 0], [0, 64]) == chunk


def test_values_are_broadcast_by_strides_of_zero() -> None:
    geometry = _engine.Geometry([8, 8], [4, 4], 2)
    value = np.array(0x0102, "<u2")
    chunk = _engine.pack(geometry, params(geometry, 2), value, 0, [0, 0], [8, 8])
    assert _engine.decompress(chunk) == value.tobytes() * 64


@pytest.mark.parametrize("nthreads", [1, 3])
def test_points_are_read_in_any_order(nthreads: int) -> None:
    array, geometry, packed = model(4)
    rng = np.random.default_rng(1)
    rows, columns = rng.integers(0, 100, 500), rng.integers(0, 90, 500)
    nsource = (rows // 40) * 2 + columns // 50
    row, column = rows % 40, columns % 50
    position = ((row // 16) * 2 + column // 32) * 512 + (row % 16) * 32 + column % 32
    out = np.empty(500, "<i4")
    _engine.read_points(geometry, list(packed.values()), nsource, position, out, nthreads=nthreads)
    assert np.array_equal(out, array[rows, columns])


def test_errors_name_the_source(tmp_path: Path) -> None:
    array, geometry, packed = model()
    sources: list[Source] = list(packed.values())
    box = [(0, 100, 1), (0, 90, 1)]
    out = np.empty_like(array)
    other = _engine.Geometry([40, 51], [16, 32], 8)
    longer = chunks_of(np.ones((40, 80)), (40, 80), wide := _engine.Geometry([40, 80], [16, 32], 8), params(wide, 8))
    three, five = np.array([3, 0]), np.array([5, 5])
    for nthreads in (1, 2, 8):
        for broken, error in ((sources[3][:99], FormatError), ((str(tmp_path / "no"), 0, 99), MissingFileError)):  # type: ignore[index]
            with pytest.raises(error) as caught:
                _engine.read_box(geometry, [*sources[:3], broken, *sources[4:]], box, out, nthreads=nthreads)
            assert caught.value.nrequest == 3  # type: ignore[attr-defined]
            with pytest.raises(error) as caught:
                _engine.read_points(geometry, [*sources[:3], broken], three, five, out[0, :2], nthreads=nthreads)
            assert caught.value.nrequest == 3  # type: ignore[attr-defined]
        with pytest.raises(FormatError, match="nbytes at byte 4: expected 24576, as the container says") as caught:
            _engine.read_box(geometry, [sources[0], longer[0, 0], *sources[2:]], box, out, nthreads=nthreads)
        assert caught.value.nrequest == 1  # type: ignore[attr-defined]
    assert other.chunk_nbytes == geometry.chunk_nbytes


def test_arguments_are_checked() -> None:
    array, geometry, packed = model()
    sources = list(packed.values())[:1]
    out = np.empty((1, 2), "<i8")
    one = (0, 1, 1)
    for box, message in (
        ([one], "box: expected 2 dimensions, got 1"),
        ([one, (0, 2, -1)], "box: expected a step of at least 1 in dimension 1, got -1"),
        ([one, np.array([1, 0])], "box: expected ascending positions in dimension 1, after 1, got 0"),
        ([one, b"123"], "box: expected 64-bit integers, got 3 bytes"),
        ([one, (0, 3, 1)], "destination: need 24 bytes, got 16"),
        ([one, np.array([0, 50])], "sources: expected the 2 chunks that the box intersects, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            _engine.read_box(geometry, sources, box, out)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="C-contiguous"):
        _engine.read_box(geometry, sources, [one, (0, 2, 1)], np.empty((1, 4), "<i8")[:, ::2])
    with pytest.raises(BufferError, match="read-only"):
        _engine.read_box(geometry, sources, [one, (0, 2, 1)], bytes(16))
    with pytest.raises(ValueError, match="strides: expected items within the 72000 bytes of src, got 72003"):
        _engine.pack(geometry, params(geometry, 8), array, 71996, array.strides, [1, 1])
    with pytest.raises(ValueError, match="blocks: expected 1 to 40 in dimension 0, got 41"):
        _engine.Geometry([40, 50], [41, 32], 8)


def test_codecs_of_the_user_work_on_one_thread() -> None:
    def encode(src: memoryview, dst: memoryview, meta: int) -> int:
        plain = bytes(src)
        packed = np.frombuffer(plain, "<i8").astype("<i2").tobytes()
        if len(packed) > len(dst) or meta != 7:
            return 0
        dst[: len(packed)] = packed
        return len(packed)

    def decode(src: memoryview, dst: memoryview, _meta: int) -> int:
        dst[:] = np.frombuffer(bytes(src), "<i2").astype("<i8").tobytes()
        return len(dst)

    hooks = _engine.Hooks({200: (encode, decode)}, {})
    array = np.arange(100 * 90).reshape(100, 90)
    geometry = _engine.Geometry([40, 50], [16, 32], 8)
    how = params(geometry, 8, codec=200, codec_meta=7, filters=bytes(6), hooks=hooks)
    packed = chunks_of(array, (40, 50), geometry, how)
    assert _engine.describe(packed[0, 0]).codec == 200
    found = selected(packed, (40, 50), geometry, [(0, 100, 3), (1, 90, 1)], array.dtype, nthreads=4, hooks=hooks)
    assert np.array_equal(found, array[::3, 1:])

    def broken(_src: memoryview, _dst: memoryview, _meta: int) -> int:
        raise ZeroDivisionError

    hooks = _engine.Hooks({200: (encode, broken)}, {})
    with pytest.raises(ZeroDivisionError) as caught:
        selected(packed, (40, 50), geometry, [(50, 51, 1), (1, 3, 1)], array.dtype, hooks=hooks)
    assert caught.value.nrequest == 0  # type: ignore[attr-defined]
