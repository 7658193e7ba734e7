"""What an array is made of: a super-chunk, and the form that its metalayer gives it now.

::

    NDArray ── SChunk ── Handle ── ChunkStore     chunks and metalayers; several arrays may share them
       └────── Form                               until the metalayer's bytes or the number of chunks change
    view ───── NDArray it came from, and which axes it shows

Every read and write begins with a look whether somebody changed the frame, and takes the form that it has
then. Writers elsewhere are followed as a SChunk follows them; with ``snapshot=True`` they are not.

Source: docs/format/b2nd.md; docs/format/cframe.md, "Concurrency".
"""

from __future__ import annotations

import time
from math import prod
from typing import TYPE_CHECKING, Any

from superchunk.arrays.form import form_of, view_form
from superchunk.exceptions import ArgumentError, FormatError
from superchunk.frame.b2nd import LAYERS
from superchunk.frame.metalayers import PLACEHOLDERS

if TYPE_CHECKING:
    from typing import Self

    import numpy as np

    from superchunk._handle import Handle
    from superchunk.arrays.form import Form
    from superchunk.meta import Meta, VlMeta
    from superchunk.params import CParams, DParams
    from superchunk.schunk import SChunk
    from superchunk.storage.base import ChunkStore

__all__ = ["ArrayBase"]

# While C-Blosc2 resizes a frame, chunks and shape do not go together for a moment; seconds.
_PAUSES = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)


class ArrayBase:
    """A super-chunk with the metalayer of an array."""

    __slots__ = ("__weakref__", "_axes", "_base", "_form", "_handle", "_layer", "schunk")

    schunk: SChunk
    """The super-chunk that holds the items."""
    _handle: Handle
    _layer: str
    _form: Form
    _base: ArrayBase | None
    _axes: tuple[int | None, ...]

    def __init__(self, schunk: SChunk) -> None:
        store = schunk._handle.opened()
        for layer in LAYERS:
            if layer in store.meta:
                break
        else:
            msg = f"schunk: expected one with the metalayer {LAYERS[0]!r}, got {list(store.meta)}"
            raise ArgumentError(msg)
        if not PLACEHOLDERS.isdisjoint(store.meta):
            from superchunk._placeholders import check_holds_data  # noqa: PLC0415  (few frames are placeholders)

            check_holds_data(schunk._handle)
        self.schunk = schunk
        self._handle = schunk._handle
        self._layer = layer
        self._base = None
        self._axes = ()
        self._form = store.steadily(lambda: self._read_form(store))

    @classmethod
    def _view_of(cls, base: ArrayBase, axes: tuple[int | None, ...]) -> Self:
        """Return a view that shows the axes of `base`, None for a new one of length 1."""
        if base._base is not None:
            axes = tuple(None if axis is None else base._axes[axis] for axis in axes)
            base = base._base
        view = cls.__new__(cls)
        view.schunk, view._handle, view._layer = base.schunk, base._handle, base._layer
        view._base, view._axes = base, axes
        view._form = view_form(base._form, axes)
        return view

    # The form.

    def _now(self, store: ChunkStore) -> Form:
        """Return the form that the array has in the present state of `store`."""
        form = self._form
        raw = store.meta[self._layer]
        if raw is form.raw and store.nchunks == form.nchunks:
            return form
        if raw == form.raw and store.nchunks == form.nchunks:
            form.raw = raw  # the same bytes, read again
            return form
        base = self._base
        if base is not None:
            self._form = view_form(base._now(store), self._axes)
            return self._form
        new = self._read_form(store)
        if (new.chunks, new.blocks, new.dtype) != (form.chunks, form.blocks, form.dtype):
            msg = f"b2nd layer of {self._handle.urlpath}"
            was, found = (f"chunks {f.chunks}, blocks {f.blocks} of {f.dtype}" for f in (form, new))
            raise FormatError(msg, at=0, expected=f"{was}, as when it was opened", found=f"{found}; open it again")
        self._form = new
        return new

    def _read_form(self, store: ChunkStore) -> Form:
        """Return the form that the metalayer gives, which must go together with the chunks."""
        for pause in _PAUSES if store.shifting and store.path is not None else ():
            try:
                return store.steadily(self._form_of, store)
            except FormatError:
                time.sleep(pause)
                store.refresh()
        return store.steadily(self._form_of, store)

    def _form_of(self, store: ChunkStore) -> Form:
        typesize, nchunks = store.settings.typesize, store.nchunks
        form = form_of(store.meta[self._layer], typesize)
        if nchunks != form.nchunks or (nchunks and store.chunksize != form.chunk_nbytes):
            form.layout.check(typesize=typesize, chunksize=store.chunksize, nchunks=nchunks)
        if store.nbytes != form.nchunks * form.chunk_nbytes:
            raise FormatError(
                "frame nbytes", at=0x1E, expected=f"{form.nchunks} chunks of {form.chunk_nbytes}", found=store.nbytes
            )
        return form

    def _fresh(self) -> Form:
        """Return the form after a look whether somebody changed the frame."""
        store = self._handle.fresh()
        return store.told(lambda: self._now(store))

    # Properties.

    @property
    def base(self) -> ArrayBase | None:
        """The array that a view shows, which it keeps alive; None for an array that is no view."""
        return self._base

    @property
    def shape(self) -> tuple[int, ...]:
        """Items in each dimension."""
        return self._fresh().shape

    @property
    def chunks(self) -> tuple[int, ...]:
        """Items of a chunk in each dimension."""
        return self._form.chunks

    @property
    def blocks(self) -> tuple[int, ...]:
        """Items of a block in each dimension."""
        return self._form.blocks

    @property
    def ext_shape(self) -> tuple[int, ...]:
        """The shape, padded to whole chunks."""
        form = self._fresh()
        return tuple(
            -(-size // chunk) * chunk if chunk else 0 for size, chunk in zip(form.shape, form.chunks, strict=True)
        )

    @property
    def ext_chunks(self) -> tuple[int, ...]:
        """The chunk shape, padded to whole blocks."""
        form = self._form
        return tuple(
            -(-chunk // block) * block if block else 0 for chunk, block in zip(form.chunks, form.blocks, strict=True)
        )

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._form.ndim

    @property
    def size(self) -> int:
        """Number of items."""
        return self._fresh().size

    @property
    def dtype(self) -> np.dtype[Any]:
        """What the items are."""
        return self._form.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an item."""
        return self._form.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all items, without the padding that `schunk.nbytes` counts."""
        return self.size * self._form.itemsize

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
        form = self._form
        return prod(form.chunks) * form.itemsize

    @property
    def blocksize(self) -> int:
        """Bytes of a block."""
        form = self._form
        return form.layout.block_items * form.itemsize

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
