"""Records into tables: the page docs/benchmarks.md, the README, the list of all cells, the picture.

``python benchmarks/report.py`` writes them all anew from benchmarks/results. A document marks what is filled in::

    <!-- figures: work -->
    (the table of that name)
    <!-- end of figures -->

so no figure is typed by hand, and a document shows figures of the records that lie beside it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import matrix_summary
import shares_summary
import work_summary
from matrix_summary import Line, cells_of, family, lagging, larger, lines
from pairs import OURS, RESULTS, THEIRS, newest, read_record
from work_summary import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matrix_summary import Asked, Cell

ROOT = Path(__file__).parent.parent
DOCUMENTS = ("docs/benchmarks.md", "README.md")
PICTURE = "docs/benchmarks.png"
ALL_CELLS = "benchmarks/results/matrix.md"
MOST_LISTED = 40
"""Cells that a page lists; all of them are in `ALL_CELLS`."""
DEMO_SHOWN = (
    ("sea surface temperature", "lz4-5 shuffle"),
    ("sea surface temperature", "zstd-5 shuffle+bytedelta"),
    ("monthly surface temperature", "zstd-5 shuffle+bytedelta"),
    ("yearly air temperature", "blosclz-5 bitshuffle"),
    ("potential temperature", "zstd-5 shuffle+bytedelta"),
    ("ocean grid corners", "lz4-5 shuffle"),
)
"""Rows of the demo that the page of benchmarks shows: array and choice."""
SHORT = (
    "save 256 MiB in one call",
    "load 256 MiB in one call",
    "append 1024 MiB, 4 MiB at a time",
    "10 items at random, frame written by blosc2",
    "10 items at random, frame written by superchunk",
    "1,000 items at random, frame written by superchunk",
    "100,000 items at random, frame written by superchunk",
    "assign 1,000 items at random",
    "all of it into a given array, frame written by superchunk",
    "open and close a frame",
    "open and close a frame, time after time",
    "import, over NumPy",
)
"""Rows of the work of users that the README shows; all of them are on the page of benchmarks."""

Records: TypeAlias = dict[str, dict[str, Any]]
"""By name: matrix, shares, work, demo."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Return a table in Markdown whose first columns hold words, the others numbers."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def number(value: float) -> str:
    """Return a figure with three digits or all that stand before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def line_cells(line: Line) -> list[str]:
    """Return the figures of a line: means, and the least in brackets."""
    return [
        f"{line.compress:.2f} ({line.compress_least:.2f})",
        f"{line.decompress:.2f} ({line.decompress_least:.2f})",
        f"{line.size:.3f}",
    ]


def work_surroundings(records: Records) -> str:
    """Say on what the work of users was measured."""
    return surroundings(records, "work")


def surroundings(records: Records, name: str = "matrix") -> str:
    """Say on what a record was measured."""
    record = records[name]
    machine, versions = record["machine"], record["versions"]
    how = "Quick mode: fewer cells and rounds. " if record["quick"] else ""
    named = ", ".join(f"{name} {one}" for name, one in versions.items() if name != "python")
    where = f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"
    return f"{how}{where}; Python {versions['python']}, {named}."


def asked(records: Records) -> str:
    """Return the figures asked for beside those measured."""
    found: list[Asked] = [*matrix_summary.asked(records["matrix"]), *work_summary.asked(records["work"])]
    rows = (
        [
            one.what,
            f"{'at most' if one.at_most else 'at least'} {number(one.asked)} {one.unit}",
            f"{number(one.measured)} {one.unit}",
            "yes" if one.met else "no",
        ]
        for one in found
    )
    return table(["what", "asked", "measured", "met"], rows)


def by_processor(_: Records) -> str:
    """Return the means of the matrix on each processor, the newest record first."""
    found = sorted((read_record(path) for path in RESULTS.glob("*/matrix.json")), key=lambda one: one.get("date", ""))
    rows = []
    for record in reversed(found):
        known = [one for one in cells_of(record) if not one.held_out]
        held_out = [one for one in cells_of(record) if one.held_out]
        name = record["machine"]["processor"]
        day = record.get("date", "earlier")
        rows.append([name, day, "tuned on", *line_cells(Line.of("", known))])
        rows.append([name, day, "held out", *line_cells(Line.of("", held_out))])
    return table(["processor", "day", "data", "compress", "decompress", "size"], rows, words=3)


def by_codec(records: Records) -> str:
    """Return a line for each codec and filter."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    cells = cells_of(records["matrix"])
    known = [one for one in cells if not one.held_out]
    for one in known:
        groups.setdefault((one.codec, family(one)), []).append(one)
    rows = [[codec, filters, *line_cells(Line.of("", some))] for (codec, filters), some in groups.items()]
    rows.append([f"all {len(known)}", "", *line_cells(Line.of("", known))])
    held_out = [one for one in cells if one.held_out]
    if held_out:
        rows.append([f"held out of tuning, {len(held_out)}", "", *line_cells(Line.of("", held_out))])
    return table(["codec", "filters", "compress", "decompress", "size"], rows, words=2)


def by_group(records: Records) -> str:
    """Return the lines by codec, filters, level, threads, data, held out."""
    rows = ([line.what, str(line.cells), *line_cells(line)] for line in lines(cells_of(records["matrix"])))
    return table(["cells of", "count", "compress", "decompress", "size"], rows)


def slower(records: Records) -> str:
    """Return the cells in which we lag."""
    return listed(list(lagging(cells_of(records["matrix"]))), "lags")


def bigger(records: Records) -> str:
    """Return the cells in which our chunk is larger."""
    return listed(list(larger(cells_of(records["matrix"]))), "is larger")


def listed(found: list[tuple[str, float]], does: str) -> str:
    """Return a list of cells, worst first."""
    if not found:
        return f"No cell {does}."
    more = f" The first {MOST_LISTED}:" if len(found) > MOST_LISTED else ""
    items = "\n".join(f"- {ratio:.2f}: {name}" for name, ratio in found[:MOST_LISTED])
    return f"{len(found)} in all.{more}\n\n{items}"


def work(records: Records) -> str:
    """Return the work of users: figures of all, and in brackets how many times better ours is."""
    rows = rows_of(records["work"])
    names = list(dict.fromkeys(name for row in rows for name in row.figures if name != OURS))
    body = []
    for row in rows:
        figures = [
            f"{number(row.figures[name])} ({number(row.ratio(name))})" if name in row.figures else "" for name in names
        ]
        body.append([f"{row.what}, {row.unit}", number(row.figures[OURS]), *figures])
    return table(["what", OURS, *names], body)


def work_short(records: Records) -> str:
    """Return the rows `SHORT` beside the package blosc2 alone."""
    rows = (
        [
            f"{row.what}, {row.unit}",
            number(row.figures[OURS]),
            number(row.figures[THEIRS]),
            f"{row.ratio(THEIRS):.2f}",
        ]
        for row in rows_of(records["work"])
        if THEIRS in row.figures and row.what in SHORT
    )
    return table(["what", OURS, THEIRS, "times better"], rows)


def shares(records: Records) -> str:
    """Return where the time of the cells goes, and what that limits."""
    rows = (
        [
            one.direction,
            one.codec,
            one.filters,
            *(f"{value:.0f}" for value in one[3:9]),
            f"{one.ratio:.2f}",
            f"{one.limit:.2f}" if one.library > one.own else "",
        ]
        for one in shares_summary.shares(records["shares"], records["matrix of shares"])
    )
    head = ["", "codec", "filters", "library", "our codec", "filters", "copies", "engine", "rest", "ratio", "limit"]
    return table(head, rows, words=3)


def demo(records: Records) -> str:
    """Return some rows of the demo."""
    record = records["demo"]
    rows = {(row["array"], f"{row['codec']}-{row['level']} {'+'.join(row['filters'])}"): row for row in record["rows"]}
    body = (
        [
            row["array"],
            row["items"],
            name,
            f"{row['ratio']:.2f}",
            f"{row['compress_mb_per_s']:,.0f}",
            f"{row['decompress_mb_per_s']:,.0f}",
            f"{row['slice_us']:.1f}",
        ]
        for (_, name), row in ((shown, rows[shown]) for shown in DEMO_SHOWN if shown in rows)
    )
    head = ["array", "items", "codec and filters", "ratio", "compress MB/s", "read MB/s", "slice µs"]
    return table(head, body, words=3)


def every_cell(records: Records) -> str:
    """Return the page of all cells."""
    head = ["data", "codec", "level", "filters", "threads", "ratio", "theirs", "size"]
    for direction in ("compress", "decompress"):
        head += [f"{direction} MB/s", "theirs", "x"]
    rows = (
        [
            one.data,
            one.codec,
            str(one.level),
            one.filters,
            str(one.threads),
            f"{one.ratio:.2f}",
            f"{one.ratio_theirs:.2f}",
            f"{one.size:.3f}",
            f"{one.compress:,.0f}",
            f"{one.compress_theirs:,.0f}",
            f"{one.compress_x:.2f}",
            f"{one.decompress:,.0f}",
            f"{one.decompress_theirs:,.0f}",
            f"{one.decompress_x:.2f}",
        ]
        for one in cells_of(records["matrix"])
    )
    text = "How these are measured and read: [docs/benchmarks.md](../../docs/benchmarks.md)."
    return f"# Every cell of the matrix\n\n{text}\n{surroundings(records)}\n\n{table(head, rows, words=5)}\n"


TABLES: dict[str, Callable[[Records], str]] = {
    "surroundings": surroundings,
    "asked": asked,
    "by processor": by_processor,
    "by codec": by_codec,
    "by group": by_group,
    "slower": slower,
    "larger": bigger,
    "work": work,
    "work surroundings": work_surroundings,
    "work short": work_short,
    "shares": shares,
    "demo": demo,
}


def filled(text: str, records: Records) -> str:
    """Return a document with the figures of the records between its marks."""

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}\n{TABLES[match[2]](records)}\n{match[3]}"

    pattern = r"(<!-- figures: ([a-z ]+) -->)\n.*?(<!-- end of figures -->)"
    return re.sub(pattern, fill, text, flags=re.DOTALL)


def newest_records() -> Records:
    """Return the newest records of the suite, and the matrix that belongs to the shares."""
    found = {name: read_record(newest(name)) for name in ("matrix", "shares", "work", "demo")}
    return {**found, "matrix of shares": read_record(newest("shares").parent / "matrix.json")}


def main() -> None:
    """Write all documents anew."""
    import picture

    records = newest_records()
    for name in DOCUMENTS:
        path = ROOT / name
        path.write_text(filled(path.read_text(encoding="utf-8"), records), encoding="utf-8")
    (ROOT / ALL_CELLS).write_text(every_cell(records), encoding="utf-8")
    picture.draw(records["matrix"], ROOT / PICTURE)


if __name__ == "__main__":
    main()
