"""What a notebook shows for an array: the card of its super-chunk, with shape and dtype on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

from superchunk._display.notebook_card import schunk_card

if TYPE_CHECKING:
    from superchunk._array.array_view import NDArrayLike

__all__ = ["array_card"]


def array_card(array: NDArrayLike) -> str:
    """Return the card of an array."""
    return schunk_card(array.schunk, type(array).__name__, lambda: _facts(array), lambda: array.nbytes)


def _facts(array: NDArrayLike) -> list[tuple[str, str]]:
    shape, chunks = array.shape, array.chunks
    grid = " x ".join(f"{-(-extent // part) if part else 0:,}" for extent, part in zip(shape, chunks, strict=True))
    return [
        ("shape", f"{shape} {array.dtype}"),
        ("chunks", f"{chunks}, {grid or 1} of them"),
        ("blocks", str(array.blocks)),
    ]
