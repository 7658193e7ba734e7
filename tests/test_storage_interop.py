"""The corpus, and python-blosc2 working on the same files."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from storage_tools import chunk, content, everything, special

from superchunk import _engine
from superchunk._store.frame_bytes import read_cframe, write_cframe
from superchunk._store.frame_store import FrameStore
from superchunk._store.store_interface import FrameSettings
from superchunk.exceptions import UnsupportedError

if TYPE_CHECKING:
    from superchunk._store.store_interface import ChunkStore

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
NBYTES = 4000  # python-blosc2 needs items; 1000 of 4 bytes
SETTINGS = FrameSettings(typesize=4)


def corpus() -> list[Any]:
    manifest = CORPUS / "manifest.json"
    if not manifest.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="the corpus is not beside the checkout"))]
    return [
        pytest.param(entry, id=f"{number}-{entry['file']}")
        for number, entry in enumerate(json.loads(manifest.read_text())["entries"])
        if entry["kind"] in ("cframe", "sframe", "b2nd")
    ]


def digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def layer_matches(raw: bytes, wanted: dict[str, Any]) -> bool:
    return bool(raw.hex() == wanted["hex"] if "hex" in wanted else digest(raw) == wanted["sha256"])


def decoded(store: ChunkStore, itemsize: int) -> bytes:
    total = hashlib.sha256()
    parts = []
    for n in range(store.nchunks):
        nbytes = store.chunk_nbytes(n)
        parts.append(_engine.read([(store.source(n), nbytes, 0, nbytes, 0)], itemsize=itemsize) or b"")
        total.update(parts[-1])
    return b"".join(parts)


@pytest.mark.parametrize("entry", corpus())
def test_frames_of_others_open_and_read(entry: dict[str, Any]) -> None:
    path = CORPUS / entry["file"]
    store = FrameStore.open(path, offset=entry.get("offset", 0))
    assert (store.nchunks, store.nbytes) == (entry["nchunks"], entry["nbytes"])
    assert store.chunksize == max(entry["chunksize"], 0)
    assert store.settings.typesize == entry["typesize"]
    assert {name: layer_matches(raw, entry["meta"][name]) for name, raw in store.meta.items()} == dict.fromkeys(
        entry["meta"], True
    )
    vlmeta = {name: _engine.decompress(raw) for name, raw in store.vlmeta.items()}
    assert {name: layer_matches(raw, entry["vlmeta"][name]) for name, raw in vlmeta.items()} == dict.fromkeys(
        entry["vlmeta"], True
    )
    for n, nbytes in enumerate(entry.get("chunk_nbytes") or []):
        assert store.chunk_nbytes(n) == nbytes
    if entry["sha256"] is None or entry["nbytes"] > 5 * 10**7:
        return
    itemsize = store.settings.typesize
    try:
        whole = decoded(store, itemsize)
    except UnsupportedError:
        assert entry.get("optional")
        return
    assert digest(whole) == entry["sha256"]
    if len(store.vlmeta) <= 16:
        again = read_cframe(write_cframe(store))
        assert digest(decoded(again, itemsize)) == entry["sha256"]
        assert (dict(again.meta), dict(again.vlmeta)) == (dict(store.meta), dict(store.vlmeta))
        assert (again.chunksize, again.vlblocks) == (store.chunksize, store.vlblocks)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "data.b2frame")


def peer() -> Any:
    return pytest.importorskip("blosc2", reason="python-blosc2, the peer, is not installed")


def theirs(path: str) -> list[bytes]:
    """Return every chunk as python-blosc2 decodes it."""
    opened = peer().open(path, mode="r")
    return [opened.decompress_chunk(n) for n in range(opened.nchunks)]


def test_the_peer_opens_an_empty_frame(path: str) -> None:
    FrameStore.create(path, SETTINGS, NBYTES, {"m": b"\xa1x"}).close()
    opened = peer().open(path)
    assert (opened.nchunks, opened.typesize, opened.meta["m"]) == (0, 4, "x")


def test_the_peer_reads_what_we_write_after_every_commit(path: str) -> None:
    blosc2 = peer()
    store = FrameStore.create(path, SETTINGS, NBYTES, {"m": b"\xa1x"})
    model: list[bytes] = []
    rng = random.Random(5)
    for step in range(60):
        n = rng.randrange(len(model) + 1)
        number = rng.randrange(100)
        match rng.randrange(7):
            case 0 | 1:
                store.insert(n, [chunk(number, NBYTES)])
                model.insert(n, content(number, NBYTES))
            case 2:
                store.insert(n, [special(1, NBYTES)])
                model.insert(n, bytes(NBYTES))
            case 3 if n < len(model):
                store.delete(n)
                del model[n]
            case 4 if n < len(model):
                store.replace(n, chunk(number, NBYTES))
                model[n] = content(number, NBYTES)
            case 5:
                store.set_vlmeta(f"v{number % 5}", _engine.compress(bytes([number]), _engine.EncodeParams(typesize=1)))
            case _:
                store.set_meta("m", b"\xa1" + bytes([97 + number % 26]))
        store.flush()
        assert theirs(path) == model, step
        opened = blosc2.open(path)
        assert {name: opened.vlmeta[name] for name in opened.vlmeta} == {
            name: _engine.decompress(raw)[0] for name, raw in store.vlmeta.items()
        }
        assert opened.meta["m"] == store.meta["m"][1:].decode()
        assert opened.nbytes == store.nbytes


@pytest.mark.parametrize("seed", range(6))
def test_both_change_one_frame_in_turn(path: str, seed: int) -> None:
    blosc2 = peer()
    rng = random.Random(seed)
    store = FrameStore.create(path, SETTINGS, NBYTES, {"m": b"\xa1x"})
    store.insert(0, [chunk(0, NBYTES), special(1, NBYTES), chunk(1, NBYTES)])
    store.set_vlmeta("ours", _engine.compress(b"\x01", _engine.EncodeParams(typesize=1)))
    store.set_vlmeta("ours", _engine.compress(b"\x02", _engine.EncodeParams(typesize=1)))
    model = [content(0, NBYTES), bytes(NBYTES), content(1, NBYTES)]
    for step in range(25):
        store.flush()
        other = blosc2.open(path, mode="a")
        n, number = rng.randrange(len(model)), rng.randrange(1000)
        match rng.randrange(6):
            case 0:
                other.append_data(content(number, NBYTES))
                model.append(content(number, NBYTES))
            case 1:
                other.update_data(n, content(number, NBYTES), copy=True)
                model[n] = content(number, NBYTES)
            case 2:
                other.insert_data(n, bytes(NBYTES), copy=True)
                model.insert(n, bytes(NBYTES))
            case 3 if len(model) > 2:
                other.delete_chunk(n)
                del model[n]
            case 4:
                other.vlmeta["theirs"] = list(range(number))
            case _:
                other.update_special(n, blosc2.SpecialValue.ZERO)
                model[n] = bytes(NBYTES)
        del other
        assert store.refresh() or step
        assert everything(store) == b"".join(model), step
        n, number = rng.randrange(len(model)), rng.randrange(1000)
        match rng.randrange(4):
            case 0:
                store.insert(n, [chunk(number, NBYTES)])
                model.insert(n, content(number, NBYTES))
            case 1:
                store.replace(n, chunk(number, NBYTES))
                model[n] = content(number, NBYTES)
            case 2 if len(model) > 2:
                store.delete(n)
                del model[n]
            case _:
                store.set_vlmeta("ours", _engine.compress(bytes([number % 100]), _engine.EncodeParams(typesize=1)))
        store.flush()
        assert theirs(path) == model, step


def test_the_peer_goes_on_after_we_changed_only_a_vlmetalayer(path: str) -> None:
    """Then an old trailer stands between index and trailer."""
    blosc2 = peer()
    store = FrameStore.create(path, SETTINGS, NBYTES, {})
    store.insert(0, [chunk(n, NBYTES) for n in range(3)])
    store.flush()
    for n in range(3):
        store.set_vlmeta("a", chunk(n, 40 * (n + 1)))
    store.close()
    opened = blosc2.open(path, mode="a")
    assert opened.vlmeta.get_vlmeta("a") == content(2, 120)
    opened.append_data(content(3, NBYTES))
    del opened
    assert theirs(path) == [content(n, NBYTES) for n in range(4)]
    again = FrameStore.open(path)
    assert _engine.decompress(again.vlmeta["a"]) == content(2, 120)


def test_the_peer_reads_variable_sizes_vlblocks_and_special_fills(path: str) -> None:
    blosc2 = peer()
    store = FrameStore.create(path, SETTINGS, NBYTES, {})
    store.insert(0, [special(1, NBYTES), chunk(1, 100), chunk(2, NBYTES), special(2, 40)])
    store.flush()
    assert theirs(path) == [bytes(NBYTES), content(1, 100), content(2, NBYTES), b"\0\0\xc0\x7f" * 10]
    assert blosc2.open(path).chunksize == 0
    filled = FrameStore.create(path, SETTINGS, NBYTES, {})
    filled.fill_special(2, 10**6 * NBYTES + 40, None)
    filled.flush()
    opened = blosc2.open(path)
    assert opened.nchunks == 10**6 + 1
    assert opened.decompress_chunk(10**6) == b"\0\0\xc0\x7f" * 10
    assert opened[5:7] == b"\0\0\xc0\x7f" * 2
    ragged = _engine.compress_vlblocks([b"a" * 10, b"b" * 30], _engine.EncodeParams(typesize=1))
    for chunksize, nchunks in ((40, 2), (0, 1)):
        store = FrameStore.create(path, FrameSettings(typesize=1), chunksize, {}, vlblocks=True)
        store.insert(0, [ragged] * nchunks)
        store.close()
        assert blosc2.open(path).nchunks == nchunks
        again = FrameStore.open(path)
        assert again.vlblocks
        assert _engine.read_vlblocks(again.source(0)) == [b"a" * 10, b"b" * 30]


def test_the_peer_reads_our_cframes_and_we_theirs() -> None:
    blosc2 = peer()
    theirs_ = blosc2.SChunk(chunksize=NBYTES, contiguous=True, cparams={"typesize": 4}, meta={"m": [1, 2]})
    for n in range(4):
        theirs_.append_data(content(n, NBYTES))
    theirs_.vlmeta["v"] = {"k": 1}
    store = read_cframe(theirs_.to_cframe())
    assert everything(store) == b"".join(content(n, NBYTES) for n in range(4))
    back = blosc2.schunk_from_cframe(write_cframe(store), copy=True)
    assert back[:] == everything(store)
    assert (back.meta["m"], back.vlmeta["v"]) == ([1, 2], {"k": 1})
    store.insert(2, [special(1, NBYTES), chunk(9, 44)])
    varying = blosc2.schunk_from_cframe(write_cframe(store), copy=True)
    assert [varying.decompress_chunk(n) for n in (2, 3)] == [bytes(NBYTES), content(9, 44)]


def test_an_empty_frame_of_the_peer_has_no_chunksize_yet(path: str) -> None:
    blosc2 = peer()
    blosc2.SChunk(urlpath=path, mode="w", contiguous=True, cparams={"typesize": 4})
    store = FrameStore.open(path, writable=True)
    store.insert(0, [chunk(0, NBYTES), chunk(1, 40)])
    store.close()
    assert theirs(path) == [content(0, NBYTES), content(1, 40)]
