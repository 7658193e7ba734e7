"""python-blosc2 changes our sealed frames, we change them again: no false alarm, no stale seal."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk

if TYPE_CHECKING:
    from pathlib import Path

blosc2 = pytest.importorskip("blosc2", reason="the other writer")

ITEMS = 100


def noise(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2**31, ITEMS, dtype=np.int32)


def ours(path: Path, seed: int = 0) -> None:
    with superchunk.SChunk(
        4 * ITEMS, urlpath=path, mode="w", meta={"m": b"abc", "k": {"x": 1}}, cparams={"typesize": 4}
    ) as s:
        for n in range(4):
            s.append_data(np.arange(ITEMS, dtype=np.int32) * (n + seed + 1))
        s.append_data(np.zeros(ITEMS, np.int32))
        s.vlmeta["v"] = list(range(50))
        s.vlmeta["w"] = "x"


def set_vlmeta(name: str, value: object) -> Any:
    return lambda s, _rng: s.vlmeta.__setitem__(name, value)


def other_cparams(s: Any) -> Any:
    s.cparams = blosc2.CParams(codec=blosc2.Codec.LZ4, clevel=1, typesize=4)
    return s


OPERATIONS: dict[str, Any] = {
    "append": lambda s, rng: s.append_data(noise(rng)),
    "append zeros": lambda s, _rng: s.append_data(np.zeros(ITEMS, np.int32)),
    "append a short one": lambda s, rng: s.append_data(noise(rng)[:30]),
    "insert": lambda s, rng: s.insert_data(1, noise(rng), copy=True),
    "update larger": lambda s, rng: s.update_data(1, noise(rng), copy=True),
    "update smaller": lambda s, _rng: s.update_data(1, np.arange(ITEMS, dtype=np.int32) % 2, copy=True),
    "update as large": lambda s, _rng: s.update_data(1, np.arange(ITEMS, dtype=np.int32)[::-1].copy(), copy=True),
    "update to zeros": lambda s, _rng: s.update_data(2, np.zeros(ITEMS, np.int32), copy=True),
    "update from zeros": lambda s, rng: s.update_data(4, noise(rng), copy=True),
    "delete the first": lambda s, _rng: s.delete_chunk(0),
    "delete the last": lambda s, _rng: s.delete_chunk(s.nchunks - 1),
    "delete all": lambda s, _rng: [s.delete_chunk(0) for _ in range(s.nchunks)],
    "vlmeta as long": set_vlmeta("w", "y"),
    "vlmeta the same": set_vlmeta("w", "x"),
    "vlmeta longer": set_vlmeta("w", "y" * 40),
    "vlmeta new": set_vlmeta("q", [1, 2]),
    "vlmeta delete": lambda s, _rng: s.vlmeta.__delitem__("v"),
    "meta": lambda s, _rng: s.meta.__setitem__("m", b"xyz"),
    "cparams and meta": lambda s, _rng: other_cparams(s).meta.__setitem__("m", b"xyz"),
    "cparams and append": lambda s, rng: other_cparams(s).append_data(noise(rng)),
    "slice assignment": lambda s, _rng: s.__setitem__(slice(50, 250), np.arange(200, dtype=np.int32)),
    "nothing": lambda _s, _rng: None,
}


def content_by_blosc2(path: Path) -> bytes:
    s = blosc2.open(str(path), mode="r")
    return b"".join(s.decompress_chunk(n) for n in range(s.nchunks))


def content(s: superchunk.SChunk) -> bytes:
    return b"".join(s.decompress_chunk(n) or b"" for n in range(s.nchunks))


def no_alarm(path: Path) -> superchunk.VerifyReport:
    report = superchunk.verify(path, decode=True)
    assert report.status != "damaged", str(report)
    assert not report.damaged_chunks
    return report


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_no_false_alarm_after_an_operation_of_the_other(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.b2frame"
    ours(path)
    assert superchunk.verify(path).status == "sound"
    rng = np.random.default_rng(1)
    before = path.read_bytes()
    OPERATIONS[name](blosc2.open(str(path), mode="a"), rng)
    report = no_alarm(path)
    if path.read_bytes() != before:
        assert report.status == "not sealed"
    wanted = content_by_blosc2(path)
    with superchunk.open(path, mode="a") as s:
        assert content(s) == wanted
        s.append_data(noise(rng))
        wanted = content(s)
    again = no_alarm(path)
    assert next(part for part in again.parts if part.name == "fingerprint").status == "sound"
    assert content_by_blosc2(path) == wanted
    damage_each_sealed_chunk(path, again)


def damage_each_sealed_chunk(path: Path, report: superchunk.VerifyReport) -> None:
    """See that no seal is stale: such a one would hide damage."""
    unsealed = {chunk.nchunk for chunk in report.unsealed_chunks}
    raw = path.read_bytes()
    store = superchunk._store.frame_store.FrameStore.open(path)
    places = {n: store.source(n) for n in range(store.nchunks)}
    store.close()
    for number, place in places.items():
        if number in unsealed or not isinstance(place, tuple):
            continue
        at = int(place[1]) + 40
        path.write_bytes(raw[:at] + bytes((raw[at] ^ 0x10,)) + raw[at + 1 :])
        assert [chunk.nchunk for chunk in superchunk.verify(path).damaged_chunks] == [number]
    path.write_bytes(raw)


@pytest.mark.parametrize("seed", range(6))
def test_taking_turns(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "x.b2frame"
    ours(path, seed)
    rng, choice = np.random.default_rng(seed), random.Random(seed)
    names = [name for name in OPERATIONS if name not in ("delete all", "update from zeros", "append a short one")]
    for _ in range(8):
        name = choice.choice(names)
        with superchunk.open(path) as s:
            few, layers = s.nchunks < 5, set(s.vlmeta)
        if not (few or (name == "vlmeta delete" and "v" not in layers)):
            OPERATIONS[name](blosc2.open(str(path), mode="a"), rng)
            no_alarm(path)
        wanted = content_by_blosc2(path)
        with superchunk.open(path, mode="a") as s:
            assert content(s) == wanted
            change = choice.randrange(3)
            if change == 0:
                s.append_data(noise(rng))
            elif change == 1:
                s.update_data(s.nchunks // 2, noise(rng), copy=True)
            else:
                s.vlmeta["turn"] = "z" * choice.randrange(30)
            wanted = content(s)
        no_alarm(path)
        assert content_by_blosc2(path) == wanted


def test_arrays_resized_and_assigned_by_the_other(tmp_path: Path) -> None:
    path = tmp_path / "a.b2nd"
    array = blosc2.zeros((40, 30), dtype=np.int32, chunks=(10, 30), blocks=(5, 30), urlpath=str(path))
    with superchunk.open(path, mode="a") as s:
        s.vlmeta["sealed"] = True
    no_alarm(path)
    del array
    array = blosc2.open(str(path), mode="a")
    array[5:25] = np.arange(600, dtype=np.int32).reshape(20, 30)
    no_alarm(path)
    with superchunk.open(path, mode="a") as s:
        s.vlmeta["sealed"] = 2
    no_alarm(path)
    array = blosc2.open(str(path), mode="a")
    array.resize((60, 30))
    array[50:] = 7
    no_alarm(path)
    with superchunk.open(path, mode="a") as s:
        s.vlmeta["sealed"] = 3
    no_alarm(path)
    read = blosc2.open(str(path), mode="r")[:]
    assert (read[5:25] == np.arange(600).reshape(20, 30)).all()
    assert (read[50:] == 7).all()


def test_special_fill_by_the_other(tmp_path: Path) -> None:
    path = tmp_path / "x.b2frame"
    with superchunk.SChunk(4 * ITEMS, urlpath=path, mode="w", cparams={"typesize": 4}):
        pass
    blosc2.open(str(path), mode="a").fill_special(1000, blosc2.SpecialValue.ZERO)
    assert no_alarm(path).nchunks == 10
    with superchunk.open(path, mode="a") as s:
        s.append_data(np.arange(ITEMS, dtype=np.int32))
    assert no_alarm(path).status == "sound"
    assert content_by_blosc2(path) == bytes(4000) + np.arange(ITEMS, dtype=np.int32).tobytes()


@pytest.mark.parametrize("seal", [True, False])
def test_compaction_does_not_take_stale_seals_for_damage(tmp_path: Path, *, seal: bool) -> None:
    path = tmp_path / "a.b2frame"
    ours(path)
    theirs = blosc2.open(str(path), mode="a")
    OPERATIONS["update as large"](theirs, np.random.default_rng(1))
    del theirs
    with superchunk.open(path, "a", seal=seal) as s:
        content = s[:]
        s.compact()
        with superchunk.open(path, "a") as sealing:
            sealing.append_data(bytes(4 * ITEMS))
    with superchunk.open(path, verify="read") as s:
        assert s[:] == content + bytes(4 * ITEMS)
    no_alarm(path)
