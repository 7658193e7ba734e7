"""How a command fails: one line that names the cause.

Source: docs/cli.md, section "Exit codes".
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Final

import click

import superchunk
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EXPECTED", "Failure", "about", "describe", "instead", "making"]

EXPECTED = (SuperchunkError, OSError, ValueError, MemoryError)
"""What files, disks and arguments can cause. Anything else is a mistake of ours: a traceback."""


_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What only writing can meet: the disk is full, or as much as one may have of it."""


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


def instead(path: str) -> str:
    """Return what is at `path` instead of a frame, as the end of a message; nothing if that is not known."""
    try:
        kind = superchunk.identify(path)
    except OSError:
        return ""
    return "" if kind.is_frame or kind.name in {"file", "nothing"} else f"; it is {kind}"


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
