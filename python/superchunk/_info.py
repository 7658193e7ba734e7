"""What `.info` shows: aligned lines, or a table in a notebook."""

from __future__ import annotations

import html
import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["InfoReport", "ratio", "size"]

_WIDTH: Final = 96
_STEP: Final = 1024
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(nbytes: int) -> str:
    """Return a number of bytes for people.

    Examples
    --------
    >>> size(24000)
    '24000 (23.44 KiB)'
    >>> size(734)
    '734 (734 B)'

    """
    scaled, power = float(nbytes), 0
    while abs(scaled) >= _STEP and power < len(_UNITS) - 1:
        scaled, power = scaled / _STEP, power + 1
    return f"{nbytes} ({scaled:.2f} {_UNITS[power]})" if power else f"{nbytes} ({nbytes} B)"


def ratio(cratio: float) -> str:
    """Return a compression ratio for people, such as ``12.50x``."""
    return f"{cratio:.2f}x"


class InfoReport:
    """A report that is made anew each time it is shown.

    Parameters
    ----------
    items
        Called for the pairs of name and value.

    """

    __slots__ = ("_items",)

    def __init__(self, items: Callable[[], list[tuple[str, object]]]) -> None:
        self._items = items

    def __repr__(self) -> str:
        """Return aligned lines ``name : value``, long values wrapped."""
        items = self._items()
        width = max(len(name) for name, _ in items)
        lines = []
        for name, value in items:
            wrapped = textwrap.wrap(str(value), _WIDTH - width - 3) or [""]
            lines += [f"{name if i == 0 else '':{width}} : {text}" for i, text in enumerate(wrapped)]
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        """Return a table of two columns."""
        rows = "".join(
            f'<tr><th style="text-align: left">{html.escape(name)}</th>'
            f'<td style="text-align: left">{html.escape(str(value))}</td></tr>'
            for name, value in self._items()
        )
        return f'<table class="superchunk-info"><tbody>{rows}</tbody></table>'
