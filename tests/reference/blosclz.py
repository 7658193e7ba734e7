"""The BloscLZ stream decoder: literal runs and matches, byte by byte.

::

    000nnnnn                        literal run of n + 1 bytes, which follow
    LLLhhhhh [ext ...] B            match, L = 1..7: length L + 2, distance h * 256 + B + 1
                                    L = 7: length 9 + the sum of ext bytes, up to one below 255
    LLL11111 [ext ...] FF P Q       far match: distance P * 256 + Q + 8192

The top three bits of a stream's first byte are noise: it is always a literal run.

Source: docs/format/codecs.md, section "BloscLZ".
"""

from __future__ import annotations

from typing import Final

NEAR_DISTANCES: Final = 8191
"""The largest near distance, in bytes."""
FAR_BIAS: Final = 8192
"""What a far distance is counted from, in bytes."""
MATCH: Final = 0x20
"""The smallest control byte of a match; those below are literal runs."""
LONG: Final = 7
"""The match length code that announces extension bytes."""
EXTENDED: Final = 255
"""An extension byte of this value announces another one."""


class BlosclzError(ValueError):
    """A stream that breaks the rules of BloscLZ."""


def decompress(src: bytes, size: int) -> bytes:
    """Return the `size` bytes that the stream `src` stands for.

    Parameters
    ----------
    src
        The whole stream.
    size
        What it must decode to, in bytes; never is more than that produced.

    Raises
    ------
    BlosclzError
        The stream ends too early, reaches before the data, or has another length.

    Examples
    --------
    >>> decompress(bytes.fromhex("23 61626364 E05403 02 626364"), 100) == b"abcd" * 25
    True

    """
    if not src:
        raise BlosclzError("an empty stream")
    out = bytearray()
    control = src[0] & 0x1F
    at = 1
    while True:
        if control < MATCH:
            at = _copy_literals(src, at, out, control + 1, size)
        else:
            length, distance, at = _read_match(src, at, control, size - len(out))
            if len(out) + length > size:
                raise BlosclzError(f"{len(out)} bytes and a match of {length}: more than {size}")
            if distance > len(out):
                raise BlosclzError(f"distance {distance}, but {len(out)} bytes came before")
            if at < len(src):  # a match that ends the stream is never performed
                _copy_match(out, distance, length)
        if at >= len(src):
            break
        control = src[at]
        at += 1
    if len(out) != size:
        raise BlosclzError(f"{len(out)} bytes instead of {size}")
    return bytes(out)


def _copy_literals(src: bytes, at: int, out: bytearray, count: int, size: int) -> int:
    """Append `count` bytes of the stream and return the position behind them."""
    if len(out) + count > size:
        raise BlosclzError(f"{len(out)} bytes and {count} literals: more than {size}")
    if at + count > len(src):
        raise BlosclzError(f"{count} literals, but {len(src) - at} bytes are left")
    out += src[at : at + count]
    return at + count


def _read_match(src: bytes, at: int, control: int, room: int) -> tuple[int, int, int]:
    """Return length, distance and the position behind the match whose control this is."""
    length = (control >> 5) + 2
    high = control & 0x1F
    if control >> 5 == LONG:
        while True:
            _need_two(src, at)
            extension = src[at]
            at += 1
            length += extension
            if extension != EXTENDED:
                break
            if length > room:
                raise BlosclzError(f"a match of at least {length}: room for {room}")
    else:
        _need_two(src, at)
    low = src[at]
    at += 1
    if (high, low) != (0x1F, 0xFF):
        return length, high * 256 + low + 1, at
    _need_two(src, at)
    return length, src[at] * 256 + src[at + 1] + FAR_BIAS, at + 2


def _need_two(src: bytes, at: int) -> None:
    """Refuse a stream with fewer than two bytes left: a literal run must still follow."""
    if at + 2 > len(src):
        raise BlosclzError("the stream ends inside a match")


def _copy_match(out: bytearray, distance: int, length: int) -> None:
    """Append `length` bytes from `distance` back; what was just written may be read again."""
    start = len(out) - distance
    pattern = bytes(out[start : start + length])
    whole, rest = divmod(length, len(pattern))
    out += pattern * whole + pattern[:rest]
