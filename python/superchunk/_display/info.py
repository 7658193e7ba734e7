"""What `.info` shows: aligned lines, or a table in a notebook; numbers of bytes for people."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["InfoReport", "bytes_text", "in_unit", "ratio", "size"]

_WIDTH: Final = 96
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def in_unit(nbytes: float) -> tuple[float, str]:
    """Return a number of bytes in the unit that suits it, and the unit.

    Examples
    --------
    >>> in_unit(734), in_unit(24576)
    ((734, 'B'), (24.0, 'KiB'))

    """
    power = 0
    while abs(nbytes) >= 1024 and power < len(_UNITS) - 1:  # bytes of a KiB
        nbytes, power = nbytes / 1024, power + 1
    return nbytes, _UNITS[power]


def bytes_text(nbytes: float) -> str:
    """Return a number of bytes in three or four digits.

    Examples
    --------
    >>> bytes_text(734), bytes_text(240_000_000)
    ('734 B', '228.9 MiB')

    """
    scaled, unit = in_unit(nbytes)
    return f"{scaled:.0f} B" if unit == "B" else f"{scaled:.1f} {unit}"


def size(nbytes: int) -> str:
    """Return a number of bytes as `info` has it, exact and in a unit.

    Examples
    --------
    >>> size(24000)
    '24000 (23.44 KiB)'
    >>> size(734)
    '734 (734 B)'

    """
    scaled, unit = in_unit(nbytes)
    return f"{nbytes} ({nbytes} B)" if unit == "B" else f"{nbytes} ({scaled:.2f} {unit})"


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
        import html  # only notebooks ask for it

        rows = "".join(
            f'<tr><th style="text-align: left">{html.escape(name)}</th>'
            f'<td style="text-align: left">{html.escape(str(value))}</td></tr>'
            for name, value in self._items()
        )
        return f'<table class="superchunk-info"><tbody>{rows}</tbody></table>'
