"""NumPy arrays and scalars as pickles: written by `pickle`, read without it.

::

    array    _frombuffer(bytes, dtype, shape, "C" or "F")
             _reconstruct(ndarray, (0,), b"b") with state (1, shape, dtype, fortran, bytes or list)
    scalar   scalar(dtype, bytes)
    dtype    dtype("f8", False, True) with state (3, "<", subarray, names, fields, itemsize, ...)

Reading takes the tree of a pickle (`_pickle_tree`) and builds what it describes,
comparing each size with the bytes that are there. No function that the pickle names is
called, so that a stranger's bytes can give an array, a scalar or an error.

Source: what NumPy 1.26 to 2.4 write with protocols 2 to 5.
"""

from __future__ import annotations

import math
import pickle
import re
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from superchunk._format.descr import MAX_DEPTH, MAX_FIELDS, dtype_of_spec, subarray
from superchunk._packed._pickle_tree import (
    DTYPE,
    EXTRA,
    FROMBUFFER,
    NDARRAY,
    RECONSTRUCT,
    RECORD,
    SCALAR,
    Call,
    Name,
    read_tree,
    text_of,
)
from superchunk.exceptions import FormatError

__all__ = ["dump", "load"]

AnyArray: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_PROTOCOL: Final = 5
_CODE: Final = re.compile(r"[biufcSUVMmO]\d{1,10}")
_UNIT: Final = re.compile(r"generic|Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as")
_VERSIONS: Final = (3, 4)
_STATE_LENS: Final = (8, 9)
_ALIGNED: Final = 0x80
_MAX_NDIM: Final = 64
_PLAIN: Final = (str, bytes, int, float, bool, type(None))


def dump(value: AnyArray | np.generic[Any]) -> bytes:
    """Return an array or a scalar as a pickle.

    Raises
    ------
    TypeError
        It is masked, or holds objects other than str, bytes, int, float, bool and None;
        neither could be read back safely.

    """
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("array: a masked array cannot be packed; pack its data and its mask")
    array = np.asarray(value)
    if array.dtype.hasobject:
        plain = array.dtype == object and all(type(item) in _PLAIN for item in array.ravel())
        if not plain:
            raise TypeError(f"array: expected items of plain bytes, got Python objects (dtype {array.dtype})")
    return pickle.dumps(array if isinstance(value, np.ndarray) else value, _PROTOCOL)


def load(data: memoryview) -> Any:
    """Return the array or scalar of a pickle.

    Raises
    ------
    FormatError
        It is no pickle of an array or scalar, or a damaged one.

    """
    tree = read_tree(data)
    if not isinstance(tree, Call):
        raise _bad(0, "an array or a scalar", type(tree).__name__)
    if tree.function == FROMBUFFER:
        raw, dtype, shape, order = _items(tree.arguments, 4, tree.at)
        return _array(tree.at, raw, dtype, shape, fortran=text_of(order) == "F")
    if tree.function == RECONSTRUCT:
        if tree.arguments[:1] != (NDARRAY,):
            raise _bad(tree.at, "a plain array", "another class")
        _, shape, dtype, fortran, raw = _items(tree.state, 5, tree.at)
        return _array(tree.at, raw, dtype, shape, fortran=fortran is True or fortran == 1)
    if tree.function == SCALAR:
        dtype, raw = _items(tree.arguments, 2, tree.at)
        return _array(tree.at, raw, dtype, (), fortran=False)[()]
    raise _bad(tree.at, "an array or a scalar", tree.function.name)


def _bad(at: int, expected: str, found: object) -> FormatError:
    return FormatError("pickled array", at=at, expected=expected, found=found)


def _items(values: object, count: int, at: int) -> tuple[Any, ...]:
    """Return a tuple of so many values."""
    if not isinstance(values, tuple) or len(values) != count:
        raise _bad(at, f"{count} values", f"{len(values)}" if isinstance(values, tuple) else "none")
    return values


def _array(at: int, raw: object, described: object, shape: object, *, fortran: bool) -> AnyArray:
    """Return the array that has these parts, in memory of its own."""
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape) or len(shape) > _MAX_NDIM:
        raise _bad(at, f"a shape of at most {_MAX_NDIM} dimensions", type(shape).__name__)
    dtype = _dtype(described, at)
    count = math.prod(shape)
    if dtype.hasobject:
        return _object_array(at, raw, shape, count)
    if not isinstance(raw, memoryview):
        raise _bad(at, "the items as bytes", type(raw).__name__)
    if count * dtype.itemsize != len(raw):
        raise _bad(at, f"{count} items of {dtype.itemsize} bytes", f"{len(raw)} bytes")
    order: Literal["C", "F"] = "F" if fortran else "C"
    try:
        flat: AnyArray
        if not len(raw):  # no memory budget: lengths of 0 and items of 0 bytes
            flat = np.ndarray(shape, dtype, buffer=bytearray(1))
            return flat.copy() if count == 0 else flat
        flat = np.frombuffer(bytearray(raw), dtype, count)  # a copy of bytes: one of items would leave gaps undefined
        return flat.reshape(shape, order=order)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise _bad(at, "an array", error) from None


def _object_array(at: int, raw: object, shape: tuple[int, ...], count: int) -> AnyArray:
    """Return an array of plain Python values."""
    if not isinstance(raw, list) or len(raw) != count:
        raise _bad(at, f"a list of {count} values", f"{len(raw)}" if isinstance(raw, list) else type(raw).__name__)
    items = [bytes(item) if isinstance(item, memoryview) else item for item in raw]
    if not all(type(item) in _PLAIN for item in items):
        raise _bad(at, "str, bytes, int, float, bool and None as items", "others")
    flat: AnyArray = np.empty(count, dtype=object)
    flat[:] = items
    try:
        return flat.reshape(shape)
    except ValueError as error:
        raise _bad(at, "an array", error) from None


def _dtype(node: object, at: int) -> np.dtype[Any]:
    return _described(node, at, 0)[0]


def _described(node: object, at: int, depth: int) -> tuple[np.dtype[Any], int]:
    """Return a dtype and how many fields it has, those within fields counted."""
    if not isinstance(node, Call) or node.function != DTYPE:
        raise _bad(at, "a dtype", type(node).__name__)
    if depth > MAX_DEPTH:
        raise _bad(node.at, f"at most {MAX_DEPTH} levels of fields", "more")
    if node.made is None:
        dtype, nfields = _made(node, depth)
        if nfields > MAX_FIELDS:
            raise _bad(node.at, f"at most {MAX_FIELDS} fields", nfields)
        node.made = dtype, nfields
    dtype, nfields = node.made
    return dtype, nfields


def _made(node: Call, depth: int) -> tuple[np.dtype[Any], int]:
    state = node.state
    if not isinstance(state, tuple) or len(state) not in _STATE_LENS or state[0] not in _VERSIONS:
        raise _bad(node.at, f"the state of a dtype, version {_VERSIONS}", type(state).__name__)
    _, order, nested, names, fields, itemsize, _, flags = state[:8]
    code = node.arguments[0] if node.arguments else None
    try:
        if names is not None:
            dtype, nfields = _record(node, names, fields, itemsize, flags, depth)
            return (np.dtype((np.record, dtype)), nfields) if code == RECORD else (dtype, nfields)
        if nested is not None:
            base, shape = _items(nested, 2, node.at)
            inner, nfields = _described(base, node.at, depth + 1)
            return subarray(inner, shape), nfields + 1
        return _plain(node, code, text_of(order), itemsize), 1
    except FormatError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise _bad(node.at, "a dtype", error) from None


def _plain(node: Call, code: object, order: str | None, itemsize: object) -> np.dtype[Any]:
    """Return a dtype without fields."""
    if isinstance(code, Name):
        if code.module != EXTRA:
            raise _bad(node.at, "a dtype", code.name)
        return dtype_of_spec(code.name)
    text = text_of(code)
    if text is None or not _CODE.fullmatch(text) or order not in ("<", ">", "=", "|"):
        raise _bad(node.at, "the code of a dtype", type(code).__name__)
    if text[0] == "O":
        return np.dtype(object)
    dtype = np.dtype(text)
    if text[0] in "Mm":
        dtype = np.dtype(f"{text}{_unit(node)}")
    if itemsize not in (-1, dtype.itemsize):
        raise _bad(node.at, f"items of {dtype.itemsize} bytes", f"another size for {text}")
    return dtype.newbyteorder(">" if order == ">" else "<") if order in "<>" else dtype


def _unit(node: Call) -> str:
    """Return the unit of a date, such as ``[25s]``."""
    _, given = _items(node.state[8] if len(node.state) > 8 else None, 2, node.at)
    unit, count = _items(given, len(given) if isinstance(given, tuple) and len(given) > 1 else 2, node.at)[:2]
    text = text_of(unit) or ""
    if not _UNIT.fullmatch(text) or type(count) is not int or not 1 <= count < 2**31:
        raise _bad(node.at, "a unit of time", "something else")
    return "" if text == "generic" else f"[{count}{text}]"


def _record(
    node: Call, names: object, fields: object, itemsize: object, flags: object, depth: int
) -> tuple[np.dtype[Any], int]:
    """Return a structured dtype."""
    if not isinstance(names, tuple) or not isinstance(fields, dict) or type(itemsize) is not int:
        raise _bad(node.at, "names and fields", "something else")
    described: dict[str, Any] = {"names": [], "formats": [], "offsets": [], "titles": [], "itemsize": itemsize}
    nfields = 0
    for name in map(text_of, names):
        given = fields.get(name)
        if name is None or not isinstance(given, tuple) or len(given) not in (2, 3) or type(given[1]) is not int:
            raise _bad(node.at, "a field of each name", "none")
        dtype, count = _described(given[0], node.at, depth + 1)
        if dtype.hasobject:
            raise _bad(node.at, "fields of plain bytes", "Python objects")
        nfields += count + 1
        described["names"].append(name)
        described["formats"].append(dtype)
        described["offsets"].append(given[1])
        described["titles"].append(text_of(given[2]) if len(given) > 2 else None)
    if not any(described["titles"]):
        del described["titles"]
    aligned = type(flags) is int and flags & _ALIGNED != 0
    return np.dtype(described, align=aligned), nfields  # type: ignore[call-overload]
