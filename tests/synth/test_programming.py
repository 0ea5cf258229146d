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
from envscaler.synth.methods import method_doubt
from envscaler.synth.programming import ONE_AT_A_TIME, Programmed, interface, program
from envscaler.synth.smoke import contract_fault

Opened = Callable[[LendingModel], Models]


async def programmed(model: LendingModel, opened: Opened, methods_per_call: int = 6) -> Programmed:
    description = EnvDescription(summary="Bicycle lending desk", introduction="It keeps a card for every bicycle.")
    async with opened(model) as models, Sandbox() as sandbox:
        asking = Asking(models, Prompts(), 3)
        made = await design(description, (), "en", asking)
        return await program(made, seed=1, asking=asking, sandbox=sandbox, methods_per_call=methods_per_call)


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
    assert len(model.inputs) == 4  # the last time without the fault, and without rules
    assert model.inputs[-1].fault is None
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
async def test_a_class_that_is_never_written_is_made_by_code(opened: Opened) -> None:
    class Classless(LendingModel):
        def write_class(self, inputs: t.WriteClassInputs) -> Any:
            return "### Analysis\nA desk with things and members."

    model = Classless()
    made = await programmed(model, opened)
    assert model.asked["write_class"] == 3
    assert made.class_name == "BicycleLendingDesk"
    assert [tool.name for tool in made.tools] == list(METHODS)
    (told,) = made.dropped
    assert told.startswith("class: made by code, because write_class: it holds no Python code")


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
            "shelf": {"type": "string", "enum": ["low", "high"], "description": "Where"},
            "gone": {"type": "string"},
        },
        "required": ["gone"],
    }
    derived = {
        "type": "object",
        "properties": {
            "status": {"type": "string", "default": "free"},
            "count": {"type": "integer", "description": "n"},
            "shelf": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["count"],
        "additionalProperties": False,
    }
    assert interface(planned, derived) == {
        "type": "object",
        "properties": {
            "status": {"type": "string", "default": "free", "enum": ["free", "lent"], "description": "Which"},
            "count": {"type": "integer", "description": "How many"},
            "shelf": {
                "anyOf": [{"type": "string", "enum": ["low", "high"]}, {"type": "null"}],
                "default": None,
                "description": "Where",
            },
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


class Batched(LendingModel):
    """Answers to several questions at once through a function of its usual reply."""

    def __init__(self, change: Callable[[str], str]) -> None:
        super().__init__()
        self.change = change
        self.batches: list[list[str]] = []

    def write_methods(self, inputs: t.WriteMethodsInputs) -> Any:
        self.batches.append([question.tool.name for question in inputs.questions])
        return self.change(super().write_methods(inputs))


@pytest.mark.anyio
async def test_methods_are_asked_for_several_a_call_queries_first(opened: Opened) -> None:
    model = Batched(lambda reply: reply)
    made = await programmed(model, opened)
    assert [tool.name for tool in made.tools] == list(METHODS)
    assert model.batches == [["find_things", "find_member", "lend_thing", "add_thing"]]
    assert model.asked["write_method"] == 0
    assert made.dropped == ()


@pytest.mark.anyio
async def test_a_program_does_not_depend_on_how_many_methods_are_asked_for_at_once(opened: Opened) -> None:
    sources = {(await programmed(LendingModel(), opened, methods_per_call=count)).source for count in (1, 2, 6)}
    assert len(sources) == 1


@pytest.mark.anyio
async def test_only_what_a_reply_lacks_is_asked_for_again(opened: Opened) -> None:
    model = Batched(lambda reply: reply.replace("def find_member(self", "def find_members(self"))
    made = await programmed(model, opened)
    assert [tool.name for tool in made.tools] == list(METHODS)
    assert len(model.batches) == 1  # one alone is asked for as one
    assert model.asked["write_method"] == 1
    assert made.dropped == ()


@pytest.mark.anyio
async def test_methods_in_one_fence_or_in_a_class_are_taken_apart(opened: Opened) -> None:
    def in_one_fence(reply: str) -> str:
        return reply.replace("```\n\n```python\n", "\n")

    def in_a_class(reply: str) -> str:
        body = in_one_fence(reply).replace("```python\n", "").replace("```", "").splitlines()
        rows = [row for row in body if not row.startswith(("import", "from"))]
        inside = "\n".join(f"    {row}" for row in rows)
        return f"```python\nimport copy\nfrom typing import Any\n\nclass LendingDesk:\n{inside}\n```"

    usual = await programmed(LendingModel(), opened)
    for change in (in_one_fence, in_a_class):
        model = Batched(change)
        made = await programmed(model, opened)
        assert model.asked["write_method"] == 0
        assert made.source == usual.source


@pytest.mark.anyio
@pytest.mark.parametrize("reply", ["I would rather not.", "```python\nclass Desk:\n    pass\n```"])
async def test_a_model_that_is_not_up_to_several_is_asked_for_one_at_a_time(reply: str, opened: Opened) -> None:
    model = Batched(lambda _: reply)
    made = await programmed(model, opened)
    assert [tool.name for tool in made.tools] == list(METHODS)
    assert len(model.batches) == 1
    assert model.asked["write_method"] == 4
    assert made.dropped == (ONE_AT_A_TIME,)


LEND = METHODS["lend_thing"]
CHECK = '    if self.things[thing_id]["status"] != "free":\n'
"""A refusal that works; tests put one that does not in its place."""


class Broken(LendingModel):
    """Always writes `lend_thing` like that, unless it is asked for without rules."""

    def __init__(self, bad: str, without_rules: str | None = None) -> None:
        super().__init__()
        self.bad = bad
        self.without_rules = without_rules

    def plan_state(self, inputs: t.PlanStateInputs) -> Any:
        plan = super().plan_state(inputs)
        plan["rules"].append({"text": "A member whose card has expired borrows nothing."})
        return plan

    def write_method(self, inputs: t.WriteMethodInputs) -> Any:
        if inputs.tool.name != "lend_thing":
            return super().write_method(inputs)
        source = self.bad if inputs.rules else self.without_rules or self.bad
        return f"```python\n{source}\n```"


EXPIRED = """
    if self.members[member_id]["card_expires"] < self.now:
        return {"success": False, "error": "expired"}
"""


@pytest.mark.anyio
async def test_a_method_that_stays_broken_is_written_without_rules(opened: Opened) -> None:
    model = Broken(LEND.replace(CHECK, EXPIRED + CHECK), without_rules=LEND)
    made = await programmed(model, opened)
    assert len(made.tools) == 4
    assert "card_expires" not in made.source
    (told,) = made.dropped
    assert told.startswith("tool lend_thing: written without rules, because ")
    assert [rule.enforced for rule in made.rules] == [None, False]


@pytest.mark.anyio
async def test_a_refusal_that_fails_is_taken_out_and_its_rule_is_not_enforced(opened: Opened) -> None:
    made = await programmed(Broken(LEND.replace(CHECK, EXPIRED + CHECK)), opened)
    assert len(made.tools) == 4
    assert "card_expires" not in made.source
    assert CHECK.strip() in made.source
    (told,) = made.dropped
    assert "the refusal `if self.members[member_id]['card_expires'] < self.now` was taken out" in told
    assert "not enforced: A member whose card has expired borrows nothing." in told
    assert [rule.enforced for rule in made.rules] == [None, False]


@pytest.mark.anyio
async def test_two_refusals_that_fail_are_taken_out(opened: Opened) -> None:
    another = '    if datetime.now() > limit:\n        return {"success": False, "error": "late"}\n'
    made = await programmed(Broken(LEND.replace(CHECK, EXPIRED + another + CHECK)), opened)
    assert len(made.tools) == 4
    assert "limit" not in made.source
    assert CHECK.strip() in made.source


@pytest.mark.anyio
async def test_a_refusal_that_comes_too_late_is_not_taken_out_but_the_tool_is_dropped(opened: Opened) -> None:
    late = LEND.replace(CHECK, '    self.next_number += 1\n    if thing_id != "T-77":\n')
    made = await programmed(Broken(late), opened)
    assert "lend_thing" not in [tool.name for tool in made.tools]
