"""``superchunk bench --tune``: what is tried, what wins, and why. Speeds are given; no test looks at a clock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cli_runner import fail, succeed

import superchunk
from superchunk.cli import measure
from superchunk.cli.errors import Failure
from superchunk.cli.measure import Choice, Measured
from superchunk.cli.options import parse_filters
from superchunk.cli.tune import SAMPLE, Trial, candidates, front, reason, sample, score, tune

if TYPE_CHECKING:
    from pathlib import Path


def trial(codec: str, *, cbytes: int, speed: float = 1.0, slice_seconds: float = 1e-5) -> Trial:
    """Return a trial of 1000 bytes that are written and read at so many bytes a second."""
    got = Measured(
        nbytes=1000,
        cbytes=cbytes,
        compress_seconds=1000 / speed,
        decompress_seconds=1000 / speed,
        slice_seconds=slice_seconds,
    )
    choice = Choice(codec=codec, level=5, filters=parse_filters("shuffle"))
    return Trial(choice=choice, chunksize=2**20, got=got, reads=3)


class Flat:
    """An array to read boxes from."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values, self.shape, self.dtype = values, values.shape, values.dtype

    def read(self, box: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = self.values[box]
        return found


def test_the_front_has_what_no_other_beats_in_size_and_speed() -> None:
    small, middle, beaten, fast = (
        trial("zstd", cbytes=100, speed=10),
        trial("zlib", cbytes=200, speed=20),
        trial("lz4hc", cbytes=250, speed=15),
        trial("lz4", cbytes=300, speed=40),
    )
    assert front([fast, beaten, middle, small]) == [small, middle, fast]


def test_a_fifth_smaller_is_worth_twice_the_speed() -> None:
    assert score(trial("zstd", cbytes=80, speed=10)) == pytest.approx(score(trial("lz4", cbytes=100, speed=20)))


def test_the_reason_names_both_ends_of_the_front() -> None:
    small, best, fast = (
        trial("zstd", cbytes=100, speed=10),
        trial("lz4hc", cbytes=110, speed=40),
        trial("lz4", cbytes=220, speed=50),
    )
    said = reason(best, [small, best, fast])
    assert said == (
        "4.0 times as fast as zstd-5 shuffle, the smallest, for 10 % more bytes; "
        "50 % smaller than lz4-5 shuffle, the fastest, at 0.80 of its speed"
    )
    assert reason(best, [best]) == "no trial is smaller; no trial is faster"


def test_every_combination_is_tried_once_and_bytes_are_not_shuffled() -> None:
    tried = [str(choice) for choice in candidates(4)]
    assert len(tried) == len(set(tried)) == 55
    assert tried[0] == "lz4-5 shuffle"
    assert not any("shuffle" in str(choice).replace("bitshuffle", "") for choice in candidates(1))


def test_tuning_ends_with_the_time_and_says_what_it_left_out() -> None:
    now = [0.0]

    def measured(data: bytes, choice: Choice, **_: object) -> Measured:
        now[0] += 1
        ratio = 4 if choice.codec == "zstd" else 2
        seconds = 1e-3 if choice.blocksize != 2**14 else 1e-4
        return Measured(
            nbytes=len(data),
            cbytes=len(data) // ratio,
            compress_seconds=1.0,
            decompress_seconds=1.0,
            slice_seconds=seconds,
        )

    got = tune(bytes(2**22), typesize=4, reads=3, seconds=20, measured=measured, clock=lambda: now[0])
    assert len(got.trials) == 16
    assert got.left_out == 39
    assert got.front[0].choice.codec == got.best.choice.codec == "zstd"
    assert got.best.choice.blocksize == 2**14
    assert got.sizes[0].choice.blocksize == 0
    assert now[0] <= 21


def test_sizes_that_are_hardly_better_leave_the_librarys_own() -> None:
    def measured(data: bytes, choice: Choice, **_: object) -> Measured:
        return Measured(
            nbytes=len(data),
            cbytes=len(data) // 2,
            compress_seconds=1.0 if choice.blocksize == 0 else 0.99,
            decompress_seconds=1.0,
            slice_seconds=1e-5,
        )

    got = tune(bytes(2**22), typesize=4, reads=3, seconds=100, measured=measured, clock=lambda: 0.0)
    assert got.left_out == 0
    assert got.best.choice.blocksize == 0


@pytest.mark.parametrize("shape", [(2_000_000,), (20, 100_000), (2, 1000, 1000), (2, 3, 1000, 400)])
def test_a_sample_is_from_all_over_the_array_and_no_larger_than_asked(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    got = np.frombuffer(sample(Flat(values), 100_000), "i4")
    assert 20_000 <= got.nbytes <= 100_000
    assert (np.diff(got) > 0).all()
    assert got[0] < 0.3 * values.size
    assert got[-1] > 0.7 * values.size


def test_a_small_array_is_measured_whole_and_an_empty_one_not_at_all() -> None:
    values = np.arange(24).reshape(2, 3, 4)
    assert sample(Flat(values)) == values.tobytes()
    assert sample(Flat(np.array(7))) == np.array(7).tobytes()
    with pytest.raises(Failure, match="no item"):
        sample(Flat(values[:0]))


@pytest.mark.parametrize("name", ["a.npy", "a.b2nd", "a.b2frame", "a.raw"])
def test_a_users_file_is_tuned_whatever_kind_it_is(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SLICES", 5)
    values = np.arange(50_000, dtype="i4").reshape(50, 1000) // 7
    path = tmp_path / name
    if name == "a.npy":
        np.save(path, values)
    elif name == "a.b2nd":
        superchunk.asarray(values, urlpath=path)
    elif name == "a.b2frame":
        superchunk.SChunk(data=values, urlpath=path, cparams={"typesize": 4})
    else:
        values.tofile(path)
    options = ["--dtype", "i4"] if name == "a.raw" else []
    said = json.loads(succeed("bench", path, "--tune", "--seconds", "0.05", "--json", *options).text)
    assert (said["nbytes"], said["typesize"]) == (200_000, 4)
    assert said["recommended"]["ratio"] > 1
    assert said["recommended"]["reason"]
    assert set(map(str, said["front"])) <= set(map(str, said["tried"]))


def test_standard_input_is_tuned_from_its_front() -> None:
    said = json.loads(
        succeed("bench", "-", "--tune", "--seconds", "0", "--dtype", "f8", "--json", stdin=bytes(8000)).text
    )
    assert (said["nbytes"], said["typesize"]) == (8000, 8)
    assert SAMPLE > 8000


def test_the_recommendation_stands_below_the_tables_and_the_picture_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(measure, "SLICES", 5)
    np.save(tmp_path / "a.npy", np.arange(20_000) // 7)
    picture = tmp_path / "a.png"
    said = succeed("bench", tmp_path / "a.npy", "--tune", "--seconds", "0.1", "-o", picture).text
    assert "recommended: " in said
    assert "because: " in said
    assert "superchunk.CParams(codec=superchunk.Codec." in said
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "already exists" in fail(1, "bench", tmp_path / "a.npy", "--tune", "-o", picture)


def test_what_makes_no_sense_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(20))
    assert "--tune chooses" in fail(2, "bench", tmp_path / "a.npy", "--tune", "--codec", "lz4")
    assert "-o requires --tune" in fail(2, "bench", tmp_path / "a.npy", "-o", "x.png")
    assert ".svg" in fail(2, "bench", tmp_path / "a.npy", "--tune", "-o", "x.jpg")
    assert "No such file" in fail(1, "bench", tmp_path / "none", "--tune")
