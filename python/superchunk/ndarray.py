"""The array names of python-blosc2's module `blosc2.ndarray`, for programs that import them from there.

Everything here is also in the package itself: `superchunk.NDArray`, `superchunk.asarray`, and so on.

Source: docs/differences.md, "NDArray".
"""

from __future__ import annotations

from abc import ABC
from typing import Any

import superchunk
from superchunk._array.fields import NDField
from superchunk._array.ndarray import NDArray, OIndex

__all__ = ["NDArray", "NDField", "OIndex", "Operand"]


class Operand(ABC):  # noqa: B024  - a name to ask `isinstance` for, as in python-blosc2
    """What can stand where an array is asked for: an `NDArray` or an `NDField`.

    superchunk does not compute, so the class has no methods; it serves `isinstance`.

    Examples
    --------
    >>> import superchunk
    >>> isinstance(superchunk.zeros(3), superchunk.Operand)
    True

    """


Operand.register(NDArray)
Operand.register(NDField)


def __getattr__(name: str) -> Any:
    """Return a function on arrays that python-blosc2 has in this module; the package has it."""
    if name in superchunk.__all__:
        return getattr(superchunk, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
