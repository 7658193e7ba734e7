"""The tables of docs/format against the reference decoder, the parameters and the engine.

A comment ``<!-- table: name -->`` above a table makes it part of this test. The same
number stands in a page, in the reference decoder and in the engine; here they meet.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from reference import Header, blocks, blosclz, codecs, decode, filters, header

from superchunk.exceptions import FormatError

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "format"

Row = dict[str, str]


@cache
def tables() -> dict[str, list[Row]]:
    """Return all marked tables of all pages: name to rows, each a map of column to cell."""
    found: dict[str, list[Row]] = {}
    for page in sorted(PAGES.glob("*.md")):
        lines = page.read_text(encoding="utf-8").splitlines()
        for at, line in enumerate(lines):
            mark = re.fullmatch(r"<!-- table: (.+) -->", line)
            if mark is None:
                continue
            columns = cells(lines[at + 1])
            rows = []
            for row in lines[at + 3 :]:
                if not row.startswith("|"):
                    break
                assert len(cells(row)) == len(columns), f"{page.name}: {row}"
                rows.append(dict(zip(columns, cells(row), strict=True)))
            assert mark[1] not in found, f"{page.name}: a second table {mark[1]}"
            assert rows, f"{page.name}: table {mark[1]} is empty"
            found[mark[1]] = rows
    return found


def cells(line: str) -> list[str]:
    """Return the cells of one line of a table."""
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def numbers(table: str, key: str, value: str) -> dict[str, int]:
    """Return two columns of a table: a name and a number."""
    return {row[key]: int(row[value], 0) for row in tables()[table]}


def chunk(**fields: int | bytes) -> bytes:
    """Return a chunk of 40 stored bytes with these fields, placed as the page says."""
    plain: dict[str, int | bytes] = {
        "version": 5,
        "versionlz": 1,
        "flags": 0x07,
        "typesize": 1,
        "nbytes": 40,
        "blocksize": 40,
        "cbytes": 72,
        "filters": bytes(6),
        "filters_meta": bytes(6),
    }
    raw = bytearray(72)
    for row in tables()["chunk header"]:
        value = {**plain, **fields}.get(row["Field"], 0)
        at, size = int(row["Offset"]), int(row["Size"])
        if isinstance(value, int):
            value = value.to_bytes(size, "little", signed=value < 0)
        raw[at : at + size] = value
    return bytes(raw)


def describe(raw: bytes) -> Any:
    """Return what the engine makes of a header."""
    from superchunk import _engine  # the pages are tested without it, too

    return _engine.describe(raw)


# The chunk.


def test_fields_of_the_chunk_header_are_those_of_the_reference() -> None:
    fields = {row["Field"]: (int(row["Offset"]), int(row["Size"])) for row in tables()["chunk header"]}
    assert fields == dict(header.FIELDS)


def test_fields_of_the_chunk_header_leave_no_gap() -> None:
    at = 0
    for row in tables()["chunk header"]:
        assert int(row["Offset"]) == at, row["Field"]
        at += int(row["Size"])
    assert at == header.EXTENDED_HEADER


FIELDS: dict[str, int | bytes] = {
    "version": 4,
    "flags": 0xA5,
    "typesize": 7,
    "nbytes": 0x01020304,
    "blocksize": 0x00050601,  # whole items
    "cbytes": 71,
    "filters": b"\0\0\1\2\3\4",
    "udcodec": 4,
    "codec_meta": 9,
    "filters_meta": b"\5\6\7\10\11\12",
    "blosc2_flags": 0x81,
}


def test_engine_reads_the_chunk_header_where_the_page_says() -> None:
    info = describe(chunk(**FIELDS))
    assert (info.version, info.flags, info.typesize) == (4, 0xA5, 7)
    assert (info.nbytes, info.cbytes, info.header_len) == (0x01020304, 71, 32)
    assert info.blocksize == 0x00050601
    assert (info.codec, info.codec_meta) == (4, 9)
    assert (info.filters, info.filters_meta) == ((0, 0, 1, 2, 3, 4), (5, 6, 7, 8, 9, 10))
    assert (info.use_dict, info.vlblocks, info.special) == (True, False, 0)


def test_reference_reads_the_chunk_header_where_the_page_says() -> None:
    found = Header.from_bytes(chunk(**FIELDS))
    assert (found.version, found.flags, found.typesize) == (4, 0xA5, 7)
    assert (found.nbytes, found.blocksize, found.cbytes) == (0x01020304, 0x00050601, 71)
    assert (found.udcodec, found.codec_meta) == (4, 9)
    assert (found.filters, found.filters_meta) == ((0, 0, 1, 2, 3, 4), (5, 6, 7, 8, 9, 10))
    assert (found.use_dict, found.instrumented) == (True, True)


def test_flags_are_those_of_the_reference() -> None:
    masks = numbers("flags", "Name", "Mask")
    assert masks == {
        "SHUFFLE": header.FLAG_SHUFFLE,
        "MEMCPYED": header.FLAG_MEMCPYED,
        "BITSHUFFLE": header.FLAG_BITSHUFFLE,
        "DELTA": header.FLAG_DELTA,
        "DONT_SPLIT": header.FLAG_DONT_SPLIT,
        "codec format": 0xFF & ~((1 << header.CODEC_FORMAT_SHIFT) - 1),
    }
    masks = numbers("blosc2_flags", "Name", "Mask")
    assert masks == {
        "USEDICT": header.FLAG_USEDICT,
        "BIGENDIAN": header.FLAG_BIGENDIAN,
        "-": 0x04,
        "LAZY": header.FLAG_LAZY,
        "special": header.SPECIAL_MASK << header.SPECIAL_SHIFT,
        "INSTRUMENTED": header.FLAG_INSTRUMENTED,
    }
    masks = numbers("blosc2_flags2", "Name", "Mask")
    assert masks == {"VLBLOCKS": header.FLAG2_VLBLOCKS, "-": 0xFF & ~header.FLAG2_VLBLOCKS}


@pytest.mark.parametrize("table", ["flags", "blosc2_flags", "blosc2_flags2"])
def test_flags_of_a_byte_share_no_bit_and_leave_none(table: str) -> None:
    seen = 0
    for row in tables()[table]:
        mask = int(row["Mask"], 16)
        assert not seen & mask, row
        seen |= mask
    assert seen == 0xFF


def test_engine_gives_the_flags_the_same_meaning() -> None:
    flags = numbers("flags", "Name", "Mask")
    flags2 = numbers("blosc2_flags", "Name", "Mask")
    vlblocks = numbers("blosc2_flags2", "Name", "Mask")["VLBLOCKS"]
    extended = flags["SHUFFLE"] | flags["BITSHUFFLE"]
    plain = describe(chunk(flags=extended))
    assert [plain.memcpyed, plain.dont_split, plain.use_dict, plain.vlblocks] == [False] * 4
    assert describe(chunk(flags=extended | flags["MEMCPYED"])).memcpyed
    assert describe(chunk(flags=extended | flags["DONT_SPLIT"])).dont_split
    assert describe(chunk(flags=extended, blosc2_flags=flags2["USEDICT"])).use_dict
    variable = chunk(version=6, flags=extended, blocksize=1, blosc2_flags2=vlblocks)
    assert describe(variable).vlblocks
    short = struct.pack("<BBBBiii", 2, 1, flags["MEMCPYED"] | flags["SHUFFLE"], 4, 8, 8, 24)
    assert describe(short + bytes(8)).filters == (0, 0, 0, 0, 0, filters.FILTER_IDS["shuffle"])
    with pytest.raises(FormatError, match="blosc2_flags"):
        describe(chunk(blosc2_flags=flags2["LAZY"]))
    with pytest.raises(FormatError, match="blosc2_flags2"):
        describe(chunk(blosc2_flags2=0x02))


def test_limits_of_a_chunk_are_those_of_the_reference_and_the_parameters() -> None:
    from superchunk import params  # the pages are tested without it, too

    limits = numbers("chunk limits", "Name", "Value")
    assert limits["short header"] == header.SHORT_HEADER == params.MIN_HEADER_LENGTH
    assert limits["extended header"] == header.EXTENDED_HEADER == params.EXTENDED_HEADER_LENGTH
    assert limits["maximum overhead"] == header.EXTENDED_HEADER == params.MAX_OVERHEAD
    assert limits["maximum nbytes"] == header.MAX_NBYTES == params.MAX_BUFFERSIZE
    assert limits["maximum blocksize"] == header.MAX_BLOCKSIZE == params.MAX_BLOCKSIZE
    assert limits["maximum item"] == header.MAX_ITEM == params.MAX_TYPESIZE
    assert limits["maximum typesize"] == header.MAX_TYPESIZE
    assert limits["filter slots"] == header.FILTER_SLOTS == params.NFILTERS
    assert limits["maximum dictionary"] == blocks.MAX_DICT
    assert limits["maximum streams by rule"] == blocks.BLOSC1_MAX_SPLITS


@pytest.mark.parametrize(("field", "limit"), [("nbytes", "maximum nbytes"), ("blocksize", "maximum blocksize")])
def test_engine_and_reference_stop_at_the_limit_of_the_page(field: str, limit: str) -> None:
    most = numbers("chunk limits", "Name", "Value")[limit]
    sound = {"flags": 0x05, "nbytes": most, "blocksize": 100, field: most}
    assert getattr(describe(chunk(**sound)), field) == most
    assert getattr(Header.from_bytes(chunk(**sound)), field) == most
    for read in (describe, Header.from_bytes):
        with pytest.raises(FormatError, match=rf"^{field} at byte "):
            read(chunk(**{**sound, field: most + 1}))


def test_engine_compresses_from_the_smallest_content_of_the_page_on() -> None:
    from superchunk import _engine  # the pages are tested without it, too

    least = numbers("chunk limits", "Name", "Value")["smallest compressed content"]
    params = _engine.EncodeParams(codec=0, typesize=1, filters=bytes(6))
    assert describe(_engine.compress(bytes(least - 1), params)).memcpyed
    assert not describe(_engine.compress(bytes(least), params)).memcpyed


def test_special_values_are_those_of_everybody() -> None:
    from superchunk import _engine, params  # the pages are tested without it, too

    ids = numbers("special values", "Name", "Id")
    assert ids == {
        "ZERO": header.SPECIAL_ZERO,
        "NAN": header.SPECIAL_NAN,
        "VALUE": header.SPECIAL_VALUE,
        "UNINIT": header.SPECIAL_UNINIT,
    }
    assert {**ids, "NOT_SPECIAL": 0} == {kind.name: kind.value for kind in params.SpecialValue}
    for name, ident in ids.items():
        value = b"\1\2\3\4" if name == "VALUE" else None
        made = _engine.special_chunk(ident, 400, 4, value)
        assert describe(made).special == ident
        assert describe(made).repeated_value == value
        assert decode(made) == _engine.decompress(made)
    for read in (describe, Header.from_bytes):
        with pytest.raises(FormatError, match="special"):
            read(chunk(flags=0x05, blosc2_flags=max(ids.values()) + 1 << 4))


def test_split_modes_are_those_of_the_parameters() -> None:
    from superchunk import params  # the pages are tested without it, too

    assert numbers("split modes", "Name", "Mode") == {
        mode.name.removesuffix("_SPLIT"): mode.value for mode in params.SplitMode
    }


# Codecs.


def test_codecs_are_those_of_the_reference() -> None:
    ids = numbers("codecs", "Name", "Id")
    formats = numbers("codecs", "Name", "Format")
    assert ids.pop("registered") == min(codecs.REGISTERED)
    assert formats.pop("registered") == codecs.FORMAT_REGISTERED
    assert ids == dict(codecs.CODEC_IDS)
    assert formats == dict(codecs.CODEC_FORMATS)
    registered = {int(row["Id"]): row["Name"] for row in tables()["registered codecs"]}
    assert registered == dict(codecs.REGISTERED)


def test_codecs_are_those_of_the_parameters() -> None:
    from superchunk import params  # the pages are tested without it, too

    known = {codec.name.lower(): codec.value for codec in params.Codec}
    ids = numbers("codecs", "Name", "Id")
    built_in = {name: ident for name, ident in ids.items() if name not in ("snappy", "registered")}
    assert known == {**built_in, **numbers("registered codecs", "Name", "Id")}


@pytest.mark.parametrize("name", ["blosclz", "lz4", "lz4hc", "zlib", "zstd"])
def test_engine_writes_id_and_format_of_the_page(name: str) -> None:
    from superchunk import _engine  # the pages are tested without it, too

    ident = numbers("codecs", "Name", "Id")[name]
    params = _engine.EncodeParams(codec=ident, typesize=4, clevel=5)
    plain = b"superchunk" * 400
    made = _engine.compress(plain, params)
    at = {row["Field"]: int(row["Offset"]) for row in tables()["chunk header"]}
    assert not describe(made).memcpyed
    assert made[at["flags"]] >> 5 == numbers("codecs", "Name", "Format")[name]
    assert made[at["udcodec"]] == describe(made).codec == ident
    assert decode(made) == plain


def test_ranges_of_ids_are_those_of_the_parameters() -> None:
    from superchunk import params  # the pages are tested without it, too

    for row in tables()["id ranges"]:
        ends = [[int(end) for end in row[who].split(" to ")] for who in list(row)[1:]]
        assert ends == [
            [0, params.DEFINED_CODECS_STOP],
            [params.DEFINED_CODECS_STOP + 1, params.GLOBAL_REGISTERED_CODECS_STOP],
            [params.GLOBAL_REGISTERED_CODECS_STOP + 1, params.USER_REGISTERED_CODECS_STOP],
        ]


def test_quantities_of_blosclz_are_those_of_the_reference() -> None:
    quantities = numbers("blosclz", "Quantity", "Value")
    assert quantities["largest near distance"] == blosclz.NEAR_DISTANCES
    assert quantities["far bias"] == blosclz.FAR_BIAS
    assert quantities["largest far distance"] == blosclz.FAR_BIAS + 0xFFFF
    run, shortest = quantities["longest literal run"], quantities["shortest match"]
    literals = bytes([run - 1]) + bytes(range(run))
    assert blosclz.decompress(literals, run) == bytes(range(run))
    match = literals + bytes([1 << 5, 0, 0, 7])
    assert blosclz.decompress(match, run + shortest + 1) == (bytes(range(run)) + bytes([run - 1]) * shortest + b"\7")
    long = literals + bytes([7 << 5, 255, 1, 0, 0, 7])
    assert len(blosclz.decompress(long, run + quantities["long match"] + 256 + 1)) == run + 266


# Filters.


def test_filters_are_those_of_the_reference_and_the_parameters() -> None:
    from superchunk import params  # the pages are tested without it, too

    ids = numbers("filters", "Name", "Id")
    assert ids == dict(filters.FILTER_IDS)
    known = {kind.name.lower(): kind.value for kind in params.Filter}
    known["none"] = known.pop("nofilter")
    assert known == {name: ident for name, ident in ids.items() if name != "bytedelta_v1"}


@pytest.mark.parametrize("name", ["shuffle", "bitshuffle", "delta", "bytedelta"])
def test_engine_applies_the_filter_of_the_page(name: str) -> None:
    from superchunk import _engine  # the pages are tested without it, too

    ident = numbers("filters", "Name", "Id")[name]
    plain = struct.pack("<300I", *(1000 + i * i for i in range(300)))
    params = _engine.EncodeParams(
        codec=5, typesize=4, filters=bytes([0, 0, 0, 0, 0, ident]), filters_meta=bytes(5) + b"\4"
    )
    made = _engine.compress(plain, params)
    assert not describe(made).memcpyed
    assert describe(made).filters == (0, 0, 0, 0, 0, ident)
    assert decode(made) == plain


# Frames.


def test_fields_of_the_frame_header_and_their_markers_leave_no_gap() -> None:
    at = 0
    for row in tables()["frame header"]:
        at += len(re.findall(r"0x[0-9A-F]{2}", row["Marker before it"]))
        assert int(row["Offset"], 16) == at, row["Field"]
        at += int(row["Size"])
    limits = numbers("frame limits", "Name", "Value")
    assert at == limits["smallest header"]
    assert int(tables()["frame header"][-1]["Offset"], 16) == limits["fixed header"]
    assert limits["smallest header"] + limits["smallest trailer"] == limits["smallest frame"]


def test_frame_header_is_written_where_the_page_says() -> None:
    from superchunk._format.frame_header import FrameHeader

    raw = FrameHeader(
        header_len=97,
        frame_len=0x0102030405,
        nbytes=0x1112131415,
        cbytes=0x2122232425,
        chunksize=0x31323334,
        typesize=0x41424344,
        blocksize=0x51525354,
        codec=5,
        codec_meta=7,
        clevel=9,
        filters=b"\0\1\2\3\4\x23",
        filters_meta=b"\1\2\3\4\5\6",
        splitmode=3,
        use_dict=True,
        nthreads_comp=0x0161,
        nthreads_decomp=0x0162,
        has_vlmeta=True,
        varchunks=False,
        vlblocks=False,
    ).to_bytes()
    expected = {
        "magic": b"b2frame\0",
        "header_len": struct.pack(">i", 97),
        "frame_len": struct.pack(">Q", 0x0102030405),
        "general_flags": b"\x12",
        "frame_type": b"\0",
        "codec_flags": b"\x95",
        "other_flags": b"\2",
        "nbytes": struct.pack(">q", 0x1112131415),
        "cbytes": struct.pack(">q", 0x2122232425),
        "typesize": b"\x41\x42\x43\x44",
        "blocksize": b"\x51\x52\x53\x54",
        "chunksize": b"\x31\x32\x33\x34",
        "nthreads_comp": b"\x01\x61",
        "nthreads_decomp": b"\x01\x62",
        "has_vlmetalayers": b"\xc3",
        "nfilters": b"\6",
        "filters": b"\0\1\2\3\4\x23",
        "udcodec": b"\5",
        "codec_meta": b"\7",
        "filters_meta": b"\1\2\3\4\5\6",
        "other_flags2": b"\1",
        "reserved": b"\0",
    }
    at = 0
    for row in tables()["frame header"][:-1]:
        for marker in re.findall(r"0x([0-9A-F]{2})", row["Marker before it"]):
            assert raw[at] == int(marker, 16), row["Field"]
            at += 1
        size = int(row["Size"])
        assert raw[at : at + size] == expected.pop(row["Field"]), row["Field"]
        at += size
    assert not expected
    assert at == len(raw)


@pytest.mark.parametrize(("varchunks", "vlblocks"), [(False, False), (True, False), (False, True)])
def test_general_flags_of_the_page_are_written(*, varchunks: bool, vlblocks: bool) -> None:
    from superchunk._format.frame_header import FrameHeader

    offsets = {row["Field"]: int(row["Offset"], 16) for row in tables()["frame header"]}
    values = {row["Frame"]: int(row["Value"], 16) for row in tables()["general_flags values"]}
    raw = FrameHeader(
        header_len=97,
        frame_len=132,
        nbytes=0,
        cbytes=0,
        chunksize=0,
        typesize=1,
        blocksize=0,
        codec=5,
        codec_meta=0,
        clevel=5,
        filters=bytes(6),
        filters_meta=bytes(6),
        splitmode=3,
        use_dict=False,
        nthreads_comp=1,
        nthreads_decomp=1,
        has_vlmeta=False,
        varchunks=varchunks,
        vlblocks=vlblocks,
    ).to_bytes()
    kind = "chunk sizes vary" if varchunks else "variable-length blocks" if vlblocks else "ordinary"
    assert raw[offsets["general_flags"]] == values[kind]
    assert values["both"] == values["chunk sizes vary"] | values["variable-length blocks"]


def test_limits_of_a_frame_are_those_of_the_code() -> None:
    from superchunk._format import frame_header, metalayers, trailer
    from superchunk._format import frame_index as index

    limits = numbers("frame limits", "Name", "Value")
    assert limits["fixed header"] == frame_header.FIXED_LEN
    assert limits["smallest trailer"] == frame_header.MIN_TRAILER_LEN
    assert limits["smallest trailer"] == len(trailer.Trailer().to_bytes())
    assert limits["most chunks read"] == frame_header.MAX_CHUNKS_READ
    assert limits["most chunks written"] == index.MAX_CHUNKS == header.MAX_NBYTES // 8
    assert limits["shortest stored chunk"] == header.EXTENDED_HEADER
    limits = numbers("metalayer limits", "Name", "Value")
    assert limits["fixed metalayers"] == metalayers.MAX_METALAYERS
    assert limits["variable metalayers written"] == metalayers.MAX_METALAYERS
    assert limits["variable metalayers read"] == trailer.MAX_VLMETALAYERS_READ
    assert limits["name length"] == metalayers.MAX_NAME_LEN


def test_special_entries_are_those_of_the_code() -> None:
    from superchunk._format.frame_index import special_entry

    codes = [int(row["Top byte"], 16) for row in tables()["special entries"]]
    kinds = (header.SPECIAL_ZERO, header.SPECIAL_NAN, header.SPECIAL_UNINIT)
    assert codes == [special_entry(kind) >> 56 & 0xFF for kind in kinds]


def test_fingerprint_types_fit_their_field() -> None:
    bits = numbers("fingerprint types", "Type", "Bits")
    assert bits == {"0": 0, "1": 32, "2": 64, "3": 8 * 16}


def test_fields_of_the_beta_header_and_their_markers_leave_no_gap() -> None:
    at = 0
    for row in tables()["beta frame header"]:
        at += len(re.findall(r"0x[0-9A-F]{2}", row["Marker before it"]))
        assert int(row["Offset"], 16) == at, row["Field"]
        at += int(row["Size"])
    limits = numbers("beta frame limits", "Name", "Value")
    assert at == limits["smallest header"]
    assert limits["smallest header"] + limits["smallest trailer"] == limits["smallest frame"]


@pytest.mark.parametrize("order", ["big", "little"])
def test_beta_header_is_read_where_the_page_says(order: Literal["big", "little"]) -> None:
    from superchunk._format.legacy_header import LegacyHeader, byte_order

    version = 0x12 if order == "little" else 0x21
    values: dict[str, int | bytes] = {
        "magic": b"b2frame\0",
        "header_len": 0x0102,
        "frame_len": 0x0102030405,
        "general_flags": version,
        "codec_flags": 0x96,
        "nbytes": 0x1112,
        "cbytes": 0x2122232425 - 0x2100000000,
        "typesize": 0x41424344,
        "chunksize": 0x31323334,
        "nthreads_comp": 0x0161,
        "nthreads_decomp": 0x0162,
        "nfilters": 2,
        "filters": b"\3\1".ljust(8, b"\0"),
        "filters_meta": b"\7\x08".ljust(8, b"\0"),
        "metalayers": b"\x93\xcd\0\0\xde\0\0\xdc\0\0",
    }
    raw = b""
    for row in tables()["beta frame header"]:
        raw += bytes(int(marker, 16) for marker in re.findall(r"0x([0-9A-F]{2})", row["Marker before it"]))
        value = values.pop(row["Field"], 0)
        raw += value if isinstance(value, bytes) else value.to_bytes(int(row["Size"]), order)
    assert not values
    assert byte_order(raw, 2**40) == order
    header = LegacyHeader.from_bytes(raw, order)
    assert (header.header_len, header.frame_len, header.nbytes) == (0x0102, 0x0102030405, 0x1112)
    assert (header.cbytes, header.typesize, header.chunksize) == (0x22232425, 0x41424344, 0x31323334)
    assert (header.codec, header.clevel) == (6, 9)
    assert (header.nthreads_comp, header.nthreads_decomp) == (0x0161, 0x0162)
    assert (header.filters, header.filters_meta) == (b"\0\0\0\0\3\1", b"\0\0\0\0\7\x08")
    codes = [int(row["Top byte"], 16) for row in tables()["beta special entries"]]
    assert list(header.special_codes) == (codes if order == "little" else [])


def test_limits_of_a_beta_frame_are_those_of_the_code() -> None:
    from superchunk._format import legacy_header as legacy
    from superchunk._format.legacy_trailer import LegacyTrailer

    limits = numbers("beta frame limits", "Name", "Value")
    assert limits["smallest trailer"] == legacy.MIN_TRAILER_LEN
    for cut, error in ((0, None), (1, FormatError)):
        frame_len = limits["smallest frame"] - cut
        head = b"\x9d\xa8b2frame\0\xd2" + struct.pack(">iBQ", limits["smallest header"], 0xCF, frame_len)
        if error is None:
            assert legacy.byte_order(head.ljust(87, b"\0"), frame_len) == "big"
        else:
            with pytest.raises(error):
                legacy.byte_order(head.ljust(87, b"\0"), frame_len)
    starts = {row["Trailer begins"] for row in tables()["frame families"] if row["Family"] == "beta"}
    for start in starts:
        end = b"\xce" + struct.pack(">I", limits["smallest trailer"]) + b"\xd8" + bytes(17)
        raw = bytes.fromhex(start) + b"\xc6\0\0\0\0" + end
        assert LegacyTrailer.from_bytes(raw, "big").usermeta == b""


def test_families_are_told_by_the_first_byte_of_the_page() -> None:
    from superchunk._format import legacy_header as legacy

    for row in tables()["frame families"]:
        head = bytes([int(row["First byte"], 16)]) + b"\xa8b2frame\0"
        assert legacy.is_legacy(head) == (row["Family"] in {"alpha", "beta"})


def test_extension_types_of_values_are_those_of_the_code() -> None:
    import msgpack
    import numpy as np

    from superchunk._format import metalayer_values as values

    codes = {row["Name"]: int(row["Type"]) for row in tables()["extension types"]}
    assert (codes["frame"], codes["reference"]) == (values.EXT_FRAME, values.EXT_REFERENCE)
    for name, value in (("complex", 1j), ("set", {1, 2}), ("array", np.arange(3))):
        packed = msgpack.unpackb(values.pack(value))
        assert isinstance(packed, msgpack.ExtType)
        assert packed.code == codes[name]


# The pages themselves.


def anchors(page: Path) -> set[str]:
    """Return the anchors of all headings of a page, spelled as in links."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def headings(page: Path) -> set[str]:
    """Return the text of all headings of a page."""
    return set(re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([\w.]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8"))
    assert links or page.name == "README.md"
    for target, anchor in links:
        other = PAGES / target if target else page
        assert other.is_file(), target
        assert not anchor or anchor in anchors(other), f"{target}#{anchor}"


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.name)
def test_page_says_what_it_was_checked_against(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.search(r"C-Blosc2\W+(without a version is\W+)?3\.3\.5", text), page.name


def citations() -> list[tuple[str, str, list[str]]]:
    """Return (file, page, sections) for each citation of a page in the code."""
    found = []
    files = [*ROOT.glob("python/**/*.py*"), *ROOT.glob("tests/*.py"), *ROOT.glob("*/src/**/*.rs")]
    for file in files:
        if file.suffix not in (".py", ".pyi", ".rs"):
            continue
        # Comment signs at line starts would stand between the parts of a citation.
        text = re.sub(r"\s*\n\s*(?://[/!]|#)?\s*", " ", file.read_text(encoding="utf-8"))
        for cited in re.finditer(r"docs/format/(\w+\.md)`*,? *((?:sections? )?[^.;)]*)", text):
            # Pages have headings, no numbers: "section 3" leads nowhere.
            sections = re.findall(r'"([^"]+)"|sections? (\d+)', cited[2])
            names = [heading or number for heading, number in sections]
            found.append((str(file.relative_to(ROOT)), cited[1], names))
    return found


def test_code_cites_pages_and_sections_that_exist() -> None:
    assert len(citations()) > 10
    wrong = [
        f"{file}: {page} {section}"
        for file, page, sections in citations()
        for section in (sections or [""])
        if not (PAGES / page).is_file() or (section and section not in headings(PAGES / page))
    ]
    assert not wrong, "\n".join(wrong)
