"""`Carrier`: turns goals into calls, with the queries that they need, in any order in which they work.

Records that a goal creates get other ids in another order; every later use of them follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from envscaler.offline.blueprint import Blueprint
from envscaler.offline.goals import Created, Goal, Proposal, Step, created_between
from envscaler.offline.interpret import interpret, tool_parameter
from envscaler.offline.lookups import Lookups
from envscaler.offline.name_book import NameBook
from envscaler.offline.selections import Selection
from envscaler.scenario import Binding, SolutionCall
from envscaler.state import JsonValue, State


@dataclass(frozen=True)
class Carried:
    """What carrying out a proposal came to."""

    lookups: Lookups
    after: State
    created: Created


class Carrier:
    """Carries out one goal after the other."""

    def __init__(self, blueprint: Blueprint, book: NameBook, state: State, *, broad: bool = False) -> None:
        self.blueprint = blueprint
        self.lookups = Lookups(blueprint, book, broad=broad)
        self.state = state
        self.renamed: dict[tuple[str, str], str] = {}
        """(entity, id in the goal as it was proposed) → id here."""

    @property
    def calls(self) -> tuple[SolutionCall, ...]:
        return tuple(self.lookups.calls)

    def attempt(self, proposal: Proposal, *, backwards: bool = False) -> Carried | None:
        """The calls of a proposal after those made so far; None if a call does not succeed or a record is not found.

        Args:
            backwards: the last step first.
        """
        lookups = self.lookups.fork()
        for reading in proposal.readings:
            if not self._read(reading, lookups):
                return None
        # Everything is looked for before anything is changed: by then a name may no longer fit.
        if not all(self._find(step, lookups) for step in proposal.steps):
            return None
        state = self.state
        created: list[tuple[str, str]] = []
        for step in reversed(proposal.steps) if backwards else proposal.steps:
            after = self._make(step, lookups, state)
            if after is None:
                return None
            created += created_between(self.blueprint, state, after)
            state = after
        return Carried(lookups, state, tuple(created))

    def accept(self, carried: Carried) -> None:
        """Go on from there."""
        self.lookups = carried.lookups
        self.state = carried.after

    def follow(self, goal: Goal, *, backwards: bool = False) -> bool:
        """Carry out a goal of a plan here; False if that does not work."""
        carried = self.attempt(goal.proposal, backwards=backwards)
        if carried is None or len(carried.created) != len(goal.created):
            return False
        created = carried.created[::-1] if backwards else carried.created
        for old, new in zip(goal.created, created, strict=True):
            if old[0] != new[0]:
                return False
            self.renamed[old] = new[1]
        self.accept(carried)
        return True

    def _read(self, reading: tuple[str, str] | Selection, lookups: Lookups) -> bool:
        if isinstance(reading, Selection):
            return lookups.survey(reading, self.state)
        entity = self.blueprint.entity(reading[0])
        return lookups.locate(entity, reading[1], self.state, whole=True) is not None

    def _find(self, step: Step, lookups: Lookups) -> bool:
        """Look for all that a step needs and that is there."""
        for param in step.operation.params:
            parameter = tool_parameter(self.blueprint, param)
            place = step.places.get(parameter)
            if place is not None:
                if lookups.locate(self.blueprint.entity(place[0]), place[1], self.state, whole=True) is None:
                    return False
            elif param.ref is not None and step.arguments.get(parameter) is not None:
                key = self._key(param.ref, step.arguments[parameter])
                entity = self.blueprint.entity(param.ref)
                if key in self.state[entity.container] and lookups.locate(entity, key, self.state) is None:
                    return False
        return True

    def _key(self, entity: str, key: JsonValue) -> str:
        return self.renamed.get((entity, str(key)), str(key))

    def _make(self, step: Step, lookups: Lookups, state: State) -> State | None:
        arguments: dict[str, JsonValue] = dict(step.arguments)
        bindings: dict[str, Binding] = {}
        for param in step.operation.params:
            parameter = tool_parameter(self.blueprint, param)
            place = step.places.get(parameter)
            if place is not None:
                row = lookups.rows[place[0], place[1]]
                bindings[f"/{parameter}"] = Binding(call=row.call, pointer=f"{row.pointer}/{place[2]}")
            elif param.ref is not None and arguments.get(parameter) is not None:
                arguments[parameter] = key = self._key(param.ref, arguments[parameter])
                if (param.ref, key) not in lookups.known:
                    return None
                bindings[f"/{parameter}"] = lookups.known[param.ref, key]
        prediction = interpret(self.blueprint, step.operation, state, arguments)
        if not prediction.success:
            return None
        number = lookups.call(SolutionCall(name=step.operation.name, arguments=arguments, bindings=bindings))
        self._learn(lookups, number, prediction.data, state, prediction.state)
        return prediction.state

    def _learn(self, lookups: Lookups, number: int, returned: JsonValue, before: State, after: State) -> None:
        """Note the id of a created record where the call's result shows it."""
        if not isinstance(returned, Mapping):
            return
        for entity in self.blueprint.created:
            key = str(returned.get(entity.key))
            if key in after[entity.container] and key not in before[entity.container]:
                lookups.known[entity.name, key] = Binding(call=number, pointer=f"/data/{entity.key}")
