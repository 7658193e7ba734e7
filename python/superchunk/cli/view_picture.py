"""The picture of ``superchunk view``.

::

    two dimensions      | items             | chunks |       beside each other, on the same scale of rows
    one                 | items                      |       above each other, on the same scale of items
                        | chunks, a bar for each     |

Colours of the chunks are those of the card that a notebook shows: darker is larger, grey is one special value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.dates
import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap, LogNorm, Normalize

if TYPE_CHECKING:
    from pathlib import Path

    from superchunk.cli.view import ChunkGrid, View

__all__ = ["draw"]

_DATES: Final[Any] = matplotlib.dates
"""The module, which has no types."""
INK: Final = "#333333"
FAINT: Final = "#8a8a8a"
NOTHING: Final = "#d9d4c7"
"""Where there is no value."""
SPECIAL: Final = "#c9c9c9"
LINE: Final = "#1f6f8b"
SMALL: Final = 10.0
BEST: Final = 100.0
"""Where the colours of the ratios may end."""
_FIRST_DAY: Final = -719162.0
_LAST_DAY: Final = 2932896.0
"""The years 1 to 9999 in matplotlib's days since 1970."""
_OUTLIERS: Final = 20
"""How many times wider than 98 % of the values all of them may be before the colours leave the rest out."""
_MOST_NUMBERS: Final = 80
"""Cells of the map that have their ratios written into them."""


def draw(view: View, target: Path, kind: str) -> None:
    """Draw a view.

    Parameters
    ----------
    view
        What to draw.
    target
        The file to write.
    kind
        ``"png"``, ``"svg"`` or ``"pdf"``.

    """
    style: Any = {
        "font.size": 9.5,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }
    with plt.rc_context(style):
        figure = _image(view) if view.values.ndim > 1 else _line(view)
        try:
            # Names of files and fields are text, and no formulas between dollars.
            figure.suptitle(view.title, fontsize=14, color=INK, x=0.012, ha="left", parse_math=False)
            figure.savefig(target, dpi=130, format=kind)
        finally:
            plt.close(figure)


def _image(view: View) -> Any:
    rows, columns = view.places
    numbers, dates = _numbers(view)
    extent = (columns.start - 0.5, columns.stop - 0.5, rows.stop - 0.5, rows.start - 0.5)
    tall = (extent[2] - extent[3]) / (extent[1] - extent[0])
    equal = 0.3 <= tall <= 3  # beyond it an image in proportion would be a stripe
    height = min(max(5.9 * (tall if equal else 0.8), 3.4), 8.4)
    if view.grid is None:
        figure, axes = plt.subplots(figsize=(8.2, height + 1.0), layout="constrained")
    else:
        figure, (axes, beside) = plt.subplots(
            1, 2, figsize=(13.6, height + 1.0), layout="compressed" if equal else "constrained"
        )
        _draw_grid(beside, view, view.grid, extent, equal=equal)
    colours, norm, beyond = _scale(numbers, view.values.dtype)
    image = axes.imshow(
        numbers, cmap=colours, norm=norm, extent=extent, interpolation="nearest", aspect="equal" if equal else "auto"
    )
    _title(axes, view.subtitle)
    axes.set_xlabel(f"dimension {view.axes[1]}")
    axes.set_ylabel(f"dimension {view.axes[0]}")
    bar = figure.colorbar(image, ax=axes, pad=0.015, aspect=36, extend=beyond)
    bar.outline.set_visible(False)
    bar.ax.set_ylabel(view.label, color=INK, parse_math=False)
    if view.values.dtype.kind == "b":
        bar.set_ticks([0.25, 0.75], labels=["False", "True"])
    elif dates:
        bar.ax.yaxis.set_major_formatter(_DATES.AutoDateFormatter(_DATES.AutoDateLocator()))
    return figure


def _title(axes: Any, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=9.5, color=FAINT, parse_math=False)


def _numbers(view: View) -> tuple[np.ma.MaskedArray[Any, Any], bool]:
    """Return what is drawn as numbers, masked where there is no value, and whether they are dates."""
    values = view.values
    missing = np.zeros(values.shape, bool) if view.fill is None else values == view.fill
    dates = values.dtype.kind == "M"
    if values.dtype.kind in "mM":
        missing |= np.isnat(values)
        values = _DATES.date2num(values) if dates else values.astype(np.int64).astype(np.float64)
        shown = np.where(missing, 0.0, values)
        # Days beyond the calendar that matplotlib has are drawn as numbers.
        dates = dates and bool(((shown >= _FIRST_DAY) & (shown <= _LAST_DAY)).all())
    elif values.dtype.kind == "c":
        values = np.abs(values)
    elif values.dtype.kind != "b":
        values = values.astype(np.float64)
    numbers: np.ma.MaskedArray[Any, Any] = np.ma.masked_invalid(values)
    numbers[missing] = np.ma.masked
    return numbers, dates


def _scale(numbers: np.ma.MaskedArray[Any, Any], dtype: np.dtype[Any]) -> tuple[Any, Any, str]:
    """Return colours, their scale, and at which ends values lie beyond it."""
    if dtype.kind == "b":
        return ListedColormap(["#e9e4d8", LINE]), Normalize(0, 1), "neither"
    colours = plt.get_cmap("turbo").with_extremes(bad=NOTHING)
    found = numbers.compressed()
    if not found.size:
        return colours, Normalize(0, 1), "neither"
    low, high = float(found.min()), float(found.max())
    inner_low, inner_high = (float(edge) for edge in np.percentile(found, (1, 99)))
    beyond = "neither"
    if inner_high > inner_low and high - low > _OUTLIERS * (inner_high - inner_low):
        beyond = "both" if low < inner_low and high > inner_high else "min" if low < inner_low else "max"
        low, high = inner_low, inner_high
    if dtype.kind in "if" and low < 0 < high and min(-low, high) > 0.4 * max(-low, high):
        colours = plt.get_cmap("RdBu_r").with_extremes(bad=NOTHING)
        high = max(-low, high)
        low = -high
    return colours, Normalize(low, high if high > low else low + 1), beyond


def _ratio_norm(grid: ChunkGrid) -> LogNorm:
    """Return the scale of the colours: to ten times smaller, or to a hundred if a chunk needs that."""
    return LogNorm(1.0, BEST if any(cell.special is None and cell.ratio > SMALL for cell in grid.cells) else SMALL)


def _colours(grid: ChunkGrid) -> np.ndarray[Any, Any]:
    """Return a colour for each cell: by its ratio, or grey, or red for a damaged one."""
    norm, ramp = _ratio_norm(grid), plt.get_cmap("viridis")
    return np.array(
        [
            mpl.colors.to_rgba(cell.colour if cell.damaged else SPECIAL)
            if cell.damaged or cell.special is not None
            else ramp(norm(max(cell.ratio, 1.0)))
            for cell in grid.cells
        ]
    )


def _draw_grid(axes: Any, view: View, grid: ChunkGrid, extent: tuple[float, ...], *, equal: bool) -> None:
    """Draw a cell for each chunk of the plane, where its items are."""
    rows, columns = (np.asarray(edges, float) - 0.5 for edges in grid.edges)
    shape = (len(rows) - 1, len(columns) - 1)
    few = len(grid.cells) <= _MOST_NUMBERS
    width = 1.6 if few else 0.4 if len(grid.cells) < 1200 else 0.0  # white lines between cells
    axes.pcolormesh(columns, rows, _colours(grid).reshape(*shape, 4), edgecolors="white", linewidth=width)
    axes.set_xlim(extent[0], extent[1])
    axes.set_ylim(extent[2], extent[3])
    axes.set_aspect("equal" if equal else "auto")
    bar = axes.figure.colorbar(
        mpl.cm.ScalarMappable(_ratio_norm(grid), plt.get_cmap("viridis")), ax=axes, pad=0.015, aspect=36
    )
    bar.outline.set_visible(False)
    bar.set_label("times smaller", color=INK)
    bar.ax.yaxis.set_major_formatter("{x:g}x")
    bar.ax.yaxis.set_minor_formatter("")
    if few:
        _write_ratios(axes, grid, rows, columns)
    words = "ratio of each chunk"
    if any(cell.special is not None for cell in grid.cells):
        words += "; grey: one special value"
    if any(cell.damaged for cell in grid.cells):
        words += "; red: damaged"
    _title(axes, words + ("; of several chunks one is shown" if grid.thinned else ""))
    axes.set_xlabel(f"dimension {view.axes[1]}")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=2)


def _write_ratios(axes: Any, grid: ChunkGrid, rows: Any, columns: Any) -> None:
    """Write the ratio into each cell."""
    wide = len(columns) - 1
    low, high = sorted(axes.get_xlim())
    top, bottom = sorted(axes.get_ylim())
    for n, cell in enumerate(grid.cells):
        x = (max(columns[n % wide], low) + min(columns[n % wide + 1], high)) / 2
        y = (max(rows[n // wide], top) + min(rows[n // wide + 1], bottom)) / 2
        text = "damaged" if cell.damaged else cell.special.name.lower() if cell.special else f"{cell.ratio:.2f}x"
        bright = cell.special is not None or _ratio_norm(grid)(max(cell.ratio, 1.0)) > 0.6
        axes.text(x, y, text, ha="center", va="center", fontsize=8.5, color=INK if bright else "white", clip_on=True)


def _line(view: View) -> Any:
    (places,) = view.places
    numbers, dates = _numbers(view)
    above: Any
    if view.grid is None:
        figure, above = plt.subplots(figsize=(10.4, 4.4), layout="constrained")
    else:
        figure, (above, below) = plt.subplots(
            2, 1, figsize=(10.4, 6.2), height_ratios=(2.6, 1), layout="constrained", sharex=True
        )
        _draw_bars(below, view, view.grid)
    steps = numbers.dtype.kind == "b" or len(numbers) <= 64  # so few that each item shows
    drawn = np.ma.filled(numbers.astype(np.float64), np.nan)
    above.plot(
        np.asarray(places),
        drawn,
        color=LINE,
        linewidth=1.1,
        drawstyle="steps-mid" if steps else "default",
        marker="o" if len(numbers) <= 64 else "",
        markersize=3,
    )
    if dates:
        locator = _DATES.AutoDateLocator()
        above.yaxis.set_major_locator(locator)
        above.yaxis.set_major_formatter(_DATES.ConciseDateFormatter(locator))
    elif numbers.dtype.kind == "b":
        above.set_yticks([0, 1], labels=["False", "True"])
    above.set_ylabel(view.label, parse_math=False)
    above.set_xlim(places.start - 0.5, max(places.stop, places.start + 1) - 0.5)
    above.grid(color=FAINT, alpha=0.18, linewidth=0.7)
    above.spines[["top", "right"]].set_visible(False)
    _title(above, view.subtitle)
    if view.grid is None:
        above.set_xlabel(f"dimension {view.axes[0]}")
    return figure


def _draw_bars(axes: Any, view: View, grid: ChunkGrid) -> None:
    """Draw a bar for each chunk, as wide as its items."""
    edges = np.asarray(grid.edges[0], float) - 0.5
    heights = [max(cell.ratio, 1.0) for cell in grid.cells]
    finite = [height for height, cell in zip(heights, grid.cells, strict=True) if cell.special is None]
    top = max([*finite, 2.0]) * 1.25
    axes.bar(
        edges[:-1],
        [
            top if cell.special is not None or cell.damaged else height
            for height, cell in zip(heights, grid.cells, strict=True)
        ],
        width=np.diff(edges),
        align="edge",
        color=_colours(grid),
        edgecolor="white",
        linewidth=0.8 if len(heights) <= 100 else 0.0,  # thin bars have no room for it
    )
    axes.set_yscale("log")
    axes.set_ylim(1, top)
    axes.yaxis.set_major_formatter("{x:g}x")
    axes.yaxis.set_minor_formatter("{x:g}x" if top < 10 else "")  # less than a decade
    axes.set_ylabel("times smaller")
    axes.set_xlabel(f"dimension {view.axes[0]}")
    axes.spines[["top", "right"]].set_visible(False)
    words = "ratio of each chunk"
    if any(cell.special is not None for cell in grid.cells):
        words += "; grey: one special value"
    if any(cell.damaged for cell in grid.cells):
        words += "; red: damaged"
    _title(axes, words + ("; of several chunks one is shown" if grid.thinned else ""))
