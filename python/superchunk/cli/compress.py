"""``superchunk compress``: compress raw bytes, ``.npy`` or standard input into a contiguous frame.

One chunk of the input is in memory at a time, whatever the input's size. The frame is
written under another name and renamed when it is complete.

Source: docs/cli.md, section "compress".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from superchunk import SChunk
from superchunk.cli import output
from superchunk.cli.files import STANDARD, Input, output_path, writing_aside
from superchunk.cli.layout import Layout
from superchunk.cli.options import (
    codec_option,
    cparams_from,
    level_option,
    parse_dtype,
    parse_filters,
    parse_size,
    threads_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np

    from superchunk import CParams
    from superchunk.cli.options import (
        FilterChoice,
    )

__all__ = ["SUFFIX", "chunksize_for", "compress"]

SUFFIX = ".b2frame"
DEFAULT_CHUNKSIZE = "4M"
"""Enough blocks for some threads, small enough to read one for a few items."""


def chunksize_for(asked: int, typesize: int) -> int:
    """Return `asked` bytes rounded down to whole items, at least one item.

    Examples
    --------
    >>> chunksize_for(100, 8), chunksize_for(4, 8)
    (96, 8)

    """
    return max(asked // typesize, 1) * typesize


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """What a frame holds and takes."""

    nbytes: int
    cbytes: int
    nchunks: int


def _write_frame(
    source: Input,
    urlpath: Path,
    *,
    cparams: CParams,
    chunksize: int,
    layout: Layout,
    advance: Callable[[int], None],
) -> _Written:
    buffer = memoryview(bytearray(chunksize))
    nbytes = 0
    with SChunk(chunksize=chunksize, cparams=cparams, urlpath=str(urlpath), mode="w", contiguous=True) as schunk:
        filled = chunksize
        while filled == chunksize:
            filled = source.readinto(buffer)
            nbytes += filled
            if filled:
                schunk.append_data(buffer[:filled])
            advance(filled)
        source.check_length(nbytes)
        layout.record(schunk)
        return _Written(nbytes=schunk.nbytes, cbytes=schunk.cbytes, nchunks=schunk.nchunks)


@click.command(short_help="Compress raw bytes, a .npy file or standard input into a frame.")
@click.argument("file", metavar="FILE")
@click.option("-o", "--output", "target", metavar="OUT", help=f"The frame to write.  [default: FILE{SUFFIX}]")
@codec_option("zstd")
@level_option(5)
@click.option(
    "--filters",
    type=parse_filters,
    metavar="NAME,...",
    default="shuffle",
    show_default=True,
    help="Filters that run before the codec, in order: shuffle, bitshuffle, bytedelta, delta, "
    "trunc_prec:BITS and int_trunc:BITS (lossy), none.",
)
@click.option("--typesize", type=parse_size, metavar="BYTES", help="Bytes of an item.  [default: the dtype's, or 1]")
@click.option(
    "--dtype",
    type=parse_dtype,
    metavar="DTYPE",
    help="Dtype of raw bytes, such as f8; recorded, and sets the typesize.",
)
@click.option(
    "--chunksize",
    type=parse_size,
    metavar="BYTES",
    default=DEFAULT_CHUNKSIZE,
    show_default=True,
    help="Bytes of a chunk, such as 65536 or 64K; rounded down to whole items.",
)
@threads_option()
@click.option("--raw", is_flag=True, help="Treat a .npy file as bytes, header included.")
@click.option("-f", "--force", is_flag=True, help="Replace OUT if it exists.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def compress(
    *,
    file: str,
    target: str | None,
    codec: str,
    level: int,
    filters: tuple[FilterChoice, ...],
    typesize: int | None,
    dtype: np.dtype[Any] | None,
    chunksize: int,
    threads: int | None,
    raw: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Compress FILE, or standard input if it is -, into a contiguous Blosc2 frame.

    A .npy file keeps its dtype and shape, and decompress restores it bit for bit. Any other file is
    raw bytes. For numbers, give --dtype or --typesize; without them the shuffle filter has no effect.
    """
    if target is None:
        if file == STANDARD:
            raise click.UsageError("standard input requires -o OUT")
        target = file + SUFFIX
    if target == STANDARD:
        raise click.UsageError("a frame cannot go to standard output, because its header is written last")
    if dtype is not None and typesize is not None and dtype.itemsize != typesize:
        raise click.UsageError(f"--dtype {dtype} has items of {dtype.itemsize} bytes, but --typesize is {typesize}")
    with Input.open(file, raw=raw) as source:
        if source.header is not None:
            if dtype is not None and dtype != source.header.dtype:
                raise click.UsageError(f"the dtype of {file} is {source.header.dtype}, but --dtype is {dtype}")
            dtype = source.header.dtype
        items = typesize or (dtype.itemsize if dtype is not None else 1) or 1
        with (
            writing_aside(output_path(target), force=force, source=file) as aside,
            output.progress(f"compress {file}", source.nbytes) as advance,
        ):
            written = _write_frame(
                source,
                aside,
                cparams=cparams_from(codec=codec, level=level, filters=filters, typesize=items, threads=threads),
                chunksize=chunksize_for(chunksize, items),
                layout=Layout(dtype=dtype, header=source.header),
                advance=advance,
            )
    if not quiet:
        times = output.ratio(written.nbytes, written.cbytes)
        click.echo(
            f"{target}: {output.size(written.nbytes)} in {written.nchunks} chunk{'s' * (written.nchunks != 1)}, "
            f"compressed to {output.size(written.cbytes)} ({times:.2f}x)"
        )
