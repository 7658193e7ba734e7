"""What a SChunk is made of, and looking at whole chunks.

::

    SChunk         schunk        making, opening, copying
    FactCalls      _facts        sizes, place, parameters, metalayers
    LifeCalls      _life         flush, transaction, verify, close
    StagedCalls    _staged       chunks that other processes place
    FunctionCalls  _functions    functions on blocks
    ItemCalls      _items        items and slices
    ChunkCalls     _chunks       adding, replacing, removing chunks
    ChunkReads     here          each builds on the one below it
"""

from __future__ import annotations

import operator
import weakref
from typing import TYPE_CHECKING, Final, NamedTuple

from superchunk import _engine
from superchunk._buffers import writable_view
from superchunk._decoder import Decoder
from superchunk._encoding import cparams_of
from superchunk._handle import of_one_state
from superchunk._special import is_marked_as_data
from superchunk._writing import Encoder
from superchunk.exceptions import ArgumentError, ChunkIndexError, FormatError, StorageError
from superchunk.params import SpecialValue, default_nthreads
from superchunk.storage.folder import chunk_id
from superchunk.storage.sources import read_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from superchunk._blockfuncs import BlockFunction
    from superchunk._buffers import AnyBuffer
    from superchunk._handle import Handle
    from superchunk.meta import Meta, VlMeta
    from superchunk.params import CParams, DParams
    from superchunk.schunk import SChunk
    from superchunk.storage.base import ChunkStore, FrameSettings

__all__ = ["ChunkInfo", "ChunkReads", "chunk_bytes"]

_SPECIAL_VALUES: Final = tuple(SpecialValue)
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


class ChunkReads:
    """A list of compressed chunks that can be looked at."""

    __slots__ = (
        "__weakref__",
        "_coder",
        "_decoder",
        "_dparams",
        "_handle",
        "_meta",
        "_typesize",
        "_user",
        "_vlmeta",
    )

    _handle: Handle
    _coder: Encoder | tuple[FrameSettings, int]
    """How it compresses, or what that is to be made from: what a frame records, and the number of threads."""
    _dparams: DParams
    _decoder: Decoder
    _typesize: int
    _user: weakref.ref[SChunk]
    _meta: Meta | None
    _vlmeta: VlMeta | None

    def _attach(self, handle: Handle, cparams: CParams | Encoder | None, dparams: DParams) -> None:
        """Take the store of `handle`, how to compress (None: as it records), and how to decompress."""
        self._handle = handle
        self._user = weakref.ref(self)  # type: ignore[arg-type]  # SChunk is the only subclass made
        if cparams is None:
            settings = handle.opened().settings
            self._typesize = settings.typesize
            self._coder = (settings, default_nthreads())
        else:
            self._coder = encoder = cparams if isinstance(cparams, Encoder) else self._encoder_of(cparams)
            self._typesize = encoder.cparams.typesize
        self._dparams = dparams
        verified = handle.options.verify is not None
        self._decoder = Decoder(self._user, dparams.nthreads, self._typesize, verified=verified)
        self._meta = None
        self._vlmeta = None

    @property
    def _encoder(self) -> Encoder:
        """How this handle compresses; who only reads does without."""
        coder = self._coder
        if isinstance(coder, tuple):
            coder = self._coder = self._encoder_of(cparams_of(*coder))
        return coder

    def _encoder_of(self, cparams: CParams) -> Encoder:
        """Return what compresses chunks of this container by other parameters."""
        handle = self._handle
        return Encoder(cparams, self._user, lambda: handle.opened().meta)

    @property
    def _nthreads(self) -> int:
        return self._decoder.nthreads

    @property
    def _postfilter(self) -> BlockFunction | None:
        return self._decoder.postfilter

    @_postfilter.setter
    def _postfilter(self, postfilter: BlockFunction | None) -> None:
        self._decoder.postfilter = postfilter

    def _checked_nchunk(self, store: ChunkStore, nchunk: int) -> int:
        number = operator.index(nchunk)
        if not 0 <= number < store.nchunks:
            raise ChunkIndexError(number, store.nchunks)
        return number

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
        return self._decoder.read_chunk(store, number, nbytes, out)

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
        self._decoder.check(store, number, source)
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
        return _lazy_chunk(source, _engine.describe(source), number)

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
        source = store.source(number)
        info = _engine.describe(source)
        special = SpecialValue.NOT_SPECIAL if is_marked_as_data(info) else _SPECIAL_VALUES[info.special]
        lazy = _lazy_chunk(source, info, number)
        return ChunkInfo(number, info.nbytes / info.cbytes, special, info.repeated_value, lazy)

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
        self._decoder.check(store, number, source)
        if not _engine.describe(source).vlblocks:
            msg = f"flags of chunk {nchunk}"
            raise FormatError(msg, at=30, expected="variable-length blocks", found="ordinary ones")
        return self._decoder.read_vlblocks(source)

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


def _lazy_chunk(source: _engine.Source, info: _engine.ChunkInfo, number: int) -> bytes:
    """Return what `get_lazychunk` says of chunk `number`, whose header says `info`."""
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
