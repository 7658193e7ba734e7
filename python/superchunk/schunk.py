"""`SChunk`, a super-chunk: a list of chunks, in memory, in one file, or in a directory of files.

::

    SChunk ── Handle ── ChunkStore            where the chunks and metalayers are
       │                 MemoryStore | FrameStore
       ├── Encoder                            how this handle compresses
       └── FactCalls → LifeCalls → ...        what one can ask of it, drawn in `_chunk_reads`

Makes, copies and closes; reads and writes are in the classes it builds on, opening by
path or from bytes is in `_frames`. Neither a frame's bytes (`frame`) nor files
(`storage`) are dealt with here.
"""

from __future__ import annotations

import operator
import os
import weakref
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, Self

from superchunk import _engine
from superchunk._buffers import byte_view
from superchunk._chunk_reads import ChunkInfo, chunk_bytes
from superchunk._encoding import cparams_of, narrow_metas, settings_of
from superchunk._facts import FactCalls, check_usable
from superchunk._opening import (
    check_deserialize,
    check_storage,
    create_handle,
    existing_data_error,
    exists,
    is_array,
    mode_of,
    open_handle,
    pack_layers,
    publishing,
)
from superchunk._writing import Encoder, append_bytes, insert_groups, largest_chunk, with_typesize
from superchunk.exceptions import ArgumentError
from superchunk.frame.metalayers import PLACEHOLDERS
from superchunk.params import (
    MAX_BUFFERSIZE,
    DParams,
    Storage,
    as_cparams,
    as_dparams,
    from_fields,
)
from superchunk.storage.transfer import transfer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Unpack

    from superchunk._buffers import AnyBuffer
    from superchunk._handle import Handle
    from superchunk.params import CParams, CParamsDict, DParamsDict, StorageDict
    from superchunk.storage.base import ChunkStore
    from superchunk.storage.options import Deserialize

__all__ = ["ChunkInfo", "SChunk"]

_DEFAULT_CHUNKSIZE: Final = 2**24
"""Bytes of a chunk without data to go by."""
_ANY_CHUNKSIZE: Final = -1
_STORAGE_FIELDS: Final = frozenset(f.name for f in fields(Storage))


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function or a class
    """Return what python-blosc2 has in its module of this name and superchunk elsewhere."""
    if name in {"load", "open"}:
        from superchunk import _frames  # noqa: PLC0415 - a layer above this one

        return getattr(_frames, name)
    if name in {"Meta", "vlmeta"}:
        from superchunk.meta import Meta, VlMeta  # noqa: PLC0415 - asked for by few programs

        return Meta if name == "Meta" else VlMeta
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


class SChunk(FactCalls):
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
    does. Nothing is mapped, see `superchunk._opening`.

    Examples
    --------
    >>> import array
    >>> s = SChunk(data=array.array("i", range(1000)), chunksize=400)
    >>> len(s), s.nchunks, s.typesize
    (1000, 10, 4)
    >>> array.array("i", s[250:253]).tolist()
    [250, 251, 252]

    """

    __slots__ = ()

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
            with publishing(handle), handle.opened().batch():
                if view is not None and view.nbytes:
                    append_bytes(handle.opened(), self._encoder, view)
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
        handle = open_handle(
            path,
            place.mode,
            mmap_mode=place.mmap_mode,
            initial_mapping_size=place.initial_mapping_size,
            deserialize=deserialize,
            locking=place.locking,
            sync=place.sync,
            seal=place.seal,
            compact_above=place.compact_above,
        )
        store = handle.opened()
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
        if handle.options.mode == "r" or handle.opened().nchunks:
            self.close()
            raise existing_data_error(handle.urlpath or "")
        try:
            append_bytes(handle.writing(), self._encoder, view)
        except BaseException:
            self.close()
            raise

    @classmethod
    def _of_handle(
        cls, handle: Handle, cparams: CParams | Mapping[str, Any] | None = None, dparams: DParams | None = None
    ) -> Self:
        """Return a SChunk on a store that exists."""
        schunk = cls.__new__(cls)
        schunk._attach_opened(handle, cparams, dparams or DParams())  # noqa: SLF001  (its own)
        return schunk

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

        Chunks are taken as they are, a few megabytes at a time, unless `cparams` are given:
        then they are compressed anew, special values excepted. With a postfilter the copy holds what reading
        gives, and has no postfilter; chunks of variable-length blocks, on which it does not run, stay as they are.

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
        store = self._handle.fresh()
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
        duplicate._attach(handle, chosen, decompress)  # noqa: SLF001  (of the same class)
        target = handle.opened()
        with publishing(handle):
            if cparams is None and self._postfilter is None:
                transfer(store, target, progress)
                return duplicate
            with store.steady(), target.batch():
                insert_groups(target, self._chunks_by(duplicate._encoder, progress))  # noqa: SLF001  (as above)
                for name, chunk in store.vlmeta.items():
                    target.set_vlmeta(name, chunk)
        return duplicate

    def __copy__(self) -> SChunk:
        """Return a copy in memory, as `copy` does: no change of one is seen by the other."""
        return self.copy(contiguous=self.contiguous)

    def __deepcopy__(self, memo: dict[int, Any]) -> SChunk:
        """Return the same as ``copy.copy``: a shallow copy shares nothing already."""
        return self.__copy__()

    def _chunks_by(self, encoder: Encoder, progress: Callable[[int, int], object] | None) -> Iterator[bytes]:
        """Yield each chunk compressed anew by `encoder`."""
        store = self._handle.opened()
        store.prove()
        for number in range(store.nchunks):
            store.check(number)
            source = store.source(number)
            info = _engine.describe(source)
            if info.vlblocks:
                yield encoder.vlblocks(self._decoder.read_vlblocks(source))
            elif info.special and self._postfilter is None:
                yield chunk_bytes(source)
            else:
                content = memoryview(bytearray(info.nbytes))
                self._decoder.read_chunk(store, number, info.nbytes, content)
                yield encoder.chunk_of_filled(content)
            if progress is not None:
                progress(number + 1, store.nchunks)


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
