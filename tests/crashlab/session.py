"""A super-chunk, or an array, at work, recorded: steps by name and number, and what should be there after each.

A `Step` is a word and a seed for what it leaves open (which chunk, how many bytes), so
that a list of steps is a recipe that anyone can follow again. The session keeps its own,
plain account of what the frame should hold and compares it with the open frame after every
step; what a crash may do to the file is judged later. Arrays: see `array_session`.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import superchunk
from crashlab.content import content_of
from crashlab.judge import Mark, Recording, differences
from crashlab.recorder import Recorder, recording
from crashlab.steps import CHANGES, STEPS, TYPESIZE
from superchunk import CParams, DParams, SChunk
from superchunk.params import StorageDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Self

    from crashlab.content import Content
    from crashlab.judge import Promise
    from crashlab.steps import StepFunction
    from superchunk.params import SyncLevel

__all__ = ["SYNC_LEVELS", "Session", "Step", "Way", "carry_on"]

_KNOWS_SYNC: Final = "sync" in StorageDict.__annotations__
SYNC_LEVELS: Final[tuple[SyncLevel, ...]] = ("explicit", "commit", "never") if _KNOWS_SYNC else ("explicit",)
"""The levels that frames can be made with."""
_ONE_THREAD: Final = DParams(nthreads=1)


class Step(NamedTuple):
    """Something to do, and the seed for what it leaves open."""

    name: str
    seed: int

    def __str__(self) -> str:
        """Return a word to read."""
        return f"{self.name}:{self.seed}"


class Way(NamedTuple):
    """How the frame is made."""

    varying: bool = False
    """Chunks of any size."""
    chunksize: int = 800
    """Bytes of a full chunk, where all are of one size."""
    meta: int = 24
    """Bytes of the fixed metalayer."""
    contiguous: bool = True
    """One file; else a directory."""
    sync: SyncLevel = "explicit"
    """When to wait for the disk."""


class Session:
    """Does steps in an empty directory, and records them.

    Parameters
    ----------
    folder
        The directory.
    way
        How to make the frame.
    recorder
        Stands between the library and the disk; a plain one if None.

    """

    NAME: Final = "frame.b2frame"
    LAYER: Final = "layer"
    steps: Mapping[str, StepFunction] = STEPS
    """What can be done."""
    changes: Mapping[str, StepFunction] = CHANGES
    """What can be done in a transaction."""

    def __init__(self, folder: str, way: Way | None = None, recorder: Recorder | None = None) -> None:
        self.way = way or Way()
        self._recorder = recorder or Recorder(folder)
        self.recording = Recording(self.NAME, self._recorder.ops)
        self._path = os.path.join(self._recorder.root, self.NAME)  # noqa: PTH118 - a str all the way
        self._stack = ExitStack()
        self.handles: list[Any] = []
        """Open ones, of what is at work."""
        self._past: list[tuple[Any, ...]] = []
        """What was in the frame after each step."""
        self._chosen: Any = None
        """The handle through which a step was done last."""
        self.chunks: list[bytes] = []
        self.vlmeta: dict[str, bytes] = {}
        self.meta = b""

    def __enter__(self) -> Self:
        """Begin to record."""
        self._stack.enter_context(recording(self._recorder))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all handles, and record no more."""
        with self._stack:
            self.close_all()

    def do_all(self, steps: Iterable[Step]) -> None:
        """Make the frame if there is none yet, and do `steps` one after the other."""
        if not self.handles:
            start = len(self.recording.ops)
            self.make()
            self._mark("create", start, "committed")
        for step in steps:
            self.do(step)

    def do(self, step: Step) -> bool:
        """Do one step; return False if it made no sense just now.

        Raises
        ------
        AssertionError
            The frame does not hold what it should.

        """
        rng = Random(str(step))
        start = len(self.recording.ops)
        promise = self.steps[step.name](self, rng)
        if promise is not None:
            self._mark(str(step), start, promise)
        return promise is not None

    def _mark(self, what: str, start: int, promise: Promise) -> None:
        own = len(self.recording.ops)
        contents = [content_of(one) for one in self.handles]
        end = len(self.recording.ops)
        seen, expected = [self.seen(content) for content in contents], self.state()
        if expected not in seen:
            msg = f"after {what} the open frame holds something else: {'; '.join(differences(seen[0], expected))}"
            raise AssertionError(msg)
        best = [n for n, state in enumerate(seen) if state == expected]
        found = contents[next((n for n in best if self.handles[n] is self._chosen), best[0])]
        self._past.append(expected)
        for state in seen:  # while a transaction is under way, other handles see what was before
            if state not in self._past:
                msg = f"after {what} a handle sees what never was: {'; '.join(differences(state, expected))}"
                raise AssertionError(msg)
        if end != own and len(self.handles) == 1:  # several commit what waits for each other
            msg = f"after {what}, reading changed the disk: {self.recording.ops[own:]!r}"
            raise AssertionError(msg)
        self.recording.marks.append(Mark(what, start, end, found, promise))

    # What should be there.

    def state(self) -> tuple[Any, ...]:
        """Return the session's own account of what is in the frame, to be compared, and for `restore`."""
        return tuple(self.chunks), tuple(sorted(self.vlmeta.items())), self.meta

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go back to a `state` of before."""
        chunks, layers, self.meta = state
        self.chunks[:], self.vlmeta = chunks, dict(layers)

    def seen(self, content: Any) -> tuple[Any, ...]:
        """Return what was found in a frame in the form of `state`."""
        found: Content = content
        return found.chunks, found.vlmeta, dict(found.meta).get(self.LAYER)

    # For the steps.

    @property
    def full(self) -> bool:
        """Whether another chunk may follow: none may be behind a short one."""
        return self.way.varying or not self.chunks or len(self.chunks[-1]) == self.way.chunksize

    def schunk(self, rng: Random) -> SChunk:
        """Return one of the handles."""
        chosen: SChunk = rng.choice(self.handles)
        self._chosen = chosen
        return chosen

    def make(self) -> None:
        """Make the frame anew, with one handle."""
        extra: dict[str, Any] = {"sync": self.way.sync} if _KNOWS_SYNC else {}
        made = SChunk(
            chunksize=-1 if self.way.varying else self.way.chunksize,
            cparams=CParams(typesize=TYPESIZE, codec=1, clevel=5, nthreads=1),
            dparams=_ONE_THREAD,
            contiguous=self.way.contiguous,
            urlpath=self._path,
            mode="w",
            meta={self.LAYER: bytes(self.way.meta)},
            **extra,
        )
        self.handles = [made]
        self.chunks, self.vlmeta = [], {}
        self.meta = made.meta.raw(self.LAYER)

    def open_another(self) -> None:
        """Open the frame once more."""
        extra: dict[str, Any] = {"sync": self.way.sync} if _KNOWS_SYNC else {}
        self.handles.append(superchunk.open(self._path, mode="a", dparams=_ONE_THREAD, **extra))

    def close_all(self) -> None:
        """Close all handles."""
        while self.handles:
            self.handles.pop().close()

    @staticmethod
    def transaction_of(schunk: Any) -> AbstractContextManager[None]:
        """Return a transaction, from the super-chunk or, where it has none yet, its store."""
        owner = schunk if hasattr(schunk, "transaction") else schunk._handle.store
        context: AbstractContextManager[None] = owner.transaction()
        return context

    @staticmethod
    def compact(schunk: Any) -> None:
        """Compact a super-chunk, through its store where it cannot do so itself yet."""
        owner = schunk if hasattr(schunk, "compact") else schunk._handle.store
        owner.compact()


def carry_on(path: str, content: Content | None) -> None:
    """Open the frame at `path`, which holds `content`, for writing; change it and look again.

    Raises
    ------
    AssertionError
        It does not hold afterwards what it should.

    """
    if content is None:
        return
    with superchunk.open(path, mode="a", dparams=_ONE_THREAD) as schunk:
        schunk.vlmeta.set_raw("carried on", b"yes")
        schunk.insert_data(0, b"abcd" * (len(content.chunks[0]) // 4 if content.chunks else 1), copy=False)
    with superchunk.open(path, dparams=_ONE_THREAD) as schunk:
        found = cast("Content", content_of(schunk))
    if found.chunks[1:] != content.chunks or dict(found.vlmeta) != {**dict(content.vlmeta), "carried on": b"yes"}:
        msg = f"{path}: holds {found!r} after writing on from {content!r}"
        raise AssertionError(msg)
