"""Tests of what a plan is refused for."""

from __future__ import annotations

from typing import Any

import pytest

from envscaler.roles import types as t
from envscaler.skeleton import Rule
from envscaler.synth.design import rules_for, rules_left, state_doubt, tools_doubt


def attribute(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "str", **more}


def entity(name: str = "Thing", **more: Any) -> dict[str, Any]:
    return {"name": name, "container": f"{name.lower()}s", "key": "id", "attributes": [attribute("id")], **more}


def plan(*entities: dict[str, Any], rules: tuple[dict[str, Any], ...] = ()) -> t.PlanStateReply:
    return t.PlanStateReply.model_validate({"entities": entities, "rules": rules})


def tool(name: str, effect: str = "query", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": name, "parameters": {"type": "object"}, "effect": effect, **more}


def test_a_sound_plan_is_accepted() -> None:
    other = entity("Member", attributes=[attribute("id"), attribute("thing", type="list[str]", references="Thing")])
    single = {"name": "Desk", "attributes": [attribute("now")]}
    assert state_doubt(plan(entity(), other, single, rules=({"text": "r", "predicate": "len(state) > 0"},))) is None


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (plan(entity(), entity(container="others")), "two entities are named Thing"),
        (plan(entity("Two words")), "'Two words' is no usable name"),
        (plan(entity(attributes=[attribute("id"), attribute("class")])), "'class' is no usable name"),
        (plan(entity(key="thing_id")), "its key 'thing_id' is none of its attributes"),
        (plan(entity(attributes=[attribute("id", references="Order")])), "references 'Order', which is no entity"),
        (plan(entity(attributes=[attribute("id", type="list of str")])), "is no Python annotation"),
        (plan(entity(), entity("Other", container="things")), "the state key 'things' is used twice"),
        (plan(entity(attributes=[])), "Thing has no attributes"),
        (plan(entity(container=None, key=None)), "no entity has a container"),
        (
            plan(
                entity(attributes=[attribute("id"), attribute("desk", references="Desk")]),
                {"name": "Desk", "attributes": [attribute("now")]},
            ),
            "Thing: desk references Desk, which has no container",
        ),
        (plan(entity(), rules=({"text": "r", "predicate": "if so"},)), "is no Python expression"),
    ],
)
def test_an_unsound_plan_of_the_state_is_named(reply: t.PlanStateReply, said: str) -> None:
    assert said in (state_doubt(reply) or "")


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([tool("find")], "there is no update tool"),
        ([tool("change", "update")], "there is no query tool"),
        ([tool("find"), tool("find"), tool("change", "update")], "two tools are named find"),
        ([tool("find it"), tool("change", "update")], "'find it' is no usable name for a tool"),
        ([tool("_find"), tool("change", "update")], "'_find' is no usable name for a tool"),
        ([tool("things"), tool("change", "update")], "the tool things has the name of a state key"),
        ([tool("find", parameters={"type": "array"}), tool("change", "update")], "no JSON Schema of type object"),
        (
            [tool("find", parameters={"type": "object", "required": ["x"]}), tool("change", "update")],
            "required names 'x', which is no parameter",
        ),
        (
            [tool("find", effects=[{"kind": "delete", "entity": "Thing"}]), tool("change", "update")],
            "is a query and yet has an effect of kind delete",
        ),
        (
            [tool("find", effects=[{"kind": "read", "entity": "Order"}]), tool("change", "update")],
            "its effects name 'Order', which is no entity",
        ),
    ],
)
def test_an_unsound_plan_of_the_tools_is_named(tools: list[dict[str, Any]], said: str) -> None:
    reply = t.PlanToolsReply.model_validate({"tools": tools})
    assert said in (tools_doubt(reply, plan(entity()).entities) or "")


def test_rules_name_only_tools_that_exist() -> None:
    tools = t.PlanToolsReply.model_validate({"tools": [tool("find"), tool("change", "update")]}).tools
    (rule,) = rules_for([Rule(text="r", tools=("burn", "change"))], tools)
    assert rule.tools == ("change",)


def test_what_is_said_of_a_dropped_tool_alone_is_gone_with_it() -> None:
    tools = t.PlanToolsReply.model_validate({"tools": [tool("find"), tool("change", "update")]}).tools
    rules = [
        Rule(text="of what is gone", tools=("burn",)),
        Rule(text="of every state", tools=("burn",), predicate="True"),
        Rule(text="of both", tools=("burn", "change")),
        Rule(text="of whatever it may be"),
    ]
    left = rules_left(rules, tools)
    assert [(rule.text, rule.tools) for rule in left] == [
        ("of every state", ()),
        ("of both", ("change",)),
        ("of whatever it may be", ()),
    ]
