"""Comparing chunks with their seals before they are decoded, for ``verify="read"``.

Source: docs/format/integrity.md, "Chunk seal" and "What a reader concludes".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from superchunk import _engine
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from superchunk._engine import Request, Source
    from superchunk._handle import Handle

__all__ = ["check_requests", "check_source"]

_STALE: Final = 2


def check_source(handle: Handle, nchunk: int, source: Source) -> None:
    """Compare chunk `nchunk` with its seal, if the handle was opened for that.

    Raises
    ------
    FormatError
        It is not what was sealed.

    """
    if handle.options.verify is not None:
        _check(handle, [(nchunk, source)])


def check_requests(handle: Handle, first: int, requests: Sequence[Request]) -> None:
    """Compare the chunks that `requests`, from chunk `first` on, read whole.

    Raises
    ------
    FormatError
        One is not what was sealed.

    """
    whole = [
        (nchunk, source)
        for nchunk, (source, nbytes, start, stop, _) in enumerate(requests, first)
        if start == 0 and stop == nbytes
    ]
    _check(handle, whole)


def _check(handle: Handle, chunks: Sequence[tuple[int, Source]]) -> None:
    if not handle.opened().sealed:
        return
    statuses = _engine.check_seals([source for _, source in chunks])
    for (nchunk, _), (status, cbytes) in zip(chunks, statuses, strict=True):
        if status == _STALE:
            raise FormatError(
                f"chunk {nchunk}",
                at=cbytes,
                expected="the seal of the chunk's bytes",
                found="another seal: the chunk is damaged",
            )
