"""Reads a tool call as a person types it: `tool name=value other="two words"`, or `tool {"name": "value"}`.

Whether the tool exists and takes these arguments is for the environment to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from envscaler.state import JsonValue

_NAME = re.compile(r"([A-Za-z_]\w*)\s*=\s*")
_DECODER = json.JSONDecoder()


class CallSyntaxError(ValueError):
    """The text is no call; the message says where and why."""


def parse_arguments(text: str, schema: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The arguments in `text`.

    A value is JSON where it reads as JSON and the parameter is not a text; quotes hold words together. Values
    without a name fill the parameters in their order.

    Args:
        schema: the tool's parameters, from which order and types are taken.

    Raises:
        CallSyntaxError: if the text cannot be read.
    """
    text = text.strip()
    if text.startswith("{"):
        try:
            value, end = _DECODER.raw_decode(text)
        except ValueError as error:
            raise CallSyntaxError(f"the arguments are not JSON: {error}") from error
        if text[end:].strip():
            raise CallSyntaxError(f"there is more after the JSON object: {text[end:].strip()!r}")
        assert isinstance(value, dict)
        return value
    properties: Mapping[str, Any] = schema.get("properties", {})
    arguments: dict[str, JsonValue] = {}
    position = 0
    while position < len(text):
        named = _NAME.match(text, position)
        if named is not None:
            name = named.group(1)
            position = named.end()
        else:
            name = next((name for name in properties if name not in arguments), "")
            if not name:
                raise CallSyntaxError(f"nothing is left to give {text[position:]!r} to; write name=value")
        if name in arguments:
            raise CallSyntaxError(f"{name} is given twice")
        arguments[name], position = _value(text, position, _is_text(properties.get(name)))
        while position < len(text) and text[position] in " \t,":
            position += 1
    return arguments


def _value(text: str, position: int, as_text: bool) -> tuple[JsonValue, int]:
    first = text[position : position + 1]
    if first in ('"', "[", "{"):
        try:
            value, end = _DECODER.raw_decode(text, position)
        except ValueError as error:
            raise CallSyntaxError(f"{text[position:]!r} is not JSON: {error}") from error
        return value, end
    if first == "'":
        end = text.find("'", position + 1)
        if end < 0:
            raise CallSyntaxError(f"the quote in {text[position:]!r} is not closed")
        return text[position + 1 : end], end + 1
    end = position
    while end < len(text) and text[end] not in " \t":
        end += 1
    word = text[position:end].rstrip(",")
    if as_text:
        return word, end
    try:
        return json.loads(word), end
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(word, word), end


def _is_text(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    if schema.get("type") == "string":
        return True
    union = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(union, list):
        return False
    kinds = {part.get("type") for part in union if isinstance(part, Mapping)}
    return "string" in kinds and not kinds & {"integer", "number", "boolean", "null"}
