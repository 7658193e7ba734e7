"""What python-blosc2 computes and superchunk does not, told to those who look for it.

Source: docs/migrating.md, "What is not there, and who does it".
"""

from __future__ import annotations

import numpy as np

__all__ = ["elsewhere"]


def elsewhere(name: str) -> str:
    """Return who has a name that is looked for here in vain: the end of an error's message; nothing if NumPy has not.

    Examples
    --------
    >>> elsewhere("sum")
    ': superchunk stores and does not compute, numpy.sum takes its arrays'
    >>> elsewhere("smu")
    ''

    """
    if name.startswith("_") or not callable(getattr(np, name, None)):
        return ""
    return f": superchunk stores and does not compute, numpy.{name} takes its arrays"
