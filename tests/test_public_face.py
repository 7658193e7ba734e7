"""Every name, parameter and default of the storage API that users of python-blosc2 know.

The tables are the API in short; what the calls do is tested where they are. Where both packages
have a name, its signature is compared with the other's by introspection.
"""

from __future__ import annotations

import copy
import enum
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from oracle import blosc2

import superchunk

if TYPE_CHECKING:
    from collections.abc import Callable

MODULE = {
    "constants": """
        __version__ VERSION_STRING VERSION_DATE blosclib_version MIN_HEADER_LENGTH EXTENDED_HEADER_LENGTH MAX_OVERHEAD
        MAX_BUFFERSIZE MAX_BLOCKSIZE MAX_TYPESIZE MAX_DIM DEFINED_CODECS_STOP GLOBAL_REGISTERED_CODECS_STOP
        USER_REGISTERED_CODECS_STOP nthreads ncores cpu_info cparams_dflts dparams_dflts storage_dflts ucodecs_registry
        ufilters_registry prefilter_funcs postfilter_funcs IS_WASM""",
    "enums and parameters": "Codec Filter SplitMode SpecialValue Tuner CParams DParams Storage",
    "chunks": "compress decompress compress2 decompress2 get_cbuffer_sizes get_clib",
    "globals": """
        compressor_list clib_info set_compressor get_compressor set_blocksize get_blocksize set_nthreads set_releasegil
        free_resources detect_number_of_cores get_cpu_info print_versions register_codec register_filter""",
    "super-chunks": "SChunk schunk_from_cframe from_cframe open load remove_urlpath UnsafeDeserializationError",
    "packed arrays": """
        pack unpack pack_array unpack_array pack_array2 unpack_array2 pack_tensor unpack_tensor save_array load_array
        save_tensor load_tensor""",
    "chunks of a slice": "get_slice_nchunks",
}
ARRAY_MODULE = """
    NDArray NDField ndarray_from_cframe save empty zeros nans uninit full ones empty_like zeros_like ones_like full_like
    arange linspace eye fromiter frombuffer asarray array astype copy take take_along_axis squeeze expand_dims reshape
    concat stack compute_chunks_blocks are_partitions_aligned are_partitions_behaved"""
SCHUNK = """
    chunksize chunkshape blocksize nchunks nbytes cbytes cratio typesize urlpath contiguous mode mmap_mode locking
    initial_mapping_size cparams dparams meta vlmeta attrs info info_items change_tick append_data insert_data
    update_data
    append_chunk insert_chunk update_chunk update_special delete_chunk reorder_offsets decompress_chunk get_chunk
    get_lazychunk fill_special get_slice set_slice iterchunks iterchunks_info prefilter remove_prefilter postfilter
    remove_postfilter filler to_cframe refresh holding_lock get_vlblock
    __len__ __getitem__ __setitem__ __enter__ __exit__"""
VLMETA = """
    keys items values get pop popitem update setdefault clear getall to_dict mode urlpath mmap_mode locking
    initial_mapping_size __getitem__ __setitem__ __delitem__ __iter__ __len__ __contains__ __eq__"""
META = "keys items values get getall __getitem__ __setitem__ __delitem__ __iter__ __len__ __contains__"
NDARRAY = """
    shape chunks blocks ext_shape ext_chunks ndim size dtype nbytes cbytes cratio chunksize blocksize urlpath cparams
    dparams meta vlmeta attrs schunk info info_items oindex fields T take item tobytes slice iterchunks_info get_chunk
    to_cframe resize append copy squeeze reshape save refresh holding_lock
    __getitem__ __setitem__ __iter__ __len__ __bool__ __int__ __float__ __array__"""
COMPARED = """
    chunksize chunkshape blocksize nchunks nbytes cratio typesize urlpath contiguous mode mmap_mode locking
    initial_mapping_size"""
LEFT_OUT = {
    "_ignore_multiple_size", "_new_ctx",  # private
    "dataset", "hdf5_index", "path", "shared_cache", "storage_options",  # of remote and other containers
}  # fmt: skip
"""Parameters that are no part of the storage API."""
RENAMED = {"get_clib": {"bytesobj": "chunk"}}


@pytest.mark.parametrize("name", [name for names in MODULE.values() for name in names.split()])
def test_the_package_has_the_name_and_the_other_one_too(name: str) -> None:
    assert hasattr(superchunk, name)
    assert name in superchunk.__all__
    assert hasattr(blosc2, name)


@pytest.mark.parametrize("name", ARRAY_MODULE.split())
def test_the_package_has_the_name_of_arrays(name: str) -> None:
    assert hasattr(superchunk, name)
    assert name in superchunk.__all__
    assert hasattr(blosc2, name)


@pytest.mark.parametrize(
    ("ours", "names"),
    [
        pytest.param(superchunk.SChunk, SCHUNK, id="SChunk"),
        pytest.param(superchunk.VlMeta, VLMETA, id="vlmeta"),
        pytest.param(superchunk.Meta, META, id="meta"),
        pytest.param(superchunk.NDArray, NDARRAY, id="NDArray"),
    ],
)
def test_classes_have_all_members_and_documents_for_them(ours: Any, names: str) -> None:  # noqa: ANN401
    for name in names.split():
        assert hasattr(ours, name), f"{ours.__name__}.{name}"
        if not name.startswith("__") and not inspect.ismemberdescriptor(getattr(ours, name)):
            assert inspect.getdoc(inspect.getattr_static(ours, name)), f"{name} has no docstring"


def known_calls() -> list[Any]:
    pairs: list[Any] = []
    for name in " ".join([*MODULE.values(), ARRAY_MODULE]).split():
        ours, theirs = getattr(superchunk, name, None), getattr(blosc2, name)
        if callable(theirs) and not (isinstance(theirs, type) and issubclass(theirs, (enum.Enum, Exception))):
            pairs.append(pytest.param(name, ours, theirs, id=name))
    for cls, names in (("SChunk", SCHUNK), ("NDArray", NDARRAY)):
        theirs_cls = getattr(blosc2, cls)
        for name in names.split():
            theirs = getattr(theirs_cls, name) if hasattr(theirs_cls, name) else None
            if not name.startswith("__") and callable(theirs):
                ours = getattr(getattr(superchunk, cls, None), name, None)
                pairs.append(pytest.param(name, ours, theirs, id=f"{cls}.{name}"))
    return pairs


def plain(default: object) -> object:
    """Return a default so that it can be compared across packages."""
    if isinstance(default, enum.Enum):
        return type(default).__name__, default.value
    if isinstance(default, type) and issubclass(default, np.generic):
        return np.dtype(default)
    return "a factory" if type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS" else default


@pytest.mark.parametrize(("name", "ours", "theirs"), known_calls())
def test_parameters_have_the_same_names_places_and_defaults(
    name: str, ours: Callable[..., Any], theirs: Callable[..., Any]
) -> None:
    mine, other = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in mine.values())
    positional: list[str] = []
    for key, parameter in other.items():
        if key in LEFT_OUT or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or key == "self":
            continue
        here = RENAMED.get(name, {}).get(key, key)
        assert here in mine or (open_ended and parameter.kind is parameter.KEYWORD_ONLY), f"no parameter {key}"
        if here not in mine:
            continue
        assert plain(mine[here].default) == plain(parameter.default), f"default of {key}"
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            positional.append(here)
            assert mine[here].kind is parameter.kind, f"{key} cannot be given by place"
    places = [key for key, parameter in mine.items() if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    assert [key for key in places if key != "self"][: len(positional)] == positional


# What properties and reports say.


def pair() -> tuple[Any, Any]:
    """Return the same SChunk of both packages."""
    made = []
    for package in (superchunk, blosc2):
        s = package.SChunk(
            800,
            np.arange(250),
            contiguous=True,
            meta={"m": 1},
            cparams={"typesize": 8, "nthreads": 1},
            dparams={"nthreads": 1},
        )
        s.vlmeta["v"] = [1, "x"]
        s.update_special(1, package.SpecialValue.VALUE, 7)
        made.append(s)
    return made[0], made[1]


@pytest.mark.parametrize("name", COMPARED.split())
def test_properties_say_the_same(name: str) -> None:
    ours, theirs = pair()
    assert (
        getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=0.05)
        if name == "cratio"
        else getattr(ours, name) == getattr(theirs, name)
    )


def test_reports_have_the_same_lines_and_a_table_for_notebooks() -> None:
    ours, theirs = pair()
    assert [name for name, _ in ours.info_items] == [name for name, _ in theirs.info_items]
    assert ours.info_items[:5] == theirs.info_items[:5]
    lines, others = repr(ours.info).splitlines(), repr(theirs.info).splitlines()
    assert [line[:12] for line in lines] == [line[:12] for line in others]
    assert lines[:5] == others[:5]
    assert str(ours.info) == repr(ours.info)
    table = ours.info._repr_html_()
    assert table.count("<tr>") == theirs.info._repr_html_().count("<tr>") == len(ours.info_items)
    assert "Codec.ZSTD" in table
    assert "<Codec" not in table, "text must be escaped"


def test_what_is_said_of_chunks_is_the_same() -> None:
    ours, theirs = pair()
    for mine, other in zip(ours.iterchunks_info(), theirs.iterchunks_info(), strict=True):
        assert mine._fields == other._fields
        assert (mine.nchunk, mine.special.value, mine.repeated_value) == (
            other.nchunk,
            other.special.value,
            other.repeated_value,
        )
        assert len(mine.lazychunk) == len(other.lazychunk)


def test_defaults_as_dicts_are_the_same() -> None:
    for name in ("cparams_dflts", "dparams_dflts"):
        ours = {key: getattr(value, "value", value) for key, value in getattr(superchunk, name).items()}
        theirs = {key: getattr(value, "value", value) for key, value in getattr(blosc2, name).items()}
        for both in (ours, theirs):
            both["filters"] = [number.value for number in both.get("filters", [])]
        assert ours == theirs
    assert superchunk.storage_dflts.items() >= blosc2.storage_dflts.items()


def test_copies_of_what_users_hold_are_what_they_were() -> None:
    for params in (superchunk.CParams(clevel=1), superchunk.DParams(), superchunk.Storage(meta={"m": [1]})):
        assert copy.deepcopy(params) == copy.copy(params) == params


# Chunks of a slice.


@pytest.mark.parametrize(
    "key",
    [
        0, 9, 10, 34, (0, 10), (0, 11), (5, 25), slice(None), slice(5, 25), slice(-5, None), slice(0, 1000),
        slice(10, 20, 1), (-5, None), (None, None), (-10, -1), [0, 10],
    ],
)  # fmt: skip
def test_chunks_of_a_slice_of_items_are_those_of_the_reference(key: Any) -> None:  # noqa: ANN401
    ours, theirs = (package.SChunk(80, np.arange(35)) for package in (superchunk, blosc2))
    got = superchunk.get_slice_nchunks(ours, key)
    assert got.dtype == np.int64
    assert got.tolist() == blosc2.get_slice_nchunks(theirs, key).tolist()


def test_chunks_of_slices_that_are_empty_or_wrong() -> None:
    s = superchunk.SChunk(80, np.arange(35))
    assert superchunk.get_slice_nchunks(s, -1).tolist() == [3]
    assert superchunk.get_slice_nchunks(s, np.int64(12)).tolist() == [1]
    for empty in (slice(20, 5), (3, 3), slice(35, None)):
        assert superchunk.get_slice_nchunks(s, empty).tolist() == []
    for wrong in (35, -36, slice(0, 20, 2), slice(30, 10, -1)):
        with pytest.raises(IndexError):
            superchunk.get_slice_nchunks(s, wrong)
    for no_key in ("a", None, 1.5):
        with pytest.raises(TypeError):
            superchunk.get_slice_nchunks(s, no_key)
    with pytest.raises(ValueError, match="two ends"):
        superchunk.get_slice_nchunks(s, (0, 5, 1))
    with pytest.raises(TypeError, match="SChunk or an NDArray"):
        superchunk.get_slice_nchunks(b"x", 0)
    varied = superchunk.SChunk(-1, cparams={"typesize": 8})
    for count in (3, 5, 2):
        varied.append_data(np.arange(count))
    assert superchunk.get_slice_nchunks(varied, (2, 8)).tolist() == [0, 1]
    assert superchunk.get_slice_nchunks(varied, 8).tolist() == [2]


@pytest.mark.parametrize(
    "key",
    [
        0, -1, slice(3, 8), (slice(3, 8), slice(None)), (slice(3, 8), 5), ..., (slice(8, 3), slice(None)), None,
        (..., 3),
        (3, 3), (), (None, 3), (slice(-3, None), slice(-12, -1)),
    ],
)  # fmt: skip
def test_chunks_of_a_slice_of_an_array_are_those_of_the_reference(key: Any) -> None:  # noqa: ANN401
    plain = np.arange(24 * 35).reshape(24, 35)
    ours, theirs = (package.asarray(plain, chunks=(5, 10), blocks=(2, 5)) for package in (superchunk, blosc2))
    assert superchunk.get_slice_nchunks(ours, key).tolist() == blosc2.get_slice_nchunks(theirs, key).tolist()


def test_chunks_of_wrong_slices_of_an_array() -> None:
    a = superchunk.asarray(np.zeros((24, 35)), chunks=(5, 10), blocks=(2, 5))
    for wrong in (24, (0, 0, 0), (..., ...), slice(0, 20, 2)):
        with pytest.raises(IndexError):
            superchunk.get_slice_nchunks(a, wrong)


def test_what_computes_is_not_here_and_the_error_says_who_does_it() -> None:
    array: Any = superchunk.asarray(np.arange(6.0))
    with pytest.raises(AttributeError, match=r"'NDArray' object has no attribute 'sum'.*numpy\.sum"):
        _ = array.sum
    with pytest.raises(AttributeError, match=r"has no attribute 'hypot'.*numpy\.hypot"):
        _ = superchunk.hypot
    for anything in (array, superchunk):
        with pytest.raises(AttributeError, match=r"has no attribute 'smu'$"):
            _ = anything.smu
    assert [float(of(array)) for of in (np.sum, np.mean, np.max)] == [15.0, 2.5, 5.0]


def test_a_field_says_its_dimensions_and_the_chunks_of_its_array() -> None:
    items = np.zeros((6, 4), [("a", "i4"), ("b", "f8", (3,))])
    array = superchunk.asarray(items, chunks=(3, 2), blocks=(2, 2))
    a, b = array.fields["a"], array.fields["b"]
    assert (a.ndim, a.chunks, a.blocks) == (2, (3, 2), (2, 2))
    assert (b.ndim, b.shape, b.chunks) == (3, (6, 4, 3), (3, 2))
