"""Lets the tests of python-blosc2 run with superchunk in its place: a plugin of pytest.

Each test gets a folder of its own, so that a file one of them leaves behind is not met by the next.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import superchunk

if TYPE_CHECKING:
    from pathlib import Path

superchunk.install_as_blosc2()


def _module(name: str, **names: object) -> None:
    """Add a module that the tests import private names from; the tests that use them are left out."""
    module = ModuleType(f"blosc2.{name}")
    module.__dict__.update(names)
    sys.modules[module.__name__] = module
    setattr(sys.modules["blosc2"], name, module)


_module("utils", NUMPY_GE_2_0=True)
sys.modules["blosc2.ndarray"].__dict__.update(
    _SUBSAMPLE_GATHER_MAX_COORDS=0, detect_aligned_chunks=None, get_ndarray_start_stop=None
)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
