"""What a SChunk says of itself: sizes, place, parameters, metalayers, and how that is shown.

Parameters can be assigned, for what is written or read from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superchunk._display.info import ratio, size
from superchunk._encoding import settings_of
from superchunk._life import LifeCalls
from superchunk._opening import is_array
from superchunk._user import check_available
from superchunk._writing import Encoder, with_typesize
from superchunk.params import CParams, DParams, number_of

if TYPE_CHECKING:
    from superchunk.meta import Meta, VlMeta

__all__ = ["FactCalls", "check_usable"]


class FactCalls(LifeCalls):
    """What a handle knows of its container, and of itself."""

    __slots__ = ()

    @property
    def chunksize(self) -> int:
        """Bytes of a full chunk; 0 once chunks differ in size."""
        store = self._handle.fresh()
        return store.told(lambda: store.chunksize)

    @property
    def chunkshape(self) -> int:
        """Items of a full chunk."""
        return self.chunksize // self._typesize

    @property
    def blocksize(self) -> int:
        """Bytes of a block; 0 unless it was asked for."""
        return self._handle.fresh().settings.blocksize

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        store = self._handle.fresh()
        return store.told(lambda: store.nchunks)

    @property
    def nbytes(self) -> int:
        """Bytes of all items."""
        store = self._handle.fresh()
        return store.told(lambda: store.nbytes)

    @property
    def cbytes(self) -> int:
        """Bytes of all compressed chunks; 32 for a special value that is not stored."""
        store = self._handle.fresh()
        return store.told(lambda: store.cbytes)

    @property
    def dead_bytes(self) -> int:
        """Bytes of the file that nothing refers to any more; 0 in memory."""
        return self._handle.fresh().dead_bytes

    @property
    def cratio(self) -> float:
        """``nbytes / cbytes``; 0.0 when empty."""
        cbytes = self.cbytes
        return self.nbytes / cbytes if cbytes else 0.0

    @property
    def typesize(self) -> int:
        """Bytes of an item."""
        return self._typesize

    @property
    def urlpath(self) -> str | None:
        """The file, None in memory."""
        return self._handle.urlpath

    @property
    def contiguous(self) -> bool:
        """Whether the chunks are in one frame."""
        return self._handle.contiguous

    @property
    def mode(self) -> str:
        """``"r"``, ``"a"`` or ``"w"``, as opened."""
        return self._handle.options.mode

    @property
    def mmap_mode(self) -> str | None:
        """The mmap mode, as opened."""
        return self._handle.options.mmap_mode

    @property
    def initial_mapping_size(self) -> int | None:
        """As given; nothing is mapped."""
        return self._handle.options.initial_mapping_size

    @property
    def locking(self) -> bool:
        """Whether the handle takes part in C-Blosc2's lock protocol."""
        return self._handle.options.locking

    @property
    def change_tick(self) -> int:
        """Grows when the handle notices another handle's change; 0 in memory."""
        return self._handle.opened().change_tick

    @property
    def cparams(self) -> CParams:
        """How this handle compresses.

        Assign a `CParams` to change it for what is written from now on. Once there is
        data, and in an array, its `typesize` and `blocksize` stay what they are.
        """
        return self._encoder.cparams

    @cparams.setter
    def cparams(self, cparams: CParams) -> None:
        if not isinstance(cparams, CParams):
            msg = f"cparams: expected a CParams, got {type(cparams).__name__}"
            raise AttributeError(msg)  # noqa: TRY004  (what users know)
        store = self._handle.fresh()
        current = self._encoder.cparams
        if store.nchunks or self._handle.options.mode == "r" or is_array(store):
            cparams = with_typesize(cparams, current.typesize, current.blocksize)
        check_usable(cparams, self._dparams)
        encoder = Encoder(cparams, self._user)
        encoder.check()
        encoder.prefilter = self._encoder.prefilter
        if self._handle.options.mode != "r":
            store.settings = settings_of(cparams, self._nthreads)
            self._typesize = store.settings.typesize
        self._coder = encoder

    @property
    def dparams(self) -> DParams:
        """How this handle decompresses; assign a `DParams` to change it."""
        return self._dparams

    @dparams.setter
    def dparams(self, dparams: DParams) -> None:
        if not isinstance(dparams, DParams):
            msg = f"dparams: expected a DParams, got {type(dparams).__name__}"
            raise AttributeError(msg)  # noqa: TRY004  (what users know)
        check_usable(self._encoder.cparams, dparams)
        self._dparams = dparams
        self._nthreads = dparams.nthreads

    @property
    def meta(self) -> Meta:
        """The fixed metalayers, a mapping."""
        if self._meta is None:
            from superchunk.meta import Meta  # noqa: PLC0415  (brings msgpack, which reading data does without)

            self._meta = Meta(self._handle)
        return self._meta

    @property
    def vlmeta(self) -> VlMeta:
        """The variable metalayers, a mutable mapping; the same object at each access."""
        if self._vlmeta is None:
            from superchunk.meta import VlMeta  # noqa: PLC0415  (as above)

            self._vlmeta = VlMeta(self._handle)
        return self._vlmeta

    @property
    def attrs(self) -> VlMeta:
        """The same as `vlmeta`."""
        return self.vlmeta

    @property
    def info_items(self) -> list[tuple[str, object]]:
        """The pairs of name and value that `info` shows."""
        return [
            ("type", type(self).__name__),
            ("chunksize", self.chunksize),
            ("blocksize", self.blocksize),
            ("typesize", self.typesize),
            ("nbytes", size(self.nbytes)),
            ("cbytes", size(self.cbytes)),
            ("cratio", ratio(self.cratio)),
            ("cparams", self.cparams),
            ("dparams", self.dparams),
        ]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: sizes, codec, and how well the chunks are compressed."""
        from superchunk._display.card import schunk_card  # noqa: PLC0415  (only notebooks draw it)

        return schunk_card(self)  # type: ignore[arg-type]  # SChunk is the only subclass made


def check_usable(cparams: CParams, dparams: DParams) -> None:
    """Raise what compressing with these would raise later."""
    nthreads = max(cparams.nthreads, dparams.nthreads)
    check_available(number_of(cparams.codec), bytes(number_of(f) for f in cparams.filters), nthreads)
