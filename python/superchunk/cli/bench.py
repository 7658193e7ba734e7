"""``superchunk bench``: which codec and filters suit a file of the user's own.

Works in memory on the beginning of the file, as much as ``--limit`` says.

Source: docs/cli.md, section "bench".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from superchunk.cli import output
from superchunk.cli.compress import DEFAULT_CHUNKSIZE, chunksize_for
from superchunk.cli.errors import Failure
from superchunk.cli.files import Input
from superchunk.cli.measure import Choice, json_row, measure
from superchunk.cli.options import CODECS, parse_dtype, parse_filters, parse_size, threads_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from superchunk.cli.measure import Measured
    from superchunk.cli.options import FilterChoice

__all__ = ["bench"]

DEFAULT_CODECS = ("blosclz", "lz4", "zstd")
DEFAULT_FILTERS = ("none", "shuffle", "bitshuffle", "shuffle,bytedelta")


def _default_filters(typesize: int) -> list[tuple[FilterChoice, ...]]:
    """Return the pipelines worth trying; items of one byte have no bytes to shuffle."""
    return [parse_filters(words) for words in DEFAULT_FILTERS if typesize > 1 or words in {"none", "bitshuffle"}]


def _read(source: Input, limit: int, typesize: int) -> bytes:
    """Return whole items from the front of the input, at most `limit` bytes."""
    wanted = limit if source.nbytes is None else min(limit, source.nbytes)
    buffer = bytearray(wanted)
    with memoryview(buffer) as view:
        filled = source.readinto(view)
    filled -= filled % typesize
    if filled == 0:
        raise Failure(f"{source.name}: holds no whole item of {typesize} bytes to measure with")
    return bytes(buffer[:filled])


def _print_table(name: str, nbytes: int, rows: Sequence[tuple[Choice, Measured]]) -> None:
    output.table(
        ["codec and filters", "ratio", "compress MB/s", "decompress MB/s", "random slice µs"],
        [
            [
                str(choice),
                f"{got.ratio:.2f}",
                f"{got.compress_speed:,.0f}",
                f"{got.decompress_speed:,.0f}",
                f"{got.slice_seconds * 1e6:.1f}",
            ]
            for choice, got in rows
        ],
        title=f"{name}: {output.size(nbytes)}, all read back and compared; a slice is 100 items",
    )


@click.command(short_help="Compare codecs and filters on a file of yours.")
@click.argument("file", metavar="FILE")
@click.option("--dtype", type=parse_dtype, metavar="DTYPE", help="What raw bytes are, such as f8; gives the typesize.")
@click.option("--typesize", type=parse_size, metavar="BYTES", help="Bytes of an item.  [default: the dtype's, or 1]")
@click.option(
    "--codec",
    "codecs",
    type=click.Choice(list(CODECS), case_sensitive=False),
    multiple=True,
    help=f"Codec to try; may be repeated.  [default: {', '.join(DEFAULT_CODECS)}]",
)
@click.option(
    "--filters",
    "pipelines",
    type=parse_filters,
    metavar="NAME,...",
    multiple=True,
    help=f"Filters to try; may be repeated.  [default: {'; '.join(DEFAULT_FILTERS)}]",
)
@click.option("--level", "levels", type=click.IntRange(0, 9), multiple=True, help="May be repeated.  [default: 5]")
@click.option(
    "--chunksize",
    type=parse_size,
    metavar="BYTES",
    default=DEFAULT_CHUNKSIZE,
    show_default=True,
    help="Bytes of a chunk.",
)
@click.option(
    "--limit", type=parse_size, metavar="BYTES", default="64M", show_default=True, help="Bytes of FILE to use."
)
@threads_option()
@click.option("--raw", is_flag=True, help="Take a .npy file as bytes, header included.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def bench(
    *,
    file: str,
    dtype: np.dtype[Any] | None,
    typesize: int | None,
    codecs: tuple[str, ...],
    pipelines: tuple[tuple[FilterChoice, ...], ...],
    levels: tuple[int, ...],
    chunksize: int,
    limit: int,
    threads: int | None,
    raw: bool,
    as_json: bool,
) -> None:
    """Measure ratio and speed of codecs and filters on FILE (raw, .npy, or - for standard input)."""
    with Input.open(file, raw=raw) as source:
        if source.header is not None:
            dtype = source.header.dtype
        items = typesize or (dtype.itemsize if dtype is not None else 1) or 1
        data = _read(source, limit, items)
    choices = [
        Choice(codec=codec, level=level, filters=steps)
        for codec in codecs or DEFAULT_CODECS
        for level in levels or (5,)
        for steps in pipelines or _default_filters(items)
    ]
    rows = []
    with output.progress("measure", len(choices), unit="choices") as advance:
        for choice in choices:
            got = measure(data, choice, typesize=items, chunksize=chunksize_for(chunksize, items), threads=threads)
            rows.append((choice, got))
            advance(1)
    rows.sort(key=lambda row: -row[1].ratio)
    if as_json:
        results = [json_row(choice, got) for choice, got in rows]
        output.print_json({"file": file, "nbytes": len(data), "typesize": items, "results": results})
    else:
        _print_table(file, len(data), rows)
