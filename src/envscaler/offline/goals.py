"""`Proposal` and `Goal`: a wish with the calls that fulfil it and all that must stay true around it.

Which wishes are proposed is the business of `single_goals`, `group_goals` and `conditional_goals`; which of them fit
together is `plans`'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from envscaler.offline.blueprint import Blueprint, EntityPlan, OperationPlan
from envscaler.offline.interpret import interpret
from envscaler.offline.selections import Selection
from envscaler.state import JsonValue, State

Kind = Literal["plain", "following", "looked_up", "chosen", "group", "conditional", "forbidden"]
"""`plain`: all is named. `following`: it is about a record that an earlier goal makes. `looked_up`: a value or a record
is the one that another record holds. `chosen`: a record is known by what sets it apart. `group`: several records are.
`conditional`: the state decides what is done. `forbidden`: a rule stands against it."""

Evidence = tuple[str, str, str | None]
"""Entity, id and field that a goal changed; no field: the record was created or deleted."""
Read = tuple[str, str | None, str]
"""Entity, id and field whose value decides what is to be done; no id: that of every record."""
Place = tuple[str, str, str]
"""Entity, id and field where a value is looked up."""
Created = tuple[tuple[str, str], ...]
"""(entity, id) of records in the order in which they were created."""


@dataclass(frozen=True)
class Step:
    """One update."""

    operation: OperationPlan
    arguments: Mapping[str, JsonValue]
    places: Mapping[str, Place] = field(default_factory=dict)
    """Tool parameter → where its value is looked up; others are named or stated in the task."""


@dataclass(frozen=True)
class Proposal:
    """One wish as it could be made in a state."""

    kind: Kind
    wish: str
    """The wish as a clause in the imperative."""
    steps: tuple[Step, ...]
    records: tuple[tuple[str, str], ...] = ()
    """(entity, id) of the records that it is about."""
    readings: tuple[tuple[str, str] | Selection, ...] = ()
    """Records, and groups of them, that have to be looked at before."""
    reads: frozenset[Read] = frozenset()
    """What decides what is to be done: no other goal may change it, so that the order of goals cannot matter."""
    spared: frozenset[Evidence] = frozenset()
    """What a wrong decision would change."""
    refused: tuple[Step, ...] = ()
    """Calls that belong to the wish and that a rule stands against, whatever the other goals do."""


@dataclass(frozen=True)
class Goal:
    """A proposal that was taken into a plan."""

    proposal: Proposal
    evidence: frozenset[Evidence]
    """What it changed, time stamps and counters left aside."""
    created: Created
    after: State
    """The state once it is reached."""

    @property
    def wish(self) -> str:
        return self.proposal.wish


def evidence_of(blueprint: Blueprint, before: State, after: State) -> frozenset[Evidence]:
    """What differs between two states, time stamps and counters left aside."""
    out: set[Evidence] = set()
    for entity in blueprint.entities:
        old, new = before[entity.container], after[entity.container]
        if old is new:
            continue
        out |= {(entity.name, key, None) for key in old.keys() ^ new.keys()}
        for key in old.keys() & new.keys():
            if old[key] is not new[key]:
                out |= {
                    (entity.name, key, plan.name)
                    for plan in entity.fields
                    if not plan.stamp and old[key].get(plan.name) != new[key].get(plan.name)
                }
    return frozenset(out)


def created_between(blueprint: Blueprint, before: State, after: State) -> Iterator[tuple[str, str]]:
    """(entity, id) of the records that only the later state has."""
    for entity in blueprint.created:
        old = before[entity.container]
        yield from ((entity.name, key) for key in after[entity.container] if key not in old)


def would_change(blueprint: Blueprint, step: Step, state: State) -> frozenset[Evidence]:
    """What a call would change if no rule stood against it."""
    lawless = step.operation.model_copy(update={"requires": ()})
    try:
        prediction = interpret(blueprint, lawless, state, step.arguments)
    except (KeyError, TypeError, ValueError):
        # A value that only the rule ensures is read by an effect.
        return frozenset()
    return evidence_of(blueprint, state, prediction.state) if prediction.success else frozenset()


def clash(reads: Iterable[Read], written: Iterable[Evidence]) -> bool:
    """Whether something that decides a goal is among what was changed."""
    fields = {(entity, name) for entity, _, name in written if name is not None}
    cells = {(entity, key, name) for entity, key, name in written}
    renewed = {entity for entity, _, name in written if name is None}
    return any(
        (entity in renewed or (entity, name) in fields)
        if key is None
        else ((entity, key, name) in cells or (entity, key, None) in cells)
        for entity, key, name in reads
    )


def contents_of(entity: EntityPlan, record: Mapping[str, JsonValue]) -> str:
    """What a record holds beside its id and its time stamps."""
    return repr([record.get(plan.name) for plan in entity.fields if not plan.stamp])
