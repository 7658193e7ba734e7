"""What python-blosc2 has and superchunk has not, with what does the same here.

Source: docs/migrating.md, "What is not there, and who does it"; docs/differences.md.
"""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["elsewhere"]

_HERE: Final = {
    "array_from_ffi_ptr": "from_cframe takes the bytes that to_cframe() gives",
    "as_ffi_ptr": "to_cframe() gives bytes that every Blosc2 library opens",
    "c_array": "to_cframe() gives bytes that every Blosc2 library opens",
    "get_1d_span_numpy": "array.get(key, out=) reads into a given array",
    "get_oindex_numpy": "array.oindex[key] reads it",
    "get_slice": "array[key] reads it, and array.slice(key) as an NDArray",
    "get_slice_numpy": "array.get(key, out=) reads into a given array",
    "get_sparse_numpy": "array[key] reads it",
    "keep_last_read": "superchunk.set_block_cache says how much is kept",
    "set_oindex_numpy": "array.oindex[key] = values writes it",
    "set_slice": "array[key] = values writes it",
}
"""What to do instead, by the name of what is inside python-blosc2."""


def elsewhere(name: str) -> str:
    """Return what does the work of a name that is looked for here in vain: the end of an error's message, or nothing.

    Examples
    --------
    >>> elsewhere("sum")
    ': superchunk stores and does not compute, numpy.sum takes its arrays'
    >>> elsewhere("float32"), elsewhere("newaxis")
    (': it is in NumPy, numpy.float32', ': it is in NumPy, numpy.newaxis')
    >>> elsewhere("set_slice")
    ': array[key] = values writes it'
    >>> elsewhere("smu")
    ''

    """
    if name in _HERE:
        return f": {_HERE[name]}"
    if name.startswith("_") or not hasattr(np, name):
        return ""
    if isinstance(getattr(np, name), type) or not callable(getattr(np, name)):
        return f": it is in NumPy, numpy.{name}"
    return f": superchunk stores and does not compute, numpy.{name} takes its arrays"
