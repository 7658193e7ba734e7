"""Every single bit of a frame, flipped: found by `verify`, and named."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from flips import flipped, live_ranges, named

import superchunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from flips import Range

ITEMS = 60
LAYERS: dict[str | bytes, object] = {"m": b"abc", "k": {"x": 1}}


def numbers(seed: int, count: int = ITEMS) -> np.ndarray:
    return (np.arange(count, dtype=np.int32) * (seed + 3)) % 1009


def everything(path: Path) -> None:
    """Give it chunks of each kind, metalayers of both, and dead bytes."""
    with superchunk.SChunk(4 * ITEMS, urlpath=path, mode="w", meta=LAYERS, cparams={"typesize": 4}) as s:
        for seed in range(4):
            s.append_data(numbers(seed))
        s.append_data(np.zeros(ITEMS, np.int32))
        s.append_data(np.full(ITEMS, 7, np.int32))
        s.vlmeta["v"] = list(range(50))
        s.vlmeta["w"] = "x"
        s.delete_chunk(1)
        s.update_data(0, numbers(9), copy=True)


def tiny(path: Path) -> None:
    with superchunk.SChunk(4 * ITEMS, numbers(1), urlpath=path, mode="w"):
        pass


def varying(path: Path) -> None:
    with superchunk.SChunk(-1, urlpath=path, mode="w") as s:
        for count in (10, 40, 3):
            s.append_data(numbers(count, count))
        s.vlmeta["name"] = {"a": [1, 2, 3]}


def many(path: Path) -> None:
    """Give it an index that is compressed, which the others are too small for."""
    with superchunk.SChunk(128, urlpath=path, mode="w", meta={"m": b"abc"}) as s:
        for seed in range(120):
            s.append_data(numbers(seed, 32))


def only_special(path: Path) -> None:
    with superchunk.SChunk(400, urlpath=path, mode="w", cparams={"typesize": 4}) as s:
        s.fill_special(1000, superchunk.SpecialValue.ZERO)


def empty(path: Path) -> None:
    with superchunk.SChunk(400, urlpath=path, mode="w", meta=LAYERS) as s:
        s.vlmeta["v"] = 1


def check(path: Path, bits: Iterable[tuple[int, int]]) -> None:
    """Flip these bits, one after the other, and look at what is found."""
    raw = bytearray(path.read_bytes())
    assert superchunk.verify(path, nthreads=1).status == "sound"
    kinds: dict[int, Range] = {at: part for part in live_ranges(bytes(raw)) for at in range(part.start, part.stop)}
    for at, bit in bits:
        with flipped(raw, path, at, bit):
            report = superchunk.verify(path, nthreads=1)
        part = kinds.get(at)
        if part is None:
            assert report.status == "sound", (at, bit, str(report))
        else:
            assert report.status != "sound", (at, bit)
            assert part.names & named(report), (at, bit, part.names, str(report))
    assert path.read_bytes() == raw
    assert superchunk.verify(path, nthreads=1).status == "sound"


def all_bits(size: int) -> list[tuple[int, int]]:
    return [(at, bit) for at in range(size) for bit in range(8)]


@pytest.mark.parametrize("make", [everything, tiny, varying, only_special, empty])
def test_every_flip_in_live_bytes_is_found_and_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "x.b2frame"
    make(path)
    check(path, all_bits(path.stat().st_size))


def test_flips_in_a_compressed_index_and_in_header_and_trailer(tmp_path: Path) -> None:
    path = tmp_path / "x.b2frame"
    many(path)
    raw = path.read_bytes()
    wanted = [part for part in live_ranges(raw) if not any(name.startswith("chunk ") for name in part.names)]
    check(path, [(at, bit) for part in wanted for at in range(part.start, part.stop) for bit in range(8)])
    check(path, random.Random(5).sample(all_bits(len(raw)), 2000))


def test_what_is_damaged_is_named_alone_where_a_copy_or_a_seal_proves_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "x.b2frame"
    everything(path)
    raw = bytearray(path.read_bytes())
    for part in live_ranges(bytes(raw)):
        if part.names & {"header", "commit record"} or any(n.startswith(("chunk ", "metalayer ")) for n in part.names):
            # What a commit record says beside the header nobody else knows.
            for at in range(part.start + 32 * ("commit record" in part.names), part.stop):
                with flipped(raw, path, at, at % 8):
                    assert named(superchunk.verify(path, nthreads=1)) == part.names, (at, part)
