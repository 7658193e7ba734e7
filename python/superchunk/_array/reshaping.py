"""New arrays of an array's items in other places: a slice of it, another shape, dimensions in another order.

For each chunk of the new array its box is read and compressed, so that memory stays bounded by a few chunks.
Copies whose items stay where they are, chunks taken over as they are among them, are made in `asarray`.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from superchunk._array.array_sources import source_of
from superchunk._array.array_view import is_ndarray
from superchunk._array.creation_plan import as_shape, plan_array
from superchunk._array.filling import ChunkRow, build_array
from superchunk._array.pinned_reads import pinned
from superchunk._array.slice_planner import expanded, select
from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray as NumpyArray

    from superchunk._array.array_view import NDArrayLike
    from superchunk._array.filling import Box
    from superchunk.schunk import SChunk

__all__ = ["permuted", "reshaped", "sliced"]

_ROWS_NBYTES: Final = 2**25
"""Bytes of the rows that a box is cut from, up to which they are read whole and held for the next box."""


def sliced(array: NDArrayLike, key: object, keywords: Mapping[str, Any]) -> SChunk:
    """Return what an index means as a new array, compressed in the same way; see `NDArray.slice`."""
    with pinned((array,)):
        return _sliced(array, key, keywords)


def _sliced(array: NDArrayLike, key: object, keywords: Mapping[str, Any]) -> SChunk:
    shape = array.shape
    selection = select(key, shape)
    given = dict(keywords)
    if given.get("cparams") is None:
        given["cparams"] = array.cparams
    if given.get("dparams") is None:
        given["dparams"] = array.dparams
    plan = plan_array(selection.shape, array.dtype, given)
    entries = expanded(key, len(shape))
    if any(isinstance(entry, np.ndarray) for entry in entries):
        items = array[key]
        return build_array(plan, lambda box: items[(*box, ...)])
    parts = [entry for entry in entries if entry is not Ellipsis]
    return build_array(plan, lambda box: array[_inner_key(parts, shape, box)])


def _inner_key(parts: list[Any], shape: tuple[int, ...], box: Box) -> tuple[Any, ...]:
    """Return the index of a box of what the entries of an index mean."""
    key: list[Any] = []
    edges = iter(box)
    axis = 0
    for part in parts:
        if part is None:
            next(edges)
            key.append(None)
            continue
        if isinstance(part, slice):
            edge = next(edges)
            chosen = range(*part.indices(shape[axis]))[edge]
            stop = chosen.stop if chosen.stop >= 0 else None
            key.append(slice(chosen.start, stop, chosen.step))
        else:
            key.append(part)
        axis += 1
    return tuple(key)


def reshaped(array: NDArrayLike, shape: Any, keywords: Mapping[str, Any], *, c_order: bool) -> SChunk:
    """Return a one-dimensional array's items in another shape; see `NDArray.reshape`."""
    with pinned((array,)):
        return _reshaped(array, as_shape(shape), keywords, c_order=c_order)


def _reshaped(array: NDArrayLike, wanted: tuple[int, ...], keywords: Mapping[str, Any], *, c_order: bool) -> SChunk:
    if array.ndim != 1:
        msg = f"reshape: expected an array of 1 dimension, got {array.ndim}"
        raise ArgumentError(msg)
    if prod(wanted) != array.size:
        msg = f"shape: expected {array.size} items, got {prod(wanted)} in {wanted}"
        raise ArgumentError(msg)
    given = dict(keywords)
    if given.get("cparams") is None:
        given["cparams"] = array.cparams
    plan = plan_array(wanted, array.dtype, given)
    produce = _rows_of(array, wanted) if c_order else _run_of(array)
    return build_array(plan, produce)


def _run_of(array: NDArrayLike) -> Callable[[Box], NumpyArray[Any]]:
    """Return what gives each box the next items."""
    done = 0

    def produce(box: Box) -> NumpyArray[Any]:
        nonlocal done
        shape = tuple(edge.stop - edge.start for edge in box)
        start, done = done, done + prod(shape)
        found: NumpyArray[Any] = array[start:done].reshape(shape)
        return found

    return produce


def _rows_of(array: NDArrayLike, shape: tuple[int, ...]) -> Callable[[Box], NumpyArray[Any]]:
    """Return what gives each box its items in C order, keeping the rows that the last box was cut from."""
    row = prod(shape[1:])
    rows_held = ChunkRow(lambda start, stop: array[start * row : stop * row].reshape((stop - start, *shape[1:])))

    def produce(box: Box) -> NumpyArray[Any]:
        if not box:
            found: NumpyArray[Any] = array[0]
            return found
        if (box[0].stop - box[0].start) * row * array.itemsize <= _ROWS_NBYTES:
            return rows_held.read(box)
        places = [np.arange(edge.start, edge.stop, dtype=np.int64) for edge in box]
        flat = np.zeros((), np.int64)
        for line, size in zip(places, shape, strict=True):
            flat = flat[..., None] * size + line
        return np.asarray(array[flat])

    return produce


def permuted(array: object, axes: Sequence[int], keywords: Mapping[str, Any]) -> SChunk:
    """Return a copy with the dimensions in another order, `axes` of those that there are; see `permute_dims`.

    Chunks and blocks of an `NDArray` turn with it, if nothing else is asked for: each is then decoded once.
    """

    def placed(lengths: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(lengths[axis] for axis in axes)

    given = {name: value for name, value in keywords.items() if value is not None}
    if is_ndarray(array):
        if not given.keys() & {"chunks", "blocks"}:
            given.update(chunks=placed(array.chunks), blocks=placed(array.blocks))
        given.setdefault("cparams", array.cparams)
        given.setdefault("dparams", array.dparams)
    places = [axes.index(at) for at in range(len(axes))]
    with pinned((array,)):
        source = source_of(array)
        plan = plan_array(placed(source.shape), source.dtype, given)
        return build_array(plan, lambda box: source.read(tuple(box[at] for at in places)).transpose(axes))
