"""Arrays of one value, of values read one by one, and of bytes that are there.

Arrays that follow a rule are made in `arange`, those made from other arrays in `asarray`
and `joining`.

Source: docs/format/b2nd.md, "Arrays without items, and of one".
"""

from __future__ import annotations

from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk._array.array_sources import source_of
from superchunk._array.creation_plan import plan_array
from superchunk._array.filling import ChunkRow, build_array, build_special
from superchunk._array.ndarray import NDArray
from superchunk._codec.buffers import byte_view
from superchunk.exceptions import ArgumentError
from superchunk.params import SpecialValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Unpack

    from numpy.typing import DTypeLike

    from superchunk._array.creation_plan import ArrayKeywords
    from superchunk._array.filling import Box
    from superchunk._array.partition import Lengths
    from superchunk._codec.buffers import AnyBuffer

__all__ = [
    "empty",
    "empty_like",
    "frombuffer",
    "fromiter",
    "full",
    "full_like",
    "nans",
    "ones",
    "ones_like",
    "uninit",
    "zeros",
    "zeros_like",
]

_NAN_NATIVE = (np.dtype("<f4"), np.dtype("<f8"))
"""What a special chunk of NaN reads as; other kinds of NaN are repeated values."""


def empty(shape: Lengths, dtype: DTypeLike = np.float64, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
    """Return an array to be filled; until then it reads as zeros. See `zeros`."""
    return zeros(shape, dtype, **kwargs)


def zeros(shape: Lengths, dtype: DTypeLike = np.float64, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
    """Return an array of zeros, which takes no space, however large.

    Parameters
    ----------
    shape
        Items in each dimension, 0 to 16 of them: an int, a tuple or a list. Lengths may be 0.
    dtype
        Of an item: any of fixed size, in either byte order, records included.
    **kwargs
        `chunks` and `blocks`: their shapes, a tuple, a list, or an int for one dimension; chosen if
        not given, see `explain_partition`. `cparams` and `dparams`: how to compress and decompress,
        an object or a dict; typesize and block size follow from dtype and `blocks`. `storage`, or its
        fields: see `Storage`. A file that exists is replaced with mode "w" only.

    Raises
    ------
    KeywordError
        A keyword that is not known; a KeyError and a TypeError.
    AttributeError
        `storage` and one of its fields are given.
    TypeError
        A shape of another type, items that are Python objects, an unknown field of `cparams`.
    ValueError
        Shapes or parameters that are not possible or do not go together; `chunks` or `blocks`
        inside `cparams`.
    StorageError
        Something is at the path and `mode` is not "w", or writing failed.

    Examples
    --------
    >>> a = zeros((10**6, 10**6), dtype="i8")
    >>> a.shape, len(a.to_cframe()) < 1000
    ((1000000, 1000000), True)

    """
    return NDArray(build_special(plan_array(shape, dtype, kwargs), SpecialValue.ZERO))


def uninit(shape: Lengths, dtype: DTypeLike = np.float64, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
    """Return an array whose chunks are marked as not set; here they read as zeros. See `zeros`."""
    return NDArray(build_special(plan_array(shape, dtype, kwargs), SpecialValue.UNINIT))


def nans(shape: Lengths, dtype: DTypeLike = np.float64, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
    """Return an array of NaN. See `zeros`.

    Raises
    ------
    ValueError
        Items of `dtype` cannot be NaN; or as `zeros`.

    """
    plan = plan_array(shape, dtype, kwargs)
    kind = plan.dtype
    if kind in _NAN_NATIVE:
        return NDArray(build_special(plan, SpecialValue.NAN))
    item = np.zeros((), kind)
    if kind.names is None and kind.kind not in "SU":
        with np.errstate(invalid="ignore"):
            item = np.asarray(np.nan).astype(kind)
    if not bool(np.any(item != item)):  # noqa: PLR0124  (that is what NaN is)
        msg = f"dtype: expected items that can be NaN, got {kind}"
        raise ArgumentError(msg)
    return NDArray(build_special(plan, SpecialValue.VALUE, item.tobytes()))


def ones(shape: Lengths, dtype: DTypeLike | None = None, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
    """Return an array of ones, float64 unless `dtype` says otherwise. See `zeros`."""
    plan = plan_array(shape, np.float64 if dtype is None else dtype, kwargs)
    return NDArray(build_special(plan, SpecialValue.VALUE, np.ones((), plan.dtype).tobytes()))


def full(
    shape: Lengths,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return an array of one value, which takes some 40 bytes for each chunk. See `zeros`.

    Parameters
    ----------
    shape
        Items in each dimension.
    fill_value
        The value: a number, bytes, text, a date, or a tuple for a record.
    dtype
        None: that of the value. A bytes value always gives `S` of its length.
    **kwargs
        As for `zeros`.

    Raises
    ------
    ValueError
        The value is an array, or cannot be had in that dtype; or as `zeros`.
    OverflowError
        The value is out of the range of the dtype.

    """
    if isinstance(fill_value, bytes):
        dtype = np.dtype(("S", max(len(fill_value), 1)))
    kind = np.asarray(fill_value).dtype if dtype is None else np.dtype(dtype)
    if kind.names is None and np.ndim(fill_value):
        msg = f"fill_value: expected one item, got an array of shape {np.shape(fill_value)}"
        raise ArgumentError(msg)
    plan = plan_array(shape, kind, kwargs)
    item = np.zeros((), plan.dtype)
    item[()] = fill_value
    return NDArray(build_special(plan, SpecialValue.VALUE, item.tobytes()))


def empty_like(x: object, dtype: DTypeLike | None = None, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
    """Return `empty` of the shape of an array, and of its dtype unless given."""
    source = source_of(x)
    return empty(source.shape, source.dtype if dtype is None else dtype, **kwargs)


def zeros_like(x: object, dtype: DTypeLike | None = None, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
    """Return `zeros` of the shape of an array, and of its dtype unless given."""
    source = source_of(x)
    return zeros(source.shape, source.dtype if dtype is None else dtype, **kwargs)


def ones_like(x: object, dtype: DTypeLike | None = None, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
    """Return `ones` of the shape of an array, and of its dtype unless given."""
    source = source_of(x)
    return ones(source.shape, source.dtype if dtype is None else dtype, **kwargs)


def full_like(
    x: object,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return `full` of the shape of an array, and of its dtype unless given."""
    source = source_of(x)
    return full(source.shape, fill_value, source.dtype if dtype is None else dtype, **kwargs)


def frombuffer(
    buffer: AnyBuffer, shape: Lengths, dtype: DTypeLike = np.uint8, **kwargs: Unpack[ArrayKeywords]
) -> NDArray:
    """Return an array of the items that a buffer begins with, in C order.

    Parameters
    ----------
    buffer
        C-contiguous, at least as long as the items; what follows them is ignored.
    shape, dtype
        What the items are.
    **kwargs
        As for `zeros`.

    Raises
    ------
    ArgumentError
        The buffer is too short; a RuntimeError and a ValueError.
    TypeError
        It is no buffer.
    ValueError, StorageError
        As `zeros`.

    """
    plan = plan_array(shape, dtype, kwargs)
    view = byte_view(buffer, "buffer")
    wanted = prod(plan.layout.shape)
    needed = wanted * plan.dtype.itemsize
    if view.nbytes < needed:
        msg = f"buffer: expected at least {needed} bytes for shape {plan.layout.shape}, got {view.nbytes}"
        raise ArgumentError(msg)
    raw = np.frombuffer(view[:needed], np.uint8) if needed else np.empty(0, np.uint8)
    return NDArray(build_array(plan, source_of(raw.view(plan.dtype).reshape(plan.layout.shape)).read))


def fromiter(
    iterable: Iterable[Any],
    shape: Lengths,
    dtype: DTypeLike,
    c_order: bool = True,
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return an array of the values that an iterable gives.

    Each value is taken once, and none that the shape has no place for. In memory there is one
    row of chunks, those that share their place along the first dimension.

    Parameters
    ----------
    iterable
        Any iterable; an array gives all of its items, in C order.
    shape, dtype
        What the values become.
    c_order
        False: the values go in chunk by chunk, in C order within each; two chunks are in
        memory. An array of the shape that is asked for keeps its items where they are.
    **kwargs
        As for `zeros`.

    Raises
    ------
    ValueError
        There are too few values (then no file is left behind); or as `zeros`.

    """
    plan = plan_array(shape, dtype, kwargs)
    layout, kind = plan.layout, plan.dtype
    if isinstance(iterable, np.ndarray):
        if iterable.size < prod(layout.shape):
            raise _too_few(prod(layout.shape), iterable.size)
        flat = iterable.reshape(-1)[: prod(layout.shape)]
        if c_order or iterable.shape == layout.shape:
            return NDArray(build_array(plan, source_of(flat.reshape(layout.shape), kind).read))
        iterable = flat
    values = _Values(iterable, kind, prod(layout.shape))
    if not c_order or layout.ndim == 0:
        return NDArray(build_array(plan, values.box))
    return NDArray(build_array(plan, ChunkRow(lambda start, stop: values.take((stop - start, *layout.shape[1:]))).read))


def _too_few(expected: int, found: int) -> ArgumentError:
    return ArgumentError(f"iterable: expected at least {expected} values, one for each item, got {found}")


class _Values:
    """Values of an iterable, taken as they are needed."""

    def __init__(self, iterable: Iterable[Any], dtype: np.dtype[Any], total: int) -> None:
        self._iterator: Iterator[Any] = iter(iterable)
        self._dtype = dtype
        self._total = total
        self._taken = 0

    def take(self, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Return the next values."""
        count = prod(shape)
        seen, ended = 0, False

        def counted() -> Iterator[Any]:
            nonlocal seen, ended
            for seen, value in enumerate(islice(self._iterator, count), 1):  # noqa: B007  (how many there were)
                yield value
            ended = True

        try:
            items = np.fromiter(counted(), self._dtype, count)
        except ValueError:
            if seen == count or not ended:
                raise
            raise _too_few(self._total, self._taken + seen) from None
        self._taken += count
        return items.reshape(shape)

    def box(self, box: Box) -> np.ndarray[Any, Any]:
        """Return the next values as the items of a box."""
        return self.take(tuple(edge.stop - edge.start for edge in box))
