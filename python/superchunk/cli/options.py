"""Arguments of the command line, parsed into checked values.

Each ``parse`` function reads one kind of argument: a size (``4M``), a dtype (``f8``), a filter pipeline
(``trunc_prec:16,shuffle``), a range of items (``1000:2000``). An invalid argument
is a usage error: exit code 2, before any file is opened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import superchunk
from superchunk import MAX_BUFFERSIZE, Codec, CParams, Filter

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.decorators import FC

__all__ = [
    "CODECS",
    "FilterChoice",
    "ItemRange",
    "codec_option",
    "cparams_from",
    "level_option",
    "parse_dtype",
    "parse_filters",
    "parse_items",
    "parse_shape",
    "parse_size",
    "threads_option",
]

CODECS = {codec.name.lower(): codec for codec in (Codec.BLOSCLZ, Codec.LZ4, Codec.LZ4HC, Codec.ZLIB, Codec.ZSTD)}
FILTER_SLOTS = 6
MIN_META, MAX_META = -128, 255
"""A filter's parameter is one byte; negative numbers are those from 128 on."""
MAX_THREADS = 1024
SIZE_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChoice:
    """One step of a filter pipeline."""

    filter: Filter
    meta: int
    """The filter's parameter, 0 to 255."""

    def __str__(self) -> str:
        """Return the word that a command line has for it."""
        name = "none" if self.filter is Filter.NOFILTER else self.filter.name.lower()
        return f"{name}:{self.meta}" if self.meta else name


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRange:
    """Items ``start:stop``, as Python counts them: negative numbers from the end."""

    start: int | None
    stop: int | None

    def within(self, nitems: int) -> tuple[int, int]:
        """Return the range as two numbers with ``0 <= start <= stop <= nitems``.

        Raises
        ------
        ValueError
            The range reaches past either end, or ends before it starts.

        """
        start = 0 if self.start is None else self.start
        stop = nitems if self.stop is None else self.stop
        first = start + nitems if start < 0 else start
        last = stop + nitems if stop < 0 else stop
        if not 0 <= first <= last <= nitems:
            raise ValueError(f"--items {self}: expected a range within 0:{nitems}, found {first}:{last}")
        return first, last

    def __str__(self) -> str:
        """Return the range as it was written."""
        start = "" if self.start is None else self.start
        stop = "" if self.stop is None else self.stop
        return f"{start}:{stop}"


def parse_size(word: str) -> int:
    """Return a number of bytes, written with an optional K, M or G for the powers of 1024.

    Examples
    --------
    >>> parse_size("64K")
    65536

    """
    match = re.fullmatch(r"(\d{1,12})([KMG]?)(?:i?B)?", word, re.IGNORECASE)
    if match is None:
        raise click.BadParameter(f"expected a number of bytes such as 65536, 64K or 4M, found {word!r}")
    nbytes = int(match[1]) * SIZE_UNITS[match[2].upper()]
    if not 1 <= nbytes <= MAX_BUFFERSIZE:
        raise click.BadParameter(f"expected 1 to {MAX_BUFFERSIZE} bytes, found {nbytes}")
    return nbytes


def parse_dtype(word: str) -> np.dtype[Any]:
    """Return a NumPy dtype of fixed size without fields, such as ``f8``, ``<i4`` or ``S12``."""
    try:
        dtype: np.dtype[Any] = np.dtype(word)
    except (TypeError, ValueError, SyntaxError):
        raise click.BadParameter(f"expected a NumPy dtype such as f8, found {word!r}") from None
    if not word or dtype.hasobject or dtype.itemsize == 0 or dtype.fields or dtype.subdtype:
        raise click.BadParameter(f"expected a dtype of fixed size without fields, found {word!r}")
    return dtype


def parse_filters(words: str) -> tuple[FilterChoice, ...]:
    """Return up to six filters in the order they run when compressing, ``name`` or ``name:meta``."""
    steps = words.split(",")
    if len(steps) > FILTER_SLOTS:
        raise click.BadParameter(f"expected at most {FILTER_SLOTS} filters, found {len(steps)}")
    return tuple(_parse_filter(step.strip().lower()) for step in steps)


def _parse_filter(word: str) -> FilterChoice:
    name, _, meta = word.partition(":")
    known = {"none": Filter.NOFILTER} | {member.name.lower(): member for member in Filter}
    if name not in known:
        raise click.BadParameter(f"expected one of {', '.join(sorted(known))}, found {name!r}")
    if not re.fullmatch(r"-?\d{1,3}|", meta) or not MIN_META <= int(meta or 0) <= MAX_META:
        raise click.BadParameter(f"expected a number from {MIN_META} to {MAX_META} after the colon, found {word!r}")
    return FilterChoice(filter=known[name], meta=int(meta or 0) % 256)


def parse_items(word: str) -> ItemRange:
    """Return the range ``start:stop``, either left out; or one number, for one item."""
    match = re.fullmatch(r"(-?\d{1,19})?(?:(:)(-?\d{1,19})?)?", word)
    if match is None or not word:
        raise click.BadParameter(f"expected start:stop or one number, found {word!r}")
    start = None if match[1] is None else int(match[1])
    if match[2] is None:
        # One item. Behind item -1 stands the end, which has no negative number.
        return ItemRange(start=start, stop=None if start in {None, -1} else int(match[1]) + 1)
    return ItemRange(start=start, stop=None if match[3] is None else int(match[3]))


def parse_shape(word: str) -> tuple[int, ...]:
    """Return numbers of items along each dimension, ``100,200``.

    Examples
    --------
    >>> parse_shape("64, 128")
    (64, 128)

    """
    parts = [part.strip() for part in word.split(",")]
    if not all(re.fullmatch(r"[1-9]\d{0,9}", part) for part in parts):
        raise click.BadParameter(f"expected numbers of 1 or more separated by commas, such as 100,200; found {word!r}")
    return tuple(map(int, parts))


def codec_option(default: str) -> Callable[[FC], FC]:
    """Return the option ``--codec``."""
    return click.option(
        "--codec",
        type=click.Choice(list(CODECS), case_sensitive=False),
        default=default,
        show_default=True,
        help="Codec that runs after the filters.",
    )


def level_option(default: int) -> Callable[[FC], FC]:
    """Return the option ``--level``."""
    return click.option(
        "--level",
        type=click.IntRange(0, 9),
        default=default,
        show_default=True,
        help="0 stores, 1 is fastest, 9 is smallest.",
    )


def threads_option() -> Callable[[FC], FC]:
    """Return the option ``--threads``."""
    return click.option(
        "--threads",
        type=click.IntRange(1, MAX_THREADS),
        default=None,
        help="Threads to use.  [default: one for each CPU]",
    )


def cparams_from(
    *,
    codec: str,
    level: int,
    filters: tuple[FilterChoice, ...],
    typesize: int,
    threads: int | None,
    blocksize: int = 0,
) -> CParams:
    """Return the compression parameters that a command line asks for.

    Parameters
    ----------
    codec
        A key of `CODECS`.
    level
        0 to 9.
    filters
        At most six, in the order they run.
    typesize
        Bytes of one item.
    threads
        None for the library's default.
    blocksize
        Bytes of a block; 0 leaves it to the library.

    """
    try:
        cparams = CParams(
            codec=CODECS[codec.lower()],
            clevel=level,
            blocksize=blocksize,
            typesize=typesize,
            nthreads=superchunk.nthreads if threads is None else threads,
            filters=[choice.filter for choice in filters],
            filters_meta=[choice.meta for choice in filters],
        )
        # Which filters go together, and with which items, shows when they are used.
        superchunk.compress2(b"", cparams=cparams)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return cparams
