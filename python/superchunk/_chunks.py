"""Adding, replacing and removing whole chunks: of data, compressed ones, special ones, blocks of any length."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._array_guard import check_change
from superchunk._buffers import byte_view, check_buffersize
from superchunk._chunk_reads import ChunkReads
from superchunk._plan import chunk_start
from superchunk._special import special_item
from superchunk._writing import insert_groups
from superchunk.exceptions import ArgumentError, ChunkIndexError, TruncatedError
from superchunk.params import MAX_HEADER_TYPESIZE, MIN_HEADER_LENGTH, SpecialValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from superchunk._buffers import AnyBuffer
    from superchunk._special import FillValue
    from superchunk.storage.base import ChunkStore

__all__ = ["ChunkCalls"]


class ChunkCalls(ChunkReads):
    """A list of compressed chunks that can be changed."""

    __slots__ = ()

    def _compress(self, store: ChunkStore, data: AnyBuffer, at: int, added: int = 1) -> bytes:
        """Return `data`, which will begin at byte `at` of the container, as a chunk."""
        view = byte_view(data)
        check_buffersize(view.nbytes, "data")
        if not view.nbytes:
            msg = "data: expected at least 1 byte, a chunk cannot be empty"
            raise ValueError(msg)
        check_change(store, added=added, nbytes=view.nbytes)
        return self._encoder.chunk(view, at)

    def _complete(self, store: ChunkStore, chunk: AnyBuffer, added: int = 1) -> bytes:
        """Return a chunk from outside, checked and cut to its size, as a frame can hold it."""
        view = byte_view(chunk, "chunk")
        if view.nbytes < MIN_HEADER_LENGTH:
            raise TruncatedError("chunk header", at=0, needed=MIN_HEADER_LENGTH, got=view.nbytes)
        info = _engine.describe(view)
        check_change(store, added=added, nbytes=info.nbytes)
        if info.header_len == MIN_HEADER_LENGTH:  # of Blosc 1: frames hold 32-byte headers
            return _engine.compress(_engine.decompress(view), self._encoder.params)
        return bytes(view[: info.cbytes])

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
        if self._encoder.prefilter is None:  # other threads need not wait while this one compresses
            return store.append([self._compress(store, data, 0)])
        with store.batch():
            return store.append([self._compress(store, data, store.nbytes)])

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
        with store.batch():
            number = self._checked_place(store, nchunk)
            return store.insert(number, [self._compress(store, data, chunk_start(store, number))])

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
        with store.batch():
            if store.nchunks == 0:
                return 0
            number = self._checked_nchunk(store, nchunk)
            store.replace(number, self._compress(store, data, chunk_start(store, number), added=0))
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
        with store.batch():
            return store.append([self._complete(store, chunk)])

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
        with store.batch():
            number = self._checked_place(store, nchunk)
            return store.insert(number, [self._complete(store, chunk)])

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
        with store.batch():
            number = self._checked_nchunk(store, nchunk)
            store.replace(number, self._complete(store, chunk, added=0))
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
        with store.batch():
            number = self._checked_nchunk(store, nchunk)
            check_change(store, added=-1)
            return store.delete(number)

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
        with store.batch():
            if len(numbers) != store.nchunks:
                msg = f"order: expected {store.nchunks} chunk numbers, got {len(numbers)}"
                raise ValueError(msg)
            if sorted(numbers) != list(range(len(numbers))):
                msg = f"order: expected each of 0 to {len(numbers) - 1} once"
                raise ArgumentError(msg)
            store.reorder(numbers)

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
        with store.batch():
            return self._fill(store, nitems, kind, item)

    def _fill(self, store: ChunkStore, nitems: int, kind: int, item: bytes | None) -> int:
        """Fill an empty store, inside a batch of it; return the number of chunks."""
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
        if nbytes:
            check_change(store, added=-(-nbytes // store.chunksize), nbytes=nbytes % store.chunksize or store.chunksize)
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
        """Fill an empty store with an item that a special chunk cannot name, inside a batch of it."""
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
        kind, item = special_item(special_value, value, self._typesize)
        params = self._encoder.params
        with store.batch():
            number = self._checked_nchunk(store, nchunk)
            nbytes = store.chunk_nbytes(number)
            if self._typesize > MAX_HEADER_TYPESIZE and item is not None:  # a chunk header cannot name such an item
                chunk = _engine.compress(item * (nbytes // self._typesize), params)
            else:
                typesize = self._typesize if self._typesize <= MAX_HEADER_TYPESIZE else 1
                chunk = _engine.special_chunk(kind, nbytes, typesize, item, params.blocksize_for(nbytes))
            store.replace(number, chunk)
            return store.nchunks

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
        nbytes = sum(view.nbytes for view in views)
        check_buffersize(nbytes, "blocks")
        chunk = self._encoder.vlblocks(views)
        with store.batch():
            check_change(store, added=1, nbytes=nbytes)
            return store.append([chunk])
