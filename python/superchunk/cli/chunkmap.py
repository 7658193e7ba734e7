"""The chunk map as a strip of block characters, and as JSON.

::

      map           ▂▂▃▃▇▇▇▁▁··▂▂      each a chunk, or some neighbours: the higher, the better compressed
                    ▁ 1x … █ 100x and more, · one special value, ! damaged

In a terminal the characters have the colours that the notebook's card has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from superchunk.cli import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from superchunk import MapCell

__all__ = ["cells_as_json", "character", "print_strip"]

HEIGHTS: Final = "▁▂▃▄▅▆▇█"


def character(cell: MapCell) -> str:
    """Return the character for a cell."""
    if cell.damaged:
        return "!"
    if cell.special is not None:
        return "·"
    return HEIGHTS[round(cell.level * (len(HEIGHTS) - 1))]


def print_strip(cells: Sequence[MapCell], nchunks: int) -> None:
    """Print the strip and how to read it; nothing without chunks."""
    from rich.text import Text  # only commands that draw pay for it

    if not cells:
        return
    strip = Text("  map           ")
    for cell in cells:
        strip.append(character(cell), style=cell.colour)
    legend = [f"{HEIGHTS[0]} 1x to {HEIGHTS[-1]} 100x and more"]
    if any(cell.special is not None for cell in cells):
        legend.append("· one special value")
    if any(cell.damaged for cell in cells):
        legend.append("! damaged")
    looked = sum(cell.looked for cell in cells)
    if looked < nchunks:
        legend.append(f"{looked:,} of {nchunks:,} chunks inspected")
    out = output.console()
    out.print(strip)
    out.print(Text(" " * 16 + ", ".join(legend), style="dim"))


def cells_as_json(cells: Sequence[MapCell]) -> list[dict[str, Any]]:
    """Return the cells as JSON can hold them."""
    return [
        {
            "first": cell.first,
            "stop": cell.stop,
            "looked": cell.looked,
            "nbytes": cell.nbytes,
            "cbytes": cell.cbytes,
            "ratio": round(cell.ratio, 4),
            "special": None if cell.special is None else cell.special.name.lower(),
            "damaged": cell.damaged,
        }
        for cell in cells
    ]
