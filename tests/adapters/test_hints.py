from __future__ import annotations

from typing import Any, Literal, Optional

import pytest

from envscaler.adapters.hints import hint_of, unsaid


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"type": "string"}, str),
        ({"type": "integer", "minimum": 1}, int),
        ({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}, list[list[float]]),
        ({"type": "array"}, list),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, dict[str, bool]),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, dict),
        ({"enum": ["a", 1, None]}, Literal["a", 1, None]),
        ({"const": "a"}, Literal["a"]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, Optional[str]),  # noqa: UP045 - as it compares
        ({"type": ["string", "integer"]}, str | int),
        ({"type": "string", "nullable": True}, str | None),
        ({"$ref": "#/$defs/Row", "$defs": {"Row": {"type": "integer"}}}, int),
        ({"anyOf": [{"type": "string"}, {}]}, Any),
        ({"enum": [{"a": 1}]}, Any),
        ({"type": "date"}, Any),
        ({"$ref": "#/nowhere"}, Any),
        ({"$ref": "#"}, Any),
        ({}, Any),
        (True, Any),
    ],
)
def test_hint_says_what_the_schema_says(schema: Any, hint: Any) -> None:
    assert hint_of(schema) == hint


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "description": "x", "default": "y"}, False),
        ({"type": "array", "items": {"type": "string", "enum": ["a"]}}, False),
        ({"type": "object", "additionalProperties": False}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, False),
        ({"type": "string", "pattern": "a+"}, True),
        ({"type": "array", "items": {"type": "object", "properties": {"a": {}}}}, True),
        ({"type": "object", "properties": {"a": {}}}, True),
        ({"enum": [[1]]}, True),
        ({"$ref": "#/$defs/Row"}, True),
    ],
)
def test_what_a_hint_cannot_say_is_noticed(schema: Any, expected: bool) -> None:
    assert unsaid(schema) is expected
