"""The layers of the package: imports point down only, and optional packages stay in their places.

The order is the one that ARCHITECTURE.md draws. Imports for type checkers count as well: what a layer names in
its types is what a reader has to know. Within a layer modules may import one another.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import superchunk

PACKAGE = Path(superchunk.__file__).parent

LAYERS = ["choices", "_format", "_store", "_codec", "_integrity", "_schunk", "_array", "entry points", "cli"]
"""From the ground up."""
LAYER_OF = {
    "superchunk": "entry points",
    "superchunk._engine": "choices",
    "superchunk._version": "choices",
    "superchunk.core": "_codec",
    "superchunk.exceptions": "choices",
    "superchunk.meta": "_schunk",
    "superchunk.ndarray": "entry points",
    "superchunk.params": "choices",
    "superchunk.schunk": "_schunk",
    "superchunk.storage": "entry points",
}
"""The modules directly in the package, each an entry point or what every layer needs."""
FOLDERS = {"_api": "entry points", "_display": "_schunk", "_packed": "entry points"}
"""Folders whose layer has another name."""

DOORS_UP = {
    ("superchunk.meta", "superchunk"),  # a value of a metalayer may be a whole frame
    ("superchunk._schunk.pickling", "superchunk"),  # unpickling opens the path again
    ("superchunk.schunk", "superchunk"),  # `superchunk.schunk.open`, a name of python-blosc2
}
"""Imports inside functions that lead to a layer above, and why."""

ALWAYS_THERE = {"msgpack", "numpy", "superchunk"}
OPTIONAL = {
    "click": {"cli"},
    "rich": {"cli"},
    "matplotlib": {"cli/tune_picture", "cli/view_picture"},
    "h5py": {"cli/formats"},
    "hdf5plugin": {"cli/formats"},
    "zarr": {"cli/formats"},
    "blosc2": set(),
    "h5netcdf": set(),
    "iris_sample_data": set(),
    "lz4": set(),
    "zstandard": set(),
    "zfpy": {"_codec/zfp"},
    "ml_dtypes": set(),
}
"""Packages that need not be installed, and the files or folders that may import them."""
NEVER_AT_FIRST = {"blosc2", "h5netcdf", "h5py", "hdf5plugin", "iris_sample_data", "ml_dtypes", "zarr", "zfpy"}
"""Those of them that are imported where they are used, inside a function, even in their places."""


class Import(NamedTuple):
    """A line that imports something."""

    where: str
    what: str
    line: int
    at_first: bool
    """As the module is loaded, and not inside a function or for type checkers only."""
    typed: bool


def module_name(path: Path) -> str:
    parts = ("superchunk", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports_in(node: ast.AST, where: str, *, inside: bool = False, typed: bool = False) -> list[Import]:
    found: list[Import] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            names = [alias.name for alias in child.names]
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{where}:{child.lineno}: a relative import"
            base = child.module or ""
            full = [f"{base}.{alias.name}" for alias in child.names]
            names = sorted({name if name in MODULES or name == "superchunk._engine" else base for name in full})
        else:
            deeper = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            checking = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            found += imports_in(child, where, inside=inside or deeper, typed=typed or checking)
            continue
        found += [Import(where, name, child.lineno, not (inside or typed), typed) for name in names]
    return found


IMPORTS = [
    one for name, path in MODULES.items() for one in imports_in(ast.parse(path.read_text(encoding="utf-8")), name)
]


def layer_of(module: str) -> str:
    if module in LAYER_OF:
        return LAYER_OF[module]
    folder = module.split(".")[1]
    return FOLDERS.get(folder, folder)


def test_every_module_belongs_to_a_layer() -> None:
    assert {layer_of(module) for module in MODULES} == set(LAYERS)
    direct = {module for module in MODULES if module.count(".") == 1 and MODULES[module].name != "__init__.py"}
    assert direct | {"superchunk", "superchunk._engine"} == LAYER_OF.keys()
    assert len(direct) <= 15


def test_imports_point_down_only() -> None:
    ours = [one for one in IMPORTS if one.what.partition(".")[0] == "superchunk"]
    assert len(ours) > len(MODULES)
    upwards = [
        f"{one.where}:{one.line} imports {one.what}"
        for one in ours
        if LAYERS.index(layer_of(one.what)) > LAYERS.index(layer_of(one.where))
        and (one.where, one.what) not in DOORS_UP
    ]
    assert upwards == []


def test_the_doors_upwards_are_in_use_and_open_late() -> None:
    found = {(one.where, one.what): one.at_first for one in IMPORTS}
    assert {door: found.get(door) for door in DOORS_UP} == dict.fromkeys(DOORS_UP, False)


def test_what_serves_tests_and_examples_alone_is_not_in_the_package() -> None:
    """The crash laboratory, the reference decoder and the demo run from a checkout; a wheel has none of them."""
    outside = {"testing", "crashlab", "reference", "demo"}
    assert [name for name in MODULES if outside.intersection(name.split("."))] == []
    assert all(
        (PACKAGE.parents[1] / place).is_dir() for place in ("tests/crashlab", "tests/reference", "examples/demo")
    )


def test_the_command_uses_public_names_only() -> None:
    private = [
        f"{one.where}:{one.line} imports {one.what}"
        for one in IMPORTS
        if one.where.startswith("superchunk.cli")
        and one.what.startswith("superchunk.")
        and one.what.split(".")[1] not in {"cli", "exceptions", "params"}
    ]
    assert private == []


def loop_from(module: str, graph: dict[str, set[str]]) -> list[str]:
    """Return a way that leads from a module back to it, empty without one."""
    trail, done = [[module]], set[str]()
    while trail:
        way = trail.pop()
        for onward in graph.get(way[-1], set()) - done:
            if onward == module:
                return [*way, module]
            done.add(onward)
            trail.append([*way, onward])
    return []


def test_no_module_needs_itself_to_be_loaded() -> None:
    graph: dict[str, set[str]] = {}
    for one in IMPORTS:
        if one.at_first and one.what in MODULES and one.what != "superchunk":
            graph.setdefault(one.where, set()).add(one.what)
    assert [loop for module in graph if (loop := loop_from(module, graph))] == []


def reached_from(module: str, graph: dict[str, set[str]]) -> set[str]:
    """Return the modules to which imports lead from one."""
    reached, ahead = set[str](), [module]
    while ahead:
        onward = graph.get(ahead.pop(), set()) - reached
        reached |= onward
        ahead += onward
    return reached


def test_no_circle_of_imports_has_more_than_two_modules() -> None:
    """With imports for types and those inside functions; the doors and the front's list of all names excepted."""
    graph: dict[str, set[str]] = {}
    for one in IMPORTS:
        front = "superchunk" in {one.where, one.what}
        if one.what in MODULES and not front and (one.where, one.what) not in DOORS_UP:
            graph.setdefault(one.where, set()).add(one.what)
    reached = {module: reached_from(module, graph) for module in graph}
    circles = {tuple(sorted(n for n in reached[m] if m in reached.get(n, ()))) for m in graph if m in reached[m]}
    assert len(reached) > len(MODULES) // 2
    assert [circle for circle in circles if len(circle) > 2] == []


@pytest.mark.parametrize("package", sorted(OPTIONAL))
def test_an_optional_package_is_imported_in_its_places_only(package: str) -> None:
    found = [one for one in IMPORTS if one.what.partition(".")[0] == package]
    places = {one: MODULES[one.where].relative_to(PACKAGE).with_suffix("").as_posix() for one in found}
    elsewhere = [
        f"{place}:{one.line}"
        for one, place in places.items()
        if not any(place == there or place.startswith(f"{there}/") for there in OPTIONAL[package])
    ]
    assert elsewhere == []
    if package in NEVER_AT_FIRST:
        assert [f"{place}:{one.line}" for one, place in places.items() if one.at_first] == []


def test_every_other_package_is_always_there() -> None:
    for_types = {"typing_extensions"}
    others = {
        one.what.partition(".")[0] for one in IMPORTS if not (one.typed and one.what.partition(".")[0] in for_types)
    }
    assert others - set(sys.stdlib_module_names) - OPTIONAL.keys() - ALWAYS_THERE == set()
