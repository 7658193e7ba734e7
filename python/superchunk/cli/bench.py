"""``superchunk bench``: measure codecs and filters on the user's own file.

The measurement runs in memory, on the first bytes of the file, up to ``--limit``.

Source: docs/cli.md, section "bench".
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np

from superchunk.cli import output
from superchunk.cli.compress import DEFAULT_CHUNKSIZE, chunksize_for
from superchunk.cli.errors import Failure, about
from superchunk.cli.files import STANDARD, Input, writing_aside
from superchunk.cli.formats.base import FOREIGN, require
from superchunk.cli.formats.places import Place
from superchunk.cli.measure import Choice, json_row, measure
from superchunk.cli.options import CODECS, parse_dtype, parse_filters, parse_size, threads_option
from superchunk.cli.tune import SAMPLE, advice_row, print_advice, sample, tune
from superchunk.cli.view import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from superchunk.cli.formats.base import Box
    from superchunk.cli.measure import Measured
    from superchunk.cli.options import FilterChoice
    from superchunk.cli.tune import Advice

__all__ = ["bench"]

DEFAULT_CODECS = ("blosclz", "lz4", "zstd")
FRAME_START: Final = b"\x9e\xa8b2frame\0"
"""The first bytes of a frame, of which the first two are MessagePack's."""
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
        raise Failure(f"{source.name}: has less than one item of {typesize} bytes")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plain:
    """Raw bytes in a file, as something to read boxes from."""

    path: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """Return a run of items."""
        (part,) = box
        start, count = part.start * self.dtype.itemsize, part.stop - part.start
        return np.fromfile(self.path, self.dtype, count, offset=start)

    def close(self) -> None:
        """Let go of nothing: the file is opened for each read."""


def _is_plain(file: str) -> bool:
    """Whether a file is none of those that convert reads."""
    place = Place.of_source(file)
    if place.kind != "b2nd" or Path(place.path).is_dir():
        return False
    with Path(place.path).open("rb") as stream:
        return not stream.read(len(FRAME_START)).endswith(FRAME_START[2:])


def _read_pieces(file: str, dtype: np.dtype[Any] | None, typesize: int | None, *, raw: bool) -> tuple[bytes, int]:
    """Return bytes from all over a file, from the front of standard input, and the bytes of an item."""
    items = typesize or (dtype.itemsize if dtype is not None else 1)
    if file == STANDARD:
        with Input.open(file, raw=raw) as source:
            if source.header is not None and typesize is None:
                items = source.header.dtype.itemsize
            return _read(source, SAMPLE, items), items
    try:
        if raw or _is_plain(file):
            nitems = Path(file).stat().st_size // items
            return sample(_Plain(path=file, dtype=np.dtype(f"V{items}"), shape=(nitems,))), items
        with contextlib.closing(Place.of_source(file).open()) as opened:
            return sample(opened), typesize or opened.dtype.itemsize
    except FOREIGN as error:
        raise about(file, error) from error


@contextlib.contextmanager
def _picture(target: str | None, *, force: bool) -> Iterator[Callable[[Advice, str], None]]:
    """Give a function that draws into a file, whose name is checked before anything is measured."""
    if target is None:
        yield lambda _advice, _title: None
        return
    require("matplotlib", "view", "-o")
    from superchunk.cli.tune_picture import draw  # of the extra "view"

    path = Path(target)
    if path.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"{path}: expected a name that ends in one of {', '.join(SUFFIXES)}")
    with writing_aside(path, force=force) as aside:
        yield lambda advice, title: draw(advice, title, aside, path.suffix.lower()[1:])


@click.command(short_help="Measure codecs and filters on your own file.")
@click.argument("file", metavar="FILE")
@click.option("--dtype", type=parse_dtype, metavar="DTYPE", help="Dtype of raw bytes, such as f8; sets the typesize.")
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
@click.option(
    "--level", "levels", type=click.IntRange(0, 9), multiple=True, help="Level to try; may be repeated.  [default: 5]"
)
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
@click.option(
    "--tune", "tuning", is_flag=True, help="Try codecs, levels, filters, block and chunk sizes; recommend one."
)
@click.option(
    "--reads",
    type=click.FloatRange(0, 1e6),
    default=3,
    show_default=True,
    help="With --tune: number of reads for each write.",
)
@click.option(
    "--seconds", type=click.FloatRange(0), default=30, show_default=True, help="With --tune: approximate duration."
)
@click.option("-o", "--output", "target", metavar="OUT", help="With --tune: draw speed against size to the file OUT.")
@click.option("-f", "--force", is_flag=True, help="Replace OUT if it exists.")
@click.option("--raw", is_flag=True, help="Treat a .npy file as bytes, header included.")
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
    tuning: bool,
    reads: float,
    seconds: float,
    target: str | None,
    force: bool,
    raw: bool,
    as_json: bool,
) -> None:
    """Measure ratio and speed of codecs and filters on FILE (raw, .npy, or - for standard input).

    With --tune, FILE is any source that convert reads. The command measures pieces of FILE and recommends one choice.
    """
    if tuning:
        if codecs or pipelines or levels:
            raise click.UsageError("--tune chooses codecs, levels and filters; omit --codec, --level and --filters")
        data, items = _read_pieces(file, dtype, typesize, raw=raw)
        with _picture(target, force=force) as drawing:
            with output.progress("tune", None, unit="choices") as advance:
                advice = tune(data, typesize=items, reads=reads, seconds=seconds, threads=threads, advance=advance)
            drawing(advice, f"{Path(file).name}: size and speed of the trials")
        if as_json:
            output.print_json({"file": file, "nbytes": len(data), "typesize": items, **advice_row(advice)})
        else:
            print_advice(file, len(data), advice)
        return
    if target is not None:
        raise click.UsageError("-o requires --tune")
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
