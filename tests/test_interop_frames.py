"""Frames between the two implementations: each reads, and goes on changing, what the other wrote.

The peer works in this process, on the same files, but never while we have one open.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import oracle
import pytest
from drawn import (
    DELTA,
    Params,
    content,
    examples,
    for_oracle,
    params,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import superchunk
from superchunk import SpecialValue
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable

blosc2 = oracle.blosc2

CHUNKSIZE = 4800
"""Divisible by every item size that is drawn here."""
TYPESIZES = (1, 2, 3, 4, 8, 16, 100)
KINDS = ("planes", "random", "zeros", "run", "text", "walk")
VALUES: list[Any] = [
    None,
    True,
    -1,
    2**64 - 1,
    1.5,
    "text é",
    b"\0bytes",
    [1, [2, "three"]],
    {"a": 1, "b": {"c": [None]}},
    (1, "two", (3,)),
    "x" * 5000,
    list(range(300)),
]


def ours(way: Params, path: Path | None, chunksize: int = CHUNKSIZE, **more: Any) -> superchunk.SChunk:
    """Make a super-chunk of ours."""
    keywords: Any = {
        name: list(value) if isinstance(value, bytes) else value for name, value in way.for_engine().items()
    }
    return superchunk.SChunk(chunksize=chunksize, cparams=keywords, urlpath=path, mode="w", contiguous=True, **more)


def theirs(way: Params, path: Path | None, chunksize: int = CHUNKSIZE, **more: Any) -> Any:
    """Make a super-chunk of the peer's."""
    return blosc2.SChunk(
        chunksize=chunksize,
        cparams=oracle.cparams(way),
        urlpath=str(path) if path else None,
        mode="w",
        contiguous=True,
        **more,
    )


def pieces(sizes: list[int], seed: int) -> list[bytes]:
    """Return contents of chunks."""
    return [content(KINDS[(seed + n) % len(KINDS)], size, seed + n) for n, size in enumerate(sizes)]


def safe(way: Params, sizes: list[int]) -> Params:
    """Return a way in which the peer makes no mistakes for chunks of these sizes."""
    for size in sizes:
        way = for_oracle(way, size)
    # Contexts of the peer keep the block size of their first chunk.
    return Params(
        codec=way.codec,
        clevel=way.clevel,
        typesize=way.typesize,
        splitmode=way.splitmode,
        # Nor can its Python side show a filter's meta over 127.
        pipeline=tuple((ident, meta % 128) for ident, meta in way.pipeline if ident != DELTA),
        first_slot=way.first_slot,
    )


ways = params(typesizes=TYPESIZES, most_filters=2, threads=(1,)).filter(lambda way: CHUNKSIZE % way.typesize == 0)
whole_chunks = st.lists(st.just(CHUNKSIZE), max_size=5)
places = st.sampled_from(["memory", "file"])
last_chunk = st.sampled_from([None, 1200, 2400, CHUNKSIZE])


@examples(60)
@given(ways, whole_chunks, last_chunk, st.integers(0, 999), places)
def test_peer_reads_our_frames(way: Params, whole: list[int], last: int | None, seed: int, place: str) -> None:
    sizes = whole + ([last] if last else [])
    way = safe(way, [*sizes, 1200])
    plain = pieces(sizes, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = None if place == "memory" else Path(folder) / "ours.b2frame"
        with ours(way, path) as schunk:
            for piece in plain:
                schunk.append_data(piece)
            schunk.vlmeta["note"] = ["made", seed]
            frame = schunk.to_cframe()
        read = blosc2.schunk_from_cframe(frame) if path is None else blosc2.open(str(path))
        assert read.nchunks == len(plain)
        assert read.nbytes == sum(sizes)
        assert read.typesize == way.typesize
        assert [read.decompress_chunk(n) for n in range(read.nchunks)] == plain
        assert read[:] == b"".join(plain)[: len(read) * way.typesize]
        assert read.vlmeta["note"] == ["made", seed]
        assert read.cparams.codec.value == way.codec
        assert read.cparams.clevel == way.clevel
        assert [getattr(f, "value", f) for f in read.cparams.filters] == list(way.slots(0))


@examples(60)
@given(ways, whole_chunks, last_chunk, st.integers(0, 999), places)
def test_we_read_frames_of_the_peer(way: Params, whole: list[int], last: int | None, seed: int, place: str) -> None:
    sizes = whole + ([last] if last else [])
    way = safe(way, [*sizes, 1200])
    plain = pieces(sizes, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = None if place == "memory" else Path(folder) / "theirs.b2frame"
        schunk = theirs(way, path, meta={"fixed": seed})
        for piece in plain:
            schunk.append_data(piece)
        schunk.vlmeta["note"] = ["made", seed]
        frame = schunk.to_cframe()
        del schunk
        opened = superchunk.open(path) if path else superchunk.schunk_from_cframe(frame)
        with opened as read:
            assert read.nchunks == len(plain)
            assert (read.nbytes, read.typesize) == (sum(sizes), way.typesize)
            assert [read.decompress_chunk(n) for n in range(read.nchunks)] == plain
            whole_items = b"".join(plain)[: len(read) * way.typesize]
            assert read[:] == whole_items
            assert read.get_slice(3, 700) == whole_items[3 * way.typesize : 700 * way.typesize]
            assert read.vlmeta["note"] == ["made", seed]
            assert read.meta["fixed"] == seed
            assert read.cparams.codec == superchunk.Codec(way.codec)
            assert read.cparams.clevel == way.clevel


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_values_of_metalayers_are_the_same_on_both_sides(value: object, tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    with ours(Params(), path, meta={"fixed": value}) as schunk:
        schunk.vlmeta["variable"] = value
    read = blosc2.open(str(path), mode="a")
    assert read.vlmeta["variable"] == value
    assert read.meta["fixed"] == value
    read.vlmeta["again"] = value
    del read
    with superchunk.open(path) as schunk:
        assert schunk.vlmeta.getall() == {"variable": value, "again": value}
    path = tmp_path / "theirs.b2frame"
    made = theirs(Params(), path, meta={"fixed": value})
    made.vlmeta["variable"] = value
    del made
    with superchunk.open(path) as schunk:
        assert schunk.vlmeta["variable"] == value
        assert schunk.meta["fixed"] == value


def test_numpy_values_of_the_peer_are_read(tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    made = theirs(Params(), path)
    made.vlmeta["complex"] = 1 + 2j
    made.vlmeta["array"] = np.arange(5, dtype="<i2")
    made.vlmeta["set"] = {1, 2}
    del made
    with superchunk.open(path) as schunk:
        assert schunk.vlmeta["complex"] == 1 + 2j
        assert (schunk.vlmeta["array"] == np.arange(5, dtype="<i2")).all()
        assert schunk.vlmeta["set"] == {1, 2}


@pytest.mark.parametrize("nlayers", [0, 1, 15, 16])
def test_peer_changes_frames_with_up_to_sixteen_metalayers(nlayers: int, tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    fixed = {f"fixed {n}": n for n in range(nlayers)}
    with ours(Params(typesize=4), path, meta=fixed) as schunk:
        for n in range(nlayers):
            schunk.vlmeta[f"variable {n}"] = "v" * n
        schunk.append_data(content("planes", CHUNKSIZE, 1))
    read = blosc2.open(str(path), mode="a")
    read.append_data(content("planes", CHUNKSIZE, 2))
    del read
    with superchunk.open(path) as schunk:
        assert schunk.meta.getall() == fixed
        assert schunk.vlmeta.getall() == {f"variable {n}": "v" * n for n in range(nlayers)}
        assert schunk[:] == content("planes", CHUNKSIZE, 1) + content("planes", CHUNKSIZE, 2)


@pytest.mark.parametrize("kind", [SpecialValue.ZERO, SpecialValue.NAN, SpecialValue.VALUE, SpecialValue.UNINIT])
@pytest.mark.parametrize("typesize", [4, 8])
def test_peer_reads_a_frame_filled_with_one_value(kind: SpecialValue, typesize: int, tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    nitems = 3 * CHUNKSIZE // typesize + 7
    value = 7 if kind is SpecialValue.VALUE else None
    with ours(Params(typesize=typesize), path) as schunk:
        schunk.fill_special(nitems, kind, value)
        expected = schunk[:]
    assert path.stat().st_size < 1000
    read = blosc2.open(str(path))
    assert (read.nchunks, read.nbytes) == (4, nitems * typesize)
    if kind is not SpecialValue.UNINIT:  # it hands out any old memory for that one
        assert read[:] == expected
        assert read.decompress_chunk(3) == expected[-7 * typesize :]


def test_peer_reads_special_chunks_among_others(tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    plain = pieces([CHUNKSIZE] * 4, 0)
    with ours(Params(typesize=4), path) as schunk:
        for piece in plain:
            schunk.append_data(piece)
        schunk.update_special(0, SpecialValue.ZERO)
        schunk.update_special(2, SpecialValue.VALUE, b"abcd")
        schunk.append_data(bytes(CHUNKSIZE))
        expected = schunk[:]
    read = blosc2.open(str(path), mode="a")
    assert read[:] == expected
    read.update_data(0, plain[0], copy=True)
    read.append_data(plain[1])
    del read
    with superchunk.open(path) as schunk:
        assert schunk[:] == plain[0] + expected[CHUNKSIZE:] + plain[1]


def test_special_chunks_of_any_size_are_readable_by_the_peer(tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    sizes = [400, 4000, 8, 400]
    with ours(Params(typesize=4), path, chunksize=-1) as schunk:
        for size in sizes:
            schunk.append_data(bytes(size))
            schunk.append_data(content("planes", size, size))
    read = blosc2.open(str(path))
    expected = [plain for size in sizes for plain in (bytes(size), content("planes", size, size))]
    assert [read.decompress_chunk(n) for n in range(read.nchunks)] == expected


def test_variable_length_blocks_are_read_by_the_peer(tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    blocks = [b"one", b"two" * 100, b"three" * 1000]
    with ours(Params(typesize=1), path, chunksize=-1) as schunk:
        schunk.append_vlblocks(blocks)
        schunk.append_vlblocks(blocks[::-1])
    read = blosc2.open(str(path))
    assert [read.decompress_chunk(n) for n in range(2)] == [
        b"".join(blocks),
        b"".join(blocks[::-1]),
    ]


def test_frame_of_the_peer_inside_another_file_is_found_by_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "two.bin"
    made = theirs(Params(typesize=4), None)
    plain = content("planes", 10 * CHUNKSIZE, 1)
    for at in range(0, len(plain), CHUNKSIZE):
        made.append_data(plain[at : at + CHUNKSIZE])
    path.write_bytes(b"?" * 77 + made.to_cframe() + b"!" * 10)
    with superchunk.open(path, offset=77) as schunk:
        assert schunk[:] == plain
    for wrong in (0, 76, 78):
        with pytest.raises(FormatError):
            superchunk.open(path, offset=wrong)


def test_thousand_small_appends_are_read_by_the_peer(tmp_path: Path) -> None:
    path = tmp_path / "frame.b2frame"
    with ours(Params(typesize=4, codec=1), path, chunksize=40) as schunk:
        for n in range(1000):
            schunk.append_data(content("planes", 40, n))
    read = blosc2.open(str(path))
    assert read.nchunks == 1000
    assert read[:] == b"".join(content("planes", 40, n) for n in range(1000))


class TakingTurns(RuleBasedStateMachine):
    """One frame in a file, changed by both sides in turn; `model` is what should be there."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "frame.b2frame"
        self.model: list[bytes] = []
        self.layers: dict[str, Any] = {}
        self.fixed = 200

    @initialize(by_us=st.booleans(), codec=st.sampled_from([0, 1, 4, 5]), typesize=st.sampled_from([1, 4, 8]))
    def make(self, *, by_us: bool, codec: int, typesize: int) -> None:
        way = Params(codec=codec, typesize=typesize)
        self.typesize = typesize
        if by_us:
            ours(way, self.path, meta={"fixed": self.fixed}).close()
        else:
            theirs(way, self.path, meta={"fixed": self.fixed})

    def change(self, *, by_us: bool, call: Callable[[Any], object]) -> None:
        """Open on one side and change; then read on both."""
        if by_us:
            with superchunk.open(self.path, mode="a") as schunk:
                call(schunk)
        else:
            call(blosc2.open(str(self.path), mode="a"))
        self.check()

    def check(self) -> None:
        """Read everything on both sides."""
        with superchunk.open(self.path) as schunk:
            found = [schunk.decompress_chunk(n) for n in range(schunk.nchunks)]
            assert found == self.model, "read by us"
            assert schunk[:] == b"".join(self.model)
            assert schunk.vlmeta.getall() == self.layers
            assert schunk.meta["fixed"] == self.fixed
        read = blosc2.open(str(self.path))
        found = [read.decompress_chunk(n) for n in range(read.nchunks)]
        assert found == self.model, "read by the peer"
        assert read.nbytes == sum(map(len, self.model))
        if self.model:
            assert read[:] == b"".join(self.model)
        assert read.vlmeta.getall() == self.layers
        assert read.meta["fixed"] == self.fixed

    sides = st.booleans()
    seeds = st.integers(0, 999)
    kinds = st.sampled_from(KINDS)

    @property
    def full(self) -> bool:
        """Whether another chunk may follow the last one."""
        return not self.model or len(self.model[-1]) == CHUNKSIZE

    @rule(by_us=sides, kind=kinds, seed=seeds, nbytes=st.sampled_from([CHUNKSIZE] * 4 + [800]))
    @precondition(lambda self: self.full)
    def append(self, *, by_us: bool, kind: str, seed: int, nbytes: int) -> None:
        plain = content(kind, nbytes, seed)
        if nbytes < CHUNKSIZE and not self.model:
            return  # the first chunk of a frame says how long all are
        self.model.append(plain)
        self.change(by_us=by_us, call=lambda schunk: schunk.append_data(plain))

    @rule(by_us=sides, kind=kinds, seed=seeds, where=st.floats(0, 1))
    @precondition(lambda self: self.full)
    def insert(self, *, by_us: bool, kind: str, seed: int, where: float) -> None:
        plain = content(kind, CHUNKSIZE, seed)
        nchunk = round(where * len(self.model))
        self.model.insert(nchunk, plain)
        self.change(by_us=by_us, call=lambda schunk: schunk.insert_data(nchunk, plain, copy=True))

    @rule(by_us=sides, kind=kinds, seed=seeds, where=st.floats(0, 0.999))
    @precondition(lambda self: self.model)
    def update(self, *, by_us: bool, kind: str, seed: int, where: float) -> None:
        nchunk = int(where * len(self.model))
        plain = content(kind, len(self.model[nchunk]), seed)
        self.model[nchunk] = plain
        self.change(by_us=by_us, call=lambda schunk: schunk.update_data(nchunk, plain, copy=True))

    @rule(by_us=sides, where=st.floats(0, 0.999))
    @precondition(lambda self: self.model)
    def update_by_zeros(self, *, by_us: bool, where: float) -> None:
        nchunk = int(where * len(self.model))
        self.model[nchunk] = bytes(len(self.model[nchunk]))
        special = (superchunk if by_us else blosc2).SpecialValue.ZERO
        self.change(by_us=by_us, call=lambda schunk: schunk.update_special(nchunk, special))

    @rule(by_us=sides, where=st.floats(0, 0.999))
    @precondition(lambda self: self.model)
    def delete(self, *, by_us: bool, where: float) -> None:
        nchunk = int(where * len(self.model))
        del self.model[nchunk]
        self.change(by_us=by_us, call=lambda schunk: schunk.delete_chunk(nchunk))

    @rule(by_us=sides, data=st.data())
    @precondition(lambda self: self.full and len(self.model) > 1)
    def reorder(self, *, by_us: bool, data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(len(self.model))))
        self.model = [self.model[nchunk] for nchunk in order]
        self.change(by_us=by_us, call=lambda schunk: schunk.reorder_offsets(np.array(order, "i8")))

    @rule(by_us=sides, seed=seeds, where=st.floats(0, 0.999), length=st.integers(1, 3000))
    @precondition(lambda self: len(self.model) > 1 and self.full)
    def overwrite_items(self, *, by_us: bool, seed: int, where: float, length: int) -> None:
        plain = b"".join(self.model)
        nitems = len(plain) // self.typesize
        start = int(where * nitems)
        stop = min(start + length, nitems)
        patch = content("random", (stop - start) * self.typesize, seed)
        plain = plain[: start * self.typesize] + patch + plain[stop * self.typesize :]
        self.model = [plain[at : at + CHUNKSIZE] for at in range(0, len(plain), CHUNKSIZE)]
        self.change(by_us=by_us, call=lambda schunk: schunk.__setitem__(slice(start, stop), patch))

    @rule(by_us=sides, name=st.sampled_from("abcde"), value=st.sampled_from(VALUES))
    def set_layer(self, *, by_us: bool, name: str, value: object) -> None:
        self.layers[name] = value
        self.change(by_us=by_us, call=lambda schunk: schunk.vlmeta.__setitem__(name, value))

    @rule(by_us=sides, data=st.data())
    @precondition(lambda self: self.layers)
    def delete_layer(self, *, by_us: bool, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.layers)))
        del self.layers[name]
        self.change(by_us=by_us, call=lambda schunk: schunk.vlmeta.__delitem__(name))

    @rule(by_us=sides, value=st.integers(128, 255))
    def set_fixed_layer(self, *, by_us: bool, value: int) -> None:
        self.fixed = value
        self.change(by_us=by_us, call=lambda schunk: schunk.meta.__setitem__("fixed", value))

    @rule(seed=seeds, appended=st.integers(1, 12), updated=st.integers(0, 3))
    @precondition(lambda self: self.full)
    def many_changes_of_ours_in_one_go(self, seed: int, appended: int, updated: int) -> None:
        plain = pieces([CHUNKSIZE] * appended, seed)
        self.model += plain

        def change(schunk: superchunk.SChunk) -> None:
            for piece in plain:
                schunk.append_data(piece)
            for n in range(min(updated, len(self.model))):
                self.model[n] = content("text", CHUNKSIZE, seed + n)
                schunk.update_data(n, self.model[n], copy=False)

        self.change(by_us=True, call=change)

    def teardown(self) -> None:
        self.folder.cleanup()


def test_both_sides_change_one_frame_in_turn() -> None:
    run_state_machine_as_test(TakingTurns, settings=examples(50))
