"""Many workloads under examination, and what came of it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from crashlab.array_session import carry_on_array
from crashlab.content import ArrayContent, observe
from crashlab.judge import Examination, Tally
from crashlab.session import carry_on
from crashlab.workloads import SHORT, SHORT_ARRAYS, drawn, drawn_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.content import Content
    from crashlab.judge import Level
    from crashlab.workloads import Workload

__all__ = ["Report", "examine", "run", "shrunk"]

_EXHAUSTIVE = 3000
"""States of one prefix that are all tried, of short workloads."""
_DRAWN_SHORT, _DRAWN_LONG = 120, 40
"""States drawn for each prefix where there are more, of short workloads and of drawn ones."""


@dataclass(slots=True)
class Report:
    """What was tried, by workload and level."""

    tallies: dict[tuple[str, Level], Tally] = field(default_factory=dict)
    broken: list[tuple[Workload, Tally]] = field(default_factory=list)
    """Workloads with failures, and these."""

    @property
    def total(self) -> Tally:
        """All of it."""
        total = Tally()
        for tally in self.tallies.values():
            total.add(tally)
        return total

    def add(self, kind: str, workload: Workload, level: Level, tally: Tally) -> None:
        """Count `tally` for workloads of `kind`."""
        self.tallies.setdefault((kind, level), Tally()).add(tally)
        if tally.failures:
            self.broken.append((workload, tally))

    def __str__(self) -> str:
        """Return a table."""
        words = ("present", "recovered", "recognised", "failed")
        lines = [f"{'workload':<14} {'level':<5} {'tried':>10} {'distinct':>10} " + " ".join(f"{w:>10}" for w in words)]
        rows = [(kind, level, tally) for (kind, level), tally in self.tallies.items()]
        for kind, level, tally in [*rows, ("all", "", self.total)]:
            numbers = [tally.tried, tally.distinct, *(tally.outcomes[word] for word in words)]
            lines.append(f"{kind:<14} {level:<5} " + " ".join(f"{number:>10}" for number in numbers))
        return "\n".join(lines)


def _carry_on(path: str, content: Content | ArrayContent | None) -> None:
    """Write on in what a killed process left, and look again."""
    if isinstance(content, ArrayContent):
        carry_on_array(path, content)
    else:
        carry_on(path, content)


def examine(workload: Workload, folder: str, rng: Random, *, most: int, exhaustive: int = 0) -> dict[Level, Tally]:
    """Record `workload` and try what crashes leave of it, in the empty directory `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        places = [os.path.join(own, name) for name in ("work", "look")]  # noqa: PTH118 - a str all the way
        for place in places:
            os.mkdir(place)  # noqa: PTH102 - as above
        with workload.session(places[0]) as session:
            session.do_all(workload.steps)
        examination = Examination(
            session.recording,
            observe,
            places[1],
            synced_commits=workload.way.sync == "commit",
            synced_never=workload.way.sync == "never",
            carry_on=_carry_on,
        )
        return {"kill": examination.kill(), "power": examination.power(rng, most, exhaustive=exhaustive)}


def run(
    states: int, seed: int, folder: str, *, arrays: bool = False, progress: Callable[[int], None] | None = None
) -> Report:
    """Try all short workloads, and then drawn ones until `states` states were tried.

    Parameters
    ----------
    states
        How many at least; the short workloads are always tried.
    seed
        The number of the first drawn workload.
    folder
        A directory to work in; one in memory is faster.
    arrays
        Those with arrays, instead of those with super-chunks.
    progress
        Called with the number of states tried.

    """
    report = Report()
    rng = Random(seed)
    tried = 0

    def one(kind: str, workload: Workload, most: int, exhaustive: int) -> int:
        for level, tally in examine(workload, folder, rng, most=most, exhaustive=exhaustive).items():
            report.add(kind, workload, level, tally)
        done = report.total.tried
        if progress is not None:
            progress(done)
        return done

    for workload in SHORT_ARRAYS if arrays else SHORT:
        tried = one(workload.name, workload, _DRAWN_SHORT, _EXHAUSTIVE)
    while tried < states:
        tried = one("drawn", drawn_array(seed) if arrays else drawn(seed), _DRAWN_LONG, 0)
        seed += 1
    return report


def shrunk(workload: Workload, folder: str) -> Workload:
    """Return a workload of as few steps as possible that fails too, if it fails again."""

    def fails(candidate: Workload) -> bool:
        try:
            tallies = examine(candidate, folder, Random(0), most=_DRAWN_SHORT, exhaustive=_EXHAUSTIVE)
        except AssertionError:
            return True
        return any(tally.failures for tally in tallies.values())

    if not fails(workload):
        return workload
    at = 0
    while at < len(workload.steps):
        candidate = replace(workload, steps=workload.steps[:at] + workload.steps[at + 1 :])
        if fails(candidate):
            workload = candidate
        else:
            at += 1
    return workload
