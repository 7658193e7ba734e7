"""Frames of old writers are read as they were meant, refused when damaged, and never changed."""

from __future__ import annotations

import gc
import math
import os
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import corpus
import pytest
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st
from legacy_frames import CHUNKSIZE, DELTA, NAN, SHUFFLE, TYPESIZE, ZEROS, Legacy, content, old_chunk

import superchunk
from superchunk import _engine
from superchunk._format import metalayer_values as values
from superchunk._format.frame_header import FrameHeader
from superchunk._format.legacy_header import byte_order
from superchunk._store.frame_bytes import write_cframe
from superchunk._store.legacy_frame import open_legacy, read_legacy
from superchunk.exceptions import (
    FormatError,
    MetalayerValueError,
    NewerFormatError,
    ReadOnlyError,
    SuperchunkError,
    TruncatedError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from legacy_frames import Order

ORDERS: tuple[Order, ...] = ("big", "little")
both_orders = pytest.mark.parametrize("order", ORDERS)
LARGEST_WHOLE = 1 << 20
MOST_SECONDS = 5.0
AT = {"header_len": 0x0B, "frame_len": 0x10, "nbytes": 0x1E, "cbytes": 0x27, "typesize": 0x30, "chunksize": 0x35}
SIZE = {"frame_len": 8, "nbytes": 8, "cbytes": 8}


def stored(n: int) -> list[bytes | int]:
    """Return `n` different chunks."""
    return [old_chunk(content(seed)) for seed in range(n)]


def usual(order: Order, **more: Any) -> Legacy:
    """Return a frame with some of everything."""
    chosen: dict[str, Any] = {
        "chunks": stored(3),
        "meta": {"one": b"1234", "größe": b"", "blob": bytes(range(40))},
        "usermeta": b"from the user",
    }
    return Legacy(order=order, **(chosen | more))


def openers(path: Path, frame: bytes) -> list[Callable[[], superchunk.SChunk]]:
    """Return all ways to read a frame."""
    path.write_bytes(frame)
    inside = path.with_suffix(".inside")
    inside.write_bytes(b"x" * 77 + frame + b"behind")
    return [
        lambda: superchunk.open(path),
        lambda: superchunk.SChunk(urlpath=str(path), mode="r"),
        lambda: superchunk.open(path, mmap_mode="r"),
        lambda: superchunk.open(path, mmap_mode="c"),
        lambda: superchunk.open(inside, offset=77),
        lambda: superchunk.load(path),
        lambda: superchunk.schunk_from_cframe(frame),
        lambda: superchunk.schunk_from_cframe(bytearray(frame), copy=True),
        lambda: superchunk.from_cframe(memoryview(frame)),
    ]


def changed(frame: bytes, field: str, value: int, order: Order = "big") -> bytes:
    """Return the frame with one number of its header replaced."""
    at, size = AT[field], SIZE.get(field, 4)
    return frame[:at] + value.to_bytes(size, order, signed=value < 0) + frame[at + size :]


# The corpus.


@corpus.parametrize_legacy()
def test_frame_of_an_old_writer_holds_what_the_manifest_says(entry: Mapping[str, Any], tmp_path: Path) -> None:
    frame = entry["path"].read_bytes()
    for opened in openers(tmp_path / "old", frame):
        with opened() as schunk:
            assert (schunk.nchunks, schunk.nbytes, schunk.typesize) == (
                entry["nchunks"],
                entry["nbytes"],
                entry["typesize"],
            )
            assert not schunk.nchunks or schunk.chunksize == entry["chunksize"]
            assert corpus.sha256(schunk[:]) == entry["sha256"]
            assert {name: bytes(schunk.meta.raw(name)).hex() for name in schunk.meta} == entry["meta"]
            for nchunk in range(schunk.nchunks):
                numbers = struct.unpack("<1000i", schunk.decompress_chunk(nchunk) or b"")
                zero = nchunk == 2 and entry["family"] in {"B", "C1"}
                assert numbers == tuple(0 if zero else i * (nchunk + 1) for i in range(1000))
            layer, text = entry["usermeta_layer"], entry["usermeta_text"]
            assert list(schunk.vlmeta) == ([layer] if layer else [])
            if layer == "usermeta":
                assert schunk.vlmeta[layer] == text.encode()
            elif layer:
                assert schunk.vlmeta.raw(layer) == text.encode()


@corpus.parametrize_legacy()
def test_frame_of_an_old_writer_says_which_codec_wrote_it(entry: Mapping[str, Any]) -> None:
    with superchunk.open(entry["path"]) as schunk:
        codec = superchunk.Codec.LZ4 if "lz4" in entry["file"] else superchunk.Codec.ZSTD
        assert (schunk.cparams.codec, schunk.cparams.codec_meta, schunk.cparams.clevel) == (codec, 0, 5)
        assert [superchunk.Filter(kind).value for kind in schunk.cparams.filters] == [0, 0, 0, 0, 0, SHUFFLE]
        assert set(schunk.cparams.filters_meta) == {0}


@corpus.parametrize_legacy()
def test_copying_the_chunks_of_an_old_frame_makes_one_of_today(entry: Mapping[str, Any]) -> None:
    with superchunk.open(entry["path"]) as old:
        frame = old.to_cframe()
        stored_chunks = [old.get_chunk(nchunk) for nchunk in range(old.nchunks)]
    assert frame[0] == 0x9E
    with superchunk.schunk_from_cframe(frame) as new:
        assert corpus.sha256(new[:]) == entry["sha256"]
        assert [new.get_chunk(nchunk) for nchunk in range(new.nchunks)] == stored_chunks
        if entry["usermeta_layer"] == "usermeta":
            assert new.vlmeta["usermeta"] == entry["usermeta_text"].encode()


@corpus.parametrize_legacy()
def test_any_flipped_bit_of_an_old_frame_is_an_error_or_something(entry: Mapping[str, Any]) -> None:
    frame = entry["path"].read_bytes()
    if len(frame) > 1000:
        frame_len = len(frame)
        places = [*range(0x80), *range(frame_len - 140, frame_len)]
    else:
        places = list(range(len(frame)))
    for at in places:
        flipped = bytearray(frame)
        flipped[at] ^= 1 << at % 8
        read_all(bytes(flipped))


@corpus.parametrize_legacy()
def test_old_frame_cut_anywhere_is_an_error(entry: Mapping[str, Any]) -> None:
    frame = entry["path"].read_bytes()
    for kept in {*range(200), *range(200, len(frame), 7)} & set(range(len(frame))):
        with pytest.raises(SuperchunkError):
            superchunk.schunk_from_cframe(frame[:kept])


# Frames made here.


@both_orders
def test_frame_with_everything_is_read_in_every_way(order: Order, tmp_path: Path) -> None:
    frame = usual(order)
    for opened in openers(tmp_path / "old", frame.to_bytes()):
        with opened() as schunk:
            assert schunk[:] == b"".join(content(seed) for seed in range(3))
            assert [schunk.decompress_chunk(n) for n in range(3)] == [content(seed) for seed in range(3)]
            assert {name: bytes(schunk.meta.raw(name)) for name in schunk.meta} == frame.meta
            assert schunk.vlmeta[:] == {"usermeta": b"from the user"}
            assert schunk.vlmeta.raw("usermeta") == values.pack(b"from the user")
            assert (schunk.chunksize, schunk.typesize) == (CHUNKSIZE, TYPESIZE)


@both_orders
def test_last_chunk_may_be_short(order: Order) -> None:
    chunks = [old_chunk(content(1)), old_chunk(content(2, 120))]
    with superchunk.schunk_from_cframe(Legacy(order=order, chunks=chunks, nbytes=520).to_bytes()) as schunk:
        assert schunk[:] == content(1) + content(2, 120)


@both_orders
@pytest.mark.parametrize("chunksize", [0, -1, 400])
def test_frame_without_data_is_empty_and_its_copy_takes_data(order: Order, chunksize: int, tmp_path: Path) -> None:
    frame = Legacy(order=order, chunksize=chunksize, nbytes=0, usermeta=b"u", meta={"m": b"x"}).to_bytes()
    for opened in openers(tmp_path / "old", frame):
        with opened() as schunk:
            assert (schunk.nchunks, schunk.nbytes, len(schunk)) == (0, 0, 0)
            assert schunk.vlmeta["usermeta"] == b"u"
    with superchunk.load(tmp_path / "old") as copied:
        copied.append_data(content(1))
        copied.append_data(content(2))
        assert copied[:] == content(1) + content(2)
        assert copied.chunksize == CHUNKSIZE


def test_special_entries_of_the_little_endian_frame() -> None:
    chunks: list[bytes | int] = [ZEROS, old_chunk(content(1)), NAN, ZEROS]
    frame = Legacy(order="little", chunks=chunks, nbytes=3 * CHUNKSIZE + 100).to_bytes()
    with superchunk.schunk_from_cframe(frame) as schunk:
        assert schunk.decompress_chunk(0) == bytes(CHUNKSIZE)
        assert schunk.decompress_chunk(1) == content(1)
        floats = struct.unpack(f"<{CHUNKSIZE // 4}f", schunk.decompress_chunk(2) or b"")
        assert all(math.isnan(value) for value in floats)
        assert schunk.decompress_chunk(3) == bytes(100)
        with superchunk.schunk_from_cframe(schunk.to_cframe()) as copied:
            assert copied[:] == schunk[:]


def test_frame_of_nothing_but_zeros() -> None:
    with superchunk.schunk_from_cframe(Legacy(order="little", chunks=[ZEROS] * 9).to_bytes()) as schunk:
        assert schunk[:] == bytes(9 * CHUNKSIZE)


def test_the_first_beta_had_another_trailer() -> None:
    frame = usual("big", trailer_start=b"\x0d\x00").to_bytes()
    with superchunk.schunk_from_cframe(frame) as schunk:
        assert schunk.vlmeta["usermeta"] == b"from the user"


@both_orders
def test_filters_move_from_the_front_to_the_end(order: Order) -> None:
    frame = Legacy(order=order, filters=((DELTA, 7), (SHUFFLE, 9))).to_bytes()
    with superchunk.schunk_from_cframe(frame) as schunk:
        assert list(schunk.cparams.filters_meta) == [0, 0, 0, 0, 7, 9]
        assert [superchunk.Filter(kind).value for kind in schunk.cparams.filters] == [0, 0, 0, 0, DELTA, SHUFFLE]


def test_large_index_is_read_where_it_is(tmp_path: Path) -> None:
    chunk = _engine.compress(os.urandom(40), _engine.EncodeParams(typesize=4, clevel=0))
    frame = Legacy(chunks=[chunk] * 30_000, chunksize=40, index_level=0)
    assert len(frame.index()) > 200_000
    path = tmp_path / "old"
    path.write_bytes(b"before" + frame.to_bytes())
    with superchunk.open(path, offset=6) as schunk:
        for other in (schunk, superchunk.schunk_from_cframe(schunk.to_cframe())):
            assert other[:] == chunk[-40:] * 30_000
        assert schunk.decompress_chunk(29_999) == schunk.decompress_chunk(0) == chunk[-40:]
        assert schunk.nchunks == 30_000


@both_orders
def test_order_of_lengths_that_read_well_both_ways_follows_the_version(order: Order) -> None:
    frame = Legacy(order=order, meta={"m": bytes(0x010100 - 0x59 - 7 - 3 - 5)}, usermeta=b"u").to_bytes()
    assert frame[0x0B:0x0F] == b"\0\1\1\0"
    with superchunk.schunk_from_cframe(frame) as schunk:
        assert schunk.vlmeta["usermeta"] == b"u"
    huge = frame[:0x10] + b"\0\0\0\1\1\0\0\0" + frame[0x18:]
    assert byte_order(huge, 2**40) == order


# User metadata.


@pytest.mark.parametrize("user", [b"", b"\x81\xa1a\x01", bytes(300), bytes(range(256)) * 300])
def test_user_metadata_comes_back_as_the_bytes_it_is(user: bytes) -> None:
    with superchunk.schunk_from_cframe(usual("big", usermeta=user).to_bytes()) as schunk:
        assert schunk.vlmeta["usermeta"] == user


def test_no_user_metadata_is_no_vlmetalayer() -> None:
    with superchunk.schunk_from_cframe(usual("big", usermeta=None).to_bytes()) as schunk:
        assert list(schunk.vlmeta) == []


def test_damaged_user_metadata_does_not_lose_the_data() -> None:
    frame = bytearray(usual("big", usermeta=b"user" * 100).to_bytes())
    frame[frame.index(b"\x94\x01\xc6") + 7] = 99  # version of the chunk
    with superchunk.schunk_from_cframe(frame) as schunk:
        assert schunk[: CHUNKSIZE // TYPESIZE] == content(0)
        with pytest.raises(FormatError):
            schunk.vlmeta["usermeta"]


def test_user_metadata_that_claims_far_too_much_is_not_unpacked() -> None:
    frame = usual("big", usermeta=b"u").to_bytes()
    at = frame.index(b"\x94\x01\xc6")
    bomb = _engine.special_chunk(1, 2_000_000_000, 1)
    trailer = b"\x94\x01\xc6" + len(bomb).to_bytes(4, "big") + bomb
    trailer += b"\xce" + (len(trailer) + 23).to_bytes(4, "big") + b"\xd8" + bytes(17)
    frame = changed(frame[:at] + trailer, "frame_len", at + len(trailer))
    started = time.monotonic()
    with superchunk.schunk_from_cframe(frame) as schunk:
        assert schunk.nchunks == 3
        with pytest.raises(MetalayerValueError, match="claims to hold 2000000000"):
            schunk.vlmeta["usermeta"]
    assert time.monotonic() - started < MOST_SECONDS


# What is refused.


@both_orders
@pytest.mark.parametrize("way", [{"mode": "a"}, {"mode": "w"}, {"mmap_mode": "r+"}])
def test_old_frame_is_never_changed(order: Order, way: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(usual(order).to_bytes())
    with pytest.raises(ReadOnlyError, match=r"old: .*old writer.*superchunk convert OLD NEW"):
        superchunk.open(path, **way)
    if way.get("mode") == "a":
        with pytest.raises(ReadOnlyError, match="superchunk convert OLD NEW"):
            superchunk.SChunk(urlpath=str(path), mode="a")
    assert path.read_bytes() == usual(order).to_bytes()


def test_handle_for_reading_refuses_changes_and_one_for_copies_keeps_them_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(usual("big").to_bytes())
    with superchunk.open(path) as schunk:
        with pytest.raises(ReadOnlyError):
            schunk.append_data(content(9))
        with pytest.raises(ReadOnlyError):
            schunk.vlmeta["x"] = 1
    with superchunk.open(path, mmap_mode="c") as schunk:
        schunk.append_data(content(9))
        schunk.vlmeta["usermeta"] = 1
        schunk.update_special(0, superchunk.SpecialValue.UNINIT)
        assert schunk.decompress_chunk(0) == bytes(CHUNKSIZE)
        assert schunk.decompress_chunk(3) == content(9)
    assert path.read_bytes() == usual("big").to_bytes()


def test_file_is_closed_with_the_handle_or_without_it(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(usual("big").to_bytes())
    folder = "/proc/self/fd"
    if not Path(folder).is_dir():
        pytest.skip("no list of open files here")
    gc.collect()
    before = len(list(Path(folder).iterdir()))
    for _ in range(3):
        superchunk.open(path).close()
        superchunk.open(path)[:]
        with pytest.raises(ReadOnlyError):
            superchunk.open(path, mode="a")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError, match="old: "):
        superchunk.open(path)
    gc.collect()
    assert len(list(Path(folder).iterdir())) == before


@pytest.mark.parametrize("marker", [0x9B, 0x9C])
def test_frames_of_alphas_are_refused_by_name(marker: int, tmp_path: Path) -> None:
    frame = bytes([marker]) + usual("big").to_bytes()[1:]
    path = tmp_path / "old"
    path.write_bytes(frame)
    with pytest.raises(UnsupportedError, match=rf"old: .*0x{marker:02X}.*2\.0\.0-alpha to -beta\.1"):
        superchunk.open(path)
    with pytest.raises(UnsupportedError, match=r"2\.0\.0-alpha"):
        superchunk.schunk_from_cframe(frame)


@pytest.mark.parametrize(("codec", "format_bits", "name"), [(3, 2, "snappy"), (6, 5, "lizard")])
def test_codecs_that_are_gone_are_named_when_a_chunk_is_read(codec: int, format_bits: int, name: str) -> None:
    chunk = bytearray(old_chunk(content(1)))
    chunk[2] = chunk[2] & 0x1F | format_bits << 5
    frame = Legacy(chunks=[bytes(chunk), old_chunk(content(2))], codec=codec, meta={"m": b"1"}).to_bytes()
    with superchunk.schunk_from_cframe(frame) as schunk:
        assert schunk.decompress_chunk(1) == content(2)
        assert schunk.get_chunk(0) == chunk
        with pytest.raises(UnsupportedError, match=rf"codec {codec} \({name}\) is not available"):
            schunk.decompress_chunk(0)


BIG = Legacy(chunks=stored(3), meta={"one": b"1234"}, usermeta=b"u").to_bytes()
HEADER_LEN = int.from_bytes(BIG[0x0B:0x0F], "big")
MOST_HEADER = len(BIG) - 30


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("header_len", 91, "header_len and frame_len at byte 11: expected 92 <= "),
        ("header_len", MOST_HEADER + 1, "header_len and frame_len at byte 11"),
        ("header_len", -1, "header_len and frame_len at byte 11"),
        ("header_len", 92, "metalayer name at byte 89: need 9 bytes, got 3"),
        ("header_len", 101, "metalayer 'one' position at byte 94: expected 101 to 96, found 101"),
        ("frame_len", len(BIG) + 1, "header_len and frame_len at byte 11"),
        ("frame_len", len(BIG) - 1, "trailer length marker"),
        ("frame_len", 2**64 - len(BIG), "header_len and frame_len at byte 11"),
        ("nbytes", -1, "nbytes at byte 30: expected at least 0, found -1"),
        ("nbytes", 0, "trailer length of a frame without data"),
        ("nbytes", 3 * CHUNKSIZE + 1, "index chunk nbytes at byte .*: expected 32, for 4 chunks, found 24"),
        ("nbytes", 2**63 - 1, "nbytes at byte 30: expected at most 268435455 chunks"),
        ("cbytes", -1, "cbytes at byte 39: expected at least 0, found -1"),
        ("cbytes", 2**63 - 1, "cbytes at byte 39: expected at most"),
        ("cbytes", MOST_HEADER - HEADER_LEN + 1, "cbytes at byte 39: expected at most"),
        ("cbytes", 0, "index chunk"),
        ("typesize", 0, "typesize at byte 48: expected at least 1, found 0"),
        ("typesize", -4, "typesize at byte 48: expected at least 1, found -4"),
        ("chunksize", 0, "chunksize at byte 53: expected at least 1, found 0"),
        ("chunksize", -1, "chunksize at byte 53: expected at least 1, found -1"),
        ("chunksize", 2**31 - 1, "index chunk nbytes"),
    ],
)
def test_impossible_number_in_the_header_is_named(field: str, value: int, message: str) -> None:
    frame = bytearray(BIG)
    size = SIZE.get(field, 4)
    frame[AT[field] : AT[field] + size] = (value % (1 << 8 * size)).to_bytes(size, "big")
    with pytest.raises(FormatError, match=message):
        superchunk.schunk_from_cframe(frame)


@both_orders
@pytest.mark.parametrize("at", [0x0A, 0x0F, 0x18, 0x1D, 0x26, 0x2F, 0x34, 0x39, 0x3C, 0x40, 0x52, 0x53, 0x56])
def test_missing_marker_is_named(order: Order, at: int) -> None:
    frame = bytearray(usual(order).to_bytes())
    frame[at] ^= 0xFF
    with pytest.raises(FormatError, match=f"at byte {at}: expected 0x") as caught:
        superchunk.schunk_from_cframe(frame)
    assert caught.value.at == at


@pytest.mark.parametrize(
    ("at", "value", "error", "message"),
    [
        (0x19, 0x13, NewerFormatError, "frame version at byte 25"),
        (0x19, 0x10, FormatError, "frame version at byte 25"),
        (0x1A, 1, UnsupportedError, "sparse"),
        (0x1A, 2, FormatError, "frame_type at byte 26"),
        (0x41, 7, FormatError, "number of filters at byte 65: expected at most 6, found 7"),
        (0x57, 0xFF, FormatError, "metalayer count at byte 87: expected at most 16"),
    ],
)
def test_impossible_byte_of_the_header_is_named(
    at: int, value: int, error: type[SuperchunkError], message: str
) -> None:
    frame = bytearray(BIG)
    frame[at] = value
    with pytest.raises(error, match=message):
        superchunk.schunk_from_cframe(frame)


@both_orders
@pytest.mark.parametrize(
    ("back", "patch", "message"),
    [
        (23, b"\xcd", "trailer length marker"),
        (22, b"\xff\xff\xff\xff", "trailer length at byte"),
        (22, bytes(4), "trailer length at byte"),
        (18, b"\xd7", "fingerprint marker"),
    ],
)
def test_damaged_end_of_the_trailer_is_named(order: Order, back: int, patch: bytes, message: str) -> None:
    frame = bytearray(usual(order).to_bytes())
    frame[len(frame) - back : len(frame) - back + len(patch)] = patch
    with pytest.raises(FormatError, match=message):
        superchunk.schunk_from_cframe(frame)


@both_orders
@pytest.mark.parametrize(
    ("at", "patch", "message"),
    [
        (0, b"\x93\x01", "trailer start .* found 93 01"),
        (0, b"\x94\x00", "trailer start .* found 94 00"),
        (2, b"\xc5", "user metadata marker"),
        (3, b"\xff\xff\xff\xff", "user metadata length"),
        (3, bytes(4), "user metadata length"),
    ],
)
def test_damaged_start_of_the_trailer_is_named(order: Order, at: int, patch: bytes, message: str) -> None:
    made = usual(order)
    frame = bytearray(made.to_bytes())
    at += len(frame) - len(made.trailer())
    frame[at : at + len(patch)] = patch
    with pytest.raises(FormatError, match=message):
        superchunk.schunk_from_cframe(frame)


def test_fingerprint_and_the_flag_for_user_metadata_are_not_looked_at() -> None:
    frame = bytearray(BIG)
    frame[-17:] = b"\3" + bytes(range(16))
    frame[0x3F] = 0xC3
    with superchunk.schunk_from_cframe(frame) as schunk:
        assert schunk.vlmeta["usermeta"] == b"u"


@pytest.mark.parametrize("cut", [0, 10, 86])
def test_too_few_bytes_for_a_frame(cut: int) -> None:
    with pytest.raises(TruncatedError, match="need 87 bytes"):
        superchunk.schunk_from_cframe(BIG[:cut])


def test_bytes_behind_a_frame_are_for_files_only(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="as the buffer"):
        superchunk.schunk_from_cframe(BIG + b"x")
    (tmp_path / "old").write_bytes(BIG + b"x")
    with superchunk.open(tmp_path / "old") as schunk:
        assert schunk.nchunks == 3


@pytest.mark.parametrize(
    ("order", "code"), [("big", 0x81), ("big", 0x82), ("little", 0x84), ("little", 0x80), ("little", 0xFF)]
)
@pytest.mark.parametrize("mixed", [True, False])
def test_special_entry_that_no_writer_had_is_refused(order: Order, code: int, *, mixed: bool) -> None:
    chunks: list[bytes | int] = [old_chunk(content(1)), code] if mixed else [code] * 3

    def read() -> None:
        store = read_legacy(Legacy(order=order, chunks=chunks).to_bytes())
        assert store is not None
        write_cframe(store)

    with pytest.raises(FormatError, match=rf"index entry \d, top byte at byte \d+: .*found 0x{code:02X}"):
        read()


def test_entry_is_held_against_the_data_section() -> None:
    made = Legacy(chunks=stored(2))
    sound = made.to_bytes()
    at = len(sound) - len(made.trailer()) - 16
    cbytes = int.from_bytes(sound[0x27:0x2F], "big")
    for entry in (cbytes - 31, cbytes, 2**62):
        frame = sound[: at + 8] + entry.to_bytes(8, "little") + sound[at + 16 :]
        with superchunk.schunk_from_cframe(frame) as schunk:
            assert schunk.decompress_chunk(0) == content(0)
            with pytest.raises(FormatError, match=f"index entry 1 at byte 8: expected at most {cbytes - 32}"):
                schunk.decompress_chunk(1)


def test_chunk_must_end_in_the_data_section_and_hold_what_the_frame_says() -> None:
    longer = bytearray(old_chunk(content(1)))
    longer[12:16] = (len(longer) + 1).to_bytes(4, "little")
    other = old_chunk(content(1, CHUNKSIZE - 4))
    for chunk in (bytes(longer), other):
        with superchunk.schunk_from_cframe(Legacy(chunks=[old_chunk(content(0)), chunk]).to_bytes()) as schunk:
            assert schunk.decompress_chunk(0) == content(0)
            if chunk is other:  # the last chunk may be shorter by the frame's nbytes, not by its own
                with pytest.raises(FormatError):
                    schunk[:]
            else:
                with pytest.raises(FormatError):
                    schunk.decompress_chunk(1)


def test_index_that_claims_much_costs_nothing() -> None:
    nchunks = 200_000_000
    made = Legacy(order="little", chunks=[ZEROS])
    index = _engine.special_chunk(3, 8 * nchunks, 8, bytes(7) + bytes([ZEROS]))
    frame = made.to_bytes().replace(made.index(), index)
    frame = changed(frame, "frame_len", len(frame), "little")
    frame = changed(frame, "nbytes", nchunks * CHUNKSIZE, "little")
    started = time.monotonic()
    with superchunk.schunk_from_cframe(frame) as schunk:
        assert schunk.nchunks == nchunks
        assert schunk.decompress_chunk(nchunks - 1) == bytes(CHUNKSIZE)
    assert time.monotonic() - started < MOST_SECONDS


# Damage at random.


def read_all(frame: bytes, path: Path | None = None) -> bytes | None:
    """Read what can be read; None for one of our errors, others go through."""
    try:
        if path is None:
            opened = superchunk.schunk_from_cframe(frame)
        else:
            path.write_bytes(frame)
            opened = superchunk.open(path)
        with opened as schunk:
            for layers in (schunk.meta, schunk.vlmeta):
                for name in layers:
                    layers.raw(name)
            numbers = range(schunk.nchunks)
            return b"".join(
                schunk.decompress_chunk(nchunk) or b""
                for nchunk in (numbers if len(numbers) < 20 else (0, len(numbers) - 1))
                if _engine.describe(schunk.get_chunk(nchunk)).nbytes <= LARGEST_WHOLE
            )
    except SuperchunkError:
        return None


SOUND = {
    "big": usual("big").to_bytes(),
    "first beta": usual("big", trailer_start=b"\x0d\x00").to_bytes(),
    "little": usual("little", chunks=[ZEROS, *stored(2), NAN]).to_bytes(),
    "no data": Legacy(order="little", nbytes=0, usermeta=b"u").to_bytes(),
}


@pytest.mark.parametrize("name", SOUND)
def test_made_frame_is_sound_to_begin_with(name: str, tmp_path: Path) -> None:
    assert read_all(SOUND[name]) is not None
    assert read_all(SOUND[name]) == read_all(SOUND[name], tmp_path / "old")


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("value", [0, 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_any_32_bits_replaced_are_an_error_or_something(name: str, value: int) -> None:
    frame = SOUND[name]
    for at in range(len(frame) - 3):
        read_all(frame[:at] + value.to_bytes(4, "big") + frame[at + 4 :])


@examples(400)
@given(
    st.sampled_from(sorted(SOUND)),
    st.lists(st.tuples(st.integers(0, 5000), st.binary(min_size=1, max_size=9)), min_size=1, max_size=4),
    st.sampled_from([0, 0, 0, -1, -20, 1]),
)
def test_random_damage_is_an_error_or_something_and_soon(
    tmp_path_factory: pytest.TempPathFactory, name: str, damage: list[tuple[int, bytes]], longer: int
) -> None:
    frame = bytearray(SOUND[name])
    for place, patch in damage:
        at = place % len(frame)
        frame[at : at + len(patch)] = patch
    damaged = bytes(frame[:longer] if longer < 0 else frame + bytes(longer))
    started = time.monotonic()
    read = read_all(damaged)
    in_file = read_all(damaged, tmp_path_factory.getbasetemp() / "damaged")
    assert read in {None, in_file}  # a file may go on after a frame that claims to be shorter
    assert time.monotonic() - started < MOST_SECONDS


@examples(200)
@given(st.sampled_from([0x9B, 0x9C, 0x9D]), st.binary(max_size=300))
def test_any_bytes_behind_the_magic_are_no_frame(marker: int, junk: bytes) -> None:
    assert read_all(bytes([marker]) + b"\xa8b2frame\0" + junk) is None


# Other frames.


def test_ordinary_frames_and_strange_files_are_none_of_this(tmp_path: Path) -> None:
    frame = superchunk.SChunk(contiguous=True).to_cframe()
    assert read_legacy(frame) is None
    for name, raw in (("today", frame), ("strange", b"nothing at all" * 20), ("empty", b"")):
        (tmp_path / name).write_bytes(raw)
        assert open_legacy(tmp_path / name) is None
    with pytest.raises(FileNotFoundError):
        open_legacy(tmp_path / "missing")
    with pytest.raises(FormatError, match="magic"):
        superchunk.open(tmp_path / "strange")


@pytest.mark.parametrize(
    ("nibble", "bytes_at_4d", "codec", "meta", "first_meta"),
    [
        (1, b"\0\1\7\2", 1, 7, 0),  # a release candidate
        (6, b"\0\x23\7\2", 0x23, 7, 0),  # the same, with a codec of its user's
        (5, b"\5\3\7\2", 5, 3, 7),  # today
        (5, b"\0\3\7\2", 5, 3, 7),  # by hand: not what a release candidate wrote
        (0, b"\0\0\7\2", 0, 0, 7),
        (6, b"\xa0\1\7\2", 0xA0, 1, 7),
    ],
)
def test_displaced_codec_of_release_candidates(
    nibble: int, bytes_at_4d: bytes, codec: int, meta: int, first_meta: int
) -> None:
    raw = bytearray(superchunk.SChunk(contiguous=True).to_cframe())
    raw[0x1B] = raw[0x1B] & 0xF0 | nibble
    raw[0x4D:0x51] = bytes_at_4d
    header = FrameHeader.from_bytes(bytes(raw))
    assert (header.codec, header.codec_meta) == (codec, meta)
    assert header.filters_meta == bytes([first_meta, 2, 0, 0, 0, 0])
