"""Finding the parts of a frame: kept answers are those of reading anew, and share nothing that changes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import superchunk
from superchunk._array.chunk_geometry import ArrayGeometry, geometry_of
from superchunk._format.b2nd import ArrayLayout
from superchunk._store import frame_loading as loading

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def empty(path: str) -> None:
    superchunk.SChunk(chunksize=100, urlpath=path).close()


def plain(path: str) -> None:
    superchunk.SChunk(data=bytes(range(250)) * 40, chunksize=900, urlpath=path).close()


def layers(path: str) -> None:
    with superchunk.SChunk(data=b"0123456789", urlpath=path, meta={"kind": "x" * 40}) as s:
        s.vlmeta["day"] = list(range(30))


def array(path: str) -> None:
    superchunk.asarray(np.arange(600).reshape(20, 30), chunks=(7, 8), blocks=(3, 4), urlpath=path).close()


def unsealed(path: str) -> None:
    superchunk.SChunk(data=b"0123456789" * 100, chunksize=70, urlpath=path, seal=False).close()


def read(content: bytes, head: bytes | None = None) -> loading.Loaded:
    return loading.parse_frame(
        lambda nbytes, at: content[at : at + nbytes],
        len(content),
        lambda at, limit: content[at : at + limit],
        head=head,
    )


def said(loaded: loading.Loaded) -> dict[str, Any]:
    found = {name: getattr(loaded, name) for name in loaded.__slots__}
    found["index"] = loaded.index.slice(0, len(loaded.index))
    found["index_source"] = bytes(loaded.index_source)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("write", [empty, plain, layers, array, unsealed])
def test_parts_at_hand_say_what_reading_one_by_one_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[str], None]
) -> None:
    write(str(tmp_path / "frame"))
    content = (tmp_path / "frame").read_bytes()
    loading._kept_parts.cache_clear()
    first, again = read(content), read(content)
    assert loading._kept_parts.cache_info().hits == 1
    assert said(first) == said(again) == said(read(content, head=content[:4096]))
    assert first.index is again.index  # whoever changes it takes a copy: see the next test
    monkeypatch.setattr(loading, "FIRST_READ", 100)  # so that the trailer is looked for from the end
    assert said(read(content)) == said(first)
    assert loading._kept_parts.cache_info().currsize == 1


def test_frames_of_the_same_bytes_change_alone(tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    layers(one)
    shutil.copy(one, two)
    with superchunk.open(one, mode="a") as changed, superchunk.open(two) as kept:
        assert kept[:] == b"0123456789"
        changed.delete_chunk(0)
        changed.append_data(b"abcdefghij")
        del changed.vlmeta["day"]
        assert kept[:] == b"0123456789"
        assert kept.vlmeta["day"] == list(range(30))
    with superchunk.open(two) as kept:
        assert kept[:] == b"0123456789"


def test_a_cached_geometry_is_that_of_the_layer(tmp_path: Path) -> None:
    array(str(tmp_path / "array"))
    with superchunk.open(str(tmp_path / "array")) as a:
        raw = a.schunk._handle.store.meta["b2nd"]
    anew, kept = ArrayGeometry(raw, ArrayLayout.from_bytes(raw), 8), geometry_of(raw, 8)
    assert kept is geometry_of(bytes(bytearray(raw)), 8)
    names = set(ArrayGeometry.__slots__) - {"native"}
    assert {name: getattr(kept, name) for name in names} == {name: getattr(anew, name) for name in names}


def test_names_of_fields_change_for_one_array_only(tmp_path: Path) -> None:
    path = str(tmp_path / "records")
    superchunk.zeros(5, dtype=[("a", "i4"), ("b", "f8")], urlpath=path).close()
    with superchunk.open(path) as one, superchunk.open(path) as two:
        one.dtype.names = ("x", "y")
        assert two.dtype.names == ("a", "b")
    with superchunk.open(path) as three:
        assert three.dtype.names == ("a", "b")
