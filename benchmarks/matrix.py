"""Chunks against `blosc2`, cell by cell: codec, filter, data, threads.

Run it with ``make bench`` or ``python benchmarks/matrix.py``. Both packages compress and decompress the
same buffer in turn, several times, in one process; a cell's figure is the median of the ratios of its
rounds, theirs over ours, so above 1 is faster. Decompression goes into an array that exists already.
Nothing here passes or fails: the numbers are printed, and written as JSON with `--json`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import blosc2
import datasets
import numpy as np
from pairs import Effort, rounds, surroundings

import superchunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

CODECS = ("BLOSCLZ", "LZ4", "LZ4HC", "ZLIB", "ZSTD")
FILTERS = ("NOFILTER", "SHUFFLE", "BITSHUFFLE")
HEAD = (
    f"{'data':<11}{'codec':<9}{'filter':<11}{'threads':>7} {'cratio':>8} {'size':>6}"
    f" {'comp MB/s':>10} {'ratio':>6} {'decomp MB/s':>12} {'ratio':>6}"
)
ROW = (
    "{data:<11}{codec:<9}{filter:<11}{nthreads:>7} {cratio:>8.2f} {size:>6.3f}"
    " {compress_mb_s:>10.0f} {compress_ratio:>6.2f} {decompress_mb_s:>12.0f} {decompress_ratio:>6.2f}"
)

Cell: TypeAlias = dict[str, Any]


def cell(data: NDArray[Any], codec: str, filter_: str, *, clevel: int, nthreads: int, effort: Effort) -> Cell:
    """Measure one cell."""
    ours_params, theirs_params = (
        package.CParams(
            codec=package.Codec[codec],
            filters=[package.Filter.NOFILTER] * 5 + [package.Filter[filter_]],
            clevel=clevel,
            typesize=data.itemsize,
            nthreads=nthreads,
        )
        for package in (superchunk, blosc2)
    )
    ours_d, theirs_d = superchunk.DParams(nthreads=nthreads), blosc2.DParams(nthreads=nthreads)
    out = np.empty_like(data)
    a = superchunk.compress2(data, cparams=ours_params)
    b = blosc2.compress2(data, cparams=theirs_params)
    superchunk.decompress2(a, dst=out, dparams=ours_d)
    if not np.array_equal(out.view("u1"), data.view("u1")):
        sys.exit(f"{codec} {filter_}: what came back differs")
    compress = rounds(
        lambda: superchunk.compress2(data, cparams=ours_params),
        lambda: blosc2.compress2(data, cparams=theirs_params),
        effort,
    )
    # Copies in several places, because how source and destination lie to each other in memory is luck.
    ours_chunks, theirs_chunks = (
        itertools.cycle([memoryview(bytes(n) + chunk)[n:] for n in (0, 1000, 2064, 40_000)]) for chunk in (a, b)
    )
    decompress = rounds(
        lambda: superchunk.decompress2(next(ours_chunks), dst=out, dparams=ours_d),
        lambda: blosc2.decompress2(next(theirs_chunks), dst=out, dparams=theirs_d),
        effort,
    )
    return {
        "codec": codec.lower(),
        "filter": filter_.lower(),
        "nthreads": nthreads,
        "clevel": clevel,
        "compress_mb_s": data.nbytes / compress.seconds / 1e6,
        "compress_ratio": compress.ratio,
        "decompress_mb_s": data.nbytes / decompress.seconds / 1e6,
        "decompress_ratio": decompress.ratio,
        "size": len(a) / len(b),
        "cratio": data.nbytes / len(a),
    }


def geometric(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.fmean(math.log(value) for value in values))


def summary(cells: list[Cell]) -> None:
    """Print means and extremes."""
    for direction in ("compress", "decompress"):
        key = f"{direction}_ratio"
        worst = min(cells, key=lambda one: one[key])
        where = f"{worst['data']} {worst['codec']} {worst['filter']}, {worst['nthreads']} threads"
        mean = geometric([one[key] for one in cells])
        print(f"{direction}: geometric mean {mean:.2f}, least {worst[key]:.2f} ({where}), {len(cells)} cells")
        for codec in dict.fromkeys(one["codec"] for one in cells):
            some = [one[key] for one in cells if one["codec"] == codec]
            print(f"    {codec:<9} mean {geometric(some):.2f}, least {min(some):.2f}")
    sizes = [one["size"] for one in cells]
    print(f"size: geometric mean {geometric(sizes):.4f}, largest {max(sizes):.4f} of theirs")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codecs", nargs="+", default=CODECS, type=str.upper)
    parser.add_argument("--filters", nargs="+", default=FILTERS, type=str.upper)
    parser.add_argument("--data", nargs="+", default=tuple(datasets.MAKERS))
    parser.add_argument("--threads", nargs="+", default=(1, 2), type=int)
    parser.add_argument("--clevel", default=5, type=int)
    parser.add_argument("--mb", default=8.0, type=float, help="size of each data set")
    parser.add_argument("--rounds", default=5, type=int, help="least rounds for each cell and direction")
    parser.add_argument("--seconds", default=0.15, type=float, help="keep going this long")
    parser.add_argument("--json", type=Path, help="write the cells here, with machine and versions")
    return parser.parse_args()


def main() -> None:
    """Measure the matrix and print it."""
    args = arguments()
    effort = Effort(rounds=args.rounds, seconds=args.seconds)
    cells: list[Cell] = []
    print(HEAD)
    for name in args.data:
        data = datasets.load(name, int(args.mb * 1e6))
        for codec, filter_, nthreads in itertools.product(args.codecs, args.filters, args.threads):
            one = cell(data, codec, filter_, clevel=args.clevel, nthreads=nthreads, effort=effort)
            cells.append({"data": name, **one})
            print(ROW.format(data=name, **one), flush=True)
    summary(cells)
    if args.json:
        record = {
            **surroundings(),
            "arguments": {key: value for key, value in vars(args).items() if key != "json"},
            "cells": cells,
        }
        args.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
