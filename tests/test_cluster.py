"""Processes that write chunks of one frame together, one of which is killed, and readers all the while."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fire import CHUNKSIZE, HEAD, Process, check_all, chunk_of, create, lead_of
from oracle import blosc2
from other_process import PATIENCE, Other

import superchunk
from superchunk import StagedChunk

if TYPE_CHECKING:
    from superchunk import SChunk

WRITERS = 4
ROUNDS = 3
EACH = 2
"""Chunks of a writer in a round."""

_SETUP = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
import superchunk
from fire import chunk_of
from superchunk._store import os_file as file

class Stuck(file.System):
    def sync(self, fd):
        time.sleep({PATIENCE})

def stage(path, chunk_id, generation):
    staged = superchunk.stage_chunk(path, chunk_id, chunk_of(generation))
    return [staged.chunk_id, staged.nbytes, staged.cbytes]
"""


def collected(writers: list[Other], path: str, ids: range, generation: int) -> list[StagedChunk]:
    """Return what the writers made, each its share of the ids, all at the same time."""
    shares = [ids[n :: len(writers)] for n in range(len(writers))]
    for writer, share in zip(writers, shares, strict=True):
        writer.start(f"[stage({path!r}, chunk_id, {generation}) for chunk_id in {list(share)}]")
    answers: list[list[Any]] = [one for writer in writers for one in writer.answer()]
    return [StagedChunk(chunk_id=ident, nbytes=nbytes, cbytes=cbytes) for ident, nbytes, cbytes in answers]


def commit(s: SChunk, heads: list[bytes], staged: list[StagedChunk], generation: int) -> None:
    """Put what was staged into the frame, and say so in its first chunk, which readers check."""
    heads += [chunk_of(generation)[:HEAD]] * len(staged)
    with s.transaction():
        s.append_staged(staged)
        s.update_data(0, lead_of(generation, heads), copy=False)


def killed_while_writing(writer: Other, path: Path, chunk_id: int) -> Path:
    """Kill a writer that has written its chunk and waits for the disk; return the file that it leaves."""
    writer("file.system = Stuck()")
    writer.start(f"stage({str(path)!r}, {chunk_id}, 99)")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = [file for file in path.glob(f".{chunk_id:08X}.chunk.*.new") if file.stat().st_size > HEAD]
        if found:
            writer.kill()
            return found[0]
        time.sleep(0.002)
    pytest.fail("the writer did not begin")


def test_one_of_several_writers_is_killed_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "data.b2frame"
    s, heads = create(str(path), contiguous=False)
    before = len(heads)
    readers = [Process("read", path, n, how, False) for n, how in enumerate(("following", "anew", "pinned"))]  # noqa: FBT003
    with ExitStack() as ended:
        writers = [ended.enter_context(Other(_SETUP)) for _ in range(WRITERS)]
        for generation in range(2, 2 + ROUNDS):
            staged = collected(writers, str(path), s.reserve_chunk_ids(EACH * len(writers)), generation)
            commit(s, heads, staged, generation)
        # The last one finishes a chunk of which nobody hears, and dies in the middle of the next.
        doomed = writers.pop()
        ids = s.reserve_chunk_ids(EACH * len(writers) + 2)
        doomed(f"stage({str(path)!r}, {ids[-1]}, 99)")
        unfinished = killed_while_writing(doomed, path, ids[-2])
        unheard = path / f"{ids[-1]:08X}.chunk"
        commit(s, heads, collected(writers, str(path), ids[:-2], 2 + ROUNDS), 2 + ROUNDS)
        newest = s[:]
        for reader in readers:
            counts, complaints = reader.stop()
            assert counts["torn"] == 0, complaints
            assert counts["states"] > 1
    assert isinstance(newest, bytes)
    assert check_all(newest) == 2 + ROUNDS
    assert s.nchunks == 1 + before + EACH * (ROUNDS * WRITERS + WRITERS - 1)
    s.close()
    assert unfinished.exists()
    assert unheard.exists()
    assert superchunk.verify(path).status == "sound"
    with superchunk.open(path, mode="a") as again:
        assert not unfinished.exists()
        assert not unheard.exists()
        assert again[:] == newest
    peer = blosc2.open(str(path), mode="r")
    assert b"".join(peer.decompress_chunk(n) for n in range(peer.nchunks)) == newest
    assert len(newest) == CHUNKSIZE * peer.nchunks
