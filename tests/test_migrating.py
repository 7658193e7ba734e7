"""What docs/migrating.md shows runs from its first block to its last and prints what stands beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dask", reason="the page shows how Dask computes on arrays")
pytest.importorskip("xarray", reason="the page shows how xarray names their axes")
pytest.importorskip("blosc2", reason="the page opens a file with the other package")

PAGE = Path(__file__).parent.parent / "docs" / "migrating.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


def run(blocks: list[str]) -> None:
    """Run blocks that share their names."""
    names: dict[str, Any] = {"__name__": "migrating"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"block {number} of migrating.md", "exec"), names)  # noqa: S102 - our own page


def test_all_of_the_page_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(BLOCKS)
    promised = [line for block in BLOCKS for line in PRINTED.findall(block)]
    assert len(promised) >= 15
    assert capsys.readouterr().out.splitlines() == promised


def test_the_first_example_is_one_of_the_other_package_but_for_its_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert BLOCKS[0].strip() == "import superchunk as blosc2"
    run(["import blosc2", BLOCKS[1]])
    assert capsys.readouterr().out.splitlines() == PRINTED.findall(BLOCKS[1])
