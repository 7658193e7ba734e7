"""How one handle decompresses: user functions, the shape of an array's blocks, the postfilter, chunk checksums.

::

    SChunk ── Decoder ──────────────> _engine.read             bytes of the container
    array internals ── Decoder ─────> _engine.read_box         items of a box
                          └─────> _engine.read_points      single items

The engine is asked without the shape of blocks first, because most containers do not need it. If a chunk needs the
shape, or ZFP, the read starts anew with them. The list of chunks is given with each call, so that one decoder reads
the committed state and a snapshot in memory alike.

Source: docs/format/codecs.md; docs/format/integrity.md, "Chunk seal" and "What a reader concludes".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from superchunk import _engine
from superchunk._codec.block_shape import ZFP_IDS, layout_of, needs_shape, zfp_hooks
from superchunk._codec.chunks_of_range import chunk_start, chunks_of
from superchunk._codec.plugins import hooks_for, ucodecs_registry, ufilters_registry
from superchunk.exceptions import FormatError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Buffer

    from superchunk._codec.block_functions import BlockFunction
    from superchunk._codec.plugins import HookOwner
    from superchunk._engine import Geometry, Hooks, Request, Source
    from superchunk._store.store_interface import ChunkList

__all__ = ["Decoder"]

T = TypeVar("T")

_STALE: Final = 2
"""What `_engine.check_seals` says of a chunk that is not what was sealed."""


class Decoder:
    """How one handle decompresses.

    Parameters
    ----------
    owner
        Returns the object that user codecs and filters get.
    nthreads
        Threads for one call of the engine.
    typesize
        Bytes of an item of the container.
    verified
        Whether chunks are compared with their seals before they are decoded.

    """

    __slots__ = ("nthreads", "owner", "postfilter", "typesize", "verified")

    def __init__(self, owner: HookOwner, nthreads: int, typesize: int, *, verified: bool = False) -> None:
        self.owner = owner
        self.nthreads = nthreads
        self.typesize = typesize
        self.verified = verified
        self.postfilter: BlockFunction | None = None
        """Runs on whole blocks after they were decompressed; `read_range` and `read_chunk` apply it."""

    # Bytes of the container.

    def read_range(
        self, chunks: ChunkList, start: int, stop: int, out: memoryview | bytearray | None = None
    ) -> bytes | None:
        """Return bytes ``start:stop`` of the content after the postfilter, or put them at the front of `out`.

        Raises
        ------
        FormatError
            A chunk is damaged, or not what was sealed.
        UnsupportedError
            A codec or filter is not available, or misses the layer or a package.

        """
        if self.postfilter is not None:
            return self._read_filtered(chunks, self.postfilter, start, stop, out)
        requests = chunks.requests(start, stop)
        if self.verified:
            self._check_whole(chunks, chunks_of(chunks, start, stop)[0], requests)
        return self.read(chunks, requests, out)

    def read_chunk(self, chunks: ChunkList, nchunk: int, nbytes: int, out: memoryview | None = None) -> bytes | None:
        """Return the `nbytes` bytes of chunk `nchunk` after the postfilter, or put them at the front of `out`.

        Raises
        ------
        FormatError, UnsupportedError
            As `read_range`.

        """
        source = chunks.source(nchunk)
        self.check(chunks, nchunk, source)
        if self.postfilter is not None:
            start = chunk_start(chunks, nchunk)
            return self._read_filtered(chunks, self.postfilter, start, start + nbytes, out)
        return self.read(chunks, [(source, nbytes, 0, nbytes, 0)], out)

    def read(
        self, chunks: ChunkList, requests: Sequence[Request], out: memoryview | bytearray | None = None
    ) -> bytes | None:
        """Decode pieces of chunks as `_engine.read` does, without the postfilter.

        Raises
        ------
        FormatError
            A chunk, or the array's layer, is damaged.
        UnsupportedError
            As `read_range`.

        """
        if not ucodecs_registry and not ufilters_registry:
            try:
                return _engine.read(requests, out, nthreads=self.nthreads, itemsize=self.typesize)
            except UnsupportedError as error:
                if not needs_shape(error):
                    raise
        return self._with_shape(
            chunks,
            lambda hooks, blocks: _engine.read(
                requests, out, nthreads=self.nthreads, itemsize=self.typesize, hooks=hooks, blockshape=blocks
            ),
        )

    def decompress(self, chunks: ChunkList, source: Source) -> bytes:
        """Return the content of one chunk, which need not be in the chunks, without the postfilter."""
        return self._with_shape(
            chunks,
            lambda hooks, blocks: _engine.decompress(source, itemsize=self.typesize, hooks=hooks, blockshape=blocks),
        )

    def read_vlblocks(self, source: Source) -> list[bytes]:
        """Return the blocks of a chunk with variable-length blocks."""
        return _engine.read_vlblocks(
            source, nthreads=self.nthreads, itemsize=self.typesize, hooks=hooks_for(self.owner)
        )

    # Items of an array.

    def read_box(
        self,
        chunks: ChunkList,
        geometry: Geometry,
        sources: Sequence[Source],
        box: Sequence[tuple[int, int, int] | Buffer],
        out: Buffer,
    ) -> None:
        """Put the items of a box into `out`, as `_engine.read_box` does, without the postfilter.

        Raises
        ------
        FormatError, UnsupportedError
            As `read`.

        """
        if not ucodecs_registry and not ufilters_registry:
            try:
                _engine.read_box(geometry, sources, box, out, nthreads=self.nthreads)
            except UnsupportedError as error:
                if not needs_shape(error):
                    raise
            else:
                return
        self._with_shape(
            chunks,
            lambda hooks, _: _engine.read_box(geometry, sources, box, out, nthreads=self.nthreads, hooks=hooks),
        )

    def read_points(
        self,
        chunks: ChunkList,
        geometry: Geometry,
        sources: Sequence[Source],
        nsource: Buffer,
        positions: Buffer,
        out: Buffer,
    ) -> None:
        """Put single items into `out`, as `_engine.read_points` does, without the postfilter.

        Raises
        ------
        FormatError, UnsupportedError
            As `read`.

        """
        self._with_shape(
            chunks,
            lambda hooks, _: _engine.read_points(
                geometry, sources, nsource, positions, out, nthreads=self.nthreads, hooks=hooks
            ),
        )

    # Comparing chunks with their seals.

    def check(self, chunks: ChunkList, nchunk: int, source: Source) -> None:
        """Compare chunk `nchunk` with its seal, if the handle was opened for that.

        Raises
        ------
        FormatError
            The chunk is not what was sealed.

        """
        if self.verified:
            _check(chunks, [(nchunk, source)])

    def _check_whole(self, chunks: ChunkList, first: int, requests: Sequence[Request]) -> None:
        """Compare the chunks that `requests`, from chunk `first` on, read whole."""
        whole = [
            (nchunk, source)
            for nchunk, (source, nbytes, start, stop, _) in enumerate(requests, first)
            if start == 0 and stop == nbytes
        ]
        _check(chunks, whole)

    # What a call of the engine needs besides.

    def _with_shape(self, chunks: ChunkList, call: Callable[[Hooks | None, tuple[int, ...] | None], T]) -> T:
        """Return what `call`, a call of the engine that decodes chunks, returns with what the chunks need.

        `call` takes the hooks, or None, and the shape of blocks, or None. It is called again with more of these if
        it says that it needs them, and so must be able to start anew.
        """
        hooks = hooks_for(self.owner) if ucodecs_registry or ufilters_registry else None
        try:
            return call(hooks, None)
        except UnsupportedError as error:
            layout = layout_of(chunks.meta) if needs_shape(error) else None
            if layout is None:
                raise
        try:
            return call(hooks, layout.blocks)
        except UnsupportedError as error:
            if not (error.what == "codec" and error.ident in ZFP_IDS):
                raise
        return call(zfp_hooks(self.owner, layout, self.typesize), layout.blocks)

    def _read_filtered(
        self, chunks: ChunkList, function: BlockFunction, start: int, stop: int, out: memoryview | bytearray | None
    ) -> bytes | None:
        """Read bytes ``start:stop`` through a postfilter: it sees each block that the range intersects once, whole."""
        parts: list[bytes] = []
        for nchunk in chunks_of(chunks, start, stop):
            base = chunk_start(chunks, nchunk)
            nbytes = chunk_start(chunks, nchunk + 1) - base
            low, high = max(start - base, 0), min(stop - base, nbytes)
            if low >= high:
                continue
            source = chunks.source(nchunk)
            blocksize = _engine.describe(source).blocksize or nbytes
            first = low - low % blocksize
            last = min(high + -high % blocksize, nbytes)
            plain = memoryview(bytearray(last - first))
            self.read(chunks, [(source, nbytes, first, last, 0)], plain)
            done = function.apply(plain, blocksize, (base + first) // self.typesize)
            parts.append(done[low - first : high - first].tobytes())
        content = b"".join(parts)
        if out is None:
            return content
        out[: len(content)] = content
        return None


def _check(chunks: ChunkList, numbered: Sequence[tuple[int, Source]]) -> None:
    if not chunks.sealed:
        return
    statuses = _engine.check_seals([source for _, source in numbered])
    for (nchunk, _), (status, cbytes) in zip(numbered, statuses, strict=True):
        if status == _STALE:
            raise FormatError(
                f"chunk {nchunk}",
                at=cbytes,
                expected="the seal of the chunk's bytes",
                found="another seal: the chunk is damaged",
            )
