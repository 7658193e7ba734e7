"""The card of a notebook and the map of chunks: true, bounded, and safe to show whatever a file says."""

from __future__ import annotations

import html
import os
import re
import time
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import superchunk
from superchunk import SChunk, SpecialValue
from superchunk._display.chunk_map import BEST_RATIO, DAMAGED, SAMPLES, colour
from superchunk._display.notebook_card import html_card

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=y>"
VOID = {"br", "img", "input", "meta", "link"}


class Outline(HTMLParser):
    """Collects tags and attributes, and sees to it that each tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def outline(card: str) -> Outline:
    found = Outline()
    found.feed(card)
    found.close()
    assert found.open == []
    return found


@pytest.fixture
def mixed() -> SChunk:
    """Return chunks of zeros, of noise, and of a ramp: two each."""
    noise = np.frombuffer(np.random.default_rng(5).bytes(16000), "i8")
    data = np.concatenate([np.zeros(2000, "i8"), noise, np.arange(2000)])
    return SChunk(data=data, chunksize=8000)


def card_of(thing: SChunk) -> str:
    return thing._repr_html_()


def test_the_card_says_what_the_super_chunk_is(mixed: SChunk) -> None:
    text = " ".join(outline(card_of(mixed)).text)
    for words in ("SChunk", "in memory", "6,000 of 8 bytes", "6 chunks of 7.8 KiB", "zstd, level", "shuffle"):
        assert words in text
    assert f"{mixed.nbytes / mixed.cbytes:.2f}x" in text


def test_a_cell_stands_for_each_chunk_with_its_ratio_in_the_title(mixed: SChunk) -> None:
    card = card_of(mixed)
    svg = ET.fromstring(re.search(r"<svg.*</svg>", card, re.DOTALL)[0])  # type: ignore[index]  # noqa: S314 - ours
    cells = list(svg)
    assert len(cells) == 6
    titles = [cell[0].text or "" for cell in cells]
    assert titles[0] == "chunk 0 of 6: special, zero"
    for number, chunk in enumerate(mixed.iterchunks_info()):
        if chunk.special is SpecialValue.NOT_SPECIAL:
            assert titles[number].endswith(f"{chunk.cratio:.2f}x")
    fills = [cell.get("fill") for cell in cells]
    assert fills[2] == colour(0.0)  # noise
    assert fills[4] != fills[2]  # the ramp


def test_names_of_strangers_are_text_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "<b onclick=evil>&quot;.b2frame"
    schunk = SChunk(data=bytes(100), urlpath=str(path))
    schunk.vlmeta["<script>x</script>"] = 1
    found = outline(card_of(schunk))
    assert not {"b onclick", "script", "img"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert "<script>x</script>" in "".join(found.text)
    assert path.name in "".join(found.text)
    schunk.close()


def test_a_card_of_anything_evil_has_the_tags_of_a_harmless_one() -> None:
    harmless = outline(html_card("SChunk", "here", [("shape", "(1,)"), ("dtype", "int8")], [], 0))
    evil = outline(html_card(EVIL, EVIL, [("shape", EVIL), (EVIL, EVIL * 9)], [], 0))
    assert evil.tags == harmless.tags
    assert EVIL in evil.text


def test_a_card_loads_nothing_and_runs_nothing(mixed: SChunk) -> None:
    card = card_of(mixed)
    found = outline(card)
    assert set(found.tags) <= {"div", "b", "span", "table", "tbody", "tr", "th", "td", "svg", "rect", "title"}
    assert not {"src", "href", "class=style"} & {name for name, _ in found.attributes}
    assert "url(" not in card
    assert [value for name, value in found.attributes if name == "xmlns"] == ["http://www.w3.org/2000/svg"]
    assert "http" not in card.replace("http://www.w3.org/2000/svg", "")


def test_text_takes_the_colour_of_the_page_so_that_dark_and_light_both_work(mixed: SChunk) -> None:
    card = card_of(mixed)
    assert "color:inherit" in card
    assert re.findall(r"(?<![-\w])color:(?!inherit)", card) == []
    assert re.findall(r"background:(?!transparent|#[0-9a-f]{6})", card) == []


def test_a_million_chunks_cost_a_bounded_number_of_looks(tmp_path: Path) -> None:
    path = str(tmp_path / "many.b2frame")
    with SChunk(chunksize=8, cparams={"typesize": 8}, urlpath=path) as schunk:
        schunk.fill_special(2_000_000, SpecialValue.ZERO)
        schunk.update_data(0, np.array([3]), copy=False)
        started = time.perf_counter()
        cells = superchunk.chunk_map(schunk)
        card = card_of(schunk)
        assert time.perf_counter() - started < 2
    assert len(cells) == 64
    assert sum(cell.looked for cell in cells) == SAMPLES
    assert (cells[0].first, cells[-1].stop) == (0, 2_000_000)
    assert "512 of 2,000,000 chunks read" in card
    assert "(8 of 31,250 read)" in card
    assert len(card) < 20_000


def test_cells_cover_all_chunks_in_order(mixed: SChunk) -> None:
    for limit in range(1, 9):
        cells = superchunk.chunk_map(mixed, cells=limit)
        assert len(cells) == min(limit, 6)
        edges = [cell.first for cell in cells] + [cells[-1].stop]
        assert edges == sorted(set(edges))
        assert (edges[0], edges[-1]) == (0, 6)
        assert sum(cell.nbytes for cell in cells) == mixed.nbytes
        assert sum(cell.cbytes for cell in cells) == mixed.cbytes


def test_a_list_of_chunks_is_looked_at_in_its_order(mixed: SChunk) -> None:
    backwards = superchunk.chunk_map(mixed, among=range(5, -1, -1))
    assert [cell.cbytes for cell in backwards] == [cell.cbytes for cell in superchunk.chunk_map(mixed)][::-1]
    assert superchunk.chunk_map(mixed, among=[]) == []


def test_the_map_refuses_what_it_cannot_do(mixed: SChunk) -> None:
    with pytest.raises(ValueError, match="cells: expected 1 or more, got 0"):
        superchunk.chunk_map(mixed, cells=0)
    with pytest.raises(TypeError, match="expected a SChunk or an NDArray, got bytes"):
        superchunk.chunk_map(b"")
    with pytest.raises(IndexError):
        superchunk.chunk_map(mixed, among=[6])


def test_levels_are_logarithmic_and_stay_in_their_range(mixed: SChunk) -> None:
    levels = [cell.level for cell in superchunk.chunk_map(mixed)]
    assert levels[2] == 0.0
    assert all(0.0 <= level <= 1.0 for level in levels)
    zeros = superchunk.chunk_map(mixed)[0]
    assert zeros.ratio > BEST_RATIO
    assert zeros.level == 1.0
    assert zeros.special is SpecialValue.ZERO


def test_an_empty_a_closed_and_a_damaged_one_have_cards(tmp_path: Path) -> None:
    assert "<svg" not in card_of(SChunk())
    path = tmp_path / "x.b2frame"
    schunk = SChunk(data=np.random.default_rng(1).bytes(8000), chunksize=1000, urlpath=str(path), seal=False)
    schunk.close()
    assert "closed" in "".join(outline(card_of(schunk)).text)
    with superchunk.open(str(path)) as found:
        at = int.from_bytes(found.get_lazychunk(3)[-12:-4], "little")
    content = path.read_bytes()
    first = content.index(b"\x05", 80)
    damaged = bytearray(content)
    damaged[first] = 99  # the version of the first chunk
    assert at > first
    path.write_bytes(damaged)
    with superchunk.open(str(path)) as found:
        card = card_of(found)
        assert DAMAGED in card
        assert "chunk 0 of 8: 1 damaged" in card


def test_a_directory_of_chunks_has_a_card(tmp_path: Path) -> None:
    path = tmp_path / "folder.b2frame"
    with SChunk(data=np.arange(4000), chunksize=8000, urlpath=str(path), contiguous=False) as schunk:
        text = "".join(outline(card_of(schunk)).text)
    assert f"{path} (a directory)" in text or text.count("…")
    assert os.fspath(path.name) in html.unescape(text)


def test_a_long_path_keeps_its_end() -> None:
    card = html_card("SChunk", "/" + "d" * 300 + "/end.b2nd", [], [], 0)
    assert "…" in card
    assert "end.b2nd</span>" in card


def test_the_card_of_an_array_says_its_shape_and_its_own_bytes() -> None:
    array = superchunk.asarray(np.arange(35.0).reshape(5, 7), chunks=(3, 4), blocks=(2, 3))
    text = " ".join(outline(array._repr_html_()).text)
    for words in ("NDArray", "(5, 7) float64", "(3, 4), 2 x 2 of them", "(2, 3)", "280 B in", "chunk"):
        assert words in text
    assert len(superchunk.chunk_map(array)) == 4
    array.schunk.close()
    assert "closed" in array._repr_html_()
