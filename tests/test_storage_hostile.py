"""Damaged frames: only errors of ours come out, soon, and without taking memory."""

from __future__ import annotations

import json
import struct
import time
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from storage_tools import CHUNKSIZE, TYPESIZE, chunk, content, everything, special

from superchunk import _engine
from superchunk._format.frame_header import FrameHeader
from superchunk._format.frame_index import special_entry
from superchunk._store.frame_bytes import read_cframe, write_cframe
from superchunk._store.frame_store import FrameStore
from superchunk._store.memory_store import MemoryStore
from superchunk._store.store_interface import FrameSettings
from superchunk.exceptions import FormatError, SuperchunkError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk._store.store_interface import ChunkStore

SETTINGS = FrameSettings(typesize=TYPESIZE)
HOSTILE = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "hostile"


def small_frame() -> bytes:
    store = MemoryStore(SETTINGS, CHUNKSIZE, {"m1": b"\xc4\x05hello", "m2": b"12"})
    store.insert(0, [chunk(0), special(1), chunk(1), chunk(2, 40)])
    store.set_vlmeta("a", chunk(9, 8))
    store.set_vlmeta("b", chunk(8, 80))
    return write_cframe(store)


def variable_frame() -> bytes:
    store = MemoryStore(SETTINGS, 0)
    store.insert(0, [chunk(0, 40), chunk(1, 80), chunk(2, 4)])
    return write_cframe(store)


def read_everything(store: ChunkStore) -> bytes:
    for raw in store.vlmeta.values():
        _engine.decompress(raw)
    return everything(store) if store.nbytes < 10**6 else b""


@pytest.mark.parametrize("make", [small_frame, variable_frame])
def test_every_truncation_is_refused(make: Callable[[], bytes], tmp_path: Path) -> None:
    raw = make()
    path = tmp_path / "cut.b2frame"
    for length in range(len(raw)):
        with pytest.raises(TruncatedError):
            read_cframe(raw[:length])
        path.write_bytes(raw[:length])
        with pytest.raises(TruncatedError, match=r"cut\.b2frame: frame"):
            FrameStore.open(path)


def test_one_byte_too_much_is_refused_in_a_buffer() -> None:
    raw = small_frame()
    with pytest.raises(FormatError, match=f"frame_len at byte 16: expected {len(raw) + 1}, as the buffer"):
        read_cframe(raw + b"\0")


@pytest.mark.parametrize("make", [small_frame, variable_frame])
def test_every_bit_flip_gives_an_error_of_ours_or_a_result(make: Callable[[], bytes]) -> None:
    raw = make()
    refused = 0
    for bit in range(8 * len(raw)):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            read_everything(read_cframe(bytes(damaged)))
        except SuperchunkError:
            refused += 1
        except AssertionError:
            refused += 1  # a chunk tells another size than the frame: seen by the reader above
    assert refused > len(raw)


def test_every_bit_flip_of_a_header_in_a_file(tmp_path: Path) -> None:
    raw = small_frame()
    path = tmp_path / "flip.b2frame"
    header_len = FrameHeader.from_bytes(raw).header_len
    refused = unnamed = 0
    for bit in range(8 * header_len):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            store = FrameStore.open(path)
        except SuperchunkError as error:
            refused += 1
            unnamed += "flip.b2frame" not in str(error)
            continue
        try:
            read_everything(store)
        except (SuperchunkError, AssertionError):
            refused += 1
        store.close()
    assert (refused > 3 * header_len, unnamed) == (True, 0)


def claim(nchunks: int, chunksize: int = 2**20, entry: int | None = None) -> bytes:
    """Return a small frame that says it holds `nchunks` chunks."""
    value = struct.pack("<q", special_entry(1) if entry is None else entry)
    index = _engine.special_chunk(3, 8 * nchunks, 8, value)
    raw = bytearray(write_cframe(MemoryStore(SETTINGS, chunksize)))
    raw[97:97] = index
    struct.pack_into(">Q", raw, 0x10, len(raw))
    struct.pack_into(">q", raw, 0x1E, nchunks * chunksize)
    return bytes(raw)


def test_172_bytes_that_claim_100_million_chunks_open_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bomb.b2frame"
    path.write_bytes(claim(10**8))
    assert path.stat().st_size == 172
    tracemalloc.start()
    begin = time.perf_counter()
    store = FrameStore.open(path)
    assert store.nchunks == 10**8
    assert _engine.describe(store.source(10**8 - 1)).nbytes == 2**20
    assert store.cbytes == 32 * 10**8
    assert time.perf_counter() - begin < 0.1
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_a_compressed_index_of_many_chunks_is_not_decoded_at_open(tmp_path: Path) -> None:
    nchunks = 5_000_000
    entries = struct.pack("<q", special_entry(1)) * nchunks
    index = _engine.compress(entries, _engine.EncodeParams(typesize=8, codec=1, splitmode=2))
    raw = bytearray(write_cframe(MemoryStore(SETTINGS, 400)))
    raw[97:97] = index
    struct.pack_into(">Q", raw, 0x10, len(raw))
    struct.pack_into(">q", raw, 0x1E, nchunks * 400)
    path = tmp_path / "many.b2frame"
    path.write_bytes(raw)
    tracemalloc.start()
    store = FrameStore.open(path)
    for n in (0, 4_999_999, 2_500_000):
        assert _engine.decompress(store.source(n)) == bytes(400)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_every_entry_outside_the_data_is_refused_when_used() -> None:
    store = read_cframe(claim(100, entry=0))
    assert store.nchunks == 100
    with pytest.raises(FormatError, match="index entry 7 at byte 56: expected at most -32, found 0"):
        store.source(7)
    raw = bytearray(small_frame())
    good = read_cframe(bytes(raw))
    index_at = FrameHeader.from_bytes(bytes(raw)).header_len + FrameHeader.from_bytes(bytes(raw)).cbytes
    room = FrameHeader.from_bytes(bytes(raw)).cbytes
    for bad in (room - 31, room, 2**62):
        struct.pack_into("<q", raw, index_at + 32 + 8 * 2, bad)
        store = read_cframe(bytes(raw))
        assert _engine.decompress(store.source(0)) == content(0)
        with pytest.raises(FormatError, match=f"index entry 2 at byte 16: expected at most {room - 32}, found {bad}"):
            store.source(2)
    assert everything(good)


@pytest.mark.parametrize("code", [0x80, 0x83, 0x86, 0xFF])
def test_unknown_special_entries_are_refused_when_used(code: int) -> None:
    store = read_cframe(claim(3, entry=(code << 56) - 2**64))
    with pytest.raises(FormatError, match=f"index entry 1, top byte at byte 15.*0x{code:02X}"):
        store.source(1)


def test_nan_of_an_odd_item_size_is_our_error() -> None:
    raw = bytearray(claim(3, entry=special_entry(2)))
    raw[0x30:0x34] = b"\0\0\0\2"
    store = read_cframe(bytes(raw))
    with pytest.raises(FormatError, match="special value 2"):
        store.source(0)


def test_special_entries_where_sizes_vary() -> None:
    """One can be derived from what the others leave; two cannot."""
    raw = bytearray(variable_frame())
    header = FrameHeader.from_bytes(bytes(raw))
    index_at = header.header_len + header.cbytes + 32
    struct.pack_into("<q", raw, index_at + 8, special_entry(1))
    store = read_cframe(bytes(raw))
    assert [store.chunk_nbytes(n) for n in range(3)] == [40, 80, 4]
    assert everything(store) == content(0, 40) + bytes(80) + content(2, 4)
    assert everything(read_cframe(write_cframe(store))) == everything(store)
    struct.pack_into("<q", raw, index_at, special_entry(1))
    store = read_cframe(bytes(raw))
    assert _engine.decompress(store.source(2)) == content(2, 4)
    with pytest.raises(FormatError, match="index entry 0 at byte 0: expected a stored chunk, since chunk sizes vary"):
        store.source(0)


def test_a_wrong_sum_of_variable_sizes_is_refused() -> None:
    raw = bytearray(variable_frame())
    struct.pack_into(">q", raw, 0x1E, 125)
    store = read_cframe(bytes(raw))
    with pytest.raises(FormatError, match="nbytes at byte 30: expected 124, as the chunks hold, found 125"):
        store.starts()


def test_a_frame_without_data_must_end_at_its_trailer() -> None:
    raw = bytearray(small_frame())
    struct.pack_into(">q", raw, 0x1E, 0)
    with pytest.raises(FormatError, match="trailer length of a frame without data"):
        read_cframe(bytes(raw))


def hostile_frames() -> list[Any]:
    manifest = HOSTILE / "manifest.json"
    if not manifest.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="the corpus is not beside the checkout"))]
    entries = json.loads(manifest.read_text())["entries"]
    return [pytest.param(one, id=one["file"]) for one in entries if one["kind"] in ("cframe", "b2nd", "sframe")]


@pytest.mark.parametrize("entry", hostile_frames())
def test_the_hostile_corpus(entry: dict[str, Any]) -> None:
    path = HOSTILE / entry["file"]
    expect = entry["expect"]

    def attempt() -> bytes:
        store = FrameStore.open(path)
        parts = [_engine.decompress(raw) for raw in store.vlmeta.values()]
        if store.nbytes > 10**8:
            store.source(store.nchunks - 1)
            return b""
        parts = [
            bytes(_engine.read([(source, store.chunk_nbytes(n), 0, store.chunk_nbytes(n), 0)]) or b"")
            for n, source in enumerate(store.sources(0, store.nchunks))
        ]
        return b"".join(parts)

    begin = time.perf_counter()
    if expect == "must raise" and entry["class"] != "b2nd":
        with pytest.raises(SuperchunkError):
            attempt()
    elif expect == "must decode":
        attempt()
    else:
        try:
            attempt()
        except SuperchunkError as error:
            assert str(error)  # noqa: PT017 - either way is fine
    assert time.perf_counter() - begin < 5
