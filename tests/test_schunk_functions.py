"""Promises of prefilters, postfilters, fillers, and codecs and filters written in Python."""

from __future__ import annotations

import copy
import gc
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest

import superchunk
from superchunk import CParams, SChunk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray


ONE: dict[str, Any] = {"cparams": {"typesize": 8, "nthreads": 1, "blocksize": 240}, "dparams": {"nthreads": 1}}
Array: TypeAlias = "NDArray[Any]"


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Begin and end with empty registries."""
    registered = (
        superchunk.ucodecs_registry,
        superchunk.ufilters_registry,
        superchunk.prefilter_funcs,
        superchunk.postfilter_funcs,
    )
    for registry in registered:
        registry.clear()
    yield
    for registry in registered:
        registry.clear()


def test_a_prefilter_sees_every_block_with_the_number_of_its_first_item() -> None:
    s = SChunk(800, **ONE)
    seen: list[tuple[int, int, int]] = []

    @s.prefilter(np.int64, np.float64)
    def halve(input: Array, output: Array, offset: int) -> None:  # noqa: A002  (its name in the docs)
        seen.append((int(input[0]), len(input), offset))
        output[:] = input * 0.5

    assert superchunk.prefilter_funcs == {"halve": halve}
    s.append_data(np.arange(100))
    s.append_data(np.arange(100, 200))
    assert seen == [
        (start, min(30, 100 - start % 100), start) for base in (0, 100) for start in range(base, base + 100, 30)
    ]
    assert np.frombuffer(s[:]).tolist() == (np.arange(200) * 0.5).tolist()
    s.remove_prefilter("halve")
    assert superchunk.prefilter_funcs == {}
    s.append_data(np.arange(100))
    assert np.frombuffer(s[200:], np.int64).tolist() == list(range(100))
    assert callable(halve)


def test_a_prefilter_leaves_old_items_alone_when_a_slice_is_assigned() -> None:
    s = SChunk(800, np.arange(200), **ONE)

    @s.prefilter(np.int64)
    def negate(input: Array, output: Array, offset: int) -> None:  # noqa: A002, ARG001
        output[:] = -input

    s[50:250] = np.arange(50, 250)
    s.remove_prefilter("negate")
    assert np.frombuffer(s[:], np.int64).tolist() == [*range(50), *range(-50, -250, -1)]


def test_functions_need_one_thread_and_dtypes_of_one_size() -> None:
    s = SChunk(cparams={"nthreads": 2}, dparams={"nthreads": 2})
    with pytest.raises(AttributeError, match="nthreads"):
        s.prefilter(np.int8)
    with pytest.raises(ValueError, match="nthreads"):
        s.postfilter(np.int8)
    s = SChunk(**ONE)
    for decorator in (s.prefilter, s.postfilter):
        with pytest.raises(ValueError, match="item size"):
            decorator(np.int64, np.int32)


def test_a_postfilter_runs_on_whole_blocks_whatever_is_read() -> None:
    s = SChunk(800, np.arange(1000), **ONE)
    seen: list[tuple[int, int]] = []

    @s.postfilter(np.int64)
    def plus_offset(input: Array, output: Array, offset: int) -> None:  # noqa: A002
        seen.append((offset, len(input)))
        assert input[0] == offset
        output[:] = input + 1

    assert np.frombuffer(s[95:105], np.int64).tolist() == list(range(96, 106))
    assert seen == [(90, 10), (100, 30)]
    assert np.frombuffer(s.decompress_chunk(2) or b"", np.int64).tolist() == list(range(201, 301))
    assert [int(chunk[0]) for chunk in s.iterchunks(np.int64)] == list(range(1, 1001, 100))
    out = np.zeros(5, dtype=np.int64)
    s.get_slice(7, 12, out)
    assert out.tolist() == [8, 9, 10, 11, 12]
    s.remove_postfilter("plus_offset")
    assert np.frombuffer(s[0], np.int64)[0] == 0


def test_a_filler_fills_an_empty_schunk_from_its_operands(tmp_path: Path) -> None:
    other = SChunk(400, np.arange(250, dtype=np.int32))
    s = SChunk(800, urlpath=tmp_path / "s.b2frame", **ONE)
    offsets: list[int] = []

    @s.filler(((other, np.int32), (np.arange(250), np.float64), (2.5, np.float64)), np.float64)
    def add(inputs: tuple[Array, ...], output: Array, offset: int) -> None:
        offsets.append(offset)
        assert {len(each) for each in inputs} == {len(output)}
        output[:] = inputs[0] + inputs[1] + inputs[2]

    assert np.frombuffer(s[:]).tolist() == (np.arange(250) * 2 + 2.5).tolist()
    assert offsets == [0, 30, 60, 90, 100, 130, 160, 190, 200, 230]
    with pytest.raises(ValueError, match="empty"):
        s.filler(((1, np.float64),), np.float64, 10)
    assert callable(add)


@pytest.mark.parametrize(
    ("inputs", "nelem"),
    [
        (((1, np.float64),), None),
        (((np.arange(3), "i8"), (np.arange(4), "i8")), None),
        (((np.arange(3), "i8"),), 4),
    ],
)
def test_a_filler_needs_operands_of_one_length(inputs: tuple[tuple[Any, Any], ...], nelem: int | None) -> None:
    with pytest.raises(ValueError, match="length"):
        SChunk(**ONE).filler(inputs, np.float64, nelem)


def test_a_filler_of_scalars_fills_as_many_items_as_it_is_told() -> None:
    s = SChunk(800, **ONE)
    s.filler(((3, np.int64),), np.int64, 150)(lambda inputs, output, _: np.copyto(output, inputs[0]))
    assert np.frombuffer(s[:], np.int64).tolist() == [3] * 150


def test_a_filler_that_fails_leaves_the_schunk_empty() -> None:
    s = SChunk(800, **ONE)

    def fail(_inputs: tuple[Array, ...], _output: Array, offset: int) -> None:
        if offset > 100:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        s.filler(((3, np.int64),), np.int64, 500)(fail)
    assert (len(s), s.nchunks) == (0, 0)


def _register(ident: int, kept: list[Any]) -> None:
    def encode(input: Array, output: Array, meta: int, schunk: SChunk) -> int:  # noqa: A002
        kept.append((input, output, meta, schunk.typesize))
        if input.any():
            return 0
        output[0] = meta
        return 1

    def decode(input: Array, output: Array, meta: int, _schunk: SChunk) -> int:  # noqa: A002
        assert input.tolist() == [meta]
        output[:] = 0
        return len(output)

    superchunk.register_codec("zeros", ident, encode, decode)


def test_a_codec_written_in_python_compresses_the_blocks_it_takes() -> None:
    kept: list[Any] = []
    _register(200, kept)
    data = np.concatenate([np.zeros(90, dtype=np.int64), np.arange(1, 61)])
    s = SChunk(
        data=data, cparams={"codec": 200, "codec_meta": 9, "nthreads": 1, "blocksize": 240}, dparams=ONE["dparams"]
    )
    assert s[:] == data.tobytes()
    assert s.cbytes < data.nbytes - 3 * 200
    assert {entry[2:] for entry in kept} == {(9, 8)}
    gc.collect()
    for entry in kept:  # its arguments are its own, whatever became of the engine's
        entry[1][:] = 1
    assert superchunk.from_cframe(s.to_cframe())[:] == data.tobytes()


def test_a_filter_written_in_python_runs_both_ways() -> None:
    def forward(input: Array, output: Array, meta: int, _schunk: SChunk) -> None:  # noqa: A002
        output[:] = input ^ meta

    superchunk.register_filter(170, forward, forward)
    data = np.arange(1000)
    cparams = CParams(filters=[170], filters_meta=[0x55], nthreads=1, codec=1)
    s = SChunk(data=data, cparams=cparams, dparams=ONE["dparams"])
    assert s[:] == data.tobytes()
    assert s[500:510] == data[500:510].tobytes()
    superchunk.ufilters_registry.clear()
    with pytest.raises(superchunk.SuperchunkError, match="170"):
        s[:]


def test_python_codecs_need_one_thread_and_live_inside_a_schunk_only() -> None:
    _register(201, [])
    for which in ("cparams", "dparams"):
        threads = {"cparams": {"codec": 201, "nthreads": 1}, "dparams": {"nthreads": 1}}
        threads[which]["nthreads"] = 2
        with pytest.raises(ValueError, match="nthreads"):
            SChunk(**threads)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="201"):
        superchunk.compress2(b"x" * 100, codec=201, nthreads=1)


def test_an_error_in_a_python_codec_comes_out_and_changes_nothing(tmp_path: Path) -> None:
    def fail(*_: object) -> int:
        raise ZeroDivisionError

    superchunk.register_codec("broken", 202, fail, fail)
    path = tmp_path / "s.b2frame"
    cparams = CParams(codec=202, nthreads=1)
    with pytest.raises(ZeroDivisionError):
        SChunk(data=np.arange(100), cparams=cparams, dparams=ONE["dparams"], urlpath=path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [(159, len, len), (256, len, len), (180, len, None), (180, None, len)], ids=str)
def test_registering_refuses_ids_out_of_range_and_half_pairs(given: tuple[Any, Any, Any]) -> None:
    ident, one, other = given
    with pytest.raises(ValueError, match=r"id|both"):
        superchunk.register_codec("x", ident, one, other)
    with pytest.raises(ValueError, match=r"id|both"):
        superchunk.register_filter(ident, one, other)


def test_registering_an_id_twice_or_without_a_name_is_refused() -> None:
    superchunk.register_filter(180, print, print)
    _register(180, [])
    with pytest.raises(ValueError, match="in use"):
        superchunk.register_filter(180, print, print)
    with pytest.raises(ValueError, match="in use"):
        _register(180, [])
    with pytest.raises(ValueError, match="name"):
        superchunk.register_filter(181)


def test_a_name_without_functions_stands_for_a_plugin_that_is_not_there() -> None:
    superchunk.register_codec("plugin", 210)
    superchunk.register_filter(211, name="plugin")
    assert 210 not in superchunk.ucodecs_registry
    for cparams in ({"codec": 210}, {"filters": [211]}):
        with pytest.raises(RuntimeError, match=r"21[01]"):
            SChunk(data=b"x" * 100, cparams=cparams)  # type: ignore[arg-type]


class Counted:
    """An array in chunks that counts what is read of it."""

    def __init__(self, items: Array) -> None:
        self.items, self.shape, self.dtype, self.chunks = items, items.shape, items.dtype, items.shape
        self.nitems = 0

    def __getitem__(self, key: Any) -> Array:
        found: Array = self.items[key]
        self.nitems += found.size
        return found


def test_a_filler_reads_each_item_of_an_array_about_once() -> None:
    items = np.arange(200_000)
    counted = Counted(items)
    s = SChunk(chunksize=8000, cparams={"typesize": 8})

    @s.filler([(counted, np.int64)], np.int64)
    def fill(inputs: tuple[Array, ...], output: Array, offset: int) -> None:
        del offset
        output[:] = inputs[0] + 1

    assert s.nchunks == 200
    assert s[:] == (items + 1).tobytes()
    assert counted.nitems == items.size


@pytest.mark.parametrize("ahead", [8, 80, 1000, 2**24])
@pytest.mark.parametrize("shape", [(60,), (6, 10), (3, 4, 5), (1, 60), (60, 1), (2, 1, 30)])
def test_a_filler_takes_items_of_any_array_in_c_order(
    shape: tuple[int, ...], ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("superchunk._codec.block_functions._AHEAD_NBYTES", ahead)
    items = np.arange(60, dtype="i4").reshape(shape)
    array = superchunk.asarray(items, chunks=tuple(-(-n // 2) for n in shape))
    records = superchunk.asarray(items.reshape(-1).view([("x", "i4")]))
    for chunksize in (8, 56, 4000):
        s = SChunk(chunksize=chunksize, cparams={"typesize": 8})

        @s.filler([(array, np.int64), (records["x"], np.int64), (2, np.int64)], np.int64)
        def fill(inputs: tuple[Array, ...], output: Array, offset: int) -> None:
            del offset
            output[:] = inputs[0] + inputs[1] * inputs[2]

        assert s[:] == (3 * np.arange(60)).tobytes()


def doubled(schunk: SChunk) -> None:
    """Let reads give twice what is stored."""

    @schunk.postfilter(np.int64)
    def double(block: Array, output: Array, offset: int) -> None:
        del offset
        output[:] = block * 2 + 1


@pytest.mark.parametrize("way", ["copy", "anew", "file", "copy.copy", "load"])
@pytest.mark.parametrize("kind", ["SChunk", "NDArray"])
def test_a_copy_holds_what_reading_gives_through_a_postfilter(tmp_path: Path, kind: str, way: str) -> None:
    items = np.concatenate([np.arange(100), np.zeros(100, np.int64), np.arange(50)])
    made: Any
    if kind == "SChunk":
        made = SChunk(chunksize=800, data=items, **ONE)
        doubled(made)
    else:
        made = superchunk.asarray(items, chunks=(100,), blocks=(50,), cparams={"nthreads": 1}, dparams={"nthreads": 1})
        doubled(made.schunk)
    made.vlmeta["a"] = 1
    copied = {
        "copy": made.copy,
        "anew": lambda: made.copy(cparams={"clevel": 1}),
        "file": lambda: made.copy(urlpath=tmp_path / "a"),
        "copy.copy": lambda: copy.copy(made),
        "load": lambda: (made.copy(urlpath=tmp_path / "a").close(), superchunk.load(tmp_path / "a"))[1],
    }[way]()
    read = np.frombuffer(made[:], np.int64) if kind == "SChunk" else made[:]
    again = np.frombuffer(copied[:], np.int64) if kind == "SChunk" else copied[:]
    assert np.array_equal(read, items * 2 + 1)
    assert np.array_equal(again, read)
    assert copied.vlmeta[:] == {"a": 1}
    stored = superchunk.from_cframe(made.to_cframe())
    assert np.array_equal(np.frombuffer(stored[:], np.int64) if kind == "SChunk" else stored[:], items)


def test_blocks_of_any_length_stay_as_they_are_in_a_copy_through_a_postfilter() -> None:
    s = SChunk(chunksize=-1, cparams={"typesize": 1, "nthreads": 1}, dparams={"nthreads": 1})
    s.append_vlblocks([b"abc", b"defgh"])
    s.postfilter(np.uint8)(lambda block, output, _: output.__setitem__(slice(None), block + 1))
    assert s.copy().get_vlblocks(0) == [b"abc", b"defgh"]
