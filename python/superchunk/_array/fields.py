"""Fields of structured arrays: one column of the items, read and written as an array of its own.

Source: docs/format/b2nd.md, "The dtype text".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from superchunk._array.array_view import is_ndarray
from superchunk._array.assigned_values import values_for
from superchunk._array.numpy_conversions import NumPyConversions
from superchunk._array.pinned_reads import changing
from superchunk._array.reading import read_selection
from superchunk._array.slice_planner import select
from superchunk._array.sub_arrays import Inner, inner_selection
from superchunk._array.writing import write_selection
from superchunk._schunk.shared_methods import InfoMixin

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray as NumpyArray

    from superchunk._array.array_view import ArrayView
    from superchunk._array.ndarray import NDArray
    from superchunk._store.store_interface import ChunkList, ChunkStore
    from superchunk.schunk import SChunk

__all__ = ["Fields", "NDField"]


class NDField(NumPyConversions, InfoMixin):
    """One field of a structured array, indexed as NumPy does; a sub-array adds its dimensions behind the array's.

    Reading decodes the items and takes the field out of them; writing changes nothing but the field.

    Parameters
    ----------
    ndarr
        The array; it is kept alive.
    field
        The name of the field.

    Raises
    ------
    TypeError
        `ndarr` is no NDArray.
    ValueError
        The array has no such field.

    """

    __slots__ = ("field", "ndarr")

    def __init__(self, ndarr: NDArray, field: str) -> None:
        given: object = ndarr
        if not is_ndarray(given):
            msg = f"ndarr: expected an NDArray, got {type(ndarr).__name__}"
            raise TypeError(msg)
        names = ndarr.dtype.names
        if names is None or field not in names:
            msg = f"no field of name {field!r}, expected one of {list(names or ())}"
            raise ValueError(msg)
        self.ndarr = ndarr
        self.field = field

    @property
    def dtype(self) -> np.dtype[Any]:
        """What the field's items are."""
        return self.ndarr.dtype[self.field].base

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape, and behind it that of a sub-array field."""
        return self.ndarr.shape + self.ndarr.dtype[self.field].shape

    @property
    def offset(self) -> int:
        """Bytes from an item's start to the field."""
        fields = self.ndarr.dtype.fields
        return 0 if fields is None else fields[self.field][1]

    @property
    def ndim(self) -> int:
        """Number of dimensions, those of a sub-array among them."""
        return len(self.shape)

    @property
    def chunks(self) -> tuple[int, ...]:
        """Items of a chunk of the array in each of its dimensions."""
        return self.ndarr.chunks

    @property
    def blocks(self) -> tuple[int, ...]:
        """Items of a block of the array in each of its dimensions."""
        return self.ndarr.blocks

    @property
    def schunk(self) -> SChunk:
        """The super-chunk of the array."""
        return self.ndarr.schunk

    @property
    def info_items(self) -> list[tuple[str, object]]:
        """The pairs of name and value that `info` shows."""
        return [
            ("type", type(self).__name__),
            ("field", self.field),
            ("shape", self.shape),
            ("chunks", self.chunks),
            ("blocks", self.blocks),
            ("dtype", self.dtype),
            ("offset", self.offset),
        ]

    def __getitem__(self, key: Any) -> NumpyArray[Any]:
        """Return what `key` means of the field as a new NumPy array.

        Raises
        ------
        IndexError, FormatError
            As for the array.

        """
        if isinstance(key, str) or (isinstance(key, list) and any(isinstance(part, str) for part in key)):
            msg = f"the field {self.field!r}: expected an index, got {key!r}"
            raise IndexError(msg)
        array = self.ndarr
        if not array.dtype[self.field].shape:
            found: NumpyArray[Any] = array[key][self.field]
            return found

        def read(view: ArrayView[ChunkList]) -> NumpyArray[Any]:
            geometry = view.geometry
            chosen = inner_selection(key, geometry.shape, geometry.dtype[self.field].shape)
            if isinstance(chosen, Inner):
                return chosen.taken(read_selection(view, chosen.items)[self.field])
            items: NumpyArray[Any] = read_selection(view, chosen)[self.field]
            return items

        return array._reading(read)

    def __setitem__(self, key: Any, value: object) -> None:
        """Put `value`, broadcast and cast, where `key` means; one commit.

        Raises
        ------
        IndexError, ValueError, FormatError, StorageError
            As for the array.

        """
        array = self.ndarr
        if not array.dtype[self.field].shape:
            array._put(value, lambda shape: select(key, shape), self.field)
            return
        store = array._handle.writable_store()
        with changing(store, value):
            self._put(array._view_in(store), key, value)

    def _put(self, view: ArrayView[ChunkStore], key: object, value: object) -> None:
        """Write into sub-arrays; those that `key` means in part are read and written as a whole."""
        part = view.geometry.dtype[self.field]
        chosen = inner_selection(key, view.geometry.shape, part.shape)
        if isinstance(chosen, Inner):
            given = values_for(value, part.base, chosen.whole).all()
            value = read_selection(view, chosen.items)[self.field]
            chosen.put(value, given)
            chosen = chosen.items
        write_selection(view, self.ndarr.schunk._encoder, chosen, value, self.field)

    def __eq__(self, other: object) -> bool:
        """Return True for the same field of the same array; as for an array otherwise."""
        if isinstance(other, NDField) and other.ndarr is self.ndarr and other.field == self.field:
            return True
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        """Return the opposite of ``==``, which raises the same."""
        if isinstance(other, NDField) and other.ndarr is self.ndarr and other.field == self.field:
            return False
        return super().__ne__(other)

    def __hash__(self) -> int:
        """Return the hash of the array's identity and the name."""
        return hash((id(self.ndarr), self.field))

    def __dask_tokenize__(self) -> tuple[object, ...]:
        """Return what Dask names results by: the token of the array, and the field."""
        return ("superchunk.NDField", self.field, *self.ndarr.__dask_tokenize__())

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first dimension."""
        if self.ndarr.ndim:
            return (row[self.field] for row in self.ndarr)
        return iter(self[()])

    def __repr__(self) -> str:
        """Return name, shape and dtype."""
        return f"NDField({self.field!r}, shape={self.shape}, dtype={self.dtype})"


class Fields(Mapping[str, NDField]):
    """The fields of an array by name; read-only, and it keeps the array alive."""

    __slots__ = ("_array",)

    def __init__(self, array: NDArray) -> None:
        self._array = array

    def __getitem__(self, name: str) -> NDField:
        """Return one field.

        Raises
        ------
        KeyError
            There is none of that name.

        """
        if name not in (self._array.dtype.names or ()):
            raise KeyError(name)
        return NDField(self._array, name)

    def __setitem__(self, name: str, values: object) -> NoReturn:
        """Refuse: a field is assigned to through its view.

        Raises
        ------
        TypeError
            Always.

        """
        msg = f'fields: expected to assign through the field view, e.g. array.fields["{name}"][:] = values'
        raise TypeError(msg)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._array.dtype.names or ())

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self._array.dtype.names or ())

    def __repr__(self) -> str:
        """Return the names and dtypes."""
        return f"Fields({ {name: str(field.dtype) for name, field in self.items()} })"
