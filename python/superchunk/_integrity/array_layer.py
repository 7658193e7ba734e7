"""Whether the layer of an array goes together with the frame around it; for `verify` and `repair`.

An array whose layer contradicts its chunks cannot be opened. The layer is small and part of the header, where other
writers change it in place. It has no checksum of its own, so its values are checked for consistency.

Source: docs/format/b2nd.md, "Rules for a safe reader".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._codec.zfp import IDS, codecs
from superchunk._format.b2nd import LAYERS, ArrayLayout
from superchunk._format.dtypes import parse_dtype
from superchunk._integrity.inspect_frame import decode_in_pieces
from superchunk.exceptions import DtypeError, FormatError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from superchunk._engine import Source
    from superchunk._integrity.budget import Budget

__all__ = ["decode_chunk", "layer_name", "layout_in", "true_layout"]


def layer_name(meta: Mapping[str, object]) -> str | None:
    """Return the name of the fixed metalayer that makes an array of a frame, None if there is none."""
    return next((name for name in LAYERS if name in meta), None)


def true_layout(content: bytes, *, typesize: int, chunksize: int, nchunks: int | None) -> ArrayLayout:
    """Return what a layer says if it can be true.

    Parameters
    ----------
    content
        Of the layer.
    typesize, chunksize
        As the frame's header says, bytes.
    nchunks
        Chunks of the frame; None: not known.

    Raises
    ------
    FormatError
        It is damaged, or contradicts the frame.

    """
    layout = ArrayLayout.from_bytes(content)
    count = layout.nchunks if nchunks is None else nchunks
    layout.check(typesize=typesize, chunksize=chunksize if layout.nchunks or count else 0, nchunks=count)
    try:
        parse_dtype(layout.dtype_text, typesize)
    except DtypeError as error:
        at = len(content) - len((layout.dtype_text or "").encode())
        raise FormatError("b2nd dtype text", at=at, expected="a dtype of fixed size", found=str(error)) from error
    return layout


def layout_in(meta: Mapping[str, bytes]) -> ArrayLayout | None:
    """Return what the array's layer says, None if there is none, it is damaged, or it has no blocks."""
    name = layer_name(meta)
    if name is None:
        return None
    try:
        layout = ArrayLayout.from_bytes(meta[name])
    except FormatError:
        return None
    return layout if all(layout.blocks) else None


def decode_chunk(
    source: Source,
    layout: ArrayLayout | None,
    *,
    nthreads: int = 1,
    itemsize: int = 0,
    budget: Budget | None = None,
) -> bool:
    """Decode a whole chunk, with the shape of the array's blocks and ZFP if it needs them, and drop the result.

    Return whether `budget` had enough for it; None has.

    Raises
    ------
    FormatError
        It is damaged.
    UnsupportedError
        It needs a codec or filter that is not available.

    """
    blocks = None if layout is None else layout.blocks
    try:
        return decode_in_pieces(source, nthreads=nthreads, itemsize=itemsize, blockshape=blocks, budget=budget)
    except UnsupportedError as error:
        if blocks is None or error.what != "codec" or error.ident not in IDS:
            raise
        hooks = _engine.Hooks(dict(codecs(blocks, itemsize)), {})
        return decode_in_pieces(source, itemsize=itemsize, blockshape=blocks, hooks=hooks, budget=budget)
