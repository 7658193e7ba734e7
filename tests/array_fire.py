"""An array whose items tell whether it was seen in one piece, a writer of it, readers, and writers to be killed.

The item in row i, column j is ``generation * 10**6 + i * 1000 + j``, so whatever shape a reader finds, it knows
what must be in it, and a row that is there without its items would be seen as zeros.

Processes are started by `python array_fire.py read|kill PATH HOW`. Readers stop when their standard input ends,
and print what they counted, as JSON. ``kill`` forks a writer for each line, as kill_workload.py does; a writer says on
the descriptor HOW which state it begins to make, ``rows columns generation kind``, and then ``done``.
"""

from __future__ import annotations

import json
import os
import random
import select
import sys
import time
import traceback
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import superchunk
import superchunk._api.opening  # these before forking, and not in each child
import superchunk._store.sparse_frame
from superchunk import NDArray
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray as Items

    from superchunk.params import SyncLevel

CHUNKS, BLOCKS = (7, 6), (4, 3)
FIRST = (20, 11)
MOST = 150
"""Rows and columns at most."""
FAILED = 3


class State(NamedTuple):
    """All that is to be known about the array."""

    rows: int
    columns: int
    generation: int


def items_of(state: State) -> Items[np.int64]:
    """Return the items of a state."""
    rows, columns = np.ogrid[: state.rows, : state.columns]
    return rows * 1000 + columns + state.generation * 10**6


def state_of(items: Items[np.int64]) -> State:
    """Return the state that the items of a whole array are in.

    Raises
    ------
    AssertionError
        They are in none.

    """
    assert items.size, f"torn: shape {items.shape}"
    rows, columns = items.shape
    state = State(rows, columns, int(items[0, 0]) // 10**6)
    wrong = np.argwhere(items != items_of(state))
    assert not len(wrong), f"torn: {state} is wrong in {len(wrong)} items, first {wrong[0]}: {items[tuple(wrong[0])]}"
    return state


def create(path: str, *, contiguous: bool, sync: SyncLevel = "explicit") -> NDArray:
    """Return a new array."""
    return superchunk.asarray(
        items_of(State(*FIRST, 1)),
        chunks=CHUNKS,
        blocks=BLOCKS,
        urlpath=path,
        mode="w",
        contiguous=contiguous,
        sync=sync,
        cparams={"nthreads": 1, "codec": superchunk.Codec.LZ4, "clevel": 1},
    )


def changes(state: State, rng: random.Random) -> Iterator[tuple[str, State]]:
    """Yield what a writer does, and what it makes of the array; without end."""
    while True:
        kind = rng.choice(("rows", "rows", "columns", "shrink", "rewrite", "rewrite", "flush", "compact"))
        rows, columns, generation = state
        if kind == "rows" and rows < MOST:
            state = State(rows + rng.randint(1, 15), columns, generation)
        elif kind == "columns" and columns < MOST:
            state = State(rows, columns + rng.randint(1, 15), generation)
        elif kind == "shrink":
            state = State(rng.randint(1, rows), rng.randint(1, columns), generation)
        elif kind == "rewrite":
            state = State(rng.randint(1, 60), rng.randint(1, 40), generation + 1)
        elif kind not in ("flush", "compact"):
            continue
        yield kind, state


def change(array: NDArray, kind: str, state: State) -> None:
    """Make the array one of that state: each is one commit."""
    rows, columns = array.shape
    if kind == "rows":
        array.append(items_of(state)[rows:])
    elif kind == "columns":
        array.append(items_of(state)[:, columns:], axis=1)
    elif kind == "shrink":
        array.resize(state[:2])
    elif kind == "rewrite":
        with array.transaction():
            array.resize(state[:2])
            array[...] = items_of(state)
    elif kind == "flush":
        array.flush()
    else:
        array.compact()


def opened(path: str, **how: Any) -> NDArray:
    """Return the array at a path."""
    found = superchunk.open(path, **how)
    assert isinstance(found, NDArray)
    return found


class Reader:
    """Reads all or a part, and checks what it gets."""

    def __init__(self, path: str, how: str) -> None:
        self.path, self.how = path, how
        self.array = opened(path, snapshot=how == "pinned")
        self.rng = random.Random(how)
        self.newest = 0
        self.counts: Counter[str] = Counter()

    def step(self) -> None:
        """Read once; what is wrong is counted, and told."""
        try:
            if self.how == "anew":
                with opened(self.path) as self.array:
                    self._whole()
            elif self.how == "pinned":
                first = self._whole()
                time.sleep(0.01 * self.rng.random())
                assert self._whole() == first, "a snapshot that moved"
                self.array.refresh()
            elif self.rng.randrange(2):
                self._whole()
            else:
                self._part()
        except (AssertionError, IndexError, OSError, SuperchunkError) as error:
            self.counts["torn"] += 1
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201 - the complaint
        self.counts["reads"] += 1

    def _whole(self) -> State:
        state = state_of(self.array[()])
        assert state.generation >= self.newest, "an older state than before"
        self.counts["states"] += state.generation > self.newest
        self.newest = state.generation
        return state

    def _part(self) -> None:
        """Read the last rows and every other column, of whatever shape there is."""
        items = self.array[-5:, ::2]
        expected = items[0, 0] + np.arange(len(items))[:, None] * 1000 + np.arange(items.shape[1]) * 2
        assert (items == expected).all(), "torn rows"
        assert items[0, 0] % 1000 == 0


def _work(seed: int, path: str, acks: int) -> None:
    with opened(path, mode="a", sync=("never", "explicit", "commit")[seed % 3]) as array:
        rng = random.Random(seed)
        for kind, state in changes(state_of(array[()]), rng):
            os.write(acks, f"{state.rows} {state.columns} {state.generation} {kind}\n".encode())
            change(array, kind, state)
            os.write(acks, b"done\n")


def _fork_writers(path: str, acks: int) -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                _work(int(line), path, acks)
            except BaseException:  # noqa: BLE001 - whatever it is, the parent has to hear of it
                traceback.print_exc()
            finally:
                os._exit(FAILED)
        print(child, flush=True)  # noqa: T201 - the answer
        sys.stdin.readline()  # until it is killed, its number must stay its own
        print(os.waitpid(child, 0)[1], flush=True)  # noqa: T201 - the answer


def main() -> None:
    """Be the process that the arguments say."""
    kind, path, how = sys.argv[1:]
    if kind == "kill":
        _fork_writers(path, int(how))
        return
    reader = Reader(path, how)
    print("ready", flush=True)  # noqa: T201 - the answer
    while not select.select([sys.stdin], [], [], 0)[0]:
        reader.step()
    print(json.dumps(reader.counts))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
