"""The stub of the engine and the built module say the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from superchunk import _engine

ROOT = Path(__file__).resolve().parents[1]
NAMES = sorted(name for name in dir(_engine) if not name.startswith("_"))


def test_the_stub_says_what_the_module_has() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "superchunk._engine"]
    options = [
        "--mypy-config-file",
        "pyproject.toml",
        "--allowlist",
        "tests/stubtest-allow",
        "--ignore-unused-allowlist",
    ]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_help_answers_for_everything(name: str) -> None:
    assert getattr(_engine, name).__doc__
