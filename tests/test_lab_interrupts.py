"""A small form of the laboratory of interrupts; `make lab-interrupts` is the long one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from labs import interrupts, signals

import superchunk
from superchunk._schunk.opening import create_handle
from superchunk._store.store_interface import FrameSettings

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

CASES = 25
"""Interrupts of each kind of frame and grain; all of them together are some hundred thousand."""

CPYTHON = sys.implementation.name == "cpython"


@pytest.mark.skipif(not CPYTHON, reason="counts the bytecodes of CPython")
@pytest.mark.parametrize("grain", ["line", "signal"])
@pytest.mark.parametrize("kind", interrupts.KINDS)
def test_an_interrupt_anywhere_leaves_the_old_or_the_new_state_and_a_handle_that_works(
    kind: str, grain: interrupts.Grain
) -> None:
    report = interrupts.run(kinds=(kind,), grain=grain, cases=CASES, seed=15)
    assert sum(report.interrupts.values()) >= CASES - 5
    assert not report.failures, str(report)


@pytest.mark.parametrize("kind", ["file", "directory-array"])
def test_real_signals_leave_whole_generations_and_a_handle_that_works(kind: str) -> None:
    report = signals.run(kinds=(kind,), seconds=30, seed=15, most=10)
    assert report.signals[kind] > 0
    assert not report.failures, str(report)


def test_the_laboratory_finds_a_state_that_is_left_half(monkeypatch: pytest.MonkeyPatch) -> None:
    from superchunk._store import memory_store as memory  # what is broken on purpose

    def left_half(self: object, mark: object) -> None:
        """Undo nothing."""

    broken = next(
        one
        for one in memory.__dict__.values()
        if isinstance(one, type) and hasattr(one, "undo") and "Table" in one.__name__
    )
    monkeypatch.setattr(broken, "undo", left_half, raising=False)
    report = interrupts.run(kinds=("memory",), names=("transaction",), cases=60, seed=1)
    assert report.failures


@pytest.mark.skipif(not CPYTHON, reason="traces lines")
@pytest.mark.parametrize("contiguous", [True, False])
def test_an_interrupt_behind_the_renaming_leaves_the_new_frame(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "frame"
    superchunk.SChunk(400, bytes(400), urlpath=path, contiguous=contiguous).close()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_name != "_publish":
            return None
        state = frame.f_locals["self"]
        own = state.file if contiguous else state.folder
        if event == "line" and own.path == str(path):  # the name is taken, and that is all
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt):
            superchunk.SChunk(400, b"new!" * 100, urlpath=path, contiguous=contiguous, mode="w")
    finally:
        sys.settrace(None)
    with superchunk.open(path, "a") as s:
        assert s[:] == b"new!" * 100


@pytest.mark.parametrize("contiguous", [True, False])
def test_a_frame_that_is_dropped_before_its_content_leaves_the_old_one(tmp_path: Path, *, contiguous: bool) -> None:
    path = tmp_path / "frame"
    superchunk.SChunk(400, b"old!" * 100, urlpath=path, contiguous=contiguous).close()
    place = superchunk.Storage(urlpath=path, contiguous=contiguous, mode="w")
    handle = create_handle(place, FrameSettings(typesize=1), 400, {}, publish=False)
    del handle
    with superchunk.open(path, "a") as s:
        assert s[:] == b"old!" * 100
    assert [one.name for one in tmp_path.iterdir()] == ["frame"]
