"""Chunks that go by the shape of an array's blocks: what the layer `b2nd` says of them.

::

    NDCELL, NDMEAN     need the shape to be read and to be written
    NDLZ               needs it to be written
    ZFP                needs both, and the package zfpy

Which reads need the layer is found out by `decoder`. Knows nothing of items or slices.

Source: docs/format/codecs.md; docs/format/filters.md, section "Registered filters".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from superchunk._codec import zfp as _zfp
from superchunk._codec.plugins import hooks_for
from superchunk._format.b2nd import LAYERS, ArrayLayout
from superchunk.exceptions import ArgumentError, DtypeError
from superchunk.params import Codec, Filter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from superchunk import _engine
    from superchunk._codec.plugins import HookOwner
    from superchunk.exceptions import UnsupportedError

__all__ = ["ZFP_IDS", "check_shaped", "is_shaped", "layout_of", "needs_shape", "zfp_hooks"]

ZFP_IDS: Final = frozenset(_zfp.IDS)
_CODECS: Final = ZFP_IDS | {Codec.NDLZ.value}
_FILTERS: Final = frozenset((Filter.NDCELL.value, Filter.NDMEAN.value))


def layout_of(meta: Mapping[str, bytes]) -> ArrayLayout | None:
    """Return the array layer among fixed metalayers, None if there is none or it has no blocks.

    Raises
    ------
    FormatError
        The layer is damaged.

    """
    content = next((meta[name] for name in LAYERS if name in meta), None)
    layout = None if content is None else ArrayLayout.from_bytes(content)
    return layout if layout is not None and all(layout.blocks) else None


def is_shaped(codec: int, filters: bytes) -> bool:
    """Return whether a codec or filter depends on the shape of blocks."""
    return codec in _CODECS or not _FILTERS.isdisjoint(filters)


def check_shaped(codec: int, filters: bytes, layout: ArrayLayout | None, typesize: int) -> None:
    """Refuse to compress what would come back as something else; the engine refuses the rest.

    Raises
    ------
    ArgumentError
        There is no array layer, or the items are no numbers of the kind that the codec or filter takes them for.

    """
    names = [Filter(ident).name for ident in filters if ident in _FILTERS]
    if codec in _CODECS:
        names.append(Codec(codec).name)
    if layout is None:
        raise ArgumentError(
            f"{' and '.join(names)}: expected a container with the metalayer b2nd, which has the block shape, got none"
        )
    if codec in ZFP_IDS:
        _zfp.check(codec, filters, layout.blocks, typesize)
    if codec in ZFP_IDS or Filter.NDMEAN.value in filters:
        _check_floats(names, layout, typesize)


def _check_floats(names: list[str], layout: ArrayLayout, typesize: int) -> None:
    """Refuse items that are not f32 or f64; of items without a dtype nothing is known."""
    if layout.dtype_text is None:
        return
    from superchunk._format.dtypes import parse_dtype  # few codecs ask

    try:
        dtype = parse_dtype(layout.dtype_text, typesize)
    except DtypeError:
        return
    if dtype.kind not in "fSV" or dtype.str.startswith(">"):
        raise ArgumentError(f"{' and '.join(names)}: expected a dtype of float32 or float64, got {dtype}")


def zfp_hooks(owner: HookOwner, layout: ArrayLayout, typesize: int) -> _engine.Hooks:
    """Return ZFP for blocks of this layout, together with what the user has registered.

    Raises
    ------
    UnsupportedError
        The package zfpy is not installed.

    """
    return hooks_for(owner, _zfp.codecs(layout.blocks, typesize))  # type: ignore[return-value]  # codecs: never None


def needs_shape(error: UnsupportedError) -> bool:
    """Return whether an error is about a codec or filter that needs the shape of blocks."""
    return error.ident in (_CODECS if error.what == "codec" else _FILTERS)
