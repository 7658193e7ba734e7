"""What lies at a path: what kind of thing it is, who reads it, and whether a frame may take its name.

::

    identify(path) ──> PathKind        a frame, an HDF5 file, a directory, a FIFO, nothing, ...
    check_target(path, rule)           before a frame is made: the path, its parent, and what lies there
    ReplaceRule.check(place)           the same question, asked again for what has just lost the name

Only two kinds may be replaced, moved or removed: a regular file that is a frame or empty, and a directory that holds a
sparse frame and nothing else. A kind is found by ``lstat`` and by parsing, never by a name or by a magic alone. How a
name is taken is the business of `_store.frame_names`.

Source: docs/format/sparse.md, "Replacing a frame".
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import Final

from superchunk._format.frame_header import FIXED_LEN, MAGIC, FrameHeader, has_header_markers
from superchunk._store.chunk_folder import INDEX_NAME, belongs, is_folder, joined
from superchunk._store.frame_names import find_name, move_aside, settle_name
from superchunk._store.os_file import FileBytes, remove_file, storage_error
from superchunk.exceptions import (
    ArgumentError,
    FormatError,
    StorageError,
    SuperchunkError,
    UnsupportedError,
)
from superchunk.params import local_path

__all__ = [
    "PathKind",
    "ReplaceRule",
    "check_target",
    "explained",
    "identify",
    "missing",
    "remove_frame",
]

_NOT_REPLACED: Final = "exists already, and is not replaced"
_HEAD: Final = 512
"""Bytes that tell what a file is."""
_NPZ_ENTRY: Final = b".npy"
_ZARR_FILES: Final = ("zarr.json", ".zarray", ".zgroup")
"""What makes a directory one of Zarr."""
_TEXT_CONTROLS: Final = frozenset(b"\t\n\f\r\x1b")
_LOCK_LEN: Final = 16
"""Bytes of C-Blosc2's lock file at most."""


@dataclass(frozen=True, slots=True)
class PathKind:
    """What kind of thing lies at a path."""

    name: str
    """One word: ``nothing``, ``empty``, ``frame``, ``sparse``, ``old frame``, ``npy``, ``npz``, ``hdf5``, ``zarr``,
    ``zip``, ``text``, ``file``, ``folder``, ``link``, ``fifo``, ``socket``, ``device``."""
    label: str
    """The same in words, with its article."""
    reader: str = ""
    """What reads it, if something else than `superchunk.open` does."""

    @property
    def is_frame(self) -> bool:
        """Whether `superchunk.open` reads it, unless it is damaged."""
        return self.name in {"frame", "sparse", "old frame"}

    def __str__(self) -> str:
        """Return what it is, and what reads it."""
        return f"{self.label}, which {self.reader}" if self.reader else self.label


_CONVERTED: Final = "superchunk convert makes a frame of"
_NOTHING: Final = PathKind("nothing", "nothing")
_EMPTY: Final = PathKind("empty", "empty")
_FRAME: Final = PathKind("frame", "a Blosc2 frame")
_SPARSE: Final = PathKind("sparse", "the directory of a sparse frame")
_OLD_FRAME: Final = PathKind("old frame", "the frame of an old writer")
_NPY: Final = PathKind("npy", "a .npy file", f"{_CONVERTED} and numpy.load reads")
_NPZ: Final = PathKind("npz", "a .npz file", "numpy.load reads")
_HDF5: Final = PathKind("hdf5", "an HDF5 file", f"{_CONVERTED} and h5py reads")
_ZARR: Final = PathKind("zarr", "a Zarr array or group", f"{_CONVERTED} and zarr.open reads")
_ZIP: Final = PathKind("zip", "a ZIP archive", "zipfile reads")
_TEXT: Final = PathKind("text", "a text file", "the built-in open reads")
_FILE: Final = PathKind("file", "a file of another format")
_FOLDER: Final = PathKind("folder", "a directory without a frame's index file, which os.listdir lists")
_LINK: Final = PathKind("link", "a symbolic link that leads to nothing")
_SPECIAL: Final = {
    stat.S_IFIFO: PathKind("fifo", "a FIFO"),
    stat.S_IFSOCK: PathKind("socket", "a socket"),
    stat.S_IFCHR: PathKind("device", "a character device"),
    stat.S_IFBLK: PathKind("device", "a block device"),
    stat.S_IFLNK: _LINK,
}


def identify(path: str | os.PathLike[str]) -> PathKind:
    """Return what kind of thing lies at `path`; a symbolic link counts as what it leads to.

    A few hundred bytes are read. Nothing is changed.

    Parameters
    ----------
    path
        A path, or a ``file://`` URL.

    Raises
    ------
    ArgumentError
        It is no path.
    StorageError
        The system refuses.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "a.npy")
    >>> np.save(path, np.arange(3))
    >>> identify(path).name, identify(path + ".old").name
    ('npy', 'nothing')

    """
    name = local_path(path)
    if name is None:
        msg = "path: expected a path, got None"
        raise TypeError(msg)
    try:
        return _kind_at(name, os.stat(name))
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        if os.path.islink(name) and error.errno in {errno.ENOENT, errno.ELOOP}:
            return _LINK
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return _NOTHING
        raise storage_error(error, name) from error


def _kind_at(path: str, status: os.stat_result) -> PathKind:
    """Return what has that status."""
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        return _kind_of_folder(path)
    if kind != stat.S_IFREG:
        return _SPECIAL.get(kind, _FILE)
    if not status.st_size:
        return _EMPTY
    file = FileBytes.open(path)
    try:
        return _kind_of_file(file.pread(_HEAD, 0), file.size())
    finally:
        file.close()


def _kind_of_file(head: bytes, size: int) -> PathKind:
    """Return what a file of `size` bytes is that begins with `head`."""
    if _begins_a_frame(head, sparse=False):
        return _FRAME
    if head[1 : len(MAGIC)] == MAGIC[1:] and _begins_an_old_frame(head, size):
        return _OLD_FRAME
    if head.startswith(b"\x93NUMPY"):
        return _NPY
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return _HDF5
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _NPZ if _NPZ_ENTRY in head[30:] else _ZIP
    return _TEXT if _is_text(head, whole=size <= len(head)) else _FILE


def _begins_a_frame(head: bytes, *, sparse: bool) -> bool:
    """Return whether `head` is the header of a frame; one of a newer version is one too."""
    if not has_header_markers(head):
        return False
    try:
        FrameHeader.from_bytes(head[:FIXED_LEN], sparse=sparse)
    except FormatError as error:
        from superchunk.exceptions import NewerFormatError  # seldom

        return isinstance(error, NewerFormatError)
    return True


def _begins_an_old_frame(head: bytes, size: int) -> bool:
    from superchunk._format.legacy_header import LegacyHeader, byte_order  # few files are that old

    try:
        LegacyHeader.from_bytes(head, byte_order(head, size))
    except (FormatError, UnsupportedError):
        return False
    return True


def _is_text(head: bytes, *, whole: bool) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if whole or error.start < len(head) - 3:  # a character may be cut where `head` ends
            return False
    return all(byte >= ord(" ") or byte in _TEXT_CONTROLS for byte in head)


def _kind_of_folder(path: str) -> PathKind:
    index = joined(path, INDEX_NAME)
    try:
        if stat.S_ISREG(os.lstat(index).st_mode):
            file = FileBytes.open(index, follow=False)
            try:
                if _begins_a_frame(file.pread(FIXED_LEN, 0), sparse=True):
                    return _SPARSE
            finally:
                file.close()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise storage_error(error, path) from error
    if any(os.path.isfile(joined(path, name)) for name in _ZARR_FILES):
        return _ZARR
    return _FOLDER


def explained(error: FormatError, path: str) -> FormatError:
    """Return `error`, about what is at `path`, with the kind of thing that is there if that is no frame."""
    try:
        kind = identify(path)
    except SuperchunkError:
        return error
    if kind not in (_FILE, _NOTHING) and not kind.is_frame:
        error.args = (f"{error.args[0]}; it is {kind}", *error.args[1:])
    return error


def missing(path: str) -> StorageError:
    """Return the error for a path where there is nothing; it names the first directory that is not there."""
    parent = os.path.dirname(path)
    if not parent or os.path.lexists(parent):
        why = os.strerror(errno.ENOENT)
        return StorageError(errno.ENOENT, "a symbolic link that leads to nothing" if _is_link(path) else why, path)
    while (above := os.path.dirname(parent)) != parent and not os.path.lexists(above):
        parent = above
    return StorageError(errno.ENOENT, f"there is no directory {parent}", path)


def _is_link(path: str) -> bool:
    return os.path.islink(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceRule:
    """What a new frame may take the name of.

    With neither `frames` nor `identity` nothing may be there.
    """

    path: str
    """The path as errors name it."""
    frames: bool = False
    """A frame, a sparse frame that holds nothing else, and an empty file may be replaced."""
    identity: tuple[int, int] | None = None
    """Device and inode of the one file or directory that may be replaced, whatever is in it."""
    verb: str = "replaced"
    """What happens to it."""

    def check(self, place: str) -> None:
        """Raise unless what is at `place`, which is no link to it, may go.

        Raises
        ------
        ArgumentError
            It is no frame.
        StorageError
            Nothing may be there at all, or it is another file than the one that may be replaced.

        """
        if self.identity is not None:
            self._check_identity(place)
            return
        try:
            status = os.lstat(place)
            if not self.frames:
                raise StorageError(errno.EEXIST, _NOT_REPLACED, self.path)
            kind = _SPECIAL.get(stat.S_IFMT(status.st_mode)) or _kind_at(place, status)
        except SuperchunkError:
            raise
        except OSError as error:
            raise storage_error(error, self.path) from error
        if kind == _SPARSE:
            self._check_entries(place)
        elif kind == _FRAME:
            self._check_behind(place)
        elif stat.S_ISDIR(status.st_mode):
            what = "" if kind == _FOLDER else f"; it is {kind}"
            foreign = _foreign_in(place)
            has_index = os.path.lexists(joined(place, INDEX_NAME))
            without = f"its {INDEX_NAME} is no index file" if has_index else f"it has no {INDEX_NAME}"
            why = f"it holds {foreign!r}" if foreign else without
            msg = f"{self.path}: not the directory of a sparse frame ({why}), so it is not {self.verb}{what}"
            raise ArgumentError(msg)
        elif kind not in (_EMPTY, _OLD_FRAME) or (kind == _EMPTY and self.verb != "replaced"):
            what = "a link" if kind == _LINK else kind.label
            msg = f"{self.path}: not a frame, so it is not {self.verb}; it is {what}"
            raise ArgumentError(f"{msg}; remove it yourself or choose another path")

    def _check_identity(self, place: str) -> None:
        try:
            status = os.lstat(place)
        except FileNotFoundError:
            status = None
        except OSError as error:
            raise storage_error(error, self.path) from error
        if status is None or (status.st_dev, status.st_ino) != self.identity:
            raise StorageError(
                f"{self.path}: leads to another file since it was opened, or to none; nothing was written"
            )
        if stat.S_ISDIR(status.st_mode):
            self._check_entries(place)

    def _check_entries(self, place: str) -> None:
        """Refuse a directory in which something is that belongs to no frame."""
        foreign = _foreign_in(place)
        if foreign is not None:
            msg = f"{self.path}: not the directory of a sparse frame (it holds {foreign!r}), so it is not {self.verb}"
            raise ArgumentError(msg)

    def _check_behind(self, place: str) -> None:
        """Refuse a file in which another frame follows the first one."""
        file = FileBytes.open(place, follow=False)
        try:
            frame_len = int.from_bytes(file.pread(8, 0x10), "big")
            if frame_len < file.size() and file.pread(len(MAGIC), frame_len) == MAGIC:
                msg = f"{self.path}: another frame follows at byte {frame_len}, so it is not {self.verb}"
                raise ArgumentError(msg)
        finally:
            file.close()


def _foreign_in(folder: str) -> str | None:
    """Return the name of something in a directory that belongs to no sparse frame; None if there is nothing else."""
    try:
        with os.scandir(folder) as entries:
            foreign = sorted(
                entry.name for entry in entries if not (belongs(entry.name) and entry.is_file(follow_symlinks=False))
            )
    except OSError as error:
        raise storage_error(error, folder) from error
    return foreign[0] if foreign else None


def check_target(path: str, rule: ReplaceRule) -> None:
    """Check that a frame may be made at `path`, an absolute one, or take the name of what is there.

    What a dead writer left without its name gets it back first.

    Raises
    ------
    ArgumentError
        What is there is no frame, or the directory around is the directory of a sparse frame.
    StorageError
        Something is there that may not be replaced, a parent directory is missing or no directory, a link leads to
        nothing or to itself, or the system refuses.

    """
    final = os.path.realpath(path)
    if _is_link(final):
        raise StorageError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    parent = os.path.dirname(final)
    if os.path.lexists(joined(parent, INDEX_NAME)) and identify(parent) == _SPARSE:
        raise ArgumentError(f"{path}: {parent} is the directory of a sparse frame, which holds nothing else")
    found = find_name(final, mend=True)
    if found is not None:
        rule.check(found)
    elif _is_link(path):
        raise StorageError(errno.ENOENT, f"a symbolic link to {final}, where there is nothing", path)
    elif not os.path.lexists(parent):
        raise missing(path)
    elif not is_folder(parent):
        raise StorageError(errno.ENOTDIR, f"{parent} is no directory", path)


def remove_frame(path: str) -> None:
    """Remove the frame at `path`, an absolute one, and its lock file; nothing there does nothing.

    It loses its name first, so that what is removed is what was checked.

    Raises
    ------
    ArgumentError
        It is no frame, or a directory that holds anything besides.
    StorageError
        The system refuses.

    """
    if find_name(path, mend=True) is None:
        return
    rule = ReplaceRule(path=path, frames=True, verb="removed")
    rule.check(path)
    settle_name(path)
    move_aside(path, rule)
    lock = f"{path}.b2lock"
    try:
        status = os.lstat(lock)
    except OSError:
        return
    if stat.S_ISREG(status.st_mode) and status.st_size <= _LOCK_LEN:
        remove_file(lock)
