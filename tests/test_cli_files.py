"""compress and decompress: what goes in comes out, and nothing half done stays."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cli_runner import fail, process, succeed
from hypothesis import given, settings
from hypothesis import strategies as st

import superchunk
from superchunk.cli.errors import Failure
from superchunk.cli.files import writing_aside

if TYPE_CHECKING:
    from pathlib import Path

blosc2 = pytest.importorskip("blosc2", reason="the independent witness")


def save(path: Path, array: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    np.save(path, array)
    return path.read_bytes()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    "array",
    [
        np.arange(100_000, dtype="f8").reshape(100, 1000),
        np.asfortranarray(np.arange(600, dtype=">i2").reshape(20, 30)),
        np.array(3.5, "f4"),
        np.zeros((0, 3)),
        np.zeros(7, [("a", "f4"), ("b", "S3", (2,))]),
        np.array(["x", "some text"]),
        np.arange(5).astype("M8[s]"),
        np.zeros(2, "V0"),
    ],
    ids=["c-order", "fortran", "0-d", "empty", "structured", "text", "dates", "items of no bytes"],
)
def test_npy_comes_back_bit_for_bit(tmp_path: Path, array: np.ndarray[Any, np.dtype[Any]]) -> None:
    source = tmp_path / "a.npy"
    original = save(source, array)
    succeed("compress", source, "--chunksize", "64K")
    source.unlink()
    succeed("decompress", tmp_path / "a.npy.b2frame")
    assert source.read_bytes() == original


def test_npy_in_c_order_is_an_array_to_blosc2_too(tmp_path: Path) -> None:
    array = np.linspace(0, 1, 5000).reshape(50, 100)
    save(tmp_path / "a.npy", array)
    succeed("compress", tmp_path / "a.npy", "--chunksize", "8K", "--filters", "shuffle,bytedelta")
    np.testing.assert_array_equal(blosc2.load_array(str(tmp_path / "a.npy.b2frame")), array)


def test_npy_in_fortran_order_does_not_pretend_to_be_in_c_order(tmp_path: Path) -> None:
    save(tmp_path / "a.npy", np.asfortranarray(np.arange(12.0).reshape(3, 4)))
    succeed("compress", tmp_path / "a.npy")
    with superchunk.open(str(tmp_path / "a.npy.b2frame")) as frame:
        assert list(frame.vlmeta) == ["superchunk.npy_header"]


def test_an_array_that_blosc2_saved_comes_back_as_npy(tmp_path: Path) -> None:
    array = np.arange(60, dtype="<i4").reshape(3, 4, 5)
    blosc2.save_array(array, str(tmp_path / "a.b2frame"))
    succeed("decompress", tmp_path / "a.b2frame")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), array, strict=True)


@settings(max_examples=30, deadline=None)
@given(
    data=st.binary(max_size=3000),
    typesize=st.integers(1, 300),
    chunksize=st.integers(1, 1000),
    codec=st.sampled_from(["blosclz", "lz4", "lz4hc", "zlib", "zstd"]),
    filters=st.sampled_from(["none", "shuffle", "bitshuffle", "shuffle,bytedelta", "delta,shuffle"]),
)
def test_any_bytes_come_back(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, typesize: int, chunksize: int, codec: str, filters: str
) -> None:
    folder = tmp_path_factory.mktemp("raw")
    (folder / "raw").write_bytes(data)
    options = ["--typesize", str(typesize), "--chunksize", str(chunksize), "--codec", codec, "--filters", filters]
    succeed("compress", folder / "raw", "--raw", *options)
    succeed("decompress", folder / "raw.b2frame", "-o", folder / "back")
    assert (folder / "back").read_bytes() == data


def test_standard_input_goes_in_and_standard_output_comes_out(tmp_path: Path) -> None:
    data = os.urandom(300_001)
    frame = tmp_path / "x.b2frame"
    assert process("compress", "-", "-o", frame, "--chunksize", "64K", "-q", stdin=data).returncode == 0
    done = process("decompress", frame, "-o", "-")
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")


def test_npy_on_standard_input_keeps_dtype_and_shape(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.arange(12, dtype="i2").reshape(3, 4))
    succeed("compress", "-", "-o", tmp_path / "x.b2frame", stdin=stream.getvalue())
    assert succeed("decompress", tmp_path / "x.b2frame", "-o", "-").stdout == stream.getvalue()


def test_raw_takes_an_npy_file_as_bytes(tmp_path: Path) -> None:
    original = save(tmp_path / "a.npy", np.arange(10))
    succeed("compress", tmp_path / "a.npy", "--raw", "-o", tmp_path / "x.b2frame")
    with superchunk.open(str(tmp_path / "x.b2frame")) as frame:
        assert (frame.nbytes, frame.typesize, list(frame.vlmeta)) == (len(original), 1, [])


def test_options_reach_the_frame(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(bytes(range(240)) * 100)
    options = ["--codec", "zlib", "--level", "7", "--filters", "bitshuffle", "--typesize", "12", "--chunksize", "1000"]
    succeed("compress", tmp_path / "raw", *options)
    with superchunk.open(str(tmp_path / "raw.b2frame")) as frame:
        assert (frame.typesize, frame.chunksize, frame.nchunks) == (12, 996, 25)
        assert (frame.cparams.codec, frame.cparams.clevel) == (superchunk.Codec.ZLIB, 7)
        assert superchunk.Filter.BITSHUFFLE in frame.cparams.filters


def test_summary_says_sizes_and_ratio(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"abcdefgh" * 12_500)
    text = succeed("compress", tmp_path / "raw").text
    assert text.startswith(f"{tmp_path}/raw.b2frame: 97.66 KiB in 1 chunk, compressed to ")


def test_force_replaces_only_regular_files(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(bytes(1000))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "regular file" in fail(1, "compress", tmp_path / "raw", "-o", pipe, "--force")
    assert pipe.is_fifo()


@pytest.mark.parametrize("before", [False, True], ids=["nothing", "a file"])
def test_force_does_not_replace_what_appeared_meanwhile(tmp_path: Path, *, before: bool) -> None:
    target = tmp_path / "out"
    if before:
        target.write_text("old")

    def write() -> None:
        with writing_aside(target, force=True) as aside:
            aside.write_text("new")
            target.unlink(missing_ok=True)
            os.mkfifo(target)

    with pytest.raises(Failure, match="another program meanwhile"):
        write()
    assert target.is_fifo()
    assert names(tmp_path) == ["out"]


def test_a_name_of_255_bytes_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(bytes(1000))
    target = tmp_path / ("é" * 120 + "x" * 15)
    succeed("compress", tmp_path / "raw", "-o", target)
    with superchunk.open(target) as schunk:
        assert schunk[:] == bytes(1000)


def test_nothing_is_written_into_the_directory_of_a_sparse_frame(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(bytes(1000))
    superchunk.SChunk(data=b"x" * 99, urlpath=tmp_path / "sparse", contiguous=False).close()
    before = names(tmp_path / "sparse")
    for target in ("new", "chunks.b2frame"):
        said = fail(1, "compress", tmp_path / "raw", "-o", tmp_path / "sparse" / target, "--force")
        assert "is the directory of a sparse frame" in said
    assert names(tmp_path / "sparse") == before


def test_force_never_replaces_the_input(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(bytes(1000))
    (tmp_path / "link").symlink_to(tmp_path / "raw")
    for target in ("raw", "link"):
        assert "is the input file" in fail(1, "compress", tmp_path / "raw", "-o", tmp_path / target, "--force")
    assert (tmp_path / "raw").read_bytes() == bytes(1000)


def test_force_keeps_links_and_permissions(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(bytes(1000))
    private = tmp_path / "private"
    private.write_bytes(b"old")
    private.chmod(0o600)
    (tmp_path / "link").symlink_to(private)
    succeed("compress", tmp_path / "raw", "-o", tmp_path / "link", "--force")
    assert (tmp_path / "link").is_symlink()
    assert private.stat().st_mode & 0o777 == 0o600
    with superchunk.open(private) as schunk:
        assert schunk[:] == bytes(1000)


def test_a_missing_directory_is_named_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(bytes(1000))
    message = fail(1, "compress", tmp_path / "raw", "-o", tmp_path / "nowhere" / "out")
    assert message.count(str(tmp_path / "nowhere")) == 2
    assert ".part" not in message


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"new" * 100)
    frame = tmp_path / "raw.b2frame"
    frame.write_bytes(b"old")
    assert "--force" in fail(1, "compress", tmp_path / "raw")
    assert frame.read_bytes() == b"old"
    succeed("compress", tmp_path / "raw", "--force")
    assert "--force" in fail(1, "decompress", frame)
    succeed("decompress", frame, "--force")
    assert (tmp_path / "raw").read_bytes() == b"new" * 100


@pytest.mark.parametrize("extra", [-1, 1])
def test_npy_of_another_length_than_promised_is_refused(tmp_path: Path, extra: int) -> None:
    original = save(tmp_path / "a.npy", np.arange(10))
    (tmp_path / "a.npy").write_bytes(original[:extra] if extra < 0 else original + b"x")
    message = fail(1, "compress", tmp_path / "a.npy")
    assert "npy items at byte 128" in message
    assert "80 bytes" in message
    assert names(tmp_path) == ["a.npy"]


def test_objects_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    assert "pickle" in fail(1, "compress", tmp_path / "a.npy")
    assert names(tmp_path) == ["a.npy"]


def test_a_file_called_npy_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"something else")
    assert "--raw" in fail(1, "compress", tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["compress", "-"], "-o OUT"),
        (["compress", "raw", "-o", "-"], "standard output"),
        (["compress", "raw", "--codec", "zip"], "zip"),
        (["compress", "raw", "--level", "10"], "10"),
        (["compress", "raw", "--filters", "shufle"], "shufle"),
        (["compress", "raw", "--dtype", "f8", "--typesize", "4"], "--typesize is 4"),
        (["compress"], "FILE"),
        (["decompress", "raw.frame"], ".b2frame"),
    ],
)
def test_a_wrong_command_line_is_explained(tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "raw").write_bytes(b"data")
    succeed("compress", tmp_path / "raw", "-o", tmp_path / "raw.frame")
    line = [str(tmp_path / word) if word.startswith("raw") else word for word in arguments]
    assert says in fail(2, *line)
    assert names(tmp_path) == ["raw", "raw.frame"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert fail(1, "compress", tmp_path / "absent") == f"superchunk: {tmp_path}/absent: No such file or directory"
    assert names(tmp_path) == []


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "directory" in fail(1, "compress", tmp_path, "-o", tmp_path / "x.b2frame")


@pytest.mark.parametrize("size", [0, 1, 50, 500, -1])
def test_a_damaged_frame_leaves_no_output(tmp_path: Path, size: int) -> None:
    (tmp_path / "raw").write_bytes(os.urandom(5000))
    frame = tmp_path / "raw.b2frame"
    succeed("compress", tmp_path / "raw")
    (tmp_path / "raw").unlink()
    frame.write_bytes(frame.read_bytes()[:size])
    assert str(frame) in fail(1, "decompress", frame)
    assert names(tmp_path) == [frame.name]


def test_a_damaged_chunk_leaves_no_output_and_is_located(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(os.urandom(50_000))
    frame = tmp_path / "raw.b2frame"
    succeed("compress", tmp_path / "raw", "--chunksize", "10K")
    (tmp_path / "raw").unlink()
    content = bytearray(frame.read_bytes())
    with superchunk.open(str(frame)) as schunk:
        at = content.index(schunk.get_chunk(2))
    content[at + 4 : at + 8] = b"\xff\xff\xff\x7f"  # its nbytes
    frame.write_bytes(content)
    assert str(frame) in fail(1, "decompress", frame)
    assert names(tmp_path) == [frame.name]


LIMITED = """
import resource, sys
from superchunk.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
sys.exit(main(sys.argv[1:]))
"""


def test_a_full_disk_leaves_the_old_file_and_no_new_one(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(os.urandom(10**6))
    frame = tmp_path / "raw.b2frame"
    frame.write_bytes(b"old")
    line = [sys.executable, "-c", LIMITED, "compress", str(tmp_path / "raw"), "--force", "--chunksize", "64K"]
    done = subprocess.run(line, capture_output=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(b"superchunk: ")
    assert done.stderr.count(b"\n") == 1
    assert frame.read_bytes() == b"old"
    assert names(tmp_path) == ["raw", "raw.b2frame"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "x"

    def race() -> None:
        with writing_aside(target, force=False) as aside:
            aside.write_bytes(b"ours")
            target.write_bytes(b"theirs")

    with pytest.raises(Failure, match="created by another program meanwhile"):
        race()
    assert target.read_bytes() == b"theirs"
    assert names(tmp_path) == ["x"]


def test_a_frame_that_contradicts_its_npy_header_is_not_written_out(tmp_path: Path) -> None:
    save(tmp_path / "a.npy", np.arange(10))
    succeed("compress", tmp_path / "a.npy")
    frame = tmp_path / "a.npy.b2frame"
    with superchunk.open(str(frame), mode="a") as schunk:
        schunk.append_data(np.arange(10).tobytes())
    assert "recorded shape" in fail(1, "decompress", frame, "-o", tmp_path / "b.npy")
    succeed("decompress", frame, "--raw", "-o", tmp_path / "b")
    assert (tmp_path / "b").stat().st_size == 160


@pytest.mark.parametrize("contiguous", [True, False])
def test_an_array_in_boxes_comes_out_as_npy(tmp_path: Path, *, contiguous: bool) -> None:
    frame, values = tmp_path / "a.b2nd", np.arange(100).reshape(10, 10)
    blosc2.asarray(values, chunks=(4, 4), blocks=(2, 2), urlpath=str(frame), contiguous=contiguous)
    succeed("decompress", f"{frame}/" if frame.is_dir() else frame)
    assert np.array_equal(np.load(tmp_path / "a.npy"), values)
    succeed("decompress", frame, "--raw", "-o", tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == values.tobytes()
    succeed("decompress", frame, "--storage-order", "-o", tmp_path / "x", "--force")
    assert (tmp_path / "x").stat().st_size == 9 * 16 * 8


@pytest.mark.parametrize("command", ["compress", "bench"])
def test_a_frame_is_not_compressed_once_more_by_mistake(tmp_path: Path, command: str) -> None:
    frame = tmp_path / "a.b2nd"
    superchunk.zeros((3, 4), urlpath=frame).close()
    message = fail(1, command, frame)
    assert "is already a Blosc2 frame" in message
    assert "--raw" in message
    assert names(tmp_path) == ["a.b2nd"]
    succeed(command, frame, "--raw")
