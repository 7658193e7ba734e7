"""``superchunk cat``: print items of a frame, as text or as bytes.

Source: docs/cli.md, section "cat".
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from superchunk.cli.files import STANDARD, open_output
from superchunk.cli.options import parse_dtype, parse_items, threads_option
from superchunk.cli.reading import Items, open_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from superchunk.cli.options import ItemRange

__all__ = ["cat"]


def as_lines(data: bytes, dtype: np.dtype[Any] | None, itemsize: int) -> str:
    r"""Return one line for each item: a number as NumPy prints it, unknown bytes in hexadecimal.

    Examples
    --------
    >>> as_lines(bytes(range(6)), np.dtype("<u2"), 2)
    '256\n770\n1284\n'
    >>> as_lines(bytes(range(6)), None, 3)
    '000102\n030405\n'

    """
    if dtype is None:
        lines: Iterator[str] = (data[at : at + itemsize].hex() for at in range(0, len(data), itemsize))
    else:
        lines = (_printable(str(item)) for item in np.frombuffer(data, dtype))
    return "".join(f"{line}\n" for line in lines)


def _printable(text: str) -> str:
    """Return `text`, quoted if it would break the line or command a terminal."""
    return text if text.isprintable() else repr(text)


@click.command(short_help="Print items of a frame, or write them as bytes.")
@click.argument("frame", metavar="FRAME")
@click.option(
    "--items",
    type=parse_items,
    metavar="START:STOP",
    default=":",
    help="Items to print, such as 1000:2000, -10: or 7.  [default: all]",
)
@click.option(
    "--dtype", type=parse_dtype, metavar="DTYPE", help="Dtype of the items.  [default: as recorded, else bytes]"
)
@click.option("--raw", is_flag=True, help="Write bytes instead of text.")
@click.option("-o", "--output", "target", metavar="OUT", default=STANDARD, help="Write bytes to the file OUT.")
@click.option("--storage-order", is_flag=True, help="Print an array's chunks in storage order, padding included.")
@threads_option()
@click.option("-f", "--force", is_flag=True, help="Replace OUT if it exists.")
def cat(
    *,
    frame: str,
    items: ItemRange,
    dtype: np.dtype[Any] | None,
    raw: bool,
    target: str,
    storage_order: bool,
    threads: int | None,
    force: bool,
) -> None:
    """Print items of FRAME, one a line. Items of an array are printed in C order, the last index varying fastest.

    The dtype is that of --dtype, else the recorded dtype. Without either, an item is typesize bytes in hexadecimal.
    """
    with open_frame(frame, threads=threads) as schunk:
        content = Items.of(schunk, storage_order=storage_order)
        if dtype is None:
            dtype = content.dtype()
        itemsize = content.typesize if dtype is None else max(dtype.itemsize, 1)
        start, stop = items.within(content.nbytes // content.typesize * content.typesize // itemsize)
        wanted = content.pieces(start * itemsize, stop * itemsize)
        if raw or target != STANDARD:
            with open_output(target, force=force, source=frame) as stream:
                stream.writelines(wanted)
            return
        pending = b""
        for piece in wanted:
            data = pending + piece
            full = len(data) - len(data) % itemsize
            sys.stdout.write(as_lines(data[:full], dtype, itemsize))
            pending = data[full:]
