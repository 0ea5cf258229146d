"""Tests of the planter: every planted fault is what it says, shown in the sandbox and without any audit.

Faults of programs have a file of their own.
"""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from audit.planting import FORMS, Bench, Planted, clean, plant, plant_kind
from audit.planting.grounds import Ground, ground_named, grounds, undone, without

from envscaler.canonical import to_json
from envscaler.errors import NotJson, ProgramError
from envscaler.program import state_faults
from envscaler.scenario import Check, Scenario
from envscaler.state import State, canonical, encode

KINDS = {
    "true_at_reset",
    "always_true",
    "never_true",
    "tautology",
    "raises",
    "not_bool",
    "nondeterministic",
    "mutates",
    "vacuous",
    "substring",
    "false_positive",
    "created_ids",
    "whole_state",
    "hidden_requirement",
    "solution_fails",
    "solved_at_reset",
    "weak_checks",
    "missing_guard",
    "leaks_tool_name",
    "leaks_id",
    "variant_fails",
    "order_or_clock",
    "state_type",
    "state_enum",
    "state_reference",
    "state_rule",
    "state_not_json",
    "tool_without_effect",
    "unreachable_tool",
    "rule_not_enforced",
    "schema_differs",
    "query_writes",
    "failure_writes",
    "program_nondeterministic",
    "does_not_build",
}
SEED = 1


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as opened:
        yield opened


@cache
def planted(kind: str, bench: Bench) -> tuple[Planted, ...]:
    """Ten faults of a kind; that there are ten is asked here, for every kind."""
    found = tuple(plant_kind(kind, SEED, 10, bench))
    assert len(found) == 10
    assert {one.kind for one in found} == {kind}
    return found


def scenario_of(one: Planted) -> Scenario:
    assert one.scenario is not None
    return one.scenario


def check_of(one: Planted) -> Check:
    """The check in which a fault was planted: the one of that description that its ground does not have."""
    known = set(ground_of(one).scenario.checks)
    found = [check for check in scenario_of(one).checks if check.description == one.place and check not in known]
    assert len(found) == 1, one
    return found[0]


def ground_of(one: Planted) -> Ground:
    """The sound scenario that a fault was planted into."""
    return ground_named(scenario_of(one).id)


def said(bench: Bench, one: Planted, *states: State) -> list[bool | None]:
    """What the planted check says of states."""
    scenario, source = scenario_of(one), check_of(one).source
    return [bench.asked([source], scenario.initial_state, state, scenario.clock)[0].value for state in states]


def wrong_states(ground: Ground) -> list[State]:
    """Final states in which something that was asked for is not so."""
    states = [undone(ground.final, aim) for aim in ground.aims]
    states += [without(ground.final, aim.container, aim.key) for aim in ground.aims if aim.kind != "removed"]
    return states


def sentence_states(one: Planted) -> list[State]:
    """The state right after reset, the solved one, and wrong ones."""
    ground = ground_of(one)
    return [ground.initial, ground.final, *wrong_states(ground), *one.evidence.states]


# -- the benchmark as a whole --


def test_every_kind_that_an_audit_reports_is_planted() -> None:
    assert set(FORMS) == KINDS


@pytest.mark.parametrize("kind", sorted(KINDS - {"state_rule"}))
def test_a_kind_is_planted_in_several_ways(kind: str) -> None:
    assert len(FORMS[kind]) >= (4 if kind in {"solved_at_reset"} else 5)


def test_the_same_seed_plants_the_same_faults_and_another_seed_others() -> None:
    def drawn(seed: int) -> list[str]:
        return [f"{one.kind} {one.place} {one.note} {one.skeleton.digest}" for one in plant(seed, per_kind=1)]

    first = drawn(5)
    assert len(first) == len(KINDS)
    assert drawn(5) == first
    assert drawn(6) != first


def test_no_fault_is_planted_twice(bench: Bench) -> None:
    for kind in sorted(KINDS):
        texts = [f"{one.skeleton!r} {one.scenario!r}" for one in planted(kind, bench)]
        assert len(set(texts)) == len(texts), kind


def test_the_planter_knows_neither_audit_nor_proofs() -> None:
    for path in Path(__file__).with_name("planting").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.startswith(("envscaler.audit", "envscaler.proof"))], path.name


def test_what_faults_are_planted_into_is_sound(bench: Bench) -> None:
    assert len(clean()) == 8
    assert len(grounds()) == 24
    for ground in grounds():
        scenario = ground.scenario
        before = bench.judged(scenario, ground.initial)
        assert [outcome.value for outcome in before] == [check.kind == "guard" for check in scenario.checks]
        assert bench.solved(ground.skeleton, scenario)
        assert not any(bench.accepts(scenario, state) for state in wrong_states(ground))
        assert not state_faults(scenario.initial_state, ground.skeleton.entities)


def test_a_fault_of_a_scenario_leaves_its_environment_as_it_was(bench: Bench) -> None:
    for kind in sorted(KINDS - {"variant_fails", "order_or_clock"}):
        for one in planted(kind, bench):
            if one.scenario is not None:
                assert one.skeleton == ground_of(one).skeleton
                assert one.scenario.env_digest == one.skeleton.digest


@pytest.mark.parametrize(
    "kind",
    sorted(
        KINDS
        - {
            "never_true",
            "raises",
            "not_bool",
            "nondeterministic",
            "solution_fails",
            "solved_at_reset",
            "state_not_json",
        }
    ),
)
def test_a_fault_that_does_not_concern_the_solution_leaves_it_right(kind: str, bench: Bench) -> None:
    for one in planted(kind, bench):
        scenarios = [one.scenario] if one.scenario is not None else one.beside
        assert scenarios or kind == "does_not_build", one
        for scenario in scenarios:
            assert bench.solved(one.skeleton, scenario), one
            assert scenario.env_digest == one.skeleton.digest


# -- checks --


def test_a_goal_that_is_true_at_reset_holds_before_anything_is_done(bench: Bench) -> None:
    for one in planted("true_at_reset", bench):
        assert said(bench, one, ground_of(one).initial, ground_of(one).final) == [True, True], one
        assert check_of(one).kind != "guard"


def test_what_is_always_true_is_true_of_wrong_states(bench: Bench) -> None:
    for one in planted("always_true", bench):
        assert set(said(bench, one, *sentence_states(one))) == {True}, one


def test_what_is_never_true_is_false_of_the_solved_state_too(bench: Bench) -> None:
    for one in planted("never_true", bench):
        assert set(said(bench, one, *sentence_states(one))) == {False}, one


def test_a_tautology_says_the_same_of_states_that_have_nothing_in_common(bench: Bench) -> None:
    for one in planted("tautology", bench):
        assert set(said(bench, one, *sentence_states(one), {}, {"other": 1})) == {True}, one


def test_what_raises_does_so_at_reset_or_on_the_solved_state(bench: Bench) -> None:
    for one in planted("raises", bench):
        errors = _errors(bench, one)
        assert any(error and not _says_no_bool(error) for error in errors), one
        assert not any(error and _says_no_bool(error) for error in errors), one


def test_what_gives_no_bool_gives_something_else_at_reset_or_on_the_solved_state(bench: Bench) -> None:
    for one in planted("not_bool", bench):
        errors = _errors(bench, one)
        assert any(error and _says_no_bool(error) for error in errors), one


def _errors(bench: Bench, one: Planted) -> list[str | None]:
    scenario, ground = scenario_of(one), ground_of(one)
    states = (ground.initial, ground.final)
    return [bench.asked([check_of(one).source], ground.initial, s, scenario.clock)[0].error for s in states]


def _says_no_bool(error: str) -> bool:
    return "not a bool" in error


_RUN_MANY_TIMES = """
import json, sys
sources, initial, final = json.load(sys.stdin)
for source in sources:
    told = set()
    for _ in range(30):
        namespace = {"initial_state": initial}
        exec(source, namespace)
        told.add(bool(namespace["check_func"](final)))
    print(sorted(told))
"""


def test_a_nondeterministic_check_says_different_things_of_the_solved_state_in_plain_python(bench: Bench) -> None:
    for one in planted("nondeterministic", bench):
        ground = ground_of(one)
        told = set()
        for hash_seed in range(40):
            run = subprocess.run(  # the text is this project's own, and the sandbox makes chance repeatable
                [sys.executable, "-S", "-c", _RUN_MANY_TIMES],
                input=json.dumps([[check_of(one).source], ground.initial, ground.final]),
                capture_output=True,
                text=True,
                check=True,
                env={"PYTHONHASHSEED": str(hash_seed)},
            )
            told |= set(json.loads(run.stdout.replace("True", "true").replace("False", "false")))
            if len(told) == 2:
                break
        assert told == {True, False}, one


def test_what_mutates_changes_the_state_that_it_is_given(bench: Bench) -> None:
    for one in planted("mutates", bench):
        scenario, ground = scenario_of(one), ground_of(one)
        outcome = bench.asked([check_of(one).source], ground.initial, ground.final, scenario.clock)[0]
        assert outcome.mutated, one


def test_what_is_vacuous_is_false_at_reset_and_true_where_the_entity_is_missing(bench: Bench) -> None:
    for one in planted("vacuous", bench):
        assert said(bench, one, ground_of(one).initial, *one.evidence.states) == [False, True], one


def test_a_substring_test_accepts_a_near_miss(bench: Bench) -> None:
    for one in planted("substring", bench):
        assert said(bench, one, ground_of(one).initial, *one.evidence.states) == [False, True], one
        sound = ground_of(one).scenario
        assert not bench.accepts(sound, one.evidence.states[0])


def test_a_false_positive_accepts_what_the_sound_check_of_the_same_sentence_refuses(bench: Bench) -> None:
    for one in planted("false_positive", bench):
        wrong = one.evidence.states[0]
        assert said(bench, one, ground_of(one).initial, wrong) == [False, True], one
        same = [check for check in ground_of(one).scenario.checks if check.description == one.place]
        outcomes = bench.asked([check.source for check in same], ground_of(one).initial, wrong, scenario_of(one).clock)
        assert False in [outcome.value for outcome in outcomes], one


def test_a_check_of_created_ids_refuses_the_same_records_under_other_ids(bench: Bench) -> None:
    for one in planted("created_ids", bench):
        assert said(bench, one, ground_of(one).initial, *one.evidence.states) == [False, False], one
        assert bench.accepts(ground_of(one).scenario, one.evidence.states[0]), one


def test_a_check_of_whole_states_turns_on_what_its_sentence_does_not_speak_of(bench: Bench) -> None:
    for one in planted("whole_state", bench):
        ground, other = ground_of(one), one.evidence.states[0]
        lax = "false_positive" in one.also
        assert said(bench, one, ground.final, other) == [True, lax], one
        same = [check for check in ground.scenario.checks if check.description == one.place and check.kind == "goal"]
        if same:
            told = bench.asked([check.source for check in same], ground.initial, other, scenario_of(one).clock)
            assert not lax or False in [outcome.value for outcome in told], one
            assert lax or True in [outcome.value for outcome in told], one


def test_a_hidden_requirement_is_demanded_and_told_nowhere(bench: Bench) -> None:
    for one in planted("hidden_requirement", bench):
        scenario, value = scenario_of(one), one.evidence.value
        text = json.dumps(value, ensure_ascii=False)
        plain = value if isinstance(value, str) else f"{value:g}"
        demanding = [check.source for check in scenario.checks if check.kind == "goal"]
        assert any(plain.casefold() in source.casefold() for source in demanding), one
        assert not re.search(rf"(?<![\w.]){re.escape(plain)}(?!\w)", scenario.task), one
        assert not re.search(rf"(?<![\w.]){re.escape(text)}(?!\w)", json.dumps(scenario.initial_state)), one
        assert scenario.user_profile is None


# -- scenarios --


def test_a_solution_that_fails_does_not_run_or_leaves_a_check_unsatisfied(bench: Bench) -> None:
    for one in planted("solution_fails", bench):
        assert not bench.solved(one.skeleton, scenario_of(one)), one


def test_what_is_solved_at_reset_satisfies_all_checks_with_nothing_done(bench: Bench) -> None:
    for one in planted("solved_at_reset", bench):
        initial = bench.play(one.skeleton, scenario_of(one).initial_state, []).final
        assert bench.accepts(scenario_of(one), initial), one


@pytest.mark.parametrize("kind", ["weak_checks", "missing_guard"])
def test_a_wrong_state_passes_that_the_sound_checks_refuse(kind: str, bench: Bench) -> None:
    for one in planted(kind, bench):
        wrong = one.evidence.states[0]
        assert bench.accepts(scenario_of(one), wrong), one
        assert not bench.accepts(ground_of(one).scenario, wrong), one


def test_a_missing_guard_is_missed_for_a_record_that_the_solution_leaves_alone(bench: Bench) -> None:
    for one in planted("missing_guard", bench):
        ground = ground_of(one)
        wrong = one.evidence.states[0]
        places = [
            (container, key)
            for container in ground.entities
            for key in {**ground.final[container], **wrong[container]}
            if ground.final[container].get(key) != wrong[container].get(key)
        ]
        assert len(places) == 1, one
        assert places[0] not in ground.touched, one


def test_a_leaked_tool_name_stands_in_the_task(bench: Bench) -> None:
    for one in planted("leaks_tool_name", bench):
        names = [tool.name for tool in one.skeleton.tools]
        assert any(re.search(rf"\b{name}\b", scenario_of(one).task) for name in names), one
        assert not any(re.search(rf"\b{name}\b", ground_of(one).scenario.task) for name in names), one


def test_a_leaked_id_stands_in_the_task_and_comes_out_of_a_query_of_the_solution(bench: Bench) -> None:
    for one in planted("leaks_id", bench):
        ground = ground_of(one)
        ids = [key for container in ground.entities for key in ground.initial[container]]
        leaked = [key for key in ids if re.search(rf"(?<!\w){key}(?!\w)", scenario_of(one).task)]
        assert len(leaked) == 1, one
        queried = [
            encode(result).decode()
            for call, result in zip(ground.solution, ground.results, strict=True)
            if (tool := one.skeleton.tool(call.name)) is not None and tool.effect == "query"
        ]
        assert any(leaked[0] in text for text in queried), one


def test_a_variant_that_fails_runs_satisfies_the_sound_checks_and_is_refused(bench: Bench) -> None:
    for one in planted("variant_fails", bench):
        played = bench.solve(one.skeleton, scenario_of(one), one.evidence.calls)
        assert not played.failed, one
        assert bench.accepts(ground_of(one).scenario, played.final), one
        assert said(bench, one, played.final) == [False], one


def test_what_hangs_on_order_or_clock_changes_its_verdict_with_it(bench: Bench) -> None:
    for one in planted("order_or_clock", bench):
        scenario, ground = scenario_of(one), ground_of(one)
        source = check_of(one).source
        if one.evidence.clock is not None:
            now, later = (
                bench.asked([source], ground.initial, ground.final, clock)[0].value
                for clock in (scenario.clock, one.evidence.clock)
            )
            assert (now, later) == (True, False), one
        elif one.evidence.states:
            turned = one.evidence.states[0]
            assert canonical(turned) == canonical(ground.final), one
            assert said(bench, one, ground.final, turned) == [True, False], one
        else:
            played = bench.solve(one.skeleton, scenario, one.evidence.calls)
            assert not played.failed, one
            assert bench.accepts(ground.scenario, played.final), one
            assert not bench.accepts(scenario, played.final), one


# -- states --


@pytest.mark.parametrize("kind", ["state_type", "state_enum", "state_reference"])
def test_a_state_has_one_fault_at_its_place(kind: str, bench: Bench) -> None:
    for one in planted(kind, bench):
        faults = state_faults(scenario_of(one).initial_state, one.skeleton.entities)
        field = one.place.rsplit("/", 1)[1]
        assert faults, one
        assert all(field in fault for fault in faults), (one, faults)


def test_a_state_that_breaks_a_rule_makes_that_predicate_false_and_no_other(bench: Bench) -> None:
    for one in planted("state_rule", bench):
        state = scenario_of(one).initial_state
        for rule in one.skeleton.rules:
            if rule.predicate is not None:
                assert bench.evaluated(rule.predicate, [state]) == [rule.text != one.place], one
        assert not state_faults(state, one.skeleton.entities), one


def test_what_is_no_json_cannot_be_written_down(bench: Bench) -> None:
    found = planted("state_not_json", bench)
    for one in found:
        if one.scenario is not None:
            with pytest.raises(NotJson):
                to_json(canonical(one.scenario.initial_state))
        else:
            assert one.evidence.state is not None
            with pytest.raises(ProgramError, match="NotJson"):
                bench.play(one.skeleton, one.evidence.state, [])
    assert {one.scenario is None for one in found} == {True, False}
    assert not math.isfinite(next(v for one in found if one.scenario for v in _floats(one.scenario.initial_state)))


def _floats(value: object) -> Iterator[float]:
    if isinstance(value, dict):
        for part in value.values():
            yield from _floats(part)
    elif isinstance(value, float) and not math.isfinite(value):
        yield value
