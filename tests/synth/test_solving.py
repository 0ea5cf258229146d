"""Tests of solver runs: which one is the solution, what it is made of, and what runs that disagree are good for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from synth.lending import LendingModel, Variant, called, check_code

from envscaler.errors import EndpointUnavailable, RequestFailed
from envscaler.llm.chat import ModelRequest
from envscaler.messages import AssistantMessage, ToolMessage
from envscaler.models import Models
from envscaler.probe import planned
from envscaler.proof.playing import play
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.sandbox import Sandbox
from envscaler.skeleton import EnvSkeleton, Origin
from envscaler.synth.asking import Asking
from envscaler.synth.finishing import Proved
from envscaler.synth.scenarios import ScenarioWriter
from envscaler.synth.solving import SolverRuns

Opened = Callable[[LendingModel], Models]
Act = Callable[[list[Any]], AssistantMessage | str]
"""An agent: from what its calls returned so far to its next message."""

pytestmark = pytest.mark.anyio


async def written(skeleton: EnvSkeleton, model: LendingModel, opened: Opened, runs: int | None = None) -> Proved:
    async with opened(model) as models, Sandbox() as sandbox:
        writer = ScenarioWriter(
            skeleton,
            seed=4,
            asking=Asking(models, Prompts(), 3),
            sandbox=sandbox,
            origin=Origin(seed=4),
            solver_runs=SolverRuns.of(models, runs),
        )
        (outcome,) = await writer.write(range(1))
        assert isinstance(outcome, Proved), outcome
        return outcome


class Played(Variant):
    """A fake model whose runs as an agent are given, one after the other."""

    def __init__(self, *acts: Act, **answers: Any) -> None:
        super().__init__(**answers)
        self._acts = list(acts)
        self._act = acts[0]

    def agent_turn(self, inputs: t.AgentTurnInputs) -> AssistantMessage | str:
        seen = [message.content for message in inputs.conversation if isinstance(message, ToolMessage)]
        if not any(isinstance(message, AssistantMessage) for message in inputs.conversation):
            self._act = self._acts.pop(0)
        return self._act([json.loads(text) if text.startswith("{") else text for text in seen])


def script(*calls: AssistantMessage) -> Act:
    return lambda seen: calls[len(seen)] if len(seen) < len(calls) else "That is all."


def lend(thing: str, member: str) -> AssistantMessage:
    return called("lend_thing", thing_id=thing, member_id=member)


FIND_THINGS = called("find_things", status="free")


async def test_the_shortest_run_that_agrees_with_the_plan_is_the_solution_and_the_plan_another_way(
    skeleton: EnvSkeleton, opened: Opened
) -> None:
    model = LendingModel()
    proved = await written(skeleton, model, opened)
    assert model.asked["agent_turn"] == 2 * 4
    assert proved.accepted
    assert proved.scenario.solution is not None
    assert [call.name for call in proved.scenario.solution] == ["lend_thing"]
    assert [[call.name for call in way] for way in proved.scenario.alternatives] == [
        ["find_member", "find_things", "lend_thing"]
    ]
    assert proved.scenario.difficulty is not None
    assert (proved.scenario.difficulty.calls, proved.scenario.difficulty.look_ups) == (1, 2)
    assert proved.scenario.origin.use["solve"].calls == 8


async def test_calls_that_fail_or_are_not_missed_are_left_out(skeleton: EnvSkeleton, opened: Opened) -> None:
    clumsy = script(
        called("find_member", name="Nobody"),
        called("burn_thing"),
        called("lend_thing", thing_id=["T-2"], member_id="M-1"),
        lend("T-1", "M-1"),
        FIND_THINGS,
        lend("T-2", "M-1"),
        lend("T-2", "M-1"),
    )
    proved = await written(skeleton, Played(clumsy, script()), opened)
    assert proved.accepted
    assert proved.scenario.solution is not None
    assert [(call.name, call.arguments) for call in proved.scenario.solution] == [
        ("lend_thing", {"thing_id": "T-2", "member_id": "M-1"})
    ]
    assert not proved.scenario.origin.dropped


def adding(**answers: Any) -> dict[str, Any]:
    """Answers for another task: a new thing is added and lent at once."""

    def task(inputs: t.WriteTaskInputs, usual: Any) -> Any:
        made = {"/thing_id": {"call": 0, "pointer": "/data/thing_id"}}
        return {
            "task": f"Add a thing labelled 'saw' and lend it to {inputs.state['members']['M-1']['name']}.",
            "plan": [
                {"name": "add_thing", "arguments": {"label": "saw"}},
                {"name": "lend_thing", "arguments": {"thing_id": "?", "member_id": "M-1"}, "bindings": made},
            ],
        }

    new = '[one for key, one in final_state["things"].items() if key not in initial_state["things"]]'
    want = '[("saw", "lent", "M-1")]'
    return {
        "write_task": task,
        "write_checklist": lambda inputs, usual: {"checklist": ["Has a new saw been added and lent to M-1?"]},
        "write_check": lambda inputs, usual: check_code(
            f'return [(one["label"], one["status"], one["member_id"]) for one in {new}] == {want}'
        ),
        **answers,
    }


async def test_an_id_that_a_call_made_becomes_a_binding(skeleton: EnvSkeleton, opened: Opened) -> None:
    def act(seen: list[Any]) -> AssistantMessage | str:
        if not seen:
            return FIND_THINGS
        if len(seen) == 1:
            return called("add_thing", label="saw")
        return lend(seen[1]["data"]["thing_id"], "M-1") if len(seen) == 2 else "Done."

    without_plan = adding(write_task=lambda inputs, usual: {**adding()["write_task"](inputs, usual), "plan": []})
    proved = await written(skeleton, Played(act, act, **without_plan), opened)
    assert proved.accepted, proved.reason
    scenario = proved.scenario
    assert scenario.solution is not None
    add, lent = scenario.solution
    assert (add.name, lent.name) == ("add_thing", "lend_thing")
    assert {pointer: (one.call, one.pointer) for pointer, one in lent.bindings.items()} == {
        "/thing_id": (0, "/data/thing_id")
    }
    assert lent.arguments == {"thing_id": "T-5", "member_id": "M-1"}
    # It finds the new thing also where that has another id.
    state = {**scenario.initial_state, "next_number": 80}
    async with Sandbox() as sandbox:
        elsewhere = scenario.model_copy(update={"initial_state": state})
        played = await play(skeleton, elsewhere, planned(scenario.solution), sandbox)
    assert played.succeeded
    assert played.final["things"]["T-80"]["member_id"] == "M-1"


def status_alone(inputs: t.WriteCheckInputs, usual: Any) -> Any:
    """A weak check for as long as nobody complains."""
    if inputs.position == 0 and inputs.fault is None:
        return check_code('return final_state["things"]["T-2"]["status"] == "lent"')
    return usual


WRONG_MEMBER = script(FIND_THINGS, lend("T-2", "M-3"))
RIGHT = script(FIND_THINGS, lend("T-2", "M-1"))


async def test_a_run_that_cheats_weak_checks_goes_back_to_their_writer(skeleton: EnvSkeleton, opened: Opened) -> None:
    faults: list[t.WriteCheckInputs] = []

    def check(inputs: t.WriteCheckInputs, usual: Any) -> Any:
        faults.extend([inputs] if inputs.fault is not None else [])
        return status_alone(inputs, usual)

    # Both runs are shorter than the plan, agree with each other, and satisfy the checks as they were first written.
    proved = await written(skeleton, Played(WRONG_MEMBER, WRONG_MEMBER, write_check=check), opened)
    assert proved.accepted
    assert proved.scenario.solution is not None
    assert proved.scenario.solution[-1].arguments == {"thing_id": "T-2", "member_id": "M-1"}
    assert proved.proof.mutation_score == 1.0
    (complaint,) = faults
    assert complaint.item == "Has T-2 been lent to M-1?"
    assert complaint.previous is not None
    assert '"status"] == "lent"' in complaint.previous
    assert complaint.fault is not None
    assert "All was as the task asks for, except that member_id of things/T-2 was" in complaint.fault
    assert "lend_thing" not in complaint.fault
    assert "M-1" not in complaint.fault


async def test_a_scenario_whose_checks_a_cheating_run_still_satisfies_is_not_accepted(
    skeleton: EnvSkeleton, opened: Opened
) -> None:
    def check(inputs: t.WriteCheckInputs, usual: Any) -> Any:
        return check_code('return final_state["things"]["T-2"]["status"] == "lent"') if not inputs.position else usual

    proved = await written(skeleton, Played(WRONG_MEMBER, RIGHT, write_check=check), opened)
    assert not proved.accepted
    assert "a run that comes to something else satisfies them all" in proved.reason
    assert 'member_id of things/T-2 was "M-3"' in proved.reason
    assert any(reason.startswith("checks: ") for reason in proved.scenario.origin.dropped)


async def test_without_a_plan_that_runs_the_largest_group_is_right(skeleton: EnvSkeleton, opened: Opened) -> None:
    def no_plan(inputs: t.WriteTaskInputs, usual: Any) -> Any:
        return {**usual, "plan": []}

    two_of_three = Played(RIGHT, WRONG_MEMBER, RIGHT, write_task=no_plan)
    proved = await written(skeleton, two_of_three, opened, runs=3)
    assert proved.accepted
    assert proved.scenario.solution is not None
    assert proved.scenario.solution[-1].arguments == {"thing_id": "T-2", "member_id": "M-1"}
    undecided = await written(skeleton, Played(RIGHT, WRONG_MEMBER, write_task=no_plan), opened)
    assert undecided.scenario.solution is None
    assert "the writer of the task gave no plan, and runs do not agree on what the task comes to" in undecided.reason
    # Runs that did nothing are no group, and one that was cut off decides nothing.
    idle = await written(skeleton, Played(script(), RIGHT, script(), write_task=no_plan), opened, runs=3)
    assert idle.accepted
    endless: Act = lambda seen: lend("T-2", "M-3") if not seen else FIND_THINGS  # noqa: E731 - an agent in one line
    cut_off = await written(skeleton, Played(endless, endless, RIGHT, write_task=no_plan), opened, runs=3)
    assert cut_off.accepted


async def test_the_plan_outweighs_runs_that_agree_with_each_other(skeleton: EnvSkeleton, opened: Opened) -> None:
    proved = await written(skeleton, Played(WRONG_MEMBER, WRONG_MEMBER), opened)
    assert proved.accepted
    assert proved.scenario.solution is not None
    assert proved.scenario.solution[-1].arguments["member_id"] == "M-1"
    assert proved.scenario.alternatives == ()


async def test_no_runs_are_made_where_none_are_asked_for(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = LendingModel()
    proved = await written(skeleton, model, opened, runs=0)
    assert proved.accepted
    assert model.asked["agent_turn"] == 0
    assert proved.scenario.solution is not None
    assert len(proved.scenario.solution) == 3
    assert "solve" not in proved.scenario.origin.use


async def test_a_run_that_the_endpoint_refuses_costs_only_itself(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = LendingModel()
    answered = 0

    async def refuse(request: ModelRequest) -> None:
        nonlocal answered
        if request.role == "agent_turn":
            answered += 1
            if answered == 1:
                raise RequestFailed("no tools here")

    model.before_answer = refuse
    proved = await written(skeleton, model, opened)
    assert proved.accepted
    assert proved.scenario.origin.dropped == ("run 1: no tools here",)
    assert proved.scenario.solution is not None
    assert len(proved.scenario.solution) == 1


async def test_an_endpoint_that_is_down_is_nobody_s_fault(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = LendingModel()

    async def stay_down(request: ModelRequest) -> None:
        if request.role == "agent_turn":
            raise EndpointUnavailable("down")

    model.before_answer = stay_down
    with pytest.raises(EndpointUnavailable):
        await written(skeleton, model, opened)
