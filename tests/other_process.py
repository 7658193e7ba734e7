"""A second process for tests of locks: it runs what it is told, line by line, and answers.

Everything is a hand-shake over pipes. Whether it waits for a lock is asked of the system, not of a clock.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE: Final = 60.0
"""Seconds after which an answer that should come at once is taken to be missing."""

_LOOP = """
import json, sys, traceback
answers, sys.stdout, names = sys.stdout, sys.stderr, {}
for line in sys.stdin:
    code = json.loads(line)
    try:
        try:
            compiled = compile(code, "<told>", "eval")
        except SyntaxError:
            exec(code, names)
            answer = None
        else:
            answer = eval(compiled, names)
        reply = [True, answer]
    except BaseException:
        reply = [False, traceback.format_exc()]
    print(json.dumps(reply), file=answers, flush=True)
"""


class Other:
    """A process that runs Python code and keeps its names in between."""

    def __init__(self, setup: str = "", **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LOOP],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        if setup:
            self(setup)

    def __call__(self, code: str) -> Any:
        """Run `code`; return its value if it is an expression that JSON can hold."""
        self.start(code)
        return self.answer()

    def start(self, code: str) -> None:
        """Run `code` without waiting for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(code).encode() + b"\n")

    def answer(self) -> Any:
        """Wait for the end of what was started."""
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], PATIENCE)[0], "the other process does not answer"
        line = self._process.stdout.readline()
        assert line, "the other process is gone"
        good, value = json.loads(line)
        assert good, value
        return value

    def waits_for(self, sidecar: Path) -> None:
        """Return once it waits for the lock of `sidecar`; fail if it answers instead."""
        wait_for_waiter(self._process.pid, sidecar)
        assert self._process.stdout is not None
        assert not select.select([self._process.stdout], [], [], 0)[0], "it waits, and has answered all the same"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def wait_for_waiter(pid: int, path: Path) -> None:
    """Return once the process `pid` waits for a lock on the file `path`."""
    table = Path("/proc/locks")
    if not table.exists():
        pytest.skip("the system does not tell who waits for a lock")
    inode = path.stat().st_ino
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for line in table.read_text(encoding="ascii").splitlines():
            words = line.split()
            if words[1] == "->" and int(words[5]) == pid and int(words[6].rsplit(":", 1)[1]) == inode:
                return
        time.sleep(0.002)
    pytest.fail(f"process {pid} does not wait for {path.name}")


def in_child(work: Callable[[], object]) -> Any:
    """Run `work` in a forked child; return what it returned there."""
    inner, outer = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.write(outer, json.dumps(work()).encode())
            status = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the parent has to hear of it
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(outer)
    with os.fdopen(inner, "rb") as pipe:
        assert select.select([pipe], [], [], PATIENCE)[0], "the child does not answer"
        raw = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return json.loads(raw)
