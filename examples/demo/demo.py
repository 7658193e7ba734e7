"""Compress real data, read it back, compare, draw: ``python examples/demo/demo.py``, or ``make demo``.

Every array of `demo_data` goes into a contiguous frame on disk under each of `CHOICES`. Each frame is
read back whole and in random slices and compared with its source. The package blosc2, an independent
implementation, must read the same array. The demo prints a table of the measurements and writes a picture
and the measurements as JSON. It measures as ``superchunk bench`` does, with the same code.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from demo_data import PACKAGES, PICTURED, read_fields

import superchunk
from superchunk.cli import output
from superchunk.cli.errors import Failure
from superchunk.cli.info import chunk_rows
from superchunk.cli.layout import Layout
from superchunk.cli.measure import Choice, json_row, measure
from superchunk.cli.npy import NpyHeader
from superchunk.cli.options import parse_filters, threads_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from demo_data import Field

    from superchunk.cli.measure import Measured

CHOICES = (
    Choice(codec="lz4", level=5, filters=parse_filters("shuffle")),
    Choice(codec="blosclz", level=5, filters=parse_filters("bitshuffle")),
    Choice(codec="zstd", level=5, filters=parse_filters("shuffle")),
    Choice(codec="zstd", level=5, filters=parse_filters("shuffle,bytedelta")),
)


def ask_witness(path: Path, values: np.ndarray) -> None:
    """Raise unless the package blosc2 finds the same array in the frame at `path`."""
    import blosc2  # of the extra "demo"

    try:
        found = blosc2.load_array(str(path))
    except Exception as error:
        raise Failure(f"verification: blosc2 cannot read {path}: {error}") from error
    if found.dtype != values.dtype or found.shape != values.shape or found.tobytes() != values.tobytes():
        raise Failure(f"verification: blosc2 reads something else from {path}")


def _path_of(frames: Path, field: Field, choice: Choice) -> Path:
    words = f"{field.name} {choice}".replace("+", " ").split()
    return frames / f"{'-'.join(words)}.b2frame"


def _show_one(field: Field, choice: Choice, path: Path, threads: int | None) -> Measured:
    """Write one frame, measure and verify."""
    got = measure(
        field.values.tobytes(),
        choice,
        typesize=field.values.dtype.itemsize,
        chunksize=field.chunksize,
        threads=threads,
        urlpath=path,
    )
    with superchunk.open(str(path), mode="a") as schunk:
        header = NpyHeader.make(field.values.dtype, field.values.shape)
        Layout(dtype=header.dtype, header=header).record(schunk)
    ask_witness(path, field.values)
    return got


def _row(field: Field, choice: Choice, got: Measured) -> list[str]:
    shape = "x".join(map(str, field.values.shape))
    return [
        field.name,
        f"{shape} {field.values.dtype}",
        str(choice),
        f"{got.ratio:.2f}",
        f"{got.compress_speed:,.0f}",
        f"{got.decompress_speed:,.0f}",
        f"{got.slice_seconds * 1e6:.1f}",
        "yes",
    ]


def _json_row(field: Field, choice: Choice, got: Measured) -> dict[str, Any]:
    shape = "x".join(map(str, field.values.shape))
    return {"array": field.name, "items": f"{shape} {field.values.dtype}", **json_row(choice, got)}


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    output.table(
        ["array", "items", "codec and filters", "ratio", "compress MB/s", "read MB/s", "slice µs", "verified"],
        rows,
        text_columns=3,
    )
    click.echo(
        "compress: all of the array into a frame in memory. read: all of it from the frame on disk.\n"
        "slice: 100 items at a random place of the frame on disk. verified: all items and 200 slices\n"
        "compared with the source, and the frame read by the package blosc2 with the same result."
    )


@click.command()
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-output"),
    show_default=True,
    help="Folder for the frames, the picture and the figures as JSON.",
)
@threads_option()
def demo(*, folder: Path, threads: int | None) -> None:
    """Compress measurements and model fields, read them back, compare, and draw a picture.

    Needs the packages of the extra "demo": pip install '.[demo]'.
    """
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise Failure(f"demo needs {', '.join(missing)}: pip install '.[demo]' installs them")
    from demo_picture import draw

    frames = folder / "frames"
    frames.mkdir(parents=True, exist_ok=True)
    fields = list(read_fields())
    rows: list[list[str]] = []
    figures: list[dict[str, Any]] = []
    with output.progress("demo", len(fields) * len(CHOICES), unit="frames") as advance:
        for field in fields:
            for choice in CHOICES:
                path = _path_of(frames, field, choice)
                got = _show_one(field, choice, path, threads)
                rows.append(_row(field, choice, got))
                figures.append(_json_row(field, choice, got))
                advance(1)
    _print_table(rows)
    pictured = next(field for field in fields if field.name == PICTURED)
    picture = folder / "demo.png"
    with superchunk.open(str(_path_of(frames, pictured, CHOICES[-1]))) as schunk:
        ratios = [output.ratio(row.nbytes, row.cbytes) for row in chunk_rows(schunk)]
    draw(pictured, ratios, str(CHOICES[-1]), picture)
    record = folder / "demo.json"
    record.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    click.echo(f"frames: {frames}/  picture: {picture}  figures: {record}")


if __name__ == "__main__":
    demo()
