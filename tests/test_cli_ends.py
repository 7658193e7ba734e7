"""How the command ends when something ends it: signals, a full disk, a stream that is closed."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

import superchunk

if TYPE_CHECKING:
    from pathlib import Path

ALWAYS = {
    "compress": "compress s.npy -o new/x.b2frame --chunksize 64K",
    "decompress": "decompress s.b2nd -o new/x.npy",
    "cat": "cat s.b2nd -o new/x",
    "one file to a directory": "convert s.b2nd new/x/",
    "to .npy": "convert s.b2nd new/x.npy",
    "to .b2nd": "convert s.npy new/x.b2nd --chunks 100,100",
    "to a directory": "convert s.npy new/x.b2nd/ --chunks 100,100",
    "to .b2frame": "convert s.b2nd new/x.b2frame --chunksize 64K",
    "repair": "repair damaged.b2nd -o new/x.b2nd",
}
WITH_PACKAGES = {
    "zarr": "convert s.npy new/x.zarr --chunks 100,100",
    "h5py": "convert s.npy new/x.h5 --chunks 100,100",
    "matplotlib": "view s.b2nd -o new/x.png",
}
EVERY = [
    *(pytest.param(line, id=name) for name, line in ALWAYS.items()),
    *(
        pytest.param(line, id=name, marks=pytest.mark.skipif(not has, reason=f"needs {name}"))
        for name, line in WITH_PACKAGES.items()
        for has in [importlib.util.find_spec(name) is not None]
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with an array in two files, one of them damaged, and room for what is made."""
    values = np.random.default_rng(3).integers(0, 1000, (300, 500))
    np.save(tmp_path / "s.npy", values)
    superchunk.asarray(values, chunks=(100, 100), urlpath=tmp_path / "s.b2nd").close()
    raw = bytearray((tmp_path / "s.b2nd").read_bytes())
    raw[3000:3100] = bytes(100)
    (tmp_path / "damaged.b2nd").write_bytes(raw)
    (tmp_path / "new").mkdir()
    return tmp_path


SIGNALLED = """
import os, signal, sys
import superchunk.cli.app

signum, share, arguments = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
signal.signal(signal.SIGINT, signal.default_int_handler)
calls, last = 0, None

def count(frame, event, _argument):
    global calls
    if event == "call" and "superchunk" in frame.f_code.co_filename and frame.f_code.co_name != "__del__":
        calls += 1
        if calls == last:
            sys.setprofile(None)
            os.kill(os.getpid(), signum)

def run(where):
    line = [part.replace("new/", where) for part in arguments]
    sys.setprofile(count)
    try:
        return superchunk.cli.main(line)
    finally:
        sys.setprofile(None)

for where in ("first", "whole"):  # the first one loads what the others need
    os.mkdir(where)
    calls = 0
    assert run(where + "/") == 0
calls, last = 0, int(calls * share)
sys.exit(run("new/"))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("line", EVERY)
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_it_with_its_code_and_leaves_nothing(folder: Path, line: str, name: str, code: int) -> None:
    """The signal comes in the middle, counted in function calls of a run that went to its end."""
    program = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL);" + SIGNALLED  # nohup ignores it
    done = subprocess.run(
        [sys.executable, "-c", program, str(int(getattr(signal, name))), "0.6", *line.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, os.listdir(folder / "new")) == (code, []), done.stderr  # noqa: PTH208 - hidden files too
    assert done.stderr.strip() == ("superchunk: interrupted" if name == "SIGINT" else "")


def test_a_hangup_that_is_ignored_ends_nothing(folder: Path) -> None:
    program = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN);" + SIGNALLED
    line = ALWAYS["to .npy"].split()
    done = subprocess.run(
        [sys.executable, "-c", program, str(int(signal.SIGHUP)), "0.6", *line], cwd=folder, check=False, timeout=120
    )
    assert done.returncode == 0
    assert (folder / "new" / "x.npy").is_file()


LIMITED = """
import resource, sys
import superchunk.cli.app
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.exit(superchunk.cli.main(sys.argv[2:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("limit", [9000, 100])
@pytest.mark.parametrize("line", EVERY)
def test_a_full_disk_is_told_in_one_line_with_the_name_that_was_given(folder: Path, line: str, limit: int) -> None:
    """A limit for files stands for the disk: it is met by the same calls, and told by another number."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *line.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("superchunk: new/x"), done.stderr
    assert done.stderr.endswith(": File too large\n")
    assert done.stderr.count("\n") == 1
    assert os.listdir(folder / "new") == []  # noqa: PTH208 - hidden files too


SAYING = ["list-codecs", "info s.b2nd", "info s.b2nd --json", "cat s.b2nd", "cat s.b2nd --raw", "verify s.b2nd --json"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("line", [*SAYING, "decompress s.b2nd -o -"])
def test_standard_output_on_a_full_disk_is_an_error(folder: Path, line: str) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "superchunk.cli", *line.split()],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (1, "superchunk: standard output: No space left on device\n")


@pytest.mark.skipif(os.name != "posix", reason="needs a shell of POSIX")
@pytest.mark.parametrize("line", SAYING)
def test_standard_streams_that_are_closed_are_no_error(folder: Path, line: str) -> None:
    command = f"{sys.executable} -m superchunk.cli {line} <&- >&- 2>&-"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=folder, check=False, timeout=60)
    assert done.returncode == 0
