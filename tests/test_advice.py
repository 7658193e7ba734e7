"""What messages advise exists: functions, keywords, options, commands and extras, and following the advice works.

All texts of the package but its docstrings are looked through, so that a name that changes changes in messages too.
"""

from __future__ import annotations

import ast
import builtins
import copy
import dataclasses
import inspect
import pickle
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import corpus
import numpy as np
import pytest
from cli_runner import fail, succeed

import superchunk
from superchunk import NDArray, NDField, SChunk
from superchunk.cli.app import commands
from superchunk.params import CParams, DParams, Storage

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(superchunk.__file__).parent
EXTRAS = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
OWNERS = (superchunk, SChunk, NDArray, NDField, superchunk.VlMeta, superchunk.Meta, CParams, dataclasses, np, builtins)
"""Where a function that a message names may be."""


class Text(NamedTuple):
    """A text of the package."""

    where: str
    text: str


def texts() -> Iterator[Text]:
    """Yield the texts of the package that are no docstrings; the parts of an f-string joined by ``{}``."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "testing" in path.parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                skipped |= {id(part) for part in node.values}
        for node in ast.walk(tree):
            where = f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
                yield Text(where, "".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
                yield Text(where, node.value)


PROSE = [one for one in texts() if " " in one.text and not re.match(r"<|([A-Z][A-Za-z]*|{})\((?:\w+=)?{}", one.text)]
"""All but HTML and what `repr` returns."""


def found(pattern: str) -> list[tuple[str, re.Match[str]]]:
    """Return where a pattern stands in the prose."""
    return [(f"{one.where}: {one.text!r}", match) for one in PROSE for match in re.finditer(pattern, one.text)]


def called(name: str) -> object:
    """Return what a message calls by its name, None if there is none such."""
    last = name.rpartition(".")[2]
    return next((getattr(owner, last) for owner in OWNERS if hasattr(owner, last)), None)


def keywords_of(function: Any) -> set[str]:
    """Return the keywords that a function takes; the fields of parameters if it takes them all together."""
    parameters = inspect.signature(function).parameters
    rest = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    fields = {*Storage.__dataclass_fields__, *CParams.__dataclass_fields__}
    return set(parameters) | (fields if rest else set())


def test_extras_that_messages_name_exist() -> None:
    named = found(r"superchunk\[([^\]{]+)\]")
    assert {match[1] for _, match in named} >= {"cli", "zfp"}
    assert [where for where, match in named if match[1] not in EXTRAS] == []


CALL = r"(?<![\w.'\"`])((?:[A-Za-z_][A-Za-z_0-9]*\.)*[a-z_A-Z][A-Za-z_0-9]*)\(([^()]*)\)"


def test_functions_and_keywords_that_messages_name_exist() -> None:
    calls = found(CALL)
    names = {match[1] for _, match in calls}
    assert {"open", "repair", "to_cframe", "from_cframe", "append_data"} <= names
    assert [where for where, match in calls if not callable(called(match[1]))] == []
    keywords = [(where, match[1], name) for where, match in calls for name in re.findall(r"\b([a-z_]+)=", match[2])]
    assert {("open", "recover"), ("SChunk", "mode")} <= {
        (function.rpartition(".")[2], name) for _, function, name in keywords
    }
    assert [where for where, function, name in keywords if name not in keywords_of(called(function))] == []


def test_keywords_that_messages_name_without_a_call_exist() -> None:
    doors = (superchunk.open, SChunk, superchunk.zeros, superchunk.asarray, superchunk.from_cframe, superchunk.verify)
    known = set[str]().union(*map(keywords_of, doors))
    known |= {*CParams.__dataclass_fields__, *DParams.__dataclass_fields__, *keywords_of(superchunk.repair)}
    named = found(r"(?<![\w.(<-])([a-z][a-z_]+)=(?:True|False|None|'\w+'|\"\w+\"|[0-9])(?![^(]*\))")
    assert {match[1] for _, match in named} >= {"mode", "locking"}
    assert [where for where, match in named if match[1] not in known] == []


def test_options_and_commands_that_messages_name_exist() -> None:
    options = {"--help", "--version"}
    for command in commands.commands.values():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                options |= {*parameter.opts, *parameter.secondary_opts}
    named = found(r"(?<![\w/-])(--[a-z]+(?:-[a-z]+)*)\b")
    assert {match[1] for _, match in named} >= {"--force", "--zarr-format"}
    assert [where for where, match in named if match[1] not in options] == []
    ours = found(r"(?:`|which |; )superchunk ([a-z]+)")
    assert {match[1] for _, match in ours} >= {"convert"}
    assert [where for where, match in ours if match[1] not in commands.commands] == []


# Following it.


def test_data_for_a_container_that_has_some_can_go_there_as_the_message_says(tmp_path: Path) -> None:
    path = str(tmp_path / "a.b2frame")
    SChunk(data=b"12345678", urlpath=path).close()
    with pytest.raises(
        OSError, match=r"use mode='w' to replace it, or open\(\) and append_data\(\) or s\[a:b\] = data"
    ):
        SChunk(data=b"abc", urlpath=path)
    with superchunk.open(path, mode="a") as s:
        s.append_data(b"abcdefgh")
        s[0:2] = b"ab"
        assert s[:] == b"ab345678abcdefgh"
    SChunk(data=b"abc", urlpath=path, mode="w").close()
    assert superchunk.open(path)[:] == b"abc"


def test_an_array_at_the_path_of_a_new_one_can_be_replaced_or_used(tmp_path: Path) -> None:
    path = str(tmp_path / "a.b2nd")
    superchunk.zeros(3, urlpath=path).schunk.close()
    with pytest.raises((OSError, ValueError), match=r"use mode='w' to replace it, or open\(\) to use it"):
        superchunk.ones(3, urlpath=path)
    assert superchunk.open(path)[...].tolist() == [0, 0, 0]
    superchunk.ones(3, urlpath=path, mode="w").schunk.close()
    assert superchunk.open(path)[...].tolist() == [1, 1, 1]


def test_what_cannot_be_pickled_goes_as_a_frame() -> None:
    array = superchunk.asarray(np.arange(5))
    with pytest.raises(TypeError, match=r"use to_cframe\(\) and from_cframe\(\)"):
        pickle.dumps(array)
    assert superchunk.from_cframe(array.to_cframe())[...].tolist() == [0, 1, 2, 3, 4]
    assert copy.copy(array)[...].tolist() == [0, 1, 2, 3, 4]


def test_a_mapped_directory_opens_by_its_mode(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    SChunk(data=b"abc", urlpath=path, contiguous=False).close()
    with pytest.raises(ValueError, match="cannot be mapped; use mode"):
        superchunk.open(path, mmap_mode="r")
    assert superchunk.open(path, mode="r")[:] == b"abc"


def test_metalayers_are_listed_as_the_message_says() -> None:
    s = SChunk(meta={"a": 1})
    with pytest.raises(NotImplementedError, match=r"use meta\[:\]\.items\(\)"):
        s.meta.items()
    assert list(s.meta[:].items()) == [("a", 1)]
    with pytest.raises(NotImplementedError, match=r"use meta\[:\]\.values\(\)"):
        s.meta.values()
    assert list(s.meta[:].values()) == [1]


@corpus.parametrize_legacy()
def test_the_frame_of_an_old_writer_is_converted_as_the_message_says(entry: Any, tmp_path: Path) -> None:
    old = tmp_path / "old.b2frame"
    old.write_bytes(entry["path"].read_bytes())
    whole = superchunk.open(old)
    try:
        superchunk.open(old, mode="a").close()
    except superchunk.ReadOnlyError as error:
        assert "convert it with `superchunk convert OLD NEW`" in str(error)  # noqa: PT017  (some are no older than today's)
    succeed("convert", old, tmp_path / "new.b2frame")
    with superchunk.open(tmp_path / "new.b2frame", mode="a") as new:
        assert getattr(new, "schunk", new).nbytes == getattr(whole, "schunk", whole).nbytes


def test_the_command_does_what_its_errors_advise(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(9, dtype=">i4"))
    succeed("compress", tmp_path / "a.npy", "-o", tmp_path / "a.b2frame")
    assert "use --force to replace it" in fail(1, "compress", tmp_path / "a.npy", "-o", tmp_path / "a.b2frame")
    succeed("compress", tmp_path / "a.npy", "-o", tmp_path / "a.b2frame", "--force")
    assert "superchunk convert compresses it anew, bench --tune measures it, --raw reads its bytes" in fail(
        1, "compress", tmp_path / "a.b2frame", "-o", tmp_path / "b.b2frame"
    )
    succeed("compress", tmp_path / "a.b2frame", "--raw", "-o", tmp_path / "b.b2frame")
    assert "--zarr-format 2 does" in fail(1, "convert", tmp_path / "a.npy", tmp_path / "a.zarr", "--zarr-format", "3")
    succeed("convert", tmp_path / "a.npy", tmp_path / "a.zarr", "--zarr-format", "2")
