"""Finding out which flipped bits a plain read notices, and which `verify` does.

The same content is written by superchunk and by python-blosc2. Every bit of both files is
flipped, one at a time, and the file is read whole: chunks, metalayers, vlmetalayers. A
read may raise an error, give other data without a word, or give the same data; python-blosc2
may also end the process, so it runs in one of its own. For superchunk's file, `verify`
is asked as well. Prints a table and writes ``results/bit_flips.json``::

    python benchmarks/bit_flips.py [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import superchunk

ITEMS = 100
CHUNKS = 5
BATCH = 2000
OUTCOMES = ("error", "other data", "crash or hang", "same data")
WORKER = "--read-with-blosc2"


def contents() -> list[np.ndarray]:
    """Return the chunks: four of numbers that compress, one of zeros."""
    return [np.arange(ITEMS, dtype=np.int32) * (n + 1) % 1009 for n in range(CHUNKS - 1)] + [np.zeros(ITEMS, np.int32)]


def write_ours(path: Path) -> None:
    """Write the content with superchunk."""
    with superchunk.SChunk(4 * ITEMS, urlpath=path, mode="w", meta={"m": b"abc"}, cparams={"typesize": 4}) as s:
        for chunk in contents():
            s.append_data(chunk)
        s.vlmeta["v"] = list(range(50))
        s.flush()
        s.compact()


def write_theirs(path: Path) -> None:
    """Write the content with python-blosc2."""
    import blosc2

    s = blosc2.SChunk(
        4 * ITEMS, urlpath=str(path), contiguous=True, mode="w", meta={"m": b"abc"}, cparams={"typesize": 4}
    )
    for chunk in contents():
        s.append_data(chunk)
    s.vlmeta["v"] = list(range(50))


def read_ours(path: Path) -> list[object]:
    """Return all that the frame holds, read with superchunk."""
    with superchunk.open(path) as s:
        chunks = [s.decompress_chunk(n) for n in range(s.nchunks)]
        return [s.typesize, chunks, [(n, s.meta[n]) for n in s.meta], [(n, s.vlmeta[n]) for n in s.vlmeta]]


def read_theirs(path: Path) -> list[object]:
    """Return all that the frame holds, read with python-blosc2."""
    import blosc2

    s = blosc2.open(str(path), mode="r")
    chunks = [s.decompress_chunk(n) for n in range(s.nchunks)]
    return [s.typesize, chunks, [(n, s.meta[n]) for n in s.meta], [(n, s.vlmeta[n]) for n in s.vlmeta]]


def flip(path: Path, raw: bytes, number: int) -> None:
    """Write `raw` with one bit the other way round."""
    at, bit = divmod(number, 8)
    path.write_bytes(raw[:at] + bytes((raw[at] ^ 1 << bit,)) + raw[at + 1 :])


def outcome(read: Any, path: Path, wanted: list[object]) -> str:
    """Return what a plain read makes of the file."""
    try:
        return "same data" if read(path) == wanted else "other data"
    except Exception:  # noqa: BLE001 - whatever it raises, it noticed
        return "error"


def work(path: Path, first: int, last: int) -> None:
    """Read with python-blosc2 after each of these flips; one line for each on standard output."""
    raw = path.read_bytes()
    wanted = read_theirs(path)
    copy = path.with_suffix(".flipped")
    for number in range(first, last):
        flip(copy, raw, number)
        print(number, outcome(read_theirs, copy, wanted), flush=True)


def theirs(path: Path, nbits: int) -> list[str]:
    """Return the outcomes for python-blosc2; whoever ends the process is a crash."""
    found: list[str] = []
    while len(found) < nbits:
        last = min(len(found) + BATCH, nbits)
        command = [sys.executable, __file__, WORKER, str(path), str(len(found)), str(last)]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
            lines = result.stdout.splitlines()
        except subprocess.TimeoutExpired as error:
            lines = (error.stdout or b"").decode().splitlines()
        for line in lines:
            number, _, what = line.partition(" ")
            if number == str(len(found)) and what in OUTCOMES:
                found.append(what)
        if len(found) < last:
            found.append("crash or hang")
    return found


def part_of(report: superchunk.VerifyReport, at: int) -> str:
    """Return the name of the part of a sound frame that byte `at` belongs to."""
    best = "chunks and seals"
    for part in report.parts:
        if part.position <= at < part.position + part.length:
            best = part.name
    return best


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "bit_flips.json")
    parser.add_argument(WORKER, nargs=3, dest="worker")
    chosen = parser.parse_args()
    if chosen.worker:
        work(Path(chosen.worker[0]), int(chosen.worker[1]), int(chosen.worker[2]))
        return
    import blosc2

    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder) / "ours.b2frame", Path(folder) / "theirs.b2frame"
        write_ours(path)
        write_theirs(other)
        raw, wanted = path.read_bytes(), read_ours(path)
        sound = superchunk.verify(path)
        copy = Path(folder) / "flipped.b2frame"
        plain, verified, missed = [], Counter[str](), Counter[tuple[str, str]]()
        for number in range(8 * len(raw)):
            flip(copy, raw, number)
            plain.append(outcome(read_ours, copy, wanted))
            verified[superchunk.verify(copy, nthreads=1).status] += 1
            if plain[-1] != "error":
                missed[part_of(sound, number // 8), plain[-1]] += 1
        peer = theirs(other, 8 * other.stat().st_size)
    record = {
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        "versions": {"superchunk": superchunk.__version__, "blosc2": blosc2.__version__},
        "superchunk": {
            "file_bytes": len(raw),
            "dead_bytes": sound.dead_bytes,
            "plain_read": Counter(plain),
            "verify": verified,
            "not_noticed_by_plain_read": {f"{part}: {what}": n for (part, what), n in sorted(missed.items())},
        },
        "blosc2": {"file_bytes": len(peer) // 8, "plain_read": Counter(peer)},
    }
    chosen.output.write_text(json.dumps(record, indent=2) + "\n")
    print(f"{'flips':>8}  {'':<28}" + "".join(f"{name:>16}" for name in OUTCOMES))
    for name, found in (("superchunk, plain read", plain), ("blosc2, plain read", peer)):
        counts = Counter(found)
        print(f"{len(found):>8}  {name:<28}" + "".join(f"{counts[what] / len(found):>16.1%}" for what in OUTCOMES))
    print(f"{len(plain):>8}  superchunk.verify            " + ", ".join(f"{n} {s}" for s, n in verified.items()))
    print("not noticed by superchunk's plain read:")
    for (part, what), count in sorted(missed.items()):
        print(f"{count:>8}  {part}: {what}")


if __name__ == "__main__":
    main()
