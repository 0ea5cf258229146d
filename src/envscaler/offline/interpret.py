"""Carries out a blueprint's operation on a plain state, without any generated code.

The planner uses it to find plans, the checking agent to predict what a program should have done.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from envscaler.offline.blueprint import Blueprint, EntityPlan, Language, OperationPlan, ParamPlan
from envscaler.offline.expression import Scope, evaluate
from envscaler.offline.wording import wording
from envscaler.state import JsonValue, State


@dataclass(frozen=True)
class Prediction:
    """What an operation should do."""

    success: bool
    state: State
    """The state afterwards; the very state given when nothing changes."""
    data: JsonValue = None
    """What is returned under `data`."""
    error: str | None = None
    """Message of the failure."""
    violated: int | None = None
    """Index of the requirement that did not hold; None when an argument is wrong in itself."""


def interpret(blueprint: Blueprint, operation: OperationPlan, state: State, arguments: Mapping[str, Any]) -> Prediction:
    """Predict a call by the tool's parameter names (`book_id`). The given state is never changed."""
    scope = Scope(blueprint, state)
    refused = _refusal(operation, arguments, scope)
    if refused is not None:
        return refused
    if operation.query is not None:
        return Prediction(True, state, data=_query(operation, scope))
    return _update(operation, scope)


def refusal(
    blueprint: Blueprint, operation: OperationPlan, state: State, arguments: Mapping[str, Any]
) -> Prediction | None:
    """The prediction of a call that would not succeed; None of one that would, and what that does is not worked out."""
    return _refusal(operation, arguments, Scope(blueprint, state))


def _refusal(operation: OperationPlan, arguments: Mapping[str, Any], scope: Scope) -> Prediction | None:
    blueprint, state = scope.blueprint, scope.state
    for param in operation.params:
        fault = _bind(param, arguments, scope)
        if fault is not None:
            return Prediction(False, state, error=fault)
    extra = set(arguments) - {tool_parameter(blueprint, param) for param in operation.params}
    if extra:
        unexpected = wording(blueprint.language).say("unexpected", name=sorted(extra)[0])
        return Prediction(False, state, error=unexpected)
    for index, requirement in enumerate(operation.requires):
        if not evaluate(requirement.when, scope):
            return Prediction(False, state, error=fill(requirement.error, scope), violated=index)
    return None


def tool_parameter(blueprint: Blueprint, param: ParamPlan) -> str:
    """Name of the parameter in the tool's schema."""
    return f"{param.name}_id" if param.ref is not None else param.name


def _bind(param: ParamPlan, arguments: Mapping[str, Any], scope: Scope) -> str | None:
    said = wording(scope.blueprint.language)
    name = tool_parameter(scope.blueprint, param)
    # A parameter with a default of its own has no null in its schema.
    if name not in arguments or (arguments[name] is None and param.optional and param.default is None):
        if not param.optional:
            return said.say("missing", name=name)
        if param.ref is None:
            scope.values[param.name] = param.default
        else:
            scope.values[name] = None
        return None
    value = arguments[name]
    if param.ref is not None:
        entity = scope.blueprint.entity(param.ref)
        if not isinstance(value, str) or value not in scope.state[entity.container]:
            return said.say("unknown_record", noun=entity.noun, key=value)
        scope.records[param.name] = (entity.name, scope.state[entity.container][value])
        scope.values[name] = value
        return None
    fault = value_fault(param, value, scope.blueprint.language)
    if fault is None:
        scope.values[param.name] = value
    return fault


def value_fault(param: ParamPlan, value: Any, language: Language = "en") -> str | None:
    """What is wrong with the value of a parameter that is no reference, or None."""
    said = wording(language)
    name = param.name
    if param.type == "bool":
        return None if isinstance(value, bool) else said.say("must_be_bool", name=name)
    if param.type == "int" and (not isinstance(value, int) or isinstance(value, bool)):
        return said.say("must_be_int", name=name)
    if param.type == "float" and (not isinstance(value, (int, float)) or isinstance(value, bool)):
        return said.say("must_be_float", name=name)
    if param.type in {"int", "float"}:
        if param.minimum is not None and value < param.minimum:
            return said.say("must_be_at_least", name=name, low=param.minimum)
        if param.maximum is not None and value > param.maximum:
            return said.say("must_be_at_most", name=name, high=param.maximum)
        return None
    if param.type == "list[str]":
        good = isinstance(value, list) and all(isinstance(part, str) for part in value)
        return None if good else said.say("must_be_texts", name=name)
    if not isinstance(value, str) or not value.strip():
        return said.say("must_be_text", name=name)
    if param.enum is not None and value not in param.enum:
        return said.say("must_be_one_of", name=name, values=said.phrases["comma"][0].join(param.enum))
    if param.type in MOMENTS and not is_moment(param.type, value):
        return said.say("must_have_form", name=name, form=MOMENTS[param.type])
    return None


MOMENTS = {"date": "YYYY-MM-DD", "time": "HH:MM", "datetime": "YYYY-MM-DDTHH:MM:SS"}


def is_moment(kind: str, text: str) -> bool:
    """Whether a text is a date, time or datetime in the form that states use."""
    try:
        if kind == "date":
            return date.fromisoformat(text).isoformat() == text
        if kind == "time":
            return datetime.strptime(text, "%H:%M").strftime("%H:%M") == text
        return datetime.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def fill(template: str, scope: Scope) -> str:
    """A message template with the values of its expressions put in."""

    def value(match: re.Match[str]) -> str:
        return str(evaluate(match.group(1), scope))

    return re.sub(r"\{([^{}]+)\}", value, template)


def _query(operation: OperationPlan, scope: Scope) -> JsonValue:
    query = operation.query
    assert query is not None
    if query.kind == "value":
        return evaluate(query.value or "None", scope)
    if query.kind == "get":
        return _copied(next(iter(scope.records.values()))[1])
    entity = scope.blueprint.entity(query.entity or "")
    rows = scope.rows(entity.name)
    if query.kind == "find":
        needle = str(scope.values[query.field or ""]).strip().lower()
        rows = [row for row in rows if needle in str(row[query.field or ""]).lower()]
    else:
        for param in operation.params:
            name = tool_parameter(scope.blueprint, param)
            wanted = scope.values.get(name)
            if wanted is not None and entity.field(name) is not None:
                rows = [row for row in rows if row[name] == wanted]
        if query.where is not None:
            rows = [row for row in rows if evaluate(query.where, scope.with_it(entity.name, row))]
        if query.sort is not None:
            rows = sorted(rows, key=lambda row: row[query.sort or ""], reverse=query.descending)
    return [_copied(row) for row in rows]


def _copied(row: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A record of its own; values are plain, at most lists of texts."""
    return {name: list(value) if isinstance(value, list) else value for name, value in row.items()}


def _update(operation: OperationPlan, scope: Scope) -> Prediction:
    before = scope.state
    # Containers that effects write to are copied, and their records replaced whole: the state before stays as it is.
    after: State = dict(before)
    for container in _written(operation, scope):
        after[container] = dict(before[container])
    # Every value is computed from the state before, then written: the order of effects does not matter, except
    # that a created record can be named by later ones.
    reading = Scope(scope.blueprint, before, scope.values, dict(scope.records))
    for effect in operation.effects:
        if effect.when is not None and not evaluate(effect.when, reading):
            continue
        if effect.create is not None:
            entity = scope.blueprint.entity(effect.create)
            record = _created(entity, after, {name: evaluate(text, reading) for name, text in effect.values.items()})
            reading.records[effect.var or entity.variable] = (entity.name, record)
        elif effect.each is not None:
            entity = scope.blueprint.entity(effect.each)
            for key, row in before[entity.container].items():
                inner = reading.with_it(entity.name, row)
                if effect.where is None or evaluate(effect.where, inner):
                    rows = after[entity.container]
                    rows[key] = {**rows[key], **{name: evaluate(text, inner) for name, text in effect.values.items()}}
        else:
            variable = effect.change or effect.delete or ""
            name, record = reading.records[variable]
            container = after[scope.blueprint.entity(name).container]
            key = record[scope.blueprint.entity(name).key]
            if effect.delete is not None:
                del container[key]
            else:
                given = {field: evaluate(text, reading) for field, text in effect.values.items()}
                container[key] = {**container[key], **given}
    data: JsonValue = None
    if operation.returns is not None and operation.returns in reading.records:
        name, record = reading.records[operation.returns]
        entity = scope.blueprint.entity(name)
        data = _copied(after[entity.container].get(record[entity.key], record))
    return Prediction(True, after, data=data)


def _written(operation: OperationPlan, scope: Scope) -> set[str]:
    """Containers that an operation's effects can write to."""
    entities = {effect.create or effect.each for effect in operation.effects}
    entities |= {
        scope.records[variable][0]
        for effect in operation.effects
        if (variable := effect.change or effect.delete) in scope.records
    }
    return {scope.blueprint.entity(name).container for name in entities if name is not None}


def _created(entity: EntityPlan, state: State, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    number = state[entity.counter]
    state[entity.counter] = number + 1
    key = f"{entity.prefix}-{number:04d}"
    record: dict[str, JsonValue] = {entity.key: key}
    for field in entity.fields:
        record[field.name] = values.get(field.name, field.make.value)
    state[entity.container][key] = record
    return record
