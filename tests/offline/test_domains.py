"""Every domain file of the package: it loads, its program does what it says, and its tasks can be carried out."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from random import Random
from typing import Any

import pytest
from offline.playing import results_in_agreement

from envscaler.errors import ProgramError
from envscaler.offline.blueprint import Blueprint, OperationPlan
from envscaler.offline.checks import make_checks
from envscaler.offline.design import class_source, entities_of, tools_of
from envscaler.offline.domains import read_domain
from envscaler.offline.expression import CLOCK, Scope, evaluate
from envscaler.offline.interpret import interpret
from envscaler.offline.labels import names
from envscaler.offline.methods import method_source
from envscaler.offline.plans import make_plan
from envscaler.offline.search import Search
from envscaler.offline.states import make_state
from envscaler.offline.values import PLACEHOLDER, Maker
from envscaler.offline.wording import wording
from envscaler.probe import valid_arguments
from envscaler.program import analyze, assemble, state_faults
from envscaler.state import State, canonical

FOLDER = resources.files("envscaler.offline").joinpath("domains")
NAMES = [
    *sorted(path.name for path in FOLDER.iterdir() if path.name.endswith(".yaml")),
    *sorted(f"zh/{path.name}" for path in FOLDER.joinpath("zh").iterdir()),
]
SEEDS = range(6)
MANY = 200
"""States among which a rare status or a rule that is seldom broken has to turn up."""

every_domain = pytest.mark.parametrize("name", NAMES)


@cache
def domain(name: str) -> Blueprint:
    return read_domain(FOLDER.joinpath(name).read_text(encoding="utf-8"), name)


@cache
def program(name: str) -> str:
    blueprint = domain(name)
    methods = {operation.name: method_source(blueprint, operation) for operation in blueprint.operations}
    return assemble(class_source(blueprint), methods)


@cache
def state_of(name: str, seed: int) -> State:
    return make_state(domain(name), seed=seed, index=seed, purpose="scenario")


def states(name: str) -> tuple[State, ...]:
    return tuple(state_of(name, seed) for seed in SEEDS)


def asked_for(blueprint: Blueprint) -> list[OperationPlan]:
    return [operation for operation in blueprint.operations if operation.ask]


def named_in(phrase: str) -> set[str]:
    return {re.split("[.:]", path)[0] for path in PLACEHOLDER.findall(phrase)}


@pytest.mark.parametrize("path", ["nothing", "book.nothing", "nothing.title"])
def test_a_label_that_names_no_field_is_a_fault(path: str) -> None:
    text = FOLDER.joinpath("library.yaml").read_text(encoding="utf-8")
    assert "{book.title}" in text
    with pytest.raises(ProgramError, match=f"its label names {path}"):
        read_domain(
            text.replace('label: the loan of "{book.title}"', f'label: the loan of "{{{path}}}"'), "library.yaml"
        )


def test_two_entities_with_one_prefix_of_ids_are_a_fault() -> None:
    text = FOLDER.joinpath("library.yaml").read_text(encoding="utf-8")
    first, second, *_ = re.findall(r"prefix: (\w+)", text)
    with pytest.raises(ProgramError, match=f"two entities have one id prefix: {first}"):
        read_domain(text.replace(f"prefix: {second}", f"prefix: {first}"), "library.yaml")


@every_domain
def test_a_domain_is_rich(name: str) -> None:
    blueprint = domain(name)
    updates = [operation for operation in blueprint.operations if operation.effect == "update"]
    rules = {requirement.rule for operation in updates for requirement in operation.requires}
    assert 16 <= len(tools_of(blueprint)) <= 26
    assert len(blueprint.entities) >= 4
    assert len(updates) >= 9
    assert len(rules) >= 10
    assert blueprint.invariants


@every_domain
def test_its_program_is_sound(name: str) -> None:
    blueprint = domain(name)
    assert analyze(program(name), blueprint.class_name, tools_of(blueprint)) == ()


@every_domain
def test_its_states_are_legal_and_show_every_status(name: str) -> None:
    blueprint = domain(name)
    for state in states(name):
        assert state_faults(state, entities_of(blueprint)) == ()
        for invariant in blueprint.invariants:
            for row in state[blueprint.entity(invariant.entity).container].values():
                assert evaluate(invariant.holds, Scope(blueprint, state).with_it(invariant.entity, row)), invariant.rule
    for entity in blueprint.entities:
        for field in entity.fields:
            weights = field.make.weights or dict.fromkeys(field.enum or (), 1.0)
            missing = {value for value, weight in weights.items() if weight > 0}
            for seed in range(MANY):
                missing -= {row[field.name] for row in state_of(name, seed)[entity.container].values()}
                if not missing:
                    break
            assert not missing, f"{entity.name}.{field.name}"


@every_domain
def test_program_and_interpreter_agree(name: str) -> None:
    for seed, start in enumerate(states(name)[:2]):
        assert results_in_agreement(domain(name), program(name), start, calls=60, seed=seed)


@every_domain
def test_everything_that_people_ask_for_can_be_done_and_every_rule_can_be_broken(name: str) -> None:
    blueprint = domain(name)
    for operation in asked_for(blueprint):
        needed = {param.name for param in operation.params if not param.optional}
        for phrase in operation.ask:
            assert needed <= named_in(phrase), f"{operation.name}: {phrase}"
        given = {param.name for param in operation.params} & named_in(operation.ask[0])
        assert any(_found(blueprint, operation, state_of(name, seed), given, None) for seed in range(MANY)), (
            operation.name
        )
        for index, requirement in enumerate(operation.requires):
            every = {param.name for param in operation.params}
            assert any(
                _found(blueprint, operation, state_of(name, seed), include, index)
                for seed in range(MANY)
                for include in (every, set[str]())
            ), f"{operation.name}: {requirement.rule}"


def _found(
    blueprint: Blueprint, operation: OperationPlan, state: State, include: set[str], violate: int | None
) -> bool:
    named = {
        entity.name: list(names(blueprint, state, entity, wording(blueprint.language))) for entity in blueprint.entities
    }
    maker = Maker(blueprint, Random(7), state[CLOCK])
    search = Search(
        operation, state, maker, include=include, violate=violate, candidates=lambda param: named[param.ref or ""]
    )
    return next(search.found(), None) is not None


@every_domain
def test_no_call_that_succeeds_breaks_a_standing_rule(name: str) -> None:
    blueprint = domain(name)
    tools, entities = {tool.name: tool for tool in tools_of(blueprint)}, entities_of(blueprint)
    updates = [operation for operation in blueprint.operations if operation.effect == "update"]
    changed = 0
    for seed in SEEDS:
        state, rng = state_of(name, seed), Random(seed)
        for _ in range(40):
            operation = rng.choice(updates)
            arguments = valid_arguments(tools[operation.name], state, entities, rng)
            prediction = interpret(blueprint, operation, state, arguments)
            if prediction.success:
                changed += 1
                state = prediction.state
                for invariant in blueprint.invariants:
                    for row in state[blueprint.entity(invariant.entity).container].values():
                        scope = Scope(blueprint, state).with_it(invariant.entity, row)
                        assert evaluate(invariant.holds, scope), f"{operation.name}({arguments}): {invariant.rule}"
    assert changed > 10


@every_domain
def test_plans_succeed_and_their_checks_hold_after_them_only(name: str) -> None:
    blueprint = domain(name)
    for seed, initial in zip(SEEDS, states(name), strict=True):
        plan = make_plan(blueprint, initial, Random(seed), wording(blueprint.language))
        state = initial
        results: list[dict[str, Any]] = []
        for call in plan.calls:
            arguments = call.resolved(results)
            operation = blueprint.operation(call.name)
            assert operation is not None
            prediction = interpret(blueprint, operation, state, arguments)
            assert prediction.success, f"{call.name}: {prediction.error}"
            state = prediction.state
            results.append({"success": True, "data": prediction.data})
        checks = make_checks(blueprint, initial, state, wording(blueprint.language))
        assert all(_holds(check.source, initial, state) for check in checks)
        assert not all(_holds(check.source, initial, initial) for check in checks)


def _holds(source: str, initial: State, final: State) -> bool:
    module: dict[str, Any] = {"initial_state": canonical(initial)}
    exec(source, module)  # noqa: S102 - source of our own making
    holds: bool = module["check_func"](canonical(final))
    return holds
