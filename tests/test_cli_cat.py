"""cat: the items that were asked for, as text or bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from arrays_drawn import arrays
from cli_runner import fail, succeed
from hypothesis import given, settings
from hypothesis import strategies as st

import superchunk

if TYPE_CHECKING:
    from pathlib import Path

    from arrays_drawn import Drawn

VALUES = np.arange(1000, dtype="f8") / 8


@pytest.fixture(scope="module")
def frame(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a frame of 1000 numbers in chunks of 128."""
    path = tmp_path_factory.mktemp("cat") / "x.b2frame"
    succeed("compress", "-", "-o", path, "--dtype", "f8", "--chunksize", "1K", stdin=VALUES.tobytes())
    return path


@pytest.mark.parametrize(
    ("items", "expected"),
    [("3:6", VALUES[3:6]), ("126:130", VALUES[126:130]), ("-2:", VALUES[-2:]), ("7", VALUES[7:8]), ("5:5", [])],
)
def test_items_are_printed_one_a_line(frame: Path, items: str, expected: list[float]) -> None:
    assert succeed("cat", frame, "--items", items).text == "".join(f"{value}\n" for value in expected)


def test_everything_is_printed_without_a_range(frame: Path) -> None:
    assert [float(line) for line in succeed("cat", frame).text.splitlines()] == VALUES.tolist()


@settings(max_examples=25, deadline=None)
@given(bounds=st.tuples(st.integers(0, 1000), st.integers(0, 1000)))
def test_raw_gives_the_bytes_of_any_slice(frame: Path, bounds: tuple[int, int]) -> None:
    start, stop = sorted(bounds)
    result = succeed("cat", frame, "--items", f"{start}:{stop}", "--raw")
    assert result.stdout == VALUES[start:stop].tobytes()


def test_a_file_gets_bytes(frame: Path, tmp_path: Path) -> None:
    succeed("cat", frame, "--items", "100:200", "-o", tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == VALUES[100:200].tobytes()
    assert "--force" in fail(1, "cat", frame, "-o", tmp_path / "x")


@pytest.mark.parametrize("dtype", ["u1", "i4", "S3", "c16", "V24"])
def test_another_dtype_counts_in_its_own_items(frame: Path, dtype: str) -> None:
    itemsize = np.dtype(dtype).itemsize
    values = np.frombuffer(VALUES.tobytes()[: 8000 // itemsize * itemsize], dtype)
    result = succeed("cat", frame, "--dtype", dtype, "--items", "11:29", "--raw")
    assert result.stdout == values[11:29].tobytes()
    assert len(succeed("cat", frame, "--dtype", dtype).text.splitlines()) == len(values)


def test_items_of_unknown_type_are_printed_in_hexadecimal(tmp_path: Path) -> None:
    succeed("compress", "-", "-o", tmp_path / "x", "--typesize", "3", stdin=bytes(range(9)))
    assert succeed("cat", tmp_path / "x").text == "000102\n030405\n060708\n"


def test_text_cannot_break_the_line_or_command_the_terminal(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array(["plain", "two\nlines", "\x1b[2J"]))
    succeed("compress", tmp_path / "a.npy")
    assert succeed("cat", tmp_path / "a.npy.b2frame").text == "plain\n'two\\nlines'\n'\\x1b[2J'\n"


@pytest.mark.parametrize("items", ["990:1001", "1001:", "6:5", "1000"])
def test_a_range_past_the_end_says_how_many_there_are(frame: Path, items: str) -> None:
    assert "0:1000" in fail(1, "cat", frame, "--items", items)


def test_a_range_that_is_none_is_a_usage_error(frame: Path) -> None:
    assert "start:stop" in fail(2, "cat", frame, "--items", "1:2:3")


@settings(max_examples=80, deadline=None)
@given(drawn=arrays(), data=st.data())
def test_items_of_an_array_come_in_c_order(
    tmp_path_factory: pytest.TempPathFactory, drawn: Drawn, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("cat") / "x.b2nd"
    superchunk.asarray(drawn.content, **drawn.keywords(), urlpath=path, mode="w").close()
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, drawn.content.size)] * 2)))
    result = succeed("cat", path, "--items", f"{start}:{stop}", "--raw")
    assert result.stdout == drawn.content.reshape(-1)[start:stop].tobytes()


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        (np.arange(6, dtype=">i2").reshape(2, 3), ["0", "1", "2", "3", "4", "5"]),
        (np.array(2.5), ["2.5"]),
        (np.zeros((0, 3)), []),
        (np.array([(1, "Ada")], dtype=[("id", "i4"), ("name", "U5")]), ["(1, 'Ada')"]),
        (np.array(["2024-01-01"], dtype="M8[D]"), ["2024-01-01"]),
    ],
)
def test_an_array_is_printed_one_item_a_line(tmp_path: Path, values: np.ndarray, lines: list[str]) -> None:
    superchunk.asarray(values, urlpath=tmp_path / "x", mode="w").close()
    assert succeed("cat", tmp_path / "x").text.splitlines() == lines


def test_the_chunks_of_an_array_as_they_are(tmp_path: Path) -> None:
    values = np.arange(6, dtype="u1").reshape(2, 3)
    superchunk.asarray(values, chunks=(2, 2), blocks=(2, 2), urlpath=tmp_path / "x").close()
    assert succeed("cat", tmp_path / "x", "--storage-order", "--raw").stdout == bytes([0, 1, 3, 4, 2, 0, 5, 0])
