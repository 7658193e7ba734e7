"""Fuzz what Python parses of arrays: the metalayer `b2nd` and the dtype text in it.

::

    python fuzz/arrays.py --seconds 60 [--seed 1]

Damages layers and texts, of the corpus and made up here, and reads them. Only errors of ours may come
out, in bounded time and memory; what is read must say the same when it is written and read again, and its
fields must lie within the item. A damaged layer is also put into a sound frame, which is
opened and read. An input that breaks this is written to fuzz/artifacts/arrays, and the exit status
is 1. The same seed tries the same inputs in the same order.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import superchunk
from superchunk._array.ndarray import NDArray
from superchunk._format.b2nd import LAYERS, ArrayLayout
from superchunk._format.dtypes import dtype_text, parse_dtype
from superchunk._format.frame_header import FIXED_LEN, FrameHeader
from superchunk._format.metalayers import read_metalayers
from superchunk.exceptions import DtypeError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "tests" / "golden", ROOT.parent / "shared" / "corpus")
ARTIFACTS = ROOT / "fuzz" / "artifacts" / "arrays"
LARGEST = 20_000
"""Bytes; larger frames are slow to fuzz and hold nothing else."""
MOST_SECONDS = 5.0
MOST_MEMORY = 256 * 1024 * 1024
MOST_READ = 1 << 22
TYPESIZES = (1, 2, 4, 8, 16, 255, 300)
EDGES = (-(2**63), -1, 0, 1, 2, 15, 2**15, 2**16, 2**24, 2**31 - 33, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1)
PIECES = (
    *("[", "]", "(", ")", "{", "}", ",", ":", "'", '"', "\\", "\\x41", "\\ud800", "-", "/", "|", "<", ">", "="),
    *("0", "1", "8", "2147483647", "99999999999", "True", "None", "'a'", "'b'", "''", "'V2147483647'", "V", "S", "U"),
    *("M8[", "m8[s/0]", "ns]", "O", "'O'", "|O8", "i4", "f8", "bfloat16", "int4", "a", "object", "T", "str", "float"),
    *("'names'", "'formats'", "'offsets'", "'titles'", "'itemsize'", "'aligned'", "[('a', ", "('t', 'n')", ", (2,))"),
)
TEXTS = (
    *("<i4", "|b1", ">f8", "<c16", "<M8[25s]", "|S300", "<U7", "|V3", "bfloat16"),
    "[('a', '<i4'), ('b', '<f8', (2, 3)), (('title', 'c'), 'S3')]",
    "[('p', [('x', '<f4'), ('y', '?')], (2,)), ('k', '<i8')]",
    "{'names': ['a', 'b'], 'formats': ['u1', '<f8'], 'offsets': [0, 8], 'itemsize': 16, 'aligned': True}",
    "{'names': ['a'], 'formats': [('<f8', (2,))], 'offsets': [8], 'titles': ['t'], 'itemsize': 32}",
)


def layer_in(frame: bytes) -> tuple[int, int] | None:
    """Return where the layer of an array stands in a frame; nothing if it is none."""
    try:
        header = FrameHeader.from_bytes(frame[:FIXED_LEN])
        layers = read_metalayers(frame[: header.header_len])
    except SuperchunkError:
        return None
    return next((layers[name] for name in LAYERS if name in layers), None)


def sound_frames() -> list[tuple[bytes, int, int]]:
    """Return small frames of arrays, and where their layer stands."""
    found = []
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".b2nd", ".b2frame"} and path.is_file() and path.stat().st_size <= LARGEST:
                frame = path.read_bytes()
                place = layer_in(frame)
                if place is not None:
                    found.append((frame, *place))
    return found


class Mutator:
    """Damages layers and texts in ways that get past the first check."""

    def __init__(self, seed: int, layers: list[bytes]) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no secrets here
        self.layers = layers

    def layer(self, layer: bytes | None = None) -> bytes:
        """Return a damaged layer; of the same length if one is given."""
        same = layer is not None
        damaged = bytearray(self.random.choice(self.layers) if layer is None else layer)
        for _ in range(self.random.choice((1, 1, 2, 4))):
            self.number(damaged) if self.random.random() < 0.6 else self.byte(damaged)  # noqa: PLR2004 - shares
        if same:
            return bytes(damaged)
        if self.random.random() < 0.3:  # noqa: PLR2004
            text = self.text().encode("utf-8", "surrogatepass")
            ndim = min(damaged[2] if len(damaged) > 2 else 0, 16)  # noqa: PLR2004
            damaged[6 + 19 * ndim :] = b"\0\xdb" + len(text).to_bytes(4, "big") + text
        return bytes(damaged[: self.random.randrange(len(damaged) + 1)] if self.random.random() < 0.2 else damaged)  # noqa: PLR2004

    def number(self, layer: bytearray) -> None:
        """Write an edge where a length stands."""
        ndim = layer[2] if len(layer) > 2 else 0  # noqa: PLR2004
        size = self.random.choice((8, 4))
        if 6 + 19 * ndim > len(layer) or not ndim:
            return self.byte(layer)
        i = self.random.randrange(ndim)
        at = 5 + 9 * i if size == 8 else self.random.choice((6 + 9 * ndim, 7 + 14 * ndim)) + 5 * i  # noqa: PLR2004
        value = self.random.choice(EDGES) + self.random.choice((-1, 0, 0, 1))
        layer[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "big")
        return None

    def byte(self, layer: bytearray) -> None:
        """Write a byte."""
        if layer:
            layer[self.random.randrange(len(layer))] = self.random.choice((0, 1, 16, 17, 127, 128, 255, 0x4F))

    def text(self) -> str:
        """Return a damaged dtype text."""
        text = self.random.choice((*TEXTS, ""))
        for _ in range(self.random.choice((1, 1, 2, 5, 12))):
            at = self.random.randrange(len(text) + 1)
            cut = self.random.choice((0, 0, 1, 3))
            text = text[:at] + self.random.choice(PIECES) * self.random.choice((1, 1, 1, 40)) + text[at + cut :]
        return text


def read_layer(layer: bytes) -> None:
    """Read a layer and what it says."""
    layout = ArrayLayout.from_bytes(layer)
    if ArrayLayout.from_bytes(layout.to_bytes()) != layout:
        raise AssertionError("the layer reads back as another")
    for typesize in TYPESIZES:
        try:
            layout.check(typesize=typesize, chunksize=layout.chunk_items * typesize, nchunks=layout.nchunks)
        except SuperchunkError:
            continue
    read_text(layout.dtype_text, 8)


def read_text(text: str | None, typesize: int) -> None:
    """Read a dtype text, and use the dtype."""
    dtype = parse_dtype(text, typesize)
    if dtype.itemsize != typesize or dtype.hasobject:
        raise AssertionError(f"{dtype!r} for items of {typesize} bytes")
    for name in dtype.names or ():
        form, offset, *_ = dtype.fields[name]  # type: ignore[index]
        if not 0 <= offset <= offset + form.itemsize <= typesize:
            raise AssertionError(f"field {name!r} of {dtype!r} lies outside of the item")
    try:
        again = dtype_text(dtype)
    except ValueError:
        return  # read, but nothing that can be written: too deep by the dict of a gap
    if parse_dtype(again, typesize) != dtype:
        raise AssertionError(f"{dtype!r} reads back as another")


def read_frame(frame: bytes) -> None:
    """Open a frame as an array, and read all of a small one, an item of a large one."""
    opened = superchunk.from_cframe(frame)
    array = opened if isinstance(opened, NDArray) else NDArray(opened)
    if array.size * array.dtype.itemsize <= MOST_READ:
        whole = array[...]
        if whole.shape != array.shape or whole.dtype != array.dtype:
            raise AssertionError(f"{whole.shape} {whole.dtype!r} read of {array.shape} {array.dtype!r}")
    elif array.size:
        array[tuple(size - 1 for size in array.shape)]


def verdict(read: Callable[[], None]) -> str:
    """Read something; return what promise that broke, or nothing."""
    before, started = peak(), time.monotonic()
    try:
        read()
    except (SuperchunkError, DtypeError, MemoryError):
        pass
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the engine is one
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {where.filename}:{where.lineno}: {error}"
    if time.monotonic() - started > MOST_SECONDS:
        return f"over {MOST_SECONDS} s"
    return f"over {MOST_MEMORY >> 20} MiB" if peak() - before > MOST_MEMORY else ""


def peak() -> int:
    """Return the most memory that the process had so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def keep(content: bytes, why: str) -> None:
    """Write an input that breaks a promise where it can be found."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    path = ARTIFACTS / f"crash-{hashlib.sha256(content).hexdigest()[:16]}"
    path.write_bytes(content)
    print(f"{path}: {why}", file=sys.stderr)


def main() -> int:
    """Fuzz for as long as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=1, help="which inputs to try")
    chosen = parser.parse_args()
    warnings.simplefilter("error")
    frames = sound_frames()
    made = [ArrayLayout((7,) * n, (4,) * n, (2,) * n, text).to_bytes() for n in range(16) for text in TEXTS]
    made.append(ArrayLayout((2,) * 16, (2,) * 16, (1,) * 16).to_bytes())
    mutator = Mutator(chosen.seed, [*made, *(frame[at : at + length] for frame, at, length in frames)])
    end = time.monotonic() + chosen.seconds
    tried = 0
    broken: set[str] = set()
    while time.monotonic() < end:
        layer, text, typesize = mutator.layer(), mutator.text(), mutator.random.choice(TYPESIZES)
        jobs: list[tuple[bytes, Callable[[], None]]] = [
            (layer, lambda layer=layer: read_layer(layer)),  # type: ignore[misc]
            (text.encode("utf-8", "surrogatepass"), lambda t=text, n=typesize: read_text(t, n)),  # type: ignore[misc]
        ]
        if frames:
            frame, at, length = mutator.random.choice(frames)
            whole = frame[:at] + mutator.layer(frame[at : at + length]) + frame[at + length :]
            jobs.append((whole, lambda whole=whole: read_frame(whole)))  # type: ignore[misc]
        for content, job in jobs:
            tried += 1
            why = verdict(job)
            if why and why not in broken:
                broken.add(why)
                keep(content, why)
    print(f"{tried} damaged layers, texts and frames, {len(broken)} promises broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
