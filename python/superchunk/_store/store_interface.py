"""The interface between a super-chunk and the place where its chunks are.

::

    ChunkList      one state: sizes, metalayers, where chunks are
    ChunkSource    what a handle adds: it follows changes, and reads of one state (`read_consistent`)
    ChunkStore     what writing adds: changes of chunks and metalayers, batches, commits

A store of another kind, such as one of objects, implements these. Today there are `MemoryStore`, and
`FrameStore` for a frame in a file or a directory; the list of both is a `ChunkTable`.

A store is a list of chunks with two kinds of metalayers and the parameters for new chunks. It moves chunks as they
are: it never compresses or decodes data, and knows nothing about items.

Source: docs/format/cframe.md, "Fields" and "Variable chunk sizes".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, Self, TypeVar

from superchunk._format.frame_index import MAX_CHUNKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from typing_extensions import Buffer

    from superchunk._engine import Box, Request, Source
    from superchunk._format.frame_index import Index

__all__ = ["ChunkList", "ChunkSource", "ChunkStore", "FrameSettings", "Snapshot"]

P = ParamSpec("P")
T = TypeVar("T")

_MAX_INT32 = 2**31 - 1
_SLOTS = 6


class _Fields(NamedTuple):
    """What `FrameSettings` say, not checked."""

    typesize: int = 8
    """Bytes of an item."""
    blocksize: int = 0
    """Bytes of a block as requested, 0 automatic."""
    codec: int = 5
    """Codec id."""
    codec_meta: int = 0
    """The codec's parameter."""
    clevel: int = 5
    """Compression level."""
    filters: bytes = b"\0\0\0\0\0\1"
    """Six filter ids, slot 0 first."""
    filters_meta: bytes = bytes(6)
    """Their six parameters."""
    splitmode: int = 3
    """1 always, 2 never, 3 auto, 4 forward compatible."""
    use_dict: bool = False
    """Whether chunks get a dictionary."""
    nthreads_comp: int = 1
    """Threads for compression, for the record."""
    nthreads_decomp: int = 1
    """Threads for decompression, for the record."""


class FrameSettings(_Fields):
    """What a container records about chunks to come.

    Raises
    ------
    ValueError
        A number does not fit its field of a header, or there are not six filter slots.

    """

    __slots__ = ()

    def __new__(cls, **fields: Any) -> Self:
        """Check what a header has room for."""
        self = super().__new__(cls, **fields)
        _check_range("typesize", self.typesize, 1, _MAX_INT32)
        _check_range("blocksize", self.blocksize, 0, _MAX_INT32)
        _check_range("codec", self.codec, 0, 255)
        _check_range("codec_meta", self.codec_meta, 0, 255)
        _check_range("clevel", self.clevel, 0, 15)
        _check_range("splitmode", self.splitmode, 1, 4)
        _check_range("number of filters", len(self.filters), _SLOTS, _SLOTS)
        _check_range("number of filters_meta", len(self.filters_meta), _SLOTS, _SLOTS)
        return self


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name}: expected {least} to {most}, got {value}")


class Snapshot(NamedTuple):
    """The chunks that a store holds now, for another store to begin with."""

    index: Index  # type: ignore[assignment]  # in place of tuple's, which nobody asks for
    """A copy of the entries: negative ones are special chunks without stored bytes."""
    place: Callable[[int, int], Source]
    """Called with entry and chunk number of a stored chunk; returns where it is."""
    chunksize: int
    """As a header has it: 0 sizes vary, -1 not known yet."""
    seals: range | None = None
    """The entries whose chunks have seals; None: no seal proves anything."""
    most_stored: int = MAX_CHUNKS
    """How many chunks can be stored in the bytes that there are."""


class ChunkList(Protocol):
    """The chunks and metalayers of one state, for reading. All sizes are bytes."""

    @property
    def settings(self) -> FrameSettings:
        """What is recorded for new chunks; a `ChunkStore` takes others."""
        ...

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        ...

    @property
    def nbytes(self) -> int:
        """Sum of the chunks' uncompressed sizes."""
        ...

    @property
    def cbytes(self) -> int:
        """Sum of the chunks' compressed sizes; 32 for one that is only an entry."""
        ...

    @property
    def chunksize(self) -> int:
        """Size of a full chunk; 0: sizes vary, or no chunk has set it yet."""
        ...

    @property
    def vlblocks(self) -> bool:
        """Whether the chunks have variable-length blocks."""
        ...

    @property
    def meta(self) -> Mapping[str, bytes]:
        """The fixed metalayers, raw."""
        ...

    @property
    def vlmeta(self) -> Mapping[str, bytes]:
        """The vlmetalayers, each one chunk."""
        ...

    @property
    def sealed(self) -> bool:
        """Whether seals behind chunks prove something: nobody else changed the frame."""
        ...

    def source(self, nchunk: int) -> Source:
        """Return where chunk `nchunk` is; a chunk without stored bytes is made."""
        ...

    def requests(self, start: int, stop: int) -> list[Request]:
        """Return the requests that read bytes ``start:stop``, of which there is one or more, in order of the chunks."""
        ...

    def sources(self, start: int, stop: int) -> list[Source]:
        """Return where the chunks from `start` to below `stop` are."""
        ...

    def sources_for(self, nchunks: Sequence[int]) -> list[Source]:
        """Return where the chunks of these ascending numbers are."""
        ...

    def chunk_nbytes(self, nchunk: int) -> int:
        """Return the uncompressed size of chunk `nchunk`."""
        ...

    def starts(self) -> Sequence[int]:
        """Return the n + 1 prefix sums of the chunks' uncompressed sizes."""
        ...


class ChunkSource(ChunkList, Protocol):
    """A store for reading. As a list of chunks it is the one of this moment."""

    @property
    def path(self) -> str | None:
        """The file, None in memory."""
        ...

    @property
    def writable(self) -> bool:
        """Whether this handle may change anything."""
        ...

    @property
    def change_tick(self) -> int:
        """How often `refresh` has met changes made elsewhere."""
        ...

    @property
    def dead_bytes(self) -> int:
        """Bytes of the frame that nothing refers to; 0 in memory."""
        ...

    @property
    def frame_len(self) -> int:
        """Bytes of the committed frame; 0 in memory."""
        ...

    @property
    def is_mutable(self) -> bool:
        """Whether chunks may go while they are read; then `read_consistent` must be used."""
        ...

    def read_consistent(self, read: Callable[Concatenate[ChunkList, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `read`, which reads chunks, returns for the newest list of them and these arguments.

        All that `read` reads is of one state. If others change the store meanwhile, it is called again: it must
        change nothing but what it is given to fill.
        """
        ...

    def in_one_state(self, ask: Callable[[ChunkList], T]) -> T:
        """Return what `ask`, which reads no chunks, tells of the list of chunks in one state."""
        ...

    def pinned(self) -> AbstractContextManager[None]:
        """Keep the chunks where they are while the block reads, for long reads."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the chunks as they are now, without touching them."""
        ...

    def check(self, nchunk: int) -> None:
        """Compare chunk `nchunk` with its seal, if there must be one."""
        ...

    def prove(self) -> None:
        """Compare index and metadata with the frame's fingerprint, if that was put off."""
        ...

    def refresh(self) -> bool:
        """Follow changes made elsewhere, unless pinned; return whether there were any."""
        ...

    def advance(self) -> bool:
        """Follow changes made elsewhere, pinned or not; return whether there were any."""
        ...

    def read_small(
        self,
        start: int,
        stop: int,
        itemsize: int,
        out: Buffer | None = None,
        box: Box | None = None,
        layer: tuple[str, bytes] | None = None,
    ) -> bytes | None:
        """Return bytes ``start:stop``, or ``b""`` and put them into `out`, if one call can do it; else None.

        That call also finds out that nobody has changed anything; of whatever keeps it from reading, damage
        too, the general way tells. With `box`, that box of the chunk that has ``start:stop`` is put into `out`.
        With `layer`, a name and bytes, nothing is read if the fixed metalayer of that name has others.
        """
        ...

    def close(self) -> None:
        """Flush and let go; closing twice is fine."""
        ...


class ChunkStore(ChunkSource, Protocol):
    """A list of chunks with metalayers that can be changed.

    Every change happens whole or not at all. After an error the store is as it was before the call, or before the
    `batch` that the call was part of. One error comes when the change is made: that of the last wait for the disk.
    """

    @property
    def settings(self) -> FrameSettings:
        """What is recorded for new chunks; assigning records it with the next commit."""
        ...

    @settings.setter
    def settings(self, settings: FrameSettings) -> None: ...

    def holding(self) -> AbstractContextManager[None]:
        """Keep others who take turns from the container while the block runs; see their changes first."""
        ...

    def append(self, chunks: Sequence[bytes]) -> int:
        """Put complete `chunks` behind all others, wherever that is by then; return the number of chunks."""
        ...

    def insert(self, nchunk: int, chunks: Sequence[bytes]) -> int:
        """Put complete `chunks` before chunk `nchunk`, and return the number of chunks; the number before appends."""
        ...

    def replace(self, nchunk: int, chunk: bytes) -> None:
        """Put a complete `chunk` in the place of chunk `nchunk`."""
        ...

    def delete(self, nchunk: int) -> int:
        """Remove chunk `nchunk`; return the number of chunks left."""
        ...

    def reorder(self, order: Sequence[int]) -> None:
        """Put chunk ``order[i]`` at place i, for a permutation of all chunks."""
        ...

    def fill_special(self, kind: int, nbytes: int, value: bytes | None) -> None:
        """Fill an empty store with `nbytes` of special value `kind` (1 to 4)."""
        ...

    def rearrange(self, order: Sequence[int]) -> None:
        """Make chunk ``order[i]`` of now chunk i, and a chunk of zeros where that is negative; the others go."""
        ...

    def set_meta(self, name: str, content: bytes, *, at_once: bool = True) -> None:
        """Change the fixed metalayer `name`; its length must stay. It is committed at once, or as chunks are."""
        ...

    def set_vlmeta(self, name: str, chunk: bytes) -> None:
        """Add or change the vlmetalayer `name`."""
        ...

    def del_vlmeta(self, name: str) -> None:
        """Remove the vlmetalayer `name`."""
        ...

    def batch(self) -> AbstractContextManager[object]:
        """Make several changes one: all happen, or by an exception none.

        What is read inside stays as it is until the end. So whatever a change is worked out from is read inside.
        """
        ...

    def transaction(self) -> AbstractContextManager[object]:
        """Make several changes one, on the disk when it ends; none inside another."""
        ...

    def flush(self) -> None:
        """Commit everything, down to the disk."""
        ...

    def compact(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Give dead bytes back; `progress` gets the bytes done and all of them."""
        ...
