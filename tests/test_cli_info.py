"""info, list-codecs and bench: what they say is what is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bare_arrays
import numpy as np
import pytest
from cli_runner import fail, run, succeed

import superchunk
from superchunk.cli import measure
from superchunk.cli.errors import Failure

blosc2 = pytest.importorskip("blosc2", reason="the independent witness")


@pytest.fixture
def frame(tmp_path: Path) -> Path:
    """Return a frame whose chunks differ: zeros, one value, a ramp, and a short rest."""
    values = np.concatenate([np.zeros(1000), np.full(1000, 7.5), np.arange(1000) / 3, np.arange(100.0)])
    path = tmp_path / "x.b2frame"
    options = ["--dtype", "f8", "--chunksize", "8000", "--codec", "lz4", "--filters", "shuffle,bytedelta"]
    succeed("compress", "-", "-o", path, *options, stdin=values.tobytes())
    return path


def facts(*arguments: str | Path) -> dict[str, Any]:
    loaded = json.loads(succeed("info", "--json", *arguments).text)
    assert isinstance(loaded, dict)
    return loaded


def test_json_agrees_with_the_library_and_the_file(frame: Path) -> None:
    said = facts(frame)
    with superchunk.open(str(frame)) as schunk:
        assert (said["nbytes"], said["cbytes"], said["nchunks"]) == (schunk.nbytes, schunk.cbytes, 4)
    assert said["file_bytes"] == frame.stat().st_size
    assert (said["typesize"], said["nitems"], said["chunksize"]) == (8, 3100, 8000)
    assert (said["codec"], said["clevel"], said["dtype"]) == ("lz4", 5, "float64")
    assert said["filters"] == [{"filter": "shuffle", "meta": 0}, {"filter": "bytedelta", "meta": 8}]
    assert said["vlmetalayers"] == ["superchunk.dtype"]


def test_the_chunk_map_names_every_chunk(frame: Path) -> None:
    chunks = facts("--chunks", frame)["chunks"]
    assert [(chunk["nchunk"], chunk["nbytes"]) for chunk in chunks] == [(0, 8000), (1, 8000), (2, 8000), (3, 800)]
    assert chunks[0]["special"] == "zero"
    assert chunks[2]["special"] is None
    with superchunk.open(str(frame)) as schunk:
        assert sum(chunk["cbytes"] for chunk in chunks) == schunk.cbytes


def test_text_says_the_same_for_people(frame: Path) -> None:
    text = succeed("info", "--chunks", frame).text
    for words in (
        "24,800 (24.22 KiB)",
        "3,100 of 8 bytes",
        "lz4, level 5",
        "shuffle, bytedelta:8",
        "special: zero",
        "map           ·█",
    ):
        assert words in text
    assert "\x1b" not in text


def test_metalayers_and_the_boxes_of_an_array_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.b2nd"
    blosc2.zeros((10, 6), dtype="i2", chunks=(5, 3), blocks=(5, 3), urlpath=str(path), meta={"who": "me"})
    said = facts(path)
    boxes = {"shape": [10, 6], "chunkshape": [5, 3], "blockshape": [5, 3]}
    assert said["b2nd"] == {**boxes, "dtype": "<i2", "read_as": None}
    assert said["metalayers"]["who"] == "me"
    assert "<i2, shape (10, 6), chunks (5, 3), blocks (5, 3)" in succeed("info", path).text


def test_arrays_of_every_kind_of_layer_are_told(tmp_path: Path) -> None:
    bare_arrays.array_over(np.arange(20.0).reshape(4, 5), (2, 3), (1, 2), "caterva", urlpath=tmp_path / "c").close()
    superchunk.zeros((1,) * 15 + (3,), urlpath=tmp_path / "16").close()
    superchunk.zeros((3, 0), urlpath=tmp_path / "empty").close()
    superchunk.zeros((4, 5), chunks=(2, 5), urlpath=tmp_path / "f8", seal=False).close()
    (tmp_path / "f4").write_bytes((tmp_path / "f8").read_bytes().replace(b"<f8", b"<f4"))
    for name, shape, grid in (
        ("c", [4, 5], "2 x 2"),
        ("16", [1] * 15 + [3], " x ".join("1" * 16)),
        ("empty", [3, 0], ""),
    ):
        said = facts(tmp_path / name)
        assert (said["shape"], said["dtype"]) == (shape, "<f8")
        assert f"{grid} chunks" in succeed("info", tmp_path / name).text
    assert "items of 8 bytes, dtype <f4: read as |V8" in succeed("info", tmp_path / "f4").text
    assert succeed("cat", tmp_path / "c", "--items", "3:5").text == "3.0\n4.0\n"


@pytest.mark.parametrize("content", [b"", b"not a frame at all", bytes(200)])
def test_something_else_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert str(path) in fail(1, "info", path)


def test_every_changed_byte_of_a_header_gives_facts_or_one_line(frame: Path) -> None:
    sound = frame.read_bytes()
    for at in range(90):
        frame.write_bytes(sound[:at] + bytes([sound[at] ^ 0x55]) + sound[at + 1 :])
        result = run("info", "--chunks", frame)
        assert result.code in {0, 1}
        assert result.stderr.count("\n") == result.code


def test_codecs_as_json_have_versions() -> None:
    said = json.loads(succeed("list-codecs", "--json").text)
    assert [codec["codec"] for codec in said["codecs"]] == ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]
    assert all(codec["version"] for codec in said["codecs"])


def test_bench_measures_each_choice_on_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.0)
    np.save(tmp_path / "a.npy", np.arange(20_000) // 7)
    options = ["--codec", "lz4", "--codec", "zstd", "--filters", "none", "--filters", "shuffle", "--level", "3"]
    said = json.loads(succeed("bench", tmp_path / "a.npy", "--json", *options).text)
    assert (said["nbytes"], said["typesize"]) == (160_000, 8)
    assert sorted((row["codec"], *row["filters"]) for row in said["results"]) == [
        ("lz4", "none"),
        ("lz4", "shuffle"),
        ("zstd", "none"),
        ("zstd", "shuffle"),
    ]
    assert all(row["ratio"] > 1 and row["compress_mb_per_s"] > 0 and row["slice_us"] > 0 for row in said["results"])


def test_bench_needs_an_item(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert "less than one item of 8 bytes" in fail(1, "bench", tmp_path / "x", "--dtype", "f8")


def test_measuring_notices_data_that_comes_back_different(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.0)
    monkeypatch.setattr(superchunk.SChunk, "get_slice", lambda *_args, **_kwargs: None)
    choice = measure.Choice(codec="lz4", level=1, filters=())
    with pytest.raises(Failure, match="did not restore the data"):
        measure.measure(b"12345678" * 100, choice, typesize=8, chunksize=800)


def test_metalayers_that_are_no_messagepack_are_shown_as_bytes() -> None:
    golden = Path(__file__).with_name("golden") / "c-blosc2-2.0.0-beta.2-usermeta.b2frame"
    said = facts(golden)
    assert said["metalayers"] == {"my_layer1": {"bytes": b"hello".hex()}}
    assert said["vlmetalayers"] == ["usermeta"]
    assert b"hello".hex() in succeed("info", golden).text


def test_the_kind_of_frame_and_its_seals_are_told(frame: Path, tmp_path: Path) -> None:
    succeed("convert", frame, tmp_path / "parts")
    foreign = blosc2.SChunk(data=b"abcd" * 1000, urlpath=str(tmp_path / "theirs.b2frame"), mode="w")
    assert foreign.nbytes == 4000
    told = {path.name: facts(path) for path in (frame, tmp_path / "parts", tmp_path / "theirs.b2frame")}
    kinds = {name: (said["kind"], said["sealed"], said["dead_bytes"]) for name, said in told.items()}
    assert kinds == {
        "x.b2frame": ("contiguous", True, told["x.b2frame"]["dead_bytes"]),
        "parts": ("sparse", True, 0),
        "theirs.b2frame": ("contiguous", False, 0),
    }
    assert told["parts"]["file_bytes"] == sum(path.stat().st_size for path in (tmp_path / "parts").iterdir())
    text = succeed("info", tmp_path / "parts").text
    assert "sparse, sealed" in text
    assert "directory" in text


def test_a_damaged_frame_is_told_with_what_is_left_of_it(frame: Path) -> None:
    with superchunk.open(str(frame), mode="a") as schunk:
        schunk.flush()
        schunk.vlmeta["later"] = 1
    raw = bytearray(frame.read_bytes())
    raw[-20] ^= 1
    frame.write_bytes(raw)
    assert "intact commit of 4 chunks" in fail(1, "info", frame)


def test_info_says_larger_where_it_is_larger_and_nothing_of_nothing(tmp_path: Path) -> None:
    superchunk.asarray(np.array(3.5), urlpath=tmp_path / "small.b2nd")
    superchunk.SChunk(urlpath=tmp_path / "empty.b2frame").close()
    small, empty = (succeed("info", tmp_path / name).text for name in ("small.b2nd", "empty.b2frame"))
    assert "cbytes        40 (40 B), 5.00x larger\n" in small
    assert "cbytes        0 (0 B)\n" in empty


def test_what_is_no_frame_is_called_what_it_is(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(100))
    (tmp_path / "x.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(200))
    (tmp_path / "x.zarr").mkdir()
    (tmp_path / "x.zarr" / "zarr.json").write_text("{}")
    for name, what in (("x.npy", "a .npy file"), ("x.h5", "an HDF5 file"), ("x.zarr", "a Zarr array or group")):
        for command in ("info", "cat", "decompress"):
            assert f"it is {what}, which superchunk convert makes a frame of" in fail(1, command, tmp_path / name)
    assert fail(1, "info", "a\nb").endswith("/a b: No such file or directory")
