"""Where a command reads from and writes to.

Input is filled chunk by chunk into a buffer that is used again; output is written under
another name in the same directory and takes its real name when it is whole. Whatever ends
a command early, Ctrl-C included, leaves no partial file and the old file as it was.
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

from superchunk.cli.errors import Failure, making
from superchunk.cli.npy import NpyHeader
from superchunk.exceptions import FormatError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STANDARD", "Input", "open_output", "writing_aside"]

_FRAME_START = b"\x9e\xa8b2fr"
"""How a frame begins, as far as the magic of ``.npy`` goes (docs/format/cframe.md)."""
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
                size = status.st_size if os.path.isfile(name) else None  # noqa: PTH113
            yield cls._start(name, stream, size, raw=raw)

    @classmethod
    def _start(cls, name: str, stream: BinaryIO, size: int | None, *, raw: bool) -> Self:
        named_npy = name.endswith(".npy")
        if raw:
            return cls(name=name, stream=stream, header=None, nbytes=size)
        magic = stream.read(len(NpyHeader.MAGIC))
        if magic == _FRAME_START:
            raise Failure(
                f"{name}: is a Blosc2 frame already; superchunk convert compresses it anew, bench --tune measures it, "
                "--raw takes its bytes"
            )
        if magic != NpyHeader.MAGIC:
            if named_npy:
                raise Failure(f"{name}: does not begin like a .npy file; --raw takes it as it is")
            return cls(name=name, stream=stream, header=None, nbytes=size, _pending=magic)
        pending = [magic]

        def read(nbytes: int) -> bytes:
            front = pending.pop() if pending else b""
            return front + stream.read(nbytes - len(front))

        try:
            header = NpyHeader.read(read)
        except FormatError as error:
            raise Failure(f"{name}: {error}; --raw takes the file as it is") from error
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
        raise Failure(f"{self.name}: {error}; --raw takes the file as it is") from error


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
        `target` exists and `force` is off, is no regular file, or is the source; or
        its directory is not there.

    """
    if not force and os.path.lexists(target):
        raise Failure(f"{target}: exists already; --force replaces it")
    if target.is_dir():
        raise Failure(f"{target}: is a directory")
    final = Path(os.path.realpath(target))
    if not final.parent.is_dir():
        raise Failure(f"{target}: there is no directory {final.parent}")
    mode = None
    if final.exists():
        status = final.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Failure(f"{target}: is no regular file, so it is not replaced; - writes to standard output")
        if source != STANDARD and os.path.samestat(status, Path(source).stat()):
            raise Failure(f"{target}: is the file that is read")
        mode = stat.S_IMODE(status.st_mode)
    aside = final.with_name(f".{final.name}.{secrets.token_hex(4)}.part")
    try:
        with making(str(target)):
            yield aside
        if mode is not None:
            aside.chmod(mode)
        if force:
            aside.replace(final)
        else:
            _rename_without_replacing(aside, final)
    finally:
        aside.unlink(missing_ok=True)


def _rename_without_replacing(aside: Path, target: Path) -> None:
    """Rename, unless a file of the new name has appeared in the meantime."""
    try:
        target.hardlink_to(aside)  # fails if it exists, which a rename would not
    except FileExistsError:
        raise Failure(f"{target}: has appeared in the meantime; --force replaces it") from None
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise Failure(f"{target}: has appeared in the meantime; --force replaces it") from None
        aside.replace(target)


@contextlib.contextmanager
def open_output(name: str, *, force: bool, source: str = STANDARD) -> Iterator[BinaryIO]:
    """Open standard output (``-``), or a file that gets its name when it is whole."""
    if name == STANDARD:
        with making("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    with writing_aside(Path(name), force=force, source=source) as aside, aside.open("xb") as stream:
        yield stream
