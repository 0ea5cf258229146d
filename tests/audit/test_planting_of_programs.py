"""Tests of faults in programs: each is shown by a call that the clean program answers as it should."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from audit.planting import Bench, Planted, clean, plant_kind
from audit.planting.bench import succeeded
from audit.planting.methods import attempts, try_out

from envscaler.errors import ProgramError
from envscaler.program import schemas_agree, tool_schemas
from envscaler.sandbox import Program
from envscaler.skeleton import EnvSkeleton
from envscaler.state import encode

SEED = 1


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as opened:
        yield opened


def planted(kind: str, bench: Bench) -> list[Planted]:
    """Ten faults of a kind, in environments alone."""
    found = list(plant_kind(kind, SEED, 10, bench))
    assert len(found) == 10
    assert all(one.scenario is None for one in found)
    return found


def both(bench: Bench, one: Planted) -> tuple[tuple[bool, bool], tuple[bool, bool]]:
    """Whether the call of the evidence works and changes the state: in the clean program, and in the planted one."""
    assert one.evidence.state is not None
    told = []
    for skeleton in (clean_of(one), one.skeleton):
        outcome = bench.play(skeleton, one.evidence.state, one.evidence.calls).outcomes[0]
        told.append((succeeded(outcome), outcome.changed))
    return told[0], told[1]


def clean_of(one: Planted) -> EnvSkeleton:
    return next(skeleton for skeleton, _ in clean() if skeleton.id == one.skeleton.id)


def test_a_tool_without_effect_says_that_it_did_and_leaves_the_state_alone(bench: Bench) -> None:
    for one in planted("tool_without_effect", bench):
        assert both(bench, one) == ((True, True), (True, False)), one
        working = [a for a in attempts(one.skeleton.id, bench) if a.tool.name == one.place and a.worked]
        assert not any(try_out(bench, one.skeleton, attempt)[1] for attempt in working[:8]), one


def test_an_unreachable_tool_refuses_every_call_that_works_in_the_clean_program(bench: Bench) -> None:
    for one in planted("unreachable_tool", bench):
        working = [a for a in attempts(one.skeleton.id, bench) if a.tool.name == one.place and a.worked]
        assert working, one
        assert not any(try_out(bench, one.skeleton, attempt)[0] for attempt in working[:8]), one


def test_a_rule_that_is_not_enforced_lets_a_call_through_and_the_state_breaks_it(bench: Bench) -> None:
    for one in planted("rule_not_enforced", bench):
        refused, accepted = both(bench, one)
        assert refused == (False, False), one
        assert accepted == (True, True), one
        rule = next(rule for rule in one.skeleton.rules if rule.text == one.place)
        assert rule.predicate is not None
        assert one.evidence.state is not None
        played = bench.play(one.skeleton, one.evidence.state, one.evidence.calls)
        assert bench.evaluated(rule.predicate, [played.initial, played.final]) == [True, False], one


def test_a_schema_that_differs_does_so_for_its_tool_only(bench: Bench) -> None:
    for one in planted("schema_differs", bench):
        derived = tool_schemas(one.skeleton.source, one.skeleton.class_name)
        differing = [t.name for t in one.skeleton.tools if schemas_agree(t.parameters, derived[t.name])]
        assert differing == [one.place], one


def test_a_query_that_writes_changes_the_state(bench: Bench) -> None:
    for one in planted("query_writes", bench):
        assert both(bench, one) == ((True, False), (True, True)), one


def test_a_failure_that_writes_changes_the_state(bench: Bench) -> None:
    for one in planted("failure_writes", bench):
        assert both(bench, one) == ((False, False), (False, True)), one


def test_a_program_that_is_nondeterministic_answers_the_same_call_in_the_same_state_differently(bench: Bench) -> None:
    for one in planted("program_nondeterministic", bench):
        assert one.evidence.state is not None
        call = one.evidence.calls[0]
        answers = set()
        for _ in range(3):
            session = bench.box.open(Program(one.skeleton.source, one.skeleton.class_name), one.evidence.state)
            outcomes = [session.call(call.name, call.arguments) for _ in range(2)]
            session.close()
            assert all(outcome.fault is None and not outcome.changed for outcome in outcomes), one
            answers |= {encode(outcome.result) for outcome in outcomes}
        assert len(answers) > 1, one
        steady = bench.play(clean_of(one), one.evidence.state, [call, call])
        assert steady.results[0] == steady.results[1], one


def test_a_program_that_does_not_build_cannot_be_opened_with_any_state(bench: Bench) -> None:
    for one in planted("does_not_build", bench):
        for state in (one.evidence.state, {}):
            assert state is not None
            with pytest.raises(ProgramError):
                bench.play(one.skeleton, state, [])
