"""The array laboratory: an NDArray does what a NumPy array does, however it is cut up and wherever it lies.

Any dtype, shape, chunks and blocks, any index expression, reading and writing; then sequences of changes, with
handles that are closed, opened, copied, rolled back and followed. `make lab-arrays EXAMPLES=100000` runs it long.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from arrays_drawn import (
    DTYPES,
    arrays,
    basic_keys,
    content,
    crossed,
    fancy_keys,
    keys,
    laid_out,
    orthogonal_keys,
    outcome,
    partitions,
    same,
    share,
    values_for,
)
from hypothesis import assume, given
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
from superchunk import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from arrays_drawn import Array, Drawn, Shape

STORAGES = ("memory", "file", "folder", "cframe")
MOST_ITEMS = 3000
"""Items that an array is let grow to."""

on_all_storages = pytest.mark.parametrize("storage", STORAGES)


def place(storage: str, folder: Path) -> dict[str, Any]:
    """Return the keywords that put an array there."""
    if storage in ("memory", "cframe"):
        return {}
    return {"urlpath": str(folder / "array.b2nd"), "mode": "w", "contiguous": storage == "file"}


@contextmanager
def kept(drawn: Drawn, storage: str) -> Iterator[NDArray]:
    """Store an array; opened anew where it comes from a file or bytes."""
    with tempfile.TemporaryDirectory() as folder:
        array = superchunk.asarray(drawn.content, **drawn.keywords(), **place(storage, Path(folder)))
        if storage == "cframe":
            array = as_array(superchunk.from_cframe(array.to_cframe()))
        elif storage != "memory":
            path = str(array.urlpath)
            array.schunk.close()
            array = as_array(superchunk.open(path, mode="a"))
        with array.schunk:
            yield array


def as_array(opened: object) -> NDArray:
    """Return what was opened, which is an array."""
    assert isinstance(opened, NDArray)
    return opened


def items_of_chunks(array: NDArray) -> Iterator[bytes]:
    """Return the content of each chunk."""
    return (bytes(array.schunk.decompress_chunk(n) or b"") for n in range(array.schunk.nchunks))


def assert_items_lie_well(array: NDArray, model: Array, regarded: Array) -> None:
    """Compare the chunks with the format page where `regarded` is true; what lies behind the ends is zero."""
    wanted = laid_out(model, array.chunks, array.blocks)
    masks = laid_out(regarded, array.chunks, array.blocks)
    for chunk, good, mask in zip(items_of_chunks(array), wanted, masks, strict=True):
        places = np.frombuffer(mask, "?")
        found = np.frombuffer(chunk, model.dtype)[places]
        assert same(found, np.frombuffer(good, model.dtype)[places])


# One expression.


@on_all_storages
@share(0.03)
@given(drawn=arrays())
def test_an_array_comes_back_with_the_layout_of_the_format_page(storage: str, drawn: Drawn) -> None:
    with kept(drawn, storage) as array:
        assert array.shape == drawn.content.shape
        assert array.dtype == drawn.content.dtype
        assert drawn.chunks is None or array.chunks == drawn.chunks
        assert drawn.blocks is None or array.blocks == drawn.blocks
        assert same(array[...], drawn.content)
        assert same(np.asarray(array), drawn.content)
        if all(drawn.content.shape):
            grown = [-(-n // c) * c for n, c in zip(array.shape, array.chunks, strict=True)]
            assert_items_lie_well(array, drawn.content, np.ones(grown, "?"))  # what may become items is zero
        else:
            assert array.schunk.nchunks == 0


@on_all_storages
@share(0.1)
@given(drawn=arrays(), data=st.data())
def test_any_index_reads_what_numpy_reads(storage: str, drawn: Drawn, data: st.DataObject) -> None:
    with kept(drawn, storage) as array:
        for _ in range(4):
            key = data.draw(keys(drawn.content.shape))
            read(array, drawn.content, key)


@on_all_storages
@share(0.06)
@given(drawn=arrays(), data=st.data())
def test_any_index_writes_what_numpy_writes(storage: str, drawn: Drawn, data: st.DataObject) -> None:
    with kept(drawn, storage) as array:
        model = drawn.content.copy()
        for _ in range(3):
            write(array, model, data.draw(keys(model.shape)), data)
            assert same(array[...], model)


def write(array: NDArray, model: Array, key: Any, data: st.DataObject) -> None:
    """Assign the same to both; what NumPy refuses has to be refused and change nothing."""
    wanted, error = outcome(lambda: model[key])
    value = data.draw(values_for(model.dtype, () if error else np.shape(wanted)))
    _, error = outcome(lambda: model.__setitem__(key, value))
    if error is None:
        with lenient(wanted):
            array[key] = value
    else:
        with pytest.raises(error):
            array[key] = value


def read(array: NDArray, model: Array, key: Any) -> None:
    """Read the same from both; what NumPy refuses has to be refused."""
    wanted, error = outcome(lambda: model[key])
    if error is None:
        with lenient(wanted):
            assert same(array[key], np.asarray(wanted, model.dtype)), key
    else:
        with pytest.raises(error):
            array[key]


def lenient(wanted: object) -> AbstractContextManager[None]:
    """Allow an IndexError where nothing is selected: NumPy does not look at the other positions then, we do."""
    return suppress(IndexError) if np.size(wanted) == 0 else nullcontext()  # type: ignore[arg-type]


@on_all_storages
@share(0.03)
@given(drawn=arrays(least_dims=1), data=st.data())
def test_orthogonal_selections_are_those_of_ix(storage: str, drawn: Drawn, data: st.DataObject) -> None:
    with kept(drawn, storage) as array:
        model = drawn.content.copy()
        selection = data.draw(orthogonal_keys(model.shape))
        places, error = outcome(lambda: crossed(model, selection))
        if error is not None:
            with pytest.raises(error):
                array.oindex[selection]
            return
        grid, shape = places
        assert same(array.oindex[selection], model[grid].reshape(shape))
        value = data.draw(values_for(model.dtype, shape))
        whole = np.broadcast_to(value, shape).reshape(model[grid].shape)
        model[grid] = whole
        array.oindex[selection] = value
        assert same(array[...], model)


def other_partitions(shape: Shape, data: st.DataObject) -> dict[str, Any]:
    """Draw keywords of `copy`; blocks alone have to fit into the chunks that there are, so they come with chunks."""
    chunks, blocks = data.draw(partitions(shape))
    return {"chunks": chunks, "blocks": None if chunks is None else blocks}


@share(0.04)
@given(drawn=arrays(), data=st.data())
def test_a_copy_with_other_partitions_or_places_is_equal(drawn: Drawn, data: st.DataObject) -> None:
    other = other_partitions(drawn.content.shape, data)
    storage = data.draw(st.sampled_from(STORAGES[:3]))
    with kept(drawn, "memory") as array, tempfile.TemporaryDirectory() as folder:
        copy = array.copy(**other, **place(storage, Path(folder)))
        assert same(copy[...], drawn.content)
        part: Any = (..., *(slice(n // 3, n) for n in drawn.content.shape))
        assert same(array.slice(part[1:])[...], drawn.content[part])
        copy.schunk.close()


@share(0.04)
@given(drawn=arrays(least_dims=1, least_side=1), data=st.data())
def test_take_is_that_of_numpy(drawn: Drawn, data: st.DataObject) -> None:
    shape = drawn.content.shape
    axis = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)))
    most = drawn.content.size if axis is None else shape[axis]
    some = data.draw(st.lists(st.integers(-most, most - 1), max_size=6))
    indices = np.array(some, dtype=np.intp)
    with kept(drawn, "memory") as array:
        assert same(array.take(indices, axis=axis)[...], np.take(drawn.content, indices, axis=axis))


# Sequences of changes.


class Arrays(RuleBasedStateMachine):
    """Changes to an array; `model` is what should be there."""

    storage = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(Path(self.folder.name) / "array.b2nd")
        self.views: list[tuple[NDArray, Array]] = []

    @initialize(data=st.data())
    def make(self, data: st.DataObject) -> None:
        drawn = data.draw(arrays())
        self.model = drawn.content.copy()
        keywords = drawn.keywords() | place(self.storage, Path(self.folder.name))
        if data.draw(st.booleans()):
            self.array = superchunk.asarray(drawn.content, **keywords)
        else:
            self.array = superchunk.zeros(self.model.shape, dtype=self.model.dtype, **keywords)
            self.model[...] = np.zeros((), self.model.dtype)
        self.follower = as_array(superchunk.open(self.path)) if self.stored else None

    @property
    def stored(self) -> bool:
        """Whether there is something to open."""
        return self.storage != "memory"

    @property
    def grows(self) -> bool:
        """Whether the array can be resized: its chunks have no side of 0."""
        return bool(self.model.ndim) and 0 not in self.array.chunks

    # Writing.

    @rule(data=st.data())
    def set_a_box(self, data: st.DataObject) -> None:
        write(self.array, self.model, data.draw(basic_keys(self.model.shape)), data)

    @rule(data=st.data())
    def set_by_arrays(self, data: st.DataObject) -> None:
        write(self.array, self.model, data.draw(fancy_keys(self.model.shape)), data)

    @rule(data=st.data())
    @precondition(lambda self: self.model.ndim and self.model.size)
    def set_crossed(self, data: st.DataObject) -> None:
        selection = data.draw(orthogonal_keys(self.model.shape))
        places, error = outcome(lambda: crossed(self.model, selection))
        assume(error is None)
        grid, shape = places
        value = data.draw(values_for(self.model.dtype, shape))
        self.model[grid] = np.broadcast_to(value, shape).reshape(self.model[grid].shape)
        self.array.oindex[selection] = value

    @rule(data=st.data())
    @precondition(lambda self: self.model.dtype.names)
    def set_a_field(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.model.dtype.names or ()))
        model, field = self.model[name], self.array.fields[name]
        key = data.draw(keys(model.shape))
        wanted, error = outcome(lambda: model[key])
        if error is not None:
            with pytest.raises(error):
                _ = field[key]
            return
        assert same(field[key], np.asarray(wanted, model.dtype))
        value = data.draw(values_for(model.dtype, np.shape(wanted)))
        model[key] = value
        field[key] = value
        assert same(field[...], np.array(model))

    @rule()
    def refused_values_change_nothing(self) -> None:
        too_much = np.zeros((*self.model.shape, 2, 3), self.model.dtype)
        with pytest.raises(ValueError, match=r"\w"):
            self.array[...] = too_much

    # Growing and shrinking.

    @rule(data=st.data())
    @precondition(lambda self: self.grows)
    def resize(self, data: st.DataObject) -> None:
        shape = tuple(data.draw(st.integers(0, n + 5)) for n in self.model.shape)
        assume(np.prod(shape) <= MOST_ITEMS)
        assume(np.prod([-(-n // c) for n, c in zip(shape, self.array.chunks, strict=True)]) <= 300)
        self.array.resize(shape)
        self.model = resized(self.model, shape)

    @rule(data=st.data(), several=st.booleans())
    @precondition(lambda self: self.grows and self.model.size)
    def items_that_were_cut_off_do_not_come_back(self, data: st.DataObject, *, several: bool) -> None:
        shape = self.model.shape
        smaller = tuple(data.draw(st.integers(max(0, n - 6), n)) for n in shape)
        self.array[...] = self.model[...] = content(self.model.dtype, shape, "random", data.draw(st.integers(0, 99)))
        with self.array.schunk.transaction() if several else nullcontext():
            self.array.resize(smaller)
            self.array.resize(shape)
        self.model = resized(resized(self.model, smaller), shape)

    @rule(data=st.data())
    @precondition(lambda self: self.grows)
    def append(self, data: st.DataObject) -> None:
        axis = data.draw(st.integers(-self.model.ndim, self.model.ndim - 1))
        shape = list(self.model.shape)
        shape[axis] = data.draw(st.integers(0, 4))
        assume(self.model.size + np.prod(shape) <= MOST_ITEMS)
        more = data.draw(values_for(self.model.dtype, tuple(shape)).filter(lambda one: one.shape == tuple(shape)))
        length = self.array.append(more, axis=axis)
        self.model = np.concatenate([self.model, more], axis=axis).astype(self.model.dtype)
        assert length == self.model.shape[axis]

    @rule(data=st.data())
    def shapes_that_make_no_sense_change_nothing(self, data: st.DataObject) -> None:
        wrong = data.draw(st.sampled_from([(*self.model.shape, 1), (-1,) * max(1, self.model.ndim), (2**62,) * 3]))
        with pytest.raises(ValueError, match=r"\w"):
            self.array.resize(wrong)

    # Transactions, handles, copies.

    @rule(data=st.data(), fails=st.booleans())
    def several_changes_at_once(self, data: st.DataObject, *, fails: bool) -> None:
        before = self.model.copy()
        shape = tuple(n + data.draw(st.integers(0, 3)) for n in self.model.shape) if self.grows else self.model.shape
        assume(np.prod(shape) <= MOST_ITEMS)
        value = data.draw(values_for(self.model.dtype, ()))
        try:
            with self.array.schunk.transaction():
                self.array[...] = value
                if shape != self.model.shape:
                    self.array.resize(shape)
                after = resized(np.full_like(self.model, value), shape)
                assert same(self.array[...], after)
                _ = 1 // (not fails)
        except ZeroDivisionError:
            after = before
        self.model = after

    @rule()
    def flush(self) -> None:
        self.array.schunk.flush()

    @rule()
    @precondition(lambda self: self.stored)
    def reopen(self) -> None:
        self.array.schunk.close()
        self.array = as_array(superchunk.open(self.path, mode="a"))

    @rule(data=st.data())
    @precondition(lambda self: self.stored)
    def another_handle_changes_it(self, data: st.DataObject) -> None:
        other = as_array(superchunk.open(self.path, mode="a"))
        write(other, self.model, data.draw(basic_keys(self.model.shape)), data)
        other.schunk.close()

    @rule(data=st.data())
    def copy(self, data: st.DataObject) -> None:
        assert same(self.array.copy(**other_partitions(self.model.shape, data))[...], self.model)

    @rule()
    def bytes_of_it_are_an_equal_array(self) -> None:
        copy = as_array(superchunk.from_cframe(self.array.to_cframe()))
        assert copy.chunks == self.array.chunks
        assert same(copy[...], self.model)

    # Reading.

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        key = data.draw(keys(self.model.shape))
        read(self.array, self.model, key)

    @rule()
    def views_show_the_same_items(self) -> None:
        assume(self.model.ndim < 16)
        assert same(superchunk.expand_dims(self.array, axis=0)[...], self.model[None])
        ones = tuple(n for n, side in enumerate(self.model.shape) if side == 1)
        if ones:
            assert same(self.array.squeeze(ones)[...], self.model.squeeze(ones))

    @invariant()
    def content_is_that_of_the_model(self) -> None:
        assert self.array.shape == self.model.shape
        assert same(self.array[...], self.model)
        if self.follower is not None:
            self.array.schunk.flush()  # what waits is seen by the handle that made it only
            assert same(self.follower[...], self.model)
            assert self.follower.shape == self.model.shape

    @rule()
    def items_lie_where_the_format_page_says(self) -> None:
        if self.model.size:
            assert_items_lie_well(self.array, self.model, np.ones(self.model.shape, "?"))
        else:
            assert self.array.schunk.nchunks == 0

    def teardown(self) -> None:
        for one in (getattr(self, "array", None), getattr(self, "follower", None)):
            if one is not None:
                one.schunk.close()
        self.folder.cleanup()


def resized(model: Array, shape: Shape) -> Array:
    """Return the model with another shape: what is new is zero."""
    new = np.zeros(shape, model.dtype)
    common = tuple(slice(0, min(pair)) for pair in zip(model.shape, shape, strict=True))
    new[common] = model[common]
    return new


class FileArrays(Arrays):
    """The same in a file."""

    storage = "file"


class FolderArrays(Arrays):
    """The same in a directory."""

    storage = "folder"


@pytest.mark.parametrize("machine", [Arrays, FileArrays, FolderArrays], ids=lambda machine: machine.storage)
def test_any_sequence_of_changes_follows_numpy(machine: type[Arrays]) -> None:
    run_state_machine_as_test(machine, settings=share(0.02))


def test_every_dtype_is_drawn() -> None:
    kinds = {dtype.kind for dtype in DTYPES}
    assert kinds == set("biufcMmSUV")
    assert any(dtype.byteorder == ">" for dtype in DTYPES)
