"""Where the time of a cell goes: the codec's library, our codec, filters, copies, the system, the rest.

Needs Linux's ``perf``. ``python benchmarks/shares.py --json benchmarks/results/amd-epyc/shares.json`` takes the same
cells as ``matrix.py`` and calls each for a moment while ``perf`` takes samples; the clock says which sample belongs
to which cell, the name of the function which part it belongs to.

`shares_summary.py` makes the table of it, and says what it limits.
"""

from __future__ import annotations

import bisect
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import datasets
import numpy as np
from matrix import arguments as matrix_arguments
from matrix import cell_parser, settings
from pairs import keep_memory, kept, surroundings, write_record
from shares_summary import print_shares

import superchunk

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Iterator

    from matrix import Setting
    from numpy.typing import NDArray

PARTS: dict[str, str] = {
    "copies": r"memmove|memcpy|memset|superchunk_engine::copy|::copy_plain",
    "own": r"superchunk_engine::codecs",
    "filters": r"superchunk_engine::filters",
    "library": r"^zlib_rs::|^[^:]+$",
    "engine": "",
}
"""What the functions of a part of the engine are called; the first that fits counts. `own` is what we wrote ourselves
of a codec, and names without a colon are of C, thus of a codec's library."""
SYSTEM, REST = "system", "rest"
ALL_PARTS = (*PARTS, SYSTEM, REST)
NAMES = ("data", "codec", "level", "filters", "direction")
"""What says which cell it is."""
RATE = 5000
"""Samples a second."""
SAMPLE = re.compile(r"\s*(\d+\.\d+):\s+[0-9a-f]*\s*(.*) \((.*)\)$")


class Span(NamedTuple):
    """When which cell was at work, by the clock that `perf` writes down."""

    start: float
    stop: float
    cell: tuple[str, str, int, str, str]
    """What `NAMES` says."""


def part_of(symbol: str, library: str) -> str:
    """Return the part that a function of a library belongs to."""
    if "kernel" in library or library == "[vdso]":
        return SYSTEM
    if "_engine" not in library:
        return "copies" if re.search(PARTS["copies"], symbol) else REST
    return next(part for part, pattern in PARTS.items() if re.search(pattern, symbol))


def work(data: NDArray[Any], setting: Setting) -> Iterator[tuple[str, Callable[[], object]]]:
    """Return the calls of a cell."""
    cparams = setting.cparams(superchunk, data.itemsize)
    dparams = superchunk.DParams(nthreads=setting.threads)
    chunk = superchunk.compress2(data, cparams=cparams)
    out = np.empty_like(data)
    yield "compress", lambda: superchunk.compress2(data, cparams=cparams)
    yield "decompress", lambda: superchunk.decompress2(chunk, dst=out, dparams=dparams)


def run(chosen: Namespace) -> None:
    """Call each cell for a moment and print when: what `perf` watches."""
    keep_memory()
    for name in chosen.data:
        data = datasets.load(name, int(chosen.mib * 2**20))
        for setting in settings(chosen, data.dtype):
            for direction, call in work(data, setting):
                call()
                start = time.monotonic()
                while time.monotonic() < start + chosen.seconds:
                    call()
                stop = time.monotonic()
                print(start, stop, name, setting.codec, setting.level, setting.filters, direction, flush=True)


def spans(lines: Iterable[str]) -> Iterator[Span]:
    """Read what `run` printed."""
    for line in lines:
        start, stop, data, codec, level, filters, direction = line.split()
        yield Span(float(start), float(stop), (data, codec, int(level), filters, direction))


def counted(found: list[Span], samples: Iterable[str]) -> dict[tuple[Any, ...], Counter[str]]:
    """Return the number of samples of each cell, by part."""
    starts = [span.start for span in found]
    counts: dict[tuple[Any, ...], Counter[str]] = {span.cell: Counter() for span in found}
    for line in samples:
        match = SAMPLE.match(line)
        if not match:
            continue
        moment = float(match[1])
        at = bisect.bisect(starts, moment) - 1
        if at >= 0 and moment < found[at].stop:
            counts[found[at].cell][part_of(match[2], match[3])] += 1
    return counts


def watched() -> dict[tuple[Any, ...], Counter[str]]:
    """Run the cells of the command line under `perf` and return the samples of each."""
    with tempfile.TemporaryDirectory() as folder:
        record = str(Path(folder) / "perf.data")
        command = [
            "perf",
            "record",
            "-q",
            "-k",
            "CLOCK_MONOTONIC",
            "-e",
            "cpu-clock",
            "-F",
            str(RATE),
            "-o",
            record,
            "--",
        ]
        command += [sys.executable, __file__, "--run", *sys.argv[1:]]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603 - this file
        script = ["perf", "script", "-i", record, "-F", "time,ip,sym,dso"]
        listed = subprocess.run(script, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # noqa: S603
        return counted(list(spans(printed.splitlines())), listed.stdout.splitlines())


def measure() -> dict[str, Any]:
    """Return the record: the shares of each cell, both ways."""
    begun = time.perf_counter()
    rows: list[dict[str, Any]] = []
    for cell, count in watched().items():
        total = count.total()
        shares = {part: count[part] / total if total else 0.0 for part in ALL_PARTS}
        rows.append({**dict(zip(NAMES, cell, strict=True)), "samples": total, "shares": shares})
    return {**surroundings(), "seconds": time.perf_counter() - begun, "cells": rows}


def arguments() -> Namespace:
    """Read the command line."""
    options = cell_parser(__doc__)
    options.add_argument("--seconds", type=float, default=0.1, help="for each cell and direction [0.1]")
    options.add_argument("--run", action="store_true", help="do the work that is to be watched, and no more")
    chosen = matrix_arguments(options=options)
    chosen.threads = [1]
    return chosen


def main() -> None:
    """Measure, and print the shares of each codec and filter."""
    chosen = arguments()
    if chosen.run:
        run(chosen)
        return
    if not shutil.which("perf"):
        sys.exit("shares.py needs Linux's perf, in Debian the package linux-perf")
    record = measure()
    if chosen.add and chosen.json:
        record = kept(chosen.json, record, "cells", NAMES)
    print_shares(record)
    if chosen.json:
        write_record(chosen.json, record)


if __name__ == "__main__":
    main()
