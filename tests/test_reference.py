"""The reference decoder against the corpus, hand-made chunks and damage."""

from __future__ import annotations

import ast
import struct
import zlib
from pathlib import Path

import corpus
import lz4.block
import numpy as np
import pytest
import reference as package
import zstandard
from reference import Header, blosclz, decode, decode_range, decode_vlblocks
from reference.filters import unbitshuffle, unbitshuffle_blosc1, unbytedelta_v1

from superchunk import _engine
from superchunk.exceptions import (
    FormatError,
    NewerFormatError,
    SuperchunkError,
    TruncatedError,
    UnsupportedError,
)

LARGEST_WHOLE = 64 * 2**20
"""Bytes beyond which a hostile chunk is not decoded whole: valid or not, it is only big."""

NO_FILTERS = bytes(6)


def extended(
    body: bytes,
    nbytes: int,
    *,
    version: int = 5,
    flags: int = 0x15,
    typesize: int = 1,
    blocksize: int = 0,
    filters: bytes = NO_FILTERS,
    udcodec: int = 0,
    filters_meta: bytes = NO_FILTERS,
    flags2: int = 0,
    blosc2_flags: int = 0,
) -> bytes:
    """Return a chunk with a 32-byte header in front of `body`; by default one stream per block."""
    front = struct.pack("<BBBBiii", version, 1, flags, typesize, nbytes, blocksize or nbytes or 1, 32 + len(body))
    back = bytes([udcodec, 0]) + filters_meta + bytes([flags2, blosc2_flags])
    return front + filters + back + body


def stream(csize: int, payload: bytes = b"") -> bytes:
    """Return one stream: its length field and what follows it."""
    return struct.pack("<i", csize) + payload


def one_block(*streams: bytes, start: int = 36) -> bytes:
    """Return a body of one block: its table of one entry, then its streams."""
    return struct.pack("<i", start) + b"".join(streams)


def coded(payload: bytes, nbytes: int, codec_format: int, udcodec: int = 0) -> bytes:
    """Return a chunk of one block with one stream of a codec."""
    body = one_block(stream(len(payload), payload))
    return extended(body, nbytes, flags=0x15 | codec_format << 5, udcodec=udcodec)


# The corpus.


@corpus.parametrize("chunk")
def test_chunk_of_the_corpus_decodes_to_its_hash(entry: corpus.Entry) -> None:
    plain = decode(entry.read())
    assert len(plain) == entry.nbytes
    assert entry.sha256 in (corpus.sha256(plain), None)


@corpus.parametrize("chunk")
def test_slices_of_a_chunk_of_the_corpus_decode_to_their_hashes(entry: corpus.Entry) -> None:
    chunk = entry.read()
    for piece in entry.slices:
        start, stop = piece.start * entry.typesize, piece.stop * entry.typesize
        plain = decode_range(chunk, start, stop)
        assert len(plain) == stop - start
        if entry.sha256 is not None:
            assert corpus.sha256(plain) == piece.sha256


@corpus.parametrize("chunk")
def test_variable_length_blocks_of_the_corpus_come_out_one_by_one(entry: corpus.Entry) -> None:
    chunk = entry.read()
    if entry.vlblocks:
        blocks = decode_vlblocks(chunk)
        assert tuple((len(block), corpus.sha256(block)) for block in blocks) == entry.vlblocks
        assert b"".join(blocks) == decode(chunk)
    else:
        with pytest.raises(FormatError, match=r"^blosc2_flags2 at byte 30: "):
            decode_vlblocks(chunk)


@corpus.parametrize("chunk")
def test_cut_chunk_of_the_corpus_is_refused(entry: corpus.Entry) -> None:
    chunk = entry.read()[: entry.fields["cbytes"]]
    for length in {0, 1, 15, len(chunk) // 2, len(chunk) - 1}:
        with pytest.raises(TruncatedError):
            decode(chunk[:length])


@corpus.parametrize_hostile("chunk")
def test_hostile_chunk_ends_in_an_error_or_in_the_right_bytes(entry: corpus.Hostile) -> None:
    chunk = entry.path.read_bytes()
    try:
        large = Header.from_bytes(chunk).nbytes > LARGEST_WHOLE and entry.expect == "may decode"
        plain = decode_range(chunk, 0, 16) if large else decode(chunk)
    except SuperchunkError:
        assert entry.expect != "must decode"
        return
    if entry.expect == "must raise":
        # The corpus counts chunks with an unrounded block size as lost. They are not: cut by
        # whole items they give the very data that went in.
        assert entry.group == "lost-tail"
        assert entry.if_decodes
    if entry.if_decodes is not None:
        assert corpus.sha256(plain) in entry.if_decodes


# Damage.


def samples() -> dict[str, bytes]:
    """Return small chunks of every layout."""
    numbers = np.arange(64, dtype="<i4").tobytes()
    text = b"the quick brown fox " * 10
    blocks = b"".join(
        [
            struct.pack("<ii", 40, 46),
            stream(2, b"ab"),
            struct.pack("<i", 40),
            zstandard.compress(b"z" * 40),
        ]
    )
    return {
        "split": extended(
            one_block(stream(64, bytes(range(64))), stream(0), stream(-3, b"\1"), stream(0)),
            len(numbers),
            flags=0x25,
            typesize=4,
            filters=b"\0\0\0\0\0\1",
        ),
        "blosclz": coded(bytes.fromhex("2361626364 E05403 02626364"), 100, 0),
        "lz4": coded(lz4.block.compress(text, store_size=False), 200, 1),
        "zlib": coded(zlib.compress(text), 200, 3),
        "zstd": coded(zstandard.compress(text), 200, 4),
        "vlblocks": extended(blocks, 42, version=6, flags=0x95, blocksize=2, flags2=1),
        "value": extended(b"\1\2\3\4", 400, flags=0x05, typesize=4, blosc2_flags=0x30),
        "memcpyed": extended(bytes(range(40)), 40, flags=0x07),
    }


@pytest.mark.parametrize("chunk", samples().values(), ids=samples())
def test_chunk_with_any_one_bit_flipped_gives_its_length_or_our_error(chunk: bytes) -> None:
    assert decode(chunk)
    for position in range(len(chunk)):
        for bit in range(8):
            damaged = bytearray(chunk)
            damaged[position] ^= 1 << bit
            try:
                header = Header.from_bytes(bytes(damaged))
                if header.nbytes <= LARGEST_WHOLE:
                    assert len(decode(bytes(damaged))) == header.nbytes
            except SuperchunkError:
                pass


@pytest.mark.parametrize("chunk", samples().values(), ids=samples())
def test_every_range_equals_a_slice_of_the_whole(chunk: bytes) -> None:
    plain = decode(chunk)
    for start in range(0, len(plain) + 1, 7):
        for stop in range(start, len(plain) + 1, 13):
            assert decode_range(chunk, start, stop) == plain[start:stop]


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (3, 2), (0, 41), (41, 41)])
def test_range_outside_the_content_is_a_wrong_argument(start: int, stop: int) -> None:
    with pytest.raises(ValueError, match=r"expected 0 <= start <= stop <= 40, got"):
        decode_range(extended(bytes(40), 40, flags=0x07), start, stop)


# Header.


@pytest.mark.parametrize(
    ("offset", "replacement", "message"),
    [
        (0, b"\x00", "chunk version at byte 0: expected 1 to 6, found 0"),
        (0, b"\x07", "chunk version at byte 0: expected 1 to 6, found 7"),
        (3, b"\x00", "typesize at byte 3: expected 1 to 255, found 0"),
        (4, b"\xff" * 4, "nbytes at byte 4: expected 0 to 2147483615, found -1"),
        (4, b"\xe0\xff\xff\x7f", "nbytes at byte 4: expected 0 to 2147483615, found 2147483616"),
        (8, bytes(4), "blocksize at byte 8: expected 1 to 536866816, found 0"),
        (8, b"\x01\xf0\xff\x1f", "blocksize at byte 8: expected 1 to 536866816, found 536866817"),
        (12, b"\x1f\0\0\0", "cbytes at byte 12: expected >= 32, found 31"),
        (12, b"\x49\0\0\0", "chunk at byte 0: need 73 bytes, got 72"),
        (12, b"\x47\0\0\0", "cbytes of a memcpyed chunk at byte 12: expected 72, found 71"),
        (30, b"\x02", "blosc2_flags2 at byte 30: expected no bit but 0x01, found 0x02"),
        (31, b"\x50", "special-value id at byte 31: expected 0 to 4, found 5"),
        (31, b"\x08", "blosc2_flags at byte 31: expected no lazy mark"),
    ],
)
def test_header_that_breaks_the_format_names_field_and_byte(offset: int, replacement: bytes, message: str) -> None:
    chunk = bytearray(extended(bytes(40), 40, flags=0x07))
    chunk[offset : offset + len(replacement)] = replacement
    with pytest.raises(FormatError) as caught:
        decode(bytes(chunk))
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, NewerFormatError) == (replacement == b"\x07")


def test_header_of_16_bytes_is_never_read_beyond() -> None:
    chunk = struct.pack("<BBBBiii", 2, 1, 0x02, 1, 3, 3, 19) + b"abc"
    header = Header.from_bytes(chunk)
    assert (header.header_len, header.filters, header.special) == (16, (0,) * 6, 0)
    assert decode(chunk) == b"abc"


def test_delta_flag_of_a_16_byte_header_is_for_later_versions_only() -> None:
    front = struct.pack("<BBBiii", 1, 0x18, 1, 4, 4, 28)
    body = struct.pack("<ii", 20, 4) + b"\1\1\1\1"
    assert decode(b"\x05" + front + body) == b"\1\0\1\0"
    with pytest.raises(FormatError, match=r"^flags at byte 2: expected no delta"):
        decode(b"\x02" + front + body)


def test_version_3_has_five_filter_slots() -> None:
    body = one_block(stream(8, bytes(range(8))))
    chunk = extended(body, 8, version=3, filters=b"\0\0\0\0\0\1", filters_meta=b"\0\0\0\0\0\4")
    assert decode(chunk) == bytes(range(8))


# Streams and blocks.


def test_runs_and_zeros_need_no_codec() -> None:
    chunk = extended(one_block(stream(0), stream(-7, b"\1")), 64, flags=0x05, typesize=2)
    assert decode(chunk) == bytes(32) + b"\7" * 32


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        (stream(-256, b"\1"), "csize at byte 36: expected >= -255, found -256"),
        (stream(-(2**31), b"\1"), "csize at byte 36: expected >= -255, found -2147483648"),
        (stream(-7, b"\3"), "token of a run at byte 40: expected 1, found 3"),
        (stream(-7), "stream at byte 40: need 1 bytes, got 0"),
        (stream(9, b"12345678"), "stream at byte 40: need 9 bytes, got 8"),
        (stream(3, b"\3ab"), "blosclz stream at byte 40: expected 8 bytes, found 4 literals"),
    ],
)
def test_stream_that_breaks_the_format_names_field_and_byte(streams: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode(extended(one_block(streams), 8))
    assert str(caught.value).startswith(message)


def test_stream_longer_than_its_data_goes_to_the_codec() -> None:
    noise = bytes(range(100))
    payload = lz4.block.compress(noise, store_size=False)
    assert len(payload) > len(noise)
    assert decode(coded(payload, 100, 1)) == noise


@pytest.mark.parametrize("start", [-1, 0, 32, 35, 45])
def test_block_may_not_start_inside_header_or_table_nor_at_the_end(start: int) -> None:
    with pytest.raises(FormatError, match=r"^bstarts\[0\] at byte 32: expected 36 to 44, found "):
        decode(extended(one_block(stream(8, bytes(8)), start=start), 8))


def test_split_block_must_be_cut_evenly() -> None:
    body = one_block(stream(3, b"abc"), stream(3, b"def"))
    with pytest.raises(FormatError, match=r"^blocksize at byte 8: expected a multiple of 8, "):
        decode(extended(body, 12, flags=0x05, typesize=8, blocksize=7))


def test_unrounded_block_size_is_repaired() -> None:
    body = struct.pack("<ii", 40, 52) + stream(8, b"abcdefgh") + stream(4, b"ijkl")
    assert decode(extended(body, 12, typesize=8, blocksize=11)) == b"abcdefghijkl"


def test_unrounded_block_size_of_wide_items_needs_the_container() -> None:
    item = bytes(range(250)) + bytes(50)  # stored with typesize 1
    body = struct.pack("<ii", 40, 344) + stream(300, item) + stream(200, item[:200])
    chunk = extended(body, 500, blocksize=499)
    assert decode(chunk, itemsize=300) == item + item[:200]
    with pytest.raises(SuperchunkError):
        decode(chunk)


def test_block_table_longer_than_the_chunk_is_refused_before_it_is_read() -> None:
    with pytest.raises(TruncatedError, match=r"^bstarts at byte 32: need 8589934460 bytes, got 4"):
        decode(extended(bytes(4), 2**31 - 33, blocksize=1))


def test_instrumented_chunk_decodes_to_its_records() -> None:
    records = [struct.pack("<fff4B", 2.5, 1e9, 2e9, 1, 0, 0, 0), bytes(16)]
    chunk = extended(
        one_block(*(stream(16, record) for record in records)),
        32,
        flags=0x05,
        typesize=2,
        filters=b"\0\0\0\0\0\1",
        blosc2_flags=0x80,
    )
    assert decode(chunk) == b"".join(records)
    single = extended(one_block(stream(16, records[0])), 16, typesize=30, blosc2_flags=0x80)
    assert decode(single) == records[0]
    unknown = extended(one_block(stream(16, records[0])), 16, filters=b"\x05\0\0\0\0\1", blosc2_flags=0x80)
    assert decode(unknown) == _engine.decompress(unknown) == records[0], "no filter is undone"


def test_memcpyed_chunk_ignores_filters_codec_and_dictionary_flag() -> None:
    plain = bytes(range(40))
    chunk = extended(plain, 40, flags=0xF7, typesize=4, filters=b"\0\0\0\0\x09\1", blosc2_flags=1)
    assert decode(chunk) == plain


def test_special_value_wins_over_memcpyed() -> None:
    assert decode(extended(b"", 20, flags=0x07, blosc2_flags=0x11)) == bytes(20)


def test_empty_chunk_decodes_to_nothing_whatever_follows() -> None:
    assert decode(extended(b"junk", 0, filters=b"\x09" * 6)) == b""


# Special values.


def test_value_takes_its_width_from_cbytes() -> None:
    item = bytes(range(200)) + bytes(200)
    chunk = extended(item, 1200, flags=0x05, typesize=1, blosc2_flags=0x30)
    assert decode(chunk) == item * 3
    assert decode_range(chunk, 398, 403) == b"\0\0\0\1\2"


@pytest.mark.parametrize(("typesize", "pattern"), [(4, "0000C07F"), (8, "000000000000F87F")])
def test_nan_has_one_bit_pattern(typesize: int, pattern: str) -> None:
    chunk = extended(b"", 16, flags=0x05, typesize=typesize, blosc2_flags=0x20)
    assert decode(chunk) == bytes.fromhex(pattern) * (16 // typesize)


def test_uninitialised_values_are_zeros() -> None:
    assert decode(extended(b"", 15, flags=0x05, typesize=4, blosc2_flags=0x40)) == bytes(15)


@pytest.mark.parametrize(
    ("body", "nbytes", "typesize", "special", "message"),
    [
        (b"", 16, 1, 3, "repeated value at byte 32: expected 1 to 16 bytes, found 0 bytes"),
        (b"abc", 16, 1, 3, "nbytes of a special chunk at byte 4: expected a multiple of 3"),
        (b"a", 0, 1, 3, "repeated value at byte 32: expected 1 to 0 bytes, found 1 bytes"),
        (b"", 16, 2, 2, "typesize of a NaN chunk at byte 3: expected 4 or 8, found 2"),
        (b"", 18, 4, 2, "nbytes of a special chunk at byte 4: expected a multiple of 4"),
    ],
)
def test_special_value_that_does_not_fit_is_refused(
    body: bytes, nbytes: int, typesize: int, special: int, message: str
) -> None:
    chunk = extended(body, nbytes, flags=0x05, typesize=typesize, blosc2_flags=special << 4)
    with pytest.raises(FormatError) as caught:
        decode(chunk)
    assert str(caught.value).startswith(message)


# Variable-length blocks.


def vlchunk(*blocks: bytes, nbytes: int, starts: tuple[int, ...] = ()) -> bytes:
    """Return a chunk of raw blocks with lengths of their own."""
    at = 32 + 4 * len(blocks)
    found = []
    for block in blocks:
        found.append(at)
        at += 4 + len(block)
    table = struct.pack(f"<{len(blocks)}i", *(starts or found))
    body = table + b"".join(stream(len(block), block) for block in blocks)
    return extended(body, nbytes, version=6, blocksize=len(blocks), flags2=1)


def test_variable_length_blocks_keep_their_lengths() -> None:
    chunk = vlchunk(b"a", b"bcd", b"ef", nbytes=6)
    assert decode_vlblocks(chunk) == [b"a", b"bcd", b"ef"]
    assert decode_range(chunk, 1, 5) == b"bcde"


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (vlchunk(b"a", b"bc", nbytes=4), "nbytes at byte 4: expected 3, the sum of the blocks"),
        (vlchunk(b"a", b"bc", nbytes=2), "length of block 1 at byte 45: expected 1 to 1, found 2"),
        (vlchunk(b"ab", b"c", nbytes=3, starts=(40, 40)), "bstarts[1] at byte 36: expected 45 to"),
        (vlchunk(b"ab", b"c", nbytes=3, starts=(39, 46)), "bstarts[0] at byte 32: expected 40 to"),
        (vlchunk(b"ab", b"c", nbytes=3, starts=(40, 47)), "bstarts[1] at byte 36: expected 45 to"),
    ],
)
def test_variable_length_blocks_that_do_not_add_up_are_refused(chunk: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode(chunk)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("flags", [{"flags": 0x17}, {"blosc2_flags": 0x10}])
def test_variable_length_blocks_exclude_other_layouts(flags: dict[str, int]) -> None:
    table = struct.pack("<i", 36) + stream(3, b"abc")
    with pytest.raises(FormatError, match=r"^blosc2_flags2 at byte 30: expected no variable-"):
        decode(extended(table, 3, version=6, blocksize=1, flags2=1, **flags))  # type: ignore[arg-type]


# Blosc1.


def blosc1(body: bytes, nbytes: int, *, flags: int, version: int = 2) -> bytes:
    """Return a chunk of one block of 4-byte items, with a 16-byte header."""
    front = struct.pack("<BBBBiii", version, 1, flags, 4, nbytes, nbytes, 20 + len(body))
    return front + struct.pack("<i", 20) + body


def cut(plain: bytes, nstreams: int) -> bytes:
    """Return `plain` as so many raw streams of equal length."""
    size = len(plain) // nstreams
    return b"".join(stream(size, plain[at : at + size]) for at in range(0, len(plain), size))


def test_old_chunk_of_small_blocks_is_one_stream_though_the_flag_says_split() -> None:
    plain = bytes(range(120))
    assert decode(blosc1(cut(plain, 1), 120, flags=0)) == plain
    with pytest.raises(SuperchunkError):
        decode(blosc1(cut(plain, 1), 120, flags=0, version=4))


def test_old_chunk_is_split_by_the_flag_where_only_that_fits() -> None:
    plain = bytes(range(120))
    assert decode(blosc1(cut(plain, 4), 120, flags=0)) == plain


def test_old_chunk_of_large_blocks_is_split_unless_the_flag_forbids_it() -> None:
    plain = bytes(range(256)) * 2
    assert decode(blosc1(cut(plain, 4), 512, flags=0)) == plain
    assert decode(blosc1(cut(plain, 1), 512, flags=0x10)) == plain


def test_old_bitshuffle_takes_all_whole_items_or_none() -> None:
    block = bytes(range(50))
    assert unbitshuffle_blosc1(block, 2) == block  # 25 items
    assert unbitshuffle_blosc1(block[:33], 2) == unbitshuffle(block[:33], 2)  # 16 and a byte
    assert unbitshuffle(block, 2) != block  # 24 items and two bytes


# Codecs.


def test_blosclz_far_distance_is_biased() -> None:
    far = np.arange(2560, dtype="<u4").tobytes()  # 10,240 bytes of literals, 32 at a time
    literals = b"".join(b"\x1f" + far[at : at + 32] for at in range(0, len(far), 32))
    plain = blosclz.decompress(literals + bytes.fromhex("FF1FFF07D8 00 78"), len(far) + 41)
    start = len(far) - 10_200
    assert plain == far + far[start : start + 40] + b"x"


@pytest.mark.parametrize(
    "source",
    [
        "",  # an empty stream
        "03616263",  # a literal short
        "20 61 E0",  # extension and distance missing
        "04 6162636465 20 00",  # a match at the very end is not performed
        "20 61 20 01 00 62",  # from before the data
        "20 61 FF 00 FF 00 00 62",  # far, from before the data
        "20 61 E0 FF FF FF FF FF 00 00 00 62",  # longer than the block
    ],
)
def test_blosclz_stream_that_breaks_the_rules_is_refused(source: str) -> None:
    with pytest.raises(blosclz.BlosclzError):
        blosclz.decompress(bytes.fromhex(source), 5)


def test_zlib_tolerates_bytes_behind_the_stream_but_no_other_wrapper() -> None:
    plain = b"abcd" * 50
    assert decode(coded(zlib.compress(plain) + b"more", 200, 3)) == plain
    for wbits in (-15, 31):
        encoder = zlib.compressobj(wbits=wbits)
        payload = encoder.compress(plain) + encoder.flush()
        with pytest.raises(FormatError, match=r"^zlib stream at byte 40: expected 200 bytes"):
            decode(coded(payload, 200, 3))
    with pytest.raises(FormatError, match="without the checksum"):
        decode(coded(zlib.compress(plain)[:-1], 200, 3))


def test_zstd_takes_any_sequence_of_frames_and_nothing_else() -> None:
    plain = b"abcd" * 50
    sizeless = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    skippable = bytes.fromhex("532A4D18 03000000 616263")
    payload = skippable + sizeless.compress(plain[:90]) + zstandard.compress(plain[90:])
    assert decode(coded(payload, 200, 4)) == plain
    for wrong in (payload + b"x", payload[:-1], payload + sizeless.compress(b"e"), payload[:-30]):
        with pytest.raises(FormatError, match=r"^zstd stream at byte 40: expected 200 bytes"):
            decode(coded(wrong, 200, 4))


def test_zstd_frame_of_another_dictionary_is_refused() -> None:
    plain = b"abcd" * 50
    lines: list[bytes | bytearray | memoryview] = [b"%d apples and %d pears" % (i, i * i) for i in range(2000)]
    trained = zstandard.train_dictionary(1024, lines, dict_id=40_001)
    other = zstandard.train_dictionary(1024, lines, dict_id=40_002)
    payload = zstandard.ZstdCompressor(dict_data=trained).compress(plain)

    def chunk(dictionary: bytes) -> bytes:
        table = struct.pack("<ii", 40 + len(dictionary), len(dictionary)) + dictionary
        body = table + stream(len(payload), payload)
        return extended(body, 200, flags=0x95, blosc2_flags=1)

    assert decode(chunk(trained.as_bytes())) == plain
    with pytest.raises(FormatError, match=r"^zstd stream at byte"):
        decode(chunk(other.as_bytes()))


def test_lz4_dictionary_stands_before_the_output() -> None:
    history = bytes(range(200))
    payload = lz4.block.compress(history[50:150], dict=history, store_size=False)
    body = struct.pack("<ii", 240, 200) + history + stream(len(payload), payload)
    assert len(payload) < 50
    assert decode(extended(body, 100, flags=0x35, blosc2_flags=1)) == history[50:150]


@pytest.mark.parametrize("dsize", [0, -1, 32769])
def test_dictionary_of_a_forbidden_size_is_refused(dsize: int) -> None:
    body = struct.pack("<ii", 40, dsize) + stream(8, bytes(8))
    with pytest.raises(FormatError, match=r"^dsize at byte 36: expected 1 to 32768"):
        decode(extended(body, 8, flags=0x95, blosc2_flags=1))


def test_lz4_block_must_end_with_its_data() -> None:
    payload = lz4.block.compress(b"abcd" * 50, store_size=False)
    for wrong in (payload + b"\0", payload[:-1]):
        with pytest.raises(FormatError, match=r"^lz4 stream at byte 40: expected 200 bytes"):
            decode(coded(wrong, 200, 1))
    with pytest.raises(FormatError, match="found 200 bytes"):
        decode(coded(payload, 201, 1))


@pytest.mark.parametrize(
    ("codec_format", "udcodec", "message"),
    [
        (2, 3, "codec format 2 (snappy) is not available"),
        (5, 5, "codec format 5 (lizard) is not available"),
        (6, 5, "codec 5 (unknown) is not available"),
        (6, 32, "codec 32 (ndlz) is not available"),
        (6, 200, "codec 200 (unknown) is not available"),
        (7, 5, "codec format 7 (unknown) is not available"),
    ],
)
def test_codec_that_is_not_here_is_named(codec_format: int, udcodec: int, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        decode(coded(b"abc", 200, codec_format, udcodec))
    assert str(caught.value) == message


# Filters.


@pytest.mark.parametrize(("ident", "name"), [(32, "ndcell"), (33, "ndmean"), (5, "unknown")])
def test_filter_that_is_not_here_is_named(ident: int, name: str) -> None:
    chunk = extended(one_block(stream(8, bytes(8))), 8, filters=bytes([0, 0, ident, 0, 0, 0]))
    with pytest.raises(UnsupportedError, match=rf"^filter {ident} \({name}\) is not available$"):
        decode(chunk)


def test_old_bytedelta_starts_anew_before_the_odd_end_of_a_plane() -> None:
    plane = [*range(1, 17), 1, 2, 3, 4]
    assert unbytedelta_v1(bytes([1] * 40 + [9]), 2) == bytes([*plane, *plane, 9])


def test_bytedelta_without_planes_takes_the_item_size_of_the_container() -> None:
    body = one_block(stream(8, b"\1" * 8))
    chunk = extended(body, 8, typesize=4, filters=b"\0\0\0\0\0\x23")
    assert decode(chunk) == bytes([1, 2] * 4)
    assert decode(chunk, itemsize=2) == bytes([1, 2, 3, 4] * 2)


def test_delta_refers_to_block_0_with_all_its_filters_undone() -> None:
    # SHUFFLE in slot 0, DELTA in slot 1, two-byte items: block 0 runs on its shuffled bytes
    # 05 07 01 07, block 1 is its shuffled bytes 02 04 09 04 against plain block 0.
    plain = bytes([5, 1, 7, 7, 2, 9, 4, 4])
    first = bytes([0x05, 0x07, 0x01 ^ 0x05, 0x07 ^ 0x07])
    second = bytes([0x02 ^ 5, 0x04 ^ 1, 0x09 ^ 7, 0x04 ^ 7])
    body = struct.pack("<ii", 40, 48) + stream(4, first) + stream(4, second)
    chunk = extended(body, 8, typesize=2, blocksize=4, filters=b"\1\3\0\0\0\0")
    assert decode(chunk) == plain
    assert decode_range(chunk, 5, 7) == plain[5:7]


def test_delta_makes_each_variable_length_block_its_own_reference() -> None:
    body = struct.pack("<ii", 40, 47) + stream(3, b"\1\1\1") + stream(3, b"\2\2\2")
    chunk = extended(body, 6, version=6, blocksize=2, filters=b"\3\0\0\0\0\0", flags2=1)
    assert decode_vlblocks(chunk) == [b"\1\0\1", b"\2\0\2"]


# The package itself.


def test_reference_shares_nothing_with_the_engine() -> None:
    allowed = "superchunk.exceptions"
    modules = list(Path(package.__file__).parent.glob("*.py"))
    assert len(modules) >= 7
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [str(node.module)]
            for name in names:
                assert not name.startswith("superchunk") or name.startswith(allowed), module
