"""Every choice a user can make: enums, limits, and the three parameter classes.

`CParams` says how to compress, `DParams` how to decompress, `Storage` where a
container lives. They check themselves when they are made, so that a mistake is
reported where it is and not at the first chunk. They are frozen: a change is
`dataclasses.replace(params, clevel=9)`.

Compresses nothing and opens nothing; what `Storage.mode` means to a file is
decided in `superchunk._schunk.opening`.

Source: docs/format/codecs.md, "Numbers"; docs/format/filters.md; docs/format/chunk.md, "The split rule".
"""

from __future__ import annotations

import enum
import errno
import operator
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypedDict, TypeVar

from superchunk.exceptions import ArgumentError, StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DEFINED_CODECS_STOP",
    "EXTENDED_HEADER_LENGTH",
    "GLOBAL_REGISTERED_CODECS_STOP",
    "MAX_BLOCKSIZE",
    "MAX_BUFFERSIZE",
    "MAX_DIM",
    "MAX_OVERHEAD",
    "MAX_TYPESIZE",
    "MIN_HEADER_LENGTH",
    "USER_REGISTERED_CODECS_STOP",
    "CParams",
    "CParamsDict",
    "Codec",
    "DParams",
    "DParamsDict",
    "DeserializeMode",
    "Filter",
    "SpecialValue",
    "SplitMode",
    "Storage",
    "StorageDict",
    "Tuner",
    "cparams_dflts",
    "default_nthreads",
    "dparams_dflts",
    "ncores",
    "set_nthreads",
    "storage_dflts",
]

MIN_HEADER_LENGTH: Final = 16
"""Bytes of the shortest chunk header."""
EXTENDED_HEADER_LENGTH: Final = 32
"""Bytes of the header of every chunk we write."""
MAX_OVERHEAD: Final = 32
"""Bytes that a chunk may be larger than its content."""
MAX_BUFFERSIZE: Final = 2**31 - 1 - MAX_OVERHEAD
"""Bytes of the largest content of one chunk."""
MAX_BLOCKSIZE: Final = 536866816
"""Bytes of the largest block."""
MAX_TYPESIZE: Final = MAX_BLOCKSIZE
"""Bytes of the largest item."""
MAX_DIM: Final = 16
"""Dimensions of an array, at most."""
DEFINED_CODECS_STOP: Final = 31
"""Last codec id of the format itself."""
GLOBAL_REGISTERED_CODECS_STOP: Final = 159
"""Last codec id of the public registry of plugins."""
USER_REGISTERED_CODECS_STOP: Final = 255
"""Last codec id; those above the public registry are the user's."""

MAX_HEADER_TYPESIZE: Final = 255
"""Bytes of the largest item that a chunk header can name; larger ones are recorded as 1."""
NFILTERS: Final = 6
"""Slots of the filter pipeline."""
MAX_NTHREADS: Final = 2**31 - 1
_LARGE_MACHINE: Final = 16
_MOST_DEFAULT_THREADS: Final = 64
_BYTE: Final = 255


class Codec(enum.Enum):
    """The last step of compression. Ids 36 to 40 need a plugin each."""

    BLOSCLZ = 0
    LZ4 = 1
    LZ4HC = 2
    ZLIB = 4
    ZSTD = 5
    NDLZ = 32
    ZFP_ACC = 33
    ZFP_PREC = 34
    ZFP_RATE = 35
    OPENHTJ2K = 36
    GROK = 37
    OPENZL = 38
    J2K = 39
    HTJ2K = 40


class Filter(enum.Enum):
    """A step before the codec.

    What `CParams.filters_meta` means to each: SHUFFLE and BYTEDELTA take the number of byte streams (0: the typesize).
    TRUNC_PREC and INT_TRUNC take the bits to keep (negative: to drop). NDCELL and NDMEAN take the edge of a cell.
    """

    NOFILTER = 0
    SHUFFLE = 1
    BITSHUFFLE = 2
    DELTA = 3
    TRUNC_PREC = 4
    NDCELL = 32
    NDMEAN = 33
    BYTEDELTA = 35
    INT_TRUNC = 36


class DeserializeMode(enum.StrEnum):
    """Which extension values of metadata are read; the two strings do as well."""

    SAFE = "safe"
    FULL = "full"


class SplitMode(enum.Enum):
    """Whether a block's byte streams are compressed one by one."""

    ALWAYS_SPLIT = 1
    NEVER_SPLIT = 2
    AUTO_SPLIT = 3
    FORWARD_COMPAT_SPLIT = 4


class SpecialValue(enum.Enum):
    """Chunks of one value, which take no room."""

    NOT_SPECIAL = 0
    ZERO = 1
    NAN = 2
    VALUE = 3
    UNINIT = 4


class Tuner(enum.Enum):
    """Who chooses the block size. BTUNE is a plugin."""

    STUNE = 0
    BTUNE = 32


def _count_cores() -> int:
    """Return how many CPUs this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


ncores: Final = _count_cores()
"""The CPUs this process may use."""


def nthreads_for(cores: int, asked: str = "") -> int:
    """Return the default number of threads on a machine of `cores` CPUs.

    What the environment variable ``BLOSC_NTHREADS`` says, `asked`, if that is a number of threads. Otherwise one for
    each CPU, at most 64, less one eighth where there are more than 16.
    """
    if asked.isdecimal() and 1 <= int(asked) <= MAX_NTHREADS:
        return int(asked)
    usable = min(cores, _MOST_DEFAULT_THREADS)
    return usable - usable // 8 if usable > _LARGE_MACHINE else usable


_default_nthreads = nthreads_for(ncores, os.environ.get("BLOSC_NTHREADS", ""))


def default_nthreads() -> int:
    """Return the number of threads that new parameters get."""
    return _default_nthreads


def set_nthreads(nthreads: int) -> int:
    """Set the number of threads that parameters made from now on get.

    Existing parameters and open handles keep theirs.

    Parameters
    ----------
    nthreads
        From 1 to 2**31 - 1.

    Returns
    -------
    int
        The previous number.

    Raises
    ------
    ValueError
        `nthreads` is out of range.

    Examples
    --------
    >>> previous = set_nthreads(3)
    >>> CParams().nthreads
    3
    >>> set_nthreads(previous)
    3

    """
    global _default_nthreads
    checked = _integer("nthreads", nthreads, 1, MAX_NTHREADS)
    previous, _default_nthreads = _default_nthreads, checked
    for kept in (cparams_dflts, dparams_dflts, _usual_cparams, _usual_dparams):
        kept["nthreads"] = checked
    return previous


def _integer(name: str, value: object, low: int, high: int) -> int:
    """Return `value` as an int of the range, or raise an error that names the field."""
    if type(value) is int and low <= value <= high:  # as nearly always
        return value
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        if isinstance(value, float) and value.is_integer() and name == "blocksize":
            number = int(value)
        else:
            msg = f"{name}: expected an integer from {low} to {high}, got {value!r}"
            raise TypeError(msg) from None
    if not low <= number <= high:
        msg = f"{name}: expected {low} to {high}, got {number}"
        raise ArgumentError(msg)
    return number


def as_flag(name: str, value: object) -> bool:
    """Return a bool, NumPy's too, 0 or 1 as a bool; text is none."""
    if value is True or value is False:
        return value
    if type(value).__name__ not in ("bool", "bool_") and not (hasattr(value, "__index__") and value in (0, 1)):
        msg = f"{name}: expected True or False, got {value!r}"
        raise TypeError(msg)
    return bool(value)


def _listed(name: str, value: object) -> Sequence[Any]:
    """Return a list of any kind, which a str is not."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        msg = f"{name}: expected a list, got {value!r}"
        raise TypeError(msg)
    return list(value)


_E = TypeVar("_E", bound=enum.Enum)


def _member(kind: type[_E], name: str, value: object, low: int, high: int) -> _E | int:
    """Return the member of `kind` that `value` is or names by number, else the number."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        return choice_of(kind, name, value)
    if isinstance(value, enum.Enum):
        msg = f"{name}: expected a {kind.__name__}, its name or its number, got {value!r}"
        raise TypeError(msg)
    number = _integer(name, value, low, high)
    try:
        return kind(number)
    except ValueError:
        return number


def choice_of(kind: type[_E], name: str, value: object) -> _E:
    """Return the member of `kind` that `value` is, or whose name it is, in upper or lower case.

    Raises
    ------
    TypeError
        It is neither a member nor a str.
    ArgumentError
        There is no member of that name; a ValueError.

    """
    if isinstance(value, kind):
        return value
    if not isinstance(value, str):
        msg = f"{name}: expected a {kind.__name__} or its name, got {value!r}"
        raise TypeError(msg)
    try:
        return kind[value.upper()]
    except KeyError:
        msg = f"{name}: expected one of {', '.join(member.name.lower() for member in kind)}, got {value!r}"
        raise ArgumentError(msg) from None


def number_of(choice: enum.Enum | int) -> int:
    """Return the format's number of an enum member, or the number itself."""
    number: int = choice if isinstance(choice, int) else choice._value_
    return number


_OF_NUMBERS = (Codec.ZFP_ACC, Codec.ZFP_PREC, Codec.ZFP_RATE)
"""Codecs that compress numbers, not bytes."""


_T = TypeVar("_T")


class ReadOnlyList(list[_T]):
    """A list that cannot be changed, as it belongs to parameters that cannot.

    It reads, compares and prints as the list that python-blosc2 has there.
    """

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        msg = (
            "the lists of CParams cannot be changed: make new parameters, dataclasses.replace(cparams, filters=[...]), "
            "and assign them, schunk.cparams = ..."
        )
        raise TypeError(msg)

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # of a list there is none
        """Return the hash of the items."""
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled and copied as a whole, not item by item."""
        return type(self), (list(self),)


class _Unasked(ReadOnlyList["Filter | int"]):
    """The filters of whoever names none: a shuffle, which a codec that needs numbers as they are goes without."""

    __slots__ = ()


_UNASKED: Final = _Unasked([*[Filter.NOFILTER] * (NFILTERS - 1), Filter.SHUFFLE])
_NO_METAS: Final = ReadOnlyList([0] * NFILTERS)


@dataclass(frozen=True, slots=True)
class CParams:
    """How to compress.

    Parameters
    ----------
    codec
        A `Codec`, its name, as "zstd", or its number; numbers from 160 are user codecs.
    codec_meta
        A number for the codec, -128 to 255: the side of NDLZ's cells, the tolerance, precision or rate of ZFP.
    clevel
        From 0 (stored as it is) to 9 (smallest, slowest). Default 5.
    use_dict
        Share a dictionary between the blocks of a chunk (ZSTD, LZ4, LZ4HC).
    typesize
        Bytes of an item, from 1. Default 8.
    nthreads
        Threads that compress, from 1; more than the machine has is a waste.
    blocksize
        Bytes of a block; 0, the default, chooses by codec and level.
    splitmode
        Whether the byte streams of a block are compressed one by one.
    filters
        Up to six, in the order they run when compressing: members of `Filter`, names or numbers. A shorter list fills
        the pipeline from its first slot. Default: SHUFFLE in the last slot; none with ZFP. Kept as a list
        that cannot be changed.
    filters_meta
        A number for each filter, -128 to 255, see `Filter`; cut to the length of
        `filters`. Containers record 0 to 127: python-blosc2 opens no frame with larger ones.
    tuner
        Who chooses the block size.

    Raises
    ------
    ArgumentError
        A field is out of its range; a ValueError and a RuntimeError.
    TypeError
        A field has a type it cannot have.

    Examples
    --------
    >>> CParams(codec=1, filters=[Filter.BITSHUFFLE]).codec
    <Codec.LZ4: 1>

    """

    codec: Codec | int = Codec.ZSTD
    codec_meta: int = 0
    clevel: int = 5
    use_dict: bool = False
    typesize: int = 8
    nthreads: int = field(default_factory=default_nthreads)
    blocksize: int = 0
    splitmode: SplitMode | int = SplitMode.AUTO_SPLIT
    filters: Sequence[Filter | int] = field(default_factory=lambda: _UNASKED)
    filters_meta: Sequence[int] = field(default_factory=lambda: _NO_METAS)
    tuner: Tuner | int = Tuner.STUNE

    if TYPE_CHECKING:  # what is taken is more than what is kept: names and numbers become members

        def __init__(
            self,
            codec: Codec | int | str = Codec.ZSTD,
            codec_meta: int = 0,
            clevel: int = 5,
            use_dict: bool = False,
            typesize: int = 8,
            nthreads: int = ...,
            blocksize: int = 0,
            splitmode: SplitMode | int | str = SplitMode.AUTO_SPLIT,
            filters: Sequence[Filter | int | str] = ...,
            filters_meta: Sequence[int] = ...,
            tuner: Tuner | int | str = Tuner.STUNE,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check every field and replace names and numbers by members; the lists become read-only copies."""
        checked: dict[str, object] = {
            "codec": _member(Codec, "codec", self.codec, 0, _BYTE),
            "codec_meta": _integer("codec_meta", self.codec_meta, -128, _BYTE),
            "clevel": _integer("clevel", self.clevel, 0, 9),
            "use_dict": as_flag("use_dict", self.use_dict),
            "typesize": _integer("typesize", self.typesize, 1, MAX_TYPESIZE),
            "nthreads": _integer("nthreads", self.nthreads, 1, MAX_NTHREADS),
            "blocksize": _integer("blocksize", self.blocksize, 0, MAX_BLOCKSIZE),
            "splitmode": SplitMode(_member(SplitMode, "splitmode", self.splitmode, 1, 4)),
            "tuner": _member(Tuner, "tuner", self.tuner, 0, _BYTE),
        }
        plain = isinstance(self.filters, _Unasked) and checked["codec"] in _OF_NUMBERS
        given = [Filter.NOFILTER] * NFILTERS if plain else _listed("filters", self.filters)
        filters = [
            f if type(f) is Filter else _member(Filter, f"filters[{i}]", f, 0, _BYTE) for i, f in enumerate(given)
        ]
        meta = [
            m if type(m) is int and 0 <= m <= _BYTE else _integer(f"filters_meta[{i}]", m, -128, _BYTE)
            for i, m in enumerate(_listed("filters_meta", self.filters_meta))
        ]
        if len(filters) > NFILTERS:
            msg = f"filters: expected at most {NFILTERS}, got {len(filters)}"
            raise ArgumentError(msg)
        if len(filters) > len(meta):
            msg = f"filters_meta: expected {len(filters)} numbers, one per filter, got {len(meta)}"
            raise ArgumentError(msg)
        streams = self.typesize if self.typesize <= MAX_HEADER_TYPESIZE else 0
        checked["filters"] = ReadOnlyList(filters)
        checked["filters_meta"] = ReadOnlyList(
            streams if f is Filter.BYTEDELTA and m == 0 else m for f, m in zip(filters, meta, strict=False)
        )
        for name, value in checked.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class DParams:
    """How to decompress.

    Parameters
    ----------
    nthreads
        Threads that decompress, from 1.

    Raises
    ------
    ArgumentError
        `nthreads` is out of its range.

    """

    nthreads: int = field(default_factory=default_nthreads)

    def __post_init__(self) -> None:
        """Check the field."""
        object.__setattr__(self, "nthreads", _integer("nthreads", self.nthreads, 1, MAX_NTHREADS))


MODES: Final = ("r", "a", "w")
_MODE_ALIASES: Final = {"r+": "a"}
MMAP_MODES: Final = {"r": "r", "r+": "a", "w+": "w", "c": "a"}
"""mmap mode -> the mode that matches it."""
SyncLevel = Literal["never", "explicit", "commit"]
SYNC_LEVELS: Final = ("never", "explicit", "commit")
"""When to wait for the disk: not at all; for `flush` and transactions; for each commit."""


def local_path(urlpath: object) -> str | None:
    """Return a path or ``file://`` URL as a plain path, None as None.

    Raises
    ------
    TypeError
        `urlpath` is neither str, bytes nor path-like.
    ArgumentError
        It is empty, no path that the system takes (a NUL, a lone surrogate), or a URL of another scheme or of
        another machine; a ValueError.

    """
    if urlpath is None:
        return None
    path = os.fspath(urlpath)  # type: ignore[call-overload]
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    path = str(path) if "://" not in path else _path_of_url(path)
    if not path:
        msg = "urlpath: expected a path, got an empty one; None stands for a container in memory"
        raise ArgumentError(msg)
    if "\0" in path:
        msg = f"urlpath: expected a path without NUL bytes, got {path!r}"
        raise ArgumentError(msg)
    if not path.isascii():
        try:
            os.fsencode(path)
        except UnicodeError as error:
            msg = f"urlpath: expected a path that the system can encode, got {path!r} ({error.reason})"  # type: ignore[attr-defined]
            raise ArgumentError(msg) from None
    return path


def _path_of_url(url: str) -> str:
    """Return the path that a ``file://`` URL names on this machine."""
    from urllib.parse import unquote, urlsplit  # few paths are URLs

    try:
        parts = urlsplit(url)
    except ValueError as error:
        msg = f"urlpath: {url!r} is no URL: {error}"
        raise ArgumentError(msg) from None
    if parts.scheme != "file":
        msg = f"urlpath: {url!r} is a URL of scheme {parts.scheme!r}; only local paths and file:// are supported"
        raise ArgumentError(msg)
    if parts.netloc not in ("", "localhost"):
        msg = (
            f"urlpath: {url!r} names the host {parts.netloc!r}; expected file:///PATH with three slashes, "
            "an absolute path on this machine"
        )
        raise ArgumentError(msg)
    if parts.query or parts.fragment:
        msg = f"urlpath: {url!r} has a query or a fragment; write ? as %3F and # as %23 if they belong to the path"
        raise ArgumentError(msg)
    return unquote(parts.path)


def absolute_path(path: str) -> str:
    """Return `path` from the root, so that it leads to the same place from every working directory.

    Symbolic links stay, except before a ``..``, which leads to the parent of what the link leads to.

    Raises
    ------
    StorageError
        The working directory is gone.

    """
    if path.startswith("/") and "/." not in path and "//" not in path and not path.endswith("/"):
        return path
    if not os.path.isabs(path):
        try:
            path = os.path.join(os.getcwd(), path)
        except OSError as error:
            raise StorageError(error.errno or errno.ENOENT, "the working directory is gone", path) from error
    before, dots, after = f"{path}/".rpartition("/../")
    if dots:
        path = os.path.join(os.path.realpath(f"{before}/.."), after)
    return os.path.normpath(path)


def checked_mode(mode: object) -> str:
    """Return a mode that was given as "r", "a" or "w"; "r+", as files have it, is "a".

    Raises
    ------
    ArgumentError
        It is none of these; a ValueError.

    """
    if mode in MODES:
        return str(mode)
    if isinstance(mode, str) and mode in _MODE_ALIASES:
        return _MODE_ALIASES[mode]
    msg = f"mode: expected one of {MODES}, got {mode!r}"
    raise ArgumentError(msg)


@dataclass(frozen=True, slots=True)
class Storage:
    """Where a container lives.

    Parameters
    ----------
    contiguous
        True: one frame. False with a `urlpath`: a sparse frame, a directory with a file
        for each chunk. None, the default: True with a `urlpath`, else False.
    urlpath
        A file, or the directory of a sparse frame, as str, path or ``file://`` URL; None: in memory.
    mode
        ``"r"`` read, ``"a"`` read and write (make it if it is absent), ``"w"``
        make a new one.
    mmap_mode
        ``"r"``, ``"r+"``, ``"w+"`` or ``"c"``; overrules `mode`. See `SChunk`.
    initial_mapping_size
        Bytes; taken and kept for compatibility, as nothing is mapped.
    locking
        Take part in the lock protocol between processes.
    meta
        Fixed metalayers: name to value.
    sync
        When to wait for the disk: ``"explicit"``, for `flush` and transactions;
        ``"commit"``, for each commit; ``"never"``.
    seal
        Write checksums: a seal behind each chunk, a fingerprint, commit records.
    compact_above
        Compact when the handle is closed, if more than this share of the bytes on the disk,
        0 to 1, is dead; None: never.

    Raises
    ------
    ValueError
        `mode`, `mmap_mode` or `sync` is not one of the above, or `urlpath` is empty, no path, or a URL that
        is not of a local file.

    """

    contiguous: bool | None = None
    urlpath: str | os.PathLike[str] | None = None
    mode: str = "a"
    mmap_mode: str | None = None
    initial_mapping_size: int | None = None
    locking: bool = False
    meta: Mapping[str | bytes, object] | None = None
    sync: SyncLevel = "explicit"
    seal: bool = True
    compact_above: float | None = None

    def __post_init__(self) -> None:
        """Check every field and fill in what follows from others."""
        mode, locking = self.mode, self.locking
        if mode is None:
            mode = _replaced_none("mode", "a")
        if locking is None:
            locking = _replaced_none("locking", default=False)
        mode = checked_mode(mode)
        if self.mmap_mode is not None and self.mmap_mode not in MMAP_MODES:
            msg = f"mmap_mode: expected one of {tuple(MMAP_MODES)} or None, got {self.mmap_mode!r}"
            raise ValueError(msg)
        if self.sync not in SYNC_LEVELS:
            msg = f"sync: expected one of {SYNC_LEVELS}, got {self.sync!r}"
            raise ValueError(msg)
        _check_share("compact_above", self.compact_above)
        if self.meta is not None and not isinstance(self.meta, Mapping):
            msg = f"meta: expected a dict of names and values, got {self.meta!r}"
            raise TypeError(msg)
        size = self.initial_mapping_size
        path = local_path(self.urlpath)
        checked = {
            "contiguous": path is not None if self.contiguous is None else as_flag("contiguous", self.contiguous),
            "urlpath": path,
            "mode": mode,
            "initial_mapping_size": None if size is None else _integer("initial_mapping_size", size, 1, 2**63 - 1),
            "locking": as_flag("locking", locking),
            "meta": None if self.meta is None else dict(self.meta),
            "seal": as_flag("seal", self.seal),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)


def _check_share(name: str, value: object) -> None:
    if value is None:
        return
    msg = f"{name}: expected None or a share from 0 to 1, got {value!r}"
    if not isinstance(value, Real):
        raise TypeError(msg)
    if not 0 <= float(value) <= 1:
        raise ArgumentError(msg)


_D = TypeVar("_D", str, bool)


def _replaced_none(name: str, default: _D) -> _D:
    warnings.warn(f"Storage: {name}=None is replaced by {default!r}", stacklevel=4)
    return default


class CParamsDict(TypedDict, total=False):
    """The fields of `CParams`, for dicts and keyword arguments."""

    codec: Codec | int | str
    codec_meta: int
    clevel: int
    use_dict: bool
    typesize: int
    nthreads: int
    blocksize: int
    splitmode: SplitMode | int | str
    filters: Sequence[Filter | int | str]
    filters_meta: Sequence[int]
    tuner: Tuner | int | str


class Compress2Dict(CParamsDict, total=False):
    """The keywords of `compress2`."""

    filter: Filter | str


class DParamsDict(TypedDict, total=False):
    """The fields of `DParams`, for dicts and keyword arguments."""

    nthreads: int


class StorageDict(TypedDict, total=False):
    """The fields of `Storage`, for dicts and keyword arguments."""

    contiguous: bool | None
    urlpath: str | os.PathLike[str] | None
    mode: str
    mmap_mode: str | None
    initial_mapping_size: int | None
    locking: bool
    meta: Mapping[str | bytes, object] | None
    sync: SyncLevel
    seal: bool
    compact_above: float | None


_P = TypeVar("_P", CParams, DParams, Storage)


def from_fields(kind: type[_P], given: Mapping[str, Any]) -> _P:
    """Return a parameter object from a mapping of its fields.

    Raises
    ------
    TypeError
        A key is not a field; the message names both.

    """
    names = kind.__match_args__
    if not isinstance(given, Mapping):
        msg = f"{kind.__name__}: expected one, or a dict of its fields, got {given!r}"
        raise TypeError(msg)
    for key in given:
        if key not in names:
            msg = f"{kind.__name__}: unknown field {key!r}; the fields are {', '.join(names)}"
            raise TypeError(msg)
    return kind(**given)


def as_cparams(value: CParams | Mapping[str, Any] | None, typesize: int) -> CParams:
    """Return `value` as a `CParams`; `typesize` where neither an object nor a dict names one."""
    if isinstance(value, CParams):
        return value
    if value is not None and not isinstance(value, Mapping):
        msg = f"cparams: expected a CParams, a dict of its fields or None, got {type(value).__name__}"
        raise TypeError(msg)
    changed = changed_defaults()
    if not value and not changed:
        return _default_cparams(typesize, _default_nthreads)
    return from_fields(CParams, {"typesize": typesize, **changed, **(value or {})})


@lru_cache(maxsize=16)
def _default_cparams(typesize: int, nthreads: int) -> CParams:
    """Return the parameters of those who name none, kept."""
    return CParams(typesize=typesize, nthreads=nthreads)


def as_dparams(value: DParams | Mapping[str, Any] | None) -> DParams:
    """Return `value` as a `DParams`."""
    if isinstance(value, DParams):
        return value
    if value is None:
        value = {}
    if not isinstance(value, Mapping):
        msg = f"dparams: expected a DParams, a dict of its fields or None, got {type(value).__name__}"
        raise TypeError(msg)
    if dparams_dflts != _usual_dparams:
        value = {**dparams_dflts, **value}
    return from_fields(DParams, value) if value else _default_dparams(_default_nthreads)


_default_dparams: Final = lru_cache(maxsize=1)(DParams)
"""The same for all who ask for no other number of threads."""


def _plain_fields(params: CParams | DParams) -> dict[str, Any]:
    """Return the fields of parameters, with lists that can be changed."""
    values = {name: getattr(params, name) for name in params.__match_args__}
    return {name: [*value] if isinstance(value, list) else value for name, value in values.items()}


def changed_defaults() -> dict[str, Any]:
    """Return what the user has changed in `cparams_dflts`; the typesize is the data's in any case."""
    if cparams_dflts == _usual_cparams:
        return {}
    return {
        name: value
        for name, value in cparams_dflts.items()
        if name != "typesize" and (name not in _usual_cparams or value != _usual_cparams[name])
    }


class _StorageDefaults(dict[str, Any]):
    """The defaults of `Storage`, which cannot be changed."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        msg = "storage_dflts: where containers live has fixed defaults; pass storage= or its fields to the call"
        raise TypeError(msg)

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse


_usual_cparams: Final = _plain_fields(CParams())
_usual_dparams: Final = _plain_fields(DParams())
cparams_dflts: dict[str, Any] = _plain_fields(CParams())
"""The defaults where no `CParams` is given, or a dict of some fields; what is assigned here holds from then on.

As in python-blosc2 neither ``CParams()`` itself nor open containers go by it.
"""
dparams_dflts: dict[str, Any] = _plain_fields(DParams())
"""The same for `DParams`."""
storage_dflts: dict[str, Any] = _StorageDefaults(asdict(Storage()))
"""The defaults of `Storage`, to look at."""
