"""Functions that a user runs on every block: prefilters, postfilters, fillers.

They get arrays of one block and the number of the block's first item in the SChunk.
A prefilter runs on the plain bytes before a chunk is compressed, a postfilter on
whole blocks after they were decompressed, so the engine need not know of either.

Compresses and stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from superchunk import _engine
from superchunk._plan import chunk_start, chunks_of
from superchunk._shaped import read_shaped

if TYPE_CHECKING:
    import weakref
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

    from superchunk.schunk import SChunk
    from superchunk.storage.base import ChunkStore

__all__ = ["BlockFunction", "Operands", "postfilter_funcs", "prefilter_funcs", "read_filtered"]

AnyArray: TypeAlias = "NDArray[Any]"
BlockCallable: TypeAlias = Callable[["AnyArray", "AnyArray", int], Any]
FillCallable: TypeAlias = Callable[[tuple["AnyArray", ...], "AnyArray", int], Any]

prefilter_funcs: Final[dict[str, BlockCallable]] = {}
"""Name -> prefilter in use."""
postfilter_funcs: Final[dict[str, BlockCallable]] = {}
"""Name -> postfilter in use."""


class BlockFunction:
    """A prefilter or postfilter with its two dtypes.

    Parameters
    ----------
    function
        ``f(input, output, offset)`` fills `output`.
    input_dtype, output_dtype
        What the block is on both sides; None for the output: the same.

    Raises
    ------
    ValueError
        The dtypes differ in size.

    """

    __slots__ = ("function", "input_dtype", "output_dtype")

    def __init__(self, function: BlockCallable, input_dtype: DTypeLike, output_dtype: DTypeLike | None) -> None:
        self.function = function
        self.input_dtype, self.output_dtype = check_dtypes(input_dtype, output_dtype)

    def apply(self, data: NDArray[np.uint8] | memoryview, blocksize: int, offset: int) -> NDArray[np.uint8]:
        """Return `data` after the function ran on each of its blocks.

        Parameters
        ----------
        data
            Plain bytes.
        blocksize
            Bytes of a block; 0: all is one.
        offset
            Number of the first item in the container.

        Raises
        ------
        ValueError
            A block is not a whole number of items.

        """
        source = np.frombuffer(data, dtype=np.uint8)
        result = np.empty(len(source), dtype=np.uint8)
        step = blocksize or len(source) or 1
        itemsize = self.input_dtype.itemsize
        for low in range(0, len(source), step):
            block = source[low : low + step]
            if len(block) % itemsize:
                msg = f"block of {len(block)} bytes: expected a multiple of the item size {itemsize} of the function"
                raise ValueError(msg)
            output = result[low : low + step].view(self.output_dtype)
            self.function(block.view(self.input_dtype), output, offset + low // itemsize)
        return result


def check_dtypes(input_dtype: DTypeLike, output_dtype: DTypeLike | None) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return both dtypes, the second being the first if it is None."""
    first = np.dtype(input_dtype)
    second = first if output_dtype is None else np.dtype(output_dtype)
    if first.itemsize != second.itemsize:
        msg = f"input_dtype, output_dtype: expected the same item size, got {first.itemsize} and {second.itemsize}"
        raise ValueError(msg)
    return first, second


def read_filtered(
    store: ChunkStore,
    function: BlockFunction,
    start: int,
    stop: int,
    *,
    nthreads: int,
    typesize: int,
    owner: weakref.ref[SChunk],
) -> bytes:
    """Return bytes ``start:stop`` of a container after a postfilter.

    The function sees whole blocks: those that the range touches, once each.
    """
    parts = []
    for nchunk in chunks_of(store, start, stop):
        base = chunk_start(store, nchunk)
        nbytes = chunk_start(store, nchunk + 1) - base if nchunk + 1 < store.nchunks else store.nbytes - base
        low, high = max(start - base, 0), min(stop - base, nbytes)
        if low >= high:
            continue
        source = store.source(nchunk)
        blocksize = _engine.describe(source).blocksize or nbytes
        first = low - low % blocksize
        last = min(high + -high % blocksize, nbytes)
        plain = np.empty(last - first, dtype=np.uint8)
        request = (source, nbytes, first, last, 0)
        read_shaped(store.meta, owner, [request], plain.data, nthreads=nthreads, itemsize=typesize)
        done = function.apply(plain, blocksize, (base + first) // typesize)
        parts.append(done[low - first : high - first].tobytes())
    return b"".join(parts)


class Operands:
    """The inputs of a filler: super-chunks, arrays and scalars, each with a dtype.

    Parameters
    ----------
    inputs
        Pairs of operand and dtype.
    nelem
        Items to fill; needed only when all operands are scalars.

    Raises
    ------
    ValueError
        Lengths differ, or there is none.

    """

    __slots__ = ("_inputs", "nitems")

    def __init__(self, inputs: Sequence[tuple[Any, DTypeLike]], nelem: int | None) -> None:
        self._inputs = [(operand, np.dtype(dtype)) for operand, dtype in inputs]
        lengths = {_length(operand, dtype) for operand, dtype in self._inputs} - {None}
        if nelem is not None:
            lengths.add(int(nelem))
        if len(lengths) != 1:
            msg = f"inputs: expected operands of one length (or nelem for scalars), got {sorted(map(str, lengths))}"
            raise ValueError(msg)
        (only,) = lengths
        self.nitems: int = int(only or 0)

    def read(self, start: int, stop: int) -> tuple[AnyArray, ...]:
        """Return items ``start:stop`` of each operand, scalars repeated."""
        return tuple(_items(operand, dtype, start, stop) for operand, dtype in self._inputs)


def _length(operand: Any, dtype: np.dtype[Any]) -> int | None:  # noqa: ANN401  (an operand may be anything)
    if np.isscalar(operand):
        return None
    if hasattr(operand, "get_slice"):
        return int(operand.nbytes) // dtype.itemsize
    return int(np.asarray(operand).size)


def _items(operand: Any, dtype: np.dtype[Any], start: int, stop: int) -> AnyArray:  # noqa: ANN401
    if np.isscalar(operand):
        return np.full(stop - start, operand, dtype=dtype)
    if not hasattr(operand, "get_slice"):
        return np.asarray(operand).reshape(-1)[start:stop].astype(dtype, copy=False)
    out: AnyArray = np.empty(stop - start, dtype=dtype)
    size, typesize = dtype.itemsize, operand.typesize
    raw = operand.get_slice(start * size // typesize, -(-stop * size // typesize))
    skip = start * size % typesize
    out.view(np.uint8)[:] = np.frombuffer(raw, dtype=np.uint8)[skip : skip + out.nbytes]
    return out
