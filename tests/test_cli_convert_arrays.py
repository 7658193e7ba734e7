"""convert between .npy, .b2nd, .b2frame, Zarr and HDF5: items, attributes, memory, and what is refused."""

from __future__ import annotations

import itertools
import json
import operator
import os
import pydoc
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cli_runner import COMMAND, fail, run, succeed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peak_memory import PEAK

import superchunk
from superchunk.cli import convert_arrays
from superchunk.cli.formats.base import Plan, sensible_chunks
from superchunk.cli.formats.boxes import aligned_boxes, box_shape, runs, sequential_boxes

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")

NAMES = {"npy": "x.npy", "b2nd": "x.b2nd", "b2frame": "x.b2frame", "zarr": "x.zarr", "hdf5": "x.h5:/group/x"}
DTYPES = ["<i4", ">f8", "<f2", "?", "<c16", "S7", "<M8[s]", "u1"]
PADDED = np.dtype({"names": ["a", "b"], "formats": ["<i2", "<f8"], "offsets": [0, 8], "itemsize": 24})


def array_of(kind: DTypeLike, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an array of every dtype that has some content."""
    dtype: np.dtype[Any] = np.dtype(kind)
    numbers = np.arange(int(np.prod(shape))) % 97
    if dtype.names is not None:
        made = np.zeros(shape, dtype)
        for name in dtype.names:
            made[name] = numbers.reshape(shape)
        return made
    if dtype.kind == "U":
        return np.array([f"ü{number}" for number in numbers]).astype(dtype).reshape(shape)
    return numbers.reshape(shape).astype(dtype)


def read(path: Path, kind: str) -> np.ndarray[Any, Any]:
    """Return what is there, read by the format's own package."""
    if kind == "npy":
        return np.load(path)  # type: ignore[no-any-return]
    if kind == "hdf5":
        with h5py.File(str(path).partition(":")[0], "r") as file:
            return np.asarray(file[str(path).partition(":")[2]][()])
    if kind == "zarr":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(zarr.open_array(str(path), mode="r")[...])
    if kind == "b2nd":
        opened: Any = superchunk.open(str(path))
        with opened.schunk as schunk:
            return np.asarray(superchunk.NDArray(schunk)[()])
    back = path.with_name("decompressed.npy")
    succeed("decompress", path, "-o", back, "--force")
    return np.load(back)  # type: ignore[no-any-return]


def same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    if one.shape != other.shape or one.dtype.itemsize != other.dtype.itemsize:
        return False
    if one.dtype.kind == "V" or one.dtype.kind in "mM":
        return bool((one == other.view(one.dtype)).all())
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(NAMES, 2)))
def test_every_pair_of_formats_both_ways(tmp_path: Path, first: str, second: str) -> None:
    values = array_of("<f4", (37, 5, 41))
    np.save(tmp_path / "start.npy", values)
    there, back = tmp_path / NAMES[first], tmp_path / NAMES[second].replace("x", "y")
    succeed("convert", tmp_path / "start.npy", there, "--verify")
    succeed("convert", there, back, "--verify")
    assert same(read(back, second), values)
    assert same(read(there, first), values)


@pytest.mark.parametrize("kind", ["b2nd", "b2frame", "zarr", "hdf5"])
@pytest.mark.parametrize("dtype", [*DTYPES, PADDED], ids=str)
def test_dtypes_come_back(tmp_path: Path, kind: str, dtype: DTypeLike) -> None:
    values = array_of(dtype, (6, 10))
    np.save(tmp_path / "start.npy", values)
    there = tmp_path / NAMES[kind]
    result = run("convert", tmp_path / "start.npy", there)
    if result.code:
        assert kind in {"zarr", "hdf5"}, result.stderr
        assert "dtype" in result.stderr
        assert not Path(str(there).partition(":")[0]).exists()
        return
    assert same(read(there, kind), values)
    succeed("convert", there, tmp_path / "back.npy")
    back = np.load(tmp_path / "back.npy")
    assert back.dtype == values.dtype
    assert same(back, values)


@pytest.mark.parametrize("kind", ["b2nd", "b2frame", "zarr", "hdf5"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (1, 1, 1)])
def test_small_and_empty_shapes_come_back(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    values = array_of("<i8", shape)
    np.save(tmp_path / "start.npy", values)
    there = tmp_path / NAMES[kind]
    succeed("convert", tmp_path / "start.npy", there, "--verify")
    succeed("convert", there, tmp_path / "back.npy", "--verify")
    assert (tmp_path / "back.npy").read_bytes() == (tmp_path / "start.npy").read_bytes()


def test_fortran_order_is_read_as_the_array_it_is(tmp_path: Path) -> None:
    values = np.asfortranarray(array_of("<i4", (30, 20, 7)))
    np.save(tmp_path / "f.npy", values)
    succeed("convert", tmp_path / "f.npy", tmp_path / "x.zarr", "--chunks", "7,20,3")
    assert same(read(tmp_path / "x.zarr", "zarr"), values)
    succeed("compress", tmp_path / "f.npy", "-o", tmp_path / "f.b2frame")
    succeed("convert", tmp_path / "f.b2frame", tmp_path / "x.h5")
    assert same(read(tmp_path / "x.h5:/data", "hdf5"), values)


@pytest.mark.parametrize("version", ["2", "3"])
def test_both_formats_of_zarr(tmp_path: Path, version: str) -> None:
    values = array_of("<u2", (50, 60))
    np.save(tmp_path / "start.npy", values)
    succeed("convert", tmp_path / "start.npy", tmp_path / "x.zarr", "--zarr-format", version, "--chunks", "20,20")
    assert (tmp_path / "x.zarr" / ("zarr.json" if version == "3" else ".zarray")).is_file()
    assert same(read(tmp_path / "x.zarr", "zarr"), values)


def test_a_byte_order_that_format_3_cannot_say_needs_format_2(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.arange(9, dtype=">i4"))
    message = fail(1, "convert", tmp_path / "s.npy", tmp_path / "x.zarr", "--zarr-format", "3")
    assert "--zarr-format 2" in message
    facts = json.loads(succeed("convert", tmp_path / "s.npy", tmp_path / "x.zarr", "--json").text)
    assert facts["zarr_format"] == 2
    assert zarr.open_array(str(tmp_path / "x.zarr"), mode="r").dtype == np.dtype(">i4")


ATTRIBUTES = {"text": "grün", "count": 3, "scale": 0.25, "flag": True, "list": [1, 2, 3], "names": ["a", "b"]}


@pytest.mark.parametrize("kind", ["b2nd", "b2frame", "hdf5", "zarr"])
def test_attributes_go_there_and_come_back(tmp_path: Path, kind: str) -> None:
    source = zarr.create_array(str(tmp_path / "s.zarr"), shape=(4,), dtype="i4", chunks=(2,))
    source.attrs.update(ATTRIBUTES)
    there = tmp_path / NAMES[kind]
    facts = json.loads(succeed("convert", tmp_path / "s.zarr", there, "--json").text)
    assert (facts["attributes"], facts["left_out"]) == (len(ATTRIBUTES), {})
    succeed("convert", there, tmp_path / "back.zarr")
    assert zarr.open_array(str(tmp_path / "back.zarr"), mode="r").attrs.asdict() == ATTRIBUTES


@pytest.mark.parametrize("kind", ["b2nd", "b2frame"])
def test_many_attributes_and_long_names_have_room_in_a_frame(tmp_path: Path, kind: str) -> None:
    attributes = {f"attribute number {n} of forty, with a long name": n for n in range(20)} | {
        f"a{n}": n for n in range(20)
    }
    zarr.create_array(str(tmp_path / "s.zarr"), shape=(4,), dtype="i4", chunks=(2,)).attrs.update(attributes)
    there = tmp_path / NAMES[kind]
    succeed("convert", tmp_path / "s.zarr", there)
    with superchunk.open(str(there)) as opened:
        schunk = getattr(opened, "schunk", opened)
        assert schunk.vlmeta["a0"] == 0
        assert len(schunk.vlmeta) <= 16
    succeed("convert", there, tmp_path / "back.zarr")
    assert zarr.open_array(str(tmp_path / "back.zarr"), mode="r").attrs.asdict() == attributes


def test_what_does_not_fit_is_named_and_the_rest_is_there(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        made = file.create_dataset("x", data=np.arange(5))
        made.attrs["unit"] = "m"
        made.attrs["at"] = made.ref
        made.attrs["z"] = 1 + 2j
        made.attrs["raw"] = np.void(b"\0\1")
        made.attrs["none"] = h5py.Empty("f4")
    result = run("convert", tmp_path / "s.h5", tmp_path / "x.zarr")
    assert result.code == 0
    for name in ("at", "z", "raw"):
        assert f"x.zarr: dropped attribute '{name}' (" in result.stderr
    assert zarr.open_array(str(tmp_path / "x.zarr"), mode="r").attrs.asdict() == {"unit": "m", "none": None}
    result = run("convert", tmp_path / "s.h5", tmp_path / "x.b2frame")
    assert "'at'" in result.stderr
    with superchunk.open(str(tmp_path / "x.b2frame")) as schunk:
        assert (schunk.vlmeta["z"], schunk.vlmeta["raw"]) == (1 + 2j, b"\0\1")
    told = run("convert", tmp_path / "s.h5", tmp_path / "x.npy").stderr
    assert f"superchunk: {tmp_path}/x.npy: dropped attribute 'unit' (str): .npy files cannot store attributes\n" in told


# Text of NetCDF, names of dimensions.


DIMENSIONS = ["time", "y", "x"]
SHAPE = (2, 3, 4)


def netcdf(path: Path) -> Path:
    """Make a NetCDF-4 file as its library does: text of fixed length, dimensions with and without values."""
    with h5py.File(path, "w") as file:
        file.attrs["_NCProperties"] = "version=2"
        made = file.create_dataset("t", data=np.arange(24.0).reshape(SHAPE))
        made.attrs.create("units", np.bytes_(b"K"))
        made.attrs.create("long_name", np.bytes_("Höhe".encode()), dtype=h5py.string_dtype("utf-8", 5))
        made.attrs.create("institution", np.array(["DWD"], object), dtype=h5py.string_dtype())
        made.attrs.create("levels", np.array([b"low", b"high"]))
        made.attrs.create("scale_factor", np.array([0.5]))
        made.attrs.create("valid_range", np.array([0, 9]))
        made.attrs.create("odd", np.bytes_(b"\xff\xfe"))
        time = file.create_dataset("time", data=np.array([1, 2]))
        time.make_scale("time")
        time.attrs.create("_Netcdf4Dimid", 0)
        made.dims[0].attach_scale(time)
        for axis, name in ((1, "y"), (2, "x")):
            scale = file.create_dataset(name, (SHAPE[axis],), ">f4")
            scale.make_scale(f"This is a netCDF dimension but not a netCDF variable.{SHAPE[axis]:10d}")
            made.dims[axis].attach_scale(scale)
    return path


TEXTS = {
    "units": "K",
    "long_name": "Höhe",
    "institution": "DWD",
    "levels": ["low", "high"],
    "scale_factor": 0.5,
    "valid_range": [0, 9],
}


def dimensions_at(place: Path, kind: str) -> list[str]:
    """Return the names of dimensions as the other library, or any reader of vlmetalayers, finds them."""
    if kind in {"b2nd", "b2frame"}:
        with superchunk.open(str(place)) as opened:
            return list(getattr(opened, "schunk", opened).vlmeta["_ARRAY_DIMENSIONS"])
    if kind == "hdf5":
        file, _, name = str(place).partition(":")
        with h5py.File(file, "r") as opened:
            found = opened[name or "data"]
            return [dim[0].name.rpartition("/")[2] if len(dim) else dim.label for dim in found.dims]
    array = zarr.open_array(str(place), mode="r")
    if kind == "zarr 2":
        return list(array.attrs["_ARRAY_DIMENSIONS"])
    return list(array.metadata.dimension_names or ())


def test_text_of_netcdf_is_text_and_reaches_zarr(tmp_path: Path) -> None:
    source = netcdf(tmp_path / "a.nc")
    succeed("convert", f"{source}:/t", tmp_path / "a.b2nd")
    with superchunk.open(tmp_path / "a.b2nd") as array:
        found = dict(array.vlmeta[:])
    assert found.pop("_ARRAY_DIMENSIONS") == DIMENSIONS
    assert found.pop("odd") == b"\xff\xfe"
    assert found.pop("valid_range").tolist() == [0, 9]
    assert found == {name: value for name, value in TEXTS.items() if name != "valid_range"}
    assert all(type(found[name]) is str for name in ("units", "long_name", "institution"))
    for start in (f"{source}:/t", tmp_path / "a.b2nd"):
        result = run("convert", start, tmp_path / "a.zarr", "--force")
        assert (result.code, result.stderr.count("\n")) == (0, 1)
        assert "dropped attribute 'odd' (bytes): JSON has no value for bytes" in result.stderr
        assert zarr.open_array(str(tmp_path / "a.zarr"), mode="r").attrs.asdict() == TEXTS


@pytest.mark.parametrize("kind", ["b2nd", "b2frame", "hdf5", "zarr 2", "zarr 3"])
def test_names_of_dimensions_go_everywhere_and_come_back(tmp_path: Path, kind: str) -> None:
    source = netcdf(tmp_path / "a.nc")
    there = tmp_path / NAMES[kind.partition(" ")[0]]
    version = ["--zarr-format", kind[-1]] if "zarr" in kind else []
    facts = json.loads(run("convert", f"{source}:/t", there, *version, "--json", "--verify").text)
    assert facts["dimensions"] == DIMENSIONS
    assert dimensions_at(there, kind) == DIMENSIONS
    for back in ("b2nd", "zarr 2", "zarr 3", "hdf5"):
        place = tmp_path / f"back-{NAMES[back.partition(' ')[0]]}"
        version = ["--zarr-format", back[-1]] if "zarr" in back else []
        assert run("convert", there, place, "--force", *version).code == 0
        assert dimensions_at(place, back) == DIMENSIONS


def test_npy_and_old_zarr_say_which_names_they_drop(tmp_path: Path) -> None:
    source = netcdf(tmp_path / "a.nc")
    succeed("convert", f"{source}:/time", tmp_path / "time.b2nd")
    assert dimensions_at(tmp_path / "time.b2nd", "b2nd") == ["time"]
    result = run("convert", tmp_path / "time.b2nd", tmp_path / "time.npy", "--json")
    told = "dropped dimension names ['time']: .npy files cannot store them"
    assert result.stderr == ""
    facts = json.loads(result.text)
    assert (facts["dimensions"], facts["left_out"]) == (None, {"_ARRAY_DIMENSIONS": told})
    result = run("convert", tmp_path / "time.b2nd", tmp_path / "time.npy", "--force")
    assert result.stderr == f"superchunk: {tmp_path}/time.npy: {told}\n"
    zarr.create_array(str(tmp_path / "s.zarr"), shape=(2, 3), dtype="i4", dimension_names=["a", None])
    succeed("convert", tmp_path / "s.zarr", tmp_path / "s.b2nd")
    assert dimensions_at(tmp_path / "s.b2nd", "b2nd") == ["a", ""]
    succeed("convert", tmp_path / "s.b2nd", tmp_path / "three.zarr")
    assert dimensions_at(tmp_path / "three.zarr", "zarr 3") == ["a", None]
    result = run("convert", tmp_path / "s.b2nd", tmp_path / "two.zarr", "--zarr-format", "2")
    assert (
        "dropped dimension names ['a', '']: Zarr format 2 requires names for all dimensions or for none"
        in result.stderr
    )


def test_a_value_of_that_name_that_names_no_dimensions_is_an_attribute(tmp_path: Path) -> None:
    array = superchunk.asarray(np.zeros((2, 3)), urlpath=str(tmp_path / "a.b2nd"))
    array.vlmeta["_ARRAY_DIMENSIONS"] = ["only one"]
    array.schunk.close()
    succeed("convert", tmp_path / "a.b2nd", tmp_path / "a.zarr")
    made = zarr.open_array(str(tmp_path / "a.zarr"), mode="r")
    assert made.attrs.asdict() == {"_ARRAY_DIMENSIONS": ["only one"]}
    assert made.metadata.dimension_names is None


def test_a_name_that_something_else_has_in_an_hdf5_file_becomes_a_label(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["time"] = np.zeros(9)
        file.create_group("y")
    source = netcdf(tmp_path / "a.nc")
    assert run("convert", f"{source}:/t", f"{tmp_path}/a.h5:/x").code == 0
    assert dimensions_at(Path(f"{tmp_path}/a.h5:/x"), "hdf5") == DIMENSIONS
    with h5py.File(tmp_path / "a.h5", "r") as file:
        assert sorted(file) == ["time", "x", "y"]
        assert file["time"][...].tolist() == [0] * 9


def test_xarray_finds_the_names_in_hdf5_and_zarr(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    source = netcdf(tmp_path / "a.nc")
    assert run("convert", f"{source}:/t", f"{tmp_path}/b.h5:/t").code == 0
    with xarray.open_dataset(tmp_path / "b.h5", engine="h5netcdf") as found:
        assert found["t"].dims == tuple(DIMENSIONS)
        assert list(found.coords) == []
        assert found["t"].attrs["units"] == "K"


@pytest.mark.parametrize("kind", ["b2nd", "b2frame", "hdf5"])
def test_the_fill_value_is_kept(tmp_path: Path, kind: str) -> None:
    zarr.create_array(str(tmp_path / "s.zarr"), shape=(4, 4), dtype="f4", chunks=(2, 2), fill_value=-999.5)
    succeed("convert", tmp_path / "s.zarr", tmp_path / NAMES[kind])
    succeed("convert", tmp_path / NAMES[kind], tmp_path / "back.zarr")
    back = zarr.open_array(str(tmp_path / "back.zarr"), mode="r")
    assert back.fill_value == np.float32(-999.5)
    assert (back[...] == np.float32(-999.5)).all()


@pytest.mark.parametrize("codec", ["lz4", "zstd", "blosclz", "zlib"])
def test_codecs_are_those_that_were_asked_for(tmp_path: Path, codec: str) -> None:
    np.save(tmp_path / "s.npy", np.arange(20000))
    options = ["--codec", codec, "--level", "3", "--filters", "bitshuffle"]
    succeed("convert", tmp_path / "s.npy", tmp_path / "x.b2nd", *options)
    facts = json.loads(succeed("info", tmp_path / "x.b2nd", "--json").text)
    assert (facts["codec"], facts["clevel"], facts["filters"][0]["filter"]) == (codec, 3, "bitshuffle")
    succeed("convert", tmp_path / "s.npy", tmp_path / "x.zarr", *options)
    (step,) = zarr.open_array(str(tmp_path / "x.zarr"), mode="r").compressors
    assert (step.cname.value, step.clevel, step.shuffle.value) == (codec, 3, "bitshuffle")
    succeed("convert", tmp_path / "s.npy", tmp_path / "x.h5", *options)
    with h5py.File(tmp_path / "x.h5") as file:
        assert "32026" in file["data"]._filters
        assert (file["data"][()] == np.arange(20000)).all()


def test_hdf5_by_default_needs_no_plugin_to_be_read(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.arange(20000))
    succeed("convert", tmp_path / "s.npy", tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert (file["data"].compression, file["data"].shuffle) == ("gzip", True)


def test_a_dataset_compressed_by_a_plugin_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.arange(20000))
    succeed("convert", tmp_path / "s.npy", tmp_path / "x.h5:/a", "--codec", "lz4")
    arguments = ["convert", str(tmp_path / "x.h5"), str(tmp_path / "back.npy")]
    program = f"import sys; from superchunk.cli import main; sys.exit(main({arguments!r}))"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert (tmp_path / "back.npy").read_bytes() == (tmp_path / "s.npy").read_bytes()
    hidden = "import sys; sys.modules['hdf5plugin'] = None; " + program.replace("back", "none")
    result = subprocess.run([sys.executable, "-c", hidden], check=False, capture_output=True, text=True)
    assert result.returncode == 1
    assert "32026" in result.stderr
    assert 'pip install "superchunk[hdf5]"' in result.stderr


@pytest.mark.parametrize(("package", "extra", "name"), [("zarr", "zarr", "x.zarr"), ("h5py", "hdf5", "x.h5")])
def test_what_to_install_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, extra: str, name: str
) -> None:
    np.save(tmp_path / "s.npy", np.arange(5))
    monkeypatch.setitem(sys.modules, package, None)
    assert f'pip install "superchunk[{extra}]"' in fail(1, "convert", tmp_path / "s.npy", tmp_path / name)
    assert os.listdir(tmp_path) == ["s.npy"]  # noqa: PTH208 - hidden files too


@pytest.mark.parametrize("kind", list(NAMES))
def test_nothing_is_overwritten_without_force(tmp_path: Path, kind: str) -> None:
    np.save(tmp_path / "s.npy", np.arange(5))
    np.save(tmp_path / "t.npy", np.arange(7))
    there = tmp_path / NAMES[kind].replace("x", "z")
    succeed("convert", tmp_path / "s.npy", there)
    assert "exists" in fail(1, "convert", tmp_path / "t.npy", there)
    assert (read(there, kind) == np.arange(5)).all()
    succeed("convert", tmp_path / "t.npy", there, "--force")
    assert (read(there, kind) == np.arange(7)).all()
    assert not [name for name in os.listdir(tmp_path) if name.endswith((".part", ".old"))]  # noqa: PTH208


def test_a_directory_that_is_no_zarr_array_is_never_replaced(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.arange(5))
    (tmp_path / "x.zarr").mkdir()
    (tmp_path / "x.zarr" / "letters.txt").write_text("dear")
    assert "is not a Zarr array and is not replaced" in fail(
        1, "convert", tmp_path / "s.npy", tmp_path / "x.zarr", "--force"
    )
    assert (tmp_path / "x.zarr" / "letters.txt").read_text() == "dear"


def test_a_dataset_joins_others_in_its_file_and_replaces_only_itself(tmp_path: Path) -> None:
    for n in (3, 4):
        np.save(tmp_path / f"{n}.npy", np.arange(n))
        succeed("convert", tmp_path / f"{n}.npy", f"{tmp_path}/x.h5:/set/{n}")
    succeed("convert", tmp_path / "3.npy", f"{tmp_path}/x.h5:/set/4", "--force")
    with h5py.File(tmp_path / "x.h5") as file:
        assert {name: len(file["set"][name]) for name in file["set"]} == {"3": 3, "4": 3}
    assert "is a group" in fail(1, "convert", tmp_path / "3.npy", f"{tmp_path}/x.h5:/set", "--force")
    message = fail(1, "convert", tmp_path / "x.h5", tmp_path / "new.npy")
    assert "/set/3, /set/4" in message
    assert "no dataset /none" in fail(1, "convert", f"{tmp_path}/x.h5:/none", tmp_path / "new.npy")


def test_a_member_of_a_zarr_group_is_named_by_its_path(tmp_path: Path) -> None:
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    group.create_array("inner", shape=(3,), dtype="i4")[...] = [1, 2, 3]
    assert "g.zarr/inner" in fail(1, "convert", tmp_path / "g.zarr", tmp_path / "x.npy")
    succeed("convert", tmp_path / "g.zarr" / "inner", tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").tolist() == [1, 2, 3]


def test_text_of_different_lengths_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["x"] = ["a", "bcd"]
    assert "different lengths" in fail(1, "convert", tmp_path / "s.h5", tmp_path / "x.npy")
    assert not (tmp_path / "x.npy").exists()


def test_names_that_say_nothing_and_options_that_make_no_sense(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.zeros((3, 3)))
    assert ".b2frame" in fail(2, "convert", tmp_path / "s.npy", tmp_path / "x.dat")
    assert "expected 2 numbers" in fail(2, "convert", tmp_path / "s.npy", tmp_path / "x.zarr", "--chunks", "3")
    assert "--chunks" in fail(2, "convert", tmp_path / "s.npy", tmp_path / "x.zarr", "--chunks", "0,1")
    assert "bytedelta" in fail(1, "convert", tmp_path / "s.npy", tmp_path / "x.zarr", "--filters", "shuffle,bytedelta")
    assert "No such file" in fail(1, "convert", tmp_path / "none.npy", tmp_path / "x.zarr")
    assert sorted(os.listdir(tmp_path)) == ["s.npy"]  # noqa: PTH208


@pytest.mark.parametrize("version", ["2", "3"])
def test_force_replaces_a_zarr_array_and_nothing_that_holds_more(tmp_path: Path, version: str) -> None:
    values = array_of("<i4", (30, 30))
    np.save(tmp_path / "s.npy", values)
    line = ["convert", f"{tmp_path}/s.npy", f"{tmp_path}/x.zarr", "--zarr-format", version, "--chunks", "10,10"]
    succeed(*line)
    succeed(*line, "--force")
    (tmp_path / "x.zarr" / "notes.txt").write_text("mine")
    assert "holds 'notes.txt', which is not a part of a Zarr array" in fail(1, *line, "--force")
    assert (tmp_path / "x.zarr" / "notes.txt").read_text() == "mine"
    group = zarr.open_group(tmp_path / "group.zarr", mode="w", zarr_format=int(version))
    group.create_array("member", shape=(3,), dtype="i4")[:] = 7
    assert "is not a Zarr array" in fail(1, "convert", tmp_path / "s.npy", tmp_path / "group.zarr", "--force")
    assert zarr.open(tmp_path / "group.zarr", mode="r")["member"][0] == 7
    assert sorted(os.listdir(tmp_path)) == ["group.zarr", "s.npy", "x.zarr"]  # noqa: PTH208


@pytest.mark.parametrize("name", ["x.zarr", "x.b2nd"])
def test_what_appears_during_a_conversion_keeps_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    np.save(tmp_path / "s.npy", array_of("<i4", (30, 30)))
    real = convert_arrays._write

    def interrupted(*arguments: Any) -> dict[str, Any]:
        facts = real(*arguments)
        if (tmp_path / name).exists():
            (tmp_path / name).rename(tmp_path / "moved")
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text("mine")
        return facts

    for there in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(convert_arrays, "_write", interrupted)
            fail(
                1, "convert", tmp_path / "s.npy", tmp_path / name, "--sparse" if "b2" in name else "--force", "--force"
            )
        assert (tmp_path / name / "notes.txt").read_text() == "mine"
        assert sorted(os.listdir(tmp_path)) == ["moved"] * there + ["s.npy", name]  # noqa: PTH208
        (tmp_path / name / "notes.txt").unlink()
        (tmp_path / name).rmdir()
        if not there:
            succeed("convert", tmp_path / "s.npy", tmp_path / name, *(["--sparse"] if "b2" in name else []))


@pytest.mark.parametrize("cut", [4, 60, 200, 500])
def test_a_damaged_npy_leaves_nothing_behind(tmp_path: Path, cut: int) -> None:
    np.save(tmp_path / "s.npy", np.arange(100))
    (tmp_path / "s.npy").write_bytes((tmp_path / "s.npy").read_bytes()[:cut])
    assert "npy" in fail(1, "convert", tmp_path / "s.npy", tmp_path / "x.zarr")
    assert os.listdir(tmp_path) == ["s.npy"]  # noqa: PTH208


def test_a_sparse_array_is_made_by_a_slash(tmp_path: Path) -> None:
    values = array_of("<i4", (100, 100))
    np.save(tmp_path / "s.npy", values)
    succeed("convert", tmp_path / "s.npy", f"{tmp_path}/x.b2nd/", "--chunks", "30,30", "--blocks", "10,30")
    assert (tmp_path / "x.b2nd").is_dir()
    facts = json.loads(succeed("info", tmp_path / "x.b2nd", "--json").text)
    assert (facts["kind"], facts["b2nd"]["chunkshape"], facts["grid"]) == ("sparse", [30, 30], [4, 4])
    assert same(read(tmp_path / "x.b2nd", "b2nd"), values)
    succeed("convert", tmp_path / "s.npy", f"{tmp_path}/x.b2nd/", "--force", "--verify")


def test_a_frame_that_stays_one_is_compressed_anew_if_asked(tmp_path: Path) -> None:
    values = array_of("<i4", (100, 100))
    np.save(tmp_path / "s.npy", values)
    succeed("convert", tmp_path / "s.npy", tmp_path / "a.b2nd")
    succeed("convert", tmp_path / "a.b2nd", tmp_path / "b.b2nd", "--chunks", "11,100", "--codec", "lz4", "--verify")
    facts = json.loads(succeed("info", tmp_path / "b.b2nd", "--json").text)
    assert (facts["codec"], facts["b2nd"]["chunkshape"]) == ("lz4", [11, 100])
    succeed("convert", tmp_path / "a.b2nd", tmp_path / "c.b2nd", "--contiguous")
    assert same(read(tmp_path / "c.b2nd", "b2nd"), values)


MEMORY = """
import sys
from superchunk.cli import main
before = peak_bytes()
code = main(["convert", *sys.argv[1:]])
print(code, before, peak_bytes())
"""


@pytest.mark.parametrize("name", ["x.b2nd", "x.b2frame", "x.zarr", "x.h5"])
def test_memory_does_not_grow_with_the_array(tmp_path: Path, name: str) -> None:
    shape = (16384, 4096)  # 512 MB
    made = np.lib.format.open_memmap(tmp_path / "s.npy", mode="w+", dtype="<f8", shape=shape)
    made[::512] = np.arange(4096)
    del made
    taken = []
    for source, target in (("s.npy", name), (name, "back.npy")):
        result = subprocess.run(
            [sys.executable, "-c", PEAK + MEMORY, str(tmp_path / source), str(tmp_path / target)],
            check=True,
            capture_output=True,
            text=True,
        )
        code, before, after = map(int, result.stdout.split()[-3:])
        assert code == 0
        taken.append((after - before) // 2**20)
    assert max(taken) < 330, taken  # MB, the packages included
    back = np.load(tmp_path / "back.npy", mmap_mode="r")
    assert back.shape == shape
    assert (back[512] == np.arange(4096)).all()
    assert not back[513].any()


def sparse_source(path: Path, kind: str, fill: float, shape: tuple[int, ...], at: tuple[int, ...]) -> str:
    """Make an array of which next to nothing was written, and return its name."""
    if kind == "hdf5":
        with h5py.File(path / "s.h5", "w") as file:
            made = file.create_dataset("x", shape, ">f4", chunks=(64, 64), fillvalue=fill)
            made[at] = 5
        return str(path / "s.h5")
    zarr.create_array(str(path / "s.zarr"), shape=shape, dtype="f4", chunks=(64, 64), fill_value=fill)[at] = 5
    return str(path / "s.zarr")


@pytest.mark.parametrize("source", ["hdf5", "zarr"])
@pytest.mark.parametrize("target", ["x.b2nd", "y.zarr", "y.h5"])
@pytest.mark.parametrize("fill", [0, -1.5])
def test_what_was_never_written_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, target: str, fill: float
) -> None:
    """64 GB are claimed, in a few boxes."""
    shape, at = (2**17, 2**17), (2**16 + 3, 5)
    name = sparse_source(tmp_path, source, fill, shape, at)
    boxes: list[object] = []
    for one in ("superchunk.cli.formats.hdf5.Hdf5Source", "superchunk.cli.formats.zarr.ZarrSource"):
        read = operator.attrgetter("read")(pydoc.locate(one))

        def counted(self: object, box: object, read: Callable[[object, object], object] = read) -> object:
            boxes.append(box)
            return read(self, box)

        monkeypatch.setattr(f"{one}.read", counted)
    succeed("convert", name, tmp_path / target, *(() if target == "x.b2nd" else ("--verify",)))
    assert len(boxes) <= 4
    if target == "x.b2nd":
        with superchunk.open(tmp_path / target) as made:
            assert (made.shape, made[at], made[at[0] + 1, at[1]], made[-1, -1]) == (shape, 5, fill, fill)
        assert (tmp_path / target).stat().st_size < 2**22
    elif target == "y.zarr":
        made = zarr.open_array(str(tmp_path / target), mode="r")
        assert (made.shape, made[at], made[0, 0], made.fill_value) == (shape, 5, fill, fill)
    else:
        with h5py.File(tmp_path / target) as file:
            made = file["data"]
            assert (made.shape, made[at], made[0, 0], made.fillvalue) == (shape, 5, fill, fill)


@pytest.mark.parametrize("source", ["hdf5", "zarr"])
@pytest.mark.parametrize("kind", list(NAMES))
@pytest.mark.parametrize("fill", [0, -1.5])
def test_what_was_never_written_is_the_fill_value(tmp_path: Path, source: str, kind: str, fill: float) -> None:
    name = sparse_source(tmp_path, source, fill, (300, 200), (70, 130))
    succeed("convert", name, tmp_path / NAMES[kind], "--verify")
    expected = np.full((300, 200), fill, ">f4" if source == "hdf5" else "<f4")
    expected[70, 130] = 5
    assert same(read(tmp_path / NAMES[kind], kind), expected)


def test_a_dataset_that_was_never_written_at_all(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_dataset("plain", (50, 60), "i2", fillvalue=7)
        file.create_dataset("record", (50,), [("a", "i4"), ("b", "f8")], chunks=(10,))
        file.create_dataset("text", (9,), "S3", chunks=(4,), fillvalue=b"abc")
        for name in file:
            succeed("convert", f"{tmp_path}/s.h5:/{name}", tmp_path / f"{name}.b2nd", "--verify")
            with superchunk.open(tmp_path / f"{name}.b2nd") as made:
                assert (made[...] == file[name][...]).all(), name


shapes = st.lists(st.integers(0, 9), max_size=4).map(tuple)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), shape=shapes, budget=st.integers(1, 200))
def test_boxes_cover_an_array_once(data: st.DataObject, shape: tuple[int, ...], budget: int) -> None:
    sides = st.tuples(*(st.integers(1, 6) for _ in shape))
    chunks, source = data.draw(sides), data.draw(st.none() | sides)
    seen = np.zeros(shape, int)
    for box in aligned_boxes(shape, 1, chunks, source, budget):
        seen[box] += 1
        assert all(part.start % side == 0 for part, side in zip(box, chunks, strict=True))
        assert all(
            part.stop % side == 0 or part.stop == extent for part, side, extent in zip(box, chunks, shape, strict=True)
        )
    assert (seen == 1).all()


@settings(max_examples=150, deadline=None)
@given(data=st.data(), shape=shapes, budget=st.integers(1, 200))
def test_boxes_in_sequence_are_one_run_after_the_other(
    data: st.DataObject, shape: tuple[int, ...], budget: int
) -> None:
    source = data.draw(st.none() | st.tuples(*(st.integers(1, 6) for _ in shape)))
    at = 0
    for box in sequential_boxes(shape, 1, source, budget):
        for first, count in runs(shape, box):
            assert first == at
            at += count
    assert at == int(np.prod(shape))


@settings(max_examples=150, deadline=None)
@given(data=st.data(), shape=shapes)
def test_runs_of_a_box_are_its_items(data: st.DataObject, shape: tuple[int, ...]) -> None:
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    ends = [sorted(data.draw(st.tuples(st.integers(0, extent), st.integers(0, extent)))) for extent in shape]
    box = tuple(slice(*pair) for pair in ends)
    found = [n for first, count in runs(shape, box) for n in range(first, first + count)]
    assert found == numbers[box].reshape(-1).tolist()
    assert box_shape(box) == numbers[box].shape


def test_chunks_for_other_formats_are_those_of_the_source_if_they_make_sense() -> None:
    plan = Plan(shape=(4000, 3000), dtype=np.dtype("f8"), hint=(100, 100))
    assert sensible_chunks(plan) == (100, 100)
    tiny = Plan(shape=(4000, 3000), dtype=np.dtype("f8"), hint=(2, 2))
    assert np.prod(sensible_chunks(tiny)) * 8 <= 2**20
    assert sensible_chunks(Plan(shape=(0, 5), dtype=np.dtype("f8"))) == (1, 5)


def test_it_says_what_it_did(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.zeros((30, 40), "f4"))
    text = succeed("convert", tmp_path / "s.npy", tmp_path / "x.zarr", "--verify").text
    for words in ("x.zarr: float32, shape (30, 40), chunks (30, 40), 4.69 KiB in", "read back and compared"):
        assert words in text
    facts = json.loads(succeed("convert", tmp_path / "s.npy", tmp_path / "y.h5", "--json").text)
    assert (facts["kind"], facts["dataset"], facts["nbytes"], facts["shape"]) == ("hdf5", "/data", 4800, [30, 40])
    assert facts["target_bytes"] == (tmp_path / "y.h5").stat().st_size


def test_an_interrupt_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "s.npy", np.zeros(1000))
    np.save(tmp_path / "x.npy", np.ones(3))

    def stop(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("superchunk.cli.formats.npy.NpyTarget.write", stop)
    assert run("convert", tmp_path / "s.npy", tmp_path / "x.npy", "--force").code == 130
    assert np.load(tmp_path / "x.npy").tolist() == [1, 1, 1]
    assert sorted(os.listdir(tmp_path)) == ["s.npy", "x.npy"]  # noqa: PTH208


def test_it_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.arange(10))
    subprocess.run(
        [*COMMAND, "convert", str(tmp_path / "s.npy"), str(tmp_path / "x.h5:/a")], check=True, capture_output=True
    )
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["a"][()].tolist() == list(range(10))


def test_what_is_wrong_with_a_source_is_said_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.zarr").mkdir()
    (tmp_path / "x.zarr" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    assert "x.zarr: Zarr cannot open it, KeyError: " in fail(1, "convert", tmp_path / "x.zarr", tmp_path / "x.npy")
    superchunk.asarray(np.zeros((20, 30)), chunks=(20, 30), urlpath=tmp_path / "x.b2nd")
    raw = bytearray((tmp_path / "x.b2nd").read_bytes())
    at = raw.index((20).to_bytes(8, "big"), 100)
    raw[at + 3] = 1  # 2**32 rows more than there are chunks for
    (tmp_path / "x.b2nd").write_bytes(raw)
    for target in ("y.npy", "y.b2nd", "y.b2frame"):
        found = fail(1, "convert", tmp_path / "x.b2nd", tmp_path / target)
        assert found.startswith(f"superchunk: {tmp_path / 'x.b2nd'}: b2nd number of chunks at byte 5")
