"""What an array looks like at one moment, worked out once for all reads until its metalayer changes.

::

    b2nd metalayer ──> ArrayLayout ──> Form: dtype, geometry for the engine, strides of the chunk grid
                                        │
                                        └──> Form of a view: axes put in, or left out

An axis of length 1 may be put in anywhere without moving an item, and left out where its chunks have
length 1 too. Where they are longer it stays in the geometry and is hidden from the user.

Source: docs/format/b2nd.md, "Geometry".
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from superchunk import _engine
from superchunk._memory import fresh
from superchunk.arrays.selection import Cross, Points
from superchunk.exceptions import ArgumentError
from superchunk.frame.b2nd import ArrayLayout
from superchunk.frame.dtypes import parse_dtype

__all__ = ["Form", "form_of", "strides_of", "view_form"]

_BYTE = np.dtype(np.uint8)
_SHORT = 1024
"""Most bytes of a layer whose form is kept."""


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in items, of a C-ordered array of `shape`."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


class Form:
    """Shape, dtype and geometry of an array.

    Parameters
    ----------
    raw
        The metalayer that it comes from, to notice when that changes.
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
        "blocks",
        "chunk_items",
        "chunk_nbytes",
        "chunks",
        "direct",
        "dtype",
        "geometry",
        "itemsize",
        "layout",
        "nchunks",
        "ndim",
        "places",
        "raw",
        "shape",
        "shown",
        "size",
        "steps",
        "tail",
    )

    def __init__(
        self,
        raw: bytes,
        layout: ArrayLayout,
        typesize: int,
        shown: tuple[int, ...] | None = None,
        blockshape: tuple[int, ...] | None = None,
    ) -> None:
        self.raw = raw
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
        self.geometry = _engine.Geometry(layout.chunks, layout.blocks, typesize, blockshape)
        self.steps = strides_of(layout.grid) if layout.chunk_items else (0,) * layout.ndim
        """How much the chunk number grows with each chunk coordinate."""
        self.places = _places(layout, self.steps)
        self.tail = (slice(None),) * self.ndim
        self.direct = _has_buffer(self.dtype)
        """Whether NumPy lends the bytes of an array of the dtype as they are."""

    def reshaped(self, raw: bytes, layout: ArrayLayout) -> Form:
        """Return the form of an array, not of a view, with another shape and all else as it is.

        Parameters
        ----------
        raw
            The metalayer that says so.
        layout
            That of this form, whose chunks hold something, but for the shape.

        """
        grid = layout.grid
        new = object.__new__(Form)
        for name in Form.__slots__:
            setattr(new, name, getattr(self, name))
        new.raw, new.layout, new.shape = raw, layout, layout.shape
        new.size, new.nchunks, new.steps = prod(layout.shape), prod(grid), strides_of(grid)
        new.places = tuple(
            (size, chunk, step, block, between, within)
            for size, step, (_, chunk, _, block, between, within) in zip(
                layout.shape, new.steps, self.places, strict=True
            )
        )
        return new

    def only_shown(self, values: tuple[int, ...]) -> tuple[int, ...]:
        """Return what `values` says of the dimensions that the user sees."""
        if self.shown is None:
            return values
        return tuple(value for value, seen in zip(values, self.shown, strict=True) if seen >= 0)

    def physical(self, selection: Cross | Points) -> Cross | Points:
        """Return a selection of what the user sees as one of all dimensions."""
        shown = self.shown
        if shown is None:
            return selection
        if isinstance(selection, Points):
            zero = np.zeros((1,) * len(selection.shape), np.int64)
            return Points(tuple(zero if seen < 0 else selection.coords[seen] for seen in shown), selection.shape)
        axes = tuple(range(1) if seen < 0 else selection.axes[seen] for seen in shown)
        order = selection.order
        if order is not None:
            hidden = [axis for axis, seen in enumerate(shown) if seen < 0]
            order = (*hidden, *(shown.index(seen) for seen in order))
        return Cross(axes, selection.shape, order)

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

    def buffer_of(self, items: np.ndarray[Any, Any]) -> Any:  # noqa: ANN401  (a buffer)
        """Return the bytes of a C-contiguous array of the dtype for the engine."""
        return items if self.direct and items.ndim else items.reshape(-1).view(np.uint8)


def form_of(raw: bytes, typesize: int) -> Form:
    """Return the form of an array, those of short layers kept for other arrays of the same layer.

    Parameters
    ----------
    raw
        The content of the metalayer.
    typesize
        Bytes of an item, as the frame's header says.

    Raises
    ------
    FormatError
        The layer is damaged, or cannot be true of items of that size.

    """
    if len(raw) > _SHORT:
        return _form_of(raw, typesize)
    form = _kept_form_of(raw, typesize)
    # The names of fields can be changed, and then must not change for others.
    return form if form.dtype.names is None else Form(raw, form.layout, typesize)


def _form_of(raw: bytes, typesize: int) -> Form:
    layout = ArrayLayout.from_bytes(raw)
    layout.check(typesize=typesize, chunksize=0, nchunks=layout.nchunks)
    return Form(raw, layout, typesize)


_kept_form_of = lru_cache(maxsize=64)(_form_of)


def _places(layout: ArrayLayout, steps: tuple[int, ...]) -> tuple[tuple[int, int, int, int, int, int], ...]:
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


def view_form(base: Form, axes: tuple[int | None, ...]) -> Form:
    """Return the form of a view that shows the axes of `base` named by `axes`, None for a new one.

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
    return Form(base.raw, physical, base.itemsize, shown if hidden else None, layout.blocks)
