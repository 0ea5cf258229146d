"""Checks of what is to be brought about: one for each record that is new or gone and for each field that is changed.

Created records are known by their contents, since their ids depend on the order of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from envscaler.offline.blueprint import EntityPlan, FieldPlan
from envscaler.offline.check_code import check, condition
from envscaler.offline.difference import Change, Difference
from envscaler.offline.labels import said, unit_of
from envscaler.offline.selections import noun_of
from envscaler.scenario import Check
from envscaler.state import JsonValue

_ONE_BY_ONE = 3
"""Records with the same change that get a check each; more get one together."""
_VALUES = 6
"""Values that describe a new record."""


def _groups(changes: list[Change], key: Callable[[Change], Hashable]) -> list[list[Change]]:
    groups: dict[Hashable, list[Change]] = {}
    for change in changes:
        groups.setdefault(key(change), []).append(change)
    return list(groups.values())


class GoalChecks:
    """The goal checks of a difference."""

    def __init__(self, difference: Difference) -> None:
        self._difference = difference

    def checks(self) -> Iterator[Check]:
        for entity in self._difference.blueprint.entities:
            before, after = self._difference.initial[entity.container], self._difference.final[entity.container]
            for key in after:
                if key not in before:
                    yield self._created(entity, after[key])
            for key in before:
                if key not in after:
                    yield self._deleted(entity, key)
        changes = self._difference.changes
        shifted: set[int] = set()
        for shift in _groups(changes, lambda change: (change.entity.name, change.field.name, self._shift(change))):
            step = self._shift(shift[0])
            if len(shift) > _ONE_BY_ONE and step is not None and len({change.value for change in shift}) > 1:
                shifted.update(map(id, shift))
                yield self._shifted(shift, step)
        single = [change for change in changes if id(change) not in shifted]
        for group in _groups(single, lambda change: (change.entity.name, change.field.name, repr(change.value))):
            if len(group) > _ONE_BY_ONE:
                yield self._changed_many(group)
            else:
                yield from map(self._changed, group)

    def _shift(self, change: Change) -> float | None:
        """By how much a number went up."""
        before = self._difference.initial[change.entity.container][change.key][change.field.name]
        if change.field.type not in {"int", "float"} or before is None or change.value is None:
            return None
        return round(float(change.value - before), 2)

    def _shifted(self, group: list[Change], step: float) -> Check:
        """One check of numbers that moved together: what comes behind an order, or a rise for all."""
        first = group[0]
        wording = self._difference.wording
        description = wording.say(
            "check_risen_many" if step > 0 else "check_fallen_many",
            field=noun_of(first.field, wording),
            count=len(group),
            plural=first.entity.plural,
            value=wording.spoken(abs(step), "float") + unit_of(first.field, wording),
        )
        tests = {change.key: change.value for change in group}
        body = [
            f"rows = final_state.get({first.entity.container!r}) or {{}}",
            f"for key, wanted in {tests!r}.items():",
            "    row = rows.get(key)",
            f"    got = row.get({first.field.name!r}) if isinstance(row, dict) else None",
            "    if not isinstance(got, (int, float)) or abs(got - wanted) >= 0.005:",
            "        return False",
            "return True",
        ]
        return check(description, body)

    def _created(self, entity: EntityPlan, record: dict[str, JsonValue]) -> Check:
        values = [
            self._difference.told(field, record[field.name])
            for field in entity.fields
            if not field.stamp
            and record[field.name] is not None
            and not self._difference.is_new(field, record[field.name])
        ]
        description = (
            self._difference.wording.say(
                "check_created", noun=entity.noun, values=self._difference.wording.listed(values[: self._shown(entity)])
            )
            if values
            else self._difference.wording.say("check_created_plain", noun=entity.noun)
        )
        return check(description, self._finding(entity, record))

    def _shown(self, entity: EntityPlan) -> int:
        """How many values describe a new record: of several, all."""
        return _VALUES if self._difference.added(entity) < 2 else len(entity.fields)

    def _finding(self, entity: EntityPlan, record: dict[str, JsonValue]) -> list[str]:
        """Statements that return whether a new record with these contents is there."""
        lines: list[str] = []
        conditions: list[str] = []
        for field in entity.fields:
            value = record[field.name]
            if field.stamp:
                continue
            if self._difference.is_new(field, value):
                target = self._difference.blueprint.entity(field.ref or "")
                variable = f"new_{field.name.removesuffix('_id')}_ids"
                lines += self._new_ids(target, self._difference.final[target.container][value], variable)
                conditions.append(f"row.get({field.name!r}) in {variable}")
            else:
                conditions.append(condition("row", field, value))
        lines += [
            f"before = initial_state.get({entity.container!r}) or {{}}",
            f"after = final_state.get({entity.container!r}) or {{}}",
            "for key, row in after.items():",
            "    if key in before or not isinstance(row, dict):",
            "        continue",
        ]
        if not conditions:
            return [*lines, "    return True", "return False"]
        joined = "\n        and ".join(conditions)
        return [*lines, f"    if (\n        {joined}\n    ):", "        return True", "return False"]

    def _new_ids(self, entity: EntityPlan, record: dict[str, JsonValue], variable: str) -> list[str]:
        """Statements that collect the ids of new records with these contents."""
        plain = [
            condition("row", field, record[field.name])
            for field in entity.fields
            if not field.stamp and not self._difference.is_new(field, record[field.name])
        ]
        tests = "".join(f"\n    and {test}" for test in plain)
        return [
            f"{variable} = [",
            "    key",
            f"    for key, row in (final_state.get({entity.container!r}) or {{}}).items()",
            f"    if key not in (initial_state.get({entity.container!r}) or {{}}) and isinstance(row, dict){tests}",
            "]",
        ]

    def _deleted(self, entity: EntityPlan, key: str) -> Check:
        description = self._difference.wording.say("check_deleted", record=self._difference.record(entity, key))
        body = [
            f"after = final_state.get({entity.container!r})",
            f"return isinstance(after, dict) and {key!r} not in after",
        ]
        return check(description, body)

    def _changed(self, change: Change) -> Check:
        record = self._difference.record(change.entity, change.key)
        if change.value is None:
            description = self._difference.wording.say("check_emptied", field=said(change.field), record=record)
        else:
            description = self._difference.wording.say(
                self._asking_for(change),
                field=self._called(change.field),
                record=record,
                value=self._difference.spoken(change.field, change.value),
            )
        body: list[str] = []
        if self._difference.is_new(change.field, change.value):
            target = self._difference.blueprint.entity(change.field.ref or "")
            body += self._new_ids(target, self._difference.final[target.container][change.value], "new_ids")
            test = f"row.get({change.field.name!r}) in new_ids"
        else:
            test = condition("row", change.field, change.value)
        body += [
            f"row = (final_state.get({change.entity.container!r}) or {{}}).get({change.key!r})",
            f"return isinstance(row, dict) and {test}",
        ]
        return check(description, body)

    def _called(self, field: FieldPlan) -> str:
        """What a field is called where its value is asked for."""
        return said(field) if field.type == "bool" else noun_of(field, self._difference.wording)

    def _asking_for(self, change: Change) -> str:
        """Key of the question for a field's value."""
        field = change.field
        if field.type == "bool":
            return "check_marked" if change.value else "check_unmarked"
        particle = said(field).rsplit(" ", 1)[-1] in self._difference.wording.phrases["particles"]
        return "check_changed_phrase" if particle else "check_changed"

    def _changed_many(self, group: list[Change]) -> Check:
        first = group[0]
        key = self._asking_for(first) if first.field.type == "bool" else "check_changed"
        description = self._difference.wording.say(
            f"{key}_many",
            field=self._called(first.field),
            count=len(group),
            plural=first.entity.plural,
            value=self._difference.spoken(first.field, first.value),
        )
        body = [
            f"rows = final_state.get({first.entity.container!r}) or {{}}",
            f"for key in {[change.key for change in group]!r}:",
            "    row = rows.get(key)",
            f"    if not isinstance(row, dict) or not ({condition('row', first.field, first.value)}):",
            "        return False",
            "return True",
        ]
        return check(description, body)
