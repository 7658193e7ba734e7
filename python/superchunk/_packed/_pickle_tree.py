"""A pickle as a tree of what it says, with nothing in it done.

::

    80 05                     protocol 2 to 5
    8c .. "numpy" 8c .. "dtype" 93          a name: looked up in the list below, never imported
    ...  85  R                              a call: kept as name and arguments, never made
    ...  t  b                               its state: kept beside it
    .                                       the end

A pickle is a program, and the usual interpreter runs whatever it says. This reader knows only the opcodes that NumPy's
arrays and scalars are written with. Names that arrays do not need are refused when they are read. What the tree means
is for `_pickled`.

Source: `pickletools` of Python, for opcodes 2 to 5.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Final

from superchunk.exceptions import FormatError, TruncatedError

__all__ = ["DTYPE", "EXTRA", "FROMBUFFER", "NDARRAY", "RECONSTRUCT", "RECORD", "SCALAR", "Call", "Name", "read_tree"]


@dataclass(frozen=True, slots=True)
class Name:
    """Something that a pickle calls or passes on, by its name."""

    module: str
    name: str


@dataclass(eq=False, slots=True)
class Call:
    """A call that a pickle asks for, with the state to set afterwards."""

    function: Name
    arguments: tuple[Any, ...]
    at: int
    state: Any = None
    made: Any = field(default=None)
    """What `_pickled` made of it, so that shared parts are made once."""


DTYPE: Final = Name("numpy", "dtype")
NDARRAY: Final = Name("numpy", "ndarray")
RECORD: Final = Name("numpy", "record")
FROMBUFFER: Final = Name("numpy._core.numeric", "_frombuffer")
RECONSTRUCT: Final = Name("numpy._core.multiarray", "_reconstruct")
SCALAR: Final = Name("numpy._core.multiarray", "scalar")
EXTRA: Final = "ml_dtypes"
"""The package whose dtypes may be named."""
_ENCODE: Final = Name("_codecs", "encode")
_NOTHING: Final = Name("__builtin__", "bytes")
_NAMES: Final = frozenset({DTYPE, NDARRAY, RECORD, FROMBUFFER, RECONSTRUCT, SCALAR, _ENCODE, _NOTHING})

_PROTOCOLS: Final = range(2, 6)
_STOP: Final = ord(".")
_CONSTANTS: Final = {ord("N"): None, 0x88: True, 0x89: False}
_NUMBERS: Final = {
    ord("J"): struct.Struct("<i"),
    ord("K"): struct.Struct("<B"),
    ord("M"): struct.Struct("<H"),
    ord("G"): struct.Struct(">d"),
}
_TEXTS: Final = {0x8C: "<B", ord("X"): "<I", 0x8D: "<Q"}
_BYTES: Final = {ord("C"): "<B", ord("B"): "<I", 0x8E: "<Q", 0x96: "<Q", ord("U"): "<B", ord("T"): "<i"}
_TUPLES: Final = {ord(")"): 0, 0x85: 1, 0x86: 2, 0x87: 3}
_PUT: Final = {ord("q"): "<B", ord("r"): "<I"}
_GET: Final = {ord("h"): "<B", ord("j"): "<I"}
_LONGEST_INT: Final = 9
_SHOWN: Final = 60


def read_tree(data: memoryview) -> Any:
    """Return what a pickle says: None, bool, int, float, str, list, tuple, dict, or a `Call`.

    Byte strings are memoryviews of `data`.

    Raises
    ------
    FormatError
        It is no pickle, a damaged one, or one with an opcode or a name that arrays do
        not need.

    """
    return _Reader(data).run()


def text_of(value: object) -> str | None:
    """Return a str, or the byte string that Python 2 wrote instead; None for anything else."""
    if isinstance(value, memoryview):
        return bytes(value).decode("latin-1")
    return value if isinstance(value, str) else None


class _Reader:
    """The stack, the memo and the place in the bytes."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Read opcodes up to the end."""
        opener, protocol = self._take(2, "pickle")
        if opener != 0x80 or protocol not in _PROTOCOLS:  # the opcode PROTO
            found = f"bytes {opener:#04x} {protocol:#04x}"
            raise FormatError("pickle", at=0, expected="0x80 and a protocol from 2 to 5", found=found)
        while (code := self._take(1, "pickle opcode")[0]) != _STOP:
            self._step(code)
        if len(self._stack) != 1 or self._marks:
            raise self._bad("one value", f"{len(self._stack)} at the end")
        return self._stack[0]

    def _step(self, code: int) -> None:
        push = self._stack.append
        if code in _TEXTS:
            push(self._text(self._sized(_TEXTS[code])))
        elif code in _BYTES:
            push(self._sized(_BYTES[code]))
        elif code in _NUMBERS:
            form = _NUMBERS[code]
            push(form.unpack(self._take(form.size, "pickle number"))[0])
        elif code in _CONSTANTS:
            push(_CONSTANTS[code])
        elif code in _TUPLES:
            push(tuple(self._pop(_TUPLES[code])))
        elif code in _PUT:
            self._memo[self._number(_PUT[code])] = self._top()
        elif code in _GET:
            self._get(self._number(_GET[code]))
        elif code in _OTHERS:
            _OTHERS[code](self)
        else:
            raise self._bad("an opcode that arrays are written with", f"{code:#04x}")

    # Bytes.

    def _take(self, count: int, what: str) -> memoryview:
        left = len(self._data) - self._at
        if not 0 <= count <= left:
            raise TruncatedError(what, at=self._at, needed=count, got=left)
        self._at += count
        return self._data[self._at - count : self._at]

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self._take(struct.calcsize(form), "pickle number"))[0])

    def _sized(self, form: str) -> memoryview:
        return self._take(self._number(form), "pickle string")

    def _text(self, raw: memoryview) -> str:
        try:
            return str(raw, "utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise self._bad("UTF-8", "other bytes") from None

    def _line(self) -> str:
        start = self._at
        while self._take(1, "pickle name")[0] != ord("\n"):
            if self._at - start > _SHOWN:
                raise self._bad(f"a name of at most {_SHOWN} bytes", "a longer one")
        return self._text(self._data[start : self._at - 1])

    def _bad(self, expected: str, found: str) -> FormatError:
        return FormatError("pickle", at=self._at, expected=expected, found=found)

    # The stack.

    def _top(self) -> Any:
        if len(self._stack) <= (self._marks[-1] if self._marks else 0):
            raise self._bad("a value on the stack", "none")
        return self._stack[-1]

    def _pop(self, count: int) -> list[Any]:
        floor = self._marks[-1] if self._marks else 0
        if len(self._stack) - floor < count:
            raise self._bad(f"{count} values on the stack", str(len(self._stack) - floor))
        start = len(self._stack) - count
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def _pop_marked(self) -> list[Any]:
        if not self._marks:
            raise self._bad("a mark on the stack", "none")
        values = self._pop(len(self._stack) - self._marks[-1])
        self._marks.pop()
        return values

    def _get(self, number: int) -> None:
        if number not in self._memo:
            raise self._bad(f"something remembered as {number}", "nothing")
        self._stack.append(self._memo[number])

    # Opcodes.

    def _frame(self) -> None:
        self._number("<Q")  # only says how much to read ahead

    def _memoize(self) -> None:
        self._memo[len(self._memo)] = self._top()

    def _mark(self) -> None:
        self._marks.append(len(self._stack))

    def _tuple(self) -> None:
        self._stack.append(tuple(self._pop_marked()))

    def _list(self) -> None:
        self._stack.append([])

    def _dict(self) -> None:
        self._stack.append({})

    def _append(self) -> None:
        self._extend(self._pop(1))

    def _appends(self) -> None:
        self._extend(self._pop_marked())

    def _extend(self, values: list[Any]) -> None:
        target = self._top()
        if not isinstance(target, list):
            raise self._bad("a list", type(target).__name__)
        target.extend(values)

    def _setitem(self) -> None:
        self._update(self._pop(2))

    def _setitems(self) -> None:
        self._update(self._pop_marked())

    def _update(self, values: list[Any]) -> None:
        target = self._top()
        keys = [text_of(key) for key in values[::2]]
        if not isinstance(target, dict) or len(values) % 2 or None in keys:
            raise self._bad("a dict with keys of text", "something else")
        target.update(zip(keys, values[1::2], strict=True))

    def _long(self) -> None:
        size = self._number("<B")
        if size > _LONGEST_INT:
            raise self._bad(f"an integer of at most {_LONGEST_INT} bytes", f"{size} bytes")
        self._stack.append(int.from_bytes(self._take(size, "pickle number"), "little", signed=True))

    def _global(self) -> None:
        self._name(self._line(), self._line())

    def _stack_global(self) -> None:
        self._name(*self._pop(2))

    def _name(self, module: object, name: object) -> None:
        if isinstance(module, str) and isinstance(name, str):
            found = Name(module.replace("numpy.core.", "numpy._core."), name)
            if found in _NAMES or found.module == EXTRA:
                self._stack.append(found)
                return
        shown = f"{module}.{name}" if isinstance(module, str) and isinstance(name, str) else "no name"
        raise self._bad("a name that arrays need; nothing else is called", ascii(shown[:_SHOWN]))

    def _reduce(self) -> None:
        function, arguments = self._pop(2)
        if not isinstance(function, Name) or not isinstance(arguments, tuple):
            raise self._bad("a name and arguments", f"{type(function).__name__} and {type(arguments).__name__}")
        if function == _ENCODE:
            self._stack.append(self._encoded(*arguments[:2]))
            return
        if function == _NOTHING and not arguments:  # an empty byte string by protocol 2
            self._stack.append(memoryview(b""))
            return
        self._stack.append(Call(function, arguments, self._at))

    def _encoded(self, text: object = None, how: object = None) -> memoryview:
        """Return the bytes that protocol 2 writes as text."""
        if not isinstance(text, str) or how != "latin1":
            raise self._bad("text in latin1", "something else")
        try:
            return memoryview(text.encode("latin-1"))
        except UnicodeEncodeError:
            raise self._bad("text in latin1", "other characters") from None

    def _build(self) -> None:
        (state,) = self._pop(1)
        target = self._top()
        if not isinstance(target, Call) or target.state is not None or not isinstance(state, tuple):
            raise self._bad("something whose state is set once", type(target).__name__)
        target.state = state


_OTHERS: Final = {
    0x95: _Reader._frame,
    0x94: _Reader._memoize,
    ord("("): _Reader._mark,
    ord("t"): _Reader._tuple,
    ord("]"): _Reader._list,
    ord("}"): _Reader._dict,
    ord("a"): _Reader._append,
    ord("e"): _Reader._appends,
    ord("s"): _Reader._setitem,
    ord("u"): _Reader._setitems,
    0x8A: _Reader._long,
    ord("c"): _Reader._global,
    0x93: _Reader._stack_global,
    ord("R"): _Reader._reduce,
    ord("b"): _Reader._build,
}
