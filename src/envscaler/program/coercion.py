"""`coerced`: arguments in the types that a schema asks for, where their text says the same and nothing is lost.

Models write `"3"` for an integer, `3.0` for one, a list as JSON text. Names and values stay what they are: nothing is
added, dropped, rounded or guessed.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

from envscaler.program.arguments import argument_faults
from envscaler.record import JsonSchema
from envscaler.state import JsonValue

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_EXACT = 2**53
"""Up to here a float that is whole is that integer and no other."""
_DEEPEST = 32


def coerced(schema: JsonSchema, arguments: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """The arguments in the types of the schema; None where they satisfy it as they are, or cannot be made to.

    Args:
        schema: the tool's parameters, of type object.
    """
    if not argument_faults(schema, arguments):
        return None
    made = _Coercion(schema).of(schema, arguments)
    return made if isinstance(made, dict) and not argument_faults(schema, made) else None


class _Coercion:
    def __init__(self, root: JsonSchema) -> None:
        self._root = root

    def of(self, schema: Any, value: JsonValue, depth: int = 0) -> JsonValue:
        """The value as `schema` asks for it, as far as that can be had."""
        schema = self._resolved(schema)
        if schema is None or depth > _DEEPEST:
            return value
        options = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(options, list):
            return self._first(options, value, depth)
        kinds = schema.get("type")
        kinds = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)]
        if schema.get("nullable") is True:
            kinds.append("null")
        if kinds and not any(_is_of(value, kind) for kind in kinds):
            candidates = (_converted(value, kind) for kind in kinds)
            value = next((made for made in candidates if made is not _NONE), value)
        if isinstance(value, dict):
            parts = schema.get("properties") or {}
            return {key: self.of(parts[key], part, depth + 1) if key in parts else part for key, part in value.items()}
        if isinstance(value, list) and "items" in schema:
            return [self.of(schema["items"], part, depth + 1) for part in value]
        return value

    def _first(self, options: list[Any], value: JsonValue, depth: int) -> JsonValue:
        if any(self._satisfies(option, value) for option in options):
            return value
        made = (self.of(option, value, depth + 1) for option in options)
        return next((part for part, option in zip(made, options, strict=True) if self._satisfies(option, part)), value)

    def _satisfies(self, option: Any, value: JsonValue) -> bool:
        schema = {**self._root, "properties": {"value": option}, "required": ["value"]}
        return not argument_faults(schema, {"value": value})

    def _resolved(self, schema: Any) -> JsonSchema | None:
        for _ in range(_DEEPEST):
            if not isinstance(schema, dict):
                return None
            pointer = schema.get("$ref")
            if not isinstance(pointer, str):
                return schema
            schema = self._root
            for part in pointer.lstrip("#/").split("/") if pointer not in ("#", "#/") else ():
                schema = schema.get(part) if isinstance(schema, dict) else None
        return None


_NONE: Any = object()


def _is_of(value: JsonValue, kind: str) -> bool:
    if kind in ("integer", "number"):
        return type(value) is int or (kind == "number" and type(value) is float)
    kinds: dict[str, type] = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}
    return kind in kinds and isinstance(value, kinds[kind])


def _converted(value: JsonValue, kind: str) -> Any:
    """The value as one of that type, or `_NONE`."""
    if isinstance(value, str):
        return _read(value, kind)
    if kind == "integer" and type(value) is float and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    if kind == "string" and (type(value) is int or (type(value) is float and math.isfinite(value))):
        return json.dumps(value)
    return _NONE


def _read(text: str, kind: str) -> Any:
    if kind in ("integer", "number") and _NUMBER.fullmatch(text):
        if text.lstrip("-").isdigit():
            return int(text) if len(text) < 20 and str(int(text)) == text else _NONE
        number = float(text)
        if kind == "number" and math.isfinite(number) and Decimal(repr(number)) == Decimal(text):
            return number
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "null" and text == "null":
        return None
    if kind in ("array", "object"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return _NONE
        if _is_of(value, kind):
            return value
    return _NONE
