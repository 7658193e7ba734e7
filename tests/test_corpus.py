"""Files of other writers decode to the bytes that their own reader gets from them.

Every chunk and every contiguous frame of the corpus is read whole, in parts and with threads;
chunks also through the reference decoder. Sparse frames are counted and named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import corpus
import pytest
import reference

import superchunk
from superchunk import _engine
from superchunk._format.b2nd import LAYERS, ArrayLayout
from superchunk._store.frame_store import FrameStore
from superchunk.exceptions import SuperchunkError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

ZFP_CODECS = {f"codec:ud{ident}" for ident in range(33, 36)}
LARGEST_STORED_TYPESIZE = 255

THREADS = pytest.mark.parametrize("nthreads", [1, 2], ids=["1 thread", "2 threads"])


def needs_zfp(entry: corpus.Entry) -> bool:
    """Whether a codec is needed that is not built in, but an extra."""
    return bool(entry.features & ZFP_CODECS)


def itemsize_of(entry: corpus.Entry) -> int:
    """Return the container's item size in bytes where the chunk itself cannot record it, else 0."""
    asked = entry.fields["source"].get("params", {}).get("typesize", 0)
    return asked if isinstance(asked, int) and asked > LARGEST_STORED_TYPESIZE else 0


def frame_chunks(store: FrameStore) -> Iterator[tuple[int, bytes]]:
    """Yield number and chunk of each chunk of a frame, decoded alone."""
    itemsize = store.settings.typesize
    layer = next((store.meta[name] for name in LAYERS if name in store.meta), None)
    blocks = None if layer is None else ArrayLayout.from_bytes(layer).blocks
    for nchunk in range(store.nchunks):
        yield nchunk, _engine.decompress(store.source(nchunk), itemsize=itemsize, blockshape=blocks)


def open_frame(entry: corpus.Entry) -> FrameStore:
    """Open the contiguous frame of an entry."""
    return FrameStore.open(str(entry.path), offset=entry.offset)


def schunk_of(entry: corpus.Entry) -> superchunk.SChunk:
    """Open the super-chunk of an array."""
    if corpus.stands_for_something_else(entry):
        return superchunk.SChunk(urlpath=entry.path, mode="r")
    found: object = superchunk.open(entry.path, offset=entry.offset)
    schunk = getattr(found, "schunk", found)
    assert isinstance(schunk, superchunk.SChunk)
    return schunk


def test_corpus_holds_every_kind_that_these_tests_are_about() -> None:
    if not corpus.ROOT.is_dir():
        pytest.skip(corpus.MISSING)
    counted = {kind: len(corpus.entries(kind)) for kind in ("chunk", "cframe", "b2nd", "sframe")}
    assert all(counted.values()), counted
    features = frozenset().union(*(entry.features for entry in corpus.entries()))
    for needed in ("vlblocks", "dict", "header16", "version2", "split", "special:value"):
        assert needed in features


@corpus.parametrize("chunk")
@THREADS
def test_chunk_decodes_to_what_went_in(entry: corpus.Entry, nthreads: int) -> None:
    chunk = entry.read()
    plain = _engine.decompress(chunk, nthreads=nthreads, itemsize=itemsize_of(entry))
    assert len(plain) == entry.nbytes
    if entry.sha256 is None:
        assert plain == bytes(entry.nbytes), "values that are not initialised read as zeros"
    else:
        assert corpus.sha256(plain) == entry.sha256


@corpus.parametrize("chunk")
@THREADS
def test_slices_of_a_chunk_are_right(entry: corpus.Entry, nthreads: int) -> None:
    chunk = entry.read()
    for piece in entry.slices:
        start, stop = piece.start * entry.typesize, piece.stop * entry.typesize
        part = bytearray(stop - start)
        _engine.read(
            [(chunk, entry.nbytes, start, stop, 0)],
            part,
            nthreads=nthreads,
            itemsize=itemsize_of(entry),
        )
        if entry.sha256 is not None:
            assert corpus.sha256(bytes(part)) == piece.sha256, (piece.start, piece.stop)


@corpus.parametrize("chunk")
def test_chunk_in_a_file_decodes_like_one_in_memory(entry: corpus.Entry) -> None:
    size = entry.path.stat().st_size
    with entry.path.open("rb") as file:
        source = (file.fileno(), entry.offset, size - entry.offset)
        assert _engine.decompress(source, nthreads=2, itemsize=itemsize_of(entry)) == (
            _engine.decompress(entry.read(), itemsize=itemsize_of(entry))
        )
        assert _engine.describe(source).nbytes == entry.nbytes


@corpus.parametrize("chunk")
def test_engine_and_reference_decoder_agree_on_a_chunk(entry: corpus.Entry) -> None:
    chunk, itemsize = entry.read(), itemsize_of(entry)
    plain = _engine.decompress(chunk, itemsize=itemsize)
    if entry.nbytes <= 1_000_000:  # the reference takes seconds for more
        assert reference.decode(chunk, itemsize or None) == plain
    bounds = [0, min(1, entry.nbytes), entry.nbytes // 3, entry.nbytes - entry.nbytes // 7, entry.nbytes]
    for start in bounds:
        for stop in {bound for bound in bounds if start <= bound <= start + 70_000}:
            piece = _engine.read([(chunk, -1, start, stop, 0)], itemsize=itemsize)
            assert piece == plain[start:stop]
            assert reference.decode_range(chunk, start, stop, itemsize or None) == piece


@corpus.parametrize("chunk")
def test_header_of_a_chunk_says_what_the_manifest_says(entry: corpus.Entry) -> None:
    info = _engine.describe(entry.read())
    assert info.nbytes == entry.nbytes
    assert info.cbytes == entry.fields["cbytes"]
    assert info.typesize == entry.typesize
    assert info.vlblocks == ("vlblocks" in entry.features)
    assert info.memcpyed == ("memcpyed" in entry.features)
    assert (info.header_len == 16) == ("header16" in entry.features)
    assert _engine.sizes([entry.read()]) == [(info.nbytes, info.cbytes)]
    kinds = {1: "special:zeros", 2: "special:nans", 3: "special:value", 4: "special:uninit"}
    assert {kinds[info.special]} <= entry.features if info.special else True
    if info.special == 3:
        assert info.repeated_value == entry.read()[32 : info.cbytes]


@corpus.parametrize("chunk")
def test_blocks_of_variable_length_come_back_one_by_one(entry: corpus.Entry) -> None:
    if not entry.vlblocks:
        with pytest.raises((SuperchunkError, ValueError)):
            _engine.read_vlblocks(entry.read())
        return
    for nthreads in (1, 2):
        blocks = _engine.read_vlblocks(entry.read(), nthreads=nthreads)
        assert [(len(block), corpus.sha256(block)) for block in blocks] == list(entry.vlblocks)


@corpus.parametrize("cframe", "sframe")
@THREADS
def test_frame_decodes_to_what_went_in(entry: corpus.Entry, nthreads: int) -> None:
    store = open_frame(entry)
    try:
        assert store.nbytes == entry.nbytes
        assert store.nchunks == entry.fields["nchunks"]
        sizes = [store.chunk_nbytes(nchunk) for nchunk in range(store.nchunks)]
        if entry.chunk_nbytes is not None:
            assert sizes == list(entry.chunk_nbytes)
        requests, at = [], 0
        for source, nbytes in zip(store.sources(0, store.nchunks), sizes, strict=True):
            requests.append((source, nbytes, 0, nbytes, at))
            at += nbytes
        plain = _engine.read(requests, nthreads=nthreads, itemsize=store.settings.typesize)
        assert plain is not None
        assert len(plain) == entry.nbytes
        if entry.sha256 is not None:
            assert corpus.sha256(plain) == entry.sha256
        for piece in entry.slices:
            start, stop = piece.start * entry.typesize, piece.stop * entry.typesize
            if entry.sha256 is not None:
                assert corpus.sha256(plain[start:stop]) == piece.sha256
    finally:
        store.close()


@corpus.parametrize("cframe", "sframe")
@THREADS
def test_super_chunk_of_a_frame_gives_items_and_slices(entry: corpus.Entry, nthreads: int) -> None:
    ways = superchunk.DParams(nthreads=nthreads)
    with corpus.as_schunk(superchunk.open(entry.path, offset=entry.offset, dparams=ways)) as schunk:
        assert (schunk.nbytes, schunk.nchunks) == (entry.nbytes, entry.fields["nchunks"])
        assert (schunk.typesize, len(schunk)) == (entry.typesize, entry.nbytes // entry.typesize)
        whole = schunk[:]
        assert len(whole) == entry.nbytes // entry.typesize * entry.typesize
        if entry.sha256 is None:
            return
        if len(whole) == entry.nbytes:
            assert corpus.sha256(whole) == entry.sha256
        for piece in entry.slices:
            part = schunk.get_slice(piece.start, piece.stop)
            assert part is not None
            assert corpus.sha256(part) == piece.sha256
            assert schunk[piece.start : piece.stop] == part
        for nchunk, sha256 in enumerate(entry.chunk_sha256 or ()):
            plain = schunk.decompress_chunk(nchunk)
            assert plain is not None
            assert corpus.sha256(plain) == sha256


@corpus.parametrize("cframe")
def test_frame_in_memory_reads_like_its_file(entry: corpus.Entry) -> None:
    frame = entry.read()[: entry.fields["file_nbytes"]]
    with corpus.as_schunk(superchunk.open(entry.path, offset=entry.offset)) as stored:
        frame_len = FrameStore.open(str(entry.path), offset=entry.offset).frame_len
        with superchunk.schunk_from_cframe(frame[:frame_len]) as schunk:
            assert schunk[:] == stored[:]
            assert [*schunk.meta, *schunk.vlmeta] == [*stored.meta, *stored.vlmeta]
            for name in stored.vlmeta:  # not all of them hold MessagePack
                assert schunk.vlmeta.raw(name) == stored.vlmeta.raw(name)
            with superchunk.schunk_from_cframe(schunk.to_cframe()) as again:
                assert again[:] == stored[:]
                assert again.nchunks == stored.nchunks


@corpus.parametrize("cframe", "sframe")
def test_each_chunk_of_a_frame_decodes_alone(entry: corpus.Entry) -> None:
    store = open_frame(entry)
    try:
        for nchunk, plain in frame_chunks(store):
            if nchunk in entry.undefined_chunks:
                assert plain == bytes(len(plain))
            elif entry.chunk_sha256 is not None:
                assert corpus.sha256(plain) == entry.chunk_sha256[nchunk], nchunk
            assert len(plain) == store.chunk_nbytes(nchunk)
    finally:
        store.close()


@corpus.parametrize("cframe", "sframe", "b2nd")
def test_metalayers_of_a_frame_are_the_bytes_that_were_stored(entry: corpus.Entry) -> None:
    store = open_frame(entry)
    try:
        vlmeta = {name: _engine.decompress(chunk) for name, chunk in store.vlmeta.items()}
        for found, listed in ((store.meta, "meta"), (vlmeta, "vlmeta")):
            expected = entry.fields.get(listed) or {}
            assert list(found) == list(expected)
            for name, layer in expected.items():
                content = bytes(found[name])
                assert len(content) == layer["nbytes"]
                if "hex" in layer:
                    assert content.hex() == layer["hex"]
                else:
                    assert corpus.sha256(content) == layer["sha256"]
    finally:
        store.close()


@corpus.parametrize("b2nd")
def test_frame_of_an_array_decodes_as_a_super_chunk(entry: corpus.Entry) -> None:
    store = open_frame(entry)
    try:
        assert store.nbytes == entry.nbytes
        if needs_zfp(entry):
            with pytest.raises(UnsupportedError):
                list(frame_chunks(store))
            pytest.importorskip("zfpy")
            with schunk_of(entry) as schunk:
                plain = schunk[:]
        else:
            plain = b"".join(content for _, content in frame_chunks(store))
        assert len(plain) == entry.nbytes
        if entry.sha256 is not None:
            assert corpus.sha256(plain) == entry.sha256
        with schunk_of(entry) as schunk:
            first = schunk.decompress_chunk(0) if schunk.nchunks else b""
            assert first == plain[: len(first or b"")]
    finally:
        store.close()


def test_the_index_file_of_a_sparse_frame_leads_to_its_directory() -> None:
    folders = [entry for entry in corpus.entries() if entry.is_folder]
    if not corpus.ROOT.is_dir():
        pytest.skip(corpus.MISSING)
    assert {entry.kind for entry in folders} == {"sframe", "b2nd"}
    for entry in folders:
        with pytest.raises(SuperchunkError, match="the index file of a sparse frame: open its directory"):
            FrameStore.open(str(entry.path / "chunks.b2frame"))
