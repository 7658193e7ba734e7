"""Workloads: short ones for every combination of losses, and drawn ones of any length."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Final

from crashlab.array_session import ArraySession, ArrayWay
from crashlab.array_steps import ARRAY_CHANGES, ARRAY_STEPS
from crashlab.session import SYNC_LEVELS, Session, Step, Way
from crashlab.steps import CHANGES, STEPS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crashlab.recorder import Recorder

__all__ = ["SHORT", "SHORT_ARRAYS", "Workload", "drawn", "drawn_array"]

_RARE: Final = {"grow_much": 8, "append_much": 8, "replace": 3, "reopen": 2, "open_another": 2, "compact": 2}
"""Steps that are drawn only once in so many times."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is done to a frame, or an array, that is made in some way."""

    name: str
    steps: tuple[Step, ...]
    way: Way | ArrayWay = field(default_factory=Way)

    def session(self, folder: str, recorder: Recorder | None = None) -> Session:
        """Return the session that does the steps in an empty directory."""
        if isinstance(self.way, ArrayWay):
            return ArraySession(folder, self.way, recorder)
        return Session(folder, self.way, recorder)

    def __str__(self) -> str:
        """Return a recipe that says all."""
        return f"{self.way}, steps {' '.join(map(str, self.steps))}"


def _short(name: str, words: str, way: Way | ArrayWay | None = None) -> Workload:
    steps = tuple(Step(word, number) for number, word in enumerate(words.split(), 1))
    return Workload(name, steps, way or Way())


_FILES: Final = (
    _short("appends", "append flush append append flush"),
    _short("metalayers", "set_vlmeta flush set_vlmeta set_meta delete_vlmeta flush"),
    _short("emptied", "append flush delete set_meta append delete flush"),
    _short("updates", "append append flush update flush update_special insert flush"),
    _short("long header", "append flush set_meta append set_meta flush", Way(meta=1100)),
    _short("any size", "append append flush insert reorder update flush", Way(varying=True)),
    _short("transactions", "append flush transaction dropped_transaction transaction"),
    _short("compacted", "append append flush delete flush compact append flush"),
    _short("replaced", "append flush replace append flush"),
    _short("unsynced", "append append append delete set_vlmeta reopen append"),
    _short("many chunks", "append flush grow_much flush update reorder flush"),
    _short("settings", "append flush settings append flush settings flush"),
)
_FOLDERS: Final = tuple(
    replace(short, name=f"{short.name}, sparse", way=short.way._replace(contiguous=False))
    for short in _FILES
    if short.name != "many chunks"
)
SHORT: Final = (*_FILES, *_FOLDERS)
"""Short enough that the losses of a commit can be tried one by one."""


_LARGE: Final = ArrayWay((30, 20), (16, 20), (8, 10))
"""Chunks and index of several sectors."""
_ARRAY_FILES: Final = (
    _short("array", "append flush assign flush grow shrink flush", ArrayWay()),
    _short("array set", "assign assign_points flush assign assign_value flush", _LARGE),
    _short("array appended", "append append append flush append_much append flush", _LARGE),
    _short("array resized", "grow shrink reshape grow flush reshape shrink", ArrayWay()),
    _short("array transactions", "append transaction dropped_transaction transaction flush", ArrayWay()),
    _short("array unsynced", "append assign append set_vlmeta reopen append shrink compact append", ArrayWay()),
    _short("array in one dimension", "append append flush append shrink append flush", ArrayWay((3,), (4,), (4,))),
    _short("array replaced", "assign flush replace append flush", ArrayWay()),
)
_ARRAY_FOLDERS: Final = tuple(
    replace(short, name=f"{short.name}, sparse", way=short.way._replace(contiguous=False)) for short in _ARRAY_FILES
)
SHORT_ARRAYS: Final = (*_ARRAY_FILES, *_ARRAY_FOLDERS)
"""The same for arrays."""


def _drawn_steps(rng: Random, length: int, names: Iterable[str], changes: Iterable[str]) -> tuple[Step, ...]:
    """Return steps, most of them of those that change something."""
    every, mostly = sorted(names), sorted(changes)
    steps: list[Step] = []
    while len(steps) < length:
        name = rng.choice(every) if rng.random() < 0.6 else rng.choice(mostly)
        if rng.randrange(_RARE.get(name, 1)) == 0:
            steps.append(Step(name, rng.randrange(1000)))
    return tuple(steps)


def drawn(seed: int, length: int = 14) -> Workload:
    """Return the workload of that number, of up to `length` steps."""
    rng = Random(f"workload {seed}")
    steps = _drawn_steps(rng, length, STEPS, CHANGES)
    way = Way(
        varying=rng.random() < 0.3,
        chunksize=rng.choice([400, 800, 2000]),
        meta=rng.choice([8, 24, 24, 700]),
        sync=rng.choice(SYNC_LEVELS),
        contiguous=rng.random() < 0.6,
    )
    return Workload(f"drawn {seed}", steps, way)


def drawn_array(seed: int, length: int = 12) -> Workload:
    """Return the workload of that number with an array, of up to `length` steps."""
    rng = Random(f"array {seed}")
    steps = _drawn_steps(rng, length, ARRAY_STEPS, ARRAY_CHANGES)
    ndim = rng.choice((1, 2, 2, 3))
    chunks = tuple(rng.randint(1, (0, 90, 12, 6)[ndim]) for _ in range(ndim))
    way = ArrayWay(
        shape=tuple(rng.choice((0, 1, 4, 9, 13)) for _ in range(ndim)),
        chunks=chunks,
        blocks=tuple(rng.randint(1, size) for size in chunks),
        dtype=rng.choice(("<i4", "<f8", ">u2")),
        meta=rng.choice([8, 24, 700]),
        contiguous=rng.random() < 0.6,
        sync=rng.choice(SYNC_LEVELS),
    )
    return Workload(f"drawn array {seed}", steps, way)
