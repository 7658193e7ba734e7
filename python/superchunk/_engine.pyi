"""The Rust engine, as Python sees it: a few wide calls on chunks.

A *source* is where one chunk's bytes are: any contiguous buffer that begins with
the chunk (bytes behind its ``cbytes`` are ignored), ``(fd, offset, limit)`` for
a chunk at byte `offset` of an open file, of which at most `limit` bytes may be
read, or ``(path, offset, limit)`` for one in a file that is opened for the call:
a regular file, never through a symbolic link, and not more than 64 at a time.
The interpreter lock is released while the engine works; buffers must not
change meanwhile. A source in memory may share bytes with the destination: it is copied then.

On the main thread handlers of signals run at most every 50 ms within `compress`, `compress_vlblocks`, `pack`, `read`,
`read_box`, `read_points`, `decompress`, `read_vlblocks`, `check_seals` and `check_run`, between two streams, blocks or
requests. What a handler raises ends the call.

A file that cannot be opened is a StorageError with errno and filename, a missing
one a MissingFileError, which is a FileNotFoundError as well. `nrequest` of an error of `read`,
`read_box`, `read_points`, `check_seals` and `check_run` is the number of the source or chunk that it belongs to.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, final, type_check_only

from typing_extensions import Buffer

Source: TypeAlias = Buffer | tuple[int, int, int] | tuple[str, int, int] | tuple[tuple[int, str], int, int]
"""A chunk in memory, ``(fd, offset, limit)`` in an open file, ``(path, offset, limit)``, or
``((folder, path), offset, limit)``: of `path` the last part alone, looked for in the open directory."""

Box: TypeAlias = tuple[Geometry, Sequence[tuple[int, int, int]]]
"""A box of a chunk: how arrays are cut, and in each dimension start, stop and step, in coordinates of the array."""

Request: TypeAlias = tuple[Source, int, int, int, int]
"""``(source, nbytes, start, stop, at)``: bytes ``start:stop`` of the chunk's
decoded content go to byte `at` of the destination. `nbytes` is what the chunk
must decode to, or -1 if that is not known beforehand. Requests come in
ascending order of `at` and do not overlap there."""

_T = TypeVar("_T")

@type_check_only
class Sectioned(Protocol):
    """What a `Section` is for."""

    left: bool

    @property
    def lock(self) -> AbstractContextManager[object]: ...
    def begin(self) -> object: ...
    def end(self, kind: type[BaseException] | None) -> object: ...

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

    With `blosc1` chunks are those of Blosc1, with a header of 16 bytes. `blockshape`, items along
    each dimension, is what NDCELL, NDMEAN and NDLZ go by; `blocksize` must then be its bytes.

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
        blockshape: Sequence[int] | None = None,
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

@final
class Geometry:
    """Shapes of an array's chunks and blocks in items, and the size of an item in bytes, checked once. Immutable.

    A chunk's content is its blocks in C order, a block is its items in C order, and a chunk has as many
    blocks in a dimension as it takes to cover it: what reaches beyond is padding (docs/format/b2nd.md).
    A dimension of no items has chunks of 0, and then a chunk and a block have no bytes. `blockshape` is what
    codecs and filters are told of blocks, if an array was made that is seen in other dimensions now.

    Raises ValueError naming the argument and its range: more than 16 dimensions, blocks that are empty or
    larger than the chunk, blocks or chunks of more bytes than the format allows.
    """

    def __new__(
        cls, chunks: Sequence[int], blocks: Sequence[int], itemsize: int, blockshape: Sequence[int] | None = None
    ) -> Geometry: ...
    @property
    def chunk_nbytes(self) -> int:
        """Bytes of a chunk's content, padding included."""

    @property
    def block_nbytes(self) -> int:
        """Bytes of a block."""

def read_box(
    geometry: Geometry,
    sources: Sequence[Source],
    box: Sequence[tuple[int, int, int] | Buffer],
    dst: Buffer,
    *,
    nthreads: int = 1,
    hooks: Hooks | None = None,
) -> None:
    """Read a selection of an array, blocks of all chunks spread over threads.

    `box` has for each dimension ``(start, stop, step)`` with a step of 1 or more, or ascending positions as a
    C-contiguous buffer of 64-bit integers of this machine, in items from the array's first. `sources` are the
    chunks that the selection meets, in C order: the product over the dimensions of the distinct chunk coordinates of
    the selected positions. `dst` (writable, C-contiguous, of exactly the selection's size) takes the items in C order.
    Only blocks that hold selected items are decoded. A chunk of another length than the geometry's is a
    FormatError; one with blocks of another size is read whole. `nrequest` of an error is the number of the source.

    Raises ValueError for a selection out of range, or another number of sources or size of `dst` than it needs.
    """

def read_points(
    geometry: Geometry,
    sources: Sequence[Source],
    nsource: Buffer,
    position: Buffer,
    dst: Buffer,
    *,
    nthreads: int = 1,
    hooks: Hooks | None = None,
) -> None:
    """Read single items: item ``k`` of `dst` is item ``position[k]`` of the chunk ``sources[nsource[k]]``.

    `nsource` and `position` are C-contiguous buffers of 64-bit integers of this machine. A position counts the
    items of a chunk's content as it is stored, those of block 0 first, padding included. Any order, and items may come
    more than once. Each block is decoded once at most. Chunks are held to the geometry as by `read_box`.

    Raises ValueError for a number or position out of range, and another size of `dst` than the items have.
    """

def pack(
    geometry: Geometry, params: EncodeParams, src: Buffer, offset: int, strides: Sequence[int], extent: Sequence[int]
) -> bytes:
    """Return one chunk, whose first items in each dimension, `extent` of them, come from `src`; all others are zero.

    Item ``(i, j, ...)`` is at byte ``offset + i * strides[0] + j * strides[1] + ...`` of `src`; strides may be
    negative or 0. `src` may be an array of any order and any strides: its byte 0 is then that of its item at the
    lowest address. The parameters' block size must be the geometry's.

    Raises ValueError for items outside of `src`, more items than a chunk has, or another block size.
    """

def compress(data: Buffer, params: EncodeParams) -> bytes:
    """Return `data` (C-contiguous, at most 2147483615 bytes) as one chunk."""

def compress_vlblocks(blocks: Sequence[Buffer], params: EncodeParams) -> bytes:
    """Return a chunk with variable-length blocks, one for each non-empty buffer."""

def special_chunk(kind: int, nbytes: int, typesize: int, value: Buffer | None = None, blocksize: int = 0) -> bytes:
    """Return a chunk of one special value (kind 1 to 4, `value` only for 3)."""

def zeros_in_blocks(nbytes: int, typesize: int, blocksize: int = 0) -> bytes:
    """Return a chunk of zeros that is no special chunk, for frames that cannot take one there."""

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
    blockshape: Sequence[int] | None = None,
) -> bytes | None:
    """Decode pieces of many chunks into one destination, blocks spread over threads.

    With `dst` (writable, C-contiguous) fill it and return None; else return new
    bytes that end where the last request does. Only the blocks that a request meets
    are decoded. `itemsize` is the container's item size in bytes, 0 if unknown; `blockshape` the
    shape of its blocks, which chunks with NDCELL or NDMEAN need (UnsupportedError).
    Bytes of the destination that no request names stay as they are (zero in new bytes).
    """

def decompress(
    source: Source,
    *,
    nthreads: int = 1,
    itemsize: int = 0,
    hooks: Hooks | None = None,
    blockshape: Sequence[int] | None = None,
) -> bytes:
    """Return the whole content of one chunk."""

def read_vlblocks(source: Source, *, nthreads: int = 1, itemsize: int = 0, hooks: Hooks | None = None) -> list[bytes]:
    """Return the blocks of a chunk with variable-length blocks."""

def lazy_chunk(source: Source, nchunk: int, offset: int) -> bytes:
    """Return header, block table and trailer (see docs/format/chunk.md, "Lazy chunks")."""

def seal(chunk: Buffer) -> bytes:
    """Return the 16 bytes that stand behind a chunk and prove it (docs/format/integrity.md)."""

def hash64(parts: Sequence[Source]) -> int:
    """Return the XXH3-64 of all parts, one after the other.

    Parts are any bytes, not chunks; of a file exactly `limit` bytes, or TruncatedError.
    """

def hash128(parts: Sequence[Source]) -> bytes:
    """Return the XXH3-128 of all parts, one after the other: its low 64 bits, then its high 64 bits, little endian.

    Parts are those of `hash64`.
    """

def proven_trailer(
    trailer: bytes, record: tuple[bytes, int, int, bool], mask: bytes, index_chunk: Source | None
) -> bytes:
    """Return a trailer with a commit record and its fingerprint (docs/format/integrity.md).

    `trailer` is the trailer without record, of fingerprint type 3; `record` is the frame's header,
    last_synced, sealed_from and pending. The fingerprint covers the bits of the header that `mask` has, of the
    same length, and the index chunk: exactly that, or None without data.
    """

def check_seals(sources: Sequence[Source], nthreads: int = 1) -> list[tuple[int, int]]:
    """Compare chunks with the seals behind them: ``(status, cbytes)`` of each.

    The status is 0 for a chunk that is as it was sealed, 1 for no seal, 2 for a seal of
    other bytes, 3 for a header that breaks the format (`cbytes` is then 0) or a chunk that
    cannot be read, its file missing included, and 4 for a chunk that reaches beyond its
    `limit` or file. A seal beyond `limit` is no seal. Failures that are not the chunk's, such as
    a permission, are raised. Takes 256 KB for each thread.
    """

def check_run(fd: int, base: int, entries: Buffer, extent: int, nthreads: int = 1) -> tuple[bytes, bytes, bytes]:
    """Compare many chunks of one open file with their seals: status, cbytes and nbytes of each.

    The chunks begin at `base` plus each of `entries`, 64-bit integers of this machine that
    ascend from 0 or more to `extent` at most, or ValueError. Each may reach to the next one, the
    last to `extent`. Status (8 bits) and cbytes (32 bits, as this machine writes them) are what
    `check_seals` says of these bytes, nbytes (32 bits) is what the header says, 0 if that breaks the
    format. Many small chunks come with one read. Takes 256 KB for each thread.
    """

@final
class Watch:
    """Whether somebody changes an open file, asked at each access and so with little to do.

    Watched are the bytes `probe` at byte `at` of `fd`, and that the file keeps a name: any at all, or
    with `name`, an open directory and a name there, that one.

    `proof` says what differs whenever the rest does: 16 bytes, ranges of the file as position and length, and whether
    the 16 bytes are the XXH3-128 of those ranges; if not, they stand where the one range is. They are compared when
    the file's times or its size have moved, and until those have stood still for longer than the clock ticks.
    """

    probe: bytes

    def __new__(
        cls,
        fd: int,
        at: int,
        probe: bytes,
        name: tuple[int, str] | None = None,
        proof: tuple[bytes, Sequence[tuple[int, int]], bool] | None = None,
    ) -> Watch: ...
    def changed(self) -> bool:
        """Return whether other bytes stand there, as far as bytes and times show, or the file has lost its name."""
    def differs(self) -> bool:
        """Return whether `probe` or `proof` are others, whatever the times and the name."""
    def doubted(self) -> bool:
        """Return whether something not covered may have been written before a look since this was asked last."""
    def read(
        self,
        request: Request,
        itemsize: int,
        dst: Buffer | None = None,
        box: Box | None = None,
    ) -> bytes | None:
        """Ask the same, and read a small part of a chunk of the file, through a cache of what was read before.

        With `box`, for `read_box`, that box of the request's chunk is read into `dst`.

        Returns the bytes, or ``b""`` when they are in `dst`; None if anything is other than it was or goes
        wrong, if the watched file has to have a certain name, or if it is no small part.
        """

@final
class Section(Generic[_T]):
    """A `with` block that makes a change, and that an interrupt cannot leave half.

    `turn` is entered first and left last. In it ``change.lock`` is acquired and released. In that ``change.begin()``
    is called, whose answer is that of the block, and ``change.end(kind)`` with the type of an exception or None. When
    that is over, however it ends, ``change.left`` is True.
    """

    def __new__(cls, change: Sectioned, turn: AbstractContextManager[object] | None = None) -> Section[_T]: ...
    def __enter__(self) -> _T: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

@final
class Memory:
    """Bytes with anything in them, for a large array; kept for the next one when nobody needs them any more.

    Raises MemoryError if there are not as many, and on systems where none are kept.
    """

    def __new__(cls, nbytes: int) -> Memory: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def set_memory_limit(nbytes: int) -> int:
    """Set how many bytes of results that nobody needs any more are kept, and return what it was; 0 keeps nothing."""

def free_memory() -> None:
    """Give back to the system the memory that is kept."""

def after_fork() -> None:
    """Have this process, the child of a fork, wait for no thread of its parent; Python calls it by itself."""

def set_cache_limit(nbytes: int) -> int:
    """Set how many bytes `Watch.read` keeps for each file at most, and return what it was; 0 keeps nothing."""

def rename_new(old: str, new: str) -> None:
    """Give the file or directory `old` the name `new`, which nothing may have.

    Raises StorageError: with errno EEXIST if something has it, with ENOTSUP where the system has no such call.
    """

def exchange(one: str, other: str) -> None:
    """Let two files or directories change their names in one step.

    Raises StorageError, with errno ENOTSUP where the system has no such call.
    """

def sync_filesystem(fd: int) -> None:
    """Have everything on the disk that was written to the file system of `fd`.

    Raises StorageError with errno ENOTSUP where the system has no such call.
    """

def codec_version(codec: int) -> tuple[str, str]:
    """Return name and version of the library behind a built-in codec id."""

def free_threads() -> None:
    """Give the threads back to the system; the next parallel job makes new ones."""

def instruction_sets() -> list[str]:
    """Return the instruction sets that the engine uses on this machine, best first."""
