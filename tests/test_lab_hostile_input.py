"""Hostile and damaged input ends in a value or in an error of the family, whatever the entry point."""

from __future__ import annotations

from labs import hostile_input


def test_only_errors_of_the_family_come_out_of_damaged_input() -> None:
    outcome = hostile_input.run(cases=320, seed=11)
    assert outcome.failures == {}
    assert outcome.cases == 320
    called = {name for name in outcome.calls if not name.endswith(" raised")}
    assert {"from_cframe", "open {}", "load_array", "unpack", "verify", "NDArray[...]", "VlMeta[name]"} <= called
    assert sum(count for name, count in outcome.calls.items() if name.endswith(" raised")) > 320


def test_the_laboratory_reports_what_is_no_error_of_the_family() -> None:
    outcome = hostile_input.Outcome()
    for number in range(2):
        outcome.tried("door", lambda: dict[str, int]()["absent"], f"input {number}")
    assert list(outcome.failures.values()) == ["input 0"]
    assert next(iter(outcome.failures)).startswith("door: KeyError at ")
