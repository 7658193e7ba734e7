"""The data that benchmarks compress: what people keep, at a fixed size, from a fixed seed.

Each is a one-dimensional array in C order. `climate` and `weather` are real (sea surface temperatures, model fields
and forecasts shipped by the iris-sample-data package), tiled to size with an offset for each tile so that no copy
repeats another; the others are made. Nothing may be tuned to the sets in `HELD_OUT`: they are there to tell whether
what was tuned on the others holds elsewhere, so figures are reported apart.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def tiled(data: NDArray[np.float32], nbytes: int) -> NDArray[np.float32]:
    """Return as many bytes of it, each repetition with an offset."""
    ntiles = -(-nbytes // data.nbytes)
    tiles = [data + np.float32(0.125 * n) for n in range(ntiles)]
    return np.concatenate(tiles)[: nbytes // 4]


def climate(nbytes: int) -> NDArray[np.float32]:
    """Return real fields, float32."""
    import h5netcdf
    import iris_sample_data

    root = Path(iris_sample_data.path)
    fields: list[NDArray[np.float32]] = []
    for path in sorted(root.glob("*.nc")):
        try:
            with h5netcdf.File(path, "r") as file:
                fields.extend(
                    np.asarray(variable[...], dtype="f4").ravel()
                    for variable in file.variables.values()
                    if variable.dtype.kind == "f" and variable.ndim >= 2
                )
        except OSError:
            continue  # a NetCDF 3 file
    return tiled(np.concatenate(fields), nbytes)


def smooth(nbytes: int) -> NDArray[np.float64]:
    """Return a sum of waves with a little noise in the last bits, float64."""
    t = np.arange(nbytes // 8) / 5000
    noise = np.random.default_rng(1).normal(scale=1e-9, size=t.size)
    return np.sin(t) + 0.3 * np.sin(7.1 * t) + noise


def stamps(nbytes: int) -> NDArray[np.int64]:
    """Return sorted times in nanoseconds with jitter, int64."""
    steps = np.random.default_rng(2).exponential(scale=1e6, size=nbytes // 8).astype("i8")
    return 1_700_000_000_000_000_000 + np.cumsum(steps)


def counts(nbytes: int) -> NDArray[np.uint16]:
    """Return detector counts: a Poisson background with rare bright spots, uint16."""
    rng = np.random.default_rng(3)
    data = rng.poisson(3.0, size=nbytes // 2).astype("u2")
    spots = rng.integers(0, data.size, data.size // 500)
    data[spots] += rng.integers(100, 60000, spots.size).astype("u2")
    return data


def categories(nbytes: int) -> NDArray[np.int32]:
    """Return category numbers in runs, int32."""
    rng = np.random.default_rng(4)
    lengths = rng.geometric(0.05, size=nbytes // 4 // 10)
    values = rng.integers(0, 40, lengths.size).astype("i4")
    return np.repeat(values, lengths)[: nbytes // 4].copy()


def text(nbytes: int) -> NDArray[np.uint8]:
    """Return lines of a log, bytes."""
    rng = np.random.default_rng(5)
    hosts = [f"node{n:02d}" for n in range(24)]
    verbs = ["GET", "PUT", "HEAD", "POST"]
    lines: list[str] = []
    length = 0
    now = 1_700_000_000
    while length < nbytes:
        now += int(rng.integers(0, 3))
        line = (
            f"{now} {hosts[int(rng.integers(24))]} {verbs[int(rng.integers(4))]} "
            f"/data/{int(rng.integers(5000)):05d}/chunk {int(rng.integers(200, 505))} "
            f"{int(rng.integers(1, 10**6))} bytes\n"
        )
        lines.append(line)
        length += len(line)
    return np.frombuffer("".join(lines).encode()[:nbytes], dtype="u1")


def noisy(nbytes: int) -> NDArray[np.float32]:
    """Return a slow wave under the noise of a sensor, float32."""
    t = np.arange(nbytes // 4) / 20_000
    noise = np.random.default_rng(6).normal(scale=0.05, size=t.size)
    return (20 + 5 * np.sin(t) + noise).astype("f4")


def noise(nbytes: int) -> NDArray[np.uint32]:
    """Return random bytes, as encrypted or compressed data looks, in items of four."""
    return np.frombuffer(np.random.default_rng(7).bytes(nbytes // 4 * 4), dtype="u4")


def weather(nbytes: int) -> NDArray[np.float32]:
    """Return two files of forecasts over Britain, headers included, float32."""
    import iris_sample_data

    root = Path(iris_sample_data.path)
    return tiled(np.concatenate([np.fromfile(root / f"{name}.pp", ">f4") for name in ("uk_hires", "colpex")]), nbytes)


def tracks(nbytes: int) -> NDArray[np.void]:
    """Return positions of vehicles, one after the other, as records of 20 bytes."""
    dtype = np.dtype([("time", "i8"), ("lat", "i4"), ("lon", "i4"), ("height", "i2"), ("speed", "u2")])
    data = np.zeros(nbytes // dtype.itemsize, dtype)
    rng = np.random.default_rng(8)
    speed = np.clip(np.cumsum(rng.normal(scale=20, size=data.size)) % 6000, 0, 3000)
    heading = np.cumsum(rng.normal(scale=0.05, size=data.size))
    data["time"] = 1_700_000_000_000 + np.cumsum(
        1000 + (rng.random(data.size) < 0.02) * rng.integers(0, 9000, data.size)
    )
    data["lat"] = 480_000_000 + np.cumsum(speed * np.cos(heading) * 0.9)
    data["lon"] = 110_000_000 + np.cumsum(speed * np.sin(heading) * 1.3)
    data["height"] = 5000 + 300 * np.sin(np.arange(data.size) / 700) + rng.integers(-4, 5, data.size)
    data["speed"] = speed
    return data


MAKERS: dict[str, Callable[[int], NDArray[Any]]] = {
    "climate": climate,
    "smooth": smooth,
    "stamps": stamps,
    "counts": counts,
    "categories": categories,
    "text": text,
    "noisy": noisy,
    "random": noise,
    "weather": weather,
    "tracks": tracks,
}
HELD_OUT = ("weather", "tracks")
"""What nothing is tuned to."""


def load(name: str, nbytes: int) -> NDArray[Any]:
    """Return the data set `name` with about `nbytes` bytes."""
    return MAKERS[name](nbytes)
