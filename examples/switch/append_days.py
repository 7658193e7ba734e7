"""Append a day of sensor readings at a time, as a job that runs each night would, and read a week back.

python examples/switch/append_days.py [save | load] [FOLDER]
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

import superchunk as blosc2

DAYS, MINUTES, SENSORS = 30, 1440, 12


def readings(day: int) -> np.ndarray:
    """Return what all sensors said on one day, minute by minute."""
    rng = np.random.default_rng(day)
    hour = np.arange(MINUTES)[:, None] / 60
    wave = 15 + 5 * np.sin((hour - 9) * np.pi / 12) + np.arange(SENSORS)
    return np.round(wave + rng.normal(scale=0.05, size=wave.shape), 2).astype("f4")


def digest(array: np.ndarray) -> str:
    """Return a short checksum of the items."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def start(folder: Path) -> None:
    """Make the files, with no day in them."""
    folder.mkdir(parents=True, exist_ok=True)
    cparams = blosc2.CParams(
        codec=blosc2.Codec.ZSTD, clevel=5, typesize=4, filters=[blosc2.Filter.SHUFFLE, blosc2.Filter.BYTEDELTA]
    )
    storage = {"urlpath": str(folder / "readings.b2nd"), "mode": "w"}
    shape = (0, MINUTES, SENSORS)
    chunks, blocks = (1, MINUTES, SENSORS), (1, 360, SENSORS)
    log = blosc2.zeros(shape, dtype=np.float32, chunks=chunks, blocks=blocks, cparams=cparams, **storage)
    log.schunk.vlmeta["sensors"] = [f"roof {n}" for n in range(SENSORS)]
    stamps = np.empty(0, dtype="M8[s]")
    blosc2.asarray(stamps, chunks=(4096,), blocks=(1024,), urlpath=str(folder / "stamps.b2nd"), mode="w")


def append(folder: Path, day: int) -> None:
    """Add one day to both files."""
    log = blosc2.open(str(folder / "readings.b2nd"), mode="a")
    log.resize((log.shape[0] + 1, *log.shape[1:]))
    log[-1] = readings(day)
    log.schunk.vlmeta["days"] = log.shape[0]
    stamps = blosc2.open(str(folder / "stamps.b2nd"), mode="a")
    begin = np.datetime64("2024-03-01T00:00:00") + np.timedelta64(day, "D")
    stamps.append(begin + np.arange(MINUTES).astype("m8[m]"))


def load(folder: Path) -> None:
    """Look at all of it, at one sensor, and at one hour of each day."""
    log = blosc2.open(str(folder / "readings.b2nd"), mode="r")
    stamps = blosc2.open(str(folder / "stamps.b2nd"), mode="r")
    print(log.shape, log.dtype, log.schunk.vlmeta["days"], log.schunk.vlmeta["sensors"][3])
    print("all", digest(log[:]), np.array_equal(log[:], np.stack([readings(day) for day in range(DAYS)])))
    print("one sensor", digest(log[..., 3]), float(log[..., 3].mean(dtype="f8")))
    print("noon of each day", digest(log[:, 12 * 60 : 13 * 60, :]))
    print("each tenth minute, backwards", digest(log[-7:, ::10][::-1]))
    print("stamps", stamps.shape, stamps.dtype, stamps[0], stamps[-1], digest(stamps[:]))
    print("warmest days", np.argsort([float(day.mean(dtype="f8")) for day in log[:]])[-3:])


if __name__ == "__main__":
    what, name = [*sys.argv[1:], *("both", "sensors")[len(sys.argv) - 1 :]]
    place = Path(name)
    if what != "load":
        start(place)
        for number in range(DAYS):
            append(place, number)
    if what != "save":
        load(place)
