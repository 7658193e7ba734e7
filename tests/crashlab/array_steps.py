"""What a session can do to an array, step by step, each with NumPy's account of it.

Those that concern metalayers, handles and transactions are the ones of super-chunks, see `steps`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from crashlab.steps import CHANGES, STEPS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from numpy.typing import NDArray as NumpyArray

    from crashlab.array_session import ArraySession
    from crashlab.judge import Promise
    from crashlab.session import Session
    from crashlab.steps import StepFunction

__all__ = ["ARRAY_CHANGES", "ARRAY_STEPS", "items_of"]

_MOST_ITEMS: Final = 6000
"""Items above which an array grows no more."""
_SHARED_CHANGES: Final = ("set_vlmeta", "delete_vlmeta", "set_meta")
_SHARED: Final = (
    "compact",
    "close_one",
    "dropped_transaction",
    "flush",
    "open_another",
    "reopen",
    "replace",
    "transaction",
)


def items_of(rng: Random, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NumpyArray[Any]:
    """Return items that are all zero, all the same, in a row, or anything; never zero by chance."""
    count = int(np.prod(shape))
    first = rng.randrange(1, 1 << 24)
    match rng.randrange(5):
        case 0:
            made = np.zeros(count, np.int64)
        case 1:
            made = np.full(count, first, np.int64)
        case 2:
            made = np.arange(first, first + count)
        case _:
            made = np.frombuffer(rng.randbytes(4 * count), "<u4").astype(np.int64) | 1
    return made.astype(dtype).reshape(shape)


def assign(session: Session, rng: Random) -> Promise | None:
    """Overwrite a box, in whole chunks and in parts of chunks."""
    array = _session(session)
    if 0 in array.plain.shape:
        return None
    key = tuple(_some_slice(rng, size) for size in array.plain.shape)
    values = items_of(rng, array.plain[key].shape, array.plain.dtype)
    array.array(rng)[key] = values
    array.plain[key] = values
    return ""


def assign_value(session: Session, rng: Random) -> Promise | None:
    """Overwrite everything with one value, which chunks need not store."""
    array = _session(session)
    if not array.plain.size:
        return None
    value = rng.choice((0, 77))
    array.array(rng)[...] = value
    array.plain[...] = value
    return ""


def assign_points(session: Session, rng: Random) -> Promise | None:
    """Overwrite items here and there."""
    array = _session(session)
    if 0 in array.plain.shape:
        return None
    key = tuple(np.array([rng.randrange(size) for _ in range(4)]) for size in array.plain.shape)
    value = rng.randrange(1, 1000)
    array.array(rng)[key] = value
    array.plain[key] = value
    return ""


def grow(session: Session, rng: Random) -> Promise | None:
    """Resize to something larger, within the edge chunks or beyond them."""
    shape = _session(session).plain.shape
    return _resize(session, rng, tuple(size + rng.choice((0, 1, 3, 9)) for size in shape))


def shrink(session: Session, rng: Random) -> Promise | None:
    """Resize to something smaller, perhaps to nothing."""
    shape = _session(session).plain.shape
    return _resize(session, rng, tuple(max(size - rng.choice((0, 0, 1, 4, 9, 30)), 0) for size in shape))


def reshape(session: Session, rng: Random) -> Promise | None:
    """Resize to something that is larger here and smaller there, so that chunks change their places."""
    shape = _session(session).plain.shape
    return _resize(session, rng, tuple(rng.choice((size, size + 5, max(size - 5, 1), 13)) for size in shape))


def _resize(session: Session, rng: Random, shape: tuple[int, ...]) -> Promise | None:
    array = _session(session)
    if shape == array.plain.shape or np.prod(shape) > _MOST_ITEMS:
        return None
    array.array(rng).resize(shape)
    grown = np.zeros(shape, array.plain.dtype)
    common = tuple(slice(min(sizes)) for sizes in zip(shape, array.plain.shape, strict=True))
    grown[common] = array.plain[common]
    array.plain = grown
    return "committed"


def append(session: Session, rng: Random) -> Promise | None:
    """Append along an axis, with chunks that are filled up or without."""
    return _append(session, rng, rng.choice((1, 2, 4, 11)))


def append_much(session: Session, rng: Random) -> Promise | None:
    """Append so much that the index takes more than a sector."""
    return _append(session, rng, 150)


def _append(session: Session, rng: Random, length: int) -> Promise | None:
    array = _session(session)
    axis = rng.randrange(array.plain.ndim)
    shape = array.plain.shape
    if np.prod(shape) + np.prod((*shape[:axis], length, *shape[axis + 1 :])) > _MOST_ITEMS:
        return None
    more = items_of(rng, (*shape[:axis], length, *shape[axis + 1 :]), array.plain.dtype)
    array.array(rng).append(more, axis=axis)
    array.plain = np.concatenate([array.plain, more], axis).astype(more.dtype)  # in its byte order
    return ""


def _some_slice(rng: Random, size: int) -> slice:
    start = rng.randrange(size)
    return slice(start, rng.randint(start + 1, size), rng.choice((1, 1, 1, 2)))


def _session(session: Session) -> ArraySession:
    return cast("ArraySession", session)


ARRAY_CHANGES: Final[Mapping[str, StepFunction]] = {
    "append": append,
    "assign": assign,
    "assign_value": assign_value,
    "assign_points": assign_points,
    "grow": grow,
    "shrink": shrink,
    "reshape": reshape,
    **{name: CHANGES[name] for name in _SHARED_CHANGES},
}
"""Steps that change the content, and may be part of a transaction."""

ARRAY_STEPS: Final[Mapping[str, StepFunction]] = {
    **ARRAY_CHANGES,
    "append_much": append_much,
    **{name: STEPS[name] for name in _SHARED},
}
"""All of them."""
