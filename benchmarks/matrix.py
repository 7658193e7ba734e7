"""Chunks against `blosc2`, cell by cell: codec, level, filters, data, threads.

Run it with ``make bench-matrix`` or, for some of the cells, for example
``python benchmarks/matrix.py --codec lz4 zlib --level 5 --filter bitshuffle --data climate text --threads 1``.

Both packages compress and decompress the same buffer in turn, several times, in one process; a cell's figure is
the median of the ratios of its rounds, theirs over ours, so above 1 is faster. Before that, both read both chunks, and
all four must agree with what went in. Decompression goes into an array that exists already, and the allocator
keeps what it has, so nobody pays for fresh pages. A cell in which we seem slower is measured on, and all of its rounds
count. Nothing here passes or fails: the numbers are printed, and written as JSON with `--json`.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import blosc2
import datasets
import numpy as np
from matrix_summary import NAMES, Cell, print_summary
from pairs import OURS, THEIRS, Effort, keep_memory, kept, record_parser, surroundings, take_turns, write_record

import superchunk

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from pairs import Turns

CODECS = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
LEVELS = (1, 5, 9)
FILTERS = ("none", "shuffle", "bitshuffle", "composed")
COMPOSED = {
    "blosclz": "delta+shuffle",
    "lz4": "shuffle+bytedelta",
    "lz4hc": "trunc_prec+bitshuffle",
    "zlib": "delta+shuffle",
    "zstd": "shuffle+bytedelta",
}
"""The composed pipeline that each codec is tried with."""
NOT_FLOAT = "delta+shuffle"
"""Instead of truncated precision, for items that are no floats."""
KEPT_BITS = 10
"""Bits of the mantissa that truncated precision keeps."""
HEAD = (
    f"{'data':<11}{'codec':<8}{'level':>5} {'filters':<22}{'threads':>7} {'ratio':>7} {'size':>6}"
    f" {'comp MB/s':>10} {'x':>6} {'decomp MB/s':>12} {'x':>6}"
)
ROW = (
    "{data:<11}{codec:<8}{level:>5} {filters:<22}{threads:>7} {ratio:>7.2f} {size:>6.3f}"
    " {compress:>10.0f} {compress_x:>6.2f} {decompress:>12.0f} {decompress_x:>6.2f}"
)
FULL = Effort(rounds=3, seconds=0.06, patience=1.5)
QUICK = Effort(rounds=3, seconds=0.02, patience=0.4)
AGAIN = 3
"""How much longer a cell is measured in which we seem slower."""


class Setting(NamedTuple):
    """How a cell compresses."""

    codec: str
    level: int
    filters: str
    """Names in order, joined by a plus sign."""
    threads: int

    def cparams(self, package: Any, itemsize: int) -> Any:
        """Return the parameters for one of the packages."""
        steps = [] if self.filters == "none" else self.filters.split("+")
        metas = {"trunc_prec": KEPT_BITS, "bytedelta": itemsize}
        filters = [package.Filter[step.upper()] for step in steps]
        return package.CParams(
            codec=package.Codec[self.codec.upper()],
            clevel=self.level,
            filters=[package.Filter.NOFILTER] * (6 - len(steps)) + filters,
            filters_meta=[0] * (6 - len(steps)) + [metas.get(step, 0) for step in steps],
            typesize=itemsize,
            nthreads=self.threads,
        )


def pipeline(name: str, codec: str, dtype: np.dtype[Any]) -> str:
    """Return the filters that a name stands for; `composed` depends on the codec and on the items."""
    if name != "composed":
        return name
    found = COMPOSED[codec]
    return NOT_FLOAT if "trunc_prec" in found and dtype.kind != "f" else found


def settings(chosen: Namespace, dtype: np.dtype[Any]) -> Iterator[Setting]:
    """Return the settings that the command line asks for."""
    for codec, filter_, level, threads in itertools.product(chosen.codec, chosen.filter, chosen.level, chosen.threads):
        yield Setting(codec, level, pipeline(filter_, codec, dtype), threads)


def expected(data: NDArray[Any], filters: str) -> NDArray[Any]:
    """Return what reading must give: the data, or floats with their last bits cleared."""
    if "trunc_prec" not in filters:
        return data
    words = data.view(f"u{data.itemsize}")
    cleared = np.finfo(data.dtype).nmant - KEPT_BITS
    found: NDArray[Any] = words >> words.dtype.type(cleared) << words.dtype.type(cleared)
    return found


def verify(data: NDArray[Any], setting: Setting, chunks: dict[Any, Any], out: NDArray[Any]) -> None:
    """End the program if one of the packages reads one of the chunks as something else."""
    wanted = expected(data, setting.filters).view("u1")
    for writer, reader in itertools.product(chunks, repeat=2):
        out.view("u1")[:] = 0
        reader.decompress2(chunks[writer], dst=out, dparams=reader.DParams(nthreads=setting.threads))
        if not np.array_equal(out.view("u1"), wanted):
            sys.exit(f"{setting}: what {writer.__name__} wrote and {reader.__name__} read differs")


def until_sure(calls: dict[str, Callable[[], Any]], effort: Effort) -> Turns:
    """Measure, and measure on where we seem slower."""
    turns = take_turns(calls, effort)
    if turns.ratio(THEIRS) < 1 and len(turns) > 1:
        more = take_turns(calls, effort._replace(rounds=AGAIN * effort.rounds, seconds=AGAIN * effort.seconds))
        for name, seconds in more.seconds.items():
            turns.seconds[name] += seconds
    return turns


def cell(name: str, data: NDArray[Any], setting: Setting, effort: Effort) -> Cell:
    """Measure one cell."""
    packages = {OURS: superchunk, THEIRS: blosc2}
    chunks: dict[Any, Any] = {}
    out = np.empty_like(data)

    def compressing(package: Any) -> Callable[[], None]:
        cparams = setting.cparams(package, data.itemsize)

        def call() -> None:
            chunks[package] = package.compress2(data, cparams=cparams)

        return call

    def decompressing(package: Any) -> Callable[[], None]:
        dparams = package.DParams(nthreads=setting.threads)
        # Copies in several places, because how source and destination lie to each other in memory is luck.
        copies = itertools.cycle([memoryview(bytes(n) + chunks[package])[n:] for n in (0, 1000, 2064, 40_000)])
        return lambda: package.decompress2(next(copies), dst=out, dparams=dparams)

    compress = until_sure({one: compressing(package) for one, package in packages.items()}, effort)
    verify(data, setting, chunks, out)
    decompress = until_sure({one: decompressing(package) for one, package in packages.items()}, effort)
    ours, theirs = (len(chunks[package]) for package in packages.values())
    return Cell(
        data=name,
        held_out=name in datasets.HELD_OUT,
        **setting._asdict(),
        ratio=data.nbytes / ours,
        ratio_theirs=data.nbytes / theirs,
        size=ours / theirs,
        compress=data.nbytes / compress.median(OURS) / 1e6,
        compress_theirs=data.nbytes / compress.median(THEIRS) / 1e6,
        compress_x=compress.ratio(THEIRS),
        decompress=data.nbytes / decompress.median(OURS) / 1e6,
        decompress_theirs=data.nbytes / decompress.median(THEIRS) / 1e6,
        decompress_x=decompress.ratio(THEIRS),
        rounds=min(len(compress), len(decompress)),
    )


def memory_copy(nbytes: int) -> float:
    """Return the GB/s at which one core copies as much memory: the limit."""
    source, target = np.ones(nbytes, "u1"), np.ones(nbytes, "u1")
    calls = {OURS: lambda: np.copyto(target, source)}
    return nbytes / take_turns(calls, Effort(rounds=20, seconds=0.1)).median(OURS) / 1e9


def measure(chosen: Namespace) -> dict[str, Any]:
    """Measure the chosen cells, print each, and return the record."""
    keep_memory()
    begun = time.perf_counter()
    nbytes = int(chosen.mib * 2**20)
    cells: list[Cell] = []
    print(HEAD)
    for name in chosen.data:
        data = datasets.load(name, nbytes)
        for setting in settings(chosen, data.dtype):
            cells.append(cell(name, data, setting, QUICK if chosen.quick else FULL))
            print(ROW.format(**cells[-1]._asdict()), flush=True)
    return {
        **surroundings(),
        "quick": chosen.quick,
        "seconds": time.perf_counter() - begun,
        "nbytes": nbytes,
        "memory_copy_gb_s": memory_copy(nbytes),
        "cells": [one._asdict() for one in cells],
    }


def cell_parser(doc: str | None) -> ArgumentParser:
    """Return a parser with the options that choose cells."""
    options = record_parser(doc)
    names = sorted({*FILTERS, *COMPOSED.values()})
    options.add_argument("--codec", nargs="+", choices=CODECS, default=CODECS)
    options.add_argument("--level", nargs="+", type=int, choices=range(10), metavar="0-9", help="[1 5 9; quick: 1 5]")
    options.add_argument("--filter", nargs="+", choices=names, default=FILTERS)
    options.add_argument("--data", nargs="+", choices=tuple(datasets.MAKERS), default=tuple(datasets.MAKERS))
    options.add_argument("--threads", nargs="+", type=int, help="[1 and all; quick: 1]")
    options.add_argument("--mib", type=float, help="size of each data set [4; quick: 1]")
    return options


def arguments(given: list[str] | None = None, options: ArgumentParser | None = None) -> Namespace:
    """Read the command line."""
    chosen = (options or cell_parser(__doc__)).parse_args(given)
    chosen.level = chosen.level or (LEVELS[:2] if chosen.quick else LEVELS)
    chosen.threads = chosen.threads or ([1] if chosen.quick else sorted({1, os.cpu_count() or 1}))
    chosen.mib = chosen.mib or (1.0 if chosen.quick else 4.0)
    return chosen


def main() -> None:
    """Measure the matrix and print it."""
    chosen = arguments()
    record = measure(chosen)
    if chosen.add and chosen.json:
        record = kept(chosen.json, record, "cells", NAMES)
    print()
    print_summary(record)
    if chosen.json:
        write_record(chosen.json, record)


if __name__ == "__main__":
    main()
