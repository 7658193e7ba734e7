"""What ``bench`` and the demo in ``examples/demo`` measure: one array under one choice of codec and filters.

Times are wall-clock times of whole operations: compressing all data into a frame in memory (a disk would dominate the
time), reading all data into an existing buffer, and reading one slice of 100 items at a random position. Each operation
is repeated until `SECONDS` have passed, and the median is reported. All items that are read are compared with the
source, outside the timing.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk import SChunk
from superchunk.cli.errors import Failure
from superchunk.cli.options import cparams_from

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from superchunk import CParams
    from superchunk.cli.options import FilterChoice

__all__ = ["Choice", "Measured", "json_row", "measure"]

SECONDS = 0.15
"""How long each operation is repeated, at least."""
MIN_REPEATS = 3
PATIENCE = 12
"""How many times as long it may take to repeat an operation `MIN_REPEATS` times."""
SLICES = 200
"""Random slices in one round."""
SLICE_ITEMS = 100
MB = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A codec, its level, and what goes before it."""

    codec: str
    level: int
    filters: tuple[FilterChoice, ...]
    blocksize: int = 0
    """Bytes of a block; 0 leaves it to the library."""

    def __str__(self) -> str:
        """Return the choice in a few words."""
        return f"{self.codec}-{self.level} {'+'.join(map(str, self.filters))}"

    def cparams(self, typesize: int, threads: int | None) -> CParams:
        """Return the parameters for items of `typesize` bytes."""
        return cparams_from(
            codec=self.codec,
            level=self.level,
            filters=self.filters,
            typesize=typesize,
            threads=threads,
            blocksize=self.blocksize,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The numbers of one choice. Reading was verified, or this would not exist."""

    nbytes: int
    cbytes: int
    compress_seconds: float
    decompress_seconds: float
    slice_seconds: float
    """Of one slice of 100 items, or of all items if there are fewer."""

    @property
    def ratio(self) -> float:
        """How many times smaller."""
        return self.nbytes / self.cbytes

    @property
    def compress_speed(self) -> float:
        """Million bytes of plain data a second."""
        return self.nbytes / self.compress_seconds / MB

    @property
    def decompress_speed(self) -> float:
        """Million bytes of plain data a second."""
        return self.nbytes / self.decompress_seconds / MB


def _median_seconds(operation: Callable[[], object], seconds: float) -> float:
    times: list[float] = []
    while (len(times) < MIN_REPEATS and sum(times) <= PATIENCE * seconds) or sum(times) < seconds:
        begin = time.perf_counter()
        operation()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _random_slices(schunk: SChunk, data: bytes, typesize: int, *, seed: int) -> float:
    """Return the median seconds of one slice, each compared with `data`."""
    nitems = len(data) // typesize
    width = min(SLICE_ITEMS, nitems)
    starts = np.random.default_rng(seed).integers(0, nitems - width + 1, SLICES).tolist()
    times = []
    for start in starts:
        begin = time.perf_counter()
        got = schunk[start : start + width]
        times.append(time.perf_counter() - begin)
        if got != data[start * typesize : (start + width) * typesize]:
            raise Failure(f"verification: items {start}:{start + width} were read back with other values")
    return statistics.median(times)


def measure(
    data: bytes,
    choice: Choice,
    *,
    typesize: int,
    chunksize: int,
    threads: int | None = None,
    urlpath: Path | None = None,
    seed: int = 1,
    seconds: float | None = None,
) -> Measured:
    """Compress `data`, read it back whole and in pieces, compare, and return the numbers.

    Parameters
    ----------
    data
        At least one item, and whole items only.
    choice
        How to compress.
    typesize
        Bytes of one item.
    chunksize
        Bytes of one chunk.
    threads
        None for the library's default.
    urlpath
        Where the frame goes; None keeps it in memory. What is there is replaced.
    seed
        Of the random places.
    seconds
        How long each operation is repeated; None for `SECONDS`.

    Raises
    ------
    Failure
        The bytes read back differ from `data`.

    """
    cparams = choice.cparams(typesize, threads)
    path = None if urlpath is None else str(urlpath)
    lasts = SECONDS if seconds is None else seconds

    def compress() -> SChunk:
        return SChunk(chunksize=chunksize, data=data, cparams=cparams, contiguous=True)

    compress_seconds = _median_seconds(compress, lasts)
    with SChunk(chunksize=chunksize, data=data, cparams=cparams, contiguous=True, urlpath=path, mode="w") as schunk:
        if threads is not None:
            schunk.dparams = replace(schunk.dparams, nthreads=threads)
        out = bytearray(len(data))
        decompress_seconds = _median_seconds(lambda: schunk.get_slice(0, len(schunk), out=out), lasts)
        if out != data:
            raise Failure(f"verification: {choice} did not restore the data")
        return Measured(
            nbytes=len(data),
            cbytes=schunk.cbytes,
            compress_seconds=compress_seconds,
            decompress_seconds=decompress_seconds,
            slice_seconds=_random_slices(schunk, data, typesize, seed=seed),
        )


def json_row(choice: Choice, got: Measured) -> dict[str, Any]:
    """Return a choice and its numbers, for machines."""
    return {
        "codec": choice.codec,
        "level": choice.level,
        "filters": [str(step) for step in choice.filters],
        "ratio": round(got.ratio, 4),
        "cbytes": got.cbytes,
        "compress_mb_per_s": round(got.compress_speed, 1),
        "decompress_mb_per_s": round(got.decompress_speed, 1),
        "slice_us": round(got.slice_seconds * 1e6, 2),
    }
