"""The laboratory of `repair`: damage of one byte, of two, and cuts, in frames of all kinds and of both writers.

What is sound is known from what was written and what was damaged, never from `verify`. Of each damage is asked:
everything that comes out of `open`, `verify` and `repair` is a result or an error of the family; the advice in an
error works when it is followed; `repair` gives back all chunks whose bytes are sound, in their places while the index
is sound, and all metadata whose bytes are; the work is bounded by the size of the file.

By hand: ``python tests/labs/repair.py --cases 200`` (damages for each frame), ``--all`` for each single byte and cut.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import tracemalloc
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import superchunk
from superchunk import _engine
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ITEMS: Final = 60
CHUNK: Final = 4 * ITEMS
SEAL_LEN: Final = 16
FIXED_LEN: Final = 0x57
INDEX: Final = "chunks.b2frame"
WRITERS: Final = ("sealed", "unsealed", "blosc2")
CONTENTS: Final = ("fixed", "varying", "vlblocks", "special", "array", "empty")
MOST_DECODED: Final = 2 * (256 + 4 * 2**30)
MOST_MEMORY: Final = 64 * 2**20

Place = tuple[str, int, int]
"""File (empty: the frame itself), first byte, byte behind the last."""


@dataclass(slots=True)
class Frame:
    """A sound frame, and where everything stands in it."""

    name: str
    files: dict[str, bytes]
    """By name in the directory; of a contiguous frame one, without a name."""
    chunks: list[bytes]
    """What they hold."""
    places: list[Place | None]
    """Where their bytes are, None for special entries."""
    header: Place = ("", 0, 0)
    index: Place | None = None
    trailer: Place = ("", 0, 0)
    tail_from: int = 0
    """Where the trailer's contents and the table before them end, and what proves it begins."""
    meta: dict[str, tuple[bytes, Place]] = field(default_factory=dict)
    vlmeta: dict[str, tuple[object, Place]] = field(default_factory=dict)
    shape: tuple[int, ...] | None = None
    sealed: bool = False

    @property
    def varying(self) -> bool:
        """Whether sizes of chunks vary."""
        return self.files[self.main][0x3A:0x3E] == bytes(4)

    @property
    def sparse(self) -> bool:
        """Whether it is a directory."""
        return "" not in self.files

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.files.values()))

    @property
    def main(self) -> str:
        """The file with header and trailer."""
        return INDEX if self.sparse else ""


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done to a frame."""

    changes: tuple[tuple[str, int, int], ...] = ()
    """File, byte, and what stands there then."""
    cut: tuple[str, int] | None = None
    """File, and how many bytes it keeps."""

    def touches(self, place: Place | None) -> bool:
        """Return whether bytes of a place are not as they were."""
        if place is None:
            return False
        file, start, stop = place
        if self.cut is not None and self.cut[0] == file and self.cut[1] < stop:
            return True
        return any(one == file and start <= at < stop for one, at, _ in self.changes)

    def of(self, file: str, raw: bytes) -> bytes:
        """Return what a file holds then."""
        out = bytearray(raw)
        for one, at, value in self.changes:
            if one == file:
                out[at] = value
        return bytes(out[: self.cut[1]]) if self.cut is not None and self.cut[0] == file else bytes(out)


# Making frames.


def data(seed: int, items: int = ITEMS) -> bytes:
    """Return items that differ from seed to seed."""
    return np.random.default_rng(seed).integers(0, 4000, items, dtype=np.int32).tobytes()


def _vlblocks(seed: int) -> list[bytes]:
    return [data(seed, 9 + seed), data(seed + 50, 5)]


def _superchunk(path: Path, content: str, *, contiguous: bool, seal: bool) -> None:
    options: dict[str, Any] = {"urlpath": path, "mode": "w", "contiguous": contiguous, "seal": seal}
    if content == "array":
        items = np.arange(24 * 10, dtype=np.int32).reshape(24, 10) * 7
        a = superchunk.asarray(items, chunks=(8, 5), blocks=(4, 5), **options)
        a.schunk.vlmeta["v"] = "of an array"
        a[:8, :5] = np.arange(40, dtype=np.int32).reshape(8, 5) ** 2
        a.schunk.flush()
        return
    size = {"varying": -1, "vlblocks": -1}.get(content, CHUNK)
    cparams = superchunk.CParams(typesize=4 if content != "vlblocks" else 1)
    with superchunk.SChunk(chunksize=size, meta={"m": b"fixed"}, cparams=cparams, **options) as s:
        if content == "vlblocks":
            for n in range(4):
                s.append_vlblocks(_vlblocks(n))
        elif content == "varying":
            for n in range(5):
                s.append_data(data(n, 20 + 17 * n))
        elif content != "empty":
            for n in range(4):
                s.append_data(bytes(CHUNK) if content == "special" and n != 1 else data(n))
        s.vlmeta["v"] = list(range(12))
        s.flush()
        if content == "fixed":
            s.update_data(1, data(11), copy=True)
            s.append_data(bytes(CHUNK))
            s.delete_chunk(0)
            s.append_data(data(12, 13))
        s.vlmeta["w"] = "text"


def _blosc2(path: Path, content: str, *, contiguous: bool) -> None:
    import blosc2  # not everywhere

    options: dict[str, Any] = {"urlpath": str(path), "mode": "w", "contiguous": contiguous}
    if content == "array":
        items = np.arange(24 * 10, dtype=np.int32).reshape(24, 10) * 7
        a = blosc2.asarray(items, chunks=(8, 5), blocks=(4, 5), **options)
        a.schunk.vlmeta["v"] = "of an array"
        return
    s = blosc2.SChunk(chunksize=CHUNK, meta={"m": b"fixed"}, cparams={"typesize": 4}, **options)
    if content == "vlblocks":
        del s
        s = blosc2.SChunk(chunksize=-1, meta={"m": b"fixed"}, cparams={"typesize": 1}, **options)
        for n in range(4):
            made = superchunk.SChunk(chunksize=-1, cparams={"typesize": 1})
            made.append_vlblocks(_vlblocks(n))
            s.append_chunk(made.get_chunk(0))
    elif content == "varying":
        s.append_data(np.frombuffer(data(0), np.int32))
        s.append_data(np.zeros(40, np.int32))  # a special entry, which loses its size with the next one
        for n in (50, 30):
            s.append_chunk(blosc2.compress2(data(n, n), typesize=4))
    elif content != "empty":
        for n in range(4):
            s.append_data(np.frombuffer(bytes(CHUNK) if content == "special" and n != 1 else data(n), np.int32))
    if content == "fixed":
        s.update_data(1, np.frombuffer(data(11), np.int32), copy=True)
        s.insert_data(0, np.zeros(ITEMS, np.int32), copy=True)
        s.append_data(np.frombuffer(data(12, 13), np.int32))
    s.vlmeta["v"] = list(range(12))
    s.vlmeta["w"] = "text"


def make(folder: Path, writer: str, content: str, *, contiguous: bool) -> Frame:
    """Write a frame and say where everything is."""
    path = folder / "x.b2frame"
    if writer == "blosc2":
        _blosc2(path, content, contiguous=contiguous)
    else:
        _superchunk(path, content, contiguous=contiguous, seal=writer == "sealed")
    files = {"": path.read_bytes()} if contiguous else {one.name: one.read_bytes() for one in path.iterdir()}
    name = f"{writer}-{content}-{'contiguous' if contiguous else 'sparse'}"
    frame = Frame(name, files, [], [], sealed=writer == "sealed")
    opened = superchunk.open(path)
    if isinstance(opened, superchunk.NDArray):
        frame.shape = opened.shape
    s = opened if isinstance(opened, superchunk.SChunk) else opened.schunk
    frame.chunks = [_content(s, n) for n in range(s.nchunks)]
    vlmeta = {key: s.vlmeta[key] for key in s.vlmeta}
    _locate(frame, vlmeta)
    del s, opened
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return frame


def _locate(frame: Frame, vlmeta: dict[str, object]) -> None:
    """Find the parts of a sound frame by the fields of its format."""
    raw, file = frame.files[frame.main], frame.main

    def number(at: int, size: int) -> int:
        return int.from_bytes(raw[at : at + size], "big")

    header_len, frame_len, nbytes = number(0x0B, 4), number(0x10, 8), number(0x1E, 8)
    cbytes = 0 if frame.sparse else number(0x27, 8)
    trailer_len = number(frame_len - 22, 4)
    frame.header = (file, 0, header_len)
    frame.trailer = (file, frame_len - trailer_len, frame_len)
    if nbytes:
        at = header_len + cbytes
        info = _engine.describe(raw[at:])
        frame.index = (file, at, at + info.cbytes)
        for entry in entries_of(raw[at:]):
            if entry < 0:
                frame.places.append(None)
                continue
            one, start = (f"{entry:08X}.chunk", 0) if frame.sparse else ("", header_len + entry)
            length = _engine.describe(frame.files[one][start:]).cbytes
            frame.places.append((one, start, start + length))
    for name, start, stop in _table(raw[:header_len], FIXED_LEN + 4):
        frame.meta[name] = (raw[start:stop], (file, start, stop))
    begin = frame.trailer[1]
    frame.tail_from = begin + 9
    for name, start, stop in _table(raw[begin:frame_len], 6):
        frame.vlmeta[name] = (vlmeta[name], (file, begin + start, begin + stop))
        frame.tail_from = begin + stop


def entries_of(chunk: bytes) -> list[int]:
    """Return the entries of an index chunk."""
    entries: list[int] = np.frombuffer(_engine.decompress(chunk), dtype=np.int64).tolist()
    return entries


def _table(raw: bytes, at: int) -> Iterator[tuple[str, int, int]]:
    """Yield name, first byte and end of the contents of a table of layers."""
    count = int.from_bytes(raw[at + 1 : at + 3], "big")
    at += 3
    for _ in range(count):
        length = raw[at] & 0x1F
        name = raw[at + 1 : at + 1 + length].decode()
        start = int.from_bytes(raw[at + 2 + length : at + 6 + length], "big")
        size = int.from_bytes(raw[start + 1 : start + 5], "big")
        yield name, start + 5, start + 5 + size
        at += 6 + length


def _content(s: superchunk.SChunk, nchunk: int) -> bytes:
    if s.nchunks and _engine.describe(s.get_chunk(nchunk)).vlblocks:
        return b"|".join(s.get_vlblocks(nchunk))
    return bytes(s.decompress_chunk(nchunk) or b"")


# Damaging them.


def positions(frame: Frame) -> list[tuple[str, int]]:
    """Return each byte outside of the bodies of chunks: their headers and seals are inside."""
    bodies = [(file, start + 32, stop) for file, start, stop in filter(None, frame.places)]
    found = []
    for file, raw in frame.files.items():
        inside = [(start, stop) for one, start, stop in bodies if one == file]
        found += [(file, at) for at in range(len(raw)) if not any(start <= at < stop for start, stop in inside)]
    return found


def values(byte: int, choice: random.Random) -> list[int]:
    """Return what may stand in the place of a byte."""
    return sorted({byte ^ 1 << choice.randrange(8), 0, 0xFF, (byte + 1) & 0xFF} - {byte})


def singles(frame: Frame, choice: random.Random) -> Iterator[Damage]:
    """Yield every damage of one byte, and every cut."""
    for file, at in positions(frame):
        for value in values(frame.files[file][at], choice):
            yield Damage(((file, at, value),))
    for file, raw in frame.files.items():
        for kept in range(len(raw)):
            yield Damage(cut=(file, kept))


def drawn(frame: Frame, choice: random.Random, count: int) -> Iterator[Damage]:
    """Yield `count` damages: of one byte, of two, cuts."""
    places = positions(frame)
    for _ in range(count):
        kind = choice.randrange(5)
        if kind == 0:
            file = choice.choice(list(frame.files))
            yield Damage(cut=(file, choice.randrange(max(len(frame.files[file]), 1))))
            continue
        picked = choice.sample(places, 1 if kind < 3 else 2)
        yield Damage(
            tuple((file, at, choice.choice(values(frame.files[file][at], choice))) for file, at in sorted(picked))
        )


# Looking at what becomes of them.


class Fault(Exception):  # noqa: N818 - it is not an error of the library
    """Something is not as it is promised."""


@dataclass(slots=True)
class Counts:
    """What was done."""

    cases: int = 0
    nothing_to_do: int = 0
    repaired: int = 0
    refused: int = 0
    advised: int = 0
    most_decoded: int = 0
    most_memory: int = 0
    failures: list[str] = field(default_factory=list)


class Bench:
    """A folder with one frame in it, damaged again and again."""

    def __init__(self, folder: Path, frame: Frame) -> None:
        """Write the sound frame."""
        self.frame, self.folder, self.path = frame, folder, folder / "x.b2frame"
        self.output = folder / "out.b2frame"
        if frame.sparse:
            self.path.mkdir()
        for name, raw in frame.files.items():
            (self.path / name if name else self.path).write_bytes(raw)

    @contextmanager
    def damaged(self, damage: Damage) -> Iterator[None]:
        """Have the frame damaged."""
        names = {one for one, _, _ in damage.changes} | ({damage.cut[0]} if damage.cut is not None else set())
        for name in names:
            self._put(name, damage.of(name, self.frame.files[name]))
        try:
            yield
        finally:
            for name in names:
                self._put(name, self.frame.files[name])
            _gone(self.output)

    def _put(self, name: str, raw: bytes) -> None:
        """Put another file there: nobody writes into one that somebody may have open."""
        path = self.path / name if name else self.path
        path.unlink()
        path.write_bytes(raw)

    def check(self, damage: Damage, counts: Counts, *, weigh: bool = False) -> None:
        """Look at everything that is promised for one damage.

        Raises
        ------
        Fault
            It is not so.

        """
        counts.cases += 1
        with self.damaged(damage):
            _in_family("verify", lambda: superchunk.verify(self.path))
            self._advice(counts)
            report = self._repair(damage, counts, weigh=weigh)
            if report is None:
                return
            if report.output is None:
                counts.nothing_to_do += 1
                self._compare(damage, self.path, exact=True)
            else:
                counts.repaired += 1
                left_out = any("left out: an array" in note for note in report.notes)
                self._compare(damage, self.output, exact=False, left_out=left_out)

    def _repair(self, damage: Damage, counts: Counts, *, weigh: bool) -> superchunk.RepairReport | None:
        if weigh:
            tracemalloc.start()
        with work() as done:
            result = _in_family("repair", lambda: superchunk.repair(self.path, self.output))
        if weigh:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            counts.most_memory = max(counts.most_memory, peak)
            if peak > MOST_MEMORY + 64 * self.frame.size:
                raise Fault(f"repair takes {peak} bytes of memory for {self.frame.size} bytes of file")
        counts.most_decoded = max(counts.most_decoded, done[0])
        if done[0] > MOST_DECODED + 2 * 256 * self.frame.size:
            raise Fault(f"repair decodes {done[0]} bytes for {self.frame.size} bytes of file")
        if isinstance(result, SuperchunkError):
            counts.refused += 1
            if self.output.exists():
                raise Fault("repair refused, and left an output")
            if any(not damage.touches(place) for place in self.frame.places if place is not None):
                raise Fault(f"repair gives nothing although chunks are sound: {type(result).__name__}: {result}")
            if not damage.touches(self.frame.header) and not self._index_hit(damage):
                raise Fault(f"repair gives nothing although the header is sound: {type(result).__name__}: {result}")
            return None
        report: superchunk.RepairReport = result
        return report

    def _index_hit(self, damage: Damage) -> bool:
        """Return whether what tells the chunks' places is not as it was."""
        return damage.touches(self.frame.index)

    def _compare(self, damage: Damage, path: Path, *, exact: bool, left_out: bool = False) -> None:
        """Compare a frame that can be read with what was written and not damaged."""
        opened = _in_family("open", lambda: superchunk.open(path))
        if isinstance(opened, SuperchunkError):
            raise Fault(f"what was repaired, or needs no repair, does not open: {opened}")
        with opened:
            self._compare_opened(damage, opened, exact=exact, left_out=left_out)

    def _compare_opened(self, damage: Damage, opened: Any, *, exact: bool, left_out: bool) -> None:
        frame = self.frame
        s = opened if isinstance(opened, superchunk.SChunk) else opened.schunk
        got: list[bytes | str] = []
        for n in range(s.nchunks):
            try:
                got.append(_content(s, n))
            except SuperchunkError as error:
                got.append(str(error))
        if exact and not frame.sealed and self._index_hit(damage):
            return  # an index that names others, and nothing tells
        sound = self._sound(damage)
        placed = exact or not self._index_hit(damage)
        for number, content in enumerate(frame.chunks):
            if not sound[number]:
                continue
            if placed and (number >= len(got) or got[number] != content):
                raise Fault(f"chunk {number} of {len(frame.chunks)} is sound and not in its place (of {len(got)})")
            homeless = frame.shape is not None and self._index_hit(damage)  # an array has places for so many
            if frame.places[number] is not None and content not in got and not (homeless and left_out):
                raise Fault(f"chunk {number} of {len(frame.chunks)} is sound and lost (of {len(got)})")
        if placed and len(got) != len(frame.chunks):
            raise Fault(f"{len(got)} chunks instead of {len(frame.chunks)}")
        self._compare_metadata(damage, opened, s)

    def _sound(self, damage: Damage) -> list[bool]:
        """Return which chunks are sound."""
        frame = self.frame
        sound = [not damage.touches(place) for place in frame.places]
        if sound and frame.places[-1] is None and damage.touches((frame.main, 0x1D, 0x26)):
            sound[-1] = self._has_copy(damage)  # the header alone tells its size
        if not (self._has_copy(damage) or frame.varying) and damage.touches((frame.main, 0x39, 0x3E)):
            told = any(place is not None and not damage.touches(place) for place in frame.places[:-1])
            sound = [one and (told or place is not None) for one, place in zip(sound, frame.places, strict=True)]
        for number in self._renamed(damage):
            sound[number] = False
        if frame.varying and not (
            all(sound) and not damage.touches((frame.main, 0x1D, 0x26))
        ):  # then nothing tells the size of a special chunk
            sound = [one and place is not None for one, place in zip(sound, frame.places, strict=True)]
        return sound

    def _has_copy(self, damage: Damage) -> bool:
        """Return whether the commit record, with its copy of the header, is sound."""
        file, _, end = self.frame.trailer
        return self.frame.sealed and not damage.touches((file, self.frame.tail_from, end))

    def _renamed(self, damage: Damage) -> Iterator[int]:
        """Yield the chunks in whose place the damaged index names another whole chunk of the same size.

        Nothing tells then that it is another one, for none but this entry names it. With a fingerprint, one damaged
        byte of the index file can be found, and no more.
        """
        frame = self.frame
        if frame.index is None or not self._index_hit(damage):
            return
        file, at, stop = frame.index
        if frame.sealed and sum(one == file for one, _, _ in damage.changes) == 1:
            return
        before = entries_of(frame.files[file][at:stop])
        try:
            after = entries_of(damage.of(file, frame.files[file])[at:stop])
        except SuperchunkError:
            return
        for number, (old, new) in enumerate(zip(before, after, strict=False)):
            if old != new and old >= 0 and after.count(new) == 1 and self._is_like(number, new, damage):
                yield number

    def _is_like(self, number: int, entry: int, damage: Damage) -> bool:
        """Return whether a special value, or a whole chunk of the size of chunk `number`, is where `entry` leads."""
        frame = self.frame
        if entry < 0:
            return True
        name, at = (f"{entry:08X}.chunk", 0) if frame.sparse else ("", frame.header[2] + entry)
        mine, start, _ = frame.places[number] or ("", 0, 0)
        try:
            raw = damage.of(name, frame.files.get(name, b""))[at:]
            size = _engine.describe(raw).nbytes
            return size == _engine.describe(frame.files[mine][start:]).nbytes == len(_engine.decompress(raw))
        except SuperchunkError:
            return False

    def _compare_metadata(self, damage: Damage, opened: object, s: superchunk.SChunk) -> None:
        frame = self.frame
        file, begin, _ = frame.trailer
        table = min((place[1] for _, place in frame.vlmeta.values()), default=frame.tail_from)
        if not damage.touches((file, begin, table)):
            for name, (value, (_, start, stop)) in frame.vlmeta.items():
                if damage.touches((file, start - 5, stop)):
                    continue
                if name not in s.vlmeta or _in_family("vlmeta", partial(s.vlmeta.__getitem__, name)) != value:
                    raise Fault(f"vlmetalayer {name!r} is sound and lost")
        names_end = min((place[1] - 8 for _, place in frame.meta.values()), default=FIXED_LEN)
        if damage.touches((file, FIXED_LEN, names_end)):
            return
        for name, (_, (_, start, stop)) in frame.meta.items():
            if not damage.touches((file, start - 5, stop)):
                self._compare_layer(name, damage, opened, s)

    def _compare_layer(self, name: str, damage: Damage, opened: object, s: superchunk.SChunk) -> None:
        if name != "b2nd":
            if name not in s.meta or _in_family("meta", partial(s.meta.__getitem__, name)) != b"fixed":
                raise Fault(f"metalayer {name!r} is sound and lost")
        elif not isinstance(opened, superchunk.NDArray):
            if not self._index_hit(damage):
                raise Fault("the array is no array any more")
        elif opened.shape != self.frame.shape:
            raise Fault(f"the shape is {opened.shape} instead of {self.frame.shape}")

    def _advice(self, counts: Counts) -> None:
        """Open and read, and follow the advice of the error, if there is one."""
        result = _in_family("open", lambda: _read_all(superchunk.open(self.path)))
        if not isinstance(result, SuperchunkError):
            return
        text = str(result)
        if "recover=True" in text:
            counts.advised += 1
            for what, use in (
                ("open(..., recover=True)", lambda: _read_all(superchunk.open(self.path, recover=True))),
                ("repair(..., recover=True)", lambda: superchunk.repair(self.path, self.output, recover=True)),
            ):
                if what not in text:
                    continue
                followed = _in_family(what, use)
                if isinstance(followed, SuperchunkError):
                    raise Fault(f"{what} is advised and fails: {followed}; the advice: {text}")
                _gone(self.output)
        if "repair()" in text:
            counts.advised += 1
            followed = _in_family("repair", lambda: superchunk.repair(self.path, self.output))
            if isinstance(followed, SuperchunkError):
                raise Fault(f"repair() is advised and fails: {followed}; the advice: {text}")
            _gone(self.output)


def _gone(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _read_all(opened: Any) -> None:
    with opened:
        s = opened if isinstance(opened, superchunk.SChunk) else opened.schunk
        for n in range(s.nchunks):
            _content(s, n)


def _in_family(what: str, call: Callable[[], Any]) -> Any:
    """Return what a call returns, or the error of the family that it raises."""
    try:
        return call()
    except SuperchunkError as error:
        return error
    except Exception as error:
        raise Fault(f"{what} ends in a bare {type(error).__name__}: {error}") from error


@contextmanager
def work() -> Iterator[list[int]]:
    """Count the bytes that the engine decodes meanwhile."""
    done = [0]
    engine: Any = _engine
    before = engine.read, engine.decompress, engine.read_vlblocks

    def read(requests: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        done[0] += sum(request[3] - request[2] for request in requests)
        return before[0](requests, *args, **kwargs)

    def decompress(source: Any, **kwargs: Any) -> Any:
        done[0] += _engine.describe(source).nbytes
        return before[1](source, **kwargs)

    def read_vlblocks(source: Any, **kwargs: Any) -> Any:
        done[0] += _engine.describe(source).nbytes
        return before[2](source, **kwargs)

    engine.read, engine.decompress, engine.read_vlblocks = read, decompress, read_vlblocks
    try:
        yield done
    finally:
        engine.read, engine.decompress, engine.read_vlblocks = before


def frames(folder: Path, only: str = "") -> Iterator[Frame]:
    """Make a frame of each kind, of each writer that there is."""
    try:
        import blosc2  # noqa: F401 - whether there is one
    except ImportError:
        writers: tuple[str, ...] = WRITERS[:2]
    else:
        writers = WRITERS
    for writer in writers:
        for content in CONTENTS:
            for contiguous in (True, False):
                if only in f"{writer}-{content}-{'contiguous' if contiguous else 'sparse'}":
                    yield make(folder, writer, content, contiguous=contiguous)


def run(cases: int | None, seed: int, only: str = "", *, weigh_every: int = 25) -> Counts:
    """Check `cases` drawn damages of each frame; None: every one of a single byte, and every cut, and some of two."""
    counts = Counts()
    with tempfile.TemporaryDirectory(prefix="repair-lab-") as top:
        for number, frame in enumerate(frames(Path(top), only)):
            folder = Path(top) / str(number)
            folder.mkdir()
            bench = Bench(folder, frame)
            choice = random.Random(f"{seed}/{frame.name}")
            damages = drawn(frame, choice, cases) if cases is not None else singles(frame, choice)
            for at, damage in enumerate(damages):
                try:
                    bench.check(damage, counts, weigh=at % weigh_every == 0)
                except Fault as fault:
                    counts.failures.append(f"{frame.name} {damage}: {fault}")
            shutil.rmtree(folder)
    return counts


def main() -> int:
    """Run by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200, help="damages of each frame")
    parser.add_argument("--all", action="store_true", help="every damage of one byte, and every cut")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="part of a frame's name, such as blosc2-array-sparse")
    args = parser.parse_args()
    counts = run(None if args.all else args.cases, args.seed, args.only)
    for failure in counts.failures:
        sys.stdout.write(f"{failure}\n")
    sys.stdout.write(
        f"{counts.cases} damages: {counts.repaired} repaired, {counts.nothing_to_do} with nothing to do, "
        f"{counts.refused} refused; advice followed {counts.advised} times; at most {counts.most_decoded} bytes "
        f"decoded and {counts.most_memory} bytes of memory; {len(counts.failures)} failures (seed {args.seed})\n"
    )
    return 1 if counts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
