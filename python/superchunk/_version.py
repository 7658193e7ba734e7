"""Version and date of the package and of the format library in it, which are one."""

from __future__ import annotations

from typing import Final

__all__ = ["COMPATIBLE_VERSION", "VERSION_DATE", "VERSION_STRING", "__version__", "blosclib_version"]

__version__: Final = "0.1.0"
"""The version of the package; `Cargo.toml` has the same."""
VERSION_STRING: Final = __version__
"""The version of the format library: superchunk brings its own."""
VERSION_DATE: Final = "2026-11-21"
"""When that version was made."""
blosclib_version: Final = f"{VERSION_STRING} ({VERSION_DATE})"
"""Version and date of the format library in one string."""
COMPATIBLE_VERSION: Final = "4.14.1"
"""The version of python-blosc2 whose storage API and files this package is checked against."""
