"""`NDArray`: an array of any dtype and up to 16 dimensions, compressed in chunks, that slices as NumPy does.

::

    key ──> selection ──> reading, writing     items
    shape ──> resizing                         chunks come and go
    copies ──> copying, reshaping              new arrays

The class holds what an array is: a SChunk, and the geometry that its metalayer gives now. Its methods are thin, over
functions that take an `ArrayView`. A view (`squeeze`, `expand_dims`) has the array that it was made from as its base,
and the axes of that which it shows.

Source: docs/format/b2nd.md; docs/format/cframe.md, "Concurrency".
"""

from __future__ import annotations

import operator
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from superchunk._array.array_view import ArrayView, read_geometry
from superchunk._array.axes import axes_added, axes_left, checked_axes
from superchunk._array.chunk_geometry import view_geometry
from superchunk._array.chunkwise import blocks_of, chunk_infos, chunks_of, rows_of
from superchunk._array.fields import Fields, NDField
from superchunk._array.numpy_conversions import NumPyConversions
from superchunk._array.pinned_reads import changing
from superchunk._array.reading import read_box, read_into, read_item, read_key, read_small
from superchunk._array.resizing import append_items, resize_array
from superchunk._array.slice_planner import checked_indices, select, select_orthogonal, select_taken
from superchunk._array.writing import write_selection
from superchunk._display.info import ratio, size
from superchunk._format.b2nd import LAYERS
from superchunk._format.metalayers import PLACEHOLDERS
from superchunk._schunk.absent_names import elsewhere
from superchunk._schunk.pickling import reduced
from superchunk._schunk.shared_methods import ContextManaged
from superchunk.exceptions import ArgumentError, FormatError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import SupportsIndex, Unpack

    from numpy.typing import ArrayLike, DTypeLike
    from numpy.typing import NDArray as NumpyArray

    from superchunk._array.array_sources import Casting
    from superchunk._array.axes import Axes
    from superchunk._array.chunk_geometry import ArrayGeometry, BoxPlan
    from superchunk._array.chunkwise import ChunkInfoNDArray, Part
    from superchunk._array.creation_plan import ArrayKeywords
    from superchunk._array.slice_planner import OrthogonalSelection, PointSelection
    from superchunk._integrity.report import VerifyReport
    from superchunk._schunk.handle import Handle
    from superchunk._store.store_interface import ChunkList, ChunkStore
    from superchunk.meta import Meta, VlMeta
    from superchunk.params import CParams, DParams
    from superchunk.schunk import SChunk

    Selection = OrthogonalSelection | PointSelection

__all__ = ["NDArray", "OIndex"]


class NDArray(NumPyConversions, ContextManaged):
    """An n-dimensional array in a super-chunk.

    Made by `asarray`, `zeros` and their like, by `open`, or over a SChunk that has the metalayer.

    Parameters
    ----------
    schunk
        A SChunk with the metalayer ``b2nd`` (or ``caterva``).

    Raises
    ------
    ArgumentError
        It has none.
    FormatError
        The metalayer is damaged, or contradicts the chunks.

    Notes
    -----
    Concurrent reads are safe. Writes need exclusive access. ``a == a`` is True, and ``==`` with
    numbers or other arrays than NumPy's a TypeError, as ``>`` is; ``a[:] == b`` compares items.

    """

    __slots__ = ("__weakref__", "_axes", "_base", "_geometry", "_handle", "_layer", "schunk")

    schunk: SChunk
    """The super-chunk that holds the items."""
    _handle: Handle
    _layer: str
    _geometry: ArrayGeometry
    _base: NDArray | None
    _axes: tuple[int | None, ...]

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, schunk: SChunk) -> None:
        store = schunk._handle.store
        for layer in LAYERS:
            if layer in store.meta:
                break
        else:
            msg = f"schunk: expected one with the metalayer {LAYERS[0]!r}, got {list(store.meta)}"
            raise ArgumentError(msg)
        if not PLACEHOLDERS.isdisjoint(store.meta):
            from superchunk._integrity.placeholders import check_holds_data  # few frames are placeholders

            check_holds_data(schunk._handle)
        self.schunk = schunk
        self._handle = schunk._handle
        self._layer = layer
        self._base = None
        self._axes = ()
        self._geometry = read_geometry(store, layer)

    @classmethod
    def _view_of(cls, base: NDArray, axes: tuple[int | None, ...]) -> Self:
        """Return a view that shows the axes of `base`, None for a new one of length 1."""
        if base._base is not None:
            axes = tuple(None if axis is None else base._axes[axis] for axis in axes)
            base = base._base
        view = cls.__new__(cls)
        view.schunk, view._handle, view._layer = base.schunk, base._handle, base._layer
        view._base, view._axes = base, axes
        view._geometry = view_geometry(base._geometry, axes)
        return view

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> None:
            """Say who has what is not here; an AttributeError."""
            msg = f"{type(self).__name__!r} object has no attribute {name!r}{elsewhere(name)}"
            raise AttributeError(msg, name=name, obj=self)

    # The present state.

    def _geometry_in(self, chunks: ChunkList, store: ChunkStore) -> ArrayGeometry:
        """Return the geometry that the array has in a list of chunks, that of `store` in this moment.

        Raises
        ------
        FormatError
            The metalayer is damaged, or gives other chunks than when the array was opened.

        """
        geometry = self._geometry
        if chunks.meta[self._layer] == geometry.meta_bytes and chunks.nbytes == geometry.padded_nbytes:
            return geometry
        if self._base is not None:
            self._geometry = view_geometry(self._base._geometry_in(chunks, store), self._axes)
            return self._geometry
        new = read_geometry(store, self._layer)
        if (new.chunks, new.blocks, new.dtype) != (geometry.chunks, geometry.blocks, geometry.dtype):
            msg = f"b2nd layer of {self._handle.urlpath}"
            was, found = (f"chunks {one.chunks}, blocks {one.blocks} of {one.dtype}" for one in (geometry, new))
            raise FormatError(msg, at=0, expected=f"{was}, as when it was opened", found=f"{found}; open it again")
        self._geometry = new
        return new

    def _view_in(self, store: ChunkStore) -> ArrayView[ChunkStore]:
        """Return the array as it is in the present state of `store`."""
        return ArrayView(self.schunk._decoder, store, self._geometry_in(store, store))

    def _refreshed(self) -> ArrayGeometry:
        """Return the geometry after changes elsewhere are followed."""
        store = self._handle.refreshed_store()
        return store.in_one_state(lambda chunks: self._geometry_in(chunks, store))

    def _reading(self, read: Callable[[ArrayView[ChunkList]], NumpyArray[Any]]) -> NumpyArray[Any]:
        """Return what `read` reads of one committed state, the newest."""
        store = self._handle.store

        def read_in(chunks: ChunkList) -> NumpyArray[Any]:
            return read(ArrayView(self.schunk._decoder, chunks, self._geometry_in(chunks, store)))

        return store.read_consistent(read_in)

    # Properties.

    @property
    def base(self) -> NDArray | None:
        """The array that a view shows, which it keeps alive; None for an array that is no view."""
        return self._base

    @property
    def shape(self) -> tuple[int, ...]:
        """Items in each dimension."""
        return self._refreshed().shape

    @property
    def chunks(self) -> tuple[int, ...]:
        """Items of a chunk in each dimension."""
        return self._geometry.chunks

    @property
    def blocks(self) -> tuple[int, ...]:
        """Items of a block in each dimension."""
        return self._geometry.blocks

    @property
    def ext_shape(self) -> tuple[int, ...]:
        """The shape, padded to whole chunks."""
        geometry = self._refreshed()
        return tuple(
            -(-size // chunk) * chunk if chunk else 0
            for size, chunk in zip(geometry.shape, geometry.chunks, strict=True)
        )

    @property
    def ext_chunks(self) -> tuple[int, ...]:
        """The chunk shape, padded to whole blocks."""
        geometry = self._geometry
        return tuple(
            -(-chunk // block) * block if block else 0
            for chunk, block in zip(geometry.chunks, geometry.blocks, strict=True)
        )

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._geometry.ndim

    @property
    def size(self) -> int:
        """Number of items."""
        return self._refreshed().size

    @property
    def dtype(self) -> np.dtype[Any]:
        """What the items are."""
        return self._geometry.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an item."""
        return self._geometry.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all items, without the padding that `schunk.nbytes` counts."""
        return self.size * self._geometry.itemsize

    @property
    def cbytes(self) -> int:
        """Bytes of all compressed chunks; 32 for a special value that is not stored."""
        return self.schunk.cbytes

    @property
    def cratio(self) -> float:
        """That of the SChunk: its `nbytes`, padding included, by `cbytes`."""
        return self.schunk.cratio

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        return self.schunk.nchunks

    @property
    def chunksize(self) -> int:
        """Bytes of a chunk's items, without padding."""
        geometry = self._geometry
        return prod(geometry.chunks) * geometry.itemsize

    @property
    def blocksize(self) -> int:
        """Bytes of a block."""
        geometry = self._geometry
        return geometry.layout.block_items * geometry.itemsize

    @property
    def urlpath(self) -> str | None:
        """The file, None in memory."""
        return self.schunk.urlpath

    @property
    def cparams(self) -> CParams:
        """How chunks are compressed."""
        return self.schunk.cparams

    @property
    def dparams(self) -> DParams:
        """How chunks are decompressed."""
        return self.schunk.dparams

    @property
    def meta(self) -> Meta:
        """The fixed metalayers, a mapping."""
        return self.schunk.meta

    @property
    def vlmeta(self) -> VlMeta:
        """The variable metalayers, a mutable mapping."""
        return self.schunk.vlmeta

    @property
    def attrs(self) -> VlMeta:
        """The same as `vlmeta`."""
        return self.schunk.vlmeta

    # Reading.

    def __getitem__(self, key: Any) -> Any:
        """Return the items that `key` means as a new NumPy array, by NumPy's rules; 0-d for a single one.

        A str, or a list of them, names fields of a structured array: an `NDField`, or the items with
        those fields.

        Raises
        ------
        IndexError
            `key` is no index, or outside the array.
        ValueError
            There is no such field.
        FormatError
            A chunk is damaged.

        """
        if type(key) is str:
            return NDField(self, key)
        store = self._handle.store_if_open or self._handle.store
        geometry = self._geometry
        decoder = self.schunk._decoder
        direct = store.path is not None and decoder.postfilter is None and not decoder.verified
        if direct and type(key[-1] if type(key) is tuple and key else key) is int:
            place = geometry.item_at(key)
            if place is not None:
                items = read_item(store, self._layer, geometry, place)
                if items is not None:
                    return items
                direct = False  # nor would the item be read in one call as a box
        box = geometry.plan_box(key)
        if direct and box is not None and len(box[2]) == 1:
            items = read_small(store, self._layer, geometry, box)
            if items is not None:
                return items
        return store.read_consistent(self._read, store, key, geometry, box)

    def _read(
        self, chunks: ChunkList, store: ChunkStore, key: Any, planned: ArrayGeometry, box: BoxPlan | None
    ) -> NumpyArray[Any]:
        """Return the items that `key` means in a state of the store: of a `box`, where that was `planned` for it."""
        geometry = self._geometry_in(chunks, store)
        view = ArrayView(self.schunk._decoder, chunks, geometry)
        if geometry is not planned:
            box = geometry.plan_box(key)
        if box is not None:
            return read_box(view, box)
        if type(key) is list and key and all(isinstance(name, str) for name in key):
            return read_key(view, ())[key]
        return read_key(view, key)

    def get(self, key: Any = (), out: NumpyArray[Any] | None = None) -> NumpyArray[Any]:
        """Return ``array[key]``, in a given array if there is one.

        Parameters
        ----------
        key
            Any index but a field; the default means everything.
        out
            An array of the result's shape. Items are decoded straight into it if it is C-contiguous and of the array's
            dtype, and `key` has neither negative steps nor repeated or unordered positions. Otherwise items are cast
            and copied.

        Raises
        ------
        IndexError, FormatError
            As for ``array[key]``.
        ValueError
            `out` has another shape, or is read-only.
        TypeError
            `out` is no NumPy array.

        """
        return self._reading(lambda view: read_into(view, select(key, view.geometry.shape), out))

    @property
    def oindex(self) -> OIndex:
        """``array.oindex[rows, columns]``: a list of positions for each dimension, crossed; assignable too."""
        return OIndex(self)

    def get_fselection_numpy(self, key: Any) -> NumpyArray[Any]:
        """Return the same as ``array[key]``."""
        found: NumpyArray[Any] = self[key]
        return found

    def get_oselection_numpy(self, key: Any) -> NumpyArray[Any]:
        """Return the same as ``array.oindex[key]``."""
        return self.oindex[key]

    def set_oselection_numpy(self, key: Any, arr: object) -> None:
        """Do the same as ``array.oindex[key] = arr``."""
        self.oindex[key] = arr

    @property
    def fields(self) -> Fields:
        """The fields of a structured array by name, a read-only mapping; empty for other arrays."""
        return Fields(self)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first dimension, as NumPy does; several rows are decoded at a time."""
        return rows_of(self)

    def iterchunks(self) -> Iterator[Part]:
        """Iterate over the chunks: coordinates in the chunk grid, region of the array, and items.

        Yields
        ------
        Part
            ``(coords, region, items)``; padding is left out.

        """
        yield from chunks_of(self)

    def iterblocks(self) -> Iterator[Part]:
        """Iterate over the blocks, chunk by chunk: coordinates among all blocks, region of the array, and items.

        Where chunks are no whole blocks, the blocks at a chunk's edges are cut short. Coordinates count blocks from the
        array's start.

        Yields
        ------
        Part
            ``(coords, region, items)``; padding is left out.

        """
        yield from blocks_of(self)

    # Writing.

    def __setitem__(self, key: Any, value: object) -> None:
        """Put `value`, broadcast and cast as NumPy does, where `key` means; one commit.

        Raises
        ------
        IndexError
            `key` is no index, or outside the array.
        ValueError
            `value` does not broadcast to what `key` means, or the handle may only read.
        FormatError
            A chunk of which something stays is damaged; nothing has changed.
        StorageError
            Writing failed; nothing has changed.

        """
        if isinstance(key, str):
            NDField(self, key)[...] = value
            return
        self._put(value, lambda shape: select(key, shape))

    def _put(self, value: object, chosen: Callable[[tuple[int, ...]], Selection], field: str | None = None) -> None:
        """Write `value` where `chosen`, given the shape, says; into one field of the items if that is named."""
        store = self._handle.writable_store()
        with changing(store, value):
            view = self._view_in(store)
            write_selection(view, self.schunk._encoder, chosen(view.geometry.shape), value, field)

    # Shape.

    def resize(self, newshape: Sequence[SupportsIndex] | SupportsIndex) -> None:
        """Change the shape, in one commit; what appears is zeros.

        Parameters
        ----------
        newshape
            As many numbers as there are dimensions. Chunk and block shape stay.

        Raises
        ------
        ArgumentError
            Another number of dimensions, a length below 0, or chunks of length 0; a view. A ValueError.
        ReadOnlyError
            The handle may only read; a ValueError.
        StorageError
            Writing failed; nothing has changed.

        """
        given = (newshape,) if hasattr(newshape, "__index__") else newshape
        shape = tuple(map(operator.index, given))
        store = self._handle.writable_store()
        self._refuse_view("resize")
        with store.batch():
            geometry = resize_array(self._view_in(store), self.schunk._encoder, self._layer, shape)
        self._geometry = geometry

    def append(self, values: ArrayLike | NDArray, axis: int = 0) -> int:
        """Make the array grow by `values`, and return the new length along `axis`.

        Parameters
        ----------
        values
            For an array of one dimension anything, which is flattened; else as many dimensions as the
            array, and the same lengths but along `axis`. Cast to the dtype.
        axis
            Where the array grows.

        Notes
        -----
        As with `SChunk.append_data`, the new items are committed at once where that is cheap. Otherwise later appends,
        `flush` or `close` commit them.

        Raises
        ------
        ArgumentError
            The shapes do not go together, or this is a view; a ValueError.
        ReadOnlyError, StorageError
            The handle may only read; writing failed, and nothing has changed.

        """
        store = self._handle.writable_store()
        self._refuse_view("append")
        at = checked_axes(axis, self.ndim)[0] if self.ndim else -1
        if at < 0:
            msg = "append: expected an array of at least one dimension, got 0-d"
            raise ArgumentError(msg)
        with changing(store, values):
            geometry = append_items(self._view_in(store), self.schunk._encoder, self._layer, values, at)
        self._geometry = geometry
        return geometry.shape[at]

    def _refuse_view(self, what: str) -> None:
        if self._base is not None:
            msg = f"{what}: a view keeps its shape, {what} the array that it was made from"
            raise ArgumentError(msg)

    def squeeze(self, axis: Axes) -> NDArray:
        """Return a view without axes of length 1; see `superchunk.squeeze`."""
        return self._view_of(self, axes_left(self.shape, axis))

    def expand_dims(self, axis: Axes = 0) -> NDArray:
        """Return a view with new axes of length 1; see `superchunk.expand_dims`."""
        return self._view_of(self, axes_added(self.ndim, axis))

    @property
    def T(self) -> NDArray:  # noqa: N802  (NumPy's name)
        """A copy in memory with the dimensions in reverse order."""
        return self._permuted(range(self.ndim)[::-1])

    @property
    def mT(self) -> NDArray:  # noqa: N802  (NumPy's name)
        """A copy in memory with the last two dimensions in reverse order; without two that is a ValueError."""
        ndim = self.ndim
        if ndim < 2:  # rows and columns
            msg = f"mT: expected an array of at least two dimensions, got {ndim}"
            raise ArgumentError(msg)
        return self._permuted((*range(ndim - 2), ndim - 1, ndim - 2))

    def _permuted(self, axes: Sequence[int]) -> NDArray:
        from superchunk._array.reshaping import permuted  # few programs need it

        return NDArray(permuted(self, axes, {}))

    # Copies.

    def copy(self, dtype: DTypeLike | None = None, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
        """Return a copy, with all metalayers, in memory unless `urlpath` says otherwise.

        Chunks are taken as they are, unless dtype, partition or `cparams` change. Memory stays bounded by
        a few chunks.

        Parameters
        ----------
        dtype
            What to cast the items to.
        **kwargs
            Keywords of the constructors; chunks, blocks, cparams and dparams are this array's if not given.

        Raises
        ------
        ValueError
            `meta` is given, or something that does not go together.
        StorageError
            Something is at the path and `mode` is not "w"; writing failed.

        """
        from superchunk._array.ndarray_copy import copied  # reading programs do not need it

        return NDArray(copied(self, dtype, "unsafe", kwargs))

    def astype(
        self,
        dtype: DTypeLike,
        casting: Casting = "unsafe",
        copy: bool = True,
        **kwargs: Unpack[ArrayKeywords],
    ) -> NDArray:
        """Return a copy cast to `dtype`; the array itself if it has that and `copy` is False.

        Raises
        ------
        TypeError
            The cast is not allowed by `casting`.

        """
        wanted = np.dtype(dtype)
        if not np.can_cast(self.dtype, wanted, casting):
            msg = f"Cannot cast array data from {self.dtype!r} to {wanted!r} according to the rule {casting!r}"
            raise TypeError(msg)
        if not copy and wanted == self.dtype and not kwargs:
            return self
        return self.copy(wanted, **kwargs)

    def slice(self, key: Any, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
        """Return what `key` means as a new NDArray, compressed in the same way; user metadata is not copied.

        Raises
        ------
        IndexError
            `key` is no index, or outside the array.
        ValueError, StorageError
            As for the constructors.

        """
        from superchunk._array.reshaping import sliced  # few programs need it

        return NDArray(sliced(self, key, kwargs))

    def reshape(
        self,
        shape: Sequence[int] | int,
        c_order: bool = True,
        **kwargs: Unpack[ArrayKeywords],
    ) -> NDArray:
        """Return a one-dimensional array's items as a new array of another shape.

        Parameters
        ----------
        shape
            The new shape, of as many items.
        c_order
            In C order; False: one chunk after the other is filled, which is faster.
        **kwargs
            Keywords of the constructors.

        Raises
        ------
        ArgumentError
            The array has not one dimension, or another number of items; a ValueError.

        """
        from superchunk._array.reshaping import reshaped  # few programs need it

        return NDArray(reshaped(self, shape, kwargs, c_order=c_order))

    def save(self, urlpath: str | os.PathLike[str], contiguous: bool = True, **kwargs: Any) -> None:
        """Write a copy to a file, or with `contiguous` False to a directory.

        Parameters
        ----------
        urlpath, contiguous
            Where.
        **kwargs
            Other keywords of the constructors.

        Raises
        ------
        StorageError
            Something is there and `mode` is not "w"; writing failed.

        """
        self.copy(urlpath=urlpath, contiguous=contiguous, **kwargs).close()

    def to_cframe(self) -> bytes:
        """Return the array, metalayers included, as one contiguous frame."""
        return self.schunk.to_cframe() if self._base is None else self.copy().to_cframe()

    def take(self, indices: ArrayLike, *, axis: int | None = None) -> NDArray:
        """Return the items at positions along an axis as a new NDArray; see `superchunk.take`."""
        places = checked_indices(indices)
        at = None if axis is None else checked_axes(axis, self.ndim)[0]
        return self._selected_array(lambda shape: select_taken(places, at, shape))

    def _selected_array(self, chosen: Callable[[tuple[int, ...]], Selection]) -> NDArray:
        """Return the items that `chosen`, given the shape, selects as an array in memory."""
        from superchunk._array.ndarray_copy import packed_items  # few programs need it

        def read(view: ArrayView[ChunkList]) -> NumpyArray[Any]:
            selection = chosen(view.geometry.shape)
            return np.ascontiguousarray(read_into(view, selection, None)).reshape(selection.shape)

        return NDArray(packed_items(self._reading(read), {"cparams": self.cparams}))

    # Chunks.

    def get_chunk(self, nchunk: int) -> bytes:
        """Return chunk `nchunk`, compressed; see `SChunk.get_chunk`."""
        return self.schunk.get_chunk(nchunk)

    def iterchunks_info(self) -> Iterator[ChunkInfoNDArray]:
        """Iterate over what is known of each chunk without reading its data."""
        yield from chunk_infos(self, self._refreshed())

    @property
    def info_items(self) -> list[tuple[str, object]]:
        """The pairs of name and value that `info` shows."""
        return [
            ("type", type(self).__name__),
            ("shape", self.shape),
            ("chunks", self.chunks),
            ("blocks", self.blocks),
            ("dtype", self.dtype),
            ("nbytes", size(self.nbytes)),
            ("cbytes", size(self.cbytes)),
            ("cratio", ratio(self.cratio)),
            ("cparams", self.cparams),
            ("dparams", self.dparams),
        ]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: shape, dtype, sizes, codec, and how well the chunks are compressed."""
        from superchunk._array.array_card import array_card  # only notebooks draw it

        return array_card(self)

    def __repr__(self) -> str:
        """Return shape, dtype, partition and place in a line."""
        geometry = self._geometry
        place = "" if self.urlpath is None else f", urlpath={self.urlpath!r}"
        shape, closed = (geometry.shape, ", closed") if self._handle.store_if_open is None else (self.shape, "")
        parts = f"chunks={geometry.chunks}, blocks={geometry.blocks}"
        return f"NDArray(shape={shape}, dtype={geometry.dtype}, {parts}{place}{closed})"

    # Life.

    def refresh(self) -> bool:
        """Follow changes that others made, a snapshot too; return whether there were any."""
        changed = self.schunk.refresh()
        store = self._handle.store
        self._geometry_in(store, store)
        return changed

    def transaction(self) -> AbstractContextManager[object]:
        """Make all changes inside one commit; see `SChunk.transaction`."""
        return self.schunk.transaction()

    def flush(self) -> None:
        """Commit all changes, down to the disk."""
        self.schunk.flush()

    @property
    def dead_bytes(self) -> int:
        """Bytes of the file that nothing refers to; see `SChunk.dead_bytes`."""
        return self.schunk.dead_bytes

    def compact(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Give the dead bytes of the file back to the disk; see `SChunk.compact`."""
        self.schunk.compact(progress)

    def verify(
        self,
        *,
        decode: bool = False,
        nthreads: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> VerifyReport:
        """Check every part of what is on the disk; see `superchunk.verify`."""
        return self.schunk.verify(decode=decode, nthreads=nthreads, progress=progress)

    def close(self) -> None:
        """Write what is pending and close the file, for all views too; see `SChunk.close`."""
        self.schunk.close()

    # Sharing.

    @contextmanager
    def holding_lock(self) -> Iterator[Self]:
        """Hold the lock that other processes wait for over several operations.

        As `SChunk.holding_lock`; blocks of both may stand in each other.

        Raises
        ------
        StorageError
            The lock file cannot be made, locked or written.

        """
        with self.schunk.holding_lock():
            store = self._handle.store
            self._geometry_in(store, store)
            yield self

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as the path, to be opened there again for reading; a view as what it was made from.

        Raises
        ------
        TypeError
            It is in memory, or has changes that another process would miss.

        """
        if self._base is not None:
            return _viewed, (self._base, self._axes)
        schunk = self.schunk
        return reduced(self._handle, schunk.dparams, filtered=schunk._decoder.postfilter is not None, array=True)

    def __dask_tokenize__(self) -> tuple[object, ...]:
        """Return what Dask names results by, as `SChunk.__dask_tokenize__`; of a view with the axes that it shows.

        Raises
        ------
        ClosedError, StorageError
            It is closed, or its file cannot be read.

        """
        return ("superchunk.NDArray", self._axes, self._base is not None, *self.schunk.__dask_tokenize__())

    def __copy__(self) -> NDArray:
        """Return a copy in memory, as `copy` does: no change of one is seen by the other."""
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> NDArray:
        """Return the same as ``copy.copy``: a shallow copy shares nothing already."""
        return self.__copy__()


def _viewed(base: NDArray, axes: tuple[int | None, ...]) -> NDArray:
    """Return a view of an array that was opened again."""
    return base._view_of(base, axes)


class OIndex:
    """What ``array.oindex`` returns: positions of each dimension crossed, as `numpy.ix_` does.

    An entry may be an integer (which drops the dimension), a slice, a one-dimensional array of integers,
    or a mask.
    """

    __slots__ = ("_array",)

    def __init__(self, array: NDArray) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> NumpyArray[Any]:
        """Return the items where the positions cross.

        Raises
        ------
        IndexError
            A position is outside the array, or an array has several dimensions.

        """
        return self._array._reading(lambda view: read_into(view, select_orthogonal(key, view.geometry.shape), None))

    def __setitem__(self, key: Any, value: object) -> None:
        """Put `value` where the positions cross.

        Raises
        ------
        IndexError, ValueError, StorageError
            As for ``array[key] = value``.

        """
        self._array._put(value, lambda shape: select_orthogonal(key, shape))
