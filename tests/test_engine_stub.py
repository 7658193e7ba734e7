"""The stub of the engine and the built module say the same."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import superchunk
from superchunk import _engine

STUB = ast.parse((Path(superchunk.__file__).parent / "_engine.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}


def public(obj: object) -> set[str]:
    return {name for name in dir(obj) if not name.startswith("_")}


def parameters(node: ast.FunctionDef) -> list[tuple[str, bool, bool]]:
    """Return name, whether keyword-only, and whether there is a default, of each parameter but self and cls."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    ndefaults = len(args.defaults)
    out = [(arg.arg, False, n >= len(positional) - ndefaults) for n, arg in enumerate(positional)]
    out += [(arg.arg, True, value is not None) for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return [one for one in out if one[0] not in {"self", "cls"}]


def built_parameters(function: object) -> list[tuple[str, bool, bool]]:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    return [
        (name, one.kind is one.KEYWORD_ONLY, one.default is not one.empty)
        for name, one in signature.parameters.items()
        if name != "self"
    ]


def test_the_stub_names_all_that_the_module_has_and_nothing_else() -> None:
    assert public(_engine) == set(CLASSES) | set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_take_what_the_stub_says(name: str) -> None:
    assert built_parameters(getattr(_engine, name)) == parameters(FUNCTIONS[name])


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes_have_the_members_that_the_stub_says(name: str) -> None:
    members = {
        node.target.id
        for node in CLASSES[name].body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    methods = {node.name: node for node in CLASSES[name].body if isinstance(node, ast.FunctionDef)}
    built = getattr(_engine, name)
    assert public(built) == members | {method for method in methods if not method.startswith("_")}
    for method, node in methods.items():
        target = built if method == "__new__" else getattr(built, method)
        assert built_parameters(target) == parameters(node), method


@pytest.mark.parametrize("name", sorted(FUNCTIONS) + sorted(CLASSES))
def test_help_answers_for_everything(name: str) -> None:
    assert getattr(_engine, name).__doc__
