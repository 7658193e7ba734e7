"""Signals that end the command: when and how they take effect.

An interrupt (Ctrl-C) raises Python's KeyboardInterrupt and gives exit code 130. Other signals end the process through
all ``finally`` clauses with 128 plus their number, so no partial file remains.

Source: docs/cli.md, section "Exit codes".
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["termination_unwinds", "undisturbed"]

_ENDS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def _stop(signum: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + signum)


@contextlib.contextmanager
def termination_unwinds() -> Iterator[None]:
    """Let signals end the process as an exception would, unless they are ignored, as nohup asks."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for signum in _ENDS:
            if signal.getsignal(signum) is not signal.SIG_IGN:
                before[signum] = signal.signal(signum, _stop)
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let signals wait until the block has ended: for libraries that must not be left in the middle of a call."""
    waiting: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        for signum in (signal.SIGINT, *_ENDS):
            if callable(handler := signal.getsignal(signum)):
                before[signum] = handler
                signal.signal(signum, lambda number, _frame: waiting.append(number))
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
        for signum in waiting[:1]:
            signal.raise_signal(signum)
