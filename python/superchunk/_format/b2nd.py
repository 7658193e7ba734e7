"""The metalayer `b2nd` (formerly `caterva`), which makes an array of a super-chunk.

::

    at         bytes   content                                         d = dimensions
    0          1       0x97           array of 7 (0x95: no dtype)
    1          1       version        0
    2          1       d              0 to 16
    3          1       0x90 + d       array of d; 0xA0 if d = 16
    4          d * 9   0xD3, i64      shape
    4 + 9d     1       0x90 + d
    5 + 9d     d * 5   0xD2, i32      chunk shape
    5 + 14d    1       0x90 + d
    6 + 14d    d * 5   0xD2, i32      block shape
    6 + 19d    1       dtype format   0: NumPy
    7 + 19d    1 + 4   0xDB, u32      length of the dtype text
    12 + 19d   ...     dtype text     UTF-8

Numbers are big endian. As in C-Blosc2, version and markers are written and not read, except the marker before the dtype
text. Bytes behind the text are ignored. An old layer may end where the dtype format would stand.

Does not know what the dtype text means: see `dtypes`. Knows no chunk either; that those agree
with the layer is asked of `ArrayLayout.check`, and of the engine for each chunk that it reads.

Source: docs/format/b2nd.md.
"""

from __future__ import annotations

import struct
from itertools import starmap
from math import prod
from operator import index
from typing import TYPE_CHECKING, Final, NamedTuple, Self, SupportsIndex

from superchunk.exceptions import ArgumentError, FormatError, TruncatedError
from superchunk.params import MAX_BLOCKSIZE, MAX_BUFFERSIZE, MAX_DIM, MAX_TYPESIZE

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LAYERS", "MAX_CHUNK_NBYTES", "ArrayLayout"]

LAYERS: Final = ("b2nd", "caterva")
"""Names of the metalayer; the first one wins if there are both."""

"""Most dimensions."""

MAX_CHUNK_NBYTES: Final = MAX_BUFFERSIZE
"""Most bytes of a chunk, padding included."""

_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1
_STR32 = 0xDB
_HEAD = 4
_DTYPE_HEAD = 6
_TYPESIZE_AT = 0x30
"""Where a frame's header says the bytes of an item."""


class _Problem(NamedTuple):
    """What is wrong with three shapes."""

    part: str
    """``"shape"``, ``"chunks"`` or ``"blocks"``."""
    dimension: int | None
    """Which number of it; None: all together."""
    expected: str
    found: object

    @property
    def field(self) -> str:
        """Return where the problem is, in words."""
        return self.part if self.dimension is None else f"{self.part}[{self.dimension}]"


class _Fields(NamedTuple):
    """What an `ArrayLayout` says, not checked."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    blocks: tuple[int, ...]
    dtype_text: str | None
    dtype_format: int


class ArrayLayout(_Fields):
    """Shape, chunk shape, block shape and dtype text of an array, which can all be true.

    Parameters
    ----------
    shape
        Items in each dimension.
    chunks
        Items of a chunk in each dimension; may exceed the shape.
    blocks
        Items of a block in each dimension, at most the chunk's.
    dtype_text
        How the items are typed, see `superchunk._format.dtypes`; None in an old layer.
    dtype_format
        0, the only one there is.

    Raises
    ------
    ArgumentError
        The values contradict each other or are too large.
    TypeError
        A shape holds something that is no integer.

    """

    __slots__ = ()

    def __new__(
        cls,
        shape: Iterable[SupportsIndex],
        chunks: Iterable[SupportsIndex],
        blocks: Iterable[SupportsIndex],
        dtype_text: str | None = None,
        dtype_format: int = 0,
    ) -> Self:
        """Check the values a caller gave."""
        sizes, chunk, block = (tuple(map(index, numbers)) for numbers in (shape, chunks, blocks))
        self = super().__new__(cls, sizes, chunk, block, dtype_text, dtype_format)
        problem = _problem(self.shape, self.chunks, self.blocks)
        if problem is not None:
            raise ArgumentError(f"{problem.field}: expected {problem.expected}, got {problem.found}")
        if dtype_format != 0:
            raise ArgumentError(f"dtype_format: expected 0, got {dtype_format!r}")
        if dtype_text is not None:
            _encode(dtype_text)
        return self

    @classmethod
    def from_bytes(cls, content: bytes | memoryview) -> Self:
        """Read the content of a metalayer.

        Raises
        ------
        TruncatedError
            It ends within a field.
        FormatError
            A field has an impossible value. Positions count from the layer's first byte.

        """
        content = bytes(content)
        _need("b2nd layer", content, 0, _HEAD)
        ndim: int = struct.unpack_from(">b", content, 2)[0]
        if not 0 <= ndim <= MAX_DIM:
            raise FormatError("b2nd dimensions", at=2, expected=f"0 to {MAX_DIM}", found=ndim)
        end = 6 + 19 * ndim
        _need("b2nd shapes", content, 3, end - 3)
        shape = _numbers(content, 4, ndim, ">xq")
        chunks = _numbers(content, 5 + 9 * ndim, ndim, ">xi")
        blocks = _numbers(content, 6 + 14 * ndim, ndim, ">xi")
        problem = _problem(shape, chunks, blocks)
        if problem is not None:
            at = _place(problem, ndim)
            raise FormatError(f"b2nd {problem.field}", at=at, expected=problem.expected, found=problem.found)
        return cls._make((shape, chunks, blocks, _read_text(content, end), 0))  # all checked

    def to_bytes(self) -> bytes:
        """Return the content of the metalayer, without the dtype's part if there is none."""
        ndim = len(self.shape)
        marker = bytes((0x90 + ndim,))  # 0xA0 for 16 dimensions: what readers expect, though no array in msgpack
        parts = [bytes((0x95 if self.dtype_text is None else 0x97, 0, ndim)), marker]
        parts += (struct.pack(">Bq", 0xD3, size) for size in self.shape)
        for numbers in (self.chunks, self.blocks):
            parts.append(marker)
            parts += (struct.pack(">Bi", 0xD2, size) for size in numbers)
        if self.dtype_text is not None:
            text = _encode(self.dtype_text)
            parts += (struct.pack(">BBI", self.dtype_format, _STR32, len(text)), text)
        return b"".join(parts)

    @property
    def ndim(self) -> int:
        """Number of dimensions, 0 to 16."""
        return len(self.shape)

    @property
    def extended(self) -> tuple[int, ...]:
        """Items of a chunk in each dimension, rounded up to whole blocks: what a chunk holds."""
        return tuple(map(_round_up, self.chunks, self.blocks))

    @property
    def grid(self) -> tuple[int, ...]:
        """Chunks in each dimension."""
        return tuple(map(_pieces, self.shape, self.chunks))

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        return prod(self.grid)

    @property
    def chunk_items(self) -> int:
        """Items that a chunk holds, padding included."""
        return prod(self.extended)

    @property
    def block_items(self) -> int:
        """Items that a block holds."""
        return prod(self.blocks)

    def check(self, *, typesize: int, chunksize: int, nchunks: int) -> None:
        """Compare with what the frame says.

        Parameters
        ----------
        typesize
            Bytes of an item.
        chunksize
            Bytes of a chunk; 0 or less if the frame does not say.
        nchunks
            How many chunks there are.

        Raises
        ------
        FormatError
            They contradict each other.

        """
        ndim = len(self.shape)
        if not 0 < typesize <= MAX_TYPESIZE:
            raise FormatError("frame typesize", at=_TYPESIZE_AT, expected=f"1 to {MAX_TYPESIZE}", found=typesize)
        chunk_nbytes = self.chunk_items * typesize
        if chunk_nbytes and self.block_items * typesize > MAX_BLOCKSIZE:
            found = f"{self.block_items * typesize}: {self.blocks} items of {typesize}"
            raise FormatError("b2nd block bytes", at=7 + 14 * ndim, expected=f"at most {MAX_BLOCKSIZE}", found=found)
        at = 6 + 9 * ndim
        if chunk_nbytes > MAX_CHUNK_NBYTES:
            found = f"{chunk_nbytes}: {self.extended} items of {typesize}"
            raise FormatError("b2nd chunk bytes", at=at, expected=f"at most {MAX_CHUNK_NBYTES}", found=found)
        if 0 < chunksize != chunk_nbytes:
            found = f"{chunk_nbytes}: {self.extended} items of {typesize}"
            raise FormatError("b2nd chunk bytes", at=at, expected=f"{chunksize}, the frame's chunksize", found=found)
        nbytes = prod(filter(None, self.shape)) * typesize
        if nbytes > _MAX_INT64:
            raise FormatError("b2nd shape", at=5, expected="less than 2**63 bytes", found=f"{self.shape} of {typesize}")
        if self.nchunks != nchunks:
            found = f"{self.nchunks}: {self.grid}"
            raise FormatError("b2nd number of chunks", at=5, expected=f"{nchunks}, as in the frame", found=found)


def _pieces(size: int, piece: int) -> int:
    """Return how many pieces cover a size; none of an empty one."""
    return -(-size // piece) if piece else 0


def _round_up(size: int, piece: int) -> int:
    """Return a size rounded up to whole pieces."""
    return _pieces(size, piece) * piece


def _problem(shape: tuple[int, ...], chunks: tuple[int, ...], blocks: tuple[int, ...]) -> _Problem | None:
    """Return the first thing that cannot be; nothing if all can."""
    ndim = len(shape)
    if ndim > MAX_DIM:
        return _Problem("shape", None, f"at most {MAX_DIM} dimensions", ndim)
    for part, numbers in (("chunks", chunks), ("blocks", blocks)):
        if len(numbers) != ndim:
            return _Problem(part, None, f"{ndim} numbers, one for each dimension", len(numbers))
    for i, sizes in enumerate(zip(shape, chunks, blocks, strict=True)):
        problem = _problem_in(i, *sizes)
        if problem is not None:
            return problem
    return _problem_of_all(shape, chunks, blocks)


def _problem_in(i: int, size: int, chunk: int, block: int) -> _Problem | None:
    """Return what is wrong in one dimension."""
    if not 0 <= size <= _MAX_INT64:
        return _Problem("shape", i, "0 to 2**63 - 1", size)
    if not (0 if size == 0 else 1) <= chunk <= _MAX_INT32:
        return _Problem("chunks", i, f"{0 if size == 0 else 1} to 2**31 - 1", chunk)
    if not (0 if chunk == 0 else 1) <= block <= chunk:
        return _Problem("blocks", i, f"{0 if chunk == 0 else 1} to {chunk}, the chunk's", block)
    if _round_up(size, chunk) > _MAX_INT64:
        return _Problem("shape", i, f"less than 2**63 rounded up to chunks of {chunk}", size)
    return None


def _problem_of_all(shape: tuple[int, ...], chunks: tuple[int, ...], blocks: tuple[int, ...]) -> _Problem | None:
    """Return which product is too large. Dimensions of 0 do not hide what the others multiply to."""
    if prod(filter(None, shape)) > _MAX_INT64:
        return _Problem("shape", None, "a product below 2**63", shape)
    for part, numbers in (
        ("blocks", blocks),
        ("chunks", chunks),
        ("chunks", tuple(map(_round_up, chunks, blocks))),
    ):
        if prod(numbers) > _MAX_INT32:
            return _Problem(part, None, "a product below 2**31", numbers)
    return None


def _place(problem: _Problem, ndim: int) -> int:
    """Return at which byte of the layer the number with a problem is."""
    first, step = {"shape": (5, 9), "chunks": (6 + 9 * ndim, 5), "blocks": (7 + 14 * ndim, 5)}[problem.part]
    return first + step * (problem.dimension or 0)


def _numbers(content: bytes, at: int, count: int, item: str) -> tuple[int, ...]:
    """Return numbers with a marker before each."""
    layout = struct.Struct(item)
    return tuple(starmap(int, (layout.unpack_from(content, at + layout.size * i) for i in range(count))))


def _need(field: str, content: bytes, at: int, needed: int) -> None:
    """Refuse a layer that ends too early."""
    if len(content) - at < needed:
        raise TruncatedError(field, at=at, needed=needed, got=max(len(content) - at, 0))


def _read_text(content: bytes, at: int) -> str | None:
    """Return the dtype text behind the shapes, None if the layer ends there."""
    if len(content) == at:
        return None
    _need("b2nd dtype", content, at, _DTYPE_HEAD)
    kind, marker, length = struct.unpack_from(">BBI", content, at)
    if kind != 0:
        raise FormatError("b2nd dtype format", at=at, expected="0, NumPy's", found=kind)
    if marker != _STR32:
        raise FormatError("b2nd dtype marker", at=at + 1, expected=f"0x{_STR32:02X}", found=f"0x{marker:02X}")
    start = at + _DTYPE_HEAD
    if length > len(content) - start:
        expected = f"at most {len(content) - start}, what the layer holds"
        raise FormatError("b2nd dtype length", at=at + 2, expected=expected, found=length)
    try:
        return content[start : start + length].decode()
    except UnicodeDecodeError as error:
        place = start + error.start
        raise FormatError("b2nd dtype text", at=place, expected="UTF-8", found=f"0x{content[place]:02X}") from None


def _encode(text: str) -> bytes:
    """Return a dtype text as it is stored."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(f"dtype_text: expected text that UTF-8 can hold, {error}") from None
