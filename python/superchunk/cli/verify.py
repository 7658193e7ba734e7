"""``superchunk verify``: finding out whether frames are as they were written.

Source: docs/cli.md, section "verify".
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

import superchunk
from superchunk.cli import output
from superchunk.cli.errors import EXPECTED, about

__all__ = ["verify"]

_CODES: Final = {"sound": 0, "damaged": 1, "not sealed": 3}
"""Exit codes; 2 is a command line that makes no sense."""
_SHOWN: Final = 20


def _show(report: superchunk.VerifyReport) -> None:
    """Print a report for people."""
    click.echo(f"{report.path}: {report.status}")
    rows = [
        [part.name, part.status, f"{part.position:,}", f"{part.length:,}", part.message]
        for part in report.parts
        if report.status != "sound" or part.message
    ]
    if rows:
        output.table(["part", "status", "at byte", "bytes", ""], rows, text_columns=2)
    counts = ", ".join(f"{count:,} {status}" for status, count in report.chunks.items() if count)
    click.echo(f"  chunks: {report.nchunks:,}{f' ({counts})' if counts else ''}; dead bytes: {report.dead_bytes:,}")
    listed = report.damaged_chunks + report.unsealed_chunks
    for chunk in listed[:_SHOWN]:
        click.echo(f"  chunk {chunk.nchunk} {chunk.place}: {chunk.status}, {chunk.reason}")
    if len(listed) > _SHOWN:
        click.echo(f"  ... and {len(listed) - _SHOWN} more; --json lists them")


def _check(path: str, *, decode: bool, threads: int | None) -> superchunk.VerifyReport:
    """Verify one frame, and show how far it is."""
    size = Path(path).stat().st_size if Path(path).is_file() else None
    with output.progress(path, size) as advance:
        before = 0

        def progress(done: int, _total: int) -> None:
            nonlocal before
            advance(done - before)
            before = done

        return superchunk.verify(path, decode=decode, nthreads=threads, progress=progress)


@click.command(short_help="Check every part and every chunk of frames.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--decode", is_flag=True, help="Decode every chunk, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a list with a report for each PATH.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads; one for each CPU unless given.")
def verify(*, paths: tuple[str, ...], decode: bool, as_json: bool, threads: int | None) -> int:
    """Check whether every byte of the frames at PATH... is as it was written.

    The exit code is 0 if all are sound, 1 if any is damaged or cannot be read, and 3 if
    some are not sealed, so that nothing proves them, and none is damaged.
    """
    codes = []
    reports = []
    for path in paths:
        try:
            report = _check(path, decode=decode, threads=threads)
        except EXPECTED as error:
            click.echo(f"superchunk: {about(path, error)}", err=True)
            codes.append(_CODES["damaged"])
            continue
        codes.append(_CODES[report.status])
        reports.append(report)
        if not as_json:
            _show(report)
    if as_json:
        output.print_json([report.to_dict() for report in reports])
    return next((code for code in (1, 3) if code in codes), 0)
