"""Every call that takes a path, every kind of thing at the path, every mode: what is not ours is never touched.

::

    python tests/labs/paths.py                    the whole product, and the intruders
    python tests/labs/paths.py --cases 500        so many drawn cases
    python tests/labs/paths.py --only "SChunk(data)/fifo"

Each case has a sandbox of its own::

    above.txt  beside/inner.txt                   around the directory
    work/                                         the working directory
        notes.txt  other.b2nd  folder/inner.txt   neighbours
        thing.b2nd                                the thing, and what it leads to if it is a link

Before and after the call the whole sandbox is compared by ``lstat``, ``readlink`` and ``read``: names, kinds,
inodes, modes, link targets, bytes. The expected outcome is a table in this file, written by hand for the things
that this file builds: which paths may change, and whether the call has to succeed. The library is not asked.
Errors must be of its family.

An *intruder* comes later: something foreign takes the name when the library is about to rename, as another program
might. The name must have it afterwards, with its inode and its bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import random
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from cli_runner import run as run_command
from legacy_frames import Legacy, content, old_chunk

import superchunk
import superchunk._packed.frames
import superchunk.cli.convert_arrays
from superchunk import SChunk, Storage
from superchunk._store import os_file as storage_file
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME: Final = "thing.b2nd"
DATA: Final = bytes(range(200)) * 5
ITEMS: Final = np.arange(300, dtype="i4")
NOBODY: Final = 65534
IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - each case makes a directory of its own there


# What may lie at the path.


@dataclass(frozen=True)
class Kind:
    """A thing that may be at the path.

    `group` is what this laboratory knows of it, for it has built it:
    ``free`` nothing; ``ours`` a frame; ``empty`` an empty file; ``damaged`` a frame that does not open;
    ``foreign`` anything else; ``refused`` no path where a frame can be.
    """

    name: str
    group: str
    build: Callable[[Path], object]
    path: str = NAME
    """How it is named in the call, with ``work`` for the working directory."""
    owns: str = f"work/{NAME}"
    """What a call may change that may change it."""
    sparse: bool = False
    regular: bool = True
    """Whether it is, or leads to, a regular file or nothing."""


@lru_cache(maxsize=1)
def frames() -> dict[str, bytes]:
    """Return the bytes of frames, made once."""
    plain = SChunk(data=DATA, chunksize=200).to_cframe()
    return {
        "frame": plain,
        "array": superchunk.asarray(ITEMS, chunks=(100,), blocks=(50,)).to_cframe(),
        "old": Legacy(chunks=[old_chunk(content(1)), old_chunk(content(2))]).to_bytes(),
        "tensor": superchunk.pack_tensor(ITEMS),
    }


@lru_cache(maxsize=1)
def sparse_files() -> dict[str, bytes]:
    """Return the files of a sparse frame, made once."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "s")
        SChunk(data=DATA, chunksize=200, urlpath=place, contiguous=False).close()
        return {each.name: each.read_bytes() for each in place.iterdir()}


def put_sparse(place: Path) -> None:
    place.mkdir()
    for name, raw in sparse_files().items():
        (place / name).write_bytes(raw)


def put_folder(place: Path, name: str = "thesis.txt", raw: bytes = b"years of work") -> None:
    place.mkdir()
    (place / name).write_bytes(raw)


def put_socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        before = os.open(".", os.O_RDONLY)
        try:  # the address has room for a short path only
            os.chdir(place.parent)
            one.bind(place.name)
        finally:
            os.fchdir(before)
            os.close(before)


def put_npy(place: Path) -> None:
    with place.open("wb") as stream:
        np.lib.format.write_array(stream, ITEMS)


def put_device(place: Path) -> None:
    os.mknod(place, 0o666 | stat.S_IFCHR, os.makedev(1, 3))


def linked(build: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return what builds a thing named ``target`` and a link to it."""

    def both(place: Path) -> None:
        build(place.with_name("target"))
        place.symlink_to("target")

    return both


def text_with_magic(place: Path) -> None:
    place.write_bytes(b"\x9e\xa8b2frame\0 is how a frame begins, and so does this note on frames. " * 9)


def newer_text_with_magic(place: Path) -> None:
    place.write_bytes(b"\x9e\xa8b2frame\0" + b"d" * 400)


def sparse_with_notes(place: Path) -> None:
    put_sparse(place)
    (place / "notes.txt").write_text("mine")


def sparse_with_folder(place: Path) -> None:
    put_sparse(place)
    put_folder(place / "0000ABCD.chunk")


def frame_and_link(place: Path) -> None:
    place.write_bytes(frames()["frame"])
    place.with_name("up").symlink_to("folder/deep", target_is_directory=True)


def damaged(place: Path) -> None:
    place.write_bytes(frames()["frame"][:-10])


def kinds() -> list[Kind]:
    """Return every kind of thing."""
    raw = frames()
    there = [
        Kind("nothing", "free", lambda _: None),
        Kind("empty file", "empty", lambda p: p.touch()),
        Kind("frame", "ours", lambda p: p.write_bytes(raw["frame"])),
        Kind("array", "ours", lambda p: p.write_bytes(raw["array"])),
        Kind("tensor", "ours", lambda p: p.write_bytes(raw["tensor"])),
        Kind("sparse frame", "ours", put_sparse, sparse=True, regular=False),
        Kind("old frame", "old", lambda p: p.write_bytes(raw["old"])),
        Kind("damaged frame", "damaged", damaged),
        Kind("cut frame", "damaged", lambda p: p.write_bytes(raw["frame"][:300])),
        Kind("frame in a file", "foreign", lambda p: p.write_bytes(b"HEAD" * 16 + raw["frame"])),
        Kind("two frames", "two", lambda p: p.write_bytes(raw["frame"] + raw["frame"])),
        Kind("text", "foreign", lambda p: p.write_text("dear diary\n" * 30)),
        Kind("text with magic", "foreign", text_with_magic),
        Kind("newer text with magic", "foreign", newer_text_with_magic),
        Kind("magic alone", "foreign", lambda p: p.write_bytes(b"\x9e\xa8b2frame\0")),
        Kind("zeros", "foreign", lambda p: p.write_bytes(bytes(500))),
        Kind("npy", "foreign", put_npy),
        Kind("hdf5", "foreign", lambda p: p.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))),
        Kind("zip", "foreign", lambda p: p.write_bytes(b"PK\3\4" + bytes(60))),
        Kind("empty folder", "foreign", lambda p: p.mkdir(), regular=False),
        Kind("folder", "foreign", put_folder, regular=False),
        Kind("zarr", "foreign", lambda p: put_folder(p, "zarr.json", b'{"node_type": "group"}'), regular=False),
        Kind(
            "folder with a frame for an index",
            "foreign",
            lambda p: put_folder(p, "chunks.b2frame", raw["frame"]),
            regular=False,
        ),
        Kind(
            "sparse frame with notes",
            "shared",
            sparse_with_notes,
            sparse=True,
            regular=False,
        ),
        Kind(
            "sparse frame with a folder like a chunk",
            "shared",
            sparse_with_folder,
            sparse=True,
            regular=False,
        ),
        Kind("fifo", "foreign", os.mkfifo, regular=False),
        Kind("socket", "foreign", put_socket, regular=False),
        Kind("device", "foreign", put_device, regular=False),
        Kind("link to a frame", "ours", linked(lambda p: p.write_bytes(raw["frame"])), owns="work/target"),
        Kind("link to a sparse frame", "ours", linked(put_sparse), owns="work/target", sparse=True, regular=False),
        Kind("link to an empty file", "empty", linked(lambda p: p.touch()), owns="work/target"),
        Kind("link to text", "foreign", linked(lambda p: p.write_text("dear diary")), owns="work/target"),
        Kind("link to a folder", "foreign", linked(put_folder), regular=False),
        Kind("link to a fifo", "foreign", linked(os.mkfifo), regular=False),
        Kind("link to a device", "foreign", linked(put_device), regular=False),
        Kind("dangling link", "refused", lambda p: p.symlink_to("gone")),
        Kind("loop", "refused", lambda p: p.symlink_to(NAME)),
        Kind("255 bytes", "free", lambda _: None, path="x" * 250 + ".b2nd", owns=f"work/{'x' * 250}.b2nd"),
        Kind("dots", "ours", lambda p: p.write_bytes(raw["frame"]), path=f"folder/../{NAME}"),
        Kind(
            "folder link and dots",
            "ours",
            frame_and_link,
            path=f"up/../../{NAME}",
        ),
        Kind("URL", "ours", lambda p: p.write_bytes(raw["frame"]), path="file://work/thing.b2nd"),
        Kind("trailing slash", "ours", put_sparse, path=f"{NAME}/", sparse=True, regular=False),
    ]
    nowhere = {
        "": "",
        ".": ".",
        "..": "..",
        "root": "/",
        "NUL": "a\0b.b2nd",
        "surrogate": "a\ud800.b2nd",
        "256 bytes": "x" * 251 + ".b2nd",
        "host": "file://data.b2nd",
        "host and path": f"file://host/{NAME}",
        "query": f"file://work/{NAME}?x",
        "other URL": "http://host/x.b2nd",
        "missing parent": "none/thing.b2nd",
        "file for a parent": "notes.txt/thing.b2nd",
        "empty URL": "file://",
    }
    for name, path in nowhere.items():
        there.append(Kind(name or "empty path", "refused", lambda _: None, path=path))
    there += [
        Kind("inside our folder", "refused", put_sparse, path=f"{NAME}/new.b2nd", regular=False),
        Kind("our index file", "refused", put_sparse, path=f"{NAME}/chunks.b2frame", regular=False),
        Kind("our chunk file", "refused", put_sparse, path=f"{NAME}/00000000.chunk", regular=False),
    ]
    return there


# Calls.


@dataclass(frozen=True)
class Entry:
    """A call that takes a path.

    `action` says which rows of the tables below are about it.
    """

    name: str
    action: str
    modes: tuple[str, ...]
    call: Callable[[Any, str], object]
    fills: bool = False
    """Of ``make``: whether it opens an existing frame in mode "a", to fill it."""


def closed(made: object) -> None:
    """Close what was made."""
    getattr(made, "schunk", made).close()  # type: ignore[attr-defined]


def command(*line: str) -> None:
    """Run the command, whose failures are one line."""
    if any("\ud800" in str(part) for part in line):
        raise CommandError("no command line can hold it")
    result = run_command(*line)
    if result.code:
        assert result.code in {1, 2}, result.stderr
        assert result.stderr.count("\n") == 1, result.stderr
        raise CommandError(result.stderr)


class CommandError(Exception):
    """The command said what was wrong."""


def pieces() -> Iterator[np.ndarray[Any, Any]]:
    yield ITEMS


def damaged_source() -> str:
    """Make a damaged frame that is not the thing, and return its path."""
    place = Path(tempfile.mkdtemp(prefix="paths-source-"), "d.b2nd")
    damaged(place)
    return str(place)


def with_source(use: Callable[[str], object]) -> None:
    """Do something with a damaged frame elsewhere."""
    source = damaged_source()
    try:
        use(source)
    finally:
        shutil.rmtree(Path(source).parent)


def sound_source(use: Callable[[str, str], object]) -> None:
    """Do something with a sound array and a raw file elsewhere."""
    with tempfile.TemporaryDirectory(prefix="paths-source-") as folder:
        array, raw = Path(folder, "s.b2nd"), Path(folder, "raw.bin")
        array.write_bytes(frames()["array"])
        raw.write_bytes(DATA)
        use(str(array), str(raw))


def changed(urlpath: Any, mode: str) -> None:
    """Open a frame for writing, change it, and compact it."""
    opened = superchunk.open(urlpath, mode=mode)
    try:
        schunk = getattr(opened, "schunk", opened)
        schunk.vlmeta["changed"] = 1
        schunk.compact()
    finally:
        closed(opened)


def mapped(mode: str) -> Callable[[Any, str], object]:
    return lambda path, _: closed(superchunk.open(path, mmap_mode=mode))


def made_by(make: Callable[[dict[str, Any]], object]) -> Callable[[Any, str], object]:
    """Return a call that makes something with keywords, and closes it."""
    return lambda path, mode: closed(make({"urlpath": path, "mode": mode}))


def entries() -> list[Entry]:
    """Return every call that takes a path."""
    every = ("a", "w")
    array = superchunk.asarray(ITEMS, chunks=(100,), blocks=(50,))
    square = superchunk.asarray(ITEMS.reshape(15, 20))
    makers: dict[str, Callable[[dict[str, Any]], object]] = {
        "SChunk.copy": lambda k: array.schunk.copy(**k),
        "zeros": lambda k: superchunk.zeros(300, "i4", **k),
        "empty": lambda k: superchunk.empty(300, "i4", **k),
        "ones": lambda k: superchunk.ones(300, "i4", **k),
        "uninit": lambda k: superchunk.uninit(300, "i4", **k),
        "nans": lambda k: superchunk.nans(300, "f8", **k),
        "full": lambda k: superchunk.full(300, 7, **k),
        "zeros_like": lambda k: superchunk.zeros_like(array, **k),
        "full_like": lambda k: superchunk.full_like(array, 3, **k),
        "arange": lambda k: superchunk.arange(300, **k),
        "linspace": lambda k: superchunk.linspace(0, 1, 300, **k),
        "eye": lambda k: superchunk.eye(20, **k),
        "fromiter": lambda k: superchunk.fromiter(iter(range(300)), shape=(300,), dtype="i4", **k),
        "frombuffer": lambda k: superchunk.frombuffer(DATA, (1000,), "u1", **k),
        "asarray": lambda k: superchunk.asarray(ITEMS, **k),
        "array": lambda k: superchunk.array(ITEMS, **k),
        "copy": lambda k: superchunk.copy(array, **k),
        "NDArray.copy": lambda k: array.copy(**k),
        "astype": lambda k: superchunk.astype(array, "f4", **k),
        "slice": lambda k: array.slice(slice(3, 200), **k),
        "reshape": lambda k: superchunk.reshape(array, (30, 10), **k),
        "permute_dims": lambda k: superchunk.permute_dims(square, (1, 0), **k),
        "concat": lambda k: superchunk.concat([array, array], **k),
        "stack": lambda k: superchunk.stack([array, array], **k),
        "from_pieces": lambda k: superchunk.from_pieces(pieces(), 300, dtype="i4", **k),
        "asarray sparse": lambda k: superchunk.asarray(ITEMS, contiguous=False, **k),
        "asarray locking": lambda k: superchunk.asarray(ITEMS, contiguous=True, sync="commit", **k),
        "SChunk.copy sparse": lambda k: array.schunk.copy(contiguous=False, **k),
    }
    found = [Entry(name, "make", every, made_by(make)) for name, make in makers.items()]
    saved: dict[str, Callable[[Any, str], object]] = {
        "save": lambda path, mode: superchunk.save(array, path, mode=mode),
        "NDArray.save": lambda path, mode: array.save(path, mode=mode),
        "save_array": lambda path, mode: superchunk.save_array(ITEMS, path, mode=mode),
        "save_tensor": lambda path, mode: superchunk.save_tensor(ITEMS, path, mode=mode),
        "pack_array2": lambda path, mode: superchunk.pack_array2(ITEMS, urlpath=path, mode=mode),
        "pack_tensor sparse": lambda path, mode: superchunk.pack_tensor(
            ITEMS, urlpath=path, mode=mode, contiguous=False
        ),
    }
    found += [Entry(name, "make", every, call) for name, call in saved.items()]
    found += [
        Entry("SChunk", "make", ("r", *every), lambda p, m: SChunk(urlpath=p, mode=m).close(), fills=True),
        Entry("SChunk(data)", "make", every, lambda p, m: SChunk(data=DATA, urlpath=p, mode=m).close()),
        Entry(
            "SChunk(sparse)",
            "make",
            every,
            lambda p, m: SChunk(data=DATA, urlpath=p, mode=m, contiguous=False).close(),
        ),
        Entry(
            "SChunk(storage)",
            "make",
            ("r", *every),
            lambda p, m: SChunk(storage=Storage(urlpath=p, mode=m, contiguous=False)).close(),
            fills=True,
        ),
        Entry("SChunk(w+)", "make", ("w",), lambda p, _: SChunk(data=DATA, urlpath=p, mmap_mode="w+").close()),
        Entry("open", "open", ("r",), lambda p, m: closed(superchunk.open(p, mode=m))),
        Entry("open for writing", "open", ("a",), lambda p, m: closed(superchunk.open(p, mode=m))),
        Entry("open w", "empty", ("w",), lambda p, m: closed(superchunk.open(p, mode=m))),
        Entry("open locking", "lock", ("r", "a"), lambda p, m: closed(superchunk.open(p, mode=m, locking=True))),
        Entry("open snapshot", "open", ("r",), lambda p, _: closed(superchunk.open(p, snapshot=True))),
        Entry("open mmap r", "map", ("r",), mapped("r")),
        Entry("open mmap r+", "map", ("a",), mapped("r+")),
        Entry("open mmap c", "map", ("c",), mapped("c")),
        Entry("change and compact", "change", ("a",), changed),
        Entry("load", "open", ("r",), lambda p, _: superchunk.load(p)),
        Entry("load_array", "tensor", ("r",), lambda p, _: superchunk.load_array(p)),
        Entry("load_tensor", "tensor", ("r",), lambda p, _: superchunk.load_tensor(p)),
        Entry("verify", "look", ("r",), lambda p, _: superchunk.verify(p)),
        Entry("identify", "look", ("r",), lambda p, _: superchunk.identify(os.fspath(p).replace("\0", "\\0"))),
        Entry("stage_chunk", "stage", ("a",), lambda p, _: superchunk.stage_chunk(p, 77, DATA[:200])),
        Entry("remove_urlpath", "remove", ("w",), lambda p, _: superchunk.remove_urlpath(p)),
        Entry("repair", "beside", ("w",), lambda p, _: superchunk.repair(p)),
        Entry("repair in place", "repair", ("w",), lambda p, _: superchunk.repair(p, in_place=True)),
        Entry("repair output", "output", ("a",), lambda p, _: with_source(lambda s: superchunk.repair(s, p))),
        Entry(
            "repair output sparse",
            "output",
            ("a",),
            lambda p, _: with_source(lambda s: superchunk.repair(s, p, contiguous=False)),
        ),
    ]
    force = {"a": (), "w": ("--force",)}
    found += [
        Entry(
            "command compress",
            "command",
            every,
            lambda p, m: sound_source(lambda _, raw: command("compress", raw, "-o", p, *force[m])),
        ),
        Entry(
            "command decompress",
            "command",
            every,
            lambda p, m: sound_source(lambda array, _: command("decompress", array, "-o", p, *force[m])),
        ),
        Entry(
            "command convert to a file",
            "command",
            every,
            lambda p, m: sound_source(lambda array, _: command("convert", array, p, "--chunks", "50", *force[m])),
        ),
        Entry(
            "command convert to a directory",
            "convert",
            every,
            lambda p, m: sound_source(
                lambda array, _: command("convert", array, p, "--chunks", "50", "--sparse", *force[m])
            ),
        ),
        Entry(
            "command convert, same chunks",
            "convert",
            every,
            lambda p, m: sound_source(lambda array, _: command("convert", array, p, "--sparse", *force[m])),
        ),
        Entry("command info", "look", ("r",), lambda p, _: command("info", p)),
        Entry("command compact", "compacts", ("a",), lambda p, _: command("compact", p)),
    ]
    return found


# What is expected.

MAKERS: Final = {"make", "output", "command", "convert"}
FRAMES: Final = {"ours", "old", "empty", "damaged"}
"""What a new frame may replace."""
REPLACED: Final = {"make": FRAMES, "convert": FRAMES, "command": {*FRAMES, "foreign", "two"}}
"""What is replaced with mode "w", or with --force; the command replaces any regular file."""
CHANGED: Final = {
    "empty": {"ours"},
    "change": {"ours", "shared"},
    "compacts": {"ours", "shared"},
    "remove": {"ours", "old", "damaged"},
    "repair": {"damaged"},
}
"""What other calls change."""
LOCKED: Final = {"ours", "shared", "two", "foreign", *FRAMES}
EITHER: Final = None


def is_directory_command(entry: Entry, kind: Kind) -> bool:
    """Return whether the command makes a directory there, as the slash at the end asks for."""
    return entry.action == "convert" or (kind.name == "trailing slash" and "convert" in entry.name)


def is_made(entry: Entry, mode: str, kind: Kind) -> bool:
    """Return whether a call that makes something may make it there."""
    if kind.group == "free":
        return mode != "r"
    if mode != "w" or kind.group not in REPLACED.get(entry.action, ()):
        return False
    return entry.action != "command" or kind.regular or is_directory_command(entry, kind)


def may_change(entry: Entry, mode: str, kind: Kind) -> set[str]:
    """Return the paths in the sandbox that the call may change, and all below them."""
    found: str | None = None
    if entry.action in MAKERS:
        found = kind.owns if is_made(entry, mode, kind) else None
    elif entry.action == "beside":
        found = f"work/{NAME.replace('.b2nd', '.repaired.b2nd')}"
    elif entry.action == "stage":
        found = f"{kind.owns}/0000004D.chunk" if kind.sparse else None
    elif entry.action == "lock" and kind.group in LOCKED:
        found = f"{kind.owns}/.b2lock" if kind.sparse else f"work/{NAME}.b2lock"
    elif kind.group in CHANGED.get(entry.action, ()):
        found = kind.owns
    return set() if found is None else {found}


def must_succeed(entry: Entry, mode: str, kind: Kind) -> bool | None:
    """Return whether the call has to succeed (True) or to raise (False); None: either."""
    if entry.action == "make":
        opened = entry.fills and mode != "w" and kind.group in {"ours", "old", "shared", "two"}
        return EITHER if opened else is_made(entry, mode, kind)
    if entry.action in MAKERS:
        if kind.group in {"free", "refused"}:
            return kind.group == "free"
        # The command knows no URLs, and has its own rules for slashes.
        known = kind.name not in {"URL", "trailing slash"}
        return False if known and not is_made(entry, mode, kind) else EITHER
    if entry.action == "open" and kind.group not in {"old", "two"}:
        return kind.group in {"ours", "shared"}
    return kind.name == "tensor" if entry.action == "tensor" else EITHER


# The sandbox.


def state_of(root: Path) -> dict[str, tuple[object, ...]]:
    """Return everything about everything below `root`, asked of the system."""
    found: dict[str, tuple[object, ...]] = {}
    waiting = [b""]
    base = os.fsencode(root)
    while waiting:
        folder = waiting.pop()
        for name in os.listdir(os.path.join(base, folder)):  # noqa: PTH118, PTH208
            path = os.path.join(folder, name)  # noqa: PTH118
            full = os.path.join(base, path)  # noqa: PTH118
            status = os.lstat(full)
            content: object = b""
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(full)  # noqa: PTH115 - bytes of names are kept
            elif stat.S_ISREG(status.st_mode):
                fd = os.open(full, os.O_RDONLY | os.O_NOATIME)
                content = os.pread(fd, 2**20, 0)
                os.close(fd)
            elif stat.S_ISDIR(status.st_mode):
                waiting.append(path)
            found[os.fsdecode(path)] = (status.st_mode, status.st_ino, status.st_rdev, status.st_nlink, content)
    return found


def differences(
    before: dict[str, tuple[object, ...]], after: dict[str, tuple[object, ...]], allowed: set[str]
) -> list[str]:
    """Return what changed that must not."""

    def is_allowed(path: str) -> bool:
        return any(path == one or path.startswith(f"{one}/") for one in allowed)

    said = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new or is_allowed(path):
            continue
        if old is not None and new is not None and stat.S_ISDIR(int(str(old[0]))) and old[:3] == new[:3]:
            continue  # another number of directories in it: those are compared by themselves
        said.append(f"{path}: {'appeared' if old is None else 'gone' if new is None else 'changed'}")
    return said


@dataclass
class Report:
    """What a run found."""

    cases: int = 0
    made: int = 0
    """Calls that changed what they may change."""
    refused: int = 0
    intruders: int = 0
    skipped: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.cases} cases, {self.intruders} of them with an intruder: {self.made} changed what they may, "
            f"{self.refused} were refused, {len(self.failures)} failures"
        )


@contextlib.contextmanager
def sandbox(kind: Kind) -> Iterator[Path]:
    """Make the directories of a case, and work in them."""
    root = Path(tempfile.mkdtemp(prefix="paths-lab-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
    before = os.getcwd()  # noqa: PTH109
    try:
        work = root / "work"
        (work / "folder" / "deep").mkdir(parents=True)
        (root / "beside").mkdir()
        for place in (
            root / "above.txt",
            root / "beside" / "inner.txt",
            work / "notes.txt",
            work / "folder" / "inner.txt",
        ):
            place.write_text(f"this is {place.name}")
        (work / "other.b2nd").write_bytes(frames()["frame"])
        kind.build(work / NAME)
        os.chdir(work)
        yield root
    finally:
        os.chdir(before)
        shutil.rmtree(root, ignore_errors=True)


def path_for(kind: Kind, root: Path) -> str:
    return kind.path.replace("file://work/", f"file://{root}/work/")


def tried(entry: Entry, path: str, mode: str) -> BaseException | None:
    """Make the call, and return what it raised."""
    try:
        entry.call(path, mode)
    except BaseException as error:  # noqa: BLE001 - that is the question
        return error
    return None


def is_of_family(error: BaseException) -> bool:
    """Return whether an error is one that the library says it raises."""
    return isinstance(error, (SuperchunkError, CommandError))


def look(report: Report, label: str, entry: Entry, mode: str, kind: Kind) -> None:
    """Run one case."""
    report.cases += 1
    with sandbox(kind) as root:
        before = state_of(root)
        error = tried(entry, path_for(kind, root), mode)
        after = state_of(root)
        problems = differences(before, after, may_change(entry, mode, kind))
        expected = must_succeed(entry, mode, kind)
        if error is not None:
            report.refused += 1
            if not is_of_family(error):
                problems.append(f"not of the family: {type(error).__name__}: {error}")
            if before != after and entry.action in MAKERS:
                problems += [f"refused, but {one}" for one in differences(before, after, set())]
            if expected:
                problems.append(f"should have succeeded: {type(error).__name__}: {error}")
        elif expected is False:
            problems.append("should have been refused")
        elif before != after:
            report.made += 1
            if entry.action == "make":
                problems += wrong_content(root / kind.owns)
        if problems:
            report.failures.append(f"{label}: {'; '.join(problems)}")


def wrong_content(place: Path) -> list[str]:
    """Return what is wrong with a frame that was made, by its bytes and by reading it."""
    index = place / "chunks.b2frame" if place.is_dir() else place
    try:
        head = index.read_bytes()[:10]
        if head != b"\x9e\xa8b2frame\0":
            return [f"no frame was made but {head!r}"]
        if superchunk.verify(place).status != "sound":
            return ["what was made is not sound"]
    except OSError as error:
        return [f"no frame was made: {error}"]
    return []


# Intruders.


INTRUDERS: Final[dict[str, Callable[[Path], object]]] = {
    "text": lambda p: p.write_text("mine"),
    "folder": put_folder,
    "empty folder": lambda p: p.mkdir(),
    "fifo": os.mkfifo,
    "link": lambda p: p.symlink_to("notes.txt"),
}


class Intruding(storage_file.System):
    """Puts something foreign at a name just before the system is asked to change that name."""

    def __init__(self, name: str, build: Callable[[Path], object], *, exchanging: bool) -> None:
        self.name = name
        self.build = build
        self.exchanging = exchanging
        self.planted: tuple[object, ...] | None = None

    def _intrude(self, *names: str) -> None:
        if self.name not in names or self.planted is not None:
            return
        place = Path(self.name)
        if os.path.lexists(place):
            os.rename(place, place.with_name("moved away by another program"))  # noqa: PTH104
        self.build(place)
        self.planted = stamp(place)

    def rename_new(self, old: str, new: str) -> None:
        self._intrude(old, new)
        super().rename_new(old, new)

    def rename(self, old: str, new: str) -> None:
        if self.exchanging:
            self._intrude(old, new)
        super().rename(old, new)

    def exchange(self, one: str, other: str) -> None:
        if not self.exchanging:
            raise OSError(95, "Operation not supported")
        self._intrude(one, other)
        super().exchange(one, other)


def stamp(place: Path) -> tuple[object, ...]:
    """Return what must stay the same of a thing."""
    status = os.lstat(place)
    inside = sorted((each.name, each.read_bytes()) for each in place.iterdir()) if stat.S_ISDIR(status.st_mode) else []
    content = place.read_bytes() if stat.S_ISREG(status.st_mode) else b""
    return status.st_ino, status.st_mode, inside, content


def intrude(report: Report, label: str, entry: Entry, mode: str, kind: Kind, what: str, *, exchanging: bool) -> None:
    """Run one case in which something foreign takes the name in the middle."""
    report.cases += 1
    report.intruders += 1
    with sandbox(kind) as root:
        before = state_of(root)
        place = root / kind.owns
        system = Intruding(str(place), INTRUDERS[what], exchanging=exchanging)
        real, storage_file.system = storage_file.system, system
        try:
            error = tried(entry, path_for(kind, root), mode)
        finally:
            storage_file.system = real
        problems = []
        if system.planted is None:
            if entry.action != "remove":
                problems.append("nothing was renamed to the name")
        else:
            report.refused += error is not None
            if error is None:
                problems.append("not refused")
            elif not is_of_family(error):
                problems.append(f"not of the family: {type(error).__name__}: {error}")
            if not os.path.lexists(place) or stamp(place) != system.planted:
                problems.append("the intruder lost the name, or was changed")
            after = state_of(root)
            problems += differences(before, after, {kind.owns, "work/moved away by another program"})
        if problems:
            report.failures.append(f"{label}: {'; '.join(problems)}")


INTRUDED: Final = {"SChunk(data)", "SChunk(sparse)", "asarray", "asarray sparse", "SChunk.copy", "save_array", "open w"}
INTRUDED_TOO: Final = {"from_pieces", "remove_urlpath", "repair output", "repair in place", "change and compact"}
VICTIMS: Final = {
    "nothing",
    "empty file",
    "frame",
    "sparse frame",
    "damaged frame",
    "link to a frame",
    "old frame",
}


def can_be_intruded(entry: Entry, mode: str, kind: Kind) -> bool:
    """Return whether a name is taken in this case."""
    if kind.name not in VICTIMS or not may_change(entry, mode, kind):
        return False
    if entry.action == "remove":
        return not kind.name.startswith("link")
    return entry.action != "change" or not kind.sparse  # nothing takes the name of a directory that is changed


def intrusions() -> Iterator[tuple[str, Entry, str, Kind, str, bool]]:
    """Yield every case with an intruder."""
    for label, entry, mode, kind in product():
        if entry.name not in INTRUDED | INTRUDED_TOO or not can_be_intruded(entry, mode, kind):
            continue
        for what in INTRUDERS:
            yield f"{label}/{what}/exchange", entry, mode, kind, what, True
            # Without a call of the system for it one file replaces another in one step, checked just before.
            if kind.group == "free" or kind.sparse or "sparse" in entry.name:
                yield f"{label}/{what}/steps", entry, mode, kind, what, False


def product() -> Iterator[tuple[str, Entry, str, Kind]]:
    """Yield every case."""
    for entry in entries():
        for kind in kinds():
            for mode in entry.modes:
                yield f"{entry.name}/{kind.name}/{mode}", entry, mode, kind


def run(cases: int | None = None, seed: int = 0, only: str | None = None) -> Report:
    """Run all cases, or so many drawn ones."""
    report = Report()
    plain, more = list(product()), list(intrusions())
    if only is not None:
        plain = [case for case in plain if case[0].startswith(only)]
        more = [case for case in more if case[0].startswith(only)]
    if cases is not None:
        draw = random.Random(seed)
        few = max(cases // 5, 1)
        plain = draw.sample(plain, min(cases - few, len(plain)))
        more = draw.sample(more, min(few, len(more)))
    for label, entry, mode, kind in plain:
        look(report, label, entry, mode, kind)
    for label, entry, mode, kind, what, exchanging in more:
        intrude(report, label, entry, mode, kind, what, exchanging=exchanging)
    return report


# As somebody without permissions, and on a disk that cannot be written.


def powerless(report: Report, root: Path, errors: tuple[type[BaseException], ...], label: str) -> None:
    """Try all calls that would change something in ``root/work``, where this process may not."""
    os.chdir(root / "work")
    for entry in entries():
        if entry.action in {"look", "lock", "beside"}:
            continue
        for kind in kinds():
            if kind.name not in {"nothing", "empty file", "frame", "sparse frame", "text", "folder", "damaged frame"}:
                continue
            for mode in entry.modes:
                if mode in "rc" or not may_change(entry, mode, kind):
                    continue
                report.cases += 1
                path = f"{kind.name}.b2nd"
                before = state_of_readable(root)
                error = tried(entry, path, mode)
                problems = [] if state_of_readable(root) == before else ["something changed"]
                if error is None:
                    problems.append("not refused")
                elif not isinstance(error, (*errors, CommandError)) or not is_of_family(error):
                    problems.append(f"{type(error).__name__}: {error}")
                report.refused += error is not None
                if problems:
                    report.failures.append(f"{label}: {entry.name}/{kind.name}/{mode}: {'; '.join(problems)}")


def state_of_readable(root: Path) -> list[tuple[object, ...]]:
    """Return what somebody without permissions can see of the sandbox."""
    return sorted((str(place), os.lstat(place)[:4], os.lstat(place)[6]) for place in root.rglob("*"))


def build_all(root: Path) -> None:
    """Put every kind beside the others."""
    work = root / "work"
    work.mkdir()
    for kind in kinds():
        if kind.path == NAME and kind.owns == f"work/{NAME}" and not kind.name.startswith("link"):
            kind.build(work / f"{kind.name}.b2nd")


def in_child(work: Callable[[Report], object]) -> Report:
    """Run something in a process that ends with it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reading)
            report = Report()
            work(report)
            with os.fdopen(writing, "wb") as stream:
                pickle.dump(report, stream)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        raw = stream.read()
    os.waitpid(child, 0)
    if not raw:
        return Report(failures=["the process ended without an answer"])
    made: Report = pickle.loads(raw)  # noqa: S301 - our own
    return made


Somebody = Callable[[], Report]
"""A part of the laboratory that is run as somebody else."""


def without_permission() -> Report:
    """Run as nobody in a directory of root's."""
    if os.geteuid() != 0:
        return Report(skipped=["without permission: only root can become nobody"])
    with tempfile.TemporaryDirectory(prefix="paths-lab-") as folder:
        root = Path(folder)
        build_all(root)
        root.chmod(0o755)
        (root / "work").chmod(0o755)
        modules_are_there()

        def work(report: Report) -> None:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.environ["TMPDIR"] = tempfile.tempdir = "/tmp"  # noqa: S108
            powerless(report, root, (PermissionError,), "no permission")

        return in_child(work)


def modules_are_there() -> None:
    """Load what the calls need, for nobody may not be able to read it."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()  # noqa: PTH109
        os.chdir(folder)
        try:
            for entry in entries():
                for mode in entry.modes:
                    with contextlib.suppress(FileExistsError, FileNotFoundError):
                        Path("x.b2nd").write_bytes(frames()["frame"])
                    tried(entry, "x.b2nd" if entry.action not in MAKERS else f"{mode}{len(entry.name)}.b2nd", mode)
        finally:
            os.chdir(before)


def read_only() -> Report:
    """Run on a mount that cannot be written."""
    with tempfile.TemporaryDirectory(prefix="paths-lab-") as folder:
        root = Path(folder)
        build_all(root)
        line = ["mount", "-o", "bind", str(root), str(root)]
        again = ["mount", "-o", "remount,bind,ro", str(root)]
        done = [subprocess.run(one, check=False, capture_output=True, text=True) for one in (line, again)]
        try:
            if any(one.returncode for one in done):
                return Report(skipped=[f"read-only mount: {' '.join(one.stderr.strip() for one in done)}"])
            return in_child(lambda report: powerless(report, root, (OSError,), "read-only mount"))
        finally:
            if not done[0].returncode:
                subprocess.run(["umount", str(root)], check=False)  # noqa: S607


def main() -> int:
    """Run by hand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, help="so many drawn cases; all unless given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="the beginning of the names of cases")
    options = parser.parse_args()
    reports = [run(options.cases, options.seed, options.only)]
    if options.only is None:
        reports += [without_permission(), read_only()]
    for title, report in zip(("product", "no permission", "read-only mount"), reports, strict=False):
        print(f"{title}: {report}")  # noqa: T201 - a script prints
        for why in report.skipped:
            print(f"  skipped: {why}")  # noqa: T201
        for failure in report.failures:
            print(f"  FAILED {failure}")  # noqa: T201
    return any(report.failures for report in reports)


if __name__ == "__main__":
    sys.exit(main())
