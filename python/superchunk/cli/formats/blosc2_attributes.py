"""Attributes of other formats in the vlmetalayers of a frame, and back.

::

    vlmetalayer                 content
    NAME                        an attribute whose name has at most 31 bytes, while there is room
    superchunk.attributes       a map of all the others
    superchunk.fill_value       bytes of the item that is where nothing was written
    _ARRAY_DIMENSIONS           the names of the dimensions, a list of str

A frame has room for 16 vlmetalayers. The user's fixed metalayers of a frame become attributes as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from superchunk.cli.formats.attributes import DIMENSIONS, dimensions_in, plain
from superchunk.cli.layout import NPY_HEADER, PACKED, RAW_DTYPE
from superchunk.cli.options import FilterChoice, cparams_from
from superchunk.exceptions import SuperchunkError
from superchunk.params import Filter

if TYPE_CHECKING:
    import numpy as np

    from superchunk import CParams, SChunk
    from superchunk.cli.formats.base import Plan

__all__ = [
    "attributes_of",
    "cparams_for",
    "read_dimensions",
    "read_fill",
    "record",
    "record_dimensions",
    "record_fill",
]

REST: Final = "superchunk.attributes"
FILL: Final = "superchunk.fill_value"
_OURS: Final = frozenset({NPY_HEADER, RAW_DTYPE, PACKED, REST, FILL, DIMENSIONS})
_ARRAY_LAYERS: Final = frozenset({"b2nd", "caterva"})
_CACHE: Final = "proxy-source"
_OF_CACHES: Final = "proxy-"
"""How the names begin of what a cache of another array notes about itself (docs/format/metalayers.md)."""
_LONGEST_NAME: Final = 31
_OWN_LAYERS: Final = 10
"""Attributes with a layer of their own; six of 16 remain for `_OURS` and for those of the user."""


def attributes_of(schunk: SChunk, dimensions: tuple[str, ...] | None) -> dict[str, object]:
    """Return what a frame says besides its items and `dimensions`; what cannot be decoded as raw bytes.

    What a cache of another array notes about itself is not true of a copy, and is left out.
    """
    found: dict[str, object] = {}
    cache = _CACHE in schunk.meta
    ours = _OURS if dimensions else _OURS - {DIMENSIONS}  # what says nothing of dimensions is the user's
    for layers, hidden in ((schunk.meta, _ARRAY_LAYERS), (schunk.vlmeta, ours)):
        for name in layers:
            if name in hidden or (cache and name.startswith(_OF_CACHES)):
                continue
            try:
                found[name] = layers[name]
            except SuperchunkError:
                found[name] = bytes(layers.raw(name))
    rest = schunk.vlmeta.get(REST, {})
    if isinstance(rest, dict):
        found |= {str(name): value for name, value in rest.items()}
    return found


def record(schunk: SChunk, name: str, value: object) -> None:
    """Keep an attribute.

    Raises
    ------
    ValueError, TypeError, SuperchunkError
        It is of a kind that cannot be kept, or too large.

    """
    vlmeta = schunk.vlmeta
    kept = plain(value)
    named = len(name.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME
    if named and name and name not in _OURS and len(vlmeta) < _OWN_LAYERS:
        vlmeta[name] = kept
        return
    rest = vlmeta.get(REST, {})
    vlmeta[REST] = {**rest, name: kept}


def record_fill(schunk: SChunk, fill: bytes | None) -> None:
    """Keep the fill value, if there is one."""
    if fill is not None:
        schunk.vlmeta[FILL] = fill


def record_dimensions(schunk: SChunk, dimensions: tuple[str, ...] | None) -> None:
    """Keep the names of the dimensions, if they have any."""
    if dimensions is not None:
        schunk.vlmeta[DIMENSIONS] = list(dimensions)


def read_dimensions(schunk: SChunk, ndim: int) -> tuple[str, ...] | None:
    """Return the names of the dimensions that were kept, None if there are none for as many dimensions."""
    try:
        return dimensions_in(schunk.vlmeta.get(DIMENSIONS), ndim)
    except SuperchunkError:
        return None


def read_fill(schunk: SChunk, dtype: np.dtype[Any]) -> bytes | None:
    """Return the fill value that was kept, None if there is none of the right size."""
    if FILL not in schunk.vlmeta:
        return None
    fill = schunk.vlmeta[FILL]
    return fill if isinstance(fill, bytes) and len(fill) == dtype.itemsize else None


def cparams_for(plan: Plan) -> CParams:
    """Return the compression parameters that a plan asks for, else those of ``superchunk compress``."""
    filters = (FilterChoice(filter=Filter.SHUFFLE, meta=0),) if plan.filters is None else plan.filters
    return cparams_from(
        codec=plan.codec or "zstd",
        level=5 if plan.level is None else plan.level,
        filters=filters,
        typesize=plan.itemsize,
        threads=plan.threads,
    )
