"""A SChunk as a sequence of items: slices, assignment, iteration.

A read is a plan (`_plan`), sources from the store, and one call of the engine. A small one of what stands in a
file is one call altogether (`read_small`), which also looks whether anybody has changed the file.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

from superchunk._array_guard import check_change
from superchunk._buffers import byte_view, writable_view
from superchunk._chunks import ChunkCalls
from superchunk._handle import of_one_state
from superchunk._plan import chunk_start
from superchunk._writing import overwrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import DTypeLike, NDArray

    from superchunk._buffers import AnyBuffer

__all__ = ["ItemCalls"]

_SMALL = 64 * 1024
"""Up to so many bytes are asked for in one call, together with whether anything has changed."""


class ItemCalls(ChunkCalls):
    """Items of `typesize` bytes over a list of chunks of any size."""

    __slots__ = ()

    def __len__(self) -> int:
        """Return the number of items, ``nbytes // typesize``."""
        store = self._handle.fresh()
        return store.told(lambda: store.nbytes) // self._typesize

    def __getitem__(self, key: SupportsIndex | slice) -> bytes:
        """Return an item, or the items of a slice, as bytes.

        Raises
        ------
        IndexError
            There is no such item, or a slice has a step other than 1.
        TypeError
            `key` is neither an integer nor a slice.
        FormatError
            A chunk is damaged.

        """
        store = self._handle.store
        decoder = self._decoder
        if store is not None and decoder.postfilter is None and not decoder.verified:
            typesize = decoder.typesize
            if type(key) is slice:
                start, stop, step = key.indices(store.nbytes // typesize)
                small = step == 1 and 0 < (stop - start) * typesize <= _SMALL
            else:
                start = key if type(key) is int else -1
                stop, small = start + 1, start >= 0
            if small:
                found = store.read_small(start * typesize, stop * typesize, typesize)
                if found is not None:
                    return found
        return self._items(key)

    @of_one_state
    def _items(self, key: SupportsIndex | slice) -> bytes:
        """Return the items that `key` names: the general way of `__getitem__`."""
        store = self._handle.store or self._handle.opened()
        store.refresh()
        typesize = self._typesize
        if isinstance(key, slice):
            start, stop, step = key.indices(store.nbytes // typesize)
            if step != 1:
                _refuse_step(step)
            if start >= stop:
                return b""
        else:
            start = _item_number(key, store.nbytes // typesize)
            stop = start + 1
        return self._decoder.read_range(store, start * typesize, stop * typesize, None) or b""

    @of_one_state
    def get_slice(self, start: int = 0, stop: int | None = None, out: AnyBuffer | None = None) -> bytes | None:
        """Return items ``start:stop``, or put them at the front of `out`.

        Parameters
        ----------
        start, stop
            Items, by the rules of slices.
        out
            A writable C-contiguous buffer; None is returned then, except that an
            empty range returns ``b""``.

        Raises
        ------
        ValueError
            `out` is too small or read-only.
        FormatError
            A chunk is damaged.

        """
        store = self._handle.fresh()
        first, last, _ = slice(start, stop).indices(store.nbytes // self._typesize)
        if first >= last:
            return b""
        low, high = first * self._typesize, last * self._typesize
        if out is None:
            return self._decoder.read_range(store, low, high, None)
        view = writable_view(out, "out")
        if view.nbytes < high - low:
            msg = f"out: Not enough space, expected at least {high - low} bytes, got {view.nbytes}"
            raise ValueError(msg)
        return self._decoder.read_range(store, low, high, view)

    def __setitem__(self, key: SupportsIndex | slice, value: AnyBuffer) -> None:
        """Overwrite items; a slice whose end is past the last item makes the SChunk grow.

        Of more data than the slice takes, the rest is ignored.

        Raises
        ------
        IndexError
            There is no such item, or a slice has a step other than 1.
        ValueError
            Too little data; a slice that is empty or begins past the end; the handle
            may only read.
        TypeError
            `value` has no buffer, or `key` is neither an integer nor a slice.
        StorageError
            Writing failed; nothing has changed.

        """
        if isinstance(key, slice):
            if key.step is not None and operator.index(key.step) != 1:
                _refuse_step(key.step)
            self._overwrite(key.start, key.stop, value)
            return
        self._overwrite(key, None, value, single=True)

    def set_slice(self, value: AnyBuffer, start: int = 0, stop: int | None = None) -> None:
        """Overwrite items ``start:stop``; the same as ``s[start:stop] = value``.

        Raises
        ------
        ValueError, TypeError, StorageError
            As the assignment.

        """
        self._overwrite(start, stop, value)

    def _overwrite(
        self, start: SupportsIndex | None, stop: SupportsIndex | None, value: AnyBuffer, *, single: bool = False
    ) -> None:
        """Overwrite items ``start:stop``, or the `single` item `start`."""
        store = self._handle.writing()
        view = byte_view(value, "value")
        with store.batch():
            nitems = store.nbytes // self._typesize
            if single:
                first = _item_number(0 if start is None else start, nitems)
                last = first + 1
            else:
                first, last = _item_range(start, stop, nitems)
            needed = (last - first) * self._typesize
            if view.nbytes < needed:
                msg = f"value: expected {needed} bytes for {last - first} items, got {view.nbytes}"
                raise ValueError(msg)
            stop_byte, chunksize = last * self._typesize, store.chunksize
            if stop_byte > store.nbytes and chunksize:
                added = -(-stop_byte // chunksize) - store.nchunks
                check_change(store, added=added, nbytes=stop_byte % chunksize or chunksize)
            overwrite(store, self._encoder, first * self._typesize, view[:needed])

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the items, as bytes; a chunk is decompressed at a time."""
        typesize = self._typesize
        number = 0
        while number < len(self):
            store = self._handle.opened()
            step = max(store.chunksize // typesize, 1) if store.chunksize else 1024
            step -= number % step
            block = self.get_slice(number, number + step) or b""
            for low in range(0, len(block), typesize):
                yield block[low : low + typesize]
            number += len(block) // typesize

    def iterchunks(self, dtype: DTypeLike) -> Iterator[NDArray[Any]]:
        """Iterate over the contents of the chunks, each a new array of its true length.

        Parameters
        ----------
        dtype
            What the items are.

        Raises
        ------
        ValueError
            A chunk is not a whole number of such items.

        """
        import numpy as np  # noqa: PLC0415  (the only item call that makes arrays)

        wanted = np.dtype(dtype)
        number = 0
        while (chunk := self._chunk_as(number, wanted)) is not None:
            yield chunk
            number += 1

    @of_one_state
    def _chunk_as(self, number: int, dtype: np.dtype[Any]) -> NDArray[Any] | None:
        """Return the content of a chunk as a new array, None behind the last."""
        import numpy as np  # noqa: PLC0415  (as above)

        store = self._handle.fresh()
        if number >= store.nchunks:
            return None
        nbytes = store.chunk_nbytes(number)
        if nbytes % dtype.itemsize:
            msg = f"dtype: chunk {number} of {nbytes} bytes holds no whole number of items of {dtype}"
            raise ValueError(msg)
        chunk: NDArray[Any] = np.empty(nbytes // dtype.itemsize, dtype=dtype)
        start = chunk_start(store, number)
        self._decoder.read_range(store, start, start + nbytes, chunk.view(np.uint8).data)
        return chunk


def _item_number(key: SupportsIndex, nitems: int) -> int:
    """Return the number of an item, counted from the start."""
    number = operator.index(key)
    if number < 0:
        number += nitems
    if not 0 <= number < nitems:
        msg = f"item: expected {-nitems} to {nitems - 1}, got {key}"
        raise IndexError(msg)
    return number


def _item_range(start: SupportsIndex | None, stop: SupportsIndex | None, nitems: int) -> tuple[int, int]:
    """Return the numbers of the first item of a slice to be overwritten and of the one behind its last."""
    first = 0 if start is None else operator.index(start)
    last = nitems if stop is None else operator.index(stop)
    first = max(first + nitems, 0) if first < 0 else first
    last = last + nitems if last < 0 else last
    if first > nitems:
        msg = f"start: expected at most the {nitems} items there are, got {first}"
        raise ValueError(msg)
    if first >= last:
        msg = f"stop: expected more than start, which is item {first}, got {last}"
        raise ValueError(msg)
    return first, last


def _refuse_step(step: object) -> None:
    msg = f"step: expected 1, got {step}"
    raise IndexError(msg)
