"""``superchunk view``: draw one or two dimensions of an array, and the compression ratio of its chunks.

::

    --slice "3,:,100:200"      a number fixes a dimension, start:stop[:step] shows it; one or two may be shown
    without it                 the last two dimensions with more than one item, at the middle of all others

Of a large array every nth item is read, so memory and time stay bounded. `view_picture` draws.

Source: docs/cli.md, section "view".
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np

import superchunk
from superchunk.cli import output
from superchunk.cli.errors import Failure, about
from superchunk.cli.files import writing_aside
from superchunk.cli.formats.b2nd import ArraySource
from superchunk.cli.formats.base import FOREIGN
from superchunk.cli.formats.places import BLOSC2, Place
from superchunk.cli.reading import as_schunk

if TYPE_CHECKING:
    from superchunk import MapCell, SChunk
    from superchunk.cli.formats.base import Source

__all__ = ["ChunkGrid", "Cut", "View", "parse_cut", "view"]

MOST_POINTS: Final = 4000
"""Points of a line, at most."""
MOST_PIXELS: Final = 1400
"""Items along each side of an image, at most."""
MOST_CHUNKS: Final = 64
"""Chunks along each side of the map, at most; of more every nth is shown."""
MOST_BARS: Final = 400
SUFFIXES: Final = (".png", ".svg", ".pdf")


@dataclass(frozen=True, slots=True)
class Cut:
    """Which items of an array are shown: for each dimension one place, or a range."""

    parts: tuple[int | range, ...]

    @classmethod
    def default(cls, shape: tuple[int, ...]) -> Cut:
        """Return the last two dimensions of more than one item, at the middle of the others."""
        wide = [axis for axis, extent in enumerate(shape) if extent > 1][-2:] or list(range(len(shape)))[-1:]
        return cls(tuple(range(n) if axis in wide else n // 2 for axis, n in enumerate(shape)))

    @classmethod
    def of(cls, words: str, shape: tuple[int, ...]) -> Cut:
        """Return what ``--slice`` says of an array of a shape.

        Raises
        ------
        UsageError
            It says nothing that the array has.

        """
        written = [word.strip() for word in words.split(",")] if words.strip() else []
        if len(written) != len(shape):
            raise click.UsageError(f"--slice {words}: expected {len(shape)} parts for the shape {shape}")
        parts = tuple(_part(word, extent, words) for word, extent in zip(written, shape, strict=True))
        cut = cls(parts)
        if not 1 <= len(cut.axes) <= 2:  # what a picture has
            raise click.UsageError(f"--slice {words}: expected one or two ranges, found {len(cut.axes)}")
        return cut

    @property
    def axes(self) -> tuple[int, ...]:
        """The dimensions that are shown."""
        return tuple(axis for axis, part in enumerate(self.parts) if isinstance(part, range))

    def thinned(self, most: int) -> Cut:
        """Return every nth item of it, at most `most` along each dimension."""
        return Cut(
            tuple(
                part[:: -(-len(part) // most)] if isinstance(part, range) and len(part) > most else part
                for part in self.parts
            )
        )

    def __str__(self) -> str:
        """Return it as an index."""
        return ", ".join(_words(part) for part in self.parts)


def parse_cut(words: str, shape: tuple[int, ...]) -> Cut:
    """Return what is to be shown of an array; `words` may be empty.

    Examples
    --------
    >>> str(parse_cut("3, :, 10:20", (5, 6, 100))), str(parse_cut("", (8, 1, 60, 20)))
    ('3, 0:6, 10:20', '4, 0, 0:60, 0:20')

    """
    return Cut.of(words, shape) if words else Cut.default(shape)


def _part(word: str, extent: int, words: str) -> int | range:
    match = re.fullmatch(r"(-?\d{1,18})?(?:(:)(-?\d{1,18})?(?::([1-9]\d{0,17})?)?)?", word)
    if match is None or not word:
        raise click.UsageError(f"--slice {words}: expected a number or start:stop, found {word!r}")
    start, colon, stop, step = match.groups()
    if colon is None:
        place = int(start) + (extent if int(start) < 0 else 0)
        if not 0 <= place < extent:
            raise click.UsageError(f"--slice {words}: expected an index from 0 to {extent - 1}, found {start}")
        return place
    numbers = (None if text is None else int(text) for text in (start, stop, step))
    return range(*slice(*numbers).indices(extent))


def _words(part: int | range) -> str:
    if not isinstance(part, range):
        return str(part)
    return f"{part.start}:{part.stop}" + (f":{part.step}" if part.step > 1 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkGrid:
    """How well the chunks are compressed that the picture meets."""

    cells: list[MapCell]
    """In C order over `edges`."""
    edges: tuple[list[int], ...]
    """Where chunks begin and end along each dimension that is shown, in items; one more than there are cells."""
    thinned: bool
    """Whether of several chunks one is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that is drawn."""

    title: str
    subtitle: str
    values: np.ndarray[Any, np.dtype[Any]]
    """One or two dimensions."""
    places: tuple[range, ...]
    """Where the items of each dimension are in the array."""
    axes: tuple[int, ...]
    """Which dimensions of the array these are."""
    label: str
    """What the values are."""
    fill: np.ndarray[Any, np.dtype[Any]] | None
    """The item that means that there is none."""
    grid: ChunkGrid | None


def read_cut(source: Source, cut: Cut) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the items of a cut, of one or two dimensions, reading little more than those."""
    if isinstance(source, ArraySource):
        key = tuple(slice(part.start, part.stop, part.step) if isinstance(part, range) else part for part in cut.parts)
        return source.pick(key)
    box = [part if isinstance(part, range) else range(part, part + 1) for part in cut.parts]
    if not cut.axes:
        return source.read(tuple(slice(part.start, part.stop) for part in box))
    shape = tuple(len(cut.parts[axis]) for axis in cut.axes)  # type: ignore[arg-type]  # these are ranges
    made = np.empty(shape, source.dtype)
    first, last = cut.axes[0], cut.axes[-1]
    for n, place in enumerate(cut.parts[first]) if first != last else [(..., 0)]:  # type: ignore[arg-type]
        row = [slice(part.start, part.stop) for part in box]
        if first != last:
            row[first] = slice(place, place + 1)
        made[n] = _row(source, row, last, box[last])
    return made


def _row(source: Source, row: list[slice], axis: int, places: range) -> np.ndarray[Any, np.dtype[Any]]:
    """Return some items along one dimension, read in pieces."""
    found = np.empty(len(places), source.dtype)
    piece = max(2**20 // places.step, 1) if places.step * source.dtype.itemsize < 2**14 else 1
    for at in range(0, len(places), piece):
        part = places[at : at + piece]
        row[axis] = slice(part[0], part[-1] + 1)
        found[at : at + len(part)] = source.read(tuple(row)).reshape(-1)[:: places.step]
    return found


def grid_of(schunk: SChunk, shape: tuple[int, ...], chunks: tuple[int, ...], cut: Cut) -> ChunkGrid:
    """Return the chunks that a cut of an array meets."""
    counts = tuple(-(-extent // part) for extent, part in zip(shape, chunks, strict=True))
    lines, edges, thinned = [], [], False
    most = MOST_CHUNKS if len(cut.axes) > 1 else MOST_BARS
    for part, size, extent in zip(cut.parts, chunks, shape, strict=True):
        if not isinstance(part, range):
            lines.append([part // size])
            continue
        shown = range(part[0] // size, part[-1] // size + 1)
        step = -(-len(shown) // most)
        thinned |= step > 1
        lines.append(list(shown[::step]))
        edges.append([min(n * size, extent) for n in [*shown[::step], shown.stop]])
    numbers = np.ravel_multi_index(np.meshgrid(*lines, indexing="ij"), counts).reshape(-1) if counts else np.zeros(1)
    among = [int(number) for number in numbers]
    return ChunkGrid(cells=superchunk.chunk_map(schunk, len(among), among=among), edges=tuple(edges), thinned=thinned)


def _stream_grid(schunk: SChunk, itemsize: int, nitems: int, cut: Cut, shape: tuple[int, ...]) -> ChunkGrid | None:
    """Return the chunks of a stream of items, if the picture runs along it."""
    if len(shape) != 1 or not schunk.chunksize or schunk.chunksize % itemsize or not nitems:
        return None
    return grid_of(schunk, shape, (schunk.chunksize // itemsize,), cut)


def _chosen(source: Source, name: str, field: str | None) -> tuple[np.dtype[Any], str]:
    """Return the dtype of what is drawn, and what to call it.

    Raises
    ------
    Failure
        It is nothing that can be drawn.

    """
    dtype = source.dtype
    if dtype.names is not None:
        fields = ", ".join(dtype.names)
        if field is None:
            raise Failure(f"{name}: has items with fields; expected --field with one of {fields}")
        if field not in dtype.names:
            raise click.UsageError(f"--field {field}: {name} has the fields {fields}")
        dtype = dtype[field]
    elif field is not None:
        raise click.UsageError(f"--field {field}: {name} has items without fields, dtype {dtype}")
    if dtype.subdtype is not None or dtype.names is not None:
        raise Failure(f"{name}: values of dtype {dtype} cannot be drawn")
    if dtype.kind in "SU":
        raise Failure(f"{name}: text of dtype {dtype} cannot be drawn")
    if dtype.kind not in "biufcmM" and dtype.isbuiltin != 2:  # a number of another package
        raise Failure(f"{name}: items of dtype {dtype} cannot be drawn")
    label = field or str(dtype)
    if dtype.kind == "c":
        label = f"magnitude of {label}"
    return dtype, label


def collect(place: Place, source: Source, words: str, field: str | None) -> View:
    """Read what is drawn."""
    dtype, label = _chosen(source, place.name, field)
    cut = parse_cut(words, source.shape)
    if 0 in source.shape or any(isinstance(part, range) and not part for part in cut.parts):
        raise Failure(f"{place.name}: shape {source.shape} has no items to draw at [{cut}]")
    thin = cut.thinned(MOST_PIXELS if len(cut.axes) > 1 else MOST_POINTS)
    values = read_cut(source, thin)
    fill = None if source.fill is None else np.frombuffer(source.fill, source.dtype)
    if field is not None:
        values = values[field]
        fill = None if fill is None else fill[field]
    subtitle, grid = f"shape {source.shape}, {dtype}", None
    if place.kind in BLOSC2:
        with as_schunk(superchunk.open(place.path)) as schunk:
            if source.chunks is None:
                grid = _stream_grid(
                    schunk, source.dtype.itemsize, source.shape[0] if source.shape else 0, cut, source.shape
                )
            elif cut.axes:
                grid = grid_of(schunk, source.shape, source.chunks, cut)
            cparams = schunk.cparams
            codec = getattr(cparams.codec, "name", f"id {cparams.codec}").lower()
            subtitle += (
                f"; {output.ratio(schunk.nbytes, schunk.cbytes):.2f}x smaller with {codec}, level {cparams.clevel}"
            )
    shown = ", ".join(
        ":" if part == range(extent) else _words(part) for part, extent in zip(cut.parts, source.shape, strict=True)
    )
    if thin != cut:
        shown += "; of every " + " x ".join(str(thin.parts[axis].step) for axis in cut.axes) + " items one"  # type: ignore[union-attr]
    return View(
        title=f"{Path(place.path).name}{place.dataset or ''} [{shown}]",
        subtitle=subtitle,
        values=values if cut.axes else values.reshape(1),
        places=tuple(part for part in thin.parts if isinstance(part, range)) or (range(1),),
        axes=cut.axes or (0,),
        label=label,
        fill=fill,
        grid=grid,
    )


@click.command(short_help="Draw a slice of an array, and the ratio of each chunk.")
@click.argument("file", metavar="FILE")
@click.option(
    "-o", "--output", "target", metavar="OUT", help="File to draw to: .png, .svg or .pdf.  [default: FILE.png]"
)
@click.option("--slice", "words", default="", metavar="SLICE", help='Slice to draw, such as "3,:,100:200".')
@click.option("--field", metavar="NAME", help="Field of a structured dtype to draw.")
@click.option("-f", "--force", is_flag=True, help="Replace OUT if it exists.")
def view(*, file: str, target: str | None, words: str, field: str | None, force: bool) -> None:
    """Draw one or two dimensions of the array in FILE, with the map of chunk ratios beside it.

    FILE is any source that convert reads: .b2nd, .b2frame, .npy, .zarr, .h5:/DATASET. Of a large array every nth item
    is drawn.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise Failure('view needs matplotlib: pip install "superchunk[view]"')
    from superchunk.cli.view_picture import draw  # needs what was just looked for

    place = Place.of_source(file)
    picture = Path(target or f"{Path(place.path.rstrip('/')).name}.png")
    if picture.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"{picture}: expected a name that ends in one of {', '.join(SUFFIXES)}")
    try:
        with contextlib.closing(place.open()) as source:
            shown = collect(place, source, words, field)
    except FOREIGN as error:
        raise about(file, error) from error
    with writing_aside(picture, force=force) as aside:
        draw(shown, aside, picture.suffix.lower()[1:])
    click.echo(f"{picture}: {shown.title}")
