"""The crash laboratory: every state that a killed process or a loss of power may leave.

::

    steps  ── session ── recorder            what is done, and every call that changed the disk
                  │
              Recording ── losses            operations and marks; what a crash leaves of them
                  │           │
               judge ────── shelf            each such disk made real, opened, compared
                  │
             laboratory                      many workloads; a report

What is at work is a super-chunk (`session`, `steps`) or an array (`array_session`, `array_steps`).

``make lab`` tries a million, ``make lab STATES=1000`` that many. What is found in
a state is judged by what the library promised until then: never other content, never a
committed state that cannot be had.
"""

from crashlab.array_session import ArraySession, ArrayWay
from crashlab.judge import Examination, Failure, Mark, Recording, Tally
from crashlab.laboratory import Report, examine, run, shrunk
from crashlab.recorder import Recorder, recording
from crashlab.session import Session, Step, Way
from crashlab.workloads import SHORT, SHORT_ARRAYS, Workload, drawn, drawn_array

__all__ = [
    "SHORT",
    "SHORT_ARRAYS",
    "ArraySession",
    "ArrayWay",
    "Examination",
    "Failure",
    "Mark",
    "Recorder",
    "Recording",
    "Report",
    "Session",
    "Step",
    "Tally",
    "Way",
    "Workload",
    "drawn",
    "drawn_array",
    "examine",
    "recording",
    "run",
    "shrunk",
]
