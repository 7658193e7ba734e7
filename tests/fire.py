"""A frame whose content tells whether it was seen in one piece, a writer of it, and readers.

Every chunk begins with its generation, a check value of the rest, and a filling that follows from the generation.
Chunk 0 belongs to the whole: it holds the generation of the last commit, and a check value over the beginnings of all
others. So a reader who takes everything in one call can tell whether that was exactly one committed state, and
one who takes a chunk, whether that is whole.

::

    byte 0   8   generation
    byte 8   8   check value: of bytes 16 to the end; of chunk 0: of the first 16 bytes of all others
    byte 16      filling

Processes are started by `python fire.py write|read PATH SEED HOW CONTIGUOUS`, and stop when their standard input ends;
then they print what they counted, as JSON.
"""

from __future__ import annotations

import hashlib
import json
import random
import select
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import superchunk
from superchunk import SChunk
from superchunk.exceptions import ChunkIndexError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from superchunk.params import SyncLevel

HEAD = 16
CHUNKSIZE = 32 * 1024
MOST = 96
"""Chunks of the frame at most."""
LEAST = 24


def check_value(data: bytes | memoryview) -> bytes:
    """Return eight bytes that tell `data` from other data."""
    return hashlib.blake2b(data, digest_size=8).digest()


def chunk_of(generation: int) -> bytes:
    """Return a chunk of that generation, half of which compresses."""
    body = random.Random(generation).randbytes(CHUNKSIZE // 2 - HEAD) + bytes(CHUNKSIZE // 2)
    return generation.to_bytes(8, "little") + check_value(body) + body


def lead_of(generation: int, heads: Sequence[bytes]) -> bytes:
    """Return chunk 0 over chunks that begin with `heads`."""
    value = check_value(b"".join(heads))
    return generation.to_bytes(8, "little") + value + bytes(CHUNKSIZE - HEAD)


def check_chunk(plain: bytes | memoryview) -> int:
    """Return the generation of a chunk that is not the first.

    Raises
    ------
    AssertionError
        It is torn.

    """
    assert len(plain) == CHUNKSIZE, f"torn: {len(plain)} bytes"
    assert check_value(plain[HEAD:]) == plain[8:HEAD], "torn chunk"
    return int.from_bytes(plain[:8], "little")


def check_all(plain: bytes) -> int:
    """Return the generation of a whole frame.

    Raises
    ------
    AssertionError
        It is no committed state.

    """
    view = memoryview(plain)
    chunks = [view[at : at + CHUNKSIZE] for at in range(0, len(view), CHUNKSIZE)]
    assert chunks, "torn: nothing there"
    assert check_value(b"".join(chunk[:HEAD] for chunk in chunks[1:])) == chunks[0][8:HEAD], "torn state"
    generation = int.from_bytes(chunks[0][:8], "little")
    for chunk in chunks[1:]:
        assert check_chunk(chunk) <= generation, "a chunk from the future"
    return generation


def create(path: str, *, generation: int = 1, **how: Any) -> tuple[SChunk, list[bytes]]:
    """Return a new frame, in place of what is there, and how its chunks but the first begin."""
    chunks = [chunk_of(generation) for _ in range(LEAST)]
    heads = [chunk[:HEAD] for chunk in chunks]
    data = lead_of(generation, heads) + b"".join(chunks)
    cparams = superchunk.CParams(typesize=8, nthreads=1, clevel=1, codec=superchunk.Codec.LZ4)
    return SChunk(CHUNKSIZE, data, urlpath=path, mode="w", cparams=cparams, **how), heads


class Writer:
    """Changes the frame, one transaction after the other."""

    def __init__(
        self, path: str, *, seed: int = 0, sync: SyncLevel = "explicit", contiguous: bool = True, generation: int = 1
    ) -> None:
        self.path, self.sync, self.contiguous = path, sync, contiguous
        self.rng = random.Random(seed)
        self.generation = generation
        self.schunk, self.heads = create(path, generation=generation, sync=sync, contiguous=contiguous)
        self.counts: Counter[str] = Counter()

    def step(self) -> None:
        """Make one change."""
        self.generation += 1
        kind = self.rng.randrange(200)
        if kind == 0:
            self.schunk.close()
            self.schunk, self.heads = create(
                self.path, generation=self.generation, sync=self.sync, contiguous=self.contiguous
            )
            self.counts["replaced"] += 1
        elif kind < 4:
            self.schunk.compact()
            self.counts["compacted"] += 1
        else:
            with self.schunk.transaction():
                for _ in range(self.rng.randrange(1, 6)):
                    self._change()
                self.schunk.update_data(0, lead_of(self.generation, self.heads), copy=False)
            self.counts["transactions"] += 1

    def replace_all(self) -> None:
        """Make one change, to every chunk."""
        self.generation += 1
        with self.schunk.transaction():
            for nchunk in range(len(self.heads)):
                chunk = chunk_of(self.generation)
                self.schunk.update_data(nchunk + 1, chunk, copy=False)
                self.heads[nchunk] = chunk[:HEAD]
            self.schunk.update_data(0, lead_of(self.generation, self.heads), copy=False)

    def _change(self) -> None:
        chunk = chunk_of(self.generation)
        kind = self.rng.randrange(4)
        if len(self.heads) >= MOST:
            for _ in range(MOST // 2):
                self.schunk.delete_chunk(1)
            del self.heads[: MOST // 2]
        elif kind == 0 and len(self.heads) > LEAST:
            nchunk = self.rng.randrange(len(self.heads))
            self.schunk.delete_chunk(nchunk + 1)
            del self.heads[nchunk]
        elif kind == 1:
            nchunk = self.rng.randrange(len(self.heads))
            self.schunk.update_data(nchunk + 1, chunk, copy=False)
            self.heads[nchunk] = chunk[:HEAD]
        else:
            self.schunk.append_data(chunk)
            self.heads.append(chunk[:HEAD])


class Reader:
    """Reads all or a part, and checks what it gets."""

    def __init__(self, path: str, *, seed: int, snapshot: bool) -> None:
        self.schunk = superchunk.open(path, snapshot=snapshot)
        self.snapshot = snapshot
        self.rng = random.Random(seed)
        self.newest = 0
        self.counts: Counter[str] = Counter()

    def step(self) -> None:
        """Read once; what is wrong is counted, and the first of it kept."""
        try:
            if self.snapshot:
                self._pinned()
            elif self.rng.randrange(3):
                self._whole()
            else:
                self._chunk()
        except (AssertionError, OSError, superchunk.exceptions.SuperchunkError) as error:
            self.counts["torn"] += 1
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201 - for whom it may concern
        self.counts["reads"] += 1

    def _whole(self) -> int:
        plain = self.schunk[:]
        assert isinstance(plain, bytes)
        generation = check_all(plain)
        assert generation >= self.newest, "an older state than before"
        self.counts["states"] += generation > self.newest
        self.newest = generation
        self.counts["bytes"] += len(plain)
        return generation

    def _chunk(self) -> None:
        try:
            plain = self.schunk.decompress_chunk(self.rng.randrange(1, self.schunk.nchunks))
        except ChunkIndexError:  # there were more a moment ago
            return
        assert plain is not None
        check_chunk(plain)
        self.counts["bytes"] += len(plain)

    def _pinned(self) -> None:
        first = self._whole()
        time.sleep(0.01 * self.rng.random())
        assert self._whole() == first, "a snapshot that moved"
        self.schunk.refresh()


class Opener:
    """Opens the frame for each time it reads."""

    def __init__(self, path: str, *, seed: int) -> None:
        self.path = path
        self.rng = random.Random(seed)
        self.newest = 0
        self.counts: Counter[str] = Counter()

    def step(self) -> None:
        """Open, read, and close; what is wrong is counted."""
        try:
            with superchunk.open(self.path, snapshot=self.rng.random() < 0.5) as schunk:
                plain = schunk[:]
            assert isinstance(plain, bytes)
            generation = check_all(plain)
            assert generation >= self.newest, "an older state than before"
            self.counts["states"] += generation > self.newest
            self.newest = generation
            self.counts["bytes"] += len(plain)
        except (AssertionError, OSError, superchunk.exceptions.SuperchunkError) as error:
            self.counts["torn"] += 1
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201 - for whom it may concern
        self.counts["reads"] += 1


class Process:
    """A writer or a reader of its own."""

    def __init__(self, *told: object, script: str = __file__) -> None:
        self._process = subprocess.Popen(
            [sys.executable, script, *map(str, told)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it is ready

    def stop(self) -> tuple[Counter[str], str]:
        """Let it end; return what it counted, and what it complained of."""
        out, err = self._process.communicate()
        assert out, err
        return Counter(json.loads(out)), err


def main() -> None:
    """Be the process that the arguments say."""
    kind, path, seed, how, contiguous = sys.argv[1:]
    who: Writer | Reader | Opener
    if kind == "write":
        who = Writer(path, seed=int(seed), sync=cast("SyncLevel", how), contiguous=contiguous == "True")
    elif how == "anew":
        who = Opener(path, seed=int(seed))
    else:
        who = Reader(path, seed=int(seed), snapshot=how == "pinned")
    print("ready", flush=True)  # noqa: T201 - the answer
    start = time.perf_counter()
    while not select.select([sys.stdin], [], [], 0)[0]:
        who.step()
    who.counts["milliseconds"] = int(1000 * (time.perf_counter() - start))
    print(json.dumps(who.counts))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
