"""Ctrl-C within one call of the engine, with real signals in a process of its own.

A timer sends a signal every 50 ms, and the handler raises when it runs for the second time. Handlers run within a call
only if the engine looks for signals. If it does not, the handler runs once, when the call has returned, and nothing is
raised.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")

PATIENCE = 300.0
"""Seconds that a child may take, on a busy machine without an interrupt."""

BEFORE = """
import signal, sys
import numpy as np
import superchunk
from superchunk import Codec, Filter, _engine

runs = 0

def interrupt(*_):
    global runs
    runs += 1
    if runs == 2:
        raise KeyboardInterrupt

def interrupted(call):
    global runs
    runs = 0
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
    return False

MIB = 1 << 20
hard = np.random.default_rng(0).integers(0, 50, 24 * MIB, dtype="u1")
how = {"codec": Codec.ZSTD, "clevel": 9, "typesize": 1}
"""

CALLS = {
    "compress, one thread": "lambda: superchunk.compress2(hard, nthreads=1, **how)",
    "compress, two threads": "lambda: superchunk.compress2(hard, nthreads=2, **how)",
    "compress in blocks of their own": (
        "lambda: _engine.compress_vlblocks([hard[i:i + MIB] for i in range(0, hard.size, MIB)],"
        " _engine.EncodeParams(codec=5, clevel=9, typesize=1))"
    ),
    "compress a part of an array": (
        "lambda: superchunk.asarray(hard.reshape(24, MIB), chunks=(24, MIB), blocks=(1, MIB),"
        " cparams=superchunk.CParams(nthreads=1, **how))"
    ),
    "read many chunks": (
        "lambda chunk=superchunk.compress2(hard[:2 * MIB] & 15, codec=Codec.ZLIB, clevel=5, typesize=1):"
        " _engine.read([(chunk, -1, 0, 2 * MIB, 2 * MIB * i) for i in range(200)])"
    ),
    "read blocks of one chunk": (
        "lambda chunk=superchunk.compress2(np.tile(hard[:2 * MIB] & 15, 200), codec=Codec.ZLIB, clevel=1, typesize=1):"
        " superchunk.decompress2(chunk)"
    ),
}


def ask(program: str, *arguments: object) -> str:
    command = [sys.executable, "-c", BEFORE + program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("call", CALLS)
def test_a_handler_of_signals_runs_within_a_long_call_and_ends_it(call: str) -> None:
    assert ask(f"print(interrupted({CALLS[call]}))") == "True"


def test_an_interrupted_append_leaves_what_was_there_and_a_handle_that_works(tmp_path: Path) -> None:
    program = """
path = sys.argv[1]
with superchunk.SChunk(urlpath=path, chunksize=hard.size, cparams=superchunk.CParams(nthreads=2, **how)) as frame:
    frame.append_data(bytes(hard.size))
    frame.append_data(hard[:1000].tobytes())
    print(interrupted(lambda: frame.update_data(1, hard, copy=True)))
    print(frame.nchunks, len(frame), frame[-1000:] == hard[:1000].tobytes())
    frame.update_data(1, bytes(hard.size), copy=True)
with superchunk.open(path) as frame:
    print(frame.nchunks, frame[:] == bytes(2 * hard.size), superchunk.verify(path).status)
"""
    size = 24 << 20
    lines = ask(program, tmp_path / "frame.b2frame").splitlines()
    assert lines == ["True", f"2 {size + 1000} True", "2 True sound"]


def test_threads_other_than_the_main_one_are_not_interrupted() -> None:
    program = """
import threading
results, done = [], threading.Event()

def work():
    results.append(superchunk.compress2(hard[:4 * MIB], nthreads=1, **how))
    done.set()

threading.Thread(target=work).start()
print(interrupted(done.wait))
done.wait()
print(superchunk.decompress2(results[0]) == hard[:4 * MIB].tobytes())
"""
    assert ask(program).splitlines() == ["True", "True"]
