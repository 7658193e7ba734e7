"""Where a command reads from and writes to.

Input is read chunk by chunk into one reused buffer. Output is written under another name in
the same directory and renamed when it is complete. If a signal or an error ends a command
early, no partial file remains and the old file is unchanged.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import click

import superchunk
from superchunk.cli.errors import Failure, making
from superchunk.cli.npy import NpyHeader
from superchunk.exceptions import FormatError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STANDARD", "Input", "aside_of", "check_parent", "open_output", "output_path", "writing_aside"]

_FRAME_START = b"\x9e\xa8b2fr"
"""How a frame begins, as far as the magic of ``.npy`` goes (docs/format/cframe.md)."""
_LONGEST = 200
"""Bytes of a name that the names beside it repeat: a system takes 255 in all."""
STANDARD = "-"
"""The name that stands for standard input or output."""


@dataclass(slots=True, kw_only=True)
class Input:
    """A file or standard input, at the first of its items."""

    name: str
    stream: BinaryIO
    header: NpyHeader | None
    """The ``.npy`` header that was in front; None for raw bytes."""
    nbytes: int | None
    """Bytes of the items; None while standard input has not ended."""
    _pending: bytes = field(default=b"", repr=False)
    """Bytes that were read to find out what this is, and belong to the items."""

    @classmethod
    @contextlib.contextmanager
    def open(cls, name: str, *, raw: bool) -> Iterator[Self]:
        """Open `name`, which is no frame, and read a ``.npy`` header if there is one.

        Parameters
        ----------
        name
            A path, or ``-`` for standard input.
        raw
            Take the bytes as they are, ``.npy`` header included.

        Raises
        ------
        Failure
            It is a Blosc2 frame.
        FormatError
            The header is damaged, or names a dtype of Python objects.
        OSError
            The file cannot be read.

        """
        with contextlib.ExitStack() as stack:
            if name == STANDARD:
                stream: BinaryIO = sys.stdin.buffer
                size = None
            else:
                stream = stack.enter_context(Path(name).open("rb"))
                status = os.fstat(stream.fileno())
                size = status.st_size if os.path.isfile(name) else None
            yield cls._start(name, stream, size, raw=raw)

    @classmethod
    def _start(cls, name: str, stream: BinaryIO, size: int | None, *, raw: bool) -> Self:
        named_npy = name.endswith(".npy")
        if raw:
            return cls(name=name, stream=stream, header=None, nbytes=size)
        magic = stream.read(len(NpyHeader.MAGIC))
        if magic == _FRAME_START:
            raise Failure(
                f"{name}: is already a Blosc2 frame; superchunk convert compresses it anew, bench --tune measures it, "
                "--raw reads its bytes"
            )
        if magic != NpyHeader.MAGIC:
            if named_npy:
                raise Failure(f"{name}: does not begin like a .npy file; --raw reads it as bytes")
            return cls(name=name, stream=stream, header=None, nbytes=size, _pending=magic)
        pending = [magic]

        def read(nbytes: int) -> bytes:
            front = pending.pop() if pending else b""
            return front + stream.read(nbytes - len(front))

        try:
            header = NpyHeader.read(read)
        except FormatError as error:
            raise Failure(f"{name}: {error}; --raw reads the file as bytes") from error
        return cls(name=name, stream=stream, header=header, nbytes=header.nbytes)

    def readinto(self, buffer: memoryview) -> int:
        """Fill `buffer` with what comes next; return the bytes filled, fewer only at the end."""
        filled = min(len(self._pending), len(buffer))
        buffer[:filled] = self._pending[:filled]
        self._pending = self._pending[filled:]
        while filled < len(buffer):
            got = self.stream.readinto(buffer[filled:])  # type: ignore[attr-defined]
            if not got:
                break
            filled += got
        return filled

    def check_length(self, nbytes: int) -> None:
        """Raise unless `nbytes`, all there was, is what the ``.npy`` header promised."""
        if self.header is None or nbytes == self.header.nbytes:
            return
        at = len(self.header.raw)
        if nbytes < self.header.nbytes:
            error: FormatError = TruncatedError("npy items", at=at, needed=self.header.nbytes, got=nbytes)
        else:
            error = FormatError("npy items", at=at, expected=f"{self.header.nbytes} bytes", found="more")
        raise Failure(f"{self.name}: {error}; --raw reads the file as bytes") from error


@contextlib.contextmanager
def writing_aside(target: Path, *, force: bool, source: str = STANDARD) -> Iterator[Path]:
    """Give a path to write to, which becomes `target` when the block ends well.

    A link stays: the file that it names is replaced. A file that is replaced hands
    on its permissions.

    Parameters
    ----------
    target
        The file to be.
    force
        Whether a file of that name may be replaced.
    source
        What is read meanwhile, which must be another file.

    Raises
    ------
    Failure
        `target` exists and `force` is off, is no regular file, or is the source; its directory is not there; or
        something else has its name at the end than at the beginning.

    """
    if not force and os.path.lexists(target):
        raise Failure(f"{target}: already exists; use --force to replace it")
    if target.is_dir():
        raise Failure(f"{target}: is a directory")
    final = Path(os.path.realpath(target))
    check_parent(target, final)
    before = None
    if os.path.lexists(final):
        before = final.lstat()
        if not stat.S_ISREG(before.st_mode):
            raise Failure(f"{target}: is not a regular file and is not replaced; - writes to standard output")
        if source != STANDARD and os.path.samestat(before, Path(source).stat()):
            raise Failure(f"{target}: is the input file")
    elif target.is_symlink():
        raise Failure(f"{target}: is a symbolic link to {final}, which does not exist")
    aside = aside_of(final, "part")
    try:
        with making(str(target)):
            yield aside
        if before is None:
            _rename_without_replacing(aside, final)
        else:
            aside.chmod(stat.S_IMODE(before.st_mode))
            now = final.lstat() if os.path.lexists(final) else None
            if now is None or not os.path.samestat(now, before) or not stat.S_ISREG(now.st_mode):
                raise Failure(f"{target}: replaced or removed by another program meanwhile")
            aside.replace(final)
    finally:
        aside.unlink(missing_ok=True)


def output_path(name: str) -> Path:
    """Return the path that a name on the command line means.

    Raises
    ------
    UsageError
        It is empty, or a URL.

    """
    if not name or "://" in name:
        raise click.UsageError(f"{name!r}: expected a path, got {'a URL' if name else 'an empty string'}")
    return Path(name)


def aside_of(final: Path, ending: str) -> Path:
    """Return a name beside `final` that nothing has, for what is to take its name or had it."""
    name = final.name
    while len(os.fsencode(name)) > _LONGEST:
        name = name[:-1]
    return final.with_name(f".{name}.{secrets.token_hex(4)}.{ending}")


def check_parent(target: Path, final: Path) -> None:
    """Raise unless the directory in which `final` is to be made can hold it; `target` is its name for errors."""
    if not final.parent.is_dir():
        raise Failure(f"{target}: the directory {final.parent} does not exist")
    if superchunk.identify(final.parent).name == "sparse":
        raise Failure(f"{target}: {final.parent} is the directory of a sparse frame, which must contain no other files")


def _rename_without_replacing(aside: Path, target: Path) -> None:
    """Rename, unless another program has created a file of the new name meanwhile."""
    try:
        target.hardlink_to(aside)  # fails if it exists, which a rename would not
    except FileExistsError:
        raise Failure(f"{target}: created by another program meanwhile") from None
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise Failure(f"{target}: created by another program meanwhile") from None
        aside.replace(target)


@contextlib.contextmanager
def open_output(name: str, *, force: bool, source: str = STANDARD) -> Iterator[BinaryIO]:
    """Open standard output (``-``), or a file that gets its name when it is whole."""
    if name == STANDARD:
        with making("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    with writing_aside(output_path(name), force=force, source=source) as aside, aside.open("xb") as stream:
        yield stream
