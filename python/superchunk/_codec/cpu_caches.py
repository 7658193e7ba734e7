"""What this machine is: caches, and the report of `print_versions`.

Asks the system once, and only when somebody wants to know.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from superchunk._version import VERSION_DATE, VERSION_STRING, __version__
from superchunk.params import Codec, default_nthreads, ncores

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["builtin_codecs", "cpu_info", "print_versions"]

_SYSTEM_CACHES: Final = "/sys/devices/system/cpu/cpu0/cache"
_USUAL: Final = {"l1_data_cache_size": 32 * 1024, "l2_cache_size": 1024 * 1024, "l3_cache_size": 8 * 1024 * 1024}
"""Bytes, where the system does not say."""
_UNITS: Final = {"K": 2**10, "M": 2**20, "G": 2**30}
_LAST_BUILTIN: Final = 5
_RULE: Final = "-=" * 40


def builtin_codecs() -> list[Codec]:
    """Return the codecs that every build has."""
    return [codec for codec in Codec if codec.value <= _LAST_BUILTIN]


def _read_caches(directory: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for index in sorted(directory.glob("index[0-9]*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            nbytes = int(size[:-1]) * _UNITS[size[-1]]
        except (OSError, ValueError, KeyError, IndexError):
            continue
        if kind in ("Data", "Unified"):
            found["l1_data_cache_size" if level == "1" else f"l{level}_cache_size"] = nbytes
    return {name: size for name, size in found.items() if name in _USUAL}


@functools.cache
def cpu_info() -> dict[str, int]:
    """Return the CPUs this process may use (`count`) and cache sizes in bytes."""
    from pathlib import Path  # takes a tenth of the whole import with what it loads

    return {"count": ncores, **_USUAL, **_read_caches(Path(_SYSTEM_CACHES))}


def print_versions() -> None:
    """Print versions of everything involved, for a report of a problem."""
    import platform  # heavy, and only this function needs it

    import numpy as np

    from superchunk import _engine

    lines = [
        _RULE,
        f"superchunk version: {__version__}",
        f"Format library version: {VERSION_STRING} ({VERSION_DATE})",
        f"Codecs available: {', '.join(codec.name for codec in builtin_codecs())}",
        "Codec library versions:",
        *(f"  {codec.name}: {_engine.codec_version(codec.value)[1]}" for codec in builtin_codecs()),
        f"Instruction sets in use: {', '.join(_engine.instruction_sets()) or 'none beyond the basic ones'}",
        f"NumPy version: {np.__version__}",
        f"Python version: {platform.python_implementation()} {platform.python_version()}",
        f"Platform: {platform.platform()} ({platform.machine()})",
        f"Detected cores: {ncores}",
        f"Threads used by default: {default_nthreads()}",
        _RULE,
    ]
    print("\n".join(lines))  # noqa: T201  (printing is what it is for)
