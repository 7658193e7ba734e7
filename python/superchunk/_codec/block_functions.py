"""Functions that a user runs on every block: prefilters, postfilters, fillers.

They get arrays of one block and the number of the block's first item in the SChunk. A prefilter runs on the
uncompressed bytes before a chunk is compressed. A postfilter runs on whole blocks after they were decompressed. The
engine knows neither.

Compresses and stores nothing.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping, Sequence

    from numpy.typing import DTypeLike, NDArray

__all__ = ["BlockFunction", "Operands", "postfilter_funcs", "prefilter_funcs"]

AnyArray: TypeAlias = "NDArray[Any]"
BlockCallable: TypeAlias = Callable[["AnyArray", "AnyArray", int], Any]
FillCallable: TypeAlias = Callable[[tuple["AnyArray", ...], "AnyArray", int], Any]

_AHEAD_NBYTES: Final = 2**24
"""Bytes of an operand in chunks that are read at a time."""

prefilter_funcs: Final[MutableMapping[str, BlockCallable]] = weakref.WeakValueDictionary()
"""Name -> prefilter in use. The super-chunk keeps the function, which may refer to the super-chunk."""
postfilter_funcs: Final[MutableMapping[str, BlockCallable]] = weakref.WeakValueDictionary()
"""Name -> postfilter in use."""


class BlockFunction:
    """A prefilter or postfilter with its two dtypes.

    Parameters
    ----------
    function
        ``f(input, output, offset)`` fills `output`.
    input_dtype, output_dtype
        What the block is on both sides; None for the output: the same.

    Raises
    ------
    ValueError
        The dtypes differ in size.

    """

    __slots__ = ("function", "input_dtype", "output_dtype")

    def __init__(self, function: BlockCallable, input_dtype: DTypeLike, output_dtype: DTypeLike | None) -> None:
        if not hasattr(function, "__name__"):
            msg = f"function: expected one with a name, got {function!r}"
            raise TypeError(msg)
        self.function = function
        self.input_dtype, self.output_dtype = check_dtypes(input_dtype, output_dtype)

    def apply(self, data: NDArray[np.uint8] | memoryview, blocksize: int, offset: int) -> NDArray[np.uint8]:
        """Return `data` after the function ran on each of its blocks.

        Parameters
        ----------
        data
            Plain bytes.
        blocksize
            Bytes of a block; 0: all is one.
        offset
            Number of the first item in the container.

        Raises
        ------
        ValueError
            A block is not a whole number of items.

        """
        source = np.frombuffer(data, dtype=np.uint8)
        result = np.empty(len(source), dtype=np.uint8)
        step = blocksize or len(source) or 1
        itemsize = self.input_dtype.itemsize
        for low in range(0, len(source), step):
            block = source[low : low + step]
            if len(block) % itemsize:
                msg = f"block of {len(block)} bytes: expected a multiple of the item size {itemsize} of the function"
                raise ValueError(msg)
            output = result[low : low + step].view(self.output_dtype)
            self.function(block.view(self.input_dtype), output, offset + low // itemsize)
        return result


def check_dtypes(input_dtype: DTypeLike, output_dtype: DTypeLike | None) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return both dtypes, the second being the first if it is None."""
    first = np.dtype(input_dtype)
    second = first if output_dtype is None else np.dtype(output_dtype)
    if first.itemsize != second.itemsize:
        msg = f"input_dtype, output_dtype: expected the same item size, got {first.itemsize} and {second.itemsize}"
        raise ValueError(msg)
    return first, second


class Operands:
    """The inputs of a filler: super-chunks, arrays and scalars, each with a dtype.

    Parameters
    ----------
    inputs
        Pairs of operand and dtype. Of an `NDArray`, whatever its shape, items count in C order.
    nelem
        Items to fill; needed only when all operands are scalars.

    Raises
    ------
    ValueError
        Lengths differ, or there is none.

    """

    __slots__ = ("_inputs", "nitems")

    def __init__(self, inputs: Sequence[tuple[Any, DTypeLike]], nelem: int | None) -> None:
        self._inputs = [_operand(operand, np.dtype(dtype)) for operand, dtype in inputs]
        lengths = {nitems for _, nitems in self._inputs} - {None}
        if nelem is not None:
            lengths.add(_checked_nelem(nelem))
        if len(lengths) != 1:
            msg = f"inputs: expected operands of one length (or nelem for scalars), got {sorted(map(str, lengths))}"
            raise ValueError(msg)
        (only,) = lengths
        self.nitems: int = int(only or 0)

    def read(self, start: int, stop: int) -> tuple[AnyArray, ...]:
        """Return items ``start:stop`` of each operand, scalars repeated."""
        return tuple(items(start, stop) for items, _ in self._inputs)


def _checked_nelem(nelem: int) -> int:
    try:
        number = operator.index(nelem)
    except TypeError:
        msg = f"nelem: expected an integer, got {nelem!r}"
        raise TypeError(msg) from None
    if number < 0:
        msg = f"nelem: expected 0 or more, got {number}"
        raise ArgumentError(msg)
    return number


def _operand(operand: Any, dtype: np.dtype[Any]) -> tuple[Callable[[int, int], AnyArray], int | None]:
    """Return what reads a range of an operand's items, and how many there are; None for a scalar."""
    if np.isscalar(operand):
        return lambda start, stop: np.full(stop - start, operand, dtype=dtype), None
    if hasattr(operand, "get_slice"):
        return lambda start, stop: _items_of(operand, dtype, start, stop), int(operand.nbytes) // dtype.itemsize
    if hasattr(operand, "chunks") and hasattr(operand, "shape") and operand.shape:
        ahead = _Ahead(operand, dtype)
        return ahead.read, ahead.size
    items = np.asarray(operand).reshape(-1)
    return lambda start, stop: items[start:stop].astype(dtype, copy=False), int(items.size)


class _Ahead:
    """Items of an array in chunks, in C order; a run of some MiB is read at a time, and kept for the next calls."""

    def __init__(self, array: Any, dtype: np.dtype[Any]) -> None:
        self._array = array
        self._dtype = dtype
        self.size = prod(array.shape)
        self._start = 0
        self._kept: AnyArray = np.empty(0, dtype)

    def read(self, start: int, stop: int) -> AnyArray:
        """Return items ``start:stop``."""
        low = start - self._start
        if low < 0 or stop - self._start > len(self._kept):
            end = min(max(stop, start + _AHEAD_NBYTES // self._dtype.itemsize), self.size)
            parts = [np.asarray(self._array[key]).reshape(-1) for key in _run(self._array.shape, start, end)]
            self._start, low = start, 0
            self._kept = np.concatenate(parts).astype(self._dtype, copy=False)
        return self._kept[low : low + stop - start]


def _run(shape: tuple[int, ...], start: int, stop: int) -> Iterator[tuple[int | slice, ...]]:
    """Yield the indices that are items ``start:stop``, in C order, of an array of this shape."""
    row = prod(shape[1:])
    first, last = start // row, stop // row
    if len(shape) == 1 or (start % row == 0 and stop % row == 0):
        yield (slice(first, last),)
    elif first == last:
        yield from ((first, *key) for key in _run(shape[1:], start - first * row, stop - first * row))
    else:
        middle = -(-start // row)
        if start % row:
            yield from ((first, *key) for key in _run(shape[1:], start - first * row, row))
        if middle < last:
            yield (slice(middle, last),)
        if stop % row:
            yield from ((last, *key) for key in _run(shape[1:], 0, stop - last * row))


def _items_of(schunk: Any, dtype: np.dtype[Any], start: int, stop: int) -> AnyArray:
    """Return items ``start:stop`` of a super-chunk."""
    out: AnyArray = np.empty(stop - start, dtype=dtype)
    size, typesize = dtype.itemsize, schunk.typesize
    raw = schunk.get_slice(start * size // typesize, -(-stop * size // typesize))
    skip = start * size % typesize
    out.view(np.uint8)[:] = np.frombuffer(raw, dtype=np.uint8)[skip : skip + out.nbytes]
    return out
