"""Our writer and C-Blosc2's take turns on one frame, and after each operation both read all of it.

Unlike in test_interop_frames.py the peer is a process of its own, sizes may vary, and our side does what the peer does
not know: transactions, compaction, frames that are emptied, a reader that stays open and follows. That one does
not notice when the peer changes a vlmetalayer, and nothing else, to one of the same length: the peer writes the same
header again. So values here have lengths of their own.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from oracle import VERSION
from other_process import Other

import superchunk
from superchunk import SChunk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNKSIZE = 800
ROUNDS = 30

_PEER = """
import blosc2
CPARAMS = {"typesize": 4, "codec": blosc2.Codec.LZ4, "clevel": 5, "nthreads": 1}

def create(path, chunksize, contiguous):
    place = {"urlpath": path, "mode": "w", "contiguous": contiguous}
    blosc2.SChunk(chunksize=chunksize, meta={"fixed": 200}, cparams=CPARAMS, **place)

def change(path, name, *args):
    s = blosc2.open(path, mode="a")
    if name == "append":
        s.append_data(bytes.fromhex(args[0]))
    elif name == "insert":
        s.insert_data(args[0], bytes.fromhex(args[1]), copy=True)
    elif name == "update":
        s.update_data(args[0], bytes.fromhex(args[1]), copy=True)
    elif name == "delete":
        s.delete_chunk(args[0])
    elif name == "zeros":
        s.update_special(args[0], blosc2.SpecialValue.ZERO)
    elif name == "layer":
        s.vlmeta[args[0]] = args[1]
    elif name == "no layer":
        del s.vlmeta[args[0]]
    elif name == "fixed":
        s.meta["fixed"] = args[0]
    else:
        raise ValueError(name)

def read(path):
    s = blosc2.open(path, mode="r")
    layers = {name: s.vlmeta[name] for name in s.vlmeta}
    return [[s.decompress_chunk(n).hex() for n in range(s.nchunks)], layers, s.meta["fixed"], s.nbytes]
"""


@pytest.fixture(scope="module")
def peer() -> Iterator[Other]:
    with Other(_PEER) as process:
        assert process("blosc2.__version__") == VERSION
        yield process


def content(rng: random.Random, nbytes: int) -> bytes:
    """Return something that compresses well, badly, or to an entry alone."""
    noise = rng.choice((0, nbytes // 4, nbytes))
    return (rng.randbytes(noise) + bytes([rng.randrange(256)]) * nbytes)[:nbytes]


class Rounds:
    """One frame and what should be in it."""

    def __init__(self, path: str, peer: Other, seed: int, *, contiguous: bool, varying: bool) -> None:
        self.path, self.peer, self.rng = path, peer, random.Random(seed)
        self.varying = varying
        self.model: list[bytes] = []
        self.layers: dict[str, Any] = {}
        self.fixed = 200
        self.told: list[str] = []
        chunksize = 0 if varying else CHUNKSIZE
        if seed % 2 and not varying:
            peer(f"create({path!r}, {chunksize}, {contiguous})")
        else:
            SChunk(
                chunksize or -1,
                urlpath=path,
                mode="w",
                contiguous=contiguous,
                meta={"fixed": 200},
                cparams={"typesize": 4, "nthreads": 1},
            ).close()
        self.follower = superchunk.open(path, verify="read")

    # Reading.

    def check(self) -> None:
        """Read on both sides, by a handle that is new and by one that was there all the time."""
        said = " | ".join(self.told[-5:])
        with superchunk.open(self.path, verify="read") as fresh:
            for s in (fresh, self.follower):
                assert [s.decompress_chunk(n) for n in range(s.nchunks)] == self.model, said
                assert s[:] == b"".join(self.model), said
                assert s.vlmeta.getall() == self.layers, said
                assert s.meta["fixed"] == self.fixed, said
        found = self.peer(f"read({self.path!r})")
        wanted = [[plain.hex() for plain in self.model], self.layers, self.fixed, sum(map(len, self.model))]
        assert found == wanted, said
        assert superchunk.verify(self.path, decode=True).status != "damaged", said

    # Changing.

    def round(self) -> None:
        """Make one change on one of the sides."""
        by_us = self.rng.random() < 0.5
        steps = [self._step()]
        if by_us and not self.rng.randrange(4):
            steps += [self._step() for _ in range(self.rng.randrange(1, 5))]
        self.told.append(
            ("we: " if by_us else "they: ") + ", ".join(f"{name} {args[0]!r:.12}" for name, *args in steps)
        )
        if not by_us:
            (step,) = steps
            hexed = [arg.hex() if isinstance(arg, bytes) else arg for arg in step]
            self.peer(f"change({self.path!r}, *{hexed!r})")
            return
        with superchunk.open(self.path, mode="a") as s:
            if len(steps) > 1:
                with s.transaction():
                    for step in steps:
                        _apply(s, *step)
            else:
                _apply(s, *steps[0])
            if not self.rng.randrange(5):
                s.compact()
                self.told[-1] += ", compact"

    def empty(self) -> None:
        """Remove all chunks, which is a case of its own in the format."""
        self.told.append("we: empty")
        with superchunk.open(self.path, mode="a") as s, s.transaction():
            while s.nchunks:
                s.delete_chunk(s.nchunks - 1)
        self.model = []

    def _size(self) -> int:
        return 4 * self.rng.randrange(8, CHUNKSIZE // 2) if self.varying else CHUNKSIZE

    def _step(self) -> tuple[Any, ...]:  # noqa: PLR0911 - one for each change
        """Draw a change that either side can make, and make it in the model."""
        rng, nchunks = self.rng, len(self.model)
        kind = rng.choice(("append", "append", "insert", "update", "delete", "zeros", "layer", "no layer", "fixed"))
        if kind == "layer" or (kind == "no layer" and not self.layers):
            name, value = rng.choice("abc"), [rng.randrange(2**31, 2**32) for _ in range(len(self.told) + 1)]
            self.layers[name] = value
            return ("layer", name, value)
        if kind == "no layer":
            name = rng.choice(sorted(self.layers))
            del self.layers[name]
            return (kind, name)
        if kind == "fixed":
            self.fixed = rng.randrange(128, 256)
            return (kind, self.fixed)
        if kind == "append" or not nchunks:
            self.model.append(content(rng, self._size()))
            return ("append", self.model[-1])
        nchunk = rng.randrange(nchunks)
        if kind == "insert":
            self.model.insert(nchunk, content(rng, self._size()))
            return (kind, nchunk, self.model[nchunk])
        if kind == "delete" and nchunks > 2:
            del self.model[nchunk]
            return (kind, nchunk)
        if kind == "zeros" and not self.varying:
            self.model[nchunk] = bytes(CHUNKSIZE)
            return (kind, nchunk)
        self.model[nchunk] = content(rng, len(self.model[nchunk]))
        return ("update", nchunk, self.model[nchunk])


def _apply(s: SChunk, name: str, *args: Any) -> None:
    calls: dict[str, Any] = {
        "append": s.append_data,
        "insert": lambda nchunk, plain: s.insert_data(nchunk, plain, copy=False),
        "update": lambda nchunk, plain: s.update_data(nchunk, plain, copy=False),
        "delete": s.delete_chunk,
        "zeros": lambda nchunk: s.update_special(nchunk, superchunk.SpecialValue.ZERO),
        "layer": s.vlmeta.__setitem__,
        "no layer": s.vlmeta.__delitem__,
        "fixed": lambda value: s.meta.__setitem__("fixed", value),
    }
    calls[name](*args)


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])
@pytest.mark.parametrize("varying", [False, True], ids=["chunks of one size", "of many"])
@pytest.mark.parametrize("seed", range(4))
def test_both_read_the_right_content_after_every_operation(
    tmp_path: Path, peer: Other, seed: int, *, varying: bool, contiguous: bool
) -> None:
    rounds = Rounds(str(tmp_path / "data.b2frame"), peer, seed, contiguous=contiguous, varying=varying)
    rounds.check()
    for number in range(ROUNDS):
        if number == ROUNDS // 2:
            rounds.empty()
            rounds.check()
        rounds.round()
        rounds.check()
    sides = [one.split(":")[0] for one in rounds.told]
    assert min(sides.count("we"), sides.count("they")) > ROUNDS // 5
