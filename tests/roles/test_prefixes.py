"""The law that decides what calls cost at servers with prompt caches: what calls have in common stands first.

It is measured on an environment of usual size, as the share of the longer of two prompts that both begin with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envscaler.assessment import CaseType
from envscaler.messages import AssistantMessage, ToolCall, UserMessage
from envscaler.offline.design import class_source, entities_of, program_of, rules_of, tools_of
from envscaler.offline.domains import domains
from envscaler.offline.methods import method_source
from envscaler.offline.states import make_state
from envscaler.record import Record
from envscaler.roles import role as roles
from envscaler.roles import staged as s
from envscaler.roles import types as t
from envscaler.roles.role import ROLES, Prompts, Role
from envscaler.skeleton import EnvDescription, ToolSpec

DESK = next(domain for domain in domains() if domain.slug == "library-lending")
TOOLS = tools_of(DESK)
QUERIES = tuple(tool for tool in TOOLS if tool.effect == "query")
UPDATES = tuple(tool for tool in TOOLS if tool.effect == "update")
STATE = make_state(DESK, seed=1, index=0, purpose="scenario")
BEGINNING: dict[str, Any] = {
    "description": EnvDescription(summary=DESK.summary, introduction=DESK.introduction),
    "seed_tasks": ("Renew the loan of Ana Bell and tell her when it is due.",),
}
PLANNED: dict[str, Any] = {**BEGINNING, "entities": entities_of(DESK), "rules": rules_of(DESK)}
KNOWN: dict[str, Any] = {**PLANNED, "tools": TOOLS}
CODED: dict[str, Any] = {**KNOWN, "class_source": class_source(DESK), "class_name": DESK.class_name}
WRITTEN: dict[str, Any] = {**KNOWN, "state": STATE, "clock": "2025-01-06T09:00:00", "index": 0, "seed": 1}
CHECKED: dict[str, Any] = {**WRITTEN, "task": "Renew the loan of Ana Bell."}


NAMED = (s.NamedEntity(name="Member", description="Who borrows"),)


def questions(tools: tuple[ToolSpec, ...]) -> tuple[t.MethodQuestion, ...]:
    return tuple(t.MethodQuestion(tool=tool) for tool in tools)


def tool_asked(tool: ToolSpec) -> s.WriteToolInputs:
    signature = f"def {tool.name}(self) -> dict[str, Any]:"
    return s.WriteToolInputs(**CODED, tool=tool, signature=signature, steps=("Look.", "Check."))


def judged(tool: ToolSpec, case: CaseType = "positive") -> t.JudgeCallInputs:
    operation = DESK.operation(tool.name)
    assert operation is not None
    return t.JudgeCallInputs(
        description=KNOWN["description"],
        rules=KNOWN["rules"],
        tool=tool,
        source=method_source(DESK, operation),
        call=ToolCall(name=tool.name, arguments={}),
        case=case,
        intent="It works.",
        result={"success": True},
        error=None,
        before=STATE,
        after=STATE,
        changes=(),
        shown=STATE,
    )


def elsewhere(**more: Any) -> dict[str, Any]:
    return {
        **BEGINNING,
        "description": EnvDescription(summary="Yard", introduction="A yard."),
        "seed_tasks": (),
        **more,
    }


PAIRS: dict[str, tuple[Record, Record, float]] = {
    # Asked about once: calls about two environments share what does not speak of either.
    "filter_task": (t.FilterTaskInputs(task="Lend a book."), t.FilterTaskInputs(task="Add 2 and 2."), 0.95),
    "infer_environment": (
        t.InferEnvironmentInputs(task="Lend a book.", language="en"),
        t.InferEnvironmentInputs(task="Cancel my order.", language="en"),
        0.95,
    ),
    "plan_state": (t.PlanStateInputs(**BEGINNING), t.PlanStateInputs(**elsewhere()), 0.8),
    "plan_tools": (
        t.PlanToolsInputs(**PLANNED),
        t.PlanToolsInputs(**elsewhere(entities=PLANNED["entities"], rules=())),
        0.45,
    ),
    "write_class": (
        t.WriteClassInputs(**KNOWN),
        t.WriteClassInputs(**elsewhere(entities=PLANNED["entities"], rules=(), tools=TOOLS)),
        0.35,
    ),
    "name_entities": (t.PlanStateInputs(**BEGINNING), t.PlanStateInputs(**elsewhere()), 0.6),
    "describe_entities": (
        s.DescribeEntitiesInputs(**BEGINNING, named=NAMED),
        s.DescribeEntitiesInputs(**elsewhere(named=NAMED)),
        0.6,
    ),
    "list_tools": (
        s.ListToolsInputs(**BEGINNING, entities=PLANNED["entities"]),
        s.ListToolsInputs(**elsewhere(entities=PLANNED["entities"])),
        0.5,
    ),
    # Asked about often: calls about one environment share all that they can.
    "write_method": (
        t.WriteMethodInputs(**CODED, tool=QUERIES[0]),
        t.WriteMethodInputs(**CODED, tool=UPDATES[0]),
        0.85,
    ),
    "write_methods": (
        t.WriteMethodsInputs(**CODED, questions=questions(QUERIES[:6])),
        t.WriteMethodsInputs(**CODED, questions=questions(UPDATES[:6])),
        0.7,
    ),
    "write_tool": (tool_asked(QUERIES[0]), tool_asked(UPDATES[0]), 0.85),
    "write_records": (
        s.WriteRecordsInputs(**KNOWN, purpose="scenario", index=0, seed=1, ids={"members": ("member_1",)}),
        s.WriteRecordsInputs(**KNOWN, purpose="assessment", index=4, seed=2, ids={"members": ("member_41",)}),
        0.9,
    ),
    "write_state": (
        t.WriteStateInputs(**KNOWN, source=program_of(DESK), purpose="scenario", index=0, seed=1),
        t.WriteStateInputs(
            **KNOWN, source=program_of(DESK), purpose="assessment", index=4, seed=2, fault="It is empty."
        ),
        0.98,
    ),
    "test_call": (
        t.TestCallInputs(**KNOWN, state=STATE, tool=QUERIES[0], case="positive", round=0, seed=1),
        t.TestCallInputs(**KNOWN, state=STATE, tool=UPDATES[0], case="negative", round=9, seed=2, history=("a", "b")),
        0.95,
    ),
    "judge_call": (judged(UPDATES[0]), judged(UPDATES[0], case="negative"), 0.9),
    "write_task": (
        t.WriteTaskInputs(**WRITTEN),
        t.WriteTaskInputs(**{**WRITTEN, "state": {**STATE, "loans": {}}, "index": 3}, earlier=("Lend a book.",)),
        0.8,
    ),
    "write_checklist": (
        t.WriteChecklistInputs(**CHECKED),
        t.WriteChecklistInputs(**{**CHECKED, "task": "Other."}),
        0.95,
    ),
    "write_check": (
        t.WriteCheckInputs(**CHECKED, item="Has the loan been renewed?", position=0),
        t.WriteCheckInputs(**CHECKED, item="Are all other loans as they were?", position=5),
        0.95,
    ),
    "write_checks": (
        t.WriteChecksInputs(**CHECKED, questions=(t.CheckQuestion(item="Renewed?", position=0),)),
        t.WriteChecksInputs(**CHECKED, questions=(t.CheckQuestion(item="No other?", position=1),)),
        0.95,
    ),
    "user_turn": (
        t.UserTurnInputs(task="Renew my loan.", profile=None, stop_token="###STOP###"),
        t.UserTurnInputs(
            task="Renew my loan.",
            profile=None,
            transcript=(UserMessage(content="Hello."), AssistantMessage(content="Which loan?")),
            stop_token="###STOP###",
        ),
        0.9,
    ),
    "play_user": (
        t.PlayUserInputs(instructions="Renew your loan.", greeting="Hello.", stop_token="###STOP###"),
        t.PlayUserInputs(
            instructions="Renew your loan.",
            greeting="Hello.",
            transcript=(t.HeardLine(speaker="user", text="Hi."), t.HeardLine(speaker="assistant", text="Which loan?")),
            stop_token="###STOP###",
        ),
        0.9,
    ),
}
"""Two calls of each role, and the share that they begin with alike at least."""

by_pair = pytest.mark.parametrize("name", PAIRS)


def prompt(role: Role[Any], inputs: Record) -> str:
    return "\n".join(message.content for message in Prompts().render(role, inputs))


def shared(first: str, second: str) -> float:
    alike = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    return alike / max(len(first), len(second))


@by_pair
def test_two_calls_of_a_role_begin_alike_for_a_stated_share(name: str) -> None:
    role = next(role for role in ROLES if role.name == name)
    first, second, least = PAIRS[name]
    assert shared(prompt(role, first), prompt(role, second)) >= least


def test_every_role_that_is_sent_to_endpoints_is_held_to_it() -> None:
    assert set(PAIRS) == {role.name for role in ROLES} - {"agent_turn"}


def test_one_method_and_several_are_asked_for_with_one_prompt_up_to_the_tools() -> None:
    one = prompt(roles.WRITE_METHOD, PAIRS["write_method"][0])
    several = prompt(roles.WRITE_METHODS, PAIRS["write_methods"][0])
    assert one.partition("## The tool to write")[0] == several.partition("## The tools to write")[0]


@pytest.mark.parametrize(
    ("role", "inputs"),
    [
        (
            roles.WRITE_METHOD,
            lambda fault: t.WriteMethodInputs(**CODED, tool=UPDATES[0], fault=fault, previous="x = 1"),
        ),
        (
            roles.WRITE_CHECK,
            lambda fault: t.WriteCheckInputs(**CHECKED, item="Renewed?", position=0, fault=fault, previous="x = 1"),
        ),
    ],
)
def test_what_goes_back_with_a_fault_begins_like_what_was_asked_first(
    role: Role[Any], inputs: Callable[[str | None], Record]
) -> None:
    first, again = prompt(role, inputs(None)), prompt(role, inputs("It raised KeyError."))
    assert again.startswith(first)
