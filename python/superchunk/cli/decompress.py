"""``superchunk decompress``: restore the file that a frame was made from.

A few megabytes are in memory at a time, or one chunk if that is larger.

Source: docs/cli.md, section "decompress".
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from superchunk.cli import output
from superchunk.cli.compress import SUFFIX
from superchunk.cli.files import STANDARD, open_output
from superchunk.cli.options import threads_option
from superchunk.cli.reading import Items, open_frame

__all__ = ["decompress"]

SUFFIXES: Final = (SUFFIX, ".b2nd")
"""What names of frames end in."""


def _default_target(frame: str, *, npy: bool) -> str:
    """Return FRAME without its suffix, with ``.npy`` if that is what comes out.

    Examples
    --------
    >>> _default_target("a.npy.b2frame", npy=True), _default_target("a.b2nd", npy=True)
    ('a.npy', 'a.npy')

    """
    name = frame.rstrip("/")
    suffix = next((one for one in SUFFIXES if name.endswith(one)), None)
    if suffix is None or not Path(name).name.removesuffix(suffix):
        raise click.UsageError(f"{frame} does not end in {' or '.join(SUFFIXES)}, so -o OUT is required")
    target = name.removesuffix(suffix)
    return f"{target}.npy" if npy and not target.endswith(".npy") else target


@click.command(short_help="Restore the file that compress read.")
@click.argument("frame", metavar="FRAME")
@click.option(
    "-o", "--output", "target", metavar="OUT", help="- is standard output.  [default: FRAME without its suffix]"
)
@click.option("--raw", is_flag=True, help="Write the items only, without a .npy header.")
@click.option("--storage-order", is_flag=True, help="Write an array's chunks in storage order, padding included.")
@threads_option()
@click.option("-f", "--force", is_flag=True, help="Replace OUT if it exists.")
def decompress(
    *, frame: str, target: str | None, raw: bool, storage_order: bool, threads: int | None, force: bool
) -> None:
    """Decompress FRAME into the raw bytes or the .npy file it was made from. An array becomes a .npy file.

    A .npy file stores no attributes; convert keeps them in formats that can.
    """
    with open_frame(frame, threads=threads) as schunk:
        items = Items.of(schunk, storage_order=storage_order)
        header = None if raw else items.header()
        name = _default_target(frame, npy=header is not None) if target is None else target
        with (
            open_output(name, force=force, source=frame) as stream,
            output.progress(f"decompress {frame}", items.nbytes) as advance,
        ):
            if header is not None:
                stream.write(header.raw)
            for piece in items.all():
                stream.write(piece)
                advance(len(piece))
    if name != STANDARD:
        click.echo(f"{name}: {output.size(Path(name).stat().st_size)}")
