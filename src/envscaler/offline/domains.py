"""Reads domain files and checks that what they say fits together."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from importlib import resources
from typing import Any

import yaml

from envscaler.errors import ProgramError
from envscaler.offline.blueprint import Blueprint, EntityPlan, FieldPlan, Language, OperationPlan
from envscaler.offline.expression import FUNCTIONS, parse
from envscaler.offline.files import load_yaml
from envscaler.offline.labels import label_paths, reference_field
from envscaler.offline.queries import standard_queries
from envscaler.offline.wording import wording


@cache
def domains(language: Language = "en") -> tuple[Blueprint, ...]:
    """All domains of the package in a language, in the order of their file names.

    English files lie in `domains/`, others in a folder of their own there, by the same file names.
    """
    folder = resources.files("envscaler.offline").joinpath("domains")
    if language != "en":
        folder = folder.joinpath(language)
    files = sorted((path for path in folder.iterdir() if path.name.endswith(".yaml")), key=lambda path: path.name)
    return tuple(read_domain(path.read_text(encoding="utf-8"), path.name) for path in files)


def read_domain(text: str, name: str) -> Blueprint:
    """The blueprint that a domain file describes.

    Raises:
        ProgramError: naming the file and the fault.
    """
    try:
        blueprint = complete(load_yaml(text))
    except (yaml.YAMLError, ValueError, TypeError, KeyError) as fault:
        raise ProgramError(f"{name}: {fault}") from fault
    faults = blueprint_faults(blueprint)
    if faults:
        raise ProgramError(f"{name}: {'; '.join(faults[:5])}")
    return blueprint


def complete(plan: dict[str, Any]) -> Blueprint:
    """A blueprint from its plain form: the standard queries of every entity come first."""
    language = plan.get("language", "en")
    entities = tuple(_entity(entity, language) for entity in plan["entities"])
    own = tuple(OperationPlan.model_validate(operation) for operation in plan["operations"])
    names = {operation.name for operation in own}
    standard = (operation for entity in entities for operation in standard_queries(entity, wording(language)))
    queries = tuple(operation for operation in standard if operation.name not in names)
    introduction = _unspaced(plan["introduction"])
    return Blueprint.model_validate(
        {**plan, "introduction": introduction, "entities": entities, "operations": (*queries, *own)}
    )


def _unspaced(text: str) -> str:
    """The text without the spaces that the line breaks of a file have left between Chinese characters."""
    return re.sub(r"(?<=[^\x00-\xff]) (?=[^\x00-\xff])", "", text)


def _entity(plan: dict[str, Any], language: str) -> EntityPlan:
    """An entity; in English a field is called what it is named, elsewhere what its description says."""
    entity = EntityPlan.model_validate(plan)
    called = _called if language == "en" else (lambda field: field.description)
    fields = tuple(
        field if field.label else field.model_copy(update={"label": called(field)}) for field in entity.fields
    )
    return entity.model_copy(update={"fields": fields})


_MOMENTS = {
    "begins": "start",
    "ends": "end",
    "expires": "expiry",
    "valid": "expiry",
    "due": "due",
    "renews": "renewal",
    "opens": "opening",
    "closes": "closing",
    "leaves": "departure",
    "arrives": "arrival",
    "handover": "handover",
    "execute": "execution",
    "price changed": "price change",
    "rate changed": "rate change",
    "licensed": "licence expiry",
    "licence valid": "licence expiry",
    "access": "access expiry",
}


def _called(field: FieldPlan) -> str | None:
    """A noun for a day or moment whose name is none: `ends_on` is the end date, `booked_on` the date booked."""
    match = re.fullmatch(r"(\w+)_(on|until|at)", field.name)
    if match is None or field.type not in {"date", "datetime", "time"}:
        return None
    kind, said = "time" if field.type == "time" else "date", match[1].replace("_", " ")
    if said in _MOMENTS:
        return f"{_MOMENTS[said]} {kind}"
    return f"{kind} {said}" if match[2] != "until" else None


def blueprint_faults(blueprint: Blueprint) -> list[str]:
    """What in a blueprint contradicts itself: unknown entities, fields, variables, functions; ids that look alike."""
    prefixes = Counter(entity.prefix for entity in blueprint.entities)
    faults = [f"two entities have one id prefix: {prefix}" for prefix, count in prefixes.items() if count > 1]
    seen: set[str] = set()
    for entity in blueprint.entities:
        own = {"it": entity.name, entity.variable: entity.name}
        if not all(name.isascii() and name.isidentifier() for name in (entity.variable, entity.container)):
            faults.append(f"{entity.name}: its noun is no English identifier; give variable and container")
        for field in entity.fields:
            where = f"{entity.name}.{field.name}"
            if field.ref is not None and field.ref not in seen | {entity.name}:
                faults.append(f"{where} references {field.ref}, which does not stand before it")
            if field.make.derive is not None:
                faults += _expression_faults(blueprint, field.make.derive, own, set(), where)
            if field.make.only_if is not None:
                faults += _expression_faults(blueprint, field.make.only_if, own, set(), where)
        if entity.title is not None and entity.field(entity.title) is None:
            faults.append(f"{entity.name}: its title {entity.title} is not a field")
        faults += [
            f"{entity.name}: its label names {path}, which is no field"
            for path in label_paths(entity)
            if not _is_field(blueprint, entity, path)
        ]
        seen.add(entity.name)
    for invariant in blueprint.invariants:
        own = {"it": invariant.entity, blueprint.entity(invariant.entity).variable: invariant.entity}
        faults += _expression_faults(blueprint, invariant.holds, own, set(), "an invariant")
    for operation in blueprint.operations:
        faults += _operation_faults(blueprint, operation)
    return faults


def _is_field(blueprint: Blueprint, entity: EntityPlan, path: str) -> bool:
    """Whether a dotted path from a record of an entity ends in a field: `title`, `book.title`."""
    head, _, rest = path.partition(".")
    if not rest:
        return entity.field(head) is not None or (head == "title" and entity.title is not None)
    if head in {entity.variable, "it"} and entity.field(f"{head}_id") is None:
        return _is_field(blueprint, entity, rest)
    try:
        reference = reference_field(entity, head)
    except KeyError:
        return False
    return any(_is_field(blueprint, known, rest) for known in blueprint.entities if known.name == reference.ref)


def _operation_faults(blueprint: Blueprint, operation: OperationPlan) -> list[str]:
    where = operation.name
    faults: list[str] = []
    known = {entity.name for entity in blueprint.entities}
    records = {param.name: param.ref for param in operation.params if param.ref is not None and not param.optional}
    values = {param.name for param in operation.params if param.ref is None}
    values |= {f"{param.name}_id" for param in operation.params if param.ref is not None}
    for param in operation.params:
        if param.ref is not None and param.ref not in known:
            return [f"{where}: parameter {param.name} references {param.ref}, which does not exist"]
    for requirement in operation.requires:
        faults += _expression_faults(blueprint, requirement.when, records, values, where)
    for effect in operation.effects:
        entity_name = effect.create or effect.each or records.get(effect.change or effect.delete or "")
        if entity_name not in known:
            faults.append(f"{where}: an effect names {entity_name or effect.change or effect.delete}, which is unknown")
            continue
        entity = blueprint.entity(entity_name)
        for field in effect.values:
            if entity.field(field) is None:
                faults.append(f"{where}: {entity.name} has no field {field}")
        scope = {entity.variable: entity_name, **records, "it": entity_name} if effect.each is not None else records
        for text in (*effect.values.values(), *filter(None, [effect.when, effect.where])):
            faults += _expression_faults(blueprint, text, scope, values, where)
        if effect.create is not None:
            records = {**records, effect.var or entity.variable: entity.name}
    if operation.query is not None and operation.query.value is not None:
        faults += _expression_faults(blueprint, operation.query.value, records, values, where)
    if operation.query is not None and operation.query.where is not None:
        listed = blueprint.entity(operation.query.entity or "")
        scope = {listed.variable: listed.name, **records, "it": listed.name}
        faults += _expression_faults(blueprint, operation.query.where, scope, values, where)
    if operation.query is None and not operation.effects:
        faults.append(f"{where} is neither a query nor has effects")
    if operation.returns is not None and operation.returns not in records:
        faults.append(f"{where} returns {operation.returns}, which is unknown")
    return faults


def _expression_faults(
    blueprint: Blueprint, text: str, records: dict[str, str], values: set[str], where: str
) -> list[str]:
    try:
        tree = parse(text)
    except SyntaxError:
        return [f"{where}: not an expression: {text}"]
    return _node_faults(blueprint, tree, records, values, f"{where}: {text}")


def _node_faults(
    blueprint: Blueprint, node: ast.AST, records: dict[str, str], values: set[str], where: str
) -> list[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in {"count", "exists", "total"} and node.args and isinstance(node.args[0], ast.Name):
            entity = node.args[0].id
            if entity not in {known.name for known in blueprint.entities}:
                return [f"{where}: unknown entity {entity}"]
            inner = {blueprint.entity(entity).variable: entity, **records, "it": entity}
            return [f for part in node.args[1:] for f in _node_faults(blueprint, part, inner, values, where)]
        if node.func.id not in FUNCTIONS:
            return [f"{where}: unknown function {node.func.id}"]
        return [fault for part in node.args for fault in _node_faults(blueprint, part, records, values, where)]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.value.id not in records:
            return [f"{where}: unknown record {node.value.id}"]
        entity_plan = blueprint.entity(records[node.value.id])
        known_field = node.attr in {"id", entity_plan.key} or entity_plan.field(node.attr) is not None
        return [] if known_field else [f"{where}: {entity_plan.name} has no field {node.attr}"]
    if isinstance(node, ast.Name):
        return [] if node.id in values | {"now", "today", "it"} else [f"{where}: unknown name {node.id}"]
    return [
        fault
        for child in ast.iter_child_nodes(node)
        for fault in _node_faults(blueprint, child, records, values, where)
    ]
