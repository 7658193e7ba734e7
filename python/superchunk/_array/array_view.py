"""What array internals work on: the chunks of an array in one store, and the geometry that it has there.

::

    NDArray ── SChunk ── Handle ── ChunkStore     chunks and metalayers; several arrays may share them
       │ └──── ArrayGeometry                      until the metalayer's bytes or the number of chunks change
       └─ at a moment ──> ArrayView               decoder, list of chunks and geometry, for one read or one change

Internals take an `ArrayView` and return NumPy arrays, stores or a SChunk. Functions for users wrap those in an
`NDArray`; internals know that class by `NDArrayLike` alone.

Source: docs/format/b2nd.md; docs/format/cframe.md, "Concurrency".
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from superchunk._array.chunk_geometry import geometry_of
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard

    import numpy as np

    from superchunk._array.chunk_geometry import ArrayGeometry
    from superchunk._codec.decoder import Decoder
    from superchunk._schunk.handle import Handle
    from superchunk._store.store_interface import ChunkList, ChunkStore
    from superchunk.params import CParams, DParams
    from superchunk.schunk import SChunk

__all__ = ["ArrayView", "NDArrayLike", "is_ndarray", "memory_view", "read_geometry"]

Chunks = TypeVar("Chunks", bound="ChunkList", covariant=True)  # noqa: PLC0105

# While C-Blosc2 resizes a frame, chunks and shape do not go together for a moment; seconds.
_PAUSES = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)


class ArrayView(NamedTuple, Generic[Chunks]):
    """An array at one moment: what decodes its chunks, where they are, and how items lie in them."""

    decoder: Decoder
    """Decodes the chunks."""
    chunks: Chunks
    """The list of them for reading, the store for a change."""
    geometry: ArrayGeometry
    """Of the array, as `chunks` has it."""


class NDArrayLike(Protocol):
    """What internals ask of an `NDArray`."""

    schunk: SChunk
    _handle: Handle
    _base: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Items in each dimension."""
        ...

    @property
    def chunks(self) -> tuple[int, ...]:
        """Items of a chunk in each dimension."""
        ...

    @property
    def blocks(self) -> tuple[int, ...]:
        """Items of a block in each dimension."""
        ...

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        ...

    @property
    def size(self) -> int:
        """Number of items."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """What the items are."""
        ...

    @property
    def itemsize(self) -> int:
        """Bytes of an item."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of all items."""
        ...

    @property
    def chunksize(self) -> int:
        """Bytes of a chunk's items."""
        ...

    @property
    def cparams(self) -> CParams:
        """How chunks are compressed."""
        ...

    @property
    def dparams(self) -> DParams:
        """How chunks are decompressed."""
        ...

    def __len__(self) -> int:
        """Return the length of the first dimension."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first dimension."""
        ...

    def __getitem__(self, key: Any) -> Any:
        """Return the items that `key` means as a new NumPy array."""
        ...

    def _view_in(self, store: ChunkStore) -> ArrayView[ChunkStore]:
        """Return the array as it is in the present state of `store`."""
        ...


def is_ndarray(value: object) -> TypeGuard[NDArrayLike]:
    """Return whether a value is an `NDArray`."""
    return hasattr(type(value), "_view_in")


def memory_view(array: NDArrayLike) -> ArrayView[ChunkStore]:
    """Return a view of the items that an array has now, which no later change reaches."""
    from superchunk._store.memory_store import MemoryStore  # made here only

    return array._view_in(MemoryStore.over(array._handle.refreshed_store()))


def read_geometry(store: ChunkStore, layer: str) -> ArrayGeometry:
    """Return the geometry that a metalayer gives, which must go together with the chunks.

    Raises
    ------
    FormatError
        The layer is damaged, or contradicts the chunks.

    """
    for pause in _PAUSES if store.is_mutable and store.path is not None else ():
        try:
            return store.read_consistent(_geometry_in, layer)
        except FormatError:
            time.sleep(pause)
    return store.read_consistent(_geometry_in, layer)


def _geometry_in(chunks: ChunkList, layer: str) -> ArrayGeometry:
    typesize, nchunks = chunks.settings.typesize, chunks.nchunks
    geometry = geometry_of(chunks.meta[layer], typesize)
    if nchunks != geometry.nchunks or (nchunks and chunks.chunksize != geometry.chunk_nbytes):
        geometry.layout.check(typesize=typesize, chunksize=chunks.chunksize, nchunks=nchunks)
    if chunks.nbytes != geometry.padded_nbytes:
        expected = f"{geometry.nchunks} chunks of {geometry.chunk_nbytes}"
        raise FormatError("frame nbytes", at=0x1E, expected=expected, found=chunks.nbytes)
    return geometry
