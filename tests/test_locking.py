"""``locking=True``: processes of both packages take turns in writing one frame."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import superchunk
from superchunk.exceptions import LockedError


def in_another_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("contiguous", [True, False])
def test_both_packages_take_turns(tmp_path: Path, *, contiguous: bool) -> None:
    path = str(tmp_path / "turns.b2frame")
    noise = os.urandom(400)
    cparams = superchunk.CParams(typesize=4)
    s = superchunk.SChunk(400, urlpath=path, mode="w", contiguous=contiguous, locking=True, cparams=cparams)
    assert s.locking
    s.append_data(noise)
    theirs = f"import blosc2; s = blosc2.open({path!r}, mode='a', locking=True)\n"
    told = in_another_process(
        f"{theirs}s.append_data(bytes(range(100)) * 4); s.vlmeta['x'] = 1\n"
        "s.update_data(0, bytes(range(50)) * 8, copy=True); print(s.nchunks)"
    )
    assert told == "2"
    assert s[:] == bytes(range(50)) * 8 + bytes(range(100)) * 4
    assert s.vlmeta["x"] == 1
    s.append_data(bytes(400))
    s.append_data(noise)
    assert in_another_process(f"{theirs}print(s.nchunks, s.decompress_chunk(3) == {noise!r})") == "4 True"
    told = in_another_process(
        f"import superchunk\nwith superchunk.open({path!r}, mode='a', locking=True) as s:\n"
        " s.delete_chunk(0)\n"
        " with s.transaction():\n  s.append_data(b'a' * 400); s.append_data(b'b' * 400)\n"
        " print(s.nchunks)"
    )
    assert told == "5"
    assert s[300:] == b"a" * 400 + b"b" * 400
    s.close()
    assert Path(f"{path}.b2lock" if contiguous else f"{path}/.b2lock").exists()
    superchunk.remove_urlpath(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("contiguous", [True, False])
def test_who_takes_turns_and_who_does_not_exclude_each_other(tmp_path: Path, *, contiguous: bool) -> None:
    path = str(tmp_path / "turns.b2frame")
    code = (
        "import superchunk\n"
        f"try: superchunk.open({path!r}, mode='a', locking={{}} == 1).close(); print('opened')\n"
        "except superchunk.LockedError as error: print('refused', error)"
    )
    with superchunk.SChunk(400, urlpath=path, mode="w", contiguous=contiguous, locking=True):
        assert in_another_process(code.format(1)) == "opened"
        assert in_another_process(code.format(0)).startswith(f"refused {path}: another process has it open")
    with superchunk.open(path, "a"):
        assert in_another_process(code.format(1)).startswith(f"refused {path}: another process has it open")


def test_the_environment_switches_it_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "turns.b2frame"
    monkeypatch.setenv("BLOSC_LOCKING", "1")
    with superchunk.SChunk(400, urlpath=path, mode="w") as s:
        s.append_data(bytes(400))
    assert Path(f"{path}.b2lock").exists()


def test_locking_needs_a_path() -> None:
    with pytest.raises(ValueError, match="locking: expected with a urlpath only"):
        superchunk.SChunk(locking=True)
    assert issubclass(LockedError, BlockingIOError)
