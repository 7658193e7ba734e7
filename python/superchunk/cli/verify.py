"""``superchunk verify``: check whether frames are as they were written.

Source: docs/cli.md, section "verify".
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

import superchunk
from superchunk.cli import output
from superchunk.cli.errors import EXPECTED, about, instead

__all__ = ["verify"]

_CODES: Final = {"sound": 0, "damaged": 1, "not sealed": 3}
"""Exit codes; 2 is a command line that makes no sense."""
_NO_FRAME: Final = 4
_WORST_FIRST: Final = (1, 4, 3, 0)
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
@click.option("--decode", is_flag=True, help="Also decode every chunk.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list with a report for each PATH.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use.  [default: one for each CPU]")
def verify(*, paths: tuple[str, ...], decode: bool, as_json: bool, threads: int | None) -> int:
    """Check whether every byte of the frames at PATH... is as it was written.

    The exit code is 0 if all frames are sound, and 1 if any frame is damaged or cannot be read. Otherwise it is
    4 if any file is not a Blosc2 frame, and 3 if some frames have no checksums that prove them.
    """
    codes = []
    reports = []
    for path in paths:
        try:
            report = _check(path, decode=decode, threads=threads)
        except EXPECTED as error:
            nothing_there = isinstance(error, FileNotFoundError) and Path(path).is_dir()
            message = f"{path}: is not a Blosc2 frame{instead(path)}" if nothing_there else about(path, error)
            click.echo(f"superchunk: {message}", err=True)
            codes.append(_NO_FRAME if nothing_there else _CODES["damaged"])
            continue
        reports.append(report)
        if not report.is_frame:
            click.echo(f"superchunk: {path}: is not a Blosc2 frame{instead(path)}", err=True)
            codes.append(_NO_FRAME)
            continue
        codes.append(_CODES[report.status])
        if not as_json:
            _show(report)
    if as_json:
        output.print_json([report.to_dict() for report in reports])
    return next((code for code in _WORST_FIRST if code in codes), 0)
