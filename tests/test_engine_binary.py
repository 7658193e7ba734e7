"""What the built engine asks of the interpreter that loads it: names of the stable ABI only."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from superchunk import _engine

BINARY = Path(str(_engine.__file__))
ALLOWED = frozenset(
    line
    for line in Path(__file__).with_name("engine_symbols.txt").read_text(encoding="ascii").split("\n")
    if line and not line.startswith("#")
)
DYNSYM = 11
"""Section type of a table of dynamic symbols."""


def imported_names(elf: bytes) -> set[str]:
    """Return the names that a library of 64 bits for Linux leaves to others to define."""
    assert elf[:5] == b"\x7fELF\x02"
    order = "<" if elf[5] == 1 else ">"
    sections_at = struct.unpack_from(order + "Q", elf, 0x28)[0]
    size, count = struct.unpack_from(order + "HH", elf, 0x3A)
    # type, offset and length, link to the section with the names
    sections = [struct.unpack_from(order + "4xI16xQQI", elf, sections_at + n * size) for n in range(count)]
    found = set()
    for kind, at, length, link in sections:
        if kind != DYNSYM:
            continue
        names_at = sections[link][1]
        for symbol in range(at, at + length, 24):
            name, defined_in = struct.unpack_from(order + "I2xH", elf, symbol)
            if defined_in == 0 and name:
                start = names_at + name
                found.add(elf[start : elf.index(b"\0", start)].decode("ascii"))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads libraries of Linux")
def test_the_engine_imports_names_of_the_stable_abi_only() -> None:
    assert ".abi3." in BINARY.name
    names = {name for name in imported_names(BINARY.read_bytes()) if name.lstrip("_").startswith("Py")}
    assert "PyModuleDef_Init" in names, "the table of symbols was read"
    assert sorted(names - ALLOWED) == []
