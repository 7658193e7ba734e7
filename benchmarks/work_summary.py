"""The rows that the work of users gives: a figure for each peer, and how it compares with ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pairs import OURS, THEIRS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pairs import Turns

from matrix_summary import Asked


class Row(NamedTuple):
    """One kind of work."""

    what: str
    unit: str
    figures: dict[str, float]
    """By the peer's name."""
    ratios: dict[str, float] | None = None
    """How many times better ours is than a peer's, round by round; None where the figures were taken once."""
    more: bool = False
    """Whether more is better."""
    asked: float | None = None
    """The figure that was asked for, in the row's unit."""
    asked_ratio: float | None = None
    """The ratio to the package blosc2 that was asked for."""

    @classmethod
    def times(cls, what: str, turns: Turns, unit: str, scale: float, asked: float | None = None) -> Row:
        """Return a row of times."""
        figures = {name: turns.median(name) * scale for name in turns.seconds}
        return cls(what, unit, figures, ratios(turns), asked=asked)

    @classmethod
    def speeds(cls, what: str, turns: Turns, nbytes: int, asked_ratio: float | None = None) -> Row:
        """Return a row of speeds."""
        figures = {name: nbytes / turns.median(name) / 1e9 for name in turns.seconds}
        return cls(what, "GB/s", figures, ratios(turns), more=True, asked_ratio=asked_ratio)

    def ratio(self, name: str) -> float:
        """Return how many times better ours is than a peer's."""
        if self.ratios and name in self.ratios:
            return self.ratios[name]
        ours, theirs = self.figures[OURS], self.figures[name]
        return ours / theirs if self.more else theirs / max(ours, 1e-9)


def ratios(turns: Turns) -> dict[str, float]:
    """Return how many times as long as ours the others take."""
    return {name: turns.ratio(name) for name in turns.seconds if name != OURS}


def rows_of(record: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a record."""
    return [Row(**row) for row in record["rows"]]


def asked(record: Mapping[str, Any]) -> Iterator[Asked]:
    """Return the figures that were asked for."""
    for row in rows_of(record):
        if row.asked is not None:
            yield Asked(row.what, row.asked, row.figures[OURS], row.unit, at_most=not row.more)
        if row.asked_ratio is not None:
            yield Asked(row.what, row.asked_ratio, row.ratio(THEIRS), "x blosc2")


def print_row(row: Row) -> None:
    """Print a row: ours, and each peer with the ratio to ours."""
    others = (f"{name} {value:.4g} ({row.ratio(name):.2f}x)" for name, value in row.figures.items() if name != OURS)
    print(f"{row.what}: {row.figures[OURS]:.4g} {row.unit}; {', '.join(others)}", flush=True)
