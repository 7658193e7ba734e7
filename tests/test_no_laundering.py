"""Damage is never copied into something that looks sound: whoever seals anew compares the old seals first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from cli_runner import fail

import superchunk
from superchunk import SChunk
from superchunk._format.integrity import SEAL_LEN
from superchunk._store.frame_bytes import read_cframe, write_cframe
from superchunk._store.frame_loading import parse_frame
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ITEMS = 500
DAMAGED = 3


def numbers(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 9000, ITEMS, dtype=np.int32)


def damage(path: Path, at: int) -> None:
    """Flip a bit of chunk 3, `at` bytes behind its first, or before the end of its seal."""
    file, start, length = path, 0, 0
    if path.is_dir():
        file = path / f"{DAMAGED:08X}.chunk"
        length = file.stat().st_size
    else:
        raw = path.read_bytes()
        loaded = parse_frame(lambda n, i: raw[i : i + n], len(raw), lambda i, n: raw[i : i + n])
        start = loaded.header.header_len + loaded.index[DAMAGED]
        length = loaded.index[DAMAGED + 1] - loaded.index[DAMAGED]
    raw = file.read_bytes()
    at = start + (at if at >= 0 else length + at)
    file.write_bytes(raw[:at] + bytes((raw[at] ^ 4,)) + raw[at + 1 :])


@pytest.fixture(params=[True, False], ids=["contiguous", "sparse"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "x.b2frame"
    with SChunk(4 * ITEMS, urlpath=path, mode="w", contiguous=request.param, cparams={"typesize": 4}) as s:
        for seed in range(6):
            s.append_data(numbers(seed))
    return path


COPIES: dict[str, Callable[[SChunk, str], object]] = {
    "to memory": lambda s, _: s.copy(),
    "to a file": lambda s, target: s.copy(urlpath=target, contiguous=True),
    "to a directory": lambda s, target: s.copy(urlpath=target, contiguous=False),
    "compressed anew": lambda s, target: s.copy(urlpath=target, cparams={"clevel": 1, "typesize": 4}),
    "to bytes": lambda s, _: s.to_cframe(),
}
# The last byte of data, one of the seal's hash, one of its mark.
PLACES = [-SEAL_LEN - 1, -1, -SEAL_LEN]


@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_of_a_damaged_chunk_is_refused(path: Path, tmp_path: Path, copy: str, at: int) -> None:
    target = tmp_path / "copy.b2frame"
    before = {one.name for one in tmp_path.iterdir()}
    damage(path, at)
    with superchunk.open(path) as s, pytest.raises(FormatError, match=f"chunk {DAMAGED}") as caught:
        COPIES[copy](s, str(target))
    assert "repair" in str(caught.value)
    assert {one.name for one in tmp_path.iterdir()} == before


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_of_a_sound_frame_is_made(path: Path, tmp_path: Path, copy: str) -> None:
    with superchunk.open(path) as s:
        COPIES[copy](s, str(tmp_path / "copy.b2frame"))


def test_what_is_kept_of_a_damaged_chunk_is_not_sealed_anew(path: Path) -> None:
    damage(path, -1)
    with superchunk.open(path, mode="a") as s:
        with pytest.raises(FormatError, match=f"chunk {DAMAGED}"):
            s[DAMAGED * ITEMS + 5 : DAMAGED * ITEMS + 9] = np.zeros(4, np.int32)
        s[DAMAGED * ITEMS : (DAMAGED + 1) * ITEMS] = numbers(77)  # nothing of it is kept
        s.flush()
    assert superchunk.verify(path).status == "sound"


def test_convert_refuses_and_leaves_nothing(path: Path, tmp_path: Path) -> None:
    damage(path, -1)
    assert f"chunk {DAMAGED}" in fail(1, "convert", path, tmp_path / "other.b2frame")
    assert not (tmp_path / "other.b2frame").exists()


def test_a_store_over_a_damaged_frame_in_memory_compares_too(tmp_path: Path) -> None:
    path = tmp_path / "x.b2frame"
    with SChunk(4 * ITEMS, urlpath=path, mode="w", cparams={"typesize": 4}) as s:
        for seed in range(6):
            s.append_data(numbers(seed))
    damage(path, -1)
    raw = path.read_bytes()
    with pytest.raises(FormatError, match=f"chunk {DAMAGED}"):
        write_cframe(read_cframe(raw))
    store = read_cframe(raw)
    store.delete(DAMAGED)
    store.insert(0, [superchunk.compress2(numbers(9).tobytes(), typesize=4)])  # has no seal, and needs none
    assert read_cframe(write_cframe(store)).nchunks == 6


def test_chunks_that_others_changed_are_copied(path: Path) -> None:
    blosc2 = pytest.importorskip("blosc2", reason="the other writer")
    s = blosc2.open(str(path), mode="a")
    s.update_data(DAMAGED, numbers(50), copy=True)
    del s
    with superchunk.open(path) as ours:
        assert np.array_equal(np.frombuffer(ours.copy()[:], np.int32)[DAMAGED * ITEMS :][:ITEMS], numbers(50))


def test_an_index_too_large_to_be_compared_when_opening_is_compared_before_copying(tmp_path: Path) -> None:
    path = tmp_path / "x.b2frame"
    rng = np.random.default_rng(1)
    with SChunk(40, urlpath=path, mode="w", cparams={"typesize": 4}) as s, s.transaction():
        for _ in range(3):
            s.append_data(np.frombuffer(rng.bytes(40), np.int32))
        for n in range(400):
            s.vlmeta[f"v{n % 15}"] = rng.bytes(100_000)
    raw = bytearray(path.read_bytes())
    raw[-200_000] ^= 1
    path.write_bytes(raw)
    with superchunk.open(path) as s, pytest.raises(FormatError, match="fingerprint"):
        s.copy()
