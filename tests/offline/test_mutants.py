"""What is nearly right is not right: spoiled plans fail at least one check of their task."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

import pytest
from offline.playing import Written, operation_of, played, updates_of, verdicts, written

from envscaler.offline.alternatives import outcome
from envscaler.offline.blueprint import Blueprint, ParamPlan
from envscaler.offline.domains import domains
from envscaler.offline.expression import CLOCK
from envscaler.offline.interpret import interpret, tool_parameter
from envscaler.offline.labels import names
from envscaler.offline.search import Search
from envscaler.offline.values import Maker
from envscaler.offline.wording import telling_words, wording
from envscaler.scenario import SolutionCall
from envscaler.state import JsonValue, State

SEEDS = range(4)
NOTICED = 0.95
"""Share of the spoiled plans that a check has to notice."""


def carried_out(blueprint: Blueprint, state: State, calls: list[SolutionCall]) -> State:
    """The state after the calls; what is refused changes nothing."""
    for call in calls:
        state = interpret(blueprint, operation_of(blueprint, call), state, call.arguments).state
    return state


def one_call_missing(blueprint: Blueprint, made: Written, updates: list[SolutionCall]) -> Iterator[list[SolutionCall]]:
    for index in range(len(updates)):
        yield [*updates[:index], *updates[index + 1 :]]


def another_target(blueprint: Blueprint, made: Written, updates: list[SolutionCall]) -> Iterator[list[SolutionCall]]:
    """One record taken for the one whose name is most like its own and with which the call succeeds."""
    for index, call in enumerate(updates):
        for param in operation_of(blueprint, call).params:
            parameter = tool_parameter(blueprint, param)
            if param.ref is None or call.arguments.get(parameter) is None:
                continue
            entity = blueprint.entity(param.ref)
            named = names(blueprint, made.state, entity, wording(blueprint.language))
            own = call.arguments[parameter]
            words = telling_words(named[own].text) if own in named else frozenset()
            twins = sorted(
                (key for key in named if key != own), key=lambda key: -len(words & telling_words(named[key].text))
            )
            for twin in twins[:3]:
                swapped = call.model_copy(update={"arguments": {**call.arguments, parameter: twin}})
                before = carried_out(blueprint, made.state, updates[:index])
                if interpret(blueprint, operation_of(blueprint, call), before, swapped.arguments).success:
                    yield [*updates[:index], swapped, *updates[index + 1 :]]
                    break


def one_step_off(blueprint: Blueprint, made: Written, updates: list[SolutionCall]) -> Iterator[list[SolutionCall]]:
    """One amount or date that is a step too high or too low."""
    for index, call in enumerate(updates):
        for param in operation_of(blueprint, call).params:
            parameter = tool_parameter(blueprint, param)
            for value in _beside(param, call.arguments.get(parameter)):
                changed = call.model_copy(update={"arguments": {**call.arguments, parameter: value}})
                before = carried_out(blueprint, made.state, updates[:index])
                if interpret(blueprint, operation_of(blueprint, call), before, changed.arguments).success:
                    yield [*updates[:index], changed, *updates[index + 1 :]]


def _beside(param: ParamPlan, value: JsonValue) -> list[JsonValue]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, (int, float)):
        return [value + 1, value - 1]
    if param.type == "date":
        day = date.fromisoformat(value)
        return [(day + timedelta(days=step)).isoformat() for step in (1, -1)]
    return []


def one_call_too_many(blueprint: Blueprint, made: Written, updates: list[SolutionCall]) -> Iterator[list[SolutionCall]]:
    """Something that nobody asked for, after all the rest."""
    rng = Random(made.reply.task)
    final = carried_out(blueprint, made.state, updates)
    operations = [operation for operation in blueprint.operations if operation.effect == "update"]
    for operation in rng.sample(operations, min(4, len(operations))):
        found = next(Search(operation, final, Maker(blueprint, rng, final[CLOCK])).found(), None)
        if found is not None:
            yield [*updates, SolutionCall(name=operation.name, arguments=found)]


@pytest.mark.parametrize("spoil", [one_call_missing, another_target, one_step_off, one_call_too_many])
def test_a_spoiled_plan_fails_a_check(spoil: type) -> None:
    made_plans = noticed = 0
    missed: list[str] = []
    for blueprint in domains():
        for seed in SEEDS:
            made = written(blueprint, seed, seed)
            wanted = outcome(blueprint, made.state, played(blueprint, made.state, made.reply.plan))
            for calls in list(spoil(blueprint, made, updates_of(blueprint, made.reply.plan)))[:6]:
                final = carried_out(blueprint, made.state, calls)
                # What comes to the very same is not wrong.
                if outcome(blueprint, made.state, final) == wanted:
                    continue
                made_plans += 1
                if all(verdicts(made.sources, made.state, final)):
                    missed.append(f"{blueprint.slug} {seed}: {[call.name for call in calls]}")
                else:
                    noticed += 1
    assert made_plans > 2 * len(domains())
    assert noticed >= NOTICED * made_plans, missed
