"""Positioned reads and writes on one file, all calls that change a disk, and how their failures are reported.

Everything goes through descriptors with ``pread`` and ``pwrite``. Threads and forks share no position, and no mapping
can fault. Reading and writing have a descriptor each, so that a handle for reading asks for no more.

Every change of a disk goes through one object, `system`. A test that puts another `System` in its place sees every
change, in order. The crash laboratory (`tests/crashlab`) does. Knows nothing about frames.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from typing import TYPE_CHECKING, Any, Self

from superchunk import _engine
from superchunk.exceptions import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

__all__ = [
    "FileBytes",
    "RetiredFiles",
    "System",
    "after_power_loss",
    "exchange_files",
    "link_file",
    "make_folder",
    "place_file",
    "remove_file",
    "remove_folder",
    "replace_file",
    "storage_error",
    "sync_files",
    "sync_folder",
]

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}
_MOST_SINGLY = 64
"""Files that are synced one by one."""
_LONGEST_CALL = 600.0
"""Seconds that no call takes to read from one file."""
_MOST_RETIRED = 64
"""Files that wait for that."""
_CANNOT_LINK = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
"""What a file system answers that has no links."""
# A machine that lost its power had written out what was older than this, seconds.
_WRITTEN_OUT = 3600.0
_CLOCK_ERROR = 60.0
_MOST_BUFFERS = 1024
"""Buffers of one ``pwritev``: what POSIX systems take (IOV_MAX)."""


class System:
    """The calls that change a disk, as the operating system has them.

    Every method raises `OSError` when the system refuses.
    """

    def open_new(self, path: str, mode: int = 0o666) -> int:
        """Create the new file `path` for reading and writing; return its descriptor."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)

    def open_folder(self, path: str) -> int:
        """Open the directory `path`; return its descriptor."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def pwrite(self, fd: int, buffers: Sequence[Buffer], at: int) -> None:
        """Write all of `buffers`, one behind the other, at byte `at`."""
        left: list[memoryview] = list(map(memoryview, buffers))  # type: ignore[arg-type]  # of bytes, to mypy
        while left:
            done = os.pwritev(fd, left[:_MOST_BUFFERS], at)
            at += done
            while left and done >= left[0].nbytes:
                done -= left.pop(0).nbytes
            if done:  # signals, a disk that gets full, and writes over 2 GiB, come in parts
                left[0] = left[0].cast("B")[done:]

    def truncate(self, fd: int, size: int) -> None:
        """Make the file `size` bytes long."""
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Wait until the file's bytes and its size are on the disk."""
        os.fsync(fd)

    def sync_named(self, path: str) -> None:
        """Wait until the bytes of the regular file `path` and its size are on the disk."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_filesystem(self, path: str) -> None:
        """Wait until all that was written to the file system of the directory `path` is on the disk."""
        fd = self.open_folder(path)
        try:
            _engine.sync_filesystem(fd)
        finally:
            os.close(fd)

    def rename(self, old: str, new: str) -> None:
        """Give `old` the name `new`, in place of what has it."""
        os.replace(old, new)

    def rename_new(self, old: str, new: str) -> None:
        """Give `old` the name `new`, that nothing may have; `FileExistsError` if something has it.

        Where the system has no such call, a file is linked and its old name removed; a directory's new name is looked
        for just before.
        """
        try:
            _engine.rename_new(old, new)
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise
        else:
            return
        if not os.path.isdir(old):
            try:
                os.link(old, new, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _CANNOT_LINK:
                    raise
            else:
                os.unlink(old)
                return
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        os.rename(old, new)

    def exchange(self, one: str, other: str) -> None:
        """Let two files or directories change their names in one step; errno ENOTSUP if the system cannot."""
        _engine.exchange(one, other)

    def link(self, old: str, new: str) -> None:
        """Give the file `old` a second name, `new`, that nothing may have."""
        os.link(old, new, follow_symlinks=False)

    def unlink(self, path: str) -> None:
        """Remove the name of a file."""
        os.unlink(path)

    def mkdir(self, path: str) -> None:
        """Make the directory `path`."""
        os.mkdir(path)

    def rmdir(self, path: str) -> None:
        """Remove the empty directory `path`."""
        os.rmdir(path)

    def sync_folder(self, path: str) -> None:
        """Wait until the names in the directory `path` are on the disk."""
        fd = self.open_folder(path)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some network file systems do not know it of a directory
                raise
        finally:
            os.close(fd)


system: System = System()
"""Through which everything in this package changes a disk."""


def storage_error(error: OSError, path: str) -> StorageError:
    """Return `error` as a `StorageError` about `path`, errno kept."""
    return StorageError(error.errno or 0, error.strerror or str(error), path)


def replace_file(old: str, new: str, *, display_path: str | None = None) -> None:
    """Give `old` the name `new`, in place of what has it.

    Raises
    ------
    StorageError
        The system refuses; it is about `display_path`, or `new`.

    """
    try:
        system.rename(old, new)
    except OSError as error:
        raise storage_error(error, display_path or new) from error


def place_file(old: str, new: str, *, display_path: str | None = None) -> None:
    """Give `old`, a file or a directory, the name `new`, that nothing may have.

    Raises
    ------
    StorageError
        Something has that name (an `ExistingFileError`), or the system refuses; it is about `display_path`, or `new`.

    """
    try:
        system.rename_new(old, new)
    except OSError as error:
        raise storage_error(error, display_path or new) from error


def exchange_files(one: str, other: str, *, display_path: str | None = None) -> bool:
    """Let two files or directories change their names in one step; return False if the system cannot.

    Raises
    ------
    StorageError
        One is not there, or the system refuses; it is about `display_path`, or `other`.

    """
    try:
        system.exchange(one, other)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return False
        raise storage_error(error, display_path or other) from error
    return True


def link_file(old: str, new: str, *, display_path: str | None = None) -> None:
    """Give the file `old` a second name, `new`.

    Raises
    ------
    StorageError
        Something has that name, or the system refuses; it is about `display_path`, or `new`.

    """
    try:
        system.link(old, new)
    except OSError as error:
        raise storage_error(error, display_path or new) from error


def remove_file(path: str) -> None:
    """Remove a file of ours that may be gone already.

    Raises
    ------
    StorageError
        The system refuses.

    """
    try:
        system.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(error, path) from error


def make_folder(path: str) -> None:
    """Make the directory `path`, which must not exist.

    Raises
    ------
    StorageError
        The system refuses.

    """
    try:
        system.mkdir(path)
    except OSError as error:
        raise storage_error(error, path) from error


def remove_folder(path: str) -> None:
    """Remove the directory `path`, which must be empty.

    Raises
    ------
    StorageError
        The system refuses.

    """
    try:
        system.rmdir(path)
    except OSError as error:
        raise storage_error(error, path) from error


def sync_files(folder: str, names: Sequence[str], *, display_path: str | None = None) -> None:
    """Wait until the files `names` in the directory `folder` are on the disk, not their names.

    Of many, the whole file system is written out in one go, where the system can do that.

    Raises
    ------
    StorageError
        The system refuses; it is about what is in `display_path`, or the directory.

    """
    shown = display_path or folder
    if len(names) > _MOST_SINGLY:
        try:
            system.sync_filesystem(folder)
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise storage_error(error, shown) from error
        else:
            return
    for name in names:
        try:
            system.sync_named(os.path.join(folder, name))
        except FileNotFoundError:
            continue  # nothing that could be lost
        except OSError as error:
            raise storage_error(error, os.path.join(shown, name)) from error


def sync_folder(path: str, *, display_path: str | None = None) -> None:
    """Wait until the names in the directory `path` are on the disk; an empty path is the current one.

    Raises
    ------
    StorageError
        The system refuses; it is about `display_path`, or the directory.

    """
    try:
        system.sync_folder(path or os.curdir)
    except OSError as error:
        raise storage_error(error, display_path or path) from error


def after_power_loss(changed_at: float) -> bool:
    """Return whether a file that was changed at `changed_at` may have lost what was written.

    True for the hour before this machine started. Before that, the system had written
    everything out by itself; after it, nothing can have been lost yet.
    """
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    start = time.time() - (time.monotonic() if clock is None else time.clock_gettime(clock))
    return start - _WRITTEN_OUT <= changed_at <= start + _CLOCK_ERROR


class FileBytes:
    """The bytes of one open file; all positions count from its first byte.

    Every method raises `StorageError` when the system refuses.
    """

    __slots__ = ("display_path", "identity", "path", "read_fd", "write_fd")

    def __init__(self, path: str, read_fd: int, write_fd: int = -1, *, status: os.stat_result | None = None) -> None:
        """Take over open descriptors; `write_fd` may equal `read_fd`, -1 is none."""
        self.path = path
        self.display_path = path
        """The name that errors use."""
        self.read_fd = read_fd
        self.write_fd = write_fd
        if status is not None:
            self.identity = status.st_dev, status.st_ino

    identity: tuple[int, int]
    """Device and inode."""

    if not TYPE_CHECKING:  # `identity` is all that may be asked for before it is there

        def __getattr__(self, name: str) -> Any:
            """Return the identity of a new file, of which few are ever asked."""
            if name != "identity":
                raise AttributeError(f"FileBytes has no {name}")
            status = os.fstat(self.read_fd)
            self.identity = status.st_dev, status.st_ino
            return self.identity

    @classmethod
    def open(cls, path: str, *, follow: bool = True, within: FileBytes | None = None) -> Self:
        """Open the regular file `path` for reading.

        Parameters
        ----------
        path
            The file.
        follow
            It may be a symbolic link.
        within
            The open directory where the last part of `path` is, whatever has the directory's name by now.

        Raises
        ------
        FileNotFoundError
            There is none.
        StorageError
            The system refuses, or it is no regular file.

        """
        try:
            # Without O_NONBLOCK, opening a named pipe would wait for a writer.
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
            if within is None:
                fd = os.open(path, flags)
            else:
                fd = os.open(os.path.basename(path), flags, dir_fd=within.read_fd)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise storage_error(error, path) from error
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode):
            return cls(path, fd, status=status)
        os.close(fd)
        number = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
        found = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise StorageError(number, f"expected a regular file, found {found}", path)

    @classmethod
    def create(cls, path: str, *, like: FileBytes | None = None, display_path: str | None = None) -> Self:
        """Create the new file `path` for reading and writing; it must not exist.

        Its permissions are those of the file `like`, if that is given. Errors name it
        `display_path`, if it is a temporary name that would say nothing to the caller.
        """
        name = path if display_path is None else display_path
        try:
            fd = system.open_new(path)
        except OSError as error:
            raise storage_error(error, name) from error
        file = cls(path, fd, fd)
        file.display_path = name
        if like is not None:
            try:
                os.fchmod(fd, stat.S_IMODE(os.fstat(like.read_fd).st_mode))
            except OSError as error:
                file.close()
                remove_file(path)
                raise storage_error(error, name) from error
        return file

    def enable_writing(self) -> None:
        """Open the file for writing too, if it is not yet."""
        if self.write_fd >= 0:
            return
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise storage_error(error, self.display_path) from error
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != self.identity:
            os.close(fd)
            replaced = StorageError(f"{self.display_path}: replaced by another file since it was opened")
            replaced.errno = errno.ESTALE
            raise replaced
        self.write_fd = fd

    def size(self) -> int:
        """Return the file's size, bytes."""
        return self.size_and_time()[0]

    def size_and_time(self) -> tuple[int, float]:
        """Return the file's size, bytes, and when it was changed, seconds since 1970."""
        try:
            status = os.fstat(self.read_fd)
        except OSError as error:
            raise storage_error(error, self.display_path) from error
        return status.st_size, status.st_mtime

    def pread(self, nbytes: int, at: int) -> bytes:
        """Return `nbytes` from byte `at`, fewer where the file ends."""
        try:
            raw = os.pread(self.read_fd, nbytes, at)
            while len(raw) < nbytes:  # signals, and reads over 2 GiB, come in parts
                more = os.pread(self.read_fd, nbytes - len(raw), at + len(raw))
                if not more:
                    break
                raw += more
        except OSError as error:
            raise storage_error(error, self.display_path) from error
        return raw

    def changed(self, at: int, probe: bytes) -> bool:
        """Return whether other bytes than `probe` stand at byte `at`, or the file has no name any more."""
        try:
            return _engine.Watch(self.read_fd, at, probe).changed()
        except OSError as error:
            raise storage_error(error, self.display_path) from error

    def pwrite(self, data: bytes | Sequence[Buffer], at: int) -> None:
        """Write all of `data`, which may come as several buffers, at byte `at`."""
        try:
            system.pwrite(self.write_fd, [data] if isinstance(data, bytes) else data, at)
        except OSError as error:
            raise storage_error(error, self.display_path) from error

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        try:
            system.truncate(self.write_fd, size)
        except OSError as error:
            raise storage_error(error, self.display_path) from error

    def sync(self) -> None:
        """Wait until what was written is on the disk."""
        try:
            system.sync(self.write_fd)
        except OSError as error:
            raise storage_error(error, self.display_path) from error

    def has_name(self, path: str) -> bool:
        """Return whether `path`, no link to it, is this file; what the system does not look up is not."""
        try:
            status = os.lstat(path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity

    def remove(self) -> None:
        """Remove the name, if it still leads to this file.

        Raises
        ------
        StorageError
            The system refuses.

        """
        if self.has_name(self.path):
            remove_file(self.path)

    def close_writing(self) -> None:
        """Close the descriptor for writing, if it is one of its own."""
        fd, self.write_fd = self.write_fd, -1
        if fd not in (-1, self.read_fd):
            os.close(fd)

    def __del__(self) -> None:
        """Close what nobody uses any more."""
        if self.read_fd >= 0 or self.write_fd >= 0:
            self.close()

    def close(self) -> None:
        """Close the descriptors; closing twice is fine."""
        read_fd, write_fd = self.read_fd, self.write_fd
        self.read_fd = self.write_fd = -1
        if read_fd >= 0:
            os.close(read_fd)
        if write_fd >= 0 and write_fd != read_fd:
            os.close(write_fd)


class RetiredFiles:
    """Files that others have taken the place of, open for calls that still read them.

    A call that reads holds a descriptor and no lock. A file may therefore be closed only when no older call can be
    running. Until then the system keeps the space of a removed file. Nor are there more than 64, for descriptors run
    out: a call that meets that reads anew, see `changed_since`. What holds on to a file for longer, as a snapshot does,
    holds the `FileBytes`.
    """

    __slots__ = ("files",)

    def __init__(self) -> None:
        """Begin without any."""
        self.files: list[tuple[float, FileBytes]] = []
        """When each was retired, and the file, oldest first."""

    def add(self, file: FileBytes) -> None:
        """Keep `file` for some time."""
        self.tidy()
        self.files.append((time.monotonic(), file))

    def tidy(self) -> None:
        """Let go of those that no call can still be reading."""
        oldest = time.monotonic() - _LONGEST_CALL
        while self.files and (self.files[0][0] < oldest or len(self.files) >= _MOST_RETIRED):
            self.files.pop(0)

    def close(self) -> None:
        """Close them all."""
        for _, file in self.files:
            file.close()
        self.files.clear()
