"""No input crashes, hangs or exhausts the process, and damage is an error of our own.

Files of the corpus that were made to harm are read in a process of their own; cut and flipped
chunks and frames by the thousand in this one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import corpus
import pytest
import reference
from drawn import (
    BITSHUFFLE,
    BLOSCLZ,
    BYTEDELTA,
    CODECS,
    DELTA,
    LZ4,
    SHUFFLE,
    ZSTD,
    Params,
    content,
    examples,
)
from hypothesis import given
from hypothesis import strategies as st
from peak_memory import PEAK

import superchunk
from superchunk import _engine
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READER = Path(__file__).with_name("hostile_reader.py")
MOST_MEMORY = 256 * 1024 * 1024
"""Bytes by which reading may make a process grow that then raises."""
MOST_SECONDS = 20
FAMILY = {"SuperchunkError"}
LARGEST_WHOLE = 1 << 22
"""Contents that claim more bytes than this are read at their ends only."""


# Files made to harm


def read_apart(kind: str, path: Path) -> dict[str, Any]:
    """Read a file in a process of its own; fail if that crashes or hangs."""
    command = [sys.executable, "-X", "faulthandler", str(READER), kind, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-2000:]}"
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@corpus.parametrize_hostile("chunk", "cframe", "sframe", "b2nd")
def test_hostile_file_ends_as_it_must(entry: corpus.Hostile) -> None:
    report = read_apart("chunk" if entry.kind == "chunk" else "frame", entry.path)
    if report["outcome"] == "raised":
        allowed = FAMILY | ({"MemoryError"} if entry.claims and entry.expect != "must raise" else set())
        assert allowed & set(report["error"]), report
        assert report["message"] or "MemoryError" in report["error"]
    # A block size that is no whole number of items can be repaired: then it is what went in.
    repaired = entry.group == "lost-tail" and report["outcome"] == "decoded"
    if entry.expect == "must raise" and not repaired:
        assert report["outcome"] == "raised", entry.why
    if entry.expect == "must decode":
        assert report["outcome"] == "decoded", report
    if report["outcome"] == "decoded" and entry.if_decodes is not None:
        assert report["sha256"] in entry.if_decodes
    if report["outcome"] == "raised":
        assert report["grown"] < MOST_MEMORY, report


# Damaged chunks


def encode(data: bytes, way: Params) -> bytes:
    """Compress in a way."""
    return _engine.compress(data, _engine.EncodeParams(**way.for_engine()))


def small_chunks() -> dict[str, bytes]:
    """Return chunks of a few hundred bytes that between them use all of the format."""
    mixed = content("blocky", 3000, 5)
    planes = content("planes", 1200, 6)
    records = b"".join(b"station %04d measured %03d;" % (i, i * i % 97) for i in range(400))
    chunks = {f"codec {codec}": encode(content("text", 400, 1), Params(codec=codec, typesize=1)) for codec in CODECS}
    return chunks | {
        "empty": encode(b"", Params()),
        "stored": encode(content("random", 100, 2), Params()),
        "split": encode(planes, Params(codec=LZ4, typesize=4, blocksize=400)),
        "streams of every kind": encode(mixed, Params(codec=LZ4, typesize=1, blocksize=512)),
        "short last block": encode(planes[:1001], Params(codec=BLOSCLZ, typesize=4, blocksize=256)),
        "delta": encode(
            planes,
            Params(codec=LZ4, typesize=4, blocksize=400, pipeline=((DELTA, 0), (SHUFFLE, 0))),
        ),
        "bitshuffle": encode(planes, Params(codec=LZ4, typesize=4, blocksize=400, pipeline=((BITSHUFFLE, 0),))),
        "bytedelta": encode(
            planes,
            Params(codec=ZSTD, typesize=4, pipeline=((SHUFFLE, 0), (BYTEDELTA, 4))),
        ),
        "dictionary": encode(
            records,
            Params(codec=LZ4, typesize=1, blocksize=1000, pipeline=(), use_dict=True),
        ),
        "zstd dictionary": encode(
            records,
            Params(codec=ZSTD, typesize=1, blocksize=1000, pipeline=(), use_dict=True),
        ),
        "variable-length blocks": _engine.compress_vlblocks(
            [b"one", b"two" * 50, b"three" * 20], _engine.EncodeParams(codec=LZ4, typesize=1)
        ),
        "zeros": encode(bytes(1000), Params()),
        "NaN": _engine.special_chunk(2, 800, 8),
        "one value": _engine.special_chunk(3, 900, 3, b"abc"),
        "not initialised": _engine.special_chunk(4, 900, 3),
        "16-byte header": old_chunk(),
    }


def old_chunk() -> bytes:
    """Return a chunk of Blosc 1: byte shuffle, zlib, split; made here of an engine's chunk."""
    new = encode(content("planes", 1200, 7), Params(codec=LZ4, typesize=4, blocksize=600))
    nblocks = 2
    table = b"".join(
        (int.from_bytes(new[32 + 4 * n : 36 + 4 * n], "little") - 16).to_bytes(4, "little") for n in range(nblocks)
    )
    flags = new[2] & ~0x04
    sizes = new[4:12] + (len(new) - 16).to_bytes(4, "little")
    return bytes([2, 1, flags, new[3]]) + sizes + table + new[32 + 4 * nblocks :]


CHUNKS = small_chunks()
every_chunk = pytest.mark.parametrize("name", CHUNKS)


def outcome(read: Callable[[], bytes]) -> bytes | None:
    """Return what came out, or None for one of our errors; others go through."""
    try:
        return read()
    except SuperchunkError:
        return None


def read_whole_or_ends(chunk: bytes, nthreads: int = 1) -> bytes:
    """Read a chunk, or only its ends when it claims a lot."""
    info = _engine.describe(chunk)
    if info.nbytes <= LARGEST_WHOLE:
        plain = _engine.decompress(chunk, nthreads=nthreads)
        assert len(plain) == info.nbytes
        return plain
    ends = [(chunk, -1, 0, 100, 0), (chunk, -1, info.nbytes - 100, info.nbytes, 100)]
    part = _engine.read(ends, nthreads=nthreads)
    assert part is not None
    return part


def refer_whole_or_ends(chunk: bytes) -> bytes:
    """Read as `read_whole_or_ends` does, with the reference decoder."""
    nbytes = reference.Header.from_bytes(chunk).nbytes
    if nbytes <= LARGEST_WHOLE:
        return reference.decode(chunk)
    first = reference.decode_range(chunk, 0, 100)
    return first + reference.decode_range(chunk, nbytes - 100, nbytes)


def flips(content: bytes, start: int, stop: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield byte, bit and `content` with that bit flipped, for all bits of a range."""
    for at in range(start, min(stop, len(content))):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[at] ^= 1 << bit
            yield at, bit, bytes(flipped)


@every_chunk
def test_small_chunk_is_sound_to_begin_with(name: str) -> None:
    plain = _engine.decompress(CHUNKS[name])
    assert plain == reference.decode(CHUNKS[name])


PART_OF_A_HUGE_BLOCK = """
from superchunk import _engine

nbytes = 500_000_000
sizes = b"".join(n.to_bytes(4, "little") for n in (nbytes, nbytes, 40, 0))
chunk = bytes([5, 1, 0x35, 1]) + sizes[:12] + bytes(16) + (36).to_bytes(4, "little") + bytes(4)
before = peak_bytes()
assert _engine.read([(chunk, nbytes, nbytes - 100, nbytes, 0)]) == bytes(100)
print(peak_bytes() - before)
"""


def test_part_of_a_huge_block_of_zeros_takes_little_memory() -> None:
    command = [sys.executable, "-c", PEAK + PART_OF_A_HUGE_BLOCK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) < MOST_MEMORY


@every_chunk
def test_chunk_cut_anywhere_is_an_error(name: str) -> None:
    chunk = CHUNKS[name]
    for kept in range(len(chunk)):
        for nthreads in (1, 2):
            with pytest.raises(SuperchunkError):
                _engine.decompress(chunk[:kept], nthreads=nthreads)


@every_chunk
def test_chunk_cut_anywhere_with_its_size_corrected_is_an_error_or_something(name: str) -> None:
    chunk = CHUNKS[name]
    for kept in range(16, len(chunk)):
        cut = chunk[:12] + kept.to_bytes(4, "little") + chunk[16:kept]
        plain = outcome(lambda cut=cut: read_whole_or_ends(cut))  # type: ignore[misc]
        if plain is not None:
            assert plain == reference.decode(cut)


@every_chunk
def test_any_flipped_bit_gives_an_error_or_what_the_reference_decoder_gives(name: str) -> None:
    chunk = CHUNKS[name]
    everything = len(chunk) if len(chunk) < 400 else 200
    for at, bit, flipped in flips(chunk, 0, everything):
        plain = outcome(lambda: read_whole_or_ends(flipped))  # noqa: B023 - called at once
        expected = outcome(lambda: refer_whole_or_ends(flipped))  # noqa: B023
        assert plain == expected, f"bit {bit} of byte {at}"
        threaded = outcome(lambda: read_whole_or_ends(flipped, 2))  # noqa: B023
        assert threaded == plain


@every_chunk
def test_flipped_bits_harm_no_other_call(name: str) -> None:
    for _at, _bit, flipped in flips(CHUNKS[name], 0, 60):
        for call in (
            lambda: bytes(_engine.describe(flipped).nblocks > 0),  # noqa: B023
            lambda: bytes(_engine.sizes([flipped])[0][0] >= 0),  # noqa: B023
            lambda: _engine.lazy_chunk(flipped, 1, 2),  # noqa: B023
            lambda: b"".join(_engine.read_vlblocks(flipped)),  # noqa: B023
            lambda: _engine.read([(flipped, -1, 3, 9, 0)]) or b"",  # noqa: B023
        ):
            outcome(call)


@every_chunk
@pytest.mark.parametrize("value", [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 32, 33, 64])
def test_any_32_bits_replaced_by_an_edge_give_an_error_or_something(name: str, value: int) -> None:
    chunk = CHUNKS[name]
    for at in range(min(len(chunk), 120) - 3):
        edged = chunk[:at] + value.to_bytes(4, "little") + chunk[at + 4 :]
        plain = outcome(lambda: read_whole_or_ends(edged))  # noqa: B023 - called at once
        assert plain == outcome(lambda: refer_whole_or_ends(edged)), at  # noqa: B023


@examples(400)
@given(
    st.sampled_from(sorted(CHUNKS)),
    st.lists(st.tuples(st.integers(0, 5000), st.binary(min_size=1, max_size=6)), max_size=5),
    st.integers(1, 3),
)
def test_random_damage_gives_an_error_or_something(name: str, damage: list[tuple[int, bytes]], nthreads: int) -> None:
    chunk = bytearray(CHUNKS[name])
    for place, patch in damage:
        at = place % len(chunk)
        chunk[at : at + len(patch)] = patch
    damaged = bytes(chunk)
    plain = outcome(lambda: read_whole_or_ends(damaged, nthreads))
    assert plain == outcome(lambda: refer_whole_or_ends(damaged))


@examples(300)
@given(st.binary(max_size=300))
def test_any_bytes_at_all_are_an_error_or_a_chunk(junk: bytes) -> None:
    assert outcome(lambda: read_whole_or_ends(junk)) == outcome(lambda: refer_whole_or_ends(junk))


@examples(300)
@given(
    st.integers(1, 6),
    st.integers(0, 255),
    st.integers(1, 20),
    st.integers(0, 400),
    st.integers(1, 500),
    st.binary(min_size=16, max_size=300),
)
def test_plausible_header_before_any_bytes_is_an_error_or_a_chunk(
    version: int, flags: int, typesize: int, nbytes: int, blocksize: int, behind: bytes
) -> None:
    sizes = (nbytes, blocksize, 16 + len(behind))
    head = bytes([version, 1, flags, typesize]) + b"".join(n.to_bytes(4, "little") for n in sizes)
    made = head + behind
    assert outcome(lambda: read_whole_or_ends(made)) == outcome(lambda: refer_whole_or_ends(made))


# Damaged frames


def small_frames() -> dict[str, bytes]:
    """Return frames of a few hundred bytes that between them use all of the format."""
    frames = {}
    ways = superchunk.CParams(typesize=4, codec=superchunk.Codec.LZ4, nthreads=1)
    content_of: list[tuple[str, list[int], dict[str | bytes, object], dict[str, object]]] = [
        ("no data", [], {}, {}),
        ("one chunk", [400], {}, {}),
        ("metalayers", [400], {"unit": "m/s", "n": 5}, {"history": ["made"], "note": b"x" * 50}),
        ("three chunks", [400, 400, 100], {}, {"v": 1}),
        ("sizes vary", [400, 100, 400, 800], {"m": 1}, {}),
    ]
    for name, pieces, meta, vlmeta in content_of:
        schunk = superchunk.SChunk(chunksize=400, cparams=ways, meta=meta, contiguous=True)
        for n, nbytes in enumerate(pieces):
            schunk.append_data(content("planes", nbytes, n))
        for key, value in vlmeta.items():
            schunk.vlmeta[key] = value
        frames[name] = schunk.to_cframe()
    special = superchunk.SChunk(chunksize=4000, cparams=ways, contiguous=True)
    special.fill_special(3500, superchunk.SpecialValue.ZERO)
    frames["special values"] = special.to_cframe()
    return frames


@pytest.fixture(scope="module")
def frames() -> dict[str, bytes]:
    """Return the small frames, made once."""
    return small_frames()


FRAMES = ("no data", "one chunk", "metalayers", "three chunks", "sizes vary", "special values")
every_frame = pytest.mark.parametrize("name", FRAMES)


def read_frame(schunk: superchunk.SChunk) -> bytes:
    """Read all of a frame that may be damaged, no more than some chunks of it."""
    numbers = range(schunk.nchunks)
    plain = [
        schunk.decompress_chunk(nchunk) or b""
        for nchunk in (numbers if len(numbers) < 20 else (0, len(numbers) - 1))
        if _engine.describe(schunk.get_chunk(nchunk)).nbytes <= LARGEST_WHOLE
    ]
    for mapping in (schunk.meta, schunk.vlmeta):
        for name in mapping:
            mapping.get(name)
    if schunk.nbytes <= LARGEST_WHOLE:
        schunk.get_slice(0, min(len(schunk), 50))
    return b"".join(plain)


def from_bytes(frame: bytes) -> bytes | None:
    """Read a frame in memory; None for one of our errors."""

    def read() -> bytes:
        with superchunk.schunk_from_cframe(frame) as schunk:
            return read_frame(schunk)

    return outcome(read)


def from_file(path: Path, frame: bytes) -> bytes | None:
    """Read a frame in a file; None for one of our errors."""
    path.write_bytes(frame)

    def read() -> bytes:
        with superchunk.open(path) as schunk:
            return read_frame(schunk)

    return outcome(read)


@every_frame
def test_frame_cut_anywhere_is_an_error(name: str, frames: dict[str, bytes], tmp_path: Path) -> None:
    frame = frames[name]
    for kept in range(len(frame)):
        assert from_bytes(frame[:kept]) is None, kept
        assert from_file(tmp_path / "cut", frame[:kept]) is None, kept


@every_frame
def test_flipped_bit_of_a_frame_gives_an_error_or_something(
    name: str, frames: dict[str, bytes], tmp_path: Path
) -> None:
    frame = frames[name]
    for at, bit, flipped in flips(frame, 0, len(frame)):
        read = from_bytes(flipped)
        if bit == at % 8:  # files are slower, and all but the beginning is shared
            assert from_file(tmp_path / "flipped", flipped) == read, (at, bit)


@every_frame
@pytest.mark.parametrize("value", [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 0xC1C1C1C1])
def test_any_32_bits_of_a_frame_replaced_give_an_error_or_something(
    name: str, value: int, frames: dict[str, bytes]
) -> None:
    frame = frames[name]
    for at in range(len(frame) - 3):
        from_bytes(frame[:at] + value.to_bytes(4, "big") + frame[at + 4 :])


@examples(300)
@given(
    st.sampled_from(FRAMES),
    st.lists(st.tuples(st.integers(0, 5000), st.binary(min_size=1, max_size=9)), max_size=4),
    st.sampled_from([0, 0, 0, -1, 1, 20]),
)
def test_random_damage_of_a_frame_gives_an_error_or_something(
    frames: dict[str, bytes], name: str, damage: list[tuple[int, bytes]], longer: int
) -> None:
    frame = bytearray(frames[name])
    for place, patch in damage:
        at = place % len(frame)
        frame[at : at + len(patch)] = patch
    if longer < 0:
        del frame[longer:]
    from_bytes(bytes(frame) + bytes(max(longer, 0)))


@examples(200)
@given(st.binary(max_size=300))
def test_any_bytes_at_all_are_no_frame(junk: bytes) -> None:
    assert from_bytes(junk) is None
    assert from_bytes(b"\x9e\xa8b2frame\0" + junk) is None


@examples(100)
@given(st.binary(max_size=300))
def test_any_bytes_in_a_file_are_no_frame(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "junk"
    assert from_file(path, junk) is None
