"""How many functions of the package, in how many of its files, opening and appending take.

Counted with `sys.setprofile` after a warm-up; no time is measured. Whoever adds a layer meets the limit here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import superchunk
from superchunk import SChunk
from superchunk._store.frame_store import FrameStore
from superchunk._store.store_interface import FrameSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PACKAGE = str(Path(superchunk.__file__).parent)
CHUNK = bytes(range(250)) * 32
WARM_UP = 5


def walk(call: Callable[[], object]) -> tuple[int, int]:
    """Return how many Python functions of the package `call` enters, and in how many files they are."""
    entered: list[str] = []

    def note(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            entered.append(frame.f_code.co_filename)

    for _ in range(WARM_UP):
        call()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return len(entered), len(set(entered))


def made(path: Path) -> str:
    with SChunk(chunksize=len(CHUNK), urlpath=path, mode="w", cparams={"typesize": 8}) as schunk:
        schunk.append_data(CHUNK)
    return str(path)


def test_opening_and_closing_a_frame(tmp_path: Path) -> None:
    path = made(tmp_path / "data.b2frame")
    calls, files = walk(lambda: superchunk.open(path).close())
    assert calls <= 40
    assert files <= 12


def test_opening_and_closing_a_store(tmp_path: Path) -> None:
    path = made(tmp_path / "data.b2frame")
    calls, files = walk(lambda: FrameStore.open(path).close())
    assert calls <= 25
    assert files <= 7


def test_appending_a_chunk_that_waits_for_its_commit(tmp_path: Path) -> None:
    chunk = superchunk.compress2(CHUNK, typesize=8)
    store = FrameStore.create(tmp_path / "data.b2frame", FrameSettings(), len(CHUNK), {})
    with store.batch():
        calls, files = walk(lambda: store.append([chunk]))
    store.close()
    assert calls <= 31
    assert files <= 6


def test_appending_data_in_a_transaction(tmp_path: Path) -> None:
    with superchunk.open(made(tmp_path / "data.b2frame"), mode="a") as schunk, schunk.transaction():
        calls, files = walk(lambda: schunk.append_data(CHUNK))
    assert calls <= 49
    assert files <= 10
