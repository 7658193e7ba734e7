"""``superchunk list-codecs``: list the built-in codecs and filters.

Source: docs/format/chunk.md for the numbers.
"""

from __future__ import annotations

import click

import superchunk
from superchunk import Filter
from superchunk.cli import output

__all__ = ["list_codecs"]

LIKES = {
    "blosclz": "speed on repetitive bytes",
    "lz4": "speed of compression and decompression",
    "lz4hc": "lz4's decompression speed, smaller size",
    "zlib": "compatibility with every reader",
    "zstd": "small size, fast decompression",
}
FILTERS = {
    Filter.SHUFFLE: "groups the first bytes of all items, the second bytes, ...",
    Filter.BITSHUFFLE: "groups the first bits of all items, the second bits, ...",
    Filter.DELTA: "XOR with the chunk's first block",
    Filter.TRUNC_PREC: "lossy: keeps META bits of a float's mantissa (negative: drops them)",
    Filter.INT_TRUNC: "lossy: keeps META bits of an integer (negative: drops them)",
    Filter.BYTEDELTA: "differences within each byte stream; after shuffle",
}


@click.command("list-codecs", short_help="List the built-in codecs and filters.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_codecs(*, as_json: bool) -> None:
    """List the built-in codecs and filters, with the versions of their libraries."""
    codecs = []
    for codec in superchunk.compressor_list():
        library, version = (text.decode() for text in superchunk.clib_info(codec))
        name = codec.name.lower()
        codecs.append({"codec": name, "id": codec.value, "library": library, "version": version})
    filters = [{"filter": known.name.lower(), "id": known.value, "does": does} for known, does in FILTERS.items()]
    if as_json:
        output.print_json({"codecs": codecs, "filters": filters})
        return
    output.table(
        ["codec", "good at", "library", "version", "id"],
        [
            [str(c["codec"]), LIKES.get(str(c["codec"]), ""), str(c["library"]), str(c["version"]), str(c["id"])]
            for c in codecs
        ],
        text_columns=3,
    )
    click.echo()
    output.table(
        ["filter", "does", "id"],
        [[str(f["filter"]), str(f["does"]), str(f["id"])] for f in filters],
        text_columns=2,
    )
