"""Values of parameters as bare text (`<parameter=count>3`), told apart by the type that the tool's schema asks for."""

from __future__ import annotations

import json
import re
from typing import Any

from envscaler.state import JsonValue

_TAGS = re.compile(r"</?(?:parameter|function|tool_call|think|thinking|tool_response)\b", re.IGNORECASE)
_PYTHON: dict[str, JsonValue] = {"True": True, "False": False, "None": None}
_NOTHING = object()
_OF_PYTHON = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


def decoded(text: str, schema: Any) -> JsonValue:
    """The value that `text` stands for.

    A text for a parameter that takes only text is that text. Else JSON is read as JSON. A text that would be taken
    for something else, or that holds tags, is written as a JSON string; see `encoded`.
    """
    types = _types(schema)
    value = _json(text)
    if isinstance(value, str):
        return value if _must_quote(value, types) else text
    if value is _NOTHING or types == {"string"}:
        return text
    if "string" in types and not _fits(value, types):
        return text
    return value


def encoded(value: JsonValue, schema: Any) -> str:
    """The text that `decoded` makes `value` of again, as the model family's chat template writes it where it can."""
    types = _types(schema)
    if isinstance(value, str):
        return _without_tags(value) if _must_quote(value, types) else value
    text = json.dumps(value, ensure_ascii=False)
    return _without_tags(value) if _TAGS.search(text) else text


def _must_quote(text: str, types: frozenset[str]) -> bool:
    if _TAGS.search(text):
        return True
    value = _json(text)
    if isinstance(value, str):
        return _must_quote(value, types)
    if value is _NOTHING or types == {"string"}:
        return False
    return "string" not in types or _fits(value, types)


def _without_tags(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def _json(text: str) -> Any:
    stripped = text.strip()
    if stripped in _PYTHON:
        return _PYTHON[stripped]
    try:
        value = json.loads(stripped, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return _NOTHING
    if isinstance(value, str) and stripped != text:
        return _NOTHING
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return _NOTHING
    return value


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _fits(value: Any, types: frozenset[str]) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number" in types or "integer" in types or not types
    return not types or _OF_PYTHON[type(value)] in types


_ANY = frozenset({"object", "array", "string", "boolean", "null", "number", "integer"})


def _types(schema: Any) -> frozenset[str]:
    """The JSON types that a schema admits; all of them where it does not say."""
    if not isinstance(schema, dict):
        return _ANY
    given = schema.get("type")
    if isinstance(given, str):
        return frozenset({given})
    if isinstance(given, list):
        return frozenset(part for part in given if isinstance(part, str)) or _ANY
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            return frozenset().union(*(_types(option) for option in options))
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if isinstance(values, list) and values and all(isinstance(value, str) for value in values):
        return frozenset({"string"})
    return _ANY
