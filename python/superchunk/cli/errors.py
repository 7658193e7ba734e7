"""How a command fails: one line that a person can act on.

Source: docs/cli.md, section "Exit codes".
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from superchunk.exceptions import FormatError, SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EXPECTED", "HDF5_MAGIC", "ZARR_FILES", "Failure", "about", "describe", "making", "something_else"]

EXPECTED = (SuperchunkError, OSError, ValueError, MemoryError)
"""What files, disks and arguments can cause. Anything else is a mistake of ours: a traceback."""


HDF5_MAGIC: Final = b"\x89HDF\r\n\x1a\n"
"""How a file of HDF5 begins."""
ZARR_FILES: Final = ("zarr.json", ".zarray", ".zgroup")
"""What makes a directory one of Zarr."""
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What only writing can meet: the disk is full, or as much as one may have of it."""
_OTHERS: Final = {b"\x93NUMPY": "a .npy file", HDF5_MAGIC: "an HDF5 file"}


class Failure(click.ClickException):
    """The command cannot do what was asked; the message says why. Exit code 1."""

    exit_code = 1


def about(path: str, error: BaseException, *others: str) -> Failure:
    """Return the failure that says what went wrong with the file at `path`.

    Its message begins with the path, unless it names that, or one of `others`, itself.

    Examples
    --------
    >>> str(about("a.b2frame", ValueError("need 87 bytes, got 7")))
    'a.b2frame: need 87 bytes, got 7'

    """
    message = describe(error)
    if not any(" ".join(name.split()) in message for name in (path, *others)):
        message = f"{path}: {message}"
    if isinstance(error, FormatError):
        message += something_else(path)
    return Failure(message)


@contextlib.contextmanager
def making(name: str) -> Iterator[None]:
    """Let a full disk be told with the name of what is being made, not with the one that it has meanwhile."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise Failure(f"{name}: {os.strerror(error.errno)}") from error
        raise


def something_else(path: str) -> str:
    """Return what a file that is no frame is instead, if it is something that `convert` reads."""
    place = Path(path)
    try:
        if place.is_dir():
            found = "a Zarr array or group" if any((place / name).is_file() for name in ZARR_FILES) else None
        else:
            with place.open("rb") as file:
                start = file.read(8)
            found = next((what for magic, what in _OTHERS.items() if start.startswith(magic)), None)
    except OSError:
        return ""
    return "" if found is None else f"; it is {found}, which superchunk convert makes a frame of"


def describe(error: BaseException) -> str:
    """Return `error` as one line.

    Examples
    --------
    >>> describe(FileNotFoundError(2, "No such file or directory", "a.b2frame"))
    'a.b2frame: No such file or directory'

    """
    if isinstance(error, click.ClickException):
        text = error.format_message()
    elif isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{error.filename}: {error.strerror}"
    else:
        text = str(error)
    return " ".join(text.split()) or type(error).__name__
