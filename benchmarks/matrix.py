"""Chunks against `blosc2`, cell by cell: codec, filter, data, threads.

Run it with ``make bench`` or ``python benchmarks/matrix.py``. Both packages compress and decompress the
same buffer in turn, several times, in one process; a cell's figure is the median of the ratios of its
rounds, theirs over ours, so above 1 is faster. Decompression goes into an array that exists already.
Nothing here passes or fails: the numbers are printed, and written as JSON with `--json`.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import blosc2
import datasets
import numpy as np

import superchunk

if TYPE_CHECKING:
    from collections.abc import Callable

CODECS = ("BLOSCLZ", "LZ4", "LZ4HC", "ZLIB", "ZSTD")
FILTERS = ("NOFILTER", "SHUFFLE", "BITSHUFFLE")


def once(function: Callable[[], Any]) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def rounds(ours: Callable[[], Any], theirs: Callable[[], Any], *, least: int, seconds: float) -> tuple[float, float, float]:
    """Call both in turn; return the medians of our seconds, of theirs, and of their ratio."""
    ours()
    theirs()
    pairs: list[tuple[float, float]] = []
    begun = time.perf_counter()
    while len(pairs) < least or (time.perf_counter() - begun < seconds and len(pairs) < 50):
        if len(pairs) % 2:
            b = once(theirs)
            a = once(ours)
        else:
            a = once(ours)
            b = once(theirs)
        pairs.append((a, b))
    ratio = statistics.median(b / a for a, b in pairs)
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs), ratio


def cell(data: np.ndarray[Any, Any], codec: str, filter_: str, *, clevel: int, nthreads: int, args: argparse.Namespace) -> dict[str, Any]:
    """Measure one cell."""
    filters = [0, 0, 0, 0, 0, getattr(superchunk.Filter, filter_).value]
    common = {"clevel": clevel, "typesize": data.itemsize, "nthreads": nthreads}
    ours_params = superchunk.CParams(codec=superchunk.Codec[codec], filters=[superchunk.Filter(f) for f in filters], **common)
    theirs_params = blosc2.CParams(codec=blosc2.Codec[codec], filters=[blosc2.Filter(f) for f in filters], **common)
    out = np.empty_like(data)
    a = superchunk.compress2(data, cparams=ours_params)
    b = blosc2.compress2(data, cparams=theirs_params)
    superchunk.decompress2(a, dst=out)
    if not np.array_equal(out.view("u1"), data.view("u1")):
        sys.exit(f"{codec} {filter_}: what came back differs")
    ours_d, theirs_d = superchunk.DParams(nthreads=nthreads), blosc2.DParams(nthreads=nthreads)
    compress = rounds(
        lambda: superchunk.compress2(data, cparams=ours_params),
        lambda: blosc2.compress2(data, cparams=theirs_params),
        least=args.rounds,
        seconds=args.seconds,
    )
    decompress = rounds(
        lambda: superchunk.decompress2(a, dst=out, dparams=ours_d),
        lambda: blosc2.decompress2(b, dst=out, dparams=theirs_d),
        least=args.rounds,
        seconds=args.seconds,
    )
    return {
        "codec": codec.lower(),
        "filter": filter_.lower(),
        "nthreads": nthreads,
        "clevel": clevel,
        "compress_mb_s": data.nbytes / compress[0] / 1e6,
        "compress_ratio": compress[2],
        "decompress_mb_s": data.nbytes / decompress[0] / 1e6,
        "decompress_ratio": decompress[2],
        "size": len(a) / len(b),
        "cratio": data.nbytes / len(a),
    }


def geometric(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.fmean(math.log(value) for value in values))


def main() -> None:
    """Measure the matrix and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codecs", nargs="+", default=CODECS, type=str.upper)
    parser.add_argument("--filters", nargs="+", default=FILTERS, type=str.upper)
    parser.add_argument("--data", nargs="+", default=datasets.NAMES)
    parser.add_argument("--threads", nargs="+", default=(1, 2), type=int)
    parser.add_argument("--clevel", default=5, type=int)
    parser.add_argument("--mb", default=8.0, type=float, help="size of each data set")
    parser.add_argument("--rounds", default=5, type=int, help="least rounds for each cell and direction")
    parser.add_argument("--seconds", default=0.15, type=float, help="keep going this long")
    parser.add_argument("--json", type=Path, help="write the cells here, with machine and versions")
    args = parser.parse_args()
    cells = []
    print(f"{'data':<11}{'codec':<9}{'filter':<11}{'thr':>3} {'cratio':>8} {'size':>6} {'comp MB/s':>10} {'x':>6} {'decomp MB/s':>12} {'x':>6}")
    for name in args.data:
        data = datasets.load(name, int(args.mb * 1e6))
        for codec in args.codecs:
            for filter_ in args.filters:
                for nthreads in args.threads:
                    one = cell(data, codec, filter_, clevel=args.clevel, nthreads=nthreads, args=args)
                    cells.append({"data": name, **one})
                    print(
                        f"{name:<11}{one['codec']:<9}{one['filter']:<11}{nthreads:>3} {one['cratio']:>8.2f} {one['size']:>6.3f} "
                        f"{one['compress_mb_s']:>10.0f} {one['compress_ratio']:>6.2f} {one['decompress_mb_s']:>12.0f} {one['decompress_ratio']:>6.2f}",
                        flush=True,
                    )
    for direction in ("compress", "decompress"):
        ratios = [one[f"{direction}_ratio"] for one in cells]
        worst = min(cells, key=lambda one: one[f"{direction}_ratio"])
        where = f"{worst['data']} {worst['codec']} {worst['filter']} {worst['nthreads']}"
        print(f"{direction}: geometric mean {geometric(ratios):.2f}, least {min(ratios):.2f} ({where}), {len(ratios)} cells")
        for codec in dict.fromkeys(one["codec"] for one in cells):
            some = [one[f"{direction}_ratio"] for one in cells if one["codec"] == codec]
            print(f"    {codec:<9} mean {geometric(some):.2f}, least {min(some):.2f}")
    sizes = [one["size"] for one in cells]
    print(f"size: geometric mean {geometric(sizes):.4f}, largest {max(sizes):.4f} of theirs")
    if args.json:
        record = {
            "machine": {"processor": platform.processor() or platform.machine(), "system": platform.platform()},
            "versions": {
                "superchunk": superchunk.__version__,
                "blosc2": blosc2.__version__,
                "c-blosc2": blosc2.VERSION_STRING,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
            "arguments": {key: value for key, value in vars(args).items() if key != "json"},
            "cells": cells,
        }
        args.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
