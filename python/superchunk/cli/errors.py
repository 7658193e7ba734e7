"""How a command fails: one line that a person can act on.

Source: docs/cli.md, section "Exit codes".
"""

from __future__ import annotations

import click

from superchunk.exceptions import SuperchunkError

__all__ = ["EXPECTED", "Failure", "describe"]

EXPECTED = (SuperchunkError, OSError, ValueError, MemoryError)
"""What files, disks and arguments can cause. Anything else is a mistake of ours: a traceback."""


class Failure(click.ClickException):
    """The command cannot do what was asked; the message says why. Exit code 1."""

    exit_code = 1


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
