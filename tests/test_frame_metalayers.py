"""Fixed metalayers and the trailer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from superchunk._format.metalayers import check_name, header_len_for, read_metalayers, write_metalayers
from superchunk._format.trailer import Trailer
from superchunk.exceptions import FormatError, MetalayerValueError, TruncatedError

HEAD = bytes(87)
EXAMPLE = bytes.fromhex("93CD000FDE0001A26D31D200000069DC0001C600000007C40568656C6C6F")
EMPTY_TRAILER = bytes.fromhex("940193CD0006DE0000DC0000CE00000023D800") + bytes(16)

names = st.text(max_size=7)
layers = st.dictionaries(names, st.binary(max_size=40), max_size=16)


def contents(header: bytes) -> dict[str, bytes]:
    return {name: header[at : at + n] for name, (at, n) in read_metalayers(header).items()}


def test_the_example_of_the_format_page_is_written_byte_for_byte() -> None:
    assert write_metalayers({"m1": b"\xc4\x05hello"}) == EXAMPLE
    assert header_len_for({"m1": b"\xc4\x05hello"}) == 117
    assert contents(HEAD + EXAMPLE) == {"m1": b"\xc4\x05hello"}


def test_an_empty_trailer_has_35_bytes() -> None:
    assert Trailer().to_bytes() == EMPTY_TRAILER
    assert len(EMPTY_TRAILER) == 35


@given(layers)
def test_metalayers_roundtrip_in_order(wanted: dict[str, bytes]) -> None:
    header = HEAD + write_metalayers(wanted)
    assert len(header) == 97 + sum(11 + len(name.encode()) + len(raw) for name, raw in wanted.items())
    assert list(contents(header).items()) == list(wanted.items())


@given(layers)
def test_trailers_roundtrip_in_order(wanted: dict[str, bytes]) -> None:
    trailer = Trailer(vlmeta=wanted, fingerprint_type=3, fingerprint=bytes(range(16)))
    again = Trailer.from_bytes(trailer.to_bytes(), at=1000)
    assert again == trailer
    assert list(again.vlmeta) == list(wanted)


def test_a_name_of_31_bytes_fits_and_one_of_32_does_not() -> None:
    assert contents(HEAD + write_metalayers({"é" * 15 + "x": b"1"})) == {"é" * 15 + "x": b"1"}
    with pytest.raises(MetalayerValueError, match="at most 31 bytes, got 32"):
        write_metalayers({"é" * 16: b"1"})
    assert check_name("") == b""


def test_a_seventeenth_fixed_metalayer_is_refused() -> None:
    with pytest.raises(MetalayerValueError, match="at most 16, got 17"):
        write_metalayers({str(n): b"" for n in range(17)})


def test_names_that_are_no_utf8_survive_a_roundtrip() -> None:
    raw = HEAD + EXAMPLE.replace(b"m1", b"\xff1")
    (name,) = read_metalayers(raw)
    assert write_metalayers({name: b"\xc4\x05hello"}) == raw[87:]


def test_of_equal_names_the_first_counts() -> None:
    raw = write_metalayers({"a": b"1", "b": b"2"}).replace(b"\xa1b", b"\xa1a")
    assert contents(HEAD + raw) == {"a": b"1"}


@pytest.mark.parametrize(
    ("at", "raw", "field"),
    [
        (4, b"\xdd", "metalayer count marker"),
        (5, b"\xff\xff", "metalayer count"),
        (5, b"\x00\x11", "metalayer count"),
        (7, b"\xc2", "metalayer name marker"),
        (10, b"\xd1", "metalayer position marker"),
        (11, b"\xff\xff\xff\xff", "metalayer 'm1' position"),
        (11, b"\x00\x00\x00\x00", "metalayer 'm1' position"),
        (11, b"\x7f\xff\xff\xff", "metalayer 'm1' position"),
        (18, b"\xc5", "metalayer 'm1' content marker"),
        (19, b"\xff\xff\xff\xff", "metalayer 'm1' length"),
        (19, b"\x00\x00\x00\x08", "metalayer 'm1' length"),
    ],
)
def test_a_damaged_block_is_named_with_its_byte(at: int, raw: bytes, field: str) -> None:
    damaged = HEAD + EXAMPLE[:at] + raw + EXAMPLE[at + len(raw) :]
    with pytest.raises(FormatError) as caught:
        read_metalayers(damaged)
    assert caught.value.field == field
    assert caught.value.at == 87 + at


def test_contents_that_together_claim_more_than_there_is_are_refused() -> None:
    raw = bytearray(Trailer(vlmeta={str(n): bytes(1000) for n in range(9)}).to_bytes())
    first = raw.index(b"\xd2") + 1
    for at in (index for index in range(len(raw)) if raw[index : index + 1] == b"\xd2"):
        raw[at + 1 : at + 5] = raw[first : first + 4]  # every layer shows the first one's content
    Trailer.from_bytes(bytes(raw))
    begin = int.from_bytes(raw[first : first + 4], "big")
    raw[begin + 1 : begin + 5] = (8000).to_bytes(4, "big")
    with pytest.raises(FormatError, match=r"vlmetalayer contents at byte .* together"):
        Trailer.from_bytes(bytes(raw))


def test_every_prefix_of_a_block_is_refused() -> None:
    for length in range(len(EXAMPLE)):
        with pytest.raises(FormatError):
            read_metalayers(HEAD + EXAMPLE[:length])


def test_every_prefix_of_a_trailer_is_refused() -> None:
    raw = Trailer(vlmeta={"a": b"123", "b": b""}).to_bytes()
    for length in range(len(raw)):
        with pytest.raises(FormatError):
            Trailer.from_bytes(raw[:length])


def test_a_bit_flip_in_a_trailer_is_an_error_of_ours_or_harmless() -> None:
    raw = Trailer(vlmeta={"a": b"123", "b": b"4567"}).to_bytes()
    refused = 0
    for bit in range(8 * len(raw)):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            Trailer.from_bytes(bytes(damaged))
        except FormatError:
            refused += 1
    assert refused > 100


def test_8192_vlmetalayers_are_read_and_8193_are_not() -> None:
    many = Trailer(vlmeta={str(n): b"" for n in range(8192)}).to_bytes()
    assert len(Trailer.from_bytes(many).vlmeta) == 8192
    more = Trailer(vlmeta={str(n): b"" for n in range(8193)}).to_bytes()
    with pytest.raises(FormatError, match="vlmetalayer count"):
        Trailer.from_bytes(more)


def test_an_unknown_fingerprint_is_carried() -> None:
    raw = EMPTY_TRAILER[:-17] + b"\x09" + bytes(range(16))
    trailer = Trailer.from_bytes(raw)
    assert (trailer.fingerprint_type, trailer.fingerprint) == (9, bytes(range(16)))


def test_a_short_trailer_is_truncated() -> None:
    with pytest.raises(TruncatedError, match="trailer at byte 7: need 35 bytes, got 3"):
        Trailer.from_bytes(b"123", at=7)
