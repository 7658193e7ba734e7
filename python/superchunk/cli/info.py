"""``superchunk info``: describe a frame from its metadata alone.

Reads header, trailer and index, and with ``--chunks`` the header of each chunk; no chunk is
decompressed.

Source: docs/cli.md, section "info".
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import superchunk
from superchunk import Filter, SpecialValue
from superchunk.cli import output
from superchunk.cli.chunkmap import cells_as_json, print_strip
from superchunk.cli.layout import ArrayOfBlocks, Layout
from superchunk.cli.reading import open_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from superchunk import Codec, SChunk

__all__ = ["info"]

BAR = "▏▎▍▌▋▊▉█"
BAR_COLUMNS = 24
MAP_COLUMNS = 96
MAP_INDENT = 16
"""Columns of the map strip, at most, and of what is in front of it."""
LONGEST_VALUE = 100
"""Characters of a metalayer's value that are shown to people."""
_INDEX_FILE: Final = "chunks.b2frame"
_FIRST_BYTE: Final = b"\x9e"
_FRAME_LEN_AT: Final = 0x10
_FINGERPRINT_LEN: Final = 17
_FINGERPRINT_TYPE: Final = b"\3"
"""Where a frame says whether it has a fingerprint (docs/format/cframe.md, "Trailer", and integrity.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRow:
    """One chunk in the map."""

    nchunk: int
    nbytes: int
    cbytes: int
    special: str | None
    """``"zero"``, ``"nan"``, ``"value"`` or ``"uninit"``; None for a chunk with data."""

    @property
    def share(self) -> float:
        """Compressed bytes for each byte, at most 1: how full the bar is."""
        return min(self.cbytes / self.nbytes, 1.0) if self.nbytes else 0.0


def chunk_rows(schunk: SChunk) -> Iterator[ChunkRow]:
    """Yield the chunks in order, from their headers."""
    for chunk in schunk.iterchunks_info():
        nbytes, cbytes, _blocksize = superchunk.get_cbuffer_sizes(chunk.lazychunk)
        special = None if chunk.special is SpecialValue.NOT_SPECIAL else chunk.special.name.lower()
        yield ChunkRow(nchunk=chunk.nchunk, nbytes=nbytes, cbytes=cbytes, special=special)


def _name(choice: Codec | Filter | int) -> str:
    return f"id {choice}" if isinstance(choice, int) else choice.name.lower()


def _filters(schunk: SChunk) -> list[dict[str, Any]]:
    cparams = schunk.cparams
    return [
        {"filter": _name(step), "meta": meta}
        for step, meta in zip(cparams.filters, cparams.filters_meta, strict=True)
        if step is not Filter.NOFILTER
    ]


def _layer(value: object) -> object:
    """Return a metalayer's value as JSON can hold it."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, list | tuple):
        return [_layer(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _layer(part) for key, part in value.items()}
    return value if value is None or isinstance(value, str | int | float | bool) else repr(value)


def _fixed(schunk: SChunk, name: str) -> object:
    """Return a fixed metalayer as JSON can hold it; C programs store bytes that are no MessagePack."""
    try:
        return _layer(schunk.meta[name])
    except superchunk.SuperchunkError:
        return _layer(bytes(schunk.meta.raw(name)))


def _sealed(path: Path) -> bool:
    """Return whether a frame on the disk has a fingerprint: whoever changed it last sealed it."""
    with (path / _INDEX_FILE if path.is_dir() else path).open("rb") as file:
        head = file.read(_FRAME_LEN_AT + 8)
        if head[:1] != _FIRST_BYTE:
            return False
        file.seek(int.from_bytes(head[_FRAME_LEN_AT:], "big") - _FINGERPRINT_LEN)
        return file.read(1) == _FINGERPRINT_TYPE


def collect(path: str, schunk: SChunk, instead: str | None = None) -> dict[str, Any]:
    """Return everything about a frame but its chunks, fit for JSON; `instead` tells what it stands for, if not data."""
    cparams = schunk.cparams
    layout = Layout.of(schunk)
    array = ArrayOfBlocks.of(schunk) if instead is None else None
    file = Path(path)
    return {
        "path": path,
        "kind": "contiguous" if schunk.contiguous else "sparse",
        "stands_for": instead,
        "sealed": _sealed(file),
        "file_bytes": sum(part.stat().st_size for part in ([file] if file.is_file() else file.iterdir())),
        "nbytes": schunk.nbytes,
        "cbytes": schunk.cbytes,
        "ratio": round(output.ratio(schunk.nbytes, schunk.cbytes), 4),
        "typesize": schunk.typesize,
        "nitems": len(schunk),
        "nchunks": schunk.nchunks,
        "chunksize": schunk.chunksize,
        "blocksize": schunk.blocksize,
        "codec": _name(cparams.codec),
        "codec_meta": cparams.codec_meta,
        "clevel": cparams.clevel,
        "filters": _filters(schunk),
        **_array_facts(layout, array),
        "fortran_order": None if layout.header is None else layout.header.fortran_order,
        "b2nd": None if array is None else asdict(array),
        "metalayers": {name: _fixed(schunk, name) for name in schunk.meta},
        "vlmetalayers": list(schunk.vlmeta),
        "dead_bytes": schunk.dead_bytes,
        "chunk_map": cells_as_json(superchunk.chunk_map(schunk)),
    }


def _array_facts(layout: Layout, array: ArrayOfBlocks | None) -> dict[str, Any]:
    """Return dtype and shape, whoever says them."""
    if array is not None:
        return {"dtype": array.dtype, "shape": list(array.shape), "grid": list(array.grid)}
    return {
        "dtype": None if layout.dtype is None else str(layout.dtype),
        "shape": None if layout.header is None else list(layout.header.shape),
        "grid": None,
    }


def _than_plain(nbytes: int, cbytes: int) -> str:
    """Return how much smaller, or larger, compressed bytes are than plain ones; nothing if there are none.

    Examples
    --------
    >>> _than_plain(1000, 80), _than_plain(8, 40), _than_plain(0, 0)
    (', 12.50x smaller', ', 5.00x larger', '')

    """
    if not nbytes or not cbytes:
        return ""
    return f", {nbytes / cbytes:.2f}x smaller" if cbytes <= nbytes else f", {cbytes / nbytes:.2f}x larger"


def _lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line for people."""
    if facts["stands_for"] is not None:
        yield "no data", facts["stands_for"]
    yield "nbytes", f"{facts['nbytes']:,} ({output.size(facts['nbytes'])})"
    yield (
        "cbytes",
        f"{facts['cbytes']:,} ({output.size(facts['cbytes'])}){_than_plain(facts['nbytes'], facts['cbytes'])}",
    )
    on_disk = "file" if facts["kind"] == "contiguous" else "directory"
    yield on_disk, f"{facts['file_bytes']:,} ({output.size(facts['file_bytes'])}), {facts['dead_bytes']:,} dead"
    yield "frame", f"{facts['kind']}, {'sealed' if facts['sealed'] else 'not sealed'}"
    yield "items", f"{facts['nitems']:,} of {facts['typesize']} bytes"
    if facts["b2nd"] is not None:
        array = facts["b2nd"]
        yield (
            "array",
            f"{array['dtype']}, shape {array['shape']}, chunks {array['chunkshape']}, blocks {array['blockshape']}",
        )
        if array["read_as"] is not None:
            yield (
                "dtype",
                f"items of {facts['typesize']} bytes, dtype {array['dtype']}: read as {array['read_as']}",
            )
        yield "grid", f"{' x '.join(map(str, facts['grid'])) or '1'} chunks"
    elif facts["dtype"] is not None:
        shape = "" if facts["shape"] is None else f", shape {tuple(facts['shape'])}"
        order = ", Fortran order" if facts["fortran_order"] else ""
        yield "dtype", f"{facts['dtype']}{shape}{order}"
    chunksize = f"{facts['chunksize']:,} bytes each" if facts["chunksize"] else "of different sizes"
    blocksize = f"{facts['blocksize']:,} bytes" if facts["blocksize"] else "chosen for each chunk"
    yield "chunks", f"{facts['nchunks']:,}, {chunksize}; blocks {blocksize}"
    yield "codec", f"{facts['codec']}, level {facts['clevel']}"
    steps = [f"{step['filter']}:{step['meta']}" if step["meta"] else step["filter"] for step in facts["filters"]]
    yield "filters", ", ".join(steps) or "none"
    for name, value in facts["metalayers"].items():
        text = repr(value)
        yield "metalayer", f"{name} = {text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + ' ...'}"
    if facts["vlmetalayers"]:
        yield "vlmetalayers", ", ".join(facts["vlmetalayers"])


def bar(share: float) -> str:
    """Return a bar as long as `share`, 0 to 1, of `BAR_COLUMNS` columns.

    Examples
    --------
    >>> bar(0.5), bar(0.0)
    ('████████████', '')

    """
    eighths = round(share * BAR_COLUMNS * 8)
    return BAR[-1] * (eighths // 8) + (BAR[eighths % 8 - 1] if eighths % 8 else "")


def _print_map(schunk: SChunk) -> None:
    click.echo(f"\n{'chunk':>8} {'nbytes':>12} {'cbytes':>12} {'ratio':>9}  compressed to")
    for row in chunk_rows(schunk):
        what = f"special: {row.special}" if row.special else f"{bar(row.share):<{BAR_COLUMNS}} {row.share:6.1%}"
        times = output.ratio(row.nbytes, row.cbytes)
        click.echo(f"{row.nchunk:>8} {row.nbytes:>12,} {row.cbytes:>12,} {times:>8.2f}x  {what}")


@click.command(short_help="Show sizes, codec, filters, metalayers and the chunk map of a frame.")
@click.argument("frame", metavar="FRAME")
@click.option("--chunks", is_flag=True, help="Also list every chunk.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(*, frame: str, chunks: bool, as_json: bool) -> None:
    """Show the sizes, ratio, codec, filters and metalayers of FRAME."""
    with open_chunks(frame) as (schunk, instead):
        facts = collect(frame, schunk, instead)
        if as_json:
            if chunks:
                facts["chunks"] = [
                    {**asdict(row), "ratio": round(output.ratio(row.nbytes, row.cbytes), 4)}
                    for row in chunk_rows(schunk)
                ]
            output.print_json(facts)
            return
        click.echo(frame)
        for name, value in _lines(facts):
            click.echo(f"  {name:<13} {value}")
        print_strip(superchunk.chunk_map(schunk, output.columns(MAP_COLUMNS) - MAP_INDENT), schunk.nchunks)
        if chunks:
            _print_map(schunk)
