"""Damaged and hostile input through every entry point that takes some: only errors of the family may come out.

::

    python tests/labs/hostile_input.py --seconds 60 [--seed 1]     or --cases 2000

Inputs are chunks, frames, sparse frames, packed arrays and pickles: sound ones made here, the golden files, and
the corpus of hostile files if it is there; each as it is, and damaged by bytes written, cut, inserted, copied and
spliced. A frame is opened as a file and as bytes; chunks, items, slices, metadata and reports are asked for. What
comes out must be a value, a `SuperchunkError`, or a MemoryError. Prints each other error with the input that gives
it; the exit status is 1 then.
"""

from __future__ import annotations

import argparse
import importlib.util
import operator
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import superchunk
from superchunk import NDArray, SChunk
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
HOSTILE = ROOT.parent / "shared" / "corpus" / "hostile"
LARGEST = 20_000
"""Bytes; larger inputs are slow to damage and hold nothing else."""
MOST_READ = 1 << 22
MOST_CHUNKS = 12
SHOWN = 400


def _mutator() -> Any:
    """Return what damages frames in the fuzzer of frames."""
    spec = importlib.util.spec_from_file_location("fuzz_frames", ROOT / "fuzz" / "frames.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Mutator


@dataclass(slots=True)
class Outcome:
    """What was tried, and what came out that must not."""

    cases: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    """How often each entry point was called, and how often it raised, as ``NAME raised``."""
    failures: dict[str, str] = field(default_factory=dict)
    """Error and place, and the first input that led there."""

    def tried(self, name: str, call: Callable[[], object], told: str) -> object:
        """Call an entry point; return what it returns, None after an error."""
        self.calls[name] += 1
        try:
            return call()
        except (SuperchunkError, MemoryError):
            self.calls[f"{name} raised"] += 1
        except Exception as error:  # noqa: BLE001  (what this looks for)
            where = traceback.extract_tb(error.__traceback__)[-1]
            key = f"{name}: {type(error).__name__} at {where.filename}:{where.lineno}: {error}"
            self.failures.setdefault(key[:SHOWN], told)
        return None


def sound_frames() -> list[bytes]:
    """Return frames of every kind that is small, made by us, by golden writers, and by those who mean harm."""
    rng = np.random.default_rng(5)
    noisy = rng.integers(0, 9, 600).astype("i4")
    metadata = {"text": "a", "array": np.arange(5.0), "times": np.zeros(2, "M8[s]"), "set": {1, 2}, "z": 1j, "t": (1,)}
    plain = SChunk(chunksize=800, data=noisy, meta={"fixed": [1, {"a": b"b"}]})
    plain.vlmeta.update(metadata)
    plain.vlmeta["frame"] = superchunk.asarray(np.arange(4))
    varying = SChunk(chunksize=-1)
    for n in range(1, 4):
        varying.append_data(bytes(range(60)) * n)
    record = np.zeros((6, 7), [("a", "<i2"), ("b", ">f4", (2,)), ("c", "U3")])
    frames: list[Any] = [plain, varying, superchunk.asarray(noisy.reshape(20, 30), chunks=(6, 7), blocks=(3, 4))]
    frames += [superchunk.asarray(record, chunks=(4, 4)), superchunk.asarray(np.array(3.5)), superchunk.zeros((0, 4))]
    packed = [superchunk.pack_tensor(noisy), superchunk.pack_array2(record)]
    found: list[bytes] = [frame.to_cframe() for frame in frames] + [bytes(one) for one in packed]
    return found + [path.read_bytes() for path in _files(".b2frame", ".b2nd")]


def sound_chunks() -> list[bytes]:
    """Return chunks of every kind that is small, and pickles in chunks."""
    values = np.arange(300, dtype="i4")
    found = [superchunk.compress2(values, typesize=4, codec=codec) for codec in superchunk.compressor_list()]
    found += [superchunk.pack(values), superchunk.pack_array(np.zeros(3, [("a", "i2"), ("b", "U4")]))]
    found += [superchunk.pack_array(np.array(["a", 1, None], object)), superchunk.pack(np.float32(2))]
    return found + [path.read_bytes() for path in _files(".chunk")]


def _files(*suffixes: str) -> Iterator[Path]:
    for folder in (GOLDEN, HOSTILE):
        for path in sorted(folder.rglob("*")):
            if path.suffix in suffixes and path.is_file() and path.stat().st_size <= LARGEST:
                yield path


def sound_folders(into: Path) -> list[Path]:
    """Make small sparse frames, and return their directories."""
    made = []
    for number, data in enumerate((np.arange(600, dtype="i4"), np.zeros(600, "i4"))):
        path = into / f"sparse-{number}"
        with SChunk(chunksize=800, data=data, urlpath=str(path), contiguous=False, mode="w") as s:
            s.vlmeta["a"] = [1, 2]
        made.append(path)
    path = into / "sparse-array"
    superchunk.asarray(
        np.arange(60.0).reshape(6, 10), chunks=(3, 4), urlpath=str(path), contiguous=False
    ).schunk.close()
    return [*made, path, *(each for each in sorted((HOSTILE / "sframe").glob("*")) if each.is_dir())]


class Damage:
    """Damages bytes of any kind."""

    def __init__(self, seed: int, frames: list[bytes]) -> None:
        self.random = random.Random(seed)
        self._frames = _mutator()(seed, frames)

    def frame(self) -> bytes:
        """Return a damaged frame."""
        damaged: bytes = self._frames.frame()
        return damaged

    def of(self, content: bytes) -> bytes:
        """Return bytes with a few of them changed, or cut short."""
        damaged = bytearray(content)
        for _ in range(self.random.choice((1, 1, 2, 4))):
            if not damaged:
                break
            at = self.random.randrange(min(len(damaged), 64) if self.random.random() < 0.5 else len(damaged))
            way = self.random.random()
            if way < 0.4:
                damaged[at] ^= 1 << self.random.randrange(8)
            elif way < 0.8:
                damaged[at : at + 4] = self.random.choice((0, 1, 2**31 - 1, 2**32 - 1, len(content))).to_bytes(
                    4, "little"
                )
            else:
                del damaged[at : at + self.random.choice((1, 4, len(damaged)))]
        return bytes(damaged)


def look_into(outcome: Outcome, opened: Any, told: str) -> None:
    """Ask for all that a container gives."""
    tried = partial(outcome.tried, told=told)
    schunk = getattr(opened, "schunk", opened)
    if not isinstance(schunk, SChunk):
        return
    nchunks = int(tried("SChunk.nchunks", lambda: schunk.nchunks) or 0)  # type: ignore[call-overload]
    for n in range(nchunks) if nchunks <= MOST_CHUNKS else (0, 1, nchunks - 1):
        chunk = tried("SChunk.get_chunk", partial(schunk.get_chunk, n))
        sizes = tried("get_cbuffer_sizes", partial(superchunk.get_cbuffer_sizes, chunk)) if chunk else None  # type: ignore[arg-type]
        if isinstance(sizes, tuple) and sizes[0] <= MOST_READ:
            tried("SChunk.decompress_chunk", partial(schunk.decompress_chunk, n))
        tried("SChunk.get_lazychunk", partial(schunk.get_lazychunk, n))
    for layers in (schunk.meta, schunk.vlmeta):
        for name in tried("names", partial(list, layers)) or ():  # type: ignore[attr-defined]
            tried(f"{type(layers).__name__}[name]", partial(operator.getitem, layers, name))
            tried(f"{type(layers).__name__}.raw", partial(layers.raw, name))
    tried("repr", lambda: repr(opened))
    tried("info", lambda: opened.info_items)
    tried("chunk_map", lambda: superchunk.chunk_map(schunk))
    if schunk.nbytes <= MOST_READ:
        tried("SChunk[:]", lambda: schunk[:])
        tried("SChunk.to_cframe", schunk.to_cframe)
        tried("SChunk.copy", schunk.copy)
        tried("SChunk.iterchunks", lambda: list(schunk.iterchunks(np.dtype("u1"))))
    tried("SChunk.get_slice", lambda: schunk.get_slice(0, 1))
    tried("SChunk.iterchunks_info", lambda: [*zip(range(MOST_CHUNKS), schunk.iterchunks_info(), strict=False)])
    if isinstance(opened, NDArray):
        _look_into_array(outcome, opened, told)


def _look_into_array(outcome: Outcome, opened: NDArray, told: str) -> None:
    """Ask for items and fields."""
    tried = partial(outcome.tried, told=told)
    small = opened.nbytes <= MOST_READ
    if small:
        tried("NDArray[...]", lambda: opened[...])
        tried("NDArray.copy", lambda: opened.copy(chunks=tuple(max(n // 2, 1) for n in opened.shape)))
    if opened.size:
        tried("NDArray[last]", lambda: opened[tuple(-1 for _ in opened.shape)])
    for name in (opened.dtype.names or ()) if small else ():
        tried("NDField[...]", partial(operator.getitem, opened[name], ...))


def try_frame(outcome: Outcome, frame: bytes, path: Path, told: str) -> None:
    """Put a frame through all that take frames, as bytes and as a file."""
    path.write_bytes(frame)
    tried = partial(outcome.tried, told=told)
    for name in ("from_cframe", "schunk_from_cframe", "ndarray_from_cframe", "unpack_tensor", "unpack_array2"):
        opened = tried(name, partial(getattr(superchunk, name), frame))
        look_into(outcome, opened, told)
    tried("from_cframe full", lambda: superchunk.from_cframe(frame, deserialize="full"))
    try_path(outcome, path, told)
    for name in ("load_array", "load_tensor"):
        tried(name, partial(getattr(superchunk, name), str(path)))


def try_path(outcome: Outcome, path: Path, told: str) -> None:
    """Put what is at a path through all that open paths."""
    tried = partial(outcome.tried, told=told)
    ways: list[dict[str, Any]] = [{}, {"recover": True}, {"snapshot": True, "verify": "read"}, {"mmap_mode": "c"}]
    for keywords in [*ways, {"deserialize": "full"}, {"mode": "a"}]:
        if path.is_dir() and "mmap_mode" in keywords:
            continue
        opened: Any = tried(f"open {keywords}", partial(superchunk.open, str(path), **keywords))
        look_into(outcome, opened, told)
        if opened is not None:
            tried("close", getattr(opened, "schunk", opened).close)
    tried("SChunk(urlpath)", lambda: SChunk(urlpath=str(path), mode="r").close())
    tried("verify", lambda: superchunk.verify(str(path)))


def try_chunk(outcome: Outcome, chunk: bytes, told: str) -> None:
    """Put a chunk through all that take chunks."""
    sizes = outcome.tried("get_cbuffer_sizes", lambda: superchunk.get_cbuffer_sizes(chunk), told)
    if isinstance(sizes, tuple) and sizes[0] > MOST_READ:
        return
    for name in ("decompress", "decompress2", "unpack", "unpack_array", "get_clib"):
        outcome.tried(name, partial(getattr(superchunk, name), chunk), told)


def run(*, cases: int | None = None, seconds: float | None = None, seed: int = 1) -> Outcome:
    """Try sound and hostile inputs as they are once, and then damaged ones.

    Parameters
    ----------
    cases
        How many damaged inputs; None: until the `seconds` are over.
    seconds
        How long to go on.
    seed
        Which damage: the same seed damages the same inputs in the same way.

    """
    outcome = Outcome()
    end = time.monotonic() + (seconds or 0.0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(folder)
        frames, chunks, folders = sound_frames(), sound_chunks(), sound_folders(place)
        damage = Damage(seed, frames)
        while outcome.cases < cases if cases is not None else time.monotonic() < end:
            case, outcome.cases = outcome.cases, outcome.cases + 1
            path = place / "damaged"
            kind = case % 4
            if kind < 2:
                frame = damage.frame()
                try_frame(outcome, frame, path, f"frame {frame.hex()}")
            elif kind == 2:
                chunk = damage.of(damage.random.choice(chunks))
                try_chunk(outcome, chunk, f"chunk {chunk.hex()}")
            else:
                _try_folder(outcome, damage, damage.random.choice(folders), path)
        if seconds is not None:
            _try_undamaged(outcome, frames, chunks, place / "sound")
    return outcome


def _try_folder(outcome: Outcome, damage: Damage, sound: Path, path: Path) -> None:
    """Damage one file of a sparse frame."""
    path.unlink(missing_ok=True)
    shutil.copytree(sound, path)
    names = sorted(each for each in path.rglob("*") if each.is_file())
    try:
        if names:
            chosen = damage.random.choice(names)
            content = damage.of(chosen.read_bytes())
            chosen.write_bytes(content) if damage.random.random() < 0.9 else chosen.unlink()
            try_path(outcome, path, f"{sound.name}/{chosen.name} {content.hex()}")
    finally:
        shutil.rmtree(path)


def _try_undamaged(outcome: Outcome, frames: list[bytes], chunks: list[bytes], path: Path) -> None:
    """Try the inputs as they are: the sound ones, and those that others have damaged."""
    for frame in frames:
        try_frame(outcome, frame, path, f"frame {frame.hex()}")
    for chunk in chunks:
        try_chunk(outcome, chunk, f"chunk {chunk.hex()}")


def main() -> int:
    """Run for as long as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, help="how many damaged inputs")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on, without --cases")
    parser.add_argument("--seed", type=int, default=1, help="which damage")
    chosen = parser.parse_args()
    outcome = run(cases=chosen.cases, seconds=None if chosen.cases else chosen.seconds, seed=chosen.seed)
    raised = sum(count for name, count in outcome.calls.items() if name.endswith(" raised"))
    calls = sum(outcome.calls.values()) - raised
    for failure, told in outcome.failures.items():
        print(f"{failure}\n    {told[:SHOWN]}", file=sys.stderr)  # noqa: T201  (a script prints)
    counts = f"{calls} calls, {raised} errors of the family, {len(outcome.failures)} others"
    print(f"{outcome.cases} inputs, {counts}")  # noqa: T201  (a script prints)
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
