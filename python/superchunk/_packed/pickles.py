"""An array as one chunk that holds a pickle of it: `pack`, `pack_array`, and the way back.

As python-blosc2 has them. No pickle is ever run, see `_pickled`: what a stranger packed gives an
array or an error.

Source: docs/format/metalayers.md, "Packed arrays".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from superchunk import _engine
from superchunk._codec.buffers import byte_view
from superchunk._packed import _pickled
from superchunk.core import compress_any_length
from superchunk.exceptions import FormatError, TruncatedError
from superchunk.params import MIN_HEADER_LENGTH, Codec, Filter, default_nthreads

if TYPE_CHECKING:
    from superchunk._codec.buffers import AnyBuffer

__all__ = ["pack", "pack_array", "unpack", "unpack_array"]

_PROTO: Final = b"\x80"
_UNPICKLER_KEYWORDS: Final = frozenset({"encoding", "errors", "fix_imports"})


def pack(
    obj: Any,
    clevel: int = 9,
    filter: Filter | str = Filter.SHUFFLE,
    codec: Codec | str = Codec.BLOSCLZ,
) -> bytes:
    """Pack an array or a NumPy scalar into one chunk, as a pickle.

    Parameters
    ----------
    obj
        A NumPy array or scalar, or an array that converts to one. Object arrays may hold
        str, bytes, int, float, bool and None.
    clevel
        0 to 9.
    filter, codec
        As for `superchunk.compress`.

    Returns
    -------
    bytes
        The chunk, at most 2 GiB.

    Raises
    ------
    AttributeError
        `obj` has no `itemsize` or no `size`.
    ValueError
        `clevel` is out of range, or the pickle too large for a chunk; see `pack_array2`.
    TypeError
        It is masked or holds other objects; `filter` or `codec` is not of its enum.

    Examples
    --------
    >>> import numpy as np
    >>> packed = pack(np.arange(1000))
    >>> len(packed) < 2000, unpack(packed)[-1]
    (True, np.int64(999))

    """
    for name in ("itemsize", "size"):
        if not hasattr(obj, name):
            msg = f"obj: expected an object with the attribute {name!r}, got {type(obj).__name__}"
            raise AttributeError(msg)
    value = obj if isinstance(obj, (np.ndarray, np.generic)) else np.asarray(obj)
    return compress_any_length(_pickled.dump(value), max(int(value.itemsize), 1), clevel, filter, codec)


def unpack(packed_object: AnyBuffer, **kwargs: Any) -> Any:
    """Return the array or scalar in a chunk of `pack` or `pack_array`.

    The pickle is not run: anything in it but an array or a scalar is an error.

    Parameters
    ----------
    packed_object
        The chunk.
    **kwargs
        Those of the unpickler (`encoding`, `errors`, `fix_imports`); they change nothing
        here, because byte strings of Python 2 are distinguished without them.

    Raises
    ------
    ValueError
        It is shorter than 16 bytes.
    FormatError
        It is no chunk, or holds no pickle of an array or a scalar; a RuntimeError and a
        ValueError.
    TypeError
        It has no buffer, or a keyword is not known.

    """
    unknown = kwargs.keys() - _UNPICKLER_KEYWORDS
    if unknown:
        msg = f"unknown keyword {min(unknown)!r}"
        raise TypeError(msg)
    view = byte_view(packed_object, "packed_object")
    if view.nbytes < MIN_HEADER_LENGTH:
        raise TruncatedError("chunk header", at=0, needed=MIN_HEADER_LENGTH, got=view.nbytes)
    nbytes = _engine.describe(view).nbytes
    opener = _engine.read([(view, nbytes, 0, 1, 0)]) if nbytes else b""
    if opener != _PROTO:  # before the memory that a chunk of 32 bytes may ask for
        raise FormatError("pickle", at=0, expected=_PROTO, found=opener)
    return _pickled.load(memoryview(_engine.decompress(view, nthreads=default_nthreads())))


def pack_array(
    arr: Any,
    clevel: int = 9,
    filter: Filter | str = Filter.SHUFFLE,
    codec: Codec | str = Codec.BLOSCLZ,
) -> bytes:
    """Pack an array into one chunk, as a pickle; see `pack`.

    For arrays over 2 GiB, and for files that others can read in parts, use `pack_array2` or
    `save_array`.

    Raises
    ------
    AttributeError, ValueError, TypeError
        As `pack`.

    """
    return pack(arr, clevel, filter, codec)


def unpack_array(packed_array: AnyBuffer, **kwargs: Any) -> Any:
    """Return the array in a chunk of `pack_array`; see `unpack`.

    Parameters
    ----------
    packed_array
        The chunk.
    **kwargs
        As for `unpack`; ``encoding="bytes"`` makes text of an array of byte strings.

    Raises
    ------
    ValueError, FormatError, TypeError
        As `unpack`; a UnicodeDecodeError for byte strings that are not UTF-8.

    """
    array = unpack(packed_array, **kwargs)
    if kwargs.get("encoding") == "bytes" and isinstance(array, np.ndarray) and _has_bytes(array):
        texts = [item.decode() if isinstance(item, bytes) else item for item in array.ravel().tolist()]
        return np.array(texts).reshape(array.shape)
    return array


def _has_bytes(array: np.ndarray[Any, np.dtype[Any]]) -> bool:
    return array.dtype.kind == "S" or (array.dtype == object and any(isinstance(item, bytes) for item in array.flat))
