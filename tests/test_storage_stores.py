"""The promises that stores in memory and in files share."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from storage_tools import CHUNKSIZE, TYPESIZE, chunk, content, everything, look, special

from superchunk import _engine
from superchunk._format.integrity import record_len
from superchunk._store.frame_bytes import read_cframe, write_cframe
from superchunk._store.frame_store import FrameStore
from superchunk._store.memory_store import MemoryStore
from superchunk._store.store_interface import FrameSettings
from superchunk.exceptions import (
    ChunkIndexError,
    ClosedError,
    MetalayerKeyError,
    MetalayerValueError,
    SuperchunkError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from superchunk._store.store_interface import ChunkStore

SETTINGS = FrameSettings(typesize=TYPESIZE)


@pytest.fixture(params=["memory", "frame", "sparse", "over", "cframe"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., ChunkStore]]:
    opened: list[ChunkStore] = []

    def build(
        chunksize: int = CHUNKSIZE, meta: dict[str, bytes] | None = None, *, vlblocks: bool = False
    ) -> ChunkStore:
        path = tmp_path / f"{len(opened)}.b2frame"
        store: ChunkStore
        if request.param == "memory":
            store = MemoryStore(SETTINGS, chunksize, meta, vlblocks=vlblocks)
        elif request.param == "cframe":
            store = read_cframe(write_cframe(MemoryStore(SETTINGS, chunksize, meta, vlblocks=vlblocks)))
        else:
            contiguous = request.param != "sparse"
            store = FrameStore.create(path, SETTINGS, chunksize, meta or {}, vlblocks=vlblocks, contiguous=contiguous)
            if request.param == "over":
                store = MemoryStore.over(store)
        opened.append(store)
        return store

    yield build
    for store in opened:
        store.close()


def test_chunks_come_back_in_order(make: Callable[..., ChunkStore]) -> None:
    store = make()
    store.insert(0, [chunk(n) for n in range(5)])
    store.insert(5, [chunk(5, 100)])
    assert everything(store) == b"".join(content(n) for n in range(5)) + content(5, 100)
    assert (store.nchunks, store.nbytes, store.chunksize) == (6, 2100, CHUNKSIZE)
    assert store.cbytes == sum(len(chunk(n)) for n in range(5)) + len(chunk(5, 100))


def test_special_chunks_take_no_bytes(make: Callable[..., ChunkStore]) -> None:
    store = make()
    value = b"\1\2\3\4"
    store.insert(0, [special(1), special(2), special(4), special(3, CHUNKSIZE, value), chunk(1)])
    assert everything(store) == bytes(400) + b"\0\0\xc0\x7f" * 100 + bytes(400) + value * 100 + content(1)
    assert store.cbytes == 3 * 32 + 36 + len(chunk(1))


def test_nan_chunks_of_another_item_size_keep_their_bytes(make: Callable[..., ChunkStore]) -> None:
    store = make()
    store.insert(0, [_engine.special_chunk(2, CHUNKSIZE, 8)])
    assert everything(store) == b"\0\0\0\0\0\0\xf8\x7f" * 50


def test_the_first_other_size_switches_to_variable_sizes(make: Callable[..., ChunkStore]) -> None:
    store = make()
    store.insert(0, [special(1), chunk(1), special(2, 200)])
    assert (store.chunksize, store.nbytes) == (CHUNKSIZE, 1000)
    before = everything(store)
    store.insert(3, [chunk(2, 1000)])
    assert store.chunksize == 0
    assert everything(store) == before + content(2, 1000)
    assert list(store.starts()) == [0, 400, 800, 1000, 2000]
    store.insert(4, [special(1, 44)])
    assert everything(store) == before + content(2, 1000) + bytes(44)
    assert all(_engine.describe(source).special in (0, 3) for source in store.sources(0, 5))


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.insert(0, [chunk(9, 100)]),
        lambda store: store.replace(0, chunk(9, 100)),
        lambda store: store.replace(2, chunk(9, 1000)),
        lambda store: store.insert(3, [chunk(9)]),
        lambda store: store.reorder([2, 0, 1]),
    ],
)
def test_what_breaks_the_fixed_size_switches(
    make: Callable[..., ChunkStore], change: Callable[[ChunkStore], None]
) -> None:
    store = make()
    store.insert(0, [chunk(0), special(1), chunk(2, 100)])
    change(store)
    assert store.chunksize == 0
    everything(store)


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.replace(2, chunk(9, 44)),
        lambda store: store.replace(2, chunk(9)),
        lambda store: store.delete(0),
        lambda store: store.delete(2),
        lambda store: store.insert(1, [special(2)]),
        lambda store: store.reorder([1, 0, 2]),
    ],
)
def test_what_keeps_the_fixed_size_does_not_switch(
    make: Callable[..., ChunkStore], change: Callable[[ChunkStore], None]
) -> None:
    store = make()
    store.insert(0, [chunk(0), special(1), chunk(2, 100)])
    change(store)
    assert store.chunksize == CHUNKSIZE
    everything(store)


def test_without_a_chunksize_the_first_chunk_sets_it(make: Callable[..., ChunkStore]) -> None:
    store = make(-1)
    assert store.chunksize == 0
    store.insert(0, [chunk(0, 120), chunk(1, 120), chunk(2, 4)])
    assert store.chunksize == 120


def test_vlblocks_and_ordinary_chunks_do_not_mix(make: Callable[..., ChunkStore]) -> None:
    params = _engine.EncodeParams(typesize=1)
    ragged = _engine.compress_vlblocks([b"a" * 10, b"b" * 30], params)
    store = make(0, vlblocks=True)
    assert store.vlblocks
    store.insert(0, [ragged])
    with pytest.raises(ValueError, match="variable-length blocks like the others, got ordinary"):
        store.insert(1, [chunk(1)])
    assert _engine.read_vlblocks(store.source(0)) == [b"a" * 10, b"b" * 30]
    other = make()
    other.insert(0, [chunk(1)])
    with pytest.raises(ValueError, match="ordinary blocks like the others"):
        other.insert(1, [ragged])
    assert everything(other) == content(1)


def test_fill_special_is_the_same_as_the_chunks_one_by_one(make: Callable[..., ChunkStore]) -> None:
    for kind, value in ((1, None), (2, None), (4, None), (3, b"\1\2\3\4")):
        store = make()
        store.fill_special(kind, 2 * CHUNKSIZE + 40, value)
        item = {2: b"\0\0\xc0\x7f", 3: value}.get(kind) or bytes(4)
        assert everything(store) == item * 210
        store.replace(1, chunk(5))
        assert everything(store) == item * 100 + content(5) + item * 10
        with pytest.raises(SuperchunkError, match="expected 0 to fill, got 3"):
            store.fill_special(kind, 100, value)


def test_fill_special_of_100_million_chunks_is_one_number(make: Callable[..., ChunkStore]) -> None:
    store = make()
    store.fill_special(1, CHUNKSIZE * 10**8 - 4, None)
    assert (store.nchunks, store.cbytes) == (10**8, 32 * 10**8)
    assert store.chunk_nbytes(10**8 - 1) == CHUNKSIZE - 4
    assert _engine.decompress(store.source(10**8 - 1)) == bytes(CHUNKSIZE - 4)
    raw = write_cframe(store)
    assert len(raw) == 97 + 40 + 35


def test_chunk_numbers_out_of_range_are_named(make: Callable[..., ChunkStore]) -> None:
    store = make()
    store.insert(0, [chunk(0)])
    calls: list[Callable[[int], object]] = [
        store.source,
        store.chunk_nbytes,
        store.delete,
        lambda n: store.replace(n, chunk(1)),
        lambda n: store.insert(n + 1, [chunk(1)]) if n > 0 else store.insert(n, [chunk(1)]),
    ]
    for call in calls:
        for number in (-1, 1):
            with pytest.raises(ChunkIndexError, match="nchunk: expected 0 <= nchunk"):
                call(number)
    assert everything(store) == content(0)


@pytest.mark.parametrize("order", [[0], [0, 0, 1], [0, 1, 3], [-1, 0, 1], [0, 1, 2, 3]])
def test_orders_that_are_no_permutation_are_refused(make: Callable[..., ChunkStore], order: list[int]) -> None:
    store = make()
    store.insert(0, [chunk(n) for n in range(3)])
    with pytest.raises(ValueError, match="order: "):
        store.reorder(order)


def test_damaged_and_empty_chunks_are_refused_whole(make: Callable[..., ChunkStore]) -> None:
    store = make()
    store.insert(0, [chunk(0)])
    before = look(store)
    empty = _engine.compress(b"", _engine.EncodeParams())
    for bad in (b"", chunk(1)[:50], b"\xff" * 80, empty):
        with pytest.raises(ValueError, match=r".+"):
            store.insert(1, [chunk(1), bad])
        with pytest.raises(ValueError, match=r".+"):
            store.replace(0, bad)
    assert look(store) == before


def test_bytes_behind_a_chunk_are_not_stored(make: Callable[..., ChunkStore]) -> None:
    store = make()
    store.insert(0, [chunk(0) + b"stray", chunk(1)])
    assert store.cbytes == len(chunk(0)) + len(chunk(1))
    assert everything(store) == content(0) + content(1)


def test_fixed_metalayers_change_in_place_only(make: Callable[..., ChunkStore]) -> None:
    store = make(meta={"a": b"123", "b": b""})
    store.insert(0, [chunk(0)])
    store.set_meta("a", b"456")
    assert dict(store.meta) == {"a": b"456", "b": b""}
    with pytest.raises(MetalayerValueError, match="expected 3 bytes, as when it was made, got 4"):
        store.set_meta("a", b"4567")
    with pytest.raises(MetalayerKeyError, match="metalayer 'c'"):
        store.set_meta("c", b"4567")
    assert dict(store.meta) == {"a": b"456", "b": b""}


def test_vlmetalayers_keep_their_order(make: Callable[..., ChunkStore]) -> None:
    store = make()
    for name in ("z", "a", "é" * 15):
        store.set_vlmeta(name, chunk(1))
    store.insert(0, [chunk(0)])
    store.set_vlmeta("z", chunk(2))
    store.del_vlmeta("a")
    assert list(store.vlmeta.items()) == [("z", chunk(2)), ("é" * 15, chunk(1))]
    with pytest.raises(MetalayerKeyError, match="vlmetalayer 'a'"):
        store.del_vlmeta("a")
    with pytest.raises(MetalayerValueError, match="31 bytes"):
        store.set_vlmeta("é" * 16, chunk(0))


def test_a_batch_that_fails_leaves_nothing(make: Callable[..., ChunkStore]) -> None:
    store = make(meta={"m": b"1"})
    store.insert(0, [chunk(0), special(1), chunk(2, 40)])
    store.set_vlmeta("a", chunk(1))
    before = look(store)

    def several() -> None:
        with store.batch():
            store.insert(3, [chunk(3, 1000)])
            store.set_meta("m", b"2")
            store.set_vlmeta("b", chunk(2))
            store.del_vlmeta("a")
            store.delete(0)
            store.reorder([2, 1, 0])
            store.replace(0, special(2, 100))
            raise KeyError

    with pytest.raises(KeyError):
        several()
    assert look(store) == before


def test_a_batch_can_survive_an_error_inside(make: Callable[..., ChunkStore]) -> None:
    store = make()
    with store.batch():
        store.insert(0, [chunk(0)])
        with pytest.raises(ChunkIndexError):
            store.delete(7)
        store.insert(1, [chunk(1)])
    assert everything(store) == content(0) + content(1)


def test_a_closed_store_says_so(make: Callable[..., ChunkStore]) -> None:
    store = make()
    store.close()
    store.close()
    for call in (lambda: store.nchunks, lambda: store.source(0), lambda: store.insert(0, [chunk(0)])):
        with pytest.raises(ClosedError):
            call()


@pytest.mark.parametrize("seed", range(8))
def test_any_sequence_of_changes_matches_a_list(make: Callable[..., ChunkStore], seed: int) -> None:
    rng = random.Random(seed)
    store = make()
    model: list[bytes] = []
    odd = seed >= 4  # sizes that make the list switch to variable ones

    def any_chunk() -> tuple[bytes, bytes]:
        nbytes = CHUNKSIZE if not odd or rng.random() < 0.7 else rng.randrange(1, 200) * 4
        kind = rng.choice([0, 0, 0, 1, 2, 3])
        if kind == 0:
            number = rng.randrange(1000)
            return chunk(number, nbytes), content(number, nbytes)
        item = {1: bytes(4), 2: b"\0\0\xc0\x7f", 3: b"\1\2\3\4"}[kind]
        return special(kind, nbytes, item if kind == 3 else None), item * (nbytes // 4)

    for _ in range(120):
        n = rng.randrange(len(model) + 1)
        action = rng.randrange(6)
        if action <= 1:
            new = [any_chunk() for _ in range(rng.randrange(1, 4))]
            n = n if action else len(model)
            store.insert(n, [one for one, _ in new])
            model[n:n] = [plain for _, plain in new]
        elif action == 2 and n < len(model):
            one, plain = any_chunk()
            store.replace(n, one)
            model[n] = plain
        elif action == 3 and n < len(model):
            store.delete(n)
            del model[n]
        elif action == 4:
            order = list(range(len(model)))
            rng.shuffle(order)
            store.reorder(order)
            model = [model[n] for n in order]
        elif len(model) < 4:
            with pytest.raises(KeyError), store.batch():  # noqa: PT012 - the batch is the point
                store.insert(0, [any_chunk()[0]])
                raise KeyError
        assert (store.nchunks, store.nbytes) == (len(model), sum(map(len, model)))
    assert everything(store) == b"".join(model)
    sizes = [len(_engine.decompress(source)) for source in store.sources(0, store.nchunks)]
    assert sizes == [len(plain) for plain in model]
    assert list(store.starts()) == [sum(sizes[:n]) for n in range(len(sizes) + 1)]
    expected = sum(_engine.describe(source).cbytes for source in store.sources(0, store.nchunks))
    assert store.cbytes == expected
    again = read_cframe(write_cframe(store))
    assert everything(again) == b"".join(model)
    if isinstance(store, FrameStore):
        assert store.path is not None
        store.flush()
        assert store.dead_bytes == _dead_bytes(store, Path(store.path))
        store.close()
        with_disk = FrameStore.open(store.path)
        assert everything(with_disk) == b"".join(model)


def _dead_bytes(store: FrameStore, path: Path) -> int:
    """Return the bytes of a flushed frame that are not in a compact one."""
    if path.is_file():
        return store.frame_len - (len(write_cframe(store)) - _index_difference(store) + _seals(store))
    stored = [entry for entry in store.snapshot().index.slice(0, store.nchunks) if entry >= 0]
    return sum(file.stat().st_size for file in path.glob("*.chunk") if int(file.name[:8], 16) not in stored)


def _seals(store: FrameStore) -> int:
    """Return the bytes of the seals and the commit record, which a frame in memory has not."""
    entries = store.snapshot().index.slice(0, store.nchunks)
    return 16 * sum(entry >= 0 for entry in entries) + record_len(97)


def _index_difference(store: FrameStore) -> int:
    """Return how much shorter the index chunk is in the compact frame."""
    compact = read_cframe(write_cframe(store))
    return len(compact.snapshot().index.to_chunk()) - len(store.snapshot().index.to_chunk())
