"""The benchmark suite: rows of the work of users, and records turned into documents. No test looks at a clock."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

pytest.importorskip("blosc2")

import peers
import report
import work
from pairs import Turns
from work_summary import Row, asked

ROOT = report.ROOT


def turns(**seconds: list[float]) -> Turns:
    found = Turns(seconds)
    found.seconds = seconds
    return found


def test_a_ratio_above_one_means_that_ours_is_better() -> None:
    took = turns(superchunk=[1.0, 1.0], blosc2=[2.0, 4.0])
    assert Row.times("x", took, "ms", 1000).figures == {"superchunk": 1000.0, "blosc2": 3000.0}
    assert Row.times("x", took, "ms", 1000).ratio("blosc2") == 3
    assert Row.speeds("x", took, 10**9).ratio("blosc2") == 3
    assert Row("x", "MB", {"superchunk": 2.0, "blosc2": 4.0}).ratio("blosc2") == 2
    assert Row("x", "x", {"superchunk": 2.0, "blosc2": 4.0}, more=True).ratio("blosc2") == 0.5


def test_what_was_asked_of_a_row_is_a_figure_or_a_ratio() -> None:
    took = turns(superchunk=[1.0], blosc2=[2.0])
    rows = [
        Row.times("a", took, "s", 1, asked=0.5),
        Row.speeds("b", took, 1, asked_ratio=1.3),
        Row.times("c", took, "s", 1),
    ]
    found = list(asked({"rows": [row._asdict() for row in rows]}))
    assert [(one.what, one.met) for one in found] == [("a", False), ("b", True)]


def test_marks_are_filled_and_all_else_stays() -> None:
    records: Any = {"work": {"rows": [Row("import, over NumPy", "s", {"superchunk": 1.0, "blosc2": 2.0})._asdict()]}}
    text = "before\n<!-- figures: work short -->\nold\n<!-- end of figures -->\nafter\n"
    got = report.filled(text, records)
    assert "| import, over NumPy, s | 1 | 2 | 2.00 |" in got
    assert "old" not in got
    assert got.startswith("before\n<!-- figures: work short -->\n")
    assert got.endswith("<!-- end of figures -->\nafter\n")
    assert report.filled(got, records) == got


def test_figures_are_short_and_lose_nothing_before_the_point() -> None:
    assert [report.number(value) for value in (0.01234, 1.5, 99.96, 12345.6)] == ["0.0123", "1.5", "100", "12,346"]


@pytest.mark.parametrize("document", report.DOCUMENTS)
def test_a_document_shows_the_figures_of_the_records_beside_it(document: str) -> None:
    text = (ROOT / document).read_text("utf-8")
    assert report.filled(text, report.newest_records()) == text, "run `make figures`"


def test_every_cell_of_the_record_is_on_the_page_of_cells() -> None:
    records = report.newest_records()
    page = (ROOT / report.ALL_CELLS).read_text("utf-8")
    assert page == report.every_cell(records)
    assert page.count("\n| ") == len(records["matrix"]["cells"]) + 2


@pytest.mark.parametrize("name", peers.MAKERS)
def test_a_peer_loads_what_it_saved(name: str, tmp_path: Path) -> None:
    pytest.importorskip(peers.MAKERS[name]().module)
    data = np.arange(5000, dtype="f4")
    peer = peers.MAKERS[name]()
    peer.save(data, tmp_path / "x")
    assert np.ascontiguousarray(peer.load(tmp_path / "x")).tobytes() == data.tobytes()


@pytest.mark.parametrize("name", work.KEEPERS)
def test_a_peer_reads_and_writes_in_part_and_appends(name: str, tmp_path: Path) -> None:
    pytest.importorskip(peers.MAKERS[name]().module)
    data = np.arange(5000, dtype="f4")
    peer = peers.MAKERS[name]()
    peer.save(data, tmp_path / "x")
    with peer.opened(tmp_path / "x", mode="a") as handle:
        handle[10:20] = data[:10]
    with peer.opened(tmp_path / "x") as handle:
        assert handle[9:21].tolist() == [9, *range(10), 20]
    piece = np.ones(peers.CHUNKSIZE // 4, "f4")
    with peer.appending(tmp_path / "y", piece.dtype) as append:
        append(piece)
        append(piece)
    assert (tmp_path / "y").exists()


def test_a_job_can_be_chosen() -> None:
    assert work.arguments(["--job", "open", "random"]).job == ["open", "random"]
    assert work.arguments([]).job == tuple(work.JOBS)
