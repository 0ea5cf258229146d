"""Testing and checking agent: calls are what they are said to be, and faults of programs are seen."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.messages import ToolCall
from envscaler.offline import design
from envscaler.offline.blueprint import Blueprint
from envscaler.offline.checker import judge_call
from envscaler.offline.interpret import interpret
from envscaler.offline.states import make_state
from envscaler.offline.tester import make_test_call
from envscaler.roles.types import JudgeCallInputs, JudgeCallReply, TestCallInputs, TestCallReply
from envscaler.skeleton import EnvDescription
from envscaler.state import State, canonical, diff, encode

laws = settings(deadline=None, max_examples=40)
entities_of, rules_of, tools_of = cache(design.entities_of), cache(design.rules_of), cache(design.tools_of)
Case = Literal["positive", "negative"]


def state_of(blueprint: Blueprint, seed: int = 0) -> State:
    return make_state(blueprint, seed=seed, index=0, purpose="assessment")


def call_of(
    blueprint: Blueprint,
    state: State,
    name: str,
    case: Case,
    round_: int,
    history: tuple[str, ...] = (),
    *,
    known: bool = True,
) -> TestCallReply:
    tools = tools_of(blueprint)
    inputs = TestCallInputs(
        description=EnvDescription(summary=blueprint.summary, introduction=blueprint.introduction),
        entities=entities_of(blueprint),
        rules=rules_of(blueprint),
        tools=tools,
        state=state,
        tool=next(tool for tool in tools if tool.name == name),
        case=case,
        round=round_,
        seed=round_,
        history=history,
    )
    return make_test_call(blueprint if known else None, inputs)


def verdict_on(
    blueprint: Blueprint | None,
    described: Blueprint,
    name: str,
    arguments: dict[str, Any],
    before: State,
    after: State,
    result: Any,
    *,
    error: str | None = None,
    case: Case = "positive",
) -> JudgeCallReply:
    inputs = JudgeCallInputs(
        description=EnvDescription(summary=described.summary, introduction=described.introduction),
        rules=rules_of(described),
        tool=next(tool for tool in tools_of(described) if tool.name == name),
        source="",
        call=ToolCall(name=name, arguments=arguments),
        case=case,
        intent="to see",
        result=result,
        error=error,
        before=before,
        after=after,
        changes=diff(before, after),
        shown=before,
    )
    return judge_call(blueprint, inputs)


def right_result(blueprint: Blueprint, name: str, state: State, arguments: dict[str, Any]) -> tuple[Any, State]:
    operation = blueprint.operation(name)
    assert operation is not None
    prediction = interpret(blueprint, operation, state, arguments)
    if not prediction.success:
        return {"success": False, "error": prediction.error}, state
    return {"success": True, "message": "Done", "data": prediction.data}, prediction.state


@laws
@given(seed=st.integers(0, 500), round_=st.integers(0, 500), pick=st.integers(0, 100))
def test_positive_calls_succeed_unless_they_say_that_nothing_can_and_negative_ones_fail(
    tool_library: Blueprint, seed: int, round_: int, pick: int
) -> None:
    state = state_of(tool_library, seed)
    operation = tool_library.operations[pick % len(tool_library.operations)]
    good = call_of(tool_library, state, operation.name, "positive", round_)
    succeeds = interpret(tool_library, operation, state, good.arguments).success
    assert succeeds is not good.intent.startswith("No arguments can succeed")
    bad = call_of(tool_library, state, operation.name, "negative", round_)
    assert not interpret(tool_library, operation, state, bad.arguments).success


def test_a_call_that_breaks_a_rule_breaks_just_that_one_and_every_rule_gets_its_turn(tool_library: Blueprint) -> None:
    operation = tool_library.operation("lend_tool")
    assert operation is not None
    violated = set()
    kinds = set()
    for round_ in range(120):
        state = state_of(tool_library, round_ % 6)
        reply = call_of(tool_library, state, "lend_tool", "negative", round_)
        prediction = interpret(tool_library, operation, state, reply.arguments)
        violated.add(prediction.violated)
        if prediction.violated is not None:
            assert operation.requires[prediction.violated].rule in reply.intent
        else:
            kinds.add(reply.intent.split(" ", 1)[1])
    assert violated == {None, 0, 1, 2, 3, 4, 5}
    assert len(kinds) >= 4


def test_calls_are_not_made_again_while_there_are_others(tool_library: Blueprint) -> None:
    state = state_of(tool_library)
    for name in ("reserve", "list_loans", "join"):
        for case in ("positive", "negative"):
            history: list[str] = []
            for round_ in range(12):
                reply = call_of(tool_library, state, name, case, round_, tuple(history))
                history.append(encode(reply.arguments).decode())
            assert len(set(history)) >= 11, (name, case)


def test_the_same_round_makes_the_same_call(tool_library: Blueprint) -> None:
    state = state_of(tool_library)
    assert call_of(tool_library, state, "reserve", "negative", 7) == call_of(
        tool_library, canonical(state), "reserve", "negative", 7
    )


def test_a_tool_of_an_unknown_environment_is_tested_by_its_schema(tool_library: Blueprint) -> None:
    state = state_of(tool_library)
    good = call_of(tool_library, state, "get_member", "positive", 1, known=False)
    assert good.arguments["member_id"] in state["members"]
    bad = call_of(tool_library, state, "get_member", "negative", 1, known=False)
    assert bad.arguments.get("member_id") not in state["members"]
    assert "wrong on purpose" in bad.intent


@laws
@given(seed=st.integers(0, 500), round_=st.integers(0, 500), pick=st.integers(0, 100), positive=st.booleans())
def test_what_a_right_program_does_is_passed(
    tool_library: Blueprint, seed: int, round_: int, pick: int, positive: bool
) -> None:
    state = state_of(tool_library, seed)
    name = tool_library.operations[pick % len(tool_library.operations)].name
    case: Case = "positive" if positive else "negative"
    arguments = call_of(tool_library, state, name, case, round_).arguments
    result, after = right_result(tool_library, name, state, arguments)
    reply = verdict_on(tool_library, tool_library, name, arguments, state, after, result, case=case)
    assert reply.verdict == "pass", reply.reason


@laws
@given(seed=st.integers(0, 300), pick=st.integers(0, 100))
def test_a_program_that_forgets_a_rule_fails(tool_library: Blueprint, seed: int, pick: int) -> None:
    updates = [op for op in tool_library.operations if op.requires]
    operation = updates[pick % len(updates)]
    careless = operation.model_copy(update={"requires": ()})
    state = state_of(tool_library, seed)
    arguments = call_of(tool_library, state, operation.name, "negative", seed).arguments
    lax = interpret(tool_library, careless, state, arguments)
    if lax.success:
        reply = verdict_on(
            tool_library, tool_library, operation.name, arguments, state, lax.state, {"success": True, "data": lax.data}
        )
        assert reply.verdict == "fail"
        assert "should have been refused" in reply.reason


def test_each_way_of_being_wrong_is_named(tool_library: Blueprint) -> None:
    state = state_of(tool_library)
    arguments = call_of(tool_library, state, "change_deposit", "positive", 1).arguments
    result, after = right_result(tool_library, "change_deposit", state, arguments)

    def judged(result: Any, after: State, **more: Any) -> JudgeCallReply:
        return verdict_on(tool_library, tool_library, "change_deposit", arguments, state, after, result, **more)

    assert judged(result, after).verdict == "pass"
    refused = judged({"success": False, "error": "no"}, state)
    assert (refused.verdict, "should have succeeded" in refused.reason) == ("fail", True)
    unchanged = judged(result, state)
    assert unchanged.verdict == "fail"
    assert f"/tools/{arguments['tool_id']}/deposit" in unchanged.reason
    spoiled = canonical(after)
    spoiled["members"].popitem()
    assert "/members/" in judged(result, spoiled).reason
    wrong_data = {**result, "data": {**result["data"], "deposit": 999.0}}
    assert "/data/deposit" in judged(wrong_data, after).reason
    assert judged("fine", after).verdict == "fail"
    assert judged(None, state, error="KeyError: 'deposit'").verdict == "fail"
    whole = {**result, "data": {**result["data"], "deposit": int(result["data"]["deposit"])}}
    if whole["data"]["deposit"] == result["data"]["deposit"]:
        assert judged(whole, after).verdict == "pass"


def test_refusals_need_a_reason_and_should_not_raise(tool_library: Blueprint) -> None:
    state = state_of(tool_library)
    arguments = {"member_id": "ME-9999"}

    def judged(result: Any, arguments: dict[str, Any] = arguments, error: str | None = None) -> str:
        return verdict_on(
            tool_library, tool_library, "strike", arguments, state, state, result, error=error, case="negative"
        ).verdict

    assert judged({"success": False, "error": "there is no such member"}) == "pass"
    assert judged({"success": False}) == "warning"
    assert judged(None, error="KeyError: 'ME-9999'") == "warning"
    assert judged(None, {}, error="TypeError: missing 1 required positional argument") == "pass"


@pytest.mark.parametrize(
    ("name", "case", "result", "changed", "verdict"),
    [
        ("list_members", "positive", {"success": True, "data": []}, False, "pass"),
        ("list_members", "positive", {"success": True, "data": []}, True, "fail"),
        ("strike", "positive", {"success": True, "message": "ok"}, True, "pass"),
        ("strike", "positive", {"success": True, "message": "ok"}, False, "warning"),
        ("strike", "positive", {"success": False, "error": "no"}, True, "fail"),
        ("strike", "negative", {"success": True, "message": "ok"}, True, "fail"),
        ("strike", "negative", {"success": False, "error": "no"}, False, "pass"),
        ("strike", "negative", {"success": False}, False, "warning"),
        ("strike", "positive", [1, 2], False, "fail"),
    ],
)
def test_without_a_blueprint_general_rules_decide(
    tool_library: Blueprint, name: str, case: Case, result: Any, changed: bool, verdict: str
) -> None:
    before = state_of(tool_library)
    after = canonical(before)
    if changed:
        after["members"].popitem()
    assert verdict_on(None, tool_library, name, {}, before, after, result, case=case).verdict == verdict
