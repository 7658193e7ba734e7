"""``superchunk bench --tune``: recommend codec, level, filters, block and chunk size for a file, with the reason.

The search has two steps, on pieces from all over the file. First it tries codecs, levels and filters, the likely ones
first, as many as the time allows. Then it tries block and chunk sizes for the best choice. All data is read back and
compared. One rule decides:

    a fifth smaller counts as much as twice as fast

Speed is that of writing once and reading `reads` times. `measure` measures, `tune_picture` draws.

Source: docs/cli.md, section "bench".
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import click
import numpy as np

from superchunk.cli import output
from superchunk.cli.errors import Failure
from superchunk.cli.measure import MB, Choice, json_row, measure
from superchunk.cli.options import parse_filters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from superchunk.cli.formats.base import Box
    from superchunk.cli.measure import Measured

__all__ = ["SAMPLE", "Advice", "Trial", "advice_row", "candidates", "front", "print_advice", "sample", "score", "tune"]

SAMPLE: Final = 8 * 2**20
"""Bytes to measure with, at most."""
PIECES: Final = 4
"""From so many places of the file."""
CHUNKSIZE: Final = 4 * 2**20
LEVELS: Final = (
    ("lz4", 5),
    ("zstd", 5),
    ("zstd", 1),
    ("lz4", 1),
    ("blosclz", 5),
    ("lz4hc", 5),
    ("zstd", 3),
    ("lz4", 9),
    ("zlib", 5),
    ("lz4hc", 9),
    ("zstd", 9),
)
"""Codecs and levels, the likely ones first."""
FILTERS: Final = ("shuffle", "bitshuffle", "shuffle,bytedelta", "delta,shuffle", "none")
FILTERS_OF_BYTES: Final = ("none", "bitshuffle", "delta")
"""For items of one byte."""
BLOCKSIZES: Final = (2**14, 2**16, 2**18, 2**20)
CHUNKSIZES: Final = (2**20, 2**23)
WORTH_TWICE: Final = 1.25
"""The ratio of sizes that is worth twice the speed."""
SLICE_WEIGHT: Final = 0.5
"""What twice the speed of reading a few items counts, beside twice the speed of everything, when sizes are chosen."""
CLEAR: Final = 0.2
"""By how much another size must win against the library's own choice; less may be chance."""


class Readable(Protocol):
    """An array to read boxes from, such as every source of `cli.formats`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Items along each dimension."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """What they are."""

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """Return the items of a box."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A choice, and what came of it."""

    choice: Choice
    chunksize: int
    got: Measured
    reads: float
    """How often what is written once is read."""

    @property
    def speed(self) -> float:
        """MB a second that are written once and read so many times."""
        seconds = self.got.compress_seconds + self.reads * self.got.decompress_seconds
        return (1 + self.reads) * self.got.nbytes / seconds / MB

    def __str__(self) -> str:
        """Return the choice in a few words."""
        return str(self.choice)

    def for_json(self) -> dict[str, Any]:
        """Return choice and numbers, for machines."""
        sizes = {"blocksize": self.choice.blocksize, "chunksize": self.chunksize}
        return {**json_row(self.choice, self.got), **sizes, "speed_mb_per_s": round(self.speed, 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What was tried, and what is recommended."""

    trials: list[Trial]
    """Codecs, levels and filters."""
    front: list[Trial]
    """Those of them that no other beats in both size and speed, smallest first."""
    sizes: list[Trial]
    """The best of them in other block and chunk sizes, the library's own first."""
    best: Trial
    reason: str
    left_out: int
    """Choices for which the time was too short."""


def sample(source: Readable, most: int = SAMPLE) -> bytes:
    """Return whole items from several places of an array, in C order, at most about `most` bytes."""
    whole = math.prod(source.shape) * source.dtype.itemsize
    if whole == 0:
        raise Failure("there is no item to measure")
    if whole <= most:
        return _bytes_of(source.read(tuple(slice(0, extent) for extent in source.shape)))
    # Dimensions in front are fixed until a row of the rest is small enough to have several from several places.
    row, fixed = whole, 0
    while fixed < len(source.shape) and row > most // PIECES:
        row //= source.shape[fixed]
        fixed += 1
    axis = fixed - 1
    high = min(max(most // PIECES // row, 1), source.shape[axis])
    found = []
    for piece in range(PIECES):
        part = (piece + 0.5) / PIECES
        box = [slice(int(part * extent), int(part * extent) + 1) for extent in source.shape[:axis]]
        start = int(part * (source.shape[axis] - high))
        box += [slice(start, start + high)] + [slice(0, extent) for extent in source.shape[axis + 1 :]]
        found.append(_bytes_of(source.read(tuple(box))))
    return b"".join(found)


def _bytes_of(values: np.ndarray[Any, Any]) -> bytes:
    return np.ascontiguousarray(values).tobytes()


def candidates(typesize: int) -> Iterator[Choice]:
    """Return the sensible combinations for items of so many bytes, the likely ones first."""
    words = FILTERS if typesize > 1 else FILTERS_OF_BYTES
    ranked = sorted(itertools.product(range(len(LEVELS)), range(len(words))), key=lambda place: (sum(place), place[0]))
    for level, filters in ranked:
        codec, clevel = LEVELS[level]
        yield Choice(codec=codec, level=clevel, filters=parse_filters(words[filters]))


def front(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials that no other beats in both size and speed, smallest first."""
    found: list[Trial] = []
    for one in sorted(trials, key=lambda trial: (trial.got.cbytes, -trial.speed)):
        if not found or one.speed > found[-1].speed:
            found.append(one)
    return found


def score(trial: Trial) -> float:
    """Return how good a trial is, in doublings of speed."""
    return math.log2(trial.speed) + math.log(trial.got.ratio) / math.log(WORTH_TWICE)


def _score_of_sizes(trial: Trial) -> float:
    """Return how good sizes are: as `score`, and a few items at random count as well."""
    return score(trial) - SLICE_WEIGHT * math.log2(trial.got.slice_seconds)


def _best_sizes(sizes: Sequence[Trial]) -> Trial:
    """Return the library's own choice, the first, unless another is clearly better."""
    own, best = sizes[0], max(sizes, key=_score_of_sizes)
    return best if _score_of_sizes(best) > _score_of_sizes(own) + CLEAR else own


def _sizes(best: Trial, nbytes: int, typesize: int) -> Iterator[tuple[Choice, int]]:
    """Return block and chunk sizes to try for a choice."""
    for blocksize in BLOCKSIZES:
        whole = blocksize // typesize * typesize
        if 0 < whole < min(best.chunksize, nbytes):
            yield replace(best.choice, blocksize=whole), best.chunksize
    for chunksize in CHUNKSIZES:
        whole = chunksize // typesize * typesize
        if 0 < whole < nbytes:
            yield best.choice, whole


def reason(best: Trial, along: Sequence[Trial]) -> str:
    """Say why, beside both ends of the front."""
    smallest, fastest = along[0], along[-1]
    said = []
    if best.choice != smallest.choice:
        more = 100 * (best.got.cbytes / smallest.got.cbytes - 1)
        faster = best.speed / smallest.speed
        said.append(f"{faster:.1f} times as fast as {smallest}, the smallest, for {more:.0f} % more bytes")
    else:
        said.append("no trial is smaller")
    if best.choice != fastest.choice:
        less = 100 * (1 - best.got.cbytes / fastest.got.cbytes)
        said.append(
            f"{less:.0f} % smaller than {fastest}, the fastest, at {best.speed / fastest.speed:.2f} of its speed"
        )
    else:
        said.append("no trial is faster")
    return "; ".join(said)


def tune(
    data: bytes,
    *,
    typesize: int,
    reads: float,
    seconds: float,
    threads: int | None = None,
    advance: Callable[[int], None] = lambda _done: None,
    measured: Callable[..., Measured] = measure,
    clock: Callable[[], float] = time.monotonic,
) -> Advice:
    """Try the sensible combinations on `data` and recommend one.

    Parameters
    ----------
    data
        Whole items, at least one.
    typesize
        Bytes of an item.
    reads
        How often what is written once is read, 0 or more.
    seconds
        About how long to measure; one choice is tried in any case.
    threads
        None for the library's default.
    advance
        Told after each trial.
    measured
        What measures a choice: `measure`.
    clock
        Seconds of any origin.

    """
    end = clock() + seconds
    each = seconds / 400
    chunksize = max(CHUNKSIZE // typesize, 1) * typesize

    def attempt(choice: Choice, size: int) -> Trial:
        got = measured(data, choice, typesize=typesize, chunksize=size, threads=threads, seconds=each)
        advance(1)
        return Trial(choice=choice, chunksize=size, got=got, reads=reads)

    # Choices of codec and filters may take three quarters of the time.
    trials: list[Trial] = []
    every = list(candidates(typesize))
    for choice in every:
        if trials and clock() > end - seconds / 4:
            break
        trials.append(attempt(choice, chunksize))
    along = front(trials)
    best = max(along, key=score)
    sizes = [best]
    for choice, size in _sizes(best, len(data), typesize):
        if clock() > end:
            break
        sizes.append(attempt(choice, size))
    return Advice(
        trials=trials,
        front=along,
        sizes=sizes,
        best=_best_sizes(sizes),
        reason=reason(best, along),
        left_out=len(every) - len(trials),
    )


def advice_row(advice: Advice) -> dict[str, Any]:
    """Return all of it, for machines."""
    return {
        "tried": [trial.for_json() for trial in advice.trials],
        "front": [trial.for_json() for trial in advice.front],
        "sizes": [trial.for_json() for trial in advice.sizes],
        "recommended": {**advice.best.for_json(), "reason": advice.reason},
    }


def print_advice(name: str, nbytes: int, advice: Advice) -> None:
    """Print the front, the sizes, and what is recommended."""
    numbers = ["ratio", "compress MB/s", "decompress MB/s", "together MB/s", "100 items µs"]

    def cells(trial: Trial) -> list[str]:
        got = trial.got
        return [
            f"{got.ratio:.2f}",
            f"{got.compress_speed:,.0f}",
            f"{got.decompress_speed:,.0f}",
            f"{trial.speed:,.0f}",
            f"{got.slice_seconds * 1e6:.1f}",
        ]

    left_out = f", {advice.left_out} omitted for time" if advice.left_out else ""
    rows = [[str(trial), *cells(trial)] for trial in advice.front]
    output.table(["codec and filters", *numbers], rows, title="choices that no trial beats in both size and speed")
    rows = [[block_words(trial), output.size(trial.chunksize), *cells(trial)] for trial in advice.sizes]
    output.table(["blocks", "chunks", *numbers], rows, text_columns=2, title=f"{advice.sizes[0]}, with other sizes")
    tried = len(advice.trials) + len(advice.sizes) - 1
    click.echo(
        f"{name}: {output.size(nbytes)} measured, {tried} choices measured{left_out}, all read back and compared"
    )
    click.echo(f"recommended: {words(advice.best)}")
    click.echo(f"because: {advice.reason}")
    click.echo(f"in Python: {code(advice.best)}")


def block_words(trial: Trial) -> str:
    """Return the size of a block for people."""
    return output.size(trial.choice.blocksize) if trial.choice.blocksize else "chosen by the library"


def words(trial: Trial) -> str:
    """Return all of a choice for people."""
    return f"{trial}, blocks {block_words(trial)}, chunks {output.size(trial.chunksize)}"


def code(trial: Trial) -> str:
    """Return the parameters as they are written in Python."""
    choice = trial.choice
    filters = ", ".join(f"superchunk.Filter.{step.filter.name}" for step in choice.filters)
    block = f", blocksize={choice.blocksize}" if choice.blocksize else ""
    codec = f"codec=superchunk.Codec.{choice.codec.upper()}, clevel={choice.level}"
    return f"superchunk.CParams({codec}, filters=[{filters}]{block})"
