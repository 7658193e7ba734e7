"""Parameters as a container gives them back: the short way agrees with the way through the header."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from superchunk import Codec, CParams, Filter, SplitMode
from superchunk._codec.parameters import as_recorded, cparams_of, settings_of

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = [
    CParams(),
    CParams(codec=Codec.LZ4, clevel=9, typesize=4, nthreads=3, use_dict=True),
    CParams(codec=170, codec_meta=255, splitmode=SplitMode.NEVER_SPLIT, blocksize=4096),
    CParams(codec_meta=-1),
    CParams(filters=[Filter.BITSHUFFLE]),
    CParams(filters=[], filters_meta=[]),
    CParams(filters=[0, 0, 0, Filter.TRUNC_PREC, 200, Filter.SHUFFLE], filters_meta=[0, 0, 0, -10, 7, 4]),
    CParams(filters=[0, 0, 0, Filter.TRUNC_PREC, 200, Filter.SHUFFLE], filters_meta=[0, 0, 0, 10, 7, 4]),
    CParams(filters=[0, 0, 0, 0, Filter.SHUFFLE, Filter.BYTEDELTA], typesize=8),
    CParams(filters=[0, 0, 0, 0, Filter.SHUFFLE, Filter.BYTEDELTA], typesize=1),
    CParams(typesize=300, tuner=32),
    CParams(filters=[Filter.TRUNC_PREC], filters_meta=[251], typesize=4),
    CParams(filters=[Filter.INT_TRUNC], filters_meta=[-3], typesize=8),
    CParams(filters=[Filter.SHUFFLE, Filter.BYTEDELTA], typesize=200),
]


@pytest.mark.parametrize("cparams", EXAMPLES, ids=str)
def test_recorded_parameters_are_those_of_the_header(cparams: CParams) -> None:
    through_header = replace(cparams_of(settings_of(cparams, 1), cparams.nthreads), tuner=cparams.tuner)
    assert as_recorded(cparams) == through_header
    assert [type(f) for f in as_recorded(cparams).filters] == [type(f) for f in through_header.filters]


def _changes(held: Any) -> list[Callable[[], object]]:
    return [
        lambda: held.__setitem__(slice(None), [Filter.BITSHUFFLE]),
        lambda: held.__delitem__(slice(None)),
        lambda: held.append(0),
        lambda: held.extend([0]),
        lambda: held.insert(0, 0),
        lambda: held.__iadd__([0]),
        lambda: held.__imul__(2),
        held.pop,
        lambda: held.remove(0),
        held.clear,
        held.sort,
        held.reverse,
    ]


@pytest.mark.parametrize("cparams", EXAMPLES, ids=str)
def test_the_lists_of_parameters_cannot_be_changed(cparams: CParams) -> None:
    lists: tuple[Any, ...] = (cparams.filters, cparams.filters_meta)
    for held in lists:
        before = list(held)
        for change in _changes(held):
            with pytest.raises(TypeError, match="replace"):
                change()
        assert held == before == list(pickle.loads(pickle.dumps(held)))  # noqa: S301
        assert isinstance(held, list)
        assert [*held, 1] == held + [1]  # noqa: RUF005 - programs of others write it so
    assert hash(cparams) == hash(replace(cparams))
    assert copy.deepcopy(cparams) == cparams == pickle.loads(pickle.dumps(cparams))  # noqa: S301
