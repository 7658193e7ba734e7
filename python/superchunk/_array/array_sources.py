"""What an array can be made from, as one thing: shape, dtype, and the items of any box.

=========================================================  ====================================
given                                                      read
=========================================================  ====================================
`NDArray`                                                  box by box, decoding what is needed
NumPy arrays, buffers, NumPy's array interface             in place
objects with ``shape``, ``dtype`` and ``[slices]``,        box by box: datasets of h5py, Zarr,
not in memory                                              netCDF and the like
DLPack on the CPU                                          in place
all else: numbers, lists, ``__array__``                    as `numpy.asarray` takes it
=========================================================  ====================================

Pages of a mapped file are given back while it is read, so that memory stays bounded.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np

from superchunk._array.array_view import is_ndarray
from superchunk._array.creation_plan import as_shape
from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from numpy.typing import DTypeLike

    from superchunk._array.filling import Box

    Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]

__all__ = ["Source", "source_of"]

Items: TypeAlias = "np.ndarray[Any, Any]"

_CPU: Final = (1, 3)
"""Devices of DLPack whose memory is the machine's own: the CPU, and pinned for a GPU."""
_RELEASE_NBYTES: Final = 2**25
"""Bytes of a mapped file that are read before its pages are given back."""


@dataclass(frozen=True, slots=True)
class Source:
    """Items somewhere, to be read by boxes."""

    shape: tuple[int, ...]
    """Items in each dimension."""
    dtype: np.dtype[Any]
    """What `read` returns."""
    read: Callable[[Box], Items]
    """Returns the items of a box, a view where there is one."""

    def cast(self, dtype: DTypeLike, casting: Casting = "unsafe") -> Source:
        """Return the same items as another dtype, converted as they are read.

        Raises
        ------
        TypeError
            `casting` does not allow it.

        """
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self
        if not np.can_cast(self.dtype, wanted, casting):
            msg = f"dtype: cannot cast items from {self.dtype!r} to {wanted!r} according to the rule {casting!r}"
            raise TypeError(msg)
        return Source(self.shape, wanted, lambda box: self.read(box).astype(wanted, casting=casting))


def source_of(given: object, dtype: DTypeLike | None = None, casting: Casting = "unsafe") -> Source:
    """Return what `given` holds.

    Parameters
    ----------
    given
        See the top of this page.
    dtype
        The dtype to read it as; None: its own.
    casting
        What may be cast, as in NumPy.

    Raises
    ------
    TypeError
        Items of its dtype cannot be cast to `dtype` by that rule; memory of another device than the CPU.
    ValueError
        It is no array, such as a list of lists of different lengths.

    """
    source = _plain_source(given, dtype)
    return source if dtype is None else source.cast(dtype, casting)


def _plain_source(given: object, dtype: DTypeLike | None) -> Source:
    if is_ndarray(given):
        array = given
        return Source(array.shape, array.dtype, lambda box: np.asarray(array[box]))
    in_memory = _in_memory(given)
    if in_memory is not None:
        return _numpy_source(in_memory)
    shape, kind = getattr(given, "shape", None), _numpy_dtype(getattr(given, "dtype", None))
    if hasattr(given, "__dlpack__"):
        return _numpy_source(_from_dlpack(given))
    if isinstance(shape, tuple) and shape and kind is not None and hasattr(given, "__getitem__"):
        if not hasattr(given, "iloc"):  # pandas indexes by label
            return _outside_source(given, as_shape(shape), kind)
    elif not hasattr(given, "__array__"):
        return _numpy_source(np.asarray(given, dtype=dtype))  # what lists become depends on it
    return _numpy_source(np.asarray(given))


def _in_memory(given: object) -> Items | None:
    """Return an array on the memory of `given`, if that can be had without a copy."""
    if isinstance(given, np.ndarray):
        return np.asarray(given)
    if isinstance(given, (bytes, str)):
        return None
    try:
        memoryview(given)  # type: ignore[arg-type]  # that is the question
    except (TypeError, ValueError, BufferError):
        return None
    return np.asarray(given)


def _numpy_dtype(dtype: object) -> np.dtype[Any] | None:
    """Return a dtype of a source, if it is one that NumPy knows."""
    if dtype is None:
        return None
    try:
        return np.dtype(dtype)  # type: ignore[call-overload,no-any-return]  # that is the question
    except TypeError:
        return None


def _from_dlpack(given: Any) -> Items:
    """Return an array on the memory that `given` offers by DLPack."""
    device = given.__dlpack_device__()[0]
    if device not in _CPU:
        msg = f"array: expected memory of the CPU, got device {device} of DLPack; copy it to the CPU first"
        raise TypeError(msg)
    try:
        return np.from_dlpack(given)
    except (BufferError, RuntimeError, TypeError):
        if not hasattr(given, "__array__"):
            raise
        return np.asarray(given)  # a dtype that DLPack, or NumPy, has no word for


def _numpy_source(array: Items) -> Source:
    """Return the items of an array in place; of a mapped file, with its pages given back."""
    mapping = _shared_mapping(array)
    if mapping is None:
        return Source(array.shape, array.dtype, lambda box: _view(array, box))
    held = 0

    def read(box: Box) -> Items:
        nonlocal held
        items = _view(array, box)
        if held > _RELEASE_NBYTES:
            mapping.madvise(mmap.MADV_DONTNEED)
            held = 0
        held += items.nbytes
        return items

    return Source(array.shape, array.dtype, read)


def _view(array: Items, box: Box) -> Items:
    """Return the items of a box in place; an array also where there are no dimensions."""
    key: Any = (*box, ...)
    view: Items = array[key]
    return view


def _shared_mapping(array: Items) -> mmap.mmap | None:
    """Return the file mapping that an array lies in, if its pages can be dropped without loss."""
    owner: object = array
    mode = "c"
    while isinstance(owner, (np.ndarray, memoryview)):
        if isinstance(owner, np.memmap):
            mode = str(owner.mode)
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    if isinstance(owner, mmap.mmap) and mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
        return owner
    return None


def _outside_source(given: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Source:
    """Return the items of an object that is indexed as NumPy's arrays are."""
    indexed = cast("Any", given)

    def read(box: Box) -> Items:
        items = np.asarray(indexed[box])
        wanted = tuple(edge.stop - edge.start for edge in box)
        if items.shape != wanted:
            msg = f"array: expected items of shape {wanted} from {type(given).__name__}, got {items.shape}"
            raise ArgumentError(msg)
        return items if items.dtype == dtype else items.astype(dtype)

    return Source(shape, dtype, read)
