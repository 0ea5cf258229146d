"""Arguments are put into the types of a schema where nothing is lost by it, and else left alone."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.program import argument_faults, coerced
from envscaler.state import canonical


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
        ({"type": "object", "additionalProperties": INTEGER}, {"a": "1"}, {"a": 1}),
        ({"type": "array", "prefixItems": [INTEGER]}, ["1", "2"], [1, "2"]),
        ({"type": ["string", "integer"]}, 3.0, 3),
        ({"anyOf": [STRING, INTEGER]}, 3.0, 3),
        ({"anyOf": [{"type": "array", "items": INTEGER}, {"type": "array", "items": STRING}]}, '["6"]', ["6"]),
        ({"anyOf": [INTEGER, NUMBER]}, "6", 6),
        (INTEGER, str(2**64 - 1), 2**64 - 1),
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
        (INTEGER, "٣"),
        (INTEGER, -0.0),
        (INTEGER, 2.0**53),
        (NUMBER, "1.٣"),
        (NUMBER, "1e-9999999999999999999999"),
        (NUMBER, "0e99999999999999999999999"),
        (NUMBER, "1." + "0" * 1_000_000),
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
        ({"type": "array"}, "[NaN]"),
        ({"type": "array"}, "[-Infinity]"),
        ({"type": "array"}, "[1e999]"),
        ({"type": "array"}, "[1e-9999999999999999999999]"),
        ({"type": "array"}, "[-0]"),
        ({"type": "array"}, "[0.1000000000000000055511151231257827]"),
        ({"type": "array"}, f"[{10**20}]"),
        ({"type": "array"}, f"[{'9' * 5000}]"),
        ({"type": "array"}, '["\\ud800"]'),
        ({"type": "array"}, "[" * 300 + "]" * 300),
        ({"type": "object"}, '{"a": 1, "a": 2}'),
        ({"type": "object"}, '{"a": {"b": 1, "b": 1}}'),
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


def test_of_two_readings_that_are_as_near_none_is_chosen() -> None:
    first, second = (
        {"type": "object", "properties": {"a": a, "b": b}} for a, b in ((INTEGER, STRING), (STRING, INTEGER))
    )
    wanted = schema(value={"anyOf": [first, second]}, count=INTEGER)
    assert coerced(wanted, {"value": {"a": "1", "b": "2"}, "count": 3}) is None
    assert coerced(wanted, {"value": '{"a": "1", "b": 2}', "count": 3}) == {"value": {"a": "1", "b": 2}, "count": 3}
    assert coerced(wanted, {"value": {"a": 1.0, "b": 2.0}, "count": 3}) is None


def test_what_is_made_shares_nothing_with_what_was_written() -> None:
    written = {"value": {"n": "1", "kept": [1]}}
    made = coerced(schema(value={"type": "object", "properties": {"n": INTEGER}}), written)
    assert made == {"value": {"n": 1, "kept": [1]}}
    assert made["value"]["kept"] is not written["value"]["kept"]
    assert written == {"value": {"n": "1", "kept": [1]}}


EXPRESSION = {
    "anyOf": [
        *(
            {"type": "object", "properties": {"op": {"const": op}, "of": {"$ref": "#/$defs/e"}}, "required": ["op"]}
            for op in ("add", "multiply", "negate")
        ),
        INTEGER,
    ]
}


def expression(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = {"op": "negate", "of": leaf}
    return leaf


def test_choices_within_choices_are_told_apart() -> None:
    wanted = schema(value={"$ref": "#/$defs/e"}) | {"$defs": {"e": EXPRESSION}}
    assert coerced(wanted, {"value": expression(12, "7")}) == {"value": expression(12, 7)}
    # Trying every choice at every level would take longer than there is time.
    assert coerced(wanted, {"value": expression(90, "7")}) is None
    assert coerced(wanted, {"value": [expression(14, "seven")]}) is None


def test_what_takes_too_much_work_is_left_alone() -> None:
    choice = {"anyOf": [INTEGER, *({"type": "array", "items": {"$ref": "#/$defs/c"}, "minItems": n} for n in range(6))]}
    wanted = schema(value={"$ref": "#/$defs/c"}) | {"$defs": {"c": choice}}
    text = "1"
    for _ in range(9):
        text = json.dumps([text])
    assert coerced(wanted, {"value": text}) is None
    many = schema(value={"type": "array", "items": {"anyOf": [INTEGER, BOOLEAN]}})
    assert coerced(many, {"value": [str(n) for n in range(1_000)]}) == {"value": list(range(1_000))}
    assert coerced(many, {"value": [str(n) for n in range(100_000)]}) is None


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
    chosen = {"anyOf": [{"$ref": "#/$defs/chosen"}, INTEGER]}
    loop = {**schema(value={"$ref": "#/$defs/chosen"}, count=INTEGER), "$defs": {"chosen": chosen}}
    assert coerced(loop, {"value": "1", "count": "1"}) == {"value": "1", "count": 1}


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


ANY = st.recursive(
    VALUES | st.floats().map(repr) | st.integers().map(str) | st.decimals(allow_nan=False).map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


def exactly(text: str) -> Any:
    return json.loads(text, parse_int=Decimal, parse_float=Decimal)


@given(ANY)
def test_json_text_is_taken_only_for_what_it_says_to_the_last_digit(value: Any) -> None:
    text = json.dumps(value)
    made = coerced(schema(value={"type": ["array", "object"]}), {"value": text})
    if made is None:
        return
    assert canonical(made) == made
    assert exactly(json.dumps(made["value"])) == exactly(text)
    assert coerced(schema(value={"type": ["array", "object"]}), made) is None
