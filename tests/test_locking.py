"""``locking=True``: processes of both packages take turns in writing one frame."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import superchunk
from superchunk._store.contiguous_frame import ContiguousState
from superchunk._store.sparse_frame import SparseState
from superchunk.exceptions import LockedError

if TYPE_CHECKING:
    from superchunk._store.frame_commit import CommittedFrame


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


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("package", ["superchunk", "blosc2"])
def test_arrays_grow_and_change_in_turns(tmp_path: Path, package: str, *, contiguous: bool) -> None:
    path = str(tmp_path / "turns.b2nd")
    place = {"urlpath": path, "mode": "w", "contiguous": contiguous, "locking": True}
    array = superchunk.asarray(np.arange(12).reshape(3, 4), chunks=(2, 3), blocks=(1, 2), **place)  # type: ignore[arg-type]
    theirs = f"import {package} as b; a = b.open({path!r}, mode='a', locking=True)\n"
    told = in_another_process(
        f"{theirs}with a.holding_lock():\n n = a.shape[0]\n a.resize((n + 1, 4))\n a[n:] = [[9, 9, 9, 9]]\n"
        "a.vlmeta['x'] = 1; print(a.shape)"
        if package == "superchunk"
        else f"{theirs}import numpy\nwith a.holding_lock():\n n = a.shape[0]\n a.resize((n + 1, 4))\n"
        " a[n:] = numpy.full((1, 4), 9)\na.vlmeta['x'] = 1; print(a.shape)"
    )
    assert told == "(4, 4)"
    assert array.shape == (4, 4)
    assert array[3].tolist() == [9] * 4
    array.append([[5, 6, 7, 8]])
    array[0] = 1
    assert array.vlmeta["x"] == 1
    told = in_another_process(f"{theirs}print(a.shape, a[4].tolist(), a[0].tolist())")
    assert told == "(5, 4) [5, 6, 7, 8] [1, 1, 1, 1]"
    array.close()


@pytest.mark.parametrize("contiguous", [True, False])
def test_two_processes_that_append_rows_lose_none(tmp_path: Path, *, contiguous: bool) -> None:
    path = str(tmp_path / "rows.b2nd")
    place = {"urlpath": path, "mode": "w", "contiguous": contiguous, "locking": True}
    superchunk.zeros((0, 3), dtype="i4", chunks=(4, 3), blocks=(2, 3), **place).close()  # type: ignore[arg-type]
    code = (
        "import sys, superchunk\n"
        f"a = superchunk.open({path!r}, mode='a', locking=True)\n"
        "for n in range(20): a.append([[int(sys.argv[1]), n, n]])\n"
        "a.close()"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(who)]) for who in (1, 2)]
    assert [one.wait() for one in both] == [0, 0]
    with superchunk.open(path) as array:
        rows = array[...].tolist()
    assert sorted(map(tuple, rows)) == [(who, n, n) for who in (1, 2) for n in range(20)]
    assert [row[1] for row in rows if row[0] == 1] == list(range(20))
    assert superchunk.verify(path, decode=True).status == "sound"


def test_the_environment_switches_it_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "turns.b2frame"
    monkeypatch.setenv("BLOSC_LOCKING", "1")
    with superchunk.SChunk(400, urlpath=path, mode="w") as s:
        s.append_data(bytes(400))
    assert Path(f"{path}.b2lock").exists()


@pytest.mark.parametrize("contiguous", [True, False])
def test_what_is_filled_before_it_has_its_name_takes_part(tmp_path: Path, *, contiguous: bool) -> None:
    path = str(tmp_path / "full.b2frame")
    for data in (bytes(1000), b"another" * 100):
        place = {"urlpath": path, "mode": "w", "contiguous": contiguous, "locking": True}
        with superchunk.SChunk(400, data, **place) as s:  # type: ignore[arg-type]
            s.append_data(bytes(400))
        with superchunk.open(path, "a", locking=True) as s:
            assert s[: len(data)] == data
    assert Path(f"{path}.b2lock" if contiguous else f"{path}/.b2lock").exists()


def test_locking_needs_a_path() -> None:
    with pytest.raises(ValueError, match="locking: expected with a urlpath only"):
        superchunk.SChunk(locking=True)
    assert issubclass(LockedError, BlockingIOError)


@pytest.mark.parametrize("contiguous", [True, False])
def test_a_frame_that_another_process_compacts_meanwhile_is_opened_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, contiguous: bool
) -> None:
    path = str(tmp_path / "turns.b2frame")
    with superchunk.SChunk(400, os.urandom(800), urlpath=path, contiguous=contiguous, locking=True) as s:
        s.delete_chunk(0)
        last = s[:]
    layout: type[CommittedFrame] = ContiguousState if contiguous else SparseState
    enable = layout.enable_writing
    compacted: list[str] = []

    def late(self: CommittedFrame, *, takes_lock_turns: bool = False) -> None:
        if not compacted:
            compact = f"import superchunk; superchunk.open({path!r}, 'a', locking=True).compact()"
            compacted.append(in_another_process(compact))
        enable(self, takes_lock_turns=takes_lock_turns)

    monkeypatch.setattr(layout, "enable_writing", late)
    with superchunk.open(path, "a", locking=True) as s:
        s.append_data(b"more" * 100)
        assert s[:] == last + b"more" * 100
    assert compacted
