"""Arguments of a call against a tool's schema: what is wrong is said in sentences."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.program import SchemaChecker, argument_faults, coerced

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


@pytest.mark.parametrize(
    "malformed",
    [
        {"required": 5},
        {"required": "member"},
        {"properties": [1]},
        {"properties": {"x": {"type": [["integer"], {}]}}},
        {"properties": {"x": {"properties": 1, "prefixItems": 3, "items": 3, "anyOf": {"a": 1}, "allOf": 1}}},
        {"properties": {"x": {"minimum": True, "maxLength": "3", "pattern": 3, "enum": 3, "$ref": 3}}},
        {"properties": {"x": {"minimum": float("nan"), "maximum": 10**5000}}},
        {"properties": {"x": {"pattern": "a{99999999999999999999}"}}},
        {"properties": {"x": {"pattern": "[[t]"}}},
        {"properties": {"x": {"$ref": "elsewhere.json#/x"}}},
        {"properties": {"x": {"$ref": "#/nowhere/0"}}},
        {"properties": {"x": {"$ref": "#/properties/x"}}},
        {"properties": {"x": {"anyOf": [{"$ref": "#/properties/x"}]}}},
        {"properties": {"x": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$defs": {"a": {"$ref": "#/properties/x"}}},
        {"$ref": "#"},
    ],
)
def test_what_is_malformed_or_leads_to_itself_is_not_enforced(malformed: dict[str, Any]) -> None:
    for value in (1, "[text]"):
        assert argument_faults({"additionalProperties": True, **malformed}, {"x": value}) == ()


def test_a_malformed_keyword_leaves_the_others_in_force() -> None:
    assert argument_faults({"required": ["y", 5], "properties": {"x": {"type": ["integer", 3]}}}, {"x": "1"}) == (
        "missing required argument `y`",
        '`x` must be an integer, not the string "1"',
    )


def test_references_are_found_in_lists_and_behind_escapes() -> None:
    wanted = schema({"x": {"$ref": "#/$defs/a~1b/0"}}, **{"$defs": {"a/b": [STRING]}})
    assert argument_faults(wanted, {"x": 1}) == ("`x` must be a string, not the number 1",)


def expression(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = {"op": "negate", "of": leaf}
    return leaf


EXPRESSION = {
    "anyOf": [
        *(
            schema({"op": {"const": op}, "of": {"$ref": "#/$defs/e"}}, ("op",))
            for op in ("add", "multiply", "negate", "negate")
        ),
        {"type": "integer"},
    ]
}


def test_choices_within_choices_are_looked_at_once() -> None:
    wanted = schema({"x": {"$ref": "#/$defs/e"}}, **{"$defs": {"e": EXPRESSION}})
    assert argument_faults(wanted, {"x": expression(60, 1)}) == ()
    # Four choices at each of sixty levels: looking at all of them would not end.
    assert argument_faults(wanted, {"x": expression(60, "one")}) != ()


def test_sentences_of_choices_within_choices_stay_short() -> None:
    parts = {name: {"anyOf": [{"$ref": f"#/$defs/{name}{n}"} for n in range(3)]} for name in "abc"}
    for name in "abc":
        parts |= {f"{name}{n}": {"type": "array", "items": {"$ref": f"#/$defs/{to}"}} for n, to in enumerate("abc")}
        parts[f"{name}3"] = {"enum": [name]}
        parts[name]["anyOf"].insert(0, {"$ref": f"#/$defs/{name}3"})
    value: Any = 1
    for _ in range(30):
        value = [value]
    (fault,) = argument_faults(schema({"x": {"$ref": "#/$defs/a"}}, **{"$defs": parts}), {"x": value})
    assert len(fault) <= 400


def test_a_value_that_is_nested_beyond_measure_is_refused() -> None:
    tree = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/t"}},
        "$defs": {"t": {"items": {"$ref": "#/$defs/t"}}},
    }
    for depth, right in ((90, True), (150, False), (100_000, False)):
        value: Any = 1
        for _ in range(depth):
            value = [value]
        faults = argument_faults(tree, {"x": value})
        assert (faults == ()) is right
        assert all(fault.endswith("is nested too deeply") for fault in faults)
    deep: Any = {"enum": [value]}
    for _ in range(3_000):
        deep = {"properties": {"x": deep}}
    assert argument_faults(deep, {"x": 1}) == ()


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


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(["x", "y"])
POINTERS = st.sampled_from(["#", "#/", "#/$defs/x", "#/$defs/y", "#/properties/x", "#/anyOf/0", "#/items", "x", ""])
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null", "strange"])


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects with the keywords of a schema, each as it should be or as anything else."""
    parts = st.dictionaries(NAMES, inner, max_size=2)
    usual: dict[str, st.SearchStrategy[Any]] = {
        "$ref": POINTERS,
        "$defs": parts,
        "type": TYPES | st.lists(TYPES, max_size=2),
        "properties": parts,
        "required": st.lists(NAMES, max_size=2),
        "additionalProperties": inner,
        "items": inner,
        "uniqueItems": st.booleans(),
        "nullable": st.booleans(),
        "pattern": st.text(alphabet="a[({|+*?\\2", max_size=4),
        **{name: st.lists(inner, max_size=3) for name in ("anyOf", "oneOf", "allOf", "prefixItems", "enum")},
        **{name: st.integers(-1, 3) for name in ("minimum", "exclusiveMaximum", "minItems", "maxLength")},
    }
    return st.fixed_dictionaries({}, optional={name: part | ANY for name, part in usual.items()})


@given(st.recursive(st.booleans() | keywords(ANY), keywords, max_leaves=4), st.dictionaries(NAMES, ANY, max_size=2))
@settings(deadline=None)
def test_any_json_is_taken_as_a_schema_and_as_arguments(wanted: Any, arguments: dict[str, Any]) -> None:
    wanted = wanted if isinstance(wanted, dict) else {"properties": {"x": wanted}}
    assert all(fault for fault in argument_faults(wanted, arguments))
    made = coerced(wanted, arguments)
    assert made is None or argument_faults(wanted, made) == ()


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (r"^(a+)+$", "a" * 60 + "b"),
        (r"^(a|a)*$", "a" * 60 + "b"),
        (r"^((a+))+$", "a" * 60 + "b"),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 200),
        (r"^(a{1,9}){1,9}$", "a" * 200 + "b"),
        (r"^\w+@\w+$", "x" * 100_000),
    ],
)
def test_a_pattern_that_could_take_for_ever_is_not_enforced(pattern: str, value: str) -> None:
    assert argument_faults({"type": "object", "properties": {"x": {"pattern": pattern}}}, {"x": value}) == ()


@pytest.mark.parametrize(
    "pattern", [r"^[A-Z]{2,4}-\d+$", r"^(EUR|USD)$", r"^\+?(\d{3})?\d+$", r"^(ab)+$", r"^[(+]a[)*]$"]
)
def test_a_tame_pattern_is_enforced(pattern: str) -> None:
    assert argument_faults({"type": "object", "properties": {"x": {"pattern": pattern}}}, {"x": "no such!"})


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_is_no_number_of_json_is_none_of_an_enum_with_null(value: float) -> None:
    assert argument_faults(schema({"a": {"enum": ["a", 1, None]}}), {"a": value})
