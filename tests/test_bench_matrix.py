"""The benchmark of chunks: which cells are measured, and what is said about them. No test looks at a clock."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

pytest.importorskip("blosc2")

import datasets
import matrix
from matrix_summary import NAMES, Asked, Cell, asked, cells_of, lagging, larger, lines
from pairs import Effort, Turns, geometric, kept, read_record, take_turns, write_record

import superchunk

TINY = Effort(rounds=1, seconds=0)


def cell(**changes: Any) -> Cell:
    plain: dict[str, Any] = dict.fromkeys(Cell._fields, 1.0)
    plain |= {"data": "text", "held_out": False, "codec": "lz4", "level": 5, "filters": "none", "threads": 1}
    return Cell(**plain | changes)


def record(*cells: Cell) -> dict[str, Any]:
    return {"seconds": 1.0, "memory_copy_gb_s": 9.0, "cells": [one._asdict() for one in cells]}


def test_all_combinations_are_cells_unless_some_are_chosen() -> None:
    every = list(matrix.settings(matrix.arguments([]), np.dtype("f4")))
    assert len({setting[:3] for setting in every}) == len(matrix.CODECS) * len(matrix.LEVELS) * len(matrix.FILTERS)
    chosen = matrix.arguments(["--codec", "lz4", "zstd", "--level", "5", "--filter", "shuffle", "--threads", "1"])
    assert list(matrix.settings(chosen, np.dtype("f4"))) == [("lz4", 5, "shuffle", 1), ("zstd", 5, "shuffle", 1)]


def test_each_codec_has_a_composed_pipeline_and_each_pipeline_a_codec() -> None:
    assert set(matrix.COMPOSED) == set(matrix.CODECS)
    assert set(matrix.COMPOSED.values()) == {"delta+shuffle", "shuffle+bytedelta", "trunc_prec+bitshuffle"}


def test_precision_is_truncated_of_floats_only() -> None:
    assert matrix.pipeline("composed", "lz4hc", np.dtype("f4")) == "trunc_prec+bitshuffle"
    assert matrix.pipeline("composed", "lz4hc", np.dtype("i4")) == "delta+shuffle"


@pytest.mark.parametrize("name", datasets.MAKERS)
def test_a_data_set_has_the_size_that_was_asked_for_and_is_the_same_each_time(name: str) -> None:
    data = datasets.load(name, 100_000)
    assert 100_000 - data.itemsize < data.nbytes <= 100_000
    assert data.tobytes() == datasets.load(name, 100_000).tobytes()


@pytest.mark.parametrize("filter_", matrix.FILTERS)
@pytest.mark.parametrize("codec", matrix.CODECS)
def test_a_cell_says_what_was_measured(codec: str, filter_: str) -> None:
    data = np.arange(5000, dtype="f4")
    setting = matrix.Setting(codec, 1, matrix.pipeline(filter_, codec, data.dtype), 1)
    got = matrix.cell("weather", data, setting, TINY)
    assert got[:6] == ("weather", True, *setting)
    assert got.size == pytest.approx(got.ratio_theirs / got.ratio)


def test_data_that_come_back_different_end_the_run() -> None:
    data = np.arange(100, dtype="i4")
    setting = matrix.Setting("lz4", 5, "none", 1)
    with pytest.raises(SystemExit, match="differs"):
        matrix.verify(data, setting, {superchunk: superchunk.compress2(data + 1)}, np.empty_like(data))


def test_held_out_data_are_in_no_other_mean() -> None:
    found = {
        line.what: line for line in lines([cell(compress_x=4), cell(data="tracks", held_out=True, compress_x=0.5)])
    }
    assert found["all"].compress == found["codec lz4"].compress == 4
    assert found["all held out"].compress == found["held out tracks"].compress == 0.5
    assert "data tracks" not in found


def test_cells_that_lag_and_cells_that_are_larger_are_named_worst_first() -> None:
    cells = [cell(compress_x=0.9, decompress_x=0.5), cell(size=1.02), cell(size=1.02, threads=2), cell(size=1.009)]
    assert list(lagging(cells)) == [
        ("decompress text lz4-5 none, 1 thread", 0.5),
        ("compress text lz4-5 none, 1 thread", 0.9),
    ]
    assert list(larger(cells)) == [("text lz4-5 none", 1.02)]


def test_what_was_asked_stands_beside_what_was_measured() -> None:
    cells = (
        cell(codec="zlib", compress_x=3, decompress_x=2),
        cell(filters="bitshuffle", decompress_x=1.5),
        cell(data="random", compress=3000.0),
        cell(data="random", compress=10.0, level=9),
        cell(compress_x=100, size=1.5),
        cell(data="tracks", held_out=True, compress_x=0.1),
    )
    found = {one.what.split(" (")[0]: one for one in asked(record(*cells))}
    assert found["zlib, compression"].met
    assert not found["zlib, decompression"].met
    assert found["bitshuffle, decompression"].met
    assert found["incompressible, least of levels up to 5"].measured == 3
    assert found["compression, mean of all cells of a like size"].measured == pytest.approx(3 ** (1 / 4))
    assert found["compression, least cell"].measured == 0.1
    assert found["size, largest cell"] == Asked("size, largest cell", 1.01, 1.5, "x", at_most=True)
    assert not found["size, largest cell"].met


def test_a_record_reads_back_and_cells_can_be_added(tmp_path: Path) -> None:
    path = tmp_path / "matrix.json"
    write_record(path, record(cell(compress=1.23456), cell(level=9)))
    old = read_record(path)
    assert cells_of(old)[0].compress == 1.235
    assert len(path.read_text().splitlines()) == 8
    both = cells_of(kept(path, record(cell(compress=2.0), cell(codec="zstd")), "cells", NAMES))
    assert [(one.codec, one.level, one.compress) for one in both] == [
        ("lz4", 5, 2.0),
        ("lz4", 9, 1.0),
        ("zstd", 5, 1.0),
    ]
    json.loads(path.read_text())


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    turns = Turns(("superchunk", "blosc2"))
    for ours, theirs in ((1.0, 2.0), (10.0, 30.0), (5.0, 5.0)):
        turns.add({"superchunk": ours, "blosc2": theirs})
    assert turns.figure() == (5.0, 5.0, 2.0)
    assert geometric([1, 4]) == 2


def test_rounds_change_who_begins_and_end_with_the_patience() -> None:
    called: list[str] = []
    calls = {name: lambda name=name: called.append(name) for name in "ab"}
    assert len(take_turns(calls, Effort(rounds=3, seconds=0))) == 3
    assert "".join(called) == "baabbaab"
    assert len(take_turns(calls, Effort(rounds=3, seconds=0, patience=0))) == 1
