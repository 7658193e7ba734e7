"""The modules of the Rust crates depend on each other in one direction only."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
GROUP = re.compile(r"\{[^{}]*\}")
PATH = re.compile(r"\b(crate|super|self)((?:::\w+)+)")
Module = tuple[str, ...]


def modules_of(crate: str) -> dict[Module, str]:
    """Return the text of each module, without comments and tests."""
    source = ROOT / crate / "src"
    found: dict[Module, str] = {}
    for path in sorted(source.rglob("*.rs")):
        names = path.relative_to(source).with_suffix("").parts
        if names[-1] in {"tests", "testing", "fuzzing", "interrupts"} or "fuzzing" in names:
            continue
        text = COMMENT.sub("", path.read_text("utf-8")).split("#[cfg(test)]\nmod tests {")[0]
        module = () if names == ("lib",) else names[:-1] if names[-1] == "mod" else names
        found[module] = text
    return found


def paths_in(text: str) -> list[tuple[str, Module]]:
    """Return the paths that a text names, groups in braces taken apart one level deep."""
    flat = text
    for use in re.findall(r"\buse\s+([^;]*);", text):
        for group in GROUP.findall(use):
            stem = use.split(group)[0]
            flat += "".join(f"\n{stem}{name.strip()};" for name in group[1:-1].split(","))
    return [(start, tuple(rest.split("::")[1:])) for start, rest in PATH.findall(flat)]


def resolve(modules: dict[Module, str], here: Module, start: str, path: Module) -> Module:
    """Return the module that a path leads into."""
    base: Module = () if start == "crate" else here if start == "self" else here[:-1]
    while path and path[0] == "super":
        base, path = base[:-1], path[1:]
    while path and (*base, path[0]) in modules:
        base, path = (*base, path[0]), path[1:]
    if not base and path and path[0] in {"Error", "Result"}:
        return ("error",)
    return base


def siblings(modules: dict[Module, str]) -> dict[Module, dict[Module, set[Module]]]:
    """Return, for each module that has any, its children and which of the others each of them uses."""
    graph: dict[Module, dict[Module, set[Module]]] = {}
    for module in modules:
        if module:
            graph.setdefault(module[:-1], {}).setdefault(module, set())
    for module, text in modules.items():
        for start, path in paths_in(text):
            used = resolve(modules, module, start, path)
            common = 0
            while common < min(len(module), len(used)) and module[common] == used[common]:
                common += 1
            if common < min(len(module), len(used)):
                graph[module[:common]][module[: common + 1]].add(used[: common + 1])
    return graph


@pytest.mark.parametrize("crate", ["engine", "io"])
def test_modules_do_not_use_each_other_in_circles(crate: str) -> None:
    modules = modules_of(crate)
    graph = siblings(modules)
    assert len(graph[()]) > 5
    assert sum(len(used) for used in graph[()].values()) > 10, "uses are recognised"
    for parent, children in graph.items():
        try:
            TopologicalSorter(children).prepare()
        except CycleError as error:
            circle = " -> ".join("::".join(module) for module in error.args[1])
            pytest.fail(f"{crate}, in {'::'.join(parent) or 'the root'}: {circle}")


def test_the_engine_knows_no_files_and_no_system() -> None:
    manifest = (ROOT / "engine" / "Cargo.toml").read_text("utf-8")
    for name in ("rustix", "pyo3", "superchunk-io"):
        assert name not in manifest
    for module, text in modules_of("engine").items():
        assert not re.search(r"std::(fs|io|net|os|path)\b", text), "::".join(module)
