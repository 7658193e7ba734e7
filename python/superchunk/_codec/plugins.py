"""Codecs and filters that a user wrote in Python.

Two registries, id to functions, and the step that turns them into what the engine
calls. User functions get arrays of their own, never the engine's memory, so one
that keeps its arguments can do no harm.

Runs nothing itself; which SChunk may use them is `superchunk.schunk`'s to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from superchunk import _engine
from superchunk.exceptions import UnsupportedError
from superchunk.params import GLOBAL_REGISTERED_CODECS_STOP, USER_REGISTERED_CODECS_STOP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "HookOwner",
    "hooks_for",
    "is_user_id",
    "register_codec",
    "register_filter",
    "ucodecs_registry",
    "ufilters_registry",
]

HookOwner: TypeAlias = "Callable[[], object | None]"
"""Returns the SChunk that user codecs and filters get, None if it no longer exists."""
UserFunction: TypeAlias = "Callable[[NDArray[np.uint8], NDArray[np.uint8], int, Any], Any]"

ucodecs_registry: Final[dict[int, tuple[str, UserFunction, UserFunction]]] = {}
"""Codec id -> (name, encoder, decoder)."""
ufilters_registry: Final[dict[int, tuple[UserFunction, UserFunction]]] = {}
"""Filter id -> (forward, backward)."""


def is_user_id(ident: int) -> bool:
    """Return whether `ident` is in the range of user codecs and filters, 160 to 255."""
    return GLOBAL_REGISTERED_CODECS_STOP < ident <= USER_REGISTERED_CODECS_STOP


def _check_functions(**functions: object) -> None:
    for name, function in functions.items():
        if function is not None and not callable(function):
            msg = f"{name}: expected a function, got {function!r}"
            raise TypeError(msg)


def _check_id(ident: int, taken: object) -> None:
    if not hasattr(ident, "__index__"):
        msg = f"id: expected an integer, got {ident!r}"
        raise TypeError(msg)
    if not is_user_id(ident):
        msg = f"id: expected {GLOBAL_REGISTERED_CODECS_STOP + 1} to {USER_REGISTERED_CODECS_STOP}, got {ident}"
        raise ValueError(msg)
    if taken:
        msg = f"id: {ident} is in use"
        raise ValueError(msg)


def register_codec(
    codec_name: str,
    id: int,
    encoder: UserFunction | None = None,
    decoder: UserFunction | None = None,
    version: int = 1,
) -> None:
    """Register a codec written in Python.

    Parameters
    ----------
    codec_name
        Its name.
    id
        160 to 255, not in use.
    encoder, decoder
        ``f(input, output, meta, schunk) -> int``: `input` and `output` are uint8
        arrays over one block (the encoder's `output` is a little shorter), `meta`
        is the `codec_meta`. They return how many bytes they wrote; an encoder
        that returns 0 has the block stored as it is. With neither, the name is
        for an installed plugin, and there is none.
    version
        Taken for compatibility.

    Raises
    ------
    ValueError
        `id` is out of range or in use, or only one function is given.

    """
    del version
    _check_id(id, id in ucodecs_registry)
    _check_functions(encoder=encoder, decoder=decoder)
    if (encoder is None) != (decoder is None):
        msg = "encoder, decoder: expected both functions, or neither"
        raise ValueError(msg)
    if encoder is not None and decoder is not None:
        ucodecs_registry[id] = (codec_name, encoder, decoder)


def register_filter(
    id: int,
    forward: UserFunction | None = None,
    backward: UserFunction | None = None,
    name: str | None = None,
) -> None:
    """Register a filter written in Python.

    Parameters
    ----------
    id
        160 to 255, not in use.
    forward, backward
        ``f(input, output, meta, schunk)`` fills `output`, a uint8 array of the
        length of `input`; `meta` is the filter's entry in `filters_meta`.
    name
        Stands for an installed plugin when no functions are given; there is none.

    Raises
    ------
    ValueError
        `id` is out of range or in use, only one function is given, or neither
        functions nor a name.

    """
    _check_id(id, id in ufilters_registry)
    _check_functions(forward=forward, backward=backward)
    if (forward is None) != (backward is None):
        msg = "forward, backward: expected both functions, or neither"
        raise ValueError(msg)
    if forward is not None and backward is not None:
        ufilters_registry[id] = (forward, backward)
    elif not name:
        msg = "register_filter: expected a name, or both functions"
        raise ValueError(msg)


def _wrap(function: UserFunction, owner: HookOwner) -> Callable[[memoryview, memoryview, int], int]:
    def call(src: memoryview, dst: memoryview, meta: int) -> int:
        import numpy as np  # only users of Python codecs need it here

        output = np.zeros(len(dst), dtype=np.uint8)
        written = function(np.frombuffer(bytes(src), dtype=np.uint8), output, meta, owner())
        dst[:] = output.data
        return len(dst) if written is None else int(written)

    return call


def hooks_for(
    owner: HookOwner, more: Mapping[int, tuple[Callable[..., int], Callable[..., int]]] | None = None
) -> _engine.Hooks | None:
    """Return what is registered, bound to one SChunk, and `more` codecs; None when there is nothing."""
    if not ucodecs_registry and not ufilters_registry and not more:
        return None
    return _engine.Hooks(
        {i: (_wrap(encode, owner), _wrap(decode, owner)) for i, (_, encode, decode) in ucodecs_registry.items()}
        | dict(more or {}),
        {i: (_wrap(forward, owner), _wrap(back, owner)) for i, (forward, back) in ufilters_registry.items()},
    )


def check_available(codec: int, filters: bytes, nthreads: int) -> bool:
    """Return whether `codec` or one of `filters` is a user's, after checking that they can run.

    Raises
    ------
    UnsupportedError
        One has a user's id but no functions.
    ValueError
        One is written in Python and `nthreads` is over 1.

    """
    users = [("codec", codec, codec in ucodecs_registry)] if is_user_id(codec) else []
    users += [("filter", ident, ident in ufilters_registry) for ident in filters if is_user_id(ident)]
    for what, ident, registered in users:
        if not registered:
            raise UnsupportedError(what, ident, "no functions registered, and plugins are not loaded")
    if users and nthreads > 1:
        msg = f"nthreads: expected 1 with a Python codec or filter, in cparams and dparams, got {nthreads}"
        raise ValueError(msg)
    return bool(users)
