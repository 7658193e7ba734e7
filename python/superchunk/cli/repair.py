"""``superchunk repair`` and ``superchunk compact``: write a frame anew.

Source: docs/cli.md, sections "repair" and "compact".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import superchunk
from superchunk.cli import output
from superchunk.cli.errors import EXPECTED, about, making
from superchunk.cli.reading import as_schunk

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["compact", "repair", "steps"]


def steps(advance: Callable[[int], None]) -> Callable[[int, int], None]:
    """Return a function that is told totals, for one that is told differences."""
    before = 0

    def progress(done: int, _total: int) -> None:
        nonlocal before
        advance(done - before)
        before = done

    return progress


@click.command(short_help="Write a readable frame from a damaged one.")
@click.argument("frame", metavar="PATH")
@click.option("-o", "--output", "target", help="The new frame.  [default: NAME.repaired.SUFFIX beside the old one]")
@click.option(
    "--offset", type=click.IntRange(min=0), default=0, help="Position of the damaged frame in its file, in bytes."
)
@click.option(
    "--contiguous/--sparse", "contiguous", default=None, help="Write one file, or a directory.  [default: as PATH]"
)
@click.option("--in-place", is_flag=True, help="Replace the damaged frame by the new one.")
@click.option("--recover", is_flag=True, help="Restore the newest commit that is intact with all its chunks.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def repair(
    *,
    frame: str,
    target: str | None,
    offset: int,
    contiguous: bool | None,
    in_place: bool,
    recover: bool,
    as_json: bool,
) -> None:
    """Write a readable frame from the intact parts of the damaged one at PATH.

    The report names every chunk that is doubtful or lost. A frame without damage is left unchanged.
    """
    if in_place and target is not None:
        raise click.UsageError("--in-place and -o exclude each other")
    try:
        with making(target or frame), output.progress(frame, None, unit="chunks") as advance:
            report = superchunk.repair(
                frame,
                target,
                offset=offset,
                contiguous=contiguous,
                in_place=in_place,
                recover=recover,
                progress=steps(advance),
            )
    except EXPECTED as error:
        raise about(frame, error) from error
    if as_json:
        output.print_json(report.to_dict())
    else:
        click.echo(str(report))


@click.command(short_help="Remove a frame's dead bytes.")
@click.argument("frame", metavar="PATH")
def compact(*, frame: str) -> None:
    """Write the frame at PATH anew, without the bytes that nothing references.

    The new file takes the old one's name when it is complete and on the disk.
    """
    try:
        with making(frame), as_schunk(superchunk.open(frame, mode="a")) as schunk:
            dead = schunk.dead_bytes
            with output.progress(frame, schunk.cbytes) as advance:
                schunk.compact(progress=steps(advance))
            click.echo(f"{frame}: {dead - schunk.dead_bytes:,} bytes removed")
    except EXPECTED as error:
        raise about(frame, error) from error
