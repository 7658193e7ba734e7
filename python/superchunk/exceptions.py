"""Every error that superchunk raises on its own account.

::

    SuperchunkError(RuntimeError)
    ├── FormatError(ValueError)             bytes that break the format
    │   ├── TruncatedError                  they end too early
    │   ├── NewerFormatError                a version this library does not know
    │   ├── DtypeError(TypeError)           a text that says no dtype for items in a file
    │   └── DamagedFrameError               an earlier commit in the file is whole
    ├── UnsupportedError(NotImplementedError, ValueError)
    │                                       a codec or filter that is not built in
    ├── StorageError(OSError)               reading or writing failed; by its errno it is also
    │   ├── LockedError(BlockingIOError)    another process is writing there
    │   ├── MissingFileError(FileNotFoundError)
    │   ├── ExistingFileError(FileExistsError)
    │   ├── NoPermissionError(PermissionError)
    │   ├── IsFolderError(IsADirectoryError)
    │   └── NotFolderError(NotADirectoryError)
    ├── ReadOnlyError(ValueError)           a change through a handle that may only read
    ├── ClosedError(ValueError)             use of a closed handle
    ├── ArgumentError(ValueError)           an argument that cannot be used
    ├── KeywordError(KeyError, TypeError)   a keyword that a constructor does not know
    ├── ChunkIndexError(IndexError)         a chunk number out of range
    └── MetalayerError                      a metalayer cannot be stored as asked
        ├── MetalayerKeyError(KeyError)     no metalayer of that name
        └── MetalayerValueError(ValueError) its name, size or value is not allowed
            └── UnsafeDeserializationError  a value or a frame that stands for something else

All are `RuntimeError` as well, because that is what programs written for
python-blosc2 catch. Other wrong arguments raise the plain `ValueError` or
`TypeError`. The numbers in a message are attributes too. All go through pickle
and `copy` with their attributes, so that a process of a pool can send them.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "ArgumentError",
    "ChunkIndexError",
    "ClosedError",
    "DamagedFrameError",
    "DtypeError",
    "ExistingFileError",
    "FormatError",
    "IsFolderError",
    "KeywordError",
    "LockedError",
    "MetalayerError",
    "MetalayerKeyError",
    "MetalayerValueError",
    "MissingFileError",
    "NewerFormatError",
    "NoPermissionError",
    "NotFolderError",
    "ReadOnlyError",
    "StorageError",
    "SuperchunkError",
    "TruncatedError",
    "UnsafeDeserializationError",
    "UnsupportedError",
]


class SuperchunkError(RuntimeError):
    """Any failure of superchunk that is not a wrong argument."""

    def __reduce__(self) -> tuple[Callable[..., SuperchunkError], tuple[object, ...], dict[str, object]]:
        """Return what pickle and copy make the error from: class, message and attributes."""
        return _remade, (type(self), *self.args), self.__dict__


def _remade(kind: type[SuperchunkError], *args: object) -> SuperchunkError:
    """Return an error of a message that was put together before; see `SuperchunkError.__reduce__`."""
    return kind.__new__(kind, *args)


class FormatError(SuperchunkError, ValueError):
    """Bytes that break the format.

    Parameters
    ----------
    field
        What was read, in the format's words.
    at
        Where it stands: bytes from the start of the chunk or frame.
    expected, found
        What the format allows there, and what was there.

    """

    def __init__(self, field: str, *, at: int, expected: object, found: object) -> None:
        super().__init__(f"{field} at byte {at}: expected {expected}, found {found}")
        self.field = field
        self.at = at
        self.expected = expected
        self.found = found


class TruncatedError(FormatError):
    """Bytes that end before a structure does.

    Parameters
    ----------
    field
        What was read.
    at
        Where it begins, in bytes.
    needed, got
        How many bytes it takes, and how many there are.

    """

    def __init__(self, field: str, *, at: int, needed: int, got: int) -> None:
        super().__init__(field, at=at, expected=f"{needed} bytes", found=f"{got} bytes")
        self.args = (f"{field} at byte {at}: need {needed} bytes, got {got}",)
        self.needed = needed
        self.got = got


class NewerFormatError(FormatError):
    """A format version that this library does not know."""


class DtypeError(FormatError, TypeError):
    """A dtype text that says nothing, or items that cannot lie in a file, such as objects."""


class DamagedFrameError(FormatError):
    """A frame that is damaged now, in whose file an earlier commit is whole.

    ``open(..., recover=True)`` reads that commit, and ``repair(..., recover=True)`` makes a frame of it; `repair`
    alone of what is left of the present state.

    Parameters
    ----------
    damage
        What is wrong with the present state.
    nchunks, nbytes
        Number of chunks, and uncompressed bytes, of the newest intact commit.

    """

    def __init__(self, damage: FormatError, *, nchunks: int, nbytes: int) -> None:
        super().__init__(damage.field, at=damage.at, expected=damage.expected, found=damage.found)
        rescue = "open(..., recover=True) reads it, repair(..., recover=True) makes a frame of it"
        self.args = (f"{damage}; the file holds an intact commit of {nchunks} chunks, {nbytes} bytes: {rescue}",)
        self.nchunks = nchunks
        self.nbytes = nbytes


class UnsupportedError(SuperchunkError, NotImplementedError, ValueError):
    """A codec or filter that is registered, or not even that, but not built in.

    Parameters
    ----------
    what
        ``"codec"`` or ``"filter"``.
    ident
        Its id.
    name
        Its registered name, or ``"unknown"``.
    reason
        What is missing.

    """

    def __init__(self, what: str, ident: int, name: str, reason: str = "is not available") -> None:
        super().__init__(f"{what} {ident} ({name}) {reason}")
        self.what = what
        self.ident = ident
        self.name = name


class StorageError(OSError, SuperchunkError):
    """Reading or writing the bytes of a container failed.

    `OSError` comes first, for it is the one that fills `errno`, `strerror` and `filename`. As with
    `OSError`, the errno chooses the class: ``StorageError(errno.ENOENT, ...)`` is a `MissingFileError`.
    """

    def __new__(cls, *args: object) -> Self:
        """Return an error of the class that belongs to the errno, the first of `args` if there are two."""
        kind = cls
        if cls is StorageError and len(args) > 1:
            kind = _BY_ERRNO.get(args[0], cls)  # type: ignore[assignment]
        return super().__new__(kind, *args)


class LockedError(StorageError, BlockingIOError):
    """Another process has the container open for writing; `errno` is EAGAIN."""

    def __str__(self) -> str:
        """Return the message with the path in front."""
        return f"{self.filename}: {self.strerror}"


class MissingFileError(StorageError, FileNotFoundError):
    """There is nothing at a path, or a file that a container names is not there."""


class ExistingFileError(StorageError, FileExistsError):
    """Something is at a path where something new was to be made."""


class NoPermissionError(StorageError, PermissionError):
    """The system does not allow it."""


class IsFolderError(StorageError, IsADirectoryError):
    """A directory is where a file was expected."""


class NotFolderError(StorageError, NotADirectoryError):
    """A part of a path that should be a directory is none."""


_BY_ERRNO: dict[object, type[StorageError]] = {
    errno.ENOENT: MissingFileError,
    errno.EEXIST: ExistingFileError,
    errno.EACCES: NoPermissionError,
    errno.EPERM: NoPermissionError,
    errno.EISDIR: IsFolderError,
    errno.ENOTDIR: NotFolderError,
}
"""The errors that Python's own `OSError` has classes for, too."""


class ReadOnlyError(SuperchunkError, ValueError):
    """A change through a handle that may only read ("reading mode")."""


class ClosedError(SuperchunkError, ValueError):
    """Use of a closed handle."""


class ArgumentError(SuperchunkError, ValueError):
    """An argument that is out of its range, too small, or not possible in this version.

    Raised where programs written for python-blosc2 may expect a RuntimeError.
    """


class KeywordError(SuperchunkError, KeyError, TypeError):
    """A keyword that the constructors of arrays do not know.

    Parameters
    ----------
    name
        The keyword.
    known
        Those that there are.

    """

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"{name} is not supported as keyword argument; there are {', '.join(known)}")
        self.name = name
        self.known = tuple(known)

    def __str__(self) -> str:
        """Return the message without the quotes that `KeyError` puts around it."""
        return str(self.args[0])


class ChunkIndexError(SuperchunkError, IndexError):
    """A chunk number out of range.

    Parameters
    ----------
    nchunk
        The number that was asked for.
    nchunks
        How many chunks there are.

    """

    def __init__(self, nchunk: int, nchunks: int) -> None:
        super().__init__(f"nchunk: expected 0 <= nchunk < {nchunks}, got {nchunk}")
        self.nchunk = nchunk
        self.nchunks = nchunks


class MetalayerError(SuperchunkError):
    """A metalayer cannot be read or stored as asked."""


class MetalayerKeyError(MetalayerError, KeyError):
    """No metalayer of that name."""

    def __str__(self) -> str:
        """Return the message without the quotes that `KeyError` puts around it."""
        return str(self.args[0])


class MetalayerValueError(MetalayerError, ValueError):
    """A metalayer's name, size or value is not allowed."""


class UnsafeDeserializationError(MetalayerValueError):
    """What is not read, because it stands for something else or may hold anything.

    A metadata value: a container or a reference with ``deserialize="safe"``, or one of an unknown code. A frame whose
    chunks are not its data: a stored expression, or an incomplete cache of another array.
    """
