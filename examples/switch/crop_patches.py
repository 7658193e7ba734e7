"""Keep a stack of pictures in one file and cut random patches out of it, as training on images does.

    python examples/switch/crop_patches.py [save | load] [FOLDER]

Chunks of one picture's tile, and blocks of 64 x 64 pixels in them: a patch costs a few blocks and not a picture.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

import superchunk as blosc2

PICTURES, HEIGHT, WIDTH, PATCH = 12, 480, 600, 64
BRIGHT = 125


def picture(number: int) -> np.ndarray:
    """Return one picture: clouds, an edge, some noise."""
    rng = np.random.default_rng(number)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    clouds = np.sin(x / (40 + number)) * np.cos(y / 55) * 60 + (x > 3 * y) * 40
    colours = np.stack([clouds + 100, clouds * 0.5 + 120, 150 - clouds], axis=-1)
    return np.clip(colours + rng.integers(-3, 4, colours.shape), 0, 255).astype("u1")


def digest(array: np.ndarray) -> str:
    """Return a short checksum of the items."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def save(folder: Path) -> None:
    """Write picture after picture into an array that is made empty."""
    folder.mkdir(parents=True, exist_ok=True)
    stack = blosc2.empty(
        (PICTURES, HEIGHT, WIDTH, 3),
        dtype=np.uint8,
        chunks=(1, 256, 256, 3),
        blocks=(1, 64, 64, 3),
        cparams={"codec": blosc2.Codec.LZ4, "clevel": 5, "filters": [blosc2.Filter.NOFILTER]},
        urlpath=str(folder / "pictures.b2nd"),
        mode="w",
        contiguous=True,
    )
    for number in range(PICTURES):
        stack[number] = picture(number)
    stack.schunk.vlmeta["order"] = "picture, row, column, colour"


def load(folder: Path) -> None:
    """Cut patches in several ways, and keep a batch of them."""
    stack = blosc2.open(str(folder / "pictures.b2nd"), mode="r")
    print(stack.shape, stack.chunks, stack.blocks, stack.schunk.vlmeta["order"])
    rng = np.random.default_rng(99)
    batch = np.empty((100, PATCH, PATCH, 3), dtype=np.uint8)
    for n in range(len(batch)):
        number = int(rng.integers(PICTURES))
        y, x = int(rng.integers(HEIGHT - PATCH)), int(rng.integers(WIDTH - PATCH))
        batch[n] = stack[number, y : y + PATCH, x : x + PATCH]
    print("patches", digest(batch), float(batch.mean(dtype="f8")))

    one = stack[7]
    print("a picture", digest(one), np.array_equal(one, picture(7)))
    print("thumbnails", digest(stack[:, ::8, ::8]))
    print("mirrored", digest(stack[2, 100:200, ::-1, 1]))
    some = [9, 0, 4, 4]
    print("some pictures", digest(stack[some]))
    part = stack.slice((slice(0, 3), slice(100, 228), slice(200, 328)))
    print("a part that stays compressed", part.shape, digest(part[...]))
    print("chunks that a patch needs", blosc2.get_slice_nchunks(stack, (slice(0, 1), slice(200, 300), slice(0, 64))))

    kept = blosc2.asarray(batch, chunks=(10, PATCH, PATCH, 3), urlpath=str(folder / "patches.b2nd"), mode="w")
    bright = kept[:].mean(axis=(1, 2, 3)) > BRIGHT
    print("bright ones", int(bright.sum()), digest(kept[bright]))


if __name__ == "__main__":
    what, name = [*sys.argv[1:], *("both", "pictures")[len(sys.argv) - 1 :]]
    place = Path(name)
    if what != "load":
        save(place)
    if what != "save":
        load(place)
