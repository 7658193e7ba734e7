"""Arrays that follow a rule: `arange`, `linspace`, `eye`, computed one chunk at a time.

Values are those of NumPy to the bit: item i is ``first + i * delta`` in the arithmetic in which NumPy
computes it.
"""

from __future__ import annotations

import operator
from math import ceil, prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from superchunk._array.creation_plan import as_shape, begin_array, plan_array
from superchunk._array.filling import build_array, build_special, packed, put_special
from superchunk._array.ndarray import NDArray
from superchunk.exceptions import ArgumentError
from superchunk.params import SpecialValue

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from numpy.typing import DTypeLike

    from superchunk._array.creation_plan import ArrayKeywords, ArrayPlan
    from superchunk._array.filling import Box, Produce
    from superchunk._array.partition import Lengths

__all__ = ["arange", "eye", "linspace"]

_WHOLE_NBYTES: Final = 2**20
"""Ranges up to this many bytes are made by NumPy itself."""


def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: DTypeLike | None = None,
    shape: Lengths | None = None,
    c_order: bool = True,
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return evenly spaced values, as `numpy.arange`.

    Parameters
    ----------
    start, stop, step
        Numbers, or dates; `start` alone is where to stop, from 0.
    dtype
        None: that of NumPy.
    shape
        What to make of the values, as many as there are. None: one dimension.
    c_order
        False: the values go in chunk by chunk, in C order within each.
    **kwargs
        As for `zeros`.

    Raises
    ------
    ValueError
        `shape` has another number of items; or as `zeros`.
    ZeroDivisionError
        `step` is 0.

    Examples
    --------
    >>> arange(6, shape=(2, 3))[1].tolist()
    [3, 4, 5]

    """
    if stop is None:
        start, stop = 0, start
    if step is None:
        step = 1
    first, delta, count, kind = _progression(start, stop, step, dtype)
    wanted = (count,) if shape is None else as_shape(shape)
    if prod(wanted) != count:
        msg = f"shape: expected one of {count} items, as in the range, got {wanted}"
        raise ArgumentError(msg)
    plan = plan_array(wanted, kind, kwargs)
    kind = plan.dtype
    native = kind.newbyteorder("=")
    if count * kind.itemsize <= _WHOLE_NBYTES or not _computable(native):
        whole: np.ndarray[Any, Any] = np.arange(start, stop, step, native)  # type: ignore[call-overload]  # of any dtype

        def values(index: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            chosen: np.ndarray[Any, Any] = whole[index]
            return chosen.astype(kind, copy=False)
    else:

        def values(index: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return _computed(index, first, delta, native).astype(kind, copy=False)

    return NDArray(build_array(plan, _by_index(plan, values, c_order=c_order)))


def linspace(
    start: Any,
    stop: Any,
    num: int | None = None,
    dtype: DTypeLike | None = None,
    endpoint: bool = True,
    shape: Lengths | None = None,
    c_order: bool = True,
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return `num` values from `start` to `stop`, as `numpy.linspace`.

    Parameters
    ----------
    start, stop
        Numbers.
    num
        How many; None: as many as `shape` has items.
    dtype
        None: that of NumPy. Integers are rounded down.
    endpoint
        Whether `stop` is the last value.
    shape
        What to make of the values. None: one dimension.
    c_order
        False: the values go in chunk by chunk, in C order within each.
    **kwargs
        As for `zeros`.

    Raises
    ------
    ValueError
        Neither `num` nor `shape` is given, or they differ; or as `zeros`.

    """
    if num is None and shape is None:
        msg = "num, shape: expected at least one of them, got neither"
        raise ArgumentError(msg)
    wanted = (operator.index(num),) if shape is None else as_shape(shape)  # type: ignore[arg-type]  # see above
    count = prod(wanted)
    if num is not None and operator.index(num) != count:
        msg = f"num, shape: expected the same number of items, got {num} and {wanted}"
        raise ArgumentError(msg)
    low, high = np.asarray(start) * 1.0, np.asarray(stop) * 1.0
    if low.ndim or high.ndim:
        msg = f"start, stop: expected numbers, got shapes {low.shape} and {high.shape}"
        raise ArgumentError(msg)
    exact = np.result_type(low, high, float(count))
    plan = plan_array(wanted, exact if dtype is None else dtype, kwargs)
    kind = plan.dtype
    span = np.subtract(high, low, dtype=exact)
    parts = count - 1 if endpoint else count
    step = span / parts if parts > 0 else None

    def values(index: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        items: np.ndarray[Any, Any] = index.astype(exact)
        if step is None:
            items *= span
        elif step == 0:  # it was rounded to that
            items /= parts
            items *= span
        else:
            items *= step
        items += low
        if endpoint and count > 1:
            items[index == count - 1] = high
        if kind.kind in "iu":
            np.floor(items, out=items)
        return items.astype(kind, copy=False)

    return NDArray(build_array(plan, _by_index(plan, values, c_order=c_order)))


def eye(
    N: int,  # noqa: N803  (the name users know)
    M: int | None = None,  # noqa: N803
    k: int = 0,
    dtype: DTypeLike = np.float64,
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return zeros with ones on a diagonal, as `numpy.eye`; only chunks on the diagonal take space.

    Parameters
    ----------
    N, M
        Rows and columns; as many columns as rows if `M` is None.
    k
        Which diagonal: above the main one if positive, below if negative.
    dtype
        Of an item.
    **kwargs
        As for `zeros`.

    Raises
    ------
    ValueError, StorageError
        As `zeros`.

    """
    shape = (operator.index(N), operator.index(N if M is None else M))
    diagonal = operator.index(k)
    plan = plan_array(shape, dtype, kwargs)
    if plan.layout.ndim != len(shape):
        msg = f"dtype: expected no sub-array, got {dtype}"
        raise ArgumentError(msg)
    intersected = _on_diagonal(plan, diagonal)

    def produce(box: Box) -> np.ndarray[Any, Any]:
        rows, columns = box
        offset = diagonal + rows.start - columns.start
        return np.eye(rows.stop - rows.start, columns.stop - columns.start, offset, plan.dtype)

    if not intersected:
        return NDArray(build_special(plan, SpecialValue.ZERO))
    with begin_array(plan) as schunk:
        put_special(schunk, plan, SpecialValue.ZERO, None)
        store = schunk._handle.store
        chunks = packed(schunk, plan, produce, (box for _, box in intersected))
        for (nchunk, _), chunk in zip(intersected, chunks, strict=True):
            store.replace(nchunk, chunk)
    return NDArray(schunk)


def _on_diagonal(plan: ArrayPlan, k: int) -> list[tuple[int, Box]]:
    """Return number and box of each chunk that the diagonal ``column - row == k`` intersects."""
    layout = plan.layout
    if not layout.nchunks:
        return []
    (height, width), (tall, wide) = layout.shape, layout.chunks
    intersected: list[tuple[int, Box]] = []
    for number, top in enumerate(range(0, height, tall)):
        bottom = min(top + tall, height)
        first, last = max(top + k, 0), min(bottom + k, width)
        if first >= last:
            continue
        for column in range(first // wide, (last - 1) // wide + 1):
            left = column * wide
            intersected.append(
                (number * layout.grid[1] + column, (slice(top, bottom), slice(left, min(left + wide, width))))
            )
    return intersected


def _by_index(
    plan: ArrayPlan, values: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]], *, c_order: bool
) -> Produce:
    """Return what produces the items of boxes, given the function from item numbers to values."""
    shape = plan.layout.shape
    weights = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    done = 0

    def in_order(box: Box) -> np.ndarray[Any, Any]:
        index = np.zeros((1,) * len(box), np.int64)
        for axis, (edge, weight) in enumerate(zip(box, weights, strict=True)):
            along = np.arange(edge.start * weight, edge.stop * weight, weight, dtype=np.int64)
            index = index + along.reshape([-1 if i == axis else 1 for i in range(len(box))])
        return values(index)

    def chunk_by_chunk(box: Box) -> np.ndarray[Any, Any]:
        nonlocal done
        extent = tuple(edge.stop - edge.start for edge in box)
        index = np.arange(done, done + prod(extent), dtype=np.int64).reshape(extent)
        done += index.size
        return values(index)

    return in_order if c_order else chunk_by_chunk


def _progression(
    start: Any,
    stop: Any,
    step: Any,
    dtype: DTypeLike | None,
) -> tuple[Any, Any, int, np.dtype[Any]]:
    """Return first value, difference, number of values and dtype of a range, as NumPy computes them."""
    kind = (
        np.result_type(np.arange(start, start, step), np.arange(stop, stop, step)) if dtype is None else np.dtype(dtype)
    )
    if kind.kind in "mM":
        return _dates(start, stop, step, kind)
    ratio = (stop - start) / step
    try:
        parts = (ratio.real, ratio.imag) if isinstance(ratio, complex) else (ratio,)
        count = max(min(ceil(part) for part in parts), 0)
    except OverflowError:
        msg = f"start, stop, step: expected a range of fewer than 2**63 values, got {ratio}"
        raise ArgumentError(msg) from None
    native = kind.newbyteorder("=")
    if not _computable(native):
        return start, step, count, kind
    pair = np.empty(2, native)
    pair[0], pair[1] = start, start + step
    exact = pair.astype(_arithmetic(native))
    return exact[0], (exact[1:] - exact[:1])[0], count, kind


def _dates(start: Any, stop: Any, step: Any, dtype: np.dtype[Any]) -> tuple[Any, Any, int, np.dtype[Any]]:
    """Return the same for dates and differences of dates, which are integers of a unit."""
    native = dtype.newbyteorder("=")
    unit = np.dtype(native.str.replace("M8", "m8"))
    first, last = (int(np.asarray(value).astype(native).astype(np.int64)) for value in (start, stop))
    delta = int(np.asarray(step).astype(unit).astype(np.int64))
    return np.int64(first), np.int64(delta), max(-((first - last) // delta), 0), dtype


def _computable(dtype: np.dtype[Any]) -> bool:
    """Return whether `_computed` knows the arithmetic of a dtype."""
    return dtype.kind in "iufcmM" or dtype.name == "bfloat16"


def _arithmetic(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return in which dtype NumPy computes the values of a range."""
    if dtype.kind in "mM":
        return np.dtype(np.int64)
    if (dtype.kind == "f" and dtype.itemsize <= 2) or dtype.name == "bfloat16":  # half precision
        return np.dtype(np.float32)
    return dtype


def _computed(
    index: np.ndarray[Any, Any],
    first: Any,
    delta: Any,
    dtype: np.dtype[Any],
) -> np.ndarray[Any, Any]:
    """Return ``first + index * delta`` as items of `dtype`."""
    exact = _arithmetic(dtype)
    if exact.kind == "c":
        items = np.empty(index.shape, exact)
        number = index.astype(items.real.dtype)
        items.real, items.imag = first.real + number * delta.real, first.imag + number * delta.imag
        return items
    items = index.astype(exact)
    items *= delta
    items += first
    return items.view(dtype) if dtype.kind in "mM" else items.astype(dtype, copy=False)
