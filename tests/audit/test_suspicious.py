"""Tests of the hard sound ones: what looks like a fault there is none, shown in the sandbox and without any audit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from audit.planting import Bench, Suspicious, sound
from audit.planting.grounds import Ground, ground_named, undone, without
from audit.planting.methods import attempts, try_out

from envscaler.program import schemas_agree, state_faults, tool_schemas
from envscaler.state import State, encode


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as opened:
        yield opened


@pytest.fixture(scope="module")
def suspicious() -> list[Suspicious]:
    return sound()


def ground_of(one: Suspicious) -> Ground:
    return ground_named(one.scenario.id)


def wrong_states(ground: Ground) -> list[State]:
    """Final states in which something that was asked for is not so."""
    states = [undone(ground.final, aim) for aim in ground.aims]
    return states + [without(ground.final, aim.container, aim.key) for aim in ground.aims if aim.kind != "removed"]


def test_there_are_many_and_they_look_like_most_kinds(suspicious: list[Suspicious]) -> None:
    assert len(suspicious) >= 60
    assert len({one.looks_like for one in suspicious}) >= 20
    assert sound() == suspicious


def test_each_is_solved_by_its_solution_and_by_nothing_less(suspicious: list[Suspicious], bench: Bench) -> None:
    for one in suspicious:
        assert bench.solved(one.skeleton, one.scenario), one
        assert one.scenario.env_digest == one.skeleton.digest
        played = bench.solve(one.skeleton, one.scenario)
        refused = [played.initial]
        if one.skeleton == ground_of(one).skeleton:
            refused += wrong_states(ground_of(one))
        assert not any(bench.accepts(one.scenario, state) for state in refused), one


def test_their_checks_say_yes_or_no_of_every_state_and_change_none(suspicious: list[Suspicious], bench: Bench) -> None:
    for one in suspicious:
        ground = ground_of(one)
        empty: State = {**ground.final, **{container: {} for container in ground.entities}}
        for state in (ground.initial, ground.final, empty, *wrong_states(ground)):
            outcomes = bench.judged(one.scenario, state)
            assert all(outcome.error is None and not outcome.mutated for outcome in outcomes), one


def test_goals_do_not_hold_at_reset_and_guards_do(suspicious: list[Suspicious], bench: Bench) -> None:
    for one in suspicious:
        initial = bench.play(one.skeleton, one.scenario.initial_state, []).final
        held = [outcome.value for outcome in bench.judged(one.scenario, initial)]
        assert held == [check.kind == "guard" for check in one.scenario.checks], one


def test_neither_clock_nor_the_order_of_records_matters(suspicious: list[Suspicious], bench: Bench) -> None:
    for one in suspicious:
        final = bench.solve(one.skeleton, one.scenario).final
        turned = {
            name: dict(reversed(part.items())) if isinstance(part, dict) else part for name, part in final.items()
        }
        later = (datetime.fromisoformat(one.scenario.clock) + timedelta(days=500, hours=7)).isoformat()
        assert bench.accepts(one.scenario, turned), one
        assert all(outcome.value for outcome in bench.judged(one.scenario, final, clock=later)), one


def test_tasks_name_no_tool_and_no_id_of_the_state(suspicious: list[Suspicious]) -> None:
    for one in suspicious:
        containers = [e.container for e in one.skeleton.entities if e.container is not None]
        ids = [key for container in containers for key in one.scenario.initial_state[container]]
        names = [tool.name for tool in one.skeleton.tools]
        assert not [n for n in (*ids, *names) if re.search(rf"(?<!\w){re.escape(n)}(?!\w)", one.scenario.task)], one


def test_states_fit_their_schema_and_schemas_their_methods(suspicious: list[Suspicious]) -> None:
    for one in suspicious:
        assert not state_faults(one.scenario.initial_state, one.skeleton.entities), one
        derived = tool_schemas(one.skeleton.source, one.skeleton.class_name)
        assert not [t.name for t in one.skeleton.tools if schemas_agree(t.parameters, derived[t.name])], one


def test_their_programs_do_as_the_clean_ones_do(suspicious: list[Suspicious], bench: Bench) -> None:
    for one in suspicious:
        ground = ground_of(one)
        if one.skeleton == ground.skeleton:
            continue
        tried = [attempt for attempt in attempts(one.skeleton.id, bench) if attempt.tool.name == one.place]
        assert any(attempt.worked for attempt in tried)
        for attempt in tried[:12]:
            worked, changed, after = try_out(bench, one.skeleton, attempt)
            assert (worked, changed) == (attempt.worked, attempt.changed), one
            if not changed:
                assert {name: after[name] for name in attempt.state} == attempt.state, one
        runs = [bench.solve(one.skeleton, one.scenario) for _ in range(2)]
        assert encode(runs[0].results) == encode(runs[1].results), one
        assert encode(runs[0].final) == encode(runs[1].final), one
