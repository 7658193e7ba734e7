"""Workloads: short ones for every combination of losses, and drawn ones of any length."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from superchunk.testing.crashlab.session import SYNC_LEVELS, Step, Way
from superchunk.testing.crashlab.steps import CHANGES, STEPS

__all__ = ["SHORT", "Workload", "drawn"]

_RARE: Final = {"grow_much": 8, "replace": 3, "reopen": 2, "open_another": 2, "compact": 2}
"""Steps that are drawn only once in so many times."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is done to a frame that is made in some way."""

    name: str
    steps: tuple[Step, ...]
    way: Way = field(default_factory=Way)

    def __str__(self) -> str:
        """Return a recipe that says all."""
        return f"{self.way}, steps {' '.join(map(str, self.steps))}"


def _short(name: str, words: str, way: Way | None = None) -> Workload:
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


def drawn(seed: int, length: int = 14) -> Workload:
    """Return the workload of that number, of up to `length` steps."""
    rng = Random(f"workload {seed}")  # noqa: S311 - choices in a test
    names = sorted(STEPS)
    steps: list[Step] = []
    while len(steps) < length:
        name = rng.choice(names) if rng.random() < 0.6 else rng.choice(sorted(CHANGES))  # noqa: PLR2004 - mostly
        if rng.randrange(_RARE.get(name, 1)) == 0:
            steps.append(Step(name, rng.randrange(1000)))
    way = Way(
        varying=rng.random() < 0.3,  # noqa: PLR2004 - some
        chunksize=rng.choice([400, 800, 2000]),
        meta=rng.choice([8, 24, 24, 700]),
        sync=rng.choice(SYNC_LEVELS),
        contiguous=rng.random() < 0.6,  # noqa: PLR2004 - somewhat more often
    )
    return Workload(f"drawn {seed}", tuple(steps), way)
