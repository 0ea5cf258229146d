"""Tests of programming: methods with faults are mended or dropped, and nothing else is lost with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from synth.lending import METHODS, LendingModel

from envscaler.errors import ProgramError, ReplyError
from envscaler.models import Models
from envscaler.program import methods_of
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.sandbox import Sandbox
from envscaler.skeleton import EnvDescription
from envscaler.synth.asking import Asking
from envscaler.synth.design import design
from envscaler.synth.programming import Programmed, interface, method_doubt, program
from envscaler.synth.smoke import contract_fault

Opened = Callable[[LendingModel], Models]


async def programmed(model: LendingModel, opened: Opened) -> Programmed:
    description = EnvDescription(summary="Bicycle lending desk", introduction="It keeps a card for every bicycle.")
    async with opened(model) as models, Sandbox() as sandbox:
        asking = Asking(models, Prompts(), 3)
        made = await design(description, (), "en", asking)
        return await program(made, seed=1, asking=asking, sandbox=sandbox)


class Faulty(LendingModel):
    """Writes `find_member` badly, a number of times."""

    def __init__(self, bad: str, times: int = 99, tool: str = "find_member") -> None:
        super().__init__()
        self.bad = bad
        self.times = times
        self.tool = tool
        self.inputs: list[t.WriteMethodInputs] = []

    def write_method(self, inputs: t.WriteMethodInputs) -> Any:
        if inputs.tool.name == self.tool:
            self.inputs.append(inputs)
            if len(self.inputs) <= self.times:
                return f"```python\n{self.bad}\n```"
        return super().write_method(inputs)


HEAD = "def find_member(self, name: str) -> dict:\n    "

FAULTS = {
    "an exception": (HEAD + "return {'success': True, 'data': self.members[name]['name']}", "KeyError"),
    "an unknown name": (HEAD + "return {'success': True, 'data': helper(name)}", "helper"),
    "a missing attribute": (HEAD + "return {'success': True, 'data': list(self.persons)}", "persons"),
    "a bare result": (HEAD + "return {'success': True, 'data': 1}['data']", "boolean `success`"),
    "a query that writes": (
        HEAD + "self.next_number += 1\n    return {'success': True, 'data': []}",
        "changed the state",
    ),
    "a failure that writes": (
        HEAD + "self.next_number += 1\n    return {'success': False, 'error': 'no'}",
        "changed the state",
    ),
    "what is not JSON": (HEAD + "return {'success': True, 'data': object()}", "JSON"),
    "an endless loop": (
        HEAD + "while True:\n        pass\n    return {'success': True, 'data': []}",
        "did not come back",
    ),
    "a coroutine": ("async " + HEAD + "return {'success': True, 'data': []}", "coroutine"),
    "what cannot be loaded": ("def find_member(self, name: str = 1 / 0) -> dict:\n    return {}", "ZeroDivisionError"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_method_goes_back_with_its_fault_and_is_mended(fault: str, opened: Opened) -> None:
    bad, said = FAULTS[fault]
    model = Faulty(bad, times=1)
    made = await programmed(model, opened)
    assert [tool.name for tool in made.tools] == list(METHODS)
    assert made.dropped == ()
    first, second = model.inputs
    assert first.fault is None
    assert said in (second.fault or "")
    assert second.previous is not None
    assert second.previous.strip() == bad.strip()


@pytest.mark.anyio
@pytest.mark.parametrize("fault", ["an exception", "an unknown name", "a coroutine", "what cannot be loaded"])
async def test_a_method_that_stays_broken_costs_its_tool_only(fault: str, opened: Opened) -> None:
    bad, said = FAULTS[fault]
    model = Faulty(bad)
    made = await programmed(model, opened)
    assert [tool.name for tool in made.tools] == [name for name in METHODS if name != "find_member"]
    assert "find_member" not in methods_of(made.source, made.class_name)
    assert len(model.inputs) == 3
    (dropped,) = made.dropped
    assert dropped.startswith("tool find_member: ")
    assert said in dropped


@pytest.mark.anyio
async def test_a_method_that_is_never_written_costs_its_tool_only(opened: Opened) -> None:
    made = await programmed(Faulty("def another(self):\n    return {'success': True}"), opened)
    assert len(made.tools) == 3
    assert "defines no method find_member, only another" in made.dropped[0]


@pytest.mark.anyio
async def test_raising_on_arguments_that_no_agent_can_send_costs_no_tool(opened: Opened) -> None:
    careless = (
        "def find_member(self, name: str) -> dict:\n"
        "    found = [member for member in self.members.values() if member['name'].lower() == name.lower()]\n"
        "    if not found:\n        return {'success': False, 'error': 'nobody'}\n"
        "    return {'success': True, 'data': dict(found[0])}"
    )
    made = await programmed(Faulty(careless), opened)
    assert len(made.tools) == 4
    assert made.dropped == ()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "second", ["I would rather not.", "def find_member(self, name: str):\n    return self.persons"]
)
async def test_mending_that_makes_a_method_worse_keeps_the_one_before(second: str, opened: Opened) -> None:
    careless = "def find_member(self, name: str) -> dict:\n    return {'success': True, 'data': [name.lower()]}"

    class Worsening(Faulty):
        def write_method(self, inputs: t.WriteMethodInputs) -> Any:
            if inputs.tool.name == "find_member" and inputs.fault is not None:
                return second if second.startswith("I") else f"```python\n{second}\n```"
            return super().write_method(inputs)

    made = await programmed(Worsening(careless), opened)
    assert len(made.tools) == 4
    assert "name.lower()" in made.source


@pytest.mark.anyio
async def test_an_environment_without_an_update_tool_is_none(opened: Opened) -> None:
    class Broken(LendingModel):
        def write_method(self, inputs: t.WriteMethodInputs) -> Any:
            if inputs.tool.effect == "update":
                parameters = "".join(f", {name}" for name in inputs.tool.parameters["properties"])
                return f"```python\ndef {inputs.tool.name}(self{parameters}):\n    raise KeyError('no')\n```"
            return super().write_method(inputs)

    with pytest.raises(ProgramError, match="no update tool is left"):
        await programmed(Broken(), opened)


@pytest.mark.anyio
async def test_a_class_that_forgets_part_of_the_state_goes_back(opened: Opened) -> None:
    class Forgetful(LendingModel):
        def write_class(self, inputs: t.WriteClassInputs) -> Any:
            source: str = super().write_class(inputs)
            if self.asked["write_class"] == 1:
                return source.replace("self.next_number: int", "next_number: int")
            return source

    model = Forgetful()
    made = await programmed(model, opened)
    assert model.asked["write_class"] == 2
    assert len(made.tools) == 4


@pytest.mark.anyio
async def test_a_state_that_breaks_references_or_rules_goes_back(opened: Opened) -> None:
    class Careless(LendingModel):
        def write_state(self, inputs: t.WriteStateInputs) -> Any:
            reply = super().write_state(inputs)
            if self.asked["write_state"] == 1:
                reply["state"]["things"]["T-1"]["member_id"] = "M-77"
            elif self.asked["write_state"] == 2:
                reply["state"]["things"]["T-2"]["status"] = "lent"
            return reply

    model = Careless()
    made = await programmed(model, opened)
    assert model.asked["write_state"] == 3
    assert made.rules[0].predicate is not None


@pytest.mark.anyio
async def test_a_predicate_that_no_state_satisfies_is_dropped_instead_of_the_environment(opened: Opened) -> None:
    class Wrong(LendingModel):
        def plan_state(self, inputs: t.PlanStateInputs) -> Any:
            plan = super().plan_state(inputs)
            plan["rules"].append({"text": "Never.", "predicate": "len(state['things']) > 99"})
            return plan

    made = await programmed(Wrong(), opened)
    assert [rule.predicate is None for rule in made.rules] == [False, True]
    assert made.dropped == ("predicate \"len(state['things']) > 99\": no written state satisfied it",)


@pytest.mark.anyio
async def test_a_state_that_is_never_sound_ends_the_unit(opened: Opened) -> None:
    class Unsound(LendingModel):
        def write_state(self, inputs: t.WriteStateInputs) -> Any:
            return {"state": {"things": "a few bicycles"}}

    with pytest.raises(ReplyError, match="/things"):
        await programmed(Unsound(), opened)


def test_the_interface_keeps_the_limits_of_the_plan_where_the_signature_agrees() -> None:
    planned = {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": ["free", "lent"], "description": "Which"},
            "count": {"type": "string", "description": "How many"},
            "gone": {"type": "string"},
        },
        "required": ["gone"],
    }
    derived = {
        "type": "object",
        "properties": {
            "status": {"type": "string", "default": "free"},
            "count": {"type": "integer", "description": "n"},
        },
        "required": ["count"],
        "additionalProperties": False,
    }
    assert interface(planned, derived) == {
        "type": "object",
        "properties": {
            "status": {"type": "string", "default": "free", "enum": ["free", "lent"], "description": "Which"},
            "count": {"type": "integer", "description": "How many"},
        },
        "required": ["count"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("result", "kept"),
    [
        ({"success": True, "data": []}, True),
        ({"success": False, "error": "no"}, True),
        ({"success": False}, False),
        ({"success": 1}, False),
        ([], False),
        (None, False),
    ],
)
def test_a_result_says_whether_it_succeeded_and_why_not(result: Any, kept: bool) -> None:
    assert (contract_fault(result) is None) == kept


def test_code_has_to_define_the_method() -> None:
    assert method_doubt(t.CodeReply(source="class A:\n    def lend(self): ...\n"), "lend") is None
    assert "only give" in (method_doubt(t.CodeReply(source="def give(self): ...\n"), "lend") or "")
