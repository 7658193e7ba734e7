"""What python-blosc2 4.14.1 does wrong or unsafely, and what happens here instead.

One test or more for each line of docs/differences.md that says "hazard".
"""

from __future__ import annotations

import gc
import os
import pickle
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk
from superchunk import CParams, SChunk, SpecialValue

if TYPE_CHECKING:
    from collections.abc import Callable

ITEMS = np.arange(1500, dtype=np.int64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.b2frame"


class Claims:
    """A buffer that is larger than memory would allow, by its length alone."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


# Items.


def test_a_slice_that_ends_inside_a_full_chunk_at_the_length_of_the_last_one_is_written() -> None:
    s = SChunk(8000, ITEMS)
    s[0:500] = np.full(500, -1)
    assert np.frombuffer(s[:], np.int64).tolist() == [-1] * 500 + ITEMS[500:].tolist()
    assert s.chunksize == 8000


@pytest.mark.parametrize("how", ["insert_data", "update_data", "append_data"])
def test_items_are_served_across_chunks_of_any_size(how: str, path: Path) -> None:
    with SChunk(800, ITEMS, urlpath=path) as s:
        chunks = [ITEMS[i : i + 100].tobytes() for i in range(0, 1500, 100)]
        odd = np.arange(33).tobytes()
        if how == "append_data":
            s.append_data(odd)
            s.append_data(odd)
            chunks += [odd, odd]
        elif how == "insert_data":
            s.insert_data(3, odd, copy=True)
            chunks.insert(3, odd)
        else:
            s.update_data(3, odd, copy=True)
            chunks[3] = odd
        whole = b"".join(chunks)
        for handle in (s, superchunk.open(path), superchunk.from_cframe(s.to_cframe())):
            assert handle.chunksize == 0
            assert handle[:] == whole
            assert handle[290:440] == whole[290 * 8 : 440 * 8]
            assert [chunk.tobytes() for chunk in handle.iterchunks(np.int64)] == chunks


def test_iteration_ends_and_integers_of_any_kind_are_taken() -> None:
    s = SChunk(800, ITEMS[:250])
    assert [int.from_bytes(item, "little") for item in s] == list(range(250))
    assert s[np.int64(2)] == s[2] == ITEMS[2:3].tobytes()
    s[2] = np.int64(7).tobytes()
    s[np.uint8(3)] = np.array([8])
    assert s[2:4] == np.array([7, 8]).tobytes()
    for number in (250, -251, 10**20):
        with pytest.raises(IndexError):
            s[number]
        with pytest.raises(IndexError):
            s[number] = b"12345678"


def test_iterchunks_gives_new_arrays_of_their_true_length() -> None:
    chunks = list(SChunk(800, ITEMS[:250]).iterchunks(np.int64))
    assert [len(chunk) for chunk in chunks] == [100, 100, 50]
    assert np.concatenate(chunks).tolist() == list(range(250))
    chunks[0][:] = 0
    assert chunks[1][0] == 100


# Buffers.


def test_a_destination_that_is_too_small_is_refused_and_untouched() -> None:
    chunk = superchunk.compress2(ITEMS)
    s = SChunk(data=ITEMS)
    target = bytearray(100)
    calls: list[Callable[[], object]] = [
        lambda: superchunk.decompress(chunk, target),
        lambda: superchunk.decompress2(chunk, target),
        lambda: s.decompress_chunk(0, target),
        lambda: s.get_slice(0, 1500, target),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="100"):
            call()
    assert target == bytes(100)


def test_read_only_objects_are_never_written_into() -> None:
    chunk = superchunk.compress2(b"b")
    s = SChunk(data=b"b")
    frozen = np.zeros(1, dtype=np.uint8)
    frozen.flags.writeable = False
    one = bytes([97])
    calls: list[Callable[[Any], object]] = [
        lambda dst: superchunk.decompress(chunk, dst),
        lambda dst: superchunk.decompress2(chunk, dst),
        lambda dst: s.decompress_chunk(0, dst),
        lambda dst: s.get_slice(0, 1, dst),
    ]
    for target in (one, memoryview(one), frozen):
        for call in calls:
            with pytest.raises((TypeError, ValueError, BufferError)):
                call(target)
    assert one == b"a"
    assert frozen[0] == 0


def test_random_damage_to_chunks_ends_in_our_errors() -> None:
    rng = np.random.default_rng(7)
    for codec in superchunk.compressor_list():
        chunk = superchunk.compress2(ITEMS, codec=codec)
        for _ in range(300):
            damaged = bytearray(chunk)
            for _ in range(int(rng.integers(1, 6))):
                damaged[int(rng.integers(len(damaged)))] = int(rng.integers(256))
            try:
                superchunk.decompress(bytes(damaged))
            except superchunk.SuperchunkError as error:
                assert isinstance(error, RuntimeError)  # noqa: PT017  (either outcome is fine, another class is not)


def test_random_damage_to_frames_ends_in_our_errors_and_soon() -> None:
    rng = np.random.default_rng(8)
    with SChunk(800, ITEMS, meta={"m": [1, 2]}) as s:
        s.vlmeta["v"] = list(range(50))
        frame = s.to_cframe()
    begin = time.monotonic()
    for _ in range(600):
        damaged = bytearray(frame)
        for _ in range(int(rng.integers(1, 4))):
            damaged[int(rng.integers(len(damaged)))] = int(rng.integers(256))
        try:
            with superchunk.schunk_from_cframe(bytes(damaged)) as opened:
                for layers in (opened.meta, opened.vlmeta):
                    for name in layers:
                        layers[name]
                if opened.nbytes <= 2**24:
                    for nchunk in range(opened.nchunks):
                        opened.decompress_chunk(nchunk)
        except superchunk.SuperchunkError:
            continue
    assert time.monotonic() - begin < 60


def test_more_than_one_chunk_can_hold_is_refused() -> None:
    for size in (2**31, 2**32 + 16):
        with pytest.raises(ValueError, match=str(superchunk.MAX_BUFFERSIZE)):
            superchunk.compress(Claims(size))  # type: ignore[arg-type]
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, dtype=np.uint8), shape=(2**32 + 16,), strides=(0,))
    s = SChunk()
    for call in (superchunk.compress2, s.append_data):
        with pytest.raises(ValueError, match=r"contiguous|2147483615"):
            call(huge)
    assert len(s) == 0


def test_a_buffer_of_two_gibibytes_is_refused_by_its_size(tmp_path: Path) -> None:
    sparse = tmp_path / "zeros"
    with sparse.open("wb") as file:
        file.truncate(superchunk.MAX_BUFFERSIZE + 1)
    mapped = np.memmap(sparse, dtype=np.uint8, mode="r")
    s = SChunk()
    for call in (superchunk.compress2, s.append_data):
        with pytest.raises(ValueError, match="2147483615"):
            call(mapped)
    assert len(s) == 0


# Metadata.


def test_metadata_limits_raise_and_do_no_harm(path: Path) -> None:
    with SChunk(data=ITEMS, urlpath=path, meta={"m": 1}) as s:
        with pytest.raises(KeyError, match="new"):
            s.meta["new"] = 1
        with pytest.raises(ValueError, match="31"):
            s.vlmeta["n" * 32] = 1
        s.vlmeta["fine"] = 1
        assert s[:] == ITEMS.tobytes()
    for keywords in ({"meta": {"n" * 32: 1}}, {"meta": {str(i): i for i in range(17)}}):
        with pytest.raises(ValueError, match=r"31|16"):
            SChunk(**keywords)  # type: ignore[arg-type]


def test_8193_names_are_refused_not_crashed_on() -> None:
    s = SChunk()
    store = s._handle.store
    chunk = superchunk.compress2(b"x")
    with store.batch():
        for number in range(8192):
            if number % 1024 == 0:
                s.vlmeta[str(number)] = number
            store.vlmeta  # noqa: B018  (looking must stay cheap)
    names = {str(number): chunk for number in range(8192)}
    store._table.vlmeta = names  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="8192"):
        s.vlmeta["one more"] = 1
    assert len(s.vlmeta) == 8192


def test_vlmeta_slice_assignment_stores_as_update_does() -> None:
    s = SChunk()
    s.vlmeta[:] = {"a": [1], "b": (2,)}
    assert s.vlmeta[:] == {"a": [1], "b": (2,)}
    s.vlmeta.clear()
    assert s.vlmeta[:] == {}


def test_a_dict_with_int_keys_is_read_as_written_or_refused() -> None:
    s = SChunk()
    s.vlmeta["d"] = {1: "one", "two": 2}
    assert s.vlmeta["d"] == {1: "one", "two": 2}
    assert s.vlmeta == {"d": {1: "one", "two": 2}}


def test_lists_stay_lists() -> None:
    s = SChunk()
    s.vlmeta["empty"] = []
    assert s.vlmeta.to_dict() == {b"empty": []}
    with pytest.raises(ValueError, match="tuple"):
        s.vlmeta["marked"] = ["__tuple__", 1]


def test_deleting_what_is_absent_names_it() -> None:
    with pytest.raises(KeyError, match="absent") as caught:
        del SChunk().vlmeta["absent"]
    assert isinstance(caught.value, RuntimeError)


def test_vlmeta_of_a_temporary_schunk_works() -> None:
    vlmeta = SChunk().vlmeta
    gc.collect()
    vlmeta["x"] = 1
    assert vlmeta["x"] == 1


# Modes and files.


def test_a_handle_opened_for_reading_changes_nothing_whatever_is_tried(path: Path) -> None:
    with SChunk(800, ITEMS, urlpath=path, meta={"m": 1}) as s:
        s.vlmeta["v"] = 1
    before = path.read_bytes()
    for s in (superchunk.open(path), superchunk.open(path, mmap_mode="r"), SChunk(urlpath=path, mode="r")):
        chunk = s.get_chunk(0)
        changes: list[Any] = [
            lambda s: s.meta.__setitem__("m", 2),
            lambda s: s.meta.set_raw("m", b"\x02"),
            lambda s: s.vlmeta.__setitem__("v", 2),
            lambda s: s.vlmeta.__delitem__("v"),
            lambda s: s.vlmeta.clear(),
            lambda s: s.vlmeta.set_raw("v", b"\x02"),
            lambda s: s.__setitem__(slice(0, 1), b"12345678"),
            lambda s: s.__setitem__(0, b"12345678"),
            lambda s: s.set_slice(b"12345678", 0, 1),
            lambda s: s.append_data(b"12345678"),
            lambda s: s.insert_data(0, b"12345678", copy=True),
            lambda s: s.update_data(0, b"12345678", copy=True),
            lambda s, chunk=chunk: s.append_chunk(chunk),
            lambda s, chunk=chunk: s.insert_chunk(0, chunk),
            lambda s, chunk=chunk: s.update_chunk(0, chunk),
            lambda s: s.update_special(0, SpecialValue.ZERO),
            lambda s: s.fill_special(1, SpecialValue.ZERO),
            lambda s: s.delete_chunk(0),
            lambda s: s.reorder_offsets(range(15)),
            lambda s: s.append_vlblocks([b"x"]),
            lambda s: s.filler(((1, np.int64),), np.int64, 1),
        ]
        for change in changes:
            with pytest.raises(ValueError, match="reading mode"):
                change(s)
        s.close()
    assert path.read_bytes() == before


def test_unknown_modes_are_refused(path: Path) -> None:
    calls: list[Callable[[], object]] = [
        lambda: SChunk(urlpath=path, mode="z"),
        lambda: superchunk.open(path, "z"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="mode"):
            call()
    assert not path.exists()


def test_the_default_mode_opens_what_exists_for_reading_and_writing(path: Path) -> None:
    SChunk(800, ITEMS, urlpath=path, meta={"m": 1}).close()
    with SChunk(urlpath=path) as s:
        assert (s[:], s.chunksize) == (ITEMS.tobytes(), 800)
        s.append_data(ITEMS[:100])
    with SChunk(urlpath=path, meta={"m": 1}) as s:
        assert len(s) == 1600
    with pytest.raises(OSError, match="holds data") as caught:
        SChunk(data=ITEMS, urlpath=path)
    assert isinstance(caught.value, RuntimeError)
    with pytest.raises(ValueError, match="other"):
        SChunk(urlpath=path, meta={"other": 1})
    assert superchunk.open(path)[:] == ITEMS.tobytes() + ITEMS[:100].tobytes()


def test_opening_by_the_constructor_takes_the_chunksize_of_the_file(path: Path) -> None:
    SChunk(800, ITEMS, urlpath=path).close()
    for s in (SChunk(urlpath=path, mode="r"), SChunk(5000, urlpath=path, mode="r")):
        assert (s.chunksize, s[150:250]) == (800, ITEMS[150:250].tobytes())


def test_an_array_is_not_opened_as_a_schunk(path: Path) -> None:
    SChunk(800, ITEMS, urlpath=path, meta={"b2nd": [0]}).close()
    for mode in ("r", "a"):
        with pytest.raises(ValueError, match="Cannot open an NDArray as a SChunk"):
            SChunk(urlpath=path, mode=mode)


def test_open_with_w_empties_a_schunk_which_keeps_its_chunksize(path: Path) -> None:
    with SChunk(800, ITEMS, urlpath=path, meta={"m": 1}, cparams=CParams(clevel=3)) as s:
        s.vlmeta["v"] = 1
    with superchunk.open(path, "w") as s:
        assert (len(s), s.nchunks, s.chunksize, s.mode) == (0, 0, 800, "w")
        assert (s.cparams.clevel, s.meta[:], s.vlmeta[:]) == (3, {"m": 1}, {})
        s.append_data(ITEMS[:100])
    assert len(superchunk.open(path)) == 100
    with SChunk(-1, urlpath=path, mode="w", cparams={"typesize": 8}) as s:
        for number in (3, 5, 4):
            s.append_data(ITEMS[:number])
    with superchunk.open(path, "w") as s:
        s.append_data(ITEMS[:7])
        s.append_data(ITEMS[:9])
        assert (s.chunksize, len(s)) == (0, 16)


def test_only_frames_are_ever_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "file.txt").write_text("mine")
    text = tmp_path / "text"
    text.write_text("this is mine as well")
    sparse = tmp_path / "sparse"
    SChunk(data=ITEMS, urlpath=sparse, contiguous=False).close()
    (sparse / "notes.txt").write_text("mine too")
    alike = tmp_path / "alike"
    alike.mkdir()
    (alike / "chunks.b2frame").write_bytes(SChunk().to_cframe())  # a frame, and no index file
    for target in (folder, text, sparse, folder / "inner", alike):
        with pytest.raises(ValueError, match="not"):
            superchunk.remove_urlpath(target)
        with pytest.raises(ValueError, match="not"):
            SChunk(data=ITEMS, urlpath=target, mode="w")
    assert (folder / "file.txt").read_text() == "mine"
    assert text.read_text() == "this is mine as well"
    assert len(list(sparse.iterdir())) == 3
    (sparse / "notes.txt").unlink()
    superchunk.remove_urlpath(sparse)
    assert not sparse.exists()


def test_frames_are_removed_with_their_lock_file_and_absence_is_fine(path: Path) -> None:
    SChunk(data=ITEMS, urlpath=path).close()
    lock = path.with_name(path.name + ".b2lock")
    lock.touch()
    superchunk.remove_urlpath(str(path))
    assert not path.exists()
    assert not lock.exists()
    superchunk.remove_urlpath(path)
    superchunk.remove_urlpath(None)


def test_an_empty_file_may_be_replaced_by_a_new_frame(path: Path) -> None:
    path.touch()
    with SChunk(data=ITEMS, urlpath=path, mode="w") as s:
        assert len(s) == 1500


@pytest.mark.parametrize(
    "wrong",
    [
        {"cparams": {"clevel": 10}},
        {"cparams": {"clevle": 9}},
        {"cparams": {"codec": 33}},
        {"cparams": {"filters": [1, 3]}},
        {"chunksize": 2**31},
        {"meta": {"n" * 32: 1}},
        {"meta": {"m": object()}},
        {"data": np.arange(10)[::2]},
        {"dparams": {"threads": 3}},
    ],
    ids=[
        "clevel out of range",
        "no such field",
        "no such codec",
        "delta behind a shuffle",
        "chunksize",
        "meta name",
        "meta value",
        "strided",
        "dparams",
    ],
)
def test_the_old_file_stays_when_an_argument_of_the_new_one_is_wrong(wrong: dict[str, Any], path: Path) -> None:
    SChunk(800, ITEMS, urlpath=path).close()
    before = path.read_bytes()
    with pytest.raises((TypeError, ValueError)):
        SChunk(**{"data": ITEMS, "urlpath": path, "mode": "w", **wrong})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_old_file_stays_when_compression_of_the_new_one_fails(path: Path) -> None:
    SChunk(800, ITEMS, urlpath=path).close()
    before = path.read_bytes()

    def fail(*_: object) -> int:
        raise ZeroDivisionError

    superchunk.register_codec("broken", 203, fail, fail)
    try:
        with pytest.raises(ZeroDivisionError):
            SChunk(800, ITEMS, urlpath=path, mode="w", cparams={"codec": 203, "nthreads": 1}, dparams={"nthreads": 1})
    finally:
        superchunk.ucodecs_registry.clear()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_errors_of_opening_say_what_is_wrong(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=path.name):
        superchunk.open(path)
    path.write_bytes(b"no frame" * 30)
    with pytest.raises(superchunk.FormatError, match=r"s\.b2frame.*magic at byte 1"):
        superchunk.open(path)
    frame = SChunk(800, ITEMS).to_cframe()
    path.write_bytes(frame[:-10])
    with pytest.raises(superchunk.TruncatedError, match=f"{len(frame)} bytes"):
        superchunk.open(path)
    path.write_bytes(frame[:0x19] + bytes([0x15]) + frame[0x1A:])
    with pytest.raises(superchunk.NewerFormatError, match="version"):
        superchunk.open(path)
    path.write_bytes(frame)
    path.chmod(0)
    if os.geteuid():  # root may read everything
        with pytest.raises(OSError, match=path.name):
            superchunk.open(path)
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)


# Parameters.


def test_unknown_fields_are_named() -> None:
    for call in (
        lambda: superchunk.compress2(ITEMS, clevle=9),  # type: ignore[call-arg]
        lambda: superchunk.compress2(ITEMS, cparams={"clevle": 9}),  # type: ignore[arg-type]
        lambda: superchunk.decompress2(superchunk.compress2(ITEMS), clevle=9),  # type: ignore[call-overload]
        lambda: SChunk(cparams={"clevle": 9}),  # type: ignore[arg-type]
        lambda: SChunk(dparams={"clevle": 9}),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="clevle"):
            call()


def test_new_parameters_leave_typesize_and_blocksize_of_existing_data_alone(path: Path) -> None:
    data = ITEMS.astype(np.int16)
    with SChunk(800, data, urlpath=path, cparams={"typesize": 2, "blocksize": 200}) as s:
        s.cparams = CParams(clevel=1)
        assert (len(s), s.typesize, s.blocksize, s.cparams.clevel) == (1500, 2, 200, 1)
        assert s.cparams.typesize == 2
    for mode in ("r", "a"):
        with superchunk.open(path, mode, cparams=CParams(clevel=2)) as s:
            assert (len(s), s.typesize, s.blocksize, s.cparams.clevel) == (1500, 2, 200, 2)
    empty = SChunk(cparams=CParams(typesize=2))
    empty.cparams = CParams(typesize=4)
    empty.append_data(b"12345678")
    assert (len(empty), empty.typesize) == (2, 4)


def test_the_callers_list_of_filters_stays_his_own_and_none_means_defaults() -> None:
    mine = [0, 1, 0, 0, 0, 0]
    params = CParams(filters=mine)
    assert mine == [0, 1, 0, 0, 0, 0]
    assert all(type(number) is int for number in mine)
    mine[0] = 2
    assert params.filters[0] is superchunk.Filter.NOFILTER
    assert len(SChunk(data=ITEMS, cparams=None, dparams=None, storage=None)) == 1500


def test_nan_is_refused_for_items_that_cannot_be_nan() -> None:
    for typesize in (1, 2, 3, 16):
        s = SChunk(48, cparams={"typesize": typesize})
        with pytest.raises(ValueError, match="NaN"):
            s.fill_special(10, SpecialValue.NAN)
        s.append_data(bytes(48))
        with pytest.raises(ValueError, match="NaN"):
            s.update_special(0, SpecialValue.NAN)


def test_uninitialised_chunks_read_as_zeros_not_as_old_memory() -> None:
    s = SChunk(8000, cparams={"typesize": 8})
    s.fill_special(3000, SpecialValue.UNINIT)
    assert s[:] == bytes(24_000)


def test_close_and_the_end_of_with_close(path: Path) -> None:
    with SChunk(800, ITEMS, urlpath=path) as s:
        before = len(list(Path("/proc/self/fd").iterdir()))
    assert len(list(Path("/proc/self/fd").iterdir())) == before - 1
    with pytest.raises(superchunk.ClosedError):
        s[0]


def test_importing_starts_nothing_and_the_environment_overrules_nothing() -> None:
    code = (
        "import threading, superchunk as s;"
        "assert threading.active_count() == 1;"
        "assert s.compress2(b'x' * 5000, clevel=9) == s.compress2(b'x' * 5000, cparams=s.CParams(clevel=9));"
        "print(s.CParams().nthreads == s.nthreads)"
    )
    environment = {**os.environ, "BLOSC_NTHREADS": "7", "BLOSC_CLEVEL": "0", "BLOSC_LOCKING": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


# Python objects.


@pytest.mark.parametrize("dtype", [object, [("a", "i4"), ("b", object)]])
def test_arrays_of_python_objects_are_neither_stored_nor_written_into(dtype: Any) -> None:
    objects = np.zeros(4, dtype=dtype)
    s = SChunk(800, ITEMS)
    chunk = superchunk.compress2(ITEMS[:4])
    calls: list[Callable[[], object]] = [
        lambda: superchunk.compress(objects),
        lambda: superchunk.compress2(objects),
        lambda: superchunk.decompress(chunk, objects),
        lambda: superchunk.decompress2(chunk, objects),
        lambda: SChunk(data=objects),
        lambda: s.append_data(objects),
        lambda: s.get_slice(0, 2, objects),
        lambda: s.decompress_chunk(0, objects),
        lambda: next(s.iterchunks(object)),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert objects.tolist() == np.zeros(4, dtype=dtype).tolist()


def test_a_field_with_an_o_in_its_name_is_no_python_object() -> None:
    items = np.zeros(4, dtype=[("O", "i4"), ("TO", "f8")])
    assert SChunk(data=items)[:] == items.tobytes()


# Packed arrays; more in test_packed.py.


def test_the_kind_of_a_tensor_goes_by_type_and_any_array_like_is_taken() -> None:
    for value in (np.array(["my tensor"]), np.float64(1.5), [1, 2], np.arange(10)[::3], np.arange(6).reshape(2, 3).T):
        frame = superchunk.pack_tensor(value)
        assert superchunk.schunk_from_cframe(frame).vlmeta["__pack_tensor__"][0] == "numpy"
        assert np.array_equal(superchunk.unpack_tensor(frame), np.asarray(value))


def test_saving_a_tensor_returns_the_bytes_written(tmp_path: Path) -> None:
    noise = np.random.default_rng(3).random(2000)
    for contiguous in (True, False):
        path = tmp_path / str(contiguous)
        nbytes = superchunk.save_tensor(noise, path, contiguous=contiguous)
        files = [path] if contiguous else list(path.iterdir())
        assert nbytes == sum(file.stat().st_size for file in files)


def test_unpacking_runs_nothing(tmp_path: Path) -> None:
    target = tmp_path / "touched"

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (target,)

    for value in (Evil(), [Evil()], np.array([Evil()])):
        chunk = superchunk.compress2(pickle.dumps(value))
        for unpack in (superchunk.unpack, superchunk.unpack_array):
            with pytest.raises(RuntimeError, match="pickle"):
                unpack(chunk)
    assert not target.exists()


def test_an_entry_that_claims_more_than_there_is_reads_no_other_memory() -> None:
    s = SChunk(data=ITEMS[:3])
    s.vlmeta["__pack_tensor__"] = ("numpy", (4,), "<i8")
    with pytest.raises(RuntimeError, match="24 bytes"):
        superchunk.unpack_array2(s.to_cframe())


# Arrays.


def test_the_schunk_of_an_array_that_is_gone_works() -> None:
    schunk = superchunk.asarray(np.arange(100), chunks=(10,)).schunk
    view = superchunk.expand_dims(superchunk.zeros((5, 5)))
    gc.collect()
    assert schunk.nchunks == 10
    assert np.frombuffer(schunk[:], np.int64).tolist() == list(range(100))
    assert view.schunk.nbytes >= 200


def test_blocks_that_are_given_are_kept() -> None:
    a = superchunk.zeros(1000, blocks=(7,))
    assert a.blocks == (7,)
    assert a[:].tolist() == [0.0] * 1000


def test_a_copy_with_another_dtype_is_cast() -> None:
    a = superchunk.asarray(np.array([1.5, -2.25, 3.0]))
    for dtype in (np.int32, np.float32, ">f8", np.complex64):
        b = a.copy(dtype=dtype)
        assert b.dtype == dtype
        assert np.array_equal(b[:], a[:].astype(dtype))


def test_resizing_keeps_the_number_of_dimensions_and_grows_by_zeros() -> None:
    a = superchunk.asarray(np.ones((6, 6)), chunks=(4, 4), blocks=(2, 2))
    for wrong in ((6,), (6, 6, 6)):
        with pytest.raises(ValueError, match="dimensions"):
            a.resize(wrong)
    a.resize((3, 3))
    a.resize((6, 6))
    expected = np.zeros((6, 6))
    expected[:3, :3] = 1
    assert a[:].tolist() == expected.tolist()


def test_values_are_broadcast_when_assigned() -> None:
    plain = np.zeros((4, 3))
    a = superchunk.asarray(plain)
    changes: list[tuple[Any, Any]] = [
        (slice(0, 2), np.array([1.0, 2.0, 3.0])),
        ([0, 2], 7),
        ((slice(None), 1), np.array([[5.0]])[0]),
    ]
    for key, value in changes:
        plain[key] = value
        a[key] = value
        assert a[:].tolist() == plain.tolist()


def test_nans_are_of_kinds_that_have_them() -> None:
    assert np.isnan(superchunk.nans(5, dtype=np.float32)[:]).all()
    for dtype in (np.int64, np.int32, "S4", bool, [("a", "f8")]):
        with pytest.raises(ValueError, match=r"[nN]a[nN]"):
            superchunk.nans(5, dtype=dtype)


def test_arrays_of_python_objects_are_refused_everywhere() -> None:
    for dtype in (object, [("a", object)]):
        plain = np.zeros(3, dtype=dtype)
        calls: list[tuple[Any, ...]] = [
            (superchunk.asarray, plain),
            (superchunk.zeros, 3, dtype),
            (superchunk.empty, 3, dtype),
            (superchunk.full, 3, 0, dtype),
        ]
        for call, *arguments in calls:
            with pytest.raises(TypeError):
                call(*arguments)


@pytest.mark.parametrize(
    "dtype", ["V7", {"names": ["a", "b"], "formats": ["i1", "<i8"], "offsets": [0, 8], "itemsize": 24}]
)
def test_void_and_padded_dtypes_come_back(dtype: Any, path: Path) -> None:
    plain = np.zeros(5, dtype=dtype)
    a = superchunk.asarray(plain, urlpath=path)
    assert a.dtype == plain.dtype
    a.schunk.close()
    b: Any = superchunk.open(path)
    assert (b.dtype, b[:].tobytes()) == (plain.dtype, plain.tobytes())


def test_fields_of_a_temporary_array_work() -> None:
    fields = superchunk.asarray(np.ones(3, dtype=[("x", "i4"), ("y", "f8")])).fields
    gc.collect()
    assert fields["x"][:].tolist() == [1, 1, 1]


def test_an_array_opened_with_w_stays_and_is_writable(path: Path) -> None:
    superchunk.asarray(np.arange(10), urlpath=path).schunk.close()
    a: Any = superchunk.open(path, "w")
    a[0] = 5
    assert a[:3].tolist() == [5, 1, 2]
