"""Options of an open handle hold as long as it is open, whichever way it was opened, and travel to its copies."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk
from superchunk import Codec, CParams, DParams, Filter, SChunk
from superchunk._store.os_file import system

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.b2frame"


@pytest.fixture(params=[True, False], ids=["file", "directory"])
def contiguous(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_mode_w_keeps_every_option(path: Path, *, contiguous: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    SChunk(data=b"x" * 1000, urlpath=path, contiguous=contiguous).close()
    synced: list[object] = []
    monkeypatch.setattr(system, "sync", synced.append)
    monkeypatch.setattr(system, "sync_named", synced.append)
    monkeypatch.setattr(system, "sync_filesystem", synced.append)
    s = superchunk.open(path, mode="w", sync="commit", seal=False, locking=True, deserialize="full")
    assert (s.nbytes, s.locking, s.contiguous) == (0, True, contiguous)
    s.append_data(np.random.default_rng(0).bytes(4000))
    s.vlmeta["box"] = SChunk(data=b"inner")
    assert synced, "each commit waits for the disk"
    assert s.vlmeta["box"][:] == b"inner"
    assert any(path.parent.rglob("*b2lock"))
    s.close()
    assert superchunk.verify(path).status == "not sealed"
    with superchunk.open(path, mode="w", compact_above=0.0) as s:
        for _ in range(3):
            s.append_data(np.random.default_rng(1).bytes(4000))
            s.flush()
            s.delete_chunk(0)
        s.append_data(b"abc")
    with superchunk.open(path) as s:
        assert s.dead_bytes < 1000


@pytest.mark.parametrize("mode", ["r", "a", "w"])
def test_the_lock_of_the_environment_is_taken_and_told_in_every_mode(
    path: Path, *, contiguous: bool, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLOSC_LOCKING", "1")
    with SChunk(data=b"x" * 1000, urlpath=path, contiguous=contiguous, mode="w") as s:
        assert s.locking
        assert s.vlmeta.locking
    with superchunk.open(path, mode=mode) as s, superchunk.open(path, mode="a") as other:
        assert (s.locking, other.locking) == (True, True)  # a second writer, which only the lock allows
        other.append_data(b"y" * 1000)
        assert s.nbytes == other.nbytes
    assert not SChunk(data=b"x").locking
    with superchunk.open(path, snapshot=True) as s:
        assert not s.locking  # who stays at one state waits for nobody


WAYS: dict[str, Callable[[Any, Path], Any]] = {
    "copy": lambda s, _: s.copy(),
    "copy to a file": lambda s, path: s.copy(urlpath=path.with_suffix(".copy"), mode="w"),
    "copy to a directory": lambda s, path: s.copy(urlpath=path.with_suffix(".folder"), contiguous=False, mode="w"),
    "copy compressed anew": lambda s, _: s.copy(cparams={"clevel": 1}),
    "copy.copy": lambda s, _: s.__copy__(),
    "copy.deepcopy": lambda s, _: s.__deepcopy__({}),
    "load": lambda _, path: superchunk.load(path, deserialize="full"),
    "pickle": lambda s, _: pickle.loads(pickle.dumps(s)),  # noqa: S301 - our own bytes
    "from_cframe": lambda s, _: superchunk.from_cframe(s.to_cframe(), deserialize="full"),
    "mmap mode c": lambda _, path: superchunk.open(path, mmap_mode="c", deserialize="full"),
    "constructor, to change": lambda _, path: superchunk.open(path, mode="a", deserialize="full"),
}


@pytest.mark.parametrize("array", [False, True], ids=["SChunk", "NDArray"])
@pytest.mark.parametrize("way", WAYS)
def test_metadata_that_is_read_whole_is_so_in_every_copy(path: Path, way: str, *, array: bool) -> None:
    made: Any = superchunk.asarray(np.arange(10), urlpath=path) if array else SChunk(data=b"x" * 10, urlpath=path)
    made.vlmeta["box"] = SChunk(data=b"inner")
    made.close()
    with superchunk.open(path, deserialize="full") as opened:
        copied = WAYS[way](opened, path)
        assert copied.vlmeta["box"][:] == b"inner"
        copied.close()
    with superchunk.open(path) as opened:
        if way in ("load", "from_cframe", "mmap mode c", "constructor, to change"):
            return
        copied = WAYS[way](opened, path)
        with pytest.raises(superchunk.UnsafeDeserializationError):
            _ = copied.vlmeta["box"]
        copied.close()


def test_a_new_container_reads_whole_metadata_if_it_was_asked_to(path: Path) -> None:
    for s in (SChunk(deserialize="full"), SChunk(urlpath=path, deserialize="full")):
        s.vlmeta["box"] = SChunk(data=b"inner")
        assert s.vlmeta["box"][:] == b"inner"
        s.close()


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
@pytest.mark.parametrize("where", ["memory", "file", "directory"])
def test_an_array_without_items_keeps_its_typesize_when_its_parameters_change(
    path: Path, where: str, shape: tuple[int, ...]
) -> None:
    place: Any = {} if where == "memory" else {"urlpath": path, "contiguous": where == "file"}
    a = superchunk.zeros(shape, dtype="f4", chunks=(10, *shape[1:]), **place)
    blocks = a.blocks
    a.schunk.cparams = CParams(codec=Codec.LZ4, clevel=9)
    assert (a.cparams.codec, a.cparams.typesize, a.schunk.typesize) == (Codec.LZ4, 4, 4)
    a.append(np.ones((5, *shape[1:]), "f4"))
    again: Any = superchunk.from_cframe(a.to_cframe())
    if where != "memory":
        a.close()
        assert superchunk.verify(path).status == "sound"
        again = superchunk.open(path)
    assert np.array_equal(again[:], np.ones((5, *shape[1:]), "f4"))
    assert (again.dtype, again.blocks, again.cparams.codec) == (np.dtype("f4"), blocks, Codec.LZ4)


def test_a_super_chunk_without_items_may_still_get_another_typesize() -> None:
    s = SChunk(cparams={"typesize": 4})
    s.cparams = CParams(typesize=2)
    assert s.typesize == 2


@pytest.fixture
def defaults() -> Iterator[None]:
    kept = dict(superchunk.cparams_dflts), dict(superchunk.dparams_dflts)
    filters = list(superchunk.cparams_dflts["filters"])
    yield
    superchunk.cparams_dflts.update({**kept[0], "filters": filters})
    superchunk.dparams_dflts.update(kept[1])


@pytest.mark.usefixtures("defaults")
def test_changed_defaults_hold_where_nothing_else_is_said(tmp_path: Path) -> None:
    superchunk.cparams_dflts["codec"] = Codec.LZ4
    superchunk.cparams_dflts["clevel"] = 1
    superchunk.cparams_dflts["filters"][5] = Filter.BITSHUFFLE
    superchunk.cparams_dflts["typesize"] = 4
    superchunk.dparams_dflts["nthreads"] = 1
    data = np.arange(1000)
    made: dict[str, Any] = {
        "SChunk": SChunk(),
        "SChunk of data": SChunk(data=data),
        "of some fields": SChunk(data=data, cparams={"use_dict": False}, dparams={}),
        "in a file": SChunk(data=data, urlpath=tmp_path / "a"),
        "zeros": superchunk.zeros(10),
        "asarray": superchunk.asarray(data),
        "text": superchunk.asarray(np.array(["a", "bc"])),
    }
    for name, each in made.items():
        found = each.cparams
        assert (found.codec, found.clevel, found.filters[5]) == (Codec.LZ4, 1, Filter.BITSHUFFLE), name
        assert each.dparams == DParams(nthreads=1), name
        assert found.typesize == (1 if name == "SChunk" else 8), name
    chunk = superchunk.compress2(data)
    assert superchunk.SChunk(chunksize=8000, cparams={"typesize": 8}).append_chunk(chunk) == 1
    assert (chunk[2] >> 5, chunk[21]) == (1, Filter.BITSHUFFLE.value)  # LZ4, and the filter of the last slot
    explicit = SChunk(data=data, cparams={"codec": Codec.ZLIB, "clevel": 3})
    assert (explicit.cparams.codec, explicit.cparams.clevel) == (Codec.ZLIB, 3)
    assert CParams().codec is Codec.ZSTD  # as in python-blosc2
    assert SChunk(cparams=CParams()).cparams.codec is Codec.ZSTD
    superchunk.cparams_dflts["level"] = 3
    with pytest.raises(TypeError, match="level"):
        SChunk()
    del superchunk.cparams_dflts["level"]


@pytest.mark.usefixtures("defaults")
def test_the_number_of_threads_is_a_default_too() -> None:
    before = superchunk.set_nthreads(2)
    superchunk.cparams_dflts["nthreads"] = 1
    assert (SChunk().cparams.nthreads, SChunk().dparams.nthreads) == (1, 2)
    superchunk.set_nthreads(3)
    assert (SChunk().cparams.nthreads, CParams().nthreads) == (3, 3)
    superchunk.set_nthreads(before)


def test_defaults_of_places_cannot_be_changed_and_say_so() -> None:
    with pytest.raises(TypeError, match="storage="):
        superchunk.storage_dflts["contiguous"] = True
    with pytest.raises(TypeError, match="storage="):
        superchunk.storage_dflts.update(contiguous=True)
    assert dict(superchunk.storage_dflts)["mode"] == "a"
