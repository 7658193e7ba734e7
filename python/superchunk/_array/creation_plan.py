"""How a new array is made: from keywords to a checked plan, and from that to a container.

::

    keywords ── plan_array ──> ArrayPlan ── begin_array ──> SChunk without chunks ── fill ──> NDArray
                everything is checked here   written aside     special_chunks, or `filling`

A plan touches nothing. The file gets its name once all chunks are in it, in one commit, so that
after an error the path is as it was. Which values go into the chunks is the constructors' business.

Source: docs/format/b2nd.md, "Geometry" and "Arrays without items, and of one".
"""

from __future__ import annotations

import errno
import operator
import os
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from superchunk._array.partition import choose_partition
from superchunk._codec.encoder import with_typesize
from superchunk._codec.parameters import pipeline, settings_of
from superchunk._codec.plugins import check_available
from superchunk._format.b2nd import LAYERS, ArrayLayout
from superchunk._format.dtypes import dtype_text
from superchunk._format.frame_index import MAX_CHUNKS
from superchunk._format.metalayers import MAX_METALAYERS, PLACEHOLDERS
from superchunk._schunk.opening import check_storage, create_handle, exists, mode_of, pack_layers, publishing
from superchunk.exceptions import ArgumentError, KeywordError, StorageError
from superchunk.params import (
    MAX_DIM,
    NFILTERS,
    CParams,
    Storage,
    StorageDict,
    as_cparams,
    as_dparams,
    changed_defaults,
    default_nthreads,
    from_fields,
    number_of,
)
from superchunk.schunk import SChunk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import DTypeLike

    from superchunk._array.partition import Lengths
    from superchunk._store.options import Deserialize
    from superchunk.params import CParamsDict, DParams, DParamsDict

__all__ = [
    "ArrayKeywords",
    "ArrayPlan",
    "as_shape",
    "begin_array",
    "check_names",
    "plan_array",
    "storage_field",
]

_STORAGE_FIELDS: Final = frozenset(f.name for f in fields(Storage))
_KEYWORDS: Final = _STORAGE_FIELDS | {"chunks", "blocks", "cparams", "dparams", "storage"}
_UNICODE_METAS: Final = (*(0,) * (NFILTERS - 1), 4)
"""Numbers of the usual filters for text: a character has four bytes."""


class ArrayKeywords(StorageDict, total=False):
    """The keywords of every constructor of arrays."""

    chunks: Lengths | None
    blocks: Lengths | None
    cparams: CParams | CParamsDict | None
    dparams: DParams | DParamsDict | None
    storage: Storage | StorageDict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayPlan:
    """All that a new array is going to be but its items, checked."""

    layout: ArrayLayout
    """Shape, chunks, blocks and the text of the dtype."""
    dtype: np.dtype[Any]
    """Of an item."""
    cparams: CParams
    """With the typesize of the dtype and the size of the blocks."""
    dparams: DParams
    """How the array will decompress."""
    storage: Storage
    """Where it will be."""
    layers: Mapping[str, bytes]
    """The fixed metalayers, that of the array first."""
    deserialize: Deserialize = "safe"
    """Which extension values its metadata may hold."""


def plan_array(
    shape: object,
    dtype: DTypeLike,
    keywords: Mapping[str, Any],
    *,
    layers: Mapping[str, bytes] | None = None,
) -> ArrayPlan:
    """Check everything that a constructor was given.

    Parameters
    ----------
    shape
        Items in each dimension: an int, a tuple or a list.
    dtype
        Of an item. The dimensions of a sub-array are added to the shape.
    keywords
        Those of `ArrayKeywords`.
    layers
        Fixed metalayers, raw, that a copy takes over; `meta` cannot be given then.

    Raises
    ------
    KeywordError
        An unknown keyword.
    AttributeError
        `storage` and one of its fields.
    TypeError
        A shape of another type; items that are objects; a field that `cparams` or `dparams` does
        not have.
    ArgumentError
        Shapes that are too large or contradict each other; a ValueError and a RuntimeError.
    ValueError
        Arguments that do not go together.
    StorageError
        Something is at the path already, and `mode` is not "w".

    """
    check_names(keywords)
    place = _place_of(keywords)
    wanted = as_shape(shape)
    kind = _checked_dtype(dtype)
    if kind.subdtype is not None:
        kind, inner = kind.subdtype
        wanted = as_shape((*wanted, *inner))
    text = dtype_text(kind)
    given = keywords.get("cparams")
    asked = None if given is None and not changed_defaults() else _cparams_of(given, kind)
    chunks, blocks = keywords.get("chunks"), keywords.get("blocks")
    if chunks is None and blocks is None:
        layout = _chosen_layout(wanted, kind.itemsize, text)
    else:
        layout = _layout_of(wanted, kind.itemsize, text, chunks, blocks)
    block_nbytes = layout.block_items * kind.itemsize
    if asked is None:
        compress = _default_cparams(kind.itemsize, block_nbytes, kind.kind == "U", default_nthreads())
    else:
        compress = with_typesize(asked, kind.itemsize, block_nbytes)
    decompress = as_dparams(keywords.get("dparams"))
    check_available(
        number_of(compress.codec),
        pipeline(compress)[0],
        max(compress.nthreads, decompress.nthreads),
    )
    return ArrayPlan(
        layout=layout,
        dtype=kind,
        cparams=compress,
        dparams=decompress,
        storage=place,
        layers=_layers_of(layout, place, layers),
    )


def _layout_of(
    shape: tuple[int, ...], itemsize: int, text: str, chunks: Lengths | None, blocks: Lengths | None
) -> ArrayLayout:
    """Return the layout of an array, with chunks and blocks chosen where they are not given."""
    chosen = choose_partition(shape, itemsize, chunks, blocks)
    layout = ArrayLayout(shape, *chosen, text)
    if layout.nchunks > MAX_CHUNKS:
        msg = f"chunks: expected at most {MAX_CHUNKS} chunks, got {layout.nchunks} of {chosen[0]}; choose larger ones"
        raise ArgumentError(msg)
    return layout


@lru_cache(maxsize=64)
def _chosen_layout(shape: tuple[int, ...], itemsize: int, text: str) -> ArrayLayout:
    """Return the layout of an array that is cut as we choose, kept for the next of its kind."""
    return _layout_of(shape, itemsize, text, None, None)


@lru_cache(maxsize=64)
def _default_cparams(itemsize: int, blocksize: int, is_text: bool, nthreads: int) -> CParams:
    """Return how items are compressed if nobody says how."""
    if is_text:
        return CParams(typesize=itemsize, blocksize=blocksize, nthreads=nthreads, filters_meta=_UNICODE_METAS)
    return CParams(typesize=itemsize, blocksize=blocksize, nthreads=nthreads)


def as_shape(shape: object) -> tuple[int, ...]:
    """Return a shape as a tuple of ints.

    Raises
    ------
    TypeError
        It is no int, tuple or list, or holds something else than ints.
    ArgumentError
        A length below 0, or more than 16 dimensions.

    """
    if isinstance(shape, (tuple, list)):
        lengths = shape
    elif hasattr(shape, "__index__") and not isinstance(shape, np.ndarray):
        lengths = (shape,)
    else:
        msg = f"shape: expected an int, a tuple or a list, got {type(shape).__name__}"
        raise TypeError(msg)
    checked = tuple(operator.index(length) for length in lengths)
    if len(checked) > MAX_DIM:
        msg = f"shape: expected at most {MAX_DIM} dimensions, got {len(checked)}"
        raise ArgumentError(msg)
    if any(length < 0 for length in checked):
        msg = f"shape: expected lengths of 0 or more, got {checked}"
        raise ArgumentError(msg)
    return checked


@contextmanager
def begin_array(plan: ArrayPlan) -> Iterator[SChunk]:
    """Make the container of an array, to be filled inside the block.

    Its file gets its name at the end of the block, with everything in it; an error drops it.

    Raises
    ------
    ArgumentError
        What is at the path may not be replaced.
    StorageError
        The file cannot be made or written.

    """
    layout, cparams = plan.layout, plan.cparams
    handle = create_handle(
        plan.storage,
        settings_of(cparams, plan.dparams.nthreads),
        layout.chunk_items * plan.dtype.itemsize,
        plan.layers,
        publish=False,
        deserialize=plan.deserialize,
    )
    schunk = SChunk.__new__(SChunk)
    schunk._attach(handle, cparams, plan.dparams)
    with publishing(handle), handle.store.batch():
        schunk._encoder.check()
        yield schunk


def check_names(keywords: Mapping[str, Any]) -> None:
    """Raise KeywordError when a keyword is not known."""
    for name in keywords:
        if name not in _KEYWORDS:
            raise KeywordError(name, sorted(_KEYWORDS))


def storage_field(keywords: Mapping[str, Any], name: str) -> Any:
    """Return a field of `Storage` that is given as a keyword or in ``storage=``; None if it is not."""
    storage = keywords.get("storage")
    if isinstance(storage, Storage):
        return getattr(storage, name)
    return (keywords if storage is None else storage).get(name)


def _place_of(keywords: Mapping[str, Any]) -> Storage:
    """Return where the array will be, after a look at what is there."""
    given = {name: value for name, value in keywords.items() if name in _STORAGE_FIELDS}
    storage = keywords.get("storage")
    if storage is not None and given:
        msg = f"storage and {next(iter(given))}: expected the object or its fields, got both"
        raise AttributeError(msg)
    if not isinstance(storage, Storage):
        storage = from_fields(Storage, given if storage is None else storage)
    place = check_storage(storage)
    mode, path = mode_of(place), place.urlpath
    if mode == "r" or place.mmap_mode in {"r+", "c"}:
        msg = f"mode {place.mmap_mode or mode!r}: an array is made, which takes mode 'w' or 'a', at {path}"
        raise ArgumentError(msg)
    if path is not None and mode != "w" and exists(os.fspath(path)):
        raise StorageError(errno.EEXIST, "exists; use mode='w' to replace it, or open() to use it", os.fspath(path))
    return place


def _checked_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return a dtype of fixed size; an S or U without a length has 1, as in NumPy."""
    kind = np.dtype(dtype)
    if kind.hasobject or kind.kind in "OT":
        msg = f"dtype: expected items of plain bytes, got Python objects ({kind})"
        raise TypeError(msg)
    if not kind.itemsize and kind.kind in "SU":
        sized: np.dtype[Any] = np.empty(0, kind).dtype
        return sized
    return kind


def _cparams_of(given: CParams | CParamsDict | None, dtype: np.dtype[Any]) -> CParams:
    """Return how to compress items of `dtype`."""
    for name in ("chunks", "blocks"):
        if isinstance(given, Mapping) and name in given:
            msg = f"cparams: {name} is a keyword of the constructor, not a field of CParams"
            raise ValueError(msg)
    if given is None and dtype.kind == "U" and not changed_defaults().keys() & {"filters", "filters_meta"}:
        given = {"filters_meta": _UNICODE_METAS}
    return as_cparams(given, dtype.itemsize)


def _layers_of(layout: ArrayLayout, place: Storage, layers: Mapping[str, bytes] | None) -> dict[str, bytes]:
    """Return all fixed metalayers, that of the array first."""
    if layers is not None and place.meta is not None:
        msg = "meta: a copy has the metalayers of its original"
        raise ValueError(msg)
    others = pack_layers(place) if layers is None else layers
    for name in PLACEHOLDERS.intersection(others):
        msg = f"meta: expected no {name!r}, which says of a frame that its chunks are not its data"
        raise ArgumentError(msg)
    for name in LAYERS:
        if layers is None and name in others:
            msg = f"meta[{name!r}]: expected another name, this one is the array's own"
            raise ValueError(msg)
    kept = {name: content for name, content in others.items() if name not in LAYERS}
    if len(kept) >= MAX_METALAYERS:
        msg = f"meta: expected at most {MAX_METALAYERS - 1} metalayers beside the array's own, got {len(kept)}"
        raise ArgumentError(msg)
    return {LAYERS[0]: layout.to_bytes(), **kept}
