"""What a crash leaves of the steps before it: a killed process, and a loss of power.

`killed` is exact: the system survives, so all steps before the kill are there, and of the
last write perhaps a part, torn at a boundary of 512 bytes.

`PowerLoss` follows the steps and knows at each moment what is surely on the disk:

- bytes of a file: what was written before its last sync. Since then each sector of 512
  bytes may be as after any of the steps that changed it, whatever its neighbours are (a
  sector is written whole, so it never lacks an older step and has a newer one); the
  file's size is that after any of the steps, and what lies inside but was never
  written is zeros;
- names in a directory: what was done before its last sync. Later steps persist in order,
  as in a journal, up to any of them; a rename between directories persists in both or in
  neither.

Files and directories are independent of each other: a name may be there without the bytes
and the other way round. That is harsher than most file systems and what POSIX allows.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from crashlab.disk import (
    Exchange,
    Image,
    Rename,
    Sync,
    SyncFolder,
    Tree,
    Truncate,
    Write,
    overlay,
    resized,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from random import Random

    from crashlab.disk import NameOp, Op

__all__ = ["SECTOR", "PowerLoss", "killed"]

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""
_MOSTLY = 0.7
"""How often a drawn loss takes nothing of a file's size, or of a directory's names."""


def killed(ops: Sequence[Op]) -> Iterator[tuple[int, int, Image]]:
    """Yield steps done, bytes done of the last one if torn (else -1), and the disk then."""
    tree = Tree()
    contents: dict[int, bytes] = {}
    yield 0, -1, _image(tree, contents)
    for done, op in enumerate(ops, 1):
        match op:
            case Write():
                before = contents.get(op.inode, b"")
                for cut in _cuts(op):
                    contents[op.inode] = overlay(before, op.at, op.data[:cut])
                    yield done, cut, _image(tree, contents)
                contents[op.inode] = overlay(before, op.at, op.data)
            case Truncate():
                contents[op.inode] = resized(contents.get(op.inode, b""), op.size)
            case Sync() | SyncFolder():
                pass
            case _:
                tree.apply(op)
        yield done, -1, _image(tree, contents)


def _cuts(op: Write) -> range:
    """Return after how many bytes a write may be torn."""
    return range(SECTOR - op.at % SECTOR, len(op.data), SECTOR)


def _image(tree: Tree, contents: Mapping[int, bytes]) -> Image:
    files, folders = tree.walk()
    return Image(
        tuple(sorted(files.items())),
        tuple(sorted(folders)),
        tuple((inode, contents.get(inode, b"")) for inode in sorted(set(files.values()))),
    )


class _Update(NamedTuple):
    """Step `step` of a file's unsynced ones puts `data` at byte `at`, within one sector."""

    step: int
    at: int
    data: bytes


_Versions: TypeAlias = tuple[int, ...]
"""For each changed sector, in order, how many of its updates are there."""


class _Pending:
    """One file: the bytes on the disk, and the steps since."""

    def __init__(self) -> None:
        self.durable = b""
        self.sizes = [0]
        """The file's size on the disk, and after each step."""
        self._sectors: dict[int, list[_Update]] = {}
        self._cuts: list[tuple[int, int]] = []
        """Of each step that made the file shorter: its number, and the size."""
        self._made: dict[tuple[int, _Versions], bytes] = {}

    def add(self, op: Write | Truncate) -> None:
        self._made.clear()
        step, size = len(self.sizes) - 1, self.sizes[-1]
        if isinstance(op, Write):
            self.sizes.append(max(size, op.at + len(op.data)))
            cuts = [0, *_cuts(op), len(op.data)]
            for start, stop in pairwise(cuts):
                self._update(step, op.at + start, op.data[start:stop])
            return
        self.sizes.append(op.size)
        if op.size < size:
            self._cuts.append((step, op.size))
            for sector in range(op.size // SECTOR, (size - 1) // SECTOR + 1):
                at = max(op.size, sector * SECTOR)
                self._update(step, at, bytes((sector + 1) * SECTOR - at))

    def _update(self, step: int, at: int, data: bytes) -> None:
        if data:
            self._sectors.setdefault(at // SECTOR, []).append(_Update(step, at, data))

    def sync(self) -> None:
        self.durable = self.after(len(self.sizes) - 1, self._latest)
        self.sizes = [len(self.durable)]
        self._sectors.clear()
        self._cuts.clear()
        self._made.clear()

    @property
    def _latest(self) -> _Versions:
        return tuple(len(updates) for updates in self._sectors.values())

    @property
    def ways(self) -> int:
        """How many choices there are."""
        return len(self.sizes) * prod(latest + 1 for latest in self._latest)

    def every(self) -> Iterator[bytes]:
        """Yield the contents of all choices."""
        for nsteps in range(len(self.sizes) - 1, -1, -1):
            for versions in product(*(range(latest + 1) for latest in self._latest)):
                yield self.after(nsteps, versions)

    def after(self, nsteps: int, versions: _Versions) -> bytes:
        """Return the bytes with the size after `nsteps` steps, and so many updates of each sector."""
        made = self._made.get((nsteps, versions))
        if made is None:
            made = self._made[nsteps, versions] = self._make(nsteps, versions)
        return made

    def _make(self, nsteps: int, versions: _Versions) -> bytes:
        content = bytearray(self.durable)
        content += bytes(max(max(self.sizes) + SECTOR - len(content), 0))
        for updates, count in zip(self._sectors.values(), versions, strict=True):
            for number, (step, at, data) in enumerate(updates):
                # What a cut that persisted took away does not come back.
                if number < count or any(step <= cut < nsteps and at >= size for cut, size in self._cuts):
                    content[at : at + len(data)] = data
        return bytes(content[: self.sizes[nsteps]])

    def draw(self, rng: Random) -> bytes:
        """Return one of the possible contents, the nastier ones more often."""
        last, latest = len(self.sizes) - 1, self._latest
        nsteps = last if rng.random() < _MOSTLY else rng.randint(0, last)
        odd = rng.randrange(len(latest)) if latest else -1
        match rng.randrange(6):
            case 0:
                versions = tuple(rng.randint(0, most) for most in latest)
            case 1:
                versions = tuple(rng.choice((0, most)) for most in latest)
            case 2:
                versions = tuple(most if number != odd else 0 for number, most in enumerate(latest))
            case 3:
                versions = tuple(most if number == odd else 0 for number, most in enumerate(latest))
            case 4:
                until = rng.randint(0, last)
                versions = tuple(sum(u.step < until for u in updates) for updates in self._sectors.values())
            case _:
                versions = latest
        return self.after(nsteps, versions)


class PowerLoss:
    """The disk between steps, as far as it is certain, and what else may be there."""

    def __init__(self) -> None:
        """Start with an empty disk."""
        self._tree = Tree()
        self._names: list[NameOp] = []
        self._files: dict[int, _Pending] = {}

    def step(self, op: Op) -> None:
        """Do one step."""
        match op:
            case Write() | Truncate():
                self._files.setdefault(op.inode, _Pending()).add(op)
            case Sync():
                self._files.setdefault(op.inode, _Pending()).sync()
            case SyncFolder():
                self._sync_names(op.folder)
            case _:
                self._names.append(op)

    def _sync_names(self, folder: int) -> None:
        """Make steps durable: those in `folder`, and what the journals have before them."""
        needed = {folder}
        kept: list[NameOp] = []
        settled: list[NameOp] = []
        for op in reversed(self._names):
            touched = _folders(op)
            if needed.isdisjoint(touched):
                kept.append(op)
            else:
                needed |= touched
                settled.append(op)
        for op in reversed(settled):
            self._tree.apply(op)
        self._names = kept[::-1]

    def _trees(self) -> Iterator[tuple[list[str], dict[str, int]]]:
        """Yield every combination of names that may be there."""
        folders = sorted({folder for op in self._names for folder in _folders(op)})
        counts = [sum(folder in _folders(op) for op in self._names) for folder in folders]
        for cuts in product(*(range(count + 1) for count in counts)):
            yield self._tree_with(dict(zip(folders, cuts, strict=True)))

    def _tree_with(self, left: dict[int, int]) -> tuple[list[str], dict[str, int]]:
        """Return the names when the first so many steps in each directory persisted."""
        tree = self._tree.copy()
        for op in self._names:
            touched = _folders(op)
            if all(left[folder] > 0 for folder in touched):
                tree.apply(op)
                for folder in touched:
                    left[folder] -= 1
            else:
                for folder in touched:
                    left[folder] = 0
        files, paths = tree.walk()
        return paths, files

    def states(self, rng: Random, most: int, exhaustive: int) -> Iterator[Image]:
        """Yield every disk that a loss of power may leave now; `most` drawn ones if over `exhaustive`."""
        if self._count(max(most, exhaustive)) <= max(most, exhaustive):
            for paths, files in self._trees():
                yield from self._all_contents(paths, files)
            return
        folders = sorted({folder for op in self._names for folder in _folders(op)})
        counts = {folder: sum(folder in _folders(op) for op in self._names) for folder in folders}
        for _ in range(most):
            left = {
                folder: count if rng.random() < _MOSTLY else rng.randint(0, count) for folder, count in counts.items()
            }
            paths, files = self._tree_with(left)
            inodes = sorted(set(files.values()))
            contents = tuple((inode, self._drawn(inode, rng)) for inode in inodes)
            yield Image(tuple(sorted(files.items())), tuple(sorted(paths)), contents)

    def _count(self, most: int) -> int:
        """Return how many states there are; any number over `most` if there are more than that."""
        total = 0
        for _, files in self._trees():
            ways = 1
            for inode in set(files.values()):
                if inode in self._files:
                    ways *= self._files[inode].ways
            total += ways
            if total > most:
                break
        return total

    def _drawn(self, inode: int, rng: Random) -> bytes:
        pending = self._files.get(inode)
        return b"" if pending is None else pending.draw(rng)

    def _all_contents(self, paths: list[str], files: dict[str, int]) -> Iterator[Image]:
        inodes = sorted(set(files.values()))
        names, folders = tuple(sorted(files.items())), tuple(sorted(paths))
        choices = [list((self._files.get(inode) or _Pending()).every()) for inode in inodes]
        for contents in product(*choices):
            yield Image(names, folders, tuple(zip(inodes, contents, strict=True)))


def _folders(op: NameOp) -> set[int]:
    """Return the directories whose names `op` changes."""
    return {op.folder, op.new_folder} if isinstance(op, (Rename, Exchange)) else {op.folder}
