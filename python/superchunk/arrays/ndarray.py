"""`NDArray`: an array of any dtype and up to 16 dimensions, compressed in chunks, that slices as NumPy does.

::

    NDArray        reading, writing, life                     here
     └ ArrayCalls  resizing, copies, views, what it says      calls
        └ ArrayBase   the SChunk, the form that it has now    base
     └ Plain       all items, or the only one                 plain

Plans are made in `selection`, carried out in `reading` and `writing`.

Source: docs/format/b2nd.md.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superchunk._elsewhere import elsewhere
from superchunk.arrays.calls import ArrayCalls
from superchunk.arrays.fields import Fields, NDField
from superchunk.arrays.plain import Plain
from superchunk.arrays.reading import read_item, read_key, read_selection
from superchunk.arrays.selection import select, select_crossed
from superchunk.arrays.steady import changing
from superchunk.arrays.writing import write_selection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray as NumpyArray

    from superchunk.arrays.form import Form
    from superchunk.arrays.selection import Cross, Points
    from superchunk.storage.base import ChunkStore

__all__ = ["NDArray", "OIndex", "Part"]

_SLAB_NBYTES = 2**24
"""Bytes that iterating over the first dimension reads at a time, if rows are smaller than that."""


class Part(NamedTuple):
    """A chunk or a block of an array, as `NDArray.iterchunks` and `NDArray.iterblocks` yield it."""

    coords: tuple[int, ...]
    """Which chunk, or which block of the array, in each dimension."""
    region: tuple[slice, ...]
    """Where its items are: ``array[region]`` is `items`."""
    items: NumpyArray[Any]
    """They themselves, without padding; a new array."""


class NDArray(ArrayCalls, Plain):
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
    Several threads may read one array at a time; a change needs it for itself. ``a == a`` is True, and ``==`` with
    numbers or other arrays than NumPy's a TypeError, as ``>`` is; ``a[:] == b`` compares items.

    """

    __slots__ = ()

    __hash__ = None  # type: ignore[assignment]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> None:
            """Say who has what is not here; an AttributeError."""
            msg = f"{type(self).__name__!r} object has no attribute {name!r}{elsewhere(name)}"
            raise AttributeError(msg, name=name, obj=self)

    # Reading.

    def _steadily(self, ask: Callable[[ChunkStore], Any]) -> Any:  # noqa: ANN401  (what `ask` returns)
        """Return what `ask` says of one committed state."""
        store = self._handle.opened()
        return store.steadily(partial(ask, store))

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401  (any index)
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
        store = self._handle.store or self._handle.opened()
        item = read_item(self.schunk, store, self._form, store.meta[self._layer], key)
        if item is not None:
            return item
        if store.shifting:
            return store.steadily(partial(self._get, store, key))
        return self._get(store, key)

    def _get(self, store: ChunkStore, key: Any) -> NumpyArray[Any]:  # noqa: ANN401  (any index)
        store.refresh()
        form = self._now(store)
        if type(key) is list and key and all(isinstance(name, str) for name in key):
            return read_key(self.schunk, store, form, ())[key]
        return read_key(self.schunk, store, form, key)

    def get(self, key: Any = (), out: NumpyArray[Any] | None = None) -> NumpyArray[Any]:  # noqa: ANN401  (any index)
        """Return ``array[key]``, in a given array if there is one.

        Parameters
        ----------
        key
            Any index but a field; the default means everything.
        out
            An array of the result's shape. If it is C-contiguous, of the array's dtype, and `key` has neither
            negative steps nor repeated or unordered positions, items are decoded straight into it; else they
            are cast and copied.

        Raises
        ------
        IndexError, FormatError
            As for ``array[key]``.
        ValueError
            `out` has another shape, or is read-only.
        TypeError
            `out` is no NumPy array.

        """

        def ask(store: ChunkStore) -> NumpyArray[Any]:
            store.refresh()
            form = self._now(store)
            return self._selected(store, form, select(key, form.shape), out)

        found: NumpyArray[Any] = self._steadily(ask)
        return found

    def _selected(
        self, store: ChunkStore, form: Form, selection: Cross | Points, out: NumpyArray[Any] | None = None
    ) -> NumpyArray[Any]:
        if out is not None and not isinstance(out, np.ndarray):
            msg = f"out: expected a NumPy array, got {type(out).__name__}"
            raise TypeError(msg)
        if out is not None and out.shape != selection.shape:
            msg = f"out: expected shape {selection.shape}, got {out.shape}"
            raise ValueError(msg)
        if out is not None and not out.flags.writeable:
            msg = "out: expected a writable array, got a read-only one"
            raise ValueError(msg)
        return read_selection(self.schunk, store, form, selection, out)

    @property
    def oindex(self) -> OIndex:
        """``array.oindex[rows, columns]``: a list of positions for each dimension, crossed; assignable too."""
        return OIndex(self)

    def get_fselection_numpy(self, key: Any) -> NumpyArray[Any]:  # noqa: ANN401  (any index)
        """Return the same as ``array[key]``."""
        found: NumpyArray[Any] = self[key]
        return found

    def get_oselection_numpy(self, key: Any) -> NumpyArray[Any]:  # noqa: ANN401  (any index)
        """Return the same as ``array.oindex[key]``."""
        return self.oindex[key]

    def set_oselection_numpy(self, key: Any, arr: object) -> None:  # noqa: ANN401  (any index)
        """Do the same as ``array.oindex[key] = arr``."""
        self.oindex[key] = arr

    @property
    def fields(self) -> Fields:
        """The fields of a structured array by name, a read-only mapping; empty for other arrays."""
        return Fields(self)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first dimension, as NumPy does; several rows are decoded at a time."""
        if not self.ndim:
            msg = "iteration over a 0-d array"
            raise TypeError(msg)
        at = 0
        while at < len(self):
            row = self.nbytes // max(len(self), 1)
            rows = max(min(self.chunks[0] or 1, _SLAB_NBYTES // max(row, 1)), 1)
            slab = self[at : at + rows - at % rows]
            yield from slab
            at += len(slab)

    def iterchunks(self) -> Iterator[Part]:
        """Iterate over the chunks: coordinates in the chunk grid, region of the array, and items.

        Yields
        ------
        Part
            ``(coords, region, items)``; padding is left out.

        """
        yield from self._parts(self.chunks)

    def iterblocks(self) -> Iterator[Part]:
        """Iterate over the blocks, chunk by chunk: coordinates among all blocks, region of the array, and items.

        Where chunks are no whole blocks, the grid has the blocks at a chunk's edges cut short; coordinates
        then count blocks from the array's start all the same.

        Yields
        ------
        Part
            ``(coords, region, items)``; padding is left out.

        """
        blocks = self.blocks
        per_chunk = tuple(-(-c // b) if b else 0 for c, b in zip(self.chunks, blocks, strict=True))
        for part in self._parts(self.chunks):
            for inner in np.ndindex(*(-(-n // b) for n, b in zip(part.items.shape, blocks, strict=True))):
                local = tuple(
                    slice(i * b, min(i * b + b, n)) for i, b, n in zip(inner, blocks, part.items.shape, strict=True)
                )
                region = tuple(
                    slice(where.start + own.start, where.start + own.stop)
                    for where, own in zip(part.region, local, strict=True)
                )
                coords = tuple(c * n + i for c, n, i in zip(part.coords, per_chunk, inner, strict=True))
                yield Part(coords, region, part.items[local].copy())

    def _parts(self, step: tuple[int, ...]) -> Iterator[Part]:
        shape = self.shape
        if 0 in shape:
            return
        for coords in np.ndindex(*(-(-size // n) for size, n in zip(shape, step, strict=True))):
            region = tuple(
                slice(at * n, min(at * n + n, size)) for at, n, size in zip(coords, step, shape, strict=True)
            )
            yield Part(coords, region, self[region])

    # Writing.

    def __setitem__(self, key: Any, value: object) -> None:  # noqa: ANN401  (any index)
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

    def _put(
        self, value: object, chosen: Callable[[tuple[int, ...]], Cross | Points], field: str | None = None
    ) -> None:
        """Write `value` where `chosen`, told the shape, says; into one field of the items if that is named."""
        store = self._handle.writing()
        with changing(store, value):
            form = self._now(store)
            write_selection(self.schunk, store, form, chosen(form.shape), value, field)


class OIndex:
    """What ``array.oindex`` returns: positions of each dimension crossed, as `numpy.ix_` does.

    An entry may be an integer (which drops the dimension), a slice, a one-dimensional array of integers,
    or a mask.
    """

    __slots__ = ("_array",)

    def __init__(self, array: NDArray) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> NumpyArray[Any]:  # noqa: ANN401  (any index)
        """Return the items where the positions cross.

        Raises
        ------
        IndexError
            A position is outside the array, or an array has several dimensions.

        """
        array = self._array

        def ask(store: ChunkStore) -> NumpyArray[Any]:
            store.refresh()
            form = array._now(store)
            return array._selected(store, form, select_crossed(key, form.shape))

        found: NumpyArray[Any] = array._steadily(ask)
        return found

    def __setitem__(self, key: Any, value: object) -> None:  # noqa: ANN401  (any index)
        """Put `value` where the positions cross.

        Raises
        ------
        IndexError, ValueError, StorageError
            As for ``array[key] = value``.

        """
        self._array._put(value, lambda shape: select_crossed(key, shape))
