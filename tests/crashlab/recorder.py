"""A `System` that does what it is told and writes down every step.

It works in one directory and knows files by number, so that a name given twice, or a
descriptor used after a rename, is no riddle later. It does not wait for the real disk: the
process does not end, so nothing is lost that it did not sync.

Source: the seam is `superchunk._store.os_file.system`.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crashlab.disk import (
    Create,
    Exchange,
    Link,
    Mkdir,
    Rename,
    Rmdir,
    Sync,
    SyncFolder,
    Tree,
    Truncate,
    Unlink,
    Write,
)
from superchunk._store import os_file as file
from superchunk._store.os_file import System

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

    from crashlab.disk import NameOp, Op

__all__ = ["Recorder", "recording"]


class Recorder(System):
    """Records what is done below the directory `root`, which is empty at first.

    Every method raises `OSError` when the real system refuses, and records nothing then.
    """

    def __init__(self, root: str) -> None:
        """Watch over the directory `root`."""
        self.root = os.path.realpath(root)
        self.ops: list[Op] = []
        self._tree = Tree()
        self._numbers: dict[tuple[int, int], int] = {}
        self._last = 0

    def _find(self, path: str) -> tuple[int, str]:
        """Return the directory's number, and the name in it."""
        folder, name = os.path.split(path)
        relative = os.path.relpath(os.path.join(os.path.realpath(folder), name), self.root)  # noqa: PTH118
        if relative.startswith(os.pardir):
            msg = f"{path}: outside of the recorded directory"
            raise ValueError(msg)
        return self._tree.find(relative)

    def _folder(self, path: str) -> int:
        """Return a directory's number."""
        if os.path.realpath(path) == self.root:
            return 0
        folder, name = self._find(path)
        return self._tree.folders[folder][name]

    def _file(self, fd: int) -> int:
        """Return the number of an open file."""
        status = os.fstat(fd)
        return self._numbers[status.st_dev, status.st_ino]

    def _note(self, op: NameOp) -> None:
        self._tree.apply(op)
        self.ops.append(op)

    def open_new(self, path: str, mode: int = 0o666) -> int:
        """Create a file."""
        fd = super().open_new(path, mode)
        status = os.fstat(fd)
        self._last += 1
        self._numbers[status.st_dev, status.st_ino] = self._last
        self._note(Create(self._last, *self._find(path)))
        return fd

    def pwrite(self, fd: int, buffers: Sequence[Buffer], at: int) -> None:
        """Write."""
        super().pwrite(fd, buffers, at)
        self.ops.append(Write(self._file(fd), at, b"".join(buffers)))

    def truncate(self, fd: int, size: int) -> None:
        """Cut or lengthen a file."""
        super().truncate(fd, size)
        self.ops.append(Truncate(self._file(fd), size))

    def sync(self, fd: int) -> None:
        """Note that a file's bytes are asked to be on the disk."""
        self.ops.append(Sync(self._file(fd)))

    def sync_named(self, path: str) -> None:
        """Note that a file's bytes are asked to be on the disk."""
        os.lstat(path)
        folder, name = self._find(path)
        self.ops.append(Sync(self._tree.folders[folder][name]))

    def sync_filesystem(self, path: str) -> None:
        """Note that the bytes of all files in a directory, which may be all, are asked to be on the disk."""
        for number in self._tree.folders[self._folder(path)].values():
            if number not in self._tree.folders:
                self.ops.append(Sync(number))

    def sync_folder(self, path: str) -> None:
        """Note that a directory's names are asked to be on the disk."""
        self.ops.append(SyncFolder(self._folder(path)))

    def rename(self, old: str, new: str) -> None:
        """Rename."""
        super().rename(old, new)
        self._note(Rename(*self._find(old), *self._find(new)))

    def rename_new(self, old: str, new: str) -> None:
        """Rename, to a name that nothing has."""
        super().rename_new(old, new)
        self._note(Rename(*self._find(old), *self._find(new)))

    def exchange(self, one: str, other: str) -> None:
        """Let two names change places."""
        super().exchange(one, other)
        self._note(Exchange(*self._find(one), *self._find(other)))

    def link(self, old: str, new: str) -> None:
        """Give a second name."""
        super().link(old, new)
        folder, name = self._find(old)
        self._note(Link(self._tree.folders[folder][name], *self._find(new)))

    def unlink(self, path: str) -> None:
        """Remove a name."""
        super().unlink(path)
        self._note(Unlink(*self._find(path)))

    def mkdir(self, path: str) -> None:
        """Make a directory."""
        super().mkdir(path)
        self._last += 1
        self._note(Mkdir(self._last, *self._find(path)))

    def rmdir(self, path: str) -> None:
        """Remove a directory."""
        super().rmdir(path)
        self._note(Rmdir(*self._find(path)))


@contextmanager
def recording(recorder: System) -> Iterator[None]:
    """Let everything in this process change the disk through `recorder`, for a while."""
    before, file.system = file.system, recorder
    try:
        yield
    finally:
        file.system = before
