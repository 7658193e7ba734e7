"""A few items out of large blocks: what is read without decoding the block is what decoding it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import superchunk
from superchunk import Codec, Filter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NITEMS = 200_000
"""Three blocks, the last one shorter, of eight streams of 64 KiB."""


def _kinds() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    count = np.arange(NITEMS, dtype=np.int64)
    return {
        "counting": count,
        "smooth": np.sin(count / 3000) * 100,
        "noisy": rng.normal(size=NITEMS),
        "noise": rng.integers(0, 2**63, NITEMS),
        "steps": np.repeat(rng.integers(0, 1000, NITEMS // 100), 100),
        "few": rng.choice(np.array([1.5, 2.5, 1e9]), NITEMS),
    }


KINDS = _kinds()
CODECS = [Codec.BLOSCLZ, Codec.LZ4, Codec.LZ4HC, Codec.ZLIB, Codec.ZSTD]


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, Codec], superchunk.SChunk]]:
    """Each kind of data with each codec, in a file."""
    folder = tmp_path_factory.mktemp("frames")
    made = {}
    for kind, data in KINDS.items():
        for codec in CODECS:
            path = folder / f"{kind}-{codec.name}.b2frame"
            cparams = superchunk.CParams(
                typesize=8, codec=codec, blocksize=8 * 2**16, splitmode=superchunk.SplitMode.ALWAYS_SPLIT
            )
            superchunk.SChunk(data=data, urlpath=path, mode="w", cparams=cparams).close()
            made[kind, codec] = superchunk.open(path)
    yield made
    for schunk in made.values():
        schunk.close()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(sorted(KINDS)),
    codec=st.sampled_from(CODECS),
    start=st.integers(0, NITEMS - 1),
    count=st.one_of(st.integers(1, 20), st.integers(1, 9000), st.integers(1, NITEMS)),
)
def test_items_out_of_large_blocks(
    frames: dict[tuple[str, Codec], superchunk.SChunk], kind: str, codec: Codec, start: int, count: int
) -> None:
    found = frames[kind, codec][start : start + count]
    assert found == KINDS[kind][start : start + count].tobytes()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("filters", [[Filter.NOFILTER], [Filter.BITSHUFFLE], [Filter.SHUFFLE]])
def test_other_pipelines(tmp_path: Path, codec: Codec, filters: list[Filter]) -> None:
    data = KINDS["noisy"]
    cparams = superchunk.CParams(typesize=8, codec=codec, filters=filters, blocksize=8 * 2**16)
    path = tmp_path / "frame.b2frame"
    superchunk.SChunk(data=data, urlpath=path, mode="w", cparams=cparams).close()
    with superchunk.open(path) as schunk:
        for start in (0, 1, 65_530, 65_536, 131_071, NITEMS - 10):
            assert schunk[start : start + 10] == data[start : start + 10].tobytes()


def test_a_file_that_was_cut_says_so(tmp_path: Path) -> None:
    """At once, also where what is wanted is still there."""
    path = tmp_path / "frame.b2frame"
    superchunk.SChunk(data=KINDS["noisy"], urlpath=path, mode="w", cparams={"typesize": 8}).close()
    with superchunk.open(path) as schunk:
        whole = schunk[150_000:150_010]
        with path.open("r+b") as file:
            file.truncate(800_000)
        for start in (0, 150_000):
            with pytest.raises(superchunk.exceptions.TruncatedError, match=r"800000|800_000"):
                _ = schunk[start : start + 10]
    assert whole == KINDS["noisy"][150_000:150_010].tobytes()
