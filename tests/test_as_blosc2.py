"""Programs written for python-blosc2 that cannot be changed: its names, its spellings, and its name itself."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from oracle import blosc2

import superchunk
import superchunk._api.dtype_names
from superchunk import Codec, Filter, SpecialValue

if TYPE_CHECKING:
    from pathlib import Path


def test_the_name_blosc2_is_superchunk_until_the_installation_is_undone() -> None:
    installed = superchunk.install_as_blosc2()
    try:
        import blosc2 as ours
        from blosc2.ndarray import NDArray
        from blosc2.schunk import SChunk, open, vlmeta  # noqa: A004

        assert ours.SChunk is SChunk is superchunk.SChunk
        assert NDArray is ours.ndarray.NDArray is superchunk.NDArray
        assert open is superchunk.open
        assert vlmeta is superchunk.VlMeta
        assert ours.__version__ == blosc2.__version__
        assert ours.storage.Storage is superchunk.Storage
    finally:
        installed.uninstall()
    import blosc2 as theirs

    assert theirs is blosc2
    assert sys.modules["blosc2.schunk"] is blosc2.schunk
    installed.uninstall()
    assert sys.modules["blosc2"] is blosc2, "undoing twice must do nothing"


def test_what_superchunk_has_not_is_not_there_under_the_other_name_either() -> None:
    with superchunk.install_as_blosc2():
        with pytest.raises(ModuleNotFoundError, match=r"blosc2\.lazyexpr"):
            import blosc2.lazyexpr
        import blosc2 as ours

        with pytest.raises(AttributeError, match="lazyexpr"):
            _ = ours.lazyexpr
        with pytest.raises(ModuleNotFoundError):
            import blosc2._opening


def test_an_installation_inside_another_one_leaves_the_undoing_to_that() -> None:
    with superchunk.install_as_blosc2():
        with superchunk.install_as_blosc2():
            pass
        assert sys.modules["blosc2"].SChunk is superchunk.SChunk
    assert sys.modules["blosc2"] is blosc2


@pytest.mark.parametrize("name", ["DEFAULT_COMPLEX", "DEFAULT_FLOAT", "DEFAULT_INDEX", "DEFAULT_INT"])
def test_default_dtypes_are_those_of_the_other_package(name: str) -> None:
    assert getattr(superchunk, name) is getattr(blosc2, name)


@pytest.mark.parametrize("name", superchunk._api.dtype_names.__all__)
def test_dtype_names_make_the_same_arrays(name: str) -> None:
    wanted = getattr(superchunk, name)
    assert name.startswith("DEFAULT_") or wanted is getattr(np, name)
    if wanted is not np.object_:
        assert superchunk.zeros(3, dtype=wanted).dtype == np.zeros(3, wanted).dtype


def test_arrays_and_fields_are_operands() -> None:
    records = superchunk.zeros(3, dtype="i4,f8")
    assert isinstance(records, superchunk.Operand)
    assert isinstance(records["f0"], superchunk.ndarray.Operand)
    assert not isinstance(np.zeros(3), superchunk.Operand)


def test_variable_metalayers_have_the_names_of_the_class_beneath() -> None:
    s = superchunk.SChunk()
    s.vlmeta.set_vlmeta("packed", b"\x05")
    s.vlmeta["x"] = [1, 2]
    assert s.vlmeta.get_names() == ["packed", "x"]
    assert s.vlmeta.nvlmetalayers() == 2
    assert s.vlmeta["packed"] == 5
    theirs = blosc2.SChunk()
    theirs.vlmeta["x"] = [1, 2]
    assert s.vlmeta.get_vlmeta("x") == theirs.vlmeta.get_vlmeta("x")
    s.vlmeta.del_vlmeta("x")
    assert s.vlmeta.get_names() == ["packed"]


# Spellings.


def test_codecs_and_filters_are_taken_by_name() -> None:
    params = superchunk.CParams(codec="zstd", filters=["delta", "SHUFFLE"])
    assert params.codec is Codec.ZSTD
    assert list(params.filters) == [Filter.DELTA, Filter.SHUFFLE]
    data = np.arange(1000)
    array = superchunk.asarray(data, cparams={"codec": "lz4", "filters": ["bitshuffle"]})
    assert array.cparams.codec is Codec.LZ4
    chunk = superchunk.compress(data, codec="lz4hc", filter="bitshuffle")
    assert superchunk.decompress(chunk) == data.tobytes()
    packed = superchunk.pack_array(data, codec="zlib", filter="shuffle")
    np.testing.assert_array_equal(superchunk.unpack_array(packed), data)


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"codec: expected one of blosclz, lz4, .*got 'snappy'"):
        superchunk.CParams(codec="snappy")
    with pytest.raises(ValueError, match=r"filters\[0\]: expected one of nofilter, shuffle"):
        superchunk.CParams(filters=["bit"])


def test_compress2_takes_one_filter_as_compress_does() -> None:
    data = np.arange(1000)
    assert superchunk.compress2(data, filter=Filter.BITSHUFFLE) == superchunk.compress2(
        data, filters=[*[Filter.NOFILTER] * 5, Filter.BITSHUFFLE]
    )
    assert superchunk.decompress2(superchunk.compress2(data, filter="shuffle", codec="lz4")) == data.tobytes()
    with pytest.raises(TypeError, match="filter and filters"):
        superchunk.compress2(data, filter=Filter.SHUFFLE, filters=[Filter.SHUFFLE])


def test_mode_r_plus_is_mode_a(tmp_path: Path) -> None:
    path = tmp_path / "x.b2nd"
    superchunk.asarray(np.arange(10), urlpath=path, mode="w").schunk.close()
    with superchunk.open(path, mode="r+") as array:
        array[3] = 30
        assert array.schunk.mode == "a"
    assert superchunk.open(path)[3] == 30
    with superchunk.SChunk(urlpath=tmp_path / "s.b2frame", mode="r+") as s:
        s.append_data(b"x" * 100)


def test_no_mode_beside_a_mapping_mode_is_that_of_the_mapping(tmp_path: Path) -> None:
    path = tmp_path / "x.b2nd"
    superchunk.asarray(np.arange(10), urlpath=path, mode="w").schunk.close()
    with superchunk.open(path, mode=None, mmap_mode="r+") as array:
        array[3] = 30
    assert superchunk.open(path, mode=None)[3] == 30


def test_a_dictionary_is_not_asked_of_codecs_without() -> None:
    array = superchunk.full((100,), 3.5, cparams={"codec": Codec.ZLIB, "use_dict": True})
    array[:50] = np.arange(50)
    assert array[49] == 49


def test_trunc_prec_without_a_precision_is_refused_when_it_is_used() -> None:
    s = superchunk.SChunk(cparams={"typesize": 4, "filters": [Filter.TRUNC_PREC], "filters_meta": [0]})
    with pytest.raises(ValueError, match="1 to 23"):
        s.append_data(np.arange(10, dtype=np.float32))


# Arrays.


def test_blocks_alone_are_cut_to_the_shape() -> None:
    assert superchunk.compute_chunks_blocks((10, 10), blocks=(100, 100)) == ((10, 10), (10, 10))


def test_a_range_without_a_stop_may_have_no_step() -> None:
    np.testing.assert_array_equal(superchunk.arange(50, None, None)[:], np.arange(50))


def test_an_array_of_the_shape_keeps_its_items_where_they_are() -> None:
    data = np.arange(24).reshape(4, 6)
    made = superchunk.fromiter(data, data.shape, data.dtype, c_order=False, chunks=(2, 3))
    np.testing.assert_array_equal(made[:], data)


def test_oindex_takes_a_list_of_positions_for_each_dimension() -> None:
    data = np.arange(1000).reshape(10, 10, 10)
    array = superchunk.asarray(data)
    key = [[3, 1, 2], [2, 5], [3, 3, 9, 0]]
    np.testing.assert_array_equal(array.oindex[key], data[np.ix_(*key)])
    array.oindex[key] = np.zeros((3, 2, 4))
    data[np.ix_(*key)] = 0
    np.testing.assert_array_equal(array[:], data)


def test_fields_say_how_to_assign_to_one() -> None:
    array = superchunk.zeros(3, dtype="i4,f8")
    fields: Any = array.fields
    with pytest.raises(TypeError, match=r'array\.fields\["f0"\]\[:\] = values'):
        fields["f0"] = [1, 2, 3]
    array.fields["f0"][:] = [1, 2, 3]
    assert array["f0"][:].tolist() == [1, 2, 3]


def test_data_of_one_value_is_told_from_what_an_array_was_made_with(tmp_path: Path) -> None:
    path = tmp_path / "x.b2nd"
    array = superchunk.full((1500,), 7.5, chunks=(500,), urlpath=path, mode="w")
    array[500:1000] = 7.5
    array[1000:] = np.arange(500)
    kinds = [info.special for info in array.schunk.iterchunks_info()]
    assert kinds == [SpecialValue.VALUE, SpecialValue.NOT_SPECIAL, SpecialValue.NOT_SPECIAL]
    assert array.schunk.get_chunk(1) != array.schunk.get_chunk(0)
    assert len(array.schunk.get_chunk(1)) == len(array.schunk.get_chunk(0)) == 40
    array.schunk.close()
    theirs = blosc2.open(str(path))
    np.testing.assert_array_equal(theirs[:1000], np.full(1000, 7.5))
    assert superchunk.verify(path).status == "sound"


def test_following_a_writer_by_its_chunks_comes_to_an_end(tmp_path: Path) -> None:
    """What python-blosc2's example of a progressive fill does."""
    path = tmp_path / "x.b2nd"
    superchunk.uninit((2000,), np.float64, chunks=(500,), urlpath=path, mode="w", contiguous=False, locking=True)
    writer = (
        "import sys, superchunk\n"
        "a = superchunk.open(sys.argv[1], mode='a', locking=True)\n"
        "for n in range(4):\n"
        "    a[500 * n : 500 * (n + 1)] = float(n + 1)\n"
    )
    subprocess.run([sys.executable, "-c", writer, str(path)], check=True)
    reader = superchunk.open(path, locking=True)
    filled = {i.nchunk for i in reader.schunk.iterchunks_info() if i.special is SpecialValue.NOT_SPECIAL}
    assert filled == {0, 1, 2, 3}


def test_a_second_chunk_for_an_array_of_one_is_refused_by_an_error_that_names_the_call() -> None:
    """The recipe that python-blosc2 has for chunks of HDF5 inserts a chunk into an array that is full."""
    data = np.arange(100, dtype=np.int32).reshape(10, 10)
    chunk = superchunk.asarray(data, chunks=(10, 10)).get_chunk(0)
    aux = superchunk.empty((10, 10), np.int32, chunks=(10, 10))
    with pytest.raises(ValueError, match=r"update_chunk\(nchunk, chunk\)"):
        aux.schunk.insert_chunk(0, chunk)
    aux.schunk.update_chunk(0, chunk)
    np.testing.assert_array_equal(blosc2.ndarray_from_cframe(aux.to_cframe())[:], data)
