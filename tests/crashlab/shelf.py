"""Images made real: a directory that becomes one image after the other, quickly.

Only what differs from the image before is written. For a loss of power the files look as
if they had been changed a second before the machine started, which is when a reader has
reason to distrust them.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from crashlab.disk import Image

__all__ = ["Shelf", "before_start"]


def before_start() -> int:
    """Return the time a second before this machine started, nanoseconds since 1970."""
    running = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.time_ns() - running - 1_000_000_000


class Shelf:
    """The directory `root`, which is empty at first, as the image last put there.

    Parameters
    ----------
    root
        The directory.
    changed_at
        When the files are to have been changed, nanoseconds since 1970; None: now.

    """

    def __init__(self, root: str, changed_at: int | None = None) -> None:
        self.root = root
        self._times = None if changed_at is None else (changed_at, changed_at)
        self._names: dict[str, int] = {}
        self._folders: tuple[str, ...] = ()
        self._files: dict[int, tuple[int, bytes]] = {}

    def __enter__(self) -> Self:
        """Return the shelf; leaving the block empties it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Empty the directory."""
        self.clear()

    def put(self, image: Image) -> None:
        """Make the directory look like `image`."""
        moved = self._folders != image.folders
        if moved:
            for folder in sorted(set(image.folders) - set(self._folders)):
                os.mkdir(f"{self.root}/{folder}")  # noqa: PTH102 - called for every image
        names = dict(image.names)
        if names != self._names:
            self._rename(names)
        for inode, content in image.contents:
            if self._files[inode][1] != content:
                self._fill(inode, content)
        if moved:
            for folder in sorted(set(self._folders) - set(image.folders), reverse=True):
                os.rmdir(f"{self.root}/{folder}")  # noqa: PTH106 - called for every image
            self._folders = image.folders

    def _fill(self, inode: int, content: bytes) -> None:
        """Give a file its bytes."""
        fd, held = self._files[inode]
        if content:
            os.pwrite(fd, content, 0)
        if len(content) < len(held):
            os.ftruncate(fd, len(content))
        if self._times is not None:
            os.utime(fd, ns=self._times)
        self._files[inode] = fd, content

    def _rename(self, names: dict[str, int]) -> None:
        """Give the files their new names; new files are empty."""
        held = self._names
        for path in [path for path, inode in held.items() if names.get(path, inode) != inode]:
            os.unlink(f"{self.root}/{path}")  # noqa: PTH108 - called for every image
            del held[path]
        paths = {inode: path for path, inode in held.items()}
        for path, inode in names.items():
            if path in held:
                continue
            if inode in paths:
                os.link(f"{self.root}/{paths[inode]}", f"{self.root}/{path}")
            else:
                self._forget(inode)
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                self._files[inode] = os.open(f"{self.root}/{path}", flags, 0o666), b""
                if self._times is not None:
                    os.utime(self._files[inode][0], ns=self._times)
                paths[inode] = path
        for path in held.keys() - names.keys():
            os.unlink(f"{self.root}/{path}")  # noqa: PTH108 - called for every image
        for inode in self._files.keys() - set(names.values()):
            self._forget(inode)
        self._names = dict(names)

    def _forget(self, inode: int) -> None:
        """Close a file that has no name here any more."""
        if inode in self._files:
            os.close(self._files.pop(inode)[0])

    def clear(self) -> None:
        """Remove everything below the directory, also what others left there."""
        for inode in list(self._files):
            self._forget(inode)
        for folder, folders, files in os.walk(self.root, topdown=False):
            for name in files:
                os.unlink(f"{folder}/{name}")  # noqa: PTH108 - as above
            for name in folders:
                os.rmdir(f"{folder}/{name}")  # noqa: PTH106 - as above
        self._names.clear()
        self._folders = ()
