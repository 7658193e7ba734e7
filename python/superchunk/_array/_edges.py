"""Edges of boxes: lengths near a wanted one that pad little, and of a product near a wanted one.

A box has a length for each dimension, its edges. Arithmetic only; what boxes are for is said in `partition`.

Source: docs/partitions.md.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["choose_edges"]

_MANY: Final = 64
"""From so many pieces on, a power of two pads next to nothing."""

_FAR: Final = 4
"""How many times longer or shorter than wanted an edge may be, if it is a whole, a single item, or care is much."""

_MUCH_CARE: Final = 50


def choose_edges(sizes: Sequence[int], target: float, stretch: float, care: float) -> tuple[int, ...]:
    """Return edges with a product of about `target`.

    Dimensions no longer than the others' edges are one piece. The others get equal edges, but for the
    last of them, which gets longer ones: its items lie side by side. Where two in each do not fit
    direction, the last dimensions are one piece and the first are cut into single items.

    Parameters
    ----------
    sizes
        What is cut, for each dimension; 0 gives an edge of 0.
    target
        The product wanted, at least 1. Not exceeded by more than a few times.
    stretch
        How many times longer the last edge is than another in two dimensions; of d dimensions the root of
        d - 1 of that.
    care
        How much padding counts against another length than the wanted one.

    """
    edges = [min(size, 1) for size in sizes]
    cut = [i for i, size in enumerate(sizes) if size > 1]
    longer = equal = 1.0
    while cut:
        longer = min(stretch ** (1 / (len(cut) - 1)), max(target, 1.0)) if len(cut) > 1 else 1.0
        equal = (target / longer) ** (1 / len(cut))
        wanted = {i: equal * longer if i == cut[-1] else equal for i in cut}
        thin = min(cut, key=lambda i: (sizes[i] / wanted[i], -i))
        if sizes[thin] > wanted[thin]:
            break
        edges[thin] = sizes[thin]
        target /= sizes[thin]
        cut.remove(thin)
    if equal < 2:  # too few for two items in each direction
        for i in reversed(cut):
            edges[i] = _fit(sizes[i], min(target, sizes[i]), care) if target >= 2 else 1
            target /= edges[i]
        return tuple(edges)
    for done, i in enumerate(cut):
        left = len(cut) - done
        edges[i] = _fit(sizes[i], target if left == 1 else (target / longer) ** (1 / left), care)
        target /= edges[i]
    return tuple(edges)


def _fit(size: int, wanted: float, care: float) -> int:
    """Return an edge from half to twice the wanted one that pads little; the ends of the scale may be farther."""
    if size <= wanted:
        return size
    power = 1 << max(round(log2(wanted)), 0) if wanted > 1 else 1
    if size >= _MANY * wanted:
        return power
    reach = 2 if care < _MUCH_CARE else _FAR
    low, high = max(wanted / reach, 1.0), min(wanted * reach, size)
    edges = {power} | {-(-size // pieces) for pieces in range(max(int(size / high), 1), int(size / low) + 2)}
    near = {edge for edge in edges if low <= edge <= high}
    near |= {edge for edge in (1, size) if wanted / _FAR <= edge <= wanted * _FAR}
    return min(near, key=lambda edge: _cost(size, edge, wanted, care))


def _cost(size: int, edge: int, wanted: float, care: float) -> tuple[float, int]:
    """Return how bad an edge is; powers of two are better than others, and a cut is better than none."""
    padded = -(-size // edge) * edge / size - 1
    odd = (0.0 if edge & (edge - 1) == 0 else 0.3) + (0.5 if edge == size and care < _MUCH_CARE else 0.0)
    return (care * padded + abs(log2(edge / wanted)) + odd, -edge)
