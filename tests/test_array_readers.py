"""Readers in other processes, and whoever comes after a killed writer, find shape and items of one commit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from itertools import islice
from typing import TYPE_CHECKING

import array_fire
import numpy as np
import pytest
from array_fire import State, change, changes, create, items_of, opened, state_of
from fire import Process

import superchunk

if TYPE_CHECKING:
    from pathlib import Path

both_kinds = pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])
COMMITTING = {"shrink", "rewrite", "flush", "compact"}
"""Changes after which nothing waits for its commit."""
KILLS = 20
ROUNDS = 150
"""Changes that the writer makes beside readers."""
LONGEST = 0.03
"""Seconds that a writer lives at most."""


@both_kinds
def test_readers_beside_a_writer_see_whole_shapes_only(tmp_path: Path, *, contiguous: bool) -> None:
    path = str(tmp_path / "data.b2nd")
    array = create(path, contiguous=contiguous, sync="never")
    readers = [Process("read", path, how, script=array_fire.__file__) for how in ("following", "anew", "pinned")]
    for kind, state in islice(changes(state_of(array[()]), random.Random(5)), ROUNDS):
        change(array, kind, state)
        assert array.shape == state[:2]
        time.sleep(0.002)  # they need their turns, too
    array.close()
    for reader in readers:
        counts, complaints = reader.stop()
        assert counts["torn"] == 0, complaints
        assert counts["reads"] > 10
        assert counts["states"] > 3


def test_what_readers_check_would_show() -> None:
    """Else the tests here would say nothing."""
    whole = items_of(State(20, 11, 5))
    assert state_of(whole) == (20, 11, 5)
    late = np.concatenate([whole, np.zeros((3, 11), np.int64)])
    mixed = np.concatenate([whole[:7], items_of(State(20, 11, 6))[7:]])
    for torn in (late, mixed, whole[:, ::-1], whole[:0]):
        with pytest.raises(AssertionError):
            state_of(torn)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are forked")
@both_kinds
def test_a_killed_writer_leaves_shape_and_items_of_one_commit(tmp_path: Path, *, contiguous: bool) -> None:
    path = str(tmp_path / "data.b2nd")
    create(path, contiguous=contiguous).close()
    during = kill_writers(path, KILLS, seed=7)
    assert sum(during.values()) == KILLS
    assert len(during) > 2  # they were hit while they did different things


def kill_writers(path: str, kills: int, seed: int) -> dict[str, int]:
    """Kill writers, check what each leaves, and return how many kills hit what."""
    rng = random.Random(seed)
    acks, inner = os.pipe()
    os.set_blocking(acks, False)
    writers = subprocess.Popen(
        [sys.executable, array_fire.__file__, "kill", path, str(inner)],
        pass_fds=[inner],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    os.close(inner)
    assert writers.stdin is not None
    assert writers.stdout is not None
    during: dict[str, int] = {}
    try:
        for _ in range(kills):
            with opened(path) as array:
                before = state_of(array[()])
            writers.stdin.write(f"{rng.randrange(10**9)}\n")
            pid = int(writers.stdout.readline())
            time.sleep(rng.uniform(0.002, LONGEST))
            os.kill(pid, signal.SIGKILL)
            writers.stdin.write("\n")
            assert os.WIFSIGNALED(int(writers.stdout.readline())), "the writer failed by itself"
            hit = check_left(path, before, everything(acks))
            during[hit] = during.get(hit, 0) + 1
    finally:
        writers.kill()
        complaints = writers.communicate()[1]
        os.close(acks)
    assert not complaints
    return during


def everything(acks: int) -> list[str]:
    """Return what writers said so far."""
    said = b""
    while True:
        try:
            said += os.read(acks, 2**16)
        except BlockingIOError:
            return said.decode().splitlines()


def check_left(path: str, before: State, said: list[str]) -> str:
    """Compare what a killed writer left with what it said; return what it was doing."""
    allowed, doing = [before], ""
    for line in said:
        if line == "done":
            if doing in COMMITTING:
                allowed = allowed[-1:]
            doing = ""
        else:
            rows, columns, generation, doing = line.split()
            allowed.append(State(int(rows), int(columns), int(generation)))
    with opened(path, verify="read") as array:
        left = state_of(array[()])
        assert array.shape == left[:2]
    assert left in allowed, f"{left} is not in {allowed}, after {said[-6:]}"
    assert superchunk.verify(path, decode=True).status == "sound"
    return doing
