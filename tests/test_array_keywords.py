"""The keywords that all constructors of arrays share, and what they check before anything is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import blosc2
import numpy as np
import pytest
from array_model import opened

import superchunk
from superchunk import CParams, DParams, Filter, SpecialValue, Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ITEMS = np.arange(35, dtype="i4").reshape(5, 7)

CONSTRUCTORS: dict[str, Callable[..., superchunk.NDArray]] = {
    "empty": lambda **k: superchunk.empty((5, 7), **k),
    "uninit": lambda **k: superchunk.uninit((5, 7), **k),
    "zeros": lambda **k: superchunk.zeros((5, 7), **k),
    "ones": lambda **k: superchunk.ones((5, 7), **k),
    "nans": lambda **k: superchunk.nans((5, 7), **k),
    "full": lambda **k: superchunk.full((5, 7), 3, **k),
    "arange": lambda **k: superchunk.arange(35, shape=(5, 7), **k),
    "linspace": lambda **k: superchunk.linspace(0, 1, shape=(5, 7), **k),
    "eye": lambda **k: superchunk.eye(5, 7, **k),
    "fromiter": lambda **k: superchunk.fromiter(range(35), (5, 7), "i4", **k),
    "frombuffer": lambda **k: superchunk.frombuffer(bytes(35), (5, 7), **k),
    "asarray": lambda **k: superchunk.asarray(ITEMS, **k),
    "array": lambda **k: superchunk.array(ITEMS, **k),
    "astype": lambda **k: superchunk.astype(ITEMS, "f4", **k),
    "copy": lambda **k: superchunk.copy(superchunk.asarray(ITEMS), **k),
    "permute_dims": lambda **k: superchunk.permute_dims(ITEMS.T, **k),
    "concat": lambda **k: superchunk.concat([ITEMS[:2], ITEMS[2:]], **k),
    "stack": lambda **k: superchunk.stack(list(ITEMS), **k),
    "from_pieces": lambda **k: superchunk.from_pieces(list(ITEMS[:, None]), (5, 7), **k),
    "from_pieces placed": lambda **k: superchunk.from_pieces(list(enumerate(ITEMS)), (5, 7), "i4", **k),
    "empty_like": lambda **k: superchunk.empty_like(ITEMS, **k),
    "zeros_like": lambda **k: superchunk.zeros_like(ITEMS, **k),
    "ones_like": lambda **k: superchunk.ones_like(ITEMS, **k),
    "full_like": lambda **k: superchunk.full_like(ITEMS, 3, **k),
}


@pytest.fixture(params=list(CONSTRUCTORS))
def make(request: pytest.FixtureRequest) -> Callable[..., superchunk.NDArray]:
    return CONSTRUCTORS[request.param]


def test_every_constructor_takes_every_keyword(make: Callable[..., superchunk.NDArray], tmp_path: Path) -> None:
    path = tmp_path / "a.b2nd"
    a = make(
        chunks=[3, 4],
        blocks=(2, 3),
        cparams={"codec": 1, "clevel": 3, "nthreads": 1},
        dparams=DParams(nthreads=1),
        storage={"urlpath": path, "mode": "w", "contiguous": True},
    )
    assert (a.shape, a.chunks, a.blocks) == ((5, 7), (3, 4), (2, 3))
    assert (a.cparams.codec, a.cparams.clevel, a.cparams.nthreads) == (superchunk.Codec.LZ4, 3, 1)
    assert a.dparams.nthreads == 1
    assert a.urlpath == str(path)
    schunk = a.schunk
    assert (schunk.typesize, schunk.blocksize, schunk.chunksize) == (
        a.dtype.itemsize,
        6 * a.dtype.itemsize,
        24 * a.dtype.itemsize,
    )
    theirs = blosc2.open(str(path), mode="r")
    assert (theirs.chunks, theirs.blocks, theirs.dtype) == ((3, 4), (2, 3), a.dtype)
    if all(info.special is not SpecialValue.UNINIT for info in schunk.iterchunks_info()):  # any value goes there
        np.testing.assert_array_equal(theirs[:], a[:])


def test_every_constructor_makes_sparse_frames(make: Callable[..., superchunk.NDArray], tmp_path: Path) -> None:
    a = make(chunks=(3, 4), urlpath=tmp_path / "a", contiguous=False)
    assert (tmp_path / "a").is_dir()
    np.testing.assert_array_equal(opened(tmp_path / "a")[:], a[:])


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"chunk": (3, 4)}, KeyError, "chunk is not supported"),
        ({"chunk": (3, 4)}, TypeError, "chunk is not supported"),
        ({"chunk": (3, 4)}, RuntimeError, "chunk is not supported"),
        ({"storage": Storage(urlpath="x", mode="w"), "contiguous": True}, AttributeError, "storage and contiguous"),
        ({"storage": {"urlpat": "x"}}, TypeError, "urlpat"),
        ({"cparams": {"chunks": (3, 4)}}, ValueError, "chunks"),
        ({"cparams": {"blocks": (3, 4)}}, ValueError, "blocks"),
        ({"cparams": {"clevle": 4}}, TypeError, "clevle"),
        ({"dparams": {"nthread": 4}}, TypeError, "nthread"),
        ({"cparams": {"clevel": 10}}, ValueError, "clevel"),
        ({"chunks": (3,)}, ValueError, "chunks"),
        ({"chunks": 3}, ValueError, "chunks"),
        ({"chunks": (3, 0)}, ValueError, "chunks"),
        ({"chunks": (3, -1)}, ValueError, "chunks"),
        ({"chunks": (3.5, 4)}, TypeError, "chunks"),
        ({"blocks": (2, 2, 2)}, ValueError, "blocks"),
        ({"chunks": (3, 4), "blocks": (4, 4)}, ValueError, "blocks"),
        ({"chunks": (2**30, 2), "blocks": (2**30, 1)}, ValueError, "blocks"),
        ({"chunks": (2**30, 4), "blocks": (1024, 1)}, RuntimeError, "chunks"),
        ({"mode": "r"}, ValueError, "mode 'r'"),
        ({"mode": "z"}, ValueError, "mode"),
        ({"mmap_mode": "r"}, ValueError, "mmap_mode|mode 'r'"),
        ({"mmap_mode": "r+"}, ValueError, "mmap_mode|mode 'r\\+'"),
        ({"cparams": {"codec": 200}}, ValueError, "200"),
        ({"cparams": {"filters": [250]}}, ValueError, "250"),
    ],
    ids=str,
)
def test_wrong_keywords_change_nothing(
    make: Callable[..., superchunk.NDArray],
    keywords: dict[str, Any],
    error: type[Exception],
    text: str,
    tmp_path: Path,
) -> None:
    path = tmp_path / "a"
    place = {} if "storage" in keywords else {"urlpath": path, "mode": "w"}
    old = superchunk.asarray([1, 2, 3], urlpath=path)
    before = path.read_bytes()
    with pytest.raises(error, match=text):
        make(**{**place, **keywords})
    assert path.read_bytes() == before
    assert old[:].tolist() == [1, 2, 3]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_an_existing_path_needs_mode_w(make: Callable[..., superchunk.NDArray], tmp_path: Path) -> None:
    path = tmp_path / "a"
    superchunk.asarray([1, 2, 3], urlpath=path)
    with pytest.raises(RuntimeError, match=str(path)):
        make(urlpath=path)
    assert opened(path)[:].tolist() == [1, 2, 3]
    a = make(urlpath=path, mode="w")
    np.testing.assert_array_equal(opened(path)[:], a[:])


def test_a_new_path_cannot_be_read(make: Callable[..., superchunk.NDArray], tmp_path: Path) -> None:
    for mode in ({"mode": "r"}, {"mmap_mode": "r"}):
        with pytest.raises(ValueError, match="mode"):
            make(urlpath=tmp_path / "a", **mode)
    assert not list(tmp_path.iterdir())


def test_what_is_no_frame_is_not_replaced(make: Callable[..., superchunk.NDArray], tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("important")
    with pytest.raises(ValueError, match="not a frame"):
        make(urlpath=path, mode="w")
    assert path.read_text() == "important"


@pytest.mark.parametrize(
    ("shape", "error"),
    [("34", TypeError), (3.0, TypeError), (None, TypeError), ((3, 2.5), TypeError), (np.arange(2), TypeError),
     ({3, 4}, TypeError), (-1, ValueError), ((3, -1), ValueError), ((1,) * 17, ValueError), ((2**62, 4), ValueError)],
    ids=str,
)  # fmt: skip
def test_wrong_shapes(shape: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"shape|int"):
        superchunk.zeros(shape)  # type: ignore[arg-type]


def test_shapes_may_hold_numpy_integers() -> None:
    assert superchunk.zeros(np.int64(3)).shape == (3,)  # type: ignore[arg-type]
    assert superchunk.zeros([np.uint8(3), 4]).shape == (3, 4)  # type: ignore[list-item]


def test_more_chunks_than_an_index_has_room_for() -> None:
    with pytest.raises(ValueError, match="chunks"):
        superchunk.zeros(10**12, chunks=(1000,))


def test_typesize_and_blocksize_follow_from_dtype_and_blocks() -> None:
    a = superchunk.zeros((5, 7), "f4", chunks=(3, 4), blocks=(2, 3), cparams=CParams(typesize=8, blocksize=1000))
    assert (a.cparams.typesize, a.cparams.blocksize) == (4, 24)
    b = superchunk.asarray(np.full((5, 7), b"ab" * 200), cparams={"typesize": 2})
    assert b.schunk.typesize == 400
    c = superchunk.zeros(5, "i2", cparams=CParams(filters=[Filter.BYTEDELTA], typesize=8))
    assert c.cparams.filters_meta[0] == 2


def test_unicode_is_shuffled_by_4() -> None:
    text = np.array([f"text {i}" for i in range(1000)])
    a = superchunk.asarray(text)
    assert list(a.cparams.filters_meta) == [0, 0, 0, 0, 0, 4]
    plain = superchunk.asarray(text, cparams={})
    assert list(plain.cparams.filters_meta) == [0] * 6
    assert a[:].tolist() == plain[:].tolist() == text.tolist()


def test_metalayers_of_the_user_follow_the_arrays_own(tmp_path: Path) -> None:
    meta: dict[str | bytes, object] = {f"layer{i}": i for i in range(15)}
    a = superchunk.zeros(5, urlpath=tmp_path / "a", meta=meta)
    assert list(a.schunk.meta) == ["b2nd", *meta]
    theirs = blosc2.open(str(tmp_path / "a"), mode="r")
    assert theirs.schunk.meta["layer7"] == 7
    wrongs: list[dict[str | bytes, object]] = [{"b2nd": 1}, {"caterva": 1}, {f"layer{i}": i for i in range(16)}]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="meta"):
            superchunk.zeros(5, meta=wrong)


def test_an_array_is_one_commit(tmp_path: Path) -> None:
    items = np.random.default_rng(0).random(300_000)
    a = superchunk.asarray(items, chunks=10_000, urlpath=tmp_path / "a")
    superchunk.SChunk(data=items, chunksize=80_000, urlpath=tmp_path / "one commit")
    dead = superchunk.open(tmp_path / "one commit").dead_bytes  # the trailer of the frame before it had data
    assert a.schunk.dead_bytes < dead + 100
    assert superchunk.verify(tmp_path / "a").status == "sound"


def test_the_old_file_stays_while_the_new_one_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a"
    superchunk.asarray([1, 2, 3], urlpath=path)
    seen = []

    def values() -> Iterator[int]:
        for i in range(1000):
            if i % 100 == 99:
                seen.append(opened(path)[:].tolist())
            yield i

    superchunk.fromiter(values(), (1000,), "i8", chunks=100, urlpath=path, mode="w")
    assert seen == [[1, 2, 3]] * 10
    assert opened(path)[999:].tolist() == [999]
