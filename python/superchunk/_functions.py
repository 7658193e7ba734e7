"""A SChunk's decorators: prefilter, postfilter and filler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from superchunk._blockfuncs import BlockFunction, Operands, check_dtypes, postfilter_funcs, prefilter_funcs
from superchunk._items import ItemCalls
from superchunk._writing import insert_groups, largest_chunk
from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import DTypeLike

    from superchunk._blockfuncs import BlockCallable, FillCallable

__all__ = ["FunctionCalls"]


class FunctionCalls(ItemCalls):
    """Functions that run on every block of a SChunk."""

    __slots__ = ()

    def prefilter(
        self, input_dtype: DTypeLike, output_dtype: DTypeLike | None = None
    ) -> Callable[[BlockCallable], BlockCallable]:
        """Return a decorator: the function runs on every block before it is compressed.

        Parameters
        ----------
        input_dtype, output_dtype
            What a block is before and after, of one item size; None for the second:
            the same.

        Returns
        -------
        Callable
            The decorator for ``f(input, output, offset)``, which fills `output`;
            `offset` is the number of the block's first item in the SChunk. The
            function itself stays as it is.

        Raises
        ------
        ValueError
            The dtypes differ in size.
        AttributeError
            Compression has more than one thread.

        Examples
        --------
        >>> import numpy as np
        >>> from superchunk import SChunk
        >>> s = SChunk(cparams={"typesize": 8, "nthreads": 1})
        >>> @s.prefilter(np.int64)
        ... def double(input, output, offset):
        ...     output[:] = input * 2
        >>> s.append_data(np.arange(5))
        1
        >>> np.frombuffer(s[:], np.int64).tolist()
        [0, 2, 4, 6, 8]

        """
        nthreads = self._encoder.cparams.nthreads
        if nthreads > 1:
            msg = f"cparams.nthreads: expected 1 with a prefilter, got {nthreads}"
            raise AttributeError(msg)

        def decorate(function: BlockCallable) -> BlockCallable:
            self._encoder.prefilter = BlockFunction(function, input_dtype, output_dtype)
            prefilter_funcs[function.__name__] = function
            return function

        check_dtypes(input_dtype, output_dtype)
        return decorate

    def remove_prefilter(self, func_name: str) -> None:
        """Let the prefilter of that name run no more."""
        active = self._encoder.prefilter
        if active is not None and active.function.__name__ == func_name:
            self._encoder.prefilter = None
        prefilter_funcs.pop(func_name, None)

    def postfilter(
        self, input_dtype: DTypeLike, output_dtype: DTypeLike | None = None
    ) -> Callable[[BlockCallable], BlockCallable]:
        """Return a decorator: the function runs on every block after it was decompressed.

        The parameters are those of `prefilter`.

        Raises
        ------
        ValueError
            The dtypes differ in size, or decompression has more than one thread.

        """
        if self._nthreads > 1:
            msg = f"dparams.nthreads: expected 1 with a postfilter, got {self._nthreads}"
            raise ValueError(msg)

        def decorate(function: BlockCallable) -> BlockCallable:
            self._postfilter = BlockFunction(function, input_dtype, output_dtype)
            postfilter_funcs[function.__name__] = function
            return function

        check_dtypes(input_dtype, output_dtype)
        return decorate

    def remove_postfilter(self, func_name: str) -> None:
        """Let the postfilter of that name run no more."""
        active = self._postfilter
        if active is not None and active.function.__name__ == func_name:
            self._postfilter = None
        postfilter_funcs.pop(func_name, None)

    def filler(
        self, inputs_tuple: Sequence[tuple[Any, DTypeLike]], schunk_dtype: DTypeLike, nelem: int | None = None
    ) -> Callable[[FillCallable], FillCallable]:
        """Return a decorator: the function fills this empty SChunk, block by block.

        Parameters
        ----------
        inputs_tuple
            Pairs of operand (a SChunk, an array or a scalar) and its dtype.
        schunk_dtype
            What the items are, of `typesize` bytes.
        nelem
            How many items; needed only when all operands are scalars.

        Returns
        -------
        Callable
            The decorator for ``f(inputs, output, offset)``, which fills `output`;
            `inputs` has an array of the block's length for each operand. It fills at
            once, and nothing stays registered.

        Raises
        ------
        ValueError
            The SChunk is not empty, lengths differ, or `schunk_dtype` is not of
            `typesize` bytes.

        """
        store = self._handle.writing()
        dtype = np.dtype(schunk_dtype)
        if store.nchunks:
            msg = f"filler: expected an empty SChunk, got {store.nchunks} chunks"
            raise ArgumentError(msg)
        if dtype.itemsize != self._typesize:
            msg = f"schunk_dtype: expected items of typesize {self._typesize} bytes, got {dtype.itemsize}"
            raise ValueError(msg)
        operands = Operands(inputs_tuple, nelem)

        def decorate(function: FillCallable) -> FillCallable:
            with store.batch():
                insert_groups(store, self._filled(function, operands, dtype))
            return function

        return decorate

    def _filled(self, function: FillCallable, operands: Operands, dtype: np.dtype[Any]) -> Iterator[bytes]:
        """Make the chunks that a filler gives, one after the other."""
        encoder = self._encoder
        chunksize = self._handle.opened().chunksize or largest_chunk(self._typesize)
        step = max(chunksize // dtype.itemsize, 1)
        for start in range(0, operands.nitems, step):
            inputs = operands.read(start, min(start + step, operands.nitems))
            output = np.zeros(min(step, operands.nitems - start), dtype=dtype)
            block = max(encoder.params.blocksize_for(output.nbytes) // dtype.itemsize, 1)
            for low in range(0, len(output), block):
                part = slice(low, low + block)
                function(tuple(each[part] for each in inputs), output[part], start + low)
            yield encoder.chunk_of_filled(output.view(np.uint8).data)
