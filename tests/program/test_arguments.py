"""Arguments of a call against a tool's schema: what is wrong is said in sentences."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.program import SchemaChecker, argument_faults

STRING = {"type": "string"}


def schema(properties: dict[str, Any], required: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


@pytest.mark.parametrize(
    ("part", "value", "sentence"),
    [
        (STRING, 7, "`x` must be a string, not the number 7"),
        ({"type": "integer"}, "7", '`x` must be an integer, not the string "7"'),
        ({"type": "integer"}, 7.0, "`x` must be an integer, not the number 7.0"),
        ({"type": "integer"}, True, "`x` must be an integer, not the boolean true"),
        ({"type": "number"}, None, "`x` must be a number, not null"),
        ({"type": ["string", "null"]}, [], "`x` must be a string or null, not an array"),
        ({"anyOf": [STRING, {"type": "null"}]}, {}, "`x` must be a string or null, not an object"),
        ({"enum": ["open", "closed"]}, "opne", '`x` must be one of "open", "closed", not "opne"; did you mean `open`?'),
        ({"const": 1}, True, "`x` must be one of 1, not true"),
        ({"type": "array", "items": STRING}, ["a", 2], "`x[1]` must be a string, not the number 2"),
        ({"type": "array", "minItems": 1}, [], "`x` needs at least 1 element, it has 0"),
        ({"type": "array", "maxItems": 2}, [1, 2, 3], "`x` takes at most 2 elements, it has 3"),
        ({"type": "array", "uniqueItems": True}, [1, 1], "`x` holds an element twice"),
        ({"type": "array", "prefixItems": [STRING]}, [1], "`x[0]` must be a string, not the number 1"),
        (schema({"a": STRING}, ("a",)), {}, "`x` lacks `a`"),
        (schema({"a": STRING}), {"a": 1}, "`x.a` must be a string, not the number 1"),
        (
            schema({"name": STRING}, additionalProperties=False),
            {"nmae": "x"},
            "`x` has no `nmae`; did you mean `name`?",
        ),
        ({"type": "object", "additionalProperties": STRING}, {"k": 1}, "`x.k` must be a string, not the number 1"),
        ({"anyOf": [schema({"a": STRING}), STRING]}, {"a": 1}, "`x.a` must be a string, not the number 1"),
        ({"minimum": 1}, 0, "`x` must be at least 1, not 0"),
        ({"exclusiveMaximum": 5}, 5, "`x` must be less than 5, not 5"),
        ({"type": "string", "minLength": 1}, "", '`x` must be at least 1 character long, not ""'),
        ({"type": "string", "pattern": "^A"}, "B", '`x` must be of the form ^A, not "B"'),
        ({"$ref": "#/$defs/id"}, 1, "`x` must be a string, not the number 1"),
        ({"allOf": [STRING, {"minLength": 2}]}, "a", '`x` must be at least 2 characters long, not "a"'),
    ],
)
def test_a_wrong_value_is_one_sentence(part: dict[str, Any], value: Any, sentence: str) -> None:
    assert argument_faults(schema({"x": part}, **{"$defs": {"id": STRING}}), {"x": value}) == (sentence,)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({}, object),
        ({"type": "number"}, 1),
        ({"type": ["string", "null"]}, None),
        ({"type": "string", "nullable": True}, None),
        ({"type": "string", "format": "date", "x-note": 1}, "never checked"),
        ({"type": "strange"}, 1),
        ({"pattern": "(?<broken"}, "x"),
        ({"anyOf": []}, 1),
        ({"oneOf": [STRING, {"type": "integer"}]}, 3),
        ({"enum": [None, 1]}, None),
        ({"minimum": 3}, "not a number"),
        (True, 1),
        ({"type": "object", "properties": {"open": {}}}, {"open": 1, "more": 2}),
    ],
)
def test_what_the_schema_allows_passes(part: Any, value: Any) -> None:
    assert argument_faults(schema({"x": part}), {"x": value}) == ()


def test_names_of_arguments_are_checked() -> None:
    wanted = schema({"member_id": STRING, "days": {"type": "integer"}}, ("member_id",))
    assert argument_faults(wanted, {"memberid": "m", "days": "x"}) == (
        "missing required argument `member_id`",
        '`days` must be an integer, not the string "x"',
        "unknown argument `memberid`; did you mean `member_id`?",
    )
    assert argument_faults({**wanted, "additionalProperties": True}, {"member_id": "m", "more": 1}) == ()
    assert argument_faults({"type": "object"}, {"more": 1}) == ("unknown argument `more`",)
    assert argument_faults({}, {}) == ()


def test_a_schema_may_contain_itself() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    checker = SchemaChecker(tree)
    assert checker.faults({"children": [{"children": []}]}, "it") == ()
    assert checker.faults({"children": [{"children": [3]}]}, "it") == (
        "`children[0].children[0]` must be an object, not the number 3",
    )


SCHEMAS = st.recursive(
    st.sampled_from([{}, STRING, {"type": "integer"}, {"type": ["number", "null"]}, {"enum": ["a", 1, None]}]),
    lambda inner: st.one_of(
        st.builds(lambda part: {"type": "array", "items": part}, inner),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(schema, st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    ),
    max_leaves=5,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=5,
)


def allows(part: Any, value: Any) -> bool:
    """The same judgement, written plainly."""
    if "anyOf" in part:
        return any(allows(option, value) for option in part["anyOf"])
    if "enum" in part:
        return any(type(value) is type(each) and value == each for each in part["enum"])
    kinds = part.get("type", [])
    types = {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "null": (type(None),),
        "array": (list,),
        "object": (dict,),
    }
    if kinds and type(value) not in [
        each for kind in ([kinds] if isinstance(kinds, str) else kinds) for each in types[kind]
    ]:
        return False
    if kinds == "array":
        return all(allows(part["items"], each) for each in value)
    if kinds == "object":
        return all(key in value for key in part["required"]) and all(
            allows(part["properties"].get(key, {}), each) for key, each in value.items()
        )
    return True


@given(SCHEMAS, VALUES)
def test_the_compiled_judgement_is_the_plain_one(part: dict[str, Any], value: Any) -> None:
    faults = SchemaChecker(part).faults(value, "it")
    assert (faults == ()) == allows(part, value)
    assert all(fault and "\n" not in fault for fault in faults)
