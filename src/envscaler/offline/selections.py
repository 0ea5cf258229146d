"""`Selection`: records known by what they have in common or what sets them apart, and how people say so.

Which selections serve a wish is the business of `group_goals`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from envscaler.offline.blueprint import EntityPlan, FieldPlan
from envscaler.offline.labels import Row, said, unit_of
from envscaler.offline.wording import Wording
from envscaler.state import JsonValue, State

Relation = Literal["is", "of", "below", "above", "before", "after"]
_MOMENTS = {"date", "datetime", "time"}
_NUMBERS = {"int", "float"}
_FITTING: Mapping[str, Relation] = {"earliest": "after", "latest": "before", "lowest": "above", "highest": "below"}


@dataclass(frozen=True)
class Filter:
    """One property that records have in common."""

    field: FieldPlan
    relation: Relation
    """`of`: the field holds the id of a record that people name."""
    value: JsonValue
    named: str = ""
    """With `of`: how the record is named."""

    def fits(self, row: Row) -> bool:
        """Whether a record has the property."""
        value = row[self.field.name]
        if self.relation in {"is", "of"}:
            return bool(value == self.value)
        if value is None:
            return False
        return bool(value < self.value if self.relation in {"below", "before"} else value > self.value)

    def phrase(self, wording: Wording) -> str:
        """The property as a clause."""
        value = self.named if self.relation == "of" else spoken(wording, self.field, self.value)
        return wording.say(
            "filter_is" if self.relation == "of" else f"filter_{self.relation}",
            field=noun_of(self.field, wording),
            value=value,
            degree=compared(self.field, self.relation, wording),
        )


@dataclass(frozen=True)
class Order:
    """What sets the first records apart: the lowest, the highest, the earliest, the latest."""

    field: FieldPlan
    descending: bool
    count: int

    @property
    def way(self) -> str:
        if self.field.type in _MOMENTS:
            return "latest" if self.descending else "earliest"
        return "highest" if self.descending else "lowest"


@dataclass(frozen=True)
class Selection:
    """All records of an entity that fit, or the first of them in an order."""

    entity: EntityPlan
    filters: tuple[Filter, ...] = ()
    order: Order | None = None
    allowed_only: bool = False
    """Only records for which the rules allow what is wished; which these are, the caller says."""

    def fitting(self, state: State) -> list[str]:
        """Ids of the records that fit, in the order of the container or in that asked for."""
        rows: dict[str, Row] = state[self.entity.container]
        keys = [key for key, row in rows.items() if all(condition.fits(row) for condition in self.filters)]
        if self.order is None:
            return keys
        name = self.order.field.name
        known = [key for key in keys if rows[key][name] is not None]
        return sorted(known, key=lambda key: rows[key][name], reverse=self.order.descending)

    def chosen(self, state: State, *, allowed: Mapping[str, bool] | None = None) -> list[str] | None:
        """Ids of the records that are meant; None where it is not clear which, or where there is no choice.

        Args:
            allowed: with `allowed_only`, the records for which the rules allow it.
        """
        keys = self.fitting(state)
        if self.order is None:
            return keys
        rows: dict[str, Row] = state[self.entity.container]
        name = self.order.field.name
        if any(rows[key][name] is None for key in rows if all(condition.fits(rows[key]) for condition in self.filters)):
            return None
        if self.allowed_only:
            keys = [key for key in keys if allowed is None or allowed.get(key, False)]
        count = self.order.count
        if len(keys) < count or (len(keys) > count and rows[keys[count - 1]][name] == rows[keys[count]][name]):
            return None
        return keys[:count]

    @property
    def sensible(self) -> bool:
        """Whether no property makes the order, or another property, say nothing: `the earliest after`, not `before`.

        The highest of the numbers below another one is a riddle; of days, the earliest after one is what people want.
        """
        names = [condition.field.name for condition in self.filters]
        if len(set(names)) < len(names):
            return False
        if self.order is None:
            return True
        fitting = _FITTING[self.order.way]
        return all(
            condition.field.name != self.order.field.name
            or (condition.relation == fitting and condition.field.type in _MOMENTS)
            for condition in self.filters
        )

    @property
    def columns(self) -> frozenset[str]:
        """Fields that decide which records are meant."""
        names = {condition.field.name for condition in self.filters}
        return frozenset(names | ({self.order.field.name} if self.order is not None else set()))

    def phrase(self, wording: Wording, *, together: bool = False) -> str:
        """How people say it, as a noun phrase.

        Args:
            together: several records as a plural, not one by one.
        """
        if self.order is None:
            whole = wording.say("whole_group")
            if together:
                return wording.say("choose_all", plural=self._group(self.entity.plural, wording, whole))
            return wording.say("choose_every", noun=self._group(self.entity.noun, wording, whole))
        many = self.order.count > 1
        extreme = wording.say(
            f"extreme_{_extreme(wording, self.order)}{'_many' if many else ''}",
            noun=self._called(wording, many=many),
            field=noun_of(self.order.field, wording),
            count=wording.phrases["numbers"][self.order.count],
            measure=wording.quantities.measure(self.entity.noun),
            degree=compared(self.order.field, self.order.way, wording),
        )
        key = ("choose_several" if together else "choose_each") if many else "choose_one"
        if not self.filters:
            return wording.say(key, extreme=extreme)
        return wording.say(f"{key}_among", extreme=extreme, plural=self._group(self.entity.plural, wording))

    def _called(self, wording: Wording, *, many: bool) -> str:
        """What the first in an order are called; where the group was named before, a language may spare the noun."""
        noun = self.entity.plural if many else self.entity.noun
        if not self.filters:
            return noun
        key = "some_among" if many else "one_among"
        return wording.say(key, noun=noun, measure=wording.quantities.measure(self.entity.noun))

    def any_phrase(self, wording: Wording) -> str:
        """The condition that there is such a record."""
        noun, owner, filters = self.entity.noun, self._owner(), self._others(wording)
        if owner is None or not filters:
            return wording.say("condition_any", noun=self._group(noun, wording))
        return wording.say("condition_any_of", noun=noun, label=owner.named, filters=filters)

    def _group(self, noun: str, wording: Wording, whole: str = "") -> str:
        owner, filters = self._owner(), self._others(wording)
        if owner is not None and filters:
            return wording.say("group_of_such", noun=noun, label=owner.named, filters=filters, whole=whole)
        if owner is not None:
            return wording.say("group_of", noun=noun, label=owner.named, whole=whole)
        if filters:
            return wording.say("group_such", noun=noun, filters=filters, whole=whole)
        return f"{whole}{noun}"

    def _owner(self) -> Filter | None:
        """The property that is said as whose the records are."""
        return next((each for each in self.filters if each.relation == "of" and self._only(each)), None)

    def _others(self, wording: Wording) -> str:
        """The other properties as one clause."""
        owner = self._owner()
        return wording.say("filter_and").join(each.phrase(wording) for each in self.filters if each is not owner)

    def _only(self, condition: Filter) -> bool:
        """Whether no other reference could be meant by `the loans of Mei`."""
        return sum(field.ref == condition.field.ref for field in self.entity.fields) == 1


def _extreme(wording: Wording, order: Order) -> str:
    if order.way in {"lowest", "highest"} and said(order.field).split()[-1] in wording.phrases["price_words"]:
        return "cheapest" if order.way == "lowest" else "dearest"
    return order.way


def spoken(wording: Wording, field: FieldPlan, value: JsonValue) -> str:
    """A value of a field as people write it."""
    text = wording.spoken(value, field.type)
    return text.replace("_", " ") if field.enum is not None else text + unit_of(field, wording)


def compared(field: FieldPlan, way: str, wording: Wording) -> str:
    """The word by which values of a field are compared, where it depends on the field."""
    degree = wording.quantities.degree(said(field))
    return {"lowest": degree.least, "highest": degree.most, "below": degree.below, "above": degree.above}.get(way, "")


def is_noun(field: FieldPlan, wording: Wording) -> bool:
    """Whether people can say `the due date of the loan`."""
    first, *others = said(field).split(" ")
    if not others and first.endswith(wording.phrases["adjective_endings"]):
        return False
    return [first, *others][-1] not in wording.phrases["particles"]


def noun_of(field: FieldPlan, wording: Wording) -> str:
    """What people call the value of a field where it is one thing: `the number of copies available`."""
    text = said(field)
    if field.type in _NUMBERS and re.search(wording.phrases["plural"][0], text.split()[0]):
        return wording.say("number_of" if field.type == "int" else "total_of", field=text)
    return text


def can_order(field: FieldPlan, wording: Wording) -> bool:
    """Whether records can be put in order by the field."""
    return field.enum is None and field.type in _MOMENTS | _NUMBERS and is_noun(field, wording)


def filters_of(
    entity: EntityPlan, state: State, names: Mapping[str, Mapping[str, str]], wording: Wording
) -> Iterator[Filter]:
    """Properties that some records of an entity have and others have not.

    Args:
        names: entity → id → how people name it; only such records can be referred to.
    """
    rows: dict[str, Row] = state[entity.container]
    for field in filter(lambda field: is_noun(field, wording) and field.type != "list[str]", entity.fields):
        values = list(dict.fromkeys(row[field.name] for row in rows.values() if row[field.name] is not None))
        if len(values) < 2 and field.enum is None:
            continue
        if field.ref is not None:
            known = names.get(field.ref, {})
            yield from (Filter(field, "of", value, known[value]) for value in values if value in known)
        elif field.enum is not None:
            # Reports whose form is a report.
            told = (value for value in values if value != entity.noun)
            yield from (Filter(field, "is", value) for value in told)
        elif field.type in {"date", *_NUMBERS}:
            relations: tuple[Relation, Relation] = ("before", "after") if field.type == "date" else ("below", "above")
            yield from chain.from_iterable(
                (Filter(field, relation, value) for value in sorted(values)) for relation in relations
            )
