"""The demonstration: real data, verified, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from cli_runner import fail, succeed

from superchunk.cli import demo as demo_command
from superchunk.cli import demo_data, measure
from superchunk.cli.errors import Failure

if TYPE_CHECKING:
    from pathlib import Path

for package in demo_data.PACKAGES:
    pytest.importorskip(package, reason="of the extra demo")


def test_demo_verifies_every_frame_and_draws_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.0)
    lines = succeed("demo", "-o", tmp_path / "out").text.splitlines()
    frames = list((tmp_path / "out" / "frames").iterdir())
    assert len(frames) == 6 * len(demo_command.CHOICES)
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
    import blosc2  # noqa: PLC0415 - one of the packages above

    path = tmp_path / "x.b2frame"
    blosc2.save_array(np.arange(10), str(path))
    demo_command.ask_witness(path, np.arange(10))
    with pytest.raises(Failure, match="something else"):
        demo_command.ask_witness(path, np.arange(10) + 1)
    path.write_bytes(b"no frame")
    with pytest.raises(Failure, match="cannot read"):
        demo_command.ask_witness(path, np.arange(10))


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_command, "PACKAGES", ("numpy", "surely_not_installed"))
    message = fail(1, "demo")
    assert "surely_not_installed" in message
    assert "superchunk[demo]" in message
