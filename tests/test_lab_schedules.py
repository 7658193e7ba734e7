"""Small forms of the laboratories of schedules, forks and turns; `make lab-schedules` runs the long ones."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from labs import forks, schedules, turns
from labs.histories import Call, State, explain

if TYPE_CHECKING:
    from pathlib import Path

THREADS = ("thread", "handle")
START = State(((1,), (2,)))


@pytest.mark.parametrize("kind", schedules.KINDS)
def test_an_order_of_whole_calls_explains_what_threads_and_handles_saw(kind: str) -> None:
    report = schedules.run(cases=25, seed=15, kinds=[kind], roles=THREADS)
    assert not report.failures, str(report)


def test_an_order_of_whole_calls_explains_what_processes_saw() -> None:
    report = schedules.run(cases=40, seed=16)
    assert report.roles["process"] > 1
    assert report.roles["blosc2"] > 1
    assert not report.failures, str(report)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_forked_at_a_bad_moment_can_do_all_its_work() -> None:
    report = forks.run(cases=6, seed=15)
    assert report.stops > 1
    assert not report.failures, str(report)


@pytest.mark.skipif(sys.platform != "linux", reason="only there can a writer say that it waits")
@pytest.mark.parametrize("contiguous", [True, False])
def test_a_waiting_writer_comes_before_readers_that_come_later(tmp_path: Path, *, contiguous: bool) -> None:
    assert turns.handed_over(tmp_path, contiguous=contiguous, rounds=2) is None


@pytest.mark.parametrize("contiguous", [True, False])
def test_a_change_through_a_mapping_is_read(tmp_path: Path, *, contiguous: bool) -> None:
    assert turns.mapped(tmp_path, contiguous=contiguous) is None


def call(actor: int, op: tuple[object, ...], began: int, ended: int, answer: object = None, side: str = "all") -> Call:
    return Call(actor, f"handle {actor}", side, op, began, ended, answer)


def explained(*calls: Call, prompt: bool = True) -> bool:
    return explain(START, calls, prompt=prompt) is None


def test_the_checker_takes_either_order_of_calls_at_one_time() -> None:
    both = (call(0, ("append", 7), 1, 4, 3), call(1, ("append", 8), 2, 3, 4))
    assert explained(*both, call(2, ("all",), 5, 6, ((1,), (2,), (7,), (8,))))
    assert not explained(*both, call(2, ("all",), 5, 6, ((1,), (2,), (8,), (7,))))  # of the numbers returned
    one_after_the_other = (call(0, ("append", 7), 1, 2), call(1, ("append", 8), 3, 4))
    assert not explained(*one_after_the_other, call(2, ("all",), 5, 6, ((1,), (2,), (8,), (7,))))


def test_the_checker_refuses_lost_torn_and_old_states() -> None:
    change = call(0, ("update", 0, 7), 1, 2)
    assert explained(change, call(1, ("row", 0), 3, 4, (7,)))
    assert not explained(change, call(1, ("row", 0), 3, 4, (1,)))
    assert not explained(change, call(1, ("row", 0), 3, 4, (("torn", "00", 4),)))
    slow = call(0, ("update", 0, 7), 1, 9)
    newer, older = call(1, ("row", 0), 2, 3, (7,)), call(1, ("row", 0), 4, 5, (1,))
    assert explained(slow, call(1, ("row", 0), 2, 3, (1,)), call(1, ("row", 0), 4, 5, (7,)))
    assert not explained(slow, newer, older)


def test_the_checker_lets_what_waits_for_its_commit_be_unseen_until_a_flush() -> None:
    waits = call(0, ("append", 7), 1, 2, 3, side="writers")
    old = call(1, ("count",), 5, 6, 2, side="readers")
    assert explained(waits, old, prompt=False)
    assert not explained(waits, call(0, ("count",), 5, 6, 2, side="writers"), prompt=False)
    flush = call(0, ("flush",), 3, 4, side="writers")
    assert not explained(waits, flush, old, prompt=False)


def test_the_checker_shows_an_open_transaction_to_nobody_else() -> None:
    parts = (("append", 7), ("append", 8))
    open_one = call(0, ("transaction", parts, False), 1, 9, [3, 4])
    half = ((1,), (2,), (7,))
    assert not explained(open_one, call(1, ("all",), 2, 3, half))
    assert explained(open_one, Call(1, "handle 0", "all", ("all",), 2, 3, half))
    dropped = call(0, ("transaction", parts, True), 1, 4, [3, 4])
    assert explained(dropped, call(1, ("count",), 5, 6, 2))
    assert not explained(dropped, call(1, ("count",), 5, 6, 4))
