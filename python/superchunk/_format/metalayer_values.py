"""What users put into metalayers, as MessagePack.

::

    tuple            array whose first element is the string "__tuple__"
    complex          extension 44   two big-endian doubles
    set, frozenset   extension 45   its elements, as an array
    NumPy array      extension 46   map: dtype {"str": ...} or {"descr": [...]},
                                    shape, data (C order)
    42, 43           a frame; a reference to an object elsewhere: not read here

Extensions belong into vlmetalayers only. Reading trusts nothing: sizes and depth are
bounded by the input, no text is evaluated, and object arrays are refused.

Source: docs/format/metalayers.md, "Values".
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Final

import msgpack
import numpy as np

from superchunk._format.descr import dtype_of_spec, spec_of_dtype
from superchunk.exceptions import FormatError, MetalayerValueError, UnsafeDeserializationError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EXT_FRAME", "EXT_REFERENCE", "MAX_DEPTH", "pack", "unpack"]

EXT_FRAME = 42
"""Extension code of a complete contiguous frame."""

EXT_REFERENCE = 43
"""Extension code of a reference to an object elsewhere."""

MAX_DEPTH = 128
"""Deepest nesting of lists, maps and extensions."""

_TUPLE: Final = "__tuple__"
_EXT_COMPLEX = 44
_EXT_SET = 45
_EXT_ARRAY = 46
_COMPLEX = struct.Struct(">dd")
_MIN_INT, _MAX_INT = -(2**63), 2**64 - 1
_SCALAR_KEYS = (str, bytes, int, float, bool, type(None))
_ARRAYS = (*range(0x90, 0xA0), 0xDC, 0xDD)
_MAPS = (*range(0x80, 0x90), 0xDE, 0xDF)
# Every byte that begins no list and no map; deleting them leaves at least one byte for
# each level of nesting.
_NO_CONTAINER = bytes(set(range(256)) - {*_ARRAYS, *_MAPS})


def pack(
    value: object,
    *,
    extensions: bool = True,
    default: Callable[[object], tuple[int, bytes] | None] | None = None,
) -> bytes:
    """Return `value` as MessagePack.

    Parameters
    ----------
    value
        None, bool, int, float, complex, str, bytes, NumPy scalars and arrays, and
        lists, tuples, dicts and sets of these.
    extensions
        Allow complex numbers, sets and arrays; False for fixed metalayers.
    default
        Asked about other objects: returns extension code and payload, or None.

    Raises
    ------
    OverflowError
        An integer needs more than 64 bits.
    TypeError
        There is no way to write an object, or a dict has a key other than str,
        bytes, int, float, bool and None.
    MetalayerValueError
        Nested too deep, or a list begins with the string that marks tuples.

    """
    plain = _Plain(default, extensions=extensions).convert(value, 0)
    return bytes(msgpack.packb(plain, use_bin_type=True, strict_types=False))


def unpack(
    raw: bytes,
    *,
    extensions: bool = True,
    hook: Callable[[int, bytes], object] | None = None,
) -> Any:
    """Return the value that `raw` stands for.

    Parameters
    ----------
    raw
        One MessagePack value, complete.
    extensions
        Understand codes 44 to 46; False for fixed metalayers.
    hook
        Called with code and payload of the other extensions; without it they are an
        error.

    Raises
    ------
    FormatError
        It is no MessagePack, nested deeper than 128, or has more bytes behind.
    MetalayerValueError
        It holds an extension value that may not be read.

    """
    return _unpack(bytes(raw), 0, hook, extensions=extensions)


class _Plain:
    """Turns values into what msgpack writes by itself."""

    def __init__(self, default: Callable[[object], tuple[int, bytes] | None] | None, *, extensions: bool) -> None:
        self.default = default
        self.extensions = extensions

    def convert(self, value: object, depth: int) -> object:
        """Return `value` in plain types, at most `MAX_DEPTH` deep."""
        if value is None or isinstance(value, (str, bytes, bytearray, memoryview, bool, float)):
            return _plain_scalar(value)
        if isinstance(value, np.generic) and not isinstance(value, np.void):
            return self.convert(value.item(), depth)
        if isinstance(value, int):
            return _plain_int(value)
        if depth >= MAX_DEPTH:
            raise MetalayerValueError(f"value: expected at most {MAX_DEPTH} levels of nesting")
        depth += 1
        if isinstance(value, (tuple, list)):
            return self._list(value, depth)
        if isinstance(value, dict):
            return {_plain_key(key): self.convert(item, depth) for key, item in value.items()}
        return self._extension(value, depth)

    def _list(self, value: tuple[object, ...] | list[object], depth: int) -> list[object]:
        if isinstance(value, tuple):
            return [_TUPLE, *(self.convert(item, depth) for item in value)]
        if value and isinstance(value[0], str) and value[0] == _TUPLE:
            raise MetalayerValueError(f"value: a list may not begin with {_TUPLE!r}, which marks tuples")
        return [self.convert(item, depth) for item in value]

    def _extension(self, value: object, depth: int) -> msgpack.ExtType:
        if self.extensions:
            if isinstance(value, complex):
                return msgpack.ExtType(_EXT_COMPLEX, _COMPLEX.pack(value.real, value.imag))
            if isinstance(value, (set, frozenset)):
                items = [self.convert(item, depth) for item in value]
                return msgpack.ExtType(_EXT_SET, msgpack.packb(items, use_bin_type=True))
            if isinstance(value, (np.ndarray, np.void)):
                return msgpack.ExtType(_EXT_ARRAY, self._array(np.asarray(value), depth))
        coded = self.default(value) if self.default is not None else None
        if coded is None:
            raise TypeError(f"value: cannot store {type(value).__name__} in a metalayer")
        return msgpack.ExtType(*coded)

    def _array(self, value: np.ndarray[Any, np.dtype[Any]], depth: int) -> bytes:
        dtype = value.dtype
        if dtype.hasobject:
            raise TypeError(f"value: cannot store an array of dtype {dtype} in a metalayer")
        spec = spec_of_dtype(dtype)
        described = {"str": spec} if isinstance(spec, str) else {"descr": self.convert(spec, depth)}
        content = {"dtype": described, "shape": list(value.shape), "data": value.tobytes()}
        return bytes(msgpack.packb(content, use_bin_type=True))


def _plain_scalar(value: object) -> object:
    """Return a str, bytes, float, bool or None in the type that msgpack writes."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    return value


def _plain_int(value: int) -> int:
    """Return an integer that 64 bits can hold."""
    if not _MIN_INT <= value <= _MAX_INT:
        raise OverflowError(f"value: expected an integer of at most 64 bits, got {value.bit_length()}")
    return int(value)


def _plain_key(key: object) -> object:
    """Return a dict's key if it can be read back as a key."""
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, int) and not isinstance(key, bool):
        return _plain_int(key)
    if isinstance(key, _SCALAR_KEYS):
        return key
    raise TypeError(
        f"value: cannot store a dict key of type {type(key).__name__}; expected str, bytes, int, float, bool or None"
    )


def _unpack(
    raw: bytes,
    depth: int,
    hook: Callable[[int, bytes], object] | None,
    *,
    extensions: bool,
) -> Any:
    def ext_hook(code: int, payload: bytes) -> object:
        if extensions and code == _EXT_COMPLEX:
            return _read_complex(payload)
        if extensions and code in (_EXT_SET, _EXT_ARRAY):
            if depth >= MAX_DEPTH:
                raise _malformed(f"extensions nested deeper than {MAX_DEPTH}")
            content = _unpack(payload, depth + 1, hook, extensions=True)
            return _read_set(content) if code == _EXT_SET else _read_array(content)
        if hook is not None:
            return hook(code, payload)
        raise UnsafeDeserializationError(
            f"value: expected no extension of code {code}"
            + (" with deserialize='safe'" if code in (EXT_FRAME, EXT_REFERENCE) else "")
        )

    # Nesting needs one byte a level at least, so short values cannot be deep.
    if len(raw) > MAX_DEPTH and len(raw.translate(None, _NO_CONTAINER)) > MAX_DEPTH:
        _check_depth(raw)
    try:
        return msgpack.unpackb(
            raw,
            raw=False,
            strict_map_key=False,
            unicode_errors="surrogateescape",
            list_hook=_read_list,
            ext_hook=ext_hook,
        )
    except (FormatError, MetalayerValueError):
        raise
    except (
        ValueError,
        TypeError,
        OverflowError,
        RecursionError,
        msgpack.UnpackException,
    ) as error:
        raise _malformed(str(error) or type(error).__name__) from error


def _check_depth(raw: bytes) -> None:
    """Refuse values nested deeper than `MAX_DEPTH`, before anything is built.

    The unpacker walks the headers without making objects.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=max(len(raw), 1))
    unpacker.feed(raw)
    left = [1]
    try:
        while left:
            if not left[-1]:
                left.pop()
                continue
            left[-1] -= 1
            code = raw[unpacker.tell()] if unpacker.tell() < len(raw) else 0
            if code in _ARRAYS:
                left.append(unpacker.read_array_header())
            elif code in _MAPS:
                left.append(2 * unpacker.read_map_header())
            else:
                unpacker.skip()
            if len(left) > MAX_DEPTH + 1:
                raise _malformed(f"nested deeper than {MAX_DEPTH}")
    except FormatError:
        raise
    except (ValueError, msgpack.UnpackException) as error:
        raise _malformed(str(error) or type(error).__name__) from error


def _read_list(items: list[Any]) -> list[Any] | tuple[Any, ...]:
    """Turn the marked lists into tuples."""
    if items and isinstance(items[0], str) and items[0] == _TUPLE:
        return tuple(items[1:])
    return items


def _read_complex(payload: bytes) -> complex:
    if len(payload) != _COMPLEX.size:
        raise _malformed(f"a complex number of {len(payload)} bytes")
    return complex(*_COMPLEX.unpack(payload))


def _read_set(items: object) -> set[Any]:
    if not isinstance(items, list):
        raise _malformed(f"a set made of {type(items).__name__}")
    return {frozenset(item) if isinstance(item, set) else item for item in items}


def _read_array(content: object) -> np.ndarray[Any, np.dtype[Any]]:
    if not isinstance(content, dict):
        raise _malformed(f"an array made of {type(content).__name__}")
    described, shape, data = (content.get(key) for key in ("dtype", "shape", "data"))
    if not isinstance(described, dict) or not isinstance(shape, (list, tuple)) or not isinstance(data, bytes):
        raise _malformed("an array without dtype, shape or data")
    try:
        dtype = dtype_of_spec(described.get("descr", described.get("str")))
    except ValueError as error:
        raise _malformed(f"an array whose dtype is none ({error})") from None
    if not all(isinstance(extent, int) and extent >= 0 for extent in shape):
        raise _malformed(f"an array of shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(data):
        raise _malformed(f"an array of shape {shape} and dtype {dtype} in {len(data)} bytes")
    return np.frombuffer(data, dtype=dtype).reshape(shape).copy()


def _malformed(found: str) -> FormatError:
    return FormatError("metalayer value", at=0, expected="a MessagePack value", found=found)
