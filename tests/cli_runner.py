"""Running the command from tests, within this process or as a process of its own."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from superchunk.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMAND = (sys.executable, "-m", "superchunk.cli")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run of the command left behind."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode()


def _text(stream: io.BytesIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding="utf-8", newline="\n", write_through=True)


@contextlib.contextmanager
def _standard_input(content: bytes) -> Iterator[None]:
    before = sys.stdin
    sys.stdin = _text(io.BytesIO(content))
    try:
        yield
    finally:
        sys.stdin = before


def run(*arguments: str | Path, stdin: bytes = b"") -> Result:
    """Run the command within this process."""
    out, err = io.BytesIO(), io.BytesIO()
    shown, complained = _text(out), _text(err)
    with _standard_input(stdin), contextlib.redirect_stdout(shown), contextlib.redirect_stderr(complained):
        code = main([str(argument) for argument in arguments])
    shown.flush()
    return Result(code=code, stdout=out.getvalue(), stderr=err.getvalue().decode())


def succeed(*arguments: str | Path, stdin: bytes = b"") -> Result:
    """Run the command, which must succeed and complain about nothing."""
    result = run(*arguments, stdin=stdin)
    assert (result.code, result.stderr) == (0, "")
    return result


def fail(code: int, *arguments: str | Path, stdin: bytes = b"") -> str:
    """Run the command, which must fail with `code` and one line on stderr; return that line."""
    result = run(*arguments, stdin=stdin)
    assert result.code == code, result
    assert result.stderr.startswith("superchunk: ")
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith("\n")
    return result.stderr.rstrip("\n")


def process(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the command as a process of its own."""
    line = [*COMMAND, *map(str, arguments)]
    return subprocess.run(line, input=stdin, capture_output=True, check=False, timeout=60)
