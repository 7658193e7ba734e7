"""A whole contiguous frame as bytes: written from any store, read into memory.

Written frames are compact: chunks stand in index order, without dead bytes. Reading
copies nothing: chunks are slices of the buffer, found through its index when asked for.

Source: docs/format/cframe.md, "Canonical bytes" and "Frames elsewhere".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._format.frame_header import FIXED_LEN, FrameHeader
from superchunk._format.frame_index import CHUNK_MIN, Index, check_entry, special_entry, special_kind
from superchunk._format.metalayers import MAX_METALAYERS, write_metalayers
from superchunk._format.trailer import Trailer
from superchunk._store.changes_and_undo import NAN_ITEMS, repeated_chunk
from superchunk._store.checked_reads import read_chunks
from superchunk._store.frame_loading import check_fingerprint, parse_frame, settings_of
from superchunk._store.memory_store import MemoryStore
from superchunk._store.seals import ENTRIES_END
from superchunk._store.store_interface import Snapshot
from superchunk.exceptions import FormatError, MetalayerValueError

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from superchunk._engine import Source
    from superchunk._store.frame_loading import Loaded
    from superchunk._store.store_interface import ChunkStore

__all__ = ["read_cframe", "write_cframe"]

_VALUE = 3
_NAN = 2


def read_cframe(buffer: Buffer) -> MemoryStore:
    """Return a store over the frame in `buffer`, which is the frame and nothing else.

    The chunks stay in `buffer`, which must not change while the store is in use.
    Changes to the store stay in memory of their own.

    Raises
    ------
    TruncatedError
        The buffer is shorter than the frame.
    FormatError
        It is no frame, a damaged one, or there are bytes behind it.
    UnsupportedError
        It is the index of a sparse frame.

    """
    view = memoryview(buffer).cast("B").toreadonly()
    size = len(view)
    loaded = parse_frame(
        lambda nbytes, at: bytes(view[at : at + nbytes]),
        size,
        lambda at, limit: view[at : at + limit],
    )
    header = loaded.header
    if header.frame_len != size:
        raise FormatError("frame_len", at=0x10, expected=f"{size}, as the buffer", found=header.frame_len)
    base, room = header.header_len, header.cbytes if header.nbytes else 0

    def place(entry: int, nchunk: int) -> Source:
        check_entry(entry, nchunk, room)
        return view[base + entry : base + room]

    raw = loaded.raw_header
    return MemoryStore.of_snapshot(
        Snapshot(loaded.index.copy(), place, header.chunksize, _seals_of(loaded), room // CHUNK_MIN),
        settings_of(header),
        nbytes=header.nbytes,
        vlblocks=None if header.nbytes else header.vlblocks,
        meta={name: raw[at : at + n] for name, (at, n) in loaded.layers.items()},
        vlmeta=loaded.trailer.vlmeta,
    )


def _seals_of(loaded: Loaded) -> range | None:
    """Return the entries whose chunks have seals."""
    if loaded.sealed is None:
        check_fingerprint(loaded)
    if loaded.sealed is False:
        return None
    first = ENTRIES_END if loaded.record is None else loaded.record.sealed_from - loaded.header.header_len
    return range(max(first, 0), ENTRIES_END)


def write_cframe(store: ChunkStore) -> bytes:
    """Return the content of `store` as one compact contiguous frame.

    Raises
    ------
    MetalayerValueError
        There are more than 16 vlmetalayers: such a frame would be lost with its next
        change by other writers.
    FormatError
        The store is over a damaged frame. What is sealed is compared with its seals, for
        the result has none that would tell the damage.
    StorageError
        The store's file cannot be read.

    """
    if len(store.vlmeta) > MAX_METALAYERS:
        raise MetalayerValueError(
            f"vlmetalayers: expected at most {MAX_METALAYERS} for a frame, got {len(store.vlmeta)}"
        )
    store.prove()
    snapshot = store.snapshot()
    block = write_metalayers(store.meta)
    chunks: list[bytes] = []
    index = _gather(store, snapshot, chunks)
    cbytes = sum(map(len, chunks))
    index_chunk = index.to_chunk() if len(index) else b""
    trailer = Trailer(vlmeta=store.vlmeta).to_bytes()
    header_len = FIXED_LEN + len(block)
    header = FrameHeader(
        header_len=header_len,
        frame_len=header_len + cbytes + len(index_chunk) + len(trailer),
        nbytes=store.nbytes,
        cbytes=cbytes,
        chunksize=snapshot.chunksize,
        has_vlmeta=bool(store.vlmeta),
        varchunks=snapshot.chunksize == 0,
        vlblocks=store.vlblocks,
        **store.settings._asdict(),
    )
    return b"".join((header.to_bytes(), block, *chunks, index_chunk, trailer))


def _gather(store: ChunkStore, snapshot: Snapshot, chunks: list[bytes]) -> Index:
    """Put the stored chunks into `chunks`, in index order, and return their index."""
    old = snapshot.index
    repeated = old.repeated_entry
    if repeated is not None and repeated < 0 and snapshot.chunksize > 0:
        special_kind(repeated, 0)
        return old
    settings = store.settings
    entries: list[int] = []
    at = 0
    for start, held in old.slabs():
        stored = [(n, entry) for n, entry in enumerate(held, start) if entry >= 0]
        sources = [snapshot.place(entry, n) for n, entry in stored]
        sizes = [cbytes for _, cbytes in _engine.sizes(sources)]
        contents = iter(read_chunks(stored, sources, sizes, snapshot.seals))
        for nchunk, entry in enumerate(held, start):
            chunk = next(contents) if entry >= 0 else b""
            kind = 0
            if entry < 0:
                kind = special_kind(entry, nchunk)
            elif len(chunk) == CHUNK_MIN:
                info = _engine.describe(chunk)
                kind = 0 if info.special == _VALUE else info.special
                if kind == _NAN and info.typesize != settings.typesize:
                    chunk, kind = repeated_chunk(kind, info.nbytes, settings.typesize, NAN_ITEMS[info.typesize]), 0
            if kind and snapshot.chunksize > 0:
                entries.append(special_entry(kind))
                continue
            if kind:
                chunk = repeated_chunk(kind, store.chunk_nbytes(nchunk), settings.typesize)
            chunks.append(chunk)
            entries.append(at)
            at += len(chunk)
    return Index(entries)
