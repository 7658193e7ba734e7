"""Parameters as a container gives them back: the short way agrees with the way through the header."""

from __future__ import annotations

from dataclasses import replace

import pytest

from superchunk import Codec, CParams, Filter, SplitMode
from superchunk._encoding import as_recorded, cparams_of, settings_of
from superchunk.params import copied

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
]


@pytest.mark.parametrize("cparams", EXAMPLES, ids=str)
def test_recorded_parameters_are_those_of_the_header(cparams: CParams) -> None:
    through_header = replace(cparams_of(settings_of(cparams, 1), cparams.nthreads), tuner=cparams.tuner)
    assert as_recorded(cparams) == through_header
    assert [type(f) for f in as_recorded(cparams).filters] == [type(f) for f in through_header.filters]


@pytest.mark.parametrize("cparams", EXAMPLES, ids=str)
def test_copies_share_no_lists(cparams: CParams) -> None:
    for other in (copied(cparams), as_recorded(cparams)):
        assert other is not cparams
        assert other.filters is not cparams.filters
        assert other.filters_meta is not cparams.filters_meta
    assert copied(cparams) == cparams
