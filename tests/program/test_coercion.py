"""Arguments are put into the types of a schema where nothing is lost by it, and else left alone."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.program import argument_faults, coerced


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


INTEGER, NUMBER, STRING, BOOLEAN = ({"type": kind} for kind in ("integer", "number", "string", "boolean"))


@pytest.mark.parametrize(
    ("asked", "written", "made"),
    [
        (INTEGER, "3", 3),
        (INTEGER, "-12", -12),
        (INTEGER, 3.0, 3),
        (NUMBER, "2.50", 2.5),
        (NUMBER, "7", 7),
        (NUMBER, "1e3", 1000.0),
        (BOOLEAN, "True", True),
        (STRING, 5, "5"),
        (STRING, 2.5, "2.5"),
        ({"type": "array", "items": INTEGER}, '["1", 2]', [1, 2]),
        ({"type": "array", "items": INTEGER}, ["1"], [1]),
        ({"type": "object", "properties": {"n": INTEGER}}, '{"n": "4"}', {"n": 4}),
        ({"type": ["integer", "null"]}, "null", None),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "6", 6),
        ({"anyOf": [{"type": "null"}, {"type": "array", "items": INTEGER}]}, '["6"]', [6]),
    ],
)
def test_what_says_the_same_is_taken_for_it(asked: Any, written: Any, made: Any) -> None:
    found = coerced(schema(value=asked), {"value": written})
    assert found == {"value": made}
    assert type(found["value"]) is type(made)


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        (INTEGER, "007"),
        (INTEGER, "+3"),
        (INTEGER, " 3"),
        (INTEGER, "3.5"),
        (INTEGER, 3.5),
        (INTEGER, "three"),
        (INTEGER, True),
        (INTEGER, 1e300),
        (INTEGER, "9" * 30),
        (NUMBER, "0.1000000000000000000001"),
        (NUMBER, "1e999"),
        (NUMBER, "NaN"),
        (BOOLEAN, 1),
        (BOOLEAN, "yes"),
        (STRING, True),
        (STRING, None),
        (STRING, ["a"]),
        ({"type": "array", "items": INTEGER}, "1, 2"),
        ({"type": "array", "items": INTEGER}, "[" * 100_000),
        ({"type": "array", "items": INTEGER}, ["one"]),
        ({"type": "integer", "minimum": 5}, "3"),
        ({"type": "string", "enum": ["open", "closed"]}, "Open"),
    ],
)
def test_what_would_lose_or_guess_is_left_to_be_refused(asked: Any, written: Any) -> None:
    assert coerced(schema(value=asked), {"value": written}) is None


def test_what_is_right_already_is_not_touched_and_names_are_neither_added_nor_dropped() -> None:
    either = schema(value={"anyOf": [INTEGER, STRING]})
    assert coerced(either, {"value": "3"}) is None
    assert coerced(schema(value=INTEGER), {"value": "3", "other": 1}) is None
    assert coerced(schema(value=INTEGER), {}) is None


def test_a_schema_that_contains_itself_is_followed() -> None:
    tree = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"n": INTEGER, "below": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            }
        },
    }
    assert coerced(tree, {"tree": {"n": "1", "below": [{"n": "2", "below": []}]}}) == {
        "tree": {"n": 1, "below": [{"n": 2, "below": []}]}
    }
    loop = {"type": "object", "properties": {"value": {"$ref": "#/properties/value"}}, "required": ["value"]}
    assert coerced(loop, {}) is None


VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))


@given(st.sampled_from([INTEGER, NUMBER, STRING, BOOLEAN, {"type": ["integer", "null"]}]), VALUES)
def test_what_is_made_satisfies_the_schema_and_reads_as_what_was_written(asked: Any, written: Any) -> None:
    wanted = schema(value=asked)
    made = coerced(wanted, {"value": written})
    if made is None:
        return
    assert not argument_faults(wanted, made)
    value = made["value"]
    texts = [str(part).lower() if isinstance(part, str | bool) else json.dumps(part) for part in (written, value)]
    assert texts[0] == texts[1] or math.isclose(float(texts[0]), float(texts[1]), rel_tol=0, abs_tol=0)
