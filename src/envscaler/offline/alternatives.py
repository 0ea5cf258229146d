"""Other calls that come to the same as a plan: goals in another order, other queries on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from envscaler.offline.blueprint import Blueprint, EntityPlan
from envscaler.offline.carrying import Carrier
from envscaler.offline.goals import Goal
from envscaler.offline.name_book import NameBook
from envscaler.scenario import SolutionCall
from envscaler.state import JsonValue, State

MOST = 2
_DEPTH = 3
"""References between new records that are followed."""


def alternatives_of(
    blueprint: Blueprint,
    book: NameBook,
    initial: State,
    goals: Sequence[Goal],
    calls: tuple[SolutionCall, ...],
) -> tuple[tuple[SolutionCall, ...], ...]:
    """At most two sequences of calls that differ from the given one and from each other."""
    wanted = outcome(blueprint, initial, goals[-1].after)
    found = [calls]
    for order, backwards, broad in _ways(goals):
        carrier = Carrier(blueprint, book, initial, broad=broad)
        if not all(carrier.follow(goal, backwards=backwards) for goal in order):
            continue
        if carrier.calls not in found and outcome(blueprint, initial, carrier.state) == wanted:
            found.append(carrier.calls)
        if len(found) > MOST:
            break
    return tuple(found[1:])


def _ways(goals: Sequence[Goal]) -> Iterator[tuple[list[Goal], bool, bool]]:
    """Order of goals, whether the steps of each go backwards, whether lists are preferred to searches."""
    if any(len(goal.proposal.steps) > 1 for goal in goals):
        yield list(goals), True, False
    if len(goals) > 1:
        yield _sorted(list(reversed(goals))), False, False
        yield [*goals[1:], goals[0]], False, True
    yield list(goals), False, True


def _sorted(goals: list[Goal]) -> list[Goal]:
    """The order given, but whatever uses a new record after the goal that makes it."""
    out: list[Goal] = []
    waiting = list(goals)
    while waiting:
        pending = {record for goal in waiting for record in goal.created}
        ready = next(
            (goal for goal in waiting if not pending & set(goal.proposal.records) - set(goal.created)), waiting[0]
        )
        waiting.remove(ready)
        out.append(ready)
    return out


def outcome(blueprint: Blueprint, initial: State, final: State) -> str:
    """A text that two final states share if they differ only in ids of new records, time stamps and counters."""
    parts: dict[str, JsonValue] = {}
    for entity in blueprint.entities:
        before = initial[entity.container]
        kept = {
            key: _contents(blueprint, initial, final, entity, key) for key in final[entity.container] if key in before
        }
        new = sorted(
            _contents(blueprint, initial, final, entity, key) for key in final[entity.container] if key not in before
        )
        parts[entity.name] = [kept, new]
    return json.dumps(parts, sort_keys=True)


def _contents(blueprint: Blueprint, initial: State, final: State, entity: EntityPlan, key: str, depth: int = 0) -> str:
    """What a record holds, new records that it references by their contents."""
    row = final[entity.container][key]
    values: list[JsonValue] = []
    for field in entity.fields:
        value = row[field.name]
        if field.stamp:
            continue
        if field.ref is not None and value is not None:
            target = blueprint.entity(field.ref)
            if value not in initial[target.container] and value in final[target.container]:
                value = _contents(blueprint, initial, final, target, value, depth + 1) if depth < _DEPTH else "new"
        values.append(value)
    return json.dumps(values)
