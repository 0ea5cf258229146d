"""The packaged prompts: what each role is shown, byte for byte, and what it is never shown.

`ENVSCALER_UPDATE_GOLDEN=1` writes the golden files anew; read the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, meta

from envscaler.messages import AssistantMessage, ToolCall, UserMessage
from envscaler.record import Record
from envscaler.roles import staged as s
from envscaler.roles import types as t
from envscaler.roles.role import ROLES, USER_MARK, Prompts, Role
from envscaler.sandbox import DEFAULT_CLOCK
from envscaler.scenario import Binding, SolutionCall, UserProfile
from envscaler.skeleton import Attribute, Effect, Entity, EnvDescription, Rule, ToolSpec
from envscaler.state import Change

GOLDEN = Path(__file__).parent / "golden"
SECRET = "calibrate_the_secret_valve"

DESCRIPTION = EnvDescription(
    summary="Tool rental counter",
    introduction="A counter that lends tools to members. It keeps tools, members and rentals.",
)
ENTITIES = (
    Entity(
        name="Tool",
        description="A tool that is lent",
        container="tools",
        key="tool_id",
        attributes=(
            Attribute(name="tool_id", type="str", description="Id such as T-1"),
            Attribute(name="status", type="str", enum=("available", "lent")),
        ),
    ),
    Entity(
        name="Rental",
        container="rentals",
        key="rental_id",
        attributes=(
            Attribute(name="rental_id", type="str"),
            Attribute(name="tool_id", type="str", references="Tool"),
        ),
    ),
    Entity(
        name="Counter",
        description="What exists once",
        attributes=(Attribute(name="next_rental_number", type="int"),),
    ),
)
RULES = (
    Rule(text="A tool that is lent is not lent again.", tools=("rent_tool",)),
    Rule(text="Only administrators delete members.", tools=("delete_member",)),
)
FIND = ToolSpec(
    name="find_tools",
    description="Lists tools by status.",
    parameters={
        "type": "object",
        "properties": {"status": {"type": "string", "enum": ["available", "lent"]}},
        "required": [],
    },
    effect="query",
)
RENT = ToolSpec(
    name="rent_tool",
    description="Lends a tool.",
    parameters={"type": "object", "properties": {"tool_id": {"type": "string"}}, "required": ["tool_id"]},
    effect="update",
    effects=(Effect(kind="create", entity="Rental"), Effect(kind="update", entity="Tool", attributes=("status",))),
)
STATE = {
    "tools": {"T-1": {"tool_id": "T-1", "status": "available"}},
    "rentals": {},
    "next_rental_number": 1,
}
AFTER = {
    "tools": {"T-1": {"tool_id": "T-1", "status": "lent"}},
    "rentals": {"R-1": {"rental_id": "R-1", "tool_id": "T-1"}},
    "next_rental_number": 2,
}
TASK = "Please lend me the impact drill if nobody has it."
CLASS = "class ToolRentalCounter:\n    def __init__(self, init_config=None):\n        self.tools = {}\n"
METHOD = "def rent_tool(self, tool_id: str) -> dict:\n    ...\n"
PROFILE = UserProfile(
    opening="I need a drill.",
    facts=("It is the impact drill.", "It is for two days."),
    persona="in a hurry",
    refuses=("a hand drill",),
    reveal=(0, 1),
)

ENVIRONMENT: dict[str, Any] = {"description": DESCRIPTION, "seed_tasks": (TASK,), "entities": ENTITIES, "rules": RULES}
NAMED = (s.NamedEntity(name="Tool", description="A tool that is lent"), s.NamedEntity(name="Rental", description=""))
WITH_TOOLS: dict[str, Any] = {**ENVIRONMENT, "tools": (FIND, RENT)}
WITH_STATE: dict[str, Any] = {**WITH_TOOLS, "state": STATE, "clock": "2025-01-06T09:00:00", "index": 0, "seed": 7}

INPUTS: dict[str, Record] = {
    "filter_task": t.FilterTaskInputs(task=TASK),
    "infer_environment": t.InferEnvironmentInputs(task=TASK, language="en"),
    "plan_state": t.PlanStateInputs(description=DESCRIPTION, seed_tasks=(TASK,)),
    "plan_tools": t.PlanToolsInputs(**ENVIRONMENT),
    "name_entities": t.PlanStateInputs(description=DESCRIPTION, seed_tasks=(TASK,)),
    "describe_entities": s.DescribeEntitiesInputs(description=DESCRIPTION, seed_tasks=(TASK,), named=NAMED),
    "list_tools": s.ListToolsInputs(description=DESCRIPTION, seed_tasks=(TASK,), entities=ENTITIES),
    "write_class": t.WriteClassInputs(**WITH_TOOLS),
    "write_method": t.WriteMethodInputs(**WITH_TOOLS, class_source=CLASS, class_name="ToolRentalCounter", tool=RENT),
    "write_methods": t.WriteMethodsInputs(
        **WITH_TOOLS,
        class_source=CLASS,
        class_name="ToolRentalCounter",
        questions=(
            t.MethodQuestion(tool=FIND),
            t.MethodQuestion(tool=RENT, fault="NameError: name 'copy' is not defined", previous=METHOD),
        ),
    ),
    "write_tool": s.WriteToolInputs(
        **WITH_TOOLS,
        class_source=CLASS,
        class_name="ToolRentalCounter",
        tool=RENT,
        signature="def rent_tool(self, tool_id: str) -> dict[str, Any]:",
        steps=("tool_id is a key of self.tools; error if it is not there.",),
    ),
    "write_records": s.WriteRecordsInputs(
        **WITH_TOOLS, purpose="scenario", index=1, seed=7, ids={"tools": ("tool_11", "tool_12"), "rentals": ()}
    ),
    "write_state": t.WriteStateInputs(**WITH_TOOLS, source=CLASS, purpose="scenario", index=1, seed=7),
    "test_call": t.TestCallInputs(
        **WITH_TOOLS,
        state=STATE,
        tool=RENT,
        case="negative",
        round=3,
        seed=7,
        history=('rent_tool({"tool_id": "T-9"})',),
    ),
    "judge_call": t.JudgeCallInputs(
        description=DESCRIPTION,
        rules=RULES,
        tool=RENT,
        source=METHOD,
        call=ToolCall(name="rent_tool", arguments={"tool_id": "T-1"}),
        case="positive",
        intent="An available tool can be lent.",
        result={"success": True, "message": "Lent.", "data": {"rental_id": "R-1"}},
        error=None,
        before=STATE,
        after=AFTER,
        shown=STATE,
        left_out={"visits": 3, "owners": 2},
        changes=(
            Change(pointer="/tools/T-1/status", kind="changed", before="available", after="lent"),
            Change(pointer="/rentals/R-1", kind="added", after={"rental_id": "R-1", "tool_id": "T-1"}),
        ),
    ),
    "write_task": t.WriteTaskInputs(**WITH_STATE, earlier=("Lend me a saw.",)),
    "write_checklist": t.WriteChecklistInputs(**WITH_STATE, task=TASK),
    "write_check": t.WriteCheckInputs(**WITH_STATE, task=TASK, item="Has tool T-1 been lent?", position=0),
    "write_checks": t.WriteChecksInputs(
        **WITH_STATE,
        task=TASK,
        questions=(
            t.CheckQuestion(item="Has tool T-1 been lent?", position=0),
            t.CheckQuestion(
                item="Has a rental of tool T-1 been added?",
                position=1,
                fault="KeyError: 'rentals'",
                previous="def check_func(final_state):\n    return bool(final_state['rentals'])\n",
            ),
            t.CheckQuestion(item="Has no other rental been added?", position=2),
        ),
    ),
    "agent_turn": t.AgentTurnInputs(task=TASK, solution=(SolutionCall(name=SECRET, arguments={"tool_id": "T-1"}),)),
    "user_turn": t.UserTurnInputs(
        task=TASK,
        profile=PROFILE,
        transcript=(UserMessage(content="I need a drill."), AssistantMessage(content="Which one?")),
        stop_token="###STOP###",
    ),
    "play_user": t.PlayUserInputs(
        instructions="You want to lend the impact drill. If it is out, you take the hand drill.",
        greeting="Hello, what can I do for you?",
        tools=(FIND,),
        transcript=(
            t.HeardLine(speaker="user", text="I need a drill."),
            t.HeardLine(speaker="assistant", text="Which ones do you see?"),
            t.HeardLine(speaker="user", text='{"name": "find_tools", "arguments": {}}'),
            t.HeardLine(speaker="tool", text='["T-1"]'),
        ),
        stop_token="###STOP###",
    ),
}
"""One fixed request of each role."""

OTHER_CALLS: dict[str, dict[str, Any]] = {
    "write_method": {"tool": FIND, "fault": "NameError: name 'copy' is not defined", "previous": METHOD},
    "write_methods": {"questions": (t.MethodQuestion(tool=RENT),)},
    "write_state": {"index": 4, "purpose": "assessment", "fault": "rentals: R-1 refers to no tool", "seed": 8},
    "test_call": {"state": AFTER, "tool": FIND, "case": "positive", "round": 4, "seed": 8, "history": ()},
    "judge_call": {"tool": FIND, "source": "def find_tools(self): ...", "result": [], "changes": (), "left_out": {}},
    "write_task": {"state": AFTER, "index": 2, "seed": 8, "earlier": (), "fault": "call 1 is refused"},
    "write_checklist": {"state": AFTER, "index": 2, "seed": 8, "task": "Take the drill back."},
    "write_check": {
        "item": "Has a rental of tool T-1 been added?",
        "position": 1,
        "fault": "KeyError: 'rentals'",
        "previous": "def check_func(final_state):\n    return bool(final_state['rentals'])\n",
    },
    "write_checks": {"questions": (t.CheckQuestion(item="Has the drill stayed?", position=2),)},
    "user_turn": {"transcript": ()},
}
"""For each role that is asked often about one environment, another call about the same one."""

by_role = pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)


def rendered(role: Role[Any], inputs: Record) -> str:
    return f"\n{USER_MARK}\n".join(f"[{message.role}]\n{message.content}" for message in Prompts().render(role, inputs))


def shared_start(first: str, second: str) -> str:
    length = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first))
    return first[:length]


@by_role
def test_a_rendered_prompt_equals_its_golden_file(role: Role[Any]) -> None:
    text = rendered(role, INPUTS[role.name]) + "\n"
    path = GOLDEN / f"{role.name}.txt"
    if os.environ.get("ENVSCALER_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "ENVSCALER_UPDATE_GOLDEN=1 writes it anew"


@by_role
def test_a_prompt_uses_only_inputs_of_its_role(role: Role[Any]) -> None:
    names = meta.find_undeclared_variables(Environment(autoescape=False).parse(_without_filters(Prompts().text(role))))
    assert names <= set(role.inputs.model_fields)


@by_role
def test_a_prompt_renders_with_the_least_inputs(role: Role[Any]) -> None:
    """Empty optional inputs leave no gap of blank lines and no undefined name."""
    fields = type(INPUTS[role.name]).model_fields
    required = {name: getattr(INPUTS[role.name], name) for name, field in fields.items() if field.is_required()}
    messages = Prompts().render(role, role.inputs(**required))
    assert messages[-1].role == "user"
    assert all("\n\n\n\n" not in message.content for message in messages)


@pytest.mark.parametrize("name", sorted(OTHER_CALLS))
def test_calls_about_one_environment_share_system_and_environment_part(name: str) -> None:
    role = next(role for role in ROLES if role.name == name)
    first, second = INPUTS[name], INPUTS[name].model_copy(update=OTHER_CALLS[name])
    shared = shared_start(rendered(role, first), rendered(role, second))
    system = Prompts().render(role, first)[0].content
    assert system in shared
    if name != "user_turn":  # its environment is the task, which stands in the system part
        assert DESCRIPTION.introduction in shared
        assert f"{USER_MARK}\n[user]\n# Environment: {DESCRIPTION.summary}" in shared


@pytest.mark.parametrize("name", ["test_call", "write_task"])
def test_the_tool_list_stands_in_the_shared_part(name: str) -> None:
    role = next(role for role in ROLES if role.name == name)
    shared = shared_start(
        rendered(role, INPUTS[name]), rendered(role, INPUTS[name].model_copy(update=OTHER_CALLS[name]))
    )
    assert FIND.description in shared
    assert RENT.description in shared


@by_role
def test_a_prompt_asks_for_every_field_of_a_json_reply(role: Role[Any]) -> None:
    text = Prompts().text(role)
    if role.form == "json":
        for field in role.reply.model_fields:
            assert f'"{field}"' in text
    elif role.form in ("code", "blocks"):
        assert "```python" in text


@by_role
def test_a_worked_example_is_marked_as_no_matter_of_the_reply(role: Role[Any]) -> None:
    text = Prompts().text(role)
    if "comet" in text.lower() and role.name != "filter_task":
        assert "must not appear in your reply" in text


def test_the_recorded_solution_is_in_no_prompt() -> None:
    assert SECRET not in rendered(next(role for role in ROLES if role.name == "agent_turn"), INPUTS["agent_turn"])


def test_neither_tester_nor_writer_of_checks_can_be_shown_source_or_plan() -> None:
    assert not {"source", "class_source"} & set(t.TestCallInputs.model_fields)
    for inputs in (t.WriteChecklistInputs, t.WriteCheckInputs, t.WriteChecksInputs, t.CheckQuestion):
        assert not {"source", "plan", "solution", "bindings"} & set(inputs.model_fields)


def test_a_query_is_written_without_rules_and_an_update_only_with_its_own() -> None:
    role = next(role for role in ROLES if role.name == "write_method")
    update = rendered(role, INPUTS["write_method"])
    query = rendered(role, INPUTS["write_method"].model_copy(update={"tool": FIND}))
    assert RULES[0].text in update
    assert RULES[1].text not in update
    assert RULES[0].text not in query


def test_negative_rounds_go_through_the_kinds_in_turn() -> None:
    role = next(role for role in ROLES if role.name == "test_call")
    kinds = set()
    for number in range(7):
        text = rendered(role, INPUTS["test_call"].model_copy(update={"round": number}))
        kinds.add(text.split("Kind to try first: ")[1].split(";")[0])
    assert len(kinds) == 7


def test_a_simulated_user_is_told_its_opening_and_its_stop_token() -> None:
    role = next(role for role in ROLES if role.name == "user_turn")
    inputs = t.UserTurnInputs(task=TASK, profile=PROFILE, stop_token="###STOP###")
    text = rendered(role, inputs)
    assert "I need a drill." in text
    assert "###STOP###" in text
    assert "I need a drill." not in rendered(role, inputs.model_copy(update={"profile": None}))


@pytest.mark.parametrize("name", ["write_class", "write_state"])
def test_prompts_name_the_time_at_which_sessions_start(name: str) -> None:
    assert DEFAULT_CLOCK in Prompts().text(next(role for role in ROLES if role.name == name))


def test_text_of_a_task_is_never_rendered_as_a_template() -> None:
    role = next(role for role in ROLES if role.name == "filter_task")
    task = "{{ 7 * 7 }} {% for x in y %} === user ==="
    assert task in rendered(role, t.FilterTaskInputs(task=task))


def test_a_binding_can_be_written_as_the_prompt_shows_it() -> None:
    call = SolutionCall.model_validate(
        {"name": "move", "arguments": {"id": "C-2"}, "bindings": {"/id": {"call": 0, "pointer": "/data/0/id"}}}
    )
    assert call.bindings["/id"] == Binding(call=0, pointer="/data/0/id")


def _without_filters(text: str) -> str:
    return text.replace(" | json", "")
