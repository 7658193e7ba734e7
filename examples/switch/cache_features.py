"""Remember on disk what a slow function returned, compressed, for as long as its arguments stay the same.

python examples/switch/cache_features.py [save | load] [FOLDER]
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import numpy as np

import superchunk as blosc2

if TYPE_CHECKING:
    from collections.abc import Callable

Given = ParamSpec("Given")
CALLS = []


def digest(array: np.ndarray) -> str:
    """Return a short checksum of the items."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def remembered(folder: Path) -> Callable[[Callable[Given, np.ndarray]], Callable[Given, np.ndarray]]:
    """Return a decorator that keeps results in files of `folder`."""

    def decorate(function: Callable[Given, np.ndarray]) -> Callable[Given, np.ndarray]:
        @functools.wraps(function)
        def call(*args: Given.args, **keywords: Given.kwargs) -> np.ndarray:
            asked = json.dumps([function.__name__, args, keywords], sort_keys=True)
            path = folder / f"{hashlib.sha256(asked.encode()).hexdigest()[:20]}.b2frame"
            if path.exists():
                return np.asarray(blosc2.load_array(str(path)))
            result = function(*args, **keywords)
            cparams = {"codec": blosc2.Codec.LZ4, "clevel": 5, "typesize": result.itemsize}
            blosc2.save_array(result, str(path), cparams=cparams, mode="w")
            file = blosc2.open(str(path), mode="a")
            file.vlmeta["asked"] = asked
            return result

        return call

    return decorate


def use(folder: Path) -> None:
    """Ask for features twice; the function is called for what no file holds."""
    folder.mkdir(parents=True, exist_ok=True)

    @remembered(folder)
    def spectrum(seed: int, *, length: int, windows: int = 50) -> np.ndarray:
        CALLS.append(seed)
        signal = np.sin(np.arange(length) / 7) + np.random.default_rng(seed).integers(0, 8, length) / 16
        return np.stack([signal[at : at + 512].reshape(32, 16).sum(axis=1) for at in range(0, windows * 64, 64)])

    @remembered(folder)
    def labels(*names: str) -> np.ndarray:
        CALLS.append(len(names))
        return np.array([(name, len(name)) for name in names], dtype=[("name", "U12"), ("letters", "<i4")])

    for _ in range(2):
        for seed in range(6):
            features = spectrum(seed, length=8192)
            print("features", seed, features.shape, features.dtype, digest(features))
        named = labels("ada", "grace", "émilie")
        print("labels", named["name"].tolist(), named["letters"].sum(), named.dtype)
    for path in sorted(folder.glob("*.b2frame")):
        file = blosc2.open(str(path), mode="r")
        print(path.name, file.vlmeta["asked"])

    small = np.arange(60, dtype="i2").reshape(3, 4, 5)
    packed = {"tensor": blosc2.pack_tensor(small), "array": blosc2.pack_array2(small[1:])}
    print("packed", digest(blosc2.unpack_tensor(packed["tensor"])), blosc2.unpack_array2(packed["array"]).shape)


if __name__ == "__main__":
    what, name = [*sys.argv[1:], *("both", "features")[len(sys.argv) - 1 :]]
    place = Path(name)
    use(place)
    if what == "load":
        print("called", len(CALLS), "times")
