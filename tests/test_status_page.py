"""Every row of docs/status.md is proved by tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "status.md").read_text("utf-8")
COLUMNS = 4
NAME = re.compile(r"`([^`]*)`")
PROOF = re.compile(r"(test_\w+\.py)(?:::(test_\w+))?|((?:engine|io)/src/[\w/]+\.rs)::(\w+)")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("| feature", "| ---"))
]


def test_the_page_has_rows() -> None:
    assert len(ROWS) > 70
    assert {len(row) for row in ROWS} == {COLUMNS}
    features = [row[0] for row in ROWS]
    for family in ("A0", "A1", "A2", "B", "C1", "C2", "C3"):
        assert sum(feature.startswith(f"{family}: ") for feature in features) == 1


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_row_says_yes_no_or_what_and_names_tests_that_exist(row: list[str]) -> None:
    feature, read, write, proof = row
    assert feature
    assert read
    assert write
    names = NAME.findall(proof)
    assert names, "no test is named"
    assert not NAME.sub("", proof).strip(), "something besides names of tests"
    for name in names:
        match = PROOF.fullmatch(name)
        assert match, f"{name} is no name of a test"
        file, function, rust_file, rust_function = match.groups()
        source = (TESTS.parent / rust_file if rust_file else TESTS / file).read_text("utf-8")
        wanted = rf"#\[test\]\s+fn {rust_function}\(" if rust_file else rf"^def {function or 'test_'}"
        assert re.search(wanted, source, re.MULTILINE), f"{name} is not there"
