"""One chunk at a time: bytes in, a chunk out, and the other way round.

Knows no container. The few settings that last from call to call (`set_compressor`,
`set_blocksize`, `set_releasegil`) are here as well, because only `compress` heeds
them. Environment variables are never read: arguments win.

Source: docs/format/chunk.md.
"""

from __future__ import annotations

import functools
import operator
import struct
from dataclasses import fields
from typing import TYPE_CHECKING, Final, overload

from superchunk import _engine
from superchunk._codec import cpu_caches as _cpu
from superchunk._codec.buffers import byte_view, check_buffersize, writable_view
from superchunk._codec.parameters import encode_params
from superchunk._codec.plugins import check_available
from superchunk.exceptions import ArgumentError, FormatError, TruncatedError
from superchunk.params import (
    MAX_BLOCKSIZE,
    MAX_TYPESIZE,
    MIN_HEADER_LENGTH,
    NFILTERS,
    Codec,
    CParams,
    DParams,
    Filter,
    as_cparams,
    as_dparams,
    changed_defaults,
    choice_of,
    default_nthreads,
    from_fields,
    ncores,
    number_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal, Unpack

    from superchunk._codec.buffers import AnyBuffer
    from superchunk.params import Compress2Dict, CParamsDict, DParamsDict

__all__ = [
    "clib_info",
    "compress",
    "compress2",
    "compress_blosc1",
    "compressor_list",
    "decompress",
    "decompress2",
    "detect_number_of_cores",
    "free_resources",
    "get_blocksize",
    "get_cbuffer_sizes",
    "get_clib",
    "get_compressor",
    "get_cpu_info",
    "set_block_cache",
    "set_blocksize",
    "set_compressor",
    "set_kept_memory",
    "set_releasegil",
]

_CLIBS: Final = {
    Codec.BLOSCLZ.value: "BloscLZ",
    Codec.LZ4.value: "LZ4",
    Codec.LZ4HC.value: "LZ4",
    Codec.ZLIB.value: "Zlib",
    Codec.ZSTD.value: "Zstd",
}
_ALONE: Final = frozenset({Filter.SHUFFLE, Filter.BITSHUFFLE, Filter.DELTA, Filter.BYTEDELTA})
"""Filters that give the bytes back unchanged without being told more."""
_FLAGS2_AT: Final = 31
_LAZY: Final = 0x08
_RENAMED: Final = {"compcode": "codec", "shuffle": "filters"}
"""Names of the first-generation API, and what they are called now."""


class _Globals:
    """What `compress` remembers between calls."""

    codec: Codec = Codec.BLOSCLZ
    blocksize: int = 0
    releasegil: bool = False


_state = _Globals()


def compress(
    src: AnyBuffer,
    typesize: int | None = 8,
    clevel: int = 1,
    filter: Filter | str = Filter.SHUFFLE,
    codec: Codec | str = Codec.ZSTD,
) -> bytes:
    """Compress a buffer into one chunk.

    Parameters
    ----------
    src
        A C-contiguous buffer of at most `MAX_BUFFERSIZE` bytes, a multiple of
        `typesize`.
    typesize
        Bytes of an item, from 1. None: the `itemsize` of `src`, or 1 if it has none.
        The default is 8, whatever `src` is.
    clevel
        0 to 9.
    filter
        One filter, which goes in the last slot. Those that need parameters to do
        anything do nothing here.
    codec
        The codec, or its name; it becomes what `get_compressor` reports.

    Returns
    -------
    bytes
        The chunk: at most `MAX_OVERHEAD` bytes more than `src`.

    Raises
    ------
    ValueError
        `src` is not contiguous, too large or no multiple of `typesize`; `typesize`
        or `clevel` is out of range.
    TypeError
        `src` has no buffer or no length; `filter` or `codec` is neither of its enum nor a name.
    UnsupportedError
        `codec` is a plugin that is not built in.

    Examples
    --------
    >>> chunk = compress(b"0123456789" * 1000, typesize=1)
    >>> len(chunk) < 200
    True
    >>> decompress(chunk)[:12]
    b'012345678901'

    """
    length = len(src)  # type: ignore[arg-type]  # checked first: asking for the buffer may cost memory
    itemsize = getattr(src, "itemsize", 1)
    check_buffersize(length * itemsize, "src")
    if typesize is None:
        typesize = itemsize
    view = byte_view(src, "src")
    _check_typesize(typesize)
    if view.nbytes % typesize:
        msg = f"src: expected a multiple of typesize {typesize} bytes, got {view.nbytes}"
        raise ValueError(msg)
    chunk = compress_any_length(view, typesize, clevel, filter, codec)
    _state.codec = choice_of(Codec, "codec", codec)
    return chunk


def _check_typesize(typesize: int) -> None:
    if not 1 <= typesize <= MAX_TYPESIZE:
        msg = f"typesize: expected 1 to {MAX_TYPESIZE}, got {typesize}"
        raise ValueError(msg)


def compress_any_length(src: AnyBuffer, typesize: int, clevel: int, choice: Filter | str, codec: Codec | str) -> bytes:
    """Return `src`, which need not be a whole number of items, as one chunk; as `compress` otherwise."""
    one_filter, one_codec = choice_of(Filter, "filter", choice), choice_of(Codec, "codec", codec)
    _check_typesize(typesize)
    view = byte_view(src, "src")
    check_buffersize(view.nbytes, "src")
    return _engine.compress(
        view, _params_of_compress(typesize, clevel, one_filter, one_codec, _state.blocksize, default_nthreads())
    )


@functools.lru_cache(maxsize=64)
def _params_of_compress(
    typesize: int, clevel: int, choice: Filter, codec: Codec, blocksize: int, nthreads: int
) -> _engine.EncodeParams:
    last = choice if choice in _ALONE else Filter.NOFILTER
    return encode_params(
        CParams(
            codec=codec,
            clevel=clevel,
            typesize=typesize,
            nthreads=nthreads,
            blocksize=blocksize,
            filters=[*[Filter.NOFILTER] * (NFILTERS - 1), last],
        )
    )


def compress_blosc1(
    src: AnyBuffer,
    typesize: int = 8,
    clevel: int = 5,
    filter: Filter | str = Filter.SHUFFLE,
    codec: Codec | str = Codec.BLOSCLZ,
) -> bytes:
    """Compress a buffer into one chunk of Blosc1, for readers that know no other.

    Such a chunk has a header of 16 bytes, and no special values or dictionaries.
    `decompress` reads it like any other.

    Parameters
    ----------
    src
        A C-contiguous buffer of at most `MAX_BUFFERSIZE` bytes.
    typesize
        Bytes of an item, from 1; above 255 the chunk records 1.
    clevel
        0 to 9.
    filter
        NOFILTER, SHUFFLE or BITSHUFFLE.
    codec
        BLOSCLZ, LZ4, LZ4HC, ZLIB or ZSTD.

    Returns
    -------
    bytes
        The chunk: at most 16 bytes more than `src`.

    Raises
    ------
    ValueError
        `src` is not contiguous or too large, an argument is out of its range, or
        Blosc1 does not know the filter.
    UnsupportedError
        `codec` is a plugin that is not built in.

    Examples
    --------
    >>> chunk = compress_blosc1(b"0123456789" * 1000, typesize=1)
    >>> chunk[0], decompress(chunk)[:12]
    (2, b'012345678901')

    Source: docs/format/chunk.md, section "Blosc1 chunks".

    """
    view = byte_view(src, "src")
    check_buffersize(view.nbytes, "src")
    last = choice_of(Filter, "filter", filter) if isinstance(filter, str) else Filter(filter)
    params = _engine.EncodeParams(
        codec=(choice_of(Codec, "codec", codec) if isinstance(codec, str) else Codec(codec)).value,
        clevel=clevel,
        typesize=typesize,
        blocksize=_state.blocksize,
        filters=bytes([*[0] * (NFILTERS - 1), last.value]),
        nthreads=default_nthreads(),
        blosc1=True,
    )
    return _engine.compress(view, params)


def _chunk_view(src: AnyBuffer, name: str = "src") -> memoryview:
    """Return the bytes of a chunk, which are at least a header's."""
    view = byte_view(src, name)
    if view.nbytes < MIN_HEADER_LENGTH:
        raise TruncatedError("chunk header", at=0, needed=MIN_HEADER_LENGTH, got=view.nbytes)
    return view


def _decompress_into(view: memoryview, dst: AnyBuffer, nthreads: int) -> None:
    """Fill the front of `dst` with the content of a chunk."""
    out = writable_view(dst, "dst")
    nbytes = _engine.describe(view).nbytes
    if not out.nbytes:
        msg = "dst: expected a buffer to write into, got one of length 0"
        raise ValueError(msg)
    if out.nbytes < nbytes:
        msg = f"dst: expected at least {nbytes} bytes, got {out.nbytes}"
        raise ArgumentError(msg)
    if nbytes:
        _engine.read([(view, nbytes, 0, nbytes, 0)], out, nthreads=nthreads)


@overload
def decompress(src: AnyBuffer, dst: None = None, as_bytearray: Literal[False] = False) -> bytes: ...
@overload
def decompress(src: AnyBuffer, dst: None = None, as_bytearray: bool = False) -> bytes | bytearray: ...
@overload
def decompress(src: AnyBuffer, dst: AnyBuffer, as_bytearray: bool = False) -> None: ...
def decompress(src: AnyBuffer, dst: AnyBuffer | None = None, as_bytearray: bool = False) -> bytes | bytearray | None:
    """Decompress one chunk.

    Parameters
    ----------
    src
        A buffer that begins with the chunk.
    dst
        A writable buffer whose front is filled; None is returned then.
    as_bytearray
        Return a bytearray instead of bytes.

    Raises
    ------
    ValueError
        `src` is shorter than 16 bytes, or `dst` is of length 0 or read-only.
    TypeError
        `src` or `dst` has no buffer.
    FormatError
        The chunk is damaged; a RuntimeError and a ValueError.
    ArgumentError
        `dst` is too small; a RuntimeError and a ValueError.

    """
    view = _chunk_view(src)
    if dst is not None:
        _decompress_into(view, dst, default_nthreads())
        return None
    if as_bytearray:
        out = bytearray(_engine.describe(view).nbytes)
        if out:
            _decompress_into(view, out, default_nthreads())
        return out
    return _engine.decompress(view, nthreads=default_nthreads())


def compress2(
    src: AnyBuffer, *, cparams: CParams | CParamsDict | None = None, **kwargs: Unpack[Compress2Dict]
) -> bytes:
    """Compress a buffer into one chunk, with every choice open.

    Parameters
    ----------
    src
        A C-contiguous buffer of at most `MAX_BUFFERSIZE` bytes, of any length.
    cparams
        How to compress, or instead:
    **kwargs
        The fields of `CParams`; `typesize` is 8 unless given. `filter`, instead of `filters`, is the one filter of the
        last slot.

    Returns
    -------
    bytes
        The chunk.

    Raises
    ------
    ArgumentError
        A field is out of range, or `src` is too large; a RuntimeError and a
        ValueError.
    ValueError
        `filters` and `filters_meta` differ in length, or `src` is not contiguous.
    TypeError
        An unknown field, or `src` has no buffer.
    AttributeError
        Both `cparams` and fields are given.
    NameError
        A name of the first-generation API.
    UnsupportedError
        A codec or filter that is not built in; user codecs run inside a SChunk only.

    """
    params = _chosen(cparams, kwargs)
    view = byte_view(src, "src")
    check_buffersize(view.nbytes, "src")
    check_available(number_of(params.codec), bytes(number_of(f) for f in params.filters), params.nthreads)
    return _engine.compress(view, encode_params(params))


def _chosen(cparams: CParams | CParamsDict | None, kwargs: Mapping[str, Any]) -> CParams:
    for old, new in _RENAMED.items():
        if old in kwargs:
            msg = f"{old!r} is a name of the first-generation API, it is {new!r} now"
            raise NameError(msg)
    if cparams is not None:
        _refuse_both("cparams", kwargs)
        return as_cparams(cparams, typesize=8)
    if "filter" in kwargs:
        kwargs = _with_one_filter(kwargs)
    filters, metas = kwargs.get("filters"), kwargs.get("filters_meta")
    if filters is not None and metas is not None and len(filters) != len(metas):
        msg = f"filters, filters_meta: expected the same length, got {len(filters)} and {len(metas)}"
        raise ValueError(msg)
    return from_fields(CParams, {**changed_defaults(), **kwargs})


def _with_one_filter(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords in which `filter`, as `compress` has it, is the filter of the last slot."""
    if "filters" in kwargs:
        msg = "filter and filters: expected one of them, got both"
        raise TypeError(msg)
    others = {name: value for name, value in kwargs.items() if name != "filter"}
    metas = others.get("filters_meta")
    slots = 1 if metas is not None else NFILTERS
    return {**others, "filters": [*[Filter.NOFILTER] * (slots - 1), kwargs["filter"]]}


def _refuse_both(name: str, kwargs: Mapping[str, object]) -> None:
    known = {f.name for f in fields(CParams if name == "cparams" else DParams)}
    for key in kwargs:
        if key not in known:
            msg = f"unknown keyword {key!r}"
            raise TypeError(msg)
        msg = f"{name} and {key}: expected the object or its fields, got both"
        raise AttributeError(msg)


@overload
def decompress2(
    src: AnyBuffer, dst: None = None, *, dparams: DParams | DParamsDict | None = None, **kwargs: Unpack[DParamsDict]
) -> bytes: ...
@overload
def decompress2(
    src: AnyBuffer, dst: AnyBuffer, *, dparams: DParams | DParamsDict | None = None, **kwargs: Unpack[DParamsDict]
) -> None: ...
def decompress2(
    src: AnyBuffer,
    dst: AnyBuffer | None = None,
    *,
    dparams: DParams | DParamsDict | None = None,
    **kwargs: Unpack[DParamsDict],
) -> bytes | None:
    """Decompress one chunk, with the number of threads open.

    Parameters
    ----------
    src
        A buffer that begins with the chunk.
    dst
        A writable buffer whose front is filled; None is returned then.
    dparams
        How to decompress, or instead:
    **kwargs
        The fields of `DParams`.

    Raises
    ------
    ValueError
        `src` is shorter than 16 bytes; `dst` is empty, read-only or too small; the
        chunk is damaged (a `FormatError`).
    TypeError
        An unknown field, or no buffer.
    AttributeError
        Both `dparams` and fields are given.

    """
    if dparams is not None:
        _refuse_both("dparams", kwargs)
    nthreads = as_dparams(kwargs if dparams is None else dparams).nthreads
    view = _chunk_view(src)
    if dst is None:
        return _engine.decompress(view, nthreads=nthreads)
    _decompress_into(view, dst, nthreads)
    return None


def get_cbuffer_sizes(src: AnyBuffer) -> tuple[int, int, int]:
    """Return ``(nbytes, cbytes, blocksize)`` of a chunk, in bytes.

    The header is enough: what `SChunk.get_lazychunk` returns will do.

    Raises
    ------
    ValueError
        `src` is shorter than 16 bytes, or no chunk.

    """
    view = _chunk_view(src)
    if len(view) > _FLAGS2_AT and view[_FLAGS2_AT] & _LAZY:
        view = memoryview(b"".join((view[:_FLAGS2_AT], bytes([view[_FLAGS2_AT] & ~_LAZY]), view[_FLAGS2_AT + 1 :])))
    try:
        info = _engine.describe(view)
    except TruncatedError:  # a header alone: only its sizes are of interest
        nbytes, blocksize, cbytes = struct.unpack_from("<3i", view, 4)
        if min(nbytes, blocksize, cbytes) < 0:
            raise
        return nbytes, cbytes, blocksize
    return info.nbytes, info.cbytes, info.blocksize


def get_clib(bytesobj: AnyBuffer) -> str:
    """Return the library that compressed a chunk: BloscLZ, LZ4, Zlib or Zstd.

    Raises
    ------
    ValueError
        The bytes are no chunk, or its codec is not one of these.

    """
    codec = _engine.describe(_chunk_view(bytesobj, "chunk")).codec
    if codec not in _CLIBS:
        msg = "chunk header, codec"
        raise FormatError(msg, at=2, expected=f"one of {sorted(_CLIBS)}", found=codec)
    return _CLIBS[codec]


def compressor_list(plugins: bool = False) -> list[Codec]:
    """Return the codecs that are built in, or all that have a name."""
    return list(Codec) if plugins else _cpu.builtin_codecs()


def clib_info(codec: Codec) -> tuple[bytes, bytes]:
    """Return name and version of the library behind a codec, as bytes.

    Raises
    ------
    ValueError
        The codec is none of `compressor_list`.

    """
    if number_of(codec) not in _CLIBS:
        msg = f"codec: expected one of {[one.name for one in compressor_list()]}, got {codec!r}"
        raise ValueError(msg)
    return _CLIBS[number_of(codec)].encode(), _engine.codec_version(number_of(codec))[1].encode()


def set_compressor(codec: Codec | str) -> int:
    """Set what `get_compressor` reports, and return the codec's number.

    Raises
    ------
    TypeError
        `codec` is neither a `Codec` nor a str.
    ValueError
        It is none of `compressor_list`.

    """
    wanted = choice_of(Codec, "codec", codec)
    clib_info(wanted)
    _state.codec = wanted
    return int(wanted.value)


def get_compressor() -> str:
    """Return the lower-case name of the codec last used by `compress`, or set."""
    return _state.codec.name.lower()


def set_blocksize(blocksize: int = 0) -> None:
    """Set the block size of `compress`, in bytes; 0 is automatic.

    Raises
    ------
    TypeError
        It is no integer.
    ValueError
        It is negative or over `MAX_BLOCKSIZE`.

    """
    checked = operator.index(blocksize)
    if not 0 <= checked <= MAX_BLOCKSIZE:
        msg = f"blocksize: expected 0 to {MAX_BLOCKSIZE}, got {checked}"
        raise ValueError(msg)
    _state.blocksize = checked


def get_blocksize() -> int:
    """Return the block size of `compress`, in bytes; 0 is automatic."""
    return _state.blocksize


def set_releasegil(gilstate: bool) -> bool:
    """Set a flag and return the previous one; the engine releases the GIL in any case."""
    previous, _state.releasegil = _state.releasegil, bool(gilstate)
    return previous


def _limit(nbytes: int) -> int:
    """Return a number of bytes that are kept at most."""
    checked = operator.index(nbytes)
    if checked < 0:
        msg = f"nbytes: expected at least 0, got {checked}"
        raise ValueError(msg)
    return checked


def set_block_cache(nbytes: int) -> int:
    """Set how many bytes of decoded blocks are kept for each open frame in a file; return what it was.

    A block that two small reads of up to 64 KiB intersect is decoded whole and retained. Reads of neighbouring items
    then cost little. Changes by others are noticed as ever. Random reads of a large frame gain nothing. The default is
    4 MiB; blocks of more than a quarter are not kept.

    Parameters
    ----------
    nbytes
        At most so many bytes for each frame, from 0, which keeps nothing.

    Raises
    ------
    TypeError
        It is no integer.
    ValueError
        It is negative.

    """
    return _engine.set_cache_limit(_limit(nbytes))


def set_kept_memory(nbytes: int) -> int:
    """Set how much memory of large arrays is kept for later ones; return what it was.

    Memory that is fresh from the system costs about as much time as decoding into it. The memory of a result of 4 MiB
    and more is not returned to the system when the result is freed. It is retained for the next result, up to 256 MiB
    in the process. The system may take it back whenever it needs it. On Linux only.

    Parameters
    ----------
    nbytes
        At most so many bytes, from 0, which keeps nothing.

    Raises
    ------
    TypeError
        It is no integer.
    ValueError
        It is negative.

    """
    return _engine.set_memory_limit(_limit(nbytes))


def free_resources() -> None:
    """Give back what is kept between calls only to save time.

    The engine's threads end, and with them their scratch space of a few blocks each. Retained memory of large arrays
    goes back to the system. Parameters prepared for `compress` are dropped. Later calls make all of them anew.
    """
    _params_of_compress.cache_clear()
    _engine.free_threads()
    _engine.free_memory()


def detect_number_of_cores() -> int:
    """Return the CPUs this process may use."""
    return ncores


def get_cpu_info() -> dict[str, int]:
    """Return the CPUs this process may use and the sizes of their caches, in bytes."""
    return _cpu.cpu_info()
