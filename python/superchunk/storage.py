"""The storage parameters of python-blosc2's module `blosc2.storage`, for programs that import them from there.

Everything here is also in the package itself: `superchunk.CParams`, and so on.
"""

from __future__ import annotations

from superchunk.params import CParams, DParams, Storage

__all__ = ["CParams", "DParams", "Storage"]
