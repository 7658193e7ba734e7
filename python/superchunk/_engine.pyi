"""The Rust engine, as Python sees it: a few wide calls on chunks.

A *source* is where one chunk's bytes are: any contiguous buffer that begins with
the chunk (bytes behind its ``cbytes`` are ignored), or ``(fd, offset, limit)`` for
a chunk at byte `offset` of an open file, of which at most `limit` bytes may be
read. The interpreter lock is released while the engine works; buffers must not
change meanwhile.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

from typing_extensions import Buffer

Source: TypeAlias = Buffer | tuple[int, int, int]
"""A chunk in memory, or ``(fd, offset, limit)`` in an open file."""

Request: TypeAlias = tuple[Source, int, int, int, int]
"""``(source, nbytes, start, stop, at)``: bytes ``start:stop`` of the chunk's
decoded content go to byte `at` of the destination. `nbytes` is what the chunk
must decode to, or -1 if that is not known beforehand. Requests come in
ascending order of `at` and do not overlap there."""

@final
class ChunkInfo:
    """What a chunk's header says, checked."""

    version: int
    flags: int
    typesize: int
    nbytes: int
    blocksize: int
    """Bytes of a block; the largest block's for variable-length blocks is not known: 0."""
    cbytes: int
    header_len: int
    codec: int
    """Codec id (the API's number, lz4hc apart from lz4), as the chunk records it."""
    codec_meta: int
    filters: tuple[int, int, int, int, int, int]
    filters_meta: tuple[int, int, int, int, int, int]
    nblocks: int
    special: int
    """0, or the special-value id 1 (zero), 2 (NaN), 3 (value), 4 (uninitialised)."""
    memcpyed: bool
    dont_split: bool
    use_dict: bool
    vlblocks: bool
    repeated_value: bytes | None
    """The item of a special chunk of kind 3, else None."""

@final
class EncodeParams:
    """How to compress, checked once. Immutable.

    With `blosc1` chunks are those of Blosc1, with a header of 16 bytes.

    Raises ValueError naming the argument and its range, and UnsupportedError for
    a codec or filter that is not built in.
    """

    def __new__(
        cls,
        *,
        codec: int = 5,
        codec_meta: int = 0,
        clevel: int = 5,
        typesize: int = 8,
        blocksize: int = 0,
        splitmode: int = 3,
        filters: bytes = b"\0\0\0\0\0\1",
        filters_meta: bytes = b"\0\0\0\0\0\0",
        use_dict: bool = False,
        blosc1: bool = False,
        nthreads: int = 1,
        hooks: Hooks | None = None,
    ) -> EncodeParams: ...
    def blocksize_for(self, nbytes: int) -> int:
        """Return the block size, in bytes, that a chunk of `nbytes` gets."""

@final
class Hooks:
    """User codecs and filters written in Python, by id.

    `codecs` maps an id to ``(encode, decode)``, `filters` to ``(forward, backward)``.
    ``encode(src: memoryview, dst: memoryview, meta: int) -> int`` returns the bytes
    written, 0 to decline; ``decode(src, dst, meta) -> int`` must fill `dst`;
    ``forward(src, dst, meta)`` and ``backward(src, dst, meta)`` fill `dst`, of the
    length of `src`. `dst` is a writable memoryview. They run on the calling thread
    only (use ``nthreads=1``).
    """

    def __new__(
        cls,
        codecs: dict[int, tuple[Callable[..., Any], Callable[..., Any]]],
        filters: dict[int, tuple[Callable[..., Any], Callable[..., Any]]],
    ) -> Hooks: ...

def compress(data: Buffer, params: EncodeParams) -> bytes:
    """Return `data` (C-contiguous, at most 2147483615 bytes) as one chunk."""

def compress_vlblocks(blocks: Sequence[Buffer], params: EncodeParams) -> bytes:
    """Return a chunk with variable-length blocks, one for each non-empty buffer."""

def special_chunk(kind: int, nbytes: int, typesize: int, value: Buffer | None = None, blocksize: int = 0) -> bytes:
    """Return a chunk of one special value (kind 1 to 4, `value` only for 3)."""

def describe(source: Source) -> ChunkInfo:
    """Return what the header of a chunk says, after checking it."""

def sizes(sources: Sequence[Source]) -> list[tuple[int, int]]:
    """Return ``(nbytes, cbytes)`` of each chunk, headers checked."""

def read(
    requests: Sequence[Request],
    dst: Buffer | None = None,
    *,
    nthreads: int = 1,
    itemsize: int = 0,
    hooks: Hooks | None = None,
) -> bytes | None:
    """Decode pieces of many chunks into one destination, blocks spread over threads.

    With `dst` (writable, C-contiguous) fill it and return None; else return new
    bytes that end where the last request does. Only the blocks that a request meets
    are decoded. `itemsize` is the container's item size in bytes, 0 if unknown.
    Bytes of the destination that no request names stay as they are (zero in new bytes).
    """

def decompress(source: Source, *, nthreads: int = 1, itemsize: int = 0, hooks: Hooks | None = None) -> bytes:
    """Return the whole content of one chunk."""

def read_vlblocks(source: Source, *, nthreads: int = 1, itemsize: int = 0, hooks: Hooks | None = None) -> list[bytes]:
    """Return the blocks of a chunk with variable-length blocks."""

def lazy_chunk(source: Source, nchunk: int, offset: int) -> bytes:
    """Return header, block table and trailer (see docs/format/chunk.md, "Lazy chunks")."""

def codec_version(codec: int) -> tuple[str, str]:
    """Return name and version of the library behind a built-in codec id."""

def free_threads() -> None:
    """Give the threads back to the system; the next parallel job makes new ones."""

def instruction_sets() -> list[str]:
    """Return the instruction sets that the engine uses on this machine, best first."""
