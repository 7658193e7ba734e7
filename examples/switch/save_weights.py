"""Save the weights of a model, a file each, and load all of them or some rows of one.

    python examples/switch/save_weights.py [save | load] [FOLDER]

Weights hardly compress as they are: their low bits are noise. Where half of the precision is enough, as in a
checkpoint that is only read for scoring, cutting the last bits off makes them a third smaller.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

import superchunk as blosc2

LAYERS = {
    "embed.weight": (2000, 96),
    "block0.attention.weight": (96, 288),
    "block0.mlp.weight": (96, 384),
    "block0.mlp.bias": (384,),
    "head.weight": (96, 2000),
    "head.scale": (),
}


def weights() -> dict[str, np.ndarray]:
    """Return what a training run would have left."""
    rng = np.random.default_rng(0)
    return {name: rng.normal(scale=0.02, size=shape).astype("f4") for name, shape in LAYERS.items()}


def digest(array: np.ndarray) -> str:
    """Return a short checksum of the items."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def save(folder: Path) -> None:
    """Write each layer exactly, and once more with 12 bits of its mantissa."""
    folder.mkdir(parents=True, exist_ok=True)
    exact = {"codec": blosc2.Codec.ZSTD, "clevel": 5, "filters": [blosc2.Filter.SHUFFLE]}
    short = {
        "codec": blosc2.Codec.ZSTD,
        "clevel": 5,
        "filters": [blosc2.Filter.TRUNC_PREC, blosc2.Filter.BITSHUFFLE],
        "filters_meta": [12, 0],
    }
    for name, weight in weights().items():
        array = blosc2.asarray(weight, cparams=exact, urlpath=str(folder / f"{name}.b2nd"), mode="w")
        array.schunk.vlmeta["layer"] = {"name": name, "trained steps": 20_000}
        blosc2.save_tensor(weight, str(folder / f"{name}.short.b2frame"), cparams=short, mode="w")


def load(folder: Path) -> None:
    """Read everything back, and what a program that needs a part would read."""
    for name, weight in weights().items():
        array = blosc2.open(str(folder / f"{name}.b2nd"), mode="r")
        note = array.schunk.vlmeta["layer"]
        print(note["name"], array.shape, array.dtype, digest(array[...]), np.array_equal(array[...], weight))
        short = blosc2.load_tensor(str(folder / f"{name}.short.b2frame"))
        print("  short", short.shape, digest(short), np.allclose(short, weight, rtol=2**-11))
    words = blosc2.open(str(folder / "embed.weight.b2nd"), mode="r")
    print("rows of some words", digest(words[[17, 3, 1999, 3]]), digest(words[1990:]))
    print("one column", digest(words[:, 5]), float(words[17, 5]))


if __name__ == "__main__":
    what, name = [*sys.argv[1:], *("both", "weights")[len(sys.argv) - 1 :]]
    place = Path(name)
    if what != "load":
        save(place)
    if what != "save":
        load(place)
