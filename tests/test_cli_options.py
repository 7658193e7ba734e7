"""Words of the command line: sizes, dtypes, filters, ranges."""

from __future__ import annotations

import click
import pytest

from superchunk import Filter
from superchunk.cli.options import FilterChoice, ItemRange, parse_dtype, parse_filters, parse_items, parse_size


@pytest.mark.parametrize(
    ("word", "nbytes"), [("1", 1), ("65536", 65536), ("64K", 65536), ("4M", 2**22), ("1GiB", 2**30), ("2kb", 2048)]
)
def test_sizes_count_in_powers_of_1024(word: str, nbytes: int) -> None:
    assert parse_size(word) == nbytes


@pytest.mark.parametrize("word", ["", "0", "-1", "K", "1.5M", "4T", "9G", "1e6", "1 M"])
def test_sizes_that_make_no_sense_are_rejected(word: str) -> None:
    with pytest.raises(click.BadParameter, match="bytes"):
        parse_size(word)


@pytest.mark.parametrize("word", ["", "O", "f3", "f4,i4", "V0", "S", "(2,)f4", "nonsense"])
def test_dtypes_without_a_plain_item_are_rejected(word: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_dtype(word)


def test_filters_keep_their_order_and_their_parameter() -> None:
    assert parse_filters("trunc_prec:-10, SHUFFLE,bytedelta") == (
        FilterChoice(filter=Filter.TRUNC_PREC, meta=246),
        FilterChoice(filter=Filter.SHUFFLE, meta=0),
        FilterChoice(filter=Filter.BYTEDELTA, meta=0),
    )


@pytest.mark.parametrize("word", ["shufle", "", "shuffle:x", "shuffle:256", ",".join(["shuffle"] * 7)])
def test_filters_that_do_not_exist_are_rejected(word: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_filters(word)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (":", (0, 100)),
        ("3:7", (3, 7)),
        ("90:", (90, 100)),
        (":-90", (0, 10)),
        ("-10:", (90, 100)),
        ("-10:-5", (90, 95)),
        ("5", (5, 6)),
        ("-1", (99, 100)),
        ("-2", (98, 99)),
        ("100:100", (100, 100)),
    ],
)
def test_ranges_count_as_python_does(word: str, expected: tuple[int, int]) -> None:
    assert parse_items(word).within(100) == expected


@pytest.mark.parametrize("word", ["0:101", "101:", "-101:", "5:4", "100", "50:-60", "-101"])
def test_ranges_past_the_ends_are_rejected_with_both_numbers(word: str) -> None:
    with pytest.raises(ValueError, match="within 0:100"):
        parse_items(word).within(100)


@pytest.mark.parametrize("word", ["", "a:b", "1:2:3", "1.5", "1-2", "--1"])
def test_ranges_that_are_none_are_rejected(word: str) -> None:
    with pytest.raises(click.BadParameter, match="start:stop"):
        parse_items(word)


def test_a_range_prints_as_it_was_written() -> None:
    assert str(ItemRange(start=-3, stop=None)) == "-3:"
