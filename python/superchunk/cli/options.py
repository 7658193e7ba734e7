"""Words of the command line, turned into checked values.

Each class is one kind of word: a size (``4M``), a dtype (``f8``), a filter pipeline
(``trunc_prec:16,shuffle``), a range of items (``1000:2000``). A word that makes no
sense is a usage error: exit code 2, before any file is touched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from superchunk import MAX_BUFFERSIZE, Codec, CParams, Filter
from superchunk.params import default_nthreads

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.decorators import FC

__all__ = [
    "DTYPE",
    "FILTERS",
    "ITEMS",
    "SIZE",
    "FilterChoice",
    "ItemRange",
    "codec_option",
    "cparams_from",
    "level_option",
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
            raise ValueError(
                f"--items {self}: expected a range within 0:{nitems}, the items there are, found {first}:{last}"
            )
        return first, last

    def __str__(self) -> str:
        """Return the range as it was written."""
        start = "" if self.start is None else self.start
        stop = "" if self.stop is None else self.stop
        return f"{start}:{stop}"


class _Size(click.ParamType):
    """Bytes, with an optional K, M or G for the powers of 1024."""

    name = "bytes"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d{1,12})([KMG]?)(?:i?B)?", str(value), re.IGNORECASE)
        if match is None:
            self.fail(f"expected a number of bytes such as 65536, 64K or 4M, found {value}", param, ctx)
        nbytes = int(match[1]) * SIZE_UNITS[match[2].upper()]
        if not 1 <= nbytes <= MAX_BUFFERSIZE:
            self.fail(f"expected 1 to {MAX_BUFFERSIZE} bytes, found {nbytes}", param, ctx)
        return nbytes


class _DType(click.ParamType):
    """A NumPy dtype of fixed size without fields, such as ``f8``, ``<i4`` or ``S12``."""

    name = "dtype"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> np.dtype[Any]:
        try:
            dtype = np.dtype(value)
        except (TypeError, ValueError, SyntaxError):
            self.fail(f"expected a NumPy dtype such as f8, found {value}", param, ctx)
        if dtype.hasobject or dtype.itemsize == 0 or dtype.fields or dtype.subdtype:
            self.fail(f"expected a dtype of fixed size without fields, found {value}", param, ctx)
        return dtype


class _Filters(click.ParamType):
    """Up to six filters in the order they run when compressing, ``name`` or ``name:meta``."""

    name = "filters"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[FilterChoice, ...]:
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",")]
        if len(words) > FILTER_SLOTS:
            self.fail(f"expected at most {FILTER_SLOTS} filters, found {len(words)}", param, ctx)
        return tuple(self._one(word, param, ctx) for word in words)

    def _one(self, word: str, param: click.Parameter | None, ctx: click.Context | None) -> FilterChoice:
        name, _, meta = word.partition(":")
        known = {"none": Filter.NOFILTER} | {member.name.lower(): member for member in Filter}
        if name.lower() not in known:
            self.fail(f"expected one of {', '.join(sorted(known))}, found {name!r}", param, ctx)
        if not re.fullmatch(r"-?\d{1,3}|", meta) or not MIN_META <= int(meta or 0) <= MAX_META:
            self.fail(f"expected a number from {MIN_META} to {MAX_META} behind the colon, found {word!r}", param, ctx)
        return FilterChoice(filter=known[name.lower()], meta=int(meta or 0) % 256)


class _Items(click.ParamType):
    """``start:stop``, either left out; or one number, for one item."""

    name = "start:stop"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> ItemRange:
        match = re.fullmatch(r"(-?\d{1,19})?(?:(:)(-?\d{1,19})?)?", str(value))
        if match is None or not str(value):
            self.fail(f"expected start:stop or one number, found {value!r}", param, ctx)
        start = None if match[1] is None else int(match[1])
        if match[2] is None:
            # One item. Behind -1 stands the end, which has no negative number.
            return ItemRange(start=start, stop=None if start in {None, -1} else start + 1)
        return ItemRange(start=start, stop=None if match[3] is None else int(match[3]))


SIZE = _Size()
DTYPE = _DType()
FILTERS = _Filters()
ITEMS = _Items()


def codec_option(default: str) -> Callable[[FC], FC]:
    """Return the option ``--codec``."""
    return click.option(
        "--codec",
        type=click.Choice(list(CODECS), case_sensitive=False),
        default=default,
        show_default=True,
        help="What compresses, after the filters.",
    )


def level_option(default: int) -> Callable[[FC], FC]:
    """Return the option ``--level``."""
    return click.option(
        "--level",
        type=click.IntRange(0, 9),
        default=default,
        show_default=True,
        help="0 stores, 1 is fast, 9 is small.",
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

    """
    return CParams(
        codec=CODECS[codec.lower()],
        clevel=level,
        typesize=typesize,
        nthreads=default_nthreads() if threads is None else threads,
        filters=[choice.filter for choice in filters],
        filters_meta=[choice.meta for choice in filters],
    )
