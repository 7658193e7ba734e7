"""A writer to be killed: what it does follows from a seed, so that who kills it knows what it may find.

::

    python kill_workload.py PATH CONTIGUOUS ACKS

Reads seeds from its standard input, a line each, and answers each with the number of a forked
child, which goes on from what it finds at PATH until it is killed; then reads a line, waits for the
child's end, and answers with its status. To the descriptor ACKS the child writes ``b`` when it begins an operation and
``d`` when it has done it. The child is forked to save the time that importing takes.

A chunk is a number, from which its content follows; a state is a list of numbers, the
metalayers, and nothing else.
"""

from __future__ import annotations

import os
import random
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import superchunk
import superchunk._api.opening  # these before forking, and not in each child
import superchunk._store.sparse_frame
import superchunk.meta
from superchunk import SChunk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from superchunk.params import SyncLevel

CHUNKSIZE = 1200
MOST_CHUNKS = 60
FAILED = 3
"""Exit status of a child that was not killed."""
SYNC: tuple[SyncLevel, ...] = ("never", "never", "explicit", "commit")

Change = Callable[[SChunk], SChunk | None]


@cache
def content(number: int) -> bytes:
    """Return the content of a chunk: zeros, noise, or something in between, seldom shorter than others."""
    if not number:
        return bytes(CHUNKSIZE)
    rng = random.Random(number)
    nbytes = CHUNKSIZE if number % 11 else 4 * rng.randrange(4, CHUNKSIZE // 4)
    noise = rng.randbytes((0, nbytes // 4, nbytes)[number % 3])
    return (number.to_bytes(8, "little") + noise + bytes(nbytes))[:nbytes]


def number_of(plain: bytes) -> int:
    """Return the number of a chunk's content, all of which must fit.

    Raises
    ------
    AssertionError
        No chunk has that content.

    """
    number = int.from_bytes(plain[:8], "little")
    assert content(number) == plain, f"torn: {plain[:16]!r} of {len(plain)} bytes"
    return number


@dataclass(frozen=True, slots=True)
class State:
    """What is in a frame."""

    chunks: tuple[int, ...] = ()
    layers: dict[str, int] = field(default_factory=dict)
    fixed: int = 128


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that happens whole or not at all."""

    name: str
    call: Change
    after: State
    commits: bool
    """Whether it, and all before it, is on the disk when it has been done."""


def found(s: SChunk) -> State:
    """Return what is in `s`, after a look at every chunk, in two ways."""
    numbers = tuple(number_of(s.decompress_chunk(n) or b"") for n in range(s.nchunks))
    assert s[:] == b"".join(content(number) for number in numbers)
    return State(numbers, s.vlmeta.getall(), s.meta["fixed"])


def create(path: str, chunks: tuple[int, ...] = (), *, fixed: int = 128, **how: Any) -> SChunk:
    """Return a new SChunk in place of what is there, with all its chunks at once."""
    data = b"".join(content(number) for number in chunks)
    return SChunk(
        CHUNKSIZE,
        data or None,
        urlpath=path,
        mode="w",
        meta={"fixed": fixed},
        cparams={"typesize": 4, "nthreads": 1},
        dparams={"nthreads": 1},
        **how,
    )


def operations(seed: int, path: str, state: State, **how: Any) -> Iterator[Operation]:
    """Yield what a writer does that begins with `state`; without end."""
    rng = random.Random(seed)
    while True:
        operation = _drawn(rng, path, state, how)
        yield operation
        state = operation.after


def _drawn(rng: random.Random, path: str, state: State, how: dict[str, Any]) -> Operation:  # noqa: C901, PLR0911 - a list
    nchunks = len(state.chunks)
    kind = rng.randrange(20)
    if nchunks >= MOST_CHUNKS:
        return _transaction(rng, [_remove(rng, range(nchunks))], state)
    if kind < 8:
        return _change(_single(rng, state), state)
    if kind == 8:
        value = rng.randrange(1000)
        name = rng.choice("abcde")
        return _change(_layer(name, value), state, commits=True)
    if kind == 9 and state.layers:
        return _change(_no_layer(rng.choice(sorted(state.layers))), state, commits=True)
    if kind == 10:
        return _change(_fixed(rng.randrange(128, 256)), state, commits=True)
    if kind in (11, 12, 13):
        return _transaction(rng, [], state)
    if kind == 14:
        return _abandoned(rng, state)
    if kind in (15, 16):
        return Operation("flush", SChunk.flush, state, commits=True)
    if kind == 17:
        return Operation("compact", SChunk.compact, state, commits=True)
    if kind == 18 and not rng.randrange(4):
        numbers = tuple(1 + 11 * rng.randrange(1, 10**6) for _ in range(rng.randrange(1, 20)))
        return Operation("replace", _replaced(path, numbers, state.fixed, how), State(numbers, {}, state.fixed), True)  # noqa: FBT003
    return Operation("reopen", _reopened(path, how), state, commits=True)


Step = tuple[str, Change, Callable[[State], State]]


def _change(step: Step, state: State, *, commits: bool = False) -> Operation:
    name, call, after = step
    return Operation(name, call, after(state), commits)


def _number(rng: random.Random) -> int:
    return rng.choice((0, rng.randrange(1, 10**6), rng.randrange(1, 10**6)))


def _single(rng: random.Random, state: State) -> Step:
    nchunks = len(state.chunks)
    kind = rng.randrange(8)
    if kind == 5 and nchunks:
        return _update(rng.randrange(nchunks), _number(rng))
    if kind == 6 and nchunks:
        return _insert(rng.randrange(nchunks + 1), _number(rng))
    if kind == 7 and nchunks:
        return _remove(rng, [rng.randrange(nchunks)])
    return _insert(nchunks, _number(rng))


def _insert(nchunk: int, number: int) -> Step:
    return (
        "insert",
        lambda s: _nothing(s.insert_data(nchunk, content(number), copy=False)),
        lambda state: replace(state, chunks=(*state.chunks[:nchunk], number, *state.chunks[nchunk:])),
    )


def _update(nchunk: int, number: int) -> Step:
    return (
        "update",
        lambda s: _nothing(s.update_data(nchunk, content(number), copy=False)),
        lambda state: replace(state, chunks=(*state.chunks[:nchunk], number, *state.chunks[nchunk + 1 :])),
    )


def _remove(rng: random.Random, nchunks: range | list[int]) -> Step:
    gone = set(nchunks)
    if len(gone) > 1:
        gone = set(rng.sample(sorted(gone), len(gone) - rng.randrange(3)))

    def call(s: SChunk) -> None:
        for nchunk in sorted(gone, reverse=True):
            s.delete_chunk(nchunk)

    def after(state: State) -> State:
        kept = tuple(number for nchunk, number in enumerate(state.chunks) if nchunk not in gone)
        return replace(state, chunks=kept)

    return "delete", call, after


def _layer(name: str, value: int) -> Step:
    return (
        "vlmeta",
        lambda s: s.vlmeta.__setitem__(name, value),
        lambda state: replace(state, layers={**state.layers, name: value}),
    )


def _no_layer(name: str) -> Step:
    return (
        "vlmeta",
        lambda s: s.vlmeta.__delitem__(name),
        lambda state: replace(state, layers={key: held for key, held in state.layers.items() if key != name}),
    )


def _fixed(value: int) -> Step:
    return "meta", lambda s: s.meta.__setitem__("fixed", value), lambda state: replace(state, fixed=value)


def _steps(rng: random.Random, state: State, first: list[Step]) -> tuple[list[Step], State]:
    steps = []
    for step in [*first, *(None for _ in range(rng.randrange(1, 7)))]:
        drawn = step or (_single(rng, state) if rng.randrange(4) else _layer(rng.choice("abcde"), rng.randrange(1000)))
        steps.append(drawn)
        state = drawn[2](state)
    return steps, state


def _transaction(rng: random.Random, first: list[Step], state: State) -> Operation:
    steps, after = _steps(rng, state, first)

    def call(s: SChunk) -> None:
        with s.transaction():
            for _, step, _ in steps:
                step(s)

    return Operation("transaction", call, after, commits=True)


class _SecondThoughtsError(Exception):
    """Raised to leave a transaction."""


def _have_second_thoughts() -> None:
    raise _SecondThoughtsError


def _abandoned(rng: random.Random, state: State) -> Operation:
    steps, _ = _steps(rng, state, [])

    def call(s: SChunk) -> None:
        try:
            with s.transaction():
                for _, step, _ in steps:
                    step(s)
                _have_second_thoughts()
        except _SecondThoughtsError:
            pass

    return Operation("abandoned transaction", call, state, commits=False)


def _reopened(path: str, how: dict[str, Any]) -> Change:
    def call(s: SChunk) -> SChunk:
        s.close()
        again: SChunk = superchunk.open(path, mode="a", sync=how.get("sync", "explicit"))
        return again

    return call


def _replaced(path: str, numbers: tuple[int, ...], fixed: int, how: dict[str, Any]) -> Change:
    def call(s: SChunk) -> SChunk:
        s.close()
        return create(path, numbers, fixed=fixed, **how)

    return call


def _nothing(value: object) -> None:
    del value


def sync_of(seed: int) -> SyncLevel:
    """Return when the writer of that seed waits for the disk."""
    return SYNC[seed % len(SYNC)]


def work(seed: int, path: str, acks: int, *, contiguous: bool) -> None:
    """Do one operation after another, until somebody puts an end to it."""
    sync = sync_of(seed)
    s = superchunk.open(path, mode="a", sync=sync)
    for operation in operations(seed, path, found(s), contiguous=contiguous, sync=sync):
        os.write(acks, b"b")
        other = operation.call(s)
        s = s if other is None else other
        os.write(acks, b"d")


def main() -> None:
    """Fork a child for each seed; say who it is, and when it is gone."""
    path, contiguous, acks = sys.argv[1], sys.argv[2] == "True", int(sys.argv[3])
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                work(int(line), path, acks, contiguous=contiguous)
            except BaseException:  # noqa: BLE001 - whatever it is, the parent has to hear of it
                traceback.print_exc()
            finally:
                os._exit(FAILED)
        print(child, flush=True)  # noqa: T201 - the answer
        sys.stdin.readline()  # until it is killed, its number must stay its own
        print(os.waitpid(child, 0)[1], flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
