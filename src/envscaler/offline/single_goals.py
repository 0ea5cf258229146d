"""Wishes for one update: plainly said, with a value or a record that has to be looked up, or against a rule."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envscaler.offline.blueprint import EntityPlan, FieldPlan, OperationPlan, ParamPlan
from envscaler.offline.goals import Place, Proposal, Step, would_change
from envscaler.offline.interpret import tool_parameter, value_fault
from envscaler.offline.selections import is_noun, noun_of
from envscaler.offline.situation import Situation
from envscaler.state import JsonValue

_SAME = ("field_twice", "field_once")
"""Keys of the wording: where a field would be named twice, “the date is the date of B”, and what is said instead."""
_SOURCES = 8
"""Records that are looked at for a value."""


def plain(situation: Situation, operation: OperationPlan) -> Iterator[Proposal]:
    """All that is needed is said."""
    phrase = situation.rng.choice(situation.phrases(operation))
    for arguments in situation.found(operation, phrase):
        wish = situation.wish(operation, phrase, arguments)
        if wish is not None:
            step = Step(operation, arguments)
            yield Proposal("plain", wish, (step,), situation.records(step))


def following(situation: Situation, operation: OperationPlan) -> Iterator[Proposal]:
    """A wish about a record that an earlier goal makes."""
    new = {name: key for goal in situation.goals for name, key in goal.created}
    phrase = situation.rng.choice(situation.phrases(operation))
    for param in situation.references(operation):
        key = new.get(param.ref or "")
        if key is None or key not in situation.named(situation.blueprint.entity(param.ref or "")):
            continue
        for arguments in situation.found(operation, phrase, fixed={param.name: key}, most=2):
            wish = situation.wish(operation, phrase, arguments)
            if wish is not None:
                step = Step(operation, arguments)
                yield Proposal("following", wish, (step,), situation.records(step))


def forbidden(situation: Situation, operation: OperationPlan) -> Iterator[Proposal]:
    """A wish that one rule stands against: nothing is done for it."""
    phrase = situation.rng.choice(situation.phrases(operation))
    indexes = list(range(len(operation.requires)))
    situation.rng.shuffle(indexes)
    for index in indexes[:3]:
        for arguments in situation.found(operation, phrase, violate=index, most=1):
            step = Step(operation, arguments)
            wish = situation.wish(operation, phrase, arguments)
            spared = would_change(situation.blueprint, step, situation.state)
            if wish is not None and spared and situation.violated(operation, arguments) == index:
                records = situation.records(step)
                # Nobody wants a thing to wait for itself.
                if len(set(records)) == len(records) and all(
                    key in situation.untouched(situation.blueprint.entity(name)) for name, key in records
                ):
                    yield Proposal("forbidden", wish, (), records, records, spared=spared, refused=(step,))


def looked_up(situation: Situation, operation: OperationPlan) -> Iterator[Proposal]:
    """A value or a record that another record holds: `set the price of A to that of B`, `the hall of the concert`."""
    phrase = situation.rng.choice(situation.phrases(operation))
    arguments = next(situation.found(operation, phrase, most=1), None)
    if arguments is None:
        return
    params = [param for param in operation.params if tool_parameter(situation.blueprint, param) in arguments]
    situation.rng.shuffle(params)
    for param in params:
        if not situation.stands_alone(phrase, param):
            continue
        parameter = tool_parameter(situation.blueprint, param)
        for entity, key, field in _sources(situation, operation, phrase, param):
            value = situation.state[entity.container][key][field.name]
            changed: dict[str, JsonValue] = {**arguments, parameter: value}
            taken = {record for name, record in situation.records(Step(operation, arguments)) if name == entity.name}
            if key in taken or value == arguments[parameter] or not situation.allowed(operation, changed):
                continue
            place: Place = (entity.name, key, field.name)
            called, label = noun_of(field, situation.wording), situation.named(entity)[key].text
            text = situation.wording.say("field_of", field=called, label=label)
            wish = situation.wish(operation, phrase, changed, {param.name: text})
            if wish is not None:
                for twice, once in zip(*map(situation.wording.phrases.__getitem__, _SAME), strict=True):
                    wish = wish.replace(twice.format(field=called, text=text), once.format(field=called, label=label))
            if wish is not None:
                step = Step(operation, changed, {parameter: place})
                records = (*situation.records(step), (entity.name, key))
                yield Proposal("looked_up", wish, (step,), records, ((entity.name, key),), frozenset({place}))


def _sources(
    situation: Situation, operation: OperationPlan, phrase: str, param: ParamPlan
) -> Iterator[tuple[EntityPlan, str, FieldPlan]]:
    """Records and fields whose value can stand in the place of an argument."""
    if param.ref is None and not _stands_free(situation, phrase, param):
        return
    entities = list(situation.blueprint.entities)
    situation.rng.shuffle(entities)
    for entity in entities:
        for field in entity.fields:
            if not _of_a_kind(operation, param, entity, field) or not is_noun(field, situation.wording):
                continue
            for key in situation.untouched(entity)[:_SOURCES]:
                value = situation.state[entity.container][key][field.name]
                if value is None or (param.ref is not None and field.name in situation.named(entity)[key].fields):
                    continue
                if param.ref is not None or value_fault(param, value, situation.blueprint.language) is None:
                    yield entity, key, field


def _of_a_kind(operation: OperationPlan, param: ParamPlan, entity: EntityPlan, field: FieldPlan) -> bool:
    """Whether a field holds what a parameter stands for: a reference of the same kind, or what it is set to."""
    if param.ref is not None:
        return field.ref == param.ref
    if field.ref is not None or field.type != param.type or param.type in {"bool", "list[str]"}:
        return False
    if param.type == "str" and (param.enum != field.enum or field.name == entity.title):
        return False
    if field.name == param.name:
        return True
    return any(
        value == param.name and name == field.name
        for effect in operation.effects
        for name, value in effect.values.items()
    )


def _stands_free(situation: Situation, phrase: str, param: ParamPlan) -> bool:
    """Whether the value stands for itself in a phrase, without a unit behind it: `to {price}`, `until {date}`."""
    words = "|".join(map(re.escape, situation.wording.phrases["before_value"]))
    ends = "|".join(map(re.escape, situation.wording.phrases["after_value"]))
    return re.search(rf"(?:{words})\{{{param.name}\}}(?:$|{ends})", phrase) is not None
