"""Reads the JSON value that begins at a place in a text, as models write JSON, and says what had to be put right.

Whether what was read is a call is `shape`'s business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envscaler.errors import NotJson
from envscaler.state import JsonValue, canonical


@dataclass(frozen=True)
class Value:
    """A value that was read."""

    value: JsonValue
    end: int
    """Where the text goes on after it."""
    slips: tuple[str, ...] = ()
    """Kinds of what was put right."""


class Unreadable(ValueError):
    """There is no JSON value."""


class Incomplete(Unreadable):
    """The text ends in the middle of the value."""


def read_json(text: str, start: int, closers: Sequence[str] = ()) -> Value:
    """The value that begins at `start`.

    Trailing commas, single quotes, Python's literals, comments and line breaks in strings leave no doubt about the
    meaning. Of anything worse a guess is made, and marked as one, where the end of the value is certain.

    Args:
        closers: what can stand right after the value, such as a closing tag; before one, missing braces are added.

    Raises:
        Incomplete: if the text ends in the middle of it.
        Unreadable: if it is none, or nothing that could be stored.
    """
    try:
        value, end = _strict(text, start)
        return Value(_storable(value), end)
    except _Twice as twice:
        return Value(_storable(twice.value), twice.end, ("duplicate_key",))
    except (ValueError, RecursionError):
        pass
    reader = _Reader(text, start, closers)
    try:
        value = reader.value()
        return Value(_storable(value), reader.position, tuple(dict.fromkeys(reader.slips)))
    except RecursionError as error:
        raise Unreadable("nested too deeply") from error
    except Incomplete:
        raise  # also before a closer: that may be part of a string which breaks off
    except Unreadable:
        pass
    return _guessed(text, start, closers)


def json_text(value: JsonValue) -> str:
    """JSON as chat templates write it: one line, characters as they are."""
    return json.dumps(value, ensure_ascii=False)


def _storable(value: Any) -> JsonValue:
    try:
        # Numbers beyond JSON's and halves of characters parse, but nothing above could store them.
        json.dumps(canonical(value), ensure_ascii=False).encode()
    except (NotJson, ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from error
    return value


class _Twice(Exception):
    def __init__(self, value: Any, end: int) -> None:
        self.value = value
        self.end = end


def _strict(text: str, start: int) -> tuple[Any, int]:
    twice = False

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        made = dict(members)
        twice = twice or any(made[key] != value for key, value in members)
        return made

    value, end = json.JSONDecoder(object_pairs_hook=pairs, parse_constant=_no_constant).raw_decode(text, start)
    if twice:
        raise _Twice(value, end)
    return value, end


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _end_outside_strings(text: str, start: int, closers: Sequence[str]) -> int | None:
    """Where the first closer stands that is no part of a string; the text's end without one; None in a string."""
    places = "|".join(map(re.escape, closers))
    for found in re.finditer(
        rf'"(?:[^"\\]|\\.)*(?P<closed>"?)|(?P<closer>{places or "(?!)"})', text[start:], re.DOTALL
    ):
        if found["closer"]:
            return start + found.start()
        if not found["closed"]:
            return None
    return len(text.rstrip())


def _guessed(text: str, start: int, closers: Sequence[str]) -> Value:
    if text[start : start + 1] not in ("{", "["):
        raise Unreadable("no JSON")
    end = _end_outside_strings(text, start, closers)
    if end is None:
        raise Incomplete("the text ends in the middle of a string")
    if not text.startswith(tuple(closers), end):
        if text[start:end].count("}") < text[start:end].count("{") or not text[:end].endswith(("}", "]", "`")):
            raise Incomplete("the text ends in the middle of it")
        fence = text.find("\n```", start)
        end = fence if fence >= 0 else end
    # Imported late: few replies need it.
    from json_repair import repair_json

    try:
        value = repair_json(text[start:end], return_objects=True, skip_json_loads=True)
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from error
    if not value or not isinstance(value, dict | list):
        raise Unreadable("no JSON")
    return Value(_storable(value), end, ("guessed_json",))


_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z]+")
_WORDS: dict[str, JsonValue] = {"true": True, "false": False, "null": None}
_PYTHON_WORDS: dict[str, JsonValue] = {"True": True, "False": False, "None": None}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")


class _Reader:
    """Reads JSON with those faults that leave its meaning certain."""

    def __init__(self, text: str, position: int, closers: Sequence[str]) -> None:
        self.text = text
        self.position = position
        self.slips: list[str] = []
        # White space before them is skipped before they are looked for.
        self._closers = tuple(closer.lstrip() for closer in closers)
        self._closing = False

    def value(self) -> JsonValue:
        self._skip()
        character = self._peek()
        if character == "{":
            return self._object()
        if character == "[":
            return self._array()
        if character in "\"'":
            return self._string(character)
        if number := _NUMBER.match(self.text, self.position):
            self.position = number.end()
            return json.loads(number.group())
        word = _WORD.match(self.text, self.position)
        name = word.group() if word is not None else ""
        if name in _WORDS or name in _PYTHON_WORDS:
            self.position += len(name)
            if self.position == len(self.text):
                return _WORDS.get(name, _PYTHON_WORDS.get(name))
            if name in _PYTHON_WORDS:
                self.slips.append("mended_json")
                return _PYTHON_WORDS[name]
            return _WORDS[name]
        raise Unreadable(f"no value at {self.text[self.position : self.position + 20]!r}")

    def _object(self) -> dict[str, JsonValue]:
        made: dict[str, JsonValue] = {}
        self.position += 1
        while not self._ends("}"):
            quote = self._peek()
            if quote not in "\"'":
                raise Unreadable("a key without quotes")
            key = self._string(quote)
            self._skip()
            if self._peek() != ":":
                raise Unreadable("a key without a value")
            self.position += 1
            value = self.value()
            if key in made and made[key] != value:
                self.slips.append("duplicate_key")
            made[key] = value
            self._comma("}")
        return made

    def _array(self) -> list[JsonValue]:
        made: list[JsonValue] = []
        self.position += 1
        while not self._ends("]"):
            made.append(self.value())
            self._comma("]")
        return made

    def _ends(self, bracket: str) -> bool:
        """Whether the container ends here; then its bracket is passed, or added before a closer."""
        self._skip()
        if self._closing or (self._closers and self.text.startswith(self._closers, self.position)):
            self._closing = True
            self.slips.append("missing_brace")
            return True
        if self._peek() == bracket:
            self.position += 1
            return True
        return False

    def _comma(self, bracket: str) -> None:
        self._skip()
        if self._closing or (self._closers and self.text.startswith(self._closers, self.position)):
            return
        character = self._peek()
        if character == ",":
            self.position += 1
            self._skip()
            if self.position < len(self.text) and self.text[self.position] == bracket:
                self.slips.append("mended_json")
        elif character != bracket:
            raise Unreadable("no comma between two values")

    def _string(self, quote: str) -> str:
        if quote == "'":
            self.slips.append("mended_json")
        parts: list[str] = []
        self.position += 1
        while True:
            character = self._peek()
            self.position += 1
            if character == quote:
                return "".join(parts)
            if character == "\\":
                parts.append(self._escaped())
            else:
                if character < " ":
                    self.slips.append("mended_json")
                parts.append(character)

    def _escaped(self) -> str:
        character = self._peek()
        self.position += 1
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "'":
            self.slips.append("mended_json")
            return "'"
        digits = _HEX.match(self.text, self.position) if character == "u" else None
        if digits is None:
            raise Unreadable("an escape that JSON does not have")
        self.position = digits.end()
        half = int(digits.group(), 16)
        low = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})").match(self.text, self.position)
        if 0xD800 <= half < 0xDC00 and low is not None:
            self.position = low.end()
            return chr(0x10000 + ((half - 0xD800) << 10) + (int(low.group(1), 16) - 0xDC00))
        return chr(half)

    def _skip(self) -> None:
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        if "/" in match.group():
            self.slips.append("mended_json")
        self.position = match.end()

    def _peek(self) -> str:
        if self.position >= len(self.text):
            raise Incomplete("the text ends in the middle of it")
        return self.text[self.position]
