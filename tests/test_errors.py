"""Errors as values: they go to other processes and into copies whole, and no others come out of hostile input."""

from __future__ import annotations

import copy
import errno
import inspect
import multiprocessing
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk
from superchunk import SChunk, exceptions
from superchunk.exceptions import (
    ChunkIndexError,
    DamagedFrameError,
    FormatError,
    KeywordError,
    SuperchunkError,
    TruncatedError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIELD: dict[str, Any] = {"at": 12, "expected": "7", "found": 8}
HOW: dict[type, Callable[[Any], SuperchunkError]] = {
    FormatError: lambda kind: kind("nbytes", **FIELD),
    TruncatedError: lambda kind: kind("header", at=3, needed=87, got=7),
    DamagedFrameError: lambda kind: kind(FormatError("nbytes", **FIELD), nchunks=3, nbytes=600),
    UnsupportedError: lambda kind: kind("codec", 160, "unknown", "is not there"),
    KeywordError: lambda kind: kind("clevle", ["clevel", "codec"]),
    ChunkIndexError: lambda kind: kind(9, 3),
    OSError: lambda kind: kind(errno.EAGAIN, "in use", "data.b2frame"),
    SuperchunkError: lambda kind: kind("a message, 100% of it"),
}
"""How to make an error of a class: as the first class among its bases here is made."""


def every_class() -> list[type[SuperchunkError]]:
    """Return each class of the family, wherever it is defined."""
    found, todo = [SuperchunkError], [SuperchunkError]
    while todo:
        deeper = todo.pop().__subclasses__()
        todo += deeper
        found += deeper
    return sorted(set(found), key=lambda kind: kind.__name__)


def made(kind: type[SuperchunkError]) -> SuperchunkError:
    """Return an error of a class, with an attribute more that somebody has set."""
    error = next(HOW[base] for base in kind.__mro__ if base in HOW)(kind)
    error.nrequest = 5  # type: ignore[attr-defined]
    return error


def state_of(error: SuperchunkError) -> tuple[object, ...]:
    """Return everything that an error says."""
    system = tuple(getattr(error, name, None) for name in ("errno", "strerror", "filename"))
    return type(error), str(error), error.args, vars(error), system


def test_every_class_that_is_exported_is_tried() -> None:
    exported = {getattr(exceptions, name) for name in exceptions.__all__}
    assert exported <= set(every_class())


WAYS: dict[str, Callable[[SuperchunkError], SuperchunkError]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
} | {
    f"pickle {protocol}": lambda error, protocol=protocol: pickle.loads(pickle.dumps(error, protocol))  # type: ignore[misc]  # noqa: S301
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", every_class(), ids=lambda kind: kind.__name__)
def test_an_error_goes_through_pickle_and_copy_with_its_attributes(kind: type[SuperchunkError], way: str) -> None:
    error = made(kind)
    again = WAYS[way](error)
    assert again is not error
    assert state_of(again) == state_of(error)


def test_a_path_in_front_of_the_message_stays_there(tmp_path: Path) -> None:
    path = tmp_path / "data.b2frame"
    path.write_bytes(b"no frame at all" * 10)
    with pytest.raises(FormatError) as caught:
        superchunk.open(path)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert str(again) == str(caught.value)
    assert str(again).startswith(str(path))


def damaged_chunk(number: int) -> bytes:
    """Raise what a damaged chunk raises, or a wrong number, in a worker."""
    s = SChunk(chunksize=800, data=np.arange(300))
    if number == 0:
        s.decompress_chunk(99)
    if number == 1:
        superchunk.decompress2(s.get_chunk(0)[:-3])
    if number == 2:
        superchunk.asarray(np.arange(3), clevle=9)  # type: ignore[call-arg]
    if number == 3:
        superchunk.open("/no/such/frame", mode="a")
    return b""


def test_the_error_of_a_worker_arrives_and_the_pool_goes_on() -> None:
    """An error that cannot be unpickled leaves the pool waiting for ever."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        results = [pool.apply_async(damaged_chunk, (number,)) for number in range(5)]
        with pytest.raises(ChunkIndexError, match="got 99") as out_of_range:
            results[0].get(60)
        assert (out_of_range.value.nchunk, out_of_range.value.nchunks) == (99, 3)
        with pytest.raises(TruncatedError) as truncated:
            results[1].get(60)
        assert truncated.value.needed > truncated.value.got
        with pytest.raises(KeywordError, match="clevle"):
            results[2].get(60)
        with pytest.raises(FileNotFoundError):
            results[3].get(60)
        assert results[4].get(60) == b""


def test_no_class_of_the_family_needs_arguments_that_pickle_does_not_have() -> None:
    """A class with a constructor of its own is among those that the tests above know how to make."""
    own = {kind for kind in every_class() if "__init__" in vars(kind)}
    assert own <= set(HOW), [inspect.signature(kind) for kind in own - set(HOW)]
