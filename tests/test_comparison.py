"""What ``==`` says of arrays and fields: nothing about items, so that nothing is silently selected."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pytest

import superchunk

if TYPE_CHECKING:
    from pathlib import Path

    from superchunk import NDArray
    from superchunk._array.fields import NDField

VALUES: dict[str, Any] = {
    "0": 0,
    "True": True,
    "1.5": 1.5,
    "1j": 1j,
    "decimal": decimal.Decimal(1),
    "NumPy's number": np.int8(0),
    "NumPy's date": np.datetime64("2020-01-01"),
    "text": "a",
    "bytes": b"a",
    "date": dt.date(2020, 1, 1),
    "list": [0, 1, 2],
    "tuple": (0, 1, 2),
    "another": superchunk.arange(3),
    "field": superchunk.zeros(3, dtype=[("x", "i4")])["x"],
}


@pytest.fixture(params=["array", "file", "view", "field"])
def compared(request: pytest.FixtureRequest, tmp_path: Path) -> NDArray | NDField:
    if request.param == "field":
        return superchunk.zeros(3, dtype=[("x", "i4"), ("y", "f8")]).fields["x"]
    if request.param == "view":
        return superchunk.zeros((1, 3)).squeeze(0)
    return superchunk.zeros(3, urlpath=tmp_path / "a" if request.param == "file" else None)


@pytest.mark.parametrize("name", VALUES)
def test_comparison_with_values_raises_what_other_comparisons_raise(compared: Any, name: str) -> None:
    value = VALUES[name]
    with pytest.raises(TypeError, match="'==' not supported between instances of"):
        _ = compared == value
    with pytest.raises(TypeError, match="'!=' not supported between instances of"):
        _ = compared != value
    if not isinstance(value, np.generic):  # with which NumPy compares
        with pytest.raises(TypeError, match="'>' not supported between instances of"):
            _ = compared > value
    with pytest.raises(TypeError):
        compared[compared == value]
    with pytest.raises(TypeError):
        compared[compared != value] = 1


def test_items_are_compared_as_numpy_arrays(compared: Any) -> None:
    assert (compared[:] == 0).all()
    for equal in (np.zeros(3) == compared, compared == np.zeros(3)):
        assert np.asarray(equal).tolist() == [True, True, True]
    assert np.asarray(compared != np.zeros(3)).tolist() == [False, False, False]
    assert compared[np.asarray(compared == np.zeros(3))].tolist() == [0, 0, 0]
    assert compared[compared[:] == 0].tolist() == [0, 0, 0]


def test_an_array_is_itself_and_not_nothing(compared: Any) -> None:
    same = compared
    assert compared == same
    assert not compared != same  # noqa: SIM202 - both are asked
    assert compared != None  # noqa: E711 - as programs write it
    assert not compared == None  # noqa: E711, SIM201
    assert compared != object()
    assert compared == mock.ANY
    assert compared in [None, compared]
    assert [None, object(), compared].index(compared) == 2


def test_fields_are_those_of_their_array() -> None:
    a = superchunk.zeros(3, dtype=[("x", "i4"), ("y", "f8")])
    assert a["x"] == a["x"]
    assert not a["x"] != a["x"]  # noqa: SIM202
    assert a.fields == a.fields
    assert len({a["x"], a["x"], a["y"]}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)
