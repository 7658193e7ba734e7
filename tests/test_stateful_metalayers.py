"""Metalayers against plain dicts: any sequence of changes leaves the same names and values."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from drawn import content, examples
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import superchunk
from superchunk import _engine
from superchunk._store.frame_store import FrameStore
from superchunk.exceptions import MetalayerKeyError, MetalayerValueError

MOST_LAYERS = 16
"""In a frame; the peer destroys frames with more when it changes them."""

names = st.one_of(
    st.sampled_from(["unit", "history", "é", "", "n" * 31]),
    st.text(max_size=7).filter(lambda name: name.isprintable()),
)
numbers = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False))
scalars = st.one_of(numbers, st.none(), st.booleans(), st.text(max_size=20), st.binary(max_size=20))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=5), inner, max_size=4),
    ),
    max_leaves=12,
)


def starts_like_a_tuple(value: object) -> bool:
    """Whether a list in it begins with the word that marks tuples."""
    if isinstance(value, list):
        return value[:1] == ["__tuple__"] or any(map(starts_like_a_tuple, value))
    if isinstance(value, tuple):
        return any(map(starts_like_a_tuple, value))
    if isinstance(value, dict):
        return any(map(starts_like_a_tuple, value.values()))
    return False


class Metalayers(RuleBasedStateMachine):
    """Changes of fixed and variable metalayers, with chunks coming and going between them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.fixed: dict[str, int] = {}
        self.variable: dict[str, Any] = {}
        self.nchunks = 0

    @initialize(
        stored=st.booleans(),
        fixed=st.dictionaries(names, st.integers(128, 255), max_size=MOST_LAYERS),
    )
    def make(self, *, stored: bool, fixed: dict[str, int]) -> None:
        self.path: Any = Path(self.folder.name) / "frame.b2frame" if stored else None
        self.fixed = dict(fixed)
        self.schunk = superchunk.SChunk(
            chunksize=400,
            cparams={"typesize": 4, "nthreads": 1},
            urlpath=self.path,
            mode="w",
            meta=dict(fixed.items()),
            contiguous=True,
        )

    @rule(name=names, value=values.filter(lambda value: not starts_like_a_tuple(value)))
    def set_variable(self, name: str, value: object) -> None:
        if name not in self.variable and len(self.variable) >= MOST_LAYERS:
            with pytest.raises(MetalayerValueError):
                self.schunk.vlmeta[name] = value
            return
        self.schunk.vlmeta[name] = value
        self.variable[name] = value

    @rule(name=names, nbytes=st.sampled_from([1, 1000, 70_000, 300_000]), seed=st.integers(0, 9))
    @precondition(lambda self: len(self.variable) < MOST_LAYERS)
    def set_large_variable(self, name: str, nbytes: int, seed: int) -> None:
        value = content("random" if seed % 2 else "text", nbytes, seed)
        self.schunk.vlmeta[name] = value
        self.variable[name] = value

    @rule(data=st.data())
    @precondition(lambda self: self.variable)
    def delete_variable(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.variable)))
        del self.schunk.vlmeta[name]
        del self.variable[name]

    @rule(name=names)
    def delete_variable_that_is_not_there(self, name: str) -> None:
        if name not in self.variable:
            with pytest.raises(MetalayerKeyError):
                del self.schunk.vlmeta[name]
            with pytest.raises(KeyError):
                self.schunk.vlmeta[name]

    @rule(data=st.data(), value=st.integers(128, 255))
    @precondition(lambda self: self.fixed)
    def set_fixed(self, data: st.DataObject, value: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.fixed)))
        self.schunk.meta[name] = value
        self.fixed[name] = value

    @rule(data=st.data(), value=st.one_of(st.text(min_size=2), st.integers(256, 2**40)))
    @precondition(lambda self: self.fixed)
    def set_fixed_to_another_length(self, data: st.DataObject, value: object) -> None:
        name = data.draw(st.sampled_from(sorted(self.fixed)))
        with pytest.raises(MetalayerValueError):
            self.schunk.meta[name] = value

    @rule(name=names)
    def add_fixed_afterwards(self, name: str) -> None:
        if name not in self.fixed:
            with pytest.raises(MetalayerKeyError):
                self.schunk.meta[name] = 200

    @rule(name=st.text(min_size=32, max_size=40), value=scalars)
    def name_that_is_too_long_is_refused(self, name: str, value: object) -> None:
        with pytest.raises(MetalayerValueError):
            self.schunk.vlmeta[name] = value

    @rule(nbytes=st.sampled_from([400, 400, 0]))
    def change_chunks(self, nbytes: int) -> None:
        if nbytes:
            self.nchunks = self.schunk.append_data(content("planes", nbytes, self.nchunks))
        elif self.nchunks:
            self.nchunks = self.schunk.delete_chunk(0)

    @rule()
    @precondition(lambda self: self.path)
    def reopen(self) -> None:
        self.schunk.close()
        self.schunk = superchunk.open(self.path, mode="a")

    @rule()
    @precondition(lambda self: self.path)
    def change_is_on_disk_when_the_assignment_returns(self) -> None:
        raw = self.path.read_bytes()
        frame_len = int.from_bytes(raw[0x10:0x18], "big")  # chunks behind it wait for their commit
        with superchunk.schunk_from_cframe(raw[:frame_len]) as on_disk:
            assert dict(on_disk.vlmeta.getall()) == self.variable
            assert dict(on_disk.meta.getall()) == self.fixed

    @rule()
    def frame_of_it_holds_the_same(self) -> None:
        with superchunk.schunk_from_cframe(self.schunk.to_cframe()) as copy:
            assert copy.vlmeta.getall() == self.variable
            assert copy.meta.getall() == self.fixed

    @invariant()
    def layers_are_those_of_the_model(self) -> None:
        assert list(self.schunk.vlmeta) == list(self.variable)
        assert list(self.schunk.meta) == list(self.fixed)
        for name, value in self.variable.items():
            found = self.schunk.vlmeta[name]
            assert found == value
            assert type(found) is type(value)
        assert self.schunk.meta.getall() == self.fixed
        assert self.schunk.nchunks == self.nchunks

    def teardown(self) -> None:
        if hasattr(self, "schunk"):
            self.schunk.close()
        self.folder.cleanup()


def test_metalayers_follow_the_model() -> None:
    run_state_machine_as_test(Metalayers, settings=examples(80))


def test_each_variable_metalayer_is_a_chunk_of_bytes(tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    with superchunk.SChunk(urlpath=path, cparams={"typesize": 8}) as schunk:
        schunk.vlmeta["text"] = "x" * 1000
    store = FrameStore.open(str(path))
    try:
        chunk = store.vlmeta["text"]
        assert _engine.describe(chunk).typesize == 1
        assert len(chunk) < 200
        assert _engine.decompress(chunk)[-1000:] == b"x" * 1000
    finally:
        store.close()
