"""One array from several: `concat`, `stack`, and `from_pieces` for parts that come one by one.

Nothing is put together in memory: a chunk is made of the parts that meet it. One that an array has already, with
the same place and compressed in the same way, is taken as it is.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from superchunk import _engine
from superchunk._array.array_sources import Source, source_of
from superchunk._array.creation_plan import plan_array
from superchunk._array.filling import build_array
from superchunk._array.ndarray import NDArray
from superchunk._array.pinned_reads import pinned
from superchunk._codec.block_shape import is_shaped
from superchunk._codec.parameters import as_recorded
from superchunk._codec.stored_chunks import chunk_bytes
from superchunk.exceptions import ArgumentError
from superchunk.params import MAX_DIM, number_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeGuard, Unpack

    from numpy.typing import DTypeLike

    from superchunk._array.array_sources import Casting
    from superchunk._array.creation_plan import ArrayKeywords, ArrayPlan
    from superchunk._array.filling import Box
    from superchunk.params import CParams

__all__ = ["concat", "concatenate", "stack"]

_LEAST_CHUNK = 2**16
"""Bytes of a chunk that is worth being kept when arrays are stacked; as many as a block has by default."""


def concat(
    arrays: Sequence[object],
    /,
    axis: int = 0,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return arrays joined along an axis that they have.

    Parameters
    ----------
    arrays
        One or more: what `asarray` takes. Shapes may differ along `axis` only.
    axis
        Along which; negative counts from the last.
    dtype
        None: the one that NumPy would choose for all.
    casting
        What may be cast to `dtype`.
    **kwargs
        As for `zeros`. Chunks and blocks not given are those of the first array, if it is an NDArray without a length
        of 0. So are cparams if the dtype stays.

    Raises
    ------
    ValueError
        There is no array, shapes do not fit, there is no such axis; or as `zeros`.
    TypeError
        Items cannot be cast by that rule.
    StorageError
        Something is at the path and `mode` is not "w", or writing failed.

    Examples
    --------
    >>> concat([[1, 2], [3]])[:].tolist()
    [1, 2, 3]

    """
    given = list(arrays)
    with pinned(given):
        sources = _sources(given, dtype, casting)
        return _joined(sources, _axis_of(axis, len(sources[0].shape)), given, kwargs)


concatenate = concat


def stack(
    arrays: Sequence[object],
    axis: int = 0,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return arrays of one shape joined along a new axis.

    Parameters
    ----------
    arrays
        One or more: what `asarray` takes.
    axis
        Where the new axis is in the result; negative counts from the last.
    dtype, casting, **kwargs
        As for `concat`, with length 1 along the new axis; chunks of less than 64 KiB are not taken over.

    Raises
    ------
    ValueError
        There is no array, shapes differ, there is no such axis, there would be over 16 dimensions; or
        as `zeros`.
    TypeError, StorageError
        As for `concat`.

    Examples
    --------
    >>> stack([[1, 2], [3, 4]], axis=1)[:].tolist()
    [[1, 3], [2, 4]]

    """
    given = list(arrays)
    with pinned(given):
        return _stacked(_sources(given, dtype, casting), axis, given, kwargs)


def _stacked(sources: list[Source], axis: int, given: Sequence[object], keywords: ArrayKeywords) -> NDArray:
    """Return sources of one dtype joined along a new axis."""
    shape = sources[0].shape
    for number, source in enumerate(sources):
        if source.shape != shape:
            msg = f"arrays[{number}]: expected shape {shape}, that of the first, got {source.shape}"
            raise ArgumentError(msg)
    if len(shape) >= MAX_DIM:
        msg = f"arrays: expected at most {MAX_DIM - 1} dimensions, got {len(shape)}"
        raise ArgumentError(msg)
    place = _axis_of(axis, len(shape) + 1)
    return _joined([_expanded(source, place) for source in sources], place, given, keywords, added=True)


def _sources(arrays: Sequence[object], dtype: DTypeLike | None, casting: Casting) -> list[Source]:
    """Return what the arrays hold, all of one dtype."""
    sources = [source_of(array) for array in arrays]
    if not sources:
        msg = "arrays: expected at least one, got none"
        raise ArgumentError(msg)
    kind = np.result_type(*(source.dtype for source in sources)) if dtype is None else np.dtype(dtype)
    return [source.cast(kind, casting) for source in sources]


def _axis_of(axis: int, ndim: int) -> int:
    """Return an axis counted from the first."""
    wanted = operator.index(axis)
    if not -ndim <= wanted < ndim:
        msg = f"axis: expected {-ndim} to {ndim - 1}, got {axis}" if ndim else "axis: expected arrays with dimensions"
        raise np.exceptions.AxisError(msg)
    return wanted % ndim


def _expanded(source: Source, axis: int) -> Source:
    """Return a source with a new dimension of length 1."""
    shape = (*source.shape[:axis], 1, *source.shape[axis:])
    return Source(shape, source.dtype, lambda box: np.expand_dims(source.read((*box[:axis], *box[axis + 1 :])), axis))


def _joined(
    sources: list[Source], axis: int, given: Sequence[object], keywords: ArrayKeywords, *, added: bool = False
) -> NDArray:
    """Return an array of sources of one dtype, one behind the other along `axis`.

    `given` is what they are of, without that axis if it was `added`.
    """
    shape = sources[0].shape
    for number, source in enumerate(sources):
        if len(source.shape) != len(shape) or any(
            i != axis and length != other for i, (length, other) in enumerate(zip(source.shape, shape, strict=False))
        ):
            msg = f"arrays[{number}]: expected a shape like {shape} but for axis {axis}, got {source.shape}"
            raise ArgumentError(msg)
    ends = list(accumulate(source.shape[axis] for source in sources))
    whole = (*shape[:axis], ends[-1], *shape[axis + 1 :])
    new_axis = axis if added else None
    plan = plan_array(whole, sources[0].dtype, _like_first(given[0], sources[0].dtype, keywords, new_axis))

    def read(box: Box) -> np.ndarray[Any, Any]:
        start, stop = box[axis].start, box[axis].stop
        parts = []
        number = bisect_right(ends, start)
        while start < stop:
            begin, end = ends[number] - sources[number].shape[axis], min(ends[number], stop)
            if start < end:
                parts.append(sources[number].read((*box[:axis], slice(start - begin, end - begin), *box[axis + 1 :])))
                start = end
            number += 1
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis)

    wanted = replace(as_recorded(plan.cparams), nthreads=1)
    held = [_ChunksHeld(one, new_axis) if _fits(one, plan, wanted, new_axis) else None for one in given]

    def ready(box: Box) -> bytes | None:
        number = bisect_right(ends, box[axis].start)
        chunks = held[number]
        if chunks is None or box[axis].stop > ends[number]:
            return None
        begin = ends[number] - sources[number].shape[axis]
        return chunks.at([edge.start - begin if at == axis else edge.start for at, edge in enumerate(box)])

    return NDArray(build_array(plan, read, ready=ready if any(held) else None))


def _like_first(first: object, dtype: np.dtype[Any], keywords: ArrayKeywords, new_axis: int | None) -> dict[str, Any]:
    """Return the keywords, with chunks, blocks and cparams of the first array where they are not given."""
    chosen: dict[str, Any] = dict(cast("dict[str, Any]", keywords))
    if isinstance(first, NDArray) and "chunks" not in chosen and "blocks" not in chosen and 0 not in first.chunks:
        if new_axis is None or first.chunksize >= _LEAST_CHUNK:
            chosen.update(chunks=_with_one(first.chunks, new_axis), blocks=_with_one(first.blocks, new_axis))
        if chosen.get("cparams") is None and first.dtype == dtype:
            chosen["cparams"] = first.cparams
    return chosen


def _with_one(lengths: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    """Return lengths with one of 1 put in; as they are without an `axis`."""
    return lengths if axis is None else (*lengths[:axis], 1, *lengths[axis:])


def _fits(given: object, plan: ArrayPlan, wanted: CParams, new_axis: int | None) -> TypeGuard[NDArray]:
    """Return whether chunks of `given`, which has no `new_axis`, are as the new array makes them, by `wanted`."""
    if not isinstance(given, NDArray) or given._base is not None or given.schunk._decoder.postfilter is not None:
        return False
    held, new = given._geometry.layout, plan.layout
    lengths = (_with_one(held.chunks, new_axis), _with_one(held.blocks, new_axis))
    if (given.dtype, *lengths) != (plan.dtype, new.chunks, new.blocks):
        return False
    if new_axis is not None and is_shaped(number_of(wanted.codec), bytes(map(number_of, wanted.filters))):
        return False  # one dimension more, and the same bytes mean something else
    return replace(as_recorded(given.cparams), nthreads=1) == wanted


class _ChunksHeld:
    """The chunks of an array, to be taken as they are.

    Parameters
    ----------
    array
        Which.
    new_axis
        The dimension of length 1 that it has besides in the result, if any.

    """

    def __init__(self, array: NDArray, new_axis: int | None) -> None:
        self._store = array._handle.store
        self._geometry = array._geometry
        self._new_axis = new_axis

    def at(self, starts: Sequence[int]) -> bytes | None:
        """Return the chunk that begins at an item, if one does; it is compared with its seal."""
        geometry = self._geometry
        number = geometry.chunk_starting_at([start for at, start in enumerate(starts) if at != self._new_axis])
        if number is None:
            return None
        source = self._store.source(number)
        info = _engine.describe(source)
        blocksize = geometry.layout.block_items * geometry.itemsize
        if info.nbytes != geometry.chunk_nbytes or (info.blocksize != blocksize and not info.special):
            return None
        self._store.check(number)
        return chunk_bytes(source)
