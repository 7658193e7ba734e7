"""``make lab``, or ``python -m crashlab`` in ``tests``: try many states, and tell what came out."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time

from crashlab.laboratory import run, shrunk

_IN_MEMORY = "/dev/shm"  # noqa: S108 - a directory of our own is made in it
_TOLD = 5


def _folder() -> str:
    """Return where temporary files are kept in memory, else where the system keeps them."""
    return _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else tempfile.gettempdir()


def main() -> int:
    """Run the laboratory; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m crashlab", description=__doc__)
    parser.add_argument("--states", type=int, default=100_000, help="states to try at least (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="first of the drawn workloads (default: %(default)s)")
    parser.add_argument("--arrays", action="store_true", help="with arrays, instead of super-chunks")
    parser.add_argument("--folder", default=_folder(), help="where to work (default: %(default)s)")
    parser.add_argument("--shrink", action="store_true", help="look for the shortest recipe of the first failures")
    options = parser.parse_args()
    start = time.monotonic()

    def progress(tried: int) -> None:
        sys.stderr.write(f"\r{tried} states, {(time.monotonic() - start):.0f} s ")
        sys.stderr.flush()

    with tempfile.TemporaryDirectory(dir=options.folder, prefix="crashlab-") as folder:
        report = run(options.states, options.seed, folder, arrays=options.arrays, progress=progress)
        spent = time.monotonic() - start
        told = [f"\n{report}", f"{spent:.1f} s, {spent / max(report.total.tried, 1) * 1e6:.0f} µs a state"]
        for workload, tally in report.broken[:_TOLD]:
            least = shrunk(workload, folder) if options.shrink else workload
            told.append(f"\n{workload.name}: {least}")
            told.extend(f"  {failure}" for failure in tally.failures[:_TOLD])
        if len(report.broken) > _TOLD:
            told.append(f"\n{len(report.broken) - _TOLD} more workloads with failures")
    sys.stdout.write("\n".join(told) + "\n")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
