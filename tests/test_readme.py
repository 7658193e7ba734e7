"""What README, quickstart and examples show runs as it stands there."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest
from cli_runner import run

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
QUICKSTART = (ROOT / "docs" / "quickstart.md").read_text("utf-8")
PAGES = README + QUICKSTART
"""The quickstart goes on where the README's program ends."""
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGES, re.MULTILINE | re.DOTALL)
SCREENS = 2
SCREEN_LINES = 50
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert BLOCKS
    assert EXAMPLES


def test_the_readme_fits_two_screens_with_ten_lines_of_code_and_one_table_of_twelve_rows() -> None:
    lines = README.splitlines()
    assert len(lines) <= SCREENS * SCREEN_LINES
    (program,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert len([line for line in program.splitlines() if line.strip()]) <= 11  # one more imports NumPy
    rows = [line for line in lines if line.startswith("|")]
    assert 3 <= len(rows) <= 2 + 12  # head and rule
    first = lines.index(rows[0])
    assert lines[first : first + len(rows)] == rows


def test_the_examples_of_the_readme_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = []
    for number, block in enumerate(BLOCKS):
        (tmp_path / f"block{number}.py").write_text(block, "utf-8")
        runpy.run_path(str(tmp_path / f"block{number}.py"))
        printed.append(capsys.readouterr().out)
    assert printed[0].startswith("(30, 180, 360) float32 K\n")
    assert printed[0].endswith("True\n")
    assert printed[-1].endswith("sound\n")


def test_the_commands_of_the_readme_run_where_its_examples_have_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = []
    for kind, block in re.findall(r"^```(python|console)\n(.*?)^```", PAGES, re.MULTILINE | re.DOTALL):
        if kind == "python":
            exec(compile(block, "README.md", "exec"), {"__name__": "readme"})  # noqa: S102 - our own page
            continue
        for line in re.findall(r"^\$ superchunk ([^#\n]*)", block, re.MULTILINE):
            assert run(*shlex.split(line)).code == 0, line
            done.append(line.split()[0])
    assert {"compress", "info", "cat", "decompress", "verify", "repair", "convert"} <= set(done)
    assert np.array_equal(np.load("again.npy"), np.load("field.npy"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_reads_what_it_wrote(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if example.stem == "both_ways":
        pytest.importorskip("blosc2", reason="the other side")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed
    assert "False" not in printed
    assert list(tmp_path.glob("*.b2frame"))


def test_the_architecture_is_read_in_ten_minutes() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").split()) < 1800


def test_the_files_that_the_architecture_names_are_there() -> None:
    """Paths of Python files count from the package, others from the root."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"`([\w./]*(?:/|\.py|\.rs|\.pyi|\.md))`", text))
    for drawing in re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL):
        named |= set(re.findall(r"[\w./]+\.(?:py|rs)\b", drawing))
    assert len(named) > 50
    places = (ROOT, ROOT / "python" / "superchunk", ROOT / "engine" / "src", ROOT / "python" / "superchunk" / "storage")
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


def test_the_files_that_design_notes_name_are_there() -> None:
    folders = ("benchmarks", "bindings", "docs", "engine", "examples", "fuzz", "io", "python", "tests")
    there = {f"/{path.relative_to(ROOT).as_posix()}" for one in folders for path in (ROOT / one).rglob("*.*")}
    for page in (ROOT / "docs" / "design").glob("*.md"):
        for name in re.findall(r"`([\w./]+\.(?:py|rs))`", page.read_text("utf-8")):
            assert any(path.endswith(f"/{name}") for path in there), f"{page.name} names {name}"


def test_every_design_note_is_in_the_list_of_design_notes() -> None:
    folder = ROOT / "docs" / "design"
    listed = set(re.findall(r"\]\((\w+\.md)\)", (folder / "README.md").read_text("utf-8")))
    assert listed == {path.name for path in folder.glob("*.md")} - {"README.md"}


def test_links_of_the_documents_lead_somewhere() -> None:
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
