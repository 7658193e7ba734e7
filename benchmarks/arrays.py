"""Arrays against `blosc2`: items, columns, slices across every axis, whole arrays, writing, memory.

Run it with ``make bench`` or ``python benchmarks/arrays.py`` (some minutes; ``--quick`` for seconds). Each package
writes and reads its own files with its own defaults, chunk and block shapes included, from the page cache; what was
read is compared with the array before anything is measured. Rows of time are measured in one process, both packages
in turn; memory in processes of its own. Nothing here passes or fails; `--json` writes a record.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import blosc2
import numpy as np
from pairs import Effort, figure, kept, once, record_parser, rounds, surroundings, write_record
from peers import close

import superchunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from pairs import Figure

PACKAGES: tuple[Any, Any] = (superchunk, blosc2)
MICRO, MILLI = 1e6, 1e3


class Row(NamedTuple):
    """One line of the table."""

    what: str
    data: str
    unit: str
    ours: float
    theirs: float
    ratio: float
    """Theirs over ours, or ours over theirs where more is better: above 1 is better."""


def time_row(what: str, data: str, seconds: Figure, unit: str, scale: float) -> Row:
    """Return a row of times, for which less is better."""
    return Row(what, data, unit, seconds.seconds * scale, seconds.theirs * scale, seconds.ratio)


def speed_row(what: str, data: str, seconds: Figure, nbytes: int) -> Row:
    """Return a row of speeds, for which more is better."""
    return Row(what, data, "GB/s", nbytes / seconds.seconds / 1e9, nbytes / seconds.theirs / 1e9, seconds.ratio)


# Data.


def counting(shape: tuple[int, ...]) -> NDArray[Any]:
    """Return 0, 1, 2, ...: int64."""
    return np.arange(np.prod(shape), dtype="i8").reshape(shape)


def smooth(shape: tuple[int, ...]) -> NDArray[Any]:
    """Return waves along all axes with a little noise in their last bits: float64."""
    rng = np.random.default_rng(1)
    field = np.zeros(shape)
    for axis, side in enumerate(shape):
        field += np.sin(np.arange(side) / (20 + 7 * axis)).reshape([-1 if n == axis else 1 for n in range(len(shape))])
    field += rng.normal(scale=1e-9, size=shape)
    return field


def noisy(shape: tuple[int, ...]) -> NDArray[Any]:
    """Return counts of a detector with 12 bits of noise: int64."""
    return np.random.default_rng(2).integers(0, 2**12, shape, dtype="i8")


KINDS: dict[str, Callable[[tuple[int, ...]], NDArray[Any]]] = {"counting": counting, "smooth": smooth, "noisy": noisy}


def remove(path: Path) -> None:
    """Remove a file that may be there."""
    path.unlink(missing_ok=True)


@contextmanager
def files(data: NDArray[Any], folder: Path) -> Iterator[tuple[Any, Any]]:
    """Write an array with both packages and yield it, opened for reading: ours, theirs."""
    paths = [folder / f"{package.__name__}.b2nd" for package in PACKAGES]
    for package, path in zip(PACKAGES, paths, strict=True):
        package.asarray(data, urlpath=str(path), mode="w")
    ours, theirs = (package.open(str(path), mode="r") for package, path in zip(PACKAGES, paths, strict=True))
    yield ours, theirs
    ours.schunk.close()
    for path in paths:
        remove(path)


def agree(data: NDArray[Any], keys: list[Any], arrays: tuple[Any, Any]) -> None:
    """End the program if one of the packages reads something else."""
    for key in keys:
        for array in arrays:
            if not np.array_equal(array[key], data[key]):
                sys.exit(f"{type(array).__module__}: {key} reads something else")


# Rows.


def items(folder: Path, sides: tuple[int, int], effort: Effort) -> Iterator[Row]:
    """Measure reads of a few items at random places."""
    rng = random.Random(3)
    for kind, make in KINDS.items():
        data = make(sides)
        with files(data, folder) as (ours, theirs):
            for what, side in (("10x10 items at random", 10), ("one item at random", 1)):
                places = [(rng.randrange(sides[0] - side), rng.randrange(sides[1] - side)) for _ in range(40)]
                keys: list[Any] = [(slice(i, i + side), slice(j, j + side)) for i, j in places]
                if side == 1:
                    keys = list(places)
                agree(data, keys, (ours, theirs))
                took = rounds(partial(every, ours, keys), partial(every, theirs, keys), effort)
                yield time_row(what, kind, took, "us", MICRO / len(keys))


def every(array: Any, keys: list[Any]) -> None:
    """Read all keys."""
    for key in keys:
        array[key]


def columns(folder: Path, sides: tuple[int, int], effort: Effort) -> Iterator[Row]:
    """Measure reads of one column of a wide array."""
    rng = random.Random(4)
    for kind, make in KINDS.items():
        data = make(sides)
        with files(data, folder) as (ours, theirs):
            keys: list[Any] = [(slice(None), rng.randrange(sides[1])) for _ in range(4)]
            agree(data, keys, (ours, theirs))
            took = rounds(partial(every, ours, keys), partial(every, theirs, keys), effort)
            yield time_row("a column of {}x{}".format(*sides), kind, took, "ms", MILLI / len(keys))


def planes(folder: Path, side: int, effort: Effort) -> Iterator[Row]:
    """Measure slices of a hundredth of a 4-D array, orthogonal to each axis."""
    rng = random.Random(5)
    shape = (side,) * 4
    thick = max(1, side // 100)
    for kind, make in KINDS.items():
        data = make(shape).astype("f4" if kind == "smooth" else "i4")
        with files(data, folder) as (ours, theirs):
            for axis in range(4):
                start = rng.randrange(side - thick)
                key = (slice(None),) * axis + (slice(start, start + thick),)
                agree(data, [key], (ours, theirs))
                took = rounds(partial(every, ours, [key]), partial(every, theirs, [key]), effort)
                yield time_row(f"1 % of {side}^4 across axis {axis}", kind, took, "ms", MILLI)


def whole(folder: Path, sides: tuple[int, int], effort: Effort) -> Iterator[Row]:
    """Measure reading and writing of a whole array."""
    for kind, make in KINDS.items():
        data = make(sides)
        given = np.empty_like(data)
        corners = ((0, 0), data.shape)
        with files(data, folder) as (ours, theirs):
            agree(data, [...], (ours, theirs))
            took = rounds(partial(ours.get, out=given), partial(theirs.get_slice_numpy, given, corners), effort)
            yield speed_row("whole array into a given one", kind, took, data.nbytes)
            took = rounds(partial(every, ours, [...]), partial(every, theirs, [...]), effort)
            yield speed_row("whole array, fresh", kind, took, data.nbytes)
        yield speed_row("asarray to disk", kind, write(data, folder, effort), data.nbytes)


def write(data: NDArray[Any], folder: Path, effort: Effort) -> Figure:
    """Measure `asarray` into a new file; removing the old one is not counted."""
    pairs = []
    for number in range(effort.rounds + 1):
        took = {}
        for package in PACKAGES if number % 2 else PACKAGES[::-1]:
            path = folder / f"written-{package.__name__}.b2nd"
            remove(path)
            took[package] = once(partial(stored, data, package, path))
            remove(path)
        pairs.append((took[superchunk], took[blosc2]))
    return figure(pairs[1:])


def stored(data: NDArray[Any], package: Any, path: Path) -> None:
    """Write an array to a file; theirs is closed when the last reference goes."""
    close(package.asarray(data, urlpath=str(path)))


def small(folder: Path, effort: Effort) -> Iterator[Row]:
    """Measure making and growing what is small: what it costs beside the compression."""
    arrays = {"1000 i4": np.arange(1000, dtype="i4"), "64x64 f8": smooth((64, 64))}
    calls: dict[tuple[str, str], Callable[[Any, Path], Any]] = {}
    for name, data in arrays.items():
        calls["asarray in memory", name] = partial(in_memory, data)
        calls["asarray to a new file", name] = partial(stored, data)
        calls["append to a new frame", name] = partial(appended, data)
    calls["zeros in memory", "100x100"] = lambda package, _: package.zeros((100, 100))
    calls["zeros in a new file", "100x100"] = lambda package, path: close(package.zeros((100, 100), urlpath=str(path)))
    for (what, name), call in calls.items():
        yield time_row(what, name, in_new_files(call, folder, effort), "us", MICRO)
    for high in (1, 16):
        for where, path in (("in memory", None), ("in a file", folder)):
            took = rounds(growing(superchunk, high, path), growing(blosc2, high, path), effort)
            yield time_row(f"a row of 1000 float64 more {where}, chunks of {high}", "smooth", took, "us", MICRO / ROWS)


SMALL, ROWS = 20, 20
"""Files that are made, and rows that are added, in a round."""


def in_new_files(call: Callable[[Any, Path], Any], folder: Path, effort: Effort) -> Figure:
    """Measure a call that may make a file; removing it is not counted."""
    pairs = []
    for number in range(effort.rounds * 10 + 1):
        took = dict.fromkeys(PACKAGES, 0.0)
        for package in PACKAGES if number % 2 else PACKAGES[::-1]:
            for _ in range(SMALL):
                path = folder / f"small-{package.__name__}.b2nd"
                took[package] += once(partial(call, package, path)) / SMALL
                remove(path)
        pairs.append((took[superchunk], took[blosc2]))
    return figure(pairs[1:])


def in_memory(data: NDArray[Any], package: Any, _: Path) -> None:
    """Make an array in memory."""
    package.asarray(data)


def appended(data: NDArray[Any], package: Any, path: Path) -> None:
    """Make a frame, and append the data to it."""
    frame = package.SChunk(chunksize=data.nbytes, urlpath=str(path), cparams={"typesize": data.itemsize})
    frame.append_data(data)
    close(frame)


def growing(package: Any, high: int, folder: Path | None) -> Callable[[], None]:
    """Return what adds rows to an array with chunks of so many, row by row."""
    rows = smooth((64, 1000))
    place = {} if folder is None else {"urlpath": str(folder / f"grown-{package.__name__}-{high}.b2nd")}
    array = package.asarray(rows[:1], chunks=(high, 1000), **place)

    def grow() -> None:
        for _ in range(ROWS):
            nrows = array.shape[0]
            array.resize((nrows + 1, 1000))
            array[nrows] = rows[nrows % len(rows)]

    return grow


# Processes of their own.


def high_water() -> float:
    """Return the most memory that this process has had, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["VmHWM"].split()[0]) / 1024


def make_large(package: Any, folder: str, megabytes: int) -> dict[str, float]:
    """Write an array of that size, band by band."""
    rows = megabytes * 2**20 // 8 // 4096
    path = f"{folder}/large-{package.__name__}.b2nd"
    array = package.empty((rows, 4096), dtype="i8", urlpath=path, mode="w")
    high = array.chunks[0]
    for start in range(0, rows, high):
        stop = min(start + high, rows)
        array[start:stop] = np.arange(start * 4096, stop * 4096).reshape(-1, 4096) // 3
    return {"megabytes": array.nbytes / 2**20}


def copy_large(package: Any, folder: str, megabytes: int, **keywords: Any) -> dict[str, float]:  # noqa: ARG001
    """Copy that array to another file; what memory it takes is counted from before the copy."""
    array = package.open(f"{folder}/large-{package.__name__}.b2nd", mode="r")
    array[:1, :1]
    before, begun = high_water(), time.perf_counter()
    path = f"{folder}/copy-{package.__name__}.b2nd"
    copy = array.copy(urlpath=path, mode="w", **keywords)
    seconds, after = time.perf_counter() - begun, high_water()
    last = (slice(-1, None), slice(-5, None))
    same = bool(np.array_equal(copy[last], array[last]))
    remove(Path(path))
    return {"memory": after - before, "seconds": seconds, "same": float(same)}


JOBS: dict[str, Callable[..., dict[str, float]]] = {
    "make": make_large,
    "copy": copy_large,
    "recut": lambda *args: copy_large(*args, chunks=(300, 3000), blocks=(60, 500)),
}


def job(name: str, package: Any, folder: Path, megabytes: int) -> dict[str, float]:
    """Do a job in a process of its own."""
    command = [sys.executable, __file__, "--job", name, "--package", package.__name__]
    command += ["--folder", str(folder), "--megabytes", str(megabytes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this file itself
    return dict(json.loads(done.stdout.splitlines()[-1]))


def memory(folder: Path, megabytes: int) -> Iterator[Row]:
    """Measure what copying a large file takes."""
    for package in PACKAGES:
        job("make", package, folder, megabytes)
    for name, what in (("copy", "as it is"), ("recut", "into other chunks")):
        ours, theirs = (job(name, package, folder, megabytes) for package in PACKAGES)
        if not ours["same"] or not theirs["same"]:
            sys.exit(f"{name}: the copy differs")
        for key, unit, title in (
            ("memory", "MB", "memory more than before,"),
            ("seconds", "s", "time,"),
        ):
            line = f"{title} copying {megabytes} MB {what}"
            yield Row(line, "counting", unit, ours[key], theirs[key], theirs[key] / max(ours[key], 1e-9))
    for package in PACKAGES:
        remove(folder / f"large-{package.__name__}.b2nd")


# The table.


def table(folder: Path, *, quick: bool, only: str) -> Iterator[Row]:
    """Measure everything whose group's name begins with `only`."""
    effort = Effort(rounds=3, seconds=0.3) if quick else Effort(rounds=7, seconds=2.0)
    square, wide = ((1024, 1024), (256, 8192)) if quick else ((4096, 8192), (1024, 32768))
    groups: dict[str, Callable[[], Iterator[Row]]] = {
        "items": lambda: items(folder, square, effort),
        "columns": lambda: columns(folder, wide, effort),
        "planes": lambda: planes(folder, 30 if quick else 100, effort),
        "whole": lambda: whole(folder, square, effort),
        "small": lambda: small(folder, effort),
        "memory": lambda: memory(folder, 128 if quick else 4096),
    }
    for name, group in groups.items():
        if name.startswith(only):
            yield from group()


def main() -> None:
    """Measure all rows, or do one job."""
    options = record_parser(__doc__)
    options.add_argument("--only", default="", help="items, columns, planes, whole, small or memory")
    options.add_argument("--scratch", help="directory for the files; a temporary one by default")
    for hidden in ("job", "package", "folder"):
        options.add_argument(f"--{hidden}", help=argparse.SUPPRESS)
    options.add_argument("--megabytes", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.job:
        print(json.dumps(JOBS[given.job](sys.modules[given.package], given.folder, given.megabytes)))
        return
    found = []
    begun = time.perf_counter()
    print(f"{'what':<58}{'data':<10}{'unit':<6}{'superchunk':>11}{'blosc2':>11}{'ratio':>8}")
    with tempfile.TemporaryDirectory(dir=given.scratch) as folder:
        for row in table(Path(folder), quick=given.quick, only=given.only):
            found.append(row._asdict())
            print(
                f"{row.what:<58}{row.data:<10}{row.unit:<6}{row.ours:>11.4g}{row.theirs:>11.4g}{row.ratio:>8.2f}",
                flush=True,
            )
    if given.json:
        record = {**surroundings(), "quick": given.quick, "seconds": time.perf_counter() - begun, "rows": found}
        write_record(given.json, kept(given.json, record, "rows", ("what", "data")) if given.add else record)


if __name__ == "__main__":
    main()
