"""Calls beside those of a solution: look-ups that change nothing, and mistakes that are refused.

Which of them are made when is their user's business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from envscaler.probe.invalid import WrongKind, wrong_arguments
from envscaler.probe.pool import Pool
from envscaler.probe.valid import valid_arguments
from envscaler.scenario import SolutionCall
from envscaler.skeleton import Entity, ToolSpec
from envscaler.state import JsonValue, State

_FORMS = 8
"""Sets of arguments that are read out of a task for one tool at most."""


@dataclass(frozen=True)
class PlannedCall:
    """A call to be made, and the number by which the bindings of later calls name its result."""

    call: SolutionCall
    number: int | None = None
    """None: no later call is bound to it."""


def planned(solution: Sequence[SolutionCall]) -> list[PlannedCall]:
    """The calls of a solution as they were recorded."""
    return [PlannedCall(call, number) for number, call in enumerate(solution)]


def between(plan: Sequence[PlannedCall], looks: Sequence[PlannedCall]) -> Iterator[PlannedCall]:
    """A plan with one of the look-ups before each call."""
    for index, call in enumerate(plan):
        yield looks[index % len(looks)]
        yield call


def random_look_ups(
    tools: Sequence[ToolSpec], state: State, entities: Sequence[Entity], rng: Random, most: int
) -> list[PlannedCall]:
    """Calls of queries with arguments that a state holds."""
    queries = [tool for tool in tools if tool.effect == "query"]
    return [
        PlannedCall(SolutionCall(name=tool.name, arguments=valid_arguments(tool, state, entities, rng)))
        for tool in rng.sample(queries, min(most, len(queries)))
    ]


def told_look_ups(
    tools: Sequence[ToolSpec], state: State, entities: Sequence[Entity], task: str
) -> list[tuple[PlannedCall, bool]]:
    """The calls of queries that somebody who knows only the task could begin with, and whether they take a value from
    it; an id that the task does not name is never among them."""
    pool, text = Pool(state, entities), task.casefold()
    found: list[tuple[PlannedCall, bool]] = []
    for tool in tools:
        if tool.effect != "query":
            continue
        properties = tool.parameters.get("properties")
        names = properties if isinstance(properties, dict) else {}
        told = {name: list(dict.fromkeys(_told(pool, name, tool, text))) for name in names}
        told = {name: values for name, values in told.items() if values}
        if not set(tool.parameters.get("required") or ()) <= told.keys():
            continue
        for _, values in zip(range(_FORMS), product(*told.values()), strict=False):
            arguments = dict(zip(told, values, strict=True))
            found.append((PlannedCall(SolutionCall(name=tool.name, arguments=arguments)), bool(arguments)))
        if told and not tool.parameters.get("required"):
            found.append((PlannedCall(SolutionCall(name=tool.name)), False))
    return found


def _told(pool: Pool, name: str, tool: ToolSpec, text: str) -> Iterator[JsonValue]:
    container = pool.container(name)
    values: Sequence[JsonValue] = pool.ids(container) if container is not None else pool.values(name, tool.name)
    for value in values:
        if isinstance(value, str) and len(value) >= 2 and value.casefold() in text:
            yield value


def mistaken(
    tool: ToolSpec,
    arguments: dict[str, JsonValue],
    state: State,
    entities: Sequence[Entity],
    rng: Random,
    kinds: Collection[WrongKind],
) -> dict[str, JsonValue] | None:
    """Arguments with one of those kinds of fault in them; None where the tool can have none of them."""
    found = wrong_arguments(tool, state, entities, rng, arguments=arguments, kinds=kinds)
    return found[1] if found[0] in kinds else None
