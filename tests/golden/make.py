"""Make golden files: small, one feature each, named by writer, version and feature.

::

    python tests/golden/make.py            # adds what is missing; never rewrites

    blosc2-4.14.1-FEATURE.chunk|.b2frame   written by the peer, at exactly that version
    superchunk-0.1.0-FEATURE....           written by us, so that later versions read them
    manifest.json                          what each one holds, by the data that went in

The expected bytes are those that went into the writer, never those that a reader got out; where
a filter loses precision, they are worked out here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import blosc2

import superchunk
from superchunk import _engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
PEER = "4.14.1"
OURS = "0.1.0"
Made = tuple[str, str, bytes, dict[str, Any]]
"""Feature, kind, bytes of the file, what it holds."""


def ramp(nbytes: int, step: int = 7) -> bytes:
    """Return growing 4-byte integers."""
    return b"".join(struct.pack("<i", n * step // 3) for n in range(nbytes // 4 + 1))[:nbytes]


def floats(n: int) -> bytes:
    """Return `n` doubles of a slow oscillation."""
    return b"".join(struct.pack("<d", 20 + (k % 97) * 0.125 + k / 1024) for k in range(n))


def text(nbytes: int) -> bytes:
    """Return lines that are much alike."""
    lines = b"".join(b"station %05d: wind %d m/s\n" % (n, n * n % 31) for n in range(nbytes // 20))
    return lines[:nbytes]


def noise(nbytes: int) -> bytes:
    """Return bytes that nothing compresses."""
    parts = (hashlib.sha256(struct.pack("<i", n)).digest() for n in range(nbytes // 32 + 1))
    return b"".join(parts)[:nbytes]


def sha256(data: bytes) -> str:
    """Return the hash of `data`."""
    return hashlib.sha256(data).hexdigest()


def holds(data: bytes, typesize: int, **more: Any) -> dict[str, Any]:
    """Return what a manifest says of `data`."""
    return {"nbytes": len(data), "sha256": sha256(data), "typesize": typesize, **more}


def peer_chunk(data: bytes, typesize: int, **cparams: Any) -> tuple[bytes, dict[str, Any]]:
    """Return a chunk of the peer's and what it holds."""
    plain = {"nthreads": 1, "filters": [blosc2.Filter.SHUFFLE], "filters_meta": [0]}
    return blosc2.compress2(data, typesize=typesize, **(plain | cparams)), holds(data, typesize)


def peer_chunks() -> Iterator[Made]:
    """Yield single chunks of the peer."""

    def chunk(feature: str, data: bytes, typesize: int, **cparams: Any) -> Made:
        return feature, "chunk", *peer_chunk(data, typesize, **cparams)

    only = blosc2.Filter
    for codec in ("BLOSCLZ", "LZ4", "LZ4HC", "ZLIB", "ZSTD"):
        yield chunk(f"codec-{codec.lower()}", ramp(4000), 4, codec=blosc2.Codec[codec])
    yield chunk("level-0", ramp(400), 4, clevel=0)
    yield chunk("level-9", text(4000), 1, clevel=9)
    yield chunk("no-filter", text(2000), 1, filters=[only.NOFILTER])
    yield chunk("bitshuffle", ramp(4000), 4, filters=[only.BITSHUFFLE])
    yield chunk("bitshuffle-tail", ramp(4003), 4, filters=[only.BITSHUFFLE])
    yield chunk(
        "delta-shuffle",
        ramp(8000),
        4,
        blocksize=2000,
        filters=[only.DELTA, only.SHUFFLE],
        filters_meta=[0, 0],
    )
    yield chunk(
        "shuffle-bytedelta",
        floats(600),
        8,
        filters=[only.SHUFFLE, only.BYTEDELTA],
        filters_meta=[0, 8],
    )
    yield chunk("shuffle-meta-2", ramp(4000), 4, filters_meta=[2])
    yield chunk("split-always", ramp(4000), 4, splitmode=blosc2.SplitMode.ALWAYS_SPLIT)
    yield chunk("split-never", ramp(4000), 4, splitmode=blosc2.SplitMode.NEVER_SPLIT)
    yield chunk("many-blocks", ramp(4100), 4, blocksize=256)
    yield chunk("short-last-block", ramp(4001), 4, blocksize=1000)
    yield chunk("typesize-3", ramp(3000), 3)
    yield chunk("typesize-255", ramp(255 * 20), 255)
    yield chunk("typesize-1000", ramp(8000), 1000)
    yield chunk("stored", noise(500), 4)
    yield chunk("tiny", b"a few bytes", 1)
    yield chunk("zeros", bytes(10_000), 8)
    yield chunk(
        "runs-and-raw",
        bytes([7]) * 512 + bytes(512) + noise(512) + text(512),
        1,
        blocksize=512,
        filters=[only.NOFILTER],
    )
    yield chunk("dictionary-zstd", text(12_000), 1, use_dict=True, blocksize=1000)
    yield chunk("dictionary-lz4", text(12_000), 1, use_dict=True, blocksize=1000, codec=blosc2.Codec.LZ4)
    yield chunk("dictionary-flag-on-stored", noise(6000), 1, use_dict=True, codec=blosc2.Codec.LZ4)
    yield chunk("blocksize-not-whole-items", ramp(3000), 12, blocksize=1001, codec=blosc2.Codec.LZ4)
    doubles = floats(600)
    bits = struct.unpack("<600Q", doubles)
    kept = struct.pack("<600Q", *(bit >> 32 << 32 for bit in bits))
    truncated, _ = peer_chunk(doubles, 8, filters=[only.TRUNC_PREC, only.SHUFFLE], filters_meta=[20, 0])
    yield "trunc-prec", "chunk", truncated, holds(kept, 8)
    for kind, item, size in (
        (blosc2.SpecialValue.NAN, struct.pack("<d", float("nan")), 8),
        (blosc2.SpecialValue.VALUE, b"abcd", 4),
    ):
        schunk = blosc2.SChunk(chunksize=100 * size, cparams={"typesize": size})
        schunk.fill_special(100, kind, item if kind is blosc2.SpecialValue.VALUE else None)
        yield f"special-{kind.name.lower()}", "chunk", schunk.get_chunk(0), holds(item * 100, size)


def in_a_file(make: Callable[[str], object]) -> bytes:
    """Return the file that `make` writes to the path that it is given."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frame.b2frame"
        make(str(path))
        return path.read_bytes()


def of_chunks(chunks: list[bytes], typesize: int = 4, **more: Any) -> dict[str, Any]:
    """Return what a manifest says of a frame of these chunks."""
    return holds(b"".join(chunks), typesize, chunks=[sha256(chunk) for chunk in chunks], **more)


def frames(writer: Any) -> Iterator[Made]:
    """Yield frames that either side can write."""
    special = writer.SpecialValue

    def make(path: str, chunksize: int = 800, **more: Any) -> Any:
        cparams = {"typesize": 4, "nthreads": 1, "codec": writer.Codec.LZ4}
        return writer.SChunk(chunksize=chunksize, cparams=cparams, urlpath=path, mode="w", contiguous=True, **more)

    def appended(schunk: Any, chunks: list[bytes]) -> Any:
        for chunk in chunks:
            schunk.append_data(chunk)
        return schunk

    a, b, c, d = (ramp(800, step) for step in (3, 5, 7, 11))
    short = ramp(200, 13)
    done: Callable[[Any], object] = lambda s: s.close() if hasattr(s, "close") else None  # noqa: E731

    yield "empty", "frame", in_a_file(lambda p: done(make(p))), of_chunks([])
    yield "one-chunk", "frame", in_a_file(lambda p: done(appended(make(p), [a]))), of_chunks([a])
    yield (
        "short-last-chunk",
        "frame",
        in_a_file(lambda p: done(appended(make(p), [a, b, short]))),
        of_chunks([a, b, short]),
    )

    def changed(path: str) -> None:
        schunk = appended(make(path), [a, b])
        schunk.insert_data(0, c, copy=True)
        schunk.update_data(1, d, copy=True)
        schunk.append_data(a)
        schunk.delete_chunk(2)
        done(schunk)

    yield "changed", "frame", in_a_file(changed), of_chunks([c, d, a])

    def reordered(path: str) -> None:
        schunk = appended(make(path), [a, b, c])
        schunk.reorder_offsets([2, 0, 1])
        done(schunk)

    yield "reordered", "frame", in_a_file(reordered), of_chunks([c, a, b])

    def with_layers(path: str) -> None:
        schunk = appended(make(path, meta={"unit": "m/s", "n": 300}), [a])
        schunk.vlmeta["history"] = ["made", 1, None]
        schunk.vlmeta["long"] = "x" * 2000
        schunk.vlmeta["gone"] = 1
        del schunk.vlmeta["gone"]
        done(schunk)

    yield (
        "metalayers",
        "frame",
        in_a_file(with_layers),
        of_chunks(
            [a],
            meta={"unit": "a36d2f73", "n": "cd012c"},
            vlmeta={"history": "93a46d61646501c0", "long": "da07d0" + "78" * 2000},
        ),
    )

    def filled(path: str) -> None:
        schunk = make(path)
        schunk.fill_special(2050, special.VALUE, b"abcd")
        done(schunk)

    whole = [b"abcd" * 200] * 10 + [b"abcd" * 50]
    yield "filled-with-a-value", "frame", in_a_file(filled), of_chunks(whole)

    def specials(path: str) -> None:
        schunk = appended(make(path), [a, bytes(800), b, bytes(800)])
        schunk.update_special(2, special.ZERO)
        done(schunk)

    yield (
        "zeros-among-others",
        "frame",
        in_a_file(specials),
        of_chunks([a, bytes(800), bytes(800), bytes(800)]),
    )
    sizes = [a, short, ramp(4000, 2), b]
    yield (
        "sizes-vary",
        "frame",
        in_a_file(lambda p: done(appended(make(p, -1), sizes))),
        of_chunks(sizes),
    )


def our_chunks() -> Iterator[Made]:
    """Yield chunks of ours that the peer's Python package cannot be asked for."""
    blocks = [b"one", text(500), ramp(300)]
    ways = _engine.EncodeParams(codec=5, typesize=1)
    chunk = _engine.compress_vlblocks(blocks, ways)
    vlblocks = {"blocks": [sha256(block) for block in blocks]}
    yield "variable-length-blocks", "chunk", chunk, holds(b"".join(blocks), 1, **vlblocks)
    six = bytes([3, 1, 35, 2, 1, 35])
    ways = _engine.EncodeParams(
        codec=1, typesize=4, blocksize=1000, filters=six, filters_meta=bytes([0, 0, 4, 0, 2, 2])
    )
    yield "six-filters", "chunk", _engine.compress(ramp(4000), ways), holds(ramp(4000), 4)
    for codec in range(6):
        if codec != 3:  # noqa: PLR2004 - Snappy, of Blosc 1 only
            ways = _engine.EncodeParams(codec=codec, typesize=8, blocksize=1600)
            yield f"codec-{codec}", "chunk", _engine.compress(floats(500), ways), holds(floats(500), 8)


def main() -> None:
    """Add the files that are missing, and their entries."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    if blosc2.__version__ != PEER or superchunk.__version__ != OURS:
        raise SystemExit(
            f"expected blosc2 {PEER} and superchunk {OURS}, found {blosc2.__version__} and {superchunk.__version__}"
        )
    manifest = HERE / "manifest.json"
    entries = json.loads(manifest.read_text()) if manifest.exists() else []
    known = {entry["file"] for entry in entries}
    made = [(f"blosc2-{PEER}", each) for each in (*peer_chunks(), *frames(blosc2))]
    made += [(f"superchunk-{OURS}", each) for each in (*our_chunks(), *frames(superchunk))]
    for writer, (feature, kind, content, expected) in made:
        name = f"{writer}-{feature}.{'chunk' if kind == 'chunk' else 'b2frame'}"
        if name not in known:
            (HERE / name).write_bytes(content)
            entries.append({"file": name, "kind": kind, "file_sha256": sha256(content), **expected})
    manifest.write_text(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    main()
