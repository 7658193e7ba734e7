"""The geometry of an array: its dtype and shapes, and which chunk holds an item, until its metalayer changes.

::

    b2nd metalayer ──> ArrayLayout ──> ArrayGeometry: dtype, geometry for the engine, strides of the chunk grid
                                        │
                                        └──> ArrayGeometry of a view: axes added, or left out

The arithmetic of chunk numbers and of places within a chunk is here, for boxes, lists of positions and points. So
the usual keys, an item and a box, are planned here, in one pass with their chunks; `slice_planner` plans all others.

An axis of length 1 may be put in anywhere without moving an item, and left out where its chunks have
length 1 too. Where they are longer it stays in the geometry and is hidden from the user.

Source: docs/format/b2nd.md, "Geometry".
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk import _engine
from superchunk._array.slice_planner import OrthogonalSelection, PointSelection
from superchunk._format.b2nd import ArrayLayout
from superchunk._format.dtypes import parse_dtype
from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    BoxPlan: TypeAlias = tuple[list[tuple[int, int, int]], tuple[int, ...], list[int]]
    """A box, ``(start, stop, 1)`` for each dimension; the shape of the result; the chunks that the box intersects."""

__all__ = ["SLAB_NBYTES", "ArrayGeometry", "fresh", "geometry_of", "strides_of", "view_geometry"]

_BYTE = np.dtype(np.uint8)
_SHORT = 1024
"""Bytes of the longest layer whose geometry is cached."""
SLAB_NBYTES = 2**24
"""Bytes of rows that are read at a time where an array is read piece by piece."""
_LARGE = 4 * 1024 * 1024
"""Bytes of an array from which on its memory is retained: below, the C library does that."""
_WHOLE = slice(None)


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in items, of a C-ordered array of `shape`."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


class ArrayGeometry:
    """Shape, dtype and geometry of an array.

    Parameters
    ----------
    meta_bytes
        The content of the metalayer, compared to notice when that changes.
    layout
        What the metalayer says.
    typesize
        Bytes of an item.
    shown
        For each dimension of `layout` the one that the user sees, -1 for a hidden one; None: all are
        shown as they are.
    blockshape
        Blocks as codecs and filters know them, which a view does not change; None: those of `layout`.

    """

    __slots__ = (
        "axis_plans",
        "blocks",
        "chunk_items",
        "chunk_nbytes",
        "chunks",
        "direct",
        "dtype",
        "itemsize",
        "layout",
        "meta_bytes",
        "native",
        "nchunks",
        "ndim",
        "padded_nbytes",
        "shape",
        "shown",
        "size",
        "steps",
        "tail",
    )

    def __init__(
        self,
        meta_bytes: bytes,
        layout: ArrayLayout,
        typesize: int,
        shown: tuple[int, ...] | None = None,
        blockshape: tuple[int, ...] | None = None,
    ) -> None:
        self.meta_bytes = meta_bytes
        self.layout = layout
        self.shown = shown
        self.itemsize = typesize
        self.dtype: np.dtype[Any] = parse_dtype(layout.dtype_text, typesize)
        self.shape = self.only_shown(layout.shape)
        self.chunks = self.only_shown(layout.chunks)
        self.blocks = self.only_shown(layout.blocks)
        self.ndim = len(self.shape)
        self.size = prod(self.shape)
        self.nchunks = layout.nchunks
        self.chunk_items = layout.chunk_items
        self.chunk_nbytes = layout.chunk_items * typesize
        self.padded_nbytes = layout.nchunks * self.chunk_nbytes
        """Bytes of all chunks, as the frame's header has them."""
        self.native = _engine.Geometry(layout.chunks, layout.blocks, typesize, blockshape)
        self.steps = strides_of(layout.grid) if layout.chunk_items else (0,) * layout.ndim
        """How much the chunk number grows with each chunk coordinate."""
        self.axis_plans = _axis_plans(layout, self.steps)
        """For each dimension what turns a coordinate into chunk number and place; see `_axis_plans`."""
        self.tail = (slice(None),) * self.ndim
        self.direct = _has_buffer(self.dtype)
        """Whether NumPy lends the bytes of an array of the dtype as they are."""

    def reshaped(self, meta_bytes: bytes, layout: ArrayLayout) -> ArrayGeometry:
        """Return the geometry of an array, not of a view, with another shape and all else as it is.

        Parameters
        ----------
        meta_bytes
            The metalayer that says so.
        layout
            That of this geometry, whose chunks hold something, but for the shape.

        """
        grid = layout.grid
        new = object.__new__(ArrayGeometry)
        for name in ArrayGeometry.__slots__:
            setattr(new, name, getattr(self, name))
        new.meta_bytes, new.layout, new.shape = meta_bytes, layout, layout.shape
        new.size, new.nchunks, new.steps = prod(layout.shape), prod(grid), strides_of(grid)
        new.padded_nbytes = new.nchunks * new.chunk_nbytes
        new.axis_plans = tuple(
            (size, chunk, step, block, between, within)
            for size, step, (_, chunk, _, block, between, within) in zip(
                layout.shape, new.steps, self.axis_plans, strict=True
            )
        )
        return new

    def only_shown(self, values: tuple[int, ...]) -> tuple[int, ...]:
        """Return what `values` says of the dimensions that the user sees."""
        if self.shown is None:
            return values
        return tuple(value for value, seen in zip(values, self.shown, strict=True) if seen >= 0)

    def physical(self, selection: OrthogonalSelection | PointSelection) -> OrthogonalSelection | PointSelection:
        """Return a selection of what the user sees as one of all dimensions."""
        shown = self.shown
        if shown is None:
            return selection
        if isinstance(selection, PointSelection):
            zero = np.zeros((1,) * len(selection.shape), np.int64)
            return PointSelection(
                tuple(zero if seen < 0 else selection.coords[seen] for seen in shown), selection.shape
            )
        axes = tuple(range(1) if seen < 0 else selection.axes[seen] for seen in shown)
        order = selection.order
        if order is not None:
            hidden = [axis for axis, seen in enumerate(shown) if seen < 0]
            order = (*hidden, *(shown.index(seen) for seen in order))
        return OrthogonalSelection(axes, selection.shape, order)

    def locate(self, coords: Sequence[Any]) -> tuple[Any, Any]:
        """Return chunk number and place in the chunk, in items, of coordinates in all dimensions.

        Coordinates are integers, or arrays of them that broadcast together; the results are of the same kind.
        """
        number: Any = 0
        place: Any = 0
        for at, (_, chunk, step, block, between, within) in zip(coords, self.axis_plans, strict=False):
            nchunk = at // chunk
            inner = at - nchunk * chunk
            number = number + nchunk * step
            place = place + inner // block * between + inner % block * within
        return number, place

    def item_at(self, key: object) -> int | None:
        """Return where the item is that a key of integers selects, in items from the first chunk's first.

        None for every other key, for integers below 0 and for those outside the array: this is one pass, for the
        most frequent reads.
        """
        entries = key if type(key) is tuple else (key,)
        if len(entries) != self.ndim or self.shown is not None:
            return None
        place = 0
        chunk_items = self.chunk_items
        for at, (size, chunk, step, block, between, within) in zip(entries, self.axis_plans, strict=False):
            if type(at) is not int or not 0 <= at < size:
                return None
            first, inner = divmod(at, chunk)
            place += first * step * chunk_items + inner // block * between + inner % block * within
        return place

    def plan_box(self, key: object) -> BoxPlan | None:
        """Return the box that ``array[key]`` means, and the chunks that it intersects.

        The result is None for an empty box, a position outside the array, a view with a hidden axis, and every key with
        something else than integers, slices of step 1 and an ellipsis: `select` plans those, and raises the errors.
        """
        if self.shown is not None or not self.nchunks:
            return None
        entries = key if type(key) is tuple else (key,)
        if len(entries) != self.ndim:
            return self._plan_filled(entries)
        box: list[tuple[int, int, int]] = []
        counts: list[int] = []
        number = 0
        lines: list[range] = []
        for entry, (size, chunk, step, _, _, _) in zip(entries, self.axis_plans, strict=True):
            if type(entry) is slice:
                start, stop, stride = entry.indices(size)
                if stride != 1 or start >= stop:
                    return None
                counts.append(stop - start)
            elif entry is Ellipsis:
                return self._plan_filled(entries)
            else:
                start = entry if type(entry) is int and 0 <= entry < size else _position(entry, size)
                if start < 0:
                    return None
                stop = start + 1
            box.append((start, stop, 1))
            first, last = start // chunk, (stop - 1) // chunk
            number += first * step
            if first != last:
                lines.append(range(0, (last - first) * step + 1, step))
        return box, tuple(counts), [*map(sum, product((number,), *lines))] if lines else [number]

    def _plan_filled(self, entries: tuple[Any, ...]) -> BoxPlan | None:
        """Return what `plan_box` does for entries with an ellipsis, or too few of them."""
        dots = [at for at, entry in enumerate(entries) if entry is Ellipsis]
        missing = self.ndim - len(entries) + len(dots)
        if missing < 0 or len(dots) > 1:
            return None
        at = dots[0] if dots else len(entries)
        return self.plan_box((*entries[:at], *(_WHOLE,) * missing, *entries[at + len(dots) :]))

    def chunk_numbers(self, box: Sequence[Any]) -> list[int]:
        """Return the numbers of the chunks that a box intersects, ascending.

        Parameters
        ----------
        box
            For each dimension ``(start, stop, step)``, not empty, or ascending positions.

        """
        base = 0
        lines: list[Sequence[int]] = []
        for part, (_, chunk, step, *_) in zip(box, self.axis_plans, strict=True):
            if type(part) is not tuple:
                lines.append((np.unique(part // chunk) * step).tolist())
                continue
            start, stop, stride = part
            first, last = start // chunk, (stop - 1) // chunk
            if first == last:
                base += first * step
            elif stride <= chunk:
                lines.append(range(first * step, last * step + 1, step))
            else:
                lines.append([at // chunk * step for at in range(start, stop, stride)])
        return [*map(sum, product((base,), *lines))]

    def chunk_starting_at(self, starts: Sequence[int]) -> int | None:
        """Return the number of the chunk whose first item is at these coordinates, None if none begins there."""
        number = 0
        for start, (_, chunk, step, *_) in zip(starts, self.axis_plans, strict=True):
            if start % chunk:
                return None
            number += start // chunk * step
        return number

    def empty(self, shape: tuple[int, ...]) -> tuple[np.ndarray[Any, Any], Any]:
        """Return a new array, and the buffer of its bytes for the engine."""
        if self.direct:
            if not shape:
                line = np.empty(1, self.dtype)
                return line.reshape(()), line  # the engine takes no buffer without dimensions
            items = fresh(shape, self.dtype)
            return items, items
        raw = fresh((prod(shape) * self.itemsize,), _BYTE)
        return np.ndarray(shape, self.dtype, raw), raw

    def buffer_of(self, items: np.ndarray[Any, Any]) -> Any:
        """Return the bytes of a C-contiguous array of the dtype for the engine."""
        return items if self.direct and items.ndim else items.reshape(-1).view(np.uint8)


def fresh(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an array with anything in it, for a dtype without objects.

    Small ones are NumPy's. For large arrays the system's clearing of pages costs most. The memory of such arrays is
    retained for the next ones (`io/src/memory`).
    """
    nbytes = prod(shape) * dtype.itemsize
    if nbytes >= _LARGE:
        try:
            memory = _engine.Memory(nbytes)
        except MemoryError:
            pass  # NumPy says what is wrong, if anything is
        else:
            return np.ndarray(shape, dtype, memory)
    return np.empty(shape, dtype)


def _position(entry: object, size: int) -> int:
    """Return the coordinate that an integer of any type means in a dimension; -1 outside it, and for other entries."""
    if not isinstance(entry, int | np.integer) or isinstance(entry, bool):
        return -1
    at = int(entry)
    at += size if at < 0 else 0
    return at if at < size else -1


def geometry_of(meta_bytes: bytes, typesize: int) -> ArrayGeometry:
    """Return the geometry of an array; those of short layers are cached.

    Parameters
    ----------
    meta_bytes
        The content of the metalayer.
    typesize
        Bytes of an item, as the frame's header says.

    Raises
    ------
    FormatError
        The layer is damaged, or cannot be true of items of that size.

    """
    if len(meta_bytes) > _SHORT:
        return _geometry_of(meta_bytes, typesize)
    geometry = _cached_geometry_of(meta_bytes, typesize)
    # The names of fields can be changed, and then must not change for others.
    return geometry if geometry.dtype.names is None else ArrayGeometry(meta_bytes, geometry.layout, typesize)


def _geometry_of(meta_bytes: bytes, typesize: int) -> ArrayGeometry:
    layout = ArrayLayout.from_bytes(meta_bytes)
    layout.check(typesize=typesize, chunksize=0, nchunks=layout.nchunks)
    return ArrayGeometry(meta_bytes, layout, typesize)


_cached_geometry_of = lru_cache(maxsize=64)(_geometry_of)


def _axis_plans(layout: ArrayLayout, steps: tuple[int, ...]) -> tuple[tuple[int, int, int, int, int, int], ...]:
    """Return for each dimension what turns a coordinate into chunk number and place in the chunk.

    Size, chunk length, step of the chunk number, block length, items of a step to the next block, and of a
    step within the block.
    """
    if not layout.chunk_items:
        return ()
    block_grid = tuple(e // b for e, b in zip(layout.extended, layout.blocks, strict=True))
    between = [step * layout.block_items for step in strides_of(block_grid)]
    within = strides_of(layout.blocks)
    return tuple(zip(layout.shape, layout.chunks, steps, layout.blocks, between, within, strict=True))


def _has_buffer(dtype: np.dtype[Any]) -> bool:
    if dtype.hasobject or dtype.names is not None or dtype.subdtype is not None:
        return False
    try:
        memoryview(np.empty(1, dtype))
    except (ValueError, TypeError, BufferError):
        return False
    return True


def view_geometry(base: ArrayGeometry, axes: tuple[int | None, ...]) -> ArrayGeometry:
    """Return the geometry of a view that shows the axes of `base` named by `axes`, None for a new one.

    Raises
    ------
    ArgumentError
        An axis that the view leaves out is not of length 1 any more.

    """
    layout = base.layout
    left_out = [axis for axis in range(layout.ndim) if axis not in axes]
    for axis in left_out:
        if layout.shape[axis] != 1:
            msg = f"axis {axis}: the view leaves it out, expected length 1, got {layout.shape[axis]}"
            raise ArgumentError(msg)
    order: list[int | None] = list(axes)
    hidden = [axis for axis in left_out if layout.chunks[axis] != 1]
    for axis in hidden:  # behind all that comes before it, so that the order of the items stays
        after = [place for place, seen in enumerate(order) if seen is not None and seen > axis]
        order.insert(after[0] if after else len(order), axis)
    seen = -1
    shown = tuple(-1 if axis in hidden else (seen := seen + 1) for axis in order)
    physical = ArrayLayout(
        shape=tuple(1 if axis is None else layout.shape[axis] for axis in order),
        chunks=tuple(1 if axis is None else layout.chunks[axis] for axis in order),
        blocks=tuple(1 if axis is None else layout.blocks[axis] for axis in order),
        dtype_text=layout.dtype_text,
    )
    return ArrayGeometry(base.meta_bytes, physical, base.itemsize, shown if hidden else None, layout.blocks)
