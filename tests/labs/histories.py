"""A model of one frame, and the question whether what actors saw of it can be explained by whole calls in some order.

::

    state     rows of tags, and named values; a row is a chunk, or a row of an array
    call      what an actor asked for, when it began and ended by the conductor's clock, and what it returned
    history   all calls of a schedule

`explain` looks for an order of the calls that change something which agrees with the clock, with every value returned,
and with every read: a read shows one committed state. For another handle or process it may be a little old, but never
older than what was committed for certain before it began, nor older than what the same kind of reader saw before.
Handles that are shared see what their own transaction has done so far. Plain Python; it knows nothing of superchunk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["CHANGES", "ERROR", "READS", "Call", "Op", "State", "change", "explain", "observe"]

Op = tuple[Any, ...]
"""The name of a call, and its arguments: plain data."""

ERROR: Final = "an error"
CHANGES: Final = frozenset(
    ("append", "insert", "update", "delete", "reorder", "set", "resize", "vl", "unvl", "transaction", "patch")
)
READS: Final = frozenset(("all", "row", "cell", "count", "names", "fresh", "held"))
_COMMITS: Final = frozenset(("flush", "compact", "reopen", "fresh", "vl", "unvl", "transaction"))
"""Calls where changes are made after which what was done before is committed, by docs/durability.md."""
_MOST_STEPS: Final = 200_000


@dataclass(frozen=True)
class State:
    """What a frame holds: tags in rows, and values by name."""

    rows: tuple[tuple[int, ...], ...] = ()
    names: tuple[tuple[str, int], ...] = ()

    @property
    def width(self) -> int:
        return len(self.rows[0]) if self.rows else 4


def change(state: State, op: Op) -> tuple[State, object, list[State]]:
    """Return the state after `op`, what the call returns, and the states inside it that a shared handle shows."""
    if op[0] != "transaction":
        return *_changed(state, op), []
    _, parts, goes_back = op
    inside: list[State] = []
    told: list[object] = []
    now = state
    for part in parts:
        if part[0] in READS:
            told.append(observe(now, part))
            continue
        now, answer = _changed(now, part)
        if answer == ERROR:
            return state, ERROR, inside
        told.append(answer)
        inside.append(now)
    return (state if goes_back else now), told, inside


def _changed(state: State, op: Op) -> tuple[State, object]:  # noqa: C901, PLR0912 - one branch for each change
    name, *args = op
    rows, width = list(state.rows), state.width
    answer: object = None
    if name == "append":
        rows.append((args[0],) * width)
        answer = len(rows)
    elif name == "insert":
        if args[0] > len(rows):
            raise IndexError
        rows.insert(args[0], (args[1],) * width)
        answer = len(rows)
    elif name == "update":
        rows[args[0]] = (args[1],) * width
    elif name == "patch":  # one cell
        nrow, ncell, tag = args
        rows[nrow] = (*rows[nrow][:ncell], tag, *rows[nrow][ncell + 1 :])
    elif name == "delete":
        del rows[args[0]]
    elif name == "reorder":
        if sorted(args[0]) != list(range(len(rows))):
            return state, ERROR
        rows = [rows[number] for number in args[0]]
    elif name == "set":
        (first, last), (low, high), tag = args
        for number in range(first, last):
            rows[number] = (*rows[number][:low], *((tag,) * (high - low)), *rows[number][high:])
    elif name == "resize":
        rows = (rows + [(0,) * width] * args[0])[: args[0]]
    elif name == "vl":
        return State(state.rows, tuple(sorted({**dict(state.names), args[0]: args[1]}.items()))), None
    elif name == "unvl":
        named = dict(state.names)
        if named.pop(args[0], None) is None:
            return state, ERROR
        return State(state.rows, tuple(sorted(named.items()))), None
    else:
        raise ValueError(name)
    return State(tuple(rows), state.names), answer


def observe(state: State, op: Op) -> object:
    """Return what reading `op` shows of `state`."""
    name, *args = op
    if name in {"all", "fresh"}:
        return state.rows
    if name == "held":
        return state.rows, state.names
    if name == "row":
        return state.rows[args[0]]
    if name == "cell":
        return state.rows[args[0]][args[1]]
    if name == "count":
        return len(state.rows)
    if name == "names":
        return state.names
    raise ValueError(name)


@dataclass
class Call:
    """One call of one actor."""

    actor: int
    handle: str
    """Calls of one handle have the same."""
    side: str
    """Handles of one process have the same; what waits for its commit is seen by those alone that have a part in it."""
    op: Op
    began: int
    ended: int = 0
    answer: object = None

    def __str__(self) -> str:
        return f"actor {self.actor} ({self.handle}) {self.began}-{self.ended} {self.op} -> {self.answer}"


@dataclass
class _Order:
    """Calls that change something in an order, and the states in between."""

    calls: list[Call] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    inside: list[list[State]] = field(default_factory=list)


def explain(start: State, calls: Sequence[Call], *, prompt: bool) -> str | None:
    """Return None if whole calls in some order explain `calls`, else the best account of why not.

    Parameters
    ----------
    start
        The state before all calls.
    calls
        All of them, ended.
    prompt
        Every change is committed when its call ends, as with ``locking=True``.

    """
    changes = [call for call in calls if call.op[0] in CHANGES]
    reads = sorted((call for call in calls if call.op[0] in READS), key=lambda call: call.began)
    commits = [call for call in calls if prompt or (_commits(call) and not _beside_a_transaction(call, changes))]
    best: tuple[int, str] = (-1, "no order of the changes agrees with what they returned")
    for steps, order in enumerate(_orders(start, changes)):
        trouble = _unexplained(order, reads, commits)
        if trouble is None:
            return None
        best = max(best, trouble)
        if steps > _MOST_STEPS:
            return None  # too many orders to say anything
    return best[1]


def _orders(start: State, changes: Sequence[Call]) -> Iterator[_Order]:
    """Yield the orders of `changes` that agree with the clock and with what they returned."""
    order = _Order(states=[start])

    def further(left: list[Call]) -> Iterator[_Order]:
        if not left:
            yield order
            return
        first_end = min(call.ended for call in left)
        for call in left:
            if call.began > first_end:
                continue
            try:
                after, answer, inside = change(order.states[-1], call.op)
            except IndexError:
                after, answer, inside = order.states[-1], ERROR, []
            if not _agrees(call.answer, answer):
                continue
            order.calls.append(call)
            order.states.append(after)
            order.inside.append(inside)
            yield from further([one for one in left if one is not call])
            order.calls.pop()
            order.states.pop()
            order.inside.pop()

    return further(list(changes))


def _commits(call: Call) -> bool:
    """Return whether what was done before `call` is committed when it ends; dropped changes commit nothing."""
    if call.op[0] == "settle":  # all handles are closed
        return True
    return call.side == "writers" and call.op[0] in _COMMITS and not _dropped(call)


def _beside_a_transaction(call: Call, changes: Sequence[Call]) -> bool:
    """Return whether a frame is opened while a transaction is under way, which the opening does not wait for."""
    return call.op[0] in {"fresh", "reopen"} and any(
        other.op[0] == "transaction" and other.began < call.ended and other.ended > call.began for other in changes
    )


def _dropped(call: Call) -> bool:
    """Return whether nothing is left of what a call changed."""
    return call.answer == ERROR or (call.op[0] == "transaction" and bool(call.op[2]))


def _agrees(found: object, wanted: object) -> bool:
    """Return whether a call may have returned `found`; None tells nothing."""
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_agrees, found, wanted))
    return found == wanted or (found is None and wanted != ERROR)


def _unexplained(order: _Order, reads: Sequence[Call], commits: Sequence[Call]) -> tuple[int, str] | None:
    """Return how many reads fit into `order` before one that does not, and what is wrong with that; None: all fit."""
    place = {id(call): number + 1 for number, call in enumerate(order.calls)}
    met: list[tuple[Call, int]] = []
    for done, read in enumerate(reads):
        settled = max((call.began for call in commits if call.ended < read.began), default=-1)
        committing = {id(call) for call in commits}
        # A handle opened beside a transaction sees what is committed: not what waits, whoever opens it.
        apart = _beside_a_transaction(read, order.calls)
        lowest = max(
            (
                place[id(call)]
                for call in order.calls
                if call.ended < read.began
                and (
                    (call.handle == read.handle and not apart and not _dropped(call))
                    or call.ended <= settled
                    or id(call) in committing
                )
            ),
            default=0,
        )
        for earlier, at in met:
            before = earlier.ended < read.began and earlier.side == read.side
            if before and not _sees_more(order, earlier, read, apart=apart):
                lowest = max(lowest, at)
        highest = min(
            (place[id(call)] - 1 for call in order.calls if call.began > read.ended), default=len(order.calls)
        )
        shown = next((at for at in range(lowest, highest + 1) if _shows(order, at, read)), None)
        if shown is None:
            anywhere = [at for at in range(len(order.states)) if _seen(order.states[at], read.op) == read.answer]
            what = (
                f"an older state, {anywhere} instead of {lowest} to {highest}"
                if anywhere
                else "no state there ever was"
            )
            states = "".join(f"\n      {number} {state}" for number, state in enumerate(order.states))
            return done, f"{read} shows {what}; the states are{states}"
        met.append((read, shown))
    return None


def _sees_more(order: _Order, earlier: Call, read: Call, *, apart: bool) -> bool:
    """Return whether `earlier` may have seen what waits, in which its handle has a part, and not that of `read`.

    With `apart` that of `read` has no part in what waits, whoever opened it.
    """
    return (apart or earlier.handle != read.handle) and any(
        call.handle == earlier.handle and call.began < earlier.ended and not _dropped(call) for call in order.calls
    )


def _shows(order: _Order, at: int, read: Call) -> bool:
    if _seen(order.states[at], read.op) == read.answer:
        return True
    if at == len(order.calls) or order.calls[at].handle != read.handle:
        return False
    around = order.calls[at]
    if around.ended < read.began or around.began > read.ended:
        return False
    return any(_seen(state, read.op) == read.answer for state in order.inside[at])


def _seen(state: State, op: Op) -> object:
    try:
        return observe(state, op)
    except IndexError:
        return ERROR
