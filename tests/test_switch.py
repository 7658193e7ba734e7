"""Scripts written for python-blosc2 run with superchunk, unchanged but for the line that imports the package.

Each of `examples/switch` runs as it stands and with the line that takes the other package; both have to print the same,
checksums of all they read included. Then each reads the files that the other wrote.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from oracle import blosc2 as peer

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "examples" / "switch").glob("*.py"))
OURS = "import superchunk as blosc2"
IMPORTS = {"superchunk": OURS, "blosc2": f"import {peer.__name__}"}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs a script with one of the packages and returns what it printed."""

    def runs(script: Path, package: str, *args: str) -> str:
        text = script.read_text("utf-8")
        assert text.count(OURS) == 1
        changed = tmp_path / package / script.name
        changed.parent.mkdir(exist_ok=True)
        changed.write_text(text.replace(OURS, IMPORTS[package]), "utf-8")
        done = subprocess.run(
            [sys.executable, str(changed), *args],
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return runs


def test_there_are_five_scripts_and_the_import_is_all_that_names_the_package() -> None:
    assert len(SCRIPTS) == 5
    for script in SCRIPTS:
        assert script.read_text("utf-8").count("superchunk") == 1


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_prints_the_same_with_both_packages(script: Path, run: Callable[..., str]) -> None:
    printed = {package: run(script, package, "both", f"files of {package}") for package in IMPORTS}
    assert printed["superchunk"] == printed["blosc2"]
    assert len(printed["superchunk"].splitlines()) >= 5
    assert "False" not in printed["superchunk"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_each_package_reads_what_the_other_wrote(script: Path, run: Callable[..., str]) -> None:
    for writer in IMPORTS:
        run(script, writer, "save", f"files of {writer}")
    read = {
        (writer, reader): run(script, reader, "load", f"files of {writer}") for writer in IMPORTS for reader in IMPORTS
    }
    wanted = read["blosc2", "blosc2"]
    assert "called" not in wanted or "called 0 times" in wanted
    for pair, printed in read.items():
        assert printed == wanted, f"written by {pair[0]}, read by {pair[1]}"
