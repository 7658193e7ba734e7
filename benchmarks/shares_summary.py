"""What the shares of a cell's time limit.

What a codec's library takes, we cannot make faster but by giving it less to do. So the *limit* of a cell is the
ratio to the package blosc2 that it would have if everything that is not the library's cost no more than one copy of
the data in memory: with our time t, the library's share L and the time c of a copy, ``ratio * t / (L * t + c)``. A
figure that was asked for and lies beyond the limit is out of reach with that library, whatever we do around it.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from matrix_summary import cells_of, family
from pairs import geometric, newest, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matrix_summary import Cell


class Share(NamedTuple):
    """The shares of some cells in one direction: means, in hundredths, and the ratio and its limit."""

    direction: str
    codec: str
    filters: str
    library: float
    own: float
    """What we wrote ourselves of a codec."""
    our_filters: float
    copies: float
    engine: float
    rest: float
    """The system, and the interpreter."""
    ratio: float
    limit: float


def limit(cell: Cell, direction: str, library: float, copy: float) -> float:
    """Return the limit of a cell's ratio; `copy` in GB/s."""
    ratio, speed = getattr(cell, f"{direction}_x"), getattr(cell, direction)
    return float(ratio / min(1.0, library + speed / 1000 / copy))


def shares(record: Mapping[str, Any], matrix: Mapping[str, Any]) -> Iterator[Share]:
    """Return the shares of each codec and filter, in either direction; held-out data are left out."""
    cells = {
        (one.data, one.codec, one.level, one.filters): one
        for one in cells_of(matrix)
        if one.threads == 1 and not one.held_out
    }
    groups: dict[tuple[str, str, str], list[tuple[Cell, Mapping[str, Any]]]] = {}
    for row in record["cells"]:
        cell = cells.get((row["data"], row["codec"], row["level"], row["filters"]))
        if cell and row["samples"]:
            groups.setdefault((row["direction"], cell.codec, family(cell)), []).append((cell, row))
    copy = matrix["memory_copy_gb_s"]
    for (direction, codec, filters), found in sorted(groups.items()):
        parts = {
            part: 100 * fmean(row["shares"][part] for _, row in found)
            for part in ("library", "own", "filters", "copies", "engine", "system", "rest")
        }
        yield Share(
            direction,
            codec,
            filters,
            parts["library"],
            parts["own"],
            parts["filters"],
            parts["copies"],
            parts["engine"],
            parts["system"] + parts["rest"],
            geometric(getattr(cell, f"{direction}_x") for cell, _ in found),
            geometric(limit(cell, direction, row["shares"]["library"], copy) for cell, row in found),
        )


def print_shares(record: Mapping[str, Any]) -> None:
    """Print the table, with the ratios of the record of the matrix."""
    print(
        f"{'':<32}{'library':>8}{'own':>7}{'filters':>8}{'copies':>8}{'engine':>8}{'rest':>6}{'ratio':>7}{'limit':>7}"
    )
    for one in shares(record, read_record(newest("shares").parent / "matrix.json")):
        numbers = "".join(f"{value:>{width}.0f}" for value, width in zip(one[3:9], (8, 7, 8, 8, 8, 6), strict=True))
        print(f"{one.direction:<12}{one.codec:<9}{one.filters:<11}{numbers}{one.ratio:>7.2f}{one.limit:>7.2f}")
