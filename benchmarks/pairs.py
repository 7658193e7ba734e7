"""Two packages measured in turn: what the benchmarks share.

Machines are busy by fits and starts, so a figure is never compared with one of another minute: both packages do the
same thing in turn, first the one and then the other, and what counts is the median of the ratios of the rounds.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import blosc2
import numpy as np

import superchunk

if TYPE_CHECKING:
    from collections.abc import Callable


class Effort(NamedTuple):
    """How long to measure."""

    rounds: int
    seconds: float


class Figure(NamedTuple):
    """The median of our seconds, of theirs, and of theirs over ours."""

    seconds: float
    theirs: float
    ratio: float


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def once(function: Callable[[], Any]) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def rounds(ours: Callable[[], Any], theirs: Callable[[], Any], effort: Effort) -> Figure:
    """Call both in turn, first the one and then the other."""
    ours()
    theirs()
    pairs: list[tuple[float, float]] = []
    begun = time.perf_counter()
    while len(pairs) < effort.rounds or (
        time.perf_counter() - begun < effort.seconds and len(pairs) < 10 * effort.rounds
    ):
        if len(pairs) % 2:
            b = once(theirs)
            a = once(ours)
        else:
            a = once(ours)
            b = once(theirs)
        pairs.append((a, b))
    return figure(pairs)


def figure(pairs: list[tuple[float, float]]) -> Figure:
    """Return the medians of rounds, each of them ours and theirs."""
    return Figure(
        seconds=statistics.median(a for a, _ in pairs),
        theirs=statistics.median(b for _, b in pairs),
        ratio=statistics.median(b / a for a, b in pairs),
    )


def surroundings() -> dict[str, Any]:
    """Return the machine and the versions, for a record."""
    return {
        "machine": {"processor": processor(), "system": platform.system(), "cores": os.cpu_count()},
        "versions": {
            "superchunk": superchunk.__version__,
            "blosc2": blosc2.__version__,
            "c-blosc2": blosc2.VERSION_STRING,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
