"""Readers in other processes see whole chunks and whole states while a writer is at work."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fire import CHUNKSIZE, Process, Reader, Writer, check_all, check_chunk, chunk_of, create
from other_process import Other

import superchunk

CONTIGUOUS = [True, False]
ROUNDS = 300
"""Changes that the writer makes."""


@pytest.mark.parametrize("contiguous", CONTIGUOUS, ids=["file", "folder"])
def test_readers_beside_a_writer_see_committed_states_only(tmp_path: Path, *, contiguous: bool) -> None:
    path = str(tmp_path / "data.b2frame")
    writer = Writer(path, seed=3, sync="never", contiguous=contiguous)
    readers = [Process("read", path, seed, how, contiguous) for seed, how in enumerate(("following", "anew", "pinned"))]
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
    writer.schunk.compact()
    assert [file.name for file in tmp_path.iterdir()] == ["data.b2frame"]
    if not contiguous:
        assert sorted(file.name for file in Path(path).iterdir() if not file.name.endswith(".chunk")) == [
            "chunks.b2frame"
        ]


@pytest.mark.parametrize("contiguous", CONTIGUOUS, ids=["file", "folder"])
def test_snapshots_stay_while_two_writers_replace_everything(tmp_path: Path, *, contiguous: bool) -> None:
    """One after the other, each a process of its own, the chunks again and again, and then the frame."""
    path = str(tmp_path / "data.b2frame")
    create(path, contiguous=contiguous)[0].close()
    pins = [Reader(path, seed=1, snapshot=True)]
    follower = Reader(path, seed=1, snapshot=False)
    seen = [pins[0].schunk[:]]
    where = str(Path(__file__).parent)
    for generation in (1, 100):
        with Other(f"import sys; sys.path.insert(0, {where!r})\nimport fire\n") as other:
            other(f"w = fire.Writer({path!r}, contiguous={contiguous}, generation={generation})")
            for _ in range(5):
                other("[w.replace_all() for _ in range(3)]")
                follower.step()
                pins.append(Reader(path, seed=1, snapshot=True))
                seen.append(pins[-1].schunk[:])
                assert [pin.schunk[:] for pin in pins] == seen
            other("w.schunk.close()")
    assert follower.counts["torn"] == 0
    assert len({check_all(bytes(plain)) for plain in seen}) == len(seen)
    for pin in pins:
        assert check_all(bytes(pin.schunk[:])) == check_all(bytes(seen[pins.index(pin)]))
        pin.schunk.close()
    follower.schunk.close()
    with superchunk.open(path, mode="a") as s:
        s.compact()
        newest = s[:]
        held = s.nchunks
    assert newest == seen[-1]
    assert [file.name for file in tmp_path.iterdir()] == ["data.b2frame"]
    if not contiguous:
        assert len(list(Path(path).iterdir())) == held + 1


@pytest.mark.parametrize("contiguous", CONTIGUOUS, ids=["file", "folder"])
def test_what_readers_check_would_show(tmp_path: Path, *, contiguous: bool) -> None:
    """Else the test above would say nothing."""
    s, heads = create(str(tmp_path / "data.b2frame"), contiguous=contiguous)
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
