"""What a session can do to a super-chunk, step by step, each with its own plain account of it.

A step takes the session and its own source of choices. It returns what the library promises
on its return: ``""`` nothing, ``"committed"`` to survive the end of the process,
``"durable"`` to survive a loss of power; or None if it makes no sense just now.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from superchunk import CParams, SpecialValue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from crashlab.judge import Promise
    from crashlab.session import Session

__all__ = ["CHANGES", "STEPS", "TYPESIZE", "StepFunction"]

StepFunction: TypeAlias = "Callable[[Session, Random], Promise | None]"

TYPESIZE: Final = 4
_LAYERS: Final = ("a", "bb", "name", "x" * 31)
_LAYER_SIZES: Final = (0, 5, 60, 600, 1500)
_CHUNK_SIZES: Final = (4, 40, 480, 800, 2000)
_MANY: Final = 120


class DroppedError(Exception):
    """What a transaction that is to be dropped ends with."""


def content(rng: Random, nbytes: int) -> bytes:
    """Return bytes that do not compress, do, or are all the same."""
    match rng.randrange(5):
        case 0:
            return bytes(nbytes)
        case 1:
            return rng.randbytes(TYPESIZE) * (nbytes // TYPESIZE)
        case 2:
            first = rng.randrange(1 << 24)
            return b"".join((first + n).to_bytes(4, "little") for n in range(nbytes // 4))
        case _:
            return rng.randbytes(nbytes)


def _chunk(session: Session, rng: Random) -> bytes:
    varying = session.way.varying
    return content(rng, rng.choice(_CHUNK_SIZES) if varying else session.way.chunksize)


def append(session: Session, rng: Random) -> Promise | None:
    """Append a chunk."""
    if not session.full:
        return None
    plain = _chunk(session, rng)
    session.schunk(rng).append_data(plain)
    session.chunks.append(plain)
    return ""


def append_short(session: Session, rng: Random) -> Promise | None:
    """Append a chunk that is shorter than the others, after which none may follow."""
    if not session.full or session.way.varying:
        return None
    plain = content(rng, TYPESIZE * rng.randint(1, session.way.chunksize // TYPESIZE - 1))
    session.schunk(rng).append_data(plain)
    session.chunks.append(plain)
    return ""


def insert(session: Session, rng: Random) -> Promise | None:
    """Insert a chunk."""
    last = len(session.chunks) if session.full else len(session.chunks) - 1
    nchunk = rng.randint(0, last)
    plain = _chunk(session, rng)
    session.schunk(rng).insert_data(nchunk, plain, copy=False)
    session.chunks.insert(nchunk, plain)
    return ""


def update(session: Session, rng: Random) -> Promise | None:
    """Replace a chunk, whose compressed size grows or shrinks or becomes nothing."""
    if not session.chunks:
        return None
    nchunk = rng.randrange(len(session.chunks))
    plain = _chunk(session, rng)
    if not session.way.varying and nchunk == len(session.chunks) - 1:
        plain = plain[: len(session.chunks[nchunk])]
    session.schunk(rng).update_data(nchunk, plain, copy=True)
    session.chunks[nchunk] = plain
    return ""


def update_special(session: Session, rng: Random) -> Promise | None:
    """Replace a chunk by a special value."""
    if not session.chunks:
        return None
    nchunk = rng.randrange(len(session.chunks))
    nitems = len(session.chunks[nchunk]) // TYPESIZE
    value = rng.choice([None, rng.randbytes(TYPESIZE)])
    kind = SpecialValue.ZERO if value is None else SpecialValue.VALUE
    session.schunk(rng).update_special(nchunk, kind, value)
    session.chunks[nchunk] = (value or bytes(TYPESIZE)) * nitems
    return ""


def delete(session: Session, rng: Random) -> Promise | None:
    """Delete a chunk, perhaps the last one that there is."""
    if not session.chunks:
        return None
    nchunk = rng.randrange(len(session.chunks))
    session.schunk(rng).delete_chunk(nchunk)
    del session.chunks[nchunk]
    return ""


def delete_all(session: Session, rng: Random) -> Promise | None:
    """Delete chunk after chunk until there is none; for a few only."""
    if not 1 <= len(session.chunks) <= 3:
        return None
    schunk = session.schunk(rng)
    with session.transaction_of(schunk):
        for _ in range(len(session.chunks)):
            schunk.delete_chunk(0)
    session.chunks.clear()
    return "durable"


def reorder(session: Session, rng: Random) -> Promise | None:
    """Put the chunks into another order."""
    if not session.chunks or not session.full:
        return None
    order = list(range(len(session.chunks)))
    rng.shuffle(order)
    session.schunk(rng).reorder_offsets(order)
    session.chunks[:] = [session.chunks[nchunk] for nchunk in order]
    return ""


def assign(session: Session, rng: Random) -> Promise | None:
    """Overwrite items, across chunks."""
    if not session.chunks or session.way.varying:
        return None
    nitems = sum(map(len, session.chunks)) // TYPESIZE
    start = rng.randrange(nitems)
    stop = min(rng.randint(start + 1, start + 2 * session.way.chunksize // TYPESIZE), nitems)
    _assign(session, rng, start, stop)
    return ""


def grow(session: Session, rng: Random) -> Promise | None:
    """Overwrite items past the end."""
    if session.way.varying:
        return None
    nitems = sum(map(len, session.chunks)) // TYPESIZE
    start = rng.randint(max(nitems - 300, 0), nitems)
    _assign(session, rng, start, nitems + rng.randint(1, 700))
    return ""


def grow_much(session: Session, rng: Random) -> Promise | None:
    """Add so many chunks that the index takes more than a sector; once."""
    if session.way.varying or len(session.chunks) > _MANY:
        return None
    nitems = sum(map(len, session.chunks)) // TYPESIZE
    _assign(session, rng, nitems, nitems + _MANY * session.way.chunksize // TYPESIZE)
    return ""


def _assign(session: Session, rng: Random, start: int, stop: int) -> None:
    step = session.way.chunksize
    patch = b"".join(content(rng, step) for _ in range((stop - start) * TYPESIZE // step + 1))
    patch = patch[: (stop - start) * TYPESIZE]
    session.schunk(rng)[start:stop] = patch
    plain = b"".join(session.chunks)
    plain = plain[: start * TYPESIZE] + patch + plain[stop * TYPESIZE :]
    session.chunks[:] = [plain[at : at + step] for at in range(0, len(plain), step)]


def fill(session: Session, rng: Random) -> Promise | None:
    """Fill an empty frame with one value, some chunks of it."""
    if session.chunks or session.way.varying:
        return None
    nitems = rng.randint(1, 5 * session.way.chunksize // TYPESIZE)
    session.schunk(rng).fill_special(nitems, SpecialValue.ZERO)
    plain, step = bytes(nitems * TYPESIZE), session.way.chunksize
    session.chunks[:] = [plain[at : at + step] for at in range(0, len(plain), step)]
    return ""


def set_vlmeta(session: Session, rng: Random) -> Promise | None:
    """Add a variable metalayer, or change one."""
    name, raw = rng.choice(_LAYERS), rng.randbytes(rng.choice(_LAYER_SIZES))
    session.schunk(rng).vlmeta.set_raw(name, raw)
    session.vlmeta[name] = raw
    return "committed"


def delete_vlmeta(session: Session, rng: Random) -> Promise | None:
    """Remove a variable metalayer."""
    if not session.vlmeta:
        return None
    name = rng.choice(sorted(session.vlmeta))
    del session.schunk(rng).vlmeta[name]
    del session.vlmeta[name]
    return "committed"


def set_meta(session: Session, rng: Random) -> Promise | None:
    """Change the fixed metalayer."""
    raw = rng.randbytes(len(session.meta))
    session.schunk(rng).meta.set_raw(session.LAYER, raw)
    session.meta = raw
    return "committed"


def settings(session: Session, rng: Random) -> Promise | None:
    """Compress otherwise from now on, which the frame records."""
    session.schunk(rng).cparams = CParams(typesize=TYPESIZE, codec=1, clevel=rng.randint(1, 9), nthreads=1)
    return ""


def flush(session: Session, rng: Random) -> Promise | None:
    """Commit, down to the disk."""
    session.schunk(rng).flush()
    return "durable"


def reopen(session: Session, _rng: Random) -> Promise | None:
    """Close all handles, and open the frame again."""
    session.close_all()
    session.open_another()
    return "committed"


def open_another(session: Session, _rng: Random) -> Promise | None:
    """Open a further handle for writing."""
    if len(session.handles) > 2:
        return None
    session.open_another()
    return "committed"


def close_one(session: Session, rng: Random) -> Promise | None:
    """Close one of several handles."""
    if len(session.handles) == 1:
        return None
    session.handles.pop(rng.randrange(len(session.handles))).close()
    return "committed"


def replace(session: Session, _rng: Random) -> Promise | None:
    """Make a new frame in the place of the old one."""
    session.close_all()
    session.make()
    return "committed"


def compact(session: Session, rng: Random) -> Promise | None:
    """Give dead bytes back."""
    session.compact(session.schunk(rng))
    return "committed"


def transaction(session: Session, rng: Random) -> Promise | None:
    """Make a few changes at once."""
    before = session.state()
    with session.transaction_of(session.schunk(rng)):
        _some_changes(session, rng)
    # One that changes nothing, such as putting a lone chunk in order, promises nothing.
    return "" if before == session.state() else "durable"


def dropped_transaction(session: Session, rng: Random) -> Promise | None:
    """Make a few changes, and let them be dropped."""
    before = session.state()
    with suppress(DroppedError), session.transaction_of(session.schunk(rng)):
        _some_changes(session, rng)
        raise DroppedError
    session.restore(before)
    return ""


def _some_changes(session: Session, rng: Random) -> None:
    for _ in range(rng.randint(1, 4)):
        change = session.changes[rng.choice(sorted(session.changes))]
        change(session, rng)


CHANGES: Final[Mapping[str, StepFunction]] = {
    "append": append,
    "append_short": append_short,
    "insert": insert,
    "update": update,
    "update_special": update_special,
    "delete": delete,
    "reorder": reorder,
    "assign": assign,
    "grow": grow,
    "fill": fill,
    "set_vlmeta": set_vlmeta,
    "delete_vlmeta": delete_vlmeta,
    "set_meta": set_meta,
}
"""Steps that change the content, and may be part of a transaction."""

STEPS: Final[Mapping[str, StepFunction]] = {
    **CHANGES,
    "grow_much": grow_much,
    "delete_all": delete_all,
    "settings": settings,
    "flush": flush,
    "reopen": reopen,
    "open_another": open_another,
    "close_one": close_one,
    "replace": replace,
    "compact": compact,
    "transaction": transaction,
    "dropped_transaction": dropped_transaction,
}
"""All of them."""
