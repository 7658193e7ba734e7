"""convert: both directions and frames of old writers, chunk for chunk the same, and nothing lost on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import corpus
import numpy as np
import pytest
from cli_runner import COMMAND, fail, run, succeed
from peak_memory import PEAK
from test_golden import GOLDEN, entries, sha256

import superchunk
from superchunk import Filter, SChunk, SpecialValue
from superchunk.cli import convert as convert_module

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ITEMS = 100
OF_AN_EMPTY_FRAME = 300
"""Bytes, at most, of the trailer of a frame before it got its chunks."""
LEAST_SIZE = 300_000_000
MOST_GROWTH = 60 * 2**20
MEASURE = """
import sys
from superchunk.cli import main
import superchunk.cli.app
before = peak_bytes()
code = main(sys.argv[1:])
print(peak_bytes() - before)
sys.exit(code)
"""
both_kinds = pytest.mark.parametrize("contiguous", [True, False], ids=["from-a-file", "from-a-directory"])


def part(seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the items of a chunk."""
    return np.random.default_rng(seed).random(ITEMS).round(2)


def everything(path: Path) -> tuple[Any, ...]:
    """Return what a frame holds, chunks compressed."""
    with superchunk.open(path) as s:
        return (
            [s.get_chunk(n) for n in range(s.nchunks)],
            {name: bytes(s.meta.raw(name)) for name in s.meta},
            {name: s.vlmeta.raw(name) for name in s.vlmeta},
            (s.nbytes, s.cbytes, s.chunksize, s.blocksize, s.typesize),
            (s.cparams.codec, s.cparams.clevel, s.cparams.filters, s.cparams.filters_meta, s.cparams.splitmode),
        )


def files(path: Path) -> dict[str, bytes]:
    """Return all bytes of a frame by the names of its files."""
    return {one.name: one.read_bytes() for one in (path.iterdir() if path.is_dir() else [path])}


def full(path: Path, *, contiguous: bool) -> Path:
    """Make a frame with some of everything that has chunks of one size, and a short last one."""
    with SChunk(
        chunksize=8 * ITEMS,
        cparams={"typesize": 8, "clevel": 9, "filters": [Filter.BITSHUFFLE], "filters_meta": [0]},
        urlpath=path,
        contiguous=contiguous,
        meta={"fixed": {"a": 1}, "other": "text"},
    ) as s:
        for seed in range(6):
            s.append_data(part(seed))
        s.append_data(np.full(ITEMS, 2.5))
        s.append_data(np.zeros(ITEMS))
        s.append_data(np.full(ITEMS, np.nan))
        s.append_data(part(6))
        s.update_special(9, SpecialValue.UNINIT)
        s.append_data(part(7)[:33])
        s.vlmeta["name"] = ["numbers", 7]
        s.vlmeta["raw"] = b"bytes"
        s.delete_chunk(2)
        s.update_data(1, part(8), copy=True)
    return path


def check_round(tmp_path: Path, source: Path) -> None:
    """Convert a frame twice, and compare."""
    before, content = files(source), everything(source)
    told = json.loads(succeed("convert", "--json", "--verify", source, tmp_path / "other").text)
    assert told["kind"] == ("contiguous" if source.is_dir() else "sparse")
    assert (tmp_path / "other").is_dir() != source.is_dir()
    succeed("convert", tmp_path / "other", tmp_path / "back")
    assert everything(tmp_path / "other") == everything(tmp_path / "back") == content
    assert files(source) == before
    for name in ("other", "back"):
        with superchunk.open(tmp_path / name) as s:
            assert s.dead_bytes < OF_AN_EMPTY_FRAME
        assert run("verify", "--decode", tmp_path / name).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({"other", "back", source.name})


@both_kinds
def test_a_frame_becomes_the_other_kind_and_comes_back(tmp_path: Path, *, contiguous: bool) -> None:
    source = full(tmp_path / "source", contiguous=contiguous)
    with superchunk.open(source) as s:
        assert s.dead_bytes > 2 * OF_AN_EMPTY_FRAME or not contiguous
    check_round(tmp_path, source)


@both_kinds
def test_chunks_of_different_sizes(tmp_path: Path, *, contiguous: bool) -> None:
    source = tmp_path / "source"
    with SChunk(chunksize=-1, cparams={"typesize": 8}, urlpath=source, contiguous=contiguous) as s:
        for seed in range(5):
            s.append_data(part(seed)[: 100 - 17 * seed])
        s.append_data(np.zeros(50))
    check_round(tmp_path, source)
    with superchunk.open(tmp_path / "back") as s:
        assert s[:] == b"".join([*(part(seed)[: 100 - 17 * seed].tobytes() for seed in range(5)), bytes(400)])


@both_kinds
def test_blocks_of_different_sizes(tmp_path: Path, *, contiguous: bool) -> None:
    source = tmp_path / "source"
    blocks = [[b"one", b"twenty" * 30], [b"x" * 999, b"y", b"zz"]]
    with SChunk(chunksize=-1, urlpath=source, contiguous=contiguous) as s:
        for some in blocks:
            s.append_vlblocks(some)
    check_round(tmp_path, source)
    with superchunk.open(tmp_path / "other") as s:
        assert [s.get_vlblocks(n) for n in range(2)] == blocks


@both_kinds
def test_a_frame_without_chunks_and_one_of_a_million(tmp_path: Path, *, contiguous: bool) -> None:
    for name in ("empty", "zeros"):
        folder = tmp_path / name
        folder.mkdir()
        with SChunk(chunksize=80, cparams={"typesize": 8}, urlpath=folder / "source", contiguous=contiguous) as s:
            if name == "zeros":
                s.fill_special(10 * 20_000, SpecialValue.ZERO)
            s.vlmeta["name"] = name
        check_round(folder, folder / "source")
        assert sum(len(raw) for raw in files(folder / "other").values()) < 1000


@corpus.parametrize_legacy()
def test_a_frame_of_an_old_writer_becomes_one_of_today(entry: Mapping[str, Any], tmp_path: Path) -> None:
    if entry["family"] == "C1":
        check_old(entry["path"], tmp_path, ["--contiguous"])
    else:
        check_old(entry["path"], tmp_path, [])
        check_old(entry["path"], tmp_path / "sparse", ["--sparse"])
    with superchunk.open(tmp_path / "new") as s:
        assert sha256(s[:]) == entry["sha256"]
        if entry["usermeta_layer"] == "usermeta":
            assert s.vlmeta["usermeta"] == entry["usermeta_text"].encode()
    with superchunk.open(tmp_path / "new", mode="a") as s:
        s.append_data(bytes(4000))
        assert s[-1000:] == bytes(4000)


def check_old(path: Path, folder: Path, options: list[str]) -> None:
    """Convert the frame of an old writer, and compare chunk by chunk."""
    folder.mkdir(exist_ok=True)
    old = everything(path)
    before = path.read_bytes()
    succeed("convert", "--verify", path, folder / "new", *options)
    assert path.read_bytes() == before
    assert (folder / "new").is_dir() == ("--sparse" in options)
    assert everything(folder / "new")[:3] == old[:3]


@corpus.parametrize_legacy()
def test_a_release_candidates_frame_is_changed_into_one_of_today(entry: Mapping[str, Any], tmp_path: Path) -> None:
    if entry["family"] != "C1":
        assert entry["path"].read_bytes()[0] == 0x9D, "to be converted first"
        return
    path = tmp_path / "frame"
    path.write_bytes(entry["path"].read_bytes())
    with superchunk.open(path, mode="a") as s:
        codec, before = s.cparams.codec, s[:]
        assert isinstance(codec, superchunk.Codec)
        s.append_data(bytes(4000))
    with superchunk.open(path) as s:
        assert (s.cparams.codec, s[:]) == (codec, before + bytes(4000))
    assert path.read_bytes()[0x4D] == codec.value


@entries("frame", "legacy")
def test_golden_frames_are_converted_and_stay_what_they_are(entry: dict[str, Any], tmp_path: Path) -> None:
    path = GOLDEN / entry["file"]
    for kind in ("--sparse", "--contiguous"):
        succeed("convert", path, tmp_path / kind[2:], kind)
        assert everything(tmp_path / kind[2:])[:3] == everything(path)[:3]
        with superchunk.open(tmp_path / kind[2:]) as s:
            assert [sha256(s.decompress_chunk(n)) for n in range(s.nchunks)] == entry["chunks"]
    assert sha256(path.read_bytes()) == entry["file_sha256"]


@both_kinds
def test_the_other_implementation_reads_what_comes_out(tmp_path: Path, *, contiguous: bool) -> None:
    blosc2 = pytest.importorskip("blosc2", reason="the peer")
    source = tmp_path / "theirs"
    made = blosc2.SChunk(
        chunksize=8 * ITEMS,
        urlpath=str(source),
        contiguous=contiguous,
        cparams={"typesize": 8},
        meta={"fixed": b"layer"},
    )
    for seed in range(5):
        made.append_data(part(seed))
    made.append_data(np.zeros(ITEMS))
    made.vlmeta["name"] = {"k": [1, 2]}
    made.delete_chunk(1)
    succeed("convert", source, tmp_path / "new", "--force")
    read = blosc2.open(str(tmp_path / "new"), mode="r")
    assert [read.decompress_chunk(n) for n in range(read.nchunks)] == [
        made.decompress_chunk(n) for n in range(made.nchunks)
    ]
    assert read.vlmeta["name"] == {"k": [1, 2]}
    assert read.meta["fixed"] == b"layer"
    with superchunk.open(tmp_path / "new") as s:
        assert s.get_chunk(0) == superchunk.open(source).get_chunk(0)


@pytest.mark.parametrize("value", ["zero", "nan"])
def test_special_chunks_that_are_written_another_way_count_as_the_same(tmp_path: Path, value: str) -> None:
    blosc2 = pytest.importorskip("blosc2", reason="the peer")
    source = tmp_path / "theirs"
    made = blosc2.SChunk(chunksize=-1, urlpath=str(source), cparams={"typesize": 8})
    contents = [part(0).tobytes(), (np.zeros(40) if value == "zero" else np.full(40, np.nan)).tobytes()]
    for content in contents:
        made.append_data(content)
    check_old(source, tmp_path / "new", ["--contiguous"])
    with superchunk.open(tmp_path / "new" / "new") as s:
        assert [s.decompress_chunk(n) for n in range(2)] == contents


def test_the_name_of_the_target_tells_its_kind(tmp_path: Path) -> None:
    source = full(tmp_path / "a", contiguous=False)
    succeed("convert", source, f"{tmp_path}/b/")
    assert (tmp_path / "b").is_dir()
    succeed("convert", source, tmp_path / "c")
    assert (tmp_path / "c").is_file()
    succeed("convert", tmp_path / "c", tmp_path / "b", "--force")
    assert (tmp_path / "b").is_dir()
    succeed("convert", tmp_path / "c", tmp_path / "d", "--contiguous")
    assert (tmp_path / "d").is_file()
    assert "can only be a directory" in fail(2, "convert", source, f"{tmp_path}/e/", "--contiguous")


@pytest.mark.parametrize("suffix", [".csv", ".zip", ".dir", ".npz", ".B2"])
def test_an_unknown_suffix_is_refused_and_the_known_ones_are_named(tmp_path: Path, suffix: str) -> None:
    source = full(tmp_path / "a", contiguous=True)
    said = fail(2, "convert", source, tmp_path / f"x{suffix}")
    assert f"the suffix {suffix} is not known; expected .npy, .b2nd, .b2frame, .zarr, .h5" in said
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    for number, asked in enumerate((["--sparse"], ["--contiguous"])):  # as it advises
        succeed("convert", source, tmp_path / f"{number}{suffix}", *asked)
        assert (tmp_path / f"{number}{suffix}").is_dir() == (asked == ["--sparse"])
    succeed("convert", source, f"{tmp_path}/y{suffix}/")
    assert (tmp_path / f"y{suffix}").is_dir()


@pytest.mark.parametrize("target", ["", "file://x", "http://host/x.b2nd"])
def test_what_is_no_path_is_no_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.chdir(tmp_path)
    source = full(tmp_path / "a.b2nd", contiguous=True)
    assert "expected a path" in fail(2, "convert", source, target)
    assert "expected a path" in fail(2, "compress", source, "--raw", "-o", target)
    assert "expected a path" in fail(2, "decompress", source, "-o", target)
    assert [each.name for each in tmp_path.iterdir()] == ["a.b2nd"]


def test_links_that_lead_nowhere_are_one_line(tmp_path: Path) -> None:
    source = full(tmp_path / "a", contiguous=True)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("gone")
    for name in ("loop", "dangling"):
        fail(1, "convert", source, tmp_path / name, "--force")
        assert (tmp_path / name).is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "dangling", "loop"]


@both_kinds
def test_nothing_is_replaced_without_force_and_only_frames_with_it(tmp_path: Path, *, contiguous: bool) -> None:
    source = full(tmp_path / "source", contiguous=contiguous)
    target = full(tmp_path / "target", contiguous=not contiguous)
    with superchunk.open(target, mode="a") as s:
        s.vlmeta["name"] = "another"
    before = everything(target)
    assert "already exists; use --force to replace it" in fail(1, "convert", source, target)
    assert everything(target) == before
    succeed("convert", source, target, "--force")
    assert everything(target) == everything(source) != before
    (tmp_path / "note").write_text("mine")
    assert "not a frame" in fail(1, "convert", source, tmp_path / "note", "--force")
    assert (tmp_path / "note").read_text() == "mine"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    assert "not the directory of a sparse frame" in fail(1, "convert", source, tmp_path / "folder", "--force")


@both_kinds
def test_the_source_is_no_target(tmp_path: Path, *, contiguous: bool) -> None:
    source = full(tmp_path / "source", contiguous=contiguous)
    before = files(source)
    (tmp_path / "link").symlink_to(source)
    for target in (source, tmp_path / "link"):
        assert "is the frame SOURCE" in fail(1, "convert", source, target, "--force")
    if not contiguous:
        assert "is inside the frame" in fail(1, "convert", source, source / "new")
        assert "contains the frame SOURCE" in fail(1, "convert", source / "chunks.b2frame", source, "--force")
    assert files(source) == before


def test_what_cannot_be_read_leaves_nothing_behind(tmp_path: Path) -> None:
    source = full(tmp_path / "source", contiguous=True)
    assert "No such file" in fail(1, "convert", tmp_path / "none", tmp_path / "new")
    assert f"the directory {tmp_path / 'none'} does not exist" in fail(1, "convert", source, tmp_path / "none" / "new")
    (tmp_path / "text").write_text("no frame at all")
    fail(1, "convert", tmp_path / "text", tmp_path / "new")
    target = full(tmp_path / "target", contiguous=False)
    before = files(target)
    with superchunk.open(source) as s:
        header = s.get_chunk(3)[:32]
    raw = source.read_bytes()
    at = raw.rindex(header)
    source.write_bytes(raw[: at + 4] + b"\xff" * 8 + raw[at + 12 :])
    fail(1, "convert", source, target, "--force")
    fail(1, "convert", source, tmp_path / "new")
    assert files(target) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target", "text"]


@both_kinds
def test_a_difference_is_found_and_the_new_frame_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, contiguous: bool
) -> None:
    source = full(tmp_path / "source", contiguous=contiguous)
    get_chunk, seen = SChunk.get_chunk, []

    def flipped(self: SChunk, nchunk: int) -> bytes:
        chunk = get_chunk(self, nchunk)
        seen.append(nchunk)
        return chunk if nchunk != 4 or seen.count(4) != 2 else chunk[:-1] + bytes([chunk[-1] ^ 1])

    monkeypatch.setattr(SChunk, "get_chunk", flipped)
    assert "chunk 4 differs" in fail(1, "convert", source, tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_frame_that_verify_objects_to_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = full(tmp_path / "source", contiguous=False)
    copy = SChunk.copy

    def unsealed(self: SChunk, **how: Any) -> SChunk:
        return copy(self, seal=False, **how)

    monkeypatch.setattr(SChunk, "copy", unsealed)
    assert "verify reports not sealed" in fail(1, "convert", "--verify", source, tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    succeed("convert", source, tmp_path / "new")


def pairs() -> Iterator[tuple[bytes, bytes, bool]]:
    """Yield pairs of chunks, and whether they mean the same."""
    with SChunk(chunksize=-1, cparams={"typesize": 8}) as s:
        for content in (np.zeros(10), np.full(10, 1.5), np.full(10, np.nan), np.zeros(11), part(1)[:10]):
            s.append_data(content)
        s.update_special(1, SpecialValue.VALUE, 1.5)
        s.update_special(2, SpecialValue.NAN)
        zeros, value, nan, more, plain = (s.get_chunk(n) for n in range(5))
    yield zeros, zeros, True
    yield zeros, value, False
    yield nan, value, False
    yield zeros, more, False
    yield plain, zeros, False
    yield plain, plain[:-1] + bytes([plain[-1] ^ 1]), False
    as_value = value[:-8] + bytes(8)
    yield zeros, as_value, True
    yield nan, value[:-8] + np.full(1, np.nan).tobytes(), True


def test_special_chunks_are_compared_by_what_they_mean() -> None:
    for one, other, same in pairs():
        assert convert_module._same(one, other) is same


@both_kinds
def test_memory_stays_bounded(tmp_path: Path, *, contiguous: bool) -> None:
    source = tmp_path / "source"
    noise = np.random.default_rng(1).random(2**18)
    with SChunk(
        chunksize=noise.nbytes, cparams={"typesize": 8, "clevel": 0}, urlpath=source, contiguous=contiguous
    ) as s:
        for n in range(LEAST_SIZE // noise.nbytes + 1):
            noise[0] = n
            s.append_data(noise)
        assert s.cbytes > LEAST_SIZE
    line = [sys.executable, "-c", PEAK + MEASURE, "convert", str(source), str(tmp_path / "new")]
    done = subprocess.run(line, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert int(done.stdout.splitlines()[-1]) < MOST_GROWTH


def test_it_is_a_command_of_its_own_process(tmp_path: Path) -> None:
    source = full(tmp_path / "source", contiguous=True)
    done = subprocess.run(
        [*COMMAND, "convert", str(source), str(tmp_path / "new")], capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"sparse, 10 chunks" in done.stdout


def test_progress_of_a_copy_counts_chunks(tmp_path: Path) -> None:
    with superchunk.open(full(tmp_path / "source", contiguous=True)) as s:
        for how in ({}, {"cparams": {"clevel": 1}}):
            told: list[tuple[int, int]] = []
            s.copy(progress=lambda done, total, told=told: told.append((done, total)), **how)
            assert told[-1] == (s.nchunks, s.nchunks)
            assert told == sorted(told)
