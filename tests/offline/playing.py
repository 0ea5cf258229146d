"""Scenarios of a blueprint as the roles give them, played in the interpreter and judged by their own checks; and
programs of a blueprint held against the interpreter."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from envscaler.offline.blueprint import Blueprint, OperationPlan
from envscaler.offline.design import entities_of, tools_of
from envscaler.offline.expression import CLOCK
from envscaler.offline.interpret import interpret
from envscaler.offline.search import Search
from envscaler.offline.states import make_state
from envscaler.offline.tasks import write_check, write_checklist, write_task
from envscaler.offline.values import Maker
from envscaler.probe import valid_arguments, wrong_arguments
from envscaler.roles.types import WriteCheckInputs, WriteChecklistInputs, WriteTaskInputs, WriteTaskReply
from envscaler.scenario import SolutionCall
from envscaler.skeleton import EnvDescription
from envscaler.state import State, canonical, get


@dataclass(frozen=True)
class Written:
    """A scenario as the scenario writer's three roles give it."""

    inputs: dict[str, Any]
    reply: WriteTaskReply
    checklist: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def state(self) -> State:
        state: State = self.inputs["state"]
        return state


def common_inputs(blueprint: Blueprint, seed: int, index: int = 0) -> dict[str, Any]:
    """What every role is told of a scenario."""
    state = make_state(blueprint, seed=seed, index=index, purpose="scenario")
    return {
        "description": EnvDescription(summary=blueprint.summary, introduction=blueprint.introduction),
        "entities": (),
        "rules": (),
        "tools": (),
        "language": blueprint.language,
        "state": state,
        "clock": state["current_time"],
        "index": index,
        "seed": seed,
    }


@cache
def written(blueprint: Blueprint, seed: int, index: int = 0) -> Written:
    """The scenario of a seed and an index."""
    inputs = common_inputs(blueprint, seed, index)
    reply = write_task(blueprint, WriteTaskInputs(**inputs))
    inputs["task"] = reply.task
    checklist = write_checklist(blueprint, WriteChecklistInputs(**inputs)).checklist
    sources = tuple(
        write_check(blueprint, WriteCheckInputs(**inputs, item=item, position=position)).source
        for position, item in enumerate(checklist)
    )
    return Written(inputs, reply, checklist, sources)


def operation_of(blueprint: Blueprint, call: SolutionCall) -> OperationPlan:
    """The operation that a call is of."""
    operation = blueprint.operation(call.name)
    assert operation is not None
    return operation


def played(blueprint: Blueprint, state: State, plan: Iterable[SolutionCall]) -> State:
    """The state after the plan, with every binding resolved from the results; each call has to succeed."""
    results: list[dict[str, Any]] = []
    for call in plan:
        arguments = call.resolved(results)
        assert arguments == call.arguments, "the recorded literals are what the bindings give"
        for binding in call.bindings.values():
            get(results[binding.call], binding.pointer)
        prediction = interpret(blueprint, operation_of(blueprint, call), state, arguments)
        assert prediction.success, f"{call.name}: {prediction.error}"
        state = prediction.state
        results.append({"success": True, "data": prediction.data})
    return state


def updates_of(blueprint: Blueprint, plan: Sequence[SolutionCall]) -> list[SolutionCall]:
    """The calls of a plan that change something."""
    return [call for call in plan if operation_of(blueprint, call).effect == "update"]


def verdicts(sources: Iterable[str], initial: State, final: State) -> list[bool]:
    """What each check function says of a final state."""
    out = []
    before, after = canonical(initial), canonical(final)
    for source in sources:
        names: dict[str, Any] = {"initial_state": before}
        exec(source, names)  # noqa: S102 - source of our own making
        value = names["check_func"](after)
        assert isinstance(value, bool)
        out.append(value)
    return out


def results_in_agreement(
    blueprint: Blueprint, source: str, state: State, *, calls: int, seed: int, preferred: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Results of random calls, good and bad, in all of which the program does what the interpreter says.

    Args:
        preferred: operations that most calls are of; none: all alike.
    """
    module: dict[str, Any] = {"__name__": "environment"}
    exec(source, module)  # noqa: S102 - source of our own making
    tools, entities = {tool.name: tool for tool in tools_of(blueprint)}, entities_of(blueprint)
    chosen = [operation for operation in blueprint.operations if operation.name in set(preferred)]
    rng = Random(seed)
    results = []
    for _ in range(calls):
        operation = rng.choice(chosen if chosen and rng.random() < 0.7 else blueprint.operations)
        found = next(Search(operation, state, Maker(blueprint, rng, state[CLOCK])).found(), None)
        way = rng.random()
        arguments: dict[str, Any]
        if way < 0.5 and found is not None:
            arguments = found
        elif way < 0.75:
            arguments = valid_arguments(tools[operation.name], state, entities, rng)
        else:
            arguments = wrong_arguments(tools[operation.name], state, entities, rng)[1]
        predicted = interpret(blueprint, operation, state, arguments)
        instance = module[blueprint.class_name](copy.deepcopy(state))
        call = f"{operation.name}({arguments})"
        try:
            result: dict[str, Any] = getattr(instance, operation.name)(**copy.deepcopy(arguments))
        except TypeError as fault:
            # Python itself refuses what is missing or unexpected; anything else is the method's own fault.
            if not re.search(r"missing \d+ required|unexpected keyword argument", str(fault)):
                raise
            result = {"success": False, "error": predicted.error}
        assert result["success"] is predicted.success, f"{call}: {result}"
        assert canonical(vars(instance)) == canonical(predicted.state), call
        assert result.get("data") == predicted.data, call
        if not predicted.success and predicted.violated is None and isinstance(predicted.error, str):
            # A sentence of the program begins with a capital letter.
            assert result["error"].lower() == predicted.error.lower(), f"{call}: {result}"
        results.append(result)
        state = predicted.state
    return results
