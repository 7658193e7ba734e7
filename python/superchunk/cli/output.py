"""How commands print: tables, formatted numbers, progress, JSON.

Colours, rules and progress bars appear only on a terminal, so that
``superchunk info x | grep codec`` and logs get plain lines.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

__all__ = ["columns", "console", "print_json", "progress", "ratio", "size", "table"]

PLAIN_WIDTH = 160
"""Columns where the output is no terminal, so that nothing is wrapped or cut."""


def console() -> Console:
    """Return the console that writes to standard output."""
    from rich.console import Console  # only commands that draw pay for it

    terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout,
        highlight=False,
        emoji=False,
        markup=False,
        width=None if terminal else PLAIN_WIDTH,
    )


def columns(most: int) -> int:
    """Return the columns of a terminal, `most` at the most; `most` where the output is something else."""
    return min(console().width, most) if sys.stdout.isatty() else most


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1, title: str = "") -> None:
    """Print a table.

    Parameters
    ----------
    columns
        The headings.
    rows
        As many cells each.
    text_columns
        How many columns, from the left, hold words; the others hold numbers.
    title
        A line above.

    """
    from rich import box
    from rich.table import Table

    out = console()
    drawn = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD if out.is_terminal else None,
        pad_edge=False,
    )
    for number, column in enumerate(columns):
        words = number < text_columns
        drawn.add_column(column, justify="left" if words else "right", no_wrap=True)
    for row in rows:
        drawn.add_row(*row)
    out.print(drawn)


def print_json(value: object) -> None:
    """Print `value` as JSON, for machines."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


@contextlib.contextmanager
def progress(label: str, total: int | None, *, unit: str = "bytes") -> Iterator[Callable[[int], None]]:
    """Show how far a command is, on standard error and only if that is a terminal.

    Parameters
    ----------
    label
        What is going on.
    total
        What will have been done at the end; None if nobody knows.
    unit
        ``"bytes"``, or the word for what is counted.

    Yields
    ------
    callable
        To be told how much more is done.

    """
    if not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    if unit == "bytes":
        counted = [DownloadColumn(binary_units=True), TransferSpeedColumn()]
    else:
        counted = [MofNCompleteColumn(), TextColumn(unit)]
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *counted,
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.advance(task, done)


def size(nbytes: float) -> str:
    """Return a number of bytes for people.

    Examples
    --------
    >>> size(512), size(1_712_000)
    ('512 B', '1.63 MiB')

    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(nbytes) < 1024 or unit == "TiB":  # bytes of a KiB
            break
        nbytes /= 1024
    return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.2f} {unit}"


def ratio(nbytes: int, cbytes: int) -> float:
    """Return how many times smaller the compressed bytes are, 0.0 when there are none."""
    return nbytes / cbytes if cbytes else 0.0
