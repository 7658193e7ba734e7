"""Sparse frames between us and the package blosc2: after every operation by either side the other reads it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from oracle import blosc2

import superchunk
from superchunk import SChunk

if TYPE_CHECKING:
    from pathlib import Path

NITEMS = 100
NBYTES = 4 * NITEMS


def part(seed: int) -> bytes:
    """Return the content of a chunk: zeros, one value, or something that compresses a little."""
    if seed % 7 == 0:
        return bytes(NBYTES)
    if seed % 11 == 0:
        return seed.to_bytes(4, "little") * NITEMS
    return b"".join((seed * 7919 + n * n % 251).to_bytes(4, "little") for n in range(NITEMS))


def theirs(path: Path, mode: str = "r") -> Any:
    """Open a frame with the other implementation."""
    return blosc2.open(str(path), mode=mode)


def check(path: Path, model: list[bytes], vlmeta: dict[str, int]) -> None:
    """Compare what both sides read with what should be there."""
    other = theirs(path)
    assert [other.decompress_chunk(n) for n in range(other.nchunks)] == model
    assert other[:] == b"".join(model)
    assert dict(other.vlmeta[:]) == vlmeta
    with superchunk.open(path) as s:
        assert [s.decompress_chunk(n) for n in range(s.nchunks)] == model
        assert s[:] == b"".join(model)
        assert s.vlmeta[:] == vlmeta
        assert s.nbytes == NBYTES * len(model)


def one_change(
    s: Any,
    rng: random.Random,
    model: list[bytes],
    vlmeta: dict[str, int],
) -> None:
    """Make a change through either side's object, whose methods are the same."""
    what = rng.choice(["append", "append", "insert", "update", "update", "delete", "vlmeta"])
    if not model or (len(model) > 12 and what in ("append", "insert")):
        what = "delete" if model else "append"
    plain = part(rng.randrange(1000))
    place = rng.randrange(len(model) + (what == "insert")) if what != "append" else 0
    if what == "append":
        s.append_data(plain)
        model.append(plain)
    elif what == "insert":
        s.insert_data(place, plain, copy=True)
        model.insert(place, plain)
    elif what == "update":
        s.update_data(place, plain, copy=True)
        model[place] = plain
    elif what == "delete":
        s.delete_chunk(place)
        del model[place]
    else:
        vlmeta["v"] = rng.randrange(100)
        s.vlmeta["v"] = vlmeta["v"]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("begin", ["ours", "theirs"])
def test_both_sides_change_one_frame_in_turns(tmp_path: Path, begin: str, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path / "frame.b2frame"
    if begin == "ours":
        SChunk(chunksize=NBYTES, urlpath=path, contiguous=False, cparams={"typesize": 4}).close()
    else:
        blosc2.SChunk(chunksize=NBYTES, urlpath=str(path), contiguous=False, cparams={"typesize": 4})
    model: list[bytes] = []
    vlmeta: dict[str, int] = {}
    for _ in range(25):
        if rng.random() < 0.5:
            with superchunk.open(path, mode="a") as s:
                for _ in range(rng.randrange(1, 4)):
                    one_change(s, rng, model, vlmeta)
        else:
            one_change(theirs(path, "a"), rng, model, vlmeta)
        check(path, model, vlmeta)


def test_what_destroys_a_frame_of_theirs_does_not_destroy_ours(tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    with SChunk(chunksize=NBYTES, urlpath=path, contiguous=False, cparams={"typesize": 4}) as s:
        for n in range(600):
            s.append_data(part(7 * n + 1))
        for _ in range(599):
            s.delete_chunk(0)
    check(path, [part(7 * 599 + 1)], {})


def test_an_open_handle_of_theirs_reads_our_commits_or_fails(tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    with SChunk(chunksize=NBYTES, urlpath=path, contiguous=False, cparams={"typesize": 4}) as s:
        s.append_data(part(1))
        s.flush()
        other = theirs(path)
        assert other.decompress_chunk(0) == part(1)
        s.update_data(0, part(2), copy=True)
        s.append_data(part(3))
        s.flush()
        for n, plain in enumerate([part(2), part(3)]):
            try:
                found = other.decompress_chunk(n)
            except RuntimeError:  # it remembers ids, whose files are gone
                continue
            assert found == plain
        again = theirs(path)
        assert [again.decompress_chunk(n) for n in range(2)] == [part(2), part(3)]


def test_our_open_handle_follows_their_changes(tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    other = blosc2.SChunk(chunksize=NBYTES, urlpath=str(path), contiguous=False, cparams={"typesize": 4})
    other.append_data(part(1))
    with superchunk.open(path) as s:
        assert s[:] == part(1)
        other.append_data(part(2))
        assert s[:] == part(1) + part(2)
        other.update_data(0, part(3), copy=True)
        assert s[:] == part(3) + part(2)
        other.delete_chunk(0)
        assert s[:] == part(2)


def test_a_change_of_theirs_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    with SChunk(chunksize=NBYTES, urlpath=path, contiguous=False, cparams={"typesize": 4}, meta={"m": 1}) as s:
        for n in range(1, 5):
            s.append_data(part(n))
        s.flush()
    other = theirs(path, "a")
    other.meta["m"] = 2
    with superchunk.open(path, mode="a") as s:
        assert s.meta["m"] == 2
        s.append_data(part(5))
    check(path, [part(n) for n in range(1, 6)], {})


@pytest.mark.parametrize("chunksize", [-1, NBYTES])
def test_chunks_of_any_size_and_special_values_are_read(tmp_path: Path, chunksize: int) -> None:
    path = tmp_path / "frame.b2frame"
    sizes = [NBYTES, NBYTES // 2, NBYTES, 8] if chunksize < 0 else [NBYTES] * 4
    model = [part(n)[:size] for n, size in zip((1, 7, 11, 2), sizes, strict=True)]
    with SChunk(chunksize=chunksize, urlpath=path, contiguous=False, cparams={"typesize": 4}) as s:
        for plain in model:
            s.append_data(plain)
    other = theirs(path)
    assert [other.decompress_chunk(n) for n in range(other.nchunks)] == model


def test_frames_converted_both_ways_are_read(tmp_path: Path) -> None:
    model = [part(n) for n in range(20)]
    with SChunk(data=b"".join(model), chunksize=NBYTES, cparams={"typesize": 4}) as s:
        s.copy(urlpath=tmp_path / "a", contiguous=False).close()
    with superchunk.open(tmp_path / "a") as s:
        s.copy(urlpath=tmp_path / "b").close()
    for path in (tmp_path / "a", tmp_path / "b"):
        check(path, model, {})


def test_lazy_chunks_are_theirs(tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    with SChunk(chunksize=NBYTES, urlpath=path, contiguous=False, cparams={"typesize": 4}) as s:
        for n in range(1, 4):
            s.append_data(part(n))
        s.delete_chunk(0)
        s.flush()
        other = theirs(path)
        for n in range(2):
            assert s.get_lazychunk(n) == other.get_lazychunk(n)
