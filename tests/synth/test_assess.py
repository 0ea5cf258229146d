"""Tests of the assessment: a balanced schedule, chains that share nothing, and oracles that have the last word."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synth.lending import LendingModel, Variant

from envscaler.assessment import Assessment
from envscaler.llm.chat import ModelRequest
from envscaler.messages import ToolCall
from envscaler.models import Models
from envscaler.program import replace_method
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.sandbox import Sandbox
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.synth.asking import Asking
from envscaler.synth.assess import CHAINS, Terms, assess, refusal, schedule

Opened = Callable[[LendingModel], Models]


async def assessed(
    skeleton: EnvSkeleton, model: LendingModel, opened: Opened, rounds: int = 40, **terms: Any
) -> Assessment:
    async with opened(model) as models, Sandbox() as sandbox:
        return await assess(
            skeleton,
            Terms(rounds=rounds, threshold=0.85, by="pass", **terms),
            seed=3,
            asking=Asking(models, Prompts(), 2),
            sandbox=sandbox,
        )


def changed(skeleton: EnvSkeleton, name: str, code: str) -> EnvSkeleton:
    source = replace_method(skeleton.source, skeleton.class_name, name, code)
    return skeleton.model_copy(update={"source": source})


class Blind(LendingModel):
    """Makes the same calls whatever the state looks like."""

    def test_call(self, inputs: t.TestCallInputs) -> Any:
        arguments = {"find_member": {"name": "Ana"}, "lend_thing": {"thing_id": "T-2", "member_id": "M-1"}}
        arguments |= {"add_thing": {"label": "x"}}
        return {"intent": "", "arguments": arguments.get(inputs.tool.name, {})}

    def judge_call(self, inputs: t.JudgeCallInputs) -> Any:
        return {"reason": "", "verdict": "pass"}


def spec(name: str, effect: str = "query") -> ToolSpec:
    return ToolSpec.model_validate({"name": name, "description": name, "parameters": {}, "effect": effect})


@given(st.integers(1, 30), st.integers(0, 300))
def test_the_schedule_is_balanced_over_tools_and_cases(tools: int, rounds: int) -> None:
    turns = schedule([spec(f"tool_{number}") for number in range(tools)], rounds)
    assert [turn.round for turn in turns] == list(range(rounds))
    by_tool = Counter(turn.tool.name for turn in turns)
    assert max(by_tool.values(), default=0) - min((by_tool[f"tool_{n}"] for n in range(tools)), default=0) <= 1
    for name, count in by_tool.items():
        positive = sum(turn.case == "positive" for turn in turns if turn.tool.name == name)
        assert abs(2 * positive - count) <= 1
    cases = Counter(turn.case for turn in turns)
    assert abs(cases["positive"] - cases["negative"]) <= tools


@pytest.mark.anyio
async def test_a_sound_environment_passes_every_round(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = LendingModel()
    assessment = await assessed(skeleton, model, opened, all_rounds=True, judge="all")
    assert assessment.accepted
    assert [case.round for case in assessment.cases] == list(range(40))
    assert assessment.failures == ()
    assert {case.judge for case in assessment.cases} == {"model"}
    refused = [case for case in assessment.cases if case.error is not None]
    assert {case.call.name for case in refused} == {"find_things"}
    assert all(case.before == case.after for case in refused)


@pytest.mark.anyio
async def test_chains_evolve_by_themselves_from_one_state(skeleton: EnvSkeleton, opened: Opened) -> None:
    assessment = await assessed(skeleton, LendingModel(), opened)
    assert len({case.before for case in assessment.cases[:CHAINS]}) == 1
    for chain in range(CHAINS):
        cases = [case for case in assessment.cases if case.round % CHAINS == chain]
        assert [case.before for case in cases[1:]] == [case.after for case in cases[:-1]]
    assert any(case.before != case.after for case in assessment.cases)


@pytest.mark.anyio
async def test_the_testing_agent_is_told_of_earlier_calls_of_the_same_kind(
    skeleton: EnvSkeleton, opened: Opened
) -> None:
    assessment = await assessed(skeleton, LendingModel(), opened)
    assert assessment.cases[0].intent.endswith("seen before: 0")
    last = [case for case in assessment.cases if case.call.name == "lend_thing" and case.case == "positive"][-1]
    assert last.intent.endswith(("seen before: 4", "seen before: 3"))


@pytest.mark.anyio
async def test_an_oracle_has_the_last_word(skeleton: EnvSkeleton, opened: Opened) -> None:
    writes = "def find_member(self, name: str):\n    self.next_number += 1\n    return {'success': True, 'data': name}"
    model = LendingModel()
    assessment = await assessed(changed(skeleton, "find_member", writes), model, opened, judge="all")
    found = [case for case in assessment.cases if case.call.name == "find_member"]
    assert {(case.verdict, case.judge) for case in found} == {("fail", "oracle")}
    assert found[0].findings[0].oracle == "query_writes"
    assert not assessment.accepted
    assert model.asked["judge_call"] == len(assessment.cases) - len(found)


HIDDEN = """
def find_member(self, name: str):
    LendingDesk.asked = getattr(LendingDesk, "asked", 0) + 1
    return {"success": True, "data": LendingDesk.asked}
"""


@pytest.mark.anyio
async def test_a_tool_that_lives_on_more_than_the_state_is_found(skeleton: EnvSkeleton, opened: Opened) -> None:
    assessment = await assessed(changed(skeleton, "find_member", HIDDEN), LendingModel(), opened, rounds=80)
    failed = [case for case in assessment.cases if case.findings]
    assert {finding.oracle for case in failed for finding in case.findings} == {"nondeterministic"}
    assert {case.call.name for case in failed} == {"find_member"}
    assert {(case.verdict, case.judge) for case in failed} == {("fail", "oracle")}


UNRESTORABLE = """
def add_thing(self, label: str):
    self.things = [*self.things]
    return {"success": True, "data": label}
"""


@pytest.mark.anyio
async def test_a_state_that_the_program_cannot_go_on_from_is_found(skeleton: EnvSkeleton, opened: Opened) -> None:
    picky = skeleton.source.replace(
        "self.members: dict", 'assert isinstance(config["things"], dict)\n        self.members: dict'
    )
    picky_skeleton = changed(skeleton.model_copy(update={"source": picky}), "add_thing", UNRESTORABLE)
    assessment = await assessed(picky_skeleton, Blind(), opened, rounds=80)
    assert "not_restorable" in {finding.oracle for case in assessment.cases for finding in case.findings}


@pytest.mark.anyio
async def test_a_tool_that_raises_is_a_case_for_the_checking_agent(skeleton: EnvSkeleton, opened: Opened) -> None:
    seen: list[t.JudgeCallInputs] = []

    class Watching(LendingModel):
        def judge_call(self, inputs: t.JudgeCallInputs) -> Any:
            seen.append(inputs)
            return {"reason": "it raised", "verdict": "fail"} if inputs.error else super().judge_call(inputs)

    raises = "def find_member(self, name: str):\n    raise ValueError(name)"
    assessment = await assessed(changed(skeleton, "find_member", raises), Watching(), opened)
    case = next(case for case in assessment.cases if case.call.name == "find_member")
    assert case.error is not None
    assert case.error.startswith("ValueError")
    assert case.result is None
    judged = next(inputs for inputs in seen if inputs.tool.name == "find_member")
    assert "raise ValueError(name)" in judged.source
    assert judged.changes == ()


@pytest.mark.anyio
async def test_rounds_without_a_usable_reply_are_recorded(skeleton: EnvSkeleton, opened: Opened) -> None:
    class Mute(LendingModel):
        def test_call(self, inputs: t.TestCallInputs) -> Any:
            return "no" if inputs.tool.name == "add_thing" else super().test_call(inputs)

    assessment = await assessed(skeleton, Mute(), opened)
    assert len(assessment.cases) == 30
    assert len(assessment.failures) == 10
    assert "add_thing" in assessment.failures[0]


def test_calls_that_name_wrong_arguments_are_refused_before_the_program() -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}
    tool = spec("x").model_copy(update={"parameters": parameters})
    assert refusal(tool, ToolCall(name="x", arguments={"a": 1})) is None
    assert "missing: a" in (refusal(tool, ToolCall(name="x", arguments={"b": 1})) or "")
    assert "unknown: c" in (refusal(tool, ToolCall(name="x", arguments={"a": 1, "c": 1})) or "")
    open_tool = tool.model_copy(update={"parameters": {**parameters, "additionalProperties": True}})
    assert refusal(open_tool, ToolCall(name="x", arguments={"a": 1, "c": 1})) is None


@pytest.mark.anyio
async def test_calls_that_oracles_settle_do_not_reach_the_checking_agent(skeleton: EnvSkeleton, opened: Opened) -> None:
    seen: list[t.JudgeCallInputs] = []

    class Watching(LendingModel):
        def judge_call(self, inputs: t.JudgeCallInputs) -> Any:
            seen.append(inputs)
            return super().judge_call(inputs)

    assessment = await assessed(skeleton, Watching(), opened)
    assert {inputs.case for inputs in seen} == {"positive"}
    by_oracle = [case for case in assessment.cases if case.judge == "oracle"]
    assert {case.verdict for case in by_oracle} == {"pass"}
    assert {case.case for case in by_oracle} == {"negative", "positive"}
    settled = {case.call.name for case in by_oracle if case.case == "positive"}
    assert settled == {"find_things"}
    assert not settled & {inputs.tool.name for inputs in seen}
    assert len(seen) + len(by_oracle) == len(assessment.cases) == assessment.counts.calls
    assert assessment.counts.oracle_share == len(by_oracle) / len(assessment.cases)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError(name)",
        "return {'success': True, 'data': None}",
        "return {'success': False, 'error': ' '}",
        "return None",
    ],
)
async def test_a_wrong_call_that_is_not_plainly_refused_is_judged(
    body: str, skeleton: EnvSkeleton, opened: Opened
) -> None:
    other = changed(skeleton, "find_member", f"def find_member(self, name: str):\n    {body}")
    model = Variant(judge_call=lambda inputs, usual: {"reason": "said so", "verdict": "warning"})
    assessment = await assessed(other, model, opened)
    cases = [case for case in assessment.cases if case.call.name == "find_member"]
    assert {(case.judge, case.verdict) for case in cases} == {("model", "warning")}


@pytest.mark.anyio
async def test_rounds_end_when_the_verdict_is_settled(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = LendingModel()
    accepted = await assessed(skeleton, model, opened, rounds=100)
    assert (accepted.accepted, accepted.settled) == (True, "above")
    assert (accepted.made, accepted.saved, len(accepted.cases)) == (30, 70, 30)
    assert model.asked["test_call"] == 30
    low, high = accepted.interval or (0.0, 0.0)
    assert 0.85 < low < accepted.pass_rate == high

    hopeless = Variant(judge_call=lambda inputs, usual: {"reason": "no", "verdict": "fail"})
    rejected = await assessed(skeleton, hopeless, opened, rounds=100)
    assert (rejected.accepted, rejected.settled) == (False, "below")
    assert rejected.saved >= 50
    assert rejected.by_case["negative"].rate("pass") == 1.0
    judged = [case for case in rejected.cases if case.judge == "model"]
    assert {(case.case, case.verdict) for case in judged} == {("positive", "fail")}


@pytest.mark.anyio
async def test_all_rounds_are_made_where_nothing_is_settled_or_where_it_is_asked(
    skeleton: EnvSkeleton, opened: Opened
) -> None:
    def middling(inputs: t.JudgeCallInputs, usual: Any) -> Any:
        verdict = "fail" if inputs.tool.name == "add_thing" else "pass"
        return {"reason": "", "verdict": verdict}

    undecided = await assessed(skeleton, Variant(judge_call=middling), opened, rounds=50)
    assert (undecided.settled, undecided.saved, len(undecided.cases)) == (None, 0, 50)
    assert undecided.by_tool["add_thing"].failed == 6
    assert undecided.by_tool["find_member"].failed == 0
    asked = await assessed(skeleton, LendingModel(), opened, rounds=50, all_rounds=True)
    assert (asked.settled, asked.saved, len(asked.cases)) == ("above", 0, 50)


@pytest.mark.anyio
async def test_where_rounds_end_does_not_depend_on_the_order_of_replies(skeleton: EnvSkeleton, opened: Opened) -> None:
    straight = await assessed(skeleton, LendingModel(), opened, rounds=100)
    model, rng = LendingModel(), random.Random(5)

    async def wait(request: ModelRequest) -> None:
        for _ in range(rng.randrange(30)):
            await asyncio.sleep(0)

    model.before_answer = wait
    assert await assessed(skeleton, model, opened, rounds=100) == straight


@pytest.mark.anyio
async def test_a_fault_that_shows_only_in_the_end_unsettles_the_verdict(skeleton: EnvSkeleton, opened: Opened) -> None:
    """The calls of `find_member` look right and are seen not to repeat only after the rounds seemed to be over."""
    found = await assessed(changed(skeleton, "find_member", HIDDEN), Blind(), opened, rounds=100)
    assert found.by_tool["find_member"].failed > 0
    assert len(found.cases) > 30


def test_records_of_earlier_versions_are_read() -> None:
    record = {"env_id": "desk", "env_digest": "d", "rounds": 100, "cases": [], "threshold": 0.85, "by": "pass"}
    assessment = Assessment.model_validate(record)
    assert (assessment.judging, assessment.saved, assessment.repairs) == ("all", 0, ())
    assert (assessment.examined, assessment.at_fault) == (None, ())
    assert assessment.interval is None
