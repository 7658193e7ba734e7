"""The most memory that a process has taken: for tests that start one, import its name or put its source into theirs."""

from __future__ import annotations

import inspect


def peak_bytes() -> int:
    """Return the most memory that this program has had so far, in bytes.

    Linux tells that of the program alone. What getrusage says begins with the peak of the process that
    this one was forked from, which may hide all growth.
    """
    import resource  # the source is used without this module
    import sys

    try:
        with open("/proc/self/status") as status:  # noqa: PTH123  (nothing to import)
            return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


PEAK = inspect.getsource(peak_bytes)
"""The function as text, for scripts that are passed on a command line."""
