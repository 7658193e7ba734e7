"""The laboratory of forks: a child that is forked while other threads are inside calls can do all its work.

::

    mother   thread: stops inside the first import of a name, or inside a call, with whatever it holds    (for a moment)
             thread: reads, writes, compresses without a pause                                            (other cases)
             main:   fork
    child    imports, compresses, opens the frame, reads by the handle that it inherited, and ends within its time

Each mother is a new process, for a first import comes once. A child that does not end in time is a failure: then it
waits for a lock of a thread that is not there.

Run by hand: ``python -m labs.forks --cases 200 --seed 1`` in ``tests``; one case again: ``--only N``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

__all__ = ["Case", "Report", "draw", "run"]

KINDS: Final = ("memory", "file", "directory", "memory-array", "file-array")
NAMES: Final = ("compress2", "SChunk", "asarray", "open", "verify", "repair", "pack_array2", "zeros", "DParams", "load")
CALLS: Final = ("append", "read", "row", "vlmeta", "transaction", "large", "open")
_WATCHDOG: Final = 30
"""Seconds that a child has; it needs less than one."""
_STOP: Final = 0.2
"""Seconds that a thread stays where it stopped, so that the fork happens meanwhile."""
_HUNG: Final = "hangs: waits for a lock that nobody will let go of"


@dataclass(frozen=True)
class Case:
    """What a mother does when she forks."""

    number: int
    kind: str
    scene: str
    """``import``, ``stop`` (inside a call) or ``loop`` (calls without a pause)."""
    what: str
    line: int
    forks: int
    delays: tuple[float, ...]


def draw(seed: int, number: int) -> Case:
    """Draw case `number` of `seed`."""
    rng = Random(f"{seed}:{number}")
    scene = ("import", "stop", "loop")[number % 3]
    what = rng.choice(NAMES if scene == "import" else CALLS)
    line = rng.randint(1, 400 if scene == "import" else 200)
    forks = 6 if scene == "loop" else 1
    return Case(number, rng.choice(KINDS), scene, what, line, forks, tuple(rng.random() * 0.02 for _ in range(forks)))


@dataclass
class Report:
    """How many children there were, and which of them failed."""

    mothers: int = 0
    children: int = 0
    stops: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = f"{self.mothers} mothers, {self.stops} stopped a thread, {self.children} children"
        return "\n".join([f"{told}, {len(self.failures)} failures", *self.failures])


class _Stop:
    """Stops this thread for a moment at a line that superchunk executes, once."""

    def __init__(self, root: str, line: int) -> None:
        self._root, self._left = root, line
        self.stopped = threading.Event()
        self.place = ""

    def __enter__(self) -> None:
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        self.stopped.set()

    def _trace(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if event == "call" and not frame.f_code.co_filename.startswith(self._root):
            return None
        if event == "line" and self._left:
            self._left -= 1
            if not self._left:
                self.place = f"{frame.f_code.co_filename.removeprefix(self._root)}:{frame.f_lineno}"
                self.stopped.set()
                time.sleep(_STOP)
        return self._trace


def mother(case: Case, folder: str) -> dict[str, Any]:  # noqa: C901 - three scenes, told one after the other
    """Fork as the case has it; return what became of the children. Runs in a process of its own."""
    import superchunk  # the case begins with it

    root = str(Path(superchunk.__file__).parent)
    told: dict[str, Any] = {"children": 0, "stops": 0, "failures": []}
    if case.scene == "import":
        stop = _Stop(root, case.line)

        def ask() -> None:
            with stop:
                getattr(superchunk, case.what)

        thread = threading.Thread(target=ask)
        thread.start()
        stop.stopped.wait()
        _fork(lambda: _work(superchunk, case, folder, None), told, stop.place)
        thread.join()
        told["stops"] = int(bool(stop.place))
        return told
    handle = _frame(superchunk, case, folder)
    if case.scene == "stop":
        stop = _Stop(root, case.line)

        def call() -> None:
            with stop:
                _call(superchunk, handle, case)

        thread = threading.Thread(target=call)
        thread.start()
        stop.stopped.wait()
        _fork(lambda: _work(superchunk, case, folder, handle), told, stop.place)
        thread.join()
        told["stops"] = int(bool(stop.place))
    else:
        done = threading.Event()
        errors: list[str] = []

        def calls() -> None:
            try:
                while not done.is_set():
                    _call(superchunk, handle, case)
            except Exception:  # noqa: BLE001 - whatever it is, it is a finding
                errors.append(traceback.format_exc())

        threads = [threading.Thread(target=calls) for _ in range(3)]
        for thread in threads:
            thread.start()
        for delay in case.delays:
            time.sleep(delay)
            _fork(lambda: _work(superchunk, case, folder, handle), told, "")
        done.set()
        for thread in threads:
            thread.join()
        told["failures"] += errors
    handle.close()
    if not case.kind.startswith("memory"):
        status = superchunk.verify(f"{folder}/frame").status
        if status != "sound":
            told["failures"].append(f"the frame is {status} afterwards")
    return told


def _frame(superchunk: Any, case: Case, folder: str) -> Any:
    """Make the frame that the threads use."""
    import numpy as np  # only here

    path = None if case.kind.startswith("memory") else f"{folder}/frame"
    place = {"urlpath": path, "contiguous": case.kind != "directory", "mode": "w"}
    if case.kind.endswith("array"):
        return superchunk.asarray(np.arange(1_000_000, dtype="i4").reshape(1000, 1000), chunks=(100, 1000), **place)
    data = np.arange(1_000_000, dtype="i4")
    return superchunk.SChunk(400_000, data, cparams=superchunk.CParams(typesize=4, clevel=1), **place)


def _call(superchunk: Any, handle: Any, case: Case) -> None:
    """Do what the threads do."""
    array, schunk = case.kind.endswith("array"), getattr(handle, "schunk", handle)
    what = case.what if case.what != "open" or not case.kind.startswith("memory") else "read"
    if what == "append":
        if array:
            handle[0] = handle[1]
        else:
            handle.update_data(1, bytes(400_000), copy=True)
    elif what == "read":
        _ = handle[1:3]
    elif what == "row":
        _ = handle[0:1]
    elif what == "vlmeta":
        schunk.vlmeta["x"] = 1
    elif what == "transaction":
        with handle.transaction():
            schunk.vlmeta["x"] = 2
            handle[0:1] = handle[1:2]
    elif what == "large":
        _ = handle[:]  # memory that is kept for the next one
    else:
        with superchunk.open(f"{case_path(handle)}") as other:
            _ = other[0:1]


def case_path(handle: Any) -> str:
    """Return where a frame is."""
    return str(getattr(handle, "schunk", handle).urlpath)


def _work(superchunk: Any, case: Case, folder: str, handle: Any) -> None:
    """Do what a child may do."""
    import numpy as np  # as any program would

    packed = superchunk.compress2(bytes(100_000))
    assert superchunk.decompress2(packed) == bytes(100_000)
    getattr(superchunk, case.what if case.scene == "import" else "verify")
    numbers = np.arange(50_000, dtype="i4")
    path = f"{folder}/child-{os.getpid()}"
    with superchunk.asarray(numbers, urlpath=path, mode="w") as made:
        made.append(numbers[:10])
    with superchunk.open(path) as again:
        assert (again[:50_000] == numbers).all()
        assert superchunk.verify(path).status == "sound"
    if handle is None:
        return
    large = handle[:]
    assert len(large) == len(handle) * (1 if case.kind.endswith("array") else 4)
    schunk = getattr(handle, "schunk", handle)
    _ = dict(schunk.vlmeta.getall())
    if case.kind.startswith("memory"):
        schunk.vlmeta["child"] = 1
        assert schunk.vlmeta["child"] == 1
    else:
        with superchunk.open(f"{folder}/frame") as other:
            _ = other[:]


def _fork(work: Callable[[], None], told: dict[str, Any], place: str) -> None:
    """Let a child do `work`; note what became of it."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            signal.alarm(_WATCHDOG)
            work()
            status = 0
        except BaseException:  # noqa: BLE001 - the mother has to hear of it
            traceback.print_exc()
        finally:
            os._exit(status)
    told["children"] += 1
    status = os.waitpid(pid, 0)[1]
    if status:
        hung = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
        told["failures"].append((_HUNG if hung else f"ends with status {status}") + (place and f", stopped at {place}"))


def run(*, cases: int, seed: int = 1, first: int = 0) -> Report:
    """Run drawn cases; return what was found."""
    report = Report()
    tests = str(Path(__file__).parent.parent)
    path = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
    for number in range(first, first + cases):
        case = draw(seed, number)
        with tempfile.TemporaryDirectory(prefix="superchunk-lab-") as folder:
            command = [sys.executable, "-m", "labs.forks", "--mother", json.dumps(asdict(case)), folder]
            try:
                done = subprocess.run(
                    command,
                    check=False,
                    capture_output=True,
                    text=True,
                    timeout=_WATCHDOG * (case.forks + 2),
                    env={**os.environ, "PYTHONPATH": path},
                )
                answer: dict[str, Any] = (
                    json.loads(done.stdout.splitlines()[-1]) if done.stdout else {"failures": [done.stderr[-2000:]]}
                )
                if answer["failures"]:
                    answer["failures"].append(done.stderr[-2000:])
            except subprocess.TimeoutExpired:
                answer = {"failures": ["the mother hangs"]}
        report.mothers += 1
        report.children += answer.get("children", 0)
        report.stops += answer.get("stops", 0)
        if answer["failures"]:
            report.failures.append("\n  ".join([f"{seed}:{number} {case}", *answer["failures"]]))
    return report


def main(arguments: list[str] | None = None) -> int:
    """Run the laboratory by hand; return 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="only the case of this number")
    parser.add_argument("--mother", nargs=2, help=argparse.SUPPRESS)
    told = parser.parse_args(arguments)
    if told.mother:
        warnings.simplefilter("ignore")
        drawn = json.loads(told.mother[0])
        print(json.dumps(mother(Case(**{**drawn, "delays": tuple(drawn["delays"])}), told.mother[1])), flush=True)  # noqa: T201  (a script prints)
        return 0
    only = told.only is not None
    report = run(cases=1 if only else told.cases, seed=told.seed, first=told.only if only else 0)
    print(report)  # noqa: T201  (a script prints)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
