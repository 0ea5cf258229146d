"""Compares what a recorded episode saw with what its replay saw, and maps created ids onto each other.

Pure: what depends on chance or on the clock is asked of whoever can play it again (`volatile`).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Literal

from envscaler.errors import NotJson
from envscaler.state import JsonValue, canonical, encode, escape

Likeness = Literal["equal", "ids", "clock", "different"]
"""`ids`: equal when created ids are mapped; `clock`: equal but for those and for values of the clock."""

_WORD = re.compile(r"[\w.+-]*\w")
_DIGITS = re.compile(r"\d")
_LONG_NUMBER = re.compile(r"\d{6}")
_SHORTEST_INSIDE = 6
"""Characters that an id must have to be replaced inside a longer word."""
_SHORTEST_WORD = 4
"""Characters that a word of a sentence must have to be taken for an id."""
_SMALLEST_NUMBER = 1000
"""Smaller numbers are counts and amounts, even where chance made them."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One place in which the recorded value and ours differ."""

    pointer: str
    recorded: JsonValue
    ours: JsonValue


@dataclass
class Ids:
    """Ids that were created in the recorded episode and in its replay, mapped onto each other as they appear."""

    ours: dict[str | int, str | int] = field(default_factory=dict)
    """Recorded id → the replay's."""
    recorded: dict[str | int, str | int] = field(default_factory=dict)
    """The replay's id → the recorded one."""

    def learn(self, recorded: JsonValue, ours: JsonValue) -> bool:
        """Map one value onto another; False when one of them is mapped already, onto something else.

        Texts are mapped word by word, so that the id in "created 3f2a" is learned as well.
        """
        pairs = list(_words(recorded, ours))
        for one, other in pairs:
            # One that is an id of ours was mapped onto it already, and is not this one.
            if one in self.recorded or self.ours.get(one, other) != other or self.recorded.get(other, one) != one:
                return False
        for one, other in pairs:
            self.ours[one] = other
            self.recorded[other] = one
        return True

    def as_ours(self, value: JsonValue) -> JsonValue:
        """A recorded value with the ids that the replay has for it."""
        return _replaced(value, self.ours)

    def as_recorded(self, value: JsonValue) -> JsonValue:
        """A value of the replay with the recorded ids."""
        return _replaced(value, self.recorded)


def recorded_value(text: str, ours: JsonValue) -> JsonValue:
    """What a recorded observation says: the `str()` of a result, or its JSON text as ours are; else the text itself.

    Args:
        ours: the replay's result; where that is a text the recorded one is taken for a text as well.
    """
    if isinstance(ours, str):
        return text
    for read in (ast.literal_eval, json.loads):
        try:
            return canonical(read(text))
        # A set of sets is no literal, but a fault of its type.
        except (TypeError, ValueError, SyntaxError, MemoryError, RecursionError, NotJson):
            continue
    return text


def differences(recorded: JsonValue, ours: JsonValue, pointer: str = "") -> Iterator[Pair]:
    """The places in which two values differ. Keys that only one of them has are paired in their order."""
    if isinstance(recorded, dict) and isinstance(ours, dict) and len(recorded) == len(ours):
        left = [key for key in recorded if key not in ours]
        right = [key for key in ours if key not in recorded]
        for key, other in zip(left, right, strict=True):
            yield Pair(f"{pointer}/{escape(key)}", key, other)
            yield from differences(recorded[key], ours[other], f"{pointer}/{escape(key)}")
        for key, part in recorded.items():
            if key in ours:
                yield from differences(part, ours[key], f"{pointer}/{escape(key)}")
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for index, (one, other) in enumerate(zip(recorded, ours, strict=True)):
            yield from differences(one, other, f"{pointer}/{index}")
    elif encode(recorded) != encode(ours):
        yield Pair(pointer, recorded, ours)


def moment_of(value: JsonValue) -> datetime | None:
    """The time that a value tells: ISO 8601 text, or seconds or milliseconds since 1970; None when it is no time."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        seconds = value / 1000 if value > 1e11 else value
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None) if 1e9 <= seconds < 1e10 else None
    if not isinstance(value, str) or not 8 <= len(value) <= 40:
        return None
    for read in (datetime.fromisoformat, _from_date):
        try:
            return read(value.strip()).replace(tzinfo=None)
        except ValueError:
            continue
    return None


def alike(recorded: JsonValue, ours: JsonValue) -> bool:
    """Whether two values that chance or the clock made can be the same thing said with other ids, numbers or times.

    Sentences must agree in every word that holds no digit: "created 3f2a" is never "user not found".
    """
    if isinstance(recorded, str) and isinstance(ours, str):
        left, right = _WORD.findall(recorded), _WORD.findall(ours)
        if len(left) == len(right) == 1:
            return True
        return (
            len(left) == len(right)
            and _WORD.sub("", recorded) == _WORD.sub("", ours)
            and all(
                one == other or (_DIGITS.search(one) and _DIGITS.search(other))
                for one, other in zip(left, right, strict=True)
            )
        )
    if isinstance(recorded, bool) or isinstance(ours, bool):
        return isinstance(recorded, bool) and isinstance(ours, bool)
    if isinstance(recorded, (int, float)) and isinstance(ours, (int, float)):
        return True
    return recorded is None or ours is None or type(recorded) is type(ours)


def is_clock_id(recorded: JsonValue, ours: JsonValue) -> bool:
    """Whether two values that the clock made are ids: one word with a long number in it, and no time that they tell."""
    return all(
        isinstance(value, str)
        and not re.search(r"\s", value)
        and _LONG_NUMBER.search(value) is not None
        and moment_of(value) is None
        for value in (recorded, ours)
    )


def same_exception(recorded: str, kind: str, message: str) -> bool:
    """Whether a recorder's traceback ends in that exception: same type, same message."""
    name, _, said = _exception(recorded).partition(": ")
    if name.rsplit(".", 1)[-1].rstrip(":") != kind:
        return False
    # Messages of ours are cut at a limit; the interpreter's traceback appends suggestions that are no part of one.
    return said.strip() == message.strip() or (
        said.startswith(message.removesuffix("…")) and (message.endswith("…") or "Did you mean" in said)
    )


def _exception(traceback: str) -> str:
    """The exception of a traceback, with all lines of its message."""
    lines = traceback.rstrip().splitlines()
    start = 0
    for index, line in enumerate(lines):
        if line.startswith(("  ", "Traceback ", "Error: <Exception>")):
            start = index + 1
    return "\n".join(lines[start:]) if start < len(lines) else lines[-1] if lines else ""


def _from_date(text: str) -> datetime:
    day = date.fromisoformat(text)
    return datetime(day.year, day.month, day.day)


def _words(recorded: JsonValue, ours: JsonValue) -> Iterator[tuple[str | int, str | int]]:
    """The ids in two values that differ: words that hold a digit and tell no time, and numbers that are no counts."""
    if isinstance(recorded, str) and isinstance(ours, str):
        left, right = _WORD.findall(recorded), _WORD.findall(ours)
        if len(left) == len(right) and _WORD.sub("", recorded) == _WORD.sub("", ours):
            shortest = 1 if len(left) == 1 else _SHORTEST_WORD
            for one, other in zip(left, right, strict=True):
                if one != other and min(len(one), len(other)) >= shortest and _may_be_id(one, other):
                    yield one, other
    elif type(recorded) is int and type(ours) is int and min(recorded, ours) >= _SMALLEST_NUMBER:
        yield recorded, ours


def _may_be_id(one: str, other: str) -> bool:
    digits = _DIGITS.search(one) or _DIGITS.search(other)
    return bool(digits) and not (moment_of(one) and moment_of(other))


def _replaced(value: JsonValue, ids: dict[str | int, str | int]) -> JsonValue:
    if not ids:
        return value
    if isinstance(value, dict):
        return {str(_replaced(key, ids)): _replaced(part, ids) for key, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, ids) for part in value]
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return value
    if value in ids:
        return ids[value]
    if isinstance(value, str):
        return _WORD.sub(lambda word: str(_of_word(word.group(), ids)), value)
    return value


def _of_word(word: str, ids: dict[str | int, str | int]) -> str:
    if word in ids:
        return str(ids[word])
    for known, other in ids.items():
        if isinstance(known, str) and len(known) >= _SHORTEST_INSIDE and known in word:
            word = word.replace(known, str(other))
    return word
