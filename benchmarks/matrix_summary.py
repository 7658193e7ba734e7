"""What the cells of the matrix say together: means, the cells that lag, and the figures that were asked for.

Looks at records only, so that it can be asked of any that was ever written:
``python benchmarks/matrix_summary.py benchmarks/results/amd-epyc/matrix.json``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pairs import geometric, read_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

LEAST, LARGEST = 0.95, 1.01
"""A cell lags below this ratio to their speed, and is larger above this ratio to their size."""

NAMES = ("data", "codec", "level", "filters", "threads")
"""What says which cell it is."""


class Cell(NamedTuple):
    """One cell: what was compressed how, and what came of it. A ratio of speeds above 1 is ours, faster."""

    data: str
    held_out: bool
    codec: str
    level: int
    filters: str
    threads: int
    ratio: float
    """Bytes of the data over bytes of our chunk."""
    ratio_theirs: float
    size: float
    """Bytes of our chunk over bytes of theirs: below 1 is smaller."""
    compress: float
    """MB of data a second."""
    compress_theirs: float
    compress_x: float
    decompress: float
    decompress_theirs: float
    decompress_x: float
    rounds: int

    @property
    def name(self) -> str:
        """Say which cell it is."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.data} {self.codec}-{self.level} {self.filters}, {threads}"


class Line(NamedTuple):
    """A line of a summary: the means of some cells and the least of them."""

    what: str
    cells: int
    compress: float
    compress_least: float
    decompress: float
    decompress_least: float
    size: float

    @classmethod
    def of(cls, what: str, cells: list[Cell]) -> Line:
        """Return the line for some cells."""
        return cls(
            what,
            len(cells),
            geometric(one.compress_x for one in cells),
            min(one.compress_x for one in cells),
            geometric(one.decompress_x for one in cells),
            min(one.decompress_x for one in cells),
            geometric(one.size for one in cells),
        )


class Asked(NamedTuple):
    """A figure that was asked for, and the one that was measured."""

    what: str
    asked: float
    measured: float
    unit: str = "x"
    at_most: bool = False
    """Whether less is better."""

    @property
    def met(self) -> bool:
        """Whether it is as good as asked."""
        return self.measured <= self.asked if self.at_most else self.measured >= self.asked

    def __str__(self) -> str:
        """Return it as a line."""
        sign = "at most" if self.at_most else "at least"
        asked, measured = (f"{value:,.4g} {self.unit}" for value in (self.asked, self.measured))
        return f"{self.what:<62} {sign} {asked:<9} {measured:>12}  {'met' if self.met else 'NOT MET'}"


def cells_of(record: Mapping[str, Any]) -> list[Cell]:
    """Return the cells of a record."""
    return [Cell(**row) for row in record["cells"]]


def family(cell: Cell) -> str:
    """Return the name of the cell's filters, all composed ones under one."""
    return "composed" if "+" in cell.filters else cell.filters


def lines(cells: list[Cell]) -> Iterator[Line]:
    """Return the summary by codec, filters, level, threads and data, those held out of all tuning last and apart."""
    known = [one for one in cells if not one.held_out]
    held_out = [one for one in cells if one.held_out]
    groups = (
        [("codec", one.codec, one) for one in known]
        + [("filters", family(one), one) for one in known]
        + [("level", str(one.level), one) for one in known]
        + [("threads", str(one.threads), one) for one in known]
        + [("data", one.data, one) for one in known]
        + [("held out", one.data, one) for one in held_out]
    )
    found: dict[str, list[Cell]] = {}
    for kind, name, one in groups:
        found.setdefault(f"{kind} {name}", []).append(one)
    if known:
        found["all"] = known
    if held_out:
        found["all held out"] = held_out
    return (Line.of(what, some) for what, some in found.items())


def lagging(cells: Iterable[Cell]) -> Iterator[tuple[str, float]]:
    """Return the cells in which we are slower, worst first: which direction, and their time over ours."""
    found = [
        (f"{direction} {one.name}", ratio)
        for one in cells
        for direction, ratio in (("compress", one.compress_x), ("decompress", one.decompress_x))
        if ratio < LEAST
    ]
    return iter(sorted(found, key=lambda pair: pair[1]))


def larger(cells: Iterable[Cell]) -> Iterator[tuple[str, float]]:
    """Return the cells in which our chunk is larger, worst first; a size is the same for every number of threads."""
    found = {one.name.split(",")[0]: one.size for one in cells if one.size > LARGEST}
    return iter(sorted(found.items(), key=lambda pair: -pair[1]))


def asked(record: Mapping[str, Any]) -> Iterator[Asked]:
    """Return the figures that were asked for, as far as the record has cells for them."""
    every = cells_of(record)
    cells = [one for one in every if not one.held_out]
    fitting = [one for one in cells if one.size <= LARGEST]
    if fitting:
        yield Asked("compression, mean of all cells of a like size", 1.6, geometric(one.compress_x for one in fitting))
        yield Asked("decompression, mean of all cells", 1.4, geometric(one.decompress_x for one in cells))
    if every:
        yield Asked("compression, least cell", LEAST, min(one.compress_x for one in every))
        yield Asked("decompression, least cell", LEAST, min(one.decompress_x for one in every))
        yield Asked("size, largest cell", LARGEST, max(one.size for one in every), "x", at_most=True)
    for what, reach, some in (
        ("zlib", 2.5, [one for one in cells if one.codec == "zlib"]),
        ("bitshuffle", 1.5, [one for one in cells if one.filters == "bitshuffle"]),
    ):
        if some and what == "zlib":
            yield Asked("zlib, compression", reach, geometric(one.compress_x for one in some))
        if some:
            yield Asked(f"{what}, decompression", reach, geometric(one.decompress_x for one in some))
    stored = [one for one in cells if one.data == "random" and one.level <= 5 and one.threads == 1]
    if stored:
        worst = min(stored, key=lambda one: one.compress)
        copy = record["memory_copy_gb_s"]
        what = f"incompressible, least of levels up to 5 ({worst.codec}-{worst.level} {worst.filters}; copy {copy:.3g})"
        yield Asked(what, 2.5, worst.compress / 1000, "GB/s")
        mean = geometric(one.compress / 1000 for one in stored)
        yield Asked("incompressible, mean of levels up to 5", 2.5, mean, "GB/s")


def print_summary(record: Mapping[str, Any]) -> None:
    """Print all of it."""
    cells = cells_of(record)
    print(f"{'':<22}{'cells':>6}{'compress':>10}{'least':>7}{'decompress':>12}{'least':>7}{'size':>8}")
    for line in lines(cells):
        print(
            f"{line.what:<22}{line.cells:>6}{line.compress:>10.2f}{line.compress_least:>7.2f}"
            f"{line.decompress:>12.2f}{line.decompress_least:>7.2f}{line.size:>8.3f}"
        )
    for title, found in (("slower than 0.95:", lagging(cells)), ("larger than 1.01:", larger(cells))):
        listed = list(found)
        print(f"\n{len(listed)} {title}")
        for name, ratio in listed:
            print(f"    {ratio:.3f} {name}")
    print("\nasked and measured:")
    for one in asked(record):
        print(f"    {one}")
    print(f"\n{len(cells)} cells in {record['seconds']:.0f} s")


if __name__ == "__main__":
    print_summary(read_record(Path(sys.argv[1])))
