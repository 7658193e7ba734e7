"""The picture of the matrix: speed against ratio, ours and theirs, a panel for each data set.

``python benchmarks/picture.py benchmarks/results/amd-epyc/matrix.json docs/benchmarks.png`` draws it from a record. A
line joins levels 1, 5 and 9 of a codec with one filter: further right is smaller, further up is faster.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matrix_summary import cells_of
from pairs import read_record

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matrix_summary import Cell

SHOWN = "shuffle"
"""The filter that is drawn: what both packages do by default."""
COLOURS = {"blosclz": "#7b5ea7", "lz4": "#d1495b", "lz4hc": "#e8963a", "zlib": "#4f8f4a", "zstd": "#2a6f97"}
INK, FAINT = "#333333", "#8a8a8a"
COLUMNS = 5
NARROW = 0.02
"""Ratios closer than this are shown as one: nothing gets smaller."""


def draw(record: Mapping[str, Any], target: Path) -> None:
    """Draw the cells of a record into a PNG file."""
    cells = [one for one in cells_of(record) if one.filters == SHOWN and one.threads == 1]
    names = list(dict.fromkeys(one.data for one in cells))
    columns = min(COLUMNS, max(len(names), 1))
    bands = max(-(-len(names) // columns), 1)
    figure, axes = plt.subplots(
        2 * bands, columns, figsize=(3.5 * columns, 5.6 * bands + 1.2), squeeze=False, layout="constrained"
    )
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - 0.9 / (5.6 * bands + 1.2)))  # type: ignore[union-attr, call-arg]
    for panel in axes.flat:
        panel.set_visible(False)
    for number, name in enumerate(names):
        some = [one for one in cells if one.data == name]
        for row, direction in enumerate(("compress", "decompress")):
            panel = axes[number // columns * 2 + row][number % columns]
            draw_panel(panel, some, direction)
            if row == 0:
                panel.set_title(
                    name + (" (held out)" if some[0].held_out else ""), loc="left", color=INK, weight="bold"
                )
            if number % columns == 0:
                panel.set_ylabel(f"{direction}, MB/s", color=INK)
            if row == 1:
                panel.set_xlabel("times smaller", color=INK)
    handles = [Line2D([], [], color=colour, marker="o", label=codec) for codec, colour in COLOURS.items()]
    handles.append(Line2D([], [], color=INK, marker="o", label="superchunk"))
    handles.append(Line2D([], [], color=INK, marker="o", mfc="white", linestyle=":", label="blosc2"))
    title = f"Speed against ratio, one thread, {SHOWN}, levels 1, 5 and 9: right is smaller, up is faster"
    figure.suptitle(title, x=0.01, ha="left", fontsize=15, color=INK)
    figure.legend(
        handles=handles,
        loc="upper left",
        ncols=len(handles),
        frameon=False,
        bbox_to_anchor=(0.005, 1 - 0.42 / figure.get_figheight()),
    )
    figure.savefig(target, dpi=80)
    plt.close(figure)


def draw_panel(panel: Any, cells: list[Cell], direction: str) -> None:
    """Draw one direction of one data set."""
    panel.set_visible(True)
    for codec, colour in COLOURS.items():
        line = sorted((one for one in cells if one.codec == codec), key=lambda one: one.level)
        if not line:
            continue
        ratios, speeds = [one.ratio for one in line], [getattr(one, direction) for one in line]
        panel.plot(ratios, speeds, color=colour, marker="o", markersize=5, linewidth=1.4, zorder=3)
        ratios = [one.ratio_theirs for one in line]
        speeds = [getattr(one, f"{direction}_theirs") for one in line]
        panel.plot(ratios, speeds, color=colour, marker="o", markersize=5, mfc="white", linestyle=":", linewidth=1.2)
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.margins(x=0.08)
    low, high = panel.get_xlim()
    if high - low < NARROW:
        panel.set_xlim(low - NARROW, high + NARROW)
    panel.grid(color="#e6e6e6", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[:].set_color(FAINT)
    panel.tick_params(colors=INK, labelsize=9)


if __name__ == "__main__":
    draw(read_record(Path(sys.argv[1])), Path(sys.argv[2]))
