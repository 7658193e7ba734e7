"""Our arrays and C-Blosc2's: both change, grow and shrink one array in turn, and after each operation both read it all.

The peer is a process of its own. What it grows shows old items again where something was shrunk before, so there the
expectation is what it reads itself; what we grow is zero, whoever shrank it.
"""

from __future__ import annotations

import random
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from arrays_drawn import DTYPES, content, same
from oracle import VERSION
from other_process import Other

import superchunk
from superchunk import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from arrays_drawn import Array, Shape

ROUNDS = 25

_PEER = """
import ast, blosc2, numpy as np

def dtype_of(text):
    return np.dtype(ast.literal_eval(text) if text[0] in "[{" else text)

def create(path, content, shape, dtype, contiguous, **keywords):
    array = np.frombuffer(bytes.fromhex(content), dtype_of(dtype)).reshape(shape)
    blosc2.asarray(array, urlpath=path, mode="w", contiguous=contiguous, **keywords)

def change(path, name, *args):
    a = blosc2.open(path, mode="a")
    if name == "set":
        starts, stops, value = args
        region = tuple(map(slice, starts, stops))
        shape = [stop - start for start, stop in zip(starts, stops)]
        a[region] = np.frombuffer(bytes.fromhex(value), a.dtype).reshape(shape)
    elif name == "resize":
        a.resize(tuple(args[0]))
    elif name == "layer":
        a.schunk.vlmeta["note"] = args[0]
    else:
        raise ValueError(name)

def read(path):
    a = blosc2.open(path, mode="r")
    return [list(a.shape), list(a.chunks), list(a.blocks), str(a.dtype), a[...].tobytes().hex()]
"""


@pytest.fixture(scope="module")
def peer() -> Iterator[Other]:
    with Other(_PEER) as process:
        assert process("blosc2.__version__") == VERSION
        yield process


def zeroed(model: Array, shape: Shape) -> Array:
    """Return the model with another shape; what is new is zero."""
    new = np.zeros(shape, model.dtype)
    common = tuple(slice(0, min(pair)) for pair in zip(model.shape, shape, strict=True))
    new[common] = model[common]
    return new


class Rounds:
    """One array and what should be in it."""

    def __init__(self, path: str, peer: Other, seed: int, *, contiguous: bool) -> None:
        self.path, self.peer, self.rng = path, peer, random.Random(seed)
        dtype = self.rng.choice([one for one in DTYPES if one.names is None and one.kind != "V"])
        ndim = self.rng.choice((1, 2, 2, 3))
        self.most = {1: 60, 2: 18, 3: 8}[ndim]
        shape = tuple(self.rng.randrange(2, self.most) for _ in range(ndim))
        chunks = tuple(self.rng.randrange(1, n + 2) for n in shape)
        blocks = tuple(self.rng.randrange(1, n + 1) for n in chunks)
        self.chunks, self.blocks = chunks, blocks
        self.model = content(dtype, shape, "random", seed)
        self.told: list[str] = []
        if seed % 2:
            given = f"{self.model.tobytes().hex()!r}, {shape}, {dtype.str!r}, {contiguous}"
            peer(f"create({path!r}, {given}, chunks={chunks}, blocks={blocks})")
        else:
            array = superchunk.asarray(
                self.model, chunks=chunks, blocks=blocks, urlpath=path, mode="w", contiguous=contiguous
            )
            array.schunk.close()
        self.follower = self.opened("r")

    def opened(self, mode: str) -> NDArray:
        """Return a handle of ours."""
        array = superchunk.open(self.path, mode=mode)
        assert isinstance(array, NDArray)
        return array

    def check(self) -> None:
        """Read on both sides, by a handle that is new and by one that was there all the time."""
        said = " | ".join(self.told[-5:])
        fresh = self.opened("r")
        for array in (fresh, self.follower):
            assert same(array[...], self.model), said
            assert (array.shape, array.chunks, array.blocks) == (self.model.shape, self.chunks, self.blocks), said
        fresh.schunk.close()
        geometry = [list(self.model.shape), list(self.chunks), list(self.blocks)]
        assert self.peer(f"read({self.path!r})") == [*geometry, str(self.model.dtype), self.model.tobytes().hex()], said
        assert superchunk.verify(self.path, decode=True).status != "damaged", said

    def round(self) -> None:
        """Make one change on one of the sides."""
        name = self.rng.choice(("set", "set", "resize", "resize", "layer"))
        side = self.rng.choice(("we", "they"))
        self.told.append(f"{side}: {name}")
        if name == "set":
            self._set(side)
        elif name == "layer":
            value = "n" * len(self.told)
            if side == "we":
                with self.changing() as array:
                    array.schunk.vlmeta["note"] = value
            else:
                self.peer(f"change({self.path!r}, 'layer', {value!r})")
        else:
            self._resize(side)

    @contextmanager
    def changing(self) -> Iterator[NDArray]:
        """Open our array for a change, in a transaction now and then, and close it."""
        array = self.opened("a")
        with array.schunk, array.schunk.transaction() if self.rng.randrange(3) == 0 else nullcontext():
            yield array

    def _set(self, side: str) -> None:
        starts = tuple(self.rng.randrange(n) for n in self.model.shape)
        stops = tuple(self.rng.randrange(at + 1, n + 1) for at, n in zip(starts, self.model.shape, strict=True))
        shape = tuple(stop - at for at, stop in zip(starts, stops, strict=True))
        value = content(
            self.model.dtype, shape, self.rng.choice(("random", "constant", "zeros")), self.rng.randrange(1000)
        )
        region = tuple(map(slice, starts, stops))
        self.told[-1] += f" {region}"
        self.model[region] = value
        if side == "they":
            self.peer(f"change({self.path!r}, 'set', {starts}, {stops}, {value.tobytes().hex()!r})")
            return
        with self.changing() as array:
            if self.rng.randrange(2):
                array[region] = value
            else:
                array.oindex[tuple(np.arange(at, stop) for at, stop in zip(starts, stops, strict=True))] = value

    def _resize(self, side: str) -> None:
        shape = tuple(
            self.rng.choice((n, max(1, n - self.rng.randrange(n)), min(n + self.rng.randrange(6), self.most)))
            for n in self.model.shape
        )
        self.told[-1] += f" {self.model.shape} to {shape}"
        new = zeroed(self.model, shape)
        if side == "we":
            with self.changing() as array:
                array.resize(shape)
        else:
            self.peer(f"change({self.path!r}, 'resize', {shape})")
            shown = np.frombuffer(bytes.fromhex(self.peer(f"read({self.path!r})")[-1]), new.dtype).reshape(shape)
            kept = tuple(slice(0, min(pair)) for pair in zip(self.model.shape, shape, strict=True))
            assert same(np.ascontiguousarray(shown[kept]), np.ascontiguousarray(new[kept]))
            new = shown.copy()
        self.model = new


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])
@pytest.mark.parametrize("seed", range(10))
def test_both_read_the_right_items_after_every_operation(
    tmp_path: Path, peer: Other, seed: int, *, contiguous: bool
) -> None:
    rounds = Rounds(str(tmp_path / "data.b2nd"), peer, seed, contiguous=contiguous)
    rounds.check()
    for _ in range(ROUNDS):
        rounds.round()
        rounds.check()
    sides = [one.split(":")[0] for one in rounds.told]
    assert min(sides.count("we"), sides.count("they")) > ROUNDS // 6
    rounds.follower.schunk.close()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 16, (7, 5)], ids=str)
def test_the_peer_reads_every_dtype_and_odd_shapes(
    tmp_path: Path, peer: Other, dtype: np.dtype[Any], shape: Shape
) -> None:
    path = str(tmp_path / "data.b2nd")
    array = content(dtype, shape, "random", 1)
    superchunk.asarray(array, urlpath=path, mode="w").schunk.close()
    found = peer(f"read({path!r})")
    assert found[0] == list(shape)
    assert found[-1] == array.tobytes().hex()
