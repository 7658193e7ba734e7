"""The whole suite: the matrix of chunks, the work of users, the demonstration; records, tables and the picture.

``make bench`` runs it and writes benchmarks/results, docs/benchmarks.md, the picture and the README's tables anew;
``make bench-quick`` takes less than three minutes and writes to benchmarks/out only. Parts can be
chosen with ``--part``, and run by themselves with options of their own: `matrix.py`, `work.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matrix
import matrix_summary
import picture
import report
import work
import work_summary
from pairs import parser, results_here, surroundings, write_record

if TYPE_CHECKING:
    from collections.abc import Callable

OUT = Path(__file__).parent / "out"
DEMO = Path(__file__).parents[1] / "examples" / "demo" / "demo.py"


def measure_matrix(*, quick: bool) -> dict[str, Any]:
    """Measure the cells."""
    return matrix.measure(matrix.arguments(["--quick"] if quick else []))


def measure_work(*, quick: bool) -> dict[str, Any]:
    """Measure the work of users."""
    return work.measure(work.arguments(["--quick"] if quick else []))


def measure_demo(*, quick: bool) -> dict[str, Any]:
    """Run the demonstration, which takes seconds, quick or not."""
    folder = OUT / "demo"
    command = [sys.executable, str(DEMO), "-o", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    rows = json.loads((folder / "demo.json").read_text(encoding="utf-8"))
    return {**surroundings(), "quick": quick, "rows": rows}


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "matrix": measure_matrix,
    "work": measure_work,
    "demo": measure_demo,
}


def main() -> None:
    """Measure the parts, print the table, and write what shows it."""
    options = parser(__doc__)
    options.add_argument("--part", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    chosen = options.parse_args()
    folder = OUT if chosen.quick else results_here()
    folder.mkdir(parents=True, exist_ok=True)
    records = {}
    for part in chosen.part:
        records[part] = PARTS[part](quick=chosen.quick)
        write_record(folder / f"{part}.json", records[part])
    print()
    if "matrix" in records:
        matrix_summary.print_summary(records["matrix"])
    for one in work_summary.asked(records["work"]) if "work" in records else ():
        print(f"    {one}")
    if not chosen.quick:
        report.main()
    elif "matrix" in records:
        picture.draw(records["matrix"], OUT / "benchmarks.png")
    print(f"\nrecords: {folder}/")


if __name__ == "__main__":
    main()
