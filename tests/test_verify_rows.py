"""`verify` of chunks in a row, which are checked together, says what it says of each by itself."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

import superchunk
from superchunk import _engine
from superchunk._format.frame_index import Index, special_entry
from superchunk._integrity import check_chunk
from superchunk._integrity.chunk_locations import FilePlaces
from superchunk._store.frame_loading import parse_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from superchunk._store.frame_loading import Loaded

CHUNK = 400
COUNT = 150


@pytest.fixture(autouse=True)
def short_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few chunks be as many as many."""
    monkeypatch.setattr(check_chunk, "_SLAB", 64)
    monkeypatch.setattr(check_chunk, "_ROW_PART", 5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.b2frame"


def even(path: Path) -> None:
    """Write chunks of one size, some of them special, and a short one."""
    rng = random.Random(1)
    with superchunk.SChunk(CHUNK, urlpath=path, mode="w", cparams={"typesize": 4}) as s:
        for n in range(COUNT):
            s.append_data(bytes(CHUNK) if n % 7 == 3 else rng.randbytes(CHUNK - n) + bytes(n))
        s.append_data(rng.randbytes(100))


def uneven(path: Path) -> None:
    """Write chunks whose sizes differ, large ones among them."""
    rng = random.Random(2)
    with superchunk.SChunk(urlpath=path, mode="w", cparams={"typesize": 1, "clevel": 0}) as s:
        for n in range(COUNT):
            s.append_chunk(superchunk.compress2(rng.randbytes(300_000 if n % 60 == 9 else 3 * n + 1), typesize=1))


def foreign(path: Path) -> None:
    """Write chunks without seals."""
    with superchunk.SChunk(CHUNK, urlpath=path, mode="w", cparams={"typesize": 4}, seal=False) as s:
        for n in range(COUNT):
            s.append_data(np.arange(CHUNK // 4, dtype=np.int32) * (n + 1))


MAKERS: list[Callable[[Path], None]] = [even, uneven, foreign]


def load(raw: bytes) -> Loaded:
    return parse_frame(lambda n, at: raw[at : at + n], len(raw), lambda at, limit: raw[at : at + limit])


def both(path: Path, *, offset: int = 0, decode: bool = False, nthreads: int = 2) -> superchunk.VerifyReport:
    """Return the report about a file, which must be the same without the look at rows."""
    together = superchunk.verify(path, offset=offset, decode=decode, nthreads=nthreads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FilePlaces, "check_run", lambda *_: None)
        assert superchunk.verify(path, offset=offset, decode=decode, nthreads=nthreads) == together
    return together


def with_entries(raw: bytes, entries: list[int]) -> bytes:
    """Return a frame with other entries, and without a fingerprint."""
    loaded = load(raw)
    at = loaded.header.header_len + loaded.header.cbytes
    chunk = Index(entries).to_chunk()
    trailer = raw[loaded.header.frame_len - loaded.trailer_len : loaded.header.frame_len - 17] + bytes(17)
    head = bytearray(raw[: loaded.header.header_len])
    head[0x10:0x18] = (at + len(chunk) + len(trailer)).to_bytes(8, "big")
    return bytes(head) + raw[loaded.header.header_len : at] + chunk + trailer


@pytest.mark.parametrize("make", MAKERS)
def test_sound_frames_go_the_short_way(
    path: Path, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(path)
    report = both(path)
    assert report.status == ("not sealed" if make is foreign else "sound")
    assert both(path, decode=True, nthreads=1).chunks == report.chunks
    raw = path.read_bytes()
    assert superchunk.verify(raw).chunks == report.chunks
    path.write_bytes(bytes(77) + raw + bytes(9))
    assert both(path, offset=77).chunks == report.chunks
    if make is not foreign:
        monkeypatch.setattr(_engine, "check_seals", lambda *_: pytest.fail("asked about single chunks"))
        assert superchunk.verify(path, offset=77).chunks == report.chunks


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("seed", range(12))
def test_flipped_bits(path: Path, make: Callable[[Path], None], seed: int) -> None:
    make(path)
    raw = bytearray(path.read_bytes())
    loaded = load(bytes(raw))
    base, rng = loaded.header.header_len, random.Random(seed)
    stored = [entry for entry in loaded.index.slice(0, len(loaded.index)) if entry >= 0]
    for entry in rng.sample(stored, 1 + seed):
        # In headers, seals, contents.
        at = base + max(entry + rng.choice([0, 3, 4, 5, 7, 8, 12, 13, 14, 15, 30, 31, 40, -1, -9, -16]), 0)
        raw[at] ^= 1 << rng.randrange(8)
    path.write_bytes(raw)
    report = both(path, decode=seed % 4 == 3)
    assert report.status == "damaged" or make is foreign


@pytest.mark.parametrize("make", MAKERS)
def test_lost_seals_and_tails(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    raw = path.read_bytes()
    loaded = load(raw)
    stored = [entry for entry in loaded.index.slice(0, len(loaded.index)) if entry >= 0]
    for number in (1, 20, 64, len(stored) - 1):
        at = loaded.header.header_len + stored[number]
        path.write_bytes(raw[: at - 16] + bytes(16) + raw[at:])
        both(path)
        for cut in (at - 17, at - 1, at, at + 31, at + 40):
            path.write_bytes(raw[:cut])
            both(path)
            path.write_bytes(raw[:cut] + bytes(len(raw) - cut))
            both(path)


@pytest.mark.parametrize("make", MAKERS)
def test_hostile_entries(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    raw = path.read_bytes()
    good = list(load(raw).index.slice(0, len(load(raw).index)))
    room = load(raw).header.cbytes
    first, other = (n for n, entry in enumerate(good) if entry >= 0 and n in (30, 90))
    for wrong in (good[other], good[first] + 1, good[first] + 16, -1, special_entry(1), room - 32, room, 2**62):
        path.write_bytes(with_entries(raw, [*good[:first], wrong, *good[first + 1 :]]))
        both(path)
    path.write_bytes(with_entries(raw, good[::-1]))
    both(path)
    # Within the first chunk, each a byte further on.
    path.write_bytes(with_entries(raw, [max(good[0], 0) + n for n in range(len(good))]))
    assert both(path).status == "damaged"


def test_a_size_that_is_not_the_frames(path: Path) -> None:
    even(path)
    raw = bytearray(path.read_bytes())
    loaded = load(bytes(raw))
    for number in (2, 100, COUNT):
        at = loaded.header.header_len + loaded.index[number]
        chunk = superchunk.compress2(bytes(range(99)) + b"!", typesize=4, clevel=0)[:132]
        other = superchunk.compress2(bytes(120) if number == COUNT else b"ab" * 60, typesize=4)
        assert len(other) < len(chunk)
        raw[at : at + len(other) + 16] = other + _engine.seal(other)
    path.write_bytes(raw)
    report = both(path)
    assert [chunk.nchunk for chunk in report.damaged_chunks] == [2, 100, COUNT]
    assert all("bytes of data" in chunk.reason for chunk in report.damaged_chunks)


def test_a_chunk_that_claims_much_does_not_end_the_search(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with superchunk.SChunk(CHUNK, urlpath=path, mode="w", cparams={"typesize": 4}) as s:
        for n in range(COUNT):
            s.append_data(np.arange(CHUNK // 4, dtype=np.int32) * (n + 1))
    raw = bytearray(path.read_bytes())
    loaded = load(bytes(raw))
    monkeypatch.setattr(check_chunk, "_SLAB_BYTES", len(raw) // 4)
    raw[loaded.header.header_len + loaded.index[1] + 14] = 0x40
    path.write_bytes(raw)
    report = both(path)
    assert [chunk.nchunk for chunk in report.damaged_chunks] == [1]
    assert "reach beyond the data" in report.damaged_chunks[0].reason
    assert report.chunks["in doubt"] == 0
