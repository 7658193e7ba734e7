"""Arrays from arrays: `asarray`, `array`, `astype`, `copy`.

Large sources are read one chunk at a time. Copies of an `NDArray` are made in `ndarray_copy`.

Source: docs/format/b2nd.md, "Arrays without items, and of one".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk._array.array_sources import source_of
from superchunk._array.creation_plan import check_names, plan_array, storage_field
from superchunk._array.filling import build_array
from superchunk._array.ndarray import NDArray
from superchunk._array.ndarray_copy import copied
from superchunk._array.partition import lengths
from superchunk._codec.encoder import with_typesize
from superchunk._codec.parameters import as_recorded
from superchunk.exceptions import ArgumentError
from superchunk.params import as_cparams, as_dparams

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from numpy.typing import DTypeLike

    from superchunk._array.array_sources import Casting
    from superchunk._array.creation_plan import ArrayKeywords

__all__ = ["array", "asarray", "astype", "copy"]


def asarray(
    array: object,
    copy: bool | None = None,
    dtype: DTypeLike | None = None,
    casting: Casting = "unsafe",
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return an array of the items of anything that has some.

    Parameters
    ----------
    array
        An NDArray; a NumPy array, of any strides; anything with a buffer, or the array interface,
        or DLPack on the CPU; an object with `shape`, `dtype` and slicing, such as a dataset of h5py or
        Zarr, which is read chunk by chunk; else what `numpy.asarray` takes.
    copy
        None: an NDArray comes back itself unless its dtype, chunks, blocks, parameters or storage are
        to be others. True: never. False: an error where it does not.
    dtype
        None: that of the items.
    casting
        What may be cast to `dtype`, as in NumPy.
    **kwargs
        As for `zeros`.

    Returns
    -------
    NDArray
        Of an NDArray a copy with all metalayers, as `NDArray.copy` makes.

    Raises
    ------
    TypeError
        Items are Python objects, cannot be cast by that rule, or are in a device's memory.
    ValueError
        `copy` is False and the items would have to be copied; or as `zeros`.
    StorageError
        Something is at the path and `mode` is not "w", or writing failed.

    Notes
    -----
    Items must not change until this returns: the interpreter lock is released while they are compressed.

    Examples
    --------
    >>> import numpy as np
    >>> a = asarray(np.arange(12).reshape(3, 4).T, chunks=(2, 2))
    >>> a[:, 1].tolist()
    [4, 5, 6, 7]

    """
    if isinstance(array, NDArray):
        if not copy and _is_as_wanted(array, dtype, kwargs):
            return array
        if copy is False:
            msg = "copy=False: the array would have to be copied for another dtype, partition, parameter or storage"
            raise ArgumentError(msg)
        return NDArray(copied(array, dtype, casting, kwargs))
    if copy is False:
        msg = f"copy=False: the items of a {type(array).__name__} are always copied, for they are compressed"
        raise ArgumentError(msg)
    source = source_of(array, dtype, casting)
    return NDArray(build_array(plan_array(source.shape, source.dtype, kwargs), source.read))


def array(
    array: object,
    copy: bool | None = True,
    dtype: DTypeLike | None = None,
    casting: Casting = "unsafe",
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return a new array of the items of anything that has some: `asarray` that copies."""
    return asarray(array, copy, dtype, casting, **kwargs)


def astype(
    array: object,
    dtype: DTypeLike,
    casting: Casting = "unsafe",
    copy: bool = True,
    **kwargs: Unpack[ArrayKeywords],
) -> NDArray:
    """Return the items of an array as another dtype, cast chunk by chunk.

    Parameters
    ----------
    array
        What `asarray` takes.
    dtype
        What the items become.
    casting
        What may be cast, as in NumPy.
    copy
        False: an NDArray that is as wanted comes back itself.
    **kwargs
        As for `zeros`.

    Raises
    ------
    TypeError, ValueError, StorageError
        As for `asarray`.

    """
    return asarray(array, True if copy else None, dtype, casting, **kwargs)


def copy(array: object, dtype: DTypeLike | None = None, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
    """Return a copy of an array, in memory unless `urlpath` says otherwise.

    Parameters
    ----------
    array
        An NDArray, whose chunks, blocks, parameters and metalayers the copy has unless they are
        given; or what `asarray` takes.
    dtype
        What the items become; None: what they are.
    **kwargs
        As for `zeros`; for an NDArray without `meta`.

    Raises
    ------
    ValueError
        `meta` is given; or as `zeros`.
    FormatError
        A chunk is damaged: damage is not copied.
    StorageError
        Something is at the path and `mode` is not "w", or writing failed.

    """
    return asarray(array, copy=True, dtype=dtype, **kwargs)


def _is_as_wanted(array: NDArray, dtype: DTypeLike | None, keywords: Mapping[str, Any]) -> bool:
    """Return whether `asarray` with these arguments need not make a copy of an NDArray."""
    check_names(keywords)
    given = {name: value for name, value in keywords.items() if value is not None}
    if dtype is not None and np.dtype(dtype) != array.dtype:
        return False
    for name, held in (("chunks", array.chunks), ("blocks", array.blocks)):
        if name in given and lengths(name, given[name]) != held:
            return False
    if "cparams" in given:
        wanted = as_cparams(given["cparams"], array.dtype.itemsize)
        held_params = array.schunk.cparams
        if as_recorded(with_typesize(wanted, held_params.typesize, held_params.blocksize)) != held_params:
            return False
    if "dparams" in given and as_dparams(given["dparams"]) != array.schunk.dparams:
        return False
    contiguous = storage_field(given, "contiguous")
    return (
        storage_field(given, "urlpath") is None
        and storage_field(given, "meta") is None
        and contiguous in {None, array.schunk.contiguous}
    )
