"""Tasks, plans, checklists and check functions: they agree with each other and with what the interpreter does."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.errors import ReplyError
from envscaler.offline.blueprint import Blueprint
from envscaler.offline.checks import make_checks
from envscaler.offline.domains import domains
from envscaler.offline.interpret import interpret
from envscaler.offline.plans import evidence_of
from envscaler.offline.states import make_state
from envscaler.offline.tasks import write_check, write_checklist, write_task
from envscaler.offline.wording import wording
from envscaler.roles.types import WriteCheckInputs, WriteChecklistInputs, WriteTaskInputs, WriteTaskReply
from envscaler.scenario import SolutionCall
from envscaler.skeleton import EnvDescription
from envscaler.state import State, canonical, get

seeds = st.integers(0, 10_000)
laws = settings(deadline=None, max_examples=25)


def common_inputs(blueprint: Blueprint, seed: int, index: int = 0) -> dict[str, Any]:
    state = make_state(blueprint, seed=seed, index=index, purpose="scenario")
    return {
        "description": EnvDescription(summary=blueprint.summary, introduction=blueprint.introduction),
        "entities": (),
        "rules": (),
        "tools": (),
        "state": state,
        "clock": state["current_time"],
        "index": index,
        "seed": seed,
    }


def played(blueprint: Blueprint, state: State, plan: tuple[SolutionCall, ...]) -> State:
    """The state after the plan, with every binding resolved from the results; each call has to succeed."""
    results: list[dict[str, Any]] = []
    for call in plan:
        arguments = call.resolved(results)
        assert arguments == call.arguments, "the recorded literals are what the bindings give"
        for binding in call.bindings.values():
            get(results[binding.call], binding.pointer)
        operation = blueprint.operation(call.name)
        assert operation is not None
        prediction = interpret(blueprint, operation, state, arguments)
        assert prediction.success, prediction.error
        state = prediction.state
        results.append({"success": True, "data": prediction.data})
    return state


def verdicts(sources: list[str], initial: State, final: State) -> list[bool]:
    out = []
    for source in sources:
        names: dict[str, Any] = {"initial_state": canonical(initial)}
        exec(source, names)  # noqa: S102 - source of our own making
        value = names["check_func"](canonical(final))
        assert isinstance(value, bool)
        out.append(value)
    return out


def scenario(
    blueprint: Blueprint, seed: int, index: int = 0
) -> tuple[dict[str, Any], WriteTaskReply, list[str], list[str]]:
    inputs = common_inputs(blueprint, seed, index)
    task = write_task(blueprint, WriteTaskInputs(**inputs))
    inputs["task"] = task.task
    checklist = write_checklist(blueprint, WriteChecklistInputs(**inputs)).checklist
    sources = [
        write_check(blueprint, WriteCheckInputs(**inputs, item=item, position=position)).source
        for position, item in enumerate(checklist)
    ]
    return inputs, task, list(checklist), sources


def assert_sound(blueprint: Blueprint, seed: int, index: int = 0) -> None:
    inputs, task, checklist, sources = scenario(blueprint, seed, index)
    state = inputs["state"]
    final = played(blueprint, state, task.plan)
    assert all(verdicts(sources, state, final))
    at_start = verdicts(sources, state, state)
    for item, held in zip(checklist, at_start, strict=True):
        assert held is bool(re.search(r"stayed as it was|^Has no ", item)), item
    assert not all(at_start)
    assert not any(verdicts(sources[:1], state, {}))


@laws
@given(seed=seeds)
def test_the_plan_makes_every_check_hold_and_doing_nothing_makes_no_goal_hold(
    tool_library: Blueprint, seed: int
) -> None:
    assert_sound(tool_library, seed)


def test_scenarios_of_the_domains_of_the_package_are_sound() -> None:
    for blueprint in domains():
        for seed in range(8):
            assert_sound(blueprint, seed, index=seed)


@laws
@given(seed=seeds)
def test_no_update_of_a_plan_can_be_left_out(tool_library: Blueprint, seed: int) -> None:
    inputs, task, _, sources = scenario(tool_library, seed)
    for left_out, call in enumerate(task.plan):
        operation = tool_library.operation(call.name)
        assert operation is not None
        if operation.effect == "query":
            continue
        state = inputs["state"]
        for index, other in enumerate(task.plan):
            step = tool_library.operation(other.name)
            assert step is not None
            if index != left_out and step.effect == "update":
                state = interpret(tool_library, step, state, other.arguments).state
        assert not all(verdicts(sources, inputs["state"], state)), f"nothing notices that {call.name} is missing"


@laws
@given(seed=seeds)
def test_a_guard_notices_a_change_that_nobody_asked_for(tool_library: Blueprint, seed: int) -> None:
    inputs, task, checklist, sources = scenario(tool_library, seed)
    final = canonical(played(tool_library, inputs["state"], task.plan))
    guards = [source for item, source in zip(checklist, sources, strict=True) if "every" in item and "stayed" in item]
    for source in guards:
        container = re.search(r"initial_state\.get\('(\w+)'\)", source)
        assert container is not None
        spared = set(inputs["state"][container[1]]) - {
            mark[1] for mark in evidence_of(tool_library, inputs["state"], final)
        }
        key = min(spared)
        spoiled = canonical(final)
        del spoiled[container[1]][key]
        assert verdicts([source], inputs["state"], spoiled) == [False]


@laws
@given(seed=seeds)
def test_no_id_and_no_tool_name_stands_in_a_task_or_a_profile(tool_library: Blueprint, seed: int) -> None:
    _, task, _, _ = scenario(tool_library, seed)
    assert task.user_profile is not None
    text = " ".join([task.task, task.user_profile.opening, *task.user_profile.facts])
    assert not re.search(r"\b[A-Z]{2}-\d{4}\b", text)
    assert not re.search(r"\w_\w", text)
    assert "{" not in text
    assert "None" not in text


@laws
@given(seed=seeds)
def test_the_profile_tells_every_wish_of_the_task(tool_library: Blueprint, seed: int) -> None:
    _, task, _, _ = scenario(tool_library, seed)
    profile = task.user_profile
    assert profile is not None
    updates = [call for call in task.plan if (op := tool_library.operation(call.name)) and op.effect == "update"]
    assert len(profile.facts) == len(updates)
    for fact in profile.facts:
        wish = re.sub(r"^(Please also|Please|I would like you to|What I need:|And then|I also need you to) ", "", fact)
        assert wish.rstrip(".") in task.task


@laws
@given(seed=seeds)
def test_a_checklist_names_no_record_that_only_the_plan_creates(tool_library: Blueprint, seed: int) -> None:
    inputs, task, checklist, sources = scenario(tool_library, seed)
    final = played(tool_library, inputs["state"], task.plan)
    for entity in tool_library.created:
        for key in set(final[entity.container]) - set(inputs["state"][entity.container]):
            assert not any(key in text for text in (*checklist, *sources))


@laws
@given(seed=seeds)
def test_the_same_request_is_answered_the_same_and_earlier_tasks_are_not_repeated(
    tool_library: Blueprint, seed: int
) -> None:
    inputs = common_inputs(tool_library, seed)
    first = write_task(tool_library, WriteTaskInputs(**inputs))
    assert write_task(tool_library, WriteTaskInputs(**inputs)) == first
    second = write_task(tool_library, WriteTaskInputs(**inputs, earlier=(first.task,)))
    assert second.task != first.task
    mended = write_task(tool_library, WriteTaskInputs(**inputs, fault="a check holds already"))
    assert write_checklist(tool_library, WriteChecklistInputs(**inputs, task=mended.task)).checklist


def test_tasks_differ_in_length_operations_and_openings(tool_library: Blueprint) -> None:
    tasks = [scenario(tool_library, seed)[1] for seed in range(60)]
    operations = {call.name for task in tasks for call in task.plan}
    assert {op.name for op in tool_library.operations if op.ask} <= operations
    assert {len(task.user_profile.facts) for task in tasks if task.user_profile} == {1, 2, 3, 4}
    assert len({task.task[:15] for task in tasks}) > 12
    assert len({task.task for task in tasks}) == 60


def test_some_plans_use_what_an_earlier_call_created(tool_library: Blueprint) -> None:
    pointers = [
        binding.pointer
        for seed in range(40)
        for call in scenario(tool_library, seed)[1].plan
        for binding in call.bindings.values()
    ]
    assert any(re.fullmatch(r"/data/(member|loan|reservation)_id", pointer) for pointer in pointers)


def test_a_check_of_a_created_record_follows_references_to_other_created_records(tool_library: Blueprint) -> None:
    state = make_state(tool_library, seed=5, index=0, purpose="scenario")
    join, strike, reserve = (tool_library.operation(name) for name in ("join", "strike", "reserve"))
    assert join is not None
    assert strike is not None
    assert reserve is not None

    def register(before: State, name: str) -> tuple[State, str]:
        after = interpret(tool_library, join, before, {"name": name})
        return after.state, after.data["member_id"]

    def reserved(before: State, member: str) -> State:
        arguments = {
            "tool_id": next(iter(state["tools"])),
            "member_id": member,
            "start_date": "2099-01-01",
            "end_date": "2099-01-02",
            "purpose": "baking",
        }
        after = interpret(tool_library, reserve, before, arguments)
        assert after.success
        return after.state

    first, alba = register(state, "Alba Vega")
    first, _ = register(first, "Bram Holm")
    checks = [check.source for check in make_checks(tool_library, state, reserved(first, alba), wording("en"))]
    # The other order of calls gives the new members each other's ids, and is as right.
    second, bram = register(state, "Bram Holm")
    second, alba_again = register(second, "Alba Vega")
    assert bram == alba
    assert all(verdicts(checks, state, reserved(second, alba_again)))
    assert not all(verdicts(checks, state, reserved(second, bram)))


def test_texts_of_new_records_are_compared_without_case_and_outer_spaces(tool_library: Blueprint) -> None:
    state = make_state(tool_library, seed=5, index=0, purpose="scenario")
    join = tool_library.operation("join")
    assert join is not None
    wanted = interpret(tool_library, join, state, {"name": "Alba Vega"}).state
    checks = [check.source for check in make_checks(tool_library, state, wanted, wording("en"))]
    assert all(verdicts(checks, state, interpret(tool_library, join, state, {"name": " alba VEGA "}).state))
    assert not all(verdicts(checks, state, interpret(tool_library, join, state, {"name": "Alba Vegas"}).state))


def test_a_task_of_somebody_else_has_no_checklist_here(tool_library: Blueprint) -> None:
    inputs = common_inputs(tool_library, 1)
    with pytest.raises(ReplyError, match="not written by the offline model"):
        write_checklist(tool_library, WriteChecklistInputs(**inputs, task="Paint the shelves."))


def test_a_state_in_which_nothing_can_be_done_is_reported(tool_library: Blueprint) -> None:
    inputs = common_inputs(tool_library, 1)
    for entity in tool_library.entities:
        inputs["state"][entity.container] = {}
    only_strikes = tool_library.model_copy(
        update={"operations": tuple(op for op in tool_library.operations if op.name in {"strike", "list_members"})}
    )
    with pytest.raises(ReplyError, match="no operation"):
        write_task(only_strikes, WriteTaskInputs(**inputs))
