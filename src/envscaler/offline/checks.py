"""The checklist of a plan and its check functions, from the state before and the state that the plan leads to.

A goal asks for one field of a record, or for a record that was created or deleted; a guard asks that what is near
the goals stayed as it was. Created records are known by their contents, since their ids depend on the order of calls;
time stamps and counters are asked for by no check.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from envscaler.offline.blueprint import Blueprint, EntityPlan, FieldPlan
from envscaler.offline.labels import label, names, said
from envscaler.offline.wording import Wording, telling_words
from envscaler.scenario import Check
from envscaler.state import JsonValue, State

_ONE_BY_ONE = 3
"""Records with the same change that get a check each; more get one together."""
_GUARDS = 4


@dataclass(frozen=True)
class _Change:
    entity: EntityPlan
    key: str
    field: FieldPlan
    value: JsonValue


def make_checks(blueprint: Blueprint, initial: State, final: State, wording: Wording) -> tuple[Check, ...]:
    """Goal checks first, then guards; all hold of `final`."""
    writer = _Writer(blueprint, initial, final, wording)
    goals = tuple(writer.goals())
    return (*goals, *writer.guards(most=max(2, min(_GUARDS, len(goals)))))


class _Writer:
    def __init__(self, blueprint: Blueprint, initial: State, final: State, wording: Wording) -> None:
        self.blueprint = blueprint
        self.initial = initial
        self.final = final
        self.wording = wording
        self.changes = [
            _Change(entity, key, field, final[entity.container][key][field.name])
            for entity in blueprint.entities
            for key, row in initial[entity.container].items()
            if key in final[entity.container]
            for field in entity.fields
            if not field.stamp and row[field.name] != final[entity.container][key][field.name]
        ]

    # -- goals ----------------------------------------------------------------------------------------------

    def goals(self) -> Iterator[Check]:
        for entity in self.blueprint.entities:
            before, after = self.initial[entity.container], self.final[entity.container]
            for key in after:
                if key not in before:
                    yield self._created(entity, after[key])
            for key in before:
                if key not in after:
                    yield self._deleted(entity, key)
        groups: dict[tuple[str, str, str], list[_Change]] = {}
        for change in self.changes:
            groups.setdefault((change.entity.name, change.field.name, repr(change.value)), []).append(change)
        for group in groups.values():
            if len(group) > _ONE_BY_ONE:
                yield self._changed_many(group)
            else:
                yield from map(self._changed, group)

    def _created(self, entity: EntityPlan, record: dict[str, JsonValue]) -> Check:
        values = [
            self._told(field, record[field.name])
            for field in entity.fields
            if not field.stamp and record[field.name] is not None and not self._is_new(field, record[field.name])
        ]
        description = (
            self.wording.say("check_created", noun=entity.noun, values=self.wording.listed(values[:4]))
            if values
            else self.wording.say("check_created_plain", noun=entity.noun)
        )
        return Check(
            description=description, source=_function(description, self._finding(entity, record, "found", self.final))
        )

    def _finding(self, entity: EntityPlan, record: dict[str, JsonValue], name: str, state: State) -> list[str]:
        """Statements that return whether a new record with these contents is there."""
        lines: list[str] = []
        conditions: list[str] = []
        for field in entity.fields:
            value = record[field.name]
            if field.stamp:
                continue
            if self._is_new(field, value):
                target = self.blueprint.entity(field.ref or "")
                variable = f"new_{field.name.removesuffix('_id')}_ids"
                lines += self._new_ids(target, state[target.container][value], variable)
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
            if not field.stamp and not self._is_new(field, record[field.name])
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
        description = self.wording.say("check_deleted", record=self._record(entity, key))
        body = [
            f"after = final_state.get({entity.container!r})",
            f"return isinstance(after, dict) and {key!r} not in after",
        ]
        return Check(description=description, source=_function(description, body))

    def _changed(self, change: _Change) -> Check:
        record = self._record(change.entity, change.key)
        if change.value is None:
            description = self.wording.say("check_emptied", field=said(change.field), record=record)
        else:
            description = self.wording.say(
                self._asking_for(change.field),
                field=said(change.field),
                record=record,
                value=self._spoken(change.field, change.value),
            )
        body: list[str] = []
        if self._is_new(change.field, change.value):
            target = self.blueprint.entity(change.field.ref or "")
            body += self._new_ids(target, self.final[target.container][change.value], "new_ids")
            test = f"row.get({change.field.name!r}) in new_ids"
        else:
            test = condition("row", change.field, change.value)
        body += [
            f"row = (final_state.get({change.entity.container!r}) or {{}}).get({change.key!r})",
            f"return isinstance(row, dict) and {test}",
        ]
        return Check(description=description, source=_function(description, body))

    def _asking_for(self, field: FieldPlan) -> str:
        """Key of the question for a field's value."""
        if field.type == "bool":
            return "check_changed_flag"
        particle = said(field).rsplit(" ", 1)[-1] in self.wording.phrases["particles"]
        return "check_changed_phrase" if particle else "check_changed"

    def _changed_many(self, group: list[_Change]) -> Check:
        first = group[0]
        description = self.wording.say(
            "check_changed_many",
            field=said(first.field),
            count=len(group),
            plural=first.entity.plural,
            value=self._spoken(first.field, first.value),
        )
        body = [
            f"rows = final_state.get({first.entity.container!r}) or {{}}",
            f"for key in {[change.key for change in group]!r}:",
            "    row = rows.get(key)",
            f"    if not isinstance(row, dict) or not ({condition('row', first.field, first.value)}):",
            "        return False",
            "return True",
        ]
        return Check(description=description, source=_function(description, body))

    # -- guards ---------------------------------------------------------------------------------------------

    def guards(self, most: int) -> Iterator[Check]:
        """At most so many, the most telling first: one who does nothing shall not look half done."""
        touched = [entity for entity in self.blueprint.entities if self._touched(entity)]
        # Where few fields change, the container that matters is the one that most of the changes are in.
        touched.sort(key=lambda entity: -len(self._touched_keys(entity)) - self._added(entity))
        created = sorted(self.blueprint.created, key=lambda entity: entity not in touched)
        twin = next(self._twins(touched), None)
        candidates = [
            *([twin] if twin is not None else []),
            *(self._others(entity) for entity in touched[:1] if self._has_others(entity)),
            *(self._no_more(entity) for entity in created[:1]),
            *(self._others(entity) for entity in touched[1:] if self._has_others(entity)),
        ]
        yield from candidates[:most]

    def _has_others(self, entity: EntityPlan) -> bool:
        return len(self.initial[entity.container]) > len(self._touched_keys(entity))

    def _touched(self, entity: EntityPlan) -> bool:
        return bool(self._touched_keys(entity)) or self._added(entity) > 0

    def _added(self, entity: EntityPlan) -> int:
        return len(self.final[entity.container].keys() - self.initial[entity.container].keys())

    def _touched_keys(self, entity: EntityPlan) -> set[str]:
        removed = set(self.initial[entity.container]) - set(self.final[entity.container])
        return removed | {change.key for change in self.changes if change.entity is entity}

    def _twins(self, touched: list[EntityPlan]) -> Iterator[Check]:
        """The records that are most easily taken for those that a goal changes."""
        for entity in touched:
            changed = self._touched_keys(entity)
            if not changed or len(changed) > _ONE_BY_ONE:
                continue
            common = telling_words(entity.label)
            targets = {word for key in changed for word in telling_words(self._record(entity, key))} - common
            likeness = {
                key: len(targets & telling_words(name.text))
                for key, name in names(self.blueprint, self.initial, entity, self.wording).items()
                if key not in changed
            }
            for key in sorted(likeness, key=lambda key: (-likeness[key], key)):
                if likeness[key] > 0:
                    yield self._twin(entity, key)

    def _twin(self, entity: EntityPlan, key: str) -> Check:
        description = self.wording.say("check_twin", record=self._record(entity, key))
        row = self.initial[entity.container][key]
        tests = [condition("row", field, row[field.name], exact=True) for field in entity.fields if not field.stamp]
        joined = "".join(f"\n    and {test}" for test in tests)
        body = [
            f"row = (final_state.get({entity.container!r}) or {{}}).get({key!r})",
            f"return (\n    isinstance(row, dict){joined}\n)",
        ]
        return Check(description=description, source=_function(description, body))

    def _others(self, entity: EntityPlan) -> Check:
        touched = sorted(self._touched_keys(entity))
        stamps = [field.name for field in entity.fields if field.stamp]
        description = self.wording.say("check_others" if touched else "check_all", noun=entity.noun)
        names_of = [field.name for field in entity.fields if field.name not in stamps]
        body = [
            f"before = initial_state.get({entity.container!r}) or {{}}",
            f"after = final_state.get({entity.container!r}) or {{}}",
            "for key, row in before.items():",
            *([f"    if key in {touched!r}:", "        continue"] if touched else []),
            "    now = after.get(key)",
            "    if not isinstance(now, dict):",
            "        return False",
            f"    for field in {names_of!r}:",
            "        if now.get(field) != row.get(field):",
            "            return False",
            "return True",
        ]
        return Check(description=description, source=_function(description, body))

    def _no_more(self, entity: EntityPlan) -> Check:
        added = self._added(entity)
        description = self.wording.say("check_no_more" if added else "check_none", noun=entity.noun)
        body = [
            f"before = initial_state.get({entity.container!r}) or {{}}",
            f"after = final_state.get({entity.container!r}) or {{}}",
            f"return len([key for key in after if key not in before]) <= {added}",
        ]
        return Check(description=description, source=_function(description, body))

    # -- words ----------------------------------------------------------------------------------------------

    def _is_new(self, field: FieldPlan, value: JsonValue) -> bool:
        """Whether a value is the id of a record that was created on the way."""
        if field.ref is None or value is None:
            return False
        container = self.blueprint.entity(field.ref).container
        return value not in self.initial[container] and value in self.final[container]

    def _record(self, entity: EntityPlan, key: str) -> str:
        name = names(self.blueprint, self.initial, entity, self.wording).get(key)
        if name is not None:
            return name.text
        return self.wording.say("check_record", noun=entity.noun, key=key)

    def _told(self, field: FieldPlan, value: JsonValue) -> str:
        """A field with its value; a label that already says what it names stands alone."""
        spoken = self._spoken(field, value)
        if field.ref is not None and said(field) in spoken:
            return spoken
        return self.wording.say("check_created_value", field=said(field), value=spoken)

    def _spoken(self, field: FieldPlan, value: JsonValue) -> str:
        if field.ref is None:
            return self.wording.spoken(value, field.type)
        target = self.blueprint.entity(field.ref)
        if self._is_new(field, value):
            return self.wording.say("check_new_record", noun=target.noun)
        if value not in self.initial[target.container]:
            return str(value)
        text = label(self.blueprint, self.initial, target, self.initial[target.container][value], self.wording)
        return text if text is not None else str(value)


def condition(row: str, field: FieldPlan, value: JsonValue, *, exact: bool = False) -> str:
    """A Python test that a field of a row holds a value; texts that people write are compared without case and edges.

    Args:
        exact: also for such texts.
    """
    read = f"{row}.get({field.name!r})"
    if value is None or isinstance(value, bool):
        return f"{read} is {value!r}"
    if isinstance(value, float):
        return f"isinstance({read}, (int, float)) and abs({read} - {value!r}) < 0.005"
    if isinstance(value, str) and field.type == "str" and field.enum is None and field.ref is None and not exact:
        return f"str({read}).strip().casefold() == {value.strip().casefold()!r}"
    return f"{read} == {value!r}"


def _function(description: str, body: list[str]) -> str:
    text = description.replace("\\", "\\\\").replace('"""', "'''")
    lines = "\n".join(body).split("\n")
    indented = "\n".join(f"    {line}" for line in lines)
    return f'def check_func(final_state):\n    """{text}"""\n{indented}\n'
