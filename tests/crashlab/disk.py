"""What happens to a disk, step by step, and what stands on it: the laboratory's model of a file system.

::

    Create  Write  Truncate  Sync                one file: its bytes
    Rename  Exchange  Link  Unlink  Mkdir  Rmdir     names, each in a directory
    SyncFolder

A file, and a directory, is known by a number; names are entries of directories. `Tree`
holds the names, `Image` a whole disk as it is found after a crash. What a crash may leave
is the business of `losses`; nothing here touches a real disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

__all__ = [
    "ROOT",
    "Create",
    "Exchange",
    "Image",
    "Link",
    "Mkdir",
    "NameOp",
    "Op",
    "Rename",
    "Rmdir",
    "Sync",
    "SyncFolder",
    "Tree",
    "Truncate",
    "Unlink",
    "Write",
    "overlay",
    "resized",
]

ROOT = 0
"""The number of the directory in which everything takes place."""


@dataclass(frozen=True, slots=True)
class Write:
    """`data` goes to byte `at` of file `inode`."""

    inode: int
    at: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    """File `inode` becomes `size` bytes long."""

    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    """What was done to the bytes of file `inode` is on the disk."""

    inode: int


@dataclass(frozen=True, slots=True)
class SyncFolder:
    """What was done to the names in directory `folder` is on the disk."""

    folder: int


@dataclass(frozen=True, slots=True)
class Create:
    """The new, empty file `inode` is called `name` in `folder`."""

    inode: int
    folder: int
    name: str


@dataclass(frozen=True, slots=True)
class Mkdir:
    """The new, empty directory `inode` is called `name` in `folder`."""

    inode: int
    folder: int
    name: str


@dataclass(frozen=True, slots=True)
class Link:
    """File `inode` is called `name` in `folder` too."""

    inode: int
    folder: int
    name: str


@dataclass(frozen=True, slots=True)
class Rename:
    """What was `name` in `folder` is `new_name` in `new_folder`, in place of what was there."""

    folder: int
    name: str
    new_folder: int
    new_name: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """What was `name` in `folder` is `new_name` in `new_folder`, and the other way round."""

    folder: int
    name: str
    new_folder: int
    new_name: str


@dataclass(frozen=True, slots=True)
class Unlink:
    """No file is called `name` in `folder` any more."""

    folder: int
    name: str


@dataclass(frozen=True, slots=True)
class Rmdir:
    """No directory is called `name` in `folder` any more."""

    folder: int
    name: str


NameOp: TypeAlias = Create | Mkdir | Link | Rename | Exchange | Unlink | Rmdir
Op: TypeAlias = Write | Truncate | Sync | SyncFolder | NameOp


class Image(NamedTuple):
    """A disk as somebody finds it: equal images look the same to every program."""

    names: tuple[tuple[str, int], ...]
    """Path and file of every name, sorted."""
    folders: tuple[str, ...]
    """Path of every directory but the root, sorted."""
    contents: tuple[tuple[int, bytes], ...]
    """File and bytes of everything named, sorted."""


class Tree:
    """The names on a disk: for each directory what is called how."""

    __slots__ = ("folders",)

    def __init__(self) -> None:
        """Start with an empty root."""
        self.folders: dict[int, dict[str, int]] = {ROOT: {}}

    def copy(self) -> Tree:
        """Return a tree that can be changed for itself."""
        tree = Tree()
        tree.folders = {folder: dict(names) for folder, names in self.folders.items()}
        return tree

    def apply(self, op: NameOp) -> None:
        """Do to the names what `op` says; names that a loss took away are no error."""
        names = self.folders.setdefault(op.folder, {})
        match op:
            case Create() | Link():
                names[op.name] = op.inode
            case Mkdir():
                names[op.name] = op.inode
                self.folders.setdefault(op.inode, {})
            case Rename():
                target = self.folders.setdefault(op.new_folder, {})
                moved = names.get(op.name)
                if moved is not None and target.get(op.new_name) != moved:  # two names of one file both stay
                    target[op.new_name] = names.pop(op.name)
            case Exchange():
                target = self.folders.setdefault(op.new_folder, {})
                one, other = names.get(op.name), target.get(op.new_name)
                if one is not None and other is not None:
                    names[op.name], target[op.new_name] = other, one
            case Unlink() | Rmdir():
                names.pop(op.name, None)

    def find(self, path: str) -> tuple[int, str]:
        """Return the directory of `path`, relative to the root, and the name in it."""
        *above, name = path.split("/")
        folder = ROOT
        for part in above:
            folder = self.folders[folder][part]
        return folder, name

    def walk(self) -> tuple[dict[str, int], list[str]]:
        """Return the file of each path, and the paths of the directories."""
        files: dict[str, int] = {}
        paths: list[str] = []
        waiting = [(ROOT, "")]
        while waiting:
            folder, prefix = waiting.pop()
            for name, inode in self.folders[folder].items():
                if inode in self.folders:
                    paths.append(prefix + name)
                    waiting.append((inode, f"{prefix}{name}/"))
                else:
                    files[prefix + name] = inode
        return files, paths


def overlay(content: bytes, at: int, data: bytes) -> bytes:
    """Return `content` with `data` written at byte `at`; a gap is zeros."""
    if at > len(content):
        content += bytes(at - len(content))
    return content[:at] + data + content[at + len(data) :]


def resized(content: bytes, size: int) -> bytes:
    """Return `content` cut to `size` bytes, or with zeros up to there."""
    return content[:size] if size <= len(content) else content + bytes(size - len(content))
