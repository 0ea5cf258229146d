"""Finds the queries by which an agent learns the id of a record that a task names, and which records a group has.

A label or a common property is all that the task gives away; which records need an id is the caller's business.
"""

from __future__ import annotations

from functools import lru_cache

from envscaler.offline.blueprint import Blueprint, EntityPlan, OperationPlan
from envscaler.offline.interpret import interpret, tool_parameter
from envscaler.offline.labels import label_paths, paths_beyond, told_fields
from envscaler.offline.name_book import NameBook
from envscaler.offline.selections import Selection
from envscaler.scenario import Binding, SolutionCall
from envscaler.state import JsonValue, State

_DEPTH = 3
"""References of references that are followed."""


class Lookups:
    """The calls of a plan so far and the records whose ids they have brought to light."""

    def __init__(self, blueprint: Blueprint, book: NameBook, *, broad: bool = False) -> None:
        """
        Args:
            broad: list rather than search where both show a record.
        """
        self.blueprint = blueprint
        self.book = book
        self.broad = broad
        self.calls: list[SolutionCall] = []
        self.known: dict[tuple[str, str], Binding] = {}
        """(entity, id) → where an earlier result holds the id."""
        self.rows: dict[tuple[str, str], Binding] = {}
        """(entity, id) → where an earlier result holds the whole record."""

    def fork(self) -> Lookups:
        """A copy to try a goal with."""
        other = Lookups(self.blueprint, self.book, broad=self.broad)
        other.calls = list(self.calls)
        other.known = dict(self.known)
        other.rows = dict(self.rows)
        return other

    def take(self, other: Lookups) -> None:
        """What a fork has found becomes our own."""
        self.calls, self.known, self.rows = other.calls, other.known, other.rows

    def call(self, call: SolutionCall) -> int:
        """Make a call; its index."""
        self.calls.append(call)
        return len(self.calls) - 1

    def show(self, entity: EntityPlan, key: str, row: Binding) -> None:
        """Note where a record is shown."""
        self.rows[entity.name, key] = row
        self.known.setdefault((entity.name, key), Binding(call=row.call, pointer=f"{row.pointer}/{entity.key}"))

    def locate(
        self,
        entity: EntityPlan,
        key: str,
        state: State,
        *,
        whole: bool = False,
        paths: tuple[str, ...] = (),
        depth: int = 0,
    ) -> Binding | None:
        """Where the id of a record stands, adding the queries that are needed; None if none shows it.

        Args:
            whole: the record itself is needed: its id alone, found in another record, does not do.
            paths: what is told of the record where another one's label only hints at it; empty: its own label.
        """
        found = (self.rows if whole else self.known).get((entity.name, key))
        if found is not None:
            return found
        name = self.book.of(state, entity).get(key)
        if name is None or depth > _DEPTH:
            return None
        told = told_fields(entity, paths) if paths else name.fields
        for operation in self._operations(entity):
            attempt = self.fork()
            record = state[entity.container][key]
            call = attempt._query(operation, entity, record, told, paths or label_paths(entity), state, depth)
            if call is None:
                continue
            rows = attempt._rows(operation, call, state)
            index = next((index for index, row in enumerate(rows) if row[entity.key] == key), None)
            if index is not None:
                attempt.show(entity, key, Binding(call=attempt.call(call), pointer=f"/data/{index}"))
                self.take(attempt)
                return (self.rows if whole else self.known)[entity.name, key]
        return None

    def survey(self, selection: Selection, state: State) -> bool:
        """Add a query that shows all records of which some are selected; False if there is none.

        What the query cannot filter by, whoever reads its result has to.
        """
        entity = selection.entity
        fitting = set(selection.fitting(state))
        attempts: list[tuple[int, int, Lookups, SolutionCall, list[dict[str, JsonValue]]]] = []
        for operation in lookup_operations(self.blueprint, entity.name):
            attempt = self.fork()
            call = attempt._survey_call(operation, selection, state)
            if call is None:
                continue
            rows = attempt._rows(operation, call, state)
            if fitting <= {str(row[entity.key]) for row in rows}:
                attempts.append((len(attempt.calls), len(rows), attempt, call, rows))
        if not attempts:
            return False
        *_, attempt, call, rows = min(attempts, key=lambda entry: entry[:2])
        number = attempt.call(call)
        for index, row in enumerate(rows):
            if row[entity.key] in fitting:
                attempt.show(entity, str(row[entity.key]), Binding(call=number, pointer=f"/data/{index}"))
        self.take(attempt)
        return True

    def _survey_call(self, operation: OperationPlan, selection: Selection, state: State) -> SolutionCall | None:
        arguments: dict[str, JsonValue] = {}
        bindings: dict[str, Binding] = {}
        for condition in selection.filters:
            # Who a group belongs to has to be known, whether or not the query filters by it.
            if condition.relation == "of":
                owner = self.blueprint.entity(condition.field.ref or "")
                if self.locate(owner, str(condition.value), state) is None:
                    return None
        exact = {c.field.name: c for c in selection.filters if c.relation in {"is", "of"}}
        for param in operation.params:
            parameter = tool_parameter(self.blueprint, param)
            matched = exact.get(parameter)
            if matched is None:
                if not param.optional:
                    return None
                continue
            arguments[parameter] = matched.value
            if matched.relation == "of":
                bindings[f"/{parameter}"] = self.known[matched.field.ref or "", str(matched.value)]
        return SolutionCall(name=operation.name, arguments=arguments, bindings=bindings)

    def _operations(self, entity: EntityPlan) -> tuple[OperationPlan, ...]:
        operations = lookup_operations(self.blueprint, entity.name)
        return operations[::-1] if self.broad else operations

    def _rows(self, operation: OperationPlan, call: SolutionCall, state: State) -> list[dict[str, JsonValue]]:
        prediction = interpret(self.blueprint, operation, state, call.arguments)
        return prediction.data if prediction.success and isinstance(prediction.data, list) else []

    def _query(
        self,
        operation: OperationPlan,
        entity: EntityPlan,
        record: dict[str, JsonValue],
        told: frozenset[str],
        paths: tuple[str, ...],
        state: State,
        depth: int,
    ) -> SolutionCall | None:
        """The call of a query that narrows down to a record by the fields that are told of it."""
        arguments: dict[str, JsonValue] = {}
        bindings: dict[str, Binding] = {}
        for param in operation.params:
            parameter = tool_parameter(self.blueprint, param)
            field = entity.field(parameter)
            if field is None or field.name not in told or record[field.name] is None:
                if not param.optional:
                    return None
                continue
            if param.ref is not None:
                binding = self.locate(
                    self.blueprint.entity(param.ref),
                    record[field.name],
                    state,
                    paths=paths_beyond(entity, field.name, paths),
                    depth=depth + 1,
                )
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
