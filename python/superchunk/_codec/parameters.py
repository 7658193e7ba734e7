"""From `CParams` to what the engine and a frame header take, and back.

This is the only module that translates the user's values (a short list of filters, a negative meta, an item of 1000
bytes) to the six slots and bytes of the format.

Source: docs/format/filters.md; docs/format/cframe.md, "Header".
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from superchunk import _engine
from superchunk._codec.block_shape import check_shaped, is_shaped
from superchunk._codec.plugins import check_available
from superchunk._store.store_interface import FrameSettings
from superchunk.exceptions import ArgumentError, UnsupportedError
from superchunk.params import (
    MAX_BLOCKSIZE,
    MAX_HEADER_TYPESIZE,
    MAX_TYPESIZE,
    NFILTERS,
    Codec,
    CParams,
    Filter,
    SplitMode,
    Tuner,
    number_of,
)

if TYPE_CHECKING:
    from superchunk._format.b2nd import ArrayLayout
    from superchunk.params import DParams

__all__ = ["as_recorded", "check_usable", "cparams_of", "encode_params", "narrow_metas", "pipeline", "settings_of"]

_INT8_MAX = 2**7 - 1
_BYTE = 2**8
_INT16_MAX = 2**15 - 1
_PRECISIONS = {
    Filter.TRUNC_PREC.value: {4: 23, 8: 52},
    Filter.INT_TRUNC.value: {1: 8, 2: 16, 4: 32, 8: 64},
}
"""Filter -> bytes of an item -> bits of it that can be kept."""
_JUDGED = frozenset((*_PRECISIONS, Filter.NDMEAN.value))
"""Filters whose numbers over 127 the engine refuses, and says why."""
_DICT_CODECS: Final = frozenset({Codec.LZ4.value, Codec.LZ4HC.value, Codec.ZSTD.value})
"""Codecs that can share a dictionary; to the others `use_dict` means nothing."""


def pipeline(cparams: CParams) -> tuple[bytes, bytes]:
    """Return the six filter ids and their six metas as the format stores them.

    A list of fewer fills the pipeline from its first slot. BYTEDELTA does nothing on items of one byte and is left out
    for them. An item over 255 bytes counts as one byte, because a chunk header cannot name its size.
    """
    bytedelta_idle = cparams.typesize == 1 or cparams.typesize > MAX_HEADER_TYPESIZE
    return _pipeline(tuple(cparams.filters), tuple(cparams.filters_meta), bytedelta_idle)


@lru_cache(maxsize=64)
def _pipeline(
    choices: tuple[Filter | int, ...],
    numbers: tuple[int, ...],
    bytedelta_idle: bool,
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

    With `layout` blocks are those of an array. Codecs and filters that depend on the shape need it. Where one is used
    and no block size is given, the layout gives the block size.

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
        use_dict=cparams.use_dict and codec in _DICT_CODECS,
        nthreads=cparams.nthreads,
        hooks=hooks,
        blockshape=None if layout is None else layout.blocks,
    )


def settings_of(cparams: CParams, nthreads: int) -> FrameSettings:
    """Return what a frame header records of `cparams` and of the threads that decompress.

    Raises
    ------
    ArgumentError
        A number in `filters_meta` is one that python-blosc2 does not open a frame with.

    """
    filters, metas = pipeline(cparams)
    metas = narrow_metas(filters, metas, cparams.typesize)
    for slot, (filter_id, meta) in enumerate(zip(filters, metas, strict=True)):
        if meta > _INT8_MAX and filter_id not in _JUDGED:
            msg = (
                f"filters_meta[{slot}]: expected a number from 0 to {_INT8_MAX} for filter {filter_id}, got {meta}; "
                "python-blosc2 opens no frame that has a larger one"
            )
            raise ArgumentError(msg)
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


def narrow_metas(filters: bytes, metas: bytes, typesize: int) -> bytes:
    """Return numbers for filters as a header records them: where possible up to 127, which python-blosc2 opens.

    0 means as much as the typesize to SHUFFLE. BYTEDELTA, to which python-blosc2 gives the typesize in place of 0,
    takes two or more byte planes for one, which costs next to nothing. Bits to drop are as many bits to keep.
    """
    if max(metas) <= _INT8_MAX:
        return metas
    narrow = bytearray(metas)
    for slot, (filter_id, meta) in enumerate(zip(filters, metas, strict=True)):
        if meta <= _INT8_MAX:
            continue
        if filter_id == Filter.SHUFFLE.value and meta == typesize:
            narrow[slot] = 0
        elif filter_id == Filter.BYTEDELTA.value and meta == typesize:
            narrow[slot] = next(planes for planes in range(_INT8_MAX, 0, -1) if typesize % planes == 0)
        elif filter_id in _PRECISIONS and meta + _PRECISIONS[filter_id].get(typesize, 0) > _BYTE:
            narrow[slot] = meta + _PRECISIONS[filter_id][typesize] & 0xFF
    return bytes(narrow)


def as_recorded(cparams: CParams) -> CParams:
    """Return `cparams` as a container gives them back: with six filters and metas, none of them negative."""
    if (
        len(cparams.filters) == NFILTERS
        and cparams.codec_meta >= 0
        and min(cparams.filters_meta) >= 0
        and max(cparams.filters_meta) <= _INT8_MAX
        and Filter.BYTEDELTA not in cparams.filters
    ):
        return cparams
    return replace(cparams_of(settings_of(cparams, 1), cparams.nthreads), tuner=cparams.tuner)


def cparams_of(settings: FrameSettings, nthreads: int) -> CParams:
    """Return the parameters that a frame header records.

    A header may come from a stranger, and opening must not fail for a level that only matters to new chunks. Values out
    of range are moved into the range.
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


def check_usable(cparams: CParams, dparams: DParams) -> None:
    """Raise what compressing with these would raise later."""
    nthreads = max(cparams.nthreads, dparams.nthreads)
    check_available(number_of(cparams.codec), bytes(number_of(f) for f in cparams.filters), nthreads)
