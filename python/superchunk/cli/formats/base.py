"""The interface of all formats: a source to read boxes from, a target to write boxes to."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from superchunk.cli.errors import Failure
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from superchunk.cli.options import FilterChoice

__all__ = [
    "FOREIGN",
    "Box",
    "Plan",
    "Source",
    "Target",
    "blosc_shuffle",
    "fill_bytes",
    "nonzero",
    "require",
    "sensible_chunks",
]

Box = tuple[slice, ...]
"""One slice for each dimension, start and stop given, no step."""
FOREIGN: Final = (
    SuperchunkError,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    RuntimeError,
    ImportError,
    MemoryError,
)
"""What other libraries raise on files that they cannot read, and on values that do not fit."""
_SENSIBLE: Final = 2**20
"""Bytes of a chunk for formats that decode whole chunks."""
_SMALL, _LARGE = 2**14, 2**26
"""Chunks of a source are kept if they have this many bytes at least, and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be made, and how it is to be compressed."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill: bytes | None = None
    """The item that is where nothing was written; None for zeros."""
    dimensions: tuple[str, ...] | None = None
    """The name of each dimension, empty for one without; None: none has a name."""
    hint: tuple[int, ...] | None = None
    """The chunk shape of what is read."""
    chunks: tuple[int, ...] | None = None
    """The chunk shape that was asked for."""
    blocks: tuple[int, ...] | None = None
    """The block shape that was asked for."""
    chunksize: int | None = None
    """Bytes of a chunk of a stream, that were asked for."""
    codec: str | None = None
    """None for the format's usual one."""
    level: int | None = None
    filters: tuple[FilterChoice, ...] | None = None
    threads: int | None = None
    contiguous: bool = True
    """Whether a Blosc2 frame is one file."""
    zarr_format: int | None = None
    """2 or 3; None for 3, unless only 2 keeps the dtype."""

    @property
    def itemsize(self) -> int:
        """Bytes of an item."""
        return self.dtype.itemsize


class Source(ABC):
    """An array to read boxes from."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...] | None = None
    """What is decoded together; None for a stream."""
    fill: bytes | None = None
    dimensions: tuple[str, ...] | None = None
    """The name of each dimension, empty for one without; None: none has a name."""
    attributes: Mapping[str, object]

    @abstractmethod
    def read(self, box: Box) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the items of a box, of its shape."""

    def visit_written(self, visit: Callable[[tuple[int, ...]], object]) -> bool:
        """Tell the first item of each chunk that was written; all the others are the fill value.

        Returns
        -------
        bool
            Whether that is known; if not, nothing was told.

        """
        del visit
        return False

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""


@dataclass(slots=True, kw_only=True)
class Target(ABC):
    """An array to write boxes to."""

    chunks: tuple[int, ...] | None
    """What is compressed together: boxes are whole chunks, or end where the array does. None for a stream."""
    sequential: bool = False
    """Whether boxes must come one after the other in C order, each a run of items."""
    begins_filled: bool = False
    """Whether each item is the fill value until it is written."""
    resolved: dict[str, object] = field(default_factory=dict)
    """What is to be said about it afterwards."""
    without_dimensions: str = ""
    """Why it does not have the names of the dimensions that were planned; empty: it has them."""

    @abstractmethod
    def write(self, box: Box, values: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Write the items of a box."""

    @abstractmethod
    def set_attribute(self, name: str, value: object) -> None:
        """Keep a value; one of `FOREIGN` says why it cannot be kept."""

    def finish(self) -> None:  # noqa: B027  - most have nothing left to write
        """Write what is said only once everything is there."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file; after `finish` it is complete."""


def require(name: str, extra: str, what: str) -> ModuleType:
    """Import a package that an extra brings.

    Raises
    ------
    Failure
        It is not installed; the message says what brings it.

    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Failure(f'{what} needs {name}: pip install "superchunk[{extra}]" ({error})') from error


def nonzero(item: object, dtype: np.dtype[Any]) -> bytes | None:
    """Return the bytes of a fill value, None if it is zero or there is none that fits."""
    raw = fill_bytes(item, dtype)
    return raw if raw is not None and any(raw) else None


def fill_bytes(item: object, dtype: np.dtype[Any]) -> bytes | None:
    """Return the bytes of a fill value, None if it does not fit; no value stands for zero."""
    if item is None:
        return bytes(dtype.itemsize)
    try:
        raw = np.asarray(item, dtype).tobytes()
    except (TypeError, ValueError, OverflowError):
        return None
    return raw if len(raw) == dtype.itemsize else None


def sensible_chunks(plan: Plan) -> tuple[int, ...]:
    """Return a chunk shape for a format that always decodes whole chunks: of a megabyte or so.

    What was asked for comes first, then the source's if that is neither tiny nor huge. Otherwise the longest side
    is halved until the chunk is small enough.

    Examples
    --------
    >>> sensible_chunks(Plan(shape=(4000, 3000), dtype=np.dtype("f8")))
    (250, 375)

    """
    if plan.chunks is not None:
        return tuple(min(part, max(extent, 1)) for part, extent in zip(plan.chunks, plan.shape, strict=True))
    sides = [max(extent, 1) for extent in plan.shape]
    if plan.hint is not None:
        hint = [max(min(part, side), 1) for part, side in zip(plan.hint, sides, strict=True)]
        if _SMALL <= _product(hint) * plan.itemsize <= _LARGE:
            return tuple(hint)
    while _product(sides) * plan.itemsize > _SENSIBLE and max(sides) > 1:
        longest = sides.index(max(sides))
        sides[longest] = -(-sides[longest] // 2)
    return tuple(sides)


def _product(numbers: list[int]) -> int:
    product = 1
    for number in numbers:
        product *= number
    return product


def blosc_shuffle(plan: Plan, what: str) -> str:
    """Return the one filter that formats with Blosc's codec have: ``noshuffle``, ``shuffle`` or ``bitshuffle``.

    Raises
    ------
    Failure
        Others were asked for.

    """
    names = ["shuffle"] if plan.filters is None else [str(step) for step in plan.filters if str(step) != "none"]
    if not names:
        return "noshuffle"
    if names not in (["shuffle"], ["bitshuffle"]):
        raise Failure(f"{what} supports one of the filters shuffle, bitshuffle and none; got {', '.join(names)}")
    return names[0]
