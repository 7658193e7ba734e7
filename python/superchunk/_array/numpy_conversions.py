"""What an array, or a field of one, can do of which all items can be read: be a NumPy array, a number, a list.

Source: docs/migrating.md, "What to change".
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from datetime import date, timedelta
from math import prod
from numbers import Number
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from typing import Self, SupportsIndex

    from numpy.typing import DTypeLike
    from numpy.typing import NDArray as NumpyArray

__all__ = ["NumPyConversions"]

_VALUES: Final = (Number, str, bytes, bytearray, memoryview, list, tuple, date, timedelta)
"""What items can be compared with, besides arrays."""


class NumPyConversions:  # noqa: PLW1641  (an array has no hash, a field has one)
    """Something of a shape, whose items an index reads."""

    __slots__ = ()

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Items in each dimension."""

    @abstractmethod
    def __getitem__(self, key: Any) -> Any:
        """Return the items that `key` means as a new NumPy array."""

    # Comparison.

    def __eq__(self, other: object) -> bool:
        """Return True for the array itself; NumPy's arrays and scalars compare all items, as for ``>``.

        Raises
        ------
        TypeError
            `other` is another number, text, a list, or an array that is compressed or elsewhere: items are
            not compared here, and False would select nothing.

        """
        return True if self is other else self._compared("==", other)

    def __ne__(self, other: object) -> bool:
        """Return the opposite of ``==``, which raises the same."""
        return False if self is other else self._compared("!=", other)

    def _compared(self, sign: str, other: object) -> Any:
        if hasattr(other, "__array_ufunc__") or not (isinstance(other, _VALUES) or hasattr(other, "__array__")):
            return NotImplemented
        kind, another = type(self).__name__, type(other).__name__
        msg = (
            f"{sign!r} not supported between instances of {kind!r} and {another!r}: compare items as a NumPy array, "
            f"array[:] {sign} value, or in parts; whether it is the same object, `is` tells"
        )
        raise TypeError(msg)

    # All items.

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NumpyArray[Any]:
        """Return all items as a NumPy array.

        Raises
        ------
        ValueError
            `copy` is False: there are no plain items to share.

        """
        if copy is False:
            msg = "copy=False: the items are compressed, so an array of them is always new"
            raise ValueError(msg)
        items: NumpyArray[Any] = self[()]
        return items if dtype is None else items.astype(dtype, copy=False)

    def tobytes(self) -> bytes:
        """Return the items in C order as bytes."""
        found: bytes = self[()].tobytes()
        return found

    def tolist(self) -> Any:
        """Return the items as nested lists of Python values."""
        return self[()].tolist()

    def __len__(self) -> int:
        """Return the length of the first dimension.

        Raises
        ------
        TypeError
            There is none.

        """
        shape = self.shape
        if not shape:
            msg = "len() of unsized object: it has 0 dimensions"
            raise TypeError(msg)
        return shape[0]

    # One item.

    def item(self, *key: SupportsIndex) -> Any:
        """Return one item as a Python value: that of an array of one item, or that at the indices given.

        Raises
        ------
        ValueError
            There are several items.

        """
        if key:
            return self[tuple(map(operator.index, key))].item()
        size = prod(self.shape)
        if size != 1:
            msg = f"item: expected an array of 1 item, got {size}"
            raise ValueError(msg)
        return self[()].item()

    def __bool__(self) -> bool:
        """Return the truth of the only item; that of no items or of several is a ValueError."""
        if prod(self.shape) != 1:
            msg = f"the truth value of shape {self.shape} is ambiguous; use any() or all() of NumPy"
            raise ValueError(msg)
        return bool(self[()])

    def __int__(self) -> int:
        """Return a 0-d array's item as an int; for other arrays that is a TypeError."""
        return int(self._only_item("int"))

    def __float__(self) -> float:
        """Return a 0-d array's item as a float; for other arrays that is a TypeError."""
        return float(self._only_item("float"))

    def __complex__(self) -> complex:
        """Return a 0-d array's item as a complex; for other arrays that is a TypeError."""
        return complex(self._only_item("complex"))

    def __index__(self) -> int:
        """Return a 0-d integer array's item; for other arrays that is a TypeError."""
        return operator.index(self._only_item("index"))

    def _only_item(self, what: str) -> Any:
        shape = self.shape
        if shape:
            msg = f"{what}: only 0-dimensional arrays can be converted to Python scalars, got shape {shape}"
            raise TypeError(msg)
        return self[()][()]

    # Where the items are, as the array API standard asks.

    @property
    def device(self) -> Literal["cpu"]:
        """Where items are read to: always ``"cpu"``."""
        return "cpu"

    def to_device(self, device: str) -> Self:
        """Return the array itself.

        Parameters
        ----------
        device
            ``"cpu"``.

        Raises
        ------
        ValueError
            Another device.

        """
        if device != "cpu":
            msg = f"device: expected 'cpu', got {device!r}"
            raise ValueError(msg)
        return self
