"""The frames of betas as stores: read where they are, never changed.

::

    0          header_len         header_len + cbytes           frame_len
    |  header  |  chunks          |  index chunk  |  trailer    |

Chunks stay in their file or buffer and are valid in frames of today. Copying such a store chunk by chunk therefore
converts the frame. The user metadata, which had no name, becomes a vlmetalayer "usermeta" whose value is those bytes.
Changes to the store stay in memory.

Source: docs/format/legacy.md, "Recognising a frame" and "How superchunk reads these frames".
"""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from superchunk import _engine
from superchunk._format import metalayer_values as values
from superchunk._format.frame_index import Index, check_entry, located
from superchunk._format.legacy_header import HEAD_LEN, LegacyHeader, byte_order, is_legacy, read_legacy_metalayers
from superchunk._format.legacy_index import LegacyIndex
from superchunk._format.legacy_trailer import USERMETA, LegacyTrailer
from superchunk._format.trailer import TAIL_LEN
from superchunk._store.memory_store import MemoryStore
from superchunk._store.os_file import FileBytes
from superchunk._store.store_interface import FrameSettings, Snapshot
from superchunk.exceptions import FormatError, SuperchunkError, TruncatedError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

    from superchunk._engine import Source

__all__ = ["open_legacy", "read_legacy"]

_FIRST_READ: Final = 92
_KEEP_INDEX: Final = 32 * 1024
_MAX_USERMETA: Final = 2**26
_TRUSTED_USERMETA: Final = 2**20
_TRUSTED_RATIO: Final = 1024
"""User metadata over 64 MiB, and what claims far more than its chunk can be expected to hold,
is not decoded while opening: over 1 MiB and 1024 times the chunk."""


class _OpenFile:
    """A file that is closed with the store that reads from it, or when that is dropped."""

    def __init__(self, file: FileBytes) -> None:
        self.close = weakref.finalize(self, file.close)


def open_legacy(path: str | os.PathLike[str], *, offset: int = 0) -> MemoryStore | None:
    """Open the frame of a beta that begins at byte `offset` of a file.

    Returns
    -------
    MemoryStore or None
        None: what is there begins like no such frame.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FormatError
        The frame is damaged.
    UnsupportedError
        It is older than those that can be read, or a sparse frame.
    StorageError
        The system refuses.

    """
    name = os.fspath(path)
    file = FileBytes.open(name)
    owner = _OpenFile(file)
    try:
        if not is_legacy(file.pread(HEAD_LEN, offset)):
            owner.close()
            return None
        frame = _parse(
            lambda nbytes, at: file.pread(nbytes, offset + at),
            max(file.size() - offset, 0),
            lambda at, limit: (file.read_fd, offset + at, limit),
        )
    except SuperchunkError as error:
        owner.close()
        if isinstance(error, (FormatError, UnsupportedError)):
            error.args = (f"{name}: {error.args[0]}", *error.args[1:])
        raise
    except BaseException:
        owner.close()
        raise
    store = frame.store(lambda at, limit: (file.read_fd, offset + at, limit), owner)
    store.path = name
    store.frame_len = frame.header.frame_len
    return store


def read_legacy(buffer: Buffer) -> MemoryStore | None:
    """Return a store over the frame of a beta in `buffer`, which is the frame and nothing else.

    The chunks stay in `buffer`, which must not change while the store is in use.

    Returns
    -------
    MemoryStore or None
        None: the buffer begins like no such frame.

    Raises
    ------
    FormatError
        The frame is damaged, or there are bytes behind it.
    UnsupportedError
        It is older than those that can be read, or a sparse frame.

    """
    view = memoryview(buffer).cast("B").toreadonly()
    if not is_legacy(view[:HEAD_LEN]):
        return None
    size = len(view)
    frame = _parse(lambda nbytes, at: bytes(view[at : at + nbytes]), size, lambda at, limit: view[at : at + limit])
    if frame.header.frame_len != size:
        raise FormatError("frame_len", at=0x10, expected=f"{size}, as the buffer", found=frame.header.frame_len)
    return frame.store(lambda at, limit: view[at : at + limit], None)


@dataclass(frozen=True, slots=True)
class _Frame:
    """What a frame says about itself, before any chunk is read."""

    header: LegacyHeader
    meta: dict[str, bytes]
    trailer: LegacyTrailer
    index: Index

    def store(self, source: Callable[[int, int], Source], owner: object) -> MemoryStore:
        """Return a store of the chunks that `source` finds by position and limit."""
        header = self.header
        base, room = header.header_len, header.index_at - header.header_len

        def place(entry: int, nchunk: int) -> Source:
            check_entry(entry, nchunk, room)
            return source(base + entry, room - entry)

        return MemoryStore.of_snapshot(
            Snapshot(self.index, place, header.chunksize),
            FrameSettings(
                typesize=header.typesize,
                codec=header.codec,
                clevel=header.clevel,
                filters=header.filters,
                filters_meta=header.filters_meta,
                nthreads_comp=header.nthreads_comp,
                nthreads_decomp=header.nthreads_decomp,
            ),
            nbytes=header.nbytes,
            vlblocks=False,
            meta=self.meta,
            vlmeta={USERMETA: _as_value(self.trailer.usermeta)} if self.trailer.usermeta else {},
            owner=owner,
        )


def _parse(read: Callable[[int, int], bytes], size: int, source: Callable[[int, int], Source]) -> _Frame:
    """Read what a frame says about itself; `read` takes a number of bytes and a position."""

    def part(what: str, at: int, nbytes: int) -> bytes:
        raw = read(nbytes, at)
        if len(raw) < nbytes:
            raise TruncatedError(what, at=at, needed=nbytes, got=len(raw))
        return raw

    head = read(_FIRST_READ, 0)
    order = byte_order(head, size)
    header = LegacyHeader.from_bytes(head, order)
    raw = part("frame header", 0, header.header_len)
    layers = read_legacy_metalayers(raw, order)
    tail_at = header.frame_len - TAIL_LEN
    length = LegacyTrailer.length(
        part("trailer length", tail_at, TAIL_LEN), order, at=tail_at, most=header.frame_len - header.index_at
    )
    trailer_at = header.frame_len - length
    if header.nbytes == 0 and trailer_at != header.header_len:
        raise FormatError(
            "trailer length of a frame without data",
            at=tail_at + 1,
            expected=header.frame_len - header.header_len,
            found=length,
        )
    trailer = LegacyTrailer.from_bytes(part("trailer", trailer_at, length), order, at=trailer_at)
    index = Index()
    if header.nbytes:
        at, room = header.index_at, trailer_at - header.index_at
        chunk: Source = part("index chunk", at, room) if room <= _KEEP_INDEX else source(at, room)
        try:
            info = _engine.describe(chunk)
        except FormatError as error:
            raise located(error, "index chunk", at) from error
        index = LegacyIndex.of_header(chunk, info, header)
    return _Frame(header, {name: raw[at : at + n] for name, (at, n) in layers.items()}, trailer, index)


def _as_value(chunk: bytes) -> bytes:
    """Return user metadata as a vlmetalayer has it: a chunk of one MessagePack value, the bytes.

    A chunk that cannot be decoded, or that claims too many bytes, stays as it is. The frame opens, and reading the
    vlmetalayer raises the error.
    """
    try:
        info = _engine.describe(chunk)
        earned = min(_MAX_USERMETA, _TRUSTED_USERMETA + _TRUSTED_RATIO * len(chunk))
        if info.cbytes != len(chunk) or info.nbytes > earned:
            return chunk
        content = _engine.decompress(chunk)
    except SuperchunkError:
        return chunk
    return _engine.compress(values.pack(content), _engine.EncodeParams(codec=5, clevel=5, typesize=1))
