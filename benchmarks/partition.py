"""What block and chunk sizes cost and save: the measurements behind docs/partitions.md.

::

    python benchmarks/partition.py [--quick] [--only NAME] [--json benchmarks/results/partition.json [--add]]

Each array is written to disk by the package blosc2, at its default level with shuffle: once as it cuts it by
default, and once for each block size here, with chunks and blocks from `superchunk`. superchunk and, for
its own choice, blosc2 then read single items, small boxes and one index of each axis; the figures are the best of
several rounds, with one thread for each package.
"""

from __future__ import annotations

import json
import platform
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import blosc2
import numpy as np
from pairs import record_parser

import superchunk
from superchunk._array import partition

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKS = (1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17)
STRETCHES = (1.0, 8.0, 32.0, 128.0)
DEFAULTS = (partition.BLOCK_NBYTES, partition.STRETCH)


def arrays() -> dict[str, Callable[[], np.ndarray[Any, Any]]]:
    """Return arrays of the kinds that people store, by name."""
    rng = np.random.default_rng(5)

    def waves(*shape: int) -> np.ndarray[Any, Any]:
        grid = np.ogrid[tuple(slice(0, n) for n in shape)]
        total = np.zeros(shape)
        for number, axis in enumerate(grid):
            total = total + np.sin(axis / (9 + 4 * number)) * (20 + number)
        return total

    return {
        "range": lambda: np.arange(2048 * 4096).reshape(2048, 4096),
        "counts": lambda: np.arange(2048 * 2048).reshape(2048, 2048) // 7 + rng.integers(0, 1000, (2048, 2048)),
        "waves": lambda: np.round(waves(1500, 2000) + rng.normal(size=(1500, 2000)) * 0.1, 2),
        "wide": lambda: np.cumsum(rng.integers(-3, 4, (1024, 8192)), axis=1),
        "image": lambda: np.stack([(waves(1080, 1920) + 128).astype("u1") // n for n in (1, 2, 3)], axis=-1),
        "volume": lambda: (waves(160, 200, 220) + rng.normal(size=(160, 200, 220)) * 0.01).astype("f4"),
        "frames": lambda: np.round(waves(40, 60, 50, 70) * 10).astype("i4"),
        "line": lambda: np.round(np.cumsum(rng.normal(size=1 << 22)), 2),
    }


def best(call: Callable[[], object], seconds: float) -> float:
    """Return the seconds of the fastest call."""
    call()
    found, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        call()
        found = min(found, time.perf_counter() - started)
    return found


def keys(shape: tuple[int, ...], extent: int, count: int) -> list[tuple[slice, ...]]:
    """Return boxes of an extent at random places, the same for everybody."""
    rng = np.random.default_rng(7)
    return [
        tuple(
            slice(at, at + min(extent, n))
            for at, n in ((int(rng.integers(0, n - min(extent, n) + 1)), n) for n in shape)
        )
        for _ in range(count)
    ]


def measure(array: Any, shape: tuple[int, ...], seconds: float) -> dict[str, Any]:
    """Return microseconds for each kind of read."""
    found: dict[str, Any] = {}
    for name, extent in (("item", 1), ("box of 10", 10)):
        boxes = keys(shape, extent, 50)
        found[name] = round(best(lambda boxes=boxes: [array[key] for key in boxes], seconds) / len(boxes) * 1e6, 1)  # type: ignore[misc]
    planes = []
    for axis, size in enumerate(shape):
        thick = max(size // 100, 1)
        key = tuple(slice(size // 3, size // 3 + thick) if i == axis else slice(None) for i in range(len(shape)))
        planes.append(round(best(lambda key=key: array[key], seconds) * 1e6))  # type: ignore[misc]
    found["1 % across each axis"] = planes
    found["whole"] = round(best(lambda: array[...], seconds) * 1e6)
    return found


def write(path: Path, values: np.ndarray[Any, Any], **lengths: Any) -> Any:
    """Write an array with the peer."""
    return blosc2.asarray(values, urlpath=str(path), mode="w", **lengths)


def one(values: np.ndarray[Any, Any], folder: Path, seconds: float) -> list[dict[str, Any]]:
    """Return the rows for an array: the peer's own way, then ours for each size."""
    theirs = write(folder / "theirs.b2nd", values)
    row = {
        "by": "blosc2",
        "chunks": theirs.chunks,
        "blocks": theirs.blocks,
        "ratio": values.nbytes / theirs.schunk.cbytes,
    }
    rows = [row | measure(blosc2.open(str(folder / "theirs.b2nd"), mode="r"), values.shape, seconds)]
    ways = [(size, DEFAULTS[1]) for size in BLOCKS]
    ways += [(DEFAULTS[0], stretch) for stretch in STRETCHES if stretch != DEFAULTS[1] and values.ndim > 1]
    for block_nbytes, stretch in ways:
        partition.BLOCK_NBYTES, partition.STRETCH = block_nbytes, stretch  # type: ignore[misc]
        chunks, blocks = partition.choose_partition(values.shape, values.itemsize)
        partition.BLOCK_NBYTES, partition.STRETCH = DEFAULTS  # type: ignore[misc]
        path = folder / "ours.b2nd"
        written = write(path, values, chunks=chunks, blocks=blocks)
        row = {"by": "superchunk", "block_nbytes": block_nbytes, "stretch": stretch, "chunks": chunks, "blocks": blocks}
        row["ratio"] = values.nbytes / written.schunk.cbytes
        array = superchunk.open(path)
        if not np.array_equal(array[...], values):
            raise AssertionError(f"{path} reads back as something else")
        rows.append(row | measure(array, values.shape, seconds))
    return rows


def main() -> None:
    """Measure what the command line says."""
    options = record_parser(__doc__)
    options.add_argument("--only", help="one array")
    chosen = options.parse_args()
    seconds = 0.02 if chosen.quick else 0.2  # for each figure
    blosc2.set_nthreads(1)
    superchunk.set_nthreads(1)
    record: dict[str, Any] = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "blosc2": blosc2.__version__,
        "superchunk": superchunk.__version__,
        "unit": "microseconds; ratio: bytes of the array over bytes of its chunks",
        "arrays": {},
    }
    if chosen.add and chosen.json and chosen.json.exists():
        record["arrays"] = json.loads(chosen.json.read_text("utf-8"))["arrays"]
    with tempfile.TemporaryDirectory() as folder:
        for name, make in arrays().items():
            if chosen.only in (None, name):
                values = make()
                rows = one(values, Path(folder), seconds)
                record["arrays"][name] = {"shape": values.shape, "dtype": values.dtype.str, "rows": rows}
                print(name, values.shape, values.dtype)
                for row in rows:
                    said = {key: value for key, value in row.items() if key != "by"}
                    print(
                        f"  {row['by']:10}",
                        *(
                            f"{key} {value if not isinstance(value, float) else round(value, 2)}"
                            for key, value in said.items()
                        ),
                        flush=True,
                    )
    if chosen.json:
        chosen.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
