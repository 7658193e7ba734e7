"""Real signals: another process writes transactions and gets SIGINT at drawn moments, as Ctrl-C sends it.

::

    parent -- "go" --> child: transactions that take the frame from generation g to g + 1, until a signal comes
    parent  (waits a moment)  SIGINT -->
    parent <-- "interrupted", what its handle holds -- child
    parent  reads the frame: all of one generation, the handle's, and no older one than was told to be on the disk
    parent -- "later" --> child: one more transaction and a flush <-- generation -- child;  parent reads it on the disk
    now and then: close and open again for writing

The parent is another process, so it shares nothing with the child; it reads with superchunk and with blosc2.

Run by hand: ``python -m labs.interrupts --signals --seconds 300`` in ``tests``.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import blosc2
import numpy as np

import superchunk

__all__ = ["Report", "run"]

_PATIENCE: Final = 60.0
_AGAIN: Final = 0.1
_TRIES: Final = 300
_MIXED: Final = -1
_LATER: Final = 20
"""Interrupts after which the child closes the frame and opens it again."""


def generation(handle: Any) -> int:
    """Return the generation that all of a frame is of; -1 if it is a mixture."""
    schunk = getattr(handle, "schunk", handle)
    told = int(schunk.vlmeta["g"])
    if schunk is not handle:
        items = np.asarray(handle[...])
        rows = items.shape[0] == 12 + told % 5
    else:
        items = np.concatenate([np.frombuffer(schunk.decompress_chunk(n), "i4") for n in range(schunk.nchunks)])
        rows = schunk.nchunks == 4 + told % 3
    return told if rows and (items == told).all() else _MIXED


def _make(kind: str, path: str | None) -> Any:
    place: dict[str, Any] = {"urlpath": path, "contiguous": not kind.startswith("directory"), "mode": "w"}
    if kind.endswith("array"):
        made: Any = superchunk.asarray(np.zeros((12, 10), "i4"), chunks=(4, 4), blocks=(2, 2), **place)
    else:
        made = superchunk.SChunk(400, cparams=superchunk.CParams(typesize=4), **place)
        for _ in range(4):
            made.append_data(np.zeros(100, "i4"))
    made.vlmeta["g"] = 0
    made.flush()
    return made


def _step(handle: Any, new: int) -> None:
    """Take the frame to generation `new` in one transaction."""
    with handle.transaction():
        if hasattr(handle, "schunk"):
            handle.resize((12 + new % 5, 10))
            handle[...] = new
            handle.schunk.vlmeta["g"] = new
            return
        handle.append_data(np.full(100, new, "i4"))
        handle.delete_chunk(0)
        while handle.nchunks < 4 + new % 3:
            handle.insert_data(1, np.full(100, new, "i4"), copy=True)
        while handle.nchunks > 4 + new % 3:
            handle.delete_chunk(handle.nchunks - 1)
        for number in range(handle.nchunks):
            handle.update_data(number, np.full(100, new, "i4"), copy=True)
        handle.vlmeta["g"] = new


class _Armed:
    """The child's handler: a signal counts inside the transactions alone, and once."""

    def __init__(self) -> None:
        self.on = False
        signal.signal(signal.SIGINT, self._handle)

    def _handle(self, *_: object) -> None:
        if self.on:
            self.on = False
            raise KeyboardInterrupt


def child(kind: str, path: str | None) -> None:
    """Do what the parent says, line by line. Runs in a process of its own."""
    armed = _Armed()
    handle = _make(kind, path)
    told = 0
    say("ready")
    for line in sys.stdin:
        word = line.strip()
        try:
            if word == "go":
                told = _until_interrupted(armed, handle, told)
                say(f"interrupted {generation(handle)} {told}")
                told = generation(handle)
            elif word == "later":
                told = max(told, generation(handle)) + 1
                _step(handle, told)
                handle.flush()
                say(f"later {generation(handle)} {told}")
            elif word == "reopen":
                handle.close()
                handle = superchunk.open(str(path), "a")
                say(f"reopen {generation(handle)} {told}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            say(f"failed {word}: {type(error).__name__}: {error}"[:400].replace("\n", " "))


def _until_interrupted(armed: _Armed, handle: Any, told: int) -> int:
    """Write generations until a signal comes; return the last one whose transaction returned."""
    try:
        armed.on = True
        while armed.on:  # the interpreter swallows what is raised while an object is finalized
            _step(handle, told + 1)
            told += 1
    except KeyboardInterrupt:
        pass
    return told


def say(line: str) -> None:
    """Tell the parent."""
    print(line, flush=True)  # noqa: T201  (over its pipe)


@dataclass
class Report:
    """How many signals there were, and what they left behind."""

    signals: Counter[str] = field(default_factory=Counter)
    children: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = ", ".join(f"{kind} {number}" for kind, number in self.signals.items())
        counts = Counter(self.failures)
        lines = [
            f"{sum(self.signals.values())} signals ({told}), {self.children} children, {len(self.failures)} failures"
        ]
        return "\n".join(lines + [f"{number:6} {what}" for what, number in counts.most_common()])


class _Child:
    """The parent's end."""

    def __init__(self, kind: str, path: str | None) -> None:
        tests = str(Path(__file__).parent.parent)
        python = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "labs.signals", kind, path or ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": python},
        )

    def tell(self, word: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{word}\n".encode())

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def speaks(self, patience: float) -> bool:
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], patience)[0])

    def hear(self) -> list[str]:
        assert self._process.stdout is not None
        if not self.speaks(_PATIENCE):
            return ["failed", "hangs"]
        return self._process.stdout.readline().decode().split() or ["failed", "the", "child", "ended"]

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def _on_disk(path: str, *, theirs: bool) -> int:
    if theirs:
        return generation(blosc2.open(path, mode="r"))
    with superchunk.open(path) as fresh:
        return generation(fresh)


def run(*, kinds: tuple[str, ...], seconds: float, seed: int = 1, most: int = 0) -> Report:
    """Send signals for about `seconds`, or `most` for each kind if over 0; return what they left behind."""
    report = Report()
    memory = Path("/dev/shm")  # noqa: S108 - where syncing costs nothing
    for kind in kinds:
        rng = Random(f"{seed}:{kind}")
        end = time.monotonic() + seconds / len(kinds)
        with tempfile.TemporaryDirectory(prefix="superchunk-lab-", dir=memory if memory.is_dir() else None) as place:
            number = 0
            while time.monotonic() < end and not (most and report.signals[kind] >= most):
                number += 1
                path = None if kind.startswith("memory") else f"{place}/frame{number}"
                _one_child(kind, path, rng, end, most, report)
    return report


def _one_child(kind: str, path: str | None, rng: Random, end: float, most: int, report: Report) -> None:
    """Send signals to one child until it fails, or time is over."""
    other = _Child(kind, path)
    report.children += 1
    try:
        if other.hear() != ["ready"]:
            report.failures.append(f"{kind}: the child does not begin")
            return
        while time.monotonic() < end and not (most and report.signals[kind] >= most):
            trouble = _one_signal(other, path, rng, report, kind)
            if trouble:
                report.failures.append(f"{kind}: {trouble}")
                return
    finally:
        other.end()


def _one_signal(  # noqa: C901, PLR0911 - the promises, one after the other
    other: _Child, path: str | None, rng: Random, report: Report, kind: str
) -> str | None:
    """Send one signal; return what is wrong afterwards."""
    other.tell("go")
    time.sleep(rng.random() * 0.01)
    other.interrupt()
    for _ in range(_TRIES):
        if other.speaks(_AGAIN):
            break
        other.interrupt()  # the one before came outside of every transaction
    answer = other.hear()
    if answer[0] != "interrupted":
        return "after the interrupt: " + " ".join(answer[1:])
    report.signals[kind] += 1
    held, told = int(answer[1]), int(answer[2])
    if held == _MIXED:
        return "the handle holds a mixture"
    if held < told:
        return "the handle lost a transaction that had returned"
    trouble = _compare(path, held, "after the interrupt")
    if trouble:
        return trouble
    other.tell("later")
    answer = other.hear()
    if answer[0] != "later":
        return "later: " + " ".join(answer[1:])
    if answer[1] != answer[2]:
        return "a later transaction returned and the handle does not have it"
    trouble = _compare(path, int(answer[2]), "after a later transaction")
    if trouble or path is None or report.signals[kind] % _LATER:
        return trouble
    other.tell("reopen")
    answer = other.hear()
    if answer[0] != "reopen":
        return "closing and opening: " + " ".join(answer[1:])
    return None if answer[1] == answer[2] else "opened again, it is another generation"


def _compare(path: str | None, wanted: int, when: str) -> str | None:
    """Return what is wrong on the disk."""
    if path is None:
        return None
    for theirs in (False, True):
        package = "blosc2" if theirs else "superchunk"
        try:
            found = _on_disk(path, theirs=theirs)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            return f"{when} {package} cannot read it: {type(error).__name__}: {str(error).replace(path, 'P')[:200]}"
        if found != wanted:
            kind = "a mixture" if found == _MIXED else "an older generation" if found < wanted else "a newer one"
            return f"{when} {package} reads {kind} from the disk"
    return None


if __name__ == "__main__":
    child(sys.argv[1], sys.argv[2] or None)
