"""The laboratory of sizes: chunks are at most a hundredth larger than those of C-Blosc2 with the same parameters.

A *cell* is a family of data with drawn parameters, a codec, a level, a filter, a block size and a split mode. Both
packages compress the same bytes; the ratio is our chunk's length over theirs. A cell is reproduced by its seed alone.

Run by hand: ``python -m labs.sizes --cells 20000`` in ``tests``; ``--search SECONDS`` looks for the worst cell instead,
by changing the parameters of the families towards larger ratios.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import blosc2
import numpy as np

import superchunk

__all__ = ["FAMILIES", "MOST", "Cell", "Report", "draw", "measure", "run", "search"]

Array = np.ndarray[Any, np.dtype[Any]]
Rng = np.random.Generator
Family = Callable[[Rng, int], Array]
"""Returns an array of about so many bytes."""

MOST: Final = 1.01
FAMILIES: dict[str, Family] = {}


def family(function: Family) -> Family:
    FAMILIES[function.__name__] = function
    return function


def _log(rng: Rng, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def _walk(rng: Rng, n: int, step: float = 1.0) -> Array:
    return np.cumsum(rng.normal(scale=step, size=n))


def _span(rng: Rng, n: int, least: float = 0.02, most: float = 0.5) -> slice:
    length = max(int(n * rng.uniform(least, most)), 1)
    start = int(rng.integers(0, n - length + 1))
    return slice(start, start + length)


def _tile(rng: Rng, n: int, period: int) -> Array:
    return np.resize(rng.integers(0, 256, max(period, 1), dtype="u1"), n)


# Rounded decimals and values in wider types.


@family
def prices(rng: Rng, nbytes: int) -> Array:
    return np.round(100 + _walk(rng, nbytes // 8, 0.05), 2)


@family
def temperatures(rng: Rng, nbytes: int) -> Array:
    n = nbytes // 8
    return np.round(
        15 + 10 * np.sin(np.arange(n) / _log(rng, 20, 5000)) + rng.normal(scale=rng.uniform(0, 2), size=n), 1
    )


@family
def thirds(rng: Rng, nbytes: int) -> Array:
    return np.divide(rng.integers(0, int(_log(rng, 10, 1e5)), nbytes // 8), float(rng.choice([3, 7, 100, 1000])))


@family
def decimals_float32(rng: Rng, nbytes: int) -> Array:
    return np.round(rng.normal(scale=_log(rng, 0.1, 100), size=nbytes // 4), int(rng.integers(0, 4))).astype("f4")


@family
def bytes_in_int32(rng: Rng, nbytes: int) -> Array:
    return rng.integers(0, int(_log(rng, 2, 256)), nbytes // 4).astype("i4")


@family
def int16_in_float64(rng: Rng, nbytes: int) -> Array:
    return np.round(_walk(rng, nbytes // 8, _log(rng, 0.1, 50))).astype("i2").astype("f8")


@family
def float32_in_float64(rng: Rng, nbytes: int) -> Array:
    return _walk(rng, nbytes // 8).astype("f4").astype("f8")


# Equal or shifted planes.


@family
def grey_as_rgba(rng: Rng, nbytes: int) -> Array:
    grey = np.abs(_walk(rng, nbytes // 4, _log(rng, 0.2, 20))).astype("u1").astype("u4")
    return grey * 0x010101 + np.uint32(0xFF000000)


@family
def complex_equal_parts(rng: Rng, nbytes: int) -> Array:
    part = rng.normal(size=nbytes // 16)
    return part + 1j * (part if rng.random() < 0.5 else np.roll(part, 1))


@family
def pairs_of_equal(rng: Rng, nbytes: int) -> Array:
    values = rng.integers(0, 2 ** int(rng.integers(4, 33)), nbytes // 8, dtype="u8")
    return (values | values << np.uint64(32)).astype("u8")


@family
def shifted_planes(rng: Rng, nbytes: int) -> Array:
    plane = rng.integers(0, 256, nbytes // 4, dtype="u1")
    shift = int(rng.integers(0, 100))
    return np.stack([np.roll(plane, shift * k) for k in range(4)], axis=1).copy().view("u4").ravel()


# Events and bursts.


@family
def event_int16(rng: Rng, nbytes: int) -> Array:
    values = rng.normal(scale=_log(rng, 1, 30), size=nbytes // 2)
    values[_span(rng, values.size)] *= _log(rng, 10, 1000)
    return values.clip(-32768, 32767).astype("i2")


@family
def event_int8(rng: Rng, nbytes: int) -> Array:
    values = rng.normal(scale=_log(rng, 5, 40), size=nbytes).clip(-128, 127).astype("i1")
    span = _span(rng, values.size)
    values[span] = rng.integers(-128, 128, span.stop - span.start)
    return values


@family
def event_float32(rng: Rng, nbytes: int) -> Array:
    values = np.zeros(nbytes // 4, "f4")
    span = _span(rng, values.size)
    values[span] = rng.normal(size=span.stop - span.start)
    return values


@family
def bursts(rng: Rng, nbytes: int) -> Array:
    values = np.zeros(nbytes // 4, "i4")
    for _ in range(int(rng.integers(1, 60))):
        span = _span(rng, values.size, 0.0005, 0.01)
        values[span] = rng.integers(-(2**20), 2**20, span.stop - span.start)
    return values


@family
def quiet_in_noise(rng: Rng, nbytes: int) -> Array:
    values = rng.integers(0, 256, nbytes, dtype="u1")
    for _ in range(int(rng.integers(1, 8))):
        values[_span(rng, nbytes, 0.01, 0.1)] &= np.uint8((1 << int(rng.integers(1, 8))) - 1)
    return values


@family
def silence_between_steps(rng: Rng, nbytes: int) -> Array:
    return np.repeat(rng.normal(size=nbytes // 8 // 500 + 1), rng.integers(1, 1000, nbytes // 8 // 500 + 1))


# Repetitions at any distance.


@family
def tiled_noise(rng: Rng, nbytes: int) -> Array:
    return _tile(rng, nbytes, int(_log(rng, 1024, nbytes)))


@family
def tiled_noise_uint16(rng: Rng, nbytes: int) -> Array:
    return _tile(rng, nbytes // 2 * 2, 2 * int(_log(rng, 512, nbytes // 2))).view("u2")


@family
def equal_frames(rng: Rng, nbytes: int) -> Array:
    count = int(rng.integers(2, 60))
    return np.tile(rng.integers(0, 2**16, max(nbytes // 2 // count, 1), dtype="u2"), count)


@family
def copies_in_noise(rng: Rng, nbytes: int) -> Array:
    values = rng.integers(0, 256, nbytes, dtype="u1")
    for _ in range(int(rng.integers(1, 100))):
        length = int(_log(rng, 32, max(nbytes // 8, 64)))
        source, target = rng.integers(0, nbytes - length, 2)
        values[target : target + length] = values[source : source + length].copy()
    return values


@family
def words_from_a_set(rng: Rng, nbytes: int) -> Array:
    length = int(rng.integers(4, 200))
    words = rng.integers(0, 256, (int(_log(rng, 4, 20000)), length), dtype="u1")
    return words[rng.integers(0, len(words), nbytes // length)].ravel()


@family
def tiled_floats(rng: Rng, nbytes: int) -> Array:
    return np.resize(rng.normal(size=int(_log(rng, 128, nbytes // 8))), nbytes // 8)


# Records, masks, runs.


@family
def records(rng: Rng, nbytes: int) -> Array:
    kind = np.dtype([("id", "i4"), ("x", "f4"), ("y", "f4"), ("flag", "u1"), ("pad", "V3")])
    values = np.zeros(nbytes // kind.itemsize, kind)
    values["id"] = np.arange(values.size) // int(rng.integers(1, 50))
    values["x"] = rng.normal(size=values.size)
    values["y"] = np.round(_walk(rng, values.size), 2)
    values["flag"] = rng.random(values.size) < rng.random()
    return values


@family
def odd_records(rng: Rng, nbytes: int) -> Array:
    width = int(rng.choice([3, 5, 7, 12, 20, 24, 33]))
    values = rng.integers(0, 256, (nbytes // width, width), dtype="u1")
    for column in range(width):
        values[:, column] &= np.uint8((1 << int(rng.integers(0, 9))) - 1)
    return values.view(f"V{width}").ravel()


@family
def mask(rng: Rng, nbytes: int) -> Array:
    return rng.random(nbytes) < _log(rng, 1e-4, 0.5)


@family
def masked_field(rng: Rng, nbytes: int) -> Array:
    values = _walk(rng, nbytes // 4, 0.1).astype("f4")
    values[np.sin(np.arange(values.size) / _log(rng, 50, 50000)) > rng.uniform(-0.9, 0.9)] = np.nan
    return values


@family
def run_lengths(rng: Rng, nbytes: int) -> Array:
    mean = _log(rng, 2, 2000)
    n = int(nbytes / 4 / mean) + 1
    return np.repeat(rng.integers(0, int(_log(rng, 2, 1e6)), n), rng.geometric(1 / mean, n))[: nbytes // 4].astype("i4")


@family
def sparse_float32(rng: Rng, nbytes: int) -> Array:
    values = rng.normal(size=nbytes // 4).astype("f4")
    values[rng.random(values.size) < rng.uniform(0.3, 0.99)] = 0
    return values


@family
def one_hot(rng: Rng, nbytes: int) -> Array:
    width = int(rng.integers(2, 200))
    values = np.zeros((nbytes // width, width), "u1")
    values[np.arange(len(values)), rng.integers(0, width, len(values))] = 1
    return values.ravel()


# Text.


@family
def words(rng: Rng, nbytes: int) -> Array:
    vocabulary = [
        bytes(rng.integers(97, 123, int(rng.integers(2, 12)), dtype="u1")) for _ in range(int(_log(rng, 20, 5000)))
    ]
    picks = rng.zipf(1.3, nbytes // 6) % len(vocabulary)
    return np.frombuffer(b" ".join([vocabulary[pick] for pick in picks])[:nbytes], "u1")


@family
def lines(rng: Rng, nbytes: int) -> Array:
    n = nbytes // 40
    text = "\n".join(
        f"{a:08d} GET /data/{b:05d} {c:.3f}"
        for a, b, c in zip(
            np.cumsum(rng.integers(1, 99, n)), rng.integers(0, 500, n), rng.exponential(size=n), strict=True
        )
    )
    return np.frombuffer(text.encode(), "u1")


@family
def digits(rng: Rng, nbytes: int) -> Array:
    return rng.integers(48, 58, nbytes, dtype="u1")


@family
def utf32(rng: Rng, nbytes: int) -> Array:
    return rng.integers(97, 123, nbytes // 4).astype("u4")


@family
def base64(rng: Rng, nbytes: int) -> Array:
    return np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "u1")[
        rng.integers(0, 64, nbytes)
    ]


# Images and sound.


@family
def photograph(rng: Rng, nbytes: int) -> Array:
    side = int(math.sqrt(nbytes))
    y, x = np.mgrid[:side, :side]
    image = (
        128
        + 60 * np.sin(x / _log(rng, 5, 300)) * np.cos(y / _log(rng, 5, 300))
        + rng.normal(scale=rng.uniform(0, 6), size=(side, side))
    )
    return np.asarray(image.clip(0, 255), "u1").ravel()


@family
def image_uint16(rng: Rng, nbytes: int) -> Array:
    side = int(math.sqrt(nbytes / 2))
    y, x = np.mgrid[:side, :side]
    return np.asarray(rng.poisson(200 + 180 * np.sin(x / _log(rng, 5, 300)) * np.cos(y / 50)), "u2").ravel()


@family
def screenshot(rng: Rng, nbytes: int) -> Array:
    side = int(math.sqrt(nbytes / 4))
    image = np.full((side, side), 0xFFFFFFFF, "u4")
    for _ in range(int(rng.integers(5, 200))):
        a, b = _span(rng, side, 0.005, 0.2), _span(rng, side, 0.005, 0.2)
        image[a, b] = rng.integers(0, 2**32)
    return image.ravel()


@family
def photon_counts(rng: Rng, nbytes: int) -> Array:
    return rng.poisson(_log(rng, 0.01, 50), nbytes // 2).astype("u2")


@family
def audio(rng: Rng, nbytes: int) -> Array:
    t = np.arange(nbytes // 2)
    tones = sum(rng.uniform(100, 4000) * np.sin(t / rng.uniform(2, 200)) for _ in range(4))
    return (tones + rng.normal(scale=_log(rng, 1, 300), size=t.size)).clip(-32768, 32767).astype("i2")


@family
def audio_8_bits_in_16(rng: Rng, nbytes: int) -> Array:
    return (audio(rng, nbytes) >> 8 << 8).astype("i2")


@family
def ecg(rng: Rng, nbytes: int) -> Array:
    t = np.arange(nbytes // 2)
    beat = np.exp(-(((t % int(_log(rng, 200, 2000))) - 60) ** 2) / _log(rng, 10, 500)) * 1000
    return (beat + rng.normal(scale=rng.uniform(0.5, 8), size=t.size)).astype("i2")


# Ids, times, counters.


@family
def sorted_ids(rng: Rng, nbytes: int) -> Array:
    return np.sort(rng.integers(0, 2 ** int(rng.integers(20, 62)), nbytes // 8))


@family
def random_ids(rng: Rng, nbytes: int) -> Array:
    return rng.integers(0, 2 ** int(rng.integers(8, 63)), nbytes // 8)


@family
def labels(rng: Rng, nbytes: int) -> Array:
    return rng.integers(0, int(_log(rng, 2, 1000)), nbytes // 8)


@family
def zipf_labels(rng: Rng, nbytes: int) -> Array:
    return rng.zipf(rng.uniform(1.2, 3), nbytes // 4).clip(0, 2**31 - 1).astype("i4")


@family
def time_stamps(rng: Rng, nbytes: int) -> Array:
    return 1_700_000_000_000_000_000 + np.cumsum(rng.exponential(_log(rng, 1e2, 1e9), nbytes // 8)).astype("i8")


@family
def regular_time_stamps(rng: Rng, nbytes: int) -> Array:
    steps = np.full(nbytes // 8, int(_log(rng, 1, 1e9)))
    return np.cumsum(steps + rng.integers(0, int(_log(rng, 1, 1000)) + 1, steps.size))


@family
def counter(rng: Rng, nbytes: int) -> Array:
    return np.arange(nbytes // 4, dtype="i4") * int(_log(rng, 1, 1e4))


@family
def histogram_bins(rng: Rng, nbytes: int) -> Array:
    return np.round(rng.normal(1000, _log(rng, 1, 300), nbytes // 4)).astype("i4")


@family
def steps_of_integers(rng: Rng, nbytes: int) -> Array:
    width = int(_log(rng, 1, 5000))
    return np.cumsum(rng.integers(-width, width + 1, nbytes // 4)).astype("i4")


# Floats.


@family
def waves(rng: Rng, nbytes: int) -> Array:
    t = np.arange(nbytes // 8) / _log(rng, 10, 1e5)
    return np.sin(t) + 0.3 * np.sin(7.1 * t) + rng.normal(scale=_log(rng, 1e-12, 0.1), size=t.size)


@family
def waves_float32(rng: Rng, nbytes: int) -> Array:
    t = np.arange(nbytes // 4) / _log(rng, 10, 1e5)
    return (np.sin(t) + rng.normal(scale=_log(rng, 1e-7, 0.1), size=t.size)).astype("f4")


@family
def normals(rng: Rng, nbytes: int) -> Array:
    return rng.normal(size=nbytes // 8)


@family
def random_floats(rng: Rng, nbytes: int) -> Array:
    return rng.random(nbytes // 4, dtype="f4")


@family
def walk_float64(rng: Rng, nbytes: int) -> Array:
    return _walk(rng, nbytes // 8)


@family
def quantised(rng: Rng, nbytes: int) -> Array:
    step = _log(rng, 1e-4, 1)
    return np.round(_walk(rng, nbytes // 4, 0.1) / step).astype("f4") * np.float32(step)


@family
def half_precision(rng: Rng, nbytes: int) -> Array:
    return _walk(rng, nbytes // 2, 0.01).astype("f2")


@family
def truncated_mantissa(rng: Rng, nbytes: int) -> Array:
    values = rng.normal(size=nbytes // 8).view("u8")
    return (values >> np.uint64(int(k := rng.integers(4, 44))) << np.uint64(int(k))).view("f8")


@family
def field_2d(rng: Rng, nbytes: int) -> Array:
    side = int(math.sqrt(nbytes / 4))
    y, x = np.mgrid[:side, :side] / _log(rng, 5, 200)
    return np.asarray(np.sin(x) * np.cos(y) + rng.normal(scale=_log(rng, 1e-6, 0.1), size=x.shape), "f4").ravel()


# Bytes.


@family
def uniform_bytes(rng: Rng, nbytes: int) -> Array:
    return rng.integers(0, 256, nbytes, dtype="u1")


@family
def few_bits(rng: Rng, nbytes: int) -> Array:
    return rng.integers(0, 2 ** int(rng.integers(1, 8)), nbytes, dtype="u1")


@family
def biased_bytes(rng: Rng, nbytes: int) -> Array:
    return rng.normal(128, _log(rng, 3, 120), nbytes).astype("i8").astype("u1")


@family
def nearly_uniform(rng: Rng, nbytes: int) -> Array:
    values = rng.integers(0, 256, nbytes, dtype="u1")
    values[rng.random(nbytes) < rng.uniform(0, 0.2)] = 0
    return values


@family
def bits_packed(rng: Rng, nbytes: int) -> Array:
    return np.packbits(rng.random(nbytes * 8) < _log(rng, 0.001, 0.5))


@family
def markov(rng: Rng, nbytes: int) -> Array:
    return (np.cumsum(rng.integers(-2, 3, nbytes)) % int(rng.integers(16, 257))).astype("u1")


@family
def mixture(rng: Rng, nbytes: int) -> Array:
    """Return two families with a border anywhere."""
    names = [name for name in FAMILIES if name != "mixture"]
    first, second = rng.choice(names, 2)
    cut = int(nbytes * rng.uniform(0.05, 0.95)) // 16 * 16
    a = FAMILIES[first](rng, max(cut, 4096))
    b = FAMILIES[second](rng, max(nbytes - cut, 4096))
    return np.concatenate([a.view("u1").ravel(), b.view("u1").ravel()]).view("u1")


@dataclass(frozen=True)
class Cell:
    """One comparison."""

    family: str
    seed: int
    nbytes: int
    codec: str
    clevel: int
    filters: tuple[str, ...]
    typesize: int
    blocksize: int
    splitmode: str
    nthreads: int


CODECS: Final = ("BLOSCLZ", "LZ4", "LZ4HC", "ZLIB", "ZSTD")
PIPELINES: Final = (
    (), ("SHUFFLE",), ("SHUFFLE",), ("BITSHUFFLE",), ("BITSHUFFLE",), ("DELTA",), ("DELTA", "SHUFFLE"),
    ("SHUFFLE", "BYTEDELTA"),
)  # fmt: skip
SPLITS: Final = ("ALWAYS_SPLIT", "NEVER_SPLIT", "AUTO_SPLIT", "FORWARD_COMPAT_SPLIT")


@cache
def data_of(name: str, seed: int, nbytes: int) -> Array:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(FAMILIES[name](np.random.default_rng(seed), nbytes))


def draw(seed: int, largest: int = 2**24) -> Cell:
    """Return the cell of a seed."""
    rng = np.random.default_rng([seed, 77])
    name = list(FAMILIES)[int(rng.integers(len(FAMILIES)))]
    nbytes = int(_log(rng, 2**18, largest))
    codec, clevel = str(rng.choice(CODECS)), int(rng.integers(1, 10))
    if clevel == 9 and codec == "ZSTD":
        nbytes = min(nbytes, 2**21)  # a MiB takes a second
    itemsize = data_of(name, seed, nbytes).dtype.itemsize
    chosen = rng.random() < 0.2
    return Cell(
        family=name,
        seed=seed,
        nbytes=nbytes,
        codec=codec,
        clevel=clevel,
        filters=PIPELINES[int(rng.integers(len(PIPELINES)))],
        typesize=itemsize if rng.random() < 0.9 else int(rng.choice([1, 2, 4, 8])),
        blocksize=int(_log(rng, 2**13, 2**20)) // 64 * 64 if chosen else 0,
        splitmode=str(rng.choice(SPLITS)) if rng.random() < 0.2 else "FORWARD_COMPAT_SPLIT",
        nthreads=int(rng.integers(1, 3)),
    )


def sizes(cell: Cell, array: Array | None = None) -> tuple[int, int]:
    """Return the lengths of our chunk and of theirs."""
    content = data_of(cell.family, cell.seed, cell.nbytes) if array is None else array
    raw = content.view("u1").ravel() if content.dtype.names is None else np.frombuffer(content.tobytes(), "u1")
    raw = raw[: raw.size // cell.typesize * cell.typesize]
    blocksize = cell.blocksize // cell.typesize * cell.typesize
    lengths = []
    for package in (superchunk, blosc2):
        filters = [package.Filter[name] for name in cell.filters]
        filters = [package.Filter.NOFILTER] * (6 - len(filters)) + filters
        meta = [0] * 6
        if "BYTEDELTA" in cell.filters:
            meta[5] = cell.typesize
        chunk = package.compress2(
            raw,
            codec=package.Codec[cell.codec],
            clevel=cell.clevel,
            typesize=cell.typesize,
            filters=filters,
            filters_meta=meta,
            blocksize=blocksize,
            splitmode=package.SplitMode[cell.splitmode],
            nthreads=cell.nthreads,
        )
        lengths.append(len(chunk))
    return lengths[0], lengths[1]


@dataclass
class Report:
    """What the cells came to."""

    ratios: list[tuple[float, Cell]] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """The geometric mean of all ratios."""
        return math.exp(sum(math.log(ratio) for ratio, _ in self.ratios) / max(len(self.ratios), 1))

    @property
    def over(self) -> list[tuple[float, Cell]]:
        """The cells over `MOST`, the worst first."""
        return sorted((pair for pair in self.ratios if pair[0] > MOST), key=lambda pair: -pair[0])


def measure(cell: Cell) -> float:
    """Return our length over theirs."""
    ours, theirs = sizes(cell)
    return ours / theirs


def run(cells: int, first: int = 0, largest: int = 2**24, tell: Callable[[str], object] | None = None) -> Report:
    """Measure the cells of so many seeds."""
    report = Report()
    for seed in range(first, first + cells):
        cell = draw(seed, largest)
        ratio = measure(cell)
        data_of.cache_clear()
        report.ratios.append((ratio, cell))
        if tell is not None and ratio > MOST:
            tell(f"{ratio:.4f} {cell}")
    return report


def search(seconds: float, first: int = 0, largest: int = 2**22) -> Report:
    """Look for the worst cell: the worst so far get new codecs, levels, filters and seeds of the same family."""
    rng = np.random.default_rng(first)
    report = Report()
    best: list[tuple[float, Cell]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        cell = draw(int(rng.integers(2**31)), largest)
        if best and rng.random() < 0.8:
            near = best[int(rng.integers(len(best)))][1]
            kept = {name: getattr(near, name) for name in cell.__dataclass_fields__ if rng.random() < 0.7}
            kept["family"] = near.family
            kept.setdefault("typesize", near.typesize)
            cell = Cell(**{**{name: getattr(cell, name) for name in cell.__dataclass_fields__}, **kept})
            if cell.codec == "ZSTD" and cell.clevel == 9 and cell.nbytes > 2**21:
                continue
        ratio = measure(cell)
        data_of.cache_clear()
        report.ratios.append((ratio, cell))
        best = sorted([*best, (ratio, cell)], key=lambda pair: -pair[0])[:20]
    return report


def main() -> int:
    """Run the laboratory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cells", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--largest", type=int, default=2**24, help="bytes of the largest array")
    parser.add_argument("--search", type=float, help="seconds to look for the worst cell")
    options = parser.parse_args()
    if options.search:
        report, most = search(options.search, options.first), 1.02
        for ratio, cell in sorted(report.ratios, key=lambda pair: -pair[0])[:10]:
            sys.stdout.write(f"{ratio:.4f} {cell}\n")
    else:
        report, most = (
            run(options.cells, options.first, options.largest, lambda line: sys.stdout.write(line + "\n")),
            MOST,
        )
    worst = max((ratio for ratio, _ in report.ratios), default=0.0)
    sys.stdout.write(
        f"{len(report.ratios)} cells, {len(report.over)} over {MOST}, worst {worst:.4f}, mean {report.mean:.4f}\n"
    )
    return int(worst > most)


if __name__ == "__main__":
    sys.exit(main())
