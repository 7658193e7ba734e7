"""Plain bytes into chunks of a store: appending in bulk, overwriting a range.

One chunk is compressed at a time, by all threads, and handed over in groups, so that
memory is bounded however much is written. Each call is one batch of the store: all
of it happens or nothing.

Knows no items: positions are bytes of the decoded content.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from superchunk import _engine
from superchunk._codec.array_guard import check_change
from superchunk._codec.block_shape import ZFP_IDS, is_shaped, layout_of, zfp_hooks
from superchunk._codec.buffers import byte_view, check_buffersize
from superchunk._codec.chunks_of_range import chunks_of
from superchunk._codec.cpu_caches import builtin_codecs
from superchunk._codec.decoder import Decoder
from superchunk._codec.parameters import as_recorded, encode_params, pipeline
from superchunk._codec.plugins import check_available, hooks_for
from superchunk._codec.stored_chunks import chunk_bytes
from superchunk.exceptions import TruncatedError
from superchunk.params import MAX_BUFFERSIZE, MAX_HEADER_TYPESIZE, MIN_HEADER_LENGTH, Filter, number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy as np

    from superchunk._codec.block_functions import BlockFunction, FillCallable, Operands
    from superchunk._codec.buffers import AnyBuffer
    from superchunk._codec.plugins import HookOwner
    from superchunk._store.store_interface import ChunkStore
    from superchunk.params import CParams

__all__ = [
    "Encoder",
    "append_bytes",
    "complete_chunk",
    "encode_data",
    "encode_vlblocks",
    "filled_chunks",
    "insert_groups",
    "insert_repeated",
    "overwrite",
    "recompressed",
    "with_typesize",
]

_GROUP_CBYTES: Final = 2**23
"""Compressed bytes that are held before they go to the store."""
_GROUP_NCHUNKS: Final = 512
_REPEATED_NCHUNKS: Final = 8192
"""Chunks of one content that go to the store at a time."""
_OWN_CODECS: Final = frozenset(codec.value for codec in builtin_codecs())
_FIRST_REGISTERED: Final = 32
"""Filters from this number on are registered or the user's."""
LARGEST_DEFAULT_CHUNK: Final = 2**28
"""Bytes of a chunk, at most, where the user did not choose."""
_QUICK_BLOCKS: Final = (2**16, 2**17)
"""Bytes of the blocks that are tried where the user did not choose: items out of them come sooner."""
_TRIED_BLOCKS: Final = 2
"""Usual blocks that a trial compresses, and the same again in smaller ones."""
_TRIED_FROM: Final = 128
"""Usual blocks of data from which on such a trial takes little of the time."""
_GROWTH: Final = 1.005
"""Times the bytes that smaller blocks may take."""


def with_typesize(cparams: CParams, typesize: int, blocksize: int | None = None) -> CParams:
    """Return `cparams` for items of another size; BYTEDELTA's number of streams follows."""
    streams = typesize if typesize <= MAX_HEADER_TYPESIZE else 0
    metas = [
        streams if choice is Filter.BYTEDELTA and meta == cparams.typesize else meta
        for choice, meta in zip(cparams.filters, cparams.filters_meta, strict=True)
    ]
    size = cparams.blocksize if blocksize is None else blocksize
    return replace(cparams, typesize=typesize, blocksize=size, filters_meta=metas)


class Encoder:
    """How one handle compresses: parameters, user functions and the prefilter.

    Parameters
    ----------
    cparams
        The parameters; here with six filters and metas from 0 to 255.
    owner
        The object that user codecs and filters get.
    meta
        Returns the fixed metalayers of the container; asked only for codecs and filters that need a shape.

    Raises
    ------
    UnsupportedError, ValueError
        The parameters cannot be used.

    """

    __slots__ = ("_meta", "_owner", "_params", "cparams", "prefilter")

    def __init__(self, cparams: CParams, owner: HookOwner, meta: Callable[[], Mapping[str, bytes]]) -> None:
        self._meta = meta
        self.cparams = as_recorded(cparams)
        self.prefilter: BlockFunction | None = None
        self._owner = owner
        self._params: _engine.EncodeParams | None = None

    @property
    def hooks(self) -> _engine.Hooks | None:
        """Registered user codecs and filters, bound to the owner."""
        return hooks_for(self._owner)

    @property
    def params(self) -> _engine.EncodeParams:
        """The parameters as the engine takes them, checked at the first use."""
        if self._params is None:
            self._params = self.params_of(self.cparams)
        return self._params

    def params_of(self, cparams: CParams) -> _engine.EncodeParams:
        """Return other parameters as the engine takes them, for chunks of the same container."""
        codec, filters = number_of(cparams.codec), pipeline(cparams)[0]
        hooks = self.hooks if check_available(codec, filters, cparams.nthreads) else None
        layout = layout_of(self._meta()) if is_shaped(codec, filters) else None
        if layout is not None and codec in ZFP_IDS:
            hooks = zfp_hooks(self._owner, layout, cparams.typesize)
        return encode_params(cparams, hooks, layout)

    def decoder(self) -> Decoder:
        """Return what reads, for a change, the rest of a chunk that is compressed anew: without a postfilter."""
        return Decoder(self._owner, 1 if self.hooks else self.cparams.nthreads, self.cparams.typesize)

    def check(self) -> None:
        """Raise now what the first use would raise: ValueError or UnsupportedError.

        TRUNC_PREC without a precision is the exception: the first chunk that is compressed raises. Programs name the
        filter before they know the precision.
        """
        cparams = self.cparams
        if (Filter.TRUNC_PREC, 0) not in zip(cparams.filters, cparams.filters_meta, strict=True):
            _ = self.params

    def blocksize_for(self, data: memoryview) -> int:
        """Return the block size for a new container of `data`, in bytes; 0 as the engine chooses it.

        A read of a few items takes about as long as the block that holds them is large. Where the block size is
        automatic and over 64 KiB, a piece from the middle is compressed with several block sizes. Blocks of 64 or 128
        KiB are taken if the size hardly grows.
        """
        cparams = self.cparams
        own = number_of(cparams.codec) in _OWN_CODECS and all(number_of(f) < _FIRST_REGISTERED for f in cparams.filters)
        if cparams.blocksize or cparams.use_dict or not own:
            return cparams.blocksize
        usual = self.params.blocksize_for(data.nbytes)
        if data.nbytes < _TRIED_FROM * usual:
            return 0
        sizes = [size - size % cparams.typesize for size in _QUICK_BLOCKS]
        start = data.nbytes // 2 // usual * usual
        piece = data[start : start + _TRIED_BLOCKS * usual]

        def taken(blocksize: int) -> int:
            return len(_engine.compress(piece, self.params_of(replace(cparams, blocksize=blocksize))))

        quicker = [size for size in sizes if size < usual]
        most = _GROWTH * taken(usual) if quicker else 0
        return next((size for size in quicker if taken(size) <= most), 0)

    def filtered(self, data: memoryview, at: int) -> memoryview:
        """Return `data`, which begins at byte `at` of the container, after the prefilter."""
        if self.prefilter is None:
            return data
        blocksize = self.params.blocksize_for(data.nbytes)
        return self.prefilter.apply(data, blocksize, at // self.cparams.typesize).data

    def chunk(self, data: memoryview, at: int) -> bytes:
        """Return `data`, which begins at byte `at` of the container, as a chunk."""
        content = data if self.prefilter is None else self.filtered(data, at)
        return _engine.compress(content, self._params or self.params)

    def chunk_of_filled(self, data: memoryview) -> bytes:
        """Return `data` as a chunk, past the prefilter."""
        return _engine.compress(data, self.params)

    def vlblocks(self, blocks: Sequence[memoryview | bytes]) -> bytes:
        """Return a chunk with one block for each buffer."""
        return _engine.compress_vlblocks(blocks, self.params)


def encode_data(store: ChunkStore, encoder: Encoder, data: AnyBuffer, at: int, added: int = 1) -> bytes:
    """Return `data`, which will begin at byte `at` of the container, as a chunk.

    Parameters
    ----------
    store, encoder
        Where the chunk will go, and how it is compressed.
    data
        A C-contiguous buffer.
    at
        Where it begins; the prefilter gets it.
    added
        How many chunks more there will be.

    Raises
    ------
    ValueError
        `data` is empty, too large or not contiguous.
    ArgumentError
        An array has no such chunk.

    """
    view = byte_view(data)
    nbytes = view.nbytes
    if not 0 < nbytes <= MAX_BUFFERSIZE:
        check_buffersize(nbytes, "data")
        msg = "data: expected at least 1 byte, a chunk cannot be empty"
        raise ValueError(msg)
    if store.meta:  # as an array has
        check_change(store, added=added, nbytes=nbytes)
    return encoder.chunk(view, at)


def complete_chunk(store: ChunkStore, encoder: Encoder, chunk: AnyBuffer, added: int = 1) -> bytes:
    """Return a chunk from outside, checked and cut to its size, as a frame can hold it.

    Raises
    ------
    FormatError
        The bytes do not begin with a complete chunk.
    ArgumentError
        An array has no such chunk.

    """
    view = byte_view(chunk, "chunk")
    if view.nbytes < MIN_HEADER_LENGTH:
        raise TruncatedError("chunk header", at=0, needed=MIN_HEADER_LENGTH, got=view.nbytes)
    info = _engine.describe(view)
    check_change(store, added=added, nbytes=info.nbytes)
    if info.header_len == MIN_HEADER_LENGTH:  # of Blosc 1: frames hold 32-byte headers
        return _engine.compress(_engine.decompress(view), encoder.params)
    return bytes(view[: info.cbytes])


def encode_vlblocks(encoder: Encoder, blocks: Sequence[AnyBuffer]) -> tuple[int, bytes]:
    """Return the bytes of all buffers, and a chunk with one block for each.

    Raises
    ------
    ValueError
        There is none, one is empty or not contiguous, or they are too large together.

    """
    views = [byte_view(block, f"blocks[{i}]") for i, block in enumerate(blocks)]
    if not views or not all(view.nbytes for view in views):
        msg = "blocks: expected at least one, each of at least 1 byte"
        raise ValueError(msg)
    nbytes = sum(view.nbytes for view in views)
    check_buffersize(nbytes, "blocks")
    return nbytes, encoder.vlblocks(views)


def filled_chunks(
    store: ChunkStore, encoder: Encoder, function: FillCallable, operands: Operands, dtype: np.dtype[Any]
) -> Iterator[bytes]:
    """Yield the chunks that a filler gives, one after the other."""
    import numpy as np  # fillers only

    chunksize = store.chunksize or largest_chunk(encoder.cparams.typesize)
    step = max(chunksize // dtype.itemsize, 1)
    for start in range(0, operands.nitems, step):
        inputs = operands.read(start, min(start + step, operands.nitems))
        output = np.zeros(min(step, operands.nitems - start), dtype=dtype)
        block = max(encoder.params.blocksize_for(output.nbytes) // dtype.itemsize, 1)
        for low in range(0, len(output), block):
            part = slice(low, low + block)
            function(tuple(each[part] for each in inputs), output[part], start + low)
        yield encoder.chunk_of_filled(output.view(np.uint8).data)


def recompressed(
    store: ChunkStore, decoder: Decoder, encoder: Encoder, progress: Callable[[int, int], object] | None
) -> Iterator[bytes]:
    """Yield each chunk of a store, compressed anew by `encoder` after the postfilter; special values stay as they are.

    Parameters
    ----------
    store, decoder
        What is read, and how.
    encoder
        Of the copy.
    progress
        Called with the chunks done and those in all.

    Raises
    ------
    FormatError
        A chunk is damaged, or not what was sealed.

    """
    store.prove()
    for number in range(store.nchunks):
        store.check(number)
        source = store.source(number)
        info = _engine.describe(source)
        if info.vlblocks:
            yield encoder.vlblocks(decoder.read_vlblocks(source))
        elif info.special and decoder.postfilter is None:
            yield chunk_bytes(source)
        else:
            content = memoryview(bytearray(info.nbytes))
            decoder.read_chunk(store, number, info.nbytes, content)
            yield encoder.chunk_of_filled(content)
        if progress is not None:
            progress(number + 1, store.nchunks)


def insert_groups(store: ChunkStore, chunks: Iterable[bytes], *, held: int = _GROUP_CBYTES) -> None:
    """Append chunks as they come, in groups of about `held` bytes at most."""
    group: list[bytes] = []
    cbytes = 0
    for chunk in chunks:
        group.append(chunk)
        cbytes += len(chunk)
        if cbytes >= held or len(group) >= _GROUP_NCHUNKS:
            store.append(group)
            group, cbytes = [], 0
    if group:
        store.append(group)


def insert_repeated(store: ChunkStore, chunk: bytes, count: int) -> None:
    """Append a small chunk many times."""
    for start in range(0, count, _REPEATED_NCHUNKS):
        store.append([chunk] * min(_REPEATED_NCHUNKS, count - start))


def append_bytes(store: ChunkStore, encoder: Encoder, data: memoryview) -> None:
    """Append `data` in chunks of the store's size; the last one may be shorter."""
    with store.batch():
        step = store.chunksize or largest_chunk(encoder.cparams.typesize)
        start = store.nbytes
        insert_groups(
            store, (encoder.chunk(data[low : low + step], start + low) for low in range(0, data.nbytes, step))
        )


def largest_chunk(typesize: int) -> int:
    """Return the bytes of a chunk where nothing says otherwise: whole items."""
    return max(LARGEST_DEFAULT_CHUNK // typesize, 1) * typesize


def overwrite(store: ChunkStore, encoder: Encoder, start: int, data: memoryview) -> None:
    """Put `data` at byte `start` of the container, which grows if it must; inside a batch of it.

    The prefilter sees the new bytes only: those around them went through it already.

    Parameters
    ----------
    store
        The chunks, ``start <= store.nbytes``.
    encoder
        How to compress.
    start
        Where the first byte goes.
    data
        At least one byte.

    Raises
    ------
    FormatError
        A chunk of which something stays is damaged; nothing has changed.

    """
    nbytes = store.nbytes
    stop = start + data.nbytes
    chunksize = store.chunksize
    if chunksize:
        grown = -(-nbytes // chunksize) * chunksize  # where the last chunk would end if it were full
        inner = min(stop, grown)
        touched = range(start // chunksize, -(-inner // chunksize) if start < grown else start // chunksize)
    else:
        inner = min(stop, nbytes)
        touched = chunks_of(store, start, inner) if start < inner else range(0)
    for nchunk in touched:
        base = nchunk * chunksize if chunksize else store.starts()[nchunk]
        old = store.chunk_nbytes(nchunk)
        low, high = max(start - base, 0), min(inner - base, chunksize or old)
        piece = data[base + low - start : base + high - start]
        if low > 0 or high < old:
            piece = _patched(store, encoder, nchunk, old, base, low, piece)
            chunk = _engine.compress(piece, encoder.params)
        elif piece.nbytes:
            chunk = encoder.chunk(piece, base)
        else:
            continue
        store.replace(nchunk, chunk)
    if stop > inner:
        append_bytes(store, encoder, data[max(inner, start) - start :])


def _patched(
    store: ChunkStore, encoder: Encoder, nchunk: int, old: int, base: int, low: int, piece: memoryview
) -> memoryview:
    """Return a chunk's plain content with `piece` put at byte `low` of it, grown if need be."""
    store.check(nchunk)  # what stays of it is sealed anew
    content = memoryview(bytearray(max(old, low + piece.nbytes)))
    request = (store.source(nchunk), old, 0, old, 0)
    encoder.decoder().read(store, [request], content)
    content[low : low + piece.nbytes] = encoder.filtered(piece, base + low)
    return content
