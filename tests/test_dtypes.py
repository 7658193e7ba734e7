"""Dtypes as text: what comes back, what is refused, what stays bounded."""

from __future__ import annotations

import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from superchunk._format._literals import MAX_DEPTH, MAX_LENGTH, parse
from superchunk._format.dtypes import dtype_text, parse_dtype
from superchunk.exceptions import DtypeError, FormatError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

TEXTS = [
    ("i4", "<i4"),
    (">f8", ">f8"),
    ("?", "|b1"),
    ("f2", "<f2"),
    ("c16", "<c16"),
    ("g", np.dtype("g").str),
    ("U7", "<U7"),
    (">U7", ">U7"),
    ("S5", "|S5"),
    ("S300", "|S300"),
    ("V3", "|V3"),
    ("M8[ns]", "<M8[ns]"),
    (">M8[D]", ">M8[D]"),
    ("M8", "<M8"),
    ("m8[25s]", "<m8[25s]"),
    ([("a", "i4"), ("b", "f8")], "[('a', '<i4'), ('b', '<f8')]"),
    ([("a", "i4", (2, 3)), ("b", "?", 1)], "[('a', '<i4', (2, 3)), ('b', '?', (1,))]"),
    ([("p", [("x", "S3"), ("y", "V2")], (2,))], "[('p', [('x', 'S3'), ('y', 'V2')], (2,))]"),
    ([(("title", "n"), "u1")], "[(('title', 'n'), 'u1')]"),
    ([("a", "S0"), ("b", "U0"), ("c", "u1")], "[('a', 'S'), ('b', '<U'), ('c', 'u1')]"),
    (
        np.dtype([("a", "u1"), ("b", "f8")], align=True),
        "{'names': ['a', 'b'], 'formats': ['u1', '<f8'], 'offsets': [0, 8], 'itemsize': 16, 'aligned': True}",
    ),
    (
        np.dtype({"names": ["a", "b"], "formats": ["i4", ("f4", (2,))], "offsets": [16, 4], "itemsize": 32}),
        "{'names': ['a', 'b'], 'formats': ['<i4', ('<f4', (2,))], 'offsets': [16, 4], 'itemsize': 32}",
    ),
    (
        np.dtype({"names": ["a"], "formats": ["u1"], "offsets": [1], "titles": ["t"], "itemsize": 3}),
        "{'names': ['a'], 'formats': ['u1'], 'offsets': [1], 'titles': ['t'], 'itemsize': 3}",
    ),
    (
        np.dtype([("a", "u1"), ("b", [("p", "u1"), ("q", "i4")])], align=True),
        (
            "{'names': ['a', 'b'], 'formats': ['u1', [('p', 'u1'), ('q', '<i4')]], 'offsets': [0, 4], "
            "'itemsize': 12, 'aligned': True}"
        ),
    ),
    (
        np.dtype({"names": [], "formats": [], "itemsize": 8}),
        "{'names': [], 'formats': [], 'offsets': [], 'itemsize': 8}",
    ),
]
NESTED_ALIGNED = np.dtype([("a", np.dtype([("p", "u1"), ("q", "i8")], align=True)), ("b", "i2")])


@st.composite
def records(draw: st.DrawFn) -> np.dtype[Any]:
    """Draw records with gaps, any order of offsets, titles, alignment, and names of any characters."""
    names = draw(
        st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9), max_size=5, unique=True)
    )
    inner = st.one_of(npst.scalar_dtypes(), npst.array_dtypes(max_size=3))
    formats = [np.dtype(draw(inner)) for _ in names]
    offsets, end = [], 0
    for form in formats:
        offsets.append(end + draw(st.integers(0, 3)))
        end = offsets[-1] + form.itemsize
    order = draw(st.permutations(range(len(names))))
    spelled: dict[str, Any] = {
        "names": [names[i] for i in order],
        "formats": [formats[i] for i in order],
        "offsets": [offsets[i] for i in order],
        "itemsize": max(end + draw(st.integers(0, 9)), 1),
    }
    if draw(st.booleans()):
        return np.dtype(list(zip(spelled["names"], formats, strict=True)) or "u1", align=draw(st.booleans()))
    made: np.dtype[Any] = np.dtype(spelled)  # type: ignore[call-overload]
    return made


def any_dtype() -> st.SearchStrategy[np.dtype[Any]]:
    return st.one_of(npst.scalar_dtypes(), npst.array_dtypes(max_size=3), records())


@pytest.mark.parametrize(("dtype", "text"), TEXTS, ids=str)
def test_a_dtype_has_this_text_and_comes_back(dtype: DTypeLike, text: str) -> None:
    dtype = np.dtype(dtype)
    assert dtype_text(dtype) == text
    back = parse_dtype(text, dtype.itemsize)
    assert back == dtype
    assert back.isalignedstruct == dtype.isalignedstruct
    assert repr(back) == repr(dtype)


@examples(300)
@given(any_dtype())
def test_any_dtype_comes_back(dtype: np.dtype[Any]) -> None:
    if dtype.itemsize == 0 or dtype.subdtype is not None:
        with pytest.raises(ValueError, match=r"dtype: expected"):
            dtype_text(dtype)
        return
    back = parse_dtype(dtype_text(dtype), dtype.itemsize)
    assert back == dtype
    assert back.itemsize == dtype.itemsize
    assert back.fields == dtype.fields


def test_an_aligned_record_in_a_record_keeps_its_offsets() -> None:
    back = parse_dtype(dtype_text(NESTED_ALIGNED), NESTED_ALIGNED.itemsize)
    assert back == NESTED_ALIGNED
    assert back["a"].fields == NESTED_ALIGNED["a"].fields


def test_an_aligned_record_with_one_that_is_not_keeps_its_offsets() -> None:
    inner = np.dtype([("f", "i2")])
    outer = np.dtype([("a", "?"), ("b", inner), ("c", "?")], align=True)
    text = dtype_text(outer)
    assert "aligned" not in text
    assert parse_dtype(text, outer.itemsize) == outer


def test_numbers_with_fields_and_recarrays_come_back_as_what_they_are() -> None:
    halves = np.dtype(("i4", [("low", "i2"), ("high", "i2")]))
    assert dtype_text(halves) == "<i4"
    record = np.dtype((np.record, [("a", "i4")]))
    assert parse_dtype(dtype_text(record), 4) == record


def test_metadata_is_dropped() -> None:
    assert dtype_text(np.dtype("i4", metadata={"h5py": 1})) == "<i4"


@pytest.mark.parametrize("dtype", ["O", [("a", "O")], [("a", [("b", "O")], (2,))]], ids=str)
def test_objects_are_refused_in_both_directions(dtype: DTypeLike) -> None:
    with pytest.raises(TypeError, match="objects"):
        dtype_text(dtype)
    text = str(np.dtype(dtype)) if isinstance(dtype, list) else "|O"
    with pytest.raises(TypeError, match="objects") as caught:
        parse_dtype(text, 8)
    assert isinstance(caught.value, DtypeError | FormatError)


@pytest.mark.parametrize("text", ["O", "O8", "|O8", "object", "T", "{'names':['a'],'formats':['O'],'offsets':[0]}"])
def test_other_names_of_objects_are_refused(text: str) -> None:
    with pytest.raises(DtypeError):
        parse_dtype(text, 8)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="from NumPy 2 on")
def test_text_of_any_length_is_refused() -> None:
    with pytest.raises(TypeError):
        dtype_text(np.dtypes.StringDType())


@pytest.mark.parametrize("dtype", ["S0", "U0", "V0", "(2,)i4", [], [(("t", "a"), "V0")]], ids=str)
def test_items_without_bytes_and_sub_arrays_are_refused(dtype: DTypeLike) -> None:
    with pytest.raises(ValueError, match=r"dtype: expected"):
        dtype_text(dtype)


def test_titles_that_are_no_text_are_refused() -> None:
    with pytest.raises(ValueError, match="title"):
        dtype_text(np.dtype([((7, "a"), "i4")]))


def test_names_that_utf8_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="a text can say"):
        dtype_text([("\ud800", "i4")])


# The frame's typesize rules


@pytest.mark.parametrize("typesize", [1, 4, 300])
def test_a_layer_of_old_has_bytes(typesize: int) -> None:
    assert parse_dtype(None, typesize) == np.dtype(f"S{typesize}")


@pytest.mark.parametrize(("text", "typesize"), [("|u1", 4), ("<i8", 4), ("|S5", 6), ("[('a', '<i4')]", 8), ("S", 3)])
def test_a_text_of_another_item_size_is_set_aside(text: str, typesize: int) -> None:
    assert parse_dtype(text, typesize) == np.dtype(f"V{typesize}")


def test_other_spellings_are_read() -> None:
    for text in ("'<i4'", "int32", "i", "=i4", "<i4"):
        assert parse_dtype(text, 4) == np.dtype("<i4")
    assert parse_dtype("a5", 5) == np.dtype("S5")
    assert parse_dtype("[('a', '|u1'),('b','|S3',),]", 4) == np.dtype([("a", "u1"), ("b", "S3")])


# ml_dtypes

EXTRAS = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint4", "int2"]


@pytest.mark.parametrize("name", EXTRAS)
def test_types_of_ml_dtypes_come_back(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    assert dtype_text(dtype) == name
    assert parse_dtype(name, dtype.itemsize) == dtype
    record = np.dtype([("a", dtype), ("b", dtype, (3,))])
    assert parse_dtype(dtype_text(record), record.itemsize) == record


@pytest.mark.parametrize("name", EXTRAS)
def test_without_ml_dtypes_they_are_void(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    typesize = 2 if name == "bfloat16" else 1
    assert parse_dtype(name, typesize) == np.dtype(f"V{typesize}")


# Hostile texts

HOSTILE = [
    "",
    " ",
    "<f3",
    "<i4\n",
    "i4,i4",
    "nonsense",
    "V99999999999999999999",
    "U536870912",
    "V-1",
    "M8[foo]",
    "M8[9999999999s]",
    "M8[s/0]",
    "M8[s/2]",
    "M8[0s]",
    "__import__('os').abort()",
    "[('a', __import__('os').abort())]",
    "(lambda: 0)()",
    "[('a', f'{1}')]",
    "[('a', b'i4')]",
    "[('a', 'i4' 'i4')]",
    "[('a', 'i4'), *[]]",
    "[('a', 'i4') for x in 'y']",
    "1" * 5000,
    "[('a', 'V1', (99999999999999999999,))]",
    "[('a', 'V1', (-1,))]",
    "[('a', 'V1', 1.5)]",
    "[('a', 'V1', True)]",
    "[('a', 'V2', (2147483647,))]",
    "[('a', [('a', 'V1', (65535,))], (65535,))]",
    "[('a', 'V1', (" + "1," * 100 + "))]",
    "[('a', 'i4'), ('a', 'i4')]",
    "[('a', 'i4'), 'b']",
    "[(1, 'i4')]",
    "[('a',)]",
    "[('\\ud800', 'i4')]",
    "[('\\N{BULLET}', 'i4')]",
    "{'a': ('i4', 0)}",
    "{1: 2}",
    "{'names': 1, 'formats': 2}",
    "{'names': ['a'], 'formats': []}",
    "{'names': [], 'formats': ['i4']}",
    "{'names': ['a'], 'formats': ['i4'], 'offsets': 0}",
    "{'names': ['a'], 'formats': ['i4'], 'offsets': [-4]}",
    "{'names': ['a'], 'formats': ['i4'], 'offsets': []}",
    "{'names': ['a'], 'formats': ['i4'], 'offsets': [1], 'aligned': True}",
    "{'names': ['a'], 'formats': ['i4'], 'evil': 0}",
    "{'names': ['a'], 'formats': ['i4'], 'titles': [0]}",
    "{'names': ['a'], 'formats': ['i4'], 'itemsize': 3}",
    "[",
    "]",
    "[(]",
    "'abc",
    "None",
    "True",
    "7",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:40]))
def test_a_text_that_says_no_dtype_is_refused(text: str) -> None:
    with pytest.raises(DtypeError) as caught:
        parse_dtype(text, 8, at=31)
    assert caught.value.at == 31
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "text",
    [
        "[('q', 'V2147483647'), ('p', 'V2147483647'), ('x', 'V10')]",
        "[('a', [('q', 'V2147483647'), ('p', 'V2147483647'), ('x', 'V10')])]",
        "{'names': ['p', 'q'], 'formats': ['V2147483647', 'V2147483647']}",
        "{'names': ['p', 'q'], 'formats': ['V2147483647', 'V1'], 'aligned': True}",
        "{'names': ['a'], 'formats': ['i4'], 'offsets': [2147483647], 'itemsize': 8}",
    ],
)
def test_fields_outside_the_item_are_refused_though_numpy_takes_them(text: str) -> None:
    with pytest.raises(DtypeError, match="expected fields within"):
        parse_dtype(text, 8)


@pytest.mark.parametrize(
    "text",
    [
        "[" * (MAX_LENGTH - 1),
        "(" * 5000 + ")" * 5000,
        "{'a': " * 1000,
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "'" + "a" * MAX_LENGTH + "'",
        "[" + "('', 'V'), " * (MAX_LENGTH // 11) + "7]",
    ],
    ids=["brackets", "parentheses", "dicts", "one too deep", "too long", "wide"],
)
def test_large_and_deep_texts_are_refused_cheaply(text: str) -> None:
    tracemalloc.start()
    with pytest.raises(DtypeError):
        parse_dtype(text, 8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


def test_the_deepest_text_is_read() -> None:
    text = "'u1'"
    for _ in range(MAX_DEPTH // 2):
        text = f"[('a', {text})]"
    assert parse_dtype(text, 1).itemsize == 1
    with pytest.raises(DtypeError, match="brackets"):
        parse_dtype(f"[('a', {text})]", 1)
    with pytest.raises(ValueError, match="a text can say"):
        dtype_text(np.dtype([("a", parse_dtype(text, 1))]))


@examples(300)
@given(st.text(max_size=60) | st.text("[](){}'\\\",:<>|i48aVSUM 0123 -", max_size=60), st.integers(1, 99))
def test_any_text_gives_a_dtype_of_the_typesize_or_our_error(text: str, typesize: int) -> None:
    try:
        dtype = parse_dtype(text, typesize)
    except DtypeError:
        return
    assert dtype.itemsize == typesize
    assert not dtype.hasobject


# Literals

LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text("ab'\"\\\n"), inner),
    max_leaves=12,
)


@examples(300)
@given(LITERALS)
def test_literals_are_read_as_python_writes_them(value: object) -> None:
    assert parse(repr(value)) == value
