"""Packages measured in turn: what the benchmarks share.

Machines are busy by fits and starts, so a figure is never compared with one of another minute: all packages do the
same thing in turn, each round in another order, and what counts is the median of the ratios of the rounds.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import platform
import re
import statistics
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

OURS, THEIRS = "superchunk", "blosc2"
RESULTS = Path(__file__).parent / "results"
"""Records: of each processor in a folder of its own, and those that no processor changes."""
PEERS = ("numpy", "zarr", "numcodecs", "h5py", "hdf5plugin")
"""Whose versions a record names, beside the two packages'."""


class Effort(NamedTuple):
    """How long to measure."""

    rounds: int
    """At least as many rounds ..."""
    seconds: float
    """... and on until as much time has passed, up to ten times as many rounds ..."""
    patience: float = math.inf
    """... but no round begins that would end later than this many seconds."""


class Figure(NamedTuple):
    """The median of our seconds, of theirs, and of theirs over ours."""

    seconds: float
    theirs: float
    ratio: float


class Turns:
    """What several calls took, round by round: seconds by name."""

    def __init__(self, names: Iterable[str]) -> None:
        """Begin without rounds."""
        self.seconds: dict[str, list[float]] = {name: [] for name in names}

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(next(iter(self.seconds.values())))

    def add(self, took: Mapping[str, float]) -> None:
        """Add a round."""
        for name, seconds in took.items():
            self.seconds[name].append(seconds)

    def median(self, name: str) -> float:
        """Return the seconds that a call takes."""
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, ours: str = OURS) -> float:
        """Return how many times as long as ours the call `name` takes: above 1, ours is faster."""
        return statistics.median(b / a for a, b in zip(self.seconds[ours], self.seconds[name], strict=True))

    def figure(self) -> Figure:
        """Return the medians of ours and of the package blosc2."""
        return Figure(self.median(OURS), self.median(THEIRS), self.ratio(THEIRS))


def once(function: Callable[[], Any]) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def one_round(calls: Mapping[str, Callable[[], Any]], number: int) -> dict[str, float]:
    """Call each once; who begins depends on the number of the round."""
    names = list(calls)
    at = number % len(names)
    return {name: once(calls[name]) for name in names[at:] + names[:at]}


def take_turns(calls: Mapping[str, Callable[[], Any]], effort: Effort) -> Turns:
    """Make all calls in turn, as often as the effort says; the first round warms up, if there is time for another."""
    turns = Turns(calls)
    begun = time.perf_counter()
    first = one_round(calls, 1)
    lasts = time.perf_counter() - begun
    if 2 * lasts > effort.patience:
        turns.add(first)
        return turns
    begun, passed = time.perf_counter(), 0.0
    while len(turns) < effort.rounds or (passed < effort.seconds and len(turns) < 10 * effort.rounds):
        turns.add(one_round(calls, len(turns)))
        passed = time.perf_counter() - begun
        if passed + lasts > effort.patience:
            break
    return turns


def rounds(ours: Callable[[], Any], theirs: Callable[[], Any], effort: Effort) -> Figure:
    """Call ours and theirs in turn."""
    return take_turns({OURS: ours, THEIRS: theirs}, effort).figure()


def figure(pairs: list[tuple[float, float]]) -> Figure:
    """Return the medians of rounds, each of them ours and theirs."""
    turns = Turns((OURS, THEIRS))
    for ours, theirs in pairs:
        turns.add({OURS: ours, THEIRS: theirs})
    return turns.figure()


def geometric(values: Iterable[float]) -> float:
    """Return the geometric mean; of nothing, not a number."""
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def keep_memory() -> None:
    """Have malloc keep what it is given back, so that no package pays for fresh pages in some of the rounds."""
    try:
        libc = ctypes.CDLL(None)
        for what in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, in glibc's malloc.h
            libc.mallopt(what, 1 << 30)
    except (AttributeError, OSError):  # no glibc: its pages are its own affair
        pass


# What all benchmarks ask on the command line, and what their records say.


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option that all benchmarks have."""
    found = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    found.add_argument("--quick", action="store_true", help="less data and fewer rounds")
    return found


def record_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of benchmarks that write a record, with rows of an older one if `--add`."""
    found = parser(doc)
    found.add_argument("--json", type=Path, help="write the figures here, with machine and versions")
    found.add_argument("--add", action="store_true", help="keep the other rows of the record that --json names")
    return found


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def results_here() -> Path:
    """Return the folder for records of this machine's processor."""
    words = re.findall(r"[a-z0-9]+", processor().lower().replace("(r)", ""))
    return RESULTS / "-".join(words[:2])


def surroundings() -> dict[str, Any]:
    """Return the machine, the day and the versions, for a record."""
    import blosc2  # not above, because some benchmarks count the memory of processes that do without

    return {
        "date": datetime.now(tz=UTC).date().isoformat(),
        "machine": {
            "processor": processor(),
            "system": platform.system(),
            "cores": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),  # at the end; one job alone makes it as large as its threads
        },
        "versions": {
            "superchunk": version("superchunk"),
            "blosc2": blosc2.__version__,
            "c-blosc2": blosc2.VERSION_STRING,
            "python": platform.python_version(),
            **{peer: version(peer) for peer in PEERS},
        },
    }


def rounded(value: Any) -> Any:
    """Return what a record says: floats to four digits, and lists and mappings of them."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record as JSON; a list of rows gets a line for each row, so that changes can be read."""
    parts = []
    for key, value in rounded(dict(record)).items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join("  " + json.dumps(row) for row in value)
            parts.append(f" {json.dumps(key)}: [\n{rows}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value)}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def kept(path: Path, record: dict[str, Any], rows: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a record with those rows of the older one at `path` that it has not measured; each keeps its place.

    Rows are the same if they agree in all of `names`.
    """
    if not path.exists():
        return record
    old = read_record(path)
    every = {tuple(row[name] for name in names): row for row in (*old[rows], *record[rows])}
    return {**record, "seconds": old["seconds"] + record["seconds"], rows: list(every.values())}


def newest(name: str) -> Path:
    """Return the newest record of a name, of any processor."""
    found = list(RESULTS.glob(f"*/{name}.json"))
    return max(found, key=lambda path: (read_record(path).get("date", ""), path.parent.name))


def read_record(path: Path) -> dict[str, Any]:
    """Read a record."""
    return dict(json.loads(path.read_text(encoding="utf-8")))
