"""Chunks of version 3, of which no files are left, are read as the format page says.

Source: docs/format/chunk.md.
"""

from __future__ import annotations

import pytest
import reference

from superchunk import _engine

CONTENT = b"".join((n * n % 1000).to_bytes(4, "little") for n in range(5000))
SLOT_6, META_6 = 21, 29
SHUFFLE = 1


@pytest.mark.parametrize("codec", [0, 1, 2, 4, 5])
def test_a_chunk_of_version_3_has_five_filter_slots(codec: int) -> None:
    made = _engine.compress(
        CONTENT,
        _engine.EncodeParams(codec=codec, typesize=4, filters=bytes([0, 0, 0, 0, SHUFFLE, 0]), filters_meta=bytes(6)),
    )
    old = bytearray(made)
    old[0] = 3
    old[SLOT_6], old[META_6] = SHUFFLE, 4  # what followed the five slots
    assert not _engine.describe(old).memcpyed
    assert _engine.decompress(old) == CONTENT
    assert reference.decode(bytes(old)) == CONTENT
    old[0] = 5
    assert _engine.decompress(old) != CONTENT
