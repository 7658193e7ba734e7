"""`SChunk`, a super-chunk: a list of chunks, in memory, in one file, or in a directory of files.

::

    SChunk ── Handle ── ChunkStore            where the chunks and metalayers are
       │                 MemoryStore | FrameStore
       ├── Encoder                            how this handle compresses, `encoder`
       └── Decoder                            how it decompresses, `decoder`

The methods are thin. Longer work is a function over a store, an encoder or a decoder, in the module named for it.
Opening by path or from bytes is in `opening`. Neither a frame's bytes (`frame`) nor files (`storage`) are dealt with
here.
"""

from __future__ import annotations

import operator
import os
import weakref
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from superchunk import _engine
from superchunk._codec.array_guard import check_change
from superchunk._codec.block_functions import BlockFunction, Operands, check_dtypes, postfilter_funcs, prefilter_funcs
from superchunk._codec.buffers import byte_view, writable_view
from superchunk._codec.chunks_of_range import chunk_start
from superchunk._codec.decoder import Decoder
from superchunk._codec.encoder import (
    Encoder,
    append_bytes,
    complete_chunk,
    encode_data,
    encode_vlblocks,
    filled_chunks,
    insert_groups,
    largest_chunk,
    recompressed,
    with_typesize,
)
from superchunk._codec.parameters import check_usable, cparams_of, narrow_metas, settings_of
from superchunk._codec.special_values import special_item
from superchunk._codec.stored_chunks import ChunkInfo, chunk_bytes, chunk_info, lazy_chunk
from superchunk._display.info import ratio, size
from superchunk._format.metalayers import PLACEHOLDERS
from superchunk._schunk.fill_value import fill_store, special_chunk
from superchunk._schunk.item_slices import item_number, overwrite_items, refuse_step
from superchunk._schunk.opening import (
    check_deserialize,
    check_storage,
    create_handle,
    existing_data_error,
    exists,
    is_array,
    mode_of,
    open_handle,
    options_of,
    pack_layers,
    publishing,
)
from superchunk._schunk.pickling import reduced
from superchunk._schunk.shared_methods import ContextManaged
from superchunk._store.copy_store import transfer
from superchunk._store.frame_store import FrameStore
from superchunk.exceptions import ArgumentError, ChunkIndexError, FormatError
from superchunk.params import (
    MAX_BUFFERSIZE,
    CParams,
    DParams,
    Storage,
    as_cparams,
    as_dparams,
    default_nthreads,
    from_fields,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import SupportsIndex, Unpack

    from numpy.typing import DTypeLike, NDArray

    from superchunk._codec.block_functions import BlockCallable, FillCallable
    from superchunk._codec.buffers import AnyBuffer
    from superchunk._codec.special_values import FillValue
    from superchunk._integrity.report import VerifyReport
    from superchunk._schunk.handle import Handle
    from superchunk._store.options import Deserialize
    from superchunk._store.staged_files import StagedChunk
    from superchunk._store.store_interface import ChunkList, ChunkStore, FrameSettings
    from superchunk.meta import Meta, VlMeta
    from superchunk.params import CParamsDict, DParamsDict, SpecialValue, StorageDict

__all__ = ["ChunkInfo", "SChunk"]

_DEFAULT_CHUNKSIZE: Final = 2**24
"""Bytes of a chunk without data to go by."""
_ANY_CHUNKSIZE: Final = -1
_SMALL: Final = 64 * 1024
"""Up to so many bytes are asked for in one call, together with whether anything has changed."""
_STORAGE_FIELDS: Final = frozenset(f.name for f in fields(Storage))


def __getattr__(name: str) -> Any:
    """Return what python-blosc2 has in its module of this name and superchunk elsewhere."""
    if name in {"load", "open"}:
        import superchunk  # the entry points are above this layer

        return getattr(superchunk, name)
    if name in {"Meta", "vlmeta"}:
        from superchunk.meta import Meta, VlMeta  # asked for by few programs

        return Meta if name == "Meta" else VlMeta
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


class SChunk(ContextManaged):
    """A super-chunk: data cut into compressed chunks, read back piece by piece.

    Parameters
    ----------
    chunksize
        Bytes of a full chunk, up to `MAX_BUFFERSIZE`; -1: chunks may all differ. None, the
        default: the length of `data`, at most 2**28; 2**24 without data.
    data
        A C-contiguous buffer, cut into chunks; the last one may be shorter.
    cparams
        How to compress, a `CParams` or a dict of its fields. Without a `typesize`
        items have the size of those of `data`, 1 without data.
    dparams
        How to decompress, a `DParams` or a dict of its fields.
    storage
        Where it lives, a `Storage` or a dict of its fields; or instead `**kwargs`.
    deserialize
        ``"full"``: metadata may hold whole containers, as for `superchunk.open`. None: ``"safe"``.
    **kwargs
        The fields of `Storage`: `contiguous`, `urlpath`, `mode`, `mmap_mode`,
        `initial_mapping_size`, `locking`, `meta`, `sync`, `seal`, `compact_above`.

    Raises
    ------
    ValueError
        An argument that is not allowed, does not go together with another, or is
        not known; a file that is not a SChunk's.
    AttributeError
        `storage` and one of its fields are given.
    TypeError
        An unknown field in a dict, or `data` has no buffer.
    FormatError
        The file at `urlpath` is damaged, or no frame.
    StorageError
        Reading or writing failed, or there is data where `data` should go.

    Notes
    -----
    Several threads may read one SChunk at a time; a change needs it for itself.

    With a `urlpath`, the modes are those of `superchunk.open`, and "a" (the default)
    makes what does not exist. `mmap_mode` overrules `mode`: "r" is "r", "r+" is
    "a", "w+" is "w"; "c" is copy-on-write: the handle sees its writes, the file never
    does. Nothing is mapped, see `superchunk._schunk.opening`.

    Examples
    --------
    >>> import array
    >>> s = SChunk(data=array.array("i", range(1000)), chunksize=400)
    >>> len(s), s.nchunks, s.typesize
    (1000, 10, 4)
    >>> array.array("i", s[250:253]).tolist()
    [250, 251, 252]

    """

    __slots__ = ("__weakref__", "_coder", "_decoder", "_dparams", "_handle", "_meta", "_vlmeta")

    _handle: Handle
    _coder: Encoder | tuple[FrameSettings, int]
    """How it compresses, or what that is to be made from: what a frame records, and the number of threads."""
    _decoder: Decoder
    _dparams: DParams
    _meta: Meta | None
    _vlmeta: VlMeta | None

    def __init__(
        self,
        chunksize: int | None = None,
        data: AnyBuffer | None = None,
        *,
        cparams: CParams | CParamsDict | None = None,
        dparams: DParams | DParamsDict | None = None,
        storage: Storage | StorageDict | None = None,
        deserialize: Deserialize | None = None,
        **kwargs: Unpack[StorageDict],
    ) -> None:
        wanted = check_deserialize("safe" if deserialize is None else deserialize)
        place = check_storage(_as_storage(storage, kwargs))
        view = None if data is None else byte_view(data)
        itemsize = 1 if data is None else int(getattr(data, "itemsize", 1)) or 1
        decompress = as_dparams(dparams)
        path = place.urlpath
        found = path is not None and exists(os.fspath(path))
        if found and mode_of(place) != "w":
            self._open_existing(place, cparams, decompress, wanted)
            if view is not None and view.nbytes:
                self._fill_opened(view)
            return
        if mode_of(place) == "r" or place.mmap_mode in ("r+", "c"):
            msg = f"mode {place.mmap_mode or place.mode!r}: cannot open {path!r} for reading, it does not exist"
            raise ArgumentError(msg)
        compress = as_cparams(cparams, itemsize)
        self._make(place, chunksize, view, compress, decompress, {}, deserialize=wanted)

    def _make(
        self,
        place: Storage,
        chunksize: int | None,
        view: memoryview | None,
        compress: CParams,
        decompress: DParams,
        values: Mapping[str, object],
        *,
        deserialize: Deserialize = "safe",
    ) -> None:
        """Make a new container with `values` as metadata; its file gets its name with the first content."""
        step = _chunksize(chunksize, view, compress.typesize)
        layers = pack_layers(place)
        check_usable(compress, decompress)
        encoder = Encoder(compress, weakref.ref(self), lambda: layers)
        encoder.check()
        blocksize = compress.blocksize if view is None else encoder.blocksize_for(view)
        chosen: CParams | Encoder = encoder
        if blocksize != compress.blocksize:
            compress = chosen = replace(compress, blocksize=blocksize)
        filled = bool(values) or (view is not None and view.nbytes > 0)
        settings = settings_of(compress, decompress.nthreads)
        handle = create_handle(place, settings, step, layers, publish=not filled, deserialize=deserialize)
        self._attach(handle, chosen, decompress)
        if filled:
            with publishing(handle), handle.store.batch():
                if view is not None and view.nbytes:
                    append_bytes(handle.store, self._encoder, view)
                if values:
                    self.vlmeta.update(values)

    @classmethod
    def _of_data(  # the packed arrays' way in
        cls,
        data: memoryview,
        values: Mapping[str, object],
        *,
        itemsize: int,
        chunksize: int | None = None,
        cparams: CParams | CParamsDict | None = None,
        dparams: DParams | DParamsDict | None = None,
        storage: Storage | StorageDict | None = None,
        **kwargs: Unpack[StorageDict],
    ) -> Self:
        """Return a new container of `data` and `values`; both are there with the first commit."""
        place = check_storage(_as_storage(storage, kwargs))
        path = place.urlpath
        if path is not None and exists(os.fspath(path)) and mode_of(place) != "w":
            raise existing_data_error(os.fspath(path))
        schunk = cls.__new__(cls)
        schunk._make(place, chunksize, data, as_cparams(cparams, itemsize), as_dparams(dparams), values)
        return schunk

    def _open_existing(
        self, place: Storage, cparams: CParams | CParamsDict | None, dparams: DParams, deserialize: Deserialize
    ) -> None:
        """Take what is at the path of `place`."""
        path = os.fspath(place.urlpath or "")
        handle = open_handle(path, options_of(place, deserialize))
        store = handle.store
        try:
            _check_opened(store, path, pack_layers(place))
            self._attach_opened(handle, cparams, dparams)
        except BaseException:
            handle.close()
            raise

    def _attach_opened(self, handle: Handle, cparams: CParams | Mapping[str, Any] | None, dparams: DParams) -> None:
        """Take an existing store, whose items stay as large as they are."""
        self._attach(handle, None, dparams)
        if cparams is not None:
            recorded = self._encoder.cparams
            wanted = with_typesize(as_cparams(cparams, recorded.typesize), recorded.typesize, recorded.blocksize)
            check_usable(wanted, dparams)
            self._coder = encoder = self._encoder_of(wanted)
            encoder.check()

    def _fill_opened(self, view: memoryview) -> None:
        """Put the data given to the constructor into an existing container, if that is empty."""
        handle = self._handle
        if handle.options.mode == "r" or handle.store.nchunks:
            self.close()
            raise existing_data_error(handle.urlpath or "")
        try:
            append_bytes(handle.writable_store(), self._encoder, view)
        except BaseException:
            self.close()
            raise

    @classmethod
    def _of_handle(
        cls, handle: Handle, cparams: CParams | Mapping[str, Any] | None = None, dparams: DParams | None = None
    ) -> Self:
        """Return a SChunk on a store that exists."""
        schunk = cls.__new__(cls)
        if cparams is None:
            schunk._attach(handle, None, dparams or DParams())
        else:
            schunk._attach_opened(handle, cparams, dparams or DParams())
        return schunk

    def _attach(self, handle: Handle, cparams: CParams | Encoder | None, dparams: DParams) -> None:
        """Take the store of `handle`, how to compress (None: as it records), and how to decompress."""
        owner = weakref.ref(self)
        self._handle = handle
        if cparams is None:
            settings = handle.store.settings
            self._coder = (settings, default_nthreads())
            typesize = settings.typesize
        else:
            encoder = cparams if isinstance(cparams, Encoder) else Encoder(cparams, owner, lambda: handle.store.meta)
            self._coder = encoder
            typesize = encoder.cparams.typesize
        self._decoder = Decoder(owner, dparams.nthreads, typesize, verified=handle.options.verify is not None)
        self._dparams = dparams
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
        return Encoder(cparams, self._decoder.owner, lambda: handle.store.meta)

    # What it is: sizes, place, parameters, metalayers.

    @property
    def chunksize(self) -> int:
        """Bytes of a full chunk; 0 once chunks differ in size."""
        store = self._handle.refreshed_store()
        return store.in_one_state(lambda chunks: chunks.chunksize)

    @property
    def chunkshape(self) -> int:
        """Items of a full chunk."""
        return self.chunksize // self._decoder.typesize

    @property
    def blocksize(self) -> int:
        """Bytes of a block; 0 unless it was asked for."""
        return self._handle.refreshed_store().settings.blocksize

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        store = self._handle.refreshed_store()
        return store.in_one_state(lambda chunks: chunks.nchunks)

    @property
    def nbytes(self) -> int:
        """Bytes of all items."""
        store = self._handle.refreshed_store()
        return store.in_one_state(lambda chunks: chunks.nbytes)

    @property
    def cbytes(self) -> int:
        """Bytes of all compressed chunks; 32 for a special value that is not stored."""
        store = self._handle.refreshed_store()
        return store.in_one_state(lambda chunks: chunks.cbytes)

    @property
    def dead_bytes(self) -> int:
        """Bytes of the file that nothing refers to any more; 0 in memory."""
        return self._handle.refreshed_store().dead_bytes

    @property
    def cratio(self) -> float:
        """``nbytes / cbytes``; 0.0 when empty."""
        cbytes = self.cbytes
        return self.nbytes / cbytes if cbytes else 0.0

    @property
    def typesize(self) -> int:
        """Bytes of an item."""
        return self._decoder.typesize

    @property
    def urlpath(self) -> str | None:
        """The file, None in memory."""
        return self._handle.urlpath

    @property
    def contiguous(self) -> bool:
        """Whether the chunks are in one frame."""
        return self._handle.contiguous

    @property
    def mode(self) -> str:
        """``"r"``, ``"a"`` or ``"w"``, as opened."""
        return self._handle.options.mode

    @property
    def mmap_mode(self) -> str | None:
        """The mmap mode, as opened."""
        return self._handle.options.mmap_mode

    @property
    def initial_mapping_size(self) -> int | None:
        """As given; nothing is mapped."""
        return self._handle.options.initial_mapping_size

    @property
    def locking(self) -> bool:
        """Whether the handle takes part in C-Blosc2's lock protocol."""
        return self._handle.options.locking

    @property
    def change_tick(self) -> int:
        """Grows when the handle notices another handle's change; 0 in memory."""
        return self._handle.store.change_tick

    @property
    def cparams(self) -> CParams:
        """How this handle compresses.

        Assign a `CParams` to change it for what is written from now on. Once there is
        data, and in an array, its `typesize` and `blocksize` stay what they are.
        """
        return self._encoder.cparams

    @cparams.setter
    def cparams(self, cparams: CParams) -> None:
        if not isinstance(cparams, CParams):
            msg = f"cparams: expected a CParams, got {type(cparams).__name__}"
            raise AttributeError(msg)  # noqa: TRY004  (what users know)
        store = self._handle.refreshed_store()
        current = self._encoder.cparams
        if store.nchunks or self._handle.options.mode == "r" or is_array(store):
            cparams = with_typesize(cparams, current.typesize, current.blocksize)
        check_usable(cparams, self._dparams)
        encoder = self._encoder_of(cparams)
        encoder.check()
        encoder.prefilter = self._encoder.prefilter
        if self._handle.options.mode != "r":
            store.settings = settings_of(cparams, self._decoder.nthreads)
            self._decoder.typesize = store.settings.typesize
        self._coder = encoder

    @property
    def dparams(self) -> DParams:
        """How this handle decompresses; assign a `DParams` to change it."""
        return self._dparams

    @dparams.setter
    def dparams(self, dparams: DParams) -> None:
        if not isinstance(dparams, DParams):
            msg = f"dparams: expected a DParams, got {type(dparams).__name__}"
            raise AttributeError(msg)  # noqa: TRY004  (what users know)
        check_usable(self._encoder.cparams, dparams)
        self._dparams = dparams
        self._decoder.nthreads = dparams.nthreads

    @property
    def meta(self) -> Meta:
        """The fixed metalayers, a mapping."""
        if self._meta is None:
            from superchunk.meta import Meta  # brings msgpack, which reading data does without

            self._meta = Meta(self._handle)
        return self._meta

    @property
    def vlmeta(self) -> VlMeta:
        """The variable metalayers, a mutable mapping; the same object at each access."""
        if self._vlmeta is None:
            from superchunk.meta import VlMeta

            self._vlmeta = VlMeta(self._handle)
        return self._vlmeta

    @property
    def attrs(self) -> VlMeta:
        """The same as `vlmeta`."""
        return self.vlmeta

    @property
    def info_items(self) -> list[tuple[str, object]]:
        """The pairs of name and value that `info` shows."""
        return [
            ("type", type(self).__name__),
            ("chunksize", self.chunksize),
            ("blocksize", self.blocksize),
            ("typesize", self.typesize),
            ("nbytes", size(self.nbytes)),
            ("cbytes", size(self.cbytes)),
            ("cratio", ratio(self.cratio)),
            ("cparams", self.cparams),
            ("dparams", self.dparams),
        ]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: sizes, codec, and how well the chunks are compressed."""
        from superchunk._display.notebook_card import schunk_card  # only notebooks draw it

        return schunk_card(self)

    # Items.

    def __len__(self) -> int:
        """Return the number of items, ``nbytes // typesize``."""
        store = self._handle.refreshed_store()
        return store.in_one_state(lambda chunks: chunks.nbytes) // self._decoder.typesize

    def __getitem__(self, key: SupportsIndex | slice) -> bytes:
        """Return an item, or the items of a slice, as bytes.

        Raises
        ------
        IndexError
            There is no such item, or a slice has a step other than 1.
        TypeError
            `key` is neither an integer nor a slice.
        FormatError
            A chunk is damaged.

        """
        store = self._handle.store_if_open
        decoder = self._decoder
        if store is not None and decoder.postfilter is None and not decoder.verified:
            typesize = decoder.typesize
            if type(key) is slice:
                start, stop, step = key.start, key.stop, key.step
                if not (type(start) is int and type(stop) is int and step is None and 0 <= start < stop):
                    start, stop, step = key.indices(store.nbytes // typesize)
                small = step in (None, 1) and 0 < (stop - start) * typesize <= _SMALL
            else:
                start = key if type(key) is int else -1
                stop, small = start + 1, start >= 0
            if small:
                found = store.read_small(start * typesize, stop * typesize, typesize)
                if found is not None:
                    return found
        store = store or self._handle.store
        return store.read_consistent(self._items, key)

    def _items(self, chunks: ChunkList, key: SupportsIndex | slice) -> bytes:
        """Return the items that `key` names: the general way of `__getitem__`."""
        typesize = self._decoder.typesize
        if isinstance(key, slice):
            start, stop, step = key.indices(chunks.nbytes // typesize)
            if step != 1:
                refuse_step(step)
            if start >= stop:
                return b""
        else:
            start = item_number(key, chunks.nbytes // typesize)
            stop = start + 1
        return self._decoder.read_range(chunks, start * typesize, stop * typesize, None) or b""

    def get_slice(self, start: int = 0, stop: int | None = None, out: AnyBuffer | None = None) -> bytes | None:
        """Return items ``start:stop``, or put them at the front of `out`.

        Parameters
        ----------
        start, stop
            Items, by the rules of slices.
        out
            A writable C-contiguous buffer; None is returned then, except that an
            empty range returns ``b""``.

        Raises
        ------
        ValueError
            `out` is too small or read-only.
        FormatError
            A chunk is damaged.

        """

        def read(chunks: ChunkList) -> bytes | None:
            first, last, _ = slice(start, stop).indices(chunks.nbytes // self._decoder.typesize)
            if first >= last:
                return b""
            low, high = first * self._decoder.typesize, last * self._decoder.typesize
            if out is None:
                return self._decoder.read_range(chunks, low, high, None)
            view = writable_view(out, "out")
            if view.nbytes < high - low:
                msg = f"out: Not enough space, expected at least {high - low} bytes, got {view.nbytes}"
                raise ValueError(msg)
            return self._decoder.read_range(chunks, low, high, view)

        return self._handle.store.read_consistent(read)

    def __setitem__(self, key: SupportsIndex | slice, value: AnyBuffer) -> None:
        """Overwrite items; a slice whose end is past the last item makes the SChunk grow.

        Of more data than the slice takes, the rest is ignored.

        Raises
        ------
        IndexError
            There is no such item, or a slice has a step other than 1.
        ValueError
            Too little data; a slice that is empty or begins past the end; the handle
            may only read.
        TypeError
            `value` has no buffer, or `key` is neither an integer nor a slice.
        StorageError
            Writing failed; nothing has changed.

        """
        if isinstance(key, slice):
            if key.step is not None and operator.index(key.step) != 1:
                refuse_step(key.step)
            self._overwrite(key.start, key.stop, value)
            return
        self._overwrite(key, None, value, single=True)

    def set_slice(self, value: AnyBuffer, start: int = 0, stop: int | None = None) -> None:
        """Overwrite items ``start:stop``; the same as ``s[start:stop] = value``.

        Raises
        ------
        ValueError, TypeError, StorageError
            As the assignment.

        """
        self._overwrite(start, stop, value)

    def _overwrite(
        self, start: SupportsIndex | None, stop: SupportsIndex | None, value: AnyBuffer, *, single: bool = False
    ) -> None:
        """Overwrite items ``start:stop``, or the `single` item `start`."""
        store = self._handle.writable_store()
        view = byte_view(value, "value")
        with store.batch():
            overwrite_items(store, self._encoder, start, stop, view, single=single)

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the items, as bytes; a chunk is decompressed at a time."""
        typesize = self._decoder.typesize
        number = 0
        while number < len(self):
            store = self._handle.store
            step = max(store.chunksize // typesize, 1) if store.chunksize else 1024
            step -= number % step
            block = self.get_slice(number, number + step) or b""
            for low in range(0, len(block), typesize):
                yield block[low : low + typesize]
            number += len(block) // typesize

    def iterchunks(self, dtype: DTypeLike) -> Iterator[NDArray[Any]]:
        """Iterate over the contents of the chunks, each a new array of its true length.

        Parameters
        ----------
        dtype
            What the items are.

        Raises
        ------
        ValueError
            A chunk is not a whole number of such items.

        """
        wanted = np.dtype(dtype)
        number = 0
        while (chunk := self._handle.store.read_consistent(self._chunk_as, number, wanted)) is not None:
            yield chunk
            number += 1

    def _chunk_as(self, chunks: ChunkList, number: int, dtype: np.dtype[Any]) -> NDArray[Any] | None:
        """Return the content of a chunk as a new array, None behind the last."""
        if number >= chunks.nchunks:
            return None
        nbytes = chunks.chunk_nbytes(number)
        if nbytes % dtype.itemsize:
            msg = f"dtype: chunk {number} of {nbytes} bytes holds no whole number of items of {dtype}"
            raise ValueError(msg)
        chunk: NDArray[Any] = np.empty(nbytes // dtype.itemsize, dtype=dtype)
        start = chunk_start(chunks, number)
        self._decoder.read_range(chunks, start, start + nbytes, chunk.view(np.uint8).data)
        return chunk

    # Whole chunks, read.

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

        def read(chunks: ChunkList) -> bytes | None:
            number = _checked_nchunk(chunks, nchunk)
            nbytes = chunks.chunk_nbytes(number)
            out = None
            if dst is not None:
                out = writable_view(dst, "dst")
                if not out.nbytes:
                    msg = "dst: expected a buffer to write into, got one of length 0"
                    raise ValueError(msg)
                if out.nbytes < nbytes:
                    msg = f"dst: expected at least {nbytes} bytes, got {out.nbytes}"
                    raise ArgumentError(msg)
            return self._decoder.read_chunk(chunks, number, nbytes, out)

        return self._handle.store.read_consistent(read)

    def get_chunk(self, nchunk: int) -> bytes:
        """Return chunk `nchunk`, compressed.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        FormatError, StorageError
            Its header is damaged, or it cannot be read.

        """

        def read(chunks: ChunkList) -> bytes:
            number = _checked_nchunk(chunks, nchunk)
            source = chunks.source(number)
            self._decoder.check(chunks, number, source)
            return chunk_bytes(source)

        return self._handle.store.read_consistent(read)

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

        def read(chunks: ChunkList) -> bytes:
            number = _checked_nchunk(chunks, nchunk)
            source = chunks.source(number)
            return lazy_chunk(source, _engine.describe(source), number)

        return self._handle.store.read_consistent(read)

    def iterchunks_info(self) -> Iterator[ChunkInfo]:
        """Iterate over what is known of each chunk without reading its data."""
        number = 0
        while (info := self._handle.store.read_consistent(self._chunk_info, number)) is not None:
            yield info
            number += 1

    def _chunk_info(self, chunks: ChunkList, number: int) -> ChunkInfo | None:
        """Return what is known of a chunk, None behind the last."""
        if number >= chunks.nchunks:
            return None
        return chunk_info(chunks.source(number), number)

    def get_vlblocks(self, nchunk: int) -> list[bytes]:
        """Return the blocks of a chunk with variable-length blocks.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        FormatError
            The chunk has ordinary blocks, or is damaged.

        """

        def read(chunks: ChunkList) -> list[bytes]:
            number = _checked_nchunk(chunks, nchunk)
            source = chunks.source(number)
            self._decoder.check(chunks, number, source)
            if not _engine.describe(source).vlblocks:
                msg = f"flags of chunk {nchunk}"
                raise FormatError(msg, at=30, expected="variable-length blocks", found="ordinary ones")
            return self._decoder.read_vlblocks(source)

        return self._handle.store.read_consistent(read)

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

    # Whole chunks, changed.

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
        store = self._handle.writable_store()
        encoder = self._encoder
        if encoder.prefilter is None:  # other threads need not wait while this one compresses
            return store.append([encode_data(store, encoder, data, 0)])
        with store.batch():
            return store.append([encode_data(store, encoder, data, store.nbytes)])

    def insert_data(self, nchunk: int, data: AnyBuffer, copy: bool) -> int:
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
        store = self._handle.writable_store()
        with store.batch():
            number = _checked_place(store, nchunk)
            return store.insert(number, [encode_data(store, self._encoder, data, chunk_start(store, number))])

    def update_data(self, nchunk: int, data: AnyBuffer, copy: bool) -> int:
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
        store = self._handle.writable_store()
        with store.batch():
            if store.nchunks == 0:
                return 0
            number = _checked_nchunk(store, nchunk)
            store.replace(number, encode_data(store, self._encoder, data, chunk_start(store, number), added=0))
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
        store = self._handle.writable_store()
        with store.batch():
            return store.append([complete_chunk(store, self._encoder, chunk)])

    def insert_chunk(self, nchunk: int, chunk: AnyBuffer) -> int:
        """Put a compressed chunk before chunk `nchunk` and return the new number of chunks.

        Raises
        ------
        ChunkIndexError
            There is no such place; an IndexError and a RuntimeError.
        FormatError, ReadOnlyError, StorageError
            As `append_chunk`.

        """
        store = self._handle.writable_store()
        with store.batch():
            number = _checked_place(store, nchunk)
            return store.insert(number, [complete_chunk(store, self._encoder, chunk)])

    def update_chunk(self, nchunk: int, chunk: AnyBuffer) -> int:
        """Put a compressed chunk in the place of chunk `nchunk` and return the number of chunks.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        FormatError, ReadOnlyError, StorageError
            As `append_chunk`.

        """
        store = self._handle.writable_store()
        with store.batch():
            number = _checked_nchunk(store, nchunk)
            store.replace(number, complete_chunk(store, self._encoder, chunk, added=0))
            return store.nchunks

    def delete_chunk(self, nchunk: int) -> int:
        """Remove chunk `nchunk` and return the new number of chunks.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        ReadOnlyError, StorageError
            The handle may only read, or writing failed.

        """
        store = self._handle.writable_store()
        with store.batch():
            number = _checked_nchunk(store, nchunk)
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
        store = self._handle.writable_store()
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
        store = self._handle.writable_store()
        kind, item = special_item(special_value, value, self._decoder.typesize)
        with store.batch():
            fill_store(store, self._encoder, nitems, kind, item)
            return store.nchunks

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
        store = self._handle.writable_store()
        kind, item = special_item(special_value, value, self._decoder.typesize)
        with store.batch():
            number = _checked_nchunk(store, nchunk)
            store.replace(number, special_chunk(self._encoder, store.chunk_nbytes(number), kind, item))
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
        store = self._handle.writable_store()
        if self._encoder.prefilter is not None:
            msg = "append_vlblocks: a prefilter works on ordinary blocks only"
            raise ValueError(msg)
        nbytes, chunk = encode_vlblocks(self._encoder, blocks)
        with store.batch():
            check_change(store, added=1, nbytes=nbytes)
            return store.append([chunk])

    # Chunks that other processes write into a sparse frame.

    def reserve_chunk_ids(self, n: int) -> range:
        """Set ids aside for chunks that other processes will write with `stage_chunk`.

        The ids are valid while this handle, or another one for writing in this process, is open. The next handle that
        opens the frame for writing removes files of unused ids.

        Parameters
        ----------
        n
            How many.

        Raises
        ------
        ArgumentError
            This is no sparse frame, or `n` is negative.
        ReadOnlyError, StorageError
            The handle may only read, or there are not so many ids left.

        Examples
        --------
        Workers compress, and this process commits what they made, in order:

        >>> import tempfile
        >>> from concurrent.futures import ProcessPoolExecutor
        >>> from superchunk import SChunk, stage_chunk
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = folder.name + "/data.b2frame"
        >>> s = SChunk(chunksize=1000, urlpath=path, contiguous=False)
        >>> ids = s.reserve_chunk_ids(4)
        >>> parts = [bytes([n, 1, 2, 3]) * 250 for n in range(4)]
        >>> with ProcessPoolExecutor(2) as workers:
        ...     staged = list(workers.map(stage_chunk, [path] * 4, ids, parts))
        >>> s.append_staged(staged)
        4
        >>> s[:] == b"".join(parts)
        True
        >>> s.close()
        >>> folder.cleanup()

        """
        return _sparse_frame(self._handle.writable_store()).reserve(operator.index(n))

    def append_staged(self, staged: Iterable[StagedChunk]) -> int:
        """Add chunks that other processes wrote, in this order, and return the new number of chunks.

        Each file is read and compared with its seal. All are added, or after an
        exception none; their files stay then, and may be given again.

        Raises
        ------
        ArgumentError
            This is no sparse frame, or an id was not reserved here or is in use already.
        FormatError
            A file is not what was staged.
        ReadOnlyError, StorageError
            The handle may only read, or reading or writing failed.

        """
        store = _sparse_frame(self._handle.writable_store())
        with store.batch():
            for one in staged:
                chunk = store.staged(one)
                check_change(store, added=1, nbytes=_engine.describe(chunk).nbytes)
                store.append([chunk])
            return store.nchunks

    def replace_staged(self, nchunk: int, staged: StagedChunk) -> int:
        """Put a chunk that another process wrote in the place of chunk `nchunk`; return the number of chunks.

        Raises
        ------
        ChunkIndexError
            There is no such chunk; an IndexError and a RuntimeError.
        ArgumentError, FormatError, ReadOnlyError, StorageError
            As `append_staged`.

        """
        store = _sparse_frame(self._handle.writable_store())
        with store.batch():
            number, chunk = _checked_nchunk(store, nchunk), store.staged(staged)
            check_change(store, nbytes=_engine.describe(chunk).nbytes)
            store.replace(number, chunk)
            return store.nchunks

    # Functions on blocks.

    def prefilter(
        self, input_dtype: DTypeLike, output_dtype: DTypeLike | None = None
    ) -> Callable[[BlockCallable], BlockCallable]:
        """Return a decorator: the function runs on every block before it is compressed.

        Parameters
        ----------
        input_dtype, output_dtype
            What a block is before and after, of one item size; None for the second:
            the same.

        Returns
        -------
        Callable
            The decorator for ``f(input, output, offset)``, which fills `output`;
            `offset` is the number of the block's first item in the SChunk. The
            function itself stays as it is.

        Raises
        ------
        ValueError
            The dtypes differ in size.
        AttributeError
            Compression has more than one thread.

        Examples
        --------
        >>> import numpy as np
        >>> from superchunk import SChunk
        >>> s = SChunk(cparams={"typesize": 8, "nthreads": 1})
        >>> @s.prefilter(np.int64)
        ... def double(input, output, offset):
        ...     output[:] = input * 2
        >>> s.append_data(np.arange(5))
        1
        >>> np.frombuffer(s[:], np.int64).tolist()
        [0, 2, 4, 6, 8]
        >>> s.remove_prefilter("double")

        """
        nthreads = self._encoder.cparams.nthreads
        if nthreads > 1:
            msg = f"cparams.nthreads: expected 1 with a prefilter, got {nthreads}"
            raise AttributeError(msg)

        def decorate(function: BlockCallable) -> BlockCallable:
            self._encoder.prefilter = BlockFunction(function, input_dtype, output_dtype)
            prefilter_funcs[function.__name__] = function
            return function

        check_dtypes(input_dtype, output_dtype)
        return decorate

    def remove_prefilter(self, func_name: str) -> None:
        """Let the prefilter of that name run no more."""
        active = self._encoder.prefilter
        if active is not None and active.function.__name__ == func_name:
            self._encoder.prefilter = None
        prefilter_funcs.pop(func_name, None)

    def postfilter(
        self, input_dtype: DTypeLike, output_dtype: DTypeLike | None = None
    ) -> Callable[[BlockCallable], BlockCallable]:
        """Return a decorator: the function runs on every block after it was decompressed.

        The parameters are those of `prefilter`.

        Raises
        ------
        ValueError
            The dtypes differ in size, or decompression has more than one thread.

        """
        if self._decoder.nthreads > 1:
            msg = f"dparams.nthreads: expected 1 with a postfilter, got {self._decoder.nthreads}"
            raise ValueError(msg)

        def decorate(function: BlockCallable) -> BlockCallable:
            self._decoder.postfilter = BlockFunction(function, input_dtype, output_dtype)
            postfilter_funcs[function.__name__] = function
            return function

        check_dtypes(input_dtype, output_dtype)
        return decorate

    def remove_postfilter(self, func_name: str) -> None:
        """Let the postfilter of that name run no more."""
        active = self._decoder.postfilter
        if active is not None and active.function.__name__ == func_name:
            self._decoder.postfilter = None
        postfilter_funcs.pop(func_name, None)

    def filler(
        self, inputs_tuple: Sequence[tuple[Any, DTypeLike]], schunk_dtype: DTypeLike, nelem: int | None = None
    ) -> Callable[[FillCallable], FillCallable]:
        """Return a decorator: the function fills this empty SChunk, block by block.

        Parameters
        ----------
        inputs_tuple
            Pairs of operand (a SChunk, an array or a scalar) and its dtype.
        schunk_dtype
            What the items are, of `typesize` bytes.
        nelem
            How many items; needed only when all operands are scalars.

        Returns
        -------
        Callable
            The decorator for ``f(inputs, output, offset)``, which fills `output`;
            `inputs` has an array of the block's length for each operand. It fills at
            once, and nothing stays registered.

        Raises
        ------
        ValueError
            The SChunk is not empty, lengths differ, or `schunk_dtype` is not of
            `typesize` bytes.

        """
        store = self._handle.writable_store()
        dtype = np.dtype(schunk_dtype)
        if store.nchunks:
            msg = f"filler: expected an empty SChunk, got {store.nchunks} chunks"
            raise ArgumentError(msg)
        if dtype.itemsize != self._decoder.typesize:
            msg = f"schunk_dtype: expected items of typesize {self._decoder.typesize} bytes, got {dtype.itemsize}"
            raise ValueError(msg)
        operands = Operands(inputs_tuple, nelem)

        def decorate(function: FillCallable) -> FillCallable:
            with store.batch():
                insert_groups(store, filled_chunks(store, self._encoder, function, operands, dtype))
            return function

        return decorate

    # The handle as a whole.

    def close(self) -> None:
        """Write what is pending and close the file. Further use raises ClosedError.

        Raises
        ------
        StorageError
            Writing failed, on a full disk for instance. The SChunk stays open and keeps what
            is pending: make room and close it again, or `copy` it to another place.

        """
        self._handle.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as the path, to be opened there again for reading.

        Raises
        ------
        TypeError
            It is in memory, or has changes or functions that another process would miss.

        """
        return reduced(self._handle, self._dparams, filtered=self._decoder.postfilter is not None)

    def __dask_tokenize__(self) -> tuple[object, ...]:
        """Return what Dask names results by: another one after each change, the same in every process otherwise.

        For a file its path, its times and the hash of its metadata; in memory the hash of all chunks. What waits
        is committed first. With a postfilter it is another one each time.

        Raises
        ------
        ClosedError, StorageError
            It is closed, or its file cannot be read.

        """
        from superchunk._schunk.dask_tokens import token_of  # few programs use Dask

        unlike_any = () if self._decoder.postfilter is None else (os.urandom(16).hex(),)
        return ("superchunk.SChunk", *token_of(self._handle), *unlike_any)

    def flush(self) -> None:
        """Commit all changes, down to the disk.

        Raises
        ------
        StorageError
            Writing failed, or waiting for the disk did; the changes stay, and the next call
            writes and waits again.

        """
        self._handle.store.flush()

    def refresh(self) -> bool:
        """Follow changes that others made, a snapshot too; return whether there were any.

        Every access follows changes by itself, a snapshot's excepted. This compares all of header, index and trailer,
        and so sees also what was written through a shared mapping without moving the file's times.
        """
        return self._handle.store.advance()

    @contextmanager
    def holding_lock(self) -> Iterator[Self]:
        """Hold the lock that other processes wait for over several operations.

        For handles opened with ``locking=True`` (or ``BLOSC_LOCKING``). Inside the block nobody else reads or writes
        with locking, and earlier changes of others are visible. Blocks may stand in each other, those of an array and
        of its SChunk as well. Without locking it does nothing.

        Raises
        ------
        StorageError
            The lock file cannot be made, locked or written.

        Examples
        --------
        >>> from superchunk import SChunk
        >>> s = SChunk(chunksize=4)
        >>> with s.holding_lock():
        ...     n = s.append_data(b"abcd")

        """
        with self._handle.store.holding():
            yield self

    def transaction(self) -> AbstractContextManager[object]:
        """Make all changes inside one commit, which is on the disk when the block ends.

        An exception drops them all, in the file and in this object. Other threads that
        want to write wait until the end. Who reads through this object sees the changes before that; other
        handles, of this process and of others, see them afterwards.

        Raises
        ------
        ReadOnlyError
            The handle may only read.
        StorageError
            A transaction is under way already, or the commit failed. Then nothing
            has changed, unless it was the last wait for the disk that failed: then the
            new state is in force (docs/durability.md).

        Examples
        --------
        >>> from superchunk import SChunk
        >>> s = SChunk(chunksize=4)
        >>> with s.transaction():
        ...     n = s.append_data(b"abcd")
        ...     s.vlmeta["day"] = 1
        >>> len(s), s.vlmeta["day"]
        (4, 1)

        """
        return self._handle.writable_store().transaction()

    def compact(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Give the dead bytes of the file back to the disk.

        A new file is written beside the old one and takes its name. A failure loses nothing, and handles that read,
        here or in other processes, continue undisturbed.

        Parameters
        ----------
        progress
            Called with the bytes of chunks done and those in all.

        Raises
        ------
        ReadOnlyError
            The handle may only read.
        StorageError
            Within a transaction, for a frame inside a larger file, or if the system
            refuses; the file is as it was.

        """
        self._handle.writable_store().compact(progress)

    def verify(
        self,
        *,
        decode: bool = False,
        nthreads: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> VerifyReport:
        """Check every part of what is on the disk; see `superchunk.verify`.

        What waits for its commit is committed first. In memory, and with mmap mode "c", the chunks of this handle are
        checked. Chunks that a frame sealed are compared with their seals.

        Raises
        ------
        StorageError
            The file cannot be read, or not be written.

        """
        from superchunk._integrity.verify import verify, verify_held  # seldom asked for, and much to load

        store = self._handle.refreshed_store()
        if not isinstance(store, FrameStore) or store.path is None:
            return verify_held(
                store, self._handle.urlpath or "<bytes>", decode=decode, nthreads=nthreads, progress=progress
            )
        if store.writable:
            store.publish()
        return verify(store.path, offset=store.start, decode=decode, nthreads=nthreads, progress=progress)

    def to_cframe(self) -> bytes:
        """Return all of it, metalayers included, as one contiguous frame.

        Raises
        ------
        MetalayerValueError
            There are over 16 vlmetalayers, more than a frame can hold.
        FormatError
            A chunk is damaged, or not what was sealed.

        """
        from superchunk._store.frame_bytes import write_cframe  # few handles come here

        store = self._handle.refreshed_store()
        with store.pinned():
            return write_cframe(store)

    # Copies.

    def copy(
        self,
        *,
        cparams: CParams | CParamsDict | None = None,
        dparams: DParams | DParamsDict | None = None,
        storage: Storage | StorageDict | None = None,
        progress: Callable[[int, int], object] | None = None,
        **kwargs: Unpack[StorageDict],
    ) -> SChunk:
        """Return a copy with all metalayers, in memory unless `urlpath` says otherwise.

        Chunks are taken as they are, a few megabytes at a time, unless `cparams` are given: then they are compressed
        anew, special values excepted. With a postfilter the copy holds the items as they are read, and has no
        postfilter. Chunks of variable-length blocks stay as they are, because a postfilter does not run on them.

        Parameters
        ----------
        cparams, dparams
            How the copy compresses and decompresses; those of this SChunk if None. The
            typesize stays.
        storage, **kwargs
            Where the copy lives, as for `SChunk`; `meta` cannot be given.
        progress
            Called with the chunks done and those in all.

        Raises
        ------
        ValueError
            `meta` is given, or as `SChunk`.
        FormatError
            A chunk is not what was sealed: damage is not copied, for it would be sealed anew.
        StorageError
            Something is at the path and `mode` is not "w", or writing failed.

        """
        place = check_storage(_as_storage(storage, kwargs))
        if place.meta is not None:
            msg = "meta: a copy has the metalayers of its original"
            raise ValueError(msg)
        path = place.urlpath
        if path is not None and exists(os.fspath(path)) and mode_of(place) != "w":
            raise existing_data_error(os.fspath(path))
        store = self._handle.refreshed_store()
        chosen = self.cparams if cparams is None else as_cparams(cparams, self.cparams.typesize)
        chosen = with_typesize(chosen, self.cparams.typesize)
        decompress = self._dparams if dparams is None else as_dparams(dparams)
        if chosen == cparams_of(store.settings, chosen.nthreads):
            settings = store.settings  # a header may say more than CParams can, a level over 9 for instance
            metas = narrow_metas(settings.filters, settings.filters_meta, settings.typesize)
            settings = settings if metas == settings.filters_meta else settings._replace(filters_meta=metas)
        else:
            settings = settings_of(chosen, decompress.nthreads)
        if cparams is not None:
            check_usable(chosen, decompress)
            self._encoder_of(chosen).check()
        handle = create_handle(
            place,
            settings,
            store.snapshot().chunksize,
            store.meta,
            publish=False,
            deserialize=self._handle.options.deserialize,
        )
        duplicate = SChunk.__new__(SChunk)
        duplicate._attach(handle, chosen, decompress)
        target = handle.store
        with publishing(handle):
            if cparams is None and self._decoder.postfilter is None:
                transfer(store, target, progress)
                return duplicate
            with store.pinned(), target.batch():
                insert_groups(target, recompressed(store, self._decoder, duplicate._encoder, progress))
                for name, chunk in store.vlmeta.items():
                    target.set_vlmeta(name, chunk)
        return duplicate

    def __copy__(self) -> SChunk:
        """Return a copy in memory, as `copy` does: no change of one is seen by the other."""
        return self.copy(contiguous=self.contiguous)

    def __deepcopy__(self, memo: dict[int, Any]) -> SChunk:
        """Return the same as ``copy.copy``: a shallow copy shares nothing already."""
        return self.__copy__()


def _check_opened(store: ChunkStore, path: str, layers: Mapping[str, bytes]) -> None:
    """Raise an error when an existing frame is not what the constructor was asked for."""
    if is_array(store) and PLACEHOLDERS.isdisjoint(store.meta):
        msg = f"{path}: Cannot open an NDArray as a SChunk"
        raise ArgumentError(msg)
    for name, content in layers.items():
        if store.meta.get(name) != content:
            msg = f"meta[{name!r}]: {path} exists and has no such metalayer; it cannot be added to it"
            raise ArgumentError(msg)


def _as_storage(storage: Storage | StorageDict | None, kwargs: Mapping[str, Any]) -> Storage:
    """Return the place that `storage`, or the keywords, name."""
    for key in kwargs:
        if key not in _STORAGE_FIELDS:
            msg = f"{key} is not supported as keyword argument"
            raise ValueError(msg)
    if storage is None:
        return from_fields(Storage, kwargs)
    if kwargs:
        msg = f"storage and {next(iter(kwargs))}: expected the object or its fields, got both"
        raise AttributeError(msg)
    return storage if isinstance(storage, Storage) else from_fields(Storage, storage)


def _chunksize(chunksize: int | None, view: memoryview | None, typesize: int) -> int:
    """Return the chunk size of a new container, in bytes; 0 if any size goes."""
    if chunksize is None:
        if view is None or not view.nbytes:
            return max(_DEFAULT_CHUNKSIZE // typesize, 1) * typesize
        return min(view.nbytes, largest_chunk(typesize))
    if chunksize == _ANY_CHUNKSIZE:
        return 0
    try:
        wanted = operator.index(chunksize)
    except TypeError:
        msg = f"chunksize: expected an integer of 1 to {MAX_BUFFERSIZE} bytes, or -1 for any, got {chunksize!r}"
        raise TypeError(msg) from None
    if not 1 <= wanted <= MAX_BUFFERSIZE:
        msg = f"chunksize: expected 1 to {MAX_BUFFERSIZE} bytes, or -1 for any, got {wanted}"
        raise ArgumentError(msg)
    return wanted


def _checked_nchunk(chunks: ChunkList, nchunk: int) -> int:
    number = operator.index(nchunk)
    if not 0 <= number < chunks.nchunks:
        raise ChunkIndexError(number, chunks.nchunks)
    return number


def _checked_place(store: ChunkStore, nchunk: int) -> int:
    number = operator.index(nchunk)
    if not 0 <= number <= store.nchunks:
        raise ChunkIndexError(number, store.nchunks + 1)
    return number


def _sparse_frame(store: ChunkStore) -> FrameStore:
    if not isinstance(store, FrameStore):
        msg = "only a sparse frame (urlpath and contiguous=False) takes chunks that others write"
        raise ArgumentError(msg)
    return store
