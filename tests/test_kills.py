"""Writers that are killed at random moments leave a committed state, every time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from kill_loop import KillLoop
from kill_workload import State, content, create, found, number_of, operations

if TYPE_CHECKING:
    from pathlib import Path

if not hasattr(os, "fork"):
    pytest.skip("writers are forked", allow_module_level=True)

KILLS = 40
"""For each seed; `benchmarks/kills.py` does more."""


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_writer_leaves_a_committed_state(tmp_path: Path, seed: int, *, contiguous: bool) -> None:
    with KillLoop(str(tmp_path / "data.b2frame"), contiguous=contiguous, seed=seed) as loop:
        for number in range(50 * KILLS):  # a slow machine needs more of them
            loop.round()
            loop.verify()
            hit = sum(loop.during.values()) - loop.during[""]
            if number >= KILLS and loop.done > KILLS and hit > KILLS // 4:
                break
        assert loop.done > KILLS  # they did something
        assert hit > KILLS // 4  # and were hit while they did it


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])
@pytest.mark.parametrize("seed", range(3))
def test_the_model_says_what_the_workload_does(tmp_path: Path, seed: int, *, contiguous: bool) -> None:
    """Without anybody being killed; else the other tests would say nothing."""
    path = str(tmp_path / "data.b2frame")
    s = create(path, contiguous=contiguous, sync="never")
    names = set()
    for number, operation in enumerate(operations(seed, path, State(), contiguous=contiguous, sync="never")):
        other = operation.call(s)
        s = s if other is None else other
        assert found(s) == operation.after
        names.add(operation.name)
        if number == 200:
            break
    s.close()
    assert names >= {"insert", "update", "delete", "vlmeta", "meta", "transaction", "abandoned transaction"}
    assert names >= {"flush", "compact", "reopen"}


def test_content_tells_its_number_and_whether_it_is_torn() -> None:
    assert [number_of(content(number)) for number in range(40)] == list(range(40))
    torn = content(14)[:600] + content(17)[600:]
    with pytest.raises(AssertionError, match="torn"):
        number_of(torn)
