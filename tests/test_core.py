"""Promises of `superchunk.core`: one chunk at a time."""

from __future__ import annotations

import array
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superchunk
from superchunk import Codec, CParams, DParams, Filter, _engine

if TYPE_CHECKING:
    from numpy.typing import NDArray

blosc2 = pytest.importorskip("blosc2", reason="the oracle is not installed")

BUILTIN = [Codec.BLOSCLZ, Codec.LZ4, Codec.LZ4HC, Codec.ZLIB, Codec.ZSTD]
DATA = np.arange(10_000, dtype=np.int64)


@pytest.mark.parametrize("codec", BUILTIN)
@pytest.mark.parametrize("choice", list(Filter))
def test_compress_gives_the_bytes_back_for_every_codec_and_filter(codec: Codec, choice: Filter) -> None:
    chunk = superchunk.compress(DATA, filter=choice, codec=codec)
    assert superchunk.decompress(chunk) == DATA.tobytes()
    assert blosc2.decompress(chunk) == DATA.tobytes()


@given(
    data=st.binary(max_size=5000),
    typesize=st.sampled_from([1, 2, 3, 8, 255, 256, 1000]),
    codec=st.sampled_from(BUILTIN),
    clevel=st.integers(0, 9),
    first=st.sampled_from([Filter.NOFILTER, Filter.DELTA, Filter.SHUFFLE]),
    others=st.lists(
        st.sampled_from([Filter.NOFILTER, Filter.SHUFFLE, Filter.BITSHUFFLE, Filter.BYTEDELTA]), max_size=5
    ),
    nthreads=st.integers(1, 3),
)
@settings(deadline=None, max_examples=150)
def test_compress2_gives_any_bytes_back(
    data: bytes, typesize: int, codec: Codec, clevel: int, first: Filter, others: list[Filter], nthreads: int
) -> None:
    filters = [first, *others]
    chunk = superchunk.compress2(
        data, typesize=typesize, codec=codec, clevel=clevel, filters=filters, nthreads=nthreads
    )
    assert len(chunk) <= len(data) + superchunk.MAX_OVERHEAD
    assert superchunk.decompress2(chunk, nthreads=nthreads) == data


def test_the_reference_reads_what_compress2_writes_and_the_other_way_round() -> None:
    for codec in BUILTIN:
        ours = superchunk.compress2(DATA, codec=codec)
        assert blosc2.decompress2(ours) == DATA.tobytes()
        theirs = blosc2.compress2(DATA, codec=blosc2.Codec[codec.name])
        assert superchunk.decompress2(theirs) == DATA.tobytes()
        assert superchunk.get_clib(theirs) == blosc2.get_clib(theirs) == superchunk.get_clib(ours)


def test_typesize_defaults_to_eight_or_with_none_to_the_items_of_the_source() -> None:
    with pytest.raises(ValueError, match="multiple of typesize 8"):
        superchunk.compress(b"hello")
    for source, typesize in ((array.array("h", range(100)), 2), (bytes(range(200)), 1)):
        chunk = superchunk.compress(source, typesize=None)
        assert superchunk._engine.describe(chunk).typesize == typesize
        assert superchunk.decompress(chunk) == bytes(memoryview(source).cast("B"))


@pytest.mark.parametrize(
    ("keywords", "field"),
    [
        ({"typesize": 0}, "typesize"),
        ({"typesize": superchunk.MAX_TYPESIZE + 1}, "typesize"),
        ({"clevel": 10}, "clevel"),
    ],
)
def test_compress_refuses_numbers_out_of_range_by_name(keywords: dict[str, int], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        superchunk.compress(b"12345678", **keywords)  # type: ignore[arg-type]


def test_compress_takes_members_and_their_names_for_filter_and_codec_and_no_numbers() -> None:
    with pytest.raises(TypeError, match="filter"):
        superchunk.compress(b"12345678", filter=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="codec"):
        superchunk.compress(b"12345678", codec=1)  # type: ignore[arg-type]
    assert superchunk.compress(b"12345678", filter="shuffle", codec="LZ4") == superchunk.compress(
        b"12345678", filter=superchunk.Filter.SHUFFLE, codec=superchunk.Codec.LZ4
    )


def test_compress_asks_for_the_length_before_the_buffer() -> None:
    class Huge:
        def __len__(self) -> int:
            return superchunk.MAX_BUFFERSIZE + 1

    with pytest.raises(ValueError, match=str(superchunk.MAX_BUFFERSIZE)):
        superchunk.compress(Huge())  # type: ignore[arg-type]


def test_sources_without_buffer_or_length_or_that_are_not_contiguous_are_refused() -> None:
    with pytest.raises(TypeError):
        superchunk.compress(42)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        superchunk.compress([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="contiguous"):
        superchunk.compress(np.arange(100)[::2])
    with pytest.raises(ValueError, match="contiguous"):
        superchunk.compress2(np.zeros((4, 6), order="F"))


@pytest.mark.parametrize(
    "source",
    [
        np.array(["2020-01-01", "2021-02-03"], dtype="M8[D]"),
        np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", ">f8")]),
        np.arange(5, dtype=">f8"),
        np.array([b"abc", b"de"]),
        np.zeros((0, 3)),
        np.zeros((2, 3, 4)),
    ],
    ids=["dates", "records", "big-endian", "bytes", "empty", "3-d"],
)
def test_arrays_of_any_dtype_are_taken_as_their_bytes(source: NDArray[Any]) -> None:
    assert superchunk.decompress2(superchunk.compress2(source)) == source.tobytes()


def test_nothing_gives_a_chunk_of_32_bytes() -> None:
    assert len(superchunk.compress(b"")) == 32
    assert superchunk.decompress(superchunk.compress(b"")) == b""
    assert superchunk.decompress(superchunk.compress(b""), as_bytearray=True) == bytearray()


def test_a_run_of_zeros_is_a_special_chunk() -> None:
    chunk = superchunk.compress2(bytes(10**6))
    assert len(chunk) == 32
    assert superchunk.decompress2(chunk) == bytes(10**6)


def test_decompress_returns_what_is_asked_for_or_fills_the_front_of_dst() -> None:
    chunk = superchunk.compress(DATA)
    assert type(superchunk.decompress(chunk)) is bytes
    assert type(superchunk.decompress(chunk, as_bytearray=True)) is bytearray
    larger = np.full(len(DATA) + 3, -1)
    assert superchunk.decompress(chunk, dst=larger) is None
    assert (larger[:-3] == DATA).all()
    assert (larger[-3:] == -1).all()
    for target in (bytearray(DATA.nbytes), memoryview(bytearray(DATA.nbytes))):
        superchunk.decompress2(chunk, target)
        assert bytes(target) == DATA.tobytes()


def test_a_chunk_may_stand_in_an_array() -> None:
    assert superchunk.decompress(np.array([superchunk.compress(DATA)])) == DATA.tobytes()


def test_too_short_sources_and_empty_destinations_are_value_errors() -> None:
    chunk = superchunk.compress(DATA)
    for call in (superchunk.decompress, superchunk.decompress2, superchunk.get_cbuffer_sizes, superchunk.get_clib):
        with pytest.raises(ValueError, match="16"):
            call(chunk[:15])
    for call in (superchunk.decompress, superchunk.decompress2):
        with pytest.raises(ValueError, match="dst"):
            call(chunk, bytearray())
        with pytest.raises(TypeError):
            call("text")  # type: ignore[call-overload]


def test_a_destination_that_is_too_small_is_both_kinds_of_error() -> None:
    for call in (superchunk.decompress, superchunk.decompress2):
        with pytest.raises(RuntimeError, match="dst") as caught:
            call(superchunk.compress(DATA), bytearray(DATA.nbytes - 1))
        assert isinstance(caught.value, ValueError)


def test_compress2_takes_an_object_a_dict_or_fields_but_not_both() -> None:
    expected = superchunk.compress2(DATA, codec=Codec.LZ4, clevel=9)
    assert superchunk.compress2(DATA, cparams=CParams(codec=Codec.LZ4, clevel=9)) == expected
    assert superchunk.compress2(DATA, cparams={"codec": Codec.LZ4, "clevel": 9}) == expected
    with pytest.raises(AttributeError, match="clevel"):
        superchunk.compress2(DATA, cparams=CParams(), clevel=1)
    with pytest.raises(AttributeError, match="nthreads"):
        superchunk.decompress2(expected, dparams=DParams(), nthreads=1)


def test_names_of_the_first_generation_are_refused_with_the_new_name() -> None:
    with pytest.raises(NameError, match="codec"):
        superchunk.compress2(DATA, compcode=1)  # type: ignore[call-arg]
    with pytest.raises(NameError, match="filters"):
        superchunk.compress2(DATA, shuffle=1)  # type: ignore[call-arg]


def test_compress2_refuses_filters_and_metas_of_different_lengths() -> None:
    with pytest.raises(ValueError, match="filters_meta"):
        superchunk.compress2(DATA, filters=[Filter.SHUFFLE], filters_meta=[0, 0])


@pytest.mark.parametrize("keywords", [{"clevel": 10}, {"codec": 250}, {"codec": Codec.GROK}, {"tuner": 32}])
def test_what_cannot_be_used_is_a_runtime_error(keywords: dict[str, object]) -> None:
    with pytest.raises(RuntimeError):
        superchunk.compress2(DATA, **keywords)  # type: ignore[arg-type]


def test_sizes_are_read_from_the_header_alone() -> None:
    chunk = superchunk.compress2(DATA, blocksize=8000)
    assert superchunk.get_cbuffer_sizes(chunk) == (DATA.nbytes, len(chunk), 8000)
    assert superchunk.get_cbuffer_sizes(chunk[:32]) == (DATA.nbytes, len(chunk), 8000)


def test_the_built_in_codecs_are_listed_with_name_and_version() -> None:
    assert superchunk.compressor_list() == BUILTIN
    assert superchunk.compressor_list(plugins=True) == list(Codec)
    for codec in BUILTIN:
        name, version = superchunk.clib_info(codec)
        assert name == blosc2.clib_info(blosc2.Codec[codec.name])[0]
        assert any(chr(letter).isdigit() for letter in version)
    for codec in (Codec.NDLZ, Codec.ZFP_RATE):
        with pytest.raises(ValueError, match=codec.name):
            superchunk.clib_info(codec)


def test_the_last_codec_of_compress_is_what_get_compressor_reports() -> None:
    assert superchunk.set_compressor(Codec.LZ4) == 1
    assert superchunk.get_compressor() == "lz4"
    superchunk.compress(DATA, codec=Codec.ZLIB)
    assert superchunk.get_compressor() == "zlib"
    with pytest.raises(ValueError, match="NDLZ"):
        superchunk.set_compressor(Codec.NDLZ)
    superchunk.set_compressor(Codec.BLOSCLZ)


def test_the_block_size_that_is_set_rules_compress_only() -> None:
    superchunk.set_blocksize(8000)
    try:
        assert superchunk.get_blocksize() == 8000
        assert superchunk.get_cbuffer_sizes(superchunk.compress(DATA))[2] == 8000
        assert superchunk.get_cbuffer_sizes(superchunk.compress2(DATA))[2] != 8000
    finally:
        superchunk.set_blocksize()
    assert superchunk.get_blocksize() == 0
    with pytest.raises(ValueError, match="blocksize"):
        superchunk.set_blocksize(-1)


def test_a_block_size_that_is_no_integer_is_refused_at_once() -> None:
    with pytest.raises(TypeError):
        superchunk.set_blocksize(1.5)  # type: ignore[arg-type]  # the point of the test
    assert superchunk.get_blocksize() == 0


def test_set_releasegil_returns_the_previous_flag() -> None:
    assert superchunk.set_releasegil(True) is False
    assert superchunk.set_releasegil(False) is True


def test_calls_work_after_resources_were_freed() -> None:
    superchunk.free_resources()
    assert superchunk.decompress(superchunk.compress(DATA)) == DATA.tobytes()


def test_the_machine_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert superchunk.get_cpu_info() == superchunk.cpu_info
    assert set(superchunk.cpu_info) == {"count", "l1_data_cache_size", "l2_cache_size", "l3_cache_size"}
    assert superchunk.cpu_info["count"] == superchunk.detect_number_of_cores() == superchunk.ncores
    superchunk.print_versions()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == lines[-1]
    assert any("ZSTD" in line for line in lines)


def test_environment_variables_do_not_overrule_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = superchunk.compress(DATA, typesize=8, codec=Codec.ZSTD), superchunk.compress2(DATA, clevel=5)
    overrules = {
        "CLEVEL": "0",
        "COMPRESSOR": "lz4",
        "TYPESIZE": "2",
        "SHUFFLE": "0",
        "BLOCKSIZE": "512",
    }
    for name, value in overrules.items():
        monkeypatch.setenv(f"BLOSC_{name}", value)
    superchunk.free_resources()
    assert (superchunk.compress(DATA, typesize=8, codec=Codec.ZSTD), superchunk.compress2(DATA, clevel=5)) == expected


@given(data=st.data())
@settings(deadline=None, max_examples=100)
def test_damaged_chunks_give_our_errors_and_nothing_else(data: st.DataObject) -> None:
    chunk = bytearray(superchunk.compress2(DATA[:500], codec=data.draw(st.sampled_from(BUILTIN))))
    for _ in range(data.draw(st.integers(1, 4))):
        chunk[data.draw(st.integers(0, len(chunk) - 1))] ^= data.draw(st.integers(1, 255))
    chunk = chunk[: data.draw(st.integers(16, len(chunk)))]
    for call in (superchunk.decompress, superchunk.decompress2, superchunk.get_cbuffer_sizes, superchunk.get_clib):
        try:
            call(chunk)
        except superchunk.SuperchunkError:
            pass
        except MemoryError:
            pytest.fail("a damaged size was believed")


# Chunks of Blosc1


@pytest.mark.parametrize("codec", superchunk.compressor_list())
@pytest.mark.parametrize("choice", [Filter.NOFILTER, Filter.SHUFFLE, Filter.BITSHUFFLE])
def test_chunks_of_blosc1_have_its_header_and_are_read_by_the_peer(codec: Codec, choice: Filter) -> None:
    data = np.arange(20_000, dtype="i4").tobytes()
    chunk = superchunk.compress_blosc1(data, typesize=4, filter=choice, codec=codec)
    info = _engine.describe(chunk)
    assert (info.version, info.header_len) == (2, 16)
    assert superchunk.decompress(chunk) == data
    assert blosc2.decompress(chunk) == data


@pytest.mark.parametrize("choice", [Filter.DELTA, Filter.TRUNC_PREC, Filter.BYTEDELTA])
def test_filters_that_blosc1_does_not_know_are_refused(choice: Filter) -> None:
    with pytest.raises(ValueError, match="filters"):
        superchunk.compress_blosc1(bytes(800), filter=choice)
