"""An array at work, recorded: as `session` does it for a super-chunk, with NumPy's account beside it.

What counts is what a user of arrays sees: shape and items, which change together or not at all.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import superchunk
from crashlab.array_steps import ARRAY_CHANGES, ARRAY_STEPS, items_of
from crashlab.content import content_of as look_at
from crashlab.session import Session, Way

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashlab.content import ArrayContent
    from crashlab.recorder import Recorder
    from crashlab.steps import StepFunction
    from superchunk._array.ndarray import NDArray
    from superchunk.params import SyncLevel
    from superchunk.schunk import SChunk

__all__ = ["ArraySession", "ArrayWay", "carry_on_array"]


class ArrayWay(NamedTuple):
    """How the array is made."""

    shape: tuple[int, ...] = (9, 7)
    """At the beginning."""
    chunks: tuple[int, ...] = (6, 5)
    blocks: tuple[int, ...] = (4, 3)
    dtype: str = "<i4"
    """Of a number."""
    meta: int = 24
    """Bytes of the fixed metalayer that is there besides the array's."""
    contiguous: bool = True
    """One file; else a directory."""
    sync: SyncLevel = "explicit"
    """When to wait for the disk."""


class ArraySession(Session):
    """Does steps with an array in an empty directory, and records them.

    Parameters
    ----------
    folder
        The directory.
    form
        How to make the array.
    recorder
        Stands between the library and the disk; a plain one if None.

    """

    steps: Mapping[str, StepFunction] = ARRAY_STEPS
    changes: Mapping[str, StepFunction] = ARRAY_CHANGES

    def __init__(self, folder: str, form: ArrayWay, recorder: Recorder | None = None) -> None:
        super().__init__(folder, Way(contiguous=form.contiguous, meta=form.meta, sync=form.sync), recorder)
        self.form = form
        self.plain = np.zeros(form.shape, form.dtype)

    def state(self) -> tuple[Any, ...]:
        """Return the session's own account of what is in the array."""
        layers = tuple(sorted(self.vlmeta.items()))
        return self.plain.shape, self.plain.dtype.str, self.plain.tobytes(), layers, self.meta

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go back to a `state` of before."""
        shape, dtype, items, layers, self.meta = state
        self.plain = np.frombuffer(items, dtype).reshape(shape).copy()
        self.vlmeta = dict(layers)

    def seen(self, content: Any) -> tuple[Any, ...]:
        """Return what was found in an array in the form of `state`."""
        found: ArrayContent = content
        return *found[:3], found.schunk.vlmeta, dict(found.schunk.meta).get(self.LAYER)

    def array(self, rng: Random) -> NDArray:
        """Return one of the handles."""
        chosen: NDArray = rng.choice(self.handles)
        self._chosen = chosen
        return chosen

    def schunk(self, rng: Random) -> SChunk:
        """Return the super-chunk of one of the handles."""
        return self.array(rng).schunk

    def make(self) -> None:
        """Make the array anew, with one handle."""
        form = self.form
        self.plain = items_of(Random(3), form.shape, np.dtype(form.dtype))
        made = superchunk.asarray(
            self.plain,
            chunks=form.chunks,
            blocks=form.blocks,
            cparams=superchunk.CParams(codec=superchunk.Codec.LZ4, clevel=5, nthreads=1),
            dparams=superchunk.DParams(nthreads=1),
            contiguous=form.contiguous,
            urlpath=self._path,
            mode="w",
            sync=form.sync,
            meta={self.LAYER: bytes(form.meta)},
        )
        self.handles = [made]
        self.vlmeta = {}
        self.meta = made.meta.raw(self.LAYER)


def carry_on_array(path: str, content: ArrayContent) -> None:
    """Open the array at `path`, which holds `content`, for writing; change it and look again.

    Raises
    ------
    AssertionError
        It does not hold afterwards what it should.

    """
    plain = np.frombuffer(content.items, content.dtype).reshape(content.shape)
    larger = tuple(size + 2 for size in content.shape)
    expected = np.zeros(tuple(size + 2 + (not axis) for axis, size in enumerate(content.shape)), content.dtype)
    expected[tuple(map(slice, content.shape))] = plain
    expected[larger[0] :] = 5
    with superchunk.open(path, mode="a", dparams=superchunk.DParams(nthreads=1)) as array:
        array.resize(larger)
        array.append(np.full((1, *larger[1:]), 5, content.dtype))
    with superchunk.open(path, dparams=superchunk.DParams(nthreads=1)) as array:
        found = look_at(array)
    if found[:3] != (expected.shape, content.dtype, expected.tobytes()):
        msg = f"{path}: holds {found!r} after writing on from {content!r}"
        raise AssertionError(msg)
