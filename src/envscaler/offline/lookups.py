"""Finds the queries by which an agent learns the id of a record that a task names by its label.

A label is all that the task gives away; which records need an id is `plans`' business.
"""

from __future__ import annotations

from functools import lru_cache

from envscaler.offline.blueprint import Blueprint, EntityPlan, OperationPlan
from envscaler.offline.interpret import interpret, tool_parameter
from envscaler.offline.labels import Name, names
from envscaler.offline.wording import Wording
from envscaler.scenario import Binding, SolutionCall
from envscaler.state import JsonValue, State

_DEPTH = 3
"""References of references that are followed."""


class Lookups:
    """The calls of a plan so far and the records whose ids they have brought to light."""

    def __init__(self, blueprint: Blueprint, wording: Wording) -> None:
        self.blueprint = blueprint
        self.wording = wording
        self.calls: list[SolutionCall] = []
        self.known: dict[tuple[str, str], Binding] = {}
        """(entity, id) → where an earlier result holds the id."""

    def fork(self) -> Lookups:
        """A copy to try a goal with."""
        other = Lookups(self.blueprint, self.wording)
        other.calls = list(self.calls)
        other.known = dict(self.known)
        return other

    def locate(self, entity: EntityPlan, key: str, state: State, depth: int = 0) -> Binding | None:
        """Where the id of a record stands, adding the queries that are needed; None if none shows it."""
        if (entity.name, key) in self.known:
            return self.known[entity.name, key]
        name = names(self.blueprint, state, entity, self.wording).get(key)
        if name is None or depth > _DEPTH:
            return None
        for operation in lookup_operations(self.blueprint, entity.name):
            attempt = self.fork()
            call = attempt._query(operation, entity, state[entity.container][key], name, state, depth)
            if call is None:
                continue
            prediction = interpret(self.blueprint, operation, state, call.arguments)
            rows = prediction.data if prediction.success and isinstance(prediction.data, list) else []
            index = next((index for index, row in enumerate(rows) if row[entity.key] == key), None)
            if index is not None:
                binding = Binding(call=len(attempt.calls), pointer=f"/data/{index}/{entity.key}")
                self.calls = [*attempt.calls, call]
                self.known = {**attempt.known, (entity.name, key): binding}
                return binding
        return None

    def _query(
        self,
        operation: OperationPlan,
        entity: EntityPlan,
        record: dict[str, JsonValue],
        name: Name,
        state: State,
        depth: int,
    ) -> SolutionCall | None:
        """The call of a query that narrows down to a record by what its name tells."""
        arguments: dict[str, JsonValue] = {}
        bindings: dict[str, Binding] = {}
        for param in operation.params:
            parameter = tool_parameter(self.blueprint, param)
            field = entity.field(parameter)
            if field is None or field.name not in name.fields or record[field.name] is None:
                if not param.optional:
                    return None
                continue
            if param.ref is not None:
                binding = self.locate(self.blueprint.entity(param.ref), record[field.name], state, depth + 1)
                if binding is None:
                    if not param.optional:
                        return None
                    continue
                bindings[f"/{parameter}"] = binding
            arguments[parameter] = record[field.name]
        return SolutionCall(name=operation.name, arguments=arguments, bindings=bindings)


@lru_cache(maxsize=4096)
def lookup_operations(blueprint: Blueprint, entity_name: str) -> tuple[OperationPlan, ...]:
    """Queries that show ids of an entity: first those that search by text, then lists, the freest last."""
    found = [
        (operation.query.kind == "list", -len(operation.params), position, operation)
        for position, operation in enumerate(blueprint.operations)
        if operation.query is not None
        and operation.query.kind in {"find", "list"}
        and operation.query.entity == entity_name
    ]
    return tuple(operation for *_, operation in sorted(found, key=lambda entry: entry[:3]))
