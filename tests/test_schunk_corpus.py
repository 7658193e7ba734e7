"""`SChunk` against frames of other writers: valid ones, old ones, malformed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import corpus
import pytest

import superchunk

if TYPE_CHECKING:
    from collections.abc import Mapping

_SMALL = 2**26


@corpus.parametrize("cframe", "sframe", "b2nd")
def test_every_frame_reads_as_its_manifest_says(entry: corpus.Entry) -> None:
    with corpus.opened(entry) as s:
        assert (s.nbytes, s.typesize) == (entry.nbytes, entry.typesize)
        assert s.nchunks == entry.fields.get("nchunks", s.nchunks)
        if entry.optional:
            return
        if entry.nbytes < _SMALL:
            chunks = [s.decompress_chunk(n) or b"" for n in range(s.nchunks)]
            if entry.sha256 is not None:
                assert corpus.sha256(b"".join(chunks)) == entry.sha256
                assert s[:] == b"".join(chunks)[: len(s) * s.typesize]
            for nchunk, wanted in enumerate(entry.chunk_sha256 or ()):
                assert nchunk in entry.undefined_chunks or corpus.sha256(chunks[nchunk]) == wanted
        for piece in entry.slices:
            if entry.kind != "b2nd":
                assert corpus.sha256(s[piece.start : piece.stop]) == piece.sha256, piece


@corpus.parametrize("cframe", "sframe", "b2nd")
def test_metalayers_have_the_bytes_and_values_that_the_manifest_says(entry: corpus.Entry) -> None:
    with corpus.opened(entry) as s:
        for kind, layers in (("meta", s.meta), ("vlmeta", s.vlmeta)):
            expected: Mapping[str, Any] = entry.fields.get(kind) or {}
            assert sorted(layers) == sorted(expected)
            for name, content in expected.items():
                raw = layers.raw(name)
                assert len(raw) == content["nbytes"]
                if "hex" in content:
                    assert raw.hex() == content["hex"]
                else:
                    assert corpus.sha256(raw) == content["sha256"]


@corpus.parametrize("cframe", "sframe", "b2nd")
def test_a_frame_in_memory_reads_as_the_file_does(entry: corpus.Entry) -> None:
    if entry.optional or entry.nbytes > _SMALL:
        pytest.skip("a plugin's, or a large one")
    with corpus.opened(entry) as s:
        again = superchunk.schunk_from_cframe(s.to_cframe())
        assert again.nchunks == s.nchunks
        for nchunk in range(s.nchunks):
            assert again.decompress_chunk(nchunk) == s.decompress_chunk(nchunk)
        assert dict(again.meta[:] if "b2nd" in s.meta else {}) == dict(s.meta[:] if "b2nd" in s.meta else {})


def _read_everything(entry: corpus.Hostile) -> str:
    """Open a frame and read all of it; return the hash of the content."""
    with corpus.as_schunk(superchunk.open(entry.path)) as s:
        for layers in (s.meta, s.vlmeta):
            for name in layers:
                layers.raw(name)
        if s.nbytes > _SMALL:
            step = max(s.nchunks // 16, 1)
            for nchunk in range(0, s.nchunks, step):
                s.get_lazychunk(nchunk)
            s[-1:]
            return ""
        chunks = [s.decompress_chunk(nchunk) or b"" for nchunk in range(s.nchunks)]
        return corpus.sha256(b"".join(chunks))


@corpus.parametrize_hostile("cframe", "sframe")
def test_malformed_frames_end_in_our_errors_or_in_what_they_held(entry: corpus.Hostile) -> None:
    try:
        found = _read_everything(entry)
    except superchunk.SuperchunkError:
        assert entry.expect != "must decode", entry.why
    else:
        assert entry.expect != "must raise", entry.why
        if entry.if_decodes is not None and found:
            assert found in entry.if_decodes, entry.why


@corpus.parametrize_hostile("b2nd")
def test_malformed_arrays_end_in_our_errors_or_in_bytes(entry: corpus.Hostile) -> None:
    try:
        _read_everything(entry)
    except superchunk.SuperchunkError:
        assert entry.expect != "must decode", entry.why
