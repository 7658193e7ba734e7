"""Several processes read one file at a time, each its own part, without locks and without copying it.

python examples/switch/share_readonly.py [save | load] [FOLDER]
"""

from __future__ import annotations

import hashlib
import multiprocessing
import sys
from pathlib import Path

import numpy as np

import superchunk as blosc2

SHAPE, WORKERS = (200, 64, 96), 4


def field() -> np.ndarray:
    """Return a table of integers that anybody can make again."""
    t, y, x = np.ogrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    return (t * 1000 + (y * x) % 977).astype("i8")


def digest(array: np.ndarray) -> str:
    """Return a short checksum of the items."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def save(folder: Path) -> None:
    """Write the array as a file, and the same once more as a directory with a file for each chunk."""
    folder.mkdir(parents=True, exist_ok=True)
    array = blosc2.asarray(field(), chunks=(20, 64, 96), urlpath=str(folder / "field.b2nd"), mode="w")
    array.schunk.vlmeta["unit"] = "m"
    array.copy(urlpath=str(folder / "field.dir"), contiguous=False, mode="w")
    blosc2.SChunk(chunksize=80_000, data=field()[0], urlpath=str(folder / "first.b2frame"), mode="w")


def work(task: tuple[str, int, int]) -> tuple[int, str, int]:
    """Sum up some layers of the field, in a process of its own."""
    path, start, stop = task
    array = blosc2.open(path, mode="r", mmap_mode="r") if path.endswith(".b2nd") else blosc2.open(path, mode="r")
    part = array[start:stop]
    return start, digest(part), int(part.sum())


def load(folder: Path) -> None:
    """Share the work, and try to write what is open for reading only."""
    step = SHAPE[0] // WORKERS
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        for name in ("field.b2nd", "field.dir"):
            tasks = [(str(folder / name), at, at + step) for at in range(0, SHAPE[0], step)]
            done = pool.map(work, tasks)
            print(name, *done, sum(total for _, _, total in done) == int(field().sum()))
    array = blosc2.open(str(folder / "field.b2nd"), mode="r")
    try:
        array[0] = 0
    except ValueError:
        print("read only, unit", array.schunk.vlmeta["unit"])
    everything = np.empty(SHAPE, dtype="i8")
    for info in array.iterchunks_info():
        at = info.coords[0] * array.chunks[0]
        everything[at : at + array.chunks[0]] = array[at : at + array.chunks[0]]
    print("chunk by chunk", digest(everything), np.array_equal(everything, field()))
    schunk = blosc2.open(str(folder / "first.b2frame"), mode="r")
    print("schunk", schunk.nchunks, digest(np.frombuffer(schunk[:], dtype="i8")))


if __name__ == "__main__":
    what, name = [*sys.argv[1:], *("both", "shared-field")[len(sys.argv) - 1 :]]
    place = Path(name)
    if what != "load":
        save(place)
    if what != "save":
        load(place)
