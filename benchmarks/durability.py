"""What safety costs: appends, updates, opening, seals, following, verifying, beside `blosc2`.

Run it with ``python benchmarks/durability.py`` (some minutes; ``--quick`` for seconds). Each row is measured for both
packages in turn, in processes of their own, so that memory and bytes written are those of one job; the bytes are the
system's count for the process (``/proc/self/io``, wchar). Nothing here passes or fails; `--json` writes a record.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairs import kept, record_parser, surroundings, write_record

if TYPE_CHECKING:
    from collections.abc import Callable

Figures = dict[str, float]
PACKAGES = ("superchunk", "blosc2")


def package(name: str) -> Any:
    """Return the package of that name, which share their faces."""
    return __import__(name)


def written() -> int:
    """Return the bytes that this process has handed to the system for writing."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def chunks_of_noise(count: int, nbytes: int) -> list[bytes]:
    """Return contents that compress to sizes that all differ a little."""
    rng = random.Random(3)
    return [rng.randbytes(nbytes - n % 100) + bytes(n % 100) for n in range(count)]


def appends(name: str, folder: str, count: int, *, contiguous: bool = True) -> Figures:
    """Append `count` chunks of 400 bytes, of varying compressed size, and close."""
    b = package(name)
    contents = chunks_of_noise(200, 400)
    path = f"{folder}/appends-{name}"
    cparams = {"typesize": 4, "nthreads": 1, "codec": b.Codec.LZ4, "clevel": 5}
    before, start = written(), time.perf_counter()
    s = b.SChunk(chunksize=400, urlpath=path, mode="w", contiguous=contiguous, cparams=cparams)
    for n in range(count):
        s.append_data(contents[n % 200])
    if name == "superchunk":
        s.close()
    del s
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "megabytes": (written() - before) / 1e6}


def huge(name: str, folder: str, count: int) -> Figures:
    """Open a frame of `count` special and plain chunks, made by `make_huge`, and read one item."""
    b = package(name)
    path = f"{folder}/huge"
    b.open(f"{folder}/small", mode="r")[0:1]  # imports, threads
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    item = b.open(path, mode="r")[400 * (count // 2) : 400 * (count // 2) + 1]
    seconds = time.perf_counter() - start
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    return {"milliseconds": 1000 * seconds, "megabytes_of_memory": more / 1024, "item": float(item[0])}


def make_huge(folder: str, count: int) -> None:
    """Write a frame of `count` chunks, every tenth of them plain."""
    import superchunk
    from superchunk._store.frame_store import FrameStore
    from superchunk._store.store_interface import FrameSettings

    zeros = superchunk._engine.special_chunk(1, 400, 1)  # noqa: SLF001 - what no other call makes as fast
    plain = superchunk.compress2(bytes(range(200)) * 2, typesize=1, codec=superchunk.Codec.LZ4)
    for path, chunks in (("small", 1000), ("huge", count)):
        store = FrameStore.create(f"{folder}/{path}", FrameSettings(typesize=1), 400, {})
        with store.batch():
            for at in range(0, chunks, 10_000):
                store.insert(at, ([zeros] * 9 + [plain]) * min(1000, (chunks - at) // 10))
        store.close()


def update(name: str, folder: str, megabytes: int) -> Figures:
    """Update chunk 0 of a frame, with one that is a little larger."""
    b = package(name)
    rng = random.Random(4)
    path = f"{folder}/update-{name}"
    s = b.SChunk(chunksize=10**6, urlpath=path, mode="w", cparams={"typesize": 4, "nthreads": 1, "codec": b.Codec.LZ4})
    s.append_data(rng.randbytes(500_000) + bytes(500_000))
    for _ in range(megabytes - 1):
        s.append_data(rng.randbytes(10**6))
    new = rng.randbytes(600_000) + bytes(400_000)
    before, start = written(), time.perf_counter()
    s.update_data(0, new, copy=False)
    return {"milliseconds": 1000 * (time.perf_counter() - start), "megabytes": (written() - before) / 1e6}


def sealed(name: str, folder: str, count: int) -> Figures:
    """Write chunks of 1 MB, LZ4 at level 1, with and without seals and fingerprint, in turn; each data set."""
    import datasets

    b = package(name)

    def write(content: Any, *, seal: bool) -> float:
        path = f"{folder}/sealed"
        cparams = {"typesize": content.itemsize, "nthreads": 1, "codec": b.Codec.LZ4, "clevel": 1}
        start = time.perf_counter()
        with b.SChunk(chunksize=content.nbytes, urlpath=path, mode="w", cparams=cparams, seal=seal) as s:
            for _ in range(count):
                s.append_data(content)
        seconds = time.perf_counter() - start
        Path(path).unlink()
        return seconds

    costs = {}
    for kind in datasets.MAKERS:
        content = datasets.load(kind, 2**20)
        write(content, seal=True)
        ratios = []
        for n in range(15):
            with_first = n % 2 == 0
            first = write(content, seal=with_first)
            second = write(content, seal=not with_first)
            ratios.append(first / second if with_first else second / first)
        costs[f"{kind}_percent"] = 100 * (statistics.median(ratios) - 1)
    return {"mean_percent": statistics.mean(costs.values()), **costs}


def follow(name: str, folder: str, count: int) -> Figures:
    """Ask a handle for its number of items, which looks whether somebody changed the file."""
    b = package(name)
    figures = {}
    for contiguous, kind in ((True, "file"), (False, "directory")):
        path = f"{folder}/followed-{kind}"
        with b.SChunk(chunksize=1000, urlpath=path, contiguous=contiguous, mode="w") as s:
            for _ in range(10):
                s.append_data(bytes(range(250)) * 4)
        handle = b.open(path, mode="r")
        store = handle._handle.store  # noqa: SLF001 - the look alone
        rounds = []
        for _ in range(9):
            start = time.perf_counter()
            for _ in range(count // 9):
                store.refresh()
            rounds.append(1e6 * (time.perf_counter() - start) / (count // 9))
        figures[f"microseconds_{kind}"] = statistics.median(rounds)
    return figures


def verify(name: str, folder: str, megabytes: int, *, chunksize: int = 10**6) -> Figures:
    """Verify a frame, and read the same file, from the page cache."""
    b = package(name)
    rng = random.Random(6)
    path = f"{folder}/verify"
    with b.SChunk(chunksize=chunksize, urlpath=path, mode="w", cparams={"typesize": 4, "nthreads": 2}) as s:
        for _ in range(megabytes):
            content = rng.randbytes(10**6)
            for at in range(0, 10**6, chunksize):
                s.append_data(content[at : at + chunksize])
    buffer = bytearray(2**20)
    reads, checks = [], []
    for _ in range(7):
        start = time.perf_counter()
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - plain reading
            while file.readinto(buffer):
                pass
        reads.append(time.perf_counter() - start)
        start = time.perf_counter()
        report = b.verify(path)
        checks.append(time.perf_counter() - start)
    ratio = statistics.median(r / c for r, c in zip(reads, checks, strict=True))
    sound = float(report.status == "sound")
    return {"gigabytes_per_s": megabytes / 1000 / statistics.median(checks), "of_reading": ratio, "sound": sound}


def run(job: str, name: str, folder: str, size: int) -> Figures:
    """Do one job in a process of its own."""
    command = [sys.executable, __file__, "--job", job, "--package", name, "--folder", folder, "--size", str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this file itself
    return dict(json.loads(done.stdout.splitlines()[-1]))


JOBS: dict[str, Callable[[str, str, int], Figures | None]] = {
    "appends": appends,
    "sparse appends": lambda name, folder, size: appends(name, folder, size, contiguous=False),
    "update": update,
    "huge": huge,
    "make huge": lambda _, folder, size: make_huge(folder, size),
    "seals": sealed,
    "follow": follow,
    "verify": verify,
    "verify small": lambda name, folder, size: verify(name, folder, size, chunksize=4000),
}


def main() -> None:
    """Measure all rows, or do one job."""
    options = record_parser(__doc__)
    options.add_argument("--scratch", help="directory for the files; a temporary one by default")
    for hidden in ("job", "package", "folder"):
        options.add_argument(f"--{hidden}", help=argparse.SUPPRESS)
    options.add_argument("--size", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.job:
        print(json.dumps(JOBS[given.job](given.package, given.folder, given.size) or {}))
        return
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=given.scratch) as folder:
        figures = measured(folder, quick=given.quick)
    if given.json:
        record = {**surroundings(), "quick": given.quick, "seconds": time.perf_counter() - begun, "rows": figures}
        write_record(given.json, kept(given.json, record, "rows", ("row", "package")) if given.add else record)


def measured(folder: str, *, quick: bool) -> list[dict[str, Any]]:
    """Return all rows, each printed as soon as it is known."""
    small = 10 if quick else 1
    rows: list[tuple[str, str, int, tuple[str, ...]]] = [
        *(
            (f"{count} appends of 400 bytes", "appends", count, PACKAGES if count <= 40_000 else ("superchunk",))
            for count in (10_000 // small, 40_000 // small, 160_000 // small)
        ),
        ("10,000 appends, sparse", "sparse appends", 10_000 // small, PACKAGES),
        ("update of chunk 0, 75 MB", "update", 75 // small, PACKAGES),
        ("open 10,000,000 chunks, read an item", "huge", 10_000_000 // small, PACKAGES),
        ("seals, 1 MB chunks, LZ4 level 1", "seals", 60 // small, ("superchunk",)),
        ("following, each call", "follow", 100_000, ("superchunk",)),
        ("verify, 1 MB chunks, page cache", "verify", 512 // small, ("superchunk",)),
        ("verify, 4 KB chunks, page cache", "verify small", 512 // small, ("superchunk",)),
    ]
    figures = []
    made = False
    for title, job, size, packages in rows:
        if job == "huge" and not made:
            run("make huge", "superchunk", folder, size)
            made = True
        for name in packages:
            rounds = [
                run(job, name, folder, size) for _ in range(1 if job in ("seals", "verify", "verify small") else 3)
            ]
            row: dict[str, Any] = {"row": title, "package": name, "size": size}
            row.update({key: statistics.median(one[key] for one in rounds) for key in rounds[0]})
            figures.append(row)
            print(f"{title:<40} {name:<11}", *(f"{key} {row[key]:.4g}" for key in rounds[0]), flush=True)
    return figures


if __name__ == "__main__":
    main()
