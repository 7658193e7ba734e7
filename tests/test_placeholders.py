"""Frames whose chunks are not their data: stored expressions of python-blosc2, and its caches of other arrays.

All are made by python-blosc2 itself. Each entry point that returns data refuses them, because their chunks are zeros.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cli_runner import fail, run, succeed
from oracle import blosc2

import superchunk
from superchunk import NDArray, SChunk, UnsafeDeserializationError

if TYPE_CHECKING:
    from collections.abc import Callable

ITEMS = np.arange(6000.0).reshape(60, 100)
INCOMPLETE = ["expression", "function", "old function", "cache", "cache in part", "sparse cache", "cache of a stream"]
COMPLETE = ["full cache", "full cache of zeros", "full cache of a stream"]


def plain_function(inputs: Any, output: Any, offset: Any) -> None:  # noqa: ARG001  (python-blosc2 calls it)
    """Add one; its source is stored in the frame."""
    output[:] = inputs[0] + 1


@blosc2.dsl_kernel  # type: ignore[untyped-decorator, unused-ignore]
def kernel(x: Any) -> Any:
    return x + 1


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that makes one of the frames and returns its path."""
    source = blosc2.asarray(ITEMS, chunks=(10, 100), blocks=(5, 50), urlpath=str(tmp_path / "a.b2nd"))
    path = tmp_path / "made.b2nd"
    target = {"urlpath": str(path), "mode": "w"}

    def fetched(source: Any, part: slice | None = None, **how: Any) -> None:
        proxy = blosc2.Proxy(source, **target, **how)
        if part is None:
            proxy.fetch()
        else:
            proxy[part]

    def stream() -> Any:
        return blosc2.SChunk(data=ITEMS, chunksize=8000, urlpath=str(tmp_path / "s.b2frame"), mode="w")

    ways: dict[str, Callable[[], object]] = {
        "expression": lambda: (source + 1).save(str(path)),
        "function": lambda: blosc2.lazyudf(kernel, (source,), dtype=source.dtype).save(urlpath=str(path)),
        "old function": lambda: blosc2.lazyudf(plain_function, (source,), dtype=source.dtype).save(urlpath=str(path)),
        "cache": lambda: blosc2.Proxy(source, **target),
        "cache in part": lambda: fetched(source, slice(0, 7)),
        "sparse cache": lambda: fetched(source, slice(0, 7), contiguous=False),
        "cache of a stream": lambda: fetched(stream(), slice(0, 7)),
        "full cache": lambda: fetched(source),
        "full cache of zeros": lambda: fetched(
            blosc2.zeros((60, 100), chunks=(10, 100), urlpath=str(tmp_path / "z.b2nd"))
        ),
        "full cache of a stream": lambda: fetched(stream()),
    }

    def make(kind: str) -> Path:
        ways[kind]()
        return path

    return make


def frame_bytes(path: Path) -> bytes:
    """Return the contiguous frame of what is at a path."""
    with SChunk(urlpath=str(path), mode="r") as chunks:
        return chunks.to_cframe()


@pytest.mark.parametrize("kind", INCOMPLETE)
def test_a_frame_without_its_data_is_refused_by_all_that_return_data(made: Callable[[str], Path], kind: str) -> None:
    path = made(kind)
    chunks = SChunk(urlpath=str(path), mode="r")
    frame = chunks.to_cframe()
    doors: list[Callable[[], object]] = [
        lambda: superchunk.open(path),
        lambda: superchunk.open(str(path), mode="a"),
        lambda: superchunk.open(path, deserialize="full"),
        lambda: superchunk.open(path, snapshot=True),
        lambda: superchunk.load(path),
        lambda: superchunk.from_cframe(frame),
    ]
    if "b2nd" in chunks.meta:
        doors += [lambda: NDArray(chunks), lambda: superchunk.ndarray_from_cframe(frame)]
    for door in doors:
        with pytest.raises(UnsafeDeserializationError, match=r"chunks are zeros"):
            door()


@pytest.mark.parametrize("kind", INCOMPLETE)
def test_the_way_that_the_error_names_gives_the_chunks(made: Callable[[str], Path], kind: str) -> None:
    path = made(kind)
    with pytest.raises(UnsafeDeserializationError) as refused:
        superchunk.open(path)
    said = str(refused.value)
    call = said[said.index("superchunk.SChunk(") : said.index(" gives the chunks")]
    with eval(call) as chunks:  # noqa: S307  (what the message tells its reader to type)
        assert isinstance(chunks, SChunk)
        assert len(chunks[:]) == chunks.nbytes == ITEMS.nbytes
        assert set(chunks.meta) & {"b2o", "LazyArray", "proxy-source"}
    with pytest.raises(UnsafeDeserializationError, match=r"schunk_from_cframe\(\)"):
        superchunk.from_cframe(frame_bytes(path))
    assert superchunk.schunk_from_cframe(frame_bytes(path)).nbytes == ITEMS.nbytes


@pytest.mark.parametrize("kind", INCOMPLETE)
def test_the_command_writes_no_zeros_for_a_frame_without_its_data(
    made: Callable[[str], Path], tmp_path: Path, kind: str
) -> None:
    path = made(kind)
    commands: tuple[list[str | Path], ...] = (
        ["cat", path],
        ["convert", path, tmp_path / "out.npy"],
        ["convert", path, tmp_path / "out.b2nd"],
        ["decompress", path, "-o", tmp_path / "out.npy"],
    )
    for command in commands:
        assert "chunks are zeros" in fail(1, *command)
    assert not list(tmp_path.glob("out.*"))


@pytest.mark.parametrize("kind", INCOMPLETE)
def test_info_and_verify_say_what_it_is_instead(made: Callable[[str], Path], kind: str) -> None:
    path = made(kind)
    told = "a cache of another array" if "cache" in kind else "a stored "
    assert f"no data       {told}" in succeed("info", path).text
    assert json.loads(succeed("info", path, "--json").text)["stands_for"].startswith(told)
    assert f"the frame is {told}" in run("verify", path).text
    parts = {part.name: part for part in superchunk.verify(path).parts}
    assert any(part.message.startswith(f"the frame is {told}") for part in parts.values())


@pytest.mark.parametrize("kind", COMPLETE)
def test_a_complete_cache_is_read_with_a_warning_from_the_callers_line(made: Callable[[str], Path], kind: str) -> None:
    path = made(kind)
    with pytest.warns(UserWarning, match="a cache of another array") as told:
        opened = superchunk.open(path)
    assert [Path(one.filename).name for one in told] == [Path(__file__).name]
    items = np.zeros(ITEMS.shape) if "zeros" in kind else ITEMS
    assert bytes(opened[:]) == items.tobytes()
    with pytest.warns(UserWarning, match="a cache of another array"):
        assert bytes(superchunk.from_cframe(frame_bytes(path))[:]) == items.tobytes()


def test_a_copy_of_a_complete_cache_is_an_array_like_any_other(made: Callable[[str], Path], tmp_path: Path) -> None:
    path = made("full cache")
    with pytest.warns(UserWarning, match="a cache of another array"):
        cache = superchunk.open(path)
    for keywords in ({}, {"chunks": (7, 30)}, {"cparams": {"clevel": 1}}):
        copy = cache.copy(urlpath=str(tmp_path / "copy.b2nd"), mode="w", **keywords)
        assert (list(copy.meta), list(copy.vlmeta)) == (["b2nd"], [])
        copy.schunk.close()
        np.testing.assert_array_equal(superchunk.open(tmp_path / "copy.b2nd")[:], ITEMS)  # without a warning
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = run("convert", path, tmp_path / "converted.b2nd", "--chunks", "20,100")
    assert (result.code, result.stderr.count("a cache of another array"), result.stderr.count("\n")) == (0, 1, 1)
    assert list(superchunk.open(tmp_path / "converted.b2nd").vlmeta) == []


@pytest.mark.parametrize(
    "notes",
    [
        {"proxy-fetched": b"\xff"},
        {"proxy-fetched": b"\x3e"},
        {"proxy-fetched": b""},
        {"proxy-fetched": 63},
        {"proxy-fetched": b"\x3f", "proxy-dirty": {"pid": 1, "version": 1}},
        {"proxy-fetched": b"\x3f", "proxy-fetched-blocks": b"\xff\xff\xff", "proxy-fetched-bpc": "4"},
        {"proxy-fetched": b"\x3f", "proxy-fetched-blocks": b"\xff\xff\x7f", "proxy-fetched-bpc": 4},
        {"proxy-fetched": b"\x3f", "proxy-fetched-blocks": b"\xff\xff\xff", "proxy-fetched-bpc": 2**40},
        {"proxy-fetched-blocks": b"\xff\xff\xff"},
        {"proxy-fetched": bytes(2**26)},
    ],
)
def test_a_cache_is_complete_only_if_all_of_its_notes_say_so(notes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "cache.b2nd"
    array = blosc2.asarray(
        ITEMS, chunks=(10, 100), blocks=(5, 50), urlpath=str(path), meta={"proxy-source": {"urlpath": None}}
    )
    for name, value in notes.items():
        array.schunk.vlmeta[name] = value
    del array
    if notes == {"proxy-fetched": b"\xff"}:  # python-blosc2 leaves spare bits clear; set ones say nothing
        with pytest.warns(UserWarning, match="a cache of another array"):
            superchunk.open(path)
        return
    with pytest.raises(UnsafeDeserializationError, match="a cache of another array"):
        superchunk.open(path)


def test_complete_by_blocks_and_complete_by_its_chunks_are_complete(tmp_path: Path) -> None:
    for number, notes in enumerate(
        ({}, {"proxy-fetched-blocks": b"\xff\xff\xff", "proxy-fetched-bpc": 4, "proxy-fetched": b"\x00"})
    ):
        path = tmp_path / f"{number}.b2nd"
        array = blosc2.asarray(
            ITEMS, chunks=(10, 100), blocks=(5, 50), urlpath=str(path), meta={"proxy-source": {"urlpath": None}}
        )
        for name, value in notes.items():
            array.schunk.vlmeta[name] = value
        del array
        with pytest.warns(UserWarning, match="a cache of another array"):
            np.testing.assert_array_equal(superchunk.open(path)[:], ITEMS)


@pytest.mark.parametrize("name", ["b2o", "LazyArray", "proxy-source"])
def test_no_array_is_made_that_could_not_be_opened(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"meta: expected no '{name}'"):
        superchunk.asarray(ITEMS, urlpath=str(tmp_path / "a.b2nd"), meta={name: {"kind": "lazyexpr", "version": 1}})
    assert list(tmp_path.iterdir()) == []


def test_other_metalayers_of_the_user_are_no_placeholder(tmp_path: Path) -> None:
    path = tmp_path / "a.b2nd"
    superchunk.asarray(ITEMS, urlpath=str(path), meta={"proxy": 1, "lazyarray": 2}).vlmeta["b2o"] = 3
    np.testing.assert_array_equal(superchunk.open(path)[:], ITEMS)
