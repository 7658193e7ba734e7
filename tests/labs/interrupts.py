"""The laboratory of interrupts: ``KeyboardInterrupt`` at every place of every operation, and what is left after it.

::

    prepare -> operation, interrupted at event k -> look at the disk -> look at the handle -> change it, flush
            -> close -> open for writing again -> replace the frame -> look at what lies beside it

An operation is run once without interrupt to count its events, and then once for each k. An event is a line (grain
``line``), a place where CPython looks for signals (``signal``: after a call, at the start of a function, at a jump
back), or any bytecode (``opcode``), in files of superchunk and in ``contextlib``.

The witnesses: items decoded by the package ``blosc2`` from a copy of the frame, which has another inode, so that
nothing in memory can help; and a handle of superchunk on that copy. `labs.signals` sends real signals.

Run by hand: ``python -m labs.interrupts --grain signal --cases 100000`` in ``tests``; `--help` lists the rest.
"""

from __future__ import annotations

import argparse
import contextlib
import dis
import functools
import gc
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import blosc2
import numpy as np

import superchunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType, TracebackType

__all__ = ["KINDS", "Failure", "Report", "operations", "run", "with_exits"]

Grain = Literal["line", "signal", "opcode"]
GRAINS: Final[tuple[Grain, ...]] = ("line", "signal", "opcode")
KINDS: Final = ("memory", "file", "directory", "memory-array", "file-array", "directory-array")

_ROOT: Final = str(Path(superchunk.__file__).parent) + os.sep
_TRACED: Final = (_ROOT, contextlib.__file__)
_CALLS: Final = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD", "CALL_INTRINSIC_1"})
_BESIDE: Final = re.compile(r"\.(?:frame|other)\.(?:[0-9a-f]{12}\.(?:new|old|kept)|b2taking)")
"""What docs/format/sparse.md and durability.md let a killed writer leave beside a frame, until the next compaction."""
_MOST_TOLD: Final = 30
_PATIENCE: Final = 30.0
"""Seconds for another thread's call, which takes milliseconds."""


def _items(tag: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.full(100, tag, "i4") + np.arange(100, dtype="i4")


State = tuple[Any, ...]


def seen(handle: Any) -> State:
    """Return all that `handle` holds: items, shape or number of chunks, and metadata."""
    schunk = getattr(handle, "schunk", handle)
    vlmeta = tuple(sorted((_text(name), schunk.vlmeta[name]) for name in schunk.vlmeta))
    if schunk is not handle:
        return tuple(handle.shape), np.asarray(handle[...]).tobytes(), vlmeta
    return schunk.nchunks, tuple(schunk.decompress_chunk(number) for number in range(schunk.nchunks)), vlmeta


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


class Interrupt:
    """Count the events in the block; raise ``KeyboardInterrupt`` at event `at`."""

    def __init__(self, grain: Grain, at: int = 0) -> None:
        self._grain = grain
        self._at = at
        self.count = 0
        self.place = ""

    def __enter__(self) -> Self:
        sys.settrace(self._call)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if event != "call" or not frame.f_code.co_filename.startswith(_TRACED):
            return None
        if self._grain == "line":
            return self._line
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._opcode if self._grain == "opcode" else functools.partial(self._signal, _places(frame.f_code))

    def _line(self, frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        if event == "line" and frame.f_lasti not in with_exits(frame.f_code):
            self._met(frame)
        return self._line

    def _opcode(self, frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        if event == "opcode":
            self._met(frame)
        return self._opcode

    def _signal(self, places: frozenset[int], frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if event == "opcode" and frame.f_lasti in places:
            self._met(frame)
        return frame.f_trace

    def _met(self, frame: FrameType) -> None:
        self.count += 1
        if self.count != self._at:
            return
        sys.settrace(None)
        code = frame.f_code
        name = code.co_filename.removeprefix(_ROOT) if code.co_filename.startswith(_ROOT) else "contextlib.py"
        self.place = f"{name}:{frame.f_lineno} in {code.co_qualname}"
        raise KeyboardInterrupt


@functools.cache
def _places(code: CodeType) -> frozenset[int]:
    """Return where in `code` CPython has just looked for signals: the bytecode behind a call, a start, a jump.

    What it found is raised by the call, so the bytecode behind counts only if the same handlers stand around both.
    """
    bytecode = dis.Bytecode(code)
    handlers = getattr(bytecode, "exception_entries", ())

    def around(offset: int) -> list[object]:
        return [one for one in handlers if one.start <= offset < one.end]

    places = set()
    before: dis.Instruction | None = None
    for step in bytecode:
        behind = before is not None and before.opname in _CALLS and around(before.offset) == around(step.offset)
        if behind or step.opname.startswith("JUMP_BACKWARD"):
            places.add(step.offset)
        before = step
    return frozenset(places)


@functools.cache
def with_exits(code: CodeType) -> frozenset[int]:
    """Return where in `code` a ``with`` begins to call ``__exit__``: CPython looks for no signals before."""
    steps = list(dis.get_instructions(code))
    names = [step.opname for step in steps]
    exits = set()
    for at, step in enumerate(steps):
        nothing = [one.opname == "LOAD_CONST" and one.argval is None for one in steps[at : at + 3]]
        left = len(nothing) == 3 and all(nothing) and {"PRECALL", "CALL"} & set(names[at + 3 : at + 4])
        if left or names[at : at + 2] == ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]:
            exits.add(step.offset)
            if names[at - 1] == "SWAP":  # of the value that a `return` in the block has ready
                exits.add(steps[at - 1].offset)
    return frozenset(exits)


@dataclass
class Bench:
    """A frame in a directory of its own, and the handle on it."""

    kind: str
    folder: Path
    handle: Any = None

    @property
    def array(self) -> bool:
        return self.kind.endswith("array")

    @property
    def stored(self) -> bool:
        return not self.kind.startswith("memory")

    @property
    def path(self) -> str | None:
        return str(self.folder / "frame") if self.stored else None

    @property
    def other(self) -> str:
        return str(self.folder / "other")

    @property
    def place(self) -> dict[str, Any]:
        return {"urlpath": self.path, "contiguous": not self.kind.startswith("directory"), "mode": "w"}

    def make(self) -> Any:
        """Make the frame that every case begins with; it has dead bytes and metadata."""
        if self.array:
            data = np.arange(120, dtype="i4").reshape(12, 10)
            made: Any = superchunk.asarray(data, chunks=(4, 4), blocks=(2, 2), **self.place)
            made[0:4, 0:4] = 7
        else:
            made = superchunk.SChunk(400, cparams=superchunk.CParams(typesize=4), **self.place)
            for tag in range(4):
                made.append_data(_items(tag * 1000))
            made.delete_chunk(1)
        made.vlmeta["x"] = 0
        made.flush()
        return made

    def replace(self) -> Any:
        """Make another frame in its place."""
        if self.array:
            return superchunk.asarray(np.ones((5, 5), "i4"), chunks=(4, 4), blocks=(2, 2), **self.place)
        return superchunk.SChunk(400, data=_items(9), cparams=superchunk.CParams(typesize=4), **self.place)


@dataclass(frozen=True)
class Operation:
    """What is interrupted: something before it that is not, and the thing itself."""

    act: Callable[[Bench], object]
    prepare: Callable[[Bench], object] = lambda _: None
    stored_only: bool = False
    kinds: str = "both"
    """``chunks``, ``arrays`` or ``both``."""


def _reopen(bench: Bench) -> None:
    bench.handle.close()
    bench.handle = superchunk.open(str(bench.path), "a")


def _transaction(bench: Bench) -> None:
    handle = bench.handle
    if bench.array:
        with handle.transaction():
            handle[0:5] = 9
            handle.resize((13, 11))
            handle.schunk.vlmeta["x"] = 1
        return
    with handle.transaction():
        handle.append_data(_items(77))
        handle.delete_chunk(0)
        handle.update_data(0, _items(78), copy=True)
        handle.vlmeta["x"] = 1


def _rolled_back(bench: Bench) -> None:
    schunk = getattr(bench.handle, "schunk", bench.handle)
    with contextlib.suppress(ZeroDivisionError), bench.handle.transaction():
        bench.handle[0:5] = np.full((5, 10), 3, "i4") if bench.array else _items(5)[:5]
        schunk.vlmeta["x"] = 1 // int(schunk.vlmeta["x"] != 0)


def _grow(bench: Bench) -> None:
    if bench.array:
        bench.handle.append(np.full((1, 10), 6, "i4"))
    else:
        bench.handle.append_data(_items(6))


def _empty(bench: Bench) -> None:
    bench.handle.close()
    bench.handle = superchunk.SChunk(400, cparams=superchunk.CParams(typesize=4), **bench.place)


def _set_handle(name: str, make: Callable[[Bench], Any]) -> Callable[[Bench], object]:
    def act(bench: Bench) -> None:
        setattr(bench, name, make(bench))

    return act


def operations() -> dict[str, Operation]:
    """Return every operation by its name."""
    reading = superchunk.SpecialValue
    return {
        "append": Operation(lambda b: b.handle.append_data(_items(77)), kinds="chunks"),
        "insert": Operation(lambda b: b.handle.insert_data(1, _items(77), copy=True), kinds="chunks"),
        "update": Operation(lambda b: b.handle.update_data(1, _items(77), copy=True), kinds="chunks"),
        "special": Operation(lambda b: b.handle.update_special(1, reading.ZERO), kinds="chunks"),
        "fill": Operation(lambda b: b.handle.fill_special(250, reading.NAN), prepare=_empty, kinds="chunks"),
        "delete": Operation(lambda b: b.handle.delete_chunk(0), kinds="chunks"),
        "reorder": Operation(lambda b: b.handle.reorder_offsets([2, 0, 1]), kinds="chunks"),
        "slice": Operation(lambda b: b.handle.__setitem__(slice(50, 250), np.full(200, 5, "i4")), kinds="chunks"),
        "extend": Operation(lambda b: b.handle.__setitem__(slice(250, 550), np.full(300, 5, "i4")), kinds="chunks"),
        "set": Operation(lambda b: b.handle.__setitem__((slice(3, 9), slice(2, 7)), 5), kinds="arrays"),
        "grow": Operation(lambda b: b.handle.append(np.ones((2, 10), "i4")), kinds="arrays"),
        "resize": Operation(lambda b: b.handle.resize((7, 15)), kinds="arrays"),
        "vlmeta": Operation(lambda b: b.handle.vlmeta.__setitem__("x", 1)),
        "vlmeta-delete": Operation(lambda b: b.handle.vlmeta.__delitem__("x")),
        "transaction": Operation(_transaction),
        "rolled-back": Operation(_rolled_back),
        "flush": Operation(lambda b: b.handle.flush(), prepare=_grow),
        "compact": Operation(lambda b: b.handle.compact()),
        "read": Operation(lambda b: seen(b.handle)),
        "verify": Operation(lambda b: b.handle.verify(), stored_only=True),
        "copy": Operation(
            lambda b: b.handle.copy(urlpath=b.other, contiguous=b.place["contiguous"], mode="w").close(),
            stored_only=True,
        ),
        "close": Operation(lambda b: b.handle.close(), prepare=_grow, stored_only=True),
        "reopen": Operation(_reopen, prepare=_grow, stored_only=True),
        "open": Operation(
            _set_handle("handle", lambda b: superchunk.open(str(b.path), "a")),
            prepare=lambda b: b.handle.close(),
            stored_only=True,
        ),
        "replace": Operation(
            _set_handle("handle", Bench.replace), prepare=lambda b: b.handle.close(), stored_only=True
        ),
    }


@dataclass(frozen=True)
class Failure:
    """What an interrupt left behind."""

    kind: str
    operation: str
    grain: Grain
    at: int
    place: str
    what: str
    detail: str

    def __str__(self) -> str:
        again = f"--kind {self.kind} --operation {self.operation} --grain {self.grain} --at {self.at}"
        return f"{self.what}: {self.kind} {self.operation}, interrupted at {self.place}: {self.detail}  [{again}]"


@dataclass
class Report:
    """How many interrupts there were, and what they left behind."""

    interrupts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{sum(self.interrupts.values())} interrupts, {len(self.failures)} failures"]
        by_what = Counter((one.what, one.kind, one.operation) for one in self.failures)
        lines += [f"{number:6} {what}: {kind} {name}" for (what, kind, name), number in sorted(by_what.items())]
        by_place: dict[tuple[str, str], Failure] = {}
        for one in self.failures:
            by_place.setdefault((one.what, one.place), one)
        lines += [f"  {one}" for one in list(by_place.values())[:_MOST_TOLD]]
        return "\n".join(lines)


class Examiner:
    """Interrupts one operation on one kind of frame, and looks at what is left."""

    def __init__(self, kind: str, name: str, grain: Grain, folder: Path, report: Report) -> None:
        self._kind, self._name, self._grain = kind, name, grain
        self._operation = operations()[name]
        self._report = report
        self._folder = folder
        self._template = folder / "template"
        self._case = folder / "case"
        if kind.startswith("memory"):
            self._base: State = seen(Bench(kind, self._case).make())
        else:
            self._template.mkdir()
            made = Bench(kind, self._template).make()
            self._base = seen(made)
            made.close()
        self.count, self._before, self._after = self._dry()

    def _dry(self) -> tuple[int, State, State]:
        """Run the operation without interrupt; return its events, and the states before and after."""
        count = 0
        for _ in range(2):  # the second time everything is imported
            bench = self._bench()
            self._operation.prepare(bench)
            before = self._base if _is_closed(bench.handle) else seen(bench.handle)
            with Interrupt(self._grain) as interrupt:
                self._operation.act(bench)
            count = interrupt.count
            if self._name == "close":
                bench.handle = superchunk.open(str(bench.path), "a")
            after = seen(bench.handle)
            bench.handle.close()
            if bench.stored:
                assert self._plain() == after, "the laboratory itself reads wrong"
        return count, before, after

    def _bench(self) -> Bench:
        """Return the frame as every case begins with it, with a handle on it."""
        bench = Bench(self._kind, self._case)
        if not bench.stored:
            bench.handle = bench.make()
            return bench
        shutil.rmtree(self._case, ignore_errors=True)
        shutil.copytree(self._template, self._case)
        bench.handle = superchunk.open(str(bench.path), "a")
        return bench

    def _copied(self) -> str:
        """Return the path of a copy of the frame, in which nothing of this process has a part."""
        copies = self._folder / "copies"
        shutil.rmtree(copies, ignore_errors=True)
        shutil.copytree(self._case, copies)
        return str(copies / "frame")

    def _plain(self) -> State:
        """Return what C-Blosc2 reads in a copy of the frame."""
        return seen(blosc2.open(self._copied(), mode="r"))

    def examine(self, at: int) -> bool:
        """Interrupt the operation at event `at`; return False if it ended before."""
        bench = self._bench()
        self._operation.prepare(bench)
        interrupt = Interrupt(self._grain, at)
        error: BaseException | None = None
        try:
            with interrupt:
                self._operation.act(bench)
        except KeyboardInterrupt:
            pass
        except Exception as other:  # noqa: BLE001 - whatever it is, it is a finding
            error = other
        if not interrupt.place:
            bench.handle.close()
            return False
        self._report.interrupts[self._kind, self._name] += 1
        if error is not None:
            self._tell(interrupt, "another error comes out", _told(error))
            del error
        for what, look in (
            ("the disk holds neither the old nor the new state", self._disk),
            ("the handle is not usable", self._handle),
            ("a later change is lost", self._later),
            ("another thread cannot use the handle", self._elsewhere),
            ("the handle cannot be closed", lambda bench: bench.handle.close()),
            ("the path cannot be opened for writing again", self._again),
            ("the frame cannot be replaced", self._replaced),
            ("something is left beside the frame", self._beside),
        ):
            try:
                look(bench)
            except Exception as trouble:  # noqa: BLE001 - as above
                self._tell(interrupt, what, _told(trouble))
        return True

    def _tell(self, interrupt: Interrupt, what: str, detail: str) -> None:
        self._report.failures.append(
            Failure(self._kind, self._name, self._grain, interrupt.count, interrupt.place, what, detail)
        )

    def _disk(self, bench: Bench) -> None:
        if not bench.stored:
            return
        allowed = (self._base, self._before, self._after)
        _expect(self._plain(), *allowed)
        with superchunk.open(self._copied()) as fresh:
            _expect(seen(fresh), *allowed)

    def _handle(self, bench: Bench) -> None:
        if _is_closed(bench.handle):
            if self._name not in {"close", "reopen", "open", "replace"}:
                raise AssertionError("it is closed")
            return
        _expect(seen(bench.handle), self._before, self._after)

    def _later(self, bench: Bench) -> None:
        """Change the frame through the handle that was interrupted; expect it on the disk."""
        if _is_closed(bench.handle):
            return
        self._change(bench, 1)
        bench.handle.flush()
        if bench.stored:
            _expect(self._plain(), seen(bench.handle))

    def _change(self, bench: Bench, tag: int) -> None:
        """Change the frame, twice and in a transaction; expect all of it in the handle."""
        handle = bench.handle
        held = seen(handle)
        if bench.array:
            rows = np.full((1, held[0][1]), tag, "i4")
            handle.append(rows)
            with handle.transaction():
                handle.append(rows)
                handle.schunk.vlmeta["later"] = tag
            (nrows, width), raw = held[0], held[1]
            wanted: State = ((nrows + 2, width), raw + rows.tobytes() * 2)
        else:
            handle.append_data(_items(tag))
            with handle.transaction():
                handle.append_data(_items(tag))
                handle.vlmeta["later"] = tag
            wanted = (held[0] + 2, held[1] + (_items(tag).tobytes(),) * 2)
        named = {**dict(held[2]), "later": tag}
        _expect(seen(handle), (*wanted, tuple(sorted(named.items()))))

    def _elsewhere(self, bench: Bench) -> None:
        """Change the frame in another thread, which waits for ever if a lock is left held."""
        if _is_closed(bench.handle):
            return
        errors: list[Exception] = []

        def use() -> None:
            try:
                self._change(bench, 3)
                if bench.stored:
                    superchunk.open(str(bench.path)).close()
            except Exception as error:  # noqa: BLE001 - the other thread tells what it is
                errors.append(error)

        thread = threading.Thread(target=use, daemon=True)
        thread.start()
        thread.join(_PATIENCE)
        if thread.is_alive():
            raise AssertionError("it waits for a lock that is left held")
        if errors:
            raise errors[0]

    def _again(self, bench: Bench) -> None:
        if not bench.stored:
            return
        bench.handle = None
        with superchunk.open(str(bench.path), "a") as bench.handle:
            self._change(bench, 2)
            last = seen(bench.handle)
        _expect(self._plain(), last)

    def _replaced(self, bench: Bench) -> None:
        if not bench.stored:
            return
        bench.handle = None
        with bench.replace() as made:
            state = seen(made)
            made.compact()
        _expect(self._plain(), state)

    def _beside(self, bench: Bench) -> None:
        if not bench.stored:
            return
        extra = [one.name for one in bench.folder.iterdir() if one.name not in {"frame", "other"}]
        foreign = [name for name in extra if not _BESIDE.fullmatch(name)]
        if foreign:
            raise AssertionError(f"{foreign}")
        if bench.kind.startswith("directory"):
            nchunks = blosc2.open(bench.path, mode="r")
            stored = getattr(nchunks, "schunk", nchunks).nchunks
            files = [one.name for one in Path(str(bench.path)).iterdir()]
            known = [name for name in files if re.fullmatch(r"[0-9A-F]{8}\.chunk", name)]
            known += [name for name in files if name in {"chunks.b2frame", ".settled.b2frame"}]
            if len(files) > len(known) or len(known) > stored + 2:
                raise AssertionError(f"{stored} chunks, and the files {sorted(files)}")


def _is_closed(handle: Any) -> bool:
    try:
        _ = handle.vlmeta["x"]
    except superchunk.ClosedError:
        return True
    except Exception:  # noqa: BLE001 - what it is, `handle` tells
        return False
    return False


def _expect(found: State, *allowed: State) -> None:
    if found not in allowed:
        raise AssertionError(f"found {_short(found)}, allowed {' or '.join(map(_short, allowed))}")


def _short(state: State) -> str:
    items = state[1] if isinstance(state[1], tuple) else (state[1],)
    tags = [f"{int.from_bytes(one[:4], 'little')}+{len(one)}B#{hash(one) % 9973}" for one in items]
    return f"{state[0]} {tags} {state[2]}"


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]


@contextlib.contextmanager
def _quiet(folder: Path | None) -> Iterator[Path]:
    """Return a directory to work in; without collections in between, which would move the events."""
    memory = Path("/dev/shm")  # noqa: S108 - where syncing costs nothing
    base = folder or (memory if memory.is_dir() else None)
    hook = sys.unraisablehook
    tracing = sys.gettrace()
    gc.collect()
    gc.disable()
    try:
        with tempfile.TemporaryDirectory(prefix="superchunk-lab-", dir=base) as made, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sys.unraisablehook = lambda _: None
            yield Path(made)
    finally:
        sys.unraisablehook = hook
        sys.settrace(tracing)
        gc.enable()


def run(
    *,
    kinds: tuple[str, ...] = KINDS,
    names: tuple[str, ...] = (),
    grain: Grain = "line",
    cases: int = 0,
    seed: int = 1,
    at: int = 0,
    folder: Path | None = None,
) -> Report:
    """Interrupt operations; return what that left behind.

    Parameters
    ----------
    kinds, names
        Kinds of frames, and operations; none: all.
    grain
        Which events.
    cases
        How many interrupts at most, drawn from all; 0: every one.
    seed
        Of the draw.
    at
        Only this event, to see a failure again.
    folder
        Where to make the frames; in memory, if the system has such a place.

    """
    report = Report()
    pairs = [(kind, name) for kind in kinds for name in _fitting(kind) if not names or name in names]
    rng = random.Random(seed)
    for done, (kind, name) in enumerate(pairs):
        with _quiet(folder) as place:
            examiner = Examiner(kind, name, grain, place, report)
            events = [at] if at else list(range(1, examiner.count + 1))
            share = (cases - sum(report.interrupts.values())) // (len(pairs) - done) if cases else len(events)
            drawn = sorted(rng.sample(events, min(max(share, 1), len(events))))
            for event in drawn:
                examiner.examine(event)
    return report


def _fitting(kind: str) -> list[str]:
    """Return the operations that there are for such a frame."""
    other = "chunks" if kind.endswith("array") else "arrays"
    return [
        name
        for name, one in operations().items()
        if one.kinds != other and not (one.stored_only and kind.startswith("memory"))
    ]


def main(arguments: list[str] | None = None) -> int:
    """Run the laboratory by hand; return 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=0, help="interrupts at most, drawn from all (0: every one)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grain", choices=GRAINS, default="line")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these kinds of frames")
    parser.add_argument("--operation", choices=list(operations()), action="append", help="only these operations")
    parser.add_argument("--at", type=int, default=0, help="only this event")
    parser.add_argument("--signals", action="store_true", help="real signals to another process")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to send signals, for all kinds together")
    told = parser.parse_args(arguments)
    kinds = tuple(told.kind or KINDS)
    if told.signals:
        from labs import signals  # which imports this module

        found = signals.run(kinds=kinds, seconds=told.seconds, seed=told.seed)
        print(found)  # noqa: T201  (a script prints)
        return 1 if found.failures else 0
    report = run(
        kinds=kinds,
        names=tuple(told.operation or ()),
        grain=told.grain,
        cases=told.cases,
        seed=told.seed,
        at=told.at,
    )
    print(report)  # noqa: T201  (a script prints)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
