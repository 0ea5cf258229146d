"""What the requirements of operations say of every state, so that none shows what no call could bring about.

Two forms are recognised. `not exists(Watch, it.person_id == person.id and …)` before a watch with these values is made:
no two watches are alike in them. `count(Job, it.place_id == place.id and …) < limit` before one more is made or moved
there: no place has more. A requirement that only reads what it counts is a gate, which states may well have closed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from envscaler.offline.blueprint import Blueprint, EffectPlan, Invariant, OperationPlan
from envscaler.offline.expression import Scope, evaluate, parse


@dataclass(frozen=True)
class Unique:
    """Of the records of an entity for which `among` holds, no two are alike in all the fields."""

    entity: str
    fields: tuple[str, ...]
    among: str
    """Expression over `it`."""


@lru_cache(maxsize=256)
def uniques(blueprint: Blueprint) -> tuple[Unique, ...]:
    """What may be there only once."""
    found = {
        unique
        for operation in blueprint.operations
        for requirement in operation.requires
        for node in conjuncts(parse(requirement.when))
        if (unique := _unique(blueprint, operation, node)) is not None
    }
    return tuple(sorted(found, key=repr))


@lru_cache(maxsize=256)
def limits_kept(blueprint: Blueprint) -> tuple[Invariant, ...]:
    """The most that a record may have of others."""
    found = {
        (invariant.entity, invariant.holds): invariant
        for operation in blueprint.operations
        for requirement in operation.requires
        for node in conjuncts(parse(requirement.when))
        for invariant in _most(blueprint, operation, node, requirement.rule)
    }
    return tuple(found[key] for key in sorted(found))


def conjuncts(node: ast.expr) -> list[ast.expr]:
    """The parts that all have to hold."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in conjuncts(value)]
    return [node]


def _unique(blueprint: Blueprint, operation: OperationPlan, node: ast.expr) -> Unique | None:
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id="exists"), args=[ast.Name(id=entity), where])):
            pass
        case _:
            return None
    made = next((effect.values for effect in operation.effects if effect.create == entity), None)
    if made is None:
        return None
    fields: list[str] = []
    among: list[str] = []
    for part in conjuncts(where):
        match part:
            case ast.Compare(
                left=ast.Attribute(value=ast.Name(id="it"), attr=field), ops=[ast.Eq()], comparators=[right]
            ) if field in made and _same(made[field], right):
                if isinstance(right, ast.Constant):
                    among.append(ast.unparse(part))
                else:
                    fields.append(field)
            case _ if _only_reads_it(part) and _holds_of(blueprint, entity, made, part):
                among.append(ast.unparse(part))
            case _:
                return None
    return Unique(entity, tuple(sorted(fields)), " and ".join(sorted(among)) or "True") if fields else None


def _most(blueprint: Blueprint, operation: OperationPlan, node: ast.expr, rule: str) -> Iterator[Invariant]:
    match node:
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="count"), args=[ast.Name(id=counted), where]),
            ops=[ast.Lt()],
            comparators=[right],
        ):
            pass
        case _:
            return
    for effect in operation.effects:
        if _entity_of(operation, effect) != counted or effect.delete is not None:
            continue
        targets: list[str] = []
        among: list[str] = []
        for part in conjuncts(where):
            match part:
                case ast.Compare(
                    left=ast.Attribute(value=ast.Name(id="it"), attr=field),
                    ops=[ast.Eq()],
                    comparators=[ast.Attribute(value=ast.Name(id=variable), attr="id") as named],
                ) if operation.param(variable) is not None and _same(effect.values.get(field, "None"), named):
                    targets.append(variable)
                    among.append(f"it.{field} == {_variable(blueprint, operation, variable)}.id")
                case _ if _only_reads_it(part):
                    among.append(ast.unparse(part))
                case _:
                    return
        param = operation.param(targets[0]) if len(targets) == 1 else None
        if param is not None and param.ref is not None and _is_limit(right, param.name):
            limit = f"it.{right.attr}" if isinstance(right, ast.Attribute) else ast.unparse(right)
            yield Invariant(rule=rule, entity=param.ref, holds=f"count({counted}, {' and '.join(among)}) <= {limit}")


def _entity_of(operation: OperationPlan, effect: EffectPlan) -> str | None:
    """The entity of which an effect makes or changes a record."""
    if effect.create is not None:
        return effect.create
    param = operation.param(effect.change or "")
    return param.ref if param is not None else None


def _variable(blueprint: Blueprint, operation: OperationPlan, name: str) -> str:
    param = operation.param(name)
    return blueprint.entity(param.ref or "").variable if param is not None else name


def _is_limit(node: ast.expr, target: str) -> bool:
    match node:
        case ast.Constant(value=int()):
            return True
        case ast.Attribute(value=ast.Name(id=name)):
            return name == target
    return False


def _same(text: str, node: ast.expr) -> bool:
    return ast.dump(parse(text)) == ast.dump(node)


def _only_reads_it(node: ast.expr) -> bool:
    return all(part.id == "it" for part in ast.walk(node) if isinstance(part, ast.Name))


def _holds_of(blueprint: Blueprint, entity: str, made: dict[str, str], node: ast.expr) -> bool:
    """Whether a condition holds of the record that is made, as far as the constants in it tell."""
    row = {field: tree.value for field, text in made.items() if isinstance(tree := parse(text), ast.Constant)}
    try:
        return bool(evaluate(ast.unparse(node), Scope(blueprint, {}).with_it(entity, row)))
    except KeyError:
        return False
