"""Killing writers, and looking at what they leave.

A writer (kill_workload.py) is killed with SIGKILL at a random moment. What it leaves must be the state after the last
operation that it said was committed, or after one that it had begun since; what waits for its commit may be gone, but
only from the end. The next writer goes on from there.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Self

import kill_workload
from kill_workload import State, create, found, operations, sync_of

import superchunk

LONGEST = 0.03
"""Seconds that a writer lives at most."""


class KillLoop:
    """A frame whose writers are killed, one after the other.

    Parameters
    ----------
    path
        The frame; it is made.
    contiguous
        One file, or a directory.
    seed
        Of everything that is random here.

    """

    def __init__(self, path: str, *, contiguous: bool = True, seed: int = 0) -> None:
        self.path = path
        self.contiguous = contiguous
        self.state = State()
        """What is in the frame."""
        self.during: Counter[str] = Counter()
        """How many kills hit which operation; ``""``: none was under way."""
        self.lost = 0
        """Operations that were done and waited for their commit when their writer died."""
        self.done = 0
        """Operations that were done in all."""
        self._rng = random.Random(seed)
        create(path, contiguous=contiguous).close()
        self._acks, inner = os.pipe()
        os.set_blocking(self._acks, False)
        self._writers = subprocess.Popen(
            [sys.executable, kill_workload.__file__, path, str(contiguous), str(inner)],
            pass_fds=[inner],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        os.close(inner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writers.kill()
        self._writers.communicate()
        os.close(self._acks)

    def round(self) -> None:
        """Start a writer, kill it, and check what it leaves.

        Raises
        ------
        AssertionError
            It left something else than it may, or died of something else.

        """
        seed = self._rng.randrange(10**9)
        assert self._writers.stdin is not None
        self._writers.stdin.write(f"{seed}\n")
        writer = int(self._line())
        time.sleep(self._rng.uniform(0, LONGEST))
        os.kill(writer, signal.SIGKILL)
        self._writers.stdin.write("\n")
        status = int(self._line())
        assert os.WIFSIGNALED(status), f"seed {seed}: {self._complaint()}"
        self._check(seed, self._read_acks())

    def _line(self) -> str:
        assert self._writers.stdout is not None
        line = self._writers.stdout.readline()
        assert line, self._complaint()
        return line

    def _complaint(self) -> str:
        self._writers.kill()
        return f"the writer failed: {self._writers.communicate()[1]}"

    def _read_acks(self) -> bytes:
        acks = b""
        while True:
            try:
                acks += os.read(self._acks, 2**16)
            except BlockingIOError:
                return acks

    def _check(self, seed: int, acks: bytes) -> None:
        begun, done = acks.count(b"b"), acks.count(b"d")
        assert acks == (b"bd" * begun)[: begun + done]
        how = {"contiguous": self.contiguous, "sync": sync_of(seed)}
        known = list(islice(operations(seed, self.path, self.state, **how), begun))
        committed = max((n for n, one in enumerate(known[:done], 1) if one.commits), default=0)
        allowed = [self.state, *(one.after for one in known)][committed:]
        with superchunk.open(self.path, verify="read") as s:
            left = found(s)
        told = [one.name for one in known[committed:]]
        assert left in allowed, f"seed {seed}: {left} is not in {allowed}, after {told}"
        furthest = max(n for n, state in enumerate(allowed) if state == left)
        self.lost += max(done - committed - furthest, 0)
        self.done += done
        self.during[known[-1].name if begun > done else ""] += 1
        self.state = left

    def verify(self) -> None:
        """Check every byte of the frame that is checked at all.

        Raises
        ------
        AssertionError
            It is not sound.

        """
        report = superchunk.verify(self.path)
        assert report.status == "sound" or not self.state.chunks, str(report)

    def strays(self) -> list[str]:
        """Return what killed writers left beside the frame."""
        folder = Path(self.path).parent
        return sorted(one.name for one in folder.iterdir() if one != Path(self.path))
