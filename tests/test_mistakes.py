"""Typical mistakes of users: none passes silently, and the error names the argument."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk
from superchunk import CParams, SChunk, Storage
from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

anything: Any = superchunk


def one_thread() -> SChunk:
    return SChunk(cparams={"typesize": 8, "nthreads": 1}, dparams={"nthreads": 1})


TYPES: dict[str, tuple[Callable[[], object], str]] = {
    "use_dict as text": (lambda: anything.CParams(use_dict="no"), "use_dict"),
    "use_dict of 2": (lambda: anything.CParams(use_dict=2), "use_dict"),
    "contiguous as text": (lambda: anything.SChunk(contiguous="no"), "contiguous"),
    "seal as text": (lambda: anything.Storage(seal="off"), "seal"),
    "locking as text": (lambda: anything.Storage(urlpath="a", locking="no"), "locking"),
    "filters as a number": (lambda: anything.CParams(filters=5), "filters"),
    "filters as text": (lambda: anything.CParams(filters="shuffle"), "filters"),
    "filters of None": (lambda: anything.CParams(filters=None), "filters"),
    "filters_meta as a number": (lambda: anything.CParams(filters_meta=5), "filters_meta"),
    "meta as a number": (lambda: anything.Storage(meta=5), "meta"),
    "compact_above as text": (lambda: anything.Storage(compact_above="a"), "compact_above"),
    "storage as a number": (lambda: anything.SChunk(storage=5), "Storage"),
    "storage as text": (lambda: anything.zeros(3, storage="a.b2nd"), "Storage"),
    "cparams of an array as a number": (lambda: anything.zeros(3, cparams=5), "cparams"),
    "cparams of a copy as a number": (lambda: anything.zeros(3).copy(cparams=5), "cparams"),
    "data in the place of chunksize": (lambda: anything.SChunk(b"abc"), "chunksize"),
    "a view of a NumPy array": (lambda: anything.expand_dims(np.zeros(3)), "NDArray"),
    "squeezing a number": (lambda: anything.squeeze(5, 0), "NDArray"),
    "a codec that is no function": (lambda: anything.register_codec("a", 200, 5, 5), "encoder"),
    "a filter that is no function": (lambda: anything.register_filter(200, len, 5), "backward"),
    "a filter by name": (lambda: anything.register_filter("a"), "id"),
    "a prefilter that is no function": (lambda: one_thread().prefilter("i8")(5), "function"),  # type: ignore[arg-type]
    "a postfilter without a name": (lambda: one_thread().postfilter("i8")(partial(print)), "function"),
    "nelem as a float": (lambda: one_thread().filler([(1, "i8")], "i8", 2.7), "nelem"),  # type: ignore[arg-type]
    "an array saved nowhere": (lambda: anything.save_array(np.arange(3), None), "urlpath"),
    "a tensor saved nowhere": (lambda: anything.save_tensor(np.arange(3), None), "urlpath"),
}


@pytest.mark.parametrize("name", TYPES)
def test_a_wrong_type_is_a_type_error_that_names_the_argument(name: str) -> None:
    call, named = TYPES[name]
    with pytest.raises(TypeError, match=named):
        call()


VALUES: dict[str, tuple[Callable[[], object], str]] = {
    "compact_above over 1": (lambda: Storage(compact_above=2), "compact_above"),
    "compact_above that is no number": (lambda: Storage(compact_above=float("nan")), "compact_above"),
    "nelem below 0": (lambda: one_thread().filler([(1, "i8")], "i8", -5), "nelem"),
    "chunksize over what a chunk holds": (lambda: SChunk(chunksize=2**31), "chunksize"),
    "chunksize of 0": (lambda: SChunk(chunksize=0), "chunksize"),
    "fewer threads than one": (lambda: superchunk.verify(b"", nthreads=0), "nthreads"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_wrong_value_is_an_argument_error_that_names_the_argument(name: str) -> None:
    call, named = VALUES[name]
    with pytest.raises(ArgumentError, match=named):
        call()


@pytest.mark.parametrize(
    ("argument", "value", "error"),
    [
        ("offset", "a", TypeError),
        ("offset", 1.0, TypeError),
        ("offset", -1, ArgumentError),
        ("snapshot", "no", TypeError),
        ("recover", "no", TypeError),
        ("locking", "no", TypeError),
        ("seal", "no", TypeError),
        ("compact_above", "no", TypeError),
        ("compact_above", 1.5, ArgumentError),
        ("cparams", 5, TypeError),
        ("dparams", CParams(), TypeError),
    ],
)
def test_wrong_arguments_of_open_are_named(tmp_path: Path, argument: str, value: Any, error: type[Exception]) -> None:
    SChunk(data=b"abc", urlpath=tmp_path / "a").close()
    with pytest.raises(error, match=argument):
        superchunk.open(tmp_path / "a", **{argument: value})


def test_flags_of_numpy_and_numbers_are_flags() -> None:
    for true in (True, np.True_, 1, np.int64(1)):
        assert anything.CParams(use_dict=true).use_dict is True
        assert anything.Storage(urlpath="a", contiguous=true, seal=true, locking=true).seal is True
    for false in (False, np.False_, 0):
        assert anything.CParams(use_dict=false).use_dict is False
        assert anything.Storage(urlpath="a", contiguous=false).contiguous is False


def test_a_function_that_is_refused_is_not_in_use() -> None:
    s = one_thread()
    with pytest.raises(TypeError, match="function"):
        s.prefilter("i8")(partial(print))
    s.append_data(np.arange(3))
    assert s[:] == np.arange(3).tobytes()
    assert not superchunk.prefilter_funcs
    assert 200 not in superchunk.ucodecs_registry
    assert 200 not in superchunk.ufilters_registry
