"""From `CParams` to what the engine and a frame header take, and back.

The one place where the user's words (a short list of filters, a negative meta, an
item of 1000 bytes) become the six slots and bytes of the format.

Source: docs/format/filters.md; docs/format/cframe.md, "Header".
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from superchunk import _engine
from superchunk._shaped import check_shaped, is_shaped
from superchunk.exceptions import UnsupportedError
from superchunk.params import (
    MAX_BLOCKSIZE,
    MAX_HEADER_TYPESIZE,
    MAX_TYPESIZE,
    NFILTERS,
    CParams,
    Filter,
    SplitMode,
    Tuner,
    copied,
    number_of,
)
from superchunk.storage.base import FrameSettings

if TYPE_CHECKING:
    from superchunk.frame.b2nd import ArrayLayout

__all__ = ["as_recorded", "cparams_of", "encode_params", "pipeline", "settings_of"]

_INT16_MAX = 2**15 - 1


def pipeline(cparams: CParams) -> tuple[bytes, bytes]:
    """Return the six filter ids and their six metas as the format stores them.

    A list of fewer fills the pipeline from its first slot. BYTEDELTA has nothing
    to do with items of one byte (an item over 255 bytes counts as such, because a
    chunk header cannot name its size) and is left out there.
    """
    bytedelta_idle = cparams.typesize == 1 or cparams.typesize > MAX_HEADER_TYPESIZE
    return _pipeline(tuple(cparams.filters), tuple(cparams.filters_meta), bytedelta_idle)


@lru_cache(maxsize=64)
def _pipeline(
    choices: tuple[Filter | int, ...],
    numbers: tuple[int, ...],
    bytedelta_idle: bool,  # noqa: FBT001 - kept by it
) -> tuple[bytes, bytes]:
    filters, metas = bytearray(NFILTERS), bytearray(NFILTERS)
    for slot, (choice, meta) in enumerate(zip(choices, numbers, strict=True)):
        if choice is Filter.BYTEDELTA and bytedelta_idle:
            continue
        filters[slot] = number_of(choice)
        metas[slot] = meta & 0xFF
    return bytes(filters), bytes(metas)


def encode_params(
    cparams: CParams, hooks: _engine.Hooks | None = None, layout: ArrayLayout | None = None
) -> _engine.EncodeParams:
    """Return `cparams` as the engine takes them.

    With `layout` blocks are those of an array. Codecs and filters that go by their shape
    need it; where one is used and no block size is given, it is that of the layout.

    Raises
    ------
    ValueError
        A value that the engine has no use for.
    UnsupportedError
        A codec, filter or tuner that is not built in.

    """
    if cparams.tuner is not Tuner.STUNE:
        tuner = cparams.tuner
        name = tuner.name if isinstance(tuner, Tuner) else "unknown"
        raise UnsupportedError("tuner", number_of(tuner), name)
    filters, metas = pipeline(cparams)
    codec, blocksize = number_of(cparams.codec), cparams.blocksize
    if is_shaped(codec, filters):
        check_shaped(codec, filters, layout, cparams.typesize)
        if layout is not None:
            blocksize = blocksize or layout.block_items * cparams.typesize
    return _engine.EncodeParams(
        codec=codec,
        codec_meta=cparams.codec_meta & 0xFF,
        clevel=cparams.clevel,
        typesize=cparams.typesize,
        blocksize=blocksize,
        splitmode=number_of(cparams.splitmode),
        filters=filters,
        filters_meta=metas,
        use_dict=cparams.use_dict,
        nthreads=cparams.nthreads,
        hooks=hooks,
        blockshape=None if layout is None else layout.blocks,
    )


def settings_of(cparams: CParams, nthreads: int) -> FrameSettings:
    """Return what a frame header records of `cparams` and of the threads that decompress."""
    filters, metas = pipeline(cparams)
    return FrameSettings(
        typesize=cparams.typesize,
        blocksize=cparams.blocksize,
        codec=number_of(cparams.codec),
        codec_meta=cparams.codec_meta & 0xFF,
        clevel=cparams.clevel,
        filters=filters,
        filters_meta=metas,
        splitmode=number_of(cparams.splitmode),
        use_dict=cparams.use_dict,
        nthreads_comp=min(cparams.nthreads, _INT16_MAX),
        nthreads_decomp=min(nthreads, _INT16_MAX),
    )


def as_recorded(cparams: CParams) -> CParams:
    """Return `cparams` as a container gives them back: with six filters and metas, none of them negative."""
    if (
        len(cparams.filters) == NFILTERS
        and min(cparams.codec_meta, *cparams.filters_meta) >= 0
        and Filter.BYTEDELTA not in cparams.filters
    ):
        return copied(cparams)
    return replace(cparams_of(settings_of(cparams, 1), cparams.nthreads), tuner=cparams.tuner)


def cparams_of(settings: FrameSettings, nthreads: int) -> CParams:
    """Return the parameters that a frame header records.

    A header may come from a stranger, and opening must not fail for a level that
    only matters to new chunks: what is out of range is moved into it.
    """
    splitmode = settings.splitmode
    return CParams(
        codec=settings.codec & 0xFF,
        codec_meta=settings.codec_meta & 0xFF,
        clevel=min(max(settings.clevel, 0), 9),
        use_dict=settings.use_dict,
        typesize=min(settings.typesize, MAX_TYPESIZE),
        nthreads=nthreads,
        blocksize=settings.blocksize if 0 < settings.blocksize <= MAX_BLOCKSIZE else 0,
        splitmode=SplitMode(splitmode) if 1 <= splitmode <= len(SplitMode) else SplitMode.AUTO_SPLIT,
        filters=list(settings.filters[:NFILTERS]),
        filters_meta=list(settings.filters_meta[:NFILTERS]),
    )
