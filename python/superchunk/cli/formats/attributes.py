"""Values of attributes, in types that all formats share: Python's own, and NumPy's arrays.

::

    value                   .b2nd, .b2frame   Zarr (JSON)    HDF5
    str, bool, int, float   yes               yes            yes
    None                    yes               yes            an empty attribute
    complex                 yes               no             yes
    bytes                   yes               no             opaque
    array                   yes               a list         yes
    list of the above       yes               yes            an array, if all are of one kind
    map                     yes               yes            no
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["DIMENSIONS", "as_json", "dimensions_in", "plain"]

DIMENSIONS: Final = "_ARRAY_DIMENSIONS"
"""The name under which Zarr's format 2 and Blosc2 frames keep the names of an array's dimensions: a list of str."""


def dimensions_in(value: object, ndim: int) -> tuple[str, ...] | None:
    """Return the names of `ndim` dimensions, empty for one without a name; None if that is not what a value is."""
    if not isinstance(value, list | tuple) or len(value) != ndim:
        return None
    if not any(value) or not all(name is None or isinstance(name, str) for name in value):
        return None
    return tuple(name or "" for name in value)


def plain(value: object) -> object:
    """Return a value as Python has it: NumPy's scalars become Python's, arrays of text become lists.

    Raises
    ------
    TypeError
        It is something else, such as a reference to another object of an HDF5 file.

    """
    if value is None or (
        isinstance(value, bool | int | float | complex | str | bytes) and not isinstance(value, np.generic)
    ):
        return value
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, np.generic):
        return _scalar(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    raise TypeError(f"attributes cannot hold a value of type {type(value).__name__}")


def _scalar(value: np.generic) -> object:
    if value.dtype.kind == "V" and value.dtype.fields is None:
        return value.tobytes()
    if value.dtype.kind in "SU" or (value.dtype.kind in "biufc" and value.dtype.isbuiltin == 1):
        item: object = value.item()
        return item if isinstance(item, bool | int | float | complex | str | bytes) else np.asarray(value)
    return np.asarray(value)


def _array(value: np.ndarray[Any, np.dtype[Any]]) -> object:
    if value.dtype.hasobject or value.dtype.kind == "U":
        found = value.tolist()
        return plain(found)
    return np.ascontiguousarray(value) if value.ndim else value


def as_json(value: object) -> object:
    """Return a plain value as JSON has it.

    Raises
    ------
    TypeError
        JSON has no such value.

    """
    found = plain(value)
    if isinstance(found, list):
        return [as_json(part) for part in found]
    if isinstance(found, dict):
        return {name: as_json(part) for name, part in found.items()}
    if isinstance(found, np.ndarray) and found.dtype.kind in "biuf":
        return as_json(found.tolist())
    if found is None or isinstance(found, bool | int | float | str):
        return found
    raise TypeError(f"JSON has no value for {type(found).__name__}")
