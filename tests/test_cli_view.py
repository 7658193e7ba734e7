"""view: what is drawn, what is read for it, and what cannot be drawn."""

from __future__ import annotations

import importlib.util
import struct
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cli_runner import fail, succeed

import superchunk
from superchunk.cli import view as viewing
from superchunk.cli.formats.b2nd import ArraySource
from superchunk.cli.formats.places import Place
from superchunk.cli.view import Cut, View, collect, parse_cut

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("matplotlib")


def looked_at(path: Path, words: str = "", field: str | None = None) -> View:
    """Return what would be drawn."""
    place = Place.of_source(str(path))
    source = place.open()
    try:
        return collect(place, source, words, field)
    finally:
        source.close()


def array_at(path: Path, values: np.ndarray[Any, Any], **how: Any) -> Path:
    superchunk.asarray(values, urlpath=str(path), mode="w", **how).schunk.close()
    return path


def chunks_of(path: Path) -> Any:
    opened: Any = superchunk.open(str(path))
    return opened.schunk


def size_of(png: Path) -> tuple[int, int]:
    content = png.read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


@pytest.fixture
def cube(tmp_path: Path) -> Path:
    """Return an array of three dimensions whose chunks differ."""
    values = np.zeros((5, 60, 90), "f4")
    values[:, :20] = np.random.default_rng(3).normal(size=(5, 20, 90))
    values[:, 40:] = np.arange(90)
    return array_at(tmp_path / "cube.b2nd", values, chunks=(2, 20, 30), blocks=(1, 10, 30))


def test_a_picture_is_drawn_of_every_format(tmp_path: Path, cube: Path) -> None:
    for name in ("a.npy", "a.b2frame", "a.zarr", "a.h5:/x"):
        succeed("convert", cube, tmp_path / name)
        succeed("view", tmp_path / name, "-o", tmp_path / "out.png", "--force")
        assert min(size_of(tmp_path / "out.png")) > 300
    succeed("view", cube, "-o", tmp_path / "out.png", "--force")
    width, height = size_of(tmp_path / "out.png")
    assert width > 1.4 * height, "the map stands beside the items"


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_pictures_of_three_kinds(tmp_path: Path, cube: Path, suffix: str) -> None:
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    text = succeed("view", cube, "-o", tmp_path / f"x.{suffix}", "--slice", "1,:,5").text
    assert f"x.{suffix}: cube.b2nd [1, :, 5]" in text
    assert (tmp_path / f"x.{suffix}").read_bytes().startswith(starts[suffix])


def test_the_default_is_the_middle_of_the_leading_dimensions(cube: Path) -> None:
    shown = looked_at(cube)
    with chunks_of(cube) as schunk:
        assert (shown.values == superchunk.NDArray(schunk)[2]).all()
    assert shown.title == "cube.b2nd [2, :, :]"
    assert shown.axes == (1, 2)


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("3,:,:", (3, slice(None), slice(None))),
        ("-1, 5:20, :", (-1, slice(5, 20), slice(None))),
        (":, 7, 10:40:3", (slice(None), 7, slice(10, 40, 3))),
        ("0,0,:", (0, 0, slice(None))),
        ("::2,-60,4", (slice(None, None, 2), -60, 4)),
    ],
)
@pytest.mark.parametrize("name", ["a.b2nd", "a.npy", "a.b2frame"])
def test_a_slice_is_that_of_numpy(
    tmp_path: Path, cube: Path, name: str, words: str, key: tuple[int | slice, ...]
) -> None:
    succeed("convert", cube, tmp_path / name, "--contiguous")
    with chunks_of(cube) as schunk:
        expected = superchunk.NDArray(schunk)[()][key]
    shown = looked_at(tmp_path / name, words)
    assert shown.values.shape == expected.shape
    assert (shown.values == expected).all()


@pytest.mark.parametrize("words", ["3", "1,2,3", ":,:,:", "a,:,:", "9,:,:", "1,:,:,:", "1,::0,:", "1,,:"])
def test_a_slice_that_makes_no_sense_is_a_wrong_command_line(cube: Path, words: str) -> None:
    assert "--slice" in fail(2, "view", cube, "--slice", words)


def test_the_map_shows_the_chunks_that_the_slice_meets(cube: Path) -> None:
    grid = looked_at(cube, "3,:,:").grid
    assert grid is not None
    assert grid.edges == ([0, 20, 40, 60], [0, 30, 60, 90])
    with chunks_of(cube) as schunk:
        sizes = [superchunk.get_cbuffer_sizes(schunk.get_chunk(n))[1] for n in range(9, 18)]
    assert [cell.cbytes for cell in grid.cells] == sizes
    assert [cell.special is not None for cell in grid.cells] == [False] * 3 + [True] * 3 + [False] * 3
    line = looked_at(cube, "3,:,70").grid
    assert line is not None
    assert [cell.cbytes for cell in line.cells] == sizes[2::3]


def test_the_chunks_of_a_stream_stand_under_its_line(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(10_000))
    succeed("convert", tmp_path / "x.npy", tmp_path / "x.b2frame", "--chunksize", "16000")
    grid = looked_at(tmp_path / "x.b2frame", "3000:9000").grid
    assert grid is not None
    assert grid.edges == ([2000, 4000, 6000, 8000, 10000],)
    assert looked_at(tmp_path / "x.npy").grid is None


def test_of_a_large_array_every_nth_item_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = superchunk.zeros((200_000, 100_000), dtype="f8", urlpath=str(tmp_path / "x.b2nd"), mode="w")
    array.schunk.close()
    read = []
    pick = ArraySource.pick

    def counted(self: ArraySource, key: tuple[slice | int, ...]) -> np.ndarray[Any, Any]:
        read.append(pick(self, key))
        return read[-1]

    monkeypatch.setattr(ArraySource, "pick", counted)
    shown = looked_at(tmp_path / "x.b2nd")
    assert sum(values.size for values in read) <= viewing.MOST_PIXELS**2
    assert "of every 143 x 72 items one" in shown.title
    assert shown.grid is not None
    assert len(shown.grid.cells) <= viewing.MOST_CHUNKS**2


def test_a_long_line_is_thinned(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(1_000_000))
    shown = looked_at(tmp_path / "x.npy")
    assert (shown.values == np.arange(0, 1_000_000, 250)).all()


@pytest.mark.parametrize(
    "values",
    [
        np.arange(12).reshape(3, 4).astype("<M8[D]"),
        np.arange(12).reshape(3, 4).astype("<m8[s]"),
        np.full((3, 4), "NaT", "<M8[s]"),
        np.array([["20000", "-5000"]], "<M8[Y]"),
        np.arange(12).reshape(3, 4) > 5,
        np.exp(1j * np.arange(12).reshape(3, 4)),
        np.full((3, 4), np.nan),
        np.array([[np.inf, 1.0], [-np.inf, 2.0]]),
        np.full((3, 4), 7, "u1"),
        np.arange(12).reshape(3, 4).astype(">f2"),
        np.array([[-1e300, 1e300]]),
        np.array([[-(2**63), 2**63 - 1]]),
        np.array(3.5),
        np.zeros((1, 1)),
    ],
    ids=lambda values: f"{values.dtype}{values.shape}",
)
@pytest.mark.parametrize("lone", [False, True])
def test_values_of_every_kind_are_drawn(tmp_path: Path, values: np.ndarray[Any, Any], lone: bool) -> None:  # noqa: FBT001
    shown = np.atleast_1d(values[0]) if lone and values.ndim else values
    array_at(tmp_path / "x.b2nd", np.asarray(shown))
    succeed("view", tmp_path / "x.b2nd", "-o", tmp_path / "x.png")
    assert min(size_of(tmp_path / "x.png")) > 300


def test_numbers_of_other_packages_are_drawn(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    zarr = pytest.importorskip("zarr")
    del zarr
    shown = View(
        title="x",
        subtitle="",
        values=np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16),
        places=(range(3), range(4)),
        axes=(0, 1),
        label="bfloat16",
        fill=None,
        grid=None,
    )
    from superchunk.cli.view_picture import draw

    draw(shown, tmp_path / "x.png", "png")
    assert min(size_of(tmp_path / "x.png")) > 300


def test_a_field_of_a_structured_array_is_chosen(tmp_path: Path) -> None:
    values = np.zeros((4, 5), [("height", "f4"), ("name", "S3"), ("pair", "i4", 2)])
    values["height"] = np.arange(20).reshape(4, 5)
    path = array_at(tmp_path / "x.b2nd", values)
    assert "height, name, pair" in fail(1, "view", path)
    assert "height, name, pair" in fail(2, "view", path, "--field", "weight")
    assert "text" in fail(1, "view", path, "--field", "name")
    assert "cannot be drawn" in fail(1, "view", path, "--field", "pair")
    shown = looked_at(path, "", "height")
    assert shown.label == "height"
    assert (shown.values == values["height"]).all()
    succeed("view", path, "--field", "height", "-o", tmp_path / "x.png")
    assert "without fields" in fail(2, "view", array_at(tmp_path / "y.b2nd", np.zeros(4)), "--field", "a")


@pytest.mark.parametrize("values", [np.array(["a", "b"]), np.array([b"a", b"b"]), np.zeros(3, "V5"), np.zeros((3, 0))])
def test_what_has_no_picture_is_said(tmp_path: Path, values: np.ndarray[Any, Any]) -> None:
    path = array_at(tmp_path / "x.b2nd", values)
    message = fail(1, "view", path, "-o", tmp_path / "x.png")
    assert str(path) in message
    assert str(values.dtype) in message or "no items" in message
    assert not (tmp_path / "x.png").exists()


def test_what_to_install_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else find(name, *rest)
    )
    assert 'pip install "superchunk[view]"' in fail(1, "view", tmp_path / "x.npy")


def test_the_command_does_not_load_matplotlib_for_other_work() -> None:
    import subprocess

    program = "import sys, superchunk.cli.app; sys.exit('matplotlib' in sys.modules or 'zarr' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    (tmp_path / "x.png").write_text("old")
    assert "exists" in fail(1, "view", tmp_path / "x.npy", "-o", tmp_path / "x.png")
    assert (tmp_path / "x.png").read_text() == "old"
    assert ".svg" in fail(2, "view", tmp_path / "x.npy", "-o", tmp_path / "x.gif")


def test_a_name_with_dollars_is_no_formula(tmp_path: Path) -> None:
    np.save(tmp_path / "$x_{$.npy", np.zeros((3, 3)))
    succeed("view", tmp_path / "$x_{$.npy", "-o", tmp_path / "x.svg")


def test_a_damaged_chunk_is_an_error_and_no_picture(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(40, 40))
    path = array_at(tmp_path / "x.b2nd", values, chunks=(20, 20), blocks=(20, 20))
    with chunks_of(path) as schunk:
        first = path.read_bytes().index(schunk.get_chunk(0))
    content = bytearray(path.read_bytes())
    content[first] = 99  # its version
    path.write_bytes(content)
    assert "version" in fail(1, "view", path, "-o", tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()


def test_the_cut_of_no_dimension_is_the_one_item() -> None:
    assert Cut.default(()).axes == ()
    assert str(parse_cut("", (0, 3))) == "0, 0:3"
