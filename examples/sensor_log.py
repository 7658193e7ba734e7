"""A log of measurements that grows while others read it.

Each minute's readings become one chunk. What has been committed survives whatever happens to
the writer, and a reader sees whole commits only.

    python examples/sensor_log.py
"""

from __future__ import annotations

import numpy as np

import superchunk

PATH = "log.b2frame"
MINUTE = 6000
"""Readings in one minute."""


def readings(minute: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return one minute of a slow wave with a little noise."""
    rng = np.random.default_rng(minute)
    time = np.arange(MINUTE) + minute * MINUTE
    return (20 + np.sin(time / 40_000) + rng.normal(0, 0.01, MINUTE)).astype("f4")


cparams = superchunk.CParams(
    codec=superchunk.Codec.ZSTD,
    typesize=4,
    filters=[superchunk.Filter.SHUFFLE, superchunk.Filter.BYTEDELTA],
    filters_meta=[0, 0],
)
with superchunk.SChunk(chunksize=MINUTE * 4, cparams=cparams, urlpath=PATH, mode="w") as log:
    log.vlmeta["sensor"] = {"name": "roof", "unit": "degC", "readings per minute": MINUTE}
    for minute in range(10):
        log.append_data(readings(minute).tobytes())
    print(f"{len(log):,} readings in {log.nchunks} chunks, {log.cratio:.2f} times smaller")

with superchunk.open(PATH) as log:
    last = np.frombuffer(log[-5:], dtype="f4")
    print(f"the last five from the {log.vlmeta['sensor']['name']}: {np.round(last, 2)}")
