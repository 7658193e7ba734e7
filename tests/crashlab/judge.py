"""Every state that a crash may leave, looked at and judged.

A `Recording` is what a workload did to the disk, and what it promised: after each of its
marks the content is known, and whether it is committed (a killed process keeps it) or
durable (a loss of power does).

killed process
    Between two marks exactly the committed content before or the one after is found, or
    one that the workload went through between them; and nothing is unreadable.
loss of power
    A content not older than the last durable one; or an error that recognises the damage,
    while recovery finds such a content. Right after a durable mark: no error.

Anything else is a failure: other content, content that is too old, an error that is none
of superchunk's, a frame that cannot be opened.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from crashlab.losses import PowerLoss, killed
from crashlab.shelf import Shelf, before_start
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from crashlab.disk import Image, Op

__all__ = ["Examination", "Failure", "Level", "Mark", "Observe", "Recording", "Tally", "differences"]

Level = Literal["kill", "power"]
Promise = Literal["", "committed", "durable"]


class Observe(Protocol):
    """Read everything at `path`; None if there is nothing."""

    def __call__(self, path: str, *, recover: bool = False) -> Any:
        """Return what can be compared by ``==``."""


class Mark(NamedTuple):
    """The moment at which a step of the workload has returned."""

    what: str
    """The step, in words."""
    start: int
    """Operations recorded before the step."""
    end: int
    """Operations recorded after it."""
    content: Any
    """What a user then sees."""
    promise: Promise
    """What is said to survive from now on."""


@dataclass(slots=True)
class Recording:
    """What a workload did, and what it promised; the first mark is the empty disk."""

    name: str
    """Of the file or directory that is looked at, in the recorded directory."""
    ops: list[Op] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=lambda: [Mark("nothing", 0, 0, None, "durable")])


class Outcome(NamedTuple):
    """What is found in an image: the numbers of the marks with that content, or an error."""

    marks: frozenset[int]
    found: str
    """The content or error in words, if no mark has that content."""
    recognised: bool = False
    """Whether it is an error of superchunk's."""
    recovered: frozenset[int] = frozenset()
    recovered_found: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A promise that was broken."""

    level: Level
    done: int
    """Operations before the crash."""
    cut: int
    """Bytes of the last one that were done; -1 if it was whole."""
    step: str
    """The step under way, or just over."""
    why: str

    def __str__(self) -> str:
        """Return all of it on one line."""
        torn = f", its last write torn after {self.cut} bytes" if self.cut >= 0 else ""
        return f"{self.level}: after {self.done} operations{torn}, in {self.step}: {self.why}"


@dataclass(slots=True)
class Tally:
    """How many states were tried, and what came out."""

    tried: int = 0
    distinct: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """Of the states tried: present, recovered, recognised, failed."""
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count what `other` counted as well."""
        self.tried += other.tried
        self.distinct += other.distinct
        self.outcomes += other.outcomes
        self.failures += other.failures


class Examination:
    """One recording under examination.

    Parameters
    ----------
    recording
        What happened.
    observe
        How to look at what is found.
    folder
        An empty directory to work in.
    synced_commits
        Commits are promised to survive a loss of power.
    synced_never
        Nothing is.
    carry_on
        Called with a path and its content, for some of the states after a kill: goes on
        writing there and raises AssertionError if that goes wrong.

    """

    MOST_FAILURES = 20
    """Failures told of one recording and level."""
    CARRY_ON_EACH = 16
    """Of the distinct states after a kill, each how manieth is written on."""

    def __init__(
        self,
        recording: Recording,
        observe: Observe,
        folder: str,
        *,
        synced_commits: bool = False,
        synced_never: bool = False,
        carry_on: Callable[[str, Any], None] | None = None,
    ) -> None:
        self.recording = recording
        self._observe = observe
        self._folder = folder
        self._synced_commits, self._synced_never = synced_commits, synced_never
        self._carry_on = carry_on
        self._known: dict[int, Outcome] = {}
        self._committed: list[int] | None = None

    def kill(self) -> Tally:
        """Try every prefix, with its last write torn at every sector."""
        tally = Tally()
        self._known.clear()
        marks = self.recording.marks
        low, number = 0, 1
        committed = [0]
        within: list[tuple[int, int, Outcome]] = []
        with Shelf(self._folder) as shelf:
            for done, cut, image in killed(self.recording.ops):
                outcome = self._look(shelf, image, tally, recover=False)
                at_mark, broken = False, tally.outcomes["failed"]
                while cut < 0 and number < len(marks) and marks[number].end == done:
                    before, at_mark = low, True
                    low = self._at_mark(number, low, outcome, tally, done)
                    for earlier in within:
                        self._judge_kill(earlier, before, low, number, tally)
                    within.clear()
                    committed.append(low)
                    number += 1
                if not at_mark:
                    within.append((done, cut, outcome))
                elif tally.outcomes["failed"] == broken:
                    tally.outcomes["present"] += 1
        for earlier in within:  # closing, after the last mark, may have committed it
            self._judge_kill(earlier, low, len(marks) - 1, len(marks) - 1, tally)
        self._committed = committed
        return tally

    def _at_mark(self, number: int, low: int, outcome: Outcome, tally: Tally, done: int) -> int:
        """Return the newest mark whose content is on the disk when mark `number` is reached."""
        mark = self.recording.marks[number]
        floor = number if mark.promise else low
        fitting = [held for held in outcome.marks if floor <= held <= number]
        if fitting:
            return max(fitting)
        self._fail(tally, "kill", done, -1, number, _told(outcome, floor, number))
        return floor

    def _judge_kill(self, earlier: tuple[int, int, Outcome], low: int, high: int, number: int, tally: Tally) -> None:
        done, cut, outcome = earlier
        if any(low <= held <= high for held in outcome.marks):
            tally.outcomes["present"] += 1
        else:
            self._fail(tally, "kill", done, cut, number, _told(outcome, low, high))

    def power(self, rng: Random, most: int, *, exhaustive: int = 0) -> Tally:
        """Try what a loss of power may leave.

        Parameters
        ----------
        rng
            Chooses.
        most
            States drawn for each prefix.
        exhaustive
            A prefix that allows no more states than this is tried with all of them.

        """
        if self._synced_commits and self._committed is None:
            self.kill()
        tally = Tally()
        self._known.clear()
        marks = self.recording.marks
        loss = PowerLoss()
        low, number, settled = 0, 1, True
        with Shelf(self._folder, before_start()) as shelf:
            for done in range(len(self.recording.ops) + 1):
                if done:
                    loss.step(self.recording.ops[done - 1])
                    settled = False
                while number < len(marks) and marks[number].end == done:
                    durable = self._durable(number)
                    if durable > low or (durable == number and marks[number].promise == "durable"):
                        low, settled = durable, True
                    number += 1
                high = min(number, len(marks) - 1)
                for image in loss.states(rng, most, exhaustive):
                    outcome = self._look(shelf, image, tally, recover=True)
                    self._judge_power(done, outcome, low, high, tally, settled=settled)
        return tally

    def _durable(self, number: int) -> int:
        """Return the newest mark whose content is promised to be durable once `number` is reached."""
        if self._synced_never:
            return 0
        if self._synced_commits and self._committed is not None:
            return self._committed[number]
        return number if self.recording.marks[number].promise == "durable" else 0

    def _judge_power(self, done: int, outcome: Outcome, low: int, high: int, tally: Tally, *, settled: bool) -> None:
        if any(low <= held <= high for held in outcome.marks):
            tally.outcomes["present"] += 1
        elif not outcome.recognised or (settled and low):
            self._fail(tally, "power", done, -1, high, _told(outcome, low, high))
        elif any(low <= held <= high for held in outcome.recovered):
            tally.outcomes["recovered"] += 1
        elif outcome.recovered or outcome.recovered_found:
            self._fail(tally, "power", done, -1, high, _told_recovery(outcome, low, high))
        elif low:
            self._fail(tally, "power", done, -1, high, _told(outcome, low, high) + "; and nothing to recover")
        else:
            tally.outcomes["recognised"] += 1

    def _look(self, shelf: Shelf, image: Image, tally: Tally, *, recover: bool) -> Outcome:
        """Return what is found in `image`, from memory if it was there before."""
        tally.tried += 1
        key = hash(image)
        outcome = self._known.get(key)
        if outcome is None:
            tally.distinct += 1
            shelf.put(image)
            outcome = self._known[key] = self._found(f"{shelf.root}/{self.recording.name}", recover=recover)
            if self._carry_on is not None and not recover and outcome.marks and not tally.distinct % self.CARRY_ON_EACH:
                self._write_on(shelf, outcome, tally)
        return outcome

    def _write_on(self, shelf: Shelf, outcome: Outcome, tally: Tally) -> None:
        """Let a writer go on from here."""
        number = max(outcome.marks)
        try:
            assert self._carry_on is not None
            self._carry_on(f"{shelf.root}/{self.recording.name}", self.recording.marks[number].content)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a failure
            why = f"writing on gave {type(error).__name__}: {error}"
            self._fail(tally, "kill", -1, -1, number, why)
        shelf.clear()

    def _found(self, path: str, *, recover: bool) -> Outcome:
        try:
            content = self._observe(path)
        except SuperchunkError as error:
            told = f"{type(error).__name__}: {error}".replace(f"{self._folder}/", "")
            if not recover:
                return Outcome(frozenset(), told, recognised=True)
            return self._recovered(path, told)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a failure
            return Outcome(frozenset(), f"an error that is not superchunk's, {type(error).__name__}: {error}")
        marks = self._with(content)
        return Outcome(marks, "" if marks else self._never(content))

    def _recovered(self, path: str, told: str) -> Outcome:
        """Return what recovery finds where opening said `told`."""
        try:
            content = self._observe(path, recover=True)
        except SuperchunkError:
            return Outcome(frozenset(), told, recognised=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a failure
            what = f"recovery gave an error that is not superchunk's, {type(error).__name__}: {error}"
            return Outcome(frozenset(), told, recognised=True, recovered_found=what)
        marks = self._with(content)
        what = "" if marks else f"recovery gave {self._never(content)}"
        return Outcome(frozenset(), told, recognised=True, recovered=marks, recovered_found=what)

    def _never(self, content: object) -> str:
        return f"what never was, {_nearest(content, self.recording.marks)}"

    def _with(self, content: object) -> frozenset[int]:
        return frozenset(number for number, mark in enumerate(self.recording.marks) if mark.content == content)

    def _fail(self, tally: Tally, level: Level, done: int, cut: int, number: int, why: str) -> None:
        tally.outcomes["failed"] += 1
        step = f"step {number} ({self.recording.marks[number].what})"
        known = any((failure.step, failure.why) == (step, why) for failure in tally.failures)
        if len(tally.failures) < self.MOST_FAILURES and not known:
            tally.failures.append(Failure(level, done, cut, step, why))


def _told(outcome: Outcome, low: int, high: int) -> str:
    expected = f"the content after step {low}" if low == high else f"the content after one of the steps {low} to {high}"
    found = outcome.found or f"that after {_numbers(outcome.marks)}"
    return f"expected {expected}, found {found}"


def _told_recovery(outcome: Outcome, low: int, high: int) -> str:
    found = outcome.recovered_found or f"recovery gave the content after {_numbers(outcome.recovered)}"
    return f"expected the content after one of the steps {low} to {high}, found {outcome.found}; {found}"


def _numbers(marks: frozenset[int]) -> str:
    return "step " + " and ".join(map(str, sorted(marks)))


def _nearest(content: Any, marks: Sequence[Mark]) -> str:
    """Return in which way `content` differs from that of the mark that it is most like."""
    if content is None:
        return "nothing"
    likeness = {n: differences(content, mark.content) for n, mark in enumerate(marks) if mark.content is not None}
    number = min(likeness, key=lambda number: (len(likeness[number]), -number))
    return f"content most like that after step {number}, but " + "; ".join(likeness[number])


def differences(found: Any, expected: Any, where: str = "it") -> list[str]:
    """Return the parts of two contents that differ, in words."""
    if isinstance(found, bytes) and isinstance(expected, bytes) and found != expected:
        if len(found) != len(expected):
            return [f"{where} has {len(found)} bytes and not {len(expected)}"]
        odd = [at for at, (one, other) in enumerate(zip(found, expected, strict=True)) if one != other]
        return [f"{where} differs in {len(odd)} of {len(found)} bytes, from byte {odd[0]} to byte {odd[-1]}"]
    if type(found) is not type(expected) or not isinstance(found, tuple):
        return [] if found == expected else [f"{where} is {_short(found)} and not {_short(expected)}"]
    names = getattr(found, "_fields", range(len(found)))
    if len(found) != len(expected):
        return [f"{where} has {len(found)} parts and not {len(expected)}"]
    parts = zip(names, found, expected, strict=True)
    return [told for name, one, other in parts for told in differences(one, other, f"{where}.{name}")]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}... ({len(text)} characters)"
