"""Seals and the hashes they are made of: published values, every verdict, every place."""

from __future__ import annotations

import errno
import os
import random
import struct
import threading
import time
from array import array
from typing import TYPE_CHECKING

import pytest

from superchunk import _engine
from superchunk._format.integrity import CommitRecord, fingerprint, header_mask, record_len
from superchunk._format.trailer import Trailer
from superchunk.exceptions import FormatError, StorageError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from superchunk._engine import Source

MAGIC = b"SCSEAL1\0"
SEALED, NOT_SEALED, DIFFERS, UNREADABLE, BEYOND = range(5)
BOUNDLESS = 2**64 - 1
PLAIN = _engine.EncodeParams(codec=1, clevel=0, typesize=1, filters=bytes(6))
PACKED = _engine.EncodeParams(codec=1, clevel=5, typesize=4, blocksize=4096)
PIECE = 256 * 1024
"""Bytes of a file that the engine hashes at a time."""

# The first hashes of xxHash's own list (seed 0, no secret), by length of the input.
HASHES_64 = {
    1: 0xC44BDFF4074EECDB,
    6: 0x27B56A84CD2D7325,
    12: 0xA713DAF0DFBB77E7,
    24: 0xA3FE70BF9D3510EB,
    48: 0x397DA259ECBA1F11,
    80: 0xBCDEFBBB2C47C90A,
    195: 0xCD94217EE362EC3A,
    403: 0xCDEB804D65C6DEA4,
    512: 0x617E49599013CB6B,
    2048: 0xDD59E2C3A5F038E0,
    2240: 0x6E73A90539CF2948,
    2367: 0xCB37AEB9E5D361ED,
}
HASHES_128 = {
    1: (0xC44BDFF4074EECDB, 0xA6CD5E9392000F6A),
    6: (0x3E7039BDDA43CFC6, 0x082AFE0B8162D12A),
    12: (0x061A192713F69AD9, 0x6E3EFD8FC7802B18),
    24: (0x1E7044D28B1B901D, 0x0CE966E4678D3761),
    48: (0xF942219AED80F67B, 0xA002AC4E5478227E),
    81: (0x5E8BAFB9F95FB803, 0x4952F58181AB0042),
    222: (0xF1AEBD597CEC6B3A, 0x337E09641B948717),
    403: (0xCDEB804D65C6DEA4, 0x1B6DE21E332DD73D),
    512: (0x617E49599013CB6B, 0x18D2D110DCC9BCA1),
    2048: (0xDD59E2C3A5F038E0, 0xF736557FD47073A5),
}
PRIME32 = 2654435761
PRIME64 = 11400714785074694797


def vector(length: int) -> bytes:
    """Return the input that xxHash's list is made of."""
    out, state = bytearray(), PRIME32
    for _ in range(length):
        out.append(state >> 56)
        state = state * PRIME64 % 2**64
    return bytes(out)


def content(length: int) -> bytes:
    return b"".join(struct.pack("<I", n * 7 // 3) for n in range(length // 4 + 1))[:length]


def sealed(nbytes: int) -> tuple[bytes, int]:
    """Return a chunk with its seal, and how many of the bytes are the chunk."""
    chunk = _engine.compress(content(nbytes), PLAIN)
    return chunk + _engine.seal(chunk), len(chunk)


SIZES = [1, 5000, PIECE - 48, PIECE - 47, PIECE, 3 * PIECE + 11]


# ---- hashes ----


def test_hashes_of_nothing_are_the_published_ones() -> None:
    nothing: list[list[Source]] = [[], [b""], [b"", bytearray()]]
    for parts in nothing:
        assert _engine.hash64(parts) == 0x2D06800538D394C2
        low, high = struct.unpack("<QQ", _engine.hash128(parts))
        assert f"{high:016x}{low:016x}" == "99aa06d3014798d86001c324468d497f"


@pytest.mark.parametrize("size", HASHES_64)
def test_64_bits_are_the_published_ones(size: int) -> None:
    data = vector(size)
    assert _engine.hash64([data]) == HASHES_64[size]
    assert _engine.hash64([data[: size // 3], data[size // 3 :]]) == HASHES_64[size]


@pytest.mark.parametrize("size", HASHES_128)
def test_128_bits_are_the_published_ones(size: int) -> None:
    data = vector(size)
    expected = struct.pack("<QQ", *HASHES_128[size])
    assert _engine.hash128([data]) == expected
    assert _engine.hash128([data[: size // 3], data[size // 3 :]]) == expected


def test_seal_is_magic_and_hash_of_the_chunk_alone() -> None:
    bytes_, cbytes = sealed(5000)
    expected = MAGIC + struct.pack("<Q", _engine.hash64([bytes_[:cbytes]]))
    assert bytes_[cbytes:] == expected
    assert _engine.seal(bytes_ + b"anything") == expected
    assert _engine.seal(memoryview(bytes_)) == expected


@pytest.mark.parametrize("size", [0, 15, 31])
def test_seal_of_less_than_a_header_is_an_error(size: int) -> None:
    with pytest.raises(TruncatedError):
        _engine.seal(sealed(5000)[0][:size])


def test_seal_of_a_damaged_header_is_an_error() -> None:
    with pytest.raises(FormatError, match="typesize"):
        _engine.seal(b"\5\1\7\0" + sealed(5000)[0][4:])


@pytest.mark.parametrize("cut", [0, 1, 64, 241, 4096, PIECE, PIECE + 1, 2 * PIECE + 77])
def test_parts_hash_like_the_whole(tmp_path: Path, cut: int) -> None:
    whole = vector(2 * PIECE + 77)
    path = tmp_path / "content"
    path.write_bytes(b"front" + whole)
    with path.open("rb") as file:
        first: list[Source] = [whole[:cut], (file.fileno(), 5, cut), (str(path), 5, cut)]
        second: list[Source] = [whole[cut:], (file.fileno(), 5 + cut, len(whole) - cut)]
        second.append((str(path), 5 + cut, len(whole) - cut))
        for one in first:
            for other in second:
                assert _engine.hash64([one, other]) == _engine.hash64([whole])
                assert _engine.hash128([one, other]) == _engine.hash128([whole])


@pytest.mark.parametrize("hashed", [_engine.hash64, _engine.hash128])
@pytest.mark.parametrize(("offset", "limit"), [(0, 101), (90, 11), (200, 1), (0, BOUNDLESS)])
def test_a_range_that_is_not_there_is_not_hashed(
    tmp_path: Path, hashed: Callable[[list[Source]], object], offset: int, limit: int
) -> None:
    path = tmp_path / "short"
    path.write_bytes(bytes(100))
    with pytest.raises(TruncatedError) as caught:
        hashed([(str(path), offset, limit)])
    assert (caught.value.needed, caught.value.got) == (limit, max(100 - offset, 0))


def test_hashing_lets_other_threads_run() -> None:
    data = bytes(64 << 20)
    stamps: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            stamps.append(time.perf_counter())
            time.sleep(0.0005)

    ticker = threading.Thread(target=tick)
    ticker.start()
    began = time.perf_counter()
    _engine.hash64([data] * 20)
    ended = time.perf_counter()
    stop.set()
    ticker.join()
    quarter = (ended - began) / 4
    assert any(began + quarter < stamp < ended - quarter for stamp in stamps)


# ---- checking ----


def statuses(path: Path, limit: int) -> set[tuple[int, int]]:
    """Return what checking says of a file's bytes, in memory, open and named."""
    data = path.read_bytes()[:limit]
    with path.open("rb") as file:
        sources: list[Source] = [data, (file.fileno(), 0, limit), (str(path), 0, limit)]
        return set(_engine.check_seals(sources))


@pytest.mark.parametrize("size", SIZES)
def test_each_status(tmp_path: Path, size: int) -> None:
    path = tmp_path / "chunk"
    bytes_, cbytes = sealed(size)

    def of(data: bytes, limit: int = BOUNDLESS) -> set[tuple[int, int]]:
        path.write_bytes(data)
        return statuses(path, limit)

    assert of(bytes_) == {(SEALED, cbytes)}
    assert of(bytes_ + b"behind") == {(SEALED, cbytes)}
    assert of(bytes_, cbytes + 16) == {(SEALED, cbytes)}
    assert of(bytes_[:cbytes]) == {(NOT_SEALED, cbytes)}
    assert of(bytes_[:-1]) == {(NOT_SEALED, cbytes)}
    assert of(bytes_, cbytes + 15) == {(NOT_SEALED, cbytes)}
    assert of(bytes_, cbytes) == {(NOT_SEALED, cbytes)}
    assert of(bytes_[:cbytes] + bytes(16)) == {(NOT_SEALED, cbytes)}
    for at in (32, cbytes - 1, cbytes + 8, cbytes + 15):
        assert of(bytes_[:at] + bytes([bytes_[at] ^ 4]) + bytes_[at + 1 :]) == {(DIFFERS, cbytes)}
    assert of(bytes_[:3] + b"\0" + bytes_[4:]) == {(UNREADABLE, 0)}
    assert of(bytes_[:31]) == {(UNREADABLE, 0)}
    assert of(b"") == {(UNREADABLE, 0)}
    assert of(bytes_, 31) == {(UNREADABLE, 0)}
    assert of(bytes_[: cbytes - 1]) == {(BEYOND, cbytes)}
    assert of(bytes_, cbytes - 1) == {(BEYOND, cbytes)}
    claim = bytes_[:4] + struct.pack("<iii", 2**31 - 33, 1000, 2**31 - 1) + bytes_[16:]
    assert of(claim) == {(BEYOND, 2**31 - 1)}


def test_special_and_small_chunks_can_be_sealed() -> None:
    chunks = [_engine.special_chunk(kind, 4000, 4) for kind in (1, 2, 4)]
    chunks.append(_engine.special_chunk(3, 4000, 4, b"abcd"))
    chunks.append(_engine.compress(b"", PLAIN))
    chunks.append(_engine.compress(content(5000), _engine.EncodeParams(codec=1, blosc1=True)))
    assert _engine.check_seals([chunk + _engine.seal(chunk) for chunk in chunks]) == [
        (SEALED, len(chunk)) for chunk in chunks
    ]


def test_a_name_without_a_chunk_is_unreadable(tmp_path: Path) -> None:
    target = tmp_path / "chunk"
    target.write_bytes(sealed(100)[0])
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    sources: list[Source] = [(str(tmp_path / name), 0, BOUNDLESS) for name in ("missing", "link", "pipe", ".")]
    sources += [(str(target), offset, BOUNDLESS) for offset in (2**40, 2**63 - 1, 2**63, BOUNDLESS)]
    assert _engine.check_seals(sources) == [(UNREADABLE, 0)] * len(sources)


def test_a_closed_descriptor_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "chunk"
    path.write_bytes(sealed(100)[0])
    with path.open("rb") as file:
        fd = os.dup(file.fileno())
    os.close(fd)
    sources: list[Source] = [path.read_bytes(), (fd, 0, BOUNDLESS)]
    with pytest.raises(StorageError) as caught:
        _engine.check_seals(sources)
    assert caught.value.errno == errno.EBADF
    assert caught.value.nrequest == 1  # type: ignore[attr-defined]


def test_threads_agree(tmp_path: Path) -> None:
    sources: list[Source] = []
    for n in range(60):
        data, cbytes = sealed(n * 9001)
        kept = [data, data[:cbytes], data[:-1] + bytes([data[-1] ^ 1]), data[:20], data[: cbytes - 1]][n % 5]
        path = tmp_path / str(n)
        path.write_bytes(kept)
        sources.append(kept if n % 2 else (str(path), 0, BOUNDLESS))
    one = _engine.check_seals(sources)
    assert {status for status, _ in one} == {SEALED, NOT_SEALED, DIFFERS, UNREADABLE, BEYOND}
    for nthreads in (0, 2, 7, 1000):
        assert _engine.check_seals(sources, nthreads) == one


# ---- chunks in a row ----


def test_a_run_says_what_is_said_of_each_chunk(tmp_path: Path) -> None:
    path = tmp_path / "run"
    content, entries = bytearray(b"front"), array("q")
    for n in range(60):
        data, cbytes = sealed(n * 9001 % 70_001)
        kept = [data, data[:cbytes], data[:-1] + bytes([data[-1] ^ 1]), data[:20], data[: cbytes - 1]][n % 5]
        entries.append(len(content) - 5)
        content += kept
    path.write_bytes(content)
    room = len(content) - 5
    with path.open("rb") as file:
        fd = file.fileno()
        ends = [*entries[1:], room]
        each = [(fd, 5 + entry, end - entry) for entry, end in zip(entries, ends, strict=True)]
        found = _engine.check_seals(each)
        assert {status for status, _ in found} == {SEALED, NOT_SEALED, DIFFERS, UNREADABLE, BEYOND}
        for nthreads in (0, 1, 2, 7):
            statuses, cbytes_, nbytes = _engine.check_run(fd, 5, entries, room, nthreads)
            assert list(zip(statuses, memoryview(cbytes_).cast("I"), strict=True)) == found
            readable = [n for n, (status, _) in enumerate(found) if status < UNREADABLE]
            sizes = _engine.sizes([each[n] for n in readable])
            assert [memoryview(nbytes).cast("I")[n] for n in readable] == [size for size, _ in sizes]
        # From bytes that are not aligned.
        shifted = memoryview(b"x" + entries.tobytes())[1:]
        assert _engine.check_run(fd, 5, shifted, room)[0] == statuses
        assert _engine.check_run(fd, 5, b"", 0) == (b"", b"", b"")


@pytest.mark.parametrize("entries", [[5, 3], [5, 5], [-1, 5], [0, 101], [-(2**63)], [2**63 - 1]])
def test_a_run_ascends_within_its_room(tmp_path: Path, entries: list[int]) -> None:
    path = tmp_path / "run"
    path.write_bytes(bytes(100))
    with path.open("rb") as file:
        with pytest.raises(ValueError, match="entries"):
            _engine.check_run(file.fileno(), 0, array("q", entries), 100)
        with pytest.raises(ValueError, match="entries"):
            _engine.check_run(file.fileno(), 0, bytes(9), 100)


def test_a_closed_descriptor_is_no_damage_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_bytes(bytes(100))
    with path.open("rb") as file:
        fd = os.dup(file.fileno())
    os.close(fd)
    with pytest.raises(StorageError) as caught:
        _engine.check_run(fd, 0, array("q", [0, 50]), 100)
    assert caught.value.errno == errno.EBADF


# ---- proven trailers ----


@pytest.mark.parametrize("chunk_len", [None, 0, 1, 200, 65_536, 65_537, 300_000])
@pytest.mark.parametrize("of_a_file", [False, True])
def test_a_proven_trailer_says_what_plain_code_reads_from_it(
    tmp_path: Path, chunk_len: int | None, *, of_a_file: bool
) -> None:
    rng = random.Random(chunk_len)
    header = rng.randbytes(130)
    layers = {"one": (95, 7), "two": (110, 20)}
    plain = Trailer(vlmeta={"name": b"chunk"}, fingerprint_type=3).to_bytes()
    chunk = None if chunk_len is None else rng.randbytes(chunk_len)
    path = tmp_path / "index"
    path.write_bytes(b"before" + (chunk or b"") + b"behind")
    with path.open("rb") as file:
        source = chunk if chunk is None or not of_a_file else (file.fileno(), 6, len(chunk))
        mask = header_mask(len(header), layers)
        trailer = _engine.proven_trailer(plain, (header, 2**40, 77, True), mask, source)
        found = fingerprint(header, layers, [] if source is None else [source], trailer)
    assert len(trailer) == len(plain) + record_len(len(header))
    assert CommitRecord.of_trailer(trailer, len(header)) == CommitRecord(header, 2**40, 77, pending=True)
    read = Trailer.from_bytes(trailer)
    assert (read.vlmeta, read.fingerprint_type, read.fingerprint) == ({"name": b"chunk"}, 3, found)


def test_a_trailer_that_is_too_short_or_a_mask_that_does_not_fit_is_refused() -> None:
    plain = Trailer(fingerprint_type=3).to_bytes()
    with pytest.raises(TruncatedError, match="trailer"):
        _engine.proven_trailer(plain[-22:], (b"header", 0, 0, False), b"\xff" * 6, None)
    with pytest.raises(TruncatedError, match="mask"):
        _engine.proven_trailer(plain, (b"header", 0, 0, False), b"\xff" * 5, None)
