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


def _stream(content: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="\n")


def _content(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    stream.buffer.seek(0)
    return stream.buffer.read()


@contextlib.contextmanager
def _standard_input(content: bytes) -> Iterator[None]:
    before = sys.stdin
    sys.stdin = _stream(content)
    try:
        yield
    finally:
        sys.stdin = before


def run(*arguments: str | Path, stdin: bytes = b"") -> Result:
    """Run the command within this process."""
    out, err = _stream(), _stream()
    with _standard_input(stdin), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Result(code=code, stdout=_content(out), stderr=_content(err).decode())


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
