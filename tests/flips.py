"""Flipping every bit of a frame: what is where, and whether a report names the right part."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._format.integrity import SEAL_LEN, record_len
from superchunk._format.trailer import TAIL_LEN
from superchunk._store.frame_loading import parse_frame
from superchunk._store.frame_store import FrameStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from superchunk import VerifyReport


@dataclass(frozen=True, slots=True)
class Range:
    """Live bytes and the names that a report may give them."""

    start: int
    stop: int
    names: frozenset[str]


def live_ranges(raw: bytes, *, sparse: bool = False) -> list[Range]:
    """Return what the bytes of a sound frame, or of a sparse one's index file, are for; what is missing is dead."""
    loaded = parse_frame(
        lambda n, at: raw[at : at + n], len(raw), lambda at, limit: raw[at : at + limit], sparse=sparse
    )
    header = loaded.header
    ranges = []

    def add(start: int, length: int, *names: str) -> None:
        if length:
            ranges.append(Range(start, start + length, frozenset(names)))

    layers = sorted((at, n, name) for name, (at, n) in loaded.layers.items())
    at = 0
    for start, length, name in layers:
        add(at, start - at, "header")
        add(start, length, f"metalayer {name!r}")
        at = start + length
    add(at, header.header_len - at, "header")
    for number in range(len(loaded.index)):
        entry = loaded.index[number]
        if entry >= 0 and not sparse:
            start = header.header_len + entry
            add(start, _engine.describe(raw[start:]).cbytes + SEAL_LEN, f"chunk {number}")
    trailer_at = header.frame_len - loaded.trailer_len
    if header.nbytes:
        add(header.header_len + (0 if sparse else header.cbytes), loaded.index_len, "index chunk")
    record_at = header.frame_len - TAIL_LEN - record_len(header.header_len)
    add(trailer_at, record_at - trailer_at, "trailer")
    add(record_at, record_len(header.header_len), "commit record")
    add(header.frame_len - TAIL_LEN, TAIL_LEN - 17, "trailer")
    add(header.frame_len - 17, 17, "fingerprint")
    return sorted(ranges, key=lambda part: part.start)


def named(report: VerifyReport) -> set[str]:
    """Return what a report says is not as it should be."""
    parts = {part.name for part in report.parts if part.status != "sound"}
    return parts | {f"chunk {chunk.nchunk}" for chunk in report.damaged_chunks + report.unsealed_chunks}


@contextmanager
def flipped(raw: bytearray, path: Path, at: int, bit: int) -> Iterator[None]:
    """Have one bit of the file at `path`, which holds `raw`, the other way round."""
    with path.open("r+b", buffering=0) as file:
        file.seek(at)
        file.write(bytes((raw[at] ^ 1 << bit,)))
    try:
        yield
    finally:
        with path.open("r+b", buffering=0) as file:
            file.seek(at)
            file.write(raw[at : at + 1])


def chunks_of(path: Path) -> int:
    """Return how many chunks a frame has."""
    store = FrameStore.open(path)
    try:
        return store.nchunks
    finally:
        store.close()
