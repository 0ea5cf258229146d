"""`Difference`: what a plan changed between two states, and how a checklist names what it changed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from envscaler.offline.blueprint import Blueprint, EntityPlan, FieldPlan
from envscaler.offline.labels import label, names, said, unit_of
from envscaler.offline.wording import Wording
from envscaler.state import JsonValue, State


@dataclass(frozen=True)
class Change:
    """A field of a record that has another value now."""

    entity: EntityPlan
    key: str
    field: FieldPlan
    value: JsonValue


class Difference:
    """Two states of one environment, side by side; time stamps and counters are left aside."""

    def __init__(self, blueprint: Blueprint, initial: State, final: State, wording: Wording) -> None:
        self.blueprint = blueprint
        self.initial = initial
        self.final = final
        self.wording = wording
        self.changes = [
            Change(entity, key, field, final[entity.container][key][field.name])
            for entity in blueprint.entities
            for key, row in initial[entity.container].items()
            if key in final[entity.container]
            for field in entity.fields
            if not field.stamp and row[field.name] != final[entity.container][key][field.name]
        ]

    def added(self, entity: EntityPlan) -> int:
        """How many records of an entity are new."""
        return len(self.final[entity.container].keys() - self.initial[entity.container].keys())

    def removed(self, entity: EntityPlan) -> list[str]:
        """Ids of the records of an entity that are gone."""
        return [key for key in self.initial[entity.container] if key not in self.final[entity.container]]

    def touched(self, entity: EntityPlan) -> set[str]:
        """Ids of the old records of an entity that were changed or are gone."""
        return {*self.removed(entity), *(change.key for change in self.changes if change.entity is entity)}

    def is_new(self, field: FieldPlan, value: JsonValue) -> bool:
        """Whether a value is the id of a record that was created on the way."""
        if field.ref is None or value is None:
            return False
        container = self.blueprint.entity(field.ref).container
        return value not in self.initial[container] and value in self.final[container]

    def record(self, entity: EntityPlan, key: str) -> str:
        """What a checklist calls a record."""
        name = names(self.blueprint, self.initial, entity, self.wording).get(key)
        if name is not None:
            return name.text
        return self.wording.say("check_record", noun=entity.noun, key=key)

    def told(self, field: FieldPlan, value: JsonValue) -> str:
        """A field with its value; a label that already says what it names stands alone."""
        if field.type == "bool":
            return self.wording.say("check_created_marked" if value else "check_created_unmarked", field=said(field))
        spoken = self.spoken(field, value)
        if field.ref is not None and re.search(self.wording.say("names_itself", field=re.escape(said(field))), spoken):
            return spoken
        return self.wording.say("check_created_value", field=said(field), value=spoken)

    def spoken(self, field: FieldPlan, value: JsonValue) -> str:
        """The value of a field; a reference by what it names."""
        if field.ref is None:
            free_text = field.type == "str" and field.enum is None and isinstance(value, str)
            plain = self.wording.spoken(value, field.type) + unit_of(field, self.wording)
            return self.wording.say("quoted", text=plain) if free_text else plain
        target = self.blueprint.entity(field.ref)
        if self.is_new(field, value):
            return self.wording.say("check_new_record", noun=target.noun)
        if value not in self.initial[target.container]:
            return str(value)
        text = label(self.blueprint, self.initial, target, self.initial[target.container][value], self.wording)
        return text if text is not None else str(value)
