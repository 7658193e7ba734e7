"""Several processes write one frame, each its own chunks, and one of them commits.

A sparse frame is a directory with a file for each chunk. The coordinator hands out ids; workers compress
into the files of those ids, without a lock and in any order; the coordinator puts
them into the list. Until then no reader sees anything of it.

python examples/cluster_write.py
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import superchunk

PATH = "simulation.b2frame"
STEPS = 24
POINTS = 200_000
"""Of the grid, float32 each; one time step is a chunk."""


def field(step: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return one time step of a moving wave."""
    return np.sin(np.linspace(0, 40, POINTS) + step / 3).astype("f4")


def simulate(step: int, chunk_id: int) -> superchunk.StagedChunk:
    """Compute a time step and write it, in a worker process."""
    return superchunk.stage_chunk(PATH, chunk_id, field(step))


def main() -> None:
    """Reserve ids, start the workers, and commit."""
    cparams = superchunk.CParams(codec=superchunk.Codec.LZ4, typesize=4)
    with superchunk.SChunk(chunksize=POINTS * 4, cparams=cparams, urlpath=PATH, contiguous=False, mode="w") as frame:
        ids = frame.reserve_chunk_ids(STEPS)
        with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as workers:
            staged = list(workers.map(simulate, range(STEPS), ids))
        print(f"{STEPS} chunks are written; readers see", superchunk.open(PATH).nchunks)
        with frame.transaction():
            frame.append_staged(staged)
            frame.vlmeta["steps"] = STEPS
        print("committed; readers see", superchunk.open(PATH).nchunks)

    with superchunk.open(PATH) as frame:
        same = all(frame.decompress_chunk(step) == field(step).tobytes() for step in range(STEPS))
        print(f"{frame.nbytes:,} bytes, {frame.cratio:.1f} times smaller, all as computed: {same}")


if __name__ == "__main__":
    main()
