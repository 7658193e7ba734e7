"""Python literals as text to values, within limits, without running anything.

::

    value  = string | integer | True | False | None | list | tuple | dict
    string = 'text' or "text", escapes as in Python, no prefixes

That is all that dtypes are spelled with. `ast.literal_eval` reads more, and has no limit of
its own on memory and depth. Knows nothing of dtypes.

Source: docs/format/b2nd.md, "The dtype text".
"""

from __future__ import annotations

import re
import sys
from typing import Final, TypeAlias

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "Literal", "parse"]

Literal: TypeAlias = "str | int | list[Literal] | tuple[Literal, ...] | dict[str, Literal] | None"
"""What a text may say."""

MAX_LENGTH: Final = 1 << 18
"""Most characters of a text."""

MAX_DEPTH: Final = 32
"""Most brackets within each other."""

# Compiled when a text is read: few dtypes have fields.
_NEXT = r"""[ ]*(?:
        (?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
      | (?P<number>-?[0-9]{1,19}(?![0-9A-Za-z_.]))
      | (?P<word>True|False|None)(?![0-9A-Za-z_])
      | (?P<sign>[\[\](){},:])
      | (?P<end>$)
    )"""
_ESCAPE = r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)"
_WORDS = {"True": True, "False": False, "None": None}
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_SURROGATES = range(0xD800, 0xE000)
_CLOSING = {"[": "]", "(": ")", "{": "}"}


def parse(text: str) -> Literal:
    """Return the value that a text says.

    Raises
    ------
    ValueError
        It is no such literal, or exceeds `MAX_LENGTH` or `MAX_DEPTH`.

    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"expected at most {MAX_LENGTH} characters, found {len(text)}")
    reader = _Reader(text)
    value = reader.value(0)
    reader.expect("")
    return value


class _Reader:
    """A text and the token that is next in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._token = re.compile(_NEXT, re.VERBOSE)
        self._next = 0
        self.advance()

    def advance(self) -> None:
        """Go to the next token."""
        self.at = self._next
        match = self._token.match(self._text, self.at)
        if match is None:
            raise self.unexpected()
        self.kind = match.lastgroup
        self.word = match[match.lastgroup or 0]
        self._next = match.end()

    def unexpected(self) -> ValueError:
        """Return the error for what is here."""
        return ValueError(f"expected a literal, found {self._text[self.at : self.at + 20]!r} at character {self.at}")

    def expect(self, sign: str) -> None:
        """Step over a sign, which must stand here; an empty one is the end."""
        if self.word != sign or self.kind not in {"sign", "end"}:
            raise self.unexpected()
        if sign:
            self.advance()

    def value(self, depth: int) -> Literal:
        """Read a value; `depth` brackets are open."""
        if self.kind == "sign" and self.word in _CLOSING:
            if depth >= MAX_DEPTH:
                raise ValueError(f"expected at most {MAX_DEPTH} brackets within each other, at character {self.at}")
            return self.bracket(depth + 1)
        kind, word = self.kind, self.word
        if kind in {"sign", "end"}:
            raise self.unexpected()
        found: Literal = _unescape(word) if kind == "string" else int(word) if kind == "number" else _WORDS[word]
        self.advance()
        return found

    def bracket(self, depth: int) -> Literal:
        """Read a list, tuple or dict, or a value in parentheses."""
        opening = self.word
        closing = _CLOSING[opening]
        self.advance()
        items: list[Literal] = []
        pairs: dict[str, Literal] = {}
        comma = True
        while not (self.kind == "sign" and self.word == closing):
            if not comma:
                raise self.unexpected()
            if opening == "{":
                key = self.value(depth)
                if not isinstance(key, str):
                    raise TypeError(f"expected text as a key, found {key!r}")
                self.expect(":")
                pairs[key] = self.value(depth)
            else:
                items.append(self.value(depth))
            comma = self.kind == "sign" and self.word == ","
            if comma:
                self.advance()
        self.advance()
        if opening == "{":
            return pairs
        if opening == "[":
            return items
        return tuple(items) if comma or len(items) != 1 else items[0]


def _unescape(token: str) -> str:
    """Return what a string in quotes says."""
    return re.sub(_ESCAPE, _meaning, token[1:-1]) if "\\" in token else token[1:-1]


def _meaning(match: re.Match[str]) -> str:
    """Return the character for an escape."""
    escape = match[1]
    if len(escape) > 1:
        number = int(escape[1:], 16)
        if number > sys.maxunicode or number in _SURROGATES:
            raise ValueError(f"expected a character, found \\{escape}")
        return chr(number)
    if escape not in _SHORT:
        raise ValueError(f"expected an escape of Python's, found \\{escape}")
    return _SHORT[escape]
