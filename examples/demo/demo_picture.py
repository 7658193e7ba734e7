"""The demonstration's picture: one field, and the chunks of its frame beneath it.

Each bar of the chunk map is a chunk, in file order; its height and colour say how many times
smaller it became.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from demo_data import Field

__all__ = ["draw"]

LAND = "#d9d4c7"
INK = "#333333"
FAINT = "#8a8a8a"
UNITS = {"degree_C": "°C", "degC": "°C"}


def draw(field: Field, ratios: Sequence[float], choice: str, target: Path) -> None:
    """Draw the first map of `field` and the ratio of each chunk of its frame.

    Parameters
    ----------
    field
        Maps, one a time step: shape (steps, rows, columns).
    ratios
        How many times smaller each chunk is, in the frame's order.
    choice
        Codec and filters of the frame.
    target
        The PNG file; replaced if it exists.

    """
    import matplotlib as mpl  # of the extra "demo"

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    steps, rows, columns = field.values.shape
    first = field.values[0]
    values = np.ma.masked_where(first == field.fill_value, first)
    figure, (above, below) = plt.subplots(
        2,
        1,
        figsize=(9.6, 9.4),
        height_ratios=(4.6, 1),
        layout="constrained",
    )
    try:
        figure.suptitle(
            f"{field.name.capitalize()}, stored in a contiguous frame", fontsize=15, color=INK, x=0.012, ha="left"
        )
        colours = plt.get_cmap("turbo").with_extremes(bad=LAND)
        image = above.imshow(values, origin="lower", cmap=colours, interpolation="nearest", aspect="auto")
        bar = figure.colorbar(image, ax=above, pad=0.015, aspect=32)
        bar.set_label(UNITS.get(field.units, field.units), color=INK)
        bar.outline.set_visible(False)
        above.set_xlabel("column of the model's grid", color=INK)
        above.set_ylabel("row of the model's grid", color=INK)
        above.set_title(
            f"month 1 of {steps}: {rows} x {columns} items of {field.values.dtype}; grey is land",
            loc="left",
            fontsize=10,
            color=FAINT,
        )
        above.spines[:].set_color(FAINT)
        chunk_rows = field.chunk_items // columns
        _draw_chunk_map(below, ratios, steps, f"chunk map: {choice}; a chunk is {chunk_rows} rows")
        figure.savefig(target, dpi=130)
    finally:
        plt.close(figure)


def _draw_chunk_map(axes: Any, ratios: Sequence[float], steps: int, title: str) -> None:
    """Draw one bar for each chunk."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import LogNorm

    heights = np.asarray(ratios)
    norm = LogNorm(vmin=max(float(heights.min()), 1.0), vmax=max(float(heights.max()), 2.0))
    axes.bar(np.arange(len(heights)), heights, width=0.86, color=plt.get_cmap("viridis")(norm(heights)))
    axes.set_yscale("log")
    axes.set_xlim(-0.7, len(heights) - 0.3)
    axes.set_ylim(bottom=1)
    axes.set_xlabel("chunk, in the order of the file", color=INK)
    axes.set_ylabel("times smaller", color=INK)
    axes.set_title(title, loc="left", fontsize=10, color=FAINT)
    axes.yaxis.set_major_formatter("{x:g}x")
    axes.spines[["top", "right"]].set_visible(False)
    for step in range(steps):
        edge = len(heights) * step / steps - 0.5
        if step:
            axes.axvline(edge, color=FAINT, linewidth=0.8, linestyle=":")
        middle = edge + len(heights) / steps / 2
        axes.text(middle, heights.max() / 1.6, f"month {step + 1}", color=FAINT, fontsize=9, ha="center")
