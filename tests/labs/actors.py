"""Actors of a schedule: each runs the calls it is told, one by one, and can be stopped inside of one.

::

    conductor -- ("open", Stand) | ("run", op, pauses) | ("go",) | ("quit",) -->  actor, a thread or a process
    conductor <-- ("paused", place) | ("done", answer) | ("failed", what) ------  actor

The pauses are counted in lines that the call executes inside superchunk: at such a line the actor waits for ``go``,
with whatever locks it holds. Contents tell who wrote them: a cell is its tag and noise that follows from the tag, so
a torn one is known for what it is.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
import warnings
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from labs.histories import ERROR

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from labs.histories import Op

__all__ = ["Hand", "Stand", "make", "serve"]

WIDTH: Final = 4
"""Cells of a row."""
_TORN: Final = "torn"
_EXPECTED: Final = (IndexError, KeyError)


@dataclass(frozen=True)
class Stand:
    """What an actor is to open, and how."""

    package: str
    path: str
    array: bool
    cell: int
    """Items of a cell of a chunk; a cell of an array is one item."""
    mode: str = "a"
    locking: bool = False

    def open(self) -> Any:
        package = importlib.import_module(self.package)
        return package.open(self.path, mode=self.mode, **({"locking": True} if self.locking else {}))


def make(kind: str, path: str | None, rows: int, cell: int, *, locking: bool) -> Any:
    """Make the frame of a schedule; row i has tag i + 1."""
    superchunk = importlib.import_module("superchunk")
    place = {"urlpath": path, "contiguous": not kind.startswith("directory"), "mode": "w", "locking": locking}
    if kind.endswith("array"):
        data = np.repeat(np.arange(1, rows + 1, dtype="i4")[:, None], WIDTH, axis=1)
        return superchunk.asarray(data, chunks=(3, 3), blocks=(2, 2), **place)
    made = superchunk.SChunk(WIDTH * cell * 4, cparams=superchunk.CParams(typesize=4), **place)
    for row in range(rows):
        made.append_data(_cells([row + 1] * WIDTH, cell))
    return made


def _cells(tags: list[int], cell: int) -> bytes:
    """Return cells that say who wrote them."""
    noise = np.arange(cell, dtype="u4")
    parts = []
    for tag in tags:
        part = (noise * np.uint32(2654435761) ^ np.uint32(tag * 40503)) & np.uint32(0x7FFFFFFF)
        part[0] = tag
        parts.append(part)
    return np.concatenate(parts).astype("<i4").tobytes()


def _tags(raw: bytes, cell: int) -> tuple[Any, ...]:
    """Return the tags of cells; a torn one is told as such."""
    size = cell * 4
    tags: list[Any] = []
    for at in range(0, len(raw), size):
        part = raw[at : at + size]
        tag = int.from_bytes(part[:4], "little")
        tags.append(tag if part in (_cells([tag], cell), bytes(size)) else (_TORN, part[:8].hex(), len(part)))
    return tuple(tags)


class Hand:
    """Does calls on a handle, and says what came back in the words of the model."""

    def __init__(self, handle: Any, stand: Stand) -> None:
        self.handle = handle
        self.stand = stand

    def __call__(self, op: Op) -> object:
        """Do `op`; return what the model calls its answer."""
        name, *args = op
        try:
            return getattr(self, f"_do_{name}".replace("-", "_"))(*args)
        except _EXPECTED:
            return ERROR

    @property
    def _schunk(self) -> Any:
        return getattr(self.handle, "schunk", self.handle)

    def _row(self, tag: int) -> bytes:
        return _cells([tag] * WIDTH, self.stand.cell)

    # Changes.

    def _do_append(self, tag: int) -> object:
        if self.stand.array:
            self.handle.append(np.full((1, WIDTH), tag, "i4"))
            return None
        return int(self.handle.append_data(self._row(tag)))

    def _do_insert(self, nchunk: int, tag: int) -> object:
        return int(self.handle.insert_data(nchunk, self._row(tag), copy=True))

    def _do_update(self, number: int, tag: int) -> None:
        if self.stand.array:
            self.handle[number] = np.full(WIDTH, tag, "i4")
        else:
            self.handle.update_data(number, self._row(tag), copy=True)

    def _do_delete(self, nchunk: int) -> None:
        self.handle.delete_chunk(nchunk)

    def _do_reorder(self, order: tuple[int, ...]) -> object:
        try:
            self.handle.reorder_offsets(list(order))
        except ValueError as error:
            if "order" in str(error):
                return ERROR
            raise
        return None

    def _do_set(self, rows: tuple[int, int], cells: tuple[int, int], tag: int) -> None:
        self.handle[slice(*rows), slice(*cells)] = tag

    def _do_patch(self, nrow: int, ncell: int, tag: int) -> None:
        if self.stand.array:
            self.handle[nrow, ncell] = tag
            return
        first = (nrow * WIDTH + ncell) * self.stand.cell
        self.handle[first : first + self.stand.cell] = np.frombuffer(_cells([tag], self.stand.cell), "i4")

    def _do_resize(self, rows: int) -> None:
        self.handle.resize((rows, WIDTH))

    def _do_vl(self, name: str, tag: int) -> None:
        self._schunk.vlmeta[name] = tag

    def _do_unvl(self, name: str) -> None:
        try:
            del self._schunk.vlmeta[name]
        except RuntimeError as error:
            raise KeyError(name) from error  # as python-blosc2 says that there is none

    def _do_transaction(self, parts: tuple[Op, ...], goes_back: bool) -> object:  # noqa: FBT001 - as drawn
        told = []
        try:
            with self.handle.transaction():
                for part in parts:
                    told.append(self(part))
                    _go_back(told[-1] == ERROR)
                _go_back(goes_back)
        except _GoBackError:
            if told and told[-1] == ERROR:
                return ERROR
        return told

    # Reads.

    def _do_all(self) -> object:
        return self._rows(self.handle)

    def _rows(self, handle: Any) -> object:
        if self.stand.array:
            return tuple(tuple(int(item) for item in row) for row in np.asarray(handle[...]))
        tags = _tags(handle[:], self.stand.cell)
        return tuple(tags[at : at + WIDTH] for at in range(0, len(tags), WIDTH))

    def _do_fresh(self) -> object:
        for _ in range(20 if self.stand.package == "blosc2" else 0):
            with contextlib.suppress(RuntimeError):  # in a directory it may miss a file that has gone
                return self._fresh()
        return self._fresh()

    def _fresh(self) -> object:
        with contextlib.ExitStack() as stack:
            stand = Stand(**{**self.stand.__dict__, "mode": "r"})
            handle = stand.open()
            if hasattr(handle, "close"):
                stack.callback(handle.close)
            return self._rows(handle)

    def _do_held(self) -> object:
        with self._schunk.holding_lock():
            return self._rows(self.handle), self._do_names()

    def _do_row(self, number: int) -> object:
        if self.stand.array:
            return tuple(int(item) for item in np.asarray(self.handle[number]))
        return _tags(self.handle.decompress_chunk(number), self.stand.cell)

    def _do_cell(self, nrow: int, ncell: int) -> object:
        if self.stand.array:
            return int(self.handle[nrow, ncell])
        first = (nrow * WIDTH + ncell) * self.stand.cell
        raw = self.handle[first : first + self.stand.cell]
        if len(raw) < self.stand.cell * 4:
            return ERROR
        return _tags(raw, self.stand.cell)[0]

    def _do_count(self) -> int:
        return int(self.handle.shape[0] if self.stand.array else self.handle.nchunks)

    def _do_names(self) -> object:
        found = self._schunk.vlmeta.getall()
        return tuple(sorted((name.decode() if isinstance(name, bytes) else name, found[name]) for name in found))

    # What changes nothing.

    def _do_flush(self) -> None:
        self.handle.flush()

    def _do_compact(self) -> None:
        self.handle.compact()

    def _do_refresh(self) -> None:
        self.handle.refresh()

    def _do_verify(self) -> None:
        superchunk = importlib.import_module("superchunk")
        report = self.handle.verify() if self.stand.locking else superchunk.verify(self.stand.path)
        assert report.status in {"sound", "not sealed"}, report  # C-Blosc2 writes no seals

    def _do_reopen(self) -> None:
        if hasattr(self.handle, "close"):
            self.handle.close()
        self.handle = None
        self.handle = self.stand.open()


class _GoBackError(Exception):
    """A transaction is to be dropped."""


def _go_back(wanted: bool) -> None:  # noqa: FBT001 - its only argument
    if wanted:
        raise _GoBackError


class _Pauses:
    """Stops the thread at lines that superchunk executes, and waits for ``go``."""

    def __init__(self, connection: Connection, pauses: tuple[int, ...]) -> None:
        self._connection = connection
        self._pauses = deque(sorted(pauses))
        self._count = 0
        self._root = str(Path(importlib.import_module("superchunk").__file__ or "").parent)

    def __enter__(self) -> None:
        if self._pauses:
            sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if event == "call" and not frame.f_code.co_filename.startswith(self._root):
            return None
        if event == "line":
            self._count += 1
            if self._pauses and self._count >= self._pauses[0]:
                self._pauses.popleft()
                name = frame.f_code.co_filename.removeprefix(self._root)
                self._connection.send(("paused", f"{name}:{frame.f_lineno}"))
                self._connection.recv()
        return self._trace


def serve(connection: Connection, hand: Hand | None = None) -> None:
    """Do what comes through `connection`, until ``quit``; `hand` is given to threads that share a handle."""
    own = hand is None
    while True:
        try:
            told = connection.recv()
        except EOFError:
            return
        try:
            if told[0] == "quit":
                return
            if told[0] == "open":
                hand = Hand(told[1].open(), told[1])
                connection.send(("done", None))
            elif told[0] == "close":
                if own and hand is not None and hasattr(hand.handle, "close"):
                    hand.handle.close()
                hand = None
                connection.send(("done", None))
            else:
                assert hand is not None
                with _Pauses(connection, told[2]):
                    answer = hand(told[1])
                connection.send(("done", answer))
        except Exception as error:  # noqa: BLE001 - whatever it is, the conductor has to hear of it
            last = traceback.extract_tb(error.__traceback__)[-4:]
            at = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(last))
            connection.send(("failed", f"{type(error).__name__}: {error}"[:400] + f" at {at}"))
            del error


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with Connection(int(sys.argv[1])) as there:
        serve(there)
    os._exit(0)
