"""Presses some records of a state against the limits of requirements, where careless calls go wrong.

Two forms of requirement are recognised: `count(Loan, it.member_id == member.id and …) < limit`, for which one record
gets as many as it can have and another one less; and `record.field > 5`, for which values at the border are given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Protocol

from envscaler.offline.blueprint import Blueprint, EntityPlan
from envscaler.offline.expression import parse
from envscaler.offline.labels import Row
from envscaler.offline.standing_rules import conjuncts
from envscaler.state import JsonValue

_MOST_ADDED = 3
_MOST_COUNTED = 5


class Draft(Protocol):
    """A state in the making, as `states` has it."""

    blueprint: Blueprint
    rng: Random
    drawn: dict[str, dict[str, Row]]
    pressed: float
    """How often records are pressed against the limits of a requirement."""

    def add(self, entity: EntityPlan) -> str:
        """Draw one more record; its id."""
        ...


@dataclass(frozen=True)
class _CountLimit:
    target: str
    """Entity of which a record can have only so many."""
    counted: str
    reference: str
    """Field of the counted entity that names the target."""
    fixed: tuple[tuple[str, JsonValue], ...]
    """Fields that a counted record must have."""
    limit: int | str
    """The number, or the field of the target that holds it."""
    beyond: int
    """How many more than `limit` there must be before a call is refused: 0 for `<`, 1 for `<=`."""


@dataclass(frozen=True)
class _ValueLimit:
    entity: str
    field: str
    value: float


def press(draft: Draft) -> None:
    """Give some records values at the limits that the blueprint's requirements name."""
    limits = sorted(set(_limits(draft.blueprint)), key=repr)
    for limit in limits:
        if draft.rng.random() < draft.pressed:
            if isinstance(limit, _CountLimit):
                _press_count(draft, limit)
            else:
                _press_value(draft, limit)


def _limits(blueprint: Blueprint) -> Iterator[_CountLimit | _ValueLimit]:
    for operation in blueprint.operations:
        records = {param.name: param.ref for param in operation.params if param.ref is not None}
        for requirement in operation.requires:
            for node in conjuncts(parse(requirement.when)):
                match node:
                    case ast.Compare(
                        left=ast.Call(func=ast.Name(id="count"), args=[ast.Name(id=counted), where]),
                        ops=[ast.Lt() | ast.LtE() as op],
                        comparators=[right],
                    ):
                        limit = _count_limit(records, counted, where, right, 0 if isinstance(op, ast.Lt) else 1)
                        if limit is not None:
                            yield limit
                    case ast.Compare(
                        left=ast.Attribute(value=ast.Name(id=variable), attr=field),
                        ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()],
                        comparators=[ast.Constant(value=int() | float() as value)],
                    ) if variable in records:
                        yield _ValueLimit(records[variable], field, value)


def _count_limit(
    records: dict[str, str], counted: str, where: ast.expr, right: ast.expr, beyond: int
) -> _CountLimit | None:
    target = reference = ""
    fixed: list[tuple[str, JsonValue]] = []
    for node in conjuncts(where):
        match node:
            case ast.Compare(
                left=ast.Attribute(value=ast.Name(id="it"), attr=field),
                ops=[ast.Eq()],
                comparators=[ast.Attribute(value=ast.Name(id=variable), attr="id")],
            ) if variable in records and not target:
                target, reference = variable, field
            case ast.Compare(
                left=ast.Attribute(value=ast.Name(id="it"), attr=field),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value=value)],
            ):
                fixed.append((field, value))
            case _:
                return None
    match right:
        case ast.Constant(value=int() as number) if target:
            return _CountLimit(records[target], counted, reference, tuple(fixed), number, beyond)
        case ast.Attribute(value=ast.Name(id=variable), attr=field) if target and variable == target:
            return _CountLimit(records[target], counted, reference, tuple(fixed), field, beyond)
    return None


def _press_count(draft: Draft, limit: _CountLimit) -> None:
    entity = draft.blueprint.entity(limit.counted)
    numbers: dict[str, int] = {}
    for key, row in draft.drawn[limit.target].items():
        number = row.get(limit.limit) if isinstance(limit.limit, str) else limit.limit
        if isinstance(number, int) and 0 < number <= _MOST_COUNTED:
            numbers[key] = number
    # Few records reach a low limit; the others stay spread out.
    targets = sorted(draft.rng.sample(list(numbers), min(4, len(numbers))), key=lambda key: numbers[key])[:2]
    added = 0
    for short_by, target in enumerate(targets):
        rows = draft.drawn[limit.counted]
        own = [row for row in rows.values() if row[limit.reference] == target and _fits(row, limit)]
        others = [row for row in rows.values() if row[limit.reference] not in targets]
        draft.rng.shuffle(others)
        for _ in range(numbers[target] + limit.beyond - short_by - len(own)):
            if len(others) <= len(rows) // 3 and added < _MOST_ADDED:
                others.append(rows[draft.add(entity)])
                added += 1
            if others:
                row = others.pop()
                row[limit.reference] = target
                row.update(limit.fixed)


def _fits(row: Row, limit: _CountLimit) -> bool:
    return all(row.get(field) == value for field, value in limit.fixed)


def _press_value(draft: Draft, limit: _ValueLimit) -> None:
    field = draft.blueprint.entity(limit.entity).field(limit.field)
    if field is None or field.make.whole is None or field.make.step is not None:
        return
    low, high = field.make.whole
    border = [
        number for number in (int(limit.value) - 1, int(limit.value), int(limit.value) + 1) if low <= number <= high
    ]
    keys = list(draft.drawn[limit.entity])
    for key, number in zip(draft.rng.sample(keys, min(len(border), len(keys))), border, strict=False):
        draft.drawn[limit.entity][key][limit.field] = number
