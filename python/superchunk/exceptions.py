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
    ├── StorageError(OSError)               reading or writing failed
    │   ├── LockedError(BlockingIOError)    another process is writing there
    │   └── MissingFileError(FileNotFoundError)
    │                                       a file that a container names is not there
    ├── ReadOnlyError(ValueError)           a change through a handle that may only read
    ├── ClosedError(ValueError)             use of a closed handle
    ├── ArgumentError(ValueError)           an argument that cannot be used
    ├── KeywordError(KeyError, TypeError)   a keyword that a constructor does not know
    ├── ChunkIndexError(IndexError)         a chunk number out of range
    └── MetalayerError                      a metalayer cannot be stored as asked
        ├── MetalayerKeyError(KeyError)     no metalayer of that name
        └── MetalayerValueError(ValueError) its name, size or value is not allowed
            └── UnsafeDeserializationError  a whole container, or a reference, that `deserialize="safe"` leaves out

All are `RuntimeError` as well, because that is what programs written for
python-blosc2 catch. Other wrong arguments raise the plain `ValueError` or
`TypeError`. The numbers in a message are attributes too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ArgumentError",
    "ChunkIndexError",
    "ClosedError",
    "DamagedFrameError",
    "DtypeError",
    "FormatError",
    "KeywordError",
    "LockedError",
    "MetalayerError",
    "MetalayerKeyError",
    "MetalayerValueError",
    "MissingFileError",
    "NewerFormatError",
    "ReadOnlyError",
    "StorageError",
    "SuperchunkError",
    "TruncatedError",
    "UnsafeDeserializationError",
    "UnsupportedError",
]


class SuperchunkError(RuntimeError):
    """Any failure of superchunk that is not a wrong argument."""


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

    ``open(..., recover=True)`` reads that commit, and `repair` makes a frame of it.

    Parameters
    ----------
    damage
        What is wrong with the present state.
    nchunks, nbytes
        Number of chunks, and uncompressed bytes, of the newest intact commit.

    """

    def __init__(self, damage: FormatError, *, nchunks: int, nbytes: int) -> None:
        super().__init__(damage.field, at=damage.at, expected=damage.expected, found=damage.found)
        rescue = "open(..., recover=True) reads it, repair() makes a frame of it"
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

    `OSError` comes first, for it is the one that fills `errno`, `strerror` and `filename`.
    """


class LockedError(StorageError, BlockingIOError):
    """Another process has the container open for writing; `errno` is EAGAIN."""

    def __str__(self) -> str:
        """Return the message with the path in front."""
        return f"{self.filename}: {self.strerror}"


class MissingFileError(StorageError, FileNotFoundError):
    """A file that a container names is not there."""


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
    """A value that is not read: a container or a reference with ``deserialize="safe"``, or of an unknown code."""
