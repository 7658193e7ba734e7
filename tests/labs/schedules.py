"""The laboratory of schedules: two to four actors and one frame, in an order that is drawn.

::

    case = kind of frame, actors, what each does, where it is stopped inside, who goes on next      all from one seed

    thread    shares one handle of this process with the other threads
    handle    has a handle of its own in this process
    process   superchunk in another process
    blosc2    python-blosc2 in another process

The conductor lets one actor go on at a time, until its call ends or it comes to a line where it stops with whatever
locks it holds; then it is another's turn. Who waits for a lock is left waiting. With ``locking=True`` all may write;
without it those of one process. Where C-Blosc2 writes without a lock, nobody is stopped inside a call.
What everybody has seen at the end goes to `histories.explain`; the last witness is the package ``blosc2``,
which reads the items from the file.

`labs.forks` and `labs.turns` look at forks at bad moments and at waiting writers.

Run by hand: ``python -m labs.schedules --cases 5000 --seed 1`` in ``tests``; one case again: ``--only N``.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Self

from labs.actors import WIDTH, Hand, Stand, make, serve
from labs.histories import CHANGES, READS, Call, State, explain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labs.histories import Op

__all__ = ["KINDS", "Case", "Report", "draw", "run"]

KINDS: Final = ("memory", "file", "directory", "memory-array", "file-array", "directory-array")
ROLES: Final = ("thread", "handle", "process", "blosc2")
ROWS: Final = 5
"""Rows of a new frame; so few are removed in a case that the first two always are there."""
_PATIENCE: Final = {"thread": 0.01, "handle": 0.01, "process": 0.05, "blosc2": 0.05}
"""Seconds for a step; who has not ended then may be waiting for a lock, and another goes on."""
_WATCHDOG: Final = 30.0
"""Seconds after which an actor that nobody stops hangs."""
_THEIR_RACES: Final = frozenset(("reorder", "vl", "unvl", "patch", "set"))
"""Calls in which C-Blosc2 looks for changes before it waits for the lock, or has two turns for reading and writing:
they undo what was done meanwhile."""
_LINES: Final = {"transaction": 1500, "open": 600, "compact": 700, "verify": 700, "fresh": 600, "reopen": 900}


@dataclass(frozen=True)
class Part:
    """One actor of a case: who it is, and its calls, each with the lines at which it stops."""

    role: str
    writes: bool
    calls: tuple[tuple[Op, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Case:
    """A schedule as drawn."""

    name: str
    kind: str
    locking: bool
    cell: int
    whole: bool
    """Nobody is stopped inside a call."""
    parts: tuple[Part, ...]
    order: tuple[int, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.kind}, locking={self.locking}, {self.cell} items in a cell, order {self.order}"]
        lines += [
            f"    {number} {one.role}: " + "; ".join(f"{op} {list(pauses)}" for op, pauses in one.calls)
            for number, one in enumerate(self.parts)
        ]
        return "\n".join(lines)


def draw(seed: int, number: int) -> Case:  # noqa: C901 - the rules of who may write, in one place
    """Draw case `number` of `seed`; the same each time."""
    rng = Random(f"{seed}:{number}")
    kind = rng.choice(KINDS)
    count = rng.choice((2, 2, 3, 3, 4))
    if kind.startswith("memory"):
        chosen, locking, writing = ["thread"] * count, False, "thread"
    else:
        locking = rng.random() < 0.5
        chosen = [rng.choice(ROLES) for _ in range(count)]
        if locking:  # three processes of C-Blosc2 that wait for one lock lose changes without our help
            chosen = [
                role if role != "blosc2" or place == chosen.index(role) else "handle"
                for place, role in enumerate(chosen)
            ]
        writing = "all" if locking else rng.choice(["home", "home", "process", "blosc2", "blosc2"])
        if writing in {"process", "blosc2"}:
            chosen[0] = writing
        if writing == "home" and not {"thread", "handle"} & set(chosen):
            chosen[0] = "handle"
    whole = writing == "blosc2"
    parts = []
    writers = 0
    removals = 2
    for number_of_part, role in enumerate(chosen):
        if writing == "all":
            writes = rng.random() < 0.7 and writers < 3
        elif writing == "home":
            writes = role in {"thread", "handle"} and (writers == 0 or rng.random() < 0.7) and writers < 3
        else:
            writes = (role == "thread" and writing == "thread") or (number_of_part == 0 and role == writing)
        writers += writes
        calls: list[tuple[Op, tuple[int, ...]]] = []
        for serial in range(6 if whole else rng.choice((2, 3, 3, 4))):
            tag = (number_of_part + 1) * 1000 + serial * 10
            op, removals = _op(rng, kind, role, tag, writes=writes, locking=locking, removals=removals)
            while role == "blosc2" and locking and op[0] in _THEIR_RACES:
                op, removals = _op(rng, kind, role, tag, writes=writes, locking=locking, removals=removals)
            pauses: tuple[int, ...] = ()
            if not whole and role != "blosc2":
                most = _LINES.get(op[0], 400 if op[0] in CHANGES else 120) * (2 if "array" in kind else 1)
                pauses = tuple(sorted(rng.randint(1, most) for _ in range(rng.choice((0, 1, 1, 2)))))
            calls.append((op, pauses))
        parts.append(Part(role, writes, tuple(calls)))
    steps = sum(1 + len(pauses) for part in parts for _, pauses in part.calls)
    order = tuple(rng.randrange(count) for _ in range(steps * 2))
    return Case(f"{seed}:{number}", kind, locking, rng.choice((16, 16, 1024)), whole, tuple(parts), order)


def _op(rng: Random, kind: str, role: str, tag: int, *, writes: bool, locking: bool, removals: int) -> tuple[Op, int]:  # noqa: C901 - as above
    """Draw a call; return it, and how many rows may still be removed."""
    array, stored = kind.endswith("array"), not kind.startswith("memory")
    reads: list[Op] = [("all",), ("all",), ("row", rng.randrange(2)), ("cell", rng.randrange(2), rng.randrange(WIDTH))]
    reads += [("count",), ("names",)]
    if role == "blosc2":  # its handles follow only with locking, one chunk at a time; numbers and names do not
        reads = [reads[3]] if locking else []
    if stored:
        if role != "blosc2" or not locking:
            reads.append(("fresh",))
        if role != "blosc2":
            reads.append(("verify",))
            if locking:
                reads.append(("held",))
        if role == "handle" or (role == "process" and writes):
            reads.append(("reopen",))
        if role != "blosc2":
            reads.append(("refresh",))
    if not writes or rng.random() < 0.25:
        return rng.choice(reads), removals
    if role != "blosc2" and rng.random() < 0.3:
        parts: list[Op] = []
        for place in range(rng.choice((1, 2, 3))):
            part, removals = _change(rng, array, tag + 1 + place, theirs=False, removals=removals)
            parts.append(part)
            if rng.random() < 0.3:
                parts.append(("all",))
        return ("transaction", tuple(parts), rng.random() < 0.25), removals
    if role != "blosc2" and rng.random() < 0.2:
        return rng.choice([("flush",), ("compact",)]), removals
    return _change(rng, array, tag, theirs=role == "blosc2", removals=removals)


def _change(rng: Random, array: bool, tag: int, *, theirs: bool, removals: int) -> tuple[Op, int]:  # noqa: FBT001
    """Draw one change."""
    name = rng.choice("ab")
    several: list[Op] = [("update", rng.randrange(2), tag), ("vl", name, tag), ("vl", name, tag), ("unvl", name)]
    several.append(("patch", rng.randrange(2), rng.randrange(WIDTH), tag))
    if array:
        low = rng.randrange(WIDTH)
        several.append(("set", (rng.randrange(2), 2), (low, rng.randint(low + 1, WIDTH)), tag))
        if not theirs:  # C-Blosc2 does not clear what a smaller shape cuts off, and shows it again in a larger one
            several.append(("resize", rng.randint(ROWS - 2, ROWS + 3)))
            several += [("append", tag)] * 4
        return rng.choice(several), removals
    several += [("append", tag)] * 5 + [("insert", rng.randrange(3), tag)] * 2
    several += [("reorder", tuple(rng.sample(range(ROWS), ROWS)))] * (4 if theirs else 1)
    if removals:
        several += [("delete", rng.randrange(2))] * (3 if theirs else 1)
    op = rng.choice(several)
    return op, removals - (op[0] == "delete")


@dataclass
class Report:
    """How many cases there were, and what was found."""

    cases: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)
    stops: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = [
            f"{self.cases} cases, {sum(self.calls.values())} calls, {self.stops} stops inside a call",
            f"{len(self.failures)} failures",
            "  " + ", ".join(f"{name} {number}" for name, number in self.calls.most_common()),
            "  " + ", ".join(f"{name} {number}" for name, number in self.roles.most_common()),
        ]
        return "\n".join(told + self.failures)


class _Actor:
    """The conductor's end of an actor."""

    def __init__(self, part: Part, number: int) -> None:
        self.part = part
        self.number = number
        self.connection: Any = None
        self.left = list(part.calls)
        self.call: Call | None = None
        self.paused = False
        self.lost = False

    @property
    def busy(self) -> bool:
        """Whether it is inside a call and not stopped."""
        return self.call is not None and not self.paused

    @property
    def ended(self) -> bool:
        return self.call is None and not self.left


class Crew:
    """Other processes, kept from case to case."""

    def __init__(self) -> None:
        self._idle: list[tuple[subprocess.Popen[bytes], Any]] = []
        self._used: list[tuple[subprocess.Popen[bytes], Any]] = []

    def take(self) -> Any:
        """Return the connection of a process that nobody uses."""
        if not self._idle:
            ours, theirs = socket.socketpair()
            tests = str(Path(__file__).parent.parent)
            path = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-m", "labs.actors", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, "PYTHONPATH": path},
                )
            self._idle.append((process, Connection(ours.detach())))
        self._used.append(self._idle.pop())
        return self._used[-1][1]

    def give_back(self, *, whole: bool) -> None:
        """End a case; processes that may hang are ended too."""
        if whole:
            self._idle += self._used
        else:
            for process, connection in self._used:
                process.kill()
                process.wait()
                connection.close()
        self._used = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._used += self._idle
        self._idle = []
        self.give_back(whole=False)


class Conductor:
    """Runs one case."""

    def __init__(self, case: Case, folder: Path, crew: Crew, report: Report) -> None:
        self._case, self._crew, self._report = case, crew, report
        self._path = None if case.kind.startswith("memory") else str(folder / "frame")
        self._array = case.kind.endswith("array")
        self._clock = 0
        self._history: list[Call] = []
        self._actors = [_Actor(part, number) for number, part in enumerate(case.parts)]
        self._home_writes = any(one.writes for one in case.parts if one.role in {"thread", "handle"})
        self._prompt = case.locking or case.whole
        self._trouble: list[str] = []
        self._stops: list[str] = []

    def run(self) -> list[str]:  # noqa: C901 - one case from its beginning to its end
        """Return what failed."""
        case = self._case
        made = make(case.kind, self._path, ROWS, case.cell, locking=case.locking)
        stand = Stand("superchunk", self._path or "", self._array, case.cell, "a", case.locking)
        shared = None
        if self._path is None:
            shared = Hand(made, stand)
        else:
            made.close()
            mine = [one for one in case.parts if one.role == "thread"]
            if mine:
                mode = "a" if any(one.writes for one in mine) else "r"
                shared = Hand(*self._opened(stand, mode))
        threads = [self._start(actor, stand, shared) for actor in self._actors]
        for number in case.order:
            self._step(self._actors[number])
        deadline = time.monotonic() + _WATCHDOG
        while not all(actor.ended or actor.lost for actor in self._actors):
            for actor in self._actors:
                if not actor.lost:
                    self._step(actor)
            if time.monotonic() > deadline:
                self._hangs()
        whole = not any(actor.lost for actor in self._actors)
        if whole:
            self._finish(shared)
        self._crew.give_back(whole=whole)
        for thread in threads:
            if thread is not None and whole:
                thread.join()
        found = [f"  ! {one}" for one in self._trouble]
        return found + [f"    {one}" for one in [*map(str, self._history), *self._stops]] if found else []

    def _opened(self, stand: Stand, mode: str) -> tuple[Any, Stand]:
        own = Stand(**{**stand.__dict__, "mode": mode})
        return own.open(), own

    def _start(self, actor: _Actor, stand: Stand, shared: Hand | None) -> threading.Thread | None:
        """Begin a thread, or take a process, and let it open the frame."""
        self._report.roles[actor.part.role] += 1
        role = actor.part.role
        thread = None
        if role in {"thread", "handle"}:
            actor.connection, theirs = multiprocessing.Pipe()
            hand = shared if role == "thread" else None
            thread = threading.Thread(target=serve, args=(theirs, hand), daemon=True)
            thread.start()
        else:
            actor.connection = self._crew.take()
        if role != "thread":
            package = "blosc2" if role == "blosc2" else "superchunk"
            mode = "a" if actor.part.writes else "r"
            actor.connection.send(("open", Stand(**{**stand.__dict__, "package": package, "mode": mode})))
            answer = actor.connection.recv()
            if answer[0] != "done":
                self._trouble.append(f"{role} cannot open the frame: {answer[1]}")
        return thread

    def _step(self, actor: _Actor) -> None:
        """Let `actor` go on, or begin its next call; wait a moment for where that leads."""
        for other in self._actors:
            if other.busy:
                self._hear(other, 0)
        if actor.ended or actor.lost:
            return
        if actor.call is None:
            op, pauses = actor.left.pop(0)
            self._clock += 1
            role = actor.part.role
            home = role in {"thread", "handle"}
            handle = "shared" if role == "thread" else f"{role} {actor.number}"
            side = "writers" if (home and self._home_writes) or actor.part.writes else "readers"
            side = "all" if self._prompt else side
            actor.call = Call(actor.number, handle, side, op, self._clock)
            self._report.calls[op[0]] += 1
            actor.connection.send(("run", op, pauses))
        elif actor.paused:
            actor.paused = False
            actor.connection.send(("go",))
        self._hear(actor, _WATCHDOG if self._case.whole else _PATIENCE[actor.part.role])

    def _hear(self, actor: _Actor, patience: float) -> None:
        """Take what `actor` has to say, if it says anything in time."""
        if not actor.connection.poll(patience):
            return
        try:
            what, *rest = actor.connection.recv()
        except EOFError:
            what, rest = "failed", ["the process died"]
            actor.lost = True
        self._clock += 1
        if what == "paused":
            actor.paused = True
            self._report.stops += 1
            self._stops.append(f"{self._clock} actor {actor.number} stops at {rest[0]}")
            return
        call, actor.call = actor.call, None
        assert call is not None
        call.ended = self._clock
        if what == "failed":
            self._trouble.append(f"{call} fails: {rest[0]}")
            if call.op[0] in READS:
                return
        else:
            call.answer = rest[0]
        self._history.append(call)

    def _hangs(self) -> None:
        for actor in self._actors:
            if not actor.ended:
                actor.lost = True
                self._trouble.append(f"hangs: {actor.call}")
        faulthandler.dump_traceback(all_threads=True)

    def _finish(self, shared: Hand | None) -> None:  # noqa: C901 - as above
        """Close all handles; read what is there; ask whether it can be explained."""
        for actor in self._actors:
            actor.connection.send(("close",))
            answer = actor.connection.recv()
            if answer[0] != "done":
                self._trouble.append(f"{actor.part.role} cannot close the frame: {answer[1]}")
            if actor.part.role in {"thread", "handle"}:
                actor.connection.send(("quit",))
        last: list[tuple[str, Op, object]] = []
        if self._path is None:
            assert shared is not None
            last = [("shared", op, shared(op)) for op in (("all",), ("names",))]
        else:
            if shared is not None:
                shared.handle.close()
            theirs = Stand("blosc2", self._path, self._array, self._case.cell, "r")
            ours = Stand(**{**theirs.__dict__, "package": "superchunk"})
            for one in (theirs, ours):
                try:
                    hand = Hand(one.open(), one)
                    last += [(one.package, op, hand(op)) for op in (("all",), ("names",))]
                    if one is ours:
                        hand.handle.close()
                except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
                    self._trouble.append(f"{one.package} cannot read it at the end: {type(error).__name__}: {error}")
        for handle, op, answer in last:
            self._clock += 2
            call = Call(99, handle, handle, op, self._clock - 1, self._clock, answer)
            settled = Call(99, handle, handle, ("settle",), self._clock - 2, self._clock - 2)
            self._history += [settled, call]
        if any("fails" in one for one in self._trouble):
            return  # what failed may have happened or not
        start = State(tuple((row + 1,) * WIDTH for row in range(ROWS)))
        trouble = explain(start, self._history, prompt=self._prompt)
        if trouble is not None:
            self._trouble.append(trouble)


def run(
    *,
    cases: int,
    seed: int = 1,
    first: int = 0,
    kinds: Sequence[str] = KINDS,
    roles: Sequence[str] = ROLES,
    seconds: float = 0,
    stop: int = 0,
) -> Report:
    """Run drawn cases; return what was found.

    Parameters
    ----------
    cases, seed, first
        How many, of which seed, beginning with which.
    kinds, roles
        Which frames and actors; cases with others are passed over.
    seconds
        Stop after about so many, if over 0.
    stop
        Stop after so many failures, if over 0.

    """
    report = Report()
    memory = Path("/dev/shm")  # noqa: S108 - where syncing costs nothing
    end = time.monotonic() + seconds if seconds else float("inf")
    with (
        tempfile.TemporaryDirectory(prefix="superchunk-lab-", dir=memory if memory.is_dir() else None) as place,
        warnings.catch_warnings(),
        Crew() as crew,
    ):
        warnings.simplefilter("ignore")
        for number in itertools.count(first):
            if report.cases >= cases:
                break
            case = draw(seed, number)
            if case.kind not in kinds or not {part.role for part in case.parts} <= set(roles):
                continue
            folder = Path(place) / str(number)
            folder.mkdir()
            trouble = Conductor(case, folder, crew, report).run()
            report.cases += 1
            if trouble:
                report.failures.append("\n".join([str(case), *trouble]))
            shutil.rmtree(folder, ignore_errors=True)
            if time.monotonic() > end or (stop and len(report.failures) >= stop):
                break
    return report


def main(arguments: list[str] | None = None) -> int:
    """Run the laboratory by hand; return 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="only the case of this number")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these kinds of frames")
    parser.add_argument("--role", choices=ROLES, action="append", help="only these actors")
    parser.add_argument("--stop", type=int, default=20, help="stop after so many failures")
    told = parser.parse_args(arguments)
    report = run(
        cases=told.cases if told.only is None else 1,
        seed=told.seed,
        first=told.only or 0,
        kinds=told.kind or KINDS if told.only is None else KINDS,
        roles=told.role or ROLES if told.only is None else ROLES,
        seconds=told.seconds,
        stop=told.stop,
    )
    print(report)  # noqa: T201  (a script prints)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
