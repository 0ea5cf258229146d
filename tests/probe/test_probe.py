"""Arguments made from a schema and a state."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.probe import WrongKind, spoiled_arguments, valid_arguments, wrong_arguments
from envscaler.program import argument_faults
from envscaler.skeleton import Attribute, Entity, ToolSpec

ENTITIES = (
    Entity(
        name="LibraryMember",
        container="people",
        key="member_id",
        attributes=(
            Attribute(name="member_id", type="str"),
            Attribute(name="tier", type="str", enum=("basic", "gold")),
            Attribute(name="sponsor", type="str", references="LibraryMember"),
        ),
    ),
    Entity(
        name="Loan",
        container="loans",
        key="loan_id",
        attributes=(
            Attribute(name="loan_id", type="str"),
            Attribute(name="member_id", type="str", references="LibraryMember"),
            Attribute(name="status", type="str"),
        ),
    ),
)
STATE: dict[str, Any] = {
    "people": {f"M{n}": {"member_id": f"M{n}", "tier": "gold", "sponsor": "M1"} for n in (1, 2, 3)},
    "loans": {
        "L1": {"loan_id": "L1", "member_id": "M1", "status": "active"},
        "L2": {"loan_id": "L2", "member_id": "M2", "status": "late"},
    },
}
MEMBERS, LOANS = {"M1", "M2", "M3"}, {"L1", "L2"}
STRING = {"type": "string"}


def tool(properties: dict[str, Any], required: list[str] | None = None, name: str = "use", **more: Any) -> ToolSpec:
    needed = list(properties) if required is None else required
    parameters = {"type": "object", "properties": properties, "required": needed, **more}
    return ToolSpec(name=name, description="", parameters=parameters, effect="update")


def drawn(spec: ToolSpec, state: Any = STATE, entities: Any = ENTITIES, count: int = 40) -> list[dict[str, Any]]:
    rng = random.Random(5)
    return [valid_arguments(spec, state, entities, rng) for _ in range(count)]


@pytest.mark.parametrize("entities", [ENTITIES, ()])
@pytest.mark.parametrize(
    ("name", "ids"), [("member_id", MEMBERS), ("loan_id", LOANS), ("new_member_id", MEMBERS), ("from_loan_id", LOANS)]
)
def test_ids_are_taken_from_the_state(name: str, ids: set[str], entities: tuple[Entity, ...]) -> None:
    assert {arguments[name] for arguments in drawn(tool({name: STRING}), entities=entities)} == ids


def test_references_and_enums_of_entities_count() -> None:
    assert {each["sponsor"] for each in drawn(tool({"sponsor": STRING}))} <= MEMBERS
    assert {each["library_member_id"] for each in drawn(tool({"library_member_id": STRING}))} == MEMBERS
    assert {each["tier"] for each in drawn(tool({"tier": STRING}), state={"people": {}})} == {"basic", "gold"}
    assert {each["new_status"] for each in drawn(tool({"new_status": STRING}))} == {"active", "late"}
    assert all(set(each["loan_ids"]) <= LOANS for each in drawn(tool({"loan_ids": {"type": "array", "items": STRING}})))


def test_arguments_of_one_call_mostly_belong_together() -> None:
    calls = drawn(tool({"loan_id": STRING, "member_id": STRING}), count=200)
    fitting = sum(STATE["loans"][each["loan_id"]]["member_id"] == each["member_id"] for each in calls)
    assert fitting > 120


def test_a_tool_that_creates_gets_a_new_key() -> None:
    for each in drawn(tool({"loan_id": STRING, "member_id": STRING}, name="create_loan")):
        assert each["loan_id"] not in LOANS
        assert each["member_id"] in MEMBERS


def test_optional_arguments_are_sometimes_left_out() -> None:
    seen = {"days" in each for each in drawn(tool({"loan_id": STRING, "days": {"type": "integer"}}, ["loan_id"]))}
    assert seen == {True, False}


def test_an_empty_state_still_gives_arguments() -> None:
    for each in drawn(tool({"loan_id": STRING, "when": {"type": "string", "format": "date"}}), {}, ()):
        assert each["loan_id"]
        assert each["when"].startswith("2025-")


@pytest.mark.parametrize(
    ("part", "kinds"),
    [
        (STRING, {"missing", "wrong_type", "null", "empty", "extreme", "extra"}),
        ({"type": "integer"}, {"missing", "wrong_type", "null", "extreme", "extra"}),
        ({"type": "string", "enum": ["a", "b"]}, {"missing", "not_in_enum", "null", "extra"}),
        ({"type": "array", "items": STRING}, {"missing", "wrong_type", "null", "empty", "extra"}),
        ({"anyOf": [STRING, {"type": "null"}]}, {"missing", "wrong_type", "empty", "extreme", "extra"}),
        ({}, {"missing", "extra"}),
    ],
)
def test_every_kind_that_applies_is_drawn(part: dict[str, Any], kinds: set[str]) -> None:
    rng = random.Random(1)
    assert {wrong_arguments(tool({"x": part}), STATE, ENTITIES, rng)[0] for _ in range(300)} == kinds


def test_wrong_arguments_are_wrong_as_they_say() -> None:
    spec = tool(
        {
            "loan_id": STRING,
            "days": {"type": "integer"},
            "tier": {"type": "string", "enum": ["basic", "gold"]},
            "note": {"anyOf": [STRING, {"type": "null"}]},
        },
        ["loan_id", "days", "tier"],
    )
    rng = random.Random(2)
    seen = set()
    for _ in range(400):
        kind, arguments = wrong_arguments(spec, STATE, ENTITIES, rng)
        seen.add(kind)
        faults = argument_faults(spec.parameters, arguments)
        if kind in {"missing", "wrong_type", "not_in_enum", "extra", "null"}:
            # Right but for one thing.
            assert len(faults) == 1, (kind, arguments)
        else:
            assert faults == ()
        if kind == "unknown_id":
            assert arguments["loan_id"] not in LOANS
    assert seen == set(get_args(WrongKind))


def test_a_tool_without_parameters_can_only_get_too_many() -> None:
    assert wrong_arguments(tool({}), STATE, ENTITIES, random.Random(1)) == (
        "extra",
        {"unexpected_option": "unexpected"},
    )
    kind, arguments = wrong_arguments(tool({}, additionalProperties=True), STATE, ENTITIES, random.Random(1))
    assert (kind, len(arguments)) == ("extra", 1)


LEAVES = st.sampled_from(
    [
        {},
        STRING,
        {"type": "integer", "minimum": -3, "maximum": -1},
        {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 6},
        {"type": "number", "minimum": 0.5, "maximum": 0.75},
        {"type": "number", "maximum": -2},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["integer", "null"]},
        {"type": "string", "minLength": 40},
        {"type": "string", "maxLength": 2},
        {"type": "string", "format": "date"},
        {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
        {"enum": ["a", 1, None]},
        {"const": {"k": 1}},
        {"$ref": "#/$defs/id"},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda part, low: {"type": "array", "items": part, "minItems": low}, inner, st.integers(0, 2)),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"allOf": [part]}, inner),
        st.builds(
            lambda parts: {
                "type": "object",
                "properties": parts,
                "required": list(parts),
                "additionalProperties": False,
            },
            st.dictionaries(st.sampled_from(["status", "member_id", "amount"]), inner, max_size=3),
        ),
    ),
    max_leaves=4,
)
NAMES = st.sampled_from(["member_id", "loan_ids", "status", "email", "due_date", "amount", "tier", "updates"])
TOOLS = st.builds(
    lambda parts, needed: tool(parts, [name for name in parts if name in needed], **{"$defs": {"id": STRING}}),
    st.dictionaries(NAMES, SCHEMAS, max_size=4),
    st.sets(NAMES),
)


@given(TOOLS, st.integers())
def test_valid_arguments_satisfy_any_schema_and_repeat(spec: ToolSpec, seed: int) -> None:
    first = valid_arguments(spec, STATE, ENTITIES, random.Random(seed))
    assert argument_faults(spec.parameters, first) == ()
    assert valid_arguments(spec, STATE, ENTITIES, random.Random(seed)) == first
    assert json.loads(json.dumps(first)) == first


@given(TOOLS, st.integers())
def test_wrong_arguments_exist_for_any_schema_and_repeat(spec: ToolSpec, seed: int) -> None:
    kind, arguments = wrong_arguments(spec, STATE, ENTITIES, random.Random(seed))
    assert wrong_arguments(spec, STATE, ENTITIES, random.Random(seed)) == (kind, arguments)
    if kind in {"missing", "wrong_type", "extra"}:
        assert argument_faults(spec.parameters, arguments)


def test_a_schema_that_contains_itself_ends() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/node"}, "all": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    }
    spec = tool({"head": {"$ref": "#/$defs/node"}}, **{"$defs": {"node": node}})
    for arguments in drawn(spec):
        assert argument_faults(spec.parameters, arguments) == ()


def test_real_tools_get_ids_of_real_states(shared_data: Path) -> None:
    folder = shared_data / "data" / "envscaler_release"
    environments = json.loads((folder / "environments.json").read_text(encoding="utf-8"))
    named, existing = 0, 0
    for scenario in json.loads((folder / "scenarios.json").read_text(encoding="utf-8")):
        state = scenario["init_config"]
        state = json.loads(state) if isinstance(state, str) else state
        ids = {key for value in state.values() if isinstance(value, dict) for key in value}
        tools = environments[scenario["env_id"]]["tools"]
        rng = random.Random(0)
        for published in json.loads(tools) if isinstance(tools, str) else tools:
            function = published["function"]
            if function["name"].startswith(("create", "add", "register")):
                continue
            spec = ToolSpec(name=function["name"], description="", parameters=function["parameters"], effect="query")
            arguments = valid_arguments(spec, state, (), rng)
            assert argument_faults(spec.parameters, arguments) == ()
            keys = [value for name, value in arguments.items() if name.endswith("_id") and isinstance(value, str)]
            named += len(keys)
            existing += sum(key in ids for key in keys)
    assert existing > 0.9 * named > 100


def test_each_argument_is_spoiled_once_in_a_way_that_its_schema_lets_through() -> None:
    whole = tool({"member_id": STRING, "note": STRING, "days": {"type": "integer"}})
    right: dict[str, Any] = {"member_id": "M1", "note": "soon", "days": 3}
    spoiled = spoiled_arguments(whole, STATE, ENTITIES, random.Random(0), right)
    changed = [{name: value for name, value in one.items() if value != right[name]} for one in spoiled]
    assert [list(one) for one in changed] == [["member_id"], ["note"], ["days"]]
    assert changed[0]["member_id"] not in MEMBERS
    assert changed[1]["note"] == ""
    assert not any(argument_faults(whole.parameters, one) for one in spoiled)


def test_arguments_that_are_not_given_or_can_only_be_right_are_not_spoiled() -> None:
    closed = tool({"status": {"type": "string", "enum": ["free", "lent"]}, "note": STRING})
    assert spoiled_arguments(closed, STATE, ENTITIES, random.Random(0), {"status": "free"}) == []
