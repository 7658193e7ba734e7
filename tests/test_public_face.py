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
    from pathlib import Path

MODULE = {
    "constants": """
        __version__ VERSION_STRING VERSION_DATE blosclib_version MIN_HEADER_LENGTH EXTENDED_HEADER_LENGTH MAX_OVERHEAD
        MAX_BUFFERSIZE MAX_BLOCKSIZE MAX_TYPESIZE MAX_DIM DEFINED_CODECS_STOP GLOBAL_REGISTERED_CODECS_STOP
        USER_REGISTERED_CODECS_STOP nthreads ncores cpu_info cparams_dflts dparams_dflts storage_dflts ucodecs_registry
        ufilters_registry prefilter_funcs postfilter_funcs IS_WASM""",
    "enums and parameters": "Codec Filter SplitMode SpecialValue Tuner DeserializeMode CParams DParams Storage",
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
    permute_dims matrix_transpose transpose
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
    dparams meta vlmeta attrs schunk info info_items oindex fields T mT base device to_device take item tobytes slice
    iterchunks_info get_chunk to_cframe resize append copy squeeze reshape save refresh holding_lock
    get_fselection_numpy get_oselection_numpy set_oselection_numpy
    __getitem__ __setitem__ __iter__ __len__ __bool__ __int__ __float__ __array__"""
NDFIELD = """
    shape dtype offset schunk info item device to_device
    __getitem__ __setitem__ __iter__ __len__ __bool__ __int__ __float__ __complex__ __index__ __array__"""
COMPARED = """
    chunksize chunkshape blocksize nchunks nbytes cratio typesize urlpath contiguous mode mmap_mode locking
    initial_mapping_size"""
LEFT_OUT = {
    "_ignore_multiple_size", "_new_ctx",  # private
    "dataset", "hdf5_index",  # of remote and other containers, by name only
}  # fmt: skip
"""Parameters that are no part of the storage API."""


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
        pytest.param(superchunk.NDField, NDFIELD, id="NDField"),
    ],
)
def test_classes_have_all_members_and_documents_for_them(ours: Any, names: str) -> None:
    for name in names.split():
        assert hasattr(ours, name), f"{ours.__name__}.{name}"
        if not name.startswith("__") and not inspect.ismemberdescriptor(getattr(ours, name)):
            assert inspect.getdoc(inspect.getattr_static(ours, name)), f"{name} has no docstring"


def known_calls() -> list[Any]:
    pairs: list[Any] = []
    for name in " ".join([*MODULE.values(), ARRAY_MODULE]).split():
        ours, theirs = getattr(superchunk, name, None), getattr(blosc2, name)
        if callable(theirs) and not (isinstance(theirs, type) and issubclass(theirs, (enum.Enum, Exception))):
            pairs.append(pytest.param(ours, theirs, id=name))
    for cls, names in (("SChunk", SCHUNK), ("NDArray", NDARRAY)):
        theirs_cls = getattr(blosc2, cls)
        for name in names.split():
            theirs = getattr(theirs_cls, name) if hasattr(theirs_cls, name) else None
            if not name.startswith("__") and callable(theirs):
                ours = getattr(getattr(superchunk, cls, None), name, None)
                pairs.append(pytest.param(ours, theirs, id=f"{cls}.{name}"))
    return pairs


def plain(default: object) -> object:
    """Return a default so that it can be compared across packages."""
    if isinstance(default, enum.Enum):
        return type(default).__name__, default.value
    if isinstance(default, type) and issubclass(default, np.generic):
        return np.dtype(default)
    return "a factory" if type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS" else default


@pytest.mark.parametrize(("ours", "theirs"), known_calls())
def test_parameters_have_the_same_names_places_and_defaults(
    ours: Callable[..., Any], theirs: Callable[..., Any]
) -> None:
    mine, other = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in mine.values())
    positional: list[str] = []
    for key, parameter in other.items():
        if key in LEFT_OUT or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or key == "self":
            continue
        assert key in mine or (open_ended and parameter.kind is parameter.KEYWORD_ONLY), f"no parameter {key}"
        if key not in mine:
            continue
        assert plain(mine[key].default) == plain(parameter.default), f"default of {key}"
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            positional.append(key)
            assert mine[key].kind is parameter.kind, f"{key} cannot be given by place"
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
def test_chunks_of_a_slice_of_items_are_those_of_the_reference(key: Any) -> None:
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
def test_chunks_of_a_slice_of_an_array_are_those_of_the_reference(key: Any) -> None:
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
    assert (a.offset, b.offset) == (0, 4)


# What python-blosc2 has around the items.


def packages(plain: Any, **how: Any) -> tuple[Any, Any]:
    """Return an array of the same items of both packages."""
    return superchunk.asarray(plain, **how), blosc2.asarray(plain, **how)


def test_the_device_is_the_cpu_and_no_other() -> None:
    plain = np.ones(3, [("x", "f8")])
    for array in packages(plain):
        for one in (array, array["x"]):
            assert one.device == "cpu"
            assert one.to_device("cpu") is one
            with pytest.raises(ValueError, match="cuda"):
                one.to_device("cuda")


@pytest.mark.parametrize("shape", [(2, 3), (5, 4, 3), (2, 0, 3), (3, 1, 4, 2)])
def test_the_last_two_dimensions_change_places(shape: tuple[int, ...]) -> None:
    plain = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    chunks = tuple(max(n // 2, 1) for n in shape)
    ours, theirs = packages(plain, chunks=chunks if 0 not in shape else None, cparams={"clevel": 1})
    np.testing.assert_array_equal(ours.mT[()], plain.swapaxes(-2, -1))
    if plain.size:  # without items the other one raises
        np.testing.assert_array_equal(ours.mT[()], theirs.mT[()])
    assert ours.mT.urlpath is None
    assert ours.mT.cparams.clevel == 1
    assert ours.mT.chunks == (*ours.chunks[:-2], ours.chunks[-1], ours.chunks[-2])
    np.testing.assert_array_equal(ours.T[()], plain.T)


def test_one_dimension_has_no_matrix_to_turn() -> None:
    for array in packages(np.arange(3)):
        with pytest.raises(ValueError, match=r"dimensions|dimensional"):
            _ = array.mT


def test_a_view_names_the_array_that_it_shows() -> None:
    for array in packages(np.zeros((1, 2, 1))):
        assert array.base is None
        assert array.squeeze(0).base is array
    ours = superchunk.zeros((1, 2, 1))
    assert ours.squeeze(0).squeeze(1).base is ours


def test_selections_have_names_as_well() -> None:
    plain = np.arange(24).reshape(4, 6)
    for array in packages(plain):
        np.testing.assert_array_equal(array.get_fselection_numpy(([0, 2], [1, 3])), plain[[0, 2], [1, 3]])
        np.testing.assert_array_equal(array.get_oselection_numpy(([0, 2], [1, 3])), plain[np.ix_([0, 2], [1, 3])])
        array.set_oselection_numpy(([0, 2], [1, 3]), np.zeros((2, 2), plain.dtype))
        expected = plain.copy()
        expected[np.ix_([0, 2], [1, 3])] = 0
        np.testing.assert_array_equal(array[:], expected)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2,), (0,)])
@pytest.mark.parametrize("of", [bool, int, float, lambda a: a.item()], ids=["bool", "int", "float", "item"])
def test_one_item_is_a_number(of: Callable[[Any], object], shape: tuple[int, ...]) -> None:
    def outcome(one: Any) -> object:
        try:
            return of(one)
        except (TypeError, ValueError):
            return "refused"

    arrays = packages(np.full(shape, 7.0))
    fields = [array["x"] for array in packages(np.full(shape, 7.0, [("n", "i4"), ("x", "f8")]))]
    expected = "refused" if np.prod(shape) != 1 or (of in (int, float) and shape) else of(np.float64(7.0))
    assert [outcome(one) for one in (*arrays, *fields)] == [expected] * 4
    if expected == "refused":
        for mine in (arrays[0], fields[0]):
            with pytest.raises(ValueError if of is bool else (TypeError, ValueError)):
                of(mine)


def test_a_field_is_read_as_lists_bytes_and_single_items() -> None:
    plain = np.array([[(1, 2.5), (3, 4.5)]], [("n", ">i2"), ("x", "f8")])
    ours, theirs = (array["n"] for array in packages(plain))
    assert ours.offset == theirs.offset == 0
    assert ours.ndarr.fields["x"].offset == theirs.ndarr.fields["x"].offset == 2
    assert ours.tolist() == [[1, 3]]
    assert ours.tobytes() == plain["n"].tobytes()
    assert ours.item(0, 1) == 3
    assert complex(superchunk.asarray(plain[0, 0])["n"]) == 1
    lines = repr(ours.info).splitlines()
    assert [line.split(" : ")[0].strip() for line in lines] == [name for name, _ in ours.info_items]
    assert ("offset", 0) in ours.info_items


def test_only_arrays_have_fields() -> None:
    plain = np.zeros(3, [("x", "f8")])
    for package in (superchunk, blosc2):
        with pytest.raises(TypeError, match="NDArray"):
            package.NDField(plain, "x")


def test_opening_takes_what_asks_for_no_other_container(tmp_path: Path) -> None:
    path = str(tmp_path / "a.b2nd")
    superchunk.asarray(np.arange(10), urlpath=path)
    nothing: dict[str, Any] = {
        "dataset": None, "hdf5_index": None, "path": None, "shared_cache": False, "lazy": False,
        "storage_options": None,
    }  # fmt: skip
    for package in (superchunk, blosc2):
        assert package.open(path, **nothing)[3] == 3
        assert package.open(path, lazy=None, deserialize=package.DeserializeMode.FULL)[3] == 3
    asks: tuple[dict[str, Any], ...] = (
        {"dataset": "x"},
        {"hdf5_index": {}},
        {"path": "x"},
        {"shared_cache": True},
        {"storage_options": {}},
    )
    for asked in asks:
        with pytest.raises(ValueError, match=f"{next(iter(asked))}=.*frames on local paths"):
            superchunk.open(path, **asked)


def test_loading_takes_no_options_of_remote_files(tmp_path: Path) -> None:
    path = str(tmp_path / "a.b2frame")
    superchunk.save_array(np.arange(10), path)
    for package in (superchunk, blosc2):
        for load in (package.load_array, package.load_tensor):
            assert load(path, storage_options=None)[3] == 3
            with pytest.raises(ValueError, match="storage_options"):
                load(path, storage_options={"anon": True})


def test_modes_of_metadata_are_strings_too() -> None:
    assert {mode.name: mode.value for mode in superchunk.DeserializeMode} == {
        mode.name: mode.value for mode in blosc2.DeserializeMode
    }
    frame = superchunk.SChunk(data=b"x").to_cframe()
    for mode in superchunk.DeserializeMode:
        assert superchunk.from_cframe(frame, deserialize=mode)[:] == b"x"


def test_what_is_inside_the_other_package_is_not_here_and_the_error_says_what_does_it() -> None:
    array: Any = superchunk.asarray(np.arange(6.0))
    for name, instead in {
        "get_slice": "array.slice",
        "set_slice": "= values",
        "get_oindex_numpy": "oindex",
        "set_oindex_numpy": "oindex",
        "get_slice_numpy": "out=",
        "get_sparse_numpy": "array.key",
        "get_1d_span_numpy": "out=",
        "as_ffi_ptr": "to_cframe",
        "c_array": "to_cframe",
        "keep_last_read": "set_block_cache",
    }.items():
        assert hasattr(blosc2.NDArray, name)
        with pytest.raises(AttributeError, match=f"attribute {name!r}: .*{instead}"):
            getattr(array, name)
    with pytest.raises(AttributeError, match=r"it is in NumPy, numpy\.newaxis"):
        _ = superchunk.newaxis
