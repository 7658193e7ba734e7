"""Readers in other processes see whole chunks and whole states while a writer is at work."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from fire import CHUNKSIZE, Process, Reader, Writer, check_all, check_chunk, chunk_of, create

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 300
"""Changes that the writer makes."""


def test_readers_beside_a_writer_see_committed_states_only(tmp_path: Path) -> None:
    path = str(tmp_path / "data.b2frame")
    writer = Writer(path, seed=3, sync="never")
    readers = [Process("read", path, seed, how) for seed, how in enumerate(("following", "following", "pinned"))]
    for _ in range(ROUNDS):
        writer.step()
        time.sleep(0.002)  # they need their turns, too
    writer.schunk.compact()
    assert writer.counts["transactions"] > ROUNDS // 2
    assert min(writer.counts["compacted"], writer.counts["replaced"]) > 0
    for reader in readers:
        counts, complaints = reader.stop()
        assert counts["torn"] == 0, complaints
        assert counts["reads"] > 10
        assert counts["states"] > 3


def test_what_readers_check_would_show(tmp_path: Path) -> None:
    """Else the test above would say nothing."""
    s, heads = create(str(tmp_path / "data.b2frame"))
    whole = s[:]
    assert isinstance(whole, bytes)
    assert check_all(whole) == 1
    assert len(heads) == s.nchunks - 1
    other = chunk_of(2)
    for torn in (
        whole[:CHUNKSIZE] + other + whole[2 * CHUNKSIZE :],
        whole[:-CHUNKSIZE],
        whole + other,
        b"",
        whole[:-1],
    ):
        with pytest.raises(AssertionError):
            check_all(torn)
    with pytest.raises(AssertionError, match="torn chunk"):
        check_chunk(other[:3000] + chunk_of(3)[3000:])
    s.update_data(3, other, copy=False)  # without chunk 0
    reader = Reader(str(tmp_path / "data.b2frame"), seed=1, snapshot=False)
    for _ in range(10):
        reader.step()
    assert reader.counts["torn"] > 0
