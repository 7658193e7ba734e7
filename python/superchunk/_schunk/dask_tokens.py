"""What tells two states of a container apart: the tokens by which Dask names results.

::

    what is read                        the token consists of
    the committed state of a path       path, offset; identity, length and time of the file; hash of header, index
                                        chunk and trailer. Of a directory: the same of the index file, and identity,
                                        length and time of each chunk file
    the state of a snapshot             path, offset; identity of the file; hash of header, index and vlmetalayers
    memory, and what is not committed   hash of the chunks and metalayers

Equal tokens mean equal data, in every process. A change of chunks in place, as C-Blosc2 makes some, shows in the time
of the file alone. Within one tick of the file system's clock another change may leave that time as it is. A file that
was changed less than `_TICK` ago is therefore read again after that time. What is not seen: a change in place through a
shared mapping, until the system has written its time.

Dask is not imported: it calls ``__dask_tokenize__``.
"""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING, Final

from superchunk._codec.stored_chunks import chunk_bytes
from superchunk._format.frame_header import FIXED_LEN, FrameHeader
from superchunk._store.chunk_folder import INDEX_NAME, chunk_name, joined, list_folder
from superchunk._store.frame_store import FrameStore
from superchunk._store.os_file import FileBytes, storage_error
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from superchunk._schunk.handle import Handle
    from superchunk._store.store_interface import ChunkStore

__all__ = ["token_of"]

_TICK: Final = 20_000_000
"""Nanoseconds within which two changes of a file may get the same time; file systems' clocks tick every 1 to 10 ms."""
_LOOKS: Final = 4
"""How often a file that keeps changing is read."""
_PIECE: Final = 2**20
_END: Final = 2**12
"""Bytes that are hashed at either end of a file that is no frame of today."""


def token_of(handle: Handle) -> tuple[object, ...]:
    """Return a token of plain values for the state that a handle reads; what waits is committed first.

    Raises
    ------
    ClosedError
        The handle is closed.
    StorageError
        The file cannot be read.

    """
    store = handle.store
    if isinstance(store, FrameStore) and store.is_snapshot:
        return ("snapshot", _place(handle), handle.options.offset, *store.identity(), _digest(_parts_of_state(store)))
    if isinstance(store, FrameStore):
        if store.writable:
            store.publish()
        store.refresh()
    on_disk = handle.path is not None and handle.options.mmap_mode != "c"
    if on_disk and (not isinstance(store, FrameStore) or store.is_committed):
        try:
            return (_place(handle), handle.options.offset, *_of_path(_place(handle), handle.options.offset))
        except FileNotFoundError:  # it was removed, or has not got its name yet; it can be read all the same
            pass
    with store.pinned():
        return ("content", _digest(_parts_of_content(store)))


def _place(handle: Handle) -> str:
    return handle.path or ""


def _of_path(path: str, offset: int) -> tuple[object, ...]:
    """Return the token of what is committed at a path."""
    digest = ""
    for _ in range(_LOOKS):
        age = _age(before := _files(path))
        if 0 <= age < _TICK:
            time.sleep((_TICK - age) / 1e9)
            age = _age(before := _files(path))
        digest = _digest_of_frame(path, offset)
        if _files(path) == before and not 0 <= age < _TICK:
            break
    if len(before) == 1:
        return (*before[0], digest)
    return (*before[0], _digest(repr(times).encode() for times in before), digest)


def _age(files: list[tuple[int, ...]]) -> int:
    """Return how long ago the last change of files was, nanoseconds; below 0 if their clock is ahead of ours."""
    return time.time_ns() - max(times[-1] for times in files)


def _files(path: str) -> list[tuple[int, ...]]:
    """Return device, inode, length and time of a frame's file; of a directory's index file and then its chunk files."""
    try:
        info = os.stat(path)
        if not stat.S_ISDIR(info.st_mode):
            return [_times(info)]
        return [_times(os.stat(joined(path, INDEX_NAME))), *_chunk_files(path)]
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, path) from error


def _digest_of_frame(path: str, offset: int) -> str:
    """Return the hash of what a frame's file says besides its chunks."""
    file = FileBytes.open(joined(path, INDEX_NAME) if os.path.isdir(path) else path)
    try:
        return _digest(_parts_of_file(file, offset))
    finally:
        file.close()


def _times(info: os.stat_result) -> tuple[int, ...]:
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)


def _chunk_files(folder: str) -> list[tuple[int, ...]]:
    """Return what the system says of each chunk file, in the order of the ids."""
    found = []
    for ident in sorted(list_folder(folder).chunks):
        try:
            info = os.stat(joined(folder, chunk_name(ident)), follow_symlinks=False)
        except OSError:  # it went between the two calls
            continue
        found.append((ident, *_times(info)))
    return found


def _parts_of_file(file: FileBytes, offset: int) -> Iterable[bytes]:
    """Yield header, index chunk and trailer of a frame; of anything else both ends of the file."""
    head = file.pread(FIXED_LEN, offset)
    try:
        header = FrameHeader.from_bytes(head)
    except FormatError:
        yield from (head, file.pread(_END, offset), file.pread(_END, max(file.size() - _END, 0)))
        return
    yield file.pread(header.header_len, offset)
    at = offset + header.header_len + (0 if header.sparse else header.cbytes)
    end = offset + header.frame_len
    while at < end and (piece := file.pread(min(_PIECE, end - at), at)):
        yield piece
        at += len(piece)


def _parts_of_state(store: FrameStore) -> Iterable[bytes]:
    """Yield what tells two commits of one file apart."""
    snapshot = store.snapshot()
    yield store.header_bytes
    yield snapshot.index.to_chunk() if len(snapshot.index) else b""
    yield from _metalayers(store)


def _parts_of_content(store: ChunkStore) -> Iterable[bytes]:
    """Yield everything that a store holds."""
    yield repr((store.settings, store.nchunks, store.nbytes, store.snapshot().chunksize)).encode()
    yield from _metalayers(store)
    repeated = store.snapshot().index.repeated_entry
    if repeated is not None and repeated < 0:
        yield str(repeated).encode()
        return
    for number in range(store.nchunks):
        yield chunk_bytes(store.source(number))


def _metalayers(store: ChunkStore) -> Iterable[bytes]:
    for layers in (store.meta, store.vlmeta):
        for name, content in layers.items():
            yield name.encode("utf-8", "surrogateescape")
            yield content


def _digest(parts: Iterable[bytes]) -> str:
    """Return the hash of parts, which depends on where one ends and the next begins."""
    from hashlib import blake2b  # few programs ask for tokens

    whole = blake2b(digest_size=16)
    for part in parts:
        whole.update(len(part).to_bytes(8, "little"))
        whole.update(part)
    return whole.hexdigest()
