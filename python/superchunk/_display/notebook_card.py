"""The card that a notebook shows for a super-chunk or an array.

::

    superchunk.NDArray   /data/waves.b2nd          what, and where it lives
    shape    (365, 721, 1440) float32              the facts, two columns
    ratio    6.31x  1.41 GiB in 229.1 MiB
    [▒▒▓▓████▒▒  ▒▒▓▓]                             the chunk map: an SVG of one row, a title for each cell

The card is one piece of HTML with its styles: no script, no style sheet, nothing to load. Its colours are readable on
white and on black. Names, paths, dtypes and codecs come from files of strangers and are escaped. A damaged chunk is a
red cell, a closed object says so; showing a card raises nothing that a broken file could cause.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final, Protocol

from superchunk._display.chunk_map import BEST_RATIO, DAMAGED, SAMPLES, chunk_map, colour
from superchunk._display.info import bytes_text
from superchunk.exceptions import ClosedError, SuperchunkError
from superchunk.params import Filter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from superchunk._display.chunk_map import MapCell
    from superchunk.params import CParams

__all__ = ["codec_text", "filters_text", "html_card", "schunk_card"]

CELLS: Final = 64
"""Cells of the map."""
LONGEST: Final = 120
"""Characters of a fact that are shown; the rest is in its title."""
_WIDTH: Final = 512
_HEIGHT: Final = 22
_FAINT: Final = "opacity:.65"


def codec_text(cparams: CParams) -> str:
    """Return codec and level for people, such as ``zstd, level 5``."""
    codec = cparams.codec
    name = f"id {codec}" if isinstance(codec, int) and not hasattr(codec, "name") else codec.name.lower()
    return f"{name}, level {cparams.clevel}"


def filters_text(cparams: CParams) -> str:
    """Return the filters in the order they run, such as ``shuffle + bytedelta:8``."""
    steps = []
    for step, meta in zip(cparams.filters, cparams.filters_meta, strict=True):
        if step == Filter.NOFILTER:
            continue
        name = step.name.lower() if hasattr(step, "name") else f"id {step}"
        steps.append(f"{name}:{meta}" if meta else name)
    return " + ".join(steps) or "none"


def _svg(cells: Sequence[MapCell], chunks: int) -> str:
    """Return the strip."""
    width = _WIDTH / len(cells)
    gap = 1.0 if width > 6 else 0.4  # a hair between narrow cells
    drawn = []
    for n, cell in enumerate(cells):
        paint = f'fill="{cell.colour}"'
        if cell.special is not None:
            paint += ' fill-opacity=".18" stroke="#808080" stroke-opacity=".6" stroke-width=".8"'
        title = html.escape(cell.text(chunks))
        drawn.append(
            f'<rect x="{n * width + gap / 2:.2f}" y="1" width="{width - gap:.2f}" height="{_HEIGHT - 2}" {paint}>'
            f"<title>{title}</title></rect>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img" aria-label="compression ratio of the chunks" '
        f'style="display:block;max-width:100%;margin:6px 0 2px">{"".join(drawn)}</svg>'
    )


def _legend(cells: Sequence[MapCell], chunks: int) -> str:
    """Return the line beneath the strip."""
    ramp = "".join(
        f'<span style="display:inline-block;width:9px;height:9px;background:{colour(n / 6)}"></span>' for n in range(7)
    )
    words = [f'ratio 1</span> {ramp} <span style="{_FAINT}">{BEST_RATIO:.0f} and more']  # colours as in the strip
    if any(cell.special is not None for cell in cells):
        words.append("grey: one special value")
    if any(cell.damaged for cell in cells):
        words.append(f'<span style="color:{DAMAGED}">red: damaged</span>')
    looked = sum(cell.looked for cell in cells)
    if looked < chunks:
        words.append(f"{looked:,} of {chunks:,} chunks read, {SAMPLES} at most")
    elif len(cells) < chunks:
        words.append(f"{chunks:,} chunks in {len(cells)} cells")
    return f'<div style="font-size:11px"><span style="{_FAINT}">{" &middot; ".join(words)}</span></div>'


def _fact(name: str, value: str) -> str:
    shown = value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"
    title = "" if shown is value else f' title="{html.escape(value)}"'
    return (
        f'<tr style="background:transparent"><th style="text-align:left;font-weight:normal;padding:1px 14px 1px 0;'
        f'vertical-align:top;{_FAINT}">{html.escape(name)}</th>'
        f'<td style="text-align:left;padding:1px 0"{title}>{html.escape(shown)}</td></tr>'
    )


def html_card(kind: str, place: str, facts: Iterable[tuple[str, str]], cells: Sequence[MapCell], chunks: int) -> str:
    """Return a card.

    Parameters
    ----------
    kind
        What it is, such as ``SChunk``.
    place
        Where it lives.
    facts
        Name and value of each line, plain text.
    cells
        The map; without one there is no strip.
    chunks
        Number of all chunks.

    """
    strip = _svg(cells, chunks) + _legend(cells, chunks) if cells else ""
    shown = place if len(place) <= LONGEST else "…" + place[1 - LONGEST :]
    return (
        '<div class="superchunk-card" style="display:inline-block;max-width:100%;box-sizing:border-box;color:inherit;'
        "background:transparent;border:1px solid rgba(128,128,128,.4);border-radius:6px;padding:8px 12px;"
        'font-size:13px;line-height:1.45">'
        f'<div style="margin-bottom:4px"><b>{html.escape(kind)}</b>'
        f'<span style="margin-left:10px;{_FAINT}" title="{html.escape(place)}">{html.escape(shown)}</span></div>'
        '<table style="border-collapse:collapse;border:none;margin:0;font-size:inherit;color:inherit"><tbody>'
        f"{''.join(_fact(name, value) for name, value in facts)}</tbody></table>{strip}</div>"
    )


class CardSource(Protocol):
    """What a card asks of a super-chunk."""

    @property
    def urlpath(self) -> str | None:
        """The file, None in memory."""
        ...

    @property
    def contiguous(self) -> bool:
        """Whether the chunks are in one frame."""
        ...

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        ...

    @property
    def chunksize(self) -> int:
        """Bytes of a full chunk; 0 if chunks differ in size."""
        ...

    @property
    def blocksize(self) -> int:
        """Bytes of a block; 0 unless it was asked for."""
        ...

    @property
    def typesize(self) -> int:
        """Bytes of an item."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of all items."""
        ...

    @property
    def cbytes(self) -> int:
        """Bytes of all compressed chunks."""
        ...

    @property
    def cparams(self) -> CParams:
        """How chunks are compressed."""
        ...

    @property
    def meta(self) -> Mapping[str, object]:
        """The fixed metalayers."""
        ...

    @property
    def vlmeta(self) -> Mapping[str, object]:
        """The variable metalayers."""
        ...

    def __len__(self) -> int:
        """Return the number of items."""
        ...


def _place(schunk: CardSource) -> str:
    path = schunk.urlpath
    if path is None:
        return "in memory"
    return f"{path} ({'one file' if schunk.contiguous else 'a directory'})"


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _sizes(nbytes: int, cbytes: int) -> str:
    times = f"{nbytes / cbytes:.2f}x" if cbytes else "none"
    return f"{times}, {bytes_text(nbytes)} in {bytes_text(cbytes)}"


def schunk_card(
    schunk: CardSource,
    kind: str = "",
    facts: Callable[[], list[tuple[str, str]]] | None = None,
    nbytes: Callable[[], int] | None = None,
) -> str:
    """Return the card of a super-chunk, or of an array in one.

    Parameters
    ----------
    schunk
        What is shown.
    kind
        What it is called; the name of its class unless given.
    facts
        Called for the lines on top, instead of those on items and chunks.
    nbytes
        Called for the bytes of the array, which its chunks pad, instead of those of the super-chunk.

    """
    name = kind or type(schunk).__name__
    lines: list[tuple[str, str]] = []
    cells: Sequence[MapCell] = ()
    chunks = 0
    try:
        chunks = schunk.nchunks
        cells = chunk_map(schunk, CELLS)
        lines += _items(schunk, chunks) if facts is None else facts()
        layers = [*schunk.meta, *schunk.vlmeta]
        lines.append(("codec", f"{codec_text(schunk.cparams)}; filters {filters_text(schunk.cparams)}"))
        if layers:
            lines.append(("metadata", ", ".join(layers)))
        lines.append(("ratio", _sizes(schunk.nbytes if nbytes is None else nbytes(), schunk.cbytes)))
    except ClosedError:
        lines.append(("state", "closed"))
    except (SuperchunkError, OSError) as error:
        lines.append(("state", f"damaged: {error}"))
    return html_card(name, _place(schunk), lines, cells, chunks)


def _items(schunk: CardSource, chunks: int) -> list[tuple[str, str]]:
    size = schunk.chunksize
    each = f" of {bytes_text(size)}" if size else ", of different sizes" if chunks else ""
    blocks = f", blocks of {bytes_text(schunk.blocksize)}" if schunk.blocksize else ""
    return [
        ("items", f"{len(schunk):,} of {_number(schunk.typesize, 'byte')}"),
        ("chunks", f"{_number(chunks, 'chunk')}{each}{blocks}"),
    ]
