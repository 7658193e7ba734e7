"""Taking turns with blosc2 in another process: both kinds of frame, counters byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import oracle
import pytest
from other_process import Other

from superchunk._store.lock_file import LockSidecar, sidecar_path

if TYPE_CHECKING:
    from collections.abc import Iterator

assert oracle.VERSION

SETUP = """
import blosc2, os
def part(seed):
    return bytes([seed]) * 200 + bytes(range(200))
def make(path, contiguous):
    global s
    s = blosc2.SChunk(chunksize=400, urlpath=path, contiguous=contiguous, locking=True, mode="w",
                      cparams={"typesize": 4, "clevel": 5, "nthreads": 1}, dparams={"nthreads": 1})
def open_again(path, mode="r", **how):
    global s
    s = blosc2.open(path, mode=mode, locking=True, **how)
def seeds():
    return [s.decompress_chunk(n)[0] for n in range(s.nchunks)]
"""


def count(number: int) -> bytes:
    return bytes(8) + number.to_bytes(8, sys.byteorder)


@pytest.fixture(params=[False, True], ids=["file", "directory"])
def sparse(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def frame(tmp_path: Path) -> str:
    return str(tmp_path / "frame.b2frame")


@pytest.fixture
def path(frame: str, *, sparse: bool) -> Path:
    return Path(sidecar_path(frame, sparse=sparse))


@pytest.fixture
def peer(frame: str, *, sparse: bool) -> Iterator[Other]:
    """Return a process in which blosc2 has a frame of two chunks open as `s`."""
    with Other(SETUP) as peer:
        peer(f"make({frame!r}, {not sparse})")
        peer("s.append_data(part(1)); s.append_data(part(2)); s.vlmeta['note'] = 'first'")
        yield peer


@pytest.fixture
def lock(frame: str, peer: Other, *, sparse: bool) -> Iterator[LockSidecar]:
    del peer  # which makes the directory
    lock = LockSidecar(frame, sparse=sparse)
    yield lock
    lock.close()


def edit(frame: str, *, sparse: bool, old: bytes, new: bytes) -> None:
    """Put `new` in the place of `old` in the file with the trailer."""
    file = Path(frame, "chunks.b2frame") if sparse else Path(frame)
    raw = file.read_bytes()
    assert raw.count(old) == 1
    assert len(old) == len(new)
    with file.open("r+b") as stream:
        stream.seek(raw.index(old))
        stream.write(new)


def test_the_peers_sidecar_is_where_ours_is_and_counts_as_ours(peer: Other, lock: LockSidecar, path: Path) -> None:
    assert lock.path == str(path)
    assert path.read_bytes() == count(3)
    with lock.exclusive() as changed:
        assert changed
        assert path.read_bytes() == count(4)
    peer("s.append_data(part(3))")
    assert path.read_bytes() == count(5)
    assert peer("seeds()") == [1, 2, 3]
    assert path.read_bytes() == count(5)


@pytest.mark.parametrize(
    "change",
    [
        "s.append_data(part(9))",
        "s.insert_data(0, part(9), True)",
        "s.update_data(0, part(9), True)",
        "s.delete_chunk(0)",
        "s.vlmeta['note'] = 'other'",
    ],
)
def test_every_change_by_the_peer_is_noticed(peer: Other, lock: LockSidecar, path: Path, change: str) -> None:
    with lock.shared():
        pass
    peer(change)
    assert path.read_bytes() == count(4)
    with lock.shared() as changed:
        assert changed
    peer("seeds()")
    with lock.shared() as changed:
        assert not changed, "reading is no change"


def test_our_exclusive_lock_makes_the_peers_readers_wait(peer: Other, lock: LockSidecar, path: Path) -> None:
    with lock.exclusive():
        peer.start("seeds()")
        peer.waits_for(path)
    assert peer.answer() == [1, 2]


def test_our_exclusive_lock_makes_the_peers_writers_wait(peer: Other, lock: LockSidecar, path: Path) -> None:
    with lock.exclusive():
        peer.start("s.append_data(part(3))")
        peer.waits_for(path)
        assert path.read_bytes() == count(4)
    assert peer.answer() == 3
    assert path.read_bytes() == count(5)
    with lock.shared() as changed:
        assert changed


def test_our_shared_lock_lets_the_peers_readers_in_and_holds_up_its_writers(
    peer: Other, lock: LockSidecar, path: Path
) -> None:
    with lock.shared():
        assert peer("seeds()") == [1, 2]
        peer.start("s.append_data(part(3))")
        peer.waits_for(path)
        assert path.read_bytes() == count(3)
    assert peer.answer() == 3


def test_the_peer_reads_again_because_of_our_count(
    peer: Other, lock: LockSidecar, frame: str, path: Path, *, sparse: bool
) -> None:
    peer(f"open_again({frame!r})")
    assert peer("s.vlmeta['note']") == "first"
    with lock.shared():  # not counted: to show that the peer does keep what it has read
        edit(frame, sparse=sparse, old=b"first", new=b"other")
    assert peer("s.vlmeta['note']") == "first"
    with lock.exclusive():
        edit(frame, sparse=sparse, old=b"other", new=b"third")
        assert path.read_bytes() == count(4)
    assert peer("s.vlmeta['note']") == "third"


def test_the_peer_starts_a_sidecar_anew_as_we_do(peer: Other, lock: LockSidecar, frame: str, path: Path) -> None:
    for before in (b"ABCDEFGH", b"ABCDEFGH1234567", b"ABCDEFGH" + b"\xff" * 8):
        results = []
        for ours in (True, False):
            path.write_bytes(before)
            if ours:
                with lock.exclusive():
                    pass
            else:
                peer(f"open_again({frame!r}, 'a'); s.append_data(part(4))")
            results.append(path.read_bytes())
        assert results[0] == results[1]


def test_both_make_an_empty_sidecar_for_a_reader(
    peer: Other, frame: str, path: Path, lock: LockSidecar, *, sparse: bool
) -> None:
    states = []
    for ours in (True, False):
        path.unlink()
        if ours:
            with lock.shared():
                pass
        else:
            peer(f"open_again({frame!r}); s.decompress_chunk(0)")
        status = path.stat()
        states.append((path.read_bytes(), status.st_mode))
    assert states[0] == states[1]
    assert states[0][0] == b""
    assert not sparse or not Path(f"{frame}.b2lock").exists()


def test_a_frame_inside_a_file_has_the_sidecar_of_the_file(tmp_path: Path, peer: Other, frame: str) -> None:
    if Path(frame).is_dir():
        pytest.skip("a directory does not stand inside a file")
    inside = tmp_path / "inside"
    inside.write_bytes(bytes(100) + Path(frame).read_bytes())
    with LockSidecar(str(inside), sparse=False).exclusive():
        peer.start(f"open_again({str(inside)!r}, offset=100); s.decompress_chunk(0)")
        peer.waits_for(tmp_path / "inside.b2lock")
    peer.answer()


def test_a_link_has_a_sidecar_of_its_own(tmp_path: Path, peer: Other, frame: str) -> None:
    if Path(frame).is_dir():
        pytest.skip("the sidecar of a directory is inside, whatever the name")
    link = tmp_path / "link"
    link.symlink_to(frame)
    target = Path(f"{frame}.b2lock")
    target.unlink()
    with LockSidecar(str(link), sparse=False).exclusive():
        peer.start(f"open_again({str(link)!r}); s.decompress_chunk(0)")
        peer.waits_for(tmp_path / "link.b2lock")
    peer.answer()
    assert not target.exists()


@pytest.mark.parametrize("value", ["", "0", "1", "no", "00"])
def test_the_environment_is_understood_as_the_peer_does(
    frame: str, path: Path, peer: Other, value: str, *, sparse: bool
) -> None:
    del peer, sparse
    path.unlink()
    made = []
    script = f"import blosc2; blosc2.open({frame!r}, mode='r').decompress_chunk(0)"
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "BLOSC_LOCKING": value})
    made.append(path.exists())
    script = "import sys; from superchunk._schunk.opening import *; sys.exit(environment_locking())"
    asked = subprocess.run([sys.executable, "-c", script], check=False, env={**os.environ, "BLOSC_LOCKING": value})
    made.append(bool(asked.returncode))
    assert made[0] == made[1] == (value not in {"", "0"})
