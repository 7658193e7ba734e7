"""Readers against a writer: torn reads, which there must be none of, and what the writer costs them.

Run it with ``python benchmarks/readers.py`` (two minutes; ``--seconds``, ``--readers``). Half the time the readers are
alone, half beside a writer that appends, updates, deletes, compacts and replaces the frame, a transaction at a time.
All are processes of their own; with fewer processors than processes the writer takes its share of them from the
readers. Most of a reader's time goes into checking what it read.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fire import Process, Writer


def measure(path: str, readers: int, seconds: float, *, contiguous: bool, sync: str = "") -> dict[str, float]:
    """Let readers read for some seconds, beside a writer if `sync` says how it waits for the disk."""
    writer = Process("write", path, 1, sync, contiguous) if sync else None
    hows = ("following", "following", "anew", "pinned")
    started = [Process("read", path, n, hows[n % 4], contiguous) for n in range(readers)]
    time.sleep(seconds)
    total: Counter[str] = Counter()
    for reader in started:
        counts, complaints = reader.stop()
        total += counts
        if complaints:
            print(complaints, file=sys.stderr)
    span = total["milliseconds"] / 1000 / readers
    figures = {
        "reads": total["reads"],
        "torn": total["torn"],
        "states seen": total["states"],
        "reads per second": round(total["reads"] / span, 1),
        "MB per second": round(total["bytes"] / span / 1e6, 1),
    }
    if writer is not None:
        figures |= {f"writer's {name}": count for name, count in sorted(writer.stop()[0].items())}
    return figures


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--sync", choices=("never", "explicit", "commit"), default="explicit")
    parser.add_argument("--sparse", action="store_true", help="a directory instead of one file")
    parser.add_argument("--json", action="store_true", help="print a record instead of lines")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/data.b2frame"
        contiguous = not chosen.sparse
        Writer(path, contiguous=contiguous).schunk.close()
        measured = {
            "alone": measure(path, chosen.readers, chosen.seconds, contiguous=contiguous),
            "beside a writer": measure(path, chosen.readers, chosen.seconds, contiguous=contiguous, sync=chosen.sync),
        }
    if chosen.json:
        print(
            json.dumps(
                {
                    "readers": chosen.readers,
                    "frame": "sparse" if chosen.sparse else "contiguous",
                    "processors": os.cpu_count(),
                    **measured,
                }
            )
        )
        return
    print(f"{chosen.readers} readers, {chosen.seconds:.0f} s, {os.cpu_count()} processors")
    for when, figures in measured.items():
        print(when)
        for name, value in figures.items():
            print(f"  {name:24} {value}")


if __name__ == "__main__":
    main()
