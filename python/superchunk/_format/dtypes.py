"""NumPy dtypes and the text by which an array's metalayer says them.

::

    numbers, text, time    <i4  |b1  >f8  <c16  |S5  <U7  |V3  <M8[ns]      dtype.str
    records                [('a', '<i4'), ('b', '<f8', (2,))]
    records with gaps      {'names': ['a'], 'formats': ['<i4'], 'offsets': [4], 'itemsize': 16}
    of ml_dtypes           bfloat16  float8_e5m2                            dtype.name

A text is data from a stranger: nothing in it is run, its length and depth are limited, and it
never names an object. The frame's typesize rules over the bytes, so a text of another item size
is set aside. Metadata inside dtypes is dropped, as by the reference.

Source: docs/format/b2nd.md, "The dtype text".
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from superchunk._format import _literals
from superchunk.exceptions import DtypeError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["dtype_text", "parse_dtype"]

_KINDS = "biufcmMSUV"
_KEYS: Final = {"names", "formats", "offsets", "titles", "itemsize", "aligned"}
# Units may not be divided, as in M8[s/2]: NumPy never writes that, and s/0 ends the process.
_PLAIN = r"[<>=|]?[?A-Za-z][A-Za-z0-9_]{0,40}(\[([1-9][0-9]{0,9})?[A-Za-z\u03bc]{1,10}\])?"
_OLD_BYTES = r"[<>=|]?a([0-9]*)"
_EXTRA = r"bfloat16|float[468]_[a-z0-9]+|u?int[124]"
_MAX_SHOWN = 100
_MAX_SIZE = 2**31 - 1


def dtype_text(dtype: DTypeLike) -> str:
    """Return how a metalayer says a dtype.

    Raises
    ------
    TypeError
        Its items are objects, have no fixed size, or are of a type that no text can say.
    ValueError
        Its items have no bytes, or it is a sub-array, whose dimensions belong to the array. Or its fields nest too
        deep, or have names or titles that no text can express.

    """
    dtype = np.dtype(dtype)
    _refuse(dtype)
    if dtype.itemsize == 0:
        raise ValueError(f"dtype: expected items of at least one byte, got {dtype!r}")
    if dtype.subdtype is not None:
        raise ValueError(f"dtype: expected no sub-array, got {dtype!r}; its dimensions belong to the shape")
    if not _is_record(dtype):
        return dtype.name if _is_extra(dtype) else dtype.str
    text = repr(_literal(dtype))
    try:
        same = parse_dtype(text, dtype.itemsize) == dtype
        text.encode()
    except (DtypeError, UnicodeEncodeError) as error:
        raise ValueError(f"dtype: expected one that a text can say, got {dtype!r}: {error}") from None
    if not same:
        raise ValueError(f"dtype: expected one that a text can say, got {dtype!r}")
    return text


def parse_dtype(text: str | None, typesize: int, *, at: int = 0) -> np.dtype[Any]:
    """Return the dtype that a text says, for items of `typesize` bytes.

    Parameters
    ----------
    text
        As in a metalayer. None, as in layers of old, gives bytes (`S`).
    typesize
        Bytes of an item in the frame. A text of another item size gives an unstructured void type (`V`) of this size.
        So does a type of ml_dtypes where that package is missing.
    at
        Where the text is in the layer, for messages.

    Raises
    ------
    DtypeError
        The text says no dtype, or one with objects.

    """
    if text is None:
        return np.dtype(("S", typesize))
    try:
        dtype = _build(text if re.fullmatch(_PLAIN, text) else _literals.parse(text))
        _refuse(dtype)
    except (TypeError, ValueError, OverflowError, SyntaxError, Warning) as error:
        found = f"{_short(repr(text))}, {_short(error)}"
        raise DtypeError("b2nd dtype text", at=at, expected="a dtype of NumPy", found=found) from None
    if dtype.itemsize != typesize or dtype.subdtype is not None:
        return np.dtype(("V", typesize))
    return dtype


def _short(said: object) -> str:
    """Return a text of bounded length."""
    text = str(said)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _is_record(dtype: np.dtype[Any]) -> bool:
    """Return whether items have fields. Numbers may have some too, which are another view of them."""
    return dtype.names is not None and dtype.kind == "V"


def _is_extra(dtype: np.dtype[Any]) -> bool:
    """Return whether it is a type of ml_dtypes, which calls itself by a name of NumPy's kind."""
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes"


def _refuse(dtype: np.dtype[Any]) -> None:
    """Refuse items that are more than their bytes."""
    if dtype.hasobject:
        raise TypeError(f"expected items of plain bytes, got objects: {dtype!r}")
    if dtype.kind not in _KINDS or not (_is_extra(dtype) or issubclass(dtype.type, np.generic)):
        raise TypeError(f"expected a dtype of NumPy with items of one size, got {dtype!r}")


def _literal(dtype: np.dtype[Any], *, aligned: bool = False) -> Any:
    """Return the literal for a field's dtype, as NumPy itself spells it; `aligned`: in an aligned record."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return (_literal(base, aligned=aligned), shape)
    if _is_record(dtype):
        return _record(dtype, aligned=aligned)
    if _is_extra(dtype):
        return dtype.name
    if dtype.kind == "b":
        return "?"
    text = dtype.str.lstrip("|")
    return text if dtype.itemsize else text[:-1]


def _record(dtype: np.dtype[Any], *, aligned: bool = False) -> Any:
    """Return a list of fields; a dict where NumPy would not put them where they are."""
    fields = [_field(dtype, name) for name in dtype.names or ()]
    align = _all_aligned(dtype)
    if fields and align == aligned:
        natural = np.dtype([(name, form) for name, form, *_ in fields], align=align)
        places: Any = natural.fields
        if natural.itemsize == dtype.itemsize and all(places[name][1] == at for name, _, at, _ in fields):
            return [_listed(name, form, title, aligned=aligned) for name, form, _, title in fields]
    spelled: dict[str, Any] = {
        "names": [name for name, *_ in fields],
        "formats": [_literal(form, aligned=align) for _, form, *_ in fields],
        "offsets": [offset for *_, offset, _ in fields],
    }
    if any(title is not None for *_, title in fields):
        spelled["titles"] = [title for *_, title in fields]
    spelled["itemsize"] = dtype.itemsize
    if align:
        spelled["aligned"] = True
    return spelled


def _all_aligned(dtype: np.dtype[Any]) -> bool:
    """Return whether a record and all records in it are aligned: the word holds for those inside as well."""
    return dtype.isalignedstruct and all(
        not _is_record(form.base) or _all_aligned(form.base)
        for _, form, *_ in (_field(dtype, name) for name in dtype.names or ())
    )


def _field(dtype: np.dtype[Any], name: str) -> tuple[str, np.dtype[Any], int, str | None]:
    """Return name, dtype, offset and title of a field."""
    fields: Any = dtype.fields
    form, offset, *titles = fields[name]
    title = titles[0] if titles else None
    if title is not None and not isinstance(title, str):
        raise ValueError(f"dtype: expected titles of text, got {title!r} for field {name!r}")
    return name, form, offset, title


def _listed(name: str, form: np.dtype[Any], title: str | None, *, aligned: bool) -> tuple[Any, ...]:
    """Return the tuple for a field in a list."""
    label = name if title is None else (title, name)
    if form.subdtype is None:
        return (label, _literal(form, aligned=aligned))
    base, shape = form.subdtype
    return (label, _literal(base, aligned=aligned), shape)


def _build(said: Any, *, align: bool = False) -> np.dtype[Any]:
    """Return the dtype for a literal; `align`: in an aligned record."""
    if isinstance(said, str):
        return _plain(said)
    if isinstance(said, list):
        return _dtype([_listed_field(field, align=align) for field in said], align=align)
    if isinstance(said, dict):
        return _spelled(said, align=align or said.get("aligned") is True)
    if isinstance(said, tuple) and len(said) == 2:  # type and shape
        return _dtype((_build(said[0], align=align), _shape(said[1])))
    raise TypeError(f"expected a type, found {said!r}")


def _dtype(spelled: Any, *, align: bool = False) -> np.dtype[Any]:
    """Return NumPy's dtype, if its fields lie within the item.

    NumPy adds sizes in 32 bits, so fields of 4 GiB can make a record of 4 bytes, and it takes offsets
    far outside. Reading such a field would read memory of others.
    """
    dtype: np.dtype[Any] = np.dtype(spelled, align=align)
    fields: Any = dtype.fields or {}
    for name, (form, offset, *_) in fields.items():
        if not 0 <= offset <= offset + form.itemsize <= dtype.itemsize:
            end = offset + form.itemsize
            raise ValueError(f"expected fields within {dtype.itemsize} bytes, found {name!r} from {offset} to {end}")
    return dtype


def _plain(text: str) -> np.dtype[Any]:
    """Return the dtype that is no record."""
    if re.fullmatch(_EXTRA, text):
        try:
            return _dtype(getattr(importlib.import_module("ml_dtypes"), text))
        except (ImportError, AttributeError):
            return np.dtype(("V", 2 if text == "bfloat16" else 1))
    if not re.fullmatch(_PLAIN, text):
        raise ValueError(f"expected a type, found {text!r}")
    old = re.fullmatch(_OLD_BYTES, text)
    return np.dtype(f"S{old[1]}" if old else text)


def _listed_field(field: Any, *, align: bool) -> tuple[Any, ...]:
    """Return a field in a list as NumPy takes it."""
    if not isinstance(field, tuple) or len(field) not in {2, 3}:
        raise TypeError(f"expected a field, found {field!r}")
    label, form, *shape = field
    titled = (
        isinstance(label, tuple) and len(label) == 2 and all(isinstance(part, str) for part in label)
    )  # title and name
    if not isinstance(label, str) and not titled:
        raise TypeError(f"expected a name, found {label!r}")
    built = _build(form, align=align)
    return (label, built, _shape(shape[0])) if shape else (label, built)


def _spelled(said: dict[str, Any], *, align: bool) -> np.dtype[Any]:
    """Return the dtype for a dict of names, formats and offsets."""
    unknown = said.keys() - _KEYS
    if unknown or not isinstance(said.get("names"), list) or not isinstance(said.get("formats"), list):
        raise TypeError(f"expected names and formats, found {sorted(said)}")
    if len(said["names"]) != len(said["formats"]):
        raise ValueError(f"expected a format for each name, found {len(said['names'])} and {len(said['formats'])}")
    taken: dict[str, Any] = {
        "names": [_text(name) for name in said["names"]],
        "formats": [_build(form, align=align) for form in said["formats"]],
    }
    if "offsets" in said:
        taken["offsets"] = list(map(_size, _list(said["offsets"])))
    if "titles" in said:
        taken["titles"] = [None if title is None else _text(title) for title in _list(said["titles"])]
    if "itemsize" in said:
        taken["itemsize"] = _size(said["itemsize"])
    return _dtype(taken, align=align)


def _list(said: object) -> list[Any]:
    """Return what must be a list."""
    if not isinstance(said, list):
        raise TypeError(f"expected a list, found {said!r}")
    return said


def _text(said: object) -> str:
    """Return what must be text."""
    if not isinstance(said, str):
        raise TypeError(f"expected text, found {said!r}")
    return said


def _size(said: object) -> int:
    """Return what must be a number of bytes or items."""
    if not isinstance(said, int) or isinstance(said, bool) or not 0 <= said <= _MAX_SIZE:
        raise TypeError(f"expected 0 to 2**31 - 1, found {said!r}")
    return said


def _shape(said: object) -> tuple[int, ...]:
    """Return what must be the shape of a sub-array."""
    return tuple(map(_size, said if isinstance(said, tuple) else (said,)))
