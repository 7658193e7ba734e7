"""ZFP, through LLNL's own binding `zfpy`, for chunks of the codecs 33 to 35.

::

    stream   whole 64-bit words of zfp, no header: one block of f32 or f64, last dimension fastest
    meta     33: the tolerance is 10**meta (signed)     34: precision meta + 5, 7, 9 or 11 bits for 1 to 4 dimensions
             35: meta / 100 of the bits of an item      (64 at most)

zfp itself reads past the end of a stream that is too short. So it gets one behind which there
are zeros for all bits that a block of that shape can take.

`zfpy` is an extra and imported here only, when the first chunk needs it.

Source: docs/format/codecs.md, section "ZFP".
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from superchunk.exceptions import ArgumentError, FormatError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = ["IDS", "check", "codecs"]

IDS: Final = {33: "zfp accuracy", 34: "zfp precision", 35: "zfp rate"}
"""Codec id -> name."""

_ACCURACY, _PRECISION = 33, 34
_MAX_DIM = 4
_SIDE = 4
"""Items of one of zfp's own blocks in each dimension, and least items of a block that others can read."""
_WORD = 8
"""Bytes of a word of zfp's streams."""
_GAIN = {1: 5, 2: 7, 3: 9, 4: 11}
"""Bits of precision that meta 0 means, by dimensions."""
_MAX_PRECISION = 64
_HEAD_NBITS = {4: 1 + 8, 8: 1 + 11}
"""Bits of a block's exponent, and whether it has one, by typesize: the least that zfp makes of a block."""
_MIXING = {1: "SHUFFLE", 2: "BITSHUFFLE", 3: "DELTA", 34: "BYTEDELTA", 35: "BYTEDELTA"}
"""Filters that leave no numbers for zfp to see."""


def check(codec: int, filters: bytes, shape: tuple[int, ...], typesize: int) -> None:
    """Refuse what zfp, or other readers of it, cannot do.

    Raises
    ------
    ArgumentError
        The message names the parameter.

    """
    name = IDS[codec]
    if typesize not in (4, 8):
        raise ArgumentError(f"typesize: expected 4 or 8 (float32, float64) with codec {name}, got {typesize}")
    if not 1 <= len(shape) <= _MAX_DIM or min(shape) < _SIDE:
        raise ArgumentError(
            f"codec {name}: expected blocks of 1 to {_MAX_DIM} dimensions, at least {_SIDE} items each, got {shape}"
        )
    for ident in filters:
        if ident in _MIXING:
            raise ArgumentError(
                f"filters: expected none that mixes bytes with codec {name} (filters=[Filter.NOFILTER]), "
                f"got {_MIXING[ident]}"
            )


def codecs(shape: tuple[int, ...], typesize: int) -> dict[int, tuple[Callable[..., int], Callable[..., int]]]:
    """Return encoder and decoder of each id for blocks of one shape.

    Parameters
    ----------
    shape
        Items of a block in each dimension.
    typesize
        Bytes of an item.

    Raises
    ------
    UnsupportedError
        The package is not installed.

    """
    try:
        import zfpy  # an extra, and slow to import
    except ImportError:
        missing = 'needs the package zfpy: pip install "superchunk[zfp]"'
        raise UnsupportedError("codec", _ACCURACY, "zfp", missing) from None
    return {codec: _pair(zfpy, codec, shape, typesize) for codec in IDS}


def _parameters(codec: int, meta: int, ndim: int, typesize: int) -> dict[str, float]:
    """Return what zfpy takes for a meta, 0 to 255."""
    if codec == _ACCURACY:
        return {"tolerance": 10.0 ** (meta - 256 if meta > 127 else meta)}  # a signed byte
    if codec == _PRECISION:
        return {"precision": min(meta + _GAIN[ndim], _MAX_PRECISION)}
    # For fewer bits than the head of a block has, zfpy writes beyond its memory.
    values = _SIDE**ndim
    return {"rate": max(meta / 100 * typesize * 8, _HEAD_NBITS[typesize] / values)}


def _most_nbytes(shape: tuple[int, ...], typesize: int) -> int:
    """Return bytes that no stream of a block exceeds, however it came about.

    A block of zfp has at most an exponent, each bit of each number, and a group test for each number and bit plane.
    Twice that is more than enough.
    """
    values: int = _SIDE ** len(shape)
    nblocks = prod(-(-size // _SIDE) for size in shape)
    bits = 2 * (16 + values * (8 * typesize + 1) + 8 * typesize)
    return nblocks * bits // 8 + 2 * _WORD


def _pair(
    zfpy: ModuleType, codec: int, shape: tuple[int, ...], typesize: int
) -> tuple[Callable[..., int], Callable[..., int]]:
    """Return encoder and decoder, as the engine calls them."""
    dtype: np.dtype[Any] = np.dtype("<f4" if typesize == 4 else "<f8")
    nbytes, ndim = prod(shape) * typesize, len(shape)

    def encode(src: memoryview, dst: memoryview, meta: int) -> int:
        """Compress one block; 0, so that it is stored plain, where zfp would not keep its promise."""
        if len(src) != nbytes:
            return 0
        block = np.frombuffer(src, dtype=dtype).reshape(shape)
        if not np.isfinite(block).all():
            return 0
        stream: bytes = zfpy.compress_numpy(block, write_header=False, **_parameters(codec, meta, ndim, typesize))
        if len(stream) > len(dst):
            return 0
        dst[: len(stream)] = stream
        return len(stream)

    def decode(src: memoryview, dst: memoryview, meta: int) -> int:
        """Decompress one block."""
        field = f"{IDS[codec]} stream"
        if typesize not in (4, 8) or not 1 <= ndim <= _MAX_DIM:
            raise FormatError(
                field, at=0, expected="1 to 4 dimensions of f32 or f64", found=f"{shape} of {typesize} bytes"
            )
        if len(dst) != nbytes:
            expected = f"a whole block of {nbytes} bytes, {shape} items of {typesize}"
            raise FormatError(field, at=0, expected=expected, found=f"{len(dst)} bytes")
        if len(src) % _WORD:
            raise FormatError(field, at=0, expected=f"whole words of {_WORD} bytes", found=f"{len(src)} bytes")
        stream = bytes(src).ljust(len(src) + _most_nbytes(shape, typesize), b"\0")
        out = np.zeros(shape, dtype=dtype)
        kind = zfpy.dtype_to_ztype(dtype)
        zfpy._decompress(stream, kind, shape, out=out, **_parameters(codec, meta, ndim, typesize))  # noqa: SLF001
        dst[:] = out.reshape(-1).view(np.uint8).data
        return len(dst)

    return encode, decode
