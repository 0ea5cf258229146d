"""Tasks, plans, checklists and check functions: they agree with each other and with what the interpreter does."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offline.playing import common_inputs, played, verdicts, written

from envscaler.errors import ReplyError
from envscaler.offline.blueprint import Blueprint
from envscaler.offline.checks import make_checks
from envscaler.offline.domains import domains
from envscaler.offline.goals import evidence_of
from envscaler.offline.interpret import interpret
from envscaler.offline.states import make_state
from envscaler.offline.tasks import write_checklist, write_task
from envscaler.offline.wording import wording
from envscaler.roles.types import WriteChecklistInputs, WriteTaskInputs
from envscaler.state import State, canonical

seeds = st.integers(0, 10_000)
indexes = st.integers(0, 83)
laws = settings(deadline=None, max_examples=25)


def assert_sound(blueprint: Blueprint, seed: int, index: int = 0) -> None:
    made = written(blueprint, seed, index)
    state, sources = made.state, made.sources
    final = played(blueprint, state, made.reply.plan)
    assert all(verdicts(sources, state, final))
    for other in made.reply.alternatives:
        assert other != made.reply.plan
        assert all(verdicts(sources, state, played(blueprint, state, other)))
    at_start = verdicts(sources, state, state)
    for item, held in zip(made.checklist, at_start, strict=True):
        assert held is bool(re.search(r"stayed as it was|^Has no |^Has nothing ", item)), item
    assert not all(at_start)
    assert not any(verdicts(sources[:1], state, {}))


@laws
@given(seed=seeds, index=indexes)
def test_the_plan_makes_every_check_hold_and_doing_nothing_makes_no_goal_hold(
    tool_library: Blueprint, seed: int, index: int
) -> None:
    assert_sound(tool_library, seed, index)


def test_scenarios_of_the_domains_of_the_package_are_sound() -> None:
    for blueprint in domains():
        for seed in range(4):
            assert_sound(blueprint, seed, index=seed)


@laws
@given(seed=seeds, index=indexes)
def test_a_guard_notices_a_change_that_nobody_asked_for(tool_library: Blueprint, seed: int, index: int) -> None:
    made = written(tool_library, seed, index)
    final = canonical(played(tool_library, made.state, made.reply.plan))
    changed = evidence_of(tool_library, made.state, final)
    for entity in tool_library.entities:
        spared = set(made.state[entity.container]) - {key for name, key, _ in changed if name == entity.name}
        for key in sorted(spared)[:1]:
            spoiled = canonical(final)
            del spoiled[entity.container][key]
            assert not all(verdicts(made.sources, made.state, spoiled))


@laws
@given(seed=seeds, index=indexes)
def test_no_id_and_no_tool_name_stands_in_a_task_or_a_profile(tool_library: Blueprint, seed: int, index: int) -> None:
    task = written(tool_library, seed, index).reply
    assert task.user_profile is not None
    text = " ".join([task.task, task.user_profile.opening, *task.user_profile.told.facts])
    assert not re.search(r"\b[A-Z]{2}-\d{4}\b", text)
    assert not re.search(r"\w_\w", text)
    assert "{" not in text
    assert "None" not in text


@laws
@given(seed=seeds, index=indexes)
def test_the_profile_tells_every_wish_of_the_task(tool_library: Blueprint, seed: int, index: int) -> None:
    task = written(tool_library, seed, index).reply
    assert task.user_profile is not None
    profile = task.user_profile.told
    left_out = wording("en").phrases["leave_out"]
    wishes = [fact for fact in profile.facts if fact not in left_out]
    assert any(text in task.task for text in left_out) is (len(wishes) < len(profile.facts))
    for fact in wishes:
        wish = re.sub(r"^(Please also|Please|I would like you to|What I need:|And then|I also need you to) ", "", fact)
        assert wish.rstrip(".") in task.task


@laws
@given(seed=seeds, index=indexes)
def test_a_checklist_names_no_record_that_only_the_plan_creates(tool_library: Blueprint, seed: int, index: int) -> None:
    made = written(tool_library, seed, index)
    final = played(tool_library, made.state, made.reply.plan)
    for entity in tool_library.created:
        for key in set(final[entity.container]) - set(made.state[entity.container]):
            assert not any(key in text for text in (*made.checklist, *made.sources))


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
    tasks = [written(tool_library, seed, seed).reply for seed in range(60)]
    operations = {call.name for task in tasks for call in task.plan}
    assert {op.name for op in tool_library.operations if op.ask} <= operations
    assert {len(task.user_profile.facts) for task in tasks if task.user_profile} >= {1, 2, 3, 4}
    assert len({task.task[:15] for task in tasks}) > 12
    assert len({task.task for task in tasks}) == 60


def test_some_plans_use_what_an_earlier_call_created(tool_library: Blueprint) -> None:
    pointers = [
        binding.pointer
        for seed in range(60)
        for call in written(tool_library, seed, seed).reply.plan
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
