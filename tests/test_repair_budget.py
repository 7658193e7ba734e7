"""What `repair` does with chunks and claims that a budget cannot or need not look at: kept, and never called lost."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hostile_index import CHUNKSIZE, ZEROS, chunk, frame, index_of

import superchunk
from superchunk import _engine
from superchunk._integrity.budget import Budget
from superchunk.exceptions import FormatError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ITEMS = 100


def data(seed: int, items: int = ITEMS) -> bytes:
    return np.random.default_rng(seed).integers(0, 5000, items, dtype=np.int32).tobytes()


def contents(path: str | Path | None) -> list[bytes]:
    assert path is not None
    with superchunk.open(path) as s:
        return [s.decompress_chunk(n) or b"" for n in range(s.nchunks)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.b2frame"


def flip(path: Path, at: int, value: int | None = None) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] = raw[at] ^ 0xFF if value is None else value
    path.write_bytes(raw)


def compressible(path: Path, nchunks: int) -> None:
    """Write a frame that takes a hundred bytes for each MiB, without seals."""
    items = np.zeros(2**18, dtype=np.int32)
    with superchunk.SChunk(2**20, urlpath=path, mode="w", seal=False, cparams={"typesize": 4}) as s:
        for n in range(nchunks):
            items[0] = n + 1
            s.append_data(items)
        s.vlmeta["a"] = "text"


def test_a_compressible_frame_with_a_damaged_trailer_comes_back_whole(path: Path) -> None:
    compressible(path, 1200)
    flip(path, path.stat().st_size - 23)
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 1200, "doubtful": 0, "lost": 0}


def test_chunks_beyond_the_budget_are_kept_and_doubtful(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compressible(path, 20)
    wanted = contents(path)
    flip(path, path.stat().st_size - 23)
    monkeypatch.setattr(Budget, "of", classmethod(lambda _cls, _size: Budget(5 * 2**20 + 2**12, 2**30, 2**30)))
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 5, "doubtful": 15, "lost": 0}
    assert "not decoded" in report.listed[0].reason
    assert contents(report.output) == wanted


@pytest.mark.parametrize("chunksize", [-1, 4 * ITEMS])
@pytest.mark.parametrize("top", [0x01, 0x40, 0x7F])
def test_one_damaged_size_costs_one_chunk(path: Path, chunksize: int, top: int) -> None:
    with superchunk.SChunk(chunksize=chunksize, urlpath=path, mode="w", cparams={"typesize": 4}) as s:
        for n in range(6):
            s.append_data(data(n))
        first = s.get_chunk(0)
    flip(path, path.read_bytes().find(first) + 7, top)
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 5, "doubtful": 0, "lost": 1}
    assert contents(report.output)[1:] == [data(n) for n in range(1, 6)]


def test_what_can_be_moved_is_not_decoded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with superchunk.SChunk(4 * ITEMS, urlpath=path, mode="w", cparams={"typesize": 4}) as s:
        for n in range(6):
            s.append_data(data(n))
        third = s.get_chunk(3)
    flip(path, path.read_bytes().find(third) + 40)
    decoded: list[Any] = []
    read = _engine.read

    def counted(requests: Any, *args: Any, **kwargs: Any) -> Any:
        decoded.extend(requests)
        return read(requests, *args, **kwargs)

    monkeypatch.setattr(_engine, "read", counted)
    report = superchunk.repair(path)
    assert report.chunks["whole"] == 5
    assert len([one for one in decoded if isinstance(one[0], tuple)]) <= 1  # the damaged one


@pytest.mark.parametrize("contiguous", [True, False])
def test_variable_length_blocks_with_one_bad_chunk(path: Path, contiguous: bool) -> None:  # noqa: FBT001
    blocks = [[data(10 * n + k, 20 + k) for k in range(3)] for n in range(5)]
    with superchunk.SChunk(chunksize=-1, urlpath=path, mode="w", contiguous=contiguous, cparams={"typesize": 1}) as s:
        for one in blocks:
            s.append_vlblocks(one)
        third = s.get_chunk(2)
    victim = path if contiguous else path / "00000002.chunk"
    flip(victim, victim.read_bytes().find(third) + 33)
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 4, "doubtful": 0, "lost": 1}
    with superchunk.open(str(report.output)) as s:
        assert [s.get_vlblocks(n) for n in (0, 1, 3, 4)] == [blocks[n] for n in (0, 1, 3, 4)]
        assert not any(b"".join(s.get_vlblocks(2)))


@pytest.mark.parametrize("seal", [True, False])
def test_a_chunk_that_claims_no_bytes(path: Path, seal: bool) -> None:  # noqa: FBT001
    with superchunk.SChunk(4 * ITEMS, urlpath=path, mode="w", seal=seal, contiguous=False) as s:
        for n in range(4):
            s.append_data(data(n))
    victim = path / "00000001.chunk"
    raw = bytearray(victim.read_bytes())
    raw[:] = _engine.special_chunk(3, 8, 8, b"12345678")[:40].ljust(len(raw), b"\0")
    raw[4:8] = bytes(4)
    victim.write_bytes(raw)
    (path / "00000002.chunk").unlink()
    index = bytearray((path / "chunks.b2frame").read_bytes())
    index[0x24] ^= 0x55  # nbytes
    (path / "chunks.b2frame").write_bytes(index)
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 2, "doubtful": 0, "lost": 2}
    assert contents(report.output)[::3] == [data(0), data(3)]


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("at", range(0x1D, 0x26))
def test_an_array_of_c_blosc2_with_a_damaged_nbytes(path: Path, at: int, contiguous: bool) -> None:  # noqa: FBT001
    blosc2 = pytest.importorskip("blosc2", reason="the other writer")
    items = np.arange(600, dtype=np.int32).reshape(30, 20)
    blosc2.asarray(items, chunks=(10, 10), blocks=(5, 10), urlpath=str(path), mode="w", contiguous=contiguous)
    flip(path if contiguous else path / "chunks.b2frame", at, 0x37)
    if superchunk.verify(path).status != "damaged":
        assert at == 0x1D  # a marker that nobody reads
        return
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 6, "doubtful": 0, "lost": 0}
    assert np.array_equal(superchunk.open(str(report.output))[:], items)


@pytest.mark.parametrize("writer", ["sealed", "unsealed", "blosc2"])
def test_an_array_whose_header_has_a_damaged_typesize(path: Path, writer: str) -> None:
    items = np.arange(600, dtype=np.int32).reshape(30, 20)
    made: dict[str, Any] = {"chunks": (10, 10), "blocks": (5, 10), "urlpath": str(path), "mode": "w"}
    if writer == "blosc2":
        pytest.importorskip("blosc2", reason="the other writer").asarray(items, **made)
    else:
        superchunk.asarray(items, **made, seal=writer == "sealed")
    flip(path, 0x33, 8)
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 6, "doubtful": 0, "lost": 0}
    array = superchunk.open(str(report.output))
    assert (array.dtype, array.shape) == (items.dtype, items.shape)
    assert np.array_equal(array[:], items)


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_advice_for_an_array_that_was_cut_works(path: Path, cut: int) -> None:
    items = np.arange(600, dtype=np.int32).reshape(30, 20)
    superchunk.asarray(items, chunks=(10, 10), blocks=(5, 10), urlpath=path, mode="w")
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(FormatError) as error:
        superchunk.open(path)
    if "recover=True" in str(error.value):
        superchunk.open(path, recover=True)
    report = superchunk.repair(path)
    assert np.array_equal(superchunk.open(str(report.output))[:], items)


def test_recover_makes_a_frame_of_the_commit_that_open_reads(path: Path) -> None:
    with superchunk.SChunk(4 * ITEMS, urlpath=path, mode="w", cparams={"typesize": 4}) as s:
        for n in range(4):
            s.append_data(data(n))
        s.flush()
        s.delete_chunk(0)
        s.append_data(data(9))
        s.flush()
        newest = s.get_chunk(3)
    flip(path, path.read_bytes().find(newest) + 6)
    flip(path, path.stat().st_size - 3)  # the fingerprint, so that open() looks back
    with pytest.raises(FormatError, match="recover=True"):
        superchunk.open(path)
    with superchunk.open(path, recover=True) as s:
        wanted = [s.decompress_chunk(n) for n in range(s.nchunks)]
    report = superchunk.repair(path, path.with_suffix(".old"), recover=True)
    assert contents(report.output) == wanted
    assert report.chunks == {"whole": len(wanted), "doubtful": 0, "lost": 0}
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 3, "doubtful": 0, "lost": 1}
    assert contents(report.output)[:3] == [data(1), data(2), data(3)]


# Claims beyond the budget of a file.


def weighed(call: Callable[[], object]) -> int:
    """Return the most memory that a call takes, which may end in an error of the family."""
    tracemalloc.start()
    try:
        call()
    except SuperchunkError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("kind", ["one chunk", "one chunk and a special"])
def test_claims_of_a_hundred_million_chunks_are_refused_at_once(path: Path, kind: str) -> None:
    nchunks = 10**8 if kind == "one chunk" else 10**6
    raw = frame(nchunks, index_of(nchunks, kind), chunk(), nbytes=nchunks * CHUNKSIZE)
    assert len(raw) < 10_000
    path.write_bytes(raw)
    for call in (
        lambda: superchunk.open(path).nchunks,
        lambda: superchunk.open(path).cbytes,
        lambda: str(superchunk.open(path).info),
        lambda: superchunk.schunk_from_cframe(raw).cbytes,
        lambda: superchunk.verify(path),
        lambda: superchunk.repair(path),
    ):
        assert weighed(call) < 32 * 2**20
    with pytest.raises(FormatError, match="stored chunks"):
        _ = superchunk.open(path).cbytes
    assert superchunk.verify(path).status == "damaged"
    assert contents(path.with_name("x.repaired.b2frame")) != []


def test_entries_of_one_special_value_are_counted_at_once(path: Path) -> None:
    nchunks, stored = 10**5, chunk()
    path.write_bytes(frame(nchunks, index_of(nchunks, "specials"), stored, nbytes=nchunks * CHUNKSIZE))
    with superchunk.open(path) as s:
        assert s.cbytes == len(stored) + 32 * (nchunks - 1)
    flip(path, path.stat().st_size - 23)
    assert weighed(lambda: superchunk.repair(path)) < 32 * 2**20
    with superchunk.open(path.with_name("x.repaired.b2frame")) as s:
        assert s.nchunks == nchunks
        assert s.decompress_chunk(nchunks - 1) == _engine.decompress(stored)


def test_an_index_of_uninitialised_values_is_refused(path: Path) -> None:
    path.write_bytes(frame(3, index_of(3, "uninitialised"), chunk(), nbytes=3 * CHUNKSIZE))
    with pytest.raises(FormatError, match="uninitialised"):
        superchunk.open(path)
    found = superchunk.verify(path)
    assert [part.status for part in found.parts if part.name == "index chunk"] == ["damaged"]
    assert superchunk.repair(path).nchunks == 1


# Special entries where sizes vary: one has what the others leave, more have no size.


def entries(*values: int) -> bytes:
    raw = b"".join(value.to_bytes(8, "little", signed=True) for value in values)
    return _engine.compress(raw, _engine.EncodeParams(typesize=8, clevel=0))


ZERO = int.from_bytes(ZEROS, "little", signed=True)


def test_one_special_entry_where_sizes_vary_has_what_the_others_leave(path: Path) -> None:
    stored = chunk()
    path.write_bytes(frame(2, entries(ZERO, 0), stored, nbytes=CHUNKSIZE + 120, chunksize=0))
    wanted = [bytes(120), _engine.decompress(stored)]
    assert contents(path) == wanted
    found = superchunk.verify(path, decode=True)
    assert (found.status, found.chunks["special"], found.chunks["damaged"]) == ("not sealed", 1, 0)
    flip(path, path.stat().st_size - 23)
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 2, "doubtful": 0, "lost": 0}
    assert contents(report.output) == wanted


@pytest.mark.parametrize("nbytes", [CHUNKSIZE + 120, CHUNKSIZE, 17])
def test_special_entries_that_nothing_tells_the_size_of_are_refused(path: Path, nbytes: int) -> None:
    number = 2 if nbytes > CHUNKSIZE else 1
    stored = chunk()
    index = entries(*[ZERO] * number, 0)
    path.write_bytes(frame(number + 1, index, stored, nbytes=nbytes, chunksize=0))
    with pytest.raises(FormatError):
        contents(path)
    found = superchunk.verify(path)
    assert (found.status, found.chunks["special"], found.chunks["damaged"]) == ("damaged", 0, number)
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 1, "doubtful": 0, "lost": number}
    assert contents(report.output)[number] == _engine.decompress(stored)


def test_a_special_entry_of_c_blosc2_where_sizes_vary_is_sound(path: Path) -> None:
    blosc2 = pytest.importorskip("blosc2", reason="the other writer")
    s = blosc2.SChunk(chunksize=4 * ITEMS, urlpath=str(path), mode="w", contiguous=True, cparams={"typesize": 4})
    s.append_data(np.frombuffer(data(1), np.int32))
    s.append_data(np.zeros(30, np.int32))
    s.append_chunk(blosc2.compress2(data(2, 50), typesize=4))
    del s
    assert contents(path) == [data(1), bytes(120), data(2, 50)]
    assert superchunk.verify(path, decode=True).status == "not sealed"
    assert superchunk.repair(path).status == "nothing to do"


def test_cbytes_of_a_frame_as_bytes_counts_stored_and_special_chunks() -> None:
    with superchunk.SChunk(4 * ITEMS, cparams={"typesize": 4}) as s:
        for n in range(3):
            s.append_data(data(n))
        s.append_data(bytes(4 * ITEMS))
        s.append_data(bytes(4 * ITEMS))
        stored = [len(s.get_chunk(n)) for n in range(3)]
        raw = s.to_cframe()
    with superchunk.schunk_from_cframe(raw) as made:
        assert made.nchunks == 5
        assert made.cbytes == sum(stored) + 2 * 32


def test_a_frame_as_bytes_that_names_one_chunk_ten_million_times_is_refused_at_once() -> None:
    nchunks = 10**7
    raw = frame(nchunks, index_of(nchunks, "one chunk"), chunk(), nbytes=nchunks * CHUNKSIZE)
    assert weighed(lambda: superchunk.schunk_from_cframe(raw).cbytes) < 32 * 2**20
    with pytest.raises(FormatError, match="stored chunks"):
        _ = superchunk.schunk_from_cframe(raw).cbytes


@pytest.mark.parametrize("contiguous", [True, False])
def test_one_byte_of_a_sealed_index_is_put_right_by_the_fingerprint(path: Path, contiguous: bool) -> None:  # noqa: FBT001
    with superchunk.SChunk(4 * ITEMS, urlpath=path, mode="w", contiguous=contiguous, cparams={"typesize": 4}) as s:
        for n in range(4):
            s.append_data(data(n))
        s.flush()
        s.update_data(1, data(9), copy=True)
        s.update_data(3, data(8), copy=True)
    index = path if contiguous else path / "chunks.b2frame"
    parts = {part.name: part for part in superchunk.verify(path).parts}
    flip(index, parts["index chunk"].position + 32 + 8)  # the second entry
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 4, "doubtful": 0, "lost": 0}
    assert any("the fingerprint tells which" in note for note in report.notes)
    assert contents(report.output) == [data(0), data(9), data(2), data(8)]


def test_the_directory_of_a_sparse_frame_is_not_taken_for_a_frame_of_an_old_writer(path: Path) -> None:
    with superchunk.SChunk(400, urlpath=path, mode="w", contiguous=False, seal=False, cparams={"typesize": 4}) as s:
        s.append_data(data(0))
    flip(path / "chunks.b2frame", 0, 0x9C)
    assert superchunk.verify(path).status == "damaged"
    assert contents(superchunk.repair(path).output) == [data(0)]


def test_a_damaged_cbytes_does_not_hide_the_index(path: Path) -> None:
    with superchunk.SChunk(400, urlpath=path, mode="w", seal=False, cparams={"typesize": 4}) as s:
        for n in range(3):
            s.append_data(data(n) if n != 1 else bytes(400))
    flip(path, 0x2E)
    report = superchunk.repair(path)
    assert report.chunks == {"whole": 3, "doubtful": 0, "lost": 0}
    assert contents(report.output) == [data(0), bytes(400), data(2)]


def test_a_chunk_that_claims_the_bytes_of_others_does_not_hide_them(path: Path) -> None:
    with superchunk.SChunk(400, urlpath=path, mode="w", seal=False, cparams={"typesize": 4}) as s:
        for n in range(4):
            s.append_data(data(n))
    parts = {part.name: part for part in superchunk.verify(path).parts}
    raw = path.read_bytes()
    at = raw.index(data(1)[:16]) - 32 if data(1)[:16] in raw else parts["header"].length
    flip(path, parts["index chunk"].position, 0)
    found = path.read_bytes()
    size = int.from_bytes(found[at + 12 : at + 16], "little")
    path.write_bytes(found[: at + 12] + (size + 90).to_bytes(4, "little") + found[at + 16 :])
    assert {data(2), data(3)} <= set(contents(superchunk.repair(path).output))
