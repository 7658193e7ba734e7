"""Index entries, lazily and changed."""

from __future__ import annotations

import random
import struct
import tracemalloc

import pytest

from superchunk import _engine
from superchunk._format.frame_index import Index, special_entry, special_kind
from superchunk.exceptions import FormatError


def chunk_of(entries: list[int], **params: int) -> bytes:
    raw = struct.pack(f"<{len(entries)}q", *entries)
    return _engine.compress(raw, _engine.EncodeParams(**{"typesize": 8, **params}))  # type: ignore[arg-type]


def lazy(chunk: bytes, nchunks: int = -1) -> Index:
    return Index.from_chunk(chunk, _engine.describe(chunk), nchunks=nchunks, at=500)


def test_special_entries_have_the_codes_of_the_format() -> None:
    assert [special_entry(kind) & (2**64 - 1) for kind in (1, 2, 4)] == [0x81 << 56, 0x82 << 56, 0x84 << 56]
    for kind in (1, 2, 4):
        assert special_kind(special_entry(kind) + 0x1234567, 0) == kind  # only the top byte counts


@pytest.mark.parametrize("code", [0x80, 0x83, 0x85, 0x86, 0x87, 0xC1, 0xFF])
def test_other_codes_are_refused_by_name(code: int) -> None:
    with pytest.raises(FormatError, match=f"index entry 5, top byte at byte 47.*found 0x{code:02X}"):
        special_kind((code << 56) - 2**64, 5)


@pytest.mark.parametrize("count", [1, 3, 64, 65, 5000, 100_000])
def test_entries_roundtrip_through_the_chunk(count: int) -> None:
    entries = [random.Random(count).randrange(2**40) for _ in range(count)]
    chunk = Index(entries).to_chunk()
    info = _engine.describe(chunk)
    assert (info.typesize, info.nbytes) == (8, 8 * count)
    assert info.memcpyed or info.dont_split
    index = lazy(chunk, count)
    assert [index[n] for n in (0, count // 2, count - 1)] == [entries[n] for n in (0, count // 2, count - 1)]
    assert list(index.slice(0, count)) == entries


def test_one_chunk_at_offset_0_is_stored_plain_and_not_as_zeros() -> None:
    chunk = Index([0]).to_chunk()
    assert len(chunk) == 40
    assert _engine.describe(chunk).special == 0


def test_a_repeated_index_stays_one_number() -> None:
    index = Index.repeated(special_entry(1), 10**8)
    chunk = index.to_chunk()
    assert len(chunk) == 40
    tracemalloc.start()
    again = lazy(chunk, 10**8)
    assert (len(again), again[10**8 - 1]) == (10**8, special_entry(1))
    assert list(again.slice(5, 8)) == [special_entry(1)] * 3
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


def test_an_index_of_the_wrong_size_or_typesize_is_refused() -> None:
    chunk = chunk_of([1, 2, 3])
    with pytest.raises(FormatError, match="index chunk nbytes at byte 504: expected 32, for 4 chunks, found 24"):
        lazy(chunk, 4)
    with pytest.raises(FormatError, match="index chunk typesize at byte 503: expected 8, found 4"):
        lazy(chunk_of([1, 2, 3], typesize=4), 3)
    odd = _engine.compress(bytes(20), _engine.EncodeParams(typesize=8, clevel=0))
    with pytest.raises(FormatError, match="a multiple of 8, found 20"):
        lazy(odd)


def test_a_damaged_index_is_named_when_it_is_read() -> None:
    entries = [random.Random(1).randrange(2**20) for _ in range(100_000)]
    chunk = bytearray(Index(entries).to_chunk())
    chunk[32:36] = b"\xff\xff\xff\x7f"  # where the first block begins
    index = lazy(bytes(chunk), 100_000)
    with pytest.raises(FormatError, match="index chunk: "):
        _ = index[0]


def test_changes_can_be_taken_back_in_any_order() -> None:
    rng = random.Random(3)
    index = lazy(chunk_of(list(range(50))), 50)
    index.replace(3, 999)
    index.forget()
    before = list(index.slice(0, len(index)))
    model = before[:]
    mark = index.mark()
    for step in range(500):
        n = rng.randrange(len(model))
        match rng.randrange(5):
            case 0:
                index.insert(n, [step, -step])
                model[n:n] = [step, -step]
            case 1:
                index.replace(n, step)
                model[n] = step
            case 2 if len(model) > 5:
                index.delete(n)
                del model[n]
            case 3:
                index.insert(len(model), [step])
                model.append(step)
            case _:
                model = model[::-1]
                index.assign(model)
        assert len(index) == len(model)
    assert list(index.slice(0, len(index))) == model
    index.rollback(mark)
    assert list(index.slice(0, len(index))) == before


def test_a_copy_goes_its_own_way() -> None:
    index = lazy(chunk_of([1, 2, 3]), 3)
    other = index.copy()
    other.replace(0, 7)
    assert (index[0], other[0], len(other)) == (1, 7, 3)
    held = index.copy()
    index.insert(3, [4])
    assert (len(held), len(index)) == (3, 4)


def test_a_reader_that_is_overtaken_by_a_change_takes_nothing_of_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = Index(range(5)).to_chunk()
    index = Index.from_chunk(chunk, _engine.describe(chunk), nchunks=5, at=0)
    decode = Index._decode

    def overtaken(self: Index, source: object, start: int, stop: int) -> object:
        monkeypatch.undo()
        entries = decode(self, source, start, stop)  # type: ignore[arg-type]
        index.insert(5, [5])  # as another thread does while this one reads
        return entries

    monkeypatch.setattr(Index, "_decode", overtaken)
    assert index.slice(0, 5).tolist() == list(range(5))
    assert index.slice(0, len(index)).tolist() == list(range(6))
