"""``superchunk decompress``: a frame back into the file it was made from.

One chunk is in memory at a time.

Source: docs/cli.md, section "decompress".
"""

from __future__ import annotations

from pathlib import Path

import click

from superchunk.cli import output
from superchunk.cli.compress import SUFFIX
from superchunk.cli.files import STANDARD, open_output
from superchunk.cli.layout import Layout
from superchunk.cli.options import threads_option
from superchunk.cli.reading import in_reading_order, open_frame

__all__ = ["decompress"]


def _default_target(frame: str, *, npy: bool) -> str:
    """Return FRAME without its suffix, with ``.npy`` if that is what comes out.

    Examples
    --------
    >>> _default_target("a.npy.b2frame", npy=True), _default_target("a.b2frame", npy=True)
    ('a.npy', 'a.npy')

    """
    if not Path(frame).name.removesuffix(SUFFIX) or not frame.endswith(SUFFIX):
        raise click.UsageError(f"{frame} does not end in {SUFFIX}, so the output needs a name: -o OUT, or -o -")
    target = frame.removesuffix(SUFFIX)
    return f"{target}.npy" if npy and not target.endswith(".npy") else target


@click.command(short_help="Give back what compress was given.")
@click.argument("frame", metavar="FRAME")
@click.option("-o", "--output", "target", metavar="OUT", help=f"- is standard output.  [default: less {SUFFIX}]")
@click.option("--raw", is_flag=True, help="Write the items only, without a .npy header.")
@click.option("--storage-order", is_flag=True, help="Of an n-dimensional array write the chunks as they are.")
@threads_option()
@click.option("-f", "--force", is_flag=True, help="Replace OUT if it exists.")
def decompress(
    *, frame: str, target: str | None, raw: bool, storage_order: bool, threads: int | None, force: bool
) -> None:
    """Decompress FRAME into the raw bytes or the .npy file that it was made from."""
    with open_frame(frame, threads=threads) as schunk:
        in_reading_order(frame, schunk, storage_order=storage_order)
        header = None if raw else Layout.of(schunk).header
        name = target or _default_target(frame, npy=header is not None)
        with (
            open_output(name, force=force, source=frame) as stream,
            output.progress(f"decompress {frame}", schunk.nbytes) as advance,
        ):
            if header is not None:
                stream.write(header.raw)
            for nchunk in range(schunk.nchunks):
                chunk = schunk.decompress_chunk(nchunk)
                if chunk is not None:  # it is bytes, because it was not asked to fill a buffer
                    stream.write(chunk)
                    advance(len(chunk))
    if name != STANDARD:
        click.echo(f"{name}: {output.size(Path(name).stat().st_size)}")
