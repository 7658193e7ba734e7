"""The 87 fixed bytes of a frame header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from superchunk._format.frame_header import FIXED_LEN, FrameHeader, with_sizes
from superchunk._format.metalayers import write_metalayers
from superchunk._format.trailer import Trailer
from superchunk.exceptions import FormatError, NewerFormatError, TruncatedError

EXAMPLE = bytes.fromhex(
    "9ea86232 6672616d 6500 d200000061 cf0000000000000084 a412005502 d30000000000000000"
    "d30000000000000000 d200000004 d200000000 d200000fa0 d10001 d10002 c2 d806"
    "000000000001 05 00 000000000000 00 00"
)
FIELDS = {
    "header_len": 97,
    "frame_len": 132,
    "nbytes": 0,
    "cbytes": 0,
    "chunksize": 4000,
    "typesize": 4,
    "blocksize": 0,
    "codec": 5,
    "codec_meta": 0,
    "clevel": 5,
    "filters": b"\0\0\0\0\0\1",
    "filters_meta": bytes(6),
    "splitmode": 3,
    "use_dict": False,
    "nthreads_comp": 1,
    "nthreads_decomp": 2,
    "has_vlmeta": False,
    "varchunks": False,
    "vlblocks": False,
}


def with_bytes(at: int, raw: bytes) -> bytes:
    return EXAMPLE[:at] + raw + EXAMPLE[at + len(raw) :]


def test_empty_frame_has_the_bytes_of_the_format_page() -> None:
    header = FrameHeader(**FIELDS).to_bytes()  # type: ignore[arg-type]
    assert header == EXAMPLE
    whole = header + write_metalayers({}) + Trailer().to_bytes()
    assert len(whole) == 132
    assert whole[87:97].hex() == "93cd0007de0000dc0000"


def test_header_reads_back_as_it_was_written() -> None:
    assert FrameHeader.from_bytes(EXAMPLE) == FrameHeader(**FIELDS)  # type: ignore[arg-type]


@given(st.integers(133, 2**63 - 1), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_other_sizes_change_nothing_else(frame_len: int, nbytes: int, cbytes: int) -> None:
    sizes = {"frame_len": frame_len, "nbytes": nbytes, "cbytes": cbytes}
    assert with_sizes(EXAMPLE, **sizes) == FrameHeader(**(FIELDS | sizes)).to_bytes()  # type: ignore[arg-type]


def with_nchunks(fields: dict[str, int], nchunks: int) -> dict[str, int]:
    return fields | {"nbytes": fields["chunksize"] * nchunks, "cbytes": 5000, "frame_len": 9999}


headers = st.builds(
    with_nchunks,
    st.fixed_dictionaries(
        {
            "codec": st.sampled_from([0, 1, 2, 4, 5, 32, 35, 255]),
            "clevel": st.integers(0, 9),
            "splitmode": st.integers(1, 4),
            "typesize": st.integers(1, 2**31 - 1),
            "blocksize": st.integers(0, 2**31 - 1),
            "chunksize": st.integers(1, 2**31 - 1),
            "use_dict": st.booleans(),
            "varchunks": st.booleans(),
            "vlblocks": st.booleans(),
        }
    ),
    st.integers(0, 1000),
)


@given(headers)
def test_any_legal_header_roundtrips(fields: dict[str, int]) -> None:
    header = FrameHeader(**FIELDS | fields)  # type: ignore[arg-type]
    assert FrameHeader.from_bytes(header.to_bytes()) == header


@pytest.mark.parametrize(
    ("flags", "varchunks", "vlblocks"),
    [(0x12, False, False), (0x53, True, False), (0x93, False, True), (0xD3, True, True)],
)
def test_general_flags_are_the_canonical_ones(flags: int, *, varchunks: bool, vlblocks: bool) -> None:
    header = FrameHeader(**FIELDS | {"varchunks": varchunks, "vlblocks": vlblocks})  # type: ignore[arg-type]
    assert header.to_bytes()[0x19] == flags


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_versions_up_to_3_are_read(version: int) -> None:
    FrameHeader.from_bytes(with_bytes(0x19, bytes((0x10 | version,))))


@pytest.mark.parametrize("version", [4, 15])
def test_newer_versions_are_named(version: int) -> None:
    with pytest.raises(NewerFormatError, match=f"frame version at byte 25.*found {version}"):
        FrameHeader.from_bytes(with_bytes(0x19, bytes((0x10 | version,))))


@pytest.mark.parametrize("marker", [0x9B, 0x9C, 0x9D])
def test_frames_of_early_betas_are_named(marker: int) -> None:
    with pytest.raises(FormatError, match="early Blosc2 beta") as caught:
        FrameHeader.from_bytes(with_bytes(0, bytes((marker,))))
    assert not isinstance(caught.value, NewerFormatError)


def test_a_sparse_frame_is_named() -> None:
    raw = with_bytes(0x1A, b"\1")
    with pytest.raises(FormatError, match="the index file of a sparse frame: open its directory"):
        FrameHeader.from_bytes(raw)
    assert FrameHeader.from_bytes(raw, sparse=True).to_bytes() == raw[:87]
    with pytest.raises(FormatError, match="expected 1, sparse, found 0, a contiguous frame"):
        FrameHeader.from_bytes(with_bytes(0x1A, b"\0"), sparse=True)


@pytest.mark.parametrize(
    ("at", "raw", "field"),
    [
        (0x01, b"\0", "frame magic"),
        (0x02, b"B", "frame magic"),
        (0x0B, b"\0\0\0\x60", "header_len"),
        (0x0B, b"\xff\xff\xff\xff", "header_len"),
        (0x0B, b"\0\0\0\x62", "header_len"),
        (0x10, b"\x80", "frame_len"),
        (0x10, bytes(8), "frame_len"),
        (0x1A, b"\2", "frame_type"),
        (0x1E, b"\x80", "nbytes"),
        (0x27, b"\x80", "cbytes"),
        (0x30, bytes(4), "typesize"),
        (0x30, b"\xff", "typesize"),
        (0x3A, b"\xff\xff\xff\xfe", "chunksize"),
        (0x46, b"\7", "filter slots"),
    ],
)
def test_an_impossible_field_is_named_with_its_byte(at: int, raw: bytes, field: str) -> None:
    with pytest.raises(FormatError) as caught:
        FrameHeader.from_bytes(with_bytes(at, raw))
    error = caught.value
    assert error.field == field
    assert error.at == (0x01 if field == "frame magic" else at)
    assert f"{field} at byte {error.at}: expected {error.expected}, found {error.found}" in str(error)


def test_data_without_a_chunksize_is_refused() -> None:
    raw = with_bytes(0x1E, (100).to_bytes(8, "big"))
    with pytest.raises(FormatError, match="chunksize at byte 58"):
        FrameHeader.from_bytes(raw[:0x3A] + b"\xff\xff\xff\xff" + raw[0x3E:])


def test_more_chunks_than_an_index_can_hold_are_refused_before_anything_is_allocated() -> None:
    raw = with_bytes(0x1E, (2**60).to_bytes(8, "big"))
    with pytest.raises(FormatError, match=r"nbytes at byte 30.*268435455 chunks"):
        FrameHeader.from_bytes(raw)


def test_the_data_section_must_end_before_the_trailer() -> None:
    raw = with_bytes(0x1E, (100).to_bytes(8, "big"))
    raw = raw[:0x27] + (2**63 - 1).to_bytes(8, "big") + raw[0x2F:]
    with pytest.raises(FormatError, match="cbytes at byte 39: expected at most 0"):
        FrameHeader.from_bytes(raw)


@pytest.mark.parametrize("length", range(FIXED_LEN))
def test_a_short_header_is_truncated(length: int) -> None:
    with pytest.raises(TruncatedError) as caught:
        FrameHeader.from_bytes(EXAMPLE[:length])
    assert (caught.value.needed, caught.value.got) == (FIXED_LEN, length)
