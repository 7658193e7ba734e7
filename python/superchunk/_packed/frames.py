"""An array or a tensor as a frame: `pack_array2`, `save_array`, `pack_tensor` and their relatives.

::

    frame: the items in C order, and the vlmetalayer
    __pack_tensor__ = (kind, shape, dtype)
        kind     "numpy", "torch" or "tensorflow"
        dtype    "<f8", or a list of fields

As python-blosc2 has them. torch and tensorflow are imported only to make their tensors.

Source: docs/format/metalayers.md, "Packed arrays".
"""

from __future__ import annotations

import importlib
import math
import os
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from superchunk._api.opening import open as open_frame
from superchunk._api.opening import schunk_from_cframe
from superchunk._array.chunk_geometry import fresh
from superchunk._codec.buffers import byte_view
from superchunk._format.descr import dtype_of_spec, spec_of_dtype
from superchunk.exceptions import FormatError, MetalayerKeyError
from superchunk.schunk import SChunk

if TYPE_CHECKING:
    from superchunk._codec.buffers import AnyBuffer
    from superchunk.params import DParams, DParamsDict

__all__ = [
    "load_array",
    "load_tensor",
    "pack_array2",
    "pack_tensor",
    "save_array",
    "save_tensor",
    "unpack_array2",
    "unpack_tensor",
]

AnyArray: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_ENTRY: Final = "__pack_tensor__"
_KINDS: Final = ("numpy", "torch", "tensorflow")


def pack_tensor(tensor: Any, chunksize: int | None = None, **kwargs: Any) -> Any:
    """Pack a tensor or an array into a frame.

    Parameters
    ----------
    tensor
        A torch or tensorflow tensor, a NumPy array, or anything that converts to one.
    chunksize
        Bytes of a chunk, made a whole number of items; None: all of it, at most 2**28.
    **kwargs
        Those of `SChunk`. Items have the size of those of the array, unless `cparams`
        says otherwise.

    Returns
    -------
    bytes or int
        The frame; with a `urlpath` how many bytes the file has, or all files of a directory.

    Raises
    ------
    TypeError
        Its items are Python objects, or it is masked.
    ValueError, AttributeError
        As `SChunk`.
    StorageError
        Something is at the path and `mode` is not "w", or writing failed; nothing is left.

    Examples
    --------
    >>> import numpy as np
    >>> frame = pack_tensor(np.arange(6.0).reshape(2, 3))
    >>> unpack_tensor(frame)
    array([[0., 1., 2.],
           [3., 4., 5.]])

    """
    kind = _kind_of(tensor)
    array = _as_array(tensor, kind)
    entry = (kind, array.shape, spec_of_dtype(array.dtype))
    content = byte_view(array.reshape(-1).view(np.uint8)) if array.nbytes else memoryview(b"")
    if chunksize is not None and chunksize > 0:  # whole items: the reference cannot read others
        chunksize = max(chunksize // max(array.itemsize, 1), 1) * max(array.itemsize, 1)
    if kwargs.get("storage") is None and kwargs.get("urlpath") is None:
        kwargs.pop("storage", None)
        kwargs.setdefault("contiguous", True)
    with SChunk._of_data(
        content, {_ENTRY: entry}, itemsize=max(array.itemsize, 1), chunksize=chunksize, **kwargs
    ) as schunk:
        path = schunk._handle.path
        if path is None:
            return schunk.to_cframe()
    return _nbytes_of(path)


def unpack_tensor(cframe: AnyBuffer) -> Any:
    """Return the tensor or array in a frame of `pack_tensor`, of the kind that was packed.

    Raises
    ------
    ImportError
        It was a tensor, and its package is not installed. `unpack_array2` does without.
    KeyError
        The frame has no entry that says what it holds.
    FormatError
        It is no frame, a damaged one, or the entry does not fit the data; a RuntimeError.

    """
    with schunk_from_cframe(cframe) as schunk:
        return _restored(schunk, None)


def pack_array2(arr: Any, chunksize: int | None = None, **kwargs: Any) -> Any:
    """Pack an array into a frame; the same as `pack_tensor`."""
    return pack_tensor(arr, chunksize, **kwargs)


def unpack_array2(cframe: AnyBuffer) -> AnyArray:
    """Return what is in a frame of `pack_array2` as a NumPy array, whatever was packed.

    Raises
    ------
    KeyError, FormatError
        As `unpack_tensor`.

    """
    with schunk_from_cframe(cframe) as schunk:
        array: AnyArray = _restored(schunk, "numpy")
        return array


def save_tensor(tensor: Any, urlpath: str | os.PathLike[str], chunksize: int | None = None, **kwargs: Any) -> int:
    """Save a tensor or an array in a frame on the disk.

    Parameters
    ----------
    tensor, chunksize, **kwargs
        As for `pack_tensor`. An existing frame is replaced with ``mode="w"`` only.
    urlpath
        The file; with ``contiguous=False`` the directory.

    Returns
    -------
    int
        Bytes of the file, or of all files of the directory.

    Raises
    ------
    TypeError, ValueError, AttributeError, StorageError
        As `pack_tensor`.

    """
    if urlpath is None:
        msg = "urlpath: expected a path, got None; pack_tensor() and pack_array2() make frames in memory"
        raise TypeError(msg)
    return int(pack_tensor(tensor, chunksize, urlpath=urlpath, **kwargs))


def load_tensor(
    urlpath: str | os.PathLike[str],
    dparams: DParams | DParamsDict | None = None,
    *,
    storage_options: dict[str, object] | None = None,
) -> Any:
    """Return the tensor or array that `save_tensor` saved, of the kind that was saved.

    Parameters
    ----------
    urlpath
        The file or directory.
    dparams
        How to decompress.
    storage_options
        None: those of remote files, which are not opened here.

    Raises
    ------
    FileNotFoundError
        There is nothing.
    ValueError
        There are `storage_options`.
    ImportError
        It was a tensor, and its package is not installed. `load_array` does without.
    KeyError, FormatError
        As `unpack_tensor`.

    """
    with open_frame(urlpath, dparams=dparams, storage_options=storage_options) as schunk:
        return _restored(schunk, None)


def save_array(arr: Any, urlpath: str | os.PathLike[str], chunksize: int | None = None, **kwargs: Any) -> int:
    """Save an array in a frame on the disk; the same as `save_tensor`.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "a.b2frame")
    >>> save_array(np.arange(1000), path) == os.path.getsize(path)
    True
    >>> load_array(path)[-1]
    np.int64(999)

    """
    return save_tensor(arr, urlpath, chunksize, **kwargs)


def load_array(
    urlpath: str | os.PathLike[str],
    dparams: DParams | DParamsDict | None = None,
    *,
    storage_options: dict[str, object] | None = None,
) -> AnyArray:
    """Return what `save_array` or `save_tensor` saved as a NumPy array, whatever it was.

    Raises
    ------
    FileNotFoundError, KeyError, FormatError, ValueError
        As `load_tensor`.

    """
    with open_frame(urlpath, dparams=dparams, storage_options=storage_options) as schunk:
        array: AnyArray = _restored(schunk, "numpy")
        return array


def _kind_of(tensor: object) -> str:
    """Return whose tensor it is, by its type; nothing is imported for that."""
    for cls in type(tensor).__mro__:
        root = cls.__module__.partition(".")[0]
        if root in _KINDS[1:] and "Tensor" in cls.__name__:
            return root
    return "numpy"


def _as_array(tensor: Any, kind: str) -> AnyArray:
    """Return a tensor or array-like as a C-contiguous array."""
    if isinstance(tensor, np.ma.MaskedArray):
        msg = "tensor: a masked array cannot be packed; pack its data and its mask"
        raise TypeError(msg)
    if kind == "torch":
        tensor = tensor.numpy(force=True)  # detached, on the CPU
    elif kind == "tensorflow":
        tensor = tensor.numpy()
    return np.asarray(tensor, order="C")


def _restored(schunk: Any, kind: str | None) -> Any:
    """Return the array that a SChunk's entry describes, or a tensor of the kind that it names."""
    schunk = getattr(schunk, "schunk", schunk)
    packed, shape, dtype = _entry(schunk.vlmeta)
    expected = math.prod(shape) * dtype.itemsize
    if expected != schunk.nbytes:
        raise FormatError(
            f"vlmeta[{_ENTRY!r}]", at=0, expected=f"{schunk.nbytes} bytes", found=f"shape {shape} of {dtype}"
        )
    try:
        array: AnyArray = np.ndarray(shape, dtype, buffer=fresh((max(expected, 1),), np.dtype(np.uint8)))
    except (ValueError, OverflowError) as error:
        raise FormatError(f"vlmeta[{_ENTRY!r}]", at=0, expected="a shape of an array", found=error) from None
    if expected:
        _read_all(schunk, array.reshape(-1).view(np.uint8))
    kind = kind or packed
    if kind == "numpy":
        return array
    library = _library(kind)
    return library.from_numpy(array) if kind == "torch" else library.constant(array)


def _read_all(schunk: SChunk, out: AnyArray) -> None:
    """Fill `out` with all bytes, also behind the last whole item."""
    if len(out) % schunk.typesize == 0:
        schunk.get_slice(0, None, out)
        return
    at = 0
    for nchunk in range(schunk.nchunks):
        content = schunk.decompress_chunk(nchunk) or b""
        out[at : at + len(content)] = np.frombuffer(content, np.uint8)
        at += len(content)


def _entry(vlmeta: Any) -> tuple[str, tuple[int, ...], np.dtype[Any]]:
    """Return kind, shape and dtype, checked."""
    if _ENTRY not in vlmeta:
        msg = f"vlmeta: no metalayer {_ENTRY!r}, so this is no packed array or tensor"
        raise MetalayerKeyError(msg)
    entry = vlmeta[_ENTRY]
    where = f"vlmeta[{_ENTRY!r}]"
    if not isinstance(entry, (tuple, list)) or len(entry) != len(_KINDS):
        raise FormatError(where, at=0, expected="(kind, shape, dtype)", found=type(entry).__name__)
    kind, shape, spec = entry
    if kind not in _KINDS:
        raise FormatError(where, at=0, expected=f"a kind of {_KINDS}", found=ascii(kind)[:60])
    if not isinstance(shape, (tuple, list)) or not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        raise FormatError(where, at=0, expected="a shape", found=ascii(shape)[:60])
    if len(shape) > 64:  # NumPy's limit
        raise FormatError(where, at=0, expected="at most 64 dimensions", found=len(shape))
    try:
        return kind, tuple(shape), dtype_of_spec(spec)
    except ValueError as error:
        raise FormatError(where, at=0, expected="a dtype", found=error) from None


def _library(kind: str) -> Any:
    try:
        return importlib.import_module(kind)
    except ImportError as error:
        msg = (
            f"this is a tensor of {kind}, which is not installed: pip install {kind}, "
            "or use load_array or unpack_array2 for a NumPy array"
        )
        raise ImportError(msg, name=kind) from error


def _nbytes_of(path: str) -> int:
    """Return the bytes of a file, or of the files in a directory."""
    if not os.path.isdir(path):
        return os.stat(path).st_size
    with os.scandir(path) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())
