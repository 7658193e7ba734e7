"""Kill writers at random moments, and tell what they left.

Run it with ``python benchmarks/kills.py`` (500 kills, a quarter of a minute; ``--kills`` and ``--seed`` for others).
A writer appends, inserts, updates, deletes, changes metalayers, runs transactions, flushes, compacts, replaces the
frame and opens it anew; it is killed with SIGKILL at a random moment of its first 30 milliseconds, and the next one
goes on with what it left. Whatever it is that is left: it must open, be a state between the last commit that the
writer acknowledged and the last operation that it began, and have sound seals. The first that is not ends the run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from kill_loop import KillLoop


def main() -> None:
    """Kill as often as asked, and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sparse", action="store_true", help="a directory instead of one file")
    parser.add_argument("--folder", help="where the frame is; a temporary directory if not given")
    parser.add_argument("--json", action="store_true", help="print a record instead of lines")
    chosen = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        with KillLoop(f"{folder}/data.b2frame", contiguous=not chosen.sparse, seed=chosen.seed) as loop:
            for kill in range(chosen.kills):
                loop.round()
                loop.verify()
                if sys.stderr.isatty():
                    print(f"\r{kill + 1} kills", end="", file=sys.stderr)
        record = {
            "kills": chosen.kills,
            "seed": chosen.seed,
            "frame": "sparse" if chosen.sparse else "contiguous",
            "seconds": round(time.perf_counter() - start, 1),
            "operations_done": loop.done,
            "done_but_waiting_and_gone": loop.lost,
            "killed_during": {name or "nothing": count for name, count in loop.during.most_common()},
            "unopenable": 0,
            "torn": 0,
            "stray_files": len(loop.strays()),
        }
    if chosen.json:
        print(json.dumps(record))
        return
    for name, value in record.items():
        print(f"{name.replace('_', ' '):28} {value}")


if __name__ == "__main__":
    main()
