"""A small form of the laboratory of sizes; ``make lab-sizes`` is the large one."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("blosc2", reason="the peer is not installed")

from labs.sizes import FAMILIES, MOST, data_of, draw, measure


def test_there_are_families_of_many_kinds_and_each_is_made_again_by_its_seed() -> None:
    assert len(FAMILIES) >= 60
    for name in FAMILIES:
        first = data_of(name, 5, 2**14).tobytes()
        data_of.cache_clear()
        assert first == data_of(name, 5, 2**14).tobytes()
        assert len(first) >= 2**12


@pytest.mark.parametrize("seed", range(200))
def test_a_chunk_is_at_most_a_hundredth_larger_than_that_of_the_peer(seed: int) -> None:
    cell = draw(10_000 + seed, largest=2**20)
    assert measure(cell) <= MOST, cell


def test_cells_are_drawn_by_their_seed_alone() -> None:
    np.random.default_rng(1)
    assert draw(3) == draw(3) != draw(4)
