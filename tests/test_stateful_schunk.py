"""A super-chunk against a plain list of bytes: any sequence of changes leaves the same content.

In memory and in a file, with equal and with varying chunk sizes, through several handles, reopened
and copied at any moment.
"""

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
from superchunk import SpecialValue
from superchunk.exceptions import ChunkIndexError, SuperchunkError

TYPESIZE = 4
CHUNKSIZE = 400
KINDS = ("planes", "random", "zeros", "run", "text")

seeds = st.integers(0, 1000)
kinds = st.sampled_from(KINDS)
whole_sizes = st.just(CHUNKSIZE)
any_sizes = st.sampled_from([CHUNKSIZE, CHUNKSIZE, 4, 40, 396, 404, 800, 2000])


class Chunks(RuleBasedStateMachine):
    """Changes to whole chunks and to items; `model` is what should be there."""

    sizes = whole_sizes
    varying = False
    contiguous: bool | None = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.model: list[bytes] = []

    @initialize(stored=st.booleans(), codec=st.sampled_from([0, 1, 5]), clevel=st.integers(0, 9))
    def make(self, *, stored: bool, codec: int, clevel: int) -> None:
        stored = stored or self.contiguous is False
        self.path: Any = Path(self.folder.name) / "frame.b2frame" if stored else None
        self.schunk = superchunk.SChunk(
            chunksize=-1 if self.varying else CHUNKSIZE,
            cparams={"typesize": TYPESIZE, "codec": codec, "clevel": clevel, "nthreads": 1},
            urlpath=self.path,
            contiguous=self.contiguous,
            mode="w",
        )

    @property
    def full(self) -> bool:
        """Whether another chunk may follow: none may be behind a short one."""
        return self.varying or not self.model or len(self.model[-1]) == CHUNKSIZE

    def draw_chunk(self, data: st.DataObject) -> bytes:
        """Draw the content of a chunk."""
        return content(data.draw(kinds), data.draw(self.sizes), data.draw(seeds))

    @rule(data=st.data())
    @precondition(lambda self: self.full)
    def append(self, data: st.DataObject) -> None:
        plain = self.draw_chunk(data)
        self.model.append(plain)
        assert self.schunk.append_data(plain) == len(self.model)

    @rule(data=st.data())
    @precondition(lambda self: self.full and not self.varying)
    def append_short(self, data: st.DataObject) -> None:
        plain = content(data.draw(kinds), 4 * data.draw(st.integers(1, 99)), data.draw(seeds))
        self.model.append(plain)
        assert self.schunk.append_data(plain) == len(self.model)

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        last = len(self.model) if self.full else len(self.model) - 1
        nchunk = data.draw(st.integers(0, last))
        plain = self.draw_chunk(data)
        self.model.insert(nchunk, plain)
        assert self.schunk.insert_data(nchunk, plain, copy=False) == len(self.model)

    @rule(data=st.data())
    @precondition(lambda self: self.model)
    def update(self, data: st.DataObject) -> None:
        nchunk = data.draw(st.integers(0, len(self.model) - 1))
        plain = self.draw_chunk(data)
        if not self.varying and nchunk == len(self.model) - 1:
            plain = plain[: len(self.model[nchunk])]
        self.model[nchunk] = plain
        assert self.schunk.update_data(nchunk, plain, copy=True) == len(self.model)

    @rule(data=st.data())
    @precondition(lambda self: self.model)
    def update_by_a_chunk(self, data: st.DataObject) -> None:
        nchunk = data.draw(st.integers(0, len(self.model) - 1))
        plain = content("planes", len(self.model[nchunk]), data.draw(seeds))
        chunk = superchunk.compress2(plain, typesize=TYPESIZE, clevel=data.draw(st.integers(0, 9)))
        self.model[nchunk] = plain
        assert self.schunk.update_chunk(nchunk, chunk) == len(self.model)

    @rule(data=st.data(), kind=st.sampled_from([SpecialValue.ZERO, SpecialValue.VALUE]))
    @precondition(lambda self: self.model)
    def update_by_a_special_value(self, data: st.DataObject, kind: SpecialValue) -> None:
        nchunk = data.draw(st.integers(0, len(self.model) - 1))
        nbytes = len(self.model[nchunk])
        value = None
        if kind is SpecialValue.VALUE:
            value = data.draw(st.binary(min_size=TYPESIZE, max_size=TYPESIZE))
        self.model[nchunk] = (value or bytes(TYPESIZE)) * (nbytes // TYPESIZE)
        self.schunk.update_special(nchunk, kind, value)

    @rule(data=st.data())
    @precondition(lambda self: self.model)
    def delete(self, data: st.DataObject) -> None:
        nchunk = data.draw(st.integers(0, len(self.model) - 1))
        del self.model[nchunk]
        assert self.schunk.delete_chunk(nchunk) == len(self.model)

    @rule(data=st.data())
    @precondition(lambda self: self.full or self.varying)
    def reorder(self, data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(len(self.model))))
        self.model = [self.model[nchunk] for nchunk in order]
        self.schunk.reorder_offsets(list(order))

    @rule(data=st.data())
    @precondition(lambda self: self.model and not self.varying)
    def overwrite_items(self, data: st.DataObject) -> None:
        plain = b"".join(self.model)
        nitems = len(plain) // TYPESIZE
        start = data.draw(st.integers(0, nitems - 1))
        stop = data.draw(st.integers(start + 1, nitems))
        patch = content("random", (stop - start) * TYPESIZE, data.draw(seeds))
        plain = plain[: start * TYPESIZE] + patch + plain[stop * TYPESIZE :]
        self.model = [plain[at : at + CHUNKSIZE] for at in range(0, len(plain), CHUNKSIZE)]
        self.schunk[start:stop] = patch

    @rule(data=st.data())
    @precondition(lambda self: self.model and not self.varying)
    def grow_by_items(self, data: st.DataObject) -> None:
        plain = b"".join(self.model)
        nitems = len(plain) // TYPESIZE
        start = data.draw(st.integers(0, nitems))
        more = data.draw(st.integers(1, 250))
        patch = content("planes", (nitems - start + more) * TYPESIZE, data.draw(seeds))
        plain = plain[: start * TYPESIZE] + patch
        self.model = [plain[at : at + CHUNKSIZE] for at in range(0, len(plain), CHUNKSIZE)]
        self.schunk[start : nitems + more] = patch

    @rule(nchunk=st.one_of(st.integers(max_value=-1), st.integers(0, 5)))
    def chunk_number_out_of_range_changes_nothing(self, nchunk: int) -> None:
        if nchunk >= 0:
            nchunk += len(self.model)
        for call in (
            lambda: self.schunk.delete_chunk(nchunk),
            lambda: self.schunk.decompress_chunk(nchunk),
            lambda: self.schunk.get_chunk(nchunk),
            lambda: self.schunk.update_special(nchunk, SpecialValue.ZERO),
        ):
            with pytest.raises(ChunkIndexError):
                call()

    @rule()
    def broken_chunk_changes_nothing(self) -> None:
        broken = bytearray(superchunk.compress2(b"x" * CHUNKSIZE, typesize=TYPESIZE))
        broken[12:16] = (len(broken) + 1).to_bytes(4, "little")
        for call in (self.schunk.append_chunk, lambda chunk: self.schunk.insert_chunk(0, chunk)):
            with pytest.raises((SuperchunkError, ValueError)):
                call(bytes(broken))

    @rule(data=st.data())
    @precondition(lambda self: self.model)
    def read_some_items(self, data: st.DataObject) -> None:
        plain = b"".join(self.model)
        nitems = len(plain) // TYPESIZE
        start = data.draw(st.integers(0, nitems))
        stop = data.draw(st.integers(start, nitems))
        part = plain[start * TYPESIZE : stop * TYPESIZE]
        assert self.schunk[start:stop] == part
        out = bytearray(len(part) + 3)
        self.schunk.get_slice(start, stop, out)
        assert out[: len(part)] == part

    @rule()
    def flush(self) -> None:
        self.schunk.flush()

    @rule()
    @precondition(lambda self: self.path)
    def reopen(self) -> None:
        self.schunk.close()
        self.schunk = superchunk.open(self.path, mode="a")

    @rule()
    @precondition(lambda self: self.path)
    def other_handle_sees_it_at_once(self) -> None:
        with superchunk.open(self.path) as other:
            assert [other.decompress_chunk(n) for n in range(other.nchunks)] == self.model

    @rule()
    @precondition(lambda self: self.path)
    def flushed_file_is_whole(self) -> None:
        self.schunk.flush()
        if self.path.is_dir():
            self.directory_holds_what_is_needed()
            return
        frame = self.path.read_bytes()
        with superchunk.schunk_from_cframe(frame) as copy:
            assert [copy.decompress_chunk(n) for n in range(copy.nchunks)] == self.model

    def directory_holds_what_is_needed(self) -> None:
        """Check a sparse frame: no file too many, and ids that the peer opens."""
        files = {int(file.name[:8], 16): file.stat().st_size for file in self.path.glob("*.chunk")}
        assert len(files) <= len(self.model)
        assert max(files, default=-1) <= max(sum(files.values()) - 16 * len(files) - 32, -1)
        assert {file.name for file in self.path.iterdir() if not file.name.endswith(".chunk")} == {"chunks.b2frame"}

    @rule()
    def frame_of_it_holds_the_same(self) -> None:
        with superchunk.schunk_from_cframe(self.schunk.to_cframe(), copy=True) as copy:
            assert [copy.decompress_chunk(n) for n in range(copy.nchunks)] == self.model

    @invariant()
    def content_is_that_of_the_model(self) -> None:
        assert self.schunk.nchunks == len(self.model)
        assert self.schunk.nbytes == sum(map(len, self.model))
        assert len(self.schunk) == self.schunk.nbytes // TYPESIZE
        for nchunk, plain in enumerate(self.model):
            assert self.schunk.decompress_chunk(nchunk) == plain
        assert self.schunk[:] == b"".join(self.model)

    def teardown(self) -> None:
        if hasattr(self, "schunk"):
            self.schunk.close()
        self.folder.cleanup()


class VaryingChunks(Chunks):
    """The same with chunks of any size."""

    sizes = any_sizes
    varying = True


def test_chunks_of_one_size_follow_the_model() -> None:
    run_state_machine_as_test(Chunks, settings=examples(60))


def test_chunks_of_any_size_follow_the_model() -> None:
    run_state_machine_as_test(VaryingChunks, settings=examples(60))


class SparseChunks(Chunks):
    """The same in a directory."""

    contiguous = False


class VaryingSparseChunks(VaryingChunks):
    """The same in a directory, with chunks of any size."""

    contiguous = False


def test_sparse_chunks_of_one_size_follow_the_model() -> None:
    run_state_machine_as_test(SparseChunks, settings=examples(60))


def test_sparse_chunks_of_any_size_follow_the_model() -> None:
    run_state_machine_as_test(VaryingSparseChunks, settings=examples(60))
