"""Promises of `.meta` and `.vlmeta`."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np
import pytest

import superchunk
from superchunk import SChunk
from superchunk.meta import MAX_VLMETA_FRAME

if TYPE_CHECKING:
    from pathlib import Path

blosc2 = pytest.importorskip("blosc2", reason="the oracle is not installed")

VALUES = [
    None,
    True,
    -5,
    2**63,
    1.5,
    "text",
    b"bytes",
    [1, "two", [3.0]],
    (1, (2, "x"), [()]),
    {"a": {"b": (1, 2)}, "c": b""},
    "long" * 10_000,
]


@pytest.fixture(params=["memory", "frame in memory", "file"])
def s(request: pytest.FixtureRequest, tmp_path: Path) -> SChunk:
    places: dict[str, dict[str, Any]] = {
        "memory": {},
        "frame in memory": {"contiguous": True},
        "file": {"urlpath": tmp_path / "s.b2frame"},
    }
    keywords = places[request.param]
    return SChunk(data=np.arange(100), chunksize=400, meta={"first": {"a": 1}, b"second": (1, 2)}, **keywords)


# meta


def test_meta_is_a_mapping_of_what_the_constructor_got(s: SChunk) -> None:
    assert s.meta.keys() == ["first", "second"]
    assert s.meta["first"] == s.meta[b"first"] == {"a": 1}
    assert s.meta[:] == s.meta.getall() == {"first": {"a": 1}, "second": (1, 2)}
    assert len(s.meta) == 2
    assert "first" in s.meta
    assert b"second" in s.meta  # type: ignore[comparison-overlap]  # bytes are names as well
    assert "third" not in s.meta
    assert s.meta.get("third", 7) == 7
    assert repr(s.meta) == "{'first': {'a': 1}, 'second': (1, 2)}"
    with pytest.raises(KeyError, match="third"):
        s.meta["third"]


def test_meta_refuses_what_it_cannot_do(s: SChunk) -> None:
    for call in (lambda: s.meta[0:1], s.meta.items, s.meta.values, lambda: s.meta.__delitem__("first")):
        with pytest.raises(NotImplementedError):
            call()


def test_a_fixed_layer_is_replaced_by_one_of_the_same_length_only(s: SChunk) -> None:
    s.meta["first"] = {"b": 2}
    assert s.meta["first"] == {"b": 2}
    for wrong in ({"b": 1000}, {}):
        with pytest.raises(ValueError, match="length"):
            s.meta["first"] = wrong
    assert s.meta["first"] == {"b": 2}
    with pytest.raises(KeyError, match="new"):
        s.meta["new"] = 1


def test_raw_access_gives_the_bytes_beneath(s: SChunk) -> None:
    assert s.meta.raw("second") == msgpack.packb(["__tuple__", 1, 2])
    s.meta.set_raw("second", msgpack.packb(["__tuple__", 3, 4]))
    assert s.meta["second"] == (3, 4)
    s.vlmeta.set_raw("v", b"not msgpack \xc1")
    assert s.vlmeta.raw("v") == b"not msgpack \xc1"
    with pytest.raises(superchunk.FormatError):
        s.vlmeta["v"]
    for layers in (s.meta, s.vlmeta):
        with pytest.raises(KeyError, match="absent"):
            layers.raw("absent")


def test_sixteen_fixed_layers_fit_and_seventeen_are_refused_before_a_file_is_made(tmp_path: Path) -> None:
    assert len(SChunk(meta={str(i): i for i in range(16)}).meta) == 16
    with pytest.raises(ValueError, match="16"):
        SChunk(meta={str(i): i for i in range(17)}, urlpath=tmp_path / "s.b2frame")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 32, "ä" * 16])
def test_names_are_limited_to_31_bytes(name: str, s: SChunk) -> None:
    with pytest.raises(ValueError, match="31 bytes"):
        SChunk(meta={name: 1})
    with pytest.raises(ValueError, match="31 bytes"):
        s.vlmeta[name] = 1
    assert name not in s.vlmeta
    with pytest.raises(KeyError):
        s.vlmeta[name]
    s.vlmeta[name[:-1]] = s.vlmeta[""] = "fits"
    assert s.vlmeta[name[:-1]] == s.vlmeta[""] == "fits"
    with pytest.raises(TypeError, match="name"):
        s.vlmeta[1] = 2  # type: ignore[index]


# vlmeta


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_of_every_plain_kind_come_back_and_the_reference_reads_them(value: object, s: SChunk) -> None:
    s.vlmeta["v"] = value
    assert s.vlmeta["v"] == value
    assert type(s.vlmeta["v"]) is type(value)
    theirs = blosc2.schunk_from_cframe(s.to_cframe(), copy=True)
    assert theirs.vlmeta["v"] == value
    theirs.vlmeta["w"] = value
    assert superchunk.from_cframe(theirs.to_cframe()).vlmeta["w"] == value


def test_arrays_sets_and_complex_numbers_come_back_from_either_writer(s: SChunk) -> None:
    for name, value in {"c": 1 - 2j, "s": {1, 2}, "n": np.arange(6).reshape(2, 3), "f": np.float64(1.5)}.items():
        s.vlmeta[name] = value
        theirs = blosc2.schunk_from_cframe(s.to_cframe(), copy=True)
        np.testing.assert_equal(s.vlmeta[name], value)
        np.testing.assert_equal(theirs.vlmeta[name], value)
        theirs.vlmeta["again"] = value
        np.testing.assert_equal(superchunk.from_cframe(theirs.to_cframe()).vlmeta["again"], value)


def test_values_that_cannot_be_packed_are_refused_and_leave_no_trace(s: SChunk) -> None:
    for value, error in ((2**64, OverflowError), (object(), TypeError)):
        with pytest.raises(error):
            s.vlmeta["v"] = value
    assert len(s.vlmeta) == 0
    with pytest.raises(TypeError):
        SChunk(meta={"complex": 1j})


def test_vlmeta_is_a_mutable_mapping_in_order_of_addition(s: SChunk) -> None:
    s.vlmeta.update({"b": 1, "a": (2,)})
    s.vlmeta["c"] = 3
    s.vlmeta["b"] = 4
    assert list(s.vlmeta) == ["b", "a", "c"]
    assert s.vlmeta == {"b": 4, "a": (2,), "c": 3}
    assert dict(s.vlmeta.items()) == s.vlmeta[:] == s.vlmeta.getall()
    assert s.vlmeta.to_dict() == {b"b": 4, b"a": (2,), b"c": 3}
    assert s.vlmeta[b"a"] == (2,)
    assert repr(s.vlmeta) == str(s.vlmeta) == "{'b': 4, 'a': (2,), 'c': 3}"
    assert s.vlmeta.pop("a") == (2,)
    assert s.vlmeta.setdefault("d", 5) == 5
    del s.vlmeta["b"]
    assert list(s.vlmeta) == ["c", "d"]
    with pytest.raises(NotImplementedError):
        s.vlmeta[1:2]
    s.vlmeta.clear()
    assert len(s.vlmeta) == 0
    assert s[:] == np.arange(100).tobytes()


def test_vlmeta_and_attrs_are_one_object_that_knows_its_owner(tmp_path: Path) -> None:
    s = SChunk(urlpath=tmp_path / "s.b2frame")
    assert s.vlmeta is s.vlmeta
    assert s.vlmeta is s.attrs
    vlmeta = s.vlmeta
    assert (vlmeta.mode, vlmeta.urlpath, vlmeta.mmap_mode, vlmeta.locking) == ("a", s.urlpath, None, False)


def test_a_change_is_on_disk_when_the_assignment_returns(tmp_path: Path) -> None:
    path = tmp_path / "s.b2frame"
    s = SChunk(data=np.arange(1000), chunksize=80, urlpath=path, meta={"m": 1})
    s.vlmeta["v"] = "now"
    assert (
        superchunk.from_cframe(path.read_bytes()[: superchunk.open(path)._handle.store.frame_len]).vlmeta["v"] == "now"
    )
    s.meta["m"] = 2
    theirs = blosc2.open(str(path))
    assert (theirs.vlmeta["v"], theirs.meta["m"]) == ("now", 2)
    del s.vlmeta["v"]
    assert list(blosc2.open(str(path)).vlmeta) == []


def test_a_frame_holds_sixteen_and_the_error_says_why_not_more(tmp_path: Path) -> None:
    for s in (SChunk(urlpath=tmp_path / "s.b2frame"), SChunk(contiguous=True)):
        for number in range(MAX_VLMETA_FRAME):
            s.vlmeta[str(number)] = number
        with pytest.raises(ValueError, match=r"16.*C-Blosc2 destroys"):
            s.vlmeta["more"] = 1
        s.vlmeta["3"] = "changing one is fine"
        assert len(s.vlmeta) == 16
    loose = SChunk()
    for number in range(20):
        loose.vlmeta[str(number)] = number
    with pytest.raises(ValueError, match="16"):
        loose.to_cframe()


def test_values_are_stored_as_python_blosc2_stores_them(s: SChunk) -> None:
    s.vlmeta["v"] = "abc" * 1000
    chunk = s._handle.refreshed_store().vlmeta["v"]
    info = superchunk._engine.describe(chunk)
    assert (info.codec, info.typesize) == (5, 1)
    assert len(chunk) < 100


def test_a_value_that_claims_far_more_than_its_chunk_can_hold_is_not_unpacked(s: SChunk) -> None:
    bomb = superchunk._engine.special_chunk(1, 2**30, 1)
    s._handle.store.set_vlmeta("bomb", bomb)
    with pytest.raises(ValueError, match="claims to hold 1073741824"):
        s.vlmeta["bomb"]
    s.vlmeta.clear()
    assert len(s.vlmeta) == 0


def test_large_values_that_compress_well_are_stored_so_that_they_can_be_read(s: SChunk) -> None:
    value = bytes(70 * 2**20)
    s.vlmeta["v"] = value
    assert s.vlmeta["v"] == value


def test_a_container_within_metadata_is_read_only_when_asked_for(s: SChunk) -> None:
    inner = SChunk(data=b"inner")
    s.vlmeta["inner"] = inner
    with pytest.raises(ValueError, match="42"):
        s.vlmeta["inner"]
    frame = s.to_cframe()
    assert superchunk.from_cframe(frame, deserialize="full").vlmeta["inner"][:] == b"inner"
    theirs = blosc2.schunk_from_cframe(frame, deserialize="full")
    assert theirs.vlmeta["inner"][:] == b"inner"


def test_metadata_may_outlive_its_owner() -> None:
    vlmeta = SChunk(meta={"m": 1}).vlmeta
    meta = SChunk(meta={"m": 1}).meta
    gc.collect()
    vlmeta["x"] = 1
    assert (vlmeta["x"], meta["m"]) == (1, 1)


@pytest.mark.parametrize("where", ["meta", "vlmeta"])
def test_what_is_no_name_is_in_no_metadata(where: str) -> None:
    s = superchunk.SChunk(meta={"a": 1})
    s.vlmeta["a"] = 1
    layers: Any = getattr(s, where)
    assert "a" in layers
    assert b"a" in layers
    others: tuple[object, ...] = (5, None, 1.5, ("a",), ["a"], {}, "b" * 40)
    for other in others:
        assert other not in layers
        assert layers.get(other) is None
        assert layers.get(other, 7) == 7
    assert (layers.get("a"), layers.get(b"a", 7)) == (1, 1)
