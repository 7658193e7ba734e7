"""What the tests of the stores share: chunks, contents, failing files."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._store.os_file import FileBytes
from superchunk.exceptions import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pytest

    from superchunk._store.store_interface import ChunkStore

TYPESIZE = 4
CHUNKSIZE = 400


def chunk(seed: int, nbytes: int = CHUNKSIZE) -> bytes:
    """Return a chunk whose content `content` knows."""
    return _engine.compress(content(seed, nbytes), _engine.EncodeParams(typesize=TYPESIZE))


def content(seed: int, nbytes: int = CHUNKSIZE) -> bytes:
    """Return `nbytes` that depend on `seed` and compress a little."""
    return b"".join((seed * 7919 + n * n % 251).to_bytes(4, "little") for n in range(-(-nbytes // 4)))[:nbytes]


def special(kind: int, nbytes: int = CHUNKSIZE, value: bytes | None = None) -> bytes:
    """Return a chunk of a special value."""
    return _engine.special_chunk(kind, nbytes, TYPESIZE, value)


def everything(store: ChunkStore) -> bytes:
    """Return all decoded bytes of `store`, each chunk checked against its size."""
    parts = []
    for nchunk, source in enumerate(store.sources(0, store.nchunks)):
        parts.append(_engine.decompress(source))
        assert len(parts[-1]) == store.chunk_nbytes(nchunk)
        assert _engine.decompress(store.source(nchunk)) == parts[-1]
    whole = b"".join(parts)
    assert len(whole) == store.nbytes
    return whole


def look(store: ChunkStore) -> tuple[object, ...]:
    """Return all that can be seen of `store`, to compare states."""
    return (
        everything(store),
        [store.chunk_nbytes(nchunk) for nchunk in range(store.nchunks)],
        store.nbytes,
        store.cbytes,
        store.chunksize,
        list(store.vlmeta.items()),
        dict(store.meta),
        store.settings,
    )


@contextmanager
def failing_after(writes: int, monkeypatch: pytest.MonkeyPatch, *, partial: bool = False) -> Iterator[None]:
    """Let one write fail, after `writes` others; `partial` does half of it."""
    left = writes
    pwrite: Callable[[FileBytes, bytes, int], None] = FileBytes.pwrite

    def limited(self: FileBytes, parts: bytes | Sequence[bytes], at: int) -> None:
        nonlocal left
        data = parts if isinstance(parts, bytes) else b"".join(parts)
        if left == 0:
            if partial:
                pwrite(self, data[: len(data) // 2], at)
            error = StorageError(f"{self.display_path}: No space left on device")
            error.errno = errno.ENOSPC
            left -= 1
            raise error
        left -= 1
        pwrite(self, data, at)

    with monkeypatch.context() as patch:
        patch.setattr(FileBytes, "pwrite", limited)
        yield
