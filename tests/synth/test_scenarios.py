"""Tests of scenarios: what is accepted, what is dropped, and what a recorded solution is worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from synth.lending import LendingModel, Variant, check_code

from envscaler.models import Models
from envscaler.roles import types as t
from envscaler.roles.role import Prompts
from envscaler.sandbox import Program, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, Origin
from envscaler.synth.asking import Asking
from envscaler.synth.finishing import Proved
from envscaler.synth.scenarios import ScenarioWriter

Opened = Callable[[LendingModel], Models]


async def written(
    skeleton: EnvSkeleton,
    model: LendingModel,
    opened: Opened,
    indices: range = range(2),
    earlier: tuple[Scenario, ...] = (),
    min_distance: float = 0.02,
) -> list[Proved | str]:
    async with opened(model) as models, Sandbox() as sandbox:
        writer = ScenarioWriter(
            skeleton,
            seed=4,
            asking=Asking(models, Prompts(), 3),
            sandbox=sandbox,
            origin=Origin(seed=4),
            min_state_distance=min_distance,
        )
        return await writer.write(indices, earlier)


def scenarios_in(outcomes: list[Proved | str]) -> list[Scenario]:
    """Those that were written, good enough or not."""
    return [outcome.scenario for outcome in outcomes if isinstance(outcome, Proved)]


@pytest.mark.anyio
async def test_a_recorded_solution_makes_every_check_hold_and_doing_nothing_does_not(
    skeleton: EnvSkeleton, opened: Opened
) -> None:
    outcomes = await written(skeleton, LendingModel(), opened)
    assert len(scenarios_in(outcomes)) == 2
    async with Sandbox() as sandbox:
        for scenario in scenarios_in(outcomes):
            assert scenario.solution is not None
            session = await sandbox.open(
                Program(skeleton.source, skeleton.class_name),
                scenario.initial_state,
                seed=scenario.seed,
                clock=scenario.clock,
            )
            for call in scenario.solution:
                await session.call(call.name, call.arguments)
            final = await session.state()
            await session.close()
            sources = [check.source for check in scenario.checks]
            initial = scenario.initial_state
            after = await sandbox.check(sources, initial_state=initial, final_state=final, clock=scenario.clock)
            before = await sandbox.check(sources, initial_state=initial, final_state=initial, clock=scenario.clock)
            assert all(outcome.value is True for outcome in after)
            assert [outcome.value for outcome in before] == [check.kind == "guard" for check in scenario.checks]
            assert "guard" in [check.kind for check in scenario.checks]


@pytest.mark.anyio
async def test_difficulty_is_read_off_the_solution(skeleton: EnvSkeleton, opened: Opened) -> None:
    (scenario, *_) = scenarios_in(await written(skeleton, LendingModel(), opened))
    assert scenario.difficulty is not None
    assert scenario.difficulty.model_dump() == {
        "calls": 3,
        "updates": 1,
        "entities": 1,
        "rules": 1,
        "distractors": 2,
        "look_ups": 2,
        "forbidden": 0,
    }
    assert scenario.difficulty.level == "easy"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ([], "gave no plan"),
        ([{"name": "find_member", "arguments": {"name": "Nobody"}}], "no member named 'Nobody'"),
        ([{"name": "burn_thing", "arguments": {}}], "no such tool"),
        ([{"name": "add_thing", "arguments": {"label": 5}}], "label"),
        ([{"name": "find_things", "arguments": {}}], "changes nothing"),
        ([{"name": "add_thing", "arguments": {"label": "other"}}], "these checks do not hold: Has T-2 been lent"),
        (
            [
                {
                    "name": "add_thing",
                    "arguments": {"label": "x"},
                    "bindings": {"/label": {"call": 0, "pointer": "/data"}},
                }
            ],
            "which is no earlier call",
        ),
        (
            [
                {"name": "find_things", "arguments": {}},
                {
                    "name": "add_thing",
                    "arguments": {"label": "x"},
                    "bindings": {"/label": {"call": 0, "pointer": "/no"}},
                },
            ],
            "one of the two is not there",
        ),
    ],
)
async def test_a_plan_that_is_no_solution_leaves_the_scenario_without_one(
    plan: list[Any], said: str, skeleton: EnvSkeleton, opened: Opened
) -> None:
    model = Variant(write_task=lambda inputs, usual: {**usual, "plan": plan})
    (scenario,) = scenarios_in(await written(skeleton, model, opened, range(1)))
    assert scenario.solution is None
    assert scenario.difficulty is None
    (reason,) = scenario.origin.dropped
    assert reason.startswith("solution: ")
    assert said in reason


@pytest.mark.anyio
async def test_a_plan_that_does_not_run_goes_back_once(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = Variant(
        write_task=lambda inputs, usual: {
            **usual,
            "plan": usual["plan"]
            if model.asked["write_task"] > 1
            else [{"name": "find_member", "arguments": {"name": "Nobody"}}],
        }
    )
    (scenario,) = scenarios_in(await written(skeleton, model, opened, range(1)))
    assert model.asked["write_task"] == 2
    assert scenario.solution is not None


@pytest.mark.anyio
async def test_other_plans_are_kept_where_every_check_holds_after_them(skeleton: EnvSkeleton, opened: Opened) -> None:
    def alternatives(inputs: t.WriteTaskInputs, usual: dict[str, Any]) -> dict[str, Any]:
        member, things, lend = usual["plan"]
        swapped = {
            "/thing_id": {"call": 0, "pointer": "/data/0/thing_id"},
            "/member_id": {"call": 1, "pointer": "/data/member_id"},
        }
        other_way = [things, member, {**lend, "bindings": swapped}]
        does_not_run = [{**lend, "bindings": {}}]
        does_something_else = [{"name": "add_thing", "arguments": {"label": "Saw"}}]
        return {**usual, "alternatives": [other_way, does_not_run, does_something_else]}

    (scenario,) = scenarios_in(await written(skeleton, Variant(write_task=alternatives), opened, range(1)))
    assert scenario.solution is not None
    (kept,) = scenario.alternatives
    assert [call.name for call in kept] == ["find_things", "find_member", "lend_thing"]
    assert kept[-1].arguments == scenario.solution[-1].arguments
    first, second = scenario.origin.dropped
    assert first.startswith("alternative 1: call 0 of the plan, lend_thing, does not work")
    assert second.startswith("alternative 2: after it these checks do not hold")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return final_state['bikes']", "KeyError"),
        ("return 1", "gave no boolean"),
        ("final_state['things'].clear()\n    return True", "changed the state"),
        ("return undefined", "NameError"),
    ],
)
async def test_a_check_that_cannot_be_run_is_dropped_and_the_others_stay(
    body: str, said: str, skeleton: EnvSkeleton, opened: Opened
) -> None:
    model = Variant(write_check=lambda inputs, usual: check_code(body) if inputs.position == 1 else usual)
    (scenario,) = scenarios_in(await written(skeleton, model, opened, range(1)))
    assert [check.kind for check in scenario.checks] == ["goal", "guard", "guard"]
    assert scenario.checks[1].description == "Has nothing else of things been changed, added or removed?"
    assert scenario.solution is not None
    (reason,) = scenario.origin.dropped
    assert "Has T-1 stayed with M-2?" in reason
    assert said in reason
    # Once with the other one, then twice alone.
    assert (model.asked["write_checks"], model.asked["write_check"]) == (1, 2)


@pytest.mark.anyio
async def test_a_scenario_whose_checks_all_hold_at_the_start_is_dropped(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = Variant(write_check=lambda inputs, usual: check_code("return True"))
    (outcome,) = await written(skeleton, model, opened, range(1))
    assert isinstance(outcome, str)
    assert "no check asks for a change" in outcome


@pytest.mark.anyio
async def test_one_scenario_that_fails_costs_no_other(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = Variant(write_task=lambda inputs, usual: "no" if inputs.index == 0 else usual)
    first, second = await written(skeleton, model, opened)
    assert isinstance(first, str)
    assert first.startswith("bicycle-lending-desk-s001: ")
    assert isinstance(second, Proved)
    assert second.scenario.id == "bicycle-lending-desk-s002"


@pytest.mark.anyio
async def test_states_and_tasks_differ_from_those_that_are_there(skeleton: EnvSkeleton, opened: Opened) -> None:
    first = scenarios_in(await written(skeleton, LendingModel(), opened, range(1)))
    same = Variant(write_state=lambda inputs, usual: {"state": first[0].initial_state})
    (outcome,) = await written(skeleton, same, opened, range(1, 2), tuple(first))
    assert isinstance(outcome, str)
    assert "it equals state 0" in outcome
    near = {**first[0].initial_state, "next_number": 6}
    almost = Variant(write_state=lambda inputs, usual: {"state": near})
    (outcome,) = await written(skeleton, almost, opened, range(1, 2), tuple(first), min_distance=0.2)
    assert isinstance(outcome, str)
    assert "it differs from state 0 of this environment in 12% of its values only, ids aside" in outcome
    repeating = Variant(write_task=lambda inputs, usual: {**usual, "task": first[0].task.upper()})
    (outcome,) = await written(skeleton, repeating, opened, range(1, 2), tuple(first))
    assert isinstance(outcome, str)
    assert "written before" in outcome


@pytest.mark.anyio
async def test_a_task_that_names_tools_goes_back(skeleton: EnvSkeleton, opened: Opened) -> None:
    model = Variant(write_task=lambda inputs, usual: {**usual, "task": "Call `lend_thing` for the first one."})
    (outcome,) = await written(skeleton, model, opened, range(1))
    assert isinstance(outcome, str)
    assert "it names the tools lend_thing" in outcome


@pytest.mark.anyio
async def test_whoever_writes_the_checks_does_not_see_the_plan(skeleton: EnvSkeleton, opened: Opened) -> None:
    seen: list[t.WriteChecklistInputs] = []

    class Watching(LendingModel):
        def write_checklist(self, inputs: t.WriteChecklistInputs) -> Any:
            seen.append(inputs)
            return super().write_checklist(inputs)

    await written(skeleton, Watching(), opened, range(1))
    assert "plan" not in seen[0].model_dump()
    assert "bindings" not in seen[0].model_dump_json()
