"""The demo: real data, verified, drawn."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "demo"))

import demo
import demo_data

from superchunk.cli import measure
from superchunk.cli.errors import Failure

for package in demo_data.PACKAGES:
    pytest.importorskip(package, reason="of the extra demo")


def test_demo_verifies_every_frame_and_draws_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.0)
    done = CliRunner().invoke(demo.demo, ["-o", str(tmp_path / "out")], catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    frames = list((tmp_path / "out" / "frames").iterdir())
    assert len(frames) == 6 * len(demo.CHOICES)
    assert sum(line.rstrip().endswith(" yes") for line in lines) == len(frames)
    picture = (tmp_path / "out" / "demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n")
    assert len(picture) > 50_000


def test_the_fields_are_real_and_of_several_kinds() -> None:
    fields = list(demo_data.read_fields())
    assert {field.values.dtype.name for field in fields} == {"float32", "float64"}
    for field in fields:
        known = field.values[field.values != field.fill_value]
        assert len(np.unique(known)) > 100, field.name


def test_the_witness_speaks_up(tmp_path: Path) -> None:
    import blosc2  # one of the packages above

    path = tmp_path / "x.b2frame"
    blosc2.save_array(np.arange(10), str(path))
    demo.ask_witness(path, np.arange(10))
    with pytest.raises(Failure, match="something else"):
        demo.ask_witness(path, np.arange(10) + 1)
    path.write_bytes(b"no frame")
    with pytest.raises(Failure, match="cannot read"):
        demo.ask_witness(path, np.arange(10))


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PACKAGES", ("numpy", "surely_not_installed"))
    done = CliRunner().invoke(demo.demo, [])
    assert done.exit_code == 1
    assert "surely_not_installed" in done.stderr
    assert ".[demo]" in done.stderr
