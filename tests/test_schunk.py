"""Promises of `SChunk`: making, opening, reading, writing, whole chunks."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superchunk
from superchunk import Codec, CParams, DParams, Filter, SChunk, SpecialValue, Storage

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk._codec.special_values import FillValue

blosc2 = pytest.importorskip("blosc2", reason="the oracle is not installed")

ITEMS = np.arange(1000, dtype=np.int64)


@pytest.fixture(params=["memory", "file"])
def keywords(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Where the SChunk of a test lives."""
    return {"urlpath": tmp_path / "s.b2frame", "mode": "w"} if request.param == "file" else {}


def filled(keywords: dict[str, Any], chunksize: int = 800, **more: Any) -> SChunk:
    return SChunk(chunksize, ITEMS, **keywords, **more)


def items(raw: bytes | None) -> list[int]:
    return np.frombuffer(raw or b"", dtype=np.int64).tolist()  # type: ignore[no-any-return]


# Making.


def test_data_is_cut_into_chunks_of_which_the_last_may_be_shorter(keywords: dict[str, Any]) -> None:
    s = SChunk(3000, ITEMS, **keywords)
    assert (s.nchunks, s.chunksize, s.chunkshape, s.nbytes, len(s), s.typesize) == (3, 3000, 375, 8000, 1000, 8)
    assert s[:] == ITEMS.tobytes()
    assert len(s.decompress_chunk(2) or b"") == 2000


def test_chunksize_defaults_to_the_data_or_to_sixteen_mebibytes() -> None:
    assert SChunk(data=ITEMS).chunksize == 8000
    assert SChunk().chunksize == 2**24
    assert SChunk(data=b"").chunksize == 2**24
    for wrong in (2**31, -2, 0):
        with pytest.raises(ValueError, match="chunksize"):
            SChunk(chunksize=wrong)


def test_typesize_is_that_of_the_data_unless_given() -> None:
    assert SChunk(data=ITEMS.astype("i2")).typesize == 2
    assert SChunk(data=b"12").typesize == 1
    assert SChunk().typesize == 1
    assert SChunk(data=ITEMS.astype("i2"), cparams={"clevel": 1}).typesize == 2
    assert SChunk(data=ITEMS.astype("i2"), cparams={"typesize": 4}).typesize == 4
    assert SChunk(data=ITEMS.astype("i2"), cparams=CParams(clevel=1)).typesize == 8


def test_an_empty_schunk_has_no_items_and_a_ratio_of_zero(keywords: dict[str, Any]) -> None:
    s = SChunk(**keywords)
    assert (len(s), s.nchunks, s.nbytes, s.cbytes, s.cratio, s[:]) == (0, 0, 0, 0, 0.0, b"")
    assert list(s) == []


def test_keywords_that_are_not_known_or_given_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="foo"):
        SChunk(foo=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="urlpath"):
        SChunk(storage=Storage(), urlpath=tmp_path / "x")
    with pytest.raises(TypeError, match="dparams"):
        SChunk(dparams=3)  # type: ignore[arg-type]


def test_the_fields_of_a_storage_can_be_passed_on_as_keywords(tmp_path: Path) -> None:
    place = Storage(urlpath=tmp_path / "s.b2frame", mode="w", meta={"a": 1})
    with SChunk(data=ITEMS, **asdict(place)) as s:
        assert s.meta["a"] == 1
    with SChunk(data=ITEMS, storage=place) as s:
        assert (s.urlpath, s.mode, s.contiguous) == (place.urlpath, "w", True)


@pytest.mark.parametrize(
    "given",
    [
        {"mode": "r"},
        {"mmap_mode": "r"},
        {"mmap_mode": "w+", "contiguous": False},
        {"mmap_mode": "q", "urlpath": "x"},
        {"initial_mapping_size": 100, "urlpath": "x"},
        {"initial_mapping_size": 100, "urlpath": "x", "mmap_mode": "r"},
        {"locking": True},
        {"locking": True, "urlpath": "x", "mmap_mode": "r"},
        {"mode": "r", "urlpath": "absent"},
        {"mmap_mode": "r+", "urlpath": "absent"},
        {"mmap_mode": "c", "urlpath": "absent"},
    ],
)
def test_places_that_make_no_sense_are_refused(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"mode|locking|initial_mapping_size|contiguous"):
        SChunk(**given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cls", [CParams, dict])
def test_a_user_codec_without_functions_is_refused_before_a_file_is_made(cls: type[Any], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="codec 250"):
        SChunk(data=ITEMS, cparams=cls(codec=250), urlpath=tmp_path / "s.b2frame")
    assert list(tmp_path.iterdir()) == []


# Opening.


def test_a_frame_is_opened_again_with_everything_that_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    cparams = CParams(
        codec=Codec.LZ4, clevel=3, typesize=8, blocksize=400, filters=[Filter.DELTA, Filter.BITSHUFFLE], nthreads=1
    )
    with SChunk(800, ITEMS, cparams=cparams, urlpath=path, meta={"m": [1]}) as s:
        s.vlmeta["v"] = "text"
        expected = s.cparams
    for opened in (superchunk.open(path), SChunk(urlpath=path, mode="r"), superchunk.open(path, mmap_mode="r")):
        with opened as s:
            assert s.cparams == CParams(**{**asdict(expected), "nthreads": superchunk.nthreads})
            assert (s.chunksize, s.blocksize, s.mode, s.urlpath) == (800, 400, "r", str(path))
            assert (s.meta[:], s.vlmeta[:]) == ({"m": [1]}, {"v": "text"})
            assert s[:] == ITEMS.tobytes()


def test_open_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        superchunk.open(tmp_path / "absent")
    (tmp_path / "text").write_text("this is no frame at all, it is a text" * 10)
    with pytest.raises(RuntimeError, match="text"):
        superchunk.open(tmp_path / "text")
    path = tmp_path / "s.b2frame"
    SChunk(data=ITEMS, urlpath=path).close()
    for wrong in ({"mode": "z"}, {"mmap_mode": "w+"}, {"foo": 1}, {"verify": "all"}, {"sync": "x"}, {"offset": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            superchunk.open(path, **wrong)
    with pytest.raises(RuntimeError):
        superchunk.open(path, offset=3)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RuntimeError):
        superchunk.open(path)
    with pytest.raises(ValueError, match=r"sparse frame at byte 0: expected a file chunks\.b2frame"):
        superchunk.open(tmp_path)


def test_a_frame_may_start_anywhere_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "two.bin"
    frame = SChunk(800, ITEMS).to_cframe()
    path.write_bytes(b"12345" + frame + b"behind")
    with superchunk.open(path, offset=5) as s:
        assert s[:] == ITEMS.tobytes()
    assert superchunk.load(path, offset=5)[998:] == ITEMS[998:].tobytes()


def test_parameters_given_to_open_hold_for_the_handle_only(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    SChunk(800, ITEMS.astype("i4"), urlpath=path, cparams={"clevel": 7, "typesize": 4}).close()
    with superchunk.open(path, "a", cparams=CParams(clevel=1), dparams={"nthreads": 1}) as s:
        assert (s.cparams.clevel, s.cparams.typesize, s.dparams.nthreads, len(s)) == (1, 4, 1, 1000)
        s.append_data(ITEMS[:200])
    with superchunk.open(path) as s:
        assert s.cparams.clevel == 7


def test_mode_a_makes_what_is_absent_and_w_replaces_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    SChunk(800, ITEMS, urlpath=path).close()
    with SChunk(urlpath=path) as s:
        assert (len(s), s.mode) == (1000, "a")
        s.append_data(ITEMS[:100])
    with SChunk(data=ITEMS[:10], urlpath=path, mode="w") as s:
        assert (len(s), s.mode) == (10, "w")
    with superchunk.open(path) as s:
        assert s[:] == ITEMS[:10].tobytes()


def test_copy_on_write_keeps_its_changes_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    SChunk(800, ITEMS, urlpath=path).close()
    before = path.read_bytes()
    for s in (superchunk.open(path, mmap_mode="c"), SChunk(urlpath=path, mmap_mode="c")):
        assert s.mode == "a"
        s[5:7] = ITEMS[:2]
        s.append_data(ITEMS[:100])
        s.delete_chunk(0)
        s.vlmeta["x"] = 1
        assert (len(s), items(s[:1])) == (1000, [100])
        s.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("mmap_mode", ["r+", "w+"])
def test_the_writing_mmap_modes_write(mmap_mode: str, tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    SChunk(800, ITEMS, urlpath=path).close()
    with SChunk(800, urlpath=path, mmap_mode=mmap_mode, initial_mapping_size=1000, cparams={"typesize": 8}) as s:
        assert (s.mmap_mode, s.initial_mapping_size) == (mmap_mode, 1000)
        assert s.mode == {"r+": "a", "w+": "w"}[mmap_mode]
        s.append_data(ITEMS[:100])
    with superchunk.open(path) as s:
        assert len(s) == (1100 if mmap_mode == "r+" else 100)


def test_load_copies_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    with SChunk(800, ITEMS, urlpath=path, meta={"m": 1}) as s:
        s.vlmeta["v"] = 2
    loaded = superchunk.load(path)
    path.unlink()
    assert (loaded.urlpath, loaded[:]) == (None, ITEMS.tobytes())
    assert (loaded.meta["m"], loaded.vlmeta["v"]) == (1, 2)
    loaded.append_data(ITEMS)


# Closing.


def test_a_closed_handle_says_so_and_closing_twice_is_fine(keywords: dict[str, Any]) -> None:
    with filled(keywords) as s:
        vlmeta = s.vlmeta
    s.close()
    for use in (
        lambda: s[0],
        lambda: len(s),
        lambda: s.append_data(b"12345678"),
        lambda: s.nchunks,
        lambda: vlmeta["x"],
        s.__enter__,
        s.flush,
        s.to_cframe,
    ):
        with pytest.raises(superchunk.ClosedError):
            use()


def test_dropping_the_last_reference_closes_the_file_without_the_collector(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    gc.disable()
    try:
        s = SChunk(800, ITEMS, urlpath=path)
        _ = s.vlmeta, s.meta, s.info
        for _ in range(5):
            s.append_data(ITEMS[:100])
        watch = weakref.ref(s)
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        del s, _
        assert watch() is None
        assert len(list(Path("/proc/self/fd").iterdir())) == descriptors - 1
    finally:
        gc.enable()
    with superchunk.open(path) as s:
        assert len(s) == 1500


def test_what_was_flushed_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    s = SChunk(800, urlpath=path)
    for _ in range(20):
        s.append_data(ITEMS[:100])
    s.flush()
    assert blosc2.open(str(path)).nchunks == 20
    assert s.dead_bytes >= 0
    s.close()


def test_a_schunk_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match="to_cframe"):
        pickle.dumps(SChunk())


# Items.


@pytest.mark.parametrize("typesize", [1, 3, 8, 300])
@pytest.mark.parametrize("chunksize", [-1, 700, 1200, 2400])
def test_slices_are_those_of_the_bytes_for_any_item_and_chunk_size(typesize: int, chunksize: int) -> None:
    data = np.random.default_rng(1).integers(0, 9, 6000, dtype=np.uint8).tobytes()
    s = SChunk(chunksize, data, cparams={"typesize": typesize})
    count = len(data) // typesize
    assert len(s) == count
    for start, stop in [(0, None), (0, 1), (-1, None), (1, count), (3, 17), (None, -2), (5, 5), (9, 3), (0, 10**9)]:
        n = slice(*slice(start, stop).indices(count)[:2])
        assert s[start:stop] == data[n.start * typesize : max(n.stop, n.start) * typesize]


@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_any_history_of_changes_leaves_what_a_list_of_chunks_would_be(data: st.DataObject) -> None:
    s = SChunk(data.draw(st.sampled_from([-1, 16, 24])), cparams={"typesize": 2, "nthreads": 1})
    model: list[bytes] = []
    for _ in range(data.draw(st.integers(1, 12))):
        action = data.draw(st.sampled_from(["append", "insert", "update", "delete", "assign", "special", "reorder"]))
        chunk = data.draw(st.binary(min_size=1, max_size=12)) * 2
        where = data.draw(st.integers(0, len(model)))
        if action == "append":
            s.append_data(chunk)
            model.append(chunk)
        elif action == "insert":
            s.insert_data(where, chunk, copy=True)
            model.insert(where, chunk)
        elif where == len(model):
            continue
        elif action == "update":
            s.update_data(where, chunk, copy=True)
            model[where] = chunk
        elif action == "delete":
            s.delete_chunk(where)
            del model[where]
        elif action == "special":
            s.update_special(where, SpecialValue.VALUE, b"ab")
            model[where] = b"ab" * (len(model[where]) // 2)
        elif action == "reorder":
            order = data.draw(st.permutations(range(len(model))))
            s.reorder_offsets(order)
            model = [model[i] for i in order]
        else:
            content = b"".join(model)
            start = data.draw(st.integers(0, len(content) // 2))
            s[start : start + len(chunk) // 2] = chunk
            content = content[: 2 * start] + chunk + content[2 * start + len(chunk) :]
            model = [s.decompress_chunk(i) or b"" for i in range(s.nchunks)]
            assert b"".join(model) == content
        assert s.nchunks == len(model)
    assert s[:] == b"".join(model)
    assert [s.decompress_chunk(i) for i in range(s.nchunks)] == model
    assert superchunk.from_cframe(s.to_cframe())[:] == s[:]
    start, stop = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 80))
    assert s[start:stop] == b"".join(model)[2 * start : 2 * stop]


def test_get_slice_fills_the_front_of_out_or_returns_bytes(keywords: dict[str, Any]) -> None:
    s = filled(keywords)
    assert items(s.get_slice(95, 105)) == list(range(95, 105))
    out = np.full(12, -1)
    assert s.get_slice(95, 105, out) is None
    assert out.tolist() == [*range(95, 105), -1, -1]
    assert s.get_slice(5, 5, out) == b""
    with pytest.raises(ValueError, match="Not enough space"):
        s.get_slice(0, 13, out)


def test_steps_other_than_one_are_index_errors(keywords: dict[str, Any]) -> None:
    s = filled(keywords)
    for step in (2, -1):
        with pytest.raises(IndexError, match="step"):
            _ = s[0:10:step]
        with pytest.raises(IndexError, match="step"):
            s[0:10:step] = ITEMS
    for key in ("a", None, 1.5):
        with pytest.raises(TypeError):
            _ = s[key]  # type: ignore[index]


@pytest.mark.parametrize("chunksize", [-1, 800, 1000, 8000])
@pytest.mark.parametrize(
    ("start", "stop"), [(0, 1), (99, 101), (100, 200), (0, 1000), (950, 1200), (1000, 1001), (1000, 2500), (-5, None)]
)
def test_assigning_a_slice_overwrites_and_grows(
    chunksize: int, start: int, stop: int | None, keywords: dict[str, Any]
) -> None:
    s = filled(keywords, chunksize)
    expected = ITEMS.tolist()
    first = start if start >= 0 else 1000 + start
    last = 1000 if stop is None else stop
    new = np.arange(last - first, dtype=np.int64) * 7
    expected[first:last] = new.tolist()
    s[start:stop] = new
    assert items(s[:]) == expected
    if chunksize == 800:
        assert s.chunksize == 800


def test_more_data_than_the_slice_takes_is_ignored(keywords: dict[str, Any]) -> None:
    s = filled(keywords)
    s[0:2] = np.full(50, 9)
    assert items(s[0:3]) == [9, 9, 2]
    s.set_slice(np.full(1, 8), 1, 2)
    assert items(s[0:3]) == [9, 8, 2]


@pytest.mark.parametrize(("start", "stop", "count"), [(0, 10, 9), (1001, 1010, 9), (10, 10, 5), (20, 10, 5)])
def test_assignments_that_do_not_fit_are_refused(start: int, stop: int, count: int, keywords: dict[str, Any]) -> None:
    s = filled(keywords)
    with pytest.raises(ValueError, match=r"start|stop|value"):
        s[start:stop] = np.zeros(count, dtype=np.int64)
    assert s[:] == ITEMS.tobytes()


def test_iterchunks_info_says_what_each_chunk_is(keywords: dict[str, Any]) -> None:
    s = SChunk(800, **keywords, cparams={"typesize": 8})
    s.append_data(np.random.default_rng(0).integers(0, 2**60, 100))
    s.append_data(np.zeros(100, dtype=np.int64))
    s.append_data(np.full(100, 7))
    plain, zero, value = list(s.iterchunks_info())
    assert [info.nchunk for info in (plain, zero, value)] == [0, 1, 2]
    assert plain.special is SpecialValue.NOT_SPECIAL
    assert zero.special is SpecialValue.ZERO
    assert zero.cratio == 25.0
    assert plain.repeated_value is zero.repeated_value is None
    s.update_special(2, SpecialValue.VALUE, 7)
    value = list(s.iterchunks_info())[2]
    assert (value.special, value.repeated_value) == (SpecialValue.VALUE, (7).to_bytes(8, "little"))


# Whole chunks.


def test_compressed_chunks_go_in_and_out_unchanged(keywords: dict[str, Any]) -> None:
    s = SChunk(800, **keywords, cparams={"typesize": 8})
    chunks = [superchunk.compress2(ITEMS[i * 100 : i * 100 + 100], codec=Codec.LZ4) for i in range(4)]
    assert s.append_chunk(chunks[0] + b"what follows is not the chunk's") == 1
    assert s.insert_chunk(0, chunks[1]) == 2
    assert s.insert_chunk(2, chunks[2]) == 3
    assert s.update_chunk(1, chunks[3]) == 3
    assert [s.get_chunk(i) for i in range(3)] == [chunks[1], chunks[3], chunks[2]]
    assert s.cbytes == sum(len(s.get_chunk(i)) for i in range(3))
    with pytest.raises(ValueError, match="16"):
        s.append_chunk(b"short")
    with pytest.raises(ValueError, match="chunk"):
        s.append_chunk(chunks[0][:-1])


def test_a_chunk_of_the_first_generation_is_stored_with_a_header_that_frames_can_hold() -> None:
    plain = b"abcdefgh" * 4
    # 16-byte header: version 2, lz version 1, memcpyed, typesize 8; then the bytes themselves.
    old = bytes([2, 1, 0x02, 8]) + b"".join(n.to_bytes(4, "little") for n in (32, 32, 48)) + plain
    s = SChunk(32, cparams={"typesize": 8})
    s.append_chunk(old)
    assert s[:] == plain
    assert superchunk._engine.describe(s.get_chunk(0)).header_len == 32


@pytest.mark.parametrize("nchunk", [-1, 10, 11, 2**40])
def test_chunk_numbers_out_of_range_are_index_and_runtime_errors(nchunk: int, keywords: dict[str, Any]) -> None:
    s = filled(keywords)
    data, chunk = ITEMS[:100], s.get_chunk(0)
    calls: list[Callable[[], object]] = [
        lambda: s.get_chunk(nchunk),
        lambda: s.get_lazychunk(nchunk),
        lambda: s.decompress_chunk(nchunk),
        lambda: s.delete_chunk(nchunk),
        lambda: s.update_data(nchunk, data, copy=True),
        lambda: s.update_chunk(nchunk, chunk),
        lambda: s.update_special(nchunk, SpecialValue.ZERO),
        lambda: s.get_vlblock(nchunk, 0),
    ]
    if nchunk != 10:
        calls += [lambda: s.insert_data(nchunk, data, copy=True), lambda: s.insert_chunk(nchunk, chunk)]
    for call in calls:
        with pytest.raises(RuntimeError, match=str(nchunk)) as caught:
            call()
        assert isinstance(caught.value, IndexError)
    assert s[:] == ITEMS.tobytes()


def test_update_data_on_an_empty_schunk_does_nothing() -> None:
    s = SChunk()
    assert s.update_data(0, b"123", copy=True) == 0
    assert len(s) == 0


def test_decompress_chunk_fills_dst_or_says_what_is_wrong_with_it(keywords: dict[str, Any]) -> None:
    s = filled(keywords)
    out = np.zeros(101, dtype=np.int64)
    assert s.decompress_chunk(1, out) is None
    assert out[:100].tolist() == list(range(100, 200))
    with pytest.raises(ValueError, match="length 0"):
        s.decompress_chunk(0, bytearray())
    with pytest.raises(RuntimeError, match="800"):
        s.decompress_chunk(0, bytearray(799))


def test_reorder_takes_exactly_a_permutation(keywords: dict[str, Any]) -> None:
    s = filled(keywords)
    s.reorder_offsets(np.arange(10)[::-1])  # type: ignore[arg-type]
    assert items(s[0:1]) == [900]
    with pytest.raises(ValueError, match="order"):
        s.reorder_offsets([0, 1])
    with pytest.raises(ValueError, match="order"):
        s.reorder_offsets(np.zeros((10, 1), dtype=int))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="order"):
        s.reorder_offsets([0] * 10)


def test_lazy_chunks_are_those_of_the_reference(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    s = blosc2.SChunk(4000, ITEMS, urlpath=str(path), mode="w", cparams={"typesize": 8, "blocksize": 800})
    s.append_data(np.zeros(500, dtype=np.int64))
    theirs = [s.get_lazychunk(i) for i in range(3)]
    del s
    with superchunk.open(path) as ours:
        assert [ours.get_lazychunk(i) for i in range(3)] == theirs
        chunk = ours.get_chunk(0)
        assert superchunk.get_cbuffer_sizes(theirs[0]) == superchunk.get_cbuffer_sizes(chunk)
    assert SChunk(4000, ITEMS).get_lazychunk(0) == SChunk(4000, ITEMS).get_chunk(0)[:32]


# Special values.


@pytest.mark.parametrize("kind", [SpecialValue.ZERO, SpecialValue.UNINIT, SpecialValue.NAN])
def test_a_special_fill_of_any_size_takes_no_room(kind: SpecialValue, keywords: dict[str, Any]) -> None:
    s = SChunk(8000, **keywords, cparams={"typesize": 8})
    assert s.fill_special(10_500, kind) == 11
    assert (len(s), s.cbytes) == (10_500, 11 * 32)
    content = np.frombuffer(s[10_400:], dtype=np.float64)
    assert len(content) == 100
    assert np.isnan(content).all() if kind is SpecialValue.NAN else not content.any()
    with pytest.raises(RuntimeError, match="empty"):
        s.fill_special(1, kind)


@pytest.mark.parametrize(
    ("typesize", "value", "item"),
    [
        (1, 7, b"\x07"),
        (2, -1, b"\xff\xff"),
        (4, 300, b"\x2c\x01\0\0"),
        (8, 2**63, b"\0\0\0\0\0\0\0\x80"),
        (4, 1.5, b"\0\0\xc0\x3f"),
        (8, True, b"\1\0\0\0\0\0\0\0"),
        (4, np.float32(2.5), b"\0\0\x20\x40"),
        (8, np.int32(5), b"\5\0\0\0\0\0\0\0"),
        (16, b"0123456789abcdef", b"0123456789abcdef"),
        (300, b"x" * 300, b"x" * 300),
    ],
)
def test_a_repeated_value_is_widened_or_narrowed_to_the_item(
    typesize: int, value: FillValue, item: bytes, keywords: dict[str, Any]
) -> None:
    s = SChunk(typesize * 10, **keywords, cparams={"typesize": typesize})
    assert s.fill_special(25, SpecialValue.VALUE, value) == 3
    assert s[:] == item * 25
    s.update_special(1, SpecialValue.ZERO)
    s.update_special(1, SpecialValue.VALUE, value)
    assert s[:] == item * 25


@pytest.mark.parametrize("chunksize", [100, 1000])
@pytest.mark.parametrize("typesize", [16, 300])
def test_a_repeated_value_may_straddle_chunks(chunksize: int, typesize: int, keywords: dict[str, Any]) -> None:
    item = bytes(range(16)) * 20
    s = SChunk(chunksize, **keywords, cparams={"typesize": typesize})
    s.fill_special(25, SpecialValue.VALUE, item[:typesize])
    assert s[:] == item[:typesize] * 25
    nans = SChunk(1001, cparams={"typesize": 4})
    with pytest.raises(ValueError, match="chunksize"):
        nans.fill_special(500, SpecialValue.NAN)


def test_a_value_wins_over_another_kind() -> None:
    s = SChunk(40, cparams={"typesize": 4})
    s.fill_special(5, SpecialValue.ZERO, 7)
    assert s[0] == b"\7\0\0\0"


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        (SpecialValue.VALUE, None, ValueError),
        (SpecialValue.VALUE, b"123", ValueError),
        (SpecialValue.VALUE, 2**32, ValueError),
        (SpecialValue.VALUE, 1e300, ValueError),
        (SpecialValue.NOT_SPECIAL, None, TypeError),
        (1, None, TypeError),
    ],
)
def test_special_values_that_make_no_sense_are_refused(
    kind: SpecialValue, value: FillValue | None, error: type[Exception]
) -> None:
    s = SChunk(40, cparams={"typesize": 4})
    with pytest.raises(error):
        s.fill_special(5, kind, value)
    assert len(s) == 0
    assert s.fill_special(0, SpecialValue.ZERO) == 0


# Parameters.


def test_new_parameters_hold_from_then_on_and_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    with SChunk(800, ITEMS, urlpath=path) as s:
        s.cparams = CParams(codec=Codec.LZ4, clevel=1, typesize=8, nthreads=1)
        s.dparams = DParams(nthreads=1)
        s.append_data(ITEMS[:100])
        assert s.cparams.codec is Codec.LZ4
        assert superchunk._engine.describe(s.get_chunk(0)).codec == 5
        assert superchunk._engine.describe(s.get_chunk(10)).codec == 1
        for name in ("cparams", "dparams"):
            with pytest.raises(AttributeError, match=name):
                setattr(s, name, {})
    with superchunk.open(path) as s:
        assert (s.cparams.codec, s.cparams.clevel) == (Codec.LZ4, 1)


def test_cparams_shows_six_filters_whatever_was_given() -> None:
    s = SChunk(cparams=CParams(filters=[Filter.TRUNC_PREC], filters_meta=[-10], typesize=4))
    assert list(s.cparams.filters) == [Filter.TRUNC_PREC, *[Filter.NOFILTER] * 5]
    assert list(s.cparams.filters_meta) == [13, 0, 0, 0, 0, 0]


def test_info_shows_the_items_as_lines_and_as_a_table() -> None:
    s = SChunk(4000, ITEMS)
    names = [name for name, _ in s.info_items]
    assert names == [name for name, _ in blosc2.SChunk(4000, ITEMS).info_items]
    lines = str(s.info).splitlines()
    assert lines[0] == "type      : SChunk"
    assert all(len(line) <= 96 for line in lines)
    assert "nbytes    : 8000 (7.81 KiB)" in lines
    assert s.info._repr_html_().count("<tr>") == len(names)
    assert "&lt;Codec.ZSTD: 5&gt;" in s.info._repr_html_()


# Frames in memory, copies.


def test_frames_in_memory_come_back_and_the_reference_reads_them(keywords: dict[str, Any]) -> None:
    s = filled(keywords, meta={"m": (1, 2)})
    s.vlmeta["v"] = {"a": 1}
    frame = s.to_cframe()
    theirs = blosc2.schunk_from_cframe(frame)
    assert theirs[:] == ITEMS.tobytes()
    assert (theirs.meta["m"], theirs.vlmeta["v"]) == ((1, 2), {"a": 1})
    for ours in (superchunk.schunk_from_cframe(frame), superchunk.from_cframe(bytearray(theirs.to_cframe()))):
        assert (ours[:], ours.mode, ours.urlpath, ours.contiguous) == (ITEMS.tobytes(), "a", None, True)
        assert (ours.meta["m"], ours.vlmeta["v"]) == ((1, 2), {"a": 1})
        ours.append_data(ITEMS[:100])
        assert len(ours) == 1100


def test_a_frame_without_copying_keeps_the_bytes_alive_and_unchanged() -> None:
    frame = bytearray(SChunk(800, ITEMS).to_cframe())
    before = bytes(frame)
    s = superchunk.schunk_from_cframe(frame)
    s[0:500] = ITEMS[500:]
    assert frame == before
    del frame
    gc.collect()
    assert items(s[499:501]) == [999, 500]


def test_bytes_that_are_no_frame_are_a_runtime_error() -> None:
    for wrong in (b"", b"x" * 200, SChunk(800, ITEMS).to_cframe()[:-1]):
        with pytest.raises(RuntimeError):
            superchunk.schunk_from_cframe(wrong)
    frame = SChunk().to_cframe()
    with pytest.raises(ValueError, match="deserialize"):
        superchunk.from_cframe(frame, deserialize="all")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="deserialize"):
        superchunk.schunk_from_cframe(frame, deserialize=True)  # type: ignore[arg-type]


def test_a_copy_has_the_same_content_and_lives_by_itself(keywords: dict[str, Any], tmp_path: Path) -> None:
    s = filled(keywords, meta={"m": 1})
    s.vlmeta["v"] = [1, 2]
    for copy in (s.copy(), s.copy(urlpath=tmp_path / "copy.b2frame"), s.copy(cparams={"codec": Codec.LZ4})):
        assert (copy[:], copy.chunksize, copy.meta[:], copy.vlmeta[:]) == (
            ITEMS.tobytes(),
            800,
            {"m": 1},
            {"v": [1, 2]},
        )
        copy[0] = b"12345678"
        copy.vlmeta["v"] = 3
    assert copy.cparams.codec is Codec.LZ4
    assert copy.typesize == 8
    assert superchunk._engine.describe(copy.get_chunk(3)).codec == 1
    assert (s[0], s.vlmeta["v"]) == (ITEMS[:1].tobytes(), [1, 2])
    with pytest.raises(ValueError, match="meta"):
        s.copy(meta={"x": 1})
    with pytest.raises(OSError, match="exists"):
        s.copy(urlpath=tmp_path / "copy.b2frame")


# Variable-length blocks.


def test_vl_blocks_come_back_one_by_one_or_together(keywords: dict[str, Any]) -> None:
    s = SChunk(-1, **keywords)
    blocks = [b"a", b"longer" * 100, b"x" * 3]
    assert s.append_vlblocks(blocks) == 1
    assert s.append_vlblocks([b"second"]) == 2
    assert s.get_vlblocks(0) == blocks
    assert [s.get_vlblock(0, i) for i in range(3)] == blocks
    assert s[:] == b"".join(blocks) + b"second"
    assert s[1:8] == b"longerl"
    again = superchunk.from_cframe(s.to_cframe())
    assert again.get_vlblocks(0) == blocks
    assert blosc2.schunk_from_cframe(s.to_cframe()).get_vlblock(0, 1) == blocks[1]
    assert s.copy(cparams={"codec": Codec.LZ4}).get_vlblocks(0) == blocks
    for wrong in ([], [b""]):
        with pytest.raises(ValueError, match="blocks"):
            s.append_vlblocks(wrong)
    with pytest.raises(IndexError):
        s.get_vlblock(0, 3)
    with pytest.raises(ValueError, match="variable-length"):
        s.append_data(b"ordinary")
    with pytest.raises(ValueError, match="variable-length"):
        filled({}).get_vlblocks(0)


# Several handles, several threads.


def test_handles_of_one_process_see_each_others_changes(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    with SChunk(800, ITEMS, urlpath=path) as writer, superchunk.open(path) as reader:
        tick = reader.change_tick
        writer.append_data(ITEMS[:100])
        writer.vlmeta["x"] = 1
        assert len(reader) == 1100
        assert reader.vlmeta["x"] == 1
        assert reader.change_tick > tick
        assert reader.refresh() is False
    assert SChunk().refresh() is False
    assert SChunk().change_tick == 0


def test_many_threads_may_read_one_schunk(keywords: dict[str, Any]) -> None:
    s = SChunk(4000, np.arange(50_000), **keywords)
    wrong: list[object] = []

    def read(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            start = int(rng.integers(0, 49_000))
            if items(s[start : start + 900]) != list(range(start, start + 900)):
                wrong.append(start)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_reference_reads_files_of_every_kind_of_change(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    with SChunk(800, ITEMS, urlpath=path) as s:
        s[995:1010] = np.arange(15)
        s.update_special(2, SpecialValue.ZERO)
        s.delete_chunk(4)
        s.insert_data(1, ITEMS[500:600], copy=True)
        s.vlmeta["k"] = "v"
        expected = s[:]
        chunks = [s.decompress_chunk(i) for i in range(s.nchunks)]
    theirs = blosc2.open(str(path))
    assert [theirs.decompress_chunk(i) for i in range(theirs.nchunks)] == chunks
    assert theirs[:] == expected
    assert theirs.vlmeta["k"] == "v"


@pytest.mark.parametrize("mmap_mode", ["r", "r+", "c"])
def test_an_mmap_mode_for_reading_needs_a_file_and_raises_both_kinds_of_error(mmap_mode: str, tmp_path: Path) -> None:
    for kind in (RuntimeError, ValueError):
        with pytest.raises(kind, match="does not exist"):
            SChunk(urlpath=tmp_path / "absent", mmap_mode=mmap_mode)
