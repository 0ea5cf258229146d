"""`Ground`: a sound environment and scenario, played once, with what its solution brings about and who notices.

The environments and scenarios come from the embedded generator; no file of another project is read.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, TypeVar

from envscaler.offline.blueprint import Blueprint
from envscaler.offline.design import entities_of, program_of, rules_of, tools_of
from envscaler.offline.model import blueprint_of_task
from envscaler.offline.states import make_state
from envscaler.offline.tasks import write_check, write_checklist, write_task
from envscaler.program import class_name_of
from envscaler.record import Record
from envscaler.roles.types import WriteCheckInputs, WriteChecklistInputs, WriteTaskInputs
from envscaler.scenario import Check, Scenario, SolutionCall
from envscaler.skeleton import Entity, EnvDescription, EnvSkeleton, Origin
from envscaler.state import JsonValue, State, diff, tokens

from .bench import Bench

TASKS = (
    "Borrow the book Emma for the member Ann at the town library.",
    "Transfer 50 euros from my bank account to my sister's savings account.",
    "Register me for the conference session on robotics.",
    "Book a room in the hotel for two nights.",
    "Close support ticket 17 and assign the next to Mia in the helpdesk.",
    "Assign a driver to the delivery van of the fleet.",
    "Approve the building permit application of Mr Lee.",
    "Move the file report.txt to the folder archive and delete old files.",
)
"""One task for each environment; the generator makes eight structures of them, two of which it derives."""

_LABELS = ("name", "title", "subject", "plate", "number", "model", "purpose", "trouble", "destination")


RecordT = TypeVar("RecordT", bound=Record)


def varied(record: RecordT, **changes: Any) -> RecordT:
    """A record with other values, and nothing kept of what was derived from the old ones (`model_copy` keeps it)."""
    fields = {name: getattr(record, name) for name in type(record).model_fields}
    return type(record)(**{**fields, **changes})


@dataclass(frozen=True)
class Aim:
    """One place that the solution changes, and the one goal check that notices when it is left as it was."""

    check: int
    """Index of the check."""
    kind: str
    """`changed`: a field of a record; `added`, `removed`: a record."""
    container: str
    key: str
    field: str = ""
    before: JsonValue = None
    after: JsonValue = None
    """The value, or the record, that is there now."""


@dataclass(frozen=True)
class Ground:
    """What faults are planted into."""

    skeleton: EnvSkeleton
    scenario: Scenario
    initial: State
    """The state right after reset."""
    final: State
    """The state after the solution."""
    results: tuple[JsonValue, ...]
    aims: tuple[Aim, ...]

    @cached_property
    def entities(self) -> dict[str, Entity]:
        """Each entity by its container."""
        return {entity.container: entity for entity in self.skeleton.entities if entity.container is not None}

    @property
    def solution(self) -> tuple[SolutionCall, ...]:
        """The recorded solution."""
        return self.scenario.solution or ()

    @cached_property
    def created(self) -> dict[tuple[str, str], dict[str, JsonValue]]:
        """Records that the solution adds."""
        return {
            (container, key): row
            for container in self.entities
            for key, row in self.final[container].items()
            if key not in self.initial[container]
        }

    @cached_property
    def touched(self) -> set[tuple[str, str]]:
        """Records that the solution changes, adds or removes."""
        places = [tokens(change.pointer) for change in diff(self.initial, self.final)]
        return {(place[0], place[1]) for place in places if len(place) > 1}

    def check(self, aim: Aim) -> Check:
        """The goal check that notices an aim."""
        return self.scenario.checks[aim.check]

    def aims_of(self, kind: str, *types: type) -> list[Aim]:
        """The aims of a kind, those with a value of one of these types."""
        return [aim for aim in self.aims if aim.kind == kind and (not types or type(aim.after) in types)]

    def enum(self, container: str, field: str) -> tuple[str, ...]:
        """The values allowed for a field; empty when not limited."""
        attributes = self.entities[container].attributes
        return next((attribute.enum or () for attribute in attributes if attribute.name == field), ())

    def label(self, container: str, key: str) -> str | None:
        """How a record is called, or None."""
        row = self.final[container].get(key) or self.initial[container].get(key) or {}
        return next((row[name] for name in _LABELS if isinstance(row.get(name), str)), None)

    def untouched(self) -> Iterator[tuple[str, str]]:
        """Records that the solution leaves as they are, and that no changed record refers to."""
        for container in self.entities:
            for key in self.initial[container]:
                if (container, key) not in self.touched:
                    yield container, key

    def with_checks(self, *checks: Check) -> Scenario:
        """The scenario with other checks."""
        return varied(self.scenario, checks=checks)

    def with_check(self, place: int, source: str, description: str | None = None, **changes: str | None) -> Scenario:
        """The scenario with the source of one check replaced."""
        checks = list(self.scenario.checks)
        update = {"source": source, "description": description or checks[place].description, **changes}
        checks[place] = checks[place].model_copy(update=update)
        return self.with_checks(*checks)

    def with_state(self, state: State) -> Scenario:
        """The scenario with another initial state."""
        return varied(self.scenario, initial_state=state)


def undone(final: State, aim: Aim) -> State:
    """The solved state in which one aim was left as it was."""
    state = copy.deepcopy(final)
    rows = state[aim.container]
    if aim.kind == "changed":
        rows[aim.key][aim.field] = aim.before
    elif aim.kind == "added":
        del rows[aim.key]
    else:
        rows[aim.key] = copy.deepcopy(aim.before)
    return state


def altered(final: State, aim: Aim, value: JsonValue) -> State:
    """The solved state in which the aimed field has another value."""
    state = copy.deepcopy(final)
    state[aim.container][aim.key][aim.field] = value
    return state


def without(final: State, container: str, key: str) -> State:
    """A state in which a record is missing."""
    state = copy.deepcopy(final)
    state[container].pop(key, None)
    return state


_SEED = 4
_PER_ENV = 3


@cache
def clean() -> tuple[tuple[EnvSkeleton, tuple[Scenario, ...]], ...]:
    """The sound environments, each with its scenarios; made once in a process."""
    with Bench() as bench:
        return tuple(_environment(task, bench) for task in TASKS)


def _environment(task: str, bench: Bench) -> tuple[EnvSkeleton, tuple[Scenario, ...]]:
    blueprint = blueprint_of_task(task)
    assert blueprint is not None
    source = program_of(blueprint)
    skeleton = EnvSkeleton(
        id=blueprint.summary.lower().replace(" ", "-"),
        description=EnvDescription(summary=blueprint.summary, introduction=blueprint.introduction),
        entities=entities_of(blueprint),
        rules=rules_of(blueprint),
        tools=tools_of(blueprint),
        class_name=class_name_of(source),
        source=source,
        origin=Origin(seed_tasks=(task,), models={"builder": "offline"}, seed=_SEED),
    )
    scenarios: list[Scenario] = []
    for index in range(4 * _PER_ENV):
        scenario = _scenario(blueprint, skeleton, index, bench)
        if scenario is not None:
            scenarios.append(scenario)
        if len(scenarios) == _PER_ENV:
            return skeleton, tuple(scenarios)
    raise AssertionError(f"{skeleton.id} has too few sound scenarios")


def _scenario(blueprint: Blueprint, skeleton: EnvSkeleton, index: int, bench: Bench) -> Scenario | None:
    """A scenario whose solution runs and satisfies all checks, of which some ask for a change; None where it is not."""
    state = make_state(blueprint, seed=_SEED, index=index, purpose="scenario")
    known: dict[str, Any] = {
        "description": skeleton.description,
        "entities": skeleton.entities,
        "rules": skeleton.rules,
        "tools": skeleton.tools,
        "language": "en",
        "state": state,
        "clock": state["current_time"],
        "index": index,
        "seed": _SEED,
    }
    reply = write_task(blueprint, WriteTaskInputs(**known))
    known["task"] = reply.task
    played = bench.play(skeleton, state, reply.plan, seed=index, clock=known["clock"])
    solution = tuple(
        call.model_copy(update={"arguments": call.resolved(played.results[:place])})
        for place, call in enumerate(reply.plan)
    )
    checklist = write_checklist(blueprint, WriteChecklistInputs(**known)).checklist
    sources = [
        write_check(blueprint, WriteCheckInputs(**known, item=text, position=place)).source
        for place, text in enumerate(checklist)
    ]
    held = [outcome.value for outcome in bench.asked(sources, state, played.initial, known["clock"])]
    checks = [
        Check(description=text, source=source, kind="guard" if now else "goal")
        for text, source, now in zip(checklist, sources, held, strict=True)
    ]
    scenario = Scenario(
        id=f"{skeleton.id}-s{index + 1:03d}",
        env_id=skeleton.id,
        env_digest=skeleton.digest,
        initial_state=state,
        task=reply.task,
        checks=tuple(checks),
        solution=solution,
        clock=known["clock"],
        seed=index,
        user_profile=reply.user_profile.told if reply.user_profile is not None else None,
        origin=Origin(models={"builder": "offline"}, seed=_SEED),
    )
    watched = any(not now for now in held) and any(held)
    return scenario if solution and watched and bench.solved(skeleton, scenario) else None


@cache
def grounds() -> tuple[Ground, ...]:
    """Every clean scenario, played; made once in a process."""
    with Bench() as bench:
        return tuple(_ground(skeleton, scenario, bench) for skeleton, scenarios in clean() for scenario in scenarios)


def ground_named(scenario_id: str) -> Ground:
    """The ground of a clean scenario."""
    return next(ground for ground in grounds() if ground.scenario.id == scenario_id)


def _ground(skeleton: EnvSkeleton, scenario: Scenario, bench: Bench) -> Ground:
    played = bench.solve(skeleton, scenario)
    assert not played.failed, scenario.id
    assert bench.accepts(scenario, played.final), scenario.id
    bare = Ground(skeleton, scenario, played.initial, played.final, tuple(played.results), ())
    aims = []
    for aim in _candidates(bare):
        refused = [
            index
            for index, outcome in enumerate(bench.judged(scenario, undone(played.final, aim)))
            if outcome.value is not True and scenario.checks[index].kind == "goal"
        ]
        if len(refused) == 1:
            aims.append(replace(aim, check=refused[0]))
    return replace(bare, aims=tuple(aims))


def _candidates(ground: Ground) -> Iterator[Aim]:
    for change in diff(ground.initial, ground.final):
        place = tokens(change.pointer)
        if place[0] not in ground.entities:
            continue
        if change.kind == "changed" and len(place) == 3:
            yield Aim(-1, "changed", place[0], place[1], place[2], change.before, change.after)
        elif len(place) == 2:
            yield Aim(-1, change.kind, place[0], place[1], "", change.before, change.after)
