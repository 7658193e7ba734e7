"""What a store answers from its list of chunks, wherever the list is kept.

A `FrameStore` and a `MemoryStore` differ in who may change the list and in what a change
costs, not in what it says. This is the part they share; it changes nothing.

Source: docs/format/cframe.md, section "Data section".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from superchunk._store.checked_reads import check_chunks
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from typing_extensions import Buffer

    from superchunk._engine import Box, Request, Source
    from superchunk._store.chunk_list import ChunkTable
    from superchunk._store.store_interface import ChunkList

__all__ = ["TableView"]

T = TypeVar("T")


class TableView(ABC):
    """The questions of a `ChunkStore` that its list of chunks answers."""

    def in_one_state(self, ask: Callable[[ChunkList], T]) -> T:
        """Return what `ask`, which reads no chunks, tells of the list in one state, though other threads change it."""
        while True:
            table = self._open
            version = table.version
            try:
                answer = ask(table)
            except SuperchunkError:
                if table.version == version and self._open is table:
                    raise
            else:
                if table.version == version and self._open is table:
                    return answer

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Do nothing: nobody takes turns with what is in memory."""
        yield

    @property
    @abstractmethod
    def _open(self) -> ChunkTable:
        """The list of chunks as it is seen here now; ClosedError once the store is closed."""

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        return self._open.nchunks

    @property
    def nbytes(self) -> int:
        """Sum of the chunks' uncompressed sizes, bytes."""
        return self._open.nbytes

    @property
    def cbytes(self) -> int:
        """Sum of the chunks' compressed sizes, bytes; 32 for a special entry."""
        return self._open.cbytes

    @property
    def chunksize(self) -> int:
        """Bytes of a full chunk; 0: sizes vary, or no chunk has set it yet."""
        return self._open.chunksize

    @property
    def vlblocks(self) -> bool:
        """Whether the chunks have variable-length blocks."""
        return self._open.vlblocks

    @property
    def vlmeta(self) -> Mapping[str, bytes]:
        """The vlmetalayers, each one chunk."""
        return self._open.vlmeta

    def source(self, nchunk: int) -> Source:
        """Return where chunk `nchunk` is."""
        return self._open.source(nchunk)

    def read_small(
        self,
        start: int,  # noqa: ARG002
        stop: int,  # noqa: ARG002
        itemsize: int,  # noqa: ARG002
        out: Buffer | None = None,  # noqa: ARG002
        box: Box | None = None,  # noqa: ARG002
        layer: tuple[str, bytes] | None = None,  # noqa: ARG002
    ) -> bytes | None:
        """Return None: only of what is in one file a small part is read in a special way."""
        return None

    def requests(self, start: int, stop: int) -> list[Request]:
        """Return the requests that read bytes ``start:stop``, of which there is one or more, in order of the chunks."""
        return self._open.requests(start, stop)

    def sources(self, start: int, stop: int) -> list[Source]:
        """Return where the chunks from `start` to below `stop` are."""
        return self._open.sources(start, stop)

    def sources_for(self, nchunks: Sequence[int]) -> list[Source]:
        """Return where the chunks of these ascending numbers are."""
        return self._open.sources_for(nchunks)

    @property
    @abstractmethod
    def seals(self) -> range | None:
        """The entries whose chunks have seals; None: no seal proves anything."""

    def check(self, nchunk: int) -> None:
        """Compare chunk `nchunk` with its seal.

        Raises
        ------
        FormatError
            It is not what was sealed.

        """
        table = self._open
        check_chunks([(nchunk, table.index[nchunk])], [table.source(nchunk)], self.seals)

    def chunk_nbytes(self, nchunk: int) -> int:
        """Return the uncompressed size of chunk `nchunk`, bytes."""
        return self._open.chunk_nbytes(nchunk)

    def starts(self) -> Sequence[int]:
        """Return the n + 1 prefix sums of the chunks' sizes, bytes."""
        return self._open.starts()
