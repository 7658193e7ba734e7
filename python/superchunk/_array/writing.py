"""Writing items of an array: chunk by chunk, all of it one change.

::

    covered whole    the value's own memory ── pack ──> chunk
    in part          chunk ── read_box ──> items, changed ── pack ──> chunk

The engine compresses straight out of the memory that holds the value, whatever its strides. A value of another dtype,
and the items of an `NDArray`, are converted for one chunk at a time. Padding that may come to light is zero in whatever
is written here. A chunk of one value becomes a special chunk.

Source: docs/format/b2nd.md, "Geometry" and "Changing".
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superchunk import _engine
from superchunk._array.assigned_values import ArrayValues, values_for
from superchunk._array.chunk_geometry import strides_of
from superchunk._array.compress_items import pack_items
from superchunk._array.slice_planner import OrthogonalSelection, PointSelection
from superchunk._codec.encoder import with_typesize
from superchunk.params import SpecialValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray as NumpyArray

    from superchunk._array.array_view import ArrayView
    from superchunk._array.slice_planner import Positions
    from superchunk._codec.encoder import Encoder
    from superchunk._store.store_interface import ChunkStore

__all__ = ["ChunkWriter", "write_selection"]

_ZEROS = (SpecialValue.ZERO.value, SpecialValue.UNINIT.value)
"""Special values that read as zeros."""


class _AxisPart(NamedTuple):
    """What one chunk coordinate of one dimension takes of a selection."""

    step: int
    """What it adds to the chunk number."""
    start: int
    """First coordinate of the chunk in this dimension."""
    length: int
    """Coordinates of the chunk that are inside the array."""
    local: slice | NumpyArray[np.int64]
    """Which of them are written."""
    given: slice | NumpyArray[np.int64]
    """Which positions of the selection are for them."""
    whole: bool
    """Whether all of them are, in order."""


class ChunkWriter:
    """Reads and compresses single chunks of an array for a change."""

    def __init__(self, view: ArrayView[ChunkStore], encoder: Encoder) -> None:
        geometry = view.geometry
        self._view = view
        self._encoder = encoder
        block_nbytes = geometry.layout.block_items * geometry.itemsize
        if encoder.cparams.blocksize == block_nbytes and encoder.cparams.typesize == geometry.itemsize:
            self._params = encoder.params
        else:  # the frame does not say it, or the handle was given other parameters
            self._params = encoder.params_of(with_typesize(encoder.cparams, geometry.itemsize, block_nbytes))

    def read(self, number: int, box: Sequence[tuple[int, int, int]]) -> NumpyArray[Any]:
        """Return the items of a box inside chunk `number`, which is compared with its seal."""
        view = self._view
        view.chunks.check(number)  # what stays of it is sealed anew
        items, buffer = view.geometry.empty(tuple(stop - start for start, stop, _ in box))
        view.decoder.read_box(view.chunks, view.geometry.native, [view.chunks.source(number)], box, buffer)
        return items

    def is_zero(self, number: int) -> bool:
        """Return whether chunk `number` is known to hold zeros only."""
        return _engine.describe(self._view.chunks.source(number)).special in _ZEROS

    def pack(self, items: NumpyArray[Any], number: int) -> bytes:
        """Return a chunk whose first items in each dimension are `items`, all others zero."""
        geometry = self._view.geometry
        if items.dtype != geometry.dtype:
            items = items.astype(geometry.dtype)
        whole = items.shape == geometry.layout.chunks and self._encoder.prefilter is None
        chunk = pack_items(geometry.native, self._params, items, whole=whole)
        if self._encoder.prefilter is None:
            return chunk
        content = self._view.decoder.decompress(self._view.chunks, chunk)
        return self._encoder.chunk(memoryview(content), number * geometry.chunk_nbytes)


def write_selection(
    view: ArrayView[ChunkStore],
    encoder: Encoder,
    selection: OrthogonalSelection | PointSelection,
    value: object,
    field: str | None = None,
) -> None:
    """Put `value` where a selection of what the user sees says; inside a batch of the store.

    Parameters
    ----------
    view
        The array.
    encoder
        Compresses the chunks.
    selection
        Of what the user sees of it.
    value
        A scalar, array, buffer, NDArray or ArrayView, which broadcasts to the selection's shape.
    field
        The field to change; None: the items.

    Raises
    ------
    ValueError
        The value does not broadcast, or cannot be cast.
    FormatError, StorageError
        A chunk of which something stays is damaged; writing failed.

    """
    geometry, store = view.geometry, view.chunks
    dtype = geometry.dtype if field is None else geometry.dtype[field]
    chosen = geometry.physical(selection)
    values = values_for(value, dtype, chosen)
    if 0 in selection.shape or (isinstance(chosen, OrthogonalSelection) and 0 in chosen.counts):
        return
    writer = ChunkWriter(view, encoder)
    if isinstance(chosen, PointSelection):
        _write_points(writer, view, chosen, values.all(), field)
        return
    dimensions = [
        _parts_of(axis, size, chunk, step)
        for axis, (size, chunk, step, *_) in zip(chosen.axes, geometry.axis_plans, strict=True)
    ]
    known: dict[tuple[int, ...], bytes] = {}
    uniform = isinstance(values, ArrayValues) and values.uniform and encoder.prefilter is None
    for parts in product(*dimensions):
        number = sum(part.step for part in parts)
        extent = tuple(part.length for part in parts)
        if field is None and all(part.whole for part in parts):
            chunk = known.get(extent)
            if chunk is None:
                chunk = writer.pack(values.part([part.given for part in parts]), number)
                if uniform:
                    known[extent] = chunk
            store.replace(number, chunk)
            continue
        given = values.part([part.given for part in parts])
        items = writer.read(number, [(part.start, part.start + part.length, 1) for part in parts])
        target = items if field is None else items[field]
        locals_ = [part.local for part in parts]
        if all(isinstance(local, slice) for local in locals_):
            target[tuple(locals_)] = given
        else:
            target[_crossed(locals_, extent)] = given
        store.replace(number, writer.pack(items, number))


def _crossed(positions: Sequence[slice | NumpyArray[np.int64]], extent: tuple[int, ...]) -> Any:
    """Return an index of all combinations of positions."""
    return np.ix_(
        *(
            np.arange(*part.indices(size)) if isinstance(part, slice) else part
            for part, size in zip(positions, extent, strict=True)
        )
    )


def _parts_of(axis: Positions, size: int, chunk: int, step: int) -> list[_AxisPart]:
    """Return which chunk coordinates of a dimension a selection meets, and what they take of it."""
    if not isinstance(axis, range):
        return _parts_of_list(axis, size, chunk, step)
    count = len(axis)
    backwards = axis.step < 0
    ahead = axis[::-1] if backwards else axis
    stride = ahead.step if count > 1 else 1
    first = ahead[0]
    parts = []
    done = 0
    while done < count:
        at = first + done * stride
        nchunk = at // chunk
        start = nchunk * chunk
        length = min(chunk, size - start)
        taken = min((start + length - 1 - at) // stride + 1, count - done)
        local = slice(at - start, at - start + (taken - 1) * stride + 1, stride)
        if backwards:
            stop = count - done - taken - 1
            given = slice(count - done - 1, stop if stop >= 0 else None, -1)
        else:
            given = slice(done, done + taken)
        parts.append(_AxisPart(nchunk * step, start, length, local, given, taken == length))
        done += taken
    return parts


def _parts_of_list(axis: NumpyArray[np.int64], size: int, chunk: int, step: int) -> list[_AxisPart]:
    """Return the parts of a list of positions; of equal ones the last counts."""
    order = np.argsort(axis, kind="stable")
    positions = axis[order]
    if len(positions) > 1:
        last = np.append(positions[1:] != positions[:-1], True)
        order, positions = order[last], positions[last]
    nchunks = positions // chunk
    edges = np.flatnonzero(np.append(True, nchunks[1:] != nchunks[:-1])).tolist()
    parts = []
    for low, high in zip(edges, [*edges[1:], len(positions)], strict=True):
        start = int(nchunks[low]) * chunk
        length = min(chunk, size - start)
        local = positions[low:high] - start
        parts.append(_AxisPart(start // chunk * step, start, length, local, order[low:high], high - low == length))
    return parts


def _write_points(
    writer: ChunkWriter, view: ArrayView[ChunkStore], points: PointSelection, given: NumpyArray[Any], field: str | None
) -> None:
    """Put items one by one; of several for one place the last counts."""
    geometry = view.geometry
    shape = points.shape
    nitems = prod(shape)
    number, _ = geometry.locate(points.coords)
    flat: Any = 0
    for axis, stride in zip(points.coords, strides_of(geometry.layout.shape), strict=True):
        flat = flat + axis * stride
    numbers = np.broadcast_to(number, shape).reshape(-1)
    flat = np.broadcast_to(flat, shape).reshape(-1)
    given = given.reshape((nitems, *given.shape[len(shape) :]))
    order = np.argsort(numbers, kind="stable")
    sorted_ = numbers[order]
    edges = np.flatnonzero(np.append(True, sorted_[1:] != sorted_[:-1])).tolist()
    for low, high in zip(edges, [*edges[1:], nitems], strict=True):
        mine = order[low:high]
        nchunk = int(sorted_[low])
        starts = [
            int(at) * chunk
            for at, chunk in zip(np.unravel_index(nchunk, geometry.layout.grid), geometry.layout.chunks, strict=True)
        ]
        box = [
            (start, min(start + chunk, size), 1)
            for start, chunk, size in zip(starts, geometry.layout.chunks, geometry.layout.shape, strict=True)
        ]
        items = writer.read(nchunk, box)
        target = items if field is None else items[field]
        if starts:
            coords = np.unravel_index(flat[mine], geometry.layout.shape)
            target[tuple(at - start for at, start in zip(coords, starts, strict=True))] = given[mine]
        else:  # a 0-d array, indexed by a scalar bool
            target[()] = given[mine[-1]]
        view.chunks.replace(nchunk, writer.pack(items, nchunk))
