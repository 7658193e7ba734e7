"""Promises of `superchunk.params`."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

import superchunk
from superchunk import Codec, CParams, DParams, Filter, SplitMode, Storage, Tuner
from superchunk._codec.encoder import with_typesize
from superchunk._codec.parameters import cparams_of, pipeline, settings_of
from superchunk.exceptions import ArgumentError
from superchunk.params import nthreads_for

blosc2 = pytest.importorskip("blosc2", reason="the oracle is not installed")


@pytest.mark.parametrize("name", ["Codec", "Filter", "SplitMode", "SpecialValue", "Tuner"])
def test_enums_have_the_members_and_numbers_that_users_know(name: str) -> None:
    ours = {member.name: member.value for member in getattr(superchunk, name)}
    theirs = {member.name: member.value for member in getattr(blosc2, name)}
    assert ours == theirs


@pytest.mark.parametrize("name", ["CParams", "DParams", "Storage"])
def test_parameter_classes_have_the_fields_that_users_know_in_their_order(name: str) -> None:
    ours = [field.name for field in dataclasses.fields(getattr(superchunk, name))]
    theirs = [field.name for field in dataclasses.fields(getattr(blosc2, name))]
    extra = {"Storage": ["sync", "seal", "compact_above"]}.get(name, [])
    assert ours == theirs + extra


@pytest.mark.parametrize(
    "name",
    [
        "MIN_HEADER_LENGTH",
        "EXTENDED_HEADER_LENGTH",
        "MAX_OVERHEAD",
        "MAX_BUFFERSIZE",
        "MAX_BLOCKSIZE",
        "MAX_TYPESIZE",
        "MAX_DIM",
        "DEFINED_CODECS_STOP",
        "GLOBAL_REGISTERED_CODECS_STOP",
        "USER_REGISTERED_CODECS_STOP",
        "IS_WASM",
        "ncores",
    ],
)
def test_constants_are_those_that_users_know(name: str) -> None:
    assert getattr(superchunk, name) == getattr(blosc2, name)


def test_version_is_the_one_that_cargo_builds() -> None:
    manifest = tomllib.loads((Path(__file__).parents[1] / "Cargo.toml").read_text())
    assert superchunk.__version__ == manifest["workspace"]["package"]["version"]


def test_every_exported_name_exists_and_the_list_has_no_duplicates() -> None:
    names = superchunk.__all__
    assert len(names) == len(set(names))
    for name in names:
        assert hasattr(superchunk, name), name
    with pytest.raises(AttributeError, match="no attribute"):
        superchunk.absent  # noqa: B018  (asking is the test)


def test_equal_fields_make_equal_parameters_and_replace_changes_one() -> None:
    first = CParams(codec=Codec.LZ4, clevel=3)
    assert first == CParams(codec=1, clevel=3)
    assert dataclasses.replace(first, clevel=4) == CParams(codec=Codec.LZ4, clevel=4)
    assert dataclasses.asdict(DParams(nthreads=2)) == {"nthreads": 2}


def test_numbers_become_members_where_there_is_one_and_stay_otherwise() -> None:
    params = CParams(codec=4, splitmode=1, tuner=0, filters=[3, 200])
    assert params.codec is Codec.ZLIB
    assert params.splitmode is SplitMode.ALWAYS_SPLIT
    assert params.tuner is Tuner.STUNE
    assert params.filters == [Filter.DELTA, 200]
    assert CParams(codec=200).codec == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("clevel", 10),
        ("clevel", -1),
        ("typesize", 0),
        ("typesize", superchunk.MAX_TYPESIZE + 1),
        ("nthreads", 0),
        ("blocksize", -1),
        ("splitmode", 5),
        ("codec", 256),
        ("codec_meta", 256),
        ("filters", [300]),
        ("filters_meta", [0, 0, 0, 0, 0, 256]),
    ],
)
def test_a_value_out_of_range_is_refused_by_name_and_is_both_kinds_of_error(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field) as caught:
        CParams(**{field: value})  # type: ignore[arg-type]
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize(("field", "value"), [("clevel", "9"), ("codec", Filter.SHUFFLE), ("typesize", 1.5)])
def test_a_value_of_another_type_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(TypeError, match=field):
        CParams(**{field: value})  # type: ignore[arg-type]


def test_parameters_cannot_be_changed_behind_the_back_of_their_user() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        CParams().clevel = 9  # type: ignore[misc]


def test_more_than_six_filters_or_more_than_their_metas_are_refused() -> None:
    with pytest.raises(ValueError, match="filters"):
        CParams(filters=[Filter.SHUFFLE] * 7, filters_meta=[0] * 7)
    with pytest.raises(ValueError, match="filters_meta"):
        CParams(filters=[Filter.SHUFFLE] * 3, filters_meta=[0, 0])


def test_a_short_list_of_filters_cuts_its_metas_and_fills_the_pipeline_from_the_front() -> None:
    params = CParams(filters=[Filter.DELTA, Filter.SHUFFLE])
    assert list(params.filters_meta) == [0, 0]
    assert pipeline(params) == (bytes([3, 1, 0, 0, 0, 0]), bytes(6))


def test_bytedelta_takes_the_typesize_as_its_streams_and_is_dropped_for_single_bytes() -> None:
    filters = [Filter.SHUFFLE, Filter.BYTEDELTA]
    assert list(CParams(filters=filters, typesize=4).filters_meta) == [0, 4]
    assert pipeline(CParams(filters=filters, typesize=1)) == (bytes([1, 0, 0, 0, 0, 0]), bytes(6))
    assert list(with_typesize(CParams(filters=filters), 2).filters_meta) == [0, 2]


@pytest.mark.parametrize(
    ("choice", "typesize", "bits"),
    [(Filter.TRUNC_PREC, 4, 23), (Filter.TRUNC_PREC, 8, 52), (Filter.INT_TRUNC, 2, 16), (Filter.INT_TRUNC, 8, 64)],
)
def test_bits_to_drop_are_recorded_as_bits_to_keep(choice: Filter, typesize: int, bits: int) -> None:
    params = CParams(filters=[choice], filters_meta=[-10], typesize=typesize)
    assert list(params.filters_meta) == [-10]
    assert list(cparams_of(settings_of(params, 1), 1).filters_meta) == [bits - 10, 0, 0, 0, 0, 0]


def test_numbers_of_filters_that_python_blosc2_cannot_open_are_refused() -> None:
    for choice, meta in ((Filter.SHUFFLE, 200), (Filter.BYTEDELTA, 129), (200, 128), (Filter.NDCELL, -1)):
        with pytest.raises(ArgumentError, match=r"filters_meta\[1\]: expected a number from 0 to 127"):
            settings_of(CParams(filters=[Filter.NOFILTER, choice], filters_meta=[0, meta], typesize=4), 1)


def test_an_integral_float_is_taken_for_the_blocksize_only() -> None:
    assert CParams(blocksize=4096.0).blocksize == 4096  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        CParams(clevel=5.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 2), (16, 16), (17, 15), (32, 28), (64, 56), (200, 56)])
def test_default_threads_are_the_cores_up_to_64_less_an_eighth_over_16(cores: int, threads: int) -> None:
    assert nthreads_for(cores) == threads


def test_set_nthreads_changes_new_parameters_only_and_returns_the_previous_number() -> None:
    before = CParams()
    previous = superchunk.set_nthreads(3)
    try:
        assert previous == before.nthreads == DParams(nthreads=previous).nthreads
        assert superchunk.nthreads == CParams().nthreads == DParams().nthreads == 3
        assert superchunk.cparams_dflts["nthreads"] == 3
    finally:
        assert superchunk.set_nthreads(previous) == 3
    for wrong in (0, -1, 2**31):
        with pytest.raises(ValueError, match="nthreads"):
            superchunk.set_nthreads(wrong)


def test_storage_is_contiguous_by_default_exactly_when_it_has_a_path() -> None:
    assert Storage().contiguous is False
    assert Storage(urlpath="x").contiguous is True
    assert Storage(urlpath="x", contiguous=False).contiguous is False


def test_a_path_object_and_a_file_url_become_a_plain_path() -> None:
    assert Storage(urlpath=Path("a") / "b").urlpath == str(Path("a") / "b")
    assert Storage(urlpath="file:///some/x%20y").urlpath == "/some/x y"
    with pytest.raises(ValueError, match="s3"):
        Storage(urlpath="s3://bucket/x")


def test_none_for_mode_or_locking_is_replaced_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="mode"):
        assert Storage(mode=None).mode == "a"  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="locking"):
        assert Storage(locking=None).locking is False  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"mode": "z"}, {"mmap_mode": "w"}, {"initial_mapping_size": 0}])
def test_storage_refuses_what_it_does_not_know(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        Storage(**given)  # type: ignore[arg-type]


def test_defaults_are_those_that_users_know() -> None:
    theirs = {name: value.value if hasattr(value, "value") else value for name, value in blosc2.cparams_dflts.items()}
    ours = {name: value.value if hasattr(value, "value") else value for name, value in superchunk.cparams_dflts.items()}
    assert [member.value for member in theirs.pop("filters")] == [member.value for member in ours.pop("filters")]
    assert ours == theirs
    assert superchunk.storage_dflts == {**blosc2.storage_dflts, "sync": "explicit", "seal": True, "compact_above": None}
