"""How many Python calls of the package, in how many of its files, a read of an array takes; counted, not timed.

Limits are those of Python 3.11, where a comprehension is a call.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PACKAGE = str(Path(superchunk.__file__).parent)
ITEMS = np.arange(20 * 18 * 16 * 14, dtype="i4").reshape(20, 18, 16, 14)


def calls_of(work: Callable[[], object]) -> list[tuple[str, str]]:
    """Return file and function of every call of the package, once caches are warm."""
    for _ in range(3):
        work()
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls.append((frame.f_code.co_filename.removeprefix(PACKAGE), frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("key", "most", "files"),
    [
        pytest.param(np.s_[1, 2, 3, 4], 8, 7, id="an item"),
        pytest.param(np.s_[1:4, 2:5, 1:3, 0:2], 9, 7, id="a slice within a chunk"),
        pytest.param(np.s_[-2, 1:5, ..., 1:3, -2:], 13, 7, id="an ellipsis within a chunk"),
        pytest.param(np.s_[1:4, 2:5, 1:3, 5:9], 18, 7, id="a slice of two chunks"),
        pytest.param(np.s_[3:15, 2:11, 1:9, 2:9], 18, 7, id="a slice of sixteen chunks"),
    ],
)
def test_a_read_of_a_file_takes_few_calls(tmp_path: Path, key: Any, most: int, files: int) -> None:
    path = str(tmp_path / "a.b2nd")
    array = superchunk.asarray(ITEMS, chunks=(10, 9, 8, 7), blocks=(5, 5, 4, 4), urlpath=path)
    assert np.array_equal(array[key], ITEMS[key])
    calls = calls_of(lambda: array[key])
    assert len(calls) <= most, calls
    assert len({file for file, _ in calls}) <= files, calls
