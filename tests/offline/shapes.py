"""The shape of a blueprint: what is left of it when every name, text and constant is taken away.

Coarser than what `program.structure` measures of a finished program, and a small part of the work: two blueprints of
different shapes have different structures, but the reverse does not hold.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Hashable, Iterable

from envscaler.offline.blueprint import Blueprint, EffectPlan, OperationPlan
from envscaler.offline.expression import parse


def shape(blueprint: Blueprint) -> Hashable:
    """Equal for blueprints that differ only in names, texts, constants, order and the queries that any entity has."""
    return (
        _bag(sum(field.ref is not None for field in entity.fields) for entity in blueprint.entities),
        _bag(_form(invariant.holds) for invariant in blueprint.invariants),
        _bag(_operation(operation) for operation in blueprint.operations if not _is_standard(operation)),
    )


def _is_standard(operation: OperationPlan) -> bool:
    query = operation.query
    return query is not None and query.kind != "value" and query.where is None


def _operation(operation: OperationPlan) -> Hashable:
    query = operation.query
    return (
        _bag((param.type, param.ref is not None, param.optional) for param in operation.params),
        _bag(_form(requirement.when) for requirement in operation.requires),
        _bag(_effect(effect) for effect in operation.effects),
        (query.kind, _form(query.where), _form(query.value)) if query is not None else None,
    )


def _effect(effect: EffectPlan) -> Hashable:
    kind = next(kind for kind in ("create", "change", "delete", "each") if getattr(effect, kind) is not None)
    return kind, _form(effect.when), _form(effect.where), _bag(_form(value) for value in effect.values.values())


def _form(text: str | None) -> Hashable:
    """Which kinds of terms an expression is made of, in the order of its tree."""
    return () if text is None else tuple(type(node).__name__ for node in ast.walk(parse(text)))


def _bag(members: Iterable[Hashable]) -> Hashable:
    return frozenset(Counter(members).items())
