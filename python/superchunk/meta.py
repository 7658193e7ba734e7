"""The user's two mappings of named values: `.meta` and `.vlmeta`.

`.meta` are the fixed metalayers, made with the container, in the frame's header;
their size can never change. `.vlmeta` are the variable ones, in the trailer, each
compressed as a chunk of its own. Values are MessagePack; `raw` and `set_raw` give
the bytes beneath, for values that somebody else packed.

Neither packs (`superchunk._format.metalayer_values` does) nor stores (the `ChunkStore` does).

Source: docs/format/metalayers.md.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final

from superchunk import _engine
from superchunk._codec.buffers import byte_view
from superchunk._format import metalayer_values as values
from superchunk._format.b2nd import LAYERS, ArrayLayout
from superchunk.exceptions import MetalayerKeyError, MetalayerValueError, UnsafeDeserializationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from superchunk._codec.buffers import AnyBuffer
    from superchunk._schunk.handle import Handle

__all__ = ["MAX_META", "MAX_NAME_LEN", "MAX_VLMETA", "MAX_VLMETA_FRAME", "Meta", "VlMeta"]

MAX_NAME_LEN: Final = 31
"""Bytes of UTF-8 in a name, at most."""
MAX_META: Final = 16
"""Fixed metalayers of a container, at most."""
MAX_VLMETA_FRAME: Final = 16
"""Variable metalayers of a frame: C-Blosc2 destroys a frame with more when it changes it."""
MAX_VLMETA: Final = 8192
"""Variable metalayers in memory, outside of a frame."""

_SIXTEEN: Final = b"\x10\xa0"
"""Dimensions of an array's layer whose array markers are none in MessagePack (docs/format/b2nd.md)."""
_TRUSTED_NBYTES: Final = 2**26
"""Bytes that a value may unpack to whatever its stored size."""
_TRUSTED_RATIO: Final = 1024
"""Bytes beyond that, per compressed byte."""


def checked_name(name: object) -> str:
    """Return a metalayer's name as str.

    Raises
    ------
    TypeError
        It is neither str nor bytes.
    MetalayerValueError
        It is over 31 bytes long.

    """
    if isinstance(name, bytes):
        name = name.decode("utf-8", "surrogateescape")
    if not isinstance(name, str):
        msg = f"metalayer name: expected str or bytes, got {type(name).__name__}"
        raise TypeError(msg)
    size = len(name.encode("utf-8", "surrogateescape"))
    if size > MAX_NAME_LEN:
        msg = f"metalayer name {name!r}: expected at most {MAX_NAME_LEN} bytes, got {size}"
        raise MetalayerValueError(msg)
    return name


def _key(name: object) -> str:
    """Return a name to look up, which need not be one that could be stored."""
    if isinstance(name, bytes):
        return name.decode("utf-8", "surrogateescape")
    if not isinstance(name, str):
        msg = f"metalayer name: expected str or bytes, got {type(name).__name__}"
        raise TypeError(msg)
    return name


def _is_everything(key: object) -> bool:
    """Return whether `key` is ``[:]``; refuse other slices."""
    if not isinstance(key, slice):
        return False
    if (key.start, key.stop, key.step) != (None, None, None):
        msg = "metalayers: the only slice is [:]"
        raise NotImplementedError(msg)
    return True


def pack_meta(meta: Mapping[str | bytes, object] | None) -> dict[str, bytes]:
    """Return fixed metalayers as a header takes them.

    Raises
    ------
    MetalayerValueError
        There are over 16, or a name is too long.
    TypeError
        A value cannot be packed.

    """
    given = meta or {}
    if len(given) > MAX_META:
        msg = f"meta: expected at most {MAX_META} metalayers, got {len(given)}"
        raise MetalayerValueError(msg)
    return {checked_name(name): values.pack(value, extensions=False) for name, value in given.items()}


class Meta(Mapping[str, Any]):
    """The fixed metalayers: a mapping whose values can be replaced, not added.

    Parameters
    ----------
    handle
        What the owner's store and rights are.

    """

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def _meta(self) -> Mapping[str, bytes]:
        store = self._handle.refreshed_store()
        return store.in_one_state(lambda chunks: chunks.meta)

    def raw(self, name: str | bytes) -> bytes:
        """Return the bytes of a metalayer as they stand in the header.

        Raises
        ------
        MetalayerKeyError
            There is none of that name; a KeyError.

        """
        layers = self._meta()
        try:
            return layers[_key(name)]
        except KeyError:
            msg = f"meta: no metalayer {name!r}, there are {sorted(layers)}"
            raise MetalayerKeyError(msg) from None

    def set_raw(self, name: str | bytes, content: AnyBuffer) -> None:
        """Replace the bytes of a metalayer by as many others, in place.

        Raises
        ------
        ReadOnlyError
            The handle may only read; a ValueError.
        MetalayerKeyError
            There is no such metalayer: they are made with the container.
        MetalayerValueError
            The length differs.

        """
        store = self._handle.writable_store()
        old = self.raw(name)
        new = bytes(byte_view(content, "content"))
        if len(new) != len(old):
            msg = f"meta[{name!r}]: expected {len(old)} bytes packed, its length cannot change, got {len(new)}"
            raise MetalayerValueError(msg)
        store.set_meta(_key(name), new)

    def __getitem__(self, name: Any) -> Any:
        """Return one value, or with ``[:]`` a dict of all."""
        if _is_everything(name):
            return self.getall()
        return self._value(_key(name), self.raw(name))

    def _value(self, name: str, content: bytes) -> Any:
        """Return what the bytes of a metalayer mean."""
        if name in LAYERS and content[2:4] == _SIXTEEN:
            layout = ArrayLayout.from_bytes(content)
            lengths = [list(numbers) for numbers in (layout.shape, layout.chunks, layout.blocks)]
            return [content[1], layout.ndim, *lengths, layout.dtype_format, layout.dtype_text]
        return values.unpack(content, extensions=False)

    def __setitem__(self, name: str | bytes, value: object) -> None:
        """Replace a value by one whose packed length is the same."""
        self._handle.writable_store()
        self.raw(name)
        self.set_raw(name, values.pack(value, extensions=False))

    def __delitem__(self, name: str | bytes) -> None:
        """Refuse: a fixed metalayer stays."""
        msg = f"meta: fixed metalayers cannot be removed, {name!r} neither"
        raise NotImplementedError(msg)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a metalayer of that name."""
        return isinstance(name, (str, bytes)) and _key(name) in self._meta()

    def get(self, name: object, default: Any = None) -> Any:
        """Return a value, `default` if there is none of that name."""
        return super().get(_key(name), default) if isinstance(name, (str, bytes)) else default

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the order of the header."""
        return iter(list(self._meta()))

    def __len__(self) -> int:
        """Return the number of metalayers."""
        return len(self._meta())

    def keys(self) -> list[str]:  # type: ignore[override]  # a list, as users know it
        """Return the names."""
        return list(self)

    def items(self) -> Any:
        """Refuse, as python-blosc2 does: use ``meta[:].items()``."""
        msg = "meta: use meta[:].items()"
        raise NotImplementedError(msg)

    def values(self) -> Any:
        """Refuse, as python-blosc2 does: use ``meta[:].values()``."""
        msg = "meta: use meta[:].values()"
        raise NotImplementedError(msg)

    def getall(self) -> dict[str, Any]:
        """Return all names and values."""
        return {name: self._value(name, content) for name, content in self._meta().items()}

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is a mapping of the same names and values."""
        if not isinstance(other, Mapping):
            return NotImplemented
        return self.getall() == (other.getall() if isinstance(other, Meta) else dict(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return the text of the dict."""
        return repr(self.getall())


class VlMeta(MutableMapping[str, Any]):
    """The variable metalayers: a mutable mapping of named values.

    A change is on disk when the assignment returns. It keeps what it needs of its
    owner alive.

    Parameters
    ----------
    handle
        What the owner's store and rights are.

    Examples
    --------
    >>> from superchunk import SChunk
    >>> s = SChunk()
    >>> s.vlmeta["range"] = (0, 4.5)
    >>> s.vlmeta[:]
    {'range': (0, 4.5)}

    """

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def mode(self) -> str:
        """The owner's mode."""
        return self._handle.options.mode

    @property
    def urlpath(self) -> str | None:
        """The owner's path."""
        return self._handle.urlpath

    @property
    def mmap_mode(self) -> str | None:
        """The owner's mmap mode."""
        return self._handle.options.mmap_mode

    @property
    def initial_mapping_size(self) -> int | None:
        """The owner's, as given; nothing is mapped."""
        return self._handle.options.initial_mapping_size

    @property
    def locking(self) -> bool:
        """Whether the owner takes part in the lock protocol."""
        return self._handle.options.locking

    def _vlmeta(self) -> Mapping[str, bytes]:
        store = self._handle.refreshed_store()
        return store.in_one_state(lambda chunks: chunks.vlmeta)

    def raw(self, name: str | bytes) -> bytes:
        """Return the bytes of a metalayer, decompressed but not unpacked.

        Raises
        ------
        MetalayerKeyError
            There is none of that name; a KeyError.
        MetalayerValueError
            It claims to be far larger than its chunk can be expected to hold.
        FormatError
            Its chunk is damaged.

        """
        return _content(self._vlmeta(), name)

    def set_raw(self, name: str | bytes, content: AnyBuffer) -> None:
        """Store bytes that are packed already, under a new or an old name.

        Raises
        ------
        ReadOnlyError
            The handle may only read; a ValueError.
        MetalayerValueError
            The name is over 31 bytes, or there are as many metalayers as there can be.

        """
        store = self._handle.writable_store()
        checked = checked_name(name)
        layers = store.vlmeta
        limit, kind = (
            (MAX_VLMETA_FRAME, "frame")
            if self._handle.contiguous or self._handle.urlpath
            else (MAX_VLMETA, "super-chunk")
        )
        if checked not in layers and len(layers) >= limit:
            why = ", because C-Blosc2 destroys a frame with more when it changes it" if kind == "frame" else ""
            msg = f"vlmeta: expected at most {limit} metalayers in a {kind}{why}; {checked!r} would be one more"
            raise MetalayerValueError(msg)
        store.set_vlmeta(checked, _compressed(content))

    def __getitem__(self, name: Any) -> Any:
        """Return one value, or with ``[:]`` a dict of all."""
        if _is_everything(name):
            return self.getall()
        return self._value(self._vlmeta(), name)

    def _value(self, layers: Mapping[str, bytes], name: str | bytes) -> Any:
        """Return what a metalayer among `layers` means."""
        hook = _read_frame if self._handle.options.deserialize == "full" else None
        return values.unpack(_content(layers, name), hook=hook)

    def __setitem__(self, name: str | bytes | slice, value: object) -> None:
        """Store a value; ``vlmeta[:] = mapping`` is ``update(mapping)``."""
        if _is_everything(name):
            self.update(value)  # type: ignore[call-overload]
            return
        self._handle.writable_store()
        checked = checked_name(name)
        self.set_raw(checked, values.pack(value, default=_write_frame))

    def __delitem__(self, name: str | bytes) -> None:
        """Remove a value."""
        store = self._handle.writable_store()
        if _key(name) not in store.vlmeta:
            msg = f"vlmeta: no metalayer {name!r}"
            raise MetalayerKeyError(msg)
        store.del_vlmeta(_key(name))

    def __contains__(self, name: object) -> bool:
        """Return whether there is a metalayer of that name."""
        return isinstance(name, (str, bytes)) and _key(name) in self._vlmeta()

    def get(self, name: object, default: Any = None) -> Any:
        """Return a value, `default` if there is none of that name."""
        return super().get(_key(name), default) if isinstance(name, (str, bytes)) else default

    def get_names(self) -> list[str]:
        """Return the names, in the order they were added; python-blosc2's name for ``list(vlmeta)``."""
        return list(self)

    def get_vlmeta(self, name: str | bytes) -> bytes:
        """Return the packed bytes of a metalayer; python-blosc2's name for `raw`.

        Raises
        ------
        MetalayerKeyError, MetalayerValueError, FormatError
            As for `raw`.

        """
        return self.raw(name)

    def nvlmetalayers(self) -> int:
        """Return the number of metalayers; python-blosc2's name for ``len(vlmeta)``."""
        return len(self)

    def set_vlmeta(self, name: str | bytes, content: AnyBuffer) -> None:
        """Store packed bytes under a new or an old name; python-blosc2's name for `set_raw`.

        Raises
        ------
        ReadOnlyError, MetalayerValueError
            As for `set_raw`.

        """
        self.set_raw(name, content)

    def del_vlmeta(self, name: str | bytes) -> None:
        """Remove a metalayer; python-blosc2's name for ``del vlmeta[name]``.

        Raises
        ------
        ReadOnlyError
            The handle may only read; a ValueError.
        MetalayerKeyError
            There is none of that name; a KeyError.

        """
        del self[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the order they were added."""
        return iter(list(self._vlmeta()))

    def __len__(self) -> int:
        """Return the number of metalayers."""
        return len(self._vlmeta())

    def clear(self) -> None:
        """Remove all values, whether they can be read or not."""
        store = self._handle.writable_store()
        with store.batch():
            for name in list(store.vlmeta):
                store.del_vlmeta(name)

    def getall(self) -> dict[str, Any]:
        """Return all names and values."""
        layers = self._vlmeta()
        return {name: self._value(layers, name) for name in layers}

    def to_dict(self) -> dict[bytes, Any]:
        """Return all values by their names as bytes."""
        return {name.encode("utf-8", "surrogateescape"): value for name, value in self.getall().items()}

    def __repr__(self) -> str:
        """Return the text of the dict."""
        return repr(self.getall())


def _content(layers: Mapping[str, bytes], name: str | bytes) -> bytes:
    """Return the decompressed bytes of a vlmetalayer."""
    try:
        chunk = layers[_key(name)]
    except KeyError:
        msg = f"vlmeta: no metalayer {name!r}"
        raise MetalayerKeyError(msg) from None
    nbytes = _engine.describe(chunk).nbytes
    if nbytes > _most_unpacked(len(chunk)):
        msg = (
            f"vlmeta[{name!r}]: its chunk of {len(chunk)} bytes claims to hold {nbytes}, "
            f"expected at most {_most_unpacked(len(chunk))}"
        )
        raise MetalayerValueError(msg)
    return _engine.decompress(chunk)


def _write_frame(value: object) -> tuple[int, bytes] | None:
    """Return a container as the extension value of its frame, None for other objects."""
    to_cframe = getattr(value, "to_cframe", None)
    return None if to_cframe is None else (values.EXT_FRAME, to_cframe())


def _read_frame(code: int, payload: bytes) -> object:
    """Return the container that an extension value holds.

    That is a SChunk, or an NDArray if the frame holds one. Its own metadata is read
    "safe", so that frames within frames end here.
    """
    if code != values.EXT_FRAME:
        msg = f"extension value {code}: references to objects elsewhere are not followed"
        raise UnsafeDeserializationError(msg)
    import superchunk  # the entry points are above this layer

    return superchunk.from_cframe(payload)


def _most_unpacked(cbytes: int) -> int:
    """Return how many bytes a chunk of `cbytes` may be trusted to hold."""
    return _TRUSTED_NBYTES + _TRUSTED_RATIO * cbytes


def _compressed(content: AnyBuffer) -> bytes:
    """Return a value as the chunk that goes into the trailer."""
    raw = bytes(byte_view(content, "content"))
    chunk = _engine.compress(raw, _engine.EncodeParams(codec=5, clevel=5, typesize=1))
    if len(raw) > _most_unpacked(len(chunk)):  # what we write, we must be willing to read
        chunk = _engine.compress(raw, _engine.EncodeParams(codec=5, clevel=0, typesize=1))
    return chunk
