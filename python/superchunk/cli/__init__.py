"""The command ``superchunk``: inspect, create, read, verify, repair and convert frames.

The command is a client of the library and uses public names only. This module checks
whether the packages of the command are installed. `app` has the commands and the exit
codes, and each command has a module of its own.

Source: docs/cli.md.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments
        What is behind ``superchunk`` on the command line; None takes it from there.

    Returns
    -------
    int
        0 for success, 1 for a failure, 2 for a wrong command line.

    """
    _open_standard_streams()
    missing = [name for name in ("click", "rich") if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"superchunk: the command needs {' and '.join(missing)}: "
            "pip install 'superchunk[cli]' installs the missing packages\n"
        )
        return 1
    try:
        from superchunk.cli.app import run  # its imports are the ones just checked

        return run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("superchunk: interrupted\n")
        return 130


def _open_standard_streams() -> None:
    """Let standard streams that the caller closed lead nowhere, so that no file of ours takes their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  - as long as we run
