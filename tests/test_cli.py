"""The command as a whole: help, exit codes, interruption, a bound on memory."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cli_runner import COMMAND, fail, process, run, succeed

import superchunk
from superchunk.cli import main

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = ["bench", "cat", "compress", "decompress", "info", "list-codecs"]


def test_no_arguments_print_the_help_with_every_command() -> None:
    text = succeed().text
    assert [name for name in COMMANDS if name in text] == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    assert f"superchunk {name}" in succeed(name, "--help").text


def test_version_is_that_of_the_package() -> None:
    assert superchunk.__version__ in succeed("--version").text


def test_unknown_command_is_a_usage_error() -> None:
    assert "explode" in fail(2, "explode")


def test_missing_extra_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "rich" else found(name))
    assert main(["info", "x"]) == 1
    assert capsys.readouterr().err == (
        "superchunk: the command needs rich: pip install 'superchunk[cli]' installs the missing packages\n"
    )


def test_list_codecs_names_what_the_library_has() -> None:
    text = succeed("list-codecs").text
    for codec in superchunk.compressor_list():
        assert f"{codec.name.lower()} " in text


def test_the_process_returns_the_exit_code_and_one_line(tmp_path: Path) -> None:
    done = process("info", tmp_path / "absent.b2frame")
    assert done.returncode == 1
    said = done.stderr.decode()
    assert said.startswith(f"superchunk: {tmp_path}/absent.b2frame: ")
    assert "no such file" in said.lower()
    assert said.count("\n") == 1


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_compress_leaves_no_file(tmp_path: Path, stop: signal.Signals, code: int) -> None:
    line = [*COMMAND, "compress", "-", "-o", str(tmp_path / "x.b2frame"), "--chunksize", "64K"]
    with subprocess.Popen(
        line,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(stop, signal.SIG_DFL),  # noqa: PLW1509  (a shell's background job ignores SIGINT)
    ) as child:
        assert child.stdin is not None
        child.stdin.write(os.urandom(2**20))
        child.stdin.flush()
        deadline = time.monotonic() + 30
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert list(tmp_path.iterdir()), "nothing was being written"
        time.sleep(0.2)  # until it waits for more: a signal that meets a finalizer is lost in any Python program
        child.send_signal(stop)
        _out, err = child.communicate(timeout=30)
    assert child.returncode == code
    assert b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    frame = tmp_path / "x.b2frame"
    succeed("compress", "-", "-o", frame, "--dtype", "i8", stdin=np.arange(200_000).tobytes())
    with subprocess.Popen([*COMMAND, "cat", str(frame)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == b"0\n"
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(timeout=30) == 0


PEAK = """
import sys
from superchunk.cli import main
import superchunk.cli.app
code = main(sys.argv[1:])
with open("/proc/self/status") as status:
    print(code, *(line.split()[1] for line in status if line.startswith("VmHWM")), file=sys.stderr)
"""


def _peak_bytes(arguments: list[str], feed: bytes, times: int) -> int:
    """Return the most memory a run took, fed `times` times on standard input."""
    with subprocess.Popen(
        [sys.executable, "-c", PEAK, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        assert child.stderr is not None
        for _ in range(times):
            child.stdin.write(feed)
        child.stdin.close()
        code, kib = child.stderr.read().split()
    assert code == b"0"
    return int(kib) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="reads peak memory from /proc")
def test_compress_and_decompress_stay_within_four_chunks_and_64_mb(tmp_path: Path) -> None:
    frame = tmp_path / "x.b2frame"
    chunksize = 4 * 2**20
    feed = np.random.default_rng(5).integers(0, 2**20, 2**20).tobytes()
    allowed = _peak_bytes(["--version"], b"", 0) + 4 * chunksize + 64 * 10**6
    # 256 MiB: far more than is allowed, so that keeping the input would show.
    line = ["compress", "-", "-o", str(frame), "--dtype", "i8", "--codec", "lz4", "--chunksize", str(chunksize)]
    assert _peak_bytes(line, feed, 32) <= allowed
    assert _peak_bytes(["decompress", str(frame), "-o", "-"], b"", 0) <= allowed
    assert run("cat", frame, "--items", "-1:", "--raw").stdout == feed[-8:]
