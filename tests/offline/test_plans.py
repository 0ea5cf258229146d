"""Plans: every kind of goal, of every length, with all values told or found, and other ways to the same end."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offline.playing import operation_of, played, updates_of, verdicts, written

from envscaler.offline.alternatives import outcome
from envscaler.offline.blueprint import Blueprint
from envscaler.offline.domains import domains
from envscaler.offline.goals import evidence_of
from envscaler.offline.interpret import interpret, tool_parameter
from envscaler.offline.plans import MOST_CALLS, Plan, make_plan
from envscaler.offline.selections import Selection
from envscaler.offline.states import make_state
from envscaler.offline.wording import wording
from envscaler.state import State, canonical

seeds = st.integers(0, 10_000)
indexes = st.integers(0, 83)
laws = settings(deadline=None, max_examples=40)
ENGLISH = wording("en")
PER_DOMAIN = 12


def planned(blueprint: Blueprint, seed: int, index: int) -> tuple[State, Plan]:
    state = make_state(blueprint, seed=seed, index=index, purpose="scenario")
    return state, make_plan(blueprint, state, Random(seed), ENGLISH, index=index)


@cache
def sample() -> tuple[tuple[Blueprint, State, Plan], ...]:
    """Plans of all domains, one for each index."""
    return tuple(
        (blueprint, *planned(blueprint, index, index)) for blueprint in domains() for index in range(PER_DOMAIN)
    )


def test_every_domain_has_every_kind_of_goal_or_nearly() -> None:
    kinds: dict[str, Counter[str]] = {}
    for blueprint, _, plan in sample():
        kinds.setdefault(blueprint.slug, Counter()).update(goal.proposal.kind for goal in plan.goals)
    for slug, found in kinds.items():
        assert {"plain", "group", "conditional"} <= set(found), slug
        assert len(found) >= 5, f"{slug} has only {dict(found)}"
    overall = sum(kinds.values(), Counter())
    for kind in ("chosen", "group", "conditional", "forbidden", "looked_up"):
        assert overall[kind] > len(kinds), kind


def test_plans_are_of_every_length_and_often_of_four_to_ten_calls() -> None:
    calls = Counter(len(plan.calls) for _, _, plan in sample())
    assert calls[0] == 0
    assert max(calls) <= MOST_CALLS
    assert min(calls) <= 2
    assert set(range(3, 12)) <= set(calls)
    assert sum(calls[length] for length in range(4, 11)) > calls.total() / 2
    assert sum(calls[length] for length in range(1, 3)) >= len(domains()) / 2


def test_short_and_long_tasks_come_in_turn() -> None:
    for blueprint in domains()[:6]:
        lengths = [len(planned(blueprint, 3, index)[1].calls) for index in range(12)]
        assert min(lengths) <= 3
        assert max(lengths) >= 9
        assert len(set(lengths)) >= 6


def test_most_plans_can_be_carried_out_in_another_way_that_comes_to_the_same() -> None:
    with_alternatives = 0
    for blueprint, state, plan in sample():
        wanted = outcome(blueprint, state, plan.final(state))
        assert wanted == outcome(blueprint, state, played(blueprint, state, plan.calls))
        for calls in plan.alternatives:
            assert calls != plan.calls
            assert outcome(blueprint, state, played(blueprint, state, calls)) == wanted
        with_alternatives += bool(plan.alternatives)
    assert with_alternatives > 0.85 * len(sample())
    reordered = [
        [call.name for call in updates_of(blueprint, calls)]
        != [call.name for call in updates_of(blueprint, plan.calls)]
        for blueprint, _, plan in sample()
        for calls in plan.alternatives
    ]
    assert sum(reordered) > 0.3 * len(reordered)


def test_every_value_of_a_plan_is_told_in_the_task_or_comes_from_a_result() -> None:
    for blueprint in domains():
        for seed in range(4):
            made = written(blueprint, seed, seed)
            for call in made.reply.plan:
                operation = operation_of(blueprint, call)
                for param in operation.params:
                    name = tool_parameter(blueprint, param)
                    if name not in call.arguments or f"/{name}" in call.bindings:
                        continue
                    assert param.ref is None, f"{call.name} has an id that no query gave"
                    spoken = ENGLISH.spoken(call.arguments[name], param.type).replace("_", " ")
                    assert spoken.casefold() in made.reply.task.replace("_", " ").casefold(), f"{call.name}: {spoken}"


def test_what_rules_stand_against_is_refused_at_the_start_and_at_the_end() -> None:
    refused = 0
    for blueprint, state, plan in sample():
        for goal in plan.goals:
            for step in goal.proposal.refused:
                for moment in (state, plan.final(state)):
                    assert interpret(blueprint, step.operation, moment, step.arguments).violated is not None
                refused += 1
    assert refused > len(domains())


def test_a_choice_is_clear_and_lies_among_others() -> None:
    chosen = 0
    for _, state, plan in sample():
        for goal in plan.goals:
            for reading in goal.proposal.readings:
                if isinstance(reading, Selection) and reading.order is not None and not reading.allowed_only:
                    keys = reading.chosen(state)
                    assert keys is not None
                    name = reading.order.field.name
                    rows = state[reading.entity.container]
                    others = [rows[key][name] for key in reading.fitting(state) if key not in keys]
                    last = rows[keys[-1]][name]
                    assert all(value < last if reading.order.descending else value > last for value in others)
                    chosen += 1
    assert chosen > len(domains()) / 2


def test_what_a_wrong_decision_would_change_stays_and_is_guarded() -> None:
    guarded = 0
    for blueprint, state, plan in sample():
        changed = evidence_of(blueprint, state, plan.final(state))
        for goal in plan.goals:
            if not goal.proposal.steps:
                assert not {mark[:2] for mark in goal.proposal.spared} & {mark[:2] for mark in changed}
                guarded += 1
    assert guarded > len(domains())


@laws
@given(seed=seeds, index=indexes)
def test_plans_follow_from_state_and_seed_alone_and_leave_the_state_as_it_was(
    tool_library: Blueprint, seed: int, index: int
) -> None:
    state, plan = planned(tool_library, seed, index)
    before = canonical(state)
    again = make_plan(tool_library, state, Random(seed), ENGLISH, index=index)
    assert again.calls == plan.calls
    assert again.alternatives == plan.alternatives
    assert [goal.wish for goal in again.goals] == [goal.wish for goal in plan.goals]
    assert canonical(state) == before


@pytest.mark.parametrize("kind", ["conditional", "forbidden"])
def test_where_nothing_is_to_be_done_a_careless_call_breaks_a_check(tool_library: Blueprint, kind: str) -> None:
    broken = tried = 0
    for seed in range(60):
        made = written(tool_library, seed, seed)
        state, plan = made.state, made.reply.plan
        final = played(tool_library, state, plan)
        assert all(verdicts(made.sources, state, final))
        _, drawn = planned(tool_library, seed, seed)
        for goal in drawn.goals:
            if goal.proposal.kind != kind or goal.proposal.steps:
                continue
            for entity, key, _ in sorted(goal.proposal.spared, key=repr)[:1]:
                container = tool_library.entity(entity).container
                if key in final[container]:
                    spoiled = canonical(final)
                    del spoiled[container][key]
                    tried += 1
                    broken += not all(verdicts(made.sources, state, spoiled))
    assert tried > 2
    assert broken == tried
