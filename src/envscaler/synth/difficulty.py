"""`difficulty`: what makes a solved scenario hard, read off its solution and tried on the records that look alike.

How often a model solves it is `calibration`'s business.

Source: LOGIGEN, ScaleEnv (PAPER.md's neighbours): near-twins and rules make difficulty real.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from envscaler.probe import PlannedCall, planned
from envscaler.proof.playing import play
from envscaler.sandbox import Sandbox
from envscaler.scenario import Difficulty, Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton
from envscaler.state import State, diff, leaves, tokens

_LABELS = ("name", "full_name", "title", "label", "subject")
_CONDITIONS = {
    "en": re.compile(r"\b(?:if|unless|except|provided|should|allowed?|permit(?:s|ted)?)\b", re.IGNORECASE),
    "zh": re.compile("如果|若|除非|只要|不允许|不许|规则"),
}
"""By language, words that make a part of a task depend on something."""
_TRIED = 12
"""Calls that are tried on records that look alike, at most."""

_Targets = dict[str, tuple[set[str], set[str]]]
"""Container → ids of the records that the solution touches and that were there before, and of those that look alike."""


async def difficulty(
    scenario: Scenario, final: State, updates: int, skeleton: EnvSkeleton, sandbox: Sandbox
) -> Difficulty:
    """What makes a scenario with a solution hard.

    Args:
        final: what the solution left.
        updates: calls of the solution that changed the state.

    Raises:
        ProgramError: if the program cannot be built from the initial state.
        SandboxError: if the machinery fails.
    """
    solution = scenario.solution or ()
    called = {call.name for call in solution}
    touched = {tuple(tokens(change.pointer)[:2]) for change in diff(scenario.initial_state, final)}
    containers = {entity.container for entity in skeleton.entities if entity.container is not None}
    writing = {tool.name for tool in skeleton.tools if tool.effect == "update"} & called
    targets = _targets(scenario.initial_state, touched)
    condition = _CONDITIONS.get(skeleton.origin.language)
    return Difficulty(
        calls=len(solution),
        updates=updates,
        entities=len({place for place in touched if place[0] in containers}),
        rules=sum(1 for rule in skeleton.rules if rule.enforced is not False and writing & set(rule.tools)),
        distractors=sum(len(alike) for _, alike in targets.values()),
        look_ups=_look_ups(scenario),
        forbidden=(
            None
            if condition is None
            else await _forbidden(scenario, targets, writing, skeleton, sandbox)
            if condition.search(scenario.task)
            else 0
        ),
    )


def _targets(initial: State, touched: set[tuple[str, ...]]) -> _Targets:
    out: _Targets = {}
    for name, records in initial.items():
        if not isinstance(records, dict) or not all(isinstance(record, dict) for record in records.values()):
            continue
        meant = {place[1] for place in touched if place[0] == name and len(place) == 2 and place[1] in records}
        alike = {
            key
            for key, record in records.items()
            if key not in meant and any(_look_alike(key, record, target, records[target]) for target in meant)
        }
        if meant:
            out[name] = (meant, alike)
    return out


def _look_alike(key: str, record: dict[str, Any], target_key: str, target: dict[str, Any]) -> bool:
    """Whether two records share a label or at least half of their fields, ids aside."""
    if any(target.get(label) is not None and record.get(label) == target[label] for label in _LABELS):
        return True
    fields = [name for name, value in target.items() if value != target_key and record.get(name) != key]
    return bool(fields) and 2 * sum(record.get(name) == target[name] for name in fields) >= len(fields)


def _look_ups(scenario: Scenario) -> int:
    ids = {key for records in scenario.initial_state.values() if isinstance(records, dict) for key in records}
    used = {value for call in scenario.solution or () for _, value in leaves(call.arguments) if isinstance(value, str)}
    return sum(key not in scenario.task for key in used & ids)


async def _forbidden(
    scenario: Scenario, targets: _Targets, writing: set[str], skeleton: EnvSkeleton, sandbox: Sandbox
) -> int:
    refused: set[tuple[str, str]] = set()
    solution = scenario.solution or ()
    for record, calls in islice(_redirected(solution, targets, writing), _TRIED):
        if record not in refused:
            played = await play(skeleton, scenario, calls, sandbox)
            if not any(played.faults[:-1]) and played.faults[-1] is not None:
                refused.add(record)
    return len(refused)


def _redirected(
    solution: Sequence[SolutionCall], targets: _Targets, writing: set[str]
) -> Iterator[tuple[tuple[str, str], list[PlannedCall]]]:
    """The solution up to a call, that call made with the id of a record that looks like the one it is made for."""
    for index, call in enumerate(solution):
        for name, value in call.arguments.items() if call.name in writing else ():
            for container, (meant, alike) in targets.items():
                if isinstance(value, str) and value in meant:
                    for key in sorted(alike):
                        other = call.model_copy(update={"arguments": {**call.arguments, name: key}, "bindings": {}})
                        yield (container, key), [*planned(solution[:index]), PlannedCall(other)]
