"""Read one container from nobody knows whom, as a process of its own, and say how it went.

::

    python hostile_reader.py chunk|frame PATH   ->   one line of JSON

    outcome  "decoded" or "raised"              sha256  of all bytes, null if not read whole
    error    class names of the exception       message
    grown    bytes by which the process grew    seconds

A crash ends the process without that line, a hang runs into the caller's time limit, and memory
is limited by the system. Judges nothing: that is the work of test_hostile.py.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peak_memory import peak_bytes

import superchunk
from superchunk import _engine

if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY = 1024**3
"""Address space in bytes that reading may take beyond what the process has at its start."""
WHOLE = 64 * 1024 * 1024
"""Contents of at most this many bytes are read whole."""
ENDS = 20
"""Of more chunks than twice this only the first and the last ones are read."""


def read_chunk(path: Path) -> str | None:
    """Read a chunk in every way there is; return the hash of its content."""
    chunk = path.read_bytes()
    info = _engine.describe(chunk)
    _engine.sizes([chunk])
    plain = _engine.decompress(chunk)
    if len(plain) != info.nbytes:
        raise SystemExit(f"{len(plain)} bytes came out of a chunk of {info.nbytes}")
    if _engine.decompress(chunk, nthreads=2) != plain:
        raise SystemExit("two threads read something else than one")
    with path.open("rb") as file:
        source = (file.fileno(), 0, len(chunk))
        if _engine.decompress(source) != plain:
            raise SystemExit("the file reads differently from its bytes")
        _engine.lazy_chunk(source, 0, 0)
    for start, stop in ((0, 1), (info.nbytes // 2, info.nbytes), (info.nbytes - 1, info.nbytes)):
        if 0 <= start <= stop <= info.nbytes:
            part = _engine.read([(chunk, info.nbytes, start, stop, 0)])
            if part != plain[start:stop]:
                raise SystemExit(f"bytes {start} to {stop} read differently alone")
    if info.vlblocks:
        _engine.read_vlblocks(chunk)
    return hashlib.sha256(plain).hexdigest()


def read_chunks(schunk: superchunk.SChunk) -> str | None:
    """Read chunks, all or the ends of many; return the hash of all bytes if they were read."""
    numbers = range(schunk.nchunks)
    hasher = hashlib.sha256()
    nbytes = 0
    for nchunk in numbers if len(numbers) <= 2 * ENDS else (*numbers[:ENDS], *numbers[-ENDS:]):
        if _engine.describe(schunk.get_chunk(nchunk)).nbytes > WHOLE:
            continue
        plain = schunk.decompress_chunk(nchunk) or b""
        nbytes += len(plain)
        hasher.update(plain)
    if len(numbers) <= 2 * ENDS and schunk.nbytes <= WHOLE:
        if nbytes != schunk.nbytes:
            raise SystemExit(f"{nbytes} bytes came out of a frame of {schunk.nbytes}")
        return hasher.hexdigest()
    return None


def read_array(array: superchunk.NDArray) -> str | None:
    """Read items of an array in several ways; return the hash of all if they were read."""
    if array.size:
        array[(0,) * array.ndim]
        array[(-1,) * array.ndim]
        array[tuple(slice(0, 3) for _ in array.shape)]
    if array.nbytes > WHOLE:
        return None
    items = array.tobytes()
    if len(items) != array.nbytes:
        raise SystemExit(f"{len(items)} bytes came out of an array of {array.nbytes}")
    return hashlib.sha256(items).hexdigest()


def read_frame(path: Path) -> str | None:
    """Read a frame, as a file and as bytes; return the hash of its bytes, for an array of its items in C order."""
    seen = []
    ways: list[Callable[[], Any]] = [lambda: superchunk.open(path)]
    if path.is_file():
        ways.append(lambda: superchunk.from_cframe(path.read_bytes()))
    for opened in ways:
        with opened() as found:
            schunk = found.schunk if isinstance(found, superchunk.NDArray) else found
            content = read_chunks(schunk)
            seen.append(read_array(found) if isinstance(found, superchunk.NDArray) else content)
            schunk.get_slice(0, 1)
            schunk.get_slice(len(schunk) - 1, len(schunk))
            if 0 < schunk.nbytes <= WHOLE:
                schunk.get_slice(0, len(schunk))
            for name in schunk.meta:
                schunk.meta.get(name)
            for name in schunk.vlmeta:
                schunk.vlmeta.get(name)
    if seen[0] != seen[-1]:
        raise SystemExit("the file reads differently from its bytes")
    return seen[0]


def main() -> None:
    """Read what the command line names."""
    kind, path = sys.argv[1], Path(sys.argv[2])
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY, in_use + MEMORY))
    before, started = peak_bytes(), time.monotonic()
    report: dict[str, object] = {"outcome": "decoded", "sha256": None}
    try:
        report["sha256"] = read_chunk(path) if kind == "chunk" else read_frame(path)
    except Exception as error:  # noqa: BLE001 - the caller judges which ones may come
        report["outcome"] = "raised"
        report["error"] = [each.__name__ for each in type(error).__mro__]
        report["message"] = str(error)
    report["grown"] = peak_bytes() - before
    report["seconds"] = time.monotonic() - started
    print(json.dumps(report))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
