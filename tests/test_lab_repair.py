"""The small form of the laboratory of `repair`: some drawn damages of a frame of each kind, of both writers."""

from __future__ import annotations

import pytest
from labs import repair

import superchunk


@pytest.mark.parametrize("writer", repair.WRITERS)
def test_drawn_damages_leave_what_is_sound(writer: str) -> None:
    if writer == "blosc2":
        pytest.importorskip("blosc2", reason="the other writer")
    counts = repair.run(40, seed=1, only=f"{writer}-")
    assert counts.failures == []
    assert counts.repaired > counts.cases / 4


def test_the_laboratory_notices_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(path: object, output: object = None, **_options: object) -> superchunk.RepairReport:
        with superchunk.SChunk(chunksize=400, urlpath=output, mode="w"):  # type: ignore[arg-type]
            return superchunk.RepairReport(path=str(path), output=str(output), status="repaired")

    monkeypatch.setattr(superchunk, "repair", forgetful)
    assert len(repair.run(10, seed=1, only="unsealed-fixed-contiguous").failures) > 1
