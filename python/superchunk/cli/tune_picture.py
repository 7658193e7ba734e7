"""The picture of ``superchunk bench --tune``: speed against size, every trial a point, the front a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from superchunk.cli.tune import Advice, Trial

__all__ = ["draw"]

COLOURS = {"blosclz": "#7b5ea7", "lz4": "#d1495b", "lz4hc": "#e8963a", "zlib": "#4f8f4a", "zstd": "#2a6f97"}
INK, FAINT = "#333333", "#8a8a8a"
MOST_NAMES = 24
"""Points of the front that are named."""


def draw(advice: Advice, title: str, target: Path, kind: str) -> None:
    """Draw what was tried.

    Parameters
    ----------
    advice
        What was tried, and what is recommended.
    title
        What is above.
    target
        The file to write.
    kind
        ``"png"``, ``"svg"`` or ``"pdf"``.

    """
    import matplotlib as mpl  # of the extra "view"

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = plt.subplots(figsize=(11.5, 6.4), layout="constrained")
    try:
        for codec, colour in COLOURS.items():
            some = [trial for trial in advice.trials if trial.choice.codec == codec]
            if some:
                axes.scatter(
                    [_percent(trial) for trial in some],
                    [trial.speed for trial in some],
                    s=34,
                    color=colour,
                    alpha=0.75,
                    linewidths=0,
                    label=codec,
                )
        along = advice.front
        axes.plot([_percent(one) for one in along], [one.speed for one in along], color=INK, linewidth=1, zorder=1)
        chosen = advice.sizes[0]
        axes.scatter([_percent(chosen)], [chosen.speed], s=190, facecolors="none", edgecolors=INK, linewidths=1.6)
        for number, one in enumerate(along, 1):
            axes.annotate(
                str(number),
                (_percent(one), one.speed),
                xytext=(-8, 5),
                textcoords="offset points",
                ha="right",
                color=INK,
                weight="bold" if one is chosen else "normal",
            )
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.margins(x=0.08, y=0.08)
        axes.xaxis.set_major_formatter("{x:g} %")
        axes.set_xlabel("compressed size, % of the uncompressed: left is smaller", color=INK)
        axes.set_ylabel(f"MB/s, written once and read {chosen.reads:g} times: up is faster", color=INK)
        axes.set_title(title, loc="left", color=INK)
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[:].set_color(FAINT)
        names = [f"{number}  {one}" for number, one in enumerate(along, 1)]
        if len(names) > MOST_NAMES:
            names[MOST_NAMES:] = ["..."]
        figure.legend(frameon=False, loc="outside right lower", title="codec", alignment="left")
        figure.legend(
            handles=[Line2D([], [], linestyle="none", label=name) for name in names],
            frameon=False,
            loc="outside right upper",
            title=f"no trial is both smaller and faster than\n(ringed: {chosen})",
            alignment="left",
            handlelength=0,
            handletextpad=0,
        )
        figure.savefig(target, dpi=130, format=kind)
    finally:
        plt.close(figure)


def _percent(trial: Trial) -> float:
    """Return the compressed size in percent."""
    return 100 * trial.got.cbytes / trial.got.nbytes
