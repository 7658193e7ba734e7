"""The laboratory of paths, a fixed part of it; `python tests/labs/paths.py` runs the whole product."""

from __future__ import annotations

import pytest
from labs import paths

CASES = 2000


def test_a_drawn_part_of_all_calls_things_and_modes_touches_nothing_foreign() -> None:
    report = paths.run(CASES, seed=15)
    assert report.failures == []
    assert report.made > 100
    assert report.refused > 1000
    assert report.intruders > 300


@pytest.mark.parametrize("somebody", [paths.without_permission, paths.read_only])
def test_where_nothing_may_be_written_every_call_says_so(somebody: paths.Somebody) -> None:
    report = somebody()
    if report.skipped:
        pytest.skip(report.skipped[0])
    assert report.failures == []
    assert report.refused == report.cases > 100
