"""The first half of a SChunk: what it is made of, and the calls on whole chunks.

`SChunk` is one class in four files, each adding one way of looking at the data:
whole chunks (here), items (`_items`), functions on blocks (`_functions`), and
making, opening and copying (`schunk`).
"""

from __future__ import annotations

import operator
import weakref
from typing import TYPE_CHECKING, NamedTuple

from superchunk import _engine
from superchunk._blockfuncs import read_filtered
from superchunk._buffers import byte_view, check_buffersize, writable_view
from superchunk._checking import check_source
from superchunk._handle import of_one_state
from superchunk._plan import chunk_start
from superchunk._shaped import read_shaped
from superchunk._special import special_item
from superchunk._user import hooks_for
from superchunk._writing import Encoder, insert_groups
from superchunk.exceptions import ArgumentError, ChunkIndexError, FormatError, StorageError, TruncatedError
from superchunk.params import MAX_HEADER_TYPESIZE, MIN_HEADER_LENGTH, SpecialValue
from superchunk.storage.folder import chunk_id
from superchunk.storage.sources import read_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from superchunk._blockfuncs import BlockFunction
    from superchunk._buffers import AnyBuffer
    from superchunk._handle import Handle
    from superchunk._special import FillValue
    from superchunk.meta import Meta, VlMeta
    from superchunk.params import CParams, DParams
    from superchunk.schunk import SChunk
    from superchunk.storage.base import ChunkStore

__all__ = ["ChunkCalls", "ChunkInfo"]

_LAZY_NUMBERS = 2**31
"""Chunk numbers that a lazy chunk has room for."""


class ChunkInfo(NamedTuple):
    """What `SChunk.iterchunks_info` says about a chunk."""

    nchunk: int
    """Its number."""
    cratio: float
    """Uncompressed by compressed bytes."""
    special: SpecialValue
    """Whether all its items are one value."""
    repeated_value: bytes | None
    """That item, for `SpecialValue.VALUE`."""
    lazychunk: bytes
    """See `SChunk.get_lazychunk`."""


class ChunkCalls:
    """A list of compressed chunks."""

    __slots__ = (
        "__weakref__",
        "_dparams",
        "_encoder",
        "_handle",
        "_meta",
        "_nthreads",
        "_postfilter",
        "_typesize",
        "_user",
        "_vlmeta",
    )

    _handle: Handle
    _encoder: Encoder
    _dparams: DParams
    _nthreads: int
    _postfilter: BlockFunction | None
    _typesize: int
    _user: weakref.ref[SChunk]
    _meta: Meta | None
    _vlmeta: VlMeta | None

    def _attach(self, handle: Handle, cparams: CParams, dparams: DParams) -> None:
        """Take the store of `handle`, and how to compress and decompress."""
        self._handle = handle
        self._user = weakref.ref(self)  # type: ignore[arg-type]  # SChunk is the only subclass made
        self._typesize = cparams.typesize
        self._encoder = Encoder(cparams, self._user)
        self._dparams = dparams
        self._nthreads = dparams.nthreads
        self._postfilter = None
        self._meta = None
        self._vlmeta = None

    def _compress(self, data: AnyBuffer, at: int) -> bytes:
        """Return `data`, which will begin at byte `at` of the container, as a chunk."""
        view = byte_view(data)
        check_buffersize(view.nbytes, "data")
        if not view.nbytes:
            msg = "data: expected at least 1 byte, a chunk cannot be empty"
            raise ValueError(msg)
        return self._encoder.chunk(view, at)

    def _complete(self, chunk: AnyBuffer) -> bytes:
        """Return a chunk from outside, checked and cut to its size, as a frame can hold it."""
        view = byte_view(chunk, "chunk")
        if view.nbytes < MIN_HEADER_LENGTH:
            raise TruncatedError("chunk header", at=0, needed=MIN_HEADER_LENGTH, got=view.nbytes)
        info = _engine.describe(view)
        if info.header_len == MIN_HEADER_LENGTH:  # of Blosc 1: frames hold 32-byte headers
            return _engine.compress(_engine.decompress(view), self._encoder.params)
        return bytes(view[: info.cbytes])

    def _checked_nchunk(self, store: ChunkStore, nchunk: int) -> int:
        number = operator.index(nchunk)
        if not 0 <= number < store.nchunks:
            raise ChunkIndexError(number, store.nchunks)
        return number

    # Adding, replacing, removing.

    def append_data(self, data: AnyBuffer) -> int:
        """Compress `data` into a chunk at the end.

        Parameters
        ----------
        data
            A C-contiguous buffer of 1 to `MAX_BUFFERSIZE` bytes.

        Returns
        -------
        int
            The new number of chunks.

        Raises
        ------
        ValueError
            `data` is empty, too large or not contiguous, or the handle may only read.
        StorageError
            Writing failed; nothing has changed.

        """
        store = self._handle.writing()
        store.insert(store.nchunks, [self._compress(data, store.nbytes)])
        return store.nchunks

    def insert_data(self, nchunk: int, data: AnyBuffer, copy: bool) -> int:  # noqa: FBT001  (positional for users of python-blosc2)
        """Compress `data` into a chunk before chunk `nchunk`; the number of chunks appends.

        `copy` is taken for compatibility. Returns the new number of chunks.

        Raises
        ------
        ChunkIndexError
            There is no such place; an IndexError and a RuntimeError.
        ValueError, StorageError
            As `append_data`.

        """
        del copy
        store = self._handle.writing()
        number = self._checked_place(store, nchunk)
        store.insert(number, [self._compress(data, chunk_start(store, number))])
        return store.nchunks

    def update_data(self, nchunk: int, data: AnyBuffer, copy: bool) -> int:  # noqa: FBT001  (positional for users of python-blosc2)
        """Compress `data` in the place of chunk `nchunk`.

        `copy` is taken for compatibility. Returns the number of chunks; on an empty
        SChunk that is 0, and nothing happens.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        ValueError, StorageError
            As `append_data`.

        """
        del copy
        store = self._handle.writing()
        if store.nchunks == 0:
            return 0
        number = self._checked_nchunk(store, nchunk)
        store.replace(number, self._compress(data, chunk_start(store, number)))
        return store.nchunks

    def append_chunk(self, chunk: AnyBuffer) -> int:
        """Add a compressed chunk at the end and return the new number of chunks.

        Raises
        ------
        FormatError
            The bytes do not begin with a complete chunk; a ValueError.
        ReadOnlyError, StorageError
            The handle may only read, or writing failed.

        """
        store = self._handle.writing()
        store.insert(store.nchunks, [self._complete(chunk)])
        return store.nchunks

    def insert_chunk(self, nchunk: int, chunk: AnyBuffer) -> int:
        """Put a compressed chunk before chunk `nchunk` and return the new number of chunks.

        Raises
        ------
        ChunkIndexError
            There is no such place; an IndexError and a RuntimeError.
        FormatError, ReadOnlyError, StorageError
            As `append_chunk`.

        """
        store = self._handle.writing()
        number = self._checked_place(store, nchunk)
        store.insert(number, [self._complete(chunk)])
        return store.nchunks

    def update_chunk(self, nchunk: int, chunk: AnyBuffer) -> int:
        """Put a compressed chunk in the place of chunk `nchunk` and return the number of chunks.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        FormatError, ReadOnlyError, StorageError
            As `append_chunk`.

        """
        store = self._handle.writing()
        number = self._checked_nchunk(store, nchunk)
        store.replace(number, self._complete(chunk))
        return store.nchunks

    def _checked_place(self, store: ChunkStore, nchunk: int) -> int:
        number = operator.index(nchunk)
        if not 0 <= number <= store.nchunks:
            raise ChunkIndexError(number, store.nchunks + 1)
        return number

    def delete_chunk(self, nchunk: int) -> int:
        """Remove chunk `nchunk` and return the new number of chunks.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        ReadOnlyError, StorageError
            The handle may only read, or writing failed.

        """
        store = self._handle.writing()
        store.delete(self._checked_nchunk(store, nchunk))
        return store.nchunks

    def reorder_offsets(self, order: Sequence[int]) -> None:
        """Put chunk ``order[i]`` at place i.

        Raises
        ------
        ValueError
            `order` is not one-dimensional, or not as long as there are chunks.
        ArgumentError
            It is no permutation; a RuntimeError and a ValueError.
        ReadOnlyError, StorageError
            The handle may only read, or writing failed.

        """
        store = self._handle.writing()
        try:
            numbers = [operator.index(number) for number in order]
        except TypeError:
            msg = "order: expected one dimension of chunk numbers"
            raise ValueError(msg) from None
        if len(numbers) != store.nchunks:
            msg = f"order: expected {store.nchunks} chunk numbers, got {len(numbers)}"
            raise ValueError(msg)
        if sorted(numbers) != list(range(len(numbers))):
            msg = f"order: expected each of 0 to {len(numbers) - 1} once"
            raise ArgumentError(msg)
        store.reorder(numbers)

    # Special values.

    def fill_special(self, nitems: int, special_value: SpecialValue, value: FillValue | None = None) -> int:
        """Fill an empty SChunk with one value, which takes no room.

        Parameters
        ----------
        nitems
            How many items.
        special_value
            Which value.
        value
            The item to repeat: bytes, or a number that is widened or narrowed to the
            typesize. Wins over another `special_value`.

        Returns
        -------
        int
            The number of chunks.

        Raises
        ------
        ArgumentError
            The SChunk is not empty or has no chunk size; a RuntimeError.
        TypeError
            `special_value` is not a `SpecialValue`, or NOT_SPECIAL.
        ValueError
            VALUE without a value, one that does not fit, or NaN for items other than
            those of 4 or 8 bytes.

        """
        store = self._handle.writing()
        kind, item = special_item(special_value, value, self._typesize)
        if store.nchunks:
            msg = f"fill_special: expected an empty SChunk, got {store.nchunks} chunks"
            raise ArgumentError(msg)
        nbytes = operator.index(nitems) * self._typesize
        if nbytes < 0:
            msg = f"nitems: expected 0 or more, got {nitems}"
            raise ArgumentError(msg)
        if nbytes and not store.chunksize:
            msg = "fill_special: expected a SChunk with a chunk size, got one of chunks of any size"
            raise ArgumentError(msg)
        straddling = nbytes > 0 and store.chunksize % self._typesize != 0
        if straddling and kind == SpecialValue.NAN.value:
            msg = f"fill_special: NaN needs a chunksize of whole items, got {store.chunksize} bytes"
            raise ArgumentError(msg)
        if item is not None and nbytes and (straddling or self._typesize > MAX_HEADER_TYPESIZE):
            self._fill_plainly(store, item, nbytes)
        else:
            store.fill_special(kind, nbytes, item)
        return store.nchunks

    def _fill_plainly(self, store: ChunkStore, item: bytes, nbytes: int) -> None:
        """Fill an empty store with an item that a special chunk cannot name."""
        step, typesize = store.chunksize, len(item)
        tiled = memoryview(item * (step // typesize + 2))
        compressed: dict[tuple[int, int], bytes] = {}

        def chunks() -> Iterator[bytes]:
            for low in range(0, nbytes, step):
                key = low % typesize, min(step, nbytes - low)
                if key not in compressed:
                    content = tiled[key[0] : key[0] + key[1]]
                    compressed[key] = _engine.compress(content, self._encoder.params)
                yield compressed[key]

        with store.batch():
            insert_groups(store, chunks())

    def update_special(self, nchunk: int, special_value: SpecialValue, value: FillValue | None = None) -> int:
        """Replace chunk `nchunk` by one value, as many items as it had.

        Returns
        -------
        int
            The number of chunks.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError.
        TypeError, ValueError
            As `fill_special`.
        ReadOnlyError, StorageError
            The handle may only read, or writing failed.

        """
        store = self._handle.writing()
        number = self._checked_nchunk(store, nchunk)
        kind, item = special_item(special_value, value, self._typesize)
        nbytes = store.chunk_nbytes(number)
        params = self._encoder.params
        if self._typesize > MAX_HEADER_TYPESIZE and item is not None:  # a chunk header cannot name such an item
            chunk = _engine.compress(item * (nbytes // self._typesize), params)
        else:
            typesize = self._typesize if self._typesize <= MAX_HEADER_TYPESIZE else 1
            chunk = _engine.special_chunk(kind, nbytes, typesize, item, params.blocksize_for(nbytes))
        store.replace(number, chunk)
        return store.nchunks

    # Looking at chunks.

    @of_one_state
    def decompress_chunk(self, nchunk: int, dst: AnyBuffer | None = None) -> bytes | None:
        """Return the content of chunk `nchunk`, or fill the front of `dst` and return None.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        ValueError
            `dst` is empty or read-only.
        ArgumentError
            `dst` is too small; a RuntimeError and a ValueError.
        FormatError
            The chunk is damaged.

        """
        store = self._handle.fresh()
        number = self._checked_nchunk(store, nchunk)
        nbytes = store.chunk_nbytes(number)
        out = None
        if dst is not None:
            out = writable_view(dst, "dst")
            if not out.nbytes:
                msg = "dst: expected a buffer to write into, got one of length 0"
                raise ValueError(msg)
            if out.nbytes < nbytes:
                msg = f"dst: expected at least {nbytes} bytes, got {out.nbytes}"
                raise ArgumentError(msg)
        source = store.source(number)
        check_source(self._handle, number, source)
        if self._postfilter is not None:
            start = chunk_start(store, number)
            return self._filtered(store, start, start + nbytes, out)
        request = (source, nbytes, 0, nbytes, 0)
        return read_shaped(store.meta, self._user, [request], out, nthreads=self._nthreads, itemsize=self._typesize)

    def _filtered(self, store: ChunkStore, start: int, stop: int, out: memoryview | None) -> bytes | None:
        """Read bytes ``start:stop`` through the postfilter."""
        if self._postfilter is None:
            msg = "no postfilter is set"
            raise ArgumentError(msg)
        done = read_filtered(
            store,
            self._postfilter,
            start,
            stop,
            nthreads=self._nthreads,
            typesize=self._typesize,
            owner=self._user,
        )
        if out is None:
            return done
        out[: len(done)] = done
        return None

    @of_one_state
    def get_chunk(self, nchunk: int) -> bytes:
        """Return chunk `nchunk`, compressed.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        FormatError, StorageError
            Its header is damaged, or it cannot be read.

        """
        store = self._handle.fresh()
        number = self._checked_nchunk(store, nchunk)
        source = store.source(number)
        check_source(self._handle, number, source)
        return chunk_bytes(source)

    @of_one_state
    def get_lazychunk(self, nchunk: int) -> bytes:
        """Return what is known of chunk `nchunk` without reading its data.

        In memory, and where blocks of less than 4 bytes would make it longer than the chunk, the header (a
        special chunk whole); else in a file header, where each
        block starts, and a trailer: chunk number (4 bytes), offset (8) and the
        compressed size of each block (4 each); bit 0x08 of byte 31 is set then.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        FormatError, StorageError
            Its header is damaged, or it cannot be read.

        """
        store = self._handle.fresh()
        number = self._checked_nchunk(store, nchunk)
        source = store.source(number)
        info = _engine.describe(source)
        if info.special:
            return chunk_bytes(source)
        if info.memcpyed and 4 * info.nblocks > info.cbytes:
            return chunk_bytes(source)[: info.header_len]
        if isinstance(source, tuple):
            file, at, _ = source
            if isinstance(file, tuple):  # of a sparse frame: both fields hold the file's number
                at = chunk_id(file[1])
                number = at if at < _LAZY_NUMBERS else number
            return _engine.lazy_chunk(source, number, at)
        return bytes(memoryview(source)[: info.header_len])

    def iterchunks_info(self) -> Iterator[ChunkInfo]:
        """Iterate over what is known of each chunk without reading its data."""
        number = 0
        while (info := self._chunk_info(number)) is not None:
            yield info
            number += 1

    @of_one_state
    def _chunk_info(self, number: int) -> ChunkInfo | None:
        """Return what is known of a chunk, None behind the last."""
        store = self._handle.fresh()
        if number >= store.nchunks:
            return None
        info = _engine.describe(store.source(number))
        return ChunkInfo(
            number,
            info.nbytes / info.cbytes,
            SpecialValue(info.special),
            info.repeated_value,
            self.get_lazychunk(number),
        )

    # Variable-length blocks.

    def append_vlblocks(self, blocks: Sequence[AnyBuffer]) -> int:
        """Compress each buffer as a block of its own, all as one chunk at the end.

        Parameters
        ----------
        blocks
            Non-empty C-contiguous buffers, together at most `MAX_BUFFERSIZE` bytes.

        Returns
        -------
        int
            The new number of chunks.

        Raises
        ------
        ValueError
            The SChunk has chunks of ordinary blocks, or a prefilter; no blocks, or
            an empty one.
        ReadOnlyError, StorageError
            The handle may only read, or writing failed.

        """
        store = self._handle.writing()
        if self._encoder.prefilter is not None:
            msg = "append_vlblocks: a prefilter works on ordinary blocks only"
            raise ValueError(msg)
        views = [byte_view(block, f"blocks[{i}]") for i, block in enumerate(blocks)]
        if not views or not all(view.nbytes for view in views):
            msg = "blocks: expected at least one, each of at least 1 byte"
            raise ValueError(msg)
        check_buffersize(sum(view.nbytes for view in views), "blocks")
        store.insert(store.nchunks, [self._encoder.vlblocks(views)])
        return store.nchunks

    @of_one_state
    def get_vlblocks(self, nchunk: int) -> list[bytes]:
        """Return the blocks of a chunk with variable-length blocks.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        FormatError
            The chunk has ordinary blocks, or is damaged.

        """
        store = self._handle.fresh()
        number = self._checked_nchunk(store, nchunk)
        source = store.source(number)
        check_source(self._handle, number, source)
        if not _engine.describe(source).vlblocks:
            msg = f"flags of chunk {nchunk}"
            raise FormatError(msg, at=30, expected="variable-length blocks", found="ordinary ones")
        return _engine.read_vlblocks(
            source, nthreads=self._nthreads, itemsize=self._typesize, hooks=hooks_for(self._user)
        )

    def get_vlblock(self, nchunk: int, nblock: int) -> bytes:
        """Return one block of a chunk with variable-length blocks.

        Raises
        ------
        IndexError
            There is no such block, or (a ChunkIndexError) no such chunk.
        FormatError
            The chunk has ordinary blocks, or is damaged.

        """
        blocks = self.get_vlblocks(nchunk)
        number = operator.index(nblock)
        if not 0 <= number < len(blocks):
            raise ChunkIndexError(number, len(blocks))
        return blocks[number]


def chunk_bytes(source: _engine.Source) -> bytes:
    """Return a chunk, compressed, from where it is.

    Raises
    ------
    FormatError
        Its header is damaged.
    StorageError
        The file cannot be read, or ends too early.

    """
    cbytes = _engine.describe(source).cbytes
    if not isinstance(source, tuple):
        return bytes(memoryview(source)[:cbytes])
    chunk = read_range(source, cbytes)
    if len(chunk) < cbytes:
        msg = f"chunk at byte {source[1]} of the file: need {cbytes} bytes, got {len(chunk)}"
        raise StorageError(msg)
    return chunk
