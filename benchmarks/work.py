"""The work of users against all peers: saving, loading, appending, reading at random, opening, importing, memory.

Run it with ``make bench`` or, for some of the jobs, for example ``python benchmarks/work.py --job random open``.
All peers do each job in turn, on the same array of real fields (`datasets.climate`, 256 MB), from the page cache; a
figure is the median of the rounds, and the ratio beside it the median of theirs over ours. What is read is
compared with the array before it is measured. Memory and imports are measured in processes of their own. Nothing here
passes or fails; `--json` writes a record.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import peers
from datasets import climate
from pairs import OURS, THEIRS, Effort, Turns, kept, record_parser, surroundings, take_turns, write_record
from work_summary import Row, print_row

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from peers import Blosc2Like, Peer

MICRO, MILLI = 1e6, 1e3
SAVERS = tuple(peers.MAKERS)
KEEPERS = ("superchunk", "blosc2", "zarr blosc", "zarr zstd", "h5py blosc2", "numpy")
"""Peers that read and write in part."""
COPY = "memory copy"
SMALL = 1000
"""Items of a small read."""
READS = 100
"""Random reads in one round; fewer of those peers that take long."""
SLOW = {"zarr blosc": 10, "zarr zstd": 10, "h5py blosc2": 25}


class Size(NamedTuple):
    """How much work."""

    nbytes: int
    """Of the array."""
    stream: int
    """Bytes that are appended."""
    reads: int
    """Random reads of each length."""
    few: Effort
    """For work on the whole array."""
    many: Effort
    """For work on a little of it."""


FULL = Size(2**28, 2**30, 5000, Effort(3, 1.0, 20.0), Effort(20, 1.0, 5.0))
QUICK = Size(2**24, 2**25, 500, Effort(2, 0.1, 1.0), Effort(3, 0.1, 0.5))


class Bench:
    """The array, the files that hold it, and the peers."""

    def __init__(self, folder: Path, size: Size) -> None:
        """Make the array; files are written when they are asked for."""
        self.folder = folder
        self.size = size
        self.data = climate(size.nbytes)
        self.rng = np.random.default_rng(3)
        self.peers = {name: make() for name, make in peers.MAKERS.items()}
        self.ours: Blosc2Like = self.peers[OURS]  # type: ignore[assignment]
        self.theirs: Blosc2Like = self.peers[THEIRS]  # type: ignore[assignment]

    def array(self, peer: Peer) -> Path:
        """Return the file of the array as the peer saves it."""
        path = self.folder / f"array-{peer.name}"
        if not path.exists():
            peer.save(self.data, path)
        return path

    def frame(self, writer: Blosc2Like) -> Path:
        """Return the frame that one of the two packages writes with its defaults."""
        path = self.folder / f"frame-{writer.name}"
        if not path.exists():
            writer.save_frame(self.data, path)
        return path

    def starts(self, nitems: int, count: int) -> list[int]:
        """Return random places for reads of so many items."""
        found: list[int] = self.rng.integers(0, self.data.size - nitems, count).tolist()
        return found

    def same(self, what: str, got: Any, start: int, stop: int) -> None:
        """End the program if something else was read than what stands there."""
        if not np.array_equal(np.frombuffer(got, "u1"), self.data[start:stop].view("u1")):
            sys.exit(f"{what}: items {start}:{stop} come back different")


def remove(path: Path) -> None:
    """Remove a file or directory that may be there."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def read_all(handle: Any, starts: list[int], nitems: int) -> None:
    """Read so many items at each place."""
    for start in starts:
        handle[start : start + nitems]


# Jobs: each yields rows.


def save(bench: Bench) -> Iterator[Row]:
    """Save the array in one call, and load it."""
    turns, loads = Turns(SAVERS), Turns(SAVERS)
    sizes = {}
    for name in SAVERS:  # what is imported and started by the first call does not count
        bench.peers[name].save(bench.data[:SMALL], bench.folder / f"saved-{name}")
        remove(bench.folder / f"saved-{name}")
    for number in range(bench.size.few.rounds):
        took, loaded = {}, {}
        at = number % len(SAVERS)
        for name in SAVERS[at:] + SAVERS[:at]:
            peer, path = bench.peers[name], bench.folder / f"saved-{name}"
            begun = time.perf_counter()
            peer.save(bench.data, path)
            took[name] = time.perf_counter() - begun
            begun = time.perf_counter()
            got = peer.load(path)
            loaded[name] = time.perf_counter() - begun
            if number == 0:
                bench.same(f"{name} saved", np.ascontiguousarray(got), 0, bench.data.size)
                sizes[name] = disk_usage(path)
            del got
            remove(path)
        turns.add(took)
        loads.add(loaded)
    megabytes = bench.size.nbytes >> 20
    yield Row.speeds(f"save {megabytes} MiB in one call", turns, bench.size.nbytes)
    yield Row.speeds(f"load {megabytes} MiB in one call", loads, bench.size.nbytes)
    yield Row(f"file of {megabytes} MiB", "MB", {name: nbytes / 1e6 for name, nbytes in sizes.items()})


def disk_usage(path: Path) -> int:
    """Return the bytes of a file, or of all files in a directory."""
    return sum(one.stat().st_size for one in ([path] if path.is_file() else path.rglob("*")) if one.is_file())


def stream(bench: Bench) -> Iterator[Row]:
    """Append pieces of 4 MiB to a new file until it holds as much as asked."""
    piece = peers.CHUNKSIZE // bench.data.itemsize
    pieces = [bench.data[at : at + piece] for at in range(0, bench.data.size, piece)]

    def run(peer: Peer) -> None:
        path = bench.folder / f"stream-{peer.name}"
        with peer.appending(path, bench.data.dtype) as append:
            for one in itertools.islice(itertools.cycle(pieces), bench.size.stream // peers.CHUNKSIZE):
                append(one)
        remove(path)

    turns = take_turns({name: partial(run, bench.peers[name]) for name in KEEPERS}, bench.size.few)
    yield Row.speeds(f"append {bench.size.stream >> 20} MiB, 4 MiB at a time", turns, bench.size.stream)


def random(bench: Bench) -> Iterator[Row]:
    """Read items at random places of open files: two frames, each by both packages, and the files of the others."""
    nitems_asked = {10: (40.0, 12.0)}
    for nitems in (10, 1000, 100_000):
        for writer, with_others, asked in (
            (bench.theirs, False, nitems_asked.get(nitems, (None, None))[0]),
            (bench.ours, True, nitems_asked.get(nitems, (None, None))[1]),
        ):
            names = KEEPERS if with_others else KEEPERS[:2]
            title = f"{nitems:,} items at random, frame written by {writer.name}"
            turns = Turns(names)
            with ExitStack() as stack:
                handles = {name: stack.enter_context(open_for(bench, name, writer)) for name in names}
                for name, handle in handles.items():
                    for start in bench.starts(nitems, 5):
                        bench.same(name, handle[start : start + nitems], start, start + nitems)
                begun = time.perf_counter()
                for number in range(bench.size.reads // READS):
                    took = {}
                    at = number % len(names)
                    for name in names[at:] + names[:at]:
                        starts = bench.starts(nitems, SLOW.get(name, READS))
                        began = time.perf_counter()
                        read_all(handles[name], starts, nitems)
                        took[name] = (time.perf_counter() - began) / len(starts)
                    turns.add(took)
                    if time.perf_counter() - begun > bench.size.few.patience:
                        break
            yield Row.times(title, turns, "us", MICRO, asked=asked)


def open_for(bench: Bench, name: str, writer: Blosc2Like) -> Any:
    """Open what a peer reads: the two packages the frame of `writer`, the others the array as they save it."""
    peer = bench.peers[name]
    return peer.opened(bench.frame(writer) if name in (OURS, THEIRS) else bench.array(peer))


def sequential(bench: Bench) -> Iterator[Row]:
    """Read item after item of an open file, a thousand at a time."""
    with ExitStack() as stack:
        calls: dict[str, Callable[[], None]] = {}
        for name in KEEPERS:
            handle = stack.enter_context(open_for(bench, name, bench.ours))
            calls[name] = walker(handle, bench.data.size, SLOW.get(name, READS))
        turns = take_turns(calls, bench.size.many)
    for name in KEEPERS:
        turns.seconds[name] = [one / SLOW.get(name, READS) for one in turns.seconds[name]]
    yield Row.times(f"{SMALL:,} items after the last {SMALL:,}", turns, "us", MICRO)


def walker(handle: Any, size: int, steps: int) -> Callable[[], None]:
    """Return a function that reads the next items, so many times."""
    places = itertools.cycle(range(0, size - SMALL, SMALL))

    def walk() -> None:
        for start in itertools.islice(places, steps):
            handle[start : start + SMALL]

    return walk


def assign(bench: Bench) -> Iterator[Row]:
    """Assign items at random places of an open file."""
    values = np.ascontiguousarray(bench.data[:SMALL][::-1])
    with ExitStack() as stack:
        calls: dict[str, Callable[[], None]] = {}
        for name in KEEPERS:
            peer = bench.peers[name]
            path = bench.folder / f"assigned-{name}"
            peer.save(bench.data[: bench.data.size // 8], path)
            handle = stack.enter_context(peer.opened(path, mode="a"))
            calls[name] = partial(write_some, handle, values, bench)
        turns = take_turns(calls, bench.size.many)
    for name in KEEPERS:
        with bench.peers[name].opened(bench.folder / f"assigned-{name}") as handle:
            if not np.array_equal(handle[:SMALL], values):
                sys.exit(f"{name}: what was assigned does not come back")
        turns.seconds[name] = [one / 5 for one in turns.seconds[name]]
        remove(bench.folder / f"assigned-{name}")
    yield Row.times(f"assign {SMALL:,} items at random", turns, "us", MICRO)


def write_some(handle: Any, values: NDArray[Any], bench: Bench) -> None:
    """Assign at the beginning and at four random places."""
    last = bench.data.size // 8 - SMALL
    for start in (0, *(int(place) for place in bench.rng.integers(SMALL, last, 4))):
        handle[start : start + SMALL] = values


def whole(bench: Bench) -> Iterator[Row]:
    """Read all of an open file into a given array and into a fresh one."""
    given = np.ones_like(bench.data)
    nitems, nbytes = bench.data.size, bench.size.nbytes
    title = "all of it into a {} array, frame written by {}"
    for writer in (bench.ours, bench.theirs):
        with ExitStack() as stack:
            handles = [stack.enter_context(reader.opened(bench.frame(writer))) for reader in (bench.ours, bench.theirs)]
            into = [partial(handle.get_slice, 0, nitems, out=given) for handle in handles]
            fresh = [partial(handle.__getitem__, slice(None)) for handle in handles]
            for name, call in zip((OURS, THEIRS), into, strict=True):
                given[:] = 1
                call()
                bench.same(name, given, 0, nitems)
            calls: dict[str, Callable[[], Any]] = {
                OURS: into[0],
                THEIRS: into[1],
                COPY: partial(np.copyto, given, bench.data),
            }
            turns = take_turns(calls, bench.size.few)
            yield Row.speeds(title.format("given", writer.name), turns, nbytes, asked_ratio=1.3)
            calls = {OURS: fresh[0], THEIRS: fresh[1], COPY: bench.data.copy}
            if writer is bench.ours:
                calls |= {name: partial(bench.peers[name].load, bench.array(bench.peers[name])) for name in KEEPERS[2:]}
            turns = take_turns(calls, bench.size.few)
            yield Row.speeds(title.format("fresh", writer.name), turns, nbytes, asked_ratio=2.5)


def opening(bench: Bench) -> Iterator[Row]:
    """Open a frame or array and close it: once between what the others do, and time after time."""
    for name in KEEPERS:  # writing the files takes much longer
        open_and_close(bench, name, bench.ours)
    for title, times in (("open and close a frame", 1), ("open and close a frame, time after time", READS)):
        calls: dict[str, Callable[[], None]] = {
            name: partial(open_and_close, bench, name, bench.ours, times) for name in KEEPERS
        }
        turns = take_turns(calls, bench.size.many)
        for name in KEEPERS:
            turns.seconds[name] = [one / times for one in turns.seconds[name]]
        yield Row.times(title, turns, "us", MICRO, asked=60.0)


def open_and_close(bench: Bench, name: str, writer: Blosc2Like, times: int = 1) -> None:
    """Open a file and close it."""
    for _ in range(times):
        with open_for(bench, name, writer):
            pass


def threads(bench: Bench) -> Iterator[Row]:
    """Read at random from one handle with several threads: reads a second of all together."""
    names = ("superchunk", "blosc2", "zarr blosc", "h5py blosc2")
    rates: dict[int, Turns] = {}
    with ExitStack() as stack:
        handles = {name: stack.enter_context(open_for(bench, name, bench.ours)) for name in names}
        for count in (1, 2, 4, 8):
            calls = {name: partial(crowd, handles[name], bench, count, SLOW.get(name, READS)) for name in names}
            rates[count] = take_turns(calls, bench.size.many)
            for name in names:
                rates[count].seconds[name] = [one / SLOW.get(name, READS) / 8 for one in rates[count].seconds[name]]
            word = "thread" if count == 1 else "threads"
            yield Row.times(f"{SMALL:,} items at random, {count} {word} on one handle", rates[count], "us", MICRO)
    gains = {name: rates[1].median(name) / rates[8].median(name) for name in names}
    cores = os.cpu_count() or 1
    title = f"gain of 8 threads on one handle, {cores} cores"
    yield Row(title, "x", gains, more=True, asked=0.85 * cores)


def crowd(handle: Any, bench: Bench, count: int, reads: int) -> None:
    """Read eight times as often as `reads`, shared by so many threads."""
    starts = [bench.starts(SMALL, reads * 8 // count) for _ in range(count)]
    crew = [threading.Thread(target=read_all, args=(handle, mine, SMALL)) for mine in starts]
    for one in crew:
        one.start()
    for one in crew:
        one.join()


# Processes of their own.


def imports(bench: Bench) -> Iterator[Row]:
    """Import each package in an interpreter that has NumPy already, all compiled before; and do something with it.

    What is imported late is paid for by whoever uses it first, so that counts in the second row.
    """
    names = ("superchunk", "blosc2", "zarr blosc", "h5py blosc2", "numcodecs")
    begun = begin_with({name: f"import {bench.peers[name].module}" for name in names}, bench.size.few)
    yield Row.times("import, over NumPy", begun, "ms", MILLI, asked=60.0)
    path = str(bench.frame(bench.ours))
    begun = begin_with(
        {name: f"import {name}; {name}.open({path!r}, mode='r')[:10]" for name in names[:2]}, bench.size.few
    )
    yield Row.times("import, open a frame and read 10 items, over NumPy", begun, "ms", MILLI)


def begin_with(codes: dict[str, str], effort: Effort) -> Turns:
    """Run each code in fresh interpreters that have NumPy."""
    names = tuple(codes)
    turns = Turns(names)
    for number in range(effort.rounds * 3 + 1):
        took = {}
        for name in names if number % 2 else names[::-1]:
            code = f"import time, numpy; begun = time.perf_counter(); {codes[name]}; print(time.perf_counter() - begun)"
            took[name] = float(run_python("-c", code))
        if number:
            turns.add(took)
    return turns


def run_python(*arguments: str) -> str:
    """Run an interpreter and return the last line that it prints."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, *arguments], check=True, capture_output=True, text=True, env=environment
    )
    return done.stdout.splitlines()[-1]


def high_water() -> float:
    """Return the most memory that this process has had, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["VmHWM"].split()[0]) * 1024 / 1e6


def memory(bench: Bench) -> Iterator[Row]:
    """Measure how much memory each job needs over what the process had before, the array itself left out."""
    titles = {"save": "saving", "load": "loading", "stream": "appending", "random": "1,000 items at random"}
    for job, title in titles.items():
        names = SAVERS if job in ("save", "load") else KEEPERS
        found = {}
        for name in names:
            if job != "save":
                bench.array(bench.peers[name])
            child = [__file__, "--child", job, "--peer", name, "--folder", str(bench.folder)]
            found[name] = json.loads(run_python(*child, *(["--quick"] if bench.size is QUICK else [])))
        yield Row(f"memory: {title}, {bench.size.nbytes >> 20} MiB", "MB", found)


def child(job: str, name: str, folder: Path, size: Size) -> float:
    """Do a job alone and return the MB it took more than the process had before."""
    peer = peers.MAKERS[name]()
    path = folder / f"array-{name}"
    tiny = folder / f"tiny-{name}"
    peer.save(np.arange(1000, dtype="f4"), tiny)  # what is imported and started at the first call does not count
    peer.load(tiny)
    remove(tiny)
    target = folder / f"memory-{name}"
    if job == "save":
        data = climate(size.nbytes)
        before = reset_high_water()
        peer.save(data, target)
    elif job == "load":
        before = reset_high_water()
        peer.load(path)
        before += size.nbytes / 1e6
    elif job == "stream":
        piece = climate(peers.CHUNKSIZE)
        before = reset_high_water()
        with peer.appending(target, piece.dtype) as append:
            for _ in range(size.nbytes // peers.CHUNKSIZE):
                append(piece)
    else:
        before = reset_high_water()
        with peer.opened(path) as handle:
            for start in np.random.default_rng(1).integers(0, size.nbytes // 4 - SMALL, 200).tolist():
                handle[start : start + SMALL]
    after = high_water()
    remove(target)
    return max(after - before, 0.0)


def reset_high_water() -> float:
    """Have the system forget the most memory so far, and return what there is now."""
    Path("/proc/self/clear_refs").write_text("5")
    return high_water()


JOBS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "save": save,
    "stream": stream,
    "random": random,
    "sequential": sequential,
    "assign": assign,
    "whole": whole,
    "open": opening,
    "threads": threads,
    "imports": imports,
    "memory": memory,
}


def measure(chosen: Namespace) -> dict[str, Any]:
    """Do the chosen jobs, print each row, and return the record."""
    begun = time.perf_counter()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=chosen.scratch) as folder:
        bench = Bench(Path(folder), QUICK if chosen.quick else FULL)
        for job in chosen.job:
            for row in JOBS[job](bench):
                rows.append(row)
                print_row(row)
    return {
        **surroundings(),
        "quick": chosen.quick,
        "seconds": time.perf_counter() - begun,
        "rows": [row._asdict() for row in rows],
    }


def arguments(given: list[str] | None = None) -> Namespace:
    """Read the command line."""
    options = record_parser(__doc__)
    options.add_argument("--job", nargs="+", choices=tuple(JOBS), default=tuple(JOBS))
    options.add_argument("--scratch", help="directory for the files; a temporary one by default")
    for hidden in ("--child", "--peer", "--folder"):
        options.add_argument(hidden, help="==SUPPRESS==")
    return options.parse_args(given)


def main() -> None:
    """Measure all jobs, or do one for a process of its own."""
    chosen = arguments()
    if chosen.child:
        size = QUICK if chosen.quick else FULL
        print(json.dumps(child(chosen.child, chosen.peer, Path(chosen.folder), size)))
        return
    record = measure(chosen)
    if chosen.json:
        if chosen.add:
            record = kept(chosen.json, record, "rows", ("what",))
        write_record(chosen.json, record)


if __name__ == "__main__":
    main()
