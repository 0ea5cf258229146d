"""`coerced`: arguments in the types that a schema asks for, where their text says the same and nothing is lost.

Models write `"3"` for an integer, `3.0` for one, a list as JSON text. Names and values stay what they are: nothing is
added, dropped, rounded or guessed. What is wrong with arguments is the business of `arguments`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from envscaler.errors import NotJson
from envscaler.program.arguments import Judged, SchemaChecker, parameters_checker, referenced
from envscaler.record import JsonSchema
from envscaler.state import JsonValue, canonical

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 64
"""Longer ones are padded with zeros, or say more than a float holds."""
_EXACT = 2**53
"""Below it, a float that is whole is that integer and no other."""
_DEEPEST = 32
_BUDGET = 20_000
"""Values looked at in one call, some tenths of a second. Text counts by its length."""
_CHARACTERS = 64
"""Characters of text that are as much work as one value."""


def coerced(schema: JsonSchema, arguments: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """The arguments in the types of the schema; None where they are in them already, or cannot be put into them.

    Args:
        schema: the tool's parameters, of type object.
    """
    checker = parameters_checker(schema)
    try:
        made = _Coercion(checker).of(checker.schema, arguments)
        if not made.conversions or checker.faults(made.value, "it"):
            return None
        whole: dict[str, JsonValue] = canonical(made.value)
        # Halves of characters parse, but nothing above could store them.
        json.dumps(whole, ensure_ascii=False).encode()
    except (_TooMuch, RecursionError, NotJson, UnicodeEncodeError):
        return None
    return whole


class _TooMuch(Exception):
    """The arguments take more work than a call is worth."""


class _Made(NamedTuple):
    value: JsonValue
    crossings: int = 0
    """Values that became another kind of JSON, a text a number."""
    conversions: int = 0
    """Values that became something else, a number of another form included."""


class _Coercion:
    def __init__(self, checker: SchemaChecker) -> None:
        self._checker = checker
        self._judged = Judged(named=False)
        self._left = _BUDGET
        self._known: dict[tuple[int, int], tuple[JsonValue, _Made]] = {}
        """By identity of schema and value, which is kept beside the result so that the identity stays its own."""

    def of(self, schema: Any, value: JsonValue, depth: int = 0) -> _Made:
        """The value as `schema` asks for it, as far as that can be had.

        Raises:
            _TooMuch: when the budget is spent.
        """
        self._spend(1)
        schema = self._resolved(schema)
        if schema is None or depth > _DEEPEST:
            return _Made(value)
        key = (id(schema), id(value))
        if key not in self._known:
            # Until it is known: a schema that leads back here with the same value asks nothing more of it.
            self._known[key] = value, _Made(value)
            self._known[key] = value, self._made(schema, value, depth)
        return self._known[key][1]

    def _made(self, schema: JsonSchema, value: JsonValue, depth: int) -> _Made:
        options = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(options, list):
            return self._as_one_of(options, value, depth)
        kinds = schema.get("type")
        kinds = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)]
        if kinds and schema.get("nullable") is True:
            kinds.append("null")
        if not kinds or any(_is_of(value, kind) for kind in kinds):
            return self._inside(schema, _Made(value), depth)
        converted = [made for kind in kinds if (made := self._converted(value, kind)) is not None]
        found = _least([self._inside(schema, made, depth) for made in converted])
        return found if found is not None else _Made(value)

    def _as_one_of(self, options: list[Any], value: JsonValue, depth: int) -> _Made:
        if any(self._satisfies(option, value) for option in options):
            return _Made(value)
        made = [(option, self.of(option, value, depth + 1)) for option in options]
        found = _least([part for option, part in made if part.conversions and self._satisfies(option, part.value)])
        return found if found is not None else _Made(value)

    def _inside(self, schema: JsonSchema, whole: _Made, depth: int) -> _Made:
        """The value with its parts as the schema asks for them."""
        value = whole.value
        parts: dict[Any, _Made]
        if isinstance(value, dict):
            properties, others = schema.get("properties"), schema.get("additionalProperties")
            known = properties if isinstance(properties, dict) else {}
            parts = {key: self.of(known.get(key, others), part, depth + 1) for key, part in value.items()}
        elif isinstance(value, list):
            prefix, items = schema.get("prefixItems"), schema.get("items")
            first = prefix if isinstance(prefix, list) else []
            parts = {
                index: self.of(first[index] if index < len(first) else items, part, depth + 1)
                for index, part in enumerate(value)
            }
        else:
            parts = {}
        conversions = sum(part.conversions for part in parts.values())
        if conversions:
            inner = {key: part.value for key, part in parts.items()}
            value = inner if isinstance(value, dict) else list(inner.values())
        crossings = sum(part.crossings for part in parts.values())
        return _Made(value, whole.crossings + crossings, whole.conversions + conversions)

    def _converted(self, value: JsonValue, kind: str) -> _Made | None:
        """The value as one of that kind; None where that loses something."""
        if isinstance(value, str):
            self._spend(len(value) // _CHARACTERS)
            made = _read(value, kind)
            return None if made is _UNREAD else _Made(made, crossings=1, conversions=1)
        if kind == "integer" and type(value) is float and value.is_integer() and abs(value) < _EXACT:
            return _Made(int(value), conversions=1) if repr(value) != "-0.0" else None
        if kind == "string" and (
            (type(value) is int and _fits(value)) or (type(value) is float and math.isfinite(value))
        ):
            return _Made(json.dumps(value), crossings=1, conversions=1)
        return None

    def _satisfies(self, option: Any, value: JsonValue) -> bool:
        self._spend(_size(value))
        return self._checker.allows(option, value, self._judged)

    def _resolved(self, schema: Any) -> JsonSchema | None:
        for _ in range(_DEEPEST):
            pointer = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(pointer, str):
                return schema if isinstance(schema, dict) else None
            schema = referenced(self._checker.schema, pointer)
        return None

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise _TooMuch


def _least(candidates: list[_Made]) -> _Made | None:
    """The one that changes kinds, then values, least often; None where two do so alike and differ: that is a guess."""
    if not candidates:
        return None
    least = min(candidates, key=lambda made: made[1:])
    rivals = [made for made in candidates if made[1:] == least[1:]]
    return least if len(rivals) == 1 or len({json.dumps(made.value) for made in rivals}) == 1 else None


def _size(value: JsonValue) -> int:
    if isinstance(value, str):
        return 1 + len(value) // _CHARACTERS
    parts: Iterable[JsonValue] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, parts))


_TYPES: dict[str, type] = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}


def _is_of(value: JsonValue, kind: str) -> bool:
    if kind in ("integer", "number"):
        return type(value) is int or (kind == "number" and type(value) is float)
    return kind in _TYPES and isinstance(value, _TYPES[kind])


# -- text ---------------------------------------------------------------------------------------------------

_UNREAD: Any = object()


def _read(text: str, kind: str) -> Any:
    """What the text says as one of that kind, or `_UNREAD`."""
    if kind in ("integer", "number"):
        number = _number(text)
        return number if _is_of(number, kind) else _UNREAD
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "null" and text == "null":
        return None
    if kind in ("array", "object"):
        try:
            value = json.loads(
                text,
                object_pairs_hook=_object,
                parse_int=_exact_number,
                parse_float=_exact_number,
                parse_constant=_exact_number,
            )
        except (ValueError, RecursionError):
            return _UNREAD
        return value if _is_of(value, kind) else _UNREAD
    return _UNREAD


def _number(text: str) -> int | float | None:
    """The number that is written like this; None where it is none, or no 64 bits hold it exactly."""
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    if text.lstrip("-").isdigit():
        whole = int(text)
        return whole if _fits(whole) and str(whole) == text else None
    number = float(text)
    try:
        exact = math.isfinite(number) and Decimal(repr(number)) == Decimal(text)
    except InvalidOperation:
        # An exponent that even Decimal does not hold.
        return None
    return number if exact else None


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**64


def _exact_number(text: str) -> int | float:
    number = _number(text)
    if number is None:
        raise ValueError(text)
    return number


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key stands twice")
    return made
