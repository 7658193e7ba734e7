"""What can be done with an array besides reading and writing items: its shape, copies, chunks, and its life.

Copies are made in `reshaping`, shapes changed in `resizing`; a handle's life is that of the SChunk.
"""

from __future__ import annotations

import operator
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from superchunk._display.info import ratio, size
from superchunk._managed import Managed
from superchunk.arrays.base import ArrayBase
from superchunk.arrays.resizing import append_items, resize_array
from superchunk.arrays.sharing import SharedArray
from superchunk.arrays.steady import changing
from superchunk.arrays.values import snapshot_of
from superchunk.arrays.views import checked_axes, expand_dims, squeeze
from superchunk.exceptions import ArgumentError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import SupportsIndex, Unpack

    from numpy.typing import ArrayLike, DTypeLike

    from superchunk._integrity.report import VerifyReport
    from superchunk.arrays.form import Form
    from superchunk.arrays.making import ArrayKeywords
    from superchunk.arrays.ndarray import NDArray
    from superchunk.arrays.sources import Casting
    from superchunk.arrays.views import Axes
    from superchunk.params import SpecialValue

__all__ = ["ArrayCalls", "ChunkInfoNDArray"]


class ChunkInfoNDArray(NamedTuple):
    """What `NDArray.iterchunks_info` says about a chunk."""

    nchunk: int
    """Its number."""
    coords: tuple[int, ...]
    """Its place in the grid of chunks."""
    cratio: float
    """Uncompressed by compressed bytes, padding included."""
    special: SpecialValue
    """Whether all its items are one value."""
    repeated_value: Any
    """That item, for `SpecialValue.VALUE`."""
    lazychunk: bytes
    """See `SChunk.get_lazychunk`."""


class ArrayCalls(SharedArray, Managed):
    """An array without its items."""

    __slots__ = ()

    # Shape.

    def resize(self, newshape: Sequence[SupportsIndex] | SupportsIndex) -> None:
        """Change the shape, in one commit; what appears is zeros.

        Parameters
        ----------
        newshape
            As many numbers as there are dimensions. Chunk and block shape stay.

        Raises
        ------
        ArgumentError
            Another number of dimensions, a length below 0, or chunks of length 0; a view. A ValueError.
        ReadOnlyError
            The handle may only read; a ValueError.
        StorageError
            Writing failed; nothing has changed.

        """
        given = (newshape,) if hasattr(newshape, "__index__") else newshape
        shape = tuple(map(operator.index, given))
        store = self._handle.writing()
        self._refuse_view("resize")
        with store.batch():
            form = resize_array(self.schunk, store, self._now(store), self._layer, shape)
        self._form = form

    def append(self, values: ArrayLike | NDArray, axis: int = 0) -> int:
        """Make the array grow by `values`, and return the new length along `axis`.

        Parameters
        ----------
        values
            For an array of one dimension anything, which is flattened; else as many dimensions as the
            array, and the same lengths but along `axis`. Cast to the dtype.
        axis
            Where the array grows.

        Notes
        -----
        Like the chunks of `SChunk.append_data`, what is appended is committed at once where that is cheap,
        and else with more of it, by `flush` or `close`.

        Raises
        ------
        ArgumentError
            The shapes do not go together, or this is a view; a ValueError.
        ReadOnlyError, StorageError
            The handle may only read; writing failed, and nothing has changed.

        """
        store = self._handle.writing()
        self._refuse_view("append")
        at = checked_axes(axis, self.ndim)[0] if self.ndim else -1
        if at < 0:
            msg = "append: expected an array of at least one dimension, got 0-d"
            raise ArgumentError(msg)
        with changing(store, values):
            form = self._now(store)
            given = _to_append(values, form, at)
            form = append_items(self.schunk, store, form, self._layer, given, at)
        self._form = form
        return form.shape[at]

    def _refuse_view(self, what: str) -> None:
        if self._base is not None:
            msg = f"{what}: a view keeps its shape, {what} the array that it was made from"
            raise ArgumentError(msg)

    def squeeze(self, axis: Axes) -> NDArray:
        """Return a view without axes of length 1; see `superchunk.squeeze`."""
        return squeeze(self, axis)  # type: ignore[arg-type]  # NDArray is the only subclass made

    def expand_dims(self, axis: Axes = 0) -> NDArray:
        """Return a view with new axes of length 1; see `superchunk.expand_dims`."""
        return expand_dims(self, axis)  # type: ignore[arg-type]

    @property
    def T(self) -> NDArray:  # noqa: N802  (NumPy's name)
        """A copy in memory with the dimensions in reverse order."""
        return self._permuted(range(self.ndim)[::-1])

    @property
    def mT(self) -> NDArray:  # noqa: N802  (NumPy's name)
        """A copy in memory with the last two dimensions in reverse order; without two that is a ValueError."""
        ndim = self.ndim
        if ndim < 2:  # noqa: PLR2004  (rows and columns)
            msg = f"mT: expected an array of at least two dimensions, got {ndim}"
            raise ArgumentError(msg)
        return self._permuted((*range(ndim - 2), ndim - 1, ndim - 2))

    def _permuted(self, axes: Sequence[int]) -> NDArray:
        from superchunk.arrays.reshaping import permuted  # noqa: PLC0415  (makes arrays of this class)

        return permuted(self, axes, {})

    # Copies.

    def copy(self, dtype: DTypeLike | None = None, **kwargs: Unpack[ArrayKeywords]) -> NDArray:
        """Return a copy, with all metalayers, in memory unless `urlpath` says otherwise.

        Chunks are taken as they are, unless dtype, partition or `cparams` change. Memory stays bounded by
        a few chunks.

        Parameters
        ----------
        dtype
            What to cast the items to.
        **kwargs
            Keywords of the constructors; chunks, blocks, cparams and dparams are this array's if not given.

        Raises
        ------
        ValueError
            `meta` is given, or something that does not go together.
        StorageError
            Something is at the path and `mode` is not "w"; writing failed.

        """
        from superchunk.arrays.converting import copy_of  # noqa: PLC0415  (makes arrays of this class)

        return copy_of(self, dtype, "unsafe", kwargs)  # type: ignore[arg-type]

    def astype(
        self,
        dtype: DTypeLike,
        casting: Casting = "unsafe",
        copy: bool = True,  # noqa: FBT001, FBT002  (as in NumPy)
        **kwargs: Unpack[ArrayKeywords],
    ) -> NDArray:
        """Return a copy cast to `dtype`; the array itself if it has that and `copy` is False.

        Raises
        ------
        TypeError
            The cast is not allowed by `casting`.

        """
        wanted = np.dtype(dtype)
        if not np.can_cast(self.dtype, wanted, casting):
            msg = f"Cannot cast array data from {self.dtype!r} to {wanted!r} according to the rule {casting!r}"
            raise TypeError(msg)
        if not copy and wanted == self.dtype and not kwargs:
            return self  # type: ignore[return-value]
        return self.copy(wanted, **kwargs)

    def slice(self, key: Any, **kwargs: Unpack[ArrayKeywords]) -> NDArray:  # noqa: ANN401  (any index)
        """Return what `key` means as a new NDArray, compressed in the same way; user metadata is not copied.

        Raises
        ------
        IndexError
            `key` is no index, or outside the array.
        ValueError, StorageError
            As for the constructors.

        """
        from superchunk.arrays.reshaping import sliced  # noqa: PLC0415  (makes arrays of this class)

        return sliced(self, key, kwargs)  # type: ignore[arg-type]

    def reshape(
        self,
        shape: Sequence[int] | int,
        c_order: bool = True,  # noqa: FBT001, FBT002  (positional for users of python-blosc2)
        **kwargs: Unpack[ArrayKeywords],
    ) -> NDArray:
        """Return a one-dimensional array's items as a new array of another shape.

        Parameters
        ----------
        shape
            The new shape, of as many items.
        c_order
            In C order; False: one chunk after the other is filled, which is faster.
        **kwargs
            Keywords of the constructors.

        Raises
        ------
        ArgumentError
            The array has not one dimension, or another number of items; a ValueError.

        """
        from superchunk.arrays.reshaping import reshaped  # noqa: PLC0415  (makes arrays of this class)

        return reshaped(self, shape, kwargs, c_order=c_order)  # type: ignore[arg-type]

    def save(self, urlpath: str | os.PathLike[str], contiguous: bool = True, **kwargs: Any) -> None:  # noqa: ANN401, FBT001, FBT002  (as in python-blosc2)
        """Write a copy to a file, or with `contiguous` False to a directory.

        Parameters
        ----------
        urlpath, contiguous
            Where.
        **kwargs
            Other keywords of the constructors.

        Raises
        ------
        StorageError
            Something is there and `mode` is not "w"; writing failed.

        """
        self.copy(urlpath=urlpath, contiguous=contiguous, **kwargs).close()

    def to_cframe(self) -> bytes:
        """Return the array, metalayers included, as one contiguous frame."""
        return self.schunk.to_cframe() if self._base is None else self.copy().to_cframe()

    def take(self, indices: ArrayLike, *, axis: int | None = None) -> NDArray:
        """Return the items at positions along an axis as a new NDArray; see `superchunk.take`."""
        from superchunk.arrays.functions import take  # noqa: PLC0415  (makes arrays of this class)

        return take(self, indices, axis)  # type: ignore[arg-type]

    # Chunks.

    def get_chunk(self, nchunk: int) -> bytes:
        """Return chunk `nchunk`, compressed; see `SChunk.get_chunk`."""
        return self.schunk.get_chunk(nchunk)

    def iterchunks_info(self) -> Iterator[ChunkInfoNDArray]:
        """Iterate over what is known of each chunk without reading its data."""
        grid = self._fresh().layout.grid
        shown = self._form.only_shown
        for coords, info in zip(product(*map(range, grid)), self.schunk.iterchunks_info(), strict=False):
            value = info.repeated_value
            item = (
                None if value is None else np.frombuffer(value, self.dtype)[0] if len(value) == self.itemsize else value
            )
            yield ChunkInfoNDArray(info.nchunk, shown(coords), info.cratio, info.special, item, info.lazychunk)

    @property
    def info_items(self) -> list[tuple[str, object]]:
        """The pairs of name and value that `info` shows."""
        return [
            ("type", type(self).__name__),
            ("shape", self.shape),
            ("chunks", self.chunks),
            ("blocks", self.blocks),
            ("dtype", self.dtype),
            ("nbytes", size(self.nbytes)),
            ("cbytes", size(self.cbytes)),
            ("cratio", ratio(self.cratio)),
            ("cparams", self.cparams),
            ("dparams", self.dparams),
        ]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: shape, dtype, sizes, codec, and how well the chunks are compressed."""
        from superchunk.arrays.card import array_card  # noqa: PLC0415  (only notebooks draw it)

        return array_card(self)

    def __repr__(self) -> str:
        """Return shape, dtype, partition and place in a line."""
        form = self._form
        place = "" if self.urlpath is None else f", urlpath={self.urlpath!r}"
        shape, closed = (form.shape, ", closed") if self._handle.store is None else (self.shape, "")
        return f"NDArray(shape={shape}, dtype={form.dtype}, chunks={form.chunks}, blocks={form.blocks}{place}{closed})"

    # Life.

    def refresh(self) -> bool:
        """Follow changes that others made, a snapshot too; return whether there were any."""
        changed = self.schunk.refresh()
        self._now(self._handle.opened())
        return changed

    def transaction(self) -> AbstractContextManager[object]:
        """Make all changes inside one commit; see `SChunk.transaction`."""
        return self.schunk.transaction()

    def flush(self) -> None:
        """Commit all changes, down to the disk."""
        self.schunk.flush()

    @property
    def dead_bytes(self) -> int:
        """Bytes of the file that nothing refers to; see `SChunk.dead_bytes`."""
        return self.schunk.dead_bytes

    def compact(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Give the dead bytes of the file back to the disk; see `SChunk.compact`."""
        self.schunk.compact(progress)

    def verify(
        self,
        *,
        decode: bool = False,
        nthreads: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> VerifyReport:
        """Check every part of what is on the disk; see `superchunk.verify`."""
        return self.schunk.verify(decode=decode, nthreads=nthreads, progress=progress)

    def close(self) -> None:
        """Write what is pending and close the file, for all views too; see `SChunk.close`."""
        self.schunk.close()


def _to_append(values: ArrayLike | NDArray, form: Form, axis: int) -> Any:  # noqa: ANN401  (an array or NDArray)
    """Return what is appended, of the right shape."""
    if isinstance(values, ArrayBase):
        given: Any = snapshot_of(values)  # the array may be appended to itself
    elif hasattr(values, "dtype"):
        given = np.asarray(values)
    else:
        given = np.asarray(values, form.dtype)
    if form.ndim == 1 and given.ndim != 1:
        plain: Any = np.asarray(values) if isinstance(given, ArrayBase) else given
        return plain.reshape(-1)
    expected = tuple(-1 if at == axis else length for at, length in enumerate(form.shape))
    if given.ndim != form.ndim or any(n not in (-1, m) for n, m in zip(expected, given.shape, strict=True)):
        wanted = tuple("any" if length < 0 else length for length in expected)
        msg = f"values: expected shape {wanted} to append along axis {axis}, got {given.shape}"
        raise ArgumentError(msg)
    return given
